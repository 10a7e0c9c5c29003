/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "norms.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_PIXELS 2048 /* about: statistics are summed over whole rows of at least so many pixels */

/* An image of the frame whose channels and pixels are contiguous. */
static bool is_image(const struct vg_net *net, const struct vg_operand *o)
{
    const struct vg_net_value *v = &net->values[o->value];
    return o->t.rank == 4 && o->t.type == VGK_F32 && v->frame && v->axis[VG_Y] == 2 && v->axis[VG_X] == 3 &&
           vgk_tensor_is_dense(&o->t, VGK_CHANNELS_LAST);
}

static struct vg_net_op *append(struct vg_net *net, enum vgk_kind kind, const struct vg_net_op *from, int n_in,
                                const struct vg_operand *in, int out)
{
    struct vg_net_op *op = vg_net_op_add(net, kind, from->node);
    if (!op)
        return NULL;
    op->n_in = n_in;
    memcpy(op->in, in, n_in * sizeof *in);
    op->out = vg_net_operand(net, out);
    return op;
}

static bool split(struct vg_net *net, const struct vg_net_op *norm, enum vg_norm_source source)
{
    const struct vgk_norm *p = &norm->op.p.norm;
    const struct vg_net_value x = net->values[norm->in[0].value];
    int64_t c = x.t.dim[1], h = x.t.dim[2], w = x.t.dim[3], rows = (BLOCK_PIXELS + w - 1) / w;
    int64_t blocks[4] = {x.t.dim[0], 2 * c, (h + rows - 1) / rows, 1}, all[2] = {x.t.dim[0], 3 * c};
    struct vg_net_value like = {.frame = true, .axis = {-1, 2}, .num = {1, x.num[VG_Y]}, .den = {1, x.den[VG_Y]},
                                .t.rank = 4};
    int moments = vg_net_value_new(net, x.name, VGK_F64, 4, blocks, &like);
    struct vg_net_value flat = {.frame = true, .axis = {-1, -1}, .num = {1, 1}, .den = {1, 1}, .t.rank = 2};
    int merged = vg_net_value_new(net, x.name, VGK_F32, 2, all, &flat);
    int kept = source == VG_NORM_OWN ? -1 : vg_net_value_new(net, x.name, VGK_F32, 2, all, &flat);
    if (moments < 0 || merged < 0 || (source != VG_NORM_OWN && kept < 0))
        return false;
    if (kept >= 0) {
        net->buffers[net->values[merged].buffer].persistent = true;
        net->buffers[net->values[kept].buffer].persistent = true;
        net->memories[net->n_memories++] = (struct vg_net_memory){merged, kept};
    }
    struct vg_operand in = norm->in[0];
    in.reach[VG_Y] = (struct vg_reach){rows, 1, 0, rows - 1};
    struct vg_net_op *op = append(net, VGK_OP_MOMENTS, norm, 1, &in, moments);
    if (!op)
        return false;
    op->op.p.moments.rows = (int)rows;
    struct vg_operand three[3] = {vg_net_operand(net, moments), norm->in[1], norm->in[2]};
    if (!(op = append(net, VGK_OP_MERGE, norm, 3, three, merged)))
        return false;
    op->op.p.merge = (struct vgk_merge){(int)rows, h, w, p->kind == VGK_NORM_GROUP ? p->groups : 0, p->epsilon};
    struct vg_operand apply[3] = {norm->in[0], vg_net_operand(net, source == VG_NORM_KEPT ? kept : merged),
                                  norm->in[3]};
    if (!(op = append(net, VGK_OP_NORMALISE, norm, 3, apply, norm->out.value)))
        return false;
    op->out = norm->out;
    op->op.p.normalise = (struct vgk_normalise){p->act, p->alpha, p->beta};
    return true;
}

enum vgk_status vg_net_split_norms(struct vg_net *net, enum vg_norm_source source)
{
    int n = net->n_ops;
    struct vg_net_op *old = net->ops;
    bool ok = true;
    if (!(net->memories = calloc((size_t)n + 1, sizeof *net->memories)))
        return VGK_ERR_NOMEM;
    /* The list is written anew, in order: an op stands for itself, or for its steps. */
    net->ops = NULL;
    net->n_ops = net->cap_ops = 0;
    for (int i = 0; i < n && ok; i++) {
        const struct vg_net_op *op = &old[i];
        bool is_norm = op->op.kind == VGK_OP_NORM && op->op.p.norm.kind <= VGK_NORM_GROUP && !op->view;
        if (is_norm && is_image(net, &op->in[0]) && vgk_tensor_is_dense(&op->out.t, VGK_CHANNELS_LAST)) {
            ok = split(net, op, source);
        } else {
            struct vg_net_op *copy = vg_net_op_add(net, op->op.kind, op->node);
            ok = copy != NULL;
            if (ok)
                *copy = *op;
        }
    }
    if (ok) {
        free(old);
        return VGK_OK;
    }
    free(net->ops);
    net->n_memories = 0;
    net->ops = old;
    net->n_ops = net->cap_ops = n;
    return VGK_ERR_NOMEM;
}
