/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which frames come too late to be worth making, from what sinks tell by QoS events.  Whole frames only: an element
 * between vidgenchunk and vidgenstitch that heard of it would drop single tiles. */
#ifndef GST_VIDGEN_QOS_H
#define GST_VIDGEN_QOS_H

#include <gst/gst.h>

G_BEGIN_DECLS

typedef struct
{
  GstElement *element; /* not a reference: for its object lock, and its messages */

  /* Streaming thread. */
  GstSegment segment;
  guint64 processed, dropped;
  gboolean gap; /* the last frame was dropped */

  /* Object lock: events come from elsewhere. */
  gboolean enabled;      /* the property */
  GstClockTime earliest; /* running time that the sink has reached; NONE = not known */
  gdouble proportion;
} GstVidgenQos;

/* A stream starts, or was flushed. */
void gst_vidgen_qos_reset (GstVidgenQos *self);

void gst_vidgen_qos_take_event (GstVidgenQos *self, GstEvent *event);

/* TRUE: what the sink shows is past this frame already; a QoS message was posted. */
gboolean gst_vidgen_qos_is_late (GstVidgenQos *self, GstBuffer *frame);

G_END_DECLS

#endif
