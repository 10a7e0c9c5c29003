/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A model's window in time: how many frames it takes, gives, moves on by, and which of them are which. */
#ifndef VG_WINDOW_H
#define VG_WINDOW_H

#include "model_internal.h"
#include "plan.h"

/* True when the model takes any number of frames. */
bool vg_window_open(const struct vg_model *);

/* Before the graph has been looked at: the summary's window. */
enum vgk_status vg_window_read(struct vg_model *, struct vgk_error *);
/* When the summary's emit is known: hop, centre, how far it looks. */
enum vgk_status vg_window_finish(struct vg_model *, struct vgk_error *);

/* The window that a request asks for; into info's window, emit, hop and centre.  A plan's net tells `emit` for models
 * of any number of frames: see vg_window_emit. */
enum vgk_status vg_window_choose(const struct vg_model *, const struct vg_plan_request *, struct vg_plan_info *,
                                 struct vgk_error *);
/* What this net gives; VGK_ERR_INVALID when that does not go with the hop. */
enum vgk_status vg_window_emit(const struct vg_model *, const struct vg_net *, struct vg_plan_info *,
                               struct vgk_error *);

/* The input that says where an interpolator's frame lies, -1 = none. */
int vg_window_time_input(const struct vg_model *);

#endif
