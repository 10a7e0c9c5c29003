/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Direct, bf16, planar, dot and depthwise convolution: one unit of work each.
 *
 * Blocks of neighbouring output pixels read the tensor where it lies.  Only a block that touches the left or right edge
 * reads a copy of its few columns, padded; rows of zeros around are left out of the sum. */
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

static struct part part_of(const struct vgk_conv_job *j, int unit)
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
static void rows_of(const struct vgk_conv_plan *p, const float *in, int z, int y, const float **row)
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
static struct window window_at(const struct vgk_conv_plan *p, const float **row, const float **edge_row, int x, int k,
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
static int stretch(const struct vgk_conv_plan *p, const struct part *t, int x, int most)
{
    int reach = p->w - 1 - (p->kw - 1) * p->dx + p->left;
    int first = (p->left + p->sx - 1) / p->sx, end = reach < 0 ? 0 : reach / p->sx + 1, k = t->x1 - x < most ? t->x1 - x : most;
    if (x >= first && x < end)
        return end - x < k ? end - x : k;
    if (x < first && first < end && first - x < k)
        k = first - x;
    return k < p->mr ? k : p->mr;
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

/* ---- few outputs: planar and dot ---- */

typedef float v4 __attribute__((vector_size(16)));
union quarters {
    vf whole;
    v4 part[VL / 4];
};

/* Lanes i0 .. i3 of each four of a, counted on in those of b. */
#define LANE_(i, k) ((i) < 4 ? (i) + 4 * (k) : (i) - 4 + 4 * (k) + VL)
#define FOUR_(k, i0, i1, i2, i3) LANE_(i0, k), LANE_(i1, k), LANE_(i2, k), LANE_(i3, k)
#if VGK_VL == 16
#define LANES(...) FOUR_(0, __VA_ARGS__), FOUR_(1, __VA_ARGS__), FOUR_(2, __VA_ARGS__), FOUR_(3, __VA_ARGS__)
#elif VGK_VL == 8
#define LANES(...) FOUR_(0, __VA_ARGS__), FOUR_(1, __VA_ARGS__)
#else
#define LANES(...) FOUR_(0, __VA_ARGS__)
#endif
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, LANES(__VA_ARGS__))

/* Four floats from each of VL / 4 places.  By name: gcc goes through memory, or shuffles what could come from it. */
INLINE vf load_fours(const float *p, ptrdiff_t apart)
{
#if VGK_VL == 16 && defined(__AVX512F__)
    __m512 v = _mm512_insertf32x4(_mm512_castps128_ps512(_mm_loadu_ps(p)), _mm_loadu_ps(p + apart), 1);
    v = _mm512_insertf32x4(v, _mm_loadu_ps(p + 2 * apart), 2);
    return (vf)_mm512_insertf32x4(v, _mm_loadu_ps(p + 3 * apart), 3);
#elif VGK_VL == 8 && defined(__AVX2__)
    return (vf)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + apart), 1);
#else
    union quarters u;
    for (int g = 0; g < VL / 4; g++)
        __builtin_memcpy(&u.part[g], p + g * apart, sizeof u.part[g]);
    return u.whole;
#endif
}

/* Each four lanes of four vectors as a matrix, transposed. */
INLINE void transpose(vf *v)
{
    vf a = SHUFFLE(v[0], v[1], 0, 4, 1, 5), b = SHUFFLE(v[2], v[3], 0, 4, 1, 5);
    vf c = SHUFFLE(v[0], v[1], 2, 6, 3, 7), d = SHUFFLE(v[2], v[3], 2, 6, 3, 7);
    v[0] = SHUFFLE(a, b, 0, 1, 4, 5);
    v[1] = SHUFFLE(a, b, 2, 3, 6, 7);
    v[2] = SHUFFLE(c, d, 0, 1, 4, 5);
    v[3] = SHUFFLE(c, d, 2, 3, 6, 7);
}

/* k pixels of a row from x on, whose sums lie one behind the other. */
static void put_pixels(const struct vgk_conv_job *j, const struct part *t, int y, int x, int k, const float *sum)
{
    const struct vgk_conv_plan *p = &j->plan;
    const struct epilogue e = {j->scale, j->shift, j->slope, p->alpha, p->beta, p->residual_before_act};
    int q = p->cout, wide = q * VL, n = k / VL;
    float *o = t->out + y * p->out.y + x * p->out.x;
    const float *r = t->res ? t->res + y * p->res.y + x * p->res.x : NULL;
    put_fn *put_out = puts_by_act[p->act];
    if (p->out.x != q || (r && p->res.x != q)) {
        put_out(&e, sum, q, k, q, o, p->out.x, r, p->res.x);
        return;
    }
    put_out(&e, sum, wide, n, wide, o, wide, r, wide);
    if (k % VL)
        put_out(&e, sum + n * wide, wide, 1, k % VL * q, o + n * wide, wide, r ? r + n * wide : NULL, wide);
}

/* Columns [x, x + count) of a row, padded, each channel `apart` floats behind the one before.  Four channels are read at a
 * time, where that many are left in the row. */
static void part_channels(const struct vgk_conv_plan *p, const float *row, int x, int count, float *to, ptrdiff_t apart)
{
    int c = p->cin, few = c < 4 ? c : 4, first = x < 0 ? -x : 0, end = p->w - x < count ? p->w - x : count;
    ptrdiff_t pixel = p->in.x;
    for (int i = 0; i < count; i++) {
        if (i == first && end > first)
            i = end;
        if (i == count)
            break;
        int ix = vgk_conv_source(x + i, p->w, p->pad_mode);
        for (int k = 0; k < c; k++)
            to[k * apart + i] = ix < 0 ? 0 : row[ix * pixel + k];
    }
    row += x * pixel;
    int whole = end;
    while (whole > first && (x + whole - 1) * pixel + 3 >= (p->w - 1) * pixel + c && c < 4)
        whole--;
    for (int from = 0; from < c; from += 4) {
        int k0 = from + 4 <= c || c < 4 ? from : c - 4, i = first;
        for (; i < whole && whole - first >= VL; i += VL) {
            i = i + VL > whole ? whole - VL : i;
            vf v[4];
            UNROLL(4)
            for (int k = 0; k < 4; k++)
                v[k] = load_fours(row + (i + k) * pixel + k0, 4 * pixel);
            transpose(v);
            for (int k = 0; k < few; k++)
                store(to + (k0 + k) * apart + i, v[k]);
        }
        for (; i < end; i++)
            for (int k = k0; k < k0 + few; k++)
                to[k * apart + i] = row[i * pixel + k];
    }
}

/* n vectors of pixels times q channels: as many accumulators as the registers hold beside q weights and a vector. */
#if VECTOR_REGISTERS == 32
#define PLANAR_VECTORS {0, 12, 12, 8, 6}
#define EACH_PLANAR_1(F) F(1, 1) F(1, 2) F(1, 3) F(1, 4) F(1, 5) F(1, 6) F(1, 7) F(1, 8) F(1, 9) F(1, 10) F(1, 11) F(1, 12)
#define EACH_PLANAR_2(F) F(2, 1) F(2, 2) F(2, 3) F(2, 4) F(2, 5) F(2, 6) F(2, 7) F(2, 8) F(2, 9) F(2, 10) F(2, 11) F(2, 12)
#define EACH_PLANAR_3(F) F(3, 1) F(3, 2) F(3, 3) F(3, 4) F(3, 5) F(3, 6) F(3, 7) F(3, 8)
#define EACH_PLANAR_4(F) F(4, 1) F(4, 2) F(4, 3) F(4, 4) F(4, 5) F(4, 6)
#else
#define PLANAR_VECTORS {0, 8, 6, 4, 3}
#define EACH_PLANAR_1(F) F(1, 1) F(1, 2) F(1, 3) F(1, 4) F(1, 5) F(1, 6) F(1, 7) F(1, 8)
#define EACH_PLANAR_2(F) F(2, 1) F(2, 2) F(2, 3) F(2, 4) F(2, 5) F(2, 6)
#define EACH_PLANAR_3(F) F(3, 1) F(3, 2) F(3, 3) F(3, 4)
#define EACH_PLANAR_4(F) F(4, 1) F(4, 2) F(4, 3)
#endif
#define EACH_PLANAR(F) EACH_PLANAR_1(F) EACH_PLANAR_2(F) EACH_PLANAR_3(F) EACH_PLANAR_4(F)

/* row: of the copy for each row of the kernel, NULL = zeros; x: the first pixel. */
INLINE void planar_block(const int q, const int n, const struct vgk_conv_plan *p, const float *const *row, int x,
                         const float *w, float *sum)
{
    vf acc[24];
    UNROLL(24)
    for (int i = 0; i < q * n; i++)
        acc[i] = (vf){0};
    for (int i = 0; i < p->kd * p->kh; i++) {
        if (!row[i]) {
            w += (ptrdiff_t)p->cin * p->kw * q;
            continue;
        }
        const float *plane = row[i] + x;
        for (int k = 0; k < p->cin; k++, plane += p->plane) {
            const float *a = plane;
            for (int kx = 0; kx < p->kw; kx++, a += p->dx, w += q) {
                /* Those that are fewer stay in registers. */
                vf few[VGK_CONV_THIN];
                UNROLL(4)
                for (int f = 0; f < (q < n ? q : n); f++)
                    few[f] = q < n ? in_register(splat(w[f])) : load(a + f * VL);
                UNROLL(12)
                for (int m = 0; m < (q < n ? n : q); m++) {
                    vf many = in_register(q < n ? load(a + m * VL) : splat(w[m]));
                    UNROLL(4)
                    for (int f = 0; f < (q < n ? q : n); f++)
                        acc[q < n ? m * q + f : f * q + m] += many * few[f];
                }
            }
        }
    }
    UNROLL(12)
    for (int v = 0; v < n; v++, sum += q * VL) {
        vf t[4] = {{0}};
        UNROLL(4)
        for (int c = 0; c < q; c++)
            t[c] = acc[v * q + c];
        if (q == 1) {
            store(sum, t[0]);
            continue;
        }
        transpose(t);
        /* Four channels at a time: those that are too many are written over by the next pixel's. */
        UNROLL(4)
        for (int g = 0; g < VL / 4; g++) {
            UNROLL(4)
            for (int k = 0; k < 4; k++)
                __builtin_memcpy(sum + (4 * g + k) * q, &((union quarters){t[k]}).part[g], sizeof(v4));
        }
    }
}

typedef void planar_fn(const struct vgk_conv_plan *, const float *const *row, int x, const float *, float *);
#define PLANAR(Q, N) \
    static void planar_##Q##_##N(const struct vgk_conv_plan *p, const float *const *row, int x, const float *w, float *sum) \
    { \
        planar_block(Q, N, p, row, x, w, sum); \
    }
EACH_PLANAR(PLANAR)
#define PLANAR_ENTRY(Q, N) [Q][N] = planar_##Q##_##N,
static planar_fn *const planars[VGK_CONV_THIN + 1][13] = {EACH_PLANAR(PLANAR_ENTRY)};

static void planar(const struct vgk_conv_job *j, int unit, float *scratch)
{
    const struct vgk_conv_plan *p = &j->plan;
    const struct part t = part_of(j, unit);
    const float **row = (const float **)scratch, **source = row + p->kd * p->kh;
    float *sum = scratch + p->tables, *copy = sum + p->sums;
    int k = t.x1 - t.x0, span = (p->kh - 1) * p->dy + 1, next = 0; /* row that was not copied yet */
    for (int y = t.y0; y < t.y1; y++) {
        rows_of(p, t.in, t.z, y, source);
        for (int i = 0; i < p->kd * p->kh; i++) {
            int at = y * p->sy + i % p->kh * p->dy;
            float *to = copy + ((ptrdiff_t)(i / p->kh) * span + at % span) * p->cin * p->plane;
            if (source[i] && at >= next)
                part_channels(p, source[i], t.x0 - p->left, k + (p->kw - 1) * p->dx, to, p->plane);
            row[i] = source[i] ? to : NULL;
        }
        next = p->dy == 1 ? y * p->sy + span : 0;
        for (int left = (k + VL - 1) / VL, x = 0, n; left; left -= n, x += n * VL) {
            int blocks = (left + p->vectors - 1) / p->vectors; /* about as long as each other */
            n = (left + blocks - 1) / blocks;
            planars[p->cout][n](p, row, x, j->weights, sum + x * p->cout);
        }
        put_pixels(j, &t, y, t.x0, k, sum);
    }
}

/* The sums of the lanes of a[0] .. a[3]: to the four lanes of each four, which are still to be added up. */
INLINE vf sums_of_fours(const vf *a)
{
    vf b = SHUFFLE(a[0], a[1], 0, 4, 1, 5) + SHUFFLE(a[0], a[1], 2, 6, 3, 7);
    vf c = SHUFFLE(a[2], a[3], 0, 4, 1, 5) + SHUFFLE(a[2], a[3], 2, 6, 3, 7);
    return SHUFFLE(b, c, 0, 1, 4, 5) + SHUFFLE(b, c, 2, 3, 6, 7);
}

/* m pixels times q channels, a multiple of 4: as many accumulators as the registers hold beside q weights and a pixel. */
#if VECTOR_REGISTERS == 32
#define DOT_ROWS {0, 16, 12, 8, 6}
#define EACH_DOT(F) F(16, 1) F(12, 2) F(8, 3) F(6, 4)
#else
#define DOT_ROWS {0, 8, 6, 4, 3}
#define EACH_DOT(F) F(8, 1) F(6, 2) F(4, 3) F(3, 4)
#endif

INLINE void dot_block(const int m, const int q, const struct vgk_conv_plan *p, const struct window *in, ptrdiff_t first,
                      const float *w, float *sum)
{
    vf acc[24];
    int rows = p->kd * p->kh;
    ptrdiff_t lda = p->sx * in->pixel, step = p->dx * in->pixel;
    UNROLL(24)
    for (int i = 0; i < m * q; i++)
        acc[i] = (vf){0};
    for (int i = 0; i < rows; i++) {
        if (!in->row[i]) {
            w += (ptrdiff_t)p->kw * p->cin * q;
            continue;
        }
        const float *a = in->row[i] + first;
        for (int t = 0; t < p->kw; t++, a += step)
            for (int c = 0; c < p->cin; c += VL, w += q * VL) {
                vf bv[VGK_CONV_THIN];
                UNROLL(4)
                for (int o = 0; o < q; o++)
                    bv[o] = load(w + o * VL);
                UNROLL(16)
                for (int r = 0; r < m; r++) {
                    vf x = in_register(load(a + c + r * lda));
                    UNROLL(4)
                    for (int o = 0; o < q; o++)
                        acc[r * q + o] += x * bv[o];
                }
            }
    }
    UNROLL(6)
    for (int i = 0; i < m * q; i += 4) {
        union quarters u = {sums_of_fours(acc + i)};
        v4 s = u.part[0];
        UNROLL(4)
        for (int k = 1; k < VL / 4; k++)
            s += u.part[k];
        __builtin_memcpy(sum + i, &s, sizeof s);
    }
}

/* n blocks of m pixels. */
typedef void dot_fn(const struct vgk_conv_plan *, const struct window *, int n, const float *, float *);
#define DOT(MR, Q) \
    static void dot_##Q(const struct vgk_conv_plan *p, const struct window *in, int n, const float *w, float *sum) \
    { \
        ptrdiff_t first = in->first, step = MR * p->sx * in->pixel; \
        for (int i = 0; i < n; i++, first += step, sum += MR * Q) \
            dot_block(MR, Q, p, in, first, w, sum); \
    }
EACH_DOT(DOT)
static dot_fn *const dots_by_channels[VGK_CONV_THIN + 1] = {NULL, dot_1, dot_2, dot_3, dot_4};

static void dot(const struct vgk_conv_job *j, int unit, float *scratch)
{
    const struct vgk_conv_plan *p = &j->plan;
    const struct part t = part_of(j, unit);
    const float **row = (const float **)scratch, **edge_row = row + p->kd * p->kh;
    float *sum = scratch + p->tables, *edge = sum + p->sums;
    for (int y = t.y0; y < t.y1; y++) {
        rows_of(p, t.in, t.z, y, row);
        for (int x = t.x0, k; x < t.x1; x += k) {
            k = stretch(p, &t, x, p->stretch);
            /* Whole blocks; or one that computes more pixels than there are, from a copy that is padded for them. */
            int blocks = k / p->mr > 1 ? k / p->mr : 1;
            struct window in = window_at(p, row, edge_row, x, blocks * p->mr, 0, edge);
            k = k < blocks * p->mr ? k : blocks * p->mr;
            dots_by_channels[p->cout](p, &in, blocks, j->weights, sum);
            put_pixels(j, &t, y, x, k, sum);
        }
    }
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
    .unit = {[VGK_CONV_DIRECT] = direct, [VGK_CONV_DOT] = dot, [VGK_CONV_PLANAR] = planar,
             [VGK_CONV_DEPTHWISE] = depthwise, [VGK_CONV_WINOGRAD] = VGK_SET(vgk_conv_winograd), [VGK_CONV_BF16] = bf16},
};
