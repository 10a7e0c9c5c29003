/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Norms of images, sums over all pixels, softmax.
 *
 * Statistics are taken over blocks of a fixed number of pixels, in double and less a value of the channel itself (so
 * that a large mean costs no digits of the variance), and the blocks are added up in their order: the result does not
 * depend on the number of threads. */
#include "norm.h"
#include "cpu.h"
#include "elements.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 2048 /* pixels */ };

static const struct vgk_norm_rows *rows_of(const struct vgk_device *dev) { return VGK_BY_ISA(dev, vgk_norm_rows); }

/* [N, C, spatial...] whose pixels lie one behind the other; *pixel is the distance. */
static bool pixels_of(const struct vgk_tensor *t, int64_t *pixel)
{
    if (t->type != VGK_F32 || t->rank < 3 || (t->dim[1] > 1 && t->stride[1] != 1))
        return false;
    int64_t run = 0; /* distance that the next dimension of more than 1 must have */
    *pixel = t->dim[1];
    for (int d = t->rank - 1; d >= 2; d--) {
        if (t->dim[d] == 1)
            continue;
        if (!run)
            *pixel = run = t->stride[d];
        else if (t->stride[d] != run)
            return false;
        run *= t->dim[d];
    }
    return *pixel >= t->dim[1];
}

struct job {
    const struct vgk_norm_rows *rows;
    const struct vgk_tensor *x, *y, *residual;
    int64_t x_pixel, y_pixel, residual_pixel;
    int64_t pixels, channels, blocks; /* of one image */
    float *shift;        /* [N][C] */
    double *sums;        /* [N][blocks][2][C], then totals in block 0 */
    const float *mean;   /* [N][3C]: mean, factor, bias */
    const struct vgk_normalise *p;
};

static void measure(struct job *j, const struct vgk_tensor *x)
{
    j->x = x;
    j->channels = x->dim[1];
    j->pixels = 1;
    for (int d = 2; d < x->rank; d++)
        j->pixels *= x->dim[d];
    j->blocks = (j->pixels + BLOCK - 1) / BLOCK;
}

static size_t scratch_of(const struct job *j)
{
    size_t images = (size_t)j->x->dim[0], c = (size_t)j->channels;
    return images * c * (sizeof(float) + (size_t)j->blocks * 2 * sizeof(double));
}

static void lay_out(struct job *j, void *scratch)
{
    size_t images = (size_t)j->x->dim[0], c = (size_t)j->channels;
    j->sums = scratch;
    j->shift = (float *)(j->sums + images * (size_t)j->blocks * 2 * c);
}

static const float *first_pixel(const struct vgk_tensor *t, int64_t n) { return (float *)t->data + n * t->stride[0]; }

static void gather_blocks(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    for (int64_t k = begin; k < end; k++) {
        int64_t n = k / j->blocks, at = k % j->blocks * BLOCK, m = j->pixels - at < BLOCK ? j->pixels - at : BLOCK;
        double *sum = j->sums + k * 2 * j->channels;
        memset(sum, 0, (size_t)j->channels * 2 * sizeof *sum);
        j->rows->add(first_pixel(j->x, n) + at * j->x_pixel, j->x_pixel, m, j->channels, j->shift + n * j->channels,
                     sum, sum + j->channels);
    }
}

/* Afterwards image n's totals are at the start of its sums. */
static void gather(struct vgk_device *dev, struct job *j)
{
    vgk_ranges_run(dev, j->x->dim[0] * j->blocks, 1, gather_blocks, j);
    for (int64_t n = 0; n < j->x->dim[0]; n++) {
        double *total = j->sums + n * j->blocks * 2 * j->channels;
        for (int64_t b = 1; b < j->blocks; b++)
            for (int64_t i = 0; i < 2 * j->channels; i++)
                total[i] += total[b * 2 * j->channels + i];
    }
}

/* ---- instance and group norm: moments, merge, normalise ---- */

struct moments {
    struct job j;
    const struct vgk_tensor *out;
    int64_t rows, width, height, blocks;
    float *shift; /* [threads][C] */
};

static bool moments_make(struct vgk_device *dev, const struct vgk_op *op, struct moments *m)
{
    const struct vgk_tensor *x = op->in;
    if (op->kind != VGK_OP_MOMENTS || x->rank != 4)
        return false;
    *m = (struct moments){.j = {.rows = rows_of(dev)}, .out = op->out, .rows = op->p.moments.rows, .width = x->dim[3],
                          .height = x->dim[2], .blocks = op->out->dim[2]};
    measure(&m->j, x);
    return pixels_of(x, &m->j.x_pixel);
}

static enum vgk_status moments_need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n,
                                    struct vgk_error *err)
{
    struct moments m;
    if (!moments_make(dev, op, &m))
        return VGK_ERR_UNSUPPORTED;
    *n = (struct vgk_need){.scratch = (size_t)vgk_pool_size(dev->pool) * (size_t)m.j.channels * sizeof(float),
                           .lattice = {1, 1, 1}};
    return VGK_OK;
}

/* Sums less the block's own first pixel, so that a large mean costs no digits of the variance. */
static void moments_blocks(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct moments *m = arg;
    int64_t c = m->j.channels;
    float *shift = m->shift + thread * c;
    for (int64_t k = begin; k < end; k++) {
        int64_t n = k / m->blocks, b = k % m->blocks, first = b * m->rows;
        int64_t pixels = (m->height - first < m->rows ? m->height - first : m->rows) * m->width;
        const float *x = first_pixel(m->j.x, n) + first * m->width * m->j.x_pixel;
        double *mean = (double *)m->out->data + n * m->out->stride[0] + b * m->out->stride[2], *squares = mean + c;
        memcpy(shift, x, (size_t)c * sizeof *shift);
        memset(mean, 0, (size_t)c * 2 * sizeof *mean);
        m->j.rows->add(x, m->j.x_pixel, pixels, c, shift, mean, squares);
        for (int64_t i = 0; i < c; i++) {
            double off = mean[i] / (double)pixels;
            squares[i] -= off * mean[i];
            mean[i] = (double)shift[i] + off;
        }
    }
}

static enum vgk_status moments_run(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                                   struct vgk_error *err)
{
    struct moments m = {0};
    moments_make(dev, op, &m);
    m.shift = scratch;
    vgk_ranges_run(dev, m.j.x->dim[0] * m.blocks, 1, moments_blocks, &m);
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_moments = {"moments", moments_need, NULL, moments_run};

static float channel(const struct vgk_tensor *t, int64_t c, float otherwise)
{
    if (t)
        vgk_load_f32(&otherwise, t, c * t->stride[0], 0, 1);
    return otherwise;
}

struct moment {
    double n, mean, squares;
};

static void merge(struct moment *a, double n, double mean, double squares)
{
    double total = a->n + n, d = mean - a->mean;
    a->mean += d * n / total;
    a->squares += squares + d * d * a->n * n / total;
    a->n = total;
}

static enum vgk_status merge_need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n,
                                  struct vgk_error *err)
{
    *n = (struct vgk_need){.lattice = {1, 1, 1}};
    return op->kind == VGK_OP_MERGE ? VGK_OK : VGK_ERR_UNSUPPORTED;
}

static enum vgk_status merge_run(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                                 struct vgk_error *err)
{
    const struct vgk_merge *p = &op->p.merge;
    const struct vgk_tensor *x = op->in, *y = op->out;
    int64_t c = x->dim[1] / 2, each = p->groups ? c / p->groups : 1;
    for (int64_t n = 0; n < x->dim[0]; n++)
        for (int64_t g = 0; g < c; g += each) {
            struct moment m = {0, 0, 0};
            for (int64_t b = 0; b < x->dim[2]; b++) {
                const double *at = (const double *)x->data + n * x->stride[0] + b * x->stride[2];
                int64_t left = p->height - b * p->rows;
                double count = (double)((left < p->rows ? left : p->rows) * p->width);
                for (int64_t i = g; i < g + each; i++)
                    merge(&m, count, at[i], at[c + i]);
            }
            double variance = m.squares / m.n;
            variance = variance < 0 ? 0 : variance; /* NaN stays */
            for (int64_t i = g; i < g + each; i++) {
                float *out = (float *)y->data + n * y->stride[0] + i;
                out[0] = (float)m.mean;
                out[c] = (float)((double)channel(vgk_input(op, 1), i, 1) / sqrt(variance + (double)p->epsilon));
                out[2 * c] = channel(vgk_input(op, 2), i, 0);
            }
        }
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_merge = {"merge", merge_need, NULL, merge_run};

static bool normalise_make(struct vgk_device *dev, const struct vgk_op *op, struct job *j)
{
    if (op->kind != VGK_OP_NORMALISE)
        return false;
    *j = (struct job){.rows = rows_of(dev), .y = op->out, .residual = vgk_input(op, 2), .p = &op->p.normalise};
    measure(j, &op->in[0]);
    return pixels_of(j->x, &j->x_pixel) && pixels_of(j->y, &j->y_pixel) &&
           (!j->residual || pixels_of(j->residual, &j->residual_pixel));
}

static enum vgk_status normalise_need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n,
                                      struct vgk_error *err)
{
    struct job j;
    *n = (struct vgk_need){.lattice = {1, 1, 1}};
    return normalise_make(dev, op, &j) ? VGK_OK : VGK_ERR_UNSUPPORTED;
}

static void normalise_blocks(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    for (int64_t k = begin; k < end; k++) {
        int64_t n = k / j->blocks, at = k % j->blocks * BLOCK, m = j->pixels - at < BLOCK ? j->pixels - at : BLOCK;
        struct vgk_norm_row row = {j->mean + n * 3 * j->channels, j->mean + (n * 3 + 1) * j->channels,
                                   j->mean + (n * 3 + 2) * j->channels, j->p->act, j->p->alpha, j->p->beta};
        j->rows->apply((float *)j->y->data + n * j->y->stride[0] + at * j->y_pixel, j->y_pixel,
                       first_pixel(j->x, n) + at * j->x_pixel, j->x_pixel,
                       j->residual ? first_pixel(j->residual, n) + at * j->residual_pixel : NULL, j->residual_pixel, m,
                       j->channels, &row);
    }
}

static enum vgk_status normalise_run(struct vgk_device *dev, const struct vgk_op *op, const void *packed,
                                     void *scratch, struct vgk_error *err)
{
    struct job j = {0};
    normalise_make(dev, op, &j);
    j.mean = op->in[1].data;
    vgk_ranges_run(dev, j.x->dim[0] * j.blocks, 1, normalise_blocks, &j);
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_normalise = {"normalise", normalise_need, NULL, normalise_run};

/* ---- sums over all pixels ---- */

static bool reduce_make(struct vgk_device *dev, const struct vgk_op *op, struct job *j)
{
    const struct vgk_tensor *x = &op->in[0], *y = op->out;
    if (op->kind != VGK_OP_REDUCE || y->type != VGK_F32 || x->rank < 3 || !vgk_tensor_count(x) ||
        op->p.reduce.axes != (1u << x->rank) - 4)
        return false;
    switch (op->p.reduce.fn) {
    case VGK_REDUCE_SUM: case VGK_REDUCE_MEAN: case VGK_REDUCE_SUM_SQUARE: case VGK_REDUCE_L2: break;
    default: return false;
    }
    *j = (struct job){.rows = rows_of(dev), .y = y};
    measure(j, x);
    return pixels_of(x, &j->x_pixel);
}

static enum vgk_status reduce_need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n,
                                   struct vgk_error *err)
{
    struct job j;
    if (!reduce_make(dev, op, &j))
        return VGK_ERR_UNSUPPORTED;
    *n = (struct vgk_need){.scratch = scratch_of(&j), .lattice = {1, 1, 1}};
    return VGK_OK;
}

static enum vgk_status reduce_run(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                                  struct vgk_error *err)
{
    struct job j;
    if (!reduce_make(dev, op, &j))
        return VGK_ERR_UNSUPPORTED;
    lay_out(&j, scratch);
    int64_t c = j.channels;
    memset(j.shift, 0, (size_t)(j.x->dim[0] * c) * sizeof(float));
    gather(dev, &j);
    for (int64_t n = 0; n < j.x->dim[0]; n++)
        for (int64_t i = 0; i < c; i++) {
            const double *total = j.sums + n * j.blocks * 2 * c;
            double v = total[i];
            switch (op->p.reduce.fn) {
            case VGK_REDUCE_MEAN: v /= (double)j.pixels; break;
            case VGK_REDUCE_SUM_SQUARE: v = total[c + i]; break;
            case VGK_REDUCE_L2: v = sqrt(total[c + i]); break;
            default: break;
            }
            ((float *)j.y->data)[n * j.y->stride[0] + i * j.y->stride[1]] = (float)v;
        }
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_reduce = {"reduce", reduce_need, NULL, reduce_run};

/* ---- softmax ---- */

struct soft {
    const struct vgk_norm_rows *rows;
    float *y;
    const float *x;
    int64_t size;
    struct vgk_loop loop; /* over the rows */
};

static enum vgk_status softmax_need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n,
                                    struct vgk_error *err)
{
    const struct vgk_tensor *x = op->in, *y = op->out;
    if (op->kind != VGK_OP_SOFTMAX || op->p.softmax.log || x->type != VGK_F32 || y->type != VGK_F32 ||
        !vgk_tensor_count(y) || x->stride[op->p.softmax.axis] != 1 || y->stride[op->p.softmax.axis] != 1)
        return VGK_ERR_UNSUPPORTED;
    *n = (struct vgk_need){.lattice = {1, 1, 1}};
    return VGK_OK;
}

static void softmax_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct soft *s = arg;
    int last = s->loop.rank - 1;
    for (int64_t k = begin; k < end; k++) {
        struct vgk_cursor c;
        int64_t i = k % s->loop.dim[last];
        vgk_cursor_seek(&c, &s->loop, k / s->loop.dim[last]);
        s->rows->softmax(s->y + c.offset[0] + i * s->loop.stride[0][last],
                         s->x + c.offset[1] + i * s->loop.stride[1][last], s->size);
    }
}

static enum vgk_status softmax_run(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                                   struct vgk_error *err)
{
    struct vgk_tensor y = op->out[0], x = op->in[0];
    struct soft s = {rows_of(dev), y.data, x.data, y.dim[op->p.softmax.axis]};
    const struct vgk_tensor *t[] = {&y, &x};
    y.dim[op->p.softmax.axis] = x.dim[op->p.softmax.axis] = 1;
    vgk_loop_init(&s.loop, 2, t);
    vgk_ranges_run(dev, vgk_tensor_count(&y), 1 + 16384 / s.size, softmax_rows, &s);
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_softmax = {"softmax", softmax_need, NULL, softmax_run};
