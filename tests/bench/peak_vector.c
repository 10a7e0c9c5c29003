/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rate that the machine's vector units reach with nothing but products and sums in registers: the yardstick. */
#include "kernels/cpu/simd.h"

#if defined(__x86_64__)
#define KEEP(v) __asm__ volatile("" : "+v"(v))
#elif defined(__aarch64__)
#define KEEP(v) __asm__ volatile("" : "+w"(v))
#else
#define KEEP(v) __asm__ volatile("" : "+m"(v))
#endif

long VGK_SET(bench_peak)(long rounds);

/* Floating-point operations done.  Ten chains cover the latency of two units. */
long VGK_SET(bench_peak)(long rounds)
{
    vf b = splat(0.999f), v[10];
    KEEP(b);
    UNROLL(10)
    for (int i = 0; i < 10; i++)
        v[i] = b;
    for (long r = 0; r < rounds; r++) {
        UNROLL(10)
        for (int i = 0; i < 10; i++) {
            v[i] = v[i] * b + b;
            KEEP(v[i]);
        }
    }
    return rounds * 10 * VL * 2;
}
