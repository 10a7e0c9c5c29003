/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "precision.h"

#include <stdlib.h>

const char *vg_precision_name(enum vg_precision p)
{
    static const char *const names[] = {"auto", "fp32", "fp16", "bf16"};
    return names[p];
}

/* The buffer of an operand that is no constant, else -1. */
static int buffer_of(const struct vg_net *net, const struct vg_operand *o)
{
    return o->value < 0 || net->values[o->value].constant ? -1 : net->values[o->value].buffer;
}

static bool keep(bool *kept, int b)
{
    if (b < 0 || kept[b])
        return false;
    return kept[b] = true;
}

static bool is_kept(const bool *kept, int b) { return b < 0 || kept[b]; }

static bool unary_needs_range(enum vgk_unary_fn fn)
{
    return fn == VGK_EXP || fn == VGK_LOG || fn == VGK_SQRT || fn == VGK_RECIPROCAL;
}

/* divisor: of a DIV, no constant. */
static bool binary_needs_range(enum vgk_binary_fn fn, bool divisor) { return fn == VGK_POW || (fn == VGK_DIV && divisor); }

static bool needs_range(const struct vg_net *net, const struct vg_net_op *op)
{
    return op->op.kind == VGK_OP_UNARY ? unary_needs_range(op->op.p.unary.fn)
                                       : op->op.kind == VGK_OP_BINARY &&
                                             binary_needs_range(op->op.p.binary.fn, buffer_of(net, &op->in[1]) >= 0);
}

/* Between its links a chain is in f32 anyway. */
static void keep_ends(const struct vg_net *net, const struct vg_net_op *op, bool *kept)
{
    const struct vgk_chain *c = &op->op.p.chain;
    for (int i = 0; i < c->n; i++) {
        const struct vgk_link *l = &c->link[i];
        bool divisor = l->binary && (l->b >= VGK_CHAIN_LINK || buffer_of(net, &op->in[l->b]) >= 0);
        if (l->binary ? !binary_needs_range(l->two.fn, divisor) : !unary_needs_range(l->unary.fn))
            continue;
        if (i == c->n - 1)
            keep(kept, buffer_of(net, &op->out));
        if (l->a < VGK_CHAIN_LINK)
            keep(kept, buffer_of(net, &op->in[l->a]));
        if (l->binary && l->b < VGK_CHAIN_LINK)
            keep(kept, buffer_of(net, &op->in[l->b]));
    }
}

static void keep_sensitive(const struct vg_net *net, const struct vg_net_op *op, bool *kept)
{
    int out = buffer_of(net, &op->out);
    switch (op->op.kind) {
    case VGK_OP_REDUCE: case VGK_OP_MOMENTS: case VGK_OP_MERGE: keep(kept, out); break;
    case VGK_OP_SOFTMAX: keep(kept, buffer_of(net, &op->in[0])); break;
    case VGK_OP_SAMPLE: keep(kept, buffer_of(net, &op->in[1])); break;
    case VGK_OP_NORMALISE: keep(kept, buffer_of(net, &op->in[1])); break;
    case VGK_OP_CHAIN: keep_ends(net, op, kept); break;
    default: break;
    }
    if (needs_range(net, op)) {
        keep(kept, out);
        for (int k = 0; k < op->n_in; k++)
            keep(kept, buffer_of(net, &op->in[k]));
    }
}

/* Operands that must have out's type: those of [first, last). */
static void same_type(enum vgk_kind kind, int *first, int *last)
{
    *first = *last = 0;
    switch (kind) {
    case VGK_OP_RESIZE: case VGK_OP_PAD: case VGK_OP_GATHER: case VGK_OP_TAKE: *last = 1; break;
    case VGK_OP_WHERE: *first = 1, *last = 3; break;
    default: break;
    }
}

/* True when something new is kept. */
static bool spread(const struct vg_net *net, const struct vg_net_op *op, bool *kept)
{
    int out = buffer_of(net, &op->out), first, last;
    bool more = false, any = is_kept(kept, out);
    same_type(op->op.kind, &first, &last);
    for (int k = first; k < last && k < op->n_in; k++)
        any |= is_kept(kept, buffer_of(net, &op->in[k]));
    for (int k = first; any && k < last && k < op->n_in; k++)
        more |= keep(kept, buffer_of(net, &op->in[k]));
    if (any && last > first)
        more |= keep(kept, out);
    if (op->op.kind == VGK_OP_SCATTER) { /* x, updates, result */
        int x = buffer_of(net, &op->in[0]), u = buffer_of(net, &op->in[2]);
        if (is_kept(kept, x) || is_kept(kept, u) || is_kept(kept, out))
            more |= keep(kept, x) | keep(kept, u) | keep(kept, out);
    }
    return more;
}

/* Places that are sampled at: back through what only moves and adds. */
static bool spread_places(const struct vg_net *net, const struct vg_net_op *op, bool *places)
{
    bool more = false;
    int out = buffer_of(net, &op->out);
    if (op->op.kind == VGK_OP_SAMPLE && buffer_of(net, &op->in[1]) >= 0)
        more |= keep(places, buffer_of(net, &op->in[1]));
    if (out < 0 || !places[out])
        return more;
    switch (op->op.kind) {
    case VGK_OP_COPY: case VGK_OP_UNARY: case VGK_OP_BINARY: case VGK_OP_CHAIN: case VGK_OP_WHERE: case VGK_OP_RESIZE:
    case VGK_OP_PAD:
        for (int k = 0; k < op->n_in; k++)
            more |= keep(places, buffer_of(net, &op->in[k]));
        break;
    default: break;
    }
    return more;
}

static void keep_outside(const struct vg_net *net, int picture, bool frames, bool *kept)
{
    for (int i = 0; i < net->n_values; i++) {
        const struct vg_net_value *v = &net->values[i];
        if (!v->constant && v->buffer >= 0 && (v->t.type != VGK_F32 || !v->frame))
            keep(kept, v->buffer);
    }
    for (int b = 0; b < net->n_buffers; b++)
        if (net->buffers[b].persistent)
            kept[b] = true;
    for (int i = 0; i < net->n_inputs; i++)
        if (i != net->frame_input || !frames)
            keep(kept, net->values[net->inputs[i]].buffer);
    for (int i = 0; i < net->n_outputs; i++) {
        int producer = vg_net_producer(net, net->outputs[i]);
        bool conv = producer >= 0 && net->ops[producer].op.kind == VGK_OP_CONV;
        if (!net->values[net->outputs[i]].constant && !(i == picture && frames && conv))
            keep(kept, net->values[net->outputs[i]].buffer);
    }
}

enum vgk_status vg_net_halve(struct vg_net *net, int picture, bool frames)
{
    size_t n = (size_t)net->n_buffers + 1;
    bool *kept = calloc(n, sizeof *kept), *places = calloc(n, sizeof *places), more = true;
    if (!kept || !places) {
        free(kept);
        free(places);
        return VGK_ERR_NOMEM;
    }
    keep_outside(net, picture, frames, kept);
    for (int i = 0; i < net->n_ops; i++)
        if (!net->ops[i].dead && !net->ops[i].view)
            keep_sensitive(net, &net->ops[i], kept);
    while (more) { /* backwards in the net, to a fixed point */
        more = false;
        for (int i = net->n_ops - 1; i >= 0; i--)
            if (!net->ops[i].dead && !net->ops[i].view)
                more |= spread_places(net, &net->ops[i], places);
    }
    for (int b = 0; b < net->n_buffers; b++)
        kept[b] |= places[b];
    for (more = true; more;) {
        more = false;
        for (int i = 0; i < net->n_ops; i++)
            if (!net->ops[i].dead && !net->ops[i].view)
                more |= spread(net, &net->ops[i], kept);
    }
    for (int b = 0; b < net->n_buffers; b++)
        if (!kept[b])
            net->buffers[b].bytes /= 2;
    for (int i = 0; i < net->n_values; i++) {
        struct vg_net_value *v = &net->values[i];
        if (!v->constant && v->buffer >= 0 && !kept[v->buffer])
            v->t.type = VGK_F16;
    }
    for (int i = 0; i < net->n_ops; i++) {
        struct vg_net_op *op = &net->ops[i];
        for (int k = -1; k < op->n_in; k++) {
            struct vg_operand *o = k < 0 ? &op->out : &op->in[k];
            int b = buffer_of(net, o);
            if (b >= 0 && !kept[b])
                o->t.type = VGK_F16;
        }
    }
    free(kept);
    free(places);
    return VGK_OK;
}
