/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Interpolators and recurrent models through the elements. */
#include "time_frames.h"

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

static Suite *
between_suite (void)
{
  Suite *suite = suite_create ("between");
  TCase *cases = tcase_create ("general");

  tcase_set_timeout (cases, 120);
  suite_add_tcase (suite, cases);
  tcase_add_test (cases, test_interpolator);
  tcase_add_test (cases, test_interpolate_property);
  tcase_add_test (cases, test_interpolator_at_a_cut);
  tcase_add_test (cases, test_interpolator_caps);
  tcase_add_test (cases, test_interpolator_without_rate);
  tcase_add_test (cases, test_larger_interpolator);
  tcase_add_test (cases, test_states);
  tcase_add_test (cases, test_states_at_a_cut);
  return suite;
}

GST_CHECK_MAIN (between);
