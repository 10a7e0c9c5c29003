/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two frames of one layout and size as the bytes of their planes. */
#include "elements.h"

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
