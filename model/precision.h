/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Half precision: a pass over a fused net that stores activations in f16.  Kernels still add up in f32 (norms' statistics
 * in f64); what overflows becomes infinite, and a tile whose output is not finite is run again in f32 (plan.h).
 *
 * Kept in f32 are constants, parameters and what follows from them alone, buffers that outlive the frame, and:
 * - statistics: results of reductions, moments and figures of norms;
 * - the input of a softmax, both sides of exponentials, logarithms, powers, roots and reciprocals, and what is divided
 *   by an activation;
 * - places that are sampled at, and the arithmetic that they come from;
 * - the outputs, unless a convolution makes the picture and the backend writes frames from half tensors. */
#ifndef VG_PRECISION_H
#define VG_PRECISION_H

#include "net.h"

/* BF16 is no such pass: all that is stored stays f32, but convolutions and matrix products round their operands to bf16
 * where the backend's kernels can (kernels/backend.h), and take no Winograd.  bf16 has f32's range, so nothing overflows that
 * would not in f32, and no tile has to be run again. */
enum vg_precision { VG_PRECISION_AUTO, VG_PRECISION_FP32, VG_PRECISION_FP16, VG_PRECISION_BF16 };
const char *vg_precision_name(enum vg_precision); /* "auto", "fp32" ... */

/* picture: which of the net's outputs is the frame's.  frames: the backend reads and writes frames in half. */
enum vgk_status vg_net_halve(struct vg_net *, int picture, bool frames);

#endif
