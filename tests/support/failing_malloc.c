/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "failing_malloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
int __real_posix_memalign(void **, size_t, size_t);
void __real_free(void *);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
int __wrap_posix_memalign(void **, size_t, size_t);
void __wrap_free(void *);

static atomic_long left = -1, live; /* left: until one fails; -1 = never */
static atomic_bool failed;

void fm_fail_at(long nth)
{
    atomic_store(&failed, false);
    atomic_store(&left, nth);
}

bool fm_stop(void)
{
    atomic_store(&left, -1);
    return atomic_load(&failed);
}

long fm_live(void) { return atomic_load(&live); }

static bool fails(void)
{
    if (atomic_load(&left) < 0 || (atomic_load(&left) > 0 && atomic_fetch_sub(&left, 1) > 1))
        return false;
    atomic_store(&failed, true);
    errno = ENOMEM;
    return true;
}

static void *counted(void *p)
{
    if (p)
        atomic_fetch_add(&live, 1);
    return p;
}

void *__wrap_malloc(size_t size) { return fails() ? NULL : counted(__real_malloc(size)); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : counted(__real_calloc(n, size)); }

void *__wrap_realloc(void *p, size_t size)
{
    if (fails())
        return NULL;
    void *q = __real_realloc(p, size);
    return p ? q : counted(q);
}

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
    if (fails())
        return ENOMEM;
    int r = __real_posix_memalign(p, align, size);
    if (!r)
        counted(*p);
    return r;
}

void __wrap_free(void *p)
{
    if (p)
        atomic_fetch_sub(&live, 1);
    __real_free(p);
}
