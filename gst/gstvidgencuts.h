/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Scene cuts (model/scenecut.h), looked for in the buffers of a stream, wherever their pixels lie. */
#ifndef GST_VIDGEN_CUTS_H
#define GST_VIDGEN_CUTS_H

#include "../model/scenecut.h"
#include "gstvidgentilemeta.h"

G_BEGIN_DECLS

typedef struct
{
  struct vg_scenecut scene;
  GstBuffer *fetched; /* room for a frame on the host */
} GstVidgenCuts;

/* The next frame is a first one. */
void gst_vidgen_cuts_reset (GstVidgenCuts *self);
/* Frames of other caps come: gives the room back. */
void gst_vidgen_cuts_clear (GstVidgenCuts *self);

/* Is the next frame another scene than the one before?  It is the tile's, where that lies on the host, else the buffer,
 * of info and, on the device, of the context. */
gboolean gst_vidgen_cuts_next (GstVidgenCuts *self, const GstVidgenTileMeta *tile, const GstVideoInfo *info,
    GstBuffer *buffer, GstObject *context);

G_END_DECLS

#endif
