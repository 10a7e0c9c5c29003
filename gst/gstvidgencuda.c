/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgencuda.h"

gboolean
gst_vidgen_caps_in_cuda (const GstCaps *caps)
{
  return caps && gst_caps_get_size (caps) > 0 && !gst_caps_is_any (caps) &&
      gst_caps_features_contains (gst_caps_get_features (caps, 0), GST_VIDGEN_CUDA_FEATURE);
}

GstCaps *
gst_vidgen_caps_other_memory (const GstCaps *caps)
{
  GstCaps *other = gst_caps_copy (caps);

  for (guint i = 0; i < gst_caps_get_size (other); i++)
    gst_caps_set_features (other, i,
        gst_caps_features_contains (gst_caps_get_features (other, i), GST_VIDGEN_CUDA_FEATURE)
            ? gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY, NULL)
            : gst_caps_features_new (GST_VIDGEN_CUDA_FEATURE, NULL));
  return other;
}

#ifdef VIDGEN_GST_CUDA

#define GST_USE_UNSTABLE_API
/* Does memory have streams?  (Tests compile both.) */
#ifndef GST_VIDGEN_CUDA_STREAMS
#define GST_VIDGEN_CUDA_STREAMS GST_CHECK_VERSION (1, 24, 0)
#endif
#if GST_VIDGEN_CUDA_STREAMS
#include <gst/cuda/gstcuda.h>
#else
#include <gst/cuda/gstcudabufferpool.h>
#include <gst/cuda/gstcudacontext.h>
#include <gst/cuda/gstcudaloader.h>
#include <gst/cuda/gstcudamemory.h>
#include <gst/cuda/gstcudautils.h>
#endif

/* ---- contexts ---- */

/* Without a driver the library's other functions abort.  Built before memory had streams, and run since: what comes may
 * not be complete yet, and we could not know, so there are no frames in CUDA memory then. */
static gboolean
can_use (void)
{
  guint major, minor, micro, nano;

  gst_version (&major, &minor, &micro, &nano);
  if (!GST_VIDGEN_CUDA_STREAMS && minor >= 23) {
    GST_WARNING ("built for GStreamer before 1.24, running with %u.%u: no frames in CUDA memory; build it again", major,
        minor);
    return FALSE;
  }
  return gst_cuda_load_library ();
}

void
gst_vidgen_cuda_ensure (GstElement *element, gint device, GstObject **context)
{
  if (*context && device >= 0 && gst_vidgen_cuda_device (*context) != device)
    gst_clear_object (context);
  if (!*context && can_use ()) {
    gst_cuda_memory_init_once ();
    gst_cuda_ensure_element_context (element, device, (GstCudaContext **) context);
  }
}

void
gst_vidgen_cuda_set_context (GstElement *element, GstContext *message, gint device, GstObject **context)
{
  if (can_use ())
    gst_cuda_handle_set_context (element, message, device, (GstCudaContext **) context);
}

gboolean
gst_vidgen_cuda_answer_context (GstElement *element, GstQuery *query, GstObject *context)
{
  return context && gst_cuda_handle_context_query (element, query, GST_CUDA_CONTEXT (context));
}

gint
gst_vidgen_cuda_device (GstObject *context)
{
  guint device;

  g_object_get (context, "cuda-device-id", &device, NULL);
  return device;
}

void
gst_vidgen_cuda_push (GstObject *context)
{
  if (context)
    gst_cuda_context_push (GST_CUDA_CONTEXT (context));
}

void
gst_vidgen_cuda_pop (GstObject *context)
{
  if (context)
    gst_cuda_context_pop (NULL);
}

/* ---- frames ---- */

GstObject *
gst_vidgen_cuda_context_of (GstBuffer *buffer)
{
  GstMemory *memory = gst_buffer_n_memory (buffer) > 0 ? gst_buffer_peek_memory (buffer, 0) : NULL;

  return gst_is_cuda_memory (memory) ? GST_OBJECT (GST_CUDA_MEMORY_CAST (memory)->context) : NULL;
}

#if GST_VIDGEN_CUDA_STREAMS
static void
wait_for (GstBuffer *buffer)
{
  for (guint i = 0; i < gst_buffer_n_memory (buffer); i++)
    gst_cuda_memory_sync (GST_CUDA_MEMORY_CAST (gst_buffer_peek_memory (buffer, i)));
}

static void
mark_complete (GstBuffer *buffer)
{
  for (guint i = 0; i < gst_buffer_n_memory (buffer); i++)
    GST_MEMORY_FLAG_UNSET (gst_buffer_peek_memory (buffer, i), GST_CUDA_MEMORY_TRANSFER_NEED_SYNC);
}
#else
static void
wait_for (GstBuffer *buffer)
{
}

static void
mark_complete (GstBuffer *buffer)
{
}
#endif

gboolean
gst_vidgen_cuda_map (
    GstVideoFrame *frame, const GstVideoInfo *info, GstBuffer *buffer, GstMapFlags flags, GstObject *context)
{
  if (context && gst_vidgen_cuda_context_of (buffer) == context) {
    wait_for (buffer); /* what is written must not be read any more either */
    flags |= GST_MAP_CUDA;
  }
  return gst_video_frame_map (frame, info, buffer, flags);
}

void
gst_vidgen_cuda_unmap (GstVideoFrame *frame)
{
  gboolean written = gst_vidgen_frame_on_device (frame) && (frame->map[0].flags & GST_MAP_WRITE);
  GstBuffer *buffer = written ? gst_buffer_ref (frame->buffer) : NULL;

  gst_video_frame_unmap (frame);
  if (written) {
    mark_complete (buffer);
    gst_buffer_unref (buffer);
  }
}

gboolean
gst_vidgen_frame_on_device (const GstVideoFrame *frame)
{
  return (frame->map[0].flags & GST_MAP_CUDA) == GST_MAP_CUDA;
}

gboolean
gst_vidgen_cuda_copy (const GstVideoFrame *to, const GstVideoFrame *from)
{
  gboolean up = gst_vidgen_frame_on_device (to), down = gst_vidgen_frame_on_device (from), ok = TRUE;
  GstObject *context = up ? gst_vidgen_cuda_context_of (to->buffer) : gst_vidgen_cuda_context_of (from->buffer);

  if (!up && !down)
    return gst_video_frame_copy ((GstVideoFrame *) to, from);
  gst_vidgen_cuda_push (context);
  for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES (from) && ok; p++) {
    gint comp[GST_VIDEO_MAX_COMPONENTS];
    CUDA_MEMCPY2D copy = {.srcMemoryType = down ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST};

    gst_video_format_info_component (from->info.finfo, p, comp);
    copy.srcHost = GST_VIDEO_FRAME_PLANE_DATA (from, p);
    copy.srcDevice = (CUdeviceptr) (guintptr) GST_VIDEO_FRAME_PLANE_DATA (from, p);
    copy.srcPitch = GST_VIDEO_FRAME_PLANE_STRIDE (from, p);
    copy.dstHost = GST_VIDEO_FRAME_PLANE_DATA (to, p);
    copy.dstDevice = (CUdeviceptr) (guintptr) GST_VIDEO_FRAME_PLANE_DATA (to, p);
    copy.dstPitch = GST_VIDEO_FRAME_PLANE_STRIDE (to, p);
    copy.WidthInBytes = GST_VIDEO_FRAME_COMP_WIDTH (from, comp[0]) * GST_VIDEO_FRAME_COMP_PSTRIDE (from, comp[0]);
    copy.Height = GST_VIDEO_FRAME_COMP_HEIGHT (from, comp[0]);
    ok = CuMemcpy2D (&copy) == CUDA_SUCCESS;
  }
  ok = ok && CuStreamSynchronize (NULL) == CUDA_SUCCESS; /* copies within a device return at once */
  gst_vidgen_cuda_pop (context);
  return ok;
}

/* ---- pools ---- */

gboolean
gst_vidgen_cuda_pool_is_of (GstBufferPool *pool, GstObject *context)
{
  return GST_IS_CUDA_BUFFER_POOL (pool) && GST_OBJECT (GST_CUDA_BUFFER_POOL (pool)->context) == context;
}

GstBufferPool *
gst_vidgen_cuda_pool_new (GstCaps *caps, const GstVideoInfo *info, guint min, GstObject *context, guint *size)
{
  GstBufferPool *pool = gst_cuda_buffer_pool_new (GST_CUDA_CONTEXT (context));
  GstStructure *config = gst_buffer_pool_get_config (pool);

  gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  gst_buffer_pool_config_set_params (config, caps, GST_VIDEO_INFO_SIZE (info), min, 0);
  if (!gst_buffer_pool_set_config (pool, config)) {
    gst_object_unref (pool);
    return NULL;
  }
  /* Only the pool knows how the driver pads rows. */
  config = gst_buffer_pool_get_config (pool);
  gst_buffer_pool_config_get_params (config, NULL, size, NULL, NULL);
  gst_structure_free (config);
  return pool;
}

#else

void
gst_vidgen_cuda_ensure (GstElement *element, gint device, GstObject **context)
{
}

void
gst_vidgen_cuda_set_context (GstElement *element, GstContext *message, gint device, GstObject **context)
{
}

gboolean
gst_vidgen_cuda_answer_context (GstElement *element, GstQuery *query, GstObject *context)
{
  return FALSE;
}

gint
gst_vidgen_cuda_device (GstObject *context)
{
  return 0;
}

void
gst_vidgen_cuda_push (GstObject *context)
{
}

void
gst_vidgen_cuda_pop (GstObject *context)
{
}

GstObject *
gst_vidgen_cuda_context_of (GstBuffer *buffer)
{
  return NULL;
}

gboolean
gst_vidgen_cuda_map (
    GstVideoFrame *frame, const GstVideoInfo *info, GstBuffer *buffer, GstMapFlags flags, GstObject *context)
{
  return gst_video_frame_map (frame, info, buffer, flags);
}

void
gst_vidgen_cuda_unmap (GstVideoFrame *frame)
{
  gst_video_frame_unmap (frame);
}

gboolean
gst_vidgen_frame_on_device (const GstVideoFrame *frame)
{
  return FALSE;
}

gboolean
gst_vidgen_cuda_copy (const GstVideoFrame *to, const GstVideoFrame *from)
{
  return gst_video_frame_copy ((GstVideoFrame *) to, from);
}

gboolean
gst_vidgen_cuda_pool_is_of (GstBufferPool *pool, GstObject *context)
{
  return FALSE;
}

GstBufferPool *
gst_vidgen_cuda_pool_new (GstCaps *caps, const GstVideoInfo *info, guint min, GstObject *context, guint *size)
{
  return NULL;
}

#endif
