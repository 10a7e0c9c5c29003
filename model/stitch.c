/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stitch.h"

#include <stdlib.h>
#include <string.h>

/* Weights have 12 bits on each axis, so that 255 times a product of two, and half a unit for rounding, fit 32. */
#define ONE 4096
#define SHIFT 24
#define LINE 64 /* bytes of a cache line */

/* One axis in output pixels.  In [lo[i], hi[i]) tiles i - 1 and i blend; [hi[i], lo[i + 1]) is tile i's alone. */
struct axis {
    int n, size;
    int origin[VG_MAX_TILES];
    int lo[VG_MAX_TILES + 1], hi[VG_MAX_TILES + 1];
};

struct plane {
    int row_bytes, rows;
    uint16_t *wx, *wy;                /* of the right (lower) tile, for each byte of a row and each row */
    size_t across[VG_MAX_TILES + 1];  /* first sum of the band at cut i: zone's bytes by all rows */
    size_t down[VG_MAX_TILES + 1];    /* zone's rows by all bytes of a row, corners included */
};

struct vg_stitch {
    struct vg_layout layout;
    struct axis x, y;
    struct plane plane[VG_MAX_PLANES];
    size_t n_sums;
    uint32_t *sums;
};

/* The part of an axis that a tile fills in one way. */
struct segment {
    int from, to; /* output pixels */
    int cut;      /* of the zone, 0 = the tile's alone */
    bool rising;  /* the tile is the right (lower) one */
};

static int samples(int pixels, int sub) { return (pixels + (1 << sub) - 1) >> sub; }

void vg_copy_rect(const struct vg_layout *l, const struct vg_picture *dst, int dx, int dy, const struct vg_picture *src,
                  int sx, int sy, int w, int h)
{
    for (int p = 0; p < l->planes; p++) {
        int xs = l->plane[p].x_sub, ys = l->plane[p].y_sub, step = l->plane[p].step;
        size_t bytes = (size_t)samples(w, xs) * step;
        uint8_t *d = dst->data[p] + (dy >> ys) * dst->stride[p] + (ptrdiff_t)(dx >> xs) * step;
        const uint8_t *s = src->data[p] + (sy >> ys) * src->stride[p] + (ptrdiff_t)(sx >> xs) * step;

        for (int y = samples(h, ys); y > 0; y--, d += dst->stride[p], s += src->stride[p]) {
            size_t i = 0;

            /* A tile's rows are short and lie apart, so that each would begin with misses: fetches the next one's. */
            for (; y > 1 && i + LINE <= bytes; i += LINE) {
                __builtin_prefetch(d + dst->stride[p] + i, 1);
                __builtin_prefetch(s + src->stride[p] + i);
                memcpy(d + i, s + i, LINE);
            }
            memcpy(d + i, s + i, bytes - i);
        }
    }
}

bool vg_same_rect(const struct vg_layout *l, const struct vg_picture *a, const struct vg_picture *b, int w, int h)
{
    for (int p = 0; p < l->planes; p++) {
        size_t bytes = (size_t)samples(w, l->plane[p].x_sub) * (size_t)l->plane[p].step;
        for (int y = samples(h, l->plane[p].y_sub) - 1; y >= 0; y--)
            if (memcmp(a->data[p] + y * a->stride[p], b->data[p] + y * b->stride[p], bytes))
                return false;
    }
    return true;
}

void vg_extend_edges(const struct vg_layout *l, const struct vg_picture *pic, int valid_w, int valid_h, int w, int h)
{
    for (int p = 0; p < l->planes; p++) {
        int xs = l->plane[p].x_sub, ys = l->plane[p].y_sub, step = l->plane[p].step;
        int columns = samples(valid_w, xs), rows = samples(valid_h, ys), n = samples(w, xs);
        uint8_t *row = pic->data[p];

        for (int y = 0; y < rows; y++, row += pic->stride[p])
            for (int x = columns; x < n; x++)
                memcpy(row + (ptrdiff_t)x * step, row + (ptrdiff_t)(columns - 1) * step, step);
        for (int y = rows; y < samples(h, ys); y++, row += pic->stride[p])
            memcpy(row, row - pic->stride[p], (size_t)n * step);
    }
}

static void scale_axis(const struct vg_axis *a, enum vg_blend blend, struct axis *out)
{
    out->n = a->n;
    out->size = vg_axis_scale(a, a->frame);
    for (int i = 0; i < a->n; i++) {
        out->origin[i] = vg_axis_scale(a, a->origin[i]);
        if (i > 0) {
            out->lo[i] = vg_axis_scale(a, blend == VG_BLEND_CROP ? a->cut[i] : a->zone_lo[i]);
            out->hi[i] = vg_axis_scale(a, blend == VG_BLEND_CROP ? a->cut[i] : a->zone_hi[i]);
        }
    }
    out->lo[0] = out->hi[0] = 0;
    out->lo[a->n] = out->hi[a->n] = out->size;
}

static bool has_zones(const struct axis *a)
{
    for (int i = 1; i < a->n; i++)
        if (a->hi[i] > a->lo[i])
            return true;
    return false;
}

/* Weights for every sample of an axis, each repeated for the `step` bytes of a sample. */
static enum vgk_status make_weights(const struct axis *a, enum vg_blend blend, int sub, int step, uint16_t **out)
{
    int size = samples(a->size, sub);
    uint32_t *zone = malloc(size * sizeof *zone);
    uint16_t *w = calloc((size_t)size * step, sizeof *w);

    for (int i = 1; zone && w && i < a->n; i++) {
        int from = a->lo[i] >> sub, n = (a->hi[i] >> sub) - from;

        vg_blend_weights(blend, n, zone);
        for (int k = 0; k < n * step; k++)
            w[from * step + k] = (uint16_t)((zone[k / step] + 8) >> 4);
    }
    *out = w;
    if (!zone || !w) {
        free(zone);
        return VGK_ERR_NOMEM;
    }
    free(zone);
    return VGK_OK;
}

static enum vgk_status make_plane(struct vg_stitch *s, int p, enum vg_blend blend)
{
    struct plane *plane = &s->plane[p];
    int xs = s->layout.plane[p].x_sub, ys = s->layout.plane[p].y_sub, step = s->layout.plane[p].step;

    plane->row_bytes = samples(s->x.size, xs) * step;
    plane->rows = samples(s->y.size, ys);
    if (!has_zones(&s->x) && !has_zones(&s->y))
        return VGK_OK;
    if (make_weights(&s->x, blend, xs, step, &plane->wx) != VGK_OK ||
        make_weights(&s->y, blend, ys, 1, &plane->wy) != VGK_OK)
        return VGK_ERR_NOMEM;
    for (int i = 1; i < s->x.n; i++) {
        plane->across[i] = s->n_sums;
        s->n_sums += (size_t)((s->x.hi[i] >> xs) - (s->x.lo[i] >> xs)) * step * plane->rows;
    }
    for (int i = 1; i < s->y.n; i++) {
        plane->down[i] = s->n_sums;
        s->n_sums += (size_t)((s->y.hi[i] >> ys) - (s->y.lo[i] >> ys)) * plane->row_bytes;
    }
    return VGK_OK;
}

enum vgk_status vg_stitch_create(const struct vg_grid *grid, const struct vg_layout *layout, enum vg_blend blend,
                                 struct vg_stitch **out, struct vgk_error *err)
{
    struct vg_stitch *s = calloc(1, sizeof *s);
    enum vgk_status status = s ? VGK_OK : VGK_ERR_NOMEM;

    *out = s;
    if (s) {
        s->layout = *layout;
        scale_axis(&grid->x, blend, &s->x);
        scale_axis(&grid->y, blend, &s->y);
        for (int p = 0; p < layout->planes && status == VGK_OK; p++)
            status = make_plane(s, p, blend);
        if (status == VGK_OK && s->n_sums && !(s->sums = malloc(s->n_sums * sizeof *s->sums)))
            status = VGK_ERR_NOMEM;
    }
    if (status != VGK_OK) {
        size_t bytes = s ? vg_stitch_bytes(s) : 0;

        vg_stitch_destroy(out);
        return vgk_fail(err, status, "no memory to blend tiles (%zu bytes); give a smaller overlap, or crop", bytes);
    }
    return VGK_OK;
}

void vg_stitch_destroy(struct vg_stitch **stitch)
{
    struct vg_stitch *s = *stitch;

    if (!s)
        return;
    for (int p = 0; p < s->layout.planes; p++) {
        free(s->plane[p].wx);
        free(s->plane[p].wy);
    }
    free(s->sums);
    free(s);
    *stitch = NULL;
}

size_t vg_stitch_bytes(const struct vg_stitch *s) { return s->n_sums * sizeof *s->sums; }

void vg_stitch_begin(struct vg_stitch *s)
{
    if (s->n_sums)
        memset(s->sums, 0, s->n_sums * sizeof *s->sums);
}

static int segments(const struct axis *a, int tile, struct segment out[3])
{
    const struct segment all[3] = {
        { a->lo[tile], a->hi[tile], tile, true },
        { a->hi[tile], a->lo[tile + 1], 0, false },
        { a->lo[tile + 1], a->hi[tile + 1], tile + 1, false },
    };
    int n = 0;

    for (int i = 0; i < 3; i++)
        if (all[i].from < all[i].to)
            out[n++] = all[i];
    return n;
}

/* Adds a piece of a tile to the sums of the band that it lies in. */
static void add_piece(struct vg_stitch *s, int p, const struct segment *sx, const struct segment *sy,
                      const uint8_t *src, ptrdiff_t stride)
{
    const struct plane *plane = &s->plane[p];
    int xs = s->layout.plane[p].x_sub, ys = s->layout.plane[p].y_sub, step = s->layout.plane[p].step;
    int x = (sx->from >> xs) * step, n = samples(sx->to, xs) * step - x, y0 = sy->from >> ys;
    uint32_t *sum;
    ptrdiff_t pitch;

    if (sy->cut) {
        pitch = plane->row_bytes;
        sum = s->sums + plane->down[sy->cut] + x;
    } else {
        pitch = n;
        sum = s->sums + plane->across[sx->cut] + (size_t)y0 * n;
    }
    for (int y = y0; y < samples(sy->to, ys); y++, sum += pitch, src += stride) {
        uint32_t wy = !sy->cut ? ONE : sy->rising ? plane->wy[y] : ONE - plane->wy[y];
        const uint16_t *wx = plane->wx + x;

        if (!sx->cut)
            for (int i = 0; i < n; i++)
                sum[i] += wy * ONE * src[i];
        else if (sx->rising)
            for (int i = 0; i < n; i++)
                sum[i] += wy * wx[i] * src[i];
        else
            for (int i = 0; i < n; i++)
                sum[i] += wy * (ONE - wx[i]) * src[i];
    }
}

void vg_stitch_tile(struct vg_stitch *s, int column, int row, const struct vg_picture *frame,
                    const struct vg_picture *tile)
{
    struct segment across[3], down[3];
    int nx = segments(&s->x, column, across), ny = segments(&s->y, row, down);

    for (int j = 0; j < ny; j++)
        for (int i = 0; i < nx; i++) {
            const struct segment *sx = &across[i], *sy = &down[j];
            int x = sx->from - s->x.origin[column], y = sy->from - s->y.origin[row];

            if (!sx->cut && !sy->cut) {
                vg_copy_rect(&s->layout, frame, sx->from, sy->from, tile, x, y, sx->to - sx->from, sy->to - sy->from);
                continue;
            }
            for (int p = 0; p < s->layout.planes; p++)
                add_piece(s, p, sx, sy,
                          tile->data[p] + (y >> s->layout.plane[p].y_sub) * tile->stride[p] +
                              (ptrdiff_t)(x >> s->layout.plane[p].x_sub) * s->layout.plane[p].step,
                          tile->stride[p]);
        }
}

static void write_row(uint8_t *dst, const uint32_t *sum, int n)
{
    for (int i = 0; i < n; i++)
        dst[i] = (uint8_t)((sum[i] + (1u << (SHIFT - 1))) >> SHIFT);
}

void vg_stitch_end(struct vg_stitch *s, const struct vg_picture *frame)
{
    for (int p = 0; s->n_sums && p < s->layout.planes; p++) {
        const struct plane *plane = &s->plane[p];
        int xs = s->layout.plane[p].x_sub, ys = s->layout.plane[p].y_sub, step = s->layout.plane[p].step;

        for (int row = 0; row < s->y.n; row++) {
            const uint32_t *sum = s->sums + plane->down[row];
            int y = s->y.lo[row] >> ys;

            /* The zone above the tiles of this row, then their own rows. */
            for (; y < s->y.hi[row] >> ys; y++, sum += plane->row_bytes)
                write_row(frame->data[p] + y * frame->stride[p], sum, plane->row_bytes);
            for (; y < samples(s->y.lo[row + 1], ys); y++)
                for (int i = 1; i < s->x.n; i++) {
                    int x = (s->x.lo[i] >> xs) * step, n = (s->x.hi[i] >> xs) * step - x;

                    write_row(frame->data[p] + y * frame->stride[p] + x, s->sums + plane->across[i] + (size_t)y * n, n);
                }
        }
    }
}
