/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "match.h"

bool vg_match_scalar(const struct vg_net *net, const struct vg_operand *o, double *x)
{
    if (!is_constant(net, o))
        return false;
    for (int d = 0; d < o->t.rank; d++)
        if (o->t.dim[d] > 1 && o->t.stride[d]) { /* a constant of one value, written out */
            int64_t n = vgk_tensor_count(&o->t);
            if (n > 4096 || o->t.type != VGK_F32 || !vgk_tensor_is_dense(&o->t, VGK_ROW_MAJOR))
                return false;
            for (int64_t i = 1; i < n; i++)
                if (((const float *)o->t.data)[i] != *(const float *)o->t.data)
                    return false;
            break;
        }
    switch (o->t.type) {
    case VGK_F32: *x = *(const float *)o->t.data; return true;
    case VGK_F16: *x = (double)*(const _Float16 *)o->t.data; return true;
    case VGK_F64: *x = *(const double *)o->t.data; return true;
    case VGK_I64: *x = (double)*(const int64_t *)o->t.data; return true;
    case VGK_I32: *x = *(const int32_t *)o->t.data; return true;
    case VGK_I8: *x = *(const int8_t *)o->t.data; return true;
    case VGK_U8: *x = *(const uint8_t *)o->t.data; return true;
    default: return false;
    }
}

bool vg_match_per_channel(struct vg_net *net, const struct vg_operand *o, struct vg_operand *out)
{
    if (o->value < 0 || o->t.rank < 3 || o->t.type != VGK_F32)
        return false;
    for (int d = 0; d < o->t.rank; d++)
        if (d != 1 && o->t.dim[d] > 1 && o->t.stride[d])
            return false;
    int64_t c = o->t.dim[1], stride = o->t.stride[1];
    *out = *o;
    out->t = (struct vgk_tensor){VGK_F32, 1, {c}, {stride}, o->t.data};
    if (!is_constant(net, o))
        return !net->values[o->value].frame && (c == 1 || stride == 1);
    int v = vg_net_constant(net, net->values[o->value].name, VGK_F32, 1, &c);
    if (v < 0)
        return false;
    float *to = net->values[v].t.data;
    for (int64_t i = 0; i < c; i++)
        to[i] = ((const float *)o->t.data)[i * stride];
    *out = vg_net_operand(net, v);
    return true;
}

static bool same_reach(const struct vg_operand *o)
{
    for (int a = 0; a < VG_AXES; a++)
        if (o->reach[a].num != 1 || o->reach[a].den != 1 || o->reach[a].lo || o->reach[a].hi)
            return false;
    return true;
}

int vg_match_readers(const struct vg_net *net, int value)
{
    int n = 0, buffer = net->values[value].buffer;
    for (int k = 0; k < net->n_ops; k++)
        for (int j = 0; j < net->ops[k].n_in && !net->ops[k].dead && !net->ops[k].view; j++)
            n += net->ops[k].in[j].value >= 0 && net->values[net->ops[k].in[j].value].buffer == buffer;
    for (int k = 0; k < net->n_outputs; k++)
        n += net->values[net->outputs[k]].buffer == buffer;
    return n;
}

struct vg_net_op *vg_match_behind(struct vg_net *net, const struct vg_operand *o, int map[VGK_MAX_RANK])
{
    int v = o->value, i;
    unsigned taken = 0;
    bool same = same_reach(o);
    while ((i = vg_net_producer(net, v)) >= 0 && net->ops[i].view) {
        same &= same_reach(&net->ops[i].in[0]);
        v = net->ops[i].in[0].value;
    }
    if (i < 0 || !same)
        return NULL;
    struct vg_net_op *p = &net->ops[i];
    if (vg_match_readers(net, v) != 1 || o->offset != p->out.offset || vgk_tensor_count(&o->t) != vgk_tensor_count(&p->out.t))
        return NULL;
    for (int d = 0; d < o->t.rank; d++) {
        map[d] = -1;
        for (int e = 0; e < p->out.t.rank && o->t.dim[d] > 1; e++)
            if (!(taken >> e & 1) && p->out.t.dim[e] == o->t.dim[d] && p->out.t.stride[e] == o->t.stride[d])
                map[d] = e;
        if (map[d] < 0 && o->t.dim[d] > 1)
            return NULL;
        if (map[d] >= 0)
            taken |= 1u << map[d];
    }
    return p;
}

/* --- activations: products of x and a function of x --- */

/* A product's factors, however it is bracketed: numbers in *k, the others in f; false when there are more than two. */
static bool factors(struct vg_net *net, struct vg_net_op *op, int depth, double *k, struct vg_operand f[2], int *n)
{
    for (int side = 0; side < 2; side++) {
        double c;
        struct vg_net_op *p;
        bool divide = is_binary(op, VGK_DIV);
        if (vg_match_scalar(net, &op->in[side], &c)) {
            if (divide && !side)
                return false;
            *k = divide ? *k / c : *k * c;
        } else if (divide && side) {
            return false;
        } else if (depth < 3 && (p = sole_producer(net, &op->in[side])) &&
                   (is_binary(p, VGK_MUL) || (is_binary(p, VGK_DIV) && vg_match_scalar(net, &p->in[1], &c))) &&
                   same_dims(&p->out.t, &op->out.t)) {
            if (!factors(net, p, depth + 1, k, f, n))
                return false;
        } else {
            if (*n == 2 || !same_dims(&op->in[side].t, &op->out.t))
                return false;
            f[(*n)++] = op->in[side];
        }
    }
    return true;
}

/* o = c * x: the c; 0 when it is something else. */
static double times(struct vg_net *net, const struct vg_operand *o, const struct vg_operand *x)
{
    struct vg_operand f[2];
    double k = 1;
    int n = 0;
    if (same_operand(o, x))
        return 1;
    struct vg_net_op *p = sole_producer(net, o);
    bool product = p && (is_binary(p, VGK_MUL) || is_binary(p, VGK_DIV)) && factors(net, p, 0, &k, f, &n);
    return product && n == 1 && same_operand(&f[0], x) ? k : 0;
}

/* The operand of o = 1 + fn(...), else NULL. */
static const struct vg_operand *one_plus(struct vg_net *net, const struct vg_operand *o, enum vgk_unary_fn fn)
{
    struct vg_net_op *add = sole_producer(net, o);
    for (int side = 0; side < 2 && is_binary(add, VGK_ADD); side++) {
        struct vg_net_op *p = sole_producer(net, &add->in[side]);
        double one;
        if (is_unary(p, fn) && vg_match_scalar(net, &add->in[!side], &one) && one == 1)
            return &p->in[0];
    }
    return NULL;
}

static bool about(double a, double b) { return fabs(a - b) <= 3e-4 * fabs(b); }

/* o = x^3 * c */
static bool is_cube(struct vg_net *net, const struct vg_operand *o, const struct vg_operand *x, double c)
{
    struct vg_net_op *p = sole_producer(net, o), *square;
    double three = 0, k = 1;
    for (int side = 0; side < 2 && is_binary(p, VGK_MUL); side++)
        if (vg_match_scalar(net, &p->in[!side], &k) && about(k, c)) {
            p = sole_producer(net, &p->in[side]);
            if (is_binary(p, VGK_POW))
                return vg_match_scalar(net, &p->in[1], &three) && three == 3 && same_operand(&p->in[0], x);
            for (int s = 0; s < 2 && is_binary(p, VGK_MUL); s++)
                if (same_operand(&p->in[s], x) && (square = sole_producer(net, &p->in[!s])) &&
                    is_binary(square, VGK_MUL) && same_operand(&square->in[0], x) && same_operand(&square->in[1], x))
                    return true;
            return false;
        }
    return false;
}

/* o = sqrt(2 / pi) * (x + 0.044715 x^3) */
static bool is_gelu_argument(struct vg_net *net, const struct vg_operand *o, const struct vg_operand *x)
{
    struct vg_net_op *p = sole_producer(net, o), *add;
    for (int side = 0; side < 2 && is_binary(p, VGK_MUL); side++) {
        if (!is_about(net, &p->in[!side], sqrt(2 / M_PI)) || !(add = sole_producer(net, &p->in[side])) ||
            !is_binary(add, VGK_ADD))
            continue;
        for (int s = 0; s < 2; s++)
            if (same_operand(&add->in[s], x) && is_cube(net, &add->in[!s], x, 0.044715))
                return true;
    }
    return false;
}

/* x * sigmoid(a x);  x / 2 * (1 + erf(x / sqrt(2)));  x / 2 * (1 + tanh(...)) */
bool vg_match_product(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i];
    struct vg_operand f[2];
    double k = 1, a;
    int n = 0;
    if ((!is_binary(op, VGK_MUL) && !is_binary(op, VGK_DIV)) || !factors(net, op, 0, &k, f, &n) || n != 2)
        return false;
    for (int side = 0; side < 2; side++) {
        const struct vg_operand *x = &f[!side], *u;
        struct vgk_unary p = {0};
        struct vg_net_op *s = sole_producer(net, &f[side]);
        if (k == 1 && is_unary(s, VGK_SIGMOID) && (a = times(net, &s->in[0], x)) != 0)
            p = (struct vgk_unary){a == 1 ? VGK_SILU : VGK_SWISH, a == 1 ? s->op.p.unary.alpha : (float)a, 0};
        else if (about(k, 0.5) && (u = one_plus(net, &f[side], VGK_ERF)) && about(times(net, u, x), sqrt(0.5)))
            p.fn = VGK_GELU_ERF;
        else if (about(k, 0.5) && (u = one_plus(net, &f[side], VGK_TANH)) && is_gelu_argument(net, u, x))
            p.fn = VGK_GELU_TANH;
        else
            continue;
        struct vg_operand in = *x;
        op->op = (struct vgk_op){.kind = VGK_OP_UNARY, .p.unary = p};
        op->n_in = 1;
        op->in[0] = in;
        return true;
    }
    return false;
}

/* --- products of matrices --- */

bool vg_match_matmul(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i], fused;
    double c;
    for (int side = 0; side < 2; side++) {
        struct vg_net_op *p = op->op.kind == VGK_OP_BINARY ? sole_producer(net, &op->in[side]) : NULL;
        const struct vg_operand *other = &op->in[!side];
        if (!p || p->op.kind != VGK_OP_MATMUL || p->in[2].value >= 0 || !same_dims(&p->out.t, &op->out.t))
            continue;
        fused = *p;
        if (is_binary(op, VGK_MUL) && vg_match_scalar(net, other, &c)) {
            fused.op.p.matmul.alpha *= (float)c;
        } else if (is_binary(op, VGK_ADD) && other->t.type == VGK_F32) {
            for (int d = 0; d < other->t.rank - 1; d++)
                if (other->t.dim[d] > 1 && other->t.stride[d])
                    return false;
            fused.in[2] = *other;
            fused.n_in = 3;
            fused.op.p.matmul.beta = 1;
        } else {
            continue;
        }
        replace(p, op, &fused);
        return true;
    }
    return false;
}

/* --- quantised activations --- */

/* Scale and zero point, one of each; 0 where there is no zero point. */
static bool quantised_by(const struct vg_net *net, const struct vg_net_op *op, float *scale, float *zero)
{
    *zero = 0;
    return is_scalar(net, &op->in[1], scale) && (op->in[2].value < 0 || is_scalar(net, &op->in[2], zero));
}

/* Exporters give each reader of a value a pair of its own: those of op read what an equal op before it made. */
static void read_the_first(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i];
    int was = op->out.value, reads = 0;
    for (int k = i + 1; k < net->n_ops; k++)
        for (int n = 0; n < net->ops[k].n_in && !net->ops[k].dead; n++)
            reads += same_operand(&net->ops[k].in[n], &op->out);
    if (reads != vg_net_uses(net, was)) /* views, parts, outputs of the net */
        return;
    for (int j = 0; j < i; j++) {
        const struct vg_net_op *first = &net->ops[j];
        if (first->dead || !is_unary(first, VGK_QUANTA) || !same_operand(&first->in[0], &op->in[0]) ||
            !whole_out(net, first) || memcmp(&first->op.p.unary, &op->op.p.unary, sizeof op->op.p.unary) ||
            !same_dims(&first->out.t, &op->out.t) ||
            memcmp(first->out.t.stride, op->out.t.stride, (size_t)op->out.t.rank * sizeof *op->out.t.stride))
            continue;
        for (int k = i + 1; k < net->n_ops; k++)
            for (int n = 0; n < net->ops[k].n_in; n++)
                if (net->ops[k].in[n].value == was) {
                    net->ops[k].in[n].value = first->out.value;
                    net->ops[k].in[n].offset = first->out.offset;
                }
        op->dead = true;
        return;
    }
}

/* To 8 bits and back, both by the same numbers: it is f32 all the way. */
bool vg_match_quanta(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i], *down;
    float scale, zero, other, other_zero;
    if (op->op.kind != VGK_OP_DEQUANTIZE || !(down = producer(net, &op->in[0])) || down->op.kind != VGK_OP_QUANTIZE ||
        !same_operand(&down->out, &op->in[0]) || !whole_out(net, down) || vgk_type_bits(down->out.t.type) != 8 ||
        op->out.t.type != VGK_F32 || down->in[0].t.type != VGK_F32 || !quantised_by(net, down, &scale, &zero) ||
        !quantised_by(net, op, &other, &other_zero) || scale != other || zero != other_zero || !(scale > 0))
        return false;
    float least = down->out.t.type == VGK_I8 ? -128 : 0;
    op->op = (struct vgk_op){.kind = VGK_OP_UNARY, .p.unary = {VGK_QUANTA, scale, least - zero}};
    op->in[0] = down->in[0];
    op->n_in = 1;
    read_the_first(net, i);
    return true;
}

/* --- copies --- */

/* The dimensions in the order of their strides, the largest first; false when the elements have holes. */
static bool by_stride(const struct vgk_tensor *t, int order[VGK_MAX_RANK])
{
    for (int d = 0; d < t->rank; d++) {
        int at = d;
        for (; at > 0 && t->stride[order[at - 1]] < t->stride[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    struct vgk_tensor sorted = vgk_tensor_permute(t, order);
    return vgk_tensor_is_dense(&sorted, VGK_ROW_MAJOR);
}

/* `o`, a view of what was made as `dense`, seen in `other`, which has the same elements in another layout; `beside` (same
 * dims as o) is cut alike where a dimension of o runs over several of dense's.  False when it cannot be said with 8
 * dimensions. */
static bool translate(struct vg_operand *o, const struct vg_operand *dense, const struct vg_operand *other,
                      struct vg_operand *beside)
{
    int order[VGK_MAX_RANK];
    struct vg_operand sorted = *dense, sorted_other = *other, *whole = &sorted, *to = &sorted_other;
    if (!by_stride(&dense->t, order))
        return false;
    sorted.t = vgk_tensor_permute(&dense->t, order);
    sorted_other.t = vgk_tensor_permute(&other->t, order);
    struct vg_operand a = *o, b = *beside;
    int64_t last[VGK_MAX_RANK] = {0}, at = o->offset - whole->offset;
    a.t.rank = b.t.rank = 0;
    a.offset = to->offset;
    for (int d = 0; d < whole->t.rank; d++) { /* where it begins: whole is dense, its strides fall */
        int64_t s = whole->t.stride[d];
        last[d] = at / s % whole->t.dim[d];
        a.offset += last[d] * to->t.stride[d];
    }
    for (int d = 0; d < o->t.rank; d++) {
        int64_t n = o->t.dim[d], s = o->t.stride[d], s_beside = beside->t.stride[d], inner = 1;
        int first = a.t.rank;
        if (s < 0)
            return false;
        while (n > 1 && s) { /* from the inside out: the factor that lies in one dimension of whole */
            int w = whole->t.rank - 1;
            while (w >= 0 && (whole->t.dim[w] == 1 || s % whole->t.stride[w] || s / whole->t.stride[w] >= whole->t.dim[w]))
                w--;
            if (w < 0 || a.t.rank == VGK_MAX_RANK)
                return false;
            int64_t step = s / whole->t.stride[w], begin = at / whole->t.stride[w] % whole->t.dim[w];
            int64_t room = (whole->t.dim[w] - begin + step - 1) / step, take = n;
            if (room < n) { /* it runs on into the next dimension, which only a whole one can */
                if (begin || whole->t.dim[w] % step || n % room)
                    return false;
                take = room;
            }
            if ((last[w] += (take - 1) * step) >= whole->t.dim[w])
                return false; /* a view that runs from one row into the next */
            for (int k = a.t.rank; k > first; k--) {
                a.t.dim[k] = a.t.dim[k - 1];
                a.t.stride[k] = a.t.stride[k - 1];
                b.t.dim[k] = b.t.dim[k - 1];
                b.t.stride[k] = b.t.stride[k - 1];
            }
            a.t.dim[first] = b.t.dim[first] = take;
            a.t.stride[first] = step * to->t.stride[w];
            b.t.stride[first] = inner * s_beside;
            a.t.rank = ++b.t.rank;
            inner *= take;
            s *= take;
            n /= take;
        }
        if (n > 1 || a.t.rank == first) { /* repeated, or of 1 */
            if (a.t.rank == VGK_MAX_RANK)
                return false;
            a.t.dim[a.t.rank] = b.t.dim[b.t.rank] = n;
            a.t.stride[a.t.rank++] = n > 1 ? 0 : 1;
            b.t.stride[b.t.rank++] = s_beside;
        }
    }
    a.value = to->value;
    *o = a;
    *beside = b;
    return true;
}

/* `o` reaches into what `through` makes, which reaches on: how it reaches from there.  False where two roundings would
 * come together. */
static bool reach_through(struct vg_operand *o, const struct vg_operand *through)
{
    for (int a = 0; a < VG_AXES; a++) {
        struct vg_reach *r = &o->reach[a];
        const struct vg_reach *t = &through->reach[a];
        if (r->den != 1 && t->num != 1)
            return false;
        *r = (struct vg_reach){r->num * t->num, r->den * t->den, r->lo * t->num + t->lo * r->den,
                               r->hi * t->num + t->hi * r->den};
    }
    return true;
}

/* A copy, by way of views, of a copy that another op has made whole: it reads where that one read. */
static bool skip_copy(struct vg_net *net, struct vg_net_op *op)
{
    struct vg_operand in = op->in[0], out = op->out;
    int v = in.value, i;
    while ((i = vg_net_producer(net, v)) >= 0 && net->ops[i].view) { /* to the value that is written */
        if (!reach_through(&in, &net->ops[i].in[0]))
            return false;
        v = net->ops[i].in[0].value;
    }
    if (i < 0 || net->ops[i].op.kind != VGK_OP_COPY)
        return false;
    const struct vg_net_op *first = &net->ops[i];
    if (first->in[0].t.type != first->out.t.type || first->in[0].value < 0 ||
        is_constant(net, &first->in[0]) || !whole_out(net, first) || !same_dims(&first->in[0].t, &first->out.t) ||
        net->values[v].buffer < 0)
        return false;
    struct vg_operand made = first->out;
    if (!reach_through(&in, &first->in[0]) || !translate(&in, &made, &first->in[0], &out))
        return false;
    op->in[0] = in;
    op->out = out;
    return true;
}

/* What an op makes for nothing but a copy into a part of something larger (Concat), or into another order, it writes
 * there itself; plain ops only where their inner loops stay what they are. */
static bool write_through(struct vg_net *net, struct vg_net_op *op)
{
    const struct vg_operand *in = &op->in[0];
    int map[VGK_MAX_RANK], before = -1;
    bool turned = false;
    struct vg_net_op *p = vg_match_behind(net, in, map);
    if (!p || !whole_out(net, p) || in->t.type != op->out.t.type || op->out.t.rank != in->t.rank)
        return false;
    struct vg_operand out = op->out;
    out.t.rank = p->out.t.rank;
    for (int d = 0; d < p->out.t.rank; d++) {
        out.t.dim[d] = p->out.t.dim[d];
        out.t.stride[d] = 1; /* of a dimension of 1 */
    }
    for (int d = 0; d < in->t.rank; d++) {
        if (in->t.dim[d] != op->out.t.dim[d])
            return false;
        if (map[d] < 0)
            continue;
        turned |= map[d] < before;
        before = map[d];
        out.t.stride[map[d]] = op->out.t.stride[d];
    }
    bool plain = p->op.kind == VGK_OP_UNARY || p->op.kind == VGK_OP_BINARY;
    if (!(plain && !turned && !whole_out(net, op)) && p->op.kind != VGK_OP_ATTENTION)
        return false;
    for (int k = 0; k < p->n_in; k++)
        if (p->in[k].value >= 0 && net->values[p->in[k].value].buffer >= 0 &&
            net->values[p->in[k].value].buffer == net->values[out.value].buffer)
            return false;
    struct vg_net_op moved = *p;
    p->dead = true;
    moved.out = out;
    *op = moved;
    return true;
}

bool vg_match_copy(struct vg_net *net, int i)
{
    struct vg_net_op *op = &net->ops[i];
    if (op->view || op->op.kind != VGK_OP_COPY || op->in[0].value < 0 || is_constant(net, &op->in[0]))
        return false;
    return skip_copy(net, op) || write_through(net, op);
}
