/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A schedule's making, for its files: schedule.c (what is known of buffers and ops; everything at once),
 * schedule_bands.c. */
#ifndef VG_SCHEDULE_INTERNAL_H
#define VG_SCHEDULE_INTERNAL_H

#include "schedule.h"

struct buffer {
    int64_t rows, unit, above; /* 0 rows: not of the frame's rows; blocks.h */
    int input;           /* of the net, a picture; -1 = none */
    bool output;         /* an output of the net lies in it */
    bool at_end;         /* and is written behind the last level */
    bool kept;           /* stored whole across levels */
    bool spilled;        /* stored in host memory across levels */
    int level;           /* in which it is made, if it is spilled */
    int last_writer;     /* op of the level that runs */
    /* while a level runs */
    bool inside;         /* made in this level, in bands */
    int64_t made, base, want, next;
    bool restored;
    int last_touch;      /* op that touches it last in this band */
};

struct op {
    bool frame;  /* depends on the frame: not in the prologue */
    bool whole;  /* reads all of its inputs before it begins */
    bool member; /* of the level that runs */
    int level;
    int64_t done;
};

struct maker {
    const struct vg_net *net;
    const struct vg_schedule_request *request;
    struct vg_schedule *s;
    struct buffer *b;
    struct op *o;
    int level;         /* that runs, with the ops and buffers that it touches */
    int *members, n_members, *near, n_near;
    bool failed;
};

/* schedule.c */
/* NULL: no memory, which `failed` says, too. */
struct vg_call *vg_schedule_add(struct maker *, enum vg_call_type, int what, int64_t begin, int64_t end, int position);
/* The storage is used from the one position to the other. */
void vg_schedule_use(struct vg_storage *, int first, int last);
/* Of operand k of an op, n_in: its output; with the rows or without.  -1: none. */
int vg_schedule_buffer(const struct vg_net *, const struct vg_net_op *, int k);

/* schedule_bands.c: all bands of a level. */
void vg_schedule_level(struct maker *, int level);

#endif
