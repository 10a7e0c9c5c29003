/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One block at a time, its threads as fibers that run until they reach a barrier or a warp operation.  A fiber keeps
 * starting fresh threads as long as none of them waits, so a kernel without barriers is a plain loop.
 *
 * Reported, by an end of the process with a message: barriers that not all threads reach, or at different lines; warp
 * operations whose masks differ, or name lanes that have exited or do not exist; shuffles from outside of the mask. */
#include "standin.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

uint3 threadIdx, blockIdx, blockDim, gridDim;

extern "C" {
extern char __start_cudashared[] __attribute__((weak)), __stop_cudashared[] __attribute__((weak));
void standin_swap(void **save, void *to);
}

#if defined(__x86_64__)
asm(".text\n"
    ".globl standin_swap\n"
    ".hidden standin_swap\n"
    ".type standin_swap,@function\n"
    "standin_swap:\n"
    " pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
    " movq %rsp,(%rdi)\n movq %rsi,%rsp\n"
    " popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret\n"
    ".size standin_swap,.-standin_swap\n");
#else
#error "the stand-in needs a switch of stacks for this processor"
#endif

namespace standin {

enum { MAX_THREADS = 1024, QUEUE = 2 * MAX_THREADS };
enum state { FRESH, RUNNING, AT_WARP, AT_BARRIER, DONE };
static const size_t stack_bytes = 256 << 10;

static struct {
    void *sp;
    char *stack;
    int thread;
} fibers[MAX_THREADS];
static int n_fibers, idle[MAX_THREADS], n_idle, current;
static void *scheduler_sp;
#ifdef __SANITIZE_ADDRESS__
static void *scheduler_fake;
static const void *scheduler_bottom;
static size_t scheduler_size;
#endif

static const char *kernel_name = "?";
static std::function<void()> *kernel_body;
static int n_threads, n_started, n_done;
static int order[MAX_THREADS], fiber_of[MAX_THREADS], line_of[MAX_THREADS];
static enum state states[MAX_THREADS];
static int ready[QUEUE];
static unsigned ready_head, ready_tail;
static unsigned arrived[32], exited[32], existing[32], masks[32][32];
static uint64_t slots[32][2][32];
static unsigned char phase[MAX_THREADS];
static int at_barrier;

static uint64_t random_state;
static unsigned next_random()
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33);
}

void fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "standin: kernel %s block (%u,%u,%u) thread (%u,%u,%u): ", kernel_name, blockIdx.x, blockIdx.y,
            blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    abort();
}

static int self() { return fibers[current].thread; }
int lane() { return self() & 31; }

static void become(int thread)
{
    threadIdx.x = thread % blockDim.x;
    threadIdx.y = thread / blockDim.x % blockDim.y;
    threadIdx.z = thread / (blockDim.x * blockDim.y);
}

static void leave_fiber()
{
    int f = current;
#ifdef __SANITIZE_ADDRESS__
    void *fake;
    __sanitizer_start_switch_fiber(&fake, scheduler_bottom, scheduler_size);
#endif
    standin_swap(&fibers[f].sp, scheduler_sp);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake, &scheduler_bottom, &scheduler_size);
#endif
}

static void wait_here()
{
    leave_fiber();
    become(self());
}

static void wake(int thread)
{
    states[thread] = RUNNING;
    ready[ready_tail++ % QUEUE] = thread;
}

void warp_exchange(unsigned mask, uint64_t mine, uint64_t out[32])
{
    int t = self(), w = t / 32, l = t % 32, p = phase[t];
    phase[t] ^= 1;
    if (!(mask >> l & 1))
        fail("warp operation: lane %d is not in its own mask %08x", l, mask);
    if (mask & (exited[w] | ~existing[w]))
        fail("warp operation: mask %08x names lanes that have exited or do not exist", mask);
    slots[w][p][l] = mine;
    masks[w][l] = mask;
    arrived[w] |= 1u << l;
    for (int i = 0; i < 32; i++)
        if ((arrived[w] >> i & 1) && (masks[w][i] & mask) && masks[w][i] != mask)
            fail("warp operation: masks differ (%08x, and lane %d's %08x)", mask, i, masks[w][i]);
    if ((arrived[w] & mask) == mask) {
        unsigned all = arrived[w];
        arrived[w] = 0;
        for (int i = 0; i < 32; i++)
            if ((all >> i & 1) && i != l)
                wake(w * 32 + i);
    } else {
        states[t] = AT_WARP;
        wait_here();
    }
    memcpy(out, slots[w][p], sizeof slots[w][p]);
}

static void open_barrier(int except)
{
    at_barrier = 0;
    for (int i = 0; i < n_threads; i++)
        if (states[order[i]] == AT_BARRIER && order[i] != except)
            wake(order[i]);
}

void sync_threads(int line)
{
    int t = self();
    line_of[t] = line;
    for (int i = 0; i < n_threads && at_barrier; i++)
        if (states[i] == AT_BARRIER) {
            if (line_of[i] != line)
                fail("__syncthreads in line %d while thread %d waits in line %d", line, i, line_of[i]);
            break;
        }
    at_barrier++;
    if (at_barrier == n_threads - n_done) {
        open_barrier(t);
    } else {
        states[t] = AT_BARRIER;
        wait_here();
    }
}

static void thread_ends(int t)
{
    int w = t / 32;
    states[t] = DONE;
    exited[w] |= 1u << t % 32;
    n_done++;
    for (int i = 0; i < 32; i++)
        if ((arrived[w] >> i & 1) && (masks[w][i] >> t % 32 & 1))
            fail("a thread exits while lane %d waits for it at a warp operation (mask %08x)", i, masks[w][i]);
    if (at_barrier && at_barrier == n_threads - n_done)
        open_barrier(-1);
}

static void fiber_main()
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_bottom, &scheduler_size);
#endif
    for (;;) {
        while (n_started < n_threads) {
            int t = order[n_started++];
            fibers[current].thread = t;
            fiber_of[t] = current;
            states[t] = RUNNING;
            become(t);
            (*kernel_body)();
            thread_ends(t);
        }
        idle[n_idle++] = current;
        leave_fiber();
    }
}

static void enter_fiber(int f)
{
    current = f;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&scheduler_fake, fibers[f].stack, stack_bytes);
#endif
    standin_swap(&scheduler_sp, fibers[f].sp);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(scheduler_fake, nullptr, nullptr);
#endif
}

static int idle_fiber()
{
    if (n_idle)
        return idle[--n_idle];
    int f = n_fibers++;
    void *stack = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        fail("no memory for a stack");
    fibers[f].stack = (char *)stack;
    void **sp = (void **)((char *)stack + stack_bytes);
    *--sp = nullptr; /* so that rsp is 8 mod 16 at the entry */
    *--sp = (void *)fiber_main;
    for (int i = 0; i < 6; i++)
        *--sp = nullptr;
    fibers[f].sp = sp;
    return f;
}

__attribute__((no_sanitize("address"))) static void fill_shared()
{
    for (volatile char *p = __start_cudashared; p < __stop_cudashared; p++)
        *p = (char)0xff;
}

static void shuffle_order(int seed)
{
    for (int i = 0; i < n_threads; i++)
        order[i] = seed == 1 ? n_threads - 1 - i : i;
    if (seed <= 1)
        return;
    for (int i = n_threads - 1; i > 0; i--) {
        int j = (int)(next_random() % (unsigned)(i + 1)), x = order[i];
        order[i] = order[j];
        order[j] = x;
    }
}

static void run_block(int seed)
{
    n_threads = (int)(blockDim.x * blockDim.y * blockDim.z);
    n_started = n_done = at_barrier = 0;
    ready_head = ready_tail = 0;
    for (int w = 0; w < 32; w++)
        arrived[w] = exited[w] = existing[w] = 0;
    for (int t = 0; t < n_threads; t++) {
        existing[t / 32] |= 1u << t % 32;
        states[t] = FRESH;
        phase[t] = 0;
    }
    shuffle_order(seed);
    if (__start_cudashared)
        fill_shared();
    while (n_done < n_threads) {
        if (ready_head != ready_tail) {
            if (seed > 1) {
                unsigned j = ready_head + next_random() % (ready_tail - ready_head);
                int x = ready[ready_head % QUEUE];
                ready[ready_head % QUEUE] = ready[j % QUEUE];
                ready[j % QUEUE] = x;
            }
            enter_fiber(fiber_of[ready[ready_head++ % QUEUE]]);
        } else if (n_started < n_threads) {
            enter_fiber(idle_fiber());
        } else {
            fail("deadlock: %d of %d threads at __syncthreads, %d exited", at_barrier, n_threads, n_done);
        }
    }
}

void run_grid(const char *name, dim3 grid, dim3 block, int seed, std::function<void()> &body)
{
    kernel_name = name;
    kernel_body = &body;
    if (seed > 1 && !random_state)
        random_state = (uint64_t)seed;
    gridDim = {grid.x, grid.y, grid.z};
    blockDim = {block.x, block.y, block.z};
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
                run_block(seed);
}

}
