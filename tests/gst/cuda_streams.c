/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gstvidgencuda.c on memory with streams (GStreamer >= 1.24), with a CUDA library of which every call is noted: what is
 * mapped has been waited for, what was written is marked complete, and contexts are pushed and popped in pairs. */
#define GST_USE_UNSTABLE_API
#include <gst/check/gstcheck.h>
#include <gst/cuda/gstcuda.h>

#include "../../gst/gstvidgencuda.h"
#include "../../gst/gstvidgenpool.h"

/* ---- the library ---- */

static GString *calls; /* "push ", "copy " ... in order */
static gboolean has_library;

typedef struct
{
  GstObjectClass parent_class;
} GstCudaContextClass;
typedef struct
{
  GstBufferPoolClass parent_class;
} GstCudaBufferPoolClass;
typedef struct
{
  GstAllocator parent;
} FakeAllocator;
typedef struct
{
  GstAllocatorClass parent_class;
} FakeAllocatorClass;

GType fake_allocator_get_type (void);
G_DEFINE_TYPE (GstCudaContext, gst_cuda_context, GST_TYPE_OBJECT);
G_DEFINE_TYPE (GstCudaBufferPool, gst_cuda_buffer_pool, GST_TYPE_BUFFER_POOL);
G_DEFINE_TYPE (FakeAllocator, fake_allocator, GST_TYPE_ALLOCATOR);

static void
get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  g_value_set_uint (value, 1);
}

static void
gst_cuda_context_class_init (GstCudaContextClass *klass)
{
  G_OBJECT_CLASS (klass)->get_property = get_property;
  g_object_class_install_property (G_OBJECT_CLASS (klass), 1,
      g_param_spec_uint ("cuda-device-id", "", "", 0, G_MAXINT, 0, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

static void
gst_cuda_context_init (GstCudaContext *context)
{
}

static void
gst_cuda_buffer_pool_class_init (GstCudaBufferPoolClass *klass)
{
}

static void
gst_cuda_buffer_pool_init (GstCudaBufferPool *pool)
{
}

static gpointer
map (GstMemory *memory, gsize size, GstMapFlags flags)
{
  g_string_append (calls, flags & GST_MAP_CUDA ? "map-device " : "map-host ");
  if ((flags & GST_MAP_CUDA) && (flags & GST_MAP_WRITE))
    GST_MINI_OBJECT_FLAG_SET (memory, GST_CUDA_MEMORY_TRANSFER_NEED_SYNC);
  return GST_CUDA_MEMORY_CAST (memory)->priv;
}

static void
unmap (GstMemory *memory)
{
}

static void
free_memory (GstAllocator *allocator, GstMemory *memory)
{
  gst_object_unref (GST_CUDA_MEMORY_CAST (memory)->context);
  g_free (GST_CUDA_MEMORY_CAST (memory)->priv);
  g_free (memory);
}

static void
fake_allocator_class_init (FakeAllocatorClass *klass)
{
  GST_ALLOCATOR_CLASS (klass)->free = free_memory;
}

static void
fake_allocator_init (FakeAllocator *allocator)
{
  GST_ALLOCATOR (allocator)->mem_type = "fake.cuda";
  GST_ALLOCATOR (allocator)->mem_map = map;
  GST_ALLOCATOR (allocator)->mem_unmap = unmap;
  GST_OBJECT_FLAG_SET (allocator, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC);
}

gboolean
gst_cuda_context_push (GstCudaContext *context)
{
  g_string_append (calls, "push ");
  return TRUE;
}

gboolean
gst_cuda_context_pop (CUcontext *handle)
{
  g_string_append (calls, "pop ");
  return TRUE;
}

void
gst_cuda_memory_init_once (void)
{
}

gboolean
gst_is_cuda_memory (GstMemory *memory)
{
  return memory && g_strcmp0 (memory->allocator->mem_type, "fake.cuda") == 0;
}

void
gst_cuda_memory_sync (GstCudaMemory *memory)
{
  if (GST_MEMORY_FLAG_IS_SET (memory, GST_CUDA_MEMORY_TRANSFER_NEED_SYNC))
    g_string_append (calls, "sync ");
  GST_MEMORY_FLAG_UNSET (memory, GST_CUDA_MEMORY_TRANSFER_NEED_SYNC);
}

GstBufferPool *
gst_cuda_buffer_pool_new (GstCudaContext *context)
{
  GstCudaBufferPool *pool = g_object_new (GST_TYPE_CUDA_BUFFER_POOL, NULL);

  gst_object_ref_sink (pool);
  pool->context = context;
  return GST_BUFFER_POOL (pool);
}

gboolean
gst_cuda_load_library (void)
{
  g_string_append (calls, "load ");
  return has_library;
}

gboolean
gst_cuda_ensure_element_context (GstElement *element, gint device, GstCudaContext **context)
{
  g_string_append (calls, "ensure ");
  if (!*context)
    *context = gst_object_ref_sink (g_object_new (GST_TYPE_CUDA_CONTEXT, NULL));
  return TRUE;
}

gboolean
gst_cuda_handle_set_context (GstElement *element, GstContext *message, gint device, GstCudaContext **context)
{
  g_string_append (calls, "set ");
  return TRUE;
}

gboolean
gst_cuda_handle_context_query (GstElement *element, GstQuery *query, GstCudaContext *context)
{
  g_string_append (calls, "query ");
  return TRUE;
}

CUresult
CuMemcpy2D (const CUDA_MEMCPY2D *copy)
{
  const gchar *from = copy->srcMemoryType == CU_MEMORYTYPE_HOST ? copy->srcHost : (gchar *) copy->srcDevice;
  gchar *to = copy->dstMemoryType == CU_MEMORYTYPE_HOST ? copy->dstHost : (gchar *) copy->dstDevice;

  g_string_append (calls, "copy ");
  for (gsize y = 0; y < copy->Height; y++)
    memcpy (to + y * copy->dstPitch, from + y * copy->srcPitch, copy->WidthInBytes);
  return CUDA_SUCCESS;
}

CUresult
CuStreamSynchronize (CUstream stream)
{
  g_string_append (calls, "wait ");
  return CUDA_SUCCESS;
}

/* ---- tests ---- */

static GstObject *
new_context (void)
{
  return gst_object_ref_sink (g_object_new (GST_TYPE_CUDA_CONTEXT, NULL));
}

static GstBuffer *
new_frame (const GstVideoInfo *info, GstObject *context, guint8 value)
{
  GstAllocator *allocator = gst_object_ref_sink (g_object_new (fake_allocator_get_type (), NULL));
  GstCudaMemory *memory = g_new0 (GstCudaMemory, 1);
  GstBuffer *buffer = gst_buffer_new ();

  gst_memory_init (GST_MEMORY_CAST (memory), 0, allocator, NULL, info->size, 0, 0, info->size);
  memory->context = gst_object_ref (GST_CUDA_CONTEXT (context));
  memory->priv = g_malloc (info->size);
  memset (memory->priv, value, info->size);
  gst_buffer_append_memory (buffer, GST_MEMORY_CAST (memory));
  gst_object_unref (allocator);
  return buffer;
}

static void
expect_calls (const gchar *wanted)
{
  fail_unless_equals_string (calls->str, wanted);
  g_string_truncate (calls, 0);
}

static gboolean
pending (GstBuffer *buffer)
{
  return GST_MEMORY_FLAG_IS_SET (gst_buffer_peek_memory (buffer, 0), GST_CUDA_MEMORY_TRANSFER_NEED_SYNC);
}

GST_START_TEST (test_frames)
{
  GstObject *context = new_context (), *other = new_context ();
  GstBuffer *in, *out, *room = NULL;
  GstVideoFrame a, b;
  GstVideoInfo info;

  calls = g_string_new (NULL);
  gst_video_info_set_format (&info, GST_VIDEO_FORMAT_I420, 8, 6);
  in = new_frame (&info, context, 7);
  out = new_frame (&info, context, 0);
  fail_unless (gst_vidgen_cuda_context_of (in) == context);
  fail_unless_equals_int (gst_vidgen_cuda_device (context), 1);

  /* What somebody's stream still writes is waited for; what has been written by us is complete. */
  GST_MINI_OBJECT_FLAG_SET (gst_buffer_peek_memory (in, 0), GST_CUDA_MEMORY_TRANSFER_NEED_SYNC);
  fail_unless (gst_vidgen_cuda_map (&a, &info, in, GST_MAP_READ, context));
  fail_unless (gst_vidgen_frame_on_device (&a) && !pending (in));
  fail_unless (g_str_has_prefix (calls->str, "sync map-device "), "%s", calls->str);
  fail_unless (gst_vidgen_cuda_map (&b, &info, out, GST_MAP_WRITE, context));
  fail_unless (pending (out));
  g_string_truncate (calls, 0);
  fail_unless (gst_vidgen_cuda_copy (&b, &a));
  expect_calls ("push copy copy copy wait pop ");
  gst_vidgen_cuda_unmap (&b);
  gst_vidgen_cuda_unmap (&a);
  fail_unless (!pending (out) && !pending (in));
  g_string_truncate (calls, 0);

  /* To the host. */
  room = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&info), NULL);
  fail_unless (gst_vidgen_cuda_map (&a, &info, out, GST_MAP_READ, context));
  fail_unless (gst_vidgen_cuda_map (&b, &info, room, GST_MAP_WRITE, context));
  g_string_truncate (calls, 0);
  fail_unless (gst_vidgen_cuda_copy (&b, &a));
  fail_unless (!gst_vidgen_frame_on_device (&b));
  expect_calls ("push copy copy copy wait pop ");
  for (guint p = 0; p < 3; p++)
    fail_unless_equals_int (*(guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&b, p), 7);
  gst_vidgen_cuda_unmap (&b);
  gst_vidgen_cuda_unmap (&a);

  /* Memory of another context is mapped on the host, and by nobody else's rules. */
  fail_unless (gst_vidgen_cuda_map (&a, &info, in, GST_MAP_READ, other));
  fail_unless (!gst_vidgen_frame_on_device (&a));
  fail_unless (strstr (calls->str, "map-host ") && !strstr (calls->str, "map-device "));
  gst_vidgen_cuda_unmap (&a);

  gst_buffer_unref (in);
  gst_buffer_unref (out);
  gst_buffer_unref (room);
  gst_object_unref (context);
  gst_object_unref (other);
  g_string_free (calls, TRUE);
}
GST_END_TEST;

/* Without the library nothing of it is called: it would abort. */
GST_START_TEST (test_contexts)
{
  GstObject *context = NULL, *before;

  calls = g_string_new (NULL);
  has_library = FALSE;
  gst_vidgen_cuda_ensure (NULL, -1, &context);
  gst_vidgen_cuda_set_context (NULL, NULL, -1, &context);
  fail_unless (!context);
  expect_calls ("load load ");
  gst_vidgen_cuda_push (NULL);
  gst_vidgen_cuda_pop (NULL);
  fail_unless (!gst_vidgen_cuda_answer_context (NULL, NULL, NULL));
  expect_calls ("");

  has_library = TRUE;
  gst_vidgen_cuda_ensure (NULL, -1, &context);
  expect_calls ("load ensure ");
  before = context;
  gst_vidgen_cuda_ensure (NULL, 1, &context); /* it is that device's */
  expect_calls ("");
  fail_unless (context == before);
  gst_object_ref (before);
  gst_vidgen_cuda_ensure (NULL, 0, &context); /* another one */
  expect_calls ("load ensure ");
  fail_unless (context && context != before);
  fail_unless_equals_int (GST_OBJECT_REFCOUNT_VALUE (before), 1);
  gst_object_unref (before);
  gst_object_unref (context);
  g_string_free (calls, TRUE);
}
GST_END_TEST;

/* A pool of another context, or of none, is no good. */
GST_START_TEST (test_pools)
{
  GstObject *context = new_context (), *other = new_context ();
  GstCaps *caps = gst_caps_from_string ("video/x-raw(memory:CUDAMemory),format=RGB,width=8,height=6,framerate=25/1");
  GstBufferPool *offered[] = {gst_cuda_buffer_pool_new (GST_CUDA_CONTEXT (context)),
      gst_cuda_buffer_pool_new (GST_CUDA_CONTEXT (other)), gst_video_buffer_pool_new ()};

  for (guint i = 0; i < G_N_ELEMENTS (offered); i++) {
    GstQuery *query = gst_query_new_allocation (caps, TRUE);
    GstBufferPool *pool;
    guint min;

    gst_query_add_allocation_pool (query, offered[i], 144, 2, 0);
    fail_unless (gst_vidgen_pool_ensure (query, 3, context));
    gst_query_parse_nth_allocation_pool (query, 0, &pool, NULL, &min, NULL);
    fail_unless_equals_int (pool == offered[i], i == 0);
    fail_unless (GST_OBJECT (GST_CUDA_BUFFER_POOL (pool)->context) == context);
    fail_unless_equals_int (min, i == 0 ? 5 : 3);
    gst_object_unref (pool);
    gst_query_unref (query);
    gst_object_unref (offered[i]);
  }
  gst_caps_unref (caps);
  gst_object_unref (context);
  gst_object_unref (other);
}
GST_END_TEST;

static Suite *
cuda_streams_suite (void)
{
  Suite *s = suite_create ("cuda streams");
  TCase *tc = tcase_create ("all");

  suite_add_tcase (s, tc);
  tcase_add_test (tc, test_frames);
  tcase_add_test (tc, test_contexts);
  tcase_add_test (tc, test_pools);
  return s;
}

GST_CHECK_MAIN (cuda_streams)
