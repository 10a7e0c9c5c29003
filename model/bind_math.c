/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operators that compute element by element, along axes, or by products. */
#include "bind_ops.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static enum vgk_status unary(struct binder *b, enum vgk_unary_fn fn, float alpha, float beta)
{
    int x = binder_in(b, 0);
    const struct vg_net_value *v = &b->net->values[x];
    struct vgk_op op = {.kind = VGK_OP_UNARY, .p.unary = {fn, alpha, beta}};
    bool tests = fn == VGK_NOT || fn == VGK_IS_NAN || fn == VGK_IS_INF;
    int y = binder_new(b, 0, tests ? VGK_BOOL : v->t.type, v->t.rank, v->t.dim, &x, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand in = vg_net_operand(b->net, x), out = vg_net_operand(b->net, y);
    binder_set(b, 0, y);
    return binder_emit(b, &op, &in, 1, &out);
}

static enum vgk_status bind_unary(struct binder *b) { return unary(b, binder_parameter(b), 0, 0); }

static enum vgk_status bind_activation(struct binder *b)
{
    enum vgk_unary_fn fn = binder_parameter(b);
    float alpha = fn == VGK_LEAKY_RELU ? 0.01f : fn == VGK_HARD_SIGMOID ? 0.2f : fn == VGK_SELU ? 1.67326319f : 1.0f;
    float beta = fn == VGK_SELU ? vg_node_float(b->node, "gamma", 1.05070102f) : vg_node_float(b->node, "beta", 0.5f);
    return unary(b, fn, vg_node_float(b->node, "alpha", alpha), beta);
}

static enum vgk_status bind_shrink(struct binder *b)
{
    return unary(b, VGK_SHRINK, vg_node_float(b->node, "lambd", 0.5f), vg_node_float(b->node, "bias", 0));
}

static enum vgk_status bind_is_inf(struct binder *b)
{
    return unary(b, VGK_IS_INF, (float)vg_node_int(b->node, "detect_negative", 1),
                 (float)vg_node_int(b->node, "detect_positive", 1));
}

static enum vgk_status bind_gelu(struct binder *b)
{
    const char *how = vg_node_string(b->node, "approximate", "none");
    return unary(b, strcmp(how, "tanh") ? VGK_GELU_ERF : VGK_GELU_TANH, 0, 0);
}

static enum vgk_status binary(struct binder *b, int output, enum vgk_binary_fn fn, int x, int y, int *result)
{
    int both[2] = {x, y}, rank;
    int64_t dim[VGK_MAX_RANK];
    struct vg_operand in[2];
    enum vgk_status s = binder_broadcast_dims(b, both, 2, &rank, dim);
    if (s || (s = binder_broadcast(b, x, rank, dim, &in[0])) || (s = binder_broadcast(b, y, rank, dim, &in[1])))
        return s;
    if (in[0].t.type != in[1].t.type && fn != VGK_POW)
        return fail(b, VGK_ERR_INVALID, "the inputs differ in type: %s and %s", vgk_type_name(in[0].t.type),
                    vgk_type_name(in[1].t.type));
    bool compares = fn >= VGK_EQUAL && fn <= VGK_XOR;
    int v = binder_new(b, output, compares ? VGK_BOOL : in[0].t.type, rank, dim, both, 2);
    if (v < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand out = vg_net_operand(b->net, v);
    *result = v;
    return binder_emit(b, &(struct vgk_op){.kind = VGK_OP_BINARY, .p.binary = {fn}}, in, 2, &out);
}

/* Before opset 7: the second input's dimensions stand from `axis` on, or (PRelu) from the channels on. */
static enum vgk_status place_second(struct binder *b, enum vgk_binary_fn fn, int *y)
{
    const struct vgk_tensor tx = binder_value(b, 0)->t;
    struct vg_operand o = vg_net_operand(b->net, *y);
    bool prelu = fn == VGK_PRELU && o.t.rank == 1 && o.t.dim[0] > 1;
    if (!prelu && (!vg_node_int(b->node, "broadcast", 0) || !vg_node_attribute(b->node, "axis")))
        return VGK_OK;
    int axis;
    enum vgk_status s = prelu ? (axis = 1, VGK_OK) : binder_axis(b, vg_node_int(b->node, "axis", 0), tx.rank, &axis);
    if (s)
        return s;
    while (axis + o.t.rank < tx.rank && o.t.rank < VGK_MAX_RANK) {
        o.t.dim[o.t.rank] = 1;
        o.t.stride[o.t.rank++] = 1;
    }
    *y = binder_view(b, 0, &o, b->net->values[*y].axis);
    return *y < 0 ? VGK_ERR_NOMEM : VGK_OK;
}

static enum vgk_status bind_binary(struct binder *b)
{
    int v, y = binder_in(b, 1);
    enum vgk_binary_fn fn = binder_parameter(b);
    if (fn == VGK_MOD && vg_node_int(b->node, "fmod", 0))
        fn = VGK_FMOD;
    enum vgk_status s = b->opset < 7 ? place_second(b, fn, &y) : VGK_OK;
    if (!s)
        s = binary(b, 0, fn, binder_in(b, 0), y, &v);
    if (!s)
        binder_set(b, 0, v);
    return s;
}

/* Sum, Min, Max, Mean of any number of inputs. */
static enum vgk_status bind_variadic(struct binder *b)
{
    enum vgk_binary_fn fn = binder_parameter(b);
    bool mean = !strcmp(b->node->type, "Mean");
    int v = binder_in(b, 0);
    for (int i = 1; i < b->node->n_in; i++) {
        enum vgk_status s = binary(b, 0, fn, v, binder_in(b, i), &v);
        if (s)
            return s;
    }
    if (mean && b->node->n_in > 1) {
        int n = vg_net_constant(b->net, "", b->net->values[v].t.type, 0, NULL);
        if (n < 0 || b->net->values[v].t.type != VGK_F32)
            return fail(b, VGK_ERR_UNSUPPORTED, "only of f32");
        *(float *)b->net->values[n].t.data = (float)b->node->n_in;
        enum vgk_status s = binary(b, 0, VGK_DIV, v, n, &v);
        if (s)
            return s;
    }
    binder_set(b, 0, v);
    return VGK_OK;
}

static enum vgk_status bind_clip(struct binder *b)
{
    double low = -INFINITY, high = INFINITY;
    enum vgk_type type = binder_value(b, 0)->t.type;
    if (b->opset < 11) {
        low = vg_node_float(b->node, "min", -INFINITY);
        high = vg_node_float(b->node, "max", INFINITY);
    } else {
        bool known = (binder_in(b, 1) < 0 || binder_scalar(b, binder_in(b, 1), &low)) &
                     (binder_in(b, 2) < 0 || binder_scalar(b, binder_in(b, 2), &high));
        if (!known || !vgk_type_is_float(type)) {
            int v = binder_in(b, 0);
            enum vgk_status s = VGK_OK;
            if (binder_in(b, 1) >= 0)
                s = binary(b, 0, VGK_MAX, v, binder_in(b, 1), &v);
            if (!s && binder_in(b, 2) >= 0)
                s = binary(b, 0, VGK_MIN, v, binder_in(b, 2), &v);
            binder_set(b, 0, v);
            return s;
        }
    }
    return unary(b, VGK_CLIP, (float)low, (float)high);
}

static enum vgk_status bind_where(struct binder *b)
{
    int in3[3] = {binder_in(b, 0), binder_in(b, 1), binder_in(b, 2)}, rank;
    int64_t dim[VGK_MAX_RANK];
    struct vg_operand in[3];
    enum vgk_status s = binder_broadcast_dims(b, in3, 3, &rank, dim);
    for (int i = 0; i < 3 && !s; i++)
        s = binder_broadcast(b, in3[i], rank, dim, &in[i]);
    if (s)
        return s;
    int v = binder_new(b, 0, in[1].t.type, rank, dim, in3, 3);
    if (v < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand out = vg_net_operand(b->net, v);
    binder_set(b, 0, v);
    return binder_emit(b, &(struct vgk_op){.kind = VGK_OP_WHERE}, in, 3, &out);
}

static enum vgk_status bind_cast(struct binder *b)
{
    static const char *const old[] = {"UNDEFINED", "FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64",
                                      "STRING", "BOOL", "FLOAT16", "DOUBLE", "UINT32", "UINT64", NULL};
    int x = binder_in(b, 0);
    enum vgk_type type;
    if (binder_parameter(b)) { /* CastLike */
        type = binder_value(b, 1)->t.type;
    } else {
        const char *name = vg_node_string(b->node, "to", ""); /* before opset 6 */
        int64_t to = b->opset < 6 ? binder_choice(name, old) : vg_node_int(b->node, "to", 0);
        type = binder_type(to);
        if (!type)
            return fail(b, VGK_ERR_UNSUPPORTED, "casts to ONNX type %" PRId64 "%s", to, name);
    }
    if (vgk_type_bits(type) < 8)
        return fail(b, VGK_ERR_UNSUPPORTED, "to %s: 4-bit types are for weights", vgk_type_name(type));
    const struct vg_net_value *v = &b->net->values[x];
    if (v->t.type == type) {
        binder_set(b, 0, x);
        return VGK_OK;
    }
    bool kept = false;
    enum vgk_status s = VGK_OK;
    if (type == VGK_F32 && (v->t.type == VGK_F16 || v->t.type == VGK_BF16) && (s = binder_keep(b, x, -1, -1, 0, 0, &kept)))
        return s;
    if (kept)
        return VGK_OK;
    v = &b->net->values[x];
    if (!v->constant && vg_bind_type(type) == vg_bind_type(v->t.type)) { /* the same in the net: see bind_widen.c */
        struct vg_operand o = vg_net_operand(b->net, x);
        o.t.type = type;
        int y = binder_view(b, 0, &o, v->axis);
        binder_set(b, 0, y);
        return y < 0 ? VGK_ERR_NOMEM : VGK_OK;
    }
    int y = binder_new(b, 0, type, v->t.rank, v->t.dim, &x, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand in = vg_net_operand(b->net, x), out = vg_net_operand(b->net, y);
    binder_set(b, 0, y);
    return binder_emit(b, &(struct vgk_op){.kind = VGK_OP_COPY}, &in, 1, &out);
}

/* --- along axes --- */

/* Gives a value other dims of the same number of elements; axes[] says where the frame's axes are then. */
static int reshaped(struct binder *b, int output, int v, int rank, const int64_t *dim, const int axis[VG_AXES])
{
    struct vg_operand o = vg_net_operand(b->net, v);
    if (!vgk_tensor_reshape(&o.t, rank, dim, &o.t))
        return -1;
    return binder_view(b, output, &o, axis);
}

static enum vgk_status bind_reduce(struct binder *b)
{
    int x = binder_in(b, 0), n;
    const struct vgk_tensor t = b->net->values[x].t;
    int64_t axes[VGK_MAX_RANK], dim[VGK_MAX_RANK];
    enum vgk_status s = binder_axes(b, "axes", 1, axes, VGK_MAX_RANK, &n);
    if (s)
        return s;
    struct vgk_op op = {.kind = VGK_OP_REDUCE, .p.reduce.fn = binder_parameter(b)};
    if (n <= 0 && vg_node_int(b->node, "noop_with_empty_axes", 0)) {
        binder_set(b, 0, x);
        return VGK_OK;
    }
    memcpy(dim, t.dim, sizeof dim);
    for (int i = 0; i < t.rank && n <= 0; i++)
        op.p.reduce.axes |= 1u << i;
    for (int i = 0; i < n; i++) {
        int a;
        if ((s = binder_axis(b, axes[i], t.rank, &a)))
            return s;
        op.p.reduce.axes |= 1u << a;
    }
    const int *frame_axis = b->net->values[x].axis;
    int keep[VG_AXES];
    for (int a = 0; a < VG_AXES; a++) {
        keep[a] = frame_axis[a];
        if (keep[a] >= 0 && op.p.reduce.axes >> keep[a] & 1) {
            if (t.dim[keep[a]] > 1)
                binder_global(b, "reduces over the whole frame");
            keep[a] = -1;
        }
    }
    for (int i = 0; i < t.rank; i++)
        if (op.p.reduce.axes >> i & 1)
            dim[i] = 1;
    int y = binder_new(b, 0, t.type, t.rank, dim, &x, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    memcpy(b->net->values[y].axis, keep, sizeof keep);
    struct vg_operand in = vg_net_operand(b->net, x), out = vg_net_operand(b->net, y);
    if ((s = binder_emit(b, &op, &in, 1, &out)))
        return s;
    if (!vg_node_int(b->node, "keepdims", 1)) {
        int64_t small[VGK_MAX_RANK];
        int rank = 0;
        for (int i = 0; i < t.rank; i++) {
            for (int a = 0; a < VG_AXES; a++)
                if (b->net->values[y].axis[a] == i)
                    keep[a] = rank;
            if (!(op.p.reduce.axes >> i & 1))
                small[rank++] = dim[i];
        }
        if ((y = reshaped(b, 0, y, rank, small, keep)) < 0)
            return VGK_ERR_NOMEM;
    }
    binder_set(b, 0, y);
    return VGK_OK;
}

static enum vgk_status bind_softmax(struct binder *b)
{
    int x = binder_in(b, 0), axis;
    struct vgk_tensor t = b->net->values[x].t;
    enum vgk_status s = binder_axis(b, vg_node_int(b->node, "axis", b->opset < 13 ? 1 : -1), t.rank, &axis);
    if (s)
        return s;
    int v = x, keep[VG_AXES];
    memcpy(keep, b->net->values[x].axis, sizeof keep);
    binder_mark_axes(b, x, b->opset < 13 ? ~0u << axis : 1u << axis, "is over the whole frame");
    bool flatten = b->opset < 13 && axis != t.rank - 1; /* the old form: everything behind the axis is one */
    if (flatten) {
        int64_t two[2] = {1, 1};
        for (int i = 0; i < t.rank; i++)
            two[i >= axis] *= t.dim[i];
        if ((s = binder_dense(b, &v, VGK_ROW_MAJOR)))
            return s;
        if ((v = reshaped(b, 0, v, 2, two, (int[VG_AXES]){-1, -1})) < 0)
            return VGK_ERR_NOMEM;
        axis = 1;
    }
    struct vgk_op op = {.kind = VGK_OP_SOFTMAX, .p.softmax = {axis, binder_parameter(b)}};
    struct vgk_tensor tv = b->net->values[v].t;
    int y = binder_new(b, 0, t.type, tv.rank, tv.dim, &v, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand in = vg_net_operand(b->net, v), out = vg_net_operand(b->net, y);
    if ((s = binder_emit(b, &op, &in, 1, &out)))
        return s;
    if (flatten && (y = reshaped(b, 0, y, t.rank, t.dim, keep)) < 0)
        return VGK_ERR_NOMEM;
    binder_set(b, 0, y);
    return VGK_OK;
}

/* --- norms --- */

static enum vgk_status norm(struct binder *b, const struct vgk_norm *p, int x, int scale, int bias)
{
    struct vg_operand in[4] = {vg_net_operand(b->net, x), vg_net_operand(b->net, scale), vg_net_operand(b->net, bias),
                               vg_net_operand(b->net, -1)};
    const struct vg_net_value *v = &b->net->values[x];
    int y = binder_new(b, 0, v->t.type, v->t.rank, v->t.dim, &x, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand out = vg_net_operand(b->net, y);
    binder_set(b, 0, y);
    return binder_emit(b, &(struct vgk_op){.kind = VGK_OP_NORM, .p.norm = *p}, in, 4, &out);
}

static enum vgk_status check_channels(struct binder *b, int i, int64_t channels)
{
    const struct vg_net_value *v = binder_value(b, i);
    if (v && (v->t.rank != 1 || v->t.dim[0] != channels))
        return fail(b, VGK_ERR_INVALID, "input %d must have %" PRId64 " values", i, channels);
    return VGK_OK;
}

/* A value a group, as GroupNormalization had before opset 21, repeated for each of the group's channels. */
static enum vgk_status each_channel(struct binder *b, int *v, int64_t channels)
{
    struct vg_operand in = vg_net_operand(b->net, *v);
    int64_t dim[2] = {in.t.dim[0], channels / in.t.dim[0]};
    int y = binder_new(b, 0, in.t.type, 2, dim, v, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand out = vg_net_operand(b->net, y);
    in.t = (struct vgk_tensor){in.t.type, 2, {dim[0], dim[1]}, {in.t.stride[0], 0}, in.t.data};
    enum vgk_status s = binder_emit(b, &(struct vgk_op){.kind = VGK_OP_COPY}, &in, 1, &out);
    if (s)
        return s;
    *v = reshaped(b, 0, y, 1, &channels, (int[VG_AXES]){-1, -1});
    return *v < 0 ? VGK_ERR_NOMEM : VGK_OK;
}

static enum vgk_status bind_channel_norm(struct binder *b)
{
    struct vgk_norm p = {.kind = binder_parameter(b), .epsilon = vg_node_float(b->node, "epsilon", 1e-5f)};
    const struct vgk_tensor *t = &binder_value(b, 0)->t;
    enum vgk_status s;
    if (t->rank < 3)
        return fail(b, VGK_ERR_INVALID, "the first input must be [N,C,...]");
    p.groups = (int)vg_node_int(b->node, "num_groups", 1);
    if (p.kind == VGK_NORM_GROUP && (p.groups < 1 || t->dim[1] % p.groups))
        return fail(b, VGK_ERR_INVALID, "num_groups %d does not divide %" PRId64 " channels", p.groups, t->dim[1]);
    bool by_group = p.kind == VGK_NORM_GROUP && b->opset < 21;
    int64_t channels = t->dim[1], gains = by_group ? p.groups : channels;
    int gain = binder_in(b, 1), shift = binder_in(b, 2);
    if ((s = check_channels(b, 1, gains)) || (s = check_channels(b, 2, gains)))
        return s;
    if (by_group && ((s = each_channel(b, &gain, channels)) || (s = each_channel(b, &shift, channels))))
        return s;
    binder_mark_axes(b, binder_in(b, 0), ~3u, "takes its statistics over the whole frame");
    return norm(b, &p, binder_in(b, 0), gain, shift);
}

static enum vgk_status bind_layer_norm(struct binder *b)
{
    struct vgk_norm p = {.kind = binder_parameter(b), .epsilon = vg_node_float(b->node, "epsilon", 1e-5f)};
    const struct vgk_tensor *t = &binder_value(b, 0)->t;
    enum vgk_status s = binder_axis(b, vg_node_int(b->node, "axis", -1), t->rank, &p.axis);
    if (s)
        return s;
    for (int i = 1; i < 3; i++) {
        const struct vg_net_value *v = binder_value(b, i);
        struct vgk_tensor wide;
        if (v && !vgk_tensor_broadcast(&v->t, t->rank - p.axis, t->dim + p.axis, &wide))
            return fail(b, VGK_ERR_INVALID, "input %d does not fit the normalised dimensions", i);
    }
    binder_mark_axes(b, binder_in(b, 0), ~0u << p.axis, "takes its statistics over the whole frame");
    return norm(b, &p, binder_in(b, 0), binder_in(b, 1), binder_in(b, 2));
}

/* x * a + b with a = scale / sqrt(var + eps): constants then, and the fuser folds them into a convolution. */
static enum vgk_status bind_batch_norm(struct binder *b)
{
    const struct vgk_tensor *t = &binder_value(b, 0)->t;
    int64_t c = t->rank > 1 ? t->dim[1] : 1, dim[VGK_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    enum vgk_status s;
    if (vg_node_int(b->node, "training_mode", 0) || (b->opset < 9 && !vg_node_int(b->node, "spatial", 1)) ||
        (b->opset < 7 && !vg_node_int(b->node, "is_test", 0)))
        return fail(b, VGK_ERR_UNSUPPORTED, "in training mode; export the model in evaluation mode (model.eval())");
    if (t->rank < 2 || t->type != VGK_F32)
        return fail(b, VGK_ERR_UNSUPPORTED, "of other than f32 [N,C,...]");
    int rank = t->rank, scale, shift;
    for (int i = 1; i < 5; i++) {
        if ((s = check_channels(b, i, c)))
            return s;
        if (!binder_value(b, i) || !binder_value(b, i)->constant || binder_value(b, i)->t.type != VGK_F32)
            return fail(b, VGK_ERR_UNSUPPORTED, "input %d must be f32 constants", i);
    }
    dim[1] = c;
    if ((scale = vg_net_constant(b->net, binder_name(b, 0), VGK_F32, rank, dim)) < 0 ||
        (shift = vg_net_constant(b->net, binder_name(b, 0), VGK_F32, rank, dim)) < 0)
        return fail(b, VGK_ERR_NOMEM, "no memory for the graph");
    const float *gamma = binder_value(b, 1)->t.data, *beta = binder_value(b, 2)->t.data,
                *mean = binder_value(b, 3)->t.data, *var = binder_value(b, 4)->t.data;
    double eps = vg_node_float(b->node, "epsilon", 1e-5f);
    for (int64_t i = 0; i < c; i++) {
        double a = gamma[i] / sqrt(var[i] + eps);
        ((float *)b->net->values[scale].t.data)[i] = (float)a;
        ((float *)b->net->values[shift].t.data)[i] = (float)(beta[i] - mean[i] * a);
    }
    int v;
    if ((s = binary(b, 0, VGK_MUL, binder_in(b, 0), scale, &v)) || (s = binary(b, 0, VGK_ADD, v, shift, &v)))
        return s;
    binder_set(b, 0, v);
    return VGK_OK;
}

/* --- products --- */

/* in: [VGK_CONV_INPUTS]; transposed: in[1] is seen with its dimensions swapped. */
static enum vgk_status matmul(struct binder *b, struct vg_operand *in, bool transposed, const struct vgk_matmul *p)
{
    struct vgk_tensor *x = &in[0].t, *y = &in[1].t;
    bool vector_x = x->rank == 1, vector_y = y->rank == 1;
    enum vgk_status s;
    int64_t dim[VGK_MAX_RANK], batch[VGK_MAX_RANK];
    if (x->rank < 1 || y->rank < 1)
        return fail(b, VGK_ERR_INVALID, "of a scalar");
    if (vector_x) {
        *x = (struct vgk_tensor){x->type, 2, {1, x->dim[0]}, {1, x->stride[0]}, x->data};
    }
    if (vector_y) {
        *y = (struct vgk_tensor){y->type, 2, {y->dim[0], 1}, {y->stride[0], 1}, y->data};
    }
    if (x->dim[x->rank - 1] != y->dim[y->rank - 2])
        return fail(b, VGK_ERR_INVALID, "%" PRId64 " columns against %" PRId64 " rows", x->dim[x->rank - 1],
                    y->dim[y->rank - 2]);
    int rank = x->rank > y->rank ? x->rank : y->rank;
    for (int i = 0; i < rank - 2; i++) {
        int xi = i - (rank - x->rank), yi = i - (rank - y->rank);
        int64_t xd = xi >= 0 ? x->dim[xi] : 1, yd = yi >= 0 ? y->dim[yi] : 1;
        if (xd != yd && xd != 1 && yd != 1)
            return fail(b, VGK_ERR_INVALID, "the batches do not broadcast");
        batch[i] = xd == 1 ? yd : xd;
    }
    memcpy(dim, batch, sizeof dim);
    int64_t m = x->dim[x->rank - 2], k = x->dim[x->rank - 1], n = y->dim[y->rank - 1];
    dim[rank - 2] = m;
    dim[rank - 1] = k;
    if (!vgk_tensor_broadcast(x, rank, dim, x))
        return fail(b, VGK_ERR_INVALID, "the batches do not broadcast");
    dim[rank - 2] = k;
    dim[rank - 1] = n;
    if (!vgk_tensor_broadcast(y, rank, dim, y))
        return fail(b, VGK_ERR_INVALID, "the batches do not broadcast");
    dim[rank - 2] = m;
    for (int i = 0; i < 2; i++) {
        const struct vg_net_value *v = &b->net->values[in[i].value];
        int contracted = v->t.rank - (i == 0 || v->t.rank < 2 ? 1 : 2);
        binder_mark_axes(b, in[i].value, 1u << contracted, "multiplies over the whole frame");
    }
    int likes[2] = {in[0].value, in[1].value};
    int v = binder_new(b, 0, x->type, rank, dim, likes, 2);
    if (v < 0)
        return VGK_ERR_NOMEM;
    /* The frame's axes survive in rows (of the first) and columns (of the second), not where the sum ran. */
    const struct vg_net_value *vx = &b->net->values[in[0].value];
    for (int a = 0; a < VG_AXES; a++)
        if (vx->axis[a] >= 0 && vx->axis[a] == vx->t.rank - 1)
            b->net->values[v].axis[a] = -1;
    if (in[2].value >= 0 && !vgk_tensor_broadcast(&in[2].t, rank, dim, &in[2].t))
        return fail(b, VGK_ERR_INVALID, "the third input does not broadcast to the product");
    struct vg_operand out = vg_net_operand(b->net, v);
    int n_in = binder_weights(b, in, 3, rank, transposed);
    if ((s = binder_emit(b, &(struct vgk_op){.kind = VGK_OP_MATMUL, .p.matmul = *p}, in, n_in, &out)))
        return s;
    if (vector_x || vector_y) {
        int64_t small[VGK_MAX_RANK];
        int r = 0, keep[VG_AXES] = {-1, -1};
        for (int i = 0; i < rank; i++)
            if (!(vector_x && i == rank - 2) && !(vector_y && i == rank - 1)) {
                for (int a = 0; a < VG_AXES; a++)
                    if (b->net->values[v].axis[a] == i)
                        keep[a] = r;
                small[r++] = dim[i];
            }
        if ((v = reshaped(b, 0, v, r, small, keep)) < 0)
            return VGK_ERR_NOMEM;
    }
    binder_set(b, 0, v);
    return VGK_OK;
}

static enum vgk_status bind_matmul(struct binder *b)
{
    struct vg_operand in[VGK_CONV_INPUTS] = {vg_net_operand(b->net, binder_in(b, 0)),
                                             vg_net_operand(b->net, binder_in(b, 1)), vg_net_operand(b->net, -1)};
    return matmul(b, in, false, &(struct vgk_matmul){1, 0});
}

static enum vgk_status bind_gemm(struct binder *b)
{
    struct vg_operand in[VGK_CONV_INPUTS];
    static const int swap[2] = {1, 0};
    for (int i = 0; i < 3; i++) {
        in[i] = vg_net_operand(b->net, binder_in(b, i));
        if (i < 2 && in[i].t.rank != 2)
            return fail(b, VGK_ERR_INVALID, "input %d must be a matrix", i);
        if (i < 2 && vg_node_int(b->node, i ? "transB" : "transA", 0))
            in[i].t = vgk_tensor_permute(&in[i].t, swap);
    }
    return matmul(b, in, vg_node_int(b->node, "transB", 0),
                  &(struct vgk_matmul){vg_node_float(b->node, "alpha", 1), vg_node_float(b->node, "beta", 1)});
}

const struct handler vg_handlers_math[] = {
    {"Relu", bind_unary, VGK_RELU, 1, 1, 1},
    {"Sigmoid", bind_unary, VGK_SIGMOID, 1, 1, 1},
    {"Tanh", bind_unary, VGK_TANH, 1, 1, 1},
    {"Softplus", bind_unary, VGK_SOFTPLUS, 1, 1, 1},
    {"HardSwish", bind_unary, VGK_HARD_SWISH, 1, 1, 1},
    {"Mish", bind_unary, VGK_MISH, 1, 1, 1},
    {"Neg", bind_unary, VGK_NEG, 1, 1, 1},
    {"Abs", bind_unary, VGK_ABS, 1, 1, 1},
    {"Sqrt", bind_unary, VGK_SQRT, 1, 1, 1},
    {"Reciprocal", bind_unary, VGK_RECIPROCAL, 1, 1, 1},
    {"Exp", bind_unary, VGK_EXP, 1, 1, 1},
    {"Log", bind_unary, VGK_LOG, 1, 1, 1},
    {"Erf", bind_unary, VGK_ERF, 1, 1, 1},
    {"Sin", bind_unary, VGK_SIN, 1, 1, 1},
    {"Cos", bind_unary, VGK_COS, 1, 1, 1},
    {"Floor", bind_unary, VGK_FLOOR, 1, 1, 1},
    {"Ceil", bind_unary, VGK_CEIL, 1, 1, 1},
    {"Round", bind_unary, VGK_ROUND, 1, 1, 1},
    {"Sign", bind_unary, VGK_SIGN, 1, 1, 1},
    {"Not", bind_unary, VGK_NOT, 1, 1, 1},
    {"IsNaN", bind_unary, VGK_IS_NAN, 1, 1, 1},
    {"LeakyRelu", bind_activation, VGK_LEAKY_RELU, 1, 1, 1},
    {"Elu", bind_activation, VGK_ELU, 1, 1, 1},
    {"HardSigmoid", bind_activation, VGK_HARD_SIGMOID, 1, 1, 1},
    {"Celu", bind_activation, VGK_CELU, 1, 1, 1},
    {"Selu", bind_activation, VGK_SELU, 1, 1, 1},
    {"ThresholdedRelu", bind_activation, VGK_THRESHOLDED_RELU, 1, 1, 1},
    {"Swish", bind_activation, VGK_SWISH, 1, 1, 1},
    {"Softsign", bind_unary, VGK_SOFTSIGN, 1, 1, 1},
    {"Shrink", bind_shrink, 0, 1, 1, 1},
    {"IsInf", bind_is_inf, 0, 1, 1, 1},
    {"Tan", bind_unary, VGK_TAN, 1, 1, 1},
    {"Asin", bind_unary, VGK_ASIN, 1, 1, 1},
    {"Acos", bind_unary, VGK_ACOS, 1, 1, 1},
    {"Atan", bind_unary, VGK_ATAN, 1, 1, 1},
    {"Sinh", bind_unary, VGK_SINH, 1, 1, 1},
    {"Cosh", bind_unary, VGK_COSH, 1, 1, 1},
    {"Asinh", bind_unary, VGK_ASINH, 1, 1, 1},
    {"Acosh", bind_unary, VGK_ACOSH, 1, 1, 1},
    {"Atanh", bind_unary, VGK_ATANH, 1, 1, 1},
    {"Gelu", bind_gelu, 0, 1, 1, 1},
    {"Clip", bind_clip, 0, 1, 3, 1},
    {"Add", bind_binary, VGK_ADD, 2, 2, 1},
    {"Sub", bind_binary, VGK_SUB, 2, 2, 1},
    {"Mul", bind_binary, VGK_MUL, 2, 2, 1},
    {"Div", bind_binary, VGK_DIV, 2, 2, 1},
    {"Pow", bind_binary, VGK_POW, 2, 2, 1},
    {"Mod", bind_binary, VGK_MOD, 2, 2, 1},
    {"PRelu", bind_binary, VGK_PRELU, 2, 2, 1},
    {"Equal", bind_binary, VGK_EQUAL, 2, 2, 1},
    {"Less", bind_binary, VGK_LESS, 2, 2, 1},
    {"LessOrEqual", bind_binary, VGK_LESS_EQUAL, 2, 2, 1},
    {"Greater", bind_binary, VGK_GREATER, 2, 2, 1},
    {"GreaterOrEqual", bind_binary, VGK_GREATER_EQUAL, 2, 2, 1},
    {"And", bind_binary, VGK_AND, 2, 2, 1},
    {"Or", bind_binary, VGK_OR, 2, 2, 1},
    {"Xor", bind_binary, VGK_XOR, 2, 2, 1},
    {"Max", bind_variadic, VGK_MAX, 1, -1, 1},
    {"Min", bind_variadic, VGK_MIN, 1, -1, 1},
    {"Sum", bind_variadic, VGK_ADD, 1, -1, 1},
    {"Mean", bind_variadic, VGK_ADD, 1, -1, 1},
    {"Where", bind_where, 0, 3, 3, 1},
    {"Cast", bind_cast, 0, 1, 1, 1},
    {"CastLike", bind_cast, 1, 2, 2, 1},
    {"ReduceSum", bind_reduce, VGK_REDUCE_SUM, 1, 2, 1},
    {"ReduceMean", bind_reduce, VGK_REDUCE_MEAN, 1, 2, 1},
    {"ReduceMax", bind_reduce, VGK_REDUCE_MAX, 1, 2, 1},
    {"ReduceMin", bind_reduce, VGK_REDUCE_MIN, 1, 2, 1},
    {"ReduceProd", bind_reduce, VGK_REDUCE_PROD, 1, 2, 1},
    {"ReduceL1", bind_reduce, VGK_REDUCE_L1, 1, 2, 1},
    {"ReduceL2", bind_reduce, VGK_REDUCE_L2, 1, 2, 1},
    {"ReduceSumSquare", bind_reduce, VGK_REDUCE_SUM_SQUARE, 1, 2, 1},
    {"ReduceLogSum", bind_reduce, VGK_REDUCE_LOG_SUM, 1, 2, 1},
    {"ReduceLogSumExp", bind_reduce, VGK_REDUCE_LOG_SUM_EXP, 1, 2, 1},
    {"Softmax", bind_softmax, false, 1, 1, 1},
    {"LogSoftmax", bind_softmax, true, 1, 1, 1},
    {"InstanceNormalization", bind_channel_norm, VGK_NORM_INSTANCE, 3, 3, 1},
    {"GroupNormalization", bind_channel_norm, VGK_NORM_GROUP, 3, 3, 1},
    {"LayerNormalization", bind_layer_norm, VGK_NORM_LAYER, 2, 3, 1},
    {"RMSNormalization", bind_layer_norm, VGK_NORM_RMS, 2, 2, 1},
    {"BatchNormalization", bind_batch_norm, 0, 5, 5, 1},
    {"MatMul", bind_matmul, 0, 2, 2, 1},
    {"Gemm", bind_gemm, 0, 2, 3, 1},
    {NULL, NULL, 0, 0, 0, 0},
};
