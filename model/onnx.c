/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "onnx.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "arena.h"
#include "onnx_names.h"
#include "onnx_strip.h"

/* The file is unpacked right into the graph's arena, and names and weights are used where they lie: weights are in
 * memory once.  Against files that grow when unpacked (an empty node is 2 bytes there and 200 here) the arena is
 * limited to a multiple of the file. */
#define ARENA_BASE ((size_t)64 << 20)
#define ARENA_TIMES 16

#define MIN_IR 3
#define MAX_IR 14

struct loader {
    const Vg__Model *model;
    struct vg_arena *arena;
    struct vg_onnx_source source;
    struct vg_onnx_names names;
    struct vg_graph *graph;
    struct vgk_error *err;
};

static const char *text(const char *s) { return vg_onnx_text(s); }

static enum vgk_status no_memory(const struct loader *l) { return vg_arena_error(l->arena, l->err); }

static bool default_domain(const char *domain) { return !domain || !*domain || !strcmp(domain, "ai.onnx"); }

static enum vgk_status check_model(struct loader *l)
{
    const Vg__Model *m = l->model;
    if (!m->has_ir_version || !m->graph)
        return vgk_fail(l->err, VGK_ERR_INVALID, "is no ONNX model, or is cut off: it has no %s",
                        m->graph ? "IR version" : "graph");
    if (m->ir_version < MIN_IR || m->ir_version > MAX_IR)
        return vgk_fail(l->err, VGK_ERR_UNSUPPORTED,
                        "has IR version %" PRId64 ", %d to %d are supported; export it again, "
                        "with opset 17 for example",
                        m->ir_version, MIN_IR, MAX_IR);
    int64_t opset = -1;
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const Vg__OperatorSet *o = m->opset_import[i];
        if (!default_domain(o->domain))
            continue;
        if (opset != -1 && o->version != opset)
            return vgk_fail(l->err, VGK_ERR_INVALID, "says opset %" PRId64 " and opset %" PRId64, opset, o->version);
        opset = o->version;
    }
    l->graph->ir_version = m->ir_version;
    l->graph->opset = opset;
    l->graph->producer = text(m->producer_name);
    return VGK_OK;
}

/* A node that calls a function of the file's own. */
static bool calls_function(const struct loader *l, const Vg__Node *p)
{
    for (size_t i = 0; i < l->model->n_functions; i++) {
        const Vg__Function *f = l->model->functions[i];
        if (!strcmp(text(f->name), p->op_type) && !strcmp(text(f->domain), text(p->domain)))
            return true;
    }
    return false;
}

/* Every node is of ONNX's own domain, in an opset that is known. */
static enum vgk_status check_domains(struct loader *l, const struct vg_onnx_scope *g)
{
    char who[256];
    int64_t opset = l->graph->opset;
    for (size_t i = 0; i < g->proto->n_node; i++) {
        const Vg__Node *p = g->proto->node[i];
        if (!p->op_type || !*p->op_type)
            return vgk_fail(l->err, VGK_ERR_INVALID, "node %zu \"%.100s\" has no operator", i, text(p->name));
        if (calls_function(l, p))
            return vgk_fail(l->err, VGK_ERR_UNSUPPORTED,
                            "%s calls a function that the file defines itself, which is not supported; inline its "
                            "functions (onnx.inliner.inline_local_functions) or export without them",
                            vg_onnx_label(g, i, who, sizeof who));
        if (!default_domain(p->domain))
            return vgk_fail(l->err, VGK_ERR_UNSUPPORTED,
                            "%s is of domain '%.100s', only ONNX's own operators are "
                            "supported; export the model without a runtime's optimisations",
                            vg_onnx_label(g, i, who, sizeof who), p->domain);
    }
    if (opset == -1)
        return vgk_fail(l->err, VGK_ERR_INVALID, "does not say which opset it is of: cut off, or no model");
    if (opset < VG_ONNX_MIN_OPSET || opset > VG_ONNX_MAX_OPSET)
        return vgk_fail(l->err, VGK_ERR_UNSUPPORTED,
                        "is of opset %" PRId64 ", %d to %d are supported; export it again, with "
                        "opset 17 for example",
                        opset, VG_ONNX_MIN_OPSET, VG_ONNX_MAX_OPSET);
    return VGK_OK;
}

static enum vgk_status load_initializers(struct loader *l, const struct vg_onnx_scope *g)
{
    char what[256];
    for (size_t i = 0; i < g->proto->n_initializer; i++) {
        const Vg__Tensor *p = g->proto->initializer[i];
        struct vg_value *v = &l->names.values[g->first + (int)i];
        enum vgk_type type;
        /* One of a type that we do not have is refused only when somebody asks for it: see use_value. */
        if (p->data_type && !vg_onnx_type(p->data_type, &type))
            continue;
        snprintf(what, sizeof what, "initializer '%.200s'", v->name);
        enum vgk_status status = vg_onnx_tensor(&l->source, p, what, &v->tensor, l->err);
        if (status != VGK_OK)
            return status;
        v->constant = true;
    }
    return VGK_OK;
}

static enum vgk_status use_value(struct loader *l, const struct vg_onnx_scope *g, int value, const char *who)
{
    for (; g; g = g->outer)
        if (value >= g->first && (size_t)(value - g->first) < g->proto->n_initializer && !l->names.values[value].constant)
            return vgk_fail(l->err, VGK_ERR_UNSUPPORTED,
                            "%s uses initializer '%.200s', whose element type %s is not supported", who,
                            l->names.values[value].name,
                            vg_onnx_type_name(g->proto->initializer[value - g->first]->data_type));
    return VGK_OK;
}

/* Text of the file may hold anything and has no end; attributes are texts here. */
static const char *copy_text(struct loader *l, ProtobufCBinaryData s)
{
    char *copy = vg_arena_alloc(l->arena, s.len + 1);
    if (!copy)
        return NULL;
    if (s.len)
        memcpy(copy, s.data, s.len);
    copy[s.len] = '\0';
    return copy;
}

/* The type as the file says; files of the first versions say nothing. */
static int attribute_type(const Vg__Attribute *p)
{
    if (p->has_type && p->type)
        return p->type;
    return p->has_f       ? 1
           : p->has_i     ? 2
           : p->has_s     ? 3
           : p->t         ? 4
           : p->has_g     ? 5
           : p->n_floats  ? 6
           : p->n_ints    ? 7
           : p->n_strings ? 8
           : p->n_tensors ? 9
           : p->n_graphs  ? 10
                          : 0;
}

static enum vgk_status load_attribute(struct loader *l, const Vg__Attribute *p, const char *who, struct vg_attribute *a)
{
    char what[512];
    snprintf(what, sizeof what, "%s, attribute '%.100s'", who, text(p->name));
    if (!p->name || !*p->name)
        return vgk_fail(l->err, VGK_ERR_INVALID, "%s: has no name", what);
    if (p->ref_attr_name && *p->ref_attr_name)
        return vgk_fail(l->err, VGK_ERR_INVALID, "%s: refers to a function's attribute, and this is no function", what);
    a->name = p->name;
    switch (attribute_type(p)) {
    case 1:
        a->type = VG_ATTR_FLOAT;
        a->f = p->f;
        return VGK_OK;
    case 2:
        a->type = VG_ATTR_INT;
        a->i = p->i;
        return VGK_OK;
    case 3:
        a->type = VG_ATTR_STRING;
        a->s = copy_text(l, p->s);
        return a->s ? VGK_OK : no_memory(l);
    case 4:
        a->type = VG_ATTR_TENSOR;
        if (!p->t)
            return vgk_fail(l->err, VGK_ERR_INVALID, "%s: should be a tensor, but has none", what);
        return vg_onnx_tensor(&l->source, p->t, what, &a->tensor, l->err);
    case 5:
    case 10:
        a->type = VG_ATTR_GRAPH;
        return VGK_OK;
    case 6:
        a->type = VG_ATTR_FLOATS;
        a->n = p->n_floats;
        a->floats = p->floats;
        return VGK_OK;
    case 7:
        a->type = VG_ATTR_INTS;
        a->n = p->n_ints;
        a->ints = p->ints;
        return VGK_OK;
    case 8: {
        const char **strings = vg_arena_array(l->arena, p->n_strings, sizeof *strings);
        if (!strings)
            return no_memory(l);
        a->type = VG_ATTR_STRINGS;
        a->n = p->n_strings;
        a->strings = strings;
        for (size_t i = 0; i < a->n; i++)
            if (!(strings[i] = copy_text(l, p->strings[i])))
                return no_memory(l);
        return VGK_OK;
    }
    default:
        return vgk_fail(l->err, VGK_ERR_UNSUPPORTED,
                        "%s: is of type %d; numbers, texts, lists of them, tensors and graphs "
                        "are supported",
                        what, attribute_type(p));
    }
}

/* *branch: the next of the graph's branches. */
static enum vgk_status load_node(struct loader *l, struct vg_onnx_scope *g, size_t index, struct vg_node *node,
                                 const struct vg_onnx_scope **branch)
{
    const Vg__Node *p = g->proto->node[index];
    char who[256];
    vg_onnx_label(g, index, who, sizeof who);
    if (p->n_attribute > VG_ONNX_MAX_ATTRIBUTES)
        return vgk_fail(l->err, VGK_ERR_INVALID, "%s: has %zu attributes, more than VG_ONNX_MAX_ATTRIBUTES = %d", who,
                        p->n_attribute, VG_ONNX_MAX_ATTRIBUTES);
    size_t n_captured = 0;
    const struct vg_onnx_capture *captures = g->captures ? g->captures[index] : NULL;
    for (const struct vg_onnx_capture *c = captures; c; c = c->next)
        n_captured++;
    int *in = vg_arena_array(l->arena, p->n_input + n_captured, sizeof *in),
        *out = vg_arena_array(l->arena, p->n_output, sizeof *out);
    struct vg_attribute *attributes = vg_arena_array(l->arena, p->n_attribute, sizeof *attributes);
    if (!in || !out || !attributes)
        return no_memory(l);
    for (size_t i = p->n_input; captures; captures = captures->next)
        in[i++] = captures->value;
    for (size_t i = 0; i < p->n_input; i++) {
        in[i] = *p->input[i] ? vg_onnx_find(g, p->input[i]) : -1;
        if (in[i] < 0 && *p->input[i])
            return vgk_fail(l->err, VGK_ERR_INVALID,
                            "%s: nobody makes its input %zu, '%.200s': it is no graph input, no "
                            "initializer and no output of a node",
                            who, i, p->input[i]);
        enum vgk_status status = in[i] < 0 ? VGK_OK : use_value(l, g, in[i], who);
        if (status != VGK_OK)
            return status;
    }
    for (size_t i = 0; i < p->n_output; i++)
        out[i] = *p->output[i] ? vg_onnx_find(g, p->output[i]) : -1;
    for (size_t i = 0; i < p->n_attribute; i++) {
        enum vgk_status status = load_attribute(l, p->attribute[i], who, &attributes[i]);
        if (status != VGK_OK)
            return status;
        if (vg_onnx_is_branch(p, p->attribute[i])) {
            attributes[i].graph = (*branch)->graph;
            *branch = (*branch)->beside;
        }
        for (size_t j = 0; j < i; j++)
            if (!strcmp(attributes[i].name, attributes[j].name))
                return vgk_fail(l->err, VGK_ERR_INVALID, "%s: has attribute '%.100s' twice", who, attributes[i].name);
    }
    *node = (struct vg_node){ .name = text(p->name),
                              .type = p->op_type,
                              .domain = "",
                              .n_in = (int)p->n_input,
                              .n_captured = (int)n_captured,
                              .n_out = (int)p->n_output,
                              .n_attributes = (int)p->n_attribute,
                              .in = in,
                              .out = out,
                              .attributes = attributes };
    return VGK_OK;
}

/* What the file declares of an input or output. */
static enum vgk_status declare(struct loader *l, const Vg__ValueInfo *p, const char *kind, struct vg_value *v)
{
    const Vg__Type *t = p->type;
    if (!t)
        return VGK_OK;
    if (t->has_sequence_type || t->has_map_type || t->has_opaque_type || t->has_sparse_tensor_type ||
        t->has_optional_type)
        return vgk_fail(l->err, VGK_ERR_UNSUPPORTED, "%s '%.200s' is a %s; dense tensors are supported", kind, v->name,
                        t->has_sequence_type   ? "sequence"
                        : t->has_map_type      ? "map"
                        : t->has_optional_type ? "optional"
                        : t->has_opaque_type   ? "type of its own"
                                               : "sparse tensor");
    if (!t->tensor_type || !t->tensor_type->elem_type)
        return VGK_OK;
    struct vgk_tensor d = { .rank = -1 };
    if (!vg_onnx_type(t->tensor_type->elem_type, &d.type))
        return vgk_fail(l->err, VGK_ERR_UNSUPPORTED, "%s '%.200s': element type %" PRId32 " (%s) is not supported",
                        kind, v->name, t->tensor_type->elem_type, vg_onnx_type_name(t->tensor_type->elem_type));
    const Vg__Shape *shape = t->tensor_type->shape;
    int64_t count = 1;
    if (shape && shape->n_dim > VGK_MAX_RANK)
        return vgk_fail(l->err, VGK_ERR_UNSUPPORTED, "%s '%.200s': has %zu dimensions, up to %d are supported", kind,
                        v->name, shape->n_dim, VGK_MAX_RANK);
    for (size_t i = 0; shape && i < shape->n_dim; i++) {
        const Vg__Dimension *dim = shape->dim[i];
        d.dim[i] = dim->has_dim_value ? dim->dim_value : -1;
        if (d.dim[i] < -1)
            return vgk_fail(l->err, VGK_ERR_INVALID, "%s '%.200s': dimension %zu is %" PRId64, kind, v->name, i,
                            d.dim[i]);
        if (d.dim[i] > 0 && (__builtin_mul_overflow(count, d.dim[i], &count) || count > VG_ONNX_MAX_ELEMENTS))
            return vgk_fail(l->err, VGK_ERR_INVALID,
                            "%s '%.200s': has more than VG_ONNX_MAX_ELEMENTS = %" PRId64 " elements", kind, v->name,
                            VG_ONNX_MAX_ELEMENTS);
        if (!dim->has_dim_value && dim->dim_param && *dim->dim_param)
            v->dim_name[i] = dim->dim_param;
    }
    if (shape)
        d.rank = (int)shape->n_dim;
    v->tensor = d;
    return VGK_OK;
}

static enum vgk_status load_inputs(struct loader *l, struct vg_onnx_scope *g)
{
    const Vg__Graph *p = g->proto;
    int *inputs = vg_arena_array(l->arena, p->n_input, sizeof *inputs);
    if (!inputs)
        return no_memory(l);
    g->graph->inputs = inputs;
    if (g->outer && p->n_input)
        return vgk_fail(l->err, VGK_ERR_INVALID, "a branch of an If has %zu inputs; it reads the values around it",
                        p->n_input);
    for (size_t i = 0; i < p->n_input; i++) {
        int value = vg_onnx_input(g, i);
        if (value < 0)
            continue;
        enum vgk_status status = declare(l, p->input[i], "input", &l->names.values[value]);
        if (status != VGK_OK)
            return status;
        inputs[g->graph->n_inputs++] = value;
    }
    return VGK_OK;
}

static enum vgk_status load_outputs(struct loader *l, struct vg_onnx_scope *g)
{
    const Vg__Graph *p = g->proto;
    int *outputs = vg_arena_array(l->arena, p->n_output, sizeof *outputs);
    bool *seen = vg_arena_array(l->arena, (size_t)l->names.n_values, sizeof *seen);
    if (!outputs || !seen)
        return no_memory(l);
    g->graph->outputs = outputs;
    for (size_t i = 0; i < p->n_output; i++) {
        const char *name = text(p->output[i]->name);
        int value = vg_onnx_find(g, name);
        if (value < 0)
            return vgk_fail(l->err, VGK_ERR_INVALID, "nobody makes its output %zu, '%.200s'", i, name);
        if (seen[value] && !g->outer)
            return vgk_fail(l->err, VGK_ERR_INVALID, "has output '%.200s' twice", name);
        seen[value] = true;
        enum vgk_status status = use_value(l, g, value, "the graph's output");
        if (status == VGK_OK && l->names.values[value].producer >= 0 && !g->outer)
            status = declare(l, p->output[i], "output", &l->names.values[value]);
        if (status != VGK_OK)
            return status;
        outputs[g->graph->n_outputs++] = value;
    }
    return VGK_OK;
}

static enum vgk_status load_properties(struct loader *l)
{
    const Vg__Model *m = l->model;
    struct vg_property *properties = vg_arena_array(l->arena, m->n_metadata_props, sizeof *properties);
    if (!properties)
        return no_memory(l);
    for (size_t i = 0; i < m->n_metadata_props; i++)
        properties[i] = (struct vg_property){ text(m->metadata_props[i]->key), text(m->metadata_props[i]->value) };
    l->graph->properties = properties;
    l->graph->n_properties = (int)m->n_metadata_props;
    return VGK_OK;
}

static enum vgk_status load_scope(struct loader *l, struct vg_onnx_scope *g)
{
    enum vgk_status status;
    const struct vg_onnx_scope *branch = g->inner;
    struct vg_node *nodes = vg_arena_array(l->arena, g->proto->n_node, sizeof *nodes); /* in the file's order */
    if (!nodes)
        return no_memory(l);
    g->graph->n_nodes = (int)g->proto->n_node;
    g->graph->arena = l->arena;
    if ((status = load_inputs(l, g)) != VGK_OK)
        return status;
    for (size_t i = 0; i < g->proto->n_node; i++)
        if ((status = load_node(l, g, i, &nodes[i], &branch)) != VGK_OK)
            return status;
    status = vg_graph_sort(g->graph, g->first, g->n_values, l->names.values, nodes, l->err);
    return status == VGK_OK ? load_outputs(l, g) : status;
}

static enum vgk_status load(struct loader *l)
{
    enum vgk_status status;
    l->graph = vg_arena_array(l->arena, 1, sizeof *l->graph);
    if (!l->graph)
        return no_memory(l);
    l->names.arena = l->arena;
    if ((status = check_model(l)) != VGK_OK ||
        (status = vg_onnx_names(&l->names, l->model->graph, l->graph, l->err)) != VGK_OK)
        return status;
    for (struct vg_onnx_scope *g = l->names.scopes; g; g = g->next)
        if ((status = check_domains(l, g)) != VGK_OK || (status = load_initializers(l, g)) != VGK_OK)
            return status;
    for (struct vg_onnx_scope *g = l->names.scopes; g; g = g->next)
        if ((status = load_scope(l, g)) != VGK_OK)
            return status;
    if ((status = load_properties(l)) != VGK_OK)
        return status;
    return vg_onnx_check_overlap(&l->source, l->err);
}

/* Why protobuf could not read it.  The first field of a model is one of the format's, of the right kind. */
static enum vgk_status unreadable(struct loader *l, const uint8_t *data, size_t size)
{
    static const uint8_t kinds[] = { [1] = 1 + 0, [2] = 1 + 2, [3] = 1 + 2, [4] = 1 + 2, [5] = 1 + 0,
                                     [6] = 1 + 2, [7] = 1 + 2, [8] = 1 + 2, [14] = 1 + 2 };
    if (l->arena->failed)
        return no_memory(l);
    unsigned field = data[0] >> 3, kind = data[0] & 7;
    if (field >= sizeof kinds || kinds[field] != 1 + kind)
        return vgk_fail(l->err, VGK_ERR_INVALID, "is no ONNX model: it begins with 0x%02x, which no such file does",
                        data[0]);
    return vgk_fail(l->err, VGK_ERR_INVALID,
                    "is no ONNX model, or is cut off or damaged (it has %zu bytes); copy or "
                    "download it again",
                    size);
}

/* `file` is unmapped as soon as it has been unpacked, unless large weights stay in it. */
static enum vgk_status parse(const void *data, size_t size, const char *folder, void *file, struct vg_graph **graph,
                             struct vgk_error *err)
{
    struct loader l = { .err = err };
    struct vg_onnx_stripped small = { .data = NULL };
    enum vgk_status status = VGK_OK;
    if (!size)
        status = vgk_fail(err, VGK_ERR_INVALID, "is empty: no ONNX model");
    else if (size > VG_ONNX_MAX_FILE)
        status = vgk_fail(err, VGK_ERR_INVALID,
                          "has %zu bytes, more than VG_ONNX_MAX_FILE = %zu; keep its weights in a file "
                          "of their own (external data)",
                          size, VG_ONNX_MAX_FILE);
    else if (!(l.arena = vg_arena_new(ARENA_BASE + ARENA_TIMES * size)))
        status = vgk_fail(err, VGK_ERR_NOMEM, "no memory to load the model");
    if (status == VGK_OK) {
        ProtobufCAllocator allocator = vg_onnx_allocator(l.arena);
        l.source = (struct vg_onnx_source){ .arena = l.arena, .folder = folder };
        bool stays = file && vg_onnx_strip(file, size, &small) && vg_arena_adopt(l.arena, file, size);
        if (stays) {
            l.source.mapped = file;
            l.source.mapped_end = (const char *)file + size;
            file = NULL; /* goes with the arena */
        }
        l.model = vg__model__unpack(&allocator, stays ? small.size : size, stays ? small.data : data);
        if (stays && l.model && !vg_onnx_put_back(&small, (Vg__Model *)l.model))
            l.model = NULL;
    }
    if (status == VGK_OK && !l.model)
        status = unreadable(&l, data, size);
    vg_onnx_stripped_free(&small);
    if (file)
        munmap(file, size);
    if (status == VGK_OK)
        status = load(&l);
    if (status == VGK_OK)
        *graph = l.graph;
    else
        vg_arena_free(l.arena);
    return status;
}

enum vgk_status vg_onnx_parse(const void *data, size_t size, struct vg_graph **graph, struct vgk_error *err)
{
    return parse(data, size, NULL, NULL, graph, err);
}

enum vgk_status vg_onnx_load(const char *path, struct vg_graph **graph, struct vgk_error *err)
{
    const void *data;
    size_t size;
    enum vgk_status status = vg_map_file(NULL, path, &data, &size, err);
    if (status != VGK_OK)
        return status;
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char named[PATH_MAX], folder[PATH_MAX];
    snprintf(named, sizeof named, "%.*s/.", slash ? (int)(slash - path) : 1, slash ? path : ".");
    /* Without a folder of its own a file's external data are refused, nothing else. */
    status = parse(data, size, realpath(named, folder) ? folder : NULL, (void *)data, graph, err);
    if (status != VGK_OK)
        vgk_error_prefix(err, "%s", base);
    return status;
}
