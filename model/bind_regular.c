/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Constant indices that follow a rule.  Exporters write slices, windows, assignments to slices and nearest resizing as
 * Gather, GatherND and ScatterND with tables of indices; by their rule they are views, copies and resizes again. */
#include "bind_ops.h"

#include <stdlib.h>
#include <string.h>

static int64_t number(const struct vgk_tensor *t, int64_t at)
{
    return t->type == VGK_I64 ? ((const int64_t *)t->data)[at] : ((const int32_t *)t->data)[at];
}

bool binder_rule(const struct vgk_tensor *t, int64_t at, int64_t size, struct binder_rule *r)
{
    int64_t count = vgk_tensor_count(t), index[VGK_MAX_RANK] = {0};
    if (!count || (t->type != VGK_I64 && t->type != VGK_I32))
        return false;
    *r = (struct binder_rule){.base = number(t, at)};
    for (int d = 0; d < t->rank; d++) { /* along each dimension from the first element */
        int64_t i = 1;
        r->repeat[d] = 1;
        while (i < t->dim[d] && number(t, at + i * t->stride[d]) == r->base)
            i++;
        if (i == t->dim[d])
            continue;
        r->step[d] = number(t, at + i * t->stride[d]) - r->base;
        r->repeat[d] = i;
    }
    for (int64_t k = 0; k < count; k++) {
        int64_t want = r->base, place = at;
        for (int d = 0; d < t->rank; d++) {
            want += r->step[d] * (index[d] / r->repeat[d]);
            place += index[d] * t->stride[d];
        }
        int64_t got = number(t, place);
        if (got != want || got < -size || got >= size || (got < 0) != (r->base < 0))
            return false;
        for (int d = t->rank - 1; d >= 0 && ++index[d] == t->dim[d]; d--)
            index[d] = 0;
    }
    r->base += r->base < 0 ? size : 0;
    return true;
}

/* The dimension of the indices that alone moves along the rule, of more than one element; -1 = none, -2 = several. */
static int driver(const struct binder_rule *r, int rank)
{
    int found = -1;
    for (int d = 0; d < rank; d++)
        if (r->step[d])
            found = found == -1 ? d : -2;
    return found;
}

/* The rules of a vector of indices [u..., n], and who drives each; every dimension of more than one drives just one. */
static bool rules(const struct binder *b, int value, const struct vgk_tensor *x, int n, struct binder_rule *r, int *by)
{
    struct vgk_tensor t = b->net->values[value].t;
    unsigned driven = 0;
    if (!b->net->values[value].constant || t.rank < 1 || n > VGK_MAX_RANK)
        return false;
    int64_t last = t.stride[t.rank - 1];
    t.rank--;
    for (int k = 0; k < n; k++) {
        if (!binder_rule(&t, k * last, x->dim[k], &r[k]) || (by[k] = driver(&r[k], t.rank)) == -2 ||
            (by[k] >= 0 && (driven >> by[k] & 1 || r[k].step[by[k]] < 0)))
            return false;
        driven |= by[k] >= 0 ? 1u << by[k] : 0;
    }
    for (int d = 0; d < t.rank; d++)
        if (t.dim[d] > 1 && !(driven >> d & 1))
            return false;
    return true;
}

/* The part of o, of x's dimensions, that the rules choose: [u..., the dimensions of x behind the n]. */
static void choose(struct vg_operand *o, const struct vgk_tensor *u, int n, const struct binder_rule *r, const int *by)
{
    const struct vgk_tensor x = o->t;
    o->t.rank = 0;
    for (int d = 0; d < u->rank - 1; d++) {
        o->t.dim[d] = u->dim[d];
        o->t.stride[o->t.rank++] = 0;
    }
    for (int k = 0; k < n; k++) {
        o->offset += r[k].base * x.stride[k];
        if (by[k] >= 0)
            o->t.stride[by[k]] = r[k].step[by[k]] * x.stride[k];
    }
    for (int k = n; k < x.rank; k++) {
        o->t.dim[o->t.rank] = x.dim[k];
        o->t.stride[o->t.rank++] = x.stride[k];
    }
    if (x.data)
        o->t.data = (char *)x.data + (o->offset) * (vgk_type_bits(x.type) / 8);
}

static bool frame_along(const struct vg_net_value *v, int n)
{
    for (int a = 0; a < VG_AXES; a++)
        if (v->axis[a] >= 0 && v->axis[a] < n && v->t.dim[v->axis[a]] > 1)
            return true;
    return false;
}

/* Each of the n first dimensions is repeated a whole number of times, in order: a nearest resize. */
static enum vgk_status repeat(struct binder *b, int x, int n, const struct binder_rule *r, const int *by, bool *done)
{
    const struct vg_net_value v = b->net->values[x];
    const struct vgk_tensor *t = &v.t, *u = &binder_value(b, 1)->t;
    struct vgk_op op = {.kind = VGK_OP_RESIZE, .p.resize = {.mode = VGK_NEAREST, .coordinates = VGK_ASYMMETRIC,
                                                            .nearest = VGK_NEAREST_FLOOR}};
    int64_t dim[VGK_MAX_RANK];
    int rank = t->rank, from[VGK_MAX_RANK], to[VGK_MAX_RANK], axis[VG_AXES] = {-1, -1};
    if (u->rank - 1 != n || v.constant)
        return VGK_OK;
    struct vg_operand in = vg_net_operand(b->net, x);
    memcpy(dim, t->dim, sizeof dim);
    memcpy(dim, u->dim, (size_t)n * sizeof *dim);
    for (int k = 0; k < n; k++) {
        int64_t times = by[k] < 0 ? 1 : r[k].repeat[by[k]];
        if (by[k] != k || r[k].base || r[k].step[k] != 1 || u->dim[k] != t->dim[k] * times)
            return VGK_OK;
        op.p.resize.scale[rank - n + k] = (double)times;
        for (int a = 0; a < VG_AXES; a++)
            if (v.axis[a] == k) {
                if (v.fold[a].size)
                    return VGK_OK;
                in.reach[a] = (struct vg_reach){1, times, 0, 0};
            }
    }
    for (int d = 0; d < rank; d++) { /* an image has its rows and columns last */
        from[d] = to[d] = d < rank - n ? d + n : d - (rank - n);
        if (d < rank - n)
            op.p.resize.scale[d] = 1;
    }
    for (int a = 0; a < VG_AXES; a++)
        axis[a] = v.axis[a];
    *done = true;
    int y = binder_new(b, 0, t->type, rank, dim, &x, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    memcpy(b->net->values[y].axis, axis, sizeof axis);
    struct vg_operand out = vg_net_operand(b->net, y);
    in.t = vgk_tensor_permute(&in.t, from);
    out.t = vgk_tensor_permute(&out.t, to);
    binder_set(b, 0, y);
    return binder_emit(b, &op, &in, 1, &out);
}

enum vgk_status binder_regular_take(struct binder *b, int n, bool *done)
{
    int x = binder_in(b, 0), by[VGK_MAX_RANK], axis[VG_AXES];
    const struct vg_net_value *v = &b->net->values[x];
    const struct vgk_tensor *u = &binder_value(b, 1)->t;
    struct binder_rule r[VGK_MAX_RANK];
    *done = false;
    if (!rules(b, binder_in(b, 1), &v->t, n, r, by))
        return VGK_OK;
    for (int k = 0; k < n; k++)
        if (by[k] >= 0 && r[k].repeat[by[k]] > 1)
            return repeat(b, x, n, r, by, done);
    if (frame_along(v, n) || u->rank - 1 + v->t.rank - n > VGK_MAX_RANK)
        return VGK_OK;
    struct vg_operand o = vg_net_operand(b->net, x);
    choose(&o, u, n, r, by);
    for (int a = 0; a < VG_AXES; a++)
        axis[a] = v->axis[a] < n ? -1 : v->axis[a] - n + u->rank - 1;
    *done = true;
    int y = binder_view(b, 0, &o, axis);
    binder_set(b, 0, y);
    return y < 0 ? VGK_ERR_NOMEM : VGK_OK;
}

enum vgk_status binder_regular_scatter(struct binder *b, int n, bool *done)
{
    int x = binder_in(b, 0), by[VGK_MAX_RANK], all[2] = {x, binder_in(b, 2)};
    const struct vgk_tensor t = b->net->values[x].t, *u = &binder_value(b, 1)->t;
    struct binder_rule r[VGK_MAX_RANK];
    *done = false;
    if (!rules(b, binder_in(b, 1), &t, n, r, by))
        return VGK_OK;
    for (int k = 0; k < n; k++)
        if (by[k] >= 0 && r[k].repeat[by[k]] > 1)
            return VGK_OK;
    *done = true;
    int y = binder_new(b, 0, t.type, t.rank, t.dim, all, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand in[2] = {vg_net_operand(b->net, x), vg_net_operand(b->net, all[1])},
                      out = vg_net_operand(b->net, y);
    b->hold = !(b->net->values[x].constant && b->net->values[all[1]].constant);
    binder_set(b, 0, y);
    enum vgk_status s = binder_emit(b, &(struct vgk_op){.kind = VGK_OP_COPY}, &in[0], 1, &out);
    out = vg_net_operand(b->net, y);
    choose(&out, u, n, r, by);
    if (!s)
        s = binder_emit(b, &(struct vgk_op){.kind = VGK_OP_COPY}, &in[1], 1, &out);
    b->hold = false;
    return s;
}
