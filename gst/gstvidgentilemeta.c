/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgentilemeta.h"

#include "gstvidgencuda.h"

G_DEFINE_BOXED_TYPE (GstVidgenGrid, gst_vidgen_grid, gst_vidgen_grid_ref, gst_vidgen_grid_unref);

GstVidgenGrid *
gst_vidgen_grid_new (const struct vg_grid *grid)
{
  GstVidgenGrid *self = g_atomic_rc_box_new0 (GstVidgenGrid);

  self->grid = *grid;
  return self;
}

GstVidgenGrid *
gst_vidgen_grid_ref (GstVidgenGrid *grid)
{
  return g_atomic_rc_box_acquire (grid);
}

void
gst_vidgen_grid_unref (GstVidgenGrid *grid)
{
  g_atomic_rc_box_release (grid);
}

GstVidgenFrameRecord *
gst_vidgen_frame_record_new (guint64 number, const GstVideoInfo *info, GstBuffer *source, gboolean in_cuda)
{
  GstVidgenFrameRecord *self = g_atomic_rc_box_new0 (GstVidgenFrameRecord);

  /* Not NO_REF: a producer's own map function may lose that flag. */
  if (!gst_vidgen_cuda_map (
          &self->frame, info, source, GST_MAP_READ, in_cuda ? gst_vidgen_cuda_context_of (source) : NULL)) {
    g_atomic_rc_box_release (self);
    return NULL;
  }
  self->number = number;
  self->info = *info;
  self->pts = GST_BUFFER_PTS (source);
  self->dts = GST_BUFFER_DTS (source);
  self->duration = GST_BUFFER_DURATION (source);
  self->offset = GST_BUFFER_OFFSET (source);
  self->offset_end = GST_BUFFER_OFFSET_END (source);
  self->flags = GST_BUFFER_FLAGS (source);
  self->source = gst_buffer_ref (source);
  return self;
}

GstVidgenFrameRecord *
gst_vidgen_frame_record_at (
    const GstVidgenFrameRecord *record, guint64 number, GstClockTime pts, GstClockTime duration, gboolean added)
{
  GstVidgenFrameRecord *self = gst_vidgen_frame_record_new (
      number, &record->info, record->source, gst_vidgen_frame_on_device (&record->frame));

  if (!self)
    return NULL;
  self->pts = pts;
  self->dts = added ? GST_CLOCK_TIME_NONE : record->dts;
  self->duration = duration;
  self->offset = added ? GST_BUFFER_OFFSET_NONE : record->offset;
  self->offset_end = added ? GST_BUFFER_OFFSET_NONE : record->offset_end;
  self->flags = added ? record->flags & ~GST_VIDGEN_FLAGS_OF_ONE : record->flags;
  self->added = added || record->added;
  return self;
}

GstVidgenFrameRecord *
gst_vidgen_frame_record_ref (GstVidgenFrameRecord *record)
{
  return g_atomic_rc_box_acquire (record);
}

static void
frame_record_clear (gpointer data)
{
  GstVidgenFrameRecord *self = data;

  gst_video_frame_unmap (&self->frame);
  gst_buffer_unref (self->source);
}

void
gst_vidgen_frame_record_unref (GstVidgenFrameRecord *record)
{
  g_atomic_rc_box_release_full (record, frame_record_clear);
}

gboolean
gst_vidgen_meta_survives (const GstMeta *meta, gboolean rescaled)
{
  const gchar *const *tag = gst_meta_api_type_get_tags (meta->info->api);

  if (meta->info->api == GST_PARENT_BUFFER_META_API_TYPE)
    return FALSE; /* the new pixels are not in that frame */
  for (; tag && *tag; tag++)
    if (!g_str_equal (*tag, GST_META_TAG_VIDEO_STR) && !g_str_equal (*tag, GST_META_TAG_VIDEO_ORIENTATION_STR) &&
        !(g_str_equal (*tag, GST_META_TAG_VIDEO_SIZE_STR) && !rescaled))
      return FALSE;
  return TRUE;
}

typedef struct
{
  GstBuffer *buffer;
  GstVideoMetaTransform scale;
  gboolean scaled;
} MetaCopy;

static gboolean
copy_meta (GstBuffer *source, GstMeta **meta, gpointer user_data)
{
  const GstMetaInfo *info = (*meta)->info;
  MetaCopy *copy = user_data;
  GstMetaTransformCopy whole = {FALSE, 0, -1};

  /* These say how the source's memory lies. */
  if (gst_meta_api_type_has_tag (info->api, _gst_meta_tag_memory) || info->api == GST_PARENT_BUFFER_META_API_TYPE ||
      info->api == GST_VIDEO_CROP_META_API_TYPE || !info->transform_func)
    return TRUE;
  if (copy->scaled && gst_meta_api_type_has_tag (info->api, g_quark_from_static_string (GST_META_TAG_VIDEO_SIZE_STR)))
    info->transform_func (copy->buffer, *meta, source, gst_video_meta_transform_scale_get_quark (), &copy->scale);
  else
    info->transform_func (copy->buffer, *meta, source, _gst_meta_transform_copy, &whole);
  return TRUE;
}

void
gst_vidgen_frame_record_restore (const GstVidgenFrameRecord *record, const GstVideoInfo *info, GstBuffer *buffer)
{
  MetaCopy copy = {buffer, {(GstVideoInfo *) &record->info, (GstVideoInfo *) info},
      record->info.width != info->width || record->info.height != info->height};

  GST_BUFFER_PTS (buffer) = record->pts;
  GST_BUFFER_DTS (buffer) = record->dts;
  GST_BUFFER_DURATION (buffer) = record->duration;
  GST_BUFFER_OFFSET (buffer) = record->offset;
  GST_BUFFER_OFFSET_END (buffer) = record->offset_end;
  GST_BUFFER_FLAG_SET (buffer, record->flags & ~(GST_BUFFER_FLAG_TAG_MEMORY | (GST_MINI_OBJECT_FLAG_LAST - 1)));
  if (!record->added)
    gst_buffer_foreach_meta (record->source, copy_meta, &copy);
}

GType
gst_vidgen_tile_meta_api_get_type (void)
{
  static GType type;

  if (g_once_init_enter (&type)) {
    /* No tags: base classes drop a meta for a tag that they do not know, or for one that says it depends on the
     * memory or the size. */
    static const gchar *tags[] = {NULL};

    g_once_init_leave (&type, gst_meta_api_type_register ("GstVidgenTileMetaAPI", tags));
  }
  return type;
}

GType
gst_vidgen_view_api_get_type (void)
{
  static GType type;

  if (g_once_init_enter (&type)) {
    static const gchar *tags[] = {GST_META_TAG_MEMORY_STR, NULL};

    g_once_init_leave (&type, gst_meta_api_type_register ("GstVidgenViewAPI", tags));
  }
  return type;
}

static gboolean
tile_meta_init (GstMeta *meta, gpointer params, GstBuffer *buffer)
{
  GstVidgenTileMeta *self = (GstVidgenTileMeta *) meta;

  self->record = NULL;
  self->grid = NULL;
  self->column = self->row = 0;
  return TRUE;
}

static void
tile_meta_free (GstMeta *meta, GstBuffer *buffer)
{
  GstVidgenTileMeta *self = (GstVidgenTileMeta *) meta;

  g_clear_pointer (&self->record, gst_vidgen_frame_record_unref);
  g_clear_pointer (&self->grid, gst_vidgen_grid_unref);
}

/* Whatever happened to the pixels (copy, scale, conversion), it is still this tile of that frame: stitch checks the
 * size. */
static gboolean
tile_meta_transform (GstBuffer *dest, GstMeta *meta, GstBuffer *buffer, GQuark type, gpointer data)
{
  const GstVidgenTileMeta *self = (GstVidgenTileMeta *) meta;

  return gst_buffer_get_vidgen_tile_meta (dest) ||
      gst_buffer_add_vidgen_tile_meta (dest, self->record, self->grid, self->column, self->row);
}

const GstMetaInfo *
gst_vidgen_tile_meta_get_info (void)
{
  static const GstMetaInfo *info;

  if (g_once_init_enter ((GstMetaInfo **) &info)) {
    const GstMetaInfo *i = gst_meta_register (gst_vidgen_tile_meta_api_get_type (), "GstVidgenTileMeta",
        sizeof (GstVidgenTileMeta), tile_meta_init, tile_meta_free, tile_meta_transform);

    g_once_init_leave ((GstMetaInfo **) &info, (GstMetaInfo *) i);
  }
  return info;
}

GstVidgenTileMeta *
gst_buffer_add_vidgen_tile_meta (
    GstBuffer *buffer, GstVidgenFrameRecord *record, GstVidgenGrid *grid, guint column, guint row)
{
  GstVidgenTileMeta *self = (GstVidgenTileMeta *) gst_buffer_add_meta (buffer, gst_vidgen_tile_meta_get_info (), NULL);

  if (!self)
    return NULL;
  self->record = gst_vidgen_frame_record_ref (record);
  self->grid = gst_vidgen_grid_ref (grid);
  self->column = column;
  self->row = row;
  return self;
}

void
gst_vidgen_tile_check_written (GstBuffer *tile, const GstVidgenTileMeta *meta)
{
  const GstVidgenFrameRecord *record = meta->record;
  GstParentBufferMeta *parent = gst_buffer_get_parent_buffer_meta (tile);
  GstVideoMeta *video = gst_buffer_get_video_meta (tile);
  GstMemory *memory, *base = NULL;

  if (!parent || parent->buffer != record->source || !video || gst_buffer_n_memory (tile) == 0)
    return;
  /* A view as chunk made it has the frame's strides. */
  if (video->stride[0] != GST_VIDEO_FRAME_PLANE_STRIDE (&record->frame, 0))
    return;
  memory = gst_buffer_peek_memory (tile, 0);
  base = memory->parent ? memory->parent : memory;
  for (guint i = 0; i < gst_buffer_n_memory (record->source); i++) {
    GstMemory *source = gst_buffer_peek_memory (record->source, i);

    if (base == source || base == source->parent)
      return;
  }
  g_atomic_int_set (&meta->grid->written, 1);
}
