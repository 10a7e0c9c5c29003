/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Norm modes through the elements, on a net of three norms that lies in a folder of its own. */
#include <glib/gstdio.h>
#include <gst/check/gstcheck.h>

#include "pipeline.h"
#include "nets.h"

static gchar *folder, *net;

static void
make_net (void)
{
  struct vgk_error err = {{0}};
  struct vg_model *model;
  struct nets n;

  folder = g_dir_make_tmp ("vidgen-norms-XXXXXX", NULL);
  net = g_build_filename (folder, "net.onnx", NULL);
  nets_begin (&n, 3);
  gint a = nets_conv (&n, 0, (struct nets_conv) {.out = 8, .kernel = 3});
  a = nets_unary (&n, nets_norm (&n, a, 0), "Relu");
  a = nets_binary (&n, "Add", a, nets_norm (&n, nets_conv (&n, a, (struct nets_conv) {.out = 8, .kernel = 3}), 0));
  a = nets_norm (&n, nets_conv (&n, a, (struct nets_conv) {.out = 3, .kernel = 3}), 0);
  model = nets_save (&n, nets_unary (&n, a, "Sigmoid"), net, &err);
  fail_unless (model, "%s", err.text);
  vg_model_unref (&model);
}

static void
remove_net (void)
{
  gchar *norms = g_build_filename (folder, "net.norms", NULL), *picture = g_build_filename (folder, "picture.png", NULL);

  g_unlink (norms);
  g_unlink (picture);
  g_unlink (net);
  g_rmdir (folder);
  g_free (norms);
  g_free (picture);
  g_free (net);
  g_free (folder);
}

static GstStructure *
stats_of (Play *play)
{
  GstElement *vidgen = gst_bin_get_by_name (GST_BIN (play->pipeline), "v");
  GstStructure *stats;

  g_object_get (vidgen, "stats", &stats, NULL);
  gst_object_unref (vidgen);
  return stats;
}

static void
expect_plan (Play *play, const gchar *text)
{
  GstElement *vidgen = gst_bin_get_by_name (GST_BIN (play->pipeline), "v");
  gchar *plan;

  g_object_get (vidgen, "plan", &plan, NULL);
  fail_unless (strstr (plan, text), "no %s in %s", text, plan);
  g_free (plan);
  gst_object_unref (vidgen);
}

static Play *
run (gint frames, const gchar *source, const gchar *properties)
{
  return play_run ("videotestsrc num-buffers=%d pattern=ball %s ! video/x-raw,format=RGB,width=96,height=72,framerate=25/1 ! "
                   "vidgen name=v model-file=%s %s ! fakesink name=out signal-handoffs=true sync=false",
      frames, source, net, properties);
}

/* Exact for what can wait; previous for what cannot. */
GST_START_TEST (test_auto)
{
  Play *play = run (3, "", "");

  play_ok (play, 3);
  expect_plan (play, "\"mode\": \"exact\"");
  play_free (play);
  play = run (3, "is-live=true", "");
  play_ok (play, 3);
  expect_plan (play, "\"mode\": \"previous\"");
  play_free (play);
}
GST_END_TEST;

/* Tiles of frozen norms are the whole frame, also while they are measured up to rounding; no warning. */
GST_START_TEST (test_frozen_tiles)
{
  Play *whole = run (12, "", "norm-mode=frozen exact-products=true norm-error-interval=0");
  Play *tiles = run (12, "", "norm-mode=frozen exact-products=true tile-width=40 tile-height=40 norm-error-interval=0");
  GstStructure *stats = stats_of (tiles);
  gboolean frozen;

  play_ok (whole, 12);
  play_ok (tiles, 12);
  fail_if (tiles->warning, "%s", tiles->warning);
  fail_unless (gst_structure_get_boolean (stats, "norm-frozen", &frozen) && frozen);
  for (guint i = 0; i < 12; i++) {
    gint differ = play_differ (play_frame (whole, i), play_frame (tiles, i));

    fail_unless (i < 8 ? differ >= 0 && differ < 200 : differ == 0, "frame %u: %d bytes differ", i, differ);
    fail_unless (play_mean_difference (play_frame (whole, i), play_frame (tiles, i)) < 0.01);
  }
  gst_structure_free (stats);
  play_free (whole);
  play_free (tiles);
}
GST_END_TEST;

/* What `stats` tells of the error is what two pipelines differ by. */
GST_START_TEST (test_errors)
{
  static const gchar *const modes[] = {"previous", "thumbnail", "frozen", "tile tile-width=48"};
  Play *exact = run (12, "", "norm-mode=exact");

  play_ok (exact, 12);
  for (guint m = 0; m < G_N_ELEMENTS (modes); m++) {
    gchar *properties = g_strdup_printf ("norm-error-interval=1 norm-mode=%s", modes[m]);
    Play *play = run (12, "", properties);
    GstStructure *stats = stats_of (play);
    guint begin = m == 2 ? 8 : 0;
    gdouble mean, sum = 0;
    gint max, worst = 0;
    guint64 frames, time;

    play_ok (play, 12);
    fail_unless (gst_structure_get (stats, "norm-error-mean", G_TYPE_DOUBLE, &mean, "norm-error-max", G_TYPE_INT, &max,
        "norm-error-frames", G_TYPE_UINT64, &frames, "norm-error-time", G_TYPE_UINT64, &time, NULL));
    for (guint i = begin; i < 12; i++) {
      const GByteArray *a = play_frame (exact, i), *b = play_frame (play, i);

      sum += play_mean_difference (a, b);
      for (guint k = 0; k < a->len; k++)
        worst = MAX (worst, ABS (a->data[k] - b->data[k]));
    }
    fail_unless_equals_int (frames, 12 - begin);
    fail_unless (fabs (mean - sum / (12 - begin)) < 1e-9 && max == worst, "%s: %g, %d; expected %g, %d", modes[m], mean,
        max, sum / (12 - begin), worst);
    fail_unless (time > 0 && (m == 1 || worst > 0), "%s", modes[m]);
    gst_structure_free (stats);
    play_free (play);
    g_free (properties);
  }
  play_free (exact);
}
GST_END_TEST;

/* Those frames are compared that are to be, and no others with what was made for them. */
GST_START_TEST (test_error_interval)
{
  Play *play = run (12, "", "norm-error-interval=4 norm-mode=tile tile-width=48");
  GstStructure *stats = stats_of (play);
  guint64 frames;

  play_ok (play, 12);
  fail_unless (gst_structure_get_uint64 (stats, "norm-error-frames", &frames));
  fail_unless_equals_uint64 (frames, 3);
  gst_structure_free (stats);
  play_free (play);
}
GST_END_TEST;

/* `vidgen freeze` on a picture: that picture then comes out as with exact norms, and live streams are frozen. */
GST_START_TEST (test_stored)
{
  gchar *picture = g_build_filename (folder, "picture.png", NULL), *norms = g_build_filename (folder, "net.norms", NULL);
  gchar *command[] = {(gchar *) g_getenv ("VIDGEN"), "freeze", net, picture, NULL};
  gchar *said = NULL;
  gint status = -1;
  Play *play = play_run ("videotestsrc num-buffers=1 pattern=ball ! video/x-raw,format=RGB,width=96,height=72 ! pngenc ! "
                         "filesink location=%s", picture), *exact;

  fail_unless (play->eos);
  play_free (play);
  fail_unless (g_spawn_sync (NULL, command, NULL, 0, NULL, NULL, NULL, &said, &status, NULL));
  fail_unless (status == 0 && g_file_test (norms, G_FILE_TEST_EXISTS), "%s", said);
  exact = run (1, "", "norm-mode=exact");
  play = run (1, "", "norm-mode=frozen");
  play_ok (exact, 1);
  play_ok (play, 1);
  expect_plan (play, "\"mode\": \"frozen\", \"count\": 3, \"stored\": true");
  fail_unless (play_mean_difference (play_frame (exact, 0), play_frame (play, 0)) < 0.05);
  play_free (exact);
  play_free (play);
  play = run (2, "is-live=true", "");
  play_ok (play, 2);
  expect_plan (play, "\"mode\": \"frozen\"");
  play_free (play);

  fail_unless (g_file_set_contents (norms, "[norms]\nmodel=0\n", -1, NULL));
  play = run (2, "", "norm-mode=frozen");
  fail_unless (play->errors == 1 && strstr (play->error->message, "vidgen freeze"), "%s",
      play->error ? play->error->message : "no error");
  play_free (play);
  play = run (2, "", "norm-mode=exact");
  play_ok (play, 2);
  play_free (play);
  g_unlink (norms);
  g_free (said);
  g_free (picture);
  g_free (norms);
}
GST_END_TEST;

static Suite *
norms_suite (void)
{
  Suite *s = suite_create ("norms");
  TCase *tc = tcase_create ("general");

  suite_add_tcase (s, tc);
  tcase_set_timeout (tc, 120);
  tcase_add_unchecked_fixture (tc, make_net, remove_net);
  tcase_add_test (tc, test_auto);
  tcase_add_test (tc, test_frozen_tiles);
  tcase_add_test (tc, test_errors);
  tcase_add_test (tc, test_error_interval);
  tcase_add_test (tc, test_stored);
  return s;
}

GST_CHECK_MAIN (norms);
