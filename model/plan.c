/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_internal.h"

#define SMALL_FRAME 64 /* pixels: smaller frames may be padded for models that need more */

/* --- one way to cut the frame --- */

struct cut {
    struct vg_grid grid;
    bool direct;
    struct vg_program *program;
};

/* A way to run the model: with the kernels that the backend likes best, or with direct products only.  Winograd's
 * blocks are three to four times faster, but every pixel's bits depend on its whole block, so bit-exact tiles need a
 * halo that grows by a block with every layer. */
struct way {
    bool direct;
    struct vg_program *whole; /* laid out for the whole frame */
};

/* `least`: frames smaller than this are padded up to it (a model's own reflection needs some pixels to reflect). */
static struct vg_axis_request axis_request(const struct vg_model *m, const struct vg_plan_request *r,
                                           const struct way *w, int axis, int tile, int least)
{
    const struct vg_summary *s = &m->summary;
    const struct vg_analysis *a = w && w->whole && !s->global ? &w->whole->exact : NULL;
    bool x = axis == VG_X;
    int align = x ? s->align_x : s->align_y, frame = x ? r->width : r->height;
    bool small = frame < least;
    if (small)
        tile = (int)vgk_round_up((size_t)least, (size_t)align);
    return (struct vg_axis_request){
        .frame = frame,
        .tile = x && s->fixed_width ? s->fixed_width : !x && s->fixed_height ? s->fixed_height : tile,
        .overlap = x ? r->overlap_x : r->overlap_y,
        .halo_lo = a ? (int)a->lo[axis] : x ? s->halo_left : s->halo_top,
        .halo_hi = a ? (int)a->hi[axis] : x ? s->halo_right : s->halo_bottom,
        .size_multiple = align,
        .origin_multiple = a ? (int)a->origin[axis] : align,
        .chroma = (x ? r->chroma_x : r->chroma_y) > 1 ? 2 : 1,
        .num = s->scale_num,
        .den = s->scale_den,
        .fixed = s->fixed_width > 0 || small,
    };
}

struct how {
    bool direct;
    int bands;
    const bool *recompute;
    enum vg_norm_source norms;
    bool half;
};

static bool in_half(const struct vg_plan_request *r, const struct vgk_backend *backend)
{
    return r->precision == VG_PRECISION_FP16 || (r->precision == VG_PRECISION_AUTO && backend->half);
}

static enum vgk_status lay_out(struct vg_model *m, const struct vgk_backend *backend, struct vgk_device *device,
                               int width, int height, struct how how, struct vg_program **program,
                               struct vgk_error *err)
{
    struct vg_net *net = NULL;
    struct vg_program_request request = {m->frame_output, how.bands, how.recompute};
    enum vgk_status s = vg_model_bind(m, width, height, true, how.norms, &net, err);
    for (int i = 0; !s && i < net->n_ops; i++)
        if (net->ops[i].op.kind == VGK_OP_CONV)
            net->ops[i].op.p.conv.exact_products = how.direct;
    if (!s && how.half && (s = vg_net_halve(net, m->frame_output, backend->half)))
        vgk_fail(err, s, "no memory to lay out the model");
    if (!s)
        s = vg_program_make(net, backend, device, &request, program, err);
    if (s)
        vg_net_free(&net);
    return s;
}

/* Tiles of about this size; 0 = the whole frame. */
static enum vgk_status cut_frame(struct vg_model *m, const struct vgk_backend *backend, struct vgk_device *device,
                                 const struct vg_plan_request *r, const struct way *w, int tile_width, int tile_height,
                                 int least, struct cut *c, struct vgk_error *err)
{
    struct vg_axis_request x = axis_request(m, r, w, VG_X, tile_width, least),
                           y = axis_request(m, r, w, VG_Y, tile_height, least);
    enum vgk_status s = vg_axis_make(&x, &c->grid.x, err);
    if (s) {
        vgk_error_prefix(err, "tile-width %d, overlap-x %d", tile_width, r->overlap_x);
        return s;
    }
    if ((s = vg_axis_make(&y, &c->grid.y, err))) {
        vgk_error_prefix(err, "tile-height %d, overlap-y %d", tile_height, r->overlap_y);
        return s;
    }
    c->direct = w && w->direct;
    struct how how = {.direct = c->direct, .half = in_half(r, backend)};
    return lay_out(m, backend, device, c->grid.x.tile, c->grid.y.tile, how, &c->program, err);
}

/* --- the choice --- */

struct candidate {
    int nx, ny;
    bool direct;
    struct vg_grid grid;
    double cost; /* work over that of the whole frame's best way */
};

static int by_cost(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->cost < y->cost ? -1 : x->cost > y->cost ? 1 : x->nx + x->ny - y->nx - y->ny;
}

/* The grid of nx by ny tiles with the least waste; false when that many make no sense. */
static bool grid_of(const struct vg_model *m, const struct vg_plan_request *r, const struct way *w, int nx, int ny,
                    struct vg_grid *grid)
{
    for (int axis = 0; axis < VG_AXES; axis++) {
        int n = axis == VG_X ? nx : ny;
        struct vg_axis_request q = axis_request(m, r, w, axis, 0, 0);
        struct vg_axis *a = axis == VG_X ? &grid->x : &grid->y;
        int overlap = q.overlap < 0 ? q.halo_lo + q.halo_hi : q.overlap;
        if (n > 1 && !q.fixed) {
            /* n tiles that share `overlap` with each neighbour, in steps that keep to the origins' lattice */
            int64_t step = ((int64_t)q.frame - overlap + n - 1) / n;
            step = (step + q.origin_multiple - 1) / q.origin_multiple * q.origin_multiple;
            if (step <= 0)
                return false;
            q.tile = (int)(step + overlap);
        }
        if (vg_axis_make(&q, a, NULL) || (!q.fixed && a->n != n))
            return false;
    }
    return true;
}

static size_t budget(const struct vgk_backend *backend, const struct vgk_device *device, size_t max_bytes)
{
    size_t free_bytes = max_bytes ? 0 : backend->bytes_free(device);
    return max_bytes ? max_bytes : free_bytes ? free_bytes / 2 : SIZE_MAX;
}

/* The whole frame at once if that fits, else bands down the frame: the fewest that fit; where even many do not, the
 * largest picture that is kept across levels is computed again instead, and so on. */
static enum vgk_status fit(struct vg_model *m, const struct vgk_backend *backend, struct vgk_device *device,
                                    int width, int height, struct how base, size_t max_bytes,
                                    size_t *least_bytes, struct vg_program **best)
{
    static const int counts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};
    struct vg_program *p = NULL;
    enum vgk_status s = lay_out(m, backend, device, width, height, base, &p, NULL);
    if (s)
        return s;
    *least_bytes = vg_program_bytes(p) < *least_bytes ? vg_program_bytes(p) : *least_bytes;
    if (vg_program_bytes(p) <= max_bytes) {
        *best = p;
        return VGK_OK;
    }
    bool *recompute = calloc((size_t)p->net->n_buffers + 1, sizeof *recompute);
    vg_program_free(&p);
    s = recompute ? VGK_ERR_UNSUPPORTED : VGK_ERR_NOMEM;
    for (int tries = 8, again = 0; recompute && tries && again >= 0; tries--) {
        size_t before = SIZE_MAX;
        int worse = 0;
        again = -1;
        for (size_t i = 0; i < sizeof counts / sizeof *counts && height / counts[i] >= 6 && worse < 2; i++) {
            struct how how = base;
            how.bands = counts[i];
            how.recompute = recompute;
            if ((s = lay_out(m, backend, device, width, height, how, &p, NULL)))
                goto done;
            size_t bytes = vg_program_bytes(p);
            worse = bytes < before ? 0 : worse + 1; /* what is carried over grows with the number of bands in the end */
            before = bytes;
            *least_bytes = bytes < *least_bytes ? bytes : *least_bytes;
            if (bytes <= max_bytes) {
                *best = p;
                goto done;
            }
            again = p->largest_kept_buffer;
            vg_program_free(&p);
        }
        if (again >= 0)
            recompute[again] = true;
        s = VGK_ERR_UNSUPPORTED;
    }
done:
    free(recompute);
    return s;
}

/* Tries grids in the order of their cost until one fits.  Memory grows with a tile's pixels, so the whole frame's layout
 * tells which grids are worth a try. */
static enum vgk_status choose(struct vg_model *m, const struct vgk_backend *backend, struct vgk_device *device,
                              const struct vg_plan_request *r, const struct way *ways, int n_ways, size_t max_bytes,
                              size_t *least_bytes, struct cut *best, struct vgk_error *err)
{
    size_t smallest = *least_bytes;
    int n = 0, max_x = 1, max_y = 1;
    while (max_x < VG_MAX_TILES && r->width / (max_x + 1) >= 8)
        max_x++;
    while (max_y < VG_MAX_TILES && r->height / (max_y + 1) >= 8)
        max_y++;
    struct candidate *list = malloc((size_t)max_x * max_y * n_ways * sizeof *list);
    if (!list)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory to plan");
    for (int k = 0; k < n_ways; k++)
        for (int ny = 1; ny <= max_y; ny++)
            for (int nx = 1; nx <= max_x; nx++) {
                struct candidate *c = &list[n];
                if (!grid_of(m, r, &ways[k], nx, ny, &c->grid))
                    continue;
                c->nx = nx;
                c->ny = ny;
                c->direct = ways[k].direct;
                c->cost = (1 + vg_axis_waste(&c->grid.x)) * (1 + vg_axis_waste(&c->grid.y)) * ways[k].whole->work /
                          (ways[0].whole->work + 1);
                n++;
            }
    qsort(list, n, sizeof *list, by_cost);
    enum vgk_status s = VGK_ERR_NOMEM;
    const struct candidate *least = NULL;
    for (int i = 0; i < n && s; i++) {
        const struct candidate *c = &list[i];
        const struct way *w = &ways[n_ways > 1 && c->direct];
        double pixels = (double)c->grid.x.tile * c->grid.y.tile;
        double whole = (double)w->whole->exact.align[VG_X] * w->whole->exact.align[VG_Y];
        whole = ceil(r->width / (double)w->whole->exact.align[VG_X]) *
                ceil(r->height / (double)w->whole->exact.align[VG_Y]) * whole;
        double expected = (double)(w->whole->weights + w->whole->persistent) +
                          0.8 * (double)w->whole->activations * pixels / whole;
        if (!least || pixels < (double)least->grid.x.tile * least->grid.y.tile ||
            (c->direct && !least->direct && pixels <= (double)least->grid.x.tile * least->grid.y.tile))
            least = c;
        if (expected > (double)max_bytes)
            continue;
        struct vg_program *l = NULL;
        struct how how = {.direct = c->direct, .half = in_half(r, backend)};
        if (lay_out(m, backend, device, c->grid.x.tile, c->grid.y.tile, how, &l, NULL))
            continue; /* too small a tile for the model's own padding, for instance */
        if (vg_program_bytes(l) < smallest)
            smallest = vg_program_bytes(l);
        if (vg_program_bytes(l) <= max_bytes) {
            best->grid = c->grid;
            best->direct = c->direct;
            best->program = l;
            s = VGK_OK;
        } else {
            vg_program_free(&l);
        }
    }
    for (int i = 0; i < n && s; i++) { /* say what would do: the smallest of all */
        const struct candidate *c = &list[i];
        struct vg_program *l = NULL;
        if ((double)c->grid.x.tile * c->grid.y.tile > 1.5 * (double)least->grid.x.tile * least->grid.y.tile)
            continue;
        struct how how = {.direct = c->direct, .half = in_half(r, backend)};
        if (!lay_out(m, backend, device, c->grid.x.tile, c->grid.y.tile, how, &l, NULL) &&
            vg_program_bytes(l) < smallest)
            smallest = vg_program_bytes(l);
        vg_program_free(&l);
    }
    free(list);
    *least_bytes = smallest;
    return s;
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

/* Two programs in place of one: for frames that have a predecessor, and for those that have none. */
static enum vgk_status use_previous(struct vg_plan *p, bool half, size_t max_bytes, struct vgk_error *err)
{
    struct vg_program *first = NULL, *next = NULL;
    size_t least = SIZE_MAX, least_next = SIZE_MAX;
    int width = p->grid.x.tile, height = p->grid.y.tile;
    if (p->grid.x.n * p->grid.y.n > 1)
        return VGK_OK;
    enum vgk_status s = fit(p->model, p->backend, p->device, width, height,
                            (struct how){.norms = VG_NORM_OWN_KEPT, .half = half}, max_bytes, &least, &first);
    if (!s)
        s = fit(p->model, p->backend, p->device, width, height, (struct how){.norms = VG_NORM_KEPT, .half = half}, max_bytes,
                &least_next, &next);
    if (!s && (!first->net->n_memories || first->weights != next->weights || first->persistent != next->persistent)) {
        vg_program_free(&first); /* no norms to speak of */
        vg_program_free(&next);
        return VGK_OK;
    }
    if (s) {
        vg_program_free(&first);
        if (least_next != SIZE_MAX && least_next > least)
            least = least_next;
        return vgk_fail(err, VGK_ERR_NOMEM, "%s with norms by the previous frame needs at least %zu bytes, "
                        "max-device-memory is %zu: set it to that or more, or norm-mode to exact",
                        p->model->summary.path, least + p->room, max_bytes + p->room);
    }
    vg_program_free(&p->program);
    p->program = next;
    p->first = first;
    return VGK_OK;
}

static size_t main_bytes(const struct vg_plan *p)
{
    size_t bytes = vg_program_bytes(p->program);
    return p->first && vg_program_bytes(p->first) > bytes ? vg_program_bytes(p->first) : bytes;
}

/* What the rescue program needs apart from activations, which it shares, taken off the budget. */
static enum vgk_status leave_room(struct vg_plan *p, const struct vg_grid *whole, size_t all_bytes, size_t *max_bytes,
                                  struct vgk_error *err)
{
    struct vg_program *l = NULL;
    enum vgk_status s = lay_out(p->model, p->backend, p->device, whole->x.tile, whole->y.tile, (struct how){0}, &l, err);
    if (s)
        return s;
    p->room = l->weights + l->persistent;
    *max_bytes = p->room < all_bytes ? all_bytes - p->room : 0;
    vg_program_free(&l);
    return VGK_OK;
}

/* The program in f32 for tiles that overflow in f16: weights of its own, behind the main program's; activations where
 * the main one's are, in bands if it takes them to fit there. */
static enum vgk_status add_rescue(struct vg_plan *p, size_t max_bytes, struct vgk_error *err)
{
    const struct vg_program *l = p->program;
    struct vg_program *rescue = NULL;
    int width = p->grid.x.tile, height = p->grid.y.tile;
    size_t own = l->weights + l->persistent, activations = main_bytes(p) - own, least = SIZE_MAX;
    struct how how = {.direct = p->direct};
    enum vgk_status s = lay_out(p->model, p->backend, p->device, width, height, how, &rescue, err);
    if (s)
        return s;
    if (rescue->activations > activations) {
        struct vg_program *banded = NULL;
        size_t bytes = rescue->weights + rescue->persistent + activations;
        if (!fit(p->model, p->backend, p->device, width, height, how, bytes, &least, &banded)) {
            vg_program_free(&rescue);
            rescue = banded;
        }
    }
    activations = rescue->activations > activations ? rescue->activations : activations;
    size_t shared = own + rescue->weights + rescue->persistent;
    vg_program_move(p->program, 0, l->weights, shared);
    if (p->first)
        vg_program_move(p->first, 0, l->weights, shared);
    vg_program_move(rescue, own, own + rescue->weights, shared);
    p->rescue = rescue;
    p->arena_bytes = shared + activations;
    if (p->arena_bytes > max_bytes)
        return vgk_fail(err, VGK_ERR_NOMEM, "%s in half precision needs %zu bytes (%.1f MiB), with what runs overflowing tiles "
                        "again, max-device-memory is %zu: set it to %zu or more, or take a smaller frame",
                        p->model->summary.path, p->arena_bytes, (double)p->arena_bytes / (1 << 20), max_bytes,
                        p->arena_bytes);
    return VGK_OK;
}

static enum vgk_status make(struct vg_plan *p, const struct vg_plan_request *r, struct vgk_error *err)
{
    struct vg_model *m = p->model;
    struct cut whole = {.program = NULL}, best = {.program = NULL};
    struct way ways[2] = {{false, NULL}, {true, NULL}};
    size_t all_bytes = budget(p->backend, p->device, r->max_bytes), max_bytes = all_bytes;
    bool half = in_half(r, p->backend);
    bool tiles = (r->tile_width && r->tile_width < r->width) || (r->tile_height && r->tile_height < r->height);
    bool one_tile = r->tile_width >= r->width && r->tile_height >= r->height; /* asked for: nobody cuts the frame */
    enum vgk_status s = check(r, err);
    if (!s)
        s = cut_frame(m, p->backend, p->device, r, NULL, 0, 0, 0, &whole, err);
    for (int least = 8; s == VGK_ERR_INVALID && least <= SMALL_FRAME && (r->width < least || r->height < least);
         least *= 2) {
        struct vgk_error again;
        if (!cut_frame(m, p->backend, p->device, r, NULL, 0, 0, least, &whole, &again))
            s = VGK_OK;
    }
    if (!s && half && all_bytes != SIZE_MAX)
        s = leave_room(p, &whole.grid, all_bytes, &max_bytes, err);
    if (s)
        return s;
    if (m->summary.fixed_width || r->bands == 1 || (!r->bands && !tiles && vg_program_bytes(whole.program) <= max_bytes)) {
        best = whole;
        whole.program = NULL;
    } else if (r->bands) {
        best.grid = whole.grid;
        s = lay_out(m, p->backend, p->device, whole.grid.x.tile, whole.grid.y.tile, (struct how){.bands = r->bands, .half = half},
                    &best.program, err);
    } else {
        int n_ways = 1;
        size_t least = SIZE_MAX;
        best.grid = whole.grid;
        s = tiles ? VGK_ERR_UNSUPPORTED
                  : fit(m, p->backend, p->device, whole.grid.x.tile, whole.grid.y.tile,
                        (struct how){.norms = VG_NORM_OWN, .half = half}, max_bytes, &least, &best.program);
        if (s == VGK_OK || s == VGK_ERR_NOMEM)
            goto chosen;
        s = VGK_OK;
        ways[0].whole = whole.program;
        if (memcmp(whole.program->exact.origin, whole.program->exact.align, sizeof whole.program->exact.align)) {
            s = lay_out(m, p->backend, p->device, whole.grid.x.tile, whole.grid.y.tile, (struct how){.direct = true, .half = half},
                        &ways[1].whole, err);
            n_ways = 2;
        }
        if (!s && tiles) { /* the same bits as without tiles, if the tiles are large enough for that */
            s = cut_frame(m, p->backend, p->device, r, &ways[0], r->tile_width, r->tile_height, 0, &best, err);
            if (s == VGK_ERR_INVALID && n_ways == 2)
                s = cut_frame(m, p->backend, p->device, r, &ways[1], r->tile_width, r->tile_height, 0, &best, err);
        } else if (!s && n_ways == 2 && one_tile) { /* direct products need less room for their weights */
            size_t bytes = vg_program_bytes(ways[1].whole);
            least = bytes < least ? bytes : least;
            if (bytes <= max_bytes) {
                best = (struct cut){whole.grid, true, ways[1].whole};
                ways[1].whole = NULL;
                goto chosen;
            }
            s = VGK_ERR_NOMEM;
        } else if (!s) {
            s = m->summary.global || one_tile ? VGK_ERR_NOMEM
                                  : choose(m, p->backend, p->device, r, ways, n_ways, max_bytes, &least, &best, err);
        }
        if (s == VGK_ERR_NOMEM && !tiles)
            vgk_fail(err, s, "%s at %dx%d needs at least %zu bytes (%.1f MiB), max-device-memory is %zu: set it to "
                     "%zu or more, or take a smaller frame", m->summary.path, r->width, r->height, least + p->room,
                     (double)(least + p->room) / (1 << 20), all_bytes, least + p->room);
    }
chosen:
    vg_program_free(&whole.program);
    vg_program_free(&ways[1].whole);
    if (!s && vg_program_bytes(best.program) > max_bytes)
        s = vgk_fail(err, VGK_ERR_NOMEM, "%s in tiles of %dx%d needs %zu bytes (%.1f MiB), max-device-memory is %zu: "
                     "set it to %zu or more, or tile-width and tile-height to 0 for tiles that fit", m->summary.path,
                     best.grid.x.tile, best.grid.y.tile, vg_program_bytes(best.program) + p->room,
                     (double)(vg_program_bytes(best.program) + p->room) / (1 << 20), all_bytes,
                     vg_program_bytes(best.program) + p->room);
    if (s) {
        vg_program_free(&best.program);
        return s;
    }
    p->program = best.program;
    p->grid = best.grid;
    p->direct = best.direct;
    if (r->norm_mode == VG_NORM_PREVIOUS)
        s = use_previous(p, half, max_bytes, err);
    p->arena_bytes = main_bytes(p);
    return s || !half ? s : add_rescue(p, all_bytes, err);
}

enum vgk_status vg_plan_make(struct vg_model *model, const struct vgk_backend *backend, struct vgk_device *device,
                             const struct vg_plan_request *request, struct vg_plan **plan, struct vgk_error *err)
{
    struct vg_plan *p = calloc(1, sizeof *p);
    if (!p)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for the plan");
    p->model = vg_model_ref(model);
    p->backend = backend;
    p->device = device;
    enum vgk_status s = make(p, request, err);
    if (s) {
        vg_plan_free(&p);
        return s;
    }
    int tiles = p->grid.x.n * p->grid.y.n;
    bool exact = tiles == 1 || !model->summary.global;
    if (!exact)
        snprintf(p->warning, sizeof p->warning, "%s runs in %d tiles, but depends on the whole frame (%s): each tile "
                 "is normalised by itself, so brightness and style can differ from tile to tile. Set tile-width and "
                 "tile-height to 0 and max-device-memory high enough for one tile to avoid that", model->summary.name,
                 tiles, model->summary.global_why);
    const struct vg_program *l = p->program;
    p->info = (struct vg_plan_info){
        .grid = &p->grid,
        .norm_mode = p->first ? VG_NORM_PREVIOUS : VG_NORM_EXACT,
        .arena_bytes = p->arena_bytes,
        .precision = p->rescue ? VG_PRECISION_FP16 : VG_PRECISION_FP32,
        .rescue_bytes = p->rescue ? p->arena_bytes - main_bytes(p) : 0,
        .weight_bytes = l->weights,
        .activation_bytes = (p->first && p->first->activations > l->activations ? p->first : l)->activations + l->persistent,
        .scratch_bytes = l->scratch_peak,
        .activation_floor = l->floor,
        .n_ops = l->n_steps,
        .bands = l->bands,
        .levels = l->levels,
        .exact = exact,
        .direct = p->direct,
        .warning = exact ? NULL : p->warning,
    };
    *plan = p;
    return VGK_OK;
}

void vg_plan_free(struct vg_plan **plan)
{
    struct vg_plan *p = *plan;
    if (!p)
        return;
    vg_program_free(&p->program);
    vg_program_free(&p->first);
    vg_program_free(&p->rescue);
    vg_model_unref(&p->model);
    free(p);
    *plan = NULL;
}

const struct vg_plan_info *vg_plan_info(const struct vg_plan *p) { return &p->info; }

const struct vg_model *vg_plan_model(const struct vg_plan *p) { return p->model; }
