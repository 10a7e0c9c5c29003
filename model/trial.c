/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trial.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "plan_internal.h"
#include "run.h"

/* Pixels: whole blocks of several layers, and little work.  A model that wants more gets more. */
enum { SAMPLE = 48, MOST_SAMPLE = 192 };

/* Smooth shades, edges and some grain, as pictures have; 0..1. */
static double picture_at(int c, int64_t y, int64_t x)
{
    uint32_t hash = (uint32_t)(x * 73856093 ^ y * 19349663 ^ c * 83492791) * 2654435761u;
    double shade = 0.5 + 0.25 * sin(0.11 * (double)x + c) + 0.15 * cos(0.17 * (double)y - 0.05 * (double)x);
    double edge = (x / 11 + y / 13) % 3 ? 0 : 0.3;
    return fmin(fmax(shade - edge + ((hash >> 8) / 16777216.0 - 0.5) * 0.1, 0), 1);
}

/* Channel c of pixel (y, x) of a picture's tensor. */
static float *pixel(const struct vgk_tensor *t, bool interleaved, int c, int64_t y, int64_t x)
{
    int channel = interleaved ? t->rank - 1 : t->rank - 3, row = interleaved ? t->rank - 3 : t->rank - 2;
    return (float *)t->data + c * t->stride[channel] + y * t->stride[row] + x * t->stride[row + 1];
}

static struct vgk_tensor dense(const struct vgk_tensor *like)
{
    struct vgk_tensor t = vgk_tensor_make(VGK_F32, like->rank, like->dim, VGK_ROW_MAJOR);
    size_t bytes;
    t.data = vgk_tensor_bytes(&t, &bytes) ? calloc(1, bytes + 1) : NULL;
    return t;
}

/* The output of the sample picture; its data is NULL where that did not work.  malloc'ed. */
static struct vgk_tensor sample(struct vg_model *m, int width, int height, bool exact)
{
    struct vgk_device *device = NULL;
    struct vg_plan *plan = NULL;
    struct vg_run *run = NULL;
    struct vg_plan_request request = {.width = width, .height = height, .overlap_x = -1, .overlap_y = -1, .bands = 1,
                                      .max_bytes = SIZE_MAX};
    struct vgk_tensor out = {VGK_NONE};
    if (vgk_cpu.open(&(struct vgk_device_options){.exact_products = exact}, &device, NULL) ||
        vg_plan_untried(m, &vgk_cpu, device, &request, &plan, NULL) || vg_run_open(plan, &run, NULL))
        goto done;
    const struct vg_net *net = plan->program->net;
    struct vgk_tensor *in = calloc((size_t)net->n_inputs + 1, sizeof *in);
    struct vgk_tensor *outs = calloc((size_t)net->n_outputs + 1, sizeof *outs);
    const struct vgk_pixels *px = &m->summary.in;
    if (in && outs) {
        struct vgk_tensor *frame = &in[m->frame_input], *result = &outs[m->frame_output];
        *frame = dense(&net->values[net->inputs[m->frame_input]].t);
        *result = dense(&net->values[net->outputs[m->frame_output]].t);
        if (frame->data && result->data) {
            int y_axis = frame->rank - (m->interleaved ? 3 : 2);
            int64_t rows = frame->dim[y_axis], columns = frame->dim[y_axis + 1];
            for (int c = 0; c < 3; c++)
                for (int64_t y = 0; y < rows; y++)
                    for (int64_t x = 0; x < columns; x++)
                        *pixel(frame, m->interleaved, c, y, x) =
                            (float)(picture_at(px->order[c], y, x) - px->mean[c]) * px->scale[c];
            if (!vg_run_tensors(run, in, net->n_inputs, outs, net->n_outputs, NULL)) {
                out = *result;
                result->data = NULL;
            }
        }
        free(frame->data);
        free(result->data);
    }
    free(in);
    free(outs);
done:
    vg_run_close(&run);
    vg_plan_free(&plan);
    vgk_cpu.close(&device);
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

static double measure(struct vg_model *m)
{
    for (int size = SAMPLE; size <= MOST_SAMPLE; size *= 2) {
        int width = m->summary.fixed_width ? m->summary.fixed_width : size;
        int height = m->summary.fixed_height ? m->summary.fixed_height : size;
        struct vgk_tensor fast = sample(m, width, height, false), exact = {VGK_NONE};
        if (fast.data)
            exact = sample(m, width, height, true);
        double steps = fast.data && exact.data ? largest_difference(m, &fast, &exact) : -1;
        free(fast.data);
        free(exact.data);
        if (steps >= 0)
            return steps;
    }
    return -1;
}

double vg_trial_steps(struct vg_model *m)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!m->tried) {
        m->trial_steps = measure(m);
        atomic_store(&m->no_winograd, m->trial_steps > VG_TRIAL_MOST_STEPS);
        m->tried = true;
    }
    double steps = m->trial_steps;
    pthread_mutex_unlock(&lock);
    return steps;
}
