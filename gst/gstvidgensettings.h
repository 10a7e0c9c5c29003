/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* vidgenmodel's properties: all that its planner (gstvidgenplanner.h) goes by or tells, and `stats`. */
#ifndef GST_VIDGEN_SETTINGS_H
#define GST_VIDGEN_SETTINGS_H

#include "gstvidgenplanner.h"

G_BEGIN_DECLS

enum
{
  GST_VIDGEN_SETTING_0,
  GST_VIDGEN_SETTING_MODEL_FILE,
  GST_VIDGEN_SETTING_THREADS,
  GST_VIDGEN_SETTING_MAX_DEVICE_MEMORY,
  GST_VIDGEN_SETTING_EXACT_PRODUCTS,
  GST_VIDGEN_SETTING_NORM_MODE,
  GST_VIDGEN_SETTING_NORM_ERROR_INTERVAL,
  GST_VIDGEN_SETTING_SCENE_CUT,
  GST_VIDGEN_SETTING_INTERPOLATE,
  GST_VIDGEN_SETTING_DEVICE,
  GST_VIDGEN_SETTING_CUDA_DEVICE_ID,
  GST_VIDGEN_SETTING_PRECISION,
  GST_VIDGEN_SETTING_REUSE_STATIC,
  GST_VIDGEN_SETTING_PARAMETERS,
  GST_VIDGEN_SETTING_PLAN,
  GST_VIDGEN_SETTING_ACTIVE_DEVICE,
  GST_VIDGEN_SETTING_STATS, /* the element's own to read */
};

GType gst_vidgen_norm_mode_get_type (void); /* enum vg_norm_mode */
#define GST_TYPE_VIDGEN_NORM_MODE (gst_vidgen_norm_mode_get_type ())
GType gst_vidgen_scene_cut_get_type (void);
#define GST_TYPE_VIDGEN_SCENE_CUT (gst_vidgen_scene_cut_get_type ())
GType gst_vidgen_precision_get_type (void); /* enum vg_precision */
#define GST_TYPE_VIDGEN_PRECISION (gst_vidgen_precision_get_type ())
GType gst_vidgen_device_get_type (void); /* GstVidgenDevice */
#define GST_TYPE_VIDGEN_DEVICE (gst_vidgen_device_get_type ())

void gst_vidgen_settings_install (GObjectClass *klass);

/* FALSE: id is not one of the planner's.  *replan: a new plan is wanted. */
gboolean gst_vidgen_settings_set (GstVidgenPlanner *planner, guint id, const GValue *value, gboolean *replan);
gboolean gst_vidgen_settings_get (GstVidgenPlanner *planner, guint id, GValue *value);

G_END_DECLS

#endif
