/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Registers the elements. */
#include <gst/gst.h>

#include "gstvidgenbin.h"
#include "gstvidgenchunk.h"
#include "gstvidgenmodel.h"
#include "gstvidgenstitch.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  return GST_ELEMENT_REGISTER (vidgen, plugin) && GST_ELEMENT_REGISTER (vidgenchunk, plugin) &&
      GST_ELEMENT_REGISTER (vidgenmodel, plugin) && GST_ELEMENT_REGISTER (vidgenstitch, plugin);
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, vidgen,
    "Neural video models, tile by tile, in a fixed amount of memory", plugin_init, VERSION, "LGPL", PACKAGE, "vidgen")
