/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "graph.h"

#include <stdio.h>
#include <string.h>

#include "arena.h"

void vg_graph_free(struct vg_graph **graph)
{
    if (*graph)
        vg_arena_free((*graph)->arena); /* the graph itself lies in it */
    *graph = NULL;
}

const struct vg_attribute *vg_node_attribute(const struct vg_node *node, const char *name)
{
    for (int i = 0; i < node->n_attributes; i++)
        if (!strcmp(node->attributes[i].name, name))
            return &node->attributes[i];
    return NULL;
}

int64_t vg_node_int(const struct vg_node *node, const char *name, int64_t otherwise)
{
    const struct vg_attribute *a = vg_node_attribute(node, name);
    return a && a->type == VG_ATTR_INT ? a->i : otherwise;
}

float vg_node_float(const struct vg_node *node, const char *name, float otherwise)
{
    const struct vg_attribute *a = vg_node_attribute(node, name);
    return a && a->type == VG_ATTR_FLOAT ? a->f : otherwise;
}

const char *vg_node_string(const struct vg_node *node, const char *name, const char *otherwise)
{
    const struct vg_attribute *a = vg_node_attribute(node, name);
    return a && a->type == VG_ATTR_STRING ? a->s : otherwise;
}

static enum vgk_status circle(const struct vg_node *nodes, const int *stack, int n, int again, struct vgk_error *err)
{
    char names[600] = "";
    int first = n - 1, i;
    while (stack[first] != again)
        first--;
    for (i = first; i < n && i < first + 6; i++) {
        const struct vg_node *node = &nodes[stack[i]];
        size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%snode %d \"%.50s\" (%.30s)", i > first ? " needs " : "", stack[i],
                 node->name, node->type);
    }
    return vgk_fail(err, VGK_ERR_INVALID, "its nodes form a circle: %s, which needs %s", names,
                    i < n ? "others that need it" : "the first again");
}

/* Depth first over the inputs, with a stack of its own. */
enum vgk_status vg_graph_sort(struct vg_graph *graph, int first, int n_own, struct vg_value *values,
                              const struct vg_node *nodes, struct vgk_error *err)
{
    size_t n = (size_t)graph->n_nodes;
    int n_sorted = 0;
    struct vg_node *sorted = vg_arena_array(graph->arena, n, sizeof *sorted);
    int *position = vg_arena_array(graph->arena, n, sizeof *position);
    int *stack = vg_arena_array(graph->arena, n, sizeof *stack);
    int *next = vg_arena_array(graph->arena, n, sizeof *next); /* input to look at */
    enum { NEW, OPEN, DONE } *state = vg_arena_array(graph->arena, n, sizeof *state);
    if (!sorted || !position || !stack || !next || !state)
        return vg_arena_error(graph->arena, err);
    for (int root = 0; root < graph->n_nodes; root++) {
        int depth = 0;
        if (state[root] == NEW) {
            stack[depth++] = root;
            state[root] = OPEN;
        }
        while (depth) {
            int node = stack[depth - 1];
            if (next[node] == nodes[node].n_in + nodes[node].n_captured) {
                state[node] = DONE;
                position[node] = n_sorted;
                sorted[n_sorted++] = nodes[node];
                depth--;
                continue;
            }
            int value = nodes[node].in[next[node]++];
            int from = value < first || value >= first + n_own ? -1 : values[value].producer;
            if (from < 0 || state[from] == DONE)
                continue;
            if (state[from] == OPEN)
                return circle(nodes, stack, depth, from, err);
            state[from] = OPEN;
            stack[depth++] = from;
        }
    }
    for (int i = first; i < first + n_own; i++)
        if (values[i].producer >= 0)
            values[i].producer = position[values[i].producer];
    graph->nodes = sorted;
    return VGK_OK;
}
