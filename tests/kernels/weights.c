/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Weights in the type that a model stores: the same bits as with those weights in f32, in less memory, for every type,
 * every way to scale them, and every instruction set; and the plain reference agrees. */
#include "cpukit.h"

static const char *const isas[] = {"generic", "avx2", "avx512"};
static const enum vgk_type types[] = {VGK_F16, VGK_BF16, VGK_I8, VGK_U8, VGK_I4, VGK_U4};

static bool whole(enum vgk_type t) { return !vgk_type_is_float(t); }

static void set_nibble(uint8_t *p, int64_t i, int v)
{
    p[i / 2] = (uint8_t)(i % 2 ? (p[i / 2] & 15) | (v & 15) << 4 : (p[i / 2] & 240) | (v & 15));
}

/* A number that fits the type, and its value. */
static float put(const struct vgk_tensor *t, int64_t at)
{
    switch (t->type) {
    case VGK_F16: {
        _Float16 h = (_Float16)(kit_int(0, 20) ? kit_real(-2, 2) : kit_real(-1e-5, 1e-5)); /* some are subnormal */
        ((_Float16 *)t->data)[at] = h;
        return (float)h;
    }
    case VGK_BF16: {
        float f = (float)kit_real(-2, 2);
        uint32_t u;
        memcpy(&u, &f, 4);
        ((uint16_t *)t->data)[at] = (uint16_t)(u >> 16);
        u = u >> 16 << 16;
        memcpy(&f, &u, 4);
        return f;
    }
    case VGK_I8: return ((int8_t *)t->data)[at] = (int8_t)kit_int(-128, 127);
    case VGK_U8: return ((uint8_t *)t->data)[at] = (uint8_t)kit_int(0, 255);
    default: {
        int v = t->type == VGK_I4 ? kit_int(-8, 7) : kit_int(0, 15);
        set_nibble(t->data, at, v);
        return (float)v;
    }
    }
}

/* Weights of these dims, their scale and zero point of dims that divide them, and the same in f32. */
struct weights {
    struct vgk_tensor w, scale, zero, f32;
};

static struct weights weights(enum vgk_type type, int rank, const int64_t *dim, const int64_t *scales, bool zero,
                              bool swapped)
{
    struct weights r = {.w = cpukit_tensor(type, VGK_ROW_MAJOR, rank, dim), .f32 = cpukit_tensor(VGK_F32, VGK_ROW_MAJOR, rank, dim)};
    if (swapped) { /* the last two dimensions lie the other way round */
        r.w.stride[rank - 1] = dim[rank - 2];
        r.w.stride[rank - 2] = 1;
    }
    if (whole(type)) {
        r.scale = cpukit_tensor(VGK_F32, VGK_ROW_MAJOR, rank, scales);
        cpukit_random(&r.scale, 0.001, 0.1);
    }
    float zeros[4096];
    if (whole(type) && zero) {
        r.zero = cpukit_tensor(type, VGK_ROW_MAJOR, rank, scales);
        for (int64_t i = 0; i < vgk_tensor_count(&r.zero); i++)
            zeros[i] = put(&r.zero, i);
    }
    for (int64_t i = 0; i < vgk_tensor_count(&r.w); i++) {
        int64_t rest = i, block = 0, step = 1;
        float v = put(&r.w, cpukit_offset(&r.w, i));
        for (int d = rank - 1; d >= 0; step *= scales[d], rest /= dim[d--])
            block += rest % dim[d] / (dim[d] / scales[d]) * step;
        if (whole(type))
            v = (v - (zero ? zeros[block] : 0)) * ((float *)r.scale.data)[block];
        ((float *)r.f32.data)[i] = v;
    }
    return r;
}

static void weights_free(struct weights *w)
{
    free(w->w.data);
    free(w->scale.data);
    free(w->zero.data);
    free(w->f32.data);
}

/* Both ops by the same family to equal bits, and by the reference to nearly those.  Returns bytes packed. */
static size_t compare(const struct vgk_cpu_family *family, struct vgk_op op, const struct weights *w, const char *what)
{
    struct vgk_tensor in[VGK_CONV_INPUTS] = {{VGK_NONE}}, y[3];
    struct vgk_need need = {0};
    size_t packed = 0;
    memcpy(in, op.in, (size_t)op.n_in * sizeof *in);
    for (int k = 0; k < 3; k++) {
        y[k] = *op.out;
        y[k].data = calloc((size_t)vgk_tensor_count(op.out) + 1, sizeof(float));
    }
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        for (int threads = 1; threads <= 3; threads += 2) {
            struct vgk_device *dev = cpukit_open(isas[i], threads);
            if (!dev)
                continue;
            op.in = in;
            op.n_in = VGK_CONV_INPUTS;
            op.out = &y[0];
            in[1] = w->f32;
            in[VGK_WEIGHT_SCALE].type = in[VGK_WEIGHT_ZERO].type = VGK_NONE;
            expectf(cpukit_family(dev, family, &op), "%s, %s: declined in f32", what, isas[i]);
            in[1] = w->w;
            in[VGK_WEIGHT_SCALE] = w->scale;
            in[VGK_WEIGHT_ZERO] = w->zero;
            op.out = &y[1];
            expectf(cpukit_family(dev, family, &op), "%s, %s: declined", what, isas[i]);
            if (family->need(dev, &op, &need, NULL) == VGK_OK)
                packed = need.packed;
            expectf(!memcmp(y[0].data, y[1].data, (size_t)vgk_tensor_count(op.out) * sizeof(float)), "%s, %s, %d threads",
                    what, isas[i], threads);
            op.out = &y[2];
            if (i == 0 && threads == 1) {
                expectf(cpukit_family(dev, &vgk_cpu_reference, &op), "%s: declined by the reference", what);
                double most = 0, wrong = 0;
                for (int64_t k = 0; k < vgk_tensor_count(op.out); k++) {
                    double a = ((float *)y[1].data)[k], b = ((float *)y[2].data)[k];
                    most = fabs(b) > most ? fabs(b) : most;
                    wrong = fabs(a - b) > wrong ? fabs(a - b) : wrong;
                }
                expectf(wrong <= 3e-6 * most, "%s: %g of %g from the reference", what, wrong, most);
            }
            vgk_cpu.close(&dev);
        }
    for (int k = 0; k < 3; k++)
        free(y[k].data);
    return packed;
}

static void products(void)
{
    for (int k = 0; k < 60; k++) {
        enum vgk_type type = types[k % 6];
        int64_t blocks = kit_int(1, 4), rows = kit_int(1, 40), depth = blocks * kit_int(1, 24), columns = kit_int(1, 70);
        struct vgk_tensor in[3] = {f32_rows(2, rows, depth)} /* two of a batch */, y = f32_rows(2, rows, columns), c = f32_rows(columns);
        const int64_t dim[] = {depth, columns}, scales[] = {kit_int(0, 2) ? blocks : 1, kit_int(0, 2) ? columns : 1};
        struct weights w = weights(type, 2, dim, scales, k % 4 > 1, k % 5 == 0);
        char what[96];
        snprintf(what, sizeof what, "%d: %s, %d x %d x %d, %d x %d scales", k, vgk_type_name(type), (int)rows, (int)depth,
                 (int)columns, (int)scales[0], (int)scales[1]);
        cpukit_random(&in[0], -1, 1);
        cpukit_random(&c, -1, 1);
        in[1].type = VGK_F32;
        if (k % 3)
            in[2] = c;
        struct vgk_op op = {.kind = VGK_OP_MATMUL, .n_in = 3, .n_out = 1, .in = in, .out = &y, .p.matmul = {1.5f, 0.5f}};
        compare(&vgk_cpu_matmul, op, &w, what);
        weights_free(&w);
        free(in[0].data), free(y.data), free(c.data);
    }
}

/* All layers, those of Winograd among them, which converts when it packs. */
static void convolutions(void)
{
    static const int kernels[] = {1, 3, 3, 5, 9};
    for (int k = 0; k < 60; k++) {
        enum vgk_type type = types[k % 6];
        int size = kernels[kit_int(0, 4)], groups = k % 7 == 0 ? 2 : 1;
        int64_t cin = kit_int(1, 20), cout = groups * kit_int(1, 40), h = kit_int(size, 20), wide = kit_int(size, 30);
        bool depthwise = k % 11 == 0;
        if (depthwise) {
            groups = (int)(cout = 3 + k);
            cin = 1;
        }
        struct vgk_tensor in[3] = {f32_last(1, cin * groups, h, wide)}, y = f32_last(1, cout, h, wide);
        const int64_t dim[] = {cout, cin, size, size}, scales[] = {kit_int(0, 2) ? cout : 1, k % 5 == 0 ? cin : 1, 1, 1};
        struct weights w = weights(type, 4, dim, scales, k % 4 > 1, k % 5 == 1);
        struct vgk_op op = {.kind = VGK_OP_CONV, .n_in = 2, .n_out = 1, .in = in, .out = &y,
                            .p.conv = {.spatial = 2, .kernel = {size, size}, .stride = {1, 1}, .dilation = {1, 1},
                                       .pad_begin = {size / 2, size / 2}, .pad_end = {size / 2, size / 2},
                                       .groups = groups, .exact_products = k % 2}};
        char what[96];
        snprintf(what, sizeof what, "%d: %s, %dx%d, %d to %d channels, %d groups", k, vgk_type_name(type), size, size,
                 (int)cin, (int)cout, groups);
        cpukit_random(&in[0], -1, 1);
        if (!op.p.conv.exact_products && !depthwise) { /* Winograd rounds otherwise than the reference does */
            struct vgk_conv *p = &op.p.conv;
            p->exact_products = size >= 3;
        }
        compare(&vgk_cpu_conv, op, &w, what);
        weights_free(&w);
        free(in[0].data), free(y.data);
    }
}

/* One and three dimensions; few outputs, which are made another way; and transposed, where each phase has some taps. */
static void dimensions(void)
{
    for (int k = 0; k < 60; k++) {
        bool transposed = k % 2, depthwise = k % 7 == 0;
        enum vgk_type type = types[k / 2 % (transposed ? 4 : 6)]; /* taps of 4 bits are not picked out */
        int spatial = k % 3 == 1 ? 1 : 3, rank = spatial + 2, stride = transposed ? kit_int(1, 2) : 1;
        int64_t cin = kit_int(1, 30), cout = k % 5 == 0 ? kit_int(1, 4) : kit_int(5, 40);
        int groups = depthwise ? (int)(cin = cout) : 1;
        int64_t x[5] = {1, cin, 5, 6, 9}, y[5] = {1, cout, 5, 6, 9}, dim[5] = {cout, cin / groups, 3, 3, 3},
                scales[5] = {1, 1, 1, 1, 1};
        struct vgk_op op = {.kind = transposed ? VGK_OP_CONV_TRANSPOSE : VGK_OP_CONV, .n_in = 2, .n_out = 1};
        if (transposed) {
            dim[0] = cin;
            dim[1] = cout / groups;
        }
        if (!depthwise || !transposed) /* by output channel */
            scales[transposed] = cout;
        op.p.conv = (struct vgk_conv){.spatial = spatial, .groups = groups, .exact_products = true};
        for (int d = 0; d < spatial; d++) {
            op.p.conv.kernel[d] = 3;
            op.p.conv.stride[d] = stride;
            op.p.conv.dilation[d] = op.p.conv.pad_begin[d] = op.p.conv.pad_end[d] = 1;
            y[2 + d] = transposed ? (x[2 + d] - 1) * stride + 1 : x[2 + d];
        }
        struct vgk_tensor in[2] = {cpukit_tensor(VGK_F32, VGK_CHANNELS_LAST, rank, x)},
                          out = cpukit_tensor(VGK_F32, VGK_CHANNELS_LAST, rank, y);
        struct weights w = weights(type, rank, dim, scales, k % 4 > 1, k % 5 == 1);
        char what[96];
        snprintf(what, sizeof what, "%d: %s%s, %d dimensions, %d to %d channels, %d groups", k, vgk_type_name(type),
                 transposed ? " transposed" : "", spatial, (int)cin, (int)cout, groups);
        cpukit_random(&in[0], -1, 1);
        op.in = in;
        op.out = &out;
        compare(transposed ? &vgk_cpu_conv_transpose : &vgk_cpu_conv, op, &w, what);
        weights_free(&w);
        free(in[0].data), free(out.data);
    }
}

static void winograd(void)
{
    for (int k = 0; k < 6; k++) {
        struct vgk_tensor in[2] = {f32_last(1, 16, 20, 20)}, y[2] = {f32_last(1, 24, 20, 20), f32_last(1, 24, 20, 20)};
        const int64_t dim[] = {24, 16, 3, 3}, scales[] = {24, 1, 1, 1};
        struct weights w = weights(types[k], 4, dim, scales, true, false);
        struct vgk_tensor all[VGK_CONV_INPUTS] = {in[0], w.f32};
        struct vgk_op op = {.kind = VGK_OP_CONV, .n_in = VGK_CONV_INPUTS, .n_out = 1, .in = all, .out = &y[0],
                            .p.conv = {.spatial = 2, .kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1},
                                       .pad_begin = {1, 1}, .pad_end = {1, 1}, .groups = 1}};
        struct vgk_device *dev = cpukit_open("", 1);
        cpukit_random(&in[0], -1, 1);
        expect(cpukit_family(dev, &vgk_cpu_conv, &op));
        all[1] = w.w;
        all[VGK_WEIGHT_SCALE] = w.scale;
        all[VGK_WEIGHT_ZERO] = w.zero;
        op.out = &y[1];
        expect(cpukit_family(dev, &vgk_cpu_conv, &op));
        expectf(!memcmp(y[0].data, y[1].data, 24 * 400 * sizeof(float)), "%s", vgk_type_name(types[k]));
        vgk_cpu.close(&dev);
        weights_free(&w);
        free(in[0].data), free(y[0].data), free(y[1].data);
    }
}

/* Packed they take what the model stores, and the scales. */
static void sizes(void)
{
    static const double most[] = {2.01, 2.01, 1.2, 1.2, 0.7, 0.7}; /* bytes a weight, with a scale for 32 */
    for (int k = 0; k < 6; k++) {
        const int64_t dim[] = {256, 480}, scales[] = {8, 480};
        struct weights w = weights(types[k], 2, dim, scales, true, false);
        struct vgk_tensor in[2] = {f32_rows(1, 256)}, y = f32_rows(1, 480);
        struct vgk_op op = {.kind = VGK_OP_MATMUL, .n_in = 2, .n_out = 1, .in = in, .out = &y, .p.matmul = {1, 0}};
        cpukit_random(&in[0], -1, 1);
        size_t packed = compare(&vgk_cpu_matmul, op, &w, "sizes");
        expectf(packed && (double)packed < most[k] * 256 * 480, "%s: %zu bytes", vgk_type_name(types[k]), packed);
        weights_free(&w);
        free(in[0].data), free(y.data);
    }
}

int main(void)
{
    kit_seed(1);
    run(products);
    run(convolutions);
    run(dimensions);
    run(winograd);
    run(sizes);
    return kit_done();
}
