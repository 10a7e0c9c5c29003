/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A plan's insides, for the runner and for tests. */
#ifndef VG_PLAN_INTERNAL_H
#define VG_PLAN_INTERNAL_H

#include "model_internal.h"
#include "plan.h"
#include "program.h"

struct vg_plan {
    struct vg_model *model;
    const struct vgk_backend *backend;
    struct vgk_device *device;
    struct vg_program *program;
    struct vg_program *first; /* norms by the previous frame: what runs where there is none; same weights and persistent
                                 section as program.  NULL otherwise */
    struct vg_program *rescue; /* half precision: the same in f32, for tiles that overflow; NULL otherwise */
    size_t arena_bytes, room; /* room: of the rescue apart from activations, as reckoned before the frame was cut */
    struct vg_grid grid;
    struct vg_plan_info info;
    bool direct; /* without Winograd: the tiles are too small for its blocks */
    char warning[512];
};

#endif
