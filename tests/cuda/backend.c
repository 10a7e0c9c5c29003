/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CUDA backend as a whole on the stand-in: frames, models in tiles and bands, memory to the byte, a device that is
 * lost at any call.
 *
 *     test-cuda-backend MODELS */
#include <stdlib.h>

#include "kernels/cuda_load.h"
#include "kit.h"
#include "nets.h"
#include "overflow.h"

static const char *models_dir;
static struct vgk_device *cpu, *cuda;
static int n_chains[2]; /* of plans in single, in half precision */

/* --- frames --- */

static struct vgk_frame random_frame(int format, int w, int h, uint8_t **data)
{
    static const struct { enum vgk_frame_layout layout; int step, offset[3], alpha; } formats[] = {
        {VGK_FRAME_I420, 1, {0, 0, 0}, -1}, {VGK_FRAME_NV12, 1, {0, 0, 0}, -1}, {VGK_FRAME_PLANAR, 1, {0, 0, 0}, -1},
        {VGK_FRAME_PACKED, 3, {0, 1, 2}, -1}, {VGK_FRAME_PACKED, 3, {2, 1, 0}, -1}, {VGK_FRAME_PACKED, 4, {1, 2, 3}, 0},
        {VGK_FRAME_PACKED, 4, {0, 1, 2}, 3}, {VGK_FRAME_PACKED, 4, {2, 1, 0}, 3}};
    struct vgk_frame f = {.layout = formats[format].layout, .width = w, .height = h, .step = formats[format].step,
                          .alpha = formats[format].alpha};
    size_t size = 0, plane[3];
    memcpy(f.offset, formats[format].offset, sizeof f.offset);
    for (int i = 0; i < 3; i++) {
        bool half = i && vgk_frame_halved(&f);
        plane[i] = size;
        f.stride[i] = (half ? (w + 1) / 2 * (f.layout == VGK_FRAME_NV12 ? 2 : 1) : w * f.step) + kit_int(0, 5);
        size += (size_t)f.stride[i] * (half ? (h + 1) / 2 : h);
    }
    *data = malloc(size);
    for (size_t i = 0; i < size; i++)
        (*data)[i] = (uint8_t)kit_int(0, 255);
    for (int i = 0; i < 3; i++)
        f.plane[i] = *data + plane[i];
    return f;
}

static size_t frame_bytes(const struct vgk_frame *f, const uint8_t *data)
{
    bool half = vgk_frame_halved(f);
    return (size_t)(f->plane[2] - data) + (size_t)f->stride[2] * (half ? (f->height + 1) / 2 : f->height);
}

static struct vgk_tensor on_device(const struct vgk_tensor *host, size_t bytes)
{
    struct vgk_tensor t = *host;
    t.data = vgk_cuda.alloc(cuda, bytes);
    expect(vgk_cuda.upload(cuda, host->data, t.data, bytes, NULL) == VGK_OK);
    return t;
}

static void frames(void)
{
    for (int format = 0; format < 8; format++)
        for (int round = 0; round < 12; round++) {
            int w = kit_int(1, 40), h = kit_int(1, 30), aw = (w + 1) / 2, ah = (h + 1) / 2;
            uint8_t *data, *alpha_data;
            struct vgk_frame f = random_frame(format, w, h, &data), alpha = random_frame(kit_int(5, 6), aw, ah, &alpha_data);
            struct vgk_matrix m;
            for (int i = 0; i < 12; i++)
                m.m[i / 4][i % 4] = (float)kit_real(-1, 1);
            int64_t dim[4] = {1, 3, h + kit_int(0, 4), w + kit_int(0, 4)};
            struct vgk_tensor t = vgk_tensor_make(VGK_F32, 4, dim, round % 2 ? VGK_CHANNELS_LAST : VGK_ROW_MAJOR), back = t;
            size_t n = (size_t)vgk_tensor_count(&t), bytes = n * sizeof(float), scratch_bytes = vgk_cuda.frame_scratch(cuda, w, h);
            float *a = t.data = calloc(n, sizeof(float)), *b = back.data = calloc(n, sizeof(float));
            struct vgk_tensor far = on_device(&t, bytes);
            void *scratch = vgk_cuda.alloc(cuda, scratch_bytes);
            struct vgk_error err = {{0}};
            expect(vgk_cpu.frame_read(cpu, &f, &m, &t, NULL, &err) == VGK_OK);
            expectf(vgk_cuda.frame_read(cuda, &f, &m, &far, scratch, &err) == VGK_OK, "%s", err.text);
            expect(vgk_cuda.download(cuda, far.data, b, bytes, &err) == VGK_OK);
            double worst = 0;
            for (size_t i = 0; i < n; i++)
                worst = fabs((double)(a[i] - b[i])) > worst ? fabs((double)(a[i] - b[i])) : worst;
            expectf(worst <= 1e-4, "format %d, %dx%d: off by %g", format, w, h, worst);

            /* And back, with values beyond the range, some not finite. */
            float low[3] = {-1, 0, 0.25f}, high[3] = {1, 2, 1.75f};
            int bad = 0, bad_here = 0, off = 0, much = 0;
            for (int i = 0; i < 12; i++)
                m.m[i / 4][i % 4] = (float)kit_real(-1, 1) * 100;
            for (size_t i = 0; i < n; i++)
                a[i] = kit_int(0, 99) ? (float)kit_real(-2, 3) : kit_int(0, 1) ? INFINITY : NAN;
            size_t frame_size = frame_bytes(&f, data);
            uint8_t *other = malloc(frame_size);
            struct vgk_frame g = f;
            memcpy(other, data, frame_size);
            for (int i = 0; i < 3; i++)
                g.plane[i] = other + (f.plane[i] - data);
            bool with_alpha = kit_int(0, 1);
            expect(vgk_cuda.upload(cuda, a, far.data, bytes, &err) == VGK_OK);
            void *more = vgk_cuda.alloc(cuda, scratch_bytes + vgk_cuda.frame_scratch(cuda, aw, ah));
            expect(vgk_cpu.frame_write(cpu, &t, &m, low, high, with_alpha ? &alpha : NULL, &f, NULL, &bad, &err) == VGK_OK);
            expectf(vgk_cuda.frame_write(cuda, &far, &m, low, high, with_alpha ? &alpha : NULL, &g, more, &bad_here, &err) ==
                        VGK_OK, "%s", err.text);
            for (size_t i = 0; i < frame_size; i++) {
                off += data[i] != other[i];
                much += abs(data[i] - other[i]) > 1; /* sums in another order: half way to the next byte */
            }
            expectf(!much && off <= 1 + (int)frame_size / 50, "format %d, %dx%d: %d bytes differ, %d by more than 1", format, w, h,
                    off, much);
            /* Pixels that share chroma are read more than once at odd edges. */
            expectf((bad > 0) == (bad_here > 0) && bad_here >= bad, "%d, %d not finite", bad, bad_here);
            vgk_cuda.free(cuda, far.data), vgk_cuda.free(cuda, scratch), vgk_cuda.free(cuda, more);
            free(a), free(b), free(data), free(alpha_data), free(other);
        }
}

/* --- models --- */

static enum vgk_status open_plan(const struct vgk_backend *backend, struct vg_model *m, struct vg_plan_request r,
                                 struct nets_planned *p, struct vgk_error *err)
{
    return nets_plan(p, m, backend, backend == &vgk_cpu ? cpu : cuda, r, err);
}

static struct nets_picture result(const struct nets_planned *p, const struct nets_picture *in)
{
    const struct vg_grid *g = vg_plan_info(p->plan)->grid;
    struct nets_picture out = nets_picture(in->f.layout, vg_axis_scale(&g->x, g->x.frame), vg_axis_scale(&g->y, g->y.frame), false);
    struct vgk_error err = {{0}};
    enum vgk_status s = nets_frame(p->run, g, in, &out, &err);
    expectf(s == VGK_OK, "%s", err.text);
    return out;
}

/* In single precision as the CPU; in half up to `most` steps of 255 off; bytes as foretold; tiles and bands as the whole. */
static void check_model(const char *name, struct vg_model *m, int width, int height, enum vgk_frame_layout layout, bool tiles,
                        int most)
{
    struct nets_picture in = nets_picture(layout, width, height, true);
    struct vgk_error err = {{0}};
    struct vg_plan_request r = {.width = width, .height = height, .precision = VG_PRECISION_FP32};
    struct nets_planned on_cpu, whole, other;
    int chroma = r.chroma_x = r.chroma_y = layout == VGK_FRAME_I420 ? 2 : 1;
    if (open_plan(&vgk_cpu, m, r, &on_cpu, &err)) {
        free(in.data);
        return;
    }
    struct nets_picture want = result(&on_cpu, &in);
    for (int half = 0; half < 2; half++) {
        int n;
        r = (struct vg_plan_request){.width = width, .height = height, .chroma_x = chroma, .chroma_y = chroma,
                                     .precision = half ? VG_PRECISION_AUTO : VG_PRECISION_FP32};
        enum vgk_status s = open_plan(&vgk_cuda, m, r, &whole, &err);
        expectf(s == VGK_OK, "%s: %s", name, err.text);
        if (s)
            break;
        for (int i = 0; i < whole.plan->program->n_steps; i++)
            n_chains[half] += whole.plan->program->steps[i].op.kind == VGK_OP_CHAIN;
        expect(vg_plan_info(whole.plan)->precision == (half ? VG_PRECISION_FP16 : VG_PRECISION_FP32));
        struct nets_picture got = result(&whole, &in);
        int d = nets_difference(&want, &got, &n);
        expectf(d <= (half ? most : 1) && n <= (int)want.bytes / (half ? 4 : 200), "%s %dx%d %s: %d values of %zu differ, by up to %d", name,
                width, height, half ? "half" : "single", n, want.bytes, d);
        for (int way = 0; way < 2; way++) { /* tiles, bands */
            if (!way && !tiles)
                continue;
            r.tile_width = way ? 0 : 40;
            r.tile_height = way ? 0 : 40;
            r.bands = way ? 3 : 0;
            s = open_plan(&vgk_cuda, m, r, &other, &err);
            if (s == VGK_ERR_UNSUPPORTED || s == VGK_ERR_INVALID) /* models that have no bands, too small a frame */
                continue;
            expectf(s == VGK_OK, "%s: %s", name, err.text);
            struct nets_picture same = result(&other, &in);
            d = nets_difference(&got, &same, &n);
            expectf(n == 0, "%s %dx%d %s in %s: %d values differ from the whole, by up to %d", name, width, height,
                    half ? "half" : "single", way ? "bands" : "tiles", n, d);
            free(same.data);
            nets_unplan(&other);
        }
        free(got.data);
        nets_unplan(&whole);
    }
    free(want.data);
    free(in.data);
    nets_unplan(&on_cpu);
}

static void shipped_models(void)
{
    struct vg_model *style = nets_shipped(models_dir, "style3"), *upscale = nets_shipped(models_dir, "upscale2x");
    check_model("style3", style, 28, 24, VGK_FRAME_PACKED, false, 2);
    check_model("upscale2x", upscale, 56, 33, VGK_FRAME_I420, true, 2);
    vg_model_unref(&style);
    vg_model_unref(&upscale);
}

static void random_models(void)
{
    for (int seed = 0; seed < 12; seed++) {
        struct vgk_error err = {{0}};
        struct vg_model *m = nets_random(seed, seed % 2, &err);
        char name[32];
        if (!m)
            continue;
        snprintf(name, sizeof name, "random net %d", seed);
        check_model(name, m, kit_int(16, 48), kit_int(16, 36), kit_int(0, 1) ? VGK_FRAME_PACKED : VGK_FRAME_I420, !(seed % 2), 8);
        vg_model_unref(&m);
    }
    expectf(n_chains[0] >= 3 && n_chains[1] >= 3, "%d and %d chains in them", n_chains[0], n_chains[1]);
}

static void parameters(void)
{
    struct vg_model *m = nets_shipped(models_dir, "style3");
    struct vgk_error err = {{0}};
    struct nets_planned p;
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, 24, 20, true), a, b, c;
    expect(open_plan(&vgk_cuda, m, (struct vg_plan_request){.width = 24, .height = 20}, &p, &err) == VGK_OK);
    a = result(&p, &in);
    expect(vg_run_set_parameter(p.run, 0, (float[]){0, 0, 1}, &err) == VGK_OK);
    b = result(&p, &in);
    expect(vg_run_set_parameter(p.run, 0, vg_model_summary(m)->parameters[0].defaults, &err) == VGK_OK);
    c = result(&p, &in);
    expect(memcmp(a.data, b.data, a.bytes) && !memcmp(a.data, c.data, a.bytes));
    free(in.data), free(a.data), free(b.data), free(c.data);
    nets_unplan(&p);
    vg_model_unref(&m);
}

static void previous_norms(void)
{
    struct vg_model *m = nets_shipped(models_dir, "style3");
    struct vgk_error err = {{0}};
    struct nets_planned p, q;
    struct vg_plan_request r = {.width = 32, .height = 24, .norm_mode = VG_NORM_PREVIOUS, .precision = VG_PRECISION_FP32};
    expect(open_plan(&vgk_cuda, m, r, &p, &err) == VGK_OK && open_plan(&vgk_cpu, m, r, &q, &err) == VGK_OK);
    for (int i = 0; i < 3; i++) {
        struct nets_picture in = nets_picture(VGK_FRAME_PACKED, 32, 24, true), a = result(&p, &in), b = result(&q, &in);
        struct vg_run_info info, want;
        int n, d = nets_difference(&a, &b, &n);
        vg_run_info(p.run, &info);
        vg_run_info(q.run, &want);
        expectf(d <= 1 && n < 20, "frame %d: %d values differ, by up to %d", i, n, d);
        expect_near(info.drift, want.drift, 1e-3);
        free(in.data), free(a.data), free(b.data);
    }
    nets_unplan(&p);
    nets_unplan(&q);
    vg_model_unref(&m);
}

/* A picture whose planes are in one block, with that block on the device. */
static struct vgk_frame there(const struct nets_picture *p)
{
    struct vgk_frame f = p->f;
    char *block = vgk_cuda.alloc(cuda, p->bytes);
    expect(vgk_cuda.upload(cuda, p->data, block, p->bytes, NULL) == VGK_OK);
    for (int i = 0; i < 3; i++)
        f.plane[i] = p->f.plane[i] ? (uint8_t *)block + (p->f.plane[i] - p->data) : NULL;
    f.device = true;
    return f;
}

/* Frames in the device's memory: the same bytes, the same statistics of the reduced frame, and the same difference from exact
 * norms as from frames on the host. */
static void norms_of_frames_there(void)
{
    static const enum vg_norm_mode modes[] = {VG_NORM_PREVIOUS, VG_NORM_THUMBNAIL, VG_NORM_FROZEN};
    struct vgk_error err = {{0}};
    struct vg_model *m = nets_with_norms(&err);
    for (int k = 0; k < 6; k++) {
        enum vgk_frame_layout layout = k % 2 ? VGK_FRAME_I420 : VGK_FRAME_PACKED;
        struct vgk_colour colour = nets_colour(layout);
        struct vg_plan_request r = {.width = 620, .height = 22, .norm_mode = modes[k / 2], .norm_errors = true, .norm_frames = 1};
        struct vg_run_info info, want;
        struct nets_planned p, q;
        r.chroma_x = r.chroma_y = 1 + k % 2;
        expectf(open_plan(&vgk_cuda, m, r, &p, &err) == VGK_OK && open_plan(&vgk_cuda, m, r, &q, &err) == VGK_OK, "%s", err.text);
        expect(vg_plan_info(p.plan)->norm_mode == r.norm_mode && vg_plan_info(p.plan)->norm_errors);
        for (int i = 0; i < 4; i++) {
            struct nets_picture in = nets_picture(layout, 620, 22, true), a = nets_picture(layout, 620, 22, false), b = a;
            struct vgk_frame from = there(&in), to = there(&a);
            b.data = malloc(b.bytes);
            expectf(vg_run_begin(p.run, &in.f, &colour, &a.f, &err) == VGK_OK &&
                        vg_run_tile(p.run, 0, 0, &in.f, &colour, &a.f, &err) == VGK_OK, "%s", err.text);
            expectf(vg_run_begin(q.run, &from, &colour, &a.f, &err) == VGK_OK &&
                        vg_run_tile(q.run, 0, 0, &from, &colour, &to, &err) == VGK_OK, "%s", err.text);
            expect(vgk_cuda.download(cuda, to.plane[0], b.data, b.bytes, &err) == VGK_OK);
            expectf(!memcmp(a.data, b.data, a.bytes), "mode %s, frame %d", vg_norm_mode_name(r.norm_mode), i);
            vgk_cuda.free(cuda, from.plane[0]), vgk_cuda.free(cuda, to.plane[0]);
            free(in.data), free(a.data), free(b.data);
        }
        vg_run_info(p.run, &want);
        vg_run_info(q.run, &info);
        expectf(want.errors_frames >= 2 && want.error_worst > 0, "mode %s", vg_norm_mode_name(r.norm_mode));
        expect(info.errors_frames == want.errors_frames && info.error_worst == want.error_worst);
        expect(info.error_mean == want.error_mean);
        nets_unplan(&p);
        nets_unplan(&q);
    }
    vg_model_unref(&m);
}

/* As little memory as does: packed weights stay on the host, and come when they are used. */
static void streamed_weights(void)
{
    struct vg_model *m = nets_shipped(models_dir, "upscale2x");
    struct vgk_error err = {{0}};
    struct nets_planned p;
    struct vg_plan_request r = {.width = 32, .height = 40, .precision = VG_PRECISION_FP32, .bands = 1, .max_bytes = 1 << 30};
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, 32, 40, true);
    expect(open_plan(&vgk_cuda, m, r, &p, &err) == VGK_OK);
    struct nets_picture whole = result(&p, &in);
    nets_unplan(&p);
    r.max_bytes = 1;
    r.bands = 0;
    expect(open_plan(&vgk_cuda, m, r, &p, &err) == VGK_ERR_NOMEM);
    const char *least = strstr(err.text, "at least ");
    r.max_bytes = least ? strtoull(least + 9, NULL, 10) : 0;
    enum vgk_status s = open_plan(&vgk_cuda, m, r, &p, &err);
    expectf(!s && vg_plan_info(p.plan)->streams && vg_plan_info(p.plan)->host_bytes, "%s", err.text);
    if (!s) {
        struct nets_picture least_of_it = result(&p, &in);
        expect(!memcmp(whole.data, least_of_it.data, whole.bytes));
        free(least_of_it.data);
    }
    nets_unplan(&p);
    free(in.data), free(whole.data);
    vg_model_unref(&m);
}

static void overflow(void)
{
    struct vgk_error err = {{0}};
    struct vg_model *m = overflow_model(&err);
    struct vg_plan_request r = {.width = 96, .height = 32, .tile_width = 40, .tile_height = 32};
    struct nets_planned half, single;
    expect(open_plan(&vgk_cuda, m, r, &half, &err) == VGK_OK);
    r.precision = VG_PRECISION_FP32;
    expect(open_plan(&vgk_cpu, m, r, &single, &err) == VGK_OK);
    overflow_check(half.run, vg_plan_info(half.plan)->grid, single.run, vg_plan_info(single.plan)->grid);
    nets_unplan(&half);
    nets_unplan(&single);
    vg_model_unref(&m);
}

/* --- faults --- */

static void set(const char *name, long value)
{
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    setenv(name, text, 1);
}

/* Opens a device, plans, runs a frame. */
static enum vgk_status all_of_it(struct vg_model *m, size_t max_bytes, struct vgk_error *err)
{
    struct vgk_device *dev = NULL;
    struct vg_plan *plan = NULL;
    struct vg_run *run = NULL;
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, 24, 20, true), out = nets_picture(VGK_FRAME_PACKED, 48, 40, false);
    enum vgk_status s = vgk_cuda.open(&(struct vgk_device_options){.max_bytes = max_bytes}, &dev, err);
    if (!s)
        s = vg_plan_make(m, &vgk_cuda, dev, &(struct vg_plan_request){.width = 24, .height = 20, .overlap_x = -1, .overlap_y = -1}, &plan, err);
    if (!s)
        s = vg_run_open(plan, &run, err);
    if (!s)
        s = nets_frame(run, vg_plan_info(plan)->grid, &in, &out, err);
    vg_run_close(&run);
    vg_plan_free(&plan);
    if (dev)
        expect(vgk_cuda.bytes_now(dev) == 0);
    vgk_cuda.close(&dev);
    free(in.data), free(out.data);
    return s;
}

static void lost_at_every_call(void)
{
    struct vg_model *m = nets_shipped(models_dir, "upscale2x");
    int failed = 0;
    enum vgk_status s = VGK_ERR_DEVICE;
    for (int n = 1; n < 2000 && s; n++) {
        struct vgk_error err = {{0}};
        unsetenv("VIDGEN_STANDIN_FAIL");
        vgk_cuda.bytes_free(cuda); /* a call without it: counts from here */
        set("VIDGEN_STANDIN_FAIL", n);
        s = all_of_it(m, 0, &err);
        expectf(!s || (*err.text && (s == VGK_ERR_DEVICE || s == VGK_ERR_NOMEM)), "call %d: status %d, '%s'", n, s, err.text);
        failed += s != VGK_OK;
    }
    unsetenv("VIDGEN_STANDIN_FAIL");
    vgk_cuda.bytes_free(cuda);
    expectf(s == VGK_OK && failed > 50, "%d calls failed", failed);
    vg_model_unref(&m);
}

static void memory(void)
{
    struct vg_model *m = nets_shipped(models_dir, "upscale2x");
    struct vgk_error err = {{0}};
    struct nets_planned p;
    expect(open_plan(&vgk_cuda, m, (struct vg_plan_request){.width = 24, .height = 20}, &p, &err) == VGK_OK);
    size_t bytes = vg_plan_info(p.plan)->arena_bytes;
    nets_unplan(&p);
    expectf(all_of_it(m, bytes, &err) == VGK_OK, "%s", err.text);
    expect(all_of_it(m, bytes - 1, &err) == VGK_ERR_NOMEM && strstr(err.text, "max-device-memory"));
    /* The card has not got it. */
    set("VIDGEN_STANDIN_MEMORY", (long)bytes / 2);
    enum vgk_status s = all_of_it(m, 0, &err);
    expectf(s == VGK_ERR_NOMEM, "%d: %s", s, err.text);
    unsetenv("VIDGEN_STANDIN_MEMORY");
    vg_model_unref(&m);
}

static void drivers(void)
{
    struct vgk_device *dev = NULL;
    struct vgk_error err = {{0}};
    set("VIDGEN_STANDIN_DRIVER", 0);
    expect(vgk_cuda.open(&(struct vgk_device_options){0}, &dev, &err) == VGK_ERR_DEVICE && strstr(err.text, "no NVIDIA driver"));
    set("VIDGEN_STANDIN_DRIVER", 11080);
    expect(vgk_cuda.open(&(struct vgk_device_options){0}, &dev, &err) == VGK_ERR_DEVICE && strstr(err.text, "CUDA 11.8"));
    unsetenv("VIDGEN_STANDIN_DRIVER");
    expect(vgk_cuda.open(&(struct vgk_device_options){.device = 1}, &dev, &err) == VGK_ERR_INVALID && strstr(err.text, "0 to 0"));
    expect(!dev);
}

/* The cap counts all that is alive, and what is freed is there again. */
static void cap(void)
{
    struct vgk_device *d = NULL;
    expect(vgk_cuda.open(&(struct vgk_device_options){.max_bytes = 4 * VGK_ALIGN}, &d, NULL) == VGK_OK);
    void *two = vgk_cuda.alloc(d, 2 * VGK_ALIGN), *one = vgk_cuda.alloc(d, VGK_ALIGN);
    expect(two && one && !vgk_cuda.alloc(d, 2 * VGK_ALIGN) && !vgk_cuda.alloc(d, VGK_ALIGN + 1));
    expect(vgk_cuda.bytes_now(d) == 3 * VGK_ALIGN);
    vgk_cuda.free(d, two);
    two = vgk_cuda.alloc(d, 3 * VGK_ALIGN);
    expect(two && !vgk_cuda.alloc(d, 1) && vgk_cuda.bytes_peak(d) == 4 * VGK_ALIGN);
    vgk_cuda.free(d, two);
    vgk_cuda.free(d, one);
    expect(vgk_cuda.bytes_now(d) == 0);
    vgk_cuda.close(&d);
}

/* A refusal names the smallest budget: it works, one byte less does not, and nothing above it is refused. */
static void refused(const char *name, struct vg_model *m, int width, int height)
{
    size_t least[3] = {0};
    for (enum vg_precision precision = VG_PRECISION_AUTO; precision <= VG_PRECISION_FP16; precision++) {
        struct vgk_error err = {{0}};
        struct vg_plan *p = NULL;
        struct vg_plan_request r = {.width = width, .height = height, .overlap_x = -1, .overlap_y = -1, .precision = precision,
                                    .max_bytes = 1};
        expect(vg_plan_make(m, &vgk_cuda, cuda, &r, &p, &err) == VGK_ERR_NOMEM);
        const char *at = strstr(err.text, "at least ");
        least[precision] = at ? strtoull(at + 9, NULL, 10) : 0;
        r.max_bytes = least[precision] - 1;
        expectf(vg_plan_make(m, &vgk_cuda, cuda, &r, &p, &err) == VGK_ERR_NOMEM, "%s: one byte less than %zu", name,
                least[precision]);
        at = strstr(err.text, "at least ");
        expectf(at && strtoull(at + 9, NULL, 10) == least[precision], "%s: %s", name, err.text);
        vg_plan_free(&p);
        for (double up = 1; up < 20; up *= 1.5) {
            r.max_bytes = (size_t)((double)least[precision] * up);
            expectf(vg_plan_make(m, &vgk_cuda, cuda, &r, &p, &err) == VGK_OK && vg_plan_info(p)->arena_bytes <= r.max_bytes,
                    "%s, %s: %zu is refused, %zu would do: %s", name, vg_precision_name(precision), r.max_bytes, least[precision],
                    err.text);
            vg_plan_free(&p);
        }
    }
    expect(least[VG_PRECISION_AUTO] == (least[VG_PRECISION_FP32] < least[VG_PRECISION_FP16] ? least[VG_PRECISION_FP32]
                                                                                            : least[VG_PRECISION_FP16]));
    printf("%s at %dx%d: at least %zu bytes, %zu in f32, %zu in f16\n", name, width, height, least[VG_PRECISION_AUTO],
           least[VG_PRECISION_FP32], least[VG_PRECISION_FP16]);
}

static void refusals(void)
{
    struct vgk_error err = {{0}};
    struct vg_model *style = nets_shipped(models_dir, "style3"), *upscale = nets_shipped(models_dir, "upscale2x"),
                    *norms = nets_with_norms(&err);
    refused("style3", style, 48, 40);
    refused("upscale2x", upscale, 64, 90);
    refused("with norms", norms, 60, 80);
    vg_model_unref(&style);
    vg_model_unref(&upscale);
    vg_model_unref(&norms);
}

int main(int argc, char **argv)
{
    struct vgk_error err = {{0}};
    models_dir = argc > 1 ? argv[1] : "pipelines/models";
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &cpu, NULL);
    if (vgk_cuda.open(&(struct vgk_device_options){0}, &cuda, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    const char *wish = getenv("VIDGEN_CUDNN"); /* the stand-in for cuDNN is there, and used unless it was not wanted */
    const char *how = vgk_cuda.describe(cuda);
    expectf(!strstr(how, "own kernels only") == !(wish && !strcmp(wish, "no")), "%s", how);
    kit_seed(3);
    run(frames);
    run(shipped_models);
    run(random_models);
    run(parameters);
    run(previous_norms);
    run(norms_of_frames_there);
    run(streamed_weights);
    run(overflow);
    run(lost_at_every_call);
    run(memory);
    run(cap);
    run(refusals);
    run(drivers);
    expect(vgk_cuda.bytes_now(cuda) == 0);
    vgk_cuda.close(&cuda);
    vgk_cpu.close(&cpu);
    return kit_done();
}
