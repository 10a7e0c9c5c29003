/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What ops learn from the whole frame, apart from what they do with it: statistics of norms, and means (or extremes)
 * over all pixels, be they pooling or a norm's deviation written out.  Apart, they can be scheduled, kept from one
 * frame to the next, or given once and for all. */
#ifndef VG_NORMS_H
#define VG_NORMS_H

#include "net.h"

/* Whose statistics a frame is processed with.
 *   OWN       its own; nothing is kept.  They divide the net into passes.
 *   OWN_KEPT  its own, which can be read afterwards (net->memories[i].now).
 *   KEPT      those in .kept; its own are measured on the way, in .now.  One pass.
 *   GIVEN     those in .kept.  Nothing is measured, and nothing depends on the whole frame any more but what
 *             net->global_why then names.  A norm behind a convolution is part of it, as scale and shift, and costs
 *             nothing; elsewhere it is a scale and a shift of its own.
 * .now and .kept are persistent.  What follows from .kept alone is in the prologue: it is stale when .kept is written.
 * All forms of one net, at any size, have the same memories in the same order. */
enum vg_norm_source { VG_NORM_OWN, VG_NORM_OWN_KEPT, VG_NORM_KEPT, VG_NORM_GIVEN };

/* Splits instance and group norms of images into MOMENTS, MERGE and NORMALISE (kernels/ops.h), finds the means over all
 * pixels, and brings the net into the form for a source.  Run last: nothing fuses with the steps.  VGK_ERR_NOMEM leaves
 * a net that is of no use. */
enum vgk_status vg_net_split_norms(struct vg_net *, enum vg_norm_source);

#endif
