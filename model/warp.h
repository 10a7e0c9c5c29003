/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Warps written out: a GridSample at every pixel's own place plus a flow, in numbers from -1 to 1 over the picture.
 * Those numbers are rounded, and differently in a tile and in its frame.  Where the grid is found to be place + flow, the
 * sample takes the flow itself: the same, without that rounding, and the same bits wherever the pixel lies. */
#ifndef VG_WARP_H
#define VG_WARP_H

#include "net.h"

/* A pass (fuse.c): true when op `at` was such a sample. */
bool vg_net_find_warp(struct vg_net *, int at);

/* A sample that is none of these: in tiles its places are rounded otherwise than in the frame.  The node's name, or
 * NULL. */
const char *vg_net_rounded_places(const struct vg_net *);

#endif
