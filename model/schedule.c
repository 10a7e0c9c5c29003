/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rows.h"

#include "arithmetic.h"

#include <stdlib.h>
#include <string.h>

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

/* --- what is known of buffers and ops --- */

struct buffer {
    int64_t rows, unit, above; /* 0 rows: not of the frame's rows; blocks.h */
    int input;           /* of the net, a picture; -1 = none */
    bool output;         /* an output of the net lies in it */
    bool at_end;         /* and is written behind the last level */
    bool kept;           /* stored whole across levels */
    bool spilled;        /* stored in host memory across levels */
    int level;           /* in which it is made, if it is spilled */
    int last_writer;     /* op of the level that runs */
    /* while a level runs */
    bool inside;         /* made in this level, in bands */
    int64_t made, base, want, next;
    bool restored;
    int last_touch;      /* op that touches it last in this band */
};

struct op {
    bool frame;  /* depends on the frame: not in the prologue */
    bool whole;  /* reads all of its inputs before it begins */
    bool member; /* of the level that runs */
    int level;
    int64_t done;
};

struct maker {
    const struct vg_net *net;
    const struct vg_schedule_request *request;
    struct vg_schedule *s;
    struct buffer *b;
    struct op *o;
    int level;         /* that runs, with the ops and buffers that it touches */
    int *members, n_members, *near, n_near;
    bool failed;
};

/* Rows that a buffer can have come to, n or more. */
static int64_t up(int64_t n, const struct buffer *b)
{
    n = (n + b->above + b->unit - 1) / b->unit * b->unit - b->above;
    return n < b->rows ? n : b->rows;
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

/* --- calls --- */

static struct vg_call *add(struct maker *m, enum vg_call_type type, int what, int64_t begin, int64_t end, int position)
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

static void use(struct vg_storage *st, int first, int last)
{
    if (st->first < 0 || first < st->first)
        st->first = first;
    if (last > st->last)
        st->last = last;
}

/* Every buffer that an op touches, with the rows or without. */
static int buffer_at(const struct vg_net *net, const struct vg_net_op *op, int k)
{
    int v = k < op->n_in ? op->in[k].value : op->out.value;
    return v < 0 || net->values[v].constant ? -1 : net->values[v].buffer;
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
        struct vg_call *c = add(m, VG_CALL_RESTORE, b, buf->base, buf->made, position);
        if (c)
            c->base[0] = buf->base;
    }
}

static void leave(struct maker *m, int b, int position)
{
    struct buffer *buf = &m->b[b];
    if (m->s->storage[b].banded && buf->inside && buf->want > buf->next) {
        struct vg_call *c = add(m, VG_CALL_SAVE, b, buf->next, buf->want, position);
        if (c)
            c->base[0] = buf->base;
    }
}

/* The rows of this band are complete: to host memory, or out of the net. */
static void write(struct maker *m, int b, int position)
{
    const struct vg_net *net = m->net;
    const struct buffer *buf = &m->b[b];
    struct vg_call *c = buf->spilled ? add(m, VG_CALL_SPILL, b, buf->made, buf->want, position) : NULL;
    if (c)
        c->base[0] = buf->base;
    for (int i = 0; i < net->n_outputs && buf->output && !buf->at_end; i++) {
        const struct vg_net_value *v = &net->values[net->outputs[i]];
        if (!v->constant && v->buffer == b && (c = add(m, VG_CALL_WRITE, i, buf->made, buf->want, position)))
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
        struct buffer *out = &m->b[buffer_at(net, op, op->n_in)];
        for (int k = 0; k <= op->n_in; k++) {
            int b = buffer_at(net, op, k);
            if (b >= 0 && out->want > m->o[i].done)
                m->b[b].last_touch = i;
            if (b < 0 || k == op->n_in || !m->b[b].inside || vg_rows_buffer(m->net, &op->in[k]) < 0 || out->want >= out->rows)
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
        struct vg_call *c = add(m, in->input >= 0 ? VG_CALL_READ : VG_CALL_FETCH, in->input >= 0 ? in->input : b, in->made,
                                in->want, position);
        if (c)
            c->base[0] = m->s->storage[b].banded ? in->base : 0;
        if (in->last_touch < 0) /* read ahead of its readers */
            leave(m, b, position);
    }
    for (int j = 0; j < m->n_members; j++) {
        int i = m->members[j];
        const struct vg_net_op *op = &net->ops[i];
        position++;
        struct buffer *out = &m->b[buffer_at(net, op, op->n_in)];
        if (m->o[i].whole ? m->o[i].done : out->want <= m->o[i].done)
            continue;
        for (int k = 0; k <= op->n_in; k++)
            if (buffer_at(net, op, k) >= 0)
                touch(m, buffer_at(net, op, k), position);
        struct vg_call *c = add(m, VG_CALL_OP, i, m->o[i].done, out->want, position);
        if (!c)
            return;
        c->all = m->o[i].whole;
        for (int k = 0; k <= op->n_in; k++) {
            int b = buffer_at(net, op, k);
            c->base[k == op->n_in ? VG_MAX_OPERANDS : k] = b >= 0 && m->s->storage[b].banded ? m->b[b].base : 0;
        }
        m->o[i].done = m->o[i].whole ? 1 : out->want;
        if (out->last_writer == i && !m->o[i].whole)
            write(m, buffer_at(net, op, op->n_in), position);
        for (int k = 0; k <= op->n_in; k++) {
            int b = buffer_at(net, op, k);
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
        int64_t out = want[buffer_at(net, op, op->n_in)];
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
        if (op->dead || op->view || !m->o[i].frame || m->o[i].member || buffer_at(m->net, op, op->n_in) != buffer)
            continue;
        m->o[i].member = true;
        for (int k = 0; k < op->n_in; k++) {
            int b = buffer_at(m->net, op, k);
            if (b >= 0 && m->b[b].rows && !m->b[b].kept && !fetched(m, b) && m->net->values[op->in[k].value].frame)
                recall(m, b);
        }
    }
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
        add(m, VG_CALL_WRITE, i, 0, v->axis[VG_Y] >= 0 ? v->t.dim[v->axis[VG_Y]] : 0, position);
        use(&m->s->storage[v->buffer], position, position);
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
        add(m, VG_CALL_READ, i, 0, m->b[v->buffer].rows, first);
        use(&m->s->storage[v->buffer], first, first);
    }
    for (int i = 0; i < net->n_ops; i++) {
        const struct vg_net_op *op = &net->ops[i];
        if (!m->o[i].frame)
            continue;
        struct vg_call *c = add(m, VG_CALL_OP, i, 0, 0, ++position);
        if (c)
            c->all = true;
        m->s->runs[i]++;
        for (int k = 0; k <= op->n_in; k++)
            if (buffer_at(net, op, k) >= 0)
                use(&m->s->storage[buffer_at(net, op, k)], position, position);
    }
    m->s->n_positions = position + 1;
    write_at_end(m);
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
            if (buffer_at(m->net, &m->net->ops[i], k) >= 0)
                seen[buffer_at(m->net, &m->net->ops[i], k)] = true;
    }
    for (int b = 0; b < m->net->n_buffers; b++)
        if (seen[b])
            m->near[m->n_near++] = b;
    free(seen);
}

static void run_level(struct maker *m, int level)
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
            int b = buffer_at(net, op, k);
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
            int b = buffer_at(net, op, k);
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
                add(m, VG_CALL_READ, m->b[b].input, 0, 0, first);
                use(&m->s->storage[b], first, first);
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
            int b = buffer_at(net, &net->ops[i], k);
            if (b < 0)
                continue;
            struct vg_storage *st = &m->s->storage[b];
            if (st->banded)
                use(st, position, position);
            else
                use(st, first, last);
            if (st->banded && st->carry) {
                st->carry_first = st->carry_first < 0 ? first : st->carry_first;
                st->carry_last = last;
            }
        }
    }
    for (int b = 0; b < net->n_buffers; b++)
        if (m->b[b].inside && (m->b[b].input >= 0 || fetched(m, b))) {
            use(&m->s->storage[b], first, first);
            if (m->b[b].input < 0)
                m->s->storage[b].host_last = level;
        }
    m->s->n_positions = last + 1;
}

/* Spilled: what was asked for, is made in bands in one level and read in bands in a later one. */
static void find_spilled(struct maker *m)
{
    const struct vg_net *net = m->net;
    for (int b = 0; b < net->n_buffers && m->request->spill; b++) {
        m->b[b].spilled = m->request->spill[b] && m->request->bands > 1 && m->b[b].rows && m->b[b].input < 0 && !m->b[b].output;
        m->b[b].level = -1;
    }
    for (int i = 0; i < net->n_ops && m->request->spill; i++) {
        int b = m->o[i].frame ? buffer_at(net, &net->ops[i], net->ops[i].n_in) : -1;
        if (b < 0)
            continue;
        m->b[b].spilled &= !m->o[i].whole && net->ops[i].op.kind != VGK_OP_MOMENTS &&
                           (m->b[b].level < 0 || m->b[b].level == m->o[i].level);
        m->b[b].level = m->o[i].level;
    }
    for (int i = 0; i < net->n_ops && m->request->spill; i++)
        for (int k = 0; m->o[i].frame && k < net->ops[i].n_in; k++) {
            int b = buffer_at(net, &net->ops[i], k);
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
        if (m->o[i].frame && buffer_at(net, &net->ops[i], net->ops[i].n_in) >= 0)
            made[buffer_at(net, &net->ops[i], net->ops[i].n_in)] = m->o[i].level;
    for (int i = 0; i < net->n_ops; i++) {
        const struct vg_net_op *op = &net->ops[i];
        for (int k = 0; m->o[i].frame && k < op->n_in; k++) {
            int b = buffer_at(net, op, k);
            if (b < 0 || made[b] < 0)
                continue;
            read[b] = true;
            bool again = (m->b[b].spilled || (m->request->recompute && m->request->recompute[b])) && !m->o[i].whole;
            if ((made[b] != m->o[i].level && !again) || (m->o[i].whole && m->b[b].rows))
                m->b[b].kept = true;
        }
        if (m->o[i].frame && (m->o[i].whole || op->op.kind == VGK_OP_MOMENTS))
            m->b[buffer_at(net, op, op->n_in)].kept = true;
    }
    /* What nobody reads may be wanted by the next run; what has no rows comes at once. */
    for (int b = 0; b < net->n_buffers; b++)
        m->b[b].kept |= m->b[b].input >= 0 && (!m->b[b].rows || !read[b]);
    /* An output whose parts are made in several levels, or at once, is complete only in the end; so is one without rows. */
    for (int b = 0; b < net->n_buffers; b++)
        made[b] = -1;
    for (int i = 0; i < net->n_ops; i++) {
        int b = m->o[i].frame ? buffer_at(net, &net->ops[i], net->ops[i].n_in) : -1;
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
        status = vgk_fail(err, VGK_ERR_UNSUPPORTED, "bands are for nets with a picture as output that is none of the inputs");
        goto done;
    }
    /* The prologue: by position too, and before everything. */
    for (int i = 0; i < net->n_ops && !m.failed; i++) {
        const struct vg_net_op *op = &net->ops[i];
        if (op->dead || op->view || m.o[i].frame)
            continue;
        struct vg_call *c = add(&m, VG_CALL_OP, i, 0, 0, s->n_positions);
        if (c)
            c->all = true;
        for (int k = 0; k <= op->n_in; k++)
            if (buffer_at(net, op, k) >= 0)
                use(&s->storage[buffer_at(net, op, k)], s->n_positions, s->n_positions);
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
        run_level(&m, level);
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
