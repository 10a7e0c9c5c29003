/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the real cuDNN answers, without a GPU: a plan for every convolution, product and attention of the models (in
 * f16, and in f32 for the tiles that are run again) and of the fixtures, for each of the seven capabilities.  The
 * answers stand in a table (dnn_plans.txt): which engine, compiled beforehand or at run time, how much workspace.
 * Another version of cuDNN, or another way to ask, shows as a difference.
 *
 *     test-dnn-plans SOURCE BUILD [--full|--update] [MODEL.onnx ...]
 *
 * Asked are the models' for all capabilities and the fixtures' for one; with --full everything.  Finalised are all
 * that come precompiled, and of those that NVRTC compiles (0.3 to 4 s each) the f16 ones of the models for one
 * capability; with --full all.  --update asks for everything and writes the table. */
#include "../model/onnx_case.h"
#include "fakedriver/fakedriver.h"
#include "kernels/cuda/dnn.h"
#include "kernels/cuda/dnn_devices.h"

enum { WIDTH = 640, HEIGHT = 360, MOST = 512, LINE = 320, COMPLETE = 86 };
static const size_t MAX_WORKSPACE = (size_t)64 << 20;

static struct {
    char text[LINE];
    struct vgk_op op;
    struct vgk_tensor in[VGK_CONV_INPUTS], out;
    bool model; /* of one that is shipped or fetched */
} ops[MOST];
static int n_ops;

/* --- which operations there are --- */

static void tensor_text(char *to, size_t size, const struct vgk_tensor *t)
{
    size_t n = strlen(to);
    vgk_tensor_describe(t, to + n, size - n);
    if (!vgk_tensor_is_dense(t, VGK_ROW_MAJOR) && !vgk_tensor_is_dense(t, VGK_CHANNELS_LAST))
        for (int i = 0; i < t->rank; i++) {
            n = strlen(to);
            snprintf(to + n, size - n, "%s%lld%s", i ? "," : " by (", (long long)t->stride[i],
                     i == t->rank - 1 ? ")" : "");
        }
}

static void op_text(char text[LINE], const struct vgk_op *op)
{
    static const char *const acts[] = {"", " relu", " leaky", " prelu", " clip", " sigmoid", " tanh", " silu",
                                       " elu", " hard-sigmoid", " hard-swish", " gelu", " gelu-tanh"};
    static const char *const vectors[] = {"", "", "shift", "scale", "slope"};
    const struct vgk_conv *c = &op->p.conv;
    bool conv = op->kind == VGK_OP_CONV || op->kind == VGK_OP_CONV_TRANSPOSE;
    snprintf(text, LINE, "%s ", vgk_kind_name(op->kind));
    for (int i = 0; i < op->n_in && !(conv && i > 1); i++) {
        if (op->in[i].type == VGK_NONE)
            continue;
        strncat(text, i ? " x " : "", LINE - strlen(text) - 1);
        tensor_text(text, LINE, &op->in[i]);
        strncat(text, op->in[i].data ? "c" : "", LINE - strlen(text) - 1);
    }
    strncat(text, " = ", LINE - strlen(text) - 1);
    tensor_text(text, LINE, op->out);
    for (int i = 0; conv && i < c->spatial; i++) {
        size_t n = strlen(text);
        snprintf(text + n, LINE - n, "%s%d/%d/%d+%d+%d", i ? "," : " k/s/d+pad ", c->kernel[i], c->stride[i],
                 c->dilation[i], c->pad_begin[i], c->pad_end[i]);
    }
    if (conv && c->groups > 1) {
        size_t n = strlen(text);
        snprintf(text + n, LINE - n, " groups %d", c->groups);
    }
    for (int i = 2; conv && i < 5; i++)
        if (op->in[i].type != VGK_NONE) {
            size_t n = strlen(text);
            snprintf(text + n, LINE - n, " %s%s", vectors[i], op->in[i].data ? "" : "*");
        }
    if (conv) {
        size_t n = strlen(text);
        snprintf(text + n, LINE - n, "%s%s", acts[c->act],
                 op->in[5].type == VGK_NONE ? "" : c->residual_before_act ? " residual before" : " residual");
    }
}

/* An operation as the back end asks for it: pictures and sequences in f16 (or not).  Once each. */
static void collect(const struct vg_net *net, const struct vg_net_op *o, enum vgk_type type, bool model)
{
    if (n_ops == MOST)
        return;
    struct vgk_tensor *in = ops[n_ops].in, *out = &ops[n_ops].out;
    unsigned fixed = 0;
    for (int k = 0; k < VGK_CONV_INPUTS; k++) {
        bool given = k < o->n_in && o->in[k].value >= 0, constant = given && net->values[o->in[k].value].constant;
        in[k] = given ? o->in[k].t : (struct vgk_tensor){VGK_NONE};
        in[k].data = constant ? in[k].data : NULL;
        fixed |= (unsigned)constant << k;
        if (given && !constant && in[k].type == VGK_F32)
            in[k].type = type;
    }
    *out = o->out.t;
    out->data = NULL;
    out->type = out->type == VGK_F32 ? type : out->type;
    ops[n_ops].op = o->op;
    ops[n_ops].op.in = in;
    ops[n_ops].op.out = out;
    ops[n_ops].op.n_in = o->n_in;
    ops[n_ops].op.n_out = 1;
    ops[n_ops].op.constant = fixed;
    ops[n_ops].model = model;
    op_text(ops[n_ops].text, &ops[n_ops].op);
    for (int i = 0; i < n_ops; i++)
        if (!strcmp(ops[i].text, ops[n_ops].text)) {
            ops[i].model |= model;
            return;
        }
    n_ops++;
}

static void collect_all(const struct vg_net *net, bool model)
{
    for (int i = 0; i < net->n_ops; i++) {
        enum vgk_kind kind = net->ops[i].op.kind;
        if (!net->ops[i].dead && !net->ops[i].view && (kind == VGK_OP_CONV || kind == VGK_OP_CONV_TRANSPOSE ||
                                                       kind == VGK_OP_MATMUL || kind == VGK_OP_ATTENTION))
            for (int half = 1; half >= !model; half--)
                collect(net, &net->ops[i], half ? VGK_F16 : VGK_F32, model);
    }
    expectf(n_ops < MOST, "more than %d operations", MOST);
}

static struct vg_net *nets[128]; /* constants live in them, and in their models */
static struct vg_model *models[128];
static int n_nets, n_models;

static void model(const char *path)
{
    struct vgk_error err = {{0}};
    enum vgk_status s = vg_model_load(path, &models[n_models], &err);
    if (!s)
        s = vg_model_bind(models[n_models++], WIDTH, HEIGHT, 0, true, VG_NORM_OWN, &nets[n_nets], &err);
    expectf(!s, "%s: %s", path, err.text);
    if (!s)
        collect_all(nets[n_nets++], true);
}

static void fixture(const char *folder, const char *name, struct vgk_device *cpu)
{
    char path[2048];
    struct vg_graph *g = NULL;
    struct vg_arena *arena = vg_arena_new(0);
    struct vg_input_size sizes[MAX_IO] = {{0}};
    struct vgk_error err = {{0}};
    snprintf(path, sizeof path, "%s/%s.onnx", folder, name);
    enum vgk_status s = vg_onnx_load(path, &g, &err);
    for (int i = 0; !s && i < g->n_inputs; i++) {
        snprintf(path, sizeof path, "%s/%s/test_data_set_0/input_%d.pb", folder, name, i);
        struct vgk_tensor t = read_tensor(arena, path, VGK_NONE);
        sizes[i].rank = t.rank;
        memcpy(sizes[i].dim, t.dim, sizeof sizes[i].dim);
    }
    if (!s) {
        struct vg_binding binding = {.sizes = sizes, .frame_input = sizes[0].rank >= 4 ? 0 : -1, .cpu = cpu};
        binding.axis[VG_X] = sizes[0].rank - 1;
        binding.axis[VG_Y] = sizes[0].rank - 2;
        s = vg_net_bind(g, &binding, &nets[n_nets], &err);
    }
    if (!s)
        s = vg_net_fuse(nets[n_nets]);
    expectf(!s, "%s: %s", name, err.text);
    if (!s)
        collect_all(nets[n_nets++], false);
    vg_arena_free(arena);
}

static int fixtures(const char *source, const char *build)
{
    char folder[1024], path[2048], line[256], name[64];
    int n = 0;
    struct vgk_device *cpu = NULL;
    if (!make_cases(source, build, "vectors.py", "fixtures", folder, sizeof folder))
        return 0;
    snprintf(path, sizeof path, "%s/fixtures.txt", folder);
    FILE *list = fopen(path, "r");
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &cpu, NULL);
    for (; list && fgets(line, sizeof line, list); n++)
        if (sscanf(line, "%63s", name) == 1)
            fixture(folder, name, cpu);
    if (list)
        fclose(list);
    vgk_cpu.close(&cpu);
    return n;
}

/* --- the table --- */

struct line {
    char op[LINE], device[16], answer[160];
};
static struct line *table;
static int n_table;

static void table_read(const char *path)
{
    char text[LINE], op[LINE] = "";
    FILE *f = fopen(path, "r");
    table = calloc(16 * MOST, sizeof *table);
    while (f && table && n_table < 16 * MOST && fgets(text, sizeof text, f)) {
        text[strcspn(text, "\n")] = 0;
        if (text[0] != ' ') {
            snprintf(op, sizeof op, "%s", text);
        } else if (sscanf(text, " %15s %159[^\n]", table[n_table].device, table[n_table].answer) == 2) {
            snprintf(table[n_table++].op, LINE, "%s", op);
        }
    }
    if (f)
        fclose(f);
}

static void compare(const char *op, const char *device, const char *answer)
{
    for (int i = 0; i < n_table; i++)
        if (!strcmp(table[i].op, op) && !strcmp(table[i].device, device)) {
            expectf(!strcmp(table[i].answer, answer), "%s\n    %s was: %s\n    %s is:  %s", op, device, table[i].answer,
                    device, answer);
            return;
        }
    expectf(0, "%s\n    %s is new: %s", op, device, answer);
}

/* --- asking --- */

static void ask(const char *device, struct vgk_dnn *dnn, int i, bool full, char answer[160])
{
    struct vgk_error err = {{0}};
    struct vgk_dnn_plan *plan = NULL;
    int loads = fakedriver_state().loads, capability = atoi(device + 3);
    enum vgk_status s = vgk_dnn_plan(dnn, &ops[i].op, MAX_WORKSPACE, &plan, &err);
    if (s) {
        expectf(s == VGK_ERR_UNSUPPORTED, "%s, %s: %s", ops[i].text, device, err.text);
        snprintf(answer, 160, "none: %.150s", strstr(err.text, ": ") ? strstr(err.text, ": ") + 2 : err.text);
        return;
    }
    snprintf(answer, 160, "%s", vgk_dnn_plan_describe(plan));
    expectf(vgk_dnn_plan_workspace(plan) <= MAX_WORKSPACE, "%s", answer);
    bool compiled = !strstr(answer, "precompiled");
    bool half = ops[i].out.type == VGK_F16;
    if (!compiled || full || (ops[i].model && half && capability == COMPLETE)) {
        s = vgk_dnn_build(plan, &err);
        expectf(!s, "%s, %s: %s", ops[i].text, device, err.text);
        expectf(s || !strcmp(answer, vgk_dnn_plan_describe(plan)), "%s, %s: asked: %s, built: %s", ops[i].text, device,
                answer, vgk_dnn_plan_describe(plan));
        struct fakedriver now = fakedriver_state();
        expectf(s || (now.loads > loads) == compiled, "%s, %s: %d kernels loaded", ops[i].text, device,
                now.loads - loads);
        expectf(s || !compiled || now.capability == capability, "%s: compiled for sm_%d, not for %s", ops[i].text,
                now.capability, device);
    }
}

int main(int argc, char **argv)
{
    struct vgk_error err = {{0}};
    bool full = false, update = false;
    int n_asked = 0;
    char path[1024];
    static char answers[8][MOST][160];
    if (argc < 3)
        return 2;
    int n = fixtures(argv[1], argv[2]);
    for (int i = 3; i < argc; i++) {
        full |= !strcmp(argv[i], "--full");
        update |= !strcmp(argv[i], "--update");
        if (argv[i][0] != '-')
            model(argv[i]);
    }
    snprintf(path, sizeof path, "%s/tests/cuda/dnn_plans.txt", argv[1]);
    if (!update)
        table_read(path);
    for (int d = 0; vgk_dnn_known_device(d); d++) {
        const char *device = vgk_dnn_known_device(d);
        char json[VGK_DNN_DEVICE_TEXT];
        struct vgk_dnn *dnn = NULL;
        expect(!vgk_dnn_describe_device(device, json, &err));
        if (vgk_dnn_open(json, 0, &dnn, &err)) {
            if (strstr(err.text, "cannot be loaded"))
                kit_skip(err.text);
            expectf(0, "%s: %s", device, err.text);
            break;
        }
        for (int i = 0; i < n_ops; i++) {
            if (!full && !update && !ops[i].model && atoi(device + 3) != COMPLETE)
                continue;
            n_asked++;
            ask(device, dnn, i, full, answers[d][i]);
            if (!update)
                compare(ops[i].text, device, answers[d][i]);
        }
        vgk_dnn_close(&dnn);
        fflush(stdout);
    }
    if (update) {
        FILE *f = fopen(path, "w");
        expect(f != NULL);
        for (int i = 0; f && i < n_ops; i++) {
            fprintf(f, "%s\n", ops[i].text);
            for (int d = 0; vgk_dnn_known_device(d); d++)
                fprintf(f, "  %s %s\n", vgk_dnn_known_device(d), answers[d][i]);
        }
        if (f)
            fclose(f);
    }
    printf("%d fixtures, %d operations, %d answers\n", n, n_ops, n_asked);
    for (int i = 0; i < n_nets; i++)
        vg_net_free(&nets[i]);
    for (int i = 0; i < n_models; i++)
        vg_model_unref(&models[i]);
    free(table);
    return kit_done();
}
