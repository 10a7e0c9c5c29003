/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Device code on the host, for tests: what kernels/cuda/compat.h includes where nvcc is not the compiler.  Kernels are
 * plain functions; a block's threads are fibers on one OS thread (device.cpp); the runtime is runtime.cpp.
 *
 * Environment, read when it is needed, so a test may set it at any time:
 *     VIDGEN_STANDIN_SEED=n      order of threads and streams: 0 ascending, 1 descending, n > 1 random
 *     VIDGEN_STANDIN_DEVICES=n   how many devices there are (default 1)
 *     VIDGEN_STANDIN_MEMORY=n    bytes of device memory (default 2 GiB)
 *     VIDGEN_STANDIN_DRIVER=n    what the driver says its version is (default: the runtime's; 0: no driver)
 *     VIDGEN_STANDIN_NOMEM=n     there is no memory for the n-th allocation from now on, on the device or pinned
 *     VIDGEN_STANDIN_FAIL=n      the n-th call of the runtime from now on fails as if the device were lost, and all after
 *                                it; 0 or unset: none */
#ifndef STANDIN_H
#define STANDIN_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <vector_functions.h>
#include <vector_types.h>

#undef __shared__
#define __shared__ static __attribute__((section("cudashared"))) /* filled with 0xff before each block */
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))

extern uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace standin {
void sync_threads(int line);
void warp_exchange(unsigned mask, uint64_t mine, uint64_t out[32]); /* all of the warp's values */
int lane();
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void launch(const char *name, dim3 grid, dim3 block, size_t shared, cudaStream_t stream, std::function<void()> body);

template <class T> T shuffle(unsigned mask, T v, int from)
{
    static_assert(sizeof(T) <= 8, "shuffle");
    uint64_t x = 0, all[32];
    memcpy(&x, &v, sizeof v);
    warp_exchange(mask, x, all);
    if (!(mask >> (from & 31) & 1))
        fail("shuffle reads lane %d, which is not in mask %08x", from, mask);
    T r;
    memcpy(&r, &all[from & 31], sizeof r);
    return r;
}
}

#define __syncthreads() standin::sync_threads(__LINE__)

template <class T> static inline T __shfl_xor_sync(unsigned mask, T v, int with)
{
    return standin::shuffle(mask, v, standin::lane() ^ with);
}

/* Blocks and threads run one at a time, so atomics are plain. */
template <class T> static inline T atomicAdd(T *p, T v)
{
    T before = *p;
    *p = before + v;
    return before;
}

template <class T> static inline T atomicMax(T *p, T v)
{
    T before = *p;
    *p = before > v ? before : v;
    return before;
}

#endif
