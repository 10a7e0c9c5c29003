/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operators that pick and place elements by indices, and those that are made of masks and running sums. */
#include "bind_ops.h"

#include <inttypes.h>
#include <string.h>

/* The operands see whatever part of the frame the indices name. */
static void anywhere(struct binder *b, int x, const struct vgk_index *p, const char *what)
{
    unsigned axes = 0;
    for (int k = 0; k < p->n; k++)
        axes |= 1u << p->axis[k];
    binder_mark_axes(b, x, axes, what);
}

/* in[1] with a dimension behind its own for each output dimension that it does not have (repeated), then the index. */
static enum vgk_status index_operand(struct binder *b, int value, int own, int rank, const int64_t *dim, bool vector,
                                     struct vg_operand *o)
{
    *o = vg_net_operand(b->net, value);
    const struct vgk_tensor t = o->t;
    if (rank + 1 > VGK_MAX_RANK)
        return fail(b, VGK_ERR_UNSUPPORTED, "to rank %d, at most %d", rank, VGK_MAX_RANK - 1);
    if (t.type != VGK_I64 && t.type != VGK_I32)
        return fail(b, VGK_ERR_INVALID, "the indices are %s, not int32 or int64", vgk_type_name(t.type));
    o->t.rank = rank + 1;
    for (int i = 0; i < rank; i++) {
        o->t.dim[i] = dim[i];
        o->t.stride[i] = i < own ? t.stride[i] : 0;
    }
    o->t.dim[rank] = vector ? t.dim[t.rank - 1] : 1;
    o->t.stride[rank] = vector ? t.stride[t.rank - 1] : 1;
    return VGK_OK;
}

static enum vgk_status bind_gather_elements(struct binder *b)
{
    int x = binder_in(b, 0), axis, both[2] = {x, binder_in(b, 1)};
    const struct vgk_tensor t = binder_value(b, 0)->t, ti = binder_value(b, 1)->t;
    struct vgk_op op = {.kind = VGK_OP_TAKE, .p.index = {.n = 1}};
    struct vg_operand in[2] = {vg_net_operand(b->net, x)};
    enum vgk_status s = binder_axis(b, vg_node_int(b->node, "axis", 0), t.rank, &axis);
    if (s || (s = index_operand(b, both[1], ti.rank, ti.rank, ti.dim, false, &in[1])))
        return s;
    if (ti.rank != t.rank)
        return fail(b, VGK_ERR_INVALID, "the indices have rank %d, the data %d", ti.rank, t.rank);
    for (int i = 0; i < t.rank; i++) {
        op.p.index.walk[i] = i == axis ? -1 : i;
        if (i != axis && ti.dim[i] > t.dim[i])
            return fail(b, VGK_ERR_INVALID, "the indices have %" PRId64 " in dimension %d, the data %" PRId64,
                        ti.dim[i], i, t.dim[i]);
    }
    op.p.index.axis[0] = axis;
    anywhere(b, x, &op.p.index, "picks rows or columns of the frame");
    int y = binder_new(b, 0, t.type, ti.rank, ti.dim, both, 2);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand out = vg_net_operand(b->net, y);
    binder_set(b, 0, y);
    return binder_emit(b, &op, in, 2, &out);
}

static enum vgk_status bind_gather_nd(struct binder *b)
{
    int x = binder_in(b, 0), both[2] = {x, binder_in(b, 1)}, rank = 0;
    const struct vgk_tensor t = binder_value(b, 0)->t, ti = binder_value(b, 1)->t;
    struct vgk_op op = {.kind = VGK_OP_TAKE};
    int64_t batch = vg_node_int(b->node, "batch_dims", 0), n = ti.rank ? ti.dim[ti.rank - 1] : 0, dim[VGK_MAX_RANK];
    if (ti.rank < 1 || batch < 0 || batch >= ti.rank || n < 1 || batch + n > t.rank ||
        ti.rank - 1 + t.rank - batch - n > VGK_MAX_RANK)
        return fail(b, VGK_ERR_INVALID, "%" PRId64 " batch dimensions and indices of %" PRId64 " numbers for rank %d",
                    batch, n, t.rank);
    for (int i = 0; i < ti.rank - 1; i++) {
        if (i < batch && ti.dim[i] != t.dim[i])
            return fail(b, VGK_ERR_INVALID, "the batches differ");
        dim[rank] = ti.dim[i];
        op.p.index.walk[rank++] = i < batch ? i : -1;
    }
    for (int i = (int)(batch + n); i < t.rank; i++) {
        dim[rank] = t.dim[i];
        op.p.index.walk[rank++] = i;
    }
    bool regular = false;
    enum vgk_status s = batch ? VGK_OK : binder_regular_take(b, (int)n, &regular);
    if (s || regular)
        return s;
    op.p.index.n = (int)n;
    for (int k = 0; k < n; k++)
        op.p.index.axis[k] = (int)batch + k;
    struct vg_operand in[2] = {vg_net_operand(b->net, x)};
    if ((s = index_operand(b, both[1], ti.rank - 1, rank, dim, true, &in[1])))
        return s;
    anywhere(b, x, &op.p.index, "picks rows or columns of the frame");
    int y = binder_new(b, 0, t.type, rank, dim, both, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    for (int a = 0; a < VG_AXES; a++) { /* where the frame's axes walk through, they stay */
        int from = b->net->values[x].axis[a];
        b->net->values[y].axis[a] = -1;
        for (int i = 0; i < rank && from >= 0; i++)
            if (op.p.index.walk[i] == from)
                b->net->values[y].axis[a] = i;
    }
    struct vg_operand out = vg_net_operand(b->net, y);
    binder_set(b, 0, y);
    return binder_emit(b, &op, in, 2, &out);
}

static enum vgk_status scatter(struct binder *b, const struct vgk_op *op, const struct vg_operand *index)
{
    static const char *const names[] = {"none", "add", "mul", "min", "max", NULL};
    int x = binder_in(b, 0);
    const struct vgk_tensor t = binder_value(b, 0)->t, tu = binder_value(b, 2)->t;
    struct vg_operand in[3] = {vg_net_operand(b->net, x), *index, vg_net_operand(b->net, binder_in(b, 2))};
    struct vgk_op o = *op;
    int r = binder_choice(vg_node_string(b->node, "reduction", "none"), names);
    if (r < 0)
        return fail(b, VGK_ERR_UNSUPPORTED, "reduction %s", vg_node_string(b->node, "reduction", ""));
    if (tu.type != t.type)
        return fail(b, VGK_ERR_INVALID, "the updates are %s, the data %s", vgk_type_name(tu.type),
                    vgk_type_name(t.type));
    o.p.index.reduce = r;
    anywhere(b, x, &o.p.index, "changes rows or columns of the frame");
    int all[2] = {x, binder_in(b, 2)}, y = binder_new(b, 0, t.type, t.rank, t.dim, all, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand out = vg_net_operand(b->net, y);
    binder_set(b, 0, y);
    return binder_emit(b, &o, in, 3, &out);
}

static enum vgk_status bind_scatter_elements(struct binder *b)
{
    int axis;
    const struct vgk_tensor t = binder_value(b, 0)->t, ti = binder_value(b, 1)->t, tu = binder_value(b, 2)->t;
    struct vgk_op op = {.kind = VGK_OP_SCATTER, .p.index = {.n = 1}};
    struct vg_operand index;
    enum vgk_status s = binder_axis(b, vg_node_int(b->node, "axis", 0), t.rank, &axis);
    if (s || (s = index_operand(b, binder_in(b, 1), ti.rank, ti.rank, ti.dim, false, &index)))
        return s;
    if (ti.rank != t.rank || tu.rank != t.rank)
        return fail(b, VGK_ERR_INVALID, "indices and updates must have the data's rank");
    for (int i = 0; i < t.rank; i++) {
        op.p.index.walk[i] = i == axis ? -1 : i;
        if (ti.dim[i] != tu.dim[i] || (i != axis && ti.dim[i] > t.dim[i]))
            return fail(b, VGK_ERR_INVALID, "the indices have %" PRId64 " in dimension %d, the updates %" PRId64
                        ", the data %" PRId64, ti.dim[i], i, tu.dim[i], t.dim[i]);
    }
    op.p.index.axis[0] = axis;
    return scatter(b, &op, &index);
}

static enum vgk_status bind_scatter_nd(struct binder *b)
{
    const struct vgk_tensor t = binder_value(b, 0)->t, ti = binder_value(b, 1)->t, tu = binder_value(b, 2)->t;
    struct vgk_op op = {.kind = VGK_OP_SCATTER};
    struct vg_operand index;
    int64_t n = ti.rank ? ti.dim[ti.rank - 1] : 0;
    bool fits = ti.rank >= 1 && n >= 1 && n <= t.rank && tu.rank == ti.rank - 1 + t.rank - n;
    for (int i = 0; i < tu.rank && fits; i++) {
        bool walks = i >= ti.rank - 1;
        op.p.index.walk[i] = walks ? i - (ti.rank - 1) + (int)n : -1;
        fits = tu.dim[i] == (walks ? t.dim[op.p.index.walk[i]] : ti.dim[i]);
    }
    if (!fits)
        return fail(b, VGK_ERR_INVALID, "data, indices and updates do not fit one another");
    op.p.index.n = (int)n;
    for (int k = 0; k < n; k++)
        op.p.index.axis[k] = k;
    if (tu.type == t.type && !strcmp(vg_node_string(b->node, "reduction", "none"), "none")) {
        bool regular;
        anywhere(b, binder_in(b, 0), &op.p.index, "changes rows or columns of the frame");
        enum vgk_status done = binder_regular_scatter(b, (int)n, &regular);
        if (done || regular)
            return done;
    }
    enum vgk_status s = index_operand(b, binder_in(b, 1), ti.rank - 1, tu.rank, tu.dim, true, &index);
    return s ? s : scatter(b, &op, &index);
}

/* --- masks --- */

static enum vgk_status where(struct binder *b, int mask, int yes, int no, int rank, const int64_t *dim, const int *like,
                             int n_like)
{
    struct vg_operand in[3];
    enum vgk_status s;
    if ((s = binder_broadcast(b, mask, rank, dim, &in[0])) || (s = binder_broadcast(b, yes, rank, dim, &in[1])) ||
        (s = binder_broadcast(b, no, rank, dim, &in[2])))
        return s;
    int y = binder_new(b, 0, in[1].t.type, rank, dim, like, n_like);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand out = vg_net_operand(b->net, y);
    binder_set(b, 0, y);
    return binder_emit(b, &(struct vgk_op){.kind = VGK_OP_WHERE}, in, 3, &out);
}

#define MAX_SIDE 16384 /* of a mask */

static enum vgk_status bind_trilu(struct binder *b)
{
    int x = binder_in(b, 0), n;
    int64_t k = 0;
    const struct vgk_tensor t = binder_value(b, 0)->t;
    bool upper = vg_node_int(b->node, "upper", 1);
    enum vgk_status s = binder_ints(b, 1, &k, 1, &n);
    if (s)
        return s;
    if (t.rank < 2)
        return fail(b, VGK_ERR_INVALID, "of rank %d", t.rank);
    if (t.dim[t.rank - 2] > MAX_SIDE || t.dim[t.rank - 1] > MAX_SIDE)
        return fail(b, VGK_ERR_UNSUPPORTED, "of more than %d rows or columns", MAX_SIDE);
    binder_mark_axes(b, x, 3u << (t.rank - 2), "keeps a triangle of the frame");
    int mask = vg_net_constant(b->net, "", VGK_BOOL, 2, t.dim + t.rank - 2), zero =
        vg_net_constant(b->net, "", t.type, 0, NULL);
    if (mask < 0 || zero < 0)
        return fail(b, VGK_ERR_NOMEM, "no memory for the graph");
    bool *m = b->net->values[mask].t.data;
    for (int64_t i = 0; i < t.dim[t.rank - 2]; i++)
        for (int64_t j = 0; j < t.dim[t.rank - 1]; j++)
            *m++ = upper ? j - i >= k : j - i <= k;
    return where(b, mask, x, zero, t.rank, t.dim, &x, 1);
}

/* values[indices == 0..depth-1 along a new axis], negative indices counted from the end. */
static enum vgk_status bind_one_hot(struct binder *b)
{
    int index = binder_in(b, 0), axis, n;
    struct vgk_tensor t = binder_value(b, 0)->t;
    const struct vgk_tensor tv = binder_value(b, 2)->t;
    double depth;
    enum vgk_status s = binder_axis(b, vg_node_int(b->node, "axis", -1), t.rank + 1, &axis);
    if (s)
        return s;
    if (!binder_scalar(b, binder_in(b, 1), &depth))
        return fail(b, VGK_ERR_UNSUPPORTED, "the depth (input 1) must be known before the run");
    if (tv.rank != 1 || tv.dim[0] != 2 || depth < 1 || depth > 1 << 24 || t.rank + 1 > VGK_MAX_RANK)
        return fail(b, VGK_ERR_INVALID, "a depth of %g, or values that are not two", depth);
    int64_t dim[VGK_MAX_RANK], count = (int64_t)depth;
    for (int i = 0; i <= t.rank; i++)
        dim[i] = i < axis ? t.dim[i] : i == axis ? count : t.dim[i - 1];
    if (t.type != VGK_I64) {
        int cast = binder_new(b, 0, VGK_I64, t.rank, t.dim, &index, 1);
        if (cast < 0)
            return VGK_ERR_NOMEM;
        struct vg_operand from = vg_net_operand(b->net, index), to = vg_net_operand(b->net, cast);
        if ((s = binder_emit(b, &(struct vgk_op){.kind = VGK_OP_COPY}, &from, 1, &to)))
            return s;
        index = cast;
    }
    struct vg_operand in[2] = {vg_net_operand(b->net, index)};
    t = in[0].t;
    in[0].t.rank++;
    for (int i = 0; i <= t.rank; i++) {
        in[0].t.dim[i] = dim[i];
        in[0].t.stride[i] = i < axis ? t.stride[i] : i == axis ? 0 : t.stride[i - 1];
    }
    int hit[3];
    for (n = 0; n < 3; n++) { /* equal to i, equal to i - depth, either */
        if ((hit[n] = binder_new(b, 0, VGK_BOOL, t.rank + 1, dim, NULL, 0)) < 0)
            return VGK_ERR_NOMEM;
        struct vg_operand out = vg_net_operand(b->net, hit[n]), either[2];
        if (n == 2) {
            either[0] = vg_net_operand(b->net, hit[0]);
            either[1] = vg_net_operand(b->net, hit[1]);
        } else {
            int range = vg_net_constant(b->net, "", VGK_I64, 1, &count);
            if (range < 0)
                return fail(b, VGK_ERR_NOMEM, "no memory for the graph");
            for (int64_t i = 0; i < count; i++)
                ((int64_t *)b->net->values[range].t.data)[i] = n ? i - count : i;
            in[1] = vg_net_operand(b->net, range);
            in[1].t.rank = t.rank + 1;
            for (int i = 0; i <= t.rank; i++) {
                in[1].t.dim[i] = dim[i];
                in[1].t.stride[i] = i == axis;
            }
        }
        if ((s = binder_emit(b, &(struct vgk_op){.kind = VGK_OP_BINARY, .p.binary = {n < 2 ? VGK_EQUAL : VGK_OR}},
                             n < 2 ? in : either, 2, &out)))
            return s;
    }
    int value[2];
    for (n = 0; n < 2; n++) {
        struct vg_operand o = vg_net_operand(b->net, binder_in(b, 2));
        vg_operand_slice(&o, 0, n, 1, 1);
        if ((value[n] = binder_view(b, 0, &o, (int[VG_AXES]){-1, -1})) < 0)
            return VGK_ERR_NOMEM;
    }
    return where(b, hit[2], value[1], value[0], t.rank + 1, dim, NULL, 0);
}

/* --- running sums --- */

#define MAX_STEPS 4096

/* One op a step along the axis: it is short in what models do (positions of a mask). */
static enum vgk_status bind_cum_sum(struct binder *b)
{
    int x = binder_in(b, 0), axis, n;
    int64_t given;
    const struct vgk_tensor t = binder_value(b, 0)->t;
    bool exclusive = vg_node_int(b->node, "exclusive", 0), reverse = vg_node_int(b->node, "reverse", 0);
    enum vgk_status s = binder_ints(b, 1, &given, 1, &n);
    if (s || (s = binder_axis(b, given, t.rank, &axis)))
        return s;
    if (t.dim[axis] > MAX_STEPS)
        return fail(b, VGK_ERR_UNSUPPORTED, "over %" PRId64 " elements, at most %d", t.dim[axis], MAX_STEPS);
    binder_mark_axes(b, x, 1u << axis, "sums along the frame's rows or columns");
    int y = binder_new(b, 0, t.type, t.rank, t.dim, &x, 1), zero = vg_net_constant(b->net, "", t.type, 0, NULL);
    if (y < 0 || zero < 0)
        return VGK_ERR_NOMEM;
    binder_set(b, 0, y);
    b->hold = !b->net->values[x].constant;
    for (int64_t i = 0; i < t.dim[axis] && !s; i++) {
        int64_t at = reverse ? t.dim[axis] - 1 - i : i, before = reverse ? at + 1 : at - 1;
        struct vg_operand in[2] = {vg_net_operand(b->net, x), vg_net_operand(b->net, y)},
                          out = vg_net_operand(b->net, y);
        vg_operand_slice(&out, axis, at, 1, 1);
        vg_operand_slice(&in[0], axis, exclusive && i ? before : at, 1, 1);
        if (i)
            vg_operand_slice(&in[1], axis, before, 1, 1);
        if (i)
            s = binder_emit(b, &(struct vgk_op){.kind = VGK_OP_BINARY, .p.binary = {VGK_ADD}}, in, 2, &out);
        else if (!exclusive || !(s = binder_broadcast(b, zero, out.t.rank, out.t.dim, &in[0])))
            s = binder_emit(b, &(struct vgk_op){.kind = VGK_OP_COPY}, in, 1, &out);
    }
    b->hold = false;
    return s;
}

const struct handler vg_handlers_index[] = {
    {"GatherElements", bind_gather_elements, 0, 2, 2, 1},
    {"GatherND", bind_gather_nd, 0, 2, 2, 1},
    {"ScatterElements", bind_scatter_elements, 0, 3, 3, 1},
    {"Scatter", bind_scatter_elements, 0, 3, 3, 1},
    {"ScatterND", bind_scatter_nd, 0, 3, 3, 1},
    {"Trilu", bind_trilu, 0, 1, 2, 1},
    {"OneHot", bind_one_hot, 0, 3, 3, 1},
    {"CumSum", bind_cum_sum, 0, 2, 2, 1},
    {NULL, NULL, 0, 0, 0, 0},
};
