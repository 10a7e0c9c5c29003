/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attention as exporters write it: softmax(q k^T) v with the scale before, between or in the products, a mask that is
 * added or chosen by, and torch's replacement of rows that were masked as a whole. */
#include "match.h"

/* o = x times a number, x being seen as it is or turned: o becomes the view of x, and *scale takes the number. */
static void unscale(struct vg_net *net, struct vg_operand *o, double *scale)
{
    int map[VGK_MAX_RANK];
    double c;
    const struct vg_net_op *p = vg_match_behind(net, o, map);
    bool divide = is_binary(p, VGK_DIV);
    for (int side = 0; side < 2 && (is_binary(p, VGK_MUL) || (divide && !side)); side++) {
        const struct vg_operand *x = &p->in[side];
        if (!vg_match_scalar(net, &p->in[!side], &c) || !same_dims(&x->t, &p->out.t) || x->value < 0 ||
            is_constant(net, x))
            continue;
        for (int d = 0; d < o->t.rank; d++)
            o->t.stride[d] = map[d] < 0 ? 1 : x->t.stride[map[d]];
        o->value = x->value;
        o->offset = x->offset;
        *scale *= divide ? 1 / c : c;
        return;
    }
}

/* [..., rows, columns] of all operands as [batch, heads, rows, columns]. */
static bool four(struct vg_operand *o)
{
    struct vgk_tensor t = o->t;
    while (t.rank > 4) {
        bool single = t.dim[0] == 1 || t.dim[1] == 1;
        if (!single && t.stride[0] != t.stride[1] * t.dim[1])
            return false;
        int64_t stride = t.dim[1] == 1 ? t.stride[0] : t.stride[1];
        t.dim[1] *= t.dim[0];
        t.stride[1] = stride;
        t.rank--;
        memmove(t.dim, t.dim + 1, t.rank * sizeof *t.dim);
        memmove(t.stride, t.stride + 1, t.rank * sizeof *t.stride);
    }
    while (t.rank < 4) { /* [B, L, d] has one head */
        int at = t.rank - 2;
        memmove(t.dim + at + 1, t.dim + at, 2 * sizeof *t.dim);
        memmove(t.stride + at + 1, t.stride + at, 2 * sizeof *t.stride);
        t.dim[at] = 1;
        t.stride[at] = 0;
        t.rank++;
    }
    o->t = t;
    return true;
}

/* The product of queries and keys behind a scale; NULL when that is not what it is. */
static struct vg_net_op *scores(struct vg_net *net, const struct vg_operand *o, double *scale)
{
    struct vg_net_op *p = sole_producer(net, o);
    double c;
    *scale = 1;
    for (int side = 0; side < 2 && p && (is_binary(p, VGK_MUL) || (is_binary(p, VGK_DIV) && !side)); side++)
        if (vg_match_scalar(net, &p->in[!side], &c)) {
            *scale = is_binary(p, VGK_DIV) ? 1 / c : c;
            p = sole_producer(net, &p->in[side]);
            break;
        }
    if (!p || p->op.kind != VGK_OP_MATMUL || p->in[2].value >= 0 || !whole_out(net, p) || p->out.t.rank < 2)
        return NULL;
    *scale *= (double)p->op.p.matmul.alpha;
    return p;
}

/* The softmax that o shows, also with its NaNs replaced by 0. */
static struct vg_net_op *weights(struct vg_net *net, const struct vg_operand *o)
{
    struct vg_net_op *p = sole_producer(net, o);
    double zero;
    if (p && p->op.kind == VGK_OP_WHERE) {
        struct vg_net_op *test = sole_producer(net, &p->in[0]);
        if (!is_unary(test, VGK_IS_NAN) || !vg_match_scalar(net, &p->in[1], &zero) || zero != 0 ||
            !same_operand(&test->in[0], &p->in[2]) || vg_net_uses(net, p->in[2].value) != 2)
            return NULL;
        p = producer(net, &p->in[2]);
    }
    return p && p->op.kind == VGK_OP_SOFTMAX && !p->op.p.softmax.log && p->op.p.softmax.axis == p->out.t.rank - 1 ? p
                                                                                                                    : NULL;
}

/* A constant mask that lets query i see the keys up to i and nothing else.  Every query sees one, so that what is added
 * to the others need not be infinite to make their weights 0. */
static bool is_causal(const struct vg_net *net, const struct vg_operand *mask)
{
    const struct vgk_tensor *t = &mask->t;
    if (!is_constant(net, mask) || (t->type != VGK_F32 && t->type != VGK_BOOL) || (t->dim[0] > 1 && t->stride[0]) ||
        (t->dim[1] > 1 && t->stride[1]))
        return false;
    for (int64_t i = 0; i < t->dim[2]; i++)
        for (int64_t j = 0; j < t->dim[3]; j++) {
            int64_t at = i * t->stride[2] + j * t->stride[3];
            bool seen = t->type == VGK_BOOL ? ((const uint8_t *)t->data)[at] : ((const float *)t->data)[at] == 0;
            if (seen != (j <= i) || (!seen && t->type == VGK_F32 && ((const float *)t->data)[at] > -1e30f))
                return false;
        }
    return true;
}

bool vg_match_attention(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i], *softmax, *product = NULL;
    if (op->op.kind != VGK_OP_MATMUL || op->in[2].value >= 0 || op->op.p.matmul.alpha != 1 || op->view ||
        !(softmax = weights(net, &op->in[0])))
        return false;
    struct vg_operand in[4], out = op->out;
    double scale = 1, c;
    in[3].value = -1;
    struct vg_net_op *masked = sole_producer(net, &softmax->in[0]);
    if (masked && masked->op.kind == VGK_OP_WHERE) {
        if (!vg_match_scalar(net, &masked->in[2], &c) || c != -INFINITY)
            return false;
        product = scores(net, &masked->in[1], &scale);
        in[3] = masked->in[0];
    } else if (is_binary(masked, VGK_ADD)) {
        for (int side = 0; side < 2 && !product; side++)
            if ((product = scores(net, &masked->in[side], &scale)))
                in[3] = masked->in[!side];
    } else {
        product = scores(net, &softmax->in[0], &scale);
    }
    if (!product || !vgk_type_is_float(op->out.t.type) || op->out.t.rank < 2)
        return false;
    in[0] = product->in[0];
    in[1] = product->in[1];
    in[2] = op->in[1];
    for (int k = 0; k < 2; k++)
        unscale(net, &in[k], &scale);
    int rank = in[1].t.rank; /* k^T as k */
    int64_t dim = in[1].t.dim[rank - 2], stride = in[1].t.stride[rank - 2];
    in[1].t.dim[rank - 2] = in[1].t.dim[rank - 1];
    in[1].t.stride[rank - 2] = in[1].t.stride[rank - 1];
    in[1].t.dim[rank - 1] = dim;
    in[1].t.stride[rank - 1] = stride;
    for (int k = 0; k < 4; k++)
        if (in[k].value >= 0 && !four(&in[k]))
            return false;
    if (!four(&out) || in[0].t.type != in[1].t.type || in[0].t.type != in[2].t.type)
        return false;
    bool causal = in[3].value >= 0 && is_causal(net, &in[3]);
    if (causal)
        in[3].value = -1;
    op->op = (struct vgk_op){.kind = VGK_OP_ATTENTION, .p.attention = {.scale = (float)scale, .causal = causal}};
    op->n_in = 4;
    memcpy(op->in, in, sizeof in);
    op->out = out;
    return true;
}
