/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* vidgenmodel on its own: a buffer is a frame.  Runs the models that ship. */
#include <gst/check/gstharness.h>

#include "pipeline.h"

#define SMALL "video/x-raw,width=64,height=48,framerate=25/1"
#define SOURCE "videotestsrc num-buffers=2 ! video/x-raw,format=RGB,width=64,height=48"

static GstBuffer *
frame_of (gsize size, guint8 value)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, size, NULL);

  gst_buffer_memset (buffer, 0, value, size);
  return buffer;
}

/* Sizes are the model's scale apart, on both sides, and what cannot come out cannot be asked for. */
GST_START_TEST (test_caps_both_ways)
{
  GstHarness *h = gst_harness_new_parse ("vidgenmodel model-file=upscale2x");
  GstElement *model = h->element;
  GstPad *sink = gst_element_get_static_pad (model, "sink"), *src = gst_element_get_static_pad (model, "src");
  GstCaps *caps, *wanted;

  gst_harness_play (h);
  wanted = gst_caps_from_string ("video/x-raw,format=RGB,width=(int)[3,10],height=(int){7,9},framerate=25/1");
  gst_harness_set_sink_caps_str (h, "video/x-raw,width=(int)[6,20],height=(int){13,14,18}");
  caps = gst_pad_query_caps (sink, wanted);
  fail_unless (gst_caps_is_equal (caps, wanted), "%" GST_PTR_FORMAT, caps);
  gst_caps_unref (caps);
  gst_caps_unref (wanted);

  gst_harness_set_sink_caps_str (h, "video/x-raw,width=641,height=482");
  caps = gst_pad_query_caps (sink, NULL);
  fail_unless (gst_caps_is_empty (caps), "%" GST_PTR_FORMAT, caps);
  gst_caps_unref (caps);

  wanted = gst_caps_from_string ("video/x-raw,format=I420,width=640,height=482,framerate=25/1");
  gst_harness_set_sink_caps_str (h, "video/x-raw,width=640,height=482");
  caps = gst_pad_query_caps (sink, NULL);
  {
    GstCaps *half = gst_caps_from_string ("video/x-raw,format=I420,width=320,height=241,framerate=25/1");

    fail_unless (gst_caps_is_subset (half, caps), "%" GST_PTR_FORMAT, caps);
    fail_if (gst_caps_is_subset (wanted, caps), "%" GST_PTR_FORMAT, caps);
    gst_caps_unref (half);
  }
  gst_caps_unref (caps);
  gst_caps_unref (wanted);
  gst_object_unref (sink);
  gst_object_unref (src);
  gst_harness_teardown (h);
}
GST_END_TEST;

/* What the caps say beside the size comes out as it went in; colours are named, as the size would suggest others. */
GST_START_TEST (test_caps_are_kept)
{
  GstHarness *h = gst_harness_new_parse ("vidgenmodel model-file=upscale2x");
  GstCaps *caps;
  const GstStructure *s;
  gint num, den;

  gst_harness_set_src_caps_str (
      h, "video/x-raw,format=NV12,width=720,height=480,framerate=30000/1001,pixel-aspect-ratio=8/9,chroma-site=mpeg2");
  fail_unless_equals_int (gst_harness_push (h, frame_of (720 * 480 * 3 / 2, 128)), GST_FLOW_OK);
  caps = gst_pad_get_current_caps (h->sinkpad);
  s = gst_caps_get_structure (caps, 0);
  fail_unless_equals_string (gst_structure_get_string (s, "format"), "NV12");
  fail_unless_equals_string (gst_structure_get_string (s, "colorimetry"), "bt601");
  fail_unless_equals_string (gst_structure_get_string (s, "chroma-site"), "mpeg2");
  fail_unless (gst_structure_get_fraction (s, "framerate", &num, &den) && num == 30000 && den == 1001);
  fail_unless (gst_structure_get_fraction (s, "pixel-aspect-ratio", &num, &den) && num == 8 && den == 9);
  fail_unless (
      gst_structure_get (s, "width", G_TYPE_INT, &num, "height", G_TYPE_INT, &den, NULL) && num == 1440 && den == 960);
  gst_caps_unref (caps);
  gst_harness_teardown (h);
}
GST_END_TEST;

/* A frame leaves with the timestamps, flags and metas that it came with, and without its memory's. */
GST_START_TEST (test_metadata)
{
  GstHarness *h = gst_harness_new_parse ("vidgenmodel");
  GstBuffer *in = frame_of (64 * 48 * 3, 90), *other = gst_buffer_new (), *out;
  GstVideoTimeCodeMeta *tc;

  gst_harness_set_src_caps_str (h, SMALL ",format=RGB");
  GST_BUFFER_PTS (in) = 7 * GST_MSECOND;
  GST_BUFFER_DTS (in) = 5 * GST_MSECOND;
  GST_BUFFER_DURATION (in) = 40 * GST_MSECOND;
  GST_BUFFER_OFFSET (in) = 11;
  GST_BUFFER_OFFSET_END (in) = 12;
  GST_BUFFER_FLAG_SET (in, GST_BUFFER_FLAG_DROPPABLE);
  gst_buffer_add_video_time_code_meta_full (in, 25, 1, NULL, GST_VIDEO_TIME_CODE_FLAGS_NONE, 1, 2, 3, 4, 0);
  gst_buffer_add_video_region_of_interest_meta (in, "face", 1, 2, 3, 4);
  gst_buffer_add_parent_buffer_meta (in, other);
  gst_buffer_unref (other);
  out = gst_harness_push_and_pull (h, in);
  fail_unless (out != NULL);
  fail_unless_equals_uint64 (GST_BUFFER_PTS (out), 7 * GST_MSECOND);
  fail_unless_equals_uint64 (GST_BUFFER_DTS (out), 5 * GST_MSECOND);
  fail_unless_equals_uint64 (GST_BUFFER_DURATION (out), 40 * GST_MSECOND);
  fail_unless_equals_uint64 (GST_BUFFER_OFFSET (out), 11);
  fail_unless_equals_uint64 (GST_BUFFER_OFFSET_END (out), 12);
  fail_unless (GST_BUFFER_FLAG_IS_SET (out, GST_BUFFER_FLAG_DROPPABLE));
  tc = gst_buffer_get_video_time_code_meta (out);
  fail_unless (tc && tc->tc.hours == 1 && tc->tc.frames == 4);
  fail_unless (gst_buffer_get_video_region_of_interest_meta_id (out, 0) != NULL);
  fail_unless (gst_buffer_get_parent_buffer_meta (out) == NULL);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}
GST_END_TEST;

/* One plan, announced once, whose bytes are what is then in use to the byte; the counters count. */
GST_START_TEST (test_plan_and_stats)
{
  Play *play = play_new ("videotestsrc num-buffers=3 ! " SMALL ",format=RGB ! vidgenmodel name=m threads=1 ! " SINK);
  GstElement *model = gst_bin_get_by_name (GST_BIN (play->pipeline), "m");
  guint64 frames, tiles, mean, longest, memory, peak;
  gchar *plan, *device;
  GstStructure *stats;
  gdouble fps;

  gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
  play_wait (play, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  g_object_get (model, "plan", &plan, "active-device", &device, "stats", &stats, NULL);
  fail_unless (plan && *plan == '{');
  fail_unless (device && g_str_has_prefix (device, "cpu"));
  fail_unless (gst_structure_get (stats, "frames", G_TYPE_UINT64, &frames, "tiles", G_TYPE_UINT64, &tiles, "fps",
      G_TYPE_DOUBLE, &fps, "mean-time", G_TYPE_UINT64, &mean, "max-time", G_TYPE_UINT64, &longest, "device-memory",
      G_TYPE_UINT64, &memory, "device-memory-peak", G_TYPE_UINT64, &peak, NULL));
  fail_unless_equals_uint64 (frames, 3);
  fail_unless_equals_uint64 (tiles, 3);
  fail_unless (fps > 0 && mean > 0 && longest >= mean);
  fail_unless_equals_int (play->plans, 1);
  fail_unless_equals_uint64 (memory, play->plan_bytes);
  fail_unless_equals_uint64 (peak, play->plan_bytes);
  gst_structure_free (stats);
  g_free (plan);
  g_free (device);
  gst_object_unref (model);
  play_stop (play);
  play_ok (play, 3);
  play_free (play);
}
GST_END_TEST;

/* Every size from one pixel on, and odd ones. */
GST_START_TEST (test_sizes)
{
  static const gint sizes[][2] = {{1, 1}, {2, 3}, {63, 47}, {65, 1}, {7, 130}};
  static const gchar *const formats[] = {"RGB", "I420", "NV12", "BGRx"};

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    for (guint f = 0; f < G_N_ELEMENTS (formats); f++)
      for (guint twice = 0; twice < 2; twice++) {
        Play *play = play_run (
            "videotestsrc num-buffers=1 ! video/x-raw,format=%s,width=%d,height=%d ! vidgenmodel model-file=%s ! " SINK,
            formats[f], sizes[i][0], sizes[i][1], twice ? "upscale2x" : "style3");
        gint width, height;

        play_ok (play, 1);
        play_size (play, 0, &width, &height);
        fail_unless_equals_int (width, sizes[i][0] * (1 + twice));
        fail_unless_equals_int (height, sizes[i][1] * (1 + twice));
        play_free (play);
      }
}
GST_END_TEST;

/* The order of the bytes makes no difference to the picture, and alpha goes through. */
GST_START_TEST (test_rgb_formats)
{
  static const gchar *const formats[] = {"BGR", "RGBx", "BGRx", "xRGB", "xBGR", "RGBA", "BGRA", "ARGB", "ABGR", "GBR"};
  static const gchar *const models[] = {"style3", "upscale2x"};

  for (guint m = 0; m < G_N_ELEMENTS (models); m++) {
    Play *plain = play_run (SOURCE " ! vidgenmodel model-file=%s ! " SINK, models[m]);

    play_ok (plain, 2);
    for (guint f = 0; f < G_N_ELEMENTS (formats); f++) {
      Play *play = play_run (SOURCE " ! videoconvert ! video/x-raw,format=%s ! vidgenmodel model-file=%s ! "
                                    "videoconvert ! video/x-raw,format=RGB ! " SINK,
          formats[f], models[m]);

      play_ok (play, 2);
      fail_unless_equals_int (play_differ (play_frame (plain, 1), play_frame (play, 1)), 0);
      play_free (play);
    }
    play_free (plain);
  }
}
GST_END_TEST;

GST_START_TEST (test_alpha)
{
  static const guint8 alphas[] = {10, 200, 255, 0};
  GstHarness *h = gst_harness_new_parse ("vidgenmodel model-file=upscale2x");
  GstBuffer *in = frame_of (2 * 2 * 4, 60), *out;
  guint8 bytes[4 * 4 * 4];

  gst_harness_set_src_caps_str (h, "video/x-raw,format=ARGB,width=2,height=2,framerate=1/1");
  for (guint i = 0; i < 4; i++)
    gst_buffer_fill (in, i * 4, &alphas[i], 1);
  out = gst_harness_push_and_pull (h, in);
  fail_unless_equals_int (gst_buffer_extract (out, 0, bytes, sizeof bytes), sizeof bytes);
  for (guint y = 0; y < 4; y++)
    for (guint x = 0; x < 4; x++)
      fail_unless_equals_int (bytes[(y * 4 + x) * 4], alphas[y / 2 * 2 + x / 2]);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}
GST_END_TEST;

/* Means of the components of 64 x 64 pixels of RGB, in this colorimetry's YUV. */
static void
mean_as_yuv (const GByteArray *rgb, const gchar *colorimetry, gdouble *yuv)
{
  GstVideoColorimetry c;
  gdouble kr, kb, sum[3] = {0}, y, full;

  fail_unless (gst_video_colorimetry_from_string (&c, colorimetry));
  fail_unless (gst_video_color_matrix_get_Kr_Kb (c.matrix, &kr, &kb));
  full = c.range == GST_VIDEO_COLOR_RANGE_0_255;
  fail_unless_equals_int (rgb->len, 64 * 64 * 3);
  for (guint i = 0; i < rgb->len; i++)
    sum[i % 3] += rgb->data[i] / (255. * 64 * 64);
  y = kr * sum[0] + (1 - kr - kb) * sum[1] + kb * sum[2];
  yuv[0] = full ? 255 * y : 16 + 219 * y;
  yuv[1] = 128 + (full ? 255 : 224) * (sum[2] - y) / 2 / (1 - kb);
  yuv[2] = 128 + (full ? 255 : 224) * (sum[0] - y) / 2 / (1 - kr);
}

static gdouble
mean (const guint8 *bytes, guint n, guint step)
{
  gdouble sum = 0;

  for (guint i = 0; i < n; i++)
    sum += bytes[i * step];
  return sum / n;
}

/* What a model makes of YUV of each matrix and range is what it makes of RGB.  Flat colours: the style paints them,
 * and its colours depend on the colour.  The tolerance is what rounding the input to YUV does to the style
 * (0.8; a wrong matrix does 3, a wrong range 16). */
GST_START_TEST (test_yuv_colours)
{
  static const gchar *const colorimetries[] = {"bt601", "bt709", "1:4:0:0", "1:3:0:0", "bt2020"};
  static const guint colours[] = {0xffc03020, 0xff20a050, 0xff3050c0, 0xffe0e0e0, 0xff606060};

  for (guint k = 0; k < G_N_ELEMENTS (colours); k++) {
    Play *plain = play_run ("videotestsrc num-buffers=1 pattern=solid-color foreground-color=%u ! "
                            "video/x-raw,format=RGB,width=64,height=64 ! vidgenmodel ! " SINK,
        colours[k]);

    for (guint c = 0; c < G_N_ELEMENTS (colorimetries); c++)
      for (guint nv12 = 0; nv12 < 2; nv12++) {
        Play *play = play_run ("videotestsrc num-buffers=1 pattern=solid-color foreground-color=%u ! "
                               "video/x-raw,format=RGB,width=64,height=64 ! videoconvert ! "
                               "video/x-raw,format=%s,colorimetry=%s ! vidgenmodel ! " SINK,
            colours[k], nv12 ? "NV12" : "I420", colorimetries[c]);
        const guint8 *bytes = play_frame (play, 0)->data, *chroma = bytes + 64 * 64;
        gdouble want[3], got[3];

        mean_as_yuv (play_frame (plain, 0), colorimetries[c], want);
        fail_unless_equals_int (play_frame (play, 0)->len, 64 * 64 * 3 / 2);
        got[0] = mean (bytes, 64 * 64, 1);
        got[1] = mean (chroma, 32 * 32, 1 + nv12);
        got[2] = mean (nv12 ? chroma + 1 : chroma + 32 * 32, 32 * 32, 1 + nv12);
        for (guint i = 0; i < 3; i++)
          fail_unless (ABS (want[i] - got[i]) < 1.2, "#%x, %s: component %u is %g, not %g", colours[k],
              colorimetries[c], i, got[i], want[i]);
        play_free (play);
      }
    play_free (plain);
  }
}
GST_END_TEST;

/* The size changes in mid-stream, several times: each frame has its own. */
GST_START_TEST (test_caps_change)
{
  static const gchar *const caps[] = {
      "video/x-raw,format=RGB,width=64,height=48,framerate=25/1",
      "video/x-raw,format=RGB,width=33,height=17,framerate=25/1",
      "video/x-raw,format=I420,width=33,height=17,framerate=25/1",
      "video/x-raw,format=BGRx,width=64,height=48,framerate=25/1",
  };
  GstHarness *h = gst_harness_new_parse ("vidgenmodel model-file=upscale2x");

  for (guint i = 0; i < 2 * G_N_ELEMENTS (caps); i++) {
    GstVideoInfo info, out_info;
    GstCaps *c = gst_caps_from_string (caps[i % G_N_ELEMENTS (caps)]), *out_caps;
    GstBuffer *out;

    fail_unless (gst_video_info_from_caps (&info, c));
    gst_harness_set_src_caps (h, c);
    out = gst_harness_push_and_pull (h, frame_of (GST_VIDEO_INFO_SIZE (&info), 77));
    fail_unless (out != NULL);
    out_caps = gst_pad_get_current_caps (h->sinkpad);
    fail_unless (gst_video_info_from_caps (&out_info, out_caps));
    fail_unless_equals_int (out_info.width, info.width * 2);
    fail_unless_equals_int (out_info.height, info.height * 2);
    fail_unless_equals_int (GST_VIDEO_INFO_FORMAT (&out_info), GST_VIDEO_INFO_FORMAT (&info));
    fail_unless_equals_int (gst_buffer_get_size (out), GST_VIDEO_INFO_SIZE (&out_info));
    gst_caps_unref (out_caps);
    gst_buffer_unref (out);
  }
  gst_harness_teardown (h);
}
GST_END_TEST;

static GByteArray *
push_one (GstHarness *h)
{
  GstBuffer *in = frame_of (64 * 48 * 3, 0), *out;
  GByteArray *bytes;
  GstCaps *caps;

  for (guint i = 0; i < 64 * 48 * 3; i++) {
    guint8 v = i * 7 + i / 192 * 3;

    gst_buffer_fill (in, i, &v, 1);
  }
  out = gst_harness_push_and_pull (h, in);
  fail_unless (out != NULL);
  caps = gst_pad_get_current_caps (h->sinkpad);
  bytes = play_copy_frame (caps, out);
  gst_caps_unref (caps);
  gst_buffer_unref (out);
  return bytes;
}

/* The same frame, pushed once more, comes out the same as then. */
static void
expect_next (GstHarness *h, const GByteArray *want)
{
  GByteArray *got = push_one (h);

  fail_unless_equals_int (play_differ (want, got), 0);
  g_byte_array_unref (got);
}

/* The kinds of messages that came since; drops all. */
static guint
warnings (GstBus *bus, gchar **text)
{
  GstMessage *message;
  guint n = 0;

  while ((message = gst_bus_pop (bus))) {
    if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_WARNING) {
      GError *error;

      n++;
      gst_message_parse_warning (message, &error, NULL);
      g_free (*text);
      *text = g_strdup (error->message);
      g_error_free (error);
    }
    fail_if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR);
    gst_message_unref (message);
  }
  return n;
}

/* Models come and go between two frames, also with another scale; one that cannot be had changes nothing. */
GST_START_TEST (test_swap_model)
{
  GstHarness *h = gst_harness_new ("vidgenmodel");
  GstBus *bus = gst_bus_new ();
  GByteArray *style, *doubled;
  gchar *text = NULL, *name;

  gst_element_set_bus (h->element, bus);
  gst_harness_set_src_caps_str (h, SMALL ",format=RGB");
  style = push_one (h);
  fail_unless_equals_int (style->len, 64 * 48 * 3);

  g_object_set (h->element, "model-file", "upscale2x", NULL);
  doubled = push_one (h);
  fail_unless_equals_int (doubled->len, 128 * 96 * 3);
  fail_unless_equals_int (warnings (bus, &text), 0);

  g_object_set (h->element, "model-file", "no-such-model", NULL);
  fail_unless_equals_int (warnings (bus, &text), 1);
  fail_unless (strstr (text, "no-such-model") != NULL, "%s", text);
  g_object_get (h->element, "model-file", &name, NULL);
  fail_unless_equals_string (name, "upscale2x");
  g_free (name);
  expect_next (h, doubled);

  g_object_set (h->element, "model-file", "style3.onnx", NULL);
  expect_next (h, style);

  g_byte_array_unref (style);
  g_byte_array_unref (doubled);
  g_free (text);
  gst_harness_teardown (h);
  gst_bus_set_flushing (bus, TRUE);
  gst_object_unref (bus);
}
GST_END_TEST;

static void
set_parameters (GstElement *model, const gchar *text)
{
  GstStructure *s = text ? gst_structure_from_string (text, NULL) : NULL;

  g_object_set (model, "parameters", s, NULL);
  if (s)
    gst_structure_free (s);
}

/* Parameters act from the next frame on, the same as if they had been there from the start; wrong ones are told of. */
GST_START_TEST (test_parameters)
{
  GstHarness *h = gst_harness_new ("vidgenmodel"), *fresh = gst_harness_new ("vidgenmodel");
  GstBus *bus = gst_bus_new ();
  GByteArray *before, *after;
  gchar *text = NULL;
  GstStructure *s;

  gst_element_set_bus (h->element, bus);
  gst_harness_set_src_caps_str (h, SMALL ",format=RGB");
  before = push_one (h);
  set_parameters (h->element, "p,style_weights=<0.0,0.0,1.0>");
  after = push_one (h);
  fail_unless (play_differ (before, after) > 0);

  set_parameters (fresh->element, "p,style_weights=(string)\"2:1\"");
  gst_harness_set_src_caps_str (fresh, SMALL ",format=RGB");
  expect_next (fresh, after);
  fail_unless_equals_int (warnings (bus, &text), 0);

  set_parameters (h->element, "p,style_weights=<0.0,1.0>");
  fail_unless_equals_int (warnings (bus, &text), 1);
  fail_unless (strstr (text, "2 values given, 3 wanted") != NULL, "%s", text);
  set_parameters (h->element, "p,strength=1.0");
  fail_unless_equals_int (warnings (bus, &text), 1);
  fail_unless (strstr (text, "style_weights") != NULL, "%s", text);
  expect_next (h, after);
  g_object_get (h->element, "parameters", &s, NULL);
  fail_unless (gst_structure_has_field (s, "style_weights"));
  gst_structure_free (s);

  /* They outlive a change of size; nothing means the defaults. */
  gst_harness_set_src_caps_str (h, "video/x-raw,format=RGB,width=32,height=32,framerate=25/1");
  gst_buffer_unref (gst_harness_push_and_pull (h, frame_of (32 * 32 * 3, 5)));
  gst_harness_set_src_caps_str (h, SMALL ",format=RGB");
  expect_next (h, after);
  set_parameters (h->element, NULL);
  expect_next (h, before);

  g_byte_array_unref (before);
  g_byte_array_unref (after);
  g_free (text);
  gst_harness_teardown (h);
  gst_harness_teardown (fresh);
  gst_bus_set_flushing (bus, TRUE);
  gst_object_unref (bus);
}
GST_END_TEST;

/* Values that were set before the model was there are kept, and checked when it comes. */
GST_START_TEST (test_parameters_before_the_model)
{
  GstElement *model = gst_element_factory_make ("vidgenmodel", NULL);
  GstBus *bus = gst_bus_new ();
  gchar *text = NULL;
  GstStructure *s;

  gst_element_set_bus (model, bus);
  set_parameters (model, "p,style_weights=<0.0,1.0>");
  fail_unless_equals_int (warnings (bus, &text), 0);
  fail_unless_equals_int (gst_element_set_state (model, GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
  fail_unless_equals_int (warnings (bus, &text), 1);
  fail_unless (strstr (text, "2 values given, 3 wanted") != NULL, "%s", text);
  g_object_get (model, "parameters", &s, NULL);
  fail_unless (s == NULL);
  g_free (text);
  gst_element_set_bus (model, NULL);
  gst_element_set_state (model, GST_STATE_NULL);
  gst_object_unref (bus);
  gst_object_unref (model);
}
GST_END_TEST;

/* Interlaced video is run, and told of once. */
GST_START_TEST (test_interlaced)
{
  Play *play = play_run ("videotestsrc num-buffers=2 ! video/x-raw,format=I420,width=64,height=48 ! interlace "
                         "field-pattern=1:1 ! vidgenmodel ! " SINK);

  fail_unless (play->errors == 0 && play->eos);
  fail_unless_equals_int (play->warnings, 1);
  fail_unless (strstr (play->warning, "interlaced") != NULL);
  fail_unless_equals_string (
      gst_structure_get_string (gst_caps_get_structure (g_ptr_array_index (play->caps, 0), 0), "interlace-mode"),
      "interleaved");
  play_free (play);
}
GST_END_TEST;

static Suite *
vidgenmodel_suite (void)
{
  Suite *suite = suite_create ("vidgenmodel");
  TCase *cases = tcase_create ("general");

  tcase_set_timeout (cases, 300);
  suite_add_tcase (suite, cases);
  tcase_add_test (cases, test_caps_both_ways);
  tcase_add_test (cases, test_caps_are_kept);
  tcase_add_test (cases, test_metadata);
  tcase_add_test (cases, test_plan_and_stats);
  tcase_add_test (cases, test_sizes);
  tcase_add_test (cases, test_rgb_formats);
  tcase_add_test (cases, test_alpha);
  tcase_add_test (cases, test_yuv_colours);
  tcase_add_test (cases, test_caps_change);
  tcase_add_test (cases, test_swap_model);
  tcase_add_test (cases, test_parameters);
  tcase_add_test (cases, test_parameters_before_the_model);
  tcase_add_test (cases, test_interlaced);
  return suite;
}

GST_CHECK_MAIN (vidgenmodel);
