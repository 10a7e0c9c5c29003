/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cut.h"
#include "trial.h"
#include "warp.h"
#include "window.h"

#define WORTH_STREAMING 1.2 /* times the whole frame's work: from here on a way with weights in host memory is tried, too */
#define SMALL_FRAME 64 /* pixels: smaller frames may be padded for models that need more */

/* The whole frame in one tile; without Winograd's blocks where they round too much. */
static enum vgk_status cut_whole(struct vg_plan *p, const struct vg_plan_request *r, struct vg_cut *c,
                                 struct vgk_error *err)
{
    const atomic_bool *no_winograd = &p->model->no_winograd;
    enum vgk_status s = vg_cut_frame(p, r, NULL, 0, 0, 0, c, err);
    for (int least = 8; s == VGK_ERR_INVALID && least <= SMALL_FRAME && (r->width < least || r->height < least);
         least *= 2) {
        struct vgk_error again;
        if (!vg_cut_frame(p, r, NULL, 0, 0, least, c, &again))
            s = VGK_OK;
    }
    p->blocks |= !s && c->program->blocks;
    if (s || p->untried || (!c->program->blocks && !atomic_load(no_winograd)))
        return s;
    p->winograd_steps = vg_trial_steps(p->model, p->max_bytes);
    if (p->winograd_steps == VG_TRIAL_NO_ROOM && !p->all_direct) {
        p->all_direct = true;
        vg_plan_note(p, "Winograd's blocks: no room to try how much they round");
    }
    if (!c->program->blocks || (!p->all_direct && !atomic_load(no_winograd)))
        return VGK_OK;
    vg_program_free(&c->program);
    return vg_plan_lay_out(p, c->grid.x.tile, c->grid.y.tile, vg_cut_how(p, false, false), &c->program, err);
}

enum vgk_status vg_plan_whole(struct vg_plan *p, const struct vg_plan_request *r, enum vg_norm_source source,
                              struct vg_grid *grid, struct vg_program **program, struct vgk_error *err)
{
    struct vg_cut c = {.program = NULL};
    enum vg_norm_source before = p->norms.source;
    bool half = p->half;
    int rows = p->rows;
    struct vg_states states = p->states; /* those of the tiles */
    p->states = (struct vg_states){0};
    p->norms.source = source;
    p->half = false;
    p->rows = r->height;
    enum vgk_status s = cut_whole(p, r, &c, err);
    p->rows = rows;
    p->norms.source = before;
    p->half = half;
    vg_states_free(&p->states);
    p->states = states;
    *grid = c.grid;
    *program = c.program;
    return s;
}

static size_t budget(const struct vgk_backend *backend, const struct vgk_device *device, size_t max_bytes)
{
    size_t free_bytes = max_bytes ? 0 : backend->bytes_free(device);
    return max_bytes ? max_bytes : free_bytes ? free_bytes / 2 : SIZE_MAX;
}

/* --- the plan --- */

static enum vgk_status check(const struct vg_plan_request *r, struct vgk_error *err)
{
    if (r->width < 1 || r->height < 1 || r->width > 16384 || r->height > 16384)
        return vgk_fail(err, VGK_ERR_INVALID, "a frame of %dx%d, expected 1x1 to 16384x16384", r->width, r->height);
    if (r->tile_width < 0 || r->tile_height < 0 || r->overlap_x < -1 || r->overlap_y < -1)
        return vgk_fail(err, VGK_ERR_INVALID, "tile %dx%d, overlap %d, %d: expected 0 (plan) or more, -1 (plan) or "
                        "more", r->tile_width, r->tile_height, r->overlap_x, r->overlap_y);
    if (r->bands < 0 || r->bands > r->height || (r->bands && (r->tile_width || r->tile_height)))
        return vgk_fail(err, VGK_ERR_INVALID, "%d bands of %d rows, tiles of %dx%d: expected 0 to as many bands as rows, and "
                        "either bands or tiles", r->bands, r->height, r->tile_width, r->tile_height);
    return VGK_OK;
}

static double frame_work(const struct vg_cut *c) { return c->program->work * c->grid.x.n * c->grid.y.n; }

/* Whether kernels compute in blocks that the model itself does not have. */
static bool blocks(const struct vg_program *whole)
{
    return memcmp(whole->exact.origin, whole->exact.align, sizeof whole->exact.align);
}

/* One tile, in bands if need be; else the cheapest tiles that fit.  VGK_ERR_UNSUPPORTED: nothing does. */
static enum vgk_status find_way(struct vg_plan *p, const struct vg_plan_request *r, const struct vg_cut *whole,
                                bool one_tile, bool stream, size_t max_bytes, size_t *least, struct vg_cut *best,
                                struct vgk_error *err)
{
    int width = whole->grid.x.tile, height = whole->grid.y.tile, n_ways = 1;
    struct vg_way ways[2] = {{false, whole->program}, {true, NULL}};
    struct vg_program *first = NULL;
    *best = (struct vg_cut){.grid = whole->grid};
    size_t bands = SIZE_MAX;
    enum vgk_status s = vg_cut_fit(p, width, height, vg_cut_how(p, false, stream), max_bytes, &bands, &best->program);
    *least = bands < *least ? bands : *least;
    if (s != VGK_ERR_UNSUPPORTED)
        return s == VGK_ERR_NOMEM ? vgk_fail(err, s, "no memory to plan") : s;
    if (stream) {
        if ((s = vg_plan_lay_out(p, width, height, vg_cut_how(p, false, true), &first, err)))
            return s;
        ways[0].whole = first;
    }
    s = VGK_OK;
    if (blocks(whole->program)) {
        s = vg_plan_lay_out(p, width, height, vg_cut_how(p, true, stream), &ways[1].whole, err);
        n_ways = 2;
    }
    if (!s && one_tile) {
        s = VGK_ERR_UNSUPPORTED;
        if (n_ways == 2) { /* direct products need less room for their weights */
            size_t bytes = vg_program_bytes(ways[1].whole);
            *least = bytes < *least ? bytes : *least;
            if (bytes <= max_bytes) {
                *best = (struct vg_cut){whole->grid, true, ways[1].whole};
                ways[1].whole = NULL;
                s = VGK_OK;
            }
        }
    } else if (!s && *p->global_why && p->norms.mode != VG_NORM_TILE) {
        s = VGK_ERR_UNSUPPORTED;
    } else if (!s) {
        s = vg_cut_choose(p, r, ways, n_ways, stream, bands, max_bytes, least, best, err);
    }
    vg_program_free(&first);
    vg_program_free(&ways[1].whole);
    return s;
}

static size_t less(size_t a, size_t b) { return a > b ? a - b : 0; }

static enum vgk_status make(struct vg_plan *p, const struct vg_plan_request *r, size_t all_bytes, struct vgk_error *err)
{
    struct vg_model *m = p->model;
    size_t max_bytes = less(all_bytes, p->beside);
    struct vg_cut whole = {.program = NULL}, best = {.program = NULL};
    bool tiles = vg_plan_asks_for_tiles(r);
    /* Asked for, or the only size that there is: nobody cuts the frame. */
    bool one_tile = (r->tile_width >= r->width && r->tile_height >= r->height) || m->summary.fixed_width;
    enum vgk_status s = cut_whole(p, r, &whole, err);
    if (s)
        return s;
    s = vg_window_emit(m, whole.program->net, &p->info, err);
    if (s) {
        vg_program_free(&whole.program);
        return s;
    }
    vg_plan_norms_global(p, whole.program->net->global_why);
    if (r->bands == 1) {
        best = whole;
        whole.program = NULL;
    } else if (r->bands) {
        best.grid = whole.grid;
        struct vg_how how = vg_cut_how(p, false, false);
        how.bands = r->bands;
        s = vg_plan_lay_out(p, whole.grid.x.tile, whole.grid.y.tile, how, &best.program, err);
    } else if (tiles) { /* the same bits as without tiles, if the tiles are large enough for that */
        struct vg_way ways[2] = {{false, whole.program}, {true, NULL}};
        s = vg_cut_frame(p, r, &ways[0], r->tile_width, r->tile_height, 0, &best, err);
        if ((!s || s == VGK_ERR_INVALID) && blocks(whole.program)) {
            /* Direct products need a smaller halo.  The very bits of the untiled frame are worth twice the work. */
            struct vg_cut direct = {.program = NULL};
            struct vgk_error why = {{0}};
            enum vgk_status d = vg_plan_lay_out(p, whole.grid.x.tile, whole.grid.y.tile, vg_cut_how(p, true, false),
                                                &ways[1].whole, &why);
            d = d ? d : vg_cut_frame(p, r, &ways[1], r->tile_width, r->tile_height, 0, &direct, &why);
            if (!d && (s || 2 * frame_work(&direct) < frame_work(&best))) {
                vg_program_free(&best.program);
                best = direct;
                s = VGK_OK;
            } else {
                vg_program_free(&direct.program);
                if (s || d == VGK_ERR_NOMEM) {
                    s = d;
                    if (err)
                        *err = why;
                }
            }
            vg_program_free(&ways[1].whole);
            if (!s && !best.direct) /* those of the grid that was not taken are laid out */
                s = vg_states_lay_out(m, &best.grid, &p->states, err);
        }
    } else {
        size_t least = SIZE_MAX;
        s = VGK_ERR_UNSUPPORTED;
        s = find_way(p, r, &whole, one_tile, false, max_bytes, &least, &best, err);
        /* Halos, and direct products in the place of blocks, can cost more than weights that are brought for each use. */
        if (s == VGK_ERR_UNSUPPORTED || (!s && frame_work(&best) > WORTH_STREAMING * whole.program->work)) {
            struct vg_cut streamed = {.program = NULL};
            struct vgk_error why = {{0}};
            enum vgk_status also = find_way(p, r, &whole, one_tile, true, max_bytes, &least, &streamed, s ? err : &why);
            if (s || (!also && frame_work(&streamed) < frame_work(&best))) {
                vg_program_free(&best.program);
                best = streamed;
                s = also;
            } else {
                vg_program_free(&streamed.program);
            }
        }
        least += p->beside;
        p->least = least < p->least ? least : p->least;
        if (s == VGK_ERR_UNSUPPORTED)
            s = vgk_fail(err, VGK_ERR_NOMEM, "%s at %dx%d needs at least %zu bytes (%.1f MiB), max-device-memory is %zu: "
                         "set it to %zu or more, or take a smaller frame", m->summary.path, r->width, r->height,
                         p->least, (double)p->least / (1 << 20), all_bytes, p->least);
    }
    vg_program_free(&whole.program);
    size_t needed = s ? 0 : vg_program_bytes(best.program);
    if (!s) {
        struct vg_how how = vg_cut_how(p, best.direct, best.program->streams);
        needed = vg_plan_rescued(p, best.program, needed, best.grid.x.tile, best.grid.y.tile, how, max_bytes) + p->beside;
    }
    if (needed > all_bytes)
        s = vgk_fail(err, VGK_ERR_NOMEM, "%s in tiles of %dx%d needs %zu bytes (%.1f MiB), max-device-memory is %zu: "
                     "set it to %zu or more, or tile-width and tile-height to 0 for tiles that fit", m->summary.path,
                     best.grid.x.tile, best.grid.y.tile, needed, (double)needed / (1 << 20), all_bytes, needed);
    if (s) {
        vg_program_free(&best.program);
        return s;
    }
    p->program = best.program;
    p->grid = best.grid;
    p->direct = best.direct || p->all_direct;
    return VGK_OK;
}

/* The program for tiles, and what norms and the rescue want beside it. */
static enum vgk_status make_all(struct vg_plan *p, const struct vg_plan_request *r, struct vgk_error *err)
{
    size_t max_bytes = p->max_bytes = budget(p->backend, p->device, r->max_bytes);
    enum vgk_status s = check(r, err);
    p->beside = 0;
    if (!s && !(s = vg_window_choose(p->model, r, &p->info, err)))
        s = vg_plan_norms_begin(p, r, &p->beside, err);
    if (!s && p->beside >= max_bytes)
        s = vgk_fail(err, VGK_ERR_NOMEM, "%s: what its norms need in this norm-mode takes %zu bytes, max-device-memory is "
                     "%zu: set it to more, or norm-mode to exact", p->model->summary.path, p->beside, max_bytes);
    if (!s && !(s = vg_plan_rescue_begin(p, r, &p->beside, err)) &&
        !(s = make(p, r, max_bytes, err)) &&
        !(s = vg_plan_norms_end(p, less(max_bytes, p->room), err)))
        s = vg_plan_rescue_end(p, max_bytes, err);
    return s;
}

void vg_plan_largest_output(const struct vg_plan *p, int size[2])
{
    const struct vg_summary *sum = &p->model->summary;
    const struct vg_axis *x = &p->grid.x, *y = &p->grid.y;
    size[0] = vg_axis_scale(x, (int)vgk_round_up((size_t)x->tile, (size_t)sum->align_x));
    size[1] = vg_axis_scale(y, (int)vgk_round_up((size_t)y->tile, (size_t)sum->align_y));
}

/* A tile that overflowed is run again when the next one, maybe of the next window, has written its states: not over those that
 * the first one read. */
static bool flights_fit(struct vg_plan *p, const struct vg_plan_request *r)
{
    p->flight_bytes = p->backend->flight_bytes(p->device, &p->flight_in, &p->flight_out, &p->staging_bytes);
    p->flight_state = p->rescue && p->states.copy_bytes;
    p->flight_bytes += p->flight_state ? p->states.copy_bytes : 0;
    return vg_plan_arrange(p) <= budget(p->backend, p->device, r->max_bytes);
}

/* Whether a tile needs nothing of the host between its frames: no statistics to look at, no results that fade into others, one
 * run for all that it gives. */
static bool can_fly(const struct vg_plan *p)
{
    const struct vg_plan_info *i = &p->info;
    enum vg_norm_mode mode = p->norms.mode;
    return i->window <= VGK_FLIGHT_FRAMES && i->emit <= VGK_FLIGHT_FRAMES && (i->emit <= i->hop || i->centre < 0) &&
           (i->emit == 1 || vg_window_time_input(p->model) < 0) &&
           (mode == VG_NORM_EXACT || mode == VG_NORM_TILE || mode == VG_NORM_FROZEN);
}

/* Tiles in flight, if that is possible and fits.  Rather with whole frames, of which each row goes up once, than tile by
 * tile. */
static void add_flights(struct vg_plan *p, const struct vg_plan_request *r)
{
    const struct vg_axis *x = &p->grid.x, *y = &p->grid.y;
    if (!r->flights || !p->backend->flight_bytes || !can_fly(p))
        return;
    bool halved = r->chroma_x == 2 && r->chroma_y == 2;
    int out[2];
    vg_plan_largest_output(p, out);
    p->flight_out = (struct vgk_flight_size){p->info.emit, out[0], out[1], halved, false};
    for (int whole = x->n * y->n > 1; whole >= 0; whole--) {
        p->flight_frames = whole;
        p->flight_in = (struct vgk_flight_size){p->info.window, whole && x->frame > x->tile ? x->frame : x->tile,
                                                whole && y->frame > y->tile ? y->frame : y->tile, halved, r->in_device};
        if (flights_fit(p, r))
            return;
        vg_plan_note(p, "%s in flight: %.1f MiB", whole ? "frames" : "tiles", (double)p->norms.arena / (1 << 20));
    }
    p->flight_bytes = p->staging_bytes = 0;
    p->flight_state = false;
    vg_plan_arrange(p);
}

static void drop(struct vg_plan *p)
{
    vg_program_free(&p->program);
    vg_program_free(&p->exact);
    vg_program_free(&p->small);
    vg_program_free(&p->rescue);
    *p->ways = '\0';
}

static enum vgk_status plan_make(struct vg_model *model, const struct vgk_backend *backend, struct vgk_device *device,
                                 const struct vg_plan_request *request, bool untried, bool direct,
                                 struct vg_plan **plan, struct vgk_error *err)
{
    struct vg_plan *p = calloc(1, sizeof *p);
    if (!p)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for the plan");
    p->model = vg_model_ref(model);
    p->backend = backend;
    p->device = device;
    p->half = request->precision == VG_PRECISION_FP16 || (request->precision == VG_PRECISION_AUTO && backend->half);
    p->bf16 = request->precision == VG_PRECISION_BF16;
    p->untried = untried;
    p->rows = request->height;
    p->all_direct = direct;
    p->winograd_steps = -1;
    p->least = SIZE_MAX;
    struct vg_plan_request r = *request;
    enum vgk_status s = VGK_OK;
    if (backend != &vgk_cpu)
        s = vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &p->host, err);
    if (!s && p->bf16)
        s = backend->bf16 ? backend->bf16(device, err)
                          : vgk_fail(err, VGK_ERR_UNSUPPORTED, "precision=bf16: expected a device whose kernels multiply bf16, "
                                     "the %s does not: set precision to auto, fp16 or fp32, or device to cpu", backend->name);
    s = s ? s : make_all(p, &r, err);
    if (s == VGK_ERR_NOMEM && p->half && !r.bands && !vg_plan_asks_for_tiles(&r)) { /* one copy of the weights less */
        p->rescue_streams = true;
        drop(p);
        s = make_all(p, &r, err);
    }
    if (s == VGK_ERR_NOMEM && p->half && request->precision == VG_PRECISION_AUTO) { /* no second program */
        p->half = p->rescue_streams = false;
        drop(p);
        s = make_all(p, &r, err);
    }
    if (s == VGK_ERR_NOMEM && r.norm_errors) { /* do without */
        r.norm_errors = false;
        drop(p);
        s = make_all(p, &r, err);
    }
    if (s == VGK_ERR_NOMEM && p->blocks && !p->all_direct && !untried) { /* their weights are smaller, and so are halos */
        p->all_direct = true;
        drop(p);
        s = make_all(p, &r, err);
    }
    vg_net_free(&p->bound);
    if (s) {
        vg_plan_free(&p);
        return s;
    }
    add_flights(p, &r);
    int tiles = p->grid.x.n * p->grid.y.n;
    const char *rounded = tiles == 1 ? NULL : vg_net_rounded_places(p->program->net);
    bool exact = tiles == 1 || (!*p->global_why && !rounded);
    if (rounded && !*p->global_why)
        snprintf(p->warning, sizeof p->warning, "%s runs in %d tiles, and node '%s' samples at places that are not those of "
                 "the pixels and a flow: they are rounded otherwise in a tile, and bytes can be off by one",
                 model->summary.name, tiles, rounded);
    else if (!exact)
        snprintf(p->warning, sizeof p->warning, "%s runs in %d tiles, but depends on the whole frame (%s): each tile "
                 "is normalised by itself, so brightness and style can differ from tile to tile. Set tile-width and "
                 "tile-height to 0 and max-device-memory high enough for one tile to avoid that, or norm-mode to frozen",
                 model->summary.name, tiles, p->global_why);
    const struct vg_program *l = p->program;
    p->info = (struct vg_plan_info){
        .grid = &p->grid,
        .window = p->info.window,
        .emit = p->info.emit,
        .hop = p->info.hop,
        .centre = p->info.centre,
        .norm_mode = p->norms.mode,
        .norm_count = p->norms.mode == VG_NORM_EXACT ? 0 : (p->exact ? p->exact : l)->net->n_memories,
        .norm_stored = p->norms.stored,
        .norm_errors = p->norms.errors,
        .global_why = *p->global_why ? p->global_why : NULL,
        .precision = p->half ? VG_PRECISION_FP16 : p->bf16 ? VG_PRECISION_BF16 : VG_PRECISION_FP32,
        .n_products = l->n_products,
        .n_bf16 = l->n_bf16,
        .arena_bytes = p->norms.arena,
        .rescue_bytes = p->rescue_bytes,
        .weight_bytes = l->weights,
        .flight_bytes = p->flight_bytes,
        .flight_frames = p->flight_frames,
        .staging_bytes = p->staging_bytes,
        .activation_bytes = p->norms.arena - p->rescue_bytes - p->flight_bytes - l->weights,
        .scratch_bytes = l->scratch_peak,
        .state_bytes = p->states.bytes,
        .activation_floor = l->floor,
        .host_bytes = l->host + (p->exact ? p->exact->host : 0) + (p->small ? p->small->host : 0) +
                      (p->rescue ? p->rescue->host : 0) + p->norms.host_frames,
        .moved_bytes = l->moved,
        .n_spilled = l->n_spilled,
        .n_recomputed = l->n_recomputed,
        .streams = l->streams,
        .ways = p->ways,
        .n_ops = l->n_steps,
        .bands = l->bands,
        .levels = l->levels,
        .exact = exact,
        .direct = p->direct,
        .winograd_error_steps = p->winograd_steps,
        .winograd_refused = p->winograd_steps >= 0 && atomic_load(&model->no_winograd),
        .warning = exact || p->norms.mode == VG_NORM_TILE ? NULL : p->warning,
    };
    *plan = p;
    return VGK_OK;
}

enum vgk_status vg_plan_make(struct vg_model *model, const struct vgk_backend *backend, struct vgk_device *device,
                             const struct vg_plan_request *request, struct vg_plan **plan, struct vgk_error *err)
{
    return plan_make(model, backend, device, request, false, false, plan, err);
}

enum vgk_status vg_plan_untried(struct vg_model *model, const struct vgk_backend *backend, struct vgk_device *device,
                                const struct vg_plan_request *request, bool direct, struct vg_plan **plan,
                                struct vgk_error *err)
{
    return plan_make(model, backend, device, request, true, direct, plan, err);
}

void vg_plan_free(struct vg_plan **plan)
{
    struct vg_plan *p = *plan;
    if (!p)
        return;
    drop(p);
    vg_states_free(&p->states);
    vg_model_unref(&p->model);
    vgk_cpu.close(&p->host);
    free(p);
    *plan = NULL;
}

const struct vg_plan_info *vg_plan_info(const struct vg_plan *p) { return &p->info; }

const struct vg_model *vg_plan_model(const struct vg_plan *p) { return p->model; }
