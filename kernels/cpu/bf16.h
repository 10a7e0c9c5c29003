/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Blocks of rows times a panel of columns as in micro.h, with operands in bf16 (the upper half of an f32) and sums in f32:
 *
 *     c[r][j] = sum over segments s, k < len of  seg[s].a[r * lda + k] * seg[s].b[k / 2][j][k % 2]
 *
 * By AVX512-BF16 or AMX-BF16: Intel, Architecture Instruction Set Extensions Programming Reference, VDPBF16PS and TDPBF16PS.
 * Both round each sum to nearest even and take denormals for 0.  The order of the sum is the instruction's, and the same for
 * every row of a block and every block.
 *
 * Activations stay f32 in memory and become bf16 in a thread's scratch, right before their products: that costs a few
 * operations for each input where a product has hundreds, all other kernels are as they were, and only operands are
 * rounded, never what a residual or a norm adds up.  bf16 has f32's range, so that nothing overflows that f32 does not:
 * there is nothing to rescue. */
#ifndef VGK_CPU_BF16_H
#define VGK_CPU_BF16_H

#include "../base.h"

#include <stddef.h>
#include <stdint.h>

#define VGK_BF16_VECTORS 2 /* the most vectors (of 16 columns) of a panel */
#define VGK_BF16_ROWS 32   /* the most rows of a block */

struct vgk_bf16_segment {
    const uint16_t *a, *b;
};

typedef void vgk_bf16_fn(int segments, const struct vgk_bf16_segment *seg, ptrdiff_t len, ptrdiff_t lda, float *c);

struct vgk_bf16 {
    const char *how;
    int depth;                      /* len is a multiple of this */
    int rows[VGK_BF16_VECTORS + 1]; /* of a block, by vectors of columns: all are read and computed */
    vgk_bf16_fn *block[VGK_BF16_VECTORS + 1]; /* c is [rows][columns] */
    void (*begin)(void), (*end)(void); /* around all that a thread does at one go */
};

#ifdef VGK_HAVE_BF16
extern const struct vgk_bf16 vgk_bf16_avx512;
#endif
#ifdef VGK_HAVE_AMX
extern const struct vgk_bf16 vgk_bf16_amx;
#endif

struct vgk_device;
/* The product for `channels` numbers that lie together in a: AMX's takes them in 32s, so that few of them are the other's.
 * NULL: the device has none. */
const struct vgk_bf16 *vgk_cpu_bf16(const struct vgk_device *, int64_t channels);

/* Panel width, in vectors, for so many columns. */
static inline int vgk_bf16_vectors(int64_t columns) { return (columns + 15) / 16 % 2 && columns <= 48 ? 1 : 2; }

/* backend.h's bf16. */
enum vgk_status vgk_cpu_bf16_check(const struct vgk_device *, struct vgk_error *);

#endif
