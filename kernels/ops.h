/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The operations that a backend computes, with the shapes of each.  Far fewer than ONNX has: whatever only moves or
 * renames elements (Slice, Transpose, Expand, Split, Concat, DepthToSpace, Cast ...) is a VGK_COPY between views.
 *
 * Rules for every operation:
 * - Shapes are given by the tensors, and are right: the caller checks files, an op only asserts.
 * - Outputs never overlap inputs, unless `vgk_op_in_place` allows that input for that op.
 * - An output element depends on the values it is computed from and not on where it lies: a vector's tail, a thread's
 *   block or a tile's edge gives the same bits.  Tiled results can equal untiled ones only because of this.  The one
 *   exception is told by `vgk_need.lattice`.
 * - Accumulation in f32 (f64 for statistics of norms and for f64 tensors); integers in int64. */
#ifndef VGK_OPS_H
#define VGK_OPS_H

#include "tensor.h"

#define VGK_MAX_SPATIAL 3

enum vgk_kind {
    VGK_OP_COPY,     /* in[0] -> out[0], same dims, any strides, any types (converts: float to int truncates, to bool
                        is != 0, to f16 rounds to even and overflows to inf) */
    VGK_OP_UNARY,    /* in[0] -> out[0], elementwise; p.unary */
    VGK_OP_BINARY,   /* in[0], in[1] -> out[0], all of out's dims (broadcast by stride 0); p.binary */
    VGK_OP_WHERE,    /* in[0] bool, in[1], in[2] -> out[0], all of out's dims */
    VGK_OP_REDUCE,   /* in[0] -> out[0], same rank, reduced dims are 1; p.reduce */
    VGK_OP_CONV,     /* see struct vgk_conv */
    VGK_OP_CONV_TRANSPOSE, /* the same slots, weights [Cin, Cout/groups, k...] */
    VGK_OP_POOL,     /* in[0] [N,C,s...] -> out[0] [N,C,t...]; p.pool */
    VGK_OP_RESIZE,   /* in[0] -> out[0], same rank; p.resize */
    VGK_OP_PAD,      /* in[0] -> out[0], same rank; p.pad; in[1] optional scalar, the constant */
    VGK_OP_NORM,     /* see struct vgk_norm */
    VGK_OP_MOMENTS,  /* statistics by blocks of rows; p.moments */
    VGK_OP_MERGE,    /* blocks to mean, factor and bias; p.merge */
    VGK_OP_NORMALISE, /* applies them; p.normalise */
    VGK_OP_MATMUL,   /* in[0] [b...,M,K] x in[1] [b...,K,N] (+ in[2], broadcast) -> out[0] [b...,M,N]; p.matmul; in[1]
                        may be constant weights, see below */
    VGK_OP_SOFTMAX,  /* in[0] -> out[0]; p.softmax */
    VGK_OP_GATHER,   /* in[0], in[1] int32/int64 indices (negative count from the end) -> out[0]:
                        dims of in[0] with p.gather.axis replaced by those of in[1] */
    VGK_OP_RANGE,    /* in[0] start, in[1] limit, in[2] delta: scalars -> out[0] [n] */
    VGK_OP_TAKE,     /* in[0] x, in[1] indices [out's dims..., p.index.n] -> out[0]; see struct vgk_index */
    VGK_OP_SCATTER,  /* in[0] x, in[1] indices [u..., p.index.n], in[2] updates [u...] -> out[0] like x, changed where
                        the indices say, in the updates' order; see struct vgk_index */
    VGK_OP_SAMPLE,   /* in[0] x [N,C,s...], in[1] grid [N,t...,spatial] -> out[0] [N,C,t...]; p.sample */
    VGK_OP_QUANTIZE, /* in[0] floats, in[1] scale, in[2] zero point or VGK_NONE -> out[0] integers, all of out's dims
                        (broadcast by stride 0): saturate(round half to even(x / scale) + zero) */
    VGK_OP_DEQUANTIZE, /* in[0] integers, in[1] scale, in[2] zero point or VGK_NONE -> out[0] floats, all of out's dims:
                        (x - zero) * scale */
    VGK_OP_ATTENTION, /* see struct vgk_attention */
    VGK_OP_CHAIN,     /* see struct vgk_chain */
};

enum vgk_unary_fn {
    VGK_RELU, VGK_LEAKY_RELU /* alpha */, VGK_SIGMOID, VGK_TANH, VGK_CLIP /* alpha = low, beta = high; NaN stays */,
    VGK_ELU /* alpha */, VGK_HARD_SIGMOID /* alpha, beta */, VGK_HARD_SWISH, VGK_SOFTPLUS, VGK_MISH,
    VGK_SILU, VGK_GELU_ERF, VGK_GELU_TANH, VGK_NEG, VGK_ABS, VGK_SQRT, VGK_RECIPROCAL, VGK_EXP, VGK_LOG, VGK_ERF,
    VGK_SIN, VGK_COS, VGK_FLOOR, VGK_CEIL, VGK_ROUND /* half to even */, VGK_SIGN, VGK_NOT, VGK_IS_NAN,
    VGK_IS_INF /* alpha, beta != 0: negative, positive ones count */, VGK_CELU /* alpha */,
    VGK_SELU /* alpha, beta = gamma */, VGK_THRESHOLDED_RELU /* alpha */, VGK_SOFTSIGN,
    VGK_SHRINK /* alpha = lambda, beta = bias */, VGK_SWISH /* alpha */,
    VGK_QUANTA /* to 8 bits and back: a multiple of alpha, from beta (whole) to beta + 255 times; NaN stays */,
    VGK_TAN, VGK_ASIN, VGK_ACOS, VGK_ATAN,
    VGK_SINH, VGK_COSH, VGK_ASINH, VGK_ACOSH, VGK_ATANH,
};
struct vgk_unary {
    enum vgk_unary_fn fn;
    float alpha, beta;
};

enum vgk_binary_fn {
    VGK_ADD, VGK_SUB, VGK_MUL, VGK_DIV /* integers truncate towards zero; by zero gives 0 */, VGK_POW, VGK_MIN,
    VGK_MAX, VGK_MOD /* sign of the divisor */, VGK_FMOD /* sign of the dividend */,
    VGK_PRELU /* in[0] < 0 ? in[0] * in[1] : in[0] */,
    VGK_EQUAL, VGK_LESS, VGK_LESS_EQUAL, VGK_GREATER, VGK_GREATER_EQUAL, VGK_AND, VGK_OR, VGK_XOR,
};
struct vgk_binary {
    enum vgk_binary_fn fn;
};

/* Unary and binary ops in one pass, in f32: a link reads inputs (0, 1, ...) and results of links before it (VGK_CHAIN_LINK,
 * VGK_CHAIN_LINK + 1, ...).  in[] and out[0] f32, or f16 for backends that like that (`half`); in[] of out's dims (by
 * strides), at most 3 of them not the same value everywhere; out[0] is the last link's result.  The bits are those of the ops
 * one by one on f32.  Only for backends that say `chains`. */
#define VGK_CHAIN_MOST 8
#define VGK_CHAIN_LINK 16
struct vgk_chain {
    int n;
    struct vgk_link {
        bool binary;
        union {
            struct vgk_unary unary;
            struct vgk_binary two;
        };
        int a, b; /* b: of a binary one */
    } link[VGK_CHAIN_MOST];
};

enum vgk_reduce_fn {
    VGK_REDUCE_SUM, VGK_REDUCE_MEAN, VGK_REDUCE_MAX, VGK_REDUCE_MIN, VGK_REDUCE_PROD, VGK_REDUCE_L1, VGK_REDUCE_L2,
    VGK_REDUCE_SUM_SQUARE, VGK_REDUCE_LOG_SUM, VGK_REDUCE_LOG_SUM_EXP,
};
struct vgk_reduce {
    enum vgk_reduce_fn fn;
    unsigned axes; /* bit i: dimension i is reduced (out.dim[i] == 1) */
};

enum vgk_pad_mode { VGK_PAD_CONSTANT, VGK_PAD_REFLECT, VGK_PAD_EDGE, VGK_PAD_WRAP };

/* Constant weights, in[1] of CONV, CONV_TRANSPOSE and MATMUL, may be of any type whatever the other operands are, and
 * quantised: they stand for (in[1] - in[VGK_WEIGHT_ZERO]) * in[VGK_WEIGHT_SCALE], computed in f32.  Scale (f32) and zero
 * point (in[1]'s type, or VGK_NONE) have in[1]'s rank, and their dims divide its dims: each of their elements serves a
 * block (dim 1: all of the dimension; the same dim: each element has its own). */
enum { VGK_WEIGHT_SCALE = 6, VGK_WEIGHT_ZERO = 7 };

/* Convolution (cross-correlation, as ONNX and all frameworks), with its epilogue.
 *   in[0] x [N,Cin,s...]; in[1] weights [Cout,Cin/groups,k...], constant, any type;
 *   in[2] shift [Cout] (the bias), in[3] scale [Cout], in[4] slope [Cout] for VGK_ACT_PRELU, in[5] residual (out's
 *   dims): each may be VGK_NONE; shift, scale and slope may change between runs;
 *   out[0] [N,Cout,t...].
 *   y = act(conv(x) * scale + shift); then y + residual (act(... + residual) with residual_before_act).
 * VGK_ACT_GATE: y = (v + residual) * (sigmoid(v) + alpha), v = conv(x) * scale + shift.
 * pad_mode tells what lies beyond x on both sides (REFLECT needs pad < size). */
enum vgk_act { VGK_ACT_NONE, VGK_ACT_RELU, VGK_ACT_LEAKY_RELU /* alpha */, VGK_ACT_PRELU, VGK_ACT_CLIP /* alpha, beta */,
    VGK_ACT_SIGMOID, VGK_ACT_TANH, VGK_ACT_SILU,
    /* Of convolutions only: */
    VGK_ACT_ELU /* alpha */, VGK_ACT_HARD_SIGMOID /* alpha, beta */, VGK_ACT_HARD_SWISH, VGK_ACT_GELU_ERF,
    VGK_ACT_GELU_TANH,
    VGK_ACT_QUANTA /* alpha, beta; only for backends that say `gates`, as */, VGK_ACT_GATE /* alpha */ };
#define VGK_ACTS (VGK_ACT_GATE + 1)
#define VGK_CONV_INPUTS 8 /* with the weights' scale and zero point */
struct vgk_conv {
    int spatial; /* 1, 2 or 3 */
    int kernel[VGK_MAX_SPATIAL], stride[VGK_MAX_SPATIAL], dilation[VGK_MAX_SPATIAL];
    int pad_begin[VGK_MAX_SPATIAL], pad_end[VGK_MAX_SPATIAL];
    int output_padding[VGK_MAX_SPATIAL]; /* transposed only */
    int groups;
    enum vgk_pad_mode pad_mode;
    enum vgk_act act;
    float alpha, beta;
    bool residual_before_act;
    bool exact_products; /* no Winograd: every product as written, the result independent of any lattice */
    bool bf16; /* the operands of products may be rounded to bf16; sums are f32 */
    int above; /* rows of the first blocks, of a kernel that computes in blocks (vgk_need.lattice), that lie above out */
};

struct vgk_pool {
    bool max; /* else average */
    int spatial;
    int kernel[VGK_MAX_SPATIAL], stride[VGK_MAX_SPATIAL], dilation[VGK_MAX_SPATIAL];
    int pad_begin[VGK_MAX_SPATIAL], pad_end[VGK_MAX_SPATIAL];
    bool count_include_pad; /* the divisor then counts the padded extent, never what ceil_mode adds beyond it */
};

enum vgk_resize_mode { VGK_NEAREST, VGK_LINEAR, VGK_CUBIC };
enum vgk_coordinates { VGK_HALF_PIXEL, VGK_PYTORCH_HALF_PIXEL, VGK_ALIGN_CORNERS, VGK_ASYMMETRIC, VGK_HALF_PIXEL_SYMMETRIC };
enum vgk_nearest_mode { VGK_ROUND_PREFER_FLOOR, VGK_ROUND_PREFER_CEIL, VGK_NEAREST_FLOOR, VGK_NEAREST_CEIL };
struct vgk_resize {
    enum vgk_resize_mode mode;
    enum vgk_coordinates coordinates;
    enum vgk_nearest_mode nearest;
    float cubic_a;
    bool antialias, exclude_outside;
    double scale[VGK_MAX_RANK]; /* out / in as the file gives it; 1 where nothing happens */
    /* Where in and out are a part of something larger: its sizes (0 = they are all of it), and where they begin. */
    int64_t in_size[VGK_MAX_RANK], out_size[VGK_MAX_RANK], in_begin[VGK_MAX_RANK], out_begin[VGK_MAX_RANK];
};

struct vgk_pad {
    enum vgk_pad_mode mode;
    int64_t begin[VGK_MAX_RANK], end[VGK_MAX_RANK]; /* negative crops */
};

/* Normalisation over x [N,C,s...]: in[0] x, in[1] scale, in[2] bias (each may be VGK_NONE; [C] for instance and
 * group, x's dims from axis on for layer and rms), in[3] residual (out's dims, added after act, may be VGK_NONE);
 * out[0] like x.  y = act((x - mean) / sqrt(var + epsilon) * scale + bias) + residual, biased variance, statistics in
 * f64 (merged in a fixed order: the number of threads does not matter). */
enum vgk_norm_kind { VGK_NORM_INSTANCE, VGK_NORM_GROUP, VGK_NORM_LAYER, VGK_NORM_RMS };
struct vgk_norm {
    enum vgk_norm_kind kind;
    int groups; /* group */
    int axis;   /* layer and rms: statistics over this dimension and those behind it */
    float epsilon;
    enum vgk_act act; /* NONE, RELU, LEAKY_RELU, SIGMOID, TANH, SILU, CLIP */
    float alpha, beta;
};

/* Instance and group norms of images in three steps, so that they can run in bands and over tiles.  All images are f32
 * [N,C,H,W] with contiguous channels and pixels.
 * MOMENTS: in[0] x -> out[0] f64 [N,2C,B,1], channels-last, B = ceil(H / rows): of each block of `rows` rows the means,
 *   then the sums of squared differences from them.
 * MERGE: in[0] moments, in[1] scale, in[2] bias ([C] or VGK_NONE) -> out[0] f32 [N,3C]: mean, factor, bias.  Chan's
 *   merge (Chan, Golub, LeVeque 1979) in f64 in the order of the blocks: nothing but the picture decides the bits.
 * NORMALISE: in[0] x, in[1] f32 [N,3C], in[2] residual or VGK_NONE -> out[0] like x:
 *   act((x - mean) * factor + bias) + residual. */
struct vgk_moments {
    int rows;
};
struct vgk_merge {
    int rows; /* of a block */
    int64_t height, width;
    int groups; /* 0 = instance norm: each channel for itself */
    float epsilon;
};
struct vgk_normalise {
    enum vgk_act act; /* as vgk_norm */
    float alpha, beta;
};

/* Which element of x belongs to an element o of the output (take) or of the updates (scatter): along dimension axis[k]
 * of x it is the k-th number of the indices at o (negative counts from the end), along dimension walk[d] it is o's
 * d-th coordinate; walk[d] = -1: that coordinate only chooses among the indices.  Every dimension of x is named once.
 * GatherElements and ScatterElements have n = 1; GatherND and ScatterND have a vector of indices. */
enum vgk_scatter { VGK_SCATTER_SET, VGK_SCATTER_ADD, VGK_SCATTER_MUL, VGK_SCATTER_MIN, VGK_SCATTER_MAX };
struct vgk_index {
    int n;
    int axis[VGK_MAX_RANK], walk[VGK_MAX_RANK];
    enum vgk_scatter reduce; /* scatter only */
};

/* Sampling at given places.  grid is f32 or wider: (x, y, z), -1 and 1 being the centres (align_corners) or the outer
 * edges of the first and last pixel.  CUBIC (a = -0.75) in 2 dimensions only.  Places that are not finite read as if
 * they lay just outside.  With `offsets` (LINEAR and CUBIC, t... = s...) the numbers are pixels, counted from the output's
 * own place, and that sum is not rounded: a pixel's bits do not depend on where it lies. */
enum vgk_sample_padding { VGK_SAMPLE_ZEROS, VGK_SAMPLE_BORDER, VGK_SAMPLE_REFLECTION };
struct vgk_sample {
    enum vgk_resize_mode mode;
    enum vgk_sample_padding padding;
    bool align_corners, offsets;
};

/* Scaled dot-product attention: in[0] q [N,H,L,d], in[1] k [N,G,S,d], in[2] v [N,G,S,e], in[3] mask [N,H,L,S] by strides
 * (bool: false is masked out; float: is added), or VGK_NONE; out[0] [N,H,L,e].  H is a multiple of G: head h uses keys
 * h * G / H.  y = softmax(cap(scale * q k^T) + mask) v with cap(s) = softcap * tanh(s / softcap) unless softcap is 0;
 * causal: key j counts for query i when j <= i + past.  In one pass over the keys with a running maximum and sum
 * (Milakov & Gimelshein 2018; Rabe & Staats 2021): no L x S matrix.  A query with no key at all gives 0. */
struct vgk_attention {
    float scale, softcap;
    bool causal;
    int64_t past;
};

struct vgk_matmul {
    float alpha, beta; /* y = alpha * a b + beta * c */
    bool bf16; /* as of convolutions */
};
struct vgk_softmax {
    int axis;
    bool log;
};
struct vgk_gather {
    int axis;
};

struct vgk_op {
    enum vgk_kind kind;
    int n_in, n_out;
    const struct vgk_tensor *in; /* borrowed; data of constants is there at plan time, of all at run time */
    const struct vgk_tensor *out;
    unsigned constant; /* bit i: in[i] never changes (what a backend may do with it, it may do once) */
    union {
        struct vgk_unary unary;
        struct vgk_binary binary;
        struct vgk_chain chain;
        struct vgk_reduce reduce;
        struct vgk_conv conv;
        struct vgk_pool pool;
        struct vgk_resize resize;
        struct vgk_pad pad;
        struct vgk_norm norm;
        struct vgk_moments moments;
        struct vgk_merge merge;
        struct vgk_normalise normalise;
        struct vgk_matmul matmul;
        struct vgk_softmax softmax;
        struct vgk_gather gather;
        struct vgk_index index;
        struct vgk_sample sample;
        struct vgk_attention attention;
    } p;
};

/* A name for messages ("conv"). */
const char *vgk_kind_name(enum vgk_kind kind);

/* True for the unary and binary ops that may be links of a chain. */
bool vgk_op_is_link(const struct vgk_op *op);

/* True when out[0] may be in[i]: the same address, strides, dims and type. */
bool vgk_op_in_place(const struct vgk_op *op, int i);

#endif
