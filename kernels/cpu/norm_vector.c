/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "norm.h"
#include "epilogue.h"

#include <math.h>
#include <string.h>

typedef double vd __attribute__((vector_size(4 * VL))); /* half as many lanes */
typedef double vd_any __attribute__((vector_size(4 * VL), aligned(8), may_alias));
typedef float vh __attribute__((vector_size(2 * VL)));

/* The two halves of a vector, in double. */
INLINE void widen(vf v, vd *low, vd *high)
{
    union {
        vf whole;
        vh half[2];
    } u = {v};
#if VGK_VL == 16 && defined(__AVX512F__) /* gcc 12 converts quarters, and puts them together */
    *low = (vd)_mm512_cvtps_pd((__m256)u.half[0]);
    *high = (vd)_mm512_cvtps_pd((__m256)u.half[1]);
#else
    *low = __builtin_convertvector(u.half[0], vd);
    *high = __builtin_convertvector(u.half[1], vd);
#endif
}

enum { STRIPE = 64 /* pixels at a time: they stay in the nearest cache while their channels are gone through */,
       WIDE = 4 * VL,
       AHEAD = 48 /* pixels whose lines are asked for: what is left of their wait by then is short */ };

/* Channels that do not fill vectors: so many pixels that touch are as one pixel whose channels, at most WIDE, do. */
static int64_t pixels_of_vectors(int64_t channels)
{
    int64_t even = channels & -channels;
    return even < VL && channels * (VL / even) <= WIDE ? VL / even : 1;
}

/* As many times one behind the other. */
static const float *repeat(const float *from, int64_t channels, int64_t times, float *to)
{
    for (int64_t i = 0; i < times; i++)
        memcpy(to + i * channels, from, (size_t)channels * sizeof *to);
    return to;
}

/* One or two vectors of channels over m pixels, `have` channels of the last one. */
INLINE void add_column(const float *x, int64_t pixel, int64_t m, const int vectors, const int have, const float *shift,
                       double *sum, double *square)
{
    vd sums[4] = {{0}}, squares[4] = {{0}};
    vf shifts[2];
    for (int v = 0; v < vectors; v++)
        shifts[v] = load_n(shift + v * VL, v < vectors - 1 ? VL : have);
    for (int64_t i = 0; i < m; i++, x += pixel)
        UNROLL(2)
        for (int v = 0; v < vectors; v++) {
            __builtin_prefetch(x + v * VL + AHEAD * pixel);
            vd half[2];
            widen(load_n(x + v * VL, v < vectors - 1 ? VL : have) - shifts[v], &half[0], &half[1]);
            UNROLL(2)
            for (int k = 0; k < 2; k++) {
                sums[2 * v + k] += half[k];
                squares[2 * v + k] += half[k] * half[k];
            }
        }
    int k = 0;
    for (; have == VL && k < 2 * vectors; k++) {
        ((vd_any *)sum)[k] += sums[k];
        ((vd_any *)square)[k] += squares[k];
    }
    for (k *= VL / 2; k < have; k++) {
        sum[k] += sums[k / (VL / 2)][k % (VL / 2)];
        square[k] += squares[k / (VL / 2)][k % (VL / 2)];
    }
}

static void add_columns(const float *x, int64_t pixel, int64_t n, int64_t channels, const float *shift, double *sum,
                        double *square)
{
    for (int64_t first = 0; first < n; first += STRIPE, x += STRIPE * pixel) {
        int64_t m = n - first < STRIPE ? n - first : STRIPE, c = 0;
        for (; c + 2 * VL <= channels; c += 2 * VL) /* as many as a line of the cache and the next have */
            add_column(x + c, pixel, m, 2, VL, shift + c, sum + c, square + c);
        for (; c + VL <= channels; c += VL)
            add_column(x + c, pixel, m, 1, VL, shift + c, sum + c, square + c);
        if (c < channels)
            add_column(x + c, pixel, m, 1, (int)(channels - c), shift + c, sum + c, square + c);
    }
}

/* The order of the sums depends on how many pixels there are, not on whether they touch: else they are copied. */
static void add(const float *x, int64_t pixel, int64_t n, int64_t channels, const float *shift, double *sum, double *square)
{
    int64_t times = pixels_of_vectors(channels), wide = times * channels;
    if (times > 1 && n >= times) {
        float shifts[WIDE], copy[STRIPE * WIDE];
        double sums[WIDE] = {0}, squares[WIDE] = {0};
        repeat(shift, channels, times, shifts);
        for (int64_t m; n >= times; n -= m * times, x += m * times * pixel) {
            m = n / times < STRIPE ? n / times : STRIPE;
            for (int64_t i = 0; i < m * times && pixel != channels; i++)
                memcpy(copy + i * channels, x + i * pixel, (size_t)channels * sizeof *copy);
            add_columns(pixel == channels ? x : copy, wide, m, wide, shifts, sums, squares);
        }
        for (int64_t i = 0; i < wide; i++) {
            sum[i % channels] += sums[i];
            square[i % channels] += squares[i];
        }
    }
    add_columns(x, pixel, n, channels, shift, sum, square);
}

INLINE void apply_column(const enum vgk_act act, float *y, int64_t y_pixel, const float *x, int64_t x_pixel,
                         const float *residual, int64_t residual_pixel, int64_t m, const int have,
                         const struct vgk_norm_row *r, int64_t c)
{
    struct channels ch = {.alpha = splat(r->alpha), .beta = splat(r->beta), .slope = splat(r->alpha)};
    vf mean = load_n(r->mean + c, have), factor = load_n(r->factor + c, have), bias = load_n(r->bias + c, have);
    for (int64_t i = 0; i < m; i++) {
        __builtin_prefetch(x + (i + AHEAD) * x_pixel + c);
        __builtin_prefetch(y + (i + AHEAD) * y_pixel + c, 1);
        vf v = activate(act, (load_n(x + i * x_pixel + c, have) - mean) * factor + bias, &ch);
        if (residual)
            v += load_n(residual + i * residual_pixel + c, have);
        store_n(y + i * y_pixel + c, v, have);
    }
}

INLINE void apply_act(const enum vgk_act act, float *y, int64_t y_pixel, const float *x, int64_t x_pixel,
                      const float *residual, int64_t residual_pixel, int64_t n, int64_t channels,
                      const struct vgk_norm_row *r)
{
    for (int64_t first = 0; first < n; first += STRIPE) {
        int64_t m = n - first < STRIPE ? n - first : STRIPE, c = 0;
        for (; c + VL <= channels; c += VL)
            apply_column(act, y, y_pixel, x, x_pixel, residual, residual_pixel, m, VL, r, c);
        if (c < channels)
            apply_column(act, y, y_pixel, x, x_pixel, residual, residual_pixel, m, (int)(channels - c), r, c);
        y += STRIPE * y_pixel;
        x += STRIPE * x_pixel;
        residual = residual ? residual + STRIPE * residual_pixel : NULL;
    }
}

static void apply_columns(float *y, int64_t y_pixel, const float *x, int64_t x_pixel, const float *residual,
                          int64_t residual_pixel, int64_t n, int64_t channels, const struct vgk_norm_row *r)
{
    switch (r->act) {
#define APPLY(NAME, ACT) \
    case ACT: apply_act(ACT, y, y_pixel, x, x_pixel, residual, residual_pixel, n, channels, r); break;
        EACH_ACT(APPLY)
    case VGK_ACT_LEAKY_RELU:
        apply_act(VGK_ACT_LEAKY_RELU, y, y_pixel, x, x_pixel, residual, residual_pixel, n, channels, r);
        break;
    }
}

static void apply(float *y, int64_t y_pixel, const float *x, int64_t x_pixel, const float *residual,
                  int64_t residual_pixel, int64_t n, int64_t channels, const struct vgk_norm_row *r)
{
    int64_t times = pixels_of_vectors(channels), wide = times * channels, done = n - n % times;
    if (times > 1 && x_pixel == channels && y_pixel == channels && (!residual || residual_pixel == channels)) {
        float constants[3][WIDE];
        struct vgk_norm_row wide_row = {repeat(r->mean, channels, times, constants[0]),
                                        repeat(r->factor, channels, times, constants[1]),
                                        repeat(r->bias, channels, times, constants[2]), r->act, r->alpha, r->beta};
        apply_columns(y, wide, x, wide, residual, wide, n / times, wide, &wide_row);
        n -= done;
        y += done * channels;
        x += done * channels;
        residual = residual ? residual + done * channels : NULL;
    }
    apply_columns(y, y_pixel, x, x_pixel, residual, residual_pixel, n, channels, r);
}

/* Lane k adds up every VL-th element, then the lanes one by one: the order depends on the row's length alone. */
static void softmax(float *y, const float *x, int64_t n)
{
    vf most = splat(-INFINITY), sum = {0};
    float largest = -INFINITY, total = 0;
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        most = at_least(load(x + i), most);
    for (int k = 0; k < VL; k++)
        largest = most[k] > largest ? most[k] : largest;
    for (int64_t k = i; k < n; k++)
        largest = x[k] > largest ? x[k] : largest;
    for (i = 0; i < n; i += VL) {
        int have = n - i < VL ? (int)(n - i) : VL;
        vf v = load_n(x + i, have) - largest;
        v = pick(v < -87.0f, (vf){0}, vexp(v));
        store_n(y + i, v, have);
        for (int k = have; k < VL; k++)
            v[k] = 0;
        sum += v;
    }
    for (int k = 0; k < VL; k++)
        total += sum[k];
    for (i = 0; i < n; i += VL) {
        int have = n - i < VL ? (int)(n - i) : VL;
        store_n(y + i, load_n(y + i, have) / total, have);
    }
}

/* The sum over a row, or of the squares of what is left of it less `shift`, in double: lane by lane as above. */
INLINE double row_sum(const float *x, int64_t n, const bool squares, vd shift)
{
    vd sums[2] = {{0}};
    double total = 0;
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        vd low, high;
        widen(load(x + i), &low, &high);
        if (squares) {
            low = (low - shift) * (low - shift);
            high = (high - shift) * (high - shift);
        }
        sums[0] += low;
        sums[1] += high;
    }
    for (int k = 0; k < VL; k++)
        total += sums[k / (VL / 2)][k % (VL / 2)];
    for (; i < n; i++) {
        double v = (double)x[i];
        total += squares ? (v - shift[0]) * (v - shift[0]) : v;
    }
    return total;
}

static void row(float *y, const float *x, int64_t n, bool centred, float epsilon, const float *gain, const float *bias)
{
    double mean = centred ? row_sum(x, n, false, (vd){0}) / (double)n : 0;
    double square = row_sum(x, n, true, (vd){0} + mean) / (double)n;
    /* The mean as two floats: what is left of x keeps its digits where the mean is large. */
    float high = (float)mean, low = (float)(mean - (double)high), factor = (float)(1 / sqrt(square + (double)epsilon));
    for (int64_t i = 0; i < n; i += VL) {
        int have = n - i < VL ? (int)(n - i) : VL;
        vf v = ((load_n(x + i, have) - high) - low) * factor;
        if (gain)
            v *= load_n(gain + i, have);
        if (bias)
            v += load_n(bias + i, have);
        store_n(y + i, v, have);
    }
}

const struct vgk_norm_rows VGK_SET(vgk_norm_rows) = {add, apply, softmax, row};
