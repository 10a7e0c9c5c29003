/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tiles in flight, and recordings, on the stand-in: the same bytes as one tile after the other, whatever streams do first;
 * what is lost, given up, overflows, or does not fit.
 *
 *     test-cuda-flights MODELS */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "kernels/cuda_load.h"
#include "kit.h"
#include "model/run_internal.h"
#include "nets.h"
#include "overflow.h"
#include "standin/counters.h"

static const char *models_dir;
static struct vgk_device *cuda;

static enum vgk_status open_plan(struct vgk_device *dev, struct vg_model *m, struct vg_plan_request r,
                                 struct nets_planned *p, struct vgk_error *err)
{
    return nets_plan(p, m, &vgk_cuda, dev, r, err);
}

/* --- a stream of tiles --- */

enum { MOST = 64 };

struct tiles {
    int n, n_frames, frame_of[MOST], column[MOST], row[MOST];
    struct nets_picture frame[MOST], in[MOST], out[MOST];
};

/* The tiles of the frames as they are now. */
static void cut(struct tiles *t, const struct vg_grid *g)
{
    const struct vg_layout layout = nets_layout(t->in[0].f.layout);
    for (int i = 0; i < t->n; i++) {
        struct vg_picture from = nets_planes(&t->frame[t->frame_of[i]]), to = nets_planes(&t->in[i]);
        vg_copy_rect(&layout, &to, 0, 0, &from, g->x.origin[t->column[i]], g->y.origin[t->row[i]], t->in[i].f.width,
                     t->in[i].f.height);
    }
}

static struct tiles tiles_make(const struct vg_grid *g, enum vgk_frame_layout layout, int frames)
{
    const struct vg_axis *x = &g->x, *y = &g->y;
    struct tiles t = {.n_frames = frames};
    for (int f = 0; f < frames; f++) {
        t.frame[f] = nets_picture(layout, x->frame, y->frame, true);
        for (int row = 0; row < y->n; row++)
            for (int column = 0; column < x->n && t.n < MOST; column++, t.n++) {
                int w = x->frame - x->origin[column], h = y->frame - y->origin[row];
                w = w < x->tile ? w : x->tile;
                h = h < y->tile ? h : y->tile;
                t.frame_of[t.n] = f;
                t.column[t.n] = column;
                t.row[t.n] = row;
                t.in[t.n] = nets_picture(layout, w, h, false);
                t.out[t.n] = nets_picture(layout, vg_axis_scale(x, w), vg_axis_scale(y, h), false);
            }
    }
    cut(&t, g);
    return t;
}

static void tiles_free(struct tiles *t)
{
    for (int i = 0; i < t->n_frames; i++)
        free(t->frame[i].data);
    for (int i = 0; i < t->n; i++)
        free(t->in[i].data), free(t->out[i].data);
}

static bool is_first(const struct tiles *t, int i) { return !i || t->frame_of[i - 1] != t->frame_of[i]; }
static bool is_last(const struct tiles *t, int i) { return i + 1 == t->n || t->frame_of[i + 1] != t->frame_of[i]; }

/* Where there is room to compare with exact norms, each third frame is, from the second on. */
static bool is_compared(const struct vg_run *run, const struct tiles *t, int i)
{
    return vg_plan_info(run->plan)->norm_errors && t->frame_of[i] % 3 == 1;
}

/* A tile that is waited for at once, to `out`. */
static enum vgk_status run_one(struct vg_run *run, const struct tiles *t, int i, const struct vgk_frame *out, struct vgk_error *err)
{
    const struct vg_grid *g = vg_plan_info(run->plan)->grid;
    struct vgk_colour colour = nets_colour(t->in[0].f.layout);
    struct vgk_frame whole = t->out[i].f;
    enum vgk_status s = VGK_OK;
    whole.width = vg_axis_scale(&g->x, g->x.frame);
    whole.height = vg_axis_scale(&g->y, g->y.frame);
    if (is_first(t, i))
        s = vg_run_begin(run, &t->frame[t->frame_of[i]].f, &colour, is_compared(run, t, i) ? &whole : NULL, err);
    return s ? s : vg_run_tile(run, t->column[i], t->row[i], &t->in[i].f, &colour, out, err);
}

/* One after the other. */
static enum vgk_status play(struct vg_run *run, struct tiles *t, struct vgk_error *err)
{
    enum vgk_status s = VGK_OK;
    for (int i = 0; i < t->n && !s; i++) {
        s = run_one(run, t, i, &t->out[i].f, err);
        if (is_last(t, i))
            vg_run_next(run);
    }
    return s;
}

static struct nets_picture copy(const struct nets_picture *p)
{
    struct nets_picture r = nets_picture(p->f.layout, p->f.width, p->f.height, false);
    memcpy(r.data, p->data, r.bytes);
    return r;
}

static void spoil(struct nets_picture *p)
{
    memset(p->data, 0x5a, p->bytes);
    free(p->data);
    p->data = NULL;
}

/* How tiles are given: alone, cut from their frames, or each third one alone. */
enum way { ALONE, CUT, MIXED };

/* All that fly. */
static enum vgk_status land(struct vg_run *run, struct nets_picture *out, int *waited, struct vgk_error *err)
{
    enum vgk_status s = VGK_OK;
    while (!s && vg_run_flying(run))
        s = vg_run_wait(run, &out[(*waited)++].f, err);
    return s;
}

/* In flight, where that may be; what went in is gone as soon as a tile has been started, or the last of its frame. */
static enum vgk_status fly(struct vg_run *run, const struct tiles *t, enum way way, struct nets_picture *out,
                           struct vgk_error *err)
{
    static uint64_t number;
    struct vgk_colour colour = nets_colour(t->in[0].f.layout);
    enum vgk_status s = VGK_OK;
    struct nets_picture frame = {.data = NULL};
    int waited = 0;
    for (int i = 0; i < t->n && !s; i++) {
        bool first = is_first(t, i), last = is_last(t, i);
        if (!vg_run_flies(run) || (first && is_compared(run, t, i))) {
            s = land(run, out, &waited, err);
            s = s ? s : run_one(run, t, i, &out[waited++].f, err);
            if (last)
                vg_run_next(run);
            continue;
        }
        bool alone = way == ALONE || (way == MIXED && i % 3 == 1);
        struct nets_picture in = copy(&t->in[i]);
        struct vgk_frame form = t->out[i].f;
        if (first || !frame.data) {
            number++;
            frame = copy(&t->frame[t->frame_of[i]]);
        }
        for (int k = 0; k < 3; k++)
            form.plane[k] = NULL;
        s = vg_run_start(run, t->column[i], t->row[i], alone ? &in.f : &frame.f, alone ? 0 : number, &colour, &form, err);
        spoil(&in);
        if (last) {
            spoil(&frame);
            vg_run_next(run);
        }
        if (!s && vg_run_flying(run) == VGK_FLIGHTS)
            s = vg_run_wait(run, &out[waited++].f, err);
    }
    if (frame.data) /* something failed */
        spoil(&frame);
    return s ? s : land(run, out, &waited, err);
}

/* Bytes that differ. */
static int check_same(const char *what, const struct tiles *t, const struct nets_picture *got)
{
    int differ = 0;
    for (int i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->out[i].bytes; k++)
            differ += t->out[i].data[k] != got[i].data[k];
    expectf(!differ, "%s: %d bytes differ", what, differ);
    return differ;
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
    struct nets_picture got[MOST];
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
    struct tiles t = tiles_make(info->grid, layout, frames);
    for (int i = 0; i < t.n; i++)
        got[i] = nets_picture(layout, t.out[i].f.width, t.out[i].f.height, false);
    for (int round = 0; round < (in_tiles ? 4 : 2); round++) { /* from the second time on all of it is recorded */
        enum way way = round ? (enum way)(round - 1) : ALONE;
        for (int i = 0; i < t.n; i++)
            memset(got[i].data, 0, got[i].bytes);
        expectf((round && info->norm_mode != VG_NORM_FROZEN) || play(plain.run, &t, &err) == VGK_OK, "%s", err.text);
        long before = standin_uploaded();
        expectf(fly(flying.run, &t, way, got, &err) == VGK_OK, "%s", err.text);
        snprintf(what, sizeof what, "%s, %d tiles of %d bands, round %d", name, t.n, info->bands, round);
        check_same(what, &t, got);
        long up = standin_uploaded() - before;
        expectf(way != CUT || info->norm_errors || up == frames * frame_bytes(&t.frame[0].f), "%s: %ld bytes went up, expected %d frames of %ld", what,
                up, frames, frame_bytes(&t.frame[0].f));
    }
    /* Both ways on one run. */
    for (int i = 0; i < t.n; i++)
        memcpy(got[i].data, t.out[i].data, t.out[i].bytes);
    expectf(play(flying.run, &t, &err) == VGK_OK, "%s", err.text);
    check_same(name, &t, got);
    struct vg_run_info one, other;
    vg_run_info(plain.run, &one);
    vg_run_info(flying.run, &other);
    expect(one.frozen == other.frozen && one.frozen == (info->norm_mode == VG_NORM_FROZEN));
    expectf(!info->norm_errors || (other.errors_frames > 0 && fabs(other.error_mean - one.error_mean) < 1e-3), "%s: %d, %d frames, %g, %g",
            name, (int)one.errors_frames, (int)other.errors_frames, one.error_mean, other.error_mean);
    for (int i = 0; i < t.n; i++)
        free(got[i].data);
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
        struct tiles t = tiles_make(vg_plan_info(p.plan)->grid, VGK_FRAME_PACKED, 3);
        struct vgk_colour colour = nets_colour(VGK_FRAME_PACKED);
        expect(!vg_run_flies(p.run));
        expect(vg_run_start(p.run, 0, 0, &t.in[0].f, 0, &colour, &t.out[0].f, &err) == VGK_ERR_INVALID && strstr(err.text, "norms"));
        expect(play(p.run, &t, &err) == VGK_OK && vg_run_flies(p.run));
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
    struct nets_picture got[MOST];
    struct vg_run_info info, want;
    expect(open_plan(cuda, m, r, &plain, &err) == VGK_OK);
    r.flights = true;
    expect(open_plan(cuda, m, r, &flying, &err) == VGK_OK);
    const struct vg_axis *x = &vg_plan_info(flying.plan)->grid->x;
    struct tiles t = tiles_make(vg_plan_info(flying.plan)->grid, VGK_FRAME_PACKED, 4);
    for (int i = 0; i < t.n; i++) {
        got[i] = nets_picture(VGK_FRAME_PACKED, t.out[i].f.width, t.out[i].f.height, false);
    }
    for (int f = 0; f < t.n_frames; f++)
        for (size_t k = 0; k < t.frame[f].bytes; k++) {
            bool bright = (int)(k % (size_t)t.frame[f].f.stride[0]) / 3 > x->origin[x->n - 2] + x->tile;
            t.frame[f].data[k] = bright && k % 7 == 0 ? 255 : (uint8_t)(t.frame[f].data[k] % 20);
        }
    cut(&t, vg_plan_info(flying.plan)->grid);
    expect(play(plain.run, &t, &err) == VGK_OK);
    vg_run_info(plain.run, &want);
    for (enum way way = ALONE; way <= MIXED; way++) {
        expectf(fly(flying.run, &t, way, got, &err) == VGK_OK, "%s", err.text);
        check_same("tiles that overflow", &t, got);
        vg_run_info(flying.run, &info);
        expectf(info.rescued == (way + 1) * want.rescued && want.rescued == (uint64_t)t.n_frames,
                "%d tiles of %d run again, expected %d", (int)info.rescued, t.n, (int)want.rescued);
    }
    for (int i = 0; i < t.n; i++)
        free(got[i].data);
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
    struct nets_picture got[MOST];
    int stop = 0;
    expect(open_plan(cuda, m, tiled, &p, &err) == VGK_OK && flies(&p) == FRAMES);
    struct tiles t = tiles_make(vg_plan_info(p.plan)->grid, VGK_FRAME_PACKED, 2);
    expect(t.n == 4);
    struct vgk_colour colour = nets_colour(VGK_FRAME_PACKED);
    for (int i = 0; i < t.n; i++)
        got[i] = nets_picture(VGK_FRAME_PACKED, t.out[i].f.width, t.out[i].f.height, false);
    expect(play(p.run, &t, &err) == VGK_OK);
    vg_run_watch(p.run, &stop);
    expect(vg_run_wait(p.run, &got[0].f, &err) == VGK_ERR_INVALID);
    expect(vg_run_start(p.run, 0, 0, &t.in[0].f, 0, &colour, &t.out[0].f, &err) == VGK_OK);
    expect(vg_run_start(p.run, 0, 0, &t.in[1].f, 0, &colour, &t.out[1].f, &err) == VGK_OK);
    expect(vg_run_start(p.run, 0, 0, &t.in[2].f, 0, &colour, &t.out[2].f, &err) == VGK_ERR_INVALID);
    expect(vg_run_wait(p.run, NULL, &err) == VGK_OK && vg_run_flying(p.run) == 1);
    stop = 1;
    expect(vg_run_start(p.run, 0, 0, &t.in[2].f, 0, &colour, &t.out[2].f, &err) == VGK_ERR_DEVICE);
    stop = 0;
    expect(vg_run_flying(p.run) == 1 && vg_run_wait(p.run, NULL, &err) == VGK_OK && vg_run_flying(p.run) == 0);
    expect(fly(p.run, &t, ALONE, got, &err) == VGK_OK);
    check_same("after tiles that were given up", &t, got);
    /* Of a frame whose first tile was given up the rows are there, or come again. */
    const uint64_t number = 900;
    stop = 1;
    expect(vg_run_start(p.run, 0, 0, &t.frame[0].f, number, &colour, &t.out[0].f, &err) == VGK_ERR_DEVICE);
    stop = 0;
    for (int i = 0; i < 2; i++)
        expect(vg_run_start(p.run, i, 0, &t.frame[0].f, number, &colour, &t.out[i].f, &err) == VGK_OK);
    for (int i = 0; i < 2; i++)
        expect(vg_run_wait(p.run, &got[i].f, &err) == VGK_OK);
    check_same("of a frame that was given up", &t, got);
    expect(vg_run_start(p.run, 1, 0, &t.in[0].f, number, &colour, &t.out[0].f, &err) == VGK_ERR_INVALID);
    expect(vg_run_start(p.run, 2, 0, &t.frame[0].f, number, &colour, &t.out[0].f, &err) == VGK_ERR_INVALID);
    expect(vg_run_flying(p.run) == 0);
    /* Closed with two on their way. */
    expect(vg_run_start(p.run, 0, 0, &t.in[0].f, 0, &colour, &t.out[0].f, &err) == VGK_OK);
    expect(vg_run_start(p.run, 0, 0, &t.in[1].f, 0, &colour, &t.out[1].f, &err) == VGK_OK);
    nets_unplan(&p);
    for (int i = 0; i < t.n; i++)
        free(got[i].data);
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
    expect(vg_run_start(p.run, 0, 0, &in.f, 0, &colour, &out.f, &err) == VGK_ERR_INVALID && strstr(err.text, "room for"));
    expect(vg_run_flying(p.run) == 0);
    free(in.data), free(out.data);
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

static enum vgk_status all_of_it(struct vg_model *m, size_t max_bytes, enum flew *flew, struct vgk_error *err)
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
        struct tiles t = tiles_make(vg_plan_info(p.plan)->grid, VGK_FRAME_PACKED, 2);
        s = *flew ? fly(p.run, &t, *flew == FRAMES ? CUT : ALONE, t.out, err) : play(p.run, &t, err);
        tiles_free(&t);
    }
    nets_unplan(&p);
    if (dev)
        expect(vgk_cuda.bytes_now(dev) == 0);
    vgk_cuda.close(&dev);
    return s;
}

/* With the setting at 1, 2, 3 ... until nothing fails any more. */
static void at_every(const char *setting, int least)
{
    struct vg_model *m = nets_shipped(models_dir, "upscale2x");
    int failed = 0, objects = standin_objects();
    enum vgk_status s = VGK_ERR_DEVICE;
    enum flew flew = NOTHING;
    bool told = true;
    for (int n = 1; n < 2000 && s && told; n++) {
        struct vgk_error err = {{0}};
        vgk_cuda.free(cuda, vgk_cuda.alloc(cuda, 1)); /* calls without it: counts from here */
        set(setting, n);
        s = all_of_it(m, 0, &flew, &err);
        unsetenv(setting);
        told = !s || (*err.text && (s == VGK_ERR_DEVICE || s == VGK_ERR_NOMEM));
        expectf(told, "%s=%d: status %d, '%s'", setting, n, s, err.text);
        expectf(standin_objects() == objects, "%s=%d: %d objects are left", setting, n, standin_objects() - objects);
        failed += s != VGK_OK;
    }
    expectf(s == VGK_OK && flew == FRAMES && failed >= least, "%s: %d failed", setting, failed);
    vg_model_unref(&m);
}

static void lost_at_every_call(void) { at_every("VIDGEN_STANDIN_FAIL", 80); }
static void no_memory_at_every_allocation(void) { at_every("VIDGEN_STANDIN_NOMEM", 4); }

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
    expectf(all_of_it(m, bytes, &flew, &err) == VGK_OK && flew == FRAMES, "%s", err.text);
    /* Rather tile by tile, and rather one after the other, than none. */
    expectf(all_of_it(m, bytes - 1, &flew, &err) == VGK_OK && flew == TILES, "%s", err.text);
    struct vg_plan_request less = tiled;
    less.max_bytes = bytes - 1;
    expect(open_plan(cuda, m, less, &p, &err) == VGK_OK && vg_plan_info(p.plan)->arena_bytes < bytes);
    bytes = vg_plan_info(p.plan)->arena_bytes;
    alone = bytes - vg_plan_info(p.plan)->flight_bytes;
    nets_unplan(&p);
    expectf(all_of_it(m, bytes, &flew, &err) == VGK_OK && flew == TILES, "%s", err.text);
    expectf(all_of_it(m, bytes - 1, &flew, &err) == VGK_OK && flew == NOTHING, "%s", err.text);
    expectf(all_of_it(m, alone, &flew, &err) == VGK_OK && flew == NOTHING, "%s", err.text);
    vg_model_unref(&m);
}

/* --- recordings --- */

static long launches_of(struct vg_run *run, struct tiles *t)
{
    struct vgk_error err = {{0}};
    long before = standin_launches();
    expectf(play(run, t, &err) == VGK_OK, "%s", err.text);
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
    struct tiles t = tiles_make(vg_plan_info(one.plan)->grid, VGK_FRAME_PACKED, 1), u = t;
    u.out[0] = nets_picture(VGK_FRAME_PACKED, t.out[0].f.width, t.out[0].f.height, false);
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
    free(u.out[0].data);
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
    if (vgk_cuda.open(&(struct vgk_device_options){0}, &cuda, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    kit_seed(5);
    run(same_bytes);
    run(frozen);
    run(overflow);
    run(given_up);
    run(wrong_format);
    run(recordings);
    run(not_recorded);
    run(recorded_beside);
    run(lost_at_every_call);
    run(no_memory_at_every_allocation);
    run(memory);
    expect(vgk_cuda.bytes_now(cuda) == 0);
    vgk_cuda.close(&cuda);
    return kit_done();
}
