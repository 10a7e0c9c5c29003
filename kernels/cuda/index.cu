/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gather, take, scatter, range: elements at places that a tensor of indices names.  An index that lies outside is told
 * in the flags and reads as the first element: the frame is an error then. */
#include "elements.h"

__device__ static inline int64_t index_of(int64_t i, int64_t size, struct vgk_cu_flags *flags)
{
    if (i < -size || i >= size) {
        flags->bad_index = 1;
        return 0;
    }
    return i < 0 ? i + size : i;
}

template <class T>
__global__ void __launch_bounds__(CU_THREADS, 1) gather_kernel(struct cu_args a, struct cu_walk w, struct vgk_cu_flags *flags)
{
    const struct vgk_tensor &x = a.x[0], &indices = a.x[1], &y = a.y;
    const int axis = a.op.p.gather.axis;
    int64_t o[VGK_MAX_RANK];
    int n = cu_place(w, o);
    for (int k = 0; k < n; k++) {
        int64_t at = 0, from = 0;
        for (int d = 0; d < indices.rank; d++)
            at += o[axis + d] * indices.stride[d];
        for (int d = 0; d < x.rank; d++)
            from += d < axis ? o[d] * x.stride[d] : d > axis ? o[d - 1 + indices.rank] * x.stride[d] : 0;
        from += index_of(cu_load<int64_t>(indices, at), x.dim[axis], flags) * x.stride[axis];
        ((T *)y.data)[cu_offset(y, o)] = ((const T *)x.data)[from];
        if (w.rank)
            o[w.axis[w.rank - 1]]++;
    }
}

/* What the indices of element o add to its place in `of`. */
__device__ static inline int64_t walk_offset(const struct cu_args &a, const struct vgk_tensor &of, int rank, const int64_t *o,
                                             struct vgk_cu_flags *flags)
{
    const struct vgk_index &p = a.op.p.index;
    const struct vgk_tensor &indices = a.x[1];
    int64_t at = 0, to = 0;
    for (int d = 0; d < rank; d++) {
        at += o[d] * indices.stride[d];
        to += p.walk[d] >= 0 ? o[d] * of.stride[p.walk[d]] : 0;
    }
    for (int k = 0; k < p.n; k++)
        to += index_of(cu_load<int64_t>(indices, at + k * indices.stride[rank]), of.dim[p.axis[k]], flags) *
              of.stride[p.axis[k]];
    return to;
}

template <class T>
__global__ void __launch_bounds__(CU_THREADS) take_kernel(struct cu_args a, struct cu_walk w, struct vgk_cu_flags *flags)
{
    int64_t o[VGK_MAX_RANK];
    int n = cu_place(w, o);
    for (int k = 0; k < n; k++) {
        int64_t from = walk_offset(a, a.x[0], a.y.rank, o, flags);
        ((T *)a.y.data)[cu_offset(a.y, o)] = ((const T *)a.x[0].data)[from];
        if (w.rank)
            o[w.axis[w.rank - 1]]++;
    }
}

/* One thread: where indices repeat, the order of the updates decides. */
__global__ void scatter_kernel(struct cu_args a, struct vgk_cu_flags *flags)
{
    const struct vgk_tensor &u = a.x[2], &y = a.y;
    const enum vgk_scatter reduce = a.op.p.index.reduce;
    int64_t total = 1, o[VGK_MAX_RANK];
    for (int d = 0; d < u.rank; d++)
        total *= u.dim[d];
    for (int64_t i = 0; i < total; i++) {
        int64_t rest = i;
        for (int d = u.rank - 1; d >= 0; d--) {
            o[d] = rest % u.dim[d];
            rest /= u.dim[d];
        }
        int64_t to = walk_offset(a, y, u.rank, o, flags), from = cu_offset(u, o);
        if (cu_is_whole(y.type)) {
            int64_t v = cu_load<int64_t>(y, to), b = cu_load<int64_t>(u, from);
            v = reduce == VGK_SCATTER_SET   ? b
                : reduce == VGK_SCATTER_ADD ? (int64_t)((uint64_t)v + (uint64_t)b)
                : reduce == VGK_SCATTER_MUL ? (int64_t)((uint64_t)v * (uint64_t)b)
                : reduce == VGK_SCATTER_MIN ? (v < b ? v : b)
                                            : (v > b ? v : b);
            cu_store(y, to, v);
        } else {
            double v = cu_load<double>(y, to), b = cu_load<double>(u, from);
            v = reduce == VGK_SCATTER_SET   ? b
                : reduce == VGK_SCATTER_ADD ? v + b
                : reduce == VGK_SCATTER_MUL ? v * b
                : reduce == VGK_SCATTER_MIN ? (b < v || b != b ? b : v)
                                            : (b > v || b != b ? b : v);
            cu_store(y, to, v);
        }
    }
}

__global__ void __launch_bounds__(CU_THREADS) range_kernel(struct cu_args a)
{
    const struct vgk_tensor &y = a.y;
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= y.dim[0])
        return;
    if (cu_is_whole(y.type))
        cu_store(y, i * y.stride[0],
                 (int64_t)((uint64_t)cu_load<int64_t>(a.x[0], 0) + (uint64_t)i * (uint64_t)cu_load<int64_t>(a.x[2], 0)));
    else
        cu_store(y, i * y.stride[0], cu_load<double>(a.x[0], 0) + (double)i * cu_load<double>(a.x[2], 0));
}

#define LAUNCH_WALK(kernel) CU_LAUNCH(kernel, cu_blocks(w.total, CU_THREADS), dim3(CU_THREADS), 0, stream, a, w, flags)
#define BY_SIZE(kernel) \
    switch (vgk_type_bits(a.y.type)) { \
    case 8: return LAUNCH_WALK(kernel<uint8_t>); \
    case 16: return LAUNCH_WALK(kernel<uint16_t>); \
    case 32: return LAUNCH_WALK(kernel<uint32_t>); \
    default: return LAUNCH_WALK(kernel<uint64_t>); \
    }

cudaError_t vgk_cu_gather(const struct vgk_op *op, struct vgk_cu_flags *flags, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_walk w = cu_walk_of(&a.y);
    if (!w.total)
        return cudaSuccess;
    BY_SIZE(gather_kernel)
}

cudaError_t vgk_cu_take(const struct vgk_op *op, struct vgk_cu_flags *flags, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_walk w = cu_walk_of(&a.y);
    if (!w.total)
        return cudaSuccess;
    BY_SIZE(take_kernel)
}

cudaError_t vgk_cu_scatter(const struct vgk_op *op, struct vgk_cu_flags *flags, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct vgk_op copy = *op;
    copy.kind = VGK_OP_COPY;
    copy.n_in = 1;
    cudaError_t e = vgk_cu_copy(&copy, stream);
    return e != cudaSuccess ? e : CU_LAUNCH(scatter_kernel, dim3(1), dim3(1), 0, stream, a, flags);
}

cudaError_t vgk_cu_range(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    if (!a.y.dim[0])
        return cudaSuccess;
    return CU_LAUNCH(range_kernel, cu_blocks(a.y.dim[0], CU_THREADS), dim3(CU_THREADS), 0, stream, a);
}
