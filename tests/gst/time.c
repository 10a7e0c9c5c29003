/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Models of several frames through the elements: what leaves is known to the byte. */
#include "frames.h"
#include "pipeline.h"
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

static gchar *
line_of (gint kind, const gchar *how, const gchar *cuts, const gchar *model)
{
  if (kind == ALONE)
    return g_strdup_printf ("vidgenmodel name=m threads=1 scene-cut=%s model-file=%s", cuts, model);
  return g_strdup_printf (TILES, how, kind == QUEUED ? "queue !" : "", cuts, model, kind == QUEUED ? "queue !" : "");
}

static GstBuffer *
make_frame (gint number)
{
  GstVideoInfo info = frames_info ("RGB", WIDTH, HEIGHT);
  GstBuffer *buffer = frames_new (&info, number, 0, FALSE);

  /* frames_new() marks some. */
  GST_BUFFER_FLAG_UNSET (buffer, GST_BUFFER_FLAG_DISCONT);
  GST_BUFFER_DURATION (buffer) = FRAME;
  return buffer;
}

static GstHarness *
open_line (gint kind, const gchar *how, const gchar *cuts, const gchar *model, GstBus **bus)
{
  gchar *line = line_of (kind, how, cuts, model);
  GstHarness *h = frames_harness (line, frames_caps ("RGB", WIDTH, HEIGHT), bus);

  frames_init ();
  g_free (line);
  return h;
}

static void
push_frames (GstHarness *h, gint from, gint to)
{
  for (gint f = from; f <= to; f++) {
    GstBuffer *buffer = make_frame (f);

    frames_add_metas (buffer, f);
    fail_unless_equals_int (gst_harness_push (h, buffer), GST_FLOW_OK);
  }
}

/* Frames `from` to `to` (of those in `list`, if there is one) are a sequence: this is its frame g. */
static GByteArray *
expected (gint window, gint emit, gint hop, gint centre, const gint *list, gint n, gint g)
{
  GByteArray *bytes = g_byte_array_new ();
  GstMapInfo *maps = g_new (GstMapInfo, n);
  GstBuffer **frames = g_new (GstBuffer *, n);
  gint overlap = emit - hop;

  for (gint i = 0; i < n; i++) {
    frames[i] = make_frame (list[i]);
    gst_buffer_map (frames[i], &maps[i], GST_MAP_READ);
  }
  g_byte_array_set_size (bytes, WIDTH * HEIGHT * 3);
  for (guint b = 0; b < bytes->len; b++) {
    gboolean any = FALSE;

    for (gint m = 0; m == 0 || m * hop + overlap < n; m++) {
      gint k = g - m * hop, v;
      guint8 values[TIME_MAX];

      if (k < 0 || k >= emit)
        continue;
      for (gint i = 0; i < window; i++)
        values[i] = maps[CLAMP (m * hop - centre + i, 0, n - 1)].data[b];
      v = time_mix (window, k, values);
      bytes->data[b] = any ? (bytes->data[b] * (overlap - k) + v * (k + 1) + (overlap + 1) / 2) / (overlap + 1) : v;
      any = TRUE;
    }
  }
  for (gint i = 0; i < n; i++) {
    gst_buffer_unmap (frames[i], &maps[i]);
    gst_buffer_unref (frames[i]);
  }
  g_free (maps);
  g_free (frames);
  return bytes;
}

static void
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

static GstBuffer *
pull (GstHarness *h)
{
  GstBuffer *out = gst_harness_pull (h);

  fail_unless (out != NULL, "no frame came");
  return out;
}

static void
expect_list (GstHarness *h, gint window, gint emit, gint hop, gint centre, const gint *list, gint n)
{
  for (gint g = 0; g < n; g++) {
    GByteArray *want = expected (window, emit, hop, centre, list, n, g);
    gchar *what = g_strdup_printf (
        "window %d, emit %d, hop %d, centre %d, frame %d of %d", window, emit, hop, centre, g, n);
    GstBuffer *out = pull (h), *in = make_frame (list[g]);

    expect_pixels (out, want, what);
    frames_assert_same_data (out, in, what);
    frames_assert_metas (out, list[g], what);
    gst_buffer_unref (in);
    gst_buffer_unref (out);
    g_byte_array_unref (want);
    g_free (what);
  }
}

static void
expect_frames (GstHarness *h, gint window, gint emit, gint hop, gint centre, gint from, gint to)
{
  gint list[64];

  for (gint i = from; i <= to; i++)
    list[i - from] = i;
  expect_list (h, window, emit, hop, centre, list, to - from + 1);
}

static void
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

static const gint shapes[][4] = {
    /* window, emit, hop, centre */
    {2, 1, 1, 0},
    {3, 1, 1, 1},
    {5, 1, 1, 2},
    {5, 1, 1, 4},
    {5, 3, 3, 1},
    {3, 3, 3, 0},
    {8, 8, 8, 0},
    {8, 8, 5, 0},
    {5, 5, 2, 0},
    {8, 4, 4, 2},
};

/* Count in = count out, pixels, timestamps and metas, for all windows and hops and numbers of frames. */
GST_START_TEST (test_windows)
{
  const gint *s = shapes[__i__];
  gchar *model = time_window_model (s[0], s[1], s[3]), *how = g_strdup_printf ("hop=%d", s[2]);
  gint counts[] = {1, 2, s[0] - 1, s[0], 3 * s[0] + 1};

  for (gint kind = 0; kind < N_LINES; kind++)
    for (guint i = 0; i < G_N_ELEMENTS (counts); i++) {
      GstHarness *h;
      GstBus *bus;

      if (kind == ALONE && s[1] == s[0] && s[2] != s[0])
        continue; /* nobody says another hop */
      h = open_line (kind, how, "off", model, &bus);
      push_frames (h, 1, counts[i]);
      gst_harness_push_event (h, gst_event_new_eos ());
      expect_frames (h, s[0], s[1], s[2], s[3], 1, counts[i]);
      expect_end (h);
      frames_end (h, bus);
    }
  g_free (how);
  time_remove (model);
}
GST_END_TEST;

/* A gap, a segment, DISCONT and the end of a segment end a sequence. */
GST_START_TEST (test_ends_of_sequences)
{
  gchar *model = time_window_model (5, 1, 2);

  for (gint kind = 0; kind < N_LINES; kind++)
    for (gint end = 0; end < 4; end++) {
      GstBus *bus;
      GstHarness *h = open_line (kind, "", "off", model, &bus);
      GstBuffer *marked = make_frame (7);
      GstSegment segment;

      push_frames (h, 1, 6);
      gst_segment_init (&segment, GST_FORMAT_TIME);
      segment.start = 1;
      if (end == 0)
        gst_harness_push_event (h, gst_event_new_gap (0, FRAME));
      else if (end == 1)
        gst_harness_push_event (h, gst_event_new_segment (&segment));
      else if (end == 2)
        gst_harness_push_event (h, gst_event_new_segment_done (GST_FORMAT_TIME, 0));
      else
        GST_BUFFER_FLAG_SET (marked, GST_BUFFER_FLAG_DISCONT);
      frames_add_metas (marked, 7);
      fail_unless_equals_int (gst_harness_push (h, marked), GST_FLOW_OK);
      push_frames (h, 8, 9);
      gst_harness_push_event (h, gst_event_new_eos ());
      expect_frames (h, 5, 1, 1, 2, 1, 6);
      if (end < 3) {
        expect_frames (h, 5, 1, 1, 2, 7, 9);
      } else {
        GstBuffer *out = pull (h);
        gint list[] = {7, 8, 9};
        GByteArray *want = expected (5, 1, 1, 2, list, 3, 0);

        fail_unless (GST_BUFFER_IS_DISCONT (out));
        expect_pixels (out, want, "marked");
        gst_buffer_unref (out);
        g_byte_array_unref (want);
        for (gint g = 1; g < 3; g++) {
          out = pull (h);
          want = expected (5, 1, 1, 2, list, 3, g);
          expect_pixels (out, want, "behind the marked");
          gst_buffer_unref (out);
          g_byte_array_unref (want);
        }
      }
      expect_end (h);
      frames_end (h, bus);
    }
  time_remove (model);
}
GST_END_TEST;

/* A flush in the middle: what was kept never comes, and what follows knows nothing of it. */
GST_START_TEST (test_flush)
{
  gchar *model = time_window_model (5, 1, 2);

  for (gint kind = 0; kind < N_LINES; kind++)
    for (gint n = 1; n < 8; n++) {
      GstBus *bus;
      GstHarness *h = open_line (kind, "", "off", model, &bus);

      push_frames (h, 1, n);
      if (kind == QUEUED) /* those that are out are not to come after the flush */
        for (gint g = 0; g < n - 2; g++)
          gst_buffer_unref (pull (h));
      frames_flush (h);
      while (gst_harness_buffers_in_queue (h) > 0)
        gst_buffer_unref (pull (h));
      push_frames (h, 20, 24);
      gst_harness_push_event (h, gst_event_new_eos ());
      expect_frames (h, 5, 1, 1, 2, 20, 24);
      expect_end (h);
      frames_end (h, bus);
    }
  time_remove (model);
}
GST_END_TEST;

/* Other caps in the middle: first all frames of the old, in the old size. */
GST_START_TEST (test_caps_change)
{
  gchar *model = time_window_model (5, 3, 1);

  for (gint kind = 0; kind < N_LINES; kind++) {
    GstBus *bus;
    GstHarness *h = open_line (kind, "", "off", model, &bus);
    GstVideoInfo info = frames_info ("I420", 30, 50);

    push_frames (h, 1, 7);
    gst_harness_set_src_caps (h, frames_caps ("I420", 30, 50));
    for (guint f = 8; f < 12; f++)
      fail_unless_equals_int (gst_harness_push (h, frames_new (&info, f, 0, FALSE)), GST_FLOW_OK);
    gst_harness_push_event (h, gst_event_new_eos ());
    expect_frames (h, 5, 3, 3, 1, 1, 7);
    for (guint f = 8; f < 12; f++) {
      GstBuffer *out = pull (h);
      GstVideoFrame frame;

      fail_unless_equals_uint64 (GST_BUFFER_PTS (out), 100 * GST_MSECOND + f * FRAME);
      fail_unless (gst_video_frame_map (&frame, &info, out, GST_MAP_READ));
      gst_video_frame_unmap (&frame);
      gst_buffer_unref (out);
    }
    expect_end (h);
    frames_end (h, bus);
  }
  time_remove (model);
}
GST_END_TEST;

/* Seeks of a real pipeline, with threads between the elements, while frames are kept: the last one counts. */
GST_START_TEST (test_seek)
{
  gchar *models[] = {
      time_window_model (5, 1, 2), time_window_model (8, 8, 0), time_window_model (2, 1, -1), time_state_model ()};

  for (guint m = 0; m < G_N_ELEMENTS (models); m++) {
    gchar *line = g_strdup_printf ("videotestsrc pattern=ball ! "
                                   "video/x-raw,format=RGB,width=48,height=40,framerate=25/1 ! vidgenchunk "
                                   "tile-width=24 ! queue ! vidgenmodel threads=1 model-file=%s ! queue ! "
                                   "vidgenstitch ! " SINK,
        models[m]);
    Play *play = play_new (line);

    gst_element_set_state (play->pipeline, GST_STATE_PAUSED);
    fail_unless_equals_int (play_wait (play, GST_MESSAGE_ASYNC_DONE | GST_MESSAGE_ERROR), GST_MESSAGE_ASYNC_DONE);
    for (guint i = 0; i < 20; i++) {
      fail_unless (gst_element_seek (play->pipeline, 1, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, GST_SEEK_TYPE_SET,
          i * 120 * GST_MSECOND, GST_SEEK_TYPE_SET, (i * 120 + 1000) * GST_MSECOND));
      if (i % 3 == 0)
        g_usleep (i * 500);
    }
    gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
    play_wait (play, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    play_stop (play);
    play_ok (play, m == 2 ? 50 : 25);
    play_free (play);
    g_free (line);
    time_remove (models[m]);
  }
}
GST_END_TEST;

/* What follows asks for caps once more: nothing ends. */
GST_START_TEST (test_reconfigure)
{
  gchar *model = time_window_model (5, 1, 2);

  for (gint kind = 0; kind < QUEUED; kind++) {
    GstBus *bus;
    GstHarness *h = open_line (kind, "", "off", model, &bus);

    push_frames (h, 1, 4);
    gst_harness_push_upstream_event (h, gst_event_new_reconfigure ());
    push_frames (h, 5, 8);
    gst_harness_push_event (h, gst_event_new_eos ());
    expect_frames (h, 5, 1, 1, 2, 1, 8);
    expect_end (h);
    frames_end (h, bus);
  }
  time_remove (model);
}
GST_END_TEST;

/* Another model while playing: frames of the old one are made to their end. */
GST_START_TEST (test_swap)
{
  gchar *five = time_window_model (5, 1, 2), *three = time_window_model (3, 3, 0);

  for (gint kind = 0; kind < QUEUED; kind++) {
    GstBus *bus;
    GstHarness *h = open_line (kind, "", "off", five, &bus);

    push_frames (h, 1, 6);
    g_object_set (frames_get (h, "m"), "model-file", three, NULL);
    push_frames (h, 7, 10);
    g_object_set (frames_get (h, "m"), "model-file", five, NULL);
    push_frames (h, 11, 11);
    gst_harness_push_event (h, gst_event_new_eos ());
    expect_frames (h, 5, 1, 1, 2, 1, 6);
    expect_frames (h, 3, 3, 3, 0, 7, 10);
    expect_frames (h, 5, 1, 1, 2, 11, 11);
    expect_end (h);
    frames_end (h, bus);
  }
  time_remove (five);
  time_remove (three);
}
GST_END_TEST;

/* A frame that is dropped because it is late: the window closes up behind it. */
GST_START_TEST (test_late_frames)
{
  gchar *model = time_window_model (5, 1, 2);
  static const gint left[] = {1, 2, 3, 6, 7, 8};
  GstBus *bus;
  GstHarness *h = open_line (TILED, "qos=true", "off", model, &bus);
  GstClockTime late = 100 * GST_MSECOND + 5 * FRAME;

  push_frames (h, 1, 3);
  gst_harness_push_upstream_event (h, gst_event_new_qos (GST_QOS_TYPE_UNDERFLOW, 2.0, 3, late - 3));
  push_frames (h, 4, 8);
  gst_harness_push_event (h, gst_event_new_eos ());
  for (guint g = 0; g < G_N_ELEMENTS (left); g++) {
    GByteArray *want = expected (5, 1, 1, 2, left, G_N_ELEMENTS (left), g);
    GstBuffer *out = pull (h);

    expect_pixels (out, want, "left");
    fail_unless_equals_uint64 (GST_BUFFER_PTS (out), 100 * GST_MSECOND + left[g] * FRAME);
    /* Between it and the one before there is a hole. */
    fail_unless_equals_int (GST_BUFFER_IS_DISCONT (out), left[g] == 6);
    gst_buffer_unref (out);
    g_byte_array_unref (want);
  }
  expect_end (h);
  frames_end (h, bus);
  time_remove (model);
}
GST_END_TEST;

/* Frames of two pictures that change little, with a cut between; byte i of frame f. */
static guint8
scene_byte (gint f, gint cut, gint i)
{
  guint32 seed = (f < cut ? 1 : 2) * 2654435761u + i / 3 * 40503u;

  seed ^= seed >> 15;
  seed *= 2246822519u;
  seed ^= seed >> 13;
  return seed % 200 + 20 + f;
}

static void
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

static guint64
stat_of (GstElement *element, const gchar *field)
{
  GstStructure *stats;
  guint64 value;

  g_object_get (element, "stats", &stats, NULL);
  fail_unless (gst_structure_get_uint64 (stats, field, &value), "%s", field);
  gst_structure_free (stats);
  return value;
}

/* No window reaches across a cut: by default, where it matters. */
GST_START_TEST (test_scene_cut)
{
  gchar *model = time_window_model (5, 1, 2);
  gint n = 12, cut = 7;

  for (gint kind = 0; kind < N_LINES; kind++)
    for (gint off = 0; off < 2; off++) {
      GstBus *bus;
      GstHarness *h = open_line (kind, "", off ? "off" : "auto", model, &bus);

      push_scenes (h, n, cut);
      for (gint f = 0; f < n; f++) {
        GstBuffer *out = pull (h);
        GByteArray *want = g_byte_array_new ();
        gint first = !off && f >= cut ? cut : 0, last = !off && f < cut ? cut - 1 : n - 1;

        g_byte_array_set_size (want, WIDTH * HEIGHT * 3);
        for (guint b = 0; b < want->len; b++) {
          guint8 values[5];

          for (gint i = 0; i < 5; i++)
            values[i] = scene_byte (CLAMP (f - 2 + i, first, last), cut, b);
          want->data[b] = time_mix (5, 0, values);
        }
        expect_pixels (out, want, off ? "cuts off" : "cuts auto");
        gst_buffer_unref (out);
        g_byte_array_unref (want);
      }
      expect_end (h);
      fail_unless_equals_uint64 (stat_of (frames_get (h, "m"), "cuts"), !off);
      frames_end (h, bus);
    }
  time_remove (model);
}
GST_END_TEST;

/* For models of single frames it is off unless asked for. */
GST_START_TEST (test_scene_cut_of_single_frames)
{
  gchar *model = time_window_model (1, 1, -2);

  for (gint on = 0; on < 2; on++) {
    GstBus *bus;
    GstHarness *h = open_line (ALONE, "", on ? "on" : "auto", model, &bus);

    push_scenes (h, 6, 3);
    fail_unless_equals_uint64 (stat_of (frames_get (h, "m"), "cuts"), on);
    frames_end (h, bus);
  }
  time_remove (model);
}
GST_END_TEST;

/* An interpolator: twice, or four times, the rate; frames of the source as they were. */
GST_START_TEST (test_interpolator)
{
  for (gint n_new = 1; n_new <= 3; n_new++) {
    gchar *model = time_window_model (2, n_new, -1);

    for (gint kind = 0; kind < N_LINES; kind++)
      for (gint n = 1; n <= 4; n++) {
        GstBus *bus;
        GstHarness *h = open_line (kind, "", "off", model, &bus);
        GstCaps *caps;
        gint num, den;

        push_frames (h, 1, n);
        gst_harness_push_event (h, gst_event_new_eos ());
        for (gint f = 1; f <= n; f++)
          for (gint i = 0; i <= n_new; i++) {
            GstBuffer *out = pull (h), *in[2] = {make_frame (f), make_frame (MIN (f + 1, n))};
            gchar *what = g_strdup_printf ("kind %d, frame %d of %d + %d/%d", kind, f, n, i, n_new + 1);
            GByteArray *want = g_byte_array_new ();
            GstClockTime begin = FRAME * i / (n_new + 1), end = FRAME * (i + 1) / (n_new + 1);
            GstMapInfo map[2];

            gst_buffer_map (in[0], &map[0], GST_MAP_READ);
            gst_buffer_map (in[1], &map[1], GST_MAP_READ);
            g_byte_array_set_size (want, WIDTH * HEIGHT * 3);
            for (guint b = 0; b < want->len; b++) {
              guint8 values[] = {map[0].data[b], map[1].data[b]};

              want->data[b] = i == 0 || f == n ? values[0] : time_mix (2, i - 1, values);
            }
            expect_pixels (out, want, what);
            fail_unless (GST_BUFFER_PTS (out) == GST_BUFFER_PTS (in[0]) + begin, "%s: pts", what);
            fail_unless (GST_BUFFER_DURATION (out) == end - begin, "%s: duration", what);
            if (i == 0)
              frames_assert_metas (out, f, what);
            else
              fail_if (gst_buffer_get_video_time_code_meta (out) || GST_BUFFER_OFFSET_IS_VALID (out) ||
                      GST_BUFFER_FLAG_IS_SET (out, GST_BUFFER_FLAG_MARKER),
                  "%s: of the source", what);
            for (gint k = 0; k < 2; k++) {
              gst_buffer_unmap (in[k], &map[k]);
              gst_buffer_unref (in[k]);
            }
            g_byte_array_unref (want);
            g_free (what);
            gst_buffer_unref (out);
          }
        caps = gst_pad_get_current_caps (h->sinkpad);
        fail_unless (gst_structure_get_fraction (gst_caps_get_structure (caps, 0), "framerate", &num, &den));
        fail_unless (num == 25 * (n_new + 1) && den == 1, "%d/%d", num, den);
        gst_caps_unref (caps);
        expect_end (h);
        fail_unless_equals_uint64 (stat_of (frames_get (h, "m"), "frames"), n * (n_new + 1));
        frames_end (h, bus);
      }
    time_remove (model);
  }
}
GST_END_TEST;

/* One that is told where to be makes as many as are asked for. */
GST_START_TEST (test_interpolate_property)
{
  gchar *model = time_between_model (FALSE);

  for (gint n_new = 0; n_new <= 4; n_new += 2) {
    gchar *path = g_strdup_printf ("%s interpolate=%d", model, n_new);
    gint rate = (n_new ? n_new : 1) + 1;
    GstBus *bus;
    GstHarness *h = open_line (TILED, "", "off", path, &bus);

    push_frames (h, 1, 3);
    gst_harness_push_event (h, gst_event_new_eos ());
    for (gint i = 0; i < 3 * rate; i++) {
      GstBuffer *out = pull (h), *in[2] = {make_frame (1 + i / rate), make_frame (MIN (2 + i / rate, 3))};
      GByteArray *want = g_byte_array_new ();
      GstMapInfo map[2];

      gst_buffer_map (in[0], &map[0], GST_MAP_READ);
      gst_buffer_map (in[1], &map[1], GST_MAP_READ);
      g_byte_array_set_size (want, WIDTH * HEIGHT * 3);
      for (guint b = 0; b < want->len; b++)
        want->data[b] = (2 * ((rate - i % rate) * map[0].data[b] + i % rate * map[1].data[b]) + rate) / (2 * rate);
      if (rate % 2 || i % rate == 0) /* else bytes lie between two */
        expect_pixels (out, want, "interpolated");
      fail_unless_equals_uint64 (GST_BUFFER_PTS (out), 100 * GST_MSECOND + FRAME + FRAME * i / rate);
      for (gint k = 0; k < 2; k++) {
        gst_buffer_unmap (in[k], &map[k]);
        gst_buffer_unref (in[k]);
      }
      g_byte_array_unref (want);
      gst_buffer_unref (out);
    }
    expect_end (h);
    frames_end (h, bus);
    g_free (path);
  }
  time_remove (model);
}
GST_END_TEST;

/* Between two scenes the new frames are those of the nearer side. */
GST_START_TEST (test_interpolator_at_a_cut)
{
  gchar *model = time_window_model (2, 3, -1);

  for (gint kind = 0; kind < N_LINES; kind++) {
    GstBus *bus;
    GstHarness *h = open_line (kind, "", "auto", model, &bus);

    push_scenes (h, 6, 3);
    for (gint f = 0; f < 6; f++)
      for (gint i = 0; i < 4; i++) {
        GstBuffer *out = pull (h);
        GByteArray *want = g_byte_array_new ();

        g_byte_array_set_size (want, WIDTH * HEIGHT * 3);
        for (guint b = 0; b < want->len; b++) {
          guint8 values[] = {scene_byte (f, 3, b), scene_byte (MIN (f + 1, 5), 3, b)};

          want->data[b] = i == 0 || f == 5 ? values[0] : f == 2 ? values[i > 2] : time_mix (2, i - 1, values);
        }
        expect_pixels (out, want, "interpolated");
        gst_buffer_unref (out);
        g_byte_array_unref (want);
      }
    expect_end (h);
    frames_end (h, bus);
  }
  time_remove (model);
}
GST_END_TEST;

/* Rates go through caps negotiation both ways. */
GST_START_TEST (test_interpolator_caps)
{
  gchar *model = time_window_model (2, 1, -1);

  for (gint kind = 0; kind < QUEUED; kind++) {
    gchar *line = line_of (kind, "", "off", model);
    GstHarness *h = gst_harness_new_parse (line);
    GstPad *sink = GST_PAD (h->element->sinkpads->data);
    static const gchar *const rates[][2] = {{"60/1", "30/1"}, {"60000/1001", "30000/1001"}, {"0/1", "0/1"},
        {"{ 50/1, 30/1 }", "{ 25/1, 15/1 }"}, {"[ 10/1, 100/1 ]", "[ 5/1, 50/1 ]"}};

    gst_harness_play (h);
    for (guint i = 0; i < G_N_ELEMENTS (rates); i++) {
      gchar *out = g_strdup_printf ("video/x-raw,format=RGB,framerate=%s", rates[i][0]);
      gchar *in = g_strdup_printf ("video/x-raw,format=RGB,framerate=%s", rates[i][1]);
      gchar *text;
      GstCaps *want = gst_caps_from_string (in), *got, *bare = gst_caps_new_empty_simple ("video/x-raw");

      gst_harness_set_sink_caps_str (h, out);
      got = gst_pad_query_caps (sink, NULL);
      gst_caps_set_value (bare, "framerate", gst_structure_get_value (gst_caps_get_structure (got, 0), "framerate"));
      gst_caps_set_simple (bare, "format", G_TYPE_STRING, "RGB", NULL);
      text = gst_caps_to_string (got);
      fail_unless (gst_caps_is_equal (bare, want), "for %s: %s", out, text);
      g_free (text);
      gst_caps_unref (got);
      gst_caps_unref (bare);
      gst_caps_unref (want);
      g_free (out);
      g_free (in);
    }
    gst_harness_teardown (h);
    g_free (line);
  }
  time_remove (model);
}
GST_END_TEST;

/* Without durations and rate, times come from timestamps; without these, there are none. */
GST_START_TEST (test_interpolator_without_rate)
{
  gchar *model = time_window_model (2, 1, -1);

  for (gint timeless = 0; timeless < 2; timeless++) {
    GstBus *bus;
    GstHarness *h = open_line (TILED, "", "off", model, &bus);
    static const gint pts[] = {0, 10, 30, 30, 60}, want[] = {0, 5, 10, 20, 30, 40, 30, 45, 60, 75};

    gst_harness_set_src_caps_str (h, "video/x-raw,format=RGB,width=48,height=40,framerate=0/1");
    for (guint f = 0; f < G_N_ELEMENTS (pts); f++) {
      GstBuffer *buffer = make_frame (f);

      GST_BUFFER_PTS (buffer) = timeless ? GST_CLOCK_TIME_NONE : pts[f] * GST_MSECOND;
      GST_BUFFER_DTS (buffer) = GST_BUFFER_DURATION (buffer) = GST_CLOCK_TIME_NONE;
      gst_harness_push (h, buffer);
    }
    gst_harness_push_event (h, gst_event_new_eos ());
    for (guint i = 0; i < G_N_ELEMENTS (want); i++) {
      GstBuffer *out = pull (h);

      fail_unless_equals_uint64 (GST_BUFFER_PTS (out), timeless ? GST_CLOCK_TIME_NONE : want[i] * GST_MSECOND);
      gst_buffer_unref (out);
    }
    expect_end (h);
    frames_end (h, bus);
  }
  time_remove (model);
}
GST_END_TEST;

/* Half the frame and half the blurred state before, in double; from zeros where a sequence begins. */
static void
step_state (gdouble *state, const guint8 *frame)
{
  gdouble *next = g_new (gdouble, WIDTH * HEIGHT * 3);

  for (gint y = 0; y < HEIGHT; y++)
    for (gint x = 0; x < WIDTH; x++)
      for (gint c = 0; c < 3; c++) {
        gdouble sum = 0;

        for (gint j = MAX (y - 1, 0); j <= MIN (y + 1, HEIGHT - 1); j++)
          for (gint i = MAX (x - 1, 0); i <= MIN (x + 1, WIDTH - 1); i++)
            sum += state[(j * WIDTH + i) * 3 + c];
        next[(y * WIDTH + x) * 3 + c] = frame[(y * WIDTH + x) * 3 + c] / 2. + sum / 18;
      }
  memcpy (state, next, WIDTH * HEIGHT * 3 * sizeof *state);
  g_free (next);
}

/* Frames `from` to `to` of a stream whose state is this one; the bytes may be rounded the other way. */
static void
expect_states (GstHarness *h, gdouble *state, gint from, gint to)
{
  GstVideoInfo info = frames_info ("RGB", WIDTH, HEIGHT);

  for (gint f = from; f <= to; f++) {
    GstBuffer *out = pull (h), *in = make_frame (f);
    GstVideoFrame frame;
    GstMapInfo map;

    gst_buffer_map (in, &map, GST_MAP_READ);
    step_state (state, map.data);
    gst_buffer_unmap (in, &map);
    fail_unless (gst_video_frame_map (&frame, &info, out, GST_MAP_READ));
    for (gint y = 0; y < HEIGHT; y++)
      for (gint x = 0; x < WIDTH * 3; x++) {
        gint got = ((guint8 *) frame.data[0])[y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0) + x];
        gdouble want = state[y * WIDTH * 3 + x];

        if (ABS (got - want) > .51)
          fail ("frame %d, row %d, byte %d: %d for %.2f", f, y, x, got, want);
      }
    gst_video_frame_unmap (&frame);
    gst_buffer_unref (in);
    gst_buffer_unref (out);
  }
}

/* States go from frame to frame, across the edges of tiles, and end where frames do not follow each other; not at a
 * frame that was dropped because it was late. */
GST_START_TEST (test_states)
{
  gchar *model = time_state_model ();

  for (gint kind = 0; kind < N_LINES; kind++) {
    GstBus *bus;
    GstHarness *h = open_line (kind, "qos=true", "off", model, &bus);
    gdouble *state = g_new0 (gdouble, WIDTH * HEIGHT * 3);

    push_frames (h, 1, 10);
    expect_states (h, state, 1, 10);
    gst_harness_push_event (h, gst_event_new_gap (0, FRAME));
    memset (state, 0, WIDTH * HEIGHT * 3 * sizeof *state);
    push_frames (h, 11, 13);
    expect_states (h, state, 11, 13);
    if (kind == TILED) {
      gst_harness_push_upstream_event (
          h, gst_event_new_qos (GST_QOS_TYPE_UNDERFLOW, 2.0, 3, 100 * GST_MSECOND + 14 * FRAME - 3));
      push_frames (h, 14, 16);
      expect_states (h, state, 15, 16);
    }
    frames_flush (h);
    memset (state, 0, WIDTH * HEIGHT * 3 * sizeof *state);
    push_frames (h, 20, 23);
    expect_states (h, state, 20, 23);
    gst_harness_push_event (h, gst_event_new_eos ());
    expect_end (h);
    frames_end (h, bus);
    g_free (state);
  }
  time_remove (model);
}
GST_END_TEST;

/* A cut resets states; by default, as with windows. */
GST_START_TEST (test_states_at_a_cut)
{
  gchar *model = time_state_model ();
  GstBus *bus;
  GstHarness *h = open_line (TILED, "", "auto", model, &bus);
  gdouble *state = g_new0 (gdouble, WIDTH * HEIGHT * 3);
  guint8 *bytes = g_new (guint8, WIDTH * HEIGHT * 3);
  GstVideoInfo info = frames_info ("RGB", WIDTH, HEIGHT);

  push_scenes (h, 8, 5);
  for (gint f = 0; f < 8; f++) {
    GstBuffer *out = pull (h);
    GstVideoFrame frame;

    if (f == 5)
      memset (state, 0, WIDTH * HEIGHT * 3 * sizeof *state);
    for (gint i = 0; i < WIDTH * HEIGHT * 3; i++)
      bytes[i] = scene_byte (f, 5, i);
    step_state (state, bytes);
    fail_unless (gst_video_frame_map (&frame, &info, out, GST_MAP_READ));
    for (gint i = 0; i < WIDTH * HEIGHT * 3; i++) {
      gint got = ((
          guint8 *) frame.data[0])[i / (WIDTH * 3) * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0) + i % (WIDTH * 3)];

      if (ABS (got - state[i]) > .51)
        fail ("frame %d, byte %d: %d for %.2f", f, i, got, state[i]);
    }
    gst_video_frame_unmap (&frame);
    gst_buffer_unref (out);
  }
  frames_end (h, bus);
  g_free (state);
  g_free (bytes);
  time_remove (model);
}
GST_END_TEST;

/* Upstream's pool is asked for as many frames as are in use at once. */
GST_START_TEST (test_allocation)
{
  static const gint windows[] = {1, 5};

  for (gint kind = 0; kind < QUEUED; kind++)
    for (guint i = 0; i < 2; i++) {
      gchar *model = time_window_model (windows[i], 1, i ? 2 : 0);
      GstBus *bus;
      GstHarness *h = open_line (kind, "", "off", model, &bus);
      GstCaps *caps = frames_caps ("RGB", WIDTH, HEIGHT);
      GstQuery *query = gst_query_new_allocation (caps, TRUE);
      guint min = 0;

      push_frames (h, 1, 1);
      fail_unless (gst_pad_peer_query (h->srcpad, query));
      if (gst_query_get_n_allocation_pools (query) > 0)
        gst_query_parse_nth_allocation_pool (query, 0, NULL, NULL, &min, NULL);
      if (kind == TILED || windows[i] > 1)
        fail_unless_equals_int (min, windows[i] + 1);
      gst_query_unref (query);
      gst_caps_unref (caps);
      frames_end (h, bus);
      time_remove (model);
    }
}
GST_END_TEST;

/* A DRAIN query gives upstream its frames back. */
GST_START_TEST (test_drain)
{
  gchar *model = time_window_model (5, 1, 2);

  for (gint kind = 0; kind < QUEUED; kind++) {
    GstBus *bus;
    GstHarness *h = open_line (kind, "", "off", model, &bus);
    GstBuffer *frames[4];
    GstQuery *query = gst_query_new_drain ();

    for (gint f = 0; f < 4; f++) {
      frames[f] = make_frame (f + 1);
      frames_add_metas (frames[f], f + 1);
      gst_harness_push (h, gst_buffer_ref (frames[f]));
    }
    fail_unless_equals_int (gst_harness_buffers_in_queue (h), 2);
    gst_pad_peer_query (h->srcpad, query);
    gst_query_unref (query);
    expect_frames (h, 5, 1, 1, 2, 1, 4);
    for (gint f = 0; f < 4; f++) {
      ASSERT_BUFFER_REFCOUNT (frames[f], "frame", 1);
      gst_buffer_unref (frames[f]);
    }
    frames_end (h, bus);
  }
  time_remove (model);
}
GST_END_TEST;

static gchar *
error_of (GstBus *bus)
{
  GstMessage *message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  GError *error = NULL;
  gchar *text;

  fail_unless (message != NULL, "no error");
  gst_message_parse_error (message, &error, NULL);
  text = g_strdup (error->message);
  g_error_free (error);
  gst_message_unref (message);
  return text;
}

/* What cannot be done is refused before the first frame, in words. */
GST_START_TEST (test_refused)
{
  static const struct
  {
    gint window, emit, centre;
    const gchar *how, *word;
  } cases[] = {
      {5, 1, 2, "hop=3", "hop"},
      {5, 3, 1, "hop=4", "hop"},
      {5, 1, 2, "window=7", "7"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gchar *model = time_window_model (cases[i].window, cases[i].emit, cases[i].centre), *text;
    gchar *line = line_of (TILED, cases[i].how, "off", model);
    GstHarness *h = gst_harness_new_parse (line);
    GstBus *bus = gst_bus_new ();

    gst_element_set_bus (h->element, bus);
    gst_harness_set_src_caps (h, frames_caps ("RGB", WIDTH, HEIGHT));
    fail_unless (gst_harness_push (h, make_frame (1)) != GST_FLOW_OK);
    text = error_of (bus);
    g_free (line);
    fail_unless (strstr (text, cases[i].word) != NULL, "%s", text);
    g_free (text);
    frames_end (h, bus);
    time_remove (model);
  }
}
GST_END_TEST;

/* The source's frames could not keep their size. */
GST_START_TEST (test_larger_interpolator)
{
  gchar *model = time_between_model (TRUE), *line = line_of (TILED, "", "off", model), *text;
  GstHarness *h = gst_harness_new_parse (line);
  GstBus *bus = gst_bus_new ();

  gst_element_set_bus (h->element, bus);
  gst_harness_set_src_caps (h, frames_caps ("RGB", WIDTH, HEIGHT));
  fail_unless (gst_harness_push (h, make_frame (1)) != GST_FLOW_OK);
  text = error_of (bus);
  fail_unless (strstr (text, "another size") != NULL, "%s", text);
  g_free (text);
  g_free (line);
  frames_end (h, bus);
  time_remove (model);
}
GST_END_TEST;

static Suite *
time_suite (void)
{
  Suite *suite = suite_create ("time");
  TCase *cases = tcase_create ("general");

  tcase_set_timeout (cases, 120);
  suite_add_tcase (suite, cases);
  tcase_add_loop_test (cases, test_windows, 0, G_N_ELEMENTS (shapes));
  tcase_add_test (cases, test_ends_of_sequences);
  tcase_add_test (cases, test_flush);
  tcase_add_test (cases, test_caps_change);
  tcase_add_test (cases, test_seek);
  tcase_add_test (cases, test_reconfigure);
  tcase_add_test (cases, test_swap);
  tcase_add_test (cases, test_late_frames);
  tcase_add_test (cases, test_scene_cut);
  tcase_add_test (cases, test_scene_cut_of_single_frames);
  tcase_add_test (cases, test_interpolator);
  tcase_add_test (cases, test_interpolate_property);
  tcase_add_test (cases, test_interpolator_at_a_cut);
  tcase_add_test (cases, test_interpolator_caps);
  tcase_add_test (cases, test_interpolator_without_rate);
  tcase_add_test (cases, test_states);
  tcase_add_test (cases, test_states_at_a_cut);
  tcase_add_test (cases, test_allocation);
  tcase_add_test (cases, test_drain);
  tcase_add_test (cases, test_refused);
  tcase_add_test (cases, test_larger_interpolator);
  return suite;
}

GST_CHECK_MAIN (time);
