/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Matrix products and attention without cuDNN. */
#include "elements.h"

struct cu_matmul {
    struct cu_args a;
    struct vgk_tensor l, r, c; /* with y's leading dimensions; c NONE = none */
    int64_t rows, columns, depth;
};

/* The tensor with the leading dimensions of out, whatever was 1 repeated. */
static struct vgk_tensor batched(const struct vgk_tensor *t, const struct vgk_tensor *out)
{
    struct vgk_tensor r = *t;
    int shift = out->rank - t->rank;
    r.rank = out->rank;
    for (int d = 0; d < out->rank; d++) {
        bool there = d >= shift && t->dim[d - shift] != 1;
        r.dim[d] = d >= shift && d >= out->rank - 2 ? t->dim[d - shift] : out->dim[d];
        r.stride[d] = there ? t->stride[d - shift] : 0;
    }
    return r;
}

__device__ static inline void matmul_batch(const struct cu_matmul &m, int64_t k, int64_t at[4])
{
    at[0] = at[1] = at[2] = at[3] = 0;
    for (int d = m.a.y.rank - 3; d >= 0; d--) {
        int64_t i = k % m.a.y.dim[d];
        k /= m.a.y.dim[d];
        at[0] += i * m.a.y.stride[d];
        at[1] += i * m.l.stride[d];
        at[2] += i * m.r.stride[d];
        at[3] += i * m.c.stride[d];
    }
}

#define TILE 64
#define DEPTH 16

/* A block has TILE by TILE of the product, a thread 4 by 4. */
__global__ void __launch_bounds__(256, 1) matmul_kernel(struct cu_matmul m)
{
    __shared__ float left[DEPTH][TILE + 4], right[DEPTH][TILE + 4];
    const int t = threadIdx.x, last = m.a.y.rank - 1;
    const int64_t row0 = (int64_t)blockIdx.x * TILE, column0 = (int64_t)blockIdx.y * TILE;
    int64_t at[4];
    float sum[4][4] = {{0}};
    matmul_batch(m, blockIdx.z, at);
    for (int64_t k0 = 0; k0 < m.depth; k0 += DEPTH) {
        for (int i = t; i < DEPTH * TILE; i += 256) {
            int64_t k = k0 + i % DEPTH, row = row0 + i / DEPTH;
            left[i % DEPTH][i / DEPTH] =
                k < m.depth && row < m.rows
                    ? cu_load<float>(m.l, at[1] + row * m.l.stride[last - 1] + k * m.l.stride[last])
                    : 0;
            k = k0 + i / TILE;
            int64_t column = column0 + i % TILE;
            right[i / TILE][i % TILE] =
                k < m.depth && column < m.columns
                    ? cu_load<float>(m.r, at[2] + k * m.r.stride[last - 1] + column * m.r.stride[last])
                    : 0;
        }
        __syncthreads();
        int steps = m.depth - k0 < DEPTH ? (int)(m.depth - k0) : DEPTH;
        for (int k = 0; k < steps; k++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    sum[i][j] = fmaf(left[k][t / 16 * 4 + i], right[k][t % 16 * 4 + j], sum[i][j]);
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int64_t row = row0 + t / 16 * 4 + i, column = column0 + t % 16 * 4 + j;
            if (row >= m.rows || column >= m.columns)
                continue;
            float v = sum[i][j] * m.a.op.p.matmul.alpha;
            if (m.c.type != VGK_NONE)
                v += m.a.op.p.matmul.beta * cu_load<float>(m.c, at[3] + row * m.c.stride[last - 1] + column * m.c.stride[last]);
            cu_store(m.a.y, at[0] + row * m.a.y.stride[last - 1] + column * m.a.y.stride[last], v);
        }
}

__device__ static inline double fold(double sum, double a, double b) { return sum + a * b; }
__device__ static inline int64_t fold(int64_t sum, int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)sum + (uint64_t)a * (uint64_t)b);
}

/* Doubles and integers: a thread has an element. */
template <class D> __global__ void __launch_bounds__(CU_THREADS) matmul_plain_kernel(struct cu_matmul m)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, row = i / m.columns, column = i % m.columns, at[4];
    const int last = m.a.y.rank - 1;
    if (row >= m.rows)
        return;
    matmul_batch(m, blockIdx.z, at);
    D sum = 0;
    for (int64_t k = 0; k < m.depth; k++)
        sum = fold(sum, cu_load<D>(m.l, at[1] + row * m.l.stride[last - 1] + k * m.l.stride[last]),
                   cu_load<D>(m.r, at[2] + k * m.r.stride[last - 1] + column * m.r.stride[last]));
    sum = fold((D)0, sum, (D)m.a.op.p.matmul.alpha);
    if (m.c.type != VGK_NONE)
        sum = fold(sum, (D)m.a.op.p.matmul.beta,
                   cu_load<D>(m.c, at[3] + row * m.c.stride[last - 1] + column * m.c.stride[last]));
    cu_store(m.a.y, at[0] + row * m.a.y.stride[last - 1] + column * m.a.y.stride[last], sum);
}

cudaError_t vgk_cu_matmul(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_matmul m;
    memset(&m, 0, sizeof m);
    m.a = cu_args_of(op);
    const struct vgk_tensor *y = &m.a.y;
    m.l = batched(&m.a.x[0], y);
    m.r = batched(&m.a.x[1], y);
    if (m.a.x[2].type != VGK_NONE) {
        m.c = batched(&m.a.x[2], y);
        for (int d = y->rank - 2; d < y->rank; d++)
            m.c.dim[d] = y->dim[d];
    }
    m.rows = y->dim[y->rank - 2];
    m.columns = y->dim[y->rank - 1];
    m.depth = m.l.dim[y->rank - 1];
    int64_t batches = 1;
    for (int d = 0; d < y->rank - 2; d++)
        batches *= y->dim[d];
    if (!batches || !m.rows || !m.columns)
        return cudaSuccess;
    if (vgk_type_class(y->type) == VGK_CLASS_F32)
        return CU_LAUNCH(matmul_kernel,
                         dim3((unsigned)((m.rows + TILE - 1) / TILE), (unsigned)((m.columns + TILE - 1) / TILE), (unsigned)batches),
                         dim3(256), 0, stream, m);
    dim3 grid((unsigned)((m.rows * m.columns + CU_THREADS - 1) / CU_THREADS), 1, (unsigned)batches);
    if (y->type == VGK_F64)
        return CU_LAUNCH(matmul_plain_kernel<double>, grid, dim3(CU_THREADS), 0, stream, m);
    return CU_LAUNCH(matmul_plain_kernel<int64_t>, grid, dim3(CU_THREADS), 0, stream, m);
}

/* --- attention --- */

/* A block has a query.  In steps of as many keys as it has threads: their scores, a thread each; the running maximum;
 * then the weighted sum of values, a thread two channels.  The order of all sums depends on nothing but the number of
 * keys and of channels. */
__global__ void __launch_bounds__(CU_THREADS) attention_kernel(struct cu_args a)
{
    __shared__ float score[CU_THREADS], most[CU_THREADS];
    const struct vgk_attention &p = a.op.p.attention;
    const struct vgk_tensor &q = a.x[0], &k = a.x[1], &v = a.x[2], &mask = a.x[3], &y = a.y;
    const int64_t heads = q.dim[1], keys = k.dim[2], depth = q.dim[3], width = v.dim[3];
    const int64_t row = blockIdx.x, i = row % q.dim[2], h = row / q.dim[2] % heads, n = row / q.dim[2] / heads;
    const int64_t g = h * k.dim[1] / heads, aq = n * q.stride[0] + h * q.stride[1] + i * q.stride[2],
                  ak = n * k.stride[0] + g * k.stride[1], av = n * v.stride[0] + g * v.stride[1];
    const int t = threadIdx.x, threads = blockDim.x;
    const int64_t c0 = (int64_t)blockIdx.y * 2 * threads;
    float largest = -INFINITY, total = 0, sum[2] = {0, 0};
    for (int64_t s0 = 0; s0 < keys; s0 += threads) {
        int64_t s = s0 + t;
        float dot = -INFINITY;
        if (s < keys && !(p.causal && s > i + p.past)) {
            dot = 0;
            for (int64_t c = 0; c < depth; c++)
                dot = fmaf(cu_load<float>(q, aq + c * q.stride[3]), cu_load<float>(k, ak + s * k.stride[2] + c * k.stride[3]), dot);
            dot *= p.scale;
            if (p.softcap != 0)
                dot = p.softcap * tanhf(dot / p.softcap);
            if (mask.type != VGK_NONE) {
                float m = cu_load<float>(mask, n * mask.stride[0] + h * mask.stride[1] + i * mask.stride[2] + s * mask.stride[3]);
                dot = mask.type != VGK_BOOL ? dot + m : m != 0 ? dot : -INFINITY;
            }
        }
        most[t] = score[t] = dot;
        __syncthreads();
        for (int half = threads / 2; half; half /= 2) { /* NaN wins */
            if (t < half)
                most[t] = most[t + half] > most[t] || most[t + half] != most[t + half] ? most[t + half] : most[t];
            __syncthreads();
        }
        float step = most[0];
        if (step > largest || step != step) {
            float shrink = largest == -INFINITY ? 0 : expf(largest - step);
            total *= shrink;
            sum[0] *= shrink;
            sum[1] *= shrink;
            largest = step;
        }
        if (dot != -INFINITY)
            score[t] = expf(dot - largest);
        else
            score[t] = 0;
        __syncthreads();
        int64_t have = keys - s0 < threads ? keys - s0 : threads;
        for (int64_t j = 0; j < have; j++) {
            float e = score[j];
            if (e == 0)
                continue;
            total += e;
            for (int u = 0; u < 2; u++) {
                int64_t c = c0 + t + u * threads;
                if (c < width)
                    sum[u] = fmaf(e, cu_load<float>(v, av + (s0 + j) * v.stride[2] + c * v.stride[3]), sum[u]);
            }
        }
        __syncthreads();
    }
    for (int u = 0; u < 2; u++) {
        int64_t c = c0 + t + u * threads;
        if (c < width)
            cu_store(y, n * y.stride[0] + h * y.stride[1] + i * y.stride[2] + c * y.stride[3], total == 0 ? 0 : sum[u] / total);
    }
}

cudaError_t vgk_cu_attention(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    int64_t queries = a.x[0].dim[0] * a.x[0].dim[1] * a.x[0].dim[2], width = a.x[2].dim[3];
    if (!queries || !width)
        return cudaSuccess;
    int64_t keys = a.x[1].dim[2], half = (width + 1) / 2;
    dim3 threads = cu_tree(keys > half ? keys : half);
    dim3 grid((unsigned)queries, cu_blocks(width, 2 * threads.x).x);
    return CU_LAUNCH(attention_kernel, grid, threads, 0, stream, a);
}
