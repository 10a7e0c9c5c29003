/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "window.h"

#include "fuse.h"

#define ANY_WINDOW 8 /* frames, of a model that takes any number and has nobody who says */

bool vg_window_open(const struct vg_model *m) { return m->roles.window == 0; }

int vg_window_time_input(const struct vg_model *m)
{
    for (int i = 0; i < m->graph->n_inputs; i++)
        if (m->roles.inputs[i].role == VG_ROLE_TIME)
            return i;
    return -1;
}

/* A whole number of the sidecar; *value stays when there is none. */
static enum vgk_status read_int(const struct vg_model *m, const char *key, int low, int *value, struct vgk_error *err)
{
    double v = 0;
    int n = vg_modelinfo_numbers(m->info, "vidgen", key, &v, 1, err);
    if (n < 0)
        return VGK_ERR_INVALID;
    if (n && (n != 1 || v < low || v > VG_MAX_WINDOW || v != (double)(int)v))
        return vgk_fail(err, VGK_ERR_INVALID, "%s: %s is %s, expected a whole number from %d to %d", m->summary.path,
                        key, vg_modelinfo_text(m->info, "vidgen", key), low, VG_MAX_WINDOW);
    *value = n ? (int)v : *value;
    return VGK_OK;
}

enum vgk_status vg_window_read(struct vg_model *m, struct vgk_error *err)
{
    int window = m->roles.window ? m->roles.window : ANY_WINDOW;
    enum vgk_status s = read_int(m, "window", 1, &window, err);
    if (!s && m->roles.window && window != m->roles.window)
        return vgk_fail(err, VGK_ERR_INVALID, "%s: window is %d, but its inputs take %d frames", m->summary.path,
                        window, m->roles.window);
    m->summary.window = window;
    return s;
}

/* The frames around one that it depends on: time is an axis like those of the picture.  False where the graph does not
 * tell: all of them, then. */
static bool look(struct vg_model *m, int *back, int *ahead)
{
    int time = m->roles.inputs[m->frame_input].port.time;
    struct vg_net *net = NULL;
    struct vg_analysis a;
    bool known = time >= 0 && !vg_model_bind_axes(m, (int[VG_AXES]){time, time}, &net, NULL) && !vg_net_fuse(net) &&
                 !net->global_why && !vg_net_analyse(net, m->frame_output, NULL, &a, NULL) && a.align[VG_X] == 1 &&
                 a.num[VG_X] == a.den[VG_X];
    if (known) {
        *back = (int)a.lo[VG_X];
        *ahead = (int)a.hi[VG_X];
    }
    vg_net_free(&net);
    return known;
}

enum vgk_status vg_window_finish(struct vg_model *m, struct vgk_error *err)
{
    struct vg_summary *s = &m->summary;
    int given = 0, centre = -2;
    enum vgk_status status = read_int(m, "out-frames", 1, &given, err);
    if (s->window > VG_MAX_WINDOW || s->emit > VG_MAX_WINDOW)
        return vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s takes %d frames and gives %d; %d are the most", s->path,
                        s->window, s->emit, VG_MAX_WINDOW);
    if (!status && given && given != s->emit)
        return vgk_fail(err, VGK_ERR_INVALID, "%s: out-frames is %d, but its output has %d", s->path, given, s->emit);
    /* Two frames in and another number out: what comes out lies between them. */
    s->centre = s->window == 2 && s->emit != 2 ? -1 : s->emit < s->window ? (s->window - s->emit) / 2 : 0;
    s->hop = s->centre < 0 ? 1 : s->emit < s->window ? s->emit : s->window;
    status = status ? status : read_int(m, "centre", -1, &centre, err);
    s->centre = centre > -2 ? centre : s->centre;
    status = status ? status : read_int(m, "hop", 1, &s->hop, err);
    if (!status && (s->centre >= s->window || s->hop > s->window || (s->centre < 0 && s->window != 2)))
        return vgk_fail(err, VGK_ERR_INVALID,
                        "%s: a window of %d frames with centre %d and hop %d: expected both to lie "
                        "in it, and -1 as centre for two frames only",
                        s->path, s->window, s->centre, s->hop);
    s->look_back = s->centre < 0 ? 0 : s->centre;
    s->look_ahead = s->centre < 0 ? 1 : s->window - s->centre - s->emit < 0 ? 0 : s->window - s->centre - s->emit;
    if (!status && s->window > 1 && s->emit == s->window && !look(m, &s->look_back, &s->look_ahead))
        s->look_back = s->look_ahead = s->window - 1;
    return status;
}

enum vgk_status vg_window_choose(const struct vg_model *m, const struct vg_plan_request *r, struct vg_plan_info *info,
                                 struct vgk_error *err)
{
    const struct vg_summary *s = &m->summary;
    info->window = r->window ? r->window : s->window;
    info->emit = s->emit;
    info->centre = s->centre;
    info->hop = r->hop ? r->hop : info->window == s->window ? s->hop : 0;
    if (r->window < 0 || r->hop < 0 || r->emit < 0 || r->window > VG_MAX_WINDOW || r->emit > VG_MAX_WINDOW ||
        r->hop > info->window)
        return vgk_fail(err, VGK_ERR_INVALID,
                        "a window of %d frames, hop %d, emit %d: expected 0 (as the model says) to %d, "
                        "and a hop within the window",
                        r->window, r->hop, r->emit, VG_MAX_WINDOW);
    if (info->window != s->window && !vg_window_open(m))
        return vgk_fail(err, VGK_ERR_INVALID, "a window of %d frames, but %s takes %d", r->window, s->path, s->window);
    bool between = vg_window_time_input(m) >= 0;
    if (r->emit && r->emit != s->emit && !between && !vg_window_open(m))
        return vgk_fail(err, VGK_ERR_INVALID,
                        "%d frames from a window: %s gives %d; only interpolators with an input for "
                        "the time can be asked for others",
                        r->emit, s->path, s->emit);
    info->emit = between && r->emit ? r->emit : info->emit;
    return VGK_OK;
}

enum vgk_status vg_window_emit(const struct vg_model *m, const struct vg_net *net, struct vg_plan_info *info,
                               struct vgk_error *err)
{
    const struct vg_net_value *out = &net->values[net->outputs[m->frame_output]];
    struct vg_port port;
    if (!vg_port_of(&out->t, out->axis, &m->roles.inputs[m->frame_input].port, &port))
        return vgk_fail(err, VGK_ERR_INVALID, "%s: its output has no frames for a window of %d", m->summary.path,
                        info->window);
    if (vg_window_time_input(m) < 0)
        info->emit = port.frames;
    if (!info->hop)
        info->hop = info->emit < info->window ? info->emit : info->window;
    if (info->centre >= info->window)
        info->centre = 0;
    if (info->centre >= 0 && info->emit <= info->window && info->hop > info->emit)
        return vgk_fail(err, VGK_ERR_INVALID,
                        "%d frames of each window come out of %s, but it moves on by %d: hop may be %d "
                        "at most",
                        info->emit, m->summary.path, info->hop, info->emit);
    return VGK_OK;
}
