/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenruns.h"

#include <string.h>

GST_DEBUG_CATEGORY_EXTERN (gst_vidgen_model_debug);
#define GST_CAT_DEFAULT gst_vidgen_model_debug

/* Live, only if it fits between two frames. */
gboolean
gst_vidgen_runner_wants_comparison (GstVidgenRunner *self)
{
  guint interval = gst_vidgen_planner_error_interval (self->planner);
  gboolean time = TRUE;

  /* What comes out is compared on the host. */
  if (!interval || self->out_cuda || !gst_vidgen_engine_info (self->engine)->norm_errors || ++self->runs < interval)
    return FALSE;
  GST_OBJECT_LOCK (self->trans);
  if (self->live && GST_VIDEO_INFO_FPS_N (&self->in_info) > 0) {
    GstClockTime frame = gst_util_uint64_scale (
        GST_SECOND, GST_VIDEO_INFO_FPS_D (&self->in_info), GST_VIDEO_INFO_FPS_N (&self->in_info));
    GstClockTime own = self->stats.latency, compare = self->stats.norm_error_time;

    time = own + (compare ? compare : 2 * own) < frame;
  }
  GST_OBJECT_UNLOCK (self->trans);
  if (time)
    self->runs = 0;
  return time;
}

/* What norms want of the whole frame, before its first tile.  *compared: time that is not the run's, us. */
static gboolean
begin_run (GstVidgenRunner *self, GstBuffer *const *in, gint64 *compared, GError **error)
{
  const GstVidgenTileMeta *tile = gst_buffer_get_vidgen_tile_meta (in[0]);
  gboolean compare = self->compare, ok;

  if (tile && !self->engine->whole && (tile->column || tile->row))
    return TRUE;
  self->compare = FALSE;
  *compared = -g_get_monotonic_time ();
  ok = gst_vidgen_engine_begin (self->engine, &self->in_info, in, &self->out_info, &self->colour, compare, error);
  *compared += g_get_monotonic_time ();
  if (compare) {
    GST_OBJECT_LOCK (self->trans);
    self->stats.norm_error_time = *compared * GST_USECOND;
    GST_OBJECT_UNLOCK (self->trans);
  } else {
    *compared = 0;
  }
  return ok;
}

/* FALSE: an error was posted. */
static gboolean
check_size (GstVidgenRunner *self)
{
  if (gst_vidgen_engine_takes (self->engine, &self->in_info))
    return TRUE;
  GST_ELEMENT_ERROR (self->trans, STREAM, WRONG_TYPE,
      ("Tiles of %d x %d pixels were planned, and %d x %d come. What is between vidgenchunk and vidgenmodel must not "
       "change their size.",
          self->engine->grid->grid.x.tile, self->engine->grid->grid.y.tile, GST_VIDEO_INFO_WIDTH (&self->in_info),
          GST_VIDEO_INFO_HEIGHT (&self->in_info)),
      (NULL));
  return FALSE;
}

/* Takes the error of a run; nobody wants to know it while flushing. */
static GstFlowReturn
fail (GstVidgenRunner *self, GError *error)
{
  if (!g_atomic_int_get (&self->stop))
    return gst_vidgen_planner_fail (self->planner, error);
  g_error_free (error);
  return GST_FLOW_FLUSHING;
}

/* A tile has been run; `time` of what passed since it began is the run's. */
static void
count_tile (GstVidgenRunner *self, gint64 began, gint64 time)
{
  if (!self->counted) {
    self->counted = TRUE;
    self->run_began = began;
    self->run_time = 0;
  }
  self->run_time += time;
  GST_OBJECT_LOCK (self->trans);
  self->stats.tiles++;
  GST_OBJECT_UNLOCK (self->trans);
}

/* So many frames leave, and all that they are made of has been counted. */
static void
count_frames (GstVidgenRunner *self, gint frames)
{
  gint64 now = g_get_monotonic_time ();
  struct vg_run_info info;
  gboolean tell, warn;

  vg_run_info (self->engine->run, &info);
  GST_OBJECT_LOCK (self->trans);
  warn = info.rescued && !self->stats.rescued;
  gst_vidgen_stats_take_info (&self->stats, &info);
  tell = gst_vidgen_stats_add_frames (&self->stats, frames, self->counted ? self->run_began : now, now,
             self->counted ? self->run_time : 0) &&
      self->live;
  GST_OBJECT_UNLOCK (self->trans);
  self->counted = FALSE;
  if (warn)
    GST_ELEMENT_WARNING (self->trans, STREAM, ENCODE,
        ("A tile overflowed in half precision and was run again in single; stats count them (tiles-rescued). If there are "
         "many, precision=fp32 saves the time of the first try."),
        (NULL));
  if (tell)
    gst_element_post_message (GST_ELEMENT (self->trans), gst_message_new_latency (GST_OBJECT (self->trans)));
}

/* ---- in flight ---- */

static gboolean
flies (GstVidgenRunner *self)
{
  gboolean live;

  GST_OBJECT_LOCK (self->trans);
  live = self->live;
  GST_OBJECT_UNLOCK (self->trans);
  return !live && !self->compare && vg_run_flies (self->engine->run);
}

GstFlowReturn
gst_vidgen_runner_arrive (gpointer user)
{
  GstVidgenRunner *self = user;
  gint64 began = g_get_monotonic_time ();
  gint frames = self->flight.frames;
  GError *error = NULL;

  if (!self->flight.under_way)
    return GST_FLOW_OK;
  self->flight.under_way = FALSE;
  self->flight.frames = 0;
  if (!gst_vidgen_engine_wait (self->engine, TRUE, &error))
    return fail (self, error); /* and what it was to be does not leave */
  self->window.flying = NULL;
  count_tile (self, self->flight.began, self->flight.time + g_get_monotonic_time () - began);
  if (frames)
    count_frames (self, frames);
  return GST_FLOW_OK;
}

GstFlowReturn
gst_vidgen_runner_land (GstVidgenRunner *self)
{
  GstFlowReturn ret = gst_vidgen_runner_arrive (self);

  return ret == GST_FLOW_OK ? gst_vidgen_window_push (&self->window) : ret;
}

void
gst_vidgen_runner_give_up (GstVidgenRunner *self)
{
  if (self->flight.under_way)
    gst_vidgen_engine_wait (self->engine, FALSE, NULL);
  memset (&self->flight, 0, sizeof self->flight);
  self->window.flying = NULL;
}

/* Starts a run before it waits for the one before. */
static GstFlowReturn
fly (GstVidgenRunner *self, GstBuffer *const *in, const guint64 *numbers, GstBuffer *const *out)
{
  gint64 began = g_get_monotonic_time (), time;
  GError *error = NULL;
  GstFlowReturn ret;

  if (!gst_vidgen_engine_start (self->engine, gst_buffer_get_vidgen_tile_meta (in[0]), &self->in_info, in, numbers,
          &self->out_info, out, &self->colour, &error)) {
    /* The one before is not to blame: its own error, if it has one, comes first. */
    ret = gst_vidgen_runner_land (self);
    if (ret == GST_FLOW_OK)
      return fail (self, error);
    g_error_free (error);
    return ret;
  }
  time = g_get_monotonic_time () - began;
  ret = gst_vidgen_runner_arrive (self);
  self->flight.under_way = TRUE;
  self->flight.began = began;
  self->flight.time = time;
  if (ret == GST_FLOW_OK)
    self->window.flying = out[0];
  return ret;
}

/* ---- runs ---- */

static GstFlowReturn
run_at_once (GstVidgenRunner *self, GstBuffer *const *in, GstBuffer *const *out)
{
  GstFlowReturn ret = gst_vidgen_runner_arrive (self);
  gint64 began = g_get_monotonic_time (), compared = 0;
  GError *error = NULL;

  if (ret != GST_FLOW_OK)
    return ret;
  if (!begin_run (self, in, &compared, &error) ||
      !gst_vidgen_engine_run (self->engine, gst_buffer_get_vidgen_tile_meta (in[0]), &self->in_info, in,
          &self->out_info, out, &self->colour, &error))
    return fail (self, error);
  began += compared;
  count_tile (self, began, g_get_monotonic_time () - began);
  return GST_FLOW_OK;
}

GstFlowReturn
gst_vidgen_runner_run (gpointer user, GstBuffer *const *in, const guint64 *numbers, GstBuffer *const *out)
{
  GstVidgenRunner *self = user;

  if (!check_size (self))
    return GST_FLOW_ERROR;
  self->ran = TRUE;
  return flies (self) ? fly (self, in, numbers, out) : run_at_once (self, in, out);
}

void
gst_vidgen_runner_end_run (gpointer user, gint frames)
{
  GstVidgenRunner *self = user;

  if (self->ran)
    vg_run_next (self->engine->run);
  self->ran = FALSE;
  if (self->flight.under_way)
    self->flight.frames += frames;
  else
    count_frames (self, frames);
}

/* Is this tile, which is run now, the last of its frame? */
static gboolean
is_last (GstVidgenRunner *self, const GstVidgenTileMeta *tile)
{
  return !tile || ++self->frame_tiles == (guint) (tile->grid->grid.x.n * tile->grid->grid.y.n);
}

GstFlowReturn
gst_vidgen_runner_run_single (GstVidgenRunner *self, GstBuffer *in, GstBuffer *out)
{
  const GstVidgenTileMeta *tile = gst_buffer_get_vidgen_tile_meta (in);
  GstFlowReturn ret = gst_vidgen_runner_run (self, &in, NULL, &out);

  if (ret == GST_FLOW_OK && is_last (self, tile))
    gst_vidgen_runner_end_run (self, 1);
  return ret;
}
