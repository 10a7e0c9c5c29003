/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fixture models (tests/fixtures/make_fixtures.py): each one's outputs at three sizes against onnxruntime's, and
 * scale, alignment and halo as the analysis finds them against those that the generator counts column by column.
 *
 *     test-fixtures SOURCE BUILD [NAME]            NAME: only this one, with its net
 *     test-fixtures SOURCE BUILD cuda [NAME]       by the CUDA module (VIDGEN_MODULE_PATH), in f32 and in half */
#include "kernels/cuda_load.h"
#include "model/precision.h"
#include "onnx_case.h"

struct fixture {
    char name[64];
    int scale, align, left, right; /* left: -1 = none */
};

static const struct vgk_backend *backend = &vgk_cpu;
static struct vgk_device *cpu, *device;

/* qdq_int8: where a value lies on the edge between two quanta, rounding decides: up to two quanta (1/64 each), and more
 * than half a one in less than 1 % of the pixels. */
static void compare_quantised(const struct vgk_tensor *a, const struct vgk_tensor *b)
{
    int64_t off = 0, n = vgk_tensor_count(a);
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs(element(a, i) - element(b, i));
        worst = d > worst ? d : worst;
        off += d > 0.5 / 64;
    }
    expectf(worst <= 2.0 / 64 + 1e-6 && off * 100 < n, "qdq_int8: %g quanta off, %lld of %lld pixels more than half",
            worst * 64, (long long)off, (long long)n);
}

static enum vgk_status bind(const struct vg_graph *g, const struct vgk_tensor *in, struct vg_net **net,
                            struct vgk_error *err)
{
    struct vg_input_size sizes[MAX_IO] = {{0}};
    for (int i = 0; i < g->n_inputs; i++) {
        sizes[i].rank = in[i].rank;
        memcpy(sizes[i].dim, in[i].dim, sizeof sizes[i].dim);
    }
    struct vg_binding binding = {.sizes = sizes, .frame_input = in[0].rank >= 4 ? 0 : -1, .cpu = cpu};
    binding.axis[VG_X] = in[0].rank - 1;
    binding.axis[VG_Y] = in[0].rank - 2;
    enum vgk_status s = vg_net_bind(g, &binding, net, err);
    if (!s)
        s = vg_net_fuse(*net);
    return s ? s : vg_net_split_norms(*net, VG_NORM_OWN);
}

/* In half precision, in 8-bit steps of the largest value (of 1 at least).  Measured over all sizes: 0.11 in the mean and
 * 0.85 at worst (johnson, ifnet); a value that falls to the other side of a quantum's edge is 4 steps away, and the next
 * layer adds those up: 1.3 and 10.8 (qdq_int8). */
static void compare_halves(const char *name, const struct vgk_tensor *a, const struct vgk_tensor *b)
{
    double most = 1, sum = 0, worst = 0;
    int64_t n = vgk_tensor_count(a);
    for (int64_t i = 0; i < n; i++)
        most = fabs(element(b, i)) > most ? fabs(element(b, i)) : most;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs(element(a, i) - element(b, i)) * 255 / most;
        sum += d;
        worst = d > worst || d != d ? d : worst;
    }
    bool quantised = !strcmp(name, "qdq_int8");
    printf("%-16s in half: %.3f steps mean, %.2f worst\n", name, sum / (double)n, worst);
    expectf(sum / (double)n <= (quantised ? 2.5 : 0.2) && worst <= (quantised ? 20 : 1.5), "%s: %.3f steps mean, %.2f worst",
            name, sum / (double)n, worst);
}

static void compare(const char *name, bool halved, const struct vgk_tensor *a, const struct vgk_tensor *b)
{
    bool loose = !strcmp(name, "fp16_full");
    /* Sums in another order; onnxruntime rounds values near 1 to the 11 bits of f16 between layers, where we do not. */
    char why[512] = "";
    if (halved)
        compare_halves(name, a, b);
    else if (!strcmp(name, "qdq_int8"))
        compare_quantised(a, b);
    else
        expectf(equal(a, b, loose ? 2e-3 : 1e-3, loose ? 2e-3 : 1e-4, why, sizeof why), "%s: %s", name, why);
}

/* The net goes. */
static void evaluate(const struct fixture *f, struct vg_net *net, bool halved, const struct vgk_tensor *in, int n_in,
                     const struct vgk_tensor *expected)
{
    struct vg_program *program = NULL;
    struct vg_program_request request = {.output = -1};
    struct vgk_error err = {{0}};
    struct vg_run *r = NULL;
    int n = net->n_outputs;
    enum vgk_status s = halved ? vg_net_halve(net, -1, false) : VGK_OK;
    s = s ? s : vg_program_make(net, backend, device, &request, &program, &err);
    if (s)
        vg_net_free(&net);
    struct vg_model model = {.summary.name = f->name, .frame_input = -1};
    struct vg_plan plan = {.model = &model, .backend = backend, .device = device, .program = program,
                           .host = backend == &vgk_cpu ? NULL : cpu};
    struct vgk_tensor out[MAX_IO];
    if (!s) {
        plan.info.arena_bytes = vg_plan_arrange(&plan);
        s = vg_run_open(&plan, &r, &err);
    }
    for (int i = 0; i < n && !s; i++) {
        size_t bytes;
        out[i] = vgk_tensor_make(program->outputs[i].t.type, program->outputs[i].t.rank, program->outputs[i].t.dim,
                                 VGK_ROW_MAJOR);
        vgk_tensor_bytes(&out[i], &bytes);
        out[i].data = malloc(bytes + 1);
    }
    if (!s)
        s = vg_run_tensors(r, in, n_in, out, n, &err);
    for (int i = 0; i < n && !s; i++)
        compare(f->name, halved, &out[i], &expected[i]);
    for (int i = 0; i < n && r; i++)
        free(out[i].data);
    expectf(!s, "%s: %s: %s", f->name, vgk_status_string(s), err.text);
    vg_run_close(&r);
    vg_program_free(&program);
}

/* Scale, alignment and halo; the table's line. */
static void analyse(const struct fixture *f, const struct vg_net *net)
{
    struct vg_analysis a = {{0}};
    struct vgk_error err = {{0}};
    if (net->frame_input < 0)
        return;
    enum vgk_status s = vg_net_analyse(net, 0, NULL, &a, &err);
    char ours[64] = "-", theirs[64] = "global";
    if (!s)
        snprintf(ours, sizeof ours, "x%d/%d align %d halo %d, %d", (int)a.num[VG_X], (int)a.den[VG_X],
                 (int)a.align[VG_X], (int)a.lo[VG_X], (int)a.hi[VG_X]);
    if (f->left >= 0)
        snprintf(theirs, sizeof theirs, "x%d/1 align %d halo %d, %d", f->scale, f->align, f->left, f->right);
    printf("%-16s %-28s %-28s %s\n", f->name, ours, theirs, s ? err.text : net->global_why ? net->global_why : "");
    if (f->left < 0)
        expectf(s || net->global_why, "%s: is global, and nothing says so", f->name);
    else
        expectf(!s && !strcmp(ours, theirs), "%s: %s, expected %s %s", f->name, ours, theirs, s ? err.text : "");
}

static void one(const char *folder, const struct fixture *f, bool verbose)
{
    char path[2048];
    struct vg_graph *g = NULL;
    struct vgk_error err = {{0}};
    snprintf(path, sizeof path, "%s/%s.onnx", folder, f->name);
    enum vgk_status s = vg_onnx_load(path, &g, &err);
    expectf(!s, "%s: %s", f->name, err.text);
    for (int set = backend->half; set < 3 && !s; set++) { /* stand-ins are slow: one size in f32, one in half */
        struct vg_arena *arena = vg_arena_new(0);
        struct vgk_tensor in[MAX_IO], out[MAX_IO];
        struct vg_net *net = NULL;
        bool read = true;
        for (int i = 0; i < g->n_inputs; i++) {
            snprintf(path, sizeof path, "%s/%s/test_data_set_%d/input_%d.pb", folder, f->name, set, i);
            read &= (in[i] = read_tensor(arena, path, VGK_NONE)).type != VGK_NONE;
        }
        for (int i = 0; i < g->n_outputs; i++) {
            snprintf(path, sizeof path, "%s/%s/test_data_set_%d/output_%d.pb", folder, f->name, set, i);
            read &= (out[i] = read_tensor(arena, path, VGK_NONE)).type != VGK_NONE;
        }
        expectf(read, "%s: cannot read %s", f->name, path);
        bool halved = backend->half && set == 2;
        if (read && !(s = bind(g, in, &net, &err))) {
            char *text = verbose && !set ? vg_net_text(net) : NULL;
            if (text)
                printf("%s", text);
            free(text);
            if (!set && backend == &vgk_cpu)
                analyse(f, net);
            evaluate(f, net, halved, in, g->n_inputs, out);
        }
        expectf(!s, "%s, size %d: %s", f->name, set, err.text);
        vg_arena_free(arena);
    }
    vg_graph_free(&g);
}

int main(int argc, char **argv)
{
    char folder[1024], path[2048];
    struct vgk_error err = {{0}};
    bool cuda = argc > 3 && !strcmp(argv[3], "cuda");
    const char *only = argc > 3 + cuda ? argv[3 + cuda] : NULL;
    int n = 0;
    const char *made = cuda ? "cuda-fixtures" : "fixtures"; /* each its own: tests run side by side */
    if (argc < 3 || !make_cases(argv[1], argv[2], "vectors.py", made, folder, sizeof folder)) {
        if (kit_failures)
            return kit_done();
        kit_skip("needs a Python with onnx, onnxruntime and numpy");
    }
    snprintf(path, sizeof path, "%s/fixtures.txt", folder);
    FILE *list = fopen(path, "r");
    expect(list != NULL);
    vgk_cpu.open(&(struct vgk_device_options){.threads = 2}, &cpu, NULL);
    if (cuda && (!(backend = vgk_cuda_load(&err)) || backend->open(&(struct vgk_device_options){0}, &device, &err))) {
        printf("%s\n", err.text);
        return 1;
    }
    device = device ? device : cpu;
    printf("%s\n", backend->describe(device));
    if (!cuda)
        printf("%-16s %-28s %-28s\n", "fixture", "analysis", "counted by column");
    for (struct fixture f; list;) {
        char left[16], right[16];
        if (fscanf(list, "%63s %d %d %15s %15s", f.name, &f.scale, &f.align, left, right) != 5)
            break;
        f.left = left[0] == '-' ? -1 : atoi(left);
        f.right = right[0] == '-' ? -1 : atoi(right);
        if (!only || !strcmp(f.name, only))
            one(folder, &f, only);
        n++;
    }
    expectf(n == 28, "%d fixtures", n);
    if (cuda)
        backend->close(&device);
    vgk_cpu.close(&cpu);
    if (list)
        fclose(list);
    return kit_done();
}
