/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The norm modes on a clip against exact norms.
 *
 *     ffmpeg -i CLIP -vf scale=640:360 -f rawvideo -pix_fmt rgb24 - | norm-modes MODEL 640 360 [FRAMES [OUT.ppm [STYLE]]]
 *
 * Prints for each mode: mean and worst difference from exact in 8-bit steps, flicker (mean absolute difference of
 * successive frames where the clip stands still), and time of a frame over that of exact, the modes taking turns.  With
 * OUT.ppm: the last frame, exact, and beside it the differences of previous and of frozen from it, 16 times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/run.h"

enum { EXACT, PREVIOUS, FROZEN, THUMBNAIL, MODES };
static const char *const names[] = {"exact", "previous", "frozen", "thumbnail"};
static const enum vg_norm_mode modes[] = {VG_NORM_EXACT, VG_NORM_PREVIOUS, VG_NORM_FROZEN, VG_NORM_THUMBNAIL};

struct player {
    struct vg_plan *plan;
    struct vg_run *run;
    uint8_t *out, *before;
    double sum, flicker, ms;
    long values, still;
    int worst;
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int fail(const char *what, const struct vgk_error *err)
{
    fprintf(stderr, "norm-modes: %s: %s\n", what, err->text);
    return 1;
}

static int compare_ms(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

/* Exact, and beside it what previous and frozen differ by. */
static void write_picture(const char *path, const struct player *p, int width, int height)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return;
    fprintf(f, "P6\n%d %d\n255\n", 3 * width, height);
    for (int y = 0; y < height; y++) {
        long at = 3L * width * y;
        fwrite(p[EXACT].out + at, 1, (size_t)3 * width, f);
        for (int m = PREVIOUS; m <= FROZEN; m++)
            for (long i = at; i < at + 3L * width; i++) {
                int d = 16 * abs(p[m].out[i] - p[EXACT].out[i]);
                fputc(d > 255 ? 255 : d, f);
            }
    }
    fclose(f);
}

int main(int argc, char **argv)
{
    struct vgk_error err = {{0}};
    struct vg_model *model = NULL;
    struct vgk_device *device = NULL;
    struct player p[MODES] = {{NULL}};
    if (argc < 4) {
        fprintf(stderr, "usage: norm-modes MODEL WIDTH HEIGHT [FRAMES [OUT.ppm [STYLE]]] <RGB24\n");
        return 2;
    }
    int width = atoi(argv[2]), height = atoi(argv[3]), frames = argc > 4 ? atoi(argv[4]) : 100, n = 0;
    int style = argc > 6 ? atoi(argv[6]) : 0;
    long bytes = 3L * width * height;
    if (vg_model_load(argv[1], &model, &err) || vgk_cpu.open(&(struct vgk_device_options){0}, &device, &err))
        return fail(argv[1], &err);
    for (int m = 0; m < MODES; m++) {
        struct vg_plan_request r = {.width = width, .height = height, .overlap_x = -1, .overlap_y = -1,
                                    .norm_mode = modes[m]};
        if (vg_plan_make(model, &vgk_cpu, device, &r, &p[m].plan, &err) || vg_run_open(p[m].plan, &p[m].run, &err))
            return fail(names[m], &err);
        for (int i = 0; i < vg_model_summary(model)->n_parameters; i++) {
            const struct vg_parameter *q = &vg_model_summary(model)->parameters[i];
            float *values = calloc((size_t)q->count, sizeof *values);
            if (style < q->count)
                values[style] = 1;
            vg_run_set_parameter(p[m].run, i, values, &err);
            free(values);
        }
        p[m].out = malloc((size_t)bytes);
        p[m].before = malloc((size_t)bytes);
    }
    uint8_t *in = malloc((size_t)bytes), *last = malloc((size_t)bytes);
    double *times[MODES];
    for (int m = 0; m < MODES; m++)
        times[m] = calloc((size_t)frames, sizeof **times);
    struct vgk_colour colour = {.full_range = true};
    for (; n < frames && fread(in, 1, (size_t)bytes, stdin) == (size_t)bytes; n++) {
        struct vgk_frame src = {VGK_FRAME_PACKED, width, height, {in}, {3 * width}, 3, {0, 1, 2}, -1}, dst = src;
        for (int m = 0; m < MODES; m++) {
            struct player *q = &p[m];
            double begin = now_ms();
            memcpy(q->before, q->out, (size_t)bytes);
            dst.plane[0] = q->out;
            if (vg_run_begin(q->run, &src, &colour, NULL, &err) || vg_run_tile(q->run, 0, 0, &src, &colour, &dst, &err))
                return fail(names[m], &err);
            times[m][n] = now_ms() - begin;
            for (long i = 0; i < bytes; i++) {
                int d = abs(q->out[i] - p[EXACT].out[i]);
                q->sum += d;
                q->worst = d > q->worst ? d : q->worst;
                if (n && in[i] == last[i]) {
                    q->flicker += abs(q->out[i] - q->before[i]);
                    q->still++;
                }
            }
            q->values += bytes;
        }
        memcpy(last, in, (size_t)bytes);
    }
    if (!n) {
        fprintf(stderr, "norm-modes: no frame came in\n");
        return 1;
    }
    for (int m = 0; m < MODES; m++) {
        struct vg_run_info info;
        vg_run_info(p[m].run, &info);
        qsort(times[m], (size_t)n, sizeof **times, compare_ms);
        p[m].ms = times[m][n / 2];
        printf("%-9s  mean %6.3f  worst %3d  flicker %6.3f  time %5.1f ms = %.2f of exact  memory %.1f MiB%s", names[m],
               p[m].sum / (double)p[m].values, p[m].worst, p[m].still ? p[m].flicker / (double)p[m].still : 0, p[m].ms,
               p[m].ms / p[0].ms, (double)vg_plan_info(p[m].plan)->arena_bytes / (1 << 20),
               vg_plan_info(p[m].plan)->norm_stored ? "  stored" : "");
        printf(info.cuts ? "  %d cuts\n" : "\n", (int)info.cuts);
    }
    printf("%d frames of %dx%d\n", n, width, height);
    if (argc > 5)
        write_picture(argv[5], p, width, height);
    for (int m = 0; m < MODES; m++) {
        vg_run_close(&p[m].run);
        vg_plan_free(&p[m].plan);
        free(p[m].out);
        free(p[m].before);
        free(times[m]);
    }
    free(in);
    free(last);
    vgk_cpu.close(&device);
    vg_model_unref(&model);
    return 0;
}
