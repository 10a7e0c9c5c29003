/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What convolutions do on the side: SPAN's attention without parameters, which as a chain is another pass over three
 * pictures, and the rounding of quantised nets. */
#include "fuse.h"
#include "match.h"

enum { RESIDUAL = 5 };

/* op is (c + other) * (sigmoid(c) + alpha), its factors on these sides. */
static bool gate(struct vg_net *net, struct vg_net_op *op, int side)
{
    float alpha;
    struct vg_net_op *sum = sole_producer(net, &op->in[side]), *factor = sole_producer(net, &op->in[!side]);
    if (!is_binary(sum, VGK_ADD) || (!is_binary(factor, VGK_ADD) && !is_binary(factor, VGK_SUB)) ||
        !is_scalar(net, &factor->in[1], &alpha))
        return false;
    struct vg_net_op *sigmoid = sole_producer(net, &factor->in[0]);
    if (!is_unary(sigmoid, VGK_SIGMOID))
        return false;
    const struct vg_operand *c = &sigmoid->in[0];
    int k = same_operand(&sum->in[0], c) ? 0 : 1;
    const struct vg_operand *other = &sum->in[!k];
    struct vg_net_op *conv = producer(net, c);
    if (!conv || conv->op.kind != VGK_OP_CONV || conv->op.p.conv.act != VGK_ACT_NONE || conv->in[RESIDUAL].value >= 0 ||
        !same_operand(&sum->in[k], c) || !same_operand(&conv->out, c) || vg_net_uses(net, c->value) != 2 ||
        is_constant(net, other) || other->value == c->value || other->t.type != VGK_F32 ||
        !same_dims(&other->t, &op->out.t) || !same_dims(&conv->out.t, &op->out.t))
        return false;
    for (int d = 0; d < other->t.rank; d++)
        if (other->t.dim[d] > 1 && other->t.stride[d] != op->out.t.stride[d])
            return false;
    struct vg_net_op fused = *conv;
    fused.op.p.conv.act = VGK_ACT_GATE;
    fused.op.p.conv.alpha = is_binary(factor, VGK_SUB) ? -alpha : alpha;
    fused.in[RESIDUAL] = *other;
    replace(conv, op, &fused);
    sum->dead = factor->dead = sigmoid->dead = true;
    return true;
}

/* A convolution whose result is rounded; that quanta begin at 0 says that what is below is cut off, too. */
static void quanta(struct vg_net *net, struct vg_net_op *op)
{
    struct vg_net_op *conv = sole_producer(net, &op->in[0]);
    if (!conv || conv->op.kind != VGK_OP_CONV || !whole_out(net, conv))
        return;
    struct vg_net_op fused = *conv;
    struct vgk_conv *c = &fused.op.p.conv;
    bool added = conv->in[RESIDUAL].value >= 0, cut = c->act == VGK_ACT_RELU && op->op.p.unary.beta >= 0;
    if (c->act == VGK_ACT_NONE)
        c->residual_before_act = added;
    else if (!cut || (added && !c->residual_before_act))
        return;
    c->act = VGK_ACT_QUANTA;
    c->alpha = op->op.p.unary.alpha;
    c->beta = op->op.p.unary.beta;
    replace(conv, op, &fused);
}

void vg_net_gate(struct vg_net *net)
{
    for (int i = 0; i < net->n_ops; i++) {
        struct vg_net_op *op = &net->ops[i];
        if (!op->dead && is_unary(op, VGK_QUANTA))
            quanta(net, op);
        if (!op->dead && is_binary(op, VGK_MUL) && !gate(net, op, 0))
            gate(net, op, 1);
    }
}
