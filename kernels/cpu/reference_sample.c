/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sampling a picture or volume at given places. */
#include "reference.h"
#include "sample.h"

#include <math.h>

struct job {
    const struct vgk_op *op;
    int spatial;
};

static void places(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    const struct vgk_tensor *x = &j->op->in[0], *grid = &j->op->in[1], *y = j->op->out;
    for (int64_t p = begin; p < end; p++) {
        int64_t rest = p, at = 0, to = 0, from, place[VGK_MAX_SPATIAL];
        for (int d = j->spatial - 1; d >= 0; d--) {
            place[d] = rest % y->dim[2 + d];
            rest /= y->dim[2 + d];
            at += place[d] * grid->stride[1 + d];
            to += place[d] * y->stride[2 + d];
        }
        at += rest * grid->stride[0];
        to += rest * y->stride[0];
        from = rest * x->stride[0];
        struct vgk_taps taps[VGK_MAX_SPATIAL];
        int64_t total = 1;
        for (int d = 0; d < j->spatial; d++) {
            double g;
            vgk_load_f64(&g, grid, at + (j->spatial - 1 - d) * grid->stride[grid->rank - 1], 0, 1);
            vgk_sample_taps(&j->op->p.sample, g, place[d], x->dim[2 + d], &taps[d]);
            total *= taps[d].n;
        }
        for (int64_t c = 0; c < y->dim[1]; c++) {
            double sum = 0;
            for (int64_t k = 0; k < total; k++) {
                int64_t r = k, offset = from + c * x->stride[1];
                double w = 1, v;
                for (int d = j->spatial - 1; d >= 0; r /= taps[d--].n) {
                    w *= taps[d].weight[r % taps[d].n];
                    offset += taps[d].index[r % taps[d].n] * x->stride[2 + d];
                }
                if (w == 0)
                    continue; /* what does not count may be infinite */
                vgk_load_f64(&v, x, offset, 0, 1);
                sum += w * v;
            }
            vgk_store_f64(&sum, y, to + c * y->stride[1], 0, 1);
        }
    }
}

void vgk_ref_sample(struct vgk_device *dev, const struct vgk_op *op)
{
    struct job j = {op, op->out->rank - 2};
    if (vgk_tensor_count(op->out))
        vgk_ranges_run(dev, vgk_tensor_count(op->out) / op->out->dim[1], 64, places, &j);
}
