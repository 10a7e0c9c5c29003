/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One tile within a budget. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuse.h"
#include "plan_internal.h"

void vg_plan_note(struct vg_plan *p, const char *format, ...)
{
    size_t at = strlen(p->ways);
    va_list args;
    if (p->quiet)
        return;
    va_start(args, format);
    if (at && at + 3 < sizeof p->ways)
        at += (size_t)snprintf(p->ways + at, sizeof p->ways - at, "; ");
    vsnprintf(p->ways + at, sizeof p->ways - at, format, args);
    va_end(args);
}

enum vgk_status vg_plan_lay_out(struct vg_plan *p, int width, int height, struct vg_how how, struct vg_program **program,
                                struct vgk_error *err)
{
    struct vg_program_request request = {p->model->frame_output, how.bands, how.recompute, p->states.bytes, how.spill,
                                         how.stream, how.measure, p->rows};
    enum vgk_status s = VGK_OK;
    how.direct |= p->all_direct || p->bf16 || atomic_load(&p->model->no_winograd);
    if (!p->bound || p->bound_width != width || p->bound_height != height || p->bound_how.direct != how.direct ||
        p->bound_how.norms != how.norms || p->bound_how.half != how.half) {
        vg_net_free(&p->bound);
        s = vg_model_bind(p->model, width, height, p->info.window, true, how.norms, &p->bound, err);
        if (!s && p->backend->gates)
            vg_net_gate(p->bound);
        if (!s && p->backend->chains && (!how.half || p->backend->half))
            vg_net_chain(p->bound);
        for (int i = 0; !s && i < p->bound->n_ops; i++) {
            struct vgk_op *op = &p->bound->ops[i].op;
            if (op->kind == VGK_OP_CONV) {
                op->p.conv.exact_products = how.direct;
                op->p.conv.bf16 = p->bf16;
            } else if (op->kind == VGK_OP_MATMUL) {
                op->p.matmul.bf16 = p->bf16;
            }
        }
        if (!s && how.half && (s = vg_net_halve(p->bound, p->model->frame_output, p->backend->half)))
            vgk_fail(err, s, "no memory to lay out the model");
        if (s)
            vg_net_free(&p->bound);
        p->bound_width = width;
        p->bound_height = height;
        p->bound_how = how;
    }
    struct vg_net *net = s ? NULL : vg_net_ref(p->bound);
    if (!s && (s = vg_program_make(net, p->backend, p->device, &request, program, err)))
        vg_net_free(&net);
    return s;
}

/* What a layout costs. */
struct cost {
    double work;
    size_t bytes;
};

struct search {
    struct vg_plan *plan;
    int width, height;
    struct vg_how how;
    size_t max_bytes, least; /* of all that was tried */
    int best_bands;          /* the cheapest that fits; 0 = none yet */
    struct cost best;
    size_t round_least;
    int round_bands;
    int kept; /* by the layout that needs least in this round: its largest_kept_buffer */
};

/* What so many bands cost, and the largest_kept_buffer then. */
static enum vgk_status price(const struct search *s, int bands, struct cost *cost, int *kept)
{
    struct vg_program *p = NULL;
    struct vg_how how = s->how;
    how.bands = bands;
    how.measure = true;
    *cost = (struct cost){1e300, SIZE_MAX};
    enum vgk_status status = vg_plan_lay_out(s->plan, s->width, s->height, how, &p, NULL);
    if (status)
        return status;
    *cost = (struct cost){p->work, vg_program_bytes(p)};
    *kept = p->largest_kept_buffer;
    vg_program_free(&p);
    return VGK_OK;
}

static enum vgk_status try_one(struct search *s, int bands, struct cost *cost)
{
    int kept;
    enum vgk_status status = price(s, bands, cost, &kept);
    if (status)
        return status;
    if (cost->bytes < s->round_least) {
        s->round_least = cost->bytes;
        s->round_bands = bands;
        s->kept = kept;
    }
    if (cost->bytes < s->least)
        s->least = cost->bytes;
    if (cost->bytes <= s->max_bytes && (!s->best_bands || cost->work < s->best.work)) {
        s->best_bands = bands;
        s->best = *cost;
    }
    return VGK_OK;
}

/* The cheapest number of bands that fits: more of them need less memory, and their rows stay in the cache, but they are
 * more calls.  What is carried from band to band grows with their number in the end. */
static enum vgk_status try_bands(struct search *s)
{
    static const int counts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};
    enum { MOST_WORSE = 4 }; /* rows come in units, so that a few more bands can need a little more */
    struct cost before = {1e300, SIZE_MAX}, cost;
    int worse = 0;
    s->round_least = SIZE_MAX;
    s->round_bands = 0;
    s->kept = -1;
    for (size_t i = 0; i < sizeof counts / sizeof *counts && s->height / counts[i] >= 6 && worse < MOST_WORSE; i++) {
        if (s->best_bands && !s->plan->backend->cache)
            break; /* the first that fits */
        enum vgk_status status = try_one(s, counts[i], &cost);
        if (status)
            return status;
        if (s->best_bands && s->best_bands < counts[i] && cost.work >= before.work)
            break;
        worse = cost.bytes < before.bytes ? 0 : worse + 1;
        before = cost;
    }
    return VGK_OK;
}

/* Buffer b goes to host memory, or is computed again where it is needed: whichever costs less, if it helps.  (What
 * cannot be spilled costs the same as what is stored; so does the frame itself, which is there to be read again.) */
static void give_up(struct search *s, bool *recompute, bool *spill, int b)
{
    int bands = s->round_bands ? s->round_bands : 2;
    struct cost again, moved;
    int kept;
    recompute[b] = true;
    price(s, bands, &again, &kept);
    recompute[b] = false;
    spill[b] = true;
    price(s, bands, &moved, &kept);
    bool again_helps = again.bytes < s->round_least, moved_helps = moved.bytes < s->round_least;
    if (again_helps == moved_helps ? again_helps ? again.work <= moved.work : again.bytes <= moved.bytes : again_helps) {
        spill[b] = false;
        recompute[b] = true;
    }
}

static double mib(size_t bytes) { return (double)bytes / (1 << 20); }

enum vgk_status vg_plan_fit(struct vg_plan *plan, int width, int height, struct vg_how how, size_t max_bytes,
                            size_t *least_bytes, struct vg_program **best)
{
    enum { ROUNDS = 32 };
    struct search s = {.plan = plan, .width = width, .height = height, .how = how, .max_bytes = max_bytes,
                       .least = SIZE_MAX, .round_least = SIZE_MAX};
    const char *also = how.stream ? " with weights from host memory" : "";
    struct cost whole;
    enum vgk_status status = try_one(&s, 1, &whole);
    if (status)
        return status;
    int nb = plan->bound->n_buffers;
    bool *lists = calloc(2 * (size_t)nb + 2, sizeof *lists), *recompute = lists, *spill = lists ? lists + nb + 1 : NULL;
    if (!lists)
        status = VGK_ERR_NOMEM;
    if (!s.best_bands)
        vg_plan_note(plan, "the whole frame%s: %.1f MiB", also, mib(whole.bytes));
    s.how.recompute = recompute;
    s.how.spill = spill;
    for (int round = 0; !status && round <= ROUNDS; round++) {
        if (round == ROUNDS) { /* the least of all */
            memset(recompute, 0, (size_t)nb);
            memset(spill, 1, (size_t)nb);
        }
        status = try_bands(&s);
        if (!round && !status && !s.best_bands && s.round_bands)
            vg_plan_note(plan, "bands%s: %.1f MiB in %d", also, mib(s.round_least), s.round_bands);
        if (s.best_bands || status || round == ROUNDS)
            break;
        if (s.kept < 0 && !round)
            break; /* nothing is kept from pass to pass */
        if (s.kept >= 0)
            give_up(&s, recompute, spill, s.kept);
        else
            round = ROUNDS - 1;
    }
    if (s.best_bands && status != VGK_ERR_NOMEM) { /* that it cannot run in bands does not matter then */
        s.how.bands = s.best_bands;
        status = vg_plan_lay_out(plan, width, height, s.how, best, NULL);
        if (whole.bytes <= max_bytes && s.best_bands > 1)
            vg_plan_note(plan, "the whole frame at once%s: %.1f MiB, and slower", also, mib(whole.bytes));
    } else if (!status) {
        if (memchr(spill, 1, (size_t)nb))
            vg_plan_note(plan, "bands with host memory%s: at least %.1f MiB", also, mib(s.least));
        status = VGK_ERR_UNSUPPORTED;
    }
    free(lists);
    *least_bytes = s.least < *least_bytes ? s.least : *least_bytes;
    return status;
}
