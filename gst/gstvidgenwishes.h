/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How frames should be cut: vidgenchunk's properties for that, and the grid that comes of them, from the model that
 * stands behind or by themselves. */
#ifndef GST_VIDGEN_WISHES_H
#define GST_VIDGEN_WISHES_H

#include "gstvidgentilemeta.h"

G_BEGIN_DECLS

typedef struct
{
  gint tile_width, tile_height, overlap_x, overlap_y; /* pixels */
  gint window, hop;                                   /* frames */
} GstVidgenWishes;

enum
{
  GST_VIDGEN_WISH_0,
  GST_VIDGEN_WISH_TILE_WIDTH,
  GST_VIDGEN_WISH_TILE_HEIGHT,
  GST_VIDGEN_WISH_OVERLAP_X,
  GST_VIDGEN_WISH_OVERLAP_Y,
  GST_VIDGEN_WISH_WINDOW,
  GST_VIDGEN_WISH_HOP,
  GST_VIDGEN_N_WISHES,
};

void gst_vidgen_wishes_init (GstVidgenWishes *self);

/* The properties. */
void gst_vidgen_wishes_install (GObjectClass *klass);
/* NULL: id is not one of them. */
gint *gst_vidgen_wishes_size (GstVidgenWishes *self, guint id);

/* Asks what is downstream of srcpad for its plan (gstvidgenplan.h).  *grid, owned, and *frames stay as they are where
 * there is no model.  FALSE: it refused, and said why. */
gboolean gst_vidgen_wishes_ask (
    const GstVidgenWishes *self, GstPad *srcpad, GstCaps *caps, GstVidgenGrid **grid, gint *frames);

/* What the properties alone say; whole: frames are not cut.  NULL: they cannot be cut so. */
GstVidgenGrid *gst_vidgen_wishes_grid (
    const GstVidgenWishes *self, const GstVideoInfo *info, gboolean whole, GError **error);

G_END_DECLS

#endif
