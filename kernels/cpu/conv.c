/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Convolution: what is planned from the shapes, and handed out.  Weights are packed in conv_pack.c; the work is in
 * conv_vector.c, conv_thin_vector.c and winograd_vector.c. */
#include "conv.h"
#include "cpu.h"

#include <math.h>

/* Numbers up to here are multiplied with each other as they are. */
#define MOST (1 << 20)
/* Above this Winograd's weights (7 times the given ones) cost more than they win: such layers have small maps. */
#define WINOGRAD_MOST_WEIGHTS (256 * 256)
/* Channels of transformed inputs for each tile above which a unit has only one block of tiles, for its inputs to stay in
 * the second cache. */
#define WINOGRAD_MOST_INPUTS 128
#define FOLD_MOST 8
/* Floats of weights that stay in the second cache beside all else. */
#define WEIGHTS_IN_CACHE (64 * 1024)

/* Lines of inputs that stay in the first cache until all vectors of channels have been read. */
#define LINES_IN_CACHE 96
#define DOT_STRETCH 96 /* whole blocks, and whole vectors */

/* ---- plan ---- */

static const struct vgk_conv_kernels *kernels_of(const struct vgk_device *dev) { return VGK_BY_ISA(dev, vgk_conv); }

/* Channels contiguous, f32; the strides as of an image. */
static bool image_of(const struct vgk_tensor *t, struct vgk_conv_image *image)
{
    if (t->type != VGK_F32 || (t->dim[1] > 1 && t->stride[1] != 1))
        return false;
    *image = (struct vgk_conv_image){t->stride[0], t->rank > 4 ? t->stride[2] : 0,
                                     t->rank > 3 ? t->stride[t->rank - 2] : 0, t->stride[t->rank - 1]};
    return true;
}

static bool fits(int64_t v, int64_t low) { return v >= low && v <= MOST; }

/* Panel width and fold with the least multiplications, those of padding included.  Returns vectors of them for each output
 * pixel and row of the kernel, at the speed of the best panel. */
static double choose_width(struct vgk_conv_plan *p, const struct vgk_micro *micro, int fold_most)
{
    double best = INFINITY;
    bool dense = p->out.x == p->cout && (!p->residual || p->res.x == p->cout);
    for (int fold = 1; fold <= fold_most; fold++)
        for (int nv = 1; nv <= VGK_MICRO_WIDTH; nv++) {
            int nr = nv * micro->vl, kw = p->kw + (fold - 1) * p->sx;
            if (fold > 1 && !dense && p->cout * fold > nr)
                continue;
            double cost = (double)kw * (double)vgk_round_up((size_t)(p->cout * fold), (size_t)nr) / fold / micro->speed[nv];
            if (cost < best * 0.999) {
                best = cost;
                p->fold = fold;
                p->nv = nv;
            }
        }
    p->wide_kw = p->kw + (p->fold - 1) * p->sx;
    p->wide_cout = p->cout * p->fold;
    p->wide_ow = (p->ow + p->fold - 1) / p->fold;
    p->nr = p->nv * micro->vl;
    p->mr = micro->rows[p->nv];
    p->panels = (p->wide_cout + p->nr - 1) / p->nr;
    return best * p->cin / micro->vl;
}

/* Few outputs: products in vectors of input channels, or of pixels, where that is cheaper (by channels and kernel only: bits
 * must not depend on anything else).  choose_width has told what it costs the other way. */
static bool plan_thin(struct vgk_conv_plan *p, const struct vgk_conv_kernels *kernels, double direct)
{
    /* In products: adding up an accumulator's lanes, a channel's way to its plane or back; speed beside the best panel's. */
    const double sum = 2.5, move = 0.6, speed = 0.9;
    double rows = (double)p->kd * p->kh, products = rows * p->kw * p->cin / p->vl;
    if (p->groups != 1 || p->cout > VGK_CONV_THIN)
        return false;
    double dot = p->cin % p->vl ? INFINITY : p->cout * (products + sum) / speed;
    double planar = p->sx > 1 ? INFINITY : p->cout * products / speed + move * (p->cin + p->cout);
    if (fmin(dot, planar) >= rows * direct)
        return false;
    p->method = dot < planar ? VGK_CONV_DOT : VGK_CONV_PLANAR;
    p->fold = 1;
    p->wide_kw = p->kw;
    p->wide_cout = p->nr = p->cout * p->vl; /* constants for outputs in whole vectors */
    p->wide_ow = p->ow;
    p->mr = kernels->dot_rows[p->cout];
    p->vectors = kernels->planar_vectors[p->cout];
    p->panels = 1;
    p->packed = sizeof(float) * (size_t)rows * (size_t)p->kw * (size_t)p->cin * (size_t)p->cout;
    return true;
}

/* A unit is about `pixels` long, but small enough that every thread gets several. */
static void split(struct vgk_conv_plan *p, int threads)
{
    int64_t share = (int64_t)p->batch * p->od * p->oh * p->wide_ow / (8 * (int64_t)threads), pixels = 384;
    if (share < pixels)
        pixels = share > 2 * p->mr ? share : 2 * p->mr;
    p->unit_rows = 1;
    p->unit_pixels = p->wide_ow;
    if (p->wide_ow <= pixels) {
        p->unit_rows = (int)(pixels / p->wide_ow);
        if (p->unit_rows > p->oh)
            p->unit_rows = p->oh;
    } else {
        int parts = (int)((p->wide_ow + pixels - 1) / pixels);
        p->unit_pixels = (int)vgk_round_up((size_t)((p->wide_ow + parts - 1) / parts), (size_t)p->mr);
    }
    p->units_y = (p->oh + p->unit_rows - 1) / p->unit_rows;
    p->units_x = (p->wide_ow + p->unit_pixels - 1) / p->unit_pixels;
}

/* Slices that no kernel connects are images of their own. */
static void part_slices(struct vgk_conv_plan *p)
{
    int n = p->batch, d = p->d;
    if (p->kd != 1 || p->sz != 1 || p->front || d != p->od ||
        (n > 1 && (p->in.n != d * p->in.z || p->out.n != d * p->out.z || (p->residual && p->res.n != d * p->res.z))))
        return;
    p->batch = n * d;
    p->d = p->od = 1;
    p->in.n = p->in.z;
    p->out.n = p->out.z;
    p->res.n = p->res.z;
}

/* Whole images of 1x1 convolutions are one row, so that narrow ones have no tails. */
static void flatten(struct vgk_conv_plan *p)
{
    bool point = p->d == 1 && p->od == 1 && p->kd == 1 && p->kh == 1 && p->kw == 1 && p->sy == 1 && p->sx == 1 &&
                 p->h == p->oh && p->w == p->ow && !p->top && !p->left;
    if (!point || p->in.y != p->w * p->in.x || p->out.y != p->w * p->out.x ||
        (p->residual && p->res.y != p->w * p->res.x))
        return;
    p->w = p->ow = p->h * p->w;
    p->h = p->oh = 1;
}

/* Winograd, where it pays, by channels and kernel only: if a tile of a frame took another method than the frame, its
 * bits would differ.  (Where all channels fill no vector, direct products of several pixels do.) */
static bool plan_winograd(struct vgk_conv_plan *p, const struct vgk_micro *micro, int above)
{
    int by = (p->kh + 2) / 3, bx = (p->kw + 2) / 3;
    bool plain = by == 1 && bx == 1;
    int64_t weights = (int64_t)p->groups * p->cin * p->cout * by * bx;
    if (p->d != 1 || p->od != 1 || p->kd != 1 || p->sy != 1 || p->sx != 1 || p->dy != 1 || p->dx != 1 || p->kh < 3 ||
        p->kw < 3 || by > VGK_WINOGRAD_BLOCKS || bx > VGK_WINOGRAD_BLOCKS || (plain ? p->cin : p->cout) < 8 ||
        (plain && p->cin + p->cout <= p->vl) || weights > WINOGRAD_MOST_WEIGHTS)
        return false;
    p->method = VGK_CONV_WINOGRAD;
    p->above = above;
    p->blocks_y = by;
    p->blocks_x = bx;
    choose_width(p, micro, 1);
    /* Blocks of whole threes share their inputs with the next tile's. */
    p->inputs_apart = bx > 2 && p->kw % 3 == 0 ? 2 : bx;
    p->tiles = (int)vgk_round_up(8, (size_t)p->mr);
    if (by * p->inputs_apart * p->cin > WINOGRAD_MOST_INPUTS)
        p->tiles = p->mr;
    p->inputs_row = (p->tiles - 1) * p->inputs_apart + bx;
    p->packed = sizeof(float) * (size_t)(VGK_WINOGRAD_POSITIONS * by * bx) * (size_t)p->cin * (size_t)(p->panels * p->nr) *
                (size_t)p->groups;
    return true;
}

/* Weights that a direct convolution can keep in the type that they come in: halves, and integers with a scale for each
 * output channel, or one for all. */
static bool keeps(const struct vgk_op *op)
{
    const struct vgk_tensor *w = &op->in[1];
    for (int k = VGK_WEIGHT_SCALE; k <= VGK_WEIGHT_ZERO; k++)
        for (int d = 0; vgk_conv_input(op, k) && d < w->rank; d++)
            if (vgk_conv_input(op, k)->dim[d] != 1 && (d || vgk_conv_input(op, k)->dim[d] != w->dim[d]))
                return false;
    return vgk_conv_input(op, VGK_WEIGHT_SCALE) ? !vgk_type_is_float(w->type) : w->type == VGK_F16 || w->type == VGK_BF16;
}

/* Products of bf16, where they fill vectors. */
static bool plan_bf16(const struct vgk_device *dev, struct vgk_conv_plan *p)
{
    enum { FEW_INPUTS = 2, FEW_OUTPUTS = 8 };
    if (p->groups != 1 || p->kd != 1 || p->d != 1 || p->od != 1 || p->cin <= FEW_INPUTS || p->cout < FEW_OUTPUTS ||
        !(p->product = vgk_cpu_bf16(dev, p->cin)))
        return false;
    flatten(p);
    p->wide_kw = p->kw;
    p->wide_cout = p->cout;
    p->wide_ow = p->ow;
    p->nv = vgk_bf16_vectors(p->cout);
    p->nr = p->nv * p->vl;
    p->mr = p->product->rows[p->nv];
    p->panels = (p->cout + p->nr - 1) / p->nr;
    p->halves = (int)vgk_round_up((size_t)p->cin, (size_t)p->product->depth);
    return vgk_mul(sizeof(uint16_t) * (size_t)(p->kh * p->kw) * (size_t)p->halves, (size_t)(p->panels * p->nr), &p->packed);
}

/* Of bf16: pixels for whole blocks, and rows that share their input. */
static void split_bf16(struct vgk_conv_plan *p)
{
    enum { PIXELS = 96, ROWS = 4 };
    p->unit_pixels = p->ow < PIXELS ? p->ow : PIXELS;
    p->unit_rows = p->oh < ROWS ? p->oh : ROWS;
    p->units_y = (p->oh + p->unit_rows - 1) / p->unit_rows;
    p->units_x = (p->ow + p->unit_pixels - 1) / p->unit_pixels;
}

/* Planar: pixels of one or two blocks, so that the copy of a kernel's rows stays in the first cache, and so many rows that
 * few are copied twice. */
static bool split_planar(struct vgk_conv_plan *p, int threads, size_t *copy)
{
    enum { ROWS = 32, FLOATS_IN_CACHE = 8 * 1024 };
    int wide = p->vectors * p->vl;
    size_t rows = (size_t)p->kd * (size_t)((p->kh - 1) * p->dy + 1);
    if (2 * rows * (size_t)p->cin * (size_t)wide <= FLOATS_IN_CACHE)
        wide *= 2;
    p->units_x = (p->ow + wide - 1) / wide;
    p->unit_pixels = (int)vgk_round_up((size_t)((p->ow + p->units_x - 1) / p->units_x), (size_t)p->vl);
    p->units_x = (p->ow + p->unit_pixels - 1) / p->unit_pixels;
    int64_t share = (int64_t)p->batch * p->od * p->oh * p->units_x / (4 * (int64_t)threads);
    p->unit_rows = (int)(share < 1 ? 1 : share < ROWS ? share : ROWS);
    p->units_y = (p->oh + p->unit_rows - 1) / p->unit_rows;
    p->plane = (int)vgk_round_up((size_t)(p->unit_pixels + (p->kw - 1) * p->dx), (size_t)p->vl);
    return vgk_mul(rows * (size_t)p->cin, (size_t)p->plane, copy);
}

static enum vgk_status decline(const struct vgk_op *op, struct vgk_error *err, const char *why)
{
    char x[128], w[128];
    return vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s of %s with weights %s: the fast kernel does not do %s",
                    vgk_kind_name(op->kind), vgk_tensor_describe(&op->in[0], x, sizeof x),
                    vgk_tensor_describe(&op->in[1], w, sizeof w), why);
}

enum vgk_status vgk_conv_make_plan(const struct vgk_device *dev, const struct vgk_op *op, struct vgk_conv_plan *plan,
                                   struct vgk_error *err)
{
    if (op->kind != VGK_OP_CONV)
        return vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s is not a convolution", vgk_kind_name(op->kind));
    const struct vgk_conv *c = &op->p.conv;
    const struct vgk_tensor *x = &op->in[0], *w = &op->in[1], *y = &op->out[0], *res = vgk_conv_input(op, 5);
    const struct vgk_micro *micro = kernels_of(dev)->micro;
    struct vgk_conv_plan p = {.pad_mode = c->pad_mode, .alpha = c->alpha, .beta = c->beta, .vl = micro->vl,
                              .residual = res, .residual_before_act = c->residual_before_act, .fold = 1};
    if (c->spatial < 1 || c->spatial > 3)
        return decline(op, err, "so many dimensions");
    if (!image_of(x, &p.in) || !image_of(y, &p.out) || (res && !image_of(res, &p.res)))
        return decline(op, err, "other layouts than channels-last or other types than f32");
    if (!vgk_type_is_float(w->type) && !vgk_conv_input(op, VGK_WEIGHT_SCALE))
        return decline(op, err, "weights of this type");
    for (int i = 2; i <= 4; i++)
        if (vgk_conv_input(op, i) && vgk_conv_input(op, i)->type != VGK_F32)
            return decline(op, err, "bias, scale or slope of other types than f32");

    /* By depth, height, width; those that are not there are 1. */
    struct {
        int in, out, kernel, stride, dilation, begin;
    } axis[3] = {{1, 1, 1, 1, 1, 0}, {1, 1, 1, 1, 1, 0}, {1, 1, 1, 1, 1, 0}};
    bool ok = fits(x->dim[0], 0) && fits(x->dim[1], 1) && fits(y->dim[1], 1) && fits(c->groups, 1);
    size_t taps = 1, pixels = (size_t)x->dim[0];
    for (int i = 0; i < c->spatial && ok; i++) {
        int64_t in = x->dim[2 + i], out = y->dim[2 + i];
        ok = fits(in, 1) && fits(out, 0) && fits(c->kernel[i], 1) && fits(c->stride[i], 1) && fits(c->dilation[i], 1) &&
             fits(c->pad_begin[i], -MOST) && fits(c->pad_end[i], -MOST) && (int64_t)c->kernel[i] * c->dilation[i] <= MOST &&
             vgk_mul(taps, (size_t)c->kernel[i], &taps) && taps <= MOST && vgk_mul(pixels, (size_t)out, &pixels);
        axis[3 - c->spatial + i].in = (int)in;
        axis[3 - c->spatial + i].out = (int)out;
        axis[3 - c->spatial + i].kernel = c->kernel[i];
        axis[3 - c->spatial + i].stride = c->stride[i];
        axis[3 - c->spatial + i].dilation = c->dilation[i];
        axis[3 - c->spatial + i].begin = c->pad_begin[i];
    }
    if (!ok || pixels > INT32_MAX)
        return decline(op, err, "sizes as large as these");
    p.batch = (int)x->dim[0];
    p.groups = c->groups;
    p.cin = (int)x->dim[1] / p.groups;
    p.cout = (int)y->dim[1] / p.groups;
    p.d = axis[0].in, p.od = axis[0].out, p.kd = axis[0].kernel, p.sz = axis[0].stride, p.dz = axis[0].dilation;
    p.h = axis[1].in, p.oh = axis[1].out, p.kh = axis[1].kernel, p.sy = axis[1].stride, p.dy = axis[1].dilation;
    p.w = axis[2].in, p.ow = axis[2].out, p.kw = axis[2].kernel, p.sx = axis[2].stride, p.dx = axis[2].dilation;
    p.front = axis[0].begin, p.top = axis[1].begin, p.left = axis[2].begin;
    p.act = c->act == VGK_ACT_LEAKY_RELU ? VGK_ACT_PRELU : c->act;
    part_slices(&p);

    if (c->bf16 && plan_bf16(dev, &p)) {
        p.method = VGK_CONV_BF16;
    } else if (p.groups > 1 && p.cin == 1 && p.cout == 1) {
        p.method = VGK_CONV_DEPTHWISE;
        p.cin = p.cout = p.groups;
        p.groups = 1;
        choose_width(&p, micro, 1);
        p.nv = 1;
        p.nr = p.vl;
        p.mr = kernels_of(dev)->depthwise_rows;
        p.panels = (p.cout + p.nr - 1) / p.nr;
        p.packed = sizeof(float) * taps * (size_t)(p.panels * p.nr);
    } else {
        double direct = choose_width(&p, micro, p.dx == 1 ? FOLD_MOST : 1);
        if (!plan_thin(&p, kernels_of(dev), direct) &&
            (dev->exact_products || c->exact_products || !plan_winograd(&p, micro, c->above))) {
            p.method = VGK_CONV_DIRECT;
            flatten(&p);
            choose_width(&p, micro, p.dx == 1 ? FOLD_MOST : 1);
            p.keeps = keeps(op);
            size_t depth;
            if (!vgk_mul((size_t)(p.kd * p.kh) * (size_t)p.wide_kw, (size_t)p.cin, &depth) || depth > INT64_MAX / 8 ||
                !vgk_panels_init(&p.stored, p.keeps ? w->type : VGK_F32, (int64_t)depth, p.nr,
                                 p.keeps && !vgk_type_is_float(w->type) ? (int64_t)depth : 0,
                                 p.keeps && vgk_conv_input(op, VGK_WEIGHT_ZERO)) ||
                !vgk_mul(p.stored.bytes, (size_t)p.groups * (size_t)p.panels, &p.packed))
                return decline(op, err, "weights as many as these");
            p.blocks_first = p.keeps || p.packed > WEIGHTS_IN_CACHE * sizeof(float);
        }
    }
    p.constants = (size_t)p.groups * (size_t)(p.panels * p.nr);

    int threads = vgk_pool_size(dev->pool);
    size_t copy = 0;
    if (p.od < 1 || p.oh < 1 || p.ow < 1 || p.batch < 1) {
        p.units = 0;
    } else if (p.method == VGK_CONV_WINOGRAD) {
        int m = VGK_WINOGRAD_OUT, down = (p.oh + p.above + m - 1) / m, across = (p.ow + m - 1) / m;
        bool plain = p.blocks_y == 1 && p.blocks_x == 1;
        p.units_y = plain ? 1 : down;
        p.units_x = ((plain ? down : 1) * across + p.tiles - 1) / p.tiles;
        p.units = p.batch * p.units_y * p.units_x;
    } else {
        if (p.method == VGK_CONV_BF16)
            split_bf16(&p);
        else if (p.method != VGK_CONV_PLANAR)
            split(&p, threads);
        else if (!split_planar(&p, threads, &copy))
            return decline(op, err, "kernels as large as this");
        p.units = p.batch * p.od * p.units_y * p.units_x;
    }
    size_t line = VGK_ALIGN / sizeof(float);
    if (p.method == VGK_CONV_WINOGRAD) {
        size_t inputs = (size_t)(p.blocks_y * p.inputs_row + 1) * (size_t)p.cin; /* and the padded input tile */
        size_t in = VGK_WINOGRAD_IN, half = VGK_WINOGRAD_OUT * in, products = (size_t)(p.tiles * p.nr);
        p.scratch_per_thread = in * in * (inputs + VGK_WINOGRAD_GAP) + in * (products + VGK_WINOGRAD_GAP) + half * products;
    } else if (p.method == VGK_CONV_PLANAR) {
        p.sums = vgk_round_up((size_t)p.unit_pixels * (size_t)p.cout + VGK_CONV_THIN, line); /* the last four may begin there */
        p.tables = vgk_round_up(2 * (size_t)(p.kd * p.kh) * sizeof(float *) / sizeof(float), line);
        p.scratch_per_thread = p.tables + p.sums + copy;
    } else {
        size_t rows = (size_t)(p.kd * p.kh);
        p.sums = (size_t)p.mr * (size_t)p.nr;
        if (p.method == VGK_CONV_DOT || p.method == VGK_CONV_DEPTHWISE) {
            p.stretch = p.method == VGK_CONV_DOT ? DOT_STRETCH : LINES_IN_CACHE / (int)rows;
            p.stretch = p.stretch > p.unit_pixels ? p.unit_pixels : p.stretch;
            p.stretch = (int)vgk_round_up((size_t)(p.stretch > 1 ? p.stretch : 1), (size_t)p.mr);
            p.sums = (size_t)p.stretch * (size_t)(p.method == VGK_CONV_DOT ? p.cout : p.vl);
        }
        p.sums += (size_t)p.nr; /* the last vector of them may begin with the last one */
        size_t edge, columns = (size_t)(p.mr - 1) * (size_t)p.sx * (size_t)p.fold;
        columns += (size_t)(p.wide_kw - 1) * (size_t)p.dx + 1;
        p.tables = vgk_round_up((rows * (size_t)p.wide_kw * sizeof(struct vgk_segment) + 2 * rows * sizeof(float *)) /
                                sizeof(float), line);
        if (!vgk_mul(rows * (size_t)p.cin, columns, &edge))
            return decline(op, err, "kernels as large as this");
        if (p.method == VGK_CONV_BF16) {
            size_t high = (size_t)(p.unit_rows - 1) * (size_t)p.sy + (size_t)(p.kh - 1) * (size_t)p.dy + 1;
            size_t wide = (vgk_round_up((size_t)p.unit_pixels, (size_t)p.mr) - 1) * (size_t)p.sx;
            wide += (size_t)(p.kw - 1) * (size_t)p.dx + 1;
            if (!vgk_mul(high * (size_t)p.halves / 2, wide, &edge))
                return decline(op, err, "kernels as large as this");
        }
        p.scratch_per_thread = p.tables + p.sums + edge + (p.keeps ? (size_t)(p.stored.depth * p.nr) : 0);
    }
    p.scratch_per_thread = vgk_round_up(p.scratch_per_thread, line);
    *plan = p;
    return VGK_OK;
}

static enum vgk_status need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *need, struct vgk_error *err)
{
    struct vgk_conv_plan p;
    enum vgk_status status = vgk_conv_make_plan(dev, op, &p, err);
    if (status != VGK_OK)
        return status;
    size_t floats, threads = (size_t)vgk_pool_size(dev->pool);
    if (!vgk_mul(p.scratch_per_thread, threads, &floats) || !vgk_add(floats, 3 * p.constants, &floats) ||
        floats > SIZE_MAX / 8 || p.packed > SIZE_MAX / 8)
        return decline(op, err, "scratch memory as large as this needs");
    *need = (struct vgk_need){.packed = p.packed, .scratch = floats * sizeof(float), .lattice = {1, 1, 1}};
    if (p.method == VGK_CONV_WINOGRAD)
        need->lattice[1] = need->lattice[2] = VGK_WINOGRAD_OUT;
    if ((need->bf16 = p.method == VGK_CONV_BF16))
        need->how = p.product->how;
    return VGK_OK;
}

/* ---- run ---- */

/* A vector per output channel, once for each folded pixel, padded to whole panels: kernels read it in vectors. */
static const float *constants(const struct vgk_conv_plan *p, const struct vgk_tensor *t, float otherwise, float *to)
{
    const float *start = to;
    for (int g = 0; g < p->groups; g++)
        for (int i = 0; i < p->panels * p->nr; i++) {
            int c = g * p->cout + i % p->cout;
            *to++ = i >= p->wide_cout ? 0 : t ? ((const float *)t->data)[c * t->stride[0]] : otherwise;
        }
    return start;
}

static void work(void *arg, int unit, int thread)
{
    const struct vgk_conv_job *j = arg;
    j->unit(j, unit, j->scratch + (size_t)thread * j->plan.scratch_per_thread);
}

static enum vgk_status run(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                           struct vgk_error *err)
{
    struct vgk_conv_job j;
    enum vgk_status status = vgk_conv_make_plan(dev, op, &j.plan, err);
    if (status != VGK_OK)
        return status;
    const struct vgk_conv_plan *p = &j.plan;
    float *shared = scratch, leak = op->p.conv.act == VGK_ACT_LEAKY_RELU ? p->alpha : 0;
    j.in = op->in[0].data;
    j.out = op->out[0].data;
    j.res = p->residual ? op->in[5].data : NULL;
    j.weights = packed;
    j.unpack = VGK_BY_ISA(dev, vgk_weights)->unpack;
    j.shift = constants(p, vgk_conv_input(op, 2), 0, shared);
    j.scale = constants(p, vgk_conv_input(op, 3), 1, shared + p->constants);
    j.slope = constants(p, op->p.conv.act == VGK_ACT_PRELU ? vgk_conv_input(op, 4) : NULL, leak, shared + 2 * p->constants);
    j.scratch = shared + 3 * p->constants;
    j.unit = kernels_of(dev)->unit[p->method];
    vgk_pool_run(dev->pool, p->units, work, &j);
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_conv = {.name = "conv", .need = need, .pack = vgk_conv_pack, .run = run};
