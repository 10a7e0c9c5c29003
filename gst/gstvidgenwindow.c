/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenwindow.h"

#include "../model/fade.h"
#include "gstvidgenview.h"

typedef struct
{
  gint64 before; /* the frame that it must be ahead of */
  GstEvent *event;
} Held;

void
gst_vidgen_window_init (GstVidgenWindow *self, GstBaseTransform *trans)
{
  self->trans = trans;
  g_queue_init (&self->events);
  self->ready = gst_queue_array_new (16);
}

void
gst_vidgen_window_close (GstVidgenWindow *self)
{
  gst_vidgen_window_drop (self);
  g_clear_pointer (&self->kept, g_free);
  g_clear_pointer (&self->results, g_free);
  g_clear_pointer (&self->fading, g_free);
  g_clear_pointer (&self->in, g_free);
  g_clear_pointer (&self->out, g_free);
  g_clear_pointer (&self->numbers, g_free);
  gst_vidgen_between_clear (&self->between);
  self->n_tiles = 0;
}

void
gst_vidgen_window_clear (GstVidgenWindow *self)
{
  gst_vidgen_window_close (self);
  g_clear_pointer (&self->ready, gst_queue_array_free);
}

static gint
overlap (const GstVidgenWindow *self)
{
  return self->between.n ? 0 : self->info.emit - self->info.hop;
}

void
gst_vidgen_window_open (GstVidgenWindow *self, const struct vg_plan_info *info, gint n_tiles)
{
  if (self->n_tiles == n_tiles && self->info.window == info->window && self->info.emit == info->emit &&
      self->info.hop == info->hop && self->info.centre == info->centre)
    return;
  gst_vidgen_window_close (self);
  if (info->window == 1 && info->centre == 0 && !info->flight_bytes)
    return;
  self->info = *info;
  self->n_tiles = n_tiles;
  if (info->centre < 0)
    gst_vidgen_between_open (&self->between, info->emit, self->in_info);
  self->kept = g_new0 (GstBuffer *, info->window * n_tiles);
  self->results = g_new0 (GstBuffer *, info->emit * n_tiles);
  self->fading = g_new0 (GstBuffer *, overlap (self) * n_tiles + 1);
  self->in = g_new0 (GstBuffer *, info->window);
  self->out = g_new0 (GstBuffer *, info->emit);
  self->numbers = g_new0 (guint64, info->window);
}

guint
gst_vidgen_window_buffers (const GstVidgenWindow *self)
{
  if (!self->n_tiles)
    return 0;
  return self->n_tiles * (self->between.n ? self->between.n : self->info.emit - 1 + overlap (self)) + self->info.emit;
}

GstClockTime
gst_vidgen_window_wait (const GstVidgenWindow *self, GstClockTime frame)
{
  if (!self->n_tiles)
    return 0;
  if (self->between.n)
    return frame * self->between.n / (self->between.n + 1);
  return frame * (self->info.window - 1 - self->info.centre);
}

/* ---- what leaves ---- */

static void
put_events (GstVidgenWindow *self, gint64 frame)
{
  Held *held;

  while ((held = g_queue_peek_head (&self->events)) && held->before <= frame) {
    gst_queue_array_push_tail (self->ready, held->event);
    g_free (g_queue_pop_head (&self->events));
  }
}

/* Takes the buffer, a tile of this frame. */
static void
put (GstVidgenWindow *self, gint64 frame, GstBuffer *buffer)
{
  put_events (self, frame);
  gst_queue_array_push_tail (self->ready, buffer);
}

GstBuffer *
gst_vidgen_window_pop (GstVidgenWindow *self)
{
  GstMiniObject *object;

  while ((object = gst_queue_array_peek_head (self->ready)) && GST_IS_EVENT (object))
    gst_pad_push_event (GST_BASE_TRANSFORM_SRC_PAD (self->trans), gst_queue_array_pop_head (self->ready));
  return object && object != (GstMiniObject *) self->flying ? gst_queue_array_pop_head (self->ready) : NULL;
}

gboolean
gst_vidgen_window_hold (GstVidgenWindow *self, GstEvent *event)
{
  Held *held;

  /* Behind an interpolator's last frame, new ones may come yet. */
  if (!self->n_tiles || self->n_frames == 0 ||
      (!self->between.n && self->n_runs * self->info.hop >= self->n_frames))
    return FALSE;
  held = g_new (Held, 1);
  held->before = self->n_frames;
  held->event = event;
  g_queue_push_tail (&self->events, held);
  return TRUE;
}

GstFlowReturn
gst_vidgen_window_push (GstVidgenWindow *self)
{
  GstFlowReturn ret = GST_FLOW_OK;
  GstBuffer *buffer;

  while (ret == GST_FLOW_OK && (buffer = gst_vidgen_window_pop (self)))
    ret = gst_pad_push (GST_BASE_TRANSFORM_SRC_PAD (self->trans), buffer);
  return ret;
}

/* ---- windows ---- */

static GstBuffer **
row_of (GstVidgenWindow *self, gint64 frame)
{
  return self->kept + frame % self->info.window * self->n_tiles;
}

static void
release (GstVidgenWindow *self, gint64 before)
{
  for (; self->released < before; self->released++)
    for (gint t = 0; t < self->n_tiles; t++)
      gst_clear_buffer (&row_of (self, self->released)[t]);
}

static GstFlowReturn
make_output (GstVidgenWindow *self, GstBuffer *like, GstBuffer **out)
{
  return GST_BASE_TRANSFORM_GET_CLASS (self->trans)->prepare_output_buffer (self->trans, like, out);
}

static GstFlowReturn
cannot_map (GstVidgenWindow *self)
{
  GST_ELEMENT_ERROR (self->trans, RESOURCE, READ, ("A frame cannot be copied."), (NULL));
  return GST_FLOW_ERROR;
}

/* The earlier window's result fades into this one's. */
static GstFlowReturn
fade (GstVidgenWindow *self, gint i, gint t)
{
  GstBuffer *earlier = self->fading[i * self->n_tiles + t], *later = self->out[i];
  const GstVideoInfo *info = self->out_info;
  GstVideoFrame a, b;
  gboolean ok;

  if (!earlier)
    return GST_FLOW_OK;
  if (!gst_video_frame_map (&a, info, earlier, GST_MAP_READ | GST_VIDEO_FRAME_MAP_FLAG_NO_REF))
    return cannot_map (self);
  ok = gst_video_frame_map (&b, info, later, GST_MAP_READWRITE | GST_VIDEO_FRAME_MAP_FLAG_NO_REF);
  if (ok) {
    const struct vg_layout layout = gst_vidgen_layout (info->finfo);
    struct vg_picture from = gst_vidgen_picture (&a), to = gst_vidgen_picture (&b);

    vg_fade (&layout, &to, &from, info->width, info->height, i, overlap (self));
    gst_video_frame_unmap (&b);
  }
  gst_video_frame_unmap (&a);
  gst_clear_buffer (&self->fading[i * self->n_tiles + t]);
  return ok ? GST_FLOW_OK : cannot_map (self);
}

/* The first frame of the window that is next. */
static gint64
first_frame (const GstVidgenWindow *self)
{
  return self->n_runs * self->info.hop - self->info.centre;
}

/* What was made of tile t: the first frame's leaves now, the others wait for the rest of their frames.  When that went
 * wrong nothing is kept.  Returns ret. */
static GstFlowReturn
keep_results (GstVidgenWindow *self, gint64 frame, gint t, GstFlowReturn ret)
{
  if (ret == GST_FLOW_OK)
    put (self, frame, g_steal_pointer (&self->out[0]));
  for (gint k = 0; k < self->info.emit; k++) {
    if (ret == GST_FLOW_OK)
      self->results[k * self->n_tiles + t] = g_steal_pointer (&self->out[k]);
    else
      gst_clear_buffer (&self->out[k]);
  }
  return ret;
}

/* A frame's tile t as number i of the run that is next; FALSE: it has not come. */
static gboolean
take_in (GstVidgenWindow *self, gint i, gint64 frame, gint t)
{
  self->in[i] = row_of (self, frame)[t];
  self->numbers[i] = self->before + frame + 1;
  return self->in[i] != NULL;
}

static GstFlowReturn
run_tile (GstVidgenWindow *self, gint t)
{
  const struct vg_plan_info *info = &self->info;
  gint64 first = first_frame (self), last = self->n_frames - 1;
  GstFlowReturn ret = GST_FLOW_OK;

  for (gint i = 0; i < info->window; i++)
    if (!take_in (self, i, CLAMP (first + i, 0, last), t))
      return GST_FLOW_OK; /* something before dropped it: vidgenstitch deals with that */
  for (gint k = 0; k < info->emit && ret == GST_FLOW_OK; k++)
    ret = make_output (self, self->in[info->centre + k], &self->out[k]);
  if (ret == GST_FLOW_OK)
    ret = self->run (self->user, self->in, self->numbers, self->out);
  for (gint i = 0; i < overlap (self) && ret == GST_FLOW_OK; i++)
    ret = fade (self, i, t);
  return keep_results (self, first + info->centre, t, ret);
}

/* All tiles of a window have been run: the frames that no later window has a part in leave. */
static void
end_run (GstVidgenWindow *self)
{
  const gint n = self->n_tiles, hop = self->info.hop;
  gint64 frame = first_frame (self) + self->info.centre;
  gint leaving = MIN (hop, self->n_frames - frame);

  for (gint k = 1; k < leaving; k++)
    for (gint t = 0; t < n; t++)
      if (self->results[k * n + t])
        put (self, frame + k, g_steal_pointer (&self->results[k * n + t]));
  for (gint k = 1; k < hop; k++)
    for (gint t = 0; t < n; t++)
      gst_clear_buffer (&self->results[k * n + t]);
  for (gint i = 0; i < overlap (self) * n; i++) {
    gst_clear_buffer (&self->fading[i]); /* of a tile that did not come this time */
    self->fading[i] = g_steal_pointer (&self->results[hop * n + i]);
  }
  self->n_runs++;
  release (self, MAX (first_frame (self), 0));
  self->done (self->user, leaving);
}

/* ---- interpolators ---- */

/* The i-th frame from the one before the last, or, when there is no next one, from the last; its tile t. */
static GstFlowReturn
make_between (GstVidgenWindow *self, gint i, GstBuffer *from, GstBuffer *to, GstBuffer **out)
{
  GstFlowReturn ret = make_output (self, from, out);

  if (ret == GST_FLOW_OK && !gst_vidgen_between_stamp (&self->between, i, from, to, *out))
    ret = cannot_map (self);
  return ret;
}

static GstFlowReturn
copy_between (GstVidgenWindow *self, gint i, GstBuffer *from, GstBuffer *to, GstBuffer **out)
{
  GstFlowReturn ret = make_between (self, i, from, to, out);

  if (ret == GST_FLOW_OK && !gst_vidgen_between_copy (&self->between, i, from, to, *out))
    ret = cannot_map (self);
  return ret;
}

/* A frame of the source, at its own time. */
static GstFlowReturn
put_source (GstVidgenWindow *self, gint64 frame, gint t)
{
  GstBuffer *tile = row_of (self, frame)[t], *out = NULL;
  GstFlowReturn ret = tile ? copy_between (self, 0, tile, NULL, &out) : GST_FLOW_OK;

  if (ret == GST_FLOW_OK && out)
    put (self, frame, out);
  else
    gst_clear_buffer (&out);
  return ret;
}

/* The new frames between the last two, or behind the last one. */
static GstFlowReturn
interpolate_tile (GstVidgenWindow *self, gint64 frame, gint t, gboolean repeat)
{
  GstFlowReturn ret = GST_FLOW_OK;
  GstBuffer *from, *to;

  if (!take_in (self, 0, frame, t) || (!repeat && !take_in (self, 1, frame + 1, t)))
    return GST_FLOW_OK;
  from = self->in[0];
  to = repeat ? NULL : self->in[1];
  for (gint k = 0; k < self->info.emit && ret == GST_FLOW_OK; k++)
    if (repeat || self->between.cut)
      ret = copy_between (self, k + 1, from, to, &self->out[k]);
    else
      ret = make_between (self, k + 1, from, to, &self->out[k]);
  if (ret == GST_FLOW_OK && !repeat && !self->between.cut)
    ret = self->run (self->user, self->in, self->numbers, self->out);
  return keep_results (self, frame, t, ret);
}

static void
put_interpolated (GstVidgenWindow *self, gint64 frame)
{
  for (gint i = self->n_tiles; i < self->info.emit * self->n_tiles; i++)
    if (self->results[i])
      put (self, frame, g_steal_pointer (&self->results[i]));
}

/* ---- frames ---- */

static gboolean
is_full (const GstVidgenWindow *self)
{
  return self->n_frames - 1 == first_frame (self) + self->info.window - 1;
}

/* All tiles of the last frame that will come have come. */
static GstFlowReturn
end_frame (GstVidgenWindow *self)
{
  gint64 last = self->n_frames - 1;
  GstFlowReturn ret = GST_FLOW_OK;

  self->n_come = self->n_tiles;
  if (!self->between.n) {
    if (is_full (self))
      end_run (self);
    return GST_FLOW_OK;
  }
  if (last > 0) {
    put_interpolated (self, last - 1);
    release (self, last);
    for (gint t = 0; t < self->n_tiles && ret == GST_FLOW_OK; t++)
      ret = put_source (self, last, t);
  }
  self->done (self->user, last > 0 ? self->between.n + 1 : 1);
  return ret;
}

GstFlowReturn
gst_vidgen_window_begin_frame (GstVidgenWindow *self, gboolean cut)
{
  GstFlowReturn ret = GST_FLOW_OK;

  if (self->n_frames > 0 && self->n_come < self->n_tiles)
    ret = end_frame (self);
  release (self, self->n_frames + 1 - self->info.window);
  gst_vidgen_between_forget (&self->between);
  self->between.cut = cut;
  self->n_frames++;
  self->n_come = 0;
  return ret;
}

GstFlowReturn
gst_vidgen_window_take (GstVidgenWindow *self, GstBuffer *tile, gint index)
{
  gint64 last = self->n_frames - 1;
  GstBuffer **place = &row_of (self, last)[index];
  GstFlowReturn ret = GST_FLOW_OK;

  if (*place || self->n_come == self->n_tiles) { /* came twice */
    gst_buffer_unref (tile);
    return GST_FLOW_OK;
  }
  *place = tile;
  self->n_come++;
  if (self->between.n)
    ret = last > 0 ? interpolate_tile (self, last - 1, index, FALSE) : put_source (self, 0, index);
  else if (is_full (self))
    ret = run_tile (self, index);
  if (ret == GST_FLOW_OK && self->n_come == self->n_tiles)
    ret = end_frame (self);
  return ret;
}

/* ---- the end of a sequence ---- */

static GstFlowReturn
end_windows (GstVidgenWindow *self)
{
  GstFlowReturn ret = GST_FLOW_OK;
  gint64 frame = first_frame (self) + self->info.centre;

  while (ret == GST_FLOW_OK && frame + (self->n_runs ? overlap (self) : 0) < self->n_frames) {
    for (gint t = 0; t < self->n_tiles && ret == GST_FLOW_OK; t++) {
      ret = run_tile (self, t);
      if (ret == GST_FLOW_OK)
        ret = gst_vidgen_window_push (self);
    }
    if (ret == GST_FLOW_OK)
      end_run (self);
    frame = first_frame (self) + self->info.centre;
  }
  /* What was to fade into the next window. */
  if (ret == GST_FLOW_OK && frame < self->n_frames) {
    for (gint i = 0; frame + i < self->n_frames; i++)
      for (gint t = 0; t < self->n_tiles; t++)
        if (self->fading[i * self->n_tiles + t])
          put (self, frame + i, g_steal_pointer (&self->fading[i * self->n_tiles + t]));
    self->done (self->user, self->n_frames - frame);
  }
  return ret;
}

static GstFlowReturn
end_interpolation (GstVidgenWindow *self)
{
  gint64 last = self->n_frames - 1;
  GstFlowReturn ret = GST_FLOW_OK;

  gst_vidgen_between_forget (&self->between);
  for (gint t = 0; t < self->n_tiles && ret == GST_FLOW_OK; t++)
    ret = interpolate_tile (self, last, t, TRUE);
  if (ret == GST_FLOW_OK) {
    put_interpolated (self, last);
    self->done (self->user, self->between.n);
  }
  return ret;
}

GstFlowReturn
gst_vidgen_window_drain (GstVidgenWindow *self)
{
  GstFlowReturn ret = GST_FLOW_OK;

  if (self->n_frames == 0)
    return GST_FLOW_OK;
  if (self->n_come < self->n_tiles)
    ret = end_frame (self);
  if (ret == GST_FLOW_OK)
    ret = self->between.n ? end_interpolation (self) : end_windows (self);
  put_events (self, self->n_frames);
  if (ret == GST_FLOW_OK && self->land)
    ret = self->land (self->user);
  if (ret == GST_FLOW_OK)
    ret = gst_vidgen_window_push (self);
  gst_vidgen_window_drop (self);
  return ret;
}

/* An event that is sticky must not be lost. */
static void
drop_event (GstVidgenWindow *self, GstEvent *event)
{
  if (GST_EVENT_IS_STICKY (event))
    gst_pad_store_sticky_event (GST_BASE_TRANSFORM_SRC_PAD (self->trans), event);
  gst_event_unref (event);
}

void
gst_vidgen_window_drop (GstVidgenWindow *self)
{
  GstMiniObject *object;

  put_events (self, G_MAXINT64);
  while ((object = gst_queue_array_pop_head (self->ready))) {
    if (GST_IS_EVENT (object))
      drop_event (self, GST_EVENT (object));
    else
      gst_mini_object_unref (object);
  }
  for (gint i = 0; i < self->info.window * self->n_tiles; i++)
    gst_clear_buffer (&self->kept[i]);
  for (gint i = 0; i < self->info.emit * self->n_tiles; i++)
    gst_clear_buffer (&self->results[i]);
  for (gint i = 0; self->n_tiles && i < overlap (self) * self->n_tiles; i++)
    gst_clear_buffer (&self->fading[i]);
  gst_vidgen_between_forget (&self->between);
  self->before += self->n_frames;
  self->n_frames = self->n_runs = self->released = 0;
  self->n_come = 0;
}
