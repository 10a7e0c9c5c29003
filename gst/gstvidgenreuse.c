/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenreuse.h"

#include "gstvidgencuda.h"
#include "gstvidgenframe.h"
#include "gstvidgenview.h"

typedef struct vidgen_reuse_place Place;

/* ---- places ---- */

static void
clear_buffers (GstBuffer **buffers, gint n)
{
  for (gint i = 0; i < n; i++)
    gst_clear_buffer (&buffers[i]);
  g_free (buffers);
}

void
gst_vidgen_reuse_forget (GstVidgenReuse *self)
{
  for (gint t = 0; t < self->n_tiles; t++) {
    clear_buffers (self->places[t].in, self->window);
    clear_buffers (self->places[t].result, self->emit);
  }
  g_clear_pointer (&self->places, g_free);
  self->n_tiles = 0;
}

/* A buffer's place, with room for this engine's windows: what was there for other ones goes. */
static Place *
place_of (GstVidgenReuse *self, const GstVidgenEngine *engine, GstBuffer *buffer)
{
  const struct vg_plan_info *info = gst_vidgen_engine_info (engine);
  const GstVidgenTileMeta *tile = gst_buffer_get_vidgen_tile_meta (buffer);
  gint n_tiles = tile ? tile->grid->grid.x.n * tile->grid->grid.y.n : 1;

  if (self->n_tiles != n_tiles || self->window != info->window || self->emit != info->emit) {
    gst_vidgen_reuse_forget (self);
    self->n_tiles = n_tiles;
    self->window = info->window;
    self->emit = info->emit;
    self->places = g_new0 (Place, n_tiles);
    for (gint t = 0; t < n_tiles; t++) {
      self->places[t].in = g_new0 (GstBuffer *, info->window);
      self->places[t].result = g_new0 (GstBuffer *, info->emit);
    }
  }
  return &self->places[tile ? tile->row * tile->grid->grid.x.n + tile->column : 0];
}

static guint64
version_of (const GstVidgenEngine *engine)
{
  struct vg_run_info info;

  vg_run_info (engine->run, &info);
  return info.version;
}

/* States change with every run. */
static gboolean
can_reuse (const GstVidgenEngine *engine)
{
  return vg_model_summary (engine->model)->n_states == 0;
}

guint
gst_vidgen_reuse_results (const GstVidgenEngine *engine)
{
  const struct vg_plan_info *info = gst_vidgen_engine_info (engine);

  return can_reuse (engine) ? (engine->whole ? 1 : info->grid->x.n * info->grid->y.n) * info->emit : 0;
}

/* ---- frames ---- */

static GstMemory *
memory_of (GstBuffer *buffer)
{
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0);

  return memory->parent ? memory->parent : memory;
}

static gboolean
is_same_on_device (const GstVidgenEngine *engine, const GstVideoFrame *before, const GstVideoFrame *now)
{
  struct vgk_frame a, b;
  bool same = false;

  gst_vidgen_frame_from_video (before, &a);
  gst_vidgen_frame_from_video (now, &b);
  gst_vidgen_cuda_push (engine->context);
  engine->backend->frame_same (engine->device, &a, &b, &same, NULL); /* if it fails, the run will tell why */
  gst_vidgen_cuda_pop (engine->context);
  return same;
}

static gboolean
is_same_frame (const GstVidgenEngine *engine, const GstVideoInfo *info, GstBuffer *before, GstBuffer *now)
{
  const GstMapFlags flags = GST_MAP_READ | GST_VIDEO_FRAME_MAP_FLAG_NO_REF;
  const struct vg_layout layout = gst_vidgen_layout (info->finfo);
  GstVideoFrame a, b;
  gboolean same = FALSE;

  if (before == now)
    return TRUE;
  if (!gst_vidgen_cuda_map (&a, info, before, flags, engine->context))
    return FALSE; /* the run will tell */
  if (gst_vidgen_cuda_map (&b, info, now, flags, engine->context)) {
    struct vg_picture pa = gst_vidgen_picture (&a), pb = gst_vidgen_picture (&b);

    /* In one place.  If that is one memory, nobody has been allowed to write to it, because we hold it.  If it was
     * wrapped anew, somebody may have, and what was there before is nowhere to compare with. */
    if (pa.data[0] == pb.data[0])
      same = memory_of (before) == memory_of (now);
    else if (gst_vidgen_frame_on_device (&a) && gst_vidgen_frame_on_device (&b))
      same = is_same_on_device (engine, &a, &b);
    else if (!gst_vidgen_frame_on_device (&a) && !gst_vidgen_frame_on_device (&b))
      same = vg_same_rect (&layout, &pa, &pb, info->width, info->height);
    gst_vidgen_cuda_unmap (&b);
  }
  gst_vidgen_cuda_unmap (&a);
  return same;
}

static gboolean
copy_frame (const GstVidgenEngine *engine, const GstVideoInfo *info, GstBuffer *from, GstBuffer *to)
{
  GstVideoFrame a, b;
  gboolean ok;

  if (!gst_vidgen_cuda_map (&a, info, from, GST_MAP_READ | GST_VIDEO_FRAME_MAP_FLAG_NO_REF, engine->context))
    return FALSE;
  ok = gst_vidgen_cuda_map (&b, info, to, GST_MAP_WRITE | GST_VIDEO_FRAME_MAP_FLAG_NO_REF, engine->context);
  if (ok) {
    ok = gst_vidgen_cuda_copy (&b, &a);
    gst_vidgen_cuda_unmap (&b);
  }
  gst_vidgen_cuda_unmap (&a);
  return ok;
}

static gboolean
make_room (GstVidgenReuse *self, GstBuffer **result)
{
  GstBufferPool *pool = *result ? NULL : gst_base_transform_get_buffer_pool (self->trans);
  GstBufferPoolAcquireParams params = {.flags = GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT}; /* it may know nothing of us yet */

  if (pool) {
    gst_buffer_pool_acquire_buffer (pool, result, &params);
    gst_object_unref (pool);
  }
  return *result != NULL;
}

/* ---- what is known ---- */

gboolean
gst_vidgen_reuse_knows (
    GstVidgenReuse *self, GstVidgenEngine *engine, const GstVideoInfo *info, GstBuffer *const *in)
{
  const Place *place = place_of (self, engine, in[0]);
  gboolean knows = can_reuse (engine) && place->given && place->version == version_of (engine);

  /* What differs is most likely the newest. */
  for (gint i = self->window - 1; i >= 0 && knows; i--)
    knows = is_same_frame (engine, info, place->in[i], in[i]);
  return knows;
}

static void
keep (GstVidgenReuse *self, Place *place, GstBuffer *const *in)
{
  for (gint i = 0; i < self->window; i++)
    gst_buffer_replace (&place->in[i], in[i]);
}

void
gst_vidgen_reuse_keep_in (GstVidgenReuse *self, GstVidgenEngine *engine, GstBuffer *const *in)
{
  Place *place = place_of (self, engine, in[0]);

  if (!can_reuse (engine))
    return;
  keep (self, place, in);
  place->version = version_of (engine);
  place->given = TRUE;
  place->known = FALSE;
}

void
gst_vidgen_reuse_keep_out (
    GstVidgenReuse *self, GstVidgenEngine *engine, const GstVideoInfo *info, GstBuffer *const *out)
{
  Place *place = place_of (self, engine, out[0]);
  gboolean ok = place->given && !place->known; /* else what gave it was not kept, or is forgotten */

  for (gint k = 0; k < self->emit && ok; k++)
    ok = make_room (self, &place->result[k]) && copy_frame (engine, info, out[k], place->result[k]);
  place->known |= ok;
}

gboolean
gst_vidgen_reuse_give (GstVidgenReuse *self, GstVidgenEngine *engine, GstBuffer *const *in,
    const GstVideoInfo *out_info, GstBuffer *const *out)
{
  Place *place = place_of (self, engine, in[0]);
  gboolean ok = place->known;

  for (gint k = 0; k < self->emit && ok; k++)
    ok = copy_frame (engine, out_info, place->result[k], out[k]);
  if (ok)
    keep (self, place, in);
  return ok;
}
