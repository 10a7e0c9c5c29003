/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tiles in flight: started, and waited for when the next one is on its way. */
#include "run_internal.h"

enum vgk_status vg_run_flight_open(struct vg_run *r, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    return p->flight_bytes ? p->backend->flights_open(p->device, &p->flight_in, &p->flight_out,
                                                      r->arena + p->norms.flights_at, &r->flights, err)
                           : VGK_OK;
}

void vg_run_flight_close(struct vg_run *r)
{
    if (r->flights)
        r->plan->backend->flights_close(r->plan->device, &r->flights);
}

bool vg_run_flies(const struct vg_run *r) { return r->flights && vg_run_norms_known(r) && !r->norms.comparing; }

int vg_run_flying(const struct vg_run *r) { return r->flying; }

/* A tile's pixels of its frame, or all of a tile that is given alone (number 0). */
static struct vgk_part part_of(const struct vg_grid *g, int column, int row, const struct vgk_frame *frame, uint64_t number)
{
    int x = number ? g->x.origin[column] : 0, y = number ? g->y.origin[row] : 0, width = frame->width - x,
        height = frame->height - y;
    return (struct vgk_part){frame, number, x, y, width < g->x.tile || !number ? width : g->x.tile,
                             height < g->y.tile || !number ? height : g->y.tile};
}

/* The parts of a window's frames, of the size that a tile has. */
static enum vgk_status parts_of(const struct vg_plan *p, int column, int row, const struct vgk_frame *in, const uint64_t *number,
                                const struct vgk_frame *out, struct vgk_part *parts, struct vgk_error *err)
{
    struct vgk_frame tiles[VGK_FLIGHT_FRAMES];
    for (int i = 0; i < p->info.window; i++) {
        struct vgk_part *part = &parts[i];
        enum vgk_status s = number[i] ? vg_run_check_whole(p, &in[i], err) : VGK_OK;
        if (s)
            return s;
        *part = part_of(&p->grid, column, row, &in[i], number[i]);
        tiles[i] = vgk_frame_part(&in[i], part->x, part->y, part->width, part->height);
    }
    return vg_run_check_frames(p, tiles, out, err);
}

enum vgk_status vg_run_start(struct vg_run *r, int column, int row, const struct vgk_frame *in, const uint64_t *number,
                             const struct vgk_colour *colour, const struct vgk_frame *out, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    int k = (r->next_landing + r->flying) % VGK_FLIGHTS, nonfinite;
    struct flight *f = &r->flight[k];
    struct vgk_part parts[VGK_FLIGHT_FRAMES];
    if (!r->flights || r->flying == VGK_FLIGHTS)
        return vgk_fail(err, VGK_ERR_INVALID, "%d tiles in flight, the plan has room for %d", r->flying,
                        r->flights ? VGK_FLIGHTS : 0);
    if (!vg_run_flies(r))
        return vgk_fail(err, VGK_ERR_INVALID, "a tile in flight of a frame that norms are measured on or compared with: run it");
    enum vgk_status s = vg_run_check_place(p, column, row, err);
    s = s ? s : vg_run_norms_settle(r, err);
    s = s ? s : vg_run_between(r, 0, err);
    s = s ? s : parts_of(p, column, row, in, number, out, parts, err);
    if (s)
        return s;
    s = p->backend->flight_begin(p->device, r->flights, k, parts, out, f->in, f->out, err);
    f->ends = vg_run_ends(r, column, row, f->in, colour, f->out);
    s = s ? s : vg_run_program(r, &r->main, &f->ends, err);
    s = s ? s : p->backend->flight_end(p->device, r->flights, k, err);
    if (s)
        p->backend->flight_wait(p->device, r->flights, k, NULL, &nonfinite, NULL);
    else
        r->flying++;
    return s;
}

enum vgk_status vg_run_wait(struct vg_run *r, const struct vgk_frame *out, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    int k = r->next_landing, nonfinite = 0;
    if (!r->flying)
        return vgk_fail(err, VGK_ERR_INVALID, "no tile was started");
    enum vgk_status s = p->backend->flight_wait(p->device, r->flights, k, out, &nonfinite, err);
    r->flying--;
    r->next_landing = (k + 1) % VGK_FLIGHTS;
    if (s || !out || !nonfinite || !p->half)
        return s;
    struct ends e = r->flight[k].ends;
    e.out = out;
    r->info.rescued++;
    return vg_run_program(r, &r->rescue, &e, err);
}
