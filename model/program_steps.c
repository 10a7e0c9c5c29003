/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a schedule's calls are with everything at its place. */
#include "program_internal.h"

#include <stdlib.h>

#include "rows.h"

void vg_program_place(const struct maker *m, const struct vg_operand *o, struct vg_place *p)
{
    const struct vg_net_value *v = &m->net->values[o->value];
    p->t = o->t;
    p->t.data = NULL;
    p->offset = m->p->weights +
                (m->persistent[v->buffer] ? m->windows[v->buffer].offset
                                          : m->p->persistent + m->windows[vg_program_root(m, v->buffer)].offset) +
                (size_t)o->offset * (vgk_type_bits(o->t.type) / 8);
}

void vg_program_restrict(const struct maker *m, const struct vg_call *c, struct vgk_op *op, struct vg_operand *in,
                          struct vg_operand *out)
{
    vg_rows_restrict(m->net, c, m->s->storage, op, in, out);
    if (op->kind == VGK_OP_CONV && c->begin == 0)
        op->p.conv.above = m->blocks[c->what].above;
}

static void make_op_step(struct maker *m, const struct vg_call *c, struct vg_step *step)
{
    const struct vg_net_op *op = &m->net->ops[c->what];
    struct vg_operand in[VG_MAX_OPERANDS], out;
    vg_program_restrict(m, c, &step->op, in, &out);
    step->op.n_in = op->n_in;
    step->op.n_out = 1;
    step->op.constant = vg_program_constants(m->net, op->in, op->n_in);
    step->node = op->node;
    for (int k = 0; k < op->n_in; k++) {
        step->in[k] = m->place[c->what][k];
        if (step->in[k].none)
            continue;
        if (!step->in[k].constant) {
            vg_program_place(m, &in[k], &step->in[k]);
            continue;
        }
        for (int d = 0; d < in[k].t.rank; d++) /* repeated down the rows that there are now */
            step->in[k].t.dim[d] = in[k].t.dim[d];
    }
    vg_program_place(m, &out, &step->out);
    step->packed = m->need[c->what].packed;
    step->packed_offset = m->packed[c->what];
    step->host_offset = SIZE_MAX;
    if (m->request->stream && step->packed) {
        step->host_offset = m->packed[c->what];
        step->packed_offset = m->p->weights + m->p->persistent + m->loads[c->position].offset;
    }
    step->packs = step->packed && !m->packed_yet[c->what];
    m->packed_yet[c->what] = true;
    step->scratch = m->scratches[c->position].bytes;
    step->scratch_offset = m->p->weights + m->p->persistent + m->scratches[c->position].offset;
}

/* Rows of the frame's input or output where they lie now. */
static void make_frame_step(struct maker *m, const struct vg_call *c, int value, struct vg_step *step)
{
    struct vg_operand o = vg_net_operand(m->net, value);
    const struct vg_net_value *v = &m->net->values[value];
    int y = v->axis[VG_Y];
    step->what = c->what;
    step->begin = c->begin;
    step->end = c->end;
    if (y >= 0) {
        o.offset += (c->begin - c->base[0]) * v->t.stride[y];
        o.t.dim[y] = c->end - c->begin;
    }
    vg_program_place(m, &o, c->type == VG_CALL_READ ? &step->out : &step->in[0]);
    step->scratch = m->scratches[c->position].bytes;
    step->scratch_offset = m->p->weights + m->p->persistent + m->scratches[c->position].offset;
}

static void make_copy_step(struct maker *m, const struct vg_call *c, struct vg_step *step)
{
    const struct vg_storage *st = &m->s->storage[c->what];
    size_t arena = m->p->weights + m->p->persistent, bytes = (size_t)(c->end - c->begin) * st->row_bytes;
    struct vg_place window = {.t = {.type = VGK_U8, .rank = 1, .dim = {(int64_t)bytes}, .stride = {1}}}, store = window;
    window.offset = arena + m->windows[c->what].offset + (size_t)(c->begin - c->base[0]) * st->row_bytes;
    store.offset = arena + m->carries[c->what].offset;
    step->op.kind = VGK_OP_COPY;
    step->op.n_in = step->op.n_out = 1;
    step->node = "carried rows";
    step->in[0] = c->type == VG_CALL_SAVE ? window : store;
    step->out = c->type == VG_CALL_SAVE ? store : window;
}

static void make_host_step(struct maker *m, const struct vg_call *c, struct vg_step *step)
{
    const struct vg_storage *st = &m->s->storage[c->what];
    step->node = "rows in host memory";
    step->packed = (size_t)(c->end - c->begin) * st->row_bytes;
    step->packed_offset = m->p->weights + m->p->persistent + m->windows[c->what].offset +
                          (size_t)(c->begin - c->base[0]) * st->row_bytes;
    step->host_offset = m->host[c->what] + (size_t)c->begin * st->row_bytes;
}

/* Before call i: the weights of its op, unless they are there, and then those of the op behind it, so that a device can
 * bring them while this one computes. */
static void make_loads(struct maker *m, int i)
{
    const struct vg_call *calls = m->s->calls;
    bool prologue = i < m->s->n_prologue;
    for (int k = i; k < (prologue ? m->s->n_prologue : m->s->n_calls); k++) {
        int ahead = calls[k].position - calls[i].position;
        if (ahead < 0 || ahead > 1) /* another band, or no neighbour: its place is not free yet */
            return;
        if (calls[k].type != VG_CALL_OP || (k > i && !ahead) || !m->need[calls[k].what].packed ||
            m->loaded[calls[k].what] == k)
            continue;
        struct vg_step *step = &m->p->steps[m->p->n_steps++];
        m->loaded[calls[k].what] = k;
        step->type = VG_CALL_LOAD;
        step->node = "weights in host memory";
        step->packed = m->need[calls[k].what].packed;
        step->packed_offset = m->p->weights + m->p->persistent + m->loads[calls[k].position].offset;
        step->host_offset = m->packed[calls[k].what];
        m->p->moved += prologue ? 0 : step->packed;
        if (k > i)
            return;
    }
}

enum vgk_status vg_program_steps(struct maker *m)
{
    const struct vg_net *net = m->net;
    const struct vg_schedule *s = m->s;
    size_t loads = m->request->stream ? (size_t)s->n_calls : 0;
    if (!(m->p->steps = calloc((size_t)s->n_calls + loads + 1, sizeof *m->p->steps)))
        return VGK_ERR_NOMEM;
    for (int i = 0; i < s->n_calls; i++) {
        const struct vg_call *c = &s->calls[i];
        if (i == s->n_prologue)
            m->p->n_prologue = m->p->n_steps;
        if (m->request->stream && c->type == VG_CALL_OP)
            make_loads(m, i);
        struct vg_step *step = &m->p->steps[m->p->n_steps++];
        step->type = c->type;
        switch (c->type) {
        case VG_CALL_OP: make_op_step(m, c, step); break;
        case VG_CALL_READ: make_frame_step(m, c, net->inputs[c->what], step); break;
        case VG_CALL_WRITE: make_frame_step(m, c, net->outputs[c->what], step); break;
        case VG_CALL_SAVE:
        case VG_CALL_RESTORE: make_copy_step(m, c, step); break;
        case VG_CALL_SPILL:
        case VG_CALL_FETCH: make_host_step(m, c, step); break;
        case VG_CALL_LOAD: break; /* schedules know of no weights */
        }
    }
    if (s->n_prologue == s->n_calls)
        m->p->n_prologue = m->p->n_steps;
    for (int i = 0; i < net->n_inputs; i++) {
        struct vg_operand o = vg_net_operand(net, net->inputs[i]);
        vg_program_place(m, &o, &m->p->inputs[i]);
    }
    for (int i = 0; i < net->n_outputs; i++)
        if (!net->values[net->outputs[i]].constant) {
            struct vg_operand o = vg_net_operand(net, net->outputs[i]);
            vg_program_place(m, &o, &m->p->outputs[i]);
        }
    return VGK_OK;
}
