/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From an operation to a graph of cuDNN's.  A graph is one product and a chain of elementwise steps on its result,
 * which cuDNN keeps in registers: virtual tensors in f32.
 *
 * A product by a constant matrix is a convolution by 1 x 1: engines for those take any number of channels on every
 * capability and come compiled, while those for matrices are compiled at run time and want multiples of 8 on 7.5. */
#include <stdio.h>
#include <string.h>

#include "dnn_internal.h"

typedef cudnnBackendDescriptor_t desc;

struct shape {
    cudnnDataType_t type;
    int n;
    int64_t dim[VGK_MAX_RANK], stride[VGK_MAX_RANK], align;
};

/* --- descriptors --- */

static bool check(struct vgk_dnn_graph *g, cudnnStatus_t s, const char *call)
{
    if (s && !g->status)
        g->status = vgk_dnn_fail(g->dnn, s, call, g->err);
    return !g->status;
}

static void decline(struct vgk_dnn_graph *g, const char *why)
{
    if (!g->status)
        g->status = vgk_fail(g->err, VGK_ERR_UNSUPPORTED, "cuDNN: %s", why);
}

desc vgk_dnn_new(struct vgk_dnn_graph *g, cudnnBackendDescriptorType_t type)
{
    desc d = NULL;
    if (!g->status && g->n_owned == VGK_DNN_DESCRIPTORS)
        g->status = vgk_fail(g->err, VGK_ERR_UNSUPPORTED, "cuDNN: more than %d descriptors", VGK_DNN_DESCRIPTORS);
    if (g->status || !check(g, g->dnn->BackendCreateDescriptor(type, &d), "create a descriptor"))
        return NULL;
    return g->owned[g->n_owned++] = d;
}

void vgk_dnn_set(struct vgk_dnn_graph *g, desc d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                 int64_t n, const void *values, const char *call)
{
    if (!g->status)
        check(g, g->dnn->BackendSetAttribute(d, name, type, n, values), call);
}

void vgk_dnn_finish(struct vgk_dnn_graph *g, desc d, const char *call)
{
    if (!g->status)
        check(g, g->dnn->BackendFinalize(d), call);
}

static desc tensor(struct vgk_dnn_graph *g, const struct shape *s, int64_t uid, bool by_value)
{
    desc d = vgk_dnn_new(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    bool yes = true;
    VGK_DNN_SET(g, d, TENSOR_DATA_TYPE, DATA_TYPE, 1, &s->type);
    VGK_DNN_SET(g, d, TENSOR_DIMENSIONS, INT64, s->n, s->dim);
    VGK_DNN_SET(g, d, TENSOR_STRIDES, INT64, s->n, s->stride);
    VGK_DNN_SET(g, d, TENSOR_UNIQUE_ID, INT64, 1, &uid);
    VGK_DNN_SET(g, d, TENSOR_BYTE_ALIGNMENT, INT64, 1, &s->align);
    if (by_value)
        VGK_DNN_SET(g, d, TENSOR_IS_BY_VALUE, BOOLEAN, 1, &yes);
    else if (uid > VGK_DNN_TENSORS)
        VGK_DNN_SET(g, d, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &yes);
    vgk_dnn_finish(g, d, "finalize(tensor)");
    return d;
}

static desc bound(struct vgk_dnn_graph *g, const struct shape *s, struct vgk_dnn_binding b)
{
    if (g->n_bindings == VGK_DNN_TENSORS)
        decline(g, "too many tensors");
    if (g->status)
        return NULL;
    b.align = (int)s->align;
    g->binding[g->n_bindings++] = b;
    return tensor(g, s, g->n_bindings, b.source == VGK_DNN_SCALAR);
}

static desc in(struct vgk_dnn_graph *g, const struct shape *s, int index)
{
    return bound(g, s, (struct vgk_dnn_binding){.source = VGK_DNN_IN, .index = index});
}

static desc scalar(struct vgk_dnn_graph *g, int rank, float value)
{
    struct shape s = {.type = CUDNN_DATA_FLOAT, .n = rank, .align = sizeof value};
    for (int i = 0; i < rank; i++)
        s.dim[i] = s.stride[i] = 1;
    return bound(g, &s, (struct vgk_dnn_binding){.source = VGK_DNN_SCALAR, .scalar = value});
}

/* --- shapes --- */

static cudnnDataType_t type_of(enum vgk_type t) { return t == VGK_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT; }

/* Addresses of a dense tensor are its buffer's plus whole rows or pixels; of a part of the contiguous dimension (the
 * channels that a concatenation is made of) nothing is known but that elements are whole. */
static int64_t alignment(const struct vgk_tensor *t)
{
    int64_t each = vgk_type_bits(t->type) / 8, align = 16, least = INT64_MAX, run = 1;
    for (int i = 0; i < t->rank; i++) {
        if (t->dim[i] > 1 && t->stride[i] == 1)
            run = t->dim[i];
        if (t->dim[i] <= 1 || t->stride[i] <= 1)
            continue;
        least = t->stride[i] < least ? t->stride[i] : least;
        while (t->stride[i] * each % align)
            align /= 2;
    }
    return least < INT64_MAX && least > run ? each : align;
}

static bool shape_of(struct vgk_dnn_graph *g, const struct vgk_tensor *t, struct shape *s)
{
    *s = (struct shape){.type = type_of(t->type), .n = t->rank, .align = alignment(t)};
    if (t->type != VGK_F16 && t->type != VGK_F32)
        decline(g, "only f16 and f32");
    for (int i = 0; i < t->rank; i++) {
        s->dim[i] = t->dim[i];
        s->stride[i] = t->stride[i];
        if (t->stride[i] <= 0 && t->dim[i] > 1)
            decline(g, "a tensor that is repeated or read backwards");
        if (t->dim[i] == 1 && t->stride[i] <= 0)
            s->stride[i] = 1;
    }
    return !g->status;
}

/* Signals become images of one row. */
static void add_row(struct shape *s)
{
    if (s->n != 3)
        return;
    s->n = 4;
    s->dim[3] = s->dim[2];
    s->stride[3] = s->stride[2];
    s->dim[2] = 1;
    s->stride[2] = s->dim[3] * s->stride[3];
}

static bool image(struct vgk_dnn_graph *g, const struct vgk_tensor *t, struct shape *s)
{
    bool fine = shape_of(g, t, s);
    add_row(s);
    return fine;
}

/* One value a channel of pictures with n dimensions. */
static struct shape vector(cudnnDataType_t type, int n, int64_t count)
{
    struct shape s = {.type = type, .n = n, .align = 16};
    for (int i = 0; i < n; i++) {
        s.dim[i] = i == 1 ? count : 1;
        s.stride[i] = i == 1 ? 1 : count;
    }
    return s;
}

/* --- constants --- */

static bool is_given(const struct vgk_op *op, int i) { return i < op->n_in && op->in[i].type != VGK_NONE; }
static bool is_constant(const struct vgk_op *op, int i) { return is_given(op, i) && (op->constant >> i & 1); }

/* Room for a constant in `packed`, in the order that t's strides tell. */
static desc packed(struct vgk_dnn_graph *g, struct vgk_dnn_constant c, const struct shape *s)
{
    size_t bytes;
    if (g->status || g->n_constants == (int)(sizeof g->constant / sizeof *g->constant))
        return NULL;
    if (!vgk_tensor_bytes(&c.t, &bytes) || !vgk_add(g->packed, vgk_round_up(bytes, VGK_ALIGN), &bytes)) {
        decline(g, "constants that are too large");
        return NULL;
    }
    c.offset = g->packed;
    g->constant[g->n_constants++] = c;
    g->packed = bytes;
    return bound(g, s, (struct vgk_dnn_binding){.source = VGK_DNN_PACKED, .offset = c.offset});
}

/* A vector over the channels: a constant lies in `packed` in the activations' type, which more engines take; what may
 * change is read where it is. */
static desc channels(struct vgk_dnn_graph *g, const struct vgk_op *op, int index, cudnnDataType_t type,
                     const struct shape *picture, float factor)
{
    int64_t count = picture->dim[1];
    if (is_constant(op, index)) {
        struct shape s = vector(type, picture->n, count);
        struct vgk_dnn_constant c = {.input = index, .factor = factor};
        c.t = vgk_tensor_make(type == CUDNN_DATA_HALF ? VGK_F16 : VGK_F32, 1, &count, VGK_ROW_MAJOR);
        return packed(g, c, &s);
    }
    struct shape s = vector(type_of(op->in[index].type), picture->n, count);
    s.align = vgk_type_bits(op->in[index].type) / 8; /* a part of a longer vector, perhaps */
    if (op->in[index].type != VGK_F32 && op->in[index].type != VGK_F16)
        decline(g, "a vector that is neither f16 nor f32");
    return in(g, &s, index);
}

/* --- the chain of elementwise steps --- */

struct chain {
    struct vgk_dnn_graph *g;
    struct shape between; /* f32, packed, of the result's dimensions */
    desc result, at;      /* where it ends; where it is */
    int left;             /* steps to come: the last one writes the result */
};

static struct chain chain_begin(struct vgk_dnn_graph *g, const struct shape *result, int steps)
{
    struct chain c = {.g = g, .between = *result, .left = steps};
    c.between.type = CUDNN_DATA_FLOAT;
    c.between.align = 16;
    c.result = bound(g, result, (struct vgk_dnn_binding){.source = VGK_DNN_OUT});
    c.at = steps ? tensor(g, &c.between, ++g->uid, false) : c.result;
    return c;
}

static void operation(struct vgk_dnn_graph *g, desc op, const char *call)
{
    vgk_dnn_finish(g, op, call);
    if (!g->status && g->n_ops == VGK_DNN_OPS)
        decline(g, "too many operations");
    if (!g->status)
        g->ops[g->n_ops++] = op;
}

struct limits {
    bool lower_slope, upper;
    double slope, high;
};

static desc step(struct chain *c, cudnnPointwiseMode_t mode, desc x, desc b, const struct limits *l)
{
    struct vgk_dnn_graph *g = c->g;
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    desc kind = vgk_dnn_new(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    desc y = --c->left ? tensor(g, &c->between, ++g->uid, false) : c->result;
    VGK_DNN_SET(g, kind, POINTWISE_MODE, POINTWISE_MODE, 1, &mode);
    VGK_DNN_SET(g, kind, POINTWISE_MATH_PREC, DATA_TYPE, 1, &precision);
    if (l && l->lower_slope)
        VGK_DNN_SET(g, kind, POINTWISE_RELU_LOWER_CLIP_SLOPE, DOUBLE, 1, &l->slope);
    if (l && l->upper)
        VGK_DNN_SET(g, kind, POINTWISE_RELU_UPPER_CLIP, DOUBLE, 1, &l->high);
    vgk_dnn_finish(g, kind, "finalize(pointwise)");
    desc op = vgk_dnn_new(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    VGK_DNN_SET(g, op, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, 1, &kind);
    VGK_DNN_SET(g, op, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, 1, &x);
    if (b)
        VGK_DNN_SET(g, op, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, 1, &b);
    VGK_DNN_SET(g, op, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, 1, &y);
    operation(g, op, "finalize(pointwise operation)");
    return y;
}

static void next(struct chain *c, cudnnPointwiseMode_t mode, desc b) { c->at = step(c, mode, c->at, b, NULL); }

static int act_steps(enum vgk_act act, float alpha)
{
    return act == VGK_ACT_NONE ? 0 : act == VGK_ACT_PRELU ? 4 : act == VGK_ACT_CLIP && alpha != 0 ? 2 : 1;
}

static void activate(struct chain *c, const struct vgk_op *op)
{
    const struct vgk_conv *p = &op->p.conv;
    int rank = c->between.n;
    switch (p->act) {
    case VGK_ACT_NONE: break;
    case VGK_ACT_RELU: next(c, CUDNN_POINTWISE_RELU_FWD, NULL); break;
    case VGK_ACT_LEAKY_RELU:
        c->at = step(c, CUDNN_POINTWISE_RELU_FWD, c->at, NULL,
                     &(struct limits){.lower_slope = true, .slope = p->alpha});
        break;
    case VGK_ACT_CLIP:
        if (p->alpha == 0) {
            c->at = step(c, CUDNN_POINTWISE_RELU_FWD, c->at, NULL, &(struct limits){.upper = true, .high = p->beta});
            break;
        }
        next(c, CUDNN_POINTWISE_MAX, scalar(c->g, rank, p->alpha));
        next(c, CUDNN_POINTWISE_MIN, scalar(c->g, rank, p->beta));
        break;
    case VGK_ACT_SIGMOID: next(c, CUDNN_POINTWISE_SIGMOID_FWD, NULL); break;
    case VGK_ACT_TANH: next(c, CUDNN_POINTWISE_TANH_FWD, NULL); break;
    case VGK_ACT_SILU: next(c, CUDNN_POINTWISE_SWISH_FWD, NULL); break;
    case VGK_ACT_PRELU: { /* above + (x - above) * slope */
        cudnnDataType_t type = type_of(op->in[0].type);
        desc x = c->at, above = step(c, CUDNN_POINTWISE_RELU_FWD, x, NULL, NULL);
        desc below = step(c, CUDNN_POINTWISE_SUB, x, above, NULL);
        below = step(c, CUDNN_POINTWISE_MUL, below, channels(c->g, op, 4, type, &c->between, 1), NULL);
        c->at = step(c, CUDNN_POINTWISE_ADD, above, below, NULL);
        break;
    }
    default: decline(c->g, "an activation that is not known here");
    }
}

/* --- convolutions --- */

static desc convolution(struct vgk_dnn_graph *g, const struct vgk_conv *c)
{
    int64_t spatial = c->spatial < 2 ? 2 : c->spatial;
    int64_t before[3] = {0}, behind[3] = {0}, stride[3] = {1}, dilation[3] = {1};
    for (int i = 0, at = spatial - c->spatial; i < c->spatial; i++, at++) {
        before[at] = c->pad_begin[i];
        behind[at] = c->pad_end[i];
        stride[at] = c->stride[i];
        dilation[at] = c->dilation[i];
        if (c->pad_begin[i] < 0 || c->pad_end[i] < 0)
            decline(g, "negative padding");
    }
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    desc d = vgk_dnn_new(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    VGK_DNN_SET(g, d, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &precision);
    VGK_DNN_SET(g, d, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode);
    VGK_DNN_SET(g, d, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &spatial);
    VGK_DNN_SET(g, d, CONVOLUTION_PRE_PADDINGS, INT64, spatial, before);
    VGK_DNN_SET(g, d, CONVOLUTION_POST_PADDINGS, INT64, spatial, behind);
    VGK_DNN_SET(g, d, CONVOLUTION_FILTER_STRIDES, INT64, spatial, stride);
    VGK_DNN_SET(g, d, CONVOLUTION_DILATIONS, INT64, spatial, dilation);
    vgk_dnn_finish(g, d, "finalize(convolution)");
    return d;
}

static void forward(struct vgk_dnn_graph *g, desc kind, desc x, desc w, desc y)
{
    float one = 1, none = 0;
    desc op = vgk_dnn_new(g, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    VGK_DNN_SET(g, op, OPERATION_CONVOLUTION_FORWARD_CONV_DESC, BACKEND_DESCRIPTOR, 1, &kind);
    VGK_DNN_SET(g, op, OPERATION_CONVOLUTION_FORWARD_X, BACKEND_DESCRIPTOR, 1, &x);
    VGK_DNN_SET(g, op, OPERATION_CONVOLUTION_FORWARD_W, BACKEND_DESCRIPTOR, 1, &w);
    VGK_DNN_SET(g, op, OPERATION_CONVOLUTION_FORWARD_Y, BACKEND_DESCRIPTOR, 1, &y);
    VGK_DNN_SET(g, op, OPERATION_CONVOLUTION_FORWARD_ALPHA, FLOAT, 1, &one);
    VGK_DNN_SET(g, op, OPERATION_CONVOLUTION_FORWARD_BETA, FLOAT, 1, &none);
    operation(g, op, "finalize(convolution operation)");
}

/* A transposed convolution is the gradient of a convolution by its input: x is what came out of that one. */
static void transposed(struct vgk_dnn_graph *g, desc kind, desc x, desc w, desc y)
{
    float one = 1, none = 0;
    desc op = vgk_dnn_new(g, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
    VGK_DNN_SET(g, op, OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, BACKEND_DESCRIPTOR, 1, &kind);
    VGK_DNN_SET(g, op, OPERATION_CONVOLUTION_BWD_DATA_DY, BACKEND_DESCRIPTOR, 1, &x);
    VGK_DNN_SET(g, op, OPERATION_CONVOLUTION_BWD_DATA_W, BACKEND_DESCRIPTOR, 1, &w);
    VGK_DNN_SET(g, op, OPERATION_CONVOLUTION_BWD_DATA_DX, BACKEND_DESCRIPTOR, 1, &y);
    VGK_DNN_SET(g, op, OPERATION_CONVOLUTION_BWD_DATA_ALPHA, FLOAT, 1, &one);
    VGK_DNN_SET(g, op, OPERATION_CONVOLUTION_BWD_DATA_BETA, FLOAT, 1, &none);
    operation(g, op, "finalize(transposed convolution operation)");
}

static void build_conv(struct vgk_dnn_graph *g, const struct vgk_op *op)
{
    const struct vgk_conv *p = &op->p.conv;
    const struct vgk_tensor *weights = &op->in[1];
    struct shape x, y, residual, w;
    bool scale = is_given(op, 3), folded = !scale || is_constant(op, 3), has_residual = is_given(op, 5);
    if (p->pad_mode != VGK_PAD_CONSTANT)
        decline(g, "padding other than zeros");
    if (!is_constant(op, 1))
        decline(g, "weights that are not constant");
    if (!image(g, &op->in[0], &x) || !image(g, op->out, &y))
        return;
    if (has_residual && !image(g, &op->in[5], &residual))
        return;

    /* Weights lie as the pictures do: channels last, or first. */
    struct vgk_dnn_constant c = {.input = 1, .factor = 1, .scaled = scale && folded};
    bool last = x.stride[1] == 1 || x.dim[1] == 1;
    c.t = vgk_tensor_make(op->in[0].type, weights->rank, weights->dim, last ? VGK_CHANNELS_LAST : VGK_ROW_MAJOR);
    w = (struct shape){.type = x.type, .n = weights->rank, .align = 16};
    memcpy(w.dim, c.t.dim, sizeof w.dim);
    memcpy(w.stride, c.t.stride, sizeof w.stride);
    add_row(&w);
    if (last && weights->rank == 3)
        w.stride[2] = w.dim[3] * w.stride[3];

    int steps = !folded + is_given(op, 2) + has_residual + act_steps(p->act, p->alpha);
    struct chain chain = chain_begin(g, &y, steps);
    desc kind = convolution(g, p), from = in(g, &x, 0), by = packed(g, c, &w);
    if (op->kind == VGK_OP_CONV)
        forward(g, kind, from, by, chain.at);
    else
        transposed(g, kind, from, by, chain.at);
    if (!folded)
        next(&chain, CUDNN_POINTWISE_MUL, channels(g, op, 3, x.type, &y, 1));
    if (is_given(op, 2))
        next(&chain, CUDNN_POINTWISE_ADD, channels(g, op, 2, x.type, &y, 1));
    if (has_residual && p->residual_before_act)
        next(&chain, CUDNN_POINTWISE_ADD, in(g, &residual, 5));
    activate(&chain, op);
    if (has_residual && !p->residual_before_act)
        next(&chain, CUDNN_POINTWISE_ADD, in(g, &residual, 5));
}

/* --- products of matrices --- */

/* All dimensions but the last as one, `rows` elements apart; false when they are not evenly spaced. */
static bool rows_of(const struct vgk_tensor *t, int64_t *rows, int64_t *apart)
{
    struct vgk_tensor flat;
    int64_t dim[2] = {1, t->dim[t->rank - 1]};
    for (int i = 0; i < t->rank - 1; i++)
        dim[0] *= t->dim[i];
    if (!vgk_tensor_reshape(t, 2, dim, &flat) || (dim[1] > 1 && flat.stride[1] != 1))
        return false;
    *rows = dim[0];
    *apart = dim[0] > 1 ? flat.stride[0] : dim[1];
    return *apart >= dim[1];
}

/* A constant in[1] that is one matrix: a convolution of a row of pixels with K channels each. */
static bool build_linear(struct vgk_dnn_graph *g, const struct vgk_op *op)
{
    const struct vgk_tensor *a = &op->in[0], *b = &op->in[1], *y = op->out;
    int64_t rows, rows_y, apart_a, apart_y, K = b->dim[b->rank - 2], N = b->dim[b->rank - 1];
    float beta = op->p.matmul.beta;
    bool shift = is_given(op, 2) && beta != 0, one_row = shift;
    for (int i = 0; i < b->rank - 2; i++)
        if (b->dim[i] > 1 && b->stride[i] != 0)
            return false;
    if (!is_constant(op, 1) || a->type != y->type || !rows_of(a, &rows, &apart_a) || !rows_of(y, &rows_y, &apart_y))
        return false;
    for (int i = 0; shift && i < op->in[2].rank - 1; i++)
        one_row = one_row && (op->in[2].dim[i] == 1 || op->in[2].stride[i] == 0);
    if (shift && (!one_row || !is_constant(op, 2)))
        return false;

    struct shape x = {.type = type_of(a->type), .n = 4, .dim = {1, K, 1, rows}, .align = alignment(a),
                      .stride = {rows * apart_a, 1, rows * apart_a, apart_a}};
    struct shape out = {.type = x.type, .n = 4, .dim = {1, N, 1, rows}, .align = alignment(y),
                        .stride = {rows * apart_y, 1, rows * apart_y, apart_y}};
    struct shape w = {.type = x.type, .n = 4, .dim = {N, K, 1, 1}, .stride = {K, 1, K, K}, .align = 16};
    struct vgk_dnn_constant c = {.input = 1, .factor = op->p.matmul.alpha,
                                 .t = {.type = a->type, .rank = 2, .dim = {K, N}, .stride = {1, K}}};
    struct vgk_conv one = {.spatial = 2, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
    struct chain chain = chain_begin(g, &out, shift);
    forward(g, convolution(g, &one), in(g, &x, 0), packed(g, c, &w), chain.at);
    if (shift)
        next(&chain, CUDNN_POINTWISE_ADD, channels(g, op, 2, x.type, &out, beta));
    return true;
}

/* A matrix for each of the result's, as cuDNN wants them: [batch,rows,columns], batch 1 where one serves all. */
static bool matrices(struct vgk_dnn_graph *g, const struct vgk_tensor *t, const struct vgk_tensor *result,
                     struct shape *s)
{
    int64_t dim[VGK_MAX_RANK], flat[3] = {1, t->rank < 2 ? 1 : t->dim[t->rank - 2], t->dim[t->rank - 1]};
    struct vgk_tensor u;
    for (int i = 0; i < result->rank; i++) {
        dim[i] = i < result->rank - 2 ? result->dim[i] : flat[i - result->rank + 3];
        flat[0] *= i < result->rank - 2 ? dim[i] : 1;
    }
    if (!vgk_tensor_broadcast(t, result->rank, dim, &u) || !vgk_tensor_reshape(&u, 3, flat, &u)) {
        decline(g, "matrices that are not evenly spaced");
        return false;
    }
    if (u.stride[0] == 0 || u.dim[0] == 1) {
        u.dim[0] = 1;
        u.stride[0] = u.dim[1] * u.stride[1] > u.dim[2] * u.stride[2] ? u.dim[1] * u.stride[1] : u.dim[2] * u.stride[2];
    }
    return shape_of(g, &u, s);
}

static void build_matmul(struct vgk_dnn_graph *g, const struct vgk_op *op)
{
    const struct vgk_matmul *p = &op->p.matmul;
    struct shape a, b, c, y;
    if (build_linear(g, op) || g->status)
        return;
    bool sum = is_given(op, 2) && p->beta != 0;
    if (is_constant(op, 0) || is_constant(op, 1) || is_constant(op, 2))
        decline(g, "a product of a constant that is not a single matrix on the right");
    if (op->in[0].type != op->in[1].type || op->in[0].type != op->out->type)
        decline(g, "a product of different types");
    if (!matrices(g, &op->in[0], op->out, &a) || !matrices(g, &op->in[1], op->out, &b) ||
        !matrices(g, op->out, op->out, &y) || (sum && !matrices(g, &op->in[2], op->out, &c)))
        return;
    if (sum && p->beta != 1)
        decline(g, "a factor for the sum");
    struct chain chain = chain_begin(g, &y, (p->alpha != 1) + sum);
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    desc kind = vgk_dnn_new(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR), da = in(g, &a, 0), db = in(g, &b, 1);
    VGK_DNN_SET(g, kind, MATMUL_COMP_TYPE, DATA_TYPE, 1, &precision);
    vgk_dnn_finish(g, kind, "finalize(product)");
    desc d = vgk_dnn_new(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    VGK_DNN_SET(g, d, OPERATION_MATMUL_ADESC, BACKEND_DESCRIPTOR, 1, &da);
    VGK_DNN_SET(g, d, OPERATION_MATMUL_BDESC, BACKEND_DESCRIPTOR, 1, &db);
    VGK_DNN_SET(g, d, OPERATION_MATMUL_CDESC, BACKEND_DESCRIPTOR, 1, &chain.at);
    VGK_DNN_SET(g, d, OPERATION_MATMUL_DESC, BACKEND_DESCRIPTOR, 1, &kind);
    operation(g, d, "finalize(product operation)");
    if (p->alpha != 1)
        next(&chain, CUDNN_POINTWISE_MUL, scalar(g, 3, p->alpha));
    if (sum)
        next(&chain, CUDNN_POINTWISE_ADD, in(g, &c, 2));
}

/* --- attention --- */

static void build_attention(struct vgk_dnn_graph *g, const struct vgk_op *op)
{
    const struct vgk_attention *p = &op->p.attention;
    struct shape s[3], y;
    desc d[3];
    if (is_given(op, 3) || p->softcap != 0 || p->causal)
        decline(g, "attention with a mask, a cap or causal");
    for (int i = 0; i < 3; i++) {
        if (op->in[i].type != VGK_F16)
            decline(g, "attention that is not f16");
        if (is_constant(op, i))
            decline(g, "attention to a constant");
        if (!shape_of(g, &op->in[i], &s[i]))
            return;
    }
    if (!shape_of(g, op->out, &y))
        return;
    for (int i = 0; i < 3; i++)
        d[i] = in(g, &s[i], i);
    desc o = bound(g, &y, (struct vgk_dnn_binding){.source = VGK_DNN_OUT}), scale = scalar(g, 4, p->scale);
    desc node = vgk_dnn_new(g, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
    VGK_DNN_SET(g, node, OPERATION_SDPA_FWD_QDESC, BACKEND_DESCRIPTOR, 1, &d[0]);
    VGK_DNN_SET(g, node, OPERATION_SDPA_FWD_KDESC, BACKEND_DESCRIPTOR, 1, &d[1]);
    VGK_DNN_SET(g, node, OPERATION_SDPA_FWD_VDESC, BACKEND_DESCRIPTOR, 1, &d[2]);
    VGK_DNN_SET(g, node, OPERATION_SDPA_FWD_ODESC, BACKEND_DESCRIPTOR, 1, &o);
    VGK_DNN_SET(g, node, OPERATION_SDPA_FWD_SCALEDESC, BACKEND_DESCRIPTOR, 1, &scale);
    operation(g, node, "finalize(attention)");
}

/* --- the graph --- */

enum vgk_status vgk_dnn_graph_make(struct vgk_dnn_graph *g, const struct vgk_op *op)
{
    g->uid = VGK_DNN_TENSORS;
    switch (op->kind) {
    case VGK_OP_CONV:
    case VGK_OP_CONV_TRANSPOSE: build_conv(g, op); break;
    case VGK_OP_MATMUL: build_matmul(g, op); break;
    case VGK_OP_ATTENTION: build_attention(g, op); break;
    default: decline(g, "no product");
    }
    g->graph = vgk_dnn_new(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (g->dnn->handle)
        VGK_DNN_SET(g, g->graph, OPERATIONGRAPH_HANDLE, HANDLE, 1, &g->dnn->handle);
    VGK_DNN_SET(g, g->graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, g->n_ops, g->ops);
    vgk_dnn_finish(g, g->graph, "finalize(graph)");
    return g->status;
}

void vgk_dnn_graph_clear(struct vgk_dnn_graph *g)
{
    while (g->n_owned)
        g->dnn->BackendDestroyDescriptor(g->owned[--g->n_owned]);
}
