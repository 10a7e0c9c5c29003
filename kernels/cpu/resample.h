/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of pixels (channels side by side) resized: what resample.c calls, compiled per instruction set. */
#ifndef VGK_CPU_RESAMPLE_H
#define VGK_CPU_RESAMPLE_H

#include "cpu.h"

extern const struct vgk_cpu_family vgk_cpu_resample; /* resample.c: resize of images, channels-last f32 */
extern const struct vgk_cpu_family vgk_cpu_pad;      /* resample.c: pad of images, channels-last, any type */

#define VGK_RESAMPLE_SLACK 4 /* floats behind `src` of across that it may read */

struct vgk_resample_rows {
    /* d[i] = sum over t of weight[t] * rows[t][i] */
    void (*down)(float *d, const float *const *rows, const float *weight, int taps, int64_t n);
    /* pixel x of dst = sum over t of weight[x * taps + t] * pixel index[x * taps + t] of src, which is dense */
    void (*across)(float *dst, int64_t dst_pixel, const float *src, int64_t channels, const int32_t *index,
                   const float *weight, int taps, int64_t n);
    /* pixel x of dst = pixel index[x] of src */
    void (*nearest)(float *dst, int64_t dst_pixel, const float *src, int64_t src_pixel, int64_t channels,
                    const int32_t *index, int64_t n);
};

extern const struct vgk_resample_rows vgk_resample_rows_generic;
#ifdef __x86_64__
extern const struct vgk_resample_rows vgk_resample_rows_avx2, vgk_resample_rows_avx512;
#endif

#endif
