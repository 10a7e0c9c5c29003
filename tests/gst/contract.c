/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Negotiation, queries, events and state: what a tile section promises to the pipeline around it. */
#include "../../gst/gstvidgenplan.h"
#include "../../gst/gstvidgentilemeta.h"
#include "frames.h"

#define SECTION \
  "vidgenchunk name=c tile-width=64 tile-height=48 overlap-x=16 overlap-y=8 ! " \
  "identity name=i ! vidgenstitch name=s"

static void
push_frame (GstHarness *h, const GstVideoInfo *info, guint i)
{
  fail_unless_equals_int (gst_harness_push (h, frames_new (info, i, 0, FALSE)), GST_FLOW_OK);
}

/* Frame i comes out next, with caps of its size. */
static void
expect_frame (GstHarness *h, const GstVideoInfo *info, guint i)
{
  GstBuffer *want = frames_new (info, i, 0, FALSE), *out = gst_harness_pull (h);
  GstCaps *caps = gst_pad_get_current_caps (h->sinkpad);
  GstVideoInfo got;
  gchar *text;

  fail_unless (out && caps && gst_video_info_from_caps (&got, caps));
  fail_unless (got.width == info->width && got.height == info->height &&
          GST_VIDEO_INFO_FORMAT (&got) == GST_VIDEO_INFO_FORMAT (info),
      "%" GST_PTR_FORMAT, caps);
  text = frames_differ (info, out, want);
  fail_unless (!text, "frame %u of %dx%d: %s", i, info->width, info->height, text);
  frames_assert_same_data (out, want, "frame");
  gst_buffer_unref (want);
  gst_buffer_unref (out);
  gst_caps_unref (caps);
}

/* Sizes and formats change in mid-stream, also where the tiles' caps stay the same (400x240 and 400x192 are both cut
 * into 64 by 48). */
static void
change_caps (const gchar *line)
{
  static const struct
  {
    const gchar *format;
    gint width, height;
  } cases[] = {{"I420", 400, 240}, {"I420", 400, 192}, {"I420", 208, 240}, {"I420", 33, 21}, {"RGB", 33, 21},
      {"RGB", 401, 240}, {"I420", 1, 1}, {"I420", 400, 240}};
  GstHarness *h = frames_harness (line, frames_caps ("I420", 400, 240), NULL);

  for (guint k = 0; k < G_N_ELEMENTS (cases); k++) {
    GstVideoInfo info = frames_info (cases[k].format, cases[k].width, cases[k].height);

    GstCaps *caps = frames_caps (cases[k].format, cases[k].width, cases[k].height);

    gst_harness_push_event (h, gst_event_new_caps (caps));
    gst_caps_unref (caps);
    for (guint i = 0; i < 3; i++)
      push_frame (h, &info, i);
    for (guint i = 0; i < 3; i++)
      expect_frame (h, &info, i);
  }
  gst_harness_teardown (h);
}

GST_START_TEST (test_caps_change)
{
  change_caps (SECTION);
}

GST_END_TEST;

GST_START_TEST (test_caps_change_queued)
{
  change_caps ("vidgenchunk tile-width=64 tile-height=48 ! queue ! identity ! queue ! vidgenstitch");
}

GST_END_TEST;

/* Caps come before the segment and everything else, once, though the stitch learns the frame's size late; held
 * events keep their order. */
GST_START_TEST (test_event_order)
{
  static const GstEventType want[] = {
      GST_EVENT_STREAM_START, GST_EVENT_CAPS, GST_EVENT_SEGMENT, GST_EVENT_TAG, GST_EVENT_CUSTOM_DOWNSTREAM};
  GstVideoInfo info = frames_info ("I420", 100, 80);
  GstHarness *h = frames_harness (SECTION, gst_video_info_to_caps (&info), NULL);

  gst_harness_push_event (h, gst_event_new_tag (gst_tag_list_new (GST_TAG_TITLE, "t", NULL)));
  gst_harness_push_event (h, gst_event_new_custom (GST_EVENT_CUSTOM_DOWNSTREAM, gst_structure_new_empty ("test")));
  push_frame (h, &info, 1);
  for (guint i = 0; i < G_N_ELEMENTS (want); i++) {
    GstEvent *event = gst_harness_pull_event (h);

    fail_unless_equals_int (GST_EVENT_TYPE (event), want[i]);
    gst_event_unref (event);
  }
  expect_frame (h, &info, 1);
  fail_unless (gst_harness_try_pull_event (h) == NULL);
  fail_unless (gst_harness_push_event (h, gst_event_new_eos ()));
  gst_event_unref (gst_harness_pull_event (h));
  fail_unless_equals_int (gst_harness_events_received (h), 6);
  gst_harness_teardown (h);
}

GST_END_TEST;

/* A GAP before the first frame: caps and segment still come before it, or no sink would preroll. */
GST_START_TEST (test_gap_first)
{
  static const gchar *lines[] = {SECTION, "vidgenchunk tile-width=30 ! queue ! identity ! vidgenstitch"};

  for (guint k = 0; k < G_N_ELEMENTS (lines); k++) {
    GstVideoInfo info = frames_info ("I420", 100, 80);
    GstHarness *h = frames_harness (lines[k], gst_video_info_to_caps (&info), NULL);
    GstEventType types[4];

    gst_harness_push_event (h, gst_event_new_gap (0, GST_SECOND));
    for (guint i = 0; i < 4; i++) {
      GstEvent *event = gst_harness_pull_event (h);

      types[i] = GST_EVENT_TYPE (event);
      gst_event_unref (event);
    }
    fail_unless (types[1] == GST_EVENT_CAPS && types[2] == GST_EVENT_SEGMENT && types[3] == GST_EVENT_GAP);
    push_frame (h, &info, 2);
    expect_frame (h, &info, 2);
    gst_harness_teardown (h);
  }
}

GST_END_TEST;

/* A storm of flushing seeks while frames run. */
typedef struct
{
  GstHarness *h;
  GMutex lock; /* held while pushing, as a source does */
  gint stop;
  guint pushed;
} Pusher;

static gpointer
push_forever (gpointer data)
{
  Pusher *p = data;
  GstVideoInfo info = frames_info ("I420", 100, 80);

  while (!g_atomic_int_get (&p->stop)) {
    g_mutex_lock (&p->lock);
    p->pushed += gst_harness_push (p->h, frames_new (&info, 3, 0, FALSE)) == GST_FLOW_OK;
    g_mutex_unlock (&p->lock);
  }
  return NULL;
}

static void
flushing_seek (Pusher *p)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (p->h->srcpad, gst_event_new_flush_start ());
  g_mutex_lock (&p->lock);
  gst_pad_push_event (p->h->srcpad, gst_event_new_flush_stop (TRUE));
  gst_pad_push_event (p->h->srcpad, gst_event_new_segment (&segment));
  g_mutex_unlock (&p->lock);
}

GST_START_TEST (test_flush_storm)
{
  GstVideoInfo info = frames_info ("I420", 100, 80);
  Pusher p = {0};
  GThread *thread;
  GstBuffer *out;

  p.h = frames_harness ("vidgenchunk tile-width=30 tile-height=30 ! queue max-size-buffers=3 ! vidgenstitch",
      gst_video_info_to_caps (&info), NULL);
  g_mutex_init (&p.lock);
  thread = g_thread_new ("push", push_forever, &p);
  for (guint i = 0; i < 60; i++) {
    flushing_seek (&p);
    g_usleep (2000);
  }
  g_atomic_int_set (&p.stop, 1);
  g_thread_join (thread);
  flushing_seek (&p);
  while ((out = gst_harness_try_pull (p.h)))
    gst_buffer_unref (out);
  push_frame (p.h, &info, 9);
  expect_frame (p.h, &info, 9);
  fail_unless (p.pushed > 20 && gst_harness_buffers_received (p.h) > 20, "%u pushed", p.pushed);
  gst_harness_teardown (p.h);
  g_mutex_clear (&p.lock);
}

GST_END_TEST;

static GstPadProbeReturn
drop_after (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  return (*(gint *) user_data)-- > 0 ? GST_PAD_PROBE_OK : GST_PAD_PROBE_DROP;
}

/* What was gathered of a frame before a flush does not get into the next. */
GST_START_TEST (test_flush_inside_frame)
{
  GstVideoInfo info = frames_info ("I420", 100, 80);
  GstBus *bus;
  GstHarness *h = frames_harness (SECTION, gst_video_info_to_caps (&info), &bus);
  GstPad *pad = gst_element_get_static_pad (frames_get (h, "i"), "src");
  gint left = 2;
  gulong id = gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, drop_after, &left, NULL);

  push_frame (h, &info, 1);
  fail_unless_equals_int (gst_harness_buffers_in_queue (h), 0);
  frames_flush (h);
  gst_pad_remove_probe (pad, id);
  gst_object_unref (pad);
  push_frame (h, &info, 2);
  expect_frame (h, &info, 2);
  fail_unless (gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR) == NULL);
  frames_end (h, bus);
}

GST_END_TEST;

/* RECONFIGURE goes on up and brings a new plan. */
GST_START_TEST (test_reconfigure)
{
  GstVideoInfo info = frames_info ("I420", 100, 80);
  GstHarness *h = frames_harness (SECTION, gst_video_info_to_caps (&info), NULL);
  GstEvent *event;
  gboolean reconfigured = FALSE;

  push_frame (h, &info, 1);
  expect_frame (h, &info, 1);
  gst_harness_push_upstream_event (h, gst_event_new_reconfigure ());
  while ((event = gst_harness_try_pull_upstream_event (h))) {
    reconfigured |= GST_EVENT_TYPE (event) == GST_EVENT_RECONFIGURE;
    gst_event_unref (event);
  }
  fail_unless (reconfigured);
  push_frame (h, &info, 2);
  expect_frame (h, &info, 2);
  gst_harness_teardown (h);
}

GST_END_TEST;

/* LATENCY passes through, ALLOCATION upstream asks for frames enough, CAPS follow what downstream takes. */
GST_START_TEST (test_queries)
{
  GstVideoInfo info = frames_info ("I420", 100, 80);
  GstHarness *h = frames_harness (SECTION, gst_video_info_to_caps (&info), NULL);
  GstCaps *caps = gst_video_info_to_caps (&info), *want;
  GstQuery *query;
  guint size, min, max;

  gst_harness_set_upstream_latency (h, 77 * GST_MSECOND);
  fail_unless_equals_uint64 (gst_harness_query_latency (h), 77 * GST_MSECOND);

  query = gst_query_new_allocation (caps, TRUE);
  fail_unless (gst_pad_peer_query (h->srcpad, query));
  fail_unless (gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL));
  gst_query_parse_nth_allocation_pool (query, 0, NULL, &size, &min, &max);
  fail_unless (size == info.size && min >= 2 && max == 0);
  gst_query_unref (query);
  gst_caps_unref (caps);
  gst_harness_teardown (h);

  h = frames_harness (
      SECTION " ! capsfilter caps=\"video/x-raw,width=320,height=[10,20]\"", frames_caps ("I420", 320, 16), NULL);
  caps = gst_pad_peer_query_caps (h->srcpad, NULL);
  want = gst_caps_from_string ("video/x-raw,width=320,height=[10,20]");
  fail_unless (!gst_caps_is_empty (caps) && gst_caps_is_subset (caps, want), "%" GST_PTR_FORMAT, caps);
  gst_caps_unref (caps);
  gst_caps_unref (want);
  gst_harness_teardown (h);
}

GST_END_TEST;

/* ---- a stand-in for the model: answers for `identity` or `videoscale` ---- */

typedef struct
{
  gint tile, num;
  gboolean refuse, fixed;
  guint asked;
} Plan;

static GstPadProbeReturn
answer_plan (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  GstQuery *query = GST_PAD_PROBE_INFO_QUERY (info);
  Plan *plan = user_data;
  GstStructure *s;

  if (GST_QUERY_TYPE (query) != GST_QUERY_CUSTOM)
    return GST_PAD_PROBE_OK;
  s = gst_query_writable_structure (query);
  if (gst_structure_has_name (s, GST_VIDGEN_QUERY_SIZES)) {
    gst_structure_set (s, "scale-num", G_TYPE_INT, plan->num, "scale-den", G_TYPE_INT, 1, NULL);
    return GST_PAD_PROBE_OK;
  }
  if (gst_structure_has_name (s, GST_VIDGEN_QUERY_PLAN)) {
    GstCaps *caps;
    GstVideoInfo vi;

    plan->asked++;
    if (plan->refuse) {
      gst_structure_set (s, "refused", G_TYPE_BOOLEAN, TRUE, NULL);
    } else {
      struct vg_axis_request x = {.tile = plan->tile,
                                 .overlap = -1,
                                 .halo_lo = 6,
                                 .halo_hi = 6,
                                 .size_multiple = 1,
                                 .origin_multiple = 4,
                                 .chroma = 2,
                                 .num = plan->num,
                                 .den = 1,
                                 .fixed = plan->fixed},
                             y;
      struct vg_grid grid;
      /* The plugin's type: the test has no copy of its own. */
      GType type = g_type_from_name ("GstVidgenGrid");
      GstVidgenGrid *boxed = g_atomic_rc_box_new0 (GstVidgenGrid);

      gst_structure_get (s, "caps", GST_TYPE_CAPS, &caps, NULL);
      gst_video_info_from_caps (&vi, caps);
      gst_caps_unref (caps);
      x.frame = vi.width;
      y = x;
      y.frame = vi.height;
      fail_unless (vg_axis_make (&x, &grid.x, NULL) == VGK_OK && vg_axis_make (&y, &grid.y, NULL) == VGK_OK);
      boxed->grid = grid;
      gst_structure_set (s, "grid", type, boxed, NULL);
      g_atomic_rc_box_release (boxed);
    }
    GST_PAD_PROBE_INFO_FLOW_RETURN (info) = GST_FLOW_OK;
    return GST_PAD_PROBE_HANDLED;
  }
  return GST_PAD_PROBE_OK;
}

static void
add_plan (GstHarness *h, const gchar *name, Plan *plan)
{
  GstPad *pad = gst_element_get_static_pad (frames_get (h, name), "sink");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM | GST_PAD_PROBE_TYPE_PUSH, answer_plan, plan, NULL);
  gst_object_unref (pad);
}

/* The model's plan is used, with its scale: twice the size by repetition. */
GST_START_TEST (test_plan_scales)
{
  static const gint sizes[][2] = {{100, 80}, {101, 53}, {31, 30}, {1, 1}};

  for (guint k = 0; k < G_N_ELEMENTS (sizes); k++) {
    Plan plan = {40, 2};
    gint w = sizes[k][0], hh = sizes[k][1];
    GstVideoInfo info = frames_info ("RGB", w, hh);
    GstVideoInfo twice = frames_info ("RGB", 2 * w, 2 * hh);
    GstHarness *h = gst_harness_new_parse (
        "vidgenchunk name=c ! videoscale name=i method=nearest-neighbour ! capsfilter name=f ! vidgenstitch name=s");
    GstBuffer *in = frames_new (&info, 3, 0, FALSE), *out;
    struct vg_axis_request r = {.tile = 40,
        .overlap = -1,
        .halo_lo = 6,
        .halo_hi = 6,
        .size_multiple = 1,
        .origin_multiple = 4,
        .chroma = 2,
        .num = 2,
        .den = 1};
    struct vg_axis ax, ay;
    GstVideoFrame a, b;
    GstCaps *caps;

    r.frame = w;
    vg_axis_make (&r, &ax, NULL);
    r.frame = hh;
    vg_axis_make (&r, &ay, NULL);
    caps = gst_caps_new_simple (
        "video/x-raw", "width", G_TYPE_INT, 2 * ax.tile, "height", G_TYPE_INT, 2 * ay.tile, NULL);
    g_object_set (frames_get (h, "f"), "caps", caps, NULL);
    gst_caps_unref (caps);
    add_plan (h, "i", &plan);
    gst_harness_set_src_caps (h, gst_video_info_to_caps (&info));
    fail_unless_equals_int (gst_harness_push (h, gst_buffer_ref (in)), GST_FLOW_OK);
    out = gst_harness_pull (h);
    fail_unless (plan.asked > 0);
    gst_video_frame_map (&a, &info, in, GST_MAP_READ);
    fail_unless (gst_video_frame_map (&b, &twice, out, GST_MAP_READ));
    for (gint y = 0; y < 2 * hh; y++)
      for (gint x = 0; x < 2 * w; x++)
        fail_unless (!memcmp ((guint8 *) a.data[0] + y / 2 * info.stride[0] + x / 2 * 3,
                         (guint8 *) b.data[0] + y * twice.stride[0] + x * 3, 3),
            "%dx%d (%d, %d)", w, hh, x, y);
    gst_video_frame_unmap (&a);
    gst_video_frame_unmap (&b);
    frames_assert_same_data (out, in, "scaled");
    gst_buffer_unref (in);
    gst_buffer_unref (out);
    gst_harness_teardown (h);
  }
}

GST_END_TEST;

/* A new plan while playing, and sizes asked through a scale. */
GST_START_TEST (test_new_plan)
{
  GstVideoInfo info = frames_info ("I420", 200, 120);
  GstHarness *h = frames_harness (SECTION, gst_video_info_to_caps (&info), NULL);
  Plan plan = {64, 1};
  GstPad *pad = gst_element_get_static_pad (frames_get (h, "c"), "src");
  GstPad *sink = gst_element_get_static_pad (frames_get (h, "i"), "sink");
  GstCaps *caps;
  gint width;

  add_plan (h, "i", &plan);
  for (gint i = 0; i < 4; i++) {
    plan.tile = i % 2 ? 100 : 64;
    gst_pad_push_event (sink, gst_event_new_reconfigure ());
    push_frame (h, &info, i);
    expect_frame (h, &info, i);
    caps = gst_pad_get_current_caps (pad);
    gst_structure_get_int (gst_caps_get_structure (caps, 0), "width", &width);
    fail_unless_equals_int (width, plan.tile);
    gst_caps_unref (caps);
  }
  gst_object_unref (pad);
  gst_object_unref (sink);
  gst_harness_teardown (h);

  plan.num = 2;
  h = gst_harness_new_parse (SECTION " ! capsfilter caps=\"video/x-raw,width=640,height=[100,101]\"");
  add_plan (h, "i", &plan);
  caps = gst_pad_peer_query_caps (h->srcpad, NULL);
  gst_structure_get_int (gst_caps_get_structure (caps, 0), "width", &width);
  fail_unless_equals_int (width, 320);
  gst_structure_get_int (gst_caps_get_structure (caps, 0), "height", &width);
  fail_unless_equals_int (width, 50);
  gst_caps_unref (caps);
  gst_harness_teardown (h);
}

GST_END_TEST;

static GstPadProbeReturn
check_edge (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  GstMapInfo map;

  /* GRAY8: 50 pixels of frame in tiles of 64, the last column repeated. */
  gst_buffer_map (GST_PAD_PROBE_INFO_BUFFER (info), &map, GST_MAP_READ);
  fail_unless_equals_int (map.size, 64 * 64);
  for (gint y = 0; y < 64; y++)
    for (gint x = 50; x < 64; x++)
      fail_unless_equals_int (map.data[y * 64 + x], map.data[y * 64 + 49]);
  for (gint y = 40; y < 64; y++)
    fail_unless (!memcmp (map.data + y * 64, map.data + 39 * 64, 64));
  gst_buffer_unmap (GST_PAD_PROBE_INFO_BUFFER (info), &map);
  (*(guint *) user_data)++;
  return GST_PAD_PROBE_OK;
}

/* A model of a fixed size and a smaller frame: the tile hangs over, shows the frame's edge there, and the frame
 * comes back in its own size. */
GST_START_TEST (test_plan_fixed)
{
  GstVideoInfo info = frames_info ("GRAY8", 50, 40);
  GstHarness *h = gst_harness_new_parse (SECTION);
  Plan plan = {64, 1, FALSE, TRUE};
  GstPad *pad = gst_element_get_static_pad (frames_get (h, "i"), "sink");
  guint seen = 0;

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, check_edge, &seen, NULL);
  gst_object_unref (pad);
  add_plan (h, "i", &plan);
  gst_harness_set_src_caps (h, gst_video_info_to_caps (&info));
  for (guint i = 0; i < 3; i++) {
    push_frame (h, &info, i);
    expect_frame (h, &info, i);
  }
  fail_unless_equals_int (seen, 3);
  gst_harness_teardown (h);
}

GST_END_TEST;

/* A model that refuses has said why: no second error, not negotiated. */
GST_START_TEST (test_plan_refused)
{
  GstVideoInfo info = frames_info ("I420", 200, 120);
  GstHarness *h = gst_harness_new_parse (SECTION);
  Plan plan = {64, 1, TRUE};
  GstBus *bus = gst_bus_new ();

  gst_element_set_bus (h->element, bus);
  add_plan (h, "i", &plan);
  gst_harness_set_src_caps (h, gst_video_info_to_caps (&info));
  for (guint i = 0; i < 3; i++)
    fail_unless_equals_int (gst_harness_push (h, frames_new (&info, i, 0, FALSE)), GST_FLOW_NOT_NEGOTIATED);
  fail_unless (gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR) == NULL);
  fail_unless_equals_int (plan.asked, 1);
  frames_end (h, bus);
}

GST_END_TEST;

/* Geometry in metas follows the model's scale. */
GST_START_TEST (test_metas_scale)
{
  Plan plan = {0, 2};
  GstVideoInfo info = frames_info ("RGB", 40, 30);
  GstHarness *h = gst_harness_new_parse (
      "vidgenchunk ! videoscale name=i ! video/x-raw,width=80,height=60 ! vidgenstitch");
  GstBuffer *in = frames_new (&info, 3, 0, FALSE), *out;
  GstVideoRegionOfInterestMeta *roi;

  add_plan (h, "i", &plan);
  gst_harness_set_src_caps (h, gst_video_info_to_caps (&info));
  frames_add_metas (in, 3);
  gst_harness_push (h, in);
  out = gst_harness_pull (h);
  roi = gst_buffer_get_video_region_of_interest_meta (out);
  fail_unless (roi && roi->x == 6 && roi->y == 4 && roi->w == 10 && roi->h == 12);
  fail_unless (gst_buffer_get_video_time_code_meta (out) != NULL);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}

GST_END_TEST;

static Suite *
contract_suite (void)
{
  Suite *s = suite_create ("contract");
  TCase *tc = tcase_create ("general");

  frames_init ();
  tcase_set_timeout (tc, 60);
  suite_add_tcase (s, tc);
  tcase_add_test (tc, test_caps_change);
  tcase_add_test (tc, test_caps_change_queued);
  tcase_add_test (tc, test_event_order);
  tcase_add_test (tc, test_gap_first);
  tcase_add_test (tc, test_flush_storm);
  tcase_add_test (tc, test_flush_inside_frame);
  tcase_add_test (tc, test_reconfigure);
  tcase_add_test (tc, test_queries);
  tcase_add_test (tc, test_plan_scales);
  tcase_add_test (tc, test_new_plan);
  tcase_add_test (tc, test_plan_refused);
  tcase_add_test (tc, test_plan_fixed);
  tcase_add_test (tc, test_metas_scale);
  return s;
}

GST_CHECK_MAIN (contract);
