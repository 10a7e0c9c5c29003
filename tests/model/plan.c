/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Plans: what is planned keeps to its budget and is taken to the byte, what is refused says what would do, and the text
 * and the JSON tell the same.
 *
 *     test-plan MODELS [FIXTURE.onnx ...]     fixtures: only how close their layouts are to the lower bound */
#include <ctype.h>

#include "kit.h"
#include "nets.h"

static const char *models_dir;
static struct vgk_device *cpu;
static struct vgk_error err;

static struct vg_model *load(const char *name)
{
    char path[1024];
    struct vg_model *m = NULL;
    snprintf(path, sizeof path, strchr(name, '/') ? "%s" : "%s/%s.onnx", strchr(name, '/') ? name : models_dir, name);
    expectf(vg_model_load(path, &m, &err) == VGK_OK, "%s", err.text);
    return m;
}

/* A net with norms of the whole frame and a residual around them. */
static enum vgk_status plan(struct vg_model *m, int width, int height, size_t max_bytes, struct vg_plan **p)
{
    struct vg_plan_request r = {.width = width, .height = height, .overlap_x = -1, .overlap_y = -1,
                                .max_bytes = max_bytes};
    *p = NULL;
    *err.text = 0;
    return vg_plan_make(m, &vgk_cpu, cpu, &r, p, &err);
}

/* What the device counts is what the plan told. */
static void check_bytes(const char *name, const struct vg_plan *p, size_t max_bytes)
{
    const struct vg_plan_info *info = vg_plan_info(p);
    struct vg_run *r = NULL;
    size_t before = vgk_cpu.bytes_now(cpu);
    expectf(!max_bytes || info->arena_bytes <= max_bytes, "%s: %zu of %zu", name, info->arena_bytes, max_bytes);
    expectf(info->weight_bytes + info->activation_bytes == info->arena_bytes, "%s", name);
    expectf(vg_run_open(p, &r, &err) == VGK_OK, "%s: %s", name, err.text);
    expectf(vgk_cpu.bytes_now(cpu) - before == info->arena_bytes, "%s: %zu taken, %zu planned", name,
            vgk_cpu.bytes_now(cpu) - before, info->arena_bytes);
    vg_run_close(&r);
    expectf(vgk_cpu.bytes_now(cpu) == before, "%s", name);
}

static int spilled, streamed;

static void ladder(const char *name, struct vg_model *m, int width, int height)
{
    struct vg_plan *p;
    expectf(plan(m, width, height, (size_t)1 << 32, &p) == VGK_OK, "%s: %s", name, err.text);
    if (!p)
        return;
    size_t whole = vg_plan_info(p)->arena_bytes, smallest = 0, refused = 0;
    int bands = 0, tiles = 0;
    const struct vg_grid *g = vg_plan_info(p)->grid;
    expectf(g->x.n * g->y.n == 1 && !vg_plan_info(p)->n_spilled && !vg_plan_info(p)->streams, "%s", name);
    vg_plan_free(&p);
    static const double steps[] = {1, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.02, 0.0005};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        size_t budget = (size_t)((double)whole * steps[i]);
        enum vgk_status s = plan(m, width, height, budget, &p);
        if (!s) {
            const struct vg_plan_info *info = vg_plan_info(p);
            check_bytes(name, p, budget);
            bands += info->bands > 1;
            tiles += info->grid->x.n * info->grid->y.n > 1;
            spilled += info->n_spilled > 0;
            streamed += info->streams;
            expectf((info->n_spilled || info->streams) == (info->host_bytes > 0), "%s: %zu", name, info->host_bytes);
            expectf(info->host_bytes == 0 || *info->ways, "%s", name);
            expectf(!refused, "%s: %zu bytes are refused, %zu are not", name, refused, budget);
            vg_plan_free(&p);
            continue;
        }
        expectf(s == VGK_ERR_NOMEM, "%s: %s", name, err.text);
        const char *at = strstr(err.text, "at least ");
        expectf(at && strstr(err.text, "max-device-memory"), "%s: %s", name, err.text);
        smallest = at ? strtoull(at + 9, NULL, 10) : 0;
        expectf(smallest > budget, "%s: %zu is refused, %zu would do", name, budget, smallest);
        if (refused)
            continue;
        refused = budget;
        expectf(plan(m, width, height, smallest, &p) == VGK_OK, "%s: %zu: %s", name, smallest, err.text);
        if (p) {
            check_bytes(name, p, smallest);
            spilled += vg_plan_info(p)->n_spilled > 0;
            streamed += vg_plan_info(p)->streams;
        }
        vg_plan_free(&p);
        expectf(plan(m, width, height, smallest - 1, &p) == VGK_ERR_NOMEM, "%s: one byte less than %zu", name, smallest);
        vg_plan_free(&p);
    }
    printf("%s at %dx%d: whole %zu bytes, %d budgets in bands, %d in tiles, at least %zu\n", name, width, height, whole,
           bands, tiles, smallest);
    expectf(bands + tiles > 0 && refused, "%s", name);
}

static void budgets(void)
{
    struct vg_model *m = load("style3");
    ladder("style3", m, 161, 121);
    vg_model_unref(&m);
    m = load("upscale2x");
    ladder("upscale2x", m, 200, 150);
    ladder("upscale2x", m, 63, 201);
    vg_model_unref(&m);
    m = nets_with_norms(&err);
    ladder("norms", m, 150, 200);
    vg_model_unref(&m);
    for (int seed = 1; seed <= 12; seed++) {
        char name[32];
        snprintf(name, sizeof name, "seed %d", seed);
        if ((m = nets_random(seed, seed % 2, &err)))
            ladder(name, m, 130, 120);
        vg_model_unref(&m);
    }
    printf("%d with pictures in host memory, %d with weights\n", spilled, streamed);
    expect(spilled && streamed > 12);
}

/* --- what is planned gives the same picture --- */

static int columns_in_bands, compared;

static void same_picture(const char *name, struct vg_model *m, int width, int height)
{
    static const double steps[] = {0.6, 0.3, 0.15, 0.08, 0.04};
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, width, height, true);
    struct vg_plan *p;
    expectf(plan(m, width, height, (size_t)1 << 32, &p) == VGK_OK, "%s: %s", name, err.text);
    size_t most = p ? vg_plan_info(p)->arena_bytes : 0;
    vg_plan_free(&p);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && most; i++) {
        size_t budget = (size_t)((double)most * steps[i]);
        if (plan(m, width, height, budget, &p))
            break;
        const struct vg_plan_info *info = vg_plan_info(p);
        struct nets_how how = {.bands = 1, .exact = info->direct};
        struct nets_run whole = {.run = NULL};
        struct vg_run *r = NULL;
        int w = vg_axis_scale(&p->grid.x, width), h = vg_axis_scale(&p->grid.y, height);
        struct nets_picture want = nets_picture(VGK_FRAME_PACKED, w, h, false), got = nets_picture(VGK_FRAME_PACKED, w, h, false);
        expectf(nets_open(&whole, m, cpu, width, height, &how, &err) == VGK_OK && vg_run_open(p, &r, &err) == VGK_OK, "%s: %s",
                name, err.text);
        expectf(vgk_cpu.bytes_peak(cpu) >= info->arena_bytes, "%s", name);
        expectf(nets_frame(whole.run, &whole.plan.grid, &in, &want, &err) == VGK_OK &&
                nets_frame(r, info->grid, &in, &got, &err) == VGK_OK, "%s: %s", name, err.text);
        expectf(!memcmp(want.data, got.data, want.bytes), "%s in %zu bytes: %dx%d tiles, %d bands, %d spilled%s", name, budget,
                info->grid->x.n, info->grid->y.n, info->bands, info->n_spilled, info->streams ? ", streamed" : "");
        columns_in_bands += info->bands > 1 && info->grid->x.n > 1;
        compared++;
        vg_run_close(&r);
        vg_plan_free(&p);
        nets_close(&whole);
        free(want.data);
        free(got.data);
    }
    free(in.data);
}

static void same_pictures(void)
{
    struct vg_model *m = load("upscale2x");
    same_picture("upscale2x", m, 200, 150);
    vg_model_unref(&m);
    m = nets_with_norms(&err);
    same_picture("norms", m, 150, 200);
    vg_model_unref(&m);
    for (int seed = 1; seed <= 10; seed++) {
        char name[32];
        snprintf(name, sizeof name, "seed %d", seed);
        if ((m = nets_random(seed, seed % 4 == 0, &err)))
            same_picture(name, m, 131, 120);
        vg_model_unref(&m);
    }
    printf("%d plans compared with the whole frame, %d of them columns in bands\n", compared, columns_in_bands);
    expect(compared > 30 && columns_in_bands > 5);
}

/* --- tiles asked for --- */

static enum vgk_status tiled(struct vg_model *m, int width, int height, int tile_width, int tile_height, int overlap,
                             size_t max_bytes, struct vg_plan **p)
{
    struct vg_plan_request r = {.width = width, .height = height, .tile_width = tile_width, .tile_height = tile_height,
                                .overlap_x = overlap, .overlap_y = overlap, .max_bytes = max_bytes};
    *p = NULL;
    *err.text = 0;
    return vg_plan_make(m, &vgk_cpu, cpu, &r, p, &err);
}

static void explicit_tiles(void)
{
    struct vg_model *m = load("upscale2x");
    const size_t much = (size_t)1 << 30;
    struct vg_plan *p;
    expectf(tiled(m, 300, 200, 80, 64, -1, much, &p) == VGK_OK, "%s", err.text);
    if (p) {
        const struct vg_grid *g = vg_plan_info(p)->grid;
        expectf(g->x.tile >= 80 && g->x.tile < 120 && g->y.tile >= 64 && g->y.tile < 100 && g->x.n > 3 && g->y.n > 2,
                "%dx%d of %dx%d", g->x.n, g->y.n, g->x.tile, g->y.tile);
        expect(vg_plan_info(p)->bands == 1 && vg_plan_info(p)->exact);
        check_bytes("explicit", p, 0);
        vg_plan_free(&p);
    }
    /* A tile that does not fit: how much it needs, and that is enough. */
    expect(tiled(m, 300, 200, 160, 100, -1, 1 << 16, &p) == VGK_ERR_NOMEM);
    const char *at = strstr(err.text, "needs ");
    size_t need = at ? strtoull(at + 6, NULL, 10) : 0;
    expectf(need && strstr(err.text, "tile-width"), "%s", err.text);
    expectf(tiled(m, 300, 200, 160, 100, -1, need, &p) == VGK_OK, "%zu: %s", need, err.text);
    vg_plan_free(&p);
    expect(tiled(m, 300, 200, 160, 100, -1, need - 1, &p) == VGK_ERR_NOMEM);
    static const struct {
        int w, h, tw, th, overlap;
        const char *part;
    } wrong[] = {
        {300, 200, 10, 0, -1, "give tiles of"},         {300, 200, 0, 10, -1, "tile-height 10"},
        {300, 200, 80, 80, 3, "give at least"},          {300, 200, 80, 80, 80, "make no progress"},
        {300, 200, -1, 0, -1, "expected 0"},             {300, 200, 80, 80, -2, "expected 0"},
        {0, 200, 0, 0, -1, "expected 1x1 to"},           {16385, 16, 0, 0, -1, "16384x16384"},
        {16384, 16, 24, 0, -1, "is the most"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        enum vgk_status s = tiled(m, wrong[i].w, wrong[i].h, wrong[i].tw, wrong[i].th, wrong[i].overlap, much, &p);
        expectf(s == VGK_ERR_INVALID && strstr(err.text, wrong[i].part), "%zu: %s, %s", i, vgk_status_string(s), err.text);
        vg_plan_free(&p);
    }
    vg_model_unref(&m);
    /* Tiles of the frame's size are the frame whole, or in bands, which need more where the frame is small. */
    if ((m = load("style3"))) {
        expect(tiled(m, 200, 120, 200, 120, -1, 100000, &p) == VGK_ERR_NOMEM);
        at = strstr(err.text, "at least ");
        need = at ? strtoull(at + 9, NULL, 10) : 0;
        expectf(tiled(m, 200, 120, 200, 120, -1, need, &p) == VGK_OK, "%zu: %s", need, err.text);
        vg_plan_free(&p);
        expectf(tiled(m, 200, 120, 200, 120, -1, need - 1, &p) == VGK_ERR_NOMEM, "%zu", need);
        vg_plan_free(&p);
        vg_model_unref(&m);
    }
    /* Norms over the whole frame: tiles are possible, but not the same, and that is told. */
    if ((m = load("style3"))) {
        expectf(tiled(m, 320, 240, 256, 200, -1, much, &p) == VGK_OK, "%s", err.text);
        if (p && vg_model_summary(m)->global)
            expect(!vg_plan_info(p)->exact && strstr(vg_plan_info(p)->warning, "whole frame"));
        vg_plan_free(&p);
        vg_model_unref(&m);
    }
}

static void odd_frames(void)
{
    static const int sizes[][2] = {{1, 1}, {1, 70}, {70, 1}, {3, 2}, {16384, 64}, {64, 2000}};
    struct vg_model *m = load("upscale2x");
    struct vg_plan *p;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        expectf(plan(m, sizes[i][0], sizes[i][1], (size_t)1 << 31, &p) == VGK_OK, "%s", err.text);
        if (!p)
            continue;
        const struct vg_grid *g = vg_plan_info(p)->grid;
        expect(g->x.tile >= sizes[i][0] && g->y.tile >= sizes[i][1]);
        if (sizes[i][0] * sizes[i][1] < 300000)
            check_bytes("odd", p, 0);
        vg_plan_free(&p);
    }
    expectf(plan(m, 16384, 64, 64 << 20, &p) == VGK_OK, "%s", err.text);
    vg_plan_free(&p);
    /* No budget: half of what is free. */
    expectf(plan(m, 64, 64, 0, &p) == VGK_OK && vg_plan_info(p)->arena_bytes <= vgk_cpu.bytes_free(cpu), "%s", err.text);
    vg_plan_free(&p);
    vg_model_unref(&m);
}

/* --- words --- */

/* A value of the JSON grammar; NULL when it is none. */
static const char *json(const char *s, int depth)
{
    if (depth > 16)
        return NULL;
    while (isspace((unsigned char)*s))
        s++;
    if (*s == '{' || *s == '[') {
        char close = *s == '{' ? '}' : ']';
        bool object = *s == '{', first = true;
        for (s++;; first = false) {
            while (isspace((unsigned char)*s))
                s++;
            if (*s == close)
                return first || s[-1] != ',' ? s + 1 : NULL;
            if (!first && (*s != ',' || !s++))
                return NULL;
            if (object) {
                while (isspace((unsigned char)*s))
                    s++;
                if (*s != '"' || !(s = json(s, depth + 1)) || *s++ != ':')
                    return NULL;
            }
            if (!(s = json(s, depth + 1)))
                return NULL;
        }
    }
    if (*s == '"') {
        for (s++; *s != '"'; s++) {
            if ((unsigned char)*s < 0x20)
                return NULL;
            if (*s == '\\' && !strchr("\"\\/bfnrtu", *++s))
                return NULL;
        }
        return s + 1;
    }
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++)
        if (!strncmp(s, words[i], strlen(words[i])))
            return s + strlen(words[i]);
    char *end;
    strtod(s, &end);
    return end == s || !(isdigit((unsigned char)*s) || *s == '-') ? NULL : end;
}

static bool has(const char *text, const char *format, size_t value)
{
    char part[128];
    snprintf(part, sizeof part, format, value);
    if (text && !strstr(text, part))
        printf("no \"%s\" in %s\n", part, text);
    return strstr(text, part);
}

static void words(void)
{
    expect(json("{\"a\": [1, 2.5, {}], \"b\": \"x\\\"\", \"c\": true}", 0));
    expect(!json("{\"a\": [1, }", 0) && !json("{\"a\" 1}", 0) && !json("[1 2]", 0) && !json("[", 0));
    struct vg_model *models[] = {load("style3"), load("upscale2x"), nets_with_norms(&err)};
    for (int i = 0; i < 9; i++) {
        struct vg_plan *p;
        if (!models[i % 3])
            continue;
        enum vgk_status s = i < 3   ? plan(models[i], 160, 120, (size_t)1 << 30, &p)
                            : i < 6 ? tiled(models[i % 3], 300, 250, 190, 180, -1, (size_t)1 << 30, &p)
                                    : plan(models[i % 3], 160, 120, (size_t)6 << 20, &p);
        if (s) {
            expectf(s == VGK_ERR_NOMEM, "%s", err.text);
            continue;
        }
        const struct vg_plan_info *info = vg_plan_info(p);
        char *t = vg_plan_text(p), *j = vg_plan_json(p);
        const char *end = j ? json(j, 0) : NULL;
        expectf(end && !*end, "%s", j ? j : "");
        expect(j && has(j, "\"arena\": %zu,", info->arena_bytes) && has(j, "\"weights\": %zu,", info->weight_bytes) &&
               has(j, "\"activations\": %zu,", info->activation_bytes) && has(j, "\"bands\": %zu,", (size_t)info->bands) &&
               has(j, "\"tile\": %zu,", (size_t)info->grid->x.tile) && has(j, "\"scratch\": %zu", info->scratch_bytes) &&
               has(j, "\"tiles\": %zu,", (size_t)info->grid->x.n * info->grid->y.n));
        expect(t && has(t, "tiles of %zu", (size_t)info->grid->x.tile) &&
               (info->bands == 1 || has(t, "%zu bands", (size_t)info->bands)));
        char memory[64];
        snprintf(memory, sizeof memory, "memory  %.2f MiB", (double)info->arena_bytes / (1 << 20));
        expectf(t && strstr(t, memory), "%s in %s", memory, t ? t : "");
        free(t);
        free(j);
        vg_plan_free(&p);
    }
    for (int i = 0; i < 3; i++)
        vg_model_unref(&models[i]);
}

/* --- the layout --- */

static double worst;
static char worst_name[64];

/* ours: not a fixture, which may be too large, or of one size. */
static void compare_floor(const char *name, struct vg_model *m, bool ours)
{
    static const int sizes[][2] = {{160, 96}, {352, 288}};
    for (int i = 0; m && i < 4; i++) {
        struct vg_plan *p;
        const int *size = sizes[i % 2];
        struct vg_plan_request r = {.width = size[0], .height = size[1], .overlap_x = -1, .overlap_y = -1,
                                    .max_bytes = (size_t)1 << 32, .bands = i < 2 ? 1 : 6};
        enum vgk_status s = vg_plan_make(m, &vgk_cpu, cpu, &r, &p, &err);
        if (s) {
            expectf(!ours, "%s: %s", name, err.text);
            continue;
        }
        const struct vg_program *l = p->program;
        double over = l->floor ? (double)l->activations / (double)l->floor - 1 : 0;
        expectf(over <= 0.1, "%s at %dx%d, %d bands: %zu bytes, %.1f %% over the bound of %zu", name, size[0], size[1],
                l->bands, l->activations, 100 * over, l->floor);
        if (over > worst) {
            worst = over;
            snprintf(worst_name, sizeof worst_name, "%s at %dx%d, %d bands", name, size[0], size[1], l->bands);
        }
        vg_plan_free(&p);
    }
}

/* Six layers of 64 channels in a budget that their packed weights are too large for: they come from host memory, for direct
 * products, which are small enough to stay, cost several times as much. */
static void streams_before_direct(void)
{
    struct nets n;
    nets_begin(&n, 3);
    int v = 0;
    for (int i = 0; i < 6; i++)
        v = nets_unary(&n, nets_conv(&n, v, (struct nets_conv){.out = 64, .kernel = 3}), "Relu");
    struct vg_model *m = nets_end(&n, nets_conv(&n, v, (struct nets_conv){.out = 3, .kernel = 3}), &err);
    struct vg_plan_request r = {.width = 120, .height = 120, .overlap_x = -1, .overlap_y = -1, .bands = 6};
    struct vg_plan *bands = NULL, *plan = NULL;
    expectf(m && vg_plan_make(m, &vgk_cpu, cpu, &r, &bands, &err) == VGK_OK, "%s", err.text);
    const struct vg_plan_info *i = vg_plan_info(bands);
    r.bands = 0;
    r.max_bytes = i->activation_bytes + i->weight_bytes * 6 / 10;
    expectf(vg_plan_make(m, &vgk_cpu, cpu, &r, &plan, &err) == VGK_OK, "%s", err.text);
    i = vg_plan_info(plan);
    expect(i->streams && plan->program->blocks && !i->direct && i->grid->x.n * i->grid->y.n == 1);
    expect(i->arena_bytes <= r.max_bytes && i->moved_bytes > 0);
    vg_plan_free(&bands);
    vg_plan_free(&plan);
    vg_model_unref(&m);
}

/* Bands also where the whole frame would fit, if they cost less: large pictures that the cache does not hold. */
static void cheaper_in_bands(void)
{
    struct vg_model *m = load("upscale2x");
    static const int sizes[][2] = {{640, 360}, {64, 48}};
    for (int i = 0; i < 2; i++) {
        struct vg_plan_request r = {.width = sizes[i][0], .height = sizes[i][1], .overlap_x = -1, .overlap_y = -1};
        struct vg_plan *way[3] = {NULL}; /* chosen, whole, in many bands */
        for (int k = 0; k < 3; k++) {
            r.bands = k == 2 ? sizes[i][1] / 6 : k;
            expectf(vg_plan_make(m, &vgk_cpu, cpu, &r, &way[k], &err) == VGK_OK, "%s", err.text);
        }
        int bands = way[0] ? vg_plan_info(way[0])->bands : 0;
        expectf(i ? bands == 1 : bands > 1, "%d bands of %dx%d", bands, sizes[i][0], sizes[i][1]);
        for (int k = 1; k < 3 && way[0] && way[k]; k++)
            expect(way[0]->program->work <= way[k]->program->work);
        for (int k = 0; k < 3; k++)
            vg_plan_free(&way[k]);
    }
    vg_model_unref(&m);
}

static char **fixtures;

static void layouts(void)
{
    static const char *const names[] = {"style3", "upscale2x"};
    struct vg_model *m;
    int n = 0;
    for (int i = 0; i < 2; i++) {
        compare_floor(names[i], m = load(names[i]), true);
        vg_model_unref(&m);
    }
    for (int seed = 1; seed <= 40; seed++) {
        char name[32];
        snprintf(name, sizeof name, "seed %d", seed);
        compare_floor(name, m = nets_random(seed, true, &err), true);
        vg_model_unref(&m);
    }
    for (char **f = fixtures; *f; f++)
        if (vg_model_load(*f, &m, &err) == VGK_OK) { /* some are no models of one picture */
            const char *slash = strrchr(*f, '/');
            compare_floor(slash ? slash + 1 : *f, m, false);
            vg_model_unref(&m);
            n++;
        }
    printf("%d fixtures; at most %.2f %% over the lower bound: %s\n", n, 100 * worst, worst_name);
}

int main(int argc, char **argv)
{
    models_dir = argc > 1 ? argv[1] : "pipelines/models";
    fixtures = argv + (argc > 1 ? 2 : 1);
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &cpu, NULL);
    run(budgets);
    run(same_pictures);
    run(explicit_tiles);
    run(odd_frames);
    run(words);
    run(streams_before_direct);
    run(cheaper_in_bands);
    run(layouts);
    expect(vgk_cpu.bytes_now(cpu) == 0);
    vgk_cpu.close(&cpu);
    return kit_done();
}
