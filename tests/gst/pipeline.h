/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a launch line to its end and keeps what came out: for tests of elements as a user meets them.
 *
 *     Play *play = play_run ("videotestsrc num-buffers=3 ! vidgen ! " SINK);
 *     fail_unless (play->eos && play->frames->len == 3);
 *     play_free (play);
 *
 * Frames are bytes without padding, plane by plane.  An error of another element (a source says so when what follows
 * failed) is not counted. */
#ifndef TESTS_GST_PIPELINE_H
#define TESTS_GST_PIPELINE_H

#include <gst/check/gstcheck.h>
#include <gst/video/video.h>

#define SINK "fakesink name=out signal-handoffs=true sync=false"
#define PLAY_SECONDS 60

typedef struct
{
  GstElement *pipeline;
  GPtrArray *frames; /* GByteArray, under the lock */
  GPtrArray *caps;   /* GstCaps of each frame */
  GMutex lock;
  gboolean eos, timed_out;
  guint errors, warnings, plans;
  GError *error;      /* the first of vidgen's */
  gchar *elsewhere;   /* the text of another element's, the last one */
  gchar *warning;     /* the last one's text */
  guint64 plan_bytes; /* of the last plan */
  guint plan_tiles;
  gboolean plan_direct;
} Play;

static inline GByteArray *
play_copy_frame (const GstCaps *caps, GstBuffer *buffer)
{
  GByteArray *bytes = g_byte_array_new ();
  GstVideoInfo info;
  GstVideoFrame frame;

  fail_unless (gst_video_info_from_caps (&info, caps));
  fail_unless (gst_video_frame_map (&frame, &info, buffer, GST_MAP_READ));
  for (guint p = 0; p < GST_VIDEO_FRAME_N_PLANES (&frame); p++) {
    gint comp[GST_VIDEO_MAX_COMPONENTS];
    guint row;

    gst_video_format_info_component (frame.info.finfo, p, comp);
    row = GST_VIDEO_FRAME_COMP_WIDTH (&frame, comp[0]) * GST_VIDEO_FRAME_COMP_PSTRIDE (&frame, comp[0]);
    for (gint y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT (&frame, comp[0]); y++)
      g_byte_array_append (
          bytes, (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&frame, p) + y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, p), row);
  }
  gst_video_frame_unmap (&frame);
  return bytes;
}

static inline void
play_on_frame (GstElement *sink, GstBuffer *buffer, GstPad *pad, Play *play)
{
  GstCaps *caps = gst_pad_get_current_caps (pad);
  GByteArray *bytes = play_copy_frame (caps, buffer);

  g_mutex_lock (&play->lock);
  g_ptr_array_add (play->frames, bytes);
  g_ptr_array_add (play->caps, caps);
  g_mutex_unlock (&play->lock);
}

static inline guint
play_count (Play *play)
{
  guint n;

  g_mutex_lock (&play->lock);
  n = play->frames->len;
  g_mutex_unlock (&play->lock);
  return n;
}

static inline gboolean
play_is_ours (GstMessage *message)
{
  return g_str_has_prefix (G_OBJECT_TYPE_NAME (GST_MESSAGE_SRC (message)), "GstVidgen");
}

static inline void
play_take_message (Play *play, GstMessage *message)
{
  const gchar *plan, *tiles;
  GError *error = NULL;

  switch (GST_MESSAGE_TYPE (message)) {
    case GST_MESSAGE_EOS:
      play->eos = TRUE;
      break;
    case GST_MESSAGE_ERROR:
      gst_message_parse_error (message, &error, NULL);
      GST_INFO ("%s: %s", GST_MESSAGE_SRC_NAME (message), error->message);
      if (play_is_ours (message)) {
        play->errors++;
        if (!play->error)
          play->error = g_error_copy (error);
      } else {
        g_free (play->elsewhere);
        play->elsewhere = g_strdup_printf ("%s: %s", GST_MESSAGE_SRC_NAME (message), error->message);
      }
      break;
    case GST_MESSAGE_WARNING:
      gst_message_parse_warning (message, &error, NULL);
      if (play_is_ours (message)) {
        play->warnings++;
        g_free (play->warning);
        play->warning = g_strdup (error->message);
      }
      break;
    case GST_MESSAGE_ELEMENT:
      if (gst_message_has_name (message, "vidgen-plan")) {
        play->plans++;
        gst_structure_get_uint64 (gst_message_get_structure (message), "bytes", &play->plan_bytes);
        plan = gst_structure_get_string (gst_message_get_structure (message), "plan");
        tiles = strstr (plan, "\"tiles\": ");
        play->plan_tiles = tiles ? strtoul (tiles + strlen ("\"tiles\": "), NULL, 10) : 0;
        play->plan_direct = strstr (plan, "\"direct-products\": true") != NULL;
      }
      break;
    default:
      break;
  }
  g_clear_error (&error);
}

/* Takes messages until one of types, and returns its type; 0 after PLAY_SECONDS. */
static inline GstMessageType
play_wait (Play *play, GstMessageType types)
{
  GstBus *bus = gst_element_get_bus (play->pipeline);
  GstMessageType type = 0;

  while (!type) {
    GstMessage *message = gst_bus_timed_pop (bus, PLAY_SECONDS * GST_SECOND);

    if (!message) {
      play->timed_out = TRUE;
      break;
    }
    play_take_message (play, message);
    if (GST_MESSAGE_TYPE (message) & types)
      type = GST_MESSAGE_TYPE (message);
    gst_message_unref (message);
  }
  gst_object_unref (bus);
  return type;
}

static inline Play *
play_new (const gchar *line)
{
  Play *play = g_new0 (Play, 1);
  GError *error = NULL;
  GstElement *sink;

  g_mutex_init (&play->lock);
  play->frames = g_ptr_array_new_with_free_func ((GDestroyNotify) g_byte_array_unref);
  play->caps = g_ptr_array_new_with_free_func ((GDestroyNotify) gst_caps_unref);
  play->pipeline = gst_parse_launch (line, &error);
  fail_unless (play->pipeline && !error, "%s: %s", line, error ? error->message : "?");
  sink = gst_bin_get_by_name (GST_BIN (play->pipeline), "out");
  if (sink) {
    g_signal_connect (sink, "handoff", G_CALLBACK (play_on_frame), play);
    gst_object_unref (sink);
  }
  return play;
}

/* Stops, and takes the messages that are left. */
static inline void
play_stop (Play *play)
{
  GstBus *bus = gst_element_get_bus (play->pipeline);
  GstMessage *message;

  while ((message = gst_bus_pop (bus))) {
    play_take_message (play, message);
    gst_message_unref (message);
  }
  gst_object_unref (bus);
  fail_unless_equals_int (gst_element_set_state (play->pipeline, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
}

G_GNUC_PRINTF (1, 2)
static inline Play *
play_run (const gchar *format, ...)
{
  va_list args;
  gchar *line;
  Play *play;

  va_start (args, format);
  line = g_strdup_vprintf (format, args);
  va_end (args);
  play = play_new (line);
  GST_INFO ("%s", line);
  gst_element_set_state (play->pipeline, GST_STATE_PLAYING);
  play_wait (play, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  play_stop (play);
  fail_if (play->timed_out, "no end after %d s: %s", PLAY_SECONDS, line);
  g_free (line);
  return play;
}

/* The end came as it should, with so many frames. */
#define play_ok(play, n) \
  G_STMT_START \
  { \
    fail_unless ((play)->errors == 0, "%s", (play)->error ? (play)->error->message : ""); \
    fail_unless ((play)->eos, "%s", (play)->elsewhere ? (play)->elsewhere : "no end"); \
    fail_unless_equals_int ((play)->frames->len, (n)); \
  } \
  G_STMT_END

static inline GByteArray *
play_frame (Play *play, guint i)
{
  fail_unless (i < play->frames->len);
  return g_ptr_array_index (play->frames, i);
}

static inline void
play_size (Play *play, guint i, gint *width, gint *height)
{
  fail_unless (gst_structure_get (gst_caps_get_structure (g_ptr_array_index (play->caps, i), 0), "width", G_TYPE_INT,
      width, "height", G_TYPE_INT, height, NULL));
}

/* How many bytes differ; -1: not of the same size. */
static inline gint
play_differ (const GByteArray *a, const GByteArray *b)
{
  gint n = 0;

  if (a->len != b->len)
    return -1;
  for (guint i = 0; i < a->len; i++)
    n += a->data[i] != b->data[i];
  return n;
}

static inline gdouble
play_mean_difference (const GByteArray *a, const GByteArray *b)
{
  gdouble sum = 0;

  fail_unless_equals_int (a->len, b->len);
  for (guint i = 0; i < a->len; i++)
    sum += ABS (a->data[i] - b->data[i]);
  return sum / a->len;
}

static inline void
play_free (Play *play)
{
  /* A thread of the pipeline may just be letting go of it. */
  for (guint i = 0; i < 1000 && GST_OBJECT_REFCOUNT_VALUE (play->pipeline) > 1; i++)
    g_usleep (1000);
  ASSERT_OBJECT_REFCOUNT (play->pipeline, "pipeline", 1);
  gst_object_unref (play->pipeline);
  g_ptr_array_unref (play->frames);
  g_ptr_array_unref (play->caps);
  g_mutex_clear (&play->lock);
  g_clear_error (&play->error);
  g_free (play->warning);
  g_free (play->elsewhere);
  g_free (play);
}

#endif
