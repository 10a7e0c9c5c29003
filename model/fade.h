/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two windows of frames that overlap in time: one picture fades into the other. */
#ifndef VG_FADE_H
#define VG_FADE_H

#include "stitch.h"

/* Where n frames of two windows overlap, the i-th of them (from 0) is (n - i) parts of n + 1 of the earlier window and
 * i + 1 of the later one.  Rounds to the nearest, and equal pixels stay equal.  `later` becomes the result. */
void vg_fade(const struct vg_layout *, const struct vg_picture *later, const struct vg_picture *earlier, int width,
             int height, int i, int n);

#endif
