/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A model over one frame, without GStreamer: how long it takes, or what comes out.
 *
 *     bench-model MODEL.onnx WIDTH HEIGHT [-threads N] [-direct] [-tile WIDTH HEIGHT] [-memory BYTES] [-frozen]
 *                 [-in FRAME -out RESULT]
 *
 * The frame is RGB, 3 bytes a pixel, no padding; without -in it is a pattern.  The whole frame is one tile, unless -tile
 * is given (then there is no -out: tiles are computed, not put together); with -memory it is cut as the planner likes.
 * -direct: convolutions without Winograd.  -frozen: norms by the statistics of the first frames.  With -out the result is
 * written, and that is all.  Else it serves, so that several contenders can be timed in turn
 * (contenders.py): prints "ready ARENA-BYTES PEAK-RESIDENT-BYTES TILES", then for every line on stdin runs once and
 * prints the seconds that took, by the clock and of the CPUs. */
#include "model/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static struct vgk_frame rgb_frame(int width, int height)
{
    return (struct vgk_frame){.layout = VGK_FRAME_PACKED, .width = width, .height = height, .step = 3,
                              .offset = {0, 1, 2}, .alpha = -1, .stride = {3 * (ptrdiff_t)width},
                              .plane = {calloc((size_t)width * height, 3)}};
}

static bool transfer(const char *path, const char *mode, struct vgk_frame *frame)
{
    size_t bytes = 3 * (size_t)frame->width * frame->height;
    FILE *f = fopen(path, mode);
    bool good = f && (*mode == 'r' ? fread(frame->plane[0], 1, bytes, f) : fwrite(frame->plane[0], 1, bytes, f)) == bytes;
    if (f && fclose(f) != 0)
        good = false;
    if (!good)
        fprintf(stderr, "%s: not a frame of %d x %d RGB bytes\n", path, frame->width, frame->height);
    return good;
}

static void pattern(struct vgk_frame *frame)
{
    for (int y = 0; y < frame->height; y++)
        for (int x = 0; x < frame->width; x++)
            for (int c = 0; c < 3; c++)
                frame->plane[0][y * frame->stride[0] + 3 * x + c] = (uint8_t)((x * (c + 1) + y * (3 - c)) ^ (x * y >> 6));
}

/* Where tile i begins in the output. */
static int scaled(const struct vg_axis *axis, int i)
{
    return axis->origin[i] ? vg_axis_scale(axis, axis->origin[i]) : 0;
}

/* The same picture for all frames that the model takes and gives. */
static enum vgk_status run_tile(struct vg_run *run, int column, int row, const struct vgk_frame *in,
                                const struct vgk_frame *out, struct vgk_error *err)
{
    struct vgk_frame window[VG_MAX_WINDOW], emitted[VG_MAX_WINDOW];
    for (int i = 0; i < VG_MAX_WINDOW; i++) {
        window[i] = *in;
        emitted[i] = *out;
    }
    return vg_run_tile(run, column, row, window, &(struct vgk_colour){.full_range = true}, emitted, err);
}

/* All tiles of a frame. */
static enum vgk_status run_frame(struct vg_run *run, const struct vg_grid *grid, const struct vgk_frame *in,
                                 const struct vgk_frame *out, struct vgk_error *err)
{
    enum vgk_status s = vg_run_begin(run, in, &(struct vgk_colour){.full_range = true}, NULL, err);
    for (int y = 0; y < grid->y.n && !s; y++)
        for (int x = 0; x < grid->x.n && !s; x++) {
            struct vgk_frame from = vgk_frame_part(in, grid->x.origin[x], grid->y.origin[y], grid->x.tile, grid->y.tile),
                             to = vgk_frame_part(out, scaled(&grid->x, x), scaled(&grid->y, y),
                                                 vg_axis_scale(&grid->x, grid->x.tile), vg_axis_scale(&grid->y, grid->y.tile));
            s = run_tile(run, x, y, &from, &to, err);
        }
    vg_run_next(run);
    return s;
}

/* One run for each line. */
static enum vgk_status serve(struct vg_run *run, const struct vg_plan_info *info, const struct vgk_frame *in,
                             const struct vgk_frame *out, struct vgk_error *err)
{
    struct rusage usage;
    char line[64];
    enum vgk_status s = VGK_OK;
    for (int i = 0; i < (info->norm_mode == VG_NORM_FROZEN ? VG_NORM_FRAMES + 1 : 1) && !s; i++)
        s = run_frame(run, info->grid, in, out, err); /* the first ones warm up */
    getrusage(RUSAGE_SELF, &usage);
    printf("ready %zu %zu %d\n", info->arena_bytes, (size_t)usage.ru_maxrss * 1024, info->grid->x.n * info->grid->y.n);
    fflush(stdout);
    while (!s && fgets(line, sizeof line, stdin)) {
        double t = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
        s = run_frame(run, info->grid, in, out, err);
        printf("%.6f %.6f\n", now(CLOCK_MONOTONIC) - t, now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
        fflush(stdout);
    }
    return s;
}

int main(int argc, char **argv)
{
    struct vgk_device_options options = {.threads = 0};
    const char *from = NULL, *to = NULL;
    int tile_width = 0, tile_height = 0;
    size_t memory = 0;
    bool wrong = argc < 4, frozen = false;
    for (int i = 4; i < argc && !wrong; i++) {
        if (!strcmp(argv[i], "-direct"))
            options.exact_products = true;
        else if (!strcmp(argv[i], "-threads") && i + 1 < argc)
            options.threads = atoi(argv[++i]);
        else if (!strcmp(argv[i], "-frozen"))
            frozen = true;
        else if (!strcmp(argv[i], "-memory") && i + 1 < argc)
            memory = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "-tile") && i + 2 < argc) {
            tile_width = atoi(argv[++i]);
            tile_height = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "-in") && i + 1 < argc)
            from = argv[++i];
        else if (!strcmp(argv[i], "-out") && i + 1 < argc)
            to = argv[++i];
        else
            wrong = true;
    }
    struct vg_plan_request request = {.overlap_x = -1, .overlap_y = -1, .max_bytes = memory,
                                      .norm_mode = frozen ? VG_NORM_FROZEN : VG_NORM_EXACT, .norm_measure = frozen};
    if (!wrong) {
        request.width = atoi(argv[2]);
        request.height = atoi(argv[3]);
        request.tile_width = tile_width || memory ? tile_width : request.width;
        request.tile_height = tile_height || memory ? tile_height : request.height;
    }
    if (wrong || (to && (tile_width || memory)) || request.width < 1 || request.height < 1) {
        fprintf(stderr, "usage: bench-model MODEL.onnx WIDTH HEIGHT [-threads N] [-direct] [-tile WIDTH HEIGHT] "
                        "[-memory BYTES] [-frozen] [-in FRAME -out RESULT]\n");
        return 2;
    }

    struct vgk_error err = {{0}};
    struct vg_model *model = NULL;
    struct vgk_device *device = NULL;
    struct vg_plan *plan = NULL;
    struct vg_run *run = NULL;
    struct vgk_frame in = rgb_frame(request.width, request.height), out = {0};
    bool good = in.plane[0] != NULL;
    enum vgk_status s = vg_model_load(argv[1], &model, &err);
    if (!s)
        s = vgk_cpu.open(&options, &device, &err);
    if (!s)
        s = vg_plan_make(model, &vgk_cpu, device, &request, &plan, &err);
    if (!s)
        s = vg_run_open(plan, &run, &err);
    if (!s && good) {
        const struct vg_plan_info *info = vg_plan_info(plan);
        out = rgb_frame(vg_axis_scale(&info->grid->x, request.width), vg_axis_scale(&info->grid->y, request.height));
        good = out.plane[0] != NULL;
        pattern(&in);
        if (good && from)
            good = transfer(from, "rb", &in);
        if (good && to) {
            s = run_tile(run, 0, 0, &in, &out, &err);
            good = !s && transfer(to, "wb", &out);
        } else if (good) {
            s = serve(run, info, &in, &out, &err);
        }
    }
    if (s)
        fprintf(stderr, "%s\n", err.text);
    vg_run_close(&run);
    vg_plan_free(&plan);
    vgk_cpu.close(&device);
    vg_model_unref(&model);
    free(in.plane[0]);
    free(out.plane[0]);
    return s || !good ? 1 : 0;
}
