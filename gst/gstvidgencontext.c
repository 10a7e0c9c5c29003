/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgencontext.h"

#include "gstvidgencuda.h"

#include "../kernels/cuda_load.h"

GST_DEBUG_CATEGORY_EXTERN (gst_vidgen_model_debug);
#define GST_CAT_DEFAULT gst_vidgen_model_debug

#define LOCK(self) g_rec_mutex_lock (&(self)->lock)
#define UNLOCK(self) g_rec_mutex_unlock (&(self)->lock)

void
gst_vidgen_context_init (GstVidgenContext *self, GstElement *element)
{
  self->element = element;
  self->cuda_device_id = -1;
  g_rec_mutex_init (&self->lock);
}

void
gst_vidgen_context_clear (GstVidgenContext *self)
{
  gst_vidgen_context_drop (self);
  g_rec_mutex_clear (&self->lock);
}

/* Could a model run on CUDA here? */
static gboolean
finds_cuda (GstVidgenContext *self)
{
  const struct vgk_device_options options = {.device = MAX (g_atomic_int_get (&self->cuda_device_id), 0)};
  struct vgk_error err = {{0}};
  const struct vgk_backend *backend = vgk_cuda_load (&err);

  if (backend && backend->look (&options, &err) == VGK_OK)
    return TRUE;
  GST_INFO_OBJECT (self->element, "no frames in CUDA memory: %s", err.text);
  return FALSE;
}

/* Only where there is something to run in it: a context takes memory of the device. */
void
gst_vidgen_context_start (GstVidgenContext *self)
{
  LOCK (self);
  if (g_atomic_int_get (&self->device) == GST_VIDGEN_DEVICE_CPU)
    gst_clear_object (&self->context);
  else if (finds_cuda (self))
    gst_vidgen_cuda_ensure (self->element, g_atomic_int_get (&self->cuda_device_id), &self->context);
  self->started = TRUE;
  UNLOCK (self);
}

void
gst_vidgen_context_stop (GstVidgenContext *self)
{
  LOCK (self);
  self->started = FALSE;
  UNLOCK (self);
}

void
gst_vidgen_context_drop (GstVidgenContext *self)
{
  LOCK (self);
  gst_clear_object (&self->context);
  UNLOCK (self);
}

void
gst_vidgen_context_set (GstVidgenContext *self, GstContext *message)
{
  LOCK (self);
  if (g_atomic_int_get (&self->device) != GST_VIDGEN_DEVICE_CPU && finds_cuda (self))
    gst_vidgen_cuda_set_context (
        self->element, message, g_atomic_int_get (&self->cuda_device_id), &self->context);
  UNLOCK (self);
}

GstObject *
gst_vidgen_context_get (GstVidgenContext *self)
{
  GstObject *context;

  LOCK (self);
  context = self->context ? gst_object_ref (self->context) : NULL;
  UNLOCK (self);
  return context;
}

gboolean
gst_vidgen_context_answer (GstVidgenContext *self, GstQuery *query)
{
  GstObject *context = gst_vidgen_context_get (self);
  gboolean answered = gst_vidgen_cuda_answer_context (self->element, query, context);

  gst_clear_object (&context);
  return answered;
}

gboolean
gst_vidgen_context_takes_cuda (GstVidgenContext *self)
{
  GstVidgenDevice device = g_atomic_int_get (&self->device);
  gboolean takes;

  LOCK (self);
  /* With device=cuda the plan tells what is missing; with auto, frames on the host would do. */
  takes = device == GST_VIDGEN_DEVICE_CUDA ||
      (device == GST_VIDGEN_DEVICE_AUTO && (self->context || (!self->started && finds_cuda (self))));
  UNLOCK (self);
  return takes;
}

gboolean
gst_vidgen_context_follow (GstVidgenContext *self, GstObject *of_frames, GError **error)
{
  gint id = g_atomic_int_get (&self->cuda_device_id), theirs = gst_vidgen_cuda_device (of_frames);

  if (id >= 0 && id != theirs) {
    g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
        "Frames lie on CUDA device %d, and cuda-device-id is %d: set it to %d, or to -1 for that of the frames.",
        theirs, id, theirs);
    return FALSE;
  }
  GST_INFO_OBJECT (self->element, "frames come from another context, of CUDA device %d: going over to it", theirs);
  LOCK (self);
  gst_object_replace (&self->context, of_frames);
  UNLOCK (self);
  return TRUE;
}
