/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Binding: a graph and the sizes of its inputs become a net.  One pass over the nodes: each node's handler infers the
 * shapes of its outputs and emits kernel ops or views; an op whose inputs are all constant is computed on the spot, so
 * shape arithmetic vanishes by itself. */
#ifndef VG_BIND_H
#define VG_BIND_H

#include "net.h"

struct vg_input_size {
    int rank;
    int64_t dim[VGK_MAX_RANK];
    bool frame;         /* another picture of the frame than the frame input, or a state: depends on the frame, */
    int axis[VG_AXES];  /* its dimensions that are x and y (-1 = none) */
    int num[VG_AXES], den[VG_AXES]; /* and its size there: the frame's * num / den */
    bool frames_first;  /* [1,frames,channels,y,x]: all of a pixel lies together, frame by frame */
};

struct vg_binding {
    const struct vg_input_size *sizes; /* one for each graph input */
    int frame_input;                   /* the input that is the frame, -1 = none */
    int axis[VG_AXES];                 /* its dimensions that are x and y */
    int border[VG_AXES];               /* pixels that are put around the frame before the graph sees it, in all; half of */
    enum vgk_pad_mode border_mode;     /* them, rounded down, before it; for models that crop */
    struct vgk_device *cpu;            /* a vgk_cpu device, computes constants; borrowed for the call */
};

/* What may be computed of constants: so many times the file's weights, and so many bytes more. */
#define VG_BIND_MAX_COMPUTED ((size_t)1 << 30)
#define VG_BIND_MAX_COMPUTED_TIMES 16

/* VGK_ERR_UNSUPPORTED names the node, its operator, its input shapes and the reason; VGK_ERR_INVALID the same for a
 * file that contradicts itself or sizes that do not fit the graph. */
enum vgk_status vg_net_bind(const struct vg_graph *, const struct vg_binding *, struct vg_net **, struct vgk_error *);

/* What activations are in a net that the file declares like that: f16 and bf16 are f32. */
enum vgk_type vg_bind_type(enum vgk_type);

/* True when the operator is known (domain "" only); vg_net_bind may still refuse its attributes. */
bool vg_bind_knows(const char *operator);

/* All of them, for lists: the i-th, NULL behind the last.  The second: those refused by name. */
const char *vg_bind_operator(int i);
const char *vg_bind_refused(int i);

/* Why an operator is refused by name and what to do instead; NULL: no more than that nobody wrote it. */
const char *vg_bind_refusal(const char *operator);

#endif
