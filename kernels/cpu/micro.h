/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The register-blocked product that convolutions (and whatever else multiplies matrices) are made of:
 *
 *     c[r][j] = sum over segments s, k < len of  seg[s].a[r * lda + k] * seg[s].b[k * nr + j]
 *
 * for r < mr rows and nr = nv vectors of columns.  The order of the sum is that of the segments and of k, whatever mr
 * is: a row's bits do not depend on the rows beside it. */
#ifndef VGK_CPU_MICRO_H
#define VGK_CPU_MICRO_H

#include <stddef.h>

#define VGK_MICRO_ROWS 14 /* the most rows of a block */
#define VGK_MICRO_WIDTH 3 /* the most vectors of columns */

struct vgk_segment {
    const float *a;
    const float *b; /* packed: [len][nr] */
};

typedef void vgk_micro_fn(int segments, const struct vgk_segment *seg, ptrdiff_t len, ptrdiff_t lda, float *c,
                          ptrdiff_t ldc);

struct vgk_micro {
    int vl;                        /* floats a vector */
    int rows[VGK_MICRO_WIDTH + 1]; /* of a full block, by nv */
    float speed[VGK_MICRO_WIDTH + 1]; /* of a full block relative to the best nv, for choosing one */
    vgk_micro_fn *fn[VGK_MICRO_WIDTH + 1][VGK_MICRO_ROWS + 1]; /* by nv and mr, 1 <= mr <= rows[nv] */
};

extern const struct vgk_micro vgk_micro_generic;
#ifdef __x86_64__
extern const struct vgk_micro vgk_micro_avx2, vgk_micro_avx512;
#endif

#endif
