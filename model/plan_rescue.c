/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Half precision: the program in f32 for tiles that overflow.  It has weights of its own; activations where those of the
 * others are, in bands if it takes them to fit there.  Norms by the previous frame need none: the program that does frames
 * exactly is in f32. */
#include "plan_internal.h"

static size_t fixed_bytes(const struct vg_program *p) { return p->weights + p->persistent; }

static bool none_needed(const struct vg_plan *p) { return !p->half || p->norms.mode == VG_NORM_PREVIOUS; }

static struct vg_how rescue_how(const struct vg_plan *p, bool direct, bool streams)
{
    return (struct vg_how){.direct = direct, .stream = p->rescue_streams || streams, .norms = p->norms.source};
}

enum vgk_status vg_plan_rescue_begin(struct vg_plan *p, const struct vg_plan_request *r, size_t *beside,
                                     struct vgk_error *err)
{
    struct vg_program *l = NULL;
    struct vg_grid grid;
    p->room = p->rescue_bytes = 0;
    if (none_needed(p))
        return VGK_OK;
    enum vgk_status s = vg_plan_whole(p, r, p->norms.source, &grid, &l, err);
    if (!s && p->rescue_streams) {
        vg_program_free(&l);
        s = vg_plan_lay_out(p, grid.x.tile, grid.y.tile, rescue_how(p, false, true), &l, err);
    }
    if (s)
        return s;
    p->room = fixed_bytes(l);
    *beside += p->room;
    vg_program_free(&l);
    return VGK_OK;
}

static size_t more(size_t a, size_t b) { return a > b ? a : b; }

size_t vg_plan_rescued(struct vg_plan *p, const struct vg_program *l, size_t own, int width, int height, struct vg_how how,
                       size_t max_bytes)
{
    struct vg_program *rescue = NULL;
    bool quiet = p->quiet;
    if (none_needed(p))
        return own;
    bool at_once = how.bands == 1;
    how = rescue_how(p, how.direct, how.stream);
    size_t fixed = fixed_bytes(l), room = max_bytes + p->room, least = SIZE_MAX;
    p->quiet = true; /* notes are about the main program */
    bool fits = !at_once && !vg_plan_fit(p, width, height, how, room > fixed ? room - fixed : 0, &least, &rescue);
    p->quiet = quiet;
    if (!fits && vg_plan_lay_out(p, width, height, how, &rescue, NULL))
        return SIZE_MAX;
    if (fits || at_once)
        least = vg_program_bytes(rescue);
    size_t all = more(own + fixed_bytes(rescue), fixed + least);
    vg_program_free(&rescue);
    return more(own, all - (p->room < all ? p->room : all));
}

enum vgk_status vg_plan_rescue_end(struct vg_plan *p, size_t max_bytes, struct vgk_error *err)
{
    const struct vg_plan_norms *n = &p->norms;
    const struct vg_program *l = p->program;
    struct vg_program *rescue = NULL, *banded = NULL;
    struct vg_how how = rescue_how(p, p->direct, l->streams);
    int width = p->grid.x.tile, height = p->grid.y.tile;
    if (none_needed(p))
        return VGK_OK;
    enum vgk_status s = vg_plan_lay_out(p, width, height, how, &rescue, err);
    if (s)
        return s;
    size_t fixed = fixed_bytes(rescue), least = vg_program_bytes(rescue), before = n->arena, at = n->activations_at;
    size_t shared = before - at, room = max_bytes > at ? max_bytes - at : 0;
    p->quiet = true;
    bool fits = least <= room;
    if (least > fixed + shared &&
        (!vg_plan_fit(p, width, height, how, fixed + shared, &least, &banded) ||
         (!fits && !vg_plan_fit(p, width, height, how, room, &least, &banded)))) {
        /* What has to be brought from host memory is worth it only where nothing else fits. */
        struct vg_program **worse = banded->n_spilled && fits ? &banded : &rescue;
        vg_program_free(worse);
        rescue = rescue ? rescue : banded;
    }
    p->quiet = false;
    p->rescue = rescue;
    p->rescue_bytes = vg_plan_arrange(p) - before;
    if (n->arena > max_bytes) {
        size_t needed = at + more(fixed + shared, least);
        return vgk_fail(err, VGK_ERR_NOMEM, "%s in half precision needs %zu bytes (%.1f MiB), with what runs overflowing tiles "
                        "again, max-device-memory is %zu: set it to %zu or more, or take a smaller frame",
                        p->model->summary.path, needed, (double)needed / (1 << 20), max_bytes, needed);
    }
    return VGK_OK;
}
