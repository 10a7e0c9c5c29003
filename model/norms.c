/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "norms.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_PIXELS 2048 /* about: statistics are summed over whole rows of at least so many pixels */

enum { SHIFT = 2, SCALE = 3, RESIDUAL = 5 }; /* operands of a convolution */

/* --- what is what --- */

/* An image of the frame whose channels and pixels are contiguous. */
static bool is_image(const struct vg_net *net, const struct vg_operand *o)
{
    const struct vg_net_value *v = &net->values[o->value];
    return o->t.rank == 4 && o->t.type == VGK_F32 && v->frame && v->axis[VG_Y] == 2 && v->axis[VG_X] == 3 &&
           vgk_tensor_is_dense(&o->t, VGK_CHANNELS_LAST);
}

static bool is_norm(const struct vg_net *net, const struct vg_net_op *op)
{
    return op->op.kind == VGK_OP_NORM && op->op.p.norm.kind <= VGK_NORM_GROUP && !op->view && !op->dead &&
           is_image(net, &op->in[0]) && vgk_tensor_is_dense(&op->out.t, VGK_CHANNELS_LAST);
}

/* A mean, or an extreme, over all of the frame's pixels. */
static bool is_reduction(const struct vg_net *net, const struct vg_net_op *op)
{
    if (op->op.kind != VGK_OP_REDUCE || op->view || op->dead || !op->global_why || op->out.t.type != VGK_F32)
        return false;
    const struct vg_net_value *x = &net->values[op->in[0].value], *y = &net->values[op->out.value];
    enum vgk_reduce_fn fn = op->op.p.reduce.fn;
    bool all = x->axis[VG_X] >= 0 && x->axis[VG_Y] >= 0 && y->axis[VG_X] < 0 && y->axis[VG_Y] < 0;
    return all && (fn == VGK_REDUCE_MEAN || fn == VGK_REDUCE_MAX || fn == VGK_REDUCE_MIN) &&
           vgk_tensor_count(&op->out.t) == vgk_tensor_count(&y->t) && vg_net_producer(net, op->out.value) >= 0;
}

/* --- ops --- */

struct splitter {
    struct vg_net *net;
    enum vg_norm_source source;
    const struct vg_net_op *old; /* the ops as they were; the net's are written anew */
    bool failed;
};

static struct vg_net_op *append(struct splitter *s, enum vgk_kind kind, const char *node, int n_in,
                                const struct vg_operand *in, const struct vg_operand *out)
{
    struct vg_net_op *op = s->failed ? NULL : vg_net_op_add(s->net, kind, node);
    if (!op) {
        s->failed = true;
        return NULL;
    }
    op->n_in = n_in;
    memcpy(op->in, in, (size_t)n_in * sizeof *in);
    op->out = *out;
    return op;
}

static void append_copy(struct splitter *s, const struct vg_net_op *op)
{
    struct vg_net_op *copy = s->failed ? NULL : vg_net_op_add(s->net, op->op.kind, op->node);
    s->failed |= !copy;
    if (copy)
        *copy = *op;
}

/* A new value, whole; `like` NULL: it depends on no frame. */
static struct vg_operand value(struct splitter *s, const char *name, enum vgk_type type, int rank, const int64_t *dim,
                               const struct vg_net_value *like)
{
    int v = s->failed ? -1 : vg_net_value_new(s->net, name, type, rank, dim, like);
    s->failed |= v < 0;
    return vg_net_operand(s->net, v);
}

static void persist(struct splitter *s, const struct vg_operand *o)
{
    if (!s->failed)
        s->net->buffers[s->net->values[o->value].buffer].persistent = true;
}

static void remember(struct splitter *s, int now, int kept, int64_t channels, int64_t count)
{
    s->net->memories[s->net->n_memories++] = (struct vg_net_memory){now, kept, channels, count};
}

/* --- arithmetic on channels, in the prologue --- */

static struct vg_operand binary(struct splitter *s, const char *node, enum vgk_binary_fn fn, const struct vg_operand *a,
                                const struct vg_operand *b)
{
    struct vg_operand in[2] = {*a, *b}, out = value(s, node, VGK_F32, a->t.rank, a->t.dim, NULL);
    struct vg_net_op *op = append(s, VGK_OP_BINARY, node, 2, in, &out);
    if (op)
        op->op.p.binary.fn = fn;
    return out;
}

/* Mean, factor or bias out of [N,3C]. */
static struct vg_operand part(const struct vg_operand *all, int which)
{
    struct vg_operand o = *all;
    int64_t c = all->t.dim[1] / 3;
    vg_operand_slice(&o, 1, which * c, c, 1);
    return o;
}

/* [C] repeated to [N,C] */
static struct vg_operand repeated(const struct vg_operand *o, int64_t n)
{
    struct vg_operand r = *o;
    r.t.rank = 2;
    r.t.dim[0] = n;
    r.t.dim[1] = o->t.dim[0];
    r.t.stride[0] = 0;
    r.t.stride[1] = o->t.stride[0];
    return r;
}

/* What NORMALISE takes: the statistics with the norm's own scale and bias, [N,3C]. */
static struct vg_operand apply_gain(struct splitter *s, const struct vg_net_op *norm, const struct vg_operand *kept)
{
    const struct vg_operand *scale = &norm->in[1], *bias = &norm->in[2];
    if (scale->value < 0 && bias->value < 0)
        return *kept;
    struct vg_operand all = value(s, norm->node, VGK_F32, 2, kept->t.dim, NULL);
    if (s->failed)
        return all;
    for (int i = 0; i < 3; i++) {
        struct vg_operand from = part(kept, i), to = part(&all, i);
        const struct vg_operand *own = i == 1 ? scale : bias;
        if (i > 0 && own->value >= 0)
            from = repeated(own, to.t.dim[0]);
        append(s, VGK_OP_COPY, norm->node, 1, &from, &to); /* converts, too */
        if (i == 1 && scale->value >= 0) {
            struct vg_operand in[2] = {to, part(kept, 1)};
            struct vg_net_op *op = append(s, VGK_OP_BINARY, norm->node, 2, in, &to);
            if (op)
                op->op.p.binary.fn = VGK_MUL;
        }
    }
    return all;
}

/* [1,C] seen as [C] */
static struct vg_operand flat(const struct vg_operand *o)
{
    struct vg_operand r = *o;
    r.t.rank = 1;
    r.t.dim[0] = o->t.dim[1];
    r.t.stride[0] = o->t.stride[1];
    return r;
}

/* The convolution does its norm, too:
 *     ((x * s + b) - mean) * factor + bias = x * (s * factor) + (bias - (mean - b) * factor) */
static void append_folded(struct splitter *s, const struct vg_net_op *conv, const struct vg_net_op *norm,
                          const struct vg_operand *all)
{
    struct vg_operand parts[3], mean, factor, shift;
    for (int i = 0; i < 3 && !s->failed; i++) {
        struct vg_operand p = part(all, i);
        parts[i] = flat(&p);
    }
    if (s->failed)
        return;
    mean = parts[0];
    factor = parts[1];
    if (conv->in[SHIFT].value >= 0)
        mean = binary(s, norm->node, VGK_SUB, &mean, &conv->in[SHIFT]);
    mean = binary(s, norm->node, VGK_MUL, &mean, &parts[1]);
    shift = binary(s, norm->node, VGK_SUB, &parts[2], &mean);
    if (conv->in[SCALE].value >= 0)
        factor = binary(s, norm->node, VGK_MUL, &factor, &conv->in[SCALE]);
    append_copy(s, conv);
    if (s->failed)
        return;
    struct vg_net_op *op = &s->net->ops[s->net->n_ops - 1];
    op->in[SCALE] = factor;
    op->in[SHIFT] = shift;
    op->in[RESIDUAL] = norm->in[3];
    op->out = norm->out;
    op->op.p.conv.act = norm->op.p.norm.act;
    op->op.p.conv.alpha = norm->op.p.norm.alpha;
    op->op.p.conv.beta = norm->op.p.norm.beta;
    op->op.p.conv.residual_before_act = false;
}

/* --- norms --- */

/* NORMALISE with what lies in `all`, or the convolution that does it. */
static void append_normalise(struct splitter *s, const struct vg_net_op *norm, const struct vg_operand *all, int conv)
{
    const struct vgk_norm *p = &norm->op.p.norm;
    if (conv >= 0) {
        append_folded(s, &s->old[conv], norm, all);
        return;
    }
    struct vg_operand in[3] = {norm->in[0], *all, norm->in[3]};
    struct vg_net_op *op = append(s, VGK_OP_NORMALISE, norm->node, 3, in, &norm->out);
    if (op)
        op->op.p.normalise = (struct vgk_normalise){p->act, p->alpha, p->beta};
}

static struct vg_operand append_merge(struct splitter *s, const struct vg_net_op *norm, const struct vg_operand *moments,
                                      int rows, bool gain)
{
    const struct vgk_norm *p = &norm->op.p.norm;
    const struct vg_net_value x = s->net->values[norm->in[0].value];
    struct vg_net_value like = {.frame = true, .axis = {-1, -1}, .num = {1, 1}, .den = {1, 1}, .t.rank = 2};
    struct vg_operand none = {.value = -1}, in[3] = {*moments, gain ? norm->in[1] : none, gain ? norm->in[2] : none};
    struct vg_operand out = value(s, x.name, VGK_F32, 2, (int64_t[]){x.t.dim[0], 3 * x.t.dim[1]}, &like);
    struct vg_net_op *op = append(s, VGK_OP_MERGE, norm->node, 3, in, &out);
    if (op)
        op->op.p.merge = (struct vgk_merge){rows, x.t.dim[2], x.t.dim[3], p->kind == VGK_NORM_GROUP ? p->groups : 0,
                                            p->epsilon};
    return out;
}

static void split_norm(struct splitter *s, const struct vg_net_op *norm, int conv)
{
    const struct vg_net_value x = s->net->values[norm->in[0].value];
    int64_t n = x.t.dim[0], c = x.t.dim[1], h = x.t.dim[2], w = x.t.dim[3], rows = (BLOCK_PIXELS + w - 1) / w;
    struct vg_operand all = {.value = -1}, moments = all, now = all, kept = all;
    bool has_gain = norm->in[1].value >= 0 || norm->in[2].value >= 0;
    if (s->source >= VG_NORM_KEPT) {
        kept = value(s, x.name, VGK_F32, 2, (int64_t[]){n, 3 * c}, NULL);
        persist(s, &kept);
        all = apply_gain(s, norm, &kept);
    }
    if (s->source != VG_NORM_GIVEN) {
        struct vg_net_value like = {.frame = true, .axis = {-1, 2}, .num = {1, x.num[VG_Y]},
                                    .den = {1, x.den[VG_Y]}, .t.rank = 4};
        struct vg_operand in = norm->in[0];
        in.reach[VG_Y] = (struct vg_reach){rows, 1, 0, rows - 1};
        moments = value(s, x.name, VGK_F64, 4, (int64_t[]){n, 2 * c, (h + rows - 1) / rows, 1}, &like);
        struct vg_net_op *op = append(s, VGK_OP_MOMENTS, norm->node, 1, &in, &moments);
        if (op)
            op->op.p.moments.rows = (int)rows;
    }
    if (s->source == VG_NORM_OWN)
        all = append_merge(s, norm, &moments, (int)rows, true);
    if (s->source == VG_NORM_OWN_KEPT || s->source == VG_NORM_KEPT) {
        now = append_merge(s, norm, &moments, (int)rows, false);
        persist(s, &now);
    }
    if (s->source == VG_NORM_OWN_KEPT) /* the very bits that OWN has */
        all = has_gain ? append_merge(s, norm, &moments, (int)rows, true) : now;
    append_normalise(s, norm, &all, conv);
    if (s->source != VG_NORM_OWN)
        remember(s, now.value, kept.value, c, 3 * n * c);
}

static void split_reduction(struct splitter *s, const struct vg_net_op *op)
{
    const struct vg_net_value y = s->net->values[op->out.value];
    struct vg_operand now = op->out;
    int kept = op->out.value; /* all that reads it, by whatever view, reads what is kept */
    if (s->source == VG_NORM_OWN || s->source == VG_NORM_OWN_KEPT) {
        append_copy(s, op);
        kept = -1;
    } else if (s->source == VG_NORM_KEPT) {
        struct vg_net_value like = y;
        now = value(s, y.name, VGK_F32, y.t.rank, y.t.dim, &like);
        now.t = op->out.t;
        append_copy(s, op);
        if (!s->failed)
            s->net->ops[s->net->n_ops - 1].out = now;
    } else {
        now.value = -1;
    }
    if (s->source == VG_NORM_OWN)
        return;
    if (now.value >= 0)
        persist(s, &now);
    if (kept >= 0)
        persist(s, &op->out);
    remember(s, now.value, kept, 0, vgk_tensor_count(&y.t));
}

/* --- the net --- */

/* For each op that is a norm behind a convolution that nobody else reads, and that has nothing behind its sum yet: the
 * convolution; else -1. */
static int foldable(const struct vg_net *net, const struct vg_net_op *norm)
{
    int i = vg_net_producer(net, norm->in[0].value);
    if (i < 0 || vg_net_uses(net, norm->in[0].value) != 1 || norm->in[0].t.dim[0] != 1)
        return -1;
    const struct vg_net_op *c = &net->ops[i];
    bool whole = !c->view && !memcmp(c->out.t.dim, norm->in[0].t.dim, 4 * sizeof *c->out.t.dim) &&
                 !memcmp(c->out.t.stride, norm->in[0].t.stride, 4 * sizeof *c->out.t.stride) &&
                 c->out.offset == norm->in[0].offset;
    bool conv = (c->op.kind == VGK_OP_CONV || c->op.kind == VGK_OP_CONV_TRANSPOSE) && c->op.p.conv.act == VGK_ACT_NONE;
    return whole && conv && c->n_in == VGK_CONV_INPUTS && c->in[RESIDUAL].value < 0 ? i : -1;
}

/* What depends on the frame, now that statistics may not. */
static enum vgk_status trace_frame(struct vg_net *net, enum vg_norm_source source)
{
    bool *frame = calloc((size_t)net->n_buffers + 1, sizeof *frame);
    if (!frame)
        return VGK_ERR_NOMEM;
    for (int i = 0; i < net->n_inputs; i++)
        frame[net->values[net->inputs[i]].buffer] = net->values[net->inputs[i]].frame;
    net->global_why = source == VG_NORM_GIVEN ? NULL : net->global_why;
    for (int i = 0; i < net->n_ops; i++) {
        const struct vg_net_op *op = &net->ops[i];
        bool depends = false;
        for (int k = 0; k < op->n_in; k++) {
            int b = op->in[k].value < 0 ? -1 : net->values[op->in[k].value].buffer;
            depends |= b >= 0 && frame[b];
        }
        frame[net->values[op->out.value].buffer] |= depends;
        bool moves = op->op.kind <= VGK_OP_WHERE; /* elements only */
        bool norm = op->op.kind == VGK_OP_NORM && op->op.p.norm.kind <= VGK_NORM_GROUP;
        if (depends && !moves && !net->global_why && (op->global_why || norm))
            net->global_why = op->global_why ? op->global_why : "a norm over the whole frame";
    }
    for (int i = 0; i < net->n_values; i++)
        if (net->values[i].buffer >= 0)
            net->values[i].frame &= frame[net->values[i].buffer];
    free(frame);
    return VGK_OK;
}

enum vgk_status vg_net_split_norms(struct vg_net *net, enum vg_norm_source source)
{
    int n = net->n_ops;
    struct splitter s = {.net = net, .source = source, .old = net->ops};
    struct vg_net_op *old = net->ops;
    enum { OTHER = -1, SKIP = -2, NORM = -3, REDUCTION = -4 };
    int *what = calloc((size_t)n + 1, sizeof *what); /* one of these, or a norm's convolution */
    net->memories = calloc((size_t)n + 1, sizeof *net->memories);
    s.failed = !what || !net->memories;
    for (int i = 0; i < n && !s.failed; i++)
        what[i] = is_norm(net, &old[i]) ? NORM : is_reduction(net, &old[i]) ? REDUCTION : OTHER;
    for (int i = 0; i < n && !s.failed && source == VG_NORM_GIVEN; i++) {
        int conv = what[i] == NORM ? foldable(net, &old[i]) : -1;
        if (conv >= 0) {
            what[i] = conv;
            what[conv] = SKIP;
        }
    }
    /* The list is written anew, in order: an op stands for itself, or for its steps. */
    net->ops = NULL;
    net->n_ops = net->cap_ops = 0;
    for (int i = 0; i < n && !s.failed; i++)
        if (what[i] >= 0 || what[i] == NORM)
            split_norm(&s, &old[i], what[i] >= 0 ? what[i] : -1);
        else if (what[i] == REDUCTION)
            split_reduction(&s, &old[i]);
        else if (what[i] == OTHER)
            append_copy(&s, &old[i]);
    free(what);
    free(old);
    if (s.failed)
        return VGK_ERR_NOMEM;
    return source == VG_NORM_KEPT || source == VG_NORM_GIVEN ? trace_frame(net, source) : VGK_OK;
}
