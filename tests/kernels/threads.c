/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernels/cpu/threads.h"
#include "kit.h"

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct count {
    int seen[1000], thread[16]; /* plain ints: each has one writer at a time */
    int spin, size;
    atomic_int bad;
};

static void mark(void *arg, int block, int thread)
{
    struct count *c = arg;
    c->seen[block]++;
    if (thread < 0 || thread >= c->size)
        atomic_store(&c->bad, 1);
    else
        c->thread[thread]++;
    for (volatile int i = 0; i < c->spin; i++)
        ;
}

/* Each block once, and all done on return, for many sizes in a row (also with pauses in which the workers sleep). */
static void blocks(void)
{
    for (int n = 1; n <= 5; n++) {
        struct vgk_pool *p = vgk_pool_create(n);
        expect(p && vgk_pool_size(p) == n);
        if (!p)
            continue;
        for (int i = 0; i < 1500; i++) {
            struct count c = {.size = n, .spin = i % 7 * 30};
            int size = i % 50 ? i % 37 : 1000, sum = 0;
            if (i % 300 == 299)
                usleep(2000);
            vgk_pool_run(p, size, mark, &c);
            for (int k = 0; k < 1000; k++)
                if (c.seen[k] != (k < size)) {
                    expectf(0, "%d threads, run %d: block %d of %d was done %d times", n, i, k, size, c.seen[k]);
                    break;
                }
            for (int k = 0; k < n; k++)
                sum += c.thread[k];
            expect(sum == size && !c.bad);
        }
        vgk_pool_destroy(&p);
        expect(!p);
        vgk_pool_destroy(&p);
    }
}

/* A thread that is held up in its block leaves the rest to the others. */
static void hold(void *arg, int block, int thread)
{
    atomic_int *others = arg;
    if (block)
        atomic_fetch_add(others, 1);
    for (int i = 0; !block && i < 10000 && atomic_load(others) < 19; i++)
        usleep(1000);
}

static void shared(void)
{
    struct vgk_pool *p = vgk_pool_create(2);
    atomic_int others = 0;
    double t = seconds();
    vgk_pool_run(p, 20, hold, &others);
    expect(atomic_load(&others) == 19 && seconds() - t < 9);
    vgk_pool_destroy(&p);
}

/* Two pools with a thread for every core: while one has them all, the other's caller works alone. */
struct fill {
    atomic_int at_work, go_on;
};

static void fill(void *arg, int block, int thread)
{
    struct fill *f = arg;
    (void)block;
    (void)thread;
    atomic_fetch_add(&f->at_work, 1);
    for (int i = 0; i < 20000 && !atomic_load(&f->go_on); i++)
        usleep(1000);
}

struct filled {
    struct vgk_pool *pool;
    struct fill fill;
};

static void *fill_cores(void *arg)
{
    struct filled *f = arg;
    vgk_pool_run(f->pool, vgk_pool_size(f->pool), fill, &f->fill);
    return NULL;
}

static void two_pools(void)
{
    int cores = vgk_threads_available(), n = cores < 2 ? 2 : cores > 16 ? 0 : cores;
    if (!n) /* struct count has room for 16 */
        return;
    struct filled f = {.pool = vgk_pool_create(n)};
    struct vgk_pool *other = vgk_pool_create(n);
    pthread_t thread;
    expect(f.pool && other && !pthread_create(&thread, NULL, fill_cores, &f));
    for (int i = 0; i < 20000 && atomic_load(&f.fill.at_work) < n; i++)
        usleep(1000);
    expect(atomic_load(&f.fill.at_work) == n);
    struct count c = {.size = n, .spin = 20000};
    vgk_pool_run(other, 1000, mark, &c);
    expectf(c.thread[0] == 1000, "%d of 1000 blocks were the caller's with all cores taken", c.thread[0]);
    atomic_store(&f.fill.go_on, 1);
    pthread_join(thread, NULL);
    struct count again = {.size = n, .spin = 20000};
    for (int i = 0; i < 50 && again.thread[0] == 1000 * i; i++) { /* and not when they are free again */
        memset(again.seen, 0, sizeof again.seen);
        vgk_pool_run(other, 1000, mark, &again);
    }
    int others = 0;
    for (int k = 1; k < n; k++)
        others += again.thread[k];
    expect(others > 0);
    vgk_pool_destroy(&f.pool);
    vgk_pool_destroy(&other);
}

static void put(const char *root, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *s = path + 1; (s = strchr(s, '/')); s++) {
        *s = 0;
        mkdir(path, 0777);
        *s = '/';
    }
    FILE *f = fopen(path, "w");
    expect(f != NULL);
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

static void cgroups(void)
{
    char root[] = "/tmp/vgk-threads-XXXXXX", command[64];
    if (!mkdtemp(root))
        kit_skip("no temporary directory");
    expect(vgk_threads_cgroup_limit(root) == 0);
    put(root, "proc/self/cgroup", "0::/a/b\n");
    expect(vgk_threads_cgroup_limit(root) == 0);
    put(root, "sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    expect(vgk_threads_cgroup_limit(root) == 0);
    put(root, "sys/fs/cgroup/a/b/cpu.max", "250000 100000\n");
    expect(vgk_threads_cgroup_limit(root) == 3);
    put(root, "sys/fs/cgroup/a/cpu.max", "100000 100000\n"); /* the parent's is smaller */
    expect(vgk_threads_cgroup_limit(root) == 1);
    put(root, "proc/self/cgroup", "5:memory:/a\n4:cpuset:/a\n3:cpu,cpuacct:/x\n");
    expect(vgk_threads_cgroup_limit(root) == 0);
    put(root, "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
    put(root, "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
    expect(vgk_threads_cgroup_limit(root) == 0);
    put(root, "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "150000\n");
    expect(vgk_threads_cgroup_limit(root) == 2);
    put(root, "proc/self/cgroup", "3:cpu:/of/the/host\n"); /* a container sees only its mount */
    put(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
    put(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    expect(vgk_threads_cgroup_limit(root) == 4);
    snprintf(command, sizeof command, "rm -r %s", root);
    expect(system(command) == 0);
}

static void available(void)
{
    cpu_set_t all, one;
    expect(!sched_getaffinity(0, sizeof all, &all));
    int n = vgk_threads_available(), first = 0;
    expect(n >= 1 && n <= CPU_COUNT(&all));
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    expect(!sched_setaffinity(0, sizeof one, &one));
    expect(vgk_threads_available() == 1);
    expect(!sched_setaffinity(0, sizeof all, &all));
}

int main(void)
{
    run(blocks);
    run(shared);
    run(two_pools);
    run(cgroups);
    run(available);
    return kit_done();
}
