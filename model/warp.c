/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "warp.h"

#include <math.h>
#include <string.h>

#define MAX_CHAIN 8

/* The grid is made of `n` steps of arithmetic with constants, the last one first; side: which operand is the
 * constant. */
struct chain {
    const struct vg_net_op *op[MAX_CHAIN];
    int side[MAX_CHAIN], n;
};

/* Constants may be repeated (stride 0), so position is per dimension. */
static double constant_at(const struct vgk_tensor *t, const int64_t *place)
{
    int64_t at = 0;
    for (int d = 0; d < t->rank; d++)
        at += place[d] * t->stride[d];
    return (double)((const float *)t->data)[at];
}

static bool is_constant(const struct vg_net *net, const struct vg_operand *o)
{
    return o->value >= 0 && net->values[o->value].constant && o->t.type == VGK_F32;
}

/* One more step back from `o`. */
static bool step_back(const struct vg_net *net, const struct vg_operand *o, struct chain *c)
{
    int i = o->value < 0 || net->values[o->value].constant ? -1 : vg_net_producer(net, o->value);
    const struct vg_net_op *op = i < 0 ? NULL : &net->ops[i];
    if (c->n == MAX_CHAIN || !op || op->view || op->op.kind != VGK_OP_BINARY || op->out.t.type != VGK_F32 ||
        op->out.offset != o->offset || op->out.t.rank != o->t.rank ||
        memcmp(op->out.t.dim, o->t.dim, (size_t)o->t.rank * sizeof *o->t.dim) ||
        memcmp(op->out.t.stride, o->t.stride, (size_t)o->t.rank * sizeof *o->t.stride))
        return false;
    enum vgk_binary_fn fn = op->op.p.binary.fn;
    int side = is_constant(net, &op->in[1]) ? 1 : 0;
    if (!is_constant(net, &op->in[side]) || is_constant(net, &op->in[!side]) ||
        !(fn == VGK_ADD || fn == VGK_SUB || fn == VGK_MUL || (fn == VGK_DIV && side == 1)))
        return false;
    c->op[c->n] = op;
    c->side[c->n++] = side;
    return true;
}

/* The grid's number at a place is a + b * flow. */
static void affine(const struct chain *c, const int64_t *place, double *a, double *b)
{
    *a = 0;
    *b = 1;
    for (int k = c->n - 1; k >= 0; k--) {
        double x = constant_at(&c->op[k]->in[c->side[k]].t, place);
        switch (c->op[k]->op.p.binary.fn) {
        case VGK_ADD:
            *a += x;
            break;
        case VGK_SUB:
            *a = c->side[k] ? *a - x : x - *a;
            *b = c->side[k] ? *b : -*b;
            break;
        case VGK_MUL:
            *a *= x;
            *b *= x;
            break;
        default:
            *a /= x;
            *b /= x;
        }
    }
}

/* In pixels of the picture, that is the place itself + 1 * flow, everywhere. */
static bool is_place(const struct chain *c, const struct vg_net_op *sample)
{
    const struct vgk_tensor *grid = &sample->in[1].t, *x = &sample->in[0].t;
    int spatial = grid->rank - 2;
    int64_t place[VGK_MAX_RANK] = {0}, n = vgk_tensor_count(grid);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i;
        for (int d = grid->rank - 1; d >= 0; rest /= grid->dim[d--])
            place[d] = rest % grid->dim[d];
        int d = spatial - 1 - (int)place[grid->rank - 1]; /* numbers are x, y, z; dimensions z, y, x */
        double size = (double)x->dim[2 + d], scale = sample->op.p.sample.align_corners ? (size - 1) / 2 : size / 2, a,
               b;
        affine(c, place, &a, &b);
        double at = (a + 1) * scale - (sample->op.p.sample.align_corners ? 0 : 0.5);
        if (!(fabs(at - (double)place[1 + d]) <= 1e-3 + 1e-6 * size) || !(fabs(b * scale - 1) <= 1e-4))
            return false;
    }
    return true;
}

bool vg_net_find_warp(struct vg_net *net, int at)
{
    struct vg_net_op *op = &net->ops[at];
    if (op->op.kind != VGK_OP_SAMPLE || op->view || op->op.p.sample.offsets || op->op.p.sample.mode == VGK_NEAREST)
        return false;
    struct chain c = {.n = 0};
    const struct vg_operand *grid = &op->in[1];
    for (int d = 0; d < grid->t.rank - 2; d++)
        if (op->in[0].t.dim[2 + d] != grid->t.dim[1 + d])
            return false;
    while (step_back(net, grid, &c)) {
        grid = &c.op[c.n - 1]->in[!c.side[c.n - 1]];
        if (grid->t.type != VGK_F32 || !is_place(&c, op))
            continue;
        op->in[1] = *grid;
        op->op.p.sample.offsets = true;
        return true;
    }
    return false;
}

const char *vg_net_rounded_places(const struct vg_net *net)
{
    for (int i = 0; i < net->n_ops; i++) {
        const struct vg_net_op *op = &net->ops[i];
        const struct vg_net_value *x = op->dead || op->in[0].value < 0 ? NULL : &net->values[op->in[0].value];
        if (x && op->op.kind == VGK_OP_SAMPLE && !op->op.p.sample.offsets && x->frame &&
            (x->axis[VG_X] >= 0 || x->axis[VG_Y] >= 0))
            return op->node;
    }
    return NULL;
}
