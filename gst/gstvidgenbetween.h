/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The frames of an interpolator: n new ones between each frame and its successor.
 *
 * Each frame that goes in gives n + 1, at the same distances: itself, with its pixels, its data and the first part of
 * its duration, and n new ones without metas.  The last one of a sequence has no successor: it is repeated, so that the
 * stream keeps its length and the count of its frames is always n + 1 times that of the source.  Where the successor is
 * of another scene, the new frames repeat the nearer of the two.
 *
 * Times come from timestamps: from a frame's to the next one's, or else from durations. */
#ifndef GST_VIDGEN_BETWEEN_H
#define GST_VIDGEN_BETWEEN_H

#include "gstvidgentilemeta.h"

G_BEGIN_DECLS

typedef struct
{
  gint n;                   /* new frames between two; 0 = no interpolator */
  const GstVideoInfo *info; /* of the buffers that go in; those that come out have the same, but for the rate */
  gboolean cut;             /* the two frames are of different scenes */
  GstClockTime duration;    /* of the last frame that had one: for those that have none */
  /* What the frames that leave are, for as long as one lasts: a record for each, where there are tiles.  [0] is the
   * frame itself, [1 .. n] the new ones behind it. */
  GstVidgenFrameRecord **records;
} GstVidgenBetween;

void gst_vidgen_between_open (GstVidgenBetween *self, gint n, const GstVideoInfo *info);
void gst_vidgen_between_clear (GstVidgenBetween *self);

/* Another pair of frames: their records are new ones. */
void gst_vidgen_between_forget (GstVidgenBetween *self);

/* Makes `out`, which has the data of `from`, a tile of the earlier of two frames, a tile of the i-th frame from there.
 * `to` is the same tile of the later one, or NULL: there is none.  FALSE: the source cannot be mapped. */
gboolean gst_vidgen_between_stamp (GstVidgenBetween *self, gint i, GstBuffer *from, GstBuffer *to, GstBuffer *out);

/* Copies the pixels of the nearer of the two.  FALSE: a buffer cannot be mapped. */
gboolean gst_vidgen_between_copy (GstVidgenBetween *self, gint i, GstBuffer *from, GstBuffer *to, GstBuffer *out);

G_END_DECLS

#endif
