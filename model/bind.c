/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bind_ops.h"

#include "arithmetic.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- handlers --- */

static const struct handler *const tables[] = {
    vg_handlers_attention, vg_handlers_index,  vg_handlers_math,  vg_handlers_move,
    vg_handlers_quantize,  vg_handlers_sample, vg_handlers_shape, vg_handlers_spatial,
};

static const struct handler *find(const char *type)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct handler *h = tables[t]; h->type; h++)
            if (!strcmp(h->type, type))
                return h;
    return NULL;
}

bool vg_bind_knows(const char *operator) { return find(operator); }

const char *vg_bind_operator(int i)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct handler *h = tables[t]; h->type; h++)
            if (!i--)
                return h->type;
    return NULL;
}

int binder_parameter(const struct binder *b) { return find(b->node->type)->parameter; }

enum vgk_status fail(struct binder *b, enum vgk_status status, const char *format, ...)
{
    if (b->err) {
        va_list args;
        va_start(args, format);
        vsnprintf(b->err->text, sizeof b->err->text, format, args);
        va_end(args);
    }
    return status;
}

/* --- inputs --- */

int binder_in(const struct binder *b, int i)
{
    if (i >= b->node->n_in || b->node->in[i] < 0)
        return -1;
    return b->value_of[b->node->in[i]];
}

const struct vg_net_value *binder_value(const struct binder *b, int i)
{
    int v = binder_in(b, i);
    return v < 0 ? NULL : &b->net->values[v];
}

const char *binder_name(const struct binder *b, int output)
{
    return output < b->node->n_out && b->node->out[output] >= 0 ? b->graph->values[b->node->out[output]].name : "";
}

void binder_set(struct binder *b, int output, int value)
{
    if (output < b->node->n_out && b->node->out[output] >= 0)
        b->value_of[b->node->out[output]] = value;
}

/* Element i of a dense row-major constant as int64 and as double. */
static bool element(const struct vgk_tensor *t, int64_t i, int64_t *n, double *x)
{
    switch (t->type) {
    case VGK_I64: *n = ((const int64_t *)t->data)[i]; break;
    case VGK_U64: *n = (int64_t)((const uint64_t *)t->data)[i]; break;
    case VGK_I32: *n = ((const int32_t *)t->data)[i]; break;
    case VGK_U32: *n = ((const uint32_t *)t->data)[i]; break;
    case VGK_I16: *n = ((const int16_t *)t->data)[i]; break;
    case VGK_U16: *n = ((const uint16_t *)t->data)[i]; break;
    case VGK_I8: *n = ((const int8_t *)t->data)[i]; break;
    case VGK_U8:
    case VGK_BOOL: *n = ((const uint8_t *)t->data)[i]; break;
    case VGK_F32: *x = ((const float *)t->data)[i]; *n = 0; return false;
    case VGK_F64: *x = ((const double *)t->data)[i]; *n = 0; return false;
    case VGK_F16: *x = (double)((const _Float16 *)t->data)[i]; *n = 0; return false;
    case VGK_BF16: {
        uint32_t bits = (uint32_t)((const uint16_t *)t->data)[i] << 16;
        float f;
        memcpy(&f, &bits, sizeof f);
        *x = f;
        *n = 0;
        return false;
    }
    default: *x = 0; *n = 0; return false;
    }
    *x = (double)*n;
    return true;
}

enum vgk_status binder_ints(struct binder *b, int i, int64_t *values, int max, int *n)
{
    int v = binder_in(b, i);
    *n = -1;
    if (v < 0)
        return VGK_OK;
    if (!b->net->values[v].constant)
        return fail(b, VGK_ERR_UNSUPPORTED, "input %d (%s) must be known before the run; it depends on %s", i,
                    b->net->values[v].name, b->net->values[v].frame ? "the frame's contents" : "a parameter");
    enum vgk_status s = binder_dense(b, &v, VGK_ROW_MAJOR);
    if (s)
        return s;
    const struct vgk_tensor *t = &b->net->values[v].t;
    int64_t count = vgk_tensor_count(t);
    if (count > max)
        return fail(b, VGK_ERR_INVALID, "input %d has %" PRId64 " values, at most %d make sense", i, count, max);
    for (int64_t k = 0; k < count; k++) {
        double x;
        if (!element(t, k, &values[k], &x))
            return fail(b, VGK_ERR_INVALID, "input %d must be integers, it is %s", i, vgk_type_name(t->type));
    }
    *n = (int)count;
    return VGK_OK;
}

enum vgk_status binder_axes(struct binder *b, const char *name, int i, int64_t *values, int max, int *n)
{
    const struct vg_attribute *a = vg_node_attribute(b->node, name);
    if (!a)
        return binder_ints(b, i, values, max, n);
    if (a->type == VG_ATTR_INT) {
        values[0] = a->i;
        *n = 1;
        return VGK_OK;
    }
    if (a->type != VG_ATTR_INTS || a->n > (size_t)max)
        return fail(b, VGK_ERR_INVALID, "attribute %s must be at most %d integers", name, max);
    memcpy(values, a->ints, a->n * sizeof *values);
    *n = (int)a->n;
    return VGK_OK;
}

bool binder_scalar(const struct binder *b, int value, double *x)
{
    int64_t n;
    if (value < 0 || !b->net->values[value].constant || vgk_tensor_count(&b->net->values[value].t) != 1)
        return false;
    element(&b->net->values[value].t, 0, &n, x);
    return true;
}

enum vgk_status binder_axis(struct binder *b, int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank)
        return fail(b, VGK_ERR_INVALID, "axis %" PRId64 " of a tensor of rank %d", axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return VGK_OK;
}

/* --- values and ops --- */

static enum vgk_status no_memory(struct binder *b, const struct vgk_tensor *t)
{
    char text[128];
    return fail(b, VGK_ERR_NOMEM, "no memory for %s", t ? vgk_tensor_describe(t, text, sizeof text) : "the graph");
}

int binder_new(struct binder *b, int output, enum vgk_type type, int rank, const int64_t *dim, const int *like,
               int n_like)
{
    struct vg_net_value model = {.axis = {-1, -1}, .num = {1, 1}, .den = {1, 1}};
    for (int i = 0; i < n_like; i++) {
        if (like[i] < 0)
            continue;
        const struct vg_net_value *v = &b->net->values[like[i]];
        model.frame |= v->frame;
        for (int a = 0; a < VG_AXES; a++)
            if (model.axis[a] < 0 && v->axis[a] >= 0) {
                model.axis[a] = v->axis[a] + rank - v->t.rank;
                model.num[a] = v->num[a];
                model.den[a] = v->den[a];
                model.fold[a] = v->fold[a];
            }
    }
    model.t.rank = rank;
    int v = vg_net_value_new(b->net, binder_name(b, output), type, rank, dim, &model);
    if (v < 0)
        no_memory(b, &(struct vgk_tensor){.type = type, .rank = 0});
    return v;
}

/* Scale of the output from an input's and the way the op reaches into it. */
static void set_scale(struct vg_net_value *out, const struct vg_net_value *in, const struct vg_operand *o)
{
    for (int a = 0; a < VG_AXES; a++) {
        if (in->axis[a] < 0 || out->axis[a] < 0)
            continue;
        int64_t n = in->num[a] * o->reach[a].den, d = in->den[a] * o->reach[a].num, g = vg_gcd(n, d);
        out->num[a] = g ? n / g : 1;
        out->den[a] = g ? d / g : 1;
    }
}

/* A large constant lies where the file has it, perhaps at no multiple of its size: kernels want a copy then. */
static bool align(struct binder *b, struct vgk_tensor *t)
{
    size_t each = (size_t)vgk_type_bits(t->type) / 8, bytes;
    if (t->type == VGK_NONE || !each || (uintptr_t)t->data % each == 0)
        return true;
    struct vgk_tensor dense = vgk_tensor_make(t->type, t->rank, t->dim, VGK_ROW_MAJOR);
    if (!vgk_tensor_bytes(&dense, &bytes) || !(dense.data = vg_arena_aligned(b->net->arena, bytes)))
        return false;
    int64_t n = vgk_tensor_count(t);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0, rest = i;
        for (int d = t->rank - 1; d >= 0; rest /= t->dim[d--])
            at += rest % t->dim[d] * t->stride[d];
        memcpy((char *)dense.data + (size_t)i * each, (const char *)t->data + at * (int64_t)each, each);
    }
    *t = dense;
    return true;
}

static enum vgk_status compute(struct binder *b, const struct vgk_op *proto, const struct vg_operand *in, int n_in,
                               const struct vg_operand *out)
{
    struct vg_net_value *v = &b->net->values[out->value];
    if (!v->constant) { /* the first op that writes it */
        size_t bytes;
        struct vgk_tensor t = v->t;
        if (!vgk_tensor_bytes(&t, &bytes) || !vgk_add(b->computed, bytes, &b->computed) ||
            b->computed > b->computed_most)
            return fail(b, VGK_ERR_INVALID, "the constants that are computed take more than %zu bytes "
                        "(VG_BIND_MAX_COMPUTED = %zu, and %d times the weights)", b->computed_most, VG_BIND_MAX_COMPUTED,
                        VG_BIND_MAX_COMPUTED_TIMES);
        if (!(v->t.data = vg_arena_aligned(b->net->arena, bytes)))
            return no_memory(b, &t);
        v->constant = true;
        v->buffer = -1;
    }
    struct vgk_tensor ti[VG_MAX_OPERANDS] = {{VGK_NONE}}, to = out->t;
    to.data = (char *)v->t.data + out->offset * (vgk_type_bits(to.type) / 8);
    for (int i = 0; i < n_in; i++)
        if (in[i].value >= 0) {
            ti[i] = in[i].t;
            if (!align(b, &ti[i]))
                return no_memory(b, &ti[i]);
        }
    struct vgk_op op = *proto;
    op.in = ti;
    op.n_in = n_in;
    op.out = &to;
    op.n_out = 1;
    if (vgk_tensor_count(&to) == 0)
        return VGK_OK;
    struct vgk_need need = {0};
    enum vgk_status s = vgk_cpu.need(b->cpu, &op, &need, b->err);
    if (s)
        return s;
    void *packed = need.packed ? vgk_cpu.alloc(b->cpu, need.packed) : NULL;
    void *scratch = need.scratch ? vgk_cpu.alloc(b->cpu, need.scratch) : NULL;
    if ((need.packed && !packed) || (need.scratch && !scratch))
        s = no_memory(b, &to);
    if (!s && need.packed)
        s = vgk_cpu.pack(b->cpu, &op, packed, b->err);
    if (!s)
        s = vgk_cpu.run(b->cpu, &op, packed, scratch, b->err);
    vgk_cpu.free(b->cpu, packed);
    vgk_cpu.free(b->cpu, scratch);
    return s;
}

static bool same_reach(const struct vg_reach *r) { return r->num == 1 && r->den == 1 && !r->lo && !r->hi; }

enum vgk_status binder_emit(struct binder *b, const struct vgk_op *proto, const struct vg_operand *in, int n_in,
                            const struct vg_operand *out)
{
    bool constant = true, frame = false;
    for (int i = 0; i < n_in; i++)
        if (in[i].value >= 0) {
            constant &= b->net->values[in[i].value].constant;
            frame |= b->net->values[in[i].value].frame;
        }
    struct vg_net_value *v = &b->net->values[out->value];
    if (constant && !b->hold)
        return compute(b, proto, in, n_in, out);
    struct vg_net_op *op = vg_net_op_add(b->net, proto->kind, b->node->name[0] ? b->node->name : binder_name(b, 0));
    if (!op)
        return no_memory(b, NULL);
    op->op = *proto;
    op->n_in = n_in;
    memcpy(op->in, in, n_in * sizeof *in);
    op->out = *out;
    v->frame |= frame;
    for (int i = 0; i < n_in; i++)
        for (int a = 0; a < VG_AXES; a++)
            if (in[i].value >= 0 && b->net->values[in[i].value].fold[a].size && !same_reach(&in[i].reach[a]))
                binder_global(b, "reaches along the frame's rows or columns where they are folded into one dimension");
    bool scaled = false;
    for (int i = 0; i < n_in && !scaled; i++)
        if (in[i].value >= 0 && b->net->values[in[i].value].frame) {
            const struct vg_net_value *vi = &b->net->values[in[i].value];
            if (vi->axis[VG_X] >= 0 || vi->axis[VG_Y] >= 0) {
                set_scale(v, vi, &in[i]);
                scaled = true;
            }
        }
    return VGK_OK;
}

int binder_view(struct binder *b, int output, const struct vg_operand *o, const int axis[VG_AXES])
{
    const struct vg_net_value *from = &b->net->values[o->value];
    struct vg_net_value v = *from;
    v.name = binder_name(b, output);
    v.t = o->t;
    v.offset = o->offset;
    for (int a = 0; a < VG_AXES; a++)
        v.axis[a] = from->axis[a] >= 0 ? axis[a] : -1;
    for (int a = 0; a < VG_AXES; a++)
        if (v.frame && from->axis[a] >= 0 && v.axis[a] < 0 && from->t.dim[from->axis[a]] > 1)
            binder_global(b, "folds the frame's rows or columns into another dimension");
    int id = vg_net_value_add(b->net, &v);
    if (id < 0) {
        no_memory(b, NULL);
        return -1;
    }
    if (v.constant)
        return id;
    struct vg_net_op *op = vg_net_op_add(b->net, VGK_OP_COPY, b->node->name[0] ? b->node->name : v.name);
    if (!op) {
        no_memory(b, NULL);
        return -1;
    }
    op->view = true;
    op->n_in = 1;
    op->in[0] = *o;
    op->out = vg_net_operand(b->net, id);
    set_scale(&b->net->values[id], &b->net->values[o->value], o);
    return id;
}

enum vgk_status binder_dense(struct binder *b, int *value, enum vgk_order order)
{
    const struct vg_net_value *v = &b->net->values[*value];
    if (vgk_tensor_is_dense(&v->t, order))
        return VGK_OK;
    int n;
    struct vg_net_value copy = *v;
    if (copy.constant) {
        n = vg_net_constant(b->net, copy.name, copy.t.type, copy.t.rank, copy.t.dim);
    } else {
        n = vg_net_value_new(b->net, copy.name, copy.t.type, copy.t.rank, copy.t.dim, &copy);
        if (n >= 0)
            b->net->values[n].t = vgk_tensor_make(copy.t.type, copy.t.rank, copy.t.dim, order);
    }
    if (n < 0)
        return no_memory(b, &copy.t);
    struct vg_operand in = vg_net_operand(b->net, *value), out = vg_net_operand(b->net, n);
    *value = n;
    return binder_emit(b, &(struct vgk_op){.kind = VGK_OP_COPY}, &in, 1, &out);
}

/* --- broadcasting --- */

enum vgk_status binder_broadcast(struct binder *b, int value, int rank, const int64_t *dim, struct vg_operand *o)
{
    *o = vg_net_operand(b->net, value);
    if (!vgk_tensor_broadcast(&o->t, rank, dim, &o->t)) {
        char text[128];
        return fail(b, VGK_ERR_INVALID, "%s cannot be broadcast",
                    vgk_tensor_describe(&b->net->values[value].t, text, sizeof text));
    }
    return VGK_OK;
}

enum vgk_status binder_broadcast_dims(struct binder *b, const int *values, int n, int *rank, int64_t *dim)
{
    *rank = 0;
    for (int i = 0; i < n; i++)
        if (values[i] >= 0 && b->net->values[values[i]].t.rank > *rank)
            *rank = b->net->values[values[i]].t.rank;
    for (int d = 0; d < *rank; d++)
        dim[d] = 1;
    for (int i = 0; i < n; i++) {
        if (values[i] < 0)
            continue;
        const struct vgk_tensor *t = &b->net->values[values[i]].t;
        for (int d = 0; d < t->rank; d++) {
            int64_t *to = &dim[d + *rank - t->rank];
            if (t->dim[d] == 1 || t->dim[d] == *to)
                continue;
            if (*to != 1) {
                char text[128];
                return fail(b, VGK_ERR_INVALID, "%s does not broadcast with the other inputs (%" PRId64
                            " against %" PRId64 ")", vgk_tensor_describe(t, text, sizeof text), t->dim[d], *to);
            }
            *to = t->dim[d];
        }
    }
    return VGK_OK;
}

void binder_global(struct binder *b, const char *what)
{
    if (b->global_why)
        return;
    char text[512];
    snprintf(text, sizeof text, "%s %s%s%s", b->node->type, b->node->name[0] ? b->node->name : binder_name(b, 0),
                     " ", what);
    b->global_why = vg_arena_text(b->net->arena, text);
    if (!b->global_why)
        b->global_why = "an operator depends on the whole frame";
    if (!b->net->global_why)
        b->net->global_why = b->global_why;
}

void binder_mark_axes(struct binder *b, int value, unsigned axes, const char *what)
{
    const struct vg_net_value *v = &b->net->values[value];
    for (int a = 0; a < VG_AXES; a++)
        if (v->axis[a] >= 0 && axes >> v->axis[a] & 1 && v->t.dim[v->axis[a]] > 1)
            binder_global(b, what);
}

/* --- small things --- */

int binder_choice(const char *text, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(text, names[i]))
            return i;
    return -1;
}

enum vgk_type binder_type(int64_t number)
{
    static const enum vgk_type types[] = {
        [1] = VGK_F32, [2] = VGK_U8, [3] = VGK_I8, [4] = VGK_U16, [5] = VGK_I16, [6] = VGK_I32, [7] = VGK_I64,
        [9] = VGK_BOOL, [10] = VGK_F16, [11] = VGK_F64, [12] = VGK_U32, [13] = VGK_U64, [16] = VGK_BF16,
        [21] = VGK_U4, [22] = VGK_I4,
    };
    return number > 0 && number < (int64_t)(sizeof types / sizeof *types) ? types[number] : VGK_NONE;
}

enum vgk_status binder_image(struct binder *b, int *v)
{
    const struct vg_net_value *x = &b->net->values[*v];
    if (x->constant || x->t.rank < 3 || x->t.dim[1] == 1 || x->t.stride[1] == 1)
        return VGK_OK;
    return binder_dense(b, v, VGK_CHANNELS_LAST);
}

/* --- the pass --- */

/* "node 'x' (Conv, opset 17; f32[1,3,8,8], f32[4,2,3,3]): what is wrong" */
static enum vgk_status name_node(struct binder *b, enum vgk_status s)
{
    char shapes[512], one[160];
    size_t n = 0;
    shapes[0] = 0;
    for (int i = 0; i < b->node->n_in && n < sizeof shapes; i++) {
        const struct vg_net_value *v = binder_value(b, i);
        int w = snprintf(shapes + n, sizeof shapes - n, "%s%s", i ? ", " : "",
                         v ? vgk_tensor_describe(&v->t, one, sizeof one) : "-");
        n += w > 0 ? (size_t)w : 0;
    }
    vgk_error_prefix(b->err, "node '%s' (%s, opset %" PRId64 "; %s)",
                     b->node->name[0] ? b->node->name : binder_name(b, 0), b->node->type, b->opset, shapes);
    return s;
}

static enum vgk_status bind_node(struct binder *b)
{
    const struct handler *h = b->node->domain[0] ? NULL : find(b->node->type);
    const char *why = vg_bind_refusal(b->node->type);
    if (!h)
        return name_node(b, fail(b, VGK_ERR_UNSUPPORTED, "this operator is not supported%s%s", why ? ": " : "",
                                 why ? why : ""));
    int given = b->node->n_in;
    while (given > 0 && b->node->in[given - 1] < 0)
        given--;
    if (given < h->min_in || (h->max_in >= 0 && given > h->max_in) || b->node->n_out < 1)
        return name_node(b, fail(b, VGK_ERR_INVALID, "%d inputs and %d outputs, expected %d to %d inputs", given,
                                 b->node->n_out, h->min_in, h->max_in));
    for (int i = 0; i < h->min_in; i++)
        if (b->node->in[i] < 0)
            return name_node(b, fail(b, VGK_ERR_INVALID, "input %d is left out but needed", i));
    int first = b->net->n_ops;
    b->global_why = NULL;
    enum vgk_status s = h->bind(b);
    if (s)
        return name_node(b, s);
    for (int i = first; i < b->net->n_ops; i++)
        b->net->ops[i].global_why = b->global_why;
    for (int i = 0; i < b->node->n_out; i++) {
        if (b->node->out[i] < 0 || b->value_of[b->node->out[i]] >= 0)
            continue;
        if (h->n_out >= 0 && i >= h->n_out)
            return name_node(b, fail(b, VGK_ERR_UNSUPPORTED, "output %d is not supported", i));
        return name_node(b, fail(b, VGK_ERR_NOMEM, "no memory for the graph"));
    }
    return VGK_OK;
}

enum vgk_status binder_nodes(struct binder *b, const struct vg_graph *graph)
{
    enum vgk_status s = VGK_OK;
    for (int i = 0; i < graph->n_nodes && !s; i++) {
        b->node = &graph->nodes[i];
        s = bind_node(b);
    }
    return s;
}

/* The input v with a border around it: another value, -1 = no memory.  It takes part in the analysis as any Pad. */
static int add_border(struct vg_net *net, int v, const struct vg_binding *binding)
{
    const struct vg_net_value in = net->values[v];
    struct vgk_pad pad = {.mode = binding->border_mode};
    struct vg_operand from = vg_net_operand(net, v);
    int64_t dim[VGK_MAX_RANK];
    memcpy(dim, in.t.dim, sizeof dim);
    for (int a = 0; a < VG_AXES; a++) {
        int d = in.axis[a];
        pad.begin[d] = binding->border[a] / 2;
        pad.end[d] = binding->border[a] - pad.begin[d];
        dim[d] += binding->border[a];
        from.reach[a] = (struct vg_reach){1, 1, -pad.begin[d], -pad.begin[d]};
    }
    int to = vg_net_value_new(net, in.name, in.t.type, in.t.rank, dim, &in);
    struct vg_net_op *op = to < 0 ? NULL : vg_net_op_add(net, VGK_OP_PAD, "border");
    if (!op)
        return -1;
    op->op.p.pad = pad;
    op->n_in = 2;
    op->in[0] = from;
    op->out = vg_net_operand(net, to);
    return to;
}

/* Rows outermost, so that they can come in bands, and a frame's channels together, so that a frame is a picture like any
 * other and all frames are one of many channels. */
static void put_frames_first(struct vgk_tensor *t)
{
    t->stride[2] = 1;
    t->stride[1] = t->dim[2];
    t->stride[4] = t->stride[1] * t->dim[1];
    t->stride[3] = t->stride[4] * t->dim[4];
    t->stride[0] = t->stride[3] * t->dim[3];
}

static enum vgk_status bind_inputs(struct binder *b, const struct vg_binding *binding)
{
    struct vg_net *net = b->net;
    const struct vg_graph *g = b->graph;
    net->inputs = calloc(g->n_inputs + 1, sizeof *net->inputs);
    net->outputs = calloc(g->n_outputs + 1, sizeof *net->outputs);
    if (!net->inputs || !net->outputs)
        return vgk_fail(b->err, VGK_ERR_NOMEM, "no memory for the graph");
    net->frame_input = binding->frame_input;
    for (int i = 0; i < g->n_inputs; i++) {
        const struct vg_value *gv = &g->values[g->inputs[i]];
        struct vg_net_value like = {.axis = {-1, -1}, .num = {1, 1}, .den = {1, 1}};
        like.t.rank = binding->sizes[i].rank;
        if (i == binding->frame_input) {
            like.frame = true;
            memcpy(like.axis, binding->axis, sizeof like.axis);
        } else if (binding->sizes[i].frame) {
            like.frame = true;
            for (int a = 0; a < VG_AXES; a++) {
                like.axis[a] = binding->sizes[i].axis[a];
                like.num[a] = binding->sizes[i].num[a];
                like.den[a] = binding->sizes[i].den[a];
            }
        }
        int v = vg_net_value_new(net, gv->name, gv->tensor.type ? gv->tensor.type : VGK_F32, binding->sizes[i].rank,
                                 binding->sizes[i].dim, &like);
        if (v < 0) {
            struct vgk_tensor t = vgk_tensor_make(VGK_F64, like.t.rank, binding->sizes[i].dim, VGK_ROW_MAJOR);
            size_t bytes;
            if (vgk_tensor_bytes(&t, &bytes))
                return vgk_fail(b->err, VGK_ERR_NOMEM, "no memory for the graph");
            return vgk_fail(b->err, VGK_ERR_INVALID, "input '%s': its size does not fit this machine", gv->name);
        }
        if (binding->sizes[i].frames_first)
            put_frames_first(&net->values[v].t);
        net->inputs[net->n_inputs++] = b->value_of[g->inputs[i]] = v;
        bool picture = like.frame && like.axis[VG_X] >= 0 && like.axis[VG_Y] >= 0;
        if (picture && (binding->border[VG_X] || binding->border[VG_Y]) &&
            (b->value_of[g->inputs[i]] = add_border(net, v, binding)) < 0)
            return vgk_fail(b->err, VGK_ERR_NOMEM, "no memory for the graph");
    }
    return VGK_OK;
}

enum vgk_status vg_net_bind(const struct vg_graph *graph, const struct vg_binding *binding, struct vg_net **out,
                            struct vgk_error *err)
{
    struct binder b = {.graph = graph, .cpu = binding->cpu, .err = err, .opset = graph->opset};
    enum vgk_status s = vg_net_create(&b.net);
    if (!s && !(b.value_of = malloc((graph->n_values + 1) * sizeof *b.value_of)))
        s = VGK_ERR_NOMEM;
    if (s) {
        vg_net_free(&b.net);
        return vgk_fail(err, s, "no memory for the graph");
    }
    for (int i = 0; i < graph->n_values; i++)
        b.value_of[i] = -1;
    for (int i = 0; i < graph->n_values && !s; i++)
        if (graph->values[i].constant) {
            struct vg_net_value v = {.name = graph->values[i].name, .t = graph->values[i].tensor, .buffer = -1,
                                     .constant = true, .axis = {-1, -1}, .num = {1, 1}, .den = {1, 1}};
            size_t bytes;
            if (vgk_tensor_bytes(&v.t, &bytes) && bytes < SIZE_MAX / (4 * VG_BIND_MAX_COMPUTED_TIMES) - b.computed_most)
                b.computed_most += bytes;
            if ((b.value_of[i] = vg_net_value_add(b.net, &v)) < 0)
                s = vgk_fail(err, VGK_ERR_NOMEM, "no memory for the graph");
        }
    b.computed_most = b.computed_most * VG_BIND_MAX_COMPUTED_TIMES + VG_BIND_MAX_COMPUTED;
    if (!s)
        s = bind_inputs(&b, binding);
    if (!s)
        s = binder_nodes(&b, graph);
    for (int i = 0; i < graph->n_outputs && !s; i++) {
        int v = b.value_of[graph->outputs[i]];
        if (v < 0)
            s = vgk_fail(err, VGK_ERR_INVALID, "output '%s' is made by no node",
                         graph->values[graph->outputs[i]].name);
        else
            b.net->outputs[b.net->n_outputs++] = v;
    }
    if (!s)
        s = binder_widen(&b);
    free(b.value_of);
    if (s) {
        vg_net_free(&b.net);
        return s;
    }
    *out = b.net;
    return VGK_OK;
}
