/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loader against right files, wrong files and hostile files.  Argument: the folder with the shipped models. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failing_malloc.h"
#include "kit.h"
#include "model/onnx.h"
#include "onnx_write.h"

static const char *models;
static char folder[64]; /* a temporary one */

static struct vg_graph *graph;
static struct vgk_error error;

static void drop(void) { vg_graph_free(&graph); }

/* Parses the finished model, from a block of just its size. */
static enum vgk_status parse(struct ow *m)
{
    size_t size;
    uint8_t *file = ow_finish(m, &size), *exact = malloc(size);
    memcpy(exact, file, size);
    free(file);
    drop();
    error.text[0] = '\0';
    enum vgk_status status = vg_onnx_parse(exact, size, &graph, &error);
    free(exact);
    return status;
}

#define accepted(m) \
    do { \
        enum vgk_status s_ = parse(m); \
        expectf(s_ == VGK_OK, "%s", error.text); \
    } while (0)

/* The text must tell what is wrong. */
#define refused(m, expected, part) \
    do { \
        enum vgk_status s_ = parse(m); \
        expectf(s_ == (expected) && !graph && strstr(error.text, part), "status %d, '%s'", s_, error.text); \
    } while (0)

static char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *data, size_t size)
{
    FILE *f = fopen(path_of(name), "wb");
    expect(f && fwrite(data, 1, size, f) == size);
    if (f)
        fclose(f);
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    if (f) {
        fseek(f, 0, SEEK_END);
        *size = (size_t)ftell(f);
        rewind(f);
        data = malloc(*size);
        expect(fread(data, 1, *size, f) == *size);
        fclose(f);
    }
    return data;
}

/* input x -> Conv (weights w, listed as an input too as old files do) -> Clip with its minimum left out -> y */
static struct ow *small(void)
{
    float w[24] = { 1, 2, 3 }, six = 6;
    struct ow *m = ow_new(17);
    ow_input(m, "x", 1, "1,3,h,w");
    ow_input(m, "w", 1, "8,3,1,1");
    ow_floats_tensor(m, "w", 4, (int64_t[]){ 8, 3, 1, 1 }, w);
    ow_floats_tensor(m, "six", 0, NULL, &six);
    struct pb *clip = ow_node("Clip", "clip", "c,,six", "y"), *conv = ow_node("Conv", "conv", "x,w", "c");
    ow_ints(conv, "pads", 4, (int64_t[]){ 0, 0, 0, 0 });
    ow_int(conv, "group", 1);
    ow_string(conv, "auto_pad", "NOTSET");
    ow_add(m, clip);
    ow_add(m, conv);
    ow_output(m, "y", 1, "1,8,h,w");
    ow_property(m, "vidgen.license", "MIT");
    return m;
}

static void builds_the_graph(void)
{
    accepted(small());
    if (!graph)
        return;
    expect(graph->opset == 17 && graph->ir_version == 8 && graph->n_nodes == 2 && graph->n_values == 5);
    expect(graph->n_inputs == 1 && graph->n_outputs == 1 && graph->n_properties == 1);
    /* Sorted: the file has the Clip first. */
    const struct vg_node *conv = &graph->nodes[0], *clip = &graph->nodes[1];
    expect(!strcmp(conv->type, "Conv") && !strcmp(conv->name, "conv") && !*conv->domain);
    expect(clip->n_in == 3 && clip->in[1] == -1 && clip->in[0] == conv->out[0]);
    const struct vg_value *x = &graph->values[graph->inputs[0]], *y = &graph->values[graph->outputs[0]];
    expect(!strcmp(x->name, "x") && x->producer == -1 && !x->constant && x->tensor.type == VGK_F32 &&
           x->tensor.rank == 4);
    expect(x->tensor.dim[1] == 3 && x->tensor.dim[2] == -1 && !strcmp(x->dim_name[2], "h") && !x->dim_name[1]);
    expect(!strcmp(y->name, "y") && y->producer == 1 && graph->values[conv->out[0]].producer == 0);
    expect(graph->values[conv->out[0]].tensor.type == VGK_NONE);
    const struct vg_value *w = &graph->values[conv->in[1]], *six = &graph->values[clip->in[2]];
    expect(w->constant && w->tensor.dim[0] == 8 && ((float *)w->tensor.data)[2] == 3 && w->tensor.stride[0] == 3);
    expect(six->constant && six->tensor.rank == 0 && *(float *)six->tensor.data == 6);
    expect((uintptr_t)w->tensor.data % VGK_ALIGN == 0 && (uintptr_t)six->tensor.data % VGK_ALIGN == 0);
    expect(vg_node_int(conv, "group", 7) == 1 && vg_node_int(conv, "none", 7) == 7 &&
           vg_node_int(conv, "pads", 7) == 7);
    expect(!strcmp(vg_node_string(conv, "auto_pad", ""), "NOTSET") && vg_node_attribute(conv, "pads")->n == 4);
    expect(!strcmp(graph->properties[0].key, "vidgen.license") && !strcmp(graph->properties[0].value, "MIT"));
    drop();
}

static void attributes(void)
{
    struct ow *m = ow_new(13);
    struct pb *n = ow_node("Foo", "", "", "y"), *a;
    float values[3] = { 1, 2, 3.5f };
    ow_float(n, "f", 0.25f);
    ow_floats(n, "fs", 3, values);
    ow_tensor_attribute(n, "t", ow_raw("", 1, 1, (int64_t[]){ 3 }, values, sizeof values));
    a = ow_attribute("ss", 8);
    pb_texts(a, 9, "ab,,c");
    pb_message(n, 5, a);
    a = ow_attribute("body", 5);
    pb_bytes(a, 6, "\xff\xff", 2); /* not looked into */
    pb_message(n, 5, a);
    a = pb_new(); /* without a type, as in IR version 1 */
    pb_text(a, 1, "old");
    pb_int(a, 3, -5);
    pb_message(n, 5, a);
    ow_int(n, "zero", 0);
    ow_add(m, n);
    ow_output(m, "y", 1, NULL);
    accepted(m);
    if (!graph)
        return;
    const struct vg_node *node = &graph->nodes[0];
    const struct vg_attribute *fs = vg_node_attribute(node, "fs"), *t = vg_node_attribute(node, "t"),
                              *ss = vg_node_attribute(node, "ss");
    expect(node->n_attributes == 7 && vg_node_float(node, "f", 0) == 0.25f);
    expect(fs->type == VG_ATTR_FLOATS && fs->n == 3 && fs->floats[2] == 3.5f);
    expect(t->type == VG_ATTR_TENSOR && ((float *)t->tensor.data)[2] == 3.5f &&
           (uintptr_t)t->tensor.data % VGK_ALIGN == 0);
    expect(ss->type == VG_ATTR_STRINGS && ss->n == 3 && !strcmp(ss->strings[0], "ab") && !*ss->strings[1]);
    expect(vg_node_attribute(node, "body")->type == VG_ATTR_GRAPH && vg_node_int(node, "old", 0) == -5);
    expect(vg_node_int(node, "zero", 1) == 0);
    expect(graph->values[graph->outputs[0]].tensor.rank == -1 &&
           graph->values[graph->outputs[0]].tensor.type == VGK_F32);
    drop();
}

/* Each element type from the field for numbers and from raw data: the same bytes. */
static void element_types(void)
{
    static const struct {
        int number, field, bits; /* field 4 = floats, 10 = doubles, else integers */
        enum vgk_type type;
    } types[] = {
        { 1, 4, 32, VGK_F32 },   { 2, 5, 8, VGK_U8 },     { 3, 5, 8, VGK_I8 },     { 4, 5, 16, VGK_U16 },
        { 5, 5, 16, VGK_I16 },   { 6, 5, 32, VGK_I32 },   { 7, 7, 64, VGK_I64 },   { 9, 5, 8, VGK_BOOL },
        { 10, 5, 16, VGK_F16 },  { 11, 10, 64, VGK_F64 }, { 12, 11, 32, VGK_U32 }, { 13, 11, 64, VGK_U64 },
        { 16, 5, 16, VGK_BF16 }, { 21, 5, 4, VGK_U4 },    { 22, 5, 4, VGK_I4 },
    };
    int64_t three[1] = { 3 }, numbers[3] = { 1, 0, 113 };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct ow *m = ow_new(21);
        struct pb *field = ow_tensor("a", types[i].number, 1, three), *raw = ow_tensor("b", types[i].number, 1, three),
                  *data = pb_new();
        int n = types[i].bits == 4 ? 2 : 3, bytes = types[i].bits == 4 ? 1 : types[i].bits / 8;
        for (int j = 0; j < n; j++) {
            float f = (float)numbers[j];
            double d = (double)numbers[j];
            pb_put(data,
                   types[i].field == 4    ? (void *)&f
                   : types[i].field == 10 ? (void *)&d
                                          : (void *)&numbers[j],
                   (size_t)bytes);
        }
        if (types[i].field == 4 || types[i].field == 10)
            pb_bytes(field, types[i].field, data->data, data->n);
        else
            pb_ints(field, types[i].field, (size_t)n, numbers);
        pb_message(raw, 9, data);
        ow_initializer(m, field);
        ow_initializer(m, raw);
        ow_add(m, ow_node("Add", "", "a,b", "y"));
        ow_output(m, "y", 1, NULL);
        accepted(m);
        if (!graph)
            continue;
        const struct vgk_tensor *a = &graph->values[0].tensor, *b = &graph->values[1].tensor;
        expect(a->type == types[i].type && b->type == types[i].type && a->rank == 1 && a->dim[0] == 3);
        expectf(!memcmp(a->data, b->data, (size_t)(n * bytes)), "type %d", types[i].number);
        expect((uintptr_t)a->data % VGK_ALIGN == 0 && (uintptr_t)b->data % VGK_ALIGN == 0);
        if (types[i].type == VGK_BOOL)
            expect(((uint8_t *)a->data)[2] == 1); /* 113 in the file */
    }
    drop();
}

/* A model whose one initializer is t. */
static struct ow *with(struct pb *t)
{
    struct ow *m = ow_new(17);
    ow_initializer(m, t);
    ow_add(m, ow_node("Identity", "user", "t", "y"));
    ow_output(m, "y", 1, NULL);
    return m;
}

static void bad_tensors(void)
{
    float f[8] = { 0 };
    struct pb *t;
    refused(with(ow_raw("t", 1, 2, (int64_t[]){ 2, 3 }, f, 20)), VGK_ERR_INVALID,
            "'t': its type and dimensions need 24 bytes "
            "of data, given are 20");
    refused(with(ow_tensor("t", 1, 1, (int64_t[]){ 4 })), VGK_ERR_INVALID, "given are 0");
    refused(with(ow_raw("t", 1, 2, (int64_t[]){ -2, -1 }, f, 8)), VGK_ERR_INVALID, "dimension 0 is -2");
    refused(with(ow_raw("t", 1, 2, (int64_t[]){ INT64_MAX, 4 }, f, 8)), VGK_ERR_INVALID, "VG_ONNX_MAX_ELEMENTS");
    refused(with(ow_raw("t", 1, 3, (int64_t[]){ 1 << 22, 1 << 22, 1 << 22 }, f, 8)), VGK_ERR_INVALID,
            "VG_ONNX_MAX_ELEMENTS");
    refused(with(ow_raw("t", 1, 9, (int64_t[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1 }, f, 4)), VGK_ERR_UNSUPPORTED,
            "9 dimensions");
    refused(with(ow_raw("t", 14, 1, (int64_t[]){ 1 }, f, 8)), VGK_ERR_UNSUPPORTED, "complex64");
    refused(with(ow_raw("t", 99, 1, (int64_t[]){ 1 }, f, 8)), VGK_ERR_UNSUPPORTED, "unknown");
    refused(with(ow_tensor("t", 0, 0, NULL)), VGK_ERR_UNSUPPORTED, "undefined");
    t = ow_tensor("t", 8, 1, (int64_t[]){ 1 });
    pb_text(t, 6, "hello");
    refused(with(t), VGK_ERR_UNSUPPORTED, "uses initializer 't', whose element type string");
    t = ow_tensor("t", 1, 1, (int64_t[]){ 3 });
    pb_ints(t, 5, 3, (int64_t[]){ 1, 2, 3 });
    refused(with(t), VGK_ERR_INVALID, "belong into float_data or raw_data, here they are in int32_data");
    t = ow_tensor("t", 6, 1, (int64_t[]){ 3 });
    pb_ints(t, 5, 2, (int64_t[]){ 1, 2 });
    refused(with(t), VGK_ERR_INVALID, "need 3 numbers in int32_data, given are 2");
    t = ow_tensor("t", 2, 1, (int64_t[]){ 1 });
    pb_ints(t, 5, 1, (int64_t[]){ 256 });
    refused(with(t), VGK_ERR_INVALID, "does not fit type u8");
    t = ow_raw("t", 1, 1, (int64_t[]){ 2 }, f, 8);
    pb_bytes(t, 4, f, 8);
    refused(with(t), VGK_ERR_INVALID, "more than one place");
    t = ow_tensor("t", 1, 1, (int64_t[]){ 2 });
    pb_int(t, 14, 7);
    refused(with(t), VGK_ERR_INVALID, "data location 7");
    t = ow_raw("t", 1, 1, (int64_t[]){ 2 }, f, 8);
    pb_bytes(t, 3, "", 0);
    refused(with(t), VGK_ERR_UNSUPPORTED, "segments");

    /* A string that nobody uses is no obstacle; nor is a tensor without elements. */
    t = ow_tensor("s", 8, 1, (int64_t[]){ 1 });
    pb_text(t, 6, "hello");
    struct ow *m = with(ow_tensor("t", 7, 1, (int64_t[]){ 0 }));
    ow_initializer(m, t);
    accepted(m);
    expect(graph && graph->values[0].constant && graph->values[0].tensor.data && !graph->values[1].constant);
    drop();
}

static void bad_models(void)
{
    struct ow *m;
    struct pb *p;
    for (int opset = 0; opset <= 26; opset++) {
        m = ow_new(opset);
        ow_input(m, "x", 1, "");
        ow_output(m, "x", 1, "");
        if (opset >= VG_ONNX_MIN_OPSET && opset <= VG_ONNX_MAX_OPSET)
            accepted(m);
        else
            refused(m, VGK_ERR_UNSUPPORTED, "1 to 24 are supported");
    }
    m = small(); /* a second, contradicting opset */
    p = pb_new();
    pb_text(p, 1, "ai.onnx");
    pb_int(p, 2, 13);
    pb_message(m->model, 8, p);
    refused(m, VGK_ERR_INVALID, "opset 17 and opset 13");
    m = small();
    pb_int(m->model, 1, 99);
    refused(m, VGK_ERR_UNSUPPORTED, "IR version 99");
    m = small();
    p = pb_new(); /* a function: nobody calls it, and somebody does */
    pb_text(p, 1, "Twice");
    pb_text(p, 10, "mine");
    pb_bytes(m->model, 25, p->data, p->n);
    accepted(m);
    m = small();
    pb_message(m->model, 25, p);
    p = ow_node("Twice", "call", "x", "z");
    pb_text(p, 7, "mine");
    ow_add(m, p);
    refused(m, VGK_ERR_UNSUPPORTED, "node 2 \"call\" (Twice) calls a function that the file defines itself");
    m = small();
    pb_bytes(m->graph, 15, "", 0);
    refused(m, VGK_ERR_UNSUPPORTED, "sparse initializers");
    m = small();
    p = ow_node("FusedConv", "fast", "x,w", "z");
    pb_text(p, 7, "com.microsoft");
    ow_add(m, p);
    refused(m, VGK_ERR_UNSUPPORTED, "node 2 \"fast\" (FusedConv) is of domain 'com.microsoft'");
    m = small();
    ow_add(m, ow_node("", "empty", "x", "z"));
    refused(m, VGK_ERR_INVALID, "\"empty\" has no operator");
    m = small();
    ow_add(m, ow_node("Relu", "late", "ghost", "z"));
    refused(m, VGK_ERR_INVALID, "node 2 \"late\" (Relu): nobody makes its input 0, 'ghost'");
    m = small();
    ow_output(m, "ghost", 1, NULL);
    refused(m, VGK_ERR_INVALID, "nobody makes its output 1, 'ghost'");
    m = small();
    ow_output(m, "y", 1, NULL);
    refused(m, VGK_ERR_INVALID, "output 'y' twice");
    m = small();
    ow_input(m, "x", 1, "1");
    refused(m, VGK_ERR_INVALID, "value 'x' is defined twice");
    m = small();
    ow_add(m, ow_node("Relu", "", "x", "c"));
    refused(m, VGK_ERR_INVALID, "value 'c' is defined twice: by node 1 and node 2");
    m = small();
    ow_add(m, ow_node("Relu", "", "x", "w"));
    refused(m, VGK_ERR_INVALID, "value 'w' is defined twice");
    m = small();
    ow_floats_tensor(m, "six", 0, NULL, (float[]){ 1 });
    refused(m, VGK_ERR_INVALID, "value 'six' is defined twice: by initializer 1 and initializer 2");
    m = small();
    ow_input(m, "", 1, "1");
    refused(m, VGK_ERR_INVALID, "input 2 has no name");
    m = small();
    ow_input(m, "text", 8, "1");
    refused(m, VGK_ERR_UNSUPPORTED, "string");
    m = small();
    ow_input(m, "z", 1, "1,-7");
    refused(m, VGK_ERR_INVALID, "input 'z': dimension 1 is -7");
    m = small();
    ow_input(m, "z", 1, "4611686018427387904,4");
    refused(m, VGK_ERR_INVALID, "VG_ONNX_MAX_ELEMENTS");
    m = small();
    p = ow_node("Relu", "twice", "x", "z");
    ow_int(p, "a", 1);
    ow_int(p, "a", 2);
    ow_add(m, p);
    refused(m, VGK_ERR_INVALID, "(Relu): has attribute 'a' twice");
    m = small();
    p = ow_node("Relu", "many", "x", "z");
    for (int i = 0; i <= VG_ONNX_MAX_ATTRIBUTES; i++)
        ow_int(p, "a", 1);
    ow_add(m, p);
    refused(m, VGK_ERR_INVALID, "VG_ONNX_MAX_ATTRIBUTES");
    m = small();
    p = ow_node("Relu", "odd", "x", "z");
    pb_message(p, 5, ow_attribute("a", 14));
    ow_add(m, p);
    refused(m, VGK_ERR_UNSUPPORTED, "attribute 'a': is of type 14");
    m = small();
    p = ow_node("Constant", "hollow", "", "z");
    pb_message(p, 5, ow_attribute("value", 4));
    ow_add(m, p);
    refused(m, VGK_ERR_INVALID, "should be a tensor");

    m = small(); /* the first of three that need each other in a circle */
    ow_add(m, ow_node("Add", "p", "x,r", "q"));
    ow_add(m, ow_node("Neg", "q", "q", "s"));
    ow_add(m, ow_node("Abs", "r", "s", "r"));
    refused(m, VGK_ERR_INVALID,
            "circle: node 2 \"p\" (Add) needs node 4 \"r\" (Abs) needs node 3 \"q\" (Neg), which needs "
            "the first again");
    m = small();
    ow_add(m, ow_node("Neg", "self", "z", "z"));
    refused(m, VGK_ERR_INVALID, "circle");
}

/* A graph to be put into an attribute. */
static struct pb *branch(const char *output, int n_nodes, struct pb **nodes)
{
    struct pb *g = pb_new(), *v = pb_new();
    for (int i = 0; i < n_nodes; i++)
        pb_message(g, 1, nodes[i]);
    pb_text(v, 1, output);
    pb_message(g, 12, v);
    return g;
}

static void choose(struct pb *node, struct pb *then, struct pb *otherwise)
{
    struct pb *a = ow_attribute("then_branch", 5);
    pb_message(a, 6, then);
    pb_message(node, 5, a);
    a = ow_attribute("else_branch", 5);
    pb_message(a, 6, otherwise);
    pb_message(node, 5, a);
}

/* Branches read what is around them, wherever it is made, and have names of their own. */
static void branches(void)
{
    struct ow *m = ow_new(17);
    ow_input(m, "x", 1, "1");
    ow_initializer(m, ow_raw("yes", 9, 0, NULL, "\1", 1));
    struct pb *inner = ow_node("If", "inner", "yes", "b"), *outer = ow_node("If", "outer", "yes", "y");
    choose(inner, branch("late", 0, NULL), branch("c", 1, (struct pb *[]){ ow_node("Neg", "", "x", "c") }));
    choose(outer, branch("b", 1, &inner), branch("b", 1, (struct pb *[]){ ow_node("Abs", "", "x", "b") }));
    ow_add(m, outer);
    ow_add(m, ow_node("Relu", "", "x", "late"));
    ow_output(m, "y", 1, NULL);
    accepted(m);
    if (!graph)
        return;
    /* The Relu comes first, since a branch in a branch needs it. */
    expect(graph->n_nodes == 2 && !strcmp(graph->nodes[0].type, "Relu") && graph->nodes[1].n_in == 1);
    const struct vg_attribute *then = vg_node_attribute(&graph->nodes[1], "then_branch"),
                              *otherwise = vg_node_attribute(&graph->nodes[1], "else_branch");
    expect(then && then->graph && then->graph->n_nodes == 1 && then->graph->n_outputs == 1);
    expect(otherwise && otherwise->graph && otherwise->graph->n_nodes == 1);
    if (then && then->graph && otherwise && otherwise->graph) {
        expect(then->graph->outputs[0] != otherwise->graph->outputs[0]); /* two values of one name */
        expect(!strcmp(graph->values[otherwise->graph->outputs[0]].name, "b"));
        const struct vg_attribute *deep = vg_node_attribute(&then->graph->nodes[0], "then_branch");
        expect(deep && deep->graph && deep->graph->n_nodes == 0 &&
               deep->graph->outputs[0] == graph->nodes[0].out[0]);
    }
    drop();

    m = small(); /* a branch that needs its own node's result */
    struct pb *node = ow_node("If", "self", "x", "z");
    choose(node, branch("z", 0, NULL), branch("x", 0, NULL));
    ow_add(m, node);
    refused(m, VGK_ERR_INVALID, "circle: node 2 \"self\" (If)");
    m = small();
    node = ow_node("If", "", "x", "z");
    choose(node, branch("t", 1, (struct pb *[]){ ow_node("Neg", "", "ghost", "t") }), branch("x", 0, NULL));
    ow_add(m, node);
    refused(m, VGK_ERR_INVALID, "nobody makes its input 0, 'ghost'");
    m = small();
    node = ow_node("If", "", "x", "z");
    struct pb *a = ow_attribute("then_branch", 5);
    pb_bytes(a, 6, "\x0a\x7f", 2);
    pb_message(node, 5, a);
    ow_add(m, node);
    refused(m, VGK_ERR_INVALID, "its then_branch is no graph");
    for (int depth = VG_ONNX_MAX_DEPTH; depth <= VG_ONNX_MAX_DEPTH + 1; depth++) {
        struct pb *g = branch("x", 0, NULL);
        for (int i = 1; i < depth; i++) {
            node = ow_node("If", "", "x", "t");
            choose(node, g, branch("x", 0, NULL));
            g = branch("t", 1, &node);
        }
        node = ow_node("If", "", "x", "z");
        choose(node, g, branch("x", 0, NULL));
        m = small();
        ow_add(m, node);
        if (depth > VG_ONNX_MAX_DEPTH)
            refused(m, VGK_ERR_INVALID, "VG_ONNX_MAX_DEPTH = 8 deep");
        else
            accepted(m);
    }
}

/* No recursion over what a file nests or chains. */
static void bombs(void)
{
    struct pb *inner = pb_new();
    for (int i = 0; i < 4000; i++) {
        struct pb *node = pb_new(), *attribute = ow_attribute("body", 5), *g = pb_new();
        pb_message(attribute, 6, inner);
        pb_message(node, 5, attribute);
        pb_message(g, 1, node);
        inner = g;
    }
    struct ow *m = small();
    struct pb *node = ow_node("If", "", "x", "z"), *attribute = ow_attribute("body", 5);
    pb_message(attribute, 6, inner);
    pb_message(node, 5, attribute);
    ow_add(m, node);
    accepted(m);

    struct pb *type = pb_new();
    for (int i = 0; i < 4000; i++) {
        struct pb *sequence = pb_new(), *outer = pb_new();
        pb_message(sequence, 1, type);
        pb_message(outer, 4, sequence);
        type = outer;
    }
    m = small();
    struct pb *value = pb_new();
    pb_text(value, 1, "deep");
    pb_message(value, 2, type);
    pb_message(m->graph, 11, value);
    refused(m, VGK_ERR_UNSUPPORTED, "'deep' is a sequence");

    /* A chain from the last node to the first. */
    enum { CHAIN = 100000 };
    m = ow_new(17);
    ow_input(m, "v0", 1, "");
    for (int i = CHAIN; i > 0; i--) {
        char in[16], out[16];
        snprintf(in, sizeof in, "v%d", i - 1);
        snprintf(out, sizeof out, "v%d", i);
        ow_add(m, ow_node("Neg", "", in, out));
    }
    accepted(m);
    for (int i = 0; graph && i < CHAIN; i++)
        if (graph->values[graph->nodes[i].in[0]].producer != i - 1) {
            expectf(0, "node %d", i);
            break;
        }

    /* Two bytes a node in the file, some hundred in memory. */
    m = ow_new(17);
    for (int i = 0; i < 4 << 20; i++)
        pb_put(m->graph, "\x0a", 2);
    refused(m, VGK_ERR_INVALID, "out of all proportion");
    drop();
}

static void truncated(void)
{
    size_t size, loaded = 0;
    uint8_t *file = ow_finish(small(), &size);
    for (size_t n = 0; n < size; n++) {
        uint8_t *exact = malloc(n + !n);
        memcpy(exact, file, n);
        enum vgk_status status = vg_onnx_parse(exact, n, &graph, &error);
        expectf(status == VGK_OK || (status == VGK_ERR_INVALID && !graph && *error.text), "%zu bytes: %d", n, status);
        loaded += status == VGK_OK;
        drop();
        free(exact);
    }
    expect(loaded == 0); /* the graph is the last field */
    free(file);

    char path[512];
    snprintf(path, sizeof path, "%s/upscale2x.onnx", models);
    if (!(file = read_file(path, &size))) {
        expectf(0, "%s", path);
        return;
    }
    for (size_t n = 0; n < size; n += n < size - 200 ? 97 : 1) {
        uint8_t *exact = malloc(n + !n);
        memcpy(exact, file, n);
        enum vgk_status status = vg_onnx_parse(exact, n, &graph, &error);
        expectf(status == VGK_OK || (status == VGK_ERR_INVALID && !graph && *error.text), "%zu bytes: %d", n, status);
        loaded += status == VGK_OK;
        drop();
        free(exact);
    }
    expectf(loaded < 20, "%zu", loaded); /* only between properties, which come last */
    free(file);
}

static void bit_flips(void)
{
    size_t size, loaded = 0;
    uint8_t *file = ow_finish(small(), &size), *exact = malloc(size);
    kit_seed(3);
    for (int i = 0; i < 20000; i++) {
        memcpy(exact, file, size);
        for (int n = kit_int(1, 3); n > 0; n--)
            exact[kit_int(0, (int)size - 1)] ^= (uint8_t)(1 << kit_int(0, 7));
        error.text[0] = '\0';
        enum vgk_status status = vg_onnx_parse(exact, size, &graph, &error);
        expectf(status == VGK_OK ? graph && graph->n_nodes <= 2 : !graph && *error.text, "round %d: %d", i, status);
        loaded += status == VGK_OK;
        drop();
    }
    expect(loaded > 1000 && loaded < 19000);
    free(exact);
    free(file);
}

static void no_models(void)
{
    static const char png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", words[] = "This is a text, and no model at all.\n";
    write_file("a.onnx", png, sizeof png);
    expect(vg_onnx_load(path_of("a.onnx"), &graph, &error) == VGK_ERR_INVALID);
    expectf(!strncmp(error.text, "a.onnx: is no ONNX model", 24), "%s", error.text);
    write_file("a.onnx", words, sizeof words);
    expect(vg_onnx_load(path_of("a.onnx"), &graph, &error) == VGK_ERR_INVALID &&
           strstr(error.text, "is no ONNX model"));
    write_file("a.onnx", "", 0);
    expect(vg_onnx_load(path_of("a.onnx"), &graph, &error) == VGK_ERR_INVALID && strstr(error.text, "is empty"));
    expect(vg_onnx_load(folder, &graph, &error) == VGK_ERR_FILE && strstr(error.text, "is a folder"));
    expect(vg_onnx_load(path_of("none.onnx"), &graph, &error) == VGK_ERR_FILE && strstr(error.text, strerror(ENOENT)));
    expect(!mkfifo(path_of("pipe"), 0600));
    expect(vg_onnx_load(path_of("pipe"), &graph, &error) == VGK_ERR_FILE && strstr(error.text, "pipe"));
    expect(vg_onnx_load(path_of("none.onnx"), &graph, NULL) == VGK_ERR_FILE && !graph);
}

/* A model in the folder with tensor `t` of 4 floats at `location`. */
static enum vgk_status load_external(const char *location, const char *offset, const char *length, const char *second)
{
    struct ow *m = ow_new(17);
    for (int i = 0; i < (second ? 2 : 1); i++) {
        struct pb *t = ow_tensor(i ? "u" : "t", 1, 1, (int64_t[]){ 4 });
        const char *entries[3][2] = { { "location", location },
                                      { "offset", i ? second : offset },
                                      { "length", length } };
        for (int j = 0; j < 3; j++)
            if (entries[j][1]) {
                struct pb *e = pb_new();
                pb_text(e, 1, entries[j][0]);
                pb_text(e, 2, entries[j][1]);
                pb_message(t, 13, e);
            }
        pb_int(t, 14, 1);
        ow_initializer(m, t);
    }
    ow_output(m, "t", 1, NULL);
    size_t size;
    uint8_t *file = ow_finish(m, &size);
    write_file("model.onnx", file, size);
    free(file);
    drop();
    error.text[0] = '\0';
    return vg_onnx_load(path_of("model.onnx"), &graph, &error);
}

/* Whether one of the process's mappings is of a file in the folder. */
static bool mapped(void)
{
    bool found = false;
    char line[1024];
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && !found && fgets(line, sizeof line, f))
        found = strstr(line, folder) != NULL;
    if (f)
        fclose(f);
    return found;
}

#define external_refused(status, part, ...) \
    do { \
        enum vgk_status s_ = load_external(__VA_ARGS__); \
        expectf(s_ == (status) && !graph && strstr(error.text, part) && !strncmp(error.text, "model.onnx: ", 12), \
                "status %d, '%s'", s_, error.text); \
    } while (0)

static void external_data(void)
{
    float data[12];
    for (int i = 0; i < 12; i++)
        data[i] = (float)i;
    write_file("w.bin", data, sizeof data);
    write_file("../escape.bin", data, sizeof data);
    expect(load_external("w.bin", "16", "16", NULL) == VGK_OK && ((float *)graph->values[0].tensor.data)[0] == 4);
    expect(mapped());
    drop();
    expect(!mapped());
    expect(load_external("./w.bin", NULL, NULL, NULL) == VGK_OK && ((float *)graph->values[0].tensor.data)[3] == 3);
    /* A place that is not aligned is copied from. */
    expect(load_external("w.bin", "3", "16", NULL) == VGK_OK &&
           (uintptr_t)graph->values[0].tensor.data % VGK_ALIGN == 0 &&
           !memcmp(graph->values[0].tensor.data, (char *)data + 3, 16));
    expect(load_external("w.bin", "16", "16", "32") == VGK_OK); /* side by side */
    expect(load_external("w.bin", "16", "16", "16") == VGK_OK); /* shared */
    expect(!mkdir(path_of("sub"), 0700));
    write_file("sub/w.bin", data, sizeof data);
    expect(load_external("sub/w.bin", "0", "16", NULL) == VGK_OK);
    expect(!symlink("w.bin", path_of("inside.bin")) && !symlink("../escape.bin", path_of("outside.bin")) &&
           !symlink("/etc", path_of("away")));
    expect(!mkdir(path_of("../sledom"), 0700)); /* a name as long as the folder's */
    write_file("../sledom/w.bin", data, sizeof data);
    expect(!symlink("../sledom/w.bin", path_of("beside.bin")));
    expect(load_external("inside.bin", "0", "16", NULL) == VGK_OK);

    external_refused(VGK_ERR_INVALID, "overlap", "w.bin", "16", "16", "24");
    external_refused(VGK_ERR_INVALID, "which has only 48 bytes", "w.bin", "36", "16", NULL);
    external_refused(VGK_ERR_INVALID, "which has only 48 bytes", "w.bin", "18446744073709551608", "16", NULL);
    external_refused(VGK_ERR_INVALID, "is no number", "w.bin", "18446744073709551616", "16", NULL);
    external_refused(VGK_ERR_INVALID, "is no number", "w.bin", "-4", "16", NULL);
    external_refused(VGK_ERR_INVALID, "is no number", "w.bin", "0", "16 ", NULL);
    external_refused(VGK_ERR_INVALID, "is no number", "w.bin", "", "16", NULL);
    external_refused(VGK_ERR_INVALID, "need 16 bytes, its length in 'w.bin' is 12", "w.bin", "0", "12", NULL);
    external_refused(VGK_ERR_INVALID, "no file is named", NULL, "0", "16", NULL);
    external_refused(VGK_ERR_INVALID, "no file is named", "", "0", "16", NULL);
    external_refused(VGK_ERR_INVALID, "outside the model's folder", "/etc/passwd", "0", "16", NULL);
    external_refused(VGK_ERR_INVALID, "outside the model's folder", "../escape.bin", "0", "16", NULL);
    external_refused(VGK_ERR_INVALID, "outside the model's folder", "sub/../../escape.bin", "0", "16", NULL);
    external_refused(VGK_ERR_INVALID, "outside the model's folder", "..", "0", "16", NULL);
    external_refused(VGK_ERR_INVALID, "a link to outside", "outside.bin", "0", "16", NULL);
    external_refused(VGK_ERR_INVALID, "a link to outside", "away/passwd", "0", "16", NULL);
    external_refused(VGK_ERR_INVALID, "a link to outside", "beside.bin", "0", "16", NULL);
    external_refused(VGK_ERR_FILE, strerror(ENOENT), "none.bin", "0", "16", NULL);
    external_refused(VGK_ERR_FILE, "is a folder", "sub", "0", "16", NULL);

    /* From memory there is no folder. */
    struct pb *t = ow_tensor("t", 1, 1, (int64_t[]){ 4 }), *e = pb_new();
    pb_text(e, 1, "location");
    pb_text(e, 2, "w.bin");
    pb_message(t, 13, e);
    pb_int(t, 14, 1);
    refused(with(t), VGK_ERR_UNSUPPORTED, "load the model from its file");
}

static void shipped(void)
{
    static const struct {
        const char *name;
        int nodes, constants, inputs;
        int64_t weights;
    } files[] = { { "style3.onnx", 98, 39, 2, 121000 }, { "upscale2x.onnx", 15, 20, 1, 41000 } };
    for (int i = 0; i < 2; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", models, files[i].name);
        drop();
        enum vgk_status status = vg_onnx_load(path, &graph, &error);
        expectf(status == VGK_OK, "%s", error.text);
        if (!graph)
            continue;
        int constants = 0;
        int64_t weights = 0;
        for (int j = 0; j < graph->n_values; j++) {
            const struct vg_value *v = &graph->values[j];
            constants += v->constant;
            weights += v->constant ? vgk_tensor_count(&v->tensor) : 0;
            for (int64_t k = 0; v->constant && v->tensor.type == VGK_F32 && k < vgk_tensor_count(&v->tensor); k++)
                if (!isfinite(((float *)v->tensor.data)[k]))
                    expectf(0, "%s[%d]", v->name, (int)k);
        }
        expect(graph->opset == 18 && graph->n_nodes == files[i].nodes && graph->n_inputs == files[i].inputs);
        expectf(constants == files[i].constants && llabs(weights - files[i].weights) < 2000, "%d, %d", constants,
                (int)weights);
        expect(!strcmp(graph->values[graph->inputs[0]].name, "image"));
    }
    drop();
}

/* Each allocation in turn fails: NOMEM, and all that was taken is given back. */
static void no_memory(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/style3.onnx", models);
    long live = fm_live(), n;
    for (n = 1;; n++) {
        fm_fail_at(n);
        enum vgk_status status = vg_onnx_load(path, &graph, &error);
        if (!fm_stop()) {
            expect(status == VGK_OK);
            break;
        }
        expectf(status == VGK_ERR_NOMEM && !graph && fm_live() == live, "allocation %ld: %d, %ld blocks left", n,
                status, fm_live() - live);
    }
    expect(n > 8);
    drop();
    expect(load_external("w.bin", "3", "16", "19") == VGK_OK);
    drop();
    expect(fm_live() == live);
    for (n = 1;; n++) {
        fm_fail_at(n);
        enum vgk_status status = vg_onnx_load(path_of("model.onnx"), &graph, &error);
        if (!fm_stop()) {
            expect(status == VGK_OK);
            break;
        }
        expect(status == VGK_ERR_NOMEM && !graph && fm_live() == live);
    }
    drop();
    expect(fm_live() == live);
}

int main(int argc, char **argv)
{
    static const char *const leftovers[] = {
        "w.bin",  "sub/w.bin", "sub",           "inside.bin", "outside.bin",     "away",      "model.onnx",
        "a.onnx", "pipe",      "../escape.bin", "beside.bin", "../sledom/w.bin", "../sledom", ""
    };
    models = argc > 1 ? argv[1] : ".";
    char top[] = "/tmp/vidgen-test-XXXXXX";
    if (!mkdtemp(top))
        return 1;
    snprintf(folder, sizeof folder, "%s/models", top);
    mkdir(folder, 0700);
    run(builds_the_graph);
    run(attributes);
    run(element_types);
    run(bad_tensors);
    run(bad_models);
    run(branches);
    run(bombs);
    run(truncated);
    run(bit_flips);
    run(no_models);
    run(external_data);
    run(shipped);
    run(no_memory);
    for (size_t i = 0; i < sizeof leftovers / sizeof *leftovers; i++)
        remove(path_of(leftovers[i]));
    remove(top);
    return kit_done();
}
