/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef GST_VIDGEN_MODEL_H
#define GST_VIDGEN_MODEL_H

#include <gst/base/gstbasetransform.h>

G_BEGIN_DECLS

#define GST_TYPE_VIDGEN_MODEL (gst_vidgen_model_get_type ())
G_DECLARE_FINAL_TYPE (GstVidgenModel, gst_vidgen_model, GST, VIDGEN_MODEL, GstBaseTransform)

GST_ELEMENT_REGISTER_DECLARE (vidgenmodel);

G_END_DECLS

#endif
