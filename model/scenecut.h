/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a scene ends: the first frame of another one.
 *
 *     struct vg_scenecut cut = {0};
 *     if (vg_scenecut_next(&cut, &frame)) ...
 *
 * The method: brightness in 32 x 18 cells, each less what is around it, correlated with that of the frame before, at
 * the best of some shifts.  Correlation does not mind how bright a picture is, so a flash is no cut; shifts of up to
 * three cells, a tenth of the width, are a pan; two pictures of different scenes correlate by chance only.  A frame
 * that is white, black or flat for the most part says nothing: the next one is compared with the one before it.
 * Fades and dissolves are no cuts.  Reads 36864 pixels, whatever the size. */
#ifndef VG_SCENECUT_H
#define VG_SCENECUT_H

#include "../kernels/frame.h"

#define VG_SCENECUT_X 32
#define VG_SCENECUT_Y 18
#define VG_SCENECUT_SAMPLES 8 /* across and down a cell: of a picture of so many pixels each is looked at: */
#define VG_SCENECUT_WIDTH (VG_SCENECUT_X * VG_SCENECUT_SAMPLES)
#define VG_SCENECUT_HEIGHT (VG_SCENECUT_Y * VG_SCENECUT_SAMPLES)
#define VG_SCENECUT_LEAST 0.38f /* correlation within a scene; by chance it is 0.35 at most, in a pan 0.7 */

struct vg_scenecut {
    bool has;          /* there was a frame */
    float correlation; /* of the last two frames that said something */
    struct vg_scenecut_view {
        float detail[VG_SCENECUT_Y][VG_SCENECUT_X];
        bool valid[VG_SCENECUT_Y][VG_SCENECUT_X]; /* neither black nor white */
    } last;
};

/* Is it of another scene than the frame before?  Of the first frame nothing is known: no. */
bool vg_scenecut_next(struct vg_scenecut *, const struct vgk_frame *);

/* The next frame is the first. */
void vg_scenecut_reset(struct vg_scenecut *);

#endif
