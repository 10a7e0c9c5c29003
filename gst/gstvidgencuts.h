/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Scene cuts (model/scenecut.h), looked for in the buffers of a stream, wherever their pixels lie. */
#ifndef GST_VIDGEN_CUTS_H
#define GST_VIDGEN_CUTS_H

#include "../model/scenecut.h"
#include "gstvidgenengine.h"

G_BEGIN_DECLS

/* Is the next frame another scene than the one before?  It is the tile's, where that lies on the host, else the buffer,
 * of info; frames of the engine's context are looked at on its device. */
gboolean gst_vidgen_cuts_next (struct vg_scenecut *scene, const GstVidgenTileMeta *tile, const GstVideoInfo *info,
    GstBuffer *buffer, GstVidgenEngine *engine);

G_END_DECLS

#endif
