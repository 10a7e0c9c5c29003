/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Vectors of floats in gcc's portable extension, for files named *_vector.c.  Such a file is compiled once per
 * instruction set, with VGK_VL floats a vector; what it exports is named VGK_SET(name), so that `name_avx2` and
 * `name_generic` stand side by side.
 *
 * Products and sums fuse where the machine can (-ffp-contract=fast).  So that a pixel's bits do not depend on the path
 * it took, paths must share the function that computes it, not only the formula. */
#ifndef VGK_CPU_SIMD_H
#define VGK_CPU_SIMD_H

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#define VL VGK_VL
#define VGK_PASTE_(a, b) a##_##b
#define VGK_PASTE(a, b) VGK_PASTE_(a, b)
#define VGK_SET(name) VGK_PASTE(name, VGK_SUFFIX)

/* Vector registers that a kernel may plan with. */
#if defined(__AVX512F__) || defined(__aarch64__)
#define VECTOR_REGISTERS 32
#else
#define VECTOR_REGISTERS 16
#endif

typedef float vf __attribute__((vector_size(4 * VL)));
typedef int32_t vi __attribute__((vector_size(4 * VL)));
typedef uint32_t vu __attribute__((vector_size(4 * VL)));
typedef float vf_any __attribute__((vector_size(4 * VL), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define PRAGMA_(x) _Pragma(#x)
#ifdef __clang__
#define UNROLL(n) PRAGMA_(clang loop unroll_count(n))
#else
#define UNROLL(n) PRAGMA_(GCC unroll n)
#endif

INLINE vf splat(float x) { return x - (vf){0}; } /* nothing is computed: x + 0 would be, for -0 */
INLINE vf load(const float *p) { return *(const vf_any *)p; }
INLINE void store(float *p, vf v) { *(vf_any *)p = v; }

/* The first n < VL floats; the others are 0. */
INLINE vf load_part(const float *p, int n)
{
#if VGK_VL == 16 && defined(__AVX512F__)
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#elif VGK_VL == 8 && defined(__AVX2__)
    static const int32_t mask[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return (vf)_mm256_maskload_ps(p, _mm256_loadu_si256((const __m256i *)(mask + 8 - n)));
#else
    vf v = {0};
    for (int i = 0; i < n; i++)
        v[i] = p[i];
    return v;
#endif
}

INLINE void store_part(float *p, vf v, int n)
{
#if VGK_VL == 16 && defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#else
    /* Masked stores are slow before AVX-512: halves, quarters ... */
    float t[VL], *s = t;
    store(t, v);
    UNROLL(4)
    for (int size = VL / 2; size; size /= 2)
        if (n & size) {
            __builtin_memcpy(p, s, 4 * (size_t)size);
            p += size;
            s += size;
        }
#endif
}

INLINE vf load_n(const float *p, int n) { return n >= VL ? load(p) : load_part(p, n); }

INLINE void store_n(float *p, vf v, int n)
{
    if (n >= VL)
        store(p, v);
    else
        store_part(p, v, n);
}

/* v, loaded once: gcc would rather load it again for each product, and loads are what such loops have too many of. */
INLINE vf in_register(vf v)
{
#if (VGK_VL == 16 && defined(__AVX512F__)) || (VGK_VL == 8 && defined(__AVX2__))
    __asm__("" : "+v"(v));
#endif
    return v;
}

/* Where mask (all ones or zero) is set a, else b. */
INLINE vf pick(vi mask, vf a, vf b)
{
#if VGK_VL == 8 && defined(__AVX2__)
    return (vf)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
    return (vf)(((vi)a & mask) | ((vi)b & ~mask));
#endif
}

/* Where v < limit a, else b: with AVX-512 a mask that never becomes a vector, as gcc makes it of pick's. */
INLINE vf below(vf v, vf limit, vf a, vf b)
{
#if VGK_VL == 16 && defined(__AVX512F__)
    return (vf)_mm512_mask_blend_ps(_mm512_cmp_ps_mask((__m512)v, (__m512)limit, _CMP_LT_OQ), (__m512)b, (__m512)a);
#else
    return pick(v < limit, a, b);
#endif
}

/* NaN in v stays in both: the instructions give their second operand where one is NaN. */
INLINE vf at_least(vf v, vf low)
{
#if VGK_VL == 16 && defined(__AVX512F__)
    return (vf)_mm512_max_ps((__m512)low, (__m512)v);
#elif VGK_VL == 8 && defined(__AVX2__)
    return (vf)_mm256_max_ps((__m256)low, (__m256)v);
#else
    return pick(v < low, low, v);
#endif
}

INLINE vf at_most(vf v, vf high)
{
#if VGK_VL == 16 && defined(__AVX512F__)
    return (vf)_mm512_min_ps((__m512)high, (__m512)v);
#elif VGK_VL == 8 && defined(__AVX2__)
    return (vf)_mm256_min_ps((__m256)high, (__m256)v);
#else
    return pick(v > high, high, v);
#endif
}

/* exp(x) = 2^n exp(r), |x| <= 87 or NaN: n to the nearest integer, |r| <= ln 2 / 2; returns 2^n.  The rounding leaves n
 * and the exponent's bias in the low bits. */
INLINE vf exp_parts(vf x, vf *r)
{
    const float round = 12582912.0f + 127; /* 1.5 * 2^23 */
    vf n = x * 1.44269504f + round, two_n = (vf)((vu)n << 23); /* NaN may come, whose bits overflow */
    n -= round;
    *r = x - n * 0.693359375f; /* ln 2 in two pieces, the first exact */
    *r = *r + n * 2.12194440e-4f;
    return two_n;
}

/* (exp(r) - 1) / r by its Taylor series to r^7: the next term is below 6e-9 of exp(r). */
INLINE vf exp_series(vf r)
{
    vf p = r * (1.0f / 5040) + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    return p * r + 1.0f;
}

INLINE vf within(vf x, float most) { return at_most(at_least(x, splat(-most)), splat(most)); }

INLINE vf vexp_within(vf x)
{
    vf r, two_n = exp_parts(x, &r);
    return two_n * (exp_series(r) * r + 1.0f);
}

INLINE vf vexp(vf x) { return vexp_within(within(x, 87)); }
INLINE vf vsigmoid(vf x) { return 1.0f / (1.0f + vexp_within(-within(x, 87))); }
INLINE vf vsilu(vf x) { return x / (1.0f + vexp_within(-within(x, 87))); }

/* (e - 1) / (e + 1) with e = exp(2x), e - 1 taken from the parts so that it keeps its digits near 0. */
INLINE vf vtanh(vf x)
{
    vf r, two_n = exp_parts(within(x + x, 40), &r), m = two_n * (exp_series(r) * r) + (two_n - 1.0f);
    return m / (m + 2.0f);
}

/* Fine near 0, where exp(x) - 1 would lose its digits. */
INLINE vf vexpm1(vf x)
{
    vf r, two_n = exp_parts(within(x, 87), &r);
    return two_n * (exp_series(r) * r) + (two_n - 1.0f);
}

/* To 3e-7: Abramowitz & Stegun 7.1.26. */
INLINE vf verf(vf x)
{
    vf a = (vf)((vi)x & 0x7fffffff), t = 1.0f / (1.0f + 0.3275911f * a);
    vf p = t * 1.061405429f - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = (p * t + 0.254829592f) * t;
    return (vf)((vi)(1.0f - p * vexp(-a * a)) | ((vi)x & (int32_t)0x80000000));
}

INLINE vf clamp01(vf x) { return at_most(at_least(x, (vf){0}), splat(1.0f)); }

/* Multiples of step, from least to least + 255 times: held there first, so that the sum rounds to a whole number. */
INLINE vf vquanta(vf x, vf step, vf least)
{
    return (at_most(at_least(x / step, least), least + 255.0f) + 12582912.0f - 12582912.0f) * step; /* 1.5 * 2^23 */
}

INLINE vf vgelu_tanh(vf x) { return 0.5f * x * (1.0f + vtanh(0.7978845608f * (x + 0.044715f * (x * x * x)))); }
INLINE vf vgelu_erf(vf x) { return 0.5f * x * (1.0f + verf(x * 0.7071067812f)); }

#endif
