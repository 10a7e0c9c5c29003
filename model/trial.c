/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trial.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "plan_internal.h"
#include "run.h"

/* Pixels: whole blocks of several layers, and little work.  A model that wants more gets more. */
enum { SAMPLE = 48, MOST_SAMPLE = 192 };
enum { MOVE = 3 }; /* pixels, from a frame of a window to the next */

/* Smooth shades, edges and some grain, as pictures have; 0..1. */
static double picture_at(int c, int64_t y, int64_t x)
{
    uint32_t hash = (uint32_t)(x * 73856093 ^ y * 19349663 ^ c * 83492791) * 2654435761u;
    double shade = 0.5 + 0.25 * sin(0.11 * (double)x + c) + 0.15 * cos(0.17 * (double)y - 0.05 * (double)x);
    double edge = (x / 11 + y / 13) % 3 ? 0 : 0.3;
    return fmin(fmax(shade - edge + ((hash >> 8) / 16777216.0 - 0.5) * 0.1, 0), 1);
}

/* On the trial's device, zeros: its cap and its count are of all that the trial takes. */
static struct vgk_tensor dense(struct vgk_device *device, const struct vgk_tensor *like)
{
    struct vgk_tensor t = vgk_tensor_make(VGK_F32, like->rank, like->dim, VGK_ROW_MAJOR);
    size_t bytes;
    if (vgk_tensor_bytes(&t, &bytes) && (t.data = vgk_cpu.alloc(device, bytes)))
        memset(t.data, 0, bytes);
    return t;
}

/* What input i of the net takes: frames that move on by some pixels, or the middle between two; its data is NULL for
 * others, which have values of their own, and without memory. */
static struct vgk_tensor input_of(const struct vg_plan *p, int i)
{
    const struct vg_net *net = p->program->net;
    const struct vg_input_role *role = &p->model->roles.inputs[i];
    const struct vg_port *port = &role->port;
    const struct vgk_pixels *px = &p->model->summary.in;
    struct vgk_tensor t = {VGK_NONE};
    if (role->role != VG_ROLE_FRAME && role->role != VG_ROLE_TIME)
        return t;
    t = dense(p->device, &net->values[net->inputs[i]].t);
    if (t.data && role->role == VG_ROLE_TIME)
        for (int64_t k = 0; k < vgk_tensor_count(&t); k++)
            ((float *)t.data)[k] = 0.5f;
    for (int k = 0; t.data && role->role == VG_ROLE_FRAME && k < (port->frames ? port->frames : p->info.window); k++) {
        struct vgk_tensor frame = vg_port_frame(port, &t, k);
        for (int c = 0; c < 3; c++)
            for (int64_t y = 0; y < frame.dim[2]; y++)
                for (int64_t x = 0; x < frame.dim[3]; x++)
                    ((float *)frame.data)[c * frame.stride[1] + y * frame.stride[2] + x * frame.stride[3]] =
                        (float)(picture_at(px->order[c], y, x + MOVE * (port->first + k)) - px->mean[c]) * px->scale[c];
    }
    return t;
}

/* The output of the sample pictures; its data is NULL where that did not work, and then *status tells why.  One tile: others
 * might be too small for Winograd's blocks, which are what is tried. */
static struct vgk_tensor sample(struct vg_model *m, struct vgk_device *device, int width, int height, bool direct,
                                size_t max_bytes, enum vgk_status *status)
{
    struct vg_plan *plan = NULL;
    struct vg_run *run = NULL;
    struct vg_plan_request request = {.width = width, .height = height, .overlap_x = -1, .overlap_y = -1,
                                      .tile_width = width, .tile_height = height, .max_bytes = max_bytes};
    struct vgk_tensor out = {VGK_NONE}, *in = NULL, *outs = NULL;
    int n_in = 0;
    if ((*status = vg_plan_untried(m, &vgk_cpu, device, &request, direct, &plan, NULL)))
        return out;
    *status = VGK_ERR_NOMEM;
    if (plan->program->blocks == direct || vg_run_open(plan, &run, NULL))
        goto done; /* direct products, where those of blocks have no room */
    const struct vg_net *net = plan->program->net;
    in = calloc((size_t)net->n_inputs + 1, sizeof *in);
    outs = calloc((size_t)net->n_outputs + 1, sizeof *outs);
    if (!in || !outs)
        goto done;
    while (n_in < net->n_inputs) {
        in[n_in] = input_of(plan, n_in);
        n_in++;
    }
    struct vgk_tensor *result = &outs[m->frame_output];
    *result = dense(device, &net->values[net->outputs[m->frame_output]].t);
    if (in[m->frame_input].data && result->data)
        *status = vg_run_tensors(run, in, n_in, outs, net->n_outputs, NULL);
    if (*status)
        vgk_cpu.free(device, result->data);
    else
        out = *result;
done:
    for (int i = 0; i < n_in; i++)
        vgk_cpu.free(device, in[i].data);
    free(in);
    free(outs);
    vg_run_close(&run);
    vg_plan_free(&plan);
    return out;
}

static double largest_difference(const struct vg_model *m, const struct vgk_tensor *a, const struct vgk_tensor *b)
{
    const struct vgk_pixels *px = &m->summary.out;
    const float *x = a->data, *y = b->data;
    float scale = INFINITY, low = INFINITY, high = -INFINITY;
    for (int k = 0; k < 3; k++) { /* what is beyond black or white in all channels is cut off in any case */
        float black = -px->mean[k] * px->scale[k], white = (1 - px->mean[k]) * px->scale[k];
        scale = fminf(scale, fabsf(px->scale[k]));
        low = fminf(low, fminf(black, white));
        high = fmaxf(high, fmaxf(black, white));
    }
    double most = 0;
    for (int64_t i = 0; i < vgk_tensor_count(a); i++) {
        if (!isfinite(x[i]) || !isfinite(y[i])) {
            if (isfinite(x[i]) || isfinite(y[i]))
                return INFINITY;
            continue;
        }
        double d = fabs((double)fminf(fmaxf(x[i], low), high) - (double)fminf(fmaxf(y[i], low), high));
        most = d > most ? d : most;
    }
    return most / scale * 255;
}

/* The pictures beside the arena: a window, and what comes out, once each way. */
static size_t picture_bytes(const struct vg_model *m, int width, int height)
{
    const struct vg_summary *s = &m->summary;
    size_t in = 3 * sizeof(float) * (size_t)width * (size_t)height;
    return in * (size_t)s->window + 2 * in * (size_t)s->emit * (size_t)(s->scale_num * s->scale_num) /
                                        (size_t)(s->scale_den * s->scale_den);
}

/* *peak: what it took. */
static double measure(struct vg_model *m, size_t max_bytes, size_t *peak)
{
    struct vgk_device *device = NULL;
    double steps = -1;
    if (vgk_cpu.open(&(struct vgk_device_options){.threads = 1, .max_bytes = max_bytes}, &device, NULL))
        return steps;
    for (int size = SAMPLE; size <= MOST_SAMPLE && steps == -1; size *= 2) {
        int width = m->summary.fixed_width ? m->summary.fixed_width : size;
        int height = m->summary.fixed_height ? m->summary.fixed_height : size;
        size_t pictures = picture_bytes(m, width, height), room = max_bytes > pictures ? max_bytes - pictures : 1;
        enum vgk_status status;
        struct vgk_tensor fast = sample(m, device, width, height, false, room, &status), exact = {VGK_NONE};
        if (!status)
            exact = sample(m, device, width, height, true, room, &status);
        if (!status)
            steps = largest_difference(m, &fast, &exact);
        else if (status == VGK_ERR_NOMEM)
            steps = VG_TRIAL_NO_ROOM;
        vgk_cpu.free(device, fast.data);
        vgk_cpu.free(device, exact.data);
    }
    *peak = vgk_cpu.bytes_peak(device);
    vgk_cpu.close(&device);
    return steps;
}

double vg_trial_steps(struct vg_model *m, size_t max_bytes)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!m->tried) {
        m->trial_steps = measure(m, max_bytes, &m->trial_peak);
        m->tried = m->trial_steps != VG_TRIAL_NO_ROOM; /* the next one may have more */
        if (m->tried)
            atomic_store(&m->no_winograd, m->trial_steps > VG_TRIAL_MOST_STEPS);
    }
    double steps = m->trial_steps;
    pthread_mutex_unlock(&lock);
    return steps;
}
