/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Direct and depthwise convolution: one unit of work each.
 *
 * Blocks of neighbouring output pixels read the tensor where it lies.  Only a block that touches the left or right edge
 * reads a copy of its few columns, padded; rows of zeros above and below are left out of the sum. */
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

/* A unit's part of the output, and what is constant in it. */
struct part {
    const float *in; /* this image and group */
    float *out;
    const float *res;
    int group, y0, y1, x0, x1; /* output rows, (wide) pixels */
};

static struct part part_of(const struct vgk_conv_job *j, int unit)
{
    const struct vgk_conv_plan *p = &j->plan;
    int ux = unit % p->units_x, uy = unit / p->units_x % p->units_y, ng = unit / p->units_x / p->units_y;
    int n = ng / p->groups, g = ng % p->groups;
    struct part t = {
        .in = j->in + n * p->in.n + (ptrdiff_t)g * p->cin,
        .out = j->out + n * p->out.n + (ptrdiff_t)g * p->cout,
        .res = p->residual ? j->res + n * p->res.n + (ptrdiff_t)g * p->cout : NULL,
        .group = g,
        .y0 = uy * p->unit_rows,
        .x0 = ux * p->unit_pixels,
    };
    t.y1 = t.y0 + p->unit_rows < p->oh ? t.y0 + p->unit_rows : p->oh;
    t.x1 = t.x0 + p->unit_pixels < p->wide_ow ? t.x0 + p->unit_pixels : p->wide_ow;
    return t;
}

/* The input rows of output row y; NULL = zeros. */
static void rows_of(const struct vgk_conv_plan *p, const float *in, int y, const float **row)
{
    for (int ky = 0; ky < p->kh; ky++) {
        int iy = vgk_conv_source(y * p->sy + ky * p->dy - p->top, p->h, p->pad_mode);
        row[ky] = iy < 0 ? NULL : in + iy * p->in.y;
    }
}

/* The columns [x, x + count) of each row into edge, packed. */
static void copy_edge(const struct vgk_conv_plan *p, const float *const *row, int x, int count, float *edge,
                      const float **edge_row)
{
    for (int ky = 0; ky < p->kh; ky++) {
        edge_row[ky] = row[ky] ? edge : NULL;
        if (row[ky])
            edge = vgk_conv_copy(p, row[ky], x, count, edge);
    }
}

/* A block's input: rows, the offset of its first column in them, floats a pixel. */
struct window {
    const float **row;
    ptrdiff_t first, pixel;
};

/* Of k (wide) pixels from x on.  edge has room for a padded copy. */
static struct window window_at(const struct vgk_conv_plan *p, const float **row, const float **edge_row, int x, int k,
                               float *edge)
{
    int step = p->sx * p->fold, first = x * step - p->left, count = (k - 1) * step + (p->wide_kw - 1) * p->dx + 1;
    if (first >= 0 && first + count <= p->w)
        return (struct window){row, first * p->in.x, p->in.x};
    copy_edge(p, row, first, count, edge, edge_row);
    return (struct window){edge_row, 0, p->cin};
}

/* ---- direct ---- */

/* A kernel row is one segment where its pixels touch, else each of its taps is one.  Returns how many. */
static int segments_of(const struct vgk_conv_plan *p, struct window in, const float *b, struct vgk_segment *seg,
                       ptrdiff_t *len)
{
    bool whole = p->dx == 1 && in.pixel == p->cin;
    int taps = whole ? 1 : p->wide_kw, n = 0;
    ptrdiff_t row_b = (ptrdiff_t)p->wide_kw * p->cin * p->nr;
    *len = whole ? (ptrdiff_t)p->wide_kw * p->cin : p->cin;
    for (int ky = 0; ky < p->kh; ky++, b += row_b) {
        if (!in.row[ky])
            continue;
        const float *a = in.row[ky] + in.first;
        for (int t = 0; t < taps; t++)
            seg[n++] = (struct vgk_segment){a + t * p->dx * in.pixel, b + t * *len * p->nr};
    }
    return n;
}

static void direct(const struct vgk_conv_job *j, int unit, float *scratch)
{
    const struct vgk_conv_plan *p = &j->plan;
    const struct vgk_micro *micro = &VGK_SET(vgk_micro);
    const struct part t = part_of(j, unit);
    put_fn *out = puts_by_act[p->act];
    struct vgk_segment *seg = (struct vgk_segment *)scratch;
    const float **row = (const float **)(seg + p->kh * p->wide_kw), **edge_row = row + p->kh;
    float *sum = scratch + p->tables, *unpacked = sum + p->mr * p->nr;
    ptrdiff_t panel = (ptrdiff_t)p->kh * p->wide_kw * p->cin * p->nr;
    float *edge = unpacked + (p->keeps ? panel : 0);
    ptrdiff_t out_x = p->out.x * p->fold, res_x = p->res.x * p->fold;
    int last = p->ow % p->fold * p->cout; /* channels of a row's last wide pixel, 0 = all */

    /* Either all panels for a block (its input stays in the first cache), or all blocks for a panel (its weights do). */
    int passes = p->blocks_first ? p->panels : 1, panels = p->panels / passes;
    for (int pass = 0; pass < passes; pass++) {
        if (p->keeps) /* one panel a pass */
            j->unpack(&p->stored, (const char *)j->weights + ((size_t)t.group * (size_t)p->panels + (size_t)pass) * p->stored.bytes,
                      unpacked);
        for (int y = t.y0; y < t.y1; y++) {
            rows_of(p, t.in, y, row);
            for (int x = t.x0; x < t.x1; x += p->mr) {
                int k = t.x1 - x < p->mr ? t.x1 - x : p->mr;
                struct window in = window_at(p, row, edge_row, x, k, edge);
                for (int i = pass * panels; i < (pass + 1) * panels; i++) {
                    ptrdiff_t len, index = t.group * (ptrdiff_t)p->panels + i;
                    int c = i * p->nr, nch = p->wide_cout - c < p->nr ? p->wide_cout - c : p->nr;
                    float *o = t.out + y * p->out.y + x * out_x + c;
                    for (int r = 0; r < k && p->panels > 1; r++) /* strided, so the machine does not foresee it */
                        __builtin_prefetch(o + r * out_x, 1);
                    const float *weights = p->keeps ? unpacked : (const float *)j->weights + index * panel;
                    int n = segments_of(p, in, weights, seg, &len);
                    micro->fn[p->nv][k](n, seg, len, p->sx * p->fold * in.pixel, sum, p->nr);
                    const float *r = t.res ? t.res + y * p->res.y + x * res_x + c : NULL;
                    struct epilogue e = {j->scale + index * p->nr, j->shift + index * p->nr, j->slope + index * p->nr,
                                         p->alpha, p->beta, p->residual_before_act};
                    int full = last && x + k == p->wide_ow ? k - 1 : k;
                    out(&e, sum, p->nr, full, nch, o, out_x, r, res_x);
                    if (full < k && last > c)
                        out(&e, sum + full * p->nr, p->nr, 1, last - c < nch ? last - c : nch, o + full * out_x, out_x,
                            r ? r + full * res_x : NULL, res_x);
                }
            }
        }
    }
}

/* ---- depthwise ---- */

/* k pixels of one vector of channels; n < VL channels are read where the vector is the last one. */
INLINE void taps(const int k, const bool partial, const struct vgk_conv_plan *p, struct window in, const float *w,
                 float *sum, int n)
{
    vf acc[4];
    ptrdiff_t lda = p->sx * in.pixel;
    UNROLL(4)
    for (int r = 0; r < k; r++)
        acc[r] = (vf){0};
    for (int ky = 0; ky < p->kh; ky++, w += p->kw * VL) {
        if (!in.row[ky])
            continue;
        const float *a = in.row[ky] + in.first;
        for (int kx = 0; kx < p->kw; kx++, a += p->dx * in.pixel) {
            vf wv = load(w + kx * VL);
            UNROLL(4)
            for (int r = 0; r < k; r++)
                acc[r] += (partial ? load_part(a + r * lda, n) : load(a + r * lda)) * wv;
        }
    }
    UNROLL(4)
    for (int r = 0; r < k; r++)
        store(sum + r * VL, acc[r]);
}

typedef void taps_fn(const struct vgk_conv_plan *, struct window, const float *, float *, int);
#define TAPS(K) \
    static void taps_##K(const struct vgk_conv_plan *p, struct window in, const float *w, float *sum, int n) \
    { \
        if (n < VL) \
            taps(K, true, p, in, w, sum, n); \
        else \
            taps(K, false, p, in, w, sum, n); \
    }
TAPS(1) TAPS(2) TAPS(3) TAPS(4)
static taps_fn *const taps_by_pixels[] = {NULL, taps_1, taps_2, taps_3, taps_4};

static void depthwise(const struct vgk_conv_job *j, int unit, float *scratch)
{
    const struct vgk_conv_plan *p = &j->plan;
    const struct part t = part_of(j, unit);
    put_fn *out = puts_by_act[p->act];
    const float **row = (const float **)scratch, **edge_row = row + p->kh;
    float *sum = scratch + p->tables, *edge = sum + p->mr * VL;
    for (int y = t.y0; y < t.y1; y++) {
        rows_of(p, t.in, y, row);
        for (int x = t.x0; x < t.x1; x += p->mr) {
            int k = t.x1 - x < p->mr ? t.x1 - x : p->mr;
            const struct window block = window_at(p, row, edge_row, x, k, edge);
            struct window in = block;
            const float *w = j->weights;
            for (int c = 0; c < p->cin; c += VL, w += p->kh * p->kw * VL, in.first += VL) {
                struct epilogue e = {j->scale + c, j->shift + c, j->slope + c, p->alpha, p->beta, p->residual_before_act};
                int n = p->cin - c < VL ? p->cin - c : VL;
                taps_by_pixels[k](p, in, w, sum, n);
                out(&e, sum, VL, k, n, t.out + y * p->out.y + x * p->out.x + c, p->out.x,
                    t.res ? t.res + y * p->res.y + x * p->res.x + c : NULL, p->res.x);
            }
        }
    }
}

const struct vgk_conv_kernels VGK_SET(vgk_conv) = {
    .micro = &VGK_SET(vgk_micro),
    .unit = {[VGK_CONV_DIRECT] = direct, [VGK_CONV_DEPTHWISE] = depthwise, [VGK_CONV_WINOGRAD] = VGK_SET(vgk_conv_winograd)},
};
