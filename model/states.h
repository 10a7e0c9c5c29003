/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a model keeps from run to run: recurrent states, and the frame before where it wants that.
 *
 * States lie in frame coordinates, at the end of the plan's arena, and twice: runs read what the window before left,
 * and write what the next one reads.  A tile reads all of its pixels, those beside its core from its neighbours' cores; it
 * writes its core alone.  So tiles see the very states that the whole frame sees.
 *
 * Behind the states there are the values that fill maps (roles.h). */
#ifndef VG_STATES_H
#define VG_STATES_H

#include "model_internal.h"
#include "tiling.h"

struct vg_plan;

struct vg_state {
    struct vgk_tensor t; /* of the frame, padded to the model's alignment; data NULL */
    size_t offset[2];    /* bytes from the section's begin */
};

struct vg_states {
    struct vg_state *state; /* as in the model's roles */
    size_t *map;            /* for each input of the graph: where the values of a map lie, f32 */
    size_t bytes;           /* of the section */
    size_t state_bytes;     /* of that, both copies of all states */
};

/* Tries out at which scales of a frame of `size` the states fit their outputs, where nothing tells. */
enum vgk_status vg_model_find_scales(struct vg_model *, int size, struct vgk_error *);

/* The grid tells how large the padded frame is; all grids that the planner makes for a frame agree about that. */
enum vgk_status vg_states_lay_out(const struct vg_model *, const struct vg_grid *, struct vg_states *,
                                  struct vgk_error *);
void vg_states_free(struct vg_states *);

/* The tile's part of state i: to the net's input `to`, and from the net's output `from` (its core only), which are those of
 * their rows that begin at `begin`.  which: the copy. */
enum vgk_status vg_state_read(const struct vg_plan *, char *section, int i, int which, int column, int row, int64_t begin,
                              const struct vgk_tensor *to, struct vgk_error *);
enum vgk_status vg_state_write(const struct vg_plan *, char *section, int i, int which, int column, int row, int64_t begin,
                               const struct vgk_tensor *from, struct vgk_error *);

/* The values that lie in the section, each over its plane. */
enum vgk_status vg_map_fill(const struct vg_plan *, char *section, int input, const struct vgk_tensor *to,
                            struct vgk_error *);
#endif
