/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../gst/gstvidgenparameters.h"

#include <string.h>

#include "kit.h"

static const float weights[] = {1, 0, 0}, strength[] = {0.5f}, any[] = {7, 8};
static const char *const labels[] = {"starry", "painted", "pastel"};
static const struct vg_parameter parameters[] = {
    {"style_weights", 3, weights, 0, 1, labels},
    {"strength", 1, strength, -2, 2, NULL},
    {"any", 2, any, 1, 0, NULL},
};
static const struct vg_summary three = {.name = "three", .n_parameters = 3, .parameters = parameters};
static const struct vg_summary none = {.name = "none"};

/* Reads `text` into values; "" when it is taken, else the error's text. */
static const gchar *
read_into (const gchar *text, const struct vg_summary *summary, gfloat *values)
{
  static gchar message[1024];
  GstStructure *s = text ? gst_structure_from_string (text, NULL) : NULL;
  GError *error = NULL;

  expectf (s || !text, "%s", text);
  expect (gst_vidgen_parameters_read (s, summary, values, &error) == (error == NULL));
  g_strlcpy (message, error ? error->message : "", sizeof message);
  g_clear_error (&error);
  if (s)
    gst_structure_free (s);
  return message;
}

static void
expect_values (const gchar *text, gfloat a, gfloat b, gfloat c, gfloat s, gfloat x, gfloat y)
{
  const gfloat want[6] = {a, b, c, s, x, y};
  gfloat got[6] = {0};
  const gchar *message = read_into (text, &three, got);

  expectf (*message == '\0', "%s: %s", text, message);
  for (gint i = 0; i < 6; i++)
    expectf (want[i] == got[i], "%s: value %d is %g, not %g", text ? text : "NULL", i, got[i], want[i]);
}

static void
defaults (void)
{
  gfloat nothing[1];

  expect (gst_vidgen_parameters_count (&three) == 6);
  expect (gst_vidgen_parameters_count (&none) == 0);
  expect_values (NULL, 1, 0, 0, 0.5f, 7, 8);
  expect_values ("p", 1, 0, 0, 0.5f, 7, 8);
  expect (*read_into ("p", &none, nothing) == '\0');
}

static void
numbers_and_arrays (void)
{
  expect_values ("p,style_weights=<0.0,0.25,0.75>", 0, 0.25f, 0.75f, 0.5f, 7, 8);
  expect_values ("p,style_weights=<0,1,0>,strength=-2", 0, 1, 0, -2, 7, 8);
  expect_values ("p,strength=(float)1.5", 1, 0, 0, 1.5f, 7, 8);
  expect_values ("p,strength=<(double)0.125>", 1, 0, 0, 0.125f, 7, 8);
  expect_values ("p,any=<-1e6,1e6>", 1, 0, 0, 0.5f, -1e6f, 1e6f);
}

static void
places (void)
{
  expect_values ("p,style_weights=(string)\"1:0.5,2:0.25\"", 0, 0.5f, 0.25f, 0.5f, 7, 8);
  expect_values ("p,style_weights=(string)\"2:1\"", 0, 0, 1, 0.5f, 7, 8);
  expect_values ("p,style_weights=(string)\" Pastel : 0.5 , starry:0.25\"", 0.25f, 0, 0.5f, 0.5f, 7, 8);
}

/* Each is refused with words that help, and leaves the defaults. */
static void
refusals (void)
{
  static const struct
  {
    const gchar *text, *in_message;
  } bad[] = {
      {"p,style_weight=<0.0,1.0,0.0>", "no such input"},
      {"p,style_weights=<0.0,1.0>", "2 values given, 3 wanted"},
      {"p,style_weights=<0.0,1.0,0.0,0.0>", "4 values given, 3 wanted"},
      {"p,style_weights=0.5", "1 value given, 3 wanted"},
      {"p,style_weights=<0.0,1.5,0.0>", "1.5 is out of range"},
      {"p,style_weights=<0.0,-0.5,0.0>", "-0.5 is out of range"},
      {"p,strength=<1.0,1.0>", "2 values given, 1 wanted"},
      {"p,style_weights=<a,b,c>", "is no number"},
      {"p,style_weights=(string)\"3:1\"", "no place \"3\""},
      {"p,style_weights=(string)\"99999999999999999999:1\"", "no place"},
      {"p,style_weights=(string)\"-1:1\"", "no place"},
      {"p,style_weights=(string)\"rainy:1\"", "no place \"rainy\""},
      {"p,style_weights=(string)\"1:2\"", "2 is out of range"},
      {"p,style_weights=(string)\"1:nan\"", "out of range"},
      {"p,style_weights=(string)\"1\"", "place:value"},
      {"p,style_weights=(string)\"1:\"", "place:value"},
      {"p,style_weights=(string)\"1:0.5x\"", "place:value"},
      {"p,style_weights=(string)\"\"", "\"\""},
      {"p,any=<1.0,inf>", ""},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    gfloat got[6] = {0};
    const gchar *message = read_into (bad[i].text, &three, got);

    expectf (*message && strstr (message, bad[i].in_message), "%s: %s", bad[i].text, message);
    expectf (strstr (message,
                 "style_weights: 3 values from 0 to 1 (starry, painted, pastel); strength: 1 value from -2 to 2; any: "
                 "2 values"),
        "%s: %s", bad[i].text, message);
    expectf (got[0] == 1 && got[1] == 0 && got[3] == 0.5f && got[5] == 8, "%s", bad[i].text);
  }
}

/* Values of any number survive NaN, also where no range is declared. */
static void
not_a_number (void)
{
  GstStructure *s = gst_structure_new ("p", "strength", G_TYPE_DOUBLE, (gdouble) NAN, NULL);
  gfloat got[6];

  expect (!gst_vidgen_parameters_read (s, &three, got, NULL));
  gst_structure_free (s);
}

static void
a_model_without_parameters (void)
{
  gfloat got[1];

  expect (strstr (read_into ("p,strength=1.0", &none, got), "takes no parameters") != NULL);
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  run (defaults);
  run (numbers_and_arrays);
  run (places);
  run (refusals);
  run (not_a_number);
  run (a_model_without_parameters);
  return kit_done ();
}
