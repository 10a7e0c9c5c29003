/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sampling channels-last f32 pictures and volumes: a place is a weighted sum of pixels, all their channels at once. */
#include "sample.h"
#include "cpu.h"
#include "elements.h"

#include <math.h>

static bool channels_side_by_side(const struct vgk_tensor *t)
{
    return t->type == VGK_F32 && (t->dim[1] == 1 || t->stride[1] == 1);
}

/* Elements are counted in 32 bits. */
static bool countable(const struct vgk_tensor *t)
{
    double last = (double)t->dim[1];
    for (int d = 2; d < t->rank; d++)
        last += (double)(t->dim[d] - 1) * fabs((double)t->stride[d]);
    return last < INT32_MAX;
}

static enum vgk_status need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n, struct vgk_error *err)
{
    *n = (struct vgk_need){.lattice = {1, 1, 1}};
    bool takes = op->kind == VGK_OP_SAMPLE && op->out->rank >= 3 && op->out->rank <= 2 + VGK_MAX_SPATIAL &&
                 channels_side_by_side(&op->in[0]) && channels_side_by_side(op->out) && op->in[1].type == VGK_F32 &&
                 (op->p.sample.mode != VGK_CUBIC || op->out->rank == 4) && countable(&op->in[0]);
    return takes ? VGK_OK : VGK_ERR_UNSUPPORTED;
}

struct job {
    const struct vgk_op *op;
    const struct vgk_sample_rows *rows;
};

static void rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    const struct vgk_tensor *x = &j->op->in[0], *grid = &j->op->in[1], *y = j->op->out;
    int spatial = y->rank - 2, last = spatial - 1;
    struct vgk_sample_row r = {.how = &j->op->p.sample, .spatial = spatial, .channels = y->dim[1],
                               .n = y->dim[2 + last], .y_step = y->stride[2 + last],
                               .grid_step = grid->stride[1 + last]};
    for (int64_t k = begin; k < end; k++) {
        int64_t rest = k, from = 0, to = 0;
        for (int d = last - 1; d >= 0; d--) {
            r.axis[d].at = rest % y->dim[2 + d];
            rest /= y->dim[2 + d];
            from += r.axis[d].at * grid->stride[1 + d];
            to += r.axis[d].at * y->stride[2 + d];
        }
        r.x = (const float *)x->data + rest * x->stride[0];
        r.y = (float *)y->data + to + rest * y->stride[0];
        for (int d = 0; d < spatial; d++) { /* numbers are x, y, z; dimensions z, y, x */
            r.axis[d].grid = (const float *)grid->data + from + rest * grid->stride[0] +
                             (last - d) * grid->stride[1 + spatial];
            r.axis[d].size = x->dim[2 + d];
            r.axis[d].stride = (int32_t)x->stride[2 + d];
        }
        j->rows->row(&r);
    }
}

static enum vgk_status compute(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                               struct vgk_error *err)
{
    struct job j = {op, VGK_BY_ISA(dev, vgk_sample_rows)};
    int64_t n = op->out->dim[op->out->rank - 1];
    if (vgk_tensor_count(op->out))
        vgk_ranges_run(dev, vgk_tensor_count(op->out) / op->out->dim[1] / n, 1 + 256 / n, rows, &j);
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_sample = {"sample", need, NULL, compute};
