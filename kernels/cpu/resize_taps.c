/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "resize_taps.h"

#include <math.h>
#include <string.h>

/* A place on the input's axis: whole + part, 0 <= part < 1. */
struct place {
    int64_t whole;
    double part;
};

/* p / q = scale, by its continued fraction.  Files hold scales in single precision: a ratio of small numbers that close
 * is meant; larger terms must fit better to be believed.  False: no such ratio. */
static bool rational(double scale, int64_t *p, int64_t *q)
{
    int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
    double rest = scale;
    if (!(scale > 0) || scale > 1e6)
        return false;
    for (int i = 0; i < 40; i++) {
        double whole = floor(rest);
        if (whole > 1e6)
            return false;
        int64_t p2 = (int64_t)whole * p1 + p0, q2 = (int64_t)whole * q1 + q0;
        if (p2 > 1 << 20 || q2 > 1 << 20)
            return false;
        p0 = p1, q0 = q1, p1 = p2, q1 = q2;
        double error = fabs((double)p1 / (double)q1 - scale) / scale;
        if (error <= (p1 <= 1024 && q1 <= 1024 ? 6.1e-8 : 1e-9)) {
            *p = p1;
            *q = q1;
            return true;
        }
        if (rest - whole < 1e-12)
            return false;
        rest = 1 / (rest - whole);
    }
    return false;
}

static struct place divide(int64_t a, int64_t b)
{
    int64_t whole = a / b;
    if (a % b < 0)
        whole--;
    return (struct place){whole, (double)(a - whole * b) / (double)b};
}

struct axis {
    const struct vgk_resize *r;
    int64_t in, out, p, q;
    double scale;
    bool exact; /* scale = p / q */
};

static struct axis axis_make(const struct vgk_resize *r, int axis, int64_t in, int64_t out)
{
    struct axis a = {.r = r, .in = in, .out = out, .scale = r->scale[axis]};
    a.exact = rational(a.scale, &a.p, &a.q);
    return a;
}

static struct place locate(const struct axis *a, int64_t o)
{
    switch (a->r->coordinates) {
    case VGK_ALIGN_CORNERS: /* over the length that the scale gives, which the output's size may have cut */
        if (a->out <= 1 || a->scale * (double)a->in <= 1)
            return (struct place){0, 0};
        if (a->exact)
            return divide(o * (a->in - 1) * a->q, a->in * a->p - a->q);
        break;
    case VGK_ASYMMETRIC:
        if (a->exact)
            return divide(o * a->q, a->p);
        break;
    case VGK_PYTORCH_HALF_PIXEL:
        if (a->out <= 1)
            return (struct place){0, 0};
        /* fall through */
    case VGK_HALF_PIXEL:
        if (a->exact)
            return divide((2 * o + 1) * a->q - a->p, 2 * a->p);
        break;
    case VGK_HALF_PIXEL_SYMMETRIC:
        if (a->exact)
            return divide((2 * o + 1) * a->q - a->p + a->in * a->p - a->out * a->q, 2 * a->p);
        break;
    }
    double x = a->r->coordinates == VGK_ASYMMETRIC ? (double)o / a->scale : ((double)o + 0.5) / a->scale - 0.5;
    if (a->r->coordinates == VGK_ALIGN_CORNERS)
        x = (double)o * (double)(a->in - 1) / (a->scale * (double)a->in - 1);
    if (a->r->coordinates == VGK_HALF_PIXEL_SYMMETRIC)
        x += ((double)a->in - (double)a->out / a->scale) / 2;
    return (struct place){(int64_t)floor(x), x - floor(x)};
}

static int64_t nearest(const struct axis *a, int64_t o)
{
    struct place x = locate(a, o);
    switch (a->r->nearest) {
    case VGK_ROUND_PREFER_FLOOR: return x.whole + (x.part > 0.5);
    case VGK_ROUND_PREFER_CEIL: return x.whole + (x.part >= 0.5);
    case VGK_NEAREST_FLOOR: return x.whole;
    case VGK_NEAREST_CEIL: return x.whole + (x.part > 0);
    }
    return x.whole;
}

/* Half the filter's width in taps: support 1 (linear) or 2 (cubic), stretched when antialiasing a reduction. */
static int64_t reach(const struct vgk_resize *r, double scale)
{
    int64_t support = r->mode == VGK_CUBIC ? 2 : 1;
    return r->antialias && scale < 1 ? -(int64_t)floor(-(double)support / scale) : support;
}

int vgk_resize_taps(const struct vgk_resize *r, int axis, int64_t in, int64_t out)
{
    if (r->mode == VGK_NEAREST || (in == out && r->scale[axis] == 1))
        return 1;
    return (int)(2 * reach(r, r->scale[axis]));
}

static double filter(const struct vgk_resize *r, double x)
{
    double a = (double)r->cubic_a;
    x = fabs(x);
    if (r->mode == VGK_LINEAR)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

void vgk_resize_fill(const struct vgk_resize *r, int axis, int64_t in, int64_t out, int32_t *index, float *weight)
{
    int taps = vgk_resize_taps(r, axis, in, out);
    bool same = r->mode != VGK_NEAREST && taps == 1;
    /* A part of something larger: positions and edges are the whole's. */
    int64_t size = r->in_size[axis] ? r->in_size[axis] : in, first = r->in_begin[axis];
    struct axis a = axis_make(r, axis, size, r->out_size[axis] ? r->out_size[axis] : out);
    double stretch = r->antialias && a.scale < 1 ? a.exact ? (double)a.p / (double)a.q : a.scale : 1;
    for (int64_t k = 0; k < out; k++, index += taps, weight += taps) {
        int64_t o = k + r->out_begin[axis];
        if (taps == 1) {
            int64_t i = same ? o : nearest(&a, o);
            index[0] = (int32_t)((i < 0 ? 0 : i < size ? i : size - 1) - first);
            weight[0] = 1;
            continue;
        }
        struct place x = locate(&a, o);
        double sum = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int t = 0; t < taps; t++) {
                int64_t at = t - taps / 2 + 1, i = x.whole + at;
                bool outside = i < 0 || i >= size;
                double w = outside && r->exclude_outside ? 0 : filter(r, ((double)at - x.part) * stretch);
                if (!pass) {
                    sum += w;
                    continue;
                }
                index[t] = (int32_t)((i < 0 ? 0 : i < size ? i : size - 1) - first);
                weight[t] = (float)(w / sum);
            }
    }
}
