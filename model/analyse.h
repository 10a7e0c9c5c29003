/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a net needs around a piece of its output: scale, total stride, receptive field.  Intervals of positions are
 * walked backwards from an aligned piece of the output, in whole numbers, as Araujo et al. (Computing Receptive Fields
 * of Convolutional Neural Networks, Distill 2019) do for chains; here for graphs, per axis and side. */
#ifndef VG_ANALYSE_H
#define VG_ANALYSE_H

#include "blocks.h"

struct vg_analysis {
    int64_t num[VG_AXES], den[VG_AXES]; /* output pixels = input pixels * num / den */
    int64_t align[VG_AXES];             /* total stride: sizes and cuts are multiples of this */
    int64_t lo[VG_AXES], hi[VG_AXES];   /* input pixels needed before and behind an aligned piece */
    int64_t origin[VG_AXES];            /* tile origins are multiples of this: align, on every op's lattice */
};

/* Of the net's output `output` (index), and of its states: a piece of them needs no more around it than is told.
 * blocks: NULL for the mathematical field; else, for each op, the blocks that its kernel computes: a pixel's bits depend
 * on all inputs of its block, so lo and hi are what bit-exact tiles need, whatever the phase of a cut.
 * VGK_ERR_UNSUPPORTED when the output is no picture of the frame: it has no axes, or its size is not the input's times the
 * scale (of a model that crops its borders, without the border: bind.h). */
enum vgk_status vg_net_analyse(const struct vg_net *, int output, const struct vg_blocks *blocks, struct vg_analysis *,
                               struct vgk_error *);

#endif
