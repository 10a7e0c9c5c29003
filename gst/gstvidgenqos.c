/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenqos.h"

void
gst_vidgen_qos_reset (GstVidgenQos *self)
{
  gst_segment_init (&self->segment, GST_FORMAT_UNDEFINED);
  self->processed = self->dropped = 0;
  self->gap = FALSE;
  GST_OBJECT_LOCK (self->element);
  self->earliest = GST_CLOCK_TIME_NONE;
  self->proportion = 1;
  GST_OBJECT_UNLOCK (self->element);
}

void
gst_vidgen_qos_take_event (GstVidgenQos *self, GstEvent *event)
{
  GstClockTime timestamp;
  GstClockTimeDiff diff;
  gdouble proportion;

  gst_event_parse_qos (event, NULL, &proportion, &diff, &timestamp);
  GST_OBJECT_LOCK (self->element);
  self->proportion = proportion;
  self->earliest = GST_CLOCK_TIME_NONE;
  /* A frame that arrives early by more than its own time says nothing about when the next one is due. */
  if (GST_CLOCK_TIME_IS_VALID (timestamp) && (diff >= 0 || timestamp > (GstClockTime) -diff))
    self->earliest = timestamp + diff;
  GST_OBJECT_UNLOCK (self->element);
}

static void
post_message (
    GstVidgenQos *self, GstBuffer *frame, GstClockTime running_time, GstClockTime earliest, gdouble proportion)
{
  GstClockTime pts = GST_BUFFER_PTS (frame);
  GstMessage *message = gst_message_new_qos (GST_OBJECT (self->element), FALSE, running_time,
      gst_segment_to_stream_time (&self->segment, GST_FORMAT_TIME, pts), pts, GST_BUFFER_DURATION (frame));

  gst_message_set_qos_values (message, GST_CLOCK_DIFF (running_time, earliest), proportion, 1000000);
  gst_message_set_qos_stats (message, GST_FORMAT_BUFFERS, self->processed, self->dropped);
  gst_element_post_message (self->element, message);
}

gboolean
gst_vidgen_qos_is_late (GstVidgenQos *self, GstBuffer *frame)
{
  GstClockTime running_time, earliest;
  gdouble proportion;
  gboolean late = FALSE;

  GST_OBJECT_LOCK (self->element);
  earliest = self->enabled ? self->earliest : GST_CLOCK_TIME_NONE;
  proportion = self->proportion;
  GST_OBJECT_UNLOCK (self->element);
  if (GST_CLOCK_TIME_IS_VALID (earliest) && self->segment.format == GST_FORMAT_TIME) {
    running_time = gst_segment_to_running_time (&self->segment, GST_FORMAT_TIME, GST_BUFFER_PTS (frame));
    late = GST_CLOCK_TIME_IS_VALID (running_time) && running_time <= earliest;
  }
  if (!late) {
    self->processed++;
    return FALSE;
  }
  self->dropped++;
  post_message (self, frame, running_time, earliest, proportion);
  return TRUE;
}
