/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The context of CUDA (gstvidgencuda.h) that a model element computes in, and the device that is wanted for it.
 *
 * It is found when the element starts, given by the application, or is that of the first frames.  Part of an element;
 * all functions may be called from any thread. */
#ifndef GST_VIDGEN_CONTEXT_H
#define GST_VIDGEN_CONTEXT_H

#include "gstvidgenengine.h"

G_BEGIN_DECLS

typedef struct
{
  GstElement *element; /* not a reference */
  gint device;         /* atomic: GstVidgenDevice, what is wanted */
  gint cuda_device_id; /* atomic: -1 = any */

  GRecMutex lock;     /* of the rest; can be taken twice: whoever looks for a context is given it on the way */
  GstObject *context; /* NULL = none */
  gboolean started;   /* between start and stop: a context that there is not will not come */
} GstVidgenContext;

void gst_vidgen_context_init (GstVidgenContext *self, GstElement *element);
void gst_vidgen_context_clear (GstVidgenContext *self);

/* The streaming thread starts and stops. */
void gst_vidgen_context_start (GstVidgenContext *self);
void gst_vidgen_context_stop (GstVidgenContext *self);

/* Forgets it. */
void gst_vidgen_context_drop (GstVidgenContext *self);

/* For the element's set_context and CONTEXT queries. */
void gst_vidgen_context_set (GstVidgenContext *self, GstContext *message);
gboolean gst_vidgen_context_answer (GstVidgenContext *self, GstQuery *query);

/* An owned reference, or NULL. */
GstObject *gst_vidgen_context_get (GstVidgenContext *self);

/* Can frames in CUDA memory be taken and given? */
gboolean gst_vidgen_context_takes_cuda (GstVidgenContext *self);

/* From now on it is that of the frames which come.  FALSE: they lie on another device than is wanted. */
gboolean gst_vidgen_context_follow (GstVidgenContext *self, GstObject *of_frames, GError **error);

G_END_DECLS

#endif
