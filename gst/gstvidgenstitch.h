/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef GST_VIDGEN_STITCH_H
#define GST_VIDGEN_STITCH_H

#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_TYPE_VIDGEN_STITCH (gst_vidgen_stitch_get_type ())
G_DECLARE_FINAL_TYPE (GstVidgenStitch, gst_vidgen_stitch, GST, VIDGEN_STITCH, GstElement)
GST_ELEMENT_REGISTER_DECLARE (vidgenstitch);

G_END_DECLS

#endif
