/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Constant weights in the type that the model stores them in.
 *
 * Packed for the register blocks of micro.h they stay in that type, in panels of nr columns; a panel is converted to f32
 * in a thread's scratch right before its products, once for many rows of the other operand.  It is then in the second
 * cache and the same floats as if the model had stored f32: the result's bits are the same. */
#ifndef VGK_CPU_WEIGHTS_H
#define VGK_CPU_WEIGHTS_H

#include "elements.h"

/* n weights of op.in[1] as they are meant, from the one at `index` (one number a dimension) on along a dimension. */
void vgk_weights_f32(const struct vgk_op *, const int64_t *index, int along, float *to, int64_t n);
void vgk_weights_f64(const struct vgk_op *, const int64_t *index, int along, double *to, int64_t n);

/* A matrix of weights [depth][columns] in panels.  A panel: depth rows of nr elements (4-bit types: pairs of rows, the
 * upper one in the low halves of the bytes), then [depth / block][nr] scales in f32 and as many zero points, a byte
 * each. */
struct vgk_panels {
    enum vgk_type type; /* F32, F16, BF16, I8, U8, I4, U4 */
    int nr;
    int64_t depth, block; /* rows that share a scale and a zero point; 0 = there are none */
    bool zero;
    size_t scales, zeros, bytes; /* of a panel: where they begin, and its size */
};

/* False when weights of this type cannot be kept so, or sizes overflow. */
bool vgk_panels_init(struct vgk_panels *, enum vgk_type, int64_t depth, int nr, int64_t block, bool zero);

/* The row of a panel from nr numbers in f32 as they are stored; and the scale and zero point of a block of rows. */
void vgk_panel_set(const struct vgk_panels *, void *panel, int64_t row, const float *stored);
void vgk_panel_set_block(const struct vgk_panels *, void *panel, int64_t block, const float *scale, const float *zero);

/* By instruction set: a panel as [depth][nr] floats; n floats to bf16, rounded to nearest even. */
typedef void vgk_unpack_fn(const struct vgk_panels *, const void *panel, float *to);
extern const struct vgk_weights_kernels {
    vgk_unpack_fn *unpack;
    void (*to_bf16)(const float *from, int64_t n, uint16_t *to);
} vgk_weights_generic;
#ifdef __x86_64__
extern const struct vgk_weights_kernels vgk_weights_avx2, vgk_weights_avx512;
#endif

#endif
