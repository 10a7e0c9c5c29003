/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A query's scores against a block of keys: what attention.c calls, compiled per instruction set. */
#ifndef VGK_CPU_ATTENTION_H
#define VGK_CPU_ATTENTION_H

#include "cpu.h"

extern const struct vgk_cpu_family vgk_cpu_attention; /* attention.c: floats, but not f64 */

/* Turns n products into exp(score - *largest) with score = cap(scale * product) + bias (NULL: none), those from n to
 * all into 0; *largest (-INFINITY at first) and *total (0 at first) go on with this block.  Returns the factor by which
 * whatever was summed before shrinks. */
typedef float vgk_attention_row(float *s, int64_t n, int64_t all, float scale, float softcap, const float *bias,
                                float *largest, float *total);

vgk_attention_row vgk_attention_row_generic;
#ifdef __x86_64__
vgk_attention_row vgk_attention_row_avx2, vgk_attention_row_avx512;
#endif

#endif
