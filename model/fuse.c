/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuse.h"

#include <stdlib.h>
#include <string.h>

#include "warp.h"

/* --- looking around --- */

/* The op that makes operand `o` all by itself, seen whole, and that nobody else reads; NULL when there is none. */
static struct vg_net_op *sole_producer(struct vg_net *net, const struct vg_operand *o)
{
    int i = vg_net_producer(net, o->value);
    if (i < 0 || net->ops[i].view || vg_net_uses(net, o->value) != 1)
        return NULL;
    struct vg_net_op *p = &net->ops[i];
    if (p->out.t.rank != o->t.rank || p->out.offset != o->offset)
        return NULL;
    for (int d = 0; d < o->t.rank; d++)
        if (p->out.t.dim[d] != o->t.dim[d] || (o->t.dim[d] > 1 && p->out.t.stride[d] != o->t.stride[d]))
            return NULL;
    return p;
}

static bool same_operand(const struct vg_operand *a, const struct vg_operand *b)
{
    if (a->value != b->value || a->offset != b->offset || a->t.rank != b->t.rank)
        return false;
    for (int d = 0; d < a->t.rank; d++)
        if (a->t.dim[d] != b->t.dim[d] || a->t.stride[d] != b->t.stride[d])
            return false;
    return true;
}

static bool same_dims(const struct vgk_tensor *a, const struct vgk_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dim, b->dim, a->rank * sizeof *a->dim);
}

static bool is_constant(const struct vg_net *net, const struct vg_operand *o)
{
    return o->value >= 0 && net->values[o->value].constant;
}

/* A constant f32 that is the same everywhere. */
static bool is_scalar(const struct vg_net *net, const struct vg_operand *o, float *x)
{
    if (!is_constant(net, o) || o->t.type != VGK_F32)
        return false;
    for (int d = 0; d < o->t.rank; d++)
        if (o->t.dim[d] > 1 && o->t.stride[d])
            return false;
    *x = *(const float *)o->t.data;
    return true;
}

/* An operand of [N,C,...] that only varies with C, as [C]: *out.  Constants are copied (and repeated) into a dense
 * one; others must be contiguous already. */
static bool per_channel(struct vg_net *net, const struct vg_operand *o, struct vg_operand *out)
{
    if (o->value < 0 || o->t.rank < 3 || o->t.type != VGK_F32)
        return false;
    for (int d = 0; d < o->t.rank; d++)
        if (d != 1 && o->t.dim[d] > 1 && o->t.stride[d])
            return false;
    int64_t c = o->t.dim[1], stride = o->t.stride[1];
    *out = *o;
    out->t = (struct vgk_tensor){VGK_F32, 1, {c}, {stride}, o->t.data};
    if (!is_constant(net, o))
        return !net->values[o->value].frame && (c == 1 || stride == 1);
    int v = vg_net_constant(net, net->values[o->value].name, VGK_F32, 1, &c);
    if (v < 0)
        return false;
    float *to = net->values[v].t.data;
    for (int64_t i = 0; i < c; i++)
        to[i] = ((const float *)o->t.data)[i * stride];
    *out = vg_net_operand(net, v);
    return true;
}

/* `later` takes over the place, and the output, of what `op` begins. */
static void replace(struct vg_net_op *op, struct vg_net_op *later, const struct vg_net_op *fused)
{
    struct vg_operand out = later->out;
    const char *node = op->node;
    *later = *fused;
    later->out = out;
    later->node = node;
    op->dead = true;
}

static bool whole_out(const struct vg_net *net, const struct vg_net_op *op)
{
    return same_dims(&op->out.t, &net->values[op->out.value].t);
}

/* --- convolution --- */

/* Pad -> Conv: the convolution makes the padding itself. */
static bool fuse_pad(struct vg_net *net, int i)
{
    struct vg_net_op *conv = &net->ops[i], *pad;
    if (conv->op.kind != VGK_OP_CONV || !(pad = sole_producer(net, &conv->in[0])) || pad->op.kind != VGK_OP_PAD)
        return false;
    const struct vgk_pad *p = &pad->op.p.pad;
    struct vgk_conv *c = &conv->op.p.conv;
    float zero = 0;
    if (p->mode == VGK_PAD_WRAP || p->begin[0] || p->end[0] || p->begin[1] || p->end[1])
        return false;
    if (p->mode == VGK_PAD_CONSTANT && pad->in[1].value >= 0 && (!is_scalar(net, &pad->in[1], &zero) || zero != 0))
        return false;
    bool padded = false;
    for (int d = 0; d < c->spatial; d++) {
        if (p->begin[2 + d] < 0 || p->end[2 + d] < 0)
            return false;
        padded |= c->pad_begin[d] || c->pad_end[d];
    }
    if (padded && (p->mode != VGK_PAD_CONSTANT || c->pad_mode != VGK_PAD_CONSTANT))
        return false;
    c->pad_mode = p->mode;
    for (int d = 0; d < c->spatial; d++) {
        c->pad_begin[d] += (int)p->begin[2 + d];
        c->pad_end[d] += (int)p->end[2 + d];
    }
    for (int a = 0; a < VG_AXES; a++) {
        struct vg_reach *r = &conv->in[0].reach[a];
        r->lo += pad->in[0].reach[a].lo;
        r->hi += pad->in[0].reach[a].hi;
        int d = net->values[conv->in[0].value].axis[a] - 2;
        if (p->mode == VGK_PAD_REFLECT && d >= 0) { /* what is reflected lies on the other side */
            int64_t lo = r->lo;
            r->lo = r->hi - 2 * c->pad_end[d] < lo ? r->hi - 2 * c->pad_end[d] : lo;
            r->hi = lo + 2 * c->pad_begin[d] > r->hi ? lo + 2 * c->pad_begin[d] : r->hi;
        }
    }
    conv->in[0].value = pad->in[0].value;
    conv->in[0].t = pad->in[0].t;
    conv->in[0].offset = pad->in[0].offset;
    pad->dead = true;
    return true;
}

static bool is_conv(const struct vg_net_op *op)
{
    return op->op.kind == VGK_OP_CONV || op->op.kind == VGK_OP_CONV_TRANSPOSE;
}

/* The conv that makes one of the op's two inputs, and which one it is; its epilogue must still be linear. */
static struct vg_net_op *linear_conv(struct vg_net *net, struct vg_net_op *op, int *side)
{
    for (*side = 0; *side < 2; ++*side) {
        struct vg_net_op *c = sole_producer(net, &op->in[*side]);
        if (c && is_conv(c) && whole_out(net, c) && same_dims(&c->out.t, &op->out.t) &&
            c->op.p.conv.act == VGK_ACT_NONE && c->in[5].value < 0)
            return c;
    }
    return NULL;
}

enum { SHIFT = 2, SCALE = 3, SLOPE = 4, RESIDUAL = 5 };

/* constant a[c] = a[c] (op) b[c] in a new constant */
static bool combine(struct vg_net *net, struct vg_operand *a, const struct vg_operand *b, bool multiply)
{
    int64_t c = a->t.dim[0];
    int v = vg_net_constant(net, net->values[a->value].name, VGK_F32, 1, &c);
    if (v < 0)
        return false;
    const float *x = a->t.data, *y = b->t.data;
    float *z = net->values[v].t.data;
    for (int64_t i = 0; i < c; i++)
        z[i] = multiply ? x[i * a->t.stride[0]] * y[i * b->t.stride[0]] : x[i * a->t.stride[0]] + y[i * b->t.stride[0]];
    *a = vg_net_operand(net, v);
    return true;
}

/* Conv -> Mul, Add by channel (a gain, a bias, a folded BatchNormalization). */
static bool fuse_gain(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i], *conv, fused;
    struct vg_operand c;
    int side;
    if (op->op.kind != VGK_OP_BINARY || !(conv = linear_conv(net, op, &side)) ||
        !per_channel(net, &op->in[!side], &c))
        return false;
    fused = *conv;
    struct vg_operand *shift = &fused.in[SHIFT], *scale = &fused.in[SCALE];
    bool constant = is_constant(net, &c);
    if (op->op.p.binary.fn == VGK_MUL) {
        if (shift->value >= 0 && !(constant && is_constant(net, shift) && combine(net, shift, &c, true)))
            return false;
        if (scale->value < 0)
            *scale = c;
        else if (!(constant && is_constant(net, scale) && combine(net, scale, &c, true)))
            return false;
    } else if (op->op.p.binary.fn == VGK_ADD) {
        if (shift->value < 0)
            *shift = c;
        else if (!(constant && is_constant(net, shift) && combine(net, shift, &c, false)))
            return false;
    } else {
        return false;
    }
    replace(conv, op, &fused);
    return true;
}

/* Conv -> Add of another tensor of the same size. */
static bool fuse_residual(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i], *conv, fused;
    if (op->op.kind != VGK_OP_BINARY || op->op.p.binary.fn != VGK_ADD)
        return false;
    for (int side = 1; side >= 0; side--) { /* skip connections are usually the first operand */
        const struct vg_operand *other = &op->in[!side];
        conv = sole_producer(net, &op->in[side]);
        if (!conv || !is_conv(conv) || !whole_out(net, conv) || conv->in[RESIDUAL].value >= 0 ||
            !same_dims(&conv->out.t, &op->out.t) || is_constant(net, other) || other->value == conv->out.value)
            continue;
        bool dense = other->t.dim[1] == 1 || other->t.stride[1] == 1;
        for (int d = 0; d < other->t.rank; d++)
            dense &= other->t.dim[d] == 1 || other->t.stride[d] > 0;
        if (!dense)
            continue;
        fused = *conv;
        fused.in[RESIDUAL] = *other;
        replace(conv, op, &fused);
        return true;
    }
    return false;
}

static bool to_act(const struct vgk_unary *u, enum vgk_act *act)
{
    switch (u->fn) {
    case VGK_RELU: *act = VGK_ACT_RELU; return true;
    case VGK_LEAKY_RELU: *act = VGK_ACT_LEAKY_RELU; return true;
    case VGK_CLIP: *act = VGK_ACT_CLIP; return true;
    case VGK_SIGMOID: *act = VGK_ACT_SIGMOID; return true;
    case VGK_TANH: *act = VGK_ACT_TANH; return true;
    case VGK_SILU: *act = VGK_ACT_SILU; return true;
    default: return false;
    }
}

/* Conv or norm -> activation. */
static bool fuse_act(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i], *p, fused;
    bool prelu = op->op.kind == VGK_OP_BINARY && op->op.p.binary.fn == VGK_PRELU;
    enum vgk_act act = VGK_ACT_PRELU;
    if (!prelu && (op->op.kind != VGK_OP_UNARY || !to_act(&op->op.p.unary, &act)))
        return false;
    if (!(p = sole_producer(net, &op->in[0])) || !whole_out(net, p))
        return false;
    fused = *p;
    if (is_conv(p)) {
        struct vgk_conv *c = &fused.op.p.conv;
        if (c->act != VGK_ACT_NONE || (prelu && !per_channel(net, &op->in[1], &fused.in[SLOPE])))
            return false;
        c->act = act;
        c->residual_before_act = c->residual_before_act || p->in[RESIDUAL].value >= 0;
        if (!prelu) {
            c->alpha = op->op.p.unary.alpha;
            c->beta = op->op.p.unary.beta;
        }
    } else if (p->op.kind == VGK_OP_NORM && !prelu && p->op.p.norm.act == VGK_ACT_NONE && p->in[3].value < 0) {
        fused.op.p.norm.act = act;
        fused.op.p.norm.alpha = op->op.p.unary.alpha;
        fused.op.p.norm.beta = op->op.p.unary.beta;
    } else {
        return false;
    }
    replace(p, op, &fused);
    return true;
}

/* --- norms --- */

/* Mean over all spatial dimensions of [N,C,...]. */
static bool is_spatial_mean(const struct vg_net_op *op)
{
    return op && op->op.kind == VGK_OP_REDUCE && op->op.p.reduce.fn == VGK_REDUCE_MEAN && op->in[0].t.rank >= 3 &&
           op->op.p.reduce.axes == ((1u << op->in[0].t.rank) - 1u) - 3u;
}

static struct vg_net_op *producer(struct vg_net *net, const struct vg_operand *o)
{
    int i = vg_net_producer(net, o->value);
    return i < 0 || net->ops[i].view ? NULL : &net->ops[i];
}

static bool is_binary(const struct vg_net_op *op, enum vgk_binary_fn fn)
{
    return op && op->op.kind == VGK_OP_BINARY && op->op.p.binary.fn == fn;
}

/* Instance normalisation as written by hand:
 *     d = x - mean(x);  y = d * (1 / sqrt(mean(d^2) + eps))   or   d / sqrt(mean(d^2) + eps) */
static bool fuse_instance_norm(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i], *sub, *root, *inv = NULL, *add, *mean, *square;
    float x = 0, eps;
    if (is_binary(op, VGK_DIV)) {
        root = sole_producer(net, &(struct vg_operand){.value = op->in[1].value, .t = net->values[op->in[1].value].t});
    } else if (is_binary(op, VGK_MUL)) {
        inv = sole_producer(net, &(struct vg_operand){.value = op->in[1].value, .t = net->values[op->in[1].value].t});
        if (!inv)
            return false;
        if (inv->op.kind == VGK_OP_UNARY && inv->op.p.unary.fn == VGK_RECIPROCAL)
            root = sole_producer(net, &inv->in[0]);
        else if (is_binary(inv, VGK_DIV) && is_scalar(net, &inv->in[0], &x) && x == 1.0f)
            root = sole_producer(net, &inv->in[1]);
        else
            return false;
    } else {
        return false;
    }
    sub = producer(net, &op->in[0]);
    if (!is_binary(sub, VGK_SUB) || !root || root->op.kind != VGK_OP_UNARY || root->op.p.unary.fn != VGK_SQRT ||
        !(add = sole_producer(net, &root->in[0])) || !is_binary(add, VGK_ADD) || !is_scalar(net, &add->in[1], &eps) ||
        !is_spatial_mean(mean = sole_producer(net, &add->in[0])) || !(square = sole_producer(net, &mean->in[0])))
        return false;
    bool squares = (is_binary(square, VGK_POW) && is_scalar(net, &square->in[1], &x) && x == 2.0f) ||
                   (is_binary(square, VGK_MUL) && same_operand(&square->in[0], &square->in[1]));
    int uses = is_binary(square, VGK_MUL) ? 3 : 2;
    struct vg_net_op *mu = producer(net, &sub->in[1]);
    if (!squares || square->in[0].value != sub->out.value || vg_net_uses(net, sub->out.value) != uses ||
        !is_spatial_mean(mu) || mu->in[0].value != sub->in[0].value || !same_operand(&mu->in[0], &sub->in[0]) ||
        !same_dims(&sub->in[0].t, &op->out.t) || vg_net_uses(net, mu->out.value) != 1)
        return false;
    struct vg_net_op fused = {.op = {.kind = VGK_OP_NORM, .p.norm = {.kind = VGK_NORM_INSTANCE, .epsilon = eps}},
                              .n_in = 4};
    fused.in[0] = sub->in[0];
    for (int k = 1; k < VG_MAX_OPERANDS; k++)
        fused.in[k].value = -1;
    mu->dead = square->dead = mean->dead = add->dead = root->dead = true;
    if (inv)
        inv->dead = true;
    replace(sub, op, &fused);
    return true;
}

/* Instance or group norm -> Mul, Add by channel. */
static bool fuse_norm_gain(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i], fused;
    if (!is_binary(op, VGK_MUL) && !is_binary(op, VGK_ADD))
        return false;
    for (int side = 0; side < 2; side++) {
        struct vg_net_op *p = sole_producer(net, &op->in[side]);
        struct vg_operand c;
        if (!p || p->op.kind != VGK_OP_NORM || p->op.p.norm.kind > VGK_NORM_GROUP ||
            p->op.p.norm.act != VGK_ACT_NONE || p->in[3].value >= 0 || !same_dims(&p->out.t, &op->out.t) ||
            p->in[2].value >= 0 || (is_binary(op, VGK_MUL) && p->in[1].value >= 0) ||
            !per_channel(net, &op->in[!side], &c))
            continue;
        fused = *p;
        fused.in[is_binary(op, VGK_MUL) ? 1 : 2] = c;
        replace(p, op, &fused);
        return true;
    }
    return false;
}

/* Norm (with its activation) -> Add of another tensor of the same layout. */
static bool fuse_norm_residual(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i], fused;
    if (!is_binary(op, VGK_ADD))
        return false;
    for (int side = 1; side >= 0; side--) {
        struct vg_net_op *p = sole_producer(net, &op->in[side]);
        const struct vg_operand *other = &op->in[!side];
        if (!p || p->op.kind != VGK_OP_NORM || p->in[3].value >= 0 || !same_dims(&p->out.t, &op->out.t) ||
            is_constant(net, other) || other->value == p->out.value)
            continue;
        bool same = true;
        for (int d = 0; d < other->t.rank; d++)
            same &= other->t.dim[d] == 1 || other->t.stride[d] == op->out.t.stride[d];
        if (!same)
            continue;
        fused = *p;
        fused.in[3] = *other;
        replace(p, op, &fused);
        return true;
    }
    return false;
}

/* --- activations --- */

/* x * sigmoid(x) */
static bool fuse_silu(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i];
    if (!is_binary(op, VGK_MUL))
        return false;
    for (int side = 0; side < 2; side++) {
        struct vg_net_op *s = sole_producer(net, &op->in[side]);
        if (!s || s->op.kind != VGK_OP_UNARY || s->op.p.unary.fn != VGK_SIGMOID ||
            !same_operand(&s->in[0], &op->in[!side]))
            continue;
        struct vg_net_op fused = *s;
        fused.op.p.unary.fn = VGK_SILU;
        replace(s, op, &fused);
        return true;
    }
    return false;
}

/* --- the passes --- */

void vg_net_sweep(struct vg_net *net)
{
    for (bool again = true; again;) {
        again = false;
        for (int i = net->n_ops - 1; i >= 0; i--)
            if (!net->ops[i].dead) {
                int v = net->ops[i].out.value;
                bool used = false;
                for (int k = 0; k < net->n_outputs; k++)
                    used |= net->values[net->outputs[k]].buffer == net->values[v].buffer;
                for (int j = 0; j < net->n_ops && !used; j++)
                    if (!net->ops[j].dead && j != i)
                        for (int k = 0; k < net->ops[j].n_in; k++) {
                            int u = net->ops[j].in[k].value;
                            used |= u >= 0 && net->values[u].buffer == net->values[v].buffer;
                        }
                if (!used) {
                    net->ops[i].dead = true;
                    again = true;
                }
            }
    }
    int n = 0;
    for (int i = 0; i < net->n_ops; i++)
        if (!net->ops[i].dead)
            net->ops[n++] = net->ops[i];
    net->n_ops = n;
}

enum vgk_status vg_net_fuse(struct vg_net *net)
{
    static bool (*const passes[])(struct vg_net *, int) = {
        fuse_silu, fuse_instance_norm, fuse_pad, fuse_gain, fuse_norm_gain, fuse_act, fuse_residual,
        fuse_norm_residual, vg_net_find_warp,
    };
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < net->n_ops; i++)
            for (size_t p = 0; p < sizeof passes / sizeof *passes && !net->ops[i].dead; p++)
                again |= passes[p](net, i);
    }
    vg_net_sweep(net);
    return VGK_OK;
}
