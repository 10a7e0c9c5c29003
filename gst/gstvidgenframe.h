/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where GStreamer's terms meet the runtime's: frames, colours, error codes, and where model files are looked for. */
#ifndef GST_VIDGEN_FRAME_H
#define GST_VIDGEN_FRAME_H

#include <gst/video/video.h>

#include "../kernels/frame.h"
#include "gstvidgencuda.h"

G_BEGIN_DECLS

/* What a model reads and writes.  YUV first: behind a decoder it spares a conversion. */
#define GST_VIDGEN_MODEL_FORMATS "{ I420, NV12, RGB, BGR, RGBx, BGRx, xRGB, xBGR, RGBA, BGRA, ARGB, ABGR, GBR }"
/* Of frames that go in: what a plan takes. */
#define GST_VIDGEN_SIZES "width = (int) [ 1, 16384 ], height = (int) [ 1, 16384 ], framerate = " GST_VIDEO_FPS_RANGE

/* Pad templates of what runs a model. */
#define GST_VIDGEN_MODEL_SINK_CAPS \
  GST_VIDGEN_CUDA_CAPS (GST_VIDGEN_SIZES) \
  "video/x-raw, format = (string) " GST_VIDGEN_MODEL_FORMATS ", " GST_VIDGEN_SIZES
#define GST_VIDGEN_MODEL_SRC_CAPS \
  GST_VIDGEN_CUDA_CAPS (GST_VIDGEN_ANY_SIZE) GST_VIDEO_CAPS_MAKE (GST_VIDGEN_MODEL_FORMATS)

/* The pixels of a mapped frame of one of the formats above; borrows them. */
void gst_vidgen_frame_from_video (const GstVideoFrame *video, struct vgk_frame *frame);

/* Its brightness, of any 8-bit format, as a frame that vg_scenecut_next() can look at; borrows the pixels. */
void gst_vidgen_frame_brightness (const GstVideoFrame *video, struct vgk_frame *frame);

/* An unknown matrix or range is taken as GStreamer does for a stream of this format and size that says nothing. */
void gst_vidgen_colour_from_info (const GstVideoInfo *info, struct vgk_colour *colour);

/* A runtime's failure in GStreamer's terms: the domain and code that fit status, err's text. */
void gst_vidgen_set_error (GError **error, enum vgk_status status, const struct vgk_error *err);

/* Posts the error, as an element's error, or as a warning that the stream survives, and frees it.
 * GST_FLOW_ERROR, so that a streaming function can return it. */
GstFlowReturn gst_vidgen_post (gpointer element, GstMessageType type, GError *error);

/* The file for what a user gave as model-file.  With a slash: that path.  Without one: a name, with or without
 * ".onnx", looked for in the directories of VIDGEN_MODEL_PATH (':' between them), vidgen/models of XDG_DATA_HOME and
 * XDG_DATA_DIRS, and where the models were installed; NAME.onnx with its ending in the working directory before all.
 * NULL when there is none; the error tells all places.  Free with g_free(). */
gchar *gst_vidgen_find_model (const gchar *name, GError **error);

G_END_DECLS

#endif
