/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A graph as the file has it: nodes in ONNX's own terms, values, constants.  Immutable after loading; all its memory
 * lies in one arena of its own and goes with vg_graph_free. */
#ifndef VG_GRAPH_H
#define VG_GRAPH_H

#include "../kernels/tensor.h"

enum vg_attribute_type { VG_ATTR_INT, VG_ATTR_FLOAT, VG_ATTR_STRING, VG_ATTR_INTS, VG_ATTR_FLOATS, VG_ATTR_STRINGS,
    VG_ATTR_TENSOR, VG_ATTR_GRAPH };

struct vg_attribute {
    const char *name;
    enum vg_attribute_type type;
    int64_t i;
    float f;
    const char *s;
    size_t n; /* of ints, floats, strings */
    const int64_t *ints;
    const float *floats;
    const char *const *strings;
    struct vgk_tensor tensor; /* as of a constant value */
    const struct vg_graph *graph; /* a branch of an If; NULL for other graphs, of which only the presence is known */
};

struct vg_node {
    const char *name; /* "" when the file has none */
    const char *type; /* "Conv" */
    const char *domain; /* "" = ONNX's own */
    int n_in, n_captured, n_out, n_attributes;
    const int *in, *out; /* indices of values; -1 = left out; in[n_in...]: what its branches read around them */
    const struct vg_attribute *attributes;
};

struct vg_value {
    const char *name;
    int producer;     /* node of the graph that it belongs to, -1 = graph input or initializer */
    bool constant;    /* an initializer: `tensor` has its data, dense, row-major, aligned to VGK_ALIGN (external data,
                         which are mapped: to the element's size; large ones in the file itself, which are mapped as
                         well: at any byte), not to be written to */
    struct vgk_tensor tensor; /* declared type and dims where known (inputs, outputs, initializers); dim -1 = unknown
                                 or symbolic; rank -1 = no dims declared; type VGK_NONE = nothing declared; strides
                                 are those of constants only */
    const char *dim_name[VGK_MAX_RANK]; /* symbolic dims of inputs and outputs, else NULL */
};

struct vg_property {
    const char *key, *value;
};

/* A branch is a graph, too: of nodes and outputs of its own, and the file's values, some of which only it makes. */
struct vg_graph {
    int64_t opset, ir_version;
    const char *producer;
    int n_values, n_nodes, n_inputs, n_outputs, n_properties;
    const struct vg_value *values;
    const struct vg_node *nodes; /* sorted: a node's inputs come from nodes before it */
    const int *inputs, *outputs; /* values; initializers that old files list as inputs too are not among the inputs */
    const struct vg_property *properties; /* metadata_props */
    void *arena;
};

void vg_graph_free(struct vg_graph **);

/* For who builds a graph: gives it `nodes` (n_nodes of them) in an order in which inputs come first, and renumbers the
 * producers of its own values, n from `first` on.  What is in order stays as it is.  VGK_ERR_INVALID names the nodes of
 * a circle. */
enum vgk_status vg_graph_sort(struct vg_graph *, int first, int n, struct vg_value *values, const struct vg_node *nodes,
                              struct vgk_error *);

/* By name; NULL when the node has none. */
const struct vg_attribute *vg_node_attribute(const struct vg_node *, const char *name);
int64_t vg_node_int(const struct vg_node *, const char *name, int64_t otherwise);
float vg_node_float(const struct vg_node *, const char *name, float otherwise);
const char *vg_node_string(const struct vg_node *, const char *name, const char *otherwise);

#endif
