/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames into models of several frames, through launch lines of three kinds, and what comes out. */
#ifndef TIME_FRAMES_H
#define TIME_FRAMES_H

#include "frames.h"
#include "time_nets.h"

#define WIDTH 48
#define HEIGHT 40
#define FRAME (40 * GST_MSECOND)
#define TILES \
  "vidgenchunk name=c tile-width=24 tile-height=20 %s ! %s vidgenmodel name=m threads=1 scene-cut=%s model-file=%s ! " \
  "%s vidgenstitch"

/* A launch line of one of three kinds; `how`: properties of chunk, which the first kind has not. */
enum
{
  ALONE,
  TILED,
  QUEUED,
  N_LINES
};

static inline gchar *
line_of (gint kind, const gchar *how, const gchar *cuts, const gchar *model)
{
  if (kind == ALONE)
    return g_strdup_printf ("vidgenmodel name=m threads=1 scene-cut=%s model-file=%s", cuts, model);
  return g_strdup_printf (TILES, how, kind == QUEUED ? "queue !" : "", cuts, model, kind == QUEUED ? "queue !" : "");
}

static inline GstBuffer *
make_frame (gint number)
{
  GstVideoInfo info = frames_info ("RGB", WIDTH, HEIGHT);
  GstBuffer *buffer = frames_new (&info, number, 0, FALSE);

  /* frames_new() marks some. */
  GST_BUFFER_FLAG_UNSET (buffer, GST_BUFFER_FLAG_DISCONT);
  GST_BUFFER_DURATION (buffer) = FRAME;
  return buffer;
}

static inline GstHarness *
open_line (gint kind, const gchar *how, const gchar *cuts, const gchar *model, GstBus **bus)
{
  gchar *line = line_of (kind, how, cuts, model);
  GstHarness *h = frames_harness (line, frames_caps ("RGB", WIDTH, HEIGHT), bus);

  frames_init ();
  g_free (line);
  return h;
}

static inline void
push_frames (GstHarness *h, gint from, gint to)
{
  for (gint f = from; f <= to; f++) {
    GstBuffer *buffer = make_frame (f);

    frames_add_metas (buffer, f);
    fail_unless_equals_int (gst_harness_push (h, buffer), GST_FLOW_OK);
  }
}

static inline void
expect_pixels (GstBuffer *buffer, const GByteArray *want, const gchar *what)
{
  GstVideoInfo info = frames_info ("RGB", WIDTH, HEIGHT);
  GstVideoFrame frame;

  fail_unless (gst_video_frame_map (&frame, &info, buffer, GST_MAP_READ));
  for (gint y = 0; y < HEIGHT; y++)
    for (gint x = 0; x < WIDTH * 3; x++) {
      guint8 got = ((guint8 *) frame.data[0])[y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0) + x];

      if (got != want->data[y * WIDTH * 3 + x]) /* fail_unless() takes its time */
        fail ("%s: row %d, byte %d: %d for %d", what, y, x, got, want->data[y * WIDTH * 3 + x]);
    }
  gst_video_frame_unmap (&frame);
}

static inline GstBuffer *
pull (GstHarness *h)
{
  GstBuffer *out = gst_harness_pull (h);

  fail_unless (out != NULL, "no frame came");
  return out;
}

static inline void
expect_end (GstHarness *h)
{
  GstEvent *event;
  gboolean eos = FALSE;

  while (!eos) {
    event = gst_harness_pull_event (h);
    fail_unless (event != NULL, "no EOS");
    eos = GST_EVENT_TYPE (event) == GST_EVENT_EOS;
    gst_event_unref (event);
  }
  fail_unless_equals_int (gst_harness_buffers_in_queue (h), 0);
}

/* Frames of two pictures that change little, with a cut between; byte i of frame f. */
static inline guint8
scene_byte (gint f, gint cut, gint i)
{
  guint32 seed = (f < cut ? 1 : 2) * 2654435761u + i / 3 * 40503u;

  seed ^= seed >> 15;
  seed *= 2246822519u;
  seed ^= seed >> 13;
  return seed % 200 + 20 + f;
}

static inline void
push_scenes (GstHarness *h, gint n, gint cut)
{
  for (gint f = 0; f < n; f++) {
    GstBuffer *buffer = make_frame (f);
    GstMapInfo map;

    gst_buffer_map (buffer, &map, GST_MAP_WRITE);
    for (gint i = 0; i < WIDTH * HEIGHT * 3; i++)
      map.data[i] = scene_byte (f, cut, i);
    gst_buffer_unmap (buffer, &map);
    fail_unless_equals_int (gst_harness_push (h, buffer), GST_FLOW_OK);
  }
  gst_harness_push_event (h, gst_event_new_eos ());
}

#endif
