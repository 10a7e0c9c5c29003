/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between conv.c, which plans a convolution and hands out its work, conv_pack.c, which packs its weights, and the vector
 * files that compute one unit of it.  Everything has three dimensions here, of which the first ones may be 1. */
#ifndef VGK_CPU_CONV_H
#define VGK_CPU_CONV_H

#include "../ops.h"
#include "bf16.h"
#include "micro.h"
#include "weights.h"

#include <string.h>

enum vgk_conv_method {
    /* An implicit matrix product: a kernel row of kw * cin floats is one run of a channels-last row, so nothing is
     * gathered.  Weights: [group][panel][kz][ky][kx][cin][nr]. */
    VGK_CONV_DIRECT,
    /* Few output channels would leave most of a vector empty, so its lanes are input channels, which fill vectors, and are
     * added up at the end.  Weights: [kz][ky][kx][vector][cout][vl]. */
    VGK_CONV_DOT,
    /* As few, from inputs that fill no vectors: lanes are neighbouring pixels.  The rows at work are copied so,
     * padded, each channel by itself.  Weights: [kz][ky][cin][kx][cout]. */
    VGK_CONV_PLANAR,
    /* One input channel for each output channel.  Weights: [vector of channels][kz][ky][kx][vl]. */
    VGK_CONV_DEPTHWISE,
    /* F(6x6, 3x3): Lavin & Gray, Fast Algorithms for Convolutional Neural Networks, 2016.  A tile of 8 x 8 inputs gives
     * 6 x 6 outputs.  A larger kernel is a sum of blocks of 3 x 3, block b of an axis from tap min(3 b, taps - 3) on (a
     * tap that two blocks reach belongs to the first): their products add up before the one transform back.
     * Weights: [group][panel][position][block y][block x][cin][nr]. */
    VGK_CONV_WINOGRAD,
    /* As direct, of operands in bf16: a unit's input is first copied so, padded, with channels rounded up to `halves`.
     * Weights: [panel][ky][kx][pair of input channels][nr][2]. */
    VGK_CONV_BF16,
    VGK_CONV_METHODS
};

enum { VGK_WINOGRAD_OUT = 6, VGK_WINOGRAD_IN = 8, VGK_WINOGRAD_POSITIONS = 64 };
/* Floats between the positions of transformed tiles, or their strides would fall on the same sets of the cache; and
 * what the last vector of a tile's channels may write beyond them. */
#define VGK_WINOGRAD_GAP 16
#define VGK_WINOGRAD_BLOCKS 8 /* the most on an axis */

#define VGK_CONV_THIN 4 /* the most output channels of dot and planar */

/* An image's strides in floats; channels have stride 1. */
struct vgk_conv_image {
    ptrdiff_t n, z, y, x;
};

struct vgk_conv_plan {
    enum vgk_conv_method method;
    int batch, groups, cin, cout; /* channels of one group (depthwise: of all, groups = 1) */
    int d, h, w, od, oh, ow;
    int kd, kh, kw, sz, sy, sx, dz, dy, dx, front, top, left;
    enum vgk_pad_mode pad_mode;
    struct vgk_conv_image in, out, res;
    enum vgk_act act; /* LEAKY_RELU is PRELU here */
    float alpha, beta;
    bool residual, residual_before_act;

    /* Thin outputs waste most of a vector.  `fold` neighbouring output pixels are one pixel of fold * cout channels,
     * made by a kernel of kw + (fold - 1) * sx columns (the weights beside each pixel's own are 0); the output row's
     * layout stays the same.  1 = as it is.  More than one panel only where output pixels touch. */
    int fold, wide_kw, wide_cout, wide_ow;

    int vl, nv, nr, mr, panels; /* a panel is nr = nv * vl output channels; blocks have mr pixels */
    bool blocks_first;          /* direct: all blocks of a unit for a panel, else all panels for a block */
    int vectors, plane;         /* planar: vectors of pixels of a block, at most; floats from a channel's row to the next */
    int stretch;                /* dot, depthwise: the most pixels that are computed at one go */
    /* Winograd: tiles of a unit (of one row of them if the kernel has several blocks), blocks of the kernel on each
     * axis, transformed inputs from a tile to the next, and in one row of blocks of a unit. */
    int tiles, blocks_y, blocks_x, inputs_apart, inputs_row;
    int above; /* rows of the first tiles that lie above the output */
    const struct vgk_bf16 *product;
    int halves;

    /* Units of work; a direct unit is `unit_rows` rows by `unit_pixels` (wide) pixels. */
    int unit_rows, unit_pixels, units_y, units_x, units;

    size_t packed;             /* bytes */
    struct vgk_panels stored;  /* direct: weights that stay in the model's type, a panel is made floats at a time */
    bool keeps;                /* there are such */
    size_t constants;          /* floats of scale, of shift and of slope, each */
    /* A thread's scratch, in floats: tables of pointers, then the block of sums, then the padded copy of an edge (bf16: of
     * the unit's input; planar: of a kernel's rows); or Winograd's tiles, products, and padded input tile. */
    size_t tables, sums;
    size_t scratch_per_thread; /* a multiple of a cache line */
};

struct vgk_conv_job {
    struct vgk_conv_plan plan;
    const float *in, *res;
    const void *weights;
    vgk_unpack_fn *unpack;
    float *out;
    const float *scale, *shift, *slope; /* [group][panels * nr], repeated for fold */
    float *scratch;                     /* thread 0's */
    void (*unit)(const struct vgk_conv_job *, int unit, float *scratch);
};

typedef void vgk_conv_unit_fn(const struct vgk_conv_job *, int unit, float *scratch);

struct vgk_conv_kernels {
    const struct vgk_micro *micro;
    int dot_rows[VGK_CONV_THIN + 1];       /* pixels of a block, by output channels */
    int planar_vectors[VGK_CONV_THIN + 1]; /* the most vectors of pixels of a block, by output channels */
    int depthwise_rows;
    vgk_conv_unit_fn *unit[VGK_CONV_METHODS];
};

/* By instruction set: the tables of conv_vector.c, and the entries of winograd_vector.c and conv_thin_vector.c in them. */
extern const struct vgk_conv_kernels vgk_conv_generic;
extern vgk_conv_unit_fn vgk_conv_winograd_generic, vgk_conv_dot_generic, vgk_conv_planar_generic;
#ifdef __x86_64__
extern const struct vgk_conv_kernels vgk_conv_avx2, vgk_conv_avx512;
extern vgk_conv_unit_fn vgk_conv_winograd_avx2, vgk_conv_winograd_avx512;
extern vgk_conv_unit_fn vgk_conv_dot_avx2, vgk_conv_dot_avx512, vgk_conv_planar_avx2, vgk_conv_planar_avx512;
#endif

/* conv.c, conv_pack.c */
enum vgk_status vgk_conv_make_plan(const struct vgk_device *, const struct vgk_op *, struct vgk_conv_plan *,
                                   struct vgk_error *);
enum vgk_status vgk_conv_pack(struct vgk_device *, const struct vgk_op *, void *packed, struct vgk_error *);

/* NULL: the operand is left out. */
static inline const struct vgk_tensor *vgk_conv_input(const struct vgk_op *op, int i)
{
    return i < op->n_in && op->in[i].type != VGK_NONE ? &op->in[i] : NULL;
}

/* The first tap of block b of a kernel of so many taps. */
static inline int vgk_winograd_tap(int b, int taps) { return 3 * b < taps - 3 ? 3 * b : taps - 3; }

/* The row or column that stands at place i of an axis of n, -1 = zeros. */
static inline int vgk_conv_source(int i, int n, enum vgk_pad_mode mode)
{
    if (i >= 0 && i < n)
        return i;
    switch (mode) {
    case VGK_PAD_CONSTANT: return -1;
    case VGK_PAD_REFLECT: i = i < 0 ? -i : 2 * (n - 1) - i; break;
    case VGK_PAD_EDGE: return i < 0 ? 0 : n - 1;
    case VGK_PAD_WRAP: i = i < 0 ? i + n : i - n; break;
    }
    return i >= 0 && i < n ? i : -1;
}

/* Columns [x, x + count) of a row, padded where they are outside, packed into `to`; returns its end.  cin channels: row
 * points to the first of them. */
static inline float *vgk_conv_copy(const struct vgk_conv_plan *p, const float *row, int x, int count, float *to)
{
    bool dense = p->in.x == p->cin;
    for (int i = 0, run; i < count; i += run, to += (ptrdiff_t)run * p->cin) {
        int ix = vgk_conv_source(x + i, p->w, p->pad_mode);
        run = !dense || ix < 0 || ix != x + i ? 1 : p->w - ix < count - i ? p->w - ix : count - i;
        size_t bytes = sizeof *to * (size_t)run * (size_t)p->cin;
        if (ix < 0)
            memset(to, 0, bytes);
        else
            memcpy(to, row + ix * p->in.x, bytes);
    }
    return to;
}

#endif
