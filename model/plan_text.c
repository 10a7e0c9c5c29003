/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A plan in words and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan_internal.h"

static double mib(size_t bytes) { return (double)bytes / (1 << 20); }

static const char *frame_name(const struct vg_model *m, bool input)
{
    return m->graph->values[input ? m->graph->inputs[m->frame_input] : m->graph->outputs[m->frame_output]].name;
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
    fprintf(f, "roles   frame '%s' in, '%s' out", frame_name(p->model, true), frame_name(p->model, false));
    for (int i = 0; i < s->n_parameters; i++)
        fprintf(f, "%s %s[%d]", i ? "," : "; parameters", s->parameters[i].name, s->parameters[i].count);
    fprintf(f, "\nscale   %d/%d, align %dx%d, ", s->scale_num, s->scale_den, s->align_x, s->align_y);
    if (s->global)
        fprintf(f, "depends on the whole frame: %s\n", s->global_why);
    else
        fprintf(f, "halo left %d, right %d, top %d, bottom %d\n", s->halo_left, s->halo_right, s->halo_top,
                s->halo_bottom);
    fprintf(f, "frame   %dx%d in %dx%d tiles of %dx%d, %.1f %% computed twice, %s\n", x->frame, y->frame, x->n, y->n,
            x->tile, y->tile, 100 * ((1 + vg_axis_waste(x)) * (1 + vg_axis_waste(y)) - 1),
            !p->info.exact   ? "NOT equal to the untiled result"
            : p->info.direct ? "equal to the untiled result of direct products"
                             : "equal to the untiled result");
    if (p->info.bands > 1)
        fprintf(f, "order   %d bands of about %d rows in %d pass%s; nothing is computed twice but across passes\n",
                p->info.bands, (y->tile + p->info.bands - 1) / p->info.bands, p->info.levels,
                p->info.levels == 1 ? "" : "es");
    fprintf(f, "memory  %.2f MiB = weights %.2f + activations %.2f (lower bound %.2f; scratch up to %.2f)\n",
            mib(p->info.arena_bytes), mib(p->info.weight_bytes), mib(p->info.activation_bytes),
            mib(p->info.activation_floor), mib(p->info.scratch_bytes));
    if (p->info.precision == VG_PRECISION_FP16)
        fprintf(f, "half    activations in f16; %.2f MiB more for running tiles again in f32 that overflow\n",
                mib(p->info.rescue_bytes));
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
    axis(f, "x", &p->grid.x);
    axis(f, "y", &p->grid.y);
    fprintf(f, ", \"tiles\": %d, \"waste\": %.4f, \"exact\": %s, \"direct-products\": %s", p->grid.x.n * p->grid.y.n,
            (1 + vg_axis_waste(&p->grid.x)) * (1 + vg_axis_waste(&p->grid.y)) - 1, p->info.exact ? "true" : "false",
            p->info.direct ? "true" : "false");
    fprintf(f, ", \"bytes\": {\"arena\": %zu, \"weights\": %zu, \"activations\": %zu, \"activation-floor\": %zu, "
            "\"scratch\": %zu, \"rescue\": %zu}, \"precision\": \"%s\"", p->info.arena_bytes, p->info.weight_bytes,
            p->info.activation_bytes, p->info.activation_floor, p->info.scratch_bytes, p->info.rescue_bytes,
            p->info.precision == VG_PRECISION_FP16 ? "fp16" : "fp32");
    fprintf(f, ", \"ops\": %d, \"bands\": %d, \"levels\": %d, \"device\": ", p->info.n_ops, p->info.bands, p->info.levels);
    quote(f, p->backend->describe(p->device));
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
                                        [VG_CALL_RESTORE] = "restore"};
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

static void step_text(FILE *f, const struct vg_step *s, const char *kernel)
{
    const char *before = " <- ";
    fprintf(f, "  %-12s", step_name(s));
    if (s->type != VG_CALL_WRITE)
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
    if (s->type != VG_CALL_WRITE)
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
