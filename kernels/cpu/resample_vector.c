/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "resample.h"
#include "simd.h"

#include <string.h>

/* Sums begin with 0: of a product plus a product, either may be fused into the other, and gcc need not choose alike for
 * the last vector and those before it. */
INLINE void down_taps(float *d, const float *const *rows, const float *weight, const int taps, int64_t n)
{
    for (int64_t i = 0; i < n; i += VL) {
        int have = n - i < VL ? (int)(n - i) : VL;
        vf sum = {0};
        for (int t = 0; t < taps; t++)
            sum += load_n(rows[t] + i, have) * weight[t];
        store_n(d + i, sum, have);
    }
}

static void down(float *d, const float *const *rows, const float *weight, int taps, int64_t n)
{
    if (taps == 4)
        down_taps(d, rows, weight, 4, n);
    else if (taps == 2)
        down_taps(d, rows, weight, 2, n);
    else
        down_taps(d, rows, weight, taps, n);
}

typedef float v4 __attribute__((vector_size(16)));
typedef float v4_any __attribute__((vector_size(16), aligned(4), may_alias));

/* Up to four channels in one small vector; what is behind the last is not kept. */
INLINE void across_few(float *dst, int64_t dst_pixel, const float *src, const int64_t channels, const int32_t *index,
                       const float *weight, const int taps, int64_t n)
{
    for (int64_t x = 0; x < n; x++, index += taps, weight += taps, dst += dst_pixel) {
        v4 sum = {0};
        for (int t = 0; t < taps; t++)
            sum += *(const v4_any *)(src + index[t] * channels) * weight[t];
        memcpy(dst, &sum, (size_t)channels * sizeof(float));
    }
}

static void across(float *dst, int64_t dst_pixel, const float *src, int64_t channels, const int32_t *index,
                   const float *weight, int taps, int64_t n)
{
    if (channels == 3 && taps == 4) {
        across_few(dst, dst_pixel, src, 3, index, weight, 4, n);
    } else if (channels == 3) {
        across_few(dst, dst_pixel, src, 3, index, weight, taps, n);
    } else if (channels <= 4) {
        across_few(dst, dst_pixel, src, channels, index, weight, taps, n);
    } else {
        for (int64_t x = 0; x < n; x++, index += taps, weight += taps, dst += dst_pixel)
            for (int64_t c = 0; c < channels; c += VL) {
                int have = channels - c < VL ? (int)(channels - c) : VL;
                vf sum = {0};
                for (int t = 0; t < taps; t++)
                    sum += load_n(src + index[t] * channels + c, have) * weight[t];
                store_n(dst + c, sum, have);
            }
    }
}

INLINE void nearest_channels(float *dst, int64_t dst_pixel, const float *src, int64_t src_pixel, const int64_t channels,
                             const int32_t *index, int64_t n)
{
    for (int64_t x = 0; x < n; x++)
        for (int64_t c = 0; c < channels; c++)
            dst[x * dst_pixel + c] = src[index[x] * src_pixel + c];
}

static void nearest(float *dst, int64_t dst_pixel, const float *src, int64_t src_pixel, int64_t channels,
                    const int32_t *index, int64_t n)
{
    if (channels == 3)
        nearest_channels(dst, dst_pixel, src, src_pixel, 3, index, n);
    else if (channels < 16)
        nearest_channels(dst, dst_pixel, src, src_pixel, channels, index, n);
    else
        for (int64_t x = 0; x < n; x++)
            for (int64_t c = 0; c < channels; c += VL) {
                int have = channels - c < VL ? (int)(channels - c) : VL;
                store_n(dst + x * dst_pixel + c, load_n(src + index[x] * src_pixel + c, have), have);
            }
}

const struct vgk_resample_rows VGK_SET(vgk_resample_rows) = {down, across, nearest};
