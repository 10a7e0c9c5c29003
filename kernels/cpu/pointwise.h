/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs of f32 elements: what pointwise.c calls, compiled per instruction set. */
#ifndef VGK_CPU_POINTWISE_H
#define VGK_CPU_POINTWISE_H

#include "cpu.h"

extern const struct vgk_cpu_family vgk_cpu_pointwise; /* pointwise.c: unary, binary; f32, runs of neighbours */
extern const struct vgk_cpu_family vgk_cpu_chain;     /* chain.c: several of them in one pass, or one by any strides */
extern const struct vgk_cpu_family vgk_cpu_copy;      /* copy.c: equal types, any strides */

/* d[i] = fn(s[i]). */
typedef void vgk_unary_row(float *d, const float *s, int64_t n, float alpha, float beta);
/* d[i] = fn(a[i], b[i]); with a_step or b_step 0 the same a or b for all, else 1. */
typedef void vgk_binary_row(float *d, const float *a, const float *b, int64_t n, int a_step, int b_step);

#define VGK_SHORT_ROW 32  /* elements: chain.c takes several such rows at once */
#define VGK_ROWS_SLACK 16 /* floats behind the last that `gather` writes */

struct vgk_pointwise_rows {
    vgk_unary_row *unary[VGK_ATANH + 1]; /* NULL: not here */
    vgk_binary_row *binary[VGK_XOR + 1];
    /* rows of n elements, `pitch` apart, their elements `step` apart: to one behind the other, and back. */
    void (*gather)(float *d, const float *s, int64_t rows, int64_t n, int64_t pitch, int64_t step);
    void (*scatter)(float *d, const float *s, int64_t rows, int64_t n, int64_t pitch, int64_t step);
};

extern const struct vgk_pointwise_rows vgk_pointwise_rows_generic;
#ifdef __x86_64__
extern const struct vgk_pointwise_rows vgk_pointwise_rows_avx2, vgk_pointwise_rows_avx512;
#endif

#endif
