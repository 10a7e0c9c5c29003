/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A driver for GStreamer's CUDA library, which opens libcuda.so.1: its device is the stand-in for the runtime
 * (tests/cuda/standin), so what one takes the other knows.
 *
 * Contexts are what they are for: a stack of each thread, memory and streams that belong to one, and it is a failure
 * when a context is destroyed in which something is left.  Copies go by a stream of their own, as the default stream
 * does beside streams that do not wait for it: what has not been waited for may not be there yet. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "../standin/contexts.h"
#include "gstdriver.h"

#define DEPTH 64
#define PITCH 512 /* bytes: rows of textures */

struct CUctx_st {
    int device;
};

static __thread CUcontext stack[DEPTH];
static __thread int depth;
static int contexts, copies; /* atomic */

int gstdriver_contexts(void) { return __atomic_load_n(&contexts, __ATOMIC_SEQ_CST); }
int gstdriver_copies(void) { return __atomic_load_n(&copies, __ATOMIC_SEQ_CST); }

static CUresult result(cudaError_t e)
{
    return e == cudaSuccess                 ? CUDA_SUCCESS
           : e == cudaErrorMemoryAllocation ? CUDA_ERROR_OUT_OF_MEMORY
                                            : CUDA_ERROR_INVALID_VALUE;
}

static void enter(void) { standin_use_context(depth ? stack[depth - 1] : NULL); }

/* --- devices --- */

CUresult cuInit(unsigned flags) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *version) { return result(cudaDriverGetVersion(version)); }

CUresult cuDeviceGetCount(int *count) { return result(cudaGetDeviceCount(count)); }

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    int n = 0;
    cuDeviceGetCount(&n);
    *device = ordinal;
    return ordinal >= 0 && ordinal < n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int n, CUdevice device)
{
    snprintf(name, (size_t)n, "stand-in %d", device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 8
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 6
             : attribute == CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT        ? PITCH
                                                                         : 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    *can = 0;
    return CUDA_SUCCESS;
}

/* --- contexts --- */

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    CUcontext c = calloc(1, sizeof *c);
    if (!c || depth == DEPTH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->device = device;
    __atomic_add_fetch(&contexts, 1, __ATOMIC_SEQ_CST);
    *context = stack[depth++] = c;
    enter();
    return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    if (standin_context_use(context)) {
        fprintf(stderr, "driver: a context is destroyed with %d blocks and streams in it\n",
                standin_context_use(context));
        abort();
    }
    /* nvcodec leaves it on the stack for each codec that the device has no decoder for. */
    int kept = 0;
    for (int i = 0; i < depth; i++)
        if (stack[i] != context)
            stack[kept++] = stack[i];
    depth = kept;
    enter();
    free(context);
    __atomic_sub_fetch(&contexts, 1, __ATOMIC_SEQ_CST);
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    if (depth == DEPTH)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    enter();
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (context)
        *context = stack[depth];
    enter();
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) { return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED; }
CUresult cuCtxDisablePeerAccess(CUcontext peer) { return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED; }

/* --- memory --- */

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes) { return result(cudaMalloc((void **)p, bytes)); }
CUresult cuMemFree_v2(CUdeviceptr p) { return result(cudaFree((void *)p)); }
CUresult cuMemAllocHost_v2(void **p, size_t bytes) { return result(cudaHostAlloc(p, bytes, 0)); }
CUresult cuMemFreeHost(void *p) { return result(cudaFreeHost(p)); }

CUresult cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width, size_t height, unsigned element)
{
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    return cuMemAlloc_v2(p, *pitch * height);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
    static const enum cudaMemcpyKind kinds[2][2] = {{cudaMemcpyHostToHost, cudaMemcpyHostToDevice},
                                                    {cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice}};
    int up = c->dstMemoryType == CU_MEMORYTYPE_DEVICE, down = c->srcMemoryType == CU_MEMORYTYPE_DEVICE;
    cudaStream_t own = stream;
    if (!own && cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) != cudaSuccess)
        return CUDA_ERROR_OUT_OF_MEMORY;
    __atomic_add_fetch(&copies, up != down, __ATOMIC_SEQ_CST);
    const char *from = down ? (const char *)c->srcDevice : c->srcHost;
    char *to = up ? (char *)c->dstDevice : c->dstHost;
    cudaError_t e = cudaMemcpy2DAsync(to + c->dstY * c->dstPitch + c->dstXInBytes, c->dstPitch,
                                      from + c->srcY * c->srcPitch + c->srcXInBytes, c->srcPitch, c->WidthInBytes,
                                      c->Height, kinds[down][up], own);
    if (!stream) {
        cudaStreamSynchronize(own);
        cudaStreamDestroy(own);
    }
    return result(e);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *c) { return cuMemcpy2DAsync_v2(c, NULL); }

/* --- streams --- */

CUresult cuStreamCreate(CUstream *stream, unsigned flags) { return result(cudaStreamCreateWithFlags(stream, flags)); }
#undef cuStreamDestroy /* it is looked up by its first name */
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamDestroy(CUstream stream) { return result(cudaStreamDestroy(stream)); }
/* The default stream has nothing that waits: its copies are done when they return. */
CUresult cuStreamSynchronize(CUstream stream) { return stream ? result(cudaStreamSynchronize(stream)) : CUDA_SUCCESS; }

/* --- words --- */

CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = "the stand-in refuses it";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
    *text = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR";
    return CUDA_SUCCESS;
}
