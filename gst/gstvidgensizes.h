/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which frame sizes and rates caps allow, before and behind a model that scales them. */
#ifndef GST_VIDGEN_SIZES_H
#define GST_VIDGEN_SIZES_H

#include <gst/video/video.h>

G_BEGIN_DECLS

/* What a model does to frames. */
typedef struct
{
  gint num, den; /* pixels that come out for one that goes in, both ways; num 0 = not known */
  gint rate;     /* frames that come out for one that goes in */
} GstVidgenScale;

/* A frame's size behind a model. */
gint gst_vidgen_scale_size (gint64 size, gint num, gint den);

/* Structures keep their caps features.
 *
 * What comes out of a model for caps that go in (direction SINK), or what may go in for what comes out (SRC), when any
 * of n scales is possible; n = 0: any size.  Owned. */
GstCaps *gst_vidgen_scaled_caps (const GstCaps *caps, GstPadDirection direction, const GstVidgenScale *scales, gint n);

/* Those of `caps` that come out of this scale for fixed caps that go in.  Takes caps, gives owned caps. */
GstCaps *gst_vidgen_pick_scale (GstCaps *caps, const GstCaps *in, const GstVidgenScale *scale);

/* The answer to a CAPS query on `pad` of an element that takes any frame size for any tile size: what the peer of
 * `other` (the element's opposite pad) takes, in any size, within pad's template and the query's filter.  Owned. */
GstCaps *gst_vidgen_any_size_caps (GstPad *pad, GstPad *other, GstCaps *filter);

/* Are they among those of the pad's template? */
gboolean gst_vidgen_fits_template (GstPad *pad, GstCaps *caps);

/* Those frame caps of `caps` whose size, times num / den, the caps `sizes` allow.  Takes caps, gives owned caps. */
GstCaps *gst_vidgen_limit_sizes (GstCaps *caps, const GstCaps *sizes, gint num, gint den);

G_END_DECLS

#endif
