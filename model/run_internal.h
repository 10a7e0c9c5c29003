/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A run's insides, for its files: run.c (programs), run_norms.c (which of them a frame runs through), run_flight.c,
 * run_record.c. */
#ifndef VG_RUN_INTERNAL_H
#define VG_RUN_INTERNAL_H

#include "plan_internal.h"
#include "run.h"
#include "statistics.h"

/* A step with its addresses. */
struct bound_step {
    struct vgk_op op;
    struct vgk_tensor in[VG_MAX_OPERANDS], out;
    const void *packed;
    void *scratch;
};

/* A program with its addresses. */
struct bound {
    const struct vg_program *program;
    char *packed, *fixed, *activations; /* where its sections lie */
    struct bound_step *steps;
    struct vgk_tensor *inputs, *outputs; /* of the graph */
    char *host;                          /* host memory, NULL = none */
    bool stale;                          /* a parameter changed: the prologue must run */
    bool ran;                            /* all of it: */
    struct segment {                     /* ops between frames that are launched as one, in order */
        int begin, end;
        struct vgk_recording *recording;
    } *segments;
    int n_segments;
};

/* Where frames come from and go to: pictures, or the caller's tensors. */
struct ends {
    const struct vgk_frame *in, *out; /* [window], [emit]; out NULL: to nowhere */
    int column, row;
    struct vgk_matrix to, from;
    float low[3], high[3];
    const struct vgk_tensor *src, *dst; /* instead of pictures: of each input, of each output; data NULL = nothing */
    int n_src, n_dst;
};

/* A tile that has been started. */
struct flight {
    struct ends ends;
    struct vgk_frame in[VGK_FLIGHT_FRAMES], out[VGK_FLIGHT_FRAMES]; /* on the device */
};

struct vg_run {
    const struct vg_plan *plan;
    char *arena;
    struct bound main, exact, small, rescue; /* see struct vg_plan */
    int nonfinite;            /* values that main's last run wrote */
    struct vg_run_norms {
        struct vg_statistics statistics;
        float *parameters;       /* all values, one behind the other */
        bool kept;               /* PREVIOUS: there are statistics of a frame before */
        bool ready;              /* program has its statistics */
        bool comparing;          /* this frame's tiles with what lies at frame_at */
        uint8_t *host_frames;    /* what lies at frame_at and small_frame_at, where that is not in the arena; else NULL */
        struct vgk_frame frame, *small; /* what lies at frame_at; the window's reduced frames */
        double error_sum;
        uint64_t error_values;
    } norms;
    bool begun;               /* there is a run before: its states */
    int which;                /* copy of the states that it left */
    struct vg_run_info info;
    const int *stop;          /* NULL, or another thread's wish */
    float between;            /* where between two frames the new one is, as all programs have it; 0: not told yet */
    struct vgk_flights *flights; /* NULL: the plan has none */
    struct flight flight[VGK_FLIGHTS]; /* the first of `flying` is number next_landing */
    int flying, next_landing;
};

/* run.c */
struct vgk_tensor vg_run_at(const struct bound *, const struct vg_place *);
struct ends vg_run_ends(const struct vg_run *, int column, int row, const struct vgk_frame *in,
                        const struct vgk_colour *, const struct vgk_frame *out);
/* The grid has such a tile. */
enum vgk_status vg_run_check_place(const struct vg_plan *, int column, int row, struct vgk_error *);
/* It is of the plan's size. */
enum vgk_status vg_run_check_whole(const struct vg_plan *, const struct vgk_frame *, struct vgk_error *);
/* All frames of a tile have its size. */
enum vgk_status vg_run_check_frames(const struct vg_plan *, const struct vgk_frame *in, const struct vgk_frame *out,
                                    struct vgk_error *);
enum vgk_status vg_run_program(struct vg_run *, struct bound *, const struct ends *, struct vgk_error *);
/* Tells the programs of an interpolator that wants the time that the new frame is number k of those between two. */
enum vgk_status vg_run_between(struct vg_run *, int k, struct vgk_error *);

/* run_flight.c */
enum vgk_status vg_run_flight_open(struct vg_run *, struct vgk_error *);
void vg_run_flight_close(struct vg_run *);

/* run_record.c.  After the program's first run: what can be launched as one is from now on. */
void vg_run_record(struct vg_run *, struct bound *);
void vg_run_record_close(struct vg_run *, struct bound *);

/* run_norms.c */
enum vgk_status vg_run_norms_open(struct vg_run *, struct vgk_error *);
void vg_run_norms_close(struct vg_run *);
/* A parameter's values may have changed. */
enum vgk_status vg_run_norms_parameter(struct vg_run *, int i, const float *values, struct vgk_error *);
enum vgk_status vg_run_steps(struct vg_run *, const struct ends *, struct vgk_error *);
/* No frame has to be measured first; frozen: goes over to constants then. */
bool vg_run_norms_known(const struct vg_run *);
enum vgk_status vg_run_norms_settle(struct vg_run *, struct vgk_error *);
/* A tile's output, at (column, row), against the exact frame. */
void vg_run_norms_compare(struct vg_run *, int column, int row, const struct vgk_frame *out);

#endif
