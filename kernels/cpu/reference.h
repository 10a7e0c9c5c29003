/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The plain-C reference, file by file.  A function that may fail at run time says so by its status; the others cannot.
 * scratch is as reference.c's need told: see there. */
#ifndef VGK_CPU_REFERENCE_H
#define VGK_CPU_REFERENCE_H

#include "cpu.h"
#include "elements.h"

/* reference_pointwise.c */
void vgk_ref_copy(struct vgk_device *, const struct vgk_tensor *src, const struct vgk_tensor *dst);
void vgk_ref_unary(struct vgk_device *, const struct vgk_op *);
void vgk_ref_binary(struct vgk_device *, const struct vgk_op *);
void vgk_ref_where(struct vgk_device *, const struct vgk_op *);
void vgk_ref_range(struct vgk_device *, const struct vgk_op *);
double vgk_ref_act(enum vgk_act, double alpha, double beta, double slope, double x);
bool vgk_ref_unary_knows(const struct vgk_op *); /* false: not for this type */

/* reference_conv.c: conv, transposed conv, pool, matmul */
bool vgk_ref_conv_need(struct vgk_device *, const struct vgk_op *, struct vgk_need *); /* false: too large */
void vgk_ref_conv_pack(const struct vgk_op *, double *packed);
void vgk_ref_conv(struct vgk_device *, const struct vgk_op *, const double *packed, double *scratch);
void vgk_ref_pool(struct vgk_device *, const struct vgk_op *);
void vgk_ref_matmul(struct vgk_device *, const struct vgk_op *);

/* reference_move.c */
bool vgk_ref_resize_scratch(const struct vgk_op *, size_t *bytes);
void vgk_ref_resize(struct vgk_device *, const struct vgk_op *, void *scratch);
bool vgk_ref_pad_scratch(const struct vgk_op *, size_t *bytes);
void vgk_ref_pad(struct vgk_device *, const struct vgk_op *, void *scratch);
enum vgk_status vgk_ref_gather(struct vgk_device *, const struct vgk_op *, struct vgk_error *);
/* Where index i of an axis padded by `begin` and `end` comes from: -1 = beyond, in constant mode. */
int64_t vgk_pad_source(enum vgk_pad_mode, int64_t size, int64_t begin, int64_t end, int64_t i);

/* reference_reduce.c */
void vgk_ref_reduce(struct vgk_device *, const struct vgk_op *);
void vgk_ref_norm(struct vgk_device *, const struct vgk_op *);
void vgk_ref_softmax(struct vgk_device *, const struct vgk_op *);

/* reference_norm.c */
void vgk_ref_moments(struct vgk_device *, const struct vgk_op *);
void vgk_ref_normalise(struct vgk_device *, const struct vgk_op *);

/* reference_index.c */
enum vgk_status vgk_ref_take(struct vgk_device *, const struct vgk_op *, struct vgk_error *);
enum vgk_status vgk_ref_scatter(struct vgk_device *, const struct vgk_op *, struct vgk_error *);

/* reference_sample.c, reference_quantize.c (both ways), reference_attention.c */
void vgk_ref_sample(struct vgk_device *, const struct vgk_op *);
void vgk_ref_quantize(struct vgk_device *, const struct vgk_op *);
bool vgk_ref_attention_scratch(struct vgk_device *, const struct vgk_op *, size_t *bytes);
void vgk_ref_attention(struct vgk_device *, const struct vgk_op *, double *scratch);

#endif
