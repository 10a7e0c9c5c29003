/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Video frames and tensors: the way in and the way out.
 *
 * A frame has three components a pixel: R, G, B or Y, Cb, Cr, 8 bits each; chroma may be halved in both directions.
 * One 3 x 4 matrix does colour matrix, range, normalisation and channel order at once:
 *     tensor[k] = m[k][0] * c0 + m[k][1] * c1 + m[k][2] * c2 + m[k][3],    c = bytes 0..255
 * and another one does the way back. */
#ifndef VGK_FRAME_H
#define VGK_FRAME_H

#include "tensor.h"

enum vgk_frame_layout {
    VGK_FRAME_PACKED, /* plane[0], `step` bytes a pixel, component i at byte offset[i] */
    VGK_FRAME_PLANAR, /* component i in plane[i], full size */
    VGK_FRAME_I420,   /* Y; Cb, Cr of (width + 1) / 2 by (height + 1) / 2 */
    VGK_FRAME_NV12,   /* Y; CbCr interleaved, the same size */
};

struct vgk_frame {
    enum vgk_frame_layout layout;
    int width, height; /* pixels */
    uint8_t *plane[3];
    ptrdiff_t stride[3]; /* bytes */
    int step, offset[3];
    int alpha; /* packed: byte of alpha (or of padding) in the pixel, -1 = none */
    bool device; /* planes are addresses of the device's memory, not the host's: for backends that have such */
};

struct vgk_matrix {
    float m[3][4];
};

/* How pixel components map to R, G, B in 0..1. */
struct vgk_colour {
    bool yuv;        /* else the components are R, G, B */
    double kr, kb;   /* of the stream's colour matrix (BT.601: 0.299, 0.114) */
    bool full_range; /* else 16..235 (240 for chroma) */
};

/* How a model's tensor holds R, G, B. */
struct vgk_pixels {
    int order[3];            /* tensor channel k holds component order[k]: 0 R, 1 G, 2 B */
    float mean[3], scale[3]; /* tensor[k] = (rgb[order[k]] - mean[k]) * scale[k], rgb in 0..1 */
};

/* Chroma has half the columns and rows. */
static inline bool vgk_frame_halved(const struct vgk_frame *f)
{
    return f->layout == VGK_FRAME_I420 || f->layout == VGK_FRAME_NV12;
}

/* The pixels from (x, y) on: the same memory.  x and y are even where chroma is halved. */
struct vgk_frame vgk_frame_part(const struct vgk_frame *, int x, int y, int width, int height);

/* Bytes to tensor, and tensor to bytes (before rounding). */
struct vgk_matrix vgk_matrix_in(const struct vgk_colour *c, const struct vgk_pixels *p);
struct vgk_matrix vgk_matrix_out(const struct vgk_colour *c, const struct vgk_pixels *p);

#endif
