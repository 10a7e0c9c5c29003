/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* docs/models.md: what is computed of each model, and that it holds.
 *
 *     test-table SOURCE BUILD MODEL.onnx ... > docs/models.md     exit status 1 when something does not hold
 *
 * The models given, and the fixtures (tests/fixtures/make_fixtures.py), which need a Python. */
#include "kit.h"
#include "nets.h"
#include "onnx_case.h"

enum { WIDTH = 200, HEIGHT = 152, STEPS = 3, MOST = 16 };

static struct vgk_device *cpu; /* direct products, as small tiles need them to be exact */

/* What came out of some windows, one picture behind the other. */
struct frames {
    uint8_t *data;
    size_t size, bytes;
    bool exact, made;
};

static struct frames make(struct vg_model *m, const struct nets_picture *in, int bands, int tile_width, int tile_height,
                          struct vgk_error *err)
{
    struct vg_plan_request r = {.width = WIDTH, .height = HEIGHT, .overlap_x = -1, .overlap_y = -1, .bands = bands,
                                .tile_width = tile_width, .tile_height = tile_height, .max_bytes = (size_t)1 << 32};
    struct vg_plan *p = NULL;
    struct vg_run *run = NULL;
    struct frames f = {.bytes = 0};
    if (vg_plan_make(m, &vgk_cpu, cpu, &r, &p, err))
        return f;
    size_t before = vgk_cpu.bytes_now(cpu);
    enum vgk_status s = vg_run_open(p, &run, err);
    const struct vg_plan_info *info = vg_plan_info(p);
    size_t measured = vgk_cpu.bytes_now(cpu) - before;
    f.bytes = info->arena_bytes;
    f.exact = info->exact;
    struct nets_picture out[MOST];
    for (int i = 0; i < info->emit; i++)
        out[i] = nets_picture(VGK_FRAME_PACKED, vg_axis_scale(&info->grid->x, WIDTH), vg_axis_scale(&info->grid->y, HEIGHT),
                              false);
    int windows = vg_model_summary(m)->n_states ? STEPS : 1;
    f.size = (size_t)windows * (size_t)info->emit * out[0].bytes;
    f.data = malloc(f.size);
    for (int k = 0; k < windows && !s; k++) {
        s = nets_window(run, info->grid, in + k, info->window, out, info->emit, err);
        for (int i = 0; i < info->emit; i++)
            memcpy(f.data + ((size_t)k * info->emit + i) * out[0].bytes, out[i].data, out[0].bytes);
    }
    f.made = !s;
    expectf(f.bytes == measured, "%zu bytes planned, %zu taken", f.bytes, measured);
    for (int i = 0; i < info->emit; i++)
        free(out[i].data);
    vg_run_close(&run);
    vg_plan_free(&p);
    return f;
}

/* "= whole", or why not. */
static const char *against(const char *name, const struct frames *whole, const struct frames *f, const char *otherwise)
{
    bool same = f->made && !memcmp(f->data, whole->data, whole->size);
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
    struct nets_picture in[MOST + STEPS];
    for (int i = 0; i < MOST + STEPS; i++)
        in[i] = nets_picture(VGK_FRAME_PACKED, WIDTH, HEIGHT, true);
    struct frames whole = make(m, in, 1, 0, 0, &err);
    if (whole.made) {
        struct frames bands = make(m, in, 6, 0, 0, &err);
        struct frames tiles = make(m, in, 0, s->halo_left + s->halo_right + 40, s->halo_top + s->halo_bottom + 40, &err);
        char halo[64], time[64] = "", many[32] = "-";
        if (s->window > 1 || s->emit > 1)
            snprintf(time, sizeof time, "%d to %d%s, ", s->window, s->emit, s->centre < 0 ? " between" : "");
        if (s->n_states)
            snprintf(time + strlen(time), sizeof time - strlen(time), "%d state%s, ", s->n_states, s->n_states > 1 ? "s" : "");
        time[*time ? strlen(time) - 2 : 0] = '\0';
        if (bands.bytes)
            snprintf(many, sizeof many, "%zu", bands.bytes);
        snprintf(halo, sizeof halo, s->halo_left + s->halo_right > WIDTH ? "-" : "%d %d %d %d", s->halo_left, s->halo_top,
                 s->halo_right, s->halo_bottom);
        printf("| %s | %s | %d/%d | %d %d | %s | %zu | %s | %s | %s |\n", file_name(path), time, s->scale_num, s->scale_den,
               s->align_x, s->align_y, s->global ? "whole frame" : halo, whole.bytes, many,
               against(path, &whole, &bands, "not in bands"),
               against(path, &whole, &tiles, s->global ? "depends on the whole frame" : "one tile"));
        free(bands.data);
        free(tiles.data);
    }
    bool made = whole.made;
    free(whole.data);
    for (int i = 0; i < MOST + STEPS; i++)
        free(in[i].data);
    vg_model_unref(&m);
    return made;
}

int main(int argc, char **argv)
{
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1, .exact_products = true}, &cpu, NULL);
    kit_seed(1);
    printf("# Models, and what is computed of them\n\n"
           "Made by `tests/model/table.c`, which fails when a row does not hold.  Time: frames that a run takes and gives, if not\n"
           "one.  Halo: input pixels around a piece that its values depend on, left, top, right, bottom.  Bytes: all that a run\n"
           "takes at %d x %d, predicted and counted by the allocator to the byte, for the whole frame and in 6 bands.\n"
           "\"= whole\": the same bytes as the whole frame, over %d windows where there are states.\n\n"
           "| model | time | scale | align | halo | bytes, whole | bytes, bands | bands | tiles |\n"
           "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", WIDTH, HEIGHT, STEPS);
    char others[1024] = "", folder[1024], path[1400];
    int rows = 0;
    for (int i = 3; i < argc; i++)
        rows += row(argv[i]);
    expectf(rows == argc - 3, "%d rows", rows);
    struct dirent **file;
    /* With sanitizers without them, which cuda/models and model/time run, too: it is a minute. */
    bool fixtures = !SANITIZED && argc > 2 && make_cases(argv[1], argv[2], "make_fixtures.py", "table-fixtures", folder, sizeof folder);
    int n = fixtures ? scandir(folder, &file, NULL, alphasort) : 0;
    snprintf(path, sizeof path, "%s/adain.modelinfo", folder);
    FILE *info = fixtures ? fopen(path, "w") : NULL;
    if (info) {
        fputs("[vidgen parameter style]\nsize=40;48\ndefault=0.5\n", info);
        fclose(info);
    }
    for (int i = 0; i < n; i++) {
        const char *end = strrchr(file[i]->d_name, '.');
        snprintf(path, sizeof path, "%s/%s", folder, file[i]->d_name);
        if (end && !strcmp(end, ".onnx")) {
            bool made = row(path);
            rows += made;
            if (!made)
                snprintf(others + strlen(others), sizeof others - strlen(others), "%s%s", *others ? ", " : "",
                         file[i]->d_name);
        }
        free(file[i]);
    }
    if (n > 0)
        free(file);
    if (*others)
        printf("\nNo models of pictures (latents, sequences of vectors): %s.\n", others);
    expectf(!fixtures || rows == argc - 3 + 24, "%d rows", rows);
    vgk_cpu.close(&cpu);
    return kit_done();
}
