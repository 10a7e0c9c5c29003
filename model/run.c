/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan_internal.h"

/* A step with its addresses. */
struct bound_step {
    struct vgk_op op;
    struct vgk_tensor in[VG_MAX_OPERANDS], out;
    const void *packed;
    void *scratch;
};

/* A program with its addresses. */
struct bound {
    const struct vg_program *program;
    struct bound_step *steps;
    struct vgk_tensor *inputs, *outputs; /* of the graph */
    bool stale;                          /* a parameter changed: the prologue must run */
};

struct vg_run {
    const struct vg_plan *plan;
    char *arena;
    struct bound main, first, rescue; /* see plan_internal.h */
    int nonfinite;            /* values of the tile that is at work */
    bool kept;                /* there are statistics of a previous frame */
    struct vg_run_info info;
    const int *stop;          /* NULL, or another thread's wish */
    struct vgk_device *host;  /* converts what comes from and goes to other devices; NULL on the CPU */
    float *statistics;        /* of two norms, then: a host's copy */
    size_t statistics_size;   /* of one */
};

static struct vgk_tensor at(char *arena, const struct vg_place *p)
{
    struct vgk_tensor t = p->t;
    if (p->none)
        return (struct vgk_tensor){VGK_NONE};
    t.data = p->offset == SIZE_MAX ? NULL : arena + p->offset;
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
        if (step->packs) {
            struct vgk_op op = b->op;
            op.in = in;
            enum vgk_status s = p->backend->pack(p->device, &op, r->arena + step->packed_offset, err);
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

static enum vgk_status bind(struct vg_run *r, const struct vg_program *l, struct bound *bound, struct vgk_error *err)
{
    *bound = (struct bound){.program = l, .stale = true};
    bound->steps = calloc(l->n_steps + 1, sizeof *bound->steps);
    bound->inputs = calloc(l->net->n_inputs + 1, sizeof *bound->inputs);
    bound->outputs = calloc(l->net->n_outputs + 1, sizeof *bound->outputs);
    if (!bound->steps || !bound->inputs || !bound->outputs)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for the run");
    for (int i = 0; i < l->n_steps; i++) {
        const struct vg_step *step = &l->steps[i];
        struct bound_step *b = &bound->steps[i];
        b->op = step->op;
        b->op.in = b->in;
        b->op.out = &b->out;
        for (int k = 0; k < step->op.n_in || (k == 0 && step->type == VG_CALL_WRITE); k++)
            b->in[k] = at(r->arena, &step->in[k]);
        if (step->type != VG_CALL_WRITE)
            b->out = at(r->arena, &step->out);
        b->packed = step->packed ? r->arena + step->packed_offset : NULL;
        b->scratch = step->scratch ? r->arena + step->scratch_offset : NULL;
    }
    for (int i = 0; i < l->net->n_inputs; i++)
        bound->inputs[i] = at(r->arena, &l->inputs[i]);
    for (int i = 0; i < l->net->n_outputs; i++)
        bound->outputs[i] = at(r->arena, &l->outputs[i]);
    return VGK_OK;
}

static void unbind(struct bound *bound)
{
    free(bound->steps);
    free(bound->inputs);
    free(bound->outputs);
}

static enum vgk_status open_host(struct vg_run *r, struct vgk_error *err)
{
    const struct vg_program *l = r->plan->program;
    for (int i = 0; i < l->net->n_memories; i++) {
        size_t n = (size_t)vgk_tensor_count(&l->memories[i].kept.t);
        r->statistics_size = n > r->statistics_size ? n : r->statistics_size;
    }
    r->statistics = malloc(2 * r->statistics_size * sizeof(float) + 1);
    if (!r->statistics)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for the run");
    return vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &r->host, err);
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
    enum vgk_status s = VGK_OK;
    if (plan->backend != &vgk_cpu)
        s = open_host(r, err);
    if (!s)
        s = bind(r, plan->program, &r->main, err);
    if (!s && plan->first)
        s = bind(r, plan->first, &r->first, err);
    if (!s)
        s = fill(r, &r->main, err);
    if (!s && plan->rescue && !(s = bind(r, plan->rescue, &r->rescue, err)))
        s = fill(r, &r->rescue, err);
    if (!s && plan->first) /* the same weights at the same places, but for what only this one reads */
        s = fill(r, &r->first, err);
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
    if (r->arena)
        r->plan->backend->free(r->plan->device, r->arena);
    unbind(&r->main);
    unbind(&r->first);
    unbind(&r->rescue);
    vgk_cpu.close(&r->host);
    free(r->statistics);
    free(r);
    *run = NULL;
}

static enum vgk_status convert(const struct vgk_backend *backend, struct vgk_device *device, const struct vgk_tensor *src,
                               const struct vgk_tensor *dst, struct vgk_error *err)
{
    struct vgk_op op = {.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = src, .out = dst};
    struct vgk_need need = {0};
    enum vgk_status s = backend->need(device, &op, &need, err);
    return s ? s : backend->run(device, &op, NULL, NULL, err);
}

/* Copies (and converts) between a tensor of the caller's and one in the arena, `inward` or out of it; both have the same
 * dims.  Other devices' tensors are taken to host memory as they lie, holes included, and back. */
static enum vgk_status copy(struct vg_run *r, const struct vgk_tensor *src, const struct vgk_tensor *dst, bool inward,
                            struct vgk_error *err)
{
    const struct vgk_backend *backend = r->plan->backend;
    struct vgk_device *device = r->plan->device;
    const struct vgk_tensor *far = inward ? dst : src;
    struct vgk_tensor near = *far;
    if (!r->host)
        return convert(backend, device, src, dst, err);
    int64_t low = 0, high = 0;
    if (!vgk_tensor_count(far))
        return VGK_OK;
    for (int d = 0; d < far->rank; d++)
        *(far->stride[d] < 0 ? &low : &high) += (far->dim[d] - 1) * far->stride[d];
    size_t each = (size_t)vgk_type_bits(far->type) / 8, bytes = (size_t)(high - low + 1) * each;
    char *block = malloc(bytes), *begin = (char *)far->data + low * (int64_t)each;
    if (!block)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for %zu bytes", bytes);
    near.data = block - low * (int64_t)each;
    enum vgk_status s = backend->download(device, begin, block, bytes, err);
    if (!s)
        s = convert(&vgk_cpu, r->host, inward ? src : &near, inward ? &near : dst, err);
    if (!s && inward)
        s = backend->upload(device, block, begin, bytes, err);
    free(block);
    return s;
}

enum vgk_status vg_run_set_parameter(struct vg_run *r, int i, const float *values, struct vgk_error *err)
{
    const struct vg_model *m = r->plan->model;
    for (int k = 0; k < r->plan->program->net->n_inputs; k++) {
        if (m->parameter_of[k] != i)
            continue;
        const struct vgk_tensor *to = &r->main.inputs[k];
        struct vgk_tensor src = vgk_tensor_make(VGK_F32, to->rank, to->dim, VGK_ROW_MAJOR);
        src.data = (void *)values;
        r->main.stale = r->first.stale = r->rescue.stale = true;
        enum vgk_status s = copy(r, &src, to, true, err);
        return s || !r->rescue.program ? s : copy(r, &src, &r->rescue.inputs[k], true, err);
    }
    return vgk_fail(err, VGK_ERR_INVALID, "the model has no parameter %d", i);
}

/* [N,H,W,C] seen as [N,C,H,W] */
static struct vgk_tensor picture(const struct vgk_tensor *t, bool interleaved)
{
    static const int perm[4] = {0, 3, 1, 2};
    return interleaved ? vgk_tensor_permute(t, perm) : *t;
}

/* Where frames come from and go to: pictures, or the caller's tensors. */
struct ends {
    const struct vgk_frame *in, *out;
    struct vgk_matrix to, from;
    float low[3], high[3];
    const struct vgk_tensor *src, *dst; /* instead of pictures; NULL data = nothing */
};

/* Rows [begin, end) of a frame; behind its end, its last row. */
static struct vgk_frame frame_rows(const struct vgk_frame *f, int64_t begin, int64_t end)
{
    struct vgk_frame r = *f;
    bool half = f->layout == VGK_FRAME_I420 || f->layout == VGK_FRAME_NV12;
    int64_t first = begin < f->height ? begin : f->height - 1;
    for (int i = 0; i < 3; i++)
        if (f->plane[i])
            r.plane[i] = f->plane[i] + (half && i ? first / 2 : first) * f->stride[i];
    r.height = (int)((end < f->height ? end : f->height) - first);
    r.height = r.height < 1 ? 1 : r.height;
    return r;
}

/* Rows of the caller's tensor, whose y is the same dimension as in the net's value. */
static struct vgk_tensor tensor_rows(const struct vgk_tensor *t, int y, int64_t begin, int64_t end)
{
    return y < 0 ? *t : vgk_tensor_slice(t, y, begin, end - begin, 1);
}

static enum vgk_status read_rows(struct vg_run *r, const struct ends *e, const struct vg_step *step,
                                 const struct vgk_tensor *to, void *scratch, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    const struct vg_net *net = p->program->net;
    if (e->in) {
        struct vgk_frame rows = frame_rows(e->in, step->begin, step->end);
        struct vgk_tensor dst = picture(to, p->model->interleaved);
        return p->backend->frame_read(p->device, &rows, &e->to, &dst, scratch, err);
    }
    if (!e->src || !e->src->data)
        return VGK_OK;
    struct vgk_tensor src = tensor_rows(e->src, net->values[net->inputs[net->frame_input]].axis[VG_Y], step->begin,
                                        step->end);
    return copy(r, &src, to, true, err);
}

static enum vgk_status write_rows(struct vg_run *r, const struct ends *e, const struct vg_step *step,
                                  const struct vgk_tensor *from, void *scratch, int *nonfinite, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    const struct vg_summary *sum = &p->model->summary;
    const struct vg_net *net = p->program->net;
    const struct vg_net_value *v = &net->values[net->outputs[p->model->frame_output]];
    if (!e->out) {
        if (!e->dst || !e->dst->data)
            return VGK_OK;
        struct vgk_tensor dst = tensor_rows(e->dst, v->axis[VG_Y], step->begin, step->end);
        return copy(r, from, &dst, false, err);
    }
    if (step->begin >= e->out->height) /* rows that only pad the frame */
        return VGK_OK;
    struct vgk_frame rows = frame_rows(e->out, step->begin, step->end);
    struct vgk_frame alpha = frame_rows(e->in, step->begin * sum->scale_den / sum->scale_num,
                                        (step->end * sum->scale_den + sum->scale_num - 1) / sum->scale_num);
    struct vgk_tensor src = picture(from, v->axis[VG_X] == 2);
    return p->backend->frame_write(p->device, &src, &e->from, e->low, e->high, &alpha, &rows, scratch,
                                   nonfinite, err);
}

void vg_run_watch(struct vg_run *r, const int *stop) { r->stop = stop; }

static enum vgk_status run_program(struct vg_run *r, struct bound *bound, const struct ends *e, struct vgk_error *err)
{
    const struct vg_program *l = bound->program;
    for (int i = bound->stale ? 0 : l->n_prologue; i < l->n_steps; i++) {
        const struct vg_step *step = &l->steps[i];
        struct bound_step *b = &bound->steps[i];
        enum vgk_status s;
        int found = 0;
        if (r->stop && __atomic_load_n(r->stop, __ATOMIC_RELAXED))
            return vgk_fail(err, VGK_ERR_DEVICE, "stopped");
        if (step->type == VG_CALL_READ)
            s = read_rows(r, e, step, &b->out, b->scratch, err);
        else if (step->type == VG_CALL_WRITE)
            s = write_rows(r, e, step, &b->in[0], b->scratch, r->rescue.program ? &found : NULL, err);
        else if ((s = r->plan->backend->run(r->plan->device, &b->op, b->packed, b->scratch, err)))
            vgk_error_prefix(err, "node '%s'", step->node);
        if (s)
            return s;
        r->nonfinite += found;
    }
    bound->stale = false;
    return VGK_OK;
}

/* Weight of a frame in the kept statistics.  With 1 a deep net rings: each norm's statistics were measured on what the
 * norms before it made with older ones (26 styles on a moving clip: twice the flicker of exact norms; with 0.2 as much
 * as they have). */
#define SMOOTHING 0.2f

/* How far a norm's statistics have moved; see struct vg_run_info. */
static double drift(const struct vgk_tensor *now, const struct vgk_tensor *kept)
{
    int64_t c = now->dim[1] / 3;
    const float *a = now->data, *b = kept->data;
    double sum = 0;
    for (int64_t i = 0; i < c; i++) {
        double ratio = fabs((double)a[c + i] / (double)b[c + i]);
        sum += fabs(log(ratio)) + fabs((double)a[i] - (double)b[i]) * fabs((double)b[c + i]);
    }
    return sum / (double)c;
}

/* Statistics to where they can be read: t.data is on the host then. */
static enum vgk_status fetch(struct vg_run *r, struct vgk_tensor *t, int which, struct vgk_error *err)
{
    if (!r->host)
        return VGK_OK;
    size_t bytes = (size_t)vgk_tensor_count(t) * sizeof(float);
    float *to = r->statistics + (size_t)which * r->statistics_size;
    enum vgk_status s = r->plan->backend->download(r->plan->device, t->data, to, bytes, err);
    t->data = to;
    return s;
}

static enum vgk_status run_steps(struct vg_run *r, const struct ends *e, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    enum vgk_status s = VGK_OK;
    if (!p->first)
        return run_program(r, &r->main, e, err);
    bool again = !r->kept;
    r->info.drift = 0;
    if (r->kept) {
        s = run_program(r, &r->main, e, err);
        for (int i = 0; i < p->program->net->n_memories && !s; i++) {
            struct vgk_tensor now = at(r->arena, &p->program->memories[i].now),
                              kept = at(r->arena, &p->program->memories[i].kept);
            if ((s = fetch(r, &now, 0, err)) || (s = fetch(r, &kept, 1, err)))
                break;
            double d = drift(&now, &kept);
            r->info.drift = d > r->info.drift || d != d ? d : r->info.drift;
        }
        again = !(r->info.drift <= VG_RUN_CUT); /* NaN too */
        r->info.cuts += again;
    }
    if (!s && again)
        s = run_program(r, &r->first, e, err);
    for (int i = 0; i < p->program->net->n_memories && !s; i++) {
        const struct vg_program *l = again ? p->first : p->program;
        struct vgk_tensor now = at(r->arena, &l->memories[i].now), kept = at(r->arena, &l->memories[i].kept);
        void *place = kept.data;
        if ((s = fetch(r, &now, 0, err)) || (s = fetch(r, &kept, 1, err)))
            break;
        const float *from = now.data;
        float *to = kept.data;
        int64_t n = vgk_tensor_count(&kept);
        for (int64_t k = 0; k < n; k++)
            to[k] = again ? from[k] : to[k] + SMOOTHING * (from[k] - to[k]);
        if (to != place)
            s = p->backend->upload(p->device, to, place, (size_t)n * sizeof *to, err);
    }
    r->kept = !s;
    return s;
}

void vg_run_reset(struct vg_run *r) { r->kept = false; }

void vg_run_info(const struct vg_run *r, struct vg_run_info *info) { *info = r->info; }

enum vgk_status vg_run_tile(struct vg_run *r, const struct vgk_frame *in, const struct vgk_colour *colour,
                            const struct vgk_frame *out, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    const struct vg_summary *sum = &p->model->summary;
    const struct vg_axis *x = &p->grid.x, *y = &p->grid.y;
    int width = vg_axis_scale(x, (int)vgk_round_up((size_t)x->tile, (size_t)sum->align_x));
    int height = vg_axis_scale(y, (int)vgk_round_up((size_t)y->tile, (size_t)sum->align_y));
    if (in->width < 1 || in->height < 1 || in->width > x->tile || in->height > y->tile || out->width > width ||
        out->height > height)
        return vgk_fail(err, VGK_ERR_INVALID, "a tile of %dx%d to %dx%d, the plan has %dx%d to %dx%d", in->width,
                        in->height, out->width, out->height, x->tile, y->tile, width, height);
    struct ends e = {.in = in, .out = out, .to = vgk_matrix_in(colour, &sum->in),
                     .from = vgk_matrix_out(colour, &sum->out)};
    for (int k = 0; k < 3; k++) {
        const struct vgk_pixels *px = &sum->out;
        float a = (0 - px->mean[k]) * px->scale[k], b = (1 - px->mean[k]) * px->scale[k];
        e.low[k] = a < b ? a : b;
        e.high[k] = a < b ? b : a;
    }
    r->nonfinite = 0;
    enum vgk_status s = run_steps(r, &e, err);
    if (s || !r->nonfinite || !r->rescue.program)
        return s;
    r->info.rescued++;
    r->kept = false; /* statistics of what overflowed */
    return run_program(r, &r->rescue, &e, err);
}

enum vgk_status vg_run_tensors(struct vg_run *r, const struct vgk_tensor *in, int n_in, const struct vgk_tensor *out,
                               int n_out, struct vgk_error *err)
{
    const struct vg_net *net = r->plan->program->net;
    int picture_out = r->plan->model->frame_output;
    enum vgk_status s = VGK_OK;
    if (n_in > net->n_inputs || n_out > net->n_outputs)
        return vgk_fail(err, VGK_ERR_INVALID, "%d inputs and %d outputs, the model has %d and %d", n_in, n_out,
                        net->n_inputs, net->n_outputs);
    for (int i = 0; i < n_in && !s; i++)
        if (in[i].data && i != net->frame_input) {
            s = copy(r, &in[i], &r->main.inputs[i], true, err);
            r->main.stale = r->first.stale = true;
        }
    bool banded = r->plan->program->bands > 1 || r->plan->first;
    struct ends e = {.src = net->frame_input >= 0 && net->frame_input < n_in ? &in[net->frame_input] : NULL,
                     .dst = banded && picture_out < n_out ? &out[picture_out] : NULL};
    if (!s)
        s = run_steps(r, &e, err);
    for (int i = 0; i < n_out && !s && !banded; i++)
        if (out[i].data)
            s = copy(r, &r->main.outputs[i], &out[i], false, err);
    return s;
}
