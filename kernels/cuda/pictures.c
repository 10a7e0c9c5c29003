/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames in the device's memory that are no tensors, and will not be.  Most of them are complete, and nothing that is
 * computed has to be waited for: that work has a stream of its own. */
#include "device.h"

/* Two of one kind, as bytes. */
static enum vgk_status make_pair(const struct vgk_frame *a, const struct vgk_frame *b, struct vgk_cu_pictures *pair,
                                 struct vgk_error *err)
{
    for (int i = 0; i < 3; i++) {
        size_t bytes, rows;
        vgk_cuda_plane(a, i, &bytes, &rows);
        pair->a[i] = a->plane[i];
        pair->b[i] = b->plane[i];
        pair->a_stride[i] = a->stride[i];
        pair->b_stride[i] = b->stride[i];
        pair->bytes[i] = (int64_t)bytes;
        pair->rows[i] = (int64_t)rows;
    }
    if (a->device && b->device && a->layout == b->layout && a->width == b->width && a->height == b->height &&
        (a->layout != VGK_FRAME_PACKED || a->step == b->step))
        return VGK_OK;
    return vgk_fail(err, VGK_ERR_INVALID, "two frames of one layout and size in the device's memory are needed, got "
                    "%dx%d and %dx%d", a->width, a->height, b->width, b->height);
}

static enum vgk_status begin(struct vgk_device *dev, struct vgk_error *err)
{
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    VGK_CUDA_TRY(cudaMemsetAsync(dev->result, 0, sizeof *dev->result, dev->aside), err);
    return VGK_OK;
}

static enum vgk_status end(struct vgk_device *dev, struct vgk_error *err)
{
    VGK_CUDA_TRY(cudaMemcpyAsync(dev->host_result, dev->result, sizeof *dev->result, cudaMemcpyDeviceToHost, dev->aside),
                 err);
    VGK_CUDA_TRY(cudaStreamSynchronize(dev->aside), err);
    return VGK_OK;
}

enum vgk_status vgk_cuda_frame_same(struct vgk_device *dev, const struct vgk_frame *a, const struct vgk_frame *b,
                                    bool *same, struct vgk_error *err)
{
    struct vgk_cu_pictures pair;
    enum vgk_status s = make_pair(a, b, &pair, err);
    s = s ? s : begin(dev, err);
    if (s)
        return s;
    VGK_CUDA_TRY(vgk_cu_same(&pair, &dev->result->differ, dev->aside), err);
    s = end(dev, err);
    *same = !s && !dev->host_result->differ;
    return s;
}

enum vgk_status vgk_cuda_frame_difference(struct vgk_device *dev, const struct vgk_frame *a, const struct vgk_frame *b,
                                          uint64_t *sum, int *worst, struct vgk_error *err)
{
    struct vgk_cu_pictures pair;
    enum vgk_status s = make_pair(a, b, &pair, err);
    s = s ? s : begin(dev, err);
    if (s)
        return s;
    VGK_CUDA_TRY(vgk_cu_difference(a, b, dev->result, dev->aside), err);
    s = end(dev, err);
    *sum = dev->host_result->sum;
    *worst = dev->host_result->worst;
    return s;
}

enum vgk_status vgk_cuda_frame_fade(struct vgk_device *dev, const struct vgk_frame *later,
                                    const struct vgk_frame *earlier, int i, int n, struct vgk_error *err)
{
    struct vgk_cu_pictures pair;
    enum vgk_status s = make_pair(later, earlier, &pair, err);
    if (s)
        return s;
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    VGK_CUDA_TRY(vgk_cu_fade(&pair, (unsigned)(n - i), (unsigned)i + 1, dev->aside), err);
    VGK_CUDA_TRY(cudaStreamSynchronize(dev->aside), err);
    return VGK_OK;
}

/* The device writes into the host's pinned memory by itself: a few bytes, once a frame. */
enum vgk_status vgk_cuda_frame_brightness(struct vgk_device *dev, const struct vgk_frame *frame, int width, int height,
                                          uint8_t *to, struct vgk_error *err)
{
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    VGK_CUDA_TRY(vgk_cu_brightness(frame, width, height, to, dev->aside), err);
    VGK_CUDA_TRY(cudaStreamSynchronize(dev->aside), err);
    return VGK_OK;
}

enum vgk_status vgk_cuda_frame_shrink(struct vgk_device *dev, const struct vgk_frame *from, const struct vgk_frame *to,
                                      struct vgk_error *err)
{
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    VGK_CUDA_TRY(vgk_cu_shrink(from, to, dev->stream), err);
    return VGK_OK;
}
