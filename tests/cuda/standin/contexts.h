/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a driver tells the stand-in for the runtime about contexts.  Without one, all is the primary one's (NULL). */
#ifndef STANDIN_CONTEXTS_H
#define STANDIN_CONTEXTS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Of the calling thread, until the next cudaSetDevice, which takes the primary one.  Streams and device memory are
 * those of the context in which they were made, and work for them is refused in any other. */
void standin_use_context(void *context);

/* How many streams and blocks of device memory there are in it. */
int standin_context_use(void *context);

#ifdef __cplusplus
}
#endif

#endif
