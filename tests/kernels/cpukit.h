/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For tests of the CPU backend: devices, tensors with guards around them, one-call ops. */
#ifndef CPUKIT_H
#define CPUKIT_H

#include "kernels/cpu/cpu.h"
#include "kit.h"

/* isa: "generic", "avx2", "avx512", "avx512bf16", "amx"; NULL when the machine has not got it. */
static inline struct vgk_device *cpukit_open(const char *isa, int threads)
{
    struct vgk_device *dev = NULL;
    setenv("VIDGEN_CPU", isa, 1);
    vgk_cpu.open(&(struct vgk_device_options){.threads = threads}, &dev, NULL);
    return dev;
}

/* A dense tensor with memory of its own (from malloc, so that a sanitizer sees what lies outside). */
static inline struct vgk_tensor cpukit_tensor(enum vgk_type type, enum vgk_order order, int rank, const int64_t *dim)
{
    struct vgk_tensor t = vgk_tensor_make(type, rank, dim, order);
    size_t bytes = 0;
    vgk_tensor_bytes(&t, &bytes);
    t.data = calloc(1, bytes ? bytes : 1);
    return t;
}
#define DIMS(...) (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__}
#define f32_rows(...) cpukit_tensor(VGK_F32, VGK_ROW_MAJOR, DIMS(__VA_ARGS__))
#define f32_last(...) cpukit_tensor(VGK_F32, VGK_CHANNELS_LAST, DIMS(__VA_ARGS__))

/* Values in logical (row-major) order, whatever the strides: i-th element. */
static inline int64_t cpukit_offset(const struct vgk_tensor *t, int64_t i)
{
    int64_t at = 0;
    for (int d = t->rank - 1; d >= 0; i /= t->dim[d--])
        at += i % t->dim[d] * t->stride[d];
    return at;
}
static inline float cpukit_get(const struct vgk_tensor *t, int64_t i)
{
    return ((float *)t->data)[cpukit_offset(t, i)];
}
static inline void cpukit_set(const struct vgk_tensor *t, int64_t i, float v)
{
    ((float *)t->data)[cpukit_offset(t, i)] = v;
}
static inline void cpukit_random(const struct vgk_tensor *t, double low, double high)
{
    for (int64_t i = 0; i < vgk_tensor_count(t); i++)
        cpukit_set(t, i, (float)kit_real(low, high));
}
#define fill(t, ...) cpukit_fill(t, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / sizeof(float))
static inline void cpukit_fill(const struct vgk_tensor *t, const float *v, size_t n)
{
    expect(n == (size_t)vgk_tensor_count(t));
    for (size_t i = 0; i < n; i++)
        cpukit_set(t, (int64_t)i, v[i]);
}
#define expect_values(t, tolerance, ...) \
    cpukit_expect(__LINE__, t, tolerance, (const double[]){__VA_ARGS__}, \
                  sizeof((const double[]){__VA_ARGS__}) / sizeof(double))
static inline void cpukit_expect(int line, const struct vgk_tensor *t, double tolerance, const double *v, size_t n)
{
    expectf(n == (size_t)vgk_tensor_count(t), "line %d", line);
    for (size_t i = 0; i < n; i++) {
        double g = (double)cpukit_get(t, (int64_t)i);
        expectf(g == v[i] || fabs(g - v[i]) <= tolerance || (g != g && v[i] != v[i]),
                "line %d: element %zu is %.9g, expected %.9g", line, i, g, v[i]);
    }
}

/* need, pack and run by one family; false when it declines. */
static inline bool cpukit_family(struct vgk_device *dev, const struct vgk_cpu_family *f, const struct vgk_op *op)
{
    struct vgk_need need;
    struct vgk_error err = {{0}};
    if (f->need(dev, op, &need, &err) != VGK_OK)
        return false;
    char *packed = vgk_cpu.alloc(dev, need.packed), *scratch = vgk_cpu.alloc(dev, need.scratch);
    if (f->pack)
        expect(f->pack(dev, op, packed, &err) == VGK_OK);
    enum vgk_status status = (f->run)(dev, op, packed, scratch, &err);
    expectf(status == VGK_OK, "%s: %s", f->name, err.text);
    vgk_cpu.free(dev, packed);
    vgk_cpu.free(dev, scratch);
    return true;
}

/* The same by whatever family the backend chooses. */
static inline enum vgk_status cpukit_run(struct vgk_device *dev, const struct vgk_op *op, struct vgk_error *err)
{
    struct vgk_need need;
    enum vgk_status status = vgk_cpu.need(dev, op, &need, err);
    if (status != VGK_OK)
        return status;
    char *packed = vgk_cpu.alloc(dev, need.packed), *scratch = vgk_cpu.alloc(dev, need.scratch);
    status = vgk_cpu.pack(dev, op, packed, err);
    if (status == VGK_OK)
        status = (vgk_cpu.run)(dev, op, packed, scratch, err);
    vgk_cpu.free(dev, packed);
    vgk_cpu.free(dev, scratch);
    return status;
}

#endif
