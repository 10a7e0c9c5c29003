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
 * All memory that the model needs is computed when the caps are known: an element message "vidgen-plan" tells it
 * ("bytes", guint64) with the whole plan as "text" and as JSON ("plan").  What does not fit max-device-memory is
 * refused then, with the least that would do.  While running nothing is allocated.
 *
 * In a live pipeline the time that a frame takes is measured and reported as latency.  A message tells when it grows,
 * or shrinks by more than a quarter, and the application then calls gst_bin_recalculate_latency().
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

#include "gstvidgenframe.h"
#include "gstvidgenparameters.h"
#include "gstvidgenplan.h"
#include "gstvidgenpool.h"
#include "gstvidgensettings.h"
#include "gstvidgensizes.h"
#include "gstvidgenstats.h"

GST_DEBUG_CATEGORY (gst_vidgen_model_debug);
#define GST_CAT_DEFAULT gst_vidgen_model_debug

struct _GstVidgenModel
{
  GstBaseTransform parent;

  GstVidgenPlanner planner;

  /* Under the object lock. */
  gint num, den; /* scale of the engine in use; 0 = none */
  GstVidgenStats stats;
  gboolean live; /* the last LATENCY query said so */

  gint stop; /* atomic: what is computed now is not wanted any more */

  /* The streaming thread's. */
  GstVidgenEngine *engine;
  GstVideoInfo in_info, out_info;
  GstVideoColorimetry colorimetry;
  struct vgk_colour colour;
  gboolean asked; /* there is a vidgenchunk */
  gboolean in_frame;
  guint64 frame_number;
  guint frame_tiles;
  gint64 frame_time;
  gfloat *new_values; /* room for a copy of values */
  gboolean warned_fields, warned_foreign;
};

#define gst_vidgen_model_parent_class parent_class
G_DEFINE_TYPE_WITH_CODE (GstVidgenModel, gst_vidgen_model, GST_TYPE_BASE_TRANSFORM,
    GST_DEBUG_CATEGORY_INIT (gst_vidgen_model_debug, "vidgenmodel", 0, "neural video models"));
GST_ELEMENT_REGISTER_DEFINE (vidgenmodel, "vidgenmodel", GST_RANK_NONE, GST_TYPE_VIDGEN_MODEL);

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
    GST_STATIC_CAPS ("video/x-raw, format = (string) " GST_VIDGEN_MODEL_FORMATS ", " GST_VIDGEN_SIZES));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (GST_VIDGEN_MODEL_FORMATS)));

/* ---- which engine runs ---- */

/* Takes engine; it runs from here on.  The old one goes first, so that the two never add up. */
static gboolean
start_engine (GstVidgenModel *self, GstVidgenEngine *engine)
{
  const struct vg_summary *summary = vg_model_summary (engine->model);
  gboolean rescaled = self->num && self->num * summary->scale_den != self->den * summary->scale_num;
  GError *error = NULL;
  gboolean ok;

  gst_vidgen_planner_retire (&self->planner, self->engine);
  self->engine = engine;
  ok = gst_vidgen_engine_open (engine, &self->stop, &error);
  g_free (self->new_values);
  self->new_values = g_new (gfloat, gst_vidgen_parameters_count (summary) + 1);

  GST_OBJECT_LOCK (self);
  self->num = summary->scale_num;
  self->den = summary->scale_den;
  self->stats.memory = engine->backend->bytes_now (engine->device);
  self->stats.memory_peak = MAX (self->stats.memory_peak, engine->backend->bytes_peak (engine->device));
  GST_OBJECT_UNLOCK (self);
  if (!ok)
    gst_vidgen_planner_fail (&self->planner, error);
  else if (rescaled)
    gst_base_transform_reconfigure_src (GST_BASE_TRANSFORM (self));
  return ok;
}

/* Whole frames of the size of the caps, with the newest model. */
static gboolean
use_whole_engine (GstVidgenModel *self)
{
  struct vg_plan_request request = {0};
  GstVidgenEngine *engine = self->engine;

  gst_vidgen_planner_request (&request, &self->in_info);
  request.tile_width = request.width;
  request.tile_height = request.height;
  request.overlap_x = request.overlap_y = -1;
  if (engine && engine->whole && gst_vidgen_planner_is_newest (&self->planner, engine) &&
      gst_vidgen_planner_same_request (&engine->request, &request))
    return TRUE;
  engine = gst_vidgen_planner_make (&self->planner, &request);
  if (!engine)
    return FALSE;
  engine->whole = TRUE;
  return start_engine (self, engine);
}

/* The engine for a buffer, at the first tile of a frame. */
static gboolean
use_engine_for (GstVidgenModel *self, const GstVidgenTileMeta *tile)
{
  GstVidgenEngine *engine;

  if (!tile)
    return use_whole_engine (self);
  if (self->engine && self->engine->grid == tile->grid)
    return TRUE;
  engine = gst_vidgen_planner_take (&self->planner, tile->grid, &self->in_info);
  if (engine)
    return start_engine (self, engine);
  if (!self->warned_foreign) {
    self->warned_foreign = TRUE;
    GST_ELEMENT_WARNING (self, STREAM, ENCODE,
        ("These tiles were not cut for this model: seams may be seen. Two models need a pair of vidgenchunk and "
         "vidgenstitch each."),
        (NULL));
  }
  return use_whole_engine (self);
}

/* ---- negotiation ---- */

/* The model's scale, on the way from vidgenchunk to vidgenstitch. */
static void
add_scale (GstVidgenModel *self, GstStructure *s)
{
  gint before_num = 1, before_den = 1, num, den;

  if (!gst_vidgen_planner_scale (&self->planner, &num, &den))
    return;
  gst_structure_get (s, "scale-num", G_TYPE_INT, &before_num, "scale-den", G_TYPE_INT, &before_den, NULL);
  gst_structure_set (s, "scale-num", G_TYPE_INT, num * before_num, "scale-den", G_TYPE_INT, den * before_den, NULL);
}

/* In a live pipeline a frame is held for as long as it takes to compute it; only there does it count. */
static void
add_latency (GstVidgenModel *self, GstQuery *query)
{
  GstClockTime min, max, own;
  gboolean live;

  gst_query_parse_latency (query, &live, &min, &max);
  GST_OBJECT_LOCK (self);
  self->live = live;
  own = live ? self->stats.latency : 0;
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

  ok = GST_BASE_TRANSFORM_CLASS (parent_class)->query (trans, direction, query);
  if (ok && GST_QUERY_TYPE (query) == GST_QUERY_CUSTOM && direction == GST_PAD_SINK &&
      gst_structure_has_name (gst_query_get_structure (query), GST_VIDGEN_QUERY_SIZES))
    add_scale (self, gst_query_writable_structure (query));
  if (ok && GST_QUERY_TYPE (query) == GST_QUERY_LATENCY && direction == GST_PAD_SRC)
    add_latency (self, query);
  return ok;
}

/* Tiles do not say what a frame's colours are when the caps do not: the usual ones go by the frame's size. */
static void
update_colour (GstVidgenModel *self, const GstCaps *caps)
{
  GstVideoInfo info = self->in_info;

  if (!gst_structure_has_field (gst_caps_get_structure (caps, 0), "colorimetry") && self->engine)
    gst_video_info_set_format (
        &info, GST_VIDEO_INFO_FORMAT (&info), self->engine->request.width, self->engine->request.height);
  self->colorimetry = info.colorimetry;
  gst_vidgen_colour_from_info (&info, &self->colour);
}

static gboolean
receive_caps (GstVidgenModel *self, GstCaps *caps)
{
  GstVidgenEngine *engine;

  if (!gst_video_info_from_caps (&self->in_info, caps))
    return FALSE;
  self->asked = self->asked || gst_vidgen_planner_has_planned (&self->planner);
  if (!self->asked) {
    if (!use_whole_engine (self))
      return FALSE;
  } else {
    engine = gst_vidgen_planner_take (&self->planner, NULL, &self->in_info);
    if (engine && !start_engine (self, engine))
      return FALSE;
  }
  update_colour (self, caps);
  if (GST_VIDEO_INFO_IS_INTERLACED (&self->in_info) && !self->warned_fields) {
    self->warned_fields = TRUE;
    GST_ELEMENT_WARNING (self, STREAM, FORMAT,
        ("The video is interlaced, and the model sees both fields as one picture: lines of moving edges will be taken "
         "for detail. Put \"deinterlace\" before the model."),
        (NULL));
  }
  return TRUE;
}

static void
count_dropped (GstVidgenModel *self)
{
  GST_OBJECT_LOCK (self);
  self->stats.dropped++;
  GST_OBJECT_UNLOCK (self);
}

static gboolean
gst_vidgen_model_sink_event (GstBaseTransform *trans, GstEvent *event)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);

  if (GST_EVENT_TYPE (event) == GST_EVENT_CAPS) {
    GstCaps *caps;

    gst_event_parse_caps (event, &caps);
    if (!receive_caps (self, caps)) {
      gst_event_unref (event);
      return FALSE;
    }
  } else if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_START) {
    g_atomic_int_set (&self->stop, TRUE);
  } else if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP) {
    g_atomic_int_set (&self->stop, FALSE);
    self->in_frame = FALSE;
  } else if (GST_EVENT_TYPE (event) == GST_EVENT_GAP &&
      gst_structure_has_field (gst_event_get_structure (event), GST_VIDGEN_GAP_DROPPED)) {
    count_dropped (self);
  }
  return GST_BASE_TRANSFORM_CLASS (parent_class)->sink_event (trans, event);
}

/* While a new model with another scale waits for its first tile, both scales are possible; fixate_caps knows which. */
static GstCaps *
gst_vidgen_model_transform_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *filter)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);
  gint num[2] = {0, 0}, den[2] = {0, 0}, n = 0;

  GST_OBJECT_LOCK (self);
  if (self->num) {
    num[n] = self->num;
    den[n++] = self->den;
  }
  GST_OBJECT_UNLOCK (self);
  if (gst_vidgen_planner_scale (&self->planner, &num[n], &den[n]) && (n == 0 || num[0] * den[1] != den[0] * num[1]))
    n++;
  return gst_vidgen_scaled_caps (caps, direction, filter, num, den, n);
}

static GstCaps *
gst_vidgen_model_fixate_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *othercaps)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);

  if (direction == GST_PAD_SINK && self->num) {
    const GstStructure *in = gst_caps_get_structure (caps, 0);
    GstCaps *exact, *all = othercaps;
    gint width = 0, height = 0;

    gst_structure_get (in, "width", G_TYPE_INT, &width, "height", G_TYPE_INT, &height, NULL);
    exact = gst_caps_new_simple ("video/x-raw", "width", G_TYPE_INT,
        gst_vidgen_scale_size (width, self->num, self->den), "height", G_TYPE_INT,
        gst_vidgen_scale_size (height, self->num, self->den), NULL);
    othercaps = gst_caps_intersect_full (all, exact, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref (exact);
    gst_caps_unref (all);
  }
  othercaps = GST_BASE_TRANSFORM_CLASS (parent_class)->fixate_caps (trans, direction, caps, othercaps);
  /* What the colours are by default goes by the size, and that may be another one behind the model. */
  if (direction == GST_PAD_SINK && !gst_caps_is_empty (othercaps) && self->colour.yuv &&
      !gst_structure_has_field (gst_caps_get_structure (othercaps, 0), "colorimetry")) {
    gchar *colorimetry = gst_video_colorimetry_to_string (&self->colorimetry);

    othercaps = gst_caps_make_writable (othercaps);
    gst_caps_set_simple (othercaps, "colorimetry", G_TYPE_STRING, colorimetry, NULL);
    g_free (colorimetry);
  }
  return othercaps;
}

static gboolean
gst_vidgen_model_set_caps (GstBaseTransform *trans, GstCaps *incaps, GstCaps *outcaps)
{
  return gst_video_info_from_caps (&GST_VIDGEN_MODEL (trans)->out_info, outcaps);
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
  gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  gst_query_add_allocation_meta (query, gst_vidgen_view_api_get_type (), NULL);
  return GST_BASE_TRANSFORM_CLASS (parent_class)->propose_allocation (trans, decide, query);
}

static gboolean
gst_vidgen_model_decide_allocation (GstBaseTransform *trans, GstQuery *query)
{
  return gst_vidgen_pool_ensure (query) && GST_BASE_TRANSFORM_CLASS (parent_class)->decide_allocation (trans, query) &&
      gst_vidgen_pool_use_strides (query);
}

static gboolean
gst_vidgen_model_transform_meta (GstBaseTransform *trans, GstBuffer *out, GstMeta *meta, GstBuffer *in)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);

  return gst_vidgen_meta_survives (meta, self->num != self->den);
}

/* At the start of a frame. */
static gboolean
apply_parameters (GstVidgenModel *self)
{
  GError *error = NULL;

  if (gst_vidgen_planner_new_values (&self->planner, self->engine, self->new_values) &&
      !gst_vidgen_engine_set_parameters (self->engine, self->new_values, &error)) {
    gst_vidgen_planner_fail (&self->planner, error);
    return FALSE;
  }
  return TRUE;
}

/* Models and parameters change here, before the base class makes the output buffer: between two frames. */
static GstFlowReturn
gst_vidgen_model_submit_input_buffer (GstBaseTransform *trans, gboolean is_discont, GstBuffer *input)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);
  const GstVidgenTileMeta *tile = gst_buffer_get_vidgen_tile_meta (input);
  GstFlowReturn ret;

  if (tile)
    gst_vidgen_tile_check_written (input, tile);
  if (GST_VIDEO_INFO_FORMAT (&self->in_info) != GST_VIDEO_FORMAT_UNKNOWN &&
      (!tile || !self->in_frame || tile->record->number != self->frame_number)) {
    if (!use_engine_for (self, tile) || !apply_parameters (self)) {
      gst_buffer_unref (input);
      return GST_FLOW_ERROR;
    }
    if (is_discont && self->engine && self->engine->run)
      vg_run_reset (self->engine->run);
    self->in_frame = TRUE;
    self->frame_number = tile ? tile->record->number : 0;
    self->frame_tiles = 0;
    self->frame_time = 0;
  }
  ret = GST_BASE_TRANSFORM_CLASS (parent_class)->submit_input_buffer (trans, is_discont, input);
  if (ret == GST_BASE_TRANSFORM_FLOW_DROPPED) /* by the base class's own "qos" */
    count_dropped (self);
  return ret;
}

static void
count_tile (GstVidgenModel *self, const GstVidgenTileMeta *tile, gint64 began)
{
  gint64 now = g_get_monotonic_time ();
  struct vg_run_info info;
  gboolean tell = FALSE, warn;

  self->frame_tiles++;
  self->frame_time += now - began;
  vg_run_info (self->engine->run, &info);
  GST_OBJECT_LOCK (self);
  self->stats.norm_drift = info.drift;
  self->stats.norm_cuts = info.cuts;
  warn = info.rescued && !self->stats.rescued;
  self->stats.rescued = info.rescued;
  self->stats.tiles++;
  if (!tile || self->frame_tiles == (guint) (tile->grid->grid.x.n * tile->grid->grid.y.n))
    tell = gst_vidgen_stats_add_frame (&self->stats, began, now, self->frame_time) && self->live;
  GST_OBJECT_UNLOCK (self);
  if (warn)
    GST_ELEMENT_WARNING (self, STREAM, ENCODE,
        ("A tile overflowed in half precision and was run again in single; stats count them (tiles-rescued). If there are "
         "many, precision=fp32 saves the time of the first try."),
        (NULL));
  if (tell)
    gst_element_post_message (GST_ELEMENT (self), gst_message_new_latency (GST_OBJECT (self)));
}

static GstFlowReturn
gst_vidgen_model_transform (GstBaseTransform *trans, GstBuffer *input, GstBuffer *output)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);
  GstVideoFrame in, out;
  const GstVidgenTileMeta *tile = gst_buffer_get_vidgen_tile_meta (input);
  struct vgk_error err = {{0}};
  enum vgk_status status;
  GError *error = NULL;
  gint64 began = g_get_monotonic_time ();

  if (!gst_vidgen_engine_takes (self->engine, &self->in_info)) {
    GST_ELEMENT_ERROR (self, STREAM, WRONG_TYPE,
        ("Tiles of %d x %d pixels were planned, and %d x %d come. What is between vidgenchunk and vidgenmodel must not "
         "change their size.",
            self->engine->grid->grid.x.tile, self->engine->grid->grid.y.tile, GST_VIDEO_INFO_WIDTH (&self->in_info),
            GST_VIDEO_INFO_HEIGHT (&self->in_info)),
        (NULL));
    return GST_FLOW_ERROR;
  }
  if (!gst_video_frame_map (&in, &self->in_info, input, GST_MAP_READ | GST_VIDEO_FRAME_MAP_FLAG_NO_REF)) {
    GST_ELEMENT_ERROR (self, RESOURCE, READ, ("A frame that came in cannot be read."), (NULL));
    return GST_FLOW_ERROR;
  }
  if (!gst_video_frame_map (&out, &self->out_info, output, GST_MAP_WRITE | GST_VIDEO_FRAME_MAP_FLAG_NO_REF)) {
    gst_video_frame_unmap (&in);
    GST_ELEMENT_ERROR (self, RESOURCE, WRITE, ("The memory for a frame cannot be written to."), (NULL));
    return GST_FLOW_ERROR;
  }
  status = gst_vidgen_engine_run (self->engine, tile, &in, &out, &self->colour, &err);
  gst_video_frame_unmap (&out);
  gst_video_frame_unmap (&in);
  if (status != VGK_OK && g_atomic_int_get (&self->stop))
    return GST_FLOW_FLUSHING;
  if (status != VGK_OK) {
    gst_vidgen_set_error (&error, status, &err);
    return gst_vidgen_planner_fail (&self->planner, error);
  }
  count_tile (self, tile, began);
  return GST_FLOW_OK;
}

/* ---- states, properties, class ---- */

static gboolean
gst_vidgen_model_start (GstBaseTransform *trans)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);

  gst_video_info_init (&self->in_info);
  g_atomic_int_set (&self->stop, FALSE);
  self->asked = self->in_frame = self->warned_fields = self->warned_foreign = FALSE;
  GST_OBJECT_LOCK (self);
  memset (&self->stats, 0, sizeof self->stats);
  self->live = FALSE;
  GST_OBJECT_UNLOCK (self);
  gst_vidgen_planner_start (&self->planner);
  return TRUE;
}

static gboolean
gst_vidgen_model_stop (GstBaseTransform *trans)
{
  GstVidgenModel *self = GST_VIDGEN_MODEL (trans);

  g_clear_pointer (&self->engine, gst_vidgen_engine_free);
  g_clear_pointer (&self->new_values, g_free);
  gst_vidgen_planner_stop (&self->planner);
  GST_OBJECT_LOCK (self);
  self->num = self->den = 0;
  self->stats.memory = 0;
  GST_OBJECT_UNLOCK (self);
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
    g_atomic_int_set (&self->stop, TRUE);
  ret = GST_ELEMENT_CLASS (parent_class)->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_READY_TO_NULL)
    gst_vidgen_planner_unload (&self->planner);
  return ret;
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
    g_value_take_boxed (value, gst_vidgen_stats_to_structure (&self->stats));
    GST_OBJECT_UNLOCK (self);
  } else if (!gst_vidgen_settings_get (&self->planner, id, value)) {
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
gst_vidgen_model_finalize (GObject *object)
{
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
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Neural video model", "Filter/Effect/Video",
      "Runs an ONNX image model (style, upscaling, restoration) on frames, or on the tiles of vidgenchunk",
      "the vidgen authors");

  trans_class->query = gst_vidgen_model_query;
  trans_class->sink_event = gst_vidgen_model_sink_event;
  trans_class->transform_caps = gst_vidgen_model_transform_caps;
  trans_class->fixate_caps = gst_vidgen_model_fixate_caps;
  trans_class->set_caps = gst_vidgen_model_set_caps;
  trans_class->transform_size = gst_vidgen_model_transform_size;
  trans_class->propose_allocation = gst_vidgen_model_propose_allocation;
  trans_class->decide_allocation = gst_vidgen_model_decide_allocation;
  trans_class->transform_meta = gst_vidgen_model_transform_meta;
  trans_class->submit_input_buffer = gst_vidgen_model_submit_input_buffer;
  trans_class->transform = gst_vidgen_model_transform;
  trans_class->start = gst_vidgen_model_start;
  trans_class->stop = gst_vidgen_model_stop;
}

static void
gst_vidgen_model_init (GstVidgenModel *self)
{
  gst_vidgen_planner_init (&self->planner, GST_ELEMENT (self));
}
