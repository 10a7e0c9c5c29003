/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the operators' handlers share (bind.c, bind_*.c).  A handler reads the node's inputs, sets each of the node's
 * outputs once, and emits ops; on trouble it returns `fail(...)`, and bind.c adds node, operator and shapes. */
#ifndef VG_BIND_OPS_H
#define VG_BIND_OPS_H

#include "bind.h"

struct binder {
    struct vg_net *net;
    const struct vg_graph *graph;
    const struct vg_node *node;
    int64_t opset;
    int *value_of; /* net value for each graph value, -1 = not yet */
    struct vgk_device *cpu;
    const char *global_why; /* the current node depends on the whole frame */
    size_t computed, computed_most; /* bytes of constants made here */
    bool hold; /* emit ops even where all inputs are constant: several ops fill one value (Concat), not all constant */
    struct vgk_error *err;
};

typedef enum vgk_status handler_fn(struct binder *);
struct handler {
    const char *type;
    handler_fn *bind;
    int parameter; /* for handlers that serve several operators: see binder_parameter */
    int min_in, max_in, n_out; /* max_in, n_out: -1 = any */
};
extern const struct handler vg_handlers_attention[], vg_handlers_index[], vg_handlers_math[], vg_handlers_move[],
    vg_handlers_quantize[], vg_handlers_sample[], vg_handlers_shape[], vg_handlers_spatial[];

/* The handler's `parameter` for the current node. */
int binder_parameter(const struct binder *);

/* Input i: a net value, -1 when left out. */
int binder_in(const struct binder *, int i);
const struct vg_net_value *binder_value(const struct binder *, int i);
const char *binder_name(const struct binder *, int output);
void binder_set(struct binder *, int output, int value);

/* The constant integers of input i (int32, int64; any shape) in row-major order.  INVALID with a reason when the
 * input is no constant or has more than max.  *n = -1 when it is left out. */
enum vgk_status binder_ints(struct binder *, int i, int64_t *values, int max, int *n);
/* Attribute `name`, or from opset `input_since` on input i. */
enum vgk_status binder_axes(struct binder *, const char *name, int i, int64_t *values, int max, int *n);
/* A constant scalar (or single element) as double; false when it is none. */
bool binder_scalar(const struct binder *, int value, double *x);
/* A negative axis counts from the end; INVALID outside -rank..rank-1 (rank when `end` allows it). */
enum vgk_status binder_axis(struct binder *, int64_t axis, int rank, int *out);

/* A new value named after the node's output; its axes as those of the first framed input among `like` values. */
int binder_new(struct binder *, int output, enum vgk_type, int rank, const int64_t *dim, const int *like, int n_like);

/* Binds the nodes of a graph, one after the other: the file's, or the branch that an If takes. */
enum vgk_status binder_nodes(struct binder *, const struct vg_graph *);

/* Emits an op into the net, or computes it now when all inputs are constant (then out becomes a constant).  `proto`
 * has kind and parameters; in[] and out are operands.  Sets scale and frame of out's value from the operands. */
enum vgk_status binder_emit(struct binder *, const struct vgk_op *proto, const struct vg_operand *in, int n_in,
                            const struct vg_operand *out);
/* out is another view of in's value: dims, strides and offset are in `o`. axis: where the frame's axes went. */
int binder_view(struct binder *, int output, const struct vg_operand *o, const int axis[VG_AXES]);
/* `value` as a dense value in `order`, copied when it is not that yet. */
enum vgk_status binder_dense(struct binder *, int *value, enum vgk_order order);

/* An operand broadcast to these dims; INVALID when that cannot be. */
enum vgk_status binder_broadcast(struct binder *, int value, int rank, const int64_t *dim, struct vg_operand *o);
/* The joint dims of values that broadcast to one another. */
enum vgk_status binder_broadcast_dims(struct binder *, const int *values, int n, int *rank, int64_t *dim);

/* Notes that what is computed now depends on the whole frame; the second: if the value has an axis of it in `axes`. */
void binder_global(struct binder *, const char *what);
void binder_mark_axes(struct binder *, int value, unsigned axes, const char *what);

/* Constant integers that follow a rule: base + the sum over dimensions of step * floor(index / repeat). */
struct binder_rule {
    int64_t base, step[VGK_MAX_RANK], repeat[VGK_MAX_RANK];
};
/* That of t's elements, from `at` on, as indices of a dimension of `size`; false when they follow none. */
bool binder_rule(const struct vgk_tensor *t, int64_t at, int64_t size, struct binder_rule *);
/* GatherND of the first n dimensions as a view or a resize; ScatterND as two copies: when *done. */
enum vgk_status binder_regular_take(struct binder *, int n, bool *done);
enum vgk_status binder_regular_scatter(struct binder *, int n, bool *done);

/* Weights that are kept as the file stores them (bind_weights.c).
 * The current node's output 0 is constant x, seen through scale and zero (values, -1 = none; blocks along `axis`, 0 =
 * none).  *done = false, and nothing happens, where kernels cannot take it like that. */
enum vgk_status binder_keep(struct binder *, int x, int scale, int zero, int axis, int64_t block, bool *done);
/* y, a view of weights with their dimensions permuted, gets scale and zero point permuted alike. */
enum vgk_status binder_permute_weights(struct binder *, int y, const int *perm);
/* Operands VGK_WEIGHT_SCALE and VGK_WEIGHT_ZERO for in[1], which is seen with so many dimensions, and with the last two
 * swapped if `transposed`; returns how many inputs the op has then.  in: [VGK_CONV_INPUTS], n_in are set. */
int binder_weights(const struct binder *, struct vg_operand *in, int n_in, int rank, bool transposed);

/* The last step (bind_widen.c): activations of 16 bits become f32. */
enum vgk_status binder_widen(struct binder *);

/* The place of `text` among `names`, which end in NULL; -1. */
int binder_choice(const char *text, const char *const *names);
/* The file's number of an element type (onnx.proto) to ours; VGK_NONE when there is none. */
enum vgk_type binder_type(int64_t number);
/* An image with contiguous channels, which the kernels are fast on: copied when it is not that yet. */
enum vgk_status binder_image(struct binder *, int *value);

enum vgk_status fail(struct binder *, enum vgk_status, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
