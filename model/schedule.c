/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "schedule_internal.h"

#include "arithmetic.h"
#include "rows.h"

#include <stdlib.h>

void vg_schedule_free(struct vg_schedule **schedule)
{
    struct vg_schedule *s = *schedule;
    if (!s)
        return;
    free(s->calls);
    free(s->storage);
    free(s->runs);
    free(s);
    *schedule = NULL;
}

/* --- levels --- */

static bool find_levels(struct maker *m)
{
    const struct vg_net *net = m->net;
    int *level = calloc(net->n_buffers + 1, sizeof *level); /* at which a buffer is complete */
    if (!level)
        return false;
    for (int i = 0; i < net->n_ops; i++) {
        const struct vg_net_op *op = &net->ops[i];
        struct op *o = &m->o[i];
        if (op->dead || op->view)
            continue;
        const struct vg_net_value *out = &net->values[op->out.value];
        o->frame = out->frame;
        if (!o->frame)
            continue;
        o->whole = !vg_rows_can(net, op);
        for (int k = 0; k < op->n_in; k++) {
            if (op->in[k].value < 0 || net->values[op->in[k].value].constant)
                continue;
            int b = net->values[op->in[k].value].buffer, at = level[b];
            /* What comes in bands is complete only behind its level. */
            at += o->whole && net->values[op->in[k].value].frame && m->b[b].rows > 0;
            o->level = at > o->level ? at : o->level;
        }
        level[out->buffer] = o->level > level[out->buffer] ? o->level : level[out->buffer];
        m->s->levels = o->level + 1 > m->s->levels ? o->level + 1 : m->s->levels;
    }
    free(level);
    return true;
}

static bool find_buffers(struct maker *m)
{
    const struct vg_net *net = m->net;
    for (int i = 0; i < net->n_values; i++) {
        const struct vg_net_value *v = &net->values[i];
        if (v->constant || v->buffer < 0)
            continue;
        struct vg_storage *st = &m->s->storage[v->buffer];
        struct buffer *b = &m->b[v->buffer];
        b->unit = b->unit ? b->unit : 1;
        if (!v->frame || v->axis[VG_Y] < 0)
            continue;
        int64_t rows = v->t.dim[v->axis[VG_Y]];
        if (b->rows && b->rows != rows)
            return m->request->bands == 1; /* two heights in one buffer: only as a whole */
        b->rows = rows;
        st->row_bytes = rows ? net->buffers[v->buffer].bytes / (size_t)rows : 0;
    }
    for (int i = 0; i < net->n_ops; i++) {
        const struct vg_net_op *op = &net->ops[i];
        int b = op->dead || op->view ? -1 : net->values[op->out.value].buffer;
        if (b < 0)
            continue;
        m->b[b].unit = vg_lcm(m->b[b].unit, m->request->blocks[i].unit);
        m->b[b].above = m->request->blocks[i].above;
    }
    return true;
}

/* Spilled: what was asked for, is made in bands in one level and read in bands in a later one. */
static void find_spilled(struct maker *m)
{
    const struct vg_net *net = m->net;
    for (int b = 0; b < net->n_buffers && m->request->spill; b++) {
        m->b[b].spilled = m->request->spill[b] && m->request->bands > 1 && m->b[b].rows && m->b[b].input < 0 &&
                          !m->b[b].output;
        m->b[b].level = -1;
    }
    for (int i = 0; i < net->n_ops && m->request->spill; i++) {
        int b = m->o[i].frame ? vg_schedule_buffer(net, &net->ops[i], net->ops[i].n_in) : -1;
        if (b < 0)
            continue;
        m->b[b].spilled &= !m->o[i].whole && net->ops[i].op.kind != VGK_OP_MOMENTS &&
                           (m->b[b].level < 0 || m->b[b].level == m->o[i].level);
        m->b[b].level = m->o[i].level;
    }
    for (int i = 0; i < net->n_ops && m->request->spill; i++)
        for (int k = 0; m->o[i].frame && k < net->ops[i].n_in; k++) {
            int b = vg_schedule_buffer(net, &net->ops[i], k);
            if (b < 0 || !m->b[b].spilled)
                continue;
            m->b[b].spilled = !m->o[i].whole;
            m->s->storage[b].spilled |= m->o[i].level > m->b[b].level;
        }
    for (int b = 0; b < net->n_buffers && m->request->spill; b++) {
        struct vg_storage *st = &m->s->storage[b];
        m->b[b].spilled = st->spilled = st->spilled && m->b[b].spilled;
        st->host_first = st->host_last = m->b[b].level;
    }
}

/* Kept: what another level, a whole op or nobody but the caller reads; small things are always kept. */
static void find_kept(struct maker *m)
{
    const struct vg_net *net = m->net;
    int *made = malloc((net->n_buffers + 1) * sizeof *made);
    bool *read = calloc((size_t)net->n_buffers + 1, sizeof *read);
    if (!made || !read) {
        free(made);
        free(read);
        m->failed = true;
        return;
    }
    for (int b = 0; b < net->n_buffers; b++)
        made[b] = m->b[b].input >= 0 ? 0 : -1;
    for (int i = 0; i < net->n_ops; i++)
        if (m->o[i].frame && vg_schedule_buffer(net, &net->ops[i], net->ops[i].n_in) >= 0)
            made[vg_schedule_buffer(net, &net->ops[i], net->ops[i].n_in)] = m->o[i].level;
    for (int i = 0; i < net->n_ops; i++) {
        const struct vg_net_op *op = &net->ops[i];
        for (int k = 0; m->o[i].frame && k < op->n_in; k++) {
            int b = vg_schedule_buffer(net, op, k);
            if (b < 0 || made[b] < 0)
                continue;
            read[b] = true;
            bool again = (m->b[b].spilled || (m->request->recompute && m->request->recompute[b])) && !m->o[i].whole;
            if ((made[b] != m->o[i].level && !again) || (m->o[i].whole && m->b[b].rows))
                m->b[b].kept = true;
        }
        if (m->o[i].frame && (m->o[i].whole || op->op.kind == VGK_OP_MOMENTS))
            m->b[vg_schedule_buffer(net, op, op->n_in)].kept = true;
    }
    /* What nobody reads may be wanted by the next run; what has no rows comes at once. */
    for (int b = 0; b < net->n_buffers; b++)
        m->b[b].kept |= m->b[b].input >= 0 && (!m->b[b].rows || !read[b]);
    /* An output whose parts are made in several levels, or at once, is complete only in the end; so is one without
     * rows. */
    for (int b = 0; b < net->n_buffers; b++)
        made[b] = -1;
    for (int i = 0; i < net->n_ops; i++) {
        int b = m->o[i].frame ? vg_schedule_buffer(net, &net->ops[i], net->ops[i].n_in) : -1;
        if (b < 0 || !m->b[b].output)
            continue;
        m->b[b].at_end |= m->o[i].whole || !m->b[b].rows || (made[b] >= 0 && made[b] != m->o[i].level);
        made[b] = m->o[i].level;
    }
    for (int b = 0; b < net->n_buffers; b++) {
        m->b[b].at_end |= m->b[b].output && m->request->bands == 1;
        m->b[b].kept |= m->b[b].at_end;
    }
    for (int b = 0; b < net->n_buffers; b++)
        m->s->storage[b].banded = m->request->bands > 1 && m->b[b].rows > 0 && !m->b[b].kept;
    free(made);
    free(read);
}

/* --- calls --- */

struct vg_call *vg_schedule_add(struct maker *m, enum vg_call_type type, int what, int64_t begin, int64_t end,
                                int position)
{
    struct vg_schedule *s = m->s;
    if (s->n_calls == s->capacity) {
        int capacity = s->capacity ? 2 * s->capacity : 256;
        struct vg_call *c = realloc(s->calls, capacity * sizeof *c);
        if (!c) {
            m->failed = true;
            return NULL;
        }
        s->calls = c;
        s->capacity = capacity;
    }
    s->calls[s->n_calls] = (struct vg_call){.type = type, .what = what, .begin = begin, .end = end,
                                            .position = position};
    return &s->calls[s->n_calls++];
}

void vg_schedule_use(struct vg_storage *st, int first, int last)
{
    if (st->first < 0 || first < st->first)
        st->first = first;
    if (last > st->last)
        st->last = last;
}

int vg_schedule_buffer(const struct vg_net *net, const struct vg_net_op *op, int k)
{
    int v = k < op->n_in ? op->in[k].value : op->out.value;
    return v < 0 || net->values[v].constant ? -1 : net->values[v].buffer;
}

/* What is not written in bands. */
static void write_at_end(struct maker *m)
{
    const struct vg_net *net = m->net;
    int position = m->s->n_positions++;
    for (int i = 0; i < net->n_outputs; i++) {
        const struct vg_net_value *v = &net->values[net->outputs[i]];
        if (!v->frame || v->constant || !m->b[v->buffer].at_end)
            continue;
        vg_schedule_add(m, VG_CALL_WRITE, i, 0, v->axis[VG_Y] >= 0 ? v->t.dim[v->axis[VG_Y]] : 0, position);
        vg_schedule_use(&m->s->storage[v->buffer], position, position);
    }
}

/* Everything at once: each op over the whole frame, in the order of the net. */
static void run_whole(struct maker *m)
{
    const struct vg_net *net = m->net;
    int first = m->s->n_positions, position = first;
    for (int i = 0; i < net->n_inputs; i++) {
        const struct vg_net_value *v = &net->values[net->inputs[i]];
        if (!v->frame)
            continue;
        vg_schedule_add(m, VG_CALL_READ, i, 0, m->b[v->buffer].rows, first);
        vg_schedule_use(&m->s->storage[v->buffer], first, first);
    }
    for (int i = 0; i < net->n_ops; i++) {
        const struct vg_net_op *op = &net->ops[i];
        if (!m->o[i].frame)
            continue;
        struct vg_call *c = vg_schedule_add(m, VG_CALL_OP, i, 0, 0, ++position);
        if (c)
            c->all = true;
        m->s->runs[i]++;
        for (int k = 0; k <= op->n_in; k++)
            if (vg_schedule_buffer(net, op, k) >= 0)
                vg_schedule_use(&m->s->storage[vg_schedule_buffer(net, op, k)], position, position);
    }
    m->s->n_positions = position + 1;
    write_at_end(m);
}

enum vgk_status vg_schedule_make(const struct vg_net *net, const struct vg_schedule_request *request,
                                 struct vg_schedule **schedule, struct vgk_error *err)
{
    struct vg_schedule *s = calloc(1, sizeof *s);
    struct maker m = {.net = net, .request = request, .s = s};
    m.b = calloc(net->n_buffers + 1, sizeof *m.b);
    m.o = calloc(net->n_ops + 1, sizeof *m.o);
    m.members = calloc(net->n_ops + 1, sizeof *m.members);
    m.near = calloc(net->n_buffers + 1, sizeof *m.near);
    bool picture = false, through = false;
    enum vgk_status status = VGK_ERR_NOMEM;
    if (!s || !m.b || !m.o || !m.members || !m.near || !(s->storage = calloc(net->n_buffers + 1, sizeof *s->storage)) ||
        !(s->runs = calloc(net->n_ops + 1, sizeof *s->runs)))
        goto done;
    for (int b = 0; b < net->n_buffers; b++)
        s->storage[b] = (struct vg_storage){.first = -1, .last = -1, .carry_first = -1, .carry_last = -1};
    s->bands = request->bands;
    for (int b = 0; b < net->n_buffers; b++)
        m.b[b].input = -1;
    for (int i = 0; i < net->n_inputs; i++)
        if (net->values[net->inputs[i]].frame)
            m.b[net->values[net->inputs[i]].buffer].input = i;
    for (int i = 0; i < net->n_outputs; i++) {
        const struct vg_net_value *v = &net->values[net->outputs[i]];
        if (v->constant)
            continue;
        m.b[v->buffer].output = true;
        picture |= v->frame && v->axis[VG_Y] >= 0;
        through |= m.b[v->buffer].input >= 0;
    }
    if (!find_buffers(&m)) {
        status = vgk_fail(err, VGK_ERR_UNSUPPORTED, "one buffer holds pictures of two heights");
        goto done;
    }
    if (!find_levels(&m))
        goto done;
    find_spilled(&m);
    find_kept(&m);
    if (request->bands > 1 && (!picture || through)) {
        status = vgk_fail(err, VGK_ERR_UNSUPPORTED, "bands are for nets with a picture as output that is none of the "
                          "inputs");
        goto done;
    }
    /* The prologue: by position too, and before everything. */
    for (int i = 0; i < net->n_ops && !m.failed; i++) {
        const struct vg_net_op *op = &net->ops[i];
        if (op->dead || op->view || m.o[i].frame)
            continue;
        struct vg_call *c = vg_schedule_add(&m, VG_CALL_OP, i, 0, 0, s->n_positions);
        if (c)
            c->all = true;
        for (int k = 0; k <= op->n_in; k++)
            if (vg_schedule_buffer(net, op, k) >= 0)
                vg_schedule_use(&s->storage[vg_schedule_buffer(net, op, k)], s->n_positions, s->n_positions);
        s->n_positions++;
        s->n_prologue++;
        s->runs[i]++;
    }
    for (int b = 0; b < net->n_buffers; b++)
        if (m.b[b].input >= 0 && m.b[b].unit % 2)
            m.b[b].unit *= 2; /* pairs of rows share chroma */
    if (request->bands == 1)
        run_whole(&m);
    for (int level = 0; level < s->levels && request->bands > 1 && !m.failed; level++)
        vg_schedule_level(&m, level);
    if (request->bands > 1)
        write_at_end(&m);
    if (!m.failed) {
        *schedule = s;
        s = NULL;
        status = VGK_OK;
    }
done:
    if (status == VGK_ERR_NOMEM)
        vgk_fail(err, status, "no memory to schedule the model");
    vg_schedule_free(&s);
    free(m.b);
    free(m.o);
    free(m.members);
    free(m.near);
    return status;
}
