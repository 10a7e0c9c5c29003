/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attention.h"
#include "simd.h"

#include <math.h>
#include <string.h>

INLINE vf exp_below(vf x) { return pick(x < -87.0f, (vf){0}, vexp(x)); }

float VGK_SET(vgk_attention_row)(float *s, int64_t n, int64_t all, float scale, float softcap, const float *bias,
                                 float *largest, float *total)
{
    vf most = splat(*largest), sum = {0};
    for (int64_t i = 0; i < n; i += VL) {
        int have = n - i < VL ? (int)(n - i) : VL;
        vf v = load_n(s + i, have) * scale;
        if (softcap != 0)
            v = vtanh(v / softcap) * softcap;
        if (bias)
            v += load_n(bias + i, have);
        for (int k = have; k < VL; k++)
            v[k] = -INFINITY;
        most = at_least(v, most);
        store_n(s + i, v, have);
    }
    float before = *largest, now = before;
    for (int k = 0; k < VL; k++)
        now = most[k] > now || most[k] != most[k] ? most[k] : now;
    if (now == -INFINITY) { /* no key so far */
        memset(s, 0, (size_t)all * sizeof *s);
        return 1;
    }
    for (int64_t i = 0; i < n; i += VL) {
        int have = n - i < VL ? (int)(n - i) : VL;
        vf v = exp_below(load_n(s + i, have) - now);
        store_n(s + i, v, have);
        for (int k = have; k < VL; k++)
            v[k] = 0;
        sum += v;
    }
    memset(s + n, 0, (size_t)(all - n) * sizeof *s);
    float shrink = before == -INFINITY ? 0 : exp_below(splat(before - now))[0], add = 0;
    for (int k = 0; k < VL; k++)
        add += sum[k];
    *total = *total * shrink + add;
    *largest = now;
    return shrink;
}
