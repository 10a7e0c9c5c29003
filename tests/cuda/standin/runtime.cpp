/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A stand-in for libcudart: host memory as device memory, streams as queues.  Work runs as late as it may, and in a seeded
 * order between streams, so that a missing wait shows as wrong data instead of passing by luck.  Device memory is filled
 * with 0xff (NaN) when it is taken, and poisoned for AddressSanitizer except inside kernels and copies: a host that reads
 * it is found.  Copies check that addresses are of the kind that they are said to be.  Streams and events that are destroyed
 * do what they were given all the same, later; pinned memory that this still uses must not be freed.
 *
 * A stream can be captured: what it is given is kept in a graph and not run, and calls that would have to wait, allocate or
 * read pageable memory break the capture, as they do: those of the thread that captures, or of any, as the mode says.
 *
 * Threads may call at the same time; one lock makes them take turns. */
#include "standin.h"

#include "contexts.h"
#include "counters.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

namespace standin {

void run_grid(const char *name, dim3 grid, dim3 block, int seed, std::function<void()> &body);

/* Recursive, and whoever comes first has it first: a thread that always has work would keep others out for good. */
class fair_mutex {
public:
    void lock()
    {
        std::unique_lock<std::mutex> guard(mutex);
        if (depth && owner == std::this_thread::get_id()) {
            depth++;
            return;
        }
        unsigned long mine = next++;
        turn.wait(guard, [&] { return mine == serving && !depth; });
        owner = std::this_thread::get_id();
        depth = 1;
    }

    void unlock()
    {
        std::lock_guard<std::mutex> guard(mutex);
        if (--depth)
            return;
        serving++;
        turn.notify_all();
    }

private:
    std::mutex mutex;
    std::condition_variable turn;
    std::thread::id owner;
    unsigned long next = 0, serving = 0;
    int depth = 0;
};

struct event {
    unsigned long recorded = 0, reached = 0;
};

struct work {
    std::function<void()> body;
    event *wait, *record;
    unsigned long generation;
    const char *pinned; /* that it copies from or to, or NULL */
};

/* What a stream was given while it was captured. */
struct graph {
    std::vector<std::function<void()>> nodes;
    bool broken = false;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    std::thread::id by = std::this_thread::get_id();
};

struct stream {
    std::deque<work> queue;
    void *context;
    graph *capture;
    bool destroyed; /* but for what is in the queue */
};

struct block {
    size_t bytes;
    void *context;
};

static fair_mutex lock;
static std::set<stream *> streams;
static std::set<event *> events, past_events; /* those that were destroyed may still be waited for */
static std::set<graph *> graphs; /* and executable ones */
static int capturing; /* streams */
static long n_launches, n_uploaded, n_downloaded;
static std::map<char *, block> device_blocks, pinned_blocks;
static thread_local void *context; /* the current one; NULL: the primary */
static size_t device_bytes;
static cudaError_t last_error;
static int open_depth;
static long calls;

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atol(text) : otherwise;
}

static int devices() { return (int)setting("VIDGEN_STANDIN_DEVICES", 1); }
static int seed() { return (int)setting("VIDGEN_STANDIN_SEED", 0); }

static unsigned next_random()
{
    static uint64_t state;
    if (!state)
        state = (uint64_t)seed() * 2 + 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33);
}

static cudaError_t done(cudaError_t e)
{
    if (e != cudaSuccess)
        last_error = e;
    return e;
}

static void leave(const work &w)
{
    if (w.record && w.record->reached < w.generation)
        w.record->reached = w.generation;
}

static bool queued(const event *e)
{
    for (const stream *s : streams)
        for (const work &w : s->queue)
            if (w.wait == e || w.record == e)
                return true;
    return false;
}

/* Events that were destroyed, when nothing waits for them any more. */
static void drop_events()
{
    for (auto i = past_events.begin(); i != past_events.end();)
        if (queued(*i)) {
            ++i;
        } else {
            delete *i;
            i = past_events.erase(i);
        }
}

static void drop_destroyed(stream *s)
{
    if (!s->destroyed || !s->queue.empty())
        return;
    streams.erase(s);
    delete s;
    drop_events();
}

/* A call of the runtime: counted, and true when the device is lost.  It then touches no memory any more. */
static bool call()
{
    long fail_at = setting("VIDGEN_STANDIN_FAIL", 0);
    calls = fail_at ? calls + 1 : 0;
    if (!fail_at || calls < fail_at)
        return false;
    for (auto i = streams.begin(); i != streams.end();) {
        stream *s = *i++;
        for (const work &w : s->queue)
            leave(w);
        s->queue.clear();
        drop_destroyed(s);
    }
    return true;
}

/* An allocation: counted, and true for the one that there is no memory for. */
static bool refused()
{
    static long allocations;
    long at = setting("VIDGEN_STANDIN_NOMEM", 0);
    allocations = at ? allocations + 1 : 0;
    return at && allocations == at;
}

#define CALL() \
    std::lock_guard<fair_mutex> guard(lock); \
    if (call()) \
        return done(cudaErrorDevicesUnavailable)

/* For work of a context: its own. */
static void open_memory(void *of)
{
    if (!open_depth++)
        for (auto &b : device_blocks)
            if (b.second.context == of)
                ASAN_UNPOISON_MEMORY_REGION(b.first, b.second.bytes);
}

static void close_memory()
{
    if (!--open_depth)
        for (auto &b : device_blocks)
            ASAN_POISON_MEMORY_REGION(b.first, b.second.bytes);
}

static const block *within(std::map<char *, block> &blocks, const void *p, size_t n)
{
    auto i = blocks.upper_bound((char *)p);
    if (i == blocks.begin())
        return nullptr;
    --i;
    return (char *)p + n <= i->first + i->second.bytes ? &i->second : nullptr;
}

static bool runnable(stream *s)
{
    return !s->queue.empty() && !(s->queue.front().wait && s->queue.front().wait->reached < s->queue.front().generation);
}

static void run_one(stream *s)
{
    work w = std::move(s->queue.front());
    s->queue.pop_front();
    if (w.body) {
        open_memory(s->context);
        w.body();
        close_memory();
    }
    leave(w);
    drop_destroyed(s);
}

/* Of all streams that can, the same one several times in a row mostly: streams that run far ahead of the others find more
 * missing waits than those that take turns. */
static bool run_any()
{
    static stream *last;
    std::vector<stream *> can;
    for (stream *s : streams)
        if (runnable(s))
            can.push_back(s);
    if (can.empty())
        return false;
    bool goes_on = std::find(can.begin(), can.end(), last) != can.end() && next_random() % 8;
    if (!goes_on)
        last = can[next_random() % can.size()];
    run_one(last);
    return true;
}

static void run_until(std::function<bool()> reached)
{
    while (!reached())
        if (!run_any())
            fail("streams are deadlocked: a wait for an event that nobody records");
}

static stream *known(cudaStream_t s)
{
    if (!streams.count((stream *)s) || ((stream *)s)->destroyed)
        fail("a stream that does not exist (the default stream is not used)");
    return (stream *)s;
}

static event *known(cudaEvent_t e)
{
    if (!events.count((event *)e))
        fail("an event that does not exist");
    return (event *)e;
}

static void push(cudaStream_t s, std::function<void()> body, const void *pinned = nullptr)
{
    stream *to = known(s);
    if (to->capture)
        to->capture->nodes.push_back(std::move(body));
    else
        to->queue.push_back({std::move(body), nullptr, nullptr, 0, (const char *)pinned});
}

/* Of this thread, or of one that lets nobody wait: what cudaStreamCaptureMode is about. */
static bool forbids_waits(const graph *g)
{
    return g->mode == cudaStreamCaptureModeGlobal ||
           (g->mode == cudaStreamCaptureModeThreadLocal && g->by == std::this_thread::get_id());
}

/* A call that no capture survives, on this stream or (NULL) on any that forbids it. */
static bool breaks_capture(cudaStream_t s)
{
    bool breaks = false;
    for (stream *each : streams)
        if (each->capture && (s ? each == (stream *)s : forbids_waits(each->capture)))
            breaks = each->capture->broken = true;
    return breaks;
}

#define NOT_CAPTURED(s) \
    if (capturing && breaks_capture(s)) \
    return done(cudaErrorStreamCaptureUnsupported)

void launch(const char *name, dim3 grid, dim3 block, size_t shared, cudaStream_t s, std::function<void()> body)
{
    std::lock_guard<fair_mutex> guard(lock);
    if (call()) {
        done(cudaErrorDevicesUnavailable);
        return;
    }
    if (known(s)->context != context) {
        done(cudaErrorInvalidResourceHandle);
        return;
    }
    unsigned long n = (unsigned long)block.x * block.y * block.z;
    if (!n || n > 1024 || block.z > 64 || !grid.x || !grid.y || !grid.z || grid.x > 2147483647u || grid.y > 65535 ||
        grid.z > 65535 || shared > 48 * 1024) {
        fprintf(stderr, "standin: %s: bad launch (%u,%u,%u) x (%u,%u,%u)\n", name, grid.x, grid.y, grid.z, block.x, block.y,
                block.z);
        done(cudaErrorInvalidConfiguration);
        return;
    }
    n_launches++;
    push(s, [=]() mutable { run_grid(name, grid, block, seed(), body); });
}

/* Rows of `width` bytes.  Pageable memory: what goes up is taken now, what comes down is waited for. */
static cudaError_t copy(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width, size_t rows,
                        cudaMemcpyKind kind, cudaStream_t s)
{
    if (!width || !rows)
        return cudaSuccess;
    size_t to_bytes = to_pitch * (rows - 1) + width, from_bytes = from_pitch * (rows - 1) + width;
    bool up = kind == cudaMemcpyHostToDevice, down = kind == cudaMemcpyDeviceToHost;
    const block *to_block = within(device_blocks, to, to_bytes), *from_block = within(device_blocks, from, from_bytes);
    if (!to_block != down || !from_block != up || to_pitch < width || from_pitch < width)
        return done(cudaErrorInvalidValue);
    if (known(s)->context != context || (to_block && to_block->context != context) ||
        (from_block && from_block->context != context))
        return done(cudaErrorInvalidResourceHandle);
    n_uploaded += up ? (long)(width * rows) : 0;
    n_downloaded += down ? (long)(width * rows) : 0;
    if ((up && !within(pinned_blocks, from, from_bytes)) || (down && !within(pinned_blocks, to, to_bytes)))
        NOT_CAPTURED(s);
    if (up && !within(pinned_blocks, from, from_bytes)) {
        std::vector<char> staged(width * rows);
        for (size_t y = 0; y < rows; y++)
            memcpy(&staged[y * width], from + y * from_pitch, width);
        push(s, [=] {
            for (size_t y = 0; y < rows; y++)
                memcpy(to + y * to_pitch, &staged[y * width], width);
        });
        return cudaSuccess;
    }
    push(s, [=] {
        for (size_t y = 0; y < rows; y++)
            memcpy(to + y * to_pitch, from + y * from_pitch, width);
    }, up ? from : down ? to : nullptr);
    if (down && !within(pinned_blocks, to, to_bytes))
        run_until([&] { return known(s)->queue.empty(); });
    return cudaSuccess;
}

}

using namespace standin;

extern "C" {

void standin_use_context(void *c) { context = c; }

int standin_context_use(void *c)
{
    std::lock_guard<fair_mutex> guard(lock);
    int n = 0;
    for (auto &b : device_blocks)
        n += b.second.context == c;
    for (stream *s : streams)
        n += s->context == c;
    return n;
}

cudaError_t CUDARTAPI cudaDriverGetVersion(int *v)
{
    *v = (int)setting("VIDGEN_STANDIN_DRIVER", CUDART_VERSION);
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *v)
{
    *v = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetDeviceCount(int *n)
{
    CALL();
    int driver;
    cudaDriverGetVersion(&driver);
    *n = driver ? devices() : 0;
    return done(driver < CUDART_VERSION / 1000 * 1000 ? cudaErrorInsufficientDriver : cudaSuccess);
}

cudaError_t CUDARTAPI cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    CALL();
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "stand-in");
    p->major = 8;
    p->minor = 6;
    p->totalGlobalMem = (size_t)setting("VIDGEN_STANDIN_MEMORY", 2l << 30);
    return done(device < devices() ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t CUDARTAPI cudaSetDevice(int device)
{
    CALL();
    context = nullptr;
    return done(device < devices() ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t CUDARTAPI cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    CALL();
    *total = (size_t)setting("VIDGEN_STANDIN_MEMORY", 2l << 30);
    *free_bytes = *total > device_bytes ? *total - device_bytes : 0;
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMalloc(void **p, size_t n)
{
    CALL();
    NOT_CAPTURED(nullptr);
    char *block = nullptr;
    if (refused() || device_bytes + n > (size_t)setting("VIDGEN_STANDIN_MEMORY", 2l << 30) ||
        posix_memalign((void **)&block, 256, n ? n : 1))
        return done(cudaErrorMemoryAllocation);
    memset(block, 0xff, n);
    device_blocks[block] = {n, context};
    device_bytes += n;
    ASAN_POISON_MEMORY_REGION(block, n);
    *p = block;
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaFree(void *p)
{
    std::lock_guard<fair_mutex> guard(lock); /* works on a lost device, as everything that gives back */
    auto i = device_blocks.find((char *)p);
    if (!p)
        return cudaSuccess;
    if (i == device_blocks.end())
        fail("a block is freed that is no device memory");
    if (i->second.context != context)
        fail("a block is freed in another context than its own");
    while (run_any()) /* it waits for everything */
        ;
    ASAN_UNPOISON_MEMORY_REGION(i->first, i->second.bytes);
    device_bytes -= i->second.bytes;
    device_blocks.erase(i);
    free(p);
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaHostAlloc(void **p, size_t n, unsigned flags)
{
    CALL();
    NOT_CAPTURED(nullptr);
    if (refused() || posix_memalign(p, 256, n ? n : 1))
        return done(cudaErrorMemoryAllocation);
    pinned_blocks[(char *)*p] = {n, context};
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMallocHost(void **p, size_t n) { return cudaHostAlloc(p, n, 0); }

cudaError_t CUDARTAPI cudaFreeHost(void *p)
{
    std::lock_guard<fair_mutex> guard(lock);
    auto i = pinned_blocks.find((char *)p);
    if (p && i == pinned_blocks.end())
        fail("a block is freed that is no pinned memory");
    for (stream *s : streams)
        for (const work &w : s->queue)
            if (p && w.pinned >= (char *)p && w.pinned < (char *)p + i->second.bytes)
                fail("pinned memory is freed that a copy which was not waited for uses");
    if (p)
        pinned_blocks.erase(i);
    free(p);
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind kind, cudaStream_t s)
{
    CALL();
    return copy((char *)to, n, (const char *)from, n, n, 1, kind, s);
}

/* Waits for everything, as the default stream does. */
cudaError_t CUDARTAPI cudaMemcpy(void *to, const void *from, size_t n, cudaMemcpyKind kind)
{
    CALL();
    NOT_CAPTURED(nullptr);
    while (run_any())
        ;
    stream once = {{}, context, nullptr, false};
    streams.insert(&once);
    cudaError_t e = copy((char *)to, n, (const char *)from, n, n, 1, kind, (cudaStream_t)&once);
    run_until([&] { return once.queue.empty(); });
    streams.erase(&once);
    return e;
}

cudaError_t CUDARTAPI cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                        size_t rows, cudaMemcpyKind kind, cudaStream_t s)
{
    CALL();
    return copy((char *)to, to_pitch, (const char *)from, from_pitch, width, rows, kind, s);
}

cudaError_t CUDARTAPI cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t s)
{
    CALL();
    const block *b = within(device_blocks, p, n);
    if (!b)
        return done(cudaErrorInvalidValue);
    if (b->context != context || known(s)->context != context)
        return done(cudaErrorInvalidResourceHandle);
    push(s, [=] { memset(p, value, n); });
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
    CALL();
    stream *made = new stream{{}, context, nullptr, false};
    streams.insert(made);
    *s = (cudaStream_t)made;
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t s)
{
    CALL();
    NOT_CAPTURED(s);
    run_until([&] { return known(s)->queue.empty(); });
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t s)
{
    std::lock_guard<fair_mutex> guard(lock);
    known(s)->destroyed = true;
    drop_destroyed((stream *)s);
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
    CALL();
    event *made = new event;
    events.insert(made);
    *e = (cudaEvent_t)made;
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    CALL();
    NOT_CAPTURED(s);
    event *v = known(e);
    known(s)->queue.push_back({nullptr, nullptr, v, ++v->recorded, nullptr});
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
    CALL();
    NOT_CAPTURED(s);
    event *v = known(e);
    known(s)->queue.push_back({nullptr, v, nullptr, v->recorded, nullptr});
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t e)
{
    CALL();
    event *v = known(e);
    unsigned long generation = v->recorded;
    run_until([&] { return v->reached >= generation; });
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t e)
{
    std::lock_guard<fair_mutex> guard(lock);
    event *v = known(e);
    events.erase(v);
    past_events.insert(v);
    drop_events();
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode)
{
    CALL();
    if (known(s)->capture)
        return done(cudaErrorIllegalState);
    known(s)->capture = new graph();
    known(s)->capture->mode = mode;
    capturing++;
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
    std::lock_guard<fair_mutex> guard(lock);
    graph *made = known(s)->capture;
    *g = nullptr;
    if (!made)
        return done(cudaErrorIllegalState);
    known(s)->capture = nullptr; /* it ends in any case */
    capturing--;
    bool lost = call();
    if (lost || made->broken) {
        delete made;
        return done(lost ? cudaErrorDevicesUnavailable : cudaErrorStreamCaptureInvalidated);
    }
    graphs.insert(made);
    *g = (cudaGraph_t)made;
    return cudaSuccess;
}

static graph *known_graph(void *g)
{
    if (!graphs.count((graph *)g))
        fail("a graph that does not exist");
    return (graph *)g;
}

cudaError_t CUDARTAPI cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long flags)
{
    CALL();
    graph *made = new graph(*known_graph(g));
    graphs.insert(made);
    *exec = (cudaGraphExec_t)made;
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s)
{
    CALL();
    NOT_CAPTURED(s);
    n_launches++;
    for (const std::function<void()> &node : known_graph(exec)->nodes)
        push(s, node);
    return cudaSuccess;
}

static cudaError_t drop_graph(void *g)
{
    std::lock_guard<fair_mutex> guard(lock);
    delete known_graph(g);
    graphs.erase((graph *)g);
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t g) { return drop_graph(g); }
cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t exec) { return drop_graph(exec); }

long standin_launches(void) { return n_launches; }
long standin_uploaded(void) { return n_uploaded; }
long standin_downloaded(void) { return n_downloaded; }
int standin_graphs(void) { return (int)graphs.size(); }
int standin_objects(void)
{
    return (int)(graphs.size() + streams.size() + events.size() + pinned_blocks.size() + device_blocks.size());
}

cudaError_t CUDARTAPI cudaGetLastError(void)
{
    std::lock_guard<fair_mutex> guard(lock);
    cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}

const char *CUDARTAPI cudaGetErrorString(cudaError_t e)
{
    switch (e) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error during capture";
    case cudaErrorDevicesUnavailable: return "CUDA-capable device(s) is/are busy or unavailable";
    default: return "unrecognized error code";
    }
}

const char *CUDARTAPI cudaGetErrorName(cudaError_t e)
{
    return e == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaError";
}
}
