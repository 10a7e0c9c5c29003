/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The launchers: what backend.c calls, one a family of operations.  Each puts kernels on the stream and returns the
 * launch's status; tensors' data are device addresses.  Kernels take any strides and types; channels-last half and
 * float tensors whose rows are aligned go eight elements at a time. */
#ifndef VGK_CUDA_KERNELS_H
#define VGK_CUDA_KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "../frame.h"
#include "../ops.h"

/* What kernels report; in device memory, read with the frame. */
struct vgk_cu_flags {
    int nonfinite; /* values of the written frame that are NaN or infinite */
    int bad_index; /* an index outside of its dimension */
};

/* pointwise.cu */
cudaError_t vgk_cu_copy(const struct vgk_op *, cudaStream_t);
cudaError_t vgk_cu_unary(const struct vgk_op *, cudaStream_t);
cudaError_t vgk_cu_binary(const struct vgk_op *, cudaStream_t);
cudaError_t vgk_cu_chain(const struct vgk_op *, cudaStream_t);
cudaError_t vgk_cu_where(const struct vgk_op *, cudaStream_t);
cudaError_t vgk_cu_quantize(const struct vgk_op *, cudaStream_t); /* both ways */

/* conv.cu: weights are [group][tap][cin][cout] of a group, depthwise [tap][channel]; half if x is, else
 * float */
cudaError_t vgk_cu_conv(const struct vgk_op *, const void *packed, cudaStream_t);

/* matmul.cu */
cudaError_t vgk_cu_matmul(const struct vgk_op *, cudaStream_t);
cudaError_t vgk_cu_attention(const struct vgk_op *, cudaStream_t);

/* reduce.cu */
cudaError_t vgk_cu_reduce(const struct vgk_op *, cudaStream_t);
cudaError_t vgk_cu_softmax(const struct vgk_op *, cudaStream_t);

/* norm.cu */
cudaError_t vgk_cu_norm(const struct vgk_op *, cudaStream_t);
cudaError_t vgk_cu_moments(const struct vgk_op *, cudaStream_t);
cudaError_t vgk_cu_merge(const struct vgk_op *, cudaStream_t);
cudaError_t vgk_cu_normalise(const struct vgk_op *, cudaStream_t);

/* move.cu.  Resize's tables (int32 index, float weight: [out][taps] each, axis by axis) are those of the whole axis. */
cudaError_t vgk_cu_pool(const struct vgk_op *, cudaStream_t);
cudaError_t vgk_cu_resize(const struct vgk_op *, const void *tables, cudaStream_t);
cudaError_t vgk_cu_pad(const struct vgk_op *, cudaStream_t);
cudaError_t vgk_cu_sample(const struct vgk_op *, cudaStream_t);

/* index.cu */
cudaError_t vgk_cu_gather(const struct vgk_op *, struct vgk_cu_flags *, cudaStream_t);
cudaError_t vgk_cu_take(const struct vgk_op *, struct vgk_cu_flags *, cudaStream_t);
cudaError_t vgk_cu_scatter(const struct vgk_op *, struct vgk_cu_flags *, cudaStream_t);
cudaError_t vgk_cu_range(const struct vgk_op *, cudaStream_t);

/* pictures.cu; what is found in two frames, all 0 before */
struct vgk_cu_result {
    int differ, worst;
    unsigned long long sum; /* of |a - b| */
};
/* Two frames of one layout and size, by planes of bytes; addresses are the device's */
struct vgk_cu_pictures {
    uint8_t *a[3];
    const uint8_t *b[3];
    ptrdiff_t a_stride[3], b_stride[3];
    int64_t bytes[3], rows[3]; /* of a row; of the plane, 0 = none */
};
cudaError_t vgk_cu_same(const struct vgk_cu_pictures *, int *differ, cudaStream_t);
cudaError_t vgk_cu_fade(const struct vgk_cu_pictures *, unsigned before, unsigned now, cudaStream_t); /* to a */
cudaError_t vgk_cu_difference(const struct vgk_frame *, const struct vgk_frame *, struct vgk_cu_result *, cudaStream_t);
cudaError_t vgk_cu_shrink(const struct vgk_frame *from, const struct vgk_frame *to, cudaStream_t);
cudaError_t vgk_cu_brightness(const struct vgk_frame *, int width, int height, uint8_t *to, cudaStream_t);

/* frame.cu: planes are device addresses */
cudaError_t vgk_cu_frame_read(const struct vgk_frame *, const struct vgk_matrix *, const struct vgk_tensor *,
                              cudaStream_t);
cudaError_t vgk_cu_frame_write(const struct vgk_tensor *, const struct vgk_matrix *, const float low[3],
                               const float high[3], const struct vgk_frame *alpha, const struct vgk_frame *,
                               struct vgk_cu_flags *, cudaStream_t);

#ifdef __cplusplus
}
#endif

#endif
