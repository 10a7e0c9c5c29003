/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *vgk_status_string(enum vgk_status status)
{
    switch (status) {
    case VGK_OK: return "ok";
    case VGK_ERR_INVALID: return "invalid";
    case VGK_ERR_UNSUPPORTED: return "not supported";
    case VGK_ERR_NOMEM: return "not enough memory";
    case VGK_ERR_FILE: return "file cannot be read";
    case VGK_ERR_DEVICE: return "device failed";
    }
    return "unknown status";
}

enum vgk_status vgk_fail(struct vgk_error *err, enum vgk_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return status;
}

void vgk_error_prefix(struct vgk_error *err, const char *format, ...)
{
    if (!err)
        return;
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - n, ": %s", old);
}

bool vgk_mul(size_t a, size_t b, size_t *r)
{
    size_t v;
    if (__builtin_mul_overflow(a, b, &v))
        return false;
    *r = v;
    return true;
}

bool vgk_add(size_t a, size_t b, size_t *r)
{
    size_t v;
    if (__builtin_add_overflow(a, b, &v))
        return false;
    *r = v;
    return true;
}

/* The size stands in a header of its own in front of the block, so that freeing needs only the pointer. */
struct header {
    size_t bytes;
};

/* Pictures are walked in many rows and channels at a time, which small pages have too few entries in the TLB for. */
static void want_large_pages(char *p, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    enum { LEAST = 4 << 20 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE), before = -(uintptr_t)p % page;
    if (bytes >= LEAST)
        madvise(p + before, (bytes - before) / page * page, MADV_HUGEPAGE); /* a wish: it may fail */
#endif
}

void *vgk_heap_alloc(struct vgk_heap *heap, size_t bytes)
{
    if (bytes > SIZE_MAX - 2 * VGK_ALIGN)
        return NULL;
    bytes = vgk_round_up(bytes ? bytes : 1, VGK_ALIGN);
    size_t now = atomic_fetch_add(&heap->now, bytes) + bytes;
    void *p = NULL;
    if ((heap->limit && now > heap->limit) || posix_memalign(&p, VGK_ALIGN, bytes + VGK_ALIGN)) {
        atomic_fetch_sub(&heap->now, bytes);
        return NULL;
    }
    size_t peak = atomic_load(&heap->peak);
    while (now > peak && !atomic_compare_exchange_weak(&heap->peak, &peak, now))
        ;
    atomic_fetch_add(&heap->blocks, 1);
    want_large_pages(p, bytes + VGK_ALIGN);
    ((struct header *)p)->bytes = bytes;
    return (char *)p + VGK_ALIGN;
}

void vgk_heap_free(struct vgk_heap *heap, void *block)
{
    if (!block)
        return;
    struct header *h = (struct header *)((char *)block - VGK_ALIGN);
    atomic_fetch_sub(&heap->now, h->bytes);
    atomic_fetch_sub(&heap->blocks, 1);
    free(h);
}
