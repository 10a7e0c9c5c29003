/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Windows of frames through the elements: what leaves is known to the byte. */
#include "pipeline.h"
#include "time_frames.h"

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

typedef struct
{
  gint drop, drain; /* these tiles, counted over all frames; -1 = none */
  gint n;
} Disturbance;

static GstPadProbeReturn
disturb (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  GstBuffer *tile = GST_PAD_PROBE_INFO_BUFFER (info);
  Disturbance *self = user_data;
  GstQuery *query;

  if (self->n == self->drain) {
    query = gst_query_new_drain ();
    gst_pad_peer_query (pad, query);
    gst_query_unref (query);
  }
  if (self->n++ != self->drop)
    return GST_PAD_PROBE_OK;
  /* As identity does. */
  gst_pad_push_event (pad, gst_event_new_gap (GST_BUFFER_PTS (tile), GST_BUFFER_DURATION (tile)));
  return GST_PAD_PROBE_DROP;
}

/* A tile that is dropped with a GAP in its place, and a DRAIN query in the middle of a frame: every frame leaves, in its
 * order, and other tiles know nothing of a dropped one. */
GST_START_TEST (test_within_a_frame)
{
  const Disturbance all[] = {{4 * 3, -1}, {4 * 3 + 1, -1}, {4 * 3 + 3, -1}, {-1, 4 * 3 + 1}, {-1, 4 * 3 + 3}};
  gchar *model = time_window_model (5, 1, 2);
  gchar *line = g_strdup_printf ("vidgenchunk tile-width=24 tile-height=20 ! identity name=i ! "
                                 "vidgenmodel name=m threads=1 scene-cut=off model-file=%s ! "
                                 "vidgenstitch missing-tile=source", model);

  for (guint k = 0; k < G_N_ELEMENTS (all); k++) {
    Disturbance how = all[k];
    GstBus *bus;
    GstHarness *h = frames_harness (line, frames_caps ("RGB", WIDTH, HEIGHT), &bus);
    GstElement *identity = gst_bin_get_by_name (GST_BIN (h->element), "i");
    GstPad *pad = gst_element_get_static_pad (identity, "src");
    gint dropped = how.drop % 4;

    frames_init ();
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, disturb, &how, NULL);
    push_frames (h, 1, 9);
    gst_harness_push_event (h, gst_event_new_eos ());
    for (gint g = 0; g < 9; g++) {
      gint list[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
      GByteArray *want = expected (5, 1, 1, 2, list, 9, g);
      GstBuffer *out = pull (h), *in = make_frame (g + 1);
      GstMapInfo map;

      frames_assert_same_data (out, in, "disturbed");
      gst_buffer_unref (in);
      gst_buffer_map (out, &map, GST_MAP_READ);
      for (gint y = 0; how.drop >= 0 && y < HEIGHT; y++)
        for (gint x = 0; x < WIDTH * 3; x++)
          if (y / 20 * 2 + x / 72 != dropped && map.data[y * WIDTH * 3 + x] != want->data[y * WIDTH * 3 + x])
            fail ("disturbance %u, frame %d, row %d, byte %d", k, g, y, x);
      gst_buffer_unmap (out, &map);
      gst_buffer_unref (out);
      g_byte_array_unref (want);
    }
    expect_end (h);
    gst_object_unref (pad);
    gst_object_unref (identity);
    frames_end (h, bus);
  }
  g_free (line);
  time_remove (model);
}
GST_END_TEST;

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
  tcase_add_test (cases, test_allocation);
  tcase_add_test (cases, test_drain);
  tcase_add_test (cases, test_within_a_frame);
  tcase_add_test (cases, test_refused);
  return suite;
}

GST_CHECK_MAIN (time);
