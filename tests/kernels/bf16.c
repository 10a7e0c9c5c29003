/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Products of bf16: the kernels of AVX512-BF16 and AMX, built on the instructions' definitions in plain C, so that they run
 * without them (meson.build).  Blocks against a model of the instructions in double, convolutions and matrix products against
 * sums in double. */
#include "kernels/cpu/bf16.h"
#include "cpukit.h"

static struct vgk_device *sets[2], *single; /* avx512bf16, amx; avx2 */
static const char *const names[] = {"avx512bf16", "amx"};

/* ---- the instructions ---- */

static float widened(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static double flushed(double x) { return fabs(x) < 0x1p-126 ? 0 * x : x; }

/* A double with room enough for the exact sum, rounded once: to odd in between, so that it is not rounded twice
 * (Boldo & Melquiond, Emulation of a FMA and correctly-rounded sums, 2008). */
static float fused(float sum, float x, float y)
{
    double s = flushed((double)sum), p = flushed((double)x) * flushed((double)y), r = s + p;
    double t = r - s, error = (s - (r - t)) + (p - t); /* of the sum: Knuth's */
    uint64_t bits;
    memcpy(&bits, &r, sizeof bits);
    if (isfinite(r) && error != 0 && !(bits & 1)) {
        bits += (error > 0) == (r > 0) ? 1 : -1;
        memcpy(&r, &bits, sizeof bits);
    }
    float f = (float)r;
    return fabsf(f) < 0x1p-126f ? copysignf(0, f) : f;
}

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static bool same(float a, float b) { return (isnan(a) && isnan(b)) || bits_of(a) == bits_of(b); }

/* Numbers of all sizes, denormals, infinities, NaN. */
static uint16_t some_half(bool special)
{
    static const uint16_t rare[] = {0x0000, 0x8000, 0x0001, 0x807f, 0x0080, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0};
    if (special && !kit_int(0, 60))
        return rare[kit_int(0, 9)];
    int exponent = special ? kit_int(60, 190) : kit_int(120, 130);
    return (uint16_t)(kit_int(0, 1) << 15 | exponent << 7 | kit_int(0, 127));
}

/* What a block has in row r, column j. */
static float expected(bool amx, int n, const struct vgk_bf16_segment *seg, ptrdiff_t len, ptrdiff_t lda, int r, int nr,
                      int j)
{
    float sum = 0, lower = 0, upper = 0;
    for (int s = 0; s < n; s++)
        for (ptrdiff_t k = 0; k < len; k += 2) {
            const uint16_t *a = seg[s].a + r * lda + k, *b = seg[s].b + (k / 2 * nr + j) * 2;
            if (!amx) {
                sum = fused(fused(sum, widened(a[1]), widened(b[1])), widened(a[0]), widened(b[0]));
                continue;
            }
            lower = fused(lower, widened(a[0]), widened(b[0]));
            upper = fused(upper, widened(a[1]), widened(b[1]));
            if (k % 32 == 30) { /* a tile is full */
                sum = fused(sum, fused(lower, upper, 1), 1);
                lower = upper = 0;
            }
        }
    return sum;
}

static void blocks(void)
{
    const struct vgk_bf16 *const products[] = {&vgk_bf16_avx512, &vgk_bf16_amx};
    for (int k = 0; k < 2; k++)
        for (int nv = 1; nv <= VGK_BF16_VECTORS; nv++)
            for (int special = 0; special < 2; special++) {
                const struct vgk_bf16 *p = products[k];
                enum { SEGMENTS = 3 };
                int nr = 16 * nv, rows = p->rows[nv], wrong = 0;
                ptrdiff_t len = p->depth * 3, lda = len + 2;
                uint16_t *a = malloc(sizeof *a * (size_t)(rows * lda)),
                         *b = malloc(sizeof *b * (size_t)(SEGMENTS * len * nr));
                float *c = malloc(sizeof *c * (size_t)(rows * nr));
                struct vgk_bf16_segment seg[SEGMENTS];
                for (int i = 0; i < rows * lda; i++)
                    a[i] = some_half(special);
                for (int i = 0; i < SEGMENTS * len * nr; i++)
                    b[i] = some_half(special);
                for (int s = 0; s < SEGMENTS; s++)
                    seg[s] = (struct vgk_bf16_segment){a, b + s * len * nr};
                p->begin();
                p->block[nv](SEGMENTS, seg, len, lda, c);
                p->end();
                for (int r = 0; r < rows; r++)
                    for (int j = 0; j < nr; j++)
                        wrong += !same(c[r * nr + j], expected(k, SEGMENTS, seg, len, lda, r, nr, j));
                expectf(!wrong, "%s, %d vectors, special %d: %d of %d", names[k], nv, special, wrong, rows * nr);
                free(a), free(b), free(c);
            }
}

/* ---- convolutions, matrix products ---- */

static double half_of(float x)
{
    uint32_t u = bits_of(x);
    u = (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &u, sizeof x);
    return (double)x;
}

struct shape {
    int cin, cout, h, w, kh, kw, stride, dilation, pad;
    enum vgk_pad_mode mode;
};

static struct shape some_shape(void)
{
    static const int in[] = {3, 8, 17, 32, 48, 64}, out[] = {8, 12, 16, 24, 33, 64};
    struct shape s = {in[kit_int(0, 5)], out[kit_int(0, 5)], kit_int(5, 13), kit_int(5, 120), kit_int(1, 5), kit_int(1, 5),
                      kit_int(1, 2), kit_int(0, 3) ? 1 : 2, kit_int(0, 2), (enum vgk_pad_mode)kit_int(0, 2)};
    if (!kit_int(0, 3))
        s.kh = s.kw = s.stride = s.dilation = 1, s.pad = 0;
    return s;
}

static struct vgk_op conv_of(const struct shape *s, struct vgk_tensor *in, struct vgk_tensor *out)
{
    int reach_y = (s->kh - 1) * s->dilation, reach_x = (s->kw - 1) * s->dilation;
    int64_t oh = (s->h + 2 * s->pad - reach_y - 1) / s->stride + 1, ow = (s->w + 2 * s->pad - reach_x - 1) / s->stride + 1;
    in[0] = f32_last(1, s->cin, s->h, s->w);
    in[1] = f32_rows(s->cout, s->cin, s->kh, s->kw);
    in[2] = f32_rows(s->cout);
    *out = f32_last(1, s->cout, oh, ow);
    for (int i = 0; i < 3; i++)
        cpukit_random(&in[i], -1, 1);
    return (struct vgk_op){.kind = VGK_OP_CONV, .n_in = 3, .n_out = 1, .in = in, .out = out, .constant = 6,
        .p.conv = {.spatial = 2, .kernel = {s->kh, s->kw}, .stride = {s->stride, s->stride},
                   .dilation = {s->dilation, s->dilation}, .pad_begin = {s->pad, s->pad}, .pad_end = {s->pad, s->pad},
                   .groups = 1, .pad_mode = s->mode, .act = VGK_ACT_RELU, .bf16 = true}};
}

static int source(int i, int n, enum vgk_pad_mode mode)
{
    if (i >= 0 && i < n)
        return i;
    return mode == VGK_PAD_CONSTANT ? -1 : mode == VGK_PAD_EDGE ? (i < 0 ? 0 : n - 1) : i < 0 ? -i : 2 * (n - 1) - i;
}

/* The sum in double of operands rounded to bf16, or as they are; and of their magnitudes. */
static double conv_at(const struct shape *s, const struct vgk_tensor *in, int o, int y, int x, bool halves, double *size)
{
    double sum = 0;
    *size = 0;
    for (int c = 0; c < s->cin; c++)
        for (int ky = 0; ky < s->kh; ky++)
            for (int kx = 0; kx < s->kw; kx++) {
                int iy = source(y * s->stride + ky * s->dilation - s->pad, s->h, s->mode);
                int ix = source(x * s->stride + kx * s->dilation - s->pad, s->w, s->mode);
                if (iy < 0 || ix < 0)
                    continue;
                float a = cpukit_get(&in[0], ((int64_t)c * s->h + iy) * s->w + ix);
                float b = cpukit_get(&in[1], (((int64_t)o * s->cin + c) * s->kh + ky) * s->kw + kx);
                double product = halves ? half_of(a) * half_of(b) : (double)a * (double)b;
                sum += product;
                *size += fabs(product);
            }
    return fmax(sum + (double)cpukit_get(&in[2], o), 0);
}

static void convolutions(void)
{
    int taken = 0;
    for (int k = 0; k < 60; k++) {
        struct shape s = some_shape();
        struct vgk_tensor in[3], out, other;
        struct vgk_op op = conv_of(&s, in, &out);
        struct vgk_need need;
        double worst = 0, off = 0;
        if (out.dim[2] < 1 || out.dim[3] < 1) {
            free(in[0].data), free(in[1].data), free(in[2].data), free(out.data);
            continue;
        }
        expect(vgk_cpu.need(sets[k % 2], &op, &need, NULL) == VGK_OK && need.bf16 && need.lattice[1] == 1 && need.how);
        expect(cpukit_run(sets[k % 2], &op, NULL) == VGK_OK);
        taken++;
        for (int64_t i = 0; i < vgk_tensor_count(&out); i++) {
            int x = (int)(i % out.dim[3]), y = (int)(i / out.dim[3] % out.dim[2]), o = (int)(i / out.dim[3] / out.dim[2]);
            double size, exact = conv_at(&s, in, o, y, x, true, &size), plain = conv_at(&s, in, o, y, x, false, &size);
            double v = (double)cpukit_get(&out, i);
            /* Sums in f32 of so many terms; two operands to 8 bits. */
            worst = fmax(worst, fabs(v - exact) / ((size + 1) * s.cin * s.kh * s.kw * 0x1p-24));
            off = fmax(off, fabs(v - plain) / ((size + 1) * 0x1p-8));
        }
        expectf(worst <= 1, "%s: %g of the bound, %d->%d %dx%d of %dx%d", names[k % 2], worst, s.cin, s.cout, s.kh, s.kw, s.h,
                s.w);
        expectf(off <= 1.01, "%s: %g of bf16's bound", names[k % 2], off);
        /* On a device without, the op is done in f32, which differs. */
        expect(vgk_cpu.need(single, &op, &need, NULL) == VGK_OK && !need.bf16);
        other = out;
        other.data = calloc((size_t)vgk_tensor_count(&out), sizeof(float));
        op.out = &other;
        expect(cpukit_run(single, &op, NULL) == VGK_OK);
        expect(memcmp(out.data, other.data, sizeof(float) * (size_t)vgk_tensor_count(&out)));
        free(in[0].data), free(in[1].data), free(in[2].data), free(out.data), free(other.data);
    }
    expect(taken > 40);
}

/* A part of the picture has the bits of the whole one. */
static void parts(void)
{
    enum { H = 19, W = 150, AT_Y = 4, AT_X = 37, PART_H = 9, PART_W = 61 };
    for (int k = 0; k < 12; k++) {
        struct shape s = {k % 3 ? 32 : 5, k % 2 ? 48 : 13, H, W, 3, 3, 1, 1, 0, VGK_PAD_CONSTANT};
        struct vgk_tensor in[3], out, part = f32_last(1, s.cout, PART_H - 2, PART_W - 2);
        struct vgk_op op = conv_of(&s, in, &out);
        expect(cpukit_run(sets[k / 6], &op, NULL) == VGK_OK);
        in[0] = vgk_tensor_slice(&in[0], 2, AT_Y, PART_H, 1);
        in[0] = vgk_tensor_slice(&in[0], 3, AT_X, PART_W, 1);
        op.out = &part;
        expect(cpukit_run(sets[k / 6], &op, NULL) == VGK_OK);
        struct vgk_tensor want = vgk_tensor_slice(&out, 2, AT_Y, PART_H - 2, 1);
        want = vgk_tensor_slice(&want, 3, AT_X, PART_W - 2, 1);
        int wrong = 0;
        for (int64_t i = 0; i < vgk_tensor_count(&part); i++)
            wrong += cpukit_get(&part, i) != cpukit_get(&want, i);
        expectf(!wrong, "%d values of a part have other bits", wrong);
        free((float *)in[0].data - (AT_Y * W + AT_X) * s.cin);
        free(in[1].data), free(in[2].data), free(out.data), free(part.data);
    }
}

static void matrices(void)
{
    for (int k = 0; k < 30; k++) {
        int64_t m = kit_int(1, 70), n = kit_int(1, 70), d = kit_int(1, 90), batches = kit_int(1, 3);
        bool shared = k % 3 != 1;
        struct vgk_tensor in[3] = {f32_rows(batches, m, d), f32_rows(shared ? 1 : batches, d, n), f32_rows(n)},
                          out = f32_rows(batches, m, n);
        struct vgk_op op = {.kind = VGK_OP_MATMUL, .n_in = 3, .n_out = 1, .in = in, .out = &out,
                            .constant = k % 3 == 0 ? 2 : 0, .p.matmul = {1, 1, true}};
        struct vgk_need need;
        double worst = 0;
        for (int i = 0; i < 3; i++)
            cpukit_random(&in[i], -1, 1);
        struct vgk_tensor b = in[1];
        if (k % 3) /* known only in the run */
            in[1].data = NULL;
        expect(vgk_cpu.need(sets[k % 2], &op, &need, NULL) == VGK_OK && need.bf16 && !need.packed == !!(k % 3));
        char *packed = malloc(need.packed + 1), *scratch = malloc(need.scratch + 1);
        expect(!need.packed || vgk_cpu.pack(sets[k % 2], &op, packed, NULL) == VGK_OK);
        in[1].data = b.data;
        expect((vgk_cpu.run)(sets[k % 2], &op, need.packed ? packed : NULL, scratch, NULL) == VGK_OK);
        for (int64_t i = 0; i < vgk_tensor_count(&out); i++) {
            int64_t x = i % n, y = i / n % m, at = i / n / m;
            double sum = (double)cpukit_get(&in[2], x);
            for (int64_t j = 0; j < d; j++)
                sum += half_of(cpukit_get(&in[0], (at * m + y) * d + j)) *
                       half_of(cpukit_get(&in[1], ((shared ? 0 : at) * d + j) * n + x));
            worst = fmax(worst, fabs(sum - (double)cpukit_get(&out, i)) / (double)(d + 1) * 0x1p22);
        }
        expectf(worst <= 1, "%s: %g of the bound, %dx%dx%d", names[k % 2], worst, (int)m, (int)d, (int)n);
        free(packed), free(scratch);
        free(in[0].data), free(in[1].data), free(in[2].data), free(out.data);
    }
}

static void refused(void)
{
    struct vgk_error err = {{0}};
    expect(vgk_cpu.bf16(sets[0], &err) == VGK_OK && vgk_cpu.bf16(sets[1], &err) == VGK_OK);
    expectf(vgk_cpu.bf16(single, &err) == VGK_ERR_UNSUPPORTED && strstr(err.text, "AVX512-BF16") &&
            strstr(err.text, "fp32"), "%s", err.text);
}

int main(void)
{
    for (int i = 0; i < 2; i++)
        sets[i] = cpukit_open(names[i], i + 1);
    single = cpukit_open("avx2", 1);
    if (!single)
        kit_skip("no AVX2");
    expect(sets[0] && sets[1]);
    if (!sets[0] || !sets[1])
        return kit_done();
    run(blocks);
    run(convolutions);
    run(parts);
    run(matrices);
    run(refused);
    for (int i = 0; i < 2; i++)
        vgk_cpu.close(&sets[i]);
    vgk_cpu.close(&single);
    return kit_done();
}
