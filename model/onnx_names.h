/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The names in a file: which value each one means, in the file's graph and in the branches of its Ifs.  Used by onnx.c
 * alone. */
#ifndef VG_ONNX_NAMES_H
#define VG_ONNX_NAMES_H

#include "onnx_data.h"

/* A value that a branch reads of a graph around it. */
struct vg_onnx_capture {
    int value;
    struct vg_onnx_capture *next;
};

/* A graph and the names that it defines: the file's, or a branch's, which sees those around it, too. */
struct vg_onnx_scope {
    const Vg__Graph *proto;
    struct vg_graph *graph;
    struct vg_onnx_scope *outer, *next, *inner, *beside; /* next: of all, outer ones first; inner, beside: its branches
                                                            in the order of its nodes and their attributes */
    size_t node;                         /* of the outer graph, whose branch it is */
    struct vg_onnx_capture **captures;   /* for each node; NULL: it has no branches */
    struct vg_onnx_definition *definitions, **by_name;
    size_t n_definitions;
    int depth, first, n_values; /* its own values: initializer i is value first + i */
};

struct vg_onnx_names {
    struct vg_arena *arena;
    struct vg_onnx_scope *scopes, **last; /* the file's graph first */
    size_t n_nodes;                       /* of all */
    int n_values;
    struct vg_value *values; /* of all: name and producer (in the file's order) are set */
};

/* Unpacks the branches, gives every name in its graph one value, or says who makes it twice. */
enum vgk_status vg_onnx_names(struct vg_onnx_names *, const Vg__Graph *, struct vg_graph *, struct vgk_error *);

/* The value of a name as this graph sees it; -1. */
int vg_onnx_find(const struct vg_onnx_scope *, const char *name);
/* The value of its i-th input; -1: an initializer gives it a default. */
int vg_onnx_input(const struct vg_onnx_scope *, size_t i);

/* Unpacks messages into the arena. */
ProtobufCAllocator vg_onnx_allocator(struct vg_arena *);

/* A graph of the file that such an attribute holds, and which is loaded. */
bool vg_onnx_is_branch(const Vg__Node *, const Vg__Attribute *);
/* 'node 3 "name" (Conv)' */
const char *vg_onnx_label(const struct vg_onnx_scope *, size_t node, char *buffer, size_t size);
static inline const char *vg_onnx_text(const char *s) { return s ? s : ""; }

#endif
