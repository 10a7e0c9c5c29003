/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* About ten microseconds: longer than the gap between two ops, shorter than anybody would notice as load. */
#define SPINS 400

struct worker {
    struct vgk_pool *pool;
    pthread_t thread;
    int index;
};

/* A worker may take part in a run or sleep through it: the run ends when its blocks are done, not when all have looked.
 * `left` counts the blocks that nobody has claimed.  Who lowers it holds the run open until `done` is raised, so fn, arg
 * and blocks are stable from the claim on, and may be written while left is 0 and all are done. */
struct vgk_pool {
    int size, limit;
    void (*fn)(void *arg, int block, int thread);
    void *arg;
    int blocks;
    atomic_uint runs; /* so many have begun */
    atomic_int left, done;
    atomic_int asleep;   /* workers that wait for `work` */
    atomic_bool waiting; /* the caller waits for `finished` */
    atomic_bool stop;
    pthread_mutex_t mutex;
    pthread_cond_t work, finished;
    struct worker *worker; /* [1, size) */
};

/* Threads at work in all pools of the process.  A worker stays out of a run when as many as there are cores are at it
 * already: on top of them it would be taken away in the middle of a block, and a whole layer would wait for it. */
static atomic_int busy;

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Does blocks until none is left. */
static void take_part(struct vgk_pool *p, int thread)
{
    int left = atomic_load(&p->left);
    while (left > 0) {
        if (!atomic_compare_exchange_weak(&p->left, &left, left - 1))
            continue;
        int blocks = p->blocks;
        p->fn(p->arg, blocks - left, thread);
        if (atomic_fetch_add(&p->done, 1) + 1 == blocks && atomic_load(&p->waiting)) {
            pthread_mutex_lock(&p->mutex);
            pthread_cond_signal(&p->finished);
            pthread_mutex_unlock(&p->mutex);
        }
        left = atomic_load(&p->left);
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct vgk_pool *p = w->pool;
    unsigned seen = 0;
    while (!atomic_load(&p->stop)) {
        for (int i = 0; i < SPINS && atomic_load(&p->runs) == seen && !atomic_load(&p->stop); i++)
            relax();
        if (atomic_load(&p->runs) == seen) {
            pthread_mutex_lock(&p->mutex);
            atomic_fetch_add(&p->asleep, 1);
            while (atomic_load(&p->runs) == seen && !atomic_load(&p->stop))
                pthread_cond_wait(&p->work, &p->mutex);
            atomic_fetch_sub(&p->asleep, 1);
            pthread_mutex_unlock(&p->mutex);
        }
        seen = atomic_load(&p->runs);
        if (atomic_fetch_add(&busy, 1) < p->limit)
            take_part(p, w->index);
        atomic_fetch_sub(&busy, 1);
    }
    return NULL;
}

void vgk_pool_run(struct vgk_pool *p, int blocks, void (*fn)(void *arg, int block, int thread), void *arg)
{
    atomic_fetch_add(&busy, 1);
    if (p->size == 1 || blocks <= 1) {
        for (int i = 0; i < blocks; i++)
            fn(arg, i, 0);
        atomic_fetch_sub(&busy, 1);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    p->blocks = blocks;
    atomic_store(&p->done, 0);
    atomic_store(&p->left, blocks);
    atomic_fetch_add(&p->runs, 1);
    if (atomic_load(&p->asleep)) {
        pthread_mutex_lock(&p->mutex);
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->mutex);
    }
    take_part(p, 0);
    for (int i = 0; i < SPINS && atomic_load(&p->done) < blocks; i++)
        relax();
    if (atomic_load(&p->done) < blocks) {
        pthread_mutex_lock(&p->mutex);
        atomic_store(&p->waiting, true);
        while (atomic_load(&p->done) < blocks)
            pthread_cond_wait(&p->finished, &p->mutex);
        atomic_store(&p->waiting, false);
        pthread_mutex_unlock(&p->mutex);
    }
    atomic_fetch_sub(&busy, 1);
}

/* Ends the first `size` threads and frees everything. */
static void end(struct vgk_pool *p, int size)
{
    pthread_mutex_lock(&p->mutex);
    atomic_store(&p->stop, true);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->mutex);
    for (int i = 1; i < size; i++)
        pthread_join(p->worker[i].thread, NULL);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->finished);
    pthread_mutex_destroy(&p->mutex);
    free(p->worker);
    free(p);
}

struct vgk_pool *vgk_pool_create(int n)
{
    struct vgk_pool *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->size = n < 1 ? 1 : n;
    p->limit = vgk_threads_available();
    p->limit = p->size > p->limit ? p->size : p->limit; /* asked for */
    p->worker = calloc((size_t)p->size, sizeof *p->worker);
    if (!p->worker) {
        free(p);
        return NULL;
    }
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->finished, NULL);
    /* The host program's signals are for its own threads. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int made = 1;
    for (; made < p->size; made++) {
        struct worker *w = &p->worker[made];
        *w = (struct worker){.pool = p, .index = made};
        if (pthread_create(&w->thread, NULL, work, w))
            break;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (made < p->size) {
        end(p, made);
        return NULL;
    }
    return p;
}

void vgk_pool_destroy(struct vgk_pool **pool)
{
    if (*pool)
        end(*pool, (*pool)->size);
    *pool = NULL;
}

int vgk_pool_size(const struct vgk_pool *p) { return p->size; }

/* ---- how many threads ---- */

/* Two numbers of a file, "max" (cgroup v2) being -1; how many were read. */
static int read_numbers(const char *path, long long v[2])
{
    char text[64] = "";
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    if (!strncmp(text, "max", 3)) {
        v[0] = -1;
        return 1;
    }
    return sscanf(text, "%lld %lld", &v[0], &v[1]);
}

static int whole_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return 0;
    long long n = (quota + period - 1) / period;
    return n > INT16_MAX ? 0 : (int)n;
}

/* The limit of one group's folder, 0 = none. */
static int folder_limit(const char *folder)
{
    char path[1100];
    long long v[2] = {0}, period[2] = {0};
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (read_numbers(path, v) == 2)
        return whole_cpus(v[0], v[1]);
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (read_numbers(path, v) < 1)
        return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    return read_numbers(path, period) < 1 ? 0 : whole_cpus(v[0], period[0]);
}

/* A limit holds for all groups below, so every folder from the process's up to the mount counts.  In a container the
 * path may be the host's and only the mount itself exist, which the same walk finds. */
static int walk_limit(const char *mount, const char *group)
{
    char path[1024];
    int best = 0;
    if ((size_t)snprintf(path, sizeof path, "%s%s", mount, group) >= sizeof path)
        return 0;
    for (;;) {
        int n = folder_limit(path);
        if (n && (!best || n < best))
            best = n;
        char *slash = strrchr(path, '/');
        if (strlen(path) <= strlen(mount) || !slash)
            return best;
        *slash = 0;
    }
}

int vgk_threads_cgroup_limit(const char *root)
{
    char path[512], line[1024], mount[600];
    int best = 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    /* hierarchy:controllers:group; version 2 has hierarchy 0 and no controllers */
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        controllers++;
        bool cpu = false;
        char copy[256], *save = NULL;
        snprintf(copy, sizeof copy, "%s", controllers);
        for (char *c = strtok_r(copy, ",", &save); c; c = strtok_r(NULL, ",", &save))
            cpu |= !strcmp(c, "cpu");
        if (*controllers && !cpu)
            continue;
        /* Version 1 is mounted under the controllers' names, with a link for each single one. */
        const char *names[3] = {controllers, "cpu", "unified"};
        for (int i = 0; i < 3; i++) {
            snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s%.64s", root, *names[i] ? "/" : "", names[i]);
            int n = walk_limit(mount, group);
            if (n && (!best || n < best))
                best = n;
        }
    }
    fclose(f);
    return best;
}

int vgk_threads_available(void)
{
    enum { MOST = 8192 };
    cpu_set_t set[MOST / 8 / sizeof(cpu_set_t)];
    int n = 1, limit = vgk_threads_cgroup_limit("");
    if (!sched_getaffinity(0, sizeof set, set))
        n = CPU_COUNT_S(sizeof set, set);
    if (limit && limit < n)
        n = limit;
    return n < 1 ? 1 : n;
}
