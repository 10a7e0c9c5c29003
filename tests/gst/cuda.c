/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* device=cuda in pipelines, on the stand-in for the device (tests/cuda/standin). */
#include <gst/check/gstharness.h>

#include "cuda/standin/counters.h"
#include "pipeline.h"
#include "time_nets.h"

#define SOURCE(format) \
  "videotestsrc num-buffers=2 pattern=zone-plate kx2=8 ky2=8 ! video/x-raw,format=" format ",width=36,height=27 ! "

/* What `vidgen` says that it ran on; NULL: nothing. */
static gchar *
active_device (Play *play)
{
  GstElement *element = gst_bin_get_by_name (GST_BIN (play->pipeline), "v");
  gchar *device;

  g_object_get (element, "active-device", &device, NULL);
  gst_object_unref (element);
  return device;
}

static guint64
counter (Play *play, const gchar *name)
{
  GstElement *element = gst_bin_get_by_name (GST_BIN (play->pipeline), "v");
  GstStructure *stats;
  guint64 value = G_MAXUINT64;

  g_object_get (element, "stats", &stats, NULL);
  gst_structure_get_uint64 (stats, name, &value);
  gst_structure_free (stats);
  gst_object_unref (element);
  return value;
}

static void
check_device (Play *play, const gchar *begins)
{
  gchar *device = active_device (play);

  fail_unless (device && g_str_has_prefix (device, begins), "%s", device);
  g_free (device);
}

/* The largest difference of two runs' values, and whether there is one at all. */
static gint
difference (Play *a, Play *b)
{
  gint most = 0;

  fail_unless_equals_int (a->frames->len, b->frames->len);
  for (guint i = 0; i < a->frames->len; i++) {
    GByteArray *x = g_ptr_array_index (a->frames, i), *y = g_ptr_array_index (b->frames, i);

    fail_unless_equals_int (x->len, y->len);
    for (guint k = 0; k < x->len; k++)
      most = MAX (most, ABS (x->data[k] - y->data[k]));
  }
  return most;
}

static Play *
run_on (const gchar *format, const gchar *settings)
{
  gchar *line = g_strdup_printf (SOURCE ("%s") "vidgen name=v %s ! " SINK, format, settings);
  Play *play = play_new (line);

  g_free (line);
  gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
  play_wait (play, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  return play;
}

GST_START_TEST (test_equals_cpu)
{
  static const gchar *const formats[] = {"RGB", "I420", "NV12", "BGRx", "ARGB", "GBR"};

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++) {
    const gchar *model = i % 2 ? "upscale2x" : "style3";
    gchar *on_cuda = g_strdup_printf ("device=cuda model-file=%s", model),
          *on_cpu = g_strdup_printf ("device=cpu model-file=%s", model);
    Play *a = run_on (formats[i], on_cuda), *b = run_on (formats[i], on_cpu);

    check_device (a, "cuda (stand-in");
    check_device (b, "cpu");
    fail_unless (difference (a, b) <= 3, "%s %s: %d", model, formats[i], difference (a, b));
    fail_unless_equals_uint64 (counter (a, "device-memory-peak"), a->plan_bytes);
    fail_unless_equals_uint64 (counter (a, "tiles-rescued"), 0);
    play_stop (a);
    play_stop (b);
    play_ok (a, 2);
    play_ok (b, 2);
    play_free (a);
    play_free (b);
    g_free (on_cuda);
    g_free (on_cpu);
  }
}
GST_END_TEST;

/* Tiles of a frame equal the frame, and single precision differs from half. */
GST_START_TEST (test_tiles_and_precision)
{
  Play *whole = run_on ("I420", "device=cuda model-file=upscale2x"),
       *tiles = run_on ("I420", "device=cuda model-file=upscale2x tile-width=28 tile-height=27"),
       *single = run_on ("I420", "device=cuda model-file=upscale2x precision=fp32");

  fail_unless (counter (tiles, "tiles") > counter (whole, "tiles"));
  fail_unless_equals_int (difference (whole, tiles), 0);
  fail_unless (difference (whole, single) >= 1 && difference (whole, single) <= 3);
  play_stop (whole);
  play_stop (tiles);
  play_stop (single);
  play_ok (whole, 2);
  play_ok (tiles, 2);
  play_ok (single, 2);
  play_free (whole);
  play_free (tiles);
  play_free (single);
}
GST_END_TEST;

GST_START_TEST (test_auto)
{
  Play *play = run_on ("RGB", "model-file=upscale2x");

  check_device (play, "cuda (stand-in");
  play_stop (play);
  play_ok (play, 2);
  play_free (play);

  g_setenv ("VIDGEN_STANDIN_DRIVER", "0", TRUE);
  play = run_on ("RGB", "model-file=upscale2x");
  g_unsetenv ("VIDGEN_STANDIN_DRIVER");
  check_device (play, "cpu");
  play_stop (play);
  play_ok (play, 2);
  fail_unless_equals_int (play->warnings, 0);
  play_free (play);
}
GST_END_TEST;

/* One error, with all these words. */
static void
check_refused (const gchar *settings, const gchar *const *words)
{
  Play *play = run_on ("RGB", settings);

  fail_unless_equals_int (play->errors, 1);
  fail_unless_equals_int (play->frames->len, 0);
  for (; *words; words++)
    fail_unless (strstr (play->error->message, *words), "'%s' is not in: %s", *words, play->error->message);
  play_stop (play);
  play_free (play);
}

GST_START_TEST (test_refusals)
{
  gchar *modules = g_strdup (g_getenv ("VIDGEN_MODULE_PATH"));

  g_setenv ("VIDGEN_MODULE_PATH", "/nonexistent:/neither", TRUE);
  check_refused ("device=cuda", (const gchar *const[]){"vidgen-cuda.so", "/nonexistent:/neither", "device to cpu", NULL});
  g_setenv ("VIDGEN_MODULE_PATH", modules, TRUE);
  g_free (modules);
  g_setenv ("VIDGEN_STANDIN_DRIVER", "12040", TRUE);
  check_refused ("device=cuda", (const gchar *const[]){"driver is for CUDA 12.4", "13.0 or newer", NULL});
  g_setenv ("VIDGEN_STANDIN_DRIVER", "0", TRUE);
  check_refused ("device=cuda", (const gchar *const[]){"no NVIDIA driver", "libcuda.so.1", NULL});
  g_unsetenv ("VIDGEN_STANDIN_DRIVER");
  check_refused ("device=cuda cuda-device-id=3", (const gchar *const[]){"cuda-device-id", "got 3", NULL});
  check_refused ("device=cpu precision=fp16", (const gchar *const[]){"precision=fp16", "auto or fp32", NULL});
  g_setenv ("VIDGEN_STANDIN_MEMORY", "300000", TRUE);
  check_refused ("device=cuda model-file=style3", (const gchar *const[]){"max-device-memory", NULL});
  g_unsetenv ("VIDGEN_STANDIN_MEMORY");
  check_refused ("device=cuda max-device-memory=100000", (const gchar *const[]){"max-device-memory is 100000", NULL});
}
GST_END_TEST;

/* One frame is on its way while the next one comes: as many leave as come, in order, at their times, whatever comes between
 * them. */
GST_START_TEST (test_flights)
{
  static const gchar *const settings[] = {"model-file=upscale2x", "model-file=upscale2x tile-width=28 tile-height=27",
      "model-file=style3"};

  for (guint i = 0; i < G_N_ELEMENTS (settings); i++) {
    gchar *line = g_strdup_printf ("vidgen device=cuda %s", settings[i]);
    GstHarness *h = gst_harness_new_parse (line);
    GstBuffer *frame, *out;
    gint n;

    gst_harness_set_live (h, FALSE);
    gst_harness_set_src_caps_str (h, "video/x-raw,format=RGB,width=36,height=27,framerate=25/1");
    for (n = 0; n < 5; n++) {
      frame = gst_harness_create_buffer (h, 36 * 27 * 3);
      gst_buffer_memset (frame, 0, n * 50, 36 * 27 * 3);
      GST_BUFFER_PTS (frame) = n * 40 * GST_MSECOND;
      GST_BUFFER_DURATION (frame) = 40 * GST_MSECOND;
      fail_unless_equals_int (gst_harness_push (h, frame), GST_FLOW_OK);
      fail_unless_equals_int (gst_harness_buffers_received (h), n);
      if (n != 1)
        continue;
      /* An event leaves behind what came before it. */
      fail_unless (gst_harness_push_event (
          h, gst_event_new_custom (GST_EVENT_CUSTOM_DOWNSTREAM, gst_structure_new_empty ("between"))));
      fail_unless_equals_int (gst_harness_buffers_received (h), 2);
    }
    fail_unless_equals_int (gst_harness_buffers_received (h), 4);
    fail_unless (gst_harness_push_event (h, gst_event_new_eos ()));
    fail_unless_equals_int (gst_harness_buffers_received (h), 5);
    for (n = 0; n < 5; n++) {
      out = gst_harness_pull (h);
      fail_unless_equals_uint64 (GST_BUFFER_PTS (out), n * 40 * GST_MSECOND);
      gst_buffer_unref (out);
    }
    gst_harness_teardown (h);
    g_free (line);
  }
}
GST_END_TEST;

static GstBuffer *
painted_frame (GstHarness *h, guint step)
{
  GstBuffer *frame = gst_harness_create_buffer (h, 36 * 28 * 3);
  GstMapInfo map;

  fail_unless (gst_buffer_map (frame, &map, GST_MAP_WRITE));
  for (guint i = 0; i < map.size; i++)
    map.data[i] = i * step % 251;
  gst_buffer_unmap (frame, &map);
  return frame;
}

static GstBuffer *
stamped_frame (GstHarness *h, guint n)
{
  GstBuffer *frame = painted_frame (h, 2 * n + 3);

  GST_BUFFER_PTS (frame) = n * 40 * GST_MSECOND;
  GST_BUFFER_DURATION (frame) = 40 * GST_MSECOND;
  return frame;
}

/* One frame in style 0, one in style 2, set while the first is on its way. */
GST_START_TEST (test_parameters_in_flight)
{
  GstBuffer *out[2], *alone[2];

  for (gint round = 0; round < 3; round++) { /* 0, 1: one frame in either; 2: both */
    GstHarness *h = gst_harness_new_parse ("vidgen device=cuda model-file=style3");
    GstElement *element = gst_harness_find_element (h, "vidgen");

    gst_harness_set_live (h, FALSE);
    gst_harness_set_src_caps_str (h, "video/x-raw,format=RGB,width=36,height=28,framerate=25/1");
    for (gint i = 0; i < 2; i++) {
      if (round < 2 && round != i)
        continue;
      gst_util_set_object_arg (G_OBJECT (element), "parameters",
          i ? "p,style_weights=<0.0,0.0,1.0>" : "p,style_weights=<1.0,0.0,0.0>");
      fail_unless_equals_int (gst_harness_push (h, painted_frame (h, 5)), GST_FLOW_OK);
    }
    fail_unless (gst_harness_push_event (h, gst_event_new_eos ()));
    for (gint i = 0; i < 2; i++) {
      if (round < 2 && round != i)
        continue;
      *(round < 2 ? &alone[i] : &out[i]) = gst_harness_pull (h);
    }
    gst_object_unref (element);
    gst_harness_teardown (h);
  }
  for (gint i = 0; i < 2; i++) {
    GstMapInfo a, b;

    fail_unless (gst_buffer_map (alone[i], &a, GST_MAP_READ) && gst_buffer_map (out[i], &b, GST_MAP_READ));
    fail_unless_equals_int (a.size, b.size);
    fail_unless (memcmp (a.data, b.data, a.size) == 0, "frame %d", i);
    gst_buffer_unmap (alone[i], &a);
    fail_unless (gst_buffer_map (alone[!i], &a, GST_MAP_READ) && memcmp (a.data, b.data, a.size) != 0);
    gst_buffer_unmap (alone[!i], &a);
    gst_buffer_unmap (out[i], &b);
  }
  for (gint i = 0; i < 2; i++) {
    gst_buffer_unref (alone[i]);
    gst_buffer_unref (out[i]);
  }
}
GST_END_TEST;

/* Frozen norms are measured on eight frames, each of which leaves at once; then frames fly, but for those that are compared. */
GST_START_TEST (test_frozen_in_flight)
{
  gchar *model = time_norm_model (), *lines[] = {
    g_strdup_printf ("vidgen device=cuda model-file=%s norm-mode=frozen norm-error-interval=0", model),
    g_strdup_printf ("vidgen device=cuda model-file=%s norm-mode=frozen norm-error-interval=10", model)};

  for (guint i = 0; i < G_N_ELEMENTS (lines); i++) {
    GstHarness *h = gst_harness_new_parse (lines[i]);

    gst_harness_set_live (h, FALSE);
    gst_harness_set_src_caps_str (h, "video/x-raw,format=RGB,width=36,height=28,framerate=25/1");
    for (guint n = 1; n <= 12; n++) {
      fail_unless_equals_int (gst_harness_push (h, painted_frame (h, n)), GST_FLOW_OK);
      fail_unless_equals_int (gst_harness_buffers_received (h), n <= 8 || (i == 1 && n == 10) ? n : n - 1);
    }
    fail_unless (gst_harness_push_event (h, gst_event_new_eos ()));
    fail_unless_equals_int (gst_harness_buffers_received (h), 12);
    gst_harness_teardown (h);
    g_free (lines[i]);
  }
  time_remove (model);
}
GST_END_TEST;

/* Windows, and frames between two: the bytes of one by one, a frame later; each frame goes up once. */
GST_START_TEST (test_windows_in_flight)
{
  enum { N = 7 };
  gchar *models[] = {time_window_model (3, 1, -2), time_window_model (3, 3, 0), time_between_model (FALSE)};
  static const struct
  {
    guint received[N], all;
  } cases[] = {
    {{0, 0, 1, 2, 3, 4, 5}, 7},  /* the second is the first one's last */
    {{0, 0, 0, 0, 0, 3, 3}, 7},  /* three at once */
    {{1, 1, 3, 5, 7, 9, 11}, 14}, /* behind what flies comes the frame itself */
  };

  for (guint m = 0; m < G_N_ELEMENTS (models); m++) {
    gchar *line = g_strdup_printf ("vidgenmodel device=cuda scene-cut=off model-file=%s", models[m]);
    GstHarness *one = gst_harness_new_parse (line), *h = gst_harness_new_parse (line); /* live: one by one */

    gst_harness_set_live (h, FALSE);
    gst_harness_set_src_caps_str (one, "video/x-raw,format=RGB,width=36,height=28,framerate=25/1");
    gst_harness_set_src_caps_str (h, "video/x-raw,format=RGB,width=36,height=28,framerate=25/1");
    for (guint n = 0; n < N; n++) {
      glong before = standin_uploaded ();

      fail_unless_equals_int (gst_harness_push (h, stamped_frame (h, n)), GST_FLOW_OK);
      fail_unless (gst_harness_buffers_received (h) == cases[m].received[n], "model %u, frame %u: %u", m, n,
          gst_harness_buffers_received (h));
      fail_unless (n < 2 || m == 1 || standin_uploaded () - before == 112 * 28, "model %u, frame %u: %ld bytes went up", m, n,
          standin_uploaded () - before);
      fail_unless_equals_int (gst_harness_push (one, stamped_frame (one, n)), GST_FLOW_OK);
    }
    fail_unless (gst_harness_push_event (h, gst_event_new_eos ()) && gst_harness_push_event (one, gst_event_new_eos ()));
    fail_unless_equals_int (gst_harness_buffers_received (h), cases[m].all);
    for (guint n = 0; n < cases[m].all; n++) {
      GstBuffer *a = gst_harness_pull (one), *b = gst_harness_pull (h);
      GstMapInfo x, y;

      fail_unless_equals_uint64 (GST_BUFFER_PTS (a), GST_BUFFER_PTS (b));
      fail_unless (gst_buffer_map (a, &x, GST_MAP_READ) && gst_buffer_map (b, &y, GST_MAP_READ));
      fail_unless (x.size == y.size && memcmp (x.data, y.data, x.size) == 0, "model %u, frame %u", m, n);
      gst_buffer_unmap (a, &x);
      gst_buffer_unmap (b, &y);
      gst_buffer_unref (a);
      gst_buffer_unref (b);
    }
    gst_harness_teardown (one);
    gst_harness_teardown (h);
    g_free (line);
    time_remove (models[m]);
  }
}
GST_END_TEST;

/* A frame's bytes go up once, of however many tiles it is; those of tiles that are no views with each tile. */
GST_START_TEST (test_frames_go_up_once)
{
  static const struct
  {
    const gchar *line;
    glong bytes; /* for a frame of 36 x 28: rows are 112 bytes there, those of a tile's 28 pixels 96 */
  } cases[] = {
    {"vidgen device=cuda model-file=upscale2x tile-width=28 tile-height=28", 112 * 28},
    {"vidgenchunk tile-width=28 tile-height=28 ! identity ! vidgenmodel device=cuda model-file=upscale2x ! vidgenstitch",
        112 * 28},
    {"vidgenchunk tile-width=28 tile-height=28 ! videobalance hue=0.5 ! vidgenmodel device=cuda model-file=upscale2x ! "
     "vidgenstitch", 2 * 96 * 28},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstHarness *h = gst_harness_new_parse (cases[i].line);
    GstBuffer *frame;
    glong before = 0;

    gst_harness_set_live (h, FALSE);
    gst_harness_set_src_caps_str (h, "video/x-raw,format=RGB,width=36,height=28,framerate=25/1");
    for (guint n = 0; n < 4; n++) {
      before = standin_uploaded ();
      frame = gst_harness_create_buffer (h, 36 * 28 * 3);
      gst_buffer_memset (frame, 0, n * 50, 36 * 28 * 3);
      fail_unless_equals_int (gst_harness_push (h, frame), GST_FLOW_OK);
    }
    fail_unless (standin_uploaded () - before == cases[i].bytes, "%s: %ld bytes", cases[i].line,
        standin_uploaded () - before);
    gst_harness_teardown (h);
  }
}
GST_END_TEST;

/* In a live pipeline nothing waits for the next frame. */
GST_START_TEST (test_no_flights_live)
{
  GstHarness *h = gst_harness_new_parse ("vidgen device=cuda model-file=upscale2x");

  gst_harness_set_src_caps_str (h, "video/x-raw,format=RGB,width=36,height=28,framerate=25/1");
  for (guint n = 1; n < 4; n++) {
    fail_unless_equals_int (gst_harness_push (h, painted_frame (h, n)), GST_FLOW_OK);
    fail_unless_equals_int (gst_harness_buffers_received (h), n);
  }
  gst_harness_teardown (h);
}
GST_END_TEST;

/* The device is lost between two frames: one error, and the pipeline ends. */
GST_START_TEST (test_lost)
{
  Play *play = play_new ("videotestsrc num-buffers=20 ! video/x-raw,format=RGB,width=32,height=24 ! "
                         "vidgen name=v device=cuda model-file=upscale2x ! queue max-size-buffers=1 ! " SINK);
  guint frames;

  gst_element_set_state (play->pipeline, GST_STATE_PAUSED);
  fail_unless (gst_element_get_state (play->pipeline, NULL, NULL, 20 * GST_SECOND) == GST_STATE_CHANGE_SUCCESS);
  g_setenv ("VIDGEN_STANDIN_FAIL", "40", TRUE);
  gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
  play_wait (play, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  frames = play->frames->len;
  fail_unless_equals_int (play->errors, 1);
  fail_unless (strstr (play->error->message, "busy or unavailable"), "%s", play->error->message);
  fail_unless (frames < 20);
  play_stop (play);
  g_unsetenv ("VIDGEN_STANDIN_FAIL");
  play_free (play);
}
GST_END_TEST;

/* Two at a time, each with threads of its own. */
GST_START_TEST (test_side_by_side)
{
  Play *a = play_new (SOURCE ("RGB") "queue ! vidgen name=v device=cuda model-file=upscale2x ! queue ! " SINK),
       *b = play_new (SOURCE ("RGB") "queue ! vidgen name=v device=cuda model-file=style3 ! queue ! " SINK),
       *alone_a = run_on ("RGB", "device=cuda model-file=upscale2x"), *alone_b = run_on ("RGB", "device=cuda model-file=style3");

  gst_element_set_state (a->pipeline, GST_STATE_PLAYING);
  gst_element_set_state (b->pipeline, GST_STATE_PLAYING);
  play_wait (a, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  play_wait (b, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless_equals_int (difference (a, alone_a), 0);
  fail_unless_equals_int (difference (b, alone_b), 0);
  play_stop (a);
  play_stop (b);
  play_stop (alone_a);
  play_stop (alone_b);
  play_ok (a, 2);
  play_ok (b, 2);
  play_free (a);
  play_free (b);
  play_free (alone_a);
  play_free (alone_b);
}
GST_END_TEST;

static Suite *
cuda_suite (void)
{
  Suite *s = suite_create ("cuda");
  TCase *tc = tcase_create ("all");

  tcase_set_timeout (tc, 300);
  suite_add_tcase (s, tc);
  tcase_add_test (tc, test_equals_cpu);
  tcase_add_test (tc, test_tiles_and_precision);
  tcase_add_test (tc, test_auto);
  tcase_add_test (tc, test_refusals);
  tcase_add_test (tc, test_flights);
  tcase_add_test (tc, test_parameters_in_flight);
  tcase_add_test (tc, test_frozen_in_flight);
  tcase_add_test (tc, test_windows_in_flight);
  tcase_add_test (tc, test_frames_go_up_once);
  tcase_add_test (tc, test_no_flights_live);
  tcase_add_test (tc, test_lost);
  tcase_add_test (tc, test_side_by_side);
  return s;
}

GST_CHECK_MAIN (cuda)
