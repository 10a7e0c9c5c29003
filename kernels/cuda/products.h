/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Convolutions, products and attention by cuDNN, as the backend asks for them: what vgk_backend's need, pack and run do for
 * one operation.  UNSUPPORTED from need: own kernels take it; the same operation gets the same answer every time. */
#ifndef VGK_CUDA_PRODUCTS_H
#define VGK_CUDA_PRODUCTS_H

#include <cuda_runtime_api.h>

#include "../backend.h"
#include "dnn.h"

/* max_workspace: engines that need more are passed over. */
enum vgk_status vgk_cuda_product_need(struct vgk_dnn *, size_t max_workspace, const struct vgk_op *, struct vgk_need *,
                                      struct vgk_error *);
/* need.packed bytes, in host memory. */
enum vgk_status vgk_cuda_product_pack(struct vgk_dnn *, size_t max_workspace, const struct vgk_op *, void *host,
                                      struct vgk_error *);
/* The first time for a shape it finalises the plan, which may compile, for seconds. */
enum vgk_status vgk_cuda_product_run(struct vgk_dnn *, size_t max_workspace, const struct vgk_op *, const void *packed,
                                     void *scratch, cudaStream_t, struct vgk_error *);

#endif
