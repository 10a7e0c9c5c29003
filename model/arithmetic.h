/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whole numbers: what scales, strides and tiles are computed with. */
#ifndef VG_ARITHMETIC_H
#define VG_ARITHMETIC_H

#include <stdint.h>

/* Never negative; gcd(a, 0) = |a|. */
static inline int64_t vg_gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

static inline int64_t vg_lcm(int64_t a, int64_t b) { return a / vg_gcd(a, b) * b; }

/* Rounds towards minus infinity; b > 0. */
static inline int64_t vg_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

#endif
