/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests only: what both instructions do for one product, in plain C, for machines that have neither.  "FP32 FMA with
 * DAZ=FTZ=1, RNE rounding" (the reference that bf16.h names): a fused product and sum, denormals are 0 before and after. */
#ifndef VGK_CPU_BF16_STEP_H
#define VGK_CPU_BF16_STEP_H

#ifdef VGK_BF16_EMULATED
#include <math.h>

static inline float bf16_flush(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
static inline float bf16_step(float sum, float x, float y)
{
    return bf16_flush(fmaf(bf16_flush(x), bf16_flush(y), bf16_flush(sum)));
}
#endif

#endif
