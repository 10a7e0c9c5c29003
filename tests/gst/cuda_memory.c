/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames in CUDA memory: the same pixels as from system memory, without copies, whatever is done with them. */
#include "cuda_play.h"

static gint
height_for (const gchar *format)
{
  return g_str_equal (format, "I420") ? 28 : 27;
}

/* `before` and `behind` the element. */
G_GNUC_PRINTF (4, 5)
static Play *
run_between (const gchar *format, const gchar *before, const gchar *behind, const gchar *element, ...)
{
  gchar *middle, *line;
  Play *play;
  va_list args;

  va_start (args, element);
  middle = g_strdup_vprintf (element, args);
  va_end (args);
  line = g_strdup_printf (SOURCE "%s %s ! %s " SINK, FRAMES, format, height_for (format), before, middle, behind);
  play = play_run ("%s", line);
  fail_unless (play->errors == 0, "%s: %s", line, play->error ? play->error->message : "");
  fail_unless (play->eos && play->frames->len >= FRAMES, "%s", line);
  g_free (middle);
  g_free (line);
  return play;
}

static void
expect_same (Play *a, Play *b, const gchar *what)
{
  fail_unless_equals_int (a->frames->len, b->frames->len);
  for (guint i = 0; i < a->frames->len; i++)
    fail_unless_equals_int (play_differ (play_frame (a, i), play_frame (b, i)), 0);
  GST_INFO ("%s: the same", what);
}

/* ---- every side in either memory ---- */

GST_START_TEST (test_combinations)
{
  static const gchar *const formats[] = {"I420", "NV12", "RGB", "BGRx", "ARGB", "RGBA", "GBR"};
  static const gchar *const elements[] = {"vidgenmodel", "vidgen"};
  static const struct
  {
    const gchar *before, *behind;
    gboolean in_cuda;
  } ways[] = {{UPLOAD, TO_CUDA, TRUE}, {UPLOAD, TO_HOST, FALSE}, {"", TO_CUDA, TRUE}, {UPLOAD, "", TRUE},
      {"", "", FALSE}, {UPLOAD "queue ! ", "queue ! cudadownload ! " TO_HOST, FALSE}};

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++) {
    gchar *element =
        g_strdup_printf ("%s device=cuda model-file=%s", elements[i % 2], i % 3 ? "style3" : "upscale2x");
    Play *host = run_between (formats[i], "", TO_HOST, "%s", element);

    for (guint w = 0; w < G_N_ELEMENTS (ways); w++) {
      Play *play = run_between (formats[i], ways[w].before, ways[w].behind, "%s", element);

      fail_unless_equals_int (lies_in_cuda (g_ptr_array_index (play->caps, 0)), ways[w].in_cuda);
      expect_same (play, host, element);
      play_free (play);
    }
    play_free (host);
    g_free (element);
  }
  expect_no_contexts ();
}
GST_END_TEST;

/* From memory of the device to memory of the device: nothing but what the test itself takes up and down. */
GST_START_TEST (test_no_copies)
{
  static const gchar *const elements[] = {"vidgenmodel device=cuda model-file=upscale2x",
      "vidgen device=cuda model-file=upscale2x", "vidgenchunk ! vidgenstitch"};

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    gint before = gstdriver_copies ();
    Play *play = run_between ("RGB", UPLOAD, TO_CUDA, "%s", elements[i]);

    fail_unless_equals_int (gstdriver_copies () - before, 2 * FRAMES);
    play_free (play);
  }
  expect_no_contexts ();
}
GST_END_TEST;

/* Chunk and stitch alone hand the very frame on. */
GST_START_TEST (test_without_a_model)
{
  Play *host = run_between ("NV12", "", TO_HOST, "identity"),
       *play = run_between ("NV12", UPLOAD, TO_CUDA, "vidgenchunk tile-width=16 tile-height=8 ! queue ! vidgenstitch");

  expect_same (play, host, "chunk and stitch");
  play_free (play);
  play_free (host);
  expect_no_contexts ();
}
GST_END_TEST;

/* ---- memory ---- */

static guint64
counter (Play *play, const gchar *name)
{
  GstElement *element = gst_bin_get_by_name (GST_BIN (play->pipeline), "v");
  guint64 value = stat_of (element, name);

  gst_object_unref (element);
  return value;
}

/* Tiles that are asked for are not made, and max-device-memory holds, by bands: the same bits. */
GST_START_TEST (test_budget)
{
  const gchar *line = "videotestsrc num-buffers=2 pattern=zone-plate kx2=8 ky2=8 ! video/x-raw,format=RGB,width=48,"
                      "height=96 ! " UPLOAD "vidgen name=v device=cuda model-file=upscale2x %s ! " TO_CUDA SINK;
  gchar *all = g_strdup_printf (line, ""), *settings, *less;
  Play *whole = play_run ("%s", all), *play;
  guint64 least = whole->plan_bytes * 2 / 3;

  play_ok (whole, FRAMES);
  settings = g_strdup_printf ("tile-width=20 tile-height=20 max-device-memory=%" G_GUINT64_FORMAT, least);
  less = g_strdup_printf (line, settings);
  play = play_run ("%s", less);
  play_ok (play, FRAMES);
  fail_unless_equals_int (play->warnings, 1);
  fail_unless (strstr (play->warning, "not cut into tiles"), "%s", play->warning);
  fail_unless (play->plan_bytes <= least && play->plan_bytes < whole->plan_bytes);
  fail_unless_equals_uint64 (counter (play, "device-memory-peak"), play->plan_bytes);
  fail_unless_equals_uint64 (counter (play, "tiles"), FRAMES);
  expect_same (play, whole, "bands");
  g_free (all);
  g_free (settings);
  g_free (less);
  play_free (play);
  play_free (whole);
  expect_no_contexts ();
}
GST_END_TEST;

/* Queues on both sides, more frames than the pools begin with. */
GST_START_TEST (test_in_flight)
{
  const gchar *line = "videotestsrc num-buffers=12 pattern=ball ! video/x-raw,format=I420,width=36,height=28 ! %s "
                      "queue max-size-buffers=3 ! vidgen device=cuda model-file=upscale2x ! queue max-size-buffers=3 ! "
                      "%s " SINK;
  gchar *in_cuda = g_strdup_printf (line, UPLOAD, TO_CUDA), *on_host = g_strdup_printf (line, "", TO_HOST);
  Play *a = play_run ("%s", in_cuda), *b = play_run ("%s", on_host);

  play_ok (a, 12);
  play_ok (b, 12);
  expect_same (a, b, "in flight");
  play_free (a);
  play_free (b);
  g_free (in_cuda);
  g_free (on_host);
  expect_no_contexts ();
}
GST_END_TEST;

/* ---- time: windows, interpolators, states ---- */

GST_START_TEST (test_time)
{
  gchar *models[] = {time_window_model (3, 1, -2), time_window_model (3, 3, 0), time_between_model (FALSE),
      time_state_model ()};

  for (guint i = 0; i < G_N_ELEMENTS (models); i++) {
    gchar *element = g_strdup_printf ("vidgen device=cuda model-file=%s %s", models[i], i == 1 ? "hop=2" : "");
    Play *host = run_between ("RGB", "", TO_HOST, "%s", element),
         *play = run_between ("RGB", UPLOAD, TO_CUDA, "%s", element),
         *down = run_between ("RGB", UPLOAD, TO_HOST, "%s", element);

    expect_same (play, host, models[i]);
    expect_same (down, host, models[i]);
    play_free (play);
    play_free (down);
    play_free (host);
    g_free (element);
    time_remove (models[i]);
  }
  expect_no_contexts ();
}
GST_END_TEST;

/* ---- what looks at whole frames ---- */

/* Each colour less its mean, by its deviation. */
static gchar *
norm_model (void)
{
  struct ow *m = ow_new (17);

  ow_input (m, "x", 1, "1,3,h,w");
  ow_output (m, "y", 1, "1,3,h,w");
  ow_floats_tensor (m, "scale", 1, (int64_t[]){3}, (float[]){0.9f, 1.1f, 1});
  ow_floats_tensor (m, "bias", 1, (int64_t[]){3}, (float[]){0.1f, 0, -0.1f});
  ow_add (m, ow_node ("InstanceNormalization", "norm", "x,scale,bias", "n"));
  ow_add (m, ow_node ("Sigmoid", "show", "n", "y"));
  return time_write (m, "norm.onnx");
}

/* Scene cuts, reduced frames, windows that fade into each other, the comparison with exact norms: on the device, with the bytes
 * that frames on the host give, and no more is copied than without a model. */
GST_START_TEST (test_whole_frames)
{
  gchar *window = time_window_model (3, 3, 0), *norm = norm_model ();
  gchar *elements[] = {g_strdup_printf ("model-file=%s norm-mode=thumbnail norm-error-interval=0", norm),
      g_strdup_printf ("model-file=%s norm-mode=previous norm-error-interval=2", norm),
      g_strdup_printf ("model-file=%s scene-cut=on", norm), g_strdup_printf ("model-file=%s hop=2", window)};
  const gchar *source = "videotestsrc num-buffers=7 pattern=ball animation-mode=frames ! "
                        "video/x-raw,format=%s,width=600,height=24 ! ";

  for (guint i = 0; i < 2 * G_N_ELEMENTS (elements); i++) {
    gchar *line = g_strdup_printf (source, i % 2 ? "NV12" : "RGB");
    Play *host = play_run ("%s vidgen name=v device=cuda %s ! " TO_HOST SINK, line, elements[i / 2]), *play;
    gint none = -gstdriver_copies (), copies;

    play = play_run ("%s" UPLOAD "vidgenchunk ! vidgenstitch ! " TO_CUDA SINK, line);
    none += gstdriver_copies ();
    play_free (play);
    copies = -gstdriver_copies ();
    play = play_run ("%s" UPLOAD "vidgen name=v device=cuda %s ! " TO_CUDA SINK, line, elements[i / 2]);
    copies += gstdriver_copies ();
    play_ok (host, 7);
    play_ok (play, 7);
    expect_same (play, host, elements[i / 2]);
    fail_unless_equals_int (copies, none);
    fail_unless_equals_uint64 (counter (play, "norm-error-frames"), counter (host, "norm-error-frames"));
    fail_unless ((i / 2 == 1) == (counter (play, "norm-error-frames") > 0));
    play_free (play);
    play_free (host);
    g_free (line);
  }
  for (guint i = 0; i < G_N_ELEMENTS (elements); i++)
    g_free (elements[i]);
  time_remove (window);
  time_remove (norm);
  expect_no_contexts ();
}
GST_END_TEST;

/* ---- reuse-static ---- */

/* Frames of these seeds; what comes out, and how often the model ran. */
static GPtrArray *
run_static (const gchar *format, const gchar *element, gboolean reuse, gint *copies, guint64 *tiles)
{
  static const guint seeds[] = {1, 1, 3, 3, 3, 1};
  gchar *line = g_strdup_printf ("%s name=v device=cuda model-file=upscale2x reuse-static=%d", element, reuse);
  GstHarness *h = gst_harness_new_parse (line);
  GstElement *v = gst_harness_find_element (h, element);
  GstCudaContext *context = gst_cuda_context_new (0);
  GstCaps *caps = caps_in_cuda (format, 36, 28);
  GPtrArray *out = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_buffer_unref);

  gst_harness_set_caps (h, gst_caps_ref (caps), caps_in_cuda (format, 72, 56));
  *copies = 0;
  for (guint i = 0; i < G_N_ELEMENTS (seeds); i++) {
    GstBuffer *in = frame_in (context, caps, seeds[i]);

    GST_BUFFER_FLAG_UNSET (in, GST_BUFFER_FLAG_DISCONT);
    *copies -= gstdriver_copies ();
    fail_unless_equals_int (gst_harness_push (h, in), GST_FLOW_OK);
    *copies += gstdriver_copies ();
    g_ptr_array_add (out, gst_harness_pull (h));
  }
  *tiles = stat_of (v, "tiles");
  fail_unless_equals_uint64 (*tiles + stat_of (v, "tiles-reused"), G_N_ELEMENTS (seeds));
  gst_object_unref (v);
  gst_harness_teardown (h);
  gst_object_unref (context);
  gst_caps_unref (caps);
  g_free (line);
  return out;
}

/* Compared, kept and given where they lie. */
GST_START_TEST (test_reuse)
{
  static const gchar *const formats[] = {"I420", "NV12", "RGB", "ARGB", "GBR"};

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++) {
    const gchar *element = i % 2 ? "vidgen" : "vidgenmodel";
    GstVideoInfo info = frames_info (formats[i], 72, 56);
    guint64 tiles, all;
    gint copies, none;
    GPtrArray *with = run_static (formats[i], element, TRUE, &copies, &tiles),
              *without = run_static (formats[i], element, FALSE, &none, &all);

    fail_unless_equals_uint64 (tiles, 3);
    fail_unless_equals_uint64 (all, 6);
    fail_unless_equals_int (none, 6); /* what the test wrote on the host goes up */
    fail_unless_equals_int (copies, none);
    for (guint n = 0; n < with->len; n++) {
      gchar *differ = frames_differ (&info, g_ptr_array_index (with, n), g_ptr_array_index (without, n));

      fail_unless (!differ, "%s, frame %u: %s", formats[i], n, differ);
    }
    g_ptr_array_unref (with);
    g_ptr_array_unref (without);
  }
  expect_no_contexts ();
}
GST_END_TEST;

/* Three scenes of three frames: two cuts, found on the device. */
GST_START_TEST (test_cuts)
{
  static const gchar *const formats[] = {"NV12", "RGB", "GBR", "BGRA"};

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++) {
    gchar *model = norm_model (), *line = g_strdup_printf ("vidgen device=cuda scene-cut=on model-file=%s", model);
    GstHarness *h = gst_harness_new_parse (line);
    GstElement *v = gst_harness_find_element (h, "vidgen");
    GstCudaContext *context = gst_cuda_context_new (0);
    GstCaps *caps = caps_in_cuda (formats[i], 96, 54);
    GstVideoInfo info;
    gint copies = 0;

    fail_unless (gst_video_info_from_caps (&info, caps));
    gst_harness_set_caps (h, gst_caps_ref (caps), caps_in_cuda (formats[i], 96, 54));
    for (guint n = 0; n < 9; n++) {
      GstBuffer *scene = frames_new (&info, 1, 0, FALSE);
      GstVideoFrame frame;

      GST_BUFFER_FLAG_UNSET (scene, GST_BUFFER_FLAG_DISCONT);
      fail_unless (gst_video_frame_map (&frame, &info, scene, GST_MAP_WRITE));
      for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES (&frame); p++)
        for (gint y = 0; y < frames_rows (&frame, p); y++)
          for (gint x = 0; x < frames_row_bytes (&frame, p); x++) {
            guint32 block = (y / 6 * 50 + x / 6 + 1) * 2654435761u * (n / 3 + 1);

            ((guint8 *) frame.data[p])[y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, p) + x] =
                40 + (block ^ block >> 15) % 160 + n % 3;
          }
      gst_video_frame_unmap (&frame);
      scene = take_to (context, caps, scene);
      copies -= gstdriver_copies ();
      fail_unless_equals_int (gst_harness_push (h, scene), GST_FLOW_OK);
      copies += gstdriver_copies ();
      gst_buffer_unref (gst_harness_pull (h));
    }
    fail_unless_equals_int (copies, 9); /* what the test wrote on the host goes up */
    fail_unless_equals_uint64 (stat_of (v, "cuts"), 2);
    gst_object_unref (v);
    gst_harness_teardown (h);
    gst_object_unref (context);
    gst_caps_unref (caps);
    g_free (line);
    time_remove (model);
  }
  expect_no_contexts ();
}
GST_END_TEST;

/* ---- contexts ---- */

/* The next that came out. */
static void
expect_frame (GstHarness *h, const GstVideoInfo *info, GstBuffer *want, const gchar *what)
{
  GstBuffer *out = gst_harness_pull (h);
  gchar *differ = frames_differ (info, want, out);

  fail_unless (!differ, "%s: %s", what, differ);
  fail_unless_equals_uint64 (GST_BUFFER_PTS (out), GST_BUFFER_PTS (want));
  gst_buffer_unref (out);
}

static void
gone (gpointer alive, GstMiniObject *object)
{
  *(gboolean *) alive = FALSE;
}

/* One frame is under way while the next one comes, whichever side is CUDA memory: complete when it leaves; what lies on the
 * device is kept until then, and no longer. */
GST_START_TEST (test_one_under_way)
{
  enum { N = 6 };
  static const gchar *const ways[] = {"host to device", "device to host", "device to device"};
  GstVideoInfo info = frames_info ("RGB", 36, 28), large = frames_info ("RGB", 72, 56);
  GstCudaContext *context = gst_cuda_context_new (0);
  GstCaps *in_caps = frames_caps ("RGB", 36, 28), *out_caps = frames_caps ("RGB", 72, 56),
          *in_cuda_caps = caps_in_cuda ("RGB", 36, 28), *out_cuda_caps = caps_in_cuda ("RGB", 72, 56);
  GstHarness *one = gst_harness_new_parse ("vidgenmodel device=cuda model-file=upscale2x"); /* live: one by one */
  GstBuffer *want[N];

  gst_harness_set_src_caps (one, gst_caps_ref (in_caps));
  for (guint n = 0; n < N; n++) {
    GstBuffer *frame = frames_new (&info, n, 0, FALSE);

    GST_BUFFER_PTS (frame) = n * GST_SECOND;
    fail_unless_equals_int (gst_harness_push (one, frame), GST_FLOW_OK);
    want[n] = gst_harness_pull (one);
  }
  gst_harness_teardown (one);

  for (guint w = 0; w < G_N_ELEMENTS (ways); w++) {
    gboolean from_cuda = w > 0, alive[N];
    GstHarness *h = gst_harness_new_parse ("vidgenmodel device=cuda model-file=upscale2x");
    GstSegment segment;

    gst_harness_set_live (h, FALSE);
    gst_harness_set_caps (
        h, gst_caps_ref (from_cuda ? in_cuda_caps : in_caps), gst_caps_ref (w == 1 ? out_caps : out_cuda_caps));
    for (guint n = 0; n < N; n++) {
      GstBuffer *frame = from_cuda ? frame_in (context, in_cuda_caps, n) : frames_new (&info, n, 0, FALSE);

      GST_BUFFER_PTS (frame) = n * GST_SECOND;
      alive[n] = TRUE;
      gst_mini_object_weak_ref (GST_MINI_OBJECT (frame), gone, &alive[n]);
      fail_unless_equals_int (gst_harness_push (h, frame), GST_FLOW_OK);
      fail_unless_equals_int (gst_harness_buffers_in_queue (h), n > 0 && n != 4);
      if (n > 0 && n != 4)
        expect_frame (h, &large, want[n - 1], ways[w]);
      fail_unless (alive[n] == from_cuda && !(n > 0 && alive[n - 1]), "%s: frame %u", ways[w], n);
      if (n == 3) { /* what flies is not wanted */
        gst_harness_push_event (h, gst_event_new_flush_start ());
        gst_harness_push_event (h, gst_event_new_flush_stop (TRUE));
        gst_segment_init (&segment, GST_FORMAT_TIME);
        gst_harness_push_event (h, gst_event_new_segment (&segment));
        fail_unless (!alive[n]);
      }
    }
    fail_unless (gst_harness_push_event (h, gst_event_new_eos ()));
    expect_frame (h, &large, want[N - 1], ways[w]);
    fail_unless (!alive[N - 1]);
    gst_harness_teardown (h);
  }
  for (guint n = 0; n < N; n++)
    gst_buffer_unref (want[n]);
  gst_caps_unref (in_caps);
  gst_caps_unref (out_caps);
  gst_caps_unref (in_cuda_caps);
  gst_caps_unref (out_cuda_caps);
  gst_object_unref (context);
  expect_no_contexts ();
}
GST_END_TEST;

static TCase *
cuda_memory_case (void)
{
  TCase *tc = tcase_create ("all");

  tcase_add_test (tc, test_combinations);
  tcase_add_test (tc, test_no_copies);
  tcase_add_test (tc, test_without_a_model);
  tcase_add_test (tc, test_budget);
  tcase_add_test (tc, test_in_flight);
  tcase_add_test (tc, test_time);
  tcase_add_test (tc, test_whole_frames);
  tcase_add_test (tc, test_cuts);
  tcase_add_test (tc, test_reuse);
  tcase_add_test (tc, test_one_under_way);
  return tc;
}

int
main (int argc, char **argv)
{
  return cuda_play_main (argc, argv, cuda_memory_case, "cuda_memory");
}
