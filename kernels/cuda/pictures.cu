/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames as they are, not for a net: two of one layout and size, byte by byte; and their components, made smaller. */
#include "pixels.h"

#define PIECE 16 /* bytes of a thread: within a row */

/* Pieces of all planes. */
static int64_t count(const struct vgk_cu_pictures *p)
{
    int64_t n = 0;
    for (int i = 0; i < 3; i++)
        n += (p->bytes[i] + PIECE - 1) / PIECE * p->rows[i];
    return n;
}

/* Piece i: its place in both; returns how many bytes it has, 0: there is no such piece. */
__device__ static inline int piece(const struct vgk_cu_pictures &p, int64_t i, uint8_t **a, const uint8_t **b)
{
    for (int k = 0; k < 3; k++) {
        int64_t across = (p.bytes[k] + PIECE - 1) / PIECE, n = across * p.rows[k];
        if (i < n) {
            int64_t y = i / across, x = i % across * PIECE;
            *a = p.a[k] + y * p.a_stride[k] + x;
            *b = p.b[k] + y * p.b_stride[k] + x;
            return (int)(p.bytes[k] - x < PIECE ? p.bytes[k] - x : PIECE);
        }
        i -= n;
    }
    *a = NULL;
    *b = NULL;
    return 0;
}

__device__ static inline bool whole(int n, const uint8_t *a, const uint8_t *b)
{
    return n == PIECE && cu_aligned(a) && cu_aligned(b);
}

/* *differ must be 0.  Where it is not any more, the rest does not matter. */
__global__ void __launch_bounds__(CU_THREADS) same_kernel(struct vgk_cu_pictures p, volatile int *differ)
{
    uint8_t *a;
    const uint8_t *b;
    if (*differ)
        return;
    int n = piece(p, (int64_t)blockIdx.x * blockDim.x + threadIdx.x, &a, &b);
    bool differs = false;
    if (whole(n, a, b)) {
        uint4 u = *(const uint4 *)a, v = *(const uint4 *)b;
        differs = u.x != v.x || u.y != v.y || u.z != v.z || u.w != v.w;
    } else {
        for (int i = 0; i < n; i++)
            differs |= a[i] != b[i];
    }
    if (differs)
        *differ = 1;
}

cudaError_t vgk_cu_same(const struct vgk_cu_pictures *pair, int *differ, cudaStream_t stream)
{
    struct vgk_cu_pictures p = *pair;
    return CU_LAUNCH(same_kernel, cu_blocks(count(pair), CU_THREADS), dim3(CU_THREADS), 0, stream, p, differ);
}

/* a becomes (parts of b) * before + a * now, of all; see model/fade.h. */
__global__ void __launch_bounds__(CU_THREADS) fade_kernel(struct vgk_cu_pictures p, unsigned before, unsigned now)
{
    const unsigned all = before + now;
    uint8_t *a, v[PIECE], w[PIECE];
    const uint8_t *b;
    int n = piece(p, (int64_t)blockIdx.x * blockDim.x + threadIdx.x, &a, &b);
    bool at_once = whole(n, a, b);
    if (at_once) {
        uint4 u = *(const uint4 *)a, t = *(const uint4 *)b;
        memcpy(v, &u, sizeof v);
        memcpy(w, &t, sizeof w);
    } else {
        for (int i = 0; i < PIECE; i++) {
            v[i] = i < n ? a[i] : 0;
            w[i] = i < n ? b[i] : 0;
        }
    }
    for (int i = 0; i < PIECE; i++)
        v[i] = (uint8_t)((w[i] * before + v[i] * now + all / 2) / all);
    if (at_once) {
        uint4 u;
        memcpy(&u, v, sizeof v);
        *(uint4 *)a = u;
    } else {
        for (int i = 0; i < PIECE; i++)
            if (i < n)
                a[i] = v[i];
    }
}

cudaError_t vgk_cu_fade(const struct vgk_cu_pictures *pair, unsigned before, unsigned now, cudaStream_t stream)
{
    struct vgk_cu_pictures p = *pair;
    return CU_LAUNCH(fade_kernel, cu_blocks(count(pair), CU_THREADS), dim3(CU_THREADS), 0, stream, p, before, now);
}

/* A component's samples: all of it, or a quarter where chroma is halved. */
__host__ __device__ static inline int samples(const struct vgk_frame &f, int k, int pixels)
{
    return k && halved(f) ? (pixels + 1) / 2 : pixels;
}

__device__ static inline uint8_t *sample(const struct vgk_frame &f, int k, int u, int v)
{
    int each = k && halved(f) ? 2 : 1;
    return component(f, k, u * each, v * each);
}

static int64_t all_samples(const struct vgk_frame *f)
{
    int64_t n = 0;
    for (int k = 0; k < 3; k++)
        n += (int64_t)samples(*f, k, f->width) * samples(*f, k, f->height);
    return n;
}

/* Sample i of all components; false: there is none. */
__device__ static inline bool find(const struct vgk_frame &f, int64_t i, int *k, int *u, int *v)
{
    for (*k = 0; *k < 3; ++*k) {
        int64_t w = samples(f, *k, f.width), n = w * samples(f, *k, f.height);
        *u = (int)(i % w);
        *v = (int)(i / w);
        if (i < n)
            return true;
        i -= n;
    }
    return false;
}

/* A thread has a sample of `to`: the mean of what it covers, as model/frames.c has it. */
__global__ void __launch_bounds__(CU_THREADS) shrink_kernel(struct vgk_frame from, struct vgk_frame to)
{
    int k, u, v;
    if (!find(to, (int64_t)blockIdx.x * blockDim.x + threadIdx.x, &k, &u, &v))
        return;
    int64_t width = samples(from, k, from.width), height = samples(from, k, from.height);
    int across = samples(to, k, to.width), down = samples(to, k, to.height);
    int left = (int)(u * width / across), right = (int)((u + 1) * width / across);
    int top = (int)(v * height / down), end = (int)((v + 1) * height / down);
    right += right == left;
    end += end == top;
    unsigned sum = 0, n = (unsigned)((right - left) * (end - top));
    for (int y = top; y < end; y++)
        for (int x = left; x < right; x++)
            sum += *sample(from, k, x, y);
    *sample(to, k, u, v) = (uint8_t)((sum + n / 2) / n);
}

cudaError_t vgk_cu_shrink(const struct vgk_frame *from, const struct vgk_frame *to, cudaStream_t stream)
{
    struct vgk_frame a = *from, b = *to;
    return CU_LAUNCH(shrink_kernel, cu_blocks(all_samples(to), CU_THREADS), dim3(CU_THREADS), 0, stream, a, b);
}

/* The pixel in the middle of what each of `to` covers; as model/scenecut.c has it. */
__global__ void __launch_bounds__(CU_THREADS) brightness_kernel(struct vgk_frame f, int width, int height, uint8_t *to)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (int64_t)width * height)
        return;
    int x = (int)((2 * (i % width) + 1) * f.width / (2 * width));
    int y = (int)((2 * (i / width) + 1) * f.height / (2 * height));
    int c = *component(f, 0, x, y);
    to[i] = (uint8_t)(halved(f) ? c : (c + 2 * *component(f, 1, x, y) + *component(f, 2, x, y)) / 4);
}

cudaError_t vgk_cu_brightness(const struct vgk_frame *frame, int width, int height, uint8_t *to, cudaStream_t stream)
{
    struct vgk_frame f = *frame;
    return CU_LAUNCH(brightness_kernel, cu_blocks((int64_t)width * height, CU_THREADS), dim3(CU_THREADS), 0, stream, f,
                     width, height, to);
}

__global__ void __launch_bounds__(CU_THREADS) difference_kernel(struct vgk_frame a, struct vgk_frame b,
                                                                struct vgk_cu_result *result)
{
    int k, u, v, off = 0;
    if (find(a, (int64_t)blockIdx.x * blockDim.x + threadIdx.x, &k, &u, &v))
        off = abs(*sample(a, k, u, v) - *sample(b, k, u, v));
    unsigned sum = (unsigned)off;
    for (int lane = 16; lane; lane /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (off)
        atomicMax(&result->worst, off);
    if (threadIdx.x % 32 == 0 && sum)
        atomicAdd(&result->sum, (unsigned long long)sum);
}

cudaError_t vgk_cu_difference(const struct vgk_frame *a, const struct vgk_frame *b, struct vgk_cu_result *result,
                              cudaStream_t stream)
{
    struct vgk_frame x = *a, y = *b;
    return CU_LAUNCH(difference_kernel, cu_blocks(all_samples(a), CU_THREADS), dim3(CU_THREADS), 0, stream, x, y,
                     result);
}
