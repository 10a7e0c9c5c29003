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

/* A tile's pixels of its frame. */
static struct vgk_part tile_of(const struct vg_grid *g, int column, int row, const struct vgk_frame *frame, uint64_t number)
{
    int x = g->x.origin[column], y = g->y.origin[row], width = frame->width - x, height = frame->height - y;
    return (struct vgk_part){frame, number, x, y, width < g->x.tile ? width : g->x.tile,
                             height < g->y.tile ? height : g->y.tile};
}

enum vgk_status vg_run_start(struct vg_run *r, int column, int row, const struct vgk_frame *in, uint64_t number,
                             const struct vgk_colour *colour, const struct vgk_frame *out, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    int k = (r->next_landing + r->flying) % VGK_FLIGHTS, nonfinite;
    struct flight *f = &r->flight[k];
    struct vgk_frame out_there;
    if (!r->flights || r->flying == VGK_FLIGHTS)
        return vgk_fail(err, VGK_ERR_INVALID, "%d tiles in flight, the plan has room for %d", r->flying,
                        r->flights ? VGK_FLIGHTS : 0);
    if (!vg_run_flies(r))
        return vgk_fail(err, VGK_ERR_INVALID, "a tile in flight of a frame that norms are measured on or compared with: run it");
    enum vgk_status s = vg_run_check_place(p, column, row, err);
    s = s ? s : vg_run_norms_settle(r, err);
    s = s || !number ? s : vg_run_check_whole(p, in, err);
    if (s)
        return s;
    struct vgk_part part = number ? tile_of(&p->grid, column, row, in, number)
                                  : (struct vgk_part){in, number, 0, 0, in->width, in->height};
    struct vgk_frame tile = vgk_frame_part(in, part.x, part.y, part.width, part.height);
    if ((s = vg_run_check_frames(p, &tile, out, err)))
        return s;
    *f = (struct flight){column, row, *colour, {0}};
    s = p->backend->flight_begin(p->device, r->flights, k, &part, out, &f->in, &out_there, err);
    if (!s) {
        struct ends e = vg_run_ends(r, column, row, &f->in, colour, &out_there);
        s = vg_run_program(r, &r->main, &e, err);
    }
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
    const struct flight *f = &r->flight[k];
    if (!r->flying)
        return vgk_fail(err, VGK_ERR_INVALID, "no tile was started");
    enum vgk_status s = p->backend->flight_wait(p->device, r->flights, k, out, &nonfinite, err);
    r->flying--;
    r->next_landing = (k + 1) % VGK_FLIGHTS;
    if (s || !out || !nonfinite || !p->half)
        return s;
    struct ends e = vg_run_ends(r, f->column, f->row, &f->in, &f->colour, out);
    r->info.rescued++;
    return vg_run_program(r, &r->rescue, &e, err);
}
