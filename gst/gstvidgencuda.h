/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames in CUDA memory, by GStreamer's library for it (gstreamer-cuda-1.0).  Built without that, there are none: every
 * context is NULL.
 *
 * A context (GstCudaContext, here a GstObject) is one of the driver's: memory and work belong to it.  GStreamer makes
 * them with cuCtxCreate, so they are not the device's primary one, which CUDA's runtime takes by itself; but the
 * runtime works in whatever context the thread has current.  So a device that shares frames with other elements is
 * opened with vgk_device_options.in_context, and each call of it stands between gst_vidgen_cuda_push and
 * gst_vidgen_cuda_pop.
 *
 * When frames are complete: before GStreamer 1.24 whoever hands memory on has waited for it.  Since then memory may
 * have a stream and a flag that says that it must be waited for: what is read is waited for, and what was written is
 * complete when it is unmapped (the device has been waited for), so the flag is taken off. */
#ifndef GST_VIDGEN_CUDA_H
#define GST_VIDGEN_CUDA_H

#include <gst/video/video.h>

G_BEGIN_DECLS

#define GST_VIDGEN_CUDA_FEATURE "memory:CUDAMemory"

#define GST_VIDGEN_ANY_SIZE \
  "width = " GST_VIDEO_SIZE_RANGE ", height = " GST_VIDEO_SIZE_RANGE ", framerate = " GST_VIDEO_FPS_RANGE

/* The caps of a pad template for frames in CUDA memory, with a semicolon behind; `rest` are its other fields.  Formats:
 * what the models take and GStreamer 1.22 can allocate. */
#ifdef VIDGEN_GST_CUDA
#define GST_VIDGEN_CUDA_CAPS(rest) \
  "video/x-raw(" GST_VIDGEN_CUDA_FEATURE "), format = (string) { I420, NV12, RGB, BGR, RGBx, BGRx, RGBA, BGRA, ARGB, " \
  "ABGR, GBR }, " rest "; "
#else
#define GST_VIDGEN_CUDA_CAPS(rest) ""
#endif

/* Do these caps (their first structure) say CUDA memory? */
gboolean gst_vidgen_caps_in_cuda (const GstCaps *caps);

/* The same caps in the other kind of memory. */
GstCaps *gst_vidgen_caps_other_memory (const GstCaps *caps);

/* ---- contexts ---- */

/* Makes *context one for this device (-1 = any), unless it is: asks the neighbours and the application, or else makes
 * one and tells them.  *context stays NULL where there is no driver or no such device.  Comes back in set_context, on
 * the same thread. */
void gst_vidgen_cuda_ensure (GstElement *element, gint device, GstObject **context);

/* For the element's set_context and for its CONTEXT queries.  TRUE: answered. */
void gst_vidgen_cuda_set_context (GstElement *element, GstContext *message, gint device, GstObject **context);
gboolean gst_vidgen_cuda_answer_context (GstElement *element, GstQuery *query, GstObject *context);

/* Which GPU. */
gint gst_vidgen_cuda_device (GstObject *context);

/* NULL: nothing to do. */
void gst_vidgen_cuda_push (GstObject *context);
void gst_vidgen_cuda_pop (GstObject *context);

/* ---- frames ---- */

/* Of the buffer's memory, borrowed; NULL: it is no CUDA memory. */
GstObject *gst_vidgen_cuda_context_of (GstBuffer *buffer);

/* As gst_video_frame_map, but memory of this context is mapped where it lies, on the device; all else, and with NULL
 * everything, on the host. */
gboolean gst_vidgen_cuda_map (
    GstVideoFrame *frame, const GstVideoInfo *info, GstBuffer *buffer, GstMapFlags flags, GstObject *context);
void gst_vidgen_cuda_unmap (GstVideoFrame *frame);

gboolean gst_vidgen_frame_on_device (const GstVideoFrame *frame);

/* Between mapped frames of one format and size, wherever they lie; done when it returns. */
gboolean gst_vidgen_cuda_copy (const GstVideoFrame *to, const GstVideoFrame *from);

/* ---- pools (gstvidgenpool.h chooses) ---- */

/* Does it give memory of this context? */
gboolean gst_vidgen_cuda_pool_is_of (GstBufferPool *pool, GstObject *context);

/* One that does, configured; *size: of its buffers.  NULL: it cannot be had. */
GstBufferPool *gst_vidgen_cuda_pool_new (
    GstCaps *caps, const GstVideoInfo *info, guint min, GstObject *context, guint *size);

G_END_DECLS

#endif
