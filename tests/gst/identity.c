/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* chunk ! ... ! stitch gives every frame back as it came. */
#include "../../model/tiling.h"
#include "frames.h"

static const gchar *formats[] = {"RGB", "BGR", "RGBx", "BGRx", "xRGB", "xBGR", "RGBA", "BGRA", "ARGB", "ABGR", "GBR",
    "GBRA", "I420", "YV12", "NV12", "NV21", "Y42B", "Y444", "NV16", "NV24", "AYUV", "YUY2", "UYVY", "YVYU", "GRAY8"};

static const gchar *blends[] = {"crop", "linear", "cosine"};

/* Pushes frames through a harness and compares what comes out. */
static void
check_frames (GstHarness *h, const GstVideoInfo *info, guint n, guint pad, gboolean split, const gchar *what)
{
  for (guint i = 0; i < n; i++) {
    GstBuffer *in = frames_new (info, i, pad, split), *copy, *out;
    gchar *text;

    frames_add_metas (in, i);
    copy = gst_buffer_copy_deep (in);
    fail_unless_equals_int (gst_harness_push (h, in), GST_FLOW_OK);
    out = gst_harness_pull (h);
    fail_unless (out != NULL, "%s", what);
    text = frames_differ (info, out, copy);
    fail_unless (!text, "%s frame %u: %s", what, i, text);
    frames_assert_same_data (out, copy, what);
    frames_assert_metas (out, i, what);
    fail_unless (!gst_buffer_get_meta (out, g_type_from_name ("GstVidgenTileMetaAPI")), "%s", what);
    gst_buffer_unref (out);
    gst_buffer_unref (copy);
  }
}

/* Random sizes, formats, tiles, overlaps, blends and memory layouts; put together (missing-tile=previous) or not. */
GST_START_TEST (test_random)
{
  GRand *rand = g_rand_new_with_seed (11);
  guint done = 0;

  for (guint i = 0; i < 400; i++) {
    const gchar *format = formats[g_rand_int_range (rand, 0, G_N_ELEMENTS (formats))];
    const gchar *mid = g_rand_int_range (rand, 0, 4) ? "" : "queue ! ";
    gint w = g_rand_int_range (rand, 1, 150), h = g_rand_int_range (rand, 1, 150);
    gint ox = g_rand_int_range (rand, -1, 24), oy = g_rand_int_range (rand, -1, 24);
    gint tw = g_rand_int_range (rand, 0, 3) ? MAX (ox, 0) + 2 + g_rand_int_range (rand, 0, 80) : 0;
    gint th = g_rand_int_range (rand, 0, 3) ? MAX (oy, 0) + 2 + g_rand_int_range (rand, 0, 80) : 0;
    guint pad = g_rand_int_range (rand, 0, 2) ? g_rand_int_range (rand, 1, 40) : 0;
    GstVideoInfo info = frames_info (format, w, h);
    gchar *line = g_strdup_printf ("vidgenchunk tile-width=%d tile-height=%d overlap-x=%d overlap-y=%d ! %s"
                                   "vidgenstitch blend=%s missing-tile=%s",
        tw, th, ox, oy, mid, blends[g_rand_int_range (rand, 0, 3)], g_rand_boolean (rand) ? "previous" : "error");
    gchar *what = g_strdup_printf ("%s of %dx%d %s, padded %u", line, w, h, format, pad);
    GstHarness *harness = frames_harness (line, frames_caps (format, w, h), NULL);

    check_frames (harness, &info, 3, pad, g_rand_int_range (rand, 0, 3) == 0, what);
    done++;
    gst_harness_teardown (harness);
    g_free (what);
    g_free (line);
  }
  fail_unless_equals_int (done, 400);
  g_rand_free (rand);
}

GST_END_TEST;

/* The smallest and a large frame. */
GST_START_TEST (test_extremes)
{
  static const struct
  {
    const gchar *format;
    gint width, height;
  } cases[] = {{"I420", 1, 1}, {"RGB", 1, 1}, {"YUY2", 1, 1}, {"I420", 7680, 4320}};

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstVideoInfo info = frames_info (cases[i].format, cases[i].width, cases[i].height);
    GstHarness *h = frames_harness (
        "vidgenchunk tile-width=512 tile-height=512 overlap-x=32 overlap-y=32 ! vidgenstitch",
        gst_video_info_to_caps (&info), NULL);

    check_frames (h, &info, 1, 0, FALSE, cases[i].format);
    gst_harness_teardown (h);
  }
}

GST_END_TEST;

typedef struct
{
  guint views, packed;
  GstBuffer *source;
} Count;

static GstPadProbeReturn
count_tiles (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  GstBuffer *tile = GST_PAD_PROBE_INFO_BUFFER (info);
  Count *count = user_data;

  if (gst_buffer_get_parent_buffer_meta (tile))
    count->views++;
  else
    count->packed++;
  return GST_PAD_PROBE_OK;
}

static void
count_at_chunk (GstHarness *h, Count *count)
{
  GstElement *chunk = gst_bin_get_by_name (GST_BIN (h->element), "c");
  GstPad *pad = gst_element_get_static_pad (chunk, "src");

  memset (count, 0, sizeof *count);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, count_tiles, count, NULL);
  gst_object_unref (pad);
  gst_object_unref (chunk);
}

/* Elements between that keep pixels: which get views, and which packed tiles. */
GST_START_TEST (test_between)
{
  static const struct
  {
    const gchar *mid, *format;
    guint views, packed; /* of 3 frames of 6 tiles */
  } cases[] = {
      {"identity", "I420", 18, 0},
      {"queue", "RGB", 18, 0},
      {"queue ! identity ! queue", "NV12", 18, 0},
      {"tee ! queue", "I420", 18, 0},
      {"videobalance", "I420", 18, 0}, /* passthrough */
      {"videoconvert", "BGRx", 18, 0},
      {"videoconvert ! video/x-raw,format=GBR ! videoconvert ! video/x-raw,format=RGB", "RGB", 0, 18},
      {"videoflip video-direction=180 ! videoflip video-direction=180", "I420", 0, 18},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstVideoInfo info = frames_info (cases[i].format, 130, 90);
    gchar *line = g_strdup_printf (
        "vidgenchunk name=c tile-width=64 tile-height=64 overlap-x=16 overlap-y=16 ! %s ! vidgenstitch", cases[i].mid);
    GstHarness *h = frames_harness (line, gst_video_info_to_caps (&info), NULL);
    Count count;

    count_at_chunk (h, &count);
    check_frames (h, &info, 3, 13, FALSE, cases[i].mid);
    fail_unless (count.views == cases[i].views && count.packed == cases[i].packed, "%s: %u views, %u packed",
        cases[i].mid, count.views, count.packed);
    gst_harness_teardown (h);
    g_free (line);
  }
}

GST_END_TEST;

/* Effects of a pixel give the same with tiles as without, the source is not written to, and after the first copy
 * behind our back tiles are packed. */
GST_START_TEST (test_in_place)
{
  static const struct
  {
    const gchar *effect, *format;
  } cases[] = {
      {"videobalance brightness=0.1 saturation=0.3", "I420"},
      {"videobalance hue=0.4", "BGRx"},
      {"gamma gamma=1.7", "I420"},
      {"gamma gamma=0.5", "RGB"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstVideoInfo info = frames_info (cases[i].format, 130, 91);
    gchar *line = g_strdup_printf (
        "vidgenchunk name=c tile-width=64 tile-height=64 overlap-x=8 overlap-y=8 ! %s ! vidgenstitch blend=linear",
        cases[i].effect);
    GstHarness *tiled = frames_harness (line, gst_video_info_to_caps (&info), NULL);
    GstHarness *whole = frames_harness (cases[i].effect, gst_video_info_to_caps (&info), NULL);
    Count count;

    count_at_chunk (tiled, &count);
    for (guint k = 0; k < 4; k++) {
      GstBuffer *in = frames_new (&info, k, 9, FALSE), *a, *b;
      GstBuffer *copy = gst_buffer_copy_deep (in);
      /* Not the padded one: these effects add a plane's offset twice. */
      GstBuffer *tight = frames_new (&info, k, 0, FALSE);
      gchar *text;

      gst_harness_push (tiled, gst_buffer_ref (in));
      a = gst_harness_pull (tiled);
      gst_harness_push (whole, tight);
      b = gst_harness_pull (whole);
      text = frames_differ (&info, a, b);
      fail_unless (!text, "%s frame %u: %s", cases[i].effect, k, text);
      text = frames_differ (&info, in, copy);
      fail_unless (!text, "%s wrote to the source: %s", cases[i].effect, text);
      gst_buffer_unref (a);
      gst_buffer_unref (b);
      gst_buffer_unref (in);
      gst_buffer_unref (copy);
    }
    fail_unless (
        count.views == 1 && count.packed > 10, "%s: %u views, %u packed", cases[i].effect, count.views, count.packed);
    gst_harness_teardown (tiled);
    gst_harness_teardown (whole);
    g_free (line);
  }
}

GST_END_TEST;

typedef struct
{
  const GstVideoInfo *info;
  guint pad; /* > 0: the tile lies like this instead */
  GstMemory *memory;
} OneTile;

static GstPadProbeReturn
see_tile (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  GstBuffer *tile = GST_PAD_PROBE_INFO_BUFFER (info);
  OneTile *one = user_data;

  if (one->pad) {
    GstBuffer *padded = frames_new (one->info, 3, one->pad, FALSE);

    gst_buffer_copy_into (padded, tile, GST_BUFFER_COPY_META, 0, -1);
    gst_buffer_unref (tile);
    GST_PAD_PROBE_INFO_DATA (info) = tile = padded;
  }
  one->memory = gst_buffer_peek_memory (tile, 0);
  return GST_PAD_PROBE_OK;
}

/* The only tile of a frame becomes the frame, unless its memory is the source's or lies otherwise than the caps say, or
 * stitch keeps frames. */
GST_START_TEST (test_one_tile)
{
  static const struct
  {
    const gchar *line;
    guint pad;
    gboolean same;
  } cases[] = {
      {"vidgenchunk ! videoflip video-direction=180 ! videoflip video-direction=180 ! vidgenstitch name=s", 0, TRUE},
      {"vidgenchunk ! videoflip video-direction=180 ! vidgenstitch name=s", 5, FALSE},
      {"vidgenchunk ! identity ! vidgenstitch name=s", 0, FALSE},
      {"vidgenchunk ! videoflip video-direction=180 ! videoflip video-direction=180 ! vidgenstitch name=s "
       "missing-tile=previous", 0, FALSE},
  };
  static const gchar *taken[] = {"RGB", "BGRx", "I420", "NV12", "GRAY8"}; /* by videoflip */

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    for (guint f = 0; f < G_N_ELEMENTS (taken); f++) {
      GstVideoInfo info = frames_info (taken[f], 50, 36);
      GstHarness *h = frames_harness (cases[i].line, gst_video_info_to_caps (&info), NULL);
      GstPad *pad = gst_element_get_static_pad (frames_get (h, "s"), "sink");
      OneTile one = {&info, cases[i].pad, NULL};

      gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, see_tile, &one, NULL);
      gst_object_unref (pad);
      for (guint k = 0; k < 3; k++) {
        GstBuffer *in = frames_new (&info, 3, 0, FALSE), *copy, *out;
        gchar *text;

        frames_add_metas (in, 3);
        copy = gst_buffer_copy_deep (in);
        fail_unless_equals_int (gst_harness_push (h, in), GST_FLOW_OK);
        out = gst_harness_pull (h);
        text = frames_differ (&info, out, copy);
        fail_unless (!text, "%s, %s: %s", cases[i].line, taken[f], text);
        frames_assert_same_data (out, copy, cases[i].line);
        frames_assert_metas (out, 3, cases[i].line);
        fail_unless (!gst_buffer_get_meta (out, g_type_from_name ("GstVidgenTileMetaAPI")), "%s", cases[i].line);
        fail_unless ((gst_buffer_peek_memory (out, 0) == one.memory) == cases[i].same, "%s", cases[i].line);
        gst_buffer_unref (out);
        gst_buffer_unref (copy);
      }
      gst_harness_teardown (h);
    }
}

GST_END_TEST;

static gboolean
copy_tile_meta (GstBuffer *tile, GstMeta **meta, gpointer to)
{
  GstMetaTransformCopy whole = {FALSE, 0, -1};

  if ((*meta)->info->api == g_type_from_name ("GstVidgenTileMetaAPI"))
    (*meta)->info->transform_func (to, *meta, tile, _gst_meta_transform_copy, &whole);
  return TRUE;
}

typedef struct
{
  gint changed, n; /* which tile becomes another one, -1 = none; tiles so far */
} Change;

static GstPadProbeReturn
change_tile (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Change *change = user_data;
  GstBuffer *tile = GST_PAD_PROBE_INFO_BUFFER (info), *own;
  GstVideoFrame to, from;
  GstVideoInfo video;
  GstCaps *caps;

  if (change->n++ != change->changed)
    return GST_PAD_PROBE_OK;
  caps = gst_pad_get_current_caps (pad);
  fail_unless (gst_video_info_from_caps (&video, caps));
  gst_caps_unref (caps);
  own = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&video), NULL);
  fail_unless (gst_video_frame_map (&to, &video, own, GST_MAP_WRITE));
  fail_unless (gst_video_frame_map (&from, &video, tile, GST_MAP_READ));
  fail_unless (gst_video_frame_copy (&to, &from));
  for (gint x = 0; x < video.width; x++)
    ((guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&to, 0))[10 * GST_VIDEO_FRAME_PLANE_STRIDE (&to, 0) + x] ^= 0x5a;
  gst_video_frame_unmap (&from);
  gst_video_frame_unmap (&to);
  /* The tile's place, not where its pixels were. */
  gst_buffer_foreach_meta (tile, copy_tile_meta, own);
  gst_buffer_unref (tile);
  GST_PAD_PROBE_INFO_DATA (info) = own;
  return GST_PAD_PROBE_OK;
}

/* A frame of which all tiles come back as they went is its source, which is writable again; with one other tile, first or
 * last, it is put together as it is where stitch always does that. */
GST_START_TEST (test_untouched)
{
  static const gchar *taken[] = {"RGB", "I420", "NV12", "YUY2"};
  static const gint changed[] = {-1, 0, 5};
  static const gchar *lines[] = {
      "vidgenchunk tile-width=64 tile-height=64 overlap-x=8 overlap-y=8 ! identity ! vidgenstitch name=s blend=linear",
      "vidgenchunk tile-width=64 tile-height=64 overlap-x=8 overlap-y=8 ! identity ! vidgenstitch name=s blend=linear "
      "missing-tile=previous"};

  for (guint f = 0; f < G_N_ELEMENTS (taken); f++)
    for (guint c = 0; c < G_N_ELEMENTS (changed); c++)
      for (guint padded = 0; padded < 2; padded++) {
        GstVideoInfo info = frames_info (taken[f], 130, 92);
        GstBuffer *out[2], *in[2];
        gchar *text;

        for (guint k = 0; k < 2; k++) {
          GstHarness *h = frames_harness (lines[k], gst_video_info_to_caps (&info), NULL);
          GstPad *pad = gst_element_get_static_pad (frames_get (h, "s"), "sink");
          Change change = {changed[c], 0};

          gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, change_tile, &change, NULL);
          gst_object_unref (pad);
          in[k] = frames_new (&info, 7, padded ? 9 : 0, FALSE);
          fail_unless_equals_int (gst_harness_push (h, in[k]), GST_FLOW_OK);
          out[k] = gst_harness_pull (h);
          fail_unless (out[k] && change.n == 6, "%d tiles", change.n);
          gst_harness_teardown (h);
        }
        text = frames_differ (&info, out[0], out[1]);
        fail_unless (!text, "%s, tile %d: %s", taken[f], changed[c], text);
        fail_unless ((out[0] == in[0]) == (changed[c] < 0 && !padded), "%s, tile %d", taken[f], changed[c]);
        fail_unless (out[1] != in[1]);
        fail_unless (gst_buffer_is_writable (out[0]) && gst_buffer_is_all_memory_writable (out[0]), "%s", taken[f]);
        gst_buffer_unref (out[0]);
        gst_buffer_unref (out[1]);
      }
}

GST_END_TEST;

/* Each tile mirrored in its place: the picture is computed here, pixel by pixel, from the geometry alone. */
GST_START_TEST (test_mirrored_tiles)
{
  static const gint cases[][4] = {{130, 60, 64, 8}, {97, 33, 31, 5}, {50, 20, 0, -1}, {301, 12, 40, 12}};

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gint w = cases[i][0], hh = cases[i][1];
    struct vg_axis_request r = {.frame = w,
        .tile = cases[i][2],
        .overlap = cases[i][3],
        .size_multiple = 1,
        .origin_multiple = 1,
        .chroma = 1,
        .num = 1,
        .den = 1};
    struct vg_axis axis;
    GstVideoInfo info = frames_info ("RGB", w, hh);
    gchar *line = g_strdup_printf (
        "vidgenchunk tile-width=%d overlap-x=%d ! videoflip video-direction=horiz ! vidgenstitch", cases[i][2],
        cases[i][3]);
    GstHarness *h = frames_harness (line, gst_video_info_to_caps (&info), NULL);
    GstBuffer *in = frames_new (&info, 1, 0, FALSE), *out;
    GstVideoFrame a, b;

    fail_unless_equals_int (vg_axis_make (&r, &axis, NULL), VGK_OK);
    gst_harness_push (h, gst_buffer_ref (in));
    out = gst_harness_pull (h);
    gst_video_frame_map (&a, &info, in, GST_MAP_READ);
    gst_video_frame_map (&b, &info, out, GST_MAP_READ);
    for (gint y = 0; y < hh; y++)
      for (gint x = 0; x < w; x++) {
        gint o = axis.origin[vg_axis_owner (&axis, x)];
        gint from = o + axis.tile - 1 - (x - o);
        const guint8 *want = (guint8 *) a.data[0] + y * a.info.stride[0] + from * 3;
        const guint8 *got = (guint8 *) b.data[0] + y * b.info.stride[0] + x * 3;

        fail_unless (!memcmp (want, got, 3), "%s: (%d, %d): %d, not %d", line, x, y, *got, *want);
      }
    gst_video_frame_unmap (&a);
    gst_video_frame_unmap (&b);
    gst_buffer_unref (in);
    gst_buffer_unref (out);
    gst_harness_teardown (h);
    g_free (line);
  }
}

GST_END_TEST;

/* Memory that may not be shared is copied, and a frame that its producer still holds for writing too. */
GST_START_TEST (test_unshareable)
{
  for (gint held = 0; held < 2; held++) {
    GstVideoInfo info = frames_info ("I420", 100, 80);
    GstHarness *h = frames_harness (
        "vidgenchunk name=c tile-width=50 tile-height=40 ! vidgenstitch", gst_video_info_to_caps (&info), NULL);
    GstBuffer *in = frames_new (&info, 4, 0, FALSE), *copy, *out;
    GstMapInfo map;
    Count count;

    copy = gst_buffer_copy_deep (in);
    count_at_chunk (h, &count);
    if (held)
      gst_memory_map (gst_buffer_peek_memory (in, 0), &map, GST_MAP_READWRITE);
    else
      GST_MINI_OBJECT_FLAG_SET (gst_buffer_peek_memory (in, 0), GST_MEMORY_FLAG_NO_SHARE);
    fail_unless_equals_int (gst_harness_push (h, gst_buffer_ref (in)), GST_FLOW_OK);
    out = gst_harness_pull (h);
    fail_unless (!frames_differ (&info, out, copy));
    fail_unless (count.views == 0 && count.packed == 4, "%u views", count.views);
    gst_buffer_unref (out);
    if (held)
      gst_memory_unmap (gst_buffer_peek_memory (in, 0), &map);
    gst_buffer_unref (in);
    gst_buffer_unref (copy);
    gst_harness_teardown (h);
  }
}

GST_END_TEST;

/* A producer whose meta maps the planes itself: what it shows is not what lies in the buffer's memory. */
static guint8 shown[100 * 80];

static gboolean
map_shown (GstVideoMeta *meta, guint plane, GstMapInfo *info, gpointer *data, gint *stride, GstMapFlags flags)
{
  *data = shown;
  *stride = 100;
  return TRUE;
}

static gboolean
unmap_shown (GstVideoMeta *meta, guint plane, GstMapInfo *info)
{
  return TRUE;
}

GST_START_TEST (test_own_map)
{
  GstVideoInfo info = frames_info ("GRAY8", 100, 80);
  GstHarness *h = frames_harness (
      "vidgenchunk name=c tile-width=50 tile-height=40 ! vidgenstitch", gst_video_info_to_caps (&info), NULL);
  GstBuffer *in = frames_new (&info, 4, 8, FALSE), *out;
  GstVideoMeta *meta = gst_buffer_get_video_meta (in);
  GstMapInfo map;
  Count count;

  for (guint i = 0; i < sizeof shown; i++)
    shown[i] = i * 37 + i / 100;
  meta->map = map_shown;
  meta->unmap = unmap_shown;
  count_at_chunk (h, &count);
  fail_unless_equals_int (gst_harness_push (h, in), GST_FLOW_OK);
  out = gst_harness_pull (h);
  gst_buffer_map (out, &map, GST_MAP_READ);
  fail_unless (map.size == sizeof shown && !memcmp (map.data, shown, map.size));
  gst_buffer_unmap (out, &map);
  fail_unless (count.views == 0 && count.packed == 4);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}

GST_END_TEST;

static Suite *
identity_suite (void)
{
  Suite *s = suite_create ("identity");
  TCase *tc = tcase_create ("general");

  frames_init ();
  tcase_set_timeout (tc, 120);
  suite_add_tcase (s, tc);
  tcase_add_test (tc, test_random);
  tcase_add_test (tc, test_extremes);
  tcase_add_test (tc, test_between);
  tcase_add_test (tc, test_in_place);
  tcase_add_test (tc, test_one_tile);
  tcase_add_test (tc, test_untouched);
  tcase_add_test (tc, test_mirrored_tiles);
  tcase_add_test (tc, test_unshareable);
  tcase_add_test (tc, test_own_map);
  return s;
}

GST_CHECK_MAIN (identity);
