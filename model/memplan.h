/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Offsets for blocks with known lifetimes.  Pure: allocates nothing on any device, touches no data.
 *
 * Blocks whose [first, last] steps meet never share a byte.  Offsets are multiples of VGK_ALIGN.  Greedy by size,
 * the smallest gap that fits (Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020),
 * over several orders of the blocks; the best one is kept. */
#ifndef VG_MEMPLAN_H
#define VG_MEMPLAN_H

#include "../kernels/base.h"

struct vg_block {
    size_t bytes;    /* 0 takes no room */
    int first, last; /* steps, inclusive */
    size_t offset;   /* result */
};

/* Sets the offsets and *peak, the bytes needed in all.  VGK_ERR_INVALID: first > last, or sizes that overflow. */
enum vgk_status vg_memplan(struct vg_block *blocks, int n, size_t *peak);

/* The largest sum of bytes alive at one step: no layout can do with less. */
size_t vg_memplan_floor(const struct vg_block *blocks, int n);
/* The step at which that is, the first of several; -1 for no blocks. */
int vg_memplan_busiest(const struct vg_block *blocks, int n);

#endif
