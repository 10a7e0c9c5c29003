/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program: a net on a schedule with every buffer at its offset in one arena.
 *     weights (packed, and constants as they are) | persistent (parameters and what follows from them alone) |
 *     activations: windows, carried rows, the frame's staging, scratch, by lifetime | states (states.h)
 * Where that is too much, host memory holds a part of it: pictures that one level leaves to a later one (`spill`), and
 * packed weights (`stream`), which are then loaded for each use, while the op before runs. */
#ifndef VG_PROGRAM_H
#define VG_PROGRAM_H

#include "analyse.h"
#include "schedule.h"

/* Where a tensor of a step lies. */
struct vg_place {
    struct vgk_tensor t;  /* data is NULL */
    size_t offset;        /* bytes in the arena; SIZE_MAX: nowhere, the kernel has its packed copy */
    const void *constant; /* the values to put there once, dense in t's order, or NULL */
    bool none;            /* left out */
};

struct vg_step {
    enum vg_call_type type;
    struct vgk_op op; /* kind, parameters, n_in; no tensors */
    const char *node;
    int what;           /* READ, WRITE: which of the net's inputs, outputs; */
    int64_t begin, end; /* rows of it */
    struct vg_place in[VG_MAX_OPERANDS], out; /* SAVE, RESTORE: bytes from in[0] to out */
    size_t packed, packed_offset;   /* bytes of packed constants, where; SPILL, FETCH, LOAD: bytes to move, where */
    size_t host_offset;             /* the other end in host memory; ops: where their packed constants stay, SIZE_MAX:
                                       in the arena */
    bool packs;                     /* the first step of its op: packs for the others */
    size_t scratch, scratch_offset;
};

struct vg_program {
    struct vg_net *net;
    int n_steps, n_prologue; /* the first n_prologue depend on parameters only: they run when one changes */
    int bands, levels;
    struct vg_step *steps;
    struct vg_place *inputs, *outputs; /* of the net; the frame's in a band schedule are windows, see the steps */
    struct vg_memory_places {
        struct vg_place now, kept; /* f32; none where the net has none */
    } *memories;                   /* of the net's n_memories */
    size_t packed;  /* the first part of weights: what kernels have in their own order */
    size_t weights, persistent, activations, states; /* sections of the arena, in this order, each aligned */
    size_t host;    /* bytes of host memory */
    size_t moved;   /* bytes to and from it for a frame */
    int n_recomputed, n_spilled; /* ops that run more than once, buffers */
    bool streams;
    size_t scratch_peak, floor;
    int n_products, n_bf16; /* convolutions, matrix products and attention; with operands in bf16 */
    bool blocks;  /* an op computes in blocks (need.lattice): not every product as written */
    double work; /* products, those in Winograd blocks at what they cost, and moved bytes at theirs: to compare ways by */
    struct vg_analysis exact; /* with the blocks of the kernels that were chosen; not for output -1 */
    size_t largest_kept; /* bytes of the largest buffer that is stored across levels when most is, though it could be made
                            again */
    int largest_kept_buffer; /* -1 = none */
};

struct vg_program_request {
    int output;            /* of the net, the picture; -1 = no analysis */
    int bands;             /* 0 or 1 = whole */
    const bool *recompute; /* see schedule.h; NULL = none */
    size_t states;         /* bytes */
    const bool *spill;     /* see schedule.h; NULL = none */
    bool stream;           /* packed weights stay in host memory */
    bool measure;          /* bytes and work only, no steps and no analysis: to choose a way by; not for a plan */
    int rows;              /* of the frame that the net's is a tile of, or all of: tiles have the frame's blocks */
};

/* Takes the net over on success.  VGK_ERR_UNSUPPORTED: an op that the backend declines, or a net that cannot run in
 * bands. */
enum vgk_status vg_program_make(struct vg_net *, const struct vgk_backend *, struct vgk_device *,
                                const struct vg_program_request *, struct vg_program **, struct vgk_error *);
void vg_program_free(struct vg_program **); /* and its net */

static inline size_t vg_program_bytes(const struct vg_program *p)
{
    return p->weights + p->persistent + p->activations + p->states;
}

#endif
