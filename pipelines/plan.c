/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* vidgen plan MODEL: the plan for a frame size and a budget, and the ways that it did not take: the whole frame, bands
 * of rows, tiles, what each would need and why another one was taken.  --sweep runs them all and prints their times;
 * --device plans for a GPU, one that is there or any other. */
#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda_load.h"
#include "model/run.h"

enum { DONE = 0, FAILED = 1, USAGE = 2, NO_ROOM = 5, MOST_WAYS = 24 };

typedef struct {
    struct vg_plan_request request;
    struct vg_plan *plan; /* NULL: not possible, `why` says it */
    char why[256];
    gboolean chosen;
    double ms; /* a frame; 0 = not measured */
} Way;

typedef struct {
    struct vg_model *model;
    const struct vgk_backend *backend;
    struct vgk_device *device;
    struct vg_plan *plan; /* the chosen one */
    size_t budget;
    Way ways[MOST_WAYS];
    int n_ways;
} Survey;

static double waste_of(const struct vg_grid *g) { return (1 + vg_axis_waste(&g->x)) * (1 + vg_axis_waste(&g->y)) - 1; }

static gboolean same_way(const struct vg_plan_info *a, const struct vg_plan_info *b)
{
    return a->bands == b->bands && a->grid->x.tile == b->grid->x.tile && a->grid->y.tile == b->grid->y.tile &&
           a->grid->x.n == b->grid->x.n && a->grid->y.n == b->grid->y.n && a->direct == b->direct &&
           a->arena_bytes == b->arena_bytes;
}

/* --- the ways --- */

static void add_way(Survey *s, struct vg_plan_request request)
{
    Way *w = &s->ways[s->n_ways];
    struct vgk_error err = {{0}};
    if (s->n_ways == MOST_WAYS)
        return;
    request.max_bytes = G_MAXSIZE;
    *w = (Way){.request = request};
    if (vg_plan_make(s->model, s->backend, s->device, &request, &w->plan, &err) != VGK_OK)
        g_strlcpy(w->why, err.text, sizeof w->why);
    for (int i = 0; w->plan && i < s->n_ways; i++)
        if (s->ways[i].plan && same_way(vg_plan_info(s->ways[i].plan), vg_plan_info(w->plan))) {
            vg_plan_free(&w->plan); /* the same again */
            return;
        }
    s->n_ways++;
}

/* Why a way is not the one taken. */
static void explain(const Survey *s, Way *w, gboolean asked)
{
    const struct vg_plan_info *i = vg_plan_info(w->plan);
    if (w->chosen)
        g_strlcpy(w->why, "chosen", sizeof w->why);
    else if (i->arena_bytes > s->budget)
        g_snprintf(w->why, sizeof w->why, "%zu bytes over the budget", i->arena_bytes - s->budget);
    else if (!i->exact)
        g_strlcpy(w->why, "not equal to the untiled result", sizeof w->why);
    else if (i->direct)
        g_strlcpy(w->why, "too small for the fast convolutions' blocks", sizeof w->why);
    else if (i->grid->x.n * i->grid->y.n > 1)
        g_snprintf(w->why, sizeof w->why, "%.1f %% computed twice", 100 * waste_of(i->grid));
    else
        g_strlcpy(w->why, asked ? "something else was asked for" : "fits, but slower by the planner's reckoning",
                  sizeof w->why);
}

static void look_around(Survey *s, struct vg_plan_request request)
{
    const struct vg_summary *m = vg_model_summary(s->model);
    static const int parts[] = {2, 3, 4, 6, 8};
    struct vg_plan_request r = request;
    r.tile_width = r.tile_height = 0;
    for (r.bands = 1; r.bands <= 64 && (r.bands == 1 || request.height / r.bands >= 6); r.bands *= 2)
        add_way(s, r);
    r.bands = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        r.tile_width = request.width / parts[i] + m->halo_left + m->halo_right;
        r.tile_height = request.height / parts[i] + m->halo_top + m->halo_bottom;
        if (r.tile_width < request.width && r.tile_height < request.height)
            add_way(s, r);
    }
    gboolean asked = request.tile_width || request.tile_height || request.bands, found = FALSE;
    for (int i = 0; i < s->n_ways; i++) {
        Way *w = &s->ways[i];
        const struct vg_plan_info *info = w->plan ? vg_plan_info(w->plan) : NULL;
        w->chosen = info && s->plan && same_way(info, vg_plan_info(s->plan));
        found |= w->chosen;
    }
    if (s->plan && !found && s->n_ways < MOST_WAYS) {
        Way *w = &s->ways[s->n_ways++];
        *w = (Way){.request = request, .chosen = TRUE};
        w->request.max_bytes = s->budget;
        struct vgk_error err;
        if (vg_plan_make(s->model, s->backend, s->device, &w->request, &w->plan, &err) != VGK_OK)
            s->n_ways--;
    }
    for (int i = 0; i < s->n_ways; i++)
        if (s->ways[i].plan)
            explain(s, &s->ways[i], asked);
}

/* --- measuring --- */

/* The least of several frames, each tile run on a picture of its own size; 0 when it could not be run. */
static double frame_ms(const struct vg_plan *plan)
{
    const struct vg_grid *g = vg_plan_info(plan)->grid;
    struct vgk_error err = {{0}};
    struct vg_run *run = NULL;
    if (vg_run_open(plan, &run, &err) != VGK_OK) {
        g_printerr("vidgen: %s\n", err.text);
        return 0;
    }
    struct vgk_frame in = {.layout = VGK_FRAME_PACKED, .width = g->x.tile, .height = g->y.tile, .step = 3,
                           .offset = {0, 1, 2}, .alpha = -1};
    struct vgk_frame out = in;
    out.width = vg_axis_scale(&g->x, g->x.tile);
    out.height = vg_axis_scale(&g->y, g->y.tile);
    in.stride[0] = 3 * (gsize)in.width;
    out.stride[0] = 3 * (gsize)out.width;
    in.plane[0] = g_malloc((gsize)in.stride[0] * in.height);
    out.plane[0] = g_malloc0((gsize)out.stride[0] * out.height);
    for (gsize i = 0; i < (gsize)in.stride[0] * in.height; i++)
        in.plane[0][i] = (guint8)(i * 2654435761u >> 13);
    struct vgk_frame window[VG_MAX_WINDOW], emitted[VG_MAX_WINDOW]; /* the same picture, however many it takes and gives */
    for (int i = 0; i < VG_MAX_WINDOW; i++) {
        window[i] = in;
        emitted[i] = out;
    }
    const struct vgk_colour colour = {.full_range = true};
    double best = INFINITY, spent = 0;
    enum vgk_status s = VGK_OK;
    for (int frame = 0; !s && (frame < 3 || (frame < 9 && spent < 1000)); frame++) {
        gint64 start = g_get_monotonic_time();
        for (int i = 0; i < g->x.n * g->y.n && !s; i++)
            s = vg_run_tile(run, i % g->x.n, i / g->x.n, window, &colour, emitted, &err);
        vg_run_next(run);
        double ms = (double)(g_get_monotonic_time() - start) / 1000;
        spent += ms;
        if (frame && ms < best) /* the first one warms up */
            best = ms;
    }
    g_free(in.plane[0]);
    g_free(out.plane[0]);
    vg_run_close(&run);
    return s ? 0 : best / vg_plan_info(plan)->hop;
}

/* --- words --- */

static void way_text(const Way *w, gboolean sweep)
{
    if (!w->plan) {
        g_print("  %-5s %s\n", w->request.bands ? "bands" : "tiles", w->why);
        return;
    }
    const struct vg_plan_info *i = vg_plan_info(w->plan);
    const struct vg_grid *g = i->grid;
    char *ms = w->ms > 0 ? g_strdup_printf("%8.1f ms ", w->ms) : g_strdup(sweep ? "        -    " : "");
    const char *kind = g->x.n * g->y.n > 1 ? "tiles" : i->bands > 1 ? "bands" : "whole";
    char *shape = g->x.n * g->y.n > 1 ? g_strdup_printf("%dx%d of %dx%d", g->x.n, g->y.n, g->x.tile, g->y.tile)
                  : i->bands > 1      ? g_strdup_printf("%d", i->bands)
                                      : g_strdup("");
    g_print("%c %-5s %-18s %12zu bytes %7.1f %% twice %s %s\n", w->chosen ? '*' : ' ', kind, shape, i->arena_bytes,
            100 * waste_of(g), ms, w->why);
    g_free(ms);
    g_free(shape);
}

static void json_string(GString *to, const char *text)
{
    g_string_append_c(to, '"');
    for (; *text; text++)
        if (*text == '"' || *text == '\\' || (guchar)*text < 0x20)
            g_string_append_printf(to, "\\u%04x", (guchar)*text);
        else
            g_string_append_c(to, *text);
    g_string_append_c(to, '"');
}

static void way_json(GString *to, const Way *w)
{
    g_string_append_printf(to, "{\"chosen\": %s, \"why\": ", w->chosen ? "true" : "false");
    json_string(to, w->why);
    if (w->plan) {
        const struct vg_plan_info *i = vg_plan_info(w->plan);
        const struct vg_grid *g = i->grid;
        char waste[G_ASCII_DTOSTR_BUF_SIZE], ms[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append_printf(to, ", \"bands\": %d, \"tiles\": [%d, %d], \"tile\": [%d, %d], \"bytes\": %zu, \"waste\": %s, "
                                   "\"calls\": %d, \"exact\": %s, \"direct-products\": %s",
                               i->bands, g->x.n, g->y.n, g->x.tile, g->y.tile, i->arena_bytes,
                               g_ascii_formatd(waste, sizeof waste, "%.4f", waste_of(g)), i->n_ops,
                               i->exact ? "true" : "false", i->direct ? "true" : "false");
        if (w->ms > 0)
            g_string_append_printf(to, ", \"ms\": %s", g_ascii_formatd(ms, sizeof ms, "%.3f", w->ms));
    }
    g_string_append_c(to, '}');
}

static void print(const Survey *s, const char *problem, gboolean json, gboolean sweep, gboolean show_steps)
{
    char *steps = show_steps && s->plan ? vg_plan_steps(s->plan, json) : NULL;
    char *text = !s->plan ? NULL : json ? vg_plan_json(s->plan) : vg_plan_text(s->plan);
    if (json) {
        GString *all = g_string_new("{\"plan\": ");
        g_string_append(all, text ? text : "null");
        if (steps)
            g_string_append_printf(all, ", \"steps\": %s", steps);
        if (problem) {
            g_string_append(all, ", \"error\": ");
            json_string(all, problem);
        }
        g_string_append_printf(all, ", \"budget\": %zu, \"ways\": [", s->budget);
        for (int i = 0; i < s->n_ways; i++) {
            g_string_append(all, i ? ", " : "");
            way_json(all, &s->ways[i]);
        }
        g_print("%s]}\n", all->str);
        g_string_free(all, TRUE);
    } else {
        g_print("%s%s%sbudget  %.2f MiB\nways\n", text ? text : "", steps ? "steps\n" : "", steps ? steps : "",
                (double)s->budget / (1 << 20));
        for (int i = 0; i < s->n_ways; i++)
            way_text(&s->ways[i], sweep);
    }
    free(steps);
    free(text);
}

/* --- the command --- */

/* "cpu", "cuda" (the first GPU), a capability ("sm_86"), or a file with a description of a device. */
static enum vgk_status open_device(Survey *s, const char *name, int threads, struct vgk_error *err)
{
    struct vgk_device_options options = {.threads = threads};
    char *description = NULL;
    s->backend = &vgk_cpu;
    if (name && strcmp(name, "cpu") != 0) {
        if (!(s->backend = vgk_cuda_load(err)))
            return VGK_ERR_FILE;
        if (strcmp(name, "cuda") != 0)
            options.described = g_file_get_contents(name, &description, NULL, NULL) ? description : name;
    }
    enum vgk_status status = s->backend->open(&options, &s->device, err);
    g_free(description);
    return status;
}

static int survey(const char *path, struct vg_plan_request request, const char *device, int threads, gboolean json,
                  gboolean sweep, gboolean steps, gboolean only)
{
    Survey s = {.budget = request.max_bytes};
    struct vgk_error err = {{0}};
    enum vgk_status status = vg_model_load(path, &s.model, &err);
    if (!status)
        status = open_device(&s, device, threads, &err);
    if (!status) {
        if (!s.budget) {
            s.budget = s.backend->bytes_free(s.device) / 2;
            request.max_bytes = s.budget;
        }
        status = vg_plan_make(s.model, s.backend, s.device, &request, &s.plan, &err);
        if (!status || status == VGK_ERR_NOMEM) {
            if (!only)
                look_around(&s, request);
            for (int i = 0; sweep && i < s.n_ways; i++)
                if (s.ways[i].plan && vg_plan_info(s.ways[i].plan)->arena_bytes <= s.budget)
                    s.ways[i].ms = frame_ms(s.ways[i].plan);
            print(&s, status ? err.text : NULL, json, sweep, steps);
        }
    }
    if (status)
        g_printerr("vidgen: %s\n", err.text);
    for (int i = 0; i < s.n_ways; i++)
        vg_plan_free(&s.ways[i].plan);
    vg_plan_free(&s.plan);
    if (s.backend)
        s.backend->close(&s.device);
    vg_model_unref(&s.model);
    return status == VGK_ERR_NOMEM ? NO_ROOM : status ? FAILED : DONE;
}

static int usage(const char *text)
{
    g_printerr("vidgen: plan: %s\nTry vidgen plan --help.\n", text);
    return USAGE;
}

int parse_norm_mode(const char *text)
{
    int mode = VG_NORM_MODES - 1;
    while (mode >= 0 && strcmp(text, vg_norm_mode_name(mode)))
        mode--;
    return mode;
}

int plan_main(int argc, char **argv)
{
    char *size = NULL, *memory = NULL, *norms = NULL, *device = NULL, **models = NULL;
    int tile_width = 0, tile_height = 0, threads = 0, bands = 0, width = 1920, height = 1080;
    gboolean json = FALSE, sweep = FALSE, rgb = FALSE, steps = FALSE, only = FALSE;
    char rest;
    const GOptionEntry entries[] = {
        {"size", 's', 0, G_OPTION_ARG_STRING, &size, "of the frames (1920x1080)", "WxH"},
        {"max-device-memory", 0, 0, G_OPTION_ARG_STRING, &memory, "the budget (512M, 4G; half of what is free)", "BYTES"},
        {"tile-width", 0, 0, G_OPTION_ARG_INT, &tile_width, "width of a tile in pixels (0 = by plan)", "N"},
        {"tile-height", 0, 0, G_OPTION_ARG_INT, &tile_height, "height of a tile in pixels (0 = by plan)", "N"},
        {"bands", 0, 0, G_OPTION_ARG_INT, &bands, "bands of rows (0 = by plan, 1 = the whole frame)", "N"},
        {"norm-mode", 0, 0, G_OPTION_ARG_STRING, &norms, "exact, previous, frozen, thumbnail or tile (exact)", "MODE"},
        {"rgb", 0, 0, G_OPTION_ARG_NONE, &rgb, "for frames with full chroma", NULL},
        {"threads", 0, 0, G_OPTION_ARG_INT, &threads, "threads of the model (0 = as many as there are)", "N"},
        {"device", 'd', 0, G_OPTION_ARG_FILENAME, &device,
         "cpu, cuda, or a GPU that need not be there: its capability (sm_86), or a file with its description", "NAME"},
        {"steps", 0, 0, G_OPTION_ARG_NONE, &steps, "every operation, its kernel and where its tensors lie", NULL},
        {"only", 0, 0, G_OPTION_ARG_NONE, &only, "only the plan, not the ways that it did not take", NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "for programs", NULL},
        {"sweep", 0, 0, G_OPTION_ARG_NONE, &sweep, "run every way that fits and tell its time", NULL},
        {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &models, NULL, "MODEL.onnx"},
        {NULL},
    };
    GOptionContext *context = g_option_context_new("- what a model needs, and how it would run");
    GError *error = NULL;
    int code;
    g_option_context_add_main_entries(context, entries, NULL);
    gboolean parsed = g_option_context_parse(context, &argc, &argv, &error);
    g_option_context_free(context);
    guint64 bytes = memory ? parse_bytes(memory) : 0;
    int norm_mode = norms ? parse_norm_mode(norms) : VG_NORM_EXACT;
    if (!parsed)
        code = usage(error->message);
    else if (!models || models[1])
        code = usage("one model, please");
    else if (size && sscanf(size, "%dx%d%c", &width, &height, &rest) != 2)
        code = usage("--size: expected WIDTHxHEIGHT, such as 1920x1080");
    else if (memory && !bytes)
        code = usage("--max-device-memory: expected a size such as 512M");
    else if (norm_mode < 0)
        code = usage("--norm-mode: expected exact, previous, frozen, thumbnail, tile or auto");
    else if (sweep && device && strcmp(device, "cpu") != 0 && strcmp(device, "cuda") != 0)
        code = usage("--sweep runs the model: only on a device that is there");
    else if (tile_width < 0 || tile_height < 0 || threads < 0 || bands < 0)
        code = usage("sizes, bands and threads are 0 or more");
    else
        code = survey(models[0],
                      (struct vg_plan_request){.width = width, .height = height, .chroma_x = rgb ? 1 : 2,
                                               .chroma_y = rgb ? 1 : 2, .tile_width = tile_width,
                                               .tile_height = tile_height, .overlap_x = -1, .overlap_y = -1,
                                               .norm_mode = norm_mode, .bands = bands, .max_bytes = bytes,
                                               .flights = TRUE},
                      device, threads, json, sweep, steps, only);
    g_clear_error(&error);
    g_strfreev(models);
    g_free(norms);
    g_free(size);
    g_free(memory);
    g_free(device);
    return code;
}
