/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tiles in flight, and recordings, on the stand-in: the same bytes as one tile after the other, whatever streams do first;
 * what is lost, given up, overflows, or does not fit.
 *
 *     test-cuda-flights MODELS */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "flying.h"
#include "overflow.h"
#include "standin/counters.h"

static const char *models_dir;
static struct vgk_device *cuda, *beside; /* beside: the same device, by streams of its own */

static enum vgk_status open_plan(struct vgk_device *dev, struct vg_model *m, struct vg_plan_request r,
                                 struct nets_planned *p, struct vgk_error *err)
{
    return nets_plan(p, m, &vgk_cuda, dev, r, err);
}

/* Rows of whole frames, as they lie on the device. */
static long frame_bytes(const struct vgk_frame *f)
{
    long half = (f->width + 1) / 2;
    return f->layout == VGK_FRAME_PACKED ? (3 * f->width + 15) / 16 * 16 * f->height
                                         : (f->width + 15) / 16 * 16 * f->height + 2 * ((half + 15) / 16 * 16) * ((f->height + 1) / 2);
}

static void check(const char *name, struct vg_model *m, struct vg_plan_request r, enum vgk_frame_layout layout, int frames)
{
    struct nets_planned plain, flying;
    struct vgk_error err = {{0}};
    struct nets_picture got[MOST][MOST_OUT];
    char what[128];
    frames = SANITIZED ? 2 : frames;
    r.chroma_x = r.chroma_y = layout == VGK_FRAME_I420 ? 2 : 1;
    enum vgk_status s = open_plan(cuda, m, r, &plain, &err);
    expectf(s == VGK_OK, "%s: %s", name, err.text);
    r.flights = true;
    s = open_plan(cuda, m, r, &flying, &err);
    expectf(s == VGK_OK, "%s: %s", name, err.text);
    const struct vg_plan_info *info = vg_plan_info(flying.plan);
    bool in_tiles = info->grid->x.n * info->grid->y.n > 1;
    expect(info->flight_frames == in_tiles);
    expect(info->flight_bytes && info->staging_bytes > info->flight_bytes && !vg_plan_info(plain.plan)->flight_bytes);
    expect(info->arena_bytes == vg_plan_info(plain.plan)->arena_bytes + info->flight_bytes);
    struct tiles t = tiles_make(info, layout, frames);
    results_make(&t, got);
    for (int round = 0; round <= WAYS; round++) { /* from the second time on all of it is recorded */
        enum way way = round ? (enum way)(round - 1) : ALONE;
        long up = 0, down = 0, whole = frames * frame_bytes(&t.frame[0].f), all = 0;
        for (int i = 0; i < t.n; i++)
            for (int k = 0; k < info->emit; k++) {
                memset(got[i][k].data, 0, got[i][k].bytes);
                all += (long)got[i][k].bytes;
            }
        for (int i = 0; i < frames; i++)
            up -= way >= FROM_DEVICE && way != TO_DEVICE ? (long)t.frame[i].bytes : 0;
        expectf((round && info->norm_mode != VG_NORM_FROZEN) || play_tiles(plain.run, &t, &err) == VGK_OK, "%s", err.text);
        up -= standin_uploaded();
        down -= standin_downloaded();
        expectf(fly(flying.run, &t, way, beside, got, &err) == VGK_OK, "%s", err.text);
        up += standin_uploaded();
        down += standin_downloaded();
        snprintf(what, sizeof what, "%s, %d tiles of %d bands, round %d", name, t.n, info->bands, round);
        check_same(what, &t, got);
        if (info->norm_errors)
            continue;
        whole = way == FROM_DEVICE || way == ON_DEVICE ? 0 : whole;
        expectf(way == ALONE || way == MIXED || up == whole, "%s: %ld bytes went up, expected %ld", what, up, whole);
        /* The test's own, and flags. */
        expectf(way < TO_DEVICE || down <= all + t.n * 64, "%s: %ld bytes came down, expected %ld", what, down, all);
    }
    /* Both ways on one run. */
    for (int i = 0; i < t.n; i++)
        for (int k = 0; k < info->emit; k++)
            memcpy(got[i][k].data, t.out[i][k].data, t.out[i][k].bytes);
    expectf(play_tiles(flying.run, &t, &err) == VGK_OK, "%s", err.text);
    check_same(name, &t, got);
    struct vg_run_info one, other;
    vg_run_info(plain.run, &one);
    vg_run_info(flying.run, &other);
    expect(one.frozen == other.frozen && one.frozen == (info->norm_mode == VG_NORM_FROZEN));
    expectf(!info->norm_errors || (other.errors_frames > 0 && fabs(other.error_mean - one.error_mean) < 1e-3), "%s: %d, %d frames, %g, %g",
            name, (int)one.errors_frames, (int)other.errors_frames, one.error_mean, other.error_mean);
    results_free(&t, got);
    tiles_free(&t);
    nets_unplan(&plain);
    nets_unplan(&flying);
}

static void same_bytes(void)
{
    struct vg_model *upscale = nets_shipped(models_dir, "upscale2x"), *style = nets_shipped(models_dir, "style3");
    check("upscale2x in tiles", upscale, (struct vg_plan_request){.width = 70, .height = 33, .tile_width = 40, .tile_height = 33},
          VGK_FRAME_I420, 3);
    check("upscale2x in rows of tiles", upscale,
          (struct vg_plan_request){.width = 70, .height = 61, .tile_width = 40, .tile_height = 40}, VGK_FRAME_PACKED, 3);
    check("upscale2x in f32", upscale, (struct vg_plan_request){.width = 24, .height = 20, .precision = VG_PRECISION_FP32},
          VGK_FRAME_PACKED, 5);
    check("upscale2x in bands", upscale, (struct vg_plan_request){.width = 24, .height = 40, .bands = 3}, VGK_FRAME_I420, 4);
    check("style3", style, (struct vg_plan_request){.width = 24, .height = 20}, VGK_FRAME_PACKED, 4);
    vg_model_unref(&upscale);
    vg_model_unref(&style);
    for (int seed = 0; seed < 6; seed++) {
        struct vgk_error err = {{0}};
        struct vg_model *m = nets_random(seed, true, &err);
        char name[32];
        snprintf(name, sizeof name, "random net %d", seed);
        if (m)
            check(name, m, (struct vg_plan_request){.width = 30, .height = 22}, seed % 2 ? VGK_FRAME_PACKED : VGK_FRAME_I420, 4);
        vg_model_unref(&m);
    }
}

/* Window of `in` frames to `out`. */
static struct vg_model *window_model(int in, int out)
{
    struct vgk_error err = {{0}};
    struct nets n;
    nets_begin(&n, 3 * in);
    int a = nets_unary(&n, nets_conv(&n, 0, (struct nets_conv){.out = 8, .kernel = 3}), "Relu");
    struct vg_model *m = nets_end(&n, nets_conv(&n, a, (struct nets_conv){.out = 3 * out, .kernel = 3}), &err);
    expectf(m && vg_model_summary(m)->window == in && vg_model_summary(m)->emit == out, "%s", err.text);
    return m;
}

/* Two pictures and a time in, the picture then out. */
static struct vg_model *between_model(void)
{
    struct vgk_error err = {{0}};
    struct ow *m = ow_new(17);
    ow_input(m, "a", 1, "1,3,h,w");
    ow_input(m, "b", 1, "1,3,h,w");
    ow_input(m, "t", 1, "1");
    ow_add(m, ow_node("Sub", "way", "b,a", "d"));
    ow_add(m, ow_node("Mul", "part", "d,t", "e"));
    ow_add(m, ow_node("Add", "there", "a,e", "y"));
    ow_output(m, "y", 1, "1,3,h,w");
    struct vg_model *model = nets_finish(m, &err);
    expectf(model && vg_model_summary(model)->centre < 0, "%s", err.text);
    return model;
}

static bool plan_flies(struct vg_model *m, struct vg_plan_request r)
{
    struct vgk_error err = {{0}};
    struct nets_planned p;
    r.flights = true;
    expectf(open_plan(cuda, m, r, &p, &err) == VGK_OK, "%s", err.text);
    bool flies = vg_plan_info(p.plan)->flight_bytes > 0;
    expect(flies == vg_run_flies(p.run));
    nets_unplan(&p);
    return flies;
}

/* Windows: each frame goes up once for all that it is in, the edge ones too. */
static void windows(void)
{
    struct vg_model *mean = window_model(3, 1), *each = window_model(3, 3), *between = between_model();
    struct vg_plan_request whole = {.width = 36, .height = 20}, tiles = {.width = 36, .height = 20, .tile_width = 28, .tile_height = 20};
    check("3 frames to one", mean, whole, VGK_FRAME_PACKED, 6);
    check("3 frames to one in tiles", mean, tiles, VGK_FRAME_I420, 6);
    check("3 frames to 3", each, whole, VGK_FRAME_I420, 6);
    check("3 frames to 3 in tiles", each, tiles, VGK_FRAME_PACKED, 6);
    check("between two", between, whole, VGK_FRAME_PACKED, 5);
    whole.emit = 3; /* three runs for two frames */
    expect(!plan_flies(between, whole));
    whole.emit = 0, whole.hop = 2; /* one window's results fade into the next one's */
    expect(!plan_flies(each, whole) && plan_flies(mean, (struct vg_plan_request){.width = 36, .height = 20}));
    vg_model_unref(&mean);
    vg_model_unref(&each);
    vg_model_unref(&between);
}

/* A tile, alone or of frame `number`. */
static enum vgk_status start(struct vg_run *run, const struct tiles *t, int i, uint64_t number, struct vgk_error *err)
{
    struct vgk_colour colour = nets_colour(t->frame[0].f.layout);
    struct vgk_frame in = tile_of(t, i, &t->frame[t->window_of[i]].f);
    return vg_run_start(run, t->column[i], t->row[i], number ? &t->frame[t->window_of[i]].f : &in, &number, &colour,
                        &t->out[i][0].f, err);
}

/* Frozen norms: what is measured first is run, and flies when the norms are constants; from the file all of it does. */
static void frozen(void)
{
    struct vgk_error err = {{0}};
    struct nets n;
    struct nets_planned p;
    nets_begin(&n, 3);
    int a = nets_norm(&n, nets_conv(&n, 0, (struct nets_conv){.out = 8, .kernel = 3}), 0);
    a = nets_norm(&n, nets_conv(&n, nets_unary(&n, a, "Relu"), (struct nets_conv){.out = 3, .kernel = 3}), 0);
    struct vg_model *m = nets_end(&n, nets_unary(&n, a, "Sigmoid"), &err);
    struct vg_plan_request r = {.width = 36, .height = 20, .norm_mode = VG_NORM_FROZEN, .norm_frames = 2, .norm_errors = true};
    for (int stored = 0; stored < 2; stored++) {
        r.tile_width = r.tile_height = 0;
        check(stored ? "stored norms" : "measured norms", m, r, VGK_FRAME_PACKED, 4);
        r.tile_width = 28, r.tile_height = 20;
        check(stored ? "stored norms in tiles" : "measured norms in tiles", m, r, VGK_FRAME_I420, 4);
        if (stored)
            break;
        r.flights = true;
        expect(open_plan(cuda, m, r, &p, &err) == VGK_OK);
        struct tiles t = tiles_make(vg_plan_info(p.plan), VGK_FRAME_PACKED, 3);
        expect(!vg_run_flies(p.run));
        expect(start(p.run, &t, 0, 0, &err) == VGK_ERR_INVALID && strstr(err.text, "norms"));
        expect(play_tiles(p.run, &t, &err) == VGK_OK && vg_run_flies(p.run));
        const struct vg_statistics *st = vg_run_statistics(p.run);
        int64_t counts[2] = {st->parts[0].count, st->parts[1].count};
        expect(st->n == 2 && vg_stored_make(&m->stored, 1, st->n, 0, counts));
        memcpy(m->stored.values, st->kept, (size_t)m->stored.total * sizeof *m->stored.values);
        tiles_free(&t);
        nets_unplan(&p);
        r.flights = false;
    }
    vg_model_unref(&m);
}

/* The last tile of each frame overflows: it is run again while the next one is on its way. */
static void overflow(void)
{
    struct vgk_error err = {{0}};
    struct vg_model *m = overflow_model(&err);
    struct vg_plan_request r = {.width = 96, .height = 32, .tile_width = 40, .tile_height = 32};
    struct nets_planned plain, flying;
    struct nets_picture got[MOST][MOST_OUT];
    struct vg_run_info info, want;
    expect(open_plan(cuda, m, r, &plain, &err) == VGK_OK);
    r.flights = true;
    expect(open_plan(cuda, m, r, &flying, &err) == VGK_OK);
    const struct vg_axis *x = &vg_plan_info(flying.plan)->grid->x;
    struct tiles t = tiles_make(vg_plan_info(flying.plan), VGK_FRAME_PACKED, 4);
    results_make(&t, got);
    for (int f = 0; f < t.n_frames; f++)
        for (size_t k = 0; k < t.frame[f].bytes; k++) {
            bool bright = (int)(k % (size_t)t.frame[f].f.stride[0]) / 3 > x->origin[x->n - 2] + x->tile;
            t.frame[f].data[k] = bright && k % 7 == 0 ? 255 : (uint8_t)(t.frame[f].data[k] % 20);
        }
    expect(play_tiles(plain.run, &t, &err) == VGK_OK);
    vg_run_info(plain.run, &want);
    for (enum way way = ALONE; way < WAYS; way++) {
        expectf(fly(flying.run, &t, way, beside, got, &err) == VGK_OK, "%s", err.text);
        check_same("tiles that overflow", &t, got);
        vg_run_info(flying.run, &info);
        expectf(info.rescued == (way + 1) * want.rescued && want.rescued == (uint64_t)t.n_frames,
                "%d tiles of %d run again, expected %d", (int)info.rescued, t.n, (int)want.rescued);
    }
    results_free(&t, got);
    tiles_free(&t);
    nets_unplan(&plain);
    nets_unplan(&flying);
    vg_model_unref(&m);
}

static const struct vg_plan_request tiled = {.width = 36, .height = 20, .tile_width = 28, .tile_height = 20, .flights = true};
enum flew { NOTHING, TILES, FRAMES };

static enum flew flies(const struct nets_planned *p)
{
    const struct vg_plan_info *info = p->plan ? vg_plan_info(p->plan) : NULL;
    return info && info->flight_frames ? FRAMES : info && info->flight_bytes ? TILES : NOTHING;
}

/* What nobody waits for to its end, and what stops in the middle, leaves nothing behind. */
static void given_up(void)
{
    struct vg_model *m = nets_shipped(models_dir, "upscale2x");
    struct vgk_error err = {{0}};
    struct nets_planned p;
    struct nets_picture got[MOST][MOST_OUT];
    int stop = 0;
    expect(open_plan(cuda, m, tiled, &p, &err) == VGK_OK && flies(&p) == FRAMES);
    struct tiles t = tiles_make(vg_plan_info(p.plan), VGK_FRAME_PACKED, 2);
    expect(t.n == 4);
    results_make(&t, got);
    expect(play_tiles(p.run, &t, &err) == VGK_OK);
    vg_run_watch(p.run, &stop);
    expect(vg_run_wait(p.run, &got[0][0].f, &err) == VGK_ERR_INVALID);
    expect(start(p.run, &t, 0, 0, &err) == VGK_OK);
    expect(start(p.run, &t, 1, 0, &err) == VGK_OK);
    expect(start(p.run, &t, 2, 0, &err) == VGK_ERR_INVALID);
    expect(vg_run_wait(p.run, NULL, &err) == VGK_OK && vg_run_flying(p.run) == 1);
    stop = 1;
    expect(start(p.run, &t, 2, 0, &err) == VGK_ERR_DEVICE);
    stop = 0;
    expect(vg_run_flying(p.run) == 1 && vg_run_wait(p.run, NULL, &err) == VGK_OK && vg_run_flying(p.run) == 0);
    expect(fly(p.run, &t, ALONE, beside, got, &err) == VGK_OK);
    check_same("after tiles that were given up", &t, got);
    /* Of a frame whose first tile was given up the rows are there, or come again. */
    const uint64_t number = 900;
    stop = 1;
    expect(start(p.run, &t, 0, number, &err) == VGK_ERR_DEVICE);
    stop = 0;
    for (int i = 0; i < 2; i++)
        expect(start(p.run, &t, i, number, &err) == VGK_OK);
    for (int i = 0; i < 2; i++)
        expect(vg_run_wait(p.run, &got[i][0].f, &err) == VGK_OK);
    check_same("of a frame that was given up", &t, got);
    struct vgk_colour colour = nets_colour(VGK_FRAME_PACKED);
    struct vgk_frame tile = tile_of(&t, 0, &t.frame[0].f);
    expect(vg_run_start(p.run, 1, 0, &tile, &number, &colour, &t.out[0][0].f, &err) == VGK_ERR_INVALID);
    expect(vg_run_start(p.run, 2, 0, &t.frame[0].f, &number, &colour, &t.out[0][0].f, &err) == VGK_ERR_INVALID);
    expect(vg_run_flying(p.run) == 0);
    /* Closed with two on their way. */
    expect(start(p.run, &t, 0, 0, &err) == VGK_OK);
    expect(start(p.run, &t, 1, 0, &err) == VGK_OK);
    nets_unplan(&p);
    results_free(&t, got);
    tiles_free(&t);
    vg_model_unref(&m);
}

/* Frames that take more room than was planned are refused. */
static void wrong_format(void)
{
    struct vg_model *m = nets_shipped(models_dir, "upscale2x");
    struct vgk_error err = {{0}};
    struct nets_planned p;
    struct vg_plan_request r = {.width = 24, .height = 20, .chroma_x = 2, .chroma_y = 2, .flights = true};
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, 24, 20, true), out = nets_picture(VGK_FRAME_PACKED, 48, 40, false);
    struct vgk_colour colour = nets_colour(VGK_FRAME_PACKED);
    expect(open_plan(cuda, m, r, &p, &err) == VGK_OK);
    uint64_t number = 0;
    expect(vg_run_start(p.run, 0, 0, &in.f, &number, &colour, &out.f, &err) == VGK_ERR_INVALID && strstr(err.text, "room for"));
    expect(vg_run_flying(p.run) == 0);
    free(in.data), free(out.data);
    nets_unplan(&p);
    vg_model_unref(&m);
}

/* Where all that comes lies on the device, room is for what goes out only; what comes from the host is refused. */
static void in_device(void)
{
    struct vg_model *m = window_model(3, 1);
    struct vgk_error err = {{0}};
    struct nets_planned p, both;
    struct nets_picture got[MOST][MOST_OUT];
    struct vg_plan_request r = {.width = 36, .height = 20, .flights = true};
    expect(open_plan(cuda, m, r, &both, &err) == VGK_OK);
    r.in_device = true;
    expect(open_plan(cuda, m, r, &p, &err) == VGK_OK);
    const struct vg_plan_info *info = vg_plan_info(p.plan);
    expectf(info->flight_bytes && 7 * info->flight_bytes == vg_plan_info(both.plan)->flight_bytes, "%zu of %zu bytes",
            info->flight_bytes, vg_plan_info(both.plan)->flight_bytes);
    struct tiles t = tiles_make(info, VGK_FRAME_PACKED, 4);
    results_make(&t, got);
    expect(play_tiles(both.run, &t, &err) == VGK_OK);
    for (enum way way = FROM_DEVICE; way <= ON_DEVICE; way += ON_DEVICE - FROM_DEVICE) {
        expectf(fly(p.run, &t, way, beside, got, &err) == VGK_OK, "%s", err.text);
        check_same("frames on the device", &t, got);
    }
    expect(fly(p.run, &t, CUT, beside, got, &err) == VGK_ERR_INVALID && strstr(err.text, "room for 0"));
    results_free(&t, got);
    tiles_free(&t);
    nets_unplan(&both);
    nets_unplan(&p);
    vg_model_unref(&m);
}

/* --- faults, memory --- */

static void set(const char *name, long value)
{
    char text[32];
    snprintf(text, sizeof text, "%ld", value);
    setenv(name, text, 1);
}

static enum vgk_status all_of_it(struct vg_model *m, int frames, size_t max_bytes, enum flew *flew, struct vgk_error *err)
{
    struct vgk_device *dev = NULL;
    struct nets_planned p = {NULL, NULL};
    struct vg_plan_request r = tiled;
    enum vgk_status s = vgk_cuda.open(&(struct vgk_device_options){.max_bytes = max_bytes}, &dev, err);
    r.max_bytes = max_bytes;
    if (!s)
        s = open_plan(dev, m, r, &p, err);
    *flew = flies(&p);
    if (!s) {
        struct tiles t = tiles_make(vg_plan_info(p.plan), VGK_FRAME_PACKED, frames);
        s = *flew ? fly(p.run, &t, *flew == FRAMES ? CUT : ALONE, beside, t.out, err) : play_tiles(p.run, &t, err);
        tiles_free(&t);
    }
    nets_unplan(&p);
    if (dev)
        expect(vgk_cuda.bytes_now(dev) == 0);
    vgk_cuda.close(&dev);
    return s;
}

/* With the setting at 1, 2, 3 ... until nothing fails any more. */
static void at_every(const char *setting, int least, struct vg_model *m, int frames)
{
    int failed = 0, objects = standin_objects();
    enum vgk_status s = VGK_ERR_DEVICE;
    enum flew flew = NOTHING;
    bool told = true;
    for (int n = 1; n < 2000 && s && told; n++) {
        struct vgk_error err = {{0}};
        vgk_cuda.free(cuda, vgk_cuda.alloc(cuda, 1)); /* calls without it: counts from here */
        set(setting, n);
        s = all_of_it(m, frames, 0, &flew, &err);
        unsetenv(setting);
        told = !s || (*err.text && (s == VGK_ERR_DEVICE || s == VGK_ERR_NOMEM));
        expectf(told, "%s=%d: status %d, '%s'", setting, n, s, err.text);
        expectf(standin_objects() == objects, "%s=%d: %d objects are left", setting, n, standin_objects() - objects);
        failed += s != VGK_OK;
    }
    expectf(s == VGK_OK && flew == FRAMES && failed >= least, "%s: %d failed", setting, failed);
    vg_model_unref(&m);
}

static void lost_at_every_call(void)
{
    at_every("VIDGEN_STANDIN_FAIL", 80, nets_shipped(models_dir, "upscale2x"), 2);
    at_every("VIDGEN_STANDIN_FAIL", 80, window_model(3, 1), 4);
}

static void no_memory_at_every_allocation(void)
{
    at_every("VIDGEN_STANDIN_NOMEM", 4, nets_shipped(models_dir, "upscale2x"), 2);
    at_every("VIDGEN_STANDIN_NOMEM", 4, window_model(3, 3), 3);
}

static void memory(void)
{
    struct vg_model *m = nets_shipped(models_dir, "upscale2x");
    struct vgk_error err = {{0}};
    struct nets_planned p;
    enum flew flew;
    expect(open_plan(cuda, m, tiled, &p, &err) == VGK_OK);
    size_t bytes = vg_plan_info(p.plan)->arena_bytes, alone;
    char *text = vg_plan_text(p.plan), *json = vg_plan_json(p.plan);
    expectf(text && strstr(text, "rows go up once") && strstr(text, "pinned host memory") && json && strstr(json, "\"staging\": "),
            "%s", text);
    free(text), free(json);
    nets_unplan(&p);
    expectf(all_of_it(m, 2, bytes, &flew, &err) == VGK_OK && flew == FRAMES, "%s", err.text);
    /* Rather tile by tile, and rather one after the other, than none. */
    expectf(all_of_it(m, 2, bytes - 1, &flew, &err) == VGK_OK && flew == TILES, "%s", err.text);
    struct vg_plan_request less = tiled;
    less.max_bytes = bytes - 1;
    expect(open_plan(cuda, m, less, &p, &err) == VGK_OK && vg_plan_info(p.plan)->arena_bytes < bytes);
    bytes = vg_plan_info(p.plan)->arena_bytes;
    alone = bytes - vg_plan_info(p.plan)->flight_bytes;
    nets_unplan(&p);
    expectf(all_of_it(m, 2, bytes, &flew, &err) == VGK_OK && flew == TILES, "%s", err.text);
    expectf(all_of_it(m, 2, bytes - 1, &flew, &err) == VGK_OK && flew == NOTHING, "%s", err.text);
    expectf(all_of_it(m, 2, alone, &flew, &err) == VGK_OK && flew == NOTHING, "%s", err.text);
    vg_model_unref(&m);
}

/* --- recordings --- */

static long launches_of(struct vg_run *run, struct tiles *t)
{
    struct vgk_error err = {{0}};
    long before = standin_launches();
    expectf(play_tiles(run, t, &err) == VGK_OK, "%s", err.text);
    return standin_launches() - before;
}

/* The first tile's ops one by one, from then on one launch; new values of parameters count. */
static void recordings(void)
{
    struct vg_model *m = nets_shipped(models_dir, "style3");
    struct vgk_error err = {{0}};
    struct nets_planned one, recorded;
    struct vg_plan_request r = {.width = 24, .height = 20};
    struct vg_run_info info, none;
    int graphs = standin_graphs();
    expect(open_plan(cuda, m, r, &recorded, &err) == VGK_OK && open_plan(cuda, m, r, &one, &err) == VGK_OK);
    struct tiles t = tiles_make(vg_plan_info(one.plan), VGK_FRAME_PACKED, 1), u = t;
    results_make(&t, u.out);
    const float *defaults = vg_model_summary(m)->parameters[0].defaults, other[3] = {0, 0, 1}, *values[] = {defaults, other, defaults};
    for (int round = 0; round < 6; round++) {
        if (round % 2 == 0) {
            expect(vg_run_set_parameter(one.run, 0, values[round / 2], &err) == VGK_OK);
            expect(vg_run_set_parameter(recorded.run, 0, values[round / 2], &err) == VGK_OK);
        }
        setenv("VIDGEN_CUDA_GRAPH", "no", 1);
        long a = launches_of(one.run, &t);
        unsetenv("VIDGEN_CUDA_GRAPH");
        long b = launches_of(recorded.run, &u);
        expect(!check_same("recorded", &t, u.out));
        vg_run_info(one.run, &none);
        vg_run_info(recorded.run, &info);
        expectf(info.recordings == 1 && info.recorded > 10 && none.recordings == 0, "%d ops in %d, %d", info.recorded,
                info.recordings, none.recordings);
        /* READ, WRITE and one in place of its ops, which took a launch each at least. */
        if (round % 2)
            expectf(b == 3 && a >= info.recorded + 2, "round %d: %ld launches, %ld without recordings", round, b, a);
    }
    nets_unplan(&recorded);
    nets_unplan(&one);
    expect(standin_graphs() == graphs);
    results_free(&t, u.out);
    tiles_free(&t);
    vg_model_unref(&m);
}

/* What cannot be recorded is launched one by one, and works. */
static void not_recorded(void)
{
    enum vgk_status s = vgk_cuda.record_begin(cuda, NULL);
    char bytes[8];
    struct vgk_recording *recording = NULL;
    struct vgk_error err = {{0}};
    void *block = vgk_cuda.alloc(cuda, 256);
    expect(s == VGK_OK && !block); /* that would have to wait for the device */
    expect(vgk_cuda.record_end(cuda, &recording, &err) == VGK_ERR_DEVICE && !recording && strstr(err.text, "capture"));
    block = vgk_cuda.alloc(cuda, 256);
    expect(block && vgk_cuda.upload(cuda, "1234567", block, 8, &err) == VGK_OK);
    expect(vgk_cuda.record_begin(cuda, NULL) == VGK_OK);
    expect(vgk_cuda.download(cuda, block, bytes, 8, &err) == VGK_ERR_DEVICE);
    expect(vgk_cuda.record_end(cuda, &recording, &err) == VGK_ERR_DEVICE && !recording);
    expect(vgk_cuda.download(cuda, block, bytes, 8, &err) == VGK_OK && !strcmp(bytes, "1234567"));
    vgk_cuda.free(cuda, block);
}

static void *allocate(void *other)
{
    void *block = vgk_cuda.alloc(other, 256);
    if (block)
        vgk_cuda.free(other, block);
    return block;
}

/* Another element's thread may allocate meanwhile. */
static void recorded_beside(void)
{
    struct vgk_device *other;
    struct vgk_recording *recording = NULL;
    struct vgk_error err = {{0}};
    pthread_t thread;
    void *block;
    expect(vgk_cuda.open(&(struct vgk_device_options){0}, &other, &err) == VGK_OK);
    expect(vgk_cuda.record_begin(cuda, &err) == VGK_OK);
    expect(!pthread_create(&thread, NULL, allocate, other) && !pthread_join(thread, &block) && block);
    expect(vgk_cuda.record_end(cuda, &recording, &err) == VGK_OK && recording);
    vgk_cuda.record_free(cuda, &recording);
    vgk_cuda.close(&other);
}

int main(int argc, char **argv)
{
    struct vgk_error err = {{0}};
    models_dir = argc > 1 ? argv[1] : "pipelines/models";
    if (vgk_cuda.open(&(struct vgk_device_options){0}, &cuda, &err) || vgk_cuda.open(&(struct vgk_device_options){0}, &beside, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    kit_seed(5);
    run(same_bytes);
    run(windows);
    run(frozen);
    run(overflow);
    run(given_up);
    run(wrong_format);
    run(in_device);
    run(recordings);
    run(not_recorded);
    run(recorded_beside);
    run(lost_at_every_call);
    run(no_memory_at_every_allocation);
    run(memory);
    expect(vgk_cuda.bytes_now(cuda) == 0 && vgk_cuda.bytes_now(beside) == 0);
    vgk_cuda.close(&beside);
    vgk_cuda.close(&cuda);
    return kit_done();
}
