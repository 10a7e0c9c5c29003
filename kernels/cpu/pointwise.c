/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Unary and binary ops on f32 where neighbours lie side by side, whatever the order: dense tensors, one value for all,
 * one value a channel or a pixel. */
#include "pointwise.h"
#include "cpu.h"
#include "elements.h"

#include <string.h>

static const struct vgk_pointwise_rows *rows_of(const struct vgk_device *dev) { return VGK_BY_ISA(dev, vgk_pointwise_rows); }

enum { TILE = 1024 }; /* floats of a repeated row */

struct job {
    struct vgk_loop loop;
    const struct vgk_op *op;
    float *out;
    const float *in[2];
    vgk_unary_row *unary;
    vgk_binary_row *binary;
    int step[2];   /* of the inputs along a row: 0 or 1 */
    int repeated;  /* the input that is one short row, repeated for every row of the other; -1 = none */
};

static bool make(struct vgk_device *dev, const struct vgk_op *op, struct job *job)
{
    const struct vgk_tensor *t[3] = {op->out, op->in, op->in + 1};
    int n = op->kind == VGK_OP_UNARY ? 1 : op->kind == VGK_OP_BINARY ? 2 : 0;
    if (!n || op->out->type != VGK_F32 || op->in[0].type != VGK_F32 || op->in[n - 1].type != VGK_F32)
        return false;
    *job = (struct job){.op = op, .out = op->out->data, .repeated = -1};
    if (n == 1)
        job->unary = rows_of(dev)->unary[op->p.unary.fn];
    else
        job->binary = rows_of(dev)->binary[op->p.binary.fn];
    if (!job->unary && !job->binary)
        return false;
    vgk_loop_init(&job->loop, n + 1, t);
    struct vgk_loop *l = &job->loop;
    int last = l->rank - 1;
    for (int i = 0; i <= n; i++) {
        int64_t step = l->dim[last] == 1 ? 1 : l->stride[i][last];
        if (step != 1 && (step || !i))
            return false;
        if (i) {
            job->step[i - 1] = (int)step;
            job->in[i - 1] = op->in[i - 1].data;
        }
    }
    /* [pixels, channels] with a value a channel: many rows of the other are one run. */
    if (n == 2 && l->rank == 2 && l->dim[1] * 2 <= TILE && l->stride[0][0] == l->dim[1])
        for (int i = 0; i < 2; i++)
            if (!l->stride[1 + i][0] && job->step[i] && job->step[1 - i] && l->stride[2 - i][0] == l->dim[1])
                job->repeated = i;
    return l->rank == 1 || l->dim[last] > VGK_SHORT_ROW || job->repeated >= 0;
}

static enum vgk_status need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n, struct vgk_error *err)
{
    struct job job;
    if (!make(dev, op, &job))
        return VGK_ERR_UNSUPPORTED;
    *n = (struct vgk_need){.lattice = {1, 1, 1}};
    return VGK_OK;
}

static void unary_piece(void *arg, const int64_t *offset, int64_t n)
{
    const struct job *j = arg;
    j->unary(j->out + offset[0], j->in[0] + offset[1], n, j->op->p.unary.alpha, j->op->p.unary.beta);
}

static void binary_piece(void *arg, const int64_t *offset, int64_t n)
{
    const struct job *j = arg;
    j->binary(j->out + offset[0], j->in[0] + offset[1], j->in[1] + offset[2], n, j->step[0], j->step[1]);
}

static void repeated_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    int64_t row = j->loop.dim[1], wide = TILE / row;
    float tile[TILE];
    for (int64_t i = 0; i < wide && i < end - begin; i++)
        memcpy(tile + i * row, j->in[j->repeated], (size_t)row * sizeof(float));
    for (int64_t r = begin; r < end; r += wide) {
        int64_t n = (end - r < wide ? end - r : wide) * row;
        const float *other = j->in[1 - j->repeated] + r * row;
        j->binary(j->out + r * row, j->repeated ? other : tile, j->repeated ? tile : other, n, 1, 1);
    }
}

static enum vgk_status compute(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                               struct vgk_error *err)
{
    struct job job;
    if (!make(dev, op, &job))
        return VGK_ERR_UNSUPPORTED;
    if (job.unary)
        vgk_loop_run(dev, &job.loop, unary_piece, &job);
    else if (job.repeated >= 0)
        vgk_ranges_run(dev, job.loop.dim[0], 1 + 16384 / job.loop.dim[1], repeated_rows, &job);
    else
        vgk_loop_run(dev, &job.loop, binary_piece, &job);
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_pointwise = {"pointwise", need, NULL, compute};
