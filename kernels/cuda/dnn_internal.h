/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the cuDNN part share: the library's functions, a graph that is being built, a plan. */
#ifndef VGK_DNN_INTERNAL_H
#define VGK_DNN_INTERNAL_H

#include "dnn.h"

#include <cudnn_graph.h>

struct vgk_dnn {
    void *library;
    size_t version;                 /* 91900 = 9.19.0 */
    cudnnHandle_t handle;           /* NULL: plans only */
    cudnnBackendDescriptor_t device; /* properties, NULL with a handle */
    int device_id;
    struct vgk_dnn_plan *plans;
    size_t (*GetVersion)(void);
    const char *(*GetErrorString)(cudnnStatus_t);
    void (*GetLastErrorString)(char *, size_t);
    cudnnStatus_t (*Create)(cudnnHandle_t *);
    cudnnStatus_t (*Destroy)(cudnnHandle_t);
    cudnnStatus_t (*SetStream)(cudnnHandle_t, cudaStream_t);
    cudnnStatus_t (*BackendCreateDescriptor)(cudnnBackendDescriptorType_t, cudnnBackendDescriptor_t *);
    cudnnStatus_t (*BackendDestroyDescriptor)(cudnnBackendDescriptor_t);
    cudnnStatus_t (*BackendFinalize)(cudnnBackendDescriptor_t);
    cudnnStatus_t (*BackendSetAttribute)(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                         cudnnBackendAttributeType_t, int64_t, const void *);
    cudnnStatus_t (*BackendGetAttribute)(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                         cudnnBackendAttributeType_t, int64_t, int64_t *, void *);
    cudnnStatus_t (*BackendExecute)(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t);
};

/* The library's functions; DEVICE: not there, too old, which, and what would do. */
enum vgk_status vgk_dnn_load(struct vgk_dnn *, struct vgk_error *);

/* A call that failed, in words: "cuDNN 9.19.0: finalize(plan): NOT_SUPPORTED: <its own last message>".  What the
 * library has no engine for, or refuses as a graph, is UNSUPPORTED; the rest is DEVICE. */
enum vgk_status vgk_dnn_fail(const struct vgk_dnn *, cudnnStatus_t, const char *call, struct vgk_error *);

/* --- graphs --- */

/* Where a tensor of a graph gets its address. */
enum vgk_dnn_source { VGK_DNN_IN, VGK_DNN_OUT, VGK_DNN_PACKED, VGK_DNN_SCALAR };
struct vgk_dnn_binding {
    enum vgk_dnn_source source;
    int index;     /* of the op's inputs */
    size_t offset; /* in `packed` */
    float scalar;
    int align;     /* of the address */
};

/* A constant in `packed`: which of the op's inputs, its place, and how it is laid down there. */
struct vgk_dnn_constant {
    int input;
    struct vgk_tensor t; /* the input's last dimensions, with the type and strides of the packed copy */
    size_t offset;
    float factor;        /* every value times this */
    bool scaled;         /* weights: every output channel times the op's scale as well */
};

#define VGK_DNN_TENSORS 24
#define VGK_DNN_OPS 12
#define VGK_DNN_DESCRIPTORS 64

struct vgk_dnn_graph {
    struct vgk_dnn *dnn;
    cudnnBackendDescriptor_t owned[VGK_DNN_DESCRIPTORS], ops[VGK_DNN_OPS], graph;
    int n_owned, n_ops;
    int64_t uid; /* of virtual tensors, behind those that are bound */
    struct vgk_dnn_binding binding[VGK_DNN_TENSORS]; /* tensor i has unique id i + 1 */
    int n_bindings;
    struct vgk_dnn_constant constant[4];
    int n_constants;
    size_t packed;
    enum vgk_status status; /* the first failure; nothing happens after it */
    struct vgk_error *err;
};

/* UNSUPPORTED: not an operation for cuDNN. */
enum vgk_status vgk_dnn_graph_make(struct vgk_dnn_graph *, const struct vgk_op *);
void vgk_dnn_graph_clear(struct vgk_dnn_graph *);

/* The rest is for those who build: they do nothing once something failed. */
cudnnBackendDescriptor_t vgk_dnn_new(struct vgk_dnn_graph *, cudnnBackendDescriptorType_t);
void vgk_dnn_set(struct vgk_dnn_graph *, cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                 cudnnBackendAttributeType_t, int64_t n, const void *values, const char *call);
void vgk_dnn_finish(struct vgk_dnn_graph *, cudnnBackendDescriptor_t, const char *what);
#define VGK_DNN_SET(g, d, name, type, n, values) \
    vgk_dnn_set(g, d, CUDNN_ATTR_##name, CUDNN_TYPE_##type, n, values, "set " #name)

/* --- plans --- */

void vgk_dnn_free_plans(struct vgk_dnn *);

#define VGK_DNN_CONFIGS 4
struct vgk_dnn_plan {
    struct vgk_dnn_plan *next; /* of the library's */
    struct vgk_dnn *dnn;
    struct vgk_op op; /* what it was made for */
    struct vgk_tensor in[VGK_CONV_INPUTS], out;
    enum vgk_status status; /* UNSUPPORTED: remembered as well, `text` says why */
    size_t max_workspace;
    struct vgk_dnn_graph g;
    cudnnBackendDescriptor_t config[VGK_DNN_CONFIGS]; /* that would do, best first */
    int64_t engine[VGK_DNN_CONFIGS];
    bool compiled[VGK_DNN_CONFIGS]; /* at run time, by NVRTC */
    int n_configs;
    size_t workspace;               /* of the first: the others get no more */
    cudnnBackendDescriptor_t built; /* NULL before */
    char text[256];
};

#endif
