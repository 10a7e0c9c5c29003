/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Norms of images in steps (moments, normalise), for types and strides that norm.c does not take.  The merge has one form
 * for all, in norm.c. */
#include "reference.h"

struct job {
    const struct vgk_op *op;
    int64_t width, height, channels;
};

static double at(const struct vgk_tensor *t, int64_t n, int64_t c, int64_t y, int64_t x)
{
    double v;
    vgk_load_f64(&v, t, n * t->stride[0] + c * t->stride[1] + y * t->stride[2] + x * t->stride[3], 0, 1);
    return v;
}

/* A unit is a channel of a block of rows. */
static void moments(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    const struct vgk_tensor *x = &j->op->in[0], *y = j->op->out;
    int64_t rows = j->op->p.moments.rows, blocks = y->dim[2];
    for (int64_t k = begin; k < end; k++) {
        int64_t c = k % j->channels, b = k / j->channels % blocks, n = k / j->channels / blocks;
        int64_t last = (b + 1) * rows < j->height ? (b + 1) * rows : j->height;
        double mean = 0, square = 0, count = (double)((last - b * rows) * j->width);
        for (int64_t v = b * rows; v < last; v++)
            for (int64_t u = 0; u < j->width; u++)
                mean += at(x, n, c, v, u);
        mean /= count;
        for (int64_t v = b * rows; v < last; v++)
            for (int64_t u = 0; u < j->width; u++) {
                double d = at(x, n, c, v, u) - mean;
                square += d * d;
            }
        int64_t to = n * y->stride[0] + c * y->stride[1] + b * y->stride[2];
        vgk_store_f64(&mean, y, to, 0, 1);
        vgk_store_f64(&square, y, to + j->channels * y->stride[1], 0, 1);
    }
}

/* A unit is a row of a channel. */
static void normalise(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    const struct vgk_normalise *p = &j->op->p.normalise;
    const struct vgk_tensor *x = &j->op->in[0], *figures = &j->op->in[1], *residual = vgk_input(j->op, 2), *y = j->op->out;
    for (int64_t k = begin; k < end; k++) {
        int64_t v = k % j->height, c = k / j->height % j->channels, n = k / j->height / j->channels;
        double f[3];
        for (int i = 0; i < 3; i++)
            vgk_load_f64(&f[i], figures, n * figures->stride[0] + (i * j->channels + c) * figures->stride[1], 0, 1);
        for (int64_t u = 0; u < j->width; u++) {
            double r = vgk_ref_act(p->act, (double)p->alpha, (double)p->beta, 0, (at(x, n, c, v, u) - f[0]) * f[1] + f[2]);
            r += residual ? at(residual, n, c, v, u) : 0;
            vgk_store_f64(&r, y, n * y->stride[0] + c * y->stride[1] + v * y->stride[2] + u * y->stride[3], 0, 1);
        }
    }
}

static struct job job_of(const struct vgk_op *op)
{
    const struct vgk_tensor *x = &op->in[0];
    return (struct job){op, x->dim[3], x->dim[2], x->dim[1]};
}

void vgk_ref_moments(struct vgk_device *dev, const struct vgk_op *op)
{
    struct job j = job_of(op);
    vgk_ranges_run(dev, op->in->dim[0] * op->out->dim[2] * j.channels, 1, moments, &j);
}

void vgk_ref_normalise(struct vgk_device *dev, const struct vgk_op *op)
{
    struct job j = job_of(op);
    vgk_ranges_run(dev, op->in->dim[0] * j.channels * j.height, 1, normalise, &j);
}
