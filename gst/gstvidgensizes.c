/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gstvidgensizes.h"

static GstCaps *
any_size (GstCaps *caps)
{
  caps = gst_caps_make_writable (caps);
  if (!gst_caps_is_any (caps))
    gst_caps_set_simple (
        caps, "width", GST_TYPE_INT_RANGE, 1, G_MAXINT, "height", GST_TYPE_INT_RANGE, 1, G_MAXINT, NULL);
  return caps;
}

gboolean
gst_vidgen_fits_template (GstPad *pad, GstCaps *caps)
{
  GstCaps *template = gst_pad_get_pad_template_caps (pad);
  gboolean fits = gst_caps_is_subset (caps, template);

  gst_caps_unref (template);
  return fits;
}

/* In the order of `first`; takes both. */
static GstCaps *
intersect (GstCaps *first, GstCaps *second)
{
  GstCaps *result = gst_caps_intersect_full (first, second, GST_CAPS_INTERSECT_FIRST);

  gst_caps_unref (first);
  gst_caps_unref (second);
  return result;
}

GstCaps *
gst_vidgen_any_size_caps (GstPad *pad, GstPad *other, GstCaps *filter)
{
  GstCaps *peer_filter = filter ? any_size (gst_caps_copy (filter)) : NULL;
  GstCaps *caps = any_size (gst_pad_peer_query_caps (other, peer_filter));

  gst_clear_caps (&peer_filter);
  caps = intersect (caps, gst_pad_get_pad_template_caps (pad));
  return filter ? intersect (gst_caps_ref (filter), caps) : caps;
}

/* Adds to list the input sizes that scale into [lo, hi]. */
static void
append_range (GValue *list, gint64 lo, gint64 hi, gint num, gint den)
{
  GValue range = G_VALUE_INIT;
  gint64 first = lo <= 1 ? 1 : (lo * den + num - 1) / num;
  gint64 last = ((hi + 1) * den - 1) / num;

  last = MIN (last, G_MAXINT);
  if (first > last)
    return;
  if (first == last) {
    g_value_init (&range, G_TYPE_INT);
    g_value_set_int (&range, first);
  } else {
    g_value_init (&range, GST_TYPE_INT_RANGE);
    gst_value_set_int_range (&range, first, last);
  }
  gst_value_list_append_and_take_value (list, &range);
}

static void
append_scaled (GValue *list, const GValue *size, gint num, gint den)
{
  if (G_VALUE_HOLDS_INT (size))
    append_range (list, g_value_get_int (size), g_value_get_int (size), num, den);
  else if (GST_VALUE_HOLDS_INT_RANGE (size))
    append_range (list, gst_value_get_int_range_min (size), gst_value_get_int_range_max (size), num, den);
  else if (GST_VALUE_HOLDS_LIST (size))
    for (guint i = 0; i < gst_value_list_get_size (size); i++)
      append_scaled (list, gst_value_list_get_value (size, i), num, den);
}

/* FALSE when no size is left. */
static gboolean
set_scaled (GstStructure *out, const GstStructure *in, const gchar *field, gint num, gint den)
{
  const GValue *size = gst_structure_get_value (in, field);
  GValue list = G_VALUE_INIT;
  guint n;

  if (!size)
    return TRUE;
  g_value_init (&list, GST_TYPE_LIST);
  append_scaled (&list, size, num, den);
  n = gst_value_list_get_size (&list);
  if (n == 1)
    gst_structure_set_value (out, field, gst_value_list_get_value (&list, 0));
  else if (n > 1)
    gst_structure_set_value (out, field, &list);
  g_value_unset (&list);
  return n > 0;
}

GstCaps *
gst_vidgen_limit_sizes (GstCaps *caps, const GstCaps *sizes, gint num, gint den)
{
  GstCaps *limit;

  if (gst_caps_is_any (sizes) || num < 1 || den < 1)
    return caps;
  limit = gst_caps_new_empty ();
  for (guint i = 0; i < gst_caps_get_size (sizes); i++) {
    const GstStructure *in = gst_caps_get_structure (sizes, i);
    GstStructure *out = gst_structure_new_empty ("video/x-raw");

    /* The sizes hold for any memory. */
    if (set_scaled (out, in, "width", num, den) && set_scaled (out, in, "height", num, den))
      gst_caps_append_structure_full (limit, out, gst_caps_features_new_any ());
    else
      gst_structure_free (out);
  }
  return intersect (caps, limit);
}

gint
gst_vidgen_scale_size (gint64 size, gint num, gint den)
{
  return CLAMP (size * num / den, 1, G_MAXINT);
}

/* Output sizes for what the input allows.  FALSE: a type that no size has. */
static gboolean
scale_value (const GValue *in, gint num, gint den, GValue *out)
{
  if (G_VALUE_HOLDS_INT (in)) {
    g_value_init (out, G_TYPE_INT);
    g_value_set_int (out, gst_vidgen_scale_size (g_value_get_int (in), num, den));
  } else if (GST_VALUE_HOLDS_INT_RANGE (in)) {
    gint lo = gst_vidgen_scale_size (gst_value_get_int_range_min (in), num, den);
    gint hi = gst_vidgen_scale_size (gst_value_get_int_range_max (in), num, den);

    g_value_init (out, lo < hi ? GST_TYPE_INT_RANGE : G_TYPE_INT);
    if (lo < hi)
      gst_value_set_int_range (out, lo, hi);
    else
      g_value_set_int (out, lo);
  } else if (GST_VALUE_HOLDS_LIST (in)) {
    g_value_init (out, GST_TYPE_LIST);
    for (guint i = 0; i < gst_value_list_get_size (in); i++) {
      GValue item = G_VALUE_INIT;

      if (scale_value (gst_value_list_get_value (in, i), num, den, &item))
        gst_value_list_append_and_take_value (out, &item);
    }
  } else {
    return FALSE;
  }
  return TRUE;
}

static void
scale_rate (const GValue *in, gint num, gint den, GValue *out)
{
  gint n = G_MAXINT, d = 1;

  gst_util_fraction_multiply (
      gst_value_get_fraction_numerator (in), gst_value_get_fraction_denominator (in), num, den, &n, &d);
  g_value_init (out, GST_TYPE_FRACTION);
  gst_value_set_fraction (out, n, d);
}

/* Frame rates times num / den.  FALSE: a type that no rate has. */
static gboolean
scale_rates (const GValue *in, gint num, gint den, GValue *out)
{
  if (GST_VALUE_HOLDS_FRACTION (in)) {
    scale_rate (in, num, den, out);
  } else if (GST_VALUE_HOLDS_FRACTION_RANGE (in)) {
    GValue lo = G_VALUE_INIT, hi = G_VALUE_INIT;

    scale_rate (gst_value_get_fraction_range_min (in), num, den, &lo);
    scale_rate (gst_value_get_fraction_range_max (in), num, den, &hi);
    g_value_init (out, GST_TYPE_FRACTION_RANGE);
    gst_value_set_fraction_range (out, &lo, &hi);
  } else if (GST_VALUE_HOLDS_LIST (in)) {
    g_value_init (out, GST_TYPE_LIST);
    for (guint i = 0; i < gst_value_list_get_size (in); i++) {
      GValue item = G_VALUE_INIT;

      if (scale_rates (gst_value_list_get_value (in, i), num, den, &item))
        gst_value_list_append_and_take_value (out, &item);
    }
  } else {
    return FALSE;
  }
  return TRUE;
}

/* Appends to caps, which it takes, the structure scaled. */
static GstCaps *
append_scaled_structure (GstCaps *caps, const GstStructure *s, const GstCapsFeatures *features,
    GstPadDirection direction, const GstVidgenScale *scale)
{
  static const gchar *const sizes[] = {"width", "height"}, *const rates[] = {"framerate", "max-framerate"};
  GstStructure *other = gst_structure_copy (s);
  GstCaps *one;

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    const GValue *in = gst_structure_get_value (s, sizes[i]);
    GValue out = G_VALUE_INIT;

    if (direction == GST_PAD_SRC)
      gst_structure_set (other, sizes[i], GST_TYPE_INT_RANGE, 1, G_MAXINT, NULL);
    else if (in && scale_value (in, scale->num, scale->den, &out))
      gst_structure_take_value (other, sizes[i], &out);
  }
  for (guint i = 0; i < G_N_ELEMENTS (rates) && scale->rate != 1; i++) {
    const GValue *in = gst_structure_get_value (s, rates[i]);
    GValue out = G_VALUE_INIT;

    if (in &&
        scale_rates (in, direction == GST_PAD_SRC ? 1 : scale->rate, direction == GST_PAD_SRC ? scale->rate : 1, &out))
      gst_structure_take_value (other, rates[i], &out);
  }
  one = gst_caps_new_full (other, NULL);
  gst_caps_set_features (one, 0, gst_caps_features_copy (features));
  if (direction == GST_PAD_SRC) {
    GstCaps *wanted = gst_caps_new_full (gst_structure_copy (s), NULL);

    one = gst_vidgen_limit_sizes (one, wanted, scale->num, scale->den);
    gst_caps_unref (wanted);
  }
  return gst_caps_merge (caps, one);
}

GstCaps *
gst_vidgen_scaled_caps (const GstCaps *caps, GstPadDirection direction, const GstVidgenScale *scales, gint n)
{
  GstCaps *result = gst_caps_new_empty ();

  for (guint i = 0; i < gst_caps_get_size (caps); i++) {
    const GstStructure *s = gst_caps_get_structure (caps, i);
    const GstCapsFeatures *features = gst_caps_get_features (caps, i);

    if (n == 0)
      result = gst_caps_merge (result, any_size (gst_caps_copy_nth (caps, i)));
    for (gint k = 0; k < n; k++)
      result = append_scaled_structure (result, s, features, direction, &scales[k]);
  }
  return result;
}

GstCaps *
gst_vidgen_pick_scale (GstCaps *caps, const GstCaps *in, const GstVidgenScale *scale)
{
  const GstStructure *s = gst_caps_get_structure (in, 0);
  GstStructure *exact = gst_structure_new_empty ("video/x-raw");
  const GValue *rate = gst_structure_get_value (s, "framerate");
  gint width = 0, height = 0;
  GstCaps *limit;

  gst_structure_get (s, "width", G_TYPE_INT, &width, "height", G_TYPE_INT, &height, NULL);
  gst_structure_set (exact, "width", G_TYPE_INT, gst_vidgen_scale_size (width, scale->num, scale->den), "height",
      G_TYPE_INT, gst_vidgen_scale_size (height, scale->num, scale->den), NULL);
  if (rate && GST_VALUE_HOLDS_FRACTION (rate)) {
    GValue out = G_VALUE_INIT;

    scale_rate (rate, scale->rate, 1, &out);
    gst_structure_take_value (exact, "framerate", &out);
  }
  limit = gst_caps_new_empty ();
  gst_caps_append_structure_full (limit, exact, gst_caps_features_new_any ());
  return intersect (caps, limit);
}
