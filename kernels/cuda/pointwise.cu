/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copy, unary, binary, chains of those, where, quantisation: an element from the same place of each input.  A thread has
 * eight along the longest common row. */
#include "elements.h"

/* Tensors in a loop's order: y, then the inputs. */
struct cu_rows {
    struct vgk_loop loop;
    int64_t pieces, total;
};

static struct cu_rows cu_rows_along(int n, const struct vgk_tensor **t)
{
    struct cu_rows r;
    vgk_loop_init(&r.loop, n, t);
    r.pieces = (r.loop.dim[r.loop.rank - 1] + CU_PIECE - 1) / CU_PIECE;
    r.total = r.pieces * r.loop.rows;
    return r;
}

static struct cu_rows cu_rows_of(const struct cu_args *a, int n)
{
    const struct vgk_tensor *t[VGK_LOOP_TENSORS] = {&a->y};
    for (int i = 1; i < n; i++)
        t[i] = &a->x[i - 1];
    return cu_rows_along(n, t);
}

/* This thread's piece: offsets of its first element, and the number of elements, 0 = none. */
__device__ static inline int cu_row_place(const struct cu_rows &r, int64_t at[VGK_LOOP_TENSORS])
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= r.total)
        return 0;
    int last = r.loop.rank - 1;
    int64_t first = i % r.pieces * CU_PIECE, n = r.loop.dim[last] - first;
    i /= r.pieces;
    for (int t = 0; t < r.loop.n; t++)
        at[t] = first * r.loop.stride[t][last];
    for (int d = last - 1; d >= 0; d--) {
        int64_t k = i % r.loop.dim[d];
        i /= r.loop.dim[d];
        for (int t = 0; t < r.loop.n; t++)
            at[t] += k * r.loop.stride[t][d];
    }
    return n < CU_PIECE ? (int)n : CU_PIECE;
}

#define CU_STEP(t) r.loop.stride[t][r.loop.rank - 1]

/* --- copy --- */

template <class D> __global__ void __launch_bounds__(CU_THREADS) copy_kernel(struct cu_args a, struct cu_rows r)
{
    int64_t at[VGK_LOOP_TENSORS];
    D v[CU_PIECE];
    int n = cu_row_place(r, at);
    if (!n)
        return;
    cu_load_piece<D>(v, a.x[0], at[1], CU_STEP(1), n);
    cu_store_piece<D>(v, a.y, at[0], CU_STEP(0), n);
}

/* The same type: bits as they are. */
template <class T> __global__ void __launch_bounds__(CU_THREADS) move_kernel(struct cu_args a, struct cu_rows r)
{
    int64_t at[VGK_LOOP_TENSORS];
    int n = cu_row_place(r, at);
    for (int i = 0; i < n; i++)
        ((T *)a.y.data)[at[0] + i * CU_STEP(0)] = ((const T *)a.x[0].data)[at[1] + i * CU_STEP(1)];
}

/* u64 to floats: through double, as large ones need. */
__global__ void __launch_bounds__(CU_THREADS) natural_kernel(struct cu_args a, struct cu_rows r)
{
    int64_t at[VGK_LOOP_TENSORS];
    int n = cu_row_place(r, at);
    for (int i = 0; i < n; i++)
        cu_store(a.y, at[0] + i * CU_STEP(0), (double)((const uint64_t *)a.x[0].data)[at[1] + i * CU_STEP(1)]);
}

#define LAUNCH_ROWS(kernel) CU_LAUNCH(kernel, cu_blocks(r.total, CU_THREADS), dim3(CU_THREADS), 0, stream, a, r)

cudaError_t vgk_cu_copy(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_rows r = cu_rows_of(&a, 2);
    enum vgk_type from = a.x[0].type, to = a.y.type;
    int bits = vgk_type_bits(to);
    if (!r.total)
        return cudaSuccess;
    if (from == to && r.loop.rank == 1 && CU_STEP(0) == 1 && CU_STEP(1) == 1)
        return cudaMemcpyAsync(a.y.data, a.x[0].data, (size_t)r.loop.dim[0] * bits / 8, cudaMemcpyDeviceToDevice, stream);
    /* Pieces of half and float are moved as vectors: a half is a float and back without a change, but for NaN's bits. */
    if (from == to && (CU_STEP(0) != 1 || CU_STEP(1) != 1 || (to != VGK_F16 && to != VGK_F32)))
        return bits == 8    ? LAUNCH_ROWS(move_kernel<uint8_t>)
               : bits == 16 ? LAUNCH_ROWS(move_kernel<uint16_t>)
               : bits == 32 ? LAUNCH_ROWS(move_kernel<uint32_t>)
                            : LAUNCH_ROWS(move_kernel<uint64_t>);
    if (vgk_type_class(from) == VGK_CLASS_I64)
        return from == VGK_U64 && vgk_type_is_float(to) ? LAUNCH_ROWS(natural_kernel)
               : vgk_type_is_float(to)                  ? LAUNCH_ROWS(copy_kernel<double>)
                                                        : LAUNCH_ROWS(copy_kernel<int64_t>);
    return from == VGK_F64 || to == VGK_F64 ? LAUNCH_ROWS(copy_kernel<double>) : LAUNCH_ROWS(copy_kernel<float>);
}

/* --- unary --- */

template <class F> __device__ static inline F cu_clip(F x, F low, F high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

template <class F> __device__ static inline F cu_sigm(F x)
{
    F e = exp(-fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

template <class F> __device__ static inline F cu_softplus(F x) { return log1p(exp(-fabs(x))) + (x > 0 ? x : 0); }

template <class F> __device__ static F cu_unary(const struct vgk_unary &u, F x)
{
    const F a = u.alpha, b = u.beta, one = 1;
    switch (u.fn) {
    case VGK_RELU: return x < 0 ? 0 : x;
    case VGK_LEAKY_RELU: return x < 0 ? a * x : x;
    case VGK_SIGMOID: return cu_sigm(x);
    case VGK_TANH: return tanh(x);
    case VGK_CLIP: return cu_clip(x, a, b);
    case VGK_ELU: return x < 0 ? a * expm1(x) : x;
    case VGK_HARD_SIGMOID: return cu_clip(a * x + b, (F)0, one);
    case VGK_HARD_SWISH: return x * cu_clip(x / 6 + (F)0.5, (F)0, one);
    case VGK_SOFTPLUS: return cu_softplus(x);
    case VGK_MISH: return x * tanh(cu_softplus(x));
    case VGK_SILU: return x == -(F)INFINITY ? 0 : x * cu_sigm(x);
    case VGK_GELU_ERF: return (F)0.5 * x * (1 + erf(x * (F)0.70710678118654752440));
    case VGK_GELU_TANH: return (F)0.5 * x * (1 + tanh((F)0.79788456080286535588 * (x + (F)0.044715 * x * x * x)));
    case VGK_NEG: return -x;
    case VGK_ABS: return fabs(x);
    case VGK_SQRT: return sqrt(x);
    case VGK_RECIPROCAL: return one / x;
    case VGK_EXP: return exp(x);
    case VGK_LOG: return log(x);
    case VGK_ERF: return erf(x);
    case VGK_SIN: return sin(x);
    case VGK_COS: return cos(x);
    case VGK_FLOOR: return floor(x);
    case VGK_CEIL: return ceil(x);
    case VGK_ROUND: return rint(x);
    case VGK_SIGN: return x > 0 ? one : x < 0 ? -one : x;
    case VGK_NOT: return x == 0;
    case VGK_IS_NAN: return x != x;
    case VGK_IS_INF: return (x == -(F)INFINITY && a != 0) || (x == (F)INFINITY && b != 0);
    case VGK_CELU: return x < 0 ? a * expm1(x / a) : x;
    case VGK_SELU: return x > 0 ? b * x : b * a * expm1(x);
    case VGK_THRESHOLDED_RELU: return x > a ? x : 0;
    case VGK_SOFTSIGN: return x / (1 + fabs(x));
    case VGK_SHRINK: return x < -a ? x + b : x > a ? x - b : 0;
    case VGK_SWISH: return x * cu_sigm(a * x);
    case VGK_QUANTA: return rint(cu_clip((F)((float)x / u.alpha), b, b + 255)) * a;
    case VGK_TAN: return tan(x);
    case VGK_ASIN: return asin(x);
    case VGK_ACOS: return acos(x);
    case VGK_ATAN: return atan(x);
    case VGK_SINH: return sinh(x);
    case VGK_COSH: return cosh(x);
    case VGK_ASINH: return asinh(x);
    case VGK_ACOSH: return acosh(x);
    case VGK_ATANH: return atanh(x);
    }
    return x;
}

template <> __device__ int64_t cu_unary<int64_t>(const struct vgk_unary &u, int64_t x)
{
    switch (u.fn) {
    case VGK_RELU: return x < 0 ? 0 : x;
    case VGK_CLIP:
        x = (double)x < (double)u.alpha ? cu_to_i64(ceil((double)u.alpha)) : x;
        return (double)x > (double)u.beta ? cu_to_i64(floor((double)u.beta)) : x;
    case VGK_NEG: return (int64_t)(0 - (uint64_t)x);
    case VGK_ABS: return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
    case VGK_SIGN: return (x > 0) - (x < 0);
    case VGK_NOT: return x == 0;
    case VGK_IS_NAN: return 0;
    case VGK_SHRINK: return (int64_t)cu_unary<double>(u, (double)x);
    default: return x; /* floor, ceil, round */
    }
}

template <class D> __global__ void __launch_bounds__(CU_THREADS) unary_kernel(struct cu_args a, struct cu_rows r)
{
    int64_t at[VGK_LOOP_TENSORS];
    D v[CU_PIECE];
    int n = cu_row_place(r, at);
    if (!n)
        return;
    cu_load_piece<D>(v, a.x[0], at[1], CU_STEP(1), n);
#pragma unroll 1
    for (int i = 0; i < n; i++)
        v[i] = cu_unary<D>(a.op.p.unary, v[i]);
    cu_store_piece<D>(v, a.y, at[0], CU_STEP(0), n);
}

cudaError_t vgk_cu_unary(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_rows r = cu_rows_of(&a, 2);
    if (!r.total)
        return cudaSuccess;
    switch (vgk_type_class(a.x[0].type)) {
    case VGK_CLASS_F32: return LAUNCH_ROWS(unary_kernel<float>);
    case VGK_CLASS_F64: return LAUNCH_ROWS(unary_kernel<double>);
    default: return LAUNCH_ROWS(unary_kernel<int64_t>);
    }
}

/* --- binary --- */

template <class F> __device__ static F cu_binary(enum vgk_binary_fn fn, F a, F b)
{
    F r;
    switch (fn) {
    case VGK_ADD: return a + b;
    case VGK_SUB: return a - b;
    case VGK_MUL: return a * b;
    case VGK_DIV: return a / b;
    case VGK_POW: return (F)pow((double)a, (double)b);
    case VGK_MIN: return a < b || a != a ? a : b; /* NaN from either side stays */
    case VGK_MAX: return a > b || a != a ? a : b;
    case VGK_MOD:
        r = fmod(a, b);
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    case VGK_FMOD: return fmod(a, b);
    case VGK_PRELU: return a < 0 ? a * b : a;
    case VGK_EQUAL: return a == b;
    case VGK_LESS: return a < b;
    case VGK_LESS_EQUAL: return a <= b;
    case VGK_GREATER: return a > b;
    case VGK_GREATER_EQUAL: return a >= b;
    case VGK_AND: return a != 0 && b != 0;
    case VGK_OR: return a != 0 || b != 0;
    case VGK_XOR: return (a != 0) != (b != 0);
    }
    return a;
}

__device__ static inline int64_t cu_multiply(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

/* A negative exponent gives the truncated value: 0 but for bases of 1 and -1. */
__device__ static int64_t cu_power(int64_t a, int64_t b)
{
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    int64_t r = 1;
    for (; b; b >>= 1, a = cu_multiply(a, a))
        if (b & 1)
            r = cu_multiply(r, a);
    return r;
}

template <> __device__ int64_t cu_binary<int64_t>(enum vgk_binary_fn fn, int64_t a, int64_t b)
{
    int64_t r;
    switch (fn) {
    case VGK_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case VGK_SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
    case VGK_MUL: return cu_multiply(a, b);
    case VGK_DIV: return !b ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
    case VGK_POW: return cu_power(a, b);
    case VGK_MIN: return a < b ? a : b;
    case VGK_MAX: return a > b ? a : b;
    case VGK_MOD:
        r = !b || b == -1 ? 0 : a % b;
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    case VGK_FMOD: return !b || b == -1 ? 0 : a % b;
    case VGK_PRELU: return a < 0 ? cu_multiply(a, b) : a;
    case VGK_EQUAL: return a == b;
    case VGK_LESS: return a < b;
    case VGK_LESS_EQUAL: return a <= b;
    case VGK_GREATER: return a > b;
    case VGK_GREATER_EQUAL: return a >= b;
    case VGK_AND: return a && b;
    case VGK_OR: return a || b;
    case VGK_XOR: return !a != !b;
    }
    return a;
}

template <class D> __global__ void __launch_bounds__(CU_THREADS, 1) binary_kernel(struct cu_args a, struct cu_rows r)
{
    int64_t at[VGK_LOOP_TENSORS];
    D v[CU_PIECE], w[CU_PIECE];
    int n = cu_row_place(r, at);
    if (!n)
        return;
    cu_load_piece<D>(v, a.x[0], at[1], CU_STEP(1), n);
    cu_load_piece<D>(w, a.x[1], at[2], CU_STEP(2), n);
#pragma unroll 1
    for (int i = 0; i < n; i++)
        v[i] = cu_binary<D>(a.op.p.binary.fn, v[i], w[i]);
    cu_store_piece<D>(v, a.y, at[0], CU_STEP(0), n);
}

cudaError_t vgk_cu_binary(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_rows r = cu_rows_of(&a, 3);
    enum vgk_class c = vgk_type_class(a.x[0].type);
    if (!r.total)
        return cudaSuccess;
    if (a.x[1].type == VGK_F64 || (c == VGK_CLASS_I64 && vgk_type_is_float(a.x[1].type))) /* integer base, float exponent */
        c = VGK_CLASS_F64;
    return c == VGK_CLASS_F32   ? LAUNCH_ROWS(binary_kernel<float>)
           : c == VGK_CLASS_F64 ? LAUNCH_ROWS(binary_kernel<double>)
                                : LAUNCH_ROWS(binary_kernel<int64_t>);
}

/* --- chains --- */

/* A chain as a table: where a link's operands are (an input, or the result of a link), and whether its own result is read
 * by another than the next one: what is not is at hand when it is needed. */
struct cu_chain {
    int n;
    bool keep[VGK_CHAIN_MOST];
    int place[VGK_CONV_INPUTS]; /* of each input in the loop's tensors; 0: it is one value */
};

/* The same function for all eight: known when this is compiled where it is one of the fast ones.  The others go round in a
 * ring, so that their code is there once. */
#define CU_ALL(i) _Pragma("unroll") \
    for (int i = 0; i < CU_PIECE; i++)
#define CU_RING(v, result) \
    do { \
        float r_ = (result); \
        for (int k_ = 1; k_ < CU_PIECE; k_++) \
            (v)[k_ - 1] = (v)[k_]; \
        (v)[CU_PIECE - 1] = r_; \
    } while (0)

__device__ static inline void cu_unary_piece(struct vgk_unary u, float v[CU_PIECE])
{
    switch (u.fn) {
#define FAST(f) case f: u.fn = f; CU_ALL(i) v[i] = cu_unary<float>(u, v[i]); break
    FAST(VGK_RELU); FAST(VGK_LEAKY_RELU); FAST(VGK_CLIP); FAST(VGK_NEG); FAST(VGK_ABS);
#undef FAST
    default:
#pragma unroll 1
        for (int i = 0; i < CU_PIECE; i++)
            CU_RING(v, cu_unary<float>(u, v[0]));
    }
}

/* a becomes the result. */
__device__ static inline void cu_binary_piece(enum vgk_binary_fn fn, float a[CU_PIECE], float b[CU_PIECE])
{
    switch (fn) {
#define FAST(f) case f: CU_ALL(i) a[i] = cu_binary<float>(f, a[i], b[i]); break
    FAST(VGK_ADD); FAST(VGK_SUB); FAST(VGK_MUL); FAST(VGK_DIV); FAST(VGK_MIN); FAST(VGK_MAX); FAST(VGK_PRELU);
#undef FAST
    default:
#pragma unroll 1
        for (int i = 0; i < CU_PIECE; i++) {
            CU_RING(a, cu_binary<float>(fn, a[0], b[0]));
            CU_RING(b, 0);
        }
    }
}

__device__ static inline void cu_operand(const struct cu_args &a, const struct cu_rows &r, const struct cu_chain &c,
                                         const int64_t *at, int n, int from, const float kept[VGK_CHAIN_MOST][CU_PIECE],
                                         float v[CU_PIECE])
{
    if (from >= VGK_CHAIN_LINK) {
        CU_ALL(i) v[i] = kept[from - VGK_CHAIN_LINK][i];
    } else if (c.place[from]) {
        CU_ALL(i) v[i] = 0; /* behind the row's end */
        cu_load_piece<float>(v, a.x[from], at[c.place[from]], CU_STEP(c.place[from]), n);
    } else {
        float one = cu_load<float>(a.x[from], 0);
        CU_ALL(i) v[i] = one;
    }
}

__global__ void __launch_bounds__(CU_THREADS, 1) chain_kernel(struct cu_args a, struct cu_rows r, struct cu_chain c)
{
    int64_t at[VGK_LOOP_TENSORS];
    float v[CU_PIECE], w[CU_PIECE], kept[VGK_CHAIN_MOST][CU_PIECE];
    int n = cu_row_place(r, at);
    if (!n)
        return;
    for (int k = 0; k < c.n; k++) {
        const vgk_chain::vgk_link &l = a.op.p.chain.link[k];
        int last = k ? VGK_CHAIN_LINK + k - 1 : -1;
        if (l.binary && l.b == last) {
            CU_ALL(i) w[i] = v[i];
        } else if (l.binary) {
            cu_operand(a, r, c, at, n, l.b, kept, w);
        }
        if (l.a != last)
            cu_operand(a, r, c, at, n, l.a, kept, v);
        if (l.binary)
            cu_binary_piece(l.two.fn, v, w);
        else
            cu_unary_piece(l.unary, v);
        if (c.keep[k]) {
            CU_ALL(i) kept[k][i] = v[i];
        }
    }
    cu_store_piece<float>(v, a.y, at[0], CU_STEP(0), n);
}

cudaError_t vgk_cu_chain(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_chain c;
    struct cu_rows r;
    const struct vgk_tensor *t[VGK_LOOP_TENSORS] = {&a.y};
    int n = 1;
    memset(&c, 0, sizeof c);
    c.n = op->p.chain.n;
    for (int i = 0; i < op->n_in; i++)
        if (!vgk_tensor_is_one_value(&a.x[i])) {
            c.place[i] = n;
            t[n++] = &a.x[i];
        }
    for (int k = 0; k < c.n; k++) {
        const vgk_chain::vgk_link *l = &op->p.chain.link[k];
        if (l->a >= VGK_CHAIN_LINK && l->a - VGK_CHAIN_LINK != k - 1)
            c.keep[l->a - VGK_CHAIN_LINK] = true;
        if (l->binary && l->b >= VGK_CHAIN_LINK && l->b - VGK_CHAIN_LINK != k - 1)
            c.keep[l->b - VGK_CHAIN_LINK] = true;
    }
    r = cu_rows_along(n, t);
    if (!r.total)
        return cudaSuccess;
    return CU_LAUNCH(chain_kernel, cu_blocks(r.total, CU_THREADS), dim3(CU_THREADS), 0, stream, a, r, c);
}

/* --- where --- */

template <class T> __global__ void __launch_bounds__(CU_THREADS) where_kernel(struct cu_args a, struct cu_rows r)
{
    int64_t at[VGK_LOOP_TENSORS];
    int n = cu_row_place(r, at);
    for (int i = 0; i < n; i++) {
        int k = cu_load<int64_t>(a.x[0], at[1] + i * CU_STEP(1)) ? 1 : 2;
        ((T *)a.y.data)[at[0] + i * CU_STEP(0)] = ((const T *)a.x[k].data)[at[1 + k] + i * CU_STEP(1 + k)];
    }
}

cudaError_t vgk_cu_where(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_rows r = cu_rows_of(&a, 4);
    if (!r.total)
        return cudaSuccess;
    switch (vgk_type_bits(a.y.type)) {
    case 8: return LAUNCH_ROWS(where_kernel<uint8_t>);
    case 16: return LAUNCH_ROWS(where_kernel<uint16_t>);
    case 32: return LAUNCH_ROWS(where_kernel<uint32_t>);
    default: return LAUNCH_ROWS(where_kernel<uint64_t>);
    }
}

/* --- quantisation --- */

__global__ void __launch_bounds__(CU_THREADS) quantize_kernel(struct cu_args a, struct cu_rows r, double low, double high)
{
    int64_t at[VGK_LOOP_TENSORS];
    int n = cu_row_place(r, at);
    for (int i = 0; i < n; i++) {
        double scale = cu_load<double>(a.x[1], at[2] + i * CU_STEP(2)), v = cu_load<double>(a.x[0], at[1] + i * CU_STEP(1)),
               zero = a.x[2].type == VGK_NONE ? 0 : cu_load<double>(a.x[2], at[3] + i * CU_STEP(3));
        if (a.op.kind == VGK_OP_DEQUANTIZE) {
            cu_store(a.y, at[0] + i * CU_STEP(0), (v - zero) * scale);
            continue;
        }
        double q = rint((double)((float)v / (float)scale)) + zero; /* the quotient is a float's, as everywhere */
        cu_store(a.y, at[0] + i * CU_STEP(0), q != q ? 0 : q < low ? low : q > high ? high : q);
    }
}

cudaError_t vgk_cu_quantize(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_rows r = cu_rows_of(&a, a.x[2].type == VGK_NONE ? 3 : 4);
    int bits = vgk_type_bits(a.y.type);
    bool sign = a.y.type == VGK_I8 || a.y.type == VGK_I16 || a.y.type == VGK_I32;
    double low = sign ? -ldexp(1, bits - 1) : 0, high = ldexp(1, bits - (sign ? 1 : 0)) - 1;
    if (!r.total)
        return cudaSuccess;
    return CU_LAUNCH(quantize_kernel, cu_blocks(r.total, CU_THREADS), dim3(CU_THREADS), 0, stream, a, r, low, high);
}
