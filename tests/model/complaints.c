/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What people complain of when style transfer is run over video in tiles: seams, a style that differs from tile to tile,
 * colour that drifts over an hour, a first frame that flashes.
 *
 *     test-complaints [FRAMES] */
#include "kit.h"
#include "nets.h"

static struct vgk_device *cpu;
static int hour = SANITIZED ? 10000 : 100000; /* frames: 55 minutes at 30 a second */

/* --- a small style: norms at three depths, half the size in the middle --- */

static struct vg_model *style(void)
{
    struct vgk_error err = {{0}};
    struct nets n;
    kit_seed(21);
    nets_begin(&n, 3);
    int a = nets_conv(&n, 0, (struct nets_conv){.out = 8, .kernel = 3, .pad = NETS_PAD_REFLECT});
    a = nets_unary(&n, nets_norm(&n, a, 0), "Relu");
    int b = nets_conv(&n, a, (struct nets_conv){.out = 8, .kernel = 3, .stride = 2});
    b = nets_unary(&n, nets_norm(&n, b, 0), "Relu");
    b = nets_resize(&n, b, 2, 1, "nearest", "asymmetric");
    a = nets_binary(&n, "Add", a, nets_norm(&n, nets_conv(&n, b, (struct nets_conv){.out = 8, .kernel = 3}), 0));
    a = nets_unary(&n, nets_conv(&n, a, (struct nets_conv){.out = 3, .kernel = 3}), "Sigmoid");
    struct vg_model *m = nets_end(&n, a, &err);
    expectf(m, "%s", err.text);
    return m;
}

static bool start(struct nets_player *p, struct vg_model *m, int w, int h, int tile, enum vg_norm_mode mode)
{
    return nets_start(p, m, cpu,
                      &(struct vg_plan_request){.width = w, .height = h, .tile_width = tile, .tile_height = tile,
                                                .overlap_x = -1, .overlap_y = -1, .norm_mode = mode});
}

static int worst(const uint8_t *a, const uint8_t *b, size_t n)
{
    int d = 0;
    for (size_t i = 0; i < n; i++)
        d = abs(a[i] - b[i]) > d ? abs(a[i] - b[i]) : d;
    return d;
}

/* A scene, dark and flat on the left, bright and lively on the right, moved by `shift` pixels, with sensor noise. */
static void paint(struct nets_picture *p, int shift, int noise, int seed)
{
    kit_seed((uint64_t)seed + 5);
    for (int y = 0; y < p->f.height; y++)
        for (int x = 0; x < p->f.width; x++)
            for (int k = 0; k < 3; k++) {
                double t = (double)x / p->f.width;
                double v = 50 + 140 * t + (6 + 40 * t) * sin(0.31 * (x + shift) + 0.23 * y + k);
                p->data[3 * (y * p->f.width + x) + k] = (uint8_t)(v + (noise ? kit_int(-noise, noise) : 0));
            }
}

/* --- colour that drifts over an hour --- */

/* An hour of a scene that stands still but for the sensor's noise: its last frame is what a frame after a few seconds
 * was, though neither had the other's noise before it. */
static void drifts(void)
{
    enum { W = 16, H = 12, EARLY = 200 };
    static const enum vg_norm_mode modes[] = {VG_NORM_PREVIOUS, VG_NORM_FROZEN};
    struct vg_model *m = style();
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, W, H, true), clean = nets_picture(VGK_FRAME_PACKED, W, H, true);
    paint(&clean, 0, 0, 0);
    for (int k = 0; m && k < 2; k++) {
        struct nets_player p;
        uint8_t early[3 * W * H];
        struct vgk_colour colour = nets_colour(VGK_FRAME_PACKED);
        struct vgk_error err;
        struct vg_run_info info;
        if (!start(&p, m, W, H, 0, modes[k]))
            return;
        for (int i = 1; i <= hour; i++) {
            bool look = i == EARLY || i == hour;
            if (!look)
                for (size_t b = 0; b < in.bytes; b++) /* one step up or down */
                    in.data[b] = (uint8_t)(clean.data[b] + (int)(kit_random() >> 62) % 3 - 1);
            expect(!vg_run_tile(p.run, 0, 0, look ? &clean.f : &in.f, &colour, &p.out.f, &err));
            if (i == EARLY)
                memcpy(early, p.out.data, sizeof early);
        }
        vg_run_info(p.run, &info);
        int d = worst(early, p.out.data, sizeof early);
        expectf(d <= 1 && !info.cuts, "%s: frame %d is %d steps off frame %d; %d cuts",
                vg_norm_mode_name(modes[k]), hour, d, EARLY, (int)info.cuts);
        nets_stop(&p);
    }
    free(in.data);
    free(clean.data);
    vg_model_unref(&m);
}

/* --- a first frame that flashes --- */

/* The first frame is the exact one, bit for bit, so are all that frozen statistics are measured on, and on a scene that
 * stands still nothing jumps when these take over: no more than the noise makes it anyway, and a step for rounding. */
static void flashes(void)
{
    enum { W = 96, H = 64 };
    static const enum vg_norm_mode modes[] = {VG_NORM_PREVIOUS, VG_NORM_FROZEN};
    struct vg_model *m = style();
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, W, H, true);
    for (int k = 0; m && k < 2; k++) {
        struct nets_player exact, p;
        int exact_jump = 0, jump = 0, off = 0;
        uint8_t before[2][3 * W * H];
        if (!start(&exact, m, W, H, 0, VG_NORM_EXACT) || !start(&p, m, W, H, 0, modes[k]))
            return;
        for (int i = 0; i < 24; i++) {
            paint(&in, 0, 2, i);
            nets_play(&exact, &in);
            nets_play(&p, &in);
            int d = worst(exact.out.data, p.out.data, in.bytes), same = modes[k] == VG_NORM_FROZEN ? VG_NORM_FRAMES : 1;
            expectf(i >= same || d == 0, "%s: frame %d is %d off exact", vg_norm_mode_name(modes[k]), i, d);
            off = d > off ? d : off;
            if (i) {
                int a = worst(before[0], exact.out.data, in.bytes), b = worst(before[1], p.out.data, in.bytes);
                exact_jump = a > exact_jump ? a : exact_jump;
                jump = b > jump ? b : jump;
            }
            memcpy(before[0], exact.out.data, in.bytes);
            memcpy(before[1], p.out.data, in.bytes);
        }
        expectf(off <= 2 && jump <= exact_jump + 2, "%s: %d steps off exact, jumps by %d, exact by %d",
                vg_norm_mode_name(modes[k]), off, jump, exact_jump);
        nets_stop(&exact);
        nets_stop(&p);
    }
    free(in.data);
    vg_model_unref(&m);
}

/* --- seams, and a style that differs from tile to tile --- */

/* Mean step between neighbours, across the borders between tiles over that elsewhere, less the same of the whole frame's:
 * 0 where borders cannot be seen. */
static double seam(const struct vg_axis *x, const struct nets_picture *a, const struct nets_picture *whole)
{
    double at_border[2] = {0}, inside[2] = {0};
    int n_border = 0, n_inside = 0;
    const struct nets_picture *p[2] = {a, whole};
    for (int u = 1; u < a->f.width; u++) {
        bool border = false;
        for (int i = 1; i < x->n; i++)
            border |= vg_axis_scale(x, x->cut[i]) == u;
        for (int v = 0; v < a->f.height; v++)
            for (int k = 0; k < 3; k++)
                for (int w = 0; w < 2; w++) {
                    const uint8_t *at = p[w]->data + 3 * (v * a->f.width + u) + k;
                    (border ? at_border : inside)[w] += abs(at[0] - at[-3]);
                }
        *(border ? &n_border : &n_inside) += 1;
    }
    double one = at_border[0] / n_border / (inside[0] / n_inside), other = at_border[1] / n_border / (inside[1] / n_inside);
    return one - other;
}

static void tiles(void)
{
    enum { W = 224, H = 96, TILE = 72 };
    static const struct {
        enum vg_norm_mode mode;
        bool seamless, warned;
    } cases[] = {{VG_NORM_FROZEN, true, false}, {VG_NORM_THUMBNAIL, true, false}, {VG_NORM_EXACT, false, true},
                 {VG_NORM_TILE, false, false}};
    struct vg_model *m = style();
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, W, H, true);
    for (int k = 0; m && k < 4; k++) {
        struct nets_player whole, cut;
        const char *name = vg_norm_mode_name(cases[k].mode);
        if (!start(&whole, m, W, H, 0, cases[k].mode) || !start(&cut, m, W, H, TILE, cases[k].mode))
            return;
        const struct vg_plan_info *info = vg_plan_info(cut.plan);
        expectf(info->grid->x.n > 2 && info->exact == cases[k].seamless && !!info->warning == cases[k].warned, "%s", name);
        for (int i = 0; i < 10; i++) {
            paint(&in, 2 * i, 1, i);
            nets_play(&whole, &in);
            nets_play(&cut, &in);
        }
        int d = worst(whole.out.data, cut.out.data, in.bytes);
        double s = seam(&info->grid->x, &cut.out, &whole.out);
        /* The other two show that the measure sees what there is to see. */
        expectf(cases[k].seamless ? d == 0 && s == 0 : d > 20 && s > 0.1, "%s: %d steps off the whole frame, seams %g", name,
                d, s);
        nets_stop(&whole);
        nets_stop(&cut);
    }
    /* Exact, in bands instead of tiles where memory is short: no seams, no warning. */
    struct nets_player whole, bands;
    if (m && start(&whole, m, W, H, 0, VG_NORM_EXACT)) {
        struct vg_plan_request r = {.width = W, .height = H, .overlap_x = -1, .overlap_y = -1,
                                    .max_bytes = vg_plan_info(whole.plan)->arena_bytes * 9 / 10};
        struct vgk_error err = {{0}};
        bands = (struct nets_player){.out = nets_picture(VGK_FRAME_PACKED, W, H, false)};
        expectf(!vg_plan_make(m, &vgk_cpu, cpu, &r, &bands.plan, &err), "%s", err.text);
        if (bands.plan && !vg_run_open(bands.plan, &bands.run, &err)) {
            expect(vg_plan_info(bands.plan)->bands > 1 && !vg_plan_info(bands.plan)->warning);
            nets_play(&whole, &in);
            nets_play(&bands, &in);
            expect(worst(whole.out.data, bands.out.data, in.bytes) == 0);
        }
        nets_stop(&bands);
        nets_stop(&whole);
    }
    free(in.data);
    vg_model_unref(&m);
}

int main(int argc, char **argv)
{
    hour = argc > 1 ? atoi(argv[1]) : hour;
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1, .exact_products = true}, &cpu, NULL);
    run(tiles);
    run(flashes);
    run(drifts);
    vgk_cpu.close(&cpu);
    return kit_done();
}
