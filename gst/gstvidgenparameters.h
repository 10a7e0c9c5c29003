/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The values of a model's extra inputs, as the property `parameters` gives them.
 *
 * A field of the structure is a parameter by its name; what has no field has its default.  A field's value is
 *   a number                      for a parameter of one value:   strength=0.5
 *   an array of numbers           all values:                     style_weights=<0.0,1.0,0.0>
 *   a string of places            place:value pairs, all others are 0; a place is an index or the value's label:
 *                                                                 style_weights=(string)"3:0.5,12:0.5" */
#ifndef GST_VIDGEN_PARAMETERS_H
#define GST_VIDGEN_PARAMETERS_H

#include <gst/gst.h>

#include "../model/model.h"

G_BEGIN_DECLS

/* How many values all parameters have together. */
gsize gst_vidgen_parameters_count (const struct vg_summary *summary);

/* values: all parameters' values, in the model's order, one behind the other.  structure may be NULL.
 * FALSE for an unknown name, a wrong count or a value out of range: the error tells what is allowed, and values are the
 * defaults. */
gboolean gst_vidgen_parameters_read (
    const GstStructure *structure, const struct vg_summary *summary, gfloat *values, GError **error);

G_END_DECLS

#endif
