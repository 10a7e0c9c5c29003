/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Convolution: weights in the order of each method. */
#include "conv.h"
#include "cpu.h"

#include <stdlib.h>

/* Weights as floats, dense, in their own order. */
struct packing {
    const struct vgk_conv_plan *p;
    const struct vgk_op *op;
    float *w;
    char *to;
};

/* The weight of output channel o, input channel c (of its group), tap (z, y, x). */
static float weight(const struct packing *a, int o, int c, int z, int y, int x)
{
    const struct vgk_conv_plan *p = a->p;
    size_t channels = p->method == VGK_CONV_DEPTHWISE ? 1 : (size_t)p->cin, row = (size_t)o * channels + (size_t)c;
    row = (row * (size_t)p->kd + (size_t)z) * (size_t)p->kh + (size_t)y;
    return a->w[row * (size_t)p->kw + (size_t)x];
}

static void unravel(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct packing *a = arg;
    const struct vgk_tensor *t = &a->op->in[1];
    int last = t->rank - 1;
    int64_t n = t->dim[last];
    struct vgk_op plain = *a->op; /* kept weights: the numbers as they are stored */
    if (a->p->keeps)
        plain.n_in = 2;
    for (int64_t row = begin; row < end; row++) {
        int64_t at[VGK_MAX_RANK] = {0}, rest = row;
        for (int d = last - 1; d >= 0; rest /= t->dim[d--])
            at[d] = rest % t->dim[d];
        vgk_weights_f32(&plain, at, last, a->w + row * n, n);
    }
}

/* The scale (or zero point) of an output channel. */
static float of_channel(const struct vgk_op *op, int k, int o, float otherwise)
{
    const struct vgk_tensor *t = vgk_conv_input(op, k);
    if (t)
        vgk_load_f32(&otherwise, t, t->dim[0] > 1 ? o * t->stride[0] : 0, 0, 1);
    return otherwise;
}

static void pack_direct(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct packing *a = arg;
    const struct vgk_conv_plan *p = a->p;
    float row[VGK_MICRO_WIDTH * 16], scale[VGK_MICRO_WIDTH * 16], zero[VGK_MICRO_WIDTH * 16];
    for (int64_t at = begin; at < end; at++) {
        int g = (int)(at / p->panels), i = (int)(at % p->panels);
        char *to = a->to + (size_t)at * p->stored.bytes;
        memset(to, 0, p->stored.bytes);
        for (int r = 0; r < p->nr; r++) {
            int wide = i * p->nr + r, o = g * p->cout + wide % p->cout;
            scale[r] = wide < p->wide_cout && p->keeps ? of_channel(a->op, VGK_WEIGHT_SCALE, o, 1) : 0;
            zero[r] = wide < p->wide_cout && p->keeps ? of_channel(a->op, VGK_WEIGHT_ZERO, o, 0) : 0;
        }
        int64_t k = 0;
        for (int y = 0; y < p->kd * p->kh; y++)
            for (int x = 0; x < p->wide_kw; x++)
                for (int c = 0; c < p->cin; c++, k++) {
                    for (int r = 0; r < p->nr; r++) {
                        int wide = i * p->nr + r, kx = x - wide / p->cout * p->sx;
                        bool inside = wide < p->wide_cout && kx >= 0 && kx < p->kw;
                        row[r] = inside ? weight(a, g * p->cout + wide % p->cout, c, y / p->kh, y % p->kh, kx) : zero[r];
                    }
                    vgk_panel_set(&p->stored, to, k, row);
                }
        if (p->stored.block)
            vgk_panel_set_block(&p->stored, to, 0, scale, zero);
    }
}

static void pack_bf16(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct packing *a = arg;
    const struct vgk_conv_plan *p = a->p;
    for (int64_t i = begin; i < end; i++) {
        struct vgk_tensor to = {.type = VGK_BF16, .data = a->to + (size_t)i * (p->packed / (size_t)p->panels)};
        int64_t at = 0;
        for (int tap = 0; tap < p->kh * p->kw; tap++)
            for (int c = 0; c < p->halves; c += 2)
                for (int r = 0; r < p->nr; r++) {
                    int o = (int)i * p->nr + r;
                    float pair[2] = {0};
                    for (int k = 0; k < 2 && o < p->cout && c + k < p->cin; k++)
                        pair[k] = weight(a, o, c + k, 0, tap / p->kw, tap % p->kw);
                    vgk_store_f32(pair, &to, at, 1, 2);
                    at += 2;
                }
    }
}

/* All at once: there are few. */
static void pack_dot(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct packing *a = arg;
    const struct vgk_conv_plan *p = a->p;
    float *to = (float *)a->to;
    for (int y = 0; y < p->kd * p->kh; y++)
        for (int x = 0; x < p->kw; x++)
            for (int c = 0; c < p->cin; c += p->vl)
                for (int o = 0; o < p->cout; o++)
                    for (int k = 0; k < p->vl; k++)
                        *to++ = weight(a, o, c + k, y / p->kh, y % p->kh, x);
}

static void pack_planar(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct packing *a = arg;
    const struct vgk_conv_plan *p = a->p;
    float *to = (float *)a->to;
    for (int y = 0; y < p->kd * p->kh; y++)
        for (int c = 0; c < p->cin; c++)
            for (int x = 0; x < p->kw; x++)
                for (int o = 0; o < p->cout; o++)
                    *to++ = weight(a, o, c, y / p->kh, y % p->kh, x);
}

static void pack_depthwise(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct packing *a = arg;
    const struct vgk_conv_plan *p = a->p;
    for (int64_t i = begin; i < end; i++) {
        float *to = (float *)a->to + (size_t)i * (size_t)(p->kd * p->kh * p->kw * p->nr);
        for (int y = 0; y < p->kd * p->kh; y++)
            for (int x = 0; x < p->kw; x++)
                for (int r = 0; r < p->nr; r++) {
                    int c = (int)i * p->nr + r;
                    *to++ = c < p->cout ? weight(a, c, 0, y / p->kh, y % p->kh, x) : 0;
                }
    }
}

/* G w G^T in double, a panel of output channels at a time.  Row j of G evaluates the kernel's polynomial at the j-th
 * point, over the product of the point's distances from the others (and over the 32 that the output transform puts back
 * at +-1/2). */
static void pack_winograd(void *arg, int64_t begin, int64_t end, int thread)
{
    enum { N = VGK_WINOGRAD_IN };
    static const double point[N - 1] = {0, 1, -1, 2, -2, 0.5, -0.5};
    static const double over[N - 1] = {1, -4.5, -4.5, 90, 90, 45, 45};
    const struct packing *a = arg;
    const struct vgk_conv_plan *p = a->p;
    double g[N][3] = {{0}};
    for (int j = 0; j < N - 1; j++)
        for (int k = 0; k < 3; k++)
            g[j][k] = (k == 0 ? 1 : k == 1 ? point[j] : point[j] * point[j]) / over[j];
    g[N - 1][2] = 1;
    size_t blocks = (size_t)(p->blocks_y * p->blocks_x), position = blocks * (size_t)p->cin * (size_t)p->nr;
    for (int64_t panel = begin; panel < end; panel++) {
        float *to = (float *)a->to + (size_t)panel * N * N * position;
        memset(to, 0, N * N * position * sizeof *to);
        int group = (int)panel / p->panels * p->cout, first = (int)panel % p->panels * p->nr;
        for (int o = first; o < p->cout && o < first + p->nr; o++)
            for (int cb = 0; cb < p->cin * (int)blocks; cb++) {
                int c = cb / (int)blocks, b = cb % (int)blocks, by = b / p->blocks_x, bx = b % p->blocks_x;
                int y0 = vgk_winograd_tap(by, p->kh), x0 = vgk_winograd_tap(bx, p->kw);
                double t[N][3];
                for (int x = 0; x < 3; x++) {
                    double k[3];
                    for (int y = 0; y < 3; y++)
                        k[y] = y0 + y < 3 * by || x0 + x < 3 * bx ? 0 : (double)weight(a, group + o, c, 0, y0 + y, x0 + x);
                    for (int i = 0; i < N; i++)
                        t[i][x] = g[i][0] * k[0] + g[i][1] * k[1] + g[i][2] * k[2];
                }
                float *u = to + ((size_t)b * (size_t)p->cin + (size_t)c) * (size_t)p->nr + o % p->nr;
                for (int j = 0; j < N; j++)
                    for (int i = 0; i < N; i++, u += position)
                        *u = (float)(t[i][0] * g[j][0] + t[i][1] * g[j][1] + t[i][2] * g[j][2]);
            }
    }
}

enum vgk_status vgk_conv_pack(struct vgk_device *dev, const struct vgk_op *op, void *packed, struct vgk_error *err)
{
    static void (*const packs[VGK_CONV_METHODS])(void *, int64_t, int64_t, int) = {
        [VGK_CONV_DIRECT] = pack_direct, [VGK_CONV_DOT] = pack_dot, [VGK_CONV_PLANAR] = pack_planar,
        [VGK_CONV_DEPTHWISE] = pack_depthwise, [VGK_CONV_WINOGRAD] = pack_winograd, [VGK_CONV_BF16] = pack_bf16};
    struct vgk_conv_plan p;
    enum vgk_status status = vgk_conv_make_plan(dev, op, &p, err);
    if (status != VGK_OK)
        return status;
    int64_t n = vgk_tensor_count(&op->in[1]);
    struct packing a = {&p, op, n ? malloc((size_t)n * sizeof(float)) : NULL, packed};
    if (n && !a.w)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory to bring weights into order");
    if (n)
        vgk_ranges_run(dev, n / op->in[1].dim[op->in[1].rank - 1], 256, unravel, &a);
    vgk_ranges_run(dev, (int64_t)p.groups * p.panels, 1, packs[p.method], &a);
    free(a.w);
    return VGK_OK;
}
