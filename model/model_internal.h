/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A model's insides, for the planner and the runner. */
#ifndef VG_MODEL_INTERNAL_H
#define VG_MODEL_INTERNAL_H

#include "analyse.h"
#include "bind.h"
#include "model.h"
#include "modelinfo.h"
#include "norms.h"
#include "stored.h"

enum vg_role { VG_ROLE_FRAME, VG_ROLE_PARAMETER };

struct vg_model {
    atomic_int references;
    struct vg_graph *graph;
    struct vg_modelinfo *info;
    struct vg_stored stored; /* statistics of its norms that lie beside it; n_sets 0 = none, or what is there */
    struct vgk_error stored_error; /* cannot be used: why.  Only whoever wants them needs to know */
    struct vg_arena *arena; /* the summary's texts and arrays */
    struct vg_summary summary;
    int frame_input, frame_output; /* indices of graph inputs and outputs */
    bool interleaved;              /* the frame input is [N,H,W,C] */
    int *parameter_of;             /* for each graph input, -1 = the frame */
};

/* Binds and fuses the graph for a tile.  May be called from several threads: it opens what it needs. */
enum vgk_status vg_model_bind(struct vg_model *, int width, int height, bool fuse, enum vg_norm_source,
                              struct vg_net **, struct vgk_error *);

#endif
