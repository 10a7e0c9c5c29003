/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "products.h"

#include <string.h>

#include "kernels.h"

/* cuDNN pads with zeros only.  What is reflected or repeated is written out first, in front of the workspace.  Negative
 * padding (bands have it: rows that are there, but not for the first tap) is left out afterwards: those rows may still be
 * reflected. */
struct padded {
    bool is;
    struct vgk_op conv, pad;
    struct vgk_tensor in[VGK_CONV_INPUTS], picture;
    size_t bytes, skipped; /* skipped: from the picture's first byte to the first that the convolution reads */
};

#define ALIGNMENT 16 /* of what cuDNN reads */

static bool padding_of(const struct vgk_op *op, struct padded *p)
{
    const struct vgk_conv *c = &op->p.conv;
    p->is = op->kind == VGK_OP_CONV && c->pad_mode != VGK_PAD_CONSTANT;
    p->bytes = 0;
    if (!p->is)
        return true;
    p->pad = (struct vgk_op){.kind = VGK_OP_PAD, .n_in = 1, .n_out = 1, .in = op->in, .out = &p->picture};
    p->pad.p.pad.mode = c->pad_mode;
    int64_t dim[VGK_MAX_RANK], *begin = p->pad.p.pad.begin, *end = p->pad.p.pad.end;
    memcpy(dim, op->in->dim, sizeof dim);
    for (int d = 0; d < c->spatial; d++) {
        begin[2 + d] = c->pad_begin[d] > 0 ? c->pad_begin[d] : 0;
        end[2 + d] = c->pad_end[d] > 0 ? c->pad_end[d] : 0;
        dim[2 + d] += begin[2 + d] + end[2 + d];
    }
    p->picture = vgk_tensor_make(op->in->type, op->in->rank, dim, VGK_CHANNELS_LAST);
    memcpy(p->in, op->in, op->n_in * sizeof *op->in);
    p->in[0] = p->picture;
    p->skipped = 0;
    for (int d = 0; d < c->spatial; d++) {
        int64_t before = begin[2 + d] - c->pad_begin[d], behind = end[2 + d] - c->pad_end[d];
        p->in[0].dim[2 + d] -= before + behind;
        p->skipped += (size_t)(before * p->picture.stride[2 + d]) * (size_t)vgk_type_bits(p->picture.type) / 8;
    }
    p->conv = *op;
    p->conv.in = p->in;
    p->conv.p.conv.pad_mode = VGK_PAD_CONSTANT;
    memset(p->conv.p.conv.pad_begin, 0, sizeof p->conv.p.conv.pad_begin);
    memset(p->conv.p.conv.pad_end, 0, sizeof p->conv.p.conv.pad_end);
    if (!vgk_tensor_bytes(&p->picture, &p->bytes))
        return false;
    p->bytes = vgk_round_up(p->bytes + ALIGNMENT, VGK_ALIGN);
    return true;
}

static enum vgk_status find(struct vgk_dnn *dnn, size_t max_workspace, const struct vgk_op *op, struct padded *p,
                            struct vgk_dnn_plan **plan, struct vgk_error *err)
{
    if (!padding_of(op, p))
        return vgk_fail(err, VGK_ERR_NOMEM, "a padded picture that is larger than the address space");
    return vgk_dnn_plan(dnn, p->is ? &p->conv : op, max_workspace, plan, err);
}

enum vgk_status vgk_cuda_product_need(struct vgk_dnn *dnn, size_t max_workspace, const struct vgk_op *op,
                                      struct vgk_need *need, struct vgk_error *err)
{
    struct padded p;
    struct vgk_dnn_plan *plan;
    enum vgk_status s = find(dnn, max_workspace, op, &p, &plan, err);
    if (s)
        return s;
    need->packed = vgk_dnn_plan_packed(plan);
    need->scratch = p.bytes + vgk_dnn_plan_workspace(plan);
    need->how = vgk_dnn_plan_describe(plan);
    return VGK_OK;
}

enum vgk_status vgk_cuda_product_pack(struct vgk_dnn *dnn, size_t max_workspace, const struct vgk_op *op, void *host,
                                      struct vgk_error *err)
{
    struct padded p;
    struct vgk_dnn_plan *plan;
    enum vgk_status s = find(dnn, max_workspace, op, &p, &plan, err);
    return s ? s : vgk_dnn_pack(dnn, plan, op, host, err);
}

enum vgk_status vgk_cuda_product_run(struct vgk_dnn *dnn, size_t max_workspace, const struct vgk_op *op,
                                     const void *packed, void *scratch, cudaStream_t stream, struct vgk_error *err)
{
    struct padded p;
    struct vgk_dnn_plan *plan;
    enum vgk_status s = find(dnn, max_workspace, op, &p, &plan, err);
    if (!s)
        s = vgk_dnn_build(plan, err);
    if (s)
        return s;
    if (p.is) {
        size_t off = p.skipped % ALIGNMENT;
        p.picture.data = (char *)scratch + (off ? ALIGNMENT - off : 0);
        p.in[0].data = (char *)p.picture.data + p.skipped;
        cudaError_t e = vgk_cu_pad(&p.pad, stream);
        if (e != cudaSuccess)
            return vgk_fail(err, VGK_ERR_DEVICE, "padding: %s", cudaGetErrorString(e));
    }
    void *workspace = vgk_dnn_plan_workspace(plan) ? (char *)scratch + p.bytes : NULL;
    return vgk_dnn_run(dnn, plan, p.is ? &p.conv : op, packed, workspace, stream, err);
}
