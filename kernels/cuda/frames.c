/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames in host memory: their bytes go to the device as they are, and the pixels are worked on there.  Frames in the
 * device's memory are worked on where they lie. */
#include "device.h"

#define PITCH 16

void vgk_cuda_plane(const struct vgk_frame *f, int i, size_t *width, size_t *rows)
{
    size_t w = (size_t)f->width, h = (size_t)f->height;
    *rows = 0;
    *width = 0;
    switch (f->layout) {
    case VGK_FRAME_PACKED: *rows = i ? 0 : h, *width = w * (size_t)f->step; break;
    case VGK_FRAME_PLANAR: *rows = h, *width = w; break;
    case VGK_FRAME_I420: *rows = i ? (h + 1) / 2 : h, *width = i ? (w + 1) / 2 : w; break;
    case VGK_FRAME_NV12: *rows = i > 1 ? 0 : i ? (h + 1) / 2 : h, *width = i ? (w + 1) / 2 * 2 : w; break;
    }
}

uint8_t *vgk_cuda_stage(const struct vgk_frame *f, uint8_t *to, struct vgk_frame *staged)
{
    *staged = *f;
    for (int i = 0; i < 3; i++) {
        size_t width, rows;
        vgk_cuda_plane(f, i, &width, &rows);
        staged->plane[i] = to;
        staged->stride[i] = (ptrdiff_t)vgk_round_up(width, PITCH);
        to += vgk_round_up((size_t)staged->stride[i] * rows, VGK_ALIGN);
    }
    return to;
}

/* The same frame in device memory: itself, or room from `to` on; returns what is behind that. */
static uint8_t *stage(const struct vgk_frame *f, uint8_t *to, struct vgk_frame *staged)
{
    if (!f->device)
        return vgk_cuda_stage(f, to, staged);
    *staged = *f;
    return to;
}

/* Any layout: four bytes a pixel are the most that one takes. */
size_t vgk_cuda_frame_scratch(const struct vgk_device *dev, int width, int height)
{
    return 3 * VGK_ALIGN + (4 * (size_t)width + 3 * PITCH) * (size_t)height;
}

/* Between a frame and where it is staged, unless it is there already. */
static enum vgk_status copy_planes(struct vgk_device *dev, const struct vgk_frame *from, const struct vgk_frame *to,
                                   enum cudaMemcpyKind kind, struct vgk_error *err)
{
    if (from->device)
        return VGK_OK;
    for (int i = 0; i < 3; i++) {
        size_t width, rows;
        vgk_cuda_plane(from, i, &width, &rows);
        if (rows)
            VGK_CUDA_TRY(cudaMemcpy2DAsync(to->plane[i], (size_t)to->stride[i], from->plane[i], (size_t)from->stride[i], width,
                                           rows, kind, dev->stream), err);
    }
    return VGK_OK;
}

static enum vgk_status check(const struct vgk_tensor *t, const struct vgk_frame *f, struct vgk_error *err)
{
    char text[96];
    if ((t->type == VGK_F32 || t->type == VGK_F16) && t->rank == 4 && t->dim[0] == 1 && t->dim[1] == 3 && f->width > 0 &&
        f->height > 0 && t->dim[2] >= f->height && t->dim[3] >= f->width)
        return VGK_OK;
    return vgk_fail(err, VGK_ERR_INVALID, "a frame of %d x %d needs a tensor f16 or f32[1,3,H,W] of that size or larger, got "
                    "%s", f->width, f->height, vgk_tensor_describe(t, text, sizeof text));
}

enum vgk_status vgk_cuda_frame_read(struct vgk_device *dev, const struct vgk_frame *src, const struct vgk_matrix *matrix,
                                    const struct vgk_tensor *dst, void *scratch, struct vgk_error *err)
{
    struct vgk_frame staged;
    enum vgk_status s = check(dst, src, err);
    if (s)
        return s;
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    stage(src, scratch, &staged);
    if ((s = copy_planes(dev, src, &staged, cudaMemcpyHostToDevice, err)))
        return s;
    VGK_CUDA_TRY(vgk_cu_frame_read(&staged, matrix, dst, dev->stream), err);
    return VGK_OK;
}

enum vgk_status vgk_cuda_frame_write(struct vgk_device *dev, const struct vgk_tensor *src,
                                     const struct vgk_matrix *matrix, const float low[3], const float high[3],
                                     const struct vgk_frame *alpha, const struct vgk_frame *dst, void *scratch,
                                     int *nonfinite, struct vgk_error *err)
{
    struct vgk_frame staged, staged_alpha;
    bool keeps_alpha = dst->layout == VGK_FRAME_PACKED && dst->alpha >= 0 && alpha &&
                       alpha->layout == VGK_FRAME_PACKED && alpha->alpha >= 0;
    enum vgk_status s = check(src, dst, err);
    if (s)
        return s;
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    uint8_t *behind = stage(dst, scratch, &staged);
    if (keeps_alpha) {
        stage(alpha, behind, &staged_alpha);
        if ((s = copy_planes(dev, alpha, &staged_alpha, cudaMemcpyHostToDevice, err)))
            return s;
    }
    if (dev->in_flight && dev->before_write) {
        VGK_CUDA_TRY(cudaStreamWaitEvent(dev->stream, dev->before_write, 0), err);
        dev->before_write = NULL;
    }
    VGK_CUDA_TRY(vgk_cu_frame_write(src, matrix, low, high, keeps_alpha ? &staged_alpha : NULL, &staged, dev->flags,
                                    dev->stream), err);
    if (dev->in_flight)
        return VGK_OK;
    if ((s = copy_planes(dev, &staged, dst, cudaMemcpyDeviceToHost, err)))
        return s;
    VGK_CUDA_TRY(cudaMemcpyAsync(dev->host_flags, dev->flags, sizeof *dev->flags, cudaMemcpyDeviceToHost, dev->stream), err);
    VGK_CUDA_TRY(cudaMemsetAsync(dev->flags, 0, sizeof *dev->flags, dev->stream), err);
    VGK_CUDA_TRY(cudaStreamSynchronize(dev->stream), err);
    if (nonfinite)
        *nonfinite = dev->host_flags->nonfinite;
    if (dev->host_flags->bad_index)
        return vgk_fail(err, VGK_ERR_INVALID, VGK_CUDA_BAD_INDEX);
    return VGK_OK;
}
