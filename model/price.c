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
            return n * (WINOGRAD_PRODUCTS * in * by * bx + WINOGRAD_TRANSFORM * (in / out * by * (bx < 2 ? bx : 2) + 1));
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

/* Bytes that depend on the frame. */
static double operands(const struct vg_net *net, const struct vg_net_op *op)
{
    size_t bytes, sum = vgk_tensor_bytes(&op->out.t, &bytes) ? bytes : 0;
    for (int k = 0; k < op->n_in; k++)
        if (op->in[k].value >= 0 && !net->values[op->in[k].value].constant && vgk_tensor_bytes(&op->in[k].t, &bytes))
            sum += bytes;
    return (double)sum;
}

/* Of what the call before left, the part that is gone from the cache: the more, the more there is of it. */
static double missed(double bytes, double cache) { return bytes * bytes / (bytes + cache); }

double vg_price(const struct vg_net *net, const struct vg_schedule *s, const struct vgk_need *need, size_t cache, size_t moved)
{
    /* Weights that are loaded are not counted: they are in every such way. */
    double sum = MOVE_WORK * (double)moved;
    for (int i = 0; i < net->n_ops; i++) {
        const struct vg_net_op *op = &net->ops[i];
        if (!op->dead && !op->view)
            sum += products(op, need[i].lattice[2] > 1) * s->runs[i];
    }
    for (int i = s->n_prologue; i < s->n_calls && cache; i++) {
        const struct vg_call *c = &s->calls[i];
        const struct vg_net_op *op = c->type == VG_CALL_OP ? &net->ops[c->what] : NULL;
        if (c->type == VG_CALL_SAVE || c->type == VG_CALL_RESTORE)
            sum += CARRY_WORK * missed((double)(c->end - c->begin) * (double)s->storage[c->what].row_bytes,
                                       (double)cache / OWN_CACHE);
        if (!op || op->dead || op->view)
            continue;
        int y = net->values[op->out.value].axis[VG_Y];
        double share = c->all || y < 0 ? 1 : (double)(c->end - c->begin) / (double)op->out.t.dim[y];
        sum += CALL_WORK + MISS_WORK * missed(operands(net, op) * share, (double)cache);
    }
    return sum;
}
