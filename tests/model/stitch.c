/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tiles put together: identity for any grid, layout, blend and order; blends between their inputs, as weighted. */
#include "../../model/stitch.h"

#include "kit.h"

#define MAX_BYTES (700 * 500 * 4)

static const struct vg_layout layouts[] = {
    { 1, { { 3, 0, 0 } } },                             /* RGB */
    { 1, { { 4, 0, 0 } } },                             /* RGBA */
    { 3, { { 1, 0, 0 }, { 1, 1, 1 }, { 1, 1, 1 } } },   /* I420 */
    { 2, { { 1, 0, 0 }, { 2, 1, 1 } } },                /* NV12 */
    { 1, { { 4, 1, 0 } } },                             /* YUY2 */
    { 3, { { 1, 0, 0 }, { 1, 1, 0 }, { 1, 1, 0 } } },   /* Y42B */
};

static uint8_t source[VG_MAX_PLANES][MAX_BYTES], output[VG_MAX_PLANES][MAX_BYTES], pixels[VG_MAX_PLANES][MAX_BYTES];

static int samples(int n, int sub) { return (n + (1 << sub) - 1) >> sub; }

static struct vg_picture picture(const struct vg_layout *l, uint8_t (*data)[MAX_BYTES], int width, int pad)
{
    struct vg_picture out = { 0 };

    for (int p = 0; p < l->planes; p++) {
        out.data[p] = data[p];
        out.stride[p] = samples(width, l->plane[p].x_sub) * l->plane[p].step + pad;
    }
    return out;
}

static bool make_grid(struct vg_grid *g, const struct vg_layout *l, int w, int h, int tw, int th, int ox, int oy,
                      int scale)
{
    int cx = 1, cy = 1;

    for (int p = 0; p < l->planes; p++) {
        cx = l->plane[p].x_sub ? 2 : cx;
        cy = l->plane[p].y_sub ? 2 : cy;
    }
    struct vg_axis_request x = { .frame = w, .tile = tw, .overlap = ox, .size_multiple = 1, .origin_multiple = 1,
                                 .chroma = cx, .num = scale, .den = 1 };
    struct vg_axis_request y = { .frame = h, .tile = th, .overlap = oy, .size_multiple = 1, .origin_multiple = 1,
                                 .chroma = cy, .num = scale, .den = 1 };
    return vg_axis_make(&x, &g->x, NULL) == VGK_OK && vg_axis_make(&y, &g->y, NULL) == VGK_OK;
}

/* Cut from the source, put together in a random order: the source again, and not a byte beside it. */
static void identity(void)
{
    static struct vg_grid g;
    int blended = 0, done = 0;

    kit_seed(5);
    for (int i = 0; i < 1000; i++) {
        const struct vg_layout *l = &layouts[kit_int(0, 5)];
        int scale = kit_int(1, 2), w = kit_int(1, 170), h = kit_int(1, 120);
        enum vg_blend blend = kit_int(0, 2);
        struct vg_stitch *s = NULL;

        if (!make_grid(&g, l, w, h, kit_int(0, 60), kit_int(0, 60), kit_int(0, 40), kit_int(0, 40), scale))
            continue;
        done++;
        w *= scale;
        h *= scale;
        struct vg_picture src = picture(l, source, w, kit_int(0, 9)), dst = picture(l, output, w, 7);
        for (int p = 0; p < l->planes; p++) {
            for (int k = 0; k < src.stride[p] * samples(h, l->plane[p].y_sub); k++)
                source[p][k] = kit_random();
            memset(output[p], 0x5a, dst.stride[p] * samples(h, l->plane[p].y_sub));
        }
        expect(vg_stitch_create(&g, l, blend, &s, NULL) == VGK_OK);
        expect(blend != VG_BLEND_CROP || vg_stitch_bytes(s) == 0);
        blended += vg_stitch_bytes(s) > 0;

        int n = g.x.n * g.y.n, first = kit_int(0, n - 1);
        vg_stitch_begin(s);
        for (int k = 0; k < n; k++) {
            int t = (first + k) % n, c = t % g.x.n, r = t / g.x.n, ox = g.x.origin[c] * scale, oy = g.y.origin[r] * scale;
            int tw = g.x.tile * scale, th = g.y.tile * scale;
            struct vg_picture tile = picture(l, pixels, tw, 3);

            vg_copy_rect(l, &tile, 0, 0, &src, ox, oy, ox + tw < w ? tw : w - ox, oy + th < h ? th : h - oy);
            vg_stitch_tile(s, c, r, &dst, &tile);
        }
        vg_stitch_end(s, &dst);
        for (int p = 0; p < l->planes; p++) {
            int bytes = samples(w, l->plane[p].x_sub) * l->plane[p].step;

            for (int y = 0; y < samples(h, l->plane[p].y_sub); y++) {
                const uint8_t *o = output[p] + y * dst.stride[p];
                expectf(!memcmp(o, source[p] + y * src.stride[p], bytes),
                        "case %d layout %d plane %d row %d of %dx%d, %dx%d tiles, blend %d", i, (int)(l - layouts), p, y, w,
                        h, g.x.n, g.y.n, blend);
                for (int k = bytes; k < dst.stride[p]; k++)
                    expectf(o[k] == 0x5a, "case %d wrote beside the frame", i);
            }
        }
        vg_stitch_destroy(&s);
        expect(s == NULL);
    }
    printf("     %d grids, %d blended\n", done, blended);
    expect(done > 300 && blended > 80);
}

/* Each tile has one value: the seam is the weighted mean of model/tiling.h, computed here anew. */
static void weighted(void)
{
    static struct vg_grid g;
    static uint32_t wx[200], wy[200];
    const struct vg_layout *l = &layouts[0];
    static const int values[2][2] = { { 10, 250 }, { 90, 0 } };

    expect(make_grid(&g, l, 100, 80, 60, 50, 20, 20, 1) && g.x.n == 2 && g.y.n == 2);
    for (int blend = VG_BLEND_LINEAR; blend <= VG_BLEND_COSINE; blend++) {
        struct vg_stitch *s = NULL;
        struct vg_picture dst = picture(l, output, 100, 0), tile = picture(l, pixels, g.x.tile, 0);
        int nx = g.x.zone_hi[1] - g.x.zone_lo[1], ny = g.y.zone_hi[1] - g.y.zone_lo[1];

        expect(nx == 20 && ny == 20);
        vg_blend_weights(blend, nx, wx);
        vg_blend_weights(blend, ny, wy);
        expect(vg_stitch_create(&g, l, blend, &s, NULL) == VGK_OK);
        vg_stitch_begin(s);
        for (int t = 3; t >= 0; t--) {
            memset(pixels[0], values[t / 2][t % 2], MAX_BYTES);
            vg_stitch_tile(s, t % 2, t / 2, &dst, &tile);
        }
        vg_stitch_end(s, &dst);
        for (int y = 0; y < 80; y++)
            for (int x = 0; x < 100; x++) {
                double a = x < g.x.zone_lo[1] ? 0 : x >= g.x.zone_hi[1] ? 1 : wx[x - g.x.zone_lo[1]] / 65536.0;
                double b = y < g.y.zone_lo[1] ? 0 : y >= g.y.zone_hi[1] ? 1 : wy[y - g.y.zone_lo[1]] / 65536.0;
                double want = (1 - b) * ((1 - a) * 10 + a * 250) + b * ((1 - a) * 90 + a * 0);

                for (int k = 0; k < 3; k++)
                    expect_near(output[0][(y * 100 + x) * 3 + k], want, 0.6);
            }
        vg_stitch_destroy(&s);
    }
}

/* A tile that hangs over the frame's corner shows its last column and row there. */
static void edges(void)
{
    for (int k = 0; k < 6; k++) {
        const struct vg_layout *l = &layouts[k];
        int w = 23, h = 17, vw = kit_int(1, 23), vh = kit_int(1, 17);
        struct vg_picture pic = picture(l, pixels, w, 5);

        for (int p = 0; p < l->planes; p++)
            for (int i = 0; i < 4000; i++)
                pixels[p][i] = source[p][i] = kit_random();
        vg_extend_edges(l, &pic, vw, vh, w, h);
        for (int p = 0; p < l->planes; p++)
            for (int y = 0; y < 17; y++)
                for (int x = 0; x < pic.stride[p]; x++) {
                    int xs = l->plane[p].x_sub, ys = l->plane[p].y_sub, step = l->plane[p].step;
                    int cx = x / step, rx = samples(vw, xs) - 1, ry = samples(vh, ys) - 1;
                    bool inside = cx < samples(w, xs) && y < samples(h, ys);
                    int sx = inside && cx > rx ? rx * step + x % step : x, sy = inside && y > ry ? ry : y;

                    expectf(pixels[p][y * pic.stride[p] + x] == source[p][sy * pic.stride[p] + sx],
                            "layout %d plane %d (%d, %d) valid %dx%d", k, p, x, y, vw, vh);
                }
    }
}

/* Every byte of the pixels counts, and none beside them. */
static void same(void)
{
    kit_seed(9);
    for (int i = 0; i < 600; i++) {
        const struct vg_layout *l = &layouts[i % 6];
        int w = kit_int(1, 40), h = kit_int(1, 20), p = kit_int(0, l->planes - 1);
        struct vg_picture a = picture(l, source, w, kit_int(0, 9)), b = picture(l, output, w, 1);
        int rows = samples(h, l->plane[p].y_sub), bytes = (int)b.stride[p] - 1, y = kit_int(0, rows - 1);

        for (int q = 0; q < l->planes; q++)
            memset(output[q], 0xee, (size_t)b.stride[q] * (size_t)samples(h, l->plane[q].y_sub));
        for (int q = 0; q < l->planes; q++)
            for (int k = 0; k < a.stride[q] * samples(h, l->plane[q].y_sub); k++)
                source[q][k] = kit_random();
        vg_copy_rect(l, &b, 0, 0, &a, 0, 0, w, h);
        expectf(vg_same_rect(l, &a, &b, w, h), "%d", i);
        output[p][y * b.stride[p] + bytes] ^= 1; /* behind the row */
        expectf(vg_same_rect(l, &a, &b, w, h), "%d", i);
        output[p][y * b.stride[p] + (i % 3 == 0 ? 0 : i % 3 == 1 ? bytes - 1 : kit_int(0, bytes - 1))] ^= 0x80;
        expectf(!vg_same_rect(l, &a, &b, w, h), "%d: plane %d, row %d", i, p, y);
    }
}

int main(void)
{
    run(identity);
    run(weighted);
    run(edges);
    run(same);
    return kit_done();
}
