/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Also compiled as device code, by cuda/move.cu. */
#include "sample.h"

#include <math.h>

/* Into [low, high] by mirrors at both ends. */
VGK_SHARED static double reflect(double x, double low, double high)
{
    double range = high - low;
    if (!(range > 0))
        return low;
    double d = fmod(fabs(x - low), 2 * range);
    return low + (d <= range ? d : 2 * range - d);
}

VGK_SHARED static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

/* Keys' cubic with a = -0.75 (IEEE Trans. ASSP 29, 1981), t in [0, 1). */
VGK_SHARED static void cubic(double t, double *w)
{
    const double a = -0.75;
    double u = t + 1, v = 1 - t, z = 2 - t;
    w[0] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * v - (a + 3)) * v * v + 1;
    w[3] = ((a * z - 5 * a) * z + 8 * a) * z - 4 * a;
}

/* at + g as a whole number and a rest in [0, 1], put back into the picture by mirrors or at its border: only whole numbers
 * are added to whole numbers, so that the rest is the same wherever `at` lies. */
VGK_SHARED static double offset_place(const struct vgk_sample *p, double g, int64_t at, double last, double *t)
{
    g = isnan(g) ? -2 - (double)at : clamp(g, -1e9, 1e9);
    double x = (double)at + floor(g), edge = p->align_corners ? 0 : 1; /* mirrors at -edge / 2 and last + edge / 2 */
    *t = g - floor(g);
    if (p->padding == VGK_SAMPLE_BORDER && (x + *t < -edge / 2 || x + *t > last + edge / 2)) {
        *t = 0;
        return x < 0 ? 0 : last;
    }
    if (p->padding != VGK_SAMPLE_REFLECTION)
        return x;
    double period = 2 * (last + edge);
    x -= period > 0 ? floor(x / period) * period : x;
    x -= x + *t >= period - edge / 2 ? period : 0;
    if (x + *t > last + edge / 2) { /* x + t -> period - edge - (x + t) */
        x = period - edge - x - (*t > 0);
        *t = *t > 0 ? 1 - *t : 0;
    }
    return x;
}

VGK_SHARED void vgk_sample_taps(const struct vgk_sample *p, double g, int64_t at, int64_t size, struct vgk_taps *taps)
{
    double last = (double)(size - 1), low = p->align_corners ? 0 : -0.5, high = p->align_corners ? last : last + 0.5;
    double x = p->align_corners ? (g + 1) / 2 * last : ((g + 1) * (double)size - 1) / 2;
    x = isnan(x) ? -2 : clamp(x, -1e9, 1e9); /* NaN lies outside, as infinities do; indices must not overflow */
    if (p->mode == VGK_NEAREST)
        x = nearbyint(x);
    if (x < low || x > high) {
        if (p->padding == VGK_SAMPLE_BORDER)
            x = clamp(x, 0, last);
        else if (p->padding == VGK_SAMPLE_REFLECTION)
            x = reflect(x, low, high);
    }
    double first = p->mode == VGK_NEAREST ? nearbyint(x) : floor(x), t = x - first;
    if (p->offsets)
        first = offset_place(p, g, at, last, &t);
    taps->n = p->mode == VGK_NEAREST ? 1 : p->mode == VGK_LINEAR ? 2 : 4;
    if (p->mode == VGK_CUBIC) {
        first -= 1;
        cubic(t, taps->weight);
    } else {
        taps->weight[0] = p->mode == VGK_NEAREST ? 1 : 1 - t;
        taps->weight[1] = t;
    }
    for (int k = 0; k < taps->n; k++) {
        double i = first + k;
        if (i < 0 || i > last) {
            if (p->padding == VGK_SAMPLE_ZEROS)
                taps->weight[k] = 0;
            i = clamp(p->padding == VGK_SAMPLE_REFLECTION ? trunc(reflect(i, low, high)) : i, 0, last);
        }
        taps->index[k] = (int64_t)i;
    }
}
