/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A run: a plan with its arena.  One thread at a time.
 *
 *     vg_run_open(plan, &run, &err);
 *     vg_run_begin(run, frame, &colour, &out_like, &err);         before a frame's first tile: see there
 *     vg_run_tile(run, column, row, in, &colour, out, &err);      for every tile; allocates nothing
 *     vg_run_next(run);                                           after the last one of a window
 *     vg_run_start(), vg_run_wait()                               instead of vg_run_tile, where the plan has flights
 *     vg_run_close(&run); */
#ifndef VG_RUN_H
#define VG_RUN_H

#include "plan.h"

struct vg_run;

/* Allocates the arena and packs the weights.  The plan must outlive the run.  VGK_ERR_NOMEM: the device has no more. */
enum vgk_status vg_run_open(const struct vg_plan *, struct vg_run **, struct vgk_error *);
void vg_run_close(struct vg_run **);

/* New values for parameter i (its count of them) from the next tile on. */
enum vgk_status vg_run_set_parameter(struct vg_run *, int i, const float *values, struct vgk_error *);

/* Forgets what earlier frames left behind (statistics of the previous frame, states): at a flush, a cut, another
 * stream. */
void vg_run_reset(struct vg_run *);

/* Before the first tile of a frame: the whole frame, for what tiles cannot tell.  Needed where the plan has
 * norm-mode THUMBNAIL, or FROZEN that measures on frames in tiles; elsewhere it does nothing.
 * compare (its pixels are not read): where the plan has norm_errors, the frame is done exactly, too, and the tiles'
 * output, which must look like it, is compared with that; NULL: not this time. */
enum vgk_status vg_run_begin(struct vg_run *, const struct vgk_frame *in, const struct vgk_colour *,
                             const struct vgk_frame *compare, struct vgk_error *);

/* The statistics in use, for `vidgen freeze`; see statistics.h. */
struct vg_statistics;
const struct vg_statistics *vg_run_statistics(const struct vg_run *);

struct vg_run_info {
    double drift;  /* of the last frame's statistics from those it was normalised with: the mean over channels of
                      |log(deviation ratio)| + |difference of means| in deviations, of the norm where it is largest;
                      0 with norms by the frame's own */
    int recordings, recorded; /* calls that launch a tile's ops (kernels/backend.h), and so many ops in them */
    uint64_t rescued; /* tiles that overflowed in half precision and were run again in f32 */
    uint64_t cuts; /* frames done again exactly because of it (drift above VG_RUN_CUT) */
    bool frozen;   /* norms by constants: those stored, or those of the first frames, which are through */
    uint64_t errors_frames; /* frames compared with EXACT, and the difference in 8-bit steps: */
    double error_mean;      /* over all their values */
    int error_worst;
};
#define VG_RUN_CUT 0.8
void vg_run_info(const struct vg_run *, struct vg_run_info *);

/* One tile of one window, at (column, row) of the plan's grid: in[info.window] frames, oldest first, to out[info.emit].
 * `in` of the plan's tile size, or less where the tile hangs over the frame's edge (the model then sees the last column
 * and row repeated); `out` of that times the model's scale, all in the colour given.
 * The place matters to models with states.  They lie in frame coordinates: a tile reads what surrounds it from its
 * neighbours' cores of the window before, and writes its own core.
 * VGK_ERR_DEVICE: the backend failed. */
enum vgk_status vg_run_tile(struct vg_run *, int column, int row, const struct vgk_frame *in, const struct vgk_colour *,
                            const struct vgk_frame *out, struct vgk_error *);

/* The two halves of vg_run_tile for plans with flights (vg_plan_info.flight_bytes): a tile is started, and waited for later,
 * when the next one is on its way.  VGK_FLIGHTS may have been started and not waited for.
 * start: when it returns what of `in` is on the host may be changed; `out` says what the results will look like, the planes of
 * those that go to the host may be NULL.  What is on the device is read and written where it lies, until it is waited for.
 * number: of each frame of the window.  0: it is the tile.  Else, where the plan has flight_frames or one tile, it is the frame
 * that the tile is cut from, and this says which: another than all before, or one whose rows went up with another tile or
 * window.  It stays as it is until its last tile was started.
 * wait: the one that was started first, to `out`, which looks like that one; NULL: nobody wants it.  An error is that
 * tile's; its turn is over.
 * Nothing else of the run may be called in between, but vg_run_next, vg_run_reset, vg_run_info, vg_run_flying, how many there
 * are, and vg_run_flies: whether one may be started.  Frames that frozen norms are measured on, and those that are compared
 * (vg_run_begin), are run. */
bool vg_run_flies(const struct vg_run *);
enum vgk_status vg_run_start(struct vg_run *, int column, int row, const struct vgk_frame *in, const uint64_t *number,
                             const struct vgk_colour *, const struct vgk_frame *out, struct vgk_error *);
enum vgk_status vg_run_wait(struct vg_run *, const struct vgk_frame *out, struct vgk_error *);
int vg_run_flying(const struct vg_run *);

/* All tiles of a window have been run: the states move on, and nothing is compared any more. */
void vg_run_next(struct vg_run *);

/* From now on a run ends before its next step, with VGK_ERR_DEVICE, when *stop is not 0: for whoever cannot wait for a
 * large frame.  Read atomically; another thread may set it at any time.  It must live as long as the run. */
void vg_run_watch(struct vg_run *, const int *stop);

/* The same without frames (and without a rescue), for tests and benches: f32 tensors, NCHW row-major or channels-last by their strides.
 * in[i], out[i] in the order of the model file's inputs and outputs (inputs with parameters included; data NULL = leave
 * as it is). */
enum vgk_status vg_run_tensors(struct vg_run *, const struct vgk_tensor *in, int n_in, const struct vgk_tensor *out,
                               int n_out, struct vgk_error *);

#endif
