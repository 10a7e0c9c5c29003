/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ONNX project's own operator tests (Debian: libonnx-testdata): every model under node/, simple/ and
 * pytorch-*, with its inputs and expected outputs.
 *
 *     test-onnx-backend SOURCE BUILD        Debian's, and those that SOURCE/tests/fixtures/onnx_node_tests.py makes from a
 *                                           newer onnx package in BUILD, if there is one (onnx_case.h says where)
 *     test-onnx-backend FOLDER [NAME]       FOLDER has NAME/model.onnx; NAME: only tests that contain it, verbose
 *
 * Each is run twice: with its first float input given at run time, as a frame would be, and with everything constant,
 * as the folder sees it.  A test that is refused must be refused as unsupported, with an operator or a reason of the
 * table below. */
#include <dirent.h>
#include <sys/stat.h>

#include "onnx_case.h"

/* Refused on purpose, though the operator is known: part of the message, and why. */
static const struct {
    const char *part, *why;
} reasons[] = {
    {"weights that are not constants", "a network that makes its own weights has no packed form"},
    {"must be known before the run", "shapes that depend on data cannot be planned"},
    {"must be a constant scalar", "the same"},
    {"in training mode", "batch statistics and dropping are not for inference"},
    {"keep_aspect_ratio_policy", "no exporter writes it"},
    {"tf_crop_and_resize", "it needs a region of interest"},
    {"tf_half_pixel_for_nn", "no exporter writes it since opset 11"},
    {"output 1 is not supported", "indices of MaxPool, statistics of LayerNormalization: for training"},
    {"output 2 is not supported", "the same"},
    {"output 3 (the scores)", "attention in one pass never has them"},
    {"casts to ONNX type", "strings, and floats of 8 bits and less"},
    {"only tensors, integers and floats", "strings"},
    {"only of f32", "other types are not in models of pictures"},
    {"this operator is not supported", "see docs/operators.md"},
    {"(string) is not supported", "element types of the loader"},
    {"(complex", "the same"},
    {"(float8e", "the same"},
    {"(float4e", "the same"},
    {"int2) is not supported", "the same"},
    {"4-bit types are for weights", "the same"},
    {"pass a mask instead", "windows and lengths of a batch are masks"},
    {"test data of a type", "the same"},
    {"is a sequence; dense tensors", "sequences and optionals are no pictures"},
    {"is a optional; dense tensors", "the same"},
    {"only ONNX's own operators", "training and classic machine learning"},
    {"are supported; export it again", "opsets beyond the last that is known"},
};

struct result {
    int passed, refused, failed;
};

/* bfloat16: two steps, for the data of ONNX 1.12 are cut off where they should be rounded, and what newer data have in
 * one operator is rounded on the way between the nodes of another. */
static double tolerance(enum vgk_type type) { return type == VGK_BF16 ? 16e-3 : type == VGK_F16 ? 4e-3 : 1e-3; }

/* Binds with the first input at run time (or not) and the others constant; runs; compares. */
static enum vgk_status evaluate(const struct vg_graph *graph, const struct vgk_tensor *in, int n_in,
                                const struct vgk_tensor *expected, int n_out, bool first_at_run_time, bool fuse,
                                struct vgk_device *cpu, char *why, size_t size, struct vgk_error *err)
{
    struct vg_graph g = *graph;
    struct vg_value *values = malloc((g.n_values + 1) * sizeof *values);
    struct vg_input_size sizes[1] = {{0}};
    int inputs[1], n = 0;
    memcpy(values, g.values, g.n_values * sizeof *values);
    g.values = values;
    for (int i = 0; i < n_in; i++) {
        struct vg_value *v = &values[graph->inputs[i]];
        if (i == 0 && first_at_run_time) {
            inputs[n++] = graph->inputs[i];
            sizes[0].rank = in[i].rank;
            memcpy(sizes[0].dim, in[i].dim, sizeof sizes[0].dim);
            v->tensor.type = in[i].type;
        } else {
            v->constant = true;
            v->tensor = in[i];
        }
    }
    g.inputs = inputs;
    g.n_inputs = n;
    struct vg_binding binding = {.sizes = sizes, .frame_input = -1, .cpu = cpu};
    struct vg_program_request request = {.output = -1};
    struct vg_net *net = NULL;
    struct vg_program *program = NULL;
    enum vgk_status s = vg_net_bind(&g, &binding, &net, err);
    if (!s && fuse)
        vg_net_fuse(net);
    if (!s && (s = vg_program_make(net, &vgk_cpu, cpu, &request, &program, err)))
        vg_net_free(&net);
    struct vg_model model = {.summary.name = "test", .frame_input = -1};
    struct vg_plan plan = {.model = &model, .backend = &vgk_cpu, .device = cpu, .program = program};
    struct vg_run *r = NULL;
    struct vgk_tensor out[MAX_IO];
    if (!s) {
        plan.info.arena_bytes = vg_plan_arrange(&plan);
        s = vg_run_open(&plan, &r, err);
    }
    for (int i = 0; i < n_out && !s; i++) {
        size_t bytes;
        const struct vgk_tensor *t = &program->outputs[i].t;
        bool widened = vg_bind_type(expected[i].type) == t->type; /* f16 and bf16, given and taken as such */
        out[i] = vgk_tensor_make(widened ? expected[i].type : t->type, t->rank, t->dim, VGK_ROW_MAJOR);
        vgk_tensor_bytes(&out[i], &bytes);
        out[i].data = malloc(bytes + 1);
    }
    if (!s) {
        s = vg_run_tensors(r, in, n, out, n_out, err);
        for (int i = 0; i < n_out; i++) {
            if (!s && !*why && expected[i].type)
                equal(&out[i], &expected[i], tolerance(expected[i].type), 1e-5, why, size);
            free(out[i].data);
        }
    }
    vg_run_close(&r);
    vg_program_free(&program);
    free(values);
    return s;
}

static void one(const char *folder, const char *name, struct vgk_device *cpu, bool verbose, struct result *result)
{
    char path[1024];
    struct vg_graph *g = NULL;
    struct vgk_error err = {{0}};
    struct vgk_tensor in[MAX_IO], out[MAX_IO];
    struct vg_arena *arena = vg_arena_new(0);
    char why[512] = "";
    snprintf(path, sizeof path, "%s/%s/model.onnx", folder, name);
    enum vgk_status s = vg_onnx_load(path, &g, &err);
    bool usable = !s && g->n_inputs < MAX_IO && g->n_outputs < MAX_IO;
    for (int i = 0; usable && i < g->n_inputs; i++) {
        snprintf(path, sizeof path, "%s/%s/test_data_set_0/input_%d.pb", folder, name, i);
        in[i] = read_tensor(arena, path, g->values[g->inputs[i]].tensor.type);
        usable = in[i].type != VGK_NONE;
    }
    for (int i = 0; usable && i < g->n_outputs; i++) {
        snprintf(path, sizeof path, "%s/%s/test_data_set_0/output_%d.pb", folder, name, i);
        out[i] = read_tensor(arena, path, g->values[g->outputs[i]].tensor.type);
        usable = out[i].type != VGK_NONE;
    }
    if (!s && !usable) {
        s = VGK_ERR_UNSUPPORTED;
        vgk_fail(&err, s, "test data of a type that is not supported");
    }
    if (!s) {
        bool flow = g->n_inputs && vgk_type_is_float(in[0].type);
        if (flow) /* what needs constants refuses this way, and is tried with them below */
            s = evaluate(g, in, g->n_inputs, out, g->n_outputs, true, true, cpu, why, sizeof why, &err);
        if (s != VGK_ERR_INVALID && s != VGK_ERR_NOMEM && !*why)
            s = evaluate(g, in, g->n_inputs, out, g->n_outputs, false, false, cpu, why, sizeof why, &err);
    }
    bool excused = false;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons && s == VGK_ERR_UNSUPPORTED; i++)
        excused |= strstr(err.text, reasons[i].part) != NULL;
    if (!s && !*why) {
        result->passed++;
    } else if (excused) {
        result->refused++;
        if (verbose)
            printf("%s: refused: %s\n", name, err.text);
    } else {
        result->failed++;
        printf("%s: FAILED: %s%s: %s\n", name, why, *why ? "" : vgk_status_string(s), *why ? "" : err.text);
    }
    vg_graph_free(&g);
    vg_arena_free(arena);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static struct result folder(const char *path, const char *only)
{
    struct result r = {0};
    struct vgk_device *cpu = NULL;
    char *names[2048];
    int n = 0;
    DIR *d = opendir(path);
    if (!d)
        return r;
    vgk_cpu.open(&(struct vgk_device_options){.threads = 2}, &cpu, NULL);
    for (struct dirent *e; n < 2048 && (e = readdir(d));)
        if (e->d_name[0] != '.' && (!only || strstr(e->d_name, only)))
            names[n++] = strdup(e->d_name);
    closedir(d);
    qsort(names, n, sizeof *names, by_name);
    for (int i = 0; i < n; i++) {
        one(path, names[i], cpu, only != NULL, &r);
        free(names[i]);
    }
    vgk_cpu.close(&cpu);
    printf("%s: %d passed, %d refused, %d failed\n", path, r.passed, r.refused, r.failed);
    return r;
}

/* docs/operators.md lists the operators that are bound, in its first table, and those that are refused, in its second. */
static void table_of_operators(const char *source)
{
    char path[1024], line[2048];
    int rows[2] = {0}, table = -1;
    snprintf(path, sizeof path, "%s/docs/operators.md", source);
    FILE *f = fopen(path, "r");
    expectf(f != NULL, "%s", path);
    while (f && fgets(line, sizeof line, f)) {
        char name[64];
        if (sscanf(line, "| %63[A-Za-z0-9] |", name) != 1)
            continue;
        if (!strcmp(name, "operator")) {
            table++;
            continue;
        }
        rows[table > 0]++;
        expectf(table == 0 ? vg_bind_knows(name) && !vg_bind_refusal(name) : !vg_bind_knows(name) && vg_bind_refusal(name),
                "%s is in the wrong table, or in none of the code's", name);
        if (table > 0 && vg_bind_refusal(name))
            expectf(strstr(line, vg_bind_refusal(name)) != NULL, "%s: %s", name, vg_bind_refusal(name));
    }
    if (f)
        fclose(f);
    int n[2] = {0};
    while (vg_bind_operator(n[0]))
        n[0]++;
    while (vg_bind_refused(n[1]))
        n[1]++;
    expectf(rows[0] == n[0] && rows[1] == n[1], "the tables have %d and %d rows, the code %d and %d", rows[0], rows[1],
            n[0], n[1]);
}

int main(int argc, char **argv)
{
    const char *root = "/usr/share/libonnx-testdata/data";
    static const char *const parts[] = {"node", "simple", "pytorch-operator", "pytorch-converted"};
    /* Fewer than these means that something which worked is refused now. */
    static const int least[] = {632, 7, 35, 82}, least_newer = 600; /* which operators a newer package tests, it decides */
    struct stat st;
    char path[1024], script[1024];
    snprintf(script, sizeof script, "%s/tests/fixtures/onnx_node_tests.py", argc > 1 ? argv[1] : "");
    if (argc > 1 && stat(script, &st))
        return folder(argv[1], argc > 2 ? argv[2] : NULL).failed > 0;
    bool debian = !stat(root, &st);
    if (argc > 1) {
        table_of_operators(argv[1]);
        snprintf(path, sizeof path, "%s/tests/fixtures/torch", argv[1]);
        struct result r = folder(path, NULL);
        expectf(r.passed == 24 && r.failed == 0, "torch: %d passed, %d failed", r.passed, r.failed);
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts && debian; i++) {
        snprintf(path, sizeof path, "%s/%s", root, parts[i]);
        struct result r = folder(path, NULL);
        expect(r.failed == 0);
        expectf(r.passed >= least[i], "%s: %d passed, %d did before", parts[i], r.passed, least[i]);
    }
    bool newer = argc > 2 && make_cases(argv[1], argv[2], "onnx_node_tests.py", "onnx_node", path, sizeof path);
    if (newer) {
        struct result r = folder(path, NULL);
        expect(r.failed == 0);
        expectf(r.passed >= least_newer, "%d passed, %d should", r.passed, least_newer);
    }
    if (!debian && !newer)
        kit_skip("neither libonnx-testdata nor a Python with onnx is installed");
    return kit_done();
}
