/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tiles, cuts and zones: the rules of model/tiling.h hold for random requests. */
#include "../../model/tiling.h"

#include "kit.h"

static bool whole(int64_t position, int num, int den, int chroma)
{
    return position * num % den == 0 && position * num / den % chroma == 0 && position % chroma == 0;
}

static int step(const struct vg_axis *a, int i) { return a->origin[i] - a->origin[i - 1]; }

static void check_axis(const struct vg_axis_request *r, const struct vg_axis *a, const char *text)
{
    int end = (r->frame + r->size_multiple - 1) / r->size_multiple * r->size_multiple;
    int last = a->n - 1, smallest = 0, largest = 0;

    expectf(a->n >= 1 && a->n <= VG_MAX_TILES, "%s", text);
    expectf(a->frame == r->frame && a->origin[0] == 0 && a->cut[0] == 0 && a->cut[a->n] == r->frame, "%s", text);
    expectf(a->tile % r->size_multiple == 0 && (int64_t)a->tile * r->num % r->den == 0, "%s", text);
    expectf(a->origin[last] + a->tile >= r->frame, "coverage: %s", text);
    if (r->fixed) {
        expectf(a->tile == r->tile, "%s", text);
    } else {
        /* At the frame's rounded end, exactly; the rounding may be further when the scale divides. */
        int over = a->origin[last] + a->tile - end;
        expectf(r->den == 1 ? over == 0 : over >= 0 && over < r->size_multiple * r->den, "last tile: %s", text);
        if (a->n > 1)
            expectf(a->tile >= r->tile, "the tile shrank: %s", text);
    }
    for (int i = 0; i < a->n; i++) {
        expectf(a->cut[i] < a->cut[i + 1], "ownership %d: %s", i, text);
        expectf(a->origin[i] % r->origin_multiple == 0 && whole(a->origin[i], r->num, r->den, r->chroma),
                "origin %d: %s", a->origin[i], text);
        expectf(a->cut[i] >= a->origin[i] && a->cut[i + 1] <= a->origin[i] + a->tile, "owned inside: %s", text);
        if (i == 0)
            continue;
        expectf(a->origin[i] > a->origin[i - 1], "%s", text);
        expectf(a->cut[i] % r->size_multiple == 0 && whole(a->cut[i], r->num, r->den, r->chroma), "cut: %s", text);
        expectf(whole(a->zone_lo[i], r->num, r->den, r->chroma) && whole(a->zone_hi[i], r->num, r->den, r->chroma),
                "zone: %s", text);
        expectf(a->zone_lo[i] <= a->cut[i] && a->cut[i] <= a->zone_hi[i], "cut in its zone: %s", text);
        expectf(a->zone_lo[i] >= a->origin[i] + r->halo_lo, "halo before: %s", text);
        expectf(a->zone_hi[i] <= a->origin[i - 1] + a->tile - r->halo_hi, "halo behind: %s", text);
        expectf(a->zone_lo[i] > 0 && a->zone_hi[i] <= r->frame, "zone in the frame: %s", text);
        if (i > 1)
            expectf(a->zone_hi[i - 1] <= a->zone_lo[i], "zones apart: %s", text);
        if (r->overlap >= 0)
            expectf(a->origin[i - 1] + a->tile - a->origin[i] >= r->overlap, "overlap: %s", text);
        smallest = i == 1 || step(a, i) < smallest ? step(a, i) : smallest;
        largest = step(a, i) > largest ? step(a, i) : largest;
    }
    /* Evenly spread: steps differ by one multiple at most, which no larger one divides into. */
    for (int i = 1; i < a->n && largest > smallest; i++)
        expectf(step(a, i) == smallest || step(a, i) == largest, "spread: %s", text);
    expectf(largest - smallest <= 12 * r->origin_multiple, "spread: %s", text);
    expect_near(vg_axis_waste(a), (double)a->n * a->tile / r->frame - 1, 1e-12);
    expectf(vg_axis_scale(a, r->frame) == (int)fmax(1, floor((double)r->frame * r->num / r->den)), "%s", text);
    for (int k = 0; k < 8; k++) {
        int at = kit_int(0, r->frame - 1), owner = vg_axis_owner(a, at);
        expectf(owner >= 0 && owner < a->n && a->cut[owner] <= at && at < a->cut[owner + 1], "owner of %d: %s", at,
                text);
    }
}

static void random_requests(void)
{
    static const int sizes[] = { 1, 1, 1, 2, 4, 8, 3, 5 }, scales[][2] = { { 1, 1 }, { 1, 1 }, { 2, 1 }, { 4, 1 },
                                                                          { 1, 2 }, { 3, 2 }, { 2, 3 } };
    static struct vg_axis a;
    struct vgk_error err;
    int made = 0, several = 0, refused = 0;

    kit_seed(3);
    for (int i = 0; i < 100000; i++) {
        int s = kit_int(0, 6), size = sizes[kit_int(0, 7)];
        struct vg_axis_request r = {
            .frame = kit_int(0, 3) ? kit_int(1, 700) : kit_int(1, 8000),
            .tile = kit_int(0, 9) ? kit_int(1, 600) : 0,
            .overlap = kit_int(0, 2) ? -1 : kit_int(0, 120),
            .halo_lo = kit_int(0, 3) ? kit_int(0, 40) : 0,
            .halo_hi = kit_int(0, 3) ? kit_int(0, 40) : 0,
            .size_multiple = size,
            .origin_multiple = size * kit_int(1, 6),
            .chroma = kit_int(1, 2),
            .num = scales[s][0],
            .den = scales[s][1],
            .fixed = kit_int(0, 5) == 0,
        };
        char text[256];

        if (r.fixed)
            r.tile = kit_int(1, 60) * size * r.den;
        snprintf(text, sizeof text,
                 "request %d: frame %d tile %d overlap %d halo %d %d multiples %d %d chroma %d scale %d/%d fixed %d", i,
                 r.frame, r.tile, r.overlap, r.halo_lo, r.halo_hi, r.size_multiple, r.origin_multiple, r.chroma, r.num,
                 r.den, r.fixed);
        err.text[0] = 0;
        if (vg_axis_make(&r, &a, &err) == VGK_OK) {
            made++;
            several += a.n > 1;
            check_axis(&r, &a, text);
        } else {
            refused++;
            expectf(strstr(err.text, "give") || strstr(err.text, "needs"), "%s: no remedy in \"%s\"", text, err.text);
            expectf(r.tile != 0 || (r.overlap >= 0 && r.overlap < r.halo_lo + r.halo_hi),
                    "whole frames always fit: %s: %s", text, err.text);
        }
    }
    printf("     %d made (%d of several tiles), %d refused\n", made, several, refused);
    expect(several > 20000 && refused > 1000);
}

/* What the error says would do instead does. */
static void remedies(void)
{
    static struct vg_axis a;
    struct vgk_error err;
    struct vg_axis_request r = { .frame = 1000, .tile = 100, .overlap = 100, .size_multiple = 1, .origin_multiple = 4,
                                 .chroma = 1, .num = 1, .den = 1 };
    int n, m;

    expect(vg_axis_make(&r, &a, &err) == VGK_ERR_INVALID);
    expectf(sscanf(err.text, "tiles of %*d pixels that overlap by %*d make no progress; give an overlap of %d at most, "
                             "or tiles of %d at least", &n, &m) == 2, "%s", err.text);
    r.overlap = n;
    expect(vg_axis_make(&r, &a, &err) == VGK_OK && a.n > 1);
    r.overlap = n + 1;
    expect(vg_axis_make(&r, &a, &err) == VGK_ERR_INVALID);
    r.overlap = 100;
    r.tile = m;
    expect(vg_axis_make(&r, &a, &err) == VGK_OK);

    r = (struct vg_axis_request){ .frame = 1000, .tile = 20, .overlap = -1, .halo_lo = 10, .halo_hi = 11,
                                  .size_multiple = 2, .origin_multiple = 4, .chroma = 1, .num = 1, .den = 1 };
    expect(vg_axis_make(&r, &a, &err) == VGK_ERR_INVALID);
    expectf(sscanf(err.text, "tiles of %*d pixels make no progress over an overlap of %*d; give tiles of %d", &n) == 1,
            "%s", err.text);
    r.tile = n;
    expect(vg_axis_make(&r, &a, &err) == VGK_OK);

    r = (struct vg_axis_request){ .frame = 8000, .tile = 8, .overlap = 2, .size_multiple = 1, .origin_multiple = 1,
                                  .chroma = 1, .num = 1, .den = 1 };
    expect(vg_axis_make(&r, &a, &err) == VGK_ERR_INVALID);
    expectf(sscanf(err.text, "8000 pixels need %*d tiles of 8 that overlap by 2, and 256 is the most; give tiles of %d",
                   &n) == 1, "%s", err.text);
    r.tile = n;
    expect(vg_axis_make(&r, &a, &err) == VGK_OK && a.n <= VG_MAX_TILES);

    r = (struct vg_axis_request){ .frame = 100, .tile = 64, .overlap = 3, .halo_lo = 2, .halo_hi = 2,
                                  .size_multiple = 1, .origin_multiple = 1, .chroma = 1, .num = 1, .den = 1 };
    expect(vg_axis_make(&r, &a, &err) == VGK_ERR_INVALID && strstr(err.text, "less than the 4"));
}

static void nonsense(void)
{
    static struct vg_axis a;
    const struct vg_axis_request good = { .frame = 64, .tile = 32, .overlap = -1, .size_multiple = 1,
                                          .origin_multiple = 1, .chroma = 1, .num = 1, .den = 1 };
    struct vg_axis_request r;

    expect(vg_axis_make(&good, &a, NULL) == VGK_OK);
#define refuse(...) \
    r = good; \
    __VA_ARGS__; \
    expect(vg_axis_make(&r, &a, NULL) == VGK_ERR_INVALID)
    refuse(r.frame = 0);
    refuse(r.frame = -5);
    refuse(r.tile = -1);
    refuse(r.overlap = -2);
    refuse(r.halo_lo = -1);
    refuse(r.size_multiple = 0);
    refuse(r.size_multiple = 2; r.origin_multiple = 3);
    refuse(r.num = 0);
    refuse(r.den = 0);
    refuse(r.chroma = 0);
    refuse(r.frame = INT32_MAX; r.num = 4);
    refuse(r.size_multiple = r.origin_multiple = INT32_MAX; r.den = 7);
    refuse(r.fixed = true; r.size_multiple = r.origin_multiple = 5; r.tile = 32);
}

/* Known by hand: 640 in tiles of 256 with halo 20, stride 4. */
static void by_hand(void)
{
    static struct vg_axis a;
    struct vg_axis_request r = { .frame = 640, .tile = 256, .overlap = -1, .halo_lo = 20, .halo_hi = 20,
                                 .size_multiple = 1, .origin_multiple = 4, .chroma = 2, .num = 2, .den = 1 };

    expect(vg_axis_make(&r, &a, NULL) == VGK_OK);
    expect(a.n == 3 && a.tile == 256 && a.origin[1] == 192 && a.origin[2] == 384);
    expect(a.zone_lo[1] == 212 && a.zone_hi[1] == 236 && a.cut[1] == 224);
    expect(vg_axis_scale(&a, a.cut[1]) == 448 && vg_axis_scale(&a, 0) == 0);
    expect_near(vg_axis_waste(&a), 768.0 / 640 - 1, 1e-12);

    /* A small frame: its own size, or the model's. */
    r.frame = 33;
    expect(vg_axis_make(&r, &a, NULL) == VGK_OK && a.n == 1 && a.tile == 33);
    r.fixed = true;
    expect(vg_axis_make(&r, &a, NULL) == VGK_OK && a.n == 1 && a.tile == 256);
}

static void weights(void)
{
    static uint32_t w[2000];

    for (int blend = VG_BLEND_CROP; blend <= VG_BLEND_COSINE; blend++)
        for (int n = 1; n <= 2000; n = n < 70 ? n + 1 : n * 2) {
            vg_blend_weights(blend, n, w);
            for (int i = 0; i < n; i++) {
                expectf(w[i] + w[n - 1 - i] == 65536, "blend %d n %d i %d", blend, n, i);
                expectf(i == 0 || w[i] >= w[i - 1], "blend %d n %d i %d falls", blend, n, i);
                if (blend == VG_BLEND_LINEAR)
                    expect_near(w[i], (i + 0.5) / n * 65536, 0.51);
                if (blend == VG_BLEND_COSINE)
                    expect_near(w[i], (1 - cos(M_PI * (i + 0.5) / n)) / 2 * 65536, 0.51);
            }
        }
}

int main(void)
{
    run(random_requests);
    run(remedies);
    run(nonsense);
    run(by_hand);
    run(weights);
    return kit_done();
}
