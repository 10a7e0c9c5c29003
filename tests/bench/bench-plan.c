/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How good the planner's choice is: every way to run a model within a budget, measured.
 *
 *     bench-plan MODEL.onnx WIDTH HEIGHT MIB [ROUNDS [THREADS]]
 *
 * The plan's own choice first, then whole frames, bands, and grids of tiles that give the same result and fit, but for
 * those of more than twice the choice's work by the planner's reckoning.  Rounds go over all ways in turn; ways that took
 * half as much again as the best one in the first are not run any more.  Times are of the process's CPUs, which other
 * programs lengthen less than the clock's: the median, and the least.  The last line is the choice's time over that of the
 * way with the least median, and which that is. */
#include <time.h>

#include "kit.h"
#include "nets.h"

enum { MOST = 160, MOST_ROUNDS = 64 };

static struct way {
    struct vg_plan *plan;
    struct vg_run *run;
    double ms[MOST_ROUNDS];
    int rounds;
} ways[MOST];
static int n;
static double choice_work;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const struct way *w) { return w->ms[w->rounds / 2]; } /* sorted */

static void add(struct vg_model *m, struct vgk_device *dev, struct vg_plan_request r, size_t budget)
{
    struct vgk_error err = {{0}};
    struct way w = {.plan = NULL};
    r.overlap_x = r.overlap_y = -1;
    if (n == MOST || vg_plan_make(m, &vgk_cpu, dev, &r, &w.plan, &err))
        return;
    const struct vg_plan_info *i = vg_plan_info(w.plan);
    bool same = false;
    for (int k = 0; k < n; k++) {
        const struct vg_plan_info *o = vg_plan_info(ways[k].plan);
        same |= o->arena_bytes == i->arena_bytes && o->bands == i->bands && o->grid->x.n == i->grid->x.n &&
                o->grid->y.n == i->grid->y.n && o->n_spilled == i->n_spilled;
    }
    double work = w.plan->program->work * i->grid->x.n * i->grid->y.n;
    if (!n)
        choice_work = work;
    if (same || !i->exact || i->arena_bytes > budget || work > 2 * choice_work || vg_run_open(w.plan, &w.run, &err))
        vg_plan_free(&w.plan);
    else
        ways[n++] = w;
}

int main(int argc, char **argv)
{
    struct vgk_error err = {{0}};
    struct vg_model *m = NULL;
    struct vgk_device *dev = NULL;
    if (argc < 5) {
        fprintf(stderr, "bench-plan MODEL.onnx WIDTH HEIGHT MIB [ROUNDS [THREADS]]\n");
        return 2;
    }
    int width = atoi(argv[2]), height = atoi(argv[3]), rounds = argc > 5 ? atoi(argv[5]) : 5;
    rounds = rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : rounds;
    size_t budget = (size_t)(atof(argv[4]) * (1 << 20));
    if (vg_model_load(argv[1], &m, &err) ||
        vgk_cpu.open(&(struct vgk_device_options){.threads = argc > 6 ? atoi(argv[6]) : 0}, &dev, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    struct vg_plan_request r = {.width = width, .height = height, .max_bytes = budget};
    add(m, dev, r, budget);
    if (!n) {
        fprintf(stderr, "the planner finds no way\n");
        return 1;
    }
    static const int bands[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
    for (size_t i = 0; i < sizeof bands / sizeof *bands; i++) {
        r.bands = bands[i];
        add(m, dev, r, budget);
    }
    r.bands = 0;
    for (int ny = 1; ny <= 8; ny++)
        for (int nx = 1; nx <= 8; nx++) {
            r.tile_width = (width + nx - 1) / nx;
            r.tile_height = (height + ny - 1) / ny;
            if (nx * ny > 1)
                add(m, dev, r, budget);
        }
    struct nets_picture in = nets_picture(VGK_FRAME_I420, width, height, true);
    const struct vg_summary *s = vg_model_summary(m);
    struct nets_picture out = nets_picture(VGK_FRAME_I420, width * s->scale_num / s->scale_den,
                                           height * s->scale_num / s->scale_den, false);
    double first = 1e30; /* the best of the first round */
    for (int round = -1; round < rounds; round++)
        for (int i = 0; i < n; i++) {
            if (round > 0 && i && ways[i].ms[0] > 1.5 * first)
                continue;
            double start = now();
            if (nets_frame(ways[i].run, vg_plan_info(ways[i].plan)->grid, &in, &out, &err)) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
            }
            if (round < 0)
                continue;
            ways[i].ms[ways[i].rounds++] = now() - start;
            if (!round && ways[i].ms[0] < first)
                first = ways[i].ms[0];
        }
    for (int i = 0; i < n; i++)
        qsort(ways[i].ms, (size_t)ways[i].rounds, sizeof *ways[i].ms, compare);
    int best = 0;
    for (int i = 0; i < n; i++) {
        const struct vg_plan_info *p = vg_plan_info(ways[i].plan);
        const struct vg_program *l = ways[i].plan->program;
        int tiles = p->grid->x.n * p->grid->y.n;
        printf("%c %dx%d tiles of %dx%d, %d bands%s%s: %.1f MiB, CPU %.2f ms, least %.2f, %.3g products, %.2f G/s\n",
               i ? ' ' : '*',
               p->grid->x.n, p->grid->y.n, p->grid->x.tile, p->grid->y.tile, p->bands, p->direct ? ", direct" : "",
               p->host_bytes ? ", host memory" : "", (double)p->arena_bytes / (1 << 20), median(&ways[i]), ways[i].ms[0],
               l->work * tiles, l->work * tiles / median(&ways[i]) / 1e6);
        if (ways[i].rounds == rounds && median(&ways[i]) < median(&ways[best]))
            best = i;
    }
    printf("%s at %dx%d in %.1f MiB: the choice takes %.3f of the best's time (least: %.3f), %d ways: %d\n", s->name,
           width, height, (double)budget / (1 << 20), median(&ways[0]) / median(&ways[best]), ways[0].ms[0] / ways[best].ms[0],
           n, best);
    for (int i = 0; i < n; i++) {
        vg_run_close(&ways[i].run);
        vg_plan_free(&ways[i].plan);
    }
    free(in.data);
    free(out.data);
    vg_model_unref(&m);
    vgk_cpu.close(&dev);
    return 0;
}
