/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reductions and softmax: a block has an output element, or a row.  A block's threads take elements in
 * turn and are added up as a tree, so the order depends on the number of elements alone. */
#include "elements.h"

/* A tensor's dimensions in two groups: those of a set, and those that number the sets. */
struct cu_sets {
    int n_inner, n_outer, inner[VGK_MAX_RANK], outer[VGK_MAX_RANK];
    int64_t count, sets;
};

static struct cu_sets cu_sets_of(const struct vgk_tensor *t, unsigned axes)
{
    struct cu_sets s;
    memset(&s, 0, sizeof s);
    s.count = s.sets = 1;
    for (int d = 0; d < t->rank; d++)
        if (axes >> d & 1) {
            s.inner[s.n_inner++] = d;
            s.count *= t->dim[d];
        } else {
            s.outer[s.n_outer++] = d;
            s.sets *= t->dim[d];
        }
    return s;
}

__device__ static inline int64_t set_offset(const struct vgk_tensor &t, const struct vgk_tensor &dims, const int *axes,
                                            int n, int64_t i)
{
    int64_t at = 0;
    for (int k = n - 1; k >= 0; k--) {
        at += i % dims.dim[axes[k]] * t.stride[axes[k]];
        i /= dims.dim[axes[k]];
    }
    return at;
}

/* --- reduce --- */

__device__ static inline double fold(enum vgk_reduce_fn fn, double acc, double v)
{
    switch (fn) {
    case VGK_REDUCE_MAX: case VGK_REDUCE_LOG_SUM_EXP: return v > acc || v != v ? v : acc;
    case VGK_REDUCE_MIN: return v < acc || v != v ? v : acc;
    case VGK_REDUCE_PROD: return acc * v;
    default: return acc + v;
    }
}

__device__ static inline double fold_from(enum vgk_reduce_fn fn)
{
    return fn == VGK_REDUCE_PROD                                         ? 1
           : fn == VGK_REDUCE_MAX || fn == VGK_REDUCE_LOG_SUM_EXP ? -INFINITY
           : fn == VGK_REDUCE_MIN                                        ? INFINITY
                                                                         : 0;
}

__device__ static inline int64_t fold(enum vgk_reduce_fn fn, int64_t acc, int64_t v)
{
    switch (fn) {
    case VGK_REDUCE_MAX: return v > acc ? v : acc;
    case VGK_REDUCE_MIN: return v < acc ? v : acc;
    case VGK_REDUCE_PROD: return (int64_t)((uint64_t)acc * (uint64_t)v);
    default: return (int64_t)((uint64_t)acc + (uint64_t)v);
    }
}

/* part[0] is all of them; every thread must come here. */
template <class D> __device__ static inline D tree(enum vgk_reduce_fn fn, D *part, D mine)
{
    part[threadIdx.x] = mine;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if ((int)threadIdx.x < half)
            part[threadIdx.x] = fold(fn, part[threadIdx.x], part[threadIdx.x + half]);
        __syncthreads();
    }
    D all = part[0];
    __syncthreads();
    return all;
}

__global__ void __launch_bounds__(CU_THREADS, 1) reduce_kernel(struct cu_args a, struct cu_sets s)
{
    __shared__ double part[CU_THREADS];
    const struct vgk_tensor &x = a.x[0], &y = a.y;
    const enum vgk_reduce_fn fn = a.op.p.reduce.fn;
    const int64_t set = blockIdx.x, from = set_offset(x, x, s.outer, s.n_outer, set);
    double acc = fold_from(fn), largest = 0;
    for (int64_t i = threadIdx.x; i < s.count; i += blockDim.x) {
        double v = cu_load<double>(x, from + set_offset(x, x, s.inner, s.n_inner, i));
        v = fn == VGK_REDUCE_L1 ? fabs(v) : fn == VGK_REDUCE_L2 || fn == VGK_REDUCE_SUM_SQUARE ? v * v : v;
        acc = fold(fn, acc, v);
    }
    acc = tree<double>(fn, part, acc);
    if (fn == VGK_REDUCE_LOG_SUM_EXP) { /* the second pass */
        largest = isfinite(acc) ? acc : 0;
        acc = 0;
        for (int64_t i = threadIdx.x; i < s.count; i += blockDim.x)
            acc += exp(cu_load<double>(x, from + set_offset(x, x, s.inner, s.n_inner, i)) - largest);
        acc = tree<double>(VGK_REDUCE_SUM, part, acc);
    }
    if (threadIdx.x)
        return;
    acc = fn == VGK_REDUCE_MEAN              ? acc / (double)s.count
          : fn == VGK_REDUCE_L2              ? sqrt(acc)
          : fn == VGK_REDUCE_LOG_SUM         ? log(acc)
          : fn == VGK_REDUCE_LOG_SUM_EXP     ? log(acc) + largest
                                             : acc;
    cu_store(y, set_offset(y, x, s.outer, s.n_outer, set), acc);
}

__global__ void __launch_bounds__(CU_THREADS) reduce_whole_kernel(struct cu_args a, struct cu_sets s)
{
    __shared__ int64_t part[CU_THREADS];
    const struct vgk_tensor &x = a.x[0], &y = a.y;
    const enum vgk_reduce_fn fn = a.op.p.reduce.fn;
    const int64_t set = blockIdx.x, from = set_offset(x, x, s.outer, s.n_outer, set);
    int64_t acc = fn == VGK_REDUCE_PROD  ? 1
                  : fn == VGK_REDUCE_MAX ? (x.type == VGK_BOOL ? 0 : INT64_MIN)
                  : fn == VGK_REDUCE_MIN ? INT64_MAX
                                         : 0;
    for (int64_t i = threadIdx.x; i < s.count; i += blockDim.x) {
        int64_t v = cu_load<int64_t>(x, from + set_offset(x, x, s.inner, s.n_inner, i));
        if (fn == VGK_REDUCE_L1)
            v = v < 0 ? (int64_t)(0 - (uint64_t)v) : v;
        else if (fn == VGK_REDUCE_L2 || fn == VGK_REDUCE_SUM_SQUARE)
            v = (int64_t)((uint64_t)v * (uint64_t)v);
        acc = fold(fn, acc, v);
    }
    acc = tree<int64_t>(fn, part, acc);
    if (threadIdx.x)
        return;
    acc = fn == VGK_REDUCE_MEAN      ? (s.count ? acc / s.count : 0)
          : fn == VGK_REDUCE_L2      ? cu_to_i64(sqrt((double)acc))
          : fn == VGK_REDUCE_LOG_SUM ? cu_to_i64(log((double)acc))
                                     : acc;
    cu_store(y, set_offset(y, x, s.outer, s.n_outer, set), acc);
}

cudaError_t vgk_cu_reduce(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_sets s = cu_sets_of(&a.x[0], op->p.reduce.axes);
    if (!s.sets)
        return cudaSuccess;
    if (vgk_type_class(a.x[0].type) == VGK_CLASS_I64 && op->p.reduce.fn != VGK_REDUCE_LOG_SUM_EXP)
        return CU_LAUNCH(reduce_whole_kernel, dim3((unsigned)s.sets), cu_tree(s.count), 0, stream, a, s);
    return CU_LAUNCH(reduce_kernel, dim3((unsigned)s.sets), cu_tree(s.count), 0, stream, a, s);
}

/* --- softmax --- */

/* A warp has a row. */
__global__ void __launch_bounds__(32) softmax_kernel(struct cu_args a, struct cu_sets s)
{
    const struct vgk_tensor &x = a.x[0], &y = a.y;
    const int axis = a.op.p.softmax.axis;
    const int64_t from = set_offset(x, y, s.outer, s.n_outer, blockIdx.x), to = set_offset(y, y, s.outer, s.n_outer, blockIdx.x);
    float largest = -INFINITY, sum = 0;
    for (int64_t i = threadIdx.x; i < s.count; i += 32)
        largest = fmaxf(largest, cu_load<float>(x, from + i * x.stride[axis]));
    for (int lane = 16; lane; lane /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, lane));
    for (int64_t i = threadIdx.x; i < s.count; i += 32)
        sum += expf(cu_load<float>(x, from + i * x.stride[axis]) - largest);
    for (int lane = 16; lane; lane /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    float log_sum = logf(sum);
    for (int64_t i = threadIdx.x; i < s.count; i += 32) {
        float v = cu_load<float>(x, from + i * x.stride[axis]) - largest;
        cu_store(y, to + i * y.stride[axis], a.op.p.softmax.log ? v - log_sum : expf(v) / sum);
    }
}

cudaError_t vgk_cu_softmax(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_sets s = cu_sets_of(&a.y, 1u << op->p.softmax.axis);
    if (!s.sets || !s.count)
        return cudaSuccess;
    return CU_LAUNCH(softmax_kernel, dim3((unsigned)s.sets), dim3(32), 0, stream, a, s);
}
