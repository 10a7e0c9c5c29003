/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tile contract: what a tile buffer carries between vidgenchunk and vidgenstitch.
 *
 * A tile is an ordinary video/x-raw buffer with a GstVidgenTileMeta.  All tiles of a stream have the size that the
 * caps say.  The meta has no tags and a transform that answers every type, so it survives what copies metas; nothing
 * travels beside the tiles. */
#ifndef GST_VIDGEN_TILE_META_H
#define GST_VIDGEN_TILE_META_H

#include <gst/video/video.h>

#include "../model/tiling.h"

G_BEGIN_DECLS

/* How frames are cut.  Counted, shared by all tiles until the caps or the plan change. */
typedef struct
{
  struct vg_grid grid;
  gint written; /* atomic: something between writes in place, so chunk goes over to packed tiles */
} GstVidgenGrid;

/* One frame.  Counted, shared by all its tiles: what stitch needs to give the frame back as it came. */
typedef struct
{
  guint64 number;
  GstVideoInfo info;
  GstClockTime pts, dts, duration;
  guint64 offset, offset_end;
  guint flags;
  gboolean added;      /* by an interpolator: no frame of the source, so without its metas */
  GstBuffer *source;   /* keeps the pixels and the metas */
  GstVideoFrame frame; /* one READ map of source for the record's life; on the device, if it is asked for there */
} GstVidgenFrameRecord;

typedef struct
{
  GstMeta meta;
  GstVidgenFrameRecord *record;
  GstVidgenGrid *grid;
  guint column, row;
} GstVidgenTileMeta;

GType gst_vidgen_grid_get_type (void); /* boxed */
#define GST_TYPE_VIDGEN_GRID (gst_vidgen_grid_get_type ())
GstVidgenGrid *gst_vidgen_grid_new (const struct vg_grid *grid);
GstVidgenGrid *gst_vidgen_grid_ref (GstVidgenGrid *grid);
void gst_vidgen_grid_unref (GstVidgenGrid *grid);

/* Takes a reference to source and maps it, in_cuda: CUDA memory on the device; NULL when it cannot be mapped. */
GstVidgenFrameRecord *gst_vidgen_frame_record_new (
    guint64 number, const GstVideoInfo *info, GstBuffer *source, gboolean in_cuda);
/* The same frame at another time and under another number; added: a new frame that looks like it.  NULL: as above. */
GstVidgenFrameRecord *gst_vidgen_frame_record_at (
    const GstVidgenFrameRecord *record, guint64 number, GstClockTime pts, GstClockTime duration, gboolean added);
GstVidgenFrameRecord *gst_vidgen_frame_record_ref (GstVidgenFrameRecord *record);
void gst_vidgen_frame_record_unref (GstVidgenFrameRecord *record);
/* Gives a frame of `info` the record's timestamps, flags and metas: all but those that describe the source's memory;
 * geometry in metas follows the size. */
void gst_vidgen_frame_record_restore (const GstVidgenFrameRecord *record, const GstVideoInfo *info, GstBuffer *buffer);

/* What a meta says about a picture holds for what a model makes of it, unless it is about sizes that changed. */
gboolean gst_vidgen_meta_survives (const GstMeta *meta, gboolean rescaled);

GType gst_vidgen_tile_meta_api_get_type (void);
const GstMetaInfo *gst_vidgen_tile_meta_get_info (void);
#define gst_buffer_get_vidgen_tile_meta(b) \
  ((GstVidgenTileMeta *) gst_buffer_get_meta ((b), gst_vidgen_tile_meta_api_get_type ()))
/* Flags of a frame that do not hold for new ones that look like it. */
#define GST_VIDGEN_FLAGS_OF_ONE \
  (GST_BUFFER_FLAG_DISCONT | GST_BUFFER_FLAG_RESYNC | GST_BUFFER_FLAG_MARKER | GST_BUFFER_FLAG_HEADER)
/* Takes references of its own to record and grid. */
GstVidgenTileMeta *gst_buffer_add_vidgen_tile_meta (
    GstBuffer *buffer, GstVidgenFrameRecord *record, GstVidgenGrid *grid, guint column, guint row);

/* Has something between chunk and here written into this tile where it lay?  Then GStreamer has copied memory for it,
 * and `written` is set in the grid.  Called by each element of ours on the tiles that come in.  An element that puts
 * its own pixels into a new buffer must not carry chunk's GstParentBufferMeta over to it. */
void gst_vidgen_tile_check_written (GstBuffer *tile, const GstVidgenTileMeta *meta);

/* An API type with the "memory" tag that no buffer ever carries: in an ALLOCATION query it says "what reads this
 * memory is ours, and nothing between us writes into it": then tiles may be views. */
GType gst_vidgen_view_api_get_type (void);

G_END_DECLS

#endif
