/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What tests/gpu.sh asks of a GPU, through the module as the elements load it (VIDGEN_MODULE_PATH); the stand-in module
 * answers as well.  Each line is complete when it is printed; exit status 1 when something is wrong, 77 without a GPU.
 *
 *     gpu describe                            cuDNN's description of the device, for vidgen plan --device FILE
 *     gpu compare MODEL WIDTH HEIGHT          a frame against the CPU back end's
 *     gpu memory MODEL WIDTH HEIGHT FRAMES    the driver's figures against the plan's
 *     gpu time MODEL WIDTH HEIGHT SECONDS     median, least and 95th percentile of whole frames, host to host */
#include <time.h>

#include "kernels/cuda/dnn.h"
#include "kernels/cuda_load.h"
#include "kit.h"
#include "model/run.h"

struct frame {
    struct vgk_frame f;
    size_t bytes;
};

static struct frame frame_new(int width, int height)
{
    struct frame f = {{.layout = VGK_FRAME_PACKED, .width = width, .height = height, .step = 3, .offset = {0, 1, 2},
                       .alpha = -1}, (size_t)width * height * 3};
    f.f.stride[0] = 3 * width;
    f.f.plane[0] = calloc(1, f.bytes);
    return f;
}

/* A picture with edges and slopes and some noise: noise alone says little about an image model. */
static void frame_paint(struct frame *f, int number)
{
    for (int y = 0; y < f->f.height; y++)
        for (int x = 0; x < f->f.width; x++)
            for (int c = 0; c < 3; c++) {
                int v = (x * (c + 1) / 4 + y / 2 + number) & 255;
                v = ((x + 3 * number) / 40 + y / 40) % 2 ? v : 255 - v;
                f->f.plane[0][y * f->f.stride[0] + 3 * x + c] = (uint8_t)(v / 2 + 40 + kit_int(0, 15));
            }
}

struct setup {
    const struct vgk_backend *backend;
    struct vgk_device *device;
    struct vg_model *model;
    struct vg_plan *plan;
    struct vg_run *run;
    size_t free_before, free_planned; /* the driver's figures: with the context, and with the run opened */
};

static _Noreturn void give_up(const struct vgk_error *err, int code)
{
    printf("%s: %s\n", code == 77 ? "skipped" : "FAIL", err->text);
    exit(code);
}

static struct setup open_setup(const struct vgk_backend *backend, const char *path, int width, int height)
{
    struct vgk_error err = {{0}};
    struct setup s = {.backend = backend};
    struct vg_plan_request r = {.width = width, .height = height, .overlap_x = -1, .overlap_y = -1,
                                .tile_width = width, .tile_height = height};
    if (backend->open(&(struct vgk_device_options){.threads = 0}, &s.device, &err))
        give_up(&err, 77);
    s.free_before = backend->bytes_free(s.device);
    if (vg_model_load(path, &s.model, &err) || vg_plan_make(s.model, backend, s.device, &r, &s.plan, &err) ||
        vg_run_open(s.plan, &s.run, &err))
        give_up(&err, 1);
    s.free_planned = backend->bytes_free(s.device);
    return s;
}

static void close_setup(struct setup *s)
{
    vg_run_close(&s->run);
    vg_plan_free(&s->plan);
    vg_model_unref(&s->model);
    s->backend->close(&s->device);
}

static struct frame output_of(const struct setup *s, const struct frame *in)
{
    const struct vg_grid *g = vg_plan_info(s->plan)->grid;
    return frame_new(vg_axis_scale(&g->x, in->f.width), vg_axis_scale(&g->y, in->f.height));
}

static void tile(const struct setup *s, const struct frame *in, const struct frame *out)
{
    struct vgk_error err = {{0}};
    const struct vgk_colour colour = {.full_range = true};
    if (vg_run_tile(s->run, 0, 0, &in->f, &colour, &out->f, &err))
        give_up(&err, 1);
}

/* --- the questions --- */

static void describe(void)
{
    struct vgk_error err = {{0}};
    struct vgk_dnn *dnn = NULL;
    char *json = NULL;
    if (vgk_dnn_open(NULL, 0, &dnn, &err))
        give_up(&err, 77);
    if (vgk_dnn_device_json(dnn, &json, &err))
        give_up(&err, 1);
    printf("%s\n", json);
    free(json);
    vgk_dnn_close(&dnn);
}

/* In steps of 255.  Half precision moves values by less than one step; some of them across the edge between two. */
static void compare(const struct vgk_backend *cuda, const char *path, int width, int height)
{
    struct frame in = frame_new(width, height), out[2];
    long differ = 0, far = 0, worst = 0;
    double sum = 0;
    frame_paint(&in, 0);
    for (int i = 0; i < 2; i++) {
        struct setup s = open_setup(i ? cuda : &vgk_cpu, path, width, height);
        out[i] = output_of(&s, &in);
        tile(&s, &in, &out[i]);
        close_setup(&s);
    }
    for (size_t i = 0; i < out[0].bytes; i++) {
        long d = labs((long)out[0].f.plane[0][i] - out[1].f.plane[0][i]);
        differ += d > 0;
        far += d > 2;
        sum += (double)d * d;
        worst = d > worst ? d : worst;
    }
    double n = (double)out[0].bytes, psnr = sum > 0 ? 10 * log10(255.0 * 255 * n / sum) : INFINITY;
    printf("compare: %.2f %% of the values differ from the CPU's, %ld by more than 2 steps, at most by %ld, %.1f dB\n",
           100.0 * (double)differ / n, far, worst, psnr);
    expectf(psnr > 50, "%s: %.1f dB", path, psnr);
}

static void memory(const struct vgk_backend *cuda, const char *path, int width, int height, int frames)
{
    struct setup s = open_setup(cuda, path, width, height);
    struct frame in = frame_new(width, height), out = output_of(&s, &in);
    size_t planned = vg_plan_info(s.plan)->arena_bytes, first = 0, last = 0;
    for (int i = 0; i < frames; i++) {
        frame_paint(&in, i);
        tile(&s, &in, &out);
        last = cuda->bytes_free(s.device);
        first = i ? first : last;
    }
    printf("memory: planned %zu, counted %zu, the driver says %td at opening and %td more with the first frame\n", planned,
           cuda->bytes_now(s.device), (ptrdiff_t)(s.free_before - s.free_planned),
           (ptrdiff_t)(s.free_planned - first));
    expectf(cuda->bytes_now(s.device) == planned, "%zu bytes taken, %zu planned", cuda->bytes_now(s.device), planned);
    expectf(last == first, "%td bytes went between the first frame and the last", (ptrdiff_t)(first - last));
    close_setup(&s);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void measure(const struct vgk_backend *cuda, const char *path, int width, int height, double seconds)
{
    enum { MOST = 2000 };
    static double ms[MOST];
    double start = now(), opened;
    struct setup s = open_setup(cuda, path, width, height);
    struct frame in = frame_new(width, height), out = output_of(&s, &in);
    int n = 0;
    frame_paint(&in, 0);
    tile(&s, &in, &out);
    opened = now() - start;
    for (start = now(); n < MOST && (n < 3 || now() - start < seconds); n++) {
        double t = now();
        tile(&s, &in, &out);
        ms[n] = 1000 * (now() - t);
    }
    qsort(ms, (size_t)n, sizeof *ms, by_time);
    printf("time: median %.3f ms, least %.3f, 95 %% %.3f, %d frames; %.2f s from nothing to the first; %zu bytes\n",
           ms[n / 2], ms[0], ms[n * 19 / 20], n, opened, vg_plan_info(s.plan)->arena_bytes);
    close_setup(&s);
}

int main(int argc, char **argv)
{
    struct vgk_error err = {{0}};
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "describe")) {
        describe();
        return kit_done();
    }
    const struct vgk_backend *cuda = vgk_cuda_load(&err);
    if (!cuda)
        give_up(&err, 77);
    if (argc < 5)
        return 2;
    int width = atoi(argv[3]), height = atoi(argv[4]);
    kit_seed(1);
    if (!strcmp(what, "compare"))
        compare(cuda, argv[2], width, height);
    else if (!strcmp(what, "memory"))
        memory(cuda, argv[2], width, height, argc > 5 ? atoi(argv[5]) : 20);
    else if (!strcmp(what, "time"))
        measure(cuda, argv[2], width, height, argc > 5 ? atof(argv[5]) : 2);
    else
        return 2;
    return kit_done();
}
