/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "blocks.h"

#include "arithmetic.h"
#include "rows.h"

#include <stdlib.h>

/* Rows of blocks of a picture from which on one more is little. */
#define MANY 50

/* Whole blocks of a shuffle, whole phases of a resize; the frame comes and goes in pairs of rows, which share their
 * chroma. */
static int64_t unit_of(const struct vg_net *net, const struct vg_net_op *op)
{
    int64_t unit = 1;
    for (int k = 0; k < op->n_in; k++) {
        const struct vg_reach *r = &op->in[k].reach[VG_Y];
        if (op->in[k].value >= 0 && r->den > 1 && net->values[op->in[k].value].frame)
            unit = vg_lcm(unit, r->den / vg_gcd(r->num, r->den));
    }
    for (int k = 0; k < net->n_outputs; k++) {
        const struct vg_net_value *v = &net->values[net->outputs[k]];
        if (!v->constant && v->axis[VG_Y] >= 0 && net->values[op->out.value].buffer == v->buffer)
            unit = vg_lcm(unit, 2 * v->num[VG_Y]);
    }
    return unit;
}

/* How many rows the op lags behind what comes in blocks, where a band ends: its own reach, and the lag of what it reads;
 * -1: nothing of that comes in blocks. */
static int64_t lag_of(const struct vg_net *net, const struct vg_net_op *op, const int64_t *lag)
{
    int64_t most = -1;
    if (!vg_rows_can(net, op))
        return -1;
    for (int k = 0; k < op->n_in; k++) {
        const struct vg_reach *r = &op->in[k].reach[VG_Y];
        int b = vg_rows_buffer(net, &op->in[k]), v = op->in[k].value;
        if (b < 0 && v >= 0 && !net->values[v].constant && net->values[v].frame)
            return -1; /* what all of the frame goes into: the rest is there as a whole */
        if (b < 0 || lag[b] < 0)
            continue;
        int64_t rows = vg_floor_div(lag[b] * r->den + r->hi, r->num);
        most = rows > most ? rows : most;
    }
    return most;
}

enum vgk_status vg_blocks_find(const struct vg_net *net, const struct vgk_need *need, int rows,
                               struct vg_blocks *blocks)
{
    int64_t *lag = malloc(((size_t)net->n_buffers + 1) * sizeof *lag);
    int *writers = calloc((size_t)net->n_buffers + 1, sizeof *writers);
    enum vgk_status s = lag && writers ? VGK_OK : VGK_ERR_NOMEM;
    for (int b = 0; b < net->n_buffers && !s; b++)
        lag[b] = -1;
    for (int i = 0; i < net->n_ops && !s; i++)
        if (!net->ops[i].dead && !net->ops[i].view)
            writers[net->values[net->ops[i].out.value].buffer]++;
    for (int i = 0; i < net->n_ops && !s; i++) {
        const struct vg_net_op *op = &net->ops[i];
        const int *lattice = need[i].lattice;
        struct vg_blocks *to = &blocks[i];
        *to = (struct vg_blocks){1, 1, 0, 1};
        if (op->dead || op->view)
            continue;
        to->height = lattice[1] > 1 ? lattice[1] : 1;
        to->width = lattice[2] > 1 ? lattice[2] : 1;
        int b = net->values[op->out.value].buffer;
        int64_t unit = unit_of(net, op), behind = lag_of(net, op, lag);
        to->unit = (int)vg_lcm(unit, to->height);
        if (to->height > 1) {
            const struct vg_net_value *v = &net->values[op->out.value];
            bool few = rows * v->num[VG_Y] < (int64_t)MANY * to->height * v->den[VG_Y];
            behind = behind < 0 ? 0 : behind;
            bool alone = unit == 1 && writers[b] == 1; /* to say where the rows end */
            if (few || !alone)
                behind = (behind + to->height - 1) / to->height * to->height;
            to->above = (int)(behind % to->height);
        }
        lag[b] = behind > lag[b] ? behind : lag[b];
    }
    free(lag);
    free(writers);
    return s;
}
