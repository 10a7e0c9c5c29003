/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies between views of one type.  Long runs go by memcpy.  Where runs are short (depth to space, transposes, joined
 * channels) the innermost dimensions become a table of offsets, made once, that is walked for each place of the outer
 * ones: no loop ends after three elements. */
#include "cpu.h"
#include "elements.h"
#include "pointwise.h"

#include <string.h>

enum { TABLE = 256, LONG_RUN = 64 /* bytes */ };

struct job {
    struct vgk_loop loop;
    const struct vgk_tensor *dst, *src;
    size_t size;    /* of an element */
    int split;      /* this dimension is cut in parts of `part`, those behind it are whole in the table */
    int64_t part, inner; /* elements of the dimensions behind split */
    int64_t parts;
    bool dense; /* the table's destinations are one run */
    int64_t to[TABLE], from[TABLE];
};

static bool takes(const struct vgk_op *op)
{
    return op->kind == VGK_OP_COPY && op->in[0].type == op->out[0].type && vgk_type_bits(op->out[0].type) >= 8;
}

static enum vgk_status need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n, struct vgk_error *err)
{
    if (!takes(op))
        return VGK_ERR_UNSUPPORTED;
    *n = (struct vgk_need){.lattice = {1, 1, 1}};
    return VGK_OK;
}

/* Pieces of at most 1024 elements would make many calls of one long run: larger ones here. */
static void copy_runs(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    const struct vgk_loop *l = &j->loop;
    int64_t run = l->dim[l->rank - 1];
    struct vgk_cursor c;
    for (int64_t at = begin; at < end;) {
        int64_t within = at % run, n = run - within < end - at ? run - within : end - at;
        if (at == begin)
            vgk_cursor_seek(&c, l, at / run);
        memcpy(vgk_at(j->dst, c.offset[0] + within), vgk_at(j->src, c.offset[1] + within), (size_t)n * j->size);
        at += n;
        vgk_cursor_next(&c, l);
    }
}

#define TABLE_COPY(T) \
    { \
        T *d = (T *)j->dst->data + to; \
        const T *s = (const T *)j->src->data + from; \
        if (j->dense) \
            for (int64_t i = 0; i < n; i++) \
                d[i] = s[j->from[i]]; \
        else \
            for (int64_t i = 0; i < n; i++) \
                d[j->to[i]] = s[j->from[i]]; \
        break; \
    }

static void copy_table(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    const struct vgk_loop *l = &j->loop;
    for (int64_t k = begin; k < end; k++) {
        int64_t p = k % j->parts, rest = k / j->parts, to = p * j->part * l->stride[0][j->split],
                from = p * j->part * l->stride[1][j->split];
        int64_t n = l->dim[j->split] - p * j->part;
        n = (n < j->part ? n : j->part) * j->inner;
        for (int d = j->split - 1; d >= 0; rest /= l->dim[d--]) {
            to += rest % l->dim[d] * l->stride[0][d];
            from += rest % l->dim[d] * l->stride[1][d];
        }
        switch (j->size) {
        case 1: TABLE_COPY(uint8_t)
        case 2: TABLE_COPY(uint16_t)
        case 4: TABLE_COPY(uint32_t)
        case 8: TABLE_COPY(uint64_t)
        }
    }
}

/* A transpose of large dimensions goes by small squares, which stay in the cache from both sides. */
enum { SQUARE = 16 };

/* The dimension along which the source is contiguous where the last, along which the destination is, is another and
 * both are long; -1 = none. */
static int turned(const struct vgk_loop *l)
{
    int last = l->rank - 1;
    for (int d = 0; d < last; d++)
        if (l->stride[1][d] == 1 && l->stride[0][last] == 1 && l->dim[d] >= SQUARE / 2 && l->dim[last] >= SQUARE / 2)
            return d;
    return -1;
}

#define SQUARE_COPY(T) \
    { \
        T *restrict d = (T *)j->dst->data + to; \
        const T *restrict s = (const T *)j->src->data + from; \
        if (l->stride[0][e] > l->stride[1][last]) \
            for (int64_t a = 0; a < na; a++) \
                for (int64_t b = 0; b < nb; b++) \
                    d[a * l->stride[0][e] + b] = s[a + b * l->stride[1][last]]; \
        else \
            for (int64_t b = 0; b < nb; b++) \
                for (int64_t a = 0; a < na; a++) \
                    d[a * l->stride[0][e] + b] = s[a + b * l->stride[1][last]]; \
        break; \
    }

static void copy_squares(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    const struct vgk_loop *l = &j->loop;
    int last = l->rank - 1, e = j->split;
    int64_t across = (l->dim[last] + SQUARE - 1) / SQUARE;
    for (int64_t k = begin; k < end; k++) {
        int64_t b0 = k % across * SQUARE, a0 = k / across % j->parts * SQUARE, rest = k / across / j->parts;
        int64_t to = a0 * l->stride[0][e] + b0, from = a0 + b0 * l->stride[1][last];
        int64_t na = l->dim[e] - a0 < SQUARE ? l->dim[e] - a0 : SQUARE;
        int64_t nb = l->dim[last] - b0 < SQUARE ? l->dim[last] - b0 : SQUARE;
        for (int d = last - 1; d >= 0; d--)
            if (d != e) {
                to += rest % l->dim[d] * l->stride[0][d];
                from += rest % l->dim[d] * l->stride[1][d];
                rest /= l->dim[d];
            }
        switch (j->size) {
        case 1: SQUARE_COPY(uint8_t)
        case 2: SQUARE_COPY(uint16_t)
        case 4: SQUARE_COPY(uint32_t)
        case 8: SQUARE_COPY(uint64_t)
        }
    }
}

static enum vgk_status compute(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                               struct vgk_error *err)
{
    struct job j = {.dst = op->out, .src = op->in, .size = (size_t)vgk_type_bits(op->out->type) / 8};
    const struct vgk_tensor *t[] = {j.dst, j.src};
    struct vgk_loop *l = &j.loop;
    int64_t count = vgk_tensor_count(j.dst);
    if (!count)
        return VGK_OK;
    vgk_loop_init(l, 2, t);
    int last = l->rank - 1;
    if (l->stride[0][last] == 1 && l->stride[1][last] == 1 &&
        (last == 0 || l->dim[last] * (int64_t)j.size >= LONG_RUN)) {
        vgk_ranges_run(dev, count, 65536, copy_runs, &j);
        return VGK_OK;
    }
    if ((j.split = turned(l)) >= 0) {
        int64_t rest = count / l->dim[last] / l->dim[j.split];
        j.parts = (l->dim[j.split] + SQUARE - 1) / SQUARE;
        vgk_ranges_run(dev, rest * j.parts * ((l->dim[last] + SQUARE - 1) / SQUARE), 64, copy_squares, &j);
        return VGK_OK;
    }
    j.inner = 1;
    for (j.split = last; j.split > 0 && j.inner * l->dim[j.split] <= TABLE / 2; j.split--)
        j.inner *= l->dim[j.split];
    j.part = TABLE / j.inner < l->dim[j.split] ? TABLE / j.inner : l->dim[j.split];
    j.parts = (l->dim[j.split] + j.part - 1) / j.part;
    j.dense = true;
    for (int64_t i = 0; i < j.part * j.inner; i++) {
        int64_t rest = i, to = 0, from = 0;
        for (int d = last; d >= j.split; d--) {
            int64_t k = d > j.split ? rest % l->dim[d] : rest;
            to += k * l->stride[0][d];
            from += k * l->stride[1][d];
            rest /= l->dim[d];
        }
        j.to[i] = to;
        j.from[i] = from;
        j.dense &= to == i;
    }
    vgk_ranges_run(dev, count / (l->dim[j.split] * j.inner) * j.parts, 1 + 16384 / (j.part * j.inner), copy_table, &j);
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_copy = {"copy", need, NULL, compute};
