/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Weights that stay in the type that the file stores them in.  A Cast or DequantizeLinear of a constant is left to the
 * kernel that multiplies with it, if only such kernels read the result: nobody holds the weights in a wider type. */
#include "bind_ops.h"

#include <string.h>

/* A node that reads the value: as weights, or as a transposed view of which the same is true. */
static bool reads_weights(const struct binder *b, const struct vg_node *n, int value, int depth);

static bool only_weights(const struct binder *b, int value, int depth)
{
    const struct vg_graph *g = b->graph;
    bool any = false;
    for (int i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == value)
            return false;
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_in; k++)
            if (g->nodes[i].in[k] == value) {
                if (!reads_weights(b, &g->nodes[i], value, depth))
                    return false;
                any = true;
                break;
            }
    return any;
}

static bool reads_weights(const struct binder *b, const struct vg_node *n, int value, int depth)
{
    static const char *const types[] = {"Conv", "ConvTranspose", "MatMul", "Gemm"};
    if (!strcmp(n->type, "Transpose") && n->n_out == 1)
        return depth < 4 && only_weights(b, n->out[0], depth + 1);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        if (!strcmp(n->type, types[t]))
            return n->n_in > 1 && n->in[1] == value && n->in[0] != value && (n->n_in < 3 || n->in[2] != value);
    return false;
}

/* A scale or zero point as a value of x's rank whose dims divide x's; -1: it has other dims, or there is no memory. */
static int spread(struct binder *b, int v, const struct vgk_tensor *x, int axis, int64_t block)
{
    struct vg_net_value s = b->net->values[v];
    struct vgk_tensor t = s.t;
    bool one = vgk_tensor_count(&t) == 1 && t.rank <= 1;
    if (!s.constant || (!one && (block ? t.rank != x->rank : t.rank != 1 || t.dim[0] != x->dim[axis])))
        return -1;
    s.t.rank = x->rank;
    for (int d = 0; d < x->rank; d++) {
        int from = block ? d : 0;
        bool own = !one && (block || d == axis);
        s.t.dim[d] = own ? t.dim[from] : 1;
        s.t.stride[d] = own ? t.stride[from] : 0;
        if (s.t.dim[d] < 1 || x->dim[d] % s.t.dim[d] || (block && !one && t.dim[d] != (d == axis ? x->dim[d] / block : x->dim[d])))
            return -1;
    }
    return vg_net_value_add(b->net, &s);
}

enum vgk_status binder_keep(struct binder *b, int x, int scale, int zero, int axis, int64_t block, bool *done)
{
    struct vg_net_value v = b->net->values[x];
    int rank = v.t.rank;
    *done = false;
    if (!v.constant || v.scale || rank < 2 || vgk_tensor_count(&v.t) < 2 ||
        b->node->out[0] < 0 || !only_weights(b, b->node->out[0], 0))
        return VGK_OK;
    v.name = binder_name(b, 0);
    if (scale >= 0) {
        const struct vgk_tensor *ts = &b->net->values[scale].t, *tz = zero < 0 ? NULL : &b->net->values[zero].t;
        bool alike = !tz || (tz->rank == ts->rank && !memcmp(tz->dim, ts->dim, (size_t)tz->rank * sizeof *tz->dim));
        if (ts->type != VGK_F32 || !alike || vgk_type_is_float(v.t.type) || vgk_type_bits(v.t.type) > 8 ||
            (v.scale = spread(b, scale, &v.t, axis, block)) < 0)
            return VGK_OK;
        if (zero >= 0 && (v.zero = spread(b, zero, &v.t, axis, block)) < 0)
            return VGK_OK;
    }
    int y = vg_net_value_add(b->net, &v);
    if (y < 0)
        return fail(b, VGK_ERR_NOMEM, "no memory for the graph");
    binder_set(b, 0, y);
    *done = true;
    return VGK_OK;
}

enum vgk_status binder_permute_weights(struct binder *b, int y, const int *perm)
{
    int of[2] = {b->net->values[y].scale, b->net->values[y].zero};
    for (int k = 0; k < 2; k++)
        if (of[k]) {
            struct vg_net_value v = b->net->values[of[k]];
            v.t = vgk_tensor_permute(&v.t, perm);
            if ((of[k] = vg_net_value_add(b->net, &v)) < 0)
                return fail(b, VGK_ERR_NOMEM, "no memory for the graph");
        }
    b->net->values[y].scale = of[0];
    b->net->values[y].zero = of[1];
    return VGK_OK;
}

int binder_weights(const struct binder *b, struct vg_operand *in, int n_in, int rank, bool transposed)
{
    const struct vg_net_value *w = &b->net->values[in[1].value];
    int values[2] = {w->scale ? w->scale : -1, w->zero ? w->zero : -1};
    for (int i = n_in; i < VGK_CONV_INPUTS; i++)
        in[i] = vg_net_operand(b->net, -1);
    for (int k = 0; k < 2; k++) {
        struct vg_operand *o = &in[VGK_WEIGHT_SCALE + k];
        if (values[k] < 0)
            continue;
        *o = vg_net_operand(b->net, values[k]);
        struct vgk_tensor t = o->t;
        o->t.rank = rank;
        for (int d = 0; d < rank; d++) {
            int from = d - (rank - t.rank);
            if (transposed && d >= rank - 2)
                from = 2 * rank - 3 - d - (rank - t.rank);
            o->t.dim[d] = from < 0 ? 1 : t.dim[from];
            o->t.stride[d] = from < 0 ? 0 : t.stride[from];
        }
    }
    return w->scale ? VGK_CONV_INPUTS : n_in;
}
