/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Norms whose statistics are the whole frame's, made of steps that can be scheduled apart. */
#ifndef VG_NORMS_H
#define VG_NORMS_H

#include "net.h"

/* Whose statistics a frame is normalised with.
 *   OWN       its own; nothing is kept.  The norms divide the net into passes.
 *   OWN_KEPT  its own, which may be kept for the next frame.
 *   KEPT      the kept ones; its own are measured on the way.  One pass.
 * The caller copies net->memories[i].now to .kept between frames; both are persistent. */
enum vg_norm_source { VG_NORM_OWN, VG_NORM_OWN_KEPT, VG_NORM_KEPT };

/* Splits instance and group norms of images into MOMENTS, MERGE and NORMALISE (kernels/ops.h).  Run last: nothing
 * fuses with the steps.  net->memories says where statistics are kept; persistent buffers come in the same order in
 * all three forms of one net.  VGK_ERR_NOMEM leaves a net that is still right. */
enum vgk_status vg_net_split_norms(struct vg_net *, enum vg_norm_source);

#endif
