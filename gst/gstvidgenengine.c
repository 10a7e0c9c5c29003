/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenengine.h"

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
open_device (GstVidgenEngine *engine, GstVidgenDevice device, const struct vgk_device_options *options,
    struct vgk_error *err)
{
  enum vgk_status status = VGK_ERR_DEVICE;

  if (device != GST_VIDGEN_DEVICE_CPU) {
    engine->backend = vgk_cuda_load (err);
    if (engine->backend)
      status = engine->backend->open (options, &engine->device, err);
    if (device == GST_VIDGEN_DEVICE_CUDA && status != VGK_OK)
      vgk_error_prefix (err, "device=cuda");
    if (device == GST_VIDGEN_DEVICE_CUDA || status == VGK_OK)
      return status;
    GST_INFO ("the CPU is taken, because CUDA cannot be: %s", err->text);
  }
  engine->backend = &vgk_cpu;
  return vgk_cpu.open (options, &engine->device, err);
}

GstVidgenEngine *
gst_vidgen_engine_new (struct vg_model *model, GstVidgenDevice device, const struct vgk_device_options *options,
    const struct vg_plan_request *request, GError **error)
{
  GstVidgenEngine *engine = g_new0 (GstVidgenEngine, 1);
  struct vgk_error err = {{0}};
  enum vgk_status status;

  engine->model = vg_model_ref (model);
  engine->request = *request;
  status = open_device (engine, device, options, &err);
  if (status == VGK_OK)
    status = make_plan (engine, &err);
  if (status == VGK_ERR_UNSUPPORTED && device == GST_VIDGEN_DEVICE_AUTO && engine->backend != &vgk_cpu) {
    GST_INFO ("the CPU is taken, because CUDA cannot do all of the model: %s", err.text);
    engine->backend->close (&engine->device);
    status = open_device (engine, GST_VIDGEN_DEVICE_CPU, options, &err);
    if (status == VGK_OK)
      status = make_plan (engine, &err);
  }
  if (status != VGK_OK) {
    gst_vidgen_set_error (error, status, &err);
    gst_vidgen_engine_free (engine);
    return NULL;
  }
  engine->grid = gst_vidgen_grid_new (vg_plan_info (engine->plan)->grid);
  return engine;
}

gboolean
gst_vidgen_engine_open (GstVidgenEngine *engine, const gint *stop, GError **error)
{
  struct vgk_error err = {{0}};
  enum vgk_status status = vg_run_open (engine->plan, &engine->run, &err);

  if (status != VGK_OK)
    gst_vidgen_set_error (error, status, &err);
  else
    vg_run_watch (engine->run, stop);
  return status == VGK_OK;
}

void
gst_vidgen_engine_free (GstVidgenEngine *engine)
{
  if (!engine)
    return;
  vg_run_close (&engine->run);
  vg_plan_free (&engine->plan);
  if (engine->device)
    engine->backend->close (&engine->device);
  vg_model_unref (&engine->model);
  if (engine->grid)
    gst_vidgen_grid_unref (engine->grid);
  g_free (engine);
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

  for (gint i = 0; i < summary->n_parameters && status == VGK_OK; i++) {
    status = vg_run_set_parameter (engine->run, i, values, &err);
    values += summary->parameters[i].count;
  }
  if (status != VGK_OK)
    gst_vidgen_set_error (error, status, &err);
  return status == VGK_OK;
}

enum vgk_status
gst_vidgen_engine_run (GstVidgenEngine *engine, const GstVidgenTileMeta *tile, const GstVideoFrame *in,
    const GstVideoFrame *out, const struct vgk_colour *colour, struct vgk_error *err)
{
  struct vgk_frame src, dst;
  enum vgk_status status;

  gst_vidgen_frame_from_video (in, &src);
  gst_vidgen_frame_from_video (out, &dst);
  if (tile && !engine->whole) {
    const struct vg_axis *x = &tile->grid->grid.x, *y = &tile->grid->grid.y;
    gint left = x->origin[tile->column], top = y->origin[tile->row];

    src.width = MIN (src.width, x->frame - left);
    src.height = MIN (src.height, y->frame - top);
    dst.width = MIN (dst.width, vg_axis_scale (x, x->frame) - vg_axis_scale (x, left));
    dst.height = MIN (dst.height, vg_axis_scale (y, y->frame) - vg_axis_scale (y, top));
  }
  status = vg_run_tile (engine->run, &src, colour, &dst, err);
  if (dst.width < GST_VIDEO_FRAME_WIDTH (out) || dst.height < GST_VIDEO_FRAME_HEIGHT (out)) {
    const struct vg_layout layout = gst_vidgen_layout (out->info.finfo);
    struct vg_picture picture = gst_vidgen_picture (out);

    vg_extend_edges (
        &layout, &picture, dst.width, dst.height, GST_VIDEO_FRAME_WIDTH (out), GST_VIDEO_FRAME_HEIGHT (out));
  }
  return status;
}
