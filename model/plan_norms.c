/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What norms want beside the program that tiles run through: programs of the whole frame, and room to compare. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "plan_internal.h"
#include "window.h"

#define SMALL_SIZE 512  /* pixels: the longer side of a reduced frame */

const char *vg_norm_mode_name(enum vg_norm_mode mode)
{
    static const char *const names[VG_NORM_MODES] = {"exact", "previous", "frozen", "thumbnail", "tile", "auto"};
    return names[mode];
}

static size_t fixed_bytes(const struct vg_program *p) { return p ? p->weights + p->persistent : 0; }

static size_t small_frame_bytes(const struct vg_plan *p)
{
    const struct vg_plan_norms *n = &p->norms;
    return vgk_round_up((size_t)n->small_width * (size_t)n->small_height * (size_t)p->info.window * VG_FRAME_STEP,
                        VGK_ALIGN);
}

/* The kernels' own constants lie at the same places in both: equal kernels for equal shapes.  (The net's other constants
 * do not: they depend on the form of its norms.) */
static bool same_packed(const struct vg_program *a, const struct vg_program *b)
{
    const struct vgk_tensor *x = &a->inputs[a->net->frame_input].t, *y = &b->inputs[b->net->frame_input].t;
    const struct vg_net_value *u = &a->net->values[a->net->inputs[a->net->frame_input]],
                              *v = &b->net->values[b->net->inputs[b->net->frame_input]];
    if (a->streams || b->streams || a->packed != b->packed || x->rank != y->rank || memcmp(u->t.dim, v->t.dim, sizeof u->t.dim))
        return false;
    int j = 0, found = 0, packs = 0;
    for (int i = 0; i < a->n_steps; i++)
        packs += a->steps[i].packs;
    for (int i = 0; i < b->n_steps; i++) {
        const struct vg_step *s = &b->steps[i];
        if (!s->packs)
            continue;
        for (int tries = 0; tries < a->n_steps; tries++, j = (j + 1) % a->n_steps) { /* usually in the same order */
            const struct vg_step *t = &a->steps[j];
            if (t->packs && t->packed_offset == s->packed_offset)
                break;
        }
        const struct vg_step *t = &a->steps[j];
        if (!t->packs || t->packed_offset != s->packed_offset || t->packed != s->packed || t->node != s->node ||
            t->op.kind != s->op.kind ||
            (s->op.kind == VGK_OP_CONV && t->op.p.conv.exact_products != s->op.p.conv.exact_products))
            return false;
        found++;
    }
    return found == packs;
}

size_t vg_plan_arrange(struct vg_plan *p)
{
    struct vg_plan_norms *n = &p->norms;
    const struct vg_program *all[] = {p->program, p->exact, p->small, p->rescue};
    size_t frames = n->frame_bytes + (p->small ? small_frame_bytes(p) : 0);
    size_t at = fixed_bytes(p->program), most = 0;
    n->exact_at = at;
    at += fixed_bytes(p->exact) - (n->shared ? p->exact->packed : 0);
    n->small_at = at;
    at += fixed_bytes(p->small);
    n->rescue_at = at;
    at += fixed_bytes(p->rescue);
    n->frame_at = p->host ? 0 : at;
    n->small_frame_at = n->frame_at + n->frame_bytes;
    n->host_frames = p->host ? frames : 0;
    at += frames - n->host_frames;
    n->flights_at = at;
    at += p->flight_bytes;
    n->activations_at = at;
    for (int i = 0; i < 4; i++)
        if (all[i] && all[i]->activations > most)
            most = all[i]->activations;
    return n->arena = at + most + p->program->states;
}

static bool wants_exact(const struct vg_plan_norms *n)
{
    return n->errors || n->mode == VG_NORM_PREVIOUS || (n->mode == VG_NORM_FROZEN && !n->stored);
}

bool vg_plan_asks_for_tiles(const struct vg_plan_request *r)
{
    return (r->tile_width && r->tile_width < r->width) || (r->tile_height && r->tile_height < r->height);
}

/* The reduced frame's size: a multiple of the model's alignment and of chroma, near to the frame's shape. */
static void small_size(const struct vg_plan *p, const struct vg_plan_request *r, struct vg_plan_request *small)
{
    const struct vg_summary *s = &p->model->summary;
    int longer = r->width > r->height ? r->width : r->height;
    double by = longer > SMALL_SIZE ? (double)SMALL_SIZE / longer : 1;
    int ax = 2 * s->align_x, ay = 2 * s->align_y, w = (int)(r->width * by / ax + 0.5) * ax,
        h = (int)(r->height * by / ay + 0.5) * ay;
    *small = (struct vg_plan_request){.width = by < 1 ? (w ? w : ax) : r->width,
                                      .height = by < 1 ? (h ? h : ay) : r->height, .chroma_x = r->chroma_x,
                                      .chroma_y = r->chroma_y, .overlap_x = -1, .overlap_y = -1};
}

enum vgk_status vg_plan_norms_begin(struct vg_plan *p, const struct vg_plan_request *r, size_t *beside,
                                    struct vgk_error *err)
{
    struct vg_plan_norms *n = &p->norms;
    struct vg_program *probe = NULL;
    struct vg_plan_request small;
    struct vg_grid grid;
    bool fixed_size = p->model->summary.fixed_width > 0;
    *n = (struct vg_plan_norms){.mode = r->norm_mode, .frames = r->norm_frames > 0 ? r->norm_frames : VG_NORM_FRAMES};
    *beside = 0;
    if (n->mode == VG_NORM_AUTO && !r->live)
        n->mode = VG_NORM_EXACT;
    if (n->mode == VG_NORM_EXACT)
        return VGK_OK;
    enum vgk_status s = vg_plan_whole(p, r, VG_NORM_OWN_KEPT, &grid, &probe, err);
    if (s)
        return s;
    /* A reduced frame, or one that is done twice, has no states of its own. */
    bool states = p->model->summary.n_states > 0;
    bool none = !probe->net->n_memories || ((fixed_size || states) && n->mode == VG_NORM_THUMBNAIL);
    n->stored = !r->norm_measure && p->model->stored.n_sets && vg_stored_matches(&p->model->stored, probe->net);
    if (!none && !r->norm_measure && *p->model->stored_error.text &&
        (n->mode == VG_NORM_FROZEN || n->mode == VG_NORM_AUTO)) {
        vg_program_free(&probe);
        return vgk_fail(err, VGK_ERR_INVALID, "%s", p->model->stored_error.text);
    }
    if (n->mode == VG_NORM_AUTO)
        n->mode = n->stored ? VG_NORM_FROZEN : VG_NORM_PREVIOUS;
    if ((none && n->mode != VG_NORM_TILE) || (n->mode == VG_NORM_PREVIOUS && vg_plan_asks_for_tiles(r)))
        n->mode = VG_NORM_EXACT;
    n->stored &= n->mode == VG_NORM_FROZEN;
    n->source = n->mode == VG_NORM_PREVIOUS                                  ? VG_NORM_KEPT
                : n->mode == VG_NORM_FROZEN || n->mode == VG_NORM_THUMBNAIL ? VG_NORM_GIVEN
                                                                             : VG_NORM_OWN;
    n->errors = r->norm_errors && n->mode != VG_NORM_EXACT && probe->net->n_memories && !states &&
                p->info.emit == 1 && vg_window_time_input(p->model) < 0;
    if (n->errors) {
        size_t w = (size_t)vg_axis_scale(&grid.x, grid.x.frame), h = (size_t)vg_axis_scale(&grid.y, grid.y.frame);
        n->frame_bytes = vgk_round_up(w * h * VG_FRAME_STEP, VGK_ALIGN);
        *beside += p->host ? 0 : n->frame_bytes;
    }
    if (wants_exact(n)) /* its packed weights may be those of the program, or not */
        *beside += fixed_bytes(probe) - (n->mode == VG_NORM_PREVIOUS && !p->half ? probe->packed : 0);
    vg_program_free(&probe);
    if (n->mode == VG_NORM_THUMBNAIL) {
        small_size(p, r, &small);
        n->small_width = small.width;
        n->small_height = small.height;
        s = vg_plan_whole(p, &small, VG_NORM_OWN_KEPT, &grid, &p->small, err);
        if (!s)
            *beside += fixed_bytes(p->small) + (p->host ? 0 : small_frame_bytes(p));
    }
    return s;
}

enum vgk_status vg_plan_norms_end(struct vg_plan *p, size_t max_bytes, struct vgk_error *err)
{
    struct vg_plan_norms *n = &p->norms;
    if (n->mode == VG_NORM_TILE && p->grid.x.n * p->grid.y.n == 1) { /* as exact as EXACT */
        n->mode = VG_NORM_EXACT;
        n->errors = false;
        n->frame_bytes = 0;
    }
    if (n->mode != VG_NORM_EXACT && wants_exact(n)) {
        const struct vg_axis *x = &p->grid.x, *y = &p->grid.y;
        struct vg_plan_request whole = {.width = x->frame, .height = y->frame, .overlap_x = -1, .overlap_y = -1};
        struct vg_grid grid;
        struct vg_how how = {.norms = VG_NORM_OWN_KEPT, .stream = p->program->streams};
        size_t least = SIZE_MAX, used;
        enum vgk_status s = vg_plan_whole(p, &whole, VG_NORM_OWN_KEPT, &grid, &p->exact, err);
        if (s)
            return s;
        bool shared = !p->half && same_packed(p->program, p->exact);
        size_t own = p->exact->packed;
        vg_program_free(&p->exact);
        vg_plan_arrange(p); /* without it */
        used = n->activations_at - (shared ? own : 0);
        s = used >= max_bytes ? VGK_ERR_NOMEM
                              : vg_plan_fit(p, grid.x.tile, grid.y.tile, how, max_bytes - used, &least, &p->exact);
        if (s)
            return vgk_fail(err, VGK_ERR_NOMEM, "%s: frames that are done exactly need %zu bytes beside the %zu of this "
                            "norm-mode, max-device-memory is %zu: set it to their sum or more, norm-mode to exact, or "
                            "store its statistics with `vidgen freeze`", p->model->summary.path,
                            least == SIZE_MAX ? 0 : least, used + p->room, max_bytes + p->room);
        n->shared = shared && same_packed(p->program, p->exact);
    }
    vg_plan_arrange(p);
    if (n->arena > max_bytes)
        return vgk_fail(err, VGK_ERR_NOMEM, "%s needs %zu bytes in this norm-mode, max-device-memory is %zu: set it to that "
                        "or more, or norm-mode to exact", p->model->summary.path, n->arena + p->room, max_bytes + p->room);
    return VGK_OK;
}

void vg_plan_norms_global(struct vg_plan *p, const char *why)
{
    if (!why && p->norms.mode == VG_NORM_FROZEN && !p->norms.stored && p->model->summary.n_states)
        why = "statistics are measured on whole frames, and so are its states";
    snprintf(p->global_why, sizeof p->global_why, "%s", why ? why : "");
}
