/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "roles.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct finder {
    const struct vg_graph *g;
    const struct vg_modelinfo *info;
    const char *name;
    struct vg_arena *arena;
    struct vg_roles *r;
    bool *state_output; /* for each output of the graph */
    struct vgk_error *err;
};

static const struct vg_value *input(const struct finder *f, int i) { return &f->g->values[f->g->inputs[i]]; }
static const struct vg_value *output(const struct finder *f, int i) { return &f->g->values[f->g->outputs[i]]; }

/* --- pictures --- */

/* Layouts of pictures, T counting frames.  The first that has 3 where it has a C is taken; a plain picture has one
 * frame, and N is 1. */
static const char *const layouts[] = {"NCHW", "NHWC", "NCTHW", "NTCHW", "NTHWC"};

static void port_of_layout(const char *layout, struct vg_port *p)
{
    static const char letters[] = "TCXY";
    int *const to[] = {&p->time, &p->channel, &p->axis[VG_X], &p->axis[VG_Y]};
    for (int i = 0; i < 4; i++) {
        const char *at = strchr(layout, letters[i] == 'X' ? 'W' : letters[i] == 'Y' ? 'H' : letters[i]);
        *to[i] = at ? (int)(at - layout) : -1;
    }
}

/* stacked: k frames in 3k channels will do as well. */
static bool picture(const struct vg_value *v, const char *layout, bool stacked, struct vg_port *p)
{
    const struct vgk_tensor *t = &v->tensor;
    if (!vgk_type_is_float(t->type))
        return false;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if ((int)strlen(layouts[i]) != t->rank || (layout && strcmp(layout, layouts[i])))
            continue;
        *p = (struct vg_port){.frames = 1};
        port_of_layout(layouts[i], p);
        int64_t c = t->dim[p->channel];
        if (c != 3 && !(stacked && t->rank == 4 && c > 3 && c % 3 == 0))
            continue;
        if (p->time < 0 && t->dim[0] > 1) /* a batch of frames */
            p->time = 0;
        if ((p->time > 0 && t->dim[0] > 1) || (p->time >= 0 && t->dim[p->time] > VG_MAX_WINDOW) || c > 3 * VG_MAX_WINDOW)
            continue;
        if (p->time >= 0)
            p->frames = t->dim[p->time] > 0 ? (int)t->dim[p->time] : 0;
        if (c > 3) {
            if (p->time >= 0)
                continue;
            p->frames = (int)(c / 3);
        }
        return true;
    }
    return false;
}

struct vgk_tensor vg_port_frame(const struct vg_port *p, const struct vgk_tensor *t, int k)
{
    const int dims[4] = {-1, p->channel, p->axis[VG_Y], p->axis[VG_X]};
    struct vgk_tensor from = p->time >= 0             ? vgk_tensor_slice(t, p->time, k, 1, 1)
                             : t->dim[p->channel] > 3 ? vgk_tensor_slice(t, p->channel, 3 * k, 3, 1)
                                                      : *t;
    struct vgk_tensor frame = {.type = t->type, .rank = 4, .dim = {1}, .data = from.data};
    for (int d = 1; d < 4; d++) {
        frame.dim[d] = from.dim[dims[d]];
        frame.stride[d] = from.stride[dims[d]];
    }
    return frame;
}

bool vg_port_of(const struct vgk_tensor *t, const int axis[VG_AXES], const struct vg_port *input, struct vg_port *p)
{
    *p = (struct vg_port){.time = -1, .channel = -1, .axis = {axis[VG_X], axis[VG_Y]}, .frames = 1};
    for (int d = t->rank - 1; d > 0; d--)
        if (d != axis[VG_X] && d != axis[VG_Y] && t->dim[d] == 3)
            p->channel = d;
    if (input->time >= 0 && input->axis[VG_Y] == axis[VG_Y] && input->channel < t->rank && t->dim[input->channel] == 3)
        p->channel = input->channel;
    for (int d = 1; d < t->rank && p->channel < 0 && t->rank == 4; d++)
        if (d != axis[VG_X] && d != axis[VG_Y] && t->dim[d] % 3 == 0 && t->dim[d] > 0)
            p->channel = d;
    if (p->channel < 0 || t->rank < 4 || t->rank > 5)
        return false;
    if (t->dim[p->channel] > 3 * VG_MAX_WINDOW)
        return false;
    if (t->dim[p->channel] > 3)
        p->frames = (int)(t->dim[p->channel] / 3);
    for (int d = 0; d < t->rank; d++)
        if (d != axis[VG_X] && d != axis[VG_Y] && d != p->channel && (d > 0 || t->dim[0] > 1)) {
            if (p->time >= 0 || p->frames > 1 || t->dim[d] > VG_MAX_WINDOW)
                return false;
            p->time = d;
        }
    if (p->time >= 0)
        p->frames = (int)t->dim[p->time];
    return true;
}

/* --- states --- */

/* The names of a state's ends are equal but for how they begin or end.  The first pair that names an output is
 * taken. */
static const struct {
    bool begin;
    const char *in, *out;
} ends[] = {
    {false, "_in", "_out"},   {true, "in_", "out_"},     {false, "in", "out"},   {true, "past_", "present_"},
    {true, "prev_", "next_"}, {false, "_prev", "_next"}, {true, "old_", "new_"}, {true, "prev_", ""},
    {false, "_prev", ""},     {false, "i", "o"},         {false, "0", "n"},      {false, "", "_out"},
    {false, "", "_new"},      {false, "", "n"},
};

static bool renamed(const char *in, const char *out, bool begin, const char *from, const char *to)
{
    size_t n = strlen(in), m = strlen(out), from_n = strlen(from), to_n = strlen(to), rest = n - from_n;
    if (n <= from_n || m != rest + to_n)
        return false;
    return begin ? !strncmp(in, from, from_n) && !strncmp(out, to, to_n) && !strcmp(in + from_n, out + to_n)
                 : !strcmp(in + rest, from) && !strcmp(out + rest, to) && !strncmp(in, out, rest);
}

/* Equal as far as the file tells. */
static bool alike(const struct vgk_tensor *a, const struct vgk_tensor *b)
{
    if (b->type == VGK_NONE || b->rank < 0)
        return true;
    bool same = a->type == b->type && a->rank == b->rank;
    for (int d = 0; same && d < a->rank; d++)
        same = a->dim[d] < 0 || b->dim[d] < 0 || a->dim[d] == b->dim[d];
    return same;
}

/* Outputs often have only symbolic dims, or none: then any of rank 4 or 5 or of unknown shape may be it. */
static bool may_be_picture(const struct finder *f, int o)
{
    const struct vgk_tensor *t = &output(f, o)->tensor;
    struct vg_port p;
    return !f->state_output[o] &&
           (t->type == VGK_NONE || t->rank < 2 || ((t->rank == 4 || t->rank == 5) && t->dim[1] < 0) ||
            picture(output(f, o), NULL, true, &p));
}

/* The output that a name like this input's belongs to, -1.  Some output must be left to be the picture. */
static int partner(const struct finder *f, int i)
{
    int pictures = 0;
    for (int o = 0; o < f->g->n_outputs; o++)
        pictures += may_be_picture(f, o);
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        for (int o = 0; o < f->g->n_outputs; o++)
            if (!f->state_output[o] && pictures > may_be_picture(f, o) &&
                renamed(input(f, i)->name, output(f, o)->name, ends[k].begin, ends[k].in, ends[k].out) &&
                alike(&input(f, i)->tensor, &output(f, o)->tensor))
                return o;
    return -1;
}

static int index_of(const struct finder *f, bool in, const char *name)
{
    for (int i = 0; i < (in ? f->g->n_inputs : f->g->n_outputs); i++)
        if (!strcmp((in ? input(f, i) : output(f, i))->name, name))
            return i;
    return -1;
}

static enum vgk_status add_state(struct finder *f, int in, int out, int source)
{
    struct vg_state_role *s = &f->r->states[f->r->n_states];
    char key[256];
    *s = (struct vg_state_role){.input = in, .output = out, .source = source};
    snprintf(key, sizeof key, "%s-init", input(f, in)->name);
    const char *how = vg_modelinfo_text(f->info, "vidgen", key);
    how = how ? how : out < 0 ? "first" : vg_modelinfo_text(f->info, "vidgen", "state-init");
    s->first = how && !strcmp(how, "first");
    if (how && strcmp(how, "first") && strcmp(how, "zero"))
        return vgk_fail(f->err, VGK_ERR_INVALID, "%s: %s is %s, expected zero or first", f->name, key, how);
    f->r->inputs[in].role = VG_ROLE_STATE;
    if (out >= 0)
        f->state_output[out] = true;
    f->r->n_states++;
    return VGK_OK;
}

/* state=INPUT:OUTPUT;INPUT=OTHER INPUT */
static enum vgk_status named_states(struct finder *f)
{
    char item[512];
    enum vgk_status s = VGK_OK;
    for (int i = 0; !s && vg_modelinfo_item(f->info, "vidgen", "state", i, item, sizeof item); i++) {
        char *colon = strrchr(item, ':'), *middle = colon ? colon : strchr(item, '=');
        if (middle)
            *middle = '\0';
        int in = index_of(f, true, item), to = middle ? index_of(f, !colon, middle + 1) : -1;
        if (in < 0 || to < 0 || f->r->n_states == f->g->n_inputs || (!colon && to == in))
            return vgk_fail(f->err, VGK_ERR_INVALID,
                            "%s: state %s%s%s: expected INPUT:OUTPUT, or INPUT=INPUT for what the "
                            "other one got in the run before, by names that the model has",
                            f->name, item,
                            colon    ? ":"
                            : middle ? "="
                                     : "",
                            middle ? middle + 1 : "");
        s = add_state(f, in, colon ? to : -1, to);
    }
    return s;
}

/* --- the frame --- */

static void describe_all(const struct finder *f, bool in, char *text, size_t size)
{
    size_t at = 0;
    char one[128];
    *text = '\0';
    for (int i = 0; i < (in ? f->g->n_inputs : f->g->n_outputs) && at < size; i++) {
        const struct vg_value *v = in ? input(f, i) : output(f, i);
        at += (size_t)snprintf(text + at, size - at, "%s%s %s", i ? ", " : "", v->name,
                               vgk_tensor_describe(&v->tensor, one, sizeof one));
    }
}

/* What a model without pictures probably is. */
static const char *no_pictures(const struct finder *f)
{
    for (int i = 0; i < f->g->n_inputs; i++) {
        const struct vgk_tensor *t = &input(f, i)->tensor;
        if ((t->rank == 4 || t->rank == 5) && t->dim[1] > 3 && vgk_type_is_float(t->type))
            return " (it looks like a part of a larger model that works on latents or features, such as a decoder or a "
                   "transformer: vidgen runs models whose inputs are pictures; export it together with its encoder)";
    }
    return "";
}

static enum vgk_status not_an_image_model(const struct finder *f, bool in)
{
    char all[400];
    describe_all(f, in, all, sizeof all);
    return vgk_fail(
        f->err, VGK_ERR_INVALID,
        "%s is no image model: expected an %s f32[1,3,height,width] (or "
        "[1,height,width,3], or several frames), it has: %s%s; name the right one in the .modelinfo file (key "
        "%s) if there is one",
        f->name, in ? "input" : "output", all, in ? no_pictures(f) : "", in ? "input" : "output");
}

static void take_frame(struct finder *f, int i, const struct vg_port *port)
{
    struct vg_input_role *role = &f->r->inputs[i];
    role->role = VG_ROLE_FRAME;
    role->port = *port;
    role->port.first = f->r->window;
    f->r->window += port->frames;
    if (f->r->frame_input < 0)
        f->r->frame_input = i;
}

/* Frames of one window have one layout. */
static bool like_first(const struct finder *f, int i, const struct vg_port *p)
{
    const struct vg_port *q = &f->r->inputs[f->r->frame_input].port;
    return p->channel == q->channel && p->time == q->time && p->axis[VG_X] == q->axis[VG_X] && q->frames > 0 &&
           p->frames > 0 && alike(&input(f, i)->tensor, &input(f, f->r->frame_input)->tensor);
}

static bool same_name(const char *a, const char *b) { return !a || !b || !strcmp(a, b); }

/* Of the frame's size, as far as names tell: [1,C,H,W] with the frame's H and W. */
static bool frame_sized(const struct finder *f, int i)
{
    const struct vg_value *v = input(f, i), *of = input(f, f->r->frame_input);
    const struct vg_port *p = &f->r->inputs[f->r->frame_input].port;
    for (int a = 0; a < VG_AXES; a++) {
        int d = v->tensor.rank - of->tensor.rank + p->axis[a];
        int64_t n = of->tensor.dim[p->axis[a]];
        if (d < 1 || v->tensor.dim[d] != n || (n < 0 && !same_name(v->dim_name[d], of->dim_name[p->axis[a]])))
            return false;
    }
    return true;
}

static bool named_like(const char *name, const char *word) { return !strncmp(name, word, strlen(word)); }

static enum vgk_status find_frames(struct finder *f)
{
    struct vg_roles *r = f->r;
    struct vg_port p;
    char item[256];
    const char *layout = vg_modelinfo_text(f->info, "vidgen", "layout");
    enum vgk_status s = named_states(f);
    if (s)
        return s;
    for (int i = 0; vg_modelinfo_item(f->info, "vidgen", "input", i, item, sizeof item); i++) {
        int in = index_of(f, true, item);
        char all[400];
        describe_all(f, true, all, sizeof all);
        if (in < 0)
            return vgk_fail(f->err, VGK_ERR_INVALID, "%s: the sidecar names the input '%s', the model has: %s", f->name,
                            item, all);
        if (!picture(input(f, in), layout, true, &p) || (i && !like_first(f, in, &p)))
            return not_an_image_model(f, true);
        take_frame(f, in, &p);
    }
    bool chosen = r->frame_input >= 0;
    /* The frame is the first picture that is no state; if all may be, the first. */
    for (int way = 0; way < 3 && !chosen && r->frame_input < 0; way++)
        for (int i = 0; i < f->g->n_inputs && r->frame_input < 0; i++)
            if (r->inputs[i].role != VG_ROLE_STATE && picture(input(f, i), layout, way == 2, &p) &&
                (way > 0 || (partner(f, i) < 0 && !named_like(input(f, i)->name, "prev"))))
                take_frame(f, i, &p);
    if (r->frame_input < 0)
        return not_an_image_model(f, true);
    for (int i = 0; i < f->g->n_inputs && !s; i++) {
        if (r->inputs[i].role != VG_ROLE_PARAMETER)
            continue;
        bool frame = picture(input(f, i), layout, false, &p) && like_first(f, i, &p) && frame_sized(f, i);
        int to = partner(f, i);
        if (to >= 0)
            s = add_state(f, i, to, -1);
        else if (frame && named_like(input(f, i)->name, "prev"))
            s = add_state(f, i, -1, r->frame_input);
        else if (frame && !chosen)
            take_frame(f, i, &p);
    }
    return s;
}

static enum vgk_status find_output(struct finder *f)
{
    const char *wanted = vg_modelinfo_text(f->info, "vidgen", "output");
    char all[400];
    for (int i = 0; i < f->g->n_outputs && f->r->frame_output < 0; i++) {
        if (wanted ? !strcmp(output(f, i)->name, wanted) : may_be_picture(f, i))
            f->r->frame_output = i;
    }
    struct vg_port p;
    for (int i = 0; i < f->g->n_outputs && f->r->frame_output < 0 && !wanted; i++) /* the picture is a state, too */
        if (picture(output(f, i), NULL, true, &p))
            f->r->frame_output = i;
    if (f->r->frame_output >= 0)
        return VGK_OK;
    describe_all(f, false, all, sizeof all);
    return !wanted ? not_an_image_model(f, false)
                   : vgk_fail(f->err, VGK_ERR_INVALID, "%s: the sidecar names the output '%s', the model has: %s",
                              f->name, wanted, all);
}

/* --- sizes --- */

/* The frame's axes in a tensor that is no picture itself. */
static void find_axes(const struct finder *f, int i, struct vg_input_size *size)
{
    const struct vg_value *v = input(f, i), *of = input(f, f->r->frame_input);
    const struct vg_port *p = &f->r->inputs[f->r->frame_input].port;
    for (int a = 0; a < VG_AXES; a++) {
        int d = p->axis[a] + v->tensor.rank - of->tensor.rank;
        size->axis[a] =
            d >= 1 && (v->tensor.dim[d] < 0 || (of->tensor.dim[p->axis[a]] > 1 && v->tensor.dim[d] > 1)) ? d : -1;
        size->num[a] = size->den[a] = 1;
    }
    if (size->axis[VG_X] < 0 || size->axis[VG_Y] < 0)
        size->axis[VG_X] = size->axis[VG_Y] = -1;
}

/* A state's scale: from the names of its dims, from fixed sizes, or from the sidecar; else it is tried out. */
static enum vgk_status state_scale(struct finder *f, struct vg_state_role *state)
{
    const struct vg_value *v = input(f, state->input), *of = input(f, f->r->frame_input);
    struct vg_input_size *size = &f->r->inputs[state->input].size;
    const struct vg_port *p = &f->r->inputs[f->r->frame_input].port;
    char key[256], *end = NULL;
    long num = 0, den = 1;
    snprintf(key, sizeof key, "%s-scale", v->name);
    const char *text = vg_modelinfo_text(f->info, "vidgen", key);
    if (text && (num = strtol(text, &end, 10)) > 0 && *end == '/')
        den = strtol(end + 1, &end, 10);
    if (text && (num < 1 || den < 1 || num > 64 || den > 64 || *end))
        return vgk_fail(f->err, VGK_ERR_INVALID, "%s: %s is %s, expected a scale such as 1/2", f->name, key, text);
    state->scale_known = text || size->axis[VG_X] < 0 || frame_sized(f, state->input);
    for (int a = 0; a < VG_AXES && size->axis[a] >= 0; a++) {
        int64_t fixed = v->tensor.dim[size->axis[a]], frame = of->tensor.dim[p->axis[a]];
        size->num[a] = text ? (int)num : 1;
        size->den[a] = text ? (int)den : 1;
        if (text || fixed < 1 || frame < 1)
            continue;
        state->scale_known = true;
        if (fixed % frame == 0)
            size->num[a] = (int)(fixed / frame);
        else if (frame % fixed == 0)
            size->den[a] = (int)(frame / fixed);
        else
            return vgk_fail(f->err, VGK_ERR_UNSUPPORTED, "%s: state '%s' is %" PRId64 " where the frame is %" PRId64,
                            f->name, v->name, fixed, frame);
    }
    return VGK_OK;
}

/* An input of an open size that is not the frame's: the sidecar tells. */
static enum vgk_status parameter_size(struct finder *f, int i, struct vg_input_size *size)
{
    const struct vg_value *v = input(f, i);
    double given[2] = {0, 0};
    char group[256], text[128];
    int open = 0;
    snprintf(group, sizeof group, "vidgen parameter %s", v->name);
    int n = vg_modelinfo_numbers(f->info, group, "size", given, 2, f->err);
    if (n < 0)
        return VGK_ERR_INVALID;
    for (int d = size->rank - 1; d >= 0; d--) {
        if (size->dim[d] >= 0)
            continue;
        if (d == 0 && size->rank > 1 && open == n) { /* a batch */
            size->dim[d] = 1;
            continue;
        }
        if (open == n || given[open] < 1 || given[open] > 16384 || given[open] != (double)(int)given[open])
            return vgk_fail(
                f->err, VGK_ERR_UNSUPPORTED,
                "%s: input '%s' %s is open in its size, and that is not the "
                "frame's: give it in the .modelinfo file, [%s] size=WIDTH;HEIGHT (the last dimension first)",
                f->name, v->name, vgk_tensor_describe(&v->tensor, text, sizeof text), group);
        size->dim[d] = (int64_t)given[open++];
    }
    return VGK_OK;
}

/* The single number that says where an interpolator's frame lies, if it has one. */
static bool is_time(const struct finder *f, int i)
{
    static const char *const names[] = {"t", "time", "timestep", "dt", NULL};
    const struct vg_value *v = input(f, i);
    const char *cond = vg_modelinfo_text(f->info, "vidgen", "cond"),
               *centre = vg_modelinfo_text(f->info, "vidgen", "centre");
    char group[256];
    bool named = cond && !strcmp(cond, "time");
    snprintf(group, sizeof group, "vidgen parameter %s", v->name);
    if (f->r->window != 2 || (centre && strcmp(centre, "-1")) || !vgk_type_is_float(v->tensor.type) ||
        vg_modelinfo_text(f->info, group, "default"))
        return false;
    for (int k = 0; names[k]; k++)
        named |= !strcmp(v->name, names[k]);
    for (int d = 0; d < v->tensor.rank; d++)
        if (v->tensor.dim[d] > 1 || (v->tensor.dim[d] < 0 && d > 0))
            return false;
    return named;
}

static enum vgk_status find_sizes(struct finder *f)
{
    enum vgk_status s = VGK_OK;
    for (int i = 0; i < f->g->n_inputs && !s; i++) {
        struct vg_input_role *role = &f->r->inputs[i];
        struct vg_input_size *size = &role->size;
        const struct vgk_tensor *t = &input(f, i)->tensor;
        char key[256];
        *size = (struct vg_input_size){.rank = t->rank, .axis = {-1, -1}, .num = {1, 1}, .den = {1, 1}};
        memcpy(size->dim, t->dim, sizeof size->dim);
        if (t->rank < 0)
            return vgk_fail(f->err, VGK_ERR_UNSUPPORTED, "%s: input '%s' has no dimensions declared", f->name,
                            input(f, i)->name);
        snprintf(key, sizeof key, "vidgen parameter %s", input(f, i)->name);
        if (role->role == VG_ROLE_PARAMETER && t->rank == 4 && vgk_type_is_float(t->type) && frame_sized(f, i) &&
            !vg_modelinfo_text(f->info, key, "size"))
            role->role = VG_ROLE_MAP;
        else if (role->role == VG_ROLE_PARAMETER && is_time(f, i))
            role->role = VG_ROLE_TIME;
        if (role->role == VG_ROLE_FRAME)
            memcpy(size->axis, role->port.axis, sizeof size->axis);
        else if (role->role == VG_ROLE_MAP || role->role == VG_ROLE_STATE)
            find_axes(f, i, size);
        size->frame = role->role == VG_ROLE_FRAME || role->role == VG_ROLE_MAP || role->role == VG_ROLE_STATE;
        if (!size->frame) {
            s = role->role == VG_ROLE_TIME ? VGK_OK : parameter_size(f, i, size);
            size->dim[0] = size->dim[0] < 0 ? 1 : size->dim[0];
            continue;
        }
        for (int d = 0; d < size->rank && !s; d++)
            if (size->dim[d] < 0 && d != size->axis[VG_X] && d != size->axis[VG_Y] &&
                !(role->role == VG_ROLE_FRAME && d == role->port.time)) {
                if (d > 0)
                    return vgk_fail(f->err, VGK_ERR_UNSUPPORTED,
                                    "%s: dimension %d of input '%s' is open, and neither rows, "
                                    "columns nor frames",
                                    f->name, d, input(f, i)->name);
                size->dim[d] = 1;
            }
    }
    for (int i = 0; i < f->r->n_states && !s; i++)
        s = state_scale(f, &f->r->states[i]);
    return s;
}

enum vgk_status vg_roles_find(const struct vg_graph *g, const struct vg_modelinfo *info, const char *name,
                              struct vg_arena *arena, struct vg_roles *r, struct vgk_error *err)
{
    struct finder f = {.g = g, .info = info, .name = name, .arena = arena, .r = r, .err = err};
    *r = (struct vg_roles){.frame_input = -1, .frame_output = -1};
    r->inputs = vg_arena_array(arena, (size_t)g->n_inputs, sizeof *r->inputs);
    r->states = vg_arena_array(arena, (size_t)g->n_inputs, sizeof *r->states);
    f.state_output = vg_arena_array(arena, (size_t)g->n_outputs, sizeof *f.state_output);
    if (!r->inputs || !r->states || !f.state_output)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for the model");
    for (int i = 0; i < g->n_inputs; i++)
        r->inputs[i].role = VG_ROLE_PARAMETER;
    enum vgk_status s = find_frames(&f);
    s = s ? s : find_output(&f);
    return s ? s : find_sizes(&f);
}
