/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Convolutions without cuDNN: a matrix product of pixels by (tap, channel) with (tap, channel) by output channels, whose
 * left side is gathered while it runs.  Sums go over (tap, channel) in that order for every pixel, so a pixel's bits do
 * not depend on where it lies. */
#include "elements.h"

#define S VGK_MAX_SPATIAL

/* Spatial dimensions filled up to three from the left. */
struct cu_conv {
    struct cu_args a;
    bool transposed;
    int cin, cout, depth; /* of a group; depth: taps * cin */
    int size[S], out[S], kernel[S], stride[S], dilation[S], begin[S], end[S];
    int64_t in_step[S], out_step[S], residual_step[S]; /* elements */
    int64_t pixels;                                    /* of all images */
    const void *weights;
};

static struct cu_conv cu_conv_of(const struct vgk_op *op, const void *packed)
{
    struct cu_conv c;
    const struct vgk_conv *p = &op->p.conv;
    memset(&c, 0, sizeof c);
    c.a = cu_args_of(op);
    c.transposed = op->kind == VGK_OP_CONV_TRANSPOSE;
    c.weights = packed;
    const struct vgk_tensor *x = &c.a.x[0], *y = &c.a.y, *r = &c.a.x[5];
    c.cin = (int)(x->dim[1] / p->groups);
    c.cout = (int)(y->dim[1] / p->groups);
    c.depth = c.cin;
    c.pixels = y->dim[0];
    for (int k = 0; k < S; k++) {
        int d = k - (S - p->spatial);
        c.size[k] = c.out[k] = c.kernel[k] = c.stride[k] = c.dilation[k] = 1;
        if (d < 0)
            continue;
        c.size[k] = (int)x->dim[2 + d];
        c.out[k] = (int)y->dim[2 + d];
        c.kernel[k] = p->kernel[d];
        c.stride[k] = p->stride[d];
        c.dilation[k] = p->dilation[d];
        c.begin[k] = p->pad_begin[d];
        c.end[k] = p->pad_end[d];
        c.in_step[k] = x->stride[2 + d];
        c.out_step[k] = y->stride[2 + d];
        c.residual_step[k] = r->type == VGK_NONE ? 0 : r->stride[2 + d];
        c.depth *= c.kernel[k];
        c.pixels *= c.out[k];
    }
    return c;
}

/* The input index that tap k of output index o reads; -1 = none. */
__device__ static inline int conv_source(const struct cu_conv &c, int axis, int o, int k)
{
    if (c.transposed) {
        int i = o + c.begin[axis] - k * c.dilation[axis];
        return i >= 0 && i % c.stride[axis] == 0 && i / c.stride[axis] < c.size[axis] ? i / c.stride[axis] : -1;
    }
    int i = o * c.stride[axis] + k * c.dilation[axis], begin = c.begin[axis];
    if (begin < 0) /* rows that are there, but not for the first tap: they may still be reflected */
        i -= begin;
    int at = i - (begin > 0 ? begin : 0);
    if (at >= 0 && at < c.size[axis])
        return at;
    return (int)cu_pad_source(c.a.op.p.conv.pad_mode, c.size[axis], begin < 0 ? 0 : begin,
                              c.end[axis] < 0 ? 0 : c.end[axis], i);
}

struct cu_pixel {
    int n, o[S];
};

__device__ static inline struct cu_pixel conv_pixel(const struct cu_conv &c, int64_t i)
{
    struct cu_pixel p;
    for (int k = S - 1; k >= 0; k--) {
        p.o[k] = (int)(i % c.out[k]);
        i /= c.out[k];
    }
    p.n = (int)i;
    return p;
}

#define NOWHERE INT64_MIN /* strides may be negative, and offsets with them */

/* Where tap `tap` of the pixel reads, channel 0 of the tensor. */
__device__ static inline int64_t conv_tap(const struct cu_conv &c, const struct cu_pixel &p, int tap)
{
    int kx = tap % c.kernel[2], ky = tap / c.kernel[2] % c.kernel[1], kz = tap / c.kernel[2] / c.kernel[1];
    int z = conv_source(c, 0, p.o[0], kz), y = conv_source(c, 1, p.o[1], ky), x = conv_source(c, 2, p.o[2], kx);
    if (z < 0 || y < 0 || x < 0)
        return NOWHERE;
    return p.n * c.a.x[0].stride[0] + z * c.in_step[0] + y * c.in_step[1] + x * c.in_step[2];
}

__device__ static inline float conv_weight(const struct cu_conv &c, int64_t i)
{
    return c.a.x[0].type == VGK_F16 ? __half2float(((const half *)c.weights)[i]) : ((const float *)c.weights)[i];
}

__device__ static inline float unit(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

/* Those of convolutions only, and the others. */
__device__ static inline float conv_act(const struct vgk_conv &q, float slope, float x)
{
    const float alpha = q.alpha, beta = q.beta;
    switch (q.act) {
    case VGK_ACT_ELU: return x < 0 ? alpha * expm1f(x) : x;
    case VGK_ACT_HARD_SIGMOID: return unit(alpha * x + beta);
    case VGK_ACT_HARD_SWISH: return x * unit(x / 6 + 0.5f);
    case VGK_ACT_GELU_ERF: return 0.5f * x * (1 + erff(x * 0.70710678f));
    case VGK_ACT_GELU_TANH: return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    default: return cu_act(q.act, alpha, beta, slope, x);
    }
}

/* Scale, shift, activation, residual for `n` channels from `channel` on, and away with them. */
template <int N>
__device__ static inline void conv_finish(const struct cu_conv &c, const struct cu_pixel &p, int channel, int n,
                                          float v[N])
{
    const struct vgk_conv &q = c.a.op.p.conv;
    const struct vgk_tensor &shift = c.a.x[2], &scale = c.a.x[3], &slope = c.a.x[4], &r = c.a.x[5], &y = c.a.y;
    for (int i = 0; i < N; i++) {
        if (i >= n)
            break;
        int ch = channel + i;
        float f = v[i];
        if (scale.type != VGK_NONE)
            f *= cu_load<float>(scale, ch * scale.stride[0]);
        if (shift.type != VGK_NONE)
            f += cu_load<float>(shift, ch * shift.stride[0]);
        float add = r.type == VGK_NONE ? 0
                                       : cu_load<float>(r, p.n * r.stride[0] + ch * r.stride[1] +
                                                               p.o[0] * c.residual_step[0] +
                                                               p.o[1] * c.residual_step[1] + p.o[2] * c.residual_step[2]);
        if (q.residual_before_act)
            f += add;
        f = conv_act(q, slope.type == VGK_NONE ? 0 : cu_load<float>(slope, ch * slope.stride[0]), f);
        v[i] = q.residual_before_act ? f : f + add;
    }
    int64_t at = p.n * y.stride[0] + channel * y.stride[1] + p.o[0] * c.out_step[0] + p.o[1] * c.out_step[1] +
                 p.o[2] * c.out_step[2];
    half *h = (half *)y.data + at;
    if (N % 4 == 0 && n == N && y.type == VGK_F16 && y.stride[1] == 1 && ((uintptr_t)h & 7) == 0) {
        for (int i = 0; i + 4 <= N; i += 4) {
            half2 two[2] = {__floats2half2_rn(v[i], v[i + 1]), __floats2half2_rn(v[i + 2], v[i + 3])};
            uint2 u;
            memcpy(&u, two, sizeof u);
            *(uint2 *)(h + i) = u;
        }
        return;
    }
    for (int i = 0; i < N; i++)
        if (i < n)
            cu_store(y, at + i * y.stride[1], v[i]);
}

/* --- products --- */

#define DEPTH 16 /* of a step */
#define MINE 4   /* pixels of a thread */

/* A block has BM pixels by BN channels, a thread MINE pixels by TN channels: BM / MINE * (BN / TN) = 256 threads. */
template <int BM, int BN, int TN> __global__ void __launch_bounds__(256) conv_kernel(struct cu_conv c)
{
    __shared__ float left[DEPTH][BM + 4], right[DEPTH][BN + 4];
    const int t = threadIdx.x, group = blockIdx.z, columns = BN / TN;
    const int64_t first = (int64_t)blockIdx.x * BM;
    const int channel0 = blockIdx.y * BN;
    const struct vgk_tensor &x = c.a.x[0];
    const int64_t weights = (int64_t)group * c.depth * c.cout;
    float sum[MINE][TN];
    for (int i = 0; i < MINE; i++)
        for (int j = 0; j < TN; j++)
            sum[i][j] = 0;

    /* What this thread brings to the left side: 4 depths of a pixel, for BM / 64 pixels. */
    const int quad = t % 4 * 4;
    struct cu_pixel from[BM / 64];
    for (int i = 0; i < BM / 64; i++) {
        int64_t p = first + t / 4 + i * 64;
        from[i] = conv_pixel(c, p < c.pixels ? p : c.pixels - 1);
    }
    for (int k0 = 0; k0 < c.depth; k0 += DEPTH) {
        for (int i = 0; i < BM / 64; i++) {
            int k = k0 + quad, pixel = t / 4 + i * 64, before = -1;
            int64_t at = NOWHERE;
            for (int j = 0; j < 4; j++, k++) {
                float v = 0;
                int tap = k / c.cin;
                if (k < c.depth) {
                    if (tap != before)
                        at = conv_tap(c, from[i], tap);
                    before = tap;
                    if (at != NOWHERE)
                        v = cu_load<float>(x, at + (group * c.cin + k - tap * c.cin) * x.stride[1]);
                }
                left[quad + j][pixel] = v;
            }
        }
        for (int i = t; i < DEPTH * BN; i += 256) {
            int k = k0 + i / BN, ch = channel0 + i % BN;
            right[i / BN][i % BN] = k < c.depth && ch < c.cout ? conv_weight(c, weights + (int64_t)k * c.cout + ch) : 0;
        }
        __syncthreads();
        int steps = c.depth - k0 < DEPTH ? c.depth - k0 : DEPTH;
        for (int k = 0; k < steps; k++) {
            float l[MINE], r[TN];
            for (int i = 0; i < MINE; i++)
                l[i] = left[k][t / columns * MINE + i];
            for (int j = 0; j < TN; j++)
                r[j] = right[k][t % columns * TN + j];
            for (int i = 0; i < MINE; i++)
                for (int j = 0; j < TN; j++)
                    sum[i][j] = fmaf(l[i], r[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < MINE; i++) {
        int64_t pixel = first + t / columns * MINE + i;
        int ch = channel0 + t % columns * TN, n = c.cout - ch < TN ? c.cout - ch : TN;
        if (pixel < c.pixels && n > 0)
            conv_finish<TN>(c, conv_pixel(c, pixel), group * c.cout + ch, n, sum[i]);
    }
}

/* One input and one output channel a group: a thread has eight channels of a pixel. */
__global__ void __launch_bounds__(CU_THREADS, 1) depthwise_kernel(struct cu_conv c)
{
    const struct vgk_tensor &x = c.a.x[0];
    int channels = (int)x.dim[1], pieces = (channels + CU_PIECE - 1) / CU_PIECE;
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= c.pixels * pieces)
        return;
    struct cu_pixel p = conv_pixel(c, i / pieces);
    int channel = (int)(i % pieces) * CU_PIECE, n = channels - channel < CU_PIECE ? channels - channel : CU_PIECE;
    float sum[CU_PIECE] = {0}, v[CU_PIECE];
    for (int tap = 0; tap < c.depth; tap++) {
        int64_t at = conv_tap(c, p, tap);
        if (at == NOWHERE)
            continue;
        cu_load_piece<float>(v, x, at + channel * x.stride[1], x.stride[1], n);
        for (int k = 0; k < n; k++)
            sum[k] = fmaf(v[k], conv_weight(c, (int64_t)tap * channels + channel + k), sum[k]);
    }
    conv_finish<CU_PIECE>(c, p, channel, n, sum);
}

cudaError_t vgk_cu_conv(const struct vgk_op *op, const void *packed, cudaStream_t stream)
{
    struct cu_conv c = cu_conv_of(op, packed);
    unsigned groups = (unsigned)op->p.conv.groups;
    if (!c.pixels || !c.cout)
        return cudaSuccess;
    if (c.cin == 1 && c.cout == 1 && groups > 1) {
        int64_t pieces = (groups + CU_PIECE - 1) / CU_PIECE;
        return CU_LAUNCH(depthwise_kernel, cu_blocks(c.pixels * pieces, CU_THREADS), dim3(CU_THREADS), 0, stream, c);
    }
    if (c.cout <= 16)
        return CU_LAUNCH((conv_kernel<128, 16, 2>), dim3((unsigned)((c.pixels + 127) / 128), 1, groups), dim3(256), 0,
                         stream, c);
    return CU_LAUNCH((conv_kernel<64, 64, 4>),
                     dim3((unsigned)((c.pixels + 63) / 64), (unsigned)((c.cout + 63) / 64), groups), dim3(256), 0, stream,
                     c);
}
