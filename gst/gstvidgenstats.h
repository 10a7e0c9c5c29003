/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What vidgenmodel counts, and how long a frame takes, as live pipelines want it told.  Whoever uses it has a lock. */
#ifndef GST_VIDGEN_STATS_H
#define GST_VIDGEN_STATS_H

#include <gst/gst.h>

G_BEGIN_DECLS

typedef struct
{
  guint64 frames, tiles, dropped, rescued;
  gint64 total, longest; /* microseconds of computing, of frames */

  /* The second that is counted now. */
  gint64 second_began;
  guint64 second_frames;
  gint64 second_longest;

  gdouble norm_drift; /* see struct vg_run_info */
  guint64 norm_cuts;
  gdouble fps; /* of the last whole second */
  guint64 memory, memory_peak;
  GstClockTime latency; /* what a frame takes: see gst_vidgen_stats_add_frame */
} GstVidgenStats;

/* A frame was computed from `began` (monotonic time) to `now`, and took `time` of that (microseconds).
 * TRUE: latency has changed.  It is the longest time of a second, rounded up: it grows at once, and shrinks at the end
 * of a second in which a quarter of it was not needed. */
gboolean gst_vidgen_stats_add_frame (GstVidgenStats *self, gint64 began, gint64 now, gint64 time);

/* The property `stats`. */
GstStructure *gst_vidgen_stats_to_structure (const GstVidgenStats *self);

G_END_DECLS

#endif
