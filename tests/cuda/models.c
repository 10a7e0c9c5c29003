/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Models of all kinds by plans on the stand-ins, against the CPU back end, in 8-bit steps: pictures and windows, states
 * over 50 steps, frames between two; whole, in tiles, in bands; memory so short that pictures and weights stay on the
 * host; norms by each mode.  In single precision as the CPU, but for sums in another order; in half within what is
 * written here, which is about twice what was measured; tiles, bands and short memory as the whole, to the last bit.
 *
 *     test-cuda-models SOURCE BUILD [MODEL.onnx ...]     files: only those, whole and cut */
#include "../model/onnx_case.h"
#include "clips.h"
#include "kernels/cuda_load.h"
#include "overflow.h"

static char folder[1024];
static struct vgk_device *cpu, *cuda;

static enum vgk_status start(struct nets_planned *p, bool on_cuda, struct vg_model *m, struct vg_plan_request r,
                             struct vgk_error *err)
{
    r.precision = r.precision ? r.precision : VG_PRECISION_FP32;
    r.max_bytes = r.max_bytes ? r.max_bytes : (size_t)1 << 30;
    return on_cuda ? nets_plan(p, m, &vgk_cuda, cuda, r, err) : nets_plan(p, m, &vgk_cpu, cpu, r, err);
}

static struct clip played(struct nets_planned *p, const char *name, const struct clip *in, int windows)
{
    const struct vg_axis *x = &vg_plan_info(p->plan)->grid->x, *y = &vg_plan_info(p->plan)->grid->y;
    struct clip out = clip_new(in->frame[0].f.layout, windows * vg_plan_info(p->plan)->emit, vg_axis_scale(x, x->frame),
                               vg_axis_scale(y, y->frame), false);
    struct vgk_error err = {{0}};
    expectf(!play(p->run, vg_plan_info(p->plan), in, windows, &out, &err), "%s: %s", name, err.text);
    return out;
}

static double mean_off(const struct clip *a, const struct clip *b, int *worst)
{
    double sum = 0, values = 0;
    *worst = 0;
    for (int k = 0; k < a->n; k++)
        for (size_t i = 0; i < a->frame[k].bytes; i++, values++) {
            int d = abs(a->frame[k].data[i] - b->frame[k].data[i]);
            sum += d;
            *worst = d > *worst ? d : *worst;
        }
    return sum / values;
}

/* --- pictures, windows, states --- */

struct trial {
    const char *name;
    int width, height, windows; /* 0 x 0: 29 x 26, odd where the model bears it */
    int tile;                   /* 0 = not in tiles */
    double mean;                /* in half, at most */
    int worst;
};

static void check(const struct trial *t, struct vg_model *m)
{
    int cut = 0, worst, width = t->width ? t->width : 29, height = t->height ? t->height : 26;
    int windows = SANITIZED && t->windows > 8 ? 8 : t->windows;
    struct vgk_error err = {{0}};
    struct nets_planned p;
    enum vgk_frame_layout layout = kit_int(0, 1) ? VGK_FRAME_I420 : VGK_FRAME_PACKED;
    struct vg_plan_request r = {.width = width,
                                .height = height,
                                .tile_width = width,
                                .tile_height = height,
                                .emit = vg_model_summary(m)->centre < 0 ? 3 : 0};
    r.chroma_x = r.chroma_y = layout == VGK_FRAME_I420 ? 2 : 1;
    struct clip in = clip_new(layout, 12, width, height, true), want, whole;
    enum vgk_status s = start(&p, false, m, r, &err);
    expectf(!s, "%s: %s", t->name, err.text);
    if (s)
        return;
    want = played(&p, t->name, &in, windows);
    nets_unplan(&p);
    for (int half = 0; half < 2; half++) {
        r.precision = half ? VG_PRECISION_FP16 : VG_PRECISION_FP32;
        r.tile_width = width, r.tile_height = height, r.bands = 0;
        s = start(&p, true, m, r, &err);
        expectf(!s, "%s: %s", t->name, err.text);
        if (s)
            break;
        expect(vg_plan_info(p.plan)->precision == r.precision);
        whole = played(&p, t->name, &in, windows);
        nets_unplan(&p);
        double mean = mean_off(&whole, &want, &worst);
        if (half)
            printf("%-24s %dx%d in half: %.3f steps mean, %d worst\n", t->name, width, height, mean, worst);
        expectf(half ? mean <= t->mean && worst <= t->worst : worst <= 1 && mean <= 0.005,
                "%s %s: %.4f steps mean, %d worst", t->name, half ? "in half" : "in single", mean, worst);
        for (int way = 0; way < 2 && half; way++) { /* tiles, bands */
            r.tile_width = r.tile_height = way ? 0 : t->tile;
            r.bands = way ? 3 : 0;
            if ((!way && !t->tile) || (s = start(&p, true, m, r, &err)) == VGK_ERR_UNSUPPORTED || s == VGK_ERR_INVALID)
                continue; /* no tiles asked for; models that have no bands */
            expectf(!s, "%s: %s", t->name, err.text);
            struct clip same = played(&p, t->name, &in, windows);
            int64_t off = bytes_off(&whole, &same, whole.n, &worst);
            expectf(off == 0, "%s in %s: %lld bytes are not the whole's, up to %d steps off", t->name,
                    way ? "bands" : "tiles", (long long)off, worst);
            cut += !way && vg_plan_info(p.plan)->grid->x.n * vg_plan_info(p.plan)->grid->y.n > 1;
            clip_free(&same);
            nets_unplan(&p);
        }
        clip_free(&whole);
    }
    expectf(cut == (t->tile > 0), "%s: not in several tiles", t->name);
    clip_free(&in);
    clip_free(&want);
}

/* --- memory --- */

/* With less and less of it: bands, what one pass leaves to another computed again or on the host, weights on the host.
 * All the same bytes. */
static int n_bands, n_spills, n_streams;

static void ladder(const char *name, struct vg_model *m, int width, int height, enum vg_precision precision)
{
    struct vgk_error err = {{0}};
    struct nets_planned p;
    struct vg_plan_request r = {
        .width = width, .height = height, .tile_width = width, .tile_height = height, .precision = precision};
    struct clip in = clip_new(VGK_FRAME_PACKED, 1, width, height, true), whole, part;
    enum vgk_status s = m ? start(&p, true, m, r, &err) : VGK_ERR_FILE;
    int worst;
    expectf(!s, "%s: %s", name, err.text);
    if (s)
        return;
    size_t all = vg_plan_info(p.plan)->arena_bytes, last = all;
    whole = played(&p, name, &in, 1);
    nets_unplan(&p);
    r.tile_width = r.tile_height = 0;
    for (int step = 9; step >= 0; step--) { /* 0: the least that is said to do */
        const char *least = strstr(err.text, "at least ");
        if (!step && !least)
            break;
        r.max_bytes = step ? all * (size_t)step / 10 : strtoull(least + 9, NULL, 10);
        if ((s = start(&p, true, m, r, &err)) == VGK_ERR_NOMEM && step) {
            step = 1;
            continue;
        }
        expectf(!s && vg_plan_info(p.plan)->arena_bytes <= r.max_bytes, "%s in %zu bytes: %s", name, r.max_bytes, err.text);
        if (!s && vg_plan_info(p.plan)->arena_bytes != last) {
            part = played(&p, name, &in, 1);
            int64_t off = bytes_off(&whole, &part, 1, &worst);
            expectf(!off, "%s in %zu of %zu bytes: %lld bytes are not the whole's, up to %d steps off", name,
                    vg_plan_info(p.plan)->arena_bytes, all, (long long)off, worst);
            clip_free(&part);
            last = vg_plan_info(p.plan)->arena_bytes;
            n_bands += vg_plan_info(p.plan)->bands > 1;
            n_spills += vg_plan_info(p.plan)->n_spilled > 0;
            n_streams += vg_plan_info(p.plan)->streams;
        }
        nets_unplan(&p);
    }
    nets_unplan(&p);
    clip_free(&in), clip_free(&whole);
}

static void short_of_memory(void)
{
    struct vgk_error err = {{0}};
    struct vg_model *models[] = {nets_shipped(folder, "johnson"), nets_shipped(folder, "srvgg_x2"),
                                 nets_with_norms(&err)};
    for (int i = 0; i < 3; i++) {
        int width = i == 2 ? 150 : 33,
            height = i == 2 ? 200 : 66; /* where it pays to keep a picture rather than to make it again */
        ladder(i == 2 ? "with norms" : vg_model_summary(models[i])->name, models[i], width, height, VG_PRECISION_FP32);
        ladder(i == 2 ? "with norms" : vg_model_summary(models[i])->name, models[i], width, height, VG_PRECISION_FP16);
        vg_model_unref(&models[i]);
    }
    printf("%d plans in bands, %d with pictures on the host, %d with weights there\n", n_bands, n_spills, n_streams);
    expect(n_bands >= 3 && n_spills >= 2 && n_streams >= 2);
}

/* --- norms --- */

/* A picture with edges and slopes that moves, `noise` on it; a cut at frame 3. */
static struct clip moving(int n, int width, int height, int noise)
{
    struct clip c = clip_new(VGK_FRAME_PACKED, n, width, height, false);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < width * height * 3; i++) {
            int x = i / 3 % width + 2 * k, y = i / 3 / width;
            int v = k < 3 ? 60 + (x * 3 + y * (i % 3)) % 90 + ((x / 9 + y / 7) % 2) * 60
                          : 20 + (x * (i % 3 + 1) + 2 * y) % 120;
            c.frame[k].data[i] = (uint8_t)(v + kit_int(-noise, noise));
        }
    return c;
}

static void norm_mode(const char *name, struct vg_model *m, enum vg_norm_mode mode, int width, int height, int tile)
{
    enum { N = 5 };
    struct vgk_error err = {{0}};
    struct clip in = moving(N, width, height, 3), want;
    struct vg_plan_request r = {.width = width,
                                .height = height,
                                .norm_mode = mode,
                                .norm_frames = 2,
                                .tile_width = tile,
                                .tile_height = tile,
                                .norm_errors = true};
    struct vg_run_info theirs, ours;
    struct nets_planned p;
    int worst;
    if (start(&p, false, m, r, &err)) {
        expectf(0, "%s: %s", name, err.text);
        return;
    }
    expectf(vg_plan_info(p.plan)->norm_mode == mode, "%s: %s", name, vg_norm_mode_name(vg_plan_info(p.plan)->norm_mode));
    want = played(&p, name, &in, N);
    vg_run_info(p.run, &theirs);
    nets_unplan(&p);
    for (int half = 0; half < 2; half++) {
        r.precision = half ? VG_PRECISION_FP16 : VG_PRECISION_FP32;
        if (start(&p, true, m, r, &err)) {
            expectf(0, "%s: %s", name, err.text);
            continue;
        }
        expect(vg_plan_info(p.plan)->precision == r.precision && vg_plan_info(p.plan)->norm_mode == mode);
        struct clip got = played(&p, name, &in, N);
        double mean = mean_off(&got, &want, &worst);
        vg_run_info(p.run, &ours);
        printf("%-12s %-10s%s %s: %.3f steps mean, %d worst; drift %.4f, %.4f; %d cuts; off exact %.3f, %.3f\n", name,
               vg_norm_mode_name(mode), tile ? " tiles" : "", half ? "half" : "single", mean, worst, ours.drift,
               theirs.drift, (int)ours.cuts, ours.error_mean, theirs.error_mean);
        expectf(worst <= (half ? 4 : 1) && mean <= (half ? 0.4 : 0.005), "%s: %.4f steps mean, %d worst", name, mean,
                worst);
        expect(fabs(ours.drift - theirs.drift) < 1e-2 && ours.cuts == theirs.cuts && ours.frozen == theirs.frozen);
        expectf(ours.errors_frames == theirs.errors_frames && fabs(ours.error_mean - theirs.error_mean) < 0.4,
                "%s: %d, %d frames, %g, %g", name, (int)ours.errors_frames, (int)theirs.errors_frames, ours.error_mean,
                theirs.error_mean);
        expect(ours.rescued == 0);
        nets_unplan(&p);
        clip_free(&got);
    }
    clip_free(&in), clip_free(&want);
}

/* Hardly any contrast: what a norm reads is stored in half, where a channel's mean is a large number and what differs
 * from it a small one, so the error grows as the contrast shrinks, in each mode.  Measured: 41 steps at worst for +-1,
 * 12 for +-4, 5 for +-16; with what norms read in f32 it was 1 (and twice the bytes, and none of cuDNN's compiled
 * engines). */
static void flat_pictures(void)
{
    struct vg_model *m = nets_shipped(folder, "johnson");
    for (int noise = 1; m && noise <= 16; noise *= 4) {
        struct clip in = clip_new(VGK_FRAME_PACKED, 1, 36, 27, false), out[3];
        for (size_t i = 0; i < in.frame[0].bytes; i++)
            in.frame[0].data[i] = (uint8_t)(128 + kit_int(-noise, noise));
        for (int way = 0; way < 3; way++) {
            struct vg_plan_request r = {
                .width = 36, .height = 27, .precision = way == 2 ? VG_PRECISION_FP16 : VG_PRECISION_FP32};
            struct vgk_error err = {{0}};
            struct nets_planned p;
            expectf(!start(&p, way > 0, m, r, &err), "%s", err.text);
            out[way] = played(&p, "johnson", &in, 1);
            nets_unplan(&p);
        }
        int single, half;
        mean_off(&out[0], &out[1], &single);
        mean_off(&out[0], &out[2], &half);
        printf("contrast +-%d: single %d, half %d steps at worst\n", noise, single, half);
        expectf(single <= 1 && half <= 80 / noise + 4, "contrast +-%d: %d, %d", noise, single, half);
        clip_free(&in), clip_free(&out[0]), clip_free(&out[1]), clip_free(&out[2]);
    }
    vg_model_unref(&m);
}

static void norm_modes(void)
{
    static const struct {
        const char *name;
        enum vg_norm_mode mode;
        int width, height, tile;
    } cases[] = {
        {"johnson", VG_NORM_EXACT, 33, 28, 0},
        {"johnson", VG_NORM_PREVIOUS, 33, 28, 0},
        {"johnson", VG_NORM_FROZEN, 33, 28, 0},
        {"johnson", VG_NORM_FROZEN, 81, 20, 76},
        {"johnson", VG_NORM_TILE, 81, 20, 76},
        {"unet_gn17", VG_NORM_PREVIOUS, 33, 28, 0},
        {"unet_gn17", VG_NORM_THUMBNAIL, 33, 28, 0},
        {"condin", VG_NORM_THUMBNAIL, 525, 7, 0}, /* is reduced, to 8 rows */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vg_model *m = nets_shipped(folder, cases[i].name);
        kit_seed(7);
        if (m)
            norm_mode(cases[i].name, m, cases[i].mode, cases[i].width, cases[i].height, cases[i].tile);
        vg_model_unref(&m);
    }
}

/* --- faults --- */

/* From opening the device to closing it. */
static enum vgk_status life(struct vg_model *m, const struct vg_plan_request *r, const struct clip *in, int windows,
                            struct vgk_error *err)
{
    struct vgk_device *device = NULL;
    struct vg_plan *plan = NULL;
    struct vg_run *run_ = NULL;
    enum vgk_status s = vgk_cuda.open(&(struct vgk_device_options){0}, &device, err);
    s = s ? s : vg_plan_make(m, &vgk_cuda, device, r, &plan, err);
    s = s ? s : vg_run_open(plan, &run_, err);
    if (!s) {
        const struct vg_plan_info *info = vg_plan_info(plan);
        struct clip out = clip_new(VGK_FRAME_PACKED, windows * info->emit, vg_axis_scale(&info->grid->x, r->width),
                                   vg_axis_scale(&info->grid->y, r->height), false);
        s = play(run_, info, in, windows, &out, err);
        clip_free(&out);
    }
    vg_run_close(&run_);
    vg_plan_free(&plan);
    if (device)
        expect(vgk_cuda.bytes_now(device) == 0);
    vgk_cuda.close(&device);
    return s;
}

/* With the setting at 1, 2, 3 ... (by `step`) until nothing fails any more: the last at which something did. */
static int at_every(const char *setting, int step, const char *name, struct vg_model *m, const struct vg_plan_request *r,
                    const struct clip *in, int windows)
{
    enum vgk_status s = VGK_ERR_DEVICE;
    int failed = 0;
    for (int n = 1; n < 4000 && s; n += step) {
        struct vgk_error err = {{0}};
        char text[16];
        vgk_cuda.free(cuda, vgk_cuda.alloc(cuda, 1)); /* without it: counts from here */
        snprintf(text, sizeof text, "%d", n);
        setenv(setting, text, 1);
        s = life(m, r, in, windows, &err);
        unsetenv(setting);
        expectf(!s || (*err.text && (s == VGK_ERR_DEVICE || s == VGK_ERR_NOMEM)), "%s, %s=%d: status %d, '%s'", name,
                setting, n, s, err.text);
        failed = s ? n : failed;
    }
    expectf(s == VGK_OK, "%s: %d", name, s);
    return failed;
}

/* The device is lost at every call of the runtime, memory ends at every allocation: an error, and nothing is left. */
static void faults(void)
{
    static const struct {
        const char *name; /* NULL: the one that overflows */
        int windows;
        enum vg_norm_mode mode;
        bool least; /* memory: weights stay on the host */
    } cases[] = {{"convgru", 2, VG_NORM_EXACT, false},   {"fastdvd_w5", 1, VG_NORM_EXACT, false},
                 {"condin", 3, VG_NORM_PREVIOUS, false}, {"condin", 1, VG_NORM_THUMBNAIL, false},
                 {"srvgg_x2", 1, VG_NORM_EXACT, true},   {NULL, 1, VG_NORM_EXACT, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vgk_error err = {{0}};
        const char *name = cases[i].name ? cases[i].name : "overflow";
        struct vg_model *m = cases[i].name ? nets_shipped(folder, name) : overflow_model(&err);
        struct vg_plan_request r = {.width = 16,
                                    .height = 14,
                                    .overlap_x = -1,
                                    .overlap_y = -1,
                                    .norm_mode = cases[i].mode,
                                    .norm_errors = true,
                                    .max_bytes = (size_t)1 << 30,
                                    .precision = cases[i].least ? VG_PRECISION_FP32 : VG_PRECISION_FP16};
        struct clip in = clip_new(VGK_FRAME_PACKED, 6, r.width, r.height, true);
        if (m && cases[i].least) {
            r.max_bytes = 1;
            expect(life(m, &r, &in, 1, &err) == VGK_ERR_NOMEM);
            const char *least = strstr(err.text, "at least ");
            r.max_bytes = least ? strtoull(least + 9, NULL, 10) : 0;
        }
        if (m) {
            int lost = at_every("VIDGEN_STANDIN_FAIL", SANITIZED ? 3 : 1, name, m, &r, &in, cases[i].windows),
                refused = at_every("VIDGEN_STANDIN_NOMEM", 1, name, m, &r, &in, cases[i].windows);
            printf("%-12s %-10s lost at %d calls, no memory at %d allocations\n", name, vg_norm_mode_name(r.norm_mode),
                   lost, refused);
            /* The arena, the flags and their pinned copy at least. */
            expectf(lost > 50 && refused >= 3, "%s: %d, %d", name, lost, refused);
        }
        clip_free(&in);
        vg_model_unref(&m);
    }
}

/* All fixtures that are models of pictures; those that are not are in cuda/fixtures. */
static const struct trial trials[] = {
    {"johnson", 0, 0, 1, 0, 0.12, 2},
    {"johnson_deconv", 0, 0, 1, 0, 0.12, 2},
    {"condin", 0, 0, 1, 0, 0.12, 2},
    {"adain", 0, 0, 1, 0, 0.12, 2},
    {"srvgg_x2", 33, 31, 1, 20, 0.12, 2},
    {"rrdb_x4", 51, 19, 1, 44, 0.12, 2},
    {"unet_gn17", 18, 14, 1, 0, 0.12, 2},
    {"unet_gn21", 18, 14, 1, 0, 0.12, 2},
    {"temporal_attn", 17, 13, 2, 8, 0.12, 2},
    {"fastdvd_w5", 23, 21, 3, 0, 0.12, 2},
    {"convgru", 0, 0, 50, 14, 0.12, 2},
    {"vsr_x2", 47, 21, 50, 42, 0.12, 2},
    {"warp16_border", 37, 31, 1, 22, 0.12, 2},
    {"warp16_zeros", 37, 31, 1, 22, 0.12, 2},
    {"warp20_reflect", 37, 31, 1, 22, 0.12, 2},
    {"ifnet", 0, 0, 2, 0, 0.12, 2},
    {"causal3d_full", 21, 17, 2, 0, 0.12, 2},
    {"causal3d_chunk", 25, 17, 25, 22, 0.12, 2},
    {"conv3d_misc", 19, 17, 1, 0, 0.12, 2},
    {"qdq_int8", 0, 0, 1, 16, 0.5, 8} /* a quantum is 4 steps */,
    {"fp16_weights", 0, 0, 1, 20, 0.12, 2},
    {"bf16_weights", 0, 0, 1, 20, 0.12, 2},
    {"fp16_full", 0, 0, 1, 20, 0.12, 2},
    {"ext_data", 0, 0, 1, 20, 0.12, 2},
};

static void fixtures(void)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/adain.modelinfo", folder);
    FILE *sidecar = fopen(path, "w");
    expect(sidecar && fputs("[vidgen parameter style]\nsize=24;20\ndefault=0.25\n", sidecar) >= 0 && !fclose(sidecar));
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        struct vg_model *m = nets_shipped(folder, trials[i].name);
        kit_seed(i + 1);
        if (m)
            check(&trials[i], m);
        vg_model_unref(&m);
        fflush(stdout);
    }
}

static void file(const char *path)
{
    struct vg_model *m = NULL;
    struct vgk_error err = {{0}};
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    expectf(!vg_model_load(path, &m, &err), "%s", err.text);
    kit_seed(1);
    if (m)
        check(&(struct trial){name, 45, 27, 1, vg_model_summary(m)->global ? 0 : 40, 0.3, 4}, m);
    vg_model_unref(&m);
}

int main(int argc, char **argv)
{
    struct vgk_error err = {{0}};
    if (argc < 3 || !make_cases(argv[1], argv[2], "make_fixtures.py", "cuda-models", folder, sizeof folder)) {
        if (kit_failures)
            return kit_done();
        kit_skip("needs a Python with onnx, onnxruntime and numpy");
    }
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1, .exact_products = true}, &cpu, NULL);
    if (vgk_cuda.open(&(struct vgk_device_options){0}, &cuda, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    expect(!strstr(vgk_cuda.describe(cuda), "own kernels only")); /* the stand-in for cuDNN is there */
    for (int i = 3; i < argc; i++)
        file(argv[i]);
    if (argc == 3) {
        run(short_of_memory);
        run(norm_modes);
        run(flat_pictures);
        run(faults);
        run(fixtures);
    }
    vgk_cuda.close(&cuda);
    vgk_cpu.close(&cpu);
    return kit_done();
}
