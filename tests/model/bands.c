/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bands: a net run a band of rows at a time equals the net run whole, to the last bit; and so it does with a part of its
 * pictures, or its weights, in host memory.
 *
 *     test-bands MODELS [SEED [COUNT]]     only the random net of this seed, printed; or COUNT random nets */
#include "kit.h"
#include "nets.h"

static const char *models_dir;
static struct vgk_device *cpu;

#define TALL 10000 /* rows of frames of which a band carries little */

/* --- bands against the whole --- */

static size_t count_bytes(const struct vgk_tensor *t) { return (size_t)vgk_tensor_count(t) * sizeof(float); }

/* The place of the first difference, for messages. */
static long first_difference(const void *a, const void *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((const uint8_t *)a)[i] != ((const uint8_t *)b)[i])
            return (long)i;
    return -1;
}

struct outcome {
    struct vgk_tensor tensor;
    struct nets_picture rgb, yuv;
};

static enum vgk_status evaluate(struct nets_run *r, const struct vgk_tensor *in, const struct nets_picture *rgb,
                                const struct nets_picture *yuv, struct outcome *o, struct vgk_error *err)
{
    const struct vg_grid *g = &r->plan.grid;
    int w = vg_axis_scale(&g->x, g->x.frame), h = vg_axis_scale(&g->y, g->y.frame);
    *o = (struct outcome){nets_output(r), nets_picture(VGK_FRAME_PACKED, w, h, false),
                          nets_picture(VGK_FRAME_I420, w, h, false)};
    enum vgk_status s = nets_tensors(r, in, &o->tensor, err);
    s = s ? s : nets_frame(r->run, g, rgb, &o->rgb, err);
    return s ? s : nets_frame(r->run, g, yuv, &o->yuv, err);
}

static void free_outcome(struct outcome *o)
{
    free(o->tensor.data);
    free(o->rgb.data);
    free(o->yuv.data);
}

struct tally {
    int compared, refused, passes, spilled, streamed;
};

/* Whole, then in `tries` numbers of bands with and without buffers that are computed again. */
static void compare(const char *name, struct vg_model *m, int width, int height, int tries, bool exact,
                    struct tally *tally)
{
    struct nets_run whole = {.run = NULL};
    struct vgk_error err = {{0}};
    struct nets_how how = {.bands = 1, .exact = exact, .rows = kit_int(0, 1) ? TALL : 0};
    if (nets_open(&whole, m, cpu, width, height, &how, &err) != VGK_OK) {
        expectf(strstr(err.text, "size") || strstr(err.text, "pad"), "%s %dx%d: %s", name, width, height, err.text);
        tally->refused++;
        return;
    }
    struct vgk_tensor in = nets_input(&whole);
    struct nets_picture rgb = nets_picture(VGK_FRAME_PACKED, width, height, true);
    struct nets_picture yuv = nets_picture(VGK_FRAME_I420, width, height, true);
    struct outcome want, got;
    enum vgk_status s = evaluate(&whole, &in, &rgb, &yuv, &want, &err);
    expectf(s == VGK_OK, "%s: %s", name, err.text);
    int nb = nets_net(&whole)->n_buffers;
    bool *recompute = calloc(2 * (size_t)nb + 2, sizeof *recompute), *spill = recompute + nb + 1;
    for (int i = 0; i < tries && !s; i++) {
        struct nets_run bands = {.run = NULL};
        how.bands = i == 2 ? 1 : kit_int(2, height > 40 ? 20 : 8);
        how.recompute = i % 2 ? recompute : NULL;
        how.spill = i ? spill : NULL;
        how.stream = i == 2 || kit_int(0, 2) == 0;
        for (int b = 0; b < nb; b++) {
            recompute[b] = kit_int(0, 2) == 0;
            spill[b] = kit_int(0, 2) > 0;
        }
        size_t before = vgk_cpu.bytes_now(cpu);
        err.text[0] = 0;
        s = nets_open(&bands, m, cpu, width, height, &how, &err);
        if (s == VGK_ERR_UNSUPPORTED) {
            expectf(*err.text, "%s", name);
            tally->refused++;
            break;
        }
        expectf(s == VGK_OK, "%s %dx%d, %d bands: %s", name, width, height, how.bands, err.text);
        if (s)
            break;
        const struct vg_program *program = bands.plan.program;
        expectf(vgk_cpu.bytes_now(cpu) - before == vg_program_bytes(program), "%s: %zu bytes taken, %zu planned", name,
                vgk_cpu.bytes_now(cpu) - before, vg_program_bytes(program));
        expectf(!how.stream || !program->host || program->moved, "%s", name);
        tally->spilled += program->n_spilled > 0;
        tally->streamed += program->streams && program->host;
        s = evaluate(&bands, &in, &rgb, &yuv, &got, &err);
        expectf(s == VGK_OK, "%s %dx%d, %d bands: %s", name, width, height, how.bands, err.text);
        long t = first_difference(want.tensor.data, got.tensor.data, count_bytes(&want.tensor));
        long a = first_difference(want.rgb.data, got.rgb.data, want.rgb.bytes);
        long b = first_difference(want.yuv.data, got.yuv.data, want.yuv.bytes);
        expectf(t < 0 && a < 0 && b < 0, "%s %dx%d, %d bands, %s, %d spilled%s, %d passes: tensor at %ld, RGB at %ld, "
                "I420 at %ld", name, width, height, how.bands, how.recompute ? "recompute" : "keep", program->n_spilled,
                how.stream ? ", streamed" : "", program->levels, t, a, b);
        tally->compared++;
        tally->passes += bands.plan.program->levels > 1;
        free_outcome(&got);
        nets_close(&bands);
    }
    free(recompute);
    free_outcome(&want);
    free(in.data);
    free(rgb.data);
    free(yuv.data);
    nets_close(&whole);
}

static void print_net(struct vg_model *m)
{
    struct vg_net *net = NULL;
    if (vg_model_bind(m, 64, 64, 0, true, VG_NORM_OWN, &net, NULL))
        return;
    char *text = vg_net_text(net);
    printf("%s", text);
    free(text);
    vg_net_free(&net);
}

static int only_seed = -1, n_seeds = 200;

static void random_nets(void)
{
    struct tally tally = {0};
    int loaded = 0;
    for (int seed = only_seed < 0 ? 1 : only_seed; seed <= (only_seed < 0 ? n_seeds : only_seed); seed++) {
        struct vgk_error err = {{0}};
        char name[32];
        struct vg_model *m = nets_random(seed, true, &err);
        expectf(m, "seed %d: %s", seed, err.text);
        if (!m)
            continue;
        loaded++;
        snprintf(name, sizeof name, "seed %d", seed);
        if (only_seed >= 0)
            print_net(m);
        compare(name, m, kit_int(17, 70), kit_int(17, 90), 3, kit_int(0, 2) == 0, &tally);
        vg_model_unref(&m);
    }
    printf("%d nets, %d runs compared, %d of them in several passes, %d with pictures and %d with weights in host memory, %d "
           "refused\n", loaded, tally.compared, tally.passes, tally.spilled, tally.streamed, tally.refused);
    if (only_seed < 0)
        expectf(tally.compared > n_seeds && tally.spilled > n_seeds / 5 && tally.streamed > n_seeds / 2,
                "too few of the nets can run so");
}

/* --- nets that are known --- */

static void shipped(void)
{
    static const char *const names[] = {"style3", "upscale2x"};
    struct tally tally = {0};
    kit_seed(7);
    for (int i = 0; i < 2; i++) {
        struct vg_model *m = nets_shipped(models_dir, names[i]);
        for (int k = 0; m && k < 2; k++)
            compare(names[i], m, kit_int(40, 90), kit_int(100, 130), 2, k, &tally);
        if (m)
            vg_model_unref(&m);
    }
    expectf(tally.compared == 8 && !tally.refused, "%d compared, %d refused", tally.compared, tally.refused);
}

/* Opens `model` whole and in 4 bands: the status of the latter, and how many of its ops run over the whole frame. */
static enum vgk_status in_bands(struct vg_model *m, struct vgk_error *err)
{
    struct nets_run r = {.run = NULL};
    struct nets_how how = {.bands = 4};
    enum vgk_status s = nets_open(&r, m, cpu, 64, 64, &how, err);
    if (!s)
        nets_close(&r);
    return s;
}

/* A kernel whose rows would depend on where a band ends, or that reads rows which bands do not have, works as one piece
 * between two levels; and another output is one more that is written. */
static void pieces(void)
{
    struct vgk_error err = {{0}};
    struct nets n;
    struct tally tally = {0};
    for (int kind = 0; kind < 4; kind++) {
        kit_seed(5);
        nets_begin(&n, 3);
        int x = nets_conv(&n, 0, (struct nets_conv){.out = 8, .kernel = 3});
        x = kind == 0 ? nets_deconv(&n, nets_pool(&n, x, "MaxPool"), 8)
            : kind == 3 ? nets_unary(&n, x, "Tanh")
            : kind == 1 ? nets_resize(&n, nets_pool(&n, x, "AveragePool"), 2, 1, "cubic", "half_pixel")
                        : nets_binary(&n, "Mul", x, nets_mean(&n, nets_norm(&n, x, 4)));
        if (kind == 3)
            nets_also(&n, x);
        struct vg_model *m = nets_end(&n, nets_conv(&n, x, (struct nets_conv){.out = 3, .kernel = 3}), &err);
        expectf(m, "%s", err.text);
        if (!m)
            continue;
        compare("pieces", m, 61, 67, 4, false, &tally);
        vg_model_unref(&m);
    }
    expectf(tally.compared == 16, "%d", tally.compared);
}

/* Each layer's blocks begin a row above those of the one before, so that it leaves to the next band what its own kernel
 * reaches over, two rows, and no block; not where the row of blocks more would be much of the frame. */
static void carried(void)
{
    struct vgk_error err = {{0}};
    struct nets n;
    nets_begin(&n, 3);
    int x = nets_conv(&n, 0, (struct nets_conv){.out = 16, .kernel = 5});
    for (int i = 0; i < 7; i++)
        x = nets_conv(&n, x, (struct nets_conv){.out = 16, .kernel = 3});
    struct vg_model *m = nets_end(&n, nets_conv(&n, x, (struct nets_conv){.out = 3, .kernel = 3}), &err);
    expectf(m, "%s", err.text);
    for (int tall = 0; tall < 2 && m; tall++) {
        struct nets_run r = {.run = NULL};
        struct nets_how how = {.bands = 2, .rows = tall ? TALL : 0};
        expectf(nets_open(&r, m, cpu, 32, 96, &how, &err) == VGK_OK, "%s", err.text);
        int layer = 0, few = 0, many = 0;
        for (int i = 0; i < r.plan.program->n_steps; i++) {
            const struct vg_step *s = &r.plan.program->steps[i];
            if (s->type == VG_CALL_OP && s->op.kind == VGK_OP_CONV && s->out.t.dim[1] == 16 && layer < 8) {
                expectf(s->op.p.conv.above == (tall ? layer % 6 : 0), "layer %d: %d", layer, s->op.p.conv.above);
                layer++;
            }
            if (s->type != VG_CALL_SAVE || s->in[0].t.dim[0] % (32 * 16 * 4))
                continue;
            int64_t rows = s->in[0].t.dim[0] / (32 * 16 * 4);
            few += rows == 2;
            many += rows >= 7;
        }
        expectf(layer == 8 && (tall ? few >= 7 && many <= 2 : !few && many >= 7), "%d layers, %d, %d", layer, few, many);
        nets_close(&r);
    }
    if (m)
        vg_model_unref(&m);
}

/* What comes in goes out: it would have to be kept whole. */
static void refused(void)
{
    struct vgk_error err = {{0}};
    struct nets n;
    nets_begin(&n, 3);
    int x = nets_conv(&n, 0, (struct nets_conv){.out = 3, .kernel = 3});
    nets_also(&n, 0);
    struct vg_model *m = nets_end(&n, nets_conv(&n, x, (struct nets_conv){.out = 3, .kernel = 3}), &err);
    expectf(m, "%s", err.text);
    if (!m)
        return;
    expect(in_bands(m, &err) == VGK_ERR_UNSUPPORTED);
    expectf(strstr(err.text, "none of the inputs"), "%s", err.text);
    vg_model_unref(&m);
}

int main(int argc, char **argv)
{
    models_dir = argc > 1 ? argv[1] : "pipelines/models";
    if (argc > 2)
        only_seed = atoi(argv[2]);
    if (argc > 3) {
        n_seeds = atoi(argv[3]);
        only_seed = -1;
    }
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &cpu, NULL);
    run(random_nets);
    if (only_seed < 0) {
        run(shipped);
        run(pieces);
        run(carried);
        run(refused);
    }
    vgk_cpu.close(&cpu);
    return kit_done();
}
