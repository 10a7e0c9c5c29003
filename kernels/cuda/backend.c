/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The device: driver, memory, stream.  All work of a device goes to one stream in order. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cuda_load.h"
#include "dnn_devices.h"

#define LEAST_CAPABILITY 75 /* Turing: what nvcc 13 and cuDNN 9 still make code for */

enum vgk_status vgk_cuda_fail(struct vgk_error *err, cudaError_t e, const char *call)
{
    const char *end = strchr(call, '(');
    cudaGetLastError(); /* said once is enough */
    return vgk_fail(err, e == cudaErrorMemoryAllocation ? VGK_ERR_NOMEM : VGK_ERR_DEVICE, "%.*s: %s (%s)",
                    end ? (int)(end - call) : (int)strlen(call), call, cudaGetErrorString(e), cudaGetErrorName(e));
}

/* --- the driver --- */

static enum vgk_status look_for_device(int device, struct cudaDeviceProp *p, struct vgk_error *err)
{
    int driver = 0, n = 0;
    cudaDriverGetVersion(&driver);
    if (!driver)
        return vgk_fail(err, VGK_ERR_DEVICE, "no NVIDIA driver (libcuda.so.1): install one for CUDA %d.%d or newer, or set "
                        "device to cpu", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    if (driver < CUDART_VERSION / 1000 * 1000)
        return vgk_fail(err, VGK_ERR_DEVICE, "the NVIDIA driver is for CUDA %d.%d: install one for CUDA %d.0 or newer, or "
                        "set device to cpu", driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000);
    cudaError_t e = cudaGetDeviceCount(&n);
    if (e == cudaErrorNoDevice || (e == cudaSuccess && !n)) {
        cudaGetLastError();
        return vgk_fail(err, VGK_ERR_DEVICE, "the NVIDIA driver is there, but finds no GPU (CUDA_VISIBLE_DEVICES hides "
                        "them, too)");
    }
    if (e != cudaSuccess)
        return vgk_cuda_fail(err, e, "cudaGetDeviceCount");
    if (device < 0 || device >= n)
        return vgk_fail(err, VGK_ERR_INVALID, "cuda-device-id: expected 0 to %d, got %d", n - 1, device);
    VGK_CUDA_TRY(cudaGetDeviceProperties(p, device), err);
    if (p->major * 10 + p->minor < LEAST_CAPABILITY)
        return vgk_fail(err, VGK_ERR_DEVICE, "%s has compute capability %d.%d, expected %d.%d or newer; set device to cpu",
                        p->name, p->major, p->minor, LEAST_CAPABILITY / 10, LEAST_CAPABILITY % 10);
    return VGK_OK;
}

static enum vgk_status cuda_look(const struct vgk_device_options *options, struct vgk_error *err)
{
    struct cudaDeviceProp p;
    return look_for_device(options->device, &p, err);
}

static void cuda_close(struct vgk_device **dev)
{
    struct vgk_device *d = *dev;
    if (!d)
        return;
    vgk_dnn_close(&d->dnn);
    if (d->described_memory) {
        free(d);
        *dev = NULL;
        return;
    }
    vgk_cuda_enter(d);
    if (d->stream)
        cudaStreamDestroy(d->stream);
    if (d->aside)
        cudaStreamDestroy(d->aside);
    cudaFree(d->result);
    cudaFreeHost(d->host_result);
    cudaFree(d->flags);
    cudaFreeHost(d->host_flags);
    while (d->blocks) {
        struct vgk_cuda_block *b = d->blocks;
        d->blocks = b->next;
        cudaFree(b->data);
        free(b);
    }
    free(d);
    *dev = NULL;
    cudaGetLastError(); /* of a device that is lost: nobody else's */
}

static enum vgk_status start(struct vgk_device *d, struct vgk_error *err)
{
    VGK_CUDA_TRY(vgk_cuda_enter(d), err);
    VGK_CUDA_TRY(cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking), err);
    VGK_CUDA_TRY(cudaMalloc((void **)&d->flags, sizeof *d->flags), err);
    VGK_CUDA_TRY(cudaHostAlloc((void **)&d->host_flags, sizeof *d->host_flags, 0), err);
    VGK_CUDA_TRY(cudaMemsetAsync(d->flags, 0, sizeof *d->flags, d->stream), err);
    VGK_CUDA_TRY(cudaStreamCreateWithFlags(&d->aside, cudaStreamNonBlocking), err);
    VGK_CUDA_TRY(cudaMalloc((void **)&d->result, sizeof *d->result), err);
    VGK_CUDA_TRY(cudaHostAlloc((void **)&d->host_result, sizeof *d->host_result, 0), err);
    return VGK_OK;
}

/* Without cuDNN everything works, slowly.  VIDGEN_CUDNN=no: not even looked for. */
static void open_dnn(struct vgk_device *d)
{
    const char *wish = getenv("VIDGEN_CUDNN");
    struct vgk_error why = {"VIDGEN_CUDNN=no"};
    size_t n = strlen(d->description);
    if ((wish && !strcmp(wish, "no")) || vgk_dnn_open(NULL, d->device, &d->dnn, &why))
        snprintf(d->description + n, sizeof d->description - n, ", own kernels only: %s", why.text);
}

/* A device to plan for: cuDNN answers by its description. */
static enum vgk_status open_described(const struct vgk_device_options *options, struct vgk_device **dev,
                                      struct vgk_error *err)
{
    char known[VGK_DNN_DEVICE_TEXT];
    const char *json = options->described;
    enum vgk_status s = VGK_OK;
    struct vgk_device *d = calloc(1, sizeof *d);
    if (!d)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for a device");
    if (!strchr(json, '{')) {
        s = vgk_dnn_describe_device(json, known, err);
        json = known;
    }
    if (!s)
        s = vgk_dnn_open(json, 0, &d->dnn, err);
    int capability = s ? 0 : vgk_dnn_capability(json);
    d->limit = options->max_bytes;
    d->described_memory = s ? 1 : vgk_dnn_memory(json);
    if (!s && !d->described_memory)
        s = vgk_fail(err, VGK_ERR_INVALID, "a description of a device without memory (totalGlobalMem)");
    snprintf(d->description, sizeof d->description, "cuda (described, capability %d.%d, %zu bytes)", capability / 10,
             capability % 10, d->described_memory);
    if (s)
        cuda_close(&d);
    *dev = d;
    return s;
}

static enum vgk_status cuda_open(const struct vgk_device_options *options, struct vgk_device **dev, struct vgk_error *err)
{
    struct cudaDeviceProp p;
    int driver = 0;
    *dev = NULL;
    if (options->described)
        return open_described(options, dev, err);
    enum vgk_status s = look_for_device(options->device, &p, err);
    if (s)
        return s;
    struct vgk_device *d = calloc(1, sizeof *d);
    if (!d)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for a device");
    d->device = options->device;
    d->in_context = options->in_context;
    d->limit = options->max_bytes;
    cudaDriverGetVersion(&driver);
    snprintf(d->description, sizeof d->description, "cuda (%s, capability %d.%d, driver for CUDA %d.%d)", p.name, p.major,
             p.minor, driver / 1000, driver % 1000 / 10);
    if ((s = start(d, err)))
        cuda_close(&d);
    else
        open_dnn(d);
    *dev = d;
    return s;
}

static const char *cuda_describe(const struct vgk_device *dev) { return dev->description; }

/* --- memory --- */

static void *cuda_alloc(struct vgk_device *dev, size_t bytes)
{
    size_t take = vgk_round_up(bytes, VGK_ALIGN);
    if (dev->described_memory || take < bytes || (dev->limit && (take > dev->limit || dev->now > dev->limit - take)))
        return NULL;
    struct vgk_cuda_block *b = calloc(1, sizeof *b);
    if (b && (vgk_cuda_enter(dev) != cudaSuccess || cudaMalloc(&b->data, take) != cudaSuccess)) {
        cudaGetLastError();
        free(b);
        b = NULL;
    }
    if (!b)
        return NULL;
    b->bytes = take;
    b->next = dev->blocks;
    dev->blocks = b;
    dev->now += take;
    dev->peak = dev->now > dev->peak ? dev->now : dev->peak;
    return b->data;
}

static void cuda_free(struct vgk_device *dev, void *data)
{
    for (struct vgk_cuda_block **at = &dev->blocks; *at; at = &(*at)->next) {
        struct vgk_cuda_block *b = *at;
        if (b->data != data)
            continue;
        *at = b->next;
        dev->now -= b->bytes;
        vgk_cuda_enter(dev);
        cudaFree(b->data);
        free(b);
        return;
    }
}

static size_t cuda_bytes_now(const struct vgk_device *dev) { return dev->now; }
static size_t cuda_bytes_peak(const struct vgk_device *dev) { return dev->peak; }

static size_t cuda_bytes_free(const struct vgk_device *dev)
{
    size_t left = 0, total = 0;
    if (dev->described_memory)
        return dev->described_memory;
    if (vgk_cuda_enter(dev) == cudaSuccess && cudaMemGetInfo(&left, &total) == cudaSuccess)
        return left;
    cudaGetLastError();
    return 0;
}

static enum vgk_status transfer(struct vgk_device *dev, void *to, const void *from, size_t bytes,
                                enum cudaMemcpyKind kind, struct vgk_error *err)
{
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    VGK_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, kind, dev->stream), err);
    VGK_CUDA_TRY(cudaStreamSynchronize(dev->stream), err);
    return VGK_OK;
}

static enum vgk_status cuda_upload(struct vgk_device *dev, const void *host, void *device, size_t bytes,
                                   struct vgk_error *err)
{
    return transfer(dev, device, host, bytes, cudaMemcpyHostToDevice, err);
}

static enum vgk_status cuda_download(struct vgk_device *dev, const void *device, void *host, size_t bytes,
                                     struct vgk_error *err)
{
    return transfer(dev, host, device, bytes, cudaMemcpyDeviceToHost, err);
}

/* Pinned: the device fetches from there by itself, in order with its work. */
static void *cuda_host_alloc(struct vgk_device *dev, size_t bytes)
{
    void *p = NULL;
    if (dev->described_memory || vgk_cuda_enter(dev) != cudaSuccess || cudaHostAlloc(&p, bytes, 0) != cudaSuccess) {
        cudaGetLastError();
        return NULL;
    }
    return p;
}

static void cuda_host_free(struct vgk_device *dev, void *p, size_t bytes)
{
    if (!p)
        return;
    vgk_cuda_enter(dev);
    cudaStreamSynchronize(dev->stream); /* moves may be under way */
    cudaFreeHost(p);
}

static bool on_device(const struct vgk_device *dev, const void *p)
{
    for (const struct vgk_cuda_block *b = dev->blocks; b; b = b->next)
        if ((uintptr_t)p - (uintptr_t)b->data < b->bytes)
            return true;
    return false;
}

static enum vgk_status cuda_move(struct vgk_device *dev, void *to, const void *from, size_t bytes, struct vgk_error *err)
{
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    VGK_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, on_device(dev, to) ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                                 dev->stream), err);
    return VGK_OK;
}

__attribute__((visibility("default"))) const char vgk_cuda_version[] = VERSION;
__attribute__((visibility("default"))) const struct vgk_backend vgk_cuda = {
    .name = "cuda",
    .half = true,
    .chains = true,
    .look = cuda_look,
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .bytes_now = cuda_bytes_now,
    .bytes_peak = cuda_bytes_peak,
    .bytes_free = cuda_bytes_free,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .move = cuda_move,
    .upload = cuda_upload,
    .download = cuda_download,
    .need = vgk_cuda_need,
    .pack = vgk_cuda_pack,
    .run = vgk_cuda_run,
    .frame_scratch = vgk_cuda_frame_scratch,
    .frame_read = vgk_cuda_frame_read,
    .frame_write = vgk_cuda_frame_write,
    .frame_same = vgk_cuda_frame_same,
    .frame_difference = vgk_cuda_frame_difference,
    .frame_fade = vgk_cuda_frame_fade,
    .frame_shrink = vgk_cuda_frame_shrink,
    .frame_brightness = vgk_cuda_frame_brightness,
    .flight_bytes = vgk_cuda_flight_bytes,
    .flights_open = vgk_cuda_flights_open,
    .flights_close = vgk_cuda_flights_close,
    .flight_begin = vgk_cuda_flight_begin,
    .flight_end = vgk_cuda_flight_end,
    .flight_wait = vgk_cuda_flight_wait,
    .flight_again = vgk_cuda_flight_again,
    .record_begin = vgk_cuda_record_begin,
    .record_end = vgk_cuda_record_end,
    .replay = vgk_cuda_replay,
    .record_free = vgk_cuda_record_free,
};
