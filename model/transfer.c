/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "transfer.h"

#include <stdlib.h>

static enum vgk_status convert(const struct vgk_backend *backend, struct vgk_device *device, const struct vgk_tensor *src,
                               const struct vgk_tensor *dst, struct vgk_error *err)
{
    struct vgk_op op = {.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = src, .out = dst};
    struct vgk_need need = {0};
    enum vgk_status s = backend->need(device, &op, &need, err);
    return s ? s : backend->run(device, &op, NULL, NULL, err);
}

/* Other devices' tensors are taken to host memory as they lie, holes included, and back; what lies there just as here
 * (statistics do, and numbers) goes at once. */
static enum vgk_status across(const struct vg_plan *p, const struct vgk_tensor *src, const struct vgk_tensor *dst,
                              bool inward, struct vgk_error *err)
{
    const struct vgk_tensor *far = inward ? dst : src;
    struct vgk_tensor near = *far;
    if (!p->host)
        return convert(p->backend, p->device, src, dst, err);
    if (!vgk_tensor_count(far))
        return VGK_OK;
    size_t each = (size_t)vgk_type_bits(far->type) / 8;
    if (src->type == dst->type && vgk_tensor_is_dense(src, VGK_ROW_MAJOR) && vgk_tensor_is_dense(dst, VGK_ROW_MAJOR)) {
        size_t bytes = (size_t)vgk_tensor_count(far) * each;
        return inward ? p->backend->upload(p->device, src->data, dst->data, bytes, err)
                      : p->backend->download(p->device, src->data, dst->data, bytes, err);
    }
    int64_t low = 0, high = 0;
    for (int d = 0; d < far->rank; d++)
        *(far->stride[d] < 0 ? &low : &high) += (far->dim[d] - 1) * far->stride[d];
    size_t bytes = (size_t)(high - low + 1) * each;
    char *block = malloc(bytes), *begin = (char *)far->data + low * (int64_t)each;
    if (!block)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for %zu bytes", bytes);
    near.data = block - low * (int64_t)each;
    enum vgk_status s = p->backend->download(p->device, begin, block, bytes, err);
    if (!s)
        s = convert(&vgk_cpu, p->host, inward ? src : &near, inward ? &near : dst, err);
    if (!s && inward)
        s = p->backend->upload(p->device, block, begin, bytes, err);
    free(block);
    return s;
}

enum vgk_status vg_copy(const struct vg_plan *p, const struct vgk_tensor *src, const struct vgk_tensor *dst,
                        struct vgk_error *err)
{
    return convert(p->backend, p->device, src, dst, err);
}

enum vgk_status vg_copy_in(const struct vg_plan *p, const struct vgk_tensor *src, const struct vgk_tensor *dst,
                           struct vgk_error *err)
{
    return across(p, src, dst, true, err);
}

enum vgk_status vg_copy_out(const struct vg_plan *p, const struct vgk_tensor *src, const struct vgk_tensor *dst,
                            struct vgk_error *err)
{
    return across(p, src, dst, false, err);
}

enum vgk_status vg_fill(const struct vg_plan *p, float value, const struct vgk_tensor *to, struct vgk_error *err)
{
    struct vgk_tensor one = {.type = VGK_F32, .data = &value}, src;
    vgk_tensor_broadcast(&one, to->rank, to->dim, &src);
    return vg_copy_in(p, &src, to, err);
}
