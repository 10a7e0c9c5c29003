/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "micro.h"
#include "simd.h"

INLINE void micro(const int mr, const int nv, int segments, const struct vgk_segment *seg, ptrdiff_t len, ptrdiff_t lda,
                  float *c, ptrdiff_t ldc)
{
    /* Constant bounds, not mr x nv: an array of parameters' size would stay in memory. */
    vf acc[VGK_MICRO_ROWS][VGK_MICRO_WIDTH];
    UNROLL(16)
    for (int r = 0; r < mr; r++) {
        UNROLL(4)
        for (int v = 0; v < nv; v++)
            acc[r][v] = (vf){0};
    }
    for (int s = 0; s < segments; s++) {
        const float *a = seg[s].a, *b = seg[s].b;
        for (ptrdiff_t k = 0; k < len; k++, b += nv * VL, a++) {
            vf bv[VGK_MICRO_WIDTH];
            UNROLL(4)
            for (int v = 0; v < nv; v++)
                bv[v] = load(b + v * VL);
            UNROLL(16)
            for (int r = 0; r < mr; r++) {
                UNROLL(4)
                for (int v = 0; v < nv; v++)
                    acc[r][v] += a[r * lda] * bv[v];
            }
        }
    }
    UNROLL(16)
    for (int r = 0; r < mr; r++) {
        UNROLL(4)
        for (int v = 0; v < nv; v++)
            store(c + r * ldc + v * VL, acc[r][v]);
    }
}

#define MICRO(MR, NV) \
    static void micro_##MR##_##NV(int n, const struct vgk_segment *seg, ptrdiff_t len, ptrdiff_t lda, float *c, \
                                  ptrdiff_t ldc) \
    { \
        micro(MR, NV, n, seg, len, lda, c, ldc); \
    }
#define EACH_4(F, NV) F(1, NV) F(2, NV) F(3, NV) F(4, NV)
#define EACH_6(F, NV) EACH_4(F, NV) F(5, NV) F(6, NV)
#define EACH_8(F, NV) EACH_6(F, NV) F(7, NV) F(8, NV)
#define EACH_10(F, NV) EACH_8(F, NV) F(9, NV) F(10, NV)
#define EACH_12(F, NV) EACH_10(F, NV) F(11, NV) F(12, NV)
#define EACH_14(F, NV) EACH_12(F, NV) F(13, NV) F(14, NV)

/* The largest blocks whose accumulators, one row of b and one element of a fit the registers. */
#if VECTOR_REGISTERS == 32
#define ROWS {0, 14, 12, 8}
#define SPEED {0, 0.8f, 1, 1}
#define EACH(F) EACH_14(F, 1) EACH_12(F, 2) EACH_8(F, 3)
#else
#define ROWS {0, 10, 6, 4}
#define SPEED {0, 0.85f, 1, 0.95f}
#define EACH(F) EACH_10(F, 1) EACH_6(F, 2) EACH_4(F, 3)
#endif

EACH(MICRO)

#define ENTRY(MR, NV) [NV][MR] = micro_##MR##_##NV,
const struct vgk_micro VGK_SET(vgk_micro) = {.vl = VL, .rows = ROWS, .speed = SPEED, .fn = {EACH(ENTRY)}};
