/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Places are found as vgk_sample_taps finds them, in double, half a vector of them at a time; then one pixel after the
 * other is added up. */
#include "sample.h"
#include "simd.h"

#include <string.h>

typedef double vd __attribute__((vector_size(4 * VL)));
typedef int64_t vl __attribute__((vector_size(4 * VL)));
typedef float vh __attribute__((vector_size(2 * VL)));
typedef int32_t vhi __attribute__((vector_size(2 * VL)));

enum { HALF = VL / 2, TAPS = 4 /* at most, in one dimension */, MOST = 16 /* cubic in two */, CHUNK = 32 };

#if VGK_VL == 16 && defined(__AVX512F__) /* gcc 12 converts quarters, and puts them together */
INLINE vd wide(vh x) { return (vd)_mm512_cvtps_pd((__m256)x); }
INLINE vh narrow(vd x) { return (vh)_mm512_cvtpd_ps((__m512d)x); }
INLINE vhi whole(vd x) { return (vhi)_mm512_cvttpd_epi32((__m512d)x); }
INLINE vd real(vhi x) { return (vd)_mm512_cvtepi32_pd((__m256i)x); }
#else
INLINE vd wide(vh x) { return __builtin_convertvector(x, vd); }
INLINE vh narrow(vd x) { return __builtin_convertvector(x, vh); }
INLINE vhi whole(vd x) { return __builtin_convertvector(x, vhi); }
INLINE vd real(vhi x) { return __builtin_convertvector(x, vd); }
#endif

INLINE vd all(double x) { return x - (vd){0}; }
INLINE vd choose(vl mask, vd a, vd b) { return (vd)(((vl)a & mask) | ((vl)b & ~mask)); }
INLINE vd held(vd x, double low, double high)
{
    x = choose(x < low, all(low), x);
    return choose(x > high, all(high), x);
}

/* Rounded, numbers that 32 bits hold. */
INLINE vd cut(vd x) { return real(whole(x)); }
INLINE vd down(vd x)
{
    vd t = cut(x);
    return choose(t > x, t - 1, t);
}
INLINE vd nearest(vd x) { return x + 0x1.8p52 - 0x1.8p52; }

/* The quotient is one off at most, its product with the period a whole number, so that the rest is exact as fmod's. */
INLINE vd mirrored(vd x, double low, double high)
{
    double range = high - low, period = 2 * range;
    if (!(range > 0))
        return all(low);
    vd d = choose(x < low, low - x, x - low);
    d -= cut(d / period) * period;
    d = choose(d < 0, d + period, d);
    d = choose(d >= period, d - period, d);
    return low + choose(d <= range, d, period - d);
}

/* The first pixel, and how far behind it the place is. */
INLINE vd grid_place(const struct vgk_sample *p, vd g, double last, double low, double high, vd *t)
{
    vd x = p->align_corners ? (g + 1) * 0.5 * last : ((g + 1) * (last + 1) - 1) * 0.5;
    x = held(choose(x != x, all(-2), x), -1e9, 1e9);
    if (p->mode == VGK_NEAREST)
        x = nearest(x);
    vl out = (x < low) | (x > high);
    if (p->padding == VGK_SAMPLE_BORDER)
        x = choose(out, held(x, 0, last), x);
    else if (p->padding == VGK_SAMPLE_REFLECTION)
        x = choose(out, mirrored(x, low, high), x);
    vd first = p->mode == VGK_NEAREST ? nearest(x) : down(x);
    *t = x - first;
    return first;
}

INLINE vd offset_place(const struct vgk_sample *p, vd g, vd at, double last, vd *t)
{
    double edge = p->align_corners ? 0 : 1;
    g = choose(g != g, -2 - at, held(g, -1e9, 1e9));
    vd f = down(g), x = at + f;
    *t = g - f;
    if (p->padding == VGK_SAMPLE_BORDER) {
        vl out = (x + *t < -edge / 2) | (x + *t > last + edge / 2);
        *t = choose(out, all(0), *t);
        x = choose(out, choose(x < 0, all(0), all(last)), x);
    } else if (p->padding == VGK_SAMPLE_REFLECTION) {
        double period = 2 * (last + edge);
        x = period > 0 ? x - down(x / period) * period : all(0);
        x = choose(x + *t >= period - edge / 2, x - period, x);
        vl back = x + *t > last + edge / 2, between = *t > 0;
        x = choose(back, period - edge - x - choose(between, all(1), all(0)), x);
        *t = choose(back, choose(between, 1 - *t, all(0)), *t);
    }
    return x;
}

/* Keys' cubic, as in sample_taps.c. */
INLINE void cubic(vd t, vd w[TAPS])
{
    const double a = -0.75;
    vd u = t + 1, v = 1 - t, z = 2 - t;
    w[0] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * v - (a + 3)) * v * v + 1;
    w[3] = ((a * z - 5 * a) * z + 8 * a) * z - 4 * a;
}

/* What HALF places read along a dimension; returns the number of taps. */
INLINE int find_taps(const struct vgk_sample *p, const struct vgk_sample_axis *axis, vd g, vd at, vd index[TAPS],
                     vd w[TAPS])
{
    double last = (double)(axis->size - 1), low = p->align_corners ? 0 : -0.5, high = last - low;
    int n = p->mode == VGK_NEAREST ? 1 : p->mode == VGK_LINEAR ? 2 : 4;
    vd t, first = p->offsets ? offset_place(p, g, at, last, &t) : grid_place(p, g, last, low, high, &t);
    if (p->mode == VGK_CUBIC) {
        first -= 1;
        cubic(t, w);
    } else {
        w[0] = p->mode == VGK_NEAREST ? all(1) : 1 - t;
        w[1] = t;
    }
    for (int k = 0; k < n; k++) {
        vd i = first + (double)k;
        vl out = (i < 0) | (i > last);
        if (p->padding == VGK_SAMPLE_ZEROS)
            w[k] = choose(out, all(0), w[k]);
        if (p->padding == VGK_SAMPLE_REFLECTION)
            i = choose(out, cut(mirrored(i, low, high)), i);
        index[k] = held(i, 0, last);
    }
    return n;
}

/* The taps of n <= CHUNK places, which begin at the row's first-th; returns how many each has. */
static int find_places(const struct vgk_sample_row *r, int64_t first, int n, int32_t offset[MOST][CHUNK],
                       float weight[MOST][CHUNK])
{
    int total = 1;
    memset(offset[0], 0, sizeof offset[0]);
    for (int i = 0; i < CHUNK; i++)
        weight[0][i] = 1;
    for (int d = 0; d < r->spatial; d++) { /* each dimension multiplies what there is by its taps */
        const struct vgk_sample_axis *axis = &r->axis[d];
        float g[CHUNK] = {0};
        double at[HALF];
        int taps = 1;
        for (int i = 0; i < n; i++)
            g[i] = axis->grid[(first + i) * r->grid_step];
        for (int i = 0; i < n; i += HALF) {
            vh part;
            vd place, index[TAPS], w[TAPS];
            for (int k = 0; k < HALF; k++)
                at[k] = (double)(axis->at + (d == r->spatial - 1 ? first + i + k : 0));
            memcpy(&part, g + i, sizeof part);
            memcpy(&place, at, sizeof place);
            taps = find_taps(r->how, axis, wide(part), place, index, w);
            for (int k = total * taps - 1; k >= 0; k--) {
                vhi o;
                vh f;
                memcpy(&o, &offset[k / taps][i], sizeof o);
                memcpy(&f, &weight[k / taps][i], sizeof f);
                o += whole(index[k % taps]) * axis->stride;
                f *= narrow(w[k % taps]);
                memcpy(&offset[k][i], &o, sizeof o);
                memcpy(&weight[k][i], &f, sizeof f);
            }
        }
        total *= taps;
    }
    return total;
}

typedef float v4 __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));

INLINE v4 load_few(const float *p, const int n)
{
#ifdef __AVX2__
    return (v4)_mm_maskload_ps(p, (__m128i)(v4i){-1, -(n > 1), -(n > 2), -(n > 3)});
#else
    return (v4){p[0], n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, n > 3 ? p[3] : 0};
#endif
}

/* Pixels of up to four channels.  What does not count may be infinite. */
INLINE void add_few(const struct vgk_sample_row *r, float *y, int n, const int channels, const int taps,
                    int32_t offset[MOST][CHUNK], float weight[MOST][CHUNK])
{
    for (int i = 0; i < n; i++, y += r->y_step) {
        v4 sum = {0};
        for (int k = 0; k < taps; k++) {
            float w = weight[k][i];
            v4i counts = -(w != 0) - (v4i){0};
            sum += (v4)((v4i)load_few(r->x + offset[k][i], channels) & counts) * w;
        }
        memcpy(y, &sum, (size_t)channels * sizeof *y);
    }
}

INLINE void add_many(const struct vgk_sample_row *r, float *y, int n, const int taps, int32_t offset[MOST][CHUNK],
                     float weight[MOST][CHUNK])
{
    for (int i = 0; i < n; i++, y += r->y_step)
        for (int64_t c = 0; c < r->channels; c += VL) {
            int have = r->channels - c < VL ? (int)(r->channels - c) : VL;
            vf sum = {0};
            for (int k = 0; k < taps; k++) {
                float w = weight[k][i];
                vi counts = -(w != 0) - (vi){0};
                sum += (vf)((vi)load_n(r->x + offset[k][i] + c, have) & counts) * w;
            }
            store_n(y + c, sum, have);
        }
}

static void row(const struct vgk_sample_row *r)
{
    int32_t offset[MOST][CHUNK];
    float weight[MOST][CHUNK];
    for (int64_t first = 0; first < r->n; first += CHUNK) {
        int n = r->n - first < CHUNK ? (int)(r->n - first) : CHUNK;
        int taps = find_places(r, first, n, offset, weight);
        float *y = r->y + first * r->y_step;
        if (r->channels == 3 && taps == 4)
            add_few(r, y, n, 3, 4, offset, weight);
        else if (r->channels > 4)
            add_many(r, y, n, taps, offset, weight);
        else
            add_few(r, y, n, (int)r->channels, taps, offset, weight);
    }
}

const struct vgk_sample_rows VGK_SET(vgk_sample_rows) = {row};
