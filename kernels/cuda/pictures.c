/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames in the device's memory, as bytes.  They are complete, so nothing that is computed has to be waited for: the work
 * has a stream of its own. */
#include "device.h"

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
    return vgk_fail(err, VGK_ERR_INVALID, "two frames of one layout and size in the device's memory are needed, got %dx%d and "
                    "%dx%d", a->width, a->height, b->width, b->height);
}

enum vgk_status vgk_cuda_frame_same(struct vgk_device *dev, const struct vgk_frame *a, const struct vgk_frame *b,
                                    bool *same, struct vgk_error *err)
{
    struct vgk_cu_pictures pair;
    enum vgk_status s = make_pair(a, b, &pair, err);
    if (s)
        return s;
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    VGK_CUDA_TRY(cudaMemsetAsync(dev->differ, 0, sizeof *dev->differ, dev->aside), err);
    VGK_CUDA_TRY(vgk_cu_same(&pair, dev->differ, dev->aside), err);
    VGK_CUDA_TRY(cudaMemcpyAsync(dev->host_differ, dev->differ, sizeof *dev->differ, cudaMemcpyDeviceToHost, dev->aside),
                 err);
    VGK_CUDA_TRY(cudaStreamSynchronize(dev->aside), err);
    *same = !*dev->host_differ;
    return VGK_OK;
}
