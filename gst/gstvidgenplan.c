/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenplan.h"

GstEvent *
gst_vidgen_mark_gap (GstEvent *gap, gboolean late)
{
  gap = gst_event_make_writable (gap);
  gst_structure_set (gst_event_writable_structure (gap), GST_VIDGEN_GAP_LATE, G_TYPE_BOOLEAN, late, NULL);
  return gap;
}

GstEvent *
gst_vidgen_wrap_qos (GstEvent *qos)
{
  GstEvent *event = gst_event_new_custom (
      GST_EVENT_CUSTOM_UPSTREAM, gst_structure_new (GST_VIDGEN_EVENT_QOS, "event", GST_TYPE_EVENT, qos, NULL));

  gst_event_unref (qos);
  return event;
}

GstEvent *
gst_vidgen_unwrap_qos (GstEvent *event)
{
  GstEvent *qos = NULL;

  if (gst_event_has_name (event, GST_VIDGEN_EVENT_QOS))
    gst_structure_get (gst_event_get_structure (event), "event", GST_TYPE_EVENT, &qos, NULL);
  return qos;
}

void
gst_vidgen_format_chroma (const GstVideoFormatInfo *format, gint *x, gint *y)
{
  guint w_sub = 0, h_sub = 0;

  for (guint i = 0; i < GST_VIDEO_FORMAT_INFO_N_COMPONENTS (format); i++) {
    w_sub = MAX (w_sub, GST_VIDEO_FORMAT_INFO_W_SUB (format, i));
    h_sub = MAX (h_sub, GST_VIDEO_FORMAT_INFO_H_SUB (format, i));
  }
  *x = 1 << w_sub;
  *y = 1 << h_sub;
}

gboolean
gst_vidgen_make_grid (
    const struct vg_axis_request *x, const struct vg_axis_request *y, struct vg_grid *grid, struct vgk_error *err)
{
  if (vg_axis_make (x, &grid->x, err) != VGK_OK) {
    vgk_error_prefix (err, "across");
    return FALSE;
  }
  if (vg_axis_make (y, &grid->y, err) != VGK_OK) {
    vgk_error_prefix (err, "down");
    return FALSE;
  }
  return TRUE;
}
