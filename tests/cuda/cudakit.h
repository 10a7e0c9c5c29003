/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For tests of the CUDA backend on the stand-in: an operation on both backends, and what differs. */
#ifndef CUDAKIT_H
#define CUDAKIT_H

#include "kernels/cpu/elements.h"
#include "kernels/cuda_load.h"
#include "kit.h"

/* Bytes from the first to the last element, and the first one's distance from where strides of either sign begin. */
static inline size_t cudakit_span(const struct vgk_tensor *t, int64_t *low)
{
    int64_t high = 0;
    *low = 0;
    if (!vgk_tensor_count(t))
        return 0;
    for (int d = 0; d < t->rank; d++)
        *(t->stride[d] < 0 ? low : &high) += (t->dim[d] - 1) * t->stride[d];
    return (size_t)(high - *low) * (size_t)vgk_type_bits(t->type) / 8 + (size_t)(vgk_type_bits(t->type) + 7) / 8;
}

/* Dimensions in a random order of memory, sometimes with holes between the rows; some with negative strides. */
static inline struct vgk_tensor cudakit_tensor(enum vgk_type type, int rank, const int64_t *dim)
{
    struct vgk_tensor t = {.type = type, .rank = rank};
    int order[VGK_MAX_RANK], way = kit_int(0, 3);
    int64_t step = 1, low;
    for (int d = 0; d < rank; d++) {
        t.dim[d] = dim[d];
        order[d] = d;
    }
    if (way == 0 && rank >= 3) /* channels last */
        for (int d = 1; d < rank; d++)
            order[d] = d == rank - 1 ? 1 : d + 1;
    if (way == 1)
        for (int d = rank - 1; d > 0; d--) {
            int j = kit_int(0, d), x = order[d];
            order[d] = order[j];
            order[j] = x;
        }
    for (int k = rank - 1; k >= 0; k--) {
        int d = order[k];
        t.stride[d] = step;
        step *= dim[d] ? dim[d] : 1;
        if (way == 3 && kit_int(0, 2) == 0)
            step += kit_int(0, 3);
    }
    if (way == 3 && rank && kit_int(0, 3) == 0)
        t.stride[kit_int(0, rank - 1)] *= -1;
    size_t bytes = cudakit_span(&t, &low);
    char *block = malloc(bytes + 1);
    memset(block, 0, bytes + 1);
    t.data = block - low * vgk_type_bits(type) / 8;
    return t;
}

/* Another of the same strides, cleared. */
static inline struct vgk_tensor cudakit_like(const struct vgk_tensor *t)
{
    struct vgk_tensor r = *t;
    int64_t low;
    size_t bytes = cudakit_span(t, &low);
    r.data = (char *)calloc(1, bytes + 1) - low * vgk_type_bits(t->type) / 8;
    return r;
}

static inline int64_t cudakit_offset(const struct vgk_tensor *t, int64_t i)
{
    int64_t at = 0;
    for (int d = t->rank - 1; d >= 0; i /= t->dim[d--])
        at += i % t->dim[d] * t->stride[d];
    return at;
}

static inline void cudakit_set(const struct vgk_tensor *t, int64_t i, double v)
{
    vgk_store_f64(&v, t, cudakit_offset(t, i), 0, 1);
}

static inline double cudakit_get(const struct vgk_tensor *t, int64_t i)
{
    double v;
    vgk_load_f64(&v, t, cudakit_offset(t, i), 0, 1);
    return v;
}

static inline struct vgk_tensor cudakit_random(enum vgk_type type, int rank, const int64_t *dim, double low, double high)
{
    struct vgk_tensor t = cudakit_tensor(type, rank, dim);
    for (int64_t i = 0; i < vgk_tensor_count(&t); i++)
        cudakit_set(&t, i, type == VGK_BOOL ? kit_int(0, 1) : kit_real(low, high));
    return t;
}

static inline void cudakit_free(struct vgk_tensor *t)
{
    int64_t low;
    if (t->type != VGK_NONE && t->data) {
        cudakit_span(t, &low);
        free((char *)t->data + low * vgk_type_bits(t->type) / 8);
    }
    *t = (struct vgk_tensor){VGK_NONE};
}

/* need, pack and run; constants (in[1] of what packs) keep their data on the host for pack.  NULL device: the CPU's. */
static inline enum vgk_status cudakit_run(const struct vgk_backend *backend, struct vgk_device *dev, const struct vgk_op *op,
                                          const struct vgk_op *packing, struct vgk_error *err)
{
    struct vgk_need need;
    enum vgk_status s = backend->need(dev, packing, &need, err);
    if (s)
        return s;
    char *packed = backend->alloc(dev, need.packed), *scratch = backend->alloc(dev, need.scratch);
    if (!packed || !scratch)
        s = vgk_fail(err, VGK_ERR_NOMEM, "no memory");
    if (!s && need.packed)
        s = backend->pack(dev, packing, packed, err);
    if (!s)
        s = (backend->run)(dev, op, packed, scratch, err);
    backend->free(dev, packed);
    backend->free(dev, scratch);
    return s;
}

/* The same operation with all tensors on the device; the result comes back to op->out. */
static inline enum vgk_status cudakit_device(struct vgk_device *dev, const struct vgk_op *op, struct vgk_error *err)
{
    struct vgk_tensor in[VGK_CONV_INPUTS], out = op->out[0];
    char *blocks[VGK_CONV_INPUTS + 1] = {NULL};
    size_t bytes[VGK_CONV_INPUTS + 1];
    struct vgk_op far = *op;
    enum vgk_status s = VGK_OK;
    far.in = in;
    far.out = &out;
    for (int i = 0; i <= op->n_in && !s; i++) {
        struct vgk_tensor *t = i < op->n_in ? &in[i] : &out;
        const struct vgk_tensor *host = i < op->n_in ? &op->in[i] : op->out;
        int64_t low;
        *t = *host;
        if (t->type == VGK_NONE)
            continue;
        bytes[i] = cudakit_span(t, &low);
        blocks[i] = vgk_cuda.alloc(dev, bytes[i]);
        t->data = blocks[i] - low * vgk_type_bits(t->type) / 8;
        s = bytes[i] ? vgk_cuda.upload(dev, (char *)host->data + low * vgk_type_bits(t->type) / 8, blocks[i], bytes[i], err)
                     : VGK_OK;
    }
    if (!s)
        s = cudakit_run(&vgk_cuda, dev, &far, op, err);
    int64_t low;
    cudakit_span(op->out, &low);
    if (!s && bytes[op->n_in])
        s = vgk_cuda.download(dev, blocks[op->n_in], (char *)op->out->data + low * vgk_type_bits(out.type) / 8,
                              bytes[op->n_in], err);
    for (int i = 0; i <= op->n_in; i++)
        vgk_cuda.free(dev, blocks[i]);
    return s;
}

#endif
