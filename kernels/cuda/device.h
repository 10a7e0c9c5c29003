/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the C files of the CUDA backend share. */
#ifndef VGK_CUDA_DEVICE_H
#define VGK_CUDA_DEVICE_H

#include "../backend.h"
#include "kernels.h"
#include "products.h"

/* A block of device memory. */
struct vgk_cuda_block {
    struct vgk_cuda_block *next;
    void *data;
    size_t bytes;
};

struct vgk_device {
    int device;
    bool in_context; /* see vgk_device_options */
    size_t limit, now, peak;
    size_t described_memory; /* bytes; not 0: a description, nothing can be taken or run */
    struct vgk_dnn *dnn;     /* NULL: own kernels do everything */
    struct vgk_cuda_block *blocks;
    cudaStream_t stream;
    struct vgk_cu_flags *flags, *host_flags; /* on the device; pinned */
    char description[384];
};

/* A status for what the runtime says, with the call that said it. */
enum vgk_status vgk_cuda_fail(struct vgk_error *err, cudaError_t e, const char *call);

#define VGK_CUDA_TRY(call, err) \
    do { \
        cudaError_t e_ = (call); \
        if (e_ != cudaSuccess) \
            return vgk_cuda_fail(err, e_, #call); \
    } while (0)

/* Makes the device's context current, unless whoever calls does. */
static inline cudaError_t vgk_cuda_enter(const struct vgk_device *dev)
{
    return dev->in_context ? cudaSuccess : cudaSetDevice(dev->device);
}

/* frames.c */
size_t vgk_cuda_frame_scratch(const struct vgk_device *, int width, int height);
enum vgk_status vgk_cuda_frame_read(struct vgk_device *, const struct vgk_frame *, const struct vgk_matrix *,
                                    const struct vgk_tensor *, void *scratch, struct vgk_error *);
enum vgk_status vgk_cuda_frame_write(struct vgk_device *, const struct vgk_tensor *, const struct vgk_matrix *,
                                     const float low[3], const float high[3], const struct vgk_frame *alpha,
                                     const struct vgk_frame *, void *scratch, int *nonfinite, struct vgk_error *);

/* operations.c */
enum vgk_status vgk_cuda_need(struct vgk_device *, const struct vgk_op *, struct vgk_need *, struct vgk_error *);
enum vgk_status vgk_cuda_pack(struct vgk_device *, const struct vgk_op *, void *packed, struct vgk_error *);
enum vgk_status vgk_cuda_run(struct vgk_device *, const struct vgk_op *, const void *packed, void *scratch,
                             struct vgk_error *);

#endif
