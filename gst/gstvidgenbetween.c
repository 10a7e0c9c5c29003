/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenbetween.h"

#include "gstvidgencuda.h"

void
gst_vidgen_between_forget (GstVidgenBetween *self)
{
  for (gint i = 0; self->n && i <= self->n; i++)
    g_clear_pointer (&self->records[i], gst_vidgen_frame_record_unref);
}

void
gst_vidgen_between_clear (GstVidgenBetween *self)
{
  gst_vidgen_between_forget (self);
  g_clear_pointer (&self->records, g_free);
  self->n = 0;
}

void
gst_vidgen_between_open (GstVidgenBetween *self, gint n, const GstVideoInfo *info)
{
  gst_vidgen_between_clear (self);
  self->n = n;
  self->info = info;
  self->records = g_new0 (GstVidgenFrameRecord *, n + 1);
  self->duration = GST_CLOCK_TIME_NONE;
}

/* From one frame to the next, which is not known yet (to NULL), or which plays backwards.  FALSE: nothing tells. */
static gboolean
distance (GstVidgenBetween *self, GstBuffer *from, GstBuffer *to, gint64 *time)
{
  GstClockTime duration = GST_BUFFER_DURATION (from);

  if (to && GST_BUFFER_PTS_IS_VALID (from) && GST_BUFFER_PTS_IS_VALID (to) &&
      GST_BUFFER_PTS (from) != GST_BUFFER_PTS (to)) {
    *time = (gint64) (GST_BUFFER_PTS (to) - GST_BUFFER_PTS (from));
    self->duration = ABS (*time);
    return TRUE;
  }
  if (!GST_CLOCK_TIME_IS_VALID (duration) && GST_VIDEO_INFO_FPS_N (self->info) > 0)
    duration = gst_util_uint64_scale (GST_SECOND, GST_VIDEO_INFO_FPS_D (self->info), GST_VIDEO_INFO_FPS_N (self->info));
  if (!GST_CLOCK_TIME_IS_VALID (duration))
    duration = self->duration;
  *time = duration;
  return GST_CLOCK_TIME_IS_VALID (duration);
}

/* The record that all tiles of the i-th frame share. */
static GstVidgenFrameRecord *
record_of (GstVidgenBetween *self, gint i, const GstVidgenFrameRecord *source, GstClockTime pts, GstClockTime duration)
{
  if (!self->records[i])
    self->records[i] = gst_vidgen_frame_record_at (source, source->number * (self->n + 1) + i, pts, duration, i > 0);
  return self->records[i];
}

static gboolean
remove_meta (GstBuffer *buffer, GstMeta **meta, gpointer user_data)
{
  if (!GST_META_FLAG_IS_SET (*meta, GST_META_FLAG_POOLED) && (*meta)->info->api != gst_vidgen_tile_meta_api_get_type ())
    *meta = NULL;
  return TRUE;
}

gboolean
gst_vidgen_between_stamp (GstVidgenBetween *self, gint i, GstBuffer *from, GstBuffer *to, GstBuffer *out)
{
  GstVidgenTileMeta *tile = gst_buffer_get_vidgen_tile_meta (out);
  GstClockTime pts = GST_BUFFER_PTS (from), duration = GST_CLOCK_TIME_NONE;
  gint64 time;

  if (distance (self, from, to, &time)) {
    gint64 begin = time * i / (self->n + 1), end = time * (i + 1) / (self->n + 1);

    if (GST_CLOCK_TIME_IS_VALID (pts))
      pts += begin;
    duration = ABS (end - begin);
  }
  GST_BUFFER_PTS (out) = pts;
  GST_BUFFER_DURATION (out) = duration;
  if (i > 0) {
    GST_BUFFER_DTS (out) = GST_CLOCK_TIME_NONE;
    GST_BUFFER_OFFSET (out) = GST_BUFFER_OFFSET_END (out) = GST_BUFFER_OFFSET_NONE;
    GST_BUFFER_FLAG_UNSET (out, GST_VIDGEN_FLAGS_OF_ONE);
    gst_buffer_foreach_meta (out, remove_meta, NULL);
  }
  if (tile) {
    GstVidgenFrameRecord *record = record_of (self, i, tile->record, pts, duration);

    if (!record)
      return FALSE;
    gst_vidgen_frame_record_unref (tile->record);
    tile->record = gst_vidgen_frame_record_ref (record);
  }
  return TRUE;
}

gboolean
gst_vidgen_between_copy (GstVidgenBetween *self, gint i, GstBuffer *from, GstBuffer *to, GstBuffer *out)
{
  GstBuffer *in = to && 2 * i > self->n + 1 ? to : from;
  GstVideoFrame source, copy;
  gboolean ok;

  if (!gst_vidgen_cuda_map (&source, self->info, in, GST_MAP_READ | GST_VIDEO_FRAME_MAP_FLAG_NO_REF,
          gst_vidgen_cuda_context_of (in)))
    return FALSE;
  ok = gst_vidgen_cuda_map (&copy, self->info, out, GST_MAP_WRITE | GST_VIDEO_FRAME_MAP_FLAG_NO_REF,
      gst_vidgen_cuda_context_of (out));
  if (ok) {
    ok = gst_vidgen_cuda_copy (&copy, &source);
    gst_vidgen_cuda_unmap (&copy);
  }
  gst_vidgen_cuda_unmap (&source);
  return ok;
}
