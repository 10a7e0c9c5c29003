/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum vgk_status vg_net_create(struct vg_net **net)
{
    struct vg_net *n = calloc(1, sizeof *n);
    if (!n)
        return VGK_ERR_NOMEM;
    n->arena = vg_arena_new(0);
    n->frame_input = -1;
    if (!n->arena) {
        free(n);
        return VGK_ERR_NOMEM;
    }
    *net = n;
    return VGK_OK;
}

void vg_net_free(struct vg_net **net)
{
    struct vg_net *n = *net;
    *net = NULL;
    if (!n || n->shared-- > 0)
        return;
    free(n->values);
    free(n->ops);
    free(n->buffers);
    free(n->inputs);
    free(n->outputs);
    free(n->memories);
    vg_arena_free(n->arena);
    free(n);
}

struct vg_net *vg_net_ref(struct vg_net *net)
{
    net->shared++;
    return net;
}

/* Room for one more in a growing array. */
static bool grow(void **array, int n, int *capacity, size_t size)
{
    if (n < *capacity)
        return true;
    int c = *capacity ? *capacity * 2 : 64;
    void *p = realloc(*array, c * size);
    if (!p)
        return false;
    *array = p;
    *capacity = c;
    return true;
}

int vg_net_value_add(struct vg_net *net, const struct vg_net_value *v)
{
    struct vg_net_value copy = *v; /* may lie in the array that moves */
    if (!grow((void **)&net->values, net->n_values, &net->cap_values, sizeof *net->values))
        return -1;
    net->values[net->n_values] = copy;
    return net->n_values++;
}

static bool is_image(const struct vg_net_value *v)
{
    bool number = vgk_type_is_float(v->t.type) || v->t.type == VGK_U8 || v->t.type == VGK_I8;
    bool rows = v->axis[VG_Y] >= 2 && !v->fold[VG_Y].size, columns = v->axis[VG_X] >= 2 && !v->fold[VG_X].size;
    bool channels = v->axis[VG_Y] != 1 && v->axis[VG_X] != 1; /* else they are last already */
    return (v->t.rank == 4 || v->t.rank == 5) && number && v->frame && channels && (rows || columns);
}

int vg_net_value_new(struct vg_net *net, const char *name, enum vgk_type type, int rank, const int64_t *dim,
                     const struct vg_net_value *like)
{
    struct vg_net_value v = {.name = name, .axis = {-1, -1}, .num = {1, 1}, .den = {1, 1}};
    v.t.type = type;
    v.t.rank = rank;
    if (like) {
        v.frame = like->frame;
        for (int a = 0; a < VG_AXES; a++)
            if (like->axis[a] >= 0) {
                int d = like->axis[a] + rank - like->t.rank;
                v.axis[a] = d >= 0 && d < rank ? d : -1;
                v.num[a] = like->num[a];
                v.den[a] = like->den[a];
                v.fold[a] = like->fold[a];
            }
    }
    v.t = vgk_tensor_make(type, rank, dim, is_image(&v) ? VGK_CHANNELS_LAST : VGK_ROW_MAJOR);
    size_t bytes;
    if (!vgk_tensor_bytes(&v.t, &bytes))
        return -1;
    if (!grow((void **)&net->buffers, net->n_buffers, &net->cap_buffers, sizeof *net->buffers))
        return -1;
    v.buffer = net->n_buffers;
    net->buffers[net->n_buffers++] = (struct vg_net_buffer){.bytes = bytes};
    return vg_net_value_add(net, &v);
}

int vg_net_constant(struct vg_net *net, const char *name, enum vgk_type type, int rank, const int64_t *dim)
{
    struct vg_net_value v = {.name = name, .buffer = -1, .constant = true, .axis = {-1, -1}, .num = {1, 1},
                             .den = {1, 1}};
    size_t bytes;
    v.t = vgk_tensor_make(type, rank, dim, VGK_ROW_MAJOR);
    if (!vgk_tensor_bytes(&v.t, &bytes) || !(v.t.data = vg_arena_aligned(net->arena, bytes)))
        return -1;
    memset(v.t.data, 0, bytes);
    return vg_net_value_add(net, &v);
}

struct vg_operand vg_net_operand(const struct vg_net *net, int value)
{
    struct vg_operand o = {.value = value, .reach = {VG_REACH_SAME, VG_REACH_SAME}};
    if (value >= 0) {
        o.t = net->values[value].t;
        o.offset = net->values[value].offset;
    }
    return o;
}

void vg_operand_slice(struct vg_operand *o, int dim, int64_t begin, int64_t count, int64_t step)
{
    if (count > 0)
        o->offset += begin * o->t.stride[dim];
    o->t = vgk_tensor_slice(&o->t, dim, begin, count, step);
}

struct vg_net_op *vg_net_op_add(struct vg_net *net, enum vgk_kind kind, const char *node)
{
    if (!grow((void **)&net->ops, net->n_ops, &net->cap_ops, sizeof *net->ops))
        return NULL;
    struct vg_net_op *op = &net->ops[net->n_ops++];
    *op = (struct vg_net_op){.op.kind = kind, .node = node};
    for (int i = 0; i < VG_MAX_OPERANDS; i++)
        op->in[i].value = -1;
    return op;
}

int vg_net_producer(const struct vg_net *net, int value)
{
    int found = -1;
    if (value < 0 || net->values[value].constant)
        return -1;
    for (int i = 0; i < net->n_ops; i++) {
        if (net->ops[i].dead || net->ops[i].out.value != value)
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

int vg_net_uses(const struct vg_net *net, int value)
{
    int n = 0, buffer = net->values[value].buffer;
    for (int i = 0; i < net->n_ops; i++)
        if (!net->ops[i].dead)
            for (int k = 0; k < net->ops[i].n_in; k++)
                n += net->ops[i].in[k].value >= 0 &&
                     (net->ops[i].in[k].value == value ||
                      (buffer >= 0 && net->values[net->ops[i].in[k].value].buffer == buffer));
    for (int i = 0; i < net->n_outputs; i++)
        n += net->outputs[i] == value || (buffer >= 0 && net->values[net->outputs[i]].buffer == buffer);
    return n;
}

char *vg_net_text(const struct vg_net *net)
{
    char *text = NULL, shape[128];
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    for (int i = 0; i < net->n_ops; i++) {
        const struct vg_net_op *op = &net->ops[i];
        if (op->dead)
            continue;
        fprintf(f, "[%d] %s %s = %s", i, op->view ? "view" : vgk_kind_name(op->op.kind),
                net->values[op->out.value].name, vgk_tensor_describe(&op->out.t, shape, sizeof shape));
        for (int k = 0; k < op->n_in; k++)
            if (op->in[k].value >= 0)
                fprintf(f, " %s%s", k ? ", " : "<- ", vgk_tensor_describe(&op->in[k].t, shape, sizeof shape));
            else
                fprintf(f, ", -");
        fprintf(f, "\n");
    }
    if (fclose(f)) {
        free(text);
        return NULL;
    }
    return text;
}
