/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "program_internal.h"

#include "arithmetic.h"

#include <stdlib.h>
#include <string.h>

#include "price.h"
#include "rows.h"

void vg_program_free(struct vg_program **program)
{
    struct vg_program *p = *program;
    if (!p)
        return;
    vg_net_free(&p->net);
    free(p->steps);
    free(p->inputs);
    free(p->outputs);
    free(p->memories);
    free(p);
    *program = NULL;
}

/* --- constants --- */

/* A constant's elements as the op sees them, stored once: repeated dimensions are kept as one and read with stride 0.
 * Equal views of equal data share their place. */
static bool place_constant(struct constants *c, struct vg_net *net, const struct vg_operand *o, struct vg_place *place)
{
    int64_t dim[VGK_MAX_RANK];
    struct vgk_tensor src = o->t;
    for (int d = 0; d < src.rank; d++) {
        dim[d] = src.stride[d] || src.dim[d] == 0 ? src.dim[d] : 1;
        src.dim[d] = dim[d];
    }
    struct vgk_tensor dense = vgk_tensor_make(src.type, src.rank, dim, VGK_ROW_MAJOR);
    size_t bytes;
    if (!vgk_tensor_bytes(&dense, &bytes))
        return false;
    place->t = dense;
    for (int d = 0; d < dense.rank; d++) {
        place->t.dim[d] = o->t.dim[d];
        if (dim[d] == 1 && o->t.dim[d] != 1)
            place->t.stride[d] = 0;
    }
    place->constant = src.data;
    if (!vgk_tensor_is_dense(&src, VGK_ROW_MAJOR)) { /* a view: gather it */
        size_t each = vgk_type_bits(src.type) / 8; /* 0: two in a byte */
        char *to = vg_arena_aligned(net->arena, bytes);
        if (!to)
            return false;
        place->constant = memset(to, 0, bytes);
        int64_t n = vgk_tensor_count(&src);
        for (int64_t i = 0; i < n; i++) {
            int64_t at = 0, rest = i;
            for (int d = src.rank - 1; d >= 0; rest /= dim[d--])
                at += rest % dim[d] * src.stride[d];
            if (each)
                memcpy(to + i * each, (const char *)src.data + at * (int64_t)each, each);
            else
                to[i / 2] |= (char)((((const uint8_t *)src.data)[at / 2] >> at % 2 * 4 & 15) << i % 2 * 4);
        }
    }
    for (int i = 0; i < c->n; i++) {
        size_t other;
        struct vgk_tensor t = c->places[i].t;
        if (c->places[i].constant == place->constant && vgk_tensor_bytes(&t, &other) && other == bytes) {
            place->offset = c->places[i].offset;
            return true;
        }
    }
    if (c->n == c->capacity) {
        int capacity = c->capacity ? c->capacity * 2 : 64;
        struct vg_place *p = realloc(c->places, capacity * sizeof *p);
        if (!p)
            return false;
        c->places = p;
        c->capacity = capacity;
    }
    place->offset = c->bytes;
    c->bytes += vgk_round_up(bytes, VGK_ALIGN);
    c->places[c->n] = *place;
    c->places[c->n++].t = dense;
    return true;
}

static bool weights(int k) { return k == 1 || k == VGK_WEIGHT_SCALE || k == VGK_WEIGHT_ZERO; }

/* Constants: packed ones have their place already; the others are stored as the op sees them. */
static enum vgk_status place_constants(struct maker *m)
{
    const struct vg_net *net = m->net;
    for (int i = 0; i < net->n_ops; i++) {
        size_t *section = m->request->stream ? &m->p->host : &m->constants.bytes;
        m->packed[i] = *section;
        *section += vgk_round_up(m->need[i].packed, VGK_ALIGN);
    }
    m->p->packed = m->constants.bytes;
    for (int i = 0; i < net->n_ops; i++) {
        const struct vg_net_op *op = &net->ops[i];
        for (int k = 0; k < op->n_in && !op->dead && !op->view; k++) {
            struct vg_place *p = &m->place[i][k];
            p->none = op->in[k].value < 0;
            if (p->none || !net->values[op->in[k].value].constant)
                continue;
            if (m->need[i].packed && weights(k)) { /* only the kernel's own copy stays */
                p->t = op->in[k].t;
                p->constant = op->in[k].t.data;
                p->t.data = NULL;
                p->offset = SIZE_MAX;
            } else if (!place_constant(&m->constants, m->net, &op->in[k], p)) {
                return VGK_ERR_NOMEM;
            }
        }
    }
    for (int i = 0; i < net->n_outputs; i++)
        if (net->values[net->outputs[i]].constant) {
            struct vg_operand o = vg_net_operand(net, net->outputs[i]);
            if (!place_constant(&m->constants, m->net, &o, &m->p->outputs[i]))
                return VGK_ERR_NOMEM;
        }
    m->p->weights = m->constants.bytes;
    return VGK_OK;
}

/* --- what the backend needs --- */

unsigned vg_program_constants(const struct vg_net *net, const struct vg_operand *in, int n_in)
{
    unsigned bits = 0;
    for (int k = 0; k < n_in; k++)
        bits |= in[k].value >= 0 && net->values[in[k].value].constant ? 1u << k : 0;
    return bits;
}

static enum vgk_status ask(struct maker *m, const struct vgk_op *op, int n_in, const struct vg_operand *in,
                           const struct vg_operand *out, struct vgk_need *need, const char *node)
{
    struct vgk_tensor t[VG_MAX_OPERANDS] = {{VGK_NONE}};
    struct vgk_op o = *op;
    for (int k = 0; k < n_in; k++)
        if (in[k].value >= 0)
            t[k] = in[k].t;
    o.in = t;
    o.n_in = n_in;
    o.constant = vg_program_constants(m->net, in, n_in);
    o.out = &out->t;
    o.n_out = 1;
    *need = (struct vgk_need){.lattice = {1, 1, 1}};
    enum vgk_status s = m->backend->need(m->device, &o, need, m->err);
    if (s)
        vgk_error_prefix(m->err, "node '%s'", node);
    return s;
}

/* All ops as wholes: kernels, packed constants. */
static enum vgk_status ask_all(struct maker *m)
{
    for (int i = 0; i < m->net->n_ops; i++) {
        const struct vg_net_op *op = &m->net->ops[i];
        if (op->dead || op->view)
            continue;
        enum vgk_status s = ask(m, &op->op, op->n_in, op->in, &op->out, &m->need[i], op->node);
        if (s)
            return s;
        m->p->blocks |= m->need[i].lattice[1] > 1 || m->need[i].lattice[2] > 1;
        m->p->n_products += op->op.kind == VGK_OP_CONV || op->op.kind == VGK_OP_CONV_TRANSPOSE ||
                            op->op.kind == VGK_OP_MATMUL || op->op.kind == VGK_OP_ATTENTION;
        m->p->n_bf16 += m->need[i].bf16;
    }
    return VGK_OK;
}

/* --- buffers --- */

static int buffer_of(const struct vg_net *net, const struct vg_operand *o)
{
    return o->value < 0 || net->values[o->value].constant ? -1 : net->values[o->value].buffer;
}

int vg_program_root(const struct maker *m, int b)
{
    while (m->share[b] >= 0)
        b = m->share[b];
    return b;
}

/* Whole schedules: an op may write over a buffer that nobody reads after it. */
static void share(struct maker *m, int position, const struct vg_net_op *op)
{
    const struct vg_net *net = m->net;
    int out = net->values[op->out.value].buffer;
    if (m->persistent[out] || m->s->storage[out].first != position || m->share[out] >= 0)
        return;
    struct vgk_tensor in[VG_MAX_OPERANDS] = {{VGK_NONE}};
    struct vgk_op test = op->op;
    for (int k = 0; k < op->n_in; k++)
        if (op->in[k].value >= 0)
            in[k] = op->in[k].t;
    test.in = in;
    test.n_in = op->n_in;
    test.out = &op->out.t;
    for (int k = 0; k < op->n_in; k++) {
        int b = buffer_of(net, &op->in[k]);
        bool clash = false;
        /* Nothing else of that buffer may be read, but by ops that read and write each element at one time. */
        for (int j = 0; j < op->n_in; j++)
            clash |= j != k && b >= 0 && buffer_of(net, &op->in[j]) == b &&
                     ((op->op.kind != VGK_OP_BINARY && op->op.kind != VGK_OP_CHAIN) ||
                      memcmp(op->in[j].t.stride, op->in[k].t.stride, sizeof op->in[k].t.stride));
        if (b < 0 || clash || m->persistent[b] || m->s->storage[b].last != position || b == out ||
            op->in[k].offset || op->out.offset || net->buffers[b].bytes != net->buffers[out].bytes ||
            !vgk_op_in_place(&test, k))
            continue;
        m->share[out] = b;
        return;
    }
}

static enum vgk_status lay_out(struct maker *m)
{
    const struct vg_net *net = m->net;
    const struct vg_schedule *s = m->s;
    int nb = net->n_buffers, n = 0;
    for (int i = 0; i < net->n_inputs; i++)
        if (!net->values[net->inputs[i]].frame)
            m->persistent[net->values[net->inputs[i]].buffer] = true;
    for (int b = 0; b < nb; b++)
        m->persistent[b] |= net->buffers[b].persistent;
    for (int i = 0; i < s->n_prologue; i++)
        m->persistent[net->values[net->ops[s->calls[i].what].out.value].buffer] = true;
    for (int b = 0; b < nb; b++)
        m->share[b] = -1;
    for (int i = s->n_prologue; i < s->n_calls && m->p->bands == 1; i++)
        if (s->calls[i].type == VG_CALL_OP)
            share(m, s->calls[i].position, &net->ops[s->calls[i].what]);
    for (int b = 0; b < nb; b++) {
        const struct vg_storage *st = &s->storage[b];
        if (m->persistent[b]) {
            m->windows[b].offset = m->p->persistent;
            m->p->persistent += vgk_round_up(net->buffers[b].bytes, VGK_ALIGN);
            continue;
        }
        if (st->first < 0)
            continue;
        struct vg_block *w = &m->windows[vg_program_root(m, b)];
        size_t bytes = st->banded ? (size_t)st->window * st->row_bytes : net->buffers[b].bytes;
        w->first = !w->bytes || st->first < w->first ? st->first : w->first;
        w->last = !w->bytes || st->last > w->last ? st->last : w->last;
        w->bytes = bytes > w->bytes ? bytes : w->bytes;
        if (st->carry)
            m->carries[b] = (struct vg_block){.bytes = (size_t)st->carry * st->row_bytes, .first = st->carry_first,
                                              .last = st->carry_last};
    }
    size_t total = (size_t)2 * nb + 2 * (size_t)s->n_positions + 1;
    struct vg_block *list = calloc(total, sizeof *list), **from = calloc(total, sizeof *from);
    enum vgk_status status = VGK_ERR_NOMEM;
    if (list && from) {
        for (int b = 0; b < nb; b++) {
            if (m->windows[b].bytes && !m->persistent[b]) {
                from[n] = &m->windows[b];
                list[n++] = m->windows[b];
            }
            if (m->carries[b].bytes) {
                from[n] = &m->carries[b];
                list[n++] = m->carries[b];
            }
        }
        for (int i = 0; i < s->n_positions; i++) {
            if (m->scratches[i].bytes) {
                from[n] = &m->scratches[i];
                list[n++] = m->scratches[i];
            }
            if (m->loads[i].bytes) {
                from[n] = &m->loads[i];
                list[n++] = m->loads[i];
            }
        }
        status = vg_memplan(list, n, &m->p->activations);
        m->p->floor = vg_memplan_floor(list, n);
        m->busiest = vg_memplan_busiest(list, n);
        for (int i = 0; i < n; i++)
            from[i]->offset = list[i].offset;
    }
    free(list);
    free(from);
    return status;
}

/* Where spilled buffers lie in host memory, by the levels in which they are needed, and what it all costs. */
static enum vgk_status lay_out_host(struct maker *m)
{
    int nb = m->net->n_buffers, n = 0;
    struct vg_block *list = calloc((size_t)nb + 1, sizeof *list);
    if (!list)
        return VGK_ERR_NOMEM;
    for (int b = 0; b < nb; b++) {
        const struct vg_storage *st = &m->s->storage[b];
        if (st->spilled)
            list[n++] = (struct vg_block){m->net->buffers[b].bytes, st->host_first, st->host_last, 0};
        m->p->n_spilled += st->spilled;
    }
    size_t bytes = 0;
    enum vgk_status s = vg_memplan(list, n, &bytes);
    for (int b = 0, i = 0; b < nb && !s; b++)
        if (m->s->storage[b].spilled)
            m->host[b] = m->p->host + list[i++].offset;
    m->p->host += bytes;
    free(list);
    for (int i = 0; i < m->s->n_calls; i++) {
        const struct vg_call *c = &m->s->calls[i];
        if (c->type == VG_CALL_SPILL || c->type == VG_CALL_FETCH)
            m->p->moved += (size_t)(c->end - c->begin) * m->s->storage[c->what].row_bytes;
    }
    return s;
}

/* Of the rows of the frame that a call reads or writes (with those that alpha is taken from). */
static size_t frame_scratch(const struct maker *m, const struct vg_call *c)
{
    const struct vg_net *net = m->net;
    const struct vg_net_value *v = &net->values[c->type == VG_CALL_READ ? net->inputs[c->what] : net->outputs[c->what]];
    if (v->axis[VG_X] < 0 || v->axis[VG_Y] < 0)
        return 0;
    int64_t width = v->t.dim[v->axis[VG_X]], rows = c->end - c->begin;
    size_t bytes = m->backend->frame_scratch(m->device, (int)width, (int)rows);
    if (c->type == VG_CALL_WRITE)
        bytes += m->backend->frame_scratch(m->device, (int)(width * v->den[VG_X] / v->num[VG_X]) + 1,
                                           (int)(rows * v->den[VG_Y] / v->num[VG_Y]) + 2);
    return bytes;
}

static void add_scratch(struct maker *m, int position, size_t bytes)
{
    struct vg_block *b = &m->scratches[position];
    b->bytes = bytes > b->bytes ? bytes : b->bytes;
    b->first = b->last = position;
    m->p->scratch_peak = bytes > m->p->scratch_peak ? bytes : m->p->scratch_peak;
}

/* Scratch of every call: bands of one op may need more or less than the whole. */
static enum vgk_status ask_scratch(struct maker *m)
{
    for (int i = 0; i < m->s->n_calls; i++) {
        const struct vg_call *c = &m->s->calls[i];
        struct vg_operand in[VG_MAX_OPERANDS], out;
        struct vgk_op op;
        struct vgk_need need = {0};
        if (c->type == VG_CALL_READ || c->type == VG_CALL_WRITE)
            need.scratch = frame_scratch(m, c);
        if (c->type != VG_CALL_OP) {
            add_scratch(m, c->position, need.scratch);
            continue;
        }
        const char *node = m->net->ops[c->what].node;
        vg_program_restrict(m, c, &op, in, &out);
        enum vgk_status s = c->all ? VGK_OK : ask(m, &op, m->net->ops[c->what].n_in, in, &out, &need, node);
        if (s)
            return s;
        if (c->all)
            need = m->need[c->what];
        /* The constants are packed once for all rows: another kernel would read another order. */
        if (need.packed != m->need[c->what].packed || !need.how != !m->need[c->what].how)
            return vgk_fail(m->err, VGK_ERR_UNSUPPORTED, "node '%s': its kernel depends on the number of rows", node);
        add_scratch(m, c->position, need.scratch);
        if (m->request->stream) /* there, and while the op before runs */
            m->loads[c->position] = (struct vg_block){m->need[c->what].packed, c->position ? c->position - 1 : 0,
                                                      c->position, 0};
    }
    return VGK_OK;
}

static void find_largest_kept(struct maker *m)
{
    m->p->largest_kept_buffer = -1;
    for (int b = 0; b < m->net->n_buffers && m->p->bands > 1; b++) {
        const struct vg_storage *st = &m->s->storage[b];
        bool again = (m->request->recompute && m->request->recompute[b]) || (m->request->spill && m->request->spill[b]);
        bool there = st->first <= m->busiest && st->last >= m->busiest;
        if (!st->banded && st->row_bytes && !again && there && m->net->buffers[b].bytes > m->p->largest_kept) {
            m->p->largest_kept = m->net->buffers[b].bytes;
            m->p->largest_kept_buffer = b;
        }
    }
}

enum vgk_status vg_program_make(struct vg_net *net, const struct vgk_backend *backend, struct vgk_device *device,
                                const struct vg_program_request *request, struct vg_program **program,
                                struct vgk_error *err)
{
    struct maker m = {.net = net, .backend = backend, .device = device, .request = request, .err = err};
    size_t n = (size_t)net->n_ops + 1, nb = (size_t)net->n_buffers + 1;
    enum vgk_status s = VGK_ERR_NOMEM;
    m.p = calloc(1, sizeof *m.p);
    m.need = calloc(n, sizeof *m.need);
    m.blocks = calloc(n, sizeof *m.blocks);
    m.place = calloc(n, sizeof *m.place);
    m.packed = calloc(n, sizeof *m.packed);
    m.packed_yet = calloc(n, sizeof *m.packed_yet);
    m.share = calloc(nb, sizeof *m.share);
    m.persistent = calloc(nb, sizeof *m.persistent);
    m.windows = calloc(nb, sizeof *m.windows);
    m.carries = calloc(nb, sizeof *m.carries);
    m.host = calloc(nb, sizeof *m.host);
    m.loaded = malloc(n * sizeof *m.loaded);
    if (!m.p || !m.need || !m.blocks || !m.place || !m.packed || !m.packed_yet || !m.share || !m.persistent || !m.windows ||
        !m.carries || !m.host || !m.loaded || !(m.p->inputs = calloc((size_t)net->n_inputs + 1, sizeof *m.p->inputs)) ||
        !(m.p->outputs = calloc((size_t)net->n_outputs + 1, sizeof *m.p->outputs))) {
        vgk_fail(err, s, "no memory to lay out the model");
        goto done;
    }
    m.p->bands = request->bands > 1 ? request->bands : 1;
    m.p->states = request->states;
    m.p->streams = request->stream;
    for (size_t i = 0; i < n; i++)
        m.loaded[i] = -1;
    if ((s = ask_all(&m)))
        goto done;
    if ((s = vg_blocks_find(net, m.need, request->rows, m.blocks))) {
        vgk_fail(err, s, "no memory to lay out the model");
        goto done;
    }
    struct vg_schedule_request how = {m.p->bands, m.blocks, request->recompute, request->spill};
    if ((s = vg_schedule_make(net, &how, &m.s, err)))
        goto done;
    m.p->levels = m.s->levels;
    if (!(m.scratches = calloc((size_t)m.s->n_positions + 1, sizeof *m.scratches)) ||
        !(m.loads = calloc((size_t)m.s->n_positions + 1, sizeof *m.loads)) || (s = ask_scratch(&m)) ||
        (s = lay_out(&m)) || (s = place_constants(&m)) || (s = lay_out_host(&m))) {
        if (s == VGK_OK || s == VGK_ERR_NOMEM || s == VGK_ERR_INVALID)
            s = vgk_fail(err, VGK_ERR_NOMEM, "no memory to lay out the model");
        goto done;
    }
    m.p->work = vg_price(net, m.s, m.need, m.share, backend->cache, m.p->moved);
    for (int i = 0; i < net->n_ops; i++)
        m.p->n_recomputed += m.s->runs[i] > 1;
    find_largest_kept(&m);
    if (request->measure)
        goto made;
    if ((s = vg_program_steps(&m))) {
        s = vgk_fail(err, VGK_ERR_NOMEM, "no memory to lay out the model");
        goto done;
    }
    if (!(m.p->memories = calloc((size_t)net->n_memories + 1, sizeof *m.p->memories))) {
        s = vgk_fail(err, VGK_ERR_NOMEM, "no memory to lay out the model");
        goto done;
    }
    for (int i = 0; i < net->n_memories; i++) {
        struct vg_operand now = vg_net_operand(net, net->memories[i].now), kept = vg_net_operand(net, net->memories[i].kept);
        m.p->memories[i].now.none = now.value < 0;
        m.p->memories[i].kept.none = kept.value < 0;
        if (now.value >= 0)
            vg_program_place(&m, &now, &m.p->memories[i].now);
        if (kept.value >= 0)
            vg_program_place(&m, &kept, &m.p->memories[i].kept);
    }
    if (request->output >= 0 &&
        (s = vg_net_analyse(net, request->output, m.blocks, &m.p->exact, err)))
        goto done;
made:
    m.p->net = net;
    *program = m.p;
    m.p = NULL;
done:
    vg_schedule_free(&m.s);
    vg_program_free(&m.p);
    free(m.constants.places);
    free(m.need);
    free(m.blocks);
    free(m.place);
    free(m.packed);
    free(m.packed_yet);
    free(m.share);
    free(m.persistent);
    free(m.windows);
    free(m.carries);
    free(m.scratches);
    free(m.loads);
    free(m.host);
    free(m.loaded);
    return s;
}
