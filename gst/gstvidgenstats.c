/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenstats.h"

/* Latency is told in steps of so much: a new figure makes the whole pipeline stop and think. */
#define STEP (5 * GST_MSECOND)

static gboolean
update_latency (GstVidgenStats *self, gint64 time, gboolean second_ends)
{
  GstClockTime latency = (time * GST_USECOND + STEP - 1) / STEP * STEP;

  if (latency <= self->latency && !(second_ends && latency < self->latency - self->latency / 4))
    return FALSE;
  self->latency = latency;
  return TRUE;
}

gboolean
gst_vidgen_stats_add_frames (GstVidgenStats *self, guint frames, gint64 began, gint64 now, gint64 time)
{
  gboolean second_ends, changed;

  if (!self->second_began)
    self->second_began = began;
  second_ends = now - self->second_began >= G_USEC_PER_SEC;
  self->frames += frames;
  self->total += time;
  self->longest = MAX (self->longest, time);
  self->second_frames += frames;
  self->second_longest = MAX (self->second_longest, time);
  /* In the first second, what there is of it. */
  if (second_ends || self->frames == self->second_frames)
    self->fps = self->second_frames * (gdouble) G_USEC_PER_SEC / MAX (now - self->second_began, 1);
  changed = update_latency (self, self->second_longest, second_ends && self->reused == self->second_reused);
  if (second_ends) {
    self->second_began = now;
    self->second_frames = 0;
    self->second_longest = 0;
    self->second_reused = self->reused;
  }
  return changed;
}

void
gst_vidgen_stats_take_info (GstVidgenStats *self, const struct vg_run_info *info)
{
  self->norm_drift = info->drift;
  self->norm_cuts = info->cuts;
  self->rescued = info->rescued;
  self->norm_frozen = info->frozen;
  self->norm_error_mean = info->error_mean;
  self->norm_error_max = info->error_worst;
  self->norm_error_frames = info->errors_frames;
}

GstStructure *
gst_vidgen_stats_to_structure (const GstVidgenStats *self)
{
  guint64 mean = self->frames ? self->total * 1000 / self->frames : 0;

  return gst_structure_new ("vidgen-stats", "frames", G_TYPE_UINT64, self->frames, "tiles", G_TYPE_UINT64, self->tiles,
      "tiles-reused", G_TYPE_UINT64, self->reused, "tiles-rescued", G_TYPE_UINT64, self->rescued, "dropped",
      G_TYPE_UINT64, self->dropped, "cuts", G_TYPE_UINT64, self->cuts, "fps", G_TYPE_DOUBLE, self->fps, "mean-time",
      G_TYPE_UINT64, mean, "max-time", G_TYPE_UINT64, (guint64) self->longest * 1000, "device-memory",
      G_TYPE_UINT64, self->memory, "device-memory-peak", G_TYPE_UINT64, self->memory_peak, "norm-drift", G_TYPE_DOUBLE,
      self->norm_drift, "norm-cuts", G_TYPE_UINT64, self->norm_cuts, "norm-frozen", G_TYPE_BOOLEAN, self->norm_frozen,
      "norm-error-mean", G_TYPE_DOUBLE, self->norm_error_mean, "norm-error-max", G_TYPE_INT, self->norm_error_max,
      "norm-error-frames", G_TYPE_UINT64, self->norm_error_frames, "norm-error-time", G_TYPE_UINT64,
      self->norm_error_time, NULL);
}
