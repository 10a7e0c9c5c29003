/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which input elements an output element of a Resize is made of, along one axis, and with what weights. */
#ifndef VGK_CPU_RESIZE_TAPS_H
#define VGK_CPU_RESIZE_TAPS_H

#include "elements.h"

/* Taps of each output index along an axis of `in` to `out` elements; 1 where nothing is mixed. */
int vgk_resize_taps(const struct vgk_resize *, int axis, int64_t in, int64_t out);

/* index and weight: [out][taps].  Indices lie in [0, in); the weights of an output add up to 1 and depend on its phase
 * only, never on how far from 0 it lies, wherever the scale is a ratio of small numbers. */
void vgk_resize_fill(const struct vgk_resize *, int axis, int64_t in, int64_t out, int32_t *index, float *weight);

#endif
