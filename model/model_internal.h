/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A model's insides, for the planner and the runner. */
#ifndef VG_MODEL_INTERNAL_H
#define VG_MODEL_INTERNAL_H

#include "analyse.h"
#include "bind.h"
#include "model.h"
#include "modelinfo.h"
#include "norms.h"
#include "roles.h"
#include "stored.h"

struct vg_model {
    atomic_int references;
    struct vg_graph *graph;
    struct vg_modelinfo *info;
    struct vg_stored stored; /* statistics of its norms that lie beside it; n_sets 0 = none, or what is there */
    struct vgk_error stored_error; /* cannot be used: why.  Only whoever wants them needs to know */
    struct vg_arena *arena; /* the summary's texts and arrays */
    struct vg_summary summary;
    struct vg_roles roles;
    int frame_input, frame_output; /* indices of graph inputs and outputs, as in roles */
    enum vgk_pad_mode border_mode; /* of summary.border_x, border_y */
    int *parameter_of;             /* for each graph input, -1 = none */
    bool tried;                    /* trial.c's, which has a lock for both */
    double trial_steps;
    size_t trial_peak;             /* bytes that it took */
    atomic_bool no_winograd;       /* it found them too large: every convolution's products are as written */
};

/* Binds and fuses the graph for a tile and so many frames (0 = as the model says).  May be called from several threads:
 * it opens what it needs. */
enum vgk_status vg_model_bind(struct vg_model *, int width, int height, int window, bool fuse, enum vg_norm_source,
                              struct vg_net **, struct vgk_error *);

/* The same for the summary's window and any size that will do, with other dimensions of the frame as axes (rows and
 * columns are none then): to analyse, not to be run. */
enum vgk_status vg_model_bind_axes(struct vg_model *, const int axis[VG_AXES], struct vg_net **, struct vgk_error *);

#endif
