/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The plain reference against values worked out by hand or by ONNX's own definitions. */
#include "cpukit.h"

static struct vgk_device *dev;

static void reference(const struct vgk_op *op) { expect(cpukit_family(dev, &vgk_cpu_reference, op)); }

static void copies(void)
{
    struct vgk_tensor in = f32_rows(8);
    fill(&in, -1.7f, 2.9f, 300.6f, 65519, 65520, NAN, 0.5f, -INFINITY);
    struct vgk_tensor i8 = in, h = in, b = in, i64 = in, back = f32_rows(8);
    int8_t v8[8];
    uint16_t vh[8];
    uint8_t vb[8];
    int64_t v64[8];
    i8.type = VGK_I8, i8.data = v8;
    h.type = VGK_F16, h.data = vh;
    b.type = VGK_BOOL, b.data = vb;
    i64.type = VGK_I64, i64.data = v64;
    struct vgk_op op = {.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &in, .out = &i8};
    reference(&op);
    expect(v8[0] == -1 && v8[1] == 2 && v8[2] == 44 && v8[6] == 0);
    op.out = &i64;
    reference(&op);
    expect(v64[0] == -1 && v64[2] == 300 && v64[5] == 0 && v64[7] == INT64_MIN);
    op.out = &b;
    reference(&op);
    expect(vb[0] == 1 && vb[5] == 1 && vb[6] == 1);
    op.out = &h;
    reference(&op);
    /* 65519 rounds to the largest half, 65520 lies half way to 65536 and overflows. */
    expect(vh[3] == 0x7bff && vh[4] == 0x7c00 && vh[6] == 0x3800 && vh[7] == 0xfc00 && (vh[5] & 0x7fff) > 0x7c00);
    op.in = &h;
    op.out = &back;
    reference(&op);
    expect(cpukit_get(&back, 3) == 65504 && isinf(cpukit_get(&back, 4)) && cpukit_get(&back, 6) == 0.5f);

    /* Every half comes back from a float as it was; half of the smallest rounds to even. */
    uint16_t all[2048], again[2048];
    float wide[2048];
    struct vgk_tensor a = vgk_tensor_make(VGK_F16, 1, (int64_t[]){2048}, VGK_ROW_MAJOR), f = a, c = a;
    f.type = VGK_F32;
    a.data = all, f.data = wide, c.data = again;
    for (int first = 0; first < 65536; first += 2048) {
        for (int i = 0; i < 2048; i++)
            all[i] = (uint16_t)(first + i);
        reference(&(struct vgk_op){.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &a, .out = &f});
        reference(&(struct vgk_op){.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &f, .out = &c});
        for (int i = 0; i < 2048; i++)
            expectf(all[i] == again[i] || (wide[i] != wide[i] && (all[i] & 0x7c00) == 0x7c00), "half %04x", all[i]);
    }
    wide[0] = 0x1p-25f, wide[1] = 0x1.8p-24f, wide[2] = 0x1.000002p-25f, wide[3] = 1 + 0x1p-11f;
    reference(&(struct vgk_op){.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &f, .out = &c});
    expect(again[0] == 0 && again[1] == 2 && again[2] == 1 && again[3] == 0x3c00);

    /* Nibbles, low first; a permuted view of eight dimensions. */
    uint8_t nibbles[2] = {0x9f, 0x07};
    struct vgk_tensor n = vgk_tensor_make(VGK_I4, 1, (int64_t[]){3}, VGK_ROW_MAJOR), three = f32_rows(3);
    n.data = nibbles;
    reference(&(struct vgk_op){.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &n, .out = &three});
    expect_values(&three, 0, -1, -7, 7);
    struct vgk_tensor x = f32_rows(2, 3, 1, 2, 2, 2, 1, 3), y = f32_rows(3, 3, 2, 1, 2, 2, 1, 2);
    for (int i = 0; i < 144; i++)
        cpukit_set(&x, i, (float)i);
    struct vgk_tensor p = vgk_tensor_permute(&x, (int[]){7, 1, 4, 2, 5, 3, 6, 0});
    reference(&(struct vgk_op){.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &p, .out = &y});
    for (int i = 0; i < 144; i++)
        expect(cpukit_get(&y, i) == cpukit_get(&p, i));
    /* Nothing at all. */
    struct vgk_tensor none = f32_rows(2, 0, 3);
    reference(&(struct vgk_op){.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &none, .out = &none});
    free(none.data), free(x.data), free(y.data), free(three.data), free(back.data), free(in.data);
}

static void unaries(void)
{
    static const struct {
        enum vgk_unary_fn fn;
        float a, b, x, y;
    } cases[] = {
        { VGK_RELU, 0, 0, -2, 0 },
        { VGK_RELU, 0, 0, NAN, NAN },
        { VGK_LEAKY_RELU, 0.1f, 0, -2, -0.2f },
        { VGK_SIGMOID, 0, 0, 1, 0.7310585786f },
        { VGK_SIGMOID, 0, 0, -200, 0 },
        { VGK_TANH, 0, 0, 0.5f, 0.4621171573f },
        { VGK_CLIP, -1, 1, NAN, NAN },
        { VGK_CLIP, 2, 1, 5, 1 },
        { VGK_CLIP, 2, 1, 0, 1 },
        { VGK_CLIP, 0, 1, -3, 0 },
        { VGK_ELU, 2, 0, -1, -1.264241118f },
        { VGK_HARD_SIGMOID, 0.2f, 0.5f, 1, 0.7f },
        { VGK_HARD_SWISH, 0, 0, 1, 0.66666667f },
        { VGK_SOFTPLUS, 0, 0, 100, 100 },
        { VGK_SOFTPLUS, 0, 0, 0, 0.6931471806f },
        { VGK_MISH, 0, 0, 1, 0.8650983883f },
        { VGK_SILU, 0, 0, 1, 0.7310585786f },
        { VGK_SILU, 0, 0, -INFINITY, 0 },
        { VGK_GELU_ERF, 0, 0, 1, 0.8413447461f },
        { VGK_GELU_TANH, 0, 0, 1, 0.8411919906f },
        { VGK_NEG, 0, 0, 3, -3 },
        { VGK_ABS, 0, 0, -3, 3 },
        { VGK_SQRT, 0, 0, 2, 1.414213562f },
        { VGK_RECIPROCAL, 0, 0, 4, 0.25f },
        { VGK_EXP, 0, 0, 1, 2.718281828f },
        { VGK_LOG, 0, 0, 10, 2.302585093f },
        { VGK_ERF, 0, 0, 0.5f, 0.5204998778f },
        { VGK_SIN, 0, 0, 1000, 0.8268795405f },
        { VGK_COS, 0, 0, 1000, 0.5623790763f },
        { VGK_FLOOR, 0, 0, -1.5f, -2 },
        { VGK_CEIL, 0, 0, -1.5f, -1 },
        { VGK_ROUND, 0, 0, 2.5f, 2 },
        { VGK_ROUND, 0, 0, -1.5f, -2 },
        { VGK_QUANTA, 0.5f, 0, 0.74f, 0.5f },
        { VGK_QUANTA, 0.5f, 0, 1.25f, 1 },
        { VGK_QUANTA, 0.5f, 0, -3, 0 },
        { VGK_QUANTA, 0.5f, -3, -7, -1.5f },
        { VGK_QUANTA, 0.5f, -3, INFINITY, 126 },
        { VGK_QUANTA, 0.5f, 0, NAN, NAN },
        { VGK_SIGN, 0, 0, -7, -1 },
        { VGK_SIGN, 0, 0, 0, 0 },
    };
    struct vgk_tensor x = f32_rows(1), y = f32_rows(1);
    x.rank = y.rank = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cpukit_set(&x, 0, cases[i].x);
        reference(&(struct vgk_op){.kind = VGK_OP_UNARY, .n_in = 1, .n_out = 1, .in = &x, .out = &y,
                                   .p.unary = {cases[i].fn, cases[i].a, cases[i].b}});
        float g = cpukit_get(&y, 0), w = cases[i].y;
        expectf(g == w || fabsf(g - w) <= 1e-7f * fabsf(w) || (g != g && w != w), "case %zu: %.9g, not %.9g", i,
                (double)g, (double)w);
    }
    int64_t v = -7, r = 0;
    struct vgk_tensor a = {.type = VGK_I64, .data = &v}, b = {.type = VGK_I64, .data = &r};
    struct vgk_op op = {.kind = VGK_OP_UNARY, .n_in = 1, .n_out = 1, .in = &a, .out = &b, .p.unary = {VGK_ABS}};
    reference(&op);
    expect(r == 7);
    struct vgk_need need;
    struct vgk_error err;
    op.p.unary.fn = VGK_SIN;
    expect(vgk_cpu.need(dev, &op, &need, &err) == VGK_ERR_UNSUPPORTED && strstr(err.text, "unary of i64[]"));
    free(x.data), free(y.data);
}

static int64_t integer(enum vgk_binary_fn fn, int64_t a, int64_t b)
{
    int64_t r = 0;
    struct vgk_tensor in[2] = {{.type = VGK_I64, .data = &a}, {.type = VGK_I64, .data = &b}},
                      out = {.type = VGK_I64, .data = &r};
    reference(&(struct vgk_op){.kind = VGK_OP_BINARY, .n_in = 2, .n_out = 1, .in = in, .out = &out, .p.binary = {fn}});
    return r;
}

static float real(enum vgk_binary_fn fn, float a, float b)
{
    float r = 0;
    struct vgk_tensor in[2] = {{.type = VGK_F32, .data = &a}, {.type = VGK_F32, .data = &b}},
                      out = {.type = VGK_F32, .data = &r};
    reference(&(struct vgk_op){.kind = VGK_OP_BINARY, .n_in = 2, .n_out = 1, .in = in, .out = &out, .p.binary = {fn}});
    return r;
}

static void binaries(void)
{
    expect(integer(VGK_DIV, -7, 2) == -3 && integer(VGK_DIV, 5, 0) == 0 &&
           integer(VGK_DIV, INT64_MIN, -1) == INT64_MIN);
    expect(integer(VGK_MOD, -7, 3) == 2 && integer(VGK_MOD, 7, -3) == -2 && integer(VGK_FMOD, -7, 3) == -1);
    expect(integer(VGK_POW, 3, 4) == 81 && integer(VGK_POW, 2, -1) == 0 && integer(VGK_ADD, INT64_MAX, 1) == INT64_MIN);
    expect(real(VGK_MOD, -7.5f, 2) == 0.5f && real(VGK_FMOD, -7.5f, 2) == -1.5f && real(VGK_POW, 2, 0.5f) == sqrtf(2));
    expect(isnan(real(VGK_MIN, NAN, 1)) && isnan(real(VGK_MAX, 1, NAN)) && real(VGK_PRELU, -2, 0.25f) == -0.5f);
    /* Broadcast from both sides, bool out. */
    struct vgk_tensor a = f32_rows(3, 1), b = f32_rows(1, 2), in[2];
    fill(&a, 1, 2, 3);
    fill(&b, 2, 3);
    vgk_tensor_broadcast(&a, 2, (int64_t[]){3, 2}, &in[0]);
    vgk_tensor_broadcast(&b, 2, (int64_t[]){3, 2}, &in[1]);
    uint8_t less[6];
    struct vgk_tensor out = vgk_tensor_make(VGK_BOOL, 2, (int64_t[]){3, 2}, VGK_ROW_MAJOR);
    out.data = less;
    reference(&(struct vgk_op){.kind = VGK_OP_BINARY, .n_in = 2, .n_out = 1, .in = in, .out = &out,
                               .p.binary = {VGK_LESS}});
    expect(!memcmp(less, (uint8_t[]){1, 1, 0, 1, 0, 0}, 6));
    /* Pow of an integer by a float; Where by that mask. */
    int32_t base = 9, power = 0;
    float half = 0.5f;
    struct vgk_tensor pair[2] = {{.type = VGK_I32, .data = &base}, {.type = VGK_F32, .data = &half}},
                      result = {.type = VGK_I32, .data = &power};
    reference(&(struct vgk_op){.kind = VGK_OP_BINARY, .n_in = 2, .n_out = 1, .in = pair, .out = &result,
                               .p.binary = {VGK_POW}});
    expect(power == 3);
    struct vgk_tensor w[3] = {out, in[0], in[1]}, y = f32_rows(3, 2);
    reference(&(struct vgk_op){.kind = VGK_OP_WHERE, .n_in = 3, .n_out = 1, .in = w, .out = &y});
    expect_values(&y, 0, 1, 1, 2, 2, 2, 3);
    free(a.data), free(b.data), free(y.data);
}

static void reductions(void)
{
    struct vgk_tensor x = f32_rows(2, 3), y = f32_rows(2, 1), all = f32_rows(1, 1);
    fill(&x, 1, -2, 3, 4, 5, -6);
    struct vgk_op op = {.kind = VGK_OP_REDUCE, .n_in = 1, .n_out = 1, .in = &x, .out = &y, .p.reduce = {0, 2}};
    static const double want[][2] = {{2, 3}, {2.0 / 3, 1}, {3, 5}, {-2, -6}, {-6, -120}, {6, 15},
                                     {3.7416573868, 8.774964387}, {14, 77}, {0.6931471806, 1.098612289},
                                     {3.1328452337, 5.3132739}};
    for (int fn = 0; fn <= VGK_REDUCE_LOG_SUM_EXP; fn++) {
        op.p.reduce.fn = (enum vgk_reduce_fn)fn;
        reference(&op);
        expect_values(&y, 1e-6, want[fn][0], want[fn][1]);
    }
    op.out = &all;
    op.p.reduce = (struct vgk_reduce){VGK_REDUCE_SUM, 3};
    reference(&op);
    expect_values(&all, 0, 5);
    struct vgk_tensor none = f32_rows(2, 0);
    op.in = &none;
    op.out = &y;
    op.p.reduce = (struct vgk_reduce){VGK_REDUCE_PROD, 2};
    reference(&op);
    expect_values(&y, 0, 1, 1);
    free(x.data), free(y.data), free(all.data), free(none.data);
}

static void convolutions(void)
{
    /* 3 x 3 of ones over 1..9: the sums of the neighbourhood. */
    struct vgk_tensor in[6] = {f32_rows(1, 1, 3, 3), f32_rows(1, 1, 3, 3)}, y = f32_rows(1, 1, 3, 3);
    fill(&in[0], 1, 2, 3, 4, 5, 6, 7, 8, 9);
    fill(&in[1], 1, 1, 1, 1, 1, 1, 1, 1, 1);
    struct vgk_op op = {.kind = VGK_OP_CONV, .n_in = 2, .n_out = 1, .in = in, .out = &y,
                        .p.conv = {.spatial = 2, .kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1},
                                   .pad_begin = {1, 1}, .pad_end = {1, 1}, .groups = 1}};
    reference(&op);
    expect_values(&y, 0, 12, 21, 16, 27, 45, 33, 24, 39, 28);
    op.p.conv.pad_mode = VGK_PAD_REFLECT;
    reference(&op);
    expect_values(&y, 0, 33, 36, 39, 42, 45, 48, 51, 54, 57);
    op.p.conv.pad_mode = VGK_PAD_EDGE;
    reference(&op);
    expect_values(&y, 0, 21, 27, 33, 39, 45, 51, 57, 63, 69);
    /* The whole epilogue: (s * 2 - 60) into PReLU 0.5, then a residual of 1; and the residual first. */
    for (int i = 2; i <= 4; i++)
        in[i] = f32_rows(1);
    in[5] = f32_rows(1, 1, 3, 3);
    fill(&in[2], -60);
    fill(&in[3], 2);
    fill(&in[4], 0.5f);
    fill(&in[5], 1, 1, 1, 1, 1, 1, 1, 1, 1);
    op.n_in = 6;
    op.p.conv.pad_mode = VGK_PAD_CONSTANT;
    op.p.conv.act = VGK_ACT_PRELU;
    reference(&op);
    expect_values(&y, 0, -17, -8, -13, -2, 31, 7, -5, 19, -1);
    op.p.conv.residual_before_act = true;
    reference(&op);
    expect_values(&y, 0, -17.5, -8.5, -13.5, -2.5, 31, 7, -5.5, 19, -1.5);
    /* Asymmetric, stride 2: only begins padded. */
    struct vgk_tensor y2 = f32_rows(1, 1, 1, 1);
    op.n_in = 2;
    op.out = &y2;
    op.p.conv = (struct vgk_conv){.spatial = 2, .kernel = {3, 3}, .stride = {2, 2}, .dilation = {1, 1},
                                  .pad_begin = {1, 1}, .groups = 1};
    reference(&op);
    expect_values(&y2, 0, 12);
    /* Transposed, k 3, stride 2, output_padding 1: what PyTorch's documentation calls the gradient. */
    struct vgk_tensor t[2] = {f32_rows(1, 1, 2), f32_rows(1, 1, 3)}, up = f32_rows(1, 1, 6);
    fill(&t[0], 1, 10);
    fill(&t[1], 1, 2, 3);
    reference(&(struct vgk_op){.kind = VGK_OP_CONV_TRANSPOSE, .n_in = 2, .n_out = 1, .in = t, .out = &up,
                               .p.conv = {.spatial = 1, .kernel = {3}, .stride = {2}, .dilation = {1},
                                          .output_padding = {1}, .groups = 1}});
    expect_values(&up, 0, 1, 2, 13, 20, 30, 0);
    for (int i = 0; i < 6; i++)
        free(in[i].data);
    free(y.data), free(y2.data), free(t[0].data), free(t[1].data), free(up.data);
}

/* Groups, three dimensions, dilation, strides in any order and f16 weights, against a loop of its own. */
static void convolution_loops(void)
{
    for (int n = 0; n < 40; n++) {
        kit_seed((uint64_t)n);
        int groups = kit_int(1, 3), cin = kit_int(1, 3) * groups, cout = kit_int(1, 4) * groups;
        int k[3], s[3], d[3], b[3], e[3], size[3], out[3];
        for (int i = 0; i < 3; i++) {
            k[i] = kit_int(1, 3), s[i] = kit_int(1, 2), d[i] = kit_int(1, 2), b[i] = kit_int(0, 2),
            e[i] = kit_int(0, 2);
            size[i] = kit_int((k[i] - 1) * d[i] + 1, 8);
            out[i] = (size[i] + b[i] + e[i] - (k[i] - 1) * d[i] - 1) / s[i] + 1;
        }
        bool last = kit_int(0, 1);
        struct vgk_tensor in[2] = {cpukit_tensor(VGK_F32, last ? VGK_CHANNELS_LAST : VGK_ROW_MAJOR,
                                                 DIMS(2, cin, size[0], size[1], size[2])),
                                   f32_rows(cout, cin / groups, k[0], k[1], k[2])},
                          y = f32_last(2, cout, out[0], out[1], out[2]);
        cpukit_random(&in[0], -1, 1);
        cpukit_random(&in[1], -1, 1);
        struct vgk_op op = {.kind = VGK_OP_CONV, .n_in = 2, .n_out = 1, .in = in, .out = &y,
                            .p.conv = {.spatial = 3, .groups = groups}};
        memcpy(op.p.conv.kernel, k, sizeof k);
        memcpy(op.p.conv.stride, s, sizeof s);
        memcpy(op.p.conv.dilation, d, sizeof d);
        memcpy(op.p.conv.pad_begin, b, sizeof b);
        memcpy(op.p.conv.pad_end, e, sizeof e);
        reference(&op);
        for (int64_t i = 0; i < vgk_tensor_count(&y); i++) {
            int64_t x = i % out[2], v = i / out[2] % out[1], z = i / out[2] / out[1] % out[0],
                    c = i / out[2] / out[1] / out[0] % cout, m = i / out[2] / out[1] / out[0] / cout;
            double sum = 0;
            for (int64_t j = 0; j < (int64_t)cin / groups * k[0] * k[1] * k[2]; j++) {
                int64_t kx = j % k[2], ky = j / k[2] % k[1], kz = j / k[2] / k[1] % k[0], ci = j / k[2] / k[1] / k[0];
                int64_t px = x * s[2] + kx * d[2] - b[2], py = v * s[1] + ky * d[1] - b[1],
                        pz = z * s[0] + kz * d[0] - b[0];
                if (px < 0 || py < 0 || pz < 0 || px >= size[2] || py >= size[1] || pz >= size[0])
                    continue;
                int64_t from = c / (cout / groups) * (cin / groups) + ci;
                sum += (double)cpukit_get(&in[0], (((m * cin + from) * size[0] + pz) * size[1] + py) * size[2] + px) *
                       (double)cpukit_get(&in[1], c * (cin / groups) * k[0] * k[1] * k[2] + j);
            }
            expect_near((double)cpukit_get(&y, i), sum, 1e-6);
        }
        /* Its transpose has the same inner products: <conv(x), g> = <x, transpose(g)>, for x large enough to fill. */
        struct vgk_tensor tin[2] = {y, in[1]}, tx = cpukit_tensor(VGK_F32, VGK_CHANNELS_LAST, 5, in[0].dim);
        double left = 0, right = 0;
        op.in = tin;
        op.out = &tx;
        op.kind = VGK_OP_CONV_TRANSPOSE;
        reference(&op);
        for (int64_t i = 0; i < vgk_tensor_count(&y); i++)
            left += (double)cpukit_get(&y, i) * (double)cpukit_get(&y, i);
        for (int64_t i = 0; i < vgk_tensor_count(&tx); i++)
            right += (double)cpukit_get(&tx, i) * (double)cpukit_get(&in[0], i);
        expect_near(left, right, 1e-4 * left);
        free(in[0].data), free(in[1].data), free(y.data), free(tx.data);
    }
}

static void pools(void)
{
    struct vgk_tensor x = f32_rows(1, 1, 5), y = f32_rows(1, 1, 3);
    fill(&x, 1, 5, 2, 8, 3);
    struct vgk_op op = {.kind = VGK_OP_POOL, .n_in = 1, .n_out = 1, .in = &x, .out = &y,
                        .p.pool = {.max = true, .spatial = 1, .kernel = {3}, .stride = {2}, .dilation = {1},
                                   .pad_begin = {1}, .pad_end = {1}}};
    reference(&op);
    expect_values(&y, 0, 5, 8, 8);
    op.p.pool.max = false;
    reference(&op);
    expect_values(&y, 1e-6, 3, 5, 5.5);
    op.p.pool.count_include_pad = true;
    reference(&op);
    expect_values(&y, 1e-6, 2, 5, 11.0 / 3);
    /* ceil_mode: the last window hangs over, the divisor counts only what is padded. */
    op.p.pool.pad_begin[0] = op.p.pool.pad_end[0] = 0;
    op.p.pool.kernel[0] = 2;
    reference(&op);
    expect_values(&y, 1e-6, 3, 5, 3);
    free(x.data), free(y.data);
}

static void norms(void)
{
    struct vgk_tensor in[4] = {f32_last(1, 2, 1, 4), f32_rows(2), f32_rows(2)}, y = f32_rows(1, 2, 1, 4);
    fill(&in[0], 1, 2, 3, 4, 10, 10, 10, 14);
    fill(&in[1], 1, 2);
    fill(&in[2], 0, 1);
    struct vgk_op op = {.kind = VGK_OP_NORM, .n_in = 3, .n_out = 1, .in = in, .out = &y,
                        .p.norm = {.kind = VGK_NORM_INSTANCE}};
    double a = 1 / sqrt(1.25), b = 2 / sqrt(3.0);
    reference(&op);
    expect_values(&y, 1e-6, -1.5 * a, -.5 * a, .5 * a, 1.5 * a, 1 - b, 1 - b, 1 - b, 1 + 3 * b);
    op.p.norm.act = VGK_ACT_RELU;
    reference(&op);
    expect_values(&y, 1e-6, 0, 0, .5 * a, 1.5 * a, 0, 0, 0, 1 + 3 * b);
    op.p.norm = (struct vgk_norm){.kind = VGK_NORM_GROUP, .groups = 1};
    reference(&op);
    double mean = 54 / 8.0, var = 0, v[8] = {1, 2, 3, 4, 10, 10, 10, 14};
    for (int i = 0; i < 8; i++)
        var += (v[i] - mean) * (v[i] - mean) / 8;
    expect_near((double)cpukit_get(&y, 0), (1 - mean) / sqrt(var), 1e-6);
    expect_near((double)cpukit_get(&y, 7), (14 - mean) / sqrt(var) * 2 + 1, 1e-6);
    struct vgk_tensor l[2] = {f32_rows(2, 2), f32_rows(2)}, z = f32_rows(2, 2);
    fill(&l[0], 3, 4, 1, 7);
    fill(&l[1], 1, 10);
    reference(&(struct vgk_op){.kind = VGK_OP_NORM, .n_in = 2, .n_out = 1, .in = l, .out = &z,
                               .p.norm = {.kind = VGK_NORM_LAYER, .axis = 1}});
    expect_values(&z, 1e-5, -1, 10, -1, 10);
    reference(&(struct vgk_op){.kind = VGK_OP_NORM, .n_in = 2, .n_out = 1, .in = l, .out = &z,
                               .p.norm = {.kind = VGK_NORM_RMS, .axis = 1}});
    expect_values(&z, 1e-5, 3 / sqrt(12.5), 40 / sqrt(12.5), 0.2, 14);
    for (int i = 0; i < 3; i++)
        free(in[i].data);
    free(y.data), free(l[0].data), free(l[1].data), free(z.data);
}

static void products(void)
{
    struct vgk_tensor in[3] = {f32_rows(2, 1, 2), f32_rows(2, 3), f32_rows(3)}, y = f32_rows(2, 1, 3);
    fill(&in[0], 1, 2, 3, 4);
    fill(&in[1], 1, 2, 3, 4, 5, 6);
    fill(&in[2], 10, 20, 30);
    struct vgk_op op = {.kind = VGK_OP_MATMUL, .n_in = 3, .n_out = 1, .in = in, .out = &y, .p.matmul = {2, 0.1f}};
    reference(&op);
    expect_values(&y, 1e-5, 19, 26, 33, 39, 54, 69);
    struct vgk_tensor x = f32_rows(2, 3), s = f32_rows(2, 3);
    fill(&x, 0, 1, 1000, -INFINITY, -INFINITY, -INFINITY);
    struct vgk_op soft = {.kind = VGK_OP_SOFTMAX, .n_in = 1, .n_out = 1, .in = &x, .out = &s, .p.softmax = {1, false}};
    reference(&soft);
    expect_values(&s, 0, 0, 0, 1, NAN, NAN, NAN);
    fill(&x, 1, 2, 3, 0, 0, 0);
    soft.p.softmax.log = true;
    reference(&soft);
    expect_values(&s, 1e-6, -2.4076059644, -1.4076059644, -0.4076059644, -1.0986122887, -1.0986122887, -1.0986122887);
    soft.p.softmax.axis = 0;
    soft.p.softmax.log = false;
    reference(&soft);
    expect_near((double)cpukit_get(&s, 0), 0.7310585786, 1e-6);
    for (int i = 0; i < 3; i++)
        free(in[i].data);
    free(y.data), free(x.data), free(s.data);
}

static void gathers(void)
{
    struct vgk_tensor x = f32_rows(2, 3), y = f32_rows(2, 2, 2), r = f32_rows(4);
    int64_t at[4] = {2, -3, 0, 1};
    struct vgk_tensor in[2] = {x, vgk_tensor_make(VGK_I64, 2, (int64_t[]){2, 2}, VGK_ROW_MAJOR)};
    in[1].data = at;
    fill(&x, 1, 2, 3, 4, 5, 6);
    struct vgk_op op = {.kind = VGK_OP_GATHER, .n_in = 2, .n_out = 1, .in = in, .out = &y, .p.gather = {1}};
    reference(&op);
    expect_values(&y, 0, 3, 1, 1, 2, 6, 4, 4, 5);
    at[1] = 3;
    struct vgk_error err = {{0}};
    expect((vgk_cpu.run)(dev, &op, NULL, NULL, &err) == VGK_ERR_INVALID && strstr(err.text, "got 3"));
    float a = 1, step = -0.5f;
    struct vgk_tensor v[3] = { { .type = VGK_F32, .data = &a },
                               { .type = VGK_F32, .data = &a },
                               { .type = VGK_F32, .data = &step } };
    reference(&(struct vgk_op){.kind = VGK_OP_RANGE, .n_in = 3, .n_out = 1, .in = v, .out = &r});
    expect_values(&r, 0, 1, 0.5, 0, -0.5);
    free(x.data), free(y.data), free(r.data);
}

static void pads(void)
{
    struct vgk_tensor in[2] = {f32_rows(1, 4), f32_rows(1)}, y = f32_rows(1, 8);
    fill(&in[0], 1, 2, 3, 4);
    fill(&in[1], 9);
    struct vgk_op op = {.kind = VGK_OP_PAD, .n_in = 2, .n_out = 1, .in = in, .out = &y,
                        .p.pad = {.begin = {0, 3}, .end = {0, 1}}};
    reference(&op);
    expect_values(&y, 0, 9, 9, 9, 1, 2, 3, 4, 9);
    op.p.pad.mode = VGK_PAD_REFLECT;
    reference(&op);
    expect_values(&y, 0, 4, 3, 2, 1, 2, 3, 4, 3);
    op.p.pad.mode = VGK_PAD_EDGE;
    reference(&op);
    expect_values(&y, 0, 1, 1, 1, 1, 2, 3, 4, 4);
    op.p.pad.mode = VGK_PAD_WRAP;
    reference(&op);
    expect_values(&y, 0, 2, 3, 4, 1, 2, 3, 4, 1);
    /* Crop first, then reflect what is left. */
    struct vgk_tensor z = f32_rows(1, 5);
    op.out = &z;
    op.p.pad = (struct vgk_pad){.mode = VGK_PAD_REFLECT, .begin = {0, -1}, .end = {0, 2}};
    reference(&op);
    expect_values(&z, 0, 2, 3, 4, 3, 2);
    free(in[0].data), free(in[1].data), free(y.data), free(z.data);
}

static void resize(int64_t in, int64_t out, double scale, struct vgk_resize r, const double *want)
{
    struct vgk_tensor x = f32_rows(1, 1, 1, in), y = f32_rows(1, 1, 1, out);
    for (int64_t i = 0; i < in; i++)
        cpukit_set(&x, i, (float)(i * i));
    r.scale[0] = r.scale[1] = r.scale[2] = 1;
    r.scale[3] = scale;
    reference(&(struct vgk_op){.kind = VGK_OP_RESIZE, .n_in = 1, .n_out = 1, .in = &x, .out = &y, .p.resize = r});
    cpukit_expect(__LINE__, &y, 1e-5, want, (size_t)out);
    free(x.data), free(y.data);
}
#define WANT(...) (const double[]){__VA_ARGS__}

static void resizes(void)
{
    /* x -> x^2 over 0..; worked out by hand from the definitions. */
    struct vgk_resize near = {.mode = VGK_NEAREST, .coordinates = VGK_ASYMMETRIC, .nearest = VGK_NEAREST_FLOOR};
    resize(3, 6, 2, near, WANT(0, 0, 1, 1, 4, 4));
    resize(8, 3, 0.4, near, WANT(0, 4, 25));
    near.coordinates = VGK_HALF_PIXEL;
    near.nearest = VGK_ROUND_PREFER_FLOOR;
    resize(4, 2, 0.5, near, WANT(0, 4)); /* 0.5 and 2.5 go down */
    near.nearest = VGK_ROUND_PREFER_CEIL;
    resize(4, 2, 0.5, near, WANT(1, 9));
    struct vgk_resize lin = {.mode = VGK_LINEAR, .coordinates = VGK_HALF_PIXEL};
    resize(3, 6, 2, lin, WANT(0, 0.25, 0.75, 1.75, 3.25, 4));
    resize(8, 4, 0.5, lin, WANT(0.5, 6.5, 20.5, 42.5));
    lin.antialias = true;
    resize(8, 4, 0.5, lin, WANT(0.875, 7, 21, 41.125));
    lin.antialias = false;
    lin.coordinates = VGK_ALIGN_CORNERS;
    resize(3, 5, 5.0 / 3, lin, WANT(0, 0.5, 1, 2.5, 4));
    lin.coordinates = VGK_PYTORCH_HALF_PIXEL;
    resize(4, 1, 0.25, lin, WANT(0));
    lin.coordinates = VGK_ASYMMETRIC;
    resize(3, 6, 2, lin, WANT(0, 0.5, 1, 2.5, 4, 4));
    struct vgk_resize cub = {.mode = VGK_CUBIC, .coordinates = VGK_HALF_PIXEL, .cubic_a = -0.75f};
    /* At 0.5: -0.09375, 0.59375, 0.59375, -0.09375 of 0, 0, 1, 4; at 2.5: of 1, 4, 9, 9 with the edge repeated. */
    resize(4, 2, 0.5, cub, WANT(0.59375 - 4 * 0.09375, -0.09375 + 13 * 0.59375 - 9 * 0.09375));
    cub.exclude_outside = true;
    resize(4, 2, 0.5, cub, WANT((0.59375 - 4 * 0.09375) / 1.09375, (-0.09375 + 13 * 0.59375) / 1.09375));
}

int main(void)
{
    dev = cpukit_open("generic", 2);
    run(copies);
    run(unaries);
    run(binaries);
    run(reductions);
    run(convolutions);
    run(convolution_loops);
    run(pools);
    run(norms);
    run(products);
    run(gathers);
    run(pads);
    run(resizes);
    vgk_cpu.close(&dev);
    return kit_done();
}
