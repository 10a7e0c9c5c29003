/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ways to cut a frame into tiles, and the choice among them. */
#ifndef VG_CUT_H
#define VG_CUT_H

#include "plan_internal.h"

struct vg_cut {
    struct vg_grid grid;
    bool direct;
    struct vg_program *program;
};

/* A way to run the model: with the kernels that the backend likes best, or with direct products only.  Winograd's
 * blocks are three to four times faster, but every pixel's bits depend on its whole block, so bit-exact tiles need a
 * halo that grows by a block with every layer. */
struct vg_way {
    bool direct;
    struct vg_program *whole; /* laid out for the whole frame */
};

/* How a tile is laid out in this way. */
struct vg_how vg_cut_how(const struct vg_plan *, bool direct, bool stream);

/* Tiles of about this size; 0 = the whole frame.  way: NULL = one of which nothing is known yet.  least: frames smaller
 * than this are padded up to it. */
enum vgk_status vg_cut_frame(struct vg_plan *, const struct vg_plan_request *, const struct vg_way *way, int tile_width,
                             int tile_height, int least, struct vg_cut *, struct vgk_error *);

/* vg_plan_fit of both: the tile's program and what runs the tile again when it overflows. */
enum vgk_status vg_cut_fit(struct vg_plan *, int width, int height, struct vg_how, size_t max_bytes,
                           size_t *least_bytes, struct vg_program **best);

/* Tries grids in the order of their cost until one fits.  least_bands: what the whole frame needs in bands. */
enum vgk_status vg_cut_choose(struct vg_plan *, const struct vg_plan_request *, const struct vg_way *ways, int n_ways,
                              bool stream, size_t least_bands, size_t max_bytes, size_t *least_bytes,
                              struct vg_cut *best, struct vgk_error *);

#endif
