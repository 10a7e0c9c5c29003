/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgencuts.h"

#include "gstvidgencuda.h"
#include "gstvidgenframe.h"

gboolean
gst_vidgen_cuts_next (struct vg_scenecut *scene, const GstVidgenTileMeta *tile, const GstVideoInfo *info,
    GstBuffer *buffer, GstVidgenEngine *engine)
{
  struct vgk_frame brightness;
  GstVideoFrame frame;
  gboolean cut = FALSE;

  if (tile && !gst_vidgen_frame_on_device (&tile->record->frame)) {
    gst_vidgen_frame_brightness (&tile->record->frame, &brightness);
    return vg_scenecut_next (scene, &brightness);
  }
  if (!gst_vidgen_cuda_map (&frame, info, buffer, GST_MAP_READ | GST_VIDEO_FRAME_MAP_FLAG_NO_REF, engine->context))
    return FALSE; /* the run will tell */
  gst_vidgen_frame_brightness (&frame, &brightness);
  if (!brightness.device || gst_vidgen_engine_brightness (engine, &brightness, VG_SCENECUT_WIDTH, VG_SCENECUT_HEIGHT))
    cut = vg_scenecut_next (scene, &brightness);
  gst_vidgen_cuda_unmap (&frame);
  return cut;
}
