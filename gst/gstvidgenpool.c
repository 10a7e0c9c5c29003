/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenpool.h"

#include "gstvidgencuda.h"

static gboolean
configure_pool (GstBufferPool *pool, GstCaps *caps, guint size, guint min, guint max, GstAllocator *allocator,
    const GstAllocationParams *params, gboolean video_meta)
{
  GstStructure *config = gst_buffer_pool_get_config (pool);

  gst_buffer_pool_config_set_params (config, caps, size, min, max);
  gst_buffer_pool_config_set_allocator (config, allocator, params);
  if (video_meta)
    gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (gst_buffer_pool_set_config (pool, config))
    return TRUE;
  /* The pool changed what it cannot do: fine, if it still makes these frames. */
  config = gst_buffer_pool_get_config (pool);
  if (!gst_buffer_pool_config_validate_params (config, caps, size, min, max)) {
    gst_structure_free (config);
    return FALSE;
  }
  return gst_buffer_pool_set_config (pool, config);
}

GstBufferPool *
gst_vidgen_pool_new (GstPad *srcpad, GstCaps *caps, const GstVideoInfo *info, guint kept)
{
  GstQuery *query = gst_query_new_allocation (caps, TRUE);
  GstAllocator *allocator = NULL;
  GstAllocationParams params;
  GstBufferPool *pool = NULL;
  guint size = GST_VIDEO_INFO_SIZE (info), min = 0, max = 0;
  gboolean video_meta = FALSE, ok = FALSE;

  gst_allocation_params_init (&params);
  if (gst_pad_peer_query (srcpad, query)) {
    video_meta = gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
    if (gst_query_get_n_allocation_params (query) > 0)
      gst_query_parse_nth_allocation_param (query, 0, &allocator, &params);
    if (gst_query_get_n_allocation_pools (query) > 0) {
      gst_query_parse_nth_allocation_pool (query, 0, &pool, &size, &min, &max);
      size = MAX (size, GST_VIDEO_INFO_SIZE (info));
    }
  }
  gst_query_unref (query);

  min += kept;
  if (pool && (max == 0 || max >= min + 1))
    ok = configure_pool (pool, caps, size, min, max, allocator, &params, video_meta);
  if (!ok) {
    gst_clear_object (&pool);
    pool = gst_video_buffer_pool_new ();
    ok = configure_pool (pool, caps, GST_VIDEO_INFO_SIZE (info), min, 0, allocator, &params, video_meta);
  }
  gst_clear_object (&allocator);
  if (!ok || !gst_buffer_pool_set_active (pool, TRUE))
    gst_clear_object (&pool);
  return pool;
}

gboolean
gst_vidgen_pool_ensure (GstQuery *query, guint kept, GstObject *context)
{
  gboolean offered = gst_query_get_n_allocation_pools (query) > 0;
  GstBufferPool *pool = NULL;
  guint size = 0, min = 0, max = 0;
  GstVideoInfo info;
  GstCaps *caps;

  if (offered)
    gst_query_parse_nth_allocation_pool (query, 0, &pool, &size, &min, &max);
  min += kept;
  if (!pool || (max > 0 && max < min + 1) || (context && !gst_vidgen_cuda_pool_is_of (pool, context))) {
    gst_clear_object (&pool);
    gst_query_parse_allocation (query, &caps, NULL);
    if (!caps || !gst_video_info_from_caps (&info, caps))
      return FALSE;
    size = GST_VIDEO_INFO_SIZE (&info);
    min = kept;
    max = 0;
    pool = context ? gst_vidgen_cuda_pool_new (caps, &info, min, context, &size) : gst_video_buffer_pool_new ();
    if (!pool)
      return FALSE;
  }
  if (offered)
    gst_query_set_nth_allocation_pool (query, 0, pool, size, min, max);
  else
    gst_query_add_allocation_pool (query, pool, size, min, max);
  gst_object_unref (pool);
  return TRUE;
}

gboolean
gst_vidgen_pool_use_strides (GstQuery *query)
{
  GstBufferPool *pool;
  GstStructure *config;
  gboolean ok = TRUE;

  gst_query_parse_nth_allocation_pool (query, 0, &pool, NULL, NULL, NULL);
  if (gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL) &&
      gst_buffer_pool_has_option (pool, GST_BUFFER_POOL_OPTION_VIDEO_META)) {
    config = gst_buffer_pool_get_config (pool);
    gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
    ok = gst_buffer_pool_set_config (pool, config);
  }
  gst_object_unref (pool);
  return ok;
}

gboolean
gst_vidgen_pool_answer (GstQuery *query, guint min, GstObject *context)
{
  GstBufferPool *pool = NULL;
  GstVideoInfo info;
  GstCaps *caps;
  guint size;

  gst_query_parse_allocation (query, &caps, NULL);
  if (!caps || !gst_video_info_from_caps (&info, caps))
    return FALSE;
  size = GST_VIDEO_INFO_SIZE (&info);
  if (context && !(pool = gst_vidgen_cuda_pool_new (caps, &info, min, context, &size)))
    return FALSE;
  gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  gst_query_add_allocation_pool (query, pool, size, min, 0);
  gst_clear_object (&pool);
  return TRUE;
}
