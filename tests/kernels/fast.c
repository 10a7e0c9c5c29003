/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each fast family against the reference over random shapes, strides and orders; and that an element's bits do not
 * depend on where it lies.  A family that declines everything would pass nothing: takings are counted. */
#include "kernels/cpu/attention.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/resample.h"
#include "kernels/cpu/sample.h"
#include "cpukit.h"

static struct vgk_device *dev;
static int taken;

/* A tensor of random order, one in three a view into a larger one: strides with holes. */
static struct vgk_tensor view(int rank, const int64_t *dim, void **memory)
{
    int64_t larger[VGK_MAX_RANK];
    bool holes = !kit_int(0, 2);
    for (int i = 0; i < rank; i++)
        larger[i] = dim[i] + holes * kit_int(0, 3);
    struct vgk_tensor t = cpukit_tensor(VGK_F32, rank >= 3 && kit_int(0, 5) ? VGK_CHANNELS_LAST : VGK_ROW_MAJOR, rank,
                                        larger);
    *memory = t.data;
    cpukit_random(&t, -3, 3);
    for (int i = 0; i < rank; i++)
        t = vgk_tensor_slice(&t, i, larger[i] - dim[i], dim[i], 1);
    return t;
}

/* Of the same strides as t. */
static struct vgk_tensor like(const struct vgk_tensor *t, void **memory)
{
    struct vgk_tensor r = *t;
    int64_t extent = 1;
    for (int i = 0; i < t->rank; i++)
        extent += (t->dim[i] - 1) * t->stride[i];
    *memory = r.data = calloc((size_t)extent, sizeof(float));
    return r;
}

/* Runs op by both; every element within absolute + relative of the reference, what lies between untouched. */
static void compare(const struct vgk_cpu_family *family, struct vgk_op *op, double absolute, double relative,
                    const char *what)
{
    const struct vgk_tensor *out = op->out;
    struct vgk_tensor fast = *out;
    int64_t n = vgk_tensor_count(&fast);
    struct vgk_tensor slow = cpukit_tensor(fast.type, VGK_ROW_MAJOR, fast.rank, fast.dim);
    if (!cpukit_family(dev, family, op)) {
        free(slow.data);
        return;
    }
    taken++;
    op->out = &slow;
    expect(cpukit_family(dev, &vgk_cpu_reference, op));
    op->out = out;
    for (int64_t i = 0; i < n; i++) {
        double a = (double)cpukit_get(&fast, i), b = (double)cpukit_get(&slow, i);
        if (a == b || (a != a && b != b) || fabs(a - b) <= absolute + relative * fabs(b))
            continue;
        expectf(false, "%s: element %lld of %lld is %.9g, not %.9g", what, (long long)i, (long long)n, a, b);
        break;
    }
    free(slow.data);
}

static void samples(void)
{
    for (int k = 0; k < 120; k++) {
        int spatial = kit_int(1, 3);
        int64_t dim[5] = {kit_int(1, 2), kit_int(1, 40)}, out[5] = {dim[0], dim[1]}, places[5] = {dim[0]};
        void *m[3];
        bool offsets = k % 3 == 2;
        for (int d = 0; d < spatial; d++) {
            dim[2 + d] = kit_int(1, 9);
            out[2 + d] = places[1 + d] = offsets ? dim[2 + d] : kit_int(1, 9);
        }
        places[1 + spatial] = spatial;
        struct vgk_tensor in[2] = {view(2 + spatial, dim, &m[0]), view(2 + spatial, places, &m[1])},
                          y = view(2 + spatial, out, &m[2]);
        static const float special[] = {0, 1, -1, 1.25f, -3, 1e30f, INFINITY, -INFINITY, NAN};
        for (int64_t i = 0; i < vgk_tensor_count(&in[1]); i++)
            cpukit_set(&in[1], i, kit_int(0, 3) ? (float)kit_real(-1.5, 1.5) : special[kit_int(0, 8)]);
        struct vgk_op op = {.kind = VGK_OP_SAMPLE, .n_in = 2, .n_out = 1, .in = in, .out = &y,
            .p.sample = {spatial == 2 ? kit_int(offsets, 2) : kit_int(offsets, 1), kit_int(0, 2), kit_int(0, 1), offsets}};
        compare(&vgk_cpu_sample, &op, 3e-6, 1e-6, "sample");
        for (int i = 0; i < 3; i++)
            free(m[i]);
    }
}

/* Offsets against the grid that says the same; and a part of a picture against all of it: the same bits. */
static void sample_offsets(void)
{
    enum { W = 40, H = 30, AT = 11, PART = 16, EDGE = 5, C = 5 };
    for (int k = 0; k < 12; k++) {
        struct vgk_sample how = {k % 2 ? VGK_CUBIC : VGK_LINEAR, k % 3, k / 6, true};
        struct vgk_tensor x = f32_last(1, C, H, W), flow = f32_rows(1, H, W, 2), grid = f32_rows(1, H, W, 2),
                          y = f32_last(1, C, H, W), z = f32_last(1, C, H, W), in[2] = {x, flow};
        struct vgk_op op = {.kind = VGK_OP_SAMPLE, .n_in = 2, .n_out = 1, .in = in, .out = &y, .p.sample = how};
        int wrong = 0;
        cpukit_random(&x, -1, 1);
        cpukit_random(&flow, -3, 3);
        for (int64_t i = 0; i < vgk_tensor_count(&flow); i++) { /* some far beyond the edges */
            if (kit_int(0, 9) == 0)
                cpukit_set(&flow, i, (float)kit_real(-100, 100));
            double size = i % 2 ? H : W, at = (double)cpukit_get(&flow, i) + (double)(i % 2 ? i / 2 / W : i / 2 % W);
            cpukit_set(&grid, i, (float)(how.align_corners ? 2 * at / (size - 1) - 1 : (2 * at + 1) / size - 1));
        }
        expect(cpukit_run(dev, &op, NULL) == VGK_OK);
        op.p.sample.offsets = false;
        in[1] = grid;
        op.out = &z;
        expect(cpukit_run(dev, &op, NULL) == VGK_OK);
        for (int64_t i = 0; i < vgk_tensor_count(&y); i++)
            wrong += !(fabs((double)cpukit_get(&y, i) - (double)cpukit_get(&z, i)) < 2e-4);
        expectf(!wrong, "mode %d, padding %d, align %d: %d differ from the grid's", how.mode, how.padding, how.align_corners,
                wrong);
        for (int64_t i = 0; i < vgk_tensor_count(&flow); i++)
            cpukit_set(&flow, i, (float)fmod((double)cpukit_get(&flow, i), EDGE - 2));
        in[1] = flow;
        op.p.sample.offsets = true;
        op.out = &y;
        expect(cpukit_run(dev, &op, NULL) == VGK_OK);
        struct vgk_tensor part[2] = {vgk_tensor_slice(&x, 3, AT, PART, 1), vgk_tensor_slice(&flow, 2, AT, PART, 1)};
        struct vgk_tensor to = vgk_tensor_slice(&z, 3, AT, PART, 1), b = vgk_tensor_slice(&to, 3, EDGE, PART - 2 * EDGE, 1),
                          a = vgk_tensor_slice(&y, 3, AT + EDGE, PART - 2 * EDGE, 1);
        op.in = part;
        op.out = &to;
        expect(cpukit_run(dev, &op, NULL) == VGK_OK);
        wrong = 0;
        for (int64_t i = 0; i < vgk_tensor_count(&a); i++)
            wrong += cpukit_get(&a, i) != cpukit_get(&b, i);
        expectf(!wrong, "mode %d, padding %d, align %d: %d values of a part have other bits", how.mode, how.padding,
                how.align_corners, wrong);
        void *const blocks[] = {x.data, flow.data, grid.data, y.data, z.data};
        for (int i = 0; i < 5; i++)
            free(blocks[i]);
    }
}

/* A query alone, among others, and with fewer keys than it may see: the same bits. */
static void queries_alone(void)
{
    struct vgk_tensor q = f32_rows(1, 2, 37, 24), k = f32_rows(1, 2, 200, 24), v = f32_rows(1, 2, 200, 19),
                      y = f32_rows(1, 2, 37, 19), z = f32_rows(1, 2, 1, 19), in[3] = {q, k, v};
    for (int i = 0; i < 3; i++)
        cpukit_random(&in[i], -2, 2);
    struct vgk_op op = {.kind = VGK_OP_ATTENTION, .n_in = 3, .n_out = 1, .in = in, .out = &y,
                        .p.attention = {0.5f, 0, true, 150}};
    expect(cpukit_run(dev, &op, NULL) == VGK_OK);
    for (int i = 0; i < 37; i++) {
        int64_t seen = 151 + i < 200 ? 151 + i : 200;
        struct vgk_tensor one[3] = {vgk_tensor_slice(&q, 2, i, 1, 1), vgk_tensor_slice(&k, 2, 0, seen, 1),
                                    vgk_tensor_slice(&v, 2, 0, seen, 1)},
                          w = vgk_tensor_slice(&y, 2, i, 1, 1);
        op.in = one, op.out = &z;
        op.p.attention.causal = false;
        expect(cpukit_run(dev, &op, NULL) == VGK_OK);
        int differ = 0;
        for (int64_t e = 0; e < vgk_tensor_count(&z); e++)
            differ += cpukit_get(&z, e) != cpukit_get(&w, e);
        expectf(!differ, "query %d: %d differ", i, differ);
    }
    free(q.data), free(k.data), free(v.data), free(y.data), free(z.data);
}

/* Some with more keys than a block has, some with heads too large for a thread's own panels. */
static void attentions(void)
{
    for (int k = 0; k < 80; k++) {
        bool large = k % 40 == 39;
        int64_t groups = kit_int(1, 3), heads = groups * kit_int(1, 2), n = large ? 1 : kit_int(1, 3);
        int64_t queries = kit_int(1, 20), keys = large ? 2100 : k % 4 ? kit_int(1, 40) : kit_int(100, 300);
        int64_t depth = large ? 70 : kit_int(1, 40), width = large ? 60 : kit_int(1, 40);
        void *m[5];
        struct vgk_tensor in[4] = {view(4, (int64_t[]){n, heads, queries, depth}, &m[0]),
                                   view(4, (int64_t[]){n, groups, keys, depth}, &m[1]),
                                   view(4, (int64_t[]){n, groups, keys, width}, &m[2])},
                          y = view(4, (int64_t[]){n, heads, queries, width}, &m[3]),
                          mask = view(4, (int64_t[]){kit_int(0, 1) ? n : 1, 1, queries, keys}, &m[4]);
        for (int64_t i = 0; i < vgk_tensor_count(&mask); i++)
            if (!kit_int(0, 2))
                cpukit_set(&mask, i, -INFINITY);
        if (kit_int(0, 1))
            expect(vgk_tensor_broadcast(&mask, 4, (int64_t[]){n, heads, queries, keys}, &in[3]));
        struct vgk_op op = {.kind = VGK_OP_ATTENTION, .n_in = 4, .n_out = 1, .in = in, .out = &y,
            .p.attention = {0.3f, kit_int(0, 2) ? 0 : 5, kit_int(0, 1), kit_int(0, 5) - 1}};
        compare(&vgk_cpu_attention, &op, 1e-5, 1e-5, "attention");
        for (int i = 0; i < 5; i++)
            free(m[i]);
    }
}

static void unaries(void)
{
    for (int f = 0; f <= VGK_IS_NAN + 1; f++)
        for (int k = 0; k < 12; k++) {
            int fn = f > VGK_IS_NAN ? VGK_QUANTA : f;
            int64_t dim[4] = {kit_int(1, 2), kit_int(1, 20), kit_int(1, 9), kit_int(1, 40)};
            void *a, *b;
            char what[32];
            struct vgk_tensor x = view(4, dim, &a), y = like(&x, &b);
            bool root = fn == VGK_SQRT || fn == VGK_RECIPROCAL;
            for (int64_t i = 0; i < vgk_tensor_count(&x); i++) {
                static const float special[] = { 0,     -0.0f,  1e-6f,    -1e-6f,    90, -90,
                                                 1e30f, -1e30f, INFINITY, -INFINITY, NAN };
                float v = k < 2 ? special[kit_int(0, 10)] : (float)kit_real(-12, 12);
                cpukit_set(&x, i, root ? fabsf(v) : v);
            }
            struct vgk_op op = {.kind = VGK_OP_UNARY, .n_in = 1, .n_out = 1, .in = &x, .out = &y,
                                .p.unary = {(enum vgk_unary_fn)fn, 0.25f, fn == VGK_QUANTA ? -9 : 1.5f}};
            snprintf(what, sizeof what, "unary %d", fn);
            /* Polynomials to a few units of the last place; gelu near its zeros by cancellation. */
            if (!(k < 2 && (fn == VGK_SILU || fn == VGK_GELU_TANH || fn == VGK_HARD_SWISH || fn == VGK_ELU ||
                            fn == VGK_TANH))) {
                compare(&vgk_cpu_pointwise, &op, 4e-7, 1e-6, what);
                compare(&vgk_cpu_chain, &op, 4e-7, 1e-6, what);
            }
            free(a), free(b);
        }
}

static void binaries(void)
{
    for (int fn = 0; fn <= VGK_PRELU; fn++)
        for (int k = 0; k < 40; k++) {
            int64_t dim[4] = {kit_int(1, 2), kit_int(1, 20), kit_int(1, 9), kit_int(1, 60)}, part[4], full[4];
            void *m[3];
            char what[32];
            for (int i = 0; i < 4; i++) {
                part[i] = k % 4 == 0 || (k % 4 == 1 && i == 1) || (k % 4 == 3 && kit_int(0, 1)) ? dim[i] : 1;
                full[i] = dim[i];
            }
            bool swap = kit_int(0, 1);
            struct vgk_tensor in[2], t = view(4, swap ? part : full, &m[0]), u = view(4, swap ? full : part, &m[1]),
                              y = view(4, dim, &m[2]);
            expect(vgk_tensor_broadcast(&t, 4, dim, &in[0]) && vgk_tensor_broadcast(&u, 4, dim, &in[1]));
            if (fn == VGK_POW && kit_int(0, 1))
                for (int64_t i = 0; i < vgk_tensor_count(&u); i++)
                    cpukit_set(&u, i, 2);
            struct vgk_op op = {.kind = VGK_OP_BINARY, .n_in = 2, .n_out = 1, .in = in, .out = &y,
                                .p.binary = {(enum vgk_binary_fn)fn}};
            snprintf(what, sizeof what, "binary %d, kind %d", fn, k % 4);
            compare(&vgk_cpu_pointwise, &op, 0, 0, what); /* one rounding: the same bits */
            compare(&vgk_cpu_chain, &op, 0, 0, what);
            for (int i = 0; i < 3; i++)
                free(m[i]);
        }
}

static void copies(void)
{
    for (int k = 0; k < 200; k++) {
        int rank = kit_int(1, 6), perm[6];
        int64_t dim[6], turned[6];
        void *a, *b;
        for (int i = 0; i < rank; i++) {
            dim[i] = kit_int(1, rank < 4 ? 40 : 6);
            perm[i] = i;
        }
        for (int i = rank - 1; i > 0; i--) {
            int j = kit_int(0, i), t = perm[i];
            perm[i] = perm[j], perm[j] = t;
        }
        struct vgk_tensor x = view(rank, dim, &a), p = vgk_tensor_permute(&x, perm);
        memcpy(turned, p.dim, sizeof turned);
        if (kit_int(0, 1))
            p.stride[kit_int(0, rank - 1)] = 0; /* repeated */
        struct vgk_tensor y = view(rank, turned, &b);
        struct vgk_op op = {.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &p, .out = &y};
        compare(&vgk_cpu_copy, &op, 0, 0, "copy");
        free(a), free(b);
    }
    /* The pixel shuffle, larger than one table; other element sizes. */
    enum { R = 4, C = 3, H = 9, W = 131 };
    struct vgk_tensor x = f32_last(1, C * R * R, H, W), y = f32_last(1, C, H * R, W * R);
    cpukit_random(&x, -1, 1);
    struct vgk_tensor from = {VGK_F32, 6, {1, C, H, R, W, R},
                              {0, R * R, x.stride[2], R, x.stride[3], 1}, x.data};
    struct vgk_tensor to = {VGK_F32, 6, {1, C, H, R, W, R},
                            {0, 1, y.stride[2] * R, y.stride[2], y.stride[3] * R, y.stride[3]}, y.data};
    struct vgk_op op = {.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &from, .out = &to};
    compare(&vgk_cpu_copy, &op, 0, 0, "shuffle");
    op.in = &to, op.out = &from;
    compare(&vgk_cpu_copy, &op, 0, 0, "unshuffle");
    free(x.data), free(y.data);
    static const enum vgk_type types[] = {VGK_U8, VGK_F16, VGK_F64};
    for (int i = 0; i < 3; i++) {
        struct vgk_tensor s = cpukit_tensor(types[i], VGK_ROW_MAJOR, DIMS(1, 5, 7, 11)),
                          d = cpukit_tensor(types[i], VGK_CHANNELS_LAST, DIMS(1, 5, 7, 11));
        size_t size = (size_t)vgk_type_bits(types[i]) / 8;
        for (size_t k = 0; k < 385 * size; k++)
            ((uint8_t *)s.data)[k] = (uint8_t)kit_int(0, 255);
        expect(cpukit_family(dev, &vgk_cpu_copy,
                             &(struct vgk_op){.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &s, .out = &d}));
        for (int64_t k = 0; k < 385; k++)
            expect(!memcmp((char *)s.data + cpukit_offset(&s, k) * (int64_t)size,
                           (char *)d.data + cpukit_offset(&d, k) * (int64_t)size, size));
        free(s.data), free(d.data);
    }
}

static void resizes(void)
{
    for (int k = 0; k < 240; k++) {
        static const double scales[] = {2, 0.5, 3, 1.5, 0.25, 4, 1};
        int64_t dim[4] = {kit_int(1, 2), kit_int(0, 1) ? 3 : kit_int(1, 20), kit_int(1, 20), kit_int(1, 40)}, out[4];
        struct vgk_resize r = { .mode = (enum vgk_resize_mode)(k % 3),
                                .coordinates = (enum vgk_coordinates)kit_int(0, 4),
                                .nearest = (enum vgk_nearest_mode)kit_int(0, 3),
                                .cubic_a = -0.75f,
                                .antialias = kit_int(0, 1),
                                .exclude_outside = kit_int(0, 1) };
        void *a, *b;
        memcpy(out, dim, sizeof out);
        for (int i = 0; i < 4; i++)
            r.scale[i] = 1;
        for (int i = 2; i < 4; i++) {
            r.scale[i] = scales[kit_int(0, 6)];
            out[i] = (int64_t)floor((double)dim[i] * r.scale[i]);
            if (out[i] < 1)
                out[i] = 1;
        }
        struct vgk_tensor x = view(4, dim, &a), y = view(4, out, &b);
        struct vgk_op op = {.kind = VGK_OP_RESIZE, .n_in = 1, .n_out = 1, .in = &x, .out = &y, .p.resize = r};
        /* Up to 16 + 16 products of values to 3 in f32. */
        compare(&vgk_cpu_resample, &op, r.mode == VGK_NEAREST ? 0 : 4e-6, 0, "resize");
        free(a), free(b);
    }
}

static void pads(void)
{
    for (int k = 0; k < 120; k++) {
        int64_t dim[4] = {kit_int(1, 2), kit_int(1, 9), kit_int(2, 12), kit_int(2, 12)}, out[4];
        struct vgk_pad p = {.mode = (enum vgk_pad_mode)(k % 4)};
        void *a, *b;
        float nine = kit_int(0, 1) ? 9 : 0;
        memcpy(out, dim, sizeof out);
        for (int i = 2; i < 4; i++) {
            p.begin[i] = kit_int(-1, (int)dim[i] - 1);
            p.end[i] = p.begin[i] < 0 && dim[i] < 3 ? 0 : kit_int(-1, (int)dim[i] - 1);
            out[i] += p.begin[i] + p.end[i];
        }
        struct vgk_tensor in[2] = {view(4, dim, &a), {.type = VGK_F32, .data = &nine}}, y = view(4, out, &b);
        struct vgk_op op = {.kind = VGK_OP_PAD, .n_in = 2, .n_out = 1, .in = in, .out = &y, .p.pad = p};
        if (out[2] > 0 && out[3] > 0)
            compare(&vgk_cpu_pad, &op, 0, 0, "pad");
        free(a), free(b);
    }
}

/* Moments by blocks of rows, merged, applied: what an instance or group norm is made of. */
static void normalise(struct vgk_device *d, const struct vgk_op *norm, const struct vgk_tensor *out, int rows)
{
    const struct vgk_norm *p = &norm->p.norm;
    const struct vgk_tensor *x = &norm->in[0];
    struct vgk_tensor none = {VGK_NONE};
    struct vgk_tensor moments = cpukit_tensor(VGK_F64, VGK_CHANNELS_LAST,
                                              DIMS(x->dim[0], 2 * x->dim[1], (x->dim[2] + rows - 1) / rows, 1));
    struct vgk_tensor merged = f32_rows(x->dim[0], 3 * x->dim[1]);
    struct vgk_tensor three[3] = {moments, norm->n_in > 1 ? norm->in[1] : none, norm->n_in > 2 ? norm->in[2] : none};
    struct vgk_tensor apply[3] = {*x, merged, norm->n_in > 3 ? norm->in[3] : none};
    struct vgk_op a = {.kind = VGK_OP_MOMENTS, .n_in = 1, .n_out = 1, .in = x, .out = &moments, .p.moments = {rows}};
    struct vgk_op b = {.kind = VGK_OP_MERGE, .n_in = 3, .n_out = 1, .in = three, .out = &merged,
                       .p.merge = {rows, x->dim[2], x->dim[3], p->kind == VGK_NORM_GROUP ? p->groups : 0, p->epsilon}};
    struct vgk_op c = {.kind = VGK_OP_NORMALISE, .n_in = 3, .n_out = 1, .in = apply, .out = out,
                       .p.normalise = {p->act, p->alpha, p->beta}};
    expect(cpukit_family(d, &vgk_cpu_moments, &a));
    expect(cpukit_family(d, &vgk_cpu_merge, &b));
    expect(cpukit_family(d, &vgk_cpu_normalise, &c));
    free(moments.data), free(merged.data);
}

static void compare_norm(struct vgk_op *op, double absolute, double relative)
{
    const struct vgk_tensor *y = op->out;
    struct vgk_tensor expected = f32_last(y->dim[0], y->dim[1], y->dim[2], y->dim[3]);
    op->out = &expected;
    expect(cpukit_family(dev, &vgk_cpu_reference, op));
    normalise(dev, op, y, kit_int(1, 20));
    for (int64_t k = 0; k < vgk_tensor_count(y); k++) {
        double a = (double)cpukit_get(y, k), b = (double)cpukit_get(&expected, k);
        expectf(fabs(a - b) <= absolute + relative * fabs(b), "norm: element %d is %.9g, expected %.9g", (int)k, a, b);
    }
    op->out = y;
    free(expected.data);
    taken++;
}

static void norms(void)
{
    static const enum vgk_act acts[] = {VGK_ACT_NONE, VGK_ACT_RELU, VGK_ACT_LEAKY_RELU, VGK_ACT_CLIP, VGK_ACT_SIGMOID,
                                        VGK_ACT_TANH, VGK_ACT_SILU};
    for (int k = 0; k < 40; k++) {
        int64_t dim[4] = {kit_int(1, 2), kit_int(1, 40), kit_int(1, 60), kit_int(1, 90)};
        struct vgk_tensor in[4] = {f32_last(dim[0], dim[1], dim[2], dim[3]), f32_rows(dim[1]), f32_rows(dim[1]),
                                   f32_last(dim[0], dim[1], dim[2], dim[3])},
                          y = f32_last(dim[0], dim[1], dim[2], dim[3]);
        for (int i = 0; i < 4; i++)
            cpukit_random(&in[i], -1, 1);
        for (int64_t i = 0; k % 4 == 3 && i < vgk_tensor_count(&in[0]);
             i++) /* a mean that hides the variance from f32 */
            cpukit_set(&in[0], i, 1000 + cpukit_get(&in[0], i));
        struct vgk_op op = {.kind = VGK_OP_NORM, .n_in = kit_int(0, 1) ? 4 : kit_int(1, 3), .n_out = 1, .in = in,
                            .out = &y,
                            .p.norm = {.kind = VGK_NORM_INSTANCE, .epsilon = 1e-5f, .act = acts[k % 7], .alpha = -0.2f,
                                       .beta = 0.6f}};
        /* The mean is an f32: half a unit of 1000 is 3e-5, times 1 / deviation. */
        if (k % 3 == 0 && dim[1] % 2 == 0)
            op.p.norm.kind = VGK_NORM_GROUP, op.p.norm.groups = (int)dim[1] / 2;
        compare_norm(&op, k % 4 == 3 ? 2e-4 : 4e-6, 2e-6);
        struct vgk_tensor s = f32_rows(dim[0], dim[1], 1, 1);
        static const enum vgk_reduce_fn fns[] = {VGK_REDUCE_SUM, VGK_REDUCE_MEAN, VGK_REDUCE_L2, VGK_REDUCE_SUM_SQUARE};
        struct vgk_op reduce = {.kind = VGK_OP_REDUCE, .n_in = 1, .n_out = 1, .in = in, .out = &s,
                                .p.reduce = {fns[k % 4], 12}};
        compare(&vgk_cpu_reduce, &reduce, 1e-9, 1e-6, "reduce"); /* in double on both sides */
        for (int i = 0; i < 4; i++)
            free(in[i].data);
        free(y.data), free(s.data);
    }
}

static void softmaxes(void)
{
    for (int k = 0; k < 40; k++) {
        int64_t dim[2] = {kit_int(1, 35), kit_int(1, 70)};
        void *a, *b;
        struct vgk_tensor x = view(2, dim, &a), y = view(2, dim, &b);
        for (int64_t i = 0; i < vgk_tensor_count(&x) && k % 3 == 0; i++)
            if (kit_int(0, 3) == 0 || i < dim[1])
                cpukit_set(&x, i, -INFINITY); /* masked; the first row wholly */
        struct vgk_op op = {
            .kind = VGK_OP_SOFTMAX, .n_in = 1, .n_out = 1, .in = &x, .out = &y, .p.softmax = { 1, false }
        };
        compare(&vgk_cpu_softmax, &op, 1e-9, 2e-6, "softmax");
        free(a), free(b);
    }
}

/* Layer and RMS norms over the last dimensions, also of a row with a mean a thousand times its deviation. */
static void norms_of_rows(void)
{
    for (int round = 0; round < 300; round++) {
        int rank = kit_int(1, 4), axis = kit_int(0, rank - 1);
        int64_t dim[4];
        void *memory[4];
        for (int d = 0; d < rank; d++)
            dim[d] = kit_int(1, d == rank - 1 ? 70 : 5);
        struct vgk_tensor x = view(rank, dim, &memory[0]), y = view(rank, dim, &memory[1]), in[4] = {x};
        int order[4] = {0, 1, 2, 3};
        if (rank > 2 && axis == rank - 1 && x.stride[1] == 1) { /* an image's channels, seen as the last dimension */
            order[1] = 2, order[2] = rank == 4 ? 3 : 1, order[3] = 1;
            in[0] = vgk_tensor_permute(&x, order);
            y = vgk_tensor_permute(&y, order);
        }
        for (int i = 1; i < 3; i++) {
            memory[1 + i] = NULL;
            if (kit_int(0, 2))
                in[i] = view(rank - axis, in[0].dim + axis, &memory[1 + i]);
        }
        bool far = kit_int(0, 1);
        for (int64_t i = 0; far && i < vgk_tensor_count(&x); i++)
            cpukit_set(&x, i, cpukit_get(&x, i) + 1000);
        struct vgk_op op = {.kind = VGK_OP_NORM, .n_in = 4, .n_out = 1, .in = in, .out = &y,
                            .p.norm = {.kind = kit_int(0, 1) ? VGK_NORM_LAYER : VGK_NORM_RMS, .axis = axis,
                                       .epsilon = 1e-5f}};
        compare(&vgk_cpu_norm_last, &op, 4e-6, 4e-6, "a norm of rows");
        for (int i = 0; i < 4; i++)
            free(memory[i]);
    }
}

static void products(void)
{
    for (int k = 0; k < 60; k++) {
        int64_t b[2] = {kit_int(1, 3), kit_int(1, 3)}, m = kit_int(1, 40), n = kit_int(1, 70), depth = kit_int(1, 90);
        bool flat = kit_int(0, 1);
        struct vgk_tensor in[3] = { f32_rows(b[0], b[1], m, depth),
                                    flat ? f32_rows(depth, n) : f32_rows(1, b[1], depth, n),
                                    kit_int(0, 1) ? f32_rows(n) : f32_rows(b[1], m, 1) },
                          y = f32_rows(b[0], b[1], m, n), turned[3];
        for (int i = 0; i < 3; i++) {
            cpukit_random(&in[i], -1, 1);
            turned[i] = in[i];
        }
        struct vgk_tensor t = f32_rows(n, depth);
        if (flat && kit_int(0, 1)) { /* transposed weights, as a view */
            cpukit_random(&t, -1, 1);
            turned[1] = vgk_tensor_permute(&t, (int[]){1, 0});
        }
        struct vgk_op op = {.kind = VGK_OP_MATMUL, .n_in = kit_int(2, 3), .n_out = 1, .in = turned, .out = &y,
                            .p.matmul = {k % 2 ? 1 : 0.5f, 2}};
        compare(&vgk_cpu_matmul, &op, 3e-6, 1e-6, "matmul"); /* 90 products in f32 */
        for (int i = 0; i < 3; i++)
            free(in[i].data);
        free(y.data), free(t.data);
    }
}

/* The same values at another place of a row give the same bits: for each op, out of a crop = crop of out. */
static void positions(void)
{
    struct vgk_tensor x = f32_last(1, 3, 8, 97);
    cpukit_random(&x, -6, 6);
    for (int shift = 1; shift < 20; shift++) {
        struct vgk_tensor part = vgk_tensor_slice(&x, 3, shift, 97 - 2 * shift, 1);
        struct vgk_tensor crop = f32_last(1, 3, 8, 97 - 2 * shift), y = f32_last(1, 3, 8, 97),
                          z = f32_last(1, 3, 8, 97 - 2 * shift);
        for (int64_t i = 0; i < vgk_tensor_count(&crop); i++)
            cpukit_set(&crop, i, cpukit_get(&part, i));
        for (int fn = 0; fn <= VGK_GELU_TANH; fn++) {
            struct vgk_op op = {.kind = VGK_OP_UNARY, .n_in = 1, .n_out = 1, .in = &x, .out = &y,
                                .p.unary = {(enum vgk_unary_fn)fn, 0.2f, 2}};
            expect(cpukit_run(dev, &op, NULL) == VGK_OK);
            op.in = &crop, op.out = &z;
            expect(cpukit_run(dev, &op, NULL) == VGK_OK);
            struct vgk_tensor w = vgk_tensor_slice(&y, 3, shift, 97 - 2 * shift, 1);
            int differ = 0;
            for (int64_t i = 0; i < vgk_tensor_count(&z); i++)
                differ += cpukit_get(&w, i) != cpukit_get(&z, i);
            expectf(!differ, "unary %d, moved by %d: %d differ", fn, shift, differ);
        }
        free(crop.data), free(y.data), free(z.data);
    }
    /* Resize by 1/2, 3/2 and 4: moved by a whole number of periods, and far from the edges. */
    static const struct {
        int in, out;
    } ratio[] = {{2, 1}, {2, 3}, {1, 4}, {3, 1}};
    for (int k = 0; k < 12; k++) {
        int in = ratio[k / 3].in, out = ratio[k / 3].out, n = 6 * in, at = 2 * in * (5 + k % 3), size = 40 * in;
        struct vgk_resize r = {.mode = k & 1 ? VGK_LINEAR : VGK_CUBIC, .coordinates = VGK_HALF_PIXEL, .cubic_a = -0.75f,
                               .scale = {1, 1, (double)(float)out / in, (double)((float)out / (float)in)}};
        struct vgk_tensor big = f32_last(1, 3, size, size), y = f32_last(1, 3, size / in * out, size / in * out),
                          small = f32_last(1, 3, n, n), z = f32_last(1, 3, 6 * out, 6 * out);
        cpukit_random(&big, -1, 1);
        struct vgk_tensor part = vgk_tensor_slice(&big, 2, at, n, 1);
        part = vgk_tensor_slice(&part, 3, at + in, n, 1);
        for (int64_t i = 0; i < vgk_tensor_count(&small); i++)
            cpukit_set(&small, i, cpukit_get(&part, i));
        struct vgk_op op = {.kind = VGK_OP_RESIZE, .n_in = 1, .n_out = 1, .in = &big, .out = &y, .p.resize = r};
        expect(cpukit_run(dev, &op, NULL) == VGK_OK);
        op.in = &small, op.out = &z;
        expect(cpukit_run(dev, &op, NULL) == VGK_OK);
        int differ = 0;
        for (int c = 0; c < 3; c++)
            for (int v = 2 * out; v < 4 * out; v++)
                for (int u = 2 * out; u < 4 * out; u++)
                    differ += cpukit_get(&z, (c * 6 * out + v) * 6 * out + u) !=
                              cpukit_get(&y, (c * y.dim[2] + at / in * out + v) * y.dim[3] + (at + in) / in * out + u);
        expectf(!differ, "resize %d to %d: %d differ", in, out, differ);
        free(big.data), free(y.data), free(small.data), free(z.data);
    }
    free(x.data);
}

/* What lies beside the channels in memory changes no bit of a norm's result. */
static void norms_anywhere(void)
{
    for (int c = 1; c <= 40; c++) {
        struct vgk_tensor wide = f32_last(1, c + 5, 23, 31), wide_y = f32_last(1, c + 5, 23, 31), x = f32_last(1, c, 23, 31),
                          y = f32_last(1, c, 23, 31), part = vgk_tensor_slice(&wide, 1, 2, c, 1),
                          part_y = vgk_tensor_slice(&wide_y, 1, 3, c, 1);
        cpukit_random(&wide, -1, 5);
        for (int64_t i = 0; i < vgk_tensor_count(&x); i++)
            cpukit_set(&x, i, cpukit_get(&part, i));
        struct vgk_op op = {.kind = VGK_OP_NORM, .n_in = 1, .n_out = 1, .in = &x, .out = &y,
                            .p.norm = {.kind = VGK_NORM_INSTANCE, .epsilon = 1e-5f, .act = VGK_ACT_SIGMOID}};
        normalise(dev, &op, &y, 6);
        op.in = &part;
        normalise(dev, &op, &part_y, 6);
        int differ = 0;
        for (int64_t i = 0; i < vgk_tensor_count(&y); i++)
            differ += cpukit_get(&y, i) != cpukit_get(&part_y, i);
        expectf(!differ, "%d channels: %d differ", c, differ);
        free(wide.data), free(wide_y.data), free(x.data), free(y.data);
    }
}

/* The number of threads changes no bit of the statistics. */
static void threads_agree(void)
{
    struct vgk_device *one = cpukit_open("generic", 1), *three = cpukit_open("generic", 3);
    struct vgk_tensor x = f32_last(1, 5, 130, 170), a = f32_last(1, 5, 130, 170), b = f32_last(1, 5, 130, 170);
    cpukit_random(&x, -1, 5);
    struct vgk_op op = {.kind = VGK_OP_NORM, .n_in = 1, .n_out = 1, .in = &x, .out = &a,
                        .p.norm = {.kind = VGK_NORM_INSTANCE, .epsilon = 1e-5f}};
    normalise(one, &op, &a, 12);
    normalise(three, &op, &b, 12);
    expect(!memcmp(a.data, b.data, 5 * 130 * 170 * sizeof(float)));
    free(x.data), free(a.data), free(b.data);
    vgk_cpu.close(&one);
    vgk_cpu.close(&three);
}

static void device(void)
{
    struct vgk_device *d = NULL;
    struct vgk_error err = {{0}};
    expect(vgk_cpu.open(&(struct vgk_device_options){.threads = 1, .max_bytes = 4096}, &d, &err) == VGK_OK);
    void *a = vgk_cpu.alloc(d, 1000), *b = vgk_cpu.alloc(d, 3000);
    expect(a && b && !vgk_cpu.alloc(d, 100));
    expect(vgk_cpu.bytes_now(d) == 1024 + 3008 && vgk_cpu.bytes_peak(d) == 1024 + 3008);
    vgk_cpu.free(d, b);
    expect(vgk_cpu.bytes_now(d) == 1024 && vgk_cpu.bytes_peak(d) == 1024 + 3008);
    vgk_cpu.free(d, a);
    expect(vgk_cpu.bytes_now(d) == 0 && strstr(vgk_cpu.describe(d), "1 thread)"));
    vgk_cpu.close(&d);
    expect(!d);
    vgk_cpu.close(&d);
    setenv("VIDGEN_CPU", "mmx", 1);
    expect(vgk_cpu.open(&(struct vgk_device_options){ 0 }, &d, &err) == VGK_ERR_INVALID && !d &&
           strstr(err.text, "'mmx'"));
    setenv("VIDGEN_CPU", "", 1);
    expect(vgk_cpu.open(&(struct vgk_device_options){.threads = -1}, &d, &err) == VGK_ERR_INVALID && !d);
}

int main(void)
{
    static const char *const isa[] = {"generic", "avx2", "avx512"};
    static void (*const families[])(void) = {unaries, binaries, copies, resizes, pads, norms, softmaxes, samples,
                                            attentions, products, norms_of_rows};
    static const int least[] = {300, 400, 150, 100, 30, 70, 35, 60, 80, 60, 100}; /* cases taken by the family */
    run(device);
    for (int i = 0; i < 3; i++)
        for (int threads = 1; threads <= 2; threads++) {
            if (!(dev = cpukit_open(isa[i], threads)))
                continue;
            printf("%s\n", vgk_cpu.describe(dev));
            for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
                kit_seed(f + 1);
                taken = 0;
                families[f]();
                expectf(taken >= least[f], "family %zu took %d", f, taken);
            }
            run(positions);
            run(queries_alone);
            run(norms_anywhere);
            run(sample_offsets);
            vgk_cpu.close(&dev);
        }
    run(threads_agree);
    return kit_done();
}
