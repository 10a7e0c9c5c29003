/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ops.h"

const char *vgk_kind_name(enum vgk_kind kind)
{
    static const char *const names[] = {
        [VGK_OP_COPY] = "copy",       [VGK_OP_UNARY] = "unary",   [VGK_OP_BINARY] = "binary",
        [VGK_OP_WHERE] = "where",     [VGK_OP_REDUCE] = "reduce", [VGK_OP_CONV] = "conv",
        [VGK_OP_CONV_TRANSPOSE] = "conv-transpose",               [VGK_OP_POOL] = "pool",
        [VGK_OP_RESIZE] = "resize",   [VGK_OP_PAD] = "pad",       [VGK_OP_NORM] = "norm",
        [VGK_OP_MOMENTS] = "moments",
        [VGK_OP_MERGE] = "merge",     [VGK_OP_NORMALISE] = "normalise",
        [VGK_OP_MATMUL] = "matmul",   [VGK_OP_SOFTMAX] = "softmax",
        [VGK_OP_GATHER] = "gather",   [VGK_OP_RANGE] = "range",   [VGK_OP_TAKE] = "take",
        [VGK_OP_SCATTER] = "scatter", [VGK_OP_SAMPLE] = "sample", [VGK_OP_QUANTIZE] = "quantize",
        [VGK_OP_DEQUANTIZE] = "dequantize",                       [VGK_OP_ATTENTION] = "attention",
        [VGK_OP_CHAIN] = "chain",
    };
    return names[kind];
}

bool vgk_op_is_link(const struct vgk_op *op)
{
    static const bool unary[VGK_ATANH + 1] = {
        [VGK_RELU] = true, [VGK_LEAKY_RELU] = true, [VGK_SIGMOID] = true, [VGK_TANH] = true, [VGK_CLIP] = true,
        [VGK_ELU] = true, [VGK_HARD_SIGMOID] = true, [VGK_HARD_SWISH] = true, [VGK_SILU] = true, [VGK_GELU_ERF] = true,
        [VGK_GELU_TANH] = true, [VGK_NEG] = true, [VGK_ABS] = true, [VGK_SQRT] = true, [VGK_RECIPROCAL] = true,
        [VGK_EXP] = true, [VGK_QUANTA] = true,
    };
    if (op->kind == VGK_OP_BINARY) {
        enum vgk_binary_fn fn = op->p.binary.fn;
        return fn == VGK_ADD || fn == VGK_SUB || fn == VGK_MUL || fn == VGK_DIV || fn == VGK_POW || fn == VGK_MIN ||
               fn == VGK_MAX || fn == VGK_PRELU;
    }
    return op->kind == VGK_OP_UNARY && unary[op->p.unary.fn];
}

bool vgk_op_in_place(const struct vgk_op *op, int i)
{
    const struct vgk_tensor *a = &op->in[i], *b = &op->out[0];
    if (a->type != b->type || a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (a->dim[d] != b->dim[d] || (a->dim[d] > 1 && a->stride[d] != b->stride[d]))
            return false;
    switch (op->kind) {
    case VGK_OP_UNARY:
    case VGK_OP_BINARY:
    case VGK_OP_CHAIN:
    case VGK_OP_WHERE: return true;
    case VGK_OP_NORM: return i == 0 || i == 3;
    case VGK_OP_CONV: return i == 5; /* each element of the residual is read just before its place is written */
    case VGK_OP_NORMALISE: return i == 0 || i == 2;
    case VGK_OP_SOFTMAX: return true;
    default: return false;
    }
}
