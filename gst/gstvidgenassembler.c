/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenassembler.h"

#include <string.h>

#include "gstvidgenview.h"

GST_DEBUG_CATEGORY_EXTERN (gst_vidgen_stitch_debug);
#define GST_CAT_DEFAULT gst_vidgen_stitch_debug

GType
gst_vidgen_blend_get_type (void)
{
  static GType type;

  if (g_once_init_enter (&type)) {
    static const GEnumValue values[] = {{VG_BLEND_CROP, "Take each pixel from one tile", "crop"},
        {VG_BLEND_LINEAR, "Fade evenly across the overlap", "linear"},
        {VG_BLEND_COSINE, "Fade smoothly across the overlap", "cosine"}, {0, NULL, NULL}};

    g_once_init_leave (&type, g_enum_register_static ("GstVidgenBlend", values));
  }
  return type;
}

GType
gst_vidgen_missing_tile_get_type (void)
{
  static GType type;

  if (g_once_init_enter (&type)) {
    static const GEnumValue values[] = {{GST_VIDGEN_MISSING_TILE_ERROR, "Stop with an error", "error"},
        {GST_VIDGEN_MISSING_TILE_SOURCE, "Show the source there", "source"},
        {GST_VIDGEN_MISSING_TILE_PREVIOUS, "Show the previous frame there", "previous"}, {0, NULL, NULL}};

    g_once_init_leave (&type, g_enum_register_static ("GstVidgenMissingTile", values));
  }
  return type;
}

static gint
n_tiles (const GstVidgenAssembler *self)
{
  return self->grid->grid.x.n * self->grid->grid.y.n;
}

void
gst_vidgen_assembler_clear_grid (GstVidgenAssembler *self)
{
  vg_stitch_destroy (&self->stitch);
  g_clear_pointer (&self->have, g_free);
  g_clear_pointer (&self->grid, gst_vidgen_grid_unref);
}

gboolean
gst_vidgen_assembler_set_grid (GstVidgenAssembler *self, GstVidgenGrid *grid)
{
  const struct vg_layout layout = gst_vidgen_layout (self->tile_info.finfo);
  struct vgk_error err = {{0}};

  gst_vidgen_assembler_clear_grid (self);
  if (vg_stitch_create (&grid->grid, &layout, self->blend, &self->stitch, &err) != VGK_OK) {
    GST_ELEMENT_ERROR (self->element, RESOURCE, NO_SPACE_LEFT, ("%s.", err.text), (NULL));
    return FALSE;
  }
  self->have = g_malloc0 (grid->grid.x.n * grid->grid.y.n);
  self->grid = gst_vidgen_grid_ref (grid);
  return TRUE;
}

void
gst_vidgen_assembler_drop (GstVidgenAssembler *self)
{
  if (self->buffer)
    gst_video_frame_unmap (&self->frame);
  gst_clear_buffer (&self->buffer);
  g_clear_pointer (&self->record, gst_vidgen_frame_record_unref);
  self->n_have = 0;
}

/* Its source has all that the frame in work will have, laid out as the caps say. */
static gboolean
source_is_frame (const GstVidgenAssembler *self, const GstVidgenFrameRecord *record)
{
  GstBuffer *source = record->source;

  return record->info.width == self->out_info.width && record->info.height == self->out_info.height &&
      self->missing_tile != GST_VIDGEN_MISSING_TILE_PREVIOUS && !record->added &&
      record->pts == GST_BUFFER_PTS (source) && record->dts == GST_BUFFER_DTS (source) &&
      record->duration == GST_BUFFER_DURATION (source) && gst_vidgen_is_plain (source, &self->out_info);
}

void
gst_vidgen_assembler_begin (GstVidgenAssembler *self, GstVidgenFrameRecord *record)
{
  self->record = gst_vidgen_frame_record_ref (record);
  self->may_pass = source_is_frame (self, record);
  self->n_have = 0;
  memset (self->have, 0, n_tiles (self));
  vg_stitch_begin (self->stitch);
}

/* The tile at this place, as a part of a whole frame. */
static void
put_part (GstVidgenAssembler *self, guint column, guint row, const GstVideoFrame *whole)
{
  const struct vg_grid *grid = &self->grid->grid;
  const struct vg_layout layout = gst_vidgen_layout (whole->info.finfo);
  gint x = vg_axis_scale (&grid->x, grid->x.origin[column]);
  gint y = vg_axis_scale (&grid->y, grid->y.origin[row]);
  struct vg_picture out = gst_vidgen_picture (&self->frame);
  struct vg_picture part = gst_vidgen_picture (whole);

  for (gint p = 0; p < layout.planes; p++)
    part.data[p] += (y >> layout.plane[p].y_sub) * part.stride[p] +
        (gssize) (x >> layout.plane[p].x_sub) * layout.plane[p].step;
  vg_stitch_tile (self->stitch, column, row, &out, &part);
}

/* A buffer for the frame, with the tiles that are the source's. */
static GstFlowReturn
begin_buffer (GstVidgenAssembler *self)
{
  const gint columns = self->grid->grid.x.n;
  GstBuffer *buffer = NULL;
  GstFlowReturn ret = self->acquire (self->element, &buffer);

  if (ret != GST_FLOW_OK)
    return ret;
  if (!gst_video_frame_map (&self->frame, &self->out_info, buffer, GST_MAP_WRITE | GST_VIDEO_FRAME_MAP_FLAG_NO_REF)) {
    GST_ELEMENT_ERROR (self->element, RESOURCE, WRITE,
        ("A frame of %dx%d cannot be written.", self->out_info.width, self->out_info.height),
        ("buffer %" GST_PTR_FORMAT, buffer));
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  self->buffer = buffer;
  for (gint i = 0; i < n_tiles (self); i++)
    if (self->have[i])
      put_part (self, i % columns, i / columns, &self->record->frame);
  return GST_FLOW_OK;
}

GstFlowReturn
gst_vidgen_assembler_put (GstVidgenAssembler *self, GstBuffer *buffer, const GstVidgenTileMeta *meta)
{
  gint index = meta->row * self->grid->grid.x.n + meta->column;
  GstFlowReturn ret = GST_FLOW_OK;
  GstVideoFrame tile;

  if (self->have[index]) {
    GST_WARNING_OBJECT (
        self->element, "tile %d of frame %" G_GUINT64_FORMAT " came twice", index, meta->record->number);
    return GST_FLOW_OK;
  }
  if (!gst_video_frame_map (&tile, &self->tile_info, buffer, GST_MAP_READ)) {
    GST_ELEMENT_ERROR (self->element, STREAM, FAILED,
        ("A tile of %dx%d cannot be read.", self->tile_info.width, self->tile_info.height),
        ("buffer %" GST_PTR_FORMAT, buffer));
    return GST_FLOW_ERROR;
  }
  self->may_pass = self->may_pass && gst_vidgen_is_view (&tile, meta);
  if (!self->may_pass && !self->buffer)
    ret = begin_buffer (self);
  if (ret == GST_FLOW_OK && self->buffer) {
    struct vg_picture out = gst_vidgen_picture (&self->frame), picture = gst_vidgen_picture (&tile);

    vg_stitch_tile (self->stitch, meta->column, meta->row, &out, &picture);
  }
  gst_video_frame_unmap (&tile);
  if (ret == GST_FLOW_OK) {
    self->have[index] = TRUE;
    self->n_have++;
  }
  return ret;
}

gboolean
gst_vidgen_assembler_has_all (const GstVidgenAssembler *self)
{
  return self->n_have == n_tiles (self);
}

/* The source there, scaled and converted to what the tiles are. */
static gboolean
put_converted_source (GstVidgenAssembler *self, guint column, guint row)
{
  const struct vg_axis *ax = &self->grid->grid.x, *ay = &self->grid->grid.y;
  gint x = ax->origin[column], y = ay->origin[row];
  gint width = MIN (ax->tile, ax->frame - x);
  gint height = MIN (ay->tile, ay->frame - y);
  struct vg_picture out = gst_vidgen_picture (&self->frame), picture;
  GstVideoInfo in_info = self->record->info;
  GstVideoConverter *converter;
  GstVideoFrame tile;
  GstBuffer *buffer;
  gboolean ok;

  in_info.fps_n = self->tile_info.fps_n;
  in_info.fps_d = self->tile_info.fps_d;
  in_info.interlace_mode = self->tile_info.interlace_mode;
  converter = gst_video_converter_new (&in_info, &self->tile_info,
      gst_structure_new ("options", GST_VIDEO_CONVERTER_OPT_SRC_X, G_TYPE_INT, x, GST_VIDEO_CONVERTER_OPT_SRC_Y,
          G_TYPE_INT, y, GST_VIDEO_CONVERTER_OPT_SRC_WIDTH, G_TYPE_INT, width, GST_VIDEO_CONVERTER_OPT_SRC_HEIGHT,
          G_TYPE_INT, height, GST_VIDEO_CONVERTER_OPT_DEST_WIDTH, G_TYPE_INT, vg_axis_scale (ax, width),
          GST_VIDEO_CONVERTER_OPT_DEST_HEIGHT, G_TYPE_INT, vg_axis_scale (ay, height), NULL));
  if (!converter)
    return FALSE;
  buffer = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&self->tile_info), NULL);
  ok = gst_video_frame_map (&tile, &self->tile_info, buffer, GST_MAP_READWRITE | GST_VIDEO_FRAME_MAP_FLAG_NO_REF);
  if (ok) {
    gst_video_converter_frame (converter, &self->record->frame, &tile);
    picture = gst_vidgen_picture (&tile);
    vg_stitch_tile (self->stitch, column, row, &out, &picture);
    gst_video_frame_unmap (&tile);
  }
  gst_buffer_unref (buffer);
  gst_video_converter_free (converter);
  return ok;
}

static gboolean
fill_missing (GstVidgenAssembler *self, guint column, guint row)
{
  const GstVideoInfo *in = &self->record->info, *out = &self->out_info;
  GstVideoFrame whole;

  if (self->previous &&
      gst_video_frame_map (&whole, out, self->previous, GST_MAP_READ | GST_VIDEO_FRAME_MAP_FLAG_NO_REF)) {
    put_part (self, column, row, &whole);
    gst_video_frame_unmap (&whole);
    return TRUE;
  }
  if (GST_VIDEO_INFO_FORMAT (in) == GST_VIDEO_INFO_FORMAT (out) && in->width == out->width &&
      in->height == out->height) {
    put_part (self, column, row, &self->record->frame);
    return TRUE;
  }
  return put_converted_source (self, column, row);
}

/* By policy; FALSE after an error. */
static gboolean
complete_frame (GstVidgenAssembler *self)
{
  gint columns = self->grid->grid.x.n, n = n_tiles (self), first = 0;
  gchar *text;

  if (self->n_have == n)
    return TRUE;
  while (self->have[first])
    first++;
  text = g_strdup_printf ("Frame %" G_GUINT64_FORMAT
                          " came back with %d of %d tiles; the first that is missing is in column %d, row %d.",
      self->record->number, self->n_have, n, first % columns, first / columns);
  if (self->missing_tile == GST_VIDGEN_MISSING_TILE_ERROR) {
    GST_ELEMENT_ERROR (self->element, STREAM, FAILED,
        ("%s An element between vidgenchunk and vidgenstitch drops tiles: take it out, or set missing-tile.", text),
        (NULL));
    g_free (text);
    return FALSE;
  }
  if (!self->warned)
    GST_ELEMENT_WARNING (self->element, STREAM, FAILED,
        ("%s Shown there: the %s.", text,
            self->missing_tile == GST_VIDGEN_MISSING_TILE_SOURCE ? "source" : "previous frame"),
        ("later ones are logged only"));
  else
    GST_WARNING_OBJECT (self->element, "%s", text);
  self->warned = TRUE;
  g_free (text);
  for (gint i = first; i < n; i++)
    if (!self->have[i] && !fill_missing (self, i % columns, i / columns)) {
      GST_ELEMENT_ERROR (self->element, STREAM, FORMAT,
          ("The source's %s cannot be shown in place of a missing tile.", GST_VIDEO_INFO_NAME (&self->record->info)),
          (NULL));
      return FALSE;
    }
  return TRUE;
}

GstFlowReturn
gst_vidgen_assembler_finish (GstVidgenAssembler *self, GstBuffer **buffer)
{
  GstFlowReturn ret = GST_FLOW_OK;
  struct vg_picture picture;

  *buffer = NULL;
  if (!self->buffer && gst_vidgen_assembler_has_all (self)) {
    *buffer = gst_buffer_ref (self->record->source);
  } else if ((self->buffer || (ret = begin_buffer (self)) == GST_FLOW_OK) && complete_frame (self)) {
    picture = gst_vidgen_picture (&self->frame);
    vg_stitch_end (self->stitch, &picture);
    gst_video_frame_unmap (&self->frame);
    *buffer = g_steal_pointer (&self->buffer);
    gst_vidgen_frame_record_restore (self->record, &self->out_info, *buffer);
    if (self->missing_tile == GST_VIDGEN_MISSING_TILE_PREVIOUS)
      gst_buffer_replace (&self->previous, *buffer);
  }
  gst_vidgen_assembler_drop (self);
  return *buffer ? GST_FLOW_OK : ret != GST_FLOW_OK ? ret : GST_FLOW_ERROR;
}
