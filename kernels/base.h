/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Status codes, error texts, checked sizes and counted memory: what every file of kernels/ and model/ uses.
 *
 *     struct vgk_error err = {{0}};
 *     if (something(&err) != VGK_OK)
 *         fprintf(stderr, "%s\n", err.text);
 *
 * Nothing here prints, exits or aborts.  All functions are thread-safe unless they say otherwise. */
#ifndef VGK_BASE_H
#define VGK_BASE_H

#ifdef __cplusplus /* .cu files: see sizes only */
#define atomic_size_t size_t
#else
#include <stdatomic.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VGK_ALIGN 64 /* bytes: a cache line, and the widest vector */

enum vgk_status {
    VGK_OK = 0,
    VGK_ERR_INVALID,     /* the caller's or the file's values are wrong */
    VGK_ERR_UNSUPPORTED, /* right, but not done here: how a backend declines */
    VGK_ERR_NOMEM,       /* over the budget, or the system has none */
    VGK_ERR_FILE,        /* cannot be opened or read */
    VGK_ERR_DEVICE,      /* the device or its driver failed */
};

/* A short text for a status, never NULL. */
const char *vgk_status_string(enum vgk_status status);

/* What went wrong, in words for a user: expected, given, remedy.  May be NULL wherever it is taken. */
struct vgk_error {
    char text[1024];
};

/* Writes the text (unless err is NULL) and returns status: `return vgk_fail(err, VGK_ERR_INVALID, "...")`. */
enum vgk_status vgk_fail(struct vgk_error *err, enum vgk_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before a text that is there already. */
void vgk_error_prefix(struct vgk_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* *r = a * b, *r = a + b; false when that does not fit (then *r is untouched). */
bool vgk_mul(size_t a, size_t b, size_t *r);
bool vgk_add(size_t a, size_t b, size_t *r);

static inline size_t vgk_round_up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/* Memory that counts: every block of device-like memory comes from a heap, so that a limit is a hard cap and a
 * prediction can be compared with what was taken.  Zero-initialise; limit 0 = none. */
struct vgk_heap {
    atomic_size_t now, peak; /* bytes as asked for, each block rounded up to VGK_ALIGN */
    atomic_size_t blocks;    /* live blocks */
    size_t limit;
};

/* Bytes aligned to VGK_ALIGN, not cleared; NULL when over the limit or out of memory.  Freed with vgk_heap_free
 * (NULL is fine).  The heap must outlive its blocks. */
void *vgk_heap_alloc(struct vgk_heap *heap, size_t bytes);
void vgk_heap_free(struct vgk_heap *heap, void *block);

#endif
