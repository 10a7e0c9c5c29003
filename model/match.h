/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Patterns of a net: what the passes of vg_net_fuse look with, and those of them that have files of their own.  A pass
 * looks at op i as the last of a pattern and, when it finds one, makes it the op that does it all; what is left over is
 * swept away when nobody else uses it. */
#ifndef VG_MATCH_H
#define VG_MATCH_H

#include <math.h>
#include <string.h>

#include "net.h"

/* match_norm.c */
bool vg_match_norm(struct vg_net *, int i);       /* instance, layer and RMS norms as arithmetic */
bool vg_match_group_norm(struct vg_net *, int i); /* Reshape, InstanceNormalization, Reshape */
bool vg_match_norm_gain(struct vg_net *, int i);  /* layer or RMS norm -> Mul, Add */
/* match.c */
bool vg_match_product(struct vg_net *, int i);    /* SiLU, Swish, GELU */
bool vg_match_quanta(struct vg_net *, int i);     /* QuantizeLinear, DequantizeLinear */
bool vg_match_matmul(struct vg_net *, int i);     /* product of matrices -> Mul by a number, Add of a bias */
bool vg_match_copy(struct vg_net *, int i);       /* copies of copies, there and back between types, into a part */
/* match_attention.c */
bool vg_match_attention(struct vg_net *, int i);  /* softmax(q k^T) v */

/* --- looking around --- */

/* The op that makes operand `o` all by itself, seen whole, and that nobody else reads; NULL when there is none. */
static inline struct vg_net_op *sole_producer(struct vg_net *net, const struct vg_operand *o)
{
    int i = vg_net_producer(net, o->value);
    if (i < 0 || net->ops[i].view || vg_net_uses(net, o->value) != 1)
        return NULL;
    struct vg_net_op *p = &net->ops[i];
    if (p->out.t.rank != o->t.rank || p->out.offset != o->offset)
        return NULL;
    for (int d = 0; d < o->t.rank; d++)
        if (p->out.t.dim[d] != o->t.dim[d] || (o->t.dim[d] > 1 && p->out.t.stride[d] != o->t.stride[d]))
            return NULL;
    return p;
}

static inline bool same_operand(const struct vg_operand *a, const struct vg_operand *b)
{
    if (a->value != b->value || a->offset != b->offset || a->t.rank != b->t.rank)
        return false;
    for (int d = 0; d < a->t.rank; d++)
        if (a->t.dim[d] != b->t.dim[d] || a->t.stride[d] != b->t.stride[d])
            return false;
    return true;
}

static inline bool same_dims(const struct vgk_tensor *a, const struct vgk_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dim, b->dim, a->rank * sizeof *a->dim);
}

static inline bool is_constant(const struct vg_net *net, const struct vg_operand *o)
{
    return o->value >= 0 && net->values[o->value].constant;
}

/* The number that a constant is everywhere, of any type. */
bool vg_match_scalar(const struct vg_net *, const struct vg_operand *, double *x);
static inline bool is_scalar(const struct vg_net *net, const struct vg_operand *o, float *x)
{
    double d;
    bool found = vg_match_scalar(net, o, &d);
    if (found)
        *x = (float)d;
    return found;
}
/* ... and it is about this one: exporters round their constants, half precision to 11 bits. */
static inline bool is_about(const struct vg_net *net, const struct vg_operand *o, double x)
{
    double d;
    return vg_match_scalar(net, o, &d) && fabs(d - x) <= 3e-4 * fabs(x);
}

/* An operand of [N,C,...] that only varies with C, as [C]: *out.  Constants are copied (and repeated) into a dense
 * one; others must be contiguous already. */
bool vg_match_per_channel(struct vg_net *, const struct vg_operand *, struct vg_operand *out);

/* How often the value's buffer is read, the net's outputs counted, and views of it not. */
int vg_match_readers(const struct vg_net *, int value);

/* The op that alone makes what `o` shows, all of it, for this one reader, other views in between: map says which of
 * its dimensions each of o's is, -1 for those of 1.  NULL when it is not so. */
struct vg_net_op *vg_match_behind(struct vg_net *, const struct vg_operand *o, int map[VGK_MAX_RANK]);

/* `later` takes over the place, and the output, of what `op` begins. */
static inline void replace(struct vg_net_op *op, struct vg_net_op *later, const struct vg_net_op *fused)
{
    struct vg_operand out = later->out;
    const char *node = op->node;
    *later = *fused;
    later->out = out;
    later->node = node;
    op->dead = true;
}

static inline bool whole_out(const struct vg_net *net, const struct vg_net_op *op)
{
    return same_dims(&op->out.t, &net->values[op->out.value].t);
}

static inline bool is_binary(const struct vg_net_op *op, enum vgk_binary_fn fn)
{
    return op && op->op.kind == VGK_OP_BINARY && op->op.p.binary.fn == fn;
}

static inline bool is_unary(const struct vg_net_op *op, enum vgk_unary_fn fn)
{
    return op && op->op.kind == VGK_OP_UNARY && op->op.p.unary.fn == fn;
}

/* The op that makes the value, however often it is used; NULL for views. */
static inline struct vg_net_op *producer(struct vg_net *net, const struct vg_operand *o)
{
    int i = vg_net_producer(net, o->value);
    return i < 0 || net->ops[i].view ? NULL : &net->ops[i];
}

#endif
