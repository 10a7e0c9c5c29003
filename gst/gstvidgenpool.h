/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pool that an element makes its output from, and what it asks of the one that its input comes from. */
#ifndef GST_VIDGEN_POOL_H
#define GST_VIDGEN_POOL_H

#include <gst/video/video.h>

G_BEGIN_DECLS

/* Asks what is downstream of srcpad (ALLOCATION).  Its pool where it offers one that can spare `kept` buffers, else one
 * of ours: large frames made anew each time cost a page fault every 4 KiB.  Active, owned; NULL when neither works. */
GstBufferPool *gst_vidgen_pool_new (GstPad *srcpad, GstCaps *caps, const GstVideoInfo *info, guint kept);

/* For GstBaseTransform's decide_allocation, before and after the base class's: a pool in any case, so that nothing is
 * allocated while running, which can spare `kept` buffers; and its strides where downstream reads them.  With a context
 * (gstvidgencuda.h) its memory is of that. */
gboolean gst_vidgen_pool_ensure (GstQuery *query, guint kept, GstObject *context);
gboolean gst_vidgen_pool_use_strides (GstQuery *query);

/* The answer to an ALLOCATION query of upstream: strides are read, and the pool is upstream's, with at least so many
 * buffers; with a context it is one of that context's memory.  FALSE: caps are missing, or there is no such pool. */
gboolean gst_vidgen_pool_answer (GstQuery *query, guint min, GstObject *context);

G_END_DECLS

#endif
