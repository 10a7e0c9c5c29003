/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files: elements of any type to and from registers, eight at a time where they lie side by side, and how
 * threads find theirs.  Conversions are those of kernels/cpu/elements.h. */
#ifndef VGK_CUDA_ELEMENTS_H
#define VGK_CUDA_ELEMENTS_H

#include "compat.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels.h"
extern "C" {
#include "../cpu/elements.h"
}

/* Kernels that want many registers say __launch_bounds__(CU_THREADS, 1): left to itself ptxas keeps to 64 for the sake
 * of occupancy, and spills some bytes on one capability or another. */
#define CU_THREADS 128
#define CU_PIECE 8 /* elements of a thread */

/* An operation with its tensors, as a kernel's parameter: op.in and op.out are host addresses there. */
struct cu_args {
    struct vgk_op op;
    struct vgk_tensor y, x[VGK_CONV_INPUTS]; /* type NONE: left out */
};

static inline struct cu_args cu_args_of(const struct vgk_op *op)
{
    struct cu_args a;
    memset(&a, 0, sizeof a);
    a.op = *op;
    a.y = op->out[0];
    for (int i = 0; i < op->n_in && i < VGK_CONV_INPUTS; i++)
        a.x[i] = op->in[i];
    return a;
}

static inline dim3 cu_blocks(int64_t n, int64_t each) { return dim3((unsigned)((n + each - 1) / each)); }

/* A block that adds up n elements as a tree: a power of two, a warp at least. */
static inline dim3 cu_tree(int64_t n)
{
    unsigned threads = 32;
    while (threads < CU_THREADS && threads < n)
        threads *= 2;
    return dim3(threads);
}

__device__ static inline bool cu_is_float(enum vgk_type t) { return t == VGK_F32 || t == VGK_F16 || t == VGK_BF16; }
__device__ static inline bool cu_is_whole(enum vgk_type t) { return !cu_is_float(t) && t != VGK_F64; }

/* --- one element --- */

__device__ static inline int64_t cu_to_i64(double v)
{
    return v != v ? 0 : v >= 9223372036854775808.0 ? INT64_MAX : v <= -9223372036854775808.0 ? INT64_MIN : (int64_t)v;
}

template <class D> struct cu_as { /* from a float */
    template <class F> __device__ static inline D get(F v) { return (D)v; }
};
template <> struct cu_as<int64_t> {
    template <class F> __device__ static inline int64_t get(F v) { return cu_to_i64((double)v); }
};

__device__ static inline float cu_bf16(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* Rounds to even; a carry runs into the exponent. */
__device__ static inline uint16_t cu_to_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    if (f != f)
        return (uint16_t)(u >> 16 | 64);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

__device__ static inline half cu_to_half(float v) { return __float2half_rn(v); }
__device__ static inline half cu_to_half(double v) { return __double2half(v); }
__device__ static inline half cu_to_half(int64_t v) { return __double2half((double)v); }

template <class D> __device__ static inline D cu_load(const struct vgk_tensor &t, int64_t at)
{
    const void *p = t.data;
    switch (t.type) {
    case VGK_F32: return cu_as<D>::get(((const float *)p)[at]);
    case VGK_F16: return cu_as<D>::get(__half2float(((const half *)p)[at]));
    case VGK_BF16: return cu_as<D>::get(cu_bf16(((const uint16_t *)p)[at]));
    case VGK_F64: return cu_as<D>::get(((const double *)p)[at]);
    case VGK_BOOL: case VGK_U8: return (D)((const uint8_t *)p)[at];
    case VGK_I8: return (D)((const int8_t *)p)[at];
    case VGK_U16: return (D)((const uint16_t *)p)[at];
    case VGK_I16: return (D)((const int16_t *)p)[at];
    case VGK_U32: return (D)((const uint32_t *)p)[at];
    case VGK_I32: return (D)((const int32_t *)p)[at];
    case VGK_U64: return (D)((const uint64_t *)p)[at];
    case VGK_I64: return (D)((const int64_t *)p)[at];
    case VGK_U4: case VGK_I4: {
        int nibble = ((const uint8_t *)p)[at >> 1] >> (at & 1) * 4 & 15;
        return (D)(t.type == VGK_I4 ? (nibble ^ 8) - 8 : nibble);
    }
    case VGK_NONE: break;
    }
    return (D)0;
}

__device__ static inline int64_t cu_whole(float v) { return cu_to_i64((double)v); }
__device__ static inline int64_t cu_whole(double v) { return cu_to_i64(v); }
__device__ static inline int64_t cu_whole(int64_t v) { return v; }
__device__ static inline uint64_t cu_natural(double v)
{
    return v >= 18446744073709551616.0  ? UINT64_MAX
           : v >= 9223372036854775808.0 ? (uint64_t)v
                                        : (uint64_t)cu_to_i64(v);
}
__device__ static inline uint64_t cu_natural(float v) { return cu_natural((double)v); }
__device__ static inline uint64_t cu_natural(int64_t v) { return (uint64_t)v; }

template <class D> __device__ static inline void cu_store(const struct vgk_tensor &t, int64_t at, D v)
{
    void *p = t.data;
    switch (t.type) {
    case VGK_F32: ((float *)p)[at] = (float)v; break;
    case VGK_F16: ((half *)p)[at] = cu_to_half(v); break;
    case VGK_BF16: ((uint16_t *)p)[at] = cu_to_bf16((float)v); break;
    case VGK_F64: ((double *)p)[at] = (double)v; break;
    case VGK_BOOL: ((uint8_t *)p)[at] = v != 0; break;
    case VGK_U8: ((uint8_t *)p)[at] = (uint8_t)cu_whole(v); break;
    case VGK_I8: ((int8_t *)p)[at] = (int8_t)cu_whole(v); break;
    case VGK_U16: ((uint16_t *)p)[at] = (uint16_t)cu_whole(v); break;
    case VGK_I16: ((int16_t *)p)[at] = (int16_t)cu_whole(v); break;
    case VGK_U32: ((uint32_t *)p)[at] = (uint32_t)cu_whole(v); break;
    case VGK_I32: ((int32_t *)p)[at] = (int32_t)cu_whole(v); break;
    case VGK_U64: ((uint64_t *)p)[at] = cu_natural(v); break;
    case VGK_I64: ((int64_t *)p)[at] = cu_whole(v); break;
    case VGK_U4: case VGK_I4: case VGK_NONE: break;
    }
}

/* --- a piece: n <= 8 elements, `step` apart; the general way is a loop, or eight switches over types lie side by side --- */

__device__ static inline bool cu_aligned(const void *p) { return ((uintptr_t)p & 15) == 0; }

template <class D>
__device__ static inline void cu_load_piece(D v[CU_PIECE], const struct vgk_tensor &t, int64_t at, int64_t step, int n)
{
#pragma unroll 1
    for (int i = 0; i < n; i++)
        v[i] = cu_load<D>(t, at + i * step);
}

template <>
__device__ inline void cu_load_piece<float>(float v[CU_PIECE], const struct vgk_tensor &t, int64_t at, int64_t step,
                                            int n)
{
    if (step == 1 && n == CU_PIECE && t.type == VGK_F16 && cu_aligned((const half *)t.data + at)) {
        uint4 u = *(const uint4 *)((const half *)t.data + at);
        half2 h[4];
        memcpy(h, &u, sizeof h);
        for (int i = 0; i < 4; i++) {
            float2 f = __half22float2(h[i]);
            v[2 * i] = f.x;
            v[2 * i + 1] = f.y;
        }
    } else if (step == 1 && n == CU_PIECE && t.type == VGK_F32 && cu_aligned((const float *)t.data + at)) {
        const float4 *p = (const float4 *)((const float *)t.data + at);
        float4 a = p[0], b = p[1];
        v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
        v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
    } else {
#pragma unroll 1
        for (int i = 0; i < n; i++)
            v[i] = cu_load<float>(t, at + i * step);
    }
}

template <class D>
__device__ static inline void cu_store_piece(const D v[CU_PIECE], const struct vgk_tensor &t, int64_t at, int64_t step,
                                             int n)
{
#pragma unroll 1
    for (int i = 0; i < n; i++)
        cu_store(t, at + i * step, v[i]);
}

template <>
__device__ inline void cu_store_piece<float>(const float v[CU_PIECE], const struct vgk_tensor &t, int64_t at,
                                             int64_t step, int n)
{
    if (step == 1 && n == CU_PIECE && t.type == VGK_F16 && cu_aligned((const half *)t.data + at)) {
        half2 h[4];
        uint4 u;
        for (int i = 0; i < 4; i++)
            h[i] = __floats2half2_rn(v[2 * i], v[2 * i + 1]);
        memcpy(&u, h, sizeof u);
        *(uint4 *)((half *)t.data + at) = u;
    } else if (step == 1 && n == CU_PIECE && t.type == VGK_F32 && cu_aligned((const float *)t.data + at)) {
        float4 *p = (float4 *)((float *)t.data + at);
        p[0] = make_float4(v[0], v[1], v[2], v[3]);
        p[1] = make_float4(v[4], v[5], v[6], v[7]);
    } else {
#pragma unroll 1
        for (int i = 0; i < n; i++)
            cu_store(t, at + i * step, v[i]);
    }
}

/* --- places --- */

/* The output's dimensions in the order of its memory, the densest last: a thread has a piece along that one. */
struct cu_walk {
    int rank, axis[VGK_MAX_RANK]; /* axis[rank - 1]: along the pieces; -1 where there is none */
    int64_t dim[VGK_MAX_RANK];
    int64_t pieces, total; /* of a row, of all */
};

static inline struct cu_walk cu_walk_of(const struct vgk_tensor *t)
{
    struct cu_walk w;
    memset(&w, 0, sizeof w);
    for (int d = 0; d < t->rank; d++) {
        int at = w.rank++;
        for (; at > 0 && t->stride[w.axis[at - 1]] < t->stride[d]; at--)
            w.axis[at] = w.axis[at - 1];
        w.axis[at] = d;
    }
    for (int k = 0; k < w.rank; k++) /* dimensions of 1 to the front: none of them is the dense one */
        if (t->dim[w.axis[k]] == 1) {
            int d = w.axis[k];
            for (int j = k; j > 0; j--)
                w.axis[j] = w.axis[j - 1];
            w.axis[0] = d;
        }
    w.total = 1;
    for (int k = 0; k < w.rank; k++) {
        w.dim[k] = t->dim[w.axis[k]];
        w.total *= k < w.rank - 1 ? w.dim[k] : 1;
    }
    w.pieces = w.rank ? (w.dim[w.rank - 1] + CU_PIECE - 1) / CU_PIECE : 1;
    w.total *= w.pieces;
    return w;
}

/* This thread's place: o[] by axis, o[last axis] the piece's first; its elements, 0 = none. */
__device__ static inline int cu_place(const struct cu_walk &w, int64_t *o)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= w.total)
        return 0;
    if (!w.rank)
        return 1;
    int64_t first = i % w.pieces * CU_PIECE, n = w.dim[w.rank - 1] - first;
    i /= w.pieces;
    o[w.axis[w.rank - 1]] = first;
    for (int k = w.rank - 2; k >= 0; k--) {
        o[w.axis[k]] = i % w.dim[k];
        i /= w.dim[k];
    }
    return n < CU_PIECE ? (int)n : CU_PIECE;
}

__device__ static inline int64_t cu_offset(const struct vgk_tensor &t, const int64_t *o)
{
    int64_t at = 0;
    for (int d = 0; d < t.rank; d++)
        at += o[d] * t.stride[d];
    return at;
}

/* Where index i of an axis padded by begin and end comes from, -1 = beyond: vgk_pad_source. */
__device__ static inline int64_t cu_pad_source(enum vgk_pad_mode mode, int64_t size, int64_t begin, int64_t end, int64_t i)
{
    int64_t low = begin < 0 ? -begin : 0, n = size - low + (end < 0 ? end : 0);
    i -= begin > 0 ? begin : 0;
    if (i >= 0 && i < n)
        return low + i;
    if (n <= 0 || mode == VGK_PAD_CONSTANT)
        return -1;
    if (mode == VGK_PAD_EDGE)
        return low + (i < 0 ? 0 : n - 1);
    if (mode == VGK_PAD_WRAP)
        return low + (i % n + n) % n;
    if (n == 1)
        return low;
    int64_t period = 2 * (n - 1);
    i = (i % period + period) % period;
    return low + (i < n ? i : period - i);
}

__device__ static inline float cu_sigmoid(float x)
{
    float e = expf(-fabsf(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

__device__ static inline float cu_act(enum vgk_act act, float alpha, float beta, float slope, float x)
{
    switch (act) {
    case VGK_ACT_NONE: return x;
    case VGK_ACT_RELU: return x < 0 ? 0 : x;
    case VGK_ACT_LEAKY_RELU: return x < 0 ? alpha * x : x;
    case VGK_ACT_PRELU: return x < 0 ? slope * x : x;
    case VGK_ACT_CLIP:
        x = x < alpha ? alpha : x;
        return x > beta ? beta : x;
    case VGK_ACT_SIGMOID: return cu_sigmoid(x);
    case VGK_ACT_TANH: return tanhf(x);
    case VGK_ACT_SILU: return x == -INFINITY ? 0 : x * cu_sigmoid(x);
    default: return x;
    }
}

#endif
