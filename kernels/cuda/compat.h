/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What every .cu includes: the few constructs that plain C++ cannot parse or express, so that the same file is compiled
 * by nvcc for devices and by g++ for tests without one (tests/cuda/standin).
 *
 * The dialect: half for storage and float for arithmetic (double where it is said), *_sync warp operations only, no PTX,
 * no cudaMemcpyToSymbol; launchers are extern "C" and return a cudaError_t. */
#ifndef VGK_CUDA_COMPAT_H
#define VGK_CUDA_COMPAT_H

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#ifdef __CUDACC__
#define CU_LAUNCH(kernel, grid, block, shared, stream, ...) \
    (kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__), cudaGetLastError())
#else
#include "standin.h"
#define CU_LAUNCH(kernel, grid, block, shared, stream, ...) \
    (standin::launch(#kernel, (grid), (block), (shared), (stream), [=] { kernel(__VA_ARGS__); }), cudaGetLastError())
#endif

#endif
