/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-vidgenchunk
 * @title: vidgenchunk
 * @short_description: Cuts video frames into overlapping tiles
 * @see_also: vidgenmodel, vidgenstitch, vidgen
 *
 * Splits each frame into tiles of one size that overlap, and pushes them as ordinary video buffers, so that a model, or
 * any element that works on one frame at a time, sees pieces that fit its memory.  #vidgenstitch puts the frames
 * together again: with their pixels, timestamps, flags and metadata.
 *
 * Tiles are views of the frame, without a copy, where everything up to #vidgenstitch only reads them; else they are
 * packed copies.
 *
 * Frames in CUDA memory pass as one tile, as they are: the sizes of tiles say nothing then, and a model keeps to its
 * memory by other means.  They need a #vidgenmodel that runs on the same GPU, or nothing but #vidgenstitch behind.
 *
 * With a #vidgenmodel behind it, the model says which tiles it needs, and the properties are wishes; without one, the
 * properties decide.  Elements that drop, repeat or merge buffers (videorate, a leaky queue, a deinterlacer) cannot
 * stand between vidgenchunk and vidgenstitch: the tiles of a frame share a timestamp.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 videotestsrc ! vidgenchunk tile-width=128 tile-height=128 ! videobalance saturation=0 ! vidgenstitch ! videoconvert ! autovideosink
 * ]| Works on tiles of 128 by 128 pixels.
 * |[
 * gst-launch-1.0 videotestsrc ! video/x-raw,width=320,height=240 ! vidgenchunk tile-width=80 tile-height=80 ! videoflip video-direction=horiz ! vidgenstitch ! videoconvert ! autovideosink
 * ]| Mirrors each tile in its place.
 *
 * Since: 0.1
 */
#include "gstvidgenchunk.h"

#include "gstvidgencuda.h"
#include "gstvidgenframe.h"
#include "gstvidgenplan.h"
#include "gstvidgenpool.h"
#include "gstvidgenqos.h"
#include "gstvidgensizes.h"
#include "gstvidgentilemeta.h"
#include "gstvidgenview.h"
#include "gstvidgenwishes.h"

GST_DEBUG_CATEGORY_STATIC (gst_vidgen_chunk_debug);
#define GST_CAT_DEFAULT gst_vidgen_chunk_debug

/* Flags of a frame that hold for each of its tiles. */
#define TILE_FLAGS \
  (GST_VIDEO_BUFFER_FLAG_INTERLACED | GST_VIDEO_BUFFER_FLAG_TFF | GST_VIDEO_BUFFER_FLAG_RFF | \
      GST_VIDEO_BUFFER_FLAG_ONEFIELD)

struct _GstVidgenChunk
{
  GstElement parent;
  GstPad *sinkpad, *srcpad;

  GstVidgenWishes wishes;

  /* Streaming thread. */
  GstVideoInfo tile_info;
  GstCaps *caps;       /* of frames */
  GstCaps *refused;    /* an error has been posted for these */
  GstBufferPool *pool; /* of packed tiles */
  gboolean views;      /* nothing between here and stitch writes */
  gboolean in_cuda;    /* frames lie in CUDA memory */
  gint frames;         /* that are in use at once: tiles are views of them */
  guint64 number;
  GstVidgenQos qos;

  /* Object lock: queries ask for them from elsewhere. */
  GstVideoInfo info;
  GstVidgenGrid *grid; /* NULL: not negotiated */
};

#define PROP_QOS GST_VIDGEN_N_WISHES

#define CAPS GST_VIDGEN_CUDA_CAPS (GST_VIDGEN_ANY_SIZE) GST_VIDEO_CAPS_MAKE (GST_VIDGEN_FORMATS)
static GstStaticPadTemplate sink_template =
GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (CAPS));
static GstStaticPadTemplate src_template =
GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (CAPS));

G_DEFINE_TYPE (GstVidgenChunk, gst_vidgen_chunk, GST_TYPE_ELEMENT);
GST_ELEMENT_REGISTER_DEFINE (vidgenchunk, "vidgenchunk", GST_RANK_NONE, GST_TYPE_VIDGEN_CHUNK);

/* Takes the grid. */
static void
set_grid (GstVidgenChunk *self, GstVidgenGrid *grid)
{
  GstVidgenGrid *old;

  GST_OBJECT_LOCK (self);
  old = self->grid;
  self->grid = grid;
  GST_OBJECT_UNLOCK (self);
  g_clear_pointer (&old, gst_vidgen_grid_unref);
}

static void
clear_pool (GstVidgenChunk *self)
{
  if (self->pool)
    gst_buffer_pool_set_active (self->pool, FALSE);
  gst_clear_object (&self->pool);
}

/* The model's plan, or, where there is no model, our own. */
static GstVidgenGrid *
ask_plan (GstVidgenChunk *self)
{
  GstVidgenGrid *grid = NULL;
  GError *error = NULL;

  self->frames = 1;
  if (!gst_vidgen_wishes_ask (&self->wishes, self->srcpad, self->caps, &grid, &self->frames)) {
    GST_INFO_OBJECT (self, "the model refused %" GST_PTR_FORMAT, self->caps);
    return NULL;
  }
  if (!grid && !(grid = gst_vidgen_wishes_grid (&self->wishes, &self->info, self->in_cuda, &error)))
    gst_vidgen_post (self, GST_MESSAGE_ERROR, error);
  return grid;
}

static gboolean
setup_tiles (GstVidgenChunk *self, GstCaps *tile_caps)
{
  GstQuery *query = gst_query_new_allocation (tile_caps, FALSE);
  GstStructure *config;

  self->views = gst_pad_peer_query (self->srcpad, query) &&
      gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL) &&
      gst_query_find_allocation_meta (query, gst_vidgen_view_api_get_type (), NULL);
  gst_query_unref (query);

  clear_pool (self);
  self->pool = gst_video_buffer_pool_new ();
  config = gst_buffer_pool_get_config (self->pool);
  gst_buffer_pool_config_set_params (config, tile_caps, GST_VIDEO_INFO_SIZE (&self->tile_info), 0, 0);
  return gst_buffer_pool_set_config (self->pool, config) && gst_buffer_pool_set_active (self->pool, TRUE);
}

static gboolean
negotiate (GstVidgenChunk *self)
{
  GstVidgenGrid *grid;
  GstCaps *tile_caps;
  gint before = self->frames;
  gboolean ok;

  set_grid (self, NULL);
  grid = ask_plan (self);
  /* While flushing, queries fail: what came out is not a plan. */
  if (GST_PAD_IS_FLUSHING (self->srcpad)) {
    gst_pad_mark_reconfigure (self->srcpad);
    g_clear_pointer (&grid, gst_vidgen_grid_unref);
    return FALSE;
  }
  if (!grid) {
    gst_caps_replace (&self->refused, self->caps);
    return FALSE;
  }

  tile_caps = gst_caps_copy (self->caps);
  gst_caps_set_simple (
      tile_caps, "width", G_TYPE_INT, grid->grid.x.tile, "height", G_TYPE_INT, grid->grid.y.tile, NULL);
  ok = gst_video_info_from_caps (&self->tile_info, tile_caps) &&
      gst_pad_push_event (self->srcpad, gst_event_new_caps (tile_caps)) && setup_tiles (self, tile_caps);
  gst_caps_unref (tile_caps);
  if (!ok) {
    gst_vidgen_grid_unref (grid);
    gst_pad_mark_reconfigure (self->srcpad);
    return FALSE;
  }
  GST_INFO_OBJECT (self, "%dx%d in %d by %d tiles of %dx%d, %s", self->info.width, self->info.height, grid->grid.x.n,
      grid->grid.y.n, grid->grid.x.tile, grid->grid.y.tile, self->views ? "views" : "packed");
  set_grid (self, grid);
  /* A model that was set while playing may keep more frames than upstream's pool was asked for. */
  if (before && self->frames > before)
    gst_pad_push_event (self->sinkpad, gst_event_new_reconfigure ());
  return TRUE;
}

static gboolean
set_caps (GstVidgenChunk *self, GstCaps *caps)
{
  GstVideoInfo info;
  gboolean asked = gst_pad_check_reconfigure (self->srcpad);

  if (!gst_video_info_from_caps (&info, caps))
    return FALSE;
  /* Caps that were not accepted are sent again with each buffer. */
  if (self->refused && !asked && gst_caps_is_equal (self->refused, caps))
    return FALSE;
  gst_clear_caps (&self->refused);
  gst_caps_replace (&self->caps, caps);
  self->in_cuda = gst_vidgen_caps_in_cuda (caps);
  GST_OBJECT_LOCK (self);
  self->info = info;
  GST_OBJECT_UNLOCK (self);
  return negotiate (self);
}

static GstBuffer *
make_tile (GstVidgenChunk *self, GstVidgenFrameRecord *record, GstVidgenGrid *grid, guint column, guint row)
{
  const struct vg_axis *ax = &grid->grid.x, *ay = &grid->grid.y;
  gint x = ax->origin[column], y = ay->origin[row];
  GstBuffer *tile = NULL;

  if (self->in_cuda)
    tile = gst_vidgen_whole_new (record);
  else if (self->views && !g_atomic_int_get (&grid->written) && x + ax->tile <= ax->frame && y + ay->tile <= ay->frame)
    tile = gst_vidgen_view_new (record, x, y, ax->tile, ay->tile);
  if (!tile && !self->in_cuda)
    tile = gst_vidgen_packed_new (record, x, y, &self->tile_info, self->pool);
  if (!tile)
    return NULL;
  gst_buffer_add_vidgen_tile_meta (tile, record, grid, column, row);
  GST_BUFFER_PTS (tile) = record->pts;
  GST_BUFFER_DTS (tile) = record->dts;
  GST_BUFFER_DURATION (tile) = record->duration;
  GST_BUFFER_FLAG_SET (tile, record->flags & TILE_FLAGS);
  if (column == 0 && row == 0)
    GST_BUFFER_FLAG_SET (tile, record->flags & GST_BUFFER_FLAG_DISCONT);
  return tile;
}

static GstFlowReturn
push_tiles (GstVidgenChunk *self, GstVidgenFrameRecord *record)
{
  GstVidgenGrid *grid = self->grid;
  gint columns = grid->grid.x.n, n = columns * grid->grid.y.n;
  GstFlowReturn ret = GST_FLOW_OK;

  for (gint i = 0; i < n && ret == GST_FLOW_OK; i++) {
    GstBuffer *tile = make_tile (self, record, grid, i % columns, i / columns);

    if (!tile) {
      if (GST_PAD_IS_FLUSHING (self->srcpad))
        return GST_FLOW_FLUSHING;
      GST_ELEMENT_ERROR (self, RESOURCE, NO_SPACE_LEFT,
          ("There is no memory for a tile of %dx%d; give smaller tiles.", self->tile_info.width,
              self->tile_info.height),
          (NULL));
      return GST_FLOW_ERROR;
    }
    ret = gst_pad_push (self->srcpad, tile);
  }
  return ret;
}

/* A gap tells sinks that wait, and vidgenmodel, which counts, that nothing will come in the frame's place. */
static GstFlowReturn
drop_frame (GstVidgenChunk *self, GstBuffer *buffer)
{
  GstEvent *event = gst_event_new_gap (GST_BUFFER_PTS (buffer), GST_BUFFER_DURATION (buffer));

  gst_pad_push_event (self->srcpad, gst_vidgen_mark_gap (event, TRUE));
  gst_buffer_unref (buffer);
  self->qos.gap = TRUE;
  return GST_FLOW_OK;
}

static GstFlowReturn
gst_vidgen_chunk_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstVidgenChunk *self = GST_VIDGEN_CHUNK (parent);
  GstVidgenFrameRecord *record;
  GstFlowReturn ret;

  if (self->caps && gst_pad_check_reconfigure (self->srcpad))
    negotiate (self);
  if (!self->grid) {
    gst_buffer_unref (buffer);
    return GST_PAD_IS_FLUSHING (self->srcpad) ? GST_FLOW_FLUSHING : GST_FLOW_NOT_NEGOTIATED;
  }

  if (gst_vidgen_qos_is_late (&self->qos, buffer))
    return drop_frame (self, buffer);
  record = gst_vidgen_frame_record_new (self->number++, &self->info, buffer, self->in_cuda);
  if (!record) {
    GST_ELEMENT_ERROR (self, STREAM, FAILED,
        ("A frame of %dx%d %s cannot be read.", self->info.width, self->info.height, GST_VIDEO_INFO_NAME (&self->info)),
        ("buffer %" GST_PTR_FORMAT ": is it as large as its caps say?", buffer));
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  gst_buffer_unref (buffer);
  if (self->qos.gap)
    record->flags |= GST_BUFFER_FLAG_DISCONT;
  self->qos.gap = FALSE;
  ret = push_tiles (self, record);
  gst_vidgen_frame_record_unref (record);
  return ret;
}

static gboolean
gst_vidgen_chunk_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstVidgenChunk *self = GST_VIDGEN_CHUNK (parent);

  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_CAPS: {
      GstCaps *caps;
      gboolean ok;

      gst_event_parse_caps (event, &caps);
      ok = set_caps (self, caps);
      gst_event_unref (event);
      return ok;
    }
    case GST_EVENT_SEGMENT:
      gst_event_copy_segment (event, &self->qos.segment);
      break;
    case GST_EVENT_FLUSH_STOP:
      gst_vidgen_qos_reset (&self->qos);
      break;
    case GST_EVENT_GAP:
      event = gst_vidgen_mark_gap (event, FALSE);
      break;
    default:
      break;
  }
  return gst_pad_event_default (pad, parent, event);
}

static gboolean
gst_vidgen_chunk_src_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstVidgenChunk *self = GST_VIDGEN_CHUNK (parent);
  GstEvent *qos = gst_vidgen_unwrap_qos (event);

  if (!qos)
    return gst_pad_event_default (pad, parent, event);
  gst_event_unref (event);
  gst_vidgen_qos_take_event (&self->qos, qos);
  return gst_pad_push_event (self->sinkpad, qos);
}

/* Any size is cut into tiles of any size; but what follows the stitch may take certain sizes only. */
static GstCaps *
query_caps (GstVidgenChunk *self, GstPad *pad, GstCaps *filter)
{
  GstPad *other = pad == self->sinkpad ? self->srcpad : self->sinkpad;
  GstCaps *caps = gst_vidgen_any_size_caps (pad, other, filter), *sizes = NULL;
  GstQuery *query;

  if (pad != self->sinkpad)
    return caps;
  query = gst_query_new_custom (GST_QUERY_CUSTOM, gst_structure_new_empty (GST_VIDGEN_QUERY_SIZES));
  if (gst_pad_peer_query (self->srcpad, query)) {
    const GstStructure *answer = gst_query_get_structure (query);
    gint num = 1, den = 1;

    gst_structure_get (answer, "scale-num", G_TYPE_INT, &num, NULL);
    gst_structure_get (answer, "scale-den", G_TYPE_INT, &den, NULL);
    if (gst_structure_get (answer, "caps", GST_TYPE_CAPS, &sizes, NULL))
      caps = gst_vidgen_limit_sizes (caps, sizes, num, den);
    gst_clear_caps (&sizes);
  }
  gst_query_unref (query);
  return caps;
}

static gboolean
answer_frame (GstVidgenChunk *self, GstQuery *query)
{
  gboolean known;

  GST_OBJECT_LOCK (self);
  known = self->grid != NULL;
  if (known)
    gst_structure_set (gst_query_writable_structure (query), "width", G_TYPE_INT, self->info.width, "height",
        G_TYPE_INT, self->info.height, "grid", GST_TYPE_VIDGEN_GRID, self->grid, NULL);
  GST_OBJECT_UNLOCK (self);
  return known;
}

static gboolean
gst_vidgen_chunk_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstVidgenChunk *self = GST_VIDGEN_CHUNK (parent);

  switch (GST_QUERY_TYPE (query)) {
    case GST_QUERY_CAPS: {
      GstCaps *filter, *caps;

      gst_query_parse_caps (query, &filter);
      caps = query_caps (self, pad, filter);
      gst_query_set_caps_result (query, caps);
      gst_caps_unref (caps);
      return TRUE;
    }
    case GST_QUERY_ACCEPT_CAPS: {
      GstCaps *caps;

      /* Where no model takes them, it is to say why. */
      gst_query_parse_accept_caps (query, &caps);
      if (pad != self->sinkpad || !gst_vidgen_caps_in_cuda (caps))
        break;
      gst_query_set_accept_caps_result (query, gst_vidgen_fits_template (pad, caps));
      return TRUE;
    }
    case GST_QUERY_ALLOCATION:
      if (pad == self->sinkpad && self->in_cuda)
        return gst_pad_peer_query (self->srcpad, query);
      if (pad == self->sinkpad)
        return gst_vidgen_pool_answer (query, MAX (self->frames, 1) + 1, NULL); /* and the next one */
      break;
    case GST_QUERY_CUSTOM: {
      const GstStructure *ask = gst_query_get_structure (query);

      if (gst_structure_has_name (ask, GST_VIDGEN_QUERY_FRAME))
        return pad == self->srcpad && answer_frame (self, query);
      /* Another section's chunk, upstream. */
      if (gst_structure_has_name (ask, GST_VIDGEN_QUERY_PLAN) || gst_structure_has_name (ask, GST_VIDGEN_QUERY_SIZES))
        return FALSE;
      break;
    }
    default:
      break;
  }
  return gst_pad_query_default (pad, parent, query);
}

static GstStateChangeReturn
gst_vidgen_chunk_change_state (GstElement *element, GstStateChange transition)
{
  GstVidgenChunk *self = GST_VIDGEN_CHUNK (element);
  GstStateChangeReturn ret = GST_ELEMENT_CLASS (gst_vidgen_chunk_parent_class)->change_state (element, transition);

  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    set_grid (self, NULL);
    clear_pool (self);
    gst_clear_caps (&self->caps);
    gst_clear_caps (&self->refused);
    self->number = 0;
    self->frames = 0;
    gst_vidgen_qos_reset (&self->qos);
  }
  return ret;
}

static void
gst_vidgen_chunk_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstVidgenChunk *self = GST_VIDGEN_CHUNK (object);
  gint *size = gst_vidgen_wishes_size (&self->wishes, id);

  GST_OBJECT_LOCK (self);
  if (size)
    *size = g_value_get_int (value);
  else if (id == PROP_QOS)
    self->qos.enabled = g_value_get_boolean (value);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  GST_OBJECT_UNLOCK (self);
}

static void
gst_vidgen_chunk_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstVidgenChunk *self = GST_VIDGEN_CHUNK (object);
  const gint *size = gst_vidgen_wishes_size (&self->wishes, id);

  GST_OBJECT_LOCK (self);
  if (size)
    g_value_set_int (value, *size);
  else if (id == PROP_QOS)
    g_value_set_boolean (value, self->qos.enabled);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  GST_OBJECT_UNLOCK (self);
}

static void
gst_vidgen_chunk_class_init (GstVidgenChunkClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (gst_vidgen_chunk_debug, "vidgenchunk", 0, "frames into tiles");
  /* Whoever answers the plan query may look it up by name. */
  g_type_ensure (GST_TYPE_VIDGEN_GRID);
  object_class->set_property = gst_vidgen_chunk_set_property;
  object_class->get_property = gst_vidgen_chunk_get_property;
  element_class->change_state = gst_vidgen_chunk_change_state;

  gst_vidgen_wishes_install (object_class);
  /**
   * GstVidgenChunk:qos:
   *
   * Off, every frame is made, however late.  On, a frame is dropped before any of its tiles is made when the sink is
   * past its time already: a QoS message tells it, a gap goes on in its place, and #GstVidgenModel:stats counts it.
   * Models of several frames see what is left as if the frame had never been: windows close up, states are kept.
   */
  g_object_class_install_property (object_class, PROP_QOS,
      g_param_spec_boolean ("qos", "QoS", "Drop frames that the sink says are late already", FALSE,
          G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING));

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Video tile splitter", "Filter/Video",
      "Cuts frames into overlapping tiles that vidgenstitch puts together again", "the vidgen authors");
}

static void
gst_vidgen_chunk_init (GstVidgenChunk *self)
{
  gst_vidgen_wishes_init (&self->wishes);
  self->qos.element = GST_ELEMENT (self);
  gst_vidgen_qos_reset (&self->qos);

  self->sinkpad = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sinkpad, gst_vidgen_chunk_chain);
  gst_pad_set_event_function (self->sinkpad, gst_vidgen_chunk_sink_event);
  gst_pad_set_query_function (self->sinkpad, gst_vidgen_chunk_query);
  gst_element_add_pad (GST_ELEMENT (self), self->sinkpad);

  self->srcpad = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_set_event_function (self->srcpad, gst_vidgen_chunk_src_event);
  gst_pad_set_query_function (self->srcpad, gst_vidgen_chunk_query);
  gst_element_add_pad (GST_ELEMENT (self), self->srcpad);
}
