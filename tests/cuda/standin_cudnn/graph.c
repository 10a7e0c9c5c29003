/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Do the shapes fit, is everything written before it is read. */
#include "standin_cudnn.h"

/* `small` is what a convolution makes of `large`: a transposed one goes the other way. */
static const char *check_conv(const struct descriptor *kind, const struct tensor *large, const struct tensor *w,
                              const struct tensor *small)
{
    int64_t n = *(const int64_t *)attribute_of(kind, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, NULL), counts[4];
    const int64_t *before = attribute_of(kind, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, &counts[0]),
                  *behind = attribute_of(kind, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, &counts[1]),
                  *stride = attribute_of(kind, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, &counts[2]),
                  *dilation = attribute_of(kind, CUDNN_ATTR_CONVOLUTION_DILATIONS, &counts[3]);
    if (!large || !w || !small || large->n != n + 2 || w->n != n + 2 || small->n != n + 2)
        return "tensors of the convolution's dimensions";
    for (int i = 0; i < 4; i++)
        if (counts[i] != n)
            return "a value for each of the convolution's dimensions";
    if (large->dim[0] != small->dim[0] || large->dim[1] % w->dim[1] || small->dim[1] != w->dim[0] ||
        w->dim[0] % (large->dim[1] / w->dim[1]))
        return "channels that fit the weights";
    for (int i = 0; i < n; i++) {
        int64_t reach = dilation[i] * (w->dim[2 + i] - 1) + 1, room = large->dim[2 + i] + before[i] + behind[i] - reach;
        if (before[i] < 0 || behind[i] < 0 || stride[i] < 1 || dilation[i] < 1 || room < 0 ||
            small->dim[2 + i] != room / stride[i] + 1)
            return "is_valid_spatial_dim: a size that fits kernel, stride and padding";
    }
    return NULL;
}

static const char *check_pointwise(const struct descriptor *op)
{
    const struct tensor *x = tensor_of(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
                        *b = tensor_of(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
                        *y = tensor_of(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    int mode = *(const cudnnPointwiseMode_t *)attribute_of(part_of(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
                                                           CUDNN_ATTR_POINTWISE_MODE, NULL);
    bool two = mode < CUDNN_POINTWISE_ABS && mode != CUDNN_POINTWISE_SQRT;
    if (!x || !y || x->n != y->n || two != !!b || (b && b->n != y->n))
        return "operands of the function, of the same number of dimensions";
    for (int i = 0; i < y->n; i++)
        if (x->dim[i] != y->dim[i] || (b && b->dim[i] != 1 && b->dim[i] != y->dim[i]))
            return "operands of the result's dimensions, the second one may have 1";
    return NULL;
}

static const char *check_matmul(const struct descriptor *op)
{
    const struct tensor *a = tensor_of(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC),
                        *b = tensor_of(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC),
                        *c = tensor_of(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    if (!a || !b || !c || a->n != 3 || b->n != 3 || c->n != 3)
        return "matrices of three dimensions";
    if (a->dim[1] != c->dim[1] || a->dim[2] != b->dim[1] || b->dim[2] != c->dim[2])
        return "matrices that fit each other";
    if ((a->dim[0] != 1 && a->dim[0] != c->dim[0]) || (b->dim[0] != 1 && b->dim[0] != c->dim[0]))
        return "as many matrices as results, or one";
    return NULL;
}

static const char *check_attention(const struct descriptor *op)
{
    const struct tensor *q = tensor_of(op, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC),
                        *k = tensor_of(op, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC),
                        *v = tensor_of(op, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC),
                        *o = tensor_of(op, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC),
                        *scale = tensor_of(op, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC);
    if (!q || !k || !v || !o || q->n != 4 || k->n != 4 || v->n != 4 || o->n != 4)
        return "queries, keys, values and results of four dimensions";
    if (!scale || !scale->by_value)
        return "a scale by value";
    if (q->dim[0] != k->dim[0] || q->dim[0] != v->dim[0] || q->dim[0] != o->dim[0] || q->dim[1] % k->dim[1] ||
        k->dim[1] != v->dim[1] || o->dim[1] != q->dim[1] || q->dim[2] != o->dim[2] || k->dim[2] != v->dim[2] ||
        q->dim[3] != k->dim[3] || v->dim[3] != o->dim[3])
        return "queries, keys, values and results that fit each other";
    if (q->dim[3] % 8 || v->dim[3] % 8)
        return "heads of a multiple of 8";
    return NULL;
}

const char *check_operation(const struct descriptor *d)
{
    switch (d->type) {
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_MATMUL_DESCRIPTOR: return NULL;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return check_conv(part_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC),
                          tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X),
                          tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W),
                          tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y));
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return check_conv(part_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC),
                          tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX),
                          tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W),
                          tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY));
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: return check_pointwise(d);
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: return check_matmul(d);
    case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR: return check_attention(d);
    default: return "a descriptor that this one does not know";
    }
}

/* What an operation writes. */
const struct tensor *result_of(const struct descriptor *op)
{
    static const cudnnBackendAttributeName_t names[] = {
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
        CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (attribute_of(op, names[i], NULL))
            return tensor_of(op, names[i]);
    return NULL;
}

const char *check_graph(const struct descriptor *graph)
{
    int64_t n;
    struct descriptor *const *op = attribute_of(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, &n);
    const struct tensor *written[MOST_OPS];
    for (int i = 0; i < n; i++) {
        if (!(written[i] = result_of(op[i])))
            return "operations in a graph";
        if ((op[i]->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) != (i > 0))
            return "one product, then elementwise steps";
        if (i && !tensor_of(op[i], CUDNN_ATTR_OPERATION_POINTWISE_XDESC)->is_virtual)
            return "elementwise steps on the product";
        for (int k = 0; k < i; k++)
            if (written[k]->uid == written[i]->uid)
                return "a tensor that is written once";
        for (int a = 0; a < op[i]->n_attributes; a++) {
            const struct tensor *t = tensor_of(op[i], op[i]->attribute[a].name);
            bool found = !t || !t->is_virtual || t == written[i];
            for (int k = 0; k < i && !found; k++)
                found = written[k] == t;
            if (!found)
                return "a virtual tensor that is written before it is read";
        }
        if (written[i]->is_virtual == (i == n - 1))
            return "virtual results inside, a real one at the end";
    }
    return NULL;
}

size_t workspace_of(const struct descriptor *graph, int64_t *weights, int64_t *row)
{
    int64_t n, w_count = 0, length;
    struct descriptor *const *op = attribute_of(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, &n);
    const struct tensor *y = result_of(op[0]), *w = NULL;
    switch (op[0]->type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        w = tensor_of(op[0], CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
        length = y->dim[1];
        break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        w = tensor_of(op[0], CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
        length = y->dim[1];
        break;
    case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
        w_count = tensor_of(op[0], CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC)->dim[2];
        length = y->dim[3];
        break;
    default: length = y->dim[2]; break;
    }
    for (int i = 0; w && i < w->n; i++)
        w_count = (i ? w_count : 1) * w->dim[i];
    if (weights)
        *weights = w_count;
    if (row)
        *row = length;
    return (size_t)(w_count + n * length) * sizeof(float);
}
