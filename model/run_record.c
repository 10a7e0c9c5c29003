/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ops between the frames that a program reads and writes, as one call to the device.  Addresses and shapes are the same in
 * every run, and values, parameters' too, lie in memory: what was recorded once stays right. */
#include <stdlib.h>

#include "run_internal.h"

static bool is_op(const struct vg_step *s)
{
    return s->type != VG_CALL_READ && s->type != VG_CALL_WRITE && s->type < VG_CALL_SPILL;
}

/* False: these stay calls of their own. */
static bool record(const struct vg_run *r, const struct bound *b, int begin, int end, struct vgk_recording **recording)
{
    const struct vgk_backend *backend = r->plan->backend;
    struct vgk_device *device = r->plan->device;
    enum vgk_status s = backend->record_begin(device, NULL);
    if (s)
        return false;
    for (int i = begin; i < end && !s; i++)
        s = backend->run(device, &b->steps[i].op, b->steps[i].packed, b->steps[i].scratch, NULL);
    enum vgk_status ended = backend->record_end(device, recording, NULL);
    if (s && !ended)
        backend->record_free(device, recording);
    return !s && !ended;
}

void vg_run_record(struct vg_run *r, struct bound *b)
{
    const struct vg_program *l = b->program;
    int most = 0, end;
    b->ran = true;
    if (!r->plan->backend->record_begin)
        return;
    for (int i = l->n_prologue; i < l->n_steps; i++)
        most += is_op(&l->steps[i]) && (i == l->n_prologue || !is_op(&l->steps[i - 1]));
    if (!(b->segments = calloc((size_t)most + 1, sizeof *b->segments)))
        return;
    for (int begin = l->n_prologue; begin < l->n_steps; begin = end) {
        for (end = begin; end < l->n_steps && is_op(&l->steps[end]); end++)
            ;
        struct vgk_recording *recording = NULL;
        if (end - begin > 1 && record(r, b, begin, end, &recording)) {
            b->segments[b->n_segments++] = (struct segment){begin, end, recording};
            r->info.recorded += end - begin;
            r->info.recordings++;
        }
        end += end == begin;
    }
}

void vg_run_record_close(struct vg_run *r, struct bound *b)
{
    for (int i = 0; i < b->n_segments; i++)
        r->plan->backend->record_free(r->plan->device, &b->segments[i].recording);
    free(b->segments);
}
