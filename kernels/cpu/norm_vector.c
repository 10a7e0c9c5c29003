/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "norm.h"
#include "epilogue.h"

#include <math.h>

typedef double vd __attribute__((vector_size(4 * VL))); /* half as many lanes */
typedef float vh __attribute__((vector_size(2 * VL)));

/* The two halves of a vector, in double. */
INLINE void widen(vf v, vd *low, vd *high)
{
    union {
        vf whole;
        vh half[2];
    } u = {v};
    *low = __builtin_convertvector(u.half[0], vd);
    *high = __builtin_convertvector(u.half[1], vd);
}

enum { STRIPE = 64 }; /* pixels at a time: they stay in the nearest cache while their channels are gone through */

/* One vector of channels, `have` of them there, over m pixels. */
INLINE void add_column(const float *x, int64_t pixel, int64_t m, const int have, vf shift, double *sum, double *square)
{
    vd sums[2] = {{0}}, squares[2] = {{0}};
    for (int64_t i = 0; i < m; i++) {
        vd low, high;
        widen(load_n(x + i * pixel, have) - shift, &low, &high);
        sums[0] += low;
        sums[1] += high;
        squares[0] += low * low;
        squares[1] += high * high;
    }
    for (int k = 0; k < have; k++) {
        sum[k] += sums[k / (VL / 2)][k % (VL / 2)];
        square[k] += squares[k / (VL / 2)][k % (VL / 2)];
    }
}

static void add(const float *x, int64_t pixel, int64_t n, int64_t channels, const float *shift, double *sum,
                double *square)
{
    for (int64_t first = 0; first < n; first += STRIPE, x += STRIPE * pixel) {
        int64_t m = n - first < STRIPE ? n - first : STRIPE, c = 0;
        for (; c + VL <= channels; c += VL)
            add_column(x + c, pixel, m, VL, load(shift + c), sum + c, square + c);
        if (c < channels) {
            int have = (int)(channels - c);
            add_column(x + c, pixel, m, have, load_part(shift + c, have), sum + c, square + c);
        }
    }
}

INLINE void apply_column(const enum vgk_act act, float *y, int64_t y_pixel, const float *x, int64_t x_pixel,
                         const float *residual, int64_t residual_pixel, int64_t m, const int have,
                         const struct vgk_norm_row *r, int64_t c)
{
    struct channels ch = {.alpha = splat(r->alpha), .beta = splat(r->beta), .slope = splat(r->alpha)};
    vf mean = load_n(r->mean + c, have), factor = load_n(r->factor + c, have), bias = load_n(r->bias + c, have);
    for (int64_t i = 0; i < m; i++) {
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

static void apply(float *y, int64_t y_pixel, const float *x, int64_t x_pixel, const float *residual,
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
