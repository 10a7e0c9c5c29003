/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A net: a graph bound to sizes.  Every dimension is a number, what depends on constants only is computed already, and
 * what is left are kernel ops (kernels/ops.h) on values that lie in buffers.  Passes rewrite it (fuse.h), analyses
 * read it (analyse.h), a plan lays its buffers out (plan.h).
 *
 *     vg_net_bind(graph, &binding, cpu, &net, &err);    bind.h
 *     vg_net_fuse(net);                                 fuse.h
 *
 * Values are views of buffers: Slice, Transpose, Split, Expand and most Reshapes are views, not work. */
#ifndef VG_NET_H
#define VG_NET_H

#include "../kernels/backend.h"
#include "arena.h"
#include "graph.h"

/* The frame's axes as they are found in a value's dimensions. */
enum { VG_X, VG_Y, VG_AXES };

/* Which positions of an input an output position needs, on one axis of the frame: for outputs a..b
 *     floor((a * num + lo) / den) .. floor((b * num + hi) / den).
 * num / den is also the change of scale. */
struct vg_reach {
    int64_t num, den, lo, hi;
};
#define VG_REACH_SAME ((struct vg_reach){1, 1, 0, 0})

struct vg_net_value {
    const char *name;    /* of the ONNX value that it is or serves, never NULL */
    struct vgk_tensor t; /* data: constants only */
    int buffer;          /* -1 = constant */
    int64_t offset;      /* elements from the buffer's start */
    bool constant;
    int scale, zero;     /* constants: values by which it is quantised (kernels/ops.h), of its rank; scale 0 = it is not;
                            zero 0 = none.  Such values are weights of ops, and nothing else */
    bool frame;          /* depends on the frame (else on constants and parameters only) */
    int axis[VG_AXES];   /* the dimension that is the frame's x, y; -1 = none */
    int64_t num[VG_AXES], den[VG_AXES]; /* its size there in frame pixels: frame * num / den; lowest terms */
    struct { /* size 0: the dimension is the axis; else `size` positions, `inner` elements apart, are a factor of it: */
        int64_t size, inner; /* rows of [N, rows * columns, C] have inner = columns */
    } fold[VG_AXES];
};

struct vg_operand {
    int value; /* -1 = left out */
    struct vgk_tensor t; /* the view of the value that the op sees */
    int64_t offset;      /* elements from the buffer's start (constants: t.data is the view's already) */
    struct vg_reach reach[VG_AXES];
};

#define VG_MAX_OPERANDS VGK_CONV_INPUTS

struct vg_net_op {
    struct vgk_op op; /* kind and parameters; op.in and op.out are not used here */
    const char *node; /* the node it comes from, for messages */
    int n_in;
    struct vg_operand in[VG_MAX_OPERANDS], out;
    const char *global_why; /* it depends on the whole frame: its node in words; else NULL */
    bool view; /* no work: out is a view of in[0]'s buffer */
    bool dead;
};

struct vg_net_buffer {
    size_t bytes;
    bool persistent; /* keeps its contents from one frame to the next */
};

/* What an op learns from the whole frame (norms.h): a norm's statistics, f32 [N,3C]: mean, 1 / deviation, 0; or what a
 * reduction over all pixels gives. */
struct vg_net_memory {
    int now;          /* value: this frame's, -1 = not measured */
    int kept;         /* value: what is used in its place, written between frames; -1 = none */
    int64_t channels; /* C of a norm, 0 = a reduction */
    int64_t count;    /* floats */
};

/* What a run gives is what the next one takes; see roles.h. */
struct vg_net_state {
    int input, output; /* of the net; output -1: not made by the net (a delayed frame) */
};

struct vg_net {
    int shared; /* references besides the first */
    struct vg_arena *arena;
    int n_values, n_ops, n_buffers;
    struct vg_net_value *values;
    struct vg_net_op *ops; /* in an order that works */
    struct vg_net_buffer *buffers;
    int n_inputs, n_outputs;
    int *inputs, *outputs; /* values, as in the graph */
    int frame_input;       /* which of the inputs; there may be more values that depend on the frame among them */
    int n_states;
    struct vg_net_state *states; /* in the arena */
    int n_memories;
    struct vg_net_memory *memories;
    const char *global_why; /* the first op that depends on the whole frame, in words; NULL = none */
    int cap_values, cap_ops, cap_buffers;
};

void vg_net_free(struct vg_net **); /* gives up one reference */
struct vg_net *vg_net_ref(struct vg_net *); /* one thread at a time; nobody changes the net any more */

/* --- for those who build and rewrite nets --- */

enum vgk_status vg_net_create(struct vg_net **);

/* A value over a buffer of its own.  Channels-last when it is an image (rank 4 or 5 with an axis of the frame behind
 * dimension 1, and none there), else row-major.  Axes, scale and `frame` are taken from `like` (-1 = none: no axes, not of the frame)
 * unless they do not fit.  -1: no memory, or too large. */
int vg_net_value_new(struct vg_net *, const char *name, enum vgk_type type, int rank, const int64_t *dim,
                     const struct vg_net_value *like);
/* A value that shares a buffer or constant data. */
int vg_net_value_add(struct vg_net *, const struct vg_net_value *);
/* A constant with cleared data to write to. */
int vg_net_constant(struct vg_net *, const char *name, enum vgk_type type, int rank, const int64_t *dim);

/* The operand that shows the whole value, reach SAME on all axes. */
struct vg_operand vg_net_operand(const struct vg_net *, int value);
/* A part of an operand: count elements from begin by step along a dimension. */
void vg_operand_slice(struct vg_operand *, int dim, int64_t begin, int64_t count, int64_t step);

/* Appends an op; the pointer is good until the next append.  NULL without memory. */
struct vg_net_op *vg_net_op_add(struct vg_net *, enum vgk_kind, const char *node);

/* The only op that writes the value, covering all of it; -1 when there is none (inputs, constants, several writers). */
int vg_net_producer(const struct vg_net *, int value);
/* How often live ops read the value or views of its buffer, outputs of the net counted. */
int vg_net_uses(const struct vg_net *, int value);

/* "[4] conv f32[1,32,90,160] <- ..." for every op, for logs and tests; malloc'ed. */
char *vg_net_text(const struct vg_net *);

#endif
