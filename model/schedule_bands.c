/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bands of rows: which rows of what come when, and what is carried from one to the next. */
#include "schedule_internal.h"

#include "rows.h"

#include <stdlib.h>
#include <string.h>

/* Rows that a buffer can have come to, n or more. */
static int64_t up(int64_t n, const struct buffer *b)
{
    n = (n + b->above + b->unit - 1) / b->unit * b->unit - b->above;
    return n < b->rows ? n : b->rows;
}

/* A level that comes after the one in which it was made gets it from host memory. */
static bool fetched(const struct maker *m, int b) { return m->b[b].spilled && m->b[b].level < m->level; }

/* The window comes back from its carry store before anyone touches it. */
static void touch(struct maker *m, int b, int position)
{
    struct buffer *buf = &m->b[b];
    struct vg_storage *st = &m->s->storage[b];
    if (!st->banded || buf->restored || !buf->inside)
        return;
    buf->restored = true;
    if (buf->made > buf->base) {
        struct vg_call *c = vg_schedule_add(m, VG_CALL_RESTORE, b, buf->base, buf->made, position);
        if (c)
            c->base[0] = buf->base;
    }
}

static void leave(struct maker *m, int b, int position)
{
    struct buffer *buf = &m->b[b];
    if (m->s->storage[b].banded && buf->inside && buf->want > buf->next) {
        struct vg_call *c = vg_schedule_add(m, VG_CALL_SAVE, b, buf->next, buf->want, position);
        if (c)
            c->base[0] = buf->base;
    }
}

/* The rows of this band are complete: to host memory, or out of the net. */
static void write(struct maker *m, int b, int position)
{
    const struct vg_net *net = m->net;
    const struct buffer *buf = &m->b[b];
    struct vg_call *c = buf->spilled ? vg_schedule_add(m, VG_CALL_SPILL, b, buf->made, buf->want, position) : NULL;
    if (c)
        c->base[0] = buf->base;
    for (int i = 0; i < net->n_outputs && buf->output && !buf->at_end; i++) {
        const struct vg_net_value *v = &net->values[net->outputs[i]];
        if (!v->constant && v->buffer == b &&
            (c = vg_schedule_add(m, VG_CALL_WRITE, i, buf->made, buf->want, position)))
            c->base[0] = m->s->storage[b].banded ? buf->base : 0;
    }
}

/* One band of the level: everything up to the rows wanted. */
static void run_band(struct maker *m, int first_position)
{
    const struct vg_net *net = m->net;
    int position = first_position;
    for (int j = 0; j < m->n_near; j++) {
        int b = m->near[j];
        m->b[b].restored = false;
        m->b[b].last_touch = -1;
        m->b[b].next = m->b[b].want; /* lowered by readers that are not done */
    }
    for (int j = 0; j < m->n_members; j++) {
        int i = m->members[j];
        const struct vg_net_op *op = &net->ops[i];
        if (m->o[i].whole)
            continue;
        struct buffer *out = &m->b[vg_schedule_buffer(net, op, op->n_in)];
        for (int k = 0; k <= op->n_in; k++) {
            int b = vg_schedule_buffer(net, op, k);
            if (b >= 0 && out->want > m->o[i].done)
                m->b[b].last_touch = i;
            if (b < 0 || k == op->n_in || !m->b[b].inside || vg_rows_buffer(m->net, &op->in[k]) < 0 ||
                out->want >= out->rows)
                continue;
            int64_t lo, hi;
            vg_rows_needed(&op->in[k], out->want, out->want + 1, m->b[b].rows, &lo, &hi);
            m->b[b].next = lo < m->b[b].next ? lo : m->b[b].next;
        }
    }
    for (int j = 0; j < m->n_near; j++) {
        int b = m->near[j];
        struct buffer *in = &m->b[b];
        if ((in->input < 0 && !fetched(m, b)) || !in->inside || in->want <= in->made)
            continue;
        touch(m, b, position);
        struct vg_call *c = vg_schedule_add(m, in->input >= 0 ? VG_CALL_READ : VG_CALL_FETCH,
                                            in->input >= 0 ? in->input : b, in->made, in->want, position);
        if (c)
            c->base[0] = m->s->storage[b].banded ? in->base : 0;
        if (in->last_touch < 0) /* read ahead of its readers */
            leave(m, b, position);
    }
    for (int j = 0; j < m->n_members; j++) {
        int i = m->members[j];
        const struct vg_net_op *op = &net->ops[i];
        position++;
        struct buffer *out = &m->b[vg_schedule_buffer(net, op, op->n_in)];
        if (m->o[i].whole ? m->o[i].done : out->want <= m->o[i].done)
            continue;
        for (int k = 0; k <= op->n_in; k++)
            if (vg_schedule_buffer(net, op, k) >= 0)
                touch(m, vg_schedule_buffer(net, op, k), position);
        struct vg_call *c = vg_schedule_add(m, VG_CALL_OP, i, m->o[i].done, out->want, position);
        if (!c)
            return;
        c->all = m->o[i].whole;
        for (int k = 0; k <= op->n_in; k++) {
            int b = vg_schedule_buffer(net, op, k);
            c->base[k == op->n_in ? VG_MAX_OPERANDS : k] = b >= 0 && m->s->storage[b].banded ? m->b[b].base : 0;
        }
        m->o[i].done = m->o[i].whole ? 1 : out->want;
        if (out->last_writer == i && !m->o[i].whole)
            write(m, vg_schedule_buffer(net, op, op->n_in), position);
        for (int k = 0; k <= op->n_in; k++) {
            int b = vg_schedule_buffer(net, op, k);
            if (b >= 0 && m->b[b].last_touch == i && !m->o[i].whole) {
                m->b[b].last_touch = -1; /* an op may touch it twice */
                leave(m, b, position);
            }
        }
    }
    for (int j = 0; j < m->n_near; j++) {
        struct buffer *buf = &m->b[m->near[j]];
        struct vg_storage *st = &m->s->storage[m->near[j]];
        if (!buf->inside)
            continue;
        if (buf->want - buf->base > st->window)
            st->window = buf->want - buf->base;
        if (buf->want - buf->next > st->carry)
            st->carry = buf->want - buf->next;
        buf->made = buf->want;
        buf->base = buf->next;
    }
}

/* How far each buffer must have come one band before `want`, looking back from the end: as late as its readers allow,
 * so that little is held, but never more than a share of rows in one band, so that no window grows while the pipeline
 * fills.  False when all is back at the beginning. */
static bool step_back(const struct maker *m, int64_t *want)
{
    const struct vg_net *net = m->net;
    int64_t bands = m->request->bands;
    bool any = false;
    for (int j = 0; j < m->n_near; j++) {
        int b = m->near[j];
        const struct buffer *buf = &m->b[b];
        int64_t share = (buf->rows + bands * buf->unit - 1) / (bands * buf->unit) * buf->unit;
        if (!buf->inside)
            continue;
        want[b] = want[b] > share ? up(want[b] - share, buf) : 0;
    }
    for (int j = m->n_members - 1; j >= 0; j--) {
        int i = m->members[j];
        const struct vg_net_op *op = &net->ops[i];
        if (m->o[i].whole)
            continue;
        int64_t out = want[vg_schedule_buffer(net, op, op->n_in)];
        for (int k = 0; k < op->n_in && out > 0; k++) {
            int b = vg_rows_buffer(net, &op->in[k]);
            int64_t lo, hi;
            if (b < 0 || !m->b[b].inside)
                continue;
            vg_rows_needed(&op->in[k], out - 1, out, m->b[b].rows, &lo, &hi);
            hi = up(hi, &m->b[b]);
            want[b] = hi > want[b] ? hi : want[b];
        }
    }
    for (int j = 0; j < m->n_near; j++)
        any |= m->b[m->near[j]].inside && want[m->near[j]] > 0;
    return any;
}

/* All bands of a level. */
static void run_bands(struct maker *m, int first_position)
{
    size_t nb = (size_t)m->net->n_buffers, n = 1, capacity = 64;
    int64_t *want = malloc((nb + 1) * capacity * sizeof *want);
    for (size_t b = 0; b < nb && want; b++)
        want[b] = m->b[b].inside ? m->b[b].rows : m->b[b].made;
    for (bool more = want != NULL; more && n < 65536;) {
        if (n == capacity) {
            int64_t *w = realloc(want, (nb + 1) * 2 * capacity * sizeof *want);
            if (!w)
                break;
            want = w;
            capacity *= 2;
        }
        memcpy(want + n * nb, want + (n - 1) * nb, nb * sizeof *want);
        more = step_back(m, want + n * nb);
        n += more;
        if (!more) { /* from the first band on */
            for (size_t i = n; i-- > 0 && !m->failed;) {
                for (int j = 0; j < m->n_near; j++)
                    m->b[m->near[j]].want = want[i * nb + (size_t)m->near[j]];
                run_band(m, first_position);
            }
            free(want);
            return;
        }
    }
    free(want);
    m->failed = true;
}

/* Ops of earlier levels whose result is not kept run again. */
static void recall(struct maker *m, int buffer)
{
    for (int i = m->net->n_ops - 1; i >= 0; i--) {
        const struct vg_net_op *op = &m->net->ops[i];
        if (op->dead || op->view || !m->o[i].frame || m->o[i].member ||
            vg_schedule_buffer(m->net, op, op->n_in) != buffer)
            continue;
        m->o[i].member = true;
        for (int k = 0; k < op->n_in; k++) {
            int b = vg_schedule_buffer(m->net, op, k);
            if (b >= 0 && m->b[b].rows && !m->b[b].kept && !fetched(m, b) && m->net->values[op->in[k].value].frame)
                recall(m, b);
        }
    }
}

static void list_near(struct maker *m)
{
    bool *seen = calloc((size_t)m->net->n_buffers + 1, sizeof *seen);
    m->n_members = m->n_near = 0;
    if (!seen) {
        m->failed = true;
        return;
    }
    for (int b = 0; b < m->net->n_buffers; b++)
        seen[b] = m->b[b].input >= 0; /* also where nobody reads it now */
    for (int i = 0; i < m->net->n_ops; i++) {
        if (!m->o[i].member)
            continue;
        m->members[m->n_members++] = i;
        for (int k = 0; k <= m->net->ops[i].n_in; k++)
            if (vg_schedule_buffer(m->net, &m->net->ops[i], k) >= 0)
                seen[vg_schedule_buffer(m->net, &m->net->ops[i], k)] = true;
    }
    for (int b = 0; b < m->net->n_buffers; b++)
        if (seen[b])
            m->near[m->n_near++] = b;
    free(seen);
}

void vg_schedule_level(struct maker *m, int level)
{
    const struct vg_net *net = m->net;
    int first = m->s->n_positions, members = 0;
    m->level = level;
    for (int b = 0; b < net->n_buffers; b++)
        m->b[b].inside = false;
    for (int i = 0; i < net->n_ops; i++) {
        m->o[i].member = m->o[i].frame && m->o[i].level == level;
        m->o[i].done = 0;
    }
    for (int i = net->n_ops - 1; i >= 0; i--) {
        const struct vg_net_op *op = &net->ops[i];
        if (!m->o[i].member || m->o[i].level != level)
            continue;
        for (int k = 0; k < op->n_in; k++) {
            int b = vg_schedule_buffer(net, op, k);
            if (b >= 0 && m->b[b].rows && !m->b[b].kept && !fetched(m, b) && net->values[op->in[k].value].frame)
                recall(m, b);
        }
    }
    for (int i = 0; i < net->n_ops; i++) {
        if (!m->o[i].member)
            continue;
        const struct vg_net_op *op = &net->ops[i];
        members++;
        m->s->runs[i]++;
        for (int k = 0; k <= op->n_in; k++) {
            int b = vg_schedule_buffer(net, op, k);
            bool comes_here = k == op->n_in || (b >= 0 && (m->b[b].input >= 0 || fetched(m, b)));
            if (b >= 0 && comes_here && m->b[b].rows && !m->o[i].whole) {
                m->b[b].inside = true;
                m->b[b].made = m->b[b].base = 0;
            }
            if (k == op->n_in && b >= 0)
                m->b[b].last_writer = i;
        }
    }
    for (int b = 0; b < net->n_buffers; b++)
        if (m->b[b].input >= 0 && m->b[b].kept) { /* read once, also when all of its readers are in later levels */
            m->b[b].inside = level == 0 && m->b[b].rows;
            m->b[b].made = level == 0 ? 0 : m->b[b].rows;
            if (level == 0 && !m->b[b].rows) {
                vg_schedule_add(m, VG_CALL_READ, m->b[b].input, 0, 0, first);
                vg_schedule_use(&m->s->storage[b], first, first);
            }
        }
    list_near(m);
    run_bands(m, first);
    /* Lifetimes: windows by position; what is kept lives through the level when there are bands. */
    int position = first, last = first + members;
    for (int i = 0; i < net->n_ops; i++) {
        if (!m->o[i].member)
            continue;
        position++;
        for (int k = 0; k <= net->ops[i].n_in; k++) {
            int b = vg_schedule_buffer(net, &net->ops[i], k);
            if (b < 0)
                continue;
            struct vg_storage *st = &m->s->storage[b];
            if (st->banded)
                vg_schedule_use(st, position, position);
            else
                vg_schedule_use(st, first, last);
            if (st->banded && st->carry) {
                st->carry_first = st->carry_first < 0 ? first : st->carry_first;
                st->carry_last = last;
            }
        }
    }
    for (int b = 0; b < net->n_buffers; b++)
        if (m->b[b].inside && (m->b[b].input >= 0 || fetched(m, b))) {
            vg_schedule_use(&m->s->storage[b], first, first);
            if (m->b[b].input < 0)
                m->s->storage[b].host_last = level;
        }
    m->s->n_positions = last + 1;
}
