/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgencuts.h"

#include "gstvidgencuda.h"
#include "gstvidgenframe.h"

void
gst_vidgen_cuts_reset (GstVidgenCuts *self)
{
  vg_scenecut_reset (&self->scene);
}

void
gst_vidgen_cuts_clear (GstVidgenCuts *self)
{
  gst_clear_buffer (&self->fetched);
}

gboolean
gst_vidgen_cuts_next (GstVidgenCuts *self, const GstVidgenTileMeta *tile, const GstVideoInfo *info, GstBuffer *buffer,
    GstObject *context)
{
  struct vgk_frame brightness;
  GstVideoFrame frame;
  gboolean cut = FALSE;

  if (tile && !gst_vidgen_frame_on_device (&tile->record->frame)) {
    gst_vidgen_frame_brightness (&tile->record->frame, &brightness);
    return vg_scenecut_next (&self->scene, &brightness);
  }
  if (!gst_vidgen_cuda_map (&frame, info, buffer, GST_MAP_READ | GST_VIDEO_FRAME_MAP_FLAG_NO_REF, context))
    return FALSE; /* the run will tell */
  /* They are looked for on the host. */
  if (!gst_vidgen_frame_on_device (&frame) || gst_vidgen_cuda_fetch (&frame, &self->fetched)) {
    gst_vidgen_frame_brightness (&frame, &brightness);
    cut = vg_scenecut_next (&self->scene, &brightness);
  }
  gst_vidgen_cuda_unmap (&frame);
  return cut;
}
