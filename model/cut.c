/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cut.h"

#include <stdlib.h>
#include <string.h>

/* `least`: frames smaller than this are padded up to it (a model's own reflection needs some pixels to reflect). */
static struct vg_axis_request axis_request(const struct vg_plan *p, const struct vg_plan_request *r,
                                           const struct vg_way *w, int axis, int tile, int least)
{
    const struct vg_summary *s = &p->model->summary;
    const struct vg_analysis *a = w && w->whole && !*p->global_why ? &w->whole->exact : NULL;
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

struct vg_how vg_cut_how(const struct vg_plan *p, bool direct, bool stream)
{
    return (struct vg_how){.direct = direct, .stream = stream, .norms = p->norms.source, .half = p->half};
}

enum vgk_status vg_cut_frame(struct vg_plan *p, const struct vg_plan_request *r, const struct vg_way *w, int tile_width,
                             int tile_height, int least, struct vg_cut *c, struct vgk_error *err)
{
    struct vg_axis_request x = axis_request(p, r, w, VG_X, tile_width, least),
                           y = axis_request(p, r, w, VG_Y, tile_height, least);
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
    if ((s = vg_states_lay_out(p->model, &c->grid, &p->states, err)))
        return s;
    return vg_plan_lay_out(p, c->grid.x.tile, c->grid.y.tile, vg_cut_how(p, c->direct, false), &c->program, err);
}

struct candidate {
    int nx, ny;
    bool direct, bands; /* bands: columns, each of which runs in bands */
    struct vg_grid grid;
    double cost; /* work over that of the whole frame's best way */
};

static int by_cost(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->cost < y->cost ? -1 : x->cost > y->cost ? 1 : x->nx + x->ny - y->nx - y->ny;
}

/* The grid of nx by ny tiles with the least waste; false when that many make no sense. */
static bool grid_of(const struct vg_plan *p, const struct vg_plan_request *r, const struct vg_way *w, int nx, int ny,
                    struct vg_grid *grid)
{
    for (int axis = 0; axis < VG_AXES; axis++) {
        int n = axis == VG_X ? nx : ny;
        struct vg_axis_request q = axis_request(p, r, w, axis, 0, 0);
        struct vg_axis *a = axis == VG_X ? &grid->x : &grid->y;
        size_t lattice = (size_t)(q.origin_multiple % q.chroma ? q.origin_multiple * q.chroma : q.origin_multiple);
        size_t cut = (size_t)(q.size_multiple % q.chroma ? q.size_multiple * q.chroma : q.size_multiple);
        int overlap = (int)vgk_round_up((size_t)q.halo_lo, cut) + q.halo_hi; /* as vg_axis_make does */
        overlap = q.overlap > overlap ? q.overlap : overlap;
        if (n > 1 && !q.fixed) {
            /* n tiles that share `overlap` with each neighbour, in steps that keep to the origins' lattice */
            int64_t step = ((int64_t)q.frame - overlap + n - 1) / n;
            if (step <= 0)
                return false;
            q.tile = (int)vgk_round_up((size_t)step, lattice) + overlap;
        }
        if (vg_axis_make(&q, a, NULL) || (!q.fixed && a->n != n))
            return false;
    }
    return true;
}

/* All grids, and columns to be run in bands, by cost.  Of the latter only some numbers: each takes many layouts. */
static int list_candidates(const struct vg_plan *p, const struct vg_plan_request *r, const struct vg_way *ways,
                           int n_ways, struct candidate **list)
{
    int n = 0, max_x = 1, max_y = 1;
    while (max_x < VG_MAX_TILES && r->width / (max_x + 1) >= 8)
        max_x++;
    while (max_y < VG_MAX_TILES && r->height / (max_y + 1) >= 8)
        max_y++;
    if (!(*list = malloc((size_t)max_x * (size_t)(max_y + 1) * (size_t)n_ways * sizeof **list)))
        return 0;
    for (int k = 0; k < n_ways; k++)
        for (int ny = 0; ny <= max_y; ny++)
            for (int nx = ny ? 1 : 2; nx <= max_x; nx += ny ? 1 : 1 + nx / 6) {
                struct candidate *c = &(*list)[n];
                c->bands = !ny;
                c->nx = nx;
                c->ny = ny ? ny : 1;
                c->direct = ways[k].direct;
                if (!grid_of(p, r, &ways[k], c->nx, c->ny, &c->grid))
                    continue;
                c->cost = (1 + vg_axis_waste(&c->grid.x)) * (1 + vg_axis_waste(&c->grid.y)) * ways[k].whole->work /
                          (ways[0].whole->work + 1);
                n++;
            }
    qsort(*list, (size_t)n, sizeof **list, by_cost);
    return n;
}

/* A guess at a candidate's bytes, rather low, from the whole frame's layout: activations grow with a tile's pixels, those
 * of bands with its width. */
static double guess(const struct candidate *c, const struct vg_way *w, const struct vg_plan_request *r,
                    size_t least_bands)
{
    double weights = (double)(w->whole->weights + w->whole->persistent), part = (double)c->grid.x.tile / r->width;
    if (c->bands) {
        double bands = (double)least_bands - weights;
        return weights + 0.5 * (bands > 0 ? bands : 0) * part;
    }
    return weights + 0.75 * (double)w->whole->activations * part * c->grid.y.tile / r->height;
}

enum vgk_status vg_cut_fit(struct vg_plan *p, int width, int height, struct vg_how how, size_t max_bytes,
                           size_t *least_bytes, struct vg_program **best)
{
    size_t own = SIZE_MAX, all;
    struct vg_program *whole = NULL;
    enum vgk_status s = vg_plan_fit(p, width, height, how, max_bytes, &own, best);
    if (s && s != VGK_ERR_UNSUPPORTED)
        return s;
    if (!p->half || vg_plan_lay_out(p, width, height, how, &whole, NULL))
        all = s ? own : vg_program_bytes(*best);
    else
        all = vg_plan_rescued(p, whole, s ? own : vg_program_bytes(*best), width, height, how, max_bytes);
    vg_program_free(&whole);
    if (!s && all > max_bytes) {
        vg_program_free(best);
        s = VGK_ERR_UNSUPPORTED;
    }
    *least_bytes = s && all < *least_bytes ? all : *least_bytes;
    return s;
}

enum vgk_status vg_cut_choose(struct vg_plan *p, const struct vg_plan_request *r, const struct vg_way *ways, int n_ways,
                              bool stream, size_t least_bands, size_t max_bytes, size_t *least_bytes,
                              struct vg_cut *best, struct vgk_error *err)
{
    struct candidate *list = NULL;
    int n = list_candidates(p, r, ways, n_ways, &list);
    if (!list)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory to plan");
    enum vgk_status s = VGK_ERR_UNSUPPORTED;
    double smallest = 1e300, narrowest = 1e300;
    for (int i = 0; i < n; i++) {
        double pixels = (double)list[i].grid.x.tile * list[i].grid.y.tile;
        smallest = pixels < smallest ? pixels : smallest;
        narrowest = list[i].grid.x.tile < narrowest ? list[i].grid.x.tile : narrowest;
    }
    p->quiet = true;
    for (int again = 0; again < 2; again++) /* in the end, to say what would do, the smallest of all too */
        for (int i = 0; i < n && s == VGK_ERR_UNSUPPORTED; i++) {
            const struct candidate *c = &list[i];
            const struct vg_way *w = &ways[n_ways > 1 && c->direct];
            struct vg_how how = vg_cut_how(p, c->direct, stream), at_once = how;
            at_once.bands = 1;
            bool small = c->bands ? c->grid.x.tile <= 1.5 * narrowest
                                  : (double)c->grid.x.tile * c->grid.y.tile <= 1.5 * smallest;
            bool fits = guess(c, w, r, least_bands) <= (double)max_bytes;
            if (again ? fits || !small : !fits)
                continue;
            struct vg_program *l = NULL;
            int width = c->grid.x.tile, height = c->grid.y.tile;
            enum vgk_status made = c->bands ? vg_cut_fit(p, width, height, how, max_bytes, least_bytes, &l)
                                            : vg_plan_lay_out(p, width, height, how, &l, NULL);
            if (made == VGK_ERR_NOMEM)
                s = vgk_fail(err, made, "no memory to plan");
            if (made || !l)
                continue; /* too small a tile for the model's own padding, for instance */
            size_t bytes = vg_program_bytes(l);
            if (!c->bands && (bytes <= max_bytes || bytes < *least_bytes))
                bytes = vg_plan_rescued(p, l, bytes, width, height, at_once, max_bytes);
            *least_bytes = bytes < *least_bytes ? bytes : *least_bytes;
            if (bytes <= max_bytes) {
                *best = (struct vg_cut){c->grid, c->direct, l};
                s = VGK_OK;
            } else {
                vg_program_free(&l);
            }
        }
    p->quiet = false;
    free(list);
    if (s)
        vg_plan_note(p, "tiles%s: at least %.1f MiB", stream ? " with weights from host memory" : "",
                     (double)*least_bytes / (1 << 20));
    return s;
}
