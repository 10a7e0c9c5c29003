/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The family that takes every op, in plain C over any strides: the oracle of the tests, the constant folder, and what
 * runs whatever no faster family wants.  Right before fast. */
#include "reference.h"

static bool all_float(const struct vgk_op *op)
{
    for (int i = 0; i < op->n_in; i++)
        if (op->in[i].type != VGK_NONE && !vgk_type_is_float(op->in[i].type))
            return false;
    return vgk_type_is_float(op->out[0].type);
}

/* Nibbles are constants only: they are converted by a copy, and are what conv and matmul weights may be. */
static bool types_fit(const struct vgk_op *op)
{
    bool weights = op->kind == VGK_OP_CONV || op->kind == VGK_OP_CONV_TRANSPOSE || op->kind == VGK_OP_MATMUL;
    for (int i = 0; i < op->n_in; i++)
        if (op->in[i].type != VGK_NONE && vgk_type_bits(op->in[i].type) < 8 && op->kind != VGK_OP_COPY &&
            op->kind != VGK_OP_DEQUANTIZE && !(weights && (i == 1 || i == VGK_WEIGHT_ZERO)))
            return false;
    return vgk_type_bits(op->out[0].type) >= 8;
}

static bool knows(const struct vgk_op *op)
{
    const struct vgk_tensor *y = op->out;
    switch (op->kind) {
    case VGK_OP_COPY: case VGK_OP_BINARY: case VGK_OP_REDUCE: case VGK_OP_RANGE: return true;
    case VGK_OP_UNARY: return vgk_ref_unary_knows(op);
    case VGK_OP_WHERE: return op->in[1].type == y->type && op->in[2].type == y->type;
    case VGK_OP_CONV:
    case VGK_OP_CONV_TRANSPOSE: return vgk_type_is_float(op->in[0].type) && vgk_type_is_float(y->type);
    case VGK_OP_POOL: return vgk_type_class(y->type) == vgk_type_class(op->in[0].type);
    case VGK_OP_RESIZE:
    case VGK_OP_PAD:
    case VGK_OP_GATHER: return op->in[0].type == y->type;
    case VGK_OP_NORM: return all_float(op) && (op->p.norm.kind != VGK_NORM_GROUP || y->rank < VGK_MAX_RANK);
    case VGK_OP_MATMUL:
        return y->rank >= 2 && op->in[0].rank >= 2 && op->in[1].rank >= 2 &&
               (vgk_type_is_float(y->type) || (op->p.matmul.alpha == 1 && op->p.matmul.beta == 1));
    case VGK_OP_SOFTMAX: return all_float(op);
    case VGK_OP_TAKE: return op->in[0].type == y->type && vgk_type_class(op->in[1].type) == VGK_CLASS_I64;
    case VGK_OP_SCATTER:
        return op->in[0].type == y->type && op->in[2].type == y->type && vgk_type_class(op->in[1].type) == VGK_CLASS_I64;
    case VGK_OP_SAMPLE: return all_float(op) && y->rank >= 3 && y->rank <= 2 + VGK_MAX_SPATIAL;
    case VGK_OP_QUANTIZE: return vgk_type_is_float(op->in[0].type) && vgk_type_class(y->type) == VGK_CLASS_I64;
    case VGK_OP_DEQUANTIZE: return vgk_type_class(op->in[0].type) == VGK_CLASS_I64 && vgk_type_is_float(y->type);
    case VGK_OP_ATTENTION:
        return y->rank == 4 && vgk_type_is_float(op->in[0].type) && vgk_type_is_float(op->in[1].type) &&
               vgk_type_is_float(op->in[2].type) && vgk_type_is_float(y->type);
    case VGK_OP_MOMENTS: return vgk_type_is_float(op->in[0].type) && op->in[0].rank == 4;
    case VGK_OP_NORMALISE: return all_float(op) && y->rank == 4;
    case VGK_OP_MERGE: case VGK_OP_CHAIN: break; /* norm.c and chain.c have the only forms */
    }
    return false;
}

static enum vgk_status need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n, struct vgk_error *err)
{
    char in[96], out[96];
    *n = (struct vgk_need){.lattice = {1, 1, 1}};
    if (!types_fit(op) || !knows(op))
        return vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s of %s to %s is not supported on the CPU", vgk_kind_name(op->kind),
                        op->n_in ? vgk_tensor_describe(&op->in[0], in, sizeof in) : "nothing",
                        vgk_tensor_describe(&op->out[0], out, sizeof out));
    bool fits = true;
    switch (op->kind) {
    case VGK_OP_CONV:
    case VGK_OP_CONV_TRANSPOSE: fits = vgk_ref_conv_need(dev, op, n); break;
    case VGK_OP_RESIZE: fits = vgk_ref_resize_scratch(op, &n->scratch); break;
    case VGK_OP_PAD: fits = vgk_ref_pad_scratch(op, &n->scratch); break;
    case VGK_OP_ATTENTION: fits = vgk_ref_attention_scratch(dev, op, &n->scratch); break;
    default: break;
    }
    if (!fits)
        return vgk_fail(err, VGK_ERR_NOMEM, "%s to %s is larger than the address space", vgk_kind_name(op->kind),
                        vgk_tensor_describe(&op->out[0], out, sizeof out));
    return VGK_OK;
}

static enum vgk_status pack(struct vgk_device *dev, const struct vgk_op *op, void *packed, struct vgk_error *err)
{
    if (op->kind == VGK_OP_CONV || op->kind == VGK_OP_CONV_TRANSPOSE)
        vgk_ref_conv_pack(op, packed);
    return VGK_OK;
}

static enum vgk_status run(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                           struct vgk_error *err)
{
    switch (op->kind) {
    case VGK_OP_COPY: vgk_ref_copy(dev, op->in, op->out); break;
    case VGK_OP_UNARY: vgk_ref_unary(dev, op); break;
    case VGK_OP_BINARY: vgk_ref_binary(dev, op); break;
    case VGK_OP_WHERE: vgk_ref_where(dev, op); break;
    case VGK_OP_REDUCE: vgk_ref_reduce(dev, op); break;
    case VGK_OP_CONV:
    case VGK_OP_CONV_TRANSPOSE: vgk_ref_conv(dev, op, packed, scratch); break;
    case VGK_OP_POOL: vgk_ref_pool(dev, op); break;
    case VGK_OP_RESIZE: vgk_ref_resize(dev, op, scratch); break;
    case VGK_OP_PAD: vgk_ref_pad(dev, op, scratch); break;
    case VGK_OP_NORM: vgk_ref_norm(dev, op); break;
    case VGK_OP_MATMUL: vgk_ref_matmul(dev, op); break;
    case VGK_OP_SOFTMAX: vgk_ref_softmax(dev, op); break;
    case VGK_OP_GATHER: return vgk_ref_gather(dev, op, err);
    case VGK_OP_RANGE: vgk_ref_range(dev, op); break;
    case VGK_OP_TAKE: return vgk_ref_take(dev, op, err);
    case VGK_OP_SCATTER: return vgk_ref_scatter(dev, op, err);
    case VGK_OP_SAMPLE: vgk_ref_sample(dev, op); break;
    case VGK_OP_QUANTIZE:
    case VGK_OP_DEQUANTIZE: vgk_ref_quantize(dev, op); break;
    case VGK_OP_ATTENTION: vgk_ref_attention(dev, op, scratch); break;
    case VGK_OP_MOMENTS: vgk_ref_moments(dev, op); break;
    case VGK_OP_NORMALISE: vgk_ref_normalise(dev, op); break;
    case VGK_OP_MERGE: case VGK_OP_CHAIN: break; /* never come here */
    }
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_reference = {"reference", need, pack, run};
