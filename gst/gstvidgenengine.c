/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenengine.h"

#include "gstvidgencuda.h"
#include "gstvidgenframe.h"
#include "gstvidgenview.h"

#include "../kernels/cuda_load.h"

GST_DEBUG_CATEGORY_EXTERN (gst_vidgen_model_debug);
#define GST_CAT_DEFAULT gst_vidgen_model_debug

static enum vgk_status
make_plan (GstVidgenEngine *engine, struct vgk_error *err)
{
  if (engine->request.precision == VG_PRECISION_FP16 && !engine->backend->half)
    return vgk_fail (err, VGK_ERR_UNSUPPORTED, "precision=fp16 only slows the %s down: set it to auto or fp32, or device to "
        "cuda", engine->backend->describe (engine->device));
  return vg_plan_make (engine->model, engine->backend, engine->device, &engine->request, &engine->plan, err);
}

static enum vgk_status
open_device (GstVidgenEngine *engine, GstVidgenDevice device, struct vgk_error *err)
{
  enum vgk_status status = VGK_ERR_DEVICE;

  if (device != GST_VIDGEN_DEVICE_CPU) {
    engine->options.in_context = engine->context != NULL;
    if (engine->context)
      engine->options.device = gst_vidgen_cuda_device (engine->context);
    engine->backend = vgk_cuda_load (err);
    if (engine->backend)
      status = engine->backend->open (&engine->options, &engine->device, err);
    if (device == GST_VIDGEN_DEVICE_CUDA && status != VGK_OK)
      vgk_error_prefix (err, "device=cuda");
    if (device == GST_VIDGEN_DEVICE_CUDA || status == VGK_OK)
      return status;
    GST_INFO ("the CPU is taken, because CUDA cannot be: %s", err->text);
  }
  engine->backend = &vgk_cpu;
  return vgk_cpu.open (&engine->options, &engine->device, err);
}

/* A device and the plan for it. */
static enum vgk_status
make (GstVidgenEngine *engine, GstVidgenDevice device, struct vgk_error *err)
{
  enum vgk_status status;

  gst_vidgen_cuda_push (engine->context);
  status = open_device (engine, device, err);
  if (status == VGK_OK)
    status = make_plan (engine, err);
  if (status == VGK_ERR_UNSUPPORTED && device == GST_VIDGEN_DEVICE_AUTO && engine->backend != &vgk_cpu) {
    GST_INFO ("the CPU is taken, because CUDA cannot do all of the model: %s", err->text);
    engine->backend->close (&engine->device);
    status = open_device (engine, GST_VIDGEN_DEVICE_CPU, err);
    if (status == VGK_OK)
      status = make_plan (engine, err);
  }
  gst_vidgen_cuda_pop (engine->context);
  if (engine->backend == &vgk_cpu)
    gst_clear_object (&engine->context);
  return status;
}

/* The run, with what nobody has waited for, plan and device. */
static void
unmake (GstVidgenEngine *engine)
{
  while (engine->run && vg_run_flying (engine->run))
    gst_vidgen_engine_wait (engine, FALSE, NULL);
  gst_vidgen_cuda_push (engine->context);
  vg_run_close (&engine->run);
  vg_plan_free (&engine->plan);
  if (engine->device)
    engine->backend->close (&engine->device);
  gst_vidgen_cuda_pop (engine->context);
}

/* Can the elements do this with time?  The error tells why not. */
static gboolean
check_time (const struct vg_plan_info *info, const struct vg_summary *summary, GError **error)
{
  if (info->centre < 0) {
    if (info->window != 2 || info->hop != 1)
      g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_NOT_IMPLEMENTED,
          "Model \"%s\" makes frames between those of a window of %d that moves on by %d; only two neighbours are "
          "supported: window 2, hop 1.",
          summary->name, info->window, info->hop);
    else if (summary->scale_num != summary->scale_den)
      g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_NOT_IMPLEMENTED,
          "Model \"%s\" makes frames between two and scales them by %d/%d: the source's frames in between would have "
          "another size. Scale with a model of its own, behind it.",
          summary->name, summary->scale_num, summary->scale_den);
    else
      return TRUE;
    return FALSE;
  }
  if (info->emit >= info->hop && info->centre + info->emit <= info->window && info->hop >= 1)
    return TRUE;
  g_set_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_NOT_IMPLEMENTED,
      "Model \"%s\" gives %d frames, from the window's frame %d on, for windows of %d frames that move on by %d: there "
      "must be a frame for each that goes in. Set hop to %d or less.",
      summary->name, info->emit, info->centre, info->window, info->hop, info->emit);
  return FALSE;
}

GstVidgenEngine *
gst_vidgen_engine_new (struct vg_model *model, GstVidgenDevice device, const struct vgk_device_options *options,
    GstObject *context, const struct vg_plan_request *request, GError **error)
{
  GstVidgenEngine *engine = g_new0 (GstVidgenEngine, 1);
  struct vgk_error err = {{0}};
  enum vgk_status status;
  gint n;

  engine->model = vg_model_ref (model);
  engine->request = *request;
  engine->options = *options;
  if (context && device != GST_VIDGEN_DEVICE_CPU)
    engine->context = gst_object_ref (context);
  status = make (engine, device, &err);
  if (status != VGK_OK)
    gst_vidgen_set_error (error, status, &err);
  if (status != VGK_OK || !check_time (vg_plan_info (engine->plan), vg_model_summary (model), error)) {
    gst_vidgen_engine_free (engine);
    return NULL;
  }
  engine->grid = gst_vidgen_grid_new (vg_plan_info (engine->plan)->grid);
  n = vg_plan_info (engine->plan)->window + vg_plan_info (engine->plan)->emit;
  engine->mapped = g_new (GstVideoFrame, n);
  engine->frames = g_new (struct vgk_frame, n);
  engine->fetched = g_new0 (GstBuffer *, vg_plan_info (engine->plan)->window);
  for (gint k = 0; k < VGK_FLIGHTS; k++) {
    engine->flight[k].buffers = g_new0 (GstBuffer *, n);
    engine->flight[k].mapped = g_new (GstVideoFrame, n);
    engine->flight[k].frames = g_new (struct vgk_frame, n);
  }
  return engine;
}

GstVidgenEngine *
gst_vidgen_engine_new_in_cuda (struct vg_model *model, GstVidgenDevice device,
    const struct vgk_device_options *options, GstObject *context, const struct vg_plan_request *request, GError **error)
{
  GstVidgenEngine *engine;

  if (device == GST_VIDGEN_DEVICE_CPU) {
    g_set_error_literal (error, GST_STREAM_ERROR, GST_STREAM_ERROR_WRONG_TYPE,
        "The frames are in CUDA memory, which device=cpu does not read: set device to cuda, or put cudadownload before "
        "this element.");
    return NULL;
  }
  engine = gst_vidgen_engine_new (model, GST_VIDGEN_DEVICE_CUDA, options, context, request, error);
  if (engine && !engine->context) {
    g_clear_pointer (&engine, gst_vidgen_engine_free);
    g_set_error_literal (error, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_INIT,
        "The frames are in CUDA memory, and GStreamer's CUDA library made no context for them (its log tells why): put "
        "cudadownload before this element.");
  }
  return engine;
}

gboolean
gst_vidgen_engine_open (GstVidgenEngine *engine, const gint *stop, GError **error)
{
  struct vgk_error err = {{0}};
  enum vgk_status status;

  gst_vidgen_cuda_push (engine->context);
  status = vg_run_open (engine->plan, &engine->run, &err);
  gst_vidgen_cuda_pop (engine->context);
  if (status != VGK_OK)
    gst_vidgen_set_error (error, status, &err);
  else
    vg_run_watch (engine->run, stop);
  return status == VGK_OK;
}

gboolean
gst_vidgen_engine_move (GstVidgenEngine *engine, GstObject *context, const gint *stop, GError **error)
{
  struct vgk_error err = {{0}};
  enum vgk_status status;

  unmake (engine);
  gst_object_replace (&engine->context, context);
  engine->serial = 0;
  status = make (engine, GST_VIDGEN_DEVICE_CUDA, &err);
  if (status != VGK_OK)
    gst_vidgen_set_error (error, status, &err);
  return status == VGK_OK && gst_vidgen_engine_open (engine, stop, error);
}

void
gst_vidgen_engine_free (GstVidgenEngine *engine)
{
  if (!engine)
    return;
  if (engine->plan)
    for (gint i = 0; engine->fetched && i < vg_plan_info (engine->plan)->window; i++)
      gst_clear_buffer (&engine->fetched[i]);
  g_free (engine->fetched);
  unmake (engine);
  gst_clear_object (&engine->context);
  vg_model_unref (&engine->model);
  if (engine->grid)
    gst_vidgen_grid_unref (engine->grid);
  g_free (engine->mapped);
  g_free (engine->frames);
  for (gint k = 0; k < VGK_FLIGHTS; k++) {
    g_free (engine->flight[k].buffers);
    g_free (engine->flight[k].mapped);
    g_free (engine->flight[k].frames);
  }
  g_free (engine);
}

GstVidgenScale
gst_vidgen_engine_scale (const struct vg_model *model, gint emit)
{
  const struct vg_summary *summary = vg_model_summary (model);
  GstVidgenScale scale = {summary->scale_num, summary->scale_den, 1};

  if (summary->centre < 0)
    scale.rate += emit ? emit : summary->emit;

  return scale;
}

gboolean
gst_vidgen_engine_takes (const GstVidgenEngine *engine, const GstVideoInfo *info)
{
  const struct vg_grid *grid = &engine->grid->grid;

  if (engine->whole)
    return engine->request.width == GST_VIDEO_INFO_WIDTH (info) &&
        engine->request.height == GST_VIDEO_INFO_HEIGHT (info);
  return grid->x.tile == GST_VIDEO_INFO_WIDTH (info) && grid->y.tile == GST_VIDEO_INFO_HEIGHT (info);
}

gboolean
gst_vidgen_engine_set_parameters (GstVidgenEngine *engine, const gfloat *values, GError **error)
{
  const struct vg_summary *summary = vg_model_summary (engine->model);
  struct vgk_error err = {{0}};
  enum vgk_status status = VGK_OK;

  gst_vidgen_cuda_push (engine->context);
  for (gint i = 0; i < summary->n_parameters && status == VGK_OK; i++) {
    status = vg_run_set_parameter (engine->run, i, values, &err);
    values += summary->parameters[i].count;
  }
  gst_vidgen_cuda_pop (engine->context);
  if (status != VGK_OK)
    gst_vidgen_set_error (error, status, &err);
  return status == VGK_OK;
}

static void
unmap_frames (GstVideoFrame *mapped, gint n)
{
  for (gint i = 0; i < n; i++)
    gst_vidgen_cuda_unmap (&mapped[i]);
}

static gboolean
map_frames (GstVidgenEngine *engine, const GstVideoInfo *info, GstBuffer *const *buffers, gint n, GstMapFlags flags,
    GstVideoFrame *mapped, struct vgk_frame *frames, GError **error)
{
  for (gint i = 0; i < n; i++) {
    if (!gst_vidgen_cuda_map (
            &mapped[i], info, buffers[i], flags | GST_VIDEO_FRAME_MAP_FLAG_NO_REF, engine->context)) {
      unmap_frames (mapped, i);
      if (flags & GST_MAP_WRITE)
        g_set_error_literal (
            error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE, "The memory for a frame cannot be written to.");
      else
        g_set_error_literal (
            error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ, "A frame that came in cannot be read.");
      return FALSE;
    }
    gst_vidgen_frame_from_video (&mapped[i], &frames[i]);
  }
  return TRUE;
}

/* A window's frames, in and out. */
static gboolean
map_window (GstVidgenEngine *engine, const GstVideoInfo *in_info, GstBuffer *const *in, const GstVideoInfo *out_info,
    GstBuffer *const *out, GstVideoFrame *mapped, struct vgk_frame *frames, GError **error)
{
  gint window = gst_vidgen_engine_info (engine)->window, emit = gst_vidgen_engine_info (engine)->emit;

  if (!map_frames (engine, in_info, in, window, GST_MAP_READ, mapped, frames, error))
    return FALSE;
  if (map_frames (engine, out_info, out, emit, GST_MAP_WRITE, mapped + window, frames + window, error))
    return TRUE;
  unmap_frames (mapped, window);
  return FALSE;
}

/* Frames that were mapped on the device are taken to the host. */
static gboolean
fetch_frames (GstVidgenEngine *engine, gint n, GError **error)
{
  for (gint i = 0; i < n; i++) {
    if (!gst_vidgen_frame_on_device (&engine->mapped[i]))
      continue;
    if (!gst_vidgen_cuda_fetch (&engine->mapped[i], &engine->fetched[i])) {
      g_set_error_literal (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ, "A frame cannot be copied to the host.");
      return FALSE;
    }
    gst_vidgen_frame_from_video (&engine->mapped[i], &engine->frames[i]);
  }
  return TRUE;
}

/* Not on the device: what hangs over is nobody's. */
static void
extend_edges (const GstVideoFrame *out, const struct vgk_frame *part)
{
  const struct vg_layout layout = gst_vidgen_layout (out->info.finfo);
  struct vg_picture picture = gst_vidgen_picture (out);
  gint width = GST_VIDEO_FRAME_WIDTH (out), height = GST_VIDEO_FRAME_HEIGHT (out);

  if (!part->device && (part->width < width || part->height < height))
    vg_extend_edges (&layout, &picture, part->width, part->height, width, height);
}

/* A frame that the tiles make, but for its pixels. */
static void
whole_output (GstVidgenEngine *engine, const GstVideoInfo *info, struct vgk_frame *frame)
{
  const struct vg_grid *grid = gst_vidgen_engine_info (engine)->grid;
  GstVideoFrame video = {.info = *info};

  gst_vidgen_frame_from_video (&video, frame);
  frame->width = vg_axis_scale (&grid->x, grid->x.frame);
  frame->height = vg_axis_scale (&grid->y, grid->y.frame);
}

gboolean
gst_vidgen_engine_begin (GstVidgenEngine *engine, const GstVideoInfo *in_info, GstBuffer *const *in,
    const GstVideoInfo *out_info, const struct vgk_colour *colour, gboolean compare, GError **error)
{
  const struct vg_plan_info *info = gst_vidgen_engine_info (engine);
  gboolean tiles = info->grid->x.n * info->grid->y.n > 1;
  gboolean wanted = info->norm_mode == VG_NORM_THUMBNAIL ||
      (info->norm_mode == VG_NORM_FROZEN && !info->norm_stored && tiles);
  gboolean mapped = engine->whole || !gst_buffer_get_vidgen_tile_meta (in[0]);
  struct vgk_error err = {{0}};
  struct vgk_frame out;
  enum vgk_status status;

  if (!wanted && !compare)
    return TRUE;
  if (mapped &&
      !map_frames (engine, in_info, in, info->window, GST_MAP_READ, engine->mapped, engine->frames, error))
    return FALSE;
  if (mapped && info->norm_mode == VG_NORM_THUMBNAIL && !fetch_frames (engine, info->window, error)) {
    unmap_frames (engine->mapped, info->window);
    return FALSE;
  }
  for (gint i = 0; i < info->window && !mapped; i++)
    gst_vidgen_frame_from_video (&gst_buffer_get_vidgen_tile_meta (in[i])->record->frame, &engine->frames[i]);
  whole_output (engine, out_info, &out);
  gst_vidgen_cuda_push (engine->context);
  status = vg_run_begin (engine->run, engine->frames, colour, compare ? &out : NULL, &err);
  gst_vidgen_cuda_pop (engine->context);
  if (mapped)
    unmap_frames (engine->mapped, info->window);
  if (status != VGK_OK)
    gst_vidgen_set_error (error, status, &err);
  return status == VGK_OK;
}

/* Of a tile that hangs over its frame, what lies in it. */
static void
clip_input (const GstVidgenTileMeta *tile, struct vgk_frame *src)
{
  const struct vg_axis *x = &tile->grid->grid.x, *y = &tile->grid->grid.y;

  src->width = MIN (src->width, x->frame - x->origin[tile->column]);
  src->height = MIN (src->height, y->frame - y->origin[tile->row]);
}

static void
clip_output (const GstVidgenTileMeta *tile, struct vgk_frame *dst)
{
  const struct vg_axis *x = &tile->grid->grid.x, *y = &tile->grid->grid.y;

  dst->width = MIN (dst->width, vg_axis_scale (x, x->frame) - vg_axis_scale (x, x->origin[tile->column]));
  dst->height = MIN (dst->height, vg_axis_scale (y, y->frame) - vg_axis_scale (y, y->origin[tile->row]));
}

/* What is not the frame's of a tile that hangs over it is left out. */
static void
clip_window (GstVidgenEngine *engine, const GstVidgenTileMeta *tile, struct vgk_frame *frames)
{
  gint window = gst_vidgen_engine_info (engine)->window, emit = gst_vidgen_engine_info (engine)->emit;

  for (gint i = 0; i < window && tile; i++)
    clip_input (tile, &frames[i]);
  for (gint i = 0; i < emit && tile; i++)
    clip_output (tile, &frames[window + i]);
}

/* The results are there. */
static void
finish_window (GstVidgenEngine *engine, GstVideoFrame *mapped, const struct vgk_frame *frames)
{
  gint window = gst_vidgen_engine_info (engine)->window, emit = gst_vidgen_engine_info (engine)->emit;

  for (gint i = window; i < window + emit; i++)
    extend_edges (&mapped[i], &frames[i]);
}

gboolean
gst_vidgen_engine_run (GstVidgenEngine *engine, const GstVidgenTileMeta *tile, const GstVideoInfo *in_info,
    GstBuffer *const *in, const GstVideoInfo *out_info, GstBuffer *const *out, const struct vgk_colour *colour,
    GError **error)
{
  gint window = gst_vidgen_engine_info (engine)->window, emit = gst_vidgen_engine_info (engine)->emit;
  struct vgk_frame *frames = engine->frames;
  struct vgk_error err = {{0}};
  enum vgk_status status;

  if (!map_window (engine, in_info, in, out_info, out, engine->mapped, frames, error))
    return FALSE;
  if (engine->whole)
    tile = NULL;
  clip_window (engine, tile, frames);
  gst_vidgen_cuda_push (engine->context);
  status = vg_run_tile (
      engine->run, tile ? tile->column : 0, tile ? tile->row : 0, frames, colour, frames + window, &err);
  gst_vidgen_cuda_pop (engine->context);
  finish_window (engine, engine->mapped, frames);
  unmap_frames (engine->mapped, window + emit);
  if (status != VGK_OK)
    gst_vidgen_set_error (error, status, &err);
  return status == VGK_OK;
}

/* ---- in flight ---- */

/* The frames that tiles are cut from, where these are views of them or all of them; a tile that is neither has no number. */
static void
whole_inputs (GstVidgenEngine *engine, GstBuffer *const *in, const GstVideoFrame *mapped, struct vgk_frame *frames,
    const guint64 *numbers, guint64 *used)
{
  const struct vg_plan_info *info = gst_vidgen_engine_info (engine);
  gboolean one = info->grid->x.n * info->grid->y.n == 1;

  for (gint i = 0; i < info->window; i++) {
    const GstVidgenTileMeta *tile = one ? NULL : gst_buffer_get_vidgen_tile_meta (in[i]);
    gboolean view = tile && info->flight_frames && gst_vidgen_is_view (&mapped[i], tile);

    used[i] = one || view ? numbers[i] : 0;
    if (view)
      gst_vidgen_frame_from_video (&tile->record->frame, &frames[i]);
  }
}

gboolean
gst_vidgen_engine_start (GstVidgenEngine *engine, const GstVidgenTileMeta *tile, const GstVideoInfo *in_info,
    GstBuffer *const *in, const guint64 *numbers, const GstVideoInfo *out_info, GstBuffer *const *out,
    const struct vgk_colour *colour, GError **error)
{
  gint window = gst_vidgen_engine_info (engine)->window, emit = gst_vidgen_engine_info (engine)->emit;
  gint k = (engine->landing + vg_run_flying (engine->run)) % VGK_FLIGHTS;
  GstBuffer **buffers = engine->flight[k].buffers;
  GstVideoFrame *mapped = engine->flight[k].mapped;
  struct vgk_frame *frames = engine->flight[k].frames;
  guint64 used[VGK_FLIGHT_FRAMES];
  struct vgk_error err = {{0}};
  enum vgk_status status;

  if (!map_window (engine, in_info, in, out_info, out, mapped, frames, error))
    return FALSE;
  if (engine->whole)
    tile = NULL;
  clip_window (engine, tile, frames);
  whole_inputs (engine, in, mapped, frames, numbers, used);
  gst_vidgen_cuda_push (engine->context);
  status = vg_run_start (engine->run, tile ? tile->column : 0, tile ? tile->row : 0, frames, used, colour,
      frames + window, &err);
  gst_vidgen_cuda_pop (engine->context);
  if (status != VGK_OK) {
    unmap_frames (mapped, window + emit);
    gst_vidgen_set_error (error, status, &err);
    return FALSE;
  }
  for (gint i = 0; i < window + emit; i++) {
    if (i >= window || gst_vidgen_frame_on_device (&mapped[i]))
      buffers[i] = gst_buffer_ref (i < window ? in[i] : out[i - window]);
    else
      gst_vidgen_cuda_unmap (&mapped[i]);
  }
  return TRUE;
}

gboolean
gst_vidgen_engine_wait (GstVidgenEngine *engine, gboolean wanted, GError **error)
{
  gint window = gst_vidgen_engine_info (engine)->window, emit = gst_vidgen_engine_info (engine)->emit;
  gint k = engine->landing;
  GstVideoFrame *mapped = engine->flight[k].mapped;
  struct vgk_frame *frames = engine->flight[k].frames;
  struct vgk_error err = {{0}};
  enum vgk_status status;

  engine->landing = (k + 1) % VGK_FLIGHTS;
  gst_vidgen_cuda_push (engine->context);
  status = vg_run_wait (engine->run, wanted ? frames + window : NULL, &err);
  gst_vidgen_cuda_pop (engine->context);
  finish_window (engine, mapped, frames);
  for (gint i = 0; i < window + emit; i++)
    if (engine->flight[k].buffers[i]) {
      gst_vidgen_cuda_unmap (&mapped[i]);
      gst_clear_buffer (&engine->flight[k].buffers[i]);
    }
  if (status != VGK_OK)
    gst_vidgen_set_error (error, status, &err);
  return status == VGK_OK;
}
