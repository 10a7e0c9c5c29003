/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Norms.  Statistics are in double and in an order that depends on the sizes alone. */
#include "elements.h"

/* --- norm: a block has a set --- */

struct cu_norm {
    struct cu_args a;
    struct vgk_tensor x, y, residual, scale, bias; /* views of equal dimensions */
    int n_inner, n_outer, inner[VGK_MAX_RANK], outer[VGK_MAX_RANK];
    int64_t count, sets;
};

/* The dimension 1 becomes two: groups, and what is left of it. */
static void split_channels(struct vgk_tensor *t, int64_t groups)
{
    if (t->type == VGK_NONE)
        return;
    for (int d = t->rank++; d > 1; d--) {
        t->dim[d] = t->dim[d - 1];
        t->stride[d] = t->stride[d - 1];
    }
    t->dim[2] = t->dim[1] / groups;
    t->dim[1] = groups;
    t->stride[1] = t->stride[2] * t->dim[2];
}

static bool norm_make(const struct vgk_op *op, struct cu_norm *m)
{
    const struct vgk_norm *p = &op->p.norm;
    memset(m, 0, sizeof *m);
    m->a = cu_args_of(op);
    m->x = m->a.x[0];
    m->y = m->a.y;
    m->residual = m->a.x[3];
    struct vgk_tensor *part[2] = {&m->scale, &m->bias};
    bool rows = p->kind == VGK_NORM_LAYER || p->kind == VGK_NORM_RMS;
    unsigned axes = rows ? ~0u << p->axis : ~3u;
    for (int i = 0; i < 2; i++) {
        const struct vgk_tensor *from = &m->a.x[1 + i];
        if (from->type == VGK_NONE)
            continue;
        *part[i] = m->x;
        part[i]->type = from->type;
        part[i]->data = from->data;
        for (int d = 0; d < m->x.rank; d++) {
            int of = d - (m->x.rank - from->rank); /* layer and rms: the last dimensions */
            part[i]->stride[d] = rows    ? of >= 0 && from->dim[of] != 1 ? from->stride[of] : 0
                                 : d == 1 ? from->stride[0]
                                          : 0;
        }
    }
    if (p->kind == VGK_NORM_GROUP) {
        if (m->x.rank == VGK_MAX_RANK)
            return false;
        struct vgk_tensor *all[] = {&m->x, &m->y, &m->residual, &m->scale, &m->bias};
        for (int i = 0; i < 5; i++)
            split_channels(all[i], p->groups);
    }
    m->count = m->sets = 1;
    for (int d = 0; d < m->x.rank; d++)
        if (axes >> d & 1) {
            m->inner[m->n_inner++] = d;
            m->count *= m->x.dim[d];
        } else {
            m->outer[m->n_outer++] = d;
            m->sets *= m->x.dim[d];
        }
    return true;
}

__device__ static inline int64_t norm_offset(const struct cu_norm &m, const struct vgk_tensor &t, int64_t set, int64_t i)
{
    int64_t at = 0;
    for (int k = m.n_inner - 1; k >= 0; k--) {
        at += i % m.x.dim[m.inner[k]] * t.stride[m.inner[k]];
        i /= m.x.dim[m.inner[k]];
    }
    for (int k = m.n_outer - 1; k >= 0; k--) {
        at += set % m.x.dim[m.outer[k]] * t.stride[m.outer[k]];
        set /= m.x.dim[m.outer[k]];
    }
    return at;
}

__device__ static inline double block_sum(double *part, double mine)
{
    part[threadIdx.x] = mine;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if ((int)threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    double all = part[0];
    __syncthreads();
    return all;
}

__global__ void __launch_bounds__(CU_THREADS, 1) norm_kernel(struct cu_norm m)
{
    __shared__ double part[CU_THREADS];
    const struct vgk_norm &p = m.a.op.p.norm;
    const int64_t set = blockIdx.x;
    double mean = 0, square = 0;
    if (p.kind != VGK_NORM_RMS) {
        for (int64_t i = threadIdx.x; i < m.count; i += blockDim.x)
            mean += cu_load<double>(m.x, norm_offset(m, m.x, set, i));
        mean = block_sum(part, mean) / (double)m.count;
    }
    for (int64_t i = threadIdx.x; i < m.count; i += blockDim.x) {
        double v = cu_load<double>(m.x, norm_offset(m, m.x, set, i)) - mean;
        square += v * v;
    }
    square = block_sum(part, square);
    float inverse = (float)(1 / sqrt(square / (double)m.count + (double)p.epsilon));
    for (int64_t i = threadIdx.x; i < m.count; i += blockDim.x) {
        float v = (float)(cu_load<double>(m.x, norm_offset(m, m.x, set, i)) - mean) * inverse;
        if (m.scale.type != VGK_NONE)
            v *= cu_load<float>(m.scale, norm_offset(m, m.scale, set, i));
        if (m.bias.type != VGK_NONE)
            v += cu_load<float>(m.bias, norm_offset(m, m.bias, set, i));
        v = cu_act(p.act, p.alpha, p.beta, 0, v);
        if (m.residual.type != VGK_NONE)
            v += cu_load<float>(m.residual, norm_offset(m, m.residual, set, i));
        cu_store(m.y, norm_offset(m, m.y, set, i), v);
    }
}

cudaError_t vgk_cu_norm(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_norm m;
    if (!norm_make(op, &m))
        return cudaErrorInvalidValue;
    if (!m.sets || !m.count)
        return cudaSuccess;
    return CU_LAUNCH(norm_kernel, dim3((unsigned)m.sets), cu_tree(m.count), 0, stream, m);
}

/* --- moments, merge, normalise: images --- */

#define CHANNELS 32 /* of a block */
#define LANES 8     /* threads that share a channel */

/* A block has a block of rows for CHANNELS channels.  Sums less the block's own first pixel, so that a large mean costs
 * no digits of the variance. */
__global__ void __launch_bounds__(CHANNELS *LANES) moments_kernel(struct cu_args a)
{
    __shared__ double sums[LANES][CHANNELS], squares[LANES][CHANNELS];
    const struct vgk_tensor &x = a.x[0], &y = a.y;
    const int64_t rows = a.op.p.moments.rows, channels = x.dim[1], width = x.dim[3];
    const int64_t b = blockIdx.x, n = blockIdx.z, c = (int64_t)blockIdx.y * CHANNELS + threadIdx.x % CHANNELS;
    const int lane = threadIdx.x / CHANNELS, mine = threadIdx.x % CHANNELS;
    const int64_t left = x.dim[2] - b * rows, pixels = (left < rows ? left : rows) * width;
    const int64_t from = n * x.stride[0] + c * x.stride[1] + b * rows * x.stride[2];
    double shift = 0, sum = 0, square = 0;
    if (c < channels) {
        shift = cu_load<double>(x, from);
        for (int64_t p = lane; p < pixels; p += LANES) {
            double v = cu_load<double>(x, from + p / width * x.stride[2] + p % width * x.stride[3]) - shift;
            sum += v;
            square += v * v;
        }
    }
    sums[lane][mine] = sum;
    squares[lane][mine] = square;
    __syncthreads();
    if (lane || c >= channels)
        return;
    for (int k = 1; k < LANES; k++) {
        sum += sums[k][mine];
        square += squares[k][mine];
    }
    double off = sum / (double)pixels;
    int64_t to = n * y.stride[0] + c * y.stride[1] + b * y.stride[2];
    ((double *)y.data)[to] = shift + off;
    ((double *)y.data)[to + channels * y.stride[1]] = square - off * sum;
}

cudaError_t vgk_cu_moments(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    dim3 grid((unsigned)a.y.dim[2], (unsigned)((a.x[0].dim[1] + CHANNELS - 1) / CHANNELS), (unsigned)a.x[0].dim[0]);
    return CU_LAUNCH(moments_kernel, grid, dim3(CHANNELS * LANES), 0, stream, a);
}

/* A thread has a set of channels: Chan's merge in the order of the blocks. */
__global__ void __launch_bounds__(CU_THREADS, 1) merge_kernel(struct cu_args a)
{
    const struct vgk_merge &p = a.op.p.merge;
    const struct vgk_tensor &x = a.x[0], &y = a.y;
    const int64_t channels = x.dim[1] / 2, each = p.groups ? channels / p.groups : 1, sets = channels / each;
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, n = i / sets, first = i % sets * each;
    if (n >= x.dim[0])
        return;
    double count = 0, mean = 0, squares = 0;
    for (int64_t b = 0; b < x.dim[2]; b++) {
        int64_t left = p.height - b * p.rows;
        double more = (double)((left < p.rows ? left : p.rows) * p.width);
        const double *at = (const double *)x.data + n * x.stride[0] + b * x.stride[2];
        for (int64_t c = first; c < first + each; c++) {
            double total = count + more, d = at[c * x.stride[1]] - mean;
            mean += d * more / total;
            squares += at[(channels + c) * x.stride[1]] + d * d * count * more / total;
            count = total;
        }
    }
    double variance = squares / count;
    variance = variance < 0 ? 0 : variance; /* NaN stays */
    for (int64_t c = first; c < first + each; c++) {
        double scale = a.x[1].type == VGK_NONE ? 1 : cu_load<double>(a.x[1], c * a.x[1].stride[0]);
        float *out = (float *)y.data + n * y.stride[0];
        out[c * y.stride[1]] = (float)mean;
        out[(channels + c) * y.stride[1]] = (float)(scale / sqrt(variance + (double)p.epsilon));
        out[(2 * channels + c) * y.stride[1]] = a.x[2].type == VGK_NONE ? 0 : cu_load<float>(a.x[2], c * a.x[2].stride[0]);
    }
}

cudaError_t vgk_cu_merge(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    int64_t channels = a.x[0].dim[1] / 2, sets = op->p.merge.groups ? op->p.merge.groups : channels;
    return CU_LAUNCH(merge_kernel, cu_blocks(a.x[0].dim[0] * sets, CU_THREADS), dim3(CU_THREADS), 0, stream, a);
}

__global__ void __launch_bounds__(CU_THREADS) normalise_kernel(struct cu_args a, struct cu_walk w)
{
    const struct vgk_normalise &p = a.op.p.normalise;
    const struct vgk_tensor &x = a.x[0], &r = a.x[2], &y = a.y;
    const float *figures = (const float *)a.x[1].data;
    int64_t o[VGK_MAX_RANK];
    float v[CU_PIECE], add[CU_PIECE] = {0};
    int n = cu_place(w, o), axis = w.axis[w.rank - 1];
    if (!n)
        return;
    cu_load_piece<float>(v, x, cu_offset(x, o), x.stride[axis], n);
    if (r.type != VGK_NONE)
        cu_load_piece<float>(add, r, cu_offset(r, o), r.stride[axis], n);
    for (int i = 0; i < n; i++) {
        int64_t c = o[1] + (axis == 1 ? i : 0), channels = x.dim[1];
        const float *f = figures + o[0] * a.x[1].stride[0];
        int64_t step = a.x[1].stride[1];
        v[i] = fmaf(v[i] - f[c * step], f[(channels + c) * step], f[(2 * channels + c) * step]);
        v[i] = cu_act(p.act, p.alpha, p.beta, 0, v[i]) + add[i];
    }
    cu_store_piece<float>(v, y, cu_offset(y, o), y.stride[axis], n);
}

cudaError_t vgk_cu_normalise(const struct vgk_op *op, cudaStream_t stream)
{
    struct cu_args a = cu_args_of(op);
    struct cu_walk w = cu_walk_of(&a.y);
    if (!w.total)
        return cudaSuccess;
    return CU_LAUNCH(normalise_kernel, cu_blocks(w.total, CU_THREADS), dim3(CU_THREADS), 0, stream, a, w);
}
