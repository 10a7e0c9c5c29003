/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Models in time: windows, states, interpolators.  The fixtures (tests/fixtures/make_fixtures.py) that have pictures as
 * inputs run on clips of random frames, as the elements would run them:
 *
 *   - what comes out whole is what the net gives for the same tensors, its states handed on by hand;
 *   - tiled equals untiled, byte for byte, over many sizes and over 50 steps;
 *   - chunks of a causal model are the whole; and so on.
 *
 *     test-time SOURCE BUILD */
#include "clips.h"
#include "failing_malloc.h"
#include "kit.h"
#include "nets.h"
#include "onnx_case.h"

static char folder[1024];
static struct vgk_device *cpu, *exact_cpu;

/* A sidecar for a fixture; NULL takes it away. */
static void sidecar(const char *name, const char *text)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s.modelinfo", folder, name);
    FILE *f = text ? fopen(path, "w") : NULL;
    if (f) {
        fputs(text, f);
        fclose(f);
    } else {
        remove(path);
    }
}

/* --- against the net's own tensors --- */

static float pixel(const struct nets_picture *p, int64_t y, int64_t x, int c)
{
    y = y < p->f.height ? y : p->f.height - 1;
    x = x < p->f.width ? x : p->f.width - 1;
    return (float)p->data[(y * p->f.width + x) * 3 + c] / 255;
}

/* The window's frames, padded, as an input wants them: row-major. */
static void fill_frames(const struct vg_port *port, const struct vgk_tensor *t, const struct nets_picture *window,
                        int n)
{
    for (int k = 0; k < (port->frames ? port->frames : n); k++) {
        struct vgk_tensor f = vg_port_frame(port, t, k);
        for (int64_t i = 0; i < f.dim[1] * f.dim[2] * f.dim[3]; i++) {
            int64_t c = i / (f.dim[2] * f.dim[3]), y = i / f.dim[3] % f.dim[2], x = i % f.dim[3];
            ((float *)f.data)[c * f.stride[1] + y * f.stride[2] + x * f.stride[3]] =
                pixel(&window[port->first + k], y, x, (int)c);
        }
    }
}

static struct vgk_tensor dense(const struct vgk_tensor *like)
{
    struct vgk_tensor t = vgk_tensor_make(VGK_F32, like->rank, like->dim, VGK_ROW_MAJOR);
    t.data = calloc((size_t)vgk_tensor_count(&t) + 1, sizeof(float));
    return t;
}

/* Bytes that are not those of the tensor's values, rounded; values next to a half may go either way. */
static int64_t differing(const struct vg_model *m, const struct vg_net *net, int output, const struct vgk_tensor *t,
                         const struct nets_picture *out, int n)
{
    struct vg_port port;
    int64_t wrong = 0;
    expect(vg_port_of(t, net->values[net->outputs[output]].axis, &m->roles.inputs[m->frame_input].port, &port) &&
           port.frames == n);
    for (int k = 0; k < n; k++) {
        struct vgk_tensor f = vg_port_frame(&port, t, k);
        const struct vgk_frame *p = &out[k].f;
        for (int64_t i = 0; i < (int64_t)p->height * p->width * 3; i++) {
            int64_t y = i / 3 / p->width, x = i / 3 % p->width;
            double v = 255 * (double)((float *)f.data)[i % 3 * f.stride[1] + y * f.stride[2] + x * f.stride[3]];
            v = v < 0 ? 0 : v > 255 ? 255 : v;
            wrong += fabs(v - out[k].data[i]) > 0.5 + 2e-3;
        }
    }
    return wrong;
}

/* The whole frame by vg_run_tile against vg_run_tensors of a second run, window by window. */
static void against_tensors(const char *name, int width, int height, int steps, const float *parameters)
{
    struct vg_model *m = nets_shipped(folder, name);
    struct vgk_error err = {{0}};
    struct nets_how how = {.exact = true};
    struct nets_run r = {.run = NULL}, o = {.run = NULL};
    if (!m)
        return;
    const struct vg_roles *roles = &m->roles;
    enum vgk_status s = nets_open(&r, m, cpu, width, height, &how, &err);
    s = s ? s : nets_open(&o, m, cpu, width, height, &how, &err);
    expectf(!s, "%s: %s", name, err.text);
    if (s) {
        vg_model_unref(&m);
        return;
    }
    const struct vg_plan_info *info = &r.plan.info;
    const struct vg_net *net = nets_net(&o);
    struct clip in = clip_new(VGK_FRAME_PACKED, 12, width, height, true);
    struct clip out = clip_new(VGK_FRAME_PACKED, steps * info->emit, vg_axis_scale(&info->grid->x, width),
                               vg_axis_scale(&info->grid->y, height), false);
    struct vgk_tensor ins[16], outs[16];
    for (int i = 0; i < net->n_inputs; i++)
        ins[i] = dense(&net->values[net->inputs[i]].t);
    for (int i = 0; i < net->n_outputs; i++)
        outs[i] = dense(&net->values[net->outputs[i]].t);
    for (int i = 0; parameters && i < m->summary.n_parameters; i++)
        expect(vg_run_set_parameter(r.run, i, parameters, &err) == VGK_OK);
    for (int i = 0; i < net->n_inputs; i++) {
        const struct vg_parameter *p = m->parameter_of[i] < 0 ? NULL : &m->summary.parameters[m->parameter_of[i]];
        const float *v = parameters ? parameters : p ? p->defaults : NULL;
        int64_t plane = p ? vgk_tensor_count(&ins[i]) / p->count : 1;
        for (int64_t k = 0; p && k < vgk_tensor_count(&ins[i]); k++)
            ((float *)ins[i].data)[k] = v[k / plane];
        if (roles->inputs[i].role == VG_ROLE_TIME)
            *(float *)ins[i].data = 0.5f;
    }
    s = play(r.run, info, &in, steps, &out, &err);
    int64_t wrong = 0;
    for (int k = 0; k < steps && !s; k++) {
        struct nets_picture window[16];
        for (int i = 0; i < info->window; i++)
            window[i] = in.frame[clamp(window_begin(info, k) + i, in.n)];
        for (int i = 0; i < roles->n_states && k > 0; i++) /* before the frames: one may be the frame before */
            if (roles->states[i].output < 0)
                memcpy(ins[roles->states[i].input].data, ins[roles->states[i].source].data,
                       (size_t)vgk_tensor_count(&ins[roles->states[i].input]) * sizeof(float));
        for (int i = 0; i < net->n_inputs; i++)
            if (roles->inputs[i].role == VG_ROLE_FRAME)
                fill_frames(&roles->inputs[i].port, &ins[i], window, info->window);
        for (int i = 0; i < roles->n_states && k == 0; i++)
            if (roles->states[i].output < 0)
                memcpy(ins[roles->states[i].input].data, ins[roles->states[i].source].data,
                       (size_t)vgk_tensor_count(&ins[roles->states[i].input]) * sizeof(float));
        s = vg_run_tensors(o.run, ins, net->n_inputs, outs, net->n_outputs, &err);
        wrong += differing(m, net, m->frame_output, &outs[m->frame_output], &out.frame[k * info->emit], info->emit);
        for (int i = 0; i < roles->n_states; i++)
            if (roles->states[i].output >= 0)
                memcpy(ins[roles->states[i].input].data, outs[roles->states[i].output].data,
                       (size_t)vgk_tensor_count(&ins[roles->states[i].input]) * sizeof(float));
    }
    expectf(!s, "%s: %s", name, err.text);
    expectf(wrong == 0, "%s at %dx%d: %lld bytes are not the net's", name, width, height, (long long)wrong);
    for (int i = 0; i < net->n_inputs; i++)
        free(ins[i].data);
    for (int i = 0; i < net->n_outputs; i++)
        free(outs[i].data);
    clip_free(&in);
    clip_free(&out);
    nets_close(&r);
    nets_close(&o);
    vg_model_unref(&m);
}

static void whole_frames(void)
{
    against_tensors("fastdvd_w5", 44, 40, 6, (float[]){0.1f});
    against_tensors("fastdvd_w5", 43, 37, 2, NULL);
    against_tensors("temporal_attn", 21, 18, 2, NULL);
    against_tensors("convgru", 33, 29, 6, NULL);
    against_tensors("vsr_x2", 33, 30, 6, NULL);
    against_tensors("ifnet", 51, 45, 4, NULL);
    against_tensors("causal3d_full", 31, 26, 2, NULL);
    against_tensors("causal3d_chunk", 31, 26, 5, NULL);
    against_tensors("conv3d_misc", 30, 26, 2, NULL);
    against_tensors("warp16_border", 37, 31, 2, (float[]){0.4f, -0.7f});
    against_tensors("warp16_zeros", 37, 31, 2, (float[]){-0.3f, 0.9f});
    against_tensors("warp20_reflect", 37, 31, 2, (float[]){0.8f, 0.5f});
    against_tensors("unet_gn17", 32, 26, 2, (float[]){5});
    against_tensors("unet_gn21", 31, 25, 2, (float[]){7});
    against_tensors("condin", 32, 30, 1, (float[]){0.2f, 0.3f, 0.1f, 0.4f});
    sidecar("adain", "[vidgen parameter style]\nsize=24;20\ndefault=0.25\n");
    against_tensors("adain", 33, 30, 1, NULL);
    sidecar("adain", NULL);
}

/* --- tiles --- */

struct tally {
    int equal, several, refused;
};

/* A clip in tiles of about this size, or (tile_width 0) in so many bands, against the clip whole, made of the same kind of
 * products. */
static void tile(const char *name, struct vg_model *m, struct vgk_device *device, int width, int height, int tile_width,
                 int tile_height, int steps, enum vgk_frame_layout layout, struct tally *tally)
{
    int chroma = layout == VGK_FRAME_I420 ? 2 : 1;
    struct vg_plan_request request = {.width = width,
                                      .height = height,
                                      .chroma_x = chroma,
                                      .chroma_y = chroma,
                                      .tile_width = tile_width,
                                      .tile_height = tile_width ? tile_height : 0,
                                      .bands = tile_width ? 0 : tile_height,
                                      .overlap_x = -1,
                                      .overlap_y = -1,
                                      .max_bytes = (size_t)1 << 30};
    struct vg_plan *plan = NULL;
    struct vg_run *r = NULL;
    struct nets_run whole = {.run = NULL};
    struct vgk_error err = {{0}};
    enum vgk_status s = vg_plan_make(m, &vgk_cpu, device, &request, &plan, &err);
    if (s) {
        expectf(s == VGK_ERR_INVALID && strstr(err.text, "give"), "%s %dx%d in %dx%d: %s", name, width, height,
                tile_width, tile_height, err.text);
        tally->refused++;
        return;
    }
    const struct vg_plan_info *info = vg_plan_info(plan);
    const struct vg_axis *x = &info->grid->x, *y = &info->grid->y;
    struct nets_how how = {.exact = info->direct};
    size_t before = vgk_cpu.bytes_now(device);
    s = vg_run_open(plan, &r, &err);
    expectf(vgk_cpu.bytes_now(device) - before == info->arena_bytes, "%s: %zu bytes, %zu planned", name,
            vgk_cpu.bytes_now(device) - before, info->arena_bytes);
    s = s ? s : nets_open(&whole, m, device, width, height, &how, &err);
    expectf(!s && info->exact, "%s: %s", name, err.text);
    if (!s) {
        struct clip in = clip_new(layout, 12, width, height, true);
        struct clip a = clip_new(layout, steps * info->emit, vg_axis_scale(x, width), vg_axis_scale(y, height), false);
        struct clip b = clip_new(layout, a.n, vg_axis_scale(x, width), vg_axis_scale(y, height), false);
        s = play(r, info, &in, steps, &a, &err);
        s = s ? s : play(whole.run, &whole.plan.info, &in, steps, &b, &err);
        expectf(!s, "%s: %s", name, err.text);
        int wrong = 0, worst = 0, first = -1;
        for (int k = 0; k < a.n; k++)
            for (size_t i = 0; i < a.frame[k].bytes; i++) {
                int d = abs(a.frame[k].data[i] - b.frame[k].data[i]);
                wrong += d != 0;
                worst = d > worst ? d : worst;
                first = d && first < 0 ? k : first;
            }
        expectf(!wrong, "%s %dx%d (%s) in %dx%d tiles of %dx%d, %d bands, %s: %d bytes differ by up to %d, first in frame %d",
                name, width, height, chroma == 2 ? "I420" : "RGB", x->n, y->n, x->tile, y->tile, info->bands,
                info->direct ? "direct" : "blocks", wrong, worst, first);
        tally->equal += !wrong;
        tally->several += x->n * y->n > 1;
        clip_free(&in);
        clip_free(&a);
        clip_free(&b);
    }
    vg_run_close(&r);
    nets_close(&whole);
    vg_plan_free(&plan);
}

static void tiles(void)
{
    static const char *const names[] = {"fastdvd_w5",   "temporal_attn", "convgru",        "vsr_x2",
                                        "ifnet",        "causal3d_full", "causal3d_chunk", "warp16_border",
                                        "warp16_zeros", "warp20_reflect"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct vg_model *m = nets_shipped(folder, names[i]);
        struct tally t = {0, 0, 0};
        if (!m)
            continue;
        const struct vg_summary *sum = vg_model_summary(m);
        int halo = sum->halo_left + sum->halo_right, align = sum->align_x, more = sum->emit > 1 ? 10 : 30;
        kit_seed(20 + i);
        const int sizes = SANITIZED ? 4 : 22;
        for (int k = 0; k < sizes; k++)
            tile(names[i], m, k % 4 == 3 ? cpu : exact_cpu, 2 * kit_int(halo / 2 + 8, halo / 2 + more) + 1,
                 2 * kit_int(halo / 2 + 8, halo / 2 + more) + 1, halo + kit_int(2 * align, 4 * align + more / 2),
                 halo + kit_int(2 * align, 4 * align + more / 2), sum->n_states ? 6 / sum->emit : 1,
                 k % 2 ? VGK_FRAME_I420 : VGK_FRAME_PACKED, &t);
        printf("%s: %d equal, %d of them in several tiles, %d refused\n", names[i], t.equal, t.several, t.refused);
        expectf(t.equal >= sizes - 2 && t.several >= sizes / 2 - 1, "%s: %d, %d", names[i], t.equal, t.several);
        vg_model_unref(&m);
    }
}

/* Windows and states come and go by rows. */
static void bands(void)
{
    static const char *const names[] = {"fastdvd_w5",    "convgru",        "vsr_x2",       "ifnet",
                                        "causal3d_full", "causal3d_chunk", "warp16_border"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct vg_model *m = nets_shipped(folder, names[i]);
        struct tally t = {0, 0, 0};
        if (!m)
            continue;
        kit_seed(40 + i);
        const int counts = SANITIZED ? 3 : 8;
        for (int k = 0; k < counts; k++)
            tile(names[i], m, k % 2 ? cpu : exact_cpu, 4 * kit_int(9, 14), 4 * kit_int(12, 20), 0, 2 + 2 * k, 5,
                 k % 2 ? VGK_FRAME_I420 : VGK_FRAME_PACKED, &t);
        expectf(t.equal == counts, "%s: %d equal, %d refused", names[i], t.equal, t.refused);
        vg_model_unref(&m);
    }
}

static void fifty_steps(void)
{
    static const char *const names[] = {"convgru", "vsr_x2", "causal3d_chunk"};
    for (int i = 0; i < 3; i++) {
        struct vg_model *m = nets_shipped(folder, names[i]);
        struct tally t = {0, 0, 0};
        if (!m)
            continue;
        int halo = vg_model_summary(m)->halo_left + vg_model_summary(m)->halo_right;
        tile(names[i], m, exact_cpu, 2 * halo + 31, 2 * halo + 23, halo + 12, halo + 14, 50 / vg_model_summary(m)->emit,
             VGK_FRAME_PACKED, &t);
        expect(t.several == 1);
        vg_model_unref(&m);
    }
}

/* --- what the models are --- */

/* ../shared/models/models.md, in its order; halo -1: the whole frame.  Not there: those that are no models of pictures. */
static const struct known {
    const char *name;
    int scale, align, left, right, window, emit, hop, centre, back, ahead, states, parameters;
} known[] = {
    {"johnson", 1, 4, -1, -1, 1, 1, 1, 0, 0, 0, 0, 0},
    {"johnson_deconv", 1, 4, -1, -1, 1, 1, 1, 0, 0, 0, 0, 0},
    {"condin", 1, 2, -1, -1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"srvgg_x2", 2, 1, 6, 6, 1, 1, 1, 0, 0, 0, 0, 0},
    {"rrdb_x4", 4, 1, 19, 19, 1, 1, 1, 0, 0, 0, 0, 0},
    {"unet_gn17", 1, 2, -1, -1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"unet_gn21", 1, 2, -1, -1, 1, 1, 1, 0, 0, 0, 0, 1},
    {"temporal_attn", 1, 1, 1, 1, 8, 8, 8, 0, 7, 7, 0, 0},
    {"fastdvd_w5", 1, 4, 55, 48, 5, 1, 1, 2, 2, 2, 0, 1},
    {"convgru", 1, 1, 4, 4, 1, 1, 1, 0, 0, 0, 1, 0},
    {"vsr_x2", 2, 2, 16, 16, 1, 1, 1, 0, 0, 0, 2, 0},
    {"warp16_border", 1, 1, 6, 6, 1, 1, 1, 0, 0, 0, 0, 1},
    {"warp16_zeros", 1, 1, 6, 6, 1, 1, 1, 0, 0, 0, 0, 1},
    {"warp20_reflect", 1, 1, 6, 6, 1, 1, 1, 0, 0, 0, 0, 1},
    {"ifnet", 1, 8, 38, 24, 2, 1, 1, -1, 0, 1, 0, 0},
    {"causal3d_full", 1, 2, 6, 5, 8, 8, 8, 0, 8, 0, 0, 0},
    /* The graph tells no reach in time where states join it, or sizes do not follow a stride: the whole window. */
    {"causal3d_chunk", 1, 2, 6, 5, 2, 2, 2, 0, 1, 1, 4, 0},
    {"conv3d_misc", 1, 4, -1, -1, 9, 9, 9, 0, 8, 8, 0, 0},
    {"qdq_int8", 1, 1, 4, 4, 1, 1, 1, 0, 0, 0, 0, 0},
    {"fp16_weights", 2, 1, 6, 6, 1, 1, 1, 0, 0, 0, 0, 0},
    {"bf16_weights", 2, 1, 6, 6, 1, 1, 1, 0, 0, 0, 0, 0},
    {"fp16_full", 2, 1, 6, 6, 1, 1, 1, 0, 0, 0, 0, 0},
    {"ext_data", 2, 1, 6, 6, 1, 1, 1, 0, 0, 0, 0, 0},
};

static void check_summary(const struct known *k, const struct vg_model *m)
{
    const struct vg_summary *s = vg_model_summary(m);
    expectf(s->scale_num == k->scale && s->scale_den == 1 && s->align_x == k->align && s->align_y == k->align,
            "%s: %d/%d, align %d %d", k->name, s->scale_num, s->scale_den, s->align_x, s->align_y);
    expectf(s->global == (k->left < 0) && (s->global || (s->halo_left == k->left && s->halo_top == k->left &&
                                                         s->halo_right == k->right && s->halo_bottom == k->right)),
            "%s: halo %d %d %d %d", k->name, s->halo_left, s->halo_top, s->halo_right, s->halo_bottom);
    expectf(s->window == k->window && s->emit == k->emit && s->hop == k->hop && s->centre == k->centre &&
                s->look_back == k->back && s->look_ahead == k->ahead && s->n_states == k->states &&
                s->n_parameters == k->parameters,
            "%s: window %d, emit %d, hop %d, centre %d, back %d, ahead %d, %d states, %d parameters", k->name,
            s->window, s->emit, s->hop, s->centre, s->look_back, s->look_ahead, s->n_states, s->n_parameters);
}

static void summaries(void)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct vg_model *m = nets_shipped(folder, known[i].name);
        if (m)
            check_summary(&known[i], m);
        if (m)
            vg_model_unref(&m);
    }
}

/* States by their names, and by trying sizes, when nobody says what they are. */
static void roles_by_name(void)
{
    static const int which[] = {9, 10, 16};
    for (int i = 0; i < 3; i++) {
        const struct known *k = &known[which[i]];
        sidecar(k->name, "[vidgen]\nstate=\n");
        struct vg_model *m = nets_shipped(folder, k->name);
        if (m) {
            check_summary(k, m);
            for (int s = 0; s < m->roles.n_states; s++) {
                const struct vg_state_role *role = &m->roles.states[s];
                const char *in = m->graph->values[m->graph->inputs[role->input]].name;
                const char *out = role->output < 0 ? "x" : m->graph->values[m->graph->outputs[role->output]].name;
                char want[32];
                size_t n = strcspn(in, "_") % 16;
                memcpy(want, in, n);
                strcpy(want + n, "_out");
                expectf(!strcmp(out, strcmp(in, "prev") ? want : "x") && role->first == !strcmp(in, "prev"),
                        "%s: %s from %s", k->name, in, out);
                expectf(m->roles.inputs[role->input].size.den[VG_X] == (strcmp(in, "c2_in") ? 1 : 2), "%s", in);
            }
            vg_model_unref(&m);
        }
        sidecar(k->name, NULL);
    }
}

static void refuse(const char *name, const char *info, const char *text)
{
    char path[1200];
    struct vg_model *m = NULL;
    struct vgk_error err = {{0}};
    snprintf(path, sizeof path, "%s/%s.onnx", folder, name);
    sidecar(name, info);
    enum vgk_status s = vg_model_load(path, &m, &err);
    expectf((s == VGK_ERR_INVALID || s == VGK_ERR_UNSUPPORTED) && !m && strstr(err.text, text), "%s: %s", name,
            err.text);
    sidecar(name, NULL);
}

static void refusals(void)
{
    refuse("memblock_x4", NULL, "works on latents");
    refuse("dit17", NULL, "works on latents");
    refuse("wonly_int8_int4", NULL, "is no image model");
    refuse("adain", NULL, "[vidgen parameter style] size=WIDTH;HEIGHT");
    refuse("convgru", "[vidgen]\nstate=h_in:nobody\n", "expected INPUT:OUTPUT");
    refuse("convgru", "[vidgen]\nstate=x\n", "expected INPUT:OUTPUT");
    refuse("convgru", "[vidgen]\nh_in-init=random\n", "expected zero or first");
    refuse("convgru", "[vidgen]\nh_in-scale=1/2\n", "");
    refuse("convgru", "[vidgen]\nh_in-scale=half\n", "expected a scale");
    refuse("fastdvd_w5", "[vidgen]\nwindow=4\n", "its inputs take 5 frames");
    refuse("fastdvd_w5", "[vidgen]\ncentre=5\n", "centre 5");
    refuse("fastdvd_w5", "[vidgen]\nhop=1.5\n", "expected a whole number");
    refuse("fastdvd_w5", "[vidgen]\nout-frames=2\n", "its output has 1");
    refuse("fastdvd_w5", "[vidgen]\ninput=noise\n", "is no image model");
    refuse("ifnet", "[vidgen]\ninput=x0;x2\n", "names the input 'x2'");
}

/* --- requests --- */

static enum vgk_status ask(const char *name, int window, int hop, int emit, size_t max_bytes, struct vg_plan_info *info,
                           struct vgk_error *err)
{
    struct vg_model *m = nets_shipped(folder, name);
    struct vg_plan *p = NULL;
    struct vg_plan_request r = {.width = 61,
                                .height = 47,
                                .overlap_x = -1,
                                .overlap_y = -1,
                                .window = window,
                                .hop = hop,
                                .emit = emit,
                                .max_bytes = max_bytes};
    enum vgk_status s = m ? vg_plan_make(m, &vgk_cpu, exact_cpu, &r, &p, err) : VGK_ERR_FILE;
    if (!s && info)
        *info = *vg_plan_info(p);
    vg_plan_free(&p);
    if (m)
        vg_model_unref(&m);
    return s;
}

static void requests(void)
{
    struct vg_plan_info i;
    struct vgk_error err;
    const size_t room = (size_t)1 << 30;
    expect(!ask("causal3d_full", 5, 0, 0, room, &i, &err) && i.window == 5 && i.emit == 5 && i.hop == 5 &&
           i.centre == 0);
    expect(!ask("causal3d_full", 12, 4, 0, room, &i, &err) && i.window == 12 && i.emit == 12 && i.hop == 4);
    expect(!ask("fastdvd_w5", 0, 0, 0, room, &i, &err) && i.window == 5 && i.emit == 1 && i.hop == 1 && i.centre == 2);
    expect(!ask("ifnet", 0, 0, 3, room, &i, &err) && i.window == 2 && i.emit == 3 && i.hop == 1 && i.centre == -1);
    expect(ask("fastdvd_w5", 4, 0, 0, room, NULL, &err) == VGK_ERR_INVALID && strstr(err.text, "takes 5"));
    expect(ask("fastdvd_w5", 0, 3, 0, room, NULL, &err) == VGK_ERR_INVALID && strstr(err.text, "1 at most"));
    expect(ask("fastdvd_w5", 0, 0, 2, room, NULL, &err) == VGK_ERR_INVALID && strstr(err.text, "gives 1"));
    expect(ask("causal3d_full", 4, 5, 0, room, NULL, &err) == VGK_ERR_INVALID && strstr(err.text, "hop"));
    expect(ask("conv3d_misc", 8, 0, 0, room, NULL, &err) != VGK_OK); /* odd ones only */
    expect(!ask("conv3d_misc", 5, 0, 0, room, &i, &err) && i.emit == 5);
    /* The least budget that is told is the least that does; the states count. */
    expect(ask("convgru", 0, 0, 0, 1, NULL, &err) == VGK_ERR_NOMEM);
    const char *at = strstr(err.text, "needs at least ");
    size_t least = at ? strtoull(at + strlen("needs at least "), NULL, 10) : 0;
    expectf(least > 0 && !ask("convgru", 0, 0, 0, least, &i, &err) && i.arena_bytes == least &&
                i.state_bytes == 2 * vgk_round_up(61 * 47 * 8 * 4, VGK_ALIGN),
            "%zu: %s", least, err.text);
    expect(ask("convgru", 0, 0, 0, least - 1, NULL, &err) == VGK_ERR_NOMEM);
}

/* --- runs --- */

/* A plan and its run, whole or in tiles of a size. */
struct player {
    struct vg_model *m;
    struct vg_plan *plan;
    struct vg_run *run;
};

static bool open_player(struct player *p, const char *name, int width, int height, int tile_size, int window, int emit)
{
    struct vg_plan_request r = {.width = width,
                                .height = height,
                                .tile_width = tile_size,
                                .tile_height = tile_size,
                                .overlap_x = -1,
                                .overlap_y = -1,
                                .window = window,
                                .emit = emit,
                                .max_bytes = (size_t)1 << 30};
    struct vgk_error err = {{0}};
    *p = (struct player){nets_shipped(folder, name), NULL, NULL};
    enum vgk_status s = p->m ? vg_plan_make(p->m, &vgk_cpu, exact_cpu, &r, &p->plan, &err) : VGK_ERR_FILE;
    s = s ? s : vg_run_open(p->plan, &p->run, &err);
    expectf(!s, "%s: %s", name, err.text);
    return !s;
}

static void close_player(struct player *p)
{
    vg_run_close(&p->run);
    vg_plan_free(&p->plan);
    if (p->m)
        vg_model_unref(&p->m);
}

/* Twelve frames at once, and in chunks of 1, 2, 3 and 4, in tiles too: the same. */
static void chunks(void)
{
    enum { N = 12, W = 37, H = 30 };
    struct vgk_error err = {{0}};
    struct player whole, part;
    kit_seed(5);
    struct clip in = clip_new(VGK_FRAME_PACKED, N, W, H, true), a = clip_new(VGK_FRAME_PACKED, N, W, H, false),
                b = clip_new(VGK_FRAME_PACKED, N, W, H, false);
    if (open_player(&whole, "causal3d_full", W, H, 0, N, 0))
        expect(play(whole.run, vg_plan_info(whole.plan), &in, 1, &a, &err) == VGK_OK);
    for (int chunk = 1; chunk <= 4; chunk++) {
        int worst = 0;
        if (open_player(&part, "causal3d_chunk", W, H, chunk % 2 ? 0 : 22, chunk, 0))
            expectf(play(part.run, vg_plan_info(part.plan), &in, N / chunk, &b, &err) == VGK_OK, "%s", err.text);
        int64_t off = bytes_off(&a, &b, N, &worst);
        expectf(off == 0, "chunks of %d: %lld bytes differ by up to %d", chunk, (long long)off, worst);
        close_player(&part);
    }
    close_player(&whole);
    clip_free(&in);
    clip_free(&a);
    clip_free(&b);
}

/* Three frames between two: those of three runs of the net that are told the times. */
static void between(void)
{
    enum { W = 43, H = 33 };
    struct vgk_error err = {{0}};
    struct player p;
    struct nets_run o = {.run = NULL};
    struct clip in = clip_new(VGK_FRAME_PACKED, 2, W, H, true), out = clip_new(VGK_FRAME_PACKED, 3, W, H, false);
    if (open_player(&p, "ifnet", W, H, 0, 0, 3) &&
        !nets_open(&o, p.m, cpu, W, H, &(struct nets_how){.exact = true}, &err)) {
        const struct vg_net *net = nets_net(&o);
        struct vgk_tensor ins[3], result = dense(&net->values[net->outputs[0]].t);
        expect(play(p.run, vg_plan_info(p.plan), &in, 1, &out, &err) == VGK_OK);
        for (int i = 0; i < 3; i++)
            ins[i] = dense(&net->values[net->inputs[i]].t);
        for (int i = 0; i < 2; i++)
            fill_frames(&p.m->roles.inputs[i].port, &ins[i], in.frame, 2);
        for (int k = 0; k < 3; k++) {
            *(float *)ins[2].data = (float)(k + 1) / 4;
            expect(vg_run_tensors(o.run, ins, 3, &result, 1, &err) == VGK_OK);
            expectf(differing(p.m, net, 0, &result, &out.frame[k], 1) == 0, "frame %d of 3", k);
            expect(differing(p.m, net, 0, &result, &out.frame[(k + 1) % 3], 1) > W * H / 10); /* the times matter */
        }
        for (int i = 0; i < 3; i++)
            free(ins[i].data);
        free(result.data);
        nets_close(&o);
    }
    close_player(&p);
    clip_free(&in);
    clip_free(&out);
}

/* After a reset a run knows nothing of what was before; without one it does; and it allocates nothing. */
static void resets(void)
{
    static const char *const names[] = {"convgru", "vsr_x2", "causal3d_chunk"};
    enum { W = 41, H = 37, N = 3 };
    for (int i = 0; i < 3; i++) {
        struct player p;
        struct vgk_error err = {{0}};
        struct clip in = clip_new(VGK_FRAME_PACKED, 12, W, H, true);
        if (open_player(&p, names[i], W, H, 0, 0, 0)) {
            const struct vg_plan_info *info = vg_plan_info(p.plan);
            int n = N * info->emit, worst;
            struct clip out[3];
            for (int k = 0; k < 3; k++)
                out[k] = clip_new(VGK_FRAME_PACKED, n, vg_axis_scale(&info->grid->x, W),
                                  vg_axis_scale(&info->grid->y, H), false);
            expect(!play(p.run, info, &in, N, &out[0], &err) && !play(p.run, info, &in, N, &out[1], &err));
            expectf(bytes_off(&out[0], &out[1], n, &worst) == 0, "%s: remembers across a reset", names[i]);
            struct vgk_frame window[16], emitted[16];
            for (int k = 0; k < 16; k++) {
                window[k] = in.frame[k % info->window].f;
                emitted[k] = out[2].frame[k % info->emit].f;
            }
            size_t peak = vgk_cpu.bytes_peak(exact_cpu);
            fm_fail_at(1); /* the first allocation would fail, and be told */
            enum vgk_status s =
                vg_run_tile(p.run, 0, 0, window, &(struct vgk_colour){.full_range = true}, emitted, &err);
            vg_run_next(p.run);
            expectf(!fm_stop() && !s && vgk_cpu.bytes_peak(exact_cpu) == peak, "%s: allocates", names[i]);
            expectf(bytes_off(&out[0], &out[2], info->emit, &worst) > W * H / 10, "%s: forgets", names[i]);
            for (int k = 0; k < 3; k++)
                clip_free(&out[k]);
        }
        close_player(&p);
        clip_free(&in);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3 || !make_cases(argv[1], argv[2], "make_fixtures.py", "time-fixtures", folder, sizeof folder)) {
        if (kit_failures)
            return kit_done();
        kit_skip("needs a Python with onnx, onnxruntime and numpy");
    }
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &cpu, NULL);
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1, .exact_products = true}, &exact_cpu, NULL);
    run(summaries);
    run(roles_by_name);
    run(refusals);
    run(requests);
    run(whole_frames);
    run(chunks);
    run(between);
    run(resets);
    run(tiles);
    run(bands);
    run(fifty_steps);
    vgk_cpu.close(&cpu);
    vgk_cpu.close(&exact_cpu);
    return kit_done();
}
