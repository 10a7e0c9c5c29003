/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a model element's streaming thread does: goes over to new plans, runs tiles, and knows where frames end and
 * where they do not follow each other.
 *
 * A sequence ends at the end of a stream or segment, at other caps or another plan, a flush, a gap, a frame marked
 * DISCONT, and a scene cut where those are looked for: windows are drained (gstvidgenwindow.h), states and statistics
 * forgotten.  Not so where frames were dropped because they were late: what follows is taken as the next frame.
 *
 * Part of an element; the streaming thread's, but for what is said to be under the object lock. */
#ifndef GST_VIDGEN_RUNNER_H
#define GST_VIDGEN_RUNNER_H

#include "gstvidgencuts.h"
#include "gstvidgenplanner.h"
#include "gstvidgenstats.h"
#include "gstvidgenwindow.h"

G_BEGIN_DECLS

typedef struct
{
  GstBaseTransform *trans; /* not a reference */
  GstVidgenPlanner *planner;

  /* Object lock. */
  GstVidgenScale scale; /* of the engine in use */
  GstVidgenStats stats;
  GstClockTime wait; /* for frames of the window that are yet to come */
  gboolean live;     /* the last LATENCY query said so */

  gint stop; /* atomic: what is computed now is not wanted any more */

  GstVidgenEngine *engine; /* NULL until there are caps */
  GstVidgenWindow window;  /* closed for models of single frames that do not fly */
  struct
  {
    gboolean under_way;
    gint frames;        /* that leave with it */
    gint64 began, time; /* when it was started, how long that took */
  } flight;             /* gstvidgenruns.h */
  GstVidgenCuts cuts;
  GstVideoInfo in_info, out_info;
  gboolean in_cuda, out_cuda; /* the caps of both sides say CUDA memory */
  GstVideoColorimetry colorimetry;
  struct vgk_colour colour;
  gboolean asked; /* there is a vidgenchunk */

  gboolean in_frame;
  gboolean discont; /* the frame that is next does not follow the last one */
  gboolean late;    /* it does: those between were dropped because they were late */
  guint64 frame_number;
  guint frame_tiles;
  gboolean ran;     /* a tile, since the last window was complete */
  gboolean counted; /* a tile, since frames were: */
  gint64 run_began, run_time;
  guint runs; /* begun, since one was compared with exact norms */
  gboolean compare; /* the one that is next is */
  gfloat *new_values; /* room for a copy of values */
  gboolean warned_foreign;
} GstVidgenRunner;

void gst_vidgen_runner_init (GstVidgenRunner *self, GstBaseTransform *trans, GstVidgenPlanner *planner);
void gst_vidgen_runner_clear (GstVidgenRunner *self);
void gst_vidgen_runner_start (GstVidgenRunner *self);
void gst_vidgen_runner_stop (GstVidgenRunner *self);

/* Caps of buffers that come next.  FALSE: an error was posted. */
gboolean gst_vidgen_runner_set_caps (GstVidgenRunner *self, GstCaps *caps);

/* Before a buffer is taken: at the start of a frame, the engine and the parameters for it.  FALSE: an error was posted.
 * *first: it is a frame's first buffer. */
gboolean gst_vidgen_runner_prepare (GstVidgenRunner *self, GstBuffer *buffer, gboolean *first);

/* The frame begins whose first buffer this is. */
GstFlowReturn gst_vidgen_runner_begin_frame (GstVidgenRunner *self, GstBuffer *buffer);

/* With a window: takes a buffer of the frame, or NULL, and gives the next that leaves, or NULL. */
GstFlowReturn gst_vidgen_runner_take (GstVidgenRunner *self, GstBuffer *in, GstBuffer **out);

/* Without: runs a buffer of the frame. */
GstFlowReturn gst_vidgen_runner_run_single (GstVidgenRunner *self, GstBuffer *in, GstBuffer *out);

/* What is under way leaves now: whatever is serialised with buffers comes behind it. */
GstFlowReturn gst_vidgen_runner_land (GstVidgenRunner *self);

/* Pushes that, and all that frames which are yet to come were waited for with. */
GstFlowReturn gst_vidgen_runner_drain (GstVidgenRunner *self);
/* The same, and what comes next does not follow what was. */
GstFlowReturn gst_vidgen_runner_end_sequence (GstVidgenRunner *self);
/* The same, and what is kept is dropped. */
void gst_vidgen_runner_flush (GstVidgenRunner *self);

/* A frame will not come, it was late. */
void gst_vidgen_runner_count_dropped (GstVidgenRunner *self);

G_END_DECLS

#endif
