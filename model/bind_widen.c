/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Activations that the file declares f16 or bf16 are f32 in the net, whatever the exporter took: what they are stored in is
 * said by the plan (precision.h).  Handlers see the file's types; afterwards a Cast between these types is no work, the
 * numbers that ops compute with are f32, too, and weights stay as they are stored. */
#include "bind_ops.h"

#include <stdlib.h>

enum vgk_type vg_bind_type(enum vgk_type type) { return type == VGK_F16 || type == VGK_BF16 ? VGK_F32 : type; }

static bool is_narrow(enum vgk_type type) { return vg_bind_type(type) != type; }

static bool is_weights(enum vgk_kind kind, int k)
{
    return k == 1 && (kind == VGK_OP_CONV || kind == VGK_OP_CONV_TRANSPOSE || kind == VGK_OP_MATMUL);
}

/* A constant in f32 with the same dims and strides. */
static enum vgk_status widen_constant(struct binder *b, int value, int *wide)
{
    struct vgk_tensor t = b->net->values[value].t;
    int64_t low = 0, high = 0, n;
    for (int d = 0; d < t.rank; d++)
        *(t.stride[d] < 0 ? &low : &high) += (t.dim[d] - 1) * t.stride[d];
    n = vgk_tensor_count(&t) ? high - low + 1 : 0;
    if ((*wide = vg_net_value_new(b->net, b->net->values[value].name, VGK_F32, 1, &n, NULL)) < 0)
        return fail(b, VGK_ERR_NOMEM, "no memory for the graph");
    struct vg_operand in = {.value = value, .t = {.type = t.type, .rank = 1, .dim = {n}, .stride = {1}}};
    struct vg_operand out = vg_net_operand(b->net, *wide);
    in.t.data = (char *)t.data + 2 * low;
    enum vgk_status s = binder_emit(b, &(struct vgk_op){.kind = VGK_OP_COPY}, &in, 1, &out);
    t.type = VGK_F32;
    t.data = (float *)b->net->values[*wide].t.data - low;
    b->net->values[*wide].t = t;
    return s;
}

/* same[value]: the one that is read in its place from now on. */
static enum vgk_status widen_ops(struct binder *b, int *same)
{
    struct vg_net *net = b->net;
    for (int i = 0; i < net->n_ops; i++) {
        struct vg_net_op *op = &net->ops[i];
        bool cast = op->view && net->values[op->in[0].value].t.type != op->out.t.type;
        for (int k = 0; k < op->n_in; k++) {
            struct vg_operand *o = &op->in[k];
            int v = o->value;
            if (v >= 0 && net->values[v].constant) {
                if (!is_narrow(o->t.type) || is_weights(op->op.kind, k))
                    continue;
                enum vgk_status s = same[v] == v ? widen_constant(b, v, &same[v]) : VGK_OK;
                if (s)
                    return s;
                ptrdiff_t at = ((char *)o->t.data - (char *)net->values[v].t.data) / 2;
                o->t.data = (float *)net->values[same[v]].t.data + at;
            }
            o->value = v < 0 ? v : same[v];
            o->t.type = vg_bind_type(o->t.type);
        }
        op->out.t.type = vg_bind_type(op->out.t.type);
        if (cast)
            same[op->out.value] = op->in[0].value;
        op->dead |= cast;
    }
    return VGK_OK;
}

enum vgk_status binder_widen(struct binder *b)
{
    struct vg_net *net = b->net;
    int n = net->n_values;
    int *same = malloc(((size_t)n + 1) * sizeof *same);
    bool *seen = calloc((size_t)net->n_buffers + 1, sizeof *seen);
    enum vgk_status s = same && seen ? VGK_OK : fail(b, VGK_ERR_NOMEM, "no memory for the graph");
    for (int i = 0; i < n && !s; i++)
        same[i] = i;
    if (!s)
        s = widen_ops(b, same);
    for (int i = 0; i < net->n_outputs && !s; i++)
        net->outputs[i] = same[net->outputs[i]];
    for (int i = 0; i < n && !s; i++) {
        struct vg_net_value *v = &net->values[i];
        if (v->constant)
            continue;
        if (!seen[v->buffer] && is_narrow(v->t.type)) /* the first value is the one it was made for */
            net->buffers[v->buffer].bytes *= 2;
        seen[v->buffer] = true;
        v->t.type = vg_bind_type(v->t.type);
    }
    free(same);
    free(seen);
    return s;
}
