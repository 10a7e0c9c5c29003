/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A plan in words and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan_internal.h"
#include "window.h"

static double mib(size_t bytes) { return (double)bytes / (1 << 20); }

static const char *input_name(const struct vg_model *m, int i) { return m->graph->values[m->graph->inputs[i]].name; }

static const char *frame_name(const struct vg_model *m, bool input)
{
    return input ? input_name(m, m->frame_input) : m->graph->values[m->graph->outputs[m->frame_output]].name;
}

/* What a state is fed from. */
static const char *state_source(const struct vg_model *m, const struct vg_state_role *s)
{
    return s->output < 0 ? input_name(m, s->source) : m->graph->values[m->graph->outputs[s->output]].name;
}

static void time_text(FILE *f, const struct vg_plan *p)
{
    const struct vg_model *m = p->model;
    const struct vg_plan_info *i = &p->info;
    if (i->window > 1 || i->emit > 1 || m->summary.n_states) {
        fprintf(f, "time    %d frame%s in, %d out", i->window, i->window == 1 ? "" : "s", i->emit);
        if (i->centre < 0)
            fprintf(f, " between them%s", vg_window_time_input(m) < 0 ? "" : ", one run each");
        else
            fprintf(f, ", for frame %d%s", i->centre, i->emit > 1 ? " and those behind it" : "");
        fprintf(f, "; hop %d; depends on %d before and %d behind\n", i->hop, m->summary.look_back, m->summary.look_ahead);
    }
    for (int k = 0; k < m->roles.n_states; k++) {
        const struct vg_state_role *s = &m->roles.states[k];
        char shape[128];
        fprintf(f, "state   '%s' from '%s'%s, %s, begins with %s\n", input_name(m, s->input), state_source(m, s),
                s->output < 0 ? " of the run before" : "",
                vgk_tensor_describe(&p->states.state[k].t, shape, sizeof shape), s->first ? "the first frame" : "zeros");
    }
}

char *vg_plan_text(const struct vg_plan *p)
{
    const struct vg_summary *s = &p->model->summary;
    const struct vg_axis *x = &p->grid.x, *y = &p->grid.y;
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    fprintf(f, "model   %s (%s, opset %d, %d nodes -> %d ops)\n", s->name, s->path, s->opset, s->n_nodes,
            p->info.n_ops);
    fprintf(f, "roles   frame ");
    for (int i = 0; i < p->model->graph->n_inputs; i++)
        if (p->model->roles.inputs[i].role == VG_ROLE_FRAME)
            fprintf(f, "'%s' ", input_name(p->model, i));
    fprintf(f, "in, '%s' out", frame_name(p->model, false));
    for (int i = 0; i < s->n_parameters; i++)
        fprintf(f, "%s %s[%d]", i ? "," : "; parameters", s->parameters[i].name, s->parameters[i].count);
    fprintf(f, "\nscale   %d/%d, align %dx%d, ", s->scale_num, s->scale_den, s->align_x, s->align_y);
    if (p->info.global_why)
        fprintf(f, "depends on the whole frame: %s\n", p->info.global_why);
    else
        fprintf(f, "halo left %d, right %d, top %d, bottom %d\n", s->halo_left, s->halo_right, s->halo_top,
                s->halo_bottom);
    time_text(f, p);
    fprintf(f, "frame   %dx%d in %dx%d tiles of %dx%d, %.1f %% computed twice, %s\n", x->frame, y->frame, x->n, y->n,
            x->tile, y->tile, 100 * ((1 + vg_axis_waste(x)) * (1 + vg_axis_waste(y)) - 1),
            !p->info.exact   ? "NOT equal to the untiled result"
            : p->info.direct ? "equal to the untiled result of direct products"
                             : "equal to the untiled result");
    if (p->info.bands > 1)
        fprintf(f, "order   %d bands of about %d rows in %d pass%s; nothing is computed twice but across passes\n",
                p->info.bands, (y->tile + p->info.bands - 1) / p->info.bands, p->info.levels,
                p->info.levels == 1 ? "" : "es");
    if (p->info.norm_mode != VG_NORM_EXACT)
        fprintf(f, "norms   %s%s: %d norms and means over the frame%s%s\n", vg_norm_mode_name(p->info.norm_mode),
                p->info.norm_mode != VG_NORM_FROZEN ? "" : p->info.norm_stored ? ", by what is stored beside the model"
                                                                               : ", measured on the first frames",
                p->info.norm_count, p->info.norm_errors ? "; with room to compare with exact ones" : "",
                p->info.global_why && p->program->net->n_memories && p->norms.source == VG_NORM_GIVEN
                    ? "; the frame is not cut, something else depends on it" : "");
    fprintf(f, "memory  %.2f MiB = weights %.2f + activations %.2f (lower bound %.2f; scratch up to %.2f)",
            mib(p->info.arena_bytes), mib(p->info.weight_bytes), mib(p->info.activation_bytes),
            mib(p->info.activation_floor), mib(p->info.scratch_bytes));
    if (p->info.state_bytes)
        fprintf(f, " + states %.2f (two copies)", mib(p->info.state_bytes));
    fputc('\n', f);
    if (p->rescue)
        fprintf(f, "half    activations in f16; %.2f MiB more for running tiles again in f32 that overflow%s\n",
                mib(p->info.rescue_bytes), p->rescue->streams ? ", its weights in host memory" : "");
    else if (p->half)
        fprintf(f, "half    activations in f16; frames that overflow are done exactly, in f32\n");
    if (p->bf16)
        fprintf(f, "bf16    %d of %d convolutions and matrix products multiply bf16 and add up in f32; all else is f32\n",
                p->info.n_bf16, p->info.n_products);
    if (p->info.flight_bytes)
        fprintf(f, "flight  a tile is computed while the next one goes up and the one before comes down%s: %.2f MiB more, and "
                "%.2f MiB of pinned host memory\n", p->info.flight_frames ? "; a frame's rows go up once" : "",
                mib(p->info.flight_bytes), mib(p->info.staging_bytes));
    if (p->info.winograd_error_steps >= 0)
        fprintf(f, "numbers Winograd's blocks differ from direct products by up to %.2g steps of 255%s\n",
                p->info.winograd_error_steps, p->info.winograd_refused ? ", too much: direct products are used" : "");
    if (p->info.host_bytes)
        fprintf(f, "host    %.2f MiB outside of the device%s, %.2f MiB moved for a frame\n", mib(p->info.host_bytes),
                p->info.streams ? ", weights among them" : "", mib(p->info.moved_bytes));
    if (p->info.n_spilled || p->info.n_recomputed)
        fprintf(f, "passes  %d pictures go from pass to pass by host memory, %d ops run in several\n", p->info.n_spilled,
                p->info.n_recomputed);
    if (*p->info.ways)
        fprintf(f, "not     %s\n", p->info.ways);
    fprintf(f, "device  %s\n", p->backend->describe(p->device));
    if (p->info.warning)
        fprintf(f, "warning %s\n", p->info.warning);
    if (fclose(f)) {
        free(text);
        return NULL;
    }
    return text;
}

static void quote(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(f, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(f, "\\u%04x", (unsigned char)*text);
        else
            fputc(*text, f);
    fputc('"', f);
}

static void list(FILE *f, const char *name, const int *v, int n)
{
    fprintf(f, ", \"%s\": [", name);
    for (int i = 0; i < n; i++)
        fprintf(f, "%s%d", i ? ", " : "", v[i]);
    fprintf(f, "]");
}

static void axis(FILE *f, const char *name, const struct vg_axis *a)
{
    fprintf(f, ", \"%s\": {\"frame\": %d, \"tile\": %d", name, a->frame, a->tile);
    list(f, "origins", a->origin, a->n);
    list(f, "cuts", a->cut, a->n + 1);
    fprintf(f, "}");
}

static void time_json(FILE *f, const struct vg_plan *p)
{
    const struct vg_model *m = p->model;
    fprintf(f, ", \"window\": %d, \"emit\": %d, \"hop\": %d, \"centre\": %d, \"look-back\": %d, \"look-ahead\": %d, "
            "\"states\": [", p->info.window, p->info.emit, p->info.hop, p->info.centre, m->summary.look_back,
            m->summary.look_ahead);
    for (int k = 0; k < m->roles.n_states; k++) {
        size_t bytes = 0;
        vgk_tensor_bytes(&p->states.state[k].t, &bytes);
        fprintf(f, "%s{\"input\": ", k ? ", " : "");
        quote(f, input_name(m, m->roles.states[k].input));
        fprintf(f, ", \"from\": ");
        quote(f, state_source(m, &m->roles.states[k]));
        fprintf(f, ", \"bytes\": %zu}", bytes);
    }
    fprintf(f, "]");
}

char *vg_plan_json(const struct vg_plan *p)
{
    const struct vg_summary *s = &p->model->summary;
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    fprintf(f, "{\"model\": {\"name\": ");
    quote(f, s->name);
    fprintf(f, ", \"path\": ");
    quote(f, s->path);
    fprintf(f, ", \"input\": ");
    quote(f, frame_name(p->model, true));
    fprintf(f, ", \"output\": ");
    quote(f, frame_name(p->model, false));
    fprintf(f, ", \"opset\": %d, \"nodes\": %d, \"weight-bytes\": %zu, \"scale\": [%d, %d], \"align\": [%d, %d], "
            "\"halo\": [%d, %d, %d, %d], \"global\": %s", s->opset, s->n_nodes, s->weight_bytes, s->scale_num,
            s->scale_den, s->align_x, s->align_y, s->halo_left, s->halo_top, s->halo_right, s->halo_bottom,
            s->global ? "true" : "false");
    fprintf(f, ", \"parameters\": [");
    for (int i = 0; i < s->n_parameters; i++) {
        fprintf(f, "%s{\"name\": ", i ? ", " : "");
        quote(f, s->parameters[i].name);
        fprintf(f, ", \"count\": %d}", s->parameters[i].count);
    }
    fprintf(f, "]}");
    time_json(f, p);
    axis(f, "x", &p->grid.x);
    axis(f, "y", &p->grid.y);
    fprintf(f, ", \"tiles\": %d, \"waste\": %.4f, \"exact\": %s, \"direct-products\": %s", p->grid.x.n * p->grid.y.n,
            (1 + vg_axis_waste(&p->grid.x)) * (1 + vg_axis_waste(&p->grid.y)) - 1, p->info.exact ? "true" : "false",
            p->info.direct ? "true" : "false");
    fprintf(f, ", \"bytes\": {\"arena\": %zu, \"weights\": %zu, \"activations\": %zu, \"activation-floor\": %zu, "
            "\"scratch\": %zu, \"states\": %zu, \"host\": %zu, \"moved\": %zu, \"rescue\": %zu, \"flight\": %zu, \"staging\": %zu}, \"precision\": \"%s\"",
            p->info.arena_bytes,
            p->info.weight_bytes, p->info.activation_bytes, p->info.activation_floor, p->info.scratch_bytes,
            p->info.state_bytes, p->info.host_bytes, p->info.moved_bytes, p->info.rescue_bytes, p->info.flight_bytes,
            p->info.staging_bytes, vg_precision_name(p->info.precision));
    if (p->bf16)
        fprintf(f, ", \"products\": %d, \"bf16-products\": %d", p->info.n_products, p->info.n_bf16);
    fprintf(f, ", \"spilled\": %d, \"recomputed\": %d, \"streams\": %s, \"not\": ", p->info.n_spilled, p->info.n_recomputed,
            p->info.streams ? "true" : "false");
    quote(f, p->info.ways);
    fprintf(f, ", \"norms\": {\"mode\": \"%s\", \"count\": %d, \"stored\": %s, \"errors\": %s, \"depends-on-frame\": ",
            vg_norm_mode_name(p->info.norm_mode), p->info.norm_count, p->info.norm_stored ? "true" : "false",
            p->info.norm_errors ? "true" : "false");
    quote(f, p->info.global_why ? p->info.global_why : "");
    fprintf(f, "}");
    fprintf(f, ", \"ops\": %d, \"bands\": %d, \"levels\": %d, \"device\": ", p->info.n_ops, p->info.bands, p->info.levels);
    quote(f, p->backend->describe(p->device));
    if (p->info.winograd_error_steps >= 0 && p->info.winograd_error_steps < 1e300)
        fprintf(f, ", \"winograd-error-steps\": %g", p->info.winograd_error_steps);
    fprintf(f, ", \"winograd-refused\": %s", p->info.winograd_refused ? "true" : "false");
    if (p->info.warning) {
        fprintf(f, ", \"warning\": ");
        quote(f, p->info.warning);
    }
    fprintf(f, "}");
    if (fclose(f)) {
        free(text);
        return NULL;
    }
    return text;
}

/* --- step by step --- */

static const char *step_name(const struct vg_step *s)
{
    static const char *const names[] = {[VG_CALL_READ] = "read", [VG_CALL_WRITE] = "write", [VG_CALL_SAVE] = "save",
                                        [VG_CALL_RESTORE] = "restore", [VG_CALL_SPILL] = "spill", [VG_CALL_FETCH] = "fetch",
                                        [VG_CALL_LOAD] = "load"};
    return s->type == VG_CALL_OP ? vgk_kind_name(s->op.kind) : names[s->type];
}

/* The kernel, as it was when the plan was made. */
static const char *kernel_of(const struct vg_plan *p, const struct vg_step *s)
{
    struct vgk_tensor t[VG_MAX_OPERANDS] = {{VGK_NONE}};
    struct vgk_op op = s->op;
    struct vgk_need need = {0};
    if (s->type != VG_CALL_OP)
        return NULL;
    for (int k = 0; k < op.n_in; k++)
        if (!s->in[k].none) {
            t[k] = s->in[k].t;
            t[k].data = (void *)s->in[k].constant;
        }
    op.in = t;
    op.out = &s->out.t;
    return p->backend->need(p->device, &op, &need, NULL) == VGK_OK ? need.how : NULL;
}

static void place_text(FILE *f, const char *before, const struct vg_place *p)
{
    char text[96];
    fprintf(f, "%s%s", before, vgk_tensor_describe(&p->t, text, sizeof text));
    if (p->offset != SIZE_MAX)
        fprintf(f, " @ %zu", p->offset);
}

static void place_json(FILE *f, const char *before, const struct vg_place *p)
{
    char text[96];
    fprintf(f, "%s{\"tensor\": \"%s\"", before, vgk_tensor_describe(&p->t, text, sizeof text));
    if (p->offset != SIZE_MAX)
        fprintf(f, ", \"offset\": %zu", p->offset);
    fprintf(f, "}");
}

static bool has_result(const struct vg_step *s) { return s->type != VG_CALL_WRITE && s->type < VG_CALL_SPILL; }

static void step_text(FILE *f, const struct vg_step *s, const char *kernel)
{
    const char *before = " <- ";
    fprintf(f, "  %-12s", step_name(s));
    if (has_result(s))
        place_text(f, "", &s->out);
    for (int k = 0; k < VG_MAX_OPERANDS; k++)
        if (!s->in[k].none && (k < s->op.n_in || (!k && s->type == VG_CALL_WRITE))) {
            place_text(f, before, &s->in[k]);
            before = ", ";
        }
    if (s->packed)
        fprintf(f, ", packed %zu @ %zu", s->packed, s->packed_offset);
    if (s->scratch)
        fprintf(f, ", scratch %zu @ %zu", s->scratch, s->scratch_offset);
    fprintf(f, "%s%s\n", kernel ? ": " : "", kernel ? kernel : "");
}

static void step_json(FILE *f, const struct vg_step *s, const char *kernel)
{
    const char *before = "";
    fprintf(f, "{\"op\": \"%s\", \"in\": [", step_name(s));
    for (int k = 0; k < VG_MAX_OPERANDS; k++)
        if (!s->in[k].none && (k < s->op.n_in || (!k && s->type == VG_CALL_WRITE))) {
            place_json(f, before, &s->in[k]);
            before = ", ";
        }
    fprintf(f, "]");
    if (has_result(s))
        place_json(f, ", \"out\": ", &s->out);
    fprintf(f, ", \"packed\": [%zu, %zu], \"scratch\": [%zu, %zu]", s->packed, s->packed_offset, s->scratch,
            s->scratch_offset);
    if (s->node) {
        fprintf(f, ", \"node\": ");
        quote(f, s->node);
    }
    if (kernel) {
        fprintf(f, ", \"kernel\": ");
        quote(f, kernel);
    }
    fprintf(f, "}");
}

char *vg_plan_steps(const struct vg_plan *p, bool json)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    for (int i = 0; i < p->program->n_steps; i++) {
        const struct vg_step *s = &p->program->steps[i];
        const char *kernel = kernel_of(p, s);
        if (!json) {
            step_text(f, s, kernel);
            continue;
        }
        fprintf(f, "%s", i ? ", " : "[");
        step_json(f, s, kernel);
    }
    if (json)
        fprintf(f, "]");
    if (fclose(f)) {
        free(text);
        return NULL;
    }
    return text;
}
