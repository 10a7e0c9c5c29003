/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames of noise with everything that a frame can carry, and their comparison. */
#ifndef FRAMES_H
#define FRAMES_H

#include <gst/check/gstcheck.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>
#include <string.h>

#define CUSTOM_META "VidgenTestMeta"

static inline void
frames_init (void)
{
  static const gchar *tags[] = {NULL};

  if (!gst_meta_get_info (CUSTOM_META))
    gst_meta_register_custom (CUSTOM_META, tags, NULL, NULL, NULL);
}

static inline GstVideoInfo
frames_info (const gchar *format, gint width, gint height)
{
  GstVideoInfo info;

  fail_unless (gst_video_info_set_format (&info, gst_video_format_from_string (format), width, height));
  info.fps_n = 25;
  info.fps_d = 1;
  return info;
}

static inline GstCaps *
frames_caps (const gchar *format, gint width, gint height)
{
  GstVideoInfo info = frames_info (format, width, height);

  return gst_video_info_to_caps (&info);
}

/* Bytes that show in a row of a plane: whole macropixels of packed 4:2:2. */
static inline gint
frames_row_bytes (const GstVideoFrame *frame, guint plane)
{
  const GstVideoFormatInfo *f = frame->info.finfo;
  gint bytes = 0;

  for (guint c = 0; c < f->n_components; c++)
    if (f->plane[c] == plane)
      bytes = MAX (bytes, GST_VIDEO_SUB_SCALE (f->w_sub[c], frame->info.width) * f->pixel_stride[c]);
  return bytes;
}

static inline gint
frames_rows (const GstVideoFrame *frame, guint plane)
{
  gint comp[GST_VIDEO_MAX_COMPONENTS];

  gst_video_format_info_component (frame->info.finfo, plane, comp);
  return GST_VIDEO_FRAME_COMP_HEIGHT (frame, comp[0]);
}

/* Noise by seed.  `pad` > 0: strides, plane offsets and the start padded by so much, told by a video meta only;
 * `split`: a memory for each plane. */
static inline GstBuffer *
frames_new (const GstVideoInfo *info, guint32 seed, guint pad, gboolean split)
{
  GstBuffer *buffer = gst_buffer_new ();
  GRand *rand = g_rand_new_with_seed (seed);
  guint n = GST_VIDEO_INFO_N_PLANES (info);
  gsize offset[GST_VIDEO_MAX_PLANES] = {0}, size = pad;
  gint stride[GST_VIDEO_MAX_PLANES] = {0};
  GstVideoFrame frame;

  for (guint p = 0; p < n; p++) {
    gint comp[GST_VIDEO_MAX_COMPONENTS];

    gst_video_format_info_component (info->finfo, p, comp);
    stride[p] = info->stride[p] + pad;
    offset[p] = size;
    size += (gsize) stride[p] * GST_VIDEO_INFO_COMP_HEIGHT (info, comp[0]) + pad;
    if (split) {
      gst_buffer_append_memory (buffer, gst_allocator_alloc (NULL, size - (p ? offset[p] : 0), NULL));
    }
  }
  if (!split)
    gst_buffer_append_memory (buffer, gst_allocator_alloc (NULL, pad ? size : MAX (size, info->size), NULL));
  if (pad || split)
    gst_buffer_add_video_meta_full (
        buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT (info), info->width, info->height, n, offset, stride);
  gst_buffer_memset (buffer, 0, 0xee, -1);
  fail_unless (gst_video_frame_map (&frame, info, buffer, GST_MAP_WRITE));
  for (guint p = 0; p < n; p++)
    for (gint y = 0; y < frames_rows (&frame, p); y++) {
      guint8 *row = (guint8 *) frame.data[p] + (gssize) y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, p);

      for (gint x = 0; x < frames_row_bytes (&frame, p); x++)
        row[x] = g_rand_int (rand);
    }
  gst_video_frame_unmap (&frame);

  GST_BUFFER_PTS (buffer) = 100 * GST_MSECOND + seed * 40 * GST_MSECOND;
  GST_BUFFER_DTS (buffer) = GST_BUFFER_PTS (buffer) - 7;
  GST_BUFFER_DURATION (buffer) = 40 * GST_MSECOND + seed % 3;
  GST_BUFFER_OFFSET (buffer) = 1000 + seed;
  GST_BUFFER_OFFSET_END (buffer) = 2000 + seed;
  if (seed % 2)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DISCONT);
  if (seed % 3)
    GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_MARKER | GST_BUFFER_FLAG_DELTA_UNIT);
  g_rand_free (rand);
  return buffer;
}

static inline void
frames_add_metas (GstBuffer *buffer, guint seed)
{
  GstCustomMeta *custom;

  gst_buffer_add_video_time_code_meta_full (buffer, 25, 1, NULL, GST_VIDEO_TIME_CODE_FLAGS_NONE, 1, 2, 3, seed % 25, 0);
  gst_buffer_add_video_region_of_interest_meta (buffer, "face", seed, 2, 5, 6);
  custom = gst_buffer_add_custom_meta (buffer, CUSTOM_META);
  gst_structure_set (gst_custom_meta_get_structure (custom), "seed", G_TYPE_UINT, seed, NULL);
}

/* NULL when equal, else where they differ. */
static inline gchar *
frames_differ (const GstVideoInfo *info, GstBuffer *a, GstBuffer *b)
{
  GstVideoFrame fa, fb;
  gchar *text = NULL;

  if (!gst_video_frame_map (&fa, info, a, GST_MAP_READ))
    return g_strdup ("the first cannot be mapped");
  if (!gst_video_frame_map (&fb, info, b, GST_MAP_READ)) {
    gst_video_frame_unmap (&fa);
    return g_strdup ("the second cannot be mapped");
  }
  for (guint p = 0; !text && p < GST_VIDEO_FRAME_N_PLANES (&fa); p++)
    for (gint y = 0; !text && y < frames_rows (&fa, p); y++)
      for (gint x = 0; !text && x < frames_row_bytes (&fa, p); x++) {
        guint8 va = ((guint8 *) fa.data[p])[(gssize) y * GST_VIDEO_FRAME_PLANE_STRIDE (&fa, p) + x];
        guint8 vb = ((guint8 *) fb.data[p])[(gssize) y * GST_VIDEO_FRAME_PLANE_STRIDE (&fb, p) + x];

        if (va != vb)
          text = g_strdup_printf ("plane %u row %d byte %d: %u and %u", p, y, x, va, vb);
      }
  gst_video_frame_unmap (&fb);
  gst_video_frame_unmap (&fa);
  return text;
}

static inline void
frames_assert_same_data (GstBuffer *out, GstBuffer *in, const gchar *what)
{
  fail_unless (GST_BUFFER_PTS (out) == GST_BUFFER_PTS (in), "%s: pts", what);
  fail_unless (GST_BUFFER_DTS (out) == GST_BUFFER_DTS (in), "%s: dts", what);
  fail_unless (GST_BUFFER_DURATION (out) == GST_BUFFER_DURATION (in), "%s: duration", what);
  fail_unless (GST_BUFFER_OFFSET (out) == GST_BUFFER_OFFSET (in), "%s: offset", what);
  fail_unless (GST_BUFFER_OFFSET_END (out) == GST_BUFFER_OFFSET_END (in), "%s: offset end", what);
  fail_unless_equals_int (
      GST_BUFFER_FLAGS (out) & ~GST_BUFFER_FLAG_TAG_MEMORY, GST_BUFFER_FLAGS (in) & ~GST_BUFFER_FLAG_TAG_MEMORY);
}

static inline void
frames_assert_metas (GstBuffer *buffer, guint seed, const gchar *what)
{
  GstVideoTimeCodeMeta *tc = gst_buffer_get_video_time_code_meta (buffer);
  GstVideoRegionOfInterestMeta *roi = gst_buffer_get_video_region_of_interest_meta (buffer);
  GstCustomMeta *custom = gst_buffer_get_custom_meta (buffer, CUSTOM_META);
  guint value = G_MAXUINT;

  fail_unless (tc && tc->tc.frames == seed % 25, "%s: time code", what);
  fail_unless (roi && roi->x == seed && roi->w == 5 && roi->h == 6, "%s: roi", what);
  fail_unless (
      custom && gst_structure_get_uint (gst_custom_meta_get_structure (custom), "seed", &value) && value == seed,
      "%s: custom meta", what);
}

/* A harness around a launch line with a bus, for frames of these caps. */
static inline GstHarness *
frames_harness (const gchar *line, GstCaps *caps, GstBus **bus)
{
  GstHarness *h = gst_harness_new_parse (line);

  fail_unless (h && h->element, "%s", line);
  gst_harness_set_src_caps (h, caps);
  if (bus) {
    *bus = gst_bus_new ();
    gst_element_set_bus (h->element, *bus);
  }
  return h;
}

/* Of a harness that was made from a launch line; borrowed, the harness keeps it. */
static inline GstElement *
frames_get (GstHarness *h, const gchar *name)
{
  GstElement *element = gst_bin_get_by_name (GST_BIN (h->element), name);

  fail_unless (element != NULL, "%s", name);
  gst_object_unref (element);
  return element;
}

static inline void
frames_flush (GstHarness *h)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (h, gst_event_new_flush_start ());
  gst_harness_push_event (h, gst_event_new_flush_stop (TRUE));
  gst_harness_push_event (h, gst_event_new_segment (&segment));
}

/* Ends a harness that has a bus. */
static inline void
frames_end (GstHarness *h, GstBus *bus)
{
  gst_element_set_bus (h->element, NULL);
  gst_object_unref (bus);
  gst_harness_teardown (h);
}

/* A counter of the element's `stats`. */
static inline guint64
stat_of (GstElement *element, const gchar *field)
{
  GstStructure *stats;
  guint64 value;

  g_object_get (element, "stats", &stats, NULL);
  fail_unless (gst_structure_get_uint64 (stats, field, &value), "%s", field);
  gst_structure_free (stats);
  return value;
}

/* The text of the next error of the bus. */
static inline gchar *
error_of (GstBus *bus)
{
  GstMessage *message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  GError *error = NULL;
  gchar *text;

  fail_unless (message != NULL, "no error");
  gst_message_parse_error (message, &error, NULL);
  text = g_strdup (error->message);
  g_error_free (error);
  gst_message_unref (message);
  return text;
}

#endif
