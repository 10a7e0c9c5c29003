/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* In which rows each op's output comes: kernels that compute in blocks (backend.h: lattice) give whole blocks of them.
 *
 * If all began at the frame's first row, a layer that reaches a row below its blocks would need the next whole row of
 * blocks of the layer before, and bands would carry that to the next band.  So a layer's blocks begin as much further up
 * as it and the layers before it reach down: where a band ends for one, it ends for all.  That is a row of blocks more for
 * the frame, and so only for those of many. */
#ifndef VG_BLOCKS_H
#define VG_BLOCKS_H

#include "net.h"

struct vg_blocks {
    int height, width; /* of the kernel's blocks; 1 = it has none */
    int above;         /* rows of the first blocks that lie above the output, in frames and tiles */
    int unit;          /* in bands, rows come in multiples of this, counted from there */
};

/* need: of each op, over all of its output; rows: of the frame.  VGK_ERR_NOMEM. */
enum vgk_status vg_blocks_find(const struct vg_net *, const struct vgk_need *need, int rows, struct vg_blocks *);

#endif
