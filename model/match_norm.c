/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "match.h"

/* --- written out as arithmetic ---
 *     d = x - mean(x);  y = d / sqrt(mean(d^2) + c)    an instance, layer or group norm, by what the means are over
 *     y = x / sqrt(mean(x^2) + c)                      an RMS norm
 *     y = x / max(sqrt(sum(x^2)), c)                   the same but for a factor (torch's normalize)
 * each also with a Reciprocal, or 1 /, and a product. */

/* The only maker and only reader of a value that is seen repeated. */
static struct vg_net_op *statistic(struct vg_net *net, const struct vg_operand *o)
{
    int v = o->value, i = vg_net_producer(net, v);
    if (i >= 0 && net->ops[i].view && net->ops[i].in[0].offset == o->offset) { /* Expand */
        v = net->ops[i].in[0].value;
        i = vg_net_producer(net, v);
    }
    if (i < 0 || net->ops[i].view || vg_match_readers(net, v) != 1 || net->ops[i].out.t.rank != o->t.rank)
        return NULL;
    const struct vg_operand *made = &net->ops[i].out;
    for (int d = 0; d < o->t.rank; d++)
        if (made->offset != o->offset || (made->t.dim[d] == 1 ? o->t.dim[d] > 1 && o->t.stride[d] :
                                          made->t.dim[d] != o->t.dim[d] || made->t.stride[d] != o->t.stride[d]))
            return NULL;
    return &net->ops[i];
}

/* x^2 of whole x. */
static const struct vg_operand *squared(struct vg_net *net, const struct vg_net_op *op)
{
    double two;
    if (is_binary(op, VGK_POW) && vg_match_scalar(net, &op->in[1], &two) && two == 2)
        return &op->in[0];
    return is_binary(op, VGK_MUL) && same_operand(&op->in[0], &op->in[1]) ? &op->in[0] : NULL;
}

static const struct vg_net_op *mean(struct vg_net *net, const struct vg_operand *o, unsigned axes)
{
    const struct vg_net_op *op = producer(net, o);
    return op && op->op.kind == VGK_OP_REDUCE && op->op.p.reduce.fn == VGK_REDUCE_MEAN &&
           op->op.p.reduce.axes == axes && vg_net_uses(net, o->value) == 1 ? op : NULL;
}

/* The divisor sqrt(mean(x^2) + c): what the square is of, the dimensions of the mean, and c. */
static const struct vg_operand *deviation(struct vg_net *net, struct vg_net_op *root, unsigned *axes, float *epsilon)
{
    struct vg_net_op *add = is_unary(root, VGK_SQRT) ? sole_producer(net, &root->in[0]) : NULL;
    for (int side = 0; side < 2 && is_binary(add, VGK_ADD); side++) {
        if (!is_scalar(net, &add->in[!side], epsilon))
            continue;
        struct vg_net_op *m = sole_producer(net, &add->in[side]);
        if (!m || m->op.kind != VGK_OP_REDUCE || m->op.p.reduce.fn != VGK_REDUCE_MEAN)
            return NULL;
        *axes = m->op.p.reduce.axes;
        struct vg_net_op *square = sole_producer(net, &m->in[0]);
        return square ? squared(net, square) : NULL;
    }
    return NULL;
}

/* The dimensions from `axis` on. */
static bool is_trailing(unsigned axes, int rank, int *axis)
{
    *axis = 0;
    while (*axis < rank && !(axes >> *axis & 1))
        ++*axis;
    return *axis < rank && axes == (1u << rank) - (1u << *axis);
}

static void become(struct vg_net_op *op, const struct vg_operand *x, const struct vgk_norm *p)
{
    struct vg_operand in = *x;
    op->op = (struct vgk_op){.kind = VGK_OP_NORM, .p.norm = *p};
    op->n_in = 4;
    for (int k = 0; k < VG_MAX_OPERANDS; k++)
        op->in[k].value = -1;
    op->in[0] = in;
}

/* A norm over one dimension, which need not be the last: the op sees it as that. */
static void become_along(struct vg_net_op *op, const struct vg_operand *x, struct vgk_norm p, int axis)
{
    int rank = x->t.rank, order[VGK_MAX_RANK];
    for (int d = 0; d < rank; d++)
        order[d] = d < axis ? d : d < rank - 1 ? d + 1 : axis;
    p.axis = rank - 1;
    become(op, x, &p);
    op->in[0].t = vgk_tensor_permute(&op->in[0].t, order);
    op->out.t = vgk_tensor_permute(&op->out.t, order);
}

/* y = d / the deviation of d: of which kind. */
static bool norm_of(struct vg_net *net, struct vg_net_op *op, const struct vg_operand *d, unsigned axes, float epsilon)
{
    struct vgk_norm p = {.epsilon = epsilon};
    const struct vg_net_op *sub = producer(net, d), *mu = NULL;
    int rank = d->t.rank, axis = 0;
    while (axis < rank - 1 && axes != 1u << axis)
        axis++;
    bool one = axes == 1u << axis;
    if (is_binary(sub, VGK_SUB) && same_dims(&sub->in[0].t, &op->out.t))
        mu = mean(net, &sub->in[1], axes);
    if (mu && same_operand(&mu->in[0], &sub->in[0])) {
        p.kind = VGK_NORM_LAYER;
        p.groups = 1;
        if (is_trailing(axes, rank, &p.axis)) {
            p.kind = p.axis == 2 ? VGK_NORM_INSTANCE : p.axis == 1 && rank > 2 ? VGK_NORM_GROUP : VGK_NORM_LAYER;
            become(op, &sub->in[0], &p);
        } else if (one) {
            become_along(op, &sub->in[0], p, axis);
        }
        op->global_why = op->global_why ? op->global_why : mu->global_why;
        return op->op.kind == VGK_OP_NORM;
    }
    if (!one) /* over a whole image the steps are as good */
        return false;
    p.kind = VGK_NORM_RMS;
    become_along(op, d, p, axis);
    return true;
}

/* x / max(|x|, c) along one dimension: the RMS norm less a factor, which is put back: a norm with a constant gain. */
static bool unit_length(struct vg_net *net, struct vg_net_op *op, struct vg_net_op *clip, const struct vg_operand *x)
{
    bool floor = is_unary(clip, VGK_CLIP) && isinf(clip->op.p.unary.beta) && clip->op.p.unary.alpha > 0 &&
                 clip->op.p.unary.alpha <= 1e-6f;
    struct vg_net_op *length = floor ? sole_producer(net, &clip->in[0]) : NULL;
    if (!length || length->op.kind != VGK_OP_REDUCE || length->op.p.reduce.fn != VGK_REDUCE_L2 ||
        !same_operand(&length->in[0], x) || x->t.type != VGK_F32)
        return false;
    int axis = 0;
    while (axis < x->t.rank && length->op.p.reduce.axes != 1u << axis)
        axis++;
    if (axis == x->t.rank)
        return false;
    int64_t n = x->t.dim[axis];
    int gain = vg_net_constant(net, op->node, VGK_F32, 1, &n);
    if (gain < 0)
        return false;
    for (int64_t i = 0; i < n; i++)
        ((float *)net->values[gain].t.data)[i] = (float)(1 / sqrt((double)n));
    double least = (double)clip->op.p.unary.alpha;
    become_along(op, x, (struct vgk_norm){.kind = VGK_NORM_RMS, .epsilon = fmaxf((float)(least * least / (double)n), 1e-37f)},
                 axis);
    op->in[1] = vg_net_operand(net, gain);
    return true;
}

bool vg_match_norm(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i];
    for (int side = 0; side < 2; side++) {
        const struct vg_operand *x = &op->in[side], *of = &op->in[!side];
        struct vg_net_op *divisor = NULL;
        float one, epsilon;
        unsigned axes;
        if (is_binary(op, VGK_DIV) && side == 0) {
            divisor = statistic(net, of);
        } else if (is_binary(op, VGK_MUL)) {
            struct vg_net_op *inverse = statistic(net, of);
            if (is_unary(inverse, VGK_RECIPROCAL))
                divisor = sole_producer(net, &inverse->in[0]);
            else if (is_binary(inverse, VGK_DIV) && is_scalar(net, &inverse->in[0], &one) && one == 1)
                divisor = sole_producer(net, &inverse->in[1]);
        }
        if (!divisor || !same_dims(&x->t, &op->out.t))
            continue;
        const struct vg_operand *d = deviation(net, divisor, &axes, &epsilon);
        if (d && same_operand(d, x))
            return norm_of(net, op, d, axes, epsilon);
        if (unit_length(net, op, divisor, x))
            return true;
    }
    return false;
}

/* --- group norms, as exported before opset 21 --- */

/* A gain or bias that is the same number for all groups is left out when it does nothing. */
static bool neutral(const struct vg_net *net, const struct vg_operand *o, double x)
{
    double d;
    return o->value < 0 || (vg_match_scalar(net, o, &d) && d == x);
}

/* All who see `old` see it whole, as an op's operand: *new takes its place. */
static bool reseat(struct vg_net *net, int old, const struct vg_net_value *like, int *value)
{
    struct vg_operand whole = vg_net_operand(net, old);
    for (int i = 0; i < net->n_outputs; i++)
        if (net->values[net->outputs[i]].buffer == net->values[old].buffer)
            return false;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < net->n_ops; i++)
            for (int k = 0; k < net->ops[i].n_in && !net->ops[i].dead; k++) {
                struct vg_operand *o = &net->ops[i].in[k];
                if (o->value != old)
                    continue;
                if (pass) {
                    o->value = *value;
                    o->t = net->values[*value].t;
                    o->offset = 0;
                } else if (net->ops[i].view || !same_operand(o, &whole)) {
                    return false;
                }
            }
        if (pass == 0) {
            const struct vg_net_value v = net->values[old], l = *like;
            if ((*value = vg_net_value_new(net, v.name, v.t.type, v.t.rank, v.t.dim, &l)) < 0)
                return false;
        }
    }
    return true;
}

bool vg_match_group_norm(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i];
    if (op->view || op->op.kind != VGK_OP_NORM || op->op.p.norm.kind != VGK_NORM_INSTANCE || op->in[0].t.rank != 3 ||
        op->op.p.norm.act != VGK_ACT_NONE || op->in[3].value >= 0 || !neutral(net, &op->in[1], 1) ||
        !neutral(net, &op->in[2], 0))
        return false;
    int before = vg_net_producer(net, op->in[0].value), behind = -1, readers = 0;
    for (int k = 0; k < net->n_ops; k++)
        for (int j = 0; j < net->ops[k].n_in && !net->ops[k].dead; j++)
            if (net->ops[k].in[j].value == op->out.value) {
                behind = k;
                readers++;
            }
    if (before < 0 || !net->ops[before].view || readers != 1 || !net->ops[behind].view)
        return false;
    struct vg_operand x = net->ops[before].in[0];
    const struct vg_net_op *copy = producer(net, &x); /* that brought it into row-major order for the Reshape */
    if (copy && copy->op.kind == VGK_OP_COPY && copy->in[0].t.type == copy->out.t.type && whole_out(net, copy) &&
        same_dims(&copy->in[0].t, &copy->out.t))
        x = copy->in[0];
    const struct vgk_tensor *t = &x.t, *y = &net->values[net->ops[behind].out.value].t;
    int64_t groups = op->in[0].t.dim[1];
    bool fits = t->rank >= 3 && same_dims(t, y) && t->dim[0] == op->in[0].t.dim[0] && groups > 0 &&
                t->dim[1] % groups == 0 && same_dims(&net->values[x.value].t, t);
    int value = -1;
    if (!fits || !reseat(net, net->ops[behind].out.value, &net->values[x.value], &value))
        return false;
    struct vgk_norm p = op->op.p.norm;
    p.kind = VGK_NORM_GROUP;
    p.groups = (int)groups;
    become(op, &x, &p);
    op->out = vg_net_operand(net, value);
    net->ops[behind].dead = true;
    return true;
}

/* --- gains along the dimensions of a norm --- */

/* An operand of op that only varies in the norm's dimensions, seen as the norm sees them. */
static bool along(const struct vg_operand *o, const struct vg_net_op *norm, const struct vg_net_op *op, int axis,
                  struct vg_operand *c)
{
    unsigned taken = 0;
    struct vg_operand seen = *o;
    if (o->value < 0 || norm->out.t.rank != op->out.t.rank)
        return false;
    for (int d = 0; d < norm->out.t.rank; d++) { /* which dimension of op's is the norm's d */
        int from = -1;
        for (int e = 0; e < o->t.rank; e++)
            if (!(taken >> e & 1) && from < 0 && norm->out.t.dim[d] == op->out.t.dim[e] &&
                (norm->out.t.dim[d] == 1 || norm->out.t.stride[d] == op->in[0].t.stride[e]))
                from = e;
        if (from < 0)
            return false;
        taken |= 1u << from;
        seen.t.dim[d] = o->t.dim[from];
        seen.t.stride[d] = o->t.stride[from];
    }
    for (int d = 0; d < axis; d++)
        if (seen.t.dim[d] > 1 && seen.t.stride[d])
            return false;
    *c = seen;
    c->t.rank -= axis;
    memmove(c->t.dim, c->t.dim + axis, c->t.rank * sizeof *c->t.dim);
    memmove(c->t.stride, c->t.stride + axis, c->t.rank * sizeof *c->t.stride);
    return true;
}

/* Two constant gains along one dimension as one. */
static bool multiply_gains(struct vg_net *net, struct vg_operand *a, const struct vg_operand *b)
{
    if (!is_constant(net, a) || !is_constant(net, b) || a->t.rank != 1 || b->t.rank != 1 || a->t.type != VGK_F32)
        return false;
    int v = vg_net_constant(net, net->values[a->value].name, VGK_F32, 1, a->t.dim);
    if (v < 0)
        return false;
    for (int64_t i = 0; i < a->t.dim[0]; i++)
        ((float *)net->values[v].t.data)[i] =
            ((const float *)a->t.data)[i * a->t.stride[0]] * ((const float *)b->t.data)[i * b->t.stride[0]];
    *a = vg_net_operand(net, v);
    return true;
}

bool vg_match_norm_gain(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i], fused;
    bool multiply = is_binary(op, VGK_MUL);
    int map[VGK_MAX_RANK];
    for (int side = 0; side < 2 && (multiply || is_binary(op, VGK_ADD)); side++) {
        struct vg_net_op *p = vg_match_behind(net, &op->in[side], map), seen = *op;
        struct vg_operand c;
        if (!p || p->op.kind != VGK_OP_NORM || p->op.p.norm.act != VGK_ACT_NONE || p->in[3].value >= 0 ||
            p->in[2].value >= 0 || !same_dims(&op->in[side].t, &op->out.t))
            continue;
        fused = *p;
        struct vgk_norm *n = &fused.op.p.norm;
        if (n->kind == VGK_NORM_INSTANCE && p->in[1].value < 0) { /* as long as it has no gains it is both */
            n->kind = VGK_NORM_LAYER;
            n->axis = 2;
        }
        const struct vg_operand *gain = &op->in[!side];
        seen.in[0] = op->in[side];
        if (n->kind < VGK_NORM_LAYER || gain->t.type != p->in[0].t.type || !along(gain, p, &seen, n->axis, &c) ||
            net->values[gain->value].frame)
            continue;
        if (!multiply)
            fused.in[2] = c;
        else if (p->in[1].value < 0)
            fused.in[1] = c;
        else if (!multiply_gains(net, &fused.in[1], &c))
            continue;
        struct vg_operand out = op->out; /* in the norm's order */
        for (int d = 0; d < out.t.rank; d++)
            if (map[d] >= 0) {
                out.t.dim[map[d]] = op->out.t.dim[d];
                out.t.stride[map[d]] = op->out.t.stride[d];
            }
        for (int d = 0; d < out.t.rank; d++)
            if (p->out.t.dim[d] == 1) {
                out.t.dim[d] = 1;
                out.t.stride[d] = 1;
            }
        replace(p, op, &fused);
        op->out = out;
        return true;
    }
    return false;
}
