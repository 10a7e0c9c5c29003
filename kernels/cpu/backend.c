/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "attention.h"
#include "bf16.h"
#include "cpu.h"
#include "frame_vector.h"
#include "norm.h"
#include "pointwise.h"
#include "resample.h"
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef VGK_HAVE_AMX
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Asked in this order.  Which one takes an op depends on shapes, strides, types and parameters only, so need, pack and
 * run agree without having to remember. */
static const struct vgk_cpu_family *const families[] = {
    &vgk_cpu_conv,
    &vgk_cpu_conv_transpose,
    &vgk_cpu_copy,
    &vgk_cpu_pointwise,
    &vgk_cpu_chain,
    &vgk_cpu_resample,
    &vgk_cpu_pad,
    &vgk_cpu_moments,
    &vgk_cpu_merge,
    &vgk_cpu_normalise,
    &vgk_cpu_reduce,
    &vgk_cpu_norm_last,
    &vgk_cpu_softmax,
    &vgk_cpu_matmul,
    &vgk_cpu_sample,
    &vgk_cpu_attention,
    &vgk_cpu_reference,
};

static const struct {
    const char *option, *name;
} sets[VGK_ISA_COUNT] = {
    [VGK_ISA_GENERIC] = {"generic", "plain"},
    [VGK_ISA_AVX2] = {"avx2", "AVX2"},
    [VGK_ISA_AVX512] = {"avx512", "AVX-512"},
    [VGK_ISA_AVX512_BF16] = {"avx512bf16", "AVX-512 with BF16"},
    [VGK_ISA_AMX] = {"amx", "AVX-512 with AMX"},
};

#if defined(VGK_HAVE_AMX) && !defined(VGK_WIDE_BY_AVX2)
/* The tiles' registers are large, so Linux wants to be asked for them, once for the process. */
static bool tiles_allowed(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA);
}
#endif

static bool has(enum vgk_isa isa)
{
#ifdef __x86_64__
    switch (isa) {
    case VGK_ISA_AVX2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#ifdef VGK_WIDE_BY_AVX2 /* tests: what is named avx512 is built of pairs of AVX2 vectors, products of bf16 of plain C */
    case VGK_ISA_AVX512: case VGK_ISA_AVX512_BF16: case VGK_ISA_AMX: return has(VGK_ISA_AVX2);
#else
#ifdef VGK_HAVE_BF16
    case VGK_ISA_AVX512_BF16: return __builtin_cpu_supports("avx512bf16") && has(VGK_ISA_AVX512);
#endif
#ifdef VGK_HAVE_AMX
    case VGK_ISA_AMX: return __builtin_cpu_supports("amx-bf16") && has(VGK_ISA_AVX512_BF16) && tiles_allowed();
#endif
    case VGK_ISA_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && has(VGK_ISA_AVX2);
#endif
    default: break;
    }
#endif
    return isa == VGK_ISA_GENERIC;
}

static enum vgk_status choose_isa(enum vgk_isa *isa, struct vgk_error *err)
{
    const char *wish = getenv("VIDGEN_CPU");
    for (int i = VGK_ISA_COUNT - 1; i >= 0; i--)
        if (has((enum vgk_isa)i) && (!wish || !*wish || !strcmp(wish, sets[i].option))) {
            *isa = (enum vgk_isa)i;
            return VGK_OK;
        }
    return vgk_fail(
        err, VGK_ERR_INVALID,
        "VIDGEN_CPU: expected an instruction set that this machine has (generic%s%s%s%s), got '%s'; unset it to "
        "take the best",
        has(VGK_ISA_AVX2) ? ", avx2" : "", has(VGK_ISA_AVX512) ? ", avx512" : "",
        has(VGK_ISA_AVX512_BF16) ? ", avx512bf16" : "", has(VGK_ISA_AMX) ? ", amx" : "", wish);
}

static void cpu_close(struct vgk_device **dev)
{
    if (!*dev)
        return;
    vgk_pool_destroy(&(*dev)->pool);
    free(*dev);
    *dev = NULL;
}

static enum vgk_status cpu_open(const struct vgk_device_options *options, struct vgk_device **dev,
                                struct vgk_error *err)
{
    int threads = options->threads ? options->threads : vgk_threads_available();
    *dev = NULL;
    if (threads < 0)
        return vgk_fail(err, VGK_ERR_INVALID, "threads: expected 0 (all) or more, got %d", options->threads);
    struct vgk_device *d = calloc(1, sizeof *d);
    if (!d)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for a device");
    enum vgk_status status = choose_isa(&d->isa, err);
    if (status == VGK_OK && !(d->pool = vgk_pool_create(threads)))
        status = vgk_fail(err, VGK_ERR_NOMEM, "the system gives no %d threads; ask for fewer", threads);
    if (status != VGK_OK) {
        cpu_close(&d);
        return status;
    }
    d->heap.limit = options->max_bytes;
    d->exact_products = options->exact_products;
    snprintf(d->description, sizeof d->description, "cpu (%s, %d thread%s)", sets[d->isa].name, threads,
             threads == 1 ? "" : "s");
    *dev = d;
    return VGK_OK;
}

static const char *cpu_describe(const struct vgk_device *dev) { return dev->description; }

static void *cpu_alloc(struct vgk_device *dev, size_t bytes) { return vgk_heap_alloc(&dev->heap, bytes); }
static void cpu_free(struct vgk_device *dev, void *p) { vgk_heap_free(&dev->heap, p); }
static size_t cpu_bytes_now(const struct vgk_device *dev) { return atomic_load(&dev->heap.now); }
static size_t cpu_bytes_peak(const struct vgk_device *dev) { return atomic_load(&dev->heap.peak); }

static enum vgk_status cpu_transfer(struct vgk_device *dev, const void *from, void *to, size_t bytes,
                                    struct vgk_error *err)
{
    memcpy(to, from, bytes);
    return VGK_OK;
}

static size_t cpu_frame_scratch(const struct vgk_device *dev, int width, int height) { return 0; }

static enum vgk_status choose(struct vgk_device *dev, const struct vgk_op *op, const struct vgk_cpu_family **family,
                              struct vgk_need *need, struct vgk_error *err)
{
    enum vgk_status status = VGK_ERR_UNSUPPORTED;
    for (size_t i = 0; i < sizeof families / sizeof *families && status == VGK_ERR_UNSUPPORTED; i++) {
        *family = families[i];
        status = families[i]->need(dev, op, need, err);
    }
    return status;
}

static enum vgk_status cpu_need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *need,
                                struct vgk_error *err)
{
    const struct vgk_cpu_family *family;
    return choose(dev, op, &family, need, err);
}

static enum vgk_status cpu_pack(struct vgk_device *dev, const struct vgk_op *op, void *packed, struct vgk_error *err)
{
    const struct vgk_cpu_family *family;
    struct vgk_need need;
    enum vgk_status status = choose(dev, op, &family, &need, err);
    return status == VGK_OK && family->pack ? family->pack(dev, op, packed, err) : status;
}

static enum vgk_status cpu_run(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                               struct vgk_error *err)
{
    const struct vgk_cpu_family *family;
    struct vgk_need need;
    enum vgk_status status = choose(dev, op, &family, &need, err);
    return status == VGK_OK ? family->run(dev, op, packed, scratch, err) : status;
}

const struct vgk_backend vgk_cpu = {
    .name = "cpu",
    .chains = true,
    .cache = 16 << 20, /* a common last level: plans are the same on all machines */
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .bytes_now = cpu_bytes_now,
    .bytes_peak = cpu_bytes_peak,
    .bytes_free = vgk_cpu_bytes_free,
    .upload = cpu_transfer,
    .download = cpu_transfer,
    .host_alloc = vgk_cpu_host_alloc,
    .host_free = vgk_cpu_host_free,
    .move = vgk_cpu_move,
    .need = cpu_need,
    .pack = cpu_pack,
    .run = cpu_run,
    .bf16 = vgk_cpu_bf16_check,
    .frame_scratch = cpu_frame_scratch,
    .frame_read = vgk_cpu_frame_read,
    .frame_write = vgk_cpu_frame_write,
};
