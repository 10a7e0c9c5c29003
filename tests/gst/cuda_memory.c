/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames in CUDA memory, on the stand-ins for the driver (tests/cuda/gstdriver) and the device: the same pixels as from
 * system memory, without copies, in the right context, and no context left over at the end. */
#define GST_USE_UNSTABLE_API
#include <gst/cuda/gstcudabufferpool.h>
#include <gst/cuda/gstcudacontext.h>
#include <gst/cuda/gstcudaloader.h>
#include <gst/cuda/gstcudamemory.h>
#include <gst/cuda/gstcudautils.h>

#include "../cuda/gstdriver/gstdriver.h"
#include "frames.h"
#include "live_objects.h"
#include "pipeline.h"
#include "time_nets.h"

#define IN_CUDA "video/x-raw(memory:CUDAMemory)"
#define FRAMES 2
/* Odd heights of I420 overlap in the pools of GStreamer 1.22. */
#define SOURCE \
  "videotestsrc num-buffers=%d pattern=zone-plate kx2=8 ky2=8 ! video/x-raw,format=%s,width=37,height=%d ! "

static gboolean
lies_in_cuda (GstCaps *caps)
{
  return gst_caps_features_contains (gst_caps_get_features (caps, 0), "memory:CUDAMemory");
}

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

static void
expect_no_contexts (void)
{
  fail_unless_equals_int (gstdriver_contexts (), 0);
}

/* ---- every side in either memory ---- */

#define UPLOAD "cudaupload ! " IN_CUDA " ! "
#define TO_CUDA IN_CUDA " ! "
#define TO_HOST "video/x-raw ! "

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

/* ---- contexts ---- */

static GstPadProbeReturn
note_context (GstPad *pad, GstPadProbeInfo *info, gpointer seen)
{
  GstMemory *memory = gst_buffer_peek_memory (GST_PAD_PROBE_INFO_BUFFER (info), 0);

  if (gst_is_cuda_memory (memory))
    g_hash_table_add (seen, GST_CUDA_MEMORY_CAST (memory)->context);
  return GST_PAD_PROBE_OK;
}

/* One for the whole pipeline, whoever made it. */
GST_START_TEST (test_one_context)
{
  static const gchar *const lines[] = {
      SOURCE "cudaupload ! " IN_CUDA " ! vidgen name=v device=cuda model-file=upscale2x ! " IN_CUDA " ! " SINK,
      SOURCE "vidgen name=v device=cuda model-file=upscale2x ! " IN_CUDA " ! cudadownload ! video/x-raw ! " SINK,
      SOURCE "cudaupload ! " IN_CUDA " ! vidgen name=v device=cuda model-file=upscale2x ! " IN_CUDA " ! vidgen "
             "device=cuda ! cudadownload ! video/x-raw ! " SINK};

  for (guint i = 0; i < G_N_ELEMENTS (lines); i++) {
    gchar *line = g_strdup_printf (lines[i], FRAMES, "NV12", 28);
    Play *play = play_new (line);
    GstElement *element = gst_bin_get_by_name (GST_BIN (play->pipeline), "v");
    GstPad *sink = gst_element_get_static_pad (element, "sink"), *src = gst_element_get_static_pad (element, "src");
    GHashTable *seen = g_hash_table_new (NULL, NULL);

    gst_pad_add_probe (sink, GST_PAD_PROBE_TYPE_BUFFER, note_context, seen, NULL);
    gst_pad_add_probe (src, GST_PAD_PROBE_TYPE_BUFFER, note_context, seen, NULL);
    gst_object_unref (sink);
    gst_object_unref (src);
    gst_object_unref (element);
    gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
    play_wait (play, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    fail_unless_equals_int (gstdriver_contexts (), 1);
    fail_unless_equals_int (g_hash_table_size (seen), 1);
    play_stop (play);
    play_ok (play, FRAMES);
    play_free (play);
    g_hash_table_unref (seen);
    g_free (line);
    expect_no_contexts ();
  }
}
GST_END_TEST;

static Play *
start_endless (GstCudaContext *shared)
{
  Play *play = play_new ("videotestsrc is-live=true ! video/x-raw,format=I420,width=36,height=28,framerate=10/1 ! "
                         "queue ! cudaupload ! " IN_CUDA " ! vidgen device=cuda model-file=upscale2x ! " IN_CUDA " ! "
                         "queue ! cudadownload ! video/x-raw ! " SINK);

  if (shared) {
    GstContext *context = gst_context_new_cuda_context (shared);

    gst_element_set_context (play->pipeline, context);
    gst_context_unref (context);
  }
  gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
  return play;
}

static void
wait_for_frames (Play *play, guint more)
{
  guint want = play_count (play) + more;

  for (guint i = 0; i < 6000 && play_count (play) < want; i++)
    g_usleep (10000);
  fail_unless (play_count (play) >= want, "%u frames, not %u", play_count (play), want);
}

static void
end (Play *play)
{
  play_stop (play);
  fail_unless (play->errors == 0, "%s", play->error ? play->error->message : "");
  play_free (play);
}

/* Two pipelines, with contexts of their own or one that the application gave both, and again after one has ended. */
GST_START_TEST (test_any_order)
{
  for (guint order = 0; order < 4; order++) {
    GstCudaContext *shared = order & 2 ? gst_cuda_context_new (0) : NULL;
    Play *a = start_endless (shared), *b = start_endless (shared), *c;

    wait_for_frames (a, 3);
    wait_for_frames (b, 3);
    fail_unless_equals_int (gstdriver_contexts (), shared ? 1 : 2);
    if (shared)
      gst_object_unref (shared); /* the pipelines keep it */
    end (order & 1 ? a : b);
    wait_for_frames (order & 1 ? b : a, 3);
    c = start_endless (NULL);
    wait_for_frames (c, 3);
    end (order & 1 ? b : a);
    wait_for_frames (c, 3);
    end (c);
    expect_no_contexts ();
  }
}
GST_END_TEST;

/* A frame of noise in this context. */
static GstBuffer *
frame_in (GstCudaContext *context, GstCaps *caps, guint seed)
{
  GstBufferPool *pool = gst_cuda_buffer_pool_new (context);
  GstStructure *config = gst_buffer_pool_get_config (pool);
  GstVideoInfo info;
  GstVideoFrame from, to;
  GstBuffer *buffer, *noise;

  fail_unless (gst_video_info_from_caps (&info, caps));
  gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  gst_buffer_pool_config_set_params (config, caps, info.size, 0, 0);
  fail_unless (gst_buffer_pool_set_config (pool, config) && gst_buffer_pool_set_active (pool, TRUE));
  fail_unless_equals_int (gst_buffer_pool_acquire_buffer (pool, &buffer, NULL), GST_FLOW_OK);
  noise = frames_new (&info, seed, 0, FALSE);
  fail_unless (gst_video_frame_map (&from, &info, noise, GST_MAP_READ));
  fail_unless (gst_video_frame_map (&to, &info, buffer, GST_MAP_WRITE));
  gst_video_frame_copy (&to, &from);
  gst_video_frame_unmap (&to);
  gst_video_frame_unmap (&from);
  gst_buffer_copy_into (buffer, noise, GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  gst_buffer_unref (noise);
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
  return buffer;
}

static GstCaps *
caps_in_cuda (const gchar *format, gint width, gint height)
{
  GstCaps *caps = frames_caps (format, width, height);

  gst_caps_set_features (caps, 0, gst_caps_features_new ("memory:CUDAMemory", NULL));
  return caps;
}

static GstCudaContext *
context_of (GstBuffer *buffer)
{
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0);

  fail_unless (gst_is_cuda_memory (memory));
  return GST_CUDA_MEMORY_CAST (memory)->context;
}

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

/* Frames that come from other contexts, and from another device: the element goes over to theirs. */
static void
check_adoption (const gchar *line)
{
  GstVideoInfo info = frames_info ("RGB", 36, 28);
  GstHarness *h = gst_harness_new_parse (line);
  GstCudaContext *contexts[] = {gst_cuda_context_new (0), gst_cuda_context_new (0), gst_cuda_context_new (1)};
  GstBuffer *sample = NULL;

  gst_harness_set_caps (h, caps_in_cuda ("RGB", 36, 28), caps_in_cuda ("RGB", 36, 28));
  for (guint i = 0; i < 9; i++) {
    GstCudaContext *context = contexts[i / 2 % 3];
    GstCaps *caps = caps_in_cuda ("RGB", 36, 28);
    GstBuffer *out;

    fail_unless_equals_int (gst_harness_push (h, frame_in (context, caps, 4)), GST_FLOW_OK);
    out = gst_harness_pull (h);
    fail_unless (context_of (out) == context, "frame %u", i);
    if (sample) {
      gchar *differ = frames_differ (&info, sample, out);

      fail_unless (!differ, "frame %u: %s", i, differ);
      gst_buffer_unref (out);
    } else {
      sample = out;
    }
    gst_caps_unref (caps);
  }
  gst_buffer_unref (sample);
  gst_harness_teardown (h);
  for (guint i = 0; i < G_N_ELEMENTS (contexts); i++)
    gst_object_unref (contexts[i]);
  expect_no_contexts ();
}

GST_START_TEST (test_adoption)
{
  check_adoption ("vidgenmodel device=cuda model-file=style3");
  check_adoption ("vidgen device=cuda model-file=style3");
}
GST_END_TEST;

/* cuda-device-id says another device than that of the frames. */
GST_START_TEST (test_other_device)
{
  GstBus *bus;
  GstHarness *h =
      frames_harness ("vidgen device=cuda cuda-device-id=0 model-file=style3", caps_in_cuda ("RGB", 36, 28), &bus);
  GstCudaContext *context = gst_cuda_context_new (1);
  GstCaps *caps = caps_in_cuda ("RGB", 36, 28);
  gchar *text;

  fail_unless_equals_int (gst_harness_push (h, frame_in (context, caps, 1)), GST_FLOW_ERROR);
  text = error_of (bus);
  fail_unless (strstr (text, "device 1") && strstr (text, "cuda-device-id is 0"), "%s", text);
  g_free (text);
  gst_caps_unref (caps);
  gst_object_unref (context);
  frames_end (h, bus);
  expect_no_contexts ();
}
GST_END_TEST;

/* There is no memory for the model in the other context: an error, and it stays one. */
GST_START_TEST (test_no_room)
{
  GstBus *bus;
  GstHarness *h = frames_harness ("vidgen device=cuda model-file=style3", caps_in_cuda ("RGB", 36, 28), &bus);
  GstCudaContext *contexts[] = {gst_cuda_context_new (0), gst_cuda_context_new (0)};
  GstCaps *caps = caps_in_cuda ("RGB", 36, 28);
  GstBuffer *frames[3];
  gchar *text;

  for (guint i = 0; i < G_N_ELEMENTS (frames); i++)
    frames[i] = frame_in (contexts[i > 0], caps, 1);
  fail_unless_equals_int (gst_harness_push (h, frames[0]), GST_FLOW_OK);
  g_setenv ("VIDGEN_STANDIN_MEMORY", "1000", TRUE);
  fail_unless_equals_int (gst_harness_push (h, frames[1]), GST_FLOW_ERROR);
  text = error_of (bus);
  g_free (text);
  frames_flush (h);
  fail_unless_equals_int (gst_harness_push (h, frames[2]), GST_FLOW_ERROR);
  g_unsetenv ("VIDGEN_STANDIN_MEMORY");
  gst_caps_unref (caps);
  frames_end (h, bus);
  for (guint i = 0; i < G_N_ELEMENTS (contexts); i++)
    gst_object_unref (contexts[i]);
  expect_no_contexts ();
}
GST_END_TEST;

/* The second GPU, by the property. */
GST_START_TEST (test_second_device)
{
  GstHarness *h = gst_harness_new_parse ("vidgen device=cuda cuda-device-id=1 model-file=style3");
  GstBuffer *out;
  guint device;

  gst_harness_set_caps (h, frames_caps ("RGB", 36, 28), caps_in_cuda ("RGB", 36, 28));
  {
    GstVideoInfo info = frames_info ("RGB", 36, 28);

    fail_unless_equals_int (gst_harness_push (h, frames_new (&info, 1, 0, FALSE)), GST_FLOW_OK);
  }
  out = gst_harness_pull (h);
  g_object_get (context_of (out), "cuda-device-id", &device, NULL);
  fail_unless_equals_int (device, 1);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
  expect_no_contexts ();
}
GST_END_TEST;

/* Other sizes, and other memory, while playing; metas and times stay. */
GST_START_TEST (test_caps_change)
{
  GstCudaContext *context = gst_cuda_context_new (0);
  GstHarness *h = gst_harness_new_parse ("vidgen device=cuda model-file=style3");

  frames_init ();
  for (guint i = 0; i < 6; i++) {
    gint width = 36 + 4 * (gint) (i / 2);
    gboolean in_cuda = i != 3;
    GstCaps *caps = in_cuda ? caps_in_cuda ("RGB", width, 28) : frames_caps ("RGB", width, 28);
    GstVideoInfo info = frames_info ("RGB", width, 28);
    GstBuffer *in = in_cuda ? frame_in (context, caps, i) : frames_new (&info, i, 0, FALSE), *out;
    GstCaps *now;

    gst_harness_set_src_caps (h, gst_caps_ref (caps));
    frames_add_metas (in, i);
    gst_buffer_ref (in);
    fail_unless_equals_int (gst_harness_push (h, in), GST_FLOW_OK);
    out = gst_harness_pull (h);
    frames_assert_same_data (out, in, "caps change");
    frames_assert_metas (out, i, "caps change");
    now = gst_pad_get_current_caps (h->sinkpad);
    fail_unless_equals_int (lies_in_cuda (now), in_cuda);
    gst_caps_unref (now);
    gst_buffer_unref (in);
    gst_buffer_unref (out);
    gst_caps_unref (caps);
  }
  gst_harness_teardown (h);
  gst_object_unref (context);
  expect_no_contexts ();
}
GST_END_TEST;

/* However it ends, nothing lives on. */
GST_START_TEST (test_leaks)
{
  const gchar *ways[][2] = {{UPLOAD, TO_CUDA}, {"", TO_CUDA}, {UPLOAD, TO_HOST}};
  gchar *before = NULL, *after;
  guint n = 0;

  for (guint i = 0; i < 9; i++) {
    gchar *line = g_strdup_printf (SOURCE "%s queue ! vidgen device=cuda model-file=upscale2x ! %s queue ! fakesink", 9,
        "NV12", 28, ways[i % 3][0], ways[i % 3][1]);
    Play *play = play_new (line);

    gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
    if (i < 3)
      play_wait (play, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    else
      g_usleep (i * 7000);
    end (play);
    g_free (line);
    if (i == 2) /* what elements make once and keep is there */
      n = live_objects (&before);
  }
  if (live_objects (&after) != n)
    fail ("%u objects lived before:\n%s\nnow:\n%s", n, before, after);
  fail_unless (
      !strstr (after, "GstBuffer") && !strstr (after, "Vidgen") && !strstr (after, "GstCudaContext"), "%s", after);
  g_free (before);
  g_free (after);
  expect_no_contexts ();
}
GST_END_TEST;

/* ---- refusals ---- */

static void
check_refused (const gchar *settings, const gchar *behind, const gchar *const *words)
{
  gchar *line = g_strdup_printf (SOURCE UPLOAD "vidgen name=v %s ! %s " SINK, FRAMES, "RGB", 27, settings, behind);
  Play *play = play_run ("%s", line);

  fail_unless_equals_int (play->errors, 1);
  fail_unless_equals_int (play->frames->len, 0);
  for (; *words; words++)
    fail_unless (strstr (play->error->message, *words), "'%s' is not in: %s", *words, play->error->message);
  play_free (play);
  g_free (line);
  expect_no_contexts ();
}

GST_START_TEST (test_refusals)
{
  gchar *modules = g_strdup (g_getenv ("VIDGEN_MODULE_PATH"));

  check_refused (
      "device=cuda max-device-memory=100000", "", (const gchar *const[]){"max-device-memory is 100000", NULL});
  g_setenv ("VIDGEN_MODULE_PATH", "/nonexistent", TRUE);
  check_refused ("device=cuda", "", (const gchar *const[]){"vidgen-cuda.so", "/nonexistent", NULL});
  g_setenv ("VIDGEN_MODULE_PATH", modules, TRUE);
  g_free (modules);
}
GST_END_TEST;

/* The device is lost between two frames: an error, and everything is given back. */
GST_START_TEST (test_lost)
{
  for (guint at = 1; at <= 25; at += 8) {
    gchar *text = g_strdup_printf ("%u", at);
    Play *play = start_endless (NULL);

    wait_for_frames (play, 2);
    g_setenv ("VIDGEN_STANDIN_FAIL", text, TRUE);
    fail_unless_equals_int (play_wait (play, GST_MESSAGE_EOS | GST_MESSAGE_ERROR), GST_MESSAGE_ERROR);
    play_stop (play);
    g_unsetenv ("VIDGEN_STANDIN_FAIL");
    play_free (play);
    g_free (text);
    expect_no_contexts ();
  }
}
GST_END_TEST;

/* Whoever sends such caps without having asked is told. */
GST_START_TEST (test_not_asked)
{
  static const gchar *const elements[] = {"vidgen device=cpu", "vidgenmodel device=cpu"};

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    GstBus *bus;
    GstHarness *h = frames_harness (elements[i], frames_caps ("RGB", 36, 28), &bus);
    gchar *text;

    gst_harness_set_src_caps (h, caps_in_cuda ("RGB", 36, 28));
    text = error_of (bus);
    fail_unless (
        strstr (text, "CUDA memory") && strstr (text, "device=cpu") && strstr (text, "cudadownload"), "%s", text);
    g_free (text);
    frames_end (h, bus);
  }
  expect_no_contexts ();
}
GST_END_TEST;

/* On the CPU CUDA memory is not offered; with auto, where a device is found: before it starts, and after. */
GST_START_TEST (test_not_offered)
{
  static const struct
  {
    const gchar *device, *variable, *value;
    gboolean offered;
  } cases[] = {
    {"cpu", "VIDGEN_STANDIN_SEED", "5", FALSE},
    {"cuda", "VIDGEN_STANDIN_SEED", "5", TRUE},
    {"auto", "VIDGEN_STANDIN_SEED", "5", TRUE},
    {"auto", "VIDGEN_STANDIN_DRIVER", "12040", FALSE},
    {"auto", "VIDGEN_STANDIN_DEVICES", "0", FALSE},
    {"auto", "VIDGEN_MODULE_PATH", "/nonexistent", FALSE},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *before = g_strdup (g_getenv (cases[i].variable));
    GstElement *element = gst_element_factory_make ("vidgen", NULL);
    GstPad *pad = gst_element_get_static_pad (element, "sink");
    GstCaps *caps, *wanted = gst_caps_from_string (IN_CUDA);

    gst_util_set_object_arg (G_OBJECT (element), "device", cases[i].device);
    g_setenv (cases[i].variable, cases[i].value, TRUE);
    for (gint started = 0; started < 2; started++) {
      if (started)
        gst_element_set_state (element, GST_STATE_PAUSED);
      caps = gst_pad_query_caps (pad, NULL);
      fail_unless (gst_caps_can_intersect (caps, wanted) == cases[i].offered, "%s with %s=%s", cases[i].device,
          cases[i].variable, cases[i].value);
      gst_caps_unref (caps);
    }
    gst_element_set_state (element, GST_STATE_NULL);
    if (before)
      g_setenv (cases[i].variable, before, TRUE);
    else
      g_unsetenv (cases[i].variable);
    g_free (before);
    gst_caps_unref (wanted);
    gst_object_unref (pad);
    gst_object_unref (element);
  }
  expect_no_contexts ();
}
GST_END_TEST;

static Suite *
cuda_memory_suite (void)
{
  Suite *s = suite_create ("cuda memory");
  TCase *tc = tcase_create ("all");
  GstPlugin *plugin;

  tcase_set_timeout (tc, 300);
  suite_add_tcase (s, tc);
  plugin = gst_registry_find_plugin (gst_registry_get (), "nvcodec");
  if (!plugin) {
    g_print ("nvcodec, of gst-plugins-bad, is missing\n");
    exit (77);
  }
  gst_object_unref (plugin);
  g_assert_true (gst_cuda_load_library ()); /* contexts are made here, too */
  tcase_add_test (tc, test_combinations);
  tcase_add_test (tc, test_no_copies);
  tcase_add_test (tc, test_without_a_model);
  tcase_add_test (tc, test_budget);
  tcase_add_test (tc, test_in_flight);
  tcase_add_test (tc, test_time);
  tcase_add_test (tc, test_one_under_way);
  tcase_add_test (tc, test_one_context);
  tcase_add_test (tc, test_any_order);
  tcase_add_test (tc, test_adoption);
  tcase_add_test (tc, test_other_device);
  tcase_add_test (tc, test_no_room);
  tcase_add_test (tc, test_second_device);
  tcase_add_test (tc, test_caps_change);
  tcase_add_test (tc, test_leaks);
  tcase_add_test (tc, test_lost);
  tcase_add_test (tc, test_refusals);
  tcase_add_test (tc, test_not_offered);
  tcase_add_test (tc, test_not_asked);
  return s;
}

int
main (int argc, char **argv)
{
  g_setenv ("GST_TRACERS", "leaks", TRUE);
  gst_check_init (&argc, &argv);
  return gst_check_run_suite (cuda_memory_suite (), "cuda_memory", __FILE__);
}
