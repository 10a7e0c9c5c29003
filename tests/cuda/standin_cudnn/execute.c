/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A graph, row by row: a row is a pixel's channels, or a row of a matrix. */
#include <math.h>
#include <string.h>

#include "standin_cudnn.h"

struct execution {
    const struct job *job;
    struct descriptor *const *op;
    int64_t n_ops, row; /* elements of a row */
    float *weights, *rows;
    int axis;           /* the dimension that a row runs along */
};

/* --- memory --- */

static void *address(const struct job *job, const struct tensor *t)
{
    for (int i = 0; i < job->n; i++)
        if (job->uid[i] == t->uid)
            return t->by_value ? (void *)&job->pointer[i] : job->pointer[i];
    return NULL;
}

static float load(const void *data, cudnnDataType_t type, int64_t at)
{
    return type == CUDNN_DATA_HALF ? (float)((const _Float16 *)data)[at] : ((const float *)data)[at];
}

static void store(void *data, cudnnDataType_t type, int64_t at, float value)
{
    if (type == CUDNN_DATA_HALF)
        ((_Float16 *)data)[at] = (_Float16)value;
    else
        ((float *)data)[at] = value;
}

/* Where a row begins in a tensor whose dimensions of 1 are repeated. */
static int64_t begin_of(const struct tensor *t, const int64_t *index, int axis)
{
    int64_t at = 0;
    for (int i = 0; i < t->n; i++)
        at += i == axis || t->dim[i] == 1 ? 0 : index[i] * t->stride[i];
    return at;
}

/* --- elementwise steps --- */

static float *row_of(const struct execution *e, int i) { return e->rows + i * e->row; }

static float apply(cudnnPointwiseMode_t mode, float x, float b, double slope, double high)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD: return x + b;
    case CUDNN_POINTWISE_SUB: return x - b;
    case CUDNN_POINTWISE_MUL: return x * b;
    case CUDNN_POINTWISE_MAX: return x > b ? x : b;
    case CUDNN_POINTWISE_MIN: return x < b ? x : b;
    case CUDNN_POINTWISE_RELU_FWD: return x > high ? (float)high : !(x <= 0) ? x : slope ? (float)(slope * x) : 0;
    case CUDNN_POINTWISE_SIGMOID_FWD: return 1 / (1 + expf(-x));
    case CUDNN_POINTWISE_TANH_FWD: return tanhf(x);
    case CUDNN_POINTWISE_SWISH_FWD: return x / (1 + expf(-x));
    default: return NAN;
    }
}

/* An operand's row: one that an earlier step wrote, or of memory. */
static void operand(const struct execution *e, const struct tensor *t, const int64_t *index, float *to,
                    const float **row)
{
    *row = to;
    for (int i = 0; i < e->n_ops && t->is_virtual; i++)
        if (result_of(e->op[i])->uid == t->uid) {
            *row = row_of(e, i);
            return;
        }
    const void *data = address(e->job, t);
    int64_t at = begin_of(t, index, e->axis), step = t->dim[e->axis] == 1 ? 0 : t->stride[e->axis];
    for (int64_t c = 0; c < e->row; c++)
        to[c] = load(data, t->type, at + c * step);
}

static void finish_row(const struct execution *e, const int64_t *index)
{
    for (int i = 1; i < e->n_ops; i++) {
        const struct descriptor *kind = part_of(e->op[i], CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
        cudnnPointwiseMode_t mode = *(const cudnnPointwiseMode_t *)attribute_of(kind, CUDNN_ATTR_POINTWISE_MODE, NULL);
        const double *slope = attribute_of(kind, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, NULL),
                     *high = attribute_of(kind, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, NULL);
        const struct tensor *b = tensor_of(e->op[i], CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
        const float *left, *right = NULL;
        float *to = row_of(e, i);
        operand(e, tensor_of(e->op[i], CUDNN_ATTR_OPERATION_POINTWISE_XDESC), index, to, &left);
        if (b)
            operand(e, b, index, to, &right);
        for (int64_t c = 0; c < e->row; c++)
            to[c] = apply(mode, left[c], right ? right[c] : 0, slope ? *slope : 0, high ? *high : INFINITY);
    }
    const struct tensor *y = result_of(e->op[e->n_ops - 1]);
    void *data = address(e->job, y);
    int64_t at = begin_of(y, index, e->axis);
    const float *from = row_of(e, (int)e->n_ops - 1);
    for (int64_t c = 0; c < e->row; c++)
        store(data, y->type, at + c * y->stride[e->axis], from[c]);
}

/* --- convolutions --- */

struct conv {
    const struct tensor *x, *w, *y;
    bool transposed;
    int spatial;
    int64_t groups, ins, outs, taps; /* channels of a group */
    const int64_t *before, *stride, *dilation;
};

/* [group][tap][in][out] */
static void order_weights(const struct execution *e, const struct conv *c)
{
    const void *data = address(e->job, c->w);
    float *to = e->weights;
    for (int64_t g = 0; g < c->groups; g++)
        for (int64_t tap = 0; tap < c->taps; tap++) {
            int64_t place = 0, rest = tap;
            for (int d = c->spatial - 1; d >= 0; rest /= c->w->dim[2 + d--])
                place += rest % c->w->dim[2 + d] * c->w->stride[2 + d];
            for (int64_t i = 0; i < c->ins; i++)
                for (int64_t o = 0; o < c->outs; o++)
                    *to++ = load(data, c->w->type,
                                 place + (c->transposed ? (g * c->ins + i) * c->w->stride[0] + o * c->w->stride[1]
                                                        : (g * c->outs + o) * c->w->stride[0] + i * c->w->stride[1]));
        }
}

/* Where in x a tap of an output pixel lies; false: beyond it, or between its pixels. */
static bool input_of(const struct conv *c, const int64_t *index, int64_t tap, int64_t *at)
{
    for (int d = c->spatial - 1; d >= 0; tap /= c->w->dim[2 + d--]) {
        int64_t r = tap % c->w->dim[2 + d] * c->dilation[d], i;
        if (c->transposed) {
            i = index[2 + d] + c->before[d] - r;
            if (i < 0 || i % c->stride[d])
                return false;
            i /= c->stride[d];
        } else {
            i = index[2 + d] * c->stride[d] - c->before[d] + r;
        }
        if (i < 0 || i >= c->x->dim[2 + d])
            return false;
        *at += i * c->x->stride[2 + d];
    }
    return true;
}

static void conv_pixel(const struct execution *e, const struct conv *c, const void *x, const int64_t *index)
{
    float *sum = row_of(e, 0);
    memset(sum, 0, (size_t)e->row * sizeof *sum);
    for (int64_t tap = 0; tap < c->taps; tap++) {
        int64_t at = index[0] * c->x->stride[0];
        if (!input_of(c, index, tap, &at))
            continue;
        for (int64_t g = 0; g < c->groups; g++)
            for (int64_t i = 0; i < c->ins; i++) {
                float v = load(x, c->x->type, at + (g * c->ins + i) * c->x->stride[1]);
                const float *w = e->weights + ((g * c->taps + tap) * c->ins + i) * c->outs;
                float *to = sum + g * c->outs;
                for (int64_t o = 0; o < c->outs; o++)
                    to[o] += v * w[o];
            }
    }
    finish_row(e, index);
}

static void convolution(const struct execution *e)
{
    const struct descriptor *op = e->op[0];
    struct conv c = {.transposed = op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, .taps = 1};
    c.x = tensor_of(op, c.transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY
                                     : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
    c.w = tensor_of(op, c.transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W
                                     : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
    const struct descriptor *kind = part_of(op, c.transposed ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC
                                                             : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
    c.y = result_of(op);
    c.spatial = c.y->n - 2;
    c.before = attribute_of(kind, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, NULL);
    c.stride = attribute_of(kind, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, NULL);
    c.dilation = attribute_of(kind, CUDNN_ATTR_CONVOLUTION_DILATIONS, NULL);
    c.groups = (c.transposed ? c.y : c.x)->dim[1] / c.w->dim[1];
    c.ins = c.x->dim[1] / c.groups;
    c.outs = c.y->dim[1] / c.groups;
    for (int d = 0; d < c.spatial; d++)
        c.taps *= c.w->dim[2 + d];
    order_weights(e, &c);
    const void *x = address(e->job, c.x);
    int64_t index[MOST_DIMS] = {0};
    for (bool more = true; more;) {
        conv_pixel(e, &c, x, index);
        more = false;
        for (int d = c.y->n - 1; d >= 0 && !more; d--)
            if (d != 1) {
                more = ++index[d] < c.y->dim[d];
                index[d] = more ? index[d] : 0;
            }
    }
}

/* --- products, attention --- */

static void product(const struct execution *e)
{
    const struct tensor *a = tensor_of(e->op[0], CUDNN_ATTR_OPERATION_MATMUL_ADESC),
                        *b = tensor_of(e->op[0], CUDNN_ATTR_OPERATION_MATMUL_BDESC), *y = result_of(e->op[0]);
    const void *from = address(e->job, a), *by = address(e->job, b);
    float *sum = row_of(e, 0);
    for (int64_t n = 0; n < y->dim[0]; n++)
        for (int64_t m = 0; m < y->dim[1]; m++) {
            int64_t index[3] = {n, m, 0};
            memset(sum, 0, (size_t)e->row * sizeof *sum);
            for (int64_t k = 0; k < a->dim[2]; k++) {
                float v = load(from, a->type, begin_of(a, index, 2) + k * a->stride[2]);
                int64_t at = (b->dim[0] == 1 ? 0 : n * b->stride[0]) + k * b->stride[1];
                for (int64_t o = 0; o < e->row; o++)
                    sum[o] += v * load(by, b->type, at + o * b->stride[2]);
            }
            finish_row(e, index);
        }
}

static void attend(const struct execution *e)
{
    const struct descriptor *op = e->op[0];
    const struct tensor *q = tensor_of(op, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC),
                        *k = tensor_of(op, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC),
                        *v = tensor_of(op, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC), *o = result_of(op);
    float scale = *(const float *)address(e->job, tensor_of(op, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC));
    const void *dq = address(e->job, q), *dk = address(e->job, k), *dv = address(e->job, v);
    float *score = e->weights, *sum = row_of(e, 0);
    for (int64_t row = 0; row < o->dim[0] * o->dim[1] * o->dim[2]; row++) {
        int64_t index[4] = {row / o->dim[2] / o->dim[1], row / o->dim[2] % o->dim[1], row % o->dim[2], 0};
        int64_t head = index[1] * k->dim[1] / q->dim[1], at = begin_of(q, index, 3);
        float most = -INFINITY, total = 0;
        for (int64_t s = 0; s < k->dim[2]; s++) {
            int64_t key = index[0] * k->stride[0] + head * k->stride[1] + s * k->stride[2];
            score[s] = 0;
            for (int64_t d = 0; d < q->dim[3]; d++)
                score[s] += load(dq, q->type, at + d * q->stride[3]) * load(dk, k->type, key + d * k->stride[3]);
            score[s] *= scale;
            most = score[s] > most ? score[s] : most;
        }
        memset(sum, 0, (size_t)e->row * sizeof *sum);
        for (int64_t s = 0; s < k->dim[2]; s++) {
            float weight = expf(score[s] - most);
            int64_t value = index[0] * v->stride[0] + head * v->stride[1] + s * v->stride[2];
            total += weight;
            for (int64_t d = 0; d < e->row; d++)
                sum[d] += weight * load(dv, v->type, value + d * v->stride[3]);
        }
        for (int64_t d = 0; d < e->row; d++)
            sum[d] /= total;
        finish_row(e, index);
    }
}

void compute(const struct job *job)
{
    struct execution e = {.job = job};
    int64_t weights;
    e.op = attribute_of(job->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, &e.n_ops);
    workspace_of(job->graph, &weights, &e.row);
    e.weights = (float *)job->workspace;
    e.rows = e.weights + weights;
    switch (e.op[0]->type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        e.axis = 2;
        product(&e);
        break;
    case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
        e.axis = 3;
        attend(&e);
        break;
    default:
        e.axis = 1;
        convolution(&e);
        break;
    }
}
