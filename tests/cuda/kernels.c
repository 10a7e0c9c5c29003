/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every kind of operation on random shapes, types and strides: the CUDA kernels on the stand-in against the CPU. */
#include "cudakit.h"

static struct vgk_device *cpu, *cuda;
static int n_compared, n_declined;

static const enum vgk_type floats[] = {VGK_F16, VGK_F32, VGK_F16, VGK_F32, VGK_BF16, VGK_F64};
static enum vgk_type any_float(void) { return floats[kit_int(0, 3)]; }
static enum vgk_type wide_float(void) { return floats[kit_int(0, 5)]; }
static enum vgk_type any_type(void)
{
    static const enum vgk_type all[] = {VGK_F16, VGK_F32, VGK_BF16, VGK_F64, VGK_I64, VGK_I32, VGK_U8, VGK_I8, VGK_BOOL, VGK_I16,
                                        VGK_U16, VGK_U32, VGK_U64};
    return all[kit_int(0, (int)(sizeof all / sizeof *all) - 1)];
}

/* One step of the type's rounding. */
static double step_of(enum vgk_type t)
{
    return t == VGK_F16 ? 0x1p-10 : t == VGK_BF16 ? 0x1p-7 : t == VGK_F32 ? 0x1p-23 : t == VGK_F64 ? 0x1p-40 : 0;
}

/* op->in are host tensors, op->out a host tensor that gets the device's result; `size` is how large values are that the
 * result is made of. */
static void compare(const struct vgk_op *op, double size)
{
    struct vgk_tensor want = cudakit_like(op->out);
    struct vgk_op reference = *op;
    struct vgk_error err = {{0}};
    char text[96];
    reference.out = &want;
    enum vgk_status s = cudakit_run(&vgk_cpu, cpu, &reference, &reference, &err);
    if (s == VGK_ERR_UNSUPPORTED) {
        cudakit_free(&want);
        return;
    }
    expectf(s == VGK_OK, "%s: %s", vgk_kind_name(op->kind), err.text);
    s = cudakit_device(cuda, op, &err);
    if (s == VGK_ERR_UNSUPPORTED) {
        n_declined++;
        cudakit_free(&want);
        return;
    }
    expectf(s == VGK_OK, "%s: %s", vgk_kind_name(op->kind), err.text);
    double tolerance = (step_of(want.type) * 1.01 + (want.type == VGK_F64 ? 0 : 4e-6)), worst = 0;
    int64_t n = vgk_tensor_count(&want), at = -1;
    for (int64_t i = 0; i < n; i++) {
        double a = cudakit_get(&want, i), b = cudakit_get(op->out, i), e;
        if (a == b || (a != a && b != b))
            continue;
        e = fabs(a - b) / (fabs(a) > size ? fabs(a) : size);
        e = isfinite(e) ? e : INFINITY;
        if (e > worst) {
            worst = e;
            at = i;
        }
    }
    expectf(worst <= tolerance, "%s to %s: element %ld is %.9g, expected %.9g (off by %.3g, allowed %.3g)",
            vgk_kind_name(op->kind), vgk_tensor_describe(op->out, text, sizeof text), (long)at, cudakit_get(op->out, at),
            cudakit_get(&want, at), worst, tolerance);
    n_compared++;
    cudakit_free(&want);
}

static void random_dims(int rank, int most, int64_t *dim)
{
    for (int d = 0; d < rank; d++)
        dim[d] = kit_int(1, most);
}

/* A tensor of these dims in which some are repeated by stride 0. */
static struct vgk_tensor repeated(enum vgk_type type, int rank, const int64_t *dim, double low, double high)
{
    int64_t small[VGK_MAX_RANK];
    for (int d = 0; d < rank; d++)
        small[d] = kit_int(0, 2) ? dim[d] : 1;
    struct vgk_tensor t = cudakit_random(type, rank, small, low, high);
    for (int d = 0; d < rank; d++)
        if (small[d] != dim[d]) {
            t.dim[d] = dim[d];
            t.stride[d] = 0;
        }
    return t;
}

static void free_all(struct vgk_tensor *in, int n, struct vgk_tensor *out)
{
    for (int i = 0; i < n; i++)
        cudakit_free(&in[i]);
    cudakit_free(out);
}

#define ROUNDS(n) for (int round = 0; round < (n); round++)

static void copies(void)
{
    ROUNDS(120) {
        int rank = kit_int(0, 6);
        int64_t dim[VGK_MAX_RANK];
        random_dims(rank, rank > 4 ? 3 : 12, dim);
        enum vgk_type from = any_type(), to = kit_int(0, 1) ? from : any_type();
        struct vgk_tensor x = cudakit_random(from, rank, dim, from == VGK_U64 ? 0 : -100, 100), y = cudakit_tensor(to, rank, dim);
        compare(&(struct vgk_op){.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &x, .out = &y}, 1e-3);
        free_all(&x, 1, &y);
    }
    /* Every half to float and back; floats at the edges of half's range. */
    struct vgk_tensor h = vgk_tensor_make(VGK_F16, 1, (int64_t[]){65536}, VGK_ROW_MAJOR), f = h;
    uint16_t *bits = h.data = malloc(65536 * 2);
    f.type = VGK_F32;
    f.data = calloc(65536, 4);
    for (int i = 0; i < 65536; i++)
        bits[i] = (uint16_t)i;
    compare(&(struct vgk_op){.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &h, .out = &f}, 1e-9);
    for (int i = 0; i < 65536; i++)
        ((float *)f.data)[i] = (float)(kit_real(0.9, 1.1) * (i % 4 ? i % 4 == 1 ? 65504 : 0x1p-14 : 0x1p-24));
    compare(&(struct vgk_op){.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &f, .out = &h}, 1e-9);
    free(h.data);
    free(f.data);
}

static void unaries(void)
{
    for (int fn = VGK_RELU; fn <= VGK_ATANH; fn++)
        ROUNDS(4) {
            int64_t dim[4];
            random_dims(4, 9, dim);
            enum vgk_type type = round ? wide_float() : VGK_I32;
            bool positive = fn == VGK_LOG || fn == VGK_SQRT || fn == VGK_ACOSH, unit = fn == VGK_ASIN || fn == VGK_ACOS || fn == VGK_ATANH;
            struct vgk_tensor x = cudakit_random(type, 4, dim, positive ? 1.01 : unit ? -0.99 : -4, unit ? 0.99 : 4),
                              y = cudakit_tensor(round ? type : VGK_I64, 4, dim);
            compare(&(struct vgk_op){.kind = VGK_OP_UNARY, .n_in = 1, .n_out = 1, .in = &x, .out = &y,
                                     .p.unary = {(enum vgk_unary_fn)fn, 0.7f, 1.3f}}, fn == VGK_TAN ? 4 : 0.1);
            free_all(&x, 1, &y);
        }
}

static void binaries(void)
{
    for (int fn = VGK_ADD; fn <= VGK_XOR; fn++)
        ROUNDS(8) {
            int64_t dim[4];
            random_dims(4, 9, dim);
            enum vgk_type type = round < 6 ? wide_float() : kit_int(0, 1) ? VGK_I64 : VGK_U8;
            enum vgk_type out = fn >= VGK_EQUAL ? VGK_BOOL : type;
            bool power = fn == VGK_POW || fn == VGK_DIV || fn == VGK_MOD || fn == VGK_FMOD;
            struct vgk_tensor in[2] = {repeated(type, 4, dim, power ? 0.5 : -5, 5), repeated(type, 4, dim, power ? 0.5 : -5, 5)},
                              y = cudakit_tensor(out, 4, dim);
            /* What is just below a multiple and what is just above differ by all of the divisor: whole numbers only. */
            if (fn == VGK_MOD || fn == VGK_FMOD)
                for (int k = 0; k < 2; k++)
                    for (int64_t i = 0; i < vgk_tensor_count(&in[k]); i++)
                        cudakit_set(&in[k], i, kit_int(1, 9));
            compare(&(struct vgk_op){.kind = VGK_OP_BINARY, .n_in = 2, .n_out = 1, .in = in, .out = &y,
                                     .p.binary = {(enum vgk_binary_fn)fn}}, 1e-2);
            free_all(in, 2, &y);
        }
}

/* in[i] with its values in f32, and op's strides. */
static struct vgk_tensor widened(const struct vgk_tensor *t)
{
    struct vgk_tensor r = *t;
    int64_t low;
    r.type = VGK_F32;
    size_t bytes = cudakit_span(&r, &low);
    r.data = (char *)malloc(bytes + 1) - low * 4;
    for (int64_t i = 0; i < vgk_tensor_count(t); i++)
        cudakit_set(&r, i, cudakit_get(t, i));
    return r;
}

/* The links one by one, on the device, in f32: the chain's bits. */
static void compare_links(const struct vgk_op *chain, const struct vgk_tensor *in)
{
    struct vgk_tensor result[VGK_CHAIN_MOST], y = cudakit_like(chain->out);
    struct vgk_op op = *chain;
    struct vgk_error err = {{0}};
    op.in = in;
    op.out = &y;
    expectf(cudakit_device(cuda, &op, &err) == VGK_OK, "%s", err.text);
    for (int k = 0; k < chain->p.chain.n; k++) {
        const struct vgk_link *l = &chain->p.chain.link[k];
        struct vgk_tensor two[2] = {l->a < VGK_CHAIN_LINK ? in[l->a] : result[l->a - VGK_CHAIN_LINK]};
        if (l->binary)
            two[1] = l->b < VGK_CHAIN_LINK ? in[l->b] : result[l->b - VGK_CHAIN_LINK];
        result[k] = cudakit_like(&y);
        struct vgk_op one = {.kind = l->binary ? VGK_OP_BINARY : VGK_OP_UNARY, .n_in = l->binary ? 2 : 1, .n_out = 1, .in = two,
                             .out = &result[k]};
        if (l->binary)
            one.p.binary = l->two;
        else
            one.p.unary = l->unary;
        expectf(cudakit_device(cuda, &one, &err) == VGK_OK, "%s", err.text);
    }
    const struct vgk_tensor *last = &result[chain->p.chain.n - 1];
    int64_t differ = 0;
    for (int64_t i = 0; i < vgk_tensor_count(&y); i++) {
        double a = cudakit_get(&y, i), b = cudakit_get(last, i);
        differ += !(a == b || (a != a && b != b));
    }
    expectf(!differ, "a chain of %d: %ld of %ld values differ from its links'", chain->p.chain.n, (long)differ,
            (long)vgk_tensor_count(&y));
    for (int k = 0; k < chain->p.chain.n; k++)
        cudakit_free(&result[k]);
    cudakit_free(&y);
}

/* Random trees and nets of links, on up to three tensors and some single values; against the CPU's chain in f32. */
static void chains(void)
{
    static const enum vgk_unary_fn unary[] = {VGK_RELU, VGK_LEAKY_RELU, VGK_CLIP, VGK_NEG, VGK_ABS, VGK_SIGMOID, VGK_TANH, VGK_SILU};
    static const enum vgk_binary_fn binary[] = {VGK_ADD, VGK_SUB, VGK_MUL, VGK_MIN, VGK_MAX, VGK_PRELU};
    int longest = 0;
    ROUNDS(120) {
        int64_t dim[4];
        random_dims(4, 12, dim);
        int tensors = kit_int(1, 3), n_in = tensors + kit_int(0, 2);
        struct vgk_tensor in[5], wide[5], y = cudakit_tensor(any_float(), 4, dim);
        for (int i = 0; i < n_in; i++) {
            if (i >= tensors) {
                in[i] = cudakit_random(any_float(), 4, (int64_t[]){1, 1, 1, 1}, -2, 2);
                for (int d = 0; d < 4; d++)
                    in[i].dim[d] = dim[d], in[i].stride[d] = 0;
            } else if (kit_int(0, 1)) { /* as the output lies: whole rows of vectors */
                in[i] = y;
                in[i].type = any_float();
                int64_t low;
                size_t bytes = cudakit_span(&in[i], &low);
                in[i].data = (char *)malloc(bytes + 1) - low * vgk_type_bits(in[i].type) / 8;
                for (int64_t k = 0; k < vgk_tensor_count(&in[i]); k++)
                    cudakit_set(&in[i], k, kit_real(-2, 2));
            } else {
                in[i] = kit_int(0, 2) ? cudakit_random(any_float(), 4, dim, -2, 2) : repeated(any_float(), 4, dim, -2, 2);
            }
            wide[i] = widened(&in[i]);
        }
        struct vgk_op op = {.kind = VGK_OP_CHAIN, .n_in = n_in, .n_out = 1, .in = in, .out = &y};
        struct vgk_chain *c = &op.p.chain;
        c->n = kit_int(2, VGK_CHAIN_MOST);
        longest = c->n > longest ? c->n : longest;
        for (int k = 0; k < c->n; k++) {
            struct vgk_link *l = &c->link[k];
            l->binary = kit_int(0, 1);
            int most = n_in + k - 1;
            int a = kit_int(0, 1) && k ? most : kit_int(0, most), b = kit_int(0, most);
            l->a = a < n_in ? a : VGK_CHAIN_LINK + a - n_in;
            l->b = b < n_in ? b : VGK_CHAIN_LINK + b - n_in;
            if (l->binary)
                l->two.fn = binary[kit_int(0, 5)];
            else
                l->unary = (struct vgk_unary){unary[kit_int(0, 7)], 0.25f, 1.5f};
        }
        struct vgk_tensor exact = y;
        exact.type = VGK_F32;
        struct vgk_tensor want = cudakit_like(&exact);
        struct vgk_op reference = op;
        struct vgk_error err = {{0}};
        reference.in = wide;
        reference.out = &want;
        expectf(cudakit_run(&vgk_cpu, cpu, &reference, &reference, &err) == VGK_OK, "%s", err.text);
        expectf(cudakit_device(cuda, &op, &err) == VGK_OK, "%s", err.text);
        double worst = 0;
        for (int64_t i = 0; i < vgk_tensor_count(&y); i++) {
            double a = cudakit_get(&want, i), b = cudakit_get(&y, i), e = fabs(a - b) / (fabs(a) > 4 ? fabs(a) : 4);
            worst = !(e <= worst) && !(a == b) && !(y.type == VGK_F16 && fabs(a) >= 65504) ? e : worst;
        }
        expectf(worst <= step_of(y.type) + 4e-5, "a chain of %d: off by %.3g", c->n, worst);
        n_compared++;
        compare_links(&reference, wide);
        cudakit_free(&want);
        for (int i = 0; i < n_in; i++)
            cudakit_free(&wide[i]);
        free_all(in, n_in, &y);
    }
    expect(longest == VGK_CHAIN_MOST);
}

/* |x| to the power of y: by a function that is not one of the fast ones. */
static void powers(void)
{
    ROUNDS(8) {
        int64_t dim[4];
        random_dims(4, 12, dim);
        struct vgk_tensor in[2] = {cudakit_random(VGK_F32, 4, dim, -2, 2), cudakit_random(VGK_F32, 4, dim, -2, 2)},
                          y = cudakit_tensor(VGK_F32, 4, dim);
        struct vgk_op op = {.kind = VGK_OP_CHAIN, .n_in = 2, .n_out = 1, .in = in, .out = &y, .p.chain = {.n = 2}};
        op.p.chain.link[0] = (struct vgk_link){.unary = {VGK_ABS}, .a = 0};
        op.p.chain.link[1] = (struct vgk_link){.binary = true, .two = {VGK_POW}, .a = VGK_CHAIN_LINK, .b = 1};
        compare(&op, 1e-2);
        compare_links(&op, in);
        free_all(in, 2, &y);
    }
}

static void wheres(void)
{
    ROUNDS(20) {
        int64_t dim[4];
        random_dims(4, 8, dim);
        enum vgk_type type = any_type();
        struct vgk_tensor in[3] = {repeated(VGK_BOOL, 4, dim, 0, 1), repeated(type, 4, dim, 0, 9), repeated(type, 4, dim, 0, 9)},
                          y = cudakit_tensor(type, 4, dim);
        compare(&(struct vgk_op){.kind = VGK_OP_WHERE, .n_in = 3, .n_out = 1, .in = in, .out = &y}, 1);
        free_all(in, 3, &y);
    }
}

static void quantisations(void)
{
    static const enum vgk_type whole[] = {VGK_U8, VGK_I8, VGK_U16, VGK_I16, VGK_I32};
    ROUNDS(30) {
        int64_t dim[4];
        random_dims(4, 8, dim);
        enum vgk_type q = whole[kit_int(0, 4)], f = any_float();
        bool zero = q != VGK_I32 && kit_int(0, 1);
        struct vgk_tensor in[3] = {cudakit_random(f, 4, dim, -300, 300), repeated(VGK_F32, 4, dim, 0.5, 2),
                                   zero ? repeated(q, 4, dim, 0, 100) : (struct vgk_tensor){VGK_NONE}},
                          y = cudakit_tensor(q, 4, dim);
        compare(&(struct vgk_op){.kind = VGK_OP_QUANTIZE, .n_in = 3, .n_out = 1, .in = in, .out = &y}, 1);
        struct vgk_tensor back[3] = {y, in[1], in[2]}, z = cudakit_tensor(f, 4, dim);
        compare(&(struct vgk_op){.kind = VGK_OP_DEQUANTIZE, .n_in = 3, .n_out = 1, .in = back, .out = &z}, 1);
        cudakit_free(&z);
        free_all(in, 3, &y);
    }
}

static void reductions(void)
{
    for (int fn = VGK_REDUCE_SUM; fn <= VGK_REDUCE_LOG_SUM_EXP; fn++)
        ROUNDS(6) {
            int64_t dim[4], out[4];
            random_dims(4, 9, dim);
            unsigned axes = (unsigned)kit_int(1, 15);
            for (int d = 0; d < 4; d++)
                out[d] = axes >> d & 1 ? 1 : dim[d];
            enum vgk_type type = round ? wide_float() : VGK_I32;
            struct vgk_tensor x = cudakit_random(type, 4, dim, fn == VGK_REDUCE_LOG_SUM ? 0.1 : -1, 1.2),
                              y = cudakit_tensor(round ? kit_int(0, 1) ? VGK_F32 : type : VGK_I64, 4, out);
            compare(&(struct vgk_op){.kind = VGK_OP_REDUCE, .n_in = 1, .n_out = 1, .in = &x, .out = &y,
                                     .p.reduce = {(enum vgk_reduce_fn)fn, axes}}, 1);
            free_all(&x, 1, &y);
        }
}

static void softmaxes(void)
{
    ROUNDS(20) {
        int64_t dim[4];
        random_dims(4, round % 4 ? 9 : 3, dim);
        int axis = kit_int(0, 3);
        dim[axis] = kit_int(1, 90);
        struct vgk_tensor x = cudakit_random(any_float(), 4, dim, -6, 6), y = cudakit_tensor(any_float(), 4, dim);
        compare(&(struct vgk_op){.kind = VGK_OP_SOFTMAX, .n_in = 1, .n_out = 1, .in = &x, .out = &y,
                                 .p.softmax = {axis, round % 3 == 0}}, 1);
        free_all(&x, 1, &y);
    }
}

static void norms(void)
{
    ROUNDS(32) {
        enum vgk_norm_kind kind = (enum vgk_norm_kind)(round % 4);
        int groups = kit_int(1, 4), axis = kit_int(1, 3);
        int64_t dim[4] = {kit_int(1, 2), groups * kit_int(1, 5), kit_int(1, 12), kit_int(2, 12)};
        bool rows = kind == VGK_NORM_LAYER || kind == VGK_NORM_RMS;
        struct vgk_tensor in[4] = {cudakit_random(any_float(), 4, dim, -2, 3), {VGK_NONE}, {VGK_NONE}, {VGK_NONE}},
                          y = cudakit_tensor(any_float(), 4, dim);
        for (int k = 1; k < 3; k++)
            if (kit_int(0, 3))
                in[k] = rows ? cudakit_random(any_float(), 4 - axis, dim + axis, 0.5, 1.5)
                             : cudakit_random(any_float(), 1, dim + 1, 0.5, 1.5);
        if (kit_int(0, 1))
            in[3] = cudakit_random(any_float(), 4, dim, -1, 1);
        compare(&(struct vgk_op){.kind = VGK_OP_NORM, .n_in = 4, .n_out = 1, .in = in, .out = &y,
                                 .p.norm = {kind, groups, axis, 1e-5f, (enum vgk_act)kit_int(0, 2), 0.1f, 0}}, 2);
        free_all(in, 4, &y);
    }
}

/* [N,C,H,W] with contiguous channels and pixels, as nets store images. */
static struct vgk_tensor image(enum vgk_type type, const int64_t *dim, double low, double high)
{
    struct vgk_tensor t = vgk_tensor_make(type, 4, dim, VGK_CHANNELS_LAST);
    t.data = calloc((size_t)vgk_tensor_count(&t) + 1, 8);
    for (int64_t i = 0; i < vgk_tensor_count(&t); i++)
        cudakit_set(&t, i, kit_real(low, high));
    return t;
}

static void norms_in_steps(void)
{
    ROUNDS(16) {
        int groups = kit_int(0, 1) ? kit_int(1, 4) : 0, rows = kit_int(1, 5);
        int64_t c = groups ? groups * kit_int(1, 12) : kit_int(1, 50), h = kit_int(1, 17), w = kit_int(1, 17);
        int64_t dim[4] = {kit_int(1, 2), c, h, w}, blocks[4] = {dim[0], 2 * c, (h + rows - 1) / rows, 1};
        enum vgk_type type = any_float();
        struct vgk_tensor x = image(type, dim, 50, 53), m = image(VGK_F64, blocks, 0, 0);
        struct vgk_op op = {.kind = VGK_OP_MOMENTS, .n_in = 1, .n_out = 1, .in = &x, .out = &m, .p.moments = {rows}};
        compare(&op, 1);
        struct vgk_tensor merge[3] = {m, {VGK_NONE}, {VGK_NONE}},
                          f = vgk_tensor_make(VGK_F32, 2, (int64_t[]){dim[0], 3 * c}, VGK_ROW_MAJOR);
        f.data = calloc((size_t)(dim[0] * 3 * c), sizeof(float));
        for (int k = 1; k < 3; k++)
            if (kit_int(0, 1))
                merge[k] = cudakit_random(any_float(), 1, &c, 0.5, 1.5);
        compare(&(struct vgk_op){.kind = VGK_OP_MERGE, .n_in = 3, .n_out = 1, .in = merge, .out = &f,
                                 .p.merge = {rows, h, w, groups, 1e-5f}}, 1);
        struct vgk_tensor in[3] = {x, f, {VGK_NONE}}, y = image(any_float(), dim, 0, 0);
        if (kit_int(0, 1))
            in[2] = image(any_float(), dim, -1, 1);
        /* The factor may be large where the variance is next to nothing. */
        double size = 1;
        for (int64_t i = 0; i < dim[0] * 3 * c; i++)
            size = fabs((double)((float *)f.data)[i]) > size ? fabs((double)((float *)f.data)[i]) : size;
        compare(&(struct vgk_op){.kind = VGK_OP_NORMALISE, .n_in = 3, .n_out = 1, .in = in, .out = &y,
                                 .p.normalise = {(enum vgk_act)kit_int(0, 2), 0.1f, 0}}, 50 * size);
        free(f.data), free(m.data), free(x.data), free(y.data), free(in[2].data);
        cudakit_free(&merge[1]), cudakit_free(&merge[2]);
    }
}

static void random_conv(int round, bool transposed)
{
    struct vgk_conv p = {.spatial = kit_int(1, 3), .groups = kit_int(0, 2) ? 1 : kit_int(2, 3)};
    int64_t x[5] = {kit_int(1, 2), 0, 0, 0, 0}, y[5], w[5], cin = kit_int(1, round % 4 ? 9 : 40), cout = kit_int(1, round % 4 ? 9 : 70);
    bool depthwise = p.groups > 1 && kit_int(0, 1);
    if (depthwise)
        cin = cout = 1, p.groups = kit_int(2, 20);
    x[1] = cin * p.groups;
    y[0] = x[0];
    y[1] = cout * p.groups;
    w[0] = transposed ? x[1] : y[1];
    w[1] = transposed ? cout : cin;
    p.pad_mode = transposed ? VGK_PAD_CONSTANT : (enum vgk_pad_mode)kit_int(0, 2);
    for (int d = 0; d < p.spatial; d++) {
        int most = p.spatial == 3 ? 4 : 13;
        x[2 + d] = kit_int(3, most);
        w[2 + d] = p.kernel[d] = kit_int(1, 3);
        p.stride[d] = kit_int(1, 3);
        p.dilation[d] = kit_int(1, 2);
        int64_t extent = (p.kernel[d] - 1) * p.dilation[d] + 1;
        p.pad_begin[d] = kit_int(0, 2);
        p.pad_end[d] = kit_int(0, 2);
        if (transposed) {
            p.output_padding[d] = kit_int(0, p.stride[d] - 1);
            y[2 + d] = (x[2 + d] - 1) * p.stride[d] + extent + p.output_padding[d] - p.pad_begin[d] - p.pad_end[d];
        } else {
            y[2 + d] = (x[2 + d] + p.pad_begin[d] + p.pad_end[d] - extent) / p.stride[d] + 1;
        }
        if (y[2 + d] < 1 || (!transposed && x[2 + d] + p.pad_begin[d] + p.pad_end[d] < extent))
            return;
    }
    int rank = 2 + p.spatial;
    enum vgk_type type = any_float();
    double size = sqrt((double)cin * p.kernel[0] * p.kernel[1 % p.spatial]);
    struct vgk_tensor in[6] = {cudakit_random(type, rank, x, -1, 1), cudakit_random(VGK_F32, rank, w, -1, 1), {VGK_NONE},
                               {VGK_NONE}, {VGK_NONE}, {VGK_NONE}},
                      out = cudakit_tensor(any_float(), rank, y);
    /* The device's copy of the weights is of x's type. */
    for (int64_t i = 0; i < vgk_tensor_count(&in[1]); i++) {
        uint16_t h;
        struct vgk_tensor half = {.type = VGK_F16, .data = &h};
        double v = cudakit_get(&in[1], i);
        vgk_store_f64(&v, &half, 0, 0, 1);
        cudakit_set(&in[1], i, cudakit_get(&half, 0));
    }
    for (int k = 2; k < 5; k++)
        if (kit_int(0, 1))
            in[k] = cudakit_random(VGK_F32, 1, y + 1, 0.5, 1.5);
    if (kit_int(0, 1))
        in[5] = cudakit_random(any_float(), rank, y, -1, 1);
    p.act = in[4].type == VGK_NONE ? (enum vgk_act)kit_int(0, 2) : VGK_ACT_PRELU;
    p.act = kit_int(0, 3) ? p.act : (enum vgk_act)kit_int(VGK_ACT_SIGMOID, VGK_ACT_GATE - 1);
    p.alpha = 0.2f;
    p.beta = 0.5f;
    p.residual_before_act = kit_int(0, 1);
    compare(&(struct vgk_op){.kind = transposed ? VGK_OP_CONV_TRANSPOSE : VGK_OP_CONV, .n_in = 6, .n_out = 1, .in = in,
                             .out = &out, .p.conv = p}, size);
    free_all(in, 6, &out);
}

static void convolutions(void)
{
    ROUNDS(60)
        random_conv(round, false);
}

static void transposed_convolutions(void)
{
    ROUNDS(40)
        random_conv(round, true);
}

static void pools(void)
{
    ROUNDS(40) {
        struct vgk_pool p = {.max = kit_int(0, 1), .spatial = kit_int(1, 3), .count_include_pad = kit_int(0, 1)};
        int64_t x[5] = {kit_int(1, 2), kit_int(1, 19)}, y[5] = {x[0], x[1]};
        for (int d = 0; d < p.spatial; d++) {
            x[2 + d] = kit_int(4, p.spatial == 3 ? 5 : 12);
            p.kernel[d] = kit_int(1, 3);
            p.stride[d] = kit_int(1, 3);
            p.dilation[d] = p.max ? kit_int(1, 2) : 1;
            p.pad_begin[d] = kit_int(0, p.kernel[d] / 2);
            p.pad_end[d] = kit_int(0, p.kernel[d] / 2);
            y[2 + d] = (x[2 + d] + p.pad_begin[d] + p.pad_end[d] - (p.kernel[d] - 1) * p.dilation[d] - 1) / p.stride[d] + 1;
            if (y[2 + d] < 1)
                y[2 + d] = 1;
        }
        enum vgk_type type = round % 5 ? wide_float() : VGK_U8;
        struct vgk_tensor in = cudakit_random(type, 2 + p.spatial, x, 0, 9), out = cudakit_tensor(type, 2 + p.spatial, y);
        compare(&(struct vgk_op){.kind = VGK_OP_POOL, .n_in = 1, .n_out = 1, .in = &in, .out = &out, .p.pool = p}, 1);
        free_all(&in, 1, &out);
    }
}

static void resizes(void)
{
    ROUNDS(60) {
        static const double scales[] = {1, 2, 0.5, 1.5, 2.0 / 3, 3, 0.37};
        struct vgk_resize p = {.mode = (enum vgk_resize_mode)kit_int(0, 2), .coordinates = (enum vgk_coordinates)kit_int(0, 4),
                               .nearest = (enum vgk_nearest_mode)kit_int(0, 3), .cubic_a = -0.75f, .antialias = kit_int(0, 1),
                               .exclude_outside = kit_int(0, 3) == 0};
        int64_t x[4] = {1, kit_int(1, 20), kit_int(3, 14), kit_int(3, 14)}, y[4] = {1, x[1]};
        p.antialias &= p.mode != VGK_NEAREST;
        p.scale[0] = p.scale[1] = 1;
        for (int d = 2; d < 4; d++) {
            p.scale[d] = scales[kit_int(0, 6)];
            y[d] = (int64_t)floor((double)x[d] * p.scale[d]);
        }
        enum vgk_type type = kit_int(0, 4) ? any_float() : VGK_U8;
        struct vgk_tensor in = cudakit_random(type, 4, x, 0, 200), out = cudakit_tensor(type, 4, y);
        if (y[2] && y[3] && type == VGK_U8 && p.mode != VGK_NEAREST)
            type = VGK_NONE; /* half a step is one or the other: not compared */
        if (y[2] && y[3] && type != VGK_NONE)
            compare(&(struct vgk_op){.kind = VGK_OP_RESIZE, .n_in = 1, .n_out = 1, .in = &in, .out = &out, .p.resize = p}, 200);
        /* A part of the rows, as bands have them: from the whole input. */
        int64_t rows = kit_int(1, (int)(y[2] ? y[2] : 1)), part[4] = {1, x[1], rows, y[3]};
        struct vgk_tensor some = cudakit_tensor(in.type, 4, part);
        for (int d = 0; d < 4; d++) {
            p.in_size[d] = x[d];
            p.out_size[d] = y[d];
        }
        p.out_begin[2] = y[2] - rows;
        if (y[2] && y[3] && type != VGK_NONE)
            compare(&(struct vgk_op){.kind = VGK_OP_RESIZE, .n_in = 1, .n_out = 1, .in = &in, .out = &some, .p.resize = p}, 200);
        cudakit_free(&some);
        free_all(&in, 1, &out);
    }
}

static void pads(void)
{
    ROUNDS(40) {
        struct vgk_pad p = {.mode = (enum vgk_pad_mode)kit_int(0, 3)};
        int rank = kit_int(1, 5);
        int64_t x[5], y[5];
        enum vgk_type type = any_type();
        for (int d = 0; d < rank; d++) {
            x[d] = kit_int(3, 10);
            p.begin[d] = kit_int(-1, 2);
            p.end[d] = kit_int(-1, 2);
            y[d] = x[d] + p.begin[d] + p.end[d];
        }
        struct vgk_tensor in[2] = {cudakit_random(type, rank, x, 0, 90), {VGK_NONE}}, out = cudakit_tensor(type, rank, y);
        if (kit_int(0, 1) && p.mode == VGK_PAD_CONSTANT)
            in[1] = cudakit_random(type, 0, NULL, 1, 9);
        compare(&(struct vgk_op){.kind = VGK_OP_PAD, .n_in = 2, .n_out = 1, .in = in, .out = &out, .p.pad = p}, 1);
        free_all(in, 2, &out);
    }
}

static void samples(void)
{
    ROUNDS(40) {
        int spatial = kit_int(2, 3);
        struct vgk_sample p = {.mode = (enum vgk_resize_mode)kit_int(0, spatial == 2 ? 2 : 1),
                               .padding = (enum vgk_sample_padding)kit_int(0, 2), .align_corners = kit_int(0, 1)};
        int64_t x[5] = {kit_int(1, 2), kit_int(1, 11)}, g[5] = {x[0]}, y[5] = {x[0], x[1]};
        for (int d = 0; d < spatial; d++) {
            x[2 + d] = kit_int(2, 7);
            g[1 + d] = y[2 + d] = kit_int(1, 6);
        }
        g[1 + spatial] = spatial;
        enum vgk_type type = any_float();
        struct vgk_tensor in[2] = {cudakit_random(type, 2 + spatial, x, -1, 1), cudakit_random(VGK_F32, 2 + spatial, g, -1.4, 1.4)},
                          out = cudakit_tensor(type, 2 + spatial, y);
        compare(&(struct vgk_op){.kind = VGK_OP_SAMPLE, .n_in = 2, .n_out = 1, .in = in, .out = &out, .p.sample = p}, 1);
        free_all(in, 2, &out);
    }
}

static void products(void)
{
    ROUNDS(40) {
        int rank = kit_int(2, 4);
        int64_t m = kit_int(1, round % 4 ? 20 : 90), n = kit_int(1, round % 4 ? 20 : 90), k = kit_int(1, 40), batch[2] = {kit_int(1, 3), kit_int(1, 3)};
        int64_t a[4], b[4], c[4], y[4];
        for (int d = 0; d < rank - 2; d++) {
            y[d] = c[d] = batch[d];
            a[d] = kit_int(0, 2) ? batch[d] : 1;
            b[d] = a[d] == 1 || kit_int(0, 2) ? batch[d] : 1;
        }
        a[rank - 2] = y[rank - 2] = m;
        a[rank - 1] = b[rank - 2] = k;
        b[rank - 1] = y[rank - 1] = n;
        c[rank - 2] = kit_int(0, 1) ? m : 1;
        c[rank - 1] = kit_int(0, 1) ? n : 1;
        enum vgk_type type = round % 6 ? any_float() : kit_int(0, 1) ? VGK_I32 : VGK_F64;
        double range = type == VGK_I32 ? 5 : 1;
        struct vgk_tensor in[3] = {cudakit_random(type, rank, a, -range, range), cudakit_random(type, rank, b, -range, range), {VGK_NONE}},
                          out = cudakit_tensor(type == VGK_I32 || type == VGK_F64 ? type : any_float(), rank, y);
        if (kit_int(0, 1))
            in[2] = cudakit_random(type, rank, c, -1, 1);
        bool whole = type == VGK_I32;
        compare(&(struct vgk_op){.kind = VGK_OP_MATMUL, .n_in = 3, .n_out = 1, .in = in, .out = &out,
                                 .p.matmul = {whole ? 1 : 0.5f, whole ? 1 : 2}}, sqrt((double)k));
        free_all(in, 3, &out);
    }
}

static void attentions(void)
{
    ROUNDS(24) {
        int64_t heads = kit_int(1, 2) * 2, keys = kit_int(1, round % 3 ? 40 : 300), q[4] = {kit_int(1, 2), heads, kit_int(1, 9), kit_int(1, 20)};
        int64_t k[4] = {q[0], kit_int(0, 1) ? heads : 2, keys, q[3]}, v[4] = {k[0], k[1], keys, kit_int(1, round % 8 ? 20 : 300)};
        int64_t y[4] = {q[0], heads, q[2], v[3]}, mask[4] = {q[0], heads, q[2], keys};
        enum vgk_type type = any_float();
        struct vgk_tensor in[4] = {cudakit_random(type, 4, q, -1, 1), cudakit_random(type, 4, k, -1, 1), cudakit_random(type, 4, v, -1, 1), {VGK_NONE}},
                          out = cudakit_tensor(any_float(), 4, y);
        if (kit_int(0, 1))
            in[3] = repeated(kit_int(0, 1) ? VGK_BOOL : VGK_F32, 4, mask, -2, 2);
        compare(&(struct vgk_op){.kind = VGK_OP_ATTENTION, .n_in = 4, .n_out = 1, .in = in, .out = &out,
                                 .p.attention = {0.4f, kit_int(0, 2) ? 0 : 3, kit_int(0, 2) == 0, kit_int(0, 3)}}, 1);
        free_all(in, 4, &out);
    }
}

/* Random indices, some counted from the end. */
static struct vgk_tensor random_indices(int rank, const int64_t *dim, int64_t size)
{
    struct vgk_tensor t = cudakit_tensor(kit_int(0, 1) ? VGK_I64 : VGK_I32, rank, dim);
    for (int64_t i = 0; i < vgk_tensor_count(&t); i++)
        cudakit_set(&t, i, kit_int((int)-size, (int)size - 1));
    return t;
}

static void gathers(void)
{
    ROUNDS(30) {
        int rank = kit_int(1, 4), axis = kit_int(0, rank - 1), ranks = kit_int(0, 2);
        int64_t x[4], i[2], y[6];
        random_dims(rank, 7, x);
        random_dims(ranks, 4, i);
        for (int d = 0; d < rank - 1 + ranks; d++)
            y[d] = d < axis ? x[d] : d < axis + ranks ? i[d - axis] : x[d - ranks + 1];
        enum vgk_type type = any_type();
        struct vgk_tensor in[2] = {cudakit_random(type, rank, x, 0, 100), random_indices(ranks, i, x[axis])},
                          out = cudakit_tensor(type, rank - 1 + ranks, y);
        compare(&(struct vgk_op){.kind = VGK_OP_GATHER, .n_in = 2, .n_out = 1, .in = in, .out = &out, .p.gather = {axis}}, 1);
        free_all(in, 2, &out);
    }
    /* GatherElements and ScatterElements along an axis. */
    ROUNDS(40) {
        int axis = kit_int(0, 2);
        int64_t x[3], u[4];
        random_dims(3, 7, x);
        for (int d = 0; d < 3; d++)
            u[d] = d == axis ? kit_int(1, 5) : kit_int(1, (int)x[d]);
        u[3] = 1;
        struct vgk_index p = {.n = 1, .axis = {axis}, .walk = {0, 1, 2}, .reduce = (enum vgk_scatter)(round % 5)};
        p.walk[axis] = -1;
        enum vgk_type type = round % 3 ? any_float() : VGK_I64;
        struct vgk_tensor in[3] = {cudakit_random(type, 3, x, 0.5, 1.5), random_indices(4, u, x[axis]), cudakit_random(type, 3, u, 0.5, 1.5)},
                          taken = cudakit_tensor(type, 3, u), scattered = cudakit_tensor(type, 3, x);
        compare(&(struct vgk_op){.kind = VGK_OP_TAKE, .n_in = 2, .n_out = 1, .in = in, .out = &taken, .p.index = p}, 1);
        compare(&(struct vgk_op){.kind = VGK_OP_SCATTER, .n_in = 3, .n_out = 1, .in = in, .out = &scattered, .p.index = p}, 1);
        cudakit_free(&taken);
        free_all(in, 3, &scattered);
    }
    ROUNDS(6) {
        enum vgk_type type = round % 2 ? VGK_I64 : VGK_F32;
        int64_t n = kit_int(1, 300);
        struct vgk_tensor in[3] = {cudakit_random(type, 0, NULL, -9, 9), cudakit_random(type, 0, NULL, 0, 1), cudakit_random(type, 0, NULL, 1, 3)},
                          out = cudakit_tensor(type, 1, &n);
        compare(&(struct vgk_op){.kind = VGK_OP_RANGE, .n_in = 3, .n_out = 1, .in = in, .out = &out}, 1);
        free_all(in, 3, &out);
    }
}

/* Weights that are stored in bytes: (w - zero) * scale, a scale for each block.  All of it is exact in f16. */
static void stored_weights(void)
{
    ROUNDS(60) {
        int kind = kit_int(0, 2), rank = kind < 2 ? 4 : kit_int(2, 3);
        bool blocks = kit_int(0, 1), zero = kit_int(0, 1);
        int64_t cin = 2 * kit_int(1, 20), cout = kit_int(1, 40), batch = rank == 3 ? kit_int(1, 3) : 1;
        int64_t w[4] = {cout, cin, 3, 3}, x[4] = {1, cin, 7, 9}, y[4] = {1, cout, 5, 7}, s[4] = {cout, blocks ? 2 : 1, 1, 1};
        if (kind == 1) /* transposed */
            w[0] = cin, w[1] = cout, y[2] = 9, y[3] = 11, s[0] = blocks ? 2 : 1, s[1] = cout;
        if (kind == 2) {
            int64_t b[] = {batch, cin, cout}, a[] = {batch, 6, cin}, c[] = {batch, 6, cout}, d[] = {1, blocks ? cin / 2 : 1, cout};
            memcpy(w, b + 3 - rank, rank * sizeof *w), memcpy(x, a + 3 - rank, rank * sizeof *x);
            memcpy(y, c + 3 - rank, rank * sizeof *y), memcpy(s, d + 3 - rank, rank * sizeof *s);
        }
        enum vgk_type type = any_float(), stored = kit_int(0, 1) ? VGK_I8 : VGK_U8;
        int low = stored == VGK_I8 ? -100 : 0;
        struct vgk_tensor in[8] = {cudakit_random(type, rank, x, -1, 1), cudakit_random(stored, rank, w, low, 200 + low)},
                          out = cudakit_tensor(kind < 2 ? any_float() : type, rank, y);
        in[VGK_WEIGHT_SCALE] = cudakit_tensor(VGK_F32, rank, s);
        for (int64_t i = 0; i < vgk_tensor_count(&in[VGK_WEIGHT_SCALE]); i++)
            cudakit_set(&in[VGK_WEIGHT_SCALE], i, ldexp(1, -kit_int(4, 8)));
        if (zero)
            in[VGK_WEIGHT_ZERO] = cudakit_random(stored, rank, s, low, 100 + low);
        struct vgk_op op = {.kind = kind == 2 ? VGK_OP_MATMUL : kind ? VGK_OP_CONV_TRANSPOSE : VGK_OP_CONV, .n_in = 8, .n_out = 1,
                            .in = in, .out = &out, .constant = 1 << 1 | 1 << VGK_WEIGHT_SCALE | 1 << VGK_WEIGHT_ZERO};
        if (kind == 2)
            op.p.matmul = (struct vgk_matmul){1, 1};
        else
            op.p.conv = (struct vgk_conv){.spatial = 2, .kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
        int before = n_compared;
        compare(&op, 10 * sqrt((double)cin * 9));
        expectf(n_compared == before + 1, "%s with stored weights is declined", vgk_kind_name(op.kind));
        free_all(in, 8, &out);
    }
}

int main(int argc, char **argv)
{
    struct vgk_error err = {{0}};
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1, .exact_products = true}, &cpu, &err);
    if (vgk_cuda.open(&(struct vgk_device_options){0}, &cuda, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    kit_seed(argc > 1 ? (uint64_t)atoi(argv[1]) : 1);
    run(copies);
    run(unaries);
    run(binaries);
    run(wheres);
    run(quantisations);
    run(reductions);
    run(softmaxes);
    run(norms);
    run(norms_in_steps);
    run(convolutions);
    run(transposed_convolutions);
    run(stored_weights);
    run(pools);
    run(resizes);
    run(pads);
    run(samples);
    run(products);
    run(attentions);
    run(gathers);
    run(chains);
    run(powers);
    printf("%d operations compared, %d declined\n", n_compared, n_declined);
    expect(getenv("KIT_ONLY") || (n_compared > 900 && n_declined < 60));
    expect(vgk_cuda.bytes_now(cuda) == 0);
    vgk_cuda.close(&cuda);
    vgk_cpu.close(&cpu);
    return kit_done();
}
