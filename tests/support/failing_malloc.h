/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the nth allocation fail.  A test that depends on failing_malloc_dep has its own and the static libraries'
 * malloc, calloc, realloc and posix_memalign wrapped by the linker (not those of shared libraries).
 *
 *     for (long n = 1;; n++) {
 *         fm_fail_at(n);
 *         status = something();
 *         if (!fm_stop())
 *             break;                      all allocations were had: something() must have succeeded
 *         expect(status == VGK_ERR_NOMEM);
 *     }
 *
 * fm_live() is the number of blocks allocated and not freed: the same before and after when nothing leaks. */
#ifndef FAILING_MALLOC_H
#define FAILING_MALLOC_H

#include <stdbool.h>

void fm_fail_at(long nth); /* from now on: 1 = the next; it and all that follow fail */
bool fm_stop(void);        /* back to normal; true when one has failed */
long fm_live(void);

#endif
