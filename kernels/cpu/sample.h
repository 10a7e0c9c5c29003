/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a sample reads and with what weights, along one dimension: shared by the reference and the fast kernel. */
#ifndef VGK_CPU_SAMPLE_H
#define VGK_CPU_SAMPLE_H

#include "cpu.h"

#ifndef VGK_SHARED
#define VGK_SHARED /* for device code: what marks a function as that */
#endif

struct vgk_taps {
    int n;
    int64_t index[4]; /* inside 0..size-1, whatever the place is */
    double weight[4]; /* 0: what is there does not count */
};

/* g: the grid's number for this dimension of `size` pixels; at: the output's place in it. */
VGK_SHARED void vgk_sample_taps(const struct vgk_sample *, double g, int64_t at, int64_t size, struct vgk_taps *);

extern const struct vgk_cpu_family vgk_cpu_sample; /* sample.c: channels-last f32 */

#endif
