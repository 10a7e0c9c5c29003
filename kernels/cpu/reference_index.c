/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Take and scatter: elements at places that a tensor of indices names. */
#include "reference.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

/* A walk over the elements o of the output (take) or of the updates (scatter), in rows along the last dimension. */
struct walk {
    const struct vgk_op *op;
    const struct vgk_tensor *indexed, *indices; /* what the indices point into; they themselves */
    const struct vgk_tensor *o;
    int64_t step;     /* in `indexed`, from an element of a row to the next, besides the indices */
    bool same;        /* a row has one set of indices */
    atomic_llong bad; /* an index that lies outside, INT64_MIN = none */
    atomic_int size;  /* of the dimension that it is outside of */
};

static bool start(struct walk *w, const struct vgk_op *op, const struct vgk_tensor *indexed, const struct vgk_tensor *o)
{
    int last = o->rank - 1;
    *w = (struct walk){.op = op, .indexed = indexed, .indices = &op->in[1], .o = o};
    atomic_init(&w->bad, INT64_MIN);
    atomic_init(&w->size, 0);
    w->step = last >= 0 && op->p.index.walk[last] >= 0 ? indexed->stride[op->p.index.walk[last]] : 0;
    w->same = last < 0 || w->indices->stride[last] == 0 || o->dim[last] == 1;
    return vgk_tensor_count(o) > 0;
}

/* Offsets of row `row`'s first element in o and indexed (without the indices), and of its indices. */
static void seek(const struct walk *w, int64_t row, int64_t *to, int64_t *from, int64_t *index)
{
    *to = *from = *index = 0;
    for (int d = w->o->rank - 2; d >= 0; d--) {
        int64_t i = row % w->o->dim[d];
        row /= w->o->dim[d];
        *to += i * w->o->stride[d];
        *index += i * w->indices->stride[d];
        if (w->op->p.index.walk[d] >= 0)
            *from += i * w->indexed->stride[w->op->p.index.walk[d]];
    }
}

/* What the indices at this offset add; false when one lies outside. */
static bool look_up(struct walk *w, int64_t index, int64_t *offset)
{
    const struct vgk_index *p = &w->op->p.index;
    *offset = 0;
    for (int k = 0; k < p->n; k++) {
        int64_t i, size = w->indexed->dim[p->axis[k]];
        vgk_load_i64(&i, w->indices, index + k * w->indices->stride[w->o->rank], 0, 1);
        if (i < -size || i >= size) {
            atomic_store(&w->size, (int)(size < INT32_MAX ? size : INT32_MAX));
            atomic_store(&w->bad, i);
            return false;
        }
        *offset += (i < 0 ? i + size : i) * w->indexed->stride[p->axis[k]];
    }
    return true;
}

static enum vgk_status outcome(struct walk *w, struct vgk_error *err)
{
    int64_t bad = atomic_load(&w->bad), size = atomic_load(&w->size);
    if (bad == INT64_MIN)
        return VGK_OK;
    return vgk_fail(err, VGK_ERR_INVALID, "%s: expected indices from %" PRId64 " to %" PRId64 ", got %" PRId64
                    "; the model or a value given to it is wrong", vgk_kind_name(w->op->kind), -size, size - 1, bad);
}

static int64_t rows(const struct vgk_tensor *o)
{
    return o->rank ? vgk_tensor_count(o) / o->dim[o->rank - 1] : 1;
}

static void take_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    struct walk *w = arg;
    const struct vgk_tensor *x = w->indexed, *y = w->o;
    int last = y->rank - 1;
    size_t size = (size_t)vgk_type_bits(y->type) / 8;
    int64_t n = last < 0 ? 1 : y->dim[last], y_step = last < 0 ? 0 : y->stride[last];
    for (int64_t r = begin; r < end; r++) {
        int64_t to, from, index, offset = 0;
        seek(w, r, &to, &from, &index);
        for (int64_t i = 0; i < n; i++) {
            if ((i == 0 || !w->same) && !look_up(w, index + (last < 0 ? 0 : i * w->indices->stride[last]), &offset))
                return;
            if (w->same && y_step == 1 && w->step == 1) {
                memcpy(vgk_at(y, to), vgk_at(x, from + offset), (size_t)n * size);
                break;
            }
            memcpy(vgk_at(y, to + i * y_step), vgk_at(x, from + i * w->step + offset), size);
        }
    }
}

enum vgk_status vgk_ref_take(struct vgk_device *dev, const struct vgk_op *op, struct vgk_error *err)
{
    struct walk w;
    if (!start(&w, op, &op->in[0], op->out))
        return VGK_OK;
    int64_t n = op->out->rank ? op->out->dim[op->out->rank - 1] : 1;
    vgk_ranges_run(dev, rows(op->out), 1 + 4096 / n, take_rows, &w);
    return outcome(&w, err);
}

static void put(enum vgk_scatter reduce, const struct vgk_tensor *y, int64_t to, const struct vgk_tensor *u, int64_t from)
{
    if (reduce == VGK_SCATTER_SET) {
        memcpy(vgk_at(y, to), vgk_at(u, from), (size_t)vgk_type_bits(y->type) / 8);
    } else if (vgk_type_class(y->type) == VGK_CLASS_I64) {
        int64_t a, b;
        vgk_load_i64(&a, y, to, 0, 1);
        vgk_load_i64(&b, u, from, 0, 1);
        a = reduce == VGK_SCATTER_ADD   ? (int64_t)((uint64_t)a + (uint64_t)b)
            : reduce == VGK_SCATTER_MUL ? (int64_t)((uint64_t)a * (uint64_t)b)
            : reduce == VGK_SCATTER_MIN ? (a < b ? a : b)
                                        : (a > b ? a : b);
        vgk_store_i64(&a, y, to, 0, 1);
    } else {
        double a, b;
        vgk_load_f64(&a, y, to, 0, 1);
        vgk_load_f64(&b, u, from, 0, 1);
        a = reduce == VGK_SCATTER_ADD   ? a + b
            : reduce == VGK_SCATTER_MUL ? a * b
            : reduce == VGK_SCATTER_MIN ? (b < a || b != b ? b : a)
                                        : (b > a || b != b ? b : a);
        vgk_store_f64(&a, y, to, 0, 1);
    }
}

/* One thread: where indices repeat, the order of the updates decides. */
enum vgk_status vgk_ref_scatter(struct vgk_device *dev, const struct vgk_op *op, struct vgk_error *err)
{
    struct walk w;
    const struct vgk_tensor *y = op->out, *u = &op->in[2];
    int last = u->rank - 1;
    vgk_ref_copy(dev, &op->in[0], y);
    if (!start(&w, op, y, u))
        return VGK_OK;
    int64_t n = last < 0 ? 1 : u->dim[last], u_step = last < 0 ? 0 : u->stride[last];
    for (int64_t r = 0; r < rows(u); r++) {
        int64_t from, to, index, offset = 0;
        seek(&w, r, &from, &to, &index);
        for (int64_t i = 0; i < n; i++) {
            if ((i == 0 || !w.same) && !look_up(&w, index + (last < 0 ? 0 : i * w.indices->stride[last]), &offset))
                return outcome(&w, err);
            put(op->p.index.reduce, y, to + i * w.step + offset, u, from + i * u_step);
        }
    }
    return VGK_OK;
}
