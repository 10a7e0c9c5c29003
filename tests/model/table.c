/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* docs/models.md: what is computed of each model, and that it holds.
 *
 *     test-table MODEL.onnx ... > docs/models.md     exit status 1 when something does not hold
 *
 * Tests run it on the shipped models; the page is made with those and the fixtures (tests/fixtures/make_fixtures.py). */
#include "kit.h"
#include "nets.h"

enum { WIDTH = 200, HEIGHT = 152 };

static struct vgk_device *cpu; /* direct products, as small tiles need them to be exact */

struct frame {
    struct nets_picture picture;
    size_t bytes, measured;
    bool exact, made;
};

static struct frame make(struct vg_model *m, const struct nets_picture *in, int bands, int tile_width, int tile_height,
                         struct vgk_error *err)
{
    struct vg_plan_request r = {.width = WIDTH, .height = HEIGHT, .overlap_x = -1, .overlap_y = -1, .bands = bands,
                                .tile_width = tile_width, .tile_height = tile_height, .max_bytes = (size_t)1 << 32};
    struct vg_plan *p = NULL;
    struct vg_run *run = NULL;
    struct frame f = {.bytes = 0};
    if (vg_plan_make(m, &vgk_cpu, cpu, &r, &p, err))
        return f;
    size_t before = vgk_cpu.bytes_now(cpu);
    enum vgk_status s = vg_run_open(p, &run, err);
    const struct vg_plan_info *info = vg_plan_info(p);
    f.bytes = info->arena_bytes;
    f.measured = vgk_cpu.bytes_now(cpu) - before;
    f.exact = info->exact;
    f.picture = nets_picture(VGK_FRAME_PACKED, vg_axis_scale(&info->grid->x, WIDTH),
                             vg_axis_scale(&info->grid->y, HEIGHT), false);
    f.made = !s && !nets_frame(run, info->grid, in, &f.picture, err);
    expectf(f.bytes == f.measured, "%zu bytes planned, %zu taken", f.bytes, f.measured);
    vg_run_close(&run);
    vg_plan_free(&p);
    return f;
}

/* "= whole", or why not. */
static const char *against(const char *name, const struct frame *whole, const struct frame *f, const char *otherwise)
{
    bool same = f->made && !memcmp(f->picture.data, whole->picture.data, whole->picture.bytes);
    if (same)
        return "= whole";
    expectf(!f->made || !f->exact, "%s: differs from the whole frame", name);
    return otherwise;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool row(const char *path)
{
    struct vgk_error err = {{0}};
    struct vg_model *m = NULL;
    if (vg_model_load(path, &m, &err))
        return false;
    const struct vg_summary *s = vg_model_summary(m);
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, WIDTH, HEIGHT, true);
    struct frame whole = make(m, &in, 1, 0, 0, &err);
    if (whole.made) {
        struct frame bands = make(m, &in, 6, 0, 0, &err);
        struct frame tiles = make(m, &in, 0, s->halo_left + s->halo_right + 40, s->halo_top + s->halo_bottom + 40, &err);
        char halo[64];
        snprintf(halo, sizeof halo, s->halo_left + s->halo_right > WIDTH ? "-" : "%d %d %d %d", s->halo_left, s->halo_top,
                 s->halo_right, s->halo_bottom);
        printf("| %s | %d/%d | %d %d | %s | %zu | %zu | %s | %s |\n", file_name(path), s->scale_num, s->scale_den, s->align_x,
               s->align_y, s->global ? "whole frame" : halo, whole.bytes, bands.bytes,
               against(path, &whole, &bands, "not in bands"),
               against(path, &whole, &tiles, s->global ? "depends on the whole frame" : "one tile"));
        free(bands.picture.data);
        free(tiles.picture.data);
    }
    bool made = whole.made;
    free(whole.picture.data);
    free(in.data);
    vg_model_unref(&m);
    return made;
}

int main(int argc, char **argv)
{
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1, .exact_products = true}, &cpu, NULL);
    kit_seed(1);
    printf("# Models, and what is computed of them\n\n"
           "Made by `tests/model/table.c`, which fails when a row does not hold.  Halo: input pixels around a piece that its\n"
           "values depend on, left, top, right, bottom.  Bytes: all that a run takes at %d x %d, predicted and counted by the\n"
           "allocator to the byte, for the whole frame and in 6 bands.  \"= whole\": the same bytes as the whole frame.\n\n"
           "| model | scale | align | halo | bytes, whole | bytes, bands | bands | tiles |\n"
           "| --- | --- | --- | --- | --- | --- | --- | --- |\n", WIDTH, HEIGHT);
    char others[1024] = "";
    for (int i = 1; i < argc; i++)
        if (!row(argv[i]))
            snprintf(others + strlen(others), sizeof others - strlen(others), "%s%s", *others ? ", " : "",
                     file_name(argv[i]));
    if (*others)
        printf("\nNo models of one picture (windows and states in time, latents, several pictures), or of another size:\n%s.\n",
               others);
    vgk_cpu.close(&cpu);
    return kit_done();
}
