/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pooling, resizing, padding, sampling: an output element comes from other places of the input.  A thread has eight
 * elements along the output's dense dimension, which for images is the channels: then their places are the same. */
#include "elements.h"

#define VGK_SHARED __device__
#include "../cpu/sample_taps.c"
extern "C" {
#include "../cpu/resize_taps.h"
}

#define S VGK_MAX_SPATIAL
#define LAUNCH_WALK(kernel, ...) \
    CU_LAUNCH(kernel, cu_blocks(w.total, CU_THREADS), dim3(CU_THREADS), 0, stream, a, w, ##__VA_ARGS__)

/* --- pool --- */

template <class D> __global__ void __launch_bounds__(CU_THREADS, 1) pool_kernel(struct cu_args a, struct cu_walk w)
{
    const struct vgk_pool &p = a.op.p.pool;
    const struct vgk_tensor &x = a.x[0], &y = a.y;
    int64_t o[VGK_MAX_RANK], taps = 1;
    const int n = cu_place(w, o), axis = w.axis[w.rank - 1];
    for (int d = 0; d < p.spatial; d++)
        taps *= p.kernel[d];
    /* Channels together, or one place after the other; in double, which has no registers for eight, always so. */
    constexpr int most = sizeof(D) == sizeof(float) ? CU_PIECE : 1;
    const int together = axis == 1 && most > 1 ? n : 1;
    for (int first = 0; first < n; first += together, o[axis] += together) {
        D r[CU_PIECE], v[CU_PIECE];
        int64_t count = 0;
        for (int i = 0; i < most; i++)
            r[i] = p.max ? -INFINITY : 0;
        for (int64_t tap = 0; tap < taps; tap++) {
            int64_t rest = tap, at = o[0] * x.stride[0] + o[1] * x.stride[1];
            bool inside = true, padded = true; /* what ceil_mode adds lies beyond the padding */
            for (int d = p.spatial - 1; d >= 0; d--) {
                int64_t i = o[2 + d] * p.stride[d] + rest % p.kernel[d] * p.dilation[d] - p.pad_begin[d];
                rest /= p.kernel[d];
                inside &= i >= 0 && i < x.dim[2 + d];
                padded &= i < x.dim[2 + d] + p.pad_end[d];
                at += i * x.stride[2 + d];
            }
            count += inside || (p.count_include_pad && padded);
            if (!inside)
                continue;
            cu_load_piece<D>(v, x, at, x.stride[1], together);
            for (int i = 0; i < most; i++)
                if (i < together)
                    r[i] = !p.max ? r[i] + v[i] : v[i] > r[i] || v[i] != v[i] ? v[i] : r[i];
        }
        for (int i = 0; i < most; i++)
            r[i] = p.max ? r[i] : count ? r[i] / (D)count : 0;
        cu_store_piece<D>(r, y, cu_offset(y, o), y.stride[1], together);
    }
}

cudaError_t vgk_cu_pool(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_walk w = cu_walk_of(&a.y);
    if (!w.total)
        return cudaSuccess;
    return vgk_type_class(a.y.type) == VGK_CLASS_F32 ? LAUNCH_WALK(pool_kernel<float>) : LAUNCH_WALK(pool_kernel<double>);
}

/* --- resize --- */

struct cu_taps {
    int taps[VGK_MAX_RANK];
    const int32_t *index[VGK_MAX_RANK]; /* [whole out][taps] */
    const float *weight[VGK_MAX_RANK];
};

/* The table's entry for tap t of output index o on axis d; *w = 0: does not count. */
__device__ static inline int64_t resize_tap(const struct cu_args &a, const struct cu_taps &t, int d, int64_t o, int k,
                                            float *w)
{
    int64_t at = (o + a.op.p.resize.out_begin[d]) * t.taps[d] + k;
    *w = t.weight[d][at];
    return t.index[d][at] - a.op.p.resize.in_begin[d];
}

template <class T> __global__ void __launch_bounds__(CU_THREADS) nearest_kernel(struct cu_args a, struct cu_walk w, struct cu_taps t)
{
    const struct vgk_tensor &x = a.x[0], &y = a.y;
    int64_t o[VGK_MAX_RANK];
    int n = cu_place(w, o);
    float weight;
    for (int i = 0; i < n; i++, o[w.axis[w.rank - 1]]++) {
        int64_t from = 0;
        for (int d = 0; d < x.rank; d++)
            from += resize_tap(a, t, d, o[d], 0, &weight) * x.stride[d];
        ((T *)y.data)[cu_offset(y, o)] = ((const T *)x.data)[from];
    }
}

__global__ void __launch_bounds__(CU_THREADS) resize_kernel(struct cu_args a, struct cu_walk w, struct cu_taps t)
{
    const struct vgk_tensor &x = a.x[0], &y = a.y;
    int64_t o[VGK_MAX_RANK];
    const int n = cu_place(w, o), axis = w.axis[w.rank - 1];
    if (!n)
        return;
    /* Together when this axis is not resized: the places along it are the same. */
    const int together = t.taps[axis] == 1 && x.dim[axis] == y.dim[axis] ? n : 1;
    int64_t combinations = 1;
    for (int d = 0; d < x.rank; d++)
        combinations *= t.taps[d];
    for (int first = 0; first < n; first += together, o[axis] += together) {
        float sum[CU_PIECE] = {0}, v[CU_PIECE];
        for (int64_t k = 0; k < combinations; k++) {
            int64_t rest = k, from = 0;
            float weight = 1, one;
            for (int d = x.rank - 1; d >= 0; d--) {
                from += resize_tap(a, t, d, o[d], (int)(rest % t.taps[d]), &one) * x.stride[d];
                weight = t.taps[d] == 1 ? weight : weight * one;
                rest /= t.taps[d];
            }
            if (weight == 0)
                continue; /* what does not count may be infinite */
            cu_load_piece<float>(v, x, from, x.stride[axis], together);
            for (int i = 0; i < together; i++)
                sum[i] = combinations == 1 ? v[i] : fmaf(weight, v[i], sum[i]);
        }
        if (cu_is_whole(y.type))
            for (int i = 0; i < together; i++)
                sum[i] = rintf(sum[i]);
        cu_store_piece<float>(sum, y, cu_offset(y, o), y.stride[axis], together);
    }
}

cudaError_t vgk_cu_resize(const struct vgk_op *op, const void *tables, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_walk w = cu_walk_of(&a.y);
    struct cu_taps t;
    const char *at = (const char *)tables;
    if (!w.total)
        return cudaSuccess;
    memset(&t, 0, sizeof t);
    for (int d = 0; d < a.y.rank; d++) {
        int64_t in = op->p.resize.in_size[d] ? op->p.resize.in_size[d] : a.x[0].dim[d],
                out = op->p.resize.out_size[d] ? op->p.resize.out_size[d] : a.y.dim[d];
        t.taps[d] = vgk_resize_taps(&op->p.resize, d, in, out);
        t.index[d] = (const int32_t *)at;
        at += out * t.taps[d] * (int64_t)sizeof(int32_t);
        t.weight[d] = (const float *)at;
        at += out * t.taps[d] * (int64_t)sizeof(float);
    }
    if (op->p.resize.mode != VGK_NEAREST)
        return LAUNCH_WALK(resize_kernel, t);
    switch (vgk_type_bits(a.y.type)) {
    case 8: return LAUNCH_WALK(nearest_kernel<uint8_t>, t);
    case 16: return LAUNCH_WALK(nearest_kernel<uint16_t>, t);
    case 32: return LAUNCH_WALK(nearest_kernel<uint32_t>, t);
    default: return LAUNCH_WALK(nearest_kernel<uint64_t>, t);
    }
}

/* --- pad --- */

template <class T> __global__ void __launch_bounds__(CU_THREADS) pad_kernel(struct cu_args a, struct cu_walk w)
{
    const struct vgk_pad &p = a.op.p.pad;
    const struct vgk_tensor &x = a.x[0], &y = a.y;
    int64_t o[VGK_MAX_RANK], from = 0;
    const int n = cu_place(w, o), axis = w.rank ? w.axis[w.rank - 1] : 0;
    bool beyond = false;
    for (int d = 0; d < x.rank && n; d++) {
        if (d == axis)
            continue;
        int64_t i = cu_pad_source(p.mode, x.dim[d], p.begin[d], p.end[d], o[d]);
        beyond |= i < 0;
        from += i * x.stride[d];
    }
    T constant = 0;
    if (n && a.x[1].type != VGK_NONE) {
        struct vgk_tensor one = y;
        one.data = &constant;
        cu_store(one, 0, cu_load<double>(a.x[1], 0));
    }
    int64_t to = n ? cu_offset(y, o) : 0;
    for (int k = 0; k < n; k++) {
        int64_t i = x.rank ? cu_pad_source(p.mode, x.dim[axis], p.begin[axis], p.end[axis], o[axis] + k) : 0;
        ((T *)y.data)[to + (x.rank ? k * y.stride[axis] : 0)] =
            beyond || i < 0 ? constant : ((const T *)x.data)[from + (x.rank ? i * x.stride[axis] : 0)];
    }
}

cudaError_t vgk_cu_pad(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_walk w = cu_walk_of(&a.y);
    if (!w.total)
        return cudaSuccess;
    switch (vgk_type_bits(a.y.type)) {
    case 8: return LAUNCH_WALK(pad_kernel<uint8_t>);
    case 16: return LAUNCH_WALK(pad_kernel<uint16_t>);
    case 32: return LAUNCH_WALK(pad_kernel<uint32_t>);
    default: return LAUNCH_WALK(pad_kernel<uint64_t>);
    }
}

/* --- sample --- */

__global__ void __launch_bounds__(CU_THREADS, 1) sample_kernel(struct cu_args a, struct cu_walk w)
{
    const struct vgk_tensor &x = a.x[0], &grid = a.x[1], &y = a.y;
    const int spatial = y.rank - 2;
    int64_t o[VGK_MAX_RANK];
    const int n = cu_place(w, o), axis = w.axis[w.rank - 1];
    const int together = axis == 1 ? n : 1;
    for (int first = 0; first < n; first += together, o[axis] += together) {
        struct vgk_taps taps[S];
        int64_t at = o[0] * grid.stride[0], total = 1;
        for (int d = 0; d < spatial; d++)
            at += o[2 + d] * grid.stride[1 + d];
        for (int d = 0; d < spatial; d++) {
            double g = cu_load<double>(grid, at + (spatial - 1 - d) * grid.stride[grid.rank - 1]);
            vgk_sample_taps(&a.op.p.sample, g, o[2 + d], x.dim[2 + d], &taps[d]);
            total *= taps[d].n;
        }
        float sum[CU_PIECE] = {0}, v[CU_PIECE];
        for (int64_t k = 0; k < total; k++) {
            int64_t r = k, from = o[0] * x.stride[0] + o[1] * x.stride[1];
            double weight = 1;
            for (int d = spatial - 1; d >= 0; r /= taps[d--].n) {
                weight *= taps[d].weight[r % taps[d].n];
                from += taps[d].index[r % taps[d].n] * x.stride[2 + d];
            }
            if (weight == 0)
                continue; /* what does not count may be infinite */
            cu_load_piece<float>(v, x, from, x.stride[1], together);
            for (int i = 0; i < together; i++)
                sum[i] = fmaf((float)weight, v[i], sum[i]);
        }
        cu_store_piece<float>(sum, y, cu_offset(y, o), y.stride[1], together);
    }
}

cudaError_t vgk_cu_sample(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_walk w = cu_walk_of(&a.y);
    return w.total ? LAUNCH_WALK(sample_kernel) : cudaSuccess;
}
