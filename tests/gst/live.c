/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What live pipelines need: the latency that a model adds, and late frames dropped whole. */
#include "frames.h"
#include "pipeline.h"
#include "time_nets.h"

#define MODEL_LINES \
  { \
    "vidgenmodel name=m", "vidgen name=m tile-width=128" \
  }

static guint
count_messages (GstBus *bus, GstMessageType type)
{
  GstMessage *message;
  guint n = 0;

  while ((message = gst_bus_pop_filtered (bus, type))) {
    n++;
    gst_message_unref (message);
  }
  return n;
}

/* Before the first frame nothing is known; then what a frame took, rounded up, comes on top of what is before. */
GST_START_TEST (test_latency)
{
  static const gchar *const lines[] = MODEL_LINES;
  GstVideoInfo info = frames_info ("RGB", 200, 150);

  for (guint i = 0; i < G_N_ELEMENTS (lines); i++) {
    GstBus *bus;
    GstHarness *h = frames_harness (lines[i], gst_video_info_to_caps (&info), &bus);
    GstClockTime own, took;

    gst_harness_set_upstream_latency (h, 77 * GST_MSECOND);
    fail_unless_equals_uint64 (gst_harness_query_latency (h), 77 * GST_MSECOND);
    count_messages (bus, GST_MESSAGE_LATENCY);
    for (guint k = 0; k < 3; k++)
      gst_buffer_unref (gst_harness_push_and_pull (h, frames_new (&info, k, 0, FALSE)));
    own = gst_harness_query_latency (h) - 77 * GST_MSECOND;
    took = stat_of (frames_get (h, "m"), "max-time");
    fail_unless (own >= took && own < took + 5 * GST_MSECOND,
        "%s: took %" G_GUINT64_FORMAT ", reports %" G_GUINT64_FORMAT, lines[i], took, own);
    fail_unless (count_messages (bus, GST_MESSAGE_LATENCY) >= 1);
    frames_end (h, bus);
  }
}
GST_END_TEST;

/* Where nothing is live no latency is told, and no message. */
GST_START_TEST (test_no_latency)
{
  static const gchar *const lines[] = MODEL_LINES;
  GstVideoInfo info = frames_info ("RGB", 200, 150);

  for (guint i = 0; i < G_N_ELEMENTS (lines); i++) {
    GstBus *bus;
    GstHarness *h = gst_harness_new_parse (lines[i]);

    gst_harness_set_live (h, FALSE);
    gst_harness_set_src_caps (h, gst_video_info_to_caps (&info));
    bus = gst_bus_new ();
    gst_element_set_bus (h->element, bus);
    fail_unless_equals_uint64 (gst_harness_query_latency (h), 0);
    for (guint k = 0; k < 2; k++)
      gst_buffer_unref (gst_harness_push_and_pull (h, frames_new (&info, k, 0, FALSE)));
    fail_unless_equals_uint64 (gst_harness_query_latency (h), 0);
    fail_unless_equals_int (count_messages (bus, GST_MESSAGE_LATENCY), 0);
    frames_end (h, bus);
  }
}
GST_END_TEST;

/* A window's frames that are yet to come count at the stream's rate, from the caps on; other caps, other latency, and a
 * message. */
GST_START_TEST (test_window_latency)
{
  static const gint shapes[][4] = {{5, 1, 2, 80}, {3, 1, 2, 0}, {8, 8, 0, 280}, {2, 1, -1, 20}, {2, 3, -1, 30}};

  for (guint s = 0; s < G_N_ELEMENTS (shapes); s++)
    for (guint tiled = 0; tiled < 2; tiled++) {
      gchar *model = time_window_model (shapes[s][0], shapes[s][1], shapes[s][2]);
      gchar *line = g_strdup_printf (
          "%s name=m scene-cut=off model-file=%s", tiled ? "vidgen tile-width=128" : "vidgenmodel", model);
      GstVideoInfo info = frames_info ("RGB", 200, 150);
      GstBus *bus;
      GstHarness *h = frames_harness (line, gst_video_info_to_caps (&info), &bus);
      GstClockTime wait = shapes[s][3] * GST_MSECOND, own, took;

      gst_harness_set_upstream_latency (h, 77 * GST_MSECOND);
      fail_unless_equals_uint64 (gst_harness_query_latency (h), 77 * GST_MSECOND + wait);
      count_messages (bus, GST_MESSAGE_LATENCY);
      for (guint k = 0; k < 10; k++)
        gst_harness_push (h, frames_new (&info, 2 * k, 0, FALSE));
      fail_unless (count_messages (bus, GST_MESSAGE_LATENCY) >= 1);
      own = gst_harness_query_latency (h) - 77 * GST_MSECOND;
      took = stat_of (frames_get (h, "m"), "max-time");
      fail_unless (own >= wait + took && own < wait + took + 5 * GST_MSECOND,
          "%s: took %" G_GUINT64_FORMAT ", waits %" G_GUINT64_FORMAT ", reports %" G_GUINT64_FORMAT, line, took, wait,
          own);
      info.fps_n = 10;
      gst_harness_set_src_caps (h, gst_video_info_to_caps (&info));
      fail_unless (count_messages (bus, GST_MESSAGE_LATENCY) >= (wait > 0));
      own = gst_harness_query_latency (h) - 77 * GST_MSECOND;
      took = stat_of (frames_get (h, "m"), "max-time"); /* the end of the old sequence may have taken longer */
      wait = wait * 25 / 10;
      fail_unless (own >= wait + took && own < wait + took + 5 * GST_MSECOND);
      frames_end (h, bus);
      g_free (line);
      time_remove (model);
    }
}
GST_END_TEST;

static void
latency_of (GstElement *pipeline, const gchar *name, gboolean *live, GstClockTime *min, GstClockTime *max)
{
  GstElement *element = gst_bin_get_by_name (GST_BIN (pipeline), name);
  GstPad *pad = gst_element_get_static_pad (element, "src");
  GstQuery *query = gst_query_new_latency ();

  fail_unless (gst_pad_query (pad, query));
  gst_query_parse_latency (query, live, min, max);
  gst_query_unref (query);
  gst_object_unref (pad);
  gst_object_unref (element);
}

/* A live source into a sink that keeps time: the pipeline hears of the latency, and frames come in time. */
GST_START_TEST (test_live_pipeline)
{
  Play *play = play_new (
      "videotestsrc name=s is-live=true num-buffers=25 ! "
      "video/x-raw,format=I420,width=120,height=90,framerate=25/1 ! vidgen name=v "
      "model-file=upscale2x tile-width=80 ! fakesink name=out signal-handoffs=true sync=true qos=true");
  GstClockTime min[2], max[2], own;
  gboolean live[2];
  GstElement *vidgen = gst_bin_get_by_name (GST_BIN (play->pipeline), "v");

  gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
  fail_unless_equals_int (
      play_wait (play, GST_MESSAGE_LATENCY | GST_MESSAGE_EOS | GST_MESSAGE_ERROR), GST_MESSAGE_LATENCY);
  do
    fail_unless (gst_bin_recalculate_latency (GST_BIN (play->pipeline)));
  while (play_wait (play, GST_MESSAGE_LATENCY | GST_MESSAGE_EOS | GST_MESSAGE_ERROR) == GST_MESSAGE_LATENCY);
  latency_of (play->pipeline, "s", &live[0], &min[0], &max[0]);
  latency_of (play->pipeline, "v", &live[1], &min[1], &max[1]);
  fail_unless (live[0] && live[1]);
  own = min[1] - min[0];
  fail_unless (own > 0 && own % (5 * GST_MSECOND) == 0);
  fail_unless_equals_uint64 (max[1], GST_CLOCK_TIME_IS_VALID (max[0]) ? max[0] + own : GST_CLOCK_TIME_NONE);
  play_stop (play);
  play_ok (play, 25);
  fail_unless_equals_uint64 (stat_of (vidgen, "dropped"), 0);
  gst_object_unref (vidgen);
  play_free (play);
}
GST_END_TEST;

/* The same with a window that looks ahead: no frame comes too late. */
GST_START_TEST (test_live_window)
{
  gchar *model = time_window_model (5, 1, 2);
  gchar *line = g_strdup_printf (
      "videotestsrc name=s is-live=true num-buffers=25 ! "
      "video/x-raw,format=I420,width=64,height=48,framerate=25/1 ! vidgen name=v qos=true "
      "model-file=%s tile-width=40 ! fakesink name=out signal-handoffs=true sync=true qos=true",
      model);
  Play *play = play_new (line);
  GstClockTime min[2], max[2];
  gboolean live[2];
  GstElement *vidgen = gst_bin_get_by_name (GST_BIN (play->pipeline), "v");
  GstMessageType type;

  gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
  while ((type = play_wait (play, GST_MESSAGE_LATENCY | GST_MESSAGE_EOS | GST_MESSAGE_ERROR)) == GST_MESSAGE_LATENCY)
    fail_unless (gst_bin_recalculate_latency (GST_BIN (play->pipeline)));
  latency_of (play->pipeline, "s", &live[0], &min[0], &max[0]);
  latency_of (play->pipeline, "v", &live[1], &min[1], &max[1]);
  fail_unless (live[1] && min[1] - min[0] >= 80 * GST_MSECOND && (min[1] - min[0]) % (5 * GST_MSECOND) == 0);
  fail_unless_equals_uint64 (stat_of (vidgen, "dropped"), 0);
  play_stop (play);
  play_ok (play, 25);
  gst_object_unref (vidgen);
  play_free (play);
  g_free (line);
  time_remove (model);
}
GST_END_TEST;

static GstPadProbeReturn
no_qos (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  fail_if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_QOS, "QoS between the tiles");
  return GST_PAD_PROBE_OK;
}

/* The sink is at this time, told by a frame so late. */
static void
send_qos (GstHarness *h, GstClockTime time, GstClockTimeDiff diff)
{
  GstEvent *event;
  guint n = 0;

  gst_harness_push_upstream_event (h, gst_event_new_qos (GST_QOS_TYPE_UNDERFLOW, 2.0, diff, time - diff));
  while ((event = gst_harness_try_pull_upstream_event (h))) {
    GstClockTime timestamp;
    GstClockTimeDiff got;

    if (GST_EVENT_TYPE (event) == GST_EVENT_QOS) {
      gst_event_parse_qos (event, NULL, NULL, &got, &timestamp);
      n += got == diff && timestamp == time - diff;
    }
    gst_event_unref (event);
  }
  /* A decoder before it may spare work, too. */
  fail_unless_equals_int (n, 1);
}

/* Pushes frame i; is it made? */
static GstBuffer *
push (GstHarness *h, const GstVideoInfo *info, guint i)
{
  fail_unless_equals_int (gst_harness_push (h, frames_new (info, i, 0, FALSE)), GST_FLOW_OK);
  return gst_harness_try_pull (h);
}

static void
expect_made (GstHarness *h, const GstVideoInfo *info, guint i, gboolean discont)
{
  GstBuffer *out = push (h, info, i);

  fail_unless (out != NULL, "frame %u", i);
  fail_unless_equals_int (GST_BUFFER_FLAG_IS_SET (out, GST_BUFFER_FLAG_DISCONT), discont);
  gst_buffer_unref (out);
}

/* A gap goes on in the frame's place, and a message tells. */
static void
expect_dropped (GstHarness *h, GstBus *bus, const GstVideoInfo *info, guint i, guint64 made, guint64 dropped)
{
  GstBuffer *in = frames_new (info, i, 0, FALSE);
  GstClockTime pts, duration;
  guint64 got_made, got_dropped;
  gboolean gap = FALSE;
  GstMessage *message;
  GstEvent *event;

  fail_unless (push (h, info, i) == NULL, "frame %u", i);
  while ((event = gst_harness_try_pull_event (h))) {
    if (GST_EVENT_TYPE (event) == GST_EVENT_GAP) {
      gst_event_parse_gap (event, &pts, &duration);
      fail_unless (pts == GST_BUFFER_PTS (in) && duration == GST_BUFFER_DURATION (in));
      gap = TRUE;
    }
    gst_event_unref (event);
  }
  fail_unless (gap);
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_QOS);
  fail_unless (message != NULL);
  gst_message_parse_qos_stats (message, NULL, &got_made, &got_dropped);
  fail_unless (
      got_made == made && got_dropped == dropped, "%" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT, got_made, got_dropped);
  gst_message_unref (message);
  gst_buffer_unref (in);
}

#define TIME_OF(i) (100 * GST_MSECOND + (i) *40 * GST_MSECOND) /* as frames_new() has it */

/* Frames that the sink is past are dropped whole, with qos=true; a flush forgets. */
GST_START_TEST (test_late_frames)
{
  GstVideoInfo info = frames_info ("I420", 200, 150);
  GstBus *bus;
  GstHarness *h = frames_harness ("vidgenchunk name=c qos=true tile-width=144 ! identity name=i ! vidgenmodel name=m ! "
                                  "vidgenstitch",
      gst_video_info_to_caps (&info), &bus);
  GstPad *pad = gst_element_get_static_pad (frames_get (h, "i"), "src");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, no_qos, NULL, NULL);
  gst_object_unref (pad);
  expect_made (h, &info, 0, FALSE);
  send_qos (h, TIME_OF (4), 3 * GST_MSECOND);
  expect_dropped (h, bus, &info, 2, 1, 1);
  expect_dropped (h, bus, &info, 4, 1, 2);
  /* The first one after is marked. */
  expect_made (h, &info, 6, TRUE);
  expect_made (h, &info, 8, FALSE);
  fail_unless_equals_uint64 (stat_of (frames_get (h, "m"), "dropped"), 2);
  fail_unless_equals_uint64 (stat_of (frames_get (h, "m"), "frames"), 3);

  send_qos (h, TIME_OF (20), -3 * GST_MSECOND);
  expect_dropped (h, bus, &info, 10, 3, 3);
  frames_flush (h);
  expect_made (h, &info, 12, FALSE);
  g_object_set (frames_get (h, "c"), "qos", FALSE, NULL);
  send_qos (h, TIME_OF (100), 3 * GST_MSECOND);
  expect_made (h, &info, 14, FALSE);
  fail_unless_equals_int (count_messages (bus, GST_MESSAGE_QOS), 0);
  frames_end (h, bus);
}
GST_END_TEST;

/* Of the bin it is a property like any other; off unless asked for. */
GST_START_TEST (test_late_frames_of_the_bin)
{
  GstVideoInfo info = frames_info ("I420", 200, 150);
  GstBus *bus;
  GstHarness *h = frames_harness ("vidgen name=v", gst_video_info_to_caps (&info), &bus);

  for (guint on = 0; on < 2; on++) {
    send_qos (h, TIME_OF (4), 3 * GST_MSECOND);
    if (on)
      expect_dropped (h, bus, &info, 2, 1, 1);
    else
      expect_made (h, &info, 2, FALSE);
    g_object_set (frames_get (h, "v"), "qos", TRUE, NULL);
  }
  fail_unless_equals_uint64 (stat_of (frames_get (h, "v"), "dropped"), 1);
  frames_end (h, bus);
}
GST_END_TEST;

/* On its own vidgenmodel has its base class's property, and counts as well. */
GST_START_TEST (test_late_frames_of_the_model)
{
  GstVideoInfo info = frames_info ("I420", 64, 48);
  GstBus *bus;
  GstHarness *h = frames_harness ("vidgenmodel name=m qos=true", gst_video_info_to_caps (&info), &bus);

  gst_buffer_unref (push (h, &info, 0));
  send_qos (h, TIME_OF (4), 3 * GST_MSECOND);
  fail_unless (push (h, &info, 2) == NULL);
  gst_buffer_unref (push (h, &info, 6));
  fail_unless_equals_uint64 (stat_of (frames_get (h, "m"), "dropped"), 1);
  fail_unless_equals_uint64 (stat_of (frames_get (h, "m"), "frames"), 2);
  frames_end (h, bus);
}
GST_END_TEST;

static gpointer
push_in_thread (gpointer data)
{
  GstHarness *h = data;
  GstVideoInfo info = frames_info ("RGB", 960, 540);

  return GINT_TO_POINTER (gst_harness_push (h, frames_new (&info, 1, 0, FALSE)));
}

/* A flush does not wait for a frame that takes long, nor is that an error; the next frame is made as before. */
GST_START_TEST (test_flush_stops_a_frame)
{
  GstVideoInfo info = frames_info ("RGB", 960, 540);
  GstBus *bus;
  GstHarness *h = frames_harness ("vidgenmodel name=m exact-products=true", gst_video_info_to_caps (&info), &bus);
  GstBuffer *before = gst_harness_push_and_pull (h, frames_new (&info, 1, 0, FALSE)), *after;
  gint64 takes = stat_of (frames_get (h, "m"), "max-time") / 1000, began;
  GThread *thread = g_thread_new ("push", push_in_thread, h);
  gchar *text;

  g_usleep (takes / 4);
  began = g_get_monotonic_time ();
  gst_pad_push_event (h->srcpad, gst_event_new_flush_start ());
  fail_unless_equals_int (GPOINTER_TO_INT (g_thread_join (thread)), GST_FLOW_FLUSHING);
  fail_unless (g_get_monotonic_time () - began < takes / 2);
  fail_unless_equals_uint64 (stat_of (frames_get (h, "m"), "frames"), 1);
  frames_flush (h);
  after = gst_harness_push_and_pull (h, frames_new (&info, 1, 0, FALSE));
  text = frames_differ (&info, before, after);
  fail_unless (text == NULL, "%s", text);
  fail_unless_equals_int (count_messages (bus, GST_MESSAGE_ERROR), 0);
  gst_buffer_unref (before);
  gst_buffer_unref (after);
  frames_end (h, bus);
}
GST_END_TEST;

static Suite *
live_suite (void)
{
  Suite *suite = suite_create ("live");
  TCase *cases = tcase_create ("general");

  tcase_set_timeout (cases, 60);
  suite_add_tcase (suite, cases);
  tcase_add_test (cases, test_latency);
  tcase_add_test (cases, test_no_latency);
  tcase_add_test (cases, test_live_pipeline);
  tcase_add_test (cases, test_window_latency);
  tcase_add_test (cases, test_live_window);
  tcase_add_test (cases, test_late_frames);
  tcase_add_test (cases, test_late_frames_of_the_bin);
  tcase_add_test (cases, test_late_frames_of_the_model);
  tcase_add_test (cases, test_flush_stops_a_frame);
  return suite;
}

GST_CHECK_MAIN (live);
