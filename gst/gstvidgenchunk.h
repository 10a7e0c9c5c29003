/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef GST_VIDGEN_CHUNK_H
#define GST_VIDGEN_CHUNK_H

#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_TYPE_VIDGEN_CHUNK (gst_vidgen_chunk_get_type ())
G_DECLARE_FINAL_TYPE (GstVidgenChunk, gst_vidgen_chunk, GST, VIDGEN_CHUNK, GstElement)
GST_ELEMENT_REGISTER_DECLARE (vidgenchunk);

G_END_DECLS

#endif
