/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the last run of each place in the frame was given, and what it gave (the property reuse-static): where the same
 * comes again, that is copied, and nothing runs.
 *
 * The same: all frames of the window byte for byte, halo and alpha included, and the version of the run (struct
 * vg_run_info).  Frames are kept by reference, and they are the last ones, even where those before were the same, so
 * that no more than a window's are held.  Results are copies: what leaves is nobody else's. */
#ifndef GST_VIDGEN_REUSE_H
#define GST_VIDGEN_REUSE_H

#include <gst/base/gstbasetransform.h>

#include "gstvidgenengine.h"

G_BEGIN_DECLS

typedef struct
{
  GstBaseTransform *trans; /* not a reference; results are of its pool */
  gint n_tiles, window, emit; /* what there is room for: */
  struct vidgen_reuse_place {
    GstBuffer **in, **result; /* [window], [emit] */
    guint64 version;          /* of the run, before it ran */
    gboolean given, known;    /* in is what it was given last; result is what that gave */
  } *places;                  /* [n_tiles] */
} GstVidgenReuse;

void gst_vidgen_reuse_forget (GstVidgenReuse *self);

/* Were these the last that their place was given, and would the engine do the same to them? */
gboolean gst_vidgen_reuse_knows (
    GstVidgenReuse *self, GstVidgenEngine *engine, const GstVideoInfo *info, GstBuffer *const *in);

/* They are run now, by the engine as it is. */
void gst_vidgen_reuse_keep_in (GstVidgenReuse *self, GstVidgenEngine *engine, GstBuffer *const *in);
/* That gave these, at the place that their tile meta tells. */
void gst_vidgen_reuse_keep_out (
    GstVidgenReuse *self, GstVidgenEngine *engine, const GstVideoInfo *info, GstBuffer *const *out);

/* For what it knows: copies the result, and keeps these frames from now on.  FALSE: there is no result, or it cannot be
 * copied. */
gboolean gst_vidgen_reuse_give (GstVidgenReuse *self, GstVidgenEngine *engine, GstBuffer *const *in,
    const GstVideoInfo *out_info, GstBuffer *const *out);

/* So many buffers it keeps: of frames, beside those of the window, and of results. */
#define gst_vidgen_reuse_frames(info) ((info)->hop)
guint gst_vidgen_reuse_results (const GstVidgenEngine *engine);

G_END_DECLS

#endif
