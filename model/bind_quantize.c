/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* QuantizeLinear and DequantizeLinear: one scale for all, one along an axis, or one a block of an axis. */
#include "bind_ops.h"

#include <inttypes.h>
#include <string.h>

static struct vgk_tensor split(struct vgk_tensor t, int axis, int64_t block)
{
    for (int d = t.rank++; d > axis + 1; d--) {
        t.dim[d] = t.dim[d - 1];
        t.stride[d] = t.stride[d - 1];
    }
    t.dim[axis + 1] = block;
    t.stride[axis + 1] = t.stride[axis];
    t.dim[axis] /= block;
    t.stride[axis] *= block;
    return t;
}

/* A scale or zero point as it belongs to every element of x (split already when there are blocks). */
static enum vgk_status spread(struct binder *b, int i, const struct vgk_tensor *x, int axis, int64_t block,
                              struct vg_operand *o)
{
    *o = vg_net_operand(b->net, binder_in(b, i));
    if (o->value < 0)
        return VGK_OK;
    struct vgk_tensor t = o->t;
    bool scalar = vgk_tensor_count(&t) == 1 && t.rank <= 1;
    if (!scalar && (block ? t.rank != x->rank - 1 : t.rank != 1 || t.dim[0] != x->dim[axis]))
        return fail(b, VGK_ERR_INVALID, "input %d fits neither one value nor %s", i, block ? "the blocks" : "the axis");
    o->t.rank = x->rank;
    for (int d = 0; d < x->rank; d++) {
        int from = d <= axis ? d : d - 1;
        o->t.dim[d] = x->dim[d];
        o->t.stride[d] = scalar || (block && d == axis + 1) ? 0 : block ? t.stride[from] : d == axis ? t.stride[0] : 0;
        if (block && !scalar && d != axis + 1 && t.dim[from] != x->dim[d])
            return fail(b, VGK_ERR_INVALID, "input %d has %" PRId64 " in dimension %d, expected %" PRId64, i,
                        t.dim[from], from, x->dim[d]);
    }
    return VGK_OK;
}

static enum vgk_status bind_linear(struct binder *b)
{
    bool down = binder_parameter(b); /* QuantizeLinear */
    int x = binder_in(b, 0), axis = 0;
    const struct vg_net_value *zero = binder_value(b, 2);
    const struct vgk_tensor t = binder_value(b, 0)->t, ts = binder_value(b, 1)->t;
    int64_t block = vg_node_int(b->node, "block_size", 0), given = vg_node_int(b->node, "output_dtype", 0);
    enum vgk_type type = down ? zero ? zero->t.type : VGK_U8 : ts.type;
    enum vgk_status s;
    if (given && !(type = binder_type(given)))
        return fail(b, VGK_ERR_UNSUPPORTED, "casts to ONNX type %" PRId64, given);
    if (down && vgk_type_bits(type) < 8)
        return fail(b, VGK_ERR_UNSUPPORTED, "to %s: 4-bit types are for weights", vgk_type_name(type));
    if (ts.rank > 0 && t.rank && (s = binder_axis(b, vg_node_int(b->node, "axis", 1), t.rank, &axis))) {
        if (vgk_tensor_count(&ts) != 1)
            return s;
        axis = 0; /* the default of 1 means nothing to a single scale */
    }
    block = ts.rank > 1 ? block : 0;
    if (block && (block < 1 || t.dim[axis] % block || t.rank >= VGK_MAX_RANK))
        return fail(b, VGK_ERR_UNSUPPORTED, "blocks of %" PRId64 " that do not divide %" PRId64, block, t.dim[axis]);
    bool kept = false;
    if (!down && type == VGK_F32 && (s = binder_keep(b, x, binder_in(b, 1), binder_in(b, 2), axis, block, &kept)))
        return s;
    if (kept)
        return VGK_OK;
    int y = binder_new(b, 0, type, t.rank, t.dim, &x, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand in[3] = {vg_net_operand(b->net, x)}, out = vg_net_operand(b->net, y);
    if (block) {
        in[0].t = split(in[0].t, axis, block);
        out.t = split(out.t, axis, block);
    }
    if ((s = spread(b, 1, &in[0].t, axis, block, &in[1])) || (s = spread(b, 2, &in[0].t, axis, block, &in[2])))
        return s;
    binder_set(b, 0, y);
    return binder_emit(b, &(struct vgk_op){.kind = down ? VGK_OP_QUANTIZE : VGK_OP_DEQUANTIZE}, in, 3, &out);
}

const struct handler vg_handlers_quantize[] = {
    {"QuantizeLinear", bind_linear, true, 2, 3, 1},
    {"DequantizeLinear", bind_linear, false, 2, 3, 1},
    {NULL, NULL, 0, 0, 0, 0},
};
