/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sampling channels-last f32 pictures and volumes: a place is a weighted sum of pixels, all their channels at once. */
#include "sample.h"
#include "cpu.h"
#include "elements.h"
#include "resample.h"

#include <string.h>

static const struct vgk_resample_rows *rows_of(const struct vgk_device *dev) { return VGK_BY_ISA(dev, vgk_resample_rows); }

static bool channels_side_by_side(const struct vgk_tensor *t)
{
    return t->type == VGK_F32 && (t->dim[1] == 1 || t->stride[1] == 1);
}

static enum vgk_status need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n, struct vgk_error *err)
{
    *n = (struct vgk_need){.lattice = {1, 1, 1}};
    bool takes = op->kind == VGK_OP_SAMPLE && op->out->rank >= 3 && op->out->rank <= 2 + VGK_MAX_SPATIAL &&
                 channels_side_by_side(&op->in[0]) && channels_side_by_side(op->out) && op->in[1].type == VGK_F32 &&
                 (op->p.sample.mode != VGK_CUBIC || op->out->rank == 4);
    return takes ? VGK_OK : VGK_ERR_UNSUPPORTED;
}

struct job {
    const struct vgk_op *op;
    const struct vgk_resample_rows *rows;
    int spatial;
};

#define MAX_PIXELS 16 /* cubic in two dimensions */

static void places(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    const struct vgk_tensor *x = &j->op->in[0], *grid = &j->op->in[1], *y = j->op->out;
    for (int64_t p = begin; p < end; p++) {
        const float *pixel[MAX_PIXELS];
        float weight[MAX_PIXELS];
        int64_t rest = p, at = 0, to = 0, offset[MAX_PIXELS] = {0};
        double w[MAX_PIXELS] = {1};
        int64_t place[VGK_MAX_SPATIAL];
        for (int d = j->spatial - 1; d >= 0; d--) {
            place[d] = rest % y->dim[2 + d];
            rest /= y->dim[2 + d];
            at += place[d] * grid->stride[1 + d];
            to += place[d] * y->stride[2 + d];
        }
        at += rest * grid->stride[0];
        to += rest * y->stride[0];
        int n = 1, used = 0;
        for (int d = 0; d < j->spatial; d++) { /* each dimension multiplies what there is by its taps */
            struct vgk_taps taps;
            float g = ((const float *)grid->data)[at + (j->spatial - 1 - d) * grid->stride[grid->rank - 1]];
            vgk_sample_taps(&j->op->p.sample, (double)g, place[d], x->dim[2 + d], &taps);
            for (int k = n * taps.n - 1; k >= 0; k--) {
                offset[k] = offset[k / taps.n] + taps.index[k % taps.n] * x->stride[2 + d];
                w[k] = w[k / taps.n] * taps.weight[k % taps.n];
            }
            n *= taps.n;
        }
        for (int k = 0; k < n; k++)
            if (w[k] != 0) { /* what does not count may be infinite */
                pixel[used] = (const float *)x->data + rest * x->stride[0] + offset[k];
                weight[used++] = (float)w[k];
            }
        float *out = (float *)y->data + to;
        if (used)
            j->rows->down(out, pixel, weight, used, y->dim[1]);
        else
            memset(out, 0, (size_t)y->dim[1] * sizeof *out);
    }
}

static enum vgk_status compute(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                               struct vgk_error *err)
{
    struct job j = {op, rows_of(dev), op->out->rank - 2};
    if (vgk_tensor_count(op->out))
        vgk_ranges_run(dev, vgk_tensor_count(op->out) / op->out->dim[1], 256, places, &j);
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_sample = {"sample", need, NULL, compute};
