/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Resize and pad of images that lie channels-last: row by row. */
#include "resample.h"
#include "reference.h"
#include "resize_taps.h"

#include <string.h>

static const struct vgk_resample_rows *rows_of(const struct vgk_device *dev) { return VGK_BY_ISA(dev, vgk_resample_rows); }

static bool image(const struct vgk_tensor *t) { return t->rank == 4 && (t->dim[1] == 1 || t->stride[1] == 1); }
static bool dense_rows(const struct vgk_tensor *t) { return t->dim[3] == 1 || t->stride[3] == t->dim[1]; }

/* Scratch: the tables of both axes, then a row a thread. */
struct resize {
    const struct vgk_resample_rows *rows;
    const struct vgk_tensor *x, *y;
    bool nearest;
    int taps[2]; /* along height, width */
    int32_t *index[2];
    float *weight[2];
    float *row;
    size_t row_floats;
};

static bool resize_takes(const struct vgk_op *op)
{
    const struct vgk_tensor *x = &op->in[0], *y = op->out;
    if (op->kind != VGK_OP_RESIZE || x->type != VGK_F32 || y->type != VGK_F32 || !image(x) || !image(y) ||
        x->dim[0] != y->dim[0] || x->dim[1] != y->dim[1] || !vgk_tensor_count(y))
        return false;
    for (int d = 2; d < 4; d++)
        if (x->dim[d] > INT32_MAX / 4)
            return false;
    return op->p.resize.mode == VGK_NEAREST || dense_rows(x);
}

static bool resize_layout(struct vgk_device *dev, const struct vgk_op *op, struct resize *r, size_t *bytes)
{
    size_t n;
    *r = (struct resize){.rows = rows_of(dev), .x = op->in, .y = op->out, .nearest = op->p.resize.mode == VGK_NEAREST};
    *bytes = 0;
    for (int a = 0; a < 2; a++) {
        r->taps[a] = vgk_resize_taps(&op->p.resize, 2 + a, r->x->dim[2 + a], r->y->dim[2 + a]);
        if (!vgk_mul((size_t)r->y->dim[2 + a] * 2 * sizeof(float), (size_t)r->taps[a], &n) ||
            !vgk_add(*bytes, n, bytes))
            return false;
    }
    *bytes = vgk_round_up(*bytes, VGK_ALIGN);
    r->row_floats = vgk_round_up((size_t)(r->x->dim[3] * r->x->dim[1]) + VGK_RESAMPLE_SLACK, VGK_ALIGN / sizeof(float));
    return r->nearest || (vgk_mul(r->row_floats * sizeof(float), (size_t)vgk_pool_size(dev->pool), &n) &&
                          vgk_add(*bytes, n, bytes));
}

static enum vgk_status resize_need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n,
                                   struct vgk_error *err)
{
    struct resize r;
    *n = (struct vgk_need){.lattice = {1, 1, 1}};
    return resize_takes(op) && resize_layout(dev, op, &r, &n->scratch) ? VGK_OK : VGK_ERR_UNSUPPORTED;
}

static const float *pixels(const struct vgk_tensor *t, int64_t n, int64_t y)
{
    return (const float *)t->data + n * t->stride[0] + y * t->stride[2];
}

static void resize_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct resize *r = arg;
    const struct vgk_tensor *x = r->x, *y = r->y;
    int64_t channels = x->dim[1], wide = x->dim[3] * channels;
    const float *same = NULL, *done = NULL;
    float *row = r->nearest ? NULL : r->row + (size_t)thread * r->row_floats;
    for (int64_t k = begin; k < end; k++) {
        int64_t n = k / y->dim[2], o = k % y->dim[2];
        const int32_t *index = r->index[0] + o * r->taps[0];
        float *out = (float *)y->data + n * y->stride[0] + o * y->stride[2];
        const float *from = pixels(x, n, index[0]);
        if (r->nearest) {
            /* The rows of an integer factor repeat. */
            if (from == same && dense_rows(y))
                memcpy(out, done, (size_t)(y->dim[3] * channels) * sizeof(float));
            else
                r->rows->nearest(out, y->stride[3], from, x->stride[3], channels, r->index[1], y->dim[3]);
            same = from;
            done = out;
            continue;
        }
        /* Longer filters (antialiased reductions) go down in parts of 16 rows: never seen in models that matter here,
         * so the plain way, through the sum so far, is good enough. */
        enum { PART = 16 };
        const float *rows[PART + 1];
        float weight[PART + 1];
        for (int t = 0; t < r->taps[0];) {
            int m = 0;
            if (t) {
                rows[m] = row;
                weight[m++] = 1;
            }
            for (; m <= PART - 1 && t < r->taps[0]; m++, t++) {
                rows[m] = pixels(x, n, index[t]);
                weight[m] = r->weight[0][o * r->taps[0] + t];
            }
            r->rows->down(row, rows, weight, m, wide);
        }
        r->rows->across(out, y->stride[3], row, channels, r->index[1], r->weight[1], r->taps[1], y->dim[3]);
    }
}

static enum vgk_status resize_run(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                                  struct vgk_error *err)
{
    struct resize r;
    size_t bytes;
    int32_t *p = scratch;
    resize_layout(dev, op, &r, &bytes);
    for (int a = 0; a < 2; a++) {
        int64_t n = r.y->dim[2 + a] * r.taps[a];
        r.index[a] = p;
        r.weight[a] = (float *)(p + n);
        p += 2 * n;
        vgk_resize_fill(&op->p.resize, 2 + a, r.x->dim[2 + a], r.y->dim[2 + a], r.index[a], r.weight[a]);
    }
    if (!r.nearest) {
        size_t tables = vgk_round_up((size_t)((char *)p - (char *)scratch), VGK_ALIGN);
        r.row = (float *)((char *)scratch + tables);
        memset(r.row, 0, r.row_floats * sizeof(float) * (size_t)vgk_pool_size(dev->pool)); /* the slack is read */
    }
    vgk_ranges_run(dev, r.y->dim[0] * r.y->dim[2], 8, resize_rows, &r);
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_resample = {"resample", resize_need, NULL, resize_run};

/* ---- pad ---- */

struct pad {
    const struct vgk_pad *p;
    const struct vgk_tensor *x, *y;
    size_t pixel; /* bytes */
    char constant[8];
    bool blank;   /* the constant is all zero bits */
};

static bool pad_takes(const struct vgk_op *op)
{
    const struct vgk_tensor *x = &op->in[0], *y = op->out;
    if (op->kind != VGK_OP_PAD || x->type != y->type || vgk_type_bits(y->type) < 8 || !image(x) || !image(y) ||
        !dense_rows(x) || !dense_rows(y) || !vgk_tensor_count(y))
        return false;
    for (int d = 0; d < 2; d++)
        if (op->p.pad.begin[d] || op->p.pad.end[d])
            return false;
    return true;
}

static enum vgk_status pad_need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n,
                                struct vgk_error *err)
{
    *n = (struct vgk_need){.lattice = {1, 1, 1}};
    return pad_takes(op) ? VGK_OK : VGK_ERR_UNSUPPORTED;
}

static void fill_constant(const struct pad *p, char *d, size_t bytes)
{
    size_t size = (size_t)vgk_type_bits(p->y->type) / 8;
    if (p->blank)
        memset(d, 0, bytes);
    else
        for (size_t i = 0; i < bytes; i += size)
            memcpy(d + i, p->constant, size);
}

static void pad_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct pad *p = arg;
    const struct vgk_tensor *x = p->x, *y = p->y;
    const struct vgk_pad *pad = p->p;
    for (int64_t k = begin; k < end; k++) {
        int64_t n = k / y->dim[2], o = k % y->dim[2], wide = y->dim[3];
        char *d = vgk_at(y, n * y->stride[0] + o * y->stride[2]);
        int64_t from = vgk_pad_source(pad->mode, x->dim[2], pad->begin[2], pad->end[2], o);
        if (from < 0) {
            fill_constant(p, d, p->pixel * (size_t)wide);
            continue;
        }
        const char *s = vgk_at(x, n * x->stride[0] + from * x->stride[2]);
        for (int64_t i = 0; i < wide;) {
            int64_t at = vgk_pad_source(pad->mode, x->dim[3], pad->begin[3], pad->end[3], i), run = 1;
            bool inner = i >= pad->begin[3] && i < wide - pad->end[3];
            if (inner) /* the middle, in one piece */
                run = wide - (pad->end[3] > 0 ? pad->end[3] : 0) - i;
            if (at < 0)
                fill_constant(p, d + (size_t)i * p->pixel, p->pixel);
            else
                memcpy(d + (size_t)i * p->pixel, s + (size_t)at * p->pixel, p->pixel * (size_t)run);
            i += run;
        }
    }
}

static enum vgk_status pad_run(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                               struct vgk_error *err)
{
    static const char zero[8];
    const struct vgk_tensor *constant = vgk_input(op, 1);
    struct pad p = {.p = &op->p.pad, .x = op->in, .y = op->out};
    p.pixel = (size_t)op->out->dim[1] * (size_t)vgk_type_bits(op->out->type) / 8;
    if (constant) {
        struct vgk_tensor one = {.type = op->out->type, .data = p.constant};
        vgk_ref_copy(dev, constant, &one);
    }
    p.blank = !memcmp(p.constant, zero, sizeof zero);
    vgk_ranges_run(dev, op->out->dim[0] * op->out->dim[2], 16, pad_rows, &p);
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_pad = {"pad", pad_need, NULL, pad_run};
