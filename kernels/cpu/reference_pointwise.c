/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copy, unary, binary, where, range: one element from the same place of each input. */
#include "reference.h"

#include <math.h>
#include <string.h>

struct job {
    const struct vgk_op *op;
    const struct vgk_tensor *t[VGK_LOOP_TENSORS]; /* the output, then the inputs */
    struct vgk_loop loop;
    enum vgk_class class;
    int64_t step[VGK_LOOP_TENSORS]; /* along a row */
};

static void start(struct job *job, int n)
{
    vgk_loop_init(&job->loop, n, job->t);
    for (int i = 0; i < n; i++)
        job->step[i] = job->loop.stride[i][job->loop.rank - 1];
}

#define COPY_AS(T) \
    { \
        T *d = (T *)dst->data + offset[0]; \
        const T *s = (const T *)src->data + offset[1]; \
        for (int64_t i = 0; i < n; i++) \
            d[i * job->step[0]] = s[i * job->step[1]]; \
        return; \
    }

static void copy_piece(void *arg, const int64_t *offset, int64_t n)
{
    const struct job *job = arg;
    const struct vgk_tensor *dst = job->t[0], *src = job->t[1];
    if (src->type == dst->type)
        switch (vgk_type_bits(src->type)) {
        case 8: COPY_AS(uint8_t)
        case 16: COPY_AS(uint16_t)
        case 32: COPY_AS(uint32_t)
        case 64: COPY_AS(uint64_t)
        }
    if (vgk_type_class(src->type) == VGK_CLASS_I64) {
        int64_t v[VGK_LOOP_CHUNK];
        vgk_load_i64(v, src, offset[1], job->step[1], n);
        if (src->type == VGK_U64 && vgk_type_is_float(dst->type)) {
            for (int64_t i = 0; i < n; i++) {
                double d = (double)(uint64_t)v[i];
                vgk_store_f64(&d, dst, offset[0] + i * job->step[0], 0, 1);
            }
            return;
        }
        vgk_store_i64(v, dst, offset[0], job->step[0], n);
    } else {
        double v[VGK_LOOP_CHUNK];
        vgk_load_f64(v, src, offset[1], job->step[1], n);
        vgk_store_f64(v, dst, offset[0], job->step[0], n);
    }
}

void vgk_ref_copy(struct vgk_device *dev, const struct vgk_tensor *src, const struct vgk_tensor *dst)
{
    struct job job = {.t = {dst, src}};
    start(&job, 2);
    vgk_loop_run(dev, &job.loop, copy_piece, &job);
}

static double sigmoid(double x)
{
    double e = exp(-fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

static double softplus(double x) { return log1p(exp(-fabs(x))) + (x > 0 ? x : 0); }

/* NaN stays; high wins over low. */
static double clip(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* The quotient is a float's, as in reference_quantize.c. */
static double quanta(double x, double step, double least)
{
    return nearbyint(clip((double)((float)x / (float)step), least, least + 255)) * step;
}

double vgk_ref_act(enum vgk_act act, double alpha, double beta, double slope, double x)
{
    switch (act) {
    case VGK_ACT_NONE: return x;
    case VGK_ACT_RELU: return x < 0 ? 0 : x;
    case VGK_ACT_LEAKY_RELU: return x < 0 ? alpha * x : x;
    case VGK_ACT_PRELU: return x < 0 ? slope * x : x;
    case VGK_ACT_CLIP: return clip(x, alpha, beta);
    case VGK_ACT_SIGMOID: return sigmoid(x);
    case VGK_ACT_TANH: return tanh(x);
    case VGK_ACT_SILU: return x == -INFINITY ? 0 : x * sigmoid(x);
    case VGK_ACT_ELU: return x < 0 ? alpha * expm1(x) : x;
    case VGK_ACT_HARD_SIGMOID: return clip(alpha * x + beta, 0, 1);
    case VGK_ACT_HARD_SWISH: return x * clip(x / 6 + 0.5, 0, 1);
    case VGK_ACT_GELU_ERF: return 0.5 * x * (1 + erf(x * M_SQRT1_2));
    case VGK_ACT_GELU_TANH: return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case VGK_ACT_QUANTA: return quanta(x, alpha, beta);
    case VGK_ACT_GATE: return x * (sigmoid(x) + alpha);
    }
    return x;
}

/* In double also for f32: rounded once at the end, so it is the oracle for any way to compute in float. */
static double unary(const struct vgk_unary *u, double x)
{
    double a = u->alpha, b = u->beta;
    switch (u->fn) {
    case VGK_RELU: return x < 0 ? 0 : x;
    case VGK_LEAKY_RELU: return x < 0 ? a * x : x;
    case VGK_SIGMOID: return sigmoid(x);
    case VGK_TANH: return tanh(x);
    case VGK_CLIP: return clip(x, a, b);
    case VGK_ELU: return x < 0 ? a * expm1(x) : x;
    case VGK_HARD_SIGMOID: return clip(a * x + b, 0, 1);
    case VGK_HARD_SWISH: return x * clip(x / 6 + 0.5, 0, 1);
    case VGK_SOFTPLUS: return softplus(x);
    case VGK_MISH: return x * tanh(softplus(x));
    case VGK_SILU: return vgk_ref_act(VGK_ACT_SILU, 0, 0, 0, x);
    case VGK_GELU_ERF: return 0.5 * x * (1 + erf(x * M_SQRT1_2));
    case VGK_GELU_TANH: return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case VGK_NEG: return -x;
    case VGK_ABS: return fabs(x);
    case VGK_SQRT: return sqrt(x);
    case VGK_RECIPROCAL: return 1 / x;
    case VGK_EXP: return exp(x);
    case VGK_LOG: return log(x);
    case VGK_ERF: return erf(x);
    case VGK_SIN: return sin(x);
    case VGK_COS: return cos(x);
    case VGK_FLOOR: return floor(x);
    case VGK_CEIL: return ceil(x);
    case VGK_ROUND: return nearbyint(x);
    case VGK_SIGN: return x > 0 ? 1 : x < 0 ? -1 : x;
    case VGK_NOT: return x == 0;
    case VGK_IS_NAN: return x != x;
    case VGK_IS_INF: return (x == -INFINITY && a != 0) || (x == INFINITY && b != 0);
    case VGK_CELU: return x < 0 ? a * expm1(x / a) : x;
    case VGK_SELU: return x > 0 ? b * x : b * a * expm1(x);
    case VGK_THRESHOLDED_RELU: return x > a ? x : 0;
    case VGK_SOFTSIGN: return x / (1 + fabs(x));
    case VGK_SHRINK: return x < -a ? x + b : x > a ? x - b : 0;
    case VGK_SWISH: return x * sigmoid(a * x);
    case VGK_QUANTA: return quanta(x, a, b);
    case VGK_TAN: return tan(x);
    case VGK_ASIN: return asin(x);
    case VGK_ACOS: return acos(x);
    case VGK_ATAN: return atan(x);
    case VGK_SINH: return sinh(x);
    case VGK_COSH: return cosh(x);
    case VGK_ASINH: return asinh(x);
    case VGK_ACOSH: return acosh(x);
    case VGK_ATANH: return atanh(x);
    }
    return x;
}

static int64_t negate(int64_t x) { return (int64_t)(0 - (uint64_t)x); }

static int64_t unary_int(const struct vgk_unary *u, int64_t x)
{
    switch (u->fn) {
    case VGK_RELU: return x < 0 ? 0 : x;
    case VGK_CLIP:
        x = (double)x < (double)u->alpha ? vgk_f64_to_i64(ceil((double)u->alpha)) : x;
        return (double)x > (double)u->beta ? vgk_f64_to_i64(floor((double)u->beta)) : x;
    case VGK_NEG: return negate(x);
    case VGK_ABS: return x < 0 ? negate(x) : x;
    case VGK_SIGN: return (x > 0) - (x < 0);
    case VGK_NOT: return x == 0;
    case VGK_IS_NAN: return 0;
    case VGK_SHRINK: return (int64_t)unary(u, (double)x);
    default: return x; /* floor, ceil, round */
    }
}

bool vgk_ref_unary_knows(const struct vgk_op *op)
{
    if (vgk_type_class(op->in[0].type) != VGK_CLASS_I64)
        return true;
    switch (op->p.unary.fn) {
    case VGK_RELU: case VGK_CLIP: case VGK_NEG: case VGK_ABS: case VGK_SIGN: case VGK_NOT: case VGK_IS_NAN:
    case VGK_FLOOR: case VGK_CEIL: case VGK_ROUND: case VGK_SHRINK: return true;
    default: return false;
    }
}

static void unary_piece(void *arg, const int64_t *offset, int64_t n)
{
    const struct job *job = arg;
    const struct vgk_unary *u = &job->op->p.unary;
    if (job->class == VGK_CLASS_I64) {
        int64_t v[VGK_LOOP_CHUNK];
        vgk_load_i64(v, job->t[1], offset[1], job->step[1], n);
        for (int64_t i = 0; i < n; i++)
            v[i] = unary_int(u, v[i]);
        vgk_store_i64(v, job->t[0], offset[0], job->step[0], n);
    } else {
        double v[VGK_LOOP_CHUNK];
        vgk_load_f64(v, job->t[1], offset[1], job->step[1], n);
        for (int64_t i = 0; i < n; i++)
            v[i] = unary(u, v[i]);
        vgk_store_f64(v, job->t[0], offset[0], job->step[0], n);
    }
}

void vgk_ref_unary(struct vgk_device *dev, const struct vgk_op *op)
{
    struct job job = {.op = op, .t = {op->out, op->in}, .class = vgk_type_class(op->in[0].type)};
    start(&job, 2);
    vgk_loop_run(dev, &job.loop, unary_piece, &job);
}

/* f32 and f64: one function each, since + - * / round in the type itself. */
#define BINARY(NAME, T, S) \
    static T NAME(enum vgk_binary_fn fn, T a, T b) \
    { \
        T r; \
        switch (fn) { \
        case VGK_ADD: return a + b; \
        case VGK_SUB: return a - b; \
        case VGK_MUL: return a * b; \
        case VGK_DIV: return a / b; \
        case VGK_POW: return (T)pow((double)a, (double)b); \
        case VGK_MIN: return a < b || a != a ? a : b; /* NaN from either side stays */ \
        case VGK_MAX: return a > b || a != a ? a : b; \
        case VGK_MOD: \
            r = fmod##S(a, b); \
            return r != 0 && (r < 0) != (b < 0) ? r + b : r; \
        case VGK_FMOD: return fmod##S(a, b); \
        case VGK_PRELU: return a < 0 ? a * b : a; \
        case VGK_EQUAL: return a == b; \
        case VGK_LESS: return a < b; \
        case VGK_LESS_EQUAL: return a <= b; \
        case VGK_GREATER: return a > b; \
        case VGK_GREATER_EQUAL: return a >= b; \
        case VGK_AND: return a != 0 && b != 0; \
        case VGK_OR: return a != 0 || b != 0; \
        case VGK_XOR: return (a != 0) != (b != 0); \
        } \
        return a; \
    }
BINARY(binary_f32, float, f)
BINARY(binary_f64, double, )

static int64_t multiply(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

/* A negative exponent gives the truncated value: 0 but for bases of 1 and -1. */
static int64_t power(int64_t a, int64_t b)
{
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    int64_t r = 1;
    for (; b; b >>= 1, a = multiply(a, a))
        if (b & 1)
            r = multiply(r, a);
    return r;
}

static int64_t binary_i64(enum vgk_binary_fn fn, int64_t a, int64_t b)
{
    int64_t r;
    switch (fn) {
    case VGK_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case VGK_SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
    case VGK_MUL: return multiply(a, b);
    case VGK_DIV: return !b ? 0 : b == -1 ? negate(a) : a / b;
    case VGK_POW: return power(a, b);
    case VGK_MIN: return a < b ? a : b;
    case VGK_MAX: return a > b ? a : b;
    case VGK_MOD:
        r = !b || b == -1 ? 0 : a % b;
        return r && (r < 0) != (b < 0) ? r + b : r;
    case VGK_FMOD: return !b || b == -1 ? 0 : a % b;
    case VGK_PRELU: return a < 0 ? multiply(a, b) : a;
    case VGK_EQUAL: return a == b;
    case VGK_LESS: return a < b;
    case VGK_LESS_EQUAL: return a <= b;
    case VGK_GREATER: return a > b;
    case VGK_GREATER_EQUAL: return a >= b;
    case VGK_AND: return a && b;
    case VGK_OR: return a || b;
    case VGK_XOR: return !a != !b;
    }
    return a;
}

#define BINARY_PIECE(T, N) \
    { \
        T a[VGK_LOOP_CHUNK], b[VGK_LOOP_CHUNK]; \
        vgk_load_##N(a, job->t[1], offset[1], job->step[1], n); \
        vgk_load_##N(b, job->t[2], offset[2], job->step[2], n); \
        for (int64_t i = 0; i < n; i++) \
            a[i] = binary_##N(fn, a[i], b[i]); \
        vgk_store_##N(a, job->t[0], offset[0], job->step[0], n); \
        break; \
    }

static void binary_piece(void *arg, const int64_t *offset, int64_t n)
{
    const struct job *job = arg;
    enum vgk_binary_fn fn = job->op->p.binary.fn;
    switch (job->class) {
    case VGK_CLASS_F32: BINARY_PIECE(float, f32)
    case VGK_CLASS_F64: BINARY_PIECE(double, f64)
    case VGK_CLASS_I64: BINARY_PIECE(int64_t, i64)
    }
}

void vgk_ref_binary(struct vgk_device *dev, const struct vgk_op *op)
{
    struct job job = {.op = op, .t = {op->out, op->in, op->in + 1}, .class = vgk_type_class(op->in[0].type)};
    /* Pow may have an integer base and a float exponent. */
    if (op->in[1].type == VGK_F64 || (job.class == VGK_CLASS_I64 && vgk_type_is_float(op->in[1].type)))
        job.class = VGK_CLASS_F64;
    start(&job, 3);
    vgk_loop_run(dev, &job.loop, binary_piece, &job);
}

static void where_piece(void *arg, const int64_t *offset, int64_t n)
{
    const struct job *job = arg;
    int64_t mask[VGK_LOOP_CHUNK];
    vgk_load_i64(mask, job->t[1], offset[1], job->step[1], n);
    size_t size = (size_t)vgk_type_bits(job->t[0]->type) / 8;
    for (int64_t i = 0; i < n; i++) {
        int k = mask[i] ? 2 : 3;
        memmove(vgk_at(job->t[0], offset[0] + i * job->step[0]), vgk_at(job->t[k], offset[k] + i * job->step[k]), size);
    }
}

void vgk_ref_where(struct vgk_device *dev, const struct vgk_op *op)
{
    struct job job = {.op = op, .t = {op->out, op->in, op->in + 1, op->in + 2}};
    start(&job, 4);
    vgk_loop_run(dev, &job.loop, where_piece, &job);
}

void vgk_ref_range(struct vgk_device *dev, const struct vgk_op *op)
{
    const struct vgk_tensor *out = op->out;
    for (int64_t i = 0; i < out->dim[0]; i++)
        if (vgk_type_class(out->type) == VGK_CLASS_I64) {
            int64_t a, d;
            vgk_load_i64(&a, &op->in[0], 0, 0, 1);
            vgk_load_i64(&d, &op->in[2], 0, 0, 1);
            a = (int64_t)((uint64_t)a + (uint64_t)i * (uint64_t)d);
            vgk_store_i64(&a, out, i * out->stride[0], 0, 1);
        } else {
            double a, d;
            vgk_load_f64(&a, &op->in[0], 0, 0, 1);
            vgk_load_f64(&d, &op->in[2], 0, 0, 1);
            a += (double)i * d;
            vgk_store_f64(&a, out, i * out->stride[0], 0, 1);
        }
}
