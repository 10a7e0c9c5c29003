/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One frame at a time out of its tiles: where each lands, how neighbours meet, and what stands in for a tile that does
 * not come.  Part of an element, which it posts its messages on; all functions are its streaming thread's. */
#ifndef GST_VIDGEN_ASSEMBLER_H
#define GST_VIDGEN_ASSEMBLER_H

#include "../model/stitch.h"
#include "gstvidgentilemeta.h"

G_BEGIN_DECLS

/**
 * GstVidgenMissingTile:
 * @GST_VIDGEN_MISSING_TILE_ERROR: stop with an error
 * @GST_VIDGEN_MISSING_TILE_SOURCE: show the source's pixels there
 * @GST_VIDGEN_MISSING_TILE_PREVIOUS: show the previous frame's pixels there
 *
 * Since: 0.1
 */
typedef enum
{
  GST_VIDGEN_MISSING_TILE_ERROR,
  GST_VIDGEN_MISSING_TILE_SOURCE,
  GST_VIDGEN_MISSING_TILE_PREVIOUS,
} GstVidgenMissingTile;

/* The types of the properties. */
GType gst_vidgen_blend_get_type (void);
#define GST_TYPE_VIDGEN_BLEND (gst_vidgen_blend_get_type ())
GType gst_vidgen_missing_tile_get_type (void);
#define GST_TYPE_VIDGEN_MISSING_TILE (gst_vidgen_missing_tile_get_type ())

typedef struct
{
  GstElement *element; /* not a reference */
  GstFlowReturn (*acquire) (GstElement *element, GstBuffer **buffer); /* one for a frame */
  enum vg_blend blend;
  GstVidgenMissingTile missing_tile;

  GstVideoInfo tile_info, out_info; /* as the caps of tiles and frames say */
  GstVidgenGrid *grid;              /* of which the next two are made */
  struct vg_stitch *stitch;
  guint8 *have; /* tiles of the frame that have come */

  /* The frame in work, or NULL. */
  GstVidgenFrameRecord *record;
  GstBuffer *buffer; /* NULL: all tiles so far are the source's own pixels, */
  gboolean may_pass; /* and if all are, the source is the frame */
  GstVideoFrame frame; /* of buffer, mapped */
  gint n_have;

  GstBuffer *previous; /* kept for missing-tile=previous only */
  gboolean warned;
} GstVidgenAssembler;

/* The tables for frames of this grid.  FALSE: an error was posted. */
gboolean gst_vidgen_assembler_set_grid (GstVidgenAssembler *self, GstVidgenGrid *grid);

/* Forgets the grid, with all that was made of it. */
void gst_vidgen_assembler_clear_grid (GstVidgenAssembler *self);

/* Begins the record's frame. */
void gst_vidgen_assembler_begin (GstVidgenAssembler *self, GstVidgenFrameRecord *record);

/* A tile of the frame in work; one that came before is passed over.  Errors are posted, but those of acquire. */
GstFlowReturn gst_vidgen_assembler_put (GstVidgenAssembler *self, GstBuffer *tile, const GstVidgenTileMeta *meta);

gboolean gst_vidgen_assembler_has_all (const GstVidgenAssembler *self);

/* The frame in work, whole, with what its record says; missing tiles are stood in for by missing_tile.  Errors are
 * posted, but those of acquire.  In any case no frame is in work any more. */
GstFlowReturn gst_vidgen_assembler_finish (GstVidgenAssembler *self, GstBuffer **buffer);

/* Forgets the frame in work, if any. */
void gst_vidgen_assembler_drop (GstVidgenAssembler *self);

G_END_DECLS

#endif
