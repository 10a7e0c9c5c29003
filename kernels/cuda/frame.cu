/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames to tensors and back: every layout of kernels/frame.h, colour matrix, range, normalisation, padding. */
#include "pixels.h"

struct cu_frame_args {
    struct vgk_frame f, alpha;
    struct vgk_matrix m;
    struct vgk_tensor t;
    float low[3], high[3];
    bool has_alpha;
};

__device__ static inline float dot(const struct vgk_matrix &m, int k, const float c[3])
{
    return fmaf(c[0], m.m[k][0], fmaf(c[1], m.m[k][1], fmaf(c[2], m.m[k][2], m.m[k][3])));
}

/* A thread has a pixel of the tensor. */
__global__ void __launch_bounds__(CU_THREADS) frame_read_kernel(struct cu_frame_args a)
{
    const struct vgk_tensor &t = a.t;
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, y = i / t.dim[3], x = i % t.dim[3];
    if (y >= t.dim[2])
        return;
    int fx = x < a.f.width ? (int)x : a.f.width - 1, fy = y < a.f.height ? (int)y : a.f.height - 1;
    float c[3];
    for (int k = 0; k < 3; k++)
        c[k] = *component(a.f, k, fx, fy);
    for (int k = 0; k < 3; k++)
        cu_store(t, k * t.stride[1] + y * t.stride[2] + x * t.stride[3], dot(a.m, k, c));
}

/* Half to even, clamped; NaN is 0. */
__device__ static inline uint8_t quantise(float v) { return (uint8_t)(v > 0 ? rintf(v < 255 ? v : 255.0f) : 0); }

/* A thread has a pixel, or the 2 by 2 that share their chroma; a mean of one row or column is that of the same twice. */
__global__ void __launch_bounds__(CU_THREADS) frame_write_kernel(struct cu_frame_args a, struct vgk_cu_flags *flags)
{
    const struct vgk_tensor &t = a.t;
    const int unit = halved(a.f) ? 2 : 1, columns = (a.f.width + unit - 1) / unit;
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int y0 = (int)(i / columns) * unit, x0 = (int)(i % columns) * unit, bad = 0;
    if (y0 >= a.f.height)
        return;
    float v[2][2][3];
    for (int r = 0; r < unit; r++)
        for (int s = 0; s < unit; s++) {
            int x = x0 + s < a.f.width ? x0 + s : x0, y = y0 + r < a.f.height ? y0 + r : y0;
            float c[3];
            for (int k = 0; k < 3; k++) {
                float e = cu_load<float>(t, k * t.stride[1] + y * t.stride[2] + x * t.stride[3]);
                bad += !isfinite(e);
                e = e < a.low[k] ? a.low[k] : e;
                c[k] = e > a.high[k] ? a.high[k] : e;
            }
            for (int k = 0; k < 3; k++)
                v[r][s][k] = dot(a.m, k, c);
        }
    if (bad)
        atomicAdd(&flags->nonfinite, bad);
    for (int r = 0; r < unit && y0 + r < a.f.height; r++)
        for (int s = 0; s < unit && x0 + s < a.f.width; s++) {
            int x = x0 + s, y = y0 + r;
            for (int k = 0; k < (unit == 2 ? 1 : 3); k++)
                *component(a.f, k, x, y) = quantise(v[r][s][k]);
            if (a.f.layout != VGK_FRAME_PACKED || a.f.alpha < 0)
                continue;
            uint8_t alpha = 255;
            if (a.has_alpha) {
                int64_t ax = (int64_t)x * a.alpha.width / a.f.width, ay = (int64_t)y * a.alpha.height / a.f.height;
                alpha = a.alpha.plane[0][ay * a.alpha.stride[0] + ax * a.alpha.step + a.alpha.alpha];
            }
            a.f.plane[0][y * a.f.stride[0] + (ptrdiff_t)x * a.f.step + a.f.alpha] = alpha;
        }
    for (int k = 1; k < 3 && unit == 2; k++)
        *component(a.f, k, x0, y0) = quantise(((v[0][0][k] + v[0][1][k]) + (v[1][0][k] + v[1][1][k])) * 0.25f);
}

cudaError_t vgk_cu_frame_read(const struct vgk_frame *src, const struct vgk_matrix *m, const struct vgk_tensor *dst,
                              cudaStream_t stream)
{
    struct cu_frame_args a;
    memset(&a, 0, sizeof a);
    a.f = *src;
    a.m = *m;
    a.t = *dst;
    return CU_LAUNCH(frame_read_kernel, cu_blocks(dst->dim[2] * dst->dim[3], CU_THREADS), dim3(CU_THREADS), 0, stream, a);
}

cudaError_t vgk_cu_frame_write(const struct vgk_tensor *src, const struct vgk_matrix *m, const float low[3],
                               const float high[3], const struct vgk_frame *alpha, const struct vgk_frame *dst,
                               struct vgk_cu_flags *flags, cudaStream_t stream)
{
    struct cu_frame_args a;
    memset(&a, 0, sizeof a);
    a.f = *dst;
    a.m = *m;
    a.t = *src;
    a.has_alpha = alpha && alpha->layout == VGK_FRAME_PACKED && alpha->alpha >= 0;
    if (a.has_alpha)
        a.alpha = *alpha;
    for (int k = 0; k < 3; k++) {
        a.low[k] = low[k];
        a.high[k] = high[k];
    }
    int unit = vgk_frame_halved(dst) ? 2 : 1;
    int64_t n = (int64_t)((dst->height + unit - 1) / unit) * ((dst->width + unit - 1) / unit);
    return CU_LAUNCH(frame_write_kernel, cu_blocks(n, CU_THREADS), dim3(CU_THREADS), 0, stream, a, flags);
}
