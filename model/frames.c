/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "frames.h"

#include <stdlib.h>

struct component {
    uint8_t *data;
    ptrdiff_t stride;
    int step, width, height;
    int shift; /* 1: half the size of the frame */
};

static struct component component(const struct vgk_frame *f, int k)
{
    bool half = k && vgk_frame_halved(f);
    struct component c = {.step = 1, .width = f->width, .height = f->height, .shift = half};
    int plane = f->layout == VGK_FRAME_PACKED ? 0 : f->layout == VGK_FRAME_NV12 ? k > 0 : k;
    c.data = f->plane[plane];
    c.stride = f->stride[plane];
    if (half) {
        c.width = (c.width + 1) / 2;
        c.height = (c.height + 1) / 2;
    }
    if (f->layout == VGK_FRAME_PACKED) {
        c.data += f->offset[k];
        c.step = f->step;
    } else if (f->layout == VGK_FRAME_NV12 && k) {
        c.data += k - 1;
        c.step = 2;
    }
    return c;
}

struct vgk_frame vg_frame_like(const struct vgk_frame *like, int width, int height, uint8_t *memory)
{
    struct vgk_frame f = *like;
    bool packed = f.layout == VGK_FRAME_PACKED, planar = f.layout == VGK_FRAME_PLANAR;
    int half_w = (width + 1) / 2, half_h = (height + 1) / 2;
    f.width = width;
    f.height = height;
    f.plane[0] = memory;
    f.stride[0] = packed ? (ptrdiff_t)width * f.step : width;
    f.stride[1] = f.stride[2] = planar ? width : f.layout == VGK_FRAME_NV12 ? 2 * half_w : half_w;
    f.plane[1] = packed ? NULL : memory + f.stride[0] * height;
    f.plane[2] = packed || f.layout == VGK_FRAME_NV12 ? NULL : f.plane[1] + f.stride[1] * (planar ? height : half_h);
    return f;
}

void vg_frame_shrink(const struct vgk_frame *from, const struct vgk_frame *to)
{
    for (int k = 0; k < 3; k++) {
        struct component a = component(from, k), b = component(to, k);
        for (int y = 0; y < b.height; y++)
            for (int x = 0; x < b.width; x++) {
                int left = (int)((int64_t)x * a.width / b.width), right = (int)((int64_t)(x + 1) * a.width / b.width);
                int top = (int)((int64_t)y * a.height / b.height), end = (int)((int64_t)(y + 1) * a.height / b.height);
                right += right == left; /* a size that is rounded up to the model's alignment may be larger than the frame's */
                end += end == top;
                unsigned sum = 0, n = (unsigned)((right - left) * (end - top));
                for (int v = top; v < end; v++)
                    for (int u = left; u < right; u++)
                        sum += a.data[v * a.stride + (ptrdiff_t)u * a.step];
                b.data[y * b.stride + (ptrdiff_t)x * b.step] = (uint8_t)((sum + n / 2) / n);
            }
    }
}

uint64_t vg_frame_values(const struct vgk_frame *f)
{
    uint64_t n = 0;
    for (int k = 0; k < 3; k++) {
        struct component c = component(f, k);
        n += (uint64_t)c.width * (uint64_t)c.height;
    }
    return n;
}

void vg_frame_compare(const struct vgk_frame *fa, int x, int y, int width, int height, const struct vgk_frame *fb, int bx,
                      int by, struct vg_difference *d)
{
    for (int k = 0; k < 3; k++) {
        struct component a = component(fa, k), b = component(fb, k);
        int up = (1 << a.shift) - 1;
        int64_t sum = 0;
        int w = ((x + width + up) >> a.shift) - (x >> a.shift), h = ((y + height + up) >> a.shift) - (y >> a.shift);
        for (int v = 0; v < h; v++) {
            const uint8_t *p = a.data + ((y >> a.shift) + v) * a.stride + (ptrdiff_t)(x >> a.shift) * a.step;
            const uint8_t *q = b.data + ((by >> b.shift) + v) * b.stride + (ptrdiff_t)(bx >> b.shift) * b.step;
            for (int u = 0; u < w; u++) {
                int off = abs(p[u * a.step] - q[u * b.step]);
                sum += off;
                d->worst = off > d->worst ? off : d->worst;
            }
        }
        d->sum += (double)sum;
        d->values += (uint64_t)w * (uint64_t)h;
    }
}
