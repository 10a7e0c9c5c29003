/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A bump allocator: blocks are taken one by one and freed all at once.  One thread at a time. */
#ifndef VG_ARENA_H
#define VG_ARENA_H

#include "../kernels/base.h"

struct vg_arena {
    struct vg_arena_chunk *chunks; /* the newest that is not full first */
    struct vg_arena_mapping *mappings;
    size_t used, limit;      /* bytes of all chunks; 0 = no limit */
    bool failed, over_limit; /* an allocation has failed; it was for the limit */
};

struct vg_arena *vg_arena_new(size_t limit); /* NULL without memory */
void vg_arena_free(struct vg_arena *);       /* NULL is fine; unmaps what was mapped */

/* Why an allocation failed: VGK_ERR_NOMEM, or VGK_ERR_INVALID for the limit, which is set against hostile files. */
enum vgk_status vg_arena_error(const struct vg_arena *, struct vgk_error *);

/* Not cleared; aligned to 16, or to VGK_ALIGN when `size` is 1 KiB or more.  NULL: see `failed`. */
void *vg_arena_alloc(struct vg_arena *, size_t size);
void *vg_arena_aligned(struct vg_arena *, size_t size);         /* to VGK_ALIGN, whatever the size */
char *vg_arena_text(struct vg_arena *, const char *text); /* a copy */
void *vg_arena_array(struct vg_arena *, size_t n, size_t size); /* n elements, cleared; one at least is allocated */

/* Maps a regular file read-only; *data is NULL when it is empty.  With an arena it is unmapped by vg_arena_free, else
 * by the caller's munmap.  VGK_ERR_FILE says why: no such file, a folder, ...  A file that somebody shortens while it
 * is mapped ends the process (SIGBUS), as with every mapped file. */
enum vgk_status vg_map_file(struct vg_arena *, const char *path, const void **data, size_t *size, struct vgk_error *);

/* The arena unmaps it when it is freed.  False without memory: the caller still has it. */
bool vg_arena_adopt(struct vg_arena *, void *data, size_t size);

/* Nobody will read what is mapped for some time: its pages need not stay in memory.  They come back when read. */
void vg_arena_rest(const struct vg_arena *);

#endif
