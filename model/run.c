/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "run_internal.h"

#include <stdlib.h>
#include <string.h>

#include "transfer.h"
#include "window.h"

static char *address(const struct bound *b, size_t offset)
{
    const struct vg_program *l = b->program;
    size_t fixed = l->weights + l->persistent;
    return offset == SIZE_MAX    ? NULL
           : offset < l->packed ? b->packed + offset
           : offset < fixed     ? b->fixed + (offset - l->packed)
                                : b->activations + (offset - fixed);
}

struct vgk_tensor vg_run_at(const struct bound *b, const struct vg_place *p)
{
    struct vgk_tensor t = p->t;
    if (p->none)
        return (struct vgk_tensor){VGK_NONE};
    t.data = address(b, p->offset);
    return t;
}

/* Repeated dimensions (stride 0) are stored once. */
static size_t stored_bytes(const struct vg_place *p)
{
    struct vgk_tensor t = p->t;
    size_t bytes = 0;
    for (int d = 0; d < t.rank; d++)
        t.dim[d] = t.stride[d] ? t.dim[d] : t.dim[d] ? 1 : 0;
    return vgk_tensor_bytes(&t, &bytes) ? bytes : 0;
}

/* Constants to the arena: packed by the backend, or copied as they are. */
static enum vgk_status fill(struct vg_run *r, const struct bound *bound, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    const struct vg_program *l = bound->program;
    for (int i = 0; i < l->n_steps; i++) {
        const struct vg_step *step = &l->steps[i];
        struct bound_step *b = &bound->steps[i];
        struct vgk_tensor in[VG_MAX_OPERANDS];
        for (int k = 0; k < step->op.n_in; k++) {
            in[k] = b->in[k];
            if (!step->in[k].constant)
                continue;
            in[k].data = (void *)step->in[k].constant;
            enum vgk_status s = b->in[k].data ? p->backend->upload(p->device, step->in[k].constant, b->in[k].data,
                                                                   stored_bytes(&step->in[k]), err)
                                              : VGK_OK;
            if (s)
                return s;
        }
        if (step->packs && !(bound == &r->exact && p->norms.shared)) {
            struct vgk_op op = b->op;
            op.in = in;
            enum vgk_status s = p->backend->pack(p->device, &op, address(bound, step->packed_offset), err);
            if (!s && step->host_offset != SIZE_MAX)
                s = p->backend->move(p->device, bound->host + step->host_offset, address(bound, step->packed_offset),
                                     step->packed, err);
            if (s)
                return s;
        }
    }
    enum vgk_status s = VGK_OK;
    for (int i = 0; i < l->net->n_outputs && !s; i++)
        if (l->outputs[i].constant)
            s = p->backend->upload(p->device, l->outputs[i].constant, bound->outputs[i].data, stored_bytes(&l->outputs[i]),
                                   err);
    return s;
}

/* The program's sections lie at these places of the arena. */
static enum vgk_status bind(struct vg_run *r, const struct vg_program *l, size_t packed, size_t fixed,
                            struct bound *bound, struct vgk_error *err)
{
    *bound = (struct bound){.program = l, .packed = r->arena + packed, .fixed = r->arena + fixed,
                            .activations = r->arena + r->plan->norms.activations_at, .stale = true};
    bound->steps = calloc(l->n_steps + 1, sizeof *bound->steps);
    bound->inputs = calloc(l->net->n_inputs + 1, sizeof *bound->inputs);
    bound->outputs = calloc(l->net->n_outputs + 1, sizeof *bound->outputs);
    if (!bound->steps || !bound->inputs || !bound->outputs)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for the run");
    if (l->host && !(bound->host = r->plan->backend->host_alloc(r->plan->device, l->host)))
        return vgk_fail(err, VGK_ERR_NOMEM, "no %zu bytes (%.1f MiB) of host memory for what does not fit the device: make "
                        "room where it lies (on the CPU: TMPDIR, or /var/tmp), or set max-device-memory higher", l->host,
                        (double)l->host / (1 << 20));
    for (int i = 0; i < l->n_steps; i++) {
        const struct vg_step *step = &l->steps[i];
        struct bound_step *b = &bound->steps[i];
        b->op = step->op;
        b->op.in = b->in;
        b->op.out = &b->out;
        for (int k = 0; k < step->op.n_in || (k == 0 && step->type == VG_CALL_WRITE); k++)
            b->in[k] = vg_run_at(bound, &step->in[k]);
        if (step->type != VG_CALL_WRITE && step->type < VG_CALL_SPILL)
            b->out = vg_run_at(bound, &step->out);
        b->packed = step->packed ? address(bound, step->packed_offset) : NULL;
        b->scratch = step->scratch ? address(bound, step->scratch_offset) : NULL;
    }
    for (int i = 0; i < l->net->n_inputs; i++)
        bound->inputs[i] = vg_run_at(bound, &l->inputs[i]);
    for (int i = 0; i < l->net->n_outputs; i++)
        bound->outputs[i] = vg_run_at(bound, &l->outputs[i]);
    return VGK_OK;
}

static void unbind(struct vg_run *r, struct bound *bound)
{
    const struct vg_plan *p = r->plan;
    vg_run_record_close(r, bound);
    if (bound->host)
        p->backend->host_free(p->device, bound->host, bound->program->host);
    free(bound->steps);
    free(bound->inputs);
    free(bound->outputs);
}

enum vgk_status vg_run_open(const struct vg_plan *plan, struct vg_run **run, struct vgk_error *err)
{
    const struct vg_summary *sum = &plan->model->summary;
    struct vg_run *r = calloc(1, sizeof *r);
    if (!r)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for the run");
    r->plan = plan;
    r->arena = plan->backend->alloc(plan->device, plan->info.arena_bytes);
    if (!r->arena) {
        vg_run_close(&r);
        return vgk_fail(err, VGK_ERR_NOMEM, "the device has no %zu bytes (%.1f MiB) left for %s: set max-device-memory "
                        "to what it has, or choose smaller tiles", plan->info.arena_bytes,
                        (double)plan->info.arena_bytes / (1 << 20), sum->name);
    }
    const struct vg_plan_norms *n = &plan->norms;
    const struct vg_program *exact = plan->exact, *small = plan->small, *rescue = plan->rescue;
    enum vgk_status s = bind(r, plan->program, 0, plan->program->packed, &r->main, err);
    if (!s && exact)
        s = bind(r, exact, n->shared ? 0 : n->exact_at, n->exact_at + (n->shared ? 0 : exact->packed), &r->exact, err);
    if (!s && small)
        s = bind(r, small, n->small_at, n->small_at + small->packed, &r->small, err);
    if (!s && rescue)
        s = bind(r, rescue, n->rescue_at, n->rescue_at + rescue->packed, &r->rescue, err);
    if (!s)
        s = fill(r, &r->main, err);
    if (!s && exact)
        s = fill(r, &r->exact, err);
    if (!s && small)
        s = fill(r, &r->small, err);
    if (!s && rescue)
        s = fill(r, &r->rescue, err);
    if (plan->model->graph) /* nets of tests have none */
        vg_arena_rest(plan->model->graph->arena); /* the file's weights are packed now */
    if (!s)
        s = vg_run_norms_open(r, err);
    if (!s)
        s = vg_run_flight_open(r, err);
    for (int i = 0; i < sum->n_parameters && !s; i++)
        s = vg_run_set_parameter(r, i, sum->parameters[i].defaults, err);
    if (s)
        vg_run_close(&r);
    else
        *run = r;
    return s;
}

void vg_run_close(struct vg_run **run)
{
    struct vg_run *r = *run;
    if (!r)
        return;
    vg_run_flight_close(r);
    if (r->arena)
        r->plan->backend->free(r->plan->device, r->arena);
    unbind(r, &r->main);
    unbind(r, &r->exact);
    unbind(r, &r->small);
    unbind(r, &r->rescue);
    vg_run_norms_close(r);
    free(r);
    *run = NULL;
}

/* The arena's last section. */
static char *section(const struct vg_run *r) { return r->arena + r->plan->info.arena_bytes - r->plan->states.bytes; }

static enum vg_role role_of(const struct vg_run *r, int input)
{
    const struct vg_input_role *roles = r->plan->model->roles.inputs;
    return roles ? roles[input].role : VG_ROLE_FRAME; /* nets of tests have none */
}

enum vgk_status vg_run_set_parameter(struct vg_run *r, int i, const float *values, struct vgk_error *err)
{
    const struct vg_model *m = r->plan->model;
    for (int k = 0; k < r->plan->program->net->n_inputs; k++) {
        if (m->parameter_of[k] != i)
            continue;
        struct vgk_tensor planes = {.type = VGK_F32, .rank = 1, .dim = {m->summary.parameters[i].count}, .stride = {1}};
        struct bound *all[] = {&r->main, &r->exact, &r->small, &r->rescue};
        enum vgk_status s = VGK_OK;
        for (int j = 0; j < 4 && !s; j++) {
            if (!all[j]->program)
                continue;
            const struct vgk_tensor *to = &all[j]->inputs[k];
            if (role_of(r, k) == VG_ROLE_MAP) {
                planes.data = section(r) + r->plan->states.map[k];
                to = &planes;
            }
            struct vgk_tensor src = vgk_tensor_make(VGK_F32, to->rank, to->dim, VGK_ROW_MAJOR);
            src.data = (void *)values;
            all[j]->stale = true;
            s = vg_copy_in(r->plan, &src, to, err);
        }
        return s ? s : vg_run_norms_parameter(r, i, values, err);
    }
    return vgk_fail(err, VGK_ERR_INVALID, "the model has no parameter %d", i);
}

/* Rows [begin, end) of a frame; behind its end, its last row. */
static struct vgk_frame frame_rows(const struct vgk_frame *f, int64_t begin, int64_t end)
{
    int first = (int)(begin < f->height ? begin : f->height - 1);
    int rows = (int)((end < f->height ? end : f->height) - first);
    return vgk_frame_part(f, 0, first, f->width, rows < 1 ? 1 : rows);
}

/* Rows of the caller's tensor, whose y is the same dimension as in the net's value. */
static struct vgk_tensor tensor_rows(const struct vgk_tensor *t, int y, int64_t begin, int64_t end)
{
    return y < 0 ? *t : vgk_tensor_slice(t, y, begin, end - begin, 1);
}

/* Those of the window's frames that an input takes. */
static enum vgk_status read_frames(struct vg_run *r, const struct ends *e, const struct vg_step *step, int input,
                                   const struct vgk_tensor *to, void *scratch, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    const struct vg_port *port = &p->model->roles.inputs[input].port;
    enum vgk_status s = VGK_OK;
    for (int k = 0; !s && k < (port->frames ? port->frames : p->info.window); k++) {
        struct vgk_frame rows = frame_rows(&e->in[port->first + k], step->begin, step->end);
        struct vgk_tensor dst = vg_port_frame(port, to, k);
        s = p->backend->frame_read(p->device, &rows, &e->to, &dst, scratch, err);
    }
    return s;
}

/* What is delayed is kept for the next run. */
static enum vgk_status keep_frames(struct vg_run *r, const struct ends *e, const struct vg_step *step,
                                   const struct vgk_tensor *from, struct vgk_error *err)
{
    const struct vg_roles *roles = &r->plan->model->roles;
    enum vgk_status s = VGK_OK;
    for (int i = 0; !s && i < roles->n_states; i++)
        if (roles->states[i].output < 0 && roles->states[i].source == step->what)
            s = vg_state_write(r->plan, section(r), i, !r->which, e->column, e->row, step->begin, from, err);
    return s;
}

static enum vgk_status read_state(struct vg_run *r, const struct ends *e, const struct vg_step *step,
                                  const struct vgk_tensor *to, void *scratch, struct vgk_error *err)
{
    const struct vg_roles *roles = &r->plan->model->roles;
    int i = 0;
    while (roles->states[i].input != step->what)
        i++;
    const struct vg_state_role *state = &roles->states[i];
    if (r->begun)
        return vg_state_read(r->plan, section(r), i, r->which, e->column, e->row, step->begin, to, err);
    if (state->first && e->in)
        return read_frames(r, e, step, state->output < 0 ? state->source : roles->frame_input, to, scratch, err);
    return vg_fill(r->plan, 0, to, err);
}

static enum vgk_status read_rows(struct vg_run *r, const struct ends *e, const struct vg_step *step,
                                 const struct vgk_tensor *to, void *scratch, struct vgk_error *err)
{
    const struct vg_net *net = r->plan->program->net;
    enum vg_role role = role_of(r, step->what);
    if (!e->in && step->what < e->n_src && e->src[step->what].data) {
        struct vgk_tensor src = tensor_rows(&e->src[step->what], net->values[net->inputs[step->what]].axis[VG_Y],
                                            step->begin, step->end);
        return vg_copy_in(r->plan, &src, to, err);
    }
    if (role == VG_ROLE_STATE)
        return read_state(r, e, step, to, scratch, err);
    if (role == VG_ROLE_MAP)
        return vg_map_fill(r->plan, section(r), step->what, to, err);
    if (!e->in)
        return VGK_OK;
    enum vgk_status s = read_frames(r, e, step, step->what, to, scratch, err);
    return s ? s : keep_frames(r, e, step, to, err);
}

/* The frame of the window that an emitted one stands for: its alpha goes along. */
static int stands_for(const struct vg_plan_info *info, int k)
{
    int i = info->centre < 0 ? 0 : info->centre + k;
    return i < info->window ? i : info->window - 1;
}

/* *nonfinite, unless that is NULL, grows by what is not finite. */
static enum vgk_status write_frames(struct vg_run *r, const struct ends *e, const struct vg_step *step,
                                    const struct vgk_tensor *from, void *scratch, int *nonfinite, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    const struct vg_summary *sum = &p->model->summary;
    const struct vg_net *net = p->program->net;
    struct vg_port port;
    enum vgk_status s = VGK_OK;
    if (step->begin >= e->out->height) /* rows that only pad the frame */
        return VGK_OK;
    vg_port_of(from, net->values[net->outputs[step->what]].axis,
               &p->model->roles.inputs[p->model->frame_input].port, &port);
    for (int k = 0; !s && k < port.frames; k++) {
        struct vgk_frame rows = frame_rows(&e->out[k], step->begin, step->end);
        struct vgk_frame alpha = frame_rows(&e->in[stands_for(&p->info, k)], step->begin * sum->scale_den / sum->scale_num,
                                            (step->end * sum->scale_den + sum->scale_num - 1) / sum->scale_num);
        struct vgk_tensor src = vg_port_frame(&port, from, k);
        int found = 0;
        s = p->backend->frame_write(p->device, &src, &e->from, e->low, e->high, &alpha, &rows, scratch,
                                    nonfinite ? &found : NULL, err);
        if (nonfinite)
            *nonfinite += found;
    }
    return s;
}

static enum vgk_status write_rows(struct vg_run *r, const struct ends *e, const struct vg_step *step,
                                  const struct vgk_tensor *from, void *scratch, int *nonfinite, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    const struct vg_net *net = p->program->net;
    const struct vg_roles *roles = &p->model->roles;
    bool frame = step->what == p->model->frame_output;
    enum vgk_status s = VGK_OK;
    if (!e->out) {
        if (step->what >= e->n_dst || !e->dst[step->what].data) /* statistics are all that is wanted */
            return VGK_OK;
        struct vgk_tensor dst = tensor_rows(&e->dst[step->what], net->values[net->outputs[step->what]].axis[VG_Y], step->begin,
                                            step->end);
        return vg_copy_out(r->plan, from, &dst, err);
    }
    for (int i = 0; !s && i < roles->n_states; i++)
        if (roles->states[i].output == step->what)
            s = vg_state_write(p, section(r), i, !r->which, e->column, e->row, step->begin, from, err);
    return s || !frame ? s : write_frames(r, e, step, from, scratch, nonfinite, err);
}

void vg_run_watch(struct vg_run *r, const int *stop) { r->stop = stop; }

static enum vgk_status move(struct vg_run *r, const struct bound *bound, const struct vg_step *step, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    char *here = address(bound, step->packed_offset), *there = bound->host + step->host_offset;
    bool away = step->type == VG_CALL_SPILL;
    return p->backend->move(p->device, away ? there : here, away ? here : there, step->packed, err);
}

enum vgk_status vg_run_program(struct vg_run *r, struct bound *bound, const struct ends *e, struct vgk_error *err)
{
    const struct vg_program *l = bound->program;
    int *nonfinite = bound == &r->main && r->plan->half ? &r->nonfinite : NULL;
    r->nonfinite = 0;
    const struct segment *segment = bound->segments, *behind = segment + bound->n_segments;
    for (int i = bound->stale ? 0 : l->n_prologue; i < l->n_steps; i++) {
        const struct vg_step *step = &l->steps[i];
        struct bound_step *b = &bound->steps[i];
        enum vgk_status s;
        if (r->stop && __atomic_load_n(r->stop, __ATOMIC_RELAXED))
            return vgk_fail(err, VGK_ERR_DEVICE, "stopped");
        if (segment < behind && segment->begin == i) {
            s = r->plan->backend->replay(r->plan->device, segment->recording, err);
            i = segment++->end - 1;
        } else if (step->type == VG_CALL_READ)
            s = read_rows(r, e, step, &b->out, b->scratch, err);
        else if (step->type == VG_CALL_WRITE)
            s = write_rows(r, e, step, &b->in[0], b->scratch, nonfinite, err);
        else if (step->type >= VG_CALL_SPILL)
            s = move(r, bound, step, err);
        else if ((s = r->plan->backend->run(r->plan->device, &b->op, b->packed, b->scratch, err)))
            vgk_error_prefix(err, "node '%s'", step->node);
        if (s)
            return s;
    }
    bound->stale = false;
    if (bound == &r->main && !bound->ran)
        vg_run_record(r, bound);
    return VGK_OK;
}

void vg_run_next(struct vg_run *r)
{
    r->norms.comparing = false;
    r->which = !r->which;
    r->begun = true;
}

void vg_run_reset(struct vg_run *r) { r->norms.kept = r->begun = false; }

struct ends vg_run_ends(const struct vg_run *r, int column, int row, const struct vgk_frame *in,
                        const struct vgk_colour *colour, const struct vgk_frame *out)
{
    const struct vg_summary *sum = &r->plan->model->summary;
    struct ends e = {.in = in, .out = out, .column = column, .row = row, .to = vgk_matrix_in(colour, &sum->in),
                     .from = vgk_matrix_out(colour, &sum->out)};
    for (int k = 0; k < 3; k++) {
        const struct vgk_pixels *px = &sum->out;
        float a = (0 - px->mean[k]) * px->scale[k], b = (1 - px->mean[k]) * px->scale[k];
        e.low[k] = a < b ? a : b;
        e.high[k] = a < b ? b : a;
    }
    return e;
}

void vg_run_info(const struct vg_run *r, struct vg_run_info *info) { *info = r->info; }

enum vgk_status vg_run_check_place(const struct vg_plan *p, int column, int row, struct vgk_error *err)
{
    const struct vg_axis *x = &p->grid.x, *y = &p->grid.y;
    if (column < 0 || row < 0 || column >= x->n || row >= y->n)
        return vgk_fail(err, VGK_ERR_INVALID, "tile %d, %d of a grid of %d by %d", column, row, x->n, y->n);
    return VGK_OK;
}

enum vgk_status vg_run_check_whole(const struct vg_plan *p, const struct vgk_frame *frame, struct vgk_error *err)
{
    if (frame->width != p->grid.x.frame || frame->height != p->grid.y.frame)
        return vgk_fail(err, VGK_ERR_INVALID, "a frame of %dx%d, the plan is for %dx%d", frame->width, frame->height,
                        p->grid.x.frame, p->grid.y.frame);
    return VGK_OK;
}

enum vgk_status vg_run_check_frames(const struct vg_plan *p, const struct vgk_frame *in, const struct vgk_frame *out,
                                    struct vgk_error *err)
{
    const struct vg_axis *x = &p->grid.x, *y = &p->grid.y;
    int most[2];
    vg_plan_largest_output(p, most);
    if (in->width < 1 || in->height < 1 || in->width > x->tile || in->height > y->tile || out->width > most[0] ||
        out->height > most[1])
        return vgk_fail(err, VGK_ERR_INVALID, "a tile of %dx%d to %dx%d, the plan has %dx%d to %dx%d", in->width,
                        in->height, out->width, out->height, x->tile, y->tile, most[0], most[1]);
    for (int k = 1; k < p->info.window + p->info.emit; k++) {
        const struct vgk_frame *f = k < p->info.window ? &in[k] : &out[k - p->info.window];
        const struct vgk_frame *first = k < p->info.window ? in : out;
        if (f->width != first->width || f->height != first->height)
            return vgk_fail(err, VGK_ERR_INVALID, "frames of %dx%d and %dx%d in one window", first->width, first->height,
                            f->width, f->height);
    }
    return VGK_OK;
}

enum vgk_status vg_run_between(struct vg_run *r, int k, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    struct bound *all[] = {&r->main, &r->exact, &r->rescue};
    int time = vg_window_time_input(p->model);
    float at = (float)(k + 1) / (float)(p->info.emit + 1);
    enum vgk_status s = VGK_OK;
    if (time < 0 || at == r->between)
        return VGK_OK;
    r->between = 0;
    for (int i = 0; i < 3 && !s; i++) {
        all[i]->stale = true;
        s = all[i]->program ? vg_fill(p, at, &all[i]->inputs[time], err) : VGK_OK;
    }
    r->between = s ? 0 : at;
    return s;
}

enum vgk_status vg_run_tile(struct vg_run *r, int column, int row, const struct vgk_frame *in,
                            const struct vgk_colour *colour, const struct vgk_frame *out, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    int time = vg_window_time_input(p->model);
    enum vgk_status s = vg_run_check_place(p, column, row, err);
    s = s ? s : vg_run_check_frames(p, in, out, err);
    struct ends e = vg_run_ends(r, column, row, in, colour, out);
    if (!s && time < 0)
        s = vg_run_steps(r, &e, err);
    for (int k = 0; k < p->info.emit && !s && time >= 0; k++) { /* each frame between the two is a run of its own */
        e.out = &out[k];
        s = vg_run_between(r, k, err);
        s = s ? s : vg_run_steps(r, &e, err);
    }
    if (!s)
        vg_run_norms_compare(r, column, row, out);
    return s;
}

enum vgk_status vg_run_tensors(struct vg_run *r, const struct vgk_tensor *in, int n_in, const struct vgk_tensor *out,
                               int n_out, struct vgk_error *err)
{
    const struct vg_net *net = r->plan->program->net;
    enum vgk_status s = VGK_OK;
    if (n_in > net->n_inputs || n_out > net->n_outputs)
        return vgk_fail(err, VGK_ERR_INVALID, "%d inputs and %d outputs, the model has %d and %d", n_in, n_out,
                        net->n_inputs, net->n_outputs);
    struct bound *all[] = {&r->main, &r->exact, &r->small, &r->rescue};
    for (int i = 0; i < n_in && !s; i++)
        for (int k = 0; k < 4 && !s && in[i].data && !net->values[net->inputs[i]].frame; k++)
            if (all[k]->program) {
                s = vg_copy_in(r->plan, &in[i], &all[k]->inputs[i], err);
                all[k]->stale = true;
                r->between = 0; /* whatever was told */
            }
    struct ends e = {.src = in, .n_src = n_in, .dst = out, .n_dst = n_out};
    if (!s)
        s = vg_run_steps(r, &e, err);
    for (int i = 0; i < n_out && !s; i++)
        if (out[i].data && !net->values[net->outputs[i]].frame)
            s = vg_copy_out(r->plan, &r->main.outputs[i], &out[i], err);
    return s;
}
