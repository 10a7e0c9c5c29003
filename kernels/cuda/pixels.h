/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For .cu files: where the components of a frame's pixels lie. */
#ifndef VGK_CUDA_PIXELS_H
#define VGK_CUDA_PIXELS_H

#include "elements.h"

/* vgk_frame_halved, for device code, too. */
__host__ __device__ static inline bool halved(const struct vgk_frame &f)
{
    return f.layout == VGK_FRAME_I420 || f.layout == VGK_FRAME_NV12;
}

/* Component k of pixel (x, y). */
__device__ static inline uint8_t *component(const struct vgk_frame &f, int k, int x, int y)
{
    switch (f.layout) {
    case VGK_FRAME_PACKED: return f.plane[0] + y * f.stride[0] + (ptrdiff_t)x * f.step + f.offset[k];
    case VGK_FRAME_PLANAR: return f.plane[k] + y * f.stride[k] + x;
    case VGK_FRAME_I420: return k ? f.plane[k] + y / 2 * f.stride[k] + x / 2 : f.plane[0] + y * f.stride[0] + x;
    case VGK_FRAME_NV12:
        return k ? f.plane[1] + y / 2 * f.stride[1] + x / 2 * 2 + (k - 1) : f.plane[0] + y * f.stride[0] + x;
    }
    return f.plane[0];
}

#endif
