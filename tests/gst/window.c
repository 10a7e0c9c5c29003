/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Windows in time on their own, under a model that is a formula: what leaves, in which order, made from what.
 * A frame is N_TILES buffers of GRAY8; byte 0 is the frame's number, byte 1 the tile's. */
#include <gst/check/gstcheck.h>
#include <gst/check/gstharness.h>

#include "../../gst/gstvidgenwindow.h"

#define SIZE 16
#define MAX_TILES 3
#define FRAME (40 * GST_MSECOND)

typedef struct
{
  GstBaseTransform parent;

  GstVidgenWindow window;
  GstVideoInfo info;
  struct vg_plan_info plan;
  gint n_tiles, tile;
  gint cut_before; /* this frame is of another scene; -1 = none is */
  guint runs, done;
  GstBuffer *flying[8]; /* mapped, and what they will be: */
  GstMapInfo mapped[8];
  guint8 results[8][SIZE];
} TestWindow;

typedef GstBaseTransformClass TestWindowClass;

/* Whether runs fly: what is made is written when the next one has been started. */
static gboolean in_flight;

static GType test_window_get_type (void);
G_DEFINE_TYPE (TestWindow, test_window, GST_TYPE_BASE_TRANSFORM);

/* Byte b of the result k of a window: any function of all frames, of k and of b. */
static guint8
formula (const guint8 *frames, gint window, gint k, gint b)
{
  guint sum = 17 * k + 5 * b;

  for (gint i = 0; i < window; i++)
    sum += (2 * i + 3) * frames[i];
  return sum;
}

static GstFlowReturn
land (gpointer user)
{
  TestWindow *self = user;

  for (gint k = 0; k < self->plan.emit && self->flying[k]; k++) {
    memcpy (self->mapped[k].data, self->results[k], SIZE);
    gst_buffer_unmap (self->flying[k], &self->mapped[k]);
    gst_clear_buffer (&self->flying[k]);
  }
  self->window.flying = NULL;
  return GST_FLOW_OK;
}

static GstFlowReturn
run_formula (gpointer user, GstBuffer *const *in, const guint64 *numbers, GstBuffer *const *out)
{
  TestWindow *self = user;
  guint8 frames[16], tile;

  land (self);
  gst_buffer_extract (in[0], 1, &tile, 1);
  for (gint i = 0; i < self->plan.window; i++) {
    guint8 other;

    gst_buffer_extract (in[i], 0, &frames[i], 1);
    gst_buffer_extract (in[i], 1, &other, 1);
    fail_unless_equals_int (other, tile);
  }
  for (gint k = 0; k < self->plan.emit; k++) {
    fail_unless_equals_uint64 (numbers[0] + frames[k % self->plan.window] - frames[0], numbers[k % self->plan.window]);
    for (gint b = 0; b < SIZE; b++)
      self->results[k][b] = formula (frames, self->plan.window, k, b + tile);
    fail_unless (gst_buffer_map (out[k], &self->mapped[k], GST_MAP_WRITE));
    self->flying[k] = gst_buffer_ref (out[k]);
  }
  self->window.flying = out[0];
  self->runs++;
  return in_flight ? GST_FLOW_OK : land (self);
}

static void
count_done (gpointer user, gint frames)
{
  TestWindow *self = user;

  self->done += frames;
}

static gboolean
test_window_set_caps (GstBaseTransform *trans, GstCaps *in, GstCaps *out)
{
  TestWindow *self = (TestWindow *) trans;

  gst_vidgen_window_open (&self->window, &self->plan, self->n_tiles);
  return gst_video_info_from_caps (&self->info, in);
}

static GstFlowReturn
test_window_generate_output (GstBaseTransform *trans, GstBuffer **out)
{
  TestWindow *self = (TestWindow *) trans;
  GstBuffer *in = g_steal_pointer (&trans->queued_buf);
  GstFlowReturn ret = GST_FLOW_OK;
  guint8 bytes[2];

  if (in) {
    gst_buffer_extract (in, 0, bytes, 2);
    if (self->tile == 0)
      ret = gst_vidgen_window_begin_frame (&self->window, bytes[0] == self->cut_before);
    self->tile = (self->tile + 1) % self->n_tiles;
    if (ret == GST_FLOW_OK)
      ret = gst_vidgen_window_take (&self->window, in, bytes[1]);
  }
  if (ret == GST_FLOW_OK)
    *out = gst_vidgen_window_pop (&self->window);
  return ret;
}

static GstFlowReturn
test_window_transform (GstBaseTransform *trans, GstBuffer *in, GstBuffer *out)
{
  return GST_FLOW_NOT_SUPPORTED;
}

static gboolean
test_window_sink_event (GstBaseTransform *trans, GstEvent *event)
{
  TestWindow *self = (TestWindow *) trans;

  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS || GST_EVENT_TYPE (event) == GST_EVENT_GAP)
    fail_unless_equals_int (gst_vidgen_window_drain (&self->window), GST_FLOW_OK);
  if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP) {
    land (self);
    gst_vidgen_window_drop (&self->window);
  }
  if (GST_EVENT_IS_SERIALIZED (event)) {
    land (self);
    fail_unless_equals_int (gst_vidgen_window_push (&self->window), GST_FLOW_OK);
  }
  if (GST_EVENT_TYPE (event) == GST_EVENT_CUSTOM_DOWNSTREAM && gst_vidgen_window_hold (&self->window, event))
    return TRUE;
  return GST_BASE_TRANSFORM_CLASS (test_window_parent_class)->sink_event (trans, event);
}

static void
test_window_finalize (GObject *object)
{
  land (object);
  gst_vidgen_window_clear (&((TestWindow *) object)->window);
  G_OBJECT_CLASS (test_window_parent_class)->finalize (object);
}

static void
test_window_class_init (TestWindowClass *klass)
{
  static GstStaticPadTemplate sink = GST_STATIC_PAD_TEMPLATE (
      "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
  static GstStaticPadTemplate src = GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = test_window_finalize;
  gst_element_class_add_static_pad_template (element_class, &sink);
  gst_element_class_add_static_pad_template (element_class, &src);
  gst_element_class_set_static_metadata (element_class, "Window", "Test", "Window", "the vidgen authors");
  klass->set_caps = test_window_set_caps;
  klass->generate_output = test_window_generate_output;
  klass->transform = test_window_transform;
  klass->sink_event = test_window_sink_event;
}

static void
test_window_init (TestWindow *self)
{
  gst_vidgen_window_init (&self->window, GST_BASE_TRANSFORM (self));
  self->window.run = run_formula;
  self->window.done = count_done;
  self->window.land = land;
  self->window.user = self;
  self->window.in_info = self->window.out_info = &self->info;
  self->cut_before = -1;
}

/* ---- driving it ---- */

static GstHarness *
begin (gint window, gint emit, gint hop, gint centre, gint n_tiles, TestWindow **element)
{
  TestWindow *self = g_object_new (test_window_get_type (), NULL);
  GstHarness *h;

  self->plan.window = window;
  self->plan.emit = emit;
  self->plan.hop = hop;
  self->plan.centre = centre;
  self->n_tiles = n_tiles;
  h = gst_harness_new_with_element (gst_object_ref_sink (GST_ELEMENT (self)), "sink", "src");
  gst_object_unref (self);
  gst_harness_set_src_caps_str (h, "video/x-raw,format=GRAY8,width=16,height=1,framerate=25/1");
  *element = self;
  return h;
}

static void
push_frame (GstHarness *h, guint f, gint n_tiles)
{
  for (gint t = 0; t < n_tiles; t++) {
    GstBuffer *buffer = gst_buffer_new_allocate (NULL, SIZE, NULL);

    gst_buffer_memset (buffer, 0, f, 1);
    gst_buffer_memset (buffer, 1, t, 1);
    gst_buffer_memset (buffer, 2, 7 * f + t, SIZE - 2);
    GST_BUFFER_PTS (buffer) = f * FRAME + 3;
    GST_BUFFER_DURATION (buffer) = FRAME - f % 2;
    GST_BUFFER_OFFSET (buffer) = 100 + f;
    fail_unless_equals_int (gst_harness_push (h, buffer), GST_FLOW_OK);
  }
}

/* What frames start to last give when they are a sequence, by the rule alone: each window in turn, later ones faded
 * in. */
static void
expect_sequence (GstHarness *h, const struct vg_plan_info *plan, gint start, gint last, gint n_tiles)
{
  gint n = last - start + 1, overlap = plan->emit - plan->hop;

  for (gint g = 0; g < n; g++)
    for (gint t = 0; t < n_tiles; t++) {
      GstBuffer *out = gst_harness_try_pull (h);
      guint8 want[SIZE], got[SIZE];
      gboolean any = FALSE;

      fail_unless (out != NULL, "frame %d of %d, tile %d", g, n, t);
      for (gint m = 0; m == 0 || m * plan->hop + overlap < n; m++) {
        gint k = g - m * plan->hop;
        guint8 frames[16];

        if (k < 0 || k >= plan->emit)
          continue;
        for (gint i = 0; i < plan->window; i++)
          frames[i] = start + CLAMP (m * plan->hop - plan->centre + i, 0, n - 1);
        for (gint b = 0; b < SIZE; b++) {
          gint v = formula (frames, plan->window, k, b + t);

          want[b] = any ? (want[b] * (overlap - k) + v * (k + 1) + (overlap + 1) / 2) / (overlap + 1) : v;
        }
        any = TRUE;
      }
      fail_unless_equals_int (gst_buffer_extract (out, 0, got, SIZE), SIZE);
      fail_unless (memcmp (want, got, SIZE) == 0, "window %d, emit %d, hop %d: frame %d of %d, tile %d: %u for %u",
          plan->window, plan->emit, plan->hop, g, n, t, got[0], want[0]);
      fail_unless (GST_BUFFER_PTS (out) == (start + g) * FRAME + 3,
          "window %d, emit %d, hop %d, centre %d: frame %d of %d: pts %" G_GUINT64_FORMAT, plan->window, plan->emit,
          plan->hop, plan->centre, g, n, GST_BUFFER_PTS (out) / FRAME);
      fail_unless_equals_uint64 (GST_BUFFER_DURATION (out), FRAME - (start + g) % 2);
      fail_unless_equals_uint64 (GST_BUFFER_OFFSET (out), 100 + start + g);
      gst_buffer_unref (out);
    }
}

/* Results that fade into each other do not fly. */
static gboolean
can_be (const gint *shape, gint fly)
{
  in_flight = fly;
  return !fly || shape[1] <= shape[2];
}

static void
expect_nothing (GstHarness *h)
{
  fail_unless_equals_int (gst_harness_buffers_in_queue (h), 0);
}

static const gint shapes[][4] = {
    /* window, emit, hop, centre */
    {2, 1, 1, 0},
    {2, 1, 1, 1},
    {3, 1, 1, 1},
    {3, 1, 1, 2},
    {5, 1, 1, 2},
    {7, 1, 1, 3},
    {2, 2, 2, 0},
    {3, 3, 3, 0},
    {5, 3, 3, 1},
    {8, 8, 8, 0},
    {8, 4, 4, 2},
    {8, 8, 6, 0},
    {8, 8, 5, 0},
    {5, 5, 2, 0},
    {4, 4, 1, 0},
    {4, 3, 2, 1},
};

/* As many frames leave as came in, each from the window that it should be, for all counts. */
GST_START_TEST (test_counts)
{
  for (guint s = 0; s < G_N_ELEMENTS (shapes); s++)
    for (gint n_tiles = 1; n_tiles <= MAX_TILES; n_tiles += 2)
      for (gint n = 1; n <= 20 && can_be (shapes[s], __i__); n += 1 + n / 12) {
        TestWindow *self;
        GstHarness *h = begin (shapes[s][0], shapes[s][1], shapes[s][2], shapes[s][3], n_tiles, &self);

        for (gint f = 0; f < n; f++)
          push_frame (h, f, n_tiles);
        gst_harness_push_event (h, gst_event_new_eos ());
        expect_sequence (h, &self->plan, 0, n - 1, n_tiles);
        expect_nothing (h);
        fail_unless_equals_int (self->done, n);
        gst_harness_teardown (h);
      }
}
GST_END_TEST;

/* A frame leaves no later than it must: with the last frame of its window; in flight, when the next tile has been started. */
GST_START_TEST (test_delay)
{
  for (guint s = 0; s < G_N_ELEMENTS (shapes); s++) {
    if (!can_be (shapes[s], __i__))
      continue;
    TestWindow *self;
    gint window = shapes[s][0], emit = shapes[s][1], hop = shapes[s][2], centre = shapes[s][3];
    GstHarness *h = begin (window, emit, hop, centre, 2, &self);

    for (gint f = 0; f < 20; f++) {
      gint runs = f >= window - 1 - centre ? (f - (window - 1 - centre)) / hop + 1 : 0;

      push_frame (h, f, 2);
      fail_unless_equals_int (
          gst_harness_buffers_received (h), runs * hop * 2 - (in_flight && runs ? 2 * (hop - 1) + 1 : 0));
    }
    fail_unless_equals_uint64 (gst_vidgen_window_wait (&self->window, FRAME), (window - 1 - centre) * FRAME);
    gst_harness_teardown (h);
  }
}
GST_END_TEST;

/* A gap ends a sequence, another begins; a flush drops one. */
GST_START_TEST (test_sequences)
{
  for (guint s = 0; s < G_N_ELEMENTS (shapes); s++)
    for (gint n = 1; n < 10 && can_be (shapes[s], __i__); n += 2) {
      TestWindow *self;
      GstHarness *h = begin (shapes[s][0], shapes[s][1], shapes[s][2], shapes[s][3], 2, &self);
      GstSegment segment;

      for (gint f = 0; f < n; f++)
        push_frame (h, f, 2);
      gst_harness_push_event (h, gst_event_new_gap (0, FRAME));
      expect_sequence (h, &self->plan, 0, n - 1, 2);
      for (gint f = n; f < 2 * n; f++)
        push_frame (h, f, 2);
      while (gst_harness_buffers_in_queue (h) > 0)
        gst_buffer_unref (gst_harness_pull (h));
      gst_harness_push_event (h, gst_event_new_flush_start ());
      gst_harness_push_event (h, gst_event_new_flush_stop (TRUE));
      gst_segment_init (&segment, GST_FORMAT_TIME);
      gst_harness_push_event (h, gst_event_new_segment (&segment));
      for (gint f = 2 * n; f < 3 * n; f++)
        push_frame (h, f, 2);
      gst_harness_push_event (h, gst_event_new_eos ());
      expect_sequence (h, &self->plan, 2 * n, 3 * n - 1, 2);
      expect_nothing (h);
      gst_harness_teardown (h);
    }
}
GST_END_TEST;

/* Frames are let go of as soon as no window needs them, and never more than a window is kept. */
GST_START_TEST (test_references)
{
  for (guint s = 0; s < G_N_ELEMENTS (shapes); s++) {
    TestWindow *self;
    gint window = shapes[s][0], hop = shapes[s][2], centre = shapes[s][3];
    GstHarness *h = begin (window, shapes[s][1], hop, centre, 1, &self);
    GstBuffer *in[20];

    for (gint f = 0; f < 20; f++) {
      gint runs = f >= window - 1 - centre ? (f - (window - 1 - centre)) / hop + 1 : 0;

      in[f] = gst_buffer_new_allocate (NULL, SIZE, NULL);
      gst_buffer_memset (in[f], 0, f, 1);
      gst_buffer_memset (in[f], 1, 0, SIZE - 1);
      fail_unless_equals_int (gst_harness_push (h, gst_buffer_ref (in[f])), GST_FLOW_OK);
      for (gint g = 0; g <= f; g++)
        fail_unless_equals_int (GST_MINI_OBJECT_REFCOUNT (in[g]), g >= runs * hop - centre ? 2 : 1);
    }
    gst_harness_teardown (h);
    for (gint f = 0; f < 20; f++) {
      ASSERT_BUFFER_REFCOUNT (in[f], "frame", 1);
      gst_buffer_unref (in[f]);
    }
  }
}
GST_END_TEST;

/* A tile that does not come leaves a hole in its place only, as long as a window sees it. */
GST_START_TEST (test_missing_tile)
{
  TestWindow *self;
  GstHarness *h = begin (3, 1, 1, 1, 2, &self);
  guint n[10] = {0};
  GstBuffer *out;

  for (gint f = 0; f < 10; f++) {
    GstBuffer *buffer = gst_buffer_new_allocate (NULL, SIZE, NULL);

    self->tile = 0;
    gst_buffer_memset (buffer, 0, f, 1);
    gst_buffer_memset (buffer, 1, 0, 1);
    GST_BUFFER_PTS (buffer) = f * FRAME;
    gst_harness_push (h, buffer);
    if (f != 4) {
      buffer = gst_buffer_new_allocate (NULL, SIZE, NULL);
      gst_buffer_memset (buffer, 0, f, 1);
      gst_buffer_memset (buffer, 1, 1, 1);
      GST_BUFFER_PTS (buffer) = f * FRAME;
      gst_harness_push (h, buffer);
    }
  }
  gst_harness_push_event (h, gst_event_new_eos ());
  while ((out = gst_harness_try_pull (h))) {
    n[GST_BUFFER_PTS (out) / FRAME]++;
    gst_buffer_unref (out);
  }
  for (gint f = 0; f < 10; f++)
    fail_unless_equals_int (n[f], f >= 3 && f <= 5 ? 1 : 2);
  gst_harness_teardown (h);
}
GST_END_TEST;

/* The order of buffers and events as they left: pts / FRAME, or 1000 + an event's number. */
static GArray *left;

static GstPadProbeReturn
note (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  gint number;

  if (GST_PAD_PROBE_INFO_TYPE (info) & GST_PAD_PROBE_TYPE_BUFFER) {
    number = GST_BUFFER_PTS (GST_PAD_PROBE_INFO_BUFFER (info)) / FRAME;
  } else {
    const GstStructure *s = gst_event_get_structure (GST_PAD_PROBE_INFO_EVENT (info));

    if (!s || !gst_structure_get_int (s, "number", &number))
      return GST_PAD_PROBE_OK;
    number += 1000;
  }
  g_array_append_val (left, number);
  return GST_PAD_PROBE_OK;
}

/* Events leave between the frames that they came between. */
GST_START_TEST (test_events)
{
  for (guint s = 0; s < G_N_ELEMENTS (shapes); s++) {
    if (!can_be (shapes[s], __i__))
      continue;
    TestWindow *self;
    GstHarness *h = begin (shapes[s][0], shapes[s][1], shapes[s][2], shapes[s][3], 1, &self);
    GstPad *pad = gst_element_get_static_pad (h->element, "src");

    left = g_array_new (FALSE, FALSE, sizeof (gint));
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, note, NULL, NULL);
    for (gint f = 0; f < 12; f++) {
      gst_harness_push_event (h,
          gst_event_new_custom (
              GST_EVENT_CUSTOM_DOWNSTREAM, gst_structure_new ("test", "number", G_TYPE_INT, f, NULL)));
      push_frame (h, f, 1);
    }
    gst_harness_push_event (h, gst_event_new_eos ());
    fail_unless_equals_int (left->len, 24);
    for (gint i = 0; i < 24; i++)
      fail_unless_equals_int (g_array_index (left, gint, i), i % 2 ? i / 2 : 1000 + i / 2);
    g_array_unref (left);
    gst_object_unref (pad);
    gst_harness_teardown (h);
  }
}
GST_END_TEST;

/* And before the source's next frame, behind the new ones. */
GST_START_TEST (test_events_between)
{
  in_flight = __i__;
  TestWindow *self;
  GstHarness *h = begin (2, 2, 1, -1, 1, &self);
  GstPad *pad = gst_element_get_static_pad (h->element, "src");

  left = g_array_new (FALSE, FALSE, sizeof (gint));
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, note, NULL, NULL);
  for (gint f = 0; f < 5; f++) {
    gst_harness_push_event (h,
        gst_event_new_custom (GST_EVENT_CUSTOM_DOWNSTREAM, gst_structure_new ("test", "number", G_TYPE_INT, f, NULL)));
    push_frame (h, f, 1);
  }
  gst_harness_push_event (h, gst_event_new_eos ());
  fail_unless_equals_int (left->len, 20);
  for (gint i = 0; i < 20; i++)
    fail_unless_equals_int (g_array_index (left, gint, i), i % 4 ? i / 4 : 1000 + i / 4);
  g_array_unref (left);
  gst_object_unref (pad);
  gst_harness_teardown (h);
}
GST_END_TEST;

/* Interpolators: all frames of the source with their pixels, new ones at even times between, the last one repeated; at
 * a cut the nearer is. */
GST_START_TEST (test_between)
{
  in_flight = __i__;
  for (gint n_new = 1; n_new <= 3; n_new++)
    for (gint n = 1; n <= 6; n++)
      for (gint cut = -1; cut < n; cut += 3) {
        TestWindow *self;
        GstHarness *h = begin (2, n_new, 1, -1, 2, &self);
        guint runs = 0;

        self->cut_before = cut;
        for (gint f = 0; f < n; f++) {
          /* Behind what flies comes the frame; at a cut nothing is run. */
          gint flying = in_flight && f > 0 && f != cut ? 2 * (n_new + 1) - 1 : in_flight && f > 1 ? 4 * (n_new + 1) - 1 : 0;

          push_frame (h, f, 2);
          fail_unless_equals_int (gst_harness_buffers_received (h), 2 * (f * (n_new + 1) + 1) - flying);
        }
        gst_harness_push_event (h, gst_event_new_eos ());
        for (gint f = 0; f < n; f++)
          for (gint i = 0; i <= n_new; i++)
            for (gint t = 0; t < 2; t++) {
              GstBuffer *out = gst_harness_try_pull (h);
              guint8 got[SIZE], frames[2] = {f, f + 1};
              /* The time to the next one, as pts tell it; the last one goes by its duration. */
              GstClockTime length = f + 1 < n && i > 0 ? FRAME : FRAME - f % 2;
              GstClockTime begin = length * i / (n_new + 1), end = length * (i + 1) / (n_new + 1);
              gboolean repeats = i == 0 || f + 1 == n || f + 1 == cut;
              gint shown = repeats && i > 0 && f + 1 < n && 2 * i > n_new + 1 ? f + 1 : f;

              fail_unless (out != NULL, "frame %d + %d of %d, tile %d", f, i, n, t);
              fail_unless_equals_uint64 (GST_BUFFER_PTS (out), f * FRAME + 3 + begin);
              fail_unless_equals_uint64 (GST_BUFFER_DURATION (out), end - begin);
              fail_unless_equals_uint64 (GST_BUFFER_OFFSET (out), i ? GST_BUFFER_OFFSET_NONE : 100 + f);
              gst_buffer_extract (out, 0, got, SIZE);
              if (repeats) {
                fail_unless (got[0] == shown && got[1] == t && got[2] == 7 * shown + t);
              } else {
                for (gint b = 0; b < SIZE; b++)
                  fail_unless_equals_int (got[b], formula (frames, 2, i - 1, b + t));
                runs += i == 1;
              }
              gst_buffer_unref (out);
            }
        expect_nothing (h);
        fail_unless_equals_int (self->runs, runs);
        fail_unless_equals_int (self->done, n * (n_new + 1));
        fail_unless_equals_uint64 (gst_vidgen_window_wait (&self->window, FRAME), FRAME * n_new / (n_new + 1));
        gst_harness_teardown (h);
      }
}
GST_END_TEST;

static Suite *
window_suite (void)
{
  Suite *suite = suite_create ("window");
  TCase *cases = tcase_create ("general");

  tcase_set_timeout (cases, 60);
  suite_add_tcase (suite, cases);
  tcase_add_loop_test (cases, test_counts, 0, 2);
  tcase_add_loop_test (cases, test_delay, 0, 2);
  tcase_add_loop_test (cases, test_sequences, 0, 2);
  tcase_add_test (cases, test_references);
  tcase_add_test (cases, test_missing_tile);
  tcase_add_loop_test (cases, test_events, 0, 2);
  tcase_add_loop_test (cases, test_events_between, 0, 2);
  tcase_add_loop_test (cases, test_between, 0, 2);
  return suite;
}

GST_CHECK_MAIN (window);
