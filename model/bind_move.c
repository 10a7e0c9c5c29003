/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operators that move or rename elements: views where strides allow it, else one copy. */
#include "bind_ops.h"

#include <inttypes.h>
#include <string.h>

static enum vgk_status bind_identity(struct binder *b)
{
    binder_set(b, 0, binder_in(b, 0));
    return VGK_OK;
}

/* Inference: the input, and a mask that drops nothing. */
static enum vgk_status bind_dropout(struct binder *b)
{
    const struct vgk_tensor t = binder_value(b, 0)->t;
    double training = 0;
    bool known = b->opset < 12 || binder_in(b, 2) < 0 || binder_scalar(b, binder_in(b, 2), &training);
    if (!known || training != 0 || (b->opset < 7 && !vg_node_int(b->node, "is_test", 0)))
        return fail(b, VGK_ERR_UNSUPPORTED, "in training mode; export the model in evaluation mode (model.eval())");
    binder_set(b, 0, binder_in(b, 0));
    if (b->node->n_out < 2 || b->node->out[1] < 0)
        return VGK_OK;
    /* The mask was of the input's type until opset 10.  One stored element, repeated. */
    int mask = vg_net_constant(b->net, binder_name(b, 1), b->opset < 10 ? t.type : VGK_BOOL, 0, NULL);
    if (mask < 0)
        return fail(b, VGK_ERR_NOMEM, "no memory for the graph");
    struct vgk_tensor *m = &b->net->values[mask].t;
    bool yes = true;
    struct vgk_tensor from = {.type = VGK_BOOL, .data = &yes}, to = *m;
    enum vgk_status s = vgk_cpu.run(b->cpu, &(struct vgk_op){.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &from,
                                                             .out = &to}, NULL, NULL, b->err);
    m->rank = t.rank;
    for (int i = 0; i < t.rank; i++) {
        m->dim[i] = t.dim[i];
        m->stride[i] = 0;
    }
    binder_set(b, 1, mask);
    return s;
}

static enum vgk_status copy(struct binder *b, const struct vg_operand *in, const struct vg_operand *out)
{
    return binder_emit(b, &(struct vgk_op){.kind = VGK_OP_COPY}, in, 1, out);
}

/* A factor of a row-major shape: n positions, `right` elements apart. */
struct factor {
    int64_t right, n;
};

static struct factor axis_factor(const struct vg_net_value *v, int a)
{
    struct factor f = {1, 1};
    if (v->axis[a] < 0)
        return f;
    f.n = v->fold[a].size ? v->fold[a].size : v->t.dim[v->axis[a]];
    f.right = v->fold[a].size ? v->fold[a].inner : 1;
    for (int d = v->axis[a] + 1; d < v->t.rank; d++)
        f.right *= v->t.dim[d];
    return f;
}

/* Where one of the frame's axes is after v has got other dims: the dimension (-1 = lost), and how:
 * - it is the dimension, or a factor of it (fold);
 * - it is cut in two, [size / b, b]: the outer part is the axis from now on, one of its positions being b before;
 * - k elements that are not the frame's join it from the right: k positions for each. */
static int move_axis(const struct vg_net_value *v, int a, int rank, const int64_t *dim, struct vg_net_value *to,
                     struct vg_reach *reach)
{
    struct factor f = axis_factor(v, a), other = axis_factor(v, !a);
    int64_t right = 1;
    if (v->axis[a] < 0 || f.n <= 1)
        return -1;
    for (int i = rank - 1; i >= 0 && right; right *= dim[i--]) { /* 0: an empty tensor */
        int64_t end = right * dim[i], edge = f.right * f.n;
        if (dim[i] <= 1)
            continue;
        if (f.right % right == 0 && end % edge == 0) {
            int64_t k = f.right / right;
            bool joined = other.n > 1 && other.right >= right && other.right < f.right;
            to->fold[a].size = to->fold[a].inner = 0;
            if (k > 1 && end == edge && !joined)
                *reach = (struct vg_reach){1, k, 0, 0};
            else if (k > 1 || end != edge)
                to->fold[a].size = f.n, to->fold[a].inner = k;
            return i;
        }
        if (end == edge && right % f.right == 0) {
            int64_t b = right / f.right;
            *reach = (struct vg_reach){b, 1, 0, b - 1};
            to->fold[a].size = to->fold[a].inner = 0;
            return i;
        }
    }
    return -1;
}

static enum vgk_status reshape(struct binder *b, int v, int rank, const int64_t *dim)
{
    struct vg_operand o = vg_net_operand(b->net, v);
    struct vgk_tensor t;
    if (!vgk_tensor_reshape(&o.t, rank, dim, &t)) {
        enum vgk_status s = binder_dense(b, &v, VGK_ROW_MAJOR);
        if (s)
            return s;
        o = vg_net_operand(b->net, v);
        if (!vgk_tensor_reshape(&o.t, rank, dim, &t))
            return fail(b, VGK_ERR_INVALID, "the sizes do not add up");
    }
    int axis[VG_AXES];
    struct vg_net_value to = b->net->values[v];
    for (int a = 0; a < VG_AXES; a++)
        axis[a] = move_axis(&b->net->values[v], a, rank, dim, &to, &o.reach[a]);
    o.t = t;
    int y = binder_view(b, 0, &o, axis);
    binder_set(b, 0, y);
    if (y < 0)
        return VGK_ERR_NOMEM;
    memcpy(b->net->values[y].fold, to.fold, sizeof to.fold);
    return VGK_OK;
}

static enum vgk_status bind_reshape(struct binder *b)
{
    int64_t want[VGK_MAX_RANK];
    int n, free_dim = -1;
    const struct vgk_tensor t = binder_value(b, 0)->t;
    enum vgk_status s = binder_axes(b, "shape", 1, want, VGK_MAX_RANK, &n);
    if (s)
        return s;
    if (n < 0)
        return fail(b, VGK_ERR_INVALID, "the shape is missing");
    int64_t known = 1, count = vgk_tensor_count(&t);
    bool allow_zero = vg_node_int(b->node, "allowzero", 0);
    for (int i = 0; i < n; i++) {
        if (want[i] == 0 && !allow_zero) {
            if (i >= t.rank)
                return fail(b, VGK_ERR_INVALID, "a 0 in the shape at %d has no dimension to copy", i);
            want[i] = t.dim[i];
        }
        if (want[i] == -1 && free_dim < 0)
            free_dim = i;
        else if (want[i] < 0 || __builtin_mul_overflow(known, want[i], &known))
            return fail(b, VGK_ERR_INVALID, "a size of %" PRId64 " in the shape", want[i]);
    }
    if (free_dim >= 0) {
        if (!known || count % known)
            return fail(b, VGK_ERR_INVALID, "%" PRId64 " elements do not divide by %" PRId64, count, known);
        want[free_dim] = count / known;
        known *= want[free_dim];
    }
    if (known != count)
        return fail(b, VGK_ERR_INVALID, "%" PRId64 " elements into a shape of %" PRId64
                    "; the file may be made for another frame size", count, known);
    return reshape(b, binder_in(b, 0), n, want);
}

static enum vgk_status bind_flatten(struct binder *b)
{
    const struct vgk_tensor t = binder_value(b, 0)->t;
    int64_t axis = vg_node_int(b->node, "axis", 1), dim[2] = {1, 1};
    if (axis < -t.rank || axis > t.rank)
        return fail(b, VGK_ERR_INVALID, "axis %" PRId64 " of a tensor of rank %d", axis, t.rank);
    axis += axis < 0 ? t.rank : 0;
    for (int i = 0; i < t.rank; i++)
        dim[i >= axis] *= t.dim[i];
    return reshape(b, binder_in(b, 0), 2, dim);
}

/* Squeeze and Unsqueeze: a view, and where the frame's axes go is known exactly. */
static enum vgk_status bind_squeeze(struct binder *b)
{
    bool add = binder_parameter(b);
    int64_t axes[VGK_MAX_RANK];
    int n, x = binder_in(b, 0), axis[VG_AXES], r = 0;
    struct vg_operand o = vg_net_operand(b->net, x);
    const struct vgk_tensor t = o.t;
    unsigned mask = 0;
    enum vgk_status s = binder_axes(b, "axes", 1, axes, VGK_MAX_RANK, &n);
    if (s)
        return s;
    int rank = add ? t.rank + (n > 0 ? n : 0) : t.rank;
    if (rank > VGK_MAX_RANK || (add && n < 0))
        return fail(b, VGK_ERR_INVALID, "to rank %d, at most %d", rank, VGK_MAX_RANK);
    for (int i = 0; i < n; i++) {
        int a;
        if ((s = binder_axis(b, axes[i], rank, &a)))
            return s;
        mask |= 1u << a;
    }
    memcpy(axis, b->net->values[x].axis, sizeof axis);
    int to[VGK_MAX_RANK];
    if (add) {
        struct vgk_tensor y = {.type = t.type, .rank = rank, .data = t.data};
        for (int i = 0; i < rank; i++)
            if (mask >> i & 1) {
                y.dim[i] = y.stride[i] = 1;
            } else if (r < t.rank) {
                to[r] = i;
                y.dim[i] = t.dim[r];
                y.stride[i] = t.stride[r++];
            }
        if (r != t.rank)
            return fail(b, VGK_ERR_INVALID, "an axis is given twice");
        o.t = y;
    } else {
        struct vgk_tensor y = {.type = t.type, .data = t.data};
        for (int i = 0; i < t.rank; i++) {
            to[i] = -1;
            if (n < 0 ? t.dim[i] == 1 : mask >> i & 1) {
                if (t.dim[i] != 1)
                    return fail(b, VGK_ERR_INVALID, "dimension %d is %" PRId64 ", not 1", i, t.dim[i]);
                continue;
            }
            to[i] = y.rank;
            y.dim[y.rank] = t.dim[i];
            y.stride[y.rank++] = t.stride[i];
        }
        o.t = y;
    }
    for (int a = 0; a < VG_AXES; a++)
        axis[a] = axis[a] < 0 ? -1 : to[axis[a]];
    int y = binder_view(b, 0, &o, axis);
    binder_set(b, 0, y);
    return y < 0 ? VGK_ERR_NOMEM : VGK_OK;
}

static enum vgk_status bind_transpose(struct binder *b)
{
    int x = binder_in(b, 0), perm[VGK_MAX_RANK], axis[VG_AXES] = {-1, -1};
    struct vg_operand o = vg_net_operand(b->net, x);
    const struct vg_attribute *a = vg_node_attribute(b->node, "perm");
    unsigned seen = 0;
    if (a && (a->type != VG_ATTR_INTS || a->n != (size_t)o.t.rank))
        return fail(b, VGK_ERR_INVALID, "perm must have %d entries", o.t.rank);
    for (int i = 0; i < o.t.rank; i++) {
        int64_t p = a ? a->ints[i] : o.t.rank - 1 - i;
        p += p < 0 ? o.t.rank : 0;
        if (p < 0 || p >= o.t.rank || seen >> p & 1)
            return fail(b, VGK_ERR_INVALID, "perm is no permutation");
        seen |= 1u << p;
        perm[i] = (int)p;
        for (int k = 0; k < VG_AXES; k++)
            if (b->net->values[x].axis[k] == p)
                axis[k] = i;
    }
    o.t = vgk_tensor_permute(&o.t, perm);
    int y = binder_view(b, 0, &o, axis);
    binder_set(b, 0, y);
    return y < 0 ? VGK_ERR_NOMEM : binder_permute_weights(b, y, perm);
}

/* Takes a part along one dimension, and notes the shift when it is one of the frame's. */
static void take(struct binder *b, struct vg_operand *o, int dim, int64_t begin, int64_t count, int64_t step)
{
    const struct vg_net_value *v = &b->net->values[o->value];
    for (int a = 0; a < VG_AXES; a++)
        if (v->axis[a] == dim && (begin || step != 1 || count != o->t.dim[dim])) {
            if (step < 0 || v->fold[a].size)
                binder_global(b, step < 0 ? "mirrors the frame" : "cuts a dimension into which rows are folded");
            else
                o->reach[a] = (struct vg_reach){step, 1, begin, begin};
        }
    vg_operand_slice(o, dim, begin, count, step);
}

static enum vgk_status bind_slice(struct binder *b)
{
    int64_t begin[VGK_MAX_RANK], end[VGK_MAX_RANK], axes[VGK_MAX_RANK], step[VGK_MAX_RANK];
    int n, n_end, n_axes, n_step;
    struct vg_operand o = vg_net_operand(b->net, binder_in(b, 0));
    enum vgk_status s;
    if ((s = binder_axes(b, "starts", 1, begin, VGK_MAX_RANK, &n)) ||
        (s = binder_axes(b, "ends", 2, end, VGK_MAX_RANK, &n_end)) ||
        (s = binder_axes(b, "axes", 3, axes, VGK_MAX_RANK, &n_axes)) ||
        (s = binder_ints(b, 4, step, VGK_MAX_RANK, &n_step)))
        return s;
    if (n < 0 || n_end != n || (n_axes >= 0 && n_axes != n) || (n_step >= 0 && n_step != n) || n > o.t.rank)
        return fail(b, VGK_ERR_INVALID, "starts, ends, axes and steps differ in length");
    for (int i = 0; i < n; i++) {
        int d;
        int64_t st = n_step < 0 ? 1 : step[i];
        if ((s = binder_axis(b, n_axes < 0 ? i : axes[i], o.t.rank, &d)))
            return s;
        int64_t size = o.t.dim[d], lo = begin[i], hi = end[i];
        if (!st)
            return fail(b, VGK_ERR_INVALID, "a step of 0");
        /* Clamp as the standard says; the differences below cannot overflow after this. */
        lo = lo < 0 ? (lo < -size ? -1 : lo + size) : lo;
        hi = hi < 0 ? (hi < -size ? -1 : hi + size) : hi;
        if (st > 0) {
            lo = lo < 0 ? 0 : lo > size ? size : lo;
            hi = hi < 0 ? 0 : hi > size ? size : hi;
        } else {
            lo = lo < 0 ? (begin[i] < -size ? -1 : 0) : lo > size - 1 ? size - 1 : lo;
            hi = hi > size - 1 ? size - 1 : hi;
        }
        if (st > size)
            st = size ? size : 1;
        if (st < -size)
            st = size ? -size : -1;
        int64_t count = st > 0 ? (hi - lo + st - 1) / st : (lo - hi - st - 1) / -st;
        take(b, &o, d, lo, count > 0 ? count : 0, st);
    }
    int axis[VG_AXES];
    memcpy(axis, b->net->values[o.value].axis, sizeof axis);
    int y = binder_view(b, 0, &o, axis);
    binder_set(b, 0, y);
    return y < 0 ? VGK_ERR_NOMEM : VGK_OK;
}

static enum vgk_status bind_split(struct binder *b)
{
    int x = binder_in(b, 0), d, n, outs = b->node->n_out;
    struct vg_operand whole = vg_net_operand(b->net, x);
    int64_t sizes[256], at = 0;
    enum vgk_status s = binder_axis(b, vg_node_int(b->node, "axis", 0), whole.t.rank, &d);
    if (s || (s = binder_axes(b, "split", 1, sizes, 256, &n)))
        return s;
    if (outs > 256)
        return fail(b, VGK_ERR_UNSUPPORTED, "into %d parts, at most 256", outs);
    int64_t total = whole.t.dim[d];
    if (n < 0) {
        int64_t parts = vg_node_int(b->node, "num_outputs", outs), each = parts > 0 ? (total + parts - 1) / parts : 0;
        if (parts != outs)
            return fail(b, VGK_ERR_INVALID, "num_outputs is %" PRId64 " with %d outputs", parts, outs);
        for (n = 0; n < outs; n++) {
            int64_t left = total - n * each;
            sizes[n] = left < each ? (left > 0 ? left : 0) : each;
        }
    }
    for (int i = 0; i < n; i++)
        at += sizes[i] < 0 || sizes[i] > total ? total + 1 : sizes[i];
    if (n != outs || at != total)
        return fail(b, VGK_ERR_INVALID, "the parts do not add up to %" PRId64, total);
    at = 0;
    for (int i = 0; i < n; at += sizes[i++]) {
        struct vg_operand o = vg_net_operand(b->net, x);
        int axis[VG_AXES];
        memcpy(axis, b->net->values[x].axis, sizeof axis);
        take(b, &o, d, at, sizes[i], 1);
        if (b->node->out[i] < 0)
            continue;
        int y = binder_view(b, i, &o, axis);
        if (y < 0)
            return VGK_ERR_NOMEM;
        binder_set(b, i, y);
    }
    return VGK_OK;
}

static enum vgk_status bind_concat(struct binder *b)
{
    int d, n = b->node->n_in;
    const struct vgk_tensor first = binder_value(b, 0)->t;
    int64_t dim[VGK_MAX_RANK], at = 0;
    enum vgk_status s = binder_axis(b, vg_node_int(b->node, "axis", b->opset < 4 ? 1 : 0), first.rank, &d);
    if (s)
        return s;
    memcpy(dim, first.dim, sizeof dim);
    dim[d] = 0;
    bool constant = true, framed = false;
    int like = -1;
    for (int i = 0; i < n; i++) {
        const struct vg_net_value *v = binder_value(b, i);
        if (!v)
            return fail(b, VGK_ERR_INVALID, "input %d is left out", i);
        if (v->t.rank != first.rank || v->t.type != first.type)
            return fail(b, VGK_ERR_INVALID, "input %d differs in rank or type", i);
        for (int k = 0; k < first.rank; k++)
            if (k != d && v->t.dim[k] != first.dim[k])
                return fail(b, VGK_ERR_INVALID, "input %d has %" PRId64 " in dimension %d, the first %" PRId64, i,
                            v->t.dim[k], k, first.dim[k]);
        dim[d] += v->t.dim[d];
        constant &= v->constant;
        bool has = v->axis[VG_X] >= 0 || v->axis[VG_Y] >= 0;
        if (has && like < 0)
            like = binder_in(b, i);
        for (int a = 0; a < VG_AXES; a++)
            framed |= v->axis[a] == d && v->t.dim[d] > 1;
    }
    if (framed && n > 1)
        binder_global(b, "joins along the frame's rows or columns");
    if (like < 0)
        like = binder_in(b, 0);
    int y = binder_new(b, 0, first.type, first.rank, dim, &like, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    b->hold = !constant;
    for (int i = 0; i < n && !s; i++) {
        struct vg_operand in = vg_net_operand(b->net, binder_in(b, i)), out = vg_net_operand(b->net, y);
        vg_operand_slice(&out, d, at, in.t.dim[d], 1);
        at += in.t.dim[d];
        if (vgk_tensor_count(&in.t) || constant)
            s = copy(b, &in, &out);
    }
    b->hold = false;
    binder_set(b, 0, y);
    return s;
}

static enum vgk_status bind_expand(struct binder *b)
{
    int64_t want[VGK_MAX_RANK], dim[VGK_MAX_RANK];
    int n, x = binder_in(b, 0);
    const struct vgk_tensor t = binder_value(b, 0)->t;
    enum vgk_status s = binder_ints(b, 1, want, VGK_MAX_RANK, &n);
    if (s)
        return s;
    int rank = n > t.rank ? n : t.rank;
    for (int i = 0; i < rank; i++) {
        int64_t a = i < rank - t.rank ? 1 : t.dim[i - rank + t.rank], c = i < rank - n ? 1 : want[i - rank + n];
        if (c < 0 || (a != c && a != 1 && c != 1))
            return fail(b, VGK_ERR_INVALID, "dimension %d of %" PRId64 " cannot become %" PRId64, i, a, c);
        dim[i] = a == 1 ? c : a;
    }
    struct vg_operand o;
    if ((s = binder_broadcast(b, x, rank, dim, &o)))
        return s;
    int axis[VG_AXES];
    for (int a = 0; a < VG_AXES; a++)
        axis[a] = b->net->values[x].axis[a] < 0 ? -1 : b->net->values[x].axis[a] + rank - t.rank;
    int y = binder_view(b, 0, &o, axis);
    binder_set(b, 0, y);
    return y < 0 ? VGK_ERR_NOMEM : VGK_OK;
}

/* Repeats as a view of twice the rank: [d0, r0, d1, r1, ...] with stride 0 on the repeats, copied into one. */
static enum vgk_status bind_tile(struct binder *b)
{
    int64_t repeats[VGK_MAX_RANK], dim[VGK_MAX_RANK];
    int n, x = binder_in(b, 0), r = 0;
    const struct vgk_tensor t = binder_value(b, 0)->t;
    if (b->opset < 6)
        return fail(b, VGK_ERR_UNSUPPORTED, "before opset 6; export it again, with opset 17 for example");
    enum vgk_status s = binder_ints(b, 1, repeats, VGK_MAX_RANK, &n);
    if (s)
        return s;
    if (n != t.rank)
        return fail(b, VGK_ERR_INVALID, "%d repeats for rank %d", n, t.rank);
    for (int i = 0; i < n; i++)
        if (repeats[i] < 0 || __builtin_mul_overflow(t.dim[i], repeats[i], &dim[i]))
            return fail(b, VGK_ERR_INVALID, "%" PRId64 " repeats", repeats[i]);
        else
            for (int a = 0; a < VG_AXES; a++)
                if (b->net->values[x].axis[a] == i && repeats[i] > 1 && t.dim[i] > 1)
                    binder_global(b, "repeats the frame");
    int y = binder_new(b, 0, t.type, t.rank, dim, &x, 1);
    if (y < 0)
        return VGK_ERR_NOMEM;
    struct vg_operand in = vg_net_operand(b->net, x), out = vg_net_operand(b->net, y);
    const struct vgk_tensor ti = in.t, to = out.t;
    for (int i = 0; i < n; i++) {
        if (repeats[i] == 1 || r + 1 >= VGK_MAX_RANK - (n - 1 - i)) { /* unrepeated dimensions need only one entry */
            if (repeats[i] != 1)
                return fail(b, VGK_ERR_UNSUPPORTED, "of more than %d dimensions at once", VGK_MAX_RANK / 2);
        } else {
            in.t.dim[r] = out.t.dim[r] = repeats[i];
            in.t.stride[r] = 0;
            out.t.stride[r++] = to.stride[i] * ti.dim[i];
        }
        in.t.dim[r] = out.t.dim[r] = ti.dim[i];
        in.t.stride[r] = ti.stride[i];
        out.t.stride[r++] = to.stride[i];
    }
    in.t.rank = out.t.rank = r;
    binder_set(b, 0, y);
    return copy(b, &in, &out);
}

static enum vgk_status bind_gather(struct binder *b)
{
    int x = binder_in(b, 0), d;
    const struct vg_net_value *index = binder_value(b, 1);
    struct vg_operand o = vg_net_operand(b->net, x);
    const struct vgk_tensor t = o.t, ti = index->t;
    enum vgk_status s = binder_axis(b, vg_node_int(b->node, "axis", 0), t.rank, &d);
    if (s)
        return s;
    int axis[VG_AXES], rank = t.rank - 1 + ti.rank;
    if (rank > VGK_MAX_RANK)
        return fail(b, VGK_ERR_UNSUPPORTED, "to rank %d, at most %d", rank, VGK_MAX_RANK);
    for (int a = 0; a < VG_AXES; a++) {
        axis[a] = b->net->values[x].axis[a];
        if (axis[a] == d && t.dim[d] > 1)
            binder_global(b, "picks rows or columns of the frame");
        axis[a] = axis[a] == d ? -1 : axis[a] > d ? axis[a] + ti.rank - 1 : axis[a];
    }
    double at;
    if (ti.rank == 0 && binder_scalar(b, binder_in(b, 1), &at)) {
        int64_t i = (int64_t)at + (at < 0 ? t.dim[d] : 0);
        if (i < 0 || i >= t.dim[d])
            return fail(b, VGK_ERR_INVALID, "index %.0f of a dimension of %" PRId64, at, t.dim[d]);
        vg_operand_slice(&o, d, i, 1, 1);
        for (int k = d; k < t.rank - 1; k++) {
            o.t.dim[k] = o.t.dim[k + 1];
            o.t.stride[k] = o.t.stride[k + 1];
        }
        o.t.rank--;
        int y = binder_view(b, 0, &o, axis);
        binder_set(b, 0, y);
        return y < 0 ? VGK_ERR_NOMEM : VGK_OK;
    }
    struct binder_rule rule;
    bool regular = index->constant && ti.rank && binder_rule(&ti, 0, t.dim[d], &rule);
    for (int k = 0; k < ti.rank && regular; k++)
        regular = rule.repeat[k] == 1 && rule.step[k] >= 0;
    if (regular) { /* windows, slices: a view */
        struct vg_operand whole = o;
        o.offset += rule.base * t.stride[d];
        o.t.rank = rank;
        for (int i = 0; i < rank; i++) {
            bool own = i < d || i >= d + ti.rank;
            int from = i < d ? i : i - ti.rank + 1;
            o.t.dim[i] = own ? t.dim[from] : ti.dim[i - d];
            o.t.stride[i] = own ? whole.t.stride[from] : rule.step[i - d] * whole.t.stride[d];
        }
        if (o.t.data)
            o.t.data = (char *)o.t.data + rule.base * t.stride[d] * (vgk_type_bits(t.type) / 8);
        int y = binder_view(b, 0, &o, axis);
        binder_set(b, 0, y);
        return y < 0 ? VGK_ERR_NOMEM : VGK_OK;
    }
    int64_t dim[VGK_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dim[i] = i < d ? t.dim[i] : i < d + ti.rank ? ti.dim[i - d] : t.dim[i - ti.rank + 1];
    int both[2] = {x, binder_in(b, 1)}, y = binder_new(b, 0, t.type, rank, dim, both, 2);
    if (y < 0)
        return VGK_ERR_NOMEM;
    memcpy(b->net->values[y].axis, axis, sizeof axis);
    struct vg_operand in[2] = {o, vg_net_operand(b->net, both[1])}, out = vg_net_operand(b->net, y);
    binder_set(b, 0, y);
    return binder_emit(b, &(struct vgk_op){.kind = VGK_OP_GATHER, .p.gather = {d}}, in, 2, &out);
}

const struct handler vg_handlers_move[] = {
    {"Identity", bind_identity, 0, 1, 1, 1},
    {"Dropout", bind_dropout, 0, 1, 3, 2},
    {"Reshape", bind_reshape, 0, 1, 2, 1},
    {"Flatten", bind_flatten, 0, 1, 1, 1},
    {"Squeeze", bind_squeeze, false, 1, 2, 1},
    {"Unsqueeze", bind_squeeze, true, 1, 2, 1},
    {"Transpose", bind_transpose, 0, 1, 1, 1},
    {"Slice", bind_slice, 0, 1, 5, 1},
    {"Split", bind_split, 0, 1, 2, -1},
    {"Concat", bind_concat, 0, 1, -1, 1},
    {"Expand", bind_expand, 0, 2, 2, 1},
    {"Tile", bind_tile, 0, 2, 3, 1},
    {"Gather", bind_gather, 0, 2, 2, 1},
    {NULL, NULL, 0, 0, 0, 0},
};
