/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pixels are worked on in groups of a fixed number, as planes: unpack, matrix, pack.  A row's last group is filled with
 * its last pixel, so a pixel's arithmetic is the same wherever it stands. */
#include "frame_vector.h"
#include "simd.h"

#include <string.h>

enum { GROUP = 64 };

/* ---- frame to planes ---- */

static void take3(const uint8_t *restrict p, uint8_t *restrict a, uint8_t *restrict b, uint8_t *restrict c)
{
    for (int i = 0; i < GROUP; i++) {
        a[i] = p[3 * i];
        b[i] = p[3 * i + 1];
        c[i] = p[3 * i + 2];
    }
}

static void take4(const uint8_t *restrict p, int shift, uint8_t *restrict out)
{
    for (int i = 0; i < GROUP; i++) {
        uint32_t v;
        memcpy(&v, p + 4 * i, 4);
        out[i] = (uint8_t)(v >> shift);
    }
}

static void take_half(const uint8_t *restrict p, uint8_t *restrict out)
{
    for (int i = 0; i < GROUP / 2; i++)
        out[2 * i] = out[2 * i + 1] = p[i];
}

static void take_half2(const uint8_t *restrict p, uint8_t *restrict out)
{
    for (int i = 0; i < GROUP / 2; i++)
        out[2 * i] = out[2 * i + 1] = p[2 * i];
}

/* Where a byte of a 32-bit pixel stands in the number. */
static int shift_of(int byte)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return 24 - 8 * byte;
#else
    return 8 * byte;
#endif
}

/* Pixels x0 .. x0 + GROUP of the line; x0 is a multiple of GROUP. */
static void unpack(const struct vgk_line *l, int x0, uint8_t c[3][GROUP])
{
    int last = l->width - 1;
    if (x0 + GROUP <= l->width) {
        const uint8_t *p = l->packed ? l->base + (ptrdiff_t)x0 * l->step[0] : NULL;
        if (p && l->step[0] == 3) {
            int at[3];
            for (int k = 0; k < 3; k++)
                at[l->offset[k]] = k;
            take3(p, c[at[0]], c[at[1]], c[at[2]]);
            return;
        }
        for (int k = 0; k < 3; k++) {
            const uint8_t *s = l->p[k] + (ptrdiff_t)(l->half && k ? x0 / 2 : x0) * l->step[k];
            if (p && l->step[0] == 4)
                take4(p, shift_of(l->offset[k]), c[k]);
            else if (l->half && k && l->step[k] == 1)
                take_half(s, c[k]);
            else if (l->half && k && x0 + GROUP < l->width) /* the last sample has no other behind it to step over */
                take_half2(s, c[k]);
            else
                for (int i = 0; i < GROUP; i++)
                    c[k][i] = s[(ptrdiff_t)(l->half && k ? i / 2 : i) * l->step[k]];
        }
        return;
    }
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < GROUP; i++) {
            int x = x0 + i < last ? x0 + i : last;
            c[k][i] = l->p[k][(ptrdiff_t)(l->half && k ? x / 2 : x) * l->step[k]];
        }
}

/* ---- the matrix ---- */

static void multiply(const struct vgk_matrix *m, float in[3][GROUP], float out[3][GROUP])
{
    for (int i = 0; i < GROUP; i += VL) {
        vf a = load(in[0] + i), b = load(in[1] + i), c = load(in[2] + i);
        for (int k = 0; k < 3; k++)
            store(out[k] + i, a * m->m[k][0] + (b * m->m[k][1] + (c * m->m[k][2] + m->m[k][3])));
    }
}

/* ---- planes to tensor ---- */

static void put_pixels(const float *restrict a, const float *restrict b, const float *restrict c, float *restrict d)
{
    for (int i = 0; i < GROUP; i++) {
        d[3 * i] = a[i];
        d[3 * i + 1] = b[i];
        d[3 * i + 2] = c[i];
    }
}

static void read_row(const struct vgk_line *line, int n, const struct vgk_matrix *m, const struct vgk_pixel_row *dst)
{
    bool interleaved = dst->pixel == 3 && dst->channel == 1;
    for (int x = 0; x < n; x += GROUP) {
        uint8_t c[3][GROUP];
        float f[3][GROUP], t[3][GROUP];
        unpack(line, x, c);
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < GROUP; i++)
                f[k][i] = (float)c[k][i];
        multiply(m, f, t);
        int have = n - x < GROUP ? n - x : GROUP;
        float *d = dst->p + x * dst->pixel;
        if (interleaved && have == GROUP)
            put_pixels(t[0], t[1], t[2], d);
        else if (dst->pixel == 1)
            for (int k = 0; k < 3; k++)
                memcpy(d + k * dst->channel, t[k], (size_t)have * sizeof(float));
        else
            for (int i = 0; i < have; i++)
                for (int k = 0; k < 3; k++)
                    d[i * dst->pixel + k * dst->channel] = t[k][i];
    }
}

/* ---- tensor to planes ---- */

static void take_pixels(const float *restrict s, float *restrict a, float *restrict b, float *restrict c)
{
    for (int i = 0; i < GROUP; i++) {
        a[i] = s[3 * i];
        b[i] = s[3 * i + 1];
        c[i] = s[3 * i + 2];
    }
}

/* Clamped components, before rounding; what is beyond `have` repeats. */
static void values(const struct vgk_pixel_row *src, int x, int have, const struct vgk_matrix *m, const float low[3],
                   const float high[3], float v[3][GROUP])
{
    float t[3][GROUP];
    const float *s = src->p + x * src->pixel;
    if (have == GROUP && src->pixel == 3 && src->channel == 1)
        take_pixels(s, t[0], t[1], t[2]);
    else
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < GROUP; i++)
                t[k][i] = s[(i < have ? i : have - 1) * src->pixel + k * src->channel];
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < GROUP; i += VL)
            store(t[k] + i, at_most(at_least(load(t[k] + i), splat(low[k])), splat(high[k])));
    multiply(m, t, v);
}

/* Half to even; NaN is 0. */
static void quantise(const float *restrict v, int n, uint8_t *restrict out)
{
    int32_t whole[GROUP];
    const float round = 12582912.0f; /* 1.5 * 2^23: the integer lands in the low bits */
    for (int i = 0; i < n; i += VL) {
        vf x = load(v + i);
        x = pick(x > 0.0f, x, (vf){0});
        vi r = (vi)(at_most(x, splat(255.0f)) + round) & 255;
        memcpy(whole + i, &r, sizeof r);
    }
    for (int i = 0; i < n; i++)
        out[i] = (uint8_t)whole[i];
}

/* ---- planes to frame ---- */

static void put3(const uint8_t *restrict a, const uint8_t *restrict b, const uint8_t *restrict c, uint8_t *restrict d)
{
    for (int i = 0; i < GROUP; i++) {
        d[3 * i] = a[i];
        d[3 * i + 1] = b[i];
        d[3 * i + 2] = c[i];
    }
}

static void put4(uint8_t (*restrict c)[GROUP], const int *shift, uint8_t *restrict d)
{
    int s0 = shift[0], s1 = shift[1], s2 = shift[2], s3 = shift[3];
    for (int i = 0; i < GROUP; i++) {
        uint32_t v = (uint32_t)c[0][i] << s0 | (uint32_t)c[1][i] << s1 | (uint32_t)c[2][i] << s2 |
                     (uint32_t)c[3][i] << s3;
        memcpy(d + 4 * i, &v, 4);
    }
}

static void pack(const struct vgk_line *l, int x0, int have, uint8_t c[4][GROUP])
{
    uint8_t *d = l->base + (ptrdiff_t)x0 * l->step[0];
    if (have == GROUP && l->step[0] == 3) {
        const uint8_t *at[3];
        for (int k = 0; k < 3; k++)
            at[l->offset[k]] = c[k];
        put3(at[0], at[1], at[2], d);
        return;
    }
    if (l->alpha >= 0) {
        if (l->alpha_from)
            for (int i = 0; i < have; i++)
                c[3][i] = l->alpha_from[(int64_t)(x0 + i) * l->alpha_width / l->width * l->alpha_step];
        else
            memset(c[3], 255, GROUP);
        if (have == GROUP && l->step[0] == 4) {
            int shift[4] = {shift_of(l->offset[0]), shift_of(l->offset[1]), shift_of(l->offset[2]), shift_of(l->alpha)};
            put4(c, shift, d);
            return;
        }
    }
    for (int i = 0; i < have; i++) {
        for (int k = 0; k < 3; k++)
            d[i * l->step[0] + l->offset[k]] = c[k][i];
        if (l->alpha >= 0)
            d[i * l->step[0] + l->alpha] = c[3][i];
    }
}

static void halve(const float *restrict a, const float *restrict b, float *restrict out)
{
    for (int i = 0; i < GROUP / 2; i++)
        out[i] = ((a[2 * i] + a[2 * i + 1]) + (b[2 * i] + b[2 * i + 1])) * 0.25f;
}

static void write_rows(const struct vgk_pixel_row *src, int rows, const struct vgk_matrix *m, const float low[3],
                       const float high[3], const struct vgk_line *lines)
{
    for (int x = 0; x < lines->width; x += GROUP) {
        float v[2][3][GROUP];
        uint8_t c[4][GROUP];
        int have = lines->width - x < GROUP ? lines->width - x : GROUP;
        for (int r = 0; r < rows; r++) {
            const struct vgk_line *l = &lines[r];
            values(&src[r], x, have, m, low, high, v[r]);
            for (int k = 0; k < (l->half ? 1 : 3); k++) {
                quantise(v[r][k], GROUP, c[k]);
                if (!l->packed)
                    memcpy(l->p[k] + x, c[k], (size_t)have);
            }
            if (l->packed)
                pack(l, x, have, c);
        }
        /* A mean of one row or column is that of the same twice. */
        for (int k = 1; k < 3 && lines->half; k++) {
            float mean[GROUP / 2];
            int n = (have + 1) / 2;
            uint8_t *d = lines->p[k] + (ptrdiff_t)(x / 2) * lines->step[k];
            halve(v[0][k], v[rows - 1][k], mean);
            quantise(mean, GROUP / 2, c[k]);
            for (int i = 0; i < n; i++)
                d[i * lines->step[k]] = c[k][i];
        }
    }
}

const struct vgk_frame_rows VGK_SET(vgk_frame_rows) = {read_row, write_rows};
