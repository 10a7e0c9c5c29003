/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A plan: a model bound to a frame size, cut into tiles, every buffer at its offset in one arena.  Immutable; nothing
 * is allocated on the device to make one, and the peak is known before the first frame. */
#ifndef VG_PLAN_H
#define VG_PLAN_H

#include "../kernels/backend.h"
#include "model.h"
#include "precision.h"
#include "tiling.h"

struct vg_plan;

/* Where norms over the whole frame (instance, group), and means over all pixels, have their numbers from.
 * EXACT: each frame its own.
 * PREVIOUS: those of the frames before, smoothed, while its own are measured on the way: one pass in bounded memory.
 *   The first frame, and a frame whose statistics differ much (a cut), are done exactly.  Not with tiles: then EXACT.
 * FROZEN: the same for all frames, so that norms are constants, part of the convolutions: one pass, tiles are exact,
 *   nothing flickers.  From NAME.norms beside the model (`vidgen freeze`), for the parameters' values, mixed where these
 *   lie between.  Without such a file the mean of the first frames, which are done exactly; new values of parameters
 *   then mean to measure again.
 * THUMBNAIL: those of the frame reduced to 512 pixels or less, which runs first.  Tiles are exact.
 * TILE: each tile its own, as EXACT has it where tiles were asked for, but without a warning; and tiles are chosen where
 *   memory is short.
 * AUTO: EXACT; for live streams FROZEN if there is a file, else PREVIOUS.
 * A model that has none of these is EXACT in all modes. */
enum vg_norm_mode { VG_NORM_EXACT, VG_NORM_PREVIOUS, VG_NORM_FROZEN, VG_NORM_THUMBNAIL, VG_NORM_TILE, VG_NORM_AUTO };
const char *vg_norm_mode_name(enum vg_norm_mode); /* "exact", "previous" ... */
#define VG_NORM_MODES 6
#define VG_NORM_FRAMES 8 /* that FROZEN measures when not told how many */

struct vg_plan_request {
    int width, height;        /* of the frame, 1 to 16384 */
    int chroma_x, chroma_y;   /* 2 where the format halves chroma, else 1 (0 reads as 1); what flies has such a format */
    int tile_width, tile_height; /* 0 = the plan's choice; the frame's size or more: one tile, whatever it takes */
    int overlap_x, overlap_y; /* -1 = as the model needs */
    enum vg_norm_mode norm_mode;
    bool live;                /* for AUTO */
    bool flights;             /* tiles in flight (vg_run_start), where the backend, the model and max_bytes allow it: */
    bool in_device;           /* of frames that come in the device's memory, which want no room for that */
    int norm_frames;          /* FROZEN: how many to measure, 0 = VG_NORM_FRAMES */
    bool norm_measure;        /* FROZEN: measure, whatever lies beside the model */
    bool norm_errors;         /* what else than EXACT is compared with it (vg_run_begin), where that fits, too */
    enum vg_precision precision; /* AUTO: FP16 where the backend likes half activations and that fits, else FP32.  BF16 is
                                    refused where the device cannot multiply so */
    int bands;                /* 0 = the plan's choice, 1 = the whole frame at once, more: so many bands; not with tiles */
    int window, hop;          /* frames; 0 = as the model says (8 where it takes any number) */
    int emit;                 /* of an interpolator that is told the time: frames between two; 0 = 1 */
    size_t max_bytes;         /* hard cap, 0 = half of the memory that is free now */
};

/* NULL fields take their defaults.  VGK_ERR_INVALID: an impossible tile or overlap, with one that would do.
 * VGK_ERR_NOMEM: does not fit max_bytes; the text tells the smallest budget that does.  VGK_ERR_UNSUPPORTED: an
 * operator at these shapes.  The plan keeps a reference to the model; backend and device must outlive it. */
enum vgk_status vg_plan_make(struct vg_model *, const struct vgk_backend *, struct vgk_device *,
                             const struct vg_plan_request *, struct vg_plan **, struct vgk_error *);
void vg_plan_free(struct vg_plan **);

struct vg_plan_info {
    const struct vg_grid *grid;
    size_t arena_bytes;       /* all that a run allocates on the device, to the byte */
    size_t weight_bytes, activation_bytes, scratch_bytes, state_bytes; /* what the arena is made of */
    size_t activation_floor;  /* the largest sum of bytes alive at one time: no layout can do with less */
    size_t host_bytes;        /* beside that, memory outside of the device (kernels/backend.h) for what does not fit it: */
    size_t moved_bytes;       /* so many go there and back for a tile */
    int n_spilled, n_recomputed; /* pictures that one pass leaves to another there; ops that run in several passes */
    bool streams;             /* weights stay there and are loaded for each use */
    const char *ways;         /* those that were tried and need more than there is, in words; "" = none */
    int n_ops;                /* calls of kernels for a tile, copies of carried rows included */
    int bands, levels;        /* more than 1 band: the ops advance together down the tile (schedule.h), in so many passes */
    int window, emit, hop, centre; /* in use; see struct vg_summary */
    enum vg_norm_mode norm_mode; /* in use */
    int norm_count;           /* norms and means that it applies to */
    bool norm_stored;         /* FROZEN: by what lies beside the model */
    bool norm_errors;         /* there is room to compare with EXACT */
    const char *global_why;   /* what depends on the whole frame in this mode, in words; NULL = nothing */
    enum vg_precision precision; /* in use */
    int n_products, n_bf16;   /* convolutions, matrix products and attention; those of them that multiply bf16 */
    size_t flight_bytes;      /* of the arena, for frames on their way (vg_run_start); 0 = each tile is waited for */
    bool flight_frames;       /* whole frames go up, the tiles' common rows once: there is room for it */
    size_t staging_bytes;     /* and pinned memory of the host for them, beside host_bytes */
    size_t rescue_bytes;      /* of the arena, for the program in f32 that runs tiles again (run.h); 0 = none */
    bool exact;               /* tiled equals untiled, bit for bit */
    bool direct;              /* convolutions by direct products, as tiles this small need to be exact: the untiled
                                 result that they equal is that of direct products, too (others differ by rounding) */
    double winograd_error_steps; /* the largest difference of an output value that Winograd's blocks make, in 8-bit steps, on
                                 a small picture (trial.h); where it is too large, all products are as written; negative:
                                 no blocks in question, or no room to try them, and none taken */
    bool winograd_refused;    /* it was too large */
    const char *warning;      /* what tiles cost here when not exact, else NULL */
};
const struct vg_plan_info *vg_plan_info(const struct vg_plan *);
const struct vg_model *vg_plan_model(const struct vg_plan *);

/* The whole plan as text for people or as JSON; malloc'ed, NULL without memory. */
char *vg_plan_text(const struct vg_plan *);
char *vg_plan_json(const struct vg_plan *);
/* Every step with its kernel and where its tensors lie in the arena: a line each, or a JSON array. */
char *vg_plan_steps(const struct vg_plan *, bool json);

#endif
