/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fusion: exporters write a convolution's bias, gain, activation, residual and padding as nodes of their own, and norms
 * as chains of arithmetic.  Each pass finds one such pattern and puts the one op that does it in place of the last of
 * its nodes.  The result is the same but for the rounding of the steps that are gone. */
#ifndef VG_FUSE_H
#define VG_FUSE_H

#include "net.h"

/* Runs all passes until none finds anything, then removes what nobody uses.  VGK_ERR_NOMEM leaves a net that is still
 * right, fused in part. */
enum vgk_status vg_net_fuse(struct vg_net *);

/* For backends that take it: (c + r) * (sigmoid(c) - k), c a convolution's result that nothing else reads, is computed by
 * the convolution (VGK_ACT_GATE), and so is the rounding of its result (VGK_ACT_QUANTA).  The result is the same to the
 * bit. */
void vg_net_gate(struct vg_net *);

/* For backends that take them: trees of unary and binary ops between other ops become chains (struct vgk_chain), which
 * read and write memory once.  The result is the same to the bit. */
void vg_net_chain(struct vg_net *);

/* Only the last step: what no output needs, goes. */
void vg_net_sweep(struct vg_net *);

#endif
