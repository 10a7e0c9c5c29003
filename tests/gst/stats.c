/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The figures of frames whose times are known. */
#include "../../gst/gstvidgenstats.h"

#include "../support/kit.h"

#define MS G_GINT64_CONSTANT (1000) /* microseconds */

/* Frames of `time`, one behind the other; how often the latency changed. */
static guint
add_frames (GstVidgenStats *stats, gint64 *now, gint64 time, guint n)
{
  guint changed = 0;

  for (guint i = 0; i < n; i++) {
    *now += time;
    changed += gst_vidgen_stats_add_frames (stats, 1, *now - time, *now, time);
  }
  return changed;
}

static void
latency (void)
{
  GstVidgenStats stats = {0};
  gint64 now = 1000000 * MS;

  /* Told at once, rounded up, and not again for what is no news. */
  expect (add_frames (&stats, &now, 12 * MS, 1) == 1);
  expect (stats.latency == 15 * GST_MSECOND);
  expect (add_frames (&stats, &now, 15 * MS, 200) == 0);
  expect (add_frames (&stats, &now, 15 * MS + 1, 200) == 1);
  expect (stats.latency == 20 * GST_MSECOND);
  /* Grows in mid-second. */
  expect (add_frames (&stats, &now, 100 * MS, 1) == 1);
  expect (stats.latency == 100 * GST_MSECOND);
  /* Shrinks when a whole second has not needed it, and not by a quarter or less. */
  expect (add_frames (&stats, &now, 80 * MS, 100) == 0);
  expect (add_frames (&stats, &now, 30 * MS, 100) == 1);
  expect (stats.latency == 30 * GST_MSECOND);
  /* Not because tiles were not run. */
  stats.reused = 4;
  expect (add_frames (&stats, &now, 20 * MS, 60) == 0);
  expect (add_frames (&stats, &now, 20 * MS, 60) == 1);
  expect (stats.latency == 20 * GST_MSECOND);
}

static void
counters (void)
{
  GstVidgenStats stats = {0};
  gint64 now = 5000000 * MS;
  GstStructure *s;
  guint64 frames, dropped, mean, longest;
  gdouble fps;

  stats.dropped = 3;
  add_frames (&stats, &now, 20 * MS, 149);
  add_frames (&stats, &now, 170 * MS, 1);
  s = gst_vidgen_stats_to_structure (&stats);
  expect (gst_structure_get (s, "frames", G_TYPE_UINT64, &frames, "dropped", G_TYPE_UINT64, &dropped, "mean-time",
      G_TYPE_UINT64, &mean, "max-time", G_TYPE_UINT64, &longest, "fps", G_TYPE_DOUBLE, &fps, NULL));
  expect (frames == 150 && dropped == 3);
  expect (mean == 21 * GST_MSECOND && longest == 170 * GST_MSECOND);
  /* Of the last second, which its last frame made longer: 50 frames in 1.15 s. */
  expect_near (fps, 50 / 1.15, 1e-6);
  gst_structure_free (s);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  run (latency);
  run (counters);
  return kit_done ();
}
