/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What goes wrong is told once, in words that help, and ends the pipeline. */
#include <glib/gstdio.h>

#include "pipeline.h"

#define SOURCE "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=200,height=120"

static gchar *directory;

static gchar *
write_file (const gchar *name, const gchar *bytes, gssize n)
{
  gchar *path = g_build_filename (directory, name, NULL);

  fail_unless (g_file_set_contents (path, bytes, n, NULL));
  return path;
}

/* The model of this name as it ships. */
static void
read_model (const gchar *name, gchar **bytes, gsize *n)
{
  gchar *path = g_build_filename (g_getenv ("VIDGEN_MODEL_PATH"), name, NULL);

  fail_unless (g_file_get_contents (path, bytes, n, NULL));
  g_free (path);
}

/* Runs a line that must fail with just one error, of this domain and code and with all these words. */
static void
expect_error (const gchar *line, GQuark domain, gint code, const gchar *const *words)
{
  Play *play = play_run ("%s", line);

  fail_unless_equals_int (play->errors, 1);
  fail_unless (g_error_matches (play->error, domain, code), "%s: %s (%s, %d)", line, play->error->message,
      g_quark_to_string (play->error->domain), play->error->code);
  for (; *words; words++)
    fail_unless (strstr (play->error->message, *words) != NULL, "no \"%s\" in: %s", *words, play->error->message);
  fail_if (play->eos);
  fail_unless_equals_int (play->frames->len, 0);
  play_free (play);
}

#define WORDS(...) ((const gchar *const[]){__VA_ARGS__, NULL})

static void
expect_bad_file (const gchar *path, GQuark domain, gint code, const gchar *const *words)
{
  static const gchar *const elements[] = {"vidgen", "vidgenmodel"};

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    gchar *line = g_strdup_printf (SOURCE " ! %s model-file=\"%s\" ! " SINK, elements[i], path);

    expect_error (line, domain, code, words);
    g_free (line);
  }
}

/* A name that is nowhere: the error says where it was looked for. */
GST_START_TEST (test_no_such_name)
{
  expect_bad_file ("no-such-model", GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
      WORDS ("no-such-model", g_getenv ("VIDGEN_MODEL_PATH"), "vidgen/models", "VIDGEN_MODEL_PATH"));
}
GST_END_TEST;

GST_START_TEST (test_no_such_path)
{
  gchar *path = g_build_filename (directory, "missing.onnx", NULL);

  expect_bad_file (path, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, WORDS (path, "model-file"));
  expect_bad_file (directory, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, WORDS (directory));
  g_free (path);
}
GST_END_TEST;

/* Not ONNX at all, empty, and cut short. */
GST_START_TEST (test_broken_files)
{
  gchar *text = write_file ("text.onnx", "This is no model.", -1);
  gchar *empty = write_file ("empty.onnx", "", 0);
  gchar *cut, *bytes;
  gsize n;

  expect_bad_file (text, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT, WORDS ("text.onnx"));
  expect_bad_file (empty, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT, WORDS ("empty.onnx"));
  read_model ("style3.onnx", &bytes, &n);
  for (gsize part = 1; part < 8; part++) {
    cut = write_file ("cut.onnx", bytes, n * part / 8);
    expect_bad_file (cut, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT, WORDS ("cut.onnx"));
    g_free (cut);
  }
  g_free (bytes);
  g_free (text);
  g_free (empty);
}
GST_END_TEST;

/* Not for the superuser, who may read everything. */
GST_START_TEST (test_unreadable_file)
{
  gchar *path, *bytes;
  gsize n;

  read_model ("upscale2x.onnx", &bytes, &n);
  path = write_file ("locked.onnx", bytes, n);
  fail_unless (g_chmod (path, 0) == 0);
  if (g_access (path, R_OK) != 0)
    expect_bad_file (path, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ, WORDS ("locked.onnx"));
  g_free (bytes);
  g_free (path);
}
GST_END_TEST;

/* The protobuf of a model with one node: y [f32, dims] = type (x). */
static gchar *
one_node_model (const gchar *name, const gchar *type, const guint8 *dims, guint n_dims)
{
  GByteArray *model = g_byte_array_new (), *graph = g_byte_array_new (), *node = g_byte_array_new ();
  static const guint8 head[] = {0x08, 8, 0x42, 2, 0x10, 13}; /* ir_version 8, opset 13 */
  static const guint8 node_in[] = {0x0a, 1, 'x', 0x12, 1, 'y'};
  guint8 tag[2] = {0x22, (guint8) strlen (type)};
  gchar *path;

  g_byte_array_append (node, node_in, sizeof node_in);
  g_byte_array_append (node, tag, 2);
  g_byte_array_append (node, (const guint8 *) type, strlen (type));
  tag[0] = 0x0a;
  tag[1] = node->len;
  g_byte_array_append (graph, tag, 2);
  g_byte_array_append (graph, node->data, node->len);
  {
    static const guint8 graph_name[] = {0x12, 1, 'g'};

    g_byte_array_append (graph, graph_name, sizeof graph_name);
  }
  for (guint output = 0; output < 2; output++) {
    GByteArray *shape = g_byte_array_new ();

    for (guint i = 0; i < n_dims; i++) {
      const guint8 dim[] = {0x0a, 2, 0x08, dims[i]};

      g_byte_array_append (shape, dim, sizeof dim);
    }
    {
      /* ValueInfo { name, type { tensor { elem_type 1, shape } } } */
      const guint8 info[] = {output ? 0x62 : 0x5a, 3 + 2 + 2 + 2 + 2 + shape->len, 0x0a, 1, output ? 'y' : 'x', 0x12,
          2 + 2 + 2 + shape->len, 0x0a, 2 + 2 + shape->len, 0x08, 1, 0x12, shape->len};

      g_byte_array_append (graph, info, sizeof info);
      g_byte_array_append (graph, shape->data, shape->len);
    }
    g_byte_array_unref (shape);
  }
  g_byte_array_append (model, head, sizeof head);
  tag[0] = 0x3a;
  tag[1] = graph->len;
  g_byte_array_append (model, tag, 2);
  g_byte_array_append (model, graph->data, graph->len);
  path = write_file (name, (const gchar *) model->data, model->len);
  g_byte_array_unref (node);
  g_byte_array_unref (graph);
  g_byte_array_unref (model);
  return path;
}

/* A sound file that takes no picture. */
GST_START_TEST (test_no_image_model)
{
  static const guint8 vector[] = {10};
  gchar *path = one_node_model ("vector.onnx", "Relu", vector, 1);

  expect_bad_file (path, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT, WORDS ("vector.onnx"));
  g_free (path);
}
GST_END_TEST;

/* An operator that nobody knows is named. */
GST_START_TEST (test_unknown_operator)
{
  static const guint8 picture[] = {1, 3, 64, 64};
  gchar *path = one_node_model ("foo.onnx", "FooBar", picture, 4);

  expect_bad_file (path, GST_STREAM_ERROR, GST_STREAM_ERROR_CODEC_NOT_FOUND, WORDS ("FooBar"));
  g_free (path);
}
GST_END_TEST;

/* An overlap below what the model sees, and one that leaves no way forward. */
GST_START_TEST (test_impossible_tiles)
{
  expect_error (SOURCE " ! vidgen tile-width=120 overlap-x=8 ! " SINK, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
      WORDS ("overlap"));
  expect_error (SOURCE " ! vidgen tile-width=120 overlap-x=120 ! " SINK, GST_RESOURCE_ERROR,
      GST_RESOURCE_ERROR_SETTINGS, WORDS ("overlap"));
  expect_error (
      SOURCE " ! vidgen tile-height=8 ! " SINK, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS, WORDS ("tile"));
}
GST_END_TEST;

/* The largest number of bytes that the text tells. */
static guint64
largest_number (const gchar *text)
{
  guint64 most = 0;

  while (*text) {
    if (g_ascii_isdigit (*text)) {
      gchar *end;
      guint64 n = g_ascii_strtoull (text, &end, 10);

      most = MAX (most, n);
      text = end;
    } else {
      text++;
    }
  }
  return most;
}

/* Too small a budget is refused with the least that does: just that does, and a byte less does not. */
GST_START_TEST (test_budget)
{
  static const gchar *const elements[] = {"vidgen", "vidgenmodel"};

  for (guint i = 0; i < G_N_ELEMENTS (elements); i++) {
    Play *play = play_run (SOURCE " ! %s max-device-memory=100000 ! " SINK, elements[i]);
    guint64 least;

    fail_unless_equals_int (play->errors, 1);
    fail_unless (g_error_matches (play->error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT), "%s",
        play->error->message);
    fail_unless_equals_int (play->frames->len, 0);
    least = largest_number (play->error->message);
    fail_unless (least > 100000, "%s", play->error->message);
    play_free (play);

    play = play_run (SOURCE " ! %s max-device-memory=%" G_GUINT64_FORMAT " ! " SINK, elements[i], least);
    play_ok (play, 3);
    fail_unless (play->plan_bytes <= least);
    play_free (play);
    play = play_run (SOURCE " ! %s max-device-memory=%" G_GUINT64_FORMAT " ! " SINK, elements[i], least - 1);
    fail_unless_equals_int (play->errors, 1);
    play_free (play);
  }
}
GST_END_TEST;

/* Products of bf16 where the CPU's kernels have none. */
GST_START_TEST (test_no_bf16)
{
  g_setenv ("VIDGEN_CPU", "generic", TRUE);
  expect_error (SOURCE " ! vidgen device=cpu precision=bf16 ! " SINK, GST_STREAM_ERROR, GST_STREAM_ERROR_CODEC_NOT_FOUND,
      WORDS ("precision=bf16", "AVX512-BF16", "fp32 or auto"));
  g_unsetenv ("VIDGEN_CPU");
}
GST_END_TEST;

/* One error with queues, too, from which caps that were refused come again with each buffer: still one error. */
GST_START_TEST (test_one_error_through_queues)
{
  expect_error (SOURCE " ! queue ! vidgenmodel max-device-memory=100000 ! queue ! " SINK, GST_RESOURCE_ERROR,
      GST_RESOURCE_ERROR_NO_SPACE_LEFT, WORDS ("max-device-memory"));
  expect_error (SOURCE
      " ! queue ! vidgenchunk ! queue ! vidgenmodel max-device-memory=100000 ! queue ! vidgenstitch ! " SINK,
      GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT, WORDS ("max-device-memory"));
}
GST_END_TEST;

/* What changes the tiles' size on their way to the model is told of, not run. */
GST_START_TEST (test_tiles_of_another_size)
{
  expect_error (SOURCE " ! vidgenchunk tile-width=160 ! videoscale ! video/x-raw,width=80,height=60 ! vidgenmodel ! "
                       "vidgenstitch ! " SINK,
      GST_STREAM_ERROR, GST_STREAM_ERROR_WRONG_TYPE, WORDS ("80 x 60", "planned"));
}
GST_END_TEST;

/* After an error the pipeline can be set right and played. */
GST_START_TEST (test_again_after_an_error)
{
  Play *play = play_new (SOURCE " ! vidgen name=v max-device-memory=100000 ! " SINK);
  GstElement *vidgen = gst_bin_get_by_name (GST_BIN (play->pipeline), "v");

  for (guint i = 0; i < 2; i++) {
    g_object_set (vidgen, "max-device-memory", (guint64) 100000, NULL);
    gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
    fail_unless_equals_int (play_wait (play, GST_MESSAGE_EOS | GST_MESSAGE_ERROR), GST_MESSAGE_ERROR);
    play_stop (play);
    fail_unless_equals_int (play->errors, i + 1);
    g_object_set (vidgen, "max-device-memory", (guint64) 0, NULL);
    gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
    fail_unless_equals_int (play_wait (play, GST_MESSAGE_EOS | GST_MESSAGE_ERROR), GST_MESSAGE_EOS);
    play_stop (play);
    fail_unless_equals_int (play->frames->len, 3 * (i + 1));
  }
  gst_object_unref (vidgen);
  play_free (play);
}
GST_END_TEST;

static void
set_up (void)
{
  directory = g_dir_make_tmp ("vidgen-errors-XXXXXX", NULL);
  fail_unless (directory != NULL);
}

static void
tear_down (void)
{
  GDir *dir = g_dir_open (directory, 0, NULL);
  const gchar *name;

  while ((name = g_dir_read_name (dir))) {
    gchar *path = g_build_filename (directory, name, NULL);

    g_unlink (path);
    g_free (path);
  }
  g_dir_close (dir);
  g_rmdir (directory);
  g_free (directory);
}

static Suite *
errors_suite (void)
{
  Suite *suite = suite_create ("errors");
  TCase *cases = tcase_create ("general");

  tcase_set_timeout (cases, 300);
  tcase_add_checked_fixture (cases, set_up, tear_down);
  suite_add_tcase (suite, cases);
  tcase_add_test (cases, test_no_such_name);
  tcase_add_test (cases, test_no_such_path);
  tcase_add_test (cases, test_broken_files);
  tcase_add_test (cases, test_unreadable_file);
  tcase_add_test (cases, test_no_image_model);
  tcase_add_test (cases, test_unknown_operator);
  tcase_add_test (cases, test_impossible_tiles);
  tcase_add_test (cases, test_budget);
  tcase_add_test (cases, test_no_bf16);
  tcase_add_test (cases, test_one_error_through_queues);
  tcase_add_test (cases, test_tiles_of_another_size);
  tcase_add_test (cases, test_again_after_an_error);
  return suite;
}

GST_CHECK_MAIN (errors);
