/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* reuse-static: tiles that stand still are not run, and what comes out is the same as without. */
#include "time_frames.h"

#define W 76
#define H 58
#define COMMON "threads=1 exact-products=true"

/* ---- frames: noise that stands still, and a block of it that does not ---- */

/* Picture n of a clip; only pixels [12, 20) by [8, 14) tell one from another. */
static GstBuffer *
picture (const GstVideoInfo *info, guint n)
{
  GstBuffer *buffer = frames_new (info, 5, n % 2 ? 8 : 0, FALSE);
  GstVideoFrame frame;

  GST_BUFFER_FLAG_UNSET (buffer, GST_BUFFER_FLAG_DISCONT);
  fail_unless (gst_video_frame_map (&frame, info, buffer, GST_MAP_READWRITE));
  for (gint y = 8; y < 14; y++) {
    guint8 *row = (guint8 *) frame.data[0] + y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0);

    for (gint x = 12 * frame.info.finfo->pixel_stride[0]; x < 20 * frame.info.finfo->pixel_stride[0]; x++)
      row[x] = 31 * n + x;
  }
  gst_video_frame_unmap (&frame);
  return buffer;
}

static gint frames_alive;

static void
frame_dies (gpointer user, GstMiniObject *object)
{
  g_atomic_int_dec_and_test (&frames_alive);
}

static void
push (GstHarness *h, GstBuffer *buffer, guint i)
{
  GST_BUFFER_PTS (buffer) = i * FRAME;
  GST_BUFFER_DURATION (buffer) = FRAME;
  frames_add_metas (buffer, i);
  gst_mini_object_weak_ref (GST_MINI_OBJECT (buffer), frame_dies, NULL);
  g_atomic_int_inc (&frames_alive);
  fail_unless_equals_int (gst_harness_push (h, buffer), GST_FLOW_OK);
}

/* ---- what is to be run ---- */

/* Of the tiles that came into the model: those that differ from the last one of their place, and all. */
typedef struct
{
  GHashTable *last; /* place -> GByteArray */
  guint64 moved, all;
} Watch;

static GstPadProbeReturn
watch_tile (GstPad *pad, GstPadProbeInfo *probe, gpointer user)
{
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (probe);
  GstCaps *caps = gst_pad_get_current_caps (pad);
  Watch *watch = user;
  GstVideoInfo info;
  GstVideoFrame frame;
  GByteArray *bytes = g_byte_array_new (), *last;
  gpointer place;
  GType api = g_type_from_name ("GstVidgenTileMetaAPI");
  GstMeta *meta = api ? gst_buffer_get_meta (buffer, api) : NULL;
  /* column and row are the last of struct GstVidgenTileMeta */
  const guint *at = meta ? (const guint *) ((guint8 *) meta + meta->info->size) - 2 : NULL;

  place = GUINT_TO_POINTER (at ? at[0] * 100 + at[1] : 0);
  fail_unless (gst_video_info_from_caps (&info, caps) && gst_video_frame_map (&frame, &info, buffer, GST_MAP_READ));
  for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES (&frame); p++)
    for (gint y = 0; y < frames_rows (&frame, p); y++)
      g_byte_array_append (bytes, (guint8 *) frame.data[p] + y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, p),
          frames_row_bytes (&frame, p));
  gst_video_frame_unmap (&frame);
  gst_caps_unref (caps);
  last = g_hash_table_lookup (watch->last, place);
  watch->all++;
  watch->moved += !last || last->len != bytes->len || memcmp (last->data, bytes->data, bytes->len) != 0;
  g_hash_table_insert (watch->last, place, bytes);
  return GST_PAD_PROBE_OK;
}

static void
watch_forget (Watch *watch)
{
  g_hash_table_remove_all (watch->last);
}

/* ---- one clip, with and without ---- */

enum
{
  PARAMETERS = 100, /* in place of a picture: other parameters */
  FLUSH,
  RESEND, /* the caps once more */
  SWAP,   /* another model, and back */
  OFF,    /* the property */
  ON,
};

typedef struct
{
  GPtrArray *out;
  guint64 tiles, reused;
  Watch watch;
} Clip;

static void
play_clip (Clip *clip, const gchar *format, const gchar *line, gboolean reuse, const guint *script, guint n)
{
  gchar *whole = g_strdup_printf (line, reuse ? "reuse-static=true" : "");
  GstVideoInfo info = frames_info (format, W, H);
  GstHarness *h = frames_harness (whole, gst_video_info_to_caps (&info), NULL);
  GstElement *m = frames_get (h, "m");
  GstPad *pad = gst_element_get_static_pad (m, "sink");
  GstStructure *parameters;
  GstCaps *caps;
  guint frames = 0, swaps = 0;

  clip->out = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_buffer_unref);
  clip->watch = (Watch) {g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify) g_byte_array_unref)};
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, watch_tile, &clip->watch, NULL);
  for (guint i = 0; i < n; i++)
    switch (script[i]) {
      case PARAMETERS:
        parameters = gst_structure_from_string ("p,style_weights=<0.0,0.3,0.7>", NULL);
        g_object_set (m, "parameters", parameters, NULL);
        gst_structure_free (parameters);
        watch_forget (&clip->watch);
        break;
      case FLUSH:
        frames_flush (h);
        watch_forget (&clip->watch);
        break;
      case RESEND:
        caps = gst_pad_get_current_caps (h->srcpad);
        gst_harness_push_event (h, gst_event_new_caps (caps));
        gst_caps_unref (caps);
        break;
      case SWAP:
        g_object_set (m, "model-file", swaps++ % 2 ? "style3" : "upscale2x", NULL);
        watch_forget (&clip->watch);
        break;
      case OFF:
        g_object_set (m, "reuse-static", FALSE, NULL);
        break;
      case ON:
        g_object_set (m, "reuse-static", reuse, NULL);
        watch_forget (&clip->watch);
        break;
      default:
        push (h, picture (&info, script[i]), frames);
        if (reuse && !strstr (line, "queue"))
          fail_unless (frames_alive <= 1, "%s, frame %u: %d frames are held", whole, frames, frames_alive);
        frames++;
    }
  gst_harness_push_event (h, gst_event_new_eos ());
  for (guint i = 0; i < frames; i++)
    g_ptr_array_add (clip->out, pull (h));
  expect_end (h);
  fail_unless_equals_int (g_atomic_int_get (&frames_alive), 0);
  clip->tiles = stat_of (m, "tiles");
  clip->reused = stat_of (m, "tiles-reused");
  fail_unless_equals_uint64 (stat_of (m, "frames"), frames);
  gst_object_unref (pad);
  gst_harness_teardown (h);
  g_free (whole);
}

static void
clear_clip (Clip *clip)
{
  g_ptr_array_unref (clip->out);
  g_hash_table_unref (clip->watch.last);
}

static void
expect_same (GstBuffer *a, GstBuffer *b, const gchar *what)
{
  GstMapInfo x, y;

  frames_assert_same_data (a, b, what);
  fail_unless (gst_buffer_map (a, &x, GST_MAP_READ) && gst_buffer_map (b, &y, GST_MAP_READ));
  fail_unless (x.size == y.size && memcmp (x.data, y.data, x.size) == 0, "%s", what);
  gst_buffer_unmap (a, &x);
  gst_buffer_unmap (b, &y);
}

/* Both ways give the same; with it only what moved is run.  Returns how many tiles were not. */
static guint64
check_clip (const gchar *format, const gchar *line, const guint *script, guint n)
{
  GstVideoInfo info = frames_info (format, W, H);
  Clip with, without;

  play_clip (&with, format, line, TRUE, script, n);
  play_clip (&without, format, line, FALSE, script, n);
  fail_unless_equals_int (with.out->len, without.out->len);
  for (guint i = 0; i < with.out->len; i++) {
    gchar *what = g_strdup_printf ("%s, %s: frame %u", format, line, i);

    expect_same (g_ptr_array_index (with.out, i), g_ptr_array_index (without.out, i), what);
    if (gst_buffer_get_size (g_ptr_array_index (with.out, i)) < 2 * info.size) /* else regions are scaled, too */
      frames_assert_metas (g_ptr_array_index (with.out, i), i, what);
    g_free (what);
  }
  fail_unless_equals_uint64 (without.reused, 0);
  fail_unless_equals_uint64 (without.tiles, without.watch.all);
  fail_unless_equals_uint64 (with.tiles, with.watch.moved);
  fail_unless_equals_uint64 (with.tiles + with.reused, with.watch.all);
  clear_clip (&with);
  clear_clip (&without);
  return with.reused;
}

static const gchar *const lines[] = {
    "vidgenmodel name=m " COMMON " %s",
    "vidgenchunk ! vidgenmodel name=m " COMMON " %s ! vidgenstitch",
    "vidgenchunk tile-width=44 tile-height=40 ! vidgenmodel name=m model-file=upscale2x " COMMON
    " %s ! vidgenstitch",
    "vidgenchunk tile-width=44 tile-height=40 ! queue ! vidgenmodel name=m model-file=upscale2x " COMMON
    " %s ! queue ! vidgenstitch",
    /* makes new buffers, which are no views */
    "vidgenchunk tile-width=44 tile-height=40 ! videobalance saturation=0.5 ! vidgenmodel name=m "
    "model-file=upscale2x " COMMON " %s ! vidgenstitch",
};

GST_START_TEST (test_clips)
{
  static const gchar *const formats[] = {"RGB", "NV12", "I420", "BGRA", "GBR"};
  static const guint script[] = {0, 0, 1, 1, 1, 2, 0, 3, 3};

  for (guint f = 0; f < G_N_ELEMENTS (formats); f++) {
    guint64 reused;

    if (g_str_equal (formats[f], "GBR") && __i__ == 4)
      continue; /* videobalance does not take it */
    reused = check_clip (formats[f], lines[__i__], script, G_N_ELEMENTS (script));
    /* Frames 1, 3, 4 and 8 of 9 are what came before. */
    if (__i__ < 2) {
      fail_unless_equals_uint64 (reused, 4);
    } else {
      fail_unless (reused > 4 * 4);
    }
  }
}
GST_END_TEST;

/* Whatever else a result depends on begins anew; what does not matter does not. */
GST_START_TEST (test_changes)
{
  static const guint scripts[][7] = {
      {0, 0, PARAMETERS, 0, 0, 1, 1},
      {0, 0, FLUSH, 0, 0, 1, 1},
      {0, 0, RESEND, 0, 0, 1, 1},
      {0, 0, SWAP, 0, 0, SWAP, 0},
  };
  static const guint64 reused[] = {3, 3, 4, 2};

  for (guint i = 0; i < G_N_ELEMENTS (scripts); i++) {
    fail_unless_equals_uint64 (check_clip ("NV12", lines[1], scripts[i], 7), reused[i]);
    if (scripts[i][2] == FLUSH || scripts[i][2] == RESEND)
      check_clip ("RGB", lines[2], scripts[i], 7);
  }
}
GST_END_TEST;

/* On and off while playing. */
GST_START_TEST (test_property)
{
  static const guint script[] = {0, 0, OFF, 0, 0, ON, 0, 0};
  Clip clip;

  play_clip (&clip, "RGB", lines[1], TRUE, script, G_N_ELEMENTS (script));
  fail_unless_equals_uint64 (clip.reused, 2);
  fail_unless_equals_uint64 (clip.tiles, 4);
  clear_clip (&clip);
}
GST_END_TEST;

/* One memory that comes again is the same; what was wrapped again may have been written to. */
GST_START_TEST (test_memory)
{
  GstVideoInfo info = frames_info ("RGB", W, H);

  for (guint i = 0; i < 2; i++) {
    gchar *line = g_strdup_printf (lines[i], "reuse-static=true");
    GstHarness *h = frames_harness (line, gst_video_info_to_caps (&info), NULL);
    GstBuffer *still = picture (&info, 0), *before, *out;
    guint8 *pixels = g_malloc (info.size);
    gchar *differ;

    for (guint n = 0; n < 3; n++)
      push (h, gst_buffer_copy (still), n);
    fail_unless_equals_uint64 (stat_of (frames_get (h, "m"), "tiles"), 1);
    fail_unless_equals_uint64 (stat_of (frames_get (h, "m"), "tiles-reused"), 2);
    gst_buffer_unref (still);
    before = pull (h);
    for (guint n = 0; n < 2; n++) {
      out = pull (h);
      fail_unless (frames_differ (&info, before, out) == NULL);
      gst_buffer_unref (out);
    }
    for (guint n = 0; n < 2; n++) {
      memset (pixels, 50 + 100 * n, info.size);
      push (h, gst_buffer_new_wrapped_full (GST_MEMORY_FLAG_READONLY, pixels, info.size, 0, info.size, NULL, NULL),
          3 + n);
      out = pull (h);
      differ = frames_differ (&info, before, out);
      fail_unless (differ != NULL);
      g_free (differ);
      gst_buffer_unref (before);
      before = out;
    }
    gst_buffer_unref (before);
    fail_unless_equals_uint64 (stat_of (frames_get (h, "m"), "tiles"), 3);
    gst_harness_teardown (h);
    g_free (pixels);
    g_free (line);
  }
}
GST_END_TEST;

static guint
buffers_asked_for (GstHarness *h)
{
  GstCaps *caps = gst_pad_get_current_caps (h->srcpad);
  GstQuery *query = gst_query_new_allocation (caps, TRUE);
  guint min = 0;

  fail_unless (gst_pad_peer_query (h->srcpad, query));
  if (gst_query_get_n_allocation_pools (query) > 0)
    gst_query_parse_nth_allocation_pool (query, 0, NULL, NULL, &min, NULL);
  gst_query_unref (query);
  gst_caps_unref (caps);
  return min;
}

static guint
reconfigures (GstHarness *h)
{
  GstEvent *event;
  guint n = 0;

  while ((event = gst_harness_try_pull_upstream_event (h))) {
    n += GST_EVENT_TYPE (event) == GST_EVENT_RECONFIGURE;
    gst_event_unref (event);
  }
  return n;
}

/* Upstream is asked for a frame more, and asked again when the property changes; DRAIN gives back what is held; what
 * leaves is nobody else's. */
GST_START_TEST (test_pools)
{
  GstVideoInfo info = frames_info ("RGB", 80, 60);

  for (guint i = 0; i < 3; i++) {
    gchar *line = g_strdup_printf (lines[i], "");
    GstHarness *h = frames_harness (line, gst_video_info_to_caps (&info), NULL);
    GstQuery *drain = gst_query_new_drain ();
    guint before;

    push (h, picture (&info, 0), 0);
    gst_buffer_unref (pull (h));
    fail_unless_equals_int (frames_alive, 0);
    before = buffers_asked_for (h);
    reconfigures (h);
    g_object_set (frames_get (h, "m"), "reuse-static", TRUE, NULL);
    for (guint n = 0; n < 2; n++) {
      GstBuffer *out;

      push (h, picture (&info, 0), 1 + n);
      fail_unless_equals_int (frames_alive, 1);
      out = pull (h);
      fail_unless (gst_buffer_is_writable (out) && gst_buffer_is_all_memory_writable (out));
      fail_unless (out->pool != NULL && !gst_buffer_get_parent_buffer_meta (out));
      gst_buffer_unref (out);
    }
    fail_unless (reconfigures (h) > 0);
    fail_unless_equals_int (buffers_asked_for (h), MAX (before, 2) + 1);
    gst_pad_peer_query (h->srcpad, drain);
    fail_unless_equals_int (frames_alive, 0);
    gst_query_unref (drain);
    gst_harness_teardown (h);
    g_free (line);
  }
}
GST_END_TEST;

/* ---- models of several frames ---- */

/* Frames of `numbers` through the model; what comes out, and how many tiles were reused. */
static GPtrArray *
run_window (gint kind, const gchar *how, const gchar *model, gboolean reuse, const gint *numbers, gint n, guint64 *reused)
{
  GstBus *bus;
  GstHarness *h = open_line (kind, how, "off", model, &bus);
  GPtrArray *out = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_buffer_unref);
  GstElement *m = frames_get (h, "m");
  GstBuffer *buffer;

  g_object_set (m, "reuse-static", reuse, NULL);
  for (gint i = 0; i < n; i++)
    push (h, make_frame (numbers[i]), i);
  gst_harness_push_event (h, gst_event_new_eos ());
  fail_unless_equals_int (frames_alive, 0);
  while ((buffer = gst_harness_try_pull (h)))
    g_ptr_array_add (out, buffer);
  *reused = stat_of (m, "tiles-reused");
  frames_end (h, bus);
  return out;
}

static void
check_window (const gchar *how, const gchar *model, gint kind, guint64 expected)
{
  static const gint numbers[] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2};
  guint64 reused, none;
  GPtrArray *with = run_window (kind, how, model, TRUE, numbers, G_N_ELEMENTS (numbers), &reused),
            *without = run_window (kind, how, model, FALSE, numbers, G_N_ELEMENTS (numbers), &none);

  fail_unless_equals_int (with->len, without->len);
  fail_unless (with->len >= G_N_ELEMENTS (numbers));
  for (guint i = 0; i < with->len; i++) {
    gchar *what = g_strdup_printf ("%s %s, frame %u", model, how, i);

    expect_same (g_ptr_array_index (with, i), g_ptr_array_index (without, i), what);
    g_free (what);
  }
  fail_unless_equals_uint64 (none, 0);
  fail_unless_equals_uint64 (reused, expected * (kind == ALONE ? 1 : 4));
  g_ptr_array_unref (with);
  g_ptr_array_unref (without);
}

/* Reused where all frames of a window are those of the last one. */
GST_START_TEST (test_windows)
{
  gchar *mean = time_window_model (3, 1, 1), *several = time_window_model (3, 3, 0), *between = time_between_model (FALSE),
        *state = time_state_model ();

  for (gint kind = ALONE; kind <= TILED; kind++) {
    /* 12 windows: the first, 116 (twice: with one 2, with two) and 222 are new. */
    check_window ("", mean, kind, 12 - 4);
    /* 4 windows of 3: the first and the third are new */
    check_window ("", several, kind, 2);
    /* 11 pairs: 11, 12 and 22 are new; behind the last frame it is repeated */
    check_window ("", between, kind, 11 - 3);
    /* What was before is in the state. */
    check_window ("", state, kind, 0);
  }
  /* Windows from 0, 2, 4, 6, 8, 10, which fade into each other: 111 twice, 112, 222 and 222, and 22 with an edge. */
  check_window ("hop=2", several, TILED, 6 - 3);
  time_remove (mean);
  time_remove (several);
  time_remove (between);
  time_remove (state);
}
GST_END_TEST;

static Suite *
reuse_suite (void)
{
  Suite *s = suite_create ("reuse");
  TCase *tc = tcase_create ("general");

  frames_init ();
  suite_add_tcase (s, tc);
  tcase_set_timeout (tc, 240);
  tcase_add_loop_test (tc, test_clips, 0, G_N_ELEMENTS (lines));
  tcase_add_test (tc, test_changes);
  tcase_add_test (tc, test_property);
  tcase_add_test (tc, test_memory);
  tcase_add_test (tc, test_pools);
  tcase_add_test (tc, test_windows);
  return s;
}

GST_CHECK_MAIN (reuse);
