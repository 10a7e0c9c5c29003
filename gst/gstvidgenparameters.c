/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgenparameters.h"

#include <math.h>
#include <string.h>

gsize
gst_vidgen_parameters_count (const struct vg_summary *summary)
{
  gsize n = 0;

  for (gint i = 0; i < summary->n_parameters; i++)
    n += summary->parameters[i].count;
  return n;
}

/* "style_weights: 3 values from 0 to 1 (starry, painted, pastel)" */
static void
describe (const struct vg_parameter *p, GString *text)
{
  g_string_append_printf (text, "%s: %d value%s", p->name, p->count, p->count == 1 ? "" : "s");
  if (p->low <= p->high)
    g_string_append_printf (text, " from %g to %g", p->low, p->high);
  for (gint i = 0; p->labels && i < p->count; i++)
    g_string_append_printf (text, "%s%s", i ? ", " : " (", p->labels[i]);
  if (p->labels)
    g_string_append_c (text, ')');
}

static void
refuse (GError **error, const gchar *name, const gchar *why, const struct vg_summary *summary)
{
  GString *allowed = g_string_new (NULL);

  for (gint i = 0; i < summary->n_parameters; i++) {
    if (i)
      g_string_append (allowed, "; ");
    describe (&summary->parameters[i], allowed);
  }
  g_set_error (error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS, "Parameter \"%s\": %s. Model \"%s\" takes %s",
      name, why, summary->name, summary->n_parameters ? allowed->str : "no parameters");
  g_string_free (allowed, TRUE);
}

/* NULL, or what is wrong (g_free). */
static gchar *
take (const struct vg_parameter *p, gint i, gdouble value, gfloat *values)
{
  if (!isfinite (value) || (p->low <= p->high && (value < p->low || value > p->high)))
    return g_strdup_printf ("%g is out of range", value);
  values[i] = value;
  return NULL;
}

static gchar *
take_value (const struct vg_parameter *p, gint i, const GValue *v, gfloat *values)
{
  GValue number = G_VALUE_INIT;
  gchar *why;

  g_value_init (&number, G_TYPE_DOUBLE);
  if (G_VALUE_HOLDS_STRING (v) || !g_value_transform (v, &number))
    why = g_strdup_printf ("a %s is no number", G_VALUE_TYPE_NAME (v));
  else
    why = take (p, i, g_value_get_double (&number), values);
  g_value_unset (&number);
  return why;
}

static gint
place (const struct vg_parameter *p, const gchar *text)
{
  gchar *end;
  guint64 i = g_ascii_strtoull (text, &end, 10);

  if (g_ascii_isdigit (*text) && !*end)
    return i < (guint64) p->count ? (gint) i : -1;
  for (gint k = 0; p->labels && k < p->count; k++)
    if (g_ascii_strcasecmp (p->labels[k], text) == 0)
      return k;
  return -1;
}

static gchar *
take_places (const struct vg_parameter *p, const gchar *text, gfloat *values)
{
  gchar **pairs = g_strsplit (text && *text ? text : " ", ",", 0); /* at least one */
  gchar *why = NULL;

  for (gint i = 0; i < p->count; i++)
    values[i] = 0;
  for (gchar **pair = pairs; *pair && !why; pair++) {
    gchar *colon = strrchr (*pair, ':'), *end = NULL;
    gdouble value;
    gint i;

    if (colon) {
      *colon = '\0';
      value = g_ascii_strtod (colon + 1, &end);
    }
    if (!colon || end == colon + 1 || *g_strchug (end))
      why = g_strdup_printf ("\"%s\" is no list of place:value pairs such as \"0:0.5,2:0.5\"", text);
    else if ((i = place (p, g_strstrip (*pair))) < 0)
      why = g_strdup_printf ("there is no place \"%s\"", *pair);
    else
      why = take (p, i, value, values);
  }
  g_strfreev (pairs);
  return why;
}

static gchar *
take_field (const struct vg_parameter *p, const GValue *v, gfloat *values)
{
  gboolean array = GST_VALUE_HOLDS_ARRAY (v);
  gchar *why = NULL;
  gint n = 1;

  if (G_VALUE_HOLDS_STRING (v))
    return take_places (p, g_value_get_string (v), values);
  if (array)
    n = gst_value_array_get_size (v);
  if (n != p->count)
    return g_strdup_printf ("%d value%s given, %d wanted", n, n == 1 ? "" : "s", p->count);
  for (gint i = 0; i < n && !why; i++)
    why = take_value (p, i, array ? gst_value_array_get_value (v, i) : v, values);
  return why;
}

static void
take_defaults (const struct vg_summary *summary, gfloat *values)
{
  for (gint i = 0; i < summary->n_parameters; i++) {
    const struct vg_parameter *p = &summary->parameters[i];

    memcpy (values, p->defaults, p->count * sizeof *values);
    values += p->count;
  }
}

gboolean
gst_vidgen_parameters_read (
    const GstStructure *structure, const struct vg_summary *summary, gfloat *values, GError **error)
{
  take_defaults (summary, values);
  for (gint f = 0; structure && f < gst_structure_n_fields (structure); f++) {
    const gchar *name = gst_structure_nth_field_name (structure, f);
    gfloat *own = values;
    gchar *why;
    gint i;

    for (i = 0; i < summary->n_parameters && strcmp (summary->parameters[i].name, name) != 0; i++)
      own += summary->parameters[i].count;
    if (i < summary->n_parameters)
      why = take_field (&summary->parameters[i], gst_structure_get_value (structure, name), own);
    else
      why = g_strdup ("the model has no such input");
    if (why) {
      refuse (error, name, why, summary);
      g_free (why);
      take_defaults (summary, values);
      return FALSE;
    }
  }
  return TRUE;
}
