/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How fast convolutions are, beside the rate of products and sums that the machine reaches in the same moment.
 *
 *     bench-ops [threads] [milliseconds a shape] [generic|avx2|avx512|best] [begin of the names] [width height]
 *
 * One line a shape: CPU milliseconds a run and thread (the least of all runs: other programs lengthen it least), Gflop/s
 * as if every product of the convolution were made, and that over the peak (more than 1 with Winograd).  With Winograd also
 * over the peak: the products that its blocks make, in the layer's time, and alone, on the panels and the transformed tiles
 * that the kernel has. */
#include "kernels/cpu/conv.h"
#include "kernels/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

long bench_peak_generic(long), bench_peak_avx2(long), bench_peak_avx512(long);

struct shape {
    const char *name;
    int cin, cout, kernel, stride, groups;
    enum vgk_act act;
    bool exact;
};

static const struct shape shapes[] = {
    {"3x3 64->64", 64, 64, 3, 1, 1, VGK_ACT_PRELU},
    {"3x3 32->32", 32, 32, 3, 1, 1, VGK_ACT_RELU},
    {"3x3 48->32", 48, 32, 3, 1, 1, VGK_ACT_RELU},
    {"3x3 32->48", 32, 48, 3, 1, 1, VGK_ACT_RELU},
    {"3x3 64->48", 64, 48, 3, 1, 1, VGK_ACT_NONE},
    {"3x3 48->48 silu", 48, 48, 3, 1, 1, VGK_ACT_SILU},
    {"3x3 16->16", 16, 16, 3, 1, 1, VGK_ACT_RELU},
    {"3x3 8->8", 8, 8, 3, 1, 1, VGK_ACT_RELU},
    {"exact 3x3 8->8", 8, 8, 3, 1, 1, VGK_ACT_RELU, true},
    {"3x3 8->4", 8, 4, 3, 1, 1, VGK_ACT_NONE},
    {"3x3 12->4", 12, 4, 3, 1, 1, VGK_ACT_NONE},
    {"exact 3x3 12->4", 12, 4, 3, 1, 1, VGK_ACT_NONE, true},
    {"3x3 64->3", 64, 3, 3, 1, 1, VGK_ACT_NONE},
    {"exact 3x3 64->64", 64, 64, 3, 1, 1, VGK_ACT_PRELU, true},
    {"exact 3x3 32->32", 32, 32, 3, 1, 1, VGK_ACT_RELU, true},
    {"exact 3x3 16->16", 16, 16, 3, 1, 1, VGK_ACT_RELU, true},
    {"exact 3x3 64->3", 64, 3, 3, 1, 1, VGK_ACT_NONE, true},
    {"3x3 3->64", 3, 64, 3, 1, 1, VGK_ACT_PRELU},
    {"9x9 3->32", 3, 32, 9, 1, 1, VGK_ACT_RELU},
    {"9x9 4->3", 4, 3, 9, 1, 1, VGK_ACT_NONE},
    {"3x3/2 32->64", 32, 64, 3, 2, 1, VGK_ACT_RELU},
    {"1x1 64->64", 64, 64, 1, 1, 1, VGK_ACT_NONE},
    {"3x3 depthwise 64", 64, 64, 3, 1, 64, VGK_ACT_RELU},
    {"3x3 groups 4, 64->64", 64, 64, 3, 1, 4, VGK_ACT_RELU},
};

static struct vgk_device bench_device;

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double peak(enum vgk_isa isa)
{
    double t = seconds(CLOCK_THREAD_CPUTIME_ID);
    long n = 0;
#ifdef __x86_64__
    n = isa == VGK_ISA_AVX512 ? bench_peak_avx512(20000) : isa == VGK_ISA_AVX2 ? bench_peak_avx2(20000) : 0;
#endif
    if (!n)
        n = bench_peak_generic(20000);
    return (double)n * 1e-9 / (seconds(CLOCK_THREAD_CPUTIME_ID) - t);
}

/* The products of the blocks of a unit, without transforms. */
static void products(void *arg, int unit, int thread)
{
    const struct vgk_conv_job *j = arg;
    const struct vgk_conv_plan *p = &j->plan;
    const struct vgk_micro *micro = VGK_BY_ISA(&bench_device, vgk_micro);
    ptrdiff_t row = (ptrdiff_t)p->inputs_row * p->cin, vs = p->blocks_y * row + VGK_WINOGRAD_GAP;
    ptrdiff_t len = (ptrdiff_t)p->blocks_x * p->cin, lda = (ptrdiff_t)p->inputs_apart * p->cin;
    float *v = j->scratch + (size_t)thread * p->scratch_per_thread, *sums = v + VGK_WINOGRAD_POSITIONS * vs;
    const float *weights = j->weights;
    for (int i = 0; i < p->groups * p->panels * VGK_WINOGRAD_POSITIONS; i++) {
        struct vgk_segment s[VGK_WINOGRAD_BLOCKS];
        for (int b = 0; b < p->blocks_y; b++, weights += len * p->nr)
            s[b] = (struct vgk_segment){v + i % VGK_WINOGRAD_POSITIONS * vs + b * row, weights};
        for (int k = 0; k < p->tiles; k += p->mr) {
            micro->fn[p->nv][p->mr](p->blocks_y, s, len, lda, sums, p->nr);
            for (int b = 0; b < p->blocks_y; b++)
                s[b].a += p->mr * lda;
        }
    }
}

static struct vgk_tensor image(int c, int h, int w)
{
    struct vgk_tensor t = vgk_tensor_make(VGK_F32, 4, (int64_t[]){1, c, h, w}, VGK_CHANNELS_LAST);
    size_t n = (size_t)vgk_tensor_count(&t);
    float *p = t.data = aligned_alloc(VGK_ALIGN, vgk_round_up(n * sizeof *p, VGK_ALIGN));
    for (size_t i = 0; p && i < n; i++)
        p[i] = (float)(i * 2654435761u % 1000) / 500 - 1;
    return t;
}

static int bench(const struct shape *s, int h, int w, double budget)
{
    struct vgk_device *dev = &bench_device;
    int threads = vgk_pool_size(dev->pool), pad = s->kernel / 2, oh = (h - 1) / s->stride + 1, ow = (w - 1) / s->stride + 1;
    struct vgk_tensor in[VGK_CONV_INPUTS] = {image(s->cin, h, w)}, out = image(s->cout, oh, ow);
    in[1] = vgk_tensor_make(VGK_F32, 4, (int64_t[]){s->cout, s->cin / s->groups, s->kernel, s->kernel}, VGK_ROW_MAJOR);
    struct vgk_tensor weights = image(1, 1, (int)vgk_tensor_count(&in[1])), shift = image(1, 1, s->cout);
    in[1].data = weights.data;
    in[2] = in[4] = vgk_tensor_make(VGK_F32, 1, (int64_t[]){s->cout}, VGK_ROW_MAJOR);
    in[2].data = in[4].data = shift.data;
    struct vgk_op op = {.kind = VGK_OP_CONV, .n_in = VGK_CONV_INPUTS, .n_out = 1, .in = in, .out = &out,
                        .p.conv = {.spatial = 2, .kernel = {s->kernel, s->kernel}, .stride = {s->stride, s->stride},
                                   .dilation = {1, 1}, .pad_begin = {pad, pad}, .pad_end = {pad, pad},
                                   .groups = s->groups, .act = s->act}};
    struct vgk_need need;
    struct vgk_error err = {{0}};
    dev->exact_products = s->exact;
    if (vgk_cpu_conv.need(dev, &op, &need, &err) != VGK_OK) {
        fprintf(stderr, "%s: %s\n", s->name, err.text);
        return 1;
    }
    void *packed = aligned_alloc(VGK_ALIGN, vgk_round_up(need.packed, VGK_ALIGN));
    void *scratch = aligned_alloc(VGK_ALIGN, vgk_round_up(need.scratch, VGK_ALIGN));
    if (!packed || !scratch || !in[0].data || !out.data)
        return 1;
    vgk_cpu_conv.pack(dev, &op, packed, &err);
    vgk_cpu_conv.run(dev, &op, packed, scratch, &err);
    struct vgk_conv_job job = {.weights = packed};
    vgk_conv_make_plan(dev, &op, &job.plan, &err);
    job.scratch = (float *)scratch + 3 * job.plan.constants;
    const struct vgk_conv_plan *plan = &job.plan;
    bool winograd = plan->method == VGK_CONV_WINOGRAD;
    double best = 1e9, alone = 1e9, most = 0, end = seconds(CLOCK_MONOTONIC) + budget;
    do {
        double p = peak(dev->isa), t[3] = {seconds(CLOCK_PROCESS_CPUTIME_ID)};
        vgk_cpu_conv.run(dev, &op, packed, scratch, &err);
        t[1] = seconds(CLOCK_PROCESS_CPUTIME_ID);
        if (winograd)
            vgk_pool_run(dev->pool, plan->units, products, &job);
        t[2] = seconds(CLOCK_PROCESS_CPUTIME_ID);
        best = (t[1] - t[0]) / threads < best ? (t[1] - t[0]) / threads : best;
        alone = (t[2] - t[1]) / threads < alone ? (t[2] - t[1]) / threads : alone;
        most = p > most ? p : most;
    } while (seconds(CLOCK_MONOTONIC) < end);
    double gflop = 2e-9 * s->kernel * s->kernel * (s->cin / s->groups) * s->cout * oh * ow;
    printf("%-22s %dx%d  %8.3f ms %8.1f GF/s  %5.2f of peak %.0f  ", s->name, w, h, best * 1e3, gflop / best,
           gflop / best / most / threads, most * threads);
    if (winograd) {
        double tile = 2e-9 * VGK_WINOGRAD_POSITIONS * plan->blocks_y * plan->blocks_x * plan->cin * s->cout / threads / most;
        int m = VGK_WINOGRAD_OUT, tiles = ((oh + m - 1) / m) * ((ow + m - 1) / m);
        printf("winograd %.2f, products alone %.2f  ", tiles * tile / best,
               plan->units * plan->tiles * tile / alone);
    }
    printf("scratch %zu packed %zu\n", need.scratch, need.packed);
    fflush(stdout);
    free(in[0].data);
    free(out.data);
    free(weights.data);
    free(shift.data);
    free(packed);
    free(scratch);
    return 0;
}

int main(int argc, char **argv)
{
    struct vgk_device *dev = &bench_device;
    dev->pool = vgk_pool_create(argc > 1 ? atoi(argv[1]) : vgk_threads_available());
    double budget = argc > 2 ? atof(argv[2]) * 1e-3 : 0.2;
    const char *isa = argc > 3 ? argv[3] : "";
    int failed = 0;
    if (!dev->pool)
        return 1;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        dev->isa = VGK_ISA_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        dev->isa = VGK_ISA_AVX512;
    if (!strcmp(isa, "generic") || (!strcmp(isa, "avx2") && dev->isa == VGK_ISA_AVX512))
        dev->isa = !strcmp(isa, "avx2") ? VGK_ISA_AVX2 : VGK_ISA_GENERIC;
#endif
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (argc <= 4 || !strncmp(shapes[i].name, argv[4], strlen(argv[4])))
            failed |= bench(&shapes[i], argc > 6 ? atoi(argv[6]) : 180, argc > 5 ? atoi(argv[5]) : 320, budget);
    vgk_pool_destroy(&dev->pool);
    return failed;
}
