/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whose statistics a frame is processed with (enum vg_norm_mode), and what the difference is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "run_internal.h"
#include "transfer.h"

/* Weight of a frame in the kept statistics.  With 1 a deep net rings: each norm's statistics were measured on what the
 * norms before it made with older ones (26 styles on a moving clip: twice the flicker of exact norms; with 0.2 as much
 * as they have). */
#define SMOOTHING 0.2f

static const struct vg_program *measuring_program(const struct vg_plan *p)
{
    return p->exact ? p->exact : p->small ? p->small : p->program;
}

enum vgk_status vg_run_norms_open(struct vg_run *r, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    const struct vg_summary *sum = &p->model->summary;
    size_t values = 1;
    for (int i = 0; i < sum->n_parameters; i++)
        values += (size_t)sum->parameters[i].count;
    r->norms.parameters = calloc(values, sizeof *r->norms.parameters);
    r->norms.small = p->small ? calloc((size_t)p->info.window, sizeof *r->norms.small) : NULL;
    if (!r->norms.parameters || (p->small && !r->norms.small) ||
        !vg_statistics_make(measuring_program(p)->net, &r->norms.statistics))
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for the run");
    if (p->norms.host_frames && !(r->norms.host_frames = p->backend->host_alloc(p->device, p->norms.host_frames)))
        return vgk_fail(err, VGK_ERR_NOMEM, "no %zu bytes of host memory for frames", p->norms.host_frames);
    return VGK_OK;
}

void vg_run_norms_close(struct vg_run *r)
{
    if (r->norms.host_frames)
        r->plan->backend->host_free(r->plan->device, r->norms.host_frames, r->plan->norms.host_frames);
    vg_statistics_free(&r->norms.statistics);
    free(r->norms.parameters);
    free(r->norms.small);
}

const struct vg_statistics *vg_run_statistics(const struct vg_run *r) { return &r->norms.statistics; }

/* --- between the arena and us --- */

static uint8_t *frames(const struct vg_run *r) { return r->plan->host ? r->norms.host_frames : (uint8_t *)r->arena; }

static struct vgk_tensor host(const struct vgk_tensor *like, float *data)
{
    struct vgk_tensor t = vgk_tensor_make(VGK_F32, like->rank, like->dim, VGK_ROW_MAJOR);
    t.data = data;
    return t;
}

/* What the last run of this program measured. */
static enum vgk_status fetch(struct vg_run *r, const struct bound *b, struct vgk_error *err)
{
    struct vg_statistics *s = &r->norms.statistics;
    enum vgk_status status = VGK_OK;
    for (int i = 0; i < s->n && !status; i++) {
        struct vgk_tensor from = vg_run_at(b, &b->program->memories[i].now), to = host(&from, s->now + s->parts[i].at);
        status = vg_copy_out(r->plan, &from, &to, err);
    }
    return status;
}

/* What the tiles' program, and its rescue, are to use. */
static enum vgk_status give(struct vg_run *r, struct vgk_error *err)
{
    struct vg_statistics *s = &r->norms.statistics;
    struct bound *all[] = {&r->main, &r->rescue};
    enum vgk_status status = VGK_OK;
    for (int k = 0; k < (r->plan->rescue ? 2 : 1); k++) {
        for (int i = 0; i < s->n && !status; i++) {
            struct vgk_tensor to = vg_run_at(all[k], &all[k]->program->memories[i].kept),
                              from = host(&to, s->kept + s->parts[i].at);
            status = vg_copy_in(r->plan, &from, &to, err);
        }
        all[k]->stale = true; /* what follows from them */
    }
    r->norms.ready = !status;
    return status;
}

/* --- the modes --- */

enum vgk_status vg_run_norms_parameter(struct vg_run *r, int i, const float *values, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    const struct vg_parameter *q = p->model->summary.parameters;
    float *own = r->norms.parameters;
    size_t bytes = (size_t)q[i].count * sizeof *own;
    for (int k = 0; k < i; k++)
        own += q[k].count;
    if (p->norms.mode != VG_NORM_FROZEN || !memcmp(own, values, bytes))
        return VGK_OK;
    memcpy(own, values, bytes);
    r->norms.ready = r->info.frozen = false;
    vg_statistics_restart(&r->norms.statistics);
    return VGK_OK;
}

static bool in_tiles(const struct vg_plan *p) { return p->grid.x.n * p->grid.y.n > 1; }

/* Of a frame in tiles, the last one that is measured is still at work: vg_run_begin of the next one settles. */
bool vg_run_norms_known(const struct vg_run *r)
{
    const struct vg_plan_norms *n = &r->plan->norms;
    return n->mode != VG_NORM_FROZEN || r->info.frozen || n->stored ||
           (!in_tiles(r->plan) && r->norms.statistics.frames >= n->frames);
}

enum vgk_status vg_run_norms_settle(struct vg_run *r, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    struct vg_statistics *s = &r->norms.statistics;
    if (p->norms.mode != VG_NORM_FROZEN || r->info.frozen || (!p->norms.stored && s->frames < p->norms.frames))
        return VGK_OK;
    if (p->norms.stored)
        vg_stored_mix(&p->model->stored, r->norms.parameters, s->kept);
    else
        vg_statistics_mean(s);
    enum vgk_status status = give(r, err);
    r->info.frozen = !status;
    return status;
}

static bool measures(const struct vg_run *r) { return r->plan->norms.mode == VG_NORM_FROZEN && !r->info.frozen; }

static enum vgk_status run_exact(struct vg_run *r, const struct ends *e, struct vgk_error *err)
{
    enum vgk_status s = vg_run_program(r, &r->exact, e, err);
    if (!s && measures(r) && !(s = fetch(r, &r->exact, err)))
        vg_statistics_add(&r->norms.statistics);
    return s;
}

static enum vgk_status run_small(struct vg_run *r, const struct vgk_frame *in, const struct vgk_colour *colour,
                                 struct vgk_error *err)
{
    const struct vg_plan_norms *n = &r->plan->norms;
    struct vgk_frame *small = r->norms.small;
    uint8_t *memory = frames(r) + n->small_frame_at;
    for (int k = 0; k < r->plan->info.window; k++) {
        small[k] = vg_frame_like(&in[k], n->small_width, n->small_height, memory);
        vg_frame_shrink(&in[k], &small[k]);
        memory += (size_t)n->small_width * (size_t)n->small_height * VG_FRAME_STEP;
    }
    struct ends e = vg_run_ends(r, 0, 0, small, colour, NULL);
    enum vgk_status s = vg_run_program(r, &r->small, &e, err);
    s = s ? s : fetch(r, &r->small, err);
    if (s)
        return s;
    vg_statistics_follow(&r->norms.statistics, 1);
    return give(r, err);
}

enum vgk_status vg_run_begin(struct vg_run *r, const struct vgk_frame *in, const struct vgk_colour *colour,
                             const struct vgk_frame *compare, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    struct vg_run_norms *n = &r->norms;
    n->comparing = false;
    enum vgk_status s = vg_run_check_whole(p, in, err);
    s = s ? s : vg_run_norms_settle(r, err);
    if (!s && p->small)
        s = run_small(r, in, colour, err);
    if (!s && measures(r) && in_tiles(p)) {
        struct ends e = vg_run_ends(r, 0, 0, in, colour, NULL);
        if ((s = run_exact(r, &e, err)))
            return s;
        vg_statistics_follow(&n->statistics, 1);
        s = give(r, err);
    } else if (!s && compare && p->norms.errors && !measures(r)) {
        n->frame = vg_frame_like(compare, compare->width, compare->height, frames(r) + p->norms.frame_at);
        struct ends e = vg_run_ends(r, 0, 0, in, colour, &n->frame);
        s = vg_run_program(r, &r->exact, &e, err);
        n->comparing = !s;
    }
    return s;
}

void vg_run_norms_compare(struct vg_run *r, int column, int row, const struct vgk_frame *out)
{
    const struct vg_axis *x = &r->plan->grid.x, *y = &r->plan->grid.y;
    struct vg_run_norms *n = &r->norms;
    if (!n->comparing)
        return;
    int left = vg_axis_scale(x, x->cut[column]), right = vg_axis_scale(x, x->cut[column + 1]);
    int top = vg_axis_scale(y, y->cut[row]), bottom = vg_axis_scale(y, y->cut[row + 1]);
    int from_x = left - vg_axis_scale(x, x->origin[column]), from_y = top - vg_axis_scale(y, y->origin[row]);
    struct vg_difference d = {0};
    vg_frame_compare(out, from_x, from_y, right - left, bottom - top, &n->frame, left, top, &d);
    n->error_sum += d.sum;
    n->error_values += d.values;
    r->info.error_mean = n->error_sum / (double)n->error_values;
    r->info.error_worst = d.worst > r->info.error_worst ? d.worst : r->info.error_worst;
    r->info.errors_frames += column == x->n - 1 && row == y->n - 1;
}

static enum vgk_status run_previous(struct vg_run *r, const struct ends *e, struct vgk_error *err)
{
    struct vg_run_norms *n = &r->norms;
    bool again = !n->kept;
    enum vgk_status s = VGK_OK;
    r->info.drift = 0;
    if (n->kept) {
        s = vg_run_program(r, &r->main, e, err);
        s = s ? s : fetch(r, &r->main, err);
        r->info.drift = s ? 0 : vg_statistics_drift(&n->statistics);
        again = !(r->info.drift <= VG_RUN_CUT) || r->nonfinite; /* NaN too */
        r->info.rescued += r->nonfinite > 0; /* by what does frames exactly, which is in f32 */
        r->info.cuts += again && !r->nonfinite;
    }
    if (!s && again) {
        s = vg_run_program(r, &r->exact, e, err);
        s = s ? s : fetch(r, &r->exact, err);
    }
    n->kept = !s;
    if (s)
        return s;
    vg_statistics_follow(&n->statistics, again ? 1 : SMOOTHING);
    return give(r, err);
}

/* The tiles' program; what overflows in half precision is run again. */
static enum vgk_status run_main(struct vg_run *r, const struct ends *e, struct vgk_error *err)
{
    enum vgk_status s = vg_run_program(r, &r->main, e, err);
    if (s || !r->nonfinite)
        return s;
    r->info.rescued++;
    return vg_run_program(r, &r->rescue, e, err);
}

enum vgk_status vg_run_steps(struct vg_run *r, const struct ends *e, struct vgk_error *err)
{
    const struct vg_plan *p = r->plan;
    enum vgk_status s = VGK_OK;
    switch (p->norms.mode) {
    case VG_NORM_PREVIOUS: return run_previous(r, e, err);
    case VG_NORM_FROZEN:
        if (!in_tiles(p) || p->norms.stored)
            s = vg_run_norms_settle(r, err);
        if (!s && measures(r) && !in_tiles(p))
            return run_exact(r, e, err);
        break;
    case VG_NORM_THUMBNAIL: break;
    default: return run_main(r, e, err);
    }
    if (!s && !r->norms.ready)
        return vgk_fail(err, VGK_ERR_INVALID, "a tile before its frame: vg_run_begin comes first in this norm-mode");
    return s ? s : run_main(r, e, err);
}
