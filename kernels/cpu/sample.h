/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a sample reads and with what weights. */
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

/* Along one dimension, for the reference.
 * g: the grid's number for this dimension of `size` pixels; at: the output's place in it. */
VGK_SHARED void vgk_sample_taps(const struct vgk_sample *, double g, int64_t at, int64_t size, struct vgk_taps *);

/* A row of places along the last dimension, compiled per instruction set (sample_vector.c). */
struct vgk_sample_row {
    const struct vgk_sample *how;
    int spatial;
    int64_t channels, n; /* side by side; places */
    const float *x;
    float *y;
    int64_t y_step, grid_step; /* from a place to the next */
    struct vgk_sample_axis {
        const float *grid;  /* its number for the first place */
        int64_t at, size;   /* where that is among the output's; pixels of x */
        int32_t stride;     /* of x */
    } axis[VGK_MAX_SPATIAL];
};
struct vgk_sample_rows {
    void (*row)(const struct vgk_sample_row *);
};
extern const struct vgk_sample_rows vgk_sample_rows_generic;
#ifdef __x86_64__
extern const struct vgk_sample_rows vgk_sample_rows_avx2, vgk_sample_rows_avx512;
#endif

extern const struct vgk_cpu_family vgk_cpu_sample; /* sample.c: channels-last f32 */

#endif
