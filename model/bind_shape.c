/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operators that know their result from shapes and attributes alone. */
#include "bind_ops.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static enum vgk_status set_constant(struct binder *b, int v)
{
    if (v < 0)
        return fail(b, VGK_ERR_NOMEM, "no memory for the graph");
    binder_set(b, 0, v);
    return VGK_OK;
}

static enum vgk_status bind_shape(struct binder *b)
{
    const struct vgk_tensor t = binder_value(b, 0)->t;
    int64_t from = vg_node_int(b->node, "start", 0), to = vg_node_int(b->node, "end", t.rank);
    from = from < 0 ? from + t.rank : from;
    to = to < 0 ? to + t.rank : to;
    from = from < 0 ? 0 : from > t.rank ? t.rank : from;
    to = to < from ? from : to > t.rank ? t.rank : to;
    int64_t n = to - from;
    int v = vg_net_constant(b->net, binder_name(b, 0), VGK_I64, 1, &n);
    if (v >= 0)
        memcpy(b->net->values[v].t.data, t.dim + from, n * sizeof *t.dim);
    return set_constant(b, v);
}

static enum vgk_status bind_size(struct binder *b)
{
    int64_t n = vgk_tensor_count(&binder_value(b, 0)->t);
    int v = vg_net_constant(b->net, binder_name(b, 0), VGK_I64, 0, NULL);
    if (v >= 0)
        *(int64_t *)b->net->values[v].t.data = n;
    return set_constant(b, v);
}

static enum vgk_status bind_constant(struct binder *b)
{
    const struct vg_attribute *a;
    int64_t n;
    int v;
    if ((a = vg_node_attribute(b->node, "value")) && a->type == VG_ATTR_TENSOR) {
        struct vg_net_value c = {.name = binder_name(b, 0), .t = a->tensor, .buffer = -1, .constant = true,
                                 .axis = {-1, -1}, .num = {1, 1}, .den = {1, 1}};
        return set_constant(b, vg_net_value_add(b->net, &c));
    }
    if ((a = vg_node_attribute(b->node, "value_float"))) {
        if ((v = vg_net_constant(b->net, binder_name(b, 0), VGK_F32, 0, NULL)) >= 0)
            *(float *)b->net->values[v].t.data = a->f;
        return set_constant(b, v);
    }
    if ((a = vg_node_attribute(b->node, "value_int"))) {
        if ((v = vg_net_constant(b->net, binder_name(b, 0), VGK_I64, 0, NULL)) >= 0)
            *(int64_t *)b->net->values[v].t.data = a->i;
        return set_constant(b, v);
    }
    if ((a = vg_node_attribute(b->node, "value_floats"))) {
        n = (int64_t)a->n;
        if ((v = vg_net_constant(b->net, binder_name(b, 0), VGK_F32, 1, &n)) >= 0)
            memcpy(b->net->values[v].t.data, a->floats, a->n * sizeof(float));
        return set_constant(b, v);
    }
    if ((a = vg_node_attribute(b->node, "value_ints"))) {
        n = (int64_t)a->n;
        if ((v = vg_net_constant(b->net, binder_name(b, 0), VGK_I64, 1, &n)) >= 0)
            memcpy(b->net->values[v].t.data, a->ints, a->n * sizeof(int64_t));
        return set_constant(b, v);
    }
    return fail(b, VGK_ERR_UNSUPPORTED, "only tensors, integers and floats are supported as values");
}

static enum vgk_status bind_constant_of_shape(struct binder *b)
{
    int64_t dim[VGK_MAX_RANK];
    int n;
    enum vgk_status s = binder_ints(b, 0, dim, VGK_MAX_RANK, &n);
    if (s)
        return s;
    for (int i = 0; i < n; i++)
        if (dim[i] < 0)
            return fail(b, VGK_ERR_INVALID, "a size of %" PRId64, dim[i]);
    const struct vg_attribute *a = vg_node_attribute(b->node, "value");
    float zero = 0;
    struct vgk_tensor one = {.type = VGK_F32, .data = &zero};
    if (a && a->type == VG_ATTR_TENSOR && vgk_tensor_count(&a->tensor) == 1)
        one = a->tensor;
    /* One stored element, repeated by strides of 0. */
    int v = vg_net_constant(b->net, binder_name(b, 0), one.type, 0, NULL);
    if (v < 0)
        return set_constant(b, v);
    struct vgk_tensor *t = &b->net->values[v].t;
    memcpy(t->data, one.data, vgk_type_bits(one.type) / 8);
    t->rank = n;
    for (int i = 0; i < n; i++) {
        t->dim[i] = dim[i];
        t->stride[i] = 0;
    }
    return set_constant(b, v);
}

static enum vgk_status bind_range(struct binder *b)
{
    double x[3];
    int64_t n = 0;
    struct vg_operand in[3];
    for (int i = 0; i < 3; i++) {
        if (!binder_scalar(b, binder_in(b, i), &x[i]))
            return fail(b, VGK_ERR_UNSUPPORTED, "input %d must be a constant scalar", i);
        in[i] = vg_net_operand(b->net, binder_in(b, i));
        in[i].t.rank = 0;
    }
    if (x[2] == 0 || fabs((x[1] - x[0]) / x[2]) > 1e12)
        return fail(b, VGK_ERR_INVALID, "from %g to %g by %g", x[0], x[1], x[2]);
    n = (int64_t)ceil((x[1] - x[0]) / x[2]);
    n = n < 0 ? 0 : n;
    int v = binder_new(b, 0, in[0].t.type, 1, &n, NULL, 0);
    if (v < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand out = vg_net_operand(b->net, v);
    binder_set(b, 0, v);
    return binder_emit(b, &(struct vgk_op){.kind = VGK_OP_RANGE}, in, 3, &out);
}

/* The branch that is taken stands in the place of the node; nothing of the other is looked at. */
static enum vgk_status bind_if(struct binder *b)
{
    const struct vg_node *node = b->node;
    double taken;
    if (!binder_scalar(b, binder_in(b, 0), &taken))
        return fail(b, VGK_ERR_UNSUPPORTED, "its condition (%s) depends on %s, and only one of its branches can be "
                    "planned; compute both and choose with Where", binder_value(b, 0)->name,
                    binder_value(b, 0)->frame ? "the frame's contents" : "a parameter");
    const struct vg_attribute *a = vg_node_attribute(node, taken ? "then_branch" : "else_branch");
    if (!a || !a->graph || a->graph->n_outputs != node->n_out)
        return fail(b, VGK_ERR_INVALID, "its %s is missing, or has not its %d outputs",
                    taken ? "then_branch" : "else_branch", node->n_out);
    enum vgk_status s = binder_nodes(b, a->graph);
    b->node = node;
    for (int i = 0; i < node->n_out && !s; i++)
        binder_set(b, i, b->value_of[a->graph->outputs[i]]);
    return s;
}

const struct handler vg_handlers_shape[] = {
    {"If", bind_if, 0, 1, 1, -1},
    {"Shape", bind_shape, 0, 1, 1, 1},
    {"Size", bind_size, 0, 1, 1, 1},
    {"Constant", bind_constant, 0, 0, 0, 1},
    {"ConstantOfShape", bind_constant_of_shape, 0, 1, 1, 1},
    {"Range", bind_range, 0, 3, 3, 1},
    {NULL, NULL, 0, 0, 0, 0},
};
