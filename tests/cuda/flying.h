/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Streams of tiles, of frames or of windows of frames, run one after the other or in flight. */
#ifndef FLYING_H
#define FLYING_H

#include <stdlib.h>

#include "clips.h"
#include "kernels/cuda_load.h"
#include "kit.h"
#include "model/run_internal.h"

enum { MOST = 64, MOST_FRAMES = 8, MOST_OUT = 3 };

struct tiles {
    const struct vg_plan_info *info; /* as long as the plan lives */
    int n, n_frames, n_windows, emit, window_of[MOST], column[MOST], row[MOST], width[MOST], height[MOST];
    struct nets_picture frame[MOST_FRAMES], out[MOST][MOST_OUT];
};

/* Number j of the window's frames: the edge ones are repeated, as they are in a stream. */
static inline int frame_of(const struct tiles *t, int window, int j)
{
    return clamp(window_begin(t->info, window) + j, t->n_frames);
}

static inline struct tiles tiles_make(const struct vg_plan_info *info, enum vgk_frame_layout layout, int frames)
{
    const struct vg_axis *x = &info->grid->x, *y = &info->grid->y;
    struct tiles t = {.info = info, .emit = info->emit, .n_frames = frames, .n_windows = (frames + info->hop - 1) / info->hop};
    for (int f = 0; f < frames; f++)
        t.frame[f] = nets_picture(layout, x->frame, y->frame, true);
    for (int w = 0; w < t.n_windows; w++)
        for (int row = 0; row < y->n; row++)
            for (int column = 0; column < x->n && t.n < MOST; column++, t.n++) {
                int width = x->frame - x->origin[column], height = y->frame - y->origin[row];
                width = width < x->tile ? width : x->tile;
                height = height < y->tile ? height : y->tile;
                t.window_of[t.n] = w;
                t.column[t.n] = column;
                t.row[t.n] = row;
                t.width[t.n] = width;
                t.height[t.n] = height;
                for (int k = 0; k < info->emit; k++)
                    t.out[t.n][k] = nets_picture(layout, vg_axis_scale(x, width), vg_axis_scale(y, height), false);
            }
    return t;
}

/* Room for the same results once more. */
static inline void results_make(const struct tiles *t, struct nets_picture got[MOST][MOST_OUT])
{
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < t->emit; k++)
            got[i][k] = nets_picture(t->out[i][k].f.layout, t->out[i][k].f.width, t->out[i][k].f.height, false);
}

static inline void results_free(const struct tiles *t, struct nets_picture got[MOST][MOST_OUT])
{
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < t->emit; k++)
            free(got[i][k].data);
}

static inline void tiles_free(struct tiles *t)
{
    for (int i = 0; i < t->n_frames; i++)
        free(t->frame[i].data);
    results_free(t, t->out);
}

/* Bytes that differ. */
static inline int check_same(const char *what, const struct tiles *t, struct nets_picture got[MOST][MOST_OUT])
{
    int differ = 0;
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < t->emit; k++)
            for (size_t b = 0; b < t->out[i][k].bytes; b++)
                differ += t->out[i][k].data[b] != got[i][k].data[b];
    expectf(!differ, "%s: %d bytes differ", what, differ);
    return differ;
}

static inline bool is_first(const struct tiles *t, int i) { return !i || t->window_of[i - 1] != t->window_of[i]; }
static inline bool is_last(const struct tiles *t, int i) { return i + 1 == t->n || t->window_of[i + 1] != t->window_of[i]; }

/* Where there is room to compare with exact norms, each third frame is, from the second on. */
static inline bool is_compared(const struct tiles *t, int i) { return t->info->norm_errors && t->window_of[i] % 3 == 1; }

static inline struct vgk_frame tile_of(const struct tiles *t, int i, const struct vgk_frame *frame)
{
    const struct vg_grid *g = t->info->grid;
    return vgk_frame_part(frame, g->x.origin[t->column[i]], g->y.origin[t->row[i]], t->width[i], t->height[i]);
}

/* A tile that is waited for at once, to `out`. */
static inline enum vgk_status run_one(struct vg_run *run, const struct tiles *t, int i, const struct nets_picture *out,
                                      struct vgk_error *err)
{
    const struct vg_grid *g = t->info->grid;
    struct vgk_colour colour = nets_colour(t->frame[0].f.layout);
    struct vgk_frame in[VGK_FLIGHT_FRAMES], to[MOST_OUT], whole = t->out[i][0].f;
    enum vgk_status s = VGK_OK;
    for (int j = 0; j < t->info->window; j++)
        in[j] = tile_of(t, i, &t->frame[frame_of(t, t->window_of[i], j)].f);
    for (int k = 0; k < t->emit; k++)
        to[k] = out[k].f;
    whole.width = vg_axis_scale(&g->x, g->x.frame);
    whole.height = vg_axis_scale(&g->y, g->y.frame);
    if (is_first(t, i) && t->info->window == 1)
        s = vg_run_begin(run, &t->frame[t->window_of[i]].f, &colour, is_compared(t, i) ? &whole : NULL, err);
    return s ? s : vg_run_tile(run, t->column[i], t->row[i], in, &colour, to, err);
}

/* One after the other. */
static inline enum vgk_status play_tiles(struct vg_run *run, struct tiles *t, struct vgk_error *err)
{
    enum vgk_status s = VGK_OK;
    vg_run_reset(run);
    for (int i = 0; i < t->n && !s; i++) {
        s = run_one(run, t, i, t->out[i], err);
        if (is_last(t, i))
            vg_run_next(run);
    }
    return s;
}

/* How tiles are given: alone, cut from their frames, or each third one alone; frames that come from or go to the device's memory
 * or both. */
enum way { ALONE, CUT, MIXED, FROM_DEVICE, TO_DEVICE, ON_DEVICE, WAYS };

/* On the device, as it lies on the host, or room for it; free vgk_cuda.free(dev, plane[0]). */
static inline struct vgk_frame on_device(struct vgk_device *dev, const struct nets_picture *p, bool filled)
{
    struct vgk_frame f = p->f;
    uint8_t *block = vgk_cuda.alloc(dev, p->bytes);
    expect(block && (!filled || vgk_cuda.upload(dev, p->data, block, p->bytes, NULL) == VGK_OK));
    for (int i = 0; i < 3; i++)
        f.plane[i] = f.plane[i] ? block + (f.plane[i] - p->data) : NULL;
    f.device = true;
    return f;
}

/* A stream of tiles on its way. */
struct flying {
    struct vg_run *run;
    const struct tiles *t;
    struct nets_picture (*got)[MOST_OUT];
    struct vgk_device *beside; /* with streams that know nothing of the run's: what is read by it must be complete */
    struct vgk_frame out[MOST][MOST_OUT];
    int waited; /* tiles; those that fly come behind them */
};

static inline enum vgk_status land_one(struct flying *f, struct vgk_error *err)
{
    int i = f->waited++;
    enum vgk_status s = vg_run_wait(f->run, f->out[i], err);
    for (int k = 0; k < f->t->emit && !s; k++)
        if (f->out[i][k].device)
            expect(vgk_cuda.download(f->beside, f->out[i][k].plane[0], f->got[i][k].data, f->got[i][k].bytes, NULL) == VGK_OK);
    return s;
}

static inline enum vgk_status land(struct flying *f, struct vgk_error *err)
{
    enum vgk_status s = VGK_OK;
    while (!s && vg_run_flying(f->run))
        s = land_one(f, err);
    return s;
}

static inline void spoil(struct nets_picture *p)
{
    if (p->data)
        memset(p->data, 0x5a, p->bytes);
    free(p->data);
    p->data = NULL;
}

static inline struct nets_picture copy(const struct nets_picture *p)
{
    struct nets_picture r = nets_picture(p->f.layout, p->f.width, p->f.height, false);
    memcpy(r.data, p->data, r.bytes);
    return r;
}

/* Starts tile i; frame, there: copies of its frames, those on the device. */
static inline enum vgk_status start_one(struct flying *f, int i, bool alone, bool from, bool to, uint64_t number,
                                        const struct nets_picture *frame, const struct vgk_frame *there, struct vgk_error *err)
{
    const struct tiles *t = f->t;
    struct vgk_colour colour = nets_colour(t->frame[0].f.layout);
    struct vgk_frame in[VGK_FLIGHT_FRAMES], form[MOST_OUT];
    struct nets_picture single[VGK_FLIGHT_FRAMES];
    uint64_t numbers[VGK_FLIGHT_FRAMES];
    const struct vg_layout layout = nets_layout(t->frame[0].f.layout);
    for (int j = 0; j < t->info->window; j++) {
        int at = frame_of(t, t->window_of[i], j);
        single[j] = (struct nets_picture){.data = NULL};
        numbers[j] = alone ? 0 : number + (uint64_t)at;
        in[j] = from ? there[at] : frame[at].f;
        if (alone) {
            single[j] = nets_picture(t->frame[0].f.layout, t->width[i], t->height[i], false);
            struct vg_picture planes = nets_planes(&frame[at]), target = nets_planes(&single[j]);
            vg_copy_rect(&layout, &target, 0, 0, &planes, t->info->grid->x.origin[t->column[i]],
                         t->info->grid->y.origin[t->row[i]], t->width[i], t->height[i]);
            in[j] = single[j].f;
        }
    }
    for (int k = 0; k < t->emit; k++) {
        if (!to)
            f->out[i][k] = f->got[i][k].f;
        form[k] = f->out[i][k];
        for (int plane = 0; plane < 3 && !to; plane++)
            form[k].plane[plane] = NULL;
    }
    enum vgk_status s = vg_run_start(f->run, t->column[i], t->row[i], in, numbers, &colour, form, err);
    for (int j = 0; j < t->info->window; j++)
        spoil(&single[j]);
    return s;
}

/* In flight, where that may be; what went in from the host is gone as soon as nothing that is yet to be started wants it. */
static inline enum vgk_status fly(struct vg_run *run, const struct tiles *t, enum way way, struct vgk_device *beside,
                                  struct nets_picture got[MOST][MOST_OUT], struct vgk_error *err)
{
    static uint64_t number = 1;
    bool from = way == FROM_DEVICE || way == ON_DEVICE, to = way == TO_DEVICE || way == ON_DEVICE;
    struct flying f = {.run = run, .t = t, .got = got, .beside = beside};
    struct nets_picture frame[MOST_FRAMES];
    struct vgk_frame there[MOST_FRAMES];
    enum vgk_status s = VGK_OK;
    for (int i = 0; i < t->n_frames; i++) {
        frame[i] = copy(&t->frame[i]);
        if (from)
            there[i] = on_device(beside, &frame[i], true);
    }
    for (int i = 0; i < t->n && to; i++)
        for (int k = 0; k < t->emit; k++)
            f.out[i][k] = on_device(beside, &got[i][k], false);
    vg_run_reset(run);
    for (int i = 0; i < t->n && !s; i++) {
        bool alone = way == ALONE || (way == MIXED && i % 3 == 1);
        if (!vg_run_flies(run) || (is_first(t, i) && is_compared(t, i))) {
            s = land(&f, err);
            s = s ? s : run_one(run, t, i, got[f.waited++], err);
        } else {
            s = start_one(&f, i, alone, from, to, number, frame, there, err);
            if (!s && vg_run_flying(run) == VGK_FLIGHTS)
                s = land_one(&f, err);
        }
        if (is_last(t, i)) {
            vg_run_next(run);
            for (int k = 0; k < frame_of(t, t->window_of[i] + 1, 0); k++)
                spoil(&frame[k]);
        }
    }
    s = s ? s : land(&f, err);
    while (vg_run_flying(run)) /* something failed */
        vg_run_wait(run, NULL, NULL);
    number += (uint64_t)t->n_frames;
    for (int i = 0; i < t->n_frames; i++) {
        spoil(&frame[i]);
        if (from)
            vgk_cuda.free(beside, there[i].plane[0]);
    }
    for (int i = 0; i < t->n && to; i++)
        for (int k = 0; k < t->emit; k++)
            vgk_cuda.free(beside, f.out[i][k].plane[0]);
    return s;
}

#endif
