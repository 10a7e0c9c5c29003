/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Winograd F(6x6, 3x3), points 0, 1, -1, 2, -2, 1/2, -1/2, infinity: one unit of plan->tiles tiles.
 *
 * A unit transforms its input tiles (each position of the 8 x 8 becomes one matrix tiles x cin) and multiplies them with
 * the transformed weights, one panel of output channels at a time.  Positions are in the order of columns: when a column
 * of products is there, still in the first cache, the transform back along it makes 6 of its 8, and the one along the
 * rows comes when all columns are.
 *
 * The transforms are functions of their own with outer loops that are not unrolled: inlined and unrolled, gcc keeps
 * dozens of addresses alive and spills them for every tile. */
#include "conv.h"
#include "epilogue.h"

#include <string.h>

#define M VGK_WINOGRAD_OUT
#define N VGK_WINOGRAD_IN
#define NOINLINE static __attribute__((noinline))

/* B^T d, in place. */
INLINE void transform_in(vf *d)
{
    vf zero = (d[0] - d[6]) + 5.25f * (d[4] - d[2]);
    vf infinity = (d[7] - d[1]) + 5.25f * (d[3] - d[5]);
    vf even1 = d[2] + d[6] - 4.25f * d[4], odd1 = d[1] + d[5] - 4.25f * d[3];
    vf even2 = d[6] + (0.25f * d[2] - 1.25f * d[4]), odd2 = 2.0f * d[5] + (0.5f * d[1] - 2.5f * d[3]);
    vf even3 = d[6] + (4.0f * d[2] - 5.0f * d[4]), odd3 = 0.5f * d[5] + (2.0f * d[1] - 2.5f * d[3]);
    d[0] = zero;
    d[1] = even1 + odd1;
    d[2] = even1 - odd1;
    d[3] = even2 + odd2;
    d[4] = even2 - odd2;
    d[5] = even3 + odd3;
    d[6] = even3 - odd3;
    d[7] = infinity;
}

/* A^T s; the rows of +-1/2 carry a factor 32 that the weights' transform divides out. */
INLINE void transform_out(const vf *s, vf *o)
{
    vf a = s[1] + s[2], b = s[1] - s[2], c = s[3] + s[4], d = s[3] - s[4], e = s[5] + s[6], f = s[5] - s[6];
    o[0] = s[0] + a + c + 32.0f * e;
    o[1] = b + 2.0f * d + 16.0f * f;
    o[2] = a + 4.0f * c + 8.0f * e;
    o[3] = b + 8.0f * d + 4.0f * f;
    o[4] = a + 16.0f * c + 2.0f * e;
    o[5] = b + 32.0f * d + f + s[7];
}

/* The tile at in (pixels x floats, rows y floats apart) to v + position * vs, `channels` floats each. */
INLINE void input_tile(const bool partial, const float *in, ptrdiff_t y, ptrdiff_t x, int c0, int channels, float *v,
                       ptrdiff_t vs)
{
    vf t[N][N], d[N];
    for (int c = c0; c < channels; c += VL) {
        int n = channels - c;
        UNROLL(1)
        for (int i = 0; i < N; i++) {
            const float *p = in + i * y + c;
            UNROLL(8)
            for (int j = 0; j < N; j++)
                d[j] = partial ? load_part(p + j * x, n) : load(p + j * x);
            if (c % 16 == 0) { /* the new columns of the tile to the right, a line each */
                p += N * x;
                UNROLL(8)
                for (int j = 0; j < M; j++, p += x)
                    __builtin_prefetch(p);
            }
            transform_in(d);
            UNROLL(8)
            for (int j = 0; j < N; j++)
                t[i][j] = d[j];
        }
        UNROLL(1)
        for (int j = 0; j < N; j++) {
            float *o = v + j * N * vs + c;
            UNROLL(8)
            for (int i = 0; i < N; i++)
                d[i] = t[i][j];
            transform_in(d);
            UNROLL(8)
            for (int i = 0; i < N; i++, o += vs)
                store(o, d[i]);
        }
    }
}

NOINLINE void whole_vectors(const float *in, ptrdiff_t y, ptrdiff_t x, int channels, float *v, ptrdiff_t vs)
{
    input_tile(false, in, y, x, 0, channels, v, vs);
}

NOINLINE void last_vector(const float *in, ptrdiff_t y, ptrdiff_t x, int c0, int channels, float *v, ptrdiff_t vs)
{
    input_tile(true, in, y, x, c0, channels, v, vs);
}

/* Vector k of a column of products (positions `step` floats apart) transformed along it to place k of `half`. */
NOINLINE void half_out(const float *products, ptrdiff_t step, ptrdiff_t vectors, float *half)
{
    for (ptrdiff_t k = 0; k < vectors; k++, products += VL, half += M * N * VL) {
        vf s[N], o[M];
        UNROLL(8)
        for (int i = 0; i < N; i++)
            s[i] = load(products + i * step);
        transform_out(s, o);
        UNROLL(8)
        for (int i = 0; i < M; i++)
            store(half + i * VL, o[i]);
    }
}

/* One tile of the output, the channels of a panel. */
struct tile {
    const float *half; /* [vector of channels][column of products][row of outputs] */
    float *out;
    const float *res; /* or NULL */
    struct vgk_conv_image out_stride, res_stride;
    int rows, columns, channels; /* of the tile that are inside */
};

INLINE void output_tile(const enum vgk_act act, const struct epilogue *e, const struct tile *a)
{
    const float *half = a->half;
    ptrdiff_t x = a->out_stride.x, res_x = a->res_stride.x;
    for (int k = 0; k < a->channels; k += VL, half += M * N * VL) {
        struct channels ch = channels_at(e, k);
        int n = a->channels - k;
        UNROLL(1)
        for (int i = 0; i < a->rows; i++) {
            float *p = a->out + i * a->out_stride.y + k;
            const float *r = a->res ? a->res + i * a->res_stride.y + k : NULL;
            vf s[N], o[M];
            UNROLL(8)
            for (int j = 0; j < N; j++)
                s[j] = load(half + (j * M + i) * VL);
            transform_out(s, o);
            if (n >= VL && a->columns == M) {
                UNROLL(8)
                for (int j = 0; j < M; j++, p += x) {
                    store(p, finish(act, o[j], &ch, r, e->residual_before_act, VL));
                    if (k % 16 == 0)
                        __builtin_prefetch(p + M * x, 1);
                    if (r) {
                        if (k % 16 == 0)
                            __builtin_prefetch(r + M * res_x);
                        r += res_x;
                    }
                }
                continue;
            }
            UNROLL(8)
            for (int j = 0; j < M; j++)
                if (j < a->columns)
                    store_n(p + j * x, finish(act, o[j], &ch, r ? r + j * res_x : NULL, e->residual_before_act, n), n);
        }
    }
}

typedef void output_fn(const struct epilogue *, const struct tile *);
#define OUTPUT(NAME, ACT) \
    NOINLINE void output_##NAME(const struct epilogue *e, const struct tile *a) { output_tile(ACT, e, a); }
EACH_ACT(OUTPUT)
#define OUTPUT_ENTRY(NAME, ACT) [ACT] = output_##NAME,
static output_fn *const outputs_by_act[] = {EACH_ACT(OUTPUT_ENTRY)};

/* The N x N pixels from (y, x) on into patch, padded.  Rows above and behind the padding, which only rounding could tell
 * of, are zeros: a band of the frame does not have what a reflection would put there. */
static void copy_patch(const struct vgk_conv_plan *p, const float *in, int y, int x, float *patch)
{
    int end = p->oh - p->top + p->kh - 1;
    for (int i = 0; i < N; i++, patch += N * p->cin) {
        int iy = y + i >= -p->top && y + i < end ? vgk_conv_source(y + i, p->h, p->pad_mode) : -1;
        if (iy < 0)
            memset(patch, 0, sizeof *patch * N * (size_t)p->cin);
        else
            vgk_conv_copy(p, in + iy * p->in.y, x, N, patch);
    }
}

/* The 8 x 8 inputs from (y, x) on, transformed, to v. */
static void transform_patch(const struct vgk_conv_plan *p, const float *in, int y, int x, float *patch, float *v,
                            ptrdiff_t vs)
{
    ptrdiff_t src_y = (ptrdiff_t)N * p->cin, src_x = p->cin;
    int whole = p->cin / VL * VL;
    const float *src = patch;
    if (y >= 0 && x >= 0 && y + N <= p->h && x + N <= p->w) {
        src = in + y * p->in.y + x * p->in.x;
        src_y = p->in.y;
        src_x = p->in.x;
    } else {
        copy_patch(p, in, y, x, patch);
    }
    if (whole)
        whole_vectors(src, src_y, src_x, whole, v, vs);
    if (whole < p->cin)
        last_vector(src, src_y, src_x, whole, p->cin, v, vs);
}

/* Tiles t0 to t1 of an image, the channels of a group. */
static void tiles(const struct vgk_conv_job *j, int image, int group, int t0, int t1, float *scratch)
{
    const struct vgk_conv_plan *p = &j->plan;
    const struct vgk_micro *micro = &VGK_SET(vgk_micro);
    int across = (p->ow + M - 1) / M;
    const float *in = j->in + image * p->in.n + group * p->cin;
    ptrdiff_t row = (ptrdiff_t)p->inputs_row * p->cin, vs = p->blocks_y * row + VGK_WINOGRAD_GAP;
    ptrdiff_t ms = (ptrdiff_t)p->tiles * p->nr + VGK_WINOGRAD_GAP, half_tile = (ptrdiff_t)M * N * p->nr;
    float *v = scratch, *products = v + N * N * vs, *half = products + N * ms, *patch = half + p->tiles * half_tile;

    /* The last vector of a tile's channels may reach into the next tile's, which are written later. */
    for (int b = 0; b < p->blocks_y; b++)
        for (int i = 0; i < (t1 - t0 - 1) * p->inputs_apart + p->blocks_x; i++) {
            /* Inputs that tiles share are three pixels apart. */
            int k = i / p->inputs_apart < t1 - t0 ? i / p->inputs_apart : t1 - t0 - 1;
            int x = (t0 + k) % across * M + vgk_winograd_tap(i - k * p->inputs_apart, p->kw) - p->left;
            int y = (t0 + k) / across * M - p->above + vgk_winograd_tap(b, p->kh) - p->top;
            transform_patch(p, in, y, x, patch, v + b * row + (ptrdiff_t)i * p->cin, vs);
        }

    ptrdiff_t len = (ptrdiff_t)p->blocks_x * p->cin, lda = (ptrdiff_t)p->inputs_apart * p->cin;
    const float *weights = (const float *)j->weights + (size_t)group * (p->packed / sizeof(float) / (size_t)p->groups);
    for (int i = 0; i < p->panels; i++) {
        for (int q = 0; q < N * N; q++) {
            struct vgk_segment s[VGK_WINOGRAD_BLOCKS];
            for (int b = 0; b < p->blocks_y; b++, weights += len * p->nr)
                s[b] = (struct vgk_segment){v + q * vs + b * row, weights};
            float *c = products + q % N * ms;
            for (int left = t1 - t0; left > 0;) {
                int k = left < p->mr ? left : p->mr;
                micro->fn[p->nv][k](p->blocks_y, s, len, lda, c, p->nr);
                for (int b = 0; b < p->blocks_y; b++)
                    s[b].a += k * lda;
                c += k * p->nr;
                left -= k;
            }
            if (q % N == N - 1)
                half_out(products, ms, (ptrdiff_t)(t1 - t0) * p->nv, half + q / N * M * VL);
        }
        int c = i * p->nr, constants = group * p->panels * p->nr + c, to = group * p->cout + c;
        struct epilogue e = {j->scale + constants, j->shift + constants, j->slope + constants, p->alpha, p->beta,
                             p->residual_before_act};
        for (int t = t0; t < t1; t++) {
            int first = t / across * M - p->above, y = first > 0 ? first : 0, x = t % across * M;
            struct tile a = {
                .half = half + (t - t0) * half_tile + (y - first) * VL,
                .out = j->out + image * p->out.n + y * p->out.y + x * p->out.x + to,
                .res = p->residual ? j->res + image * p->res.n + y * p->res.y + x * p->res.x + to : NULL,
                .out_stride = p->out,
                .res_stride = p->res,
                .rows = (p->oh - first < M ? p->oh - first : M) - (y - first),
                .columns = p->ow - x < M ? p->ow - x : M,
                .channels = p->cout - c < p->nr ? p->cout - c : p->nr,
            };
            outputs_by_act[p->act](&e, &a);
        }
    }
}

void VGK_SET(vgk_conv_winograd)(const struct vgk_conv_job *j, int unit, float *scratch)
{
    const struct vgk_conv_plan *p = &j->plan;
    int across = (p->ow + M - 1) / M, down = (p->oh + p->above + M - 1) / M;
    int ux = unit % p->units_x, uy = unit / p->units_x % p->units_y, t0 = uy * across + ux * p->tiles;
    int end = p->units_y == 1 ? across * down : (uy + 1) * across, t1 = t0 + p->tiles < end ? t0 + p->tiles : end;
    for (int g = 0; g < p->groups; g++)
        tiles(j, unit / p->units_x / p->units_y, g, t0, t1, scratch);
}
