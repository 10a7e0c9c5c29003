/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pointwise.h"
#include "simd.h"

#include <math.h>

/* exp to the ends of the range: vexp stops at +-87. */
INLINE vf full_exp(vf x)
{
    vf e = vexp(x);
    e = pick(x > 88.72283f, splat(INFINITY), pick(x > 87.0f, vexp(x - 2.0f) * 7.389056099f, e));
    return pick(x < -87.0f, pick(x < -103.0f, (vf){0}, vexp(x + 20.0f) * 2.061153622e-9f), e);
}

INLINE vf vsqrt(vf x)
{
    for (int i = 0; i < VL; i++)
        x[i] = __builtin_sqrtf(x[i]);
    return x;
}

INLINE vf vabs(vf x) { return (vf)((vi)x & 0x7fffffff); }

#define EACH_UNARY(F) \
    F(relu, VGK_RELU, at_least(x, (vf){0})) \
    F(leaky_relu, VGK_LEAKY_RELU, below(x, (vf){0}, x * alpha, x)) \
    F(sigmoid, VGK_SIGMOID, vsigmoid(x)) \
    F(tanh, VGK_TANH, vtanh(x)) \
    F(clip, VGK_CLIP, at_most(at_least(x, splat(alpha)), splat(beta))) \
    F(elu, VGK_ELU, below(x, (vf){0}, vexpm1(x) * alpha, x)) \
    F(hard_sigmoid, VGK_HARD_SIGMOID, clamp01(x * alpha + beta)) \
    F(hard_swish, VGK_HARD_SWISH, x * clamp01(x * (1.0f / 6) + 0.5f)) \
    F(silu, VGK_SILU, below(x, splat(-88.0f), (vf){0}, vsilu(x))) \
    F(gelu_tanh, VGK_GELU_TANH, vgelu_tanh(x)) \
    F(gelu_erf, VGK_GELU_ERF, vgelu_erf(x)) \
    F(neg, VGK_NEG, -x) \
    F(abs, VGK_ABS, vabs(x)) \
    F(sqrt, VGK_SQRT, vsqrt(x)) \
    F(reciprocal, VGK_RECIPROCAL, 1.0f / x) \
    F(exp, VGK_EXP, full_exp(x)) \
    F(quanta, VGK_QUANTA, vquanta(x, splat(alpha), splat(beta)))

#define UNARY(NAME, FN, E) \
    INLINE vf one_##NAME(vf x, float alpha, float beta) { return E; } \
    static void unary_##NAME(float *d, const float *s, int64_t n, float alpha, float beta) \
    { \
        int64_t i = 0; \
        for (; i + VL <= n; i += VL) \
            store(d + i, one_##NAME(load(s + i), alpha, beta)); \
        if (i < n) \
            store_part(d + i, one_##NAME(load_part(s + i, (int)(n - i)), alpha, beta), (int)(n - i)); \
    }
EACH_UNARY(UNARY)

/* As the comparisons of single values: NaN from either side stays. */
INLINE vf least(vf a, vf b) { return pick((a < b) | (a != a), a, b); }
INLINE vf most(vf a, vf b) { return pick((a > b) | (a != a), a, b); }

#define EACH_BINARY(F) \
    F(add, VGK_ADD, a + b) \
    F(sub, VGK_SUB, a - b) \
    F(mul, VGK_MUL, a * b) \
    F(div, VGK_DIV, a / b) \
    F(min, VGK_MIN, least(a, b)) \
    F(max, VGK_MAX, most(a, b)) \
    F(prelu, VGK_PRELU, below(a, (vf){0}, a * b, a))

#define BINARY(NAME, FN, E) \
    INLINE vf two_##NAME(vf a, vf b) { return E; } \
    INLINE void each_##NAME(float *d, const float *p, const float *q, int64_t n, const int p_step, const int q_step) \
    { \
        vf a = splat(*p), b = splat(*q); \
        int64_t i = 0; \
        for (; i + VL <= n; i += VL) { \
            a = p_step ? load(p + i) : a; \
            b = q_step ? load(q + i) : b; \
            store(d + i, two_##NAME(a, b)); \
        } \
        if (i < n) { \
            a = p_step ? load_part(p + i, (int)(n - i)) : a; \
            b = q_step ? load_part(q + i, (int)(n - i)) : b; \
            store_part(d + i, two_##NAME(a, b), (int)(n - i)); \
        } \
    } \
    static void binary_##NAME(float *d, const float *p, const float *q, int64_t n, int p_step, int q_step) \
    { \
        if (p_step && q_step) \
            each_##NAME(d, p, q, n, 1, 1); \
        else if (p_step) \
            each_##NAME(d, p, q, n, 1, 0); \
        else if (q_step) \
            each_##NAME(d, p, q, n, 0, 1); \
        else \
            each_##NAME(d, p, q, n, 0, 0); \
    }
EACH_BINARY(BINARY)

/* x^2 is what decomposed norms have; any other through the library, element by element. */
static void binary_pow(float *d, const float *p, const float *q, int64_t n, int p_step, int q_step)
{
    if (!q_step && *q == 2)
        binary_mul(d, p, p, n, p_step, p_step);
    else
        for (int64_t i = 0; i < n; i++)
            d[i] = (float)pow((double)p[i * p_step], (double)q[i * q_step]);
}

static void gather(float *d, const float *s, int64_t rows, int64_t n, int64_t pitch, int64_t step)
{
    for (int64_t r = 0; r < rows; r++, d += n, s += pitch) {
        if (step > 1 || step < 0 || n == 1)
            for (int64_t i = 0; i < n; i++)
                d[i] = s[i * step];
        else
            for (int64_t i = 0; i < n; i += VL) /* what is too much of a row, the next one writes over */
                store(d + i, step ? load_n(s + i, n - i < VL ? (int)(n - i) : VL) : splat(*s));
    }
}

static void scatter(float *d, const float *s, int64_t rows, int64_t n, int64_t pitch, int64_t step)
{
    for (int64_t r = 0; r < rows; r++, d += pitch, s += n) {
        if (step != 1 || n == 1)
            for (int64_t i = 0; i < n; i++)
                d[i * step] = s[i];
        else
            for (int64_t i = 0; i < n; i += VL) {
                int have = n - i < VL ? (int)(n - i) : VL;
                store_n(d + i, load_n(s + i, have), have);
            }
    }
}

#define UNARY_ENTRY(NAME, FN, E) [FN] = unary_##NAME,
#define BINARY_ENTRY(NAME, FN, E) [FN] = binary_##NAME,
const struct vgk_pointwise_rows VGK_SET(vgk_pointwise_rows) = {
    {EACH_UNARY(UNARY_ENTRY)},
    {EACH_BINARY(BINARY_ENTRY)[VGK_POW] = binary_pow},
    gather,
    scatter,
};
