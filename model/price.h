/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a frame costs, to compare the ways of running it by: in products (multiply and add) of a direct convolution that
 * take as long.  Of one model and backend only; a number of its own means nothing. */
#ifndef VG_PRICE_H
#define VG_PRICE_H

#include "kernels/backend.h"
#include "net.h"
#include "schedule.h"

/* need: of each op, over all of its output; in_place: for each buffer, the one that it is computed in place of, -1 = none;
 * cache: of the backend; moved: bytes to host memory and from there. */
double vg_price(const struct vg_net *, const struct vg_schedule *, const struct vgk_need *need, const int *in_place,
                size_t cache, size_t moved);

#endif
