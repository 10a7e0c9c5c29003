/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program's making, for its files: program.c (what the backend needs, where all lies), program_steps.c. */
#ifndef VG_PROGRAM_INTERNAL_H
#define VG_PROGRAM_INTERNAL_H

#include "memplan.h"
#include "program.h"

struct constants {
    struct vg_place *places;
    int n, capacity;
    size_t bytes;
};

struct maker {
    struct vg_net *net;
    const struct vgk_backend *backend;
    struct vgk_device *device;
    const struct vg_program_request *request;
    struct vg_program *p;
    struct vg_schedule *s;
    struct constants constants;
    struct vgk_need *need;         /* of each op, whole */
    struct vg_blocks *blocks;      /* of each op */
    struct vg_place (*place)[VG_MAX_OPERANDS]; /* of each op's constants */
    size_t *packed;                /* offsets */
    int *share;                    /* for each buffer: the one that it is computed in place of, -1 = none */
    bool *persistent;
    bool *packed_yet; /* for each op */
    int busiest;      /* position */
    struct vg_block *windows, *carries, *scratches, *loads; /* for each buffer, each buffer, each position twice */
    size_t *host;     /* for each buffer: where it is spilled to */
    int *loaded;      /* for each op: the call that its weights are loaded for already */
    struct vgk_error *err;
};

/* program.c */
/* Bits of those of an op's operands that are constants. */
unsigned vg_program_constants(const struct vg_net *, const struct vg_operand *in, int n_in);
/* The buffer that b is computed in place of, and so on; b itself if there is none. */
int vg_program_root(const struct maker *, int b);

/* program_steps.c */
/* Where an operand that is no constant lies. */
void vg_program_place(const struct maker *, const struct vg_operand *, struct vg_place *);
/* The call's op for its rows. */
void vg_program_restrict(const struct maker *, const struct vg_call *, struct vgk_op *, struct vg_operand *in,
                         struct vg_operand *out);
enum vgk_status vg_program_steps(struct maker *);

#endif
