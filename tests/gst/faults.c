/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What goes wrong around a tile section, and the end of streams and states. */
#include "frames.h"

/* The text of the next error of the bus, which must be the only one. */
static gchar *
only_error (GstBus *bus)
{
  gchar *text = error_of (bus);
  GstMessage *next = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);

  fail_unless (next == NULL, "a second error after: %s", text);
  return text;
}

static void
expect_text (GstBus *bus, const gchar *a, const gchar *b)
{
  gchar *text = only_error (bus);

  fail_unless (strstr (text, a) && strstr (text, b), "\"%s\" in the error \"%s\" and \"%s\"", a, text, b);
  g_free (text);
}

typedef struct
{
  guint index, count; /* drop tile `index` of each frame of `count` */
  guint seen;
} Drop;

static GstPadProbeReturn
drop_one (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Drop *drop = user_data;

  return drop->seen++ % drop->count == drop->index ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
}

static void
drop_at (GstHarness *h, const gchar *name, Drop *drop)
{
  GstElement *element = gst_bin_get_by_name (GST_BIN (h->element), name);
  GstPad *pad = gst_element_get_static_pad (element, "src");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, drop_one, drop, NULL);
  gst_object_unref (pad);
  gst_object_unref (element);
}

/* Tiles 64 of 128 by 128: the inverted picture, but for a lost tile. */
#define INVERT "videobalance contrast=0.5 name=i"

static void
missing (const gchar *policy, guint index, GstBuffer *out[3], GstBuffer *in[3], GstVideoInfo *info)
{
  gchar *line = g_strdup_printf (
      "vidgenchunk tile-width=64 tile-height=64 ! " INVERT " ! vidgenstitch missing-tile=%s", policy);
  GstBus *bus;
  GstHarness *h;
  Drop drop = {index, 4};
  GstMessage *message;

  *info = frames_info ("I420", 128, 128);
  h = frames_harness (line, gst_video_info_to_caps (info), &bus);
  /* The first frame is whole. */
  drop_at (h, "i", &drop);
  drop.count = 1000;
  drop.index = 4 + index;
  for (guint i = 0; i < 3; i++) {
    in[i] = frames_new (info, i, 0, FALSE);
    fail_unless_equals_int (gst_harness_push (h, gst_buffer_ref (in[i])), GST_FLOW_OK);
  }
  gst_harness_push_event (h, gst_event_new_eos ());
  for (guint i = 0; i < 3; i++) {
    out[i] = gst_harness_pull (h);
    fail_unless (out[i] && GST_BUFFER_PTS (out[i]) == GST_BUFFER_PTS (in[i]));
  }
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_WARNING);
  fail_unless (message != NULL);
  gst_message_unref (message);
  frames_end (h, bus);
  g_free (line);
}

/* Is the quarter `index` of a's luma that of b? */
static gboolean
same_quarter (const GstVideoInfo *info, GstBuffer *a, GstBuffer *b, guint index)
{
  GstVideoFrame fa, fb;
  gboolean same = TRUE;

  gst_video_frame_map (&fa, info, a, GST_MAP_READ);
  gst_video_frame_map (&fb, info, b, GST_MAP_READ);
  for (gint y = 0; y < 64 && same; y++) {
    gssize at = (y + index / 2 * 64) * 128 + index % 2 * 64;

    same = !memcmp ((guint8 *) fa.data[0] + at, (guint8 *) fb.data[0] + at, 64);
  }
  gst_video_frame_unmap (&fa);
  gst_video_frame_unmap (&fb);
  return same;
}

/* The policies show what they say in the place of the lost tile, and only there. */
GST_START_TEST (test_missing_tile)
{
  for (guint index = 0; index < 4; index++)
    for (guint k = 0; k < 2; k++) {
      GstBuffer *in[3], *out[3];
      GstVideoInfo info;

      missing (k ? "previous" : "source", index, out, in, &info);
      for (guint q = 0; q < 4; q++) {
        fail_unless (!same_quarter (&info, out[0], in[0], q));
        fail_unless (!same_quarter (&info, out[2], in[2], q));
        fail_unless_equals_int (same_quarter (&info, out[1], in[1], q), q == index && k == 0);
        fail_unless_equals_int (same_quarter (&info, out[1], out[0], q), q == index && k == 1);
      }
      for (guint i = 0; i < 3; i++) {
        gst_buffer_unref (in[i]);
        gst_buffer_unref (out[i]);
      }
    }
}

GST_END_TEST;

/* Also where the section changes the format, or the last frame is cut short. */
GST_START_TEST (test_missing_converted)
{
  GstVideoInfo info = frames_info ("RGB", 100, 60), gray = frames_info ("GRAY8", 100, 60);
  GstHarness *h = frames_harness (
      "vidgenchunk tile-width=50 ! videoconvert name=i ! video/x-raw,format=GRAY8 ! vidgenstitch missing-tile=source",
      gst_video_info_to_caps (&info), NULL);
  GstHarness *whole = frames_harness (
      "videoconvert ! capsfilter caps=video/x-raw,format=GRAY8", gst_video_info_to_caps (&info), NULL);
  GstBuffer *in = frames_new (&info, 2, 0, FALSE), *a, *b;
  Drop drop = {1, 2};
  gchar *text;

  drop_at (h, "i", &drop);
  gst_harness_push (h, gst_buffer_ref (in));
  fail_unless_equals_int (gst_harness_buffers_in_queue (h), 0);
  gst_harness_push_event (h, gst_event_new_eos ());
  a = gst_harness_pull (h);
  gst_harness_push (whole, in);
  b = gst_harness_pull (whole);
  text = frames_differ (&gray, a, b);
  fail_unless (!text, "%s", text);
  gst_buffer_unref (a);
  gst_buffer_unref (b);
  gst_harness_teardown (h);
  gst_harness_teardown (whole);
}

GST_END_TEST;

GST_START_TEST (test_missing_is_an_error)
{
  GstVideoInfo info = frames_info ("I420", 128, 64);
  GstBus *bus;
  GstHarness *h = frames_harness (
      "vidgenchunk tile-width=64 ! identity name=i ! vidgenstitch", gst_video_info_to_caps (&info), &bus);
  Drop drop = {1, 2};

  drop_at (h, "i", &drop);
  fail_unless_equals_int (gst_harness_push (h, frames_new (&info, 0, 0, FALSE)), GST_FLOW_OK);
  fail_unless_equals_int (gst_harness_push (h, frames_new (&info, 1, 0, FALSE)), GST_FLOW_ERROR);
  expect_text (bus, "1 of 2 tiles", "missing-tile");
  frames_end (h, bus);
}

GST_END_TEST;

/* A buffer that is no tile: the error names who sent it. */
GST_START_TEST (test_foreign_buffer)
{
  GstVideoInfo info = frames_info ("I420", 64, 48);
  GstBus *bus;
  GstHarness *h = frames_harness ("identity name=culprit ! vidgenstitch", gst_video_info_to_caps (&info), &bus);

  fail_unless_equals_int (gst_harness_push (h, frames_new (&info, 0, 0, FALSE)), GST_FLOW_ERROR);
  expect_text (bus, "culprit", "vidgenchunk");
  frames_end (h, bus);
}

GST_END_TEST;

/* Tiles of another size than the plan's: expected and given. */
GST_START_TEST (test_wrong_tile_size)
{
  GstVideoInfo info = frames_info ("I420", 128, 64);
  GstBus *bus;
  GstHarness *h = frames_harness (
      "vidgenchunk tile-width=64 ! videoscale name=culprit ! video/x-raw,width=80,height=32 ! vidgenstitch",
      gst_video_info_to_caps (&info), &bus);

  fail_unless_equals_int (gst_harness_push (h, frames_new (&info, 0, 0, FALSE)), GST_FLOW_ERROR);
  expect_text (bus, "80x32", "64x64");
  frames_end (h, bus);
}

GST_END_TEST;

/* Tiles that cannot be: one error with the remedy however often caps are sent again, and no hang; smaller frames
 * then work. */
GST_START_TEST (test_impossible)
{
  static const gchar *lines[] = {"tile-width=32 overlap-x=32", "tile-height=16 overlap-y=100", "tile-width=1"};
  static const gchar *texts[] = {"overlap of 30 at most", "tiles of 102 at least", "tiles of 8 at least"};

  for (guint k = 0; k < G_N_ELEMENTS (lines); k++) {
    gchar *line = g_strdup_printf ("vidgenchunk %s ! queue ! vidgenstitch", lines[k]);
    GstVideoInfo info = frames_info ("I420", 2000, 1000), small = frames_info ("I420", 1, 1);
    GstBus *bus;
    GstHarness *h = gst_harness_new_parse (line);

    bus = gst_bus_new ();
    gst_element_set_bus (h->element, bus);
    gst_harness_set_src_caps (h, gst_video_info_to_caps (&info));
    for (guint i = 0; i < 3; i++)
      fail_unless_equals_int (gst_harness_push (h, frames_new (&info, i, 0, FALSE)), GST_FLOW_NOT_NEGOTIATED);
    expect_text (bus, "2000x1000", texts[k]);
    gst_harness_set_src_caps (h, gst_video_info_to_caps (&small));
    fail_unless_equals_int (gst_harness_push (h, frames_new (&small, 0, 0, FALSE)), GST_FLOW_OK);
    frames_end (h, bus);
    g_free (line);
  }
}

GST_END_TEST;

/* A buffer that is smaller than its caps say. */
GST_START_TEST (test_short_buffer)
{
  GstVideoInfo info = frames_info ("I420", 128, 64);
  GstBus *bus;
  GstHarness *h = frames_harness ("vidgenchunk ! vidgenstitch", gst_video_info_to_caps (&info), &bus);

  gst_debug_set_active (FALSE);
  fail_unless_equals_int (gst_harness_push (h, gst_buffer_new_allocate (NULL, 100, NULL)), GST_FLOW_ERROR);
  expect_text (bus, "cannot be read", "128x64");
  frames_end (h, bus);
}

GST_END_TEST;

/* ---- pipelines ---- */

static GstElement *
launch (const gchar *line)
{
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch (line, &error);

  fail_unless (pipeline && !error, "%s: %s", line, error ? error->message : "");
  return pipeline;
}

static GstMessageType
wait_for (GstElement *pipeline, GstMessageType types, gdouble seconds)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message = gst_bus_timed_pop_filtered (
      bus, (GstClockTime) (seconds * GST_SECOND), types | GST_MESSAGE_ERROR);
  GstMessageType type = message ? GST_MESSAGE_TYPE (message) : GST_MESSAGE_UNKNOWN;

  if (message)
    gst_message_unref (message);
  gst_object_unref (bus);
  return type;
}

static void
stop_quickly (GstElement *pipeline, const gchar *what)
{
  gint64 start = g_get_monotonic_time ();

  gst_element_set_state (pipeline, GST_STATE_NULL);
  fail_unless (g_get_monotonic_time () - start < 2 * G_USEC_PER_SEC, "%s", what);
}

#define SOURCE "videotestsrc num-buffers=%d ! video/x-raw,format=I420,width=160,height=120 ! "
#define TILES "vidgenchunk tile-width=64 tile-height=64 overlap-x=8 overlap-y=8 "

/* EOS after any number of frames arrives once; then NULL, and again. */
GST_START_TEST (test_cycles)
{
  static const gchar *mids[] = {"! ", "! queue ! ", "! queue ! videobalance hue=0.1 ! queue ! "};

  for (guint k = 0; k < 3; k++) {
    gchar *line = g_strdup_printf (SOURCE TILES "%svidgenstitch blend=cosine ! fakesink name=f", 5, mids[k]);
    GstElement *pipeline = launch (line);

    for (guint i = 0; i < 50; i++) {
      if (i % 3 == 0) {
        gst_element_set_state (pipeline, GST_STATE_PLAYING);
        fail_unless_equals_int (wait_for (pipeline, GST_MESSAGE_EOS, 10), GST_MESSAGE_EOS);
      } else if (i % 3 == 1) {
        /* In the middle of it. */
        gst_element_set_state (pipeline, GST_STATE_PLAYING);
        g_usleep (i * 100);
      } else {
        gst_element_set_state (pipeline, GST_STATE_PAUSED);
        gst_element_get_state (pipeline, NULL, NULL, GST_CLOCK_TIME_NONE);
      }
      stop_quickly (pipeline, line);
    }
    gst_object_unref (pipeline);
    g_free (line);
  }
}

GST_END_TEST;

/* NULL while running, while blocked in a sink, and while a pool of downstream has no buffer left. */
GST_START_TEST (test_stop)
{
  static const gchar *lines[] = {
      SOURCE TILES "! vidgenstitch ! fakesink",
      SOURCE TILES "! queue ! vidgenstitch ! queue ! fakesink",
      SOURCE TILES "! vidgenstitch ! fakesink sync=true",
      SOURCE TILES "! vidgenstitch ! identity sleep-time=50000 ! fakesink",
      SOURCE TILES "! identity sleep-time=20000 ! vidgenstitch ! fakesink",
      SOURCE TILES "! tee name=t ! queue ! vidgenstitch ! fakesink t. ! queue ! fakesink async=false",
  };

  for (guint k = 0; k < G_N_ELEMENTS (lines); k++)
    for (guint i = 0; i < 5; i++) {
      gchar *line = g_strdup_printf (lines[k], 100000);
      GstElement *pipeline = launch (line);

      gst_element_set_state (pipeline, i == 4 ? GST_STATE_PAUSED : GST_STATE_PLAYING);
      g_usleep (20000 + i * 7000);
      stop_quickly (pipeline, line);
      gst_object_unref (pipeline);
      g_free (line);
    }
}

GST_END_TEST;

static void
count_frame (GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer data)
{
  g_array_append_val ((GArray *) data, GST_BUFFER_PTS (buffer));
}

/* Seeks, forwards and backwards, give the frames that the source gives. */
GST_START_TEST (test_seek)
{
  for (gint rate = -1; rate <= 2; rate++) {
    GArray *pts[2];

    if (!rate)
      continue;
    for (guint k = 0; k < 2; k++) {
      gchar *line = g_strdup_printf (
          SOURCE "%s fakesink name=f signal-handoffs=true", 100, k ? TILES "! queue ! vidgenstitch !" : "");
      GstElement *pipeline = launch (line);
      GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), "f");

      pts[k] = g_array_new (FALSE, FALSE, sizeof (guint64));
      gst_element_set_state (pipeline, GST_STATE_PAUSED);
      gst_element_get_state (pipeline, NULL, NULL, GST_CLOCK_TIME_NONE);
      g_signal_connect (sink, "handoff", G_CALLBACK (count_frame), pts[k]);
      fail_unless (gst_element_seek (pipeline, rate, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE,
          GST_SEEK_TYPE_SET, GST_SECOND / 3, GST_SEEK_TYPE_SET, GST_SECOND));
      gst_element_set_state (pipeline, GST_STATE_PLAYING);
      fail_unless_equals_int (wait_for (pipeline, GST_MESSAGE_EOS, 10), GST_MESSAGE_EOS);
      stop_quickly (pipeline, line);
      gst_object_unref (sink);
      gst_object_unref (pipeline);
      g_free (line);
    }
    fail_unless (
        pts[0]->len > 15 && pts[0]->len == pts[1]->len, "rate %d: %u and %u frames", rate, pts[0]->len, pts[1]->len);
    fail_unless (!memcmp (pts[0]->data, pts[1]->data, pts[0]->len * sizeof (guint64)));
    g_array_unref (pts[0]);
    g_array_unref (pts[1]);
  }
}

GST_END_TEST;

static Suite *
faults_suite (void)
{
  Suite *s = suite_create ("faults");
  TCase *tc = tcase_create ("general");

  frames_init ();
  tcase_set_timeout (tc, 100);
  suite_add_tcase (s, tc);
  tcase_add_test (tc, test_missing_tile);
  tcase_add_test (tc, test_missing_converted);
  tcase_add_test (tc, test_missing_is_an_error);
  tcase_add_test (tc, test_foreign_buffer);
  tcase_add_test (tc, test_wrong_tile_size);
  tcase_add_test (tc, test_impossible);
  tcase_add_test (tc, test_short_buffer);
  tcase_add_test (tc, test_cycles);
  tcase_add_test (tc, test_stop);
  tcase_add_test (tc, test_seek);
  return s;
}

GST_CHECK_MAIN (faults);
