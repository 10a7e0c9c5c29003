/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reductions, normalisation, softmax: an output element depends on many, along some dimensions.  In double. */
#include "reference.h"

#include <math.h>

/* A tensor split in two: the dimensions of `axes` alone, and all the others (those of axes being 1). */
static void split(const struct vgk_tensor *t, unsigned axes, struct vgk_tensor *outer, struct vgk_tensor *inner)
{
    *outer = *inner = *t;
    for (int d = 0; d < t->rank; d++)
        (axes >> d & 1 ? outer : inner)->dim[d] = 1;
}

struct reduce {
    const struct vgk_op *op;
    struct vgk_loop inner; /* over the reduced dimensions of in[0] */
    int64_t count;
    int64_t step[2];
};

static double reduce_f64(const struct reduce *r, int64_t offset)
{
    const struct vgk_loop *loop = &r->inner;
    enum vgk_reduce_fn fn = r->op->p.reduce.fn;
    int64_t n = loop->dim[loop->rank - 1], step = loop->stride[0][loop->rank - 1];
    double acc = fn == VGK_REDUCE_PROD ? 1 : fn == VGK_REDUCE_MAX || fn == VGK_REDUCE_LOG_SUM_EXP ? -INFINITY
             : fn == VGK_REDUCE_MIN ? INFINITY : 0;
    double largest = 0;
    /* LogSumExp takes two passes: the largest first. */
    for (int pass = fn == VGK_REDUCE_LOG_SUM_EXP ? 0 : 1; pass < 2; pass++) {
        struct vgk_cursor cursor;
        vgk_cursor_seek(&cursor, loop, 0);
        if (pass && fn == VGK_REDUCE_LOG_SUM_EXP) {
            largest = isfinite(acc) ? acc : 0;
            acc = 0;
        }
        for (int64_t row = 0; r->count && row < loop->rows; row++, vgk_cursor_next(&cursor, loop))
            for (int64_t first = 0; first < n; first += VGK_LOOP_CHUNK) {
                double v[VGK_LOOP_CHUNK];
                int64_t m = n - first < VGK_LOOP_CHUNK ? n - first : VGK_LOOP_CHUNK;
                vgk_load_f64(v, &r->op->in[0], offset + cursor.offset[0] + first * step, step, m);
                for (int64_t i = 0; i < m; i++)
                    switch (fn) {
                    case VGK_REDUCE_SUM: case VGK_REDUCE_MEAN: case VGK_REDUCE_LOG_SUM: acc += v[i]; break;
                    case VGK_REDUCE_MAX: acc = v[i] > acc || v[i] != v[i] ? v[i] : acc; break;
                    case VGK_REDUCE_MIN: acc = v[i] < acc || v[i] != v[i] ? v[i] : acc; break;
                    case VGK_REDUCE_PROD: acc *= v[i]; break;
                    case VGK_REDUCE_L1: acc += fabs(v[i]); break;
                    case VGK_REDUCE_L2: case VGK_REDUCE_SUM_SQUARE: acc += v[i] * v[i]; break;
                    case VGK_REDUCE_LOG_SUM_EXP:
                        if (pass)
                            acc += exp(v[i] - largest);
                        else
                            acc = v[i] > acc || v[i] != v[i] ? v[i] : acc;
                        break;
                    }
            }
    }
    switch (fn) {
    case VGK_REDUCE_MEAN: return acc / (double)r->count;
    case VGK_REDUCE_L2: return sqrt(acc);
    case VGK_REDUCE_LOG_SUM: return log(acc);
    case VGK_REDUCE_LOG_SUM_EXP: return log(acc) + largest;
    default: return acc;
    }
}

static int64_t reduce_i64(const struct reduce *r, int64_t offset)
{
    const struct vgk_loop *loop = &r->inner;
    enum vgk_reduce_fn fn = r->op->p.reduce.fn;
    int64_t n = loop->dim[loop->rank - 1], step = loop->stride[0][loop->rank - 1];
    bool truth = r->op->in[0].type == VGK_BOOL; /* none of nothing */
    uint64_t acc = fn == VGK_REDUCE_PROD ? 1 : fn == VGK_REDUCE_MAX ? (truth ? 0 : (uint64_t)INT64_MIN)
               : fn == VGK_REDUCE_MIN ? INT64_MAX : 0;
    struct vgk_cursor cursor;
    vgk_cursor_seek(&cursor, loop, 0);
    for (int64_t row = 0; r->count && row < loop->rows; row++, vgk_cursor_next(&cursor, loop))
        for (int64_t i = 0; i < n; i++) {
            int64_t v;
            vgk_load_i64(&v, &r->op->in[0], offset + cursor.offset[0] + i * step, 0, 1);
            uint64_t u = (uint64_t)v;
            switch (fn) {
            case VGK_REDUCE_MAX: acc = v > (int64_t)acc ? u : acc; break;
            case VGK_REDUCE_MIN: acc = v < (int64_t)acc ? u : acc; break;
            case VGK_REDUCE_PROD: acc *= u; break;
            case VGK_REDUCE_L1: acc += v < 0 ? 0 - u : u; break;
            case VGK_REDUCE_L2: case VGK_REDUCE_SUM_SQUARE: acc += u * u; break;
            default: acc += u; break;
            }
        }
    double d = (double)(int64_t)acc;
    switch (fn) {
    case VGK_REDUCE_MEAN: return r->count ? (int64_t)acc / r->count : 0;
    case VGK_REDUCE_L2: return vgk_f64_to_i64(sqrt(d));
    case VGK_REDUCE_LOG_SUM: return vgk_f64_to_i64(log(d));
    default: return (int64_t)acc;
    }
}

static void reduce_piece(void *arg, const int64_t *offset, int64_t n)
{
    const struct reduce *r = arg;
    for (int64_t i = 0; i < n; i++) {
        int64_t to = offset[0] + i * r->step[0], from = offset[1] + i * r->step[1];
        if (vgk_type_class(r->op->in[0].type) == VGK_CLASS_I64 && r->op->p.reduce.fn != VGK_REDUCE_LOG_SUM_EXP) {
            int64_t v = reduce_i64(r, from);
            vgk_store_i64(&v, r->op->out, to, 0, 1);
        } else {
            double v = reduce_f64(r, from);
            vgk_store_f64(&v, r->op->out, to, 0, 1);
        }
    }
}

void vgk_ref_reduce(struct vgk_device *dev, const struct vgk_op *op)
{
    struct vgk_tensor outer, inner;
    struct reduce r = {.op = op};
    split(&op->in[0], op->p.reduce.axes, &outer, &inner);
    r.count = vgk_tensor_count(&inner);
    const struct vgk_tensor *in[] = {&inner}, *t[] = {op->out, &outer};
    vgk_loop_init(&r.inner, 1, in);
    struct vgk_loop loop;
    vgk_loop_init(&loop, 2, t);
    for (int i = 0; i < 2; i++)
        r.step[i] = loop.stride[i][loop.rank - 1];
    vgk_loop_run(dev, &loop, reduce_piece, &r);
}

/* A normalisation is a number of independent sets of elements: [N, groups] or all the dimensions before the axis. */
struct norm {
    const struct vgk_op *op;
    struct vgk_tensor x, y, residual, scale, bias; /* views of equal dimensions; type NONE = left out */
    unsigned axes;                                 /* of a set */
};

static double load(const struct vgk_tensor *t, int64_t offset, double otherwise)
{
    if (t->type != VGK_NONE)
        vgk_load_f64(&otherwise, t, offset, 0, 1);
    return otherwise;
}

/* The dimension `axis` becomes two: `groups` and what is left of it. */
static void split_axis(struct vgk_tensor *t, int axis, int64_t groups)
{
    if (t->type == VGK_NONE)
        return;
    for (int d = t->rank++; d > axis; d--) {
        t->dim[d] = t->dim[d - 1];
        t->stride[d] = t->stride[d - 1];
    }
    t->dim[axis + 1] = t->dim[axis] / groups;
    t->dim[axis] = groups;
    t->stride[axis] = t->stride[axis + 1] * t->dim[axis + 1];
}

static void norm_sets(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct norm *m = arg;
    const struct vgk_norm *p = &m->op->p.norm;
    const struct vgk_tensor *t[] = {&m->x, &m->y, &m->residual, &m->scale, &m->bias};
    for (int64_t set = begin; set < end; set++) {
        int64_t base[5] = {0}, rest = set, count = 1;
        for (int d = m->x.rank - 1; d >= 0; d--) {
            if (m->axes >> d & 1) {
                count *= m->x.dim[d];
                continue;
            }
            for (int i = 0; i < 5; i++)
                base[i] += rest % m->x.dim[d] * t[i]->stride[d];
            rest /= m->x.dim[d];
        }
        double mean = 0, square = 0, inverse = 0;
        /* The mean, the mean square about it, the result. */
        for (int pass = p->kind == VGK_NORM_RMS ? 1 : 0; pass < 3; pass++) {
            for (int64_t e = 0; e < count; e++) {
                int64_t at[5] = {base[0], base[1], base[2], base[3], base[4]}, k = e;
                for (int d = m->x.rank - 1; d >= 0; d--)
                    if (m->axes >> d & 1) {
                        for (int i = 0; i < 5; i++)
                            at[i] += k % m->x.dim[d] * t[i]->stride[d];
                        k /= m->x.dim[d];
                    }
                double v = load(&m->x, at[0], 0);
                if (pass == 0) {
                    mean += v;
                } else if (pass == 1) {
                    square += (v - mean) * (v - mean);
                } else {
                    v = (v - mean) * inverse * load(&m->scale, at[3], 1) + load(&m->bias, at[4], 0);
                    v = vgk_ref_act(p->act, (double)p->alpha, (double)p->beta, 0, v) + load(&m->residual, at[2], 0);
                    vgk_store_f64(&v, &m->y, at[1], 0, 1);
                }
            }
            if (pass == 0)
                mean /= (double)count;
            else if (pass == 1)
                inverse = 1 / sqrt(square / (double)count + (double)p->epsilon);
        }
    }
}

void vgk_ref_norm(struct vgk_device *dev, const struct vgk_op *op)
{
    static const struct vgk_tensor none = {0};
    const struct vgk_norm *p = &op->p.norm;
    struct norm m = {.op = op, .x = op->in[0], .y = op->out[0]};
    const struct vgk_tensor *scale = vgk_input(op, 1), *bias = vgk_input(op, 2), *residual = vgk_input(op, 3);
    m.residual = residual ? *residual : none;
    if (!vgk_tensor_count(&m.x))
        return;
    struct vgk_tensor *part[] = {&m.scale, &m.bias};
    const struct vgk_tensor *from[] = {scale, bias};
    if (p->kind == VGK_NORM_LAYER || p->kind == VGK_NORM_RMS) {
        for (int i = 0; i < 2; i++)
            if (from[i])
                vgk_tensor_broadcast(from[i], m.x.rank, m.x.dim, part[i]);
        m.axes = ~0u << p->axis;
    } else {
        int64_t groups = p->kind == VGK_NORM_GROUP ? p->groups : m.x.dim[1];
        for (int i = 0; i < 2; i++)
            if (from[i]) {
                *part[i] = m.x;
                part[i]->type = from[i]->type;
                part[i]->data = from[i]->data;
                for (int d = 0; d < m.x.rank; d++)
                    part[i]->stride[d] = d == 1 ? from[i]->stride[0] : 0;
            }
        struct vgk_tensor *all[] = {&m.x, &m.y, &m.residual, &m.scale, &m.bias};
        if (p->kind == VGK_NORM_GROUP) {
            for (int i = 0; i < 5; i++)
                split_axis(all[i], 1, groups);
        }
        m.axes = ~3u;
    }
    int64_t sets = 1;
    for (int d = 0; d < m.x.rank; d++)
        sets *= m.axes >> d & 1 ? 1 : m.x.dim[d];
    vgk_ranges_run(dev, sets, 1, norm_sets, &m);
}

struct softmax {
    const struct vgk_op *op;
    int64_t step[2], along[2], size;
};

static void softmax_piece(void *arg, const int64_t *offset, int64_t n)
{
    const struct softmax *s = arg;
    const struct vgk_tensor *x = &s->op->in[0], *y = s->op->out;
    for (int64_t i = 0; i < n; i++) {
        int64_t to = offset[0] + i * s->step[0], from = offset[1] + i * s->step[1];
        double largest = -INFINITY, sum = 0, v;
        for (int64_t k = 0; k < s->size; k++) {
            vgk_load_f64(&v, x, from + k * s->along[1], 0, 1);
            largest = v > largest ? v : largest;
        }
        /* A row that is all -inf gives NaN, as everywhere: models that mask whole rows test for it behind. */
        for (int64_t k = 0; k < s->size; k++) {
            vgk_load_f64(&v, x, from + k * s->along[1], 0, 1);
            sum += exp(v - largest);
        }
        double log_sum = log(sum);
        for (int64_t k = 0; k < s->size; k++) {
            vgk_load_f64(&v, x, from + k * s->along[1], 0, 1);
            v = s->op->p.softmax.log ? v - largest - log_sum : exp(v - largest) / sum;
            vgk_store_f64(&v, y, to + k * s->along[0], 0, 1);
        }
    }
}

void vgk_ref_softmax(struct vgk_device *dev, const struct vgk_op *op)
{
    int axis = op->p.softmax.axis;
    struct softmax s = {.op = op, .size = op->out->dim[axis]};
    struct vgk_tensor y = op->out[0], x = op->in[0];
    if (!vgk_tensor_count(&y))
        return;
    y.dim[axis] = x.dim[axis] = 1;
    const struct vgk_tensor *t[] = {&y, &x};
    struct vgk_loop loop;
    vgk_loop_init(&loop, 2, t);
    for (int i = 0; i < 2; i++) {
        s.step[i] = loop.stride[i][loop.rank - 1];
        s.along[i] = t[i]->stride[axis];
    }
    vgk_loop_run(dev, &loop, softmax_piece, &s);
}
