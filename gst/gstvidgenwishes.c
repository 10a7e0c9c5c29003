/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenwishes.h"

#include "gstvidgenplan.h"

void
gst_vidgen_wishes_init (GstVidgenWishes *self)
{
  self->overlap_x = self->overlap_y = -1;
}

void
gst_vidgen_wishes_install (GObjectClass *klass)
{
  const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;

  g_object_class_install_property (klass, GST_VIDGEN_WISH_TILE_WIDTH,
      g_param_spec_int ("tile-width", "Tile width",
          "Width of a tile in pixels, its overlap included; it may grow a little so that the last tile ends with the "
          "frame (0 = as the model plans, or the whole width)",
          0, G_MAXINT, 0, flags));
  g_object_class_install_property (klass, GST_VIDGEN_WISH_TILE_HEIGHT,
      g_param_spec_int ("tile-height", "Tile height",
          "Height of a tile in pixels, its overlap included; it may grow a little so that the last tile ends with the "
          "frame (0 = as the model plans, or the whole height)",
          0, G_MAXINT, 0, flags));
  g_object_class_install_property (klass, GST_VIDGEN_WISH_OVERLAP_X,
      g_param_spec_int ("overlap-x", "Horizontal overlap",
          "Pixels that neighbouring tiles share across, at least (-1 = as much as the model sees around a pixel, none "
          "without one)",
          -1, G_MAXINT, -1, flags));
  g_object_class_install_property (klass, GST_VIDGEN_WISH_OVERLAP_Y,
      g_param_spec_int ("overlap-y", "Vertical overlap",
          "Pixels that neighbouring tiles share down, at least (-1 = as much as the model sees around a pixel, none "
          "without one)",
          -1, G_MAXINT, -1, flags));
  g_object_class_install_property (klass, GST_VIDGEN_WISH_WINDOW,
      g_param_spec_int ("window", "Window",
          "Frames that the model sees at once, of one that takes any number (0 = as it "
          "plans)",
          0, G_MAXINT, 0, flags));
  g_object_class_install_property (klass, GST_VIDGEN_WISH_HOP,
      g_param_spec_int ("hop", "Hop",
          "Frames that the window moves on by; where windows overlap for it, they fade into "
          "each other (0 = as the model plans)",
          0, G_MAXINT, 0, flags));
}

gint *
gst_vidgen_wishes_size (GstVidgenWishes *self, guint id)
{
  switch (id) {
    case GST_VIDGEN_WISH_TILE_WIDTH:
      return &self->tile_width;
    case GST_VIDGEN_WISH_TILE_HEIGHT:
      return &self->tile_height;
    case GST_VIDGEN_WISH_OVERLAP_X:
      return &self->overlap_x;
    case GST_VIDGEN_WISH_OVERLAP_Y:
      return &self->overlap_y;
    case GST_VIDGEN_WISH_WINDOW:
      return &self->window;
    case GST_VIDGEN_WISH_HOP:
      return &self->hop;
    default:
      return NULL;
  }
}

gboolean
gst_vidgen_wishes_ask (
    const GstVidgenWishes *self, GstPad *srcpad, GstCaps *caps, GstVidgenGrid **grid, gint *frames)
{
  GstQuery *query = gst_query_new_custom (GST_QUERY_CUSTOM,
      gst_structure_new (GST_VIDGEN_QUERY_PLAN, "caps", GST_TYPE_CAPS, caps, "tile-width", G_TYPE_INT,
          self->tile_width, "tile-height", G_TYPE_INT, self->tile_height, "overlap-x", G_TYPE_INT, self->overlap_x,
          "overlap-y", G_TYPE_INT, self->overlap_y, "window", G_TYPE_INT, self->window, "hop", G_TYPE_INT, self->hop,
          NULL));
  gboolean refused = FALSE;

  if (gst_pad_peer_query (srcpad, query)) {
    const GstStructure *answer = gst_query_get_structure (query);

    gst_structure_get (answer, "refused", G_TYPE_BOOLEAN, &refused, NULL);
    if (!refused)
      gst_structure_get (answer, "grid", GST_TYPE_VIDGEN_GRID, grid, "frames", G_TYPE_INT, frames, NULL);
  }
  gst_query_unref (query);
  return !refused;
}

static struct vg_axis_request
own_axis (gint frame, gint tile, gint overlap)
{
  struct vg_axis_request axis = {.frame = frame, .tile = tile, .overlap = overlap};

  axis.size_multiple = axis.origin_multiple = axis.num = axis.den = 1;
  return axis;
}

GstVidgenGrid *
gst_vidgen_wishes_grid (const GstVidgenWishes *self, const GstVideoInfo *info, gboolean whole, GError **error)
{
  struct vg_axis_request x = own_axis (info->width, whole ? 0 : self->tile_width, self->overlap_x);
  struct vg_axis_request y = own_axis (info->height, whole ? 0 : self->tile_height, self->overlap_y);
  struct vg_grid grid;
  struct vgk_error err = {{0}};

  gst_vidgen_format_chroma (info->finfo, &x.chroma, &y.chroma);
  if (gst_vidgen_make_grid (&x, &y, &grid, &err))
    return gst_vidgen_grid_new (&grid);
  g_set_error (error, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS,
      "Frames of %dx%d cannot be cut into these tiles: %s. They are asked for by tile-width %d, tile-height %d, "
      "overlap-x %d, overlap-y %d.",
      info->width, info->height, err.text, self->tile_width, self->tile_height, self->overlap_x, self->overlap_y);
  return NULL;
}
