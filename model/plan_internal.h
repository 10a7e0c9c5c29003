/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A plan's insides, for the runner and for tests. */
#ifndef VG_PLAN_INTERNAL_H
#define VG_PLAN_INTERNAL_H

#include "model_internal.h"
#include "plan.h"
#include "program.h"
#include "states.h"

/* How one tile is laid out. */
struct vg_how {
    bool direct; /* convolutions by direct products */
    int bands;
    const bool *recompute, *spill; /* schedule.h */
    bool stream, measure; /* program.h */
    enum vg_norm_source norms;
    bool half; /* activations in f16 */
};

struct vg_plan {
    struct vg_model *model;
    const struct vgk_backend *backend;
    struct vgk_device *device;
    struct vgk_device *host;    /* the CPU, to convert what comes from and goes to other devices; NULL if that is the device */
    struct vg_program *program;
    struct vg_program *exact; /* by each whole frame's own statistics: for frames that have no predecessor, to measure,
                                 to compare with; or NULL */
    struct vg_program *small; /* the same, of the reduced frame; or NULL */
    struct vg_program *rescue; /* half precision: the same as program in f32, for tiles that overflow; or NULL */
    bool half;                /* program; all the others are in f32 */
    bool bf16;                /* products, of all programs */
    bool rescue_streams;      /* its packed weights stay in host memory */
    size_t rescue_bytes;      /* what the arena has more because of it */
    size_t flight_bytes, staging_bytes; /* see vg_plan_info */
    struct vgk_flight_size flight_in, flight_out;
    bool flight_frames;
    size_t room;              /* of it apart from activations, as reckoned before the frame was cut */
    size_t beside;            /* room, and what the norms need */
    struct vg_plan_norms {
        enum vg_norm_mode mode;     /* in use */
        enum vg_norm_source source; /* of program */
        bool stored, errors;
        bool shared;                /* exact has its packed weights where program has them */
        int frames;                 /* to measure */
        int small_width, small_height; /* pixels of the reduced frame */
        /* The arena: program's weights and persistent section | those of exact | those of small | those of rescue | the
         * frame that exact makes | the reduced frame | frames in flight | activations of whoever runs.  With a host the two
         * frames lie there, in memory of their own. */
        size_t flights_at, exact_at, small_at, rescue_at, frame_at, frame_bytes, small_frame_at, host_frames, activations_at, arena;
    } norms;
    struct vg_grid grid;
    struct vg_states states; /* at the end of the arena */
    struct vg_plan_info info;
    bool direct; /* without Winograd: the tiles are too small for its blocks */
    bool untried; /* by vg_plan_untried */
    bool blocks;     /* the whole frame's program has Winograd's */
    bool all_direct; /* none of them: no room for them, or to try them, or the trial wants to compare with this */
    size_t max_bytes; /* of the request, or what it stands for */
    size_t least;     /* budget, of the ways that were tried and refused */
    double winograd_steps; /* see plan.h */
    char global_why[512], warning[1024], ways[1024];
    bool quiet; /* no notes now */
    int rows; /* while it is made: of the frame that is cut */
    struct vg_net *bound; /* the net that was laid out last */
    struct vg_how bound_how;
    int bound_width, bound_height;
};

/* vg_plan_make without asking trial.h, which calls it.  direct: no Winograd. */
enum vgk_status vg_plan_untried(struct vg_model *, const struct vgk_backend *, struct vgk_device *,
                                const struct vg_plan_request *, bool direct, struct vg_plan **, struct vgk_error *);
/* plan.c.  Lays out the request's frame as one tile, in f32. */
enum vgk_status vg_plan_whole(struct vg_plan *, const struct vg_plan_request *, enum vg_norm_source, struct vg_grid *,
                              struct vg_program **, struct vgk_error *);
/* Pixels of the frames that a tile's result may have, at most. */
void vg_plan_largest_output(const struct vg_plan *, int size[2]);
/* fit.c.  Lays out a tile of this size; nets are bound once for a size. */
enum vgk_status vg_plan_lay_out(struct vg_plan *, int width, int height, struct vg_how, struct vg_program **,
                                struct vgk_error *);

/* The best way for one tile that fits (`direct`, `stream` and `norms` are given): at once, or in the number of bands that
 * costs least (the fewest that fit, where the backend has no cache to reckon with); in bands that compute again, or keep in
 * host memory, what one pass leaves to another, one picture after the other, the largest first, each by the cheaper of the
 * two; in the end all in host memory.  VGK_ERR_UNSUPPORTED: none fits, or it cannot run in bands.  *least_bytes is lowered to the least that any of them needs. */
enum vgk_status vg_plan_fit(struct vg_plan *, int width, int height, struct vg_how, size_t max_bytes, size_t *least_bytes,
                            struct vg_program **best);

/* Adds to what the plan tells of ways that were not taken. */
void vg_plan_note(struct vg_plan *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* plan_norms.c.  The arena's sections; how large it is. */
size_t vg_plan_arrange(struct vg_plan *);
/* Tiles smaller than the frame. */
bool vg_plan_asks_for_tiles(const struct vg_plan_request *);
/* Decides the mode, and how much memory what is beside `program` takes: *beside. */
enum vgk_status vg_plan_norms_begin(struct vg_plan *, const struct vg_plan_request *, size_t *beside,
                                    struct vgk_error *);
/* What depends on the whole frame, by the program's net. */
void vg_plan_norms_global(struct vg_plan *, const char *why);
/* With `program` and grid: the others, and where they lie.  VGK_ERR_NOMEM tells what would do. */
enum vgk_status vg_plan_norms_end(struct vg_plan *, size_t max_bytes, struct vgk_error *);

/* plan_rescue.c.  The room that the rescue takes of the budget, as far as can be told before the frame is cut: added to
 * *beside. */
enum vgk_status vg_plan_rescue_begin(struct vg_plan *, const struct vg_plan_request *, size_t *beside,
                                     struct vgk_error *);
/* What a way with this program's weights that takes `own` bytes needs with its rescue, less the room that is reckoned with: no
 * more than max_bytes if that can be, else the least.  With how.bands 1 the rescue runs at once, too; it is much faster to tell. */
size_t vg_plan_rescued(struct vg_plan *, const struct vg_program *, size_t own, int width, int height, struct vg_how,
                       size_t max_bytes);
/* With everything else in place: the rescue.  VGK_ERR_NOMEM tells what would do. */
enum vgk_status vg_plan_rescue_end(struct vg_plan *, size_t max_bytes, struct vgk_error *);

#endif
