/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The element chain over one frame after the other, beside bench-model, which runs the same without GStreamer.
 *
 *     bench-pipeline MODEL.onnx WIDTH HEIGHT [-threads N] [-tile WIDTH HEIGHT]
 *
 * Serves as bench-model does: "ready 0 PEAK-RESIDENT-BYTES 0", then for every line on stdin one frame goes in, its result
 * is waited for, and the seconds that took are printed, by the clock and of the CPUs.  GST_PLUGIN_PATH must have the
 * plugin. */
#include <gst/app/app.h>
#include <gst/video/video.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static gdouble
now (clockid_t clock)
{
  struct timespec t;

  clock_gettime (clock, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static GstBuffer *
pattern (gint width, gint height)
{
  gsize stride = GST_ROUND_UP_4 (3 * width);
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, stride * height, NULL);
  GstMapInfo map;

  gst_buffer_map (buffer, &map, GST_MAP_WRITE);
  for (gint y = 0; y < height; y++)
    for (gint x = 0; x < width; x++)
      for (gint c = 0; c < 3; c++)
        map.data[y * stride + 3 * x + c] = (x * (c + 1) + y * (3 - c)) ^
            (x * y >> 6);
  gst_buffer_unmap (buffer, &map);
  return buffer;
}

/* FALSE: the pipeline failed. */
static gboolean
one_frame (GstElement * in, GstElement * out, GstBuffer * frame, guint number)
{
  GstBuffer *buffer = gst_buffer_copy (frame);
  GstSample *sample;

  GST_BUFFER_PTS (buffer) = number * GST_SECOND / 25;
  GST_BUFFER_DURATION (buffer) = GST_SECOND / 25;
  gst_app_src_push_buffer (GST_APP_SRC (in), buffer);
  sample = gst_app_sink_pull_sample (GST_APP_SINK (out));
  if (sample)
    gst_sample_unref (sample);
  return sample != NULL;
}

int
main (int argc, char **argv)
{
  gint width = argc > 2 ? atoi (argv[2]) : 0;
  gint height = argc > 3 ? atoi (argv[3]) : 0;
  GString *line = g_string_new (NULL);
  GError *error = NULL;
  GstElement *pipeline, *in, *out;
  GstBuffer *frame;
  struct rusage usage;
  gchar input[64];
  gboolean good;

  gst_init (NULL, NULL);
  if (width < 1 || height < 1) {
    g_printerr ("usage: bench-pipeline MODEL.onnx WIDTH HEIGHT [-threads N] "
        "[-tile WIDTH HEIGHT]\n");
    return 2;
  }
  g_string_printf (line, "appsrc name=in format=time caps=video/x-raw,"
      "format=RGB,width=%d,height=%d,framerate=25/1 ! vidgen "
      "model-file=\"%s\" tile-width=%d tile-height=%d", width, height, argv[1],
      width, height);
  for (gint i = 4; i < argc; i++)
    if (!strcmp (argv[i], "-threads") && i + 1 < argc)
      g_string_append_printf (line, " threads=%d", atoi (argv[++i]));
    else if (!strcmp (argv[i], "-tile") && i + 2 < argc) {
      g_string_append_printf (line, " tile-width=%d tile-height=%d",
          atoi (argv[i + 1]), atoi (argv[i + 2]));
      i += 2;
    }
  g_string_append (line, " ! appsink name=out sync=false");
  pipeline = gst_parse_launch (line->str, &error);
  if (!pipeline || error) {
    g_printerr ("%s: %s\n", line->str, error->message);
    return 1;
  }
  in = gst_bin_get_by_name (GST_BIN (pipeline), "in");
  out = gst_bin_get_by_name (GST_BIN (pipeline), "out");
  frame = pattern (width, height);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  good = one_frame (in, out, frame, 0); /* warms up */
  getrusage (RUSAGE_SELF, &usage);
  if (good)
    g_print ("ready 0 %" G_GSIZE_FORMAT " 0\n", (gsize) usage.ru_maxrss * 1024);
  for (guint n = 1; good && fgets (input, sizeof input, stdin); n++) {
    gdouble t = now (CLOCK_MONOTONIC), cpu = now (CLOCK_PROCESS_CPUTIME_ID);

    good = one_frame (in, out, frame, n);
    g_print ("%.6f %.6f\n", now (CLOCK_MONOTONIC) - t,
        now (CLOCK_PROCESS_CPUTIME_ID) - cpu);
  }
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_buffer_unref (frame);
  gst_object_unref (in);
  gst_object_unref (out);
  gst_object_unref (pipeline);
  g_string_free (line, TRUE);
  return good ? 0 : 1;
}
