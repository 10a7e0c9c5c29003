/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__ /* gcc */
#define POISONED 1
#elif defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer)
#define POISONED 1
#endif
#endif
/* Under the address sanitizer there is a poisoned gap behind each block, as behind blocks of malloc. */
#ifdef POISONED
#include <sanitizer/asan_interface.h>
#define GAP 16
#else
#define GAP 0
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p))
#endif

#define CHUNK_MIN ((size_t)16 << 10)
#define CHUNK_MAX ((size_t)1 << 20)
#define LARGE ((size_t)64 << 10) /* blocks from here on get a chunk of their own */

struct vg_arena_chunk {
    struct vg_arena_chunk *next;
    size_t size, at; /* with this header, which takes VGK_ALIGN bytes */
};

struct vg_arena_mapping {
    struct vg_arena_mapping *next;
    void *data;
    size_t size;
};

struct vg_arena *vg_arena_new(size_t limit)
{
    struct vg_arena *a = calloc(1, sizeof *a);
    if (a)
        a->limit = limit;
    return a;
}

void vg_arena_free(struct vg_arena *a)
{
    if (!a)
        return;
    for (struct vg_arena_mapping *m = a->mappings; m; m = m->next)
        munmap(m->data, m->size);
    for (struct vg_arena_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(a);
}

enum vgk_status vg_arena_error(const struct vg_arena *a, struct vgk_error *err)
{
    if (a->over_limit)
        return vgk_fail(err, VGK_ERR_INVALID,
                        "needs more than %zu bytes of memory, out of all proportion to the file: not "
                        "a sane model",
                        a->limit);
    return vgk_fail(err, VGK_ERR_NOMEM, "no memory to load it (%zu bytes are taken so far)", a->used);
}

static void *take(struct vg_arena_chunk *c, size_t size, size_t align)
{
    size_t at = vgk_round_up(c->at, align);
    if (at > c->size || size > c->size - at)
        return NULL;
    c->at = at + size;
    ASAN_UNPOISON_MEMORY_REGION((char *)c + at, size - GAP);
    return (char *)c + at;
}

static void *grow(struct vg_arena *a, size_t size, size_t align)
{
    size_t bytes = a->used < CHUNK_MIN ? CHUNK_MIN : a->used > CHUNK_MAX ? CHUNK_MAX : a->used;
    bool large = size >= LARGE;
    bytes = (large || size > bytes ? size : bytes) + VGK_ALIGN;
    void *p = NULL;
    bool over = a->limit && bytes > a->limit - a->used;
    if (over || posix_memalign(&p, VGK_ALIGN, bytes)) {
        a->failed = true;
        a->over_limit = over;
        return NULL;
    }
    a->used += bytes;
    struct vg_arena_chunk *c = p;
    *c = (struct vg_arena_chunk){ .size = bytes, .at = VGK_ALIGN };
    ASAN_POISON_MEMORY_REGION((char *)p + VGK_ALIGN, bytes - VGK_ALIGN);
    if (large && a->chunks) {
        c->next = a->chunks->next;
        a->chunks->next = c;
    } else {
        c->next = a->chunks;
        a->chunks = c;
    }
    return take(c, size, align);
}

static void *allocate(struct vg_arena *a, size_t size, size_t align)
{
    if (size > PTRDIFF_MAX / 2) {
        a->failed = true;
        return NULL;
    }
    size = (size ? size : 1) + GAP;
    void *p = a->chunks && size < LARGE ? take(a->chunks, size, align) : NULL;
    return p ? p : grow(a, size, align);
}

void *vg_arena_alloc(struct vg_arena *a, size_t size) { return allocate(a, size, size < 1024 ? 16 : VGK_ALIGN); }
void *vg_arena_aligned(struct vg_arena *a, size_t size) { return allocate(a, size, VGK_ALIGN); }

char *vg_arena_text(struct vg_arena *arena, const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = vg_arena_alloc(arena, n);
    return copy ? memcpy(copy, text, n) : NULL;
}

void *vg_arena_array(struct vg_arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (!vgk_mul(n ? n : 1, size, &bytes))
        bytes = SIZE_MAX;
    void *p = vg_arena_alloc(a, bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

enum vgk_status vg_map_file(struct vg_arena *a, const char *path, const void **data, size_t *size,
                            struct vgk_error *err)
{
    /* Non-blocking: opening a pipe would wait for somebody to write. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return vgk_fail(err, VGK_ERR_FILE, "cannot open '%s': %s", path, strerror(errno));
    struct stat st;
    enum vgk_status status = VGK_OK;
    struct vg_arena_mapping *m = NULL;
    void *p = NULL;
    if (fstat(fd, &st))
        status = vgk_fail(err, VGK_ERR_FILE, "cannot read '%s': %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        status = vgk_fail(err, VGK_ERR_FILE, "'%s' is %s, not a file", path,
                          S_ISDIR(st.st_mode) ? "a folder" : "a device or pipe");
    else if (a && !(m = vg_arena_array(a, 1, sizeof *m)))
        status = vgk_fail(err, VGK_ERR_NOMEM, "no memory to map '%s'", path);
    else if (st.st_size > 0 && (p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)
        status =
            vgk_fail(err, errno == ENOMEM ? VGK_ERR_NOMEM : VGK_ERR_FILE, "cannot map '%s': %s", path, strerror(errno));
    close(fd);
    if (status != VGK_OK)
        return status;
    *data = p;
    *size = (size_t)st.st_size;
    if (a && p) {
        *m = (struct vg_arena_mapping){ .next = a->mappings, .data = p, .size = *size };
        a->mappings = m;
    }
    return VGK_OK;
}

bool vg_arena_adopt(struct vg_arena *a, void *data, size_t size)
{
    struct vg_arena_mapping *m = vg_arena_array(a, 1, sizeof *m);
    if (!m)
        return false;
    *m = (struct vg_arena_mapping){ .next = a->mappings, .data = data, .size = size };
    a->mappings = m;
    return true;
}

void vg_arena_rest(const struct vg_arena *a)
{
    for (const struct vg_arena_mapping *m = a->mappings; m; m = m->next)
        madvise(m->data, m->size, MADV_DONTNEED);
}
