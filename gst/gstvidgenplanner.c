/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenplanner.h"

#include <stdlib.h>
#include <string.h>

#include "gstvidgencuda.h"
#include "gstvidgenframe.h"
#include "gstvidgenparameters.h"
#include "gstvidgenplan.h"
#include "gstvidgenreuse.h"

GST_DEBUG_CATEGORY_EXTERN (gst_vidgen_model_debug);
#define GST_CAT_DEFAULT gst_vidgen_model_debug

#define LOCK(self) g_mutex_lock (&(self)->lock)
#define UNLOCK(self) g_mutex_unlock (&(self)->lock)

void
gst_vidgen_planner_init (GstVidgenPlanner *self, GstElement *element)
{
  memset (self, 0, sizeof *self);
  self->element = element;
  self->norm_mode = VG_NORM_AUTO;
  self->norm_error_interval = 64;
  g_mutex_init (&self->lock);
  gst_vidgen_context_init (&self->context, element);
  g_queue_init (&self->planned);
}

void
gst_vidgen_planner_clear (GstVidgenPlanner *self)
{
  gst_vidgen_planner_stop (self);
  gst_vidgen_planner_unload (self);
  g_free (self->model_file);
  g_clear_pointer (&self->parameters, gst_structure_free);
  g_free (self->plan);
  g_free (self->device);
  gst_vidgen_context_clear (&self->context);
  g_mutex_clear (&self->lock);
}

GstFlowReturn
gst_vidgen_planner_fail (GstVidgenPlanner *self, GError *error)
{
  gboolean first;

  LOCK (self);
  first = !self->failed;
  self->failed = TRUE;
  UNLOCK (self);
  if (first)
    return gst_vidgen_post (self->element, GST_MESSAGE_ERROR, error);
  g_error_free (error);
  return GST_FLOW_ERROR;
}

/* ---- the model and its parameters ---- */

/* Makes `values` those that `structure` gives for the model; with the lock.  FALSE: they are the defaults. */
static gboolean
set_values (GstVidgenPlanner *self, const GstStructure *structure, GError **error)
{
  const struct vg_summary *summary = vg_model_summary (self->model);

  g_free (self->values);
  self->values = g_new (gfloat, gst_vidgen_parameters_count (summary) + 1);
  self->serial++;
  return gst_vidgen_parameters_read (structure, summary, self->values, error);
}

/* Takes model: the next plan is made with it.  Parameters that it does not have are told of and forgotten. */
static void
use_model (GstVidgenPlanner *self, struct vg_model *model)
{
  GError *error = NULL;

  LOCK (self);
  vg_model_unref (&self->model);
  self->model = model;
  if (!set_values (self, self->parameters, &error))
    g_clear_pointer (&self->parameters, gst_structure_free);
  g_clear_pointer (&self->last_grid, gst_vidgen_grid_unref);
  UNLOCK (self);
  if (error)
    gst_vidgen_post (self->element, GST_MESSAGE_WARNING, error);
}

static struct vg_model *
load_model (GstVidgenPlanner *self, const gchar *name, GError **error)
{
  struct vgk_error err = {{0}};
  struct vg_model *model = NULL;
  enum vgk_status status;
  gchar *path = gst_vidgen_find_model (name ? name : GST_VIDGEN_DEFAULT_MODEL, error);

  if (!path)
    return NULL;
  GST_INFO_OBJECT (self->element, "loading %s", path);
  status = vg_model_load (path, &model, &err);
  if (status == VGK_ERR_INVALID)
    g_set_error_literal (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT, err.text);
  else if (status != VGK_OK)
    gst_vidgen_set_error (error, status, &err);
  g_free (path);
  return model;
}

gboolean
gst_vidgen_planner_load (GstVidgenPlanner *self)
{
  struct vg_model *model;
  GError *error = NULL;
  gchar *name;

  LOCK (self);
  name = g_strdup (self->model_file);
  UNLOCK (self);
  model = load_model (self, name, &error);
  g_free (name);
  if (model)
    use_model (self, model);
  else
    gst_vidgen_post (self->element, GST_MESSAGE_ERROR, error);
  return model != NULL;
}

void
gst_vidgen_planner_unload (GstVidgenPlanner *self)
{
  LOCK (self);
  vg_model_unref (&self->model);
  g_clear_pointer (&self->values, g_free);
  UNLOCK (self);
  gst_vidgen_context_drop (&self->context);
}

gboolean
gst_vidgen_planner_set_model_file (GstVidgenPlanner *self, const gchar *name)
{
  struct vg_model *model = NULL;
  GError *error = NULL;
  gboolean loaded;

  LOCK (self);
  loaded = self->model != NULL;
  UNLOCK (self);
  if (loaded && !(model = load_model (self, name, &error))) {
    g_prefix_error (&error, "The model stays as it is. ");
    gst_vidgen_post (self->element, GST_MESSAGE_WARNING, error);
    return FALSE;
  }
  LOCK (self);
  g_free (self->model_file);
  self->model_file = g_strdup (name);
  UNLOCK (self);
  if (model)
    use_model (self, model);
  return model != NULL;
}

void
gst_vidgen_planner_set_parameters (GstVidgenPlanner *self, const GstStructure *structure)
{
  GError *error = NULL;

  LOCK (self);
  if (!self->model || set_values (self, structure, &error)) {
    g_clear_pointer (&self->parameters, gst_structure_free);
    self->parameters = structure ? gst_structure_copy (structure) : NULL;
  } else {
    set_values (self, self->parameters, NULL);
  }
  UNLOCK (self);
  if (error) {
    g_prefix_error (&error, "The parameters stay as they are. ");
    gst_vidgen_post (self->element, GST_MESSAGE_WARNING, error);
  }
}

gboolean
gst_vidgen_planner_new_values (GstVidgenPlanner *self, GstVidgenEngine *engine, gfloat *values)
{
  gboolean changed;

  LOCK (self);
  changed = self->model == engine->model && self->serial != engine->serial;
  if (changed) {
    memcpy (values, self->values, gst_vidgen_parameters_count (vg_model_summary (engine->model)) * sizeof *values);
    engine->serial = self->serial;
  }
  UNLOCK (self);
  return changed;
}

gboolean
gst_vidgen_planner_scale (GstVidgenPlanner *self, GstVidgenScale *scale)
{
  gboolean known;

  LOCK (self);
  known = self->model != NULL;
  if (known)
    *scale = gst_vidgen_engine_scale (self->model, self->interpolate);
  UNLOCK (self);
  return known;
}

guint
gst_vidgen_planner_error_interval (GstVidgenPlanner *self)
{
  guint interval;

  LOCK (self);
  interval = self->norm_error_interval;
  UNLOCK (self);
  return interval;
}

gboolean
gst_vidgen_planner_reuses_static (GstVidgenPlanner *self)
{
  gboolean reuses;

  LOCK (self);
  reuses = self->reuse_static;
  UNLOCK (self);
  return reuses;
}

gboolean
gst_vidgen_planner_wants_cuts (GstVidgenPlanner *self, const GstVidgenEngine *engine)
{
  gint mode;

  LOCK (self);
  mode = self->scene_cut;
  UNLOCK (self);
  if (mode != GST_VIDGEN_SCENE_CUT_AUTO)
    return mode == GST_VIDGEN_SCENE_CUT_ON;
  return gst_vidgen_engine_info (engine)->window > 1 || vg_model_summary (engine->model)->n_states > 0;
}

gboolean
gst_vidgen_planner_is_newest (GstVidgenPlanner *self, const GstVidgenEngine *engine)
{
  gboolean newest;

  LOCK (self);
  newest = engine->model == self->model;
  UNLOCK (self);
  return newest;
}

/* ---- plans ---- */

gboolean
gst_vidgen_planner_adopt (GstVidgenPlanner *self, GstVidgenEngine *engine, GstObject *context, const gint *stop)
{
  GError *error = NULL;

  if (gst_vidgen_context_follow (&self->context, context, &error) &&
      gst_vidgen_engine_move (engine, context, stop, &error))
    return TRUE;
  gst_vidgen_planner_fail (self, error);
  return FALSE;
}

static void
announce (GstVidgenPlanner *self, GstVidgenEngine *engine)
{
  const struct vg_plan_info *info = vg_plan_info (engine->plan);
  char *json = vg_plan_json (engine->plan), *text = vg_plan_text (engine->plan);

  LOCK (self);
  g_free (self->plan);
  self->plan = g_strdup (json);
  g_free (self->device);
  self->device = g_strdup (engine->backend->describe (engine->device));
  UNLOCK (self);
  GST_INFO_OBJECT (self->element, "plan:\n%s", text);
  gst_element_post_message (self->element,
      gst_message_new_element (GST_OBJECT (self->element),
          gst_structure_new ("vidgen-plan", "bytes", G_TYPE_UINT64, (guint64) info->arena_bytes, "window", G_TYPE_INT,
              info->window, "hop", G_TYPE_INT, info->hop, "rate", G_TYPE_INT,
              gst_vidgen_engine_scale (engine->model, engine->request.emit).rate, "text", G_TYPE_STRING, text, "plan",
              G_TYPE_STRING, json, NULL)));
  if (info->warning)
    GST_ELEMENT_WARNING (self->element, STREAM, ENCODE, ("%s", info->warning), (NULL));
  free (json);
  free (text);
  g_object_notify (G_OBJECT (self->element), "active-device");
}

/* A model that was set while playing and does not do here is taken out again: what ran before goes on. */
static gboolean
fall_back (GstVidgenPlanner *self, struct vg_model *failed, GError **error)
{
  struct vg_model *before = NULL;

  LOCK (self);
  if (self->model != failed) { /* changed once more meanwhile: that one gets its chance */
    UNLOCK (self);
    g_clear_error (error);
    return TRUE;
  }
  if (self->planned_model && self->planned_model != failed) {
    before = vg_model_ref (self->planned_model);
    g_free (self->model_file);
    self->model_file = g_strdup (vg_model_summary (before)->path);
  }
  UNLOCK (self);
  if (!before)
    return FALSE;
  g_prefix_error (error, "Model \"%s\" cannot be used here, \"%s\" stays. ", vg_model_summary (failed)->name,
      vg_model_summary (before)->name);
  gst_vidgen_post (self->element, GST_MESSAGE_WARNING, g_steal_pointer (error));
  use_model (self, before);
  return TRUE;
}

/* Do frames come at their own pace? */
static gboolean
is_live (GstElement *element)
{
  GstPad *pad = gst_element_get_static_pad (element, "sink");
  GstQuery *query = gst_query_new_latency ();
  gboolean live = FALSE;

  if (gst_pad_peer_query (pad, query))
    gst_query_parse_latency (query, &live, NULL, NULL);
  gst_query_unref (query);
  gst_object_unref (pad);
  return live;
}

GstVidgenEngine *
gst_vidgen_planner_make (GstVidgenPlanner *self, const struct vg_plan_request *settings, gboolean in_cuda)
{
  GstObject *context = gst_vidgen_context_get (&self->context);
  struct vg_plan_request request = *settings;
  struct vgk_device_options options = {0};
  GstVidgenEngine *engine = NULL;
  GstVidgenDevice device;
  gboolean again = TRUE;

  while (!engine && again) {
    struct vg_model *model;
    GError *error = NULL;
    gint interpolate;

    LOCK (self);
    model = self->model && !self->failed ? vg_model_ref (self->model) : NULL;
    options.threads = self->threads;
    options.exact_products = self->exact_products;
    request.precision = self->precision;
    request.norm_mode = self->norm_mode;
    request.norm_errors = self->norm_error_interval > 0;
    interpolate = self->interpolate;
    options.max_bytes = request.max_bytes = self->max_device_memory;
    UNLOCK (self);
    if (!model)
      break;
    device = g_atomic_int_get (&self->context.device);
    options.device = MAX (g_atomic_int_get (&self->context.cuda_device_id), 0);
    request.live = is_live (self->element);
    request.flights = !request.live; /* a tile more on the way is a frame's latency */
    request.in_device = in_cuda;
    request.emit = vg_model_summary (model)->centre < 0 ? interpolate : 0;
    engine = (in_cuda ? gst_vidgen_engine_new_in_cuda : gst_vidgen_engine_new) (
        model, device, &options, context, &request, &error);
    if (engine) {
      LOCK (self);
      vg_model_unref (&self->planned_model);
      self->planned_model = vg_model_ref (model);
      UNLOCK (self);
      announce (self, engine);
    } else if (!fall_back (self, model, &error)) {
      gst_vidgen_planner_fail (self, error);
      again = FALSE;
    }
    vg_model_unref (&model);
  }
  gst_clear_object (&context);
  return engine;
}

void
gst_vidgen_planner_request (struct vg_plan_request *request, const GstVideoInfo *info)
{
  request->width = GST_VIDEO_INFO_WIDTH (info);
  request->height = GST_VIDEO_INFO_HEIGHT (info);
  gst_vidgen_format_chroma (info->finfo, &request->chroma_x, &request->chroma_y);
}

gboolean
gst_vidgen_planner_same_request (const struct vg_plan_request *a, const struct vg_plan_request *b)
{
  return a->width == b->width && a->height == b->height && a->chroma_x == b->chroma_x && a->chroma_y == b->chroma_y &&
      a->tile_width == b->tile_width && a->tile_height == b->tile_height && a->overlap_x == b->overlap_x &&
      a->overlap_y == b->overlap_y && a->window == b->window && a->hop == b->hop;
}

/* A plan for whole frames, which vidgenchunk hands on as they are: the grid is one tile of the frame's own size. */
static gboolean
make_whole (GstVidgenPlanner *self, GstVidgenEngine *engine)
{
  struct vg_grid *grid = &engine->grid->grid;

  if (grid->x.n * grid->y.n != 1) {
    gst_vidgen_planner_fail (self,
        g_error_new (GST_STREAM_ERROR, GST_STREAM_ERROR_NOT_IMPLEMENTED,
            "The model takes tiles of %d x %d, and frames in CUDA memory are not cut: put cudadownload before vidgen, "
            "and cudaupload behind it where that is wanted.",
            grid->x.tile, grid->y.tile));
    return FALSE;
  }
  grid->x.tile = grid->x.frame;
  grid->y.tile = grid->y.frame;
  engine->whole = TRUE;
  return TRUE;
}

/* Does what follows take frames in CUDA memory only? */
static gboolean
must_give_cuda (GstVidgenPlanner *self)
{
  GstPad *pad = gst_element_get_static_pad (self->element, "src");
  GstCaps *caps = gst_pad_peer_query_caps (pad, NULL), *host = gst_caps_new_empty_simple ("video/x-raw");
  gboolean must = !gst_caps_is_empty (caps) && !gst_caps_can_intersect (caps, host);

  gst_caps_unref (caps);
  gst_caps_unref (host);
  gst_object_unref (pad);
  return must;
}

/* Of upstream's, by the last plan; locked. */
static gint
frames_in_use (const GstVidgenPlanner *self)
{
  return self->last_window + (self->reuse_static ? self->last_kept : 0);
}

/* A reference to the grid for this request, and how many frames are in use at once, planned now unless it is the same as
 * last time; NULL: refused. */
static GstVidgenGrid *
grid_for (GstVidgenPlanner *self, const struct vg_plan_request *request, gboolean in_cuda, gboolean whole, gint *frames)
{
  GstVidgenGrid *grid = NULL;
  GstVidgenEngine *engine;

  LOCK (self);
  if (self->last_grid && self->last_in_cuda == in_cuda && self->last_whole == whole &&
      gst_vidgen_planner_same_request (&self->last_request, request))
    grid = gst_vidgen_grid_ref (self->last_grid);
  *frames = frames_in_use (self);
  UNLOCK (self);
  if (grid)
    return grid;
  engine = gst_vidgen_planner_make (self, request, in_cuda);
  if (engine && whole && !make_whole (self, engine))
    g_clear_pointer (&engine, gst_vidgen_engine_free);
  if (!engine)
    return NULL;
  grid = gst_vidgen_grid_ref (engine->grid);
  LOCK (self);
  self->last_window = gst_vidgen_engine_info (engine)->window;
  self->last_kept = gst_vidgen_reuse_frames (gst_vidgen_engine_info (engine));
  *frames = frames_in_use (self);
  g_clear_pointer (&self->last_grid, gst_vidgen_grid_unref);
  if (self->model == engine->model) { /* else it changed meanwhile, and the question comes again */
    self->last_grid = gst_vidgen_grid_ref (grid);
    self->last_request = *request;
    self->last_in_cuda = in_cuda;
    self->last_whole = whole;
  }
  g_queue_push_tail (&self->planned, engine);
  UNLOCK (self);
  return grid;
}

/* Frames in CUDA memory are not cut, whatever vidgenchunk's properties say. */
static void
ask_whole (GstVidgenPlanner *self, struct vg_plan_request *request)
{
  if ((request->tile_width && request->tile_width < request->width) ||
      (request->tile_height && request->tile_height < request->height))
    GST_ELEMENT_WARNING (self->element, STREAM, FORMAT,
        ("Frames in CUDA memory are not cut into tiles: tile-width and tile-height are not used. max-device-memory "
         "holds all the same, by bands of rows."),
        (NULL));
  request->tile_width = request->width;
  request->tile_height = request->height;
  request->overlap_x = request->overlap_y = -1;
}

gboolean
gst_vidgen_planner_answer (GstVidgenPlanner *self, GstStructure *query)
{
  struct vg_plan_request request = {0};
  GstVidgenGrid *grid;
  GstCaps *caps = NULL;
  GstVideoInfo info;
  gint frames;
  gboolean in_cuda, whole, known,
      understood = gst_structure_get (query, "caps", GST_TYPE_CAPS, &caps, "tile-width", G_TYPE_INT,
                       &request.tile_width, "tile-height", G_TYPE_INT, &request.tile_height, "overlap-x", G_TYPE_INT,
                       &request.overlap_x, "overlap-y", G_TYPE_INT, &request.overlap_y, "window", G_TYPE_INT,
                       &request.window, "hop", G_TYPE_INT, &request.hop, NULL) &&
      gst_video_info_from_caps (&info, caps);

  in_cuda = gst_vidgen_caps_in_cuda (caps);
  gst_clear_caps (&caps);
  LOCK (self);
  known = self->model != NULL;
  UNLOCK (self);
  if (!understood || !known)
    return FALSE;
  gst_vidgen_planner_request (&request, &info);
  whole = in_cuda || (gst_vidgen_context_takes_cuda (&self->context) && must_give_cuda (self));
  if (whole)
    ask_whole (self, &request);
  grid = grid_for (self, &request, in_cuda, whole, &frames);
  if (grid) {
    gst_structure_set (query, "grid", GST_TYPE_VIDGEN_GRID, grid, "frames", G_TYPE_INT, frames, NULL);
    gst_vidgen_grid_unref (grid);
  } else {
    gst_structure_set (query, "refused", G_TYPE_BOOLEAN, TRUE, NULL);
  }
  return TRUE;
}

/* ---- the streaming thread's side ---- */

void
gst_vidgen_planner_start (GstVidgenPlanner *self)
{
  LOCK (self);
  self->failed = FALSE;
  UNLOCK (self);
  gst_vidgen_context_start (&self->context);
}

void
gst_vidgen_planner_stop (GstVidgenPlanner *self)
{
  LOCK (self);
  g_queue_clear_full (&self->planned, (GDestroyNotify) gst_vidgen_engine_free);
  g_clear_pointer (&self->last_grid, gst_vidgen_grid_unref);
  vg_model_unref (&self->planned_model);
  UNLOCK (self);
  gst_vidgen_context_stop (&self->context);
}

gboolean
gst_vidgen_planner_has_planned (GstVidgenPlanner *self)
{
  gboolean has;

  LOCK (self);
  has = self->planned.length > 0;
  UNLOCK (self);
  return has;
}

GstVidgenEngine *
gst_vidgen_planner_take (GstVidgenPlanner *self, const GstVidgenGrid *grid, const GstVideoInfo *info)
{
  GstVidgenEngine *engine = NULL;
  GList *link;

  LOCK (self);
  for (link = self->planned.head; link; link = link->next) {
    engine = link->data;
    if (grid ? engine->grid == grid : gst_vidgen_engine_takes (engine, info))
      break;
  }
  if (link) {
    GstVidgenEngine *older;

    while ((older = g_queue_pop_head (&self->planned)) != engine)
      gst_vidgen_engine_free (older);
  }
  UNLOCK (self);
  return link ? engine : NULL;
}

void
gst_vidgen_planner_retire (GstVidgenPlanner *self, GstVidgenEngine *engine)
{
  LOCK (self);
  if (engine && engine->grid == self->last_grid)
    g_clear_pointer (&self->last_grid, gst_vidgen_grid_unref);
  UNLOCK (self);
  gst_vidgen_engine_free (engine);
}
