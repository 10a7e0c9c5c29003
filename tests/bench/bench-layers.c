/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a model's time goes: milliseconds of each op of a frame, by a backend table that times vgk_cpu's calls.
 *
 *     bench-layers MODEL.onnx WIDTH HEIGHT [THREADS [ROUNDS]]
 *
 * The whole frame is one tile.  Each line: median and least milliseconds over the rounds, the least CPU milliseconds a
 * thread (which other programs lengthen least) and from them Gflop/s of products as written for convolutions and matrix
 * products, GB/s of bytes read and written for the rest; what the op is, its shapes. */
#include "kernels/cpu/threads.h"
#include "model/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_CALLS = 4096, MOST_ROUNDS = 64 };

static struct call {
    double ms[MOST_ROUNDS], cpu, work;
    bool products;
    char text[200];
} calls[MOST_CALLS];
/* Two rounds before the first that counts: one in which what depends on parameters only is computed, and one that
 * describes the ops of every other. */
static int n_calls, at_call, at_round = -2, threads = 1;

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static double bytes_of(const struct vgk_tensor *t)
{
    return t->type == VGK_NONE ? 0 : (double)vgk_tensor_count(t) * vgk_type_bits(t->type) / 8;
}

struct stopwatch {
    struct call *call;
    double wall, cpu;
};

static struct stopwatch start(void)
{
    n_calls = at_call + 1;
    struct call *c = &calls[at_call < MOST_CALLS - 1 ? at_call++ : at_call];
    return (struct stopwatch){c, now(CLOCK_MONOTONIC), now(CLOCK_PROCESS_CPUTIME_ID)};
}

static void stop(const struct stopwatch *w)
{
    double cpu = (now(CLOCK_PROCESS_CPUTIME_ID) - w->cpu) / threads;
    if (at_round < 0)
        return;
    w->call->ms[at_round] = now(CLOCK_MONOTONIC) - w->wall;
    if (!at_round || cpu < w->call->cpu)
        w->call->cpu = cpu;
}

static void describe(struct call *c, const struct vgk_op *op)
{
    char x[96], y[96], more[64] = "";
    const struct vgk_tensor *w = &op->in[1], *out = &op->out[0];
    if (op->kind == VGK_OP_CONV) {
        const struct vgk_conv *p = &op->p.conv;
        snprintf(more, sizeof more, " %dx%d/%d g%d act %d%s", p->kernel[0], p->kernel[1], p->stride[0], p->groups,
                 (int)p->act, op->n_in > 5 && op->in[5].type != VGK_NONE ? " +res" : "");
        c->work = 2.0 * (double)vgk_tensor_count(out) * (double)vgk_tensor_count(w) / (double)w->dim[0];
        c->products = true;
    } else if (op->kind == VGK_OP_MATMUL) {
        c->work = 2.0 * (double)vgk_tensor_count(out) * (double)op->in[0].dim[op->in[0].rank - 1];
        c->products = true;
    } else {
        c->products = false;
        c->work = bytes_of(out);
        for (int i = 0; i < op->n_in; i++)
            c->work += bytes_of(&op->in[i]);
        if (op->kind == VGK_OP_UNARY)
            snprintf(more, sizeof more, " fn %d", (int)op->p.unary.fn);
        if (op->kind == VGK_OP_BINARY)
            snprintf(more, sizeof more, " fn %d", (int)op->p.binary.fn);
    }
    snprintf(c->text, sizeof c->text, "%s%s %s -> %s", vgk_kind_name(op->kind), more,
             vgk_tensor_describe(&op->in[0], x, sizeof x), vgk_tensor_describe(out, y, sizeof y));
}

static void describe_frame(struct call *c, const char *way, const struct vgk_frame *f, const struct vgk_tensor *t)
{
    snprintf(c->text, sizeof c->text, "frame %s %d x %d", way, f->width, f->height);
    c->work = bytes_of(t) + 3.0 * f->width * f->height;
    c->products = false;
}

static enum vgk_status timed_run(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                                 struct vgk_error *err)
{
    struct stopwatch w = start();
    enum vgk_status s = vgk_cpu.run(dev, op, packed, scratch, err);
    stop(&w);
    if (at_round < 0)
        describe(w.call, op);
    return s;
}

static enum vgk_status timed_read(struct vgk_device *dev, const struct vgk_frame *src, const struct vgk_matrix *m,
                                  const struct vgk_tensor *dst, void *scratch, struct vgk_error *err)
{
    struct stopwatch w = start();
    enum vgk_status s = vgk_cpu.frame_read(dev, src, m, dst, scratch, err);
    stop(&w);
    describe_frame(w.call, "in", src, dst);
    return s;
}

static enum vgk_status timed_write(struct vgk_device *dev, const struct vgk_tensor *src, const struct vgk_matrix *m,
                                   const float low[3], const float high[3], const struct vgk_frame *alpha,
                                   const struct vgk_frame *dst, void *scratch, int *nonfinite, struct vgk_error *err)
{
    struct stopwatch w = start();
    enum vgk_status s = vgk_cpu.frame_write(dev, src, m, low, high, alpha, dst, scratch, nonfinite, err);
    stop(&w);
    describe_frame(w.call, "out", dst, src);
    return s;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(int rounds)
{
    double all = 0, least = 0, cpu = 0;
    for (int i = 0; i < n_calls; i++) {
        qsort(calls[i].ms, (size_t)rounds, sizeof(double), compare);
        all += calls[i].ms[rounds / 2];
        least += calls[i].ms[0];
        cpu += calls[i].cpu;
    }
    for (int i = 0; i < n_calls; i++) {
        const struct call *c = &calls[i];
        printf("%8.3f %8.3f %8.3f %5.1f %%  %7.1f %s  %s\n", c->ms[rounds / 2], c->ms[0], c->cpu, 100 * c->cpu / cpu,
               c->work * 1e-6 / c->cpu, c->products ? "GF/s" : "GB/s", c->text);
    }
    printf("%8.3f %8.3f %8.3f sums\n", all, least, cpu);
}

static struct vgk_frame rgb_frame(int width, int height)
{
    struct vgk_frame f = {.layout = VGK_FRAME_PACKED, .width = width, .height = height, .step = 3, .offset = {0, 1, 2},
                          .alpha = -1, .stride = {3 * (ptrdiff_t)width},
                          .plane = {calloc((size_t)width * (size_t)height, 3)}};
    for (size_t i = 0; f.plane[0] && i < 3 * (size_t)width * (size_t)height; i++)
        f.plane[0][i] = (uint8_t)(i * 2654435761u >> 13);
    return f;
}

int main(int argc, char **argv)
{
    if (argc < 4 || atoi(argv[2]) < 1 || atoi(argv[3]) < 1) {
        fprintf(stderr, "usage: bench-layers MODEL.onnx WIDTH HEIGHT [THREADS [ROUNDS]]\n");
        return 2;
    }
    struct vgk_backend timed = vgk_cpu;
    timed.run = timed_run;
    timed.frame_read = timed_read;
    timed.frame_write = timed_write;
    struct vgk_device_options options = {.threads = argc > 4 ? atoi(argv[4]) : 0};
    struct vg_plan_request request = {.overlap_x = -1, .overlap_y = -1, .width = atoi(argv[2]), .height = atoi(argv[3])};
    request.tile_width = request.width;
    request.tile_height = request.height;
    int rounds = argc > 5 ? atoi(argv[5]) : 7;
    rounds = rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : rounds;

    struct vgk_error err = {{0}};
    struct vg_model *model = NULL;
    struct vgk_device *device = NULL;
    struct vg_plan *plan = NULL;
    struct vg_run *run = NULL;
    struct vgk_frame in = rgb_frame(request.width, request.height), out = {0};
    enum vgk_status s = vg_model_load(argv[1], &model, &err);
    if (!s)
        s = timed.open(&options, &device, &err);
    threads = options.threads ? options.threads : vgk_threads_available();
    if (!s)
        s = vg_plan_make(model, &timed, device, &request, &plan, &err);
    if (!s)
        s = vg_run_open(plan, &run, &err);
    if (!s) {
        const struct vg_plan_info *info = vg_plan_info(plan);
        const struct vgk_colour colour = {.full_range = true};
        out = rgb_frame(vg_axis_scale(&info->grid->x, request.width), vg_axis_scale(&info->grid->y, request.height));
        if (!in.plane[0] || !out.plane[0])
            s = vgk_fail(&err, VGK_ERR_NOMEM, "no memory for the frames");
        struct vgk_frame window[VG_MAX_WINDOW], emitted[VG_MAX_WINDOW];
        for (int i = 0; i < VG_MAX_WINDOW; i++) { /* the same picture, however many the model takes and gives */
            window[i] = in;
            emitted[i] = out;
        }
        for (; at_round < rounds && !s; at_round++) {
            at_call = 0;
            s = vg_run_tile(run, 0, 0, window, &colour, emitted, &err);
            vg_run_next(run);
        }
        if (!s)
            report(rounds);
    }
    if (s)
        fprintf(stderr, "%s\n", err.text);
    vg_run_close(&run);
    vg_plan_free(&plan);
    vgk_cpu.close(&device);
    vg_model_unref(&model);
    free(in.plane[0]);
    free(out.plane[0]);
    return s ? 1 : 0;
}
