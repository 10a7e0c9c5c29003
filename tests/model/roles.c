/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Roles of inputs and outputs: small models whose inputs are named, laid out and sized in the usual ways, what is found of
 * them, and that each frame and state then comes and goes where it should, whole and in tiles. */
#include <sys/mman.h>
#include <unistd.h>

#include "kit.h"
#include "nets.h"
#include "onnx_write.h"

/* What comes out: the frames as they came; the window's sum; the sum of all so far; with the frame before. */
enum result { COPY, SUM, RUNNING, WITH_LAST };

static const struct made {
    const char *inputs;  /* "name dims;..." */
    const char *nodes;   /* "type inputs output;..."; Gather3: 3k channels to the sum of k groups */
    const char *outputs; /* "name dims;..." */
    const char *key, *value; /* metadata */
    const char *roles;   /* of the inputs: f frame, s state, m map, t time, p parameter */
    int window, emit, hop, centre;
    enum result result;
} made[] = {
    {"x 1,3,h,w", "Relu x y", "y 1,3,a,b", NULL, NULL, "f", 1, 1, 1, 0, COPY},
    {"input 1,3,h,w", "Relu input output", "output 1,3,h,w", NULL, NULL, "f", 1, 1, 1, 0, COPY},
    {"x 1,h,w,3", "Relu x x_out", "x_out 1,h,w,3", NULL, NULL, "f", 1, 1, 1, 0, COPY},
    /* several frames in one input */
    {"x 4,3,h,w", "Relu x y", "y 4,3,h,w", NULL, NULL, "f", 4, 4, 4, 0, COPY},
    {"x 1,3,4,h,w", "Relu x y", "y 1,3,4,h,w", NULL, NULL, "f", 4, 4, 4, 0, COPY},
    {"x 1,5,3,h,w", "Relu x y", "y 1,5,3,h,w", NULL, NULL, "f", 5, 5, 5, 0, COPY},
    {"x 1,3,h,h2,w", "Relu x y", "y 1,3,h,h2,w", NULL, NULL, "f", 8, 8, 8, 0, COPY},
    {"x 1,n,3,h,w", "Relu x y", "y", "vidgen.window", "6", "f", 6, 6, 6, 0, COPY},
    {"x 1,4,h,w,3", "Relu x y", "y 1,4,h,w,3", NULL, NULL, "f", 4, 4, 4, 0, COPY},
    {"x 1,3,3,h,w", "Relu x y", "y 1,3,3,h,w", "vidgen.layout", "NTCHW", "f", 3, 3, 3, 0, COPY},
    {"x 1,12,h,w", "Relu x y", "y 1,12,h,w", NULL, NULL, "f", 4, 4, 4, 0, COPY},
    {"x 1,9,h,w", "Gather3 x y", "y 1,3,h,w", NULL, NULL, "f", 3, 1, 1, 1, SUM},
    {"x 1,6,h,w", "Gather3 x y", "y 1,3,h,w", NULL, NULL, "f", 2, 1, 1, -1, SUM},
    {"x 1,6,h,w", "Gather3 x y", "y 1,3,h,w", "vidgen.centre", "1", "f", 2, 1, 1, 1, SUM},
    /* in several */
    {"a 1,3,h,w;b 1,3,h,w", "Add a b y", "y 1,3,h,w", NULL, NULL, "ff", 2, 1, 1, -1, SUM},
    {"a 1,3,h,w;b 1,3,h,w;c 1,3,h,w", "Add a b ab;Add ab c y", "y 1,3,h,w", NULL, NULL, "fff", 3, 1, 1, 1, SUM},
    {"a 1,3,h,w;b 1,3,h,w", "Add a b y", "y 1,3,h,w", "vidgen.input", "b", "mf", 1, 1, 1, 0, -1},
    /* states */
    {"x 1,3,h,w;r1i 1,3,h,w", "Add x r1i y;Relu y r1o", "y 1,3,h,w;r1o 1,3,h,w", NULL, NULL, "fs", 1, 1, 1, 0, RUNNING},
    {"h_in 1,3,h,w;x 1,3,h,w", "Add x h_in y;Relu y h_out", "h_out 1,3,h,w;y 1,3,h,w", NULL, NULL, "sf", 1, 1, 1, 0,
     RUNNING},
    {"input 1,3,h,w;past_h 1,3,h,w", "Add input past_h output;Relu output present_h", "output 1,3,h,w;present_h 1,3,h,w",
     NULL, NULL, "fs", 1, 1, 1, 0, RUNNING},
    {"x 1,3,h,w;s 1,3,h,w", "Add x s y", "y 1,3,h,w", "vidgen.state", "s:y", "fs", 1, 1, 1, 0, RUNNING},
    {"x 1,3,h,w;prev_frame 1,3,h,w", "Add x prev_frame y", "y 1,3,h,w", NULL, NULL, "fs", 1, 1, 1, 0, WITH_LAST},
    {"x 1,3,h,w;z 1,3,h,w", "Add x z y", "y 1,3,h,w", "vidgen.state", "z=x", "fs", 1, 1, 1, 0, WITH_LAST},
    {"x 1,h,w,3;h 1,h,w,3", "Add x h y;Relu y h_new", "y 1,h,w,3;h_new 1,h,w,3", NULL, NULL, "fs", 1, 1, 1, 0, RUNNING},
    {"x 1,2,3,h,w;m_in 1,2,3,h,w", "Add x m_in y;Relu y m_out", "y 1,2,3,h,w;m_out 1,2,3,h,w", NULL, NULL, "fs", 2, 2, 2, 0,
     RUNNING},
    /* maps and parameters: 1 without a default */
    {"x 1,3,h,w;noise 1,1,h,w", "Mul x noise y", "y 1,3,h,w", NULL, NULL, "fm", 1, 1, 1, 0, COPY},
    {"x 1,h,w,3;noise 1,h,w,1", "Mul x noise y", "y 1,h,w,3", NULL, NULL, "fm", 1, 1, 1, 0, COPY},
    {"x 1,4,3,h,w;noise 1,1,h,w", "Mul x noise y", "y 1,4,3,h,w", NULL, NULL, "fm", 4, 4, 4, 0, COPY},
    {"input 1,3,h,w;mask 1,1,h,w", "Mul input mask output", "output 1,3,h,w", NULL, NULL, "fm", 1, 1, 1, 0, COPY},
    {"x 1,3,h,w;strength 1", "Mul x strength y", "y 1,3,h,w", NULL, NULL, "fp", 1, 1, 1, 0, COPY},
    {"a 1,3,h,w;b 1,3,h,w;t 1,1,1,1", "Mul b t bt;Add a bt y", "y 1,3,h,w", NULL, NULL, "fft", 2, 1, 1, -1, -1},
    {"x 1,3,h,w;t 1", "Mul x t y", "y 1,3,h,w", NULL, NULL, "fp", 1, 1, 1, 0, COPY},
};

/* The i-th of a list, its words apart: "name dims". */
static bool item(const char *list, int i, char *text, size_t size)
{
    for (; i > 0 && list; i--)
        list = (list = strchr(list, ';')) ? list + 1 : NULL;
    if (list)
        snprintf(text, size, "%.*s", (int)strcspn(list, ";"), list);
    return list != NULL;
}

static struct vg_model *make(const struct made *d, struct vgk_error *err)
{
    struct ow *file = ow_new(17);
    char text[256], name[64], path[64];
    for (int out = 0; out < 2; out++)
        for (int i = 0; item(out ? d->outputs : d->inputs, i, text, sizeof text); i++) {
            char *dims = strchr(text, ' ');
            if (dims)
                *dims++ = '\0';
            if (out)
                ow_output(file, text, 1, dims);
            else
                ow_input(file, text, 1, dims);
        }
    for (int i = 0; item(d->nodes, i, text, sizeof text); i++) {
        char *in = strchr(text, ' '), *out = strrchr(text, ' ');
        *in++ = *out++ = '\0';
        for (char *c = in; *c; c++)
            *c = *c == ' ' ? ',' : *c;
        snprintf(name, sizeof name, "n%d", i);
        if (strcmp(text, "Gather3")) {
            struct pb *node = ow_node(text, name, in, out);
            if (!strcmp(text, "MaxPool")) {
                ow_ints(node, "kernel_shape", 2, (int64_t[]){2, 2});
                ow_ints(node, "strides", 2, (int64_t[]){2, 2});
            } else if (!strcmp(text, "Concat")) {
                ow_int(node, "axis", 1);
            }
            ow_add(file, node);
            continue;
        }
        int k = atoi(strchr(d->inputs, ',') + 1) / 3;
        float w[3 * 16 * 3] = {0};
        for (int o = 0; o < 3; o++)
            for (int f = 0; f < k; f++)
                w[o * 3 * k + 3 * f + o] = 1;
        ow_floats_tensor(file, "w", 4, (int64_t[]){3, 3 * k, 1, 1}, w);
        snprintf(path, sizeof path, "%s,w", in);
        ow_add(file, ow_node("Conv", name, path, out));
    }
    if (d->key)
        ow_property(file, d->key, d->value);
    return nets_finish(file, err);
}

static void found(const char *name, const struct made *d, const struct vg_model *m)
{
    const struct vg_summary *s = vg_model_summary(m);
    char roles[16] = "";
    for (int i = 0; i < m->graph->n_inputs; i++)
        roles[i] = "fsmtp"[m->roles.inputs[i].role];
    expectf(!strcmp(roles, d->roles), "%s: %s, expected %s", name, roles, d->roles);
    expectf(s->window == d->window && s->emit == d->emit && s->hop == d->hop && s->centre == d->centre,
            "%s: window %d, emit %d, hop %d, centre %d", name, s->window, s->emit, s->hop, s->centre);
}

enum { W = 23, H = 17, STEPS = 3, MOST = 8 };

static void run_in(const char *name, const struct made *d, struct vg_model *m, struct vgk_device *cpu, int tile)
{
    struct vg_plan_request r = {.width = W, .height = H, .tile_width = tile, .tile_height = tile, .overlap_x = -1,
                                .overlap_y = -1, .max_bytes = 1 << 26};
    struct vg_plan *plan = NULL;
    struct vg_run *run = NULL;
    struct vgk_error err = {{0}};
    struct nets_picture in[STEPS][MOST], out[MOST];
    enum vgk_status s = vg_plan_make(m, &vgk_cpu, cpu, &r, &plan, &err);
    s = s ? s : vg_run_open(plan, &run, &err);
    for (int k = 0; k < STEPS; k++)
        for (int i = 0; i < d->window; i++) {
            in[k][i] = nets_picture(VGK_FRAME_PACKED, W, H, true);
            for (size_t b = 0; b < in[k][i].bytes; b++)
                in[k][i].data[b] /= 8; /* sums do not clip */
        }
    for (int i = 0; i < d->emit; i++)
        out[i] = nets_picture(VGK_FRAME_PACKED, W, H, false);
    for (int k = 0; k < STEPS && !s; k++) {
        s = nets_window(run, vg_plan_info(plan)->grid, in[k], d->window, out, d->emit, &err);
        size_t wrong = 0;
        for (int i = 0; i < d->emit; i++)
            for (size_t b = 0; b < out[i].bytes; b++) {
                int want = in[k][i].data[b];
                for (int j = 1; j < d->window && d->result == SUM; j++)
                    want += in[k][j].data[b];
                for (int j = 0; j < k && d->result == RUNNING; j++)
                    want += in[j][i].data[b];
                want += d->result == WITH_LAST ? in[k ? k - 1 : 0][i].data[b] : 0;
                wrong += want != out[i].data[b];
            }
        expectf(!wrong, "%s, step %d, tile %d: %zu bytes", name, k, tile, wrong);
    }
    expectf(!s, "%s: %s", name, err.text);
    for (int i = 0; i < d->emit; i++)
        free(out[i].data);
    for (int k = 0; k < STEPS; k++)
        for (int i = 0; i < d->window; i++)
            free(in[k][i].data);
    vg_run_close(&run);
    vg_plan_free(&plan);
}

static void usual_ways(void)
{
    struct vgk_device *cpu = NULL;
    struct vgk_error err = {{0}};
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &cpu, &err);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        char name[128];
        struct vg_model *m = make(&made[i], &err);
        snprintf(name, sizeof name, "[%s -> %s]", made[i].inputs, made[i].outputs);
        expectf(m, "%s: %s", name, err.text);
        if (!m)
            continue;
        found(name, &made[i], m);
        for (int tile = 0; tile <= 8 && (int)made[i].result >= 0; tile += 8)
            run_in(name, &made[i], m, cpu, tile);
        vg_model_unref(&m);
    }
    vgk_cpu.close(&cpu);
}

/* A state of another size than the frame's, by trying, by fixed sizes and by the file's word; and none at all. */
static void sizes_of_states(void)
{
    static const struct {
        struct made d;
        int num, den; /* 0: no picture of the frame */
    } cases[] = {
        {{"x 1,3,h,w;s_in 1,8,h4,w4", "MaxPool x p;MaxPool p q;Concat q s_in c;Relu s_in s_out;Relu x y",
          "y 1,3,h,w;s_out 1,8,e,f", NULL, NULL, "fs", 1, 1, 1, 0, COPY}, 1, 4},
        {{"x 1,3,64,48;s_in 1,2,32,24", "Relu s_in s_out;Relu x y", "y 1,3,64,48;s_out 1,2,32,24", NULL, NULL, "fs", 1, 1, 1,
          0, COPY}, 1, 2},
        {{"x 1,3,h,w;s_in 1,2,hs,ws", "Relu s_in s_out;Relu x y", "y 1,3,h,w;s_out 1,2,e,f", "vidgen.s_in-scale", "2/1", "fs",
          1, 1, 1, 0, COPY}, 2, 1},
        {{"x 1,3,h,w;s_in 1,16", "Relu s_in s_out;Relu x y", "y 1,3,h,w;s_out 1,16", NULL, NULL, "fs", 1, 1, 1, 0, COPY}, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vgk_error err = {{0}};
        const struct made *d = &cases[i].d;
        struct vg_model *m = make(d, &err);
        expectf(m, "%s: %s", d->inputs, err.text);
        if (!m)
            continue;
        const struct vg_input_size *size = &m->roles.inputs[1].size;
        found(d->inputs, d, m);
        if (cases[i].num)
            expectf(size->axis[VG_X] == 3 && size->num[VG_X] == cases[i].num && size->den[VG_X] == cases[i].den &&
                        !m->summary.global, "%s: %d/%d", d->inputs, size->num[VG_X], size->den[VG_X]);
        else
            expect(size->axis[VG_X] < 0 && m->summary.global && strstr(m->summary.global_why, "state"));
        vg_model_unref(&m);
    }
}

int main(void)
{
    kit_seed(1);
    run(usual_ways);
    run(sizes_of_states);
    return kit_done();
}
