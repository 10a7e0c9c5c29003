/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs: nothing is allocated once they are open, parameters take effect at the next tile, threads and neighbours change
 * nothing, and memory that cannot be had is told and nothing of it lost. */
#include "failing_malloc.h"
#include "kit.h"
#include "nets.h"

static const char *models_dir;

static enum vg_norm_mode norm_mode; /* of plans */

static enum vgk_status plan(struct vg_model *m, struct vgk_device *cpu, int width, int height, int tile, size_t max_bytes,
                            struct vg_plan **p, struct vgk_error *err)
{
    struct vg_plan_request r = {.width = width, .height = height, .tile_width = tile, .tile_height = tile,
                                .overlap_x = -1, .overlap_y = -1, .max_bytes = max_bytes, .norm_mode = norm_mode,
                                .norm_frames = 3, .norm_errors = norm_mode != VG_NORM_EXACT};
    *p = NULL;
    return vg_plan_make(m, &vgk_cpu, cpu, &r, p, err);
}

static struct nets_picture result_of(const struct vg_plan *p, enum vgk_frame_layout layout)
{
    const struct vg_grid *g = vg_plan_info(p)->grid;
    return nets_picture(layout, vg_axis_scale(&g->x, g->x.frame), vg_axis_scale(&g->y, g->y.frame), false);
}

/* --- memory while running --- */

/* A model with everything: norms of the whole frame, a parameter, a residual.  Files are made before anything fails. */
static struct vg_model *everything(struct vgk_error *err)
{
    struct nets n;
    kit_seed(3);
    nets_begin(&n, 3);
    int a = nets_conv(&n, 0, (struct nets_conv){.out = 8, .kernel = 3, .pad = NETS_PAD_REFLECT});
    int b = nets_unary(&n, nets_norm(&n, nets_conv(&n, a, (struct nets_conv){.out = 8, .kernel = 3}), 0), "Relu");
    b = nets_binary(&n, "Mul", nets_binary(&n, "Add", a, b), nets_parameter(&n, "strength", 8));
    return nets_end(&n, nets_conv(&n, b, (struct nets_conv){.out = 3, .kernel = 3}), err);
}

static void allocates_nothing(void)
{
    struct vgk_error err = {{0}};
    struct vgk_device *cpu = NULL;
    vgk_cpu.open(&(struct vgk_device_options){.threads = 2}, &cpu, &err);
    static const struct {
        const char *name;
        int tile;
        size_t max_bytes;
    } cases[] = {{"style3", 0, 1 << 30},    {"style3", 112, 1 << 30},   {"upscale2x", 0, 1 << 30},
               {"upscale2x", 0, 3 << 20}, {"upscale2x", 0, 200 << 10}, {NULL, 0, 357 << 10}};
    bool bands = false, spilled = false, streams = false;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vg_model *m = cases[i].name ? nets_shipped(models_dir, cases[i].name) : everything(&err);
        struct vg_plan *p = NULL;
        struct vg_run *r = NULL;
        if (!m || plan(m, cpu, 120, 130, cases[i].tile, cases[i].max_bytes, &p, &err) || vg_run_open(p, &r, &err)) {
            expectf(0, "case %zu: %s", i, err.text);
            continue;
        }
        const struct vg_grid *g = vg_plan_info(p)->grid;
        bands |= vg_plan_info(p)->bands > 1;
        spilled |= vg_plan_info(p)->n_spilled > 0;
        streams |= vg_plan_info(p)->streams;
        struct nets_picture in = nets_picture(VGK_FRAME_I420, g->x.tile, g->y.tile, true);
        struct nets_picture out = nets_picture(VGK_FRAME_I420, vg_axis_scale(&g->x, g->x.tile),
                                               vg_axis_scale(&g->y, g->y.tile), false);
        struct vgk_colour colour = nets_colour(VGK_FRAME_I420);
        size_t peak = vgk_cpu.bytes_peak(cpu);
        float weights[8] = {1}; /* as many as any of them takes */
        fm_fail_at(1); /* the first allocation would fail, and be told */
        enum vgk_status s = VGK_OK;
        for (int frame = 0; frame < 20 && !s; frame++) {
            if (frame % 5 == 4 && vg_model_summary(m)->n_parameters)
                s = vg_run_set_parameter(r, 0, weights, &err);
            s = s ? s : vg_run_tile(r, 0, 0, &in.f, &colour, &out.f, &err);
        }
        expectf(!fm_stop(), "case %zu: allocates while it runs", i);
        expectf(s == VGK_OK, "case %zu: %s", i, err.text);
        expect(vgk_cpu.bytes_peak(cpu) == peak);
        free(in.data);
        free(out.data);
        vg_run_close(&r);
        vg_plan_free(&p);
        vg_model_unref(&m);
    }
    expect(bands && spilled && streams);
    vgk_cpu.close(&cpu);
}

/* Nor do norm modes, while they measure, compare, go over to constants, and take new parameters. */
static void norm_modes_allocate_nothing(void)
{
    struct vgk_error err = {{0}};
    struct vgk_device *cpu = NULL;
    vgk_cpu.open(&(struct vgk_device_options){.threads = 2}, &cpu, &err);
    struct vg_model *m = everything(&err);
    for (norm_mode = VG_NORM_PREVIOUS; m && norm_mode <= VG_NORM_THUMBNAIL; norm_mode++) {
        struct vg_plan *p = NULL;
        struct vg_run *r = NULL;
        if (plan(m, cpu, 120, 130, 0, 1 << 30, &p, &err) || vg_run_open(p, &r, &err)) {
            expectf(0, "%s: %s", vg_norm_mode_name(norm_mode), err.text);
            continue;
        }
        struct nets_picture in = nets_picture(VGK_FRAME_I420, 120, 130, true), out = in;
        out = nets_picture(VGK_FRAME_I420, 120, 130, false);
        struct vgk_colour colour = nets_colour(VGK_FRAME_I420);
        float strength[8] = {1, 0};
        fm_fail_at(1);
        enum vgk_status s = VGK_OK;
        for (int frame = 0; frame < 20 && !s; frame++) {
            strength[1] = frame > 12;
            s = vg_run_set_parameter(r, 0, strength, &err);
            s = s ? s : vg_run_begin(r, &in.f, &colour, frame % 3 ? NULL : &out.f, &err);
            s = s ? s : vg_run_tile(r, 0, 0, &in.f, &colour, &out.f, &err);
        }
        expectf(!fm_stop() && s == VGK_OK, "%s: allocates while it runs: %s", vg_norm_mode_name(norm_mode), err.text);
        struct vg_run_info info;
        vg_run_info(r, &info);
        expect(info.errors_frames > 2 && info.frozen == (norm_mode == VG_NORM_FROZEN));
        free(in.data);
        free(out.data);
        vg_run_close(&r);
        vg_plan_free(&p);
    }
    norm_mode = VG_NORM_EXACT;
    if (m)
        vg_model_unref(&m);
    vgk_cpu.close(&cpu);
}

/* Plan and open, whole and in bands, with every allocation failing once. */
static enum vgk_status plan_and_open(struct vg_model *m, struct vgk_device *cpu, int tile, size_t max_bytes,
                                     struct vgk_error *err)
{
    struct vg_plan *p = NULL;
    struct vg_run *r = NULL;
    enum vgk_status s = plan(m, cpu, 60, 70, tile, max_bytes, &p, err);
    s = s ? s : vg_run_open(p, &r, err);
    expect(!s == (p && r) && (!s || !r));
    vg_run_close(&r);
    vg_plan_free(&p);
    return s;
}

static void every_allocation(void)
{
    struct vgk_error err = {{0}};
    struct vgk_device *cpu = NULL;
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &cpu, &err);
    long tries = 0;
    static const char *const files[] = {"style3", "upscale2x"};
    for (int i = 0; i < 2; i++) { /* loading */
        char path[1024];
        snprintf(path, sizeof path, "%s/%s.onnx", models_dir, files[i]);
        long live = fm_live();
        for (long n = 1;; n += n < 500 ? 1 : 13, tries++) {
            struct vg_model *m = NULL;
            fm_fail_at(n);
            enum vgk_status s = vg_model_load(path, &m, &err);
            bool failed = fm_stop();
            expectf(!failed ? s == VGK_OK : s == VGK_ERR_NOMEM && !m, "%s, allocation %ld: %s, %s", files[i], n,
                    vgk_status_string(s), err.text);
            if (m)
                vg_model_unref(&m);
            expectf(fm_live() == live, "%s, allocation %ld: %ld blocks lost", files[i], n, fm_live() - live);
            if (!failed)
                break;
        }
    }
    struct vg_model *models[] = {everything(&err), nets_shipped(models_dir, "upscale2x")};
    /* Planning and opening: whole, in tiles, in bands; with pictures in host memory, and weights. */
    static const struct {
        int tile;
        size_t max_bytes;
    } ways[] = {{0, 1 << 30}, {48, 1 << 30}, {0, 500 << 10}, {0, 260 << 10}};
    for (int i = 0; i < 11; i++) { /* in the end in the other norm modes */
        struct vg_model *m = models[i < 8 ? i % 2 : 0];
        long live = fm_live();
        norm_mode = i < 8 ? VG_NORM_EXACT : i - 8 + VG_NORM_PREVIOUS;
        for (long n = 1; m; n += n < 600 ? 1 : 17, tries++) {
            fm_fail_at(n);
            enum vgk_status s = plan_and_open(m, cpu, ways[i < 8 ? i / 2 : 0].tile, ways[i < 8 ? i / 2 : 0].max_bytes, &err);
            bool failed = fm_stop();
            expectf(!failed ? s == VGK_OK : s == VGK_ERR_NOMEM, "case %d, allocation %ld: %s, %s", i, n,
                    vgk_status_string(s), err.text);
            expectf(fm_live() == live, "case %d, allocation %ld: %ld blocks lost", i, n, fm_live() - live);
            if (!failed)
                break;
        }
    }
    norm_mode = VG_NORM_EXACT;
    for (int i = 0; i < 2; i++)
        if (models[i])
            vg_model_unref(&models[i]);
    printf("%ld failed allocations\n", tries);
    vgk_cpu.close(&cpu);
}

/* --- what a run depends on --- */

static void parameters(void)
{
    struct vgk_error err = {{0}};
    struct vgk_device *cpu = NULL;
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &cpu, &err);
    struct vg_model *m = nets_shipped(models_dir, "style3");
    struct vg_plan *p = NULL;
    struct vg_run *r = NULL;
    if (!m || plan(m, cpu, 64, 48, 0, 1 << 30, &p, &err) || vg_run_open(p, &r, &err)) {
        expectf(0, "%s", err.text);
        return;
    }
    const struct vg_parameter *parameter = &vg_model_summary(m)->parameters[0];
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, 64, 48, true), out[4];
    float other[3] = {0, 0, 1};
    const float *values[] = {NULL, other, parameter->defaults, other}; /* NULL: as it opened */
    for (int i = 0; i < 4; i++) {
        out[i] = result_of(p, VGK_FRAME_PACKED);
        if (values[i])
            expectf(vg_run_set_parameter(r, 0, values[i], &err) == VGK_OK, "%s", err.text);
        expectf(nets_frame(r, vg_plan_info(p)->grid, &in, &out[i], &err) == VGK_OK, "%s", err.text);
    }
    expect(memcmp(out[0].data, out[1].data, out[0].bytes));
    expect(!memcmp(out[0].data, out[2].data, out[0].bytes));
    expect(!memcmp(out[1].data, out[3].data, out[0].bytes));
    expect(vg_run_set_parameter(r, 5, other, &err) == VGK_ERR_INVALID);
    for (int i = 0; i < 4; i++)
        free(out[i].data);
    free(in.data);
    vg_run_close(&r);
    vg_plan_free(&p);
    vg_model_unref(&m);
    vgk_cpu.close(&cpu);
}

/* Two runs of one plan with other parameters do not disturb one another; so many threads give the same bytes. */
static void neighbours_and_threads(void)
{
    struct vgk_error err = {{0}};
    struct nets_picture out[6] = {{.bytes = 0}}, in = nets_picture(VGK_FRAME_I420, 131, 97, true);
    float other[3] = {1, 0, 0};
    for (int threads = 1; threads <= 3; threads++) {
        struct vgk_device *cpu = NULL;
        struct vg_model *m = nets_shipped(models_dir, "style3");
        struct vg_plan *p = NULL;
        struct vg_run *a = NULL, *b = NULL;
        vgk_cpu.open(&(struct vgk_device_options){.threads = threads}, &cpu, &err);
        if (!m || plan(m, cpu, 131, 97, 0, 1 << 30, &p, &err) || vg_run_open(p, &a, &err) || vg_run_open(p, &b, &err)) {
            expectf(0, "%s", err.text);
            return;
        }
        struct nets_picture *x = &out[2 * threads - 2], *y = x + 1;
        *x = result_of(p, VGK_FRAME_I420);
        *y = result_of(p, VGK_FRAME_I420);
        const struct vg_grid *g = vg_plan_info(p)->grid;
        expect(!vg_run_set_parameter(b, 0, other, &err));
        for (int i = 0; i < 2; i++)
            expectf(!nets_frame(a, g, &in, x, &err) && !nets_frame(b, g, &in, y, &err), "%s", err.text);
        expect(memcmp(x->data, y->data, x->bytes));
        expectf(!memcmp(x->data, out[0].data, x->bytes) && !memcmp(y->data, out[1].data, y->bytes), "%d threads", threads);
        vg_run_close(&a);
        vg_run_close(&b);
        vg_plan_free(&p);
        vg_model_unref(&m);
        vgk_cpu.close(&cpu);
    }
    for (int i = 0; i < 6; i++)
        free(out[i].data);
    free(in.data);
}

static void wrong_frames(void)
{
    struct vgk_error err = {{0}};
    struct vgk_device *cpu = NULL;
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &cpu, &err);
    struct vg_model *m = nets_shipped(models_dir, "upscale2x");
    struct vg_plan *p = NULL;
    struct vg_run *r = NULL;
    if (!m || plan(m, cpu, 32, 24, 0, 1 << 30, &p, &err) || vg_run_open(p, &r, &err)) {
        expectf(0, "%s", err.text);
        return;
    }
    struct vgk_colour colour = nets_colour(VGK_FRAME_PACKED);
    static const int sizes[][4] = {{33, 24, 64, 48}, {32, 25, 64, 48}, {32, 24, 66, 48}, {32, 24, 64, 50}, {0, 24, 64, 48}};
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, 40, 40, true);
    struct nets_picture out = nets_picture(VGK_FRAME_PACKED, 80, 80, false);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        in.f.width = sizes[i][0];
        in.f.height = sizes[i][1];
        out.f.width = sizes[i][2];
        out.f.height = sizes[i][3];
        expectf(vg_run_tile(r, 0, 0, &in.f, &colour, &out.f, &err) == VGK_ERR_INVALID && strstr(err.text, "the plan has 32x24"),
                "%zu: %s", i, err.text);
    }
    free(in.data);
    free(out.data);
    vg_run_close(&r);
    vg_plan_free(&p);
    vg_model_unref(&m);
    vgk_cpu.close(&cpu);
}

int main(int argc, char **argv)
{
    models_dir = argc > 1 ? argv[1] : "pipelines/models";
    run(allocates_nothing);
    run(norm_modes_allocate_nothing);
    run(every_allocation);
    run(parameters);
    run(neighbours_and_threads);
    run(wrong_frames);
    return kit_done();
}
