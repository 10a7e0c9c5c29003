/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers that a net learns from whole frames (norms.h), outside of it: those of the last frame, those in use, their
 * mean over frames.  Sets of them that lie beside a model: stored.h.
 *
 * A norm has [N,3C]: means, 1 / deviations, zeros; a reduction has what it gives. */
#ifndef VG_STATISTICS_H
#define VG_STATISTICS_H

#include "net.h"

struct vg_statistics {
    int n;                   /* memories of the net */
    struct vg_statistics_part {
        int64_t channels, count; /* see struct vg_net_memory */
        int64_t at;              /* in the arrays below */
    } *parts;
    int64_t total;           /* floats */
    float *now, *kept;
    double *sums;
    int frames;              /* in sums */
};

/* For the memories of a net.  false: no memory. */
bool vg_statistics_make(const struct vg_net *, struct vg_statistics *);
void vg_statistics_free(struct vg_statistics *);

/* How far now is from kept: for a norm the mean over channels of |log(deviation ratio)| + |difference of means| in
 * deviations, for a reduction the sum of differences over the sum of values; of the part where it is largest.  NaN
 * where one of them is. */
double vg_statistics_drift(const struct vg_statistics *);

/* kept moves on to now by this weight; 1 = all the way.  false: it stays as it is, to the bit. */
bool vg_statistics_follow(struct vg_statistics *, float weight);

/* Means over frames: of means and of variances (not of the pooled values: those have the differences between frames in
 * them, too, and the result is flat). */
void vg_statistics_add(struct vg_statistics *);  /* now */
void vg_statistics_mean(struct vg_statistics *); /* to kept */
void vg_statistics_restart(struct vg_statistics *);

#endif
