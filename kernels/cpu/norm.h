/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Statistics over the pixels of channels-last tensors and what is done with them: what norm.c calls, compiled per
 * instruction set. */
#ifndef VGK_CPU_NORM_H
#define VGK_CPU_NORM_H

#include "cpu.h"

/* norm.c: norms of images, channels-last f32 */
extern const struct vgk_cpu_family vgk_cpu_moments, vgk_cpu_merge, vgk_cpu_normalise;
extern const struct vgk_cpu_family vgk_cpu_reduce;  /* norm.c: sums and means over all pixels, channels-last f32 */
extern const struct vgk_cpu_family vgk_cpu_norm_last; /* norm_last.c: layer and RMS norms, f32 */
extern const struct vgk_cpu_family vgk_cpu_softmax; /* norm.c: along f32 rows */

/* y = act((x - mean) * factor + bias), per channel. */
struct vgk_norm_row {
    const float *mean, *factor, *bias;
    enum vgk_act act;
    float alpha, beta;
};

struct vgk_norm_rows {
    /* sum[c] += x - shift, square[c] += (x - shift)^2 over n pixels. */
    void (*add)(const float *x, int64_t pixel, int64_t n, int64_t channels, const float *shift, double *sum,
                double *square);
    /* n pixels; residual may be NULL, else it is added last. */
    void (*apply)(float *y, int64_t y_pixel, const float *x, int64_t x_pixel, const float *residual,
                  int64_t residual_pixel, int64_t n, int64_t channels, const struct vgk_norm_row *);
    /* One row of n. */
    void (*softmax)(float *y, const float *x, int64_t n);
    /* One row of n: (x - mean) / sqrt(mean square + epsilon) * gain + bias, the mean only when centred; gain and bias
     * [n] may be NULL. */
    void (*row)(float *y, const float *x, int64_t n, bool centred, float epsilon, const float *gain, const float *bias);
};

extern const struct vgk_norm_rows vgk_norm_rows_generic;
#ifdef __x86_64__
extern const struct vgk_norm_rows vgk_norm_rows_avx2, vgk_norm_rows_avx512;
#endif

#endif
