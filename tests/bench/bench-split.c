/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* CPU time of splitting and stitching alone, beside tee ! 4 videocrop ! compositor, which a user would take instead.
 * 1920x1080, 2x2 tiles with 32 pixels of overlap, the source subtracted, medians of interleaved rounds.  Twice: as
 * it is, where tiles that nobody has touched are their source again, and with each pixel copied once, as for tiles
 * that somebody has made.
 * Usage: bench-split [rounds [frames]]; GST_PLUGIN_PATH must have the plugin. */
#include <gst/gst.h>
#include <stdlib.h>
#include <sys/resource.h>

#define WIDTH 1920
#define HEIGHT 1080
#define TILE_W 976
#define TILE_H 556
#define WARM 10
#define MAX_ROUNDS 31

enum
{ SOURCE, TILES, COPIES, STOCK, N_VARIANTS };

static guint seen, frames = 110;
static gdouble cpu_start, cpu_end;

static gdouble
cpu_ms (void)
{
  struct rusage r;

  getrusage (RUSAGE_SELF, &r);
  return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e3 +
      (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e3;
}

static GstPadProbeReturn
count (GstPad * pad, GstPadProbeInfo * info, gpointer user_data)
{
  seen++;
  if (seen == WARM)
    cpu_start = cpu_ms ();
  else if (seen == frames)
    cpu_end = cpu_ms ();
  return GST_PAD_PROBE_OK;
}

/* Milliseconds of CPU a frame. */
static gdouble
measure (const gchar * line)
{
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch (line, &error), *sink;
  GstMessage *message;
  GstBus *bus;
  GstPad *pad;

  if (!pipeline || error) {
    g_printerr ("%s: %s\n", line, error->message);
    exit (1);
  }
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "out");
  pad = gst_element_get_static_pad (sink, "sink");
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, count, NULL, NULL);
  gst_object_unref (pad);
  gst_object_unref (sink);
  seen = 0;
  bus = gst_element_get_bus (pipeline);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND,
      GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  if (!message || GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR ||
      seen < frames) {
    g_printerr ("%s: stopped after %u of %u frames\n", line, seen, frames);
    exit (1);
  }
  gst_message_unref (message);
  gst_object_unref (bus);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
  return (cpu_end - cpu_start) / (frames - WARM);
}

static gint
compare (gconstpointer a, gconstpointer b)
{
  gdouble x = *(const gdouble *) a, y = *(const gdouble *) b;

  return (x > y) - (x < y);
}

static gdouble
median (gdouble * values, guint n)
{
  qsort (values, n, sizeof *values, compare);
  return values[n / 2];
}

static gchar *
variant (gint which, const gchar * format)
{
  gchar *source = g_strdup_printf ("videotestsrc num-buffers=1 pattern=snow ! "
      "video/x-raw,format=%s,width=%d,height=%d,framerate=30/1 ! "
      "imagefreeze num-buffers=%u", format, WIDTH, HEIGHT, frames);
  const gchar *sink = "fakesink name=out sync=false enable-last-sample=false";
  GString *line = g_string_new (NULL);

  if (which == SOURCE)
    g_string_printf (line, "%s ! identity ! %s", source, sink);
  else if (which == TILES || which == COPIES)
    g_string_printf (line, "%s ! vidgenchunk tile-width=%d tile-height=%d "
        "overlap-x=32 overlap-y=32 ! vidgenstitch missing-tile=%s ! %s", source,
        TILE_W, TILE_H, which == COPIES ? "previous" /* keeps frames, which have to be its own */ : "error",
        sink);
  else {
    g_string_printf (line, "compositor name=m background=black");
    for (gint i = 0; i < 4; i++)
      g_string_append_printf (line, " sink_%d::xpos=%d sink_%d::ypos=%d", i,
          i % 2 * (WIDTH - TILE_W), i, i / 2 * (HEIGHT - TILE_H));
    g_string_append_printf (line, " ! %s %s ! tee name=t", sink, source);
    for (gint i = 0; i < 4; i++)
      g_string_append_printf (line, " t. ! videocrop left=%d right=%d top=%d "
          "bottom=%d ! m.sink_%d", i % 2 * (WIDTH - TILE_W),
          (1 - i % 2) * (WIDTH - TILE_W), i / 2 * (HEIGHT - TILE_H),
          (1 - i / 2) * (HEIGHT - TILE_H), i);
  }
  g_free (source);
  return g_string_free (line, FALSE);
}

int
main (int argc, char **argv)
{
  static const gchar *formats[] = { "RGB", "I420" };
  static gdouble ms[N_VARIANTS][MAX_ROUNDS];
  guint rounds = argc > 1 ? atoi (argv[1]) : 7;

  gst_init (NULL, NULL);
  rounds = CLAMP (rounds, 1, MAX_ROUNDS);
  if (argc > 2)
    frames = MAX (atoi (argv[2]), WARM + 1);
  for (guint f = 0; f < G_N_ELEMENTS (formats); f++) {
    gchar *lines[N_VARIANTS];
    gdouble base, tiles, copies, stock;

    for (gint k = 0; k < N_VARIANTS; k++)
      lines[k] = variant (k, formats[f]);
    for (guint r = 0; r < rounds; r++)
      for (gint k = 0; k < N_VARIANTS; k++)
        ms[k][r] = measure (lines[k]);
    base = median (ms[SOURCE], rounds);
    tiles = median (ms[TILES], rounds) - base;
    copies = median (ms[COPIES], rounds) - base;
    stock = median (ms[STOCK], rounds) - base;
    g_print ("%s %dx%d, ms of CPU a frame: tee + videocrop + compositor %.3f, "
        "vidgenchunk ! vidgenstitch %.3f (1/%.0f), with each pixel copied %.3f (1/%.1f)\n", formats[f], WIDTH, HEIGHT,
        stock, tiles, stock / tiles, copies, stock / copies);
    for (gint k = 0; k < N_VARIANTS; k++)
      g_free (lines[k]);
  }
  return 0;
}
