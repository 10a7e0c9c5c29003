/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Products of bf16 by AMX's tiles: eight registers of 16 rows by 64 bytes.  Four are sums of 32 rows by 32 columns, two are
 * rows of a, two are pairs of rows of b. */
#include "bf16.h"
#include "bf16_step.h"

#include <string.h>

enum { TILE = 16, DEPTH = 32 };

#ifdef VGK_BF16_EMULATED
static _Thread_local struct {
    _Alignas(64) unsigned char row[TILE][64];
} tile[8];

static void tile_zero(int t) { memset(tile[t].row, 0, sizeof tile[t].row); }

static void tile_load(int t, const void *from, ptrdiff_t stride)
{
    for (int r = 0; r < TILE; r++)
        memcpy(tile[t].row[r], (const char *)from + r * stride, sizeof tile[t].row[r]);
}

static void tile_store(int t, void *to, ptrdiff_t stride)
{
    for (int r = 0; r < TILE; r++)
        memcpy((char *)to + r * stride, tile[t].row[r], sizeof tile[t].row[r]);
}

static float widened(const uint16_t *h)
{
    uint32_t u = (uint32_t)*h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* tdpbf16ps: lower and upper ones of pairs add up apart, from 0; then their sum is added to what was there. */
static void tile_dot(int to, int a, int b)
{
    for (int r = 0; r < TILE; r++) {
        const uint16_t *x = (const uint16_t *)tile[a].row[r];
        float *c = (float *)tile[to].row[r], lower[TILE] = {0}, upper[TILE] = {0};
        for (int k = 0; k < TILE; k++) {
            const uint16_t *y = (const uint16_t *)tile[b].row[k];
            float x0 = widened(x + 2 * k), x1 = widened(x + 2 * k + 1);
            for (int j = 0; j < TILE; j++) {
                lower[j] = bf16_step(lower[j], x0, widened(y + 2 * j));
                upper[j] = bf16_step(upper[j], x1, widened(y + 2 * j + 1));
            }
        }
        for (int j = 0; j < TILE; j++)
            c[j] = bf16_flush(bf16_flush(c[j]) + bf16_flush(lower[j] + upper[j]));
    }
}

static void begin(void) {}
static void end(void) {}
#else
#include <immintrin.h>
#define tile_zero _tile_zero
#define tile_load _tile_loadd
#define tile_store _tile_stored
#define tile_dot _tile_dpbf16ps

/* All tiles at their full size.  A constant: gcc's intrinsic does not say that it reads more than a pointer's bytes. */
static void begin(void)
{
    static const struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                .rows = {TILE, TILE, TILE, TILE, TILE, TILE, TILE, TILE}};
    _tile_loadconfig(&config);
}

static void end(void) { _tile_release(); }
#endif

static void block_1(int n, const struct vgk_bf16_segment *seg, ptrdiff_t len, ptrdiff_t lda, float *c)
{
    const ptrdiff_t row = TILE * sizeof(float);
    tile_zero(0);
    tile_zero(2);
    for (int s = 0; s < n; s++) {
        const uint16_t *a = seg[s].a, *b = seg[s].b;
        for (ptrdiff_t k = 0; k < len; k += DEPTH, a += DEPTH, b += DEPTH * TILE) {
            tile_load(4, a, lda * 2);
            tile_load(5, a + TILE * lda, lda * 2);
            tile_load(6, b, row);
            tile_dot(0, 4, 6);
            tile_dot(2, 5, 6);
        }
    }
    tile_store(0, c, row);
    tile_store(2, c + TILE * TILE, row);
}

static void block_2(int n, const struct vgk_bf16_segment *seg, ptrdiff_t len, ptrdiff_t lda, float *c)
{
    const ptrdiff_t row = 2 * TILE * sizeof(float);
    tile_zero(0);
    tile_zero(1);
    tile_zero(2);
    tile_zero(3);
    for (int s = 0; s < n; s++) {
        const uint16_t *a = seg[s].a, *b = seg[s].b;
        for (ptrdiff_t k = 0; k < len; k += DEPTH, a += DEPTH, b += 2 * DEPTH * TILE) {
            tile_load(4, a, lda * 2);
            tile_load(5, a + TILE * lda, lda * 2);
            tile_load(6, b, row);
            tile_load(7, b + 2 * TILE, row);
            tile_dot(0, 4, 6);
            tile_dot(1, 4, 7);
            tile_dot(2, 5, 6);
            tile_dot(3, 5, 7);
        }
    }
    tile_store(0, c, row);
    tile_store(1, c + TILE, row);
    tile_store(2, c + 2 * TILE * TILE, row);
    tile_store(3, c + 2 * TILE * TILE + TILE, row);
}

const struct vgk_bf16 vgk_bf16_amx = {
    .how = "bf16 products by AMX",
    .depth = DEPTH,
    .rows = {0, 2 * TILE, 2 * TILE},
    .block = {NULL, block_1, block_2},
    .begin = begin,
    .end = end,
};
