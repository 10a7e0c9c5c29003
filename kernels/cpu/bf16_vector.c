/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Products of bf16 by vdpbf16ps. */
#include "bf16.h"
#include "bf16_step.h"
#include "simd.h"

INLINE vf load_floats(const void *p) { return *(const vf_any *)p; }

/* acc + the products of pairs: vdpbf16ps. */
INLINE vf dot(vf acc, vi a, vi b)
{
#ifdef VGK_BF16_EMULATED
    const vi upper = (vi){0} + (int32_t)0xffff0000;
    float sum[VL], x[VL], y[VL];
    store(sum, acc);
    store(x, (vf)(a & upper));
    store(y, (vf)(b & upper));
    for (int i = 0; i < VL; i++) /* the upper ones first */
        sum[i] = bf16_step(sum[i], x[i], y[i]);
    store(x, (vf)(a << 16));
    store(y, (vf)(b << 16));
    for (int i = 0; i < VL; i++)
        sum[i] = bf16_step(sum[i], x[i], y[i]);
    return load(sum);
#else
    return (vf)_mm512_dpbf16_ps((__m512)acc, (__m512bh)a, (__m512bh)b);
#endif
}

enum { ROWS_1 = 24, ROWS_2 = 12 }; /* accumulators, a row of b and an element of a fill the registers */

INLINE void block(const int mr, const int nv, int segments, const struct vgk_bf16_segment *seg, ptrdiff_t len, ptrdiff_t lda,
                  float *c)
{
    vf acc[ROWS_1][VGK_BF16_VECTORS];
    UNROLL(24)
    for (int r = 0; r < mr; r++) {
        UNROLL(2)
        for (int v = 0; v < nv; v++)
            acc[r][v] = (vf){0};
    }
    for (int s = 0; s < segments; s++) {
        const uint16_t *a = seg[s].a, *b = seg[s].b;
        for (ptrdiff_t k = 0; k < len; k += 2, a += 2, b += 2 * nv * VL) {
            vi bv[VGK_BF16_VECTORS];
            UNROLL(2)
            for (int v = 0; v < nv; v++)
                bv[v] = (vi)load_floats(b + 2 * v * VL);
            UNROLL(24)
            for (int r = 0; r < mr; r++) {
                int32_t pair;
                __builtin_memcpy(&pair, a + r * lda, sizeof pair);
                UNROLL(2)
                for (int v = 0; v < nv; v++)
                    acc[r][v] = dot(acc[r][v], (vi){0} + pair, bv[v]);
            }
        }
    }
    UNROLL(24)
    for (int r = 0; r < mr; r++) {
        UNROLL(2)
        for (int v = 0; v < nv; v++)
            store(c + (r * nv + v) * VL, acc[r][v]);
    }
}

static void block_1(int n, const struct vgk_bf16_segment *seg, ptrdiff_t len, ptrdiff_t lda, float *c)
{
    block(ROWS_1, 1, n, seg, len, lda, c);
}

static void block_2(int n, const struct vgk_bf16_segment *seg, ptrdiff_t len, ptrdiff_t lda, float *c)
{
    block(ROWS_2, 2, n, seg, len, lda, c);
}

static void nothing(void) {}

const struct vgk_bf16 vgk_bf16_avx512 = {
    .how = "bf16 products by AVX512-BF16",
    .depth = 2,
    .rows = {0, ROWS_1, ROWS_2},
    .block = {NULL, block_1, block_2},
    .begin = nothing,
    .end = nothing,
};
