/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose context frames in CUDA memory are in: always the right one, and none is left over at the end; and what is refused. */
#include "cuda_play.h"

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

static GstCudaContext *
context_of (GstBuffer *buffer)
{
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0);

  fail_unless (gst_is_cuda_memory (memory));
  return GST_CUDA_MEMORY_CAST (memory)->context;
}

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

static TCase *
cuda_contexts_case (void)
{
  TCase *tc = tcase_create ("all");

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
  return tc;
}

int
main (int argc, char **argv)
{
  return cuda_play_main (argc, argv, cuda_contexts_case, "cuda_contexts");
}
