/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Layer and RMS norms whose dimensions are the last ones and lie as one run: each run is a row for itself. */
#include "elements.h"
#include "norm.h"

struct job {
    const struct vgk_norm_rows *rows;
    const struct vgk_norm *p;
    const struct vgk_tensor *x, *y;
    int64_t n, step[2];
    const float *gain, *bias;
};

/* The dimensions from `axis` on are one run of neighbours. */
static bool is_run(const struct vgk_tensor *t, int axis)
{
    int64_t want = 1;
    for (int d = t->rank - 1; d >= axis; want *= t->dim[d--])
        if (t->dim[d] > 1 && t->stride[d] != want)
            return false;
    return t->type == VGK_F32;
}

static bool takes(const struct vgk_op *op)
{
    const struct vgk_norm *p = &op->p.norm;
    if (op->kind != VGK_OP_NORM || p->kind < VGK_NORM_LAYER || p->act != VGK_ACT_NONE || vgk_input(op, 3) ||
        !is_run(&op->in[0], p->axis) || !is_run(op->out, p->axis))
        return false;
    for (int i = 1; i < 3; i++) /* as many numbers as a row has, or one dimension of them */
        if (vgk_input(op, i) && op->in[i].rank != op->in[0].rank - p->axis)
            return false;
        else if (vgk_input(op, i) && op->in[i].rank > 1 && !is_run(&op->in[i], 0))
            return false;
        else if (vgk_input(op, i))
            for (int d = 0; d < op->in[i].rank; d++)
                if (op->in[i].dim[d] != op->in[0].dim[p->axis + d])
                    return false;
    return true;
}

static int64_t length(const struct vgk_op *op)
{
    int64_t n = 1;
    for (int d = op->p.norm.axis; d < op->out->rank; d++)
        n *= op->out->dim[d];
    return n;
}

static enum vgk_status need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n, struct vgk_error *err)
{
    size_t bytes;
    if (!takes(op) || !vgk_mul((size_t)length(op), 2 * sizeof(float), &bytes))
        return VGK_ERR_UNSUPPORTED;
    *n = (struct vgk_need){.scratch = bytes, .lattice = {1, 1, 1}};
    return VGK_OK;
}

static void piece(void *arg, const int64_t *offset, int64_t n)
{
    const struct job *j = arg;
    for (int64_t i = 0; i < n; i++)
        j->rows->row((float *)j->y->data + offset[0] + i * j->step[0],
                     (const float *)j->x->data + offset[1] + i * j->step[1], j->n, j->p->kind == VGK_NORM_LAYER,
                     j->p->epsilon, j->gain, j->bias);
}

static enum vgk_status compute(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                               struct vgk_error *err)
{
    struct job j = {.rows = VGK_BY_ISA(dev, vgk_norm_rows), .p = &op->p.norm, .x = op->in, .y = op->out,
                    .n = length(op)};
    float *gains[2] = {scratch, (float *)scratch + j.n};
    struct vgk_tensor y = *op->out, x = op->in[0];
    const struct vgk_tensor *t[] = {&y, &x};
    struct vgk_loop loop;
    if (!vgk_tensor_count(op->out))
        return VGK_OK;
    for (int i = 0; i < 2; i++)
        if (vgk_input(op, 1 + i)) {
            const struct vgk_tensor *g = &op->in[1 + i];
            vgk_load_f32(gains[i], g, 0, g->rank == 1 ? g->stride[0] : 1, j.n);
            *(i ? &j.bias : &j.gain) = gains[i];
        }
    for (int d = j.p->axis; d < y.rank; d++)
        x.dim[d] = y.dim[d] = 1;
    vgk_loop_init(&loop, 2, t);
    for (int i = 0; i < 2; i++)
        j.step[i] = loop.stride[i][loop.rank - 1];
    vgk_loop_run(dev, &loop, piece, &j);
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_norm_last = {"norm-last", need, NULL, compute};
