/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is given to the stream again and again, as one CUDA graph. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

struct vgk_recording {
    cudaGraphExec_t exec;
};

/* VIDGEN_CUDA_GRAPH=no: operations are launched one by one. */
enum vgk_status vgk_cuda_record_begin(struct vgk_device *dev, struct vgk_error *err)
{
    const char *wish = getenv("VIDGEN_CUDA_GRAPH");
    if (wish && !strcmp(wish, "no"))
        return vgk_fail(err, VGK_ERR_UNSUPPORTED, "VIDGEN_CUDA_GRAPH=no");
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    VGK_CUDA_TRY(cudaStreamBeginCapture(dev->stream, cudaStreamCaptureModeThreadLocal), err);
    return VGK_OK;
}

enum vgk_status vgk_cuda_record_end(struct vgk_device *dev, struct vgk_recording **recording, struct vgk_error *err)
{
    cudaGraph_t graph = NULL;
    struct vgk_recording *r = *recording = NULL;
    cudaError_t e = cudaStreamEndCapture(dev->stream, &graph);
    if (e == cudaSuccess && !(r = calloc(1, sizeof *r)))
        e = cudaErrorMemoryAllocation;
    if (e == cudaSuccess)
        e = cudaGraphInstantiateWithFlags(&r->exec, graph, 0);
    if (graph)
        cudaGraphDestroy(graph);
    if (e != cudaSuccess) {
        free(r);
        return vgk_cuda_fail(err, e, "cudaStreamEndCapture");
    }
    *recording = r;
    return VGK_OK;
}

enum vgk_status vgk_cuda_replay(struct vgk_device *dev, const struct vgk_recording *r, struct vgk_error *err)
{
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    VGK_CUDA_TRY(cudaGraphLaunch(r->exec, dev->stream), err);
    return VGK_OK;
}

void vgk_cuda_record_free(struct vgk_device *dev, struct vgk_recording **recording)
{
    struct vgk_recording *r = *recording;
    if (!r)
        return;
    vgk_cuda_enter(dev);
    cudaGraphExecDestroy(r->exec); /* what is under way goes on */
    free(r);
    *recording = NULL;
    cudaGetLastError();
}
