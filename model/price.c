/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "price.h"

/* What Winograd F(6x6,3x3) does for an output pixel, measured: its own products, and the transforms of each channel that
 * goes in or out. */
#define WINOGRAD_PRODUCTS (64.0 / 36)
#define WINOGRAD_TRANSFORM 24.0
/* What any other op does for an element of its output. */
#define ELEMENT_WORK 4.0
/* A byte to host memory or back: 40 G products/s against 2 GB/s. */
#define MOVE_WORK 20.0
/* A byte of an op's operands that is not in the cache. */
#define MISS_WORK 4.0
/* A byte that is carried from band to band, by one thread, and not in its own cache, which is so much smaller. */
#define CARRY_WORK 12.0
#define OWN_CACHE 64
/* A byte of packed weights that a call does not find in the threads' own caches, because the others' weights were there. */
#define WEIGHT_WORK 12.0
/* A call: threads begin and wait for each other. */
#define CALL_WORK 1e6

/* Of the op over all of its output; blocks: in Winograd's way. */
static double products(const struct vg_net_op *op, bool blocks)
{
    double n = (double)vgk_tensor_count(&op->out.t);
    const struct vgk_tensor *w = &op->in[1].t;
    const struct vgk_conv *c = &op->op.p.conv;
    switch (op->op.kind) {
    case VGK_OP_CONV:
        if (blocks) {
            double in = (double)w->dim[1], out = (double)w->dim[0];
            int by = (c->kernel[0] + 2) / 3, bx = (c->kernel[1] + 2) / 3;
            return n * (WINOGRAD_PRODUCTS * in * by * bx + WINOGRAD_TRANSFORM * (in * c->groups / out * by * (bx < 2 ? bx : 2) + 1));
        }
        for (int d = 1; d < w->rank; d++)
            n *= (double)w->dim[d];
        return n;
    case VGK_OP_CONV_TRANSPOSE:
        for (int d = 0; d < w->rank; d++)
            n *= d == 1 ? 1 : d == 0 ? (double)w->dim[0] / c->groups : (double)w->dim[d] / c->stride[d - 2];
        return n;
    case VGK_OP_MATMUL: return n * (double)op->in[0].t.dim[op->in[0].t.rank - 1];
    default: return n * ELEMENT_WORK;
    }
}

/* Of so many bytes the part that is gone from the cache, after a set of others: the more, the larger that is. */
static double missed(double bytes, double set, double cache) { return bytes * set / (set + cache); }

/* Bytes of an operand that depends on the frame; 0: it does not. */
static double bytes_of(const struct vg_net *net, const struct vg_operand *o)
{
    size_t bytes;
    return o->value >= 0 && !net->values[o->value].constant && vgk_tensor_bytes(&o->t, &bytes) ? (double)bytes : 0;
}

/* Of the operands of a call over a part of the rows.  What goes from one level to another has been, or will be, written
 * whole before it is read; what is written in place has just been read. */
static double operands_missed(const struct vg_net *net, const struct vg_schedule *s, const int *in_place,
                              const struct vg_net_op *op, double part, double cache)
{
    int out = net->values[op->out.value].buffer, first = out >= 0 && in_place[out] >= 0 ? 0 : -1;
    double all = 0, sum = 0;
    for (int k = first; k < op->n_in; k++)
        all += bytes_of(net, k < 0 ? &op->out : &op->in[k]);
    for (int k = first; k < op->n_in; k++) {
        const struct vg_operand *o = k < 0 ? &op->out : &op->in[k];
        double bytes = bytes_of(net, o);
        int b = bytes > 0 ? net->values[o->value].buffer : -1;
        bool whole = b >= 0 && !s->storage[b].banded;
        sum += missed(bytes * part, all * (whole ? 1 : part), cache);
    }
    return sum;
}

double vg_price(const struct vg_net *net, const struct vg_schedule *s, const struct vgk_need *need, const int *in_place,
                size_t cache, size_t moved)
{
    /* Weights that are loaded are not counted: they are in every such way. */
    double sum = MOVE_WORK * (double)moved, weights = 0, own = (double)cache / OWN_CACHE;
    for (int i = 0; i < net->n_ops; i++) {
        const struct vg_net_op *op = &net->ops[i];
        if (op->dead || op->view)
            continue;
        sum += products(op, need[i].lattice[2] > 1) * s->runs[i];
        weights += (double)need[i].packed;
    }
    for (int i = s->n_prologue; i < s->n_calls && cache; i++) {
        const struct vg_call *c = &s->calls[i];
        const struct vg_net_op *op = c->type == VG_CALL_OP ? &net->ops[c->what] : NULL;
        if (c->type == VG_CALL_SAVE || c->type == VG_CALL_RESTORE) {
            double bytes = (double)(c->end - c->begin) * (double)s->storage[c->what].row_bytes;
            sum += CARRY_WORK * missed(bytes, bytes, own);
        }
        if (!op || op->dead || op->view)
            continue;
        int y = net->values[op->out.value].axis[VG_Y];
        double part = c->all || y < 0 ? 1 : (double)(c->end - c->begin) / (double)op->out.t.dim[y];
        sum += CALL_WORK + MISS_WORK * operands_missed(net, s, in_place, op, part, (double)cache);
        sum += WEIGHT_WORK * missed((double)need[c->what].packed, weights, own);
    }
    return sum;
}
