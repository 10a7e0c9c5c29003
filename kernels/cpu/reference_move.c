/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Resize, pad, gather: an output element comes from other places of the input. */
#include "reference.h"
#include "resize_taps.h"

#include <inttypes.h>
#include <string.h>

/* The offset of row r: all dimensions but the last, the last but one fastest.  index[] gets the dimensions. */
static void row_index(const struct vgk_tensor *t, int64_t r, int64_t *index)
{
    for (int d = t->rank - 2; d >= 0; d--) {
        index[d] = r % t->dim[d];
        r /= t->dim[d];
    }
}

struct resize {
    const struct vgk_op *op;
    int taps[VGK_MAX_RANK];
    int32_t *index[VGK_MAX_RANK];
    float *weight[VGK_MAX_RANK];
};

bool vgk_ref_resize_scratch(const struct vgk_op *op, size_t *bytes)
{
    const struct vgk_tensor *x = &op->in[0], *y = op->out;
    *bytes = 0;
    for (int d = 0; d < y->rank; d++) {
        size_t n;
        if (x->dim[d] > INT32_MAX ||
            !vgk_mul((size_t)y->dim[d] * sizeof(int32_t) * 2,
                     (size_t)vgk_resize_taps(&op->p.resize, d, x->dim[d], y->dim[d]), &n) ||
            !vgk_add(*bytes, n, bytes))
            return false;
    }
    return true;
}

static double resize_sum(const struct resize *r, const int64_t *o, int d, int64_t offset)
{
    const struct vgk_tensor *x = &r->op->in[0];
    double sum = 0, v;
    if (d == x->rank) {
        vgk_load_f64(&v, x, offset, 0, 1);
        return v;
    }
    for (int t = 0; t < r->taps[d]; t++) {
        int64_t at = o[d] * r->taps[d] + t;
        double w = (double)r->weight[d][at];
        v = resize_sum(r, o, d + 1, offset + r->index[d][at] * x->stride[d]);
        sum = r->taps[d] == 1 ? v : w ? sum + w * v : sum; /* what does not count may be infinite */
    }
    return sum;
}

static void resize_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct resize *r = arg;
    const struct vgk_tensor *x = &r->op->in[0], *y = r->op->out;
    int last = y->rank - 1;
    bool nearest = r->op->p.resize.mode == VGK_NEAREST;
    size_t size = (size_t)vgk_type_bits(y->type) / 8;
    for (int64_t row = begin; row < end; row++) {
        int64_t o[VGK_MAX_RANK], at = 0, from = 0;
        row_index(y, row, o);
        for (int d = 0; d < last; d++) {
            at += o[d] * y->stride[d];
            from += nearest ? r->index[d][o[d]] * x->stride[d] : 0;
        }
        for (o[last] = 0; o[last] < y->dim[last]; o[last]++) {
            int64_t to = at + o[last] * y->stride[last];
            if (nearest) {
                memcpy(vgk_at(y, to), vgk_at(x, from + r->index[last][o[last]] * x->stride[last]), size);
            } else {
                double v = resize_sum(r, o, 0, 0);
                if (vgk_type_class(y->type) == VGK_CLASS_I64)
                    v = __builtin_nearbyint(v);
                vgk_store_f64(&v, y, to, 0, 1);
            }
        }
    }
}

void vgk_ref_resize(struct vgk_device *dev, const struct vgk_op *op, void *scratch)
{
    const struct vgk_tensor *x = &op->in[0], *y = op->out;
    struct resize r = {.op = op};
    int32_t *p = scratch;
    if (!vgk_tensor_count(y))
        return;
    if (!y->rank) {
        memcpy(y->data, x->data, (size_t)vgk_type_bits(y->type) / 8);
        return;
    }
    for (int d = 0; d < y->rank; d++) {
        r.taps[d] = vgk_resize_taps(&op->p.resize, d, x->dim[d], y->dim[d]);
        r.index[d] = p;
        r.weight[d] = (float *)(p + y->dim[d] * r.taps[d]);
        p += 2 * y->dim[d] * r.taps[d];
        vgk_resize_fill(&op->p.resize, d, x->dim[d], y->dim[d], r.index[d], r.weight[d]);
    }
    vgk_ranges_run(dev, vgk_tensor_count(y) / y->dim[y->rank - 1], 16, resize_rows, &r);
}

static int64_t modulo(int64_t a, int64_t b) { return (a % b + b) % b; }

int64_t vgk_pad_source(enum vgk_pad_mode mode, int64_t size, int64_t begin, int64_t end, int64_t i)
{
    int64_t low = begin < 0 ? -begin : 0, n = size - low + (end < 0 ? end : 0); /* what a crop leaves */
    i -= begin > 0 ? begin : 0;
    if (i >= 0 && i < n)
        return low + i;
    if (n <= 0)
        return -1;
    switch (mode) {
    case VGK_PAD_CONSTANT: return -1;
    case VGK_PAD_EDGE: return low + (i < 0 ? 0 : n - 1);
    case VGK_PAD_WRAP: return low + modulo(i, n);
    case VGK_PAD_REFLECT:
        if (n == 1)
            return low;
        i = modulo(i, 2 * (n - 1));
        return low + (i < n ? i : 2 * (n - 1) - i);
    }
    return -1;
}

struct pad {
    const struct vgk_op *op;
    int64_t *source[VGK_MAX_RANK]; /* of each output index: elements from the input's start, -1 = none */
    char constant[8];
};

bool vgk_ref_pad_scratch(const struct vgk_op *op, size_t *bytes)
{
    *bytes = 0;
    for (int d = 0; d < op->out->rank; d++) {
        size_t n;
        if (!vgk_mul((size_t)op->out->dim[d], sizeof(int64_t), &n) || !vgk_add(*bytes, n, bytes))
            return false;
    }
    return true;
}

static void pad_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct pad *p = arg;
    const struct vgk_tensor *x = &p->op->in[0], *y = p->op->out;
    int last = y->rank - 1;
    size_t size = (size_t)vgk_type_bits(y->type) / 8;
    for (int64_t row = begin; row < end; row++) {
        int64_t o[VGK_MAX_RANK], at = 0, from = 0;
        bool beyond = false;
        row_index(y, row, o);
        for (int d = 0; d < last; d++) {
            int64_t i = p->source[d][o[d]];
            at += o[d] * y->stride[d];
            from += i * x->stride[d];
            beyond |= i < 0;
        }
        for (int64_t k = 0; k < y->dim[last]; k++) {
            int64_t i = p->source[last][k];
            memcpy(vgk_at(y, at + k * y->stride[last]),
                   beyond || i < 0 ? p->constant : vgk_at(x, from + i * x->stride[last]), size);
        }
    }
}

void vgk_ref_pad(struct vgk_device *dev, const struct vgk_op *op, void *scratch)
{
    const struct vgk_tensor *x = &op->in[0], *y = op->out, *constant = vgk_input(op, 1);
    struct pad p = {.op = op};
    int64_t *table = scratch;
    if (!vgk_tensor_count(y))
        return;
    if (!y->rank) {
        memcpy(y->data, x->data, (size_t)vgk_type_bits(y->type) / 8);
        return;
    }
    if (constant) {
        struct vgk_tensor one = {.type = y->type, .data = p.constant};
        vgk_ref_copy(dev, constant, &one);
    }
    for (int d = 0; d < y->rank; d++) {
        p.source[d] = table;
        for (int64_t i = 0; i < y->dim[d]; i++)
            *table++ = vgk_pad_source(op->p.pad.mode, x->dim[d], op->p.pad.begin[d], op->p.pad.end[d], i);
    }
    vgk_ranges_run(dev, vgk_tensor_count(y) / y->dim[y->rank - 1], 64, pad_rows, &p);
}

/* in[0] is seen as [before..., axis, behind...], out as [before..., indices..., behind...]: one copy an index. */
enum vgk_status vgk_ref_gather(struct vgk_device *dev, const struct vgk_op *op, struct vgk_error *err)
{
    const struct vgk_tensor *x = &op->in[0], *indices = &op->in[1], *y = op->out;
    int axis = op->p.gather.axis;
    struct vgk_tensor from = vgk_tensor_slice(x, axis, 0, 1, 1), to = from;
    to.type = y->type;
    for (int d = 0; d < x->rank; d++)
        to.stride[d] = d < axis ? y->stride[d] : d > axis ? y->stride[d - 1 + indices->rank] : 0;
    if (!vgk_tensor_count(y))
        return VGK_OK;
    int64_t n = vgk_tensor_count(indices);
    for (int64_t k = 0; k < n; k++) {
        int64_t at = 0, place = 0, rest = k, i;
        for (int d = indices->rank - 1; d >= 0; rest /= indices->dim[d--]) {
            at += rest % indices->dim[d] * indices->stride[d];
            place += rest % indices->dim[d] * y->stride[axis + d];
        }
        vgk_load_i64(&i, indices, at, 0, 1);
        if (i < -x->dim[axis] || i >= x->dim[axis])
            return vgk_fail(err, VGK_ERR_INVALID,
                            "gather: expected indices from %" PRId64 " to %" PRId64 ", got %" PRId64
                            "; the model or a value given to it is wrong",
                            -x->dim[axis], x->dim[axis] - 1, i);
        from.data = vgk_at(x, (i < 0 ? i + x->dim[axis] : i) * x->stride[axis]);
        to.data = vgk_at(y, place);
        vgk_ref_copy(dev, &from, &to);
    }
    return VGK_OK;
}
