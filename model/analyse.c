/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "analyse.h"

#include "arithmetic.h"

#include <inttypes.h>
#include <stdlib.h>

struct interval {
    int64_t lo, hi;
    bool set;
};

static void include(struct interval *v, int64_t lo, int64_t hi)
{
    if (!v->set || lo < v->lo)
        v->lo = lo;
    if (!v->set || hi > v->hi)
        v->hi = hi;
    v->set = true;
}

/* Positions [from, from + size) of the frame in a value. */
static void include_piece(const struct vg_net *net, int value, int axis, int64_t from, int64_t size, struct interval *v)
{
    int64_t num = net->values[value].num[axis], den = net->values[value].den[axis];
    include(&v[value], from / den * num, from / den * num + size / den * num - 1);
}

static int size_of(const struct vg_blocks *b, int axis) { return axis == VG_X ? b->width : b->height; }

/* What the frame must have for its positions [from, from + size) in the output and in the states. */
static struct interval walk(const struct vg_net *net, int output, const struct vg_blocks *blocks, int axis,
                            int64_t from, int64_t size, struct interval *v)
{
    for (int i = 0; i < net->n_values; i++)
        v[i].set = false;
    include_piece(net, output, axis, from, size, v);
    for (int i = 0; i < net->n_states; i++) {
        int state = net->states[i].output < 0 ? -1 : net->outputs[net->states[i].output];
        if (state >= 0 && net->values[state].frame && net->values[state].axis[axis] >= 0)
            include_piece(net, state, axis, from, size, v);
    }
    for (int i = net->n_ops - 1; i >= 0; i--) {
        const struct vg_net_op *op = &net->ops[i];
        struct interval o = v[op->out.value];
        if (op->dead || !o.set)
            continue;
        int64_t l = blocks ? size_of(&blocks[i], axis) : 1, above = blocks && axis == VG_Y ? blocks[i].above : 0;
        if (l > 1) {
            o.lo = vg_floor_div(o.lo + above, l) * l - above;
            o.hi = vg_floor_div(o.hi + above, l) * l - above + l - 1;
        }
        for (int k = 0; k < op->n_in; k++) {
            int x = op->in[k].value;
            if (x < 0 || !net->values[x].frame || net->values[x].axis[axis] < 0)
                continue;
            const struct vg_reach *r = &op->in[k].reach[axis];
            include(&v[x], vg_floor_div(o.lo * r->num + r->lo, r->den), vg_floor_div(o.hi * r->num + r->hi, r->den));
        }
    }
    /* Every value must lie within the tile, too: beyond its own end an op pads, whatever the frame has there. */
    struct interval need = v[net->inputs[net->frame_input]];
    for (int i = 0; i < net->n_values; i++) {
        const struct vg_net_value *x = &net->values[i];
        if (v[i].set && !x->constant && x->frame && x->axis[axis] >= 0)
            include(&need, vg_floor_div(v[i].lo * x->den[axis], x->num[axis]),
                    vg_floor_div(v[i].hi * x->den[axis], x->num[axis]));
    }
    return need;
}

/* The smallest step, in input pixels, that moves every op by a multiple of its blocks; a multiple of align. */
static int64_t origin_multiple(const struct vg_net *net, const struct vg_blocks *blocks, int axis, int64_t align)
{
    int64_t step = align;
    for (int i = 0; i < net->n_ops; i++) {
        const struct vg_net_value *v = &net->values[net->ops[i].out.value];
        int64_t l = size_of(&blocks[i], axis);
        if (l > 1 && v->frame && v->axis[axis] >= 0) {
            /* step * num / den must be a multiple of l */
            int64_t d = l * v->den[axis];
            step = vg_lcm(step, d / vg_gcd(d, v->num[axis]));
        }
    }
    return step;
}

enum vgk_status vg_net_analyse(const struct vg_net *net, int output, const struct vg_blocks *blocks,
                               struct vg_analysis *a, struct vgk_error *err)
{
    int y = net->outputs[output];
    const struct vg_net_value *out = &net->values[y], *in = &net->values[net->inputs[net->frame_input]];
    struct interval *v = calloc(net->n_values + 1, sizeof *v);
    if (!v)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for the analysis");
    for (int axis = 0; axis < VG_AXES; axis++) {
        char text[128];
        if (out->axis[axis] < 0) {
            free(v);
            return vgk_fail(err, VGK_ERR_UNSUPPORTED, "output '%s' %s is no picture of the frame: rows and columns "
                            "are not among its dimensions", out->name, vgk_tensor_describe(&out->t, text, sizeof text));
        }
        int64_t size = in->t.dim[in->axis[axis]], got = out->t.dim[out->axis[axis]];
        a->num[axis] = out->num[axis];
        a->den[axis] = out->den[axis];
        a->align[axis] = 1;
        for (int i = 0; i < net->n_values; i++)
            if (net->values[i].frame && net->values[i].axis[axis] >= 0 && !net->values[i].constant)
                a->align[axis] = vg_lcm(a->align[axis], net->values[i].den[axis]);
        if (a->align[axis] > 4096 || size % a->align[axis] || got != size / a->den[axis] * a->num[axis]) {
            free(v);
            return vgk_fail(err, VGK_ERR_UNSUPPORTED, "a frame %s of %" PRId64 " gives %" PRId64 " in output '%s', not "
                            "%" PRId64 "/%" PRId64 " of it; models with states that crop their borders, or whose sizes "
                            "do not follow a stride (here %" PRId64 "), are not supported: pad before the "
                            "convolutions (padding='same') or crop to a multiple in the model itself", axis == VG_X ? "width" : "height",
                            size, got, out->name, a->num[axis], a->den[axis], a->align[axis]);
        }
        a->lo[axis] = a->hi[axis] = 0;
        a->origin[axis] = blocks ? origin_multiple(net, blocks, axis, a->align[axis]) : a->align[axis];
        for (int64_t at = 0; at < a->origin[axis]; at += a->align[axis]) {
            struct interval need = walk(net, y, blocks, axis, at, a->align[axis], v);
            if (need.set && at - need.lo > a->lo[axis])
                a->lo[axis] = at - need.lo;
            if (need.set && need.hi - (at + a->align[axis] - 1) > a->hi[axis])
                a->hi[axis] = need.hi - (at + a->align[axis] - 1);
        }
    }
    free(v);
    return VGK_OK;
}
