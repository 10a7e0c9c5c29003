/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a model's inputs and outputs are for, found by rule; the sidecar (modelinfo.h) has the last word.
 *
 *   frames     3 channels: [1,3,H,W], [1,H,W,3], and several frames: [1,3,T,H,W], [1,T,3,H,W], [1,T,H,W,3], [T,3,H,W],
 *              [1,3k,H,W]; or several inputs of one frame, the oldest first.  Together they are the window
 *   states     an input that takes what an output gave in the run before: named in `state`, or named alike (h_in and
 *              h_out) with equal shapes; or what another input got in the run before (`state` prev=x, or named prev...)
 *   maps       other inputs of the frame's size, without an output that would feed them: each channel is filled with a
 *              value of a parameter
 *   time       of an interpolator, a single number: where between its two frames the new one lies
 *   parameters what is left
 *
 * The picture among the outputs is the first that is no state; several frames lie in it as in inputs. */
#ifndef VG_ROLES_H
#define VG_ROLES_H

#include "bind.h"
#include "model.h"
#include "modelinfo.h"

enum vg_role { VG_ROLE_FRAME, VG_ROLE_STATE, VG_ROLE_MAP, VG_ROLE_TIME, VG_ROLE_PARAMETER };

/* How frames lie in a tensor.  Dimensions; -1 = none. */
struct vg_port {
    int time;               /* counts them */
    int channel, axis[VG_AXES];
    int frames, first;      /* how many of the window's, 0 = any number; the first of them */
};

struct vg_input_role {
    enum vg_role role;
    struct vg_input_size size; /* dims of -1 follow from the frame (x, y) and the window (time) */
    struct vg_port port;       /* FRAME only */
};

struct vg_state_role {
    int input, output;  /* of the graph; output -1: */
    int source;         /* takes what this input got */
    bool first;         /* begins with the first frame, else with zeros */
    bool scale_known;   /* size.num, den of the input are right; else vg_model_find_scales finds them */
};

struct vg_roles {
    struct vg_input_role *inputs;
    int frame_input, frame_output; /* of the graph; the window's first input */
    int window;                    /* frames that the inputs take; 0 = any number */
    int n_states;
    struct vg_state_role *states;
};

/* All memory lies in the arena.  `name` is for messages.  VGK_ERR_INVALID: has no pictures, or the sidecar names what
 * is not there.  VGK_ERR_UNSUPPORTED: an input whose size nothing tells. */
enum vgk_status vg_roles_find(const struct vg_graph *, const struct vg_modelinfo *, const char *name, struct vg_arena *,
                              struct vg_roles *, struct vgk_error *);

/* An output with axes where they are: how frames lie in it; where that leaves a choice, as in the input.  False when it
 * has no three channels. */
bool vg_port_of(const struct vgk_tensor *, const int axis[VG_AXES], const struct vg_port *input, struct vg_port *);

/* Frame k of those in `t` as [1,3,H,W]. */
struct vgk_tensor vg_port_frame(const struct vg_port *, const struct vgk_tensor *t, int k);

#endif
