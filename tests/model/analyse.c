/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Halo, alignment and scale: against values by hand, against what an input pixel really changes, and by their purpose:
 * tiles cut by them equal the untiled frame. */
#include "kit.h"
#include "nets.h"

static const char *models_dir;
static struct vgk_device *cpu, *exact_cpu;

/* --- by hand --- */

#define CRAFTED 11

/* A small net by number, its scale, alignment and halo (left, right) worked out on paper; NULL behind the last. */
static struct vg_model *crafted(int i, int want[5], struct vgk_error *err)
{
    struct nets n;
    int x = 0;
    if (i >= CRAFTED)
        return NULL;
    kit_seed((uint64_t)(100 + i));
    nets_begin(&n, 3);
    switch (i) {
    case 0: /* 3x3 and 5x5: 1 + 2 */
        x = nets_conv(&n, nets_conv(&n, 0, (struct nets_conv){.out = 4, .kernel = 3}),
                      (struct nets_conv){.out = 3, .kernel = 5});
        memcpy(want, (int[]){1, 1, 1, 3, 3}, 5 * sizeof *want);
        break;
    case 1: /* dilated by 2: 2 taps away; the even kernel looks right */
        x = nets_conv(&n, nets_conv(&n, 0, (struct nets_conv){.out = 4, .kernel = 3, .dilation = 2}),
                      (struct nets_conv){.out = 3, .kernel = 2});
        memcpy(want, (int[]){1, 1, 1, 2, 3}, 5 * sizeof *want);
        break;
    case 2: /* down by 2 (2y - 1 .. 2y + 1), nearest up: an aligned pair needs -1 .. 1 */
        x = nets_resize(&n, nets_conv(&n, 0, (struct nets_conv){.out = 3, .kernel = 3, .stride = 2}), 2, 1, "nearest",
                        "asymmetric");
        memcpy(want, (int[]){1, 1, 2, 1, 0}, 5 * sizeof *want);
        break;
    case 3: /* 3x3, then shuffled to twice the size */
        x = nets_shuffle(&n, nets_conv(&n, 0, (struct nets_conv){.out = 12, .kernel = 3}), "CRD");
        memcpy(want, (int[]){2, 1, 1, 1, 1}, 5 * sizeof *want);
        break;
    case 4: /* linear, twice the size: half a pixel to each side */
        x = nets_resize(&n, 0, 2, 1, "linear", "half_pixel");
        memcpy(want, (int[]){2, 1, 1, 1, 1}, 5 * sizeof *want);
        break;
    case 5: /* cubic: two pixels to each side */
        x = nets_resize(&n, 0, 2, 1, "cubic", "half_pixel");
        memcpy(want, (int[]){2, 1, 1, 2, 2}, 5 * sizeof *want);
        break;
    case 6: /* half the size, by means of 2 x 2 */
        x = nets_pool(&n, 0, "AveragePool");
        memcpy(want, (int[]){1, 2, 2, 0, 0}, 5 * sizeof *want);
        break;
    case 7: /* k 4, stride 2, pads 1 up again: outputs 2i, 2i + 1 read i - 1 .. i + 1 of the halved ones, 2 pixels each */
        x = nets_deconv(&n, nets_pool(&n, 0, "MaxPool"), 3);
        memcpy(want, (int[]){1, 1, 2, 2, 2}, 5 * sizeof *want);
        break;
    case 8: /* reflected pads of an even kernel: what lies beyond the right edge is found on the left */
        x = nets_conv(&n, 0, (struct nets_conv){.out = 3, .kernel = 2, .pad = NETS_PAD_REFLECT});
        memcpy(want, (int[]){1, 1, 1, 1, 1}, 5 * sizeof *want);
        break;
    case 9: /* the longer of two ways */
        x = nets_conv(&n, 0, (struct nets_conv){.out = 3, .kernel = 7});
        x = nets_binary(&n, "Add", x, nets_conv(&n, 0, (struct nets_conv){.out = 3, .kernel = 3}));
        memcpy(want, (int[]){1, 1, 1, 3, 3}, 5 * sizeof *want);
        break;
    default: /* pixel 2i + 2 of the doubled ones is still pixel i, but a tile that ends with i does not have it */
        x = nets_conv(&n, nets_resize(&n, 0, 2, 1, "nearest", "half_pixel"), (struct nets_conv){.out = 3, .kernel = 3});
        memcpy(want, (int[]){2, 1, 1, 1, 1}, 5 * sizeof *want);
        break;
    }
    return nets_end(&n, x, err);
}

static void by_hand(void)
{
    int want[5], i = 0;
    struct vgk_error err = {{0}};
    for (struct vg_model *m; (m = crafted(i, want, &err)); i++) {
        const struct vg_summary *s = vg_model_summary(m);
        expectf(s->scale_num == want[0] && s->scale_den == want[1] && s->align_x == want[2] && s->align_y == want[2] &&
                    s->halo_left == want[3] && s->halo_right == want[4] && s->halo_top == want[3] &&
                    s->halo_bottom == want[4],
                "net %d: %d/%d, align %d, halo %d %d; expected %d/%d, %d, %d %d", i, s->scale_num, s->scale_den,
                s->align_x, s->halo_left, s->halo_right, want[0], want[1], want[2], want[3], want[4]);
        vg_model_unref(&m);
    }
    expectf(i == CRAFTED, "net %d: %s", i, err.text);
    static const struct {
        const char *name;
        int scale, halo;
    } known[] = {{"style3", 1, 48}, {"upscale2x", 2, 6}};
    for (int k = 0; k < 2; k++) {
        struct vg_model *m = nets_shipped(models_dir, known[k].name);
        const struct vg_summary *s = m ? vg_model_summary(m) : NULL;
        if (!m)
            continue;
        expectf(s->scale_num == known[k].scale && s->scale_den == 1 && s->halo_left <= known[k].halo &&
                    s->halo_right <= known[k].halo && (s->halo_left == known[k].halo || s->halo_right == known[k].halo),
                "%s: scale %d, halo %d %d %d %d", known[k].name, s->scale_num, s->halo_left, s->halo_top, s->halo_right,
                s->halo_bottom);
        vg_model_unref(&m);
    }
}

/* --- by measurement --- */

/* Whether the columns (or rows) [from, from + count) of two outputs differ. */
static bool differs(const struct vgk_tensor *a, const struct vgk_tensor *b, int dim, int64_t from, int64_t count)
{
    const float *x = a->data, *y = b->data;
    int64_t h = a->dim[2], w = a->dim[3];
    for (int64_t i = 0; i < vgk_tensor_count(a); i++) {
        int64_t at = dim == 3 ? i % w : i / w % h;
        if (at >= from && at < from + count && memcmp(&x[i], &y[i], sizeof *x))
            return true;
    }
    return false;
}

/* Changes a column (row) of the input d pixels before or behind an aligned piece in the middle, and looks whether the
 * piece changes. */
static bool reaches(struct nets_run *r, const struct vgk_tensor *in, const struct vgk_tensor *before,
                    struct vgk_tensor *after, int dim, int64_t at, struct vgk_error *err)
{
    const struct vg_summary *s = vg_model_summary(r->plan.model);
    int64_t align = dim == 3 ? s->align_x : s->align_y, piece = in->dim[dim] / 2 / align * align;
    int64_t h = in->dim[2], w = in->dim[3];
    float *x = in->data;
    struct vgk_tensor changed = *in;
    size_t bytes = (size_t)vgk_tensor_count(in) * sizeof *x;
    float *copy = malloc(bytes);
    memcpy(copy, x, bytes);
    for (int64_t i = 0; i < vgk_tensor_count(in); i++)
        if ((dim == 3 ? i % w : i / w % h) == piece + at)
            copy[i] += 3;
    changed.data = copy;
    expectf(nets_tensors(r, &changed, after, err) == VGK_OK, "%s", err->text);
    free(copy);
    return differs(before, after, dim, piece / s->scale_den * s->scale_num, align / s->scale_den * s->scale_num);
}

/* tight: the field ends just where it is said to; a net with ReLUs or several ways may see less. */
static void measure(const char *name, struct vg_model *m, int width, int height, bool tight)
{
    const struct vg_summary *s = vg_model_summary(m);
    struct nets_run r = {.run = NULL};
    struct vgk_error err = {{0}};
    struct nets_how how = {.exact = true};
    enum vgk_status status = nets_open(&r, m, cpu, width, height, &how, &err);
    expectf(status == VGK_OK, "%s: %s", name, err.text);
    if (status)
        return;
    struct vgk_tensor in = nets_input(&r), before = nets_output(&r), after = nets_output(&r);
    expectf(nets_tensors(&r, &in, &before, &err) == VGK_OK, "%s", err.text);
    for (int dim = 2; dim < 4; dim++) {
        int lo = dim == 3 ? s->halo_left : s->halo_top, hi = dim == 3 ? s->halo_right : s->halo_bottom;
        int align = dim == 3 ? s->align_x : s->align_y;
        expectf(!reaches(&r, &in, &before, &after, dim, -lo - 1, &err), "%s: dimension %d, before %d", name, dim, lo);
        expectf(!reaches(&r, &in, &before, &after, dim, align + hi, &err), "%s: dimension %d, behind %d", name, dim, hi);
        if (tight) {
            expectf(reaches(&r, &in, &before, &after, dim, -lo, &err), "%s: dimension %d, at -%d", name, dim, lo);
            expectf(reaches(&r, &in, &before, &after, dim, align + hi - 1, &err), "%s: dimension %d, at %d", name, dim, hi);
        }
    }
    free(in.data);
    free(before.data);
    free(after.data);
    nets_close(&r);
}

static void measured(void)
{
    struct vgk_error err = {{0}};
    char name[32];
    int want[5];
    struct vg_model *m;
    for (int i = 0; (m = crafted(i, want, &err)); i++) {
        snprintf(name, sizeof name, "net %d", i);
        measure(name, m, 32, 36, i < 6 || i == 9); /* the others need more than they look at */
        vg_model_unref(&m);
    }
    for (int seed = 1; seed <= 30; seed++)
        if ((m = nets_random(seed, false, &err))) {
            snprintf(name, sizeof name, "seed %d", seed);
            if (vg_model_summary(m)->halo_left < 30)
                measure(name, m, 112, 128, false);
            vg_model_unref(&m);
        }
    if ((m = nets_shipped(models_dir, "upscale2x"))) {
        measure("upscale2x", m, 40, 40, true);
        vg_model_unref(&m);
    }
}

/* --- tiles --- */

struct tally {
    int equal, direct, refused, several, above;
};

/* A frame in tiles of about this size against the frame whole, made of the same kind of products. */
static void tile(const char *name, struct vg_model *m, struct vgk_device *device, int width, int height, int tile_width,
                 int tile_height, enum vgk_frame_layout layout, struct tally *tally)
{
    int chroma = layout == VGK_FRAME_I420 ? 2 : 1;
    struct vg_plan_request request = {.width = width, .height = height, .chroma_x = chroma, .chroma_y = chroma,
                                      .tile_width = tile_width, .tile_height = tile_height, .overlap_x = -1,
                                      .overlap_y = -1, .max_bytes = (size_t)1 << 30};
    struct vg_plan *plan = NULL;
    struct vg_run *r = NULL;
    struct nets_run whole = {.run = NULL};
    struct vgk_error err = {{0}};
    enum vgk_status s = vg_plan_make(m, &vgk_cpu, device, &request, &plan, &err);
    if (s) {
        expectf(s == VGK_ERR_INVALID && strstr(err.text, "give"), "%s %dx%d in %dx%d: %s", name, width, height, tile_width,
                tile_height, err.text);
        tally->refused++;
        return;
    }
    const struct vg_plan_info *info = vg_plan_info(plan);
    struct nets_how how = {.exact = info->direct};
    s = vg_run_open(plan, &r, &err);
    s = s ? s : nets_open(&whole, m, device, width, height, &how, &err);
    expectf(s == VGK_OK && info->exact, "%s: %s", name, err.text);
    const struct vg_axis *x = &info->grid->x, *y = &info->grid->y;
    struct nets_picture in = nets_picture(layout, width, height, true);
    struct nets_picture a = nets_picture(layout, vg_axis_scale(x, width), vg_axis_scale(y, height), false), b = a;
    b.data = calloc(1, b.bytes);
    for (int i = 0; i < 3; i++)
        if (a.f.plane[i])
            b.f.plane[i] = b.data + (a.f.plane[i] - a.data);
    if (!s) {
        s = nets_frame(r, info->grid, &in, &a, &err);
        s = s ? s : nets_frame(whole.run, &whole.plan.grid, &in, &b, &err);
        expectf(s == VGK_OK, "%s: %s", name, err.text);
        size_t at = 0;
        while (at < a.bytes && a.data[at] == b.data[at])
            at++;
        expectf(at == a.bytes, "%s %dx%d (%s) in %dx%d tiles of %dx%d, %s: byte %zu of %zu", name, width, height,
                chroma == 2 ? "I420" : "RGB", x->n, y->n, x->tile, y->tile, info->direct ? "direct" : "blocks", at, a.bytes);
        tally->equal += at == a.bytes;
        tally->direct += info->direct;
        for (int i = 0; i < plan->program->n_steps && y->n > 1; i++)
            if (plan->program->steps[i].op.kind == VGK_OP_CONV && plan->program->steps[i].op.p.conv.above) {
                tally->above++;
                break;
            }
        tally->several += x->n * y->n > 1;
    }
    free(in.data);
    free(a.data);
    free(b.data);
    vg_run_close(&r);
    nets_close(&whole);
    vg_plan_free(&plan);
}

static void random_tiles(void)
{
    struct tally t = {0};
    struct vgk_error err = {{0}};
    const int seeds = SANITIZED ? 30 : 100;
    for (int seed = 1; seed <= seeds; seed++) {
        struct vg_model *m = nets_random(seed, false, &err);
        char name[32];
        expectf(m, "seed %d: %s", seed, err.text);
        if (!m)
            continue;
        snprintf(name, sizeof name, "seed %d", seed);
        const struct vg_summary *s = vg_model_summary(m);
        for (int i = 0; i < 2; i++)
            tile(name, m, i ? cpu : exact_cpu, kit_int(40, 90), kit_int(40, 90),
                 kit_int(0, 3) ? s->halo_left + s->halo_right + kit_int(8, 40) : 0,
                 kit_int(0, 3) ? s->halo_top + s->halo_bottom + kit_int(8, 40) : 0,
                 kit_int(0, 1) ? VGK_FRAME_I420 : VGK_FRAME_PACKED, &t);
        vg_model_unref(&m);
    }
    printf("random nets: %d equal, %d of them in several tiles, %d with direct products, %d refused\n", t.equal, t.several,
           t.direct, t.refused);
    expectf(t.several >= seeds * 6 / 10, "%d", t.several);
}

/* So many rows that the blocks of a layer begin above those of the layer before. */
static void high_frames(void)
{
    struct tally t = {0};
    struct vgk_error err = {{0}};
    const int nets = SANITIZED ? 4 : 8;
    for (int i = 0; i < nets; i++) {
        struct nets n;
        kit_seed((uint64_t)(80 + i));
        nets_begin(&n, 3);
        int x = 0;
        for (int k = 0; k < 4; k++)
            x = nets_conv(&n, x, (struct nets_conv){.out = 9, .kernel = k == i % 4 ? 5 : 3});
        struct vg_model *m = nets_end(&n, nets_conv(&n, x, (struct nets_conv){.out = 3, .kernel = 3}), &err);
        expectf(m, "%s", err.text);
        if (!m)
            continue;
        tile("high", m, cpu, kit_int(40, 80), kit_int(310, 400), 0, kit_int(100, 180), VGK_FRAME_PACKED, &t);
        vg_model_unref(&m);
    }
    expectf(t.equal == nets && t.several == nets && t.above == nets, "%d, %d, %d", t.equal, t.several, t.above);
}

static void shipped_tiles(void)
{
    static const char *const names[] = {"style3", "upscale2x"};
    for (int i = 0; i < 2; i++) {
        struct vg_model *m = nets_shipped(models_dir, names[i]);
        struct tally t = {0};
        if (!m)
            continue;
        int halo = 2 * vg_model_summary(m)->halo_left;
        kit_seed((uint64_t)(50 + i));
        const int tiles = SANITIZED ? 6 : 21;
        for (int k = 0; k < tiles; k++)
            tile(names[i], m, k % 3 ? exact_cpu : cpu, 2 * kit_int(halo / 3 + 16, halo / 2 + 40) + 1,
                 2 * kit_int(halo / 3 + 16, halo / 2 + 40) + 1, halo + kit_int(4, 30), halo + kit_int(4, 30),
                 k % 2 ? VGK_FRAME_I420 : VGK_FRAME_PACKED, &t);
        /* Large enough for the blocks of the fast kernels. */
        bool style = i == 0;
        tile(names[i], m, cpu, style ? 341 : 161, style ? 251 : 121, style ? 256 : 96, style ? 224 : 72, VGK_FRAME_PACKED,
             &t);
        printf("%s: %d equal, %d of them in several tiles, %d with direct products, %d refused\n", names[i], t.equal,
               t.several, t.direct, t.refused);
        expectf(t.equal >= tiles + 1 && t.several >= tiles * 3 / 4, "%d, %d", t.equal, t.several);
        vg_model_unref(&m);
    }
}

int main(int argc, char **argv)
{
    models_dir = argc > 1 ? argv[1] : "pipelines/models";
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &cpu, NULL);
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1, .exact_products = true}, &exact_cpu, NULL);
    run(by_hand);
    run(measured);
    run(random_tiles);
    run(high_frames);
    run(shipped_tiles);
    vgk_cpu.close(&cpu);
    vgk_cpu.close(&exact_cpu);
    return kit_done();
}
