/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Direct, bf16 and depthwise convolution: one unit of work each.  Few outputs are in conv_thin_vector.c.
 *
 * Blocks of neighbouring output pixels read the tensor where it lies.  Only a block that touches the left or right edge
 * reads a copy of its few columns, padded; rows of zeros around are left out of the sum. */
#include "conv_unit.h"

/* ---- direct ---- */

/* A kernel row is one segment where its pixels touch, else each of its taps is one.  Returns how many. */
static int segments_of(const struct vgk_conv_plan *p, struct window in, const float *b, struct vgk_segment *seg,
                       ptrdiff_t *len)
{
    bool whole = p->dx == 1 && in.pixel == p->cin;
    int taps = whole ? 1 : p->wide_kw, n = 0;
    ptrdiff_t row_b = (ptrdiff_t)p->wide_kw * p->cin * p->nr;
    *len = whole ? (ptrdiff_t)p->wide_kw * p->cin : p->cin;
    for (int i = 0; i < p->kd * p->kh; i++, b += row_b) {
        if (!in.row[i])
            continue;
        const float *a = in.row[i] + in.first;
        for (int t = 0; t < taps; t++)
            seg[n++] = (struct vgk_segment){a + t * p->dx * in.pixel, b + t * *len * p->nr};
    }
    return n;
}

/* The sums of k wide pixels from x of row y on, the wide channels of a panel of a group, to the output. */
static void put_panel(const struct vgk_conv_job *j, const struct part *t, int g, int panel, int y, int x, int k,
                      const float *sum)
{
    const struct vgk_conv_plan *p = &j->plan;
    put_fn *out = puts_by_act[p->act];
    int c = panel * p->nr, nch = p->wide_cout - c < p->nr ? p->wide_cout - c : p->nr;
    ptrdiff_t out_x = p->out.x * p->fold, res_x = p->res.x * p->fold, group = (ptrdiff_t)g * p->cout;
    ptrdiff_t constants = (ptrdiff_t)(g * p->panels + panel) * p->nr;
    float *o = t->out + y * p->out.y + x * out_x + group + c;
    const float *r = t->res ? t->res + y * p->res.y + x * res_x + group + c : NULL;
    struct epilogue e = {j->scale + constants, j->shift + constants, j->slope + constants, p->alpha, p->beta,
                         p->residual_before_act};
    /* Pixels of the last wide one. */
    int last = x + k == p->wide_ow ? p->ow - (p->wide_ow - 1) * p->fold : p->fold, full = last < p->fold ? k - 1 : k;
    if (p->fold == 1 || (p->out.x == p->cout && (!r || p->res.x == p->cout))) {
        out(&e, sum, p->nr, full, nch, o, out_x, r, res_x);
        if (full < k && last * p->cout > c)
            out(&e, sum + full * p->nr, p->nr, 1, last * p->cout - c < nch ? last * p->cout - c : nch, o + full * out_x, out_x,
                r ? r + full * res_x : NULL, res_x);
        return;
    }
    for (int f = 0; f < p->fold; f++) {
        out(&e, sum + f * p->cout, p->nr, f < last ? k : full, p->cout, o + f * p->out.x, out_x, r ? r + f * p->res.x : NULL,
            res_x);
        e.scale += p->cout;
        e.shift += p->cout;
        e.slope += p->cout;
    }
}

/* Asks for the next block's columns of the rows that come with this row of outputs: products walk several pixels at once,
 * which the machine does not foresee.  (Not inlined, gcc takes it for a function without effects, and leaves it out.) */
INLINE void foresee(const struct vgk_conv_plan *p, const struct window *in)
{
    ptrdiff_t floats = p->mr * p->sx * p->fold * in->pixel, next = in->first + floats + p->wide_kw * in->pixel;
    int rows = p->kd * p->kh;
    for (int r = rows - (p->sy < p->kh ? p->sy : p->kh); r < rows; r++)
        for (ptrdiff_t i = 0; i < floats && in->row[r]; i += VGK_ALIGN / (ptrdiff_t)sizeof(float))
            __builtin_prefetch(in->row[r] + next + i);
}

static void direct(const struct vgk_conv_job *j, int unit, float *scratch)
{
    const struct vgk_conv_plan *p = &j->plan;
    const struct vgk_micro *micro = &VGK_SET(vgk_micro);
    const struct part t = part_of(j, unit);
    struct vgk_segment *seg = (struct vgk_segment *)scratch;
    const float **row = (const float **)(seg + p->kd * p->kh * p->wide_kw), **edge_row = row + p->kd * p->kh;
    ptrdiff_t panel = (ptrdiff_t)p->kd * p->kh * p->wide_kw * p->cin * p->nr, out_x = p->out.x * p->fold;
    float *sum = scratch + p->tables, *unpacked = sum + p->sums, *edge = unpacked + (p->keeps ? panel : 0);

    /* Either all panels for a block (its input stays in the first cache), or all blocks for a panel (its weights do). */
    int all = p->groups * p->panels, step = p->blocks_first ? 1 : all;
    for (int begin = 0; begin < all; begin += step) {
        const float *first = p->keeps ? unpacked : (const float *)j->weights + begin * panel;
        if (p->keeps) /* one panel at a time */
            j->unpack(&p->stored, (const char *)j->weights + (size_t)begin * p->stored.bytes, unpacked);
        for (int y = t.y0; y < t.y1; y++) {
            rows_of(p, t.in, t.z, y, row);
            for (int x = t.x0; x < t.x1; x += p->mr) {
                int k = t.x1 - x < p->mr ? t.x1 - x : p->mr, g = begin / p->panels, i = begin % p->panels;
                struct window in = window_at(p, row, edge_row, x, k, g * p->cin, edge);
                const float *weights = first;
                foresee(p, &in);
                for (int left = step;; weights += panel) {
                    if (all > 1) { /* strided, so the machine does not foresee it */
                        float *o = t.out + y * p->out.y + x * out_x + g * p->cout + i * p->nr;
                        for (int r = 0; r < k; r++, o += out_x)
                            __builtin_prefetch(o, 1);
                    }
                    ptrdiff_t len;
                    int n = segments_of(p, in, weights, seg, &len);
                    micro->fn[p->nv][k](n, seg, len, p->sx * p->fold * in.pixel, sum, p->nr);
                    put_panel(j, &t, g, i, y, x, k, sum);
                    if (!--left)
                        break;
                    if (++i == p->panels) {
                        i = 0;
                        in = window_at(p, row, edge_row, x, k, ++g * p->cin, edge);
                    }
                }
            }
        }
    }
}

/* ---- bf16 ---- */

/* Columns [x, x + count) of a row (NULL: zeros), padded, as `halves` numbers a pixel. */
static void halve_row(const struct vgk_conv_plan *p, const float *row, int x, int count, uint16_t *to)
{
    bool dense = p->in.x == p->cin && p->cin == p->halves;
    for (int i = 0, run; i < count; i += run, to += (ptrdiff_t)run * p->halves) {
        int ix = row ? vgk_conv_source(x + i, p->w, p->pad_mode) : -1;
        run = !dense || ix < 0 || ix != x + i ? 1 : p->w - ix < count - i ? p->w - ix : count - i;
        int64_t n = ix < 0 ? 0 : (int64_t)run * p->cin;
        if (n)
            VGK_SET(vgk_weights).to_bf16(row + ix * p->in.x, n, to);
        memset(to + n, 0, sizeof *to * (size_t)((int64_t)run * p->halves - n));
    }
}

static void bf16(const struct vgk_conv_job *j, int unit, float *scratch)
{
    const struct vgk_conv_plan *p = &j->plan;
    const struct part t = part_of(j, unit);
    struct vgk_bf16_segment *seg = (struct vgk_bf16_segment *)scratch;
    float *sum = scratch + p->tables;
    uint16_t *copy = (uint16_t *)(sum + p->sums);
    const uint16_t *weights = j->weights;
    int blocks = (t.x1 - t.x0 + p->mr - 1) / p->mr, rows = (t.y1 - t.y0 - 1) * p->sy + (p->kh - 1) * p->dy + 1;
    int columns = (blocks * p->mr - 1) * p->sx + (p->kw - 1) * p->dx + 1, taps = p->dx == 1 ? 1 : p->kw, n = p->kh * taps;
    ptrdiff_t row = (ptrdiff_t)columns * p->halves, lda = (ptrdiff_t)p->sx * p->halves;
    ptrdiff_t len = (ptrdiff_t)(p->kw / taps) * p->halves;
    for (int i = 0; i < rows; i++) {
        int iy = vgk_conv_source(t.y0 * p->sy - p->top + i, p->h, p->pad_mode);
        halve_row(p, iy < 0 ? NULL : t.in + iy * p->in.y, t.x0 * p->sx - p->left, columns, copy + i * row);
    }
    p->product->begin();
    for (int i = 0; i < p->panels; i++, weights += n * len * p->nr)
        for (int y = t.y0; y < t.y1; y++) {
            for (int s = 0; s < n; s++) {
                const uint16_t *a = copy + ((y - t.y0) * p->sy + s / taps * p->dy) * row;
                seg[s] = (struct vgk_bf16_segment){a + (ptrdiff_t)(s % taps) * p->dx * p->halves, weights + s * len * p->nr};
            }
            for (int x = t.x0; x < t.x1; x += p->mr) {
                p->product->block[p->nv](n, seg, len, lda, sum);
                put_panel(j, &t, 0, i, y, x, t.x1 - x < p->mr ? t.x1 - x : p->mr, sum);
                for (int s = 0; s < n; s++)
                    seg[s].a += p->mr * lda;
            }
        }
    p->product->end();
}

/* ---- depthwise ---- */

enum { DEPTHWISE_ROWS = 8 };

/* m pixels of one vector of channels; n < VL channels are read where the vector is the last one. */
INLINE void taps(const int m, const bool partial, const struct vgk_conv_plan *p, const struct window *in, ptrdiff_t first,
                 const float *w, float *sum, int n)
{
    vf acc[DEPTHWISE_ROWS];
    ptrdiff_t lda = p->sx * in->pixel, step = p->dx * in->pixel;
    int kw = p->kw, rows = p->kd * p->kh;
    UNROLL(8)
    for (int r = 0; r < m; r++)
        acc[r] = (vf){0};
    for (int i = 0; i < rows; i++, w += kw * VL) {
        if (!in->row[i])
            continue;
        const float *a = in->row[i] + first, *b = w;
        for (int kx = 0; kx < kw; kx++, a += step, b += VL) {
            vf wv = load(b);
            UNROLL(8)
            for (int r = 0; r < m; r++)
                acc[r] += (partial ? load_part(a + r * lda, n) : load(a + r * lda)) * wv;
        }
    }
    UNROLL(8)
    for (int r = 0; r < m; r++)
        store(sum + r * VL, acc[r]);
}

/* k pixels of one vector of channels. */
INLINE void stretch_of_taps(const bool partial, const struct vgk_conv_plan *p, const struct window *in, int k, const float *w,
                            float *sum, int n)
{
    ptrdiff_t first = in->first, lda = p->sx * in->pixel;
    for (; k >= DEPTHWISE_ROWS; k -= DEPTHWISE_ROWS, first += DEPTHWISE_ROWS * lda, sum += DEPTHWISE_ROWS * VL)
        taps(DEPTHWISE_ROWS, partial, p, in, first, w, sum, n);
    for (; k >= 2; k -= 2, first += 2 * lda, sum += 2 * VL)
        taps(2, partial, p, in, first, w, sum, n);
    if (k)
        taps(1, partial, p, in, first, w, sum, n);
}

static void depthwise(const struct vgk_conv_job *j, int unit, float *scratch)
{
    const struct vgk_conv_plan *p = &j->plan;
    const struct part t = part_of(j, unit);
    put_fn *put_out = puts_by_act[p->act];
    int weights = p->kd * p->kh * p->kw * VL;
    const float **row = (const float **)scratch, **edge_row = row + p->kd * p->kh;
    float *sum = scratch + p->tables, *edge = sum + p->sums;
    for (int y = t.y0; y < t.y1; y++) {
        rows_of(p, t.in, t.z, y, row);
        for (int x = t.x0, k; x < t.x1; x += k) {
            /* So long that a line, which has the inputs of several vectors of channels, stays until all have been there. */
            k = stretch(p, &t, x, p->stretch);
            struct window in = window_at(p, row, edge_row, x, k, 0, edge);
            const float *w = j->weights;
            for (int c = 0; c < p->cin; c += VL, w += weights, in.first += VL) {
                struct epilogue e = {j->scale + c, j->shift + c, j->slope + c, p->alpha, p->beta, p->residual_before_act};
                int n = p->cin - c < VL ? p->cin - c : VL;
                if (n < VL)
                    stretch_of_taps(true, p, &in, k, w, sum, n);
                else
                    stretch_of_taps(false, p, &in, k, w, sum, n);
                put_out(&e, sum, VL, k, n, t.out + y * p->out.y + x * p->out.x + c, p->out.x,
                        t.res ? t.res + y * p->res.y + x * p->res.x + c : NULL, p->res.x);
            }
        }
    }
}

const struct vgk_conv_kernels VGK_SET(vgk_conv) = {
    .micro = &VGK_SET(vgk_micro),
    .dot_rows = DOT_ROWS,
    .planar_vectors = PLANAR_VECTORS,
    .depthwise_rows = DEPTHWISE_ROWS,
    .unit = {[VGK_CONV_DIRECT] = direct, [VGK_CONV_DOT] = VGK_SET(vgk_conv_dot), [VGK_CONV_PLANAR] = VGK_SET(vgk_conv_planar),
             [VGK_CONV_DEPTHWISE] = depthwise, [VGK_CONV_WINOGRAD] = VGK_SET(vgk_conv_winograd), [VGK_CONV_BF16] = bf16},
};
