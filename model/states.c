/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "states.h"

#include <stdlib.h>
#include <string.h>

#include "plan_internal.h"
#include "transfer.h"

/* --- scales --- */

static const int scales[][2] = {{1, 1}, {1, 2}, {1, 4}, {1, 8}, {1, 16}, {1, 32}, {2, 1}, {4, 1}};
enum { N_SCALES = sizeof scales / sizeof *scales, MAX_GROUPS = 4 };

/* States whose rows have one name in the file have one scale. */
static bool same_group(const struct vg_model *m, int a, int b)
{
    const int i = m->roles.states[a].input, k = m->roles.states[b].input;
    const char *x = m->graph->values[m->graph->inputs[i]].dim_name[m->roles.inputs[i].size.axis[VG_Y]];
    const char *y = m->graph->values[m->graph->inputs[k]].dim_name[m->roles.inputs[k].size.axis[VG_Y]];
    return a == b || (x && y && !strcmp(x, y));
}

enum vgk_status vg_model_find_scales(struct vg_model *m, int size, struct vgk_error *err)
{
    struct vg_roles *r = &m->roles;
    int leader[MAX_GROUPS], n = 0, tries = 1;
    for (int i = 0; i < r->n_states; i++) {
        int k = 0;
        while (k < n && !same_group(m, leader[k], i))
            k++;
        if (r->states[i].scale_known || k < n)
            continue;
        if (n == MAX_GROUPS)
            return vgk_fail(err, VGK_ERR_UNSUPPORTED,
                            "%s: the sizes of its states are not told; give them in the .modelinfo "
                            "file, such as %s-scale=1/2",
                            m->summary.path, m->graph->values[m->graph->inputs[r->states[i].input]].name);
        leader[n++] = i;
        tries *= N_SCALES;
    }
    for (int t = 0; t < tries && n; t++) {
        struct vg_net *net = NULL;
        for (int i = 0; i < r->n_states; i++) {
            int digit = t;
            for (int k = 0; k < n && !r->states[i].scale_known; k++, digit /= N_SCALES)
                for (int a = 0; same_group(m, leader[k], i) && a < VG_AXES; a++) {
                    r->inputs[r->states[i].input].size.num[a] = scales[digit % N_SCALES][0];
                    r->inputs[r->states[i].input].size.den[a] = scales[digit % N_SCALES][1];
                }
        }
        enum vgk_status s = vg_model_bind(m, size, size, 0, false, VG_NORM_OWN, &net, t ? NULL : err);
        vg_net_free(&net);
        if (s == VGK_OK || s == VGK_ERR_NOMEM)
            return s;
    }
    return n ? VGK_ERR_INVALID : VGK_OK; /* err: why it does not go at the frame's own size */
}

/* --- where they lie --- */

/* Of a map, the dimension that is neither the batch nor rows nor columns. */
static int planes_dim(const struct vg_input_size *size)
{
    int d = 1;
    while (d == size->axis[VG_X] || d == size->axis[VG_Y])
        d++;
    return d;
}

static int extent(const struct vg_axis *a) { return a->origin[a->n - 1] + a->tile; }

enum vgk_status vg_states_lay_out(const struct vg_model *m, const struct vg_grid *g, struct vg_states *s,
                                  struct vgk_error *err)
{
    const struct vg_roles *r = &m->roles;
    vg_states_free(s);
    s->state = calloc((size_t)r->n_states + 1, sizeof *s->state);
    s->map = calloc((size_t)m->graph->n_inputs + 1, sizeof *s->map);
    if (!s->state || !s->map)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for the plan");
    for (int i = 0; i < r->n_states; i++) {
        const struct vg_input_size *size = &r->inputs[r->states[i].input].size;
        int64_t dim[VGK_MAX_RANK];
        size_t bytes;
        memcpy(dim, size->dim, sizeof dim);
        for (int a = 0; a < VG_AXES; a++)
            if (size->axis[a] >= 0)
                dim[size->axis[a]] = (int64_t)extent(a == VG_X ? &g->x : &g->y) * size->num[a] / size->den[a];
        struct vgk_tensor *t = &s->state[i].t;
        enum vgk_type type = m->graph->values[m->graph->inputs[r->states[i].input]].tensor.type;
        *t = vgk_tensor_make(vg_bind_type(type), size->rank, dim,
                             size->axis[VG_X] >= 2 && size->rank >= 4 ? VGK_CHANNELS_LAST : VGK_ROW_MAJOR);
        if (!vgk_tensor_bytes(t, &bytes))
            return vgk_fail(err, VGK_ERR_INVALID, "%s: a state of a frame this large does not fit this machine",
                            m->summary.path);
        for (int k = 0; k < 2; k++) {
            s->state[i].offset[k] = s->bytes;
            s->bytes += vgk_round_up(bytes, VGK_ALIGN);
        }
    }
    s->state_bytes = s->bytes;
    for (int i = 0; i < m->graph->n_inputs; i++)
        if (r->inputs[i].role == VG_ROLE_MAP) {
            s->map[i] = s->bytes;
            s->bytes += vgk_round_up((size_t)r->inputs[i].size.dim[planes_dim(&r->inputs[i].size)] * sizeof(float),
                                     VGK_ALIGN);
        }
    return VGK_OK;
}

void vg_states_free(struct vg_states *s)
{
    free(s->state);
    free(s->map);
    *s = (struct vg_states){NULL, NULL, 0, 0};
}

/* --- there and back --- */

enum vgk_status vg_map_fill(const struct vg_plan *p, char *section, int input, const struct vgk_tensor *to,
                            struct vgk_error *err)
{
    struct vgk_tensor src = *to;
    memset(src.stride, 0, sizeof src.stride);
    src.type = VGK_F32;
    src.stride[planes_dim(&p->model->roles.inputs[input].size)] = 1;
    src.data = section + p->states.map[input];
    return vg_copy(p, &src, to, err);
}

/* Positions [begin, end) of the frame in a state's axis. */
static void span(const struct vg_input_size *size, int axis, int64_t begin, int64_t end, int64_t at[2])
{
    at[0] = begin * size->num[axis] / size->den[axis];
    at[1] = end * size->num[axis] / size->den[axis];
}

static void cut(struct vgk_tensor *t, const struct vg_input_size *size, int axis, int64_t begin, int64_t end)
{
    if (size->axis[axis] >= 0)
        *t = vgk_tensor_slice(t, size->axis[axis], begin, end - begin, 1);
}

static struct vgk_tensor state_at(const struct vg_plan *p, char *section, int i, int which)
{
    struct vgk_tensor t = p->states.state[i].t;
    t.data = section + p->states.state[i].offset[which];
    return t;
}

enum vgk_status vg_state_read(const struct vg_plan *p, char *section, int i, int which, int column, int row, int64_t begin,
                              const struct vgk_tensor *to, struct vgk_error *err)
{
    const struct vg_input_size *size = &p->model->roles.inputs[p->model->roles.states[i].input].size;
    const struct vg_axis *x = &p->grid.x, *y = &p->grid.y;
    struct vgk_tensor t = state_at(p, section, i, which);
    int64_t at[2];
    span(size, VG_X, x->origin[column], x->origin[column] + x->tile, at);
    cut(&t, size, VG_X, at[0], at[1]);
    if (size->axis[VG_Y] >= 0) {
        span(size, VG_Y, y->origin[row], y->origin[row] + y->tile, at);
        cut(&t, size, VG_Y, at[0] + begin, at[0] + begin + to->dim[size->axis[VG_Y]]);
    }
    return vg_copy(p, &t, to, err);
}

/* What a tile owns; the last one the padding behind the frame, too. */
static int64_t core_end(const struct vg_axis *a, int i) { return i == a->n - 1 ? extent(a) : a->cut[i + 1]; }

/* The part of `from`, positions from `begin` on of the tile, that tile k owns, and where it belongs; false: none of it. */
static bool cut_core(struct vgk_tensor *state, struct vgk_tensor *from, const struct vg_input_size *size, int axis,
                     const struct vg_axis *a, int k, int64_t begin)
{
    int64_t core[2], tile[2], end;
    if (size->axis[axis] < 0)
        return true;
    span(size, axis, a->cut[k], core_end(a, k), core);
    span(size, axis, a->origin[k], a->origin[k], tile);
    begin += tile[0];
    end = begin + from->dim[size->axis[axis]];
    core[0] = core[0] > begin ? core[0] : begin;
    core[1] = core[1] < end ? core[1] : end;
    if (core[0] >= core[1])
        return false;
    cut(state, size, axis, core[0], core[1]);
    cut(from, size, axis, core[0] - begin, core[1] - begin);
    return true;
}

enum vgk_status vg_state_write(const struct vg_plan *p, char *section, int i, int which, int column, int row, int64_t begin,
                               const struct vgk_tensor *from, struct vgk_error *err)
{
    const struct vg_input_size *size = &p->model->roles.inputs[p->model->roles.states[i].input].size;
    struct vgk_tensor t = state_at(p, section, i, which), core = *from;
    bool any = cut_core(&t, &core, size, VG_X, &p->grid.x, column, 0) &&
               cut_core(&t, &core, size, VG_Y, &p->grid.y, row, begin);
    return any ? vg_copy(p, &core, &t, err) : VGK_OK;
}
