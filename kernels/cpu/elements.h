/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Walking over tensors of any type and strides: what the plain reference and the fast elementwise kernels share.
 *
 * A loop brings several tensors of the same dimensions into the simplest common form: dimensions of 1 go, the others
 * are sorted by the first tensor's strides and merged wherever every tensor allows it.  Two dense tensors of the same
 * order, whatever it is, become one long row. */
#ifndef VGK_CPU_ELEMENTS_H
#define VGK_CPU_ELEMENTS_H

#include "../backend.h"

/* What a type is computed in. */
enum vgk_class { VGK_CLASS_F32 /* f32, f16, bf16 */, VGK_CLASS_F64, VGK_CLASS_I64 /* integers and bool */ };

static inline enum vgk_class vgk_type_class(enum vgk_type type)
{
    return type == VGK_F64 ? VGK_CLASS_F64 : vgk_type_is_float(type) ? VGK_CLASS_F32 : VGK_CLASS_I64;
}

/* The input, or NULL when it is left out. */
static inline const struct vgk_tensor *vgk_input(const struct vgk_op *op, int i)
{
    return i < op->n_in && op->in[i].type != VGK_NONE ? &op->in[i] : NULL;
}

static inline char *vgk_at(const struct vgk_tensor *t, int64_t offset)
{
    return (char *)t->data + offset * (vgk_type_bits(t->type) / 8);
}

/* n elements of t from element `offset` on, `stride` elements apart, converted.  Float to integer truncates towards
 * zero, out of range it ends at the edge of int64 (NaN: 0), then wraps as C's integers do.  To bool: != 0. */
void vgk_load_f32(float *dst, const struct vgk_tensor *t, int64_t offset, int64_t stride, int64_t n);
void vgk_load_f64(double *dst, const struct vgk_tensor *t, int64_t offset, int64_t stride, int64_t n);
void vgk_load_i64(int64_t *dst, const struct vgk_tensor *t, int64_t offset, int64_t stride, int64_t n);
void vgk_store_f32(const float *src, const struct vgk_tensor *t, int64_t offset, int64_t stride, int64_t n);
void vgk_store_f64(const double *src, const struct vgk_tensor *t, int64_t offset, int64_t stride, int64_t n);
void vgk_store_i64(const int64_t *src, const struct vgk_tensor *t, int64_t offset, int64_t stride, int64_t n);

int64_t vgk_f64_to_i64(double v);

#define VGK_LOOP_TENSORS 4
#define VGK_LOOP_CHUNK 1024 /* elements that a loop's function gets at most in one call, unless `chunk` is less */

struct vgk_loop {
    int n, rank; /* tensors; dimensions that are left, at least 1 */
    int64_t chunk;
    int64_t dim[VGK_MAX_RANK];
    int64_t stride[VGK_LOOP_TENSORS][VGK_MAX_RANK];
    int64_t rows; /* product of all dimensions but the last */
};

/* All tensors have t[0]'s dimensions (repeat by stride 0). */
void vgk_loop_init(struct vgk_loop *loop, int n, const struct vgk_tensor *const *t);

/* Calls fn for pieces of rows, spread over the device's threads: `offset` is where the piece starts in each tensor, in
 * elements; the strides along it are loop->stride[i][loop->rank - 1]. */
void vgk_loop_run(struct vgk_device *dev, const struct vgk_loop *loop,
                  void (*fn)(void *arg, const int64_t *offset, int64_t n), void *arg);

/* A cursor over a loop's rows, for those who walk by themselves. */
struct vgk_cursor {
    int64_t index[VGK_MAX_RANK], offset[VGK_LOOP_TENSORS];
};
void vgk_cursor_seek(struct vgk_cursor *cursor, const struct vgk_loop *loop, int64_t row);
void vgk_cursor_next(struct vgk_cursor *cursor, const struct vgk_loop *loop);

/* Runs fn over [0, count) in ranges of `grain`, spread over the device's threads. */
void vgk_ranges_run(struct vgk_device *dev, int64_t count, int64_t grain,
                    void (*fn)(void *arg, int64_t begin, int64_t end, int thread), void *arg);

#endif
