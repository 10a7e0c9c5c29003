/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef GST_VIDGEN_BIN_H
#define GST_VIDGEN_BIN_H

#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_TYPE_VIDGEN_BIN (gst_vidgen_bin_get_type ())
G_DECLARE_FINAL_TYPE (GstVidgenBin, gst_vidgen_bin, GST, VIDGEN_BIN, GstBin)

GST_ELEMENT_REGISTER_DECLARE (vidgen);

G_END_DECLS

#endif
