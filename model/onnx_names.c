/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "onnx_names.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx.h"

/* Whatever makes a value.  In the file's order, initializers first. */
struct vg_onnx_definition {
    const char *name;
    enum { INITIALIZER, INPUT, OUTPUT } kind;
    int value;
    int maker;                             /* node */
    const struct vg_onnx_definition *same; /* an input that an initializer gives a default */
};

static const char *text(const char *s) { return vg_onnx_text(s); }

const char *vg_onnx_label(const struct vg_onnx_scope *g, size_t node, char *buffer, size_t size)
{
    const Vg__Node *p = g->proto->node[node];
    snprintf(buffer, size, "node %zu \"%.100s\" (%.60s)", node, text(p->name), text(p->op_type));
    return buffer;
}

static int by_name(const void *a, const void *b)
{
    const struct vg_onnx_definition *x = *(struct vg_onnx_definition *const *)a, *y = *(struct vg_onnx_definition *const *)b;
    int c = strcmp(x->name, y->name);
    return c ? c : x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : x->maker < y->maker ? -1 : x->maker > y->maker;
}

int vg_onnx_find(const struct vg_onnx_scope *g, const char *name)
{
    for (; g; g = g->outer) {
        size_t low = 0, high = g->n_definitions;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            int c = strcmp(name, g->by_name[middle]->name);
            if (!c)
                return g->by_name[middle]->value;
            if (c < 0)
                high = middle;
            else
                low = middle + 1;
        }
    }
    return -1;
}

static const char *const makers[] = { "initializer", "input", "node" };

static enum vgk_status define(struct vg_onnx_scope *g, const char *name, int kind, size_t maker,
                              struct vgk_error *err)
{
    if (!*name)
        return vgk_fail(err, VGK_ERR_INVALID, "%s %zu has no name", makers[kind], maker);
    g->definitions[g->n_definitions++] = (struct vg_onnx_definition){ .name = name, .kind = kind, .maker = (int)maker };
    return VGK_OK;
}

/* Gives every name of a graph one value, or says who makes it twice. */
static enum vgk_status collect_values(struct vg_onnx_names *l, struct vg_onnx_scope *g, struct vgk_error *err)
{
    const Vg__Graph *p = g->proto;
    size_t n = p->n_initializer + p->n_input;
    for (size_t i = 0; i < p->n_node; i++)
        n += p->node[i]->n_output;
    g->definitions = vg_arena_array(l->arena, n, sizeof *g->definitions);
    g->by_name = vg_arena_array(l->arena, n, sizeof *g->by_name);
    if (!g->definitions || !g->by_name)
        return vg_arena_error(l->arena, err);
    enum vgk_status status = VGK_OK;
    for (size_t i = 0; i < p->n_initializer && status == VGK_OK; i++)
        status = define(g, text(p->initializer[i]->name), INITIALIZER, i, err);
    for (size_t i = 0; i < p->n_input && status == VGK_OK; i++)
        status = define(g, text(p->input[i]->name), INPUT, i, err);
    for (size_t i = 0; i < p->n_node && status == VGK_OK; i++)
        for (size_t j = 0; j < p->node[i]->n_output && status == VGK_OK; j++)
            if (*p->node[i]->output[j])
                status = define(g, p->node[i]->output[j], OUTPUT, i, err);
    if (status != VGK_OK)
        return status;

    for (size_t i = 0; i < g->n_definitions; i++)
        g->by_name[i] = &g->definitions[i];
    qsort(g->by_name, g->n_definitions, sizeof *g->by_name, by_name);
    for (size_t i = 1; i < g->n_definitions; i++) {
        struct vg_onnx_definition *a = g->by_name[i - 1], *b = g->by_name[i];
        if (strcmp(a->name, b->name))
            continue;
        if (a->kind != INITIALIZER || b->kind != INPUT)
            return vgk_fail(err, VGK_ERR_INVALID, "value '%.200s' is defined twice: by %s %d and %s %d", a->name,
                            makers[a->kind], a->maker, makers[b->kind], b->maker);
        b->same = a;
    }
    g->first = l->n_values;
    for (size_t i = 0; i < g->n_definitions; i++) {
        struct vg_onnx_definition *d = &g->definitions[i];
        d->value = d->same ? d->same->value : g->first + g->n_values++;
    }
    if (l->n_values > INT_MAX - g->n_values)
        return vgk_fail(err, VGK_ERR_INVALID, "has more than %d values", INT_MAX);
    l->n_values += g->n_values;
    return VGK_OK;
}

static void *take(void *arena, size_t size) { return vg_arena_alloc(arena, size); }
static void give(void *arena, void *block) {}

ProtobufCAllocator vg_onnx_allocator(struct vg_arena *arena) { return (ProtobufCAllocator){ take, give, arena }; }

bool vg_onnx_is_branch(const Vg__Node *p, const Vg__Attribute *a)
{
    return !strcmp(text(p->op_type), "If") && a->has_g &&
           (!strcmp(text(a->name), "then_branch") || !strcmp(text(a->name), "else_branch"));
}

int vg_onnx_input(const struct vg_onnx_scope *g, size_t i)
{
    const struct vg_onnx_definition *d = &g->definitions[g->proto->n_initializer + i];
    return d->same ? -1 : d->value;
}

/* A graph's names, and those of the branches in it. */
static enum vgk_status open_scope(struct vg_onnx_names *l, struct vg_onnx_scope *g, struct vgk_error *err)
{
    const Vg__Graph *proto = g->proto;
    struct vg_onnx_scope **inner = &g->inner;
    enum vgk_status status;
    char who[256];
    *l->last = g;
    l->last = &g->next;
    if (proto->n_sparse_initializer)
        return vgk_fail(err, VGK_ERR_UNSUPPORTED,
                        "has %zu sparse initializers, which are not supported; store them densely",
                        proto->n_sparse_initializer);
    l->n_nodes += proto->n_node;
    if (l->n_nodes > VG_ONNX_MAX_NODES)
        return vgk_fail(err, VGK_ERR_INVALID, "has %zu nodes, more than VG_ONNX_MAX_NODES = %d", l->n_nodes,
                        VG_ONNX_MAX_NODES);
    if ((status = collect_values(l, g, err)) != VGK_OK)
        return status;
    for (size_t i = 0; i < proto->n_node; i++)
        for (size_t j = 0; j < proto->node[i]->n_attribute; j++) {
            const Vg__Attribute *a = proto->node[i]->attribute[j];
            if (!vg_onnx_is_branch(proto->node[i], a))
                continue;
            vg_onnx_label(g, i, who, sizeof who);
            if (g->depth == VG_ONNX_MAX_DEPTH)
                return vgk_fail(err, VGK_ERR_INVALID, "%s: is nested more than VG_ONNX_MAX_DEPTH = %d deep", who,
                                VG_ONNX_MAX_DEPTH);
            struct vg_onnx_scope *child = vg_arena_array(l->arena, 1, sizeof *child);
            if (!child || !(child->graph = vg_arena_array(l->arena, 1, sizeof *child->graph)) ||
                (!g->captures && !(g->captures = vg_arena_array(l->arena, proto->n_node, sizeof *g->captures))))
                return vg_arena_error(l->arena, err);
            ProtobufCAllocator allocator = vg_onnx_allocator(l->arena);
            if (!(child->proto = vg__graph__unpack(&allocator, a->g.len, a->g.data)))
                return l->arena->failed
                           ? vg_arena_error(l->arena, err)
                           : vgk_fail(err, VGK_ERR_INVALID, "%s: its %s is no graph, or is damaged", who, a->name);
            child->outer = g;
            child->depth = g->depth + 1;
            child->node = i;
            *inner = child;
            inner = &child->beside;
            if ((status = open_scope(l, child, err)) != VGK_OK)
                return status;
        }
    return VGK_OK;
}

/* Notes a value that a branch reads, at the node around it in the graph whose value it is. */
static bool capture(struct vg_onnx_names *l, struct vg_onnx_scope *g, int value)
{
    size_t node = 0;
    while (g && (value < g->first || value >= g->first + g->n_values)) {
        node = g->node;
        g = g->outer;
    }
    struct vg_onnx_capture *c = vg_arena_array(l->arena, 1, sizeof *c);
    if (c) {
        *c = (struct vg_onnx_capture){ value, g->captures[node] };
        g->captures[node] = c;
    }
    return c != NULL;
}

static bool capture_all(struct vg_onnx_names *l, struct vg_onnx_scope *g)
{
    for (size_t k = 0; k <= g->proto->n_node; k++) { /* behind the nodes: the outputs */
        const Vg__Node *p = k < g->proto->n_node ? g->proto->node[k] : NULL;
        for (size_t j = 0; j < (p ? p->n_input : g->proto->n_output); j++) {
            int v = vg_onnx_find(g, p ? p->input[j] : text(g->proto->output[j]->name));
            bool outside = v >= 0 && (v < g->first || v >= g->first + g->n_values);
            if (outside && !capture(l, g, v))
                return false;
        }
    }
    return true;
}

enum vgk_status vg_onnx_names(struct vg_onnx_names *l, const Vg__Graph *proto, struct vg_graph *graph,
                              struct vgk_error *err)
{
    struct vg_onnx_scope *file = vg_arena_array(l->arena, 1, sizeof *file);
    if (!file)
        return vg_arena_error(l->arena, err);
    file->proto = proto;
    file->graph = graph;
    l->last = &l->scopes;
    enum vgk_status status = open_scope(l, file, err);
    if (status != VGK_OK)
        return status;
    l->values = vg_arena_array(l->arena, (size_t)l->n_values, sizeof *l->values);
    if (!l->values)
        return vg_arena_error(l->arena, err);
    for (struct vg_onnx_scope *g = l->scopes; g; g = g->next) {
        for (size_t i = 0; i < g->n_definitions; i++) {
            const struct vg_onnx_definition *d = &g->definitions[i];
            if (!d->same)
                l->values[d->value] =
                    (struct vg_value){ .name = d->name, .producer = d->kind == OUTPUT ? d->maker : -1 };
        }
        g->graph->n_values = l->n_values;
        g->graph->values = l->values;
        if (!capture_all(l, g))
            return vg_arena_error(l->arena, err);
    }
    return VGK_OK;
}
