/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "model_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuse.h"
#include "norms.h"
#include "onnx.h"
#include "states.h"
#include "window.h"

/* --- numbers from the sidecar --- */

/* Three numbers from one or three. */
static enum vgk_status triple(const struct vg_model *m, const char *key, double *v, bool *given, struct vgk_error *err)
{
    int n = vg_modelinfo_numbers(m->info, "vidgen", key, v, 3, err);
    *given = n > 0;
    if (n < 0)
        return VGK_ERR_INVALID;
    if (n != 0 && n != 1 && n != 3)
        return vgk_fail(err, VGK_ERR_INVALID, "%s: %s has %d values, expected 1 or 3", m->summary.path, key, n);
    if (n == 1)
        v[1] = v[2] = v[0];
    return VGK_OK;
}

/* range, mean, std and channels, with this prefix, into p; what is not given stays. */
static enum vgk_status read_pixels(const struct vg_model *m, const char *prefix, struct vgk_pixels *p,
                                   struct vgk_error *err)
{
    double mean[3], std[3], range[2];
    bool has_mean, has_std;
    char key[64];
    enum vgk_status s;
    snprintf(key, sizeof key, "%smean", prefix);
    if ((s = triple(m, key, mean, &has_mean, err)))
        return s;
    snprintf(key, sizeof key, "%sstd", prefix);
    if ((s = triple(m, key, std, &has_std, err)))
        return s;
    snprintf(key, sizeof key, "%srange", prefix);
    int n = vg_modelinfo_numbers(m->info, "vidgen", key, range, 2, err);
    if (n < 0)
        return VGK_ERR_INVALID;
    if (n && (n != 2 || range[0] == range[1]))
        return vgk_fail(err, VGK_ERR_INVALID, "%s: %s must be two different numbers", m->summary.path, key);
    if (n && (has_mean || has_std))
        return vgk_fail(err, VGK_ERR_INVALID, "%s: %s and mean or std exclude each other", m->summary.path, key);
    for (int k = 0; k < 3; k++) {
        if (n) {
            p->scale[k] = (float)(range[1] - range[0]);
            p->mean[k] = (float)(-range[0] / (range[1] - range[0]));
        }
        if (has_std && std[k] == 0)
            return vgk_fail(err, VGK_ERR_INVALID, "%s: std is 0", m->summary.path);
        if (has_mean || has_std) {
            p->mean[k] = has_mean ? (float)mean[k] : 0;
            p->scale[k] = has_std ? (float)(1 / std[k]) : 1;
        }
    }
    snprintf(key, sizeof key, "%schannels", prefix);
    const char *order = vg_modelinfo_text(m->info, "vidgen", key);
    if (order && !strcmp(order, "BGR"))
        p->order[0] = 2, p->order[1] = 1, p->order[2] = 0;
    else if (order && strcmp(order, "RGB"))
        return vgk_fail(err, VGK_ERR_INVALID, "%s: %s is %s, expected RGB or BGR", m->summary.path, key, order);
    return VGK_OK;
}

/* --- parameters --- */

static enum vgk_status read_parameter(struct vg_model *m, int input, struct vg_parameter *p, struct vgk_error *err)
{
    const struct vg_value *v = &m->graph->values[m->graph->inputs[input]];
    char group[256], text[256];
    int64_t count = 1;
    snprintf(group, sizeof group, "vidgen parameter %s", v->name);
    const struct vg_input_size *size = &m->roles.inputs[input].size;
    for (int d = 0; d < size->rank; d++) /* of a map, one for each channel */
        if (d != size->axis[VG_X] && d != size->axis[VG_Y] &&
            (size->dim[d] < 1 || __builtin_mul_overflow(count, size->dim[d], &count) || count > 1 << 20))
            return vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s: input '%s' %s has more than %d values, or none", m->summary.path,
                            v->name, vgk_tensor_describe(&v->tensor, text, sizeof text), 1 << 20);
    if (!vgk_type_is_float(v->tensor.type) && v->tensor.type != VGK_I64 && v->tensor.type != VGK_I32)
        return vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s: input '%s' is %s; parameters are floats or integers",
                        m->summary.path, v->name, vgk_type_name(v->tensor.type));
    float *defaults = vg_arena_array(m->arena, count, sizeof *defaults);
    double *given = vg_arena_array(m->arena, count, sizeof *given), range[2] = {1, 0};
    const char **labels = vg_arena_array(m->arena, count, sizeof *labels);
    if (!defaults || !given || !labels)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for the model");
    int n = vg_modelinfo_numbers(m->info, group, "default", given, (int)count, err);
    int r = n < 0 ? -1 : vg_modelinfo_numbers(m->info, group, "range", range, 2, err);
    if (n < 0 || r < 0)
        return VGK_ERR_INVALID;
    if ((n && n != count && n != 1) || (r && r != 2))
        return vgk_fail(err, VGK_ERR_INVALID, "%s: [%s]: default must have %" PRId64 " values and range 2",
                        m->summary.path, group, count);
    /* Without a default: the first of several (styles to mix), one for a single value (a strength). */
    for (int64_t i = 0; i < count; i++)
        defaults[i] = n ? (float)given[n == 1 ? 0 : i] : i == 0;
    bool labelled = false;
    for (int i = 0; i < count; i++)
        if (vg_modelinfo_item(m->info, group, "labels", i, text, sizeof text)) {
            labelled = true;
            if (!(labels[i] = vg_arena_text(m->arena, text)))
                return vgk_fail(err, VGK_ERR_NOMEM, "no memory for the model");
        } else {
            labels[i] = "";
        }
    *p = (struct vg_parameter){v->name, (int)count, defaults, (float)range[0], (float)range[1],
                               labelled ? labels : NULL};
    return VGK_OK;
}

/* --- loading --- */

/* What a state's two ends must have in common. */
static enum vgk_status check_states(struct vg_model *m, struct vg_net *net, struct vgk_error *err)
{
    const struct vg_roles *r = &m->roles;
    if (!(net->states = vg_arena_array(net->arena, (size_t)r->n_states, sizeof *net->states)))
        return VGK_ERR_NOMEM;
    for (int i = 0; i < r->n_states; i++) {
        const struct vg_net_value *in = &net->values[net->inputs[r->states[i].input]], *out = in;
        char ti[128], to[128];
        net->states[net->n_states++] = (struct vg_net_state){r->states[i].input, r->states[i].output};
        if (r->states[i].output >= 0)
            out = &net->values[net->outputs[r->states[i].output]];
        bool same = in->t.rank == out->t.rank && in->t.type == out->t.type;
        for (int d = 0; same && d < in->t.rank; d++)
            same = in->t.dim[d] == out->t.dim[d];
        for (int a = 0; same && a < VG_AXES; a++)
            same = in->axis[a] == out->axis[a] && (in->axis[a] < 0 || in->num[a] * out->den[a] == in->den[a] * out->num[a]);
        if (!same)
            return vgk_fail(err, VGK_ERR_INVALID, "state '%s' is %s and its output '%s' %s: expected the same shape and "
                            "rows and columns of the frame; the .modelinfo file may give %s-scale, or other pairs (key "
                            "state)", in->name, vgk_tensor_describe(&in->t, ti, sizeof ti), out->name,
                            vgk_tensor_describe(&out->t, to, sizeof to), in->name);
        if (in->axis[VG_X] < 0 && !net->global_why)
            net->global_why = "a state that is no picture of the frame";
    }
    return VGK_OK;
}

/* axis: NULL = rows and columns. */
static enum vgk_status bind_graph(struct vg_model *m, int width, int height, int window, const int *axis,
                                  struct vg_net **net, struct vgk_error *err)
{
    const struct vg_graph *g = m->graph;
    struct vg_input_size *sizes = calloc(g->n_inputs + 1, sizeof *sizes);
    struct vgk_device *cpu = NULL;
    *net = NULL;
    if (!sizes)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for the graph");
    for (int i = 0; i < g->n_inputs; i++) {
        const struct vg_input_role *role = &m->roles.inputs[i];
        sizes[i] = role->size;
        for (int a = 0; a < VG_AXES && role->size.frame; a++)
            if (role->size.axis[a] >= 0)
                sizes[i].dim[role->size.axis[a]] = (int64_t)(a == VG_X ? width : height) * role->size.num[a] /
                                                   role->size.den[a];
        if (role->role == VG_ROLE_FRAME && role->port.time >= 0 && !role->port.frames)
            sizes[i].dim[role->port.time] = window ? window : m->summary.window;
        sizes[i].frames_first = role->role == VG_ROLE_FRAME && role->size.rank == 5 && role->port.time == 1 &&
                                role->port.channel == 2;
        for (int a = 0; a < VG_AXES && axis; a++)
            sizes[i].axis[a] = role->role == VG_ROLE_FRAME ? axis[a] : -1;
    }
    struct vg_binding binding = {.sizes = sizes, .frame_input = m->frame_input};
    memcpy(binding.axis, sizes[m->frame_input].axis, sizeof binding.axis);
    if (!axis)
        memcpy(binding.border, (int[VG_AXES]){[VG_X] = m->summary.border_x, [VG_Y] = m->summary.border_y},
               sizeof binding.border);
    binding.border_mode = m->border_mode;
    enum vgk_status s = vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &cpu, err);
    binding.cpu = cpu;
    if (!s)
        s = vg_net_bind(g, &binding, net, err);
    vgk_cpu.close(&cpu);
    free(sizes);
    if (s)
        vgk_error_prefix(err, "%s at %dx%d", m->summary.path, width, height);
    return s;
}

enum vgk_status vg_model_bind_axes(struct vg_model *m, const int axis[VG_AXES], struct vg_net **net,
                                   struct vgk_error *err)
{
    const struct vg_summary *s = &m->summary;
    int width = s->fixed_width ? s->fixed_width : (int)vgk_round_up(64, (size_t)s->align_x);
    int height = s->fixed_height ? s->fixed_height : (int)vgk_round_up(64, (size_t)s->align_y);
    return bind_graph(m, width, height, 0, axis, net, err);
}

enum vgk_status vg_model_bind(struct vg_model *m, int width, int height, int window, bool fuse,
                              enum vg_norm_source source, struct vg_net **net, struct vgk_error *err)
{
    enum vgk_status s = bind_graph(m, width, height, window, NULL, net, err);
    if (!s && (s = check_states(m, *net, err)))
        vgk_error_prefix(err, "%s at %dx%d", m->summary.path, width, height);
    if (!s && fuse)
        s = vg_net_fuse(*net);
    if (!s)
        s = vg_net_split_norms(*net, source);
    if (s && *net)
        vg_net_free(net);
    return s == VGK_ERR_NOMEM ? vgk_fail(err, s, "no memory for the graph") : s;
}

/* --- what the graph tells --- */

/* A size to look at the graph with: divisible by any usual stride, large enough for any usual reflection. */
static const int nominal_sizes[] = {256, 240, 384, 512, 224, 64};
/* Frames for models that take any number; some take odd ones only. */
static const int nominal_windows[] = {8, 9, 4, 5, 16, 2, 1};

/* Frame pixels by which the output is too small along an axis, rounded up. */
static int cropped(const struct vg_model *m, const struct vg_net *net, int axis, int size)
{
    const struct vg_net_value *out = &net->values[net->outputs[m->frame_output]];
    if (out->axis[axis] < 0 || size % out->den[axis])
        return 0;
    int64_t missing = size / out->den[axis] * out->num[axis] - out->t.dim[out->axis[axis]];
    return missing > 0 && missing < size ? (int)((missing * out->den[axis] + out->num[axis] - 1) / out->num[axis]) : 0;
}

/* Binds the graph to look at it.  One that crops its borders is bound again with them put around the frame. */
static enum vgk_status bind_bordered(struct vg_model *m, int size_x, int size_y, struct vg_net **net,
                                     struct vgk_error *err)
{
    struct vg_summary *sum = &m->summary;
    sum->border_x = sum->border_y = 0;
    enum vgk_status s = vg_model_bind(m, size_x, size_y, 0, true, VG_NORM_OWN, net, err);
    int x = s ? 0 : cropped(m, *net, VG_X, size_x), y = s ? 0 : cropped(m, *net, VG_Y, size_y);
    if (s || (!x && !y) || m->roles.n_states)
        return s;
    sum->border_x = x;
    sum->border_y = y;
    vg_net_free(net);
    return vg_model_bind(m, size_x, size_y, 0, true, VG_NORM_OWN, net, err);
}

static enum vgk_status analyse(struct vg_model *m, int size_x, int size_y, struct vg_analysis *a, struct vgk_error *err)
{
    struct vg_net *net = NULL;
    struct vg_summary *sum = &m->summary;
    enum vgk_status s = bind_bordered(m, size_x, size_y, &net, err);
    if (!s) {
        const struct vg_net_value *out = &net->values[net->outputs[m->frame_output]];
        struct vg_port port;
        s = vg_net_analyse(net, m->frame_output, NULL, a, err);
        if (s)
            vgk_error_prefix(err, "%s", sum->path);
        else if (!vg_port_of(&out->t, out->axis, &m->roles.inputs[m->frame_input].port, &port)) {
            char text[128];
            s = vgk_fail(err, VGK_ERR_INVALID, "%s is no image model: output '%s' is %s, expected 3 channels, or 3 for each "
                         "frame", sum->path, out->name, vgk_tensor_describe(&out->t, text, sizeof text));
        } else {
            sum->emit = port.frames;
        }
    }
    if (!s && net->global_why) {
        sum->global = true;
        sum->global_why = vg_arena_text(m->arena, net->global_why);
    }
    vg_net_free(&net);
    return s;
}

/* At any of the sizes that the graph takes. */
static enum vgk_status analyse_any(struct vg_model *m, struct vg_analysis *a, struct vgk_error *err)
{
    struct vg_summary *sum = &m->summary;
    const struct vg_value *in = &m->graph->values[m->graph->inputs[m->frame_input]];
    const int *axis = m->roles.inputs[m->frame_input].port.axis;
    int64_t w = in->tensor.dim[axis[VG_X]], h = in->tensor.dim[axis[VG_Y]];
    enum vgk_status s = VGK_ERR_INVALID;
    /* A size that the file states binds by itself; whether others do as well, is tried out. */
    for (size_t i = 0; i < sizeof nominal_sizes / sizeof *nominal_sizes && s; i++) {
        struct vgk_error why = {{0}};
        if (w == nominal_sizes[i] && h == nominal_sizes[i]) /* which would tell nothing */
            continue;
        s = analyse(m, nominal_sizes[i], nominal_sizes[i], a, i ? &why : err);
        if (s == VGK_ERR_NOMEM)
            return s;
    }
    if (s && w > 0 && h > 0 && w <= 16384 && h <= 16384) {
        s = analyse(m, (int)w, (int)h, a, err);
        sum->fixed_width = (int)w;
        sum->fixed_height = (int)h;
    }
    return s;
}

static enum vgk_status summarise(struct vg_model *m, struct vgk_error *err)
{
    struct vg_summary *sum = &m->summary;
    struct vg_analysis a = {.align = {1, 1}};
    enum vgk_status s = vg_window_read(m, err);
    if (!s && !(s = vg_model_find_scales(m, nominal_sizes[0], err)))
        s = analyse_any(m, &a, err);
    bool any = vg_window_open(m) && !vg_modelinfo_text(m->info, "vidgen", "window");
    for (size_t i = 0; any && s && s != VGK_ERR_NOMEM && i < sizeof nominal_windows / sizeof *nominal_windows; i++) {
        struct vgk_error why = {{0}};
        sum->window = nominal_windows[i];
        s = analyse_any(m, &a, &why);
    }
    if (s)
        return s;
    if (a.num[VG_X] != a.num[VG_Y] || a.den[VG_X] != a.den[VG_Y])
        return vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s scales %" PRId64 "/%" PRId64 " across and %" PRId64 "/%" PRId64
                        " down; both must be equal", sum->path, a.num[VG_X], a.den[VG_X], a.num[VG_Y], a.den[VG_Y]);
    sum->scale_num = (int)a.num[VG_X];
    sum->scale_den = (int)a.den[VG_X];
    sum->align_x = (int)a.align[VG_X];
    sum->align_y = (int)a.align[VG_Y];
    sum->halo_left = (int)a.lo[VG_X];
    sum->halo_right = (int)a.hi[VG_X];
    sum->halo_top = (int)a.lo[VG_Y];
    sum->halo_bottom = (int)a.hi[VG_Y];
    return vg_window_finish(m, err);
}

static enum vgk_status read_roles(struct vg_model *m, struct vgk_error *err)
{
    const struct vg_graph *g = m->graph;
    enum vgk_status s = vg_roles_find(g, m->info, m->summary.path, m->arena, &m->roles, err);
    if (s)
        return s;
    m->frame_input = m->roles.frame_input;
    m->frame_output = m->roles.frame_output;
    m->summary.n_states = m->roles.n_states;
    static const char *const modes[] = {"zero", "reflect", "edge"}; /* as enum vgk_pad_mode */
    const char *border = vg_modelinfo_text(m->info, "vidgen", "border");
    m->border_mode = VGK_PAD_EDGE;
    for (int i = 0; i < 3 && border; i++)
        if (!strcmp(border, modes[i])) {
            m->border_mode = i;
            border = NULL;
        }
    if (border)
        return vgk_fail(err, VGK_ERR_INVALID, "%s: border is %s, expected edge, reflect or zero", m->summary.path, border);
    m->summary.in = m->summary.out = (struct vgk_pixels){{0, 1, 2}, {0, 0, 0}, {1, 1, 1}};
    if ((s = read_pixels(m, "", &m->summary.in, err)))
        return s;
    m->summary.out = m->summary.in;
    if ((s = read_pixels(m, "output-", &m->summary.out, err)))
        return s;
    struct vg_parameter *p = vg_arena_array(m->arena, g->n_inputs + 1, sizeof *p);
    m->parameter_of = vg_arena_array(m->arena, g->n_inputs + 1, sizeof *m->parameter_of);
    if (!p || !m->parameter_of)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for the model");
    for (int i = 0; i < g->n_inputs; i++) {
        m->parameter_of[i] = -1;
        if (m->roles.inputs[i].role != VG_ROLE_PARAMETER && m->roles.inputs[i].role != VG_ROLE_MAP)
            continue;
        m->parameter_of[i] = m->summary.n_parameters;
        if ((s = read_parameter(m, i, &p[m->summary.n_parameters++], err)))
            return s;
    }
    m->summary.parameters = p;
    return VGK_OK;
}

/* Names all that are missing at once: a user should not find out one by one. */
static enum vgk_status check_operators(const struct vg_model *m, struct vgk_error *err)
{
    char text[768] = "";
    size_t at = 0;
    int n = 0;
    for (int i = 0; i < m->graph->n_nodes; i++) {
        const struct vg_node *node = &m->graph->nodes[i];
        if (vg_bind_knows(node->type) && !node->domain[0])
            continue;
        bool seen = false;
        for (int k = 0; k < i && !seen; k++)
            seen = !strcmp(m->graph->nodes[k].type, node->type) && !strcmp(m->graph->nodes[k].domain, node->domain);
        const char *why = vg_bind_refusal(node->type);
        if (!seen && at < sizeof text)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s (first: node '%s'%s%s)", n ? ", " : "", node->type,
                                   node->name[0] ? node->name : m->graph->values[node->out[0]].name, why ? "; " : "",
                                   why ? why : "");
        n++;
    }
    if (n)
        return vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s: operators that are not supported: %s", m->summary.path, text);
    return VGK_OK;
}

static size_t weight_bytes(const struct vg_graph *g)
{
    size_t sum = 0, n;
    for (int i = 0; i < g->n_values; i++)
        if (g->values[i].constant && vgk_tensor_bytes(&g->values[i].tensor, &n))
            sum += n;
    return sum;
}

char *vg_model_beside(const char *path, const char *ending)
{
    size_t n = strlen(path);
    if (n > 5 && !strcmp(path + n - 5, ".onnx"))
        n -= 5;
    char *p = malloc(n + strlen(ending) + 1);
    if (p)
        sprintf(p, "%.*s%s", (int)n, path, ending);
    return p;
}

static int parameter_values(const struct vg_summary *s)
{
    int n = 0;
    for (int i = 0; i < s->n_parameters; i++)
        n += s->parameters[i].count;
    return n;
}

enum vgk_status vg_model_load(const char *path, struct vg_model **model, struct vgk_error *err)
{
    struct vg_model *m = calloc(1, sizeof *m);
    char *info = NULL, *norms = NULL;
    enum vgk_status s = VGK_ERR_NOMEM;
    if (!m)
        return vgk_fail(err, s, "no memory for the model");
    atomic_init(&m->references, 1);
    if (!(m->arena = vg_arena_new(0)) || !(m->summary.path = vg_arena_text(m->arena, path)) ||
        !(info = vg_model_beside(path, ".modelinfo")) || !(norms = vg_model_beside(path, ".norms"))) {
        vgk_fail(err, s, "no memory for the model");
        goto done;
    }
    const char *slash = strrchr(m->summary.path, '/');
    m->summary.name = slash ? slash + 1 : m->summary.path;
    if ((s = vg_onnx_load(path, &m->graph, err)) || (s = vg_modelinfo_load(info, m->graph, &m->info, err)) ||
        (s = check_operators(m, err)) || (s = read_roles(m, err)) || (s = summarise(m, err)))
        goto done;
    vg_stored_load(norms, m->graph, parameter_values(&m->summary), &m->stored, &m->stored_error);
    const char *name = vg_modelinfo_text(m->info, "vidgen", "name");
    m->summary.name = name ? name : m->summary.name;
    m->summary.opset = (int)m->graph->opset;
    m->summary.n_nodes = m->graph->n_nodes;
    m->summary.weight_bytes = weight_bytes(m->graph);
    *model = m;
    m = NULL;
done:
    free(info);
    free(norms);
    vg_model_unref(&m);
    return s;
}

struct vg_model *vg_model_ref(struct vg_model *m)
{
    atomic_fetch_add(&m->references, 1);
    return m;
}

void vg_model_unref(struct vg_model **model)
{
    struct vg_model *m = *model;
    *model = NULL;
    if (!m || atomic_fetch_sub(&m->references, 1) > 1)
        return;
    vg_graph_free(&m->graph);
    vg_modelinfo_free(&m->info);
    vg_stored_clear(&m->stored);
    vg_arena_free(m->arena);
    free(m);
}

const struct vg_summary *vg_model_summary(const struct vg_model *m) { return &m->summary; }
