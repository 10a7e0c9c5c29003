/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What Winograd's blocks cost a model in accuracy: a small picture run once with them and once with every product as
 * written, on a CPU device of its own, which is gone afterwards: within the budget of the plan that asks, in bands if need
 * be. */
#ifndef VG_TRIAL_H
#define VG_TRIAL_H

#include "model.h"

/* The largest difference that a plan accepts, in 8-bit steps.  A frame has some hundred times the sample's pixels, and
 * its worst one differs about twice as much (measured: 1.4 to 2 times): together below half a step. */
#define VG_TRIAL_MOST_STEPS 0.25

/* The largest difference of an output value, in 8-bit steps; it is measured once for each model, by the first who asks with
 * enough of max_bytes for it, and the model's plans take every product as written from then on if it is too large.
 * Infinite: one of both is not finite.  Negative: the model does not run on so small a picture, or, VG_TRIAL_NO_ROOM, not
 * within max_bytes. */
#define VG_TRIAL_NO_ROOM -2.0
double vg_trial_steps(struct vg_model *, size_t max_bytes);

#endif
