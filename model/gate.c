/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SPAN's attention without parameters: as a chain it is another pass over three pictures. */
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

void vg_net_gate(struct vg_net *net)
{
    for (int i = 0; i < net->n_ops; i++) {
        struct vg_net_op *op = &net->ops[i];
        if (!op->dead && is_binary(op, VGK_MUL) && !gate(net, op, 0))
            gate(net, op, 1);
    }
}
