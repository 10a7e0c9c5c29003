/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cpu.h"
#include "elements.h"

#include <limits.h>
#include <string.h>

static float bf16_to_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static double f16_to_f64(uint16_t h)
{
    int exponent = h >> 10 & 31;
    double m = h & 1023, v;
    if (exponent == 31)
        v = m ? __builtin_nan("") : __builtin_inf();
    else if (exponent)
        v = __builtin_ldexp(1024 + m, exponent - 25);
    else
        v = __builtin_ldexp(m, -24);
    return h >> 15 ? -v : v;
}

/* Drops the `drop` lowest bits of m, to the nearest, ties to even. */
static uint64_t round_bits(uint64_t m, int drop)
{
    if (drop > 63)
        return 0;
    uint64_t half = (uint64_t)1 << (drop - 1), rest = m & (2 * half - 1), r = m >> drop;
    return r + (rest > half || (rest == half && (r & 1)));
}

/* A small float of `bits` fraction bits and exponent bias `bias` from a double, rounded once. */
static uint16_t f64_to_small(double v, int bits, int bias)
{
    uint64_t u;
    memcpy(&u, &v, 8);
    uint16_t sign = (uint16_t)(u >> 63 << 15);
    int exponent = (int)(u >> 52 & 2047);
    uint64_t m = u & (((uint64_t)1 << 52) - 1);
    uint16_t inf = (uint16_t)((2 * bias + 1) << bits);
    if (exponent == 2047)
        return sign | inf | (m ? 1 << (bits - 1) : 0);
    if (!exponent)
        return sign; /* far below the smallest */
    m |= (uint64_t)1 << 52;
    int e = exponent - 1023 + bias, drop = 52 - bits;
    uint64_t r;
    if (e >= 1)
        r = round_bits(m, drop) + ((uint64_t)(e - 1) << bits); /* a carry runs into the exponent, as it should */
    else
        r = round_bits(m, drop + 1 - e);
    return sign | (r >= inf ? inf : (uint16_t)r);
}

int64_t vgk_f64_to_i64(double v)
{
    if (v != v)
        return 0;
    if (v >= 9223372036854775808.0)
        return INT64_MAX;
    if (v <= -9223372036854775808.0)
        return INT64_MIN;
    return (int64_t)v;
}

static uint64_t f64_to_u64(double v)
{
    return v >= 18446744073709551616.0 ? UINT64_MAX : v >= 9223372036854775808.0 ? (uint64_t)v
                                                                               : (uint64_t)vgk_f64_to_i64(v);
}

static int nibble(const uint8_t *p, int64_t i) { return p[i >> 1] >> (i & 1) * 4 & 15; }
static int signed_nibble(const uint8_t *p, int64_t i) { return (nibble(p, i) ^ 8) - 8; }

#define EACH(E) \
    for (int64_t i = 0; i < n; i++) \
        E; \
    break
/* Constants that are mapped from a model's file lie at any byte. */
#define LOAD(T, TYPE, E) \
    case TYPE: { \
        typedef T any_place __attribute__((aligned(1))); \
        const any_place *p = (const any_place *)t->data + offset; \
        EACH(dst[i] = E); \
    }
#define LOADS(NAME, D, FROM_FLOAT) \
    void vgk_load_##NAME(D *dst, const struct vgk_tensor *t, int64_t offset, int64_t stride, int64_t n) \
    { \
        switch (t->type) { \
            LOAD(float, VGK_F32, (D)FROM_FLOAT(p[i * stride])) \
            LOAD(double, VGK_F64, (D)FROM_FLOAT(p[i * stride])) \
            LOAD(uint16_t, VGK_F16, (D)FROM_FLOAT(f16_to_f64(p[i * stride]))) \
            LOAD(uint16_t, VGK_BF16, (D)FROM_FLOAT(bf16_to_f32(p[i * stride]))) \
            LOAD(uint8_t, VGK_BOOL, (D)p[i * stride]) \
            LOAD(uint8_t, VGK_U8, (D)p[i * stride]) \
            LOAD(int8_t, VGK_I8, (D)p[i * stride]) \
            LOAD(uint16_t, VGK_U16, (D)p[i * stride]) \
            LOAD(int16_t, VGK_I16, (D)p[i * stride]) \
            LOAD(uint32_t, VGK_U32, (D)p[i * stride]) \
            LOAD(int32_t, VGK_I32, (D)p[i * stride]) \
            LOAD(uint64_t, VGK_U64, (D)p[i * stride]) \
            LOAD(int64_t, VGK_I64, (D)p[i * stride]) \
        case VGK_U4: EACH(dst[i] = (D)nibble(t->data, offset + i * stride)); \
        case VGK_I4: EACH(dst[i] = (D)signed_nibble(t->data, offset + i * stride)); \
        case VGK_NONE: break; \
        } \
    }
LOADS(f32, float, )
LOADS(f64, double, )
LOADS(i64, int64_t, vgk_f64_to_i64)

#define STORE(T, TYPE, E) \
    case TYPE: { \
        T *p = (T *)t->data + offset; \
        EACH(p[i * stride] = (T)(E)); \
    }
#define STORES(NAME, S, TO_INT, TO_U64) \
    void vgk_store_##NAME(const S *src, const struct vgk_tensor *t, int64_t offset, int64_t stride, int64_t n) \
    { \
        switch (t->type) { \
            STORE(float, VGK_F32, src[i]) \
            STORE(double, VGK_F64, src[i]) \
            STORE(uint16_t, VGK_F16, f64_to_small((double)src[i], 10, 15)) \
            STORE(uint16_t, VGK_BF16, f64_to_small((double)src[i], 7, 127)) \
            STORE(uint8_t, VGK_BOOL, src[i] != 0) \
            STORE(uint8_t, VGK_U8, TO_INT(src[i])) \
            STORE(int8_t, VGK_I8, TO_INT(src[i])) \
            STORE(uint16_t, VGK_U16, TO_INT(src[i])) \
            STORE(int16_t, VGK_I16, TO_INT(src[i])) \
            STORE(uint32_t, VGK_U32, TO_INT(src[i])) \
            STORE(int32_t, VGK_I32, TO_INT(src[i])) \
            STORE(uint64_t, VGK_U64, TO_U64(src[i])) \
            STORE(int64_t, VGK_I64, TO_INT(src[i])) \
        case VGK_U4: \
        case VGK_I4: \
        case VGK_NONE: break; \
        } \
    }
STORES(f32, float, vgk_f64_to_i64, f64_to_u64)
STORES(f64, double, vgk_f64_to_i64, f64_to_u64)
STORES(i64, int64_t, , )

static int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

void vgk_loop_init(struct vgk_loop *loop, int n, const struct vgk_tensor *const *t)
{
    *loop = (struct vgk_loop){.n = n, .chunk = VGK_LOOP_CHUNK};
    int order[VGK_MAX_RANK], rank = 0;
    for (int d = 0; d < t[0]->rank; d++) {
        if (t[0]->dim[d] == 1)
            continue;
        int at = rank++;
        for (; at > 0 && magnitude(t[0]->stride[order[at - 1]]) < magnitude(t[0]->stride[d]); at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    for (int k = 0; k < rank; k++) {
        int d = order[k];
        int64_t size = t[0]->dim[d];
        bool merge = loop->rank > 0;
        for (int i = 0; i < n && merge; i++)
            merge = loop->stride[i][loop->rank - 1] == t[i]->stride[d] * size;
        if (!merge)
            loop->dim[loop->rank++] = 1;
        loop->dim[loop->rank - 1] *= size;
        for (int i = 0; i < n; i++)
            loop->stride[i][loop->rank - 1] = t[i]->stride[d];
    }
    if (!loop->rank) {
        loop->rank = 1;
        loop->dim[0] = 1;
    }
    loop->rows = 1;
    for (int d = 0; d < loop->rank - 1; d++)
        loop->rows *= loop->dim[d];
}

void vgk_cursor_seek(struct vgk_cursor *cursor, const struct vgk_loop *loop, int64_t row)
{
    *cursor = (struct vgk_cursor){{0}};
    for (int d = loop->rank - 2; d >= 0; d--) {
        cursor->index[d] = row % loop->dim[d];
        row /= loop->dim[d];
        for (int i = 0; i < loop->n; i++)
            cursor->offset[i] += cursor->index[d] * loop->stride[i][d];
    }
}

void vgk_cursor_next(struct vgk_cursor *cursor, const struct vgk_loop *loop)
{
    for (int d = loop->rank - 2; d >= 0; d--) {
        bool carry = ++cursor->index[d] == loop->dim[d];
        for (int i = 0; i < loop->n; i++)
            cursor->offset[i] += carry ? -loop->stride[i][d] * (loop->dim[d] - 1) : loop->stride[i][d];
        if (!carry)
            return;
        cursor->index[d] = 0;
    }
}

struct range_job {
    int64_t count, grain;
    void (*fn)(void *arg, int64_t begin, int64_t end, int thread);
    void *arg;
};

static void range_block(void *arg, int block, int thread)
{
    struct range_job *job = arg;
    int64_t begin = block * job->grain, end = begin + job->grain;
    job->fn(job->arg, begin, end < job->count ? end : job->count, thread);
}

void vgk_ranges_run(struct vgk_device *dev, int64_t count, int64_t grain,
                    void (*fn)(void *arg, int64_t begin, int64_t end, int thread), void *arg)
{
    if (count <= 0)
        return;
    grain = grain < 1 ? 1 : grain;
    while ((count - 1) / grain >= INT_MAX)
        grain *= 2;
    int64_t blocks = (count - 1) / grain + 1;
    if (blocks == 1) {
        fn(arg, 0, count, 0);
        return;
    }
    struct range_job job = {count, grain, fn, arg};
    vgk_pool_run(dev->pool, (int)blocks, range_block, &job);
}

struct loop_job {
    const struct vgk_loop *loop;
    int64_t pieces; /* of a row */
    void (*fn)(void *arg, const int64_t *offset, int64_t n);
    void *arg;
};

static void loop_range(void *arg, int64_t begin, int64_t end, int thread)
{
    struct loop_job *job = arg;
    const struct vgk_loop *loop = job->loop;
    int last = loop->rank - 1;
    int64_t size = loop->dim[last], piece = begin % job->pieces;
    struct vgk_cursor cursor;
    vgk_cursor_seek(&cursor, loop, begin / job->pieces);
    for (int64_t k = begin; k < end; k++) {
        int64_t offset[VGK_LOOP_TENSORS], at = piece * loop->chunk, n = size - at;
        for (int i = 0; i < loop->n; i++)
            offset[i] = cursor.offset[i] + at * loop->stride[i][last];
        job->fn(job->arg, offset, n < loop->chunk ? n : loop->chunk);
        if (++piece == job->pieces) {
            piece = 0;
            vgk_cursor_next(&cursor, loop);
        }
    }
}

void vgk_loop_run(struct vgk_device *dev, const struct vgk_loop *loop,
                  void (*fn)(void *arg, const int64_t *offset, int64_t n), void *arg)
{
    int64_t size = loop->dim[loop->rank - 1];
    struct loop_job job = {loop, (size + loop->chunk - 1) / loop->chunk, fn, arg};
    int64_t each = size < loop->chunk ? size : loop->chunk;
    vgk_ranges_run(dev, loop->rows * job.pieces, each ? 16 * loop->chunk / each : 1, loop_range, &job);
}
