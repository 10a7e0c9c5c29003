/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Models that look at several frames: between a model element's tiles that come in and its tiles that go out.
 *
 * Each tile of each frame goes in once.  The last `window` of every place in the frame are kept, as references to
 * buffers, and a place is run as soon as its window is full.  What comes out leaves in the order of frames, all tiles
 * of a frame together, each with the data of the frame that it stands for: what follows sees nothing of windows.
 *
 * Exactly as many frames leave as came in.  Before the first frame of a sequence and behind its last one the edge frame
 * is repeated, as often as it takes.  A sequence ends where frames do not follow each other (end of the stream, another
 * segment, other caps, another plan, DISCONT, a gap, a cut): it is drained, and the next frame is a first one.  A frame
 * that was dropped because it was late is no such end: the window closes up, as if the frame had never been.
 *
 * Windows that overlap (emit > hop) fade into each other.  Interpolators (centre -1) let the source's frames pass and
 * add the model's between them: see gstvidgenbetween.h.
 *
 * Serialised events that come while frames are kept leave between the frames that they came between.
 *
 * Part of an element; the streaming thread's.  Nothing but references is made while running. */
#ifndef GST_VIDGEN_WINDOW_H
#define GST_VIDGEN_WINDOW_H

#include <gst/base/base.h>

#include "../model/plan.h"
#include "gstvidgenbetween.h"

G_BEGIN_DECLS

/* Runs the model on in[window], to out[emit].  numbers: of each frame, not 0 and never of another one again.  What is not
 * complete yet when it returns is `flying`. */
typedef GstFlowReturn (*GstVidgenWindowRun) (
    gpointer user, GstBuffer *const *in, const guint64 *numbers, GstBuffer *const *out);
/* All tiles of a window have been run; so many frames leave. */
typedef void (*GstVidgenWindowDone) (gpointer user, gint frames);
/* Nothing flies any more when it returns. */
typedef GstFlowReturn (*GstVidgenWindowLand) (gpointer user);

typedef struct
{
  GstBaseTransform *trans; /* not a reference: makes output buffers, and pushes them */
  GstVidgenWindowRun run;
  GstVidgenWindowDone done;
  GstVidgenWindowLand land; /* NULL: nothing ever flies */
  gpointer user;                          /* theirs */
  const GstVideoInfo *in_info, *out_info; /* of buffers */
  GstBuffer *flying;                      /* theirs, borrowed: it does not leave yet, nor what comes behind it */

  struct vg_plan_info info; /* window, emit, hop and centre of the plan */
  gint n_tiles;             /* of a frame; 0 = not open */

  GstBuffer **kept;         /* [window][n_tiles]: frame f in row f % window; NULL = a tile that has not come */
  GstBuffer **results;      /* [emit][n_tiles] of the window in work; what has left is NULL */
  GstBuffer **fading;       /* [emit - hop][n_tiles] of the window before, to be faded into the next */
  GstBuffer **in, **out;    /* of a run */
  guint64 *numbers;         /* of the frames in `in` */
  GstVidgenBetween between; /* of an interpolator */

  guint64 before; /* frames of all sequences that have ended */
  /* All other frames count from the start of the sequence. */
  gint64 n_frames; /* that have begun */
  gint64 n_runs;   /* windows that are complete */
  gint64 released; /* frames before this one are not kept */
  gint n_come;     /* tiles of the last frame that have come; n_tiles: it is complete */

  GQueue events;        /* that wait for frames */
  GstQueueArray *ready; /* buffers and events, in the order in which they leave */
} GstVidgenWindow;

/* Who has it sets the fields up to n_tiles then. */
void gst_vidgen_window_init (GstVidgenWindow *self, GstBaseTransform *trans);
void gst_vidgen_window_clear (GstVidgenWindow *self);

/* For frames of so many tiles; drops what is there.  Nothing changes when it is open so already.  For a model of single
 * frames that do not fly it stays closed: there is nothing to keep. */
void gst_vidgen_window_open (GstVidgenWindow *self, const struct vg_plan_info *info, gint n_tiles);

void gst_vidgen_window_close (GstVidgenWindow *self);

/* Output buffers that exist at once, at most, beside one that is leaving. */
guint gst_vidgen_window_buffers (const GstVidgenWindow *self);

/* How long the first result of a window must wait for the window's last frame, at this frame duration. */
GstClockTime gst_vidgen_window_wait (const GstVidgenWindow *self, GstClockTime frame);

/* A frame begins, the tile that comes next is of it.  cut: it is another scene than the last one (interpolators). */
GstFlowReturn gst_vidgen_window_begin_frame (GstVidgenWindow *self, gboolean cut);

/* A tile of the frame that began, takes it; index: its place in the frame. */
GstFlowReturn gst_vidgen_window_take (GstVidgenWindow *self, GstBuffer *tile, gint index);

/* The next buffer that leaves, after the events before it; NULL: none. */
GstBuffer *gst_vidgen_window_pop (GstVidgenWindow *self);

/* Pushes all of them. */
GstFlowReturn gst_vidgen_window_push (GstVidgenWindow *self);

/* Takes an event that must wait; FALSE: there is nothing to wait for. */
gboolean gst_vidgen_window_hold (GstVidgenWindow *self, GstEvent *event);

/* Ends the sequence: pushes all that is left. */
GstFlowReturn gst_vidgen_window_drain (GstVidgenWindow *self);

/* Ends the sequence without that. */
void gst_vidgen_window_drop (GstVidgenWindow *self);

G_END_DECLS

#endif
