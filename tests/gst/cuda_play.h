/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pipelines with frames in CUDA memory, on the stand-ins for the driver (tests/cuda/gstdriver) and the device. */
#ifndef CUDA_PLAY_H
#define CUDA_PLAY_H

#define GST_USE_UNSTABLE_API
#include <gst/cuda/gstcudabufferpool.h>
#include <gst/cuda/gstcudacontext.h>
#include <gst/cuda/gstcudaloader.h>
#include <gst/cuda/gstcudamemory.h>
#include <gst/cuda/gstcudautils.h>

#include "../cuda/gstdriver/gstdriver.h"
#include "frames.h"
#include "live_objects.h"
#include "pipeline.h"
#include "time_nets.h"

#define IN_CUDA "video/x-raw(memory:CUDAMemory)"
#define FRAMES 2
/* Odd heights of I420 overlap in the pools of GStreamer 1.22. */
#define SOURCE \
  "videotestsrc num-buffers=%d pattern=zone-plate kx2=8 ky2=8 ! video/x-raw,format=%s,width=37,height=%d ! "
#define UPLOAD "cudaupload ! " IN_CUDA " ! "
#define TO_CUDA IN_CUDA " ! "
#define TO_HOST "video/x-raw ! "

G_GNUC_UNUSED static gboolean
lies_in_cuda (GstCaps *caps)
{
  return gst_caps_features_contains (gst_caps_get_features (caps, 0), "memory:CUDAMemory");
}

G_GNUC_UNUSED static void
expect_no_contexts (void)
{
  fail_unless_equals_int (gstdriver_contexts (), 0);
}

/* The frame in this context; takes it. */
G_GNUC_UNUSED static GstBuffer *
take_to (GstCudaContext *context, GstCaps *caps, GstBuffer *noise)
{
  GstBufferPool *pool = gst_cuda_buffer_pool_new (context);
  GstStructure *config = gst_buffer_pool_get_config (pool);
  GstVideoInfo info;
  GstVideoFrame from, to;
  GstBuffer *buffer;

  fail_unless (gst_video_info_from_caps (&info, caps));
  gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  gst_buffer_pool_config_set_params (config, caps, info.size, 0, 0);
  fail_unless (gst_buffer_pool_set_config (pool, config) && gst_buffer_pool_set_active (pool, TRUE));
  fail_unless_equals_int (gst_buffer_pool_acquire_buffer (pool, &buffer, NULL), GST_FLOW_OK);
  fail_unless (gst_video_frame_map (&from, &info, noise, GST_MAP_READ));
  fail_unless (gst_video_frame_map (&to, &info, buffer, GST_MAP_WRITE));
  gst_video_frame_copy (&to, &from);
  gst_video_frame_unmap (&to);
  gst_video_frame_unmap (&from);
  gst_buffer_copy_into (buffer, noise, GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS, 0, -1);
  gst_buffer_unref (noise);
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
  return buffer;
}

G_GNUC_UNUSED static GstCaps *
caps_in_cuda (const gchar *format, gint width, gint height)
{
  GstCaps *caps = frames_caps (format, width, height);

  gst_caps_set_features (caps, 0, gst_caps_features_new ("memory:CUDAMemory", NULL));
  return caps;
}

/* A frame of noise in this context. */
G_GNUC_UNUSED static GstBuffer *
frame_in (GstCudaContext *context, GstCaps *caps, guint seed)
{
  GstVideoInfo info;

  fail_unless (gst_video_info_from_caps (&info, caps));
  return take_to (context, caps, frames_new (&info, seed, 0, FALSE));
}

/* Runs the tests, where the plugin is that makes such memory; status 77 where it is not. */
G_GNUC_UNUSED static int
cuda_play_main (int argc, char **argv, TCase *(*make) (void), const gchar *name)
{
  Suite *s = suite_create (name);
  GstPlugin *plugin;
  TCase *tc;

  g_setenv ("GST_TRACERS", "leaks", TRUE);
  gst_check_init (&argc, &argv);
  plugin = gst_registry_find_plugin (gst_registry_get (), "nvcodec");
  if (!plugin) {
    g_print ("nvcodec, of gst-plugins-bad, is missing\n");
    exit (77);
  }
  gst_object_unref (plugin);
  g_assert_true (gst_cuda_load_library ()); /* contexts are made here, too */
  tc = make ();
  tcase_set_timeout (tc, 300);
  suite_add_tcase (s, tc);
  return gst_check_run_suite (s, name, __FILE__);
}

#endif
