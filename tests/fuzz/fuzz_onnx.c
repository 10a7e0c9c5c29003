/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "model/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sum; /* every byte is touched, so that a sanitizer sees it */

static void check_values(const struct vg_graph *g)
{
    for (int i = 0; i < g->n_values; i++) {
        const struct vg_value *v = &g->values[i];
        size_t bytes = 0;
        if (!v->name || v->producer < -1)
            abort();
        if (v->constant && (!vgk_tensor_bytes(&v->tensor, &bytes) || !vgk_tensor_is_dense(&v->tensor, VGK_ROW_MAJOR) ||
                            (uintptr_t)v->tensor.data % VGK_ALIGN))
            abort();
        for (size_t j = 0; j < bytes; j++)
            sum += ((const uint8_t *)v->tensor.data)[j];
    }
}

/* What the loader promises of a graph, looked at once: whatever is wrong ends the process.  made: what the graphs around
 * it have made so far. */
static void check(const struct vg_graph *g, bool *made)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const struct vg_node *n = &g->nodes[i];
        for (int j = 0; j < n->n_in + n->n_captured; j++)
            if (n->in[j] < -1 || n->in[j] >= g->n_values || (n->in[j] >= 0 && !made[n->in[j]]))
                abort();
        for (int j = 0; j < n->n_attributes; j++)
            if (n->attributes[j].type == VG_ATTR_GRAPH && n->attributes[j].graph)
                check(n->attributes[j].graph, made);
        for (int j = 0; j < n->n_out; j++) {
            if (n->out[j] >= g->n_values || (n->out[j] >= 0 && (made[n->out[j]] || g->values[n->out[j]].producer != i)))
                abort();
            if (n->out[j] >= 0)
                made[n->out[j]] = true;
        }
        for (int j = 0; j < n->n_attributes; j++) {
            const struct vg_attribute *a = &n->attributes[j];
            size_t bytes = 0;
            if (vg_node_attribute(n, a->name) != a)
                abort();
            if (a->type == VG_ATTR_TENSOR && !vgk_tensor_bytes(&a->tensor, &bytes))
                abort();
            for (size_t k = 0; k < bytes; k++)
                sum += ((const uint8_t *)a->tensor.data)[k];
            for (size_t k = 0; a->type == VG_ATTR_INTS && k < a->n; k++)
                sum += (unsigned)a->ints[k];
            for (size_t k = 0; a->type == VG_ATTR_STRINGS && k < a->n; k++)
                sum += (unsigned)a->strings[k][0];
        }
    }
    for (int i = 0; i < g->n_inputs; i++)
        if (g->inputs[i] < 0 || g->inputs[i] >= g->n_values || g->values[g->inputs[i]].producer >= 0)
            abort();
    for (int i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] < 0 || g->outputs[i] >= g->n_values || !made[g->outputs[i]])
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vg_graph *graph = NULL;
    struct vgk_error err = { { 0 } };
    if (vg_onnx_parse(data, size, &graph, &err) == VGK_OK) {
        bool *made = calloc((size_t)graph->n_values + 1, sizeof *made);
        for (int i = 0; made && i < graph->n_values; i++)
            made[i] = graph->values[i].producer < 0;
        check_values(graph);
        if (made)
            check(graph, made);
        free(made);
    } else if (graph || !err.text[0])
        abort();
    vg_graph_free(&graph);
    return 0;
}
