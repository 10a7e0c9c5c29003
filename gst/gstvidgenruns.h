/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a runner runs a window of buffers: at once, or in flight (vg_run_start), where the next one is started before the one
 * before is waited for; and what it counts.  One run is under way at most, but for the moment in which the next is started;
 * what it makes is the window's `flying`. */
#ifndef GST_VIDGEN_RUNS_H
#define GST_VIDGEN_RUNS_H

#include "gstvidgenrunner.h"

G_BEGIN_DECLS

/* Should the run that is next be compared with exact norms? */
gboolean gst_vidgen_runner_wants_comparison (GstVidgenRunner *self);

/* The window's callbacks; user: the runner. */
GstFlowReturn gst_vidgen_runner_run (gpointer user, GstBuffer *const *in, const guint64 *numbers, GstBuffer *const *out);
void gst_vidgen_runner_end_run (gpointer user, gint frames);
GstFlowReturn gst_vidgen_runner_arrive (gpointer user);

/* Nobody wants what is under way. */
void gst_vidgen_runner_give_up (GstVidgenRunner *self);

G_END_DECLS

#endif
