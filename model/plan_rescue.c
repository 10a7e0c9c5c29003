/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Half precision: the program in f32 for tiles that overflow.  It has weights of its own; activations where those of the
 * others are, in bands if it takes them to fit there.  Norms by the previous frame need none: the program that does frames
 * exactly is in f32. */
#include "plan_internal.h"

static size_t fixed_bytes(const struct vg_program *p) { return p->weights + p->persistent; }

enum vgk_status vg_plan_rescue_begin(struct vg_plan *p, const struct vg_plan_request *r, size_t *beside,
                                     struct vgk_error *err)
{
    struct vg_program *l = NULL;
    struct vg_grid grid;
    p->room = p->rescue_bytes = 0;
    if (!p->half || p->norms.mode == VG_NORM_PREVIOUS)
        return VGK_OK;
    enum vgk_status s = vg_plan_whole(p, r, p->norms.source, &grid, &l, err);
    if (!s && p->rescue_streams) {
        struct vg_how how = {.stream = true, .norms = p->norms.source};
        vg_program_free(&l);
        s = vg_plan_lay_out(p, grid.x.tile, grid.y.tile, how, &l, err);
    }
    if (s)
        return s;
    p->room = fixed_bytes(l);
    *beside += p->room;
    vg_program_free(&l);
    return VGK_OK;
}

enum vgk_status vg_plan_rescue_end(struct vg_plan *p, size_t max_bytes, struct vgk_error *err)
{
    const struct vg_plan_norms *n = &p->norms;
    const struct vg_program *l = p->program;
    struct vg_program *rescue = NULL, *banded = NULL;
    struct vg_how how = {.direct = p->direct, .stream = p->rescue_streams || l->streams, .norms = n->source};
    int width = p->grid.x.tile, height = p->grid.y.tile;
    if (!p->half || n->mode == VG_NORM_PREVIOUS)
        return VGK_OK;
    enum vgk_status s = vg_plan_lay_out(p, width, height, how, &rescue, err);
    if (s)
        return s;
    size_t before = n->arena, shared = before - n->activations_at, least = SIZE_MAX;
    p->quiet = true; /* notes are about the main program */
    bool fits = n->activations_at + vg_program_bytes(rescue) <= max_bytes;
    if (vg_program_bytes(rescue) > fixed_bytes(rescue) + shared &&
        !vg_plan_fit(p, width, height, how, fixed_bytes(rescue) + shared, &least, &banded)) {
        /* What has to be brought from host memory is worth it only where nothing else fits. */
        struct vg_program **worse = banded->n_spilled && fits ? &banded : &rescue;
        vg_program_free(worse);
        rescue = rescue ? rescue : banded;
    }
    p->quiet = false;
    p->rescue = rescue;
    p->rescue_bytes = vg_plan_arrange(p) - before;
    if (n->arena > max_bytes)
        return vgk_fail(err, VGK_ERR_NOMEM, "%s in half precision needs %zu bytes (%.1f MiB), with what runs overflowing tiles "
                        "again, max-device-memory is %zu: set it to %zu or more, or take a smaller frame",
                        p->model->summary.path, n->arena, (double)n->arena / (1 << 20), max_bytes, n->arena);
    return VGK_OK;
}
