/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What gst-inspect shows.  Runs before the other element tests, and alone: it fills the registry that they share. */
#include <gst/check/gstcheck.h>

/* Every element is described, and so is every property, which has the default and the range that it says. */
GST_START_TEST (test_inspect)
{
  GList *features = gst_registry_get_feature_list_by_plugin (gst_registry_get (), "vidgen");
  guint n = 0;

  for (GList *l = features; l; l = l->next) {
    GstElementFactory *factory = GST_ELEMENT_FACTORY (l->data);
    GstElement *element = gst_element_factory_create (factory, NULL);
    guint n_specs;
    GParamSpec **specs;

    fail_unless (element != NULL, "%s", GST_OBJECT_NAME (factory));
    fail_unless_equals_int (gst_plugin_feature_get_rank (l->data), 0);
    fail_unless (strlen (gst_element_factory_get_metadata (factory, GST_ELEMENT_METADATA_DESCRIPTION)) > 20);
    fail_unless (gst_element_factory_get_num_pad_templates (factory) == 2);
    specs = g_object_class_list_properties (G_OBJECT_GET_CLASS (element), &n_specs);
    for (guint i = 0; i < n_specs; i++) {
      const gchar *blurb = g_param_spec_get_blurb (specs[i]);
      GValue value = G_VALUE_INIT;

      if (!g_str_has_prefix (g_type_name (specs[i]->owner_type), "GstVidgen"))
        continue;
      fail_unless (blurb && strlen (blurb) > 15 && g_ascii_isupper (*blurb), "%s", specs[i]->name);
      if (!(specs[i]->flags & G_PARAM_READABLE))
        continue;
      g_value_init (&value, specs[i]->value_type);
      g_object_get_property (G_OBJECT (element), specs[i]->name, &value);
      if (specs[i]->flags & G_PARAM_WRITABLE) {
        fail_unless (g_param_value_defaults (specs[i], &value), "%s", specs[i]->name);
        g_object_set_property (G_OBJECT (element), specs[i]->name, &value);
      }
      g_value_unset (&value);
    }
    g_free (specs);
    gst_object_unref (element);
    n++;
  }
  fail_unless (n >= 2);
  gst_plugin_feature_list_free (features);
}

GST_END_TEST;

static Suite *
plugin_suite (void)
{
  Suite *s = suite_create ("plugin");
  TCase *tc = tcase_create ("general");

  tcase_set_timeout (tc, 60);
  suite_add_tcase (s, tc);
  tcase_add_test (tc, test_inspect);
  return s;
}

GST_CHECK_MAIN (plugin);
