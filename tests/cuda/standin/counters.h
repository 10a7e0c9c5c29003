/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the stand-in has counted, for tests in C. */
#ifndef STANDIN_COUNTERS_H
#define STANDIN_COUNTERS_H

#ifdef __cplusplus
extern "C" {
#endif
long standin_launches(void); /* of kernels and of graphs */
long standin_uploaded(void); /* bytes, from the host to the device */
long standin_downloaded(void);
int standin_graphs(void);    /* that exist, executable ones among them */
int standin_objects(void);   /* those, streams, events and blocks of memory */
#ifdef __cplusplus
}
#endif

#endif
