/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds ONNX files in memory, right ones and wrong ones: a protobuf writer and helpers for the format's messages.
 *
 *     struct ow *m = ow_new(17);                            opset
 *     ow_input(m, "x", 1, "1,3,h,w");                       element type 1 = float; dims, or NULL for no shape
 *     ow_floats_tensor(m, "w", 4, (int64_t[]){8, 3, 3, 3}, data);
 *     struct pb *node = ow_node("Conv", "conv1", "x,w", "y");  inputs and outputs separated by commas, "" = left out
 *     ow_ints(node, "pads", 4, (int64_t[]){1, 1, 1, 1});
 *     ow_add(m, node);
 *     ow_output(m, "y", 1, NULL);
 *     size_t size;
 *     uint8_t *file = ow_finish(m, &size);                  frees m; the file is the caller's to free
 *
 * Messages are freed when they are put into another.  For wrong files put fields by hand: pb_int(node, field, value),
 * pb_bytes(...), with the format's numbers. */
#ifndef ONNX_WRITE_H
#define ONNX_WRITE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pb {
    uint8_t *data;
    size_t n, room;
};

static inline struct pb *pb_new(void) { return calloc(1, sizeof(struct pb)); }

static inline void pb_free(struct pb *p)
{
    free(p->data);
    free(p);
}

static inline void pb_put(struct pb *p, const void *data, size_t n)
{
    if (p->room - p->n < n)
        p->data = realloc(p->data, p->room = 2 * p->room + n);
    if (n)
        memcpy(p->data + p->n, data, n);
    p->n += n;
}

static inline void pb_varint(struct pb *p, uint64_t v)
{
    uint8_t b[10];
    size_t n = 0;
    for (; v >= 128; v >>= 7)
        b[n++] = (uint8_t)(v | 128);
    b[n++] = (uint8_t)v;
    pb_put(p, b, n);
}

static inline void pb_int(struct pb *p, int field, int64_t v)
{
    pb_varint(p, (uint64_t)field << 3);
    pb_varint(p, (uint64_t)v);
}

static inline void pb_bytes(struct pb *p, int field, const void *data, size_t n)
{
    pb_varint(p, (uint64_t)field << 3 | 2);
    pb_varint(p, n);
    pb_put(p, data, n);
}

static inline void pb_text(struct pb *p, int field, const char *s) { pb_bytes(p, field, s, strlen(s)); }

static inline void pb_float(struct pb *p, int field, float v)
{
    pb_varint(p, (uint64_t)field << 3 | 5);
    pb_put(p, &v, sizeof v);
}

static inline void pb_message(struct pb *p, int field, struct pb *m)
{
    pb_bytes(p, field, m->data, m->n);
    pb_free(m);
}

/* A packed list of integers. */
static inline void pb_ints(struct pb *p, int field, size_t n, const int64_t *v)
{
    struct pb *m = pb_new();
    for (size_t i = 0; i < n; i++)
        pb_varint(m, (uint64_t)v[i]);
    pb_message(p, field, m);
}

/* Each item of a list separated by commas as a text of its own. */
static inline void pb_texts(struct pb *p, int field, const char *list)
{
    for (const char *s = list; s && *list; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
        pb_bytes(p, field, s, strcspn(s, ","));
}

struct ow {
    struct pb *model, *graph;
};

static inline struct ow *ow_new(int64_t opset)
{
    struct ow *m = calloc(1, sizeof *m);
    struct pb *set = pb_new();
    m->model = pb_new();
    m->graph = pb_new();
    pb_int(m->model, 1, 8);
    pb_int(set, 2, opset);
    pb_message(m->model, 8, set);
    return m;
}

static inline uint8_t *ow_finish(struct ow *m, size_t *size)
{
    pb_message(m->model, 7, m->graph);
    uint8_t *data = m->model->data;
    *size = m->model->n;
    free(m->model);
    free(m);
    return data;
}

static inline struct pb *ow_node(const char *type, const char *name, const char *in, const char *out)
{
    struct pb *n = pb_new();
    pb_texts(n, 1, in);
    pb_texts(n, 2, out);
    pb_text(n, 3, name);
    pb_text(n, 4, type);
    return n;
}

static inline void ow_add(struct ow *m, struct pb *node) { pb_message(m->graph, 1, node); }

/* A node's attribute: kind is the format's number for its type. */
static inline struct pb *ow_attribute(const char *name, int kind)
{
    struct pb *a = pb_new();
    pb_text(a, 1, name);
    pb_int(a, 20, kind);
    return a;
}

static inline void ow_int(struct pb *node, const char *name, int64_t v)
{
    struct pb *a = ow_attribute(name, 2);
    pb_int(a, 3, v);
    pb_message(node, 5, a);
}

static inline void ow_float(struct pb *node, const char *name, float v)
{
    struct pb *a = ow_attribute(name, 1);
    pb_float(a, 2, v);
    pb_message(node, 5, a);
}

static inline void ow_string(struct pb *node, const char *name, const char *v)
{
    struct pb *a = ow_attribute(name, 3);
    pb_text(a, 4, v);
    pb_message(node, 5, a);
}

static inline void ow_ints(struct pb *node, const char *name, size_t n, const int64_t *v)
{
    struct pb *a = ow_attribute(name, 7);
    for (size_t i = 0; i < n; i++)
        pb_int(a, 8, v[i]);
    pb_message(node, 5, a);
}

static inline void ow_floats(struct pb *node, const char *name, size_t n, const float *v)
{
    struct pb *a = ow_attribute(name, 6);
    for (size_t i = 0; i < n; i++)
        pb_float(a, 7, v[i]);
    pb_message(node, 5, a);
}

/* A tensor without data; raw data are added by pb_bytes(t, 9, ...). */
static inline struct pb *ow_tensor(const char *name, int type, int rank, const int64_t *dim)
{
    struct pb *t = pb_new();
    if (rank)
        pb_ints(t, 1, (size_t)rank, dim);
    pb_int(t, 2, type);
    pb_text(t, 8, name);
    return t;
}

static inline struct pb *ow_raw(const char *name, int type, int rank, const int64_t *dim, const void *data,
                                size_t bytes)
{
    struct pb *t = ow_tensor(name, type, rank, dim);
    pb_bytes(t, 9, data, bytes);
    return t;
}

static inline size_t ow_count(int rank, const int64_t *dim)
{
    size_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= (size_t)dim[i];
    return n;
}

static inline void ow_tensor_attribute(struct pb *node, const char *name, struct pb *tensor)
{
    struct pb *a = ow_attribute(name, 4);
    pb_message(a, 5, tensor);
    pb_message(node, 5, a);
}

static inline void ow_initializer(struct ow *m, struct pb *tensor) { pb_message(m->graph, 5, tensor); }

static inline void ow_floats_tensor(struct ow *m, const char *name, int rank, const int64_t *dim, const float *data)
{
    ow_initializer(m, ow_raw(name, 1, rank, dim, data, ow_count(rank, dim) * sizeof *data));
}

static inline void ow_ints_tensor(struct ow *m, const char *name, int rank, const int64_t *dim, const int64_t *data)
{
    ow_initializer(m, ow_raw(name, 7, rank, dim, data, ow_count(rank, dim) * sizeof *data));
}

/* field: 11 = input, 12 = output.  dims: "1,3,h,w", "" = a scalar, NULL = no shape. */
static inline void ow_value(struct ow *m, int field, const char *name, int type, const char *dims)
{
    struct pb *v = pb_new(), *t = pb_new(), *tensor = pb_new();
    pb_int(tensor, 1, type);
    if (dims) {
        struct pb *shape = pb_new();
        for (const char *s = dims; s && *dims; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
            struct pb *d = pb_new();
            if ((*s >= '0' && *s <= '9') || *s == '-')
                pb_int(d, 1, strtoll(s, NULL, 10));
            else
                pb_bytes(d, 2, s, strcspn(s, ","));
            pb_message(shape, 1, d);
        }
        pb_message(tensor, 2, shape);
    }
    pb_message(t, 1, tensor);
    pb_text(v, 1, name);
    pb_message(v, 2, t);
    pb_message(m->graph, field, v);
}

static inline void ow_input(struct ow *m, const char *name, int type, const char *dims)
{
    ow_value(m, 11, name, type, dims);
}
static inline void ow_output(struct ow *m, const char *name, int type, const char *dims)
{
    ow_value(m, 12, name, type, dims);
}

static inline void ow_property(struct ow *m, const char *key, const char *value)
{
    struct pb *p = pb_new();
    pb_text(p, 1, key);
    pb_text(p, 2, value);
    pb_message(m->model, 14, p);
}

#endif
