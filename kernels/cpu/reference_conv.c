/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Convolution, transposed convolution, pooling, matrix product.  Sums are kept in double: an oracle should not have
 * rounding of its own. */
#include "reference.h"
#include "weights.h"

#include <math.h>
#include <string.h>

#define S VGK_MAX_SPATIAL

/* A convolution with its spatial dimensions filled up to three from the left. */
struct conv {
    const struct vgk_op *op;
    const struct vgk_conv *p;
    bool transposed;
    int64_t cin, cout; /* of a group */
    int64_t size[S], out[S], kernel[S], stride[S], dilation[S], begin[S], end[S];
    int64_t in_step[S], out_step[S], residual_step[S]; /* elements */
    int64_t taps;
    const double *weights; /* [group][tap][cin][cout] */
    double *scratch;       /* [thread][cin + cout] */
};

static struct conv conv_make(const struct vgk_op *op)
{
    const struct vgk_conv *p = &op->p.conv;
    const struct vgk_tensor *x = &op->in[0], *y = op->out, *r = vgk_input(op, 5);
    struct conv c = {.op = op, .p = p, .transposed = op->kind == VGK_OP_CONV_TRANSPOSE, .taps = 1};
    c.cin = x->dim[1] / p->groups;
    c.cout = y->dim[1] / p->groups;
    for (int k = 0; k < S; k++) {
        int d = k - (S - p->spatial);
        if (d < 0) {
            c.size[k] = c.out[k] = c.kernel[k] = c.stride[k] = c.dilation[k] = 1;
            continue;
        }
        c.size[k] = x->dim[2 + d];
        c.out[k] = y->dim[2 + d];
        c.kernel[k] = p->kernel[d];
        c.stride[k] = p->stride[d];
        c.dilation[k] = p->dilation[d];
        c.begin[k] = p->pad_begin[d];
        c.end[k] = p->pad_end[d];
        c.in_step[k] = x->stride[2 + d];
        c.out_step[k] = y->stride[2 + d];
        c.residual_step[k] = r ? r->stride[2 + d] : 0;
        c.taps *= c.kernel[k];
    }
    return c;
}

bool vgk_ref_conv_need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *need)
{
    struct conv c = conv_make(op);
    size_t n = sizeof(double);
    if (!vgk_mul(n, (size_t)vgk_tensor_count(&op->in[1]), &need->packed))
        return false;
    need->scratch = (size_t)(c.cin + c.cout) * sizeof(double) * (size_t)vgk_pool_size(dev->pool);
    return true;
}

void vgk_ref_conv_pack(const struct vgk_op *op, double *packed)
{
    struct conv c = conv_make(op);
    int rank = op->in[1].rank;
    for (int64_t g = 0; g < c.p->groups; g++)
        for (int64_t tap = 0; tap < c.taps; tap++)
            for (int64_t i = 0; i < c.cin; i++, packed += c.cout) {
                /* [Cout, Cin / groups, ...], or transposed [Cin, Cout / groups, ...] */
                int64_t at[VGK_MAX_RANK] = {c.transposed ? g * c.cin + i : g * c.cout, c.transposed ? 0 : i}, rest = tap;
                for (int d = rank - 1; d >= 2; rest /= op->in[1].dim[d--])
                    at[d] = rest % op->in[1].dim[d];
                vgk_weights_f64(op, at, c.transposed, packed, c.cout);
            }
}

/* The input index that tap k of output index o reads; -1 = none. */
static int64_t conv_source(const struct conv *c, int axis, int64_t o, int64_t k)
{
    if (c->transposed) {
        int64_t i = o + c->begin[axis] - k * c->dilation[axis];
        return i >= 0 && i % c->stride[axis] == 0 && i / c->stride[axis] < c->size[axis] ? i / c->stride[axis] : -1;
    }
    int64_t i = o * c->stride[axis] + k * c->dilation[axis], begin = c->begin[axis], end = c->end[axis];
    if (begin < 0) /* rows that are there, but not for the first tap: they may still be reflected */
        i -= begin;
    return vgk_pad_source(c->p->pad_mode, c->size[axis], begin < 0 ? 0 : begin, end < 0 ? 0 : end, i);
}

/* Sums of one group at one place. */
static void conv_sum(const struct conv *c, int64_t n, int64_t g, const int64_t *o, double *patch, double *sum)
{
    const struct vgk_tensor *x = &c->op->in[0];
    const double *w = c->weights + g * c->taps * c->cin * c->cout;
    memset(sum, 0, (size_t)c->cout * sizeof *sum);
    for (int64_t kz = 0; kz < c->kernel[0]; kz++)
        for (int64_t ky = 0; ky < c->kernel[1]; ky++)
            for (int64_t kx = 0; kx < c->kernel[2]; kx++, w += c->cin * c->cout) {
                int64_t z = conv_source(c, 0, o[0], kz), y = conv_source(c, 1, o[1], ky),
                        v = conv_source(c, 2, o[2], kx);
                if (z < 0 || y < 0 || v < 0)
                    continue;
                vgk_load_f64(patch, x,
                             n * x->stride[0] + g * c->cin * x->stride[1] + z * c->in_step[0] + y * c->in_step[1] +
                                 v * c->in_step[2],
                             x->stride[1], c->cin);
                for (int64_t i = 0; i < c->cin; i++) {
                    const double *row = w + i * c->cout;
                    for (int64_t k = 0; k < c->cout; k++)
                        sum[k] += patch[i] * row[k];
                }
            }
}

static double element(const struct vgk_tensor *t, int64_t offset, double otherwise)
{
    if (t)
        vgk_load_f64(&otherwise, t, offset, 0, 1);
    return otherwise;
}

static void conv_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct conv *c = arg;
    const struct vgk_conv *p = c->p;
    const struct vgk_tensor *y = c->op->out, *shift = vgk_input(c->op, 2), *scale = vgk_input(c->op, 3),
                            *slope = vgk_input(c->op, 4), *residual = vgk_input(c->op, 5);
    double *patch = c->scratch + thread * (c->cin + c->cout), *sum = patch + c->cin;
    for (int64_t r = begin; r < end; r++) {
        int64_t n = r / (c->out[0] * c->out[1]), o[S] = {r / c->out[1] % c->out[0], r % c->out[1]};
        for (o[2] = 0; o[2] < c->out[2]; o[2]++)
            for (int64_t g = 0; g < p->groups; g++) {
                conv_sum(c, n, g, o, patch, sum);
                int64_t first = g * c->cout;
                int64_t at = n * y->stride[0] + first * y->stride[1] + o[0] * c->out_step[0] + o[1] * c->out_step[1] +
                             o[2] * c->out_step[2];
                for (int64_t k = 0; k < c->cout; k++) {
                    int64_t ch = first + k;
                    double v = sum[k] * element(scale, scale ? ch * scale->stride[0] : 0, 1) +
                               element(shift, shift ? ch * shift->stride[0] : 0, 0);
                    double add = residual ? element(residual,
                                                    n * residual->stride[0] + ch * residual->stride[1] +
                                                        o[0] * c->residual_step[0] + o[1] * c->residual_step[1] +
                                                        o[2] * c->residual_step[2],
                                                    0)
                                          : 0;
                    if (p->act == VGK_ACT_GATE) {
                        sum[k] = (v + add) * (vgk_ref_act(VGK_ACT_SIGMOID, 0, 0, 0, v) + (double)p->alpha);
                        continue;
                    }
                    if (p->residual_before_act)
                        v += add;
                    v = vgk_ref_act(p->act, p->alpha, p->beta, element(slope, slope ? ch * slope->stride[0] : 0, 0), v);
                    sum[k] = p->residual_before_act ? v : v + add;
                }
                vgk_store_f64(sum, y, at, y->stride[1], c->cout);
            }
    }
}

void vgk_ref_conv(struct vgk_device *dev, const struct vgk_op *op, const double *packed, double *scratch)
{
    struct conv c = conv_make(op);
    c.weights = packed;
    c.scratch = scratch;
    if (vgk_tensor_count(op->out))
        vgk_ranges_run(dev, op->out->dim[0] * c.out[0] * c.out[1], 1, conv_rows, &c);
}

/* One output row (along the last dimension) of every channel is a block. */
static void pool_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct vgk_op *op = arg;
    const struct vgk_pool *p = &op->p.pool;
    const struct vgk_tensor *x = &op->in[0], *y = op->out;
    int64_t size[S], out[S], kernel[S], stride[S], dilation[S], before[S], after[S], xs[S], ys[S];
    for (int k = 0; k < S; k++) {
        int d = k - (S - p->spatial);
        size[k] = d < 0 ? 1 : x->dim[2 + d];
        out[k] = d < 0 ? 1 : y->dim[2 + d];
        kernel[k] = d < 0 ? 1 : p->kernel[d];
        stride[k] = d < 0 ? 1 : p->stride[d];
        dilation[k] = d < 0 ? 1 : p->dilation[d];
        before[k] = d < 0 ? 0 : p->pad_begin[d];
        after[k] = d < 0 ? 0 : p->pad_end[d];
        xs[k] = d < 0 ? 0 : x->stride[2 + d];
        ys[k] = d < 0 ? 0 : y->stride[2 + d];
    }
    for (int64_t row = begin; row < end; row++) {
        int64_t oy = row % out[1], oz = row / out[1] % out[0], c = row / out[1] / out[0] % x->dim[1],
                n = row / out[1] / out[0] / x->dim[1];
        for (int64_t ox = 0; ox < out[2]; ox++) {
            double r = p->max ? -INFINITY : 0;
            int64_t count = 0;
            for (int64_t kz = 0; kz < kernel[0]; kz++)
                for (int64_t ky = 0; ky < kernel[1]; ky++)
                    for (int64_t kx = 0; kx < kernel[2]; kx++) {
                        int64_t z = oz * stride[0] + kz * dilation[0] - before[0],
                                v = oy * stride[1] + ky * dilation[1] - before[1],
                                u = ox * stride[2] + kx * dilation[2] - before[2];
                        bool inside = z >= 0 && z < size[0] && v >= 0 && v < size[1] && u >= 0 && u < size[2];
                        /* What ceil_mode adds lies beyond the padding. */
                        bool padded = z < size[0] + after[0] && v < size[1] + after[1] && u < size[2] + after[2];
                        count += inside || (p->count_include_pad && padded);
                        if (!inside)
                            continue;
                        double e = element(x, n * x->stride[0] + c * x->stride[1] + z * xs[0] + v * xs[1] + u * xs[2],
                                           0);
                        if (!p->max)
                            r += e;
                        else if (e > r || e != e)
                            r = e;
                    }
            if (!p->max)
                r = count ? r / (double)count : 0;
            vgk_store_f64(&r, y, n * y->stride[0] + c * y->stride[1] + oz * ys[0] + oy * ys[1] + ox * ys[2], 0, 1);
        }
    }
}

void vgk_ref_pool(struct vgk_device *dev, const struct vgk_op *op)
{
    const struct vgk_tensor *y = op->out;
    int64_t n = vgk_tensor_count(y);
    if (n)
        vgk_ranges_run(dev, n / y->dim[y->rank - 1], 16, pool_rows, (void *)op);
}

struct matmul {
    const struct vgk_op *op;
    struct vgk_tensor a, b, c; /* with out's leading dimensions; c.data NULL = none */
    bool weights;              /* b is quantised */
};

/* The tensor with the leading dimensions of out, whatever was 1 repeated. */
static struct vgk_tensor batched(const struct vgk_tensor *t, const struct vgk_tensor *out)
{
    int64_t dim[VGK_MAX_RANK];
    memcpy(dim, out->dim, sizeof dim);
    for (int i = 1; i <= 2; i++)
        dim[out->rank - i] = t->dim[t->rank - i];
    struct vgk_tensor r = *t;
    vgk_tensor_broadcast(t, out->rank, dim, &r);
    return r;
}

static void matmul_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct matmul *m = arg;
    const struct vgk_tensor *y = m->op->out;
    int rank = y->rank;
    int64_t rows = y->dim[rank - 2], columns = y->dim[rank - 1], depth = m->a.dim[rank - 1];
    double alpha = (double)m->op->p.matmul.alpha, beta = (double)m->op->p.matmul.beta;
    bool whole = vgk_type_class(y->type) == VGK_CLASS_I64;
    for (int64_t r = begin; r < end; r++) {
        int64_t a = r % rows * m->a.stride[rank - 2], b = 0, c = r % rows * m->c.stride[rank - 2],
                o = r % rows * y->stride[rank - 2];
        int64_t k = r / rows, place[VGK_MAX_RANK] = {0};
        int last = m->op->in[1].rank - 1;
        for (int d = rank - 3; d >= 0; k /= y->dim[d--]) {
            int own = d - (rank - 1 - last); /* the same dimension of in[1] */
            if (own >= 0)
                place[own] = m->op->in[1].dim[own] == 1 ? 0 : k % y->dim[d];
            a += k % y->dim[d] * m->a.stride[d];
            b += k % y->dim[d] * m->b.stride[d];
            c += k % y->dim[d] * m->c.stride[d];
            o += k % y->dim[d] * y->stride[d];
        }
        enum { WIDE = 256 };
        for (int64_t first = 0; first < columns; first += WIDE) {
            int64_t n = columns - first < WIDE ? columns - first : WIDE;
            int64_t column = b + first * m->b.stride[rank - 1];
            if (whole) {
                int64_t sum[WIDE] = {0}, row[WIDE], e;
                for (int64_t i = 0; i < depth; i++) {
                    vgk_load_i64(&e, &m->a, a + i * m->a.stride[rank - 1], 0, 1);
                    vgk_load_i64(row, &m->b, column + i * m->b.stride[rank - 2], m->b.stride[rank - 1], n);
                    for (int64_t j = 0; j < n; j++)
                        sum[j] = (int64_t)((uint64_t)sum[j] + (uint64_t)e * (uint64_t)row[j]);
                }
                if (m->c.data) {
                    vgk_load_i64(row, &m->c, c + first * m->c.stride[rank - 1], m->c.stride[rank - 1], n);
                    for (int64_t j = 0; j < n; j++)
                        sum[j] =
                            (int64_t)((uint64_t)sum[j] + (uint64_t)row[j]); /* need saw that alpha and beta are 1 */
                }
                vgk_store_i64(sum, y, o + first * y->stride[rank - 1], y->stride[rank - 1], n);
                continue;
            }
            double sum[WIDE] = {0}, row[WIDE], e;
            place[last] = first;
            for (int64_t i = 0; i < depth; i++) {
                place[last - 1] = i;
                vgk_load_f64(&e, &m->a, a + i * m->a.stride[rank - 1], 0, 1);
                if (m->weights)
                    vgk_weights_f64(m->op, place, last, row, n);
                else
                    vgk_load_f64(row, &m->b, column + i * m->b.stride[rank - 2], m->b.stride[rank - 1], n);
                for (int64_t j = 0; j < n; j++)
                    sum[j] += e * row[j];
            }
            for (int64_t j = 0; j < n; j++)
                sum[j] *= alpha;
            if (m->c.data) {
                vgk_load_f64(row, &m->c, c + first * m->c.stride[rank - 1], m->c.stride[rank - 1], n);
                for (int64_t j = 0; j < n; j++)
                    sum[j] += beta * row[j];
            }
            vgk_store_f64(sum, y, o + first * y->stride[rank - 1], y->stride[rank - 1], n);
        }
    }
}

void vgk_ref_matmul(struct vgk_device *dev, const struct vgk_op *op)
{
    const struct vgk_tensor *y = op->out, *c = vgk_input(op, 2);
    struct matmul m = {.op = op, .a = batched(&op->in[0], y), .b = batched(&op->in[1], y)};
    m.weights = vgk_input(op, VGK_WEIGHT_SCALE);
    if (c)
        vgk_tensor_broadcast(c, y->rank, y->dim, &m.c);
    int64_t n = vgk_tensor_count(y);
    if (n)
        vgk_ranges_run(dev, n / y->dim[y->rank - 1], 4, matmul_rows, &m);
}
