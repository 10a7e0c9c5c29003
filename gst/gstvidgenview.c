/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenview.h"

struct vg_layout
gst_vidgen_layout (const GstVideoFormatInfo *format)
{
  struct vg_layout layout = {GST_VIDEO_FORMAT_INFO_N_PLANES (format), {{0}}};

  for (guint c = 0; c < GST_VIDEO_FORMAT_INFO_N_COMPONENTS (format); c++) {
    guint plane = GST_VIDEO_FORMAT_INFO_PLANE (format, c);
    gint w_sub = GST_VIDEO_FORMAT_INFO_W_SUB (format, c);

    /* In packed 4:2:2 chroma has the larger stride: that of a macropixel. */
    layout.plane[plane].step = MAX (layout.plane[plane].step, GST_VIDEO_FORMAT_INFO_PSTRIDE (format, c));
    layout.plane[plane].x_sub = MAX (layout.plane[plane].x_sub, w_sub);
    layout.plane[plane].y_sub = GST_VIDEO_FORMAT_INFO_H_SUB (format, c);
  }
  return layout;
}

struct vg_picture
gst_vidgen_picture (const GstVideoFrame *frame)
{
  struct vg_picture picture = {{0}};

  for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES (frame); p++) {
    picture.data[p] = GST_VIDEO_FRAME_PLANE_DATA (frame, p);
    picture.stride[p] = GST_VIDEO_FRAME_PLANE_STRIDE (frame, p);
  }
  return picture;
}

/* A meta with a map function of its own may show pixels that are not there in memory, of a tiled surface for
 * instance. */
static gboolean
maps_plainly (const GstVideoMeta *meta)
{
  static gpointer plain;

  if (g_once_init_enter (&plain)) {
    GstBuffer *buffer = gst_buffer_new ();
    gpointer map = gst_buffer_add_video_meta (buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_GRAY8, 1, 1)->map;

    gst_buffer_unref (buffer);
    g_once_init_leave (&plain, map);
  }
  return (gpointer) meta->map == plain;
}

GstBuffer *
gst_vidgen_view_new (const GstVidgenFrameRecord *record, gint x, gint y, gint width, gint height)
{
  const GstVideoFormatInfo *format = record->info.finfo;
  const struct vg_layout layout = gst_vidgen_layout (format);
  GstVideoMeta *meta = gst_buffer_get_video_meta (record->source);
  const gsize *offset = meta ? meta->offset : record->info.offset;
  const gint *stride = meta ? meta->stride : record->info.stride;
  gsize offsets[GST_VIDEO_MAX_PLANES] = {0}, end = 0;
  gint strides[GST_VIDEO_MAX_PLANES] = {0};
  GstBuffer *view;

  if (meta && !maps_plainly (meta))
    return NULL;
  view = gst_buffer_new ();
  for (gint p = 0; p < layout.planes; p++) {
    gint xs = layout.plane[p].x_sub, ys = layout.plane[p].y_sub;
    gint rows = GST_VIDEO_SUB_SCALE (ys, height);
    gint bytes = GST_VIDEO_SUB_SCALE (xs, width) * layout.plane[p].step;
    gssize start = (gssize) (y >> ys) * stride[p] + (gssize) (x >> xs) * layout.plane[p].step;
    gsize size = (gsize) (rows - 1) * stride[p] + bytes, skip;
    guint index, length;
    GstMemory *memory, *part;

    /* Plane 0 must lie at offset 0: there are elements that add it twice. */
    if (stride[p] < bytes ||
        !gst_buffer_find_memory (record->source, offset[p] + start, size, &index, &length, &skip) || length != 1)
      goto unsafe;
    memory = gst_buffer_peek_memory (record->source, index);
    if (GST_MEMORY_IS_NO_SHARE (memory) || !(part = gst_memory_share (memory, skip, size)))
      goto unsafe;
    gst_buffer_append_memory (view, part);
    offsets[p] = end;
    strides[p] = stride[p];
    end += size;
  }
  gst_buffer_add_video_meta_full (view, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_INFO_FORMAT (format), width, height,
      layout.planes, offsets, strides);
  gst_buffer_add_parent_buffer_meta (view, record->source);
  return view;

unsafe:
  gst_buffer_unref (view);
  return NULL;
}

gboolean
gst_vidgen_is_view (const GstVideoFrame *mapped, const GstVidgenTileMeta *tile)
{
  const struct vg_layout layout = gst_vidgen_layout (mapped->info.finfo);
  struct vg_picture picture = gst_vidgen_picture (mapped), frame = gst_vidgen_picture (&tile->record->frame);
  gint x = tile->grid->grid.x.origin[tile->column], y = tile->grid->grid.y.origin[tile->row];

  if (GST_VIDEO_FRAME_FORMAT (mapped) != GST_VIDEO_FRAME_FORMAT (&tile->record->frame))
    return FALSE;
  for (gint p = 0; p < layout.planes; p++)
    if (picture.stride[p] != frame.stride[p] ||
        picture.data[p] != frame.data[p] + (y >> layout.plane[p].y_sub) * frame.stride[p] +
            (gssize) (x >> layout.plane[p].x_sub) * layout.plane[p].step)
      return FALSE;
  return TRUE;
}

gboolean
gst_vidgen_is_plain (GstBuffer *buffer, const GstVideoInfo *info)
{
  GstVideoMeta *meta = gst_buffer_get_video_meta (buffer);

  if (gst_buffer_get_parent_buffer_meta (buffer) || (meta && !maps_plainly (meta)))
    return FALSE;
  for (guint p = 0; meta && p < GST_VIDEO_INFO_N_PLANES (info); p++)
    if (meta->offset[p] != GST_VIDEO_INFO_PLANE_OFFSET (info, p) ||
        meta->stride[p] != GST_VIDEO_INFO_PLANE_STRIDE (info, p))
      return FALSE;
  return TRUE;
}

GstBuffer *
gst_vidgen_whole_new (const GstVidgenFrameRecord *record)
{
  GstVideoMeta *meta = gst_buffer_get_video_meta (record->source);
  GstBuffer *tile = gst_buffer_new ();

  if (!gst_buffer_copy_into (tile, record->source, GST_BUFFER_COPY_MEMORY, 0, -1)) {
    gst_buffer_unref (tile);
    return NULL;
  }
  if (meta)
    gst_buffer_add_video_meta_full (tile, meta->flags, meta->format, meta->width, meta->height, meta->n_planes,
        meta->offset, meta->stride);
  gst_buffer_add_parent_buffer_meta (tile, record->source);
  return tile;
}

GstBuffer *
gst_vidgen_packed_new (
    const GstVidgenFrameRecord *record, gint x, gint y, const GstVideoInfo *info, GstBufferPool *pool)
{
  const struct vg_layout layout = gst_vidgen_layout (info->finfo);
  gint width = MIN (info->width, record->info.width - x);
  gint height = MIN (info->height, record->info.height - y);
  struct vg_picture source = gst_vidgen_picture (&record->frame), picture;
  GstVideoFrame tile;
  GstBuffer *buffer = NULL;

  if (gst_buffer_pool_acquire_buffer (pool, &buffer, NULL) != GST_FLOW_OK)
    return NULL;
  if (!gst_video_frame_map (&tile, info, buffer, GST_MAP_WRITE | GST_VIDEO_FRAME_MAP_FLAG_NO_REF)) {
    gst_buffer_unref (buffer);
    return NULL;
  }
  picture = gst_vidgen_picture (&tile);
  vg_copy_rect (&layout, &picture, 0, 0, &source, x, y, width, height);
  vg_extend_edges (&layout, &picture, width, height, info->width, info->height);
  gst_video_frame_unmap (&tile);
  return buffer;
}
