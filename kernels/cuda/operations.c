/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which operations are done, what they need, and which launcher does them. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

#include "../cpu/elements.h"
#include "../cpu/resize_taps.h"
#include "../cpu/weights.h"
#include "../cuda_load.h"

static bool is_small_float(enum vgk_type t) { return vgk_type_class(t) == VGK_CLASS_F32; }

static bool all_floats(const struct vgk_op *op)
{
    for (int i = 0; i < op->n_in; i++)
        if (op->in[i].type != VGK_NONE && !vgk_type_is_float(op->in[i].type))
            return false;
    return vgk_type_is_float(op->out->type);
}

static bool is_conv(const struct vgk_op *op) { return op->kind == VGK_OP_CONV || op->kind == VGK_OP_CONV_TRANSPOSE; }

/* Weights with a scale of their own, which are constants: they are made floats when they are packed. */
static bool is_quantised(const struct vgk_op *op)
{
    return (is_conv(op) || op->kind == VGK_OP_MATMUL) && vgk_input(op, VGK_WEIGHT_SCALE);
}

static bool knows_act(enum vgk_act act)
{
    switch (act) {
    case VGK_ACT_NONE: case VGK_ACT_RELU: case VGK_ACT_LEAKY_RELU: case VGK_ACT_PRELU: case VGK_ACT_CLIP: case VGK_ACT_SIGMOID:
    case VGK_ACT_TANH: case VGK_ACT_SILU: return true;
    default: return false;
    }
}

static bool knows_conv_act(enum vgk_act act)
{
    switch (act) {
    case VGK_ACT_ELU: case VGK_ACT_HARD_SIGMOID: case VGK_ACT_HARD_SWISH: case VGK_ACT_GELU_ERF: case VGK_ACT_GELU_TANH: return true;
    default: return knows_act(act);
    }
}

/* Nibbles are constants only: they are converted by a copy, and are what weights may be. */
static bool types_fit(const struct vgk_op *op)
{
    bool weights = is_conv(op) || op->kind == VGK_OP_MATMUL;
    for (int i = 0; i < op->n_in; i++)
        if (op->in[i].type != VGK_NONE && vgk_type_bits(op->in[i].type) < 8 && op->kind != VGK_OP_COPY &&
            op->kind != VGK_OP_DEQUANTIZE && !(weights && (i == 1 || i == VGK_WEIGHT_ZERO)))
            return false;
    return vgk_type_bits(op->out->type) >= 8;
}

/* As many tensors as a loop has, beside single values. */
static bool chain_fits(const struct vgk_op *op)
{
    int tensors = 1;
    for (int i = 0; i < op->n_in; i++) {
        tensors += !vgk_tensor_is_one_value(&op->in[i]);
        if (!is_small_float(op->in[i].type))
            return false;
    }
    return is_small_float(op->out->type) && op->n_in <= VGK_CONV_INPUTS && tensors <= VGK_LOOP_TENSORS;
}

static bool knows(const struct vgk_op *op)
{
    const struct vgk_tensor *x = op->in, *y = op->out;
    switch (op->kind) {
    case VGK_OP_COPY: case VGK_OP_BINARY: case VGK_OP_REDUCE: case VGK_OP_RANGE: return true;
    case VGK_OP_UNARY:
        if (vgk_type_class(x->type) != VGK_CLASS_I64)
            return true;
        switch (op->p.unary.fn) {
        case VGK_RELU: case VGK_CLIP: case VGK_NEG: case VGK_ABS: case VGK_SIGN: case VGK_NOT: case VGK_IS_NAN:
        case VGK_FLOOR: case VGK_CEIL: case VGK_ROUND: case VGK_SHRINK: return true;
        default: return false;
        }
    case VGK_OP_CHAIN: return chain_fits(op);
    case VGK_OP_WHERE: return x[1].type == y->type && x[2].type == y->type;
    case VGK_OP_CONV:
    case VGK_OP_CONV_TRANSPOSE:
        return is_small_float(x->type) && is_small_float(y->type) && x->rank >= 3 && op->p.conv.groups <= 65535 &&
               knows_conv_act(op->p.conv.act);
    case VGK_OP_POOL: return vgk_type_class(y->type) == vgk_type_class(x->type) && y->rank >= 3;
    case VGK_OP_RESIZE: return x->type == y->type && y->rank && (op->p.resize.mode == VGK_NEAREST || y->type != VGK_F64);
    case VGK_OP_PAD:
    case VGK_OP_GATHER: return x->type == y->type;
    case VGK_OP_NORM: return all_floats(op) && knows_act(op->p.norm.act) && (op->p.norm.kind != VGK_NORM_GROUP || y->rank < VGK_MAX_RANK);
    case VGK_OP_MOMENTS: return is_small_float(x->type) && x->rank == 4 && y->type == VGK_F64;
    case VGK_OP_MERGE: return x->type == VGK_F64 && y->type == VGK_F32;
    case VGK_OP_NORMALISE: return is_small_float(x->type) && x[1].type == VGK_F32 && is_small_float(y->type) && knows_act(op->p.normalise.act);
    case VGK_OP_MATMUL:
        return y->rank >= 2 && x[0].rank >= 2 && x[1].rank >= 2 &&
               (vgk_type_is_float(y->type) || (op->p.matmul.alpha == 1 && op->p.matmul.beta == 1));
    case VGK_OP_SOFTMAX: return all_floats(op) && y->type != VGK_F64;
    case VGK_OP_TAKE: return x->type == y->type && vgk_type_class(x[1].type) == VGK_CLASS_I64;
    case VGK_OP_SCATTER:
        return x->type == y->type && x[2].type == y->type && vgk_type_class(x[1].type) == VGK_CLASS_I64;
    case VGK_OP_SAMPLE: return all_floats(op) && y->type != VGK_F64 && y->rank >= 3 && y->rank <= 2 + VGK_MAX_SPATIAL;
    case VGK_OP_QUANTIZE: return vgk_type_is_float(x->type) && vgk_type_class(y->type) == VGK_CLASS_I64;
    case VGK_OP_DEQUANTIZE: return vgk_type_class(x->type) == VGK_CLASS_I64 && vgk_type_is_float(y->type);
    case VGK_OP_ATTENTION:
        return y->rank == 4 && is_small_float(x[0].type) && is_small_float(x[1].type) && is_small_float(x[2].type) &&
               is_small_float(y->type);
    default: return false;
    }
}

/* --- constants --- */

static enum vgk_type weights_type(const struct vgk_op *op) { return op->in[0].type == VGK_F16 ? VGK_F16 : VGK_F32; }

/* Along the whole axis, of which in and out may be a part. */
static int64_t whole_in(const struct vgk_op *op, int d)
{
    return op->p.resize.in_size[d] ? op->p.resize.in_size[d] : op->in->dim[d];
}

static int64_t whole_out(const struct vgk_op *op, int d)
{
    return op->p.resize.out_size[d] ? op->p.resize.out_size[d] : op->out->dim[d];
}

static bool packed_bytes(const struct vgk_op *op, size_t *bytes)
{
    *bytes = 0;
    if (is_conv(op) || is_quantised(op))
        return vgk_mul((size_t)vgk_tensor_count(&op->in[1]), (size_t)vgk_type_bits(weights_type(op)) / 8, bytes);
    if (op->kind != VGK_OP_RESIZE)
        return true;
    for (int d = 0; d < op->out->rank; d++) {
        size_t n;
        if (op->in->dim[d] > INT32_MAX || !vgk_mul((size_t)whole_out(op, d), sizeof(int32_t) + sizeof(float), &n) ||
            !vgk_mul(n, (size_t)vgk_resize_taps(&op->p.resize, d, whole_in(op, d), whole_out(op, d)), &n) ||
            !vgk_add(*bytes, n, bytes))
            return false;
    }
    return true;
}

/* [group][tap][cin][cout], or for groups of one channel [tap][channel]. */
static void pack_weights(const struct vgk_op *op, void *host)
{
    const struct vgk_conv *p = &op->p.conv;
    bool transposed = op->kind == VGK_OP_CONV_TRANSPOSE;
    int64_t cin = op->in->dim[1] / p->groups, cout = op->out->dim[1] / p->groups, taps = 1;
    bool depthwise = cin == 1 && cout == 1 && p->groups > 1;
    struct vgk_tensor to = {.type = weights_type(op), .data = host};
    for (int d = 0; d < p->spatial; d++)
        taps *= p->kernel[d];
    for (int64_t g = 0; g < p->groups; g++)
        for (int64_t t = 0; t < taps; t++) {
            int64_t index[VGK_MAX_RANK] = {0}, rest = t;
            for (int d = p->spatial - 1; d >= 0; rest /= p->kernel[d--])
                index[2 + d] = rest % p->kernel[d];
            for (int64_t i = 0; i < cin; i++)
                for (int64_t o = 0; o < cout; o++) {
                    float v;
                    index[0] = transposed ? g * cin + i : g * cout + o;
                    index[1] = transposed ? o : i;
                    vgk_weights_f32(op, index, 1, &v, 1);
                    vgk_store_f32(&v, &to, depthwise ? t * p->groups + g : ((g * taps + t) * cin + i) * cout + o, 0, 1);
                }
        }
}

/* The matrices as they are, row by row. */
static void pack_matrices(const struct vgk_op *op, void *host)
{
    enum { PIECE = 256 };
    const struct vgk_tensor *w = &op->in[1];
    struct vgk_tensor to = {.type = weights_type(op), .data = host};
    int64_t index[VGK_MAX_RANK] = {0}, columns = w->dim[w->rank - 1], rows = columns ? vgk_tensor_count(w) / columns : 0;
    float v[PIECE];
    for (int64_t r = 0; r < rows; r++) {
        int64_t rest = r;
        for (int d = w->rank - 2; d >= 0; rest /= w->dim[d--])
            index[d] = rest % w->dim[d];
        for (int64_t c = 0; c < columns; c += PIECE) {
            int64_t n = columns - c < PIECE ? columns - c : PIECE;
            index[w->rank - 1] = c;
            vgk_weights_f32(op, index, w->rank - 1, v, n);
            vgk_store_f32(v, &to, r * columns + c, 1, n);
        }
    }
}

static void pack_tables(const struct vgk_op *op, char *at)
{
    struct vgk_resize whole = op->p.resize;
    for (int d = 0; d < op->out->rank; d++)
        whole.in_size[d] = whole.out_size[d] = whole.in_begin[d] = whole.out_begin[d] = 0;
    for (int d = 0; d < op->out->rank; d++) {
        int64_t in = whole_in(op, d), out = whole_out(op, d), n = out * vgk_resize_taps(&whole, d, in, out);
        vgk_resize_fill(&whole, d, in, out, (int32_t *)at, (float *)(at + n * (int64_t)sizeof(int32_t)));
        at += n * (int64_t)(sizeof(int32_t) + sizeof(float));
    }
}

/* cuDNN's engines get no more: those that want it win little by it, and every plan pays for the largest. */
#define MAX_WORKSPACE ((size_t)64 << 20)

static bool is_product(const struct vgk_device *dev, const struct vgk_op *op)
{
    return dev->dnn && (op->kind == VGK_OP_CONV || op->kind == VGK_OP_CONV_TRANSPOSE || op->kind == VGK_OP_MATMUL ||
                        op->kind == VGK_OP_ATTENTION);
}

enum vgk_status vgk_cuda_pack(struct vgk_device *dev, const struct vgk_op *op, void *packed, struct vgk_error *err)
{
    struct vgk_need need = {0};
    bool by_dnn = is_product(dev, op) && !vgk_cuda_product_need(dev->dnn, MAX_WORKSPACE, op, &need, NULL);
    size_t bytes = need.packed;
    if ((!by_dnn && !packed_bytes(op, &bytes)) || !bytes)
        return VGK_OK;
    void *host = malloc(bytes);
    if (!host)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for %zu bytes of constants", bytes);
    enum vgk_status s = VGK_OK;
    if (by_dnn)
        s = vgk_cuda_product_pack(dev->dnn, MAX_WORKSPACE, op, host, err);
    else if (op->kind == VGK_OP_RESIZE)
        pack_tables(op, host);
    else if (op->kind == VGK_OP_MATMUL)
        pack_matrices(op, host);
    else
        pack_weights(op, host);
    if (!s)
        s = vgk_cuda.upload(dev, host, packed, bytes, err);
    free(host);
    return s;
}

/* --- what the planner asks, and the work --- */

enum vgk_status vgk_cuda_need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *need,
                              struct vgk_error *err)
{
    char in[96], out[96];
    *need = (struct vgk_need){.lattice = {1, 1, 1}};
    if (!types_fit(op) || !knows(op))
        return vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s of %s to %s is not supported by CUDA; set device to cpu",
                        vgk_kind_name(op->kind), op->n_in ? vgk_tensor_describe(&op->in[0], in, sizeof in) : "nothing",
                        vgk_tensor_describe(op->out, out, sizeof out));
    if (is_product(dev, op)) {
        enum vgk_status s = vgk_cuda_product_need(dev->dnn, MAX_WORKSPACE, op, need, err);
        if (s != VGK_ERR_UNSUPPORTED)
            return s;
    }
    if (!packed_bytes(op, &need->packed))
        return vgk_fail(err, VGK_ERR_NOMEM, "%s to %s is larger than the address space", vgk_kind_name(op->kind),
                        vgk_tensor_describe(op->out, out, sizeof out));
    return VGK_OK;
}

static cudaError_t matmul(const struct vgk_op *op, const void *packed, cudaStream_t s)
{
    struct vgk_tensor in[VGK_CONV_INPUTS];
    struct vgk_op plain = *op;
    if (!is_quantised(op))
        return vgk_cu_matmul(op, s);
    memcpy(in, op->in, (size_t)op->n_in * sizeof *in);
    in[1] = vgk_tensor_make(weights_type(op), in[1].rank, in[1].dim, VGK_ROW_MAJOR);
    in[1].data = (void *)packed;
    plain.in = in;
    return vgk_cu_matmul(&plain, s);
}

static cudaError_t launch(struct vgk_device *dev, const struct vgk_op *op, const void *packed)
{
    cudaStream_t s = dev->stream;
    switch (op->kind) {
    case VGK_OP_COPY: return vgk_cu_copy(op, s);
    case VGK_OP_UNARY: return vgk_cu_unary(op, s);
    case VGK_OP_BINARY: return vgk_cu_binary(op, s);
    case VGK_OP_CHAIN: return vgk_cu_chain(op, s);
    case VGK_OP_WHERE: return vgk_cu_where(op, s);
    case VGK_OP_REDUCE: return vgk_cu_reduce(op, s);
    case VGK_OP_CONV:
    case VGK_OP_CONV_TRANSPOSE: return vgk_cu_conv(op, packed, s);
    case VGK_OP_POOL: return vgk_cu_pool(op, s);
    case VGK_OP_RESIZE: return vgk_cu_resize(op, packed, s);
    case VGK_OP_PAD: return vgk_cu_pad(op, s);
    case VGK_OP_NORM: return vgk_cu_norm(op, s);
    case VGK_OP_MOMENTS: return vgk_cu_moments(op, s);
    case VGK_OP_MERGE: return vgk_cu_merge(op, s);
    case VGK_OP_NORMALISE: return vgk_cu_normalise(op, s);
    case VGK_OP_MATMUL: return matmul(op, packed, s);
    case VGK_OP_SOFTMAX: return vgk_cu_softmax(op, s);
    case VGK_OP_GATHER: return vgk_cu_gather(op, dev->flags, s);
    case VGK_OP_RANGE: return vgk_cu_range(op, s);
    case VGK_OP_TAKE: return vgk_cu_take(op, dev->flags, s);
    case VGK_OP_SCATTER: return vgk_cu_scatter(op, dev->flags, s);
    case VGK_OP_SAMPLE: return vgk_cu_sample(op, s);
    case VGK_OP_QUANTIZE:
    case VGK_OP_DEQUANTIZE: return vgk_cu_quantize(op, s);
    case VGK_OP_ATTENTION: return vgk_cu_attention(op, s);
    default: return cudaErrorNotSupported;
    }
}

enum vgk_status vgk_cuda_run(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                             struct vgk_error *err)
{
    cudaError_t e = vgk_cuda_enter(dev);
    if (e == cudaSuccess && is_product(dev, op)) {
        enum vgk_status s = vgk_cuda_product_run(dev->dnn, MAX_WORKSPACE, op, packed, scratch, dev->stream, err);
        if (s != VGK_ERR_UNSUPPORTED)
            return s;
    }
    if (e == cudaSuccess)
        e = launch(dev, op, packed);
    return e == cudaSuccess ? VGK_OK : vgk_cuda_fail(err, e, vgk_kind_name(op->kind));
}
