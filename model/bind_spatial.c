/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operators on images and volumes [N,C,(D,)H,W]: convolution, pooling, resizing, padding, shuffles.  Each states how
 * far it reaches on the frame's axes (struct vg_reach). */
#include "bind_ops.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* --- windows: kernel, stride, dilation, pads --- */

struct window {
    int spatial;
    int64_t kernel[VGK_MAX_SPATIAL], stride[VGK_MAX_SPATIAL], dilation[VGK_MAX_SPATIAL];
    int64_t begin[VGK_MAX_SPATIAL], end[VGK_MAX_SPATIAL];
};

static enum vgk_status ints(struct binder *b, const char *name, int n, int64_t otherwise, int64_t lowest, int64_t *v)
{
    const struct vg_attribute *a = vg_node_attribute(b->node, name);
    if (a && (a->type != VG_ATTR_INTS || a->n != (size_t)n))
        return fail(b, VGK_ERR_INVALID, "%s must have %d values", name, n);
    for (int i = 0; i < n; i++) {
        v[i] = a ? a->ints[i] : otherwise;
        if (v[i] < lowest || v[i] > 1 << 20)
            return fail(b, VGK_ERR_INVALID, "%s has a value of %" PRId64, name, v[i]);
    }
    return VGK_OK;
}

/* Attributes common to Conv and pools; kernel: the default (weights' size), 0 = it must be given. */
static enum vgk_status window(struct binder *b, const int64_t *kernel, struct window *w)
{
    const struct vgk_tensor *t = &binder_value(b, 0)->t;
    int64_t pads[2 * VGK_MAX_SPATIAL];
    enum vgk_status s;
    w->spatial = t->rank - 2;
    if (w->spatial < 1 || w->spatial > VGK_MAX_SPATIAL)
        return fail(b, VGK_ERR_UNSUPPORTED, "of rank %d; [N,C] and 1 to 3 more dimensions are", t->rank);
    int n = w->spatial;
    if ((s = ints(b, "kernel_shape", n, 0, 0, w->kernel)) || (s = ints(b, "strides", n, 1, 1, w->stride)) ||
        (s = ints(b, "dilations", n, 1, 1, w->dilation)) || (s = ints(b, "pads", 2 * n, 0, 0, pads)))
        return s;
    for (int i = 0; i < n; i++) {
        if (kernel && w->kernel[i] && w->kernel[i] != kernel[i])
            return fail(b, VGK_ERR_INVALID, "kernel_shape differs from the weights");
        if (kernel)
            w->kernel[i] = kernel[i];
        if (w->kernel[i] < 1)
            return fail(b, VGK_ERR_INVALID, "kernel_shape is missing");
        w->begin[i] = pads[i];
        w->end[i] = pads[n + i];
    }
    return VGK_OK;
}

/* auto_pad for windows that go down (Conv, pools). */
static enum vgk_status auto_pad(struct binder *b, struct window *w)
{
    const char *how = vg_node_string(b->node, "auto_pad", "NOTSET");
    const struct vgk_tensor *t = &binder_value(b, 0)->t;
    if (!strcmp(how, "NOTSET") || !how[0])
        return VGK_OK;
    bool upper = !strcmp(how, "SAME_UPPER");
    if (!upper && strcmp(how, "SAME_LOWER") && strcmp(how, "VALID"))
        return fail(b, VGK_ERR_INVALID, "auto_pad is %s", how);
    for (int i = 0; i < w->spatial; i++) {
        int64_t in = t->dim[2 + i], out = (in + w->stride[i] - 1) / w->stride[i];
        int64_t pad = (out - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - in;
        pad = pad > 0 && strcmp(how, "VALID") ? pad : 0;
        w->begin[i] = upper ? pad / 2 : pad - pad / 2;
        w->end[i] = pad - w->begin[i];
    }
    return VGK_OK;
}

/* Output size and reach along every axis of a window that goes down. */
static enum vgk_status slide(struct binder *b, const struct window *w, bool ceil_mode, int64_t *dim,
                             struct vg_operand *x)
{
    const struct vg_net_value *v = binder_value(b, 0);
    for (int i = 0; i < w->spatial; i++) {
        int64_t extent = (w->kernel[i] - 1) * w->dilation[i] + 1, in = v->t.dim[2 + i];
        int64_t room = in + w->begin[i] + w->end[i] - extent;
        if (room < 0)
            return fail(b, VGK_ERR_INVALID, "a window of %" PRId64 " on %" PRId64 " padded pixels; the frame or tile "
                        "is too small for this model", extent, in + w->begin[i] + w->end[i]);
        dim[2 + i] = room / w->stride[i] + 1;
        if (ceil_mode && room % w->stride[i] && dim[2 + i] * w->stride[i] < in + w->begin[i])
            dim[2 + i]++; /* the last window must start inside the input or its left padding */
        for (int a = 0; a < VG_AXES; a++)
            if (v->axis[a] == 2 + i)
                x->reach[a] = (struct vg_reach){w->stride[i], 1, -w->begin[i], extent - 1 - w->begin[i]};
    }
    return VGK_OK;
}

static void to_ints(int *to, const int64_t *from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (int)from[i];
}

/* --- convolution --- */

static enum vgk_status bind_conv(struct binder *b)
{
    bool transposed = binder_parameter(b);
    int x = binder_in(b, 0), w = binder_in(b, 1), bias = binder_in(b, 2);
    const struct vgk_tensor tw = b->net->values[w].t, tx = b->net->values[x].t;
    struct window win;
    enum vgk_status s;
    if (tw.rank != tx.rank || tx.rank < 3)
        return fail(b, VGK_ERR_INVALID, "weights of rank %d", tw.rank);
    if (!b->net->values[w].constant)
        return fail(b, VGK_ERR_UNSUPPORTED, "weights that are not constants");
    if ((s = window(b, tw.dim + 2, &win)) || (!transposed && (s = auto_pad(b, &win))))
        return s;
    int64_t groups = vg_node_int(b->node, "group", 1), dim[VGK_MAX_RANK] = {tx.dim[0]};
    int64_t cin = transposed ? tw.dim[0] : tw.dim[1] * groups, cout = transposed ? tw.dim[1] * groups : tw.dim[0];
    if (groups < 1 || tx.dim[1] != cin || cout % groups || cin % groups)
        return fail(b, VGK_ERR_INVALID, "%" PRId64 " channels, the weights want %" PRId64 " in %" PRId64 " groups",
                    tx.dim[1], cin, groups);
    if (bias >= 0 && (b->net->values[bias].t.rank != 1 || b->net->values[bias].t.dim[0] != cout))
        return fail(b, VGK_ERR_INVALID, "the bias must have %" PRId64 " values", cout);
    dim[1] = cout;
    struct vg_operand in[VGK_CONV_INPUTS];
    struct vgk_op op = {.kind = transposed ? VGK_OP_CONV_TRANSPOSE : VGK_OP_CONV};
    struct vgk_conv *p = &op.p.conv;
    p->spatial = win.spatial;
    p->groups = (int)groups;
    if ((s = binder_image(b, &x)))
        return s;
    for (int i = 0; i < VGK_CONV_INPUTS; i++)
        in[i] = vg_net_operand(b->net, i == 0 ? x : i == 1 ? w : i == 2 ? bias : -1);
    binder_weights(b, in, 3, tw.rank, false);
    if (!transposed) {
        if ((s = slide(b, &win, false, dim, &in[0])))
            return s;
    } else {
        int64_t extra[VGK_MAX_SPATIAL], shape[VGK_MAX_SPATIAL];
        const char *how = vg_node_string(b->node, "auto_pad", "NOTSET");
        bool same = !strncmp(how, "SAME", 4);
        if ((s = ints(b, "output_padding", win.spatial, 0, 0, extra)) ||
            (s = ints(b, "output_shape", win.spatial, 0, 0, shape)))
            return s;
        for (int i = 0; i < win.spatial; i++) {
            int64_t full = (tx.dim[2 + i] - 1) * win.stride[i] + (win.kernel[i] - 1) * win.dilation[i] + 1 + extra[i];
            if (shape[i] || same) { /* the pads follow from the size */
                int64_t size = shape[i] ? shape[i] : tx.dim[2 + i] * win.stride[i];
                int64_t pad = full - size > 0 ? full - size : 0;
                if (full < size)
                    extra[i] += size - full;
                win.begin[i] = !strcmp(how, "SAME_UPPER") ? pad / 2 : pad - pad / 2;
                win.end[i] = pad - win.begin[i];
                dim[2 + i] = size;
            } else {
                dim[2 + i] = full - win.begin[i] - win.end[i];
            }
            if (dim[2 + i] < 1)
                return fail(b, VGK_ERR_INVALID, "the pads leave no output");
            for (int a = 0; a < VG_AXES; a++)
                if (b->net->values[x].axis[a] == 2 + i)
                    in[0].reach[a] = (struct vg_reach){1, win.stride[i],
                        win.begin[i] - (win.kernel[i] - 1) * win.dilation[i] + win.stride[i] - 1, win.begin[i]};
        }
        to_ints(p->output_padding, extra, win.spatial);
    }
    to_ints(p->kernel, win.kernel, win.spatial);
    to_ints(p->stride, win.stride, win.spatial);
    to_ints(p->dilation, win.dilation, win.spatial);
    to_ints(p->pad_begin, win.begin, win.spatial);
    to_ints(p->pad_end, win.end, win.spatial);
    int y = binder_new(b, 0, tx.type, tx.rank, dim, &x, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand out = vg_net_operand(b->net, y);
    binder_set(b, 0, y);
    return binder_emit(b, &op, in, VGK_CONV_INPUTS, &out);
}

/* --- pooling --- */

static enum vgk_status pool(struct binder *b, int x, const struct window *w, bool max, bool include_pad, int *result)
{
    struct vgk_tensor t = b->net->values[x].t;
    int64_t dim[VGK_MAX_RANK] = {t.dim[0], t.dim[1]};
    struct vg_operand in = vg_net_operand(b->net, x);
    enum vgk_status s = slide(b, w, vg_node_int(b->node, "ceil_mode", 0), dim, &in);
    if (s)
        return s;
    struct vgk_op op = {.kind = VGK_OP_POOL, .p.pool = {.max = max, .spatial = w->spatial,
                                                        .count_include_pad = include_pad}};
    to_ints(op.p.pool.kernel, w->kernel, w->spatial);
    to_ints(op.p.pool.stride, w->stride, w->spatial);
    to_ints(op.p.pool.dilation, w->dilation, w->spatial);
    to_ints(op.p.pool.pad_begin, w->begin, w->spatial);
    to_ints(op.p.pool.pad_end, w->end, w->spatial);
    *result = binder_new(b, 0, t.type, t.rank, dim, &x, 1);
    if (*result < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand out = vg_net_operand(b->net, *result);
    return binder_emit(b, &op, &in, 1, &out);
}

static enum vgk_status bind_pool(struct binder *b)
{
    int x = binder_in(b, 0), y;
    struct window w;
    enum vgk_status s = window(b, NULL, &w);
    if (s || (s = auto_pad(b, &w)) || (s = binder_image(b, &x)) ||
        (s = pool(b, x, &w, binder_parameter(b), vg_node_int(b->node, "count_include_pad", 0), &y)))
        return s;
    binder_set(b, 0, y);
    return VGK_OK;
}

static enum vgk_status global_pool(struct binder *b, enum vgk_reduce_fn fn)
{
    int x = binder_in(b, 0);
    struct vgk_tensor t = b->net->values[x].t;
    struct vgk_op op = {.kind = VGK_OP_REDUCE, .p.reduce = {.fn = fn}};
    int64_t dim[VGK_MAX_RANK];
    if (t.rank < 3)
        return fail(b, VGK_ERR_INVALID, "the input must be [N,C,...]");
    for (int i = 0; i < t.rank; i++) {
        dim[i] = i < 2 ? t.dim[i] : 1;
        op.p.reduce.axes |= (i >= 2) << i;
    }
    binder_global(b, "pools over the whole frame");
    int y = binder_new(b, 0, t.type, t.rank, dim, &x, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    b->net->values[y].axis[VG_X] = b->net->values[y].axis[VG_Y] = -1;
    struct vg_operand in = vg_net_operand(b->net, x), out = vg_net_operand(b->net, y);
    binder_set(b, 0, y);
    return binder_emit(b, &op, &in, 1, &out);
}

static enum vgk_status bind_global_pool(struct binder *b) { return global_pool(b, binder_parameter(b)); }

/* y = x (fn) constant, all elements. */
static enum vgk_status with_constant(struct binder *b, int *v, enum vgk_binary_fn fn, double constant)
{
    int c = vg_net_constant(b->net, "", VGK_F32, 0, NULL);
    const struct vgk_tensor t = b->net->values[*v].t;
    if (t.type != VGK_F32)
        return fail(b, VGK_ERR_UNSUPPORTED, "only of f32");
    int y = binder_new(b, 0, t.type, t.rank, t.dim, v, 1);
    if (c < 0 || y < 0)
        return fail(b, VGK_ERR_NOMEM, "no memory for the graph");
    *(float *)b->net->values[c].t.data = (float)constant;
    struct vg_operand in[2] = {vg_net_operand(b->net, *v)}, out = vg_net_operand(b->net, y);
    enum vgk_status s = binder_broadcast(b, c, t.rank, t.dim, &in[1]);
    *v = y;
    return s ? s : binder_emit(b, &(struct vgk_op){.kind = VGK_OP_BINARY, .p.binary.fn = fn}, in, 2, &out);
}

/* (sum |x|^p)^(1/p) of a window, as an average of powers: padding counts in it as the zeros that it is. */
static enum vgk_status bind_lp_pool(struct binder *b)
{
    const struct vg_attribute *a = vg_node_attribute(b->node, "p");
    double p = !a ? 2 : a->type == VG_ATTR_FLOAT ? (double)a->f : (double)a->i, count = 1;
    int x = binder_in(b, 0);
    const struct vgk_tensor t = b->net->values[x].t;
    struct window w = {.spatial = 0};
    if (p < 1)
        return fail(b, VGK_ERR_INVALID, "p = %g", p);
    if (binder_parameter(b)) {
        if (p > 2)
            return fail(b, VGK_ERR_UNSUPPORTED, "p = %g; 1 and 2 are", p);
        return global_pool(b, p == 1 ? VGK_REDUCE_L1 : VGK_REDUCE_L2);
    }
    if (vg_node_int(b->node, "ceil_mode", 0))
        return fail(b, VGK_ERR_UNSUPPORTED, "ceil_mode");
    enum vgk_status s = window(b, NULL, &w);
    if (s || (s = auto_pad(b, &w)))
        return s;
    for (int i = 0; i < w.spatial; i++)
        count *= (double)w.kernel[i];
    int y = binder_new(b, 0, t.type, t.rank, t.dim, &x, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand in = vg_net_operand(b->net, x), out = vg_net_operand(b->net, y);
    if ((s = binder_emit(b, &(struct vgk_op){.kind = VGK_OP_UNARY, .p.unary.fn = VGK_ABS}, &in, 1, &out)) ||
        (s = with_constant(b, &y, VGK_POW, p)) || (s = pool(b, y, &w, false, true, &y)) ||
        (s = with_constant(b, &y, VGK_MUL, count)) || (s = with_constant(b, &y, VGK_POW, 1 / p)))
        return s;
    binder_set(b, 0, y);
    return VGK_OK;
}

/* --- resizing --- */

/* A scale as a fraction: the sizes' own where they agree with it, else a small one that is it within 1e-9. */
static bool fraction(double scale, int64_t in, int64_t out, int64_t *p, int64_t *q)
{
    if (fabs((double)out - scale * (double)in) < 1e-9 * (double)out) {
        int64_t a = out, c = in;
        while (c) {
            int64_t r = a % c;
            a = c;
            c = r;
        }
        *p = out / a;
        *q = in / a;
        return true;
    }
    for (*q = 1; *q <= 64; ++*q) {
        *p = llround(scale * (double)*q);
        if (*p > 0 && fabs((double)*p / (double)*q - scale) < 1e-9 * scale)
            return true;
    }
    return false;
}

/* How far a resized axis reaches: the source position of output o is (num * o + at) / den. */
static bool resize_reach(const struct vgk_resize *r, int axis, int64_t in, int64_t out, struct vg_reach *reach)
{
    int64_t p, q, num, den, at;
    if (r->coordinates == VGK_ALIGN_CORNERS || !fraction(r->scale[axis], in, out, &p, &q))
        return false;
    if (r->coordinates == VGK_ASYMMETRIC) {
        num = q, den = p, at = 0;
    } else {
        num = 2 * q, den = 2 * p, at = q - p;
    }
    int64_t wide = r->antialias && q > p ? (den * q + p - 1) / p : den; /* one tap's width */
    switch (r->mode) {
    case VGK_NEAREST:
        *reach = r->nearest == VGK_NEAREST_FLOOR  ? (struct vg_reach){num, den, at, at}
                 : r->nearest == VGK_NEAREST_CEIL ? (struct vg_reach){num, den, at + den - 1, at + den - 1}
                                                  : (struct vg_reach){num, den, at + (den - 1) / 2, at + den / 2};
        break;
    case VGK_LINEAR:
        *reach = r->antialias && q > p ? (struct vg_reach){num, den, at - wide + 1, at + wide}
                                       : (struct vg_reach){num, den, at, at + den - 1};
        break;
    case VGK_CUBIC: *reach = (struct vg_reach){num, den, at - wide, at + 2 * wide}; break;
    }
    return true;
}

static enum vgk_status resize(struct binder *b, int x, const double *scale, const int64_t *dim, struct vgk_resize *r)
{
    enum vgk_status s = binder_image(b, &x);
    if (s)
        return s;
    const struct vgk_tensor t = b->net->values[x].t;
    struct vg_operand in = vg_net_operand(b->net, x);
    for (int i = 0; i < t.rank; i++) {
        r->scale[i] = scale[i];
        if (dim[i] < 1 || !(scale[i] > 0) || !isfinite(scale[i]))
            return fail(b, VGK_ERR_INVALID, "dimension %d of %" PRId64 " to %" PRId64, i, t.dim[i], dim[i]);
        for (int a = 0; a < VG_AXES; a++)
            if (in.t.rank == t.rank && b->net->values[x].axis[a] == i && (dim[i] != t.dim[i] || scale[i] != 1)) {
                if (!resize_reach(r, i, t.dim[i], dim[i], &in.reach[a]))
                    binder_global(b, r->coordinates == VGK_ALIGN_CORNERS
                                         ? "with align_corners depends on the frame's size"
                                         : "has a scale that is no small fraction");
                else if (fraction(scale[i], t.dim[i], dim[i], &(int64_t){0}, &(int64_t){0})) {
                    int64_t p, q;
                    fraction(scale[i], t.dim[i], dim[i], &p, &q);
                    r->scale[i] = (double)p / (double)q;
                }
            }
    }
    struct vgk_op op = {.kind = VGK_OP_RESIZE, .p.resize = *r};
    int y = binder_new(b, 0, t.type, t.rank, dim, &x, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand out = vg_net_operand(b->net, y);
    binder_set(b, 0, y);
    return binder_emit(b, &op, &in, 1, &out);
}

/* Float constants of input i. */
static enum vgk_status floats(struct binder *b, int i, double *values, int max, int *n)
{
    int v = binder_in(b, i);
    *n = -1;
    if (v < 0)
        return VGK_OK;
    enum vgk_status s = binder_dense(b, &v, VGK_ROW_MAJOR);
    if (s)
        return s;
    const struct vg_net_value *x = &b->net->values[v];
    if (!x->constant || x->t.type != VGK_F32 || vgk_tensor_count(&x->t) > max)
        return fail(b, VGK_ERR_UNSUPPORTED, "input %d must be at most %d float constants", i, max);
    *n = (int)vgk_tensor_count(&x->t);
    for (int k = 0; k < *n; k++)
        values[k] = ((const float *)x->t.data)[k];
    return VGK_OK;
}

static enum vgk_status bind_resize(struct binder *b)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    static const char *const coordinates[] = {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                              "half_pixel_symmetric", NULL};
    static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};
    bool upsample = binder_parameter(b);
    const char *mode = vg_node_string(b->node, "mode", "nearest");
    int first = upsample || b->opset < 11 ? 1 : 2, n, n_sizes = -1, x = binder_in(b, 0);
    const struct vgk_tensor t = b->net->values[x].t;
    int m = binder_choice(!strcmp(mode, "bilinear") ? "linear" : mode, modes);
    int c = binder_choice(vg_node_string(b->node, "coordinate_transformation_mode", first == 1 ? "asymmetric" : "half_pixel"),
                   coordinates);
    int k = binder_choice(vg_node_string(b->node, "nearest_mode", first == 1 ? "floor" : "round_prefer_floor"), nearest);
    if (m < 0 || c < 0 || k < 0)
        return fail(b, VGK_ERR_UNSUPPORTED, "mode %s with %s", mode,
                    vg_node_string(b->node, "coordinate_transformation_mode", "-"));
    struct vgk_resize r = {m, c, k, vg_node_float(b->node, "cubic_coeff_a", -0.75f),
                           vg_node_int(b->node, "antialias", 0), vg_node_int(b->node, "exclude_outside", 0), {0}};
    double scale[VGK_MAX_RANK], given[VGK_MAX_RANK];
    int64_t dim[VGK_MAX_RANK], sizes[VGK_MAX_RANK], axes[VGK_MAX_RANK];
    int n_axes;
    enum vgk_status s = floats(b, first, given, VGK_MAX_RANK, &n);
    const struct vg_attribute *a = upsample ? vg_node_attribute(b->node, "scales") : NULL;
    if (!s && a && a->type == VG_ATTR_FLOATS && a->n <= VGK_MAX_RANK) { /* Upsample before opset 9 */
        n = (int)a->n;
        for (int i = 0; i < n; i++)
            given[i] = a->floats[i];
    }
    if (!s && upsample && n < 0 && vg_node_attribute(b->node, "height_scale") && t.rank == 4) { /* before opset 7 */
        n = 4;
        given[0] = given[1] = 1;
        given[2] = vg_node_float(b->node, "height_scale", 1);
        given[3] = vg_node_float(b->node, "width_scale", 1);
    }
    if (!s && first == 2)
        s = binder_ints(b, 3, sizes, VGK_MAX_RANK, &n_sizes);
    if (!s)
        s = binder_axes(b, "axes", 99, axes, VGK_MAX_RANK, &n_axes);
    if (s)
        return s;
    if (strcmp(vg_node_string(b->node, "keep_aspect_ratio_policy", "stretch"), "stretch"))
        return fail(b, VGK_ERR_UNSUPPORTED, "keep_aspect_ratio_policy other than stretch");
    if (n <= 0 && n_sizes <= 0)
        return fail(b, VGK_ERR_INVALID, "neither scales nor sizes are given");
    int count = n_sizes > 0 ? n_sizes : n;
    if (count != (n_axes > 0 ? n_axes : t.rank))
        return fail(b, VGK_ERR_INVALID, "%d scales or sizes for rank %d", count, t.rank);
    for (int i = 0; i < t.rank; i++) {
        scale[i] = 1;
        dim[i] = t.dim[i];
    }
    for (int i = 0; i < count; i++) {
        int d = i;
        if (n_axes > 0 && (s = binder_axis(b, axes[i], t.rank, &d)))
            return s;
        if (t.dim[d] < 1)
            return fail(b, VGK_ERR_INVALID, "of an empty tensor");
        if (n_sizes > 0) {
            dim[d] = sizes[i];
            scale[d] = (double)sizes[i] / (double)t.dim[d];
        } else {
            scale[d] = given[i];
            double size = floor((double)(float)given[i] * (double)t.dim[d] + 1e-6);
            dim[d] = size >= 1 && size < 1e9 ? (int64_t)size : 0;
        }
    }
    return resize(b, x, scale, dim, &r);
}

/* --- padding --- */

static enum vgk_status bind_pad(struct binder *b)
{
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap", NULL};
    int x = binder_in(b, 0), n, n_axes;
    struct vgk_op op = {.kind = VGK_OP_PAD};
    int64_t pads[2 * VGK_MAX_RANK], axes[VGK_MAX_RANK], dim[VGK_MAX_RANK];
    int mode = binder_choice(vg_node_string(b->node, "mode", "constant"), modes), constant = binder_in(b, 2);
    enum vgk_status s;
    if ((s = binder_axes(b, b->opset < 2 ? "paddings" : "pads", 1, pads, 2 * VGK_MAX_RANK, &n)) ||
        (s = binder_ints(b, 3, axes, VGK_MAX_RANK, &n_axes)))
        return s;
    if (mode < 0)
        return fail(b, VGK_ERR_UNSUPPORTED, "mode %s", vg_node_string(b->node, "mode", ""));
    const struct vgk_tensor t = b->net->values[x].t;
    int each = n_axes >= 0 ? n_axes : t.rank;
    if (n != 2 * each)
        return fail(b, VGK_ERR_INVALID, "%d pads for %d dimensions", n, each);
    op.p.pad.mode = mode;
    memcpy(dim, t.dim, sizeof dim);
    if (b->opset < 11 && vg_node_attribute(b->node, "value")) {
        if ((constant = vg_net_constant(b->net, "", VGK_F32, 0, NULL)) < 0)
            return fail(b, VGK_ERR_NOMEM, "no memory for the graph");
        *(float *)b->net->values[constant].t.data = vg_node_float(b->node, "value", 0);
    }
    struct vg_operand in[2] = {vg_net_operand(b->net, x), vg_net_operand(b->net, constant)};
    for (int i = 0; i < each; i++) {
        int d = i;
        if (n_axes >= 0 && (s = binder_axis(b, axes[i], t.rank, &d)))
            return s;
        int64_t lo = pads[i], hi = pads[each + i], size = t.dim[d] + (lo < 0 ? lo : 0) + (hi < 0 ? hi : 0);
        if (lo < -t.dim[d] || hi < -t.dim[d] || size < 0 || lo > 1 << 20 || hi > 1 << 20)
            return fail(b, VGK_ERR_INVALID, "pads %" PRId64 ", %" PRId64 " on %" PRId64, lo, hi, t.dim[d]);
        if (mode == VGK_PAD_REFLECT && (lo > size - 1 || hi > size - 1))
            return fail(b, VGK_ERR_INVALID, "reflects %" PRId64 " of %" PRId64 " pixels; the frame or tile is too "
                        "small for this model", lo > hi ? lo : hi, size);
        if (mode != VGK_PAD_CONSTANT && size < 1 && (lo > 0 || hi > 0))
            return fail(b, VGK_ERR_INVALID, "pads from an empty dimension");
        op.p.pad.begin[d] = lo;
        op.p.pad.end[d] = hi;
        dim[d] = t.dim[d] + lo + hi;
        for (int a = 0; a < VG_AXES; a++)
            if (b->net->values[x].axis[a] == d) {
                in[0].reach[a] = (struct vg_reach){1, 1, -lo, -lo};
                if (mode == VGK_PAD_WRAP && (lo > 0 || hi > 0))
                    binder_global(b, "wraps around the frame");
            }
    }
    int y = binder_new(b, 0, t.type, t.rank, dim, &x, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand out = vg_net_operand(b->net, y);
    binder_set(b, 0, y);
    return binder_emit(b, &op, in, 2, &out);
}

/* --- shuffles: a copy between 6-dimensional views of both sides --- */

static enum vgk_status bind_shuffle(struct binder *b)
{
    bool down = binder_parameter(b); /* SpaceToDepth */
    int x = binder_in(b, 0);
    int64_t n = vg_node_int(b->node, "blocksize", 0);
    const char *mode = vg_node_string(b->node, "mode", "DCR");
    const struct vgk_tensor t = b->net->values[x].t;
    bool crd = !strcmp(mode, "CRD");
    if (t.rank != 4 || n < 1 || n > 1 << 12)
        return fail(b, VGK_ERR_INVALID, "a block size of %" PRId64 " on rank %d", n, t.rank);
    if (down ? t.dim[2] % n || t.dim[3] % n : t.dim[1] % (n * n))
        return fail(b, VGK_ERR_INVALID, "a block size of %" PRId64 " does not divide the %s", n,
                    down ? "frame" : "channels");
    int64_t dim[4] = {t.dim[0], down ? t.dim[1] * n * n : t.dim[1] / (n * n), down ? t.dim[2] / n : t.dim[2] * n,
                      down ? t.dim[3] / n : t.dim[3] * n};
    int y = binder_new(b, 0, t.type, 4, dim, &x, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand in = vg_net_operand(b->net, x), out = vg_net_operand(b->net, y);
    /* [N, C, H, i, W, j]: `deep` has the block in its channels, `wide` in its rows and columns. */
    struct vgk_tensor *deep = down ? &out.t : &in.t, *wide = down ? &in.t : &out.t, d = *deep, w = *wide;
    int64_t c = w.dim[1], block = crd ? 1 : c, channel = crd ? n * n : 1;
    const int64_t dims[6] = {w.dim[0], c, d.dim[2], n, d.dim[3], n};
    *deep = (struct vgk_tensor){.type = t.type, .rank = 6, .data = d.data,
        .stride = {d.stride[0], d.stride[1] * channel, d.stride[2], d.stride[1] * block * n, d.stride[3],
                   d.stride[1] * block}};
    *wide = (struct vgk_tensor){.type = t.type, .rank = 6, .data = w.data,
        .stride = {w.stride[0], w.stride[1], w.stride[2] * n, w.stride[2], w.stride[3] * n, w.stride[3]}};
    memcpy(deep->dim, dims, sizeof dims);
    memcpy(wide->dim, dims, sizeof dims);
    for (int a = 0; a < VG_AXES; a++)
        in.reach[a] = down ? (struct vg_reach){n, 1, 0, n - 1} : (struct vg_reach){1, n, 0, 0};
    binder_set(b, 0, y);
    return binder_emit(b, &(struct vgk_op){.kind = VGK_OP_COPY}, &in, 1, &out);
}

const struct handler vg_handlers_spatial[] = {
    {"Conv", bind_conv, false, 2, 3, 1},
    {"ConvTranspose", bind_conv, true, 2, 3, 1},
    {"MaxPool", bind_pool, true, 1, 1, 1},
    {"AveragePool", bind_pool, false, 1, 1, 1},
    {"GlobalAveragePool", bind_global_pool, VGK_REDUCE_MEAN, 1, 1, 1},
    {"GlobalMaxPool", bind_global_pool, VGK_REDUCE_MAX, 1, 1, 1},
    {"LpPool", bind_lp_pool, false, 1, 1, 1},
    {"GlobalLpPool", bind_lp_pool, true, 1, 1, 1},
    {"Resize", bind_resize, false, 1, 4, 1},
    {"Upsample", bind_resize, true, 1, 2, 1},
    {"Pad", bind_pad, 0, 1, 4, 1},
    {"DepthToSpace", bind_shuffle, false, 1, 1, 1},
    {"SpaceToDepth", bind_shuffle, true, 1, 1, 1},
    {NULL, NULL, 0, 0, 0, 0},
};
