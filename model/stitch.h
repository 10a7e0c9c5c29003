/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tiles into frames: the pixels' side of model/tiling.h, for 8-bit pictures of any layout.
 *
 *     struct vg_stitch *s = NULL;
 *     vg_stitch_create(&grid, &layout, VG_BLEND_LINEAR, &s, &err);
 *     vg_stitch_begin(s);                                   // once a frame
 *     vg_stitch_tile(s, column, row, &frame, &tile);        // each tile once, in any order
 *     vg_stitch_end(s, &frame);
 *     vg_stitch_destroy(&s);
 *
 * What one tile owns alone is copied as it arrives.  Where two (at corners four) blend, weighted sums are gathered in
 * integers, so the order of the tiles does not matter and equal pixels stay equal; only these bands have sums.
 * Nothing is allocated after create.  Not thread-safe: one stitch, one thread at a time. */
#ifndef VG_STITCH_H
#define VG_STITCH_H

#include "tiling.h"

#define VG_MAX_PLANES 4

/* How a picture lies in memory.  A sample is the smallest piece of a plane that can be cut: one pixel's bytes, one
 * chroma pair, or a whole macropixel of packed 4:2:2. */
struct vg_layout {
    int planes;
    struct {
        int step;         /* bytes a sample */
        int x_sub, y_sub; /* a sample covers 1 << x_sub by 1 << y_sub pixels */
    } plane[VG_MAX_PLANES];
};

struct vg_picture {
    uint8_t *data[VG_MAX_PLANES];
    ptrdiff_t stride[VG_MAX_PLANES]; /* bytes */
};

/* Copies w by h pixels at (sx, sy) to (dx, dy), all positions on whole samples; a part of a sample at the right or
 * lower end is copied whole. */
void vg_copy_rect(const struct vg_layout *, const struct vg_picture *dst, int dx, int dy, const struct vg_picture *src,
                  int sx, int sy, int w, int h);

/* Are the first w by h pixels of both the same bytes? */
bool vg_same_rect(const struct vg_layout *, const struct vg_picture *, const struct vg_picture *, int w, int h);

/* Repeats the last valid sample to the right of `valid_w`, the last valid row below `valid_h`, up to w by h pixels. */
void vg_extend_edges(const struct vg_layout *, const struct vg_picture *, int valid_w, int valid_h, int w, int h);

struct vg_stitch;

/* For frames of the grid's scaled size.  VGK_ERR_NOMEM when the sums do not fit. */
enum vgk_status vg_stitch_create(const struct vg_grid *, const struct vg_layout *, enum vg_blend, struct vg_stitch **,
                                 struct vgk_error *);
void vg_stitch_destroy(struct vg_stitch **);

/* Bytes of the sums: 0 when there is nothing to blend. */
size_t vg_stitch_bytes(const struct vg_stitch *);

void vg_stitch_begin(struct vg_stitch *);
/* Pixel (x, y) of `tile` belongs at (origin + x, origin + y), in output pixels. */
void vg_stitch_tile(struct vg_stitch *, int column, int row, const struct vg_picture *frame,
                    const struct vg_picture *tile);
void vg_stitch_end(struct vg_stitch *, const struct vg_picture *frame);

#endif
