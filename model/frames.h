/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* 8-bit frames of any layout, component by component. */
#ifndef VG_FRAMES_H
#define VG_FRAMES_H

#include "../kernels/frame.h"

#define VG_FRAME_STEP 4 /* bytes that a pixel takes at most */

/* A frame that looks like another one, of its own size, without gaps in `memory`. */
struct vgk_frame vg_frame_like(const struct vgk_frame *, int width, int height, uint8_t *memory);

/* Means of what each pixel of `to` covers; `to` is not larger. */
void vg_frame_shrink(const struct vgk_frame *from, const struct vgk_frame *to);

/* Of all three components. */
uint64_t vg_frame_values(const struct vgk_frame *);

struct vg_difference {
    uint64_t values;
    double sum;      /* of |a - b| */
    int worst;
};
/* Adds the differences of the pixels [x, x + width) by [y, y + height) of a and those that begin at (bx, by) of b; all on
 * whole samples of chroma. */
void vg_frame_compare(const struct vgk_frame *a, int x, int y, int width, int height, const struct vgk_frame *b, int bx,
                      int by, struct vg_difference *);

#endif
