/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenrunner.h"

#include <string.h>

#include "gstvidgencuda.h"
#include "gstvidgenframe.h"
#include "gstvidgenparameters.h"
#include "gstvidgenruns.h"

GST_DEBUG_CATEGORY_EXTERN (gst_vidgen_model_debug);
#define GST_CAT_DEFAULT gst_vidgen_model_debug

void
gst_vidgen_runner_init (GstVidgenRunner *self, GstBaseTransform *trans, GstVidgenPlanner *planner)
{
  self->trans = trans;
  self->planner = planner;
  gst_vidgen_window_init (&self->window, trans);
  self->window.run = gst_vidgen_runner_run;
  self->window.done = gst_vidgen_runner_end_run;
  self->window.land = gst_vidgen_runner_arrive;
  self->window.user = self;
  self->window.in_info = &self->in_info;
  self->window.out_info = &self->out_info;
}

void
gst_vidgen_runner_clear (GstVidgenRunner *self)
{
  gst_vidgen_window_clear (&self->window);
}

void
gst_vidgen_runner_start (GstVidgenRunner *self)
{
  gst_video_info_init (&self->in_info);
  g_atomic_int_set (&self->stop, FALSE);
  self->asked = self->in_frame = self->discont = self->late = self->ran = self->counted = self->compare = FALSE;
  self->warned_foreign = FALSE;
  gst_vidgen_cuts_reset (&self->cuts);
  GST_OBJECT_LOCK (self->trans);
  memset (&self->stats, 0, sizeof self->stats);
  self->live = FALSE;
  self->wait = 0;
  GST_OBJECT_UNLOCK (self->trans);
}

void
gst_vidgen_runner_stop (GstVidgenRunner *self)
{
  gst_vidgen_runner_give_up (self);
  gst_vidgen_window_close (&self->window);
  gst_vidgen_cuts_clear (&self->cuts);
  g_clear_pointer (&self->engine, gst_vidgen_engine_free);
  g_clear_pointer (&self->new_values, g_free);
  GST_OBJECT_LOCK (self->trans);
  memset (&self->scale, 0, sizeof self->scale);
  self->stats.memory = 0;
  GST_OBJECT_UNLOCK (self->trans);
}

/* ---- which engine runs ---- */

/* The frames that the window waits for, at the stream's rate, or at this one's. */
static void
update_wait (GstVidgenRunner *self, GstClockTime duration)
{
  gboolean tell;
  GstClockTime wait;

  if (GST_VIDEO_INFO_FPS_N (&self->in_info) > 0)
    duration = gst_util_uint64_scale (
        GST_SECOND, GST_VIDEO_INFO_FPS_D (&self->in_info), GST_VIDEO_INFO_FPS_N (&self->in_info));
  if (!GST_CLOCK_TIME_IS_VALID (duration))
    return;
  wait = gst_vidgen_window_wait (&self->window, duration);
  GST_OBJECT_LOCK (self->trans);
  tell = wait != self->wait && self->live;
  self->wait = wait;
  GST_OBJECT_UNLOCK (self->trans);
  if (tell)
    gst_element_post_message (GST_ELEMENT (self->trans), gst_message_new_latency (GST_OBJECT (self->trans)));
}

static void
open_window (GstVidgenRunner *self, gint n_tiles)
{
  gst_vidgen_window_open (&self->window, gst_vidgen_engine_info (self->engine), n_tiles);
  update_wait (self, GST_CLOCK_TIME_NONE);
}

/* Takes engine; it runs from here on.  The old one goes first, so that the two never add up. */
static gboolean
start_engine (GstVidgenRunner *self, GstVidgenEngine *engine)
{
  const struct vg_summary *summary = vg_model_summary (engine->model);
  const GstVidgenScale old = self->scale, new = gst_vidgen_engine_scale (engine->model, engine->request.emit);
  gboolean rescaled = old.num && (old.num * new.den != old.den *new.num || old.rate != new.rate);
  GError *error = NULL;
  gboolean ok;

  gst_vidgen_runner_drain (self);
  gst_vidgen_planner_retire (self->planner, self->engine);
  self->engine = engine;
  ok = gst_vidgen_engine_open (engine, &self->stop, &error);
  g_free (self->new_values);
  self->new_values = g_new (gfloat, gst_vidgen_parameters_count (summary) + 1);

  open_window (self, engine->whole ? 1 : engine->grid->grid.x.n * engine->grid->grid.y.n);

  GST_OBJECT_LOCK (self->trans);
  self->scale = new;
  self->stats.memory = engine->backend->bytes_now (engine->device);
  self->stats.memory_peak = MAX (self->stats.memory_peak, engine->backend->bytes_peak (engine->device));
  GST_OBJECT_UNLOCK (self->trans);
  if (!ok)
    gst_vidgen_planner_fail (self->planner, error);
  else if (rescaled)
    gst_base_transform_reconfigure_src (self->trans);
  return ok;
}

/* Whole frames of the size of the caps, with the newest model. */
static gboolean
use_whole_engine (GstVidgenRunner *self)
{
  struct vg_plan_request request = {0};
  GstVidgenEngine *engine = self->engine;

  gst_vidgen_planner_request (&request, &self->in_info);
  request.tile_width = request.width;
  request.tile_height = request.height;
  request.overlap_x = request.overlap_y = -1;
  if (engine && engine->whole && (engine->context || !self->in_cuda) &&
      gst_vidgen_planner_is_newest (self->planner, engine) &&
      gst_vidgen_planner_same_request (&engine->request, &request))
    return TRUE;
  engine = gst_vidgen_planner_make (self->planner, &request, self->in_cuda);
  if (!engine)
    return FALSE;
  engine->whole = TRUE;
  return start_engine (self, engine);
}

/* The engine for a buffer, at the first tile of a frame. */
static gboolean
use_engine_for (GstVidgenRunner *self, const GstVidgenTileMeta *tile)
{
  GstVidgenEngine *engine;

  if (!tile)
    return use_whole_engine (self);
  if (self->engine && self->engine->grid == tile->grid)
    return TRUE;
  engine = gst_vidgen_planner_take (self->planner, tile->grid, &self->in_info);
  if (engine)
    return start_engine (self, engine);
  if (!use_whole_engine (self))
    return FALSE;
  open_window (self, tile->grid->grid.x.n * tile->grid->grid.y.n);
  if (!self->warned_foreign) {
    self->warned_foreign = TRUE;
    GST_ELEMENT_WARNING (self->trans, STREAM, ENCODE,
        ("These tiles were not cut for this model: seams may be seen. Two models need a pair of vidgenchunk and "
         "vidgenstitch each."),
        (NULL));
  }
  return TRUE;
}

/* Tiles do not say what a frame's colours are when the caps do not: the usual ones go by the frame's size. */
static void
update_colour (GstVidgenRunner *self, const GstCaps *caps)
{
  GstVideoInfo info = self->in_info;

  if (!gst_structure_has_field (gst_caps_get_structure (caps, 0), "colorimetry") && self->engine)
    gst_video_info_set_format (
        &info, GST_VIDEO_INFO_FORMAT (&info), self->engine->request.width, self->engine->request.height);
  self->colorimetry = info.colorimetry;
  gst_vidgen_colour_from_info (&info, &self->colour);
}

gboolean
gst_vidgen_runner_set_caps (GstVidgenRunner *self, GstCaps *caps)
{
  GstVidgenEngine *engine;
  GstVideoInfo info;

  gboolean in_cuda = gst_vidgen_caps_in_cuda (caps);

  if (!gst_video_info_from_caps (&info, caps))
    return FALSE;
  /* Caps that are sent once more end nothing. */
  if (self->engine && gst_video_info_is_equal (&info, &self->in_info) && in_cuda == self->in_cuda &&
      !gst_vidgen_planner_has_planned (self->planner))
    return TRUE;
  gst_vidgen_runner_end_sequence (self);
  gst_vidgen_cuts_clear (&self->cuts);
  self->in_info = info;
  self->in_cuda = in_cuda;
  self->asked = self->asked || gst_vidgen_planner_has_planned (self->planner);
  if (!self->asked) {
    if (!use_whole_engine (self))
      return FALSE;
  } else {
    engine = gst_vidgen_planner_take (self->planner, NULL, &self->in_info);
    if (engine && !start_engine (self, engine))
      return FALSE;
  }
  update_wait (self, GST_CLOCK_TIME_NONE);
  update_colour (self, caps);
  return TRUE;
}

/* ---- frames ---- */

void
gst_vidgen_runner_count_dropped (GstVidgenRunner *self)
{
  GST_OBJECT_LOCK (self->trans);
  self->stats.dropped++;
  GST_OBJECT_UNLOCK (self->trans);
}

GstFlowReturn
gst_vidgen_runner_drain (GstVidgenRunner *self)
{
  if (self->window.info.window == 1) /* no frame waits for another one */
    return gst_vidgen_runner_land (self);
  if (self->window.n_tiles)
    self->in_frame = FALSE; /* more tiles of the frame in work, if they come, begin it anew */
  return gst_vidgen_window_drain (&self->window);
}

GstFlowReturn
gst_vidgen_runner_end_sequence (GstVidgenRunner *self)
{
  GstFlowReturn ret = gst_vidgen_runner_drain (self);

  if (self->engine && self->engine->run)
    vg_run_reset (self->engine->run);
  gst_vidgen_cuts_reset (&self->cuts);
  self->ran = self->counted = FALSE;
  return ret;
}

void
gst_vidgen_runner_flush (GstVidgenRunner *self)
{
  gst_vidgen_window_drop (&self->window);
  gst_vidgen_runner_give_up (self);
  gst_vidgen_runner_end_sequence (self);
  g_atomic_int_set (&self->stop, FALSE);
  self->in_frame = self->discont = self->late = FALSE;
}

/* At the start of a frame. */
static gboolean
apply_parameters (GstVidgenRunner *self)
{
  GError *error = NULL;

  if (!gst_vidgen_planner_new_values (self->planner, self->engine, self->new_values))
    return TRUE;
  gst_vidgen_runner_land (self); /* with the old ones */
  if (!gst_vidgen_engine_set_parameters (self->engine, self->new_values, &error)) {
    gst_vidgen_planner_fail (self->planner, error);
    return FALSE;
  }
  return TRUE;
}

/* Frames in the memory of another context than the engine's: it goes over to that. */
static gboolean
follow_context (GstVidgenRunner *self, GstBuffer *buffer)
{
  GstObject *context = self->in_cuda ? gst_vidgen_cuda_context_of (buffer) : NULL;

  if (!context || context == self->engine->context)
    return TRUE;
  gst_vidgen_runner_end_sequence (self);
  if (!gst_vidgen_planner_adopt (self->planner, self->engine, context, &self->stop))
    return FALSE;
  gst_base_transform_reconfigure_src (self->trans); /* output is of that context, too */
  return TRUE;
}

gboolean
gst_vidgen_runner_prepare (GstVidgenRunner *self, GstBuffer *buffer, gboolean *first)
{
  const GstVidgenTileMeta *tile = gst_buffer_get_vidgen_tile_meta (buffer);

  if (tile)
    gst_vidgen_tile_check_written (buffer, tile);
  *first = GST_VIDEO_INFO_FORMAT (&self->in_info) != GST_VIDEO_FORMAT_UNKNOWN &&
      (!tile || !self->in_frame || tile->record->number != self->frame_number);
  if (!*first)
    return TRUE;
  self->discont |= GST_BUFFER_IS_DISCONT (buffer);
  /* Without a run, it could not be opened, and that has been told. */
  return use_engine_for (self, tile) && self->engine->run && follow_context (self, buffer) && apply_parameters (self);
}

/* Is the frame that this buffer is of, or begins, another scene than the last one? */
static gboolean
is_cut (GstVidgenRunner *self, GstBuffer *buffer, const GstVidgenTileMeta *tile)
{
  if (!gst_vidgen_planner_wants_cuts (self->planner, self->engine)) {
    gst_vidgen_cuts_reset (&self->cuts);
    return FALSE;
  }
  if (!gst_vidgen_cuts_next (&self->cuts, tile, &self->in_info, buffer, self->engine->context))
    return FALSE;
  GST_DEBUG_OBJECT (self->trans, "scene cut, correlation %.2f", (gdouble) self->cuts.scene.correlation);
  GST_OBJECT_LOCK (self->trans);
  self->stats.cuts++;
  GST_OBJECT_UNLOCK (self->trans);
  return TRUE;
}

GstFlowReturn
gst_vidgen_runner_begin_frame (GstVidgenRunner *self, GstBuffer *buffer)
{
  const GstVidgenTileMeta *tile = gst_buffer_get_vidgen_tile_meta (buffer);
  gboolean discont = self->discont && !self->late, cut;
  GstFlowReturn ret = GST_FLOW_OK;

  self->discont = self->late = FALSE;
  if (discont)
    ret = gst_vidgen_runner_end_sequence (self);
  self->in_frame = TRUE;
  self->frame_number = tile ? tile->record->number : 0;
  self->frame_tiles = 0;
  self->compare = self->compare || gst_vidgen_runner_wants_comparison (self);
  cut = is_cut (self, buffer, tile);
  if (cut) {
    /* An interpolator goes on: it knows what to do between two scenes. */
    if (!self->window.between.n)
      ret = gst_vidgen_window_drain (&self->window);
    vg_run_reset (self->engine->run);
  }
  if (self->window.n_tiles && ret == GST_FLOW_OK) {
    update_wait (self, GST_BUFFER_DURATION (buffer));
    ret = gst_vidgen_window_begin_frame (&self->window, cut);
  }
  return ret;
}

GstFlowReturn
gst_vidgen_runner_take (GstVidgenRunner *self, GstBuffer *in, GstBuffer **out)
{
  const GstVidgenTileMeta *tile = in ? gst_buffer_get_vidgen_tile_meta (in) : NULL;
  GstFlowReturn ret = GST_FLOW_OK;

  if (in)
    ret = gst_vidgen_window_take (&self->window, in, tile ? tile->row * tile->grid->grid.x.n + tile->column : 0);
  if (ret == GST_FLOW_OK)
    *out = gst_vidgen_window_pop (&self->window);
  return ret;
}
