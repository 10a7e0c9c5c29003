/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attention and the rotation of its queries and keys by position. */
#include "bind_ops.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* [B, L, heads * d] seen as [B, heads, L, d]; rank 4 is that already. */
static enum vgk_status by_heads(struct binder *b, struct vg_operand *o, int64_t heads)
{
    const struct vgk_tensor t = o->t;
    if (t.rank == 4)
        return VGK_OK;
    if (t.rank != 3 || heads < 1 || t.dim[2] % heads)
        return fail(b, VGK_ERR_INVALID, "%" PRId64 " heads of a tensor of rank %d; expected [B,L,heads*d] or [B,heads,L,d]",
                    heads, t.rank);
    int64_t d = t.dim[2] / heads;
    o->t = (struct vgk_tensor){.type = t.type, .rank = 4, .dim = {t.dim[0], heads, t.dim[1], d},
                               .stride = {t.stride[0], d * t.stride[2], t.stride[1], t.stride[2]}, .data = t.data};
    return VGK_OK;
}

/* past (input i, when given) and `now`, one behind the other: *now becomes both.  output: where the file wants them. */
static enum vgk_status extend(struct binder *b, int i, int output, struct vg_operand *now)
{
    struct vg_operand past = vg_net_operand(b->net, binder_in(b, i)), part;
    int64_t dim[4], before = past.value >= 0 && past.t.rank == 4 ? past.t.dim[2] : 0;
    bool wanted = output < b->node->n_out && b->node->out[output] >= 0;
    enum vgk_status s = VGK_OK;
    if (past.value < 0 && !wanted)
        return VGK_OK;
    memcpy(dim, now->t.dim, sizeof dim);
    dim[2] += before;
    for (int d = 0; past.value >= 0 && d < 4; d++)
        if (past.t.rank != 4 || past.t.type != now->t.type || (d != 2 && past.t.dim[d] != dim[d]))
            return fail(b, VGK_ERR_INVALID, "input %d does not fit its successor", i);
    int both[2] = {now->value, past.value}, y = binder_new(b, output, now->t.type, 4, dim, both, 2);
    if (y < 0)
        return VGK_ERR_NOMEM;
    for (int a = 0; a < VG_AXES; a++)
        b->net->values[y].axis[a] = -1;
    b->hold = !b->net->values[now->value].constant || (past.value >= 0 && !b->net->values[past.value].constant);
    if (past.value >= 0 && before) {
        part = vg_net_operand(b->net, y);
        vg_operand_slice(&part, 2, 0, before, 1);
        s = binder_emit(b, &(struct vgk_op){.kind = VGK_OP_COPY}, &past, 1, &part);
    }
    part = vg_net_operand(b->net, y);
    vg_operand_slice(&part, 2, before, now->t.dim[2], 1);
    if (!s)
        s = binder_emit(b, &(struct vgk_op){.kind = VGK_OP_COPY}, now, 1, &part);
    b->hold = false;
    binder_set(b, output, y);
    *now = vg_net_operand(b->net, y);
    return s;
}

static enum vgk_status bind_attention(struct binder *b)
{
    struct vg_operand in[4];
    enum vgk_status s;
    int like = binder_in(b, 0), rank = binder_value(b, 0)->t.rank;
    int64_t q_heads = vg_node_int(b->node, "q_num_heads", 0), kv_heads = vg_node_int(b->node, "kv_num_heads", 0);
    if (b->node->n_out > 3 && b->node->out[3] >= 0)
        return fail(b, VGK_ERR_UNSUPPORTED, "output 3 (the scores) is never made");
    if (binder_in(b, 6) >= 0)
        return fail(b, VGK_ERR_UNSUPPORTED, "a length for each batch (input 6); pass a mask instead");
    if (vg_node_int(b->node, "left_window_size", -1) >= 0 || vg_node_int(b->node, "right_window_size", -1) >= 0)
        return fail(b, VGK_ERR_UNSUPPORTED, "a window; pass a mask instead");
    for (int i = 0; i < 3; i++) {
        in[i] = vg_net_operand(b->net, binder_in(b, i));
        if ((s = by_heads(b, &in[i], i ? kv_heads : q_heads)))
            return s;
        if (!vgk_type_is_float(in[i].t.type) || in[i].t.rank != 4)
            return fail(b, VGK_ERR_INVALID, "input %d must be floats [B,L,heads*d] or [B,heads,L,d]", i);
        binder_mark_axes(b, in[i].value, i ? ~0u : 0, "attends to the whole frame");
    }
    int64_t past = binder_value(b, 4) && binder_value(b, 4)->t.rank == 4 ? binder_value(b, 4)->t.dim[2] : 0;
    if ((s = extend(b, 4, 1, &in[1])) || (s = extend(b, 5, 2, &in[2])))
        return s;
    const struct vgk_tensor *q = &in[0].t, *k = &in[1].t, *v = &in[2].t;
    if (k->dim[0] != q->dim[0] || v->dim[0] != q->dim[0] || k->dim[3] != q->dim[3] || k->dim[2] != v->dim[2] ||
        k->dim[1] != v->dim[1] || !k->dim[1] || q->dim[1] % k->dim[1])
        return fail(b, VGK_ERR_INVALID, "queries, keys and values do not fit one another");
    struct vgk_op op = {.kind = VGK_OP_ATTENTION};
    op.p.attention.scale = vg_node_float(b->node, "scale", (float)(1 / sqrt((double)q->dim[3])));
    op.p.attention.softcap = vg_node_float(b->node, "softcap", 0);
    op.p.attention.causal = vg_node_int(b->node, "is_causal", 0);
    op.p.attention.past = past;
    in[3] = vg_net_operand(b->net, binder_in(b, 3));
    if (in[3].value >= 0) {
        int64_t dim[4] = {q->dim[0], q->dim[1], q->dim[2], k->dim[2]};
        if (in[3].t.rank && in[3].t.dim[in[3].t.rank - 1] < dim[3] && in[3].t.dim[in[3].t.rank - 1] != 1)
            return fail(b, VGK_ERR_UNSUPPORTED, "a mask for %" PRId64 " of %" PRId64 " keys; make it full",
                        in[3].t.dim[in[3].t.rank - 1], dim[3]);
        if ((s = binder_broadcast(b, in[3].value, 4, dim, &in[3])))
            return s;
    }
    int64_t four[4] = {q->dim[0], q->dim[1], q->dim[2], v->dim[3]},
            three[3] = {q->dim[0], q->dim[2], q->dim[1] * v->dim[3]};
    int y = binder_new(b, 0, q->type, rank, rank == 4 ? four : three, &like, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand out = vg_net_operand(b->net, y);
    if ((s = by_heads(b, &out, q->dim[1])))
        return s;
    binder_set(b, 0, y);
    return binder_emit(b, &op, in, 4, &out);
}

/* y = a (fn) b for operands of equal dims. */
static enum vgk_status combine(struct binder *b, enum vgk_binary_fn fn, const struct vg_operand *x,
                               const struct vg_operand *y, const struct vg_operand *out)
{
    struct vg_operand in[2] = {*x, *y};
    return binder_emit(b, &(struct vgk_op){.kind = VGK_OP_BINARY, .p.binary = {fn}}, in, 2, out);
}

/* cos or sin (input i) as [B, heads, L, half]: by position_ids when they are given, the same for all heads. */
static enum vgk_status rotations(struct binder *b, int i, const struct vgk_tensor *x, int64_t half,
                                 struct vg_operand *o)
{
    const struct vg_net_value *ids = binder_value(b, 3);
    *o = vg_net_operand(b->net, binder_in(b, i));
    if (ids) {
        int64_t dim[3] = {ids->t.dim[0], ids->t.dim[1], o->t.dim[1]};
        int both[2] = {o->value, binder_in(b, 3)}, v;
        if (ids->t.rank != 2 || o->t.rank != 2)
            return fail(b, VGK_ERR_INVALID, "position_ids must be [B,L], the cache [positions,%" PRId64 "]", half);
        if ((v = binder_new(b, 0, o->t.type, 3, dim, both, 2)) < 0)
            return VGK_ERR_NOMEM;
        struct vg_operand in[2] = {*o, vg_net_operand(b->net, both[1])}, out = vg_net_operand(b->net, v);
        enum vgk_status s = binder_emit(b, &(struct vgk_op){.kind = VGK_OP_GATHER}, in, 2, &out);
        if (s)
            return s;
        *o = vg_net_operand(b->net, v);
    }
    const struct vgk_tensor t = o->t;
    if (t.rank != 3 || t.dim[2] != half || t.dim[1] != x->dim[2] || (t.dim[0] != x->dim[0] && t.dim[0] != 1))
        return fail(b, VGK_ERR_INVALID, "input %d must be [B,L,%" PRId64 "]", i, half);
    o->t = (struct vgk_tensor){.type = t.type, .rank = 4, .dim = {x->dim[0], x->dim[1], x->dim[2], half},
                               .stride = {t.dim[0] == 1 ? 0 : t.stride[0], 0, t.stride[1], t.stride[2]},
                               .data = t.data};
    return VGK_OK;
}

/* (a, b) -> (a cos - b sin, a sin + b cos) over pairs of neighbours (interleaved) or of halves. */
static enum vgk_status bind_rotary(struct binder *b)
{
    int x = binder_in(b, 0);
    const struct vgk_tensor t = binder_value(b, 0)->t;
    struct vg_operand in = vg_net_operand(b->net, x), turn[2];
    bool neighbours = vg_node_int(b->node, "interleaved", 0), constant = true;
    enum vgk_status s = by_heads(b, &in, vg_node_int(b->node, "num_heads", 0));
    if (s)
        return s;
    int64_t size = in.t.dim[3], part = vg_node_int(b->node, "rotary_embedding_dim", 0);
    part = part ? part : size;
    if (part < 2 || part % 2 || part > size)
        return fail(b, VGK_ERR_INVALID, "rotates %" PRId64 " of %" PRId64, part, size);
    for (int i = 0; i < b->node->n_in; i++)
        constant &= binder_in(b, i) < 0 || binder_value(b, i)->constant;
    for (int i = 0; i < 2 && !s; i++)
        s = rotations(b, 1 + i, &in.t, part / 2, &turn[i]);
    int y = binder_new(b, 0, t.type, t.rank, t.dim, &x, 1), product[2];
    if (!s && y < 0)
        s = VGK_ERR_NOMEM;
    binder_set(b, 0, y);
    for (int half = 0; half < 2 && !s; half++) { /* the first and the second of each pair */
        struct vg_operand to = vg_net_operand(b->net, y), of[2], out[2];
        if ((s = by_heads(b, &to, in.t.dim[1])))
            break;
        vg_operand_slice(&to, 3, neighbours ? half : half * part / 2, part / 2, neighbours ? 2 : 1);
        for (int i = 0; i < 2 && !s; i++) { /* a * cos, b * sin; a * sin, b * cos */
            of[i] = in;
            vg_operand_slice(&of[i], 3, neighbours ? i : i * part / 2, part / 2, neighbours ? 2 : 1);
            product[i] = binder_new(b, 0, t.type, 4, of[i].t.dim, &x, t.rank == 4);
            if (product[i] < 0) {
                s = VGK_ERR_NOMEM;
            } else {
                out[i] = vg_net_operand(b->net, product[i]);
                s = combine(b, VGK_MUL, &of[i], &turn[half != i], &out[i]);
                out[i] = vg_net_operand(b->net, product[i]); /* with its data, when it is constant */
            }
        }
        b->hold = !constant; /* two ops, or three, fill y */
        if (!s)
            s = combine(b, half ? VGK_ADD : VGK_SUB, &out[0], &out[1], &to);
        b->hold = false;
    }
    if (!s && part < size) {
        struct vg_operand to = vg_net_operand(b->net, y);
        if (!(s = by_heads(b, &to, in.t.dim[1]))) {
            vg_operand_slice(&in, 3, part, size - part, 1);
            vg_operand_slice(&to, 3, part, size - part, 1);
            b->hold = !constant;
            s = binder_emit(b, &(struct vgk_op){.kind = VGK_OP_COPY}, &in, 1, &to);
            b->hold = false;
        }
    }
    return s;
}

const struct handler vg_handlers_attention[] = {
    {"Attention", bind_attention, 0, 3, 7, 3},
    {"RotaryEmbedding", bind_rotary, 0, 3, 4, 1},
    {NULL, NULL, 0, 0, 0, 0},
};
