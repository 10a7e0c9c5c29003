/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rows.h"

#include "arithmetic.h"

#include <string.h>

void vg_rows_needed(const struct vg_operand *o, int64_t begin, int64_t end, int64_t rows, int64_t *lo, int64_t *hi)
{
    const struct vg_reach *r = &o->reach[VG_Y];
    *lo = vg_floor_div(begin * r->num + r->lo, r->den);
    *hi = vg_floor_div((end - 1) * r->num + r->hi, r->den) + 1;
    *lo = *lo < 0 ? 0 : *lo > rows ? rows : *lo;
    *hi = *hi < *lo ? *lo : *hi > rows ? rows : *hi;
    if (*lo == *hi && rows > 0) { /* all of it lies in the padding, which repeats the row at the edge */
        *lo -= *lo == rows;
        *hi = *lo + 1;
    }
}

int vg_rows_buffer(const struct vg_net *net, const struct vg_operand *o)
{
    if (o->value < 0)
        return -1;
    const struct vg_net_value *v = &net->values[o->value];
    return v->constant || !v->frame || v->axis[VG_Y] < 0 ? -1 : v->buffer;
}

/* Elements from one row of the value's buffer to the next. */
static int64_t row_stride(const struct vg_net *net, const struct vg_operand *o)
{
    const struct vg_net_value *v = &net->values[o->value];
    return v->t.stride[v->axis[VG_Y]];
}

/* Rows lie one behind the other in the buffer: the frame's y is its outermost dimension. */
static bool rows_outermost(const struct vg_net *net, int value)
{
    const struct vg_net_value *v = &net->values[value];
    int y = v->axis[VG_Y];
    if (v->t.dim[y] < 1 || v->t.stride[y] < 1 || v->offset >= v->t.stride[y])
        return false;
    return (size_t)v->t.stride[y] * (size_t)v->t.dim[y] * (size_t)(vgk_type_bits(v->t.type) / 8) ==
           net->buffers[v->buffer].bytes;
}

/* Shuffles see the rows in two dimensions; the coarser one is cut. */
static int rows_dim(const struct vgk_tensor *t, int64_t stride)
{
    int best = -1;
    for (int d = 0; d < t->rank; d++)
        if (t->dim[d] > 1 && t->stride[d] > 0 && t->stride[d] % stride == 0 &&
            (best < 0 || t->stride[d] > t->stride[best]))
            best = d;
    return best;
}

/* Rows [begin, end) of the operand, its offset counted from row `base`. */
static void cut(const struct vg_net *net, struct vg_operand *o, int64_t begin, int64_t end, int64_t base)
{
    int64_t stride = row_stride(net, o);
    int d = rows_dim(&o->t, stride);
    o->offset += (begin - base) * stride;
    if (d >= 0)
        o->t.dim[d] = (end - begin) / (o->t.stride[d] / stride);
}

static bool elementwise(enum vgk_kind kind)
{
    return kind == VGK_OP_COPY || kind == VGK_OP_UNARY || kind == VGK_OP_BINARY || kind == VGK_OP_WHERE ||
           kind == VGK_OP_CHAIN || kind == VGK_OP_QUANTIZE || kind == VGK_OP_DEQUANTIZE;
}

bool vg_rows_can(const struct vg_net *net, const struct vg_net_op *op)
{
    switch (op->op.kind) {
    case VGK_OP_COPY:
    case VGK_OP_UNARY:
    case VGK_OP_BINARY:
    case VGK_OP_CHAIN:
    case VGK_OP_WHERE:
    case VGK_OP_QUANTIZE:
    case VGK_OP_DEQUANTIZE:
    case VGK_OP_MOMENTS:
    case VGK_OP_NORMALISE: break;
    case VGK_OP_NORM: /* of each pixel for itself */
        if (op->op.p.norm.kind < VGK_NORM_LAYER || vg_rows_buffer(net, &op->in[0]) < 0 ||
            vg_rows_buffer(net, &op->out) < 0)
            return false;
        for (int d = op->op.p.norm.axis; d < op->out.t.rank; d++)
            if (op->out.t.dim[d] > 1 && (op->out.t.stride[d] >= row_stride(net, &op->out) ||
                                         op->in[0].t.stride[d] >= row_stride(net, &op->in[0])))
                return false;
        break;
    case VGK_OP_CONV:
        if (op->op.p.conv.spatial != 2 || op->op.p.conv.pad_mode == VGK_PAD_WRAP)
            return false;
        break;
    case VGK_OP_RESIZE:
        if (op->op.p.resize.coordinates != VGK_HALF_PIXEL && op->op.p.resize.coordinates != VGK_ASYMMETRIC)
            return false;
        break;
    default: return false;
    }
    if (vg_rows_buffer(net, &op->out) < 0 || !rows_outermost(net, op->out.value))
        return false;
    int y = net->values[op->out.value].axis[VG_Y];
    for (int k = 0; k < op->n_in; k++) {
        const struct vg_operand *o = &op->in[k];
        if (o->value < 0)
            continue;
        if (vg_rows_buffer(net, o) >= 0) {
            if (!rows_outermost(net, o->value))
                return false;
        } else if (elementwise(op->op.kind) && o->t.rank == op->out.t.rank && o->t.dim[y] > 1 && o->t.stride[y]) {
            return false; /* a picture that is a constant or a parameter */
        }
    }
    return true;
}

void vg_rows_restrict(const struct vg_net *net, const struct vg_call *c, const struct vg_storage *storage,
                      struct vgk_op *o, struct vg_operand *in, struct vg_operand *out)
{
    const struct vg_net_op *op = &net->ops[c->what];
    *o = op->op;
    *out = op->out;
    memcpy(in, op->in, VG_MAX_OPERANDS * sizeof *in);
    if (c->all)
        return;
    int64_t lo = 0, hi = 0;
    for (int k = 0; k < op->n_in; k++) {
        int b = vg_rows_buffer(net, &op->in[k]);
        if (b < 0)
            continue;
        const struct vg_net_value *v = &net->values[op->in[k].value];
        int64_t l, h, rows = v->t.dim[v->axis[VG_Y]];
        vg_rows_needed(&op->in[k], c->begin, c->end, rows, &l, &h);
        if (k == 0) {
            lo = l;
            hi = h;
        }
        cut(net, &in[k], l, h, storage[b].banded ? c->base[k] : 0);
    }
    int b = vg_rows_buffer(net, &op->out), y = net->values[op->out.value].axis[VG_Y];
    cut(net, out, c->begin, c->end, storage[b].banded ? c->base[VG_MAX_OPERANDS] : 0);
    if (elementwise(o->kind)) {
        for (int k = 0; k < op->n_in; k++) /* what is repeated down the frame has as many rows as there are now */
            if (in[k].value >= 0 && vg_rows_buffer(net, &in[k]) < 0 && in[k].t.rank == out->t.rank && !in[k].t.stride[y])
                in[k].t.dim[y] = out->t.dim[y];
    } else if (o->kind == VGK_OP_CONV) {
        const struct vgk_conv *p = &op->op.p.conv;
        int64_t first = c->begin * p->stride[0] - p->pad_begin[0];
        int64_t last = (c->end - 1) * p->stride[0] - p->pad_begin[0] + (p->kernel[0] - 1) * p->dilation[0] + 1;
        o->p.conv.pad_begin[0] = (int)(lo - first);
        o->p.conv.pad_end[0] = (int)(last - hi);
    } else if (o->kind == VGK_OP_RESIZE) {
        o->p.resize.in_size[2] = op->in[0].t.dim[2];
        o->p.resize.out_size[2] = op->out.t.dim[2];
        o->p.resize.in_begin[2] = lo;
        o->p.resize.out_begin[2] = c->begin;
    }
}
