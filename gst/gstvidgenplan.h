/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the elements of a tile section ask and tell each other.  All queries are GST_QUERY_CUSTOM with a named
 * structure; none leaves the section between vidgenchunk and vidgenstitch.
 *
 * "vidgen-plan", chunk -> model, downstream, at caps negotiation: which tiles for this frame?  Asked again before the
 * next frame after a RECONFIGURE.  The model fills in the answer; the stitch refuses it (no model between: chunk goes
 * by its own properties).  A model that cannot do it posts an element error and answers with "refused" = TRUE.
 *   Frames in CUDA memory, or that come out in CUDA memory, are one tile of their own size.
 *   in:   "caps" GstCaps of the frames; "tile-width", "tile-height" int (0 = plan), "overlap-x", "overlap-y" int
 *         (-1 = plan), "window", "hop" int frames (0 = plan)
 *   out:  "grid" GST_TYPE_VIDGEN_GRID (gstvidgentilemeta.h), "frames" int (how many the model keeps, 1 = none but the
 *         one in work), "refused" boolean
 *
 * "vidgen-frame", stitch -> chunk, upstream, when a GAP comes before the first tile: how large are frames?
 *   out:  "width", "height" int, "grid" GST_TYPE_VIDGEN_GRID
 *
 * "vidgen-sizes", chunk -> stitch, downstream: which frame caps does what follows the section take?
 *   out:  "caps" GstCaps, "scale-num", "scale-den" int are added by a model on the way (input size * num / den); a
 *         model passes the query on and then adds its scale to the answer
 *
 * And two events:
 *
 * "vidgen-qos", stitch -> chunk, upstream, GST_EVENT_CUSTOM_UPSTREAM: a QoS event about whole frames, "event" GstEvent.
 * Wrapped, so that nothing between drops single tiles for it; chunk sends it on as it was.
 *
 * GAP with a field "vidgen-late", chunk -> stitch, downstream: no frame comes for this time; if it is TRUE one was
 * dropped because it was late.  A GAP without the field is a tile's: what dropped it is between the two. */
#ifndef GST_VIDGEN_PLAN_H
#define GST_VIDGEN_PLAN_H

#include <gst/video/video.h>

#include "../model/tiling.h"

G_BEGIN_DECLS

#define GST_VIDGEN_QUERY_PLAN "vidgen-plan"
#define GST_VIDGEN_QUERY_FRAME "vidgen-frame"
#define GST_VIDGEN_QUERY_SIZES "vidgen-sizes"
#define GST_VIDGEN_EVENT_QOS "vidgen-qos"
#define GST_VIDGEN_GAP_LATE "vidgen-late"

/* Takes the GAP event, gives it with the field. */
GstEvent *gst_vidgen_mark_gap (GstEvent *gap, gboolean late);

/* Takes the QoS event. */
GstEvent *gst_vidgen_wrap_qos (GstEvent *qos);
/* NULL: not such an event. */
GstEvent *gst_vidgen_unwrap_qos (GstEvent *event);

/* Formats of a tile section without a model; one with a model takes fewer (its own template says so).  8 bits a
 * component, and every plane can be cut at multiples of the chroma factor. */
#define GST_VIDGEN_FORMATS \
  "{ RGB, BGR, RGBx, BGRx, xRGB, xBGR, RGBA, BGRA, ARGB, ABGR, GBR, GBRA, I420, YV12, NV12, NV21, Y42B, Y444, " \
  "NV16, NV24, AYUV, YUY2, UYVY, YVYU, GRAY8 }"

/* How many pixels share a chroma sample: what vg_axis_request calls chroma. */
void gst_vidgen_format_chroma (const GstVideoFormatInfo *format, gint *x, gint *y);

/* A grid from two axes; FALSE with the error's text, prefixed with the axis' name, when either is impossible. */
gboolean gst_vidgen_make_grid (
    const struct vg_axis_request *x, const struct vg_axis_request *y, struct vg_grid *grid, struct vgk_error *err);

G_END_DECLS

#endif
