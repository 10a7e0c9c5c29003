/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuse.h"

#include <stdlib.h>

#include "match.h"
#include "warp.h"

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
        !vg_match_per_channel(net, &op->in[!side], &c))
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
    case VGK_ELU: *act = VGK_ACT_ELU; return true;
    case VGK_HARD_SIGMOID: *act = VGK_ACT_HARD_SIGMOID; return true;
    case VGK_HARD_SWISH: *act = VGK_ACT_HARD_SWISH; return true;
    case VGK_GELU_ERF: *act = VGK_ACT_GELU_ERF; return true;
    case VGK_GELU_TANH: *act = VGK_ACT_GELU_TANH; return true;
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
        if (c->act != VGK_ACT_NONE || (prelu && !vg_match_per_channel(net, &op->in[1], &fused.in[SLOPE])))
            return false;
        c->act = act;
        c->residual_before_act = c->residual_before_act || p->in[RESIDUAL].value >= 0;
        if (!prelu) {
            c->alpha = op->op.p.unary.alpha;
            c->beta = op->op.p.unary.beta;
        }
    } else if (p->op.kind == VGK_OP_NORM && p->op.p.norm.kind <= VGK_NORM_GROUP && !prelu && act <= VGK_ACT_SILU &&
               p->op.p.norm.act == VGK_ACT_NONE && p->in[3].value < 0) {
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
            !vg_match_per_channel(net, &op->in[!side], &c))
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

/* --- the passes --- */

void vg_net_sweep(struct vg_net *net)
{
    bool *used = calloc((size_t)net->n_buffers + 1, sizeof *used); /* buffers that are read further on */
    for (int k = 0; used && k < net->n_outputs; k++)
        if (net->values[net->outputs[k]].buffer >= 0)
            used[net->values[net->outputs[k]].buffer] = true;
    for (int i = net->n_ops - 1; used && i >= 0; i--) {
        struct vg_net_op *op = &net->ops[i];
        op->dead |= !used[net->values[op->out.value].buffer];
        for (int k = 0; k < op->n_in && !op->dead; k++)
            if (op->in[k].value >= 0 && net->values[op->in[k].value].buffer >= 0)
                used[net->values[op->in[k].value].buffer] = true;
    }
    free(used);
    int n = 0;
    for (int i = 0; i < net->n_ops; i++)
        if (!net->ops[i].dead)
            net->ops[n++] = net->ops[i];
    net->n_ops = n;
}

enum vgk_status vg_net_fuse(struct vg_net *net)
{
    static bool (*const passes[])(struct vg_net *, int) = {
        vg_match_norm, vg_match_group_norm, vg_match_product, vg_match_quanta, vg_match_attention, vg_match_matmul,
        vg_match_copy, fuse_pad, fuse_gain, fuse_norm_gain, vg_match_norm_gain, fuse_act, fuse_residual,
        fuse_norm_residual, vg_net_find_warp,
    };
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < net->n_ops; i++)
            for (size_t p = 0; p < sizeof passes / sizeof *passes && !net->ops[i].dead; p++)
                again |= passes[p](net, i);
        vg_net_sweep(net); /* what a pattern has left over must not count as a use for the next */
    }
    return VGK_OK;
}
