/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What vidgenmodel counts, and how long a frame takes, as live pipelines want it told.  Whoever uses it has a lock. */
#ifndef GST_VIDGEN_STATS_H
#define GST_VIDGEN_STATS_H

#include <gst/gst.h>

#include "../model/run.h"

G_BEGIN_DECLS

typedef struct
{
  guint64 frames, tiles, reused, dropped, cuts, rescued;
  gint64 total, longest; /* microseconds of computing, of runs */

  /* The second that is counted now. */
  gint64 second_began;
  guint64 second_frames;
  gint64 second_longest;
  guint64 second_reused; /* the counter when it began */

  gdouble norm_drift; /* see struct vg_run_info */
  guint64 norm_cuts, norm_error_frames;
  gboolean norm_frozen;
  gdouble norm_error_mean;
  gint norm_error_max;
  GstClockTime norm_error_time; /* of the last comparison */
  gdouble fps; /* of the last whole second */
  guint64 memory, memory_peak;
  GstClockTime latency; /* what a frame takes: see gst_vidgen_stats_add_frames */
} GstVidgenStats;

/* So many frames were computed from `began` (monotonic time) to `now`, in one run, and took `time` of that (us).
 * TRUE: latency has changed.  It is the longest time of a second, rounded up: it grows at once, and shrinks at the end
 * of a second in which a quarter of it was not needed, unless that was because of reused tiles: when something moves
 * again, the whole of it is. */
gboolean gst_vidgen_stats_add_frames (GstVidgenStats *self, guint frames, gint64 began, gint64 now, gint64 time);

/* What the run counts. */
void gst_vidgen_stats_take_info (GstVidgenStats *self, const struct vg_run_info *info);

/* The property `stats`. */
GstStructure *gst_vidgen_stats_to_structure (const GstVidgenStats *self);

G_END_DECLS

#endif
