/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GStreamer's frames as the pictures of model/stitch.h, and tiles: views of a frame's memory, or copies. */
#ifndef GST_VIDGEN_VIEW_H
#define GST_VIDGEN_VIEW_H

#include "../model/stitch.h"
#include "gstvidgentilemeta.h"

G_BEGIN_DECLS

/* Any of GST_VIDGEN_FORMATS. */
struct vg_layout gst_vidgen_layout (const GstVideoFormatInfo *format);

/* Valid as long as the frame is mapped. */
struct vg_picture gst_vidgen_picture (const GstVideoFrame *frame);

/* A tile of the record's source, at (x, y), wholly inside the frame, as a buffer of one shared memory per plane with
 * the frame's strides.  NULL where that is not safe (the producer's memory cannot be shared, is split inside a plane,
 * or has a video meta with a map function of its own): copy it then. */
GstBuffer *gst_vidgen_view_new (const GstVidgenFrameRecord *record, gint x, gint y, gint width, gint height);

/* Is this mapped tile one of those, still?  Its pixels are then those of the record's frame. */
gboolean gst_vidgen_is_view (const GstVideoFrame *mapped, const GstVidgenTileMeta *tile);

/* Is the buffer no view, and its memory laid out as info says?  Then whoever takes frames of info can take it. */
gboolean gst_vidgen_is_plain (GstBuffer *buffer, const GstVideoInfo *info);

/* All of the source as one tile: its memory as it is, wherever that lies. */
GstBuffer *gst_vidgen_whole_new (const GstVidgenFrameRecord *record);

/* A tile as a copy in a buffer of the pool, of the size of info; what hangs over the frame repeats its edge.  NULL:
 * no memory, or the pool is flushing. */
GstBuffer *gst_vidgen_packed_new (
    const GstVidgenFrameRecord *record, gint x, gint y, const GstVideoInfo *info, GstBufferPool *pool);

G_END_DECLS

#endif
