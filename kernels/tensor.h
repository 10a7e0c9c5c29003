/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A tensor: type, dimensions, strides, data.  A view; it owns nothing.
 *
 * Dimensions are always in ONNX order (an image is [N,C,H,W]); strides tell how the bytes lie.  Images are stored
 * channels-last, so an image's C has stride 1 and its W has stride C.  A stride of 0 repeats (broadcast). */
#ifndef VGK_TENSOR_H
#define VGK_TENSOR_H

#include "base.h"

#define VGK_MAX_RANK 8

enum vgk_type {
    VGK_NONE, /* an input that is left out */
    VGK_F32,
    VGK_F16,
    VGK_BF16,
    VGK_F64,
    VGK_BOOL, /* one byte, 0 or 1 */
    VGK_U8,
    VGK_I8,
    VGK_U16,
    VGK_I16,
    VGK_U32,
    VGK_I32,
    VGK_U64,
    VGK_I64,
    VGK_U4, /* two a byte, the low half first; only in weights, only dense */
    VGK_I4,
};

struct vgk_tensor {
    enum vgk_type type;
    int rank;                   /* 0 = scalar */
    int64_t dim[VGK_MAX_RANK];
    int64_t stride[VGK_MAX_RANK]; /* in elements, may be 0 or negative */
    void *data;
};

enum vgk_order {
    VGK_ROW_MAJOR,     /* the last dimension is contiguous */
    VGK_CHANNELS_LAST, /* [N,C,spatial...] with C contiguous; rank >= 3 */
};

/* Bits of one element (4 for the int4 types), and its name ("f32"). */
int vgk_type_bits(enum vgk_type type);
const char *vgk_type_name(enum vgk_type type);
bool vgk_type_is_float(enum vgk_type type); /* F32, F16, BF16, F64 */

/* A dense tensor; data is set to NULL. */
struct vgk_tensor vgk_tensor_make(enum vgk_type type, int rank, const int64_t *dim, enum vgk_order order);

/* Number of elements (1 for a scalar).  Dimensions are taken to be checked: see vgk_tensor_bytes. */
int64_t vgk_tensor_count(const struct vgk_tensor *t);

/* Bytes that a dense tensor of this type and dimensions takes; false when that overflows or a dimension is
 * negative. */
bool vgk_tensor_bytes(const struct vgk_tensor *t, size_t *bytes);

/* The same value everywhere: one that is stored once. */
bool vgk_tensor_is_one_value(const struct vgk_tensor *t);

/* True when the elements lie without holes in the given order. */
bool vgk_tensor_is_dense(const struct vgk_tensor *t, enum vgk_order order);

/* "f32[1,3,360,640]" into text; returns text. */
char *vgk_tensor_describe(const struct vgk_tensor *t, char *text, size_t size);

/* The same elements under another view.  All return a tensor that shares data. */
struct vgk_tensor vgk_tensor_permute(const struct vgk_tensor *t, const int *perm);
/* begin and step may be negative as in ONNX after clamping: begin is a valid index, count elements are taken. */
struct vgk_tensor vgk_tensor_slice(const struct vgk_tensor *t, int axis, int64_t begin, int64_t count, int64_t step);
/* Dimensions of 1, or missing on the left, become dim with stride 0.  False when they cannot be broadcast. */
bool vgk_tensor_broadcast(const struct vgk_tensor *t, int rank, const int64_t *dim, struct vgk_tensor *out);
/* The same elements in the same (row-major) order under other dimensions without a copy; false when the strides
 * do not allow it. */
bool vgk_tensor_reshape(const struct vgk_tensor *t, int rank, const int64_t *dim, struct vgk_tensor *out);

#endif
