/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-vidgenmodel
 * @title: vidgenmodel
 * @short_description: Runs a neural network (ONNX) over video
 * @see_also: vidgenchunk, vidgenstitch, vidgen
 *
 * Runs an image model over each buffer: a model file in, its picture out, no other framework needed.  Between
 * #vidgenchunk and #vidgenstitch a buffer is a tile of a frame, and this element tells vidgenchunk how to cut frames so
 * that the seams cannot be seen and the memory asked for is enough.  On its own it takes whole frames.  The bin #vidgen
 * is all three.
 *
 * The model may change the size by a fixed factor (an upscaler); the caps follow it.  Alpha is passed on.  I420 and
 * NV12 are converted with the matrix and the range of the stream's colorimetry, so no videoconvert is needed.
 *
 * On a GPU (device=cuda, or auto that took it) frames may lie in CUDA memory (`video/x-raw(memory:CUDAMemory)`) on
 * either pad: they are read and written where they lie, and where both are, nothing is copied between host and device.
 * What comes out is in the memory that came in, if the element that follows takes that.  Such frames are not cut into
 * tiles; max-device-memory holds by bands of rows.  The context of CUDA is that of the elements around it, or of the
 * frames.
 *
 * All memory that the model needs is computed when the caps are known: an element message "vidgen-plan" tells it
 * ("bytes", guint64) with the whole plan as "text" and as JSON ("plan"), and how the model goes through time: "window"
 * and "hop" in frames, "rate" frames that leave for one that comes.  What does not fit max-device-memory is
 * refused then, with the least that would do.  While running nothing is allocated.
 *
 * Models may see several frames at once, pass states from frame to frame, or make new frames between two of the source:
 * the caps' frame rate follows.  Exactly as many frames leave as came in (times the rate, of an interpolator), each with
 * its own timestamps.  States and windows end where frames do not follow each other, and, with scene-cut, where scenes
 * end.  A frame that is dropped because it is late is taken as if it had never been.
 *
 * In a live pipeline the frames that a window waits for and the time that a run takes, which is measured, are reported
 * as latency.  A message tells when it grows, or shrinks by more than a quarter, and the application then calls
 * gst_bin_recalculate_latency().
 *
 * ## Examples
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=50 ! video/x-raw,width=320,height=240 ! vidgenmodel ! videoconvert ! autovideosink
 * ]| Paints a test picture with the bundled style, whole frames.
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=50 ! vidgenchunk tile-width=160 ! queue ! vidgenmodel model-file=upscale2x ! queue ! vidgenstitch ! fakevideosink
 * ]| Doubles the size of a test picture, tile by tile, with the three elements in threads of their own.
 *
 * Since: 0.1
 */
#include "gstvidgenmodel.h"

#include <string.h>

#include "gstvidgencuda.h"
#include "gstvidgenframe.h"
#include "gstvidgenplan.h"
#include "gstvidgenpool.h"
#include "gstvidgenrunner.h"
#include "gstvidgensettings.h"

GST_DEBUG_CATEGORY (gst_vidgen_model_debug);
#define GST_CAT_DEFAULT gst_vidgen_model_debug

struct _GstVidgenModel
{
  GstBaseTransform parent;

  GstVidgenPlanner planner;
  GstVidgenRunner runner;
  gboolean warned_fields;
};

#define gst_vidgen_model_parent_class parent_class
G_DEFINE_TYPE_WITH_CODE (GstVidgenModel, gst_vidgen_model, GST_TYPE_BASE_TRANSFORM,
    GST_DEBUG_CATEGORY_INIT (gst_vidgen_model_debug, "vidgenmodel", 0, "neural video models"));
GST_ELEMENT_REGISTER_DEFINE (vidgenmodel, "vidgenmodel", GST_RANK_NONE, GST_TYPE_VIDGEN_MODEL);

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS (GST_VIDGEN_MODEL_SINK_CAPS));
static GstStaticPadTemplate src_template =
GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_VIDGEN_MODEL_SRC_CAPS));

/* ---- negotiation ---- */

/* The model's scale, on the way from vidgenchunk to vidgenstitch. */
static void
add_scale (GstVidgenModel *self, GstStructure *s)
{
  gint before_num = 1, before_den = 1;
  GstVidgenScale scale;

  if (!gst_vidgen_planner_scale (&self->planner, &scale))
    return;
  gst_structure_get (s, "scale-num", G_TYPE_INT, &before_num, "scale-den", G_TYPE_INT, &before_den, NULL);
  gst_structure_set (
      s, "scale-num", G_TYPE_INT, scale.num * before_num, "scale-den", G_TYPE_INT, scale.den * before_den, NULL);
}

/* In a live pipeline a frame is held until its window is full and for as long as it takes to compute that; only there
 * does it count. */
static void
add_latency (GstVidgenModel *self, GstQuery *query)
{
  GstClockTime min, max, own;
  gboolean live;

  gst_query_parse_latency (query, &live, &min, &max);
  GST_OBJECT_LOCK (self);
  self->runner.live = live;
  own = live ? self->runner.wait + self->runner.stats.latency : 0;
  GST_OBJECT_UNLOCK (self);
  if (GST_CLOCK_TIME_IS_VALID (max))
    max += own;
  GST_DEBUG_OBJECT (self, "latency %" GST_TIME_FORMAT " of own", GST_TIME_ARGS (own));
  gst_query_set_latency (query, live, min + own, max);
}

static gboolean
gst_vidgen_model_query (GstBaseTransform *trans, GstPadDirection direction, GstQuery *query)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);
  gboolean ok;

  if (GST_QUERY_TYPE (query) == GST_QUERY_CUSTOM && direction == GST_PAD_SINK &&
      gst_structure_has_name (gst_query_get_structure (query), GST_VIDGEN_QUERY_PLAN))
    return gst_vidgen_planner_answer (&self->planner, gst_query_writable_structure (query));
  /* Upstream wants its buffers back. */
  if (GST_QUERY_TYPE (query) == GST_QUERY_DRAIN && direction == GST_PAD_SINK)
    gst_vidgen_runner_drain (&self->runner);
  if (GST_QUERY_TYPE (query) == GST_QUERY_CONTEXT && gst_vidgen_context_answer (&self->planner.context, query))
    return TRUE;

  ok = GST_BASE_TRANSFORM_CLASS (parent_class)->query (trans, direction, query);
  if (ok && GST_QUERY_TYPE (query) == GST_QUERY_CUSTOM && direction == GST_PAD_SINK &&
      gst_structure_has_name (gst_query_get_structure (query), GST_VIDGEN_QUERY_SIZES))
    add_scale (self, gst_query_writable_structure (query));
  if (ok && GST_QUERY_TYPE (query) == GST_QUERY_LATENCY && direction == GST_PAD_SRC)
    add_latency (self, query);
  return ok;
}

static void
warn_of_fields (GstVidgenModel *self)
{
  if (!GST_VIDEO_INFO_IS_INTERLACED (&self->runner.in_info) || self->warned_fields)
    return;
  self->warned_fields = TRUE;
  GST_ELEMENT_WARNING (self, STREAM, FORMAT,
      ("The video is interlaced, and the model sees both fields as one picture: lines of moving edges will be taken "
       "for detail. Put \"deinterlace\" before the model."),
      (NULL));
}

static gboolean
gst_vidgen_model_sink_event (GstBaseTransform *trans, GstEvent *event)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);
  gboolean late = FALSE;
  GstCaps *caps;

  if (GST_EVENT_IS_SERIALIZED (event) && GST_EVENT_TYPE (event) != GST_EVENT_FLUSH_STOP)
    gst_vidgen_runner_land (&self->runner);
  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_CAPS:
      gst_event_parse_caps (event, &caps);
      if (!gst_vidgen_runner_set_caps (&self->runner, caps)) {
        gst_event_unref (event);
        return FALSE;
      }
      warn_of_fields (self);
      break;
    case GST_EVENT_FLUSH_START:
      g_atomic_int_set (&self->runner.stop, TRUE);
      break;
    case GST_EVENT_FLUSH_STOP:
      gst_vidgen_runner_flush (&self->runner);
      break;
    case GST_EVENT_GAP:
      if (self->runner.asked &&
          !gst_structure_get_boolean (gst_event_get_structure (event), GST_VIDGEN_GAP_LATE, &late))
        break; /* a tile's */
      if (late) {
        gst_vidgen_runner_count_dropped (&self->runner);
        self->runner.late = TRUE;
        if (gst_vidgen_window_hold (&self->runner.window, event))
          return TRUE;
        break;
      }
      gst_vidgen_runner_end_sequence (&self->runner);
      break;
    case GST_EVENT_STREAM_START:
    case GST_EVENT_SEGMENT:
    case GST_EVENT_SEGMENT_DONE:
    case GST_EVENT_EOS:
      gst_vidgen_runner_end_sequence (&self->runner);
      break;
    default:
      if (GST_EVENT_IS_SERIALIZED (event) && gst_vidgen_window_hold (&self->runner.window, event))
        return TRUE;
      break;
  }
  return GST_BASE_TRANSFORM_CLASS (parent_class)->sink_event (trans, event);
}

/* Those in this memory.  Takes and gives caps. */
static GstCaps *
only_memory (GstCaps *caps, gboolean in_cuda)
{
  GstCaps *kept = gst_caps_new_empty ();

  for (guint i = 0; i < gst_caps_get_size (caps); i++) {
    GstCaps *one = gst_caps_copy_nth (caps, i);

    if (gst_vidgen_caps_in_cuda (one) == in_cuda)
      gst_caps_append (kept, one);
    else
      gst_caps_unref (one);
  }
  gst_caps_unref (caps);
  return kept;
}

/* While a new model with another scale waits for its first tile, both scales are possible; fixate_caps knows which. */
static GstCaps *
gst_vidgen_model_transform_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *filter)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);
  GstVidgenScale scales[2];
  GstCaps *result, *other;
  gint n = 0;

  GST_OBJECT_LOCK (self);
  if (self->runner.scale.num)
    scales[n++] = self->runner.scale;
  GST_OBJECT_UNLOCK (self);
  if (gst_vidgen_planner_scale (&self->planner, &scales[n]) &&
      (n == 0 || scales[0].num * scales[1].den != scales[0].den * scales[1].num || scales[0].rate != scales[1].rate))
    n++;
  result = gst_vidgen_scaled_caps (caps, direction, scales, n);
  /* What comes out may be in other memory than what goes in. */
  if (gst_vidgen_context_takes_cuda (&self->planner.context)) {
    other = gst_vidgen_caps_other_memory (result);
    result = gst_caps_merge (result, other);
  } else {
    result = only_memory (result, FALSE);
  }
  if (filter) {
    other = gst_caps_intersect_full (filter, result, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref (result);
    result = other;
  }
  return result;
}

/* Frames in CUDA memory are taken from whoever has not asked: without CUDA the planner says why they cannot be. */
static gboolean
gst_vidgen_model_accept_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps)
{
  if (direction == GST_PAD_SINK && gst_vidgen_caps_in_cuda (caps))
    return gst_vidgen_fits_template (GST_BASE_TRANSFORM_SINK_PAD (trans), caps);
  return GST_BASE_TRANSFORM_CLASS (parent_class)->accept_caps (trans, direction, caps);
}

static GstCaps *
gst_vidgen_model_fixate_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *othercaps)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);

  /* In the memory that the frames are in already, if that will do. */
  if (direction == GST_PAD_SINK) {
    GstCaps *same = only_memory (gst_caps_ref (othercaps), gst_vidgen_caps_in_cuda (caps));

    if (!gst_caps_is_empty (same))
      gst_caps_replace (&othercaps, same);
    gst_caps_unref (same);
  }
  if (direction == GST_PAD_SINK && self->runner.scale.num)
    othercaps = gst_vidgen_pick_scale (othercaps, caps, &self->runner.scale);
  othercaps = GST_BASE_TRANSFORM_CLASS (parent_class)->fixate_caps (trans, direction, caps, othercaps);
  /* What the colours are by default goes by the size, and that may be another one behind the model. */
  if (direction == GST_PAD_SINK && !gst_caps_is_empty (othercaps) && self->runner.colour.yuv &&
      !gst_structure_has_field (gst_caps_get_structure (othercaps, 0), "colorimetry")) {
    gchar *colorimetry = gst_video_colorimetry_to_string (&self->runner.colorimetry);

    othercaps = gst_caps_make_writable (othercaps);
    gst_caps_set_simple (othercaps, "colorimetry", G_TYPE_STRING, colorimetry, NULL);
    g_free (colorimetry);
  }
  return othercaps;
}

static gboolean
gst_vidgen_model_set_caps (GstBaseTransform *trans, GstCaps *incaps, GstCaps *outcaps)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);

  gst_vidgen_runner_land (&self->runner); /* in the old format */
  self->runner.out_cuda = gst_vidgen_caps_in_cuda (outcaps);
  if (self->runner.out_cuda && !(self->runner.engine && self->runner.engine->context)) {
    gst_vidgen_planner_fail (&self->planner,
        g_error_new (GST_STREAM_ERROR, GST_STREAM_ERROR_WRONG_TYPE,
            "What follows takes frames in CUDA memory, and the model runs on the %s: put cudaupload behind it.",
            self->runner.engine ? self->runner.engine->backend->name : "CPU"));
    return FALSE;
  }
  return gst_video_info_from_caps (&self->runner.out_info, outcaps);
}

/* ---- buffers ---- */

static gboolean
gst_vidgen_model_transform_size (
    GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, gsize size, GstCaps *othercaps, gsize *othersize)
{
  GstVideoInfo info;

  /* Not from size: a tile's memory is its frame's. */
  if (!gst_video_info_from_caps (&info, othercaps))
    return FALSE;
  *othersize = GST_VIDEO_INFO_SIZE (&info);
  return TRUE;
}

static gboolean
gst_vidgen_model_propose_allocation (GstBaseTransform *trans, GstQuery *decide, GstQuery *query)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);
  const struct vg_plan_info *info = self->runner.engine ? gst_vidgen_engine_info (self->runner.engine) : NULL;
  gint window = info ? info->window : 1, flying = info && info->flight_bytes ? info->hop : 0;

  /* CUDA memory is to be of our context.  Without vidgenchunk, buffers are frames, and kept. */
  if (self->runner.in_cuda) {
    if (!info || !gst_vidgen_pool_answer (query, window + flying + 1, self->runner.engine->context))
      return FALSE;
  } else if (window > 1 && !self->runner.asked && !gst_vidgen_pool_answer (query, window + 1, NULL)) {
    return FALSE;
  }
  gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  gst_query_add_allocation_meta (query, gst_vidgen_view_api_get_type (), NULL);
  return GST_BASE_TRANSFORM_CLASS (parent_class)->propose_allocation (trans, decide, query);
}

static gboolean
gst_vidgen_model_decide_allocation (GstBaseTransform *trans, GstQuery *query)
{
  GstVidgenRunner *runner = &GST_VIDGEN_MODEL (trans)->runner;
  guint kept = gst_vidgen_window_buffers (&runner->window);

  return gst_vidgen_pool_ensure (query, kept, runner->out_cuda ? runner->engine->context : NULL) &&
      GST_BASE_TRANSFORM_CLASS (parent_class)->decide_allocation (trans, query) && gst_vidgen_pool_use_strides (query);
}

static gboolean
gst_vidgen_model_transform_meta (GstBaseTransform *trans, GstBuffer *out, GstMeta *meta, GstBuffer *in)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);

  return gst_vidgen_meta_survives (meta, self->runner.scale.num != self->runner.scale.den);
}

/* Models and parameters change here, before the base class makes the output buffer: between two frames.  is_discont
 * stays set until a buffer leaves, so it says nothing here. */
static GstFlowReturn
gst_vidgen_model_submit_input_buffer (GstBaseTransform *trans, gboolean is_discont, GstBuffer *input)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);
  gboolean first;
  GstFlowReturn ret;

  if (!gst_vidgen_runner_prepare (&self->runner, input, &first)) {
    gst_buffer_unref (input);
    return GST_FLOW_ERROR;
  }
  ret = GST_BASE_TRANSFORM_CLASS (parent_class)->submit_input_buffer (trans, is_discont, input);
  if (ret == GST_BASE_TRANSFORM_FLOW_DROPPED) /* by the base class's own "qos" */
    gst_vidgen_runner_count_dropped (&self->runner);
  else if (ret == GST_FLOW_OK && first)
    ret = gst_vidgen_runner_begin_frame (&self->runner, trans->queued_buf);
  return ret;
}

static GstFlowReturn
gst_vidgen_model_transform (GstBaseTransform *trans, GstBuffer *input, GstBuffer *output)
{
  return gst_vidgen_runner_run_single (&GST_VIDGEN_MODEL (trans)->runner, input, output);
}

/* Called until nothing comes. */
static GstFlowReturn
gst_vidgen_model_generate_output (GstBaseTransform *trans, GstBuffer **out)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);

  if (self->runner.window.n_tiles)
    return gst_vidgen_runner_take (&self->runner, g_steal_pointer (&trans->queued_buf), out);
  return GST_BASE_TRANSFORM_CLASS (parent_class)->generate_output (trans, out);
}

/* ---- states, properties, class ---- */

static gboolean
gst_vidgen_model_start (GstBaseTransform *trans)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);

  self->warned_fields = FALSE;
  gst_vidgen_runner_start (&self->runner);
  gst_vidgen_planner_start (&self->planner);
  return TRUE;
}

static gboolean
gst_vidgen_model_stop (GstBaseTransform *trans)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);

  gst_vidgen_runner_stop (&self->runner);
  gst_vidgen_planner_stop (&self->planner);
  return TRUE;
}

static GstStateChangeReturn
gst_vidgen_model_change_state (GstElement *element, GstStateChange transition)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (element);
  GstStateChangeReturn ret;

  if (transition == GST_STATE_CHANGE_NULL_TO_READY && !gst_vidgen_planner_load (&self->planner))
    return GST_STATE_CHANGE_FAILURE;
  /* The pads stop when the frame under way is through. */
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    g_atomic_int_set (&self->runner.stop, TRUE);
  ret = GST_ELEMENT_CLASS (parent_class)->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_READY_TO_NULL)
    gst_vidgen_planner_unload (&self->planner);
  return ret;
}

static void
gst_vidgen_model_set_context (GstElement *element, GstContext *context)
{
  gst_vidgen_context_set (&GST_VIDGEN_MODEL (element)->planner.context, context);
  GST_ELEMENT_CLASS (parent_class)->set_context (element, context);
}

static void
gst_vidgen_model_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (object);
  gboolean replan = FALSE;

  if (!gst_vidgen_settings_set (&self->planner, id, value, &replan))
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  if (replan)
    gst_base_transform_reconfigure_sink (GST_BASE_TRANSFORM (self));
}

static void
gst_vidgen_model_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (object);

  if (id == GST_VIDGEN_SETTING_STATS) {
    GST_OBJECT_LOCK (self);
    g_value_take_boxed (value, gst_vidgen_stats_to_structure (&self->runner.stats));
    GST_OBJECT_UNLOCK (self);
  } else if (!gst_vidgen_settings_get (&self->planner, id, value)) {
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
gst_vidgen_model_finalize (GObject *object)
{
  gst_vidgen_runner_clear (&GST_VIDGEN_MODEL (object)->runner);
  gst_vidgen_planner_clear (&GST_VIDGEN_MODEL (object)->planner);
  G_OBJECT_CLASS (parent_class)->finalize (object);
}

static void
gst_vidgen_model_class_init (GstVidgenModelClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS (klass);

  object_class->set_property = gst_vidgen_model_set_property;
  object_class->get_property = gst_vidgen_model_get_property;
  object_class->finalize = gst_vidgen_model_finalize;

  gst_vidgen_settings_install (object_class);

  element_class->change_state = gst_vidgen_model_change_state;
  element_class->set_context = gst_vidgen_model_set_context;
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Neural video model", "Filter/Effect/Video",
      "Runs an ONNX image model (style, upscaling, restoration) on frames, or on the tiles of vidgenchunk",
      "the vidgen authors");

  trans_class->query = gst_vidgen_model_query;
  trans_class->sink_event = gst_vidgen_model_sink_event;
  trans_class->transform_caps = gst_vidgen_model_transform_caps;
  trans_class->accept_caps = gst_vidgen_model_accept_caps;
  trans_class->fixate_caps = gst_vidgen_model_fixate_caps;
  trans_class->set_caps = gst_vidgen_model_set_caps;
  trans_class->transform_size = gst_vidgen_model_transform_size;
  trans_class->propose_allocation = gst_vidgen_model_propose_allocation;
  trans_class->decide_allocation = gst_vidgen_model_decide_allocation;
  trans_class->transform_meta = gst_vidgen_model_transform_meta;
  trans_class->submit_input_buffer = gst_vidgen_model_submit_input_buffer;
  trans_class->generate_output = gst_vidgen_model_generate_output;
  trans_class->transform = gst_vidgen_model_transform;
  trans_class->start = gst_vidgen_model_start;
  trans_class->stop = gst_vidgen_model_stop;
}

static void
gst_vidgen_model_init (GstVidgenModel *self)
{
  gst_base_transform_set_prefer_passthrough (GST_BASE_TRANSFORM (self), FALSE);
  gst_vidgen_planner_init (&self->planner, GST_ELEMENT (self));
  gst_vidgen_runner_init (&self->runner, GST_BASE_TRANSFORM (self), &self->planner);
}
