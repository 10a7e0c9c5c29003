/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Convolution to few output channels: planar and dot, one unit of work each. */
#include "conv_unit.h"

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

/* ---- planar ---- */

/* n vectors of pixels times q channels, up to PLANAR_VECTORS. */
#if VECTOR_REGISTERS == 32
#define EACH_PLANAR_1(F) F(1, 1) F(1, 2) F(1, 3) F(1, 4) F(1, 5) F(1, 6) F(1, 7) F(1, 8) F(1, 9) F(1, 10) F(1, 11) F(1, 12)
#define EACH_PLANAR_2(F) F(2, 1) F(2, 2) F(2, 3) F(2, 4) F(2, 5) F(2, 6) F(2, 7) F(2, 8) F(2, 9) F(2, 10) F(2, 11) F(2, 12)
#define EACH_PLANAR_3(F) F(3, 1) F(3, 2) F(3, 3) F(3, 4) F(3, 5) F(3, 6) F(3, 7) F(3, 8)
#define EACH_PLANAR_4(F) F(4, 1) F(4, 2) F(4, 3) F(4, 4) F(4, 5) F(4, 6)
#else
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

void VGK_SET(vgk_conv_planar)(const struct vgk_conv_job *j, int unit, float *scratch)
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

/* ---- dot ---- */

/* The sums of the lanes of a[0] .. a[3]: to the four lanes of each four, which are still to be added up. */
INLINE vf sums_of_fours(const vf *a)
{
    vf b = SHUFFLE(a[0], a[1], 0, 4, 1, 5) + SHUFFLE(a[0], a[1], 2, 6, 3, 7);
    vf c = SHUFFLE(a[2], a[3], 0, 4, 1, 5) + SHUFFLE(a[2], a[3], 2, 6, 3, 7);
    return SHUFFLE(b, c, 0, 1, 4, 5) + SHUFFLE(b, c, 2, 3, 6, 7);
}

/* m pixels (DOT_ROWS) times q channels. */
#if VECTOR_REGISTERS == 32
#define EACH_DOT(F) F(16, 1) F(12, 2) F(8, 3) F(6, 4)
#else
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

void VGK_SET(vgk_conv_dot)(const struct vgk_conv_job *j, int unit, float *scratch)
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
