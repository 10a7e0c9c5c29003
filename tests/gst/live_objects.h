/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the leaks tracer counts; it is on where GST_TRACERS=leaks was set before gst_init. */
#ifndef LIVE_OBJECTS_H
#define LIVE_OBJECTS_H

#include <gst/check/gstcheck.h>

/* How many GStreamer objects there are, and what they are: *text, to be freed. */
static inline guint
live_objects (gchar **text)
{
  GList *tracers, *l;
  GstStructure *live = NULL;
  const GValue *list;
  guint n;

  /* The tracer would take a reference to a task that is just ending. */
  gst_task_cleanup_all ();
  tracers = gst_tracing_get_active_tracers ();
  for (l = tracers; l && !live; l = l->next)
    if (g_str_equal (G_OBJECT_TYPE_NAME (l->data), "GstLeaksTracer"))
      g_signal_emit_by_name (l->data, "get-live-objects", &live);
  g_list_free_full (tracers, gst_object_unref);
  fail_unless (live != NULL, "no leaks tracer");
  list = gst_structure_get_value (live, "live-objects-list");
  n = gst_value_list_get_size (list);
  *text = gst_structure_to_string (live);
  gst_structure_free (live);
  return n;
}

#endif
