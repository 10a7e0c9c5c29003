/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* NAME.norms beside NAME.onnx: statistics (statistics.h) for norms that are frozen, measured by `vidgen freeze`; a key
 * file (modelinfo.h):
 *
 *     [norms]
 *     model=9f86d081884c7d65          the model's constants: vg_stored_fingerprint
 *     sets=2
 *     counts=96;192                   values of each part
 *     [set 0]
 *     parameters=1;0;0                values of all the model's parameters, one behind the other; left out when none
 *     0=0.4871;...                    part 0, as in struct vg_statistics
 *     1=... */
#ifndef VG_STORED_H
#define VG_STORED_H

#include "graph.h"
#include "net.h"

struct vg_stored {
    int n_sets, n_parts, n_parameters;
    int64_t *counts, total;
    double *parameters; /* [sets][n_parameters] */
    float *values;      /* [sets][total] */
};

uint64_t vg_stored_fingerprint(const struct vg_graph *);

/* Room for sets; false: no memory (free it all the same). */
bool vg_stored_make(struct vg_stored *, int n_sets, int n_parts, int n_parameters, const int64_t *counts);
void vg_stored_clear(struct vg_stored *);

/* Reads the file when it is there, else n_sets is 0.  VGK_ERR_INVALID: broken, or of another model. */
enum vgk_status vg_stored_load(const char *path, const struct vg_graph *, int n_parameters, struct vg_stored *,
                               struct vgk_error *);
enum vgk_status vg_stored_write(const char *path, const struct vg_graph *, const struct vg_stored *, struct vgk_error *);

/* Whether they are the net's. */
bool vg_stored_matches(const struct vg_stored *, const struct vg_net *);

/* Values for these parameters: of the set where there is one for them, else a mix of the sets whose parameters, mixed
 * alike, come nearest: what lies between, where one style fades into another. */
void vg_stored_mix(const struct vg_stored *, const float *parameters, float *values);

#endif
