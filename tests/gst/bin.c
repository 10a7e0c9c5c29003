/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The bin vidgen, with the models that ship: what a user meets. */
#include "../support/sanitized.h"
#include "pipeline.h"

/* Full of detail, and the same each time (the default, smpte, has snow). */
#define PATTERN "pattern=chroma-zone-plate kx2=20 ky2=20"
#define ODD "videotestsrc num-buffers=1 " PATTERN " ! video/x-raw,format=%s,width=333,height=251"

static gboolean
same_default (GParamSpec *a, GParamSpec *b)
{
  return g_param_values_cmp (a, g_param_spec_get_default_value (a), g_param_spec_get_default_value (b)) == 0;
}

/* The bin has each of its children's own properties, the same in all that can be asked of it, and no other. */
GST_START_TEST (test_properties)
{
  static const gchar *const names[] = {"chunk", "model", "stitch"};
  GstElement *bin = gst_element_factory_make ("vidgen", NULL);
  GParamSpec **list;
  guint n, found = 0, own = 0;

  for (guint c = 0; c < G_N_ELEMENTS (names); c++) {
    GstElement *child = gst_bin_get_by_name (GST_BIN (bin), names[c]);

    list = g_object_class_list_properties (G_OBJECT_GET_CLASS (child), &n);
    for (guint i = 0; i < n; i++) {
      GParamSpec *p;

      if (list[i]->owner_type != G_OBJECT_TYPE (child))
        continue;
      p = g_object_class_find_property (G_OBJECT_GET_CLASS (bin), list[i]->name);
      fail_unless (p != NULL, "%s", list[i]->name);
      fail_unless (G_PARAM_SPEC_TYPE (p) == G_PARAM_SPEC_TYPE (list[i]));
      fail_unless (p->value_type == list[i]->value_type && p->flags == list[i]->flags);
      fail_unless_equals_string (g_param_spec_get_blurb (p), g_param_spec_get_blurb (list[i]));
      fail_unless (same_default (p, list[i]), "%s", p->name);
      found++;
    }
    g_free (list);
    gst_object_unref (child);
  }
  list = g_object_class_list_properties (G_OBJECT_GET_CLASS (bin), &n);
  for (guint i = 0; i < n; i++)
    own += list[i]->owner_type == G_OBJECT_TYPE (bin);
  g_free (list);
  fail_unless_equals_int (own, found);
  gst_object_unref (bin);
}
GST_END_TEST;

static void
count_notify (GObject *object, GParamSpec *pspec, guint *n)
{
  (*n)++;
}

/* Values go to the child and come from it, whoever sets them; changes are told once. */
GST_START_TEST (test_values)
{
  GstElement *bin = gst_element_factory_make ("vidgen", NULL);
  GstElement *chunk = gst_bin_get_by_name (GST_BIN (bin), "chunk");
  GstElement *model = gst_bin_get_by_name (GST_BIN (bin), "model");
  GstStructure *s;
  gint width;
  gchar *file;
  guint notified = 0;

  g_signal_connect (bin, "notify::tile-width", G_CALLBACK (count_notify), &notified);
  g_object_set (bin, "tile-width", 128, "model-file", "upscale2x", NULL);
  fail_unless_equals_int (notified, 1);
  g_object_get (chunk, "tile-width", &width, NULL);
  g_object_get (model, "model-file", &file, NULL);
  fail_unless_equals_int (width, 128);
  fail_unless_equals_string (file, "upscale2x");
  g_free (file);

  g_object_set (chunk, "tile-width", 64, NULL);
  fail_unless_equals_int (notified, 2);
  g_object_get (bin, "tile-width", &width, NULL);
  fail_unless_equals_int (width, 64);

  gst_util_set_object_arg (G_OBJECT (bin), "parameters", "p,style_weights=<0.0,0.0,1.0>");
  g_object_get (model, "parameters", &s, NULL);
  fail_unless (s && gst_structure_has_field (s, "style_weights"));
  gst_structure_free (s);
  gst_object_unref (chunk);
  gst_object_unref (model);
  gst_object_unref (bin);
}
GST_END_TEST;

/* Of a frame, byte for byte, what the model makes of it without tiles; with queues between the elements, too. */
static void
expect_tiled_is_untiled (const gchar *source, const gchar *model, const gint (*tiles)[2], guint n, gboolean direct)
{
  Play *whole = play_run ("%s ! vidgenmodel model-file=%s ! " SINK, source, model);

  play_ok (whole, 1);
  for (guint t = 0; t <= n; t++) {
    Play *play;

    if (t < n)
      play = play_run (
          "%s ! vidgen model-file=%s tile-width=%d tile-height=%d ! " SINK, source, model, tiles[t][0], tiles[t][1]);
    else
      play = play_run ("%s ! vidgenchunk tile-width=%d tile-height=%d ! queue ! vidgenmodel model-file=%s ! queue ! "
                       "vidgenstitch ! " SINK,
          source, tiles[0][0], tiles[0][1], model);
    play_ok (play, 1);
    fail_unless (play->plan_tiles > 1 && whole->plan_tiles == 1);
    fail_unless_equals_int (play->plan_direct, direct);
    fail_unless_equals_int (play_differ (play_frame (whole, 0), play_frame (play, 0)), 0);
    play_free (play);
  }
  play_free (whole);
}

/* Tiles of all sizes over an odd frame, also those too small for the fast way, with both models, in RGB and in YUV
 * (whose tiles keep to chroma's steps). */
GST_START_TEST (test_small_tiles_are_exact)
{
  static const struct
  {
    const gchar *model;
    gint tiles[2][2];
  } cases[] = {
      {"style3 exact-products=true", {{176, 160}, {144, 240}}},
      {"upscale2x exact-products=true", {{61, 47}, {200, 160}}},
  };
  static const gchar *const formats[] = {"RGB", "I420", "NV12"};

  for (guint i = SANITIZED ? 1 : 0; i < G_N_ELEMENTS (cases); i++)
    for (guint f = SANITIZED ? 1 : 0; f < (SANITIZED ? 2 : G_N_ELEMENTS (formats)); f++) {
      gchar *source = g_strdup_printf (ODD, formats[f]);

      expect_tiled_is_untiled (source, cases[i].model, cases[i].tiles, G_N_ELEMENTS (cases[i].tiles), FALSE);
      g_free (source);
    }
}
GST_END_TEST;

/* Tiles that are large enough for the fast way are exact without a word. */
GST_START_TEST (test_large_tiles_are_exact)
{
  static const gchar source[] = "videotestsrc num-buffers=1 " PATTERN " ! video/x-raw,format=I420,width=%d,height=%d";
  static const struct
  {
    const gchar *model;
    gint width, height, tiles[2][2];
  } cases[] = {
      {"style3", 1281, 721, {{640, 640}, {704, 0}}},
      {"upscale2x", 667, 501, {{96, 300}, {200, 160}}},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *line = g_strdup_printf (source, cases[i].width, cases[i].height);

    expect_tiled_is_untiled (line, cases[i].model, cases[i].tiles, G_N_ELEMENTS (cases[i].tiles), FALSE);
    g_free (line);
  }
}
GST_END_TEST;

/* Tiles that are too small for it go the direct way by themselves, and say so: from the whole frame, made the fast way,
 * they differ by rounding: one step, of at most one byte in 5000. */
GST_START_TEST (test_small_tiles_by_default)
{
  gchar *source = g_strdup_printf (ODD, "RGB");
  Play *whole = play_run ("%s ! vidgenmodel ! " SINK, source);
  Play *play = play_run ("%s ! vidgen tile-width=176 tile-height=160 ! " SINK, source);
  gint most = 0, n;

  play_ok (whole, 1);
  play_ok (play, 1);
  fail_unless (play->plan_direct && !whole->plan_direct);
  n = play_differ (play_frame (whole, 0), play_frame (play, 0));
  fail_unless (n > 0 && n <= (gint) play_frame (whole, 0)->len / 5000, "%d bytes differ", n);
  for (guint i = 0; i < play_frame (whole, 0)->len; i++)
    most = MAX (most, ABS (play_frame (whole, 0)->data[i] - play_frame (play, 0)->data[i]));
  fail_unless_equals_int (most, 1);
  play_free (play);
  play_free (whole);
  g_free (source);
}
GST_END_TEST;

/* Frames of a high definition size whose caps do not name colours are BT.709, though tiles' sizes are not. */
GST_START_TEST (test_tiles_have_the_frames_colours)
{
  static const gchar source[] =
      "videotestsrc num-buffers=1 pattern=red ! video/x-raw,format=I420,width=1280,height=720,colorimetry=bt709 ! "
      "capssetter replace=true caps=video/x-raw,format=I420,width=1280,height=720,framerate=30/1 ! ";
  Play *named = play_run (
      "videotestsrc num-buffers=1 pattern=red ! video/x-raw,format=I420,width=1280,height=720,colorimetry=bt709 ! "
      "vidgen tile-width=500 ! " SINK);
  Play *unnamed = play_run ("%svidgen tile-width=500 ! " SINK, source);

  play_ok (named, 1);
  play_ok (unnamed, 1);
  fail_unless_equals_int (play_differ (play_frame (named, 0), play_frame (unnamed, 0)), 0);
  play_free (named);
  play_free (unnamed);
}
GST_END_TEST;

/* A size that is asked for behind the bin is half that before it. */
GST_START_TEST (test_size_from_downstream)
{
  Play *play = play_run ("videotestsrc num-buffers=1 ! vidgen model-file=upscale2x tile-width=100 ! "
                         "video/x-raw,width=424,height=246 ! " SINK);

  play_ok (play, 1);
  play_free (play);
}
GST_END_TEST;

static GstPadProbeReturn
resize (GstPad *pad, GstPadProbeInfo *info, gpointer filter)
{
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  static const gchar *const sizes[] = {"101,height=75", "64,height=48", "160,height=120"};
  guint frame = GST_BUFFER_OFFSET (buffer);
  gchar *caps = g_strdup_printf ("video/x-raw,format=I420,width=%s", sizes[frame % 3]);

  gst_util_set_object_arg (filter, "caps", caps);
  g_free (caps);
  return GST_PAD_PROBE_OK;
}

/* The size changes with nearly every frame. */
GST_START_TEST (test_caps_change)
{
  Play *play = play_new ("videotestsrc num-buffers=8 ! videoscale name=s ! capsfilter name=f "
                         "caps=video/x-raw,format=I420,width=160,height=120 ! vidgen model-file=upscale2x "
                         "tile-width=50 tile-height=40 ! " SINK);
  GstElement *scale = gst_bin_get_by_name (GST_BIN (play->pipeline), "s");
  GstElement *filter = gst_bin_get_by_name (GST_BIN (play->pipeline), "f");
  GstPad *pad = gst_element_get_static_pad (scale, "sink");
  gint width, height, last = 0, changes = 0;

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, resize, filter, NULL);
  gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
  play_wait (play, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  play_stop (play);
  play_ok (play, 8);
  for (guint i = 0; i < 8; i++) {
    play_size (play, i, &width, &height);
    fail_unless (width == 202 || width == 128 || width == 320);
    fail_unless_equals_int (play_frame (play, i)->len, width * height + 2 * (width / 2) * (height / 2));
    changes += last && width != last;
    last = width;
  }
  fail_unless (changes >= 5, "%d", changes);
  fail_unless (play->plans >= 3);
  gst_object_unref (pad);
  gst_object_unref (scale);
  gst_object_unref (filter);
  play_free (play);
}
GST_END_TEST;

/* Up and down through the states, with the same frames each time. */
GST_START_TEST (test_state_cycles)
{
  Play *play = play_new ("videotestsrc " PATTERN " num-buffers=2 ! video/x-raw,format=I420,width=120,height=90 ! "
                         "vidgen name=v model-file=upscale2x tile-width=64 ! " SINK);

  for (guint i = 0; i < 5; i++) {
    gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
    fail_unless_equals_int (play_wait (play, GST_MESSAGE_EOS | GST_MESSAGE_ERROR), GST_MESSAGE_EOS);
    play_stop (play);
    fail_unless_equals_int (play->frames->len, 2 * (i + 1));
    fail_unless_equals_int (play_differ (play_frame (play, 0), play_frame (play, 2 * i)), 0);
    /* Away before anything has come through. */
    gst_element_set_state (play->pipeline, i % 2 ? GST_STATE_PAUSED : GST_STATE_READY);
    gst_element_set_state (play->pipeline, GST_STATE_NULL);
    g_ptr_array_set_size (play->frames, 2 * (i + 1));
  }
  play_free (play);
}
GST_END_TEST;

static void
wait_frames (Play *play, guint n)
{
  guint target = play_count (play) + n;

  for (guint i = 0; i < PLAY_SECONDS * 1000 && play_count (play) < target; i++)
    g_usleep (1000);
  fail_unless (play_count (play) >= target);
}

/* The end of the stream comes before the first frame, and between two tiles' frames. */
GST_START_TEST (test_early_end)
{
  Play *play = play_run ("videotestsrc num-buffers=1 ! video/x-raw,format=I420,width=120,height=90 ! identity "
                         "eos-after=0 ! vidgen tile-width=112 tile-height=0 ! " SINK);

  fail_unless_equals_int (play->errors, 0);
  play_free (play);
  play = play_new ("videotestsrc ! video/x-raw,format=I420,width=120,height=90 ! vidgen model-file=upscale2x ! " SINK);
  gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
  wait_frames (play, 2);
  gst_element_send_event (play->pipeline, gst_event_new_eos ());
  fail_unless_equals_int (play_wait (play, GST_MESSAGE_EOS | GST_MESSAGE_ERROR), GST_MESSAGE_EOS);
  play_stop (play);
  fail_unless_equals_int (play->errors, 0);
  play_free (play);
}
GST_END_TEST;

/* Seeks while it plays, and one while it is paused: the frame there is the frame of an unbroken run. */
GST_START_TEST (test_seek)
{
  static const gchar line[] =
      "videotestsrc num-buffers=40 pattern=ball ! video/x-raw,format=RGB,width=120,height=90,framerate=10/1 ! vidgen "
      "model-file=upscale2x tile-width=64 ! " SINK;
  Play *whole = play_run ("%s", line), *play = play_new (line);

  gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < 5; i++) {
    wait_frames (play, 2);
    fail_unless (gst_element_seek_simple (
        play->pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE, i * 100 * GST_MSECOND));
  }
  gst_element_set_state (play->pipeline, GST_STATE_PAUSED);
  gst_element_get_state (play->pipeline, NULL, NULL, GST_CLOCK_TIME_NONE);
  g_mutex_lock (&play->lock);
  g_ptr_array_set_size (play->frames, 0);
  g_mutex_unlock (&play->lock);
  fail_unless (gst_element_seek_simple (
      play->pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE, 3 * GST_SECOND));
  gst_element_get_state (play->pipeline, NULL, NULL, GST_CLOCK_TIME_NONE);
  gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
  wait_frames (play, 1);
  g_mutex_lock (&play->lock);
  fail_unless_equals_int (play_differ (play_frame (play, 0), play_frame (whole, 30)), 0);
  g_mutex_unlock (&play->lock);
  play_stop (play);
  fail_unless_equals_int (play->errors, 0);
  play_free (play);
  play_free (whole);
}
GST_END_TEST;

/* Models change while tiles are under way, through queues: each frame is wholly of one model, none is lost. */
GST_START_TEST (test_swap_model)
{
  static const gchar source[] = "videotestsrc " PATTERN
                                " num-buffers=%d ! video/x-raw,format=RGB,width=200,height=150 ! ";
  gchar *endless = g_strdup_printf (source, -1), *line;
  Play *style, *twice, *play;
  GstElement *model;
  guint of_style = 0, of_twice = 0, changes = 0;
  gint last = 0;

  line = g_strdup_printf (source, 1);
  style = play_run ("%svidgen tile-width=144 tile-height=144 ! " SINK, line);
  twice = play_run ("%svidgen tile-width=144 tile-height=144 model-file=upscale2x ! " SINK, line);
  g_free (line);
  line = g_strconcat (endless,
      "vidgenchunk tile-width=144 tile-height=144 ! queue max-size-buffers=3 ! vidgenmodel name=m ! queue "
      "max-size-buffers=3 ! vidgenstitch ! " SINK,
      NULL);
  play = play_new (line);
  model = gst_bin_get_by_name (GST_BIN (play->pipeline), "m");
  gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < 6; i++) {
    wait_frames (play, 5);
    g_object_set (model, "model-file", i % 2 ? "style3" : "upscale2x", NULL);
    if (i == 3)
      g_object_set (model, "model-file", "no-such-model", NULL);
  }
  wait_frames (play, 3);
  play_stop (play);
  fail_unless_equals_int (play->errors, 0);
  fail_unless_equals_int (play->warnings, 1);
  for (guint i = 0; i < play->frames->len; i++) {
    GByteArray *frame = play_frame (play, i);
    gboolean large = frame->len == play_frame (twice, 0)->len;

    fail_unless_equals_int (play_differ (frame, play_frame (large ? twice : style, 0)), 0);
    of_style += !large;
    of_twice += large;
    changes += last && last != (gint) frame->len;
    last = frame->len;
  }
  fail_unless (of_style > 1 && of_twice > 1 && changes >= 4, "%u %u %u", of_style, of_twice, changes);
  gst_object_unref (model);
  g_free (endless);
  g_free (line);
  play_free (play);
  play_free (style);
  play_free (twice);
}
GST_END_TEST;

/* A model that does not fit in where the other runs leaves that one running, with a warning. */
GST_START_TEST (test_swap_to_one_too_large)
{
  Play *small = play_run ("videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=320,height=240 ! vidgen "
                          "model-file=upscale2x tile-width=64 tile-height=64 ! " SINK);
  gchar *line = g_strdup_printf (
      "videotestsrc ! video/x-raw,format=RGB,width=320,height=240 ! vidgen name=v model-file=upscale2x tile-width=64 "
      "tile-height=64 max-device-memory=%" G_GUINT64_FORMAT " ! " SINK,
      small->plan_bytes);
  Play *play = play_new (line);
  GstElement *vidgen = gst_bin_get_by_name (GST_BIN (play->pipeline), "v");
  gchar *file;
  gint width, height;

  gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
  wait_frames (play, 1);
  g_object_set (vidgen, "model-file", "style3", NULL); /* its halo alone is more than these tiles */
  wait_frames (play, 4);
  g_object_get (vidgen, "model-file", &file, NULL);
  play_stop (play);
  fail_unless_equals_int (play->errors, 0);
  fail_unless_equals_int (play->warnings, 1);
  fail_unless (strstr (play->warning, "stays") != NULL, "%s", play->warning);
  fail_unless (g_str_has_suffix (file, "upscale2x.onnx"), "%s", file);
  play_size (play, play->frames->len - 1, &width, &height);
  fail_unless_equals_int (width, 640);
  g_free (file);
  g_free (line);
  gst_object_unref (vidgen);
  play_free (small);
  play_free (play);
}
GST_END_TEST;

/* Styles are mixed while it plays, and every frame is wholly of one mix. */
GST_START_TEST (test_parameters_while_playing)
{
  static const gchar *const mixes[] = {
      "p,style_weights=<1.0,0.0,0.0>", "p,style_weights=(string)\"1:1\"", "p,style_weights=(string)\"0:0.5,2:0.5\""};
  static const gchar source[] = "videotestsrc " PATTERN " num-buffers=%d ! video/x-raw,format=RGB,width=200,height=150 "
                                "! vidgen name=v tile-width=144 tile-height=144 ! " SINK;
  GByteArray *expected[3];
  gboolean seen[3] = {FALSE};
  gchar *line = g_strdup_printf (source, 1);
  GstElement *vidgen;
  Play *play;

  for (guint i = 0; i < 3; i++) {
    play = play_new (line);
    vidgen = gst_bin_get_by_name (GST_BIN (play->pipeline), "v");
    gst_util_set_object_arg (G_OBJECT (vidgen), "parameters", mixes[i]);
    gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
    play_wait (play, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    play_stop (play);
    play_ok (play, 1);
    expected[i] = g_byte_array_ref (play_frame (play, 0));
    for (guint k = 0; k < i; k++)
      fail_unless (play_differ (expected[i], expected[k]) > 0);
    gst_object_unref (vidgen);
    play_free (play);
  }
  g_free (line);

  line = g_strdup_printf (source, -1);
  play = play_new (line);
  vidgen = gst_bin_get_by_name (GST_BIN (play->pipeline), "v");
  gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < 6; i++) {
    gst_util_set_object_arg (G_OBJECT (vidgen), "parameters", mixes[i % 3]);
    wait_frames (play, 2);
  }
  play_stop (play);
  fail_unless_equals_int (play->errors + play->warnings, 0);
  for (guint i = 0; i < play->frames->len; i++) {
    guint k;

    for (k = 0; k < 3 && play_differ (play_frame (play, i), expected[k]) != 0; k++)
      ;
    fail_unless (k < 3, "frame %u is of no mix", i);
    seen[k] = TRUE;
  }
  fail_unless (seen[0] && seen[1] && seen[2]);
  for (guint i = 0; i < 3; i++)
    g_byte_array_unref (expected[i]);
  g_free (line);
  gst_object_unref (vidgen);
  play_free (play);
}
GST_END_TEST;

/* Nothing of the bin is left when it is gone. */
GST_START_TEST (test_nothing_is_left)
{
  GstElement *pipeline = gst_parse_launch (
      "videotestsrc num-buffers=2 ! video/x-raw,width=120,height=90 ! vidgen name=v ! fakesink", NULL);
  static const gchar *const names[] = {"v", "chunk", "model", "stitch"};
  gpointer objects[G_N_ELEMENTS (names)];
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, PLAY_SECONDS * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
  gst_message_unref (message);
  gst_bus_set_flushing (bus, TRUE);
  gst_object_unref (bus);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    objects[i] = gst_bin_get_by_name (GST_BIN (pipeline), names[i]);
    fail_unless (objects[i] != NULL);
    g_object_add_weak_pointer (objects[i], &objects[i]);
    gst_object_unref (objects[i]);
  }
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    for (guint k = 0; objects[i]; k++) {
      fail_unless (k < 2000, "%s is still there", names[i]);
      g_usleep (1000);
    }
}
GST_END_TEST;

static Suite *
vidgen_suite (void)
{
  Suite *suite = suite_create ("vidgen");
  TCase *cases = tcase_create ("general");

  tcase_set_timeout (cases, 300);
  suite_add_tcase (suite, cases);
  tcase_add_test (cases, test_properties);
  tcase_add_test (cases, test_values);
  tcase_add_test (cases, test_small_tiles_are_exact);
  if (!SANITIZED) {
    tcase_add_test (cases, test_large_tiles_are_exact);
    tcase_add_test (cases, test_small_tiles_by_default);
  }
  tcase_add_test (cases, test_tiles_have_the_frames_colours);
  tcase_add_test (cases, test_size_from_downstream);
  tcase_add_test (cases, test_caps_change);
  tcase_add_test (cases, test_state_cycles);
  tcase_add_test (cases, test_early_end);
  tcase_add_test (cases, test_seek);
  tcase_add_test (cases, test_swap_model);
  tcase_add_test (cases, test_swap_to_one_too_large);
  tcase_add_test (cases, test_parameters_while_playing);
  tcase_add_test (cases, test_nothing_is_left);
  return suite;
}

GST_CHECK_MAIN (vidgen);
