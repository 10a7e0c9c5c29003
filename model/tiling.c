/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tiling.h"

#include "arithmetic.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>

static int64_t round_down(int64_t n, int64_t m) { return n / m * m; }
static int64_t round_up(int64_t n, int64_t m) { return (n + m - 1) / m * m; }

/* What positions must be multiples of, so that they are whole pixels (and whole chroma samples) before and after
 * scaling. */
struct units {
    int64_t size, cut, origin;
};

static enum vgk_status find_units(const struct vg_axis_request *r, struct units *u, struct vgk_error *err)
{
    int64_t g, num, den;

    if (r->frame < 1)
        return vgk_fail(err, VGK_ERR_INVALID, "a frame of %d pixels cannot be tiled; it needs 1 at least", r->frame);
    if (r->tile < 0)
        return vgk_fail(err, VGK_ERR_INVALID, "a tile of %d pixels is impossible; give 0 for whole frames, or more",
                        r->tile);
    if (r->overlap < -1)
        return vgk_fail(err, VGK_ERR_INVALID, "an overlap of %d pixels is impossible; give -1 for what is needed, or more",
                        r->overlap);
    if (r->halo_lo < 0 || r->halo_hi < 0 || r->size_multiple < 1 || r->origin_multiple < 1 || r->chroma < 1 ||
        r->num < 1 || r->den < 1 || r->origin_multiple % r->size_multiple)
        return vgk_fail(err, VGK_ERR_INVALID,
                        "halo %d and %d, multiples %d and %d, chroma %d, scale %d/%d: expected halos of 0 or more, the "
                        "rest 1 or more, and the second multiple a multiple of the first",
                        r->halo_lo, r->halo_hi, r->size_multiple, r->origin_multiple, r->chroma, r->num, r->den);

    g = vg_gcd(r->num, r->den);
    num = r->num / g;
    den = r->den / g;
    u->size = vg_lcm(r->size_multiple, den);
    /* cut * num / den is a multiple of chroma */
    u->cut = vg_lcm(u->size, vg_lcm(r->chroma, den * (r->chroma / vg_gcd(r->chroma, num))));
    if (u->cut <= INT_MAX)
        u->origin = vg_lcm(r->origin_multiple, u->cut);
    if (u->cut > INT_MAX || u->origin > INT_MAX)
        return vgk_fail(err, VGK_ERR_INVALID,
                        "multiples %d and %d with the scale %d/%d have no common multiple that fits a frame",
                        r->size_multiple, r->origin_multiple, r->num, r->den);
    if ((int64_t)r->frame + r->tile + u->origin > INT_MAX / 2 ||
        ((int64_t)r->frame + r->tile + u->origin) * num / den > INT_MAX)
        return vgk_fail(err, VGK_ERR_INVALID, "frame %d, tile %d, multiple %d and scale %d/%d are too large together",
                        r->frame, r->tile, (int)u->origin, r->num, r->den);
    return VGK_OK;
}

enum vgk_status vg_axis_make(const struct vg_axis_request *r, struct vg_axis *a, struct vgk_error *err)
{
    struct units u = { 1, 1, 1 };
    enum vgk_status status = find_units(r, &u, err);
    int64_t end, tile, halo_lo, overlap, last, step, steps;

    if (status != VGK_OK)
        return status;

    a->frame = r->frame;
    a->num = r->num;
    a->den = r->den;
    a->n = 1;
    a->origin[0] = 0;
    a->cut[0] = 0;
    a->cut[1] = r->frame;

    end = round_up(r->frame, u.size);
    tile = r->tile ? r->tile : end;
    if (r->fixed && tile % u.size)
        return vgk_fail(err, VGK_ERR_INVALID, "a model that takes tiles of %d pixels only needs a multiple of %d",
                        (int)tile, (int)u.size);
    /* A cut lies on multiples of u.cut, so the halo before it is rounded up to that. */
    halo_lo = round_up(r->halo_lo, u.cut);
    if (r->overlap >= 0 && (int64_t)r->overlap < (int64_t)r->halo_lo + r->halo_hi)
        return vgk_fail(err, VGK_ERR_INVALID,
                        "an overlap of %d pixels is less than the %d that the model sees around a pixel; give at least "
                        "that, or -1",
                        r->overlap, r->halo_lo + r->halo_hi);
    if (tile >= r->frame && r->fixed) {
        a->tile = (int)tile;
        return VGK_OK;
    }
    /* Without `fixed` the tile grows so that the last one ends with the frame; a fixed one may hang over instead. */
    if (!r->fixed)
        tile += ((end - tile) % u.origin + u.origin) % u.origin;
    if (tile >= end) {
        a->tile = (int)end;
        return VGK_OK;
    }

    overlap = halo_lo + r->halo_hi;
    if (r->overlap > overlap)
        overlap = r->overlap;
    step = round_down(tile - overlap, u.origin);
    if (step < u.origin) {
        if (tile - u.origin >= halo_lo + r->halo_hi)
            return vgk_fail(err, VGK_ERR_INVALID,
                            "tiles of %d pixels that overlap by %d make no progress; give an overlap of %d at most, or "
                            "tiles of %d at least",
                            (int)tile, (int)overlap, (int)(tile - u.origin), (int)(overlap + u.origin));
        return vgk_fail(err, VGK_ERR_INVALID,
                        "tiles of %d pixels make no progress over an overlap of %d; give tiles of %d at least", (int)tile,
                        (int)overlap, (int)(overlap + u.origin));
    }
    last = round_up(end - tile, u.origin);
    steps = (last + step - 1) / step;
    if (steps >= VG_MAX_TILES) {
        int64_t least = round_up((end + VG_MAX_TILES - 2) / (VG_MAX_TILES - 1), u.origin);

        return vgk_fail(err, VGK_ERR_INVALID,
                        "%d pixels need %" PRId64 " tiles of %d that overlap by %d, and %d is the most; give tiles of %d "
                        "at least",
                        r->frame, steps + 1, (int)tile, (int)overlap, VG_MAX_TILES, (int)(overlap + least));
    }

    a->tile = (int)tile;
    a->n = (int)steps + 1;
    for (int i = 1; i < a->n; i++) {
        /* In whole multiples: each step is last / steps rounded down or up, never more than `step`. */
        a->origin[i] = (int)(last / u.origin * i / steps * u.origin);
        a->zone_lo[i] = (int)(a->origin[i] + halo_lo);
        a->zone_hi[i] = (int)round_down(a->origin[i - 1] + tile - r->halo_hi, u.cut);
        a->cut[i] = (int)round_down(((int64_t)a->zone_lo[i] + a->zone_hi[i]) / 2, u.cut);
    }
    a->cut[a->n] = r->frame;
    /* No pixel in two zones: where tiles overlap by more than half, a zone ends midway to the next cut. */
    for (int i = 1; i < a->n; i++) {
        if (i > 1) {
            int64_t lo = round_up(((int64_t)a->cut[i - 1] + a->cut[i] + 1) / 2, u.cut);
            if (a->zone_lo[i] < lo)
                a->zone_lo[i] = (int)lo;
        }
        if (i < a->n - 1) {
            int64_t hi = round_down(((int64_t)a->cut[i] + a->cut[i + 1]) / 2, u.cut);
            if (a->zone_hi[i] > hi)
                a->zone_hi[i] = (int)hi;
        }
    }
    return VGK_OK;
}

double vg_axis_waste(const struct vg_axis *a) { return (double)a->n * a->tile / a->frame - 1; }

int vg_axis_scale(const struct vg_axis *a, int position)
{
    int64_t scaled = (int64_t)position * a->num / a->den;

    return scaled < 1 && position > 0 ? 1 : (int)scaled;
}

int vg_axis_owner(const struct vg_axis *a, int position)
{
    int lo = 0, hi = a->n;

    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;

        if (position < a->cut[mid])
            hi = mid;
        else
            lo = mid;
    }
    return lo;
}

void vg_blend_weights(enum vg_blend blend, int n, uint32_t *w)
{
    for (int i = 0; i < (n + 1) / 2; i++) {
        double at = (i + 0.5) / n, v;

        if (2 * i + 1 == n)
            v = 0.5;
        else if (blend == VG_BLEND_LINEAR)
            v = at;
        else if (blend == VG_BLEND_COSINE)
            v = (1 - cos(M_PI * at)) / 2;
        else
            v = 0;
        w[i] = (uint32_t)lrint(v * 65536);
        w[n - 1 - i] = 65536 - w[i];
    }
}
