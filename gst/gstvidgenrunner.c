/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenrunner.h"

#include <string.h>

#include "gstvidgencuda.h"
#include "gstvidgenframe.h"
#include "gstvidgenparameters.h"

GST_DEBUG_CATEGORY_EXTERN (gst_vidgen_model_debug);
#define GST_CAT_DEFAULT gst_vidgen_model_debug

static GstFlowReturn run (gpointer user, GstBuffer *const *in, GstBuffer *const *out);
static void end_run (gpointer user, gint frames);
static gboolean fade (gpointer user, GstBuffer *later, GstBuffer *earlier, gint i, gint n);

void
gst_vidgen_runner_init (GstVidgenRunner *self, GstBaseTransform *trans, GstVidgenPlanner *planner)
{
  self->trans = trans;
  self->planner = planner;
  gst_vidgen_window_init (&self->window, trans);
  self->reuse.trans = trans;
  self->window.fade = fade;
  self->window.run = run;
  self->window.done = end_run;
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
  self->asked = self->in_frame = self->discont = self->late = self->ran = self->warned_foreign = FALSE;
  vg_scenecut_reset (&self->scene);
  GST_OBJECT_LOCK (self->trans);
  memset (&self->stats, 0, sizeof self->stats);
  self->live = FALSE;
  self->wait = 0;
  GST_OBJECT_UNLOCK (self->trans);
}

/* Nobody wants what is on its way. */
static void
drop_flight (GstVidgenRunner *self)
{
  if (!self->flight.out)
    return;
  if (!self->flight.known)
    gst_vidgen_engine_wait (self->engine, NULL, &self->out_info, NULL, NULL);
  gst_clear_buffer (&self->flight.out);
}

void
gst_vidgen_runner_stop (GstVidgenRunner *self)
{
  drop_flight (self);
  gst_vidgen_window_close (&self->window);
  gst_vidgen_reuse_forget (&self->reuse);
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
  self->comparing = FALSE;
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
  GstFlowReturn landed = gst_vidgen_runner_land (self), ret;

  if (self->window.n_tiles)
    self->in_frame = FALSE; /* more tiles of the frame in work, if they come, begin it anew */
  ret = gst_vidgen_window_drain (&self->window);
  gst_vidgen_reuse_forget (&self->reuse);
  return landed == GST_FLOW_OK ? ret : landed;
}

GstFlowReturn
gst_vidgen_runner_end_sequence (GstVidgenRunner *self)
{
  GstFlowReturn ret = gst_vidgen_runner_drain (self);

  if (self->engine && self->engine->run)
    vg_run_reset (self->engine->run);
  vg_scenecut_reset (&self->scene);
  self->ran = FALSE;
  return ret;
}

void
gst_vidgen_runner_flush (GstVidgenRunner *self)
{
  gst_vidgen_window_drop (&self->window);
  drop_flight (self);
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
    vg_scenecut_reset (&self->scene);
    return FALSE;
  }
  if (!gst_vidgen_cuts_next (&self->scene, tile, &self->in_info, buffer, self->engine))
    return FALSE;
  GST_DEBUG_OBJECT (self->trans, "scene cut, correlation %.2f", (gdouble) self->scene.correlation);
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
  self->frames++;
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

/* Should the run that begins be compared with exact norms?  Live, only if it fits between two frames. */
static gboolean
wants_comparison (GstVidgenRunner *self)
{
  guint interval = gst_vidgen_planner_error_interval (self->planner);
  gboolean time = TRUE;

  if (!interval || !gst_vidgen_engine_info (self->engine)->norm_errors || ++self->runs < interval)
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
  gboolean compare, ok;

  if (tile && !self->engine->whole && (tile->column || tile->row))
    return TRUE;
  compare = self->comparing = wants_comparison (self);
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

/* Does a run that begins now take part in reuse-static?  One that is compared is done in full. */
static gboolean
reuses (GstVidgenRunner *self)
{
  gboolean wanted = gst_vidgen_planner_reuses_static (self->planner);

  if (!wanted)
    gst_vidgen_reuse_forget (&self->reuse);
  return wanted && !self->comparing;
}

static void
count_reused (GstVidgenRunner *self)
{
  GST_OBJECT_LOCK (self->trans);
  self->stats.reused++;
  GST_OBJECT_UNLOCK (self->trans);
}

/* A tile has been run; `time` of what passed since it began is the run's. */
static void
count_tile (GstVidgenRunner *self, gint64 began, gint64 time)
{
  if (!self->ran) {
    self->ran = TRUE;
    self->run_began = began;
    self->run_time = 0;
  }
  self->run_time += time;
  GST_OBJECT_LOCK (self->trans);
  self->stats.tiles++;
  GST_OBJECT_UNLOCK (self->trans);
}

static GstFlowReturn
run (gpointer user, GstBuffer *const *in, GstBuffer *const *out)
{
  GstVidgenRunner *self = user;
  gint64 began = g_get_monotonic_time (), compared = 0;
  GError *error = NULL;
  gboolean reuse;

  if (!check_size (self))
    return GST_FLOW_ERROR;
  if (!begin_run (self, in, &compared, &error))
    return fail (self, error);
  reuse = reuses (self);
  if (reuse && gst_vidgen_reuse_knows (&self->reuse, self->engine, &self->in_info, in) &&
      gst_vidgen_reuse_give (&self->reuse, self->engine, in, &self->out_info, out)) {
    count_reused (self);
    return GST_FLOW_OK;
  }
  if (reuse)
    gst_vidgen_reuse_keep_in (&self->reuse, self->engine, in);
  if (!gst_vidgen_engine_run (self->engine, gst_buffer_get_vidgen_tile_meta (in[0]), &self->in_info, in,
          &self->out_info, out, &self->colour, &error))
    return fail (self, error);
  if (reuse)
    gst_vidgen_reuse_keep_out (&self->reuse, self->engine, &self->out_info, out);
  began += compared;
  count_tile (self, began, g_get_monotonic_time () - began);
  return GST_FLOW_OK;
}

/* On the device, where frames lie there. */
static gboolean
fade (gpointer user, GstBuffer *later, GstBuffer *earlier, gint i, gint n)
{
  GstVidgenRunner *self = user;

  return self->out_cuda && gst_vidgen_engine_fade (self->engine, &self->out_info, later, earlier, i, n);
}

/* A frame's, or a window's, last tile has been run, and so many frames leave. */
static void
end_run (gpointer user, gint frames)
{
  GstVidgenRunner *self = user;
  gint64 now = g_get_monotonic_time ();
  struct vg_run_info info;
  gboolean tell, warn;

  if (self->ran)
    vg_run_next (self->engine->run);
  vg_run_info (self->engine->run, &info);
  GST_OBJECT_LOCK (self->trans);
  warn = info.rescued && !self->stats.rescued;
  gst_vidgen_stats_take_info (&self->stats, &info);
  tell = gst_vidgen_stats_add_frames (
             &self->stats, frames, self->ran ? self->run_began : now, now, self->ran ? self->run_time : 0) &&
      self->live;
  GST_OBJECT_UNLOCK (self->trans);
  self->ran = FALSE;
  if (warn)
    GST_ELEMENT_WARNING (self->trans, STREAM, ENCODE,
        ("A tile overflowed in half precision and was run again in single; stats count them (tiles-rescued). If there are "
         "many, precision=fp32 saves the time of the first try."),
        (NULL));
  if (tell)
    gst_element_post_message (GST_ELEMENT (self->trans), gst_message_new_latency (GST_OBJECT (self->trans)));
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
  GstFlowReturn ret = run (self, &in, &out);

  if (ret == GST_FLOW_OK && is_last (self, tile))
    end_run (self, 1);
  return ret;
}

/* ---- one on its way ---- */

gboolean
gst_vidgen_runner_flies (GstVidgenRunner *self)
{
  gboolean live;

  GST_OBJECT_LOCK (self->trans);
  live = self->live;
  GST_OBJECT_UNLOCK (self->trans);
  return !live && !self->in_cuda && !self->out_cuda && self->engine && gst_vidgen_engine_has_flights (self->engine);
}

/* Waits for what is on its way, and gives it; *out NULL: there was nothing. */
static GstFlowReturn
arrive (GstVidgenRunner *self, GstBuffer **out)
{
  GstBuffer *buffer = g_steal_pointer (&self->flight.out);
  gint64 began = g_get_monotonic_time ();
  GError *error = NULL;

  *out = NULL;
  if (!buffer)
    return GST_FLOW_OK;
  if (self->flight.known) {
    count_reused (self);
  } else if (gst_vidgen_engine_wait (
                 self->engine, gst_buffer_get_vidgen_tile_meta (buffer), &self->out_info, buffer, &error)) {
    gst_vidgen_reuse_keep_out (&self->reuse, self->engine, &self->out_info, &buffer);
    count_tile (self, self->flight.began, self->flight.time + g_get_monotonic_time () - began);
  } else {
    gst_buffer_unref (buffer);
    return fail (self, error);
  }
  if (self->flight.last)
    end_run (self, 1);
  *out = buffer;
  return GST_FLOW_OK;
}

GstFlowReturn
gst_vidgen_runner_land (GstVidgenRunner *self)
{
  GstBuffer *out = NULL;
  GstFlowReturn ret = arrive (self, &out);

  return out ? gst_pad_push (GST_BASE_TRANSFORM_SRC_PAD (self->trans), out) : ret;
}

/* What this buffer gives is known already: it leaves when its turn comes.  Takes `next`. */
static GstFlowReturn
fly_known (GstVidgenRunner *self, GstBuffer *in, GstBuffer *next, GstBuffer **out)
{
  const GstVidgenTileMeta *tile = gst_buffer_get_vidgen_tile_meta (in);
  gboolean last = is_last (self, tile);
  GstFlowReturn ret = arrive (self, out); /* the result may be that of what is on its way */

  if (ret == GST_FLOW_OK && !gst_vidgen_reuse_give (&self->reuse, self->engine, &in, &self->out_info, &next)) {
    gst_clear_buffer (out);
    ret = fail (self,
        g_error_new_literal (
            GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE, "The memory for a frame cannot be written to."));
  }
  if (ret != GST_FLOW_OK) {
    gst_buffer_unref (next);
    return ret;
  }
  self->flight.out = next;
  self->flight.last = last;
  self->flight.known = TRUE;
  return GST_FLOW_OK;
}

GstFlowReturn
gst_vidgen_runner_fly (GstVidgenRunner *self, GstBuffer *in, GstBuffer **out)
{
  const GstVidgenTileMeta *tile = in ? gst_buffer_get_vidgen_tile_meta (in) : NULL;
  GstBuffer *next = NULL;
  GError *error = NULL;
  gboolean started, last, reuse;
  gint64 began, time;
  GstFlowReturn ret;

  *out = NULL;
  if (!in)
    return GST_FLOW_OK;
  ret = GST_BASE_TRANSFORM_GET_CLASS (self->trans)->prepare_output_buffer (self->trans, in, &next);
  if (ret == GST_FLOW_OK && !check_size (self))
    ret = GST_FLOW_ERROR;
  if (ret != GST_FLOW_OK) {
    gst_buffer_unref (in);
    gst_clear_buffer (&next);
    return ret;
  }
  reuse = reuses (self);
  if (reuse && gst_vidgen_reuse_knows (&self->reuse, self->engine, &self->in_info, &in)) {
    ret = fly_known (self, in, next, out);
    gst_buffer_unref (in);
    return ret;
  }
  began = g_get_monotonic_time ();
  started = gst_vidgen_engine_start (
      self->engine, tile, &self->in_info, in, self->frames, &self->out_info, &self->colour, &error);
  time = g_get_monotonic_time () - began;
  last = started && is_last (self, tile);
  if (started) {
    ret = arrive (self, out);
    if (reuse)
      gst_vidgen_reuse_keep_in (&self->reuse, self->engine, &in);
    gst_buffer_unref (in);
    self->flight.out = next;
    self->flight.last = last;
    self->flight.known = FALSE;
    self->flight.began = began;
    self->flight.time = time;
    return ret;
  }
  gst_buffer_unref (in);
  gst_buffer_unref (next);
  /* The one before is not to blame: its own error, if it has one, comes first. */
  ret = gst_vidgen_runner_land (self);
  if (ret == GST_FLOW_OK)
    return fail (self, error);
  g_error_free (error);
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
