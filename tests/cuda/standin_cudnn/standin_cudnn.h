/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A cuDNN for machines without a GPU: the functions that kernels/cuda/dnn*.c call, under the library's own name
 * (libcudnn.so.9), computing in plain C on the memory of the stand-in runtime, in the order of its streams.
 *
 * It checks what the real one checks (which attributes, of which types, finalised parts, shapes that fit together,
 * every virtual tensor written before it is read, aligned addresses, all of them given) and computes f16 with sums in
 * f32.  What it keeps between the steps of a graph lies in the workspace, nowhere else: a workspace that overlaps
 * something alive is seen.
 *
 *     VIDGEN_STANDIN_CUDNN_VERSION=n   what it says it is (91900)
 *     VIDGEN_STANDIN_CUDNN_FAIL=n      the n-th call that returns a status, counted from the first look at the
 *                                      environment, fails; read with every call */
#ifndef STANDIN_CUDNN_H
#define STANDIN_CUDNN_H

#include <cudnn_graph.h>
#include <stdbool.h>
#include <stddef.h>

enum { MOST_DIMS = 8, MOST_OPS = 16, MOST_TENSORS = 32 };

struct attribute {
    cudnnBackendAttributeName_t name;
    int64_t count;
    void *values; /* descriptors are held */
};

struct tensor {
    cudnnDataType_t type;
    int n;
    int64_t dim[MOST_DIMS], stride[MOST_DIMS], uid, align;
    bool is_virtual, by_value;
};

struct descriptor {
    cudnnBackendDescriptorType_t type;
    int references;
    bool final;
    struct attribute *attribute;
    int n_attributes;
    struct tensor tensor; /* of a finalised tensor */
    struct descriptor *graph; /* of an engine configuration, an engine, a plan */
    size_t workspace;
};

/* The values of an attribute, NULL when it is not set. */
const void *attribute_of(const struct descriptor *, cudnnBackendAttributeName_t, int64_t *count);
/* A descriptor among them; a tensor, NULL when it is something else. */
struct descriptor *part_of(const struct descriptor *, cudnnBackendAttributeName_t);
const struct tensor *tensor_of(const struct descriptor *, cudnnBackendAttributeName_t);

/* graph.c: do shapes fit; what does it take.  NULL, or what does not fit. */
const char *check_operation(const struct descriptor *);
const char *check_graph(const struct descriptor *);
const struct tensor *result_of(const struct descriptor *operation);
/* f32: the weights (or a query's scores) in the order they are used in, then a row of each operation's result. */
size_t workspace_of(const struct descriptor *graph, int64_t *weights, int64_t *row);

/* execute.c: the addresses of a graph's tensors. */
struct job {
    struct descriptor *graph;
    int n;
    int64_t uid[MOST_TENSORS];
    void *pointer[MOST_TENSORS];
    char *workspace;
};
void compute(const struct job *);

/* launch.cpp: as a kernel on a stream; the argument is released afterwards, or when a lost device never gets to it. */
#ifdef __cplusplus
extern "C"
#endif
void launch(cudaStream_t, void (*function)(void *), void (*release)(void *), void *argument);

#endif
