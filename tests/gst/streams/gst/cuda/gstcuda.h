/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What gstvidgencuda.c uses of GStreamer's CUDA library as it is since 1.24, in our own words: one header, memory that
 * may have a stream, and a flag that says that what was done there has not been waited for.  The functions are the
 * test's. */
#ifndef STREAMS_GSTCUDA_H
#define STREAMS_GSTCUDA_H

#ifndef GST_USE_UNSTABLE_API
#error "the library's API is unstable: GST_USE_UNSTABLE_API is missing"
#endif

#include <cuda.h>
#include <gst/video/video.h>

typedef struct _GstCudaContext GstCudaContext;
typedef struct _GstCudaStream GstCudaStream;

struct _GstCudaContext
{
  GstObject object;
  gpointer priv;
};

GType gst_cuda_context_get_type (void);
#define GST_TYPE_CUDA_CONTEXT (gst_cuda_context_get_type ())
#define GST_CUDA_CONTEXT(o) (G_TYPE_CHECK_INSTANCE_CAST ((o), GST_TYPE_CUDA_CONTEXT, GstCudaContext))
gboolean gst_cuda_context_push (GstCudaContext *context);
gboolean gst_cuda_context_pop (CUcontext *handle);

/* Memory. */
#define GST_MAP_CUDA ((GstMapFlags) (GST_MAP_FLAG_LAST << 1))
typedef enum
{
  GST_CUDA_MEMORY_TRANSFER_NEED_DOWNLOAD = (GST_MEMORY_FLAG_LAST << 0),
  GST_CUDA_MEMORY_TRANSFER_NEED_UPLOAD = (GST_MEMORY_FLAG_LAST << 1),
  GST_CUDA_MEMORY_TRANSFER_NEED_SYNC = (GST_MEMORY_FLAG_LAST << 2),
} GstCudaMemoryTransfer;

typedef struct
{
  GstMemory mem;
  GstCudaContext *context;
  GstVideoInfo info;
  gpointer priv;
} GstCudaMemory;

#define GST_CUDA_MEMORY_CAST(mem) ((GstCudaMemory *) (mem))
void gst_cuda_memory_init_once (void);
gboolean gst_is_cuda_memory (GstMemory *mem);
void gst_cuda_memory_sync (GstCudaMemory *mem);

/* Pools. */
typedef struct
{
  GstBufferPool parent;
  GstCudaContext *context;
  gpointer priv;
} GstCudaBufferPool;

GType gst_cuda_buffer_pool_get_type (void);
#define GST_TYPE_CUDA_BUFFER_POOL (gst_cuda_buffer_pool_get_type ())
#define GST_CUDA_BUFFER_POOL(o) (G_TYPE_CHECK_INSTANCE_CAST ((o), GST_TYPE_CUDA_BUFFER_POOL, GstCudaBufferPool))
#define GST_IS_CUDA_BUFFER_POOL(o) (G_TYPE_CHECK_INSTANCE_TYPE ((o), GST_TYPE_CUDA_BUFFER_POOL))
GstBufferPool *gst_cuda_buffer_pool_new (GstCudaContext *context);

/* Contexts of elements. */
gboolean gst_cuda_load_library (void);
gboolean gst_cuda_ensure_element_context (GstElement *element, gint device_id, GstCudaContext **context);
gboolean gst_cuda_handle_set_context (
    GstElement *element, GstContext *message, gint device_id, GstCudaContext **context);
gboolean gst_cuda_handle_context_query (GstElement *element, GstQuery *query, GstCudaContext *context);

CUresult CuMemcpy2D (const CUDA_MEMCPY2D *copy);
CUresult CuStreamSynchronize (CUstream stream);

#endif
