/* SPDX-License-Identifier: LGPL-2.1-or-later */
/**
 * SECTION:element-vidgenstitch
 * @title: vidgenstitch
 * @short_description: Puts tiles together into video frames
 * @see_also: vidgenchunk, vidgenmodel, vidgen
 *
 * Takes the tiles that #vidgenchunk made of a frame, whatever was done to their pixels, and hands on the whole frame,
 * with the timestamps, flags and metadata of the frame that went in.  After a model that changes the size, the frame
 * has the size that the model makes of it.
 *
 * The only tile of a frame that a model, or another element, has made is that frame already and is handed on as it is,
 * without a copy; so is each in CUDA memory, and the source whose tiles all come back as they went.
 *
 * Tiles overlap.  Where a model stands between, each pixel is taken from the tile in which it is exact, so that no seam
 * can be seen; with #vidgenstitch:blend the rest of an overlap is faded from one tile to the next.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 videotestsrc pattern=ball ! vidgenchunk tile-width=128 tile-height=128 overlap-x=32 overlap-y=32 ! gaussianblur sigma=2 ! vidgenstitch blend=cosine ! videoconvert ! autovideosink
 * ]| Blurs tiles and fades them into each other.
 * |[
 * gst-launch-1.0 videotestsrc ! vidgenchunk tile-width=100 ! identity drop-probability=0.1 ! vidgenstitch missing-tile=source ! videoconvert ! autovideosink
 * ]| Shows the original where a tile was lost.
 *
 * Since: 0.1
 */
#include "gstvidgenstitch.h"

#include "gstvidgenassembler.h"
#include "gstvidgencuda.h"
#include "gstvidgenplan.h"
#include "gstvidgenpool.h"
#include "gstvidgensizes.h"
#include "gstvidgenview.h"

GST_DEBUG_CATEGORY (gst_vidgen_stitch_debug);
#define GST_CAT_DEFAULT gst_vidgen_stitch_debug

struct _GstVidgenStitch
{
  GstElement parent;
  GstPad *sinkpad, *srcpad;

  /* Streaming thread. */
  GstVidgenAssembler assembler;
  GstCaps *tile_caps;
  gboolean in_cuda;    /* tiles are frames in CUDA memory */
  gboolean configured; /* downstream knows the caps of frames */
  GQueue pending;      /* serialised events that wait for them */

  /* Object lock: flushing comes from other threads. */
  GstBufferPool *pool;
};

enum
{
  PROP_0,
  PROP_BLEND,
  PROP_MISSING_TILE,
};

#define CAPS GST_VIDGEN_CUDA_CAPS (GST_VIDGEN_ANY_SIZE) GST_VIDEO_CAPS_MAKE (GST_VIDGEN_FORMATS)
static GstStaticPadTemplate sink_template =
GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (CAPS));
static GstStaticPadTemplate src_template =
GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (CAPS));

G_DEFINE_TYPE (GstVidgenStitch, gst_vidgen_stitch, GST_TYPE_ELEMENT);
GST_ELEMENT_REGISTER_DEFINE (vidgenstitch, "vidgenstitch", GST_RANK_NONE, GST_TYPE_VIDGEN_STITCH);

/* The element that the tiles come from, through the pads of bins. */
static gchar *
upstream_name (GstVidgenStitch *self)
{
  GstPad *pad = gst_pad_get_peer (self->sinkpad);
  gchar *name;

  while (pad) {
    GstPad *next = NULL;

    if (GST_IS_GHOST_PAD (pad)) {
      next = gst_ghost_pad_get_target (GST_GHOST_PAD (pad));
    } else if (GST_IS_PROXY_PAD (pad)) {
      GstPad *ghost = GST_PAD (gst_proxy_pad_get_internal (GST_PROXY_PAD (pad)));

      next = gst_pad_get_peer (ghost);
      gst_object_unref (ghost);
    } else {
      GstObject *element = gst_pad_get_parent (pad);

      name = element ? gst_object_get_name (element) : NULL;
      gst_clear_object (&element);
      gst_object_unref (pad);
      return name ? name : g_strdup ("the element before");
    }
    gst_object_unref (pad);
    pad = next;
  }
  return g_strdup ("the element before");
}

/* ---- output ---- */

static void
set_pool_flushing (GstVidgenStitch *self, gboolean flushing)
{
  GstBufferPool *pool;

  GST_OBJECT_LOCK (self);
  pool = self->pool ? gst_object_ref (self->pool) : NULL;
  GST_OBJECT_UNLOCK (self);
  if (pool) {
    gst_buffer_pool_set_flushing (pool, flushing);
    gst_object_unref (pool);
  }
}

/* Takes the pool. */
static void
set_pool (GstVidgenStitch *self, GstBufferPool *pool)
{
  GstBufferPool *old;

  GST_OBJECT_LOCK (self);
  old = self->pool;
  self->pool = pool;
  GST_OBJECT_UNLOCK (self);
  if (old) {
    gst_buffer_pool_set_active (old, FALSE);
    gst_object_unref (old);
  }
}

static void
push_pending (GstVidgenStitch *self)
{
  GstEvent *event;

  while ((event = g_queue_pop_head (&self->pending)))
    gst_pad_push_event (self->srcpad, event);
}

/* Frames of this grid come next: caps, and events that waited for them.
 * Tile caps may stay the same while the frame changes, so each record is asked. */
static gboolean
configure (GstVidgenStitch *self, GstVidgenGrid *grid)
{
  GstVidgenAssembler *a = &self->assembler;
  gint width = vg_axis_scale (&grid->grid.x, grid->grid.x.frame);
  gint height = vg_axis_scale (&grid->grid.y, grid->grid.y.frame);
  GstCaps *caps;

  if (a->grid != grid && !gst_vidgen_assembler_set_grid (a, grid))
    return FALSE;
  if (!gst_pad_check_reconfigure (self->srcpad) && self->configured && a->out_info.width == width &&
      a->out_info.height == height)
    return TRUE;

  gst_clear_buffer (&a->previous);
  set_pool (self, NULL);
  caps = gst_caps_copy (self->tile_caps);
  gst_caps_set_simple (caps, "width", G_TYPE_INT, width, "height", G_TYPE_INT, height, NULL);
  self->configured =
      gst_video_info_from_caps (&a->out_info, caps) && gst_pad_push_event (self->srcpad, gst_event_new_caps (caps));
  gst_caps_unref (caps);
  if (self->configured)
    push_pending (self);
  else
    gst_pad_mark_reconfigure (self->srcpad);
  return self->configured;
}

/* ---- one frame ---- */

static GstFlowReturn
not_configured (GstVidgenStitch *self)
{
  return GST_PAD_IS_FLUSHING (self->srcpad) ? GST_FLOW_FLUSHING : GST_FLOW_NOT_NEGOTIATED;
}

/* A pool only where a frame is put together: a tile that is one needs none, nor does a source that is one. */
static gboolean
ensure_pool (GstVidgenStitch *self)
{
  const GstVidgenAssembler *a = &self->assembler;
  GstCaps *caps;

  if (self->pool)
    return TRUE;
  caps = gst_pad_get_current_caps (self->srcpad);
  if (caps)
    set_pool (self,
        gst_vidgen_pool_new (self->srcpad, caps, &a->out_info, a->missing_tile == GST_VIDGEN_MISSING_TILE_PREVIOUS));
  gst_clear_caps (&caps);
  return self->pool != NULL;
}

static GstFlowReturn
acquire (GstElement *element, GstBuffer **buffer)
{
  GstVidgenStitch *self = GST_VIDGEN_STITCH (element);

  return ensure_pool (self) ? gst_buffer_pool_acquire_buffer (self->pool, buffer, NULL) : not_configured (self);
}

/* Hands on the frame in work, if any, as it is. */
static GstFlowReturn
finish_frame (GstVidgenStitch *self)
{
  GstBuffer *buffer;
  GstFlowReturn ret;

  if (!self->assembler.record)
    return GST_FLOW_OK;
  ret = gst_vidgen_assembler_finish (&self->assembler, &buffer);
  return ret == GST_FLOW_OK ? gst_pad_push (self->srcpad, buffer) : ret;
}

/* FALSE after an error. */
static gboolean
check_tile (GstVidgenStitch *self, const GstVidgenTileMeta *meta)
{
  gint width, height;
  gchar *name;

  if (meta) {
    width = vg_axis_scale (&meta->grid->grid.x, meta->grid->grid.x.tile);
    height = vg_axis_scale (&meta->grid->grid.y, meta->grid->grid.y.tile);
    if (self->assembler.tile_info.width == width && self->assembler.tile_info.height == height)
      return TRUE;
  }
  name = upstream_name (self);
  if (!meta)
    GST_ELEMENT_ERROR (self, STREAM, FAILED,
        ("%s sent a buffer that is no tile: it needs a vidgenchunk before it, and must keep the metadata of its "
         "buffers.",
            name),
        (NULL));
  else
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("%s sent tiles of %dx%d, but of this frame they must be %dx%d: nothing between vidgenchunk and vidgenstitch "
         "but the model may change their size.",
            name, self->assembler.tile_info.width, self->assembler.tile_info.height, width, height),
        (NULL));
  g_free (name);
  return FALSE;
}

/* The only tile of its frame, in memory of its own: then a copy would be the same.  The previous frame is kept as one
 * that was put together. */
static gboolean
is_frame (const GstVidgenStitch *self, GstBuffer *tile)
{
  const GstVidgenAssembler *a = &self->assembler;

  return a->grid->grid.x.n * a->grid->grid.y.n == 1 && a->tile_info.width == a->out_info.width &&
      a->tile_info.height == a->out_info.height && a->missing_tile != GST_VIDGEN_MISSING_TILE_PREVIOUS &&
      gst_vidgen_is_plain (tile, &a->out_info);
}

/* A tile that is the frame, which it takes. */
static GstFlowReturn
pass_whole (GstVidgenStitch *self, GstBuffer *buffer)
{
  GstVidgenTileMeta *meta = gst_buffer_get_vidgen_tile_meta (buffer);
  GstVidgenFrameRecord *record;

  if (meta->grid->grid.x.n * meta->grid->grid.y.n != 1) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT,
        ("Tiles in CUDA memory cannot be put together: put cudadownload before vidgenstitch, or let frames be in CUDA "
         "memory from vidgenchunk on."),
        (NULL));
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  record = gst_vidgen_frame_record_ref (meta->record);
  buffer = gst_buffer_make_writable (buffer);
  gst_buffer_remove_meta (buffer, GST_META_CAST (gst_buffer_get_vidgen_tile_meta (buffer)));
  gst_vidgen_frame_record_restore (record, &self->assembler.tile_info, buffer);
  gst_vidgen_frame_record_unref (record);
  return gst_pad_push (self->srcpad, buffer);
}

static GstFlowReturn
gst_vidgen_stitch_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstVidgenStitch *self = GST_VIDGEN_STITCH (parent);
  GstVidgenTileMeta *meta = gst_buffer_get_vidgen_tile_meta (buffer);
  GstFlowReturn ret = GST_FLOW_OK;

  if (!self->tile_caps)
    ret = GST_FLOW_NOT_NEGOTIATED;
  else if (!check_tile (self, meta))
    ret = GST_FLOW_ERROR;
  else if (self->in_cuda)
    return pass_whole (self, buffer);
  else if (self->assembler.record != meta->record)
    ret = finish_frame (self);
  if (ret == GST_FLOW_OK && !self->assembler.record) {
    if (!configure (self, meta->grid))
      ret = not_configured (self);
    else if (is_frame (self, buffer))
      return pass_whole (self, buffer);
    else
      gst_vidgen_assembler_begin (&self->assembler, meta->record);
  }
  if (ret == GST_FLOW_OK) {
    gst_vidgen_tile_check_written (buffer, meta);
    ret = gst_vidgen_assembler_put (&self->assembler, buffer, meta);
  }
  gst_buffer_unref (buffer); /* before the frame goes: a view holds its source */
  if (ret == GST_FLOW_OK && gst_vidgen_assembler_has_all (&self->assembler))
    ret = finish_frame (self);
  return ret;
}

/* ---- events and queries ---- */

static void
set_tile_caps (GstVidgenStitch *self, GstCaps *caps)
{
  if (self->tile_caps && gst_caps_is_equal (self->tile_caps, caps))
    return;
  finish_frame (self);
  gst_caps_replace (&self->tile_caps, caps);
  /* The next record tells the frame's size. */
  self->configured = FALSE;
  gst_vidgen_assembler_clear_grid (&self->assembler);
  self->in_cuda = gst_vidgen_caps_in_cuda (caps);
  if (self->in_cuda) {
    set_pool (self, NULL);
    self->configured = gst_pad_push_event (self->srcpad, gst_event_new_caps (caps));
    if (self->configured)
      push_pending (self);
  }
}

/* Nothing has come that tells the frame's size, and a sink waits for this gap to preroll: chunk knows. */
static void
configure_for_gap (GstVidgenStitch *self)
{
  GstQuery *query = gst_query_new_custom (GST_QUERY_CUSTOM, gst_structure_new_empty (GST_VIDGEN_QUERY_FRAME));
  GstVidgenGrid *grid = NULL;

  if (self->tile_caps && gst_pad_peer_query (self->sinkpad, query) &&
      gst_structure_get (gst_query_get_structure (query), "grid", GST_TYPE_VIDGEN_GRID, &grid, NULL) && grid) {
    configure (self, grid);
    gst_vidgen_grid_unref (grid);
  }
  gst_query_unref (query);
}

/* What was held must not be lost when it is sticky. */
static void
flush (GstVidgenStitch *self)
{
  GstEvent *event;

  gst_vidgen_assembler_drop (&self->assembler);
  gst_clear_buffer (&self->assembler.previous);
  while ((event = g_queue_pop_head (&self->pending))) {
    if (GST_EVENT_IS_STICKY (event) && GST_EVENT_TYPE (event) != GST_EVENT_SEGMENT)
      gst_pad_store_sticky_event (self->srcpad, event);
    gst_event_unref (event);
  }
  set_pool_flushing (self, FALSE);
}

static gboolean
gst_vidgen_stitch_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstVidgenStitch *self = GST_VIDGEN_STITCH (parent);

  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_FLUSH_START:
      set_pool_flushing (self, TRUE);
      return gst_pad_event_default (pad, parent, event);
    case GST_EVENT_FLUSH_STOP:
      flush (self);
      return gst_pad_event_default (pad, parent, event);
    case GST_EVENT_CAPS: {
      GstCaps *caps;
      GstVideoInfo info;
      gboolean ok;

      gst_event_parse_caps (event, &caps);
      ok = gst_video_info_from_caps (&info, caps);
      if (ok) {
        set_tile_caps (self, caps);
        self->assembler.tile_info = info;
      }
      gst_event_unref (event);
      return ok;
    }
    case GST_EVENT_STREAM_START:
      finish_frame (self);
      return gst_pad_event_default (pad, parent, event);
    case GST_EVENT_EOS:
      finish_frame (self);
      push_pending (self);
      return gst_pad_event_default (pad, parent, event);
    case GST_EVENT_SEGMENT:
    case GST_EVENT_SEGMENT_DONE:
      finish_frame (self);
      break;
    case GST_EVENT_GAP:
      if (!gst_structure_has_field (gst_event_get_structure (event), GST_VIDGEN_GAP_LATE)) {
        gst_event_unref (event); /* a tile's: the rest of its frame comes yet */
        return TRUE;
      }
      finish_frame (self);
      if (!self->configured)
        configure_for_gap (self);
      break;
    default:
      break;
  }
  if (!self->configured && GST_EVENT_IS_SERIALIZED (event)) {
    g_queue_push_tail (&self->pending, event);
    return TRUE;
  }
  return gst_pad_event_default (pad, parent, event);
}

static gboolean
gst_vidgen_stitch_src_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  /* As it is, an element between would drop single tiles for it. */
  if (GST_EVENT_TYPE (event) == GST_EVENT_QOS)
    event = gst_vidgen_wrap_qos (event);
  return gst_pad_event_default (pad, parent, event);
}

static gboolean
answer_custom (GstVidgenStitch *self, GstPad *pad, GstQuery *query)
{
  if (pad == self->sinkpad && gst_structure_has_name (gst_query_get_structure (query), GST_VIDGEN_QUERY_SIZES)) {
    GstCaps *caps = gst_pad_peer_query_caps (self->srcpad, NULL);

    gst_structure_set (gst_query_writable_structure (query), "caps", GST_TYPE_CAPS, caps, NULL);
    gst_caps_unref (caps);
    return TRUE;
  }
  return FALSE;
}

static gboolean
gst_vidgen_stitch_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstVidgenStitch *self = GST_VIDGEN_STITCH (parent);

  switch (GST_QUERY_TYPE (query)) {
    case GST_QUERY_CAPS: {
      GstCaps *filter, *caps;

      gst_query_parse_caps (query, &filter);
      caps = gst_vidgen_any_size_caps (pad, pad == self->sinkpad ? self->srcpad : self->sinkpad, filter);
      gst_query_set_caps_result (query, caps);
      gst_caps_unref (caps);
      return TRUE;
    }
    case GST_QUERY_ALLOCATION:
      if (pad != self->sinkpad)
        break;
      if (self->in_cuda)
        return gst_pad_peer_query (self->srcpad, query);
      gst_query_add_allocation_meta (query, gst_vidgen_view_api_get_type (), NULL);
      /* Without a pool in the answer, GstBaseTransform would size its output after a view. */
      return gst_vidgen_pool_answer (query, 0, NULL);
    case GST_QUERY_CUSTOM: {
      const GstStructure *ask = gst_query_get_structure (query);

      /* These end here, on their way down or up from another section. */
      if (gst_structure_has_name (ask, GST_VIDGEN_QUERY_PLAN) || gst_structure_has_name (ask, GST_VIDGEN_QUERY_FRAME) ||
          gst_structure_has_name (ask, GST_VIDGEN_QUERY_SIZES))
        return answer_custom (self, pad, query);
      break;
    }
    default:
      break;
  }
  return gst_pad_query_default (pad, parent, query);
}

static GstStateChangeReturn
gst_vidgen_stitch_change_state (GstElement *element, GstStateChange transition)
{
  GstVidgenStitch *self = GST_VIDGEN_STITCH (element);
  GstStateChangeReturn ret;

  /* A thread that waits for a buffer must be woken before its pad stops. */
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY)
    set_pool_flushing (self, TRUE);
  ret = GST_ELEMENT_CLASS (gst_vidgen_stitch_parent_class)->change_state (element, transition);
  if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) {
    gst_vidgen_assembler_drop (&self->assembler);
    gst_clear_buffer (&self->assembler.previous);
    g_queue_clear_full (&self->pending, (GDestroyNotify) gst_event_unref);
    set_pool (self, NULL);
    gst_vidgen_assembler_clear_grid (&self->assembler);
    gst_clear_caps (&self->tile_caps);
    self->configured = self->assembler.warned = FALSE;
  }
  return ret;
}

static void
gst_vidgen_stitch_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstVidgenStitch *self = GST_VIDGEN_STITCH (object);

  switch (id) {
    case PROP_BLEND:
      self->assembler.blend = g_value_get_enum (value);
      break;
    case PROP_MISSING_TILE:
      self->assembler.missing_tile = g_value_get_enum (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
}

static void
gst_vidgen_stitch_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstVidgenStitch *self = GST_VIDGEN_STITCH (object);

  switch (id) {
    case PROP_BLEND:
      g_value_set_enum (value, self->assembler.blend);
      break;
    case PROP_MISSING_TILE:
      g_value_set_enum (value, self->assembler.missing_tile);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
      break;
  }
}

static void
gst_vidgen_stitch_class_init (GstVidgenStitchClass *klass)
{
  const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (gst_vidgen_stitch_debug, "vidgenstitch", 0, "tiles into frames");
  object_class->set_property = gst_vidgen_stitch_set_property;
  object_class->get_property = gst_vidgen_stitch_get_property;
  element_class->change_state = gst_vidgen_stitch_change_state;

  /**
   * GstVidgenStitch:blend:
   *
   * A model's plan makes tiles overlap by just what it sees around a pixel: then nothing is left to fade, and all
   * three are the same.  Fading needs a larger overlap-x or overlap-y on #vidgenchunk.
   */
  g_object_class_install_property (object_class, PROP_BLEND,
      g_param_spec_enum ("blend", "Blend", "How neighbouring tiles meet where they overlap beyond what the model needs",
          GST_TYPE_VIDGEN_BLEND, VG_BLEND_CROP, flags));
  g_object_class_install_property (object_class, PROP_MISSING_TILE,
      g_param_spec_enum ("missing-tile", "Missing tile", "What to do when a tile of a frame does not come back",
          GST_TYPE_VIDGEN_MISSING_TILE, GST_VIDGEN_MISSING_TILE_ERROR, flags));

  gst_type_mark_as_plugin_api (GST_TYPE_VIDGEN_BLEND, 0);
  gst_type_mark_as_plugin_api (GST_TYPE_VIDGEN_MISSING_TILE, 0);
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "Video tile joiner", "Filter/Video",
      "Puts the tiles of vidgenchunk together into frames with their timestamps, flags and metadata",
      "the vidgen authors");
}

static void
gst_vidgen_stitch_init (GstVidgenStitch *self)
{
  self->assembler.element = GST_ELEMENT (self);
  self->assembler.acquire = acquire;
  g_queue_init (&self->pending);

  self->sinkpad = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sinkpad, gst_vidgen_stitch_chain);
  gst_pad_set_event_function (self->sinkpad, gst_vidgen_stitch_sink_event);
  gst_pad_set_query_function (self->sinkpad, gst_vidgen_stitch_query);
  gst_element_add_pad (GST_ELEMENT (self), self->sinkpad);

  self->srcpad = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_set_event_function (self->srcpad, gst_vidgen_stitch_src_event);
  gst_pad_set_query_function (self->srcpad, gst_vidgen_stitch_query);
  gst_element_add_pad (GST_ELEMENT (self), self->srcpad);
}
