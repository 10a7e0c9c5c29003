/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* With the leaks tracer: nothing lives on after a pipeline, however it ended. */
#include <gst/check/gstcheck.h>

#include "live_objects.h"
#include "time_nets.h"

static const gchar *sections[] = {
    "vidgenchunk tile-width=64 overlap-x=8 ! vidgenstitch",
    "vidgenchunk tile-width=64 overlap-x=8 ! queue ! vidgenstitch blend=linear",
    "vidgenchunk tile-width=64 ! videobalance hue=0.3 ! vidgenstitch",
    "vidgenchunk tile-width=64 ! identity drop-probability=0.3 ! vidgenstitch",
    "vidgenchunk tile-width=64 ! identity drop-probability=0.3 ! vidgenstitch missing-tile=previous",
    "vidgenchunk tile-width=64 ! videoconvert ! video/x-raw,format=RGB ! identity drop-probability=0.3 ! vidgenstitch "
    "missing-tile=source",
    "vidgenchunk tile-width=1 tile-height=1 overlap-x=1 ! vidgenstitch",
    "vidgenstitch",
    "identity eos-after=4 ! vidgen model-file=upscale2x tile-width=128",
    "identity eos-after=4 ! vidgenmodel model-file=upscale2x",
    /* With models that were made here. */
    "identity eos-after=9 ! vidgen model-file=@5 tile-width=128",
    "identity eos-after=9 ! vidgenmodel model-file=@5",
    "identity eos-after=9 ! vidgen model-file=@8 hop=5 tile-width=128",
    "identity eos-after=9 ! vidgen model-file=@2 tile-width=128",
    "identity eos-after=9 ! vidgenmodel model-file=@2",
    "identity eos-after=9 ! vidgen model-file=@s tile-width=128",
    "vidgenchunk tile-width=64 ! identity drop-probability=0.1 ! vidgenmodel model-file=@5 ! vidgenstitch",
};

static gchar *models[4]; /* @5, @8, @2, @s */

/* The section with models for their names. */
static gchar *
with_models (const gchar *section)
{
  const gchar *at = strchr (section, '@');
  gint i = at ? strchr ("582s", at[1]) - "582s" : 0;

  return at ? g_strdup_printf ("%.*s%s%s", (int) (at - section), section, models[i], at + 2) : g_strdup (section);
}

static void
run (const gchar *section, guint msecs)
{
  gchar *named = with_models (section);
  gchar *line = g_strdup_printf (
      "videotestsrc num-buffers=30 ! video/x-raw,format=I420,width=201,height=120 ! %s ! fakesink", named);
  GstElement *pipeline = gst_parse_launch (line, NULL);
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, msecs * GST_MSECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message || msecs < 1000, "%s did not end", section);
  if (message)
    gst_message_unref (message);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
  gst_object_unref (pipeline);
  g_free (line);
  g_free (named);
}

GST_START_TEST (test_leaks)
{
  gchar *before, *after;
  guint n;

  models[0] = time_window_model (5, 1, 2);
  models[1] = time_window_model (8, 8, 0);
  models[2] = time_window_model (2, 1, -1);
  models[3] = time_state_model ();

  /* What elements make once and keep is there before counting. */
  for (guint i = 0; i < G_N_ELEMENTS (sections); i++)
    run (sections[i], 10000);
  n = live_objects (&before);
  for (guint i = 0; i < G_N_ELEMENTS (sections); i++)
    for (guint k = 0; k < 3; k++)
      run (sections[i], k ? 3 * k : 10000);
  if (live_objects (&after) != n)
    fail ("%u objects lived before:\n%s\nnow:\n%s", n, before, after);
  fail_unless (!strstr (after, "GstBuffer") && !strstr (after, "Vidgen"), "%s", after);
  g_free (before);
  g_free (after);
  for (guint i = 0; i < G_N_ELEMENTS (models); i++)
    time_remove (models[i]);
}

GST_END_TEST;

static Suite *
leaks_suite (void)
{
  Suite *s = suite_create ("leaks");
  TCase *tc = tcase_create ("general");

  tcase_set_timeout (tc, 100);
  suite_add_tcase (s, tc);
  tcase_add_test (tc, test_leaks);
  return s;
}

int
main (int argc, char **argv)
{
  g_setenv ("GST_TRACERS", "leaks", TRUE);
  gst_check_init (&argc, &argv);
  return gst_check_run_suite (leaks_suite (), "leaks", __FILE__);
}
