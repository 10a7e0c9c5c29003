/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GridSample: a warp.  How far it reaches is in the grid's values; the file says what it promises (metadata
 * vidgen.max-flow, in pixels of the sampled picture), else it may be anywhere. */
#include "bind_ops.h"

#include <stdlib.h>
#include <string.h>

static int64_t max_flow(const struct vg_graph *g)
{
    for (int i = 0; i < g->n_properties; i++)
        if (!strcmp(g->properties[i].key, "vidgen.max-flow")) {
            char *end;
            long n = strtol(g->properties[i].value, &end, 10);
            return *end || end == g->properties[i].value || n < 0 || n > 1 << 20 ? -1 : n;
        }
    return -1;
}

static enum vgk_status bind_grid_sample(struct binder *b)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL}, *const old[] = {"-", "bilinear", "bicubic", NULL};
    static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
    const char *how = vg_node_string(b->node, "mode", "linear"),
               *beyond = vg_node_string(b->node, "padding_mode", "zeros");
    int x = binder_in(b, 0), grid = binder_in(b, 1), mode = binder_choice(how, modes), padding =
        binder_choice(beyond, paddings);
    mode = mode < 0 ? binder_choice(how, old) : mode;
    enum vgk_status s = binder_image(b, &x);
    if (s)
        return s;
    const struct vg_net_value *vx = &b->net->values[x], *vg = &b->net->values[grid];
    const struct vgk_tensor t = vx->t, tg = vg->t;
    int spatial = t.rank - 2;
    if (spatial < 1 || spatial > VGK_MAX_SPATIAL || tg.rank != t.rank || tg.dim[tg.rank - 1] != spatial ||
        tg.dim[0] != t.dim[0])
        return fail(b, VGK_ERR_INVALID, "the input must be [N,C,(D,)H,W] and the grid [N,(D,)H,W,2 or 3]");
    if (mode < 0 || padding < 0 || (mode == VGK_CUBIC && spatial != 2))
        return fail(b, VGK_ERR_UNSUPPORTED, "mode %s with padding_mode %s on rank %d", how, beyond, t.rank);
    int64_t dim[VGK_MAX_RANK] = {t.dim[0], t.dim[1]}, flow = max_flow(b->graph);
    for (int i = 0; i < spatial; i++) {
        dim[2 + i] = tg.dim[1 + i];
        if (t.dim[2 + i] < 1)
            return fail(b, VGK_ERR_INVALID, "of an empty picture");
    }
    struct vgk_op op = {.kind = VGK_OP_SAMPLE, .p.sample = {mode, padding, vg_node_int(b->node, "align_corners", 0)}};
    struct vg_operand in[2] = {vg_net_operand(b->net, x), vg_net_operand(b->net, grid)};
    int axis[VG_AXES];
    for (int a = 0; a < VG_AXES; a++) {
        axis[a] = vx->axis[a];
        if (axis[a] < 0 && vg->axis[a] >= 1 && vg->axis[a] <= spatial)
            axis[a] = vg->axis[a] + 1;
        if (vx->axis[a] < 2)
            continue;
        if (flow >= 0 && dim[axis[a]] == t.dim[axis[a]])
            in[0].reach[a] = (struct vg_reach){1, 1, -flow, flow + (mode == VGK_CUBIC)};
        else
            binder_global(b, "samples anywhere in the frame; if it does not reach further than N pixels, say so in the "
                             "file's metadata: vidgen.max-flow = N");
    }
    int like[2] = {x, grid}, y = binder_new(b, 0, t.type, t.rank, dim, like, vx->axis[VG_X] >= 0 || !vg->frame ? 1 : 2);
    if (y < 0)
        return VGK_ERR_NOMEM;
    memcpy(b->net->values[y].axis, axis, sizeof axis);
    struct vg_operand out = vg_net_operand(b->net, y);
    binder_set(b, 0, y);
    return binder_emit(b, &op, in, 2, &out);
}

const struct handler vg_handlers_sample[] = {
    {"GridSample", bind_grid_sample, 0, 2, 2, 1},
    {NULL, NULL, 0, 0, 0, 0},
};
