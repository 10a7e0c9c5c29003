/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What units of work of convolutions share: which part of the output one has, where its input lies, and how sums get to the
 * output.  For files named *_vector.c. */
#ifndef VGK_CPU_CONV_UNIT_H
#define VGK_CPU_CONV_UNIT_H

#include "conv.h"
#include "epilogue.h"

/* ---- from the block of sums to the output ---- */

/* k pixels of nch channels. */
INLINE void put(const enum vgk_act act, const struct epilogue *e, const float *sum, ptrdiff_t sum_x, int k, int nch,
                float *out, ptrdiff_t out_x, const float *res, ptrdiff_t res_x)
{
    for (int c = 0; c < nch; c += VL) {
        struct channels ch = channels_at(e, c);
        const float *s = sum + c, *r = res ? res + c : NULL;
        float *o = out + c;
        int n = nch - c;
        if (n >= VL)
            for (int x = 0; x < k; x++, s += sum_x, o += out_x, r = r ? r + res_x : r)
                store(o, finish(act, load(s), &ch, r, e->residual_before_act, VL));
        else
            for (int x = 0; x < k; x++, s += sum_x, o += out_x, r = r ? r + res_x : r)
                store_part(o, finish(act, load(s), &ch, r, e->residual_before_act, n), n);
    }
}

typedef void put_fn(const struct epilogue *, const float *, ptrdiff_t, int, int, float *, ptrdiff_t, const float *,
                    ptrdiff_t);
#define PUT(NAME, ACT) \
    static void put_##NAME(const struct epilogue *e, const float *sum, ptrdiff_t sum_x, int k, int nch, float *out, \
                           ptrdiff_t out_x, const float *res, ptrdiff_t res_x) \
    { \
        put(ACT, e, sum, sum_x, k, nch, out, out_x, res, res_x); \
    }
EACH_ACT(PUT)
#define PUT_ENTRY(NAME, ACT) [ACT] = put_##NAME,
static put_fn *const puts_by_act[] = {EACH_ACT(PUT_ENTRY)};

/* ---- where the input of a block lies ---- */

/* A unit's part of the output. */
struct part {
    const float *in; /* this image */
    float *out;      /* this image's slice */
    const float *res;
    int z, y0, y1, x0, x1; /* output slice, rows, (wide) pixels */
};

static inline struct part part_of(const struct vgk_conv_job *j, int unit)
{
    const struct vgk_conv_plan *p = &j->plan;
    int ux = unit % p->units_x, uy = unit / p->units_x % p->units_y, nz = unit / p->units_x / p->units_y;
    int n = nz / p->od, z = nz % p->od;
    struct part t = {
        .in = j->in + n * p->in.n,
        .out = j->out + n * p->out.n + z * p->out.z,
        .res = p->residual ? j->res + n * p->res.n + z * p->res.z : NULL,
        .z = z,
        .y0 = uy * p->unit_rows,
        .x0 = ux * p->unit_pixels,
    };
    t.y1 = t.y0 + p->unit_rows < p->oh ? t.y0 + p->unit_rows : p->oh;
    t.x1 = t.x0 + p->unit_pixels < p->wide_ow ? t.x0 + p->unit_pixels : p->wide_ow;
    return t;
}

/* The input rows of output row (z, y), for each kz and ky; NULL = zeros. */
static inline void rows_of(const struct vgk_conv_plan *p, const float *in, int z, int y, const float **row)
{
    for (int kz = 0; kz < p->kd; kz++) {
        int iz = vgk_conv_source(z * p->sz + kz * p->dz - p->front, p->d, p->pad_mode);
        for (int ky = 0; ky < p->kh; ky++) {
            int iy = vgk_conv_source(y * p->sy + ky * p->dy - p->top, p->h, p->pad_mode);
            *row++ = iz < 0 || iy < 0 ? NULL : in + iz * p->in.z + iy * p->in.y;
        }
    }
}

/* A block's input: rows, the offset of its first column in them, floats a pixel. */
struct window {
    const float **row;
    ptrdiff_t first, pixel;
};

/* Of k (wide) pixels from x on, channels from `channel` on.  Where they are not in the tensor, edge gets a padded copy of cin
 * channels. */
static inline struct window window_at(const struct vgk_conv_plan *p, const float **row, const float **edge_row, int x, int k,
                               int channel, float *edge)
{
    int step = p->sx * p->fold, first = x * step - p->left, count = (k - 1) * step + (p->wide_kw - 1) * p->dx + 1;
    if (first >= 0 && first + count <= p->w)
        return (struct window){row, first * p->in.x + channel, p->in.x};
    for (int i = 0; i < p->kd * p->kh; i++) {
        edge_row[i] = row[i] ? edge : NULL;
        if (row[i])
            edge = vgk_conv_copy(p, row[i] + channel, first, count, edge);
    }
    return (struct window){edge_row, 0, p->cin};
}

/* How many pixels from x on can be computed at one go, `most` at the most: those whose windows are inside of a row, or
 * some at an edge, where a window is copied.  Only where fold is 1. */
static inline int stretch(const struct vgk_conv_plan *p, const struct part *t, int x, int most)
{
    int reach = p->w - 1 - (p->kw - 1) * p->dx + p->left;
    int first = (p->left + p->sx - 1) / p->sx, end = reach < 0 ? 0 : reach / p->sx + 1, k = t->x1 - x < most ? t->x1 - x : most;
    if (x >= first && x < end)
        return end - x < k ? end - x : k;
    if (x < first && first < end && first - x < k)
        k = first - x;
    return k < p->mr ? k : p->mr;
}

/* ---- blocks of few output channels ---- */

/* By their number q, so many accumulators as the registers hold: pixels of dot, times q a multiple of 4, beside q weights and
 * a pixel; the most vectors of pixels of planar, beside q weights, or as many inputs, and one more. */
#if VECTOR_REGISTERS == 32
#define DOT_ROWS {0, 16, 12, 8, 6}
#define PLANAR_VECTORS {0, 12, 12, 8, 6}
#else
#define DOT_ROWS {0, 8, 6, 4, 3}
#define PLANAR_VECTORS {0, 8, 6, 4, 3}
#endif

#endif
