/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuse.h"
#include "match.h"

enum { MOST_TENSORS = 3 }; /* inputs that are not one value */

/* A chain that grows from its last link, the root, backwards. */
struct growing {
    struct vg_net *net;
    const struct vg_net_op *root;
    struct vg_net_op fused;
    int tensors, absorbed[VGK_CHAIN_MOST], n_absorbed;
};

/* What is written between an op and a later one that would read in its place. */
static bool is_kept(const struct vg_net *net, int value)
{
    return !net->values[value].constant && net->buffers[net->values[value].buffer].persistent;
}

/* All pictures of the root's size, or one value. */
static bool is_link(const struct growing *g, const struct vg_net_op *op)
{
    if (op->dead || op->view || op->out.t.type != VGK_F32 || !vgk_op_is_link(&op->op) || !same_dims(&op->out.t, &g->root->out.t))
        return false;
    for (int k = 0; k < op->n_in; k++)
        if (op->in[k].value < 0 || is_kept(g->net, op->in[k].value) || op->in[k].t.type != VGK_F32 || op->in[k].t.rank != op->out.t.rank ||
            (!vgk_tensor_is_one_value(&op->in[k].t) && memcmp(op->in[k].t.dim, op->out.t.dim, (size_t)op->out.t.rank * sizeof *op->out.t.dim)))
            return false;
    for (int k = 0; k < op->n_in; k++) /* one value a channel: that has a faster way of its own */
        for (int d = 0; d < op->out.t.rank && !vgk_tensor_is_one_value(&op->in[k].t); d++)
            if (op->in[k].t.dim[d] > 1 && !op->in[k].t.stride[d])
                return false;
    return true;
}

/* The op whose whole result the operand is and nobody else needs; -1 = none. */
static int absorbable(const struct growing *g, const struct vg_operand *o)
{
    int i = vg_net_producer(g->net, o->value);
    if (i < 0 || vg_net_uses(g->net, o->value) != 1 || !is_link(g, &g->net->ops[i]) || !same_operand(o, &g->net->ops[i].out))
        return -1;
    return i;
}

static int add_link(struct growing *g, const struct vg_net_op *op);

/* The number of an operand in the chain: an input's or a link's; -1 = there is no room. */
static int add_operand(struct growing *g, const struct vg_operand *o)
{
    int i = absorbable(g, o);
    if (i >= 0) {
        struct growing before = *g;
        int link = add_link(g, &g->net->ops[i]);
        if (link >= 0) {
            g->absorbed[g->n_absorbed++] = i;
            return link;
        }
        *g = before;
    }
    struct vg_net_op *f = &g->fused;
    for (int k = 0; k < f->n_in; k++)
        if (same_operand(&f->in[k], o))
            return k;
    bool tensor = !vgk_tensor_is_one_value(&o->t);
    if (f->n_in == VG_MAX_OPERANDS || g->tensors + tensor > MOST_TENSORS)
        return -1;
    g->tensors += tensor;
    f->in[f->n_in] = *o;
    return f->n_in++;
}

static int add_link(struct growing *g, const struct vg_net_op *op)
{
    struct vgk_link link = {.binary = op->op.kind == VGK_OP_BINARY};
    if (link.binary)
        link.two = op->op.p.binary;
    else
        link.unary = op->op.p.unary;
    if ((link.a = add_operand(g, &op->in[0])) < 0 || (link.binary && (link.b = add_operand(g, &op->in[1])) < 0))
        return -1;
    struct vgk_chain *c = &g->fused.op.p.chain;
    if (c->n == VGK_CHAIN_MOST)
        return -1;
    c->link[c->n] = link;
    return VGK_CHAIN_LINK + c->n++;
}

void vg_net_chain(struct vg_net *net)
{
    for (int i = net->n_ops - 1; i >= 0; i--) { /* from the end: the last op of a chain is its root */
        struct growing g = {.net = net, .root = &net->ops[i]};
        g.fused = (struct vg_net_op){.op.kind = VGK_OP_CHAIN, .node = net->ops[i].node, .out = net->ops[i].out};
        for (int k = 0; k < VG_MAX_OPERANDS; k++)
            g.fused.in[k].value = -1;
        if (!is_link(&g, g.root) || add_link(&g, g.root) < 0 || g.fused.op.p.chain.n < 2)
            continue;
        net->ops[i] = g.fused;
        for (int k = 0; k < g.n_absorbed; k++)
            net->ops[g.absorbed[k]].dead = true;
    }
    int n = 0; /* not vg_net_sweep: statistics that are kept for the next frame have no reader */
    for (int i = 0; i < net->n_ops; i++)
        if (!net->ops[i].dead)
            net->ops[n++] = net->ops[i];
    net->n_ops = n;
}
