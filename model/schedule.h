/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A schedule: in which order, and in which pieces, the ops of a net run over a frame.
 *
 * Whole: one op after the other, each over the whole frame.  Fastest where memory allows it.
 *
 * Bands: the ops advance together down the frame, a band of rows at a time; of what lies between them only a window of
 * rows exists, and the last rows of a window that the next band still needs are carried over.  Nothing is computed
 * twice, every row is computed from the very inputs, and in the very blocks, that the whole schedule has, so the result
 * is the same to the last bit; memory grows with the frame's width, not with its height.  (Line buffering, as in fused
 * layer hardware: Alwani et al., Fused-Layer CNN Accelerators, MICRO 2016.)
 *
 * An op that needs all of its input before it can begin (the merge of a norm's statistics, a reduction) divides the net
 * into levels; each level runs over the whole frame before the next one.  What is needed across levels is stored whole,
 * or computed again in the level that needs it (`recompute`), or goes to host memory and comes back by bands (`spill`).
 *
 * States, and frames of a window in inputs of their own, come and go by rows like the frame; what has no rows comes
 * before the first band and goes behind the last. */
#ifndef VG_SCHEDULE_H
#define VG_SCHEDULE_H

#include "blocks.h"

struct vg_schedule_request {
    int bands;             /* 1 = whole */
    const struct vg_blocks *blocks; /* for each op */
    const bool *recompute; /* for each buffer: not stored across levels where that can be avoided; NULL = none */
    const bool *spill;     /* the same, but kept in host memory; NULL = none */
};

enum vg_call_type { VG_CALL_OP, VG_CALL_READ, VG_CALL_WRITE, VG_CALL_SAVE, VG_CALL_RESTORE, VG_CALL_SPILL, VG_CALL_FETCH,
    VG_CALL_LOAD /* in programs only */ };

/* One thing to do.  Rows are of the op's output value (OP), of an input or output of the net (READ, WRITE: all inputs that
 * depend on the frame; all such outputs), or of the buffer (SAVE: the window's last rows to the
 * carry store; RESTORE: back to the window's begin; SPILL, FETCH: from the window to host memory, and from there). */
struct vg_call {
    enum vg_call_type type;
    int what;             /* op, input, output or buffer */
    int64_t begin, end;   /* rows */
    bool all;             /* OP: over all of its operands, not in bands */
    int position;         /* on the time scale of lifetimes; the bands of a level share positions */
    int64_t base[VG_MAX_OPERANDS + 1]; /* OP: the first row in the window of each input, then of the output; all
                                          others: [0] */
};

/* How a buffer lies in memory. */
struct vg_storage {
    bool banded;          /* a window of rows; else the whole buffer */
    int64_t window, carry; /* rows, the most there are; banded only */
    int first, last;      /* positions of the calls that use it (of the window, or the whole buffer); -1 = never */
    int carry_first, carry_last;
    size_t row_bytes;
    bool spilled;         /* the whole buffer is in host memory, */
    int host_first, host_last; /* in these levels */
};

struct vg_schedule {
    int n_calls, capacity, n_positions, n_prologue;
    struct vg_call *calls;      /* the first n_prologue depend on parameters only: they run when one changes */
    struct vg_storage *storage; /* for each buffer */
    int bands, levels;
    int *runs;                  /* for each op: in how many levels it runs */
};

/* VGK_ERR_UNSUPPORTED: this net cannot run in bands.  VGK_ERR_NOMEM. */
enum vgk_status vg_schedule_make(const struct vg_net *, const struct vg_schedule_request *, struct vg_schedule **,
                                 struct vgk_error *);
void vg_schedule_free(struct vg_schedule **);

#endif
