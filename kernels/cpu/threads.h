/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A pool of threads that take blocks of work from a shared counter: a thread that the system takes away for a while
 * costs its block, not everybody's.  Pools of one process share its cores: while as many threads as the process may use
 * are at work, in whatever pool, workers of others leave their blocks to those that are. */
#ifndef VGK_CPU_THREADS_H
#define VGK_CPU_THREADS_H

#include "../base.h"

struct vgk_pool;

/* How many threads this process may use: affinity mask and cgroup limit. */
int vgk_threads_available(void);

/* The part of it that cgroups (version 1 or 2) decide, rounded up to whole CPUs; 0 = no limit.  root stands before
 * /proc and /sys: "" but in tests. */
int vgk_threads_cgroup_limit(const char *root);

/* n threads in all, the caller of vgk_pool_run among them (1 = no thread is made).  NULL without memory or threads. */
struct vgk_pool *vgk_pool_create(int n);
void vgk_pool_destroy(struct vgk_pool **);
int vgk_pool_size(const struct vgk_pool *);

/* Calls fn(arg, block, thread) for every block in [0, blocks), each once, thread in [0, size); returns when all are
 * done.  One caller at a time.  Idle threads sleep (they spin for some microseconds at most). */
void vgk_pool_run(struct vgk_pool *, int blocks, void (*fn)(void *arg, int block, int thread), void *arg);

#endif
