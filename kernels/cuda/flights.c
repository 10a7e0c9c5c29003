/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tiles in flight.  Uploads and downloads have streams of their own.  A tile waits there for:
 *     its upload, before it is computed;
 *     the download of the one before, before its result is written: there is room for one on the device;
 *     its result, before that is downloaded.
 * Where it comes up there is room for the frames of two, and the caller waits for a flight before it begins anew: so nothing
 * else has to be waited for, and the host waits for a whole tile only.  Tiles of one frame share its room, and so do windows that
 * overlap: each brings the rows that are not there yet.  Frames on the device have no room here, and do not come up or down. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

/* Room for a frame that comes in. */
struct place {
    uint8_t *host, *memory; /* pinned, and the device's */
    uint64_t number;        /* the frame's, see struct vgk_part */
    int rows;               /* of it that are there */
};

struct flight {
    const struct place *place[VGK_FLIGHT_FRAMES]; /* of the frames that it reads; NULL: has none */
    uint8_t *host_out;                            /* pinned */
    struct vgk_cu_flags *host_flags;
    struct vgk_frame out[VGK_FLIGHT_FRAMES]; /* how they lie in pinned memory, unless they are the device's */
    size_t out_bytes;
    cudaEvent_t up, computed, down;
    bool ended;                       /* all of it is given to the device */
};

struct vgk_flights {
    struct flight flight[VGK_FLIGHTS];
    struct place place[VGK_FLIGHTS * VGK_FLIGHT_FRAMES];
    int n_in, n_out, n_places;
    uint8_t *pinned, *memory; /* memory: for the frames that go out */
    cudaStream_t up, down;
    size_t in_bytes, out_bytes; /* there is room for, in a place, for all results of a flight */
};

static size_t flags_bytes(void) { return vgk_round_up(sizeof(struct vgk_cu_flags), VGK_ALIGN); }

static size_t staged_bytes(const struct vgk_frame *f)
{
    struct vgk_frame staged;
    uint8_t *base = (uint8_t *)VGK_ALIGN; /* any address: only where it ends is of interest */
    return (size_t)(vgk_cuda_stage(f, base, &staged) - base);
}

/* The most that a frame of these pixels takes: of those with halved chroma I420, else any. */
static size_t frame_bytes(const struct vgk_device *dev, const struct vgk_flight_size *size)
{
    struct vgk_frame f = {.layout = VGK_FRAME_I420, .width = size->width, .height = size->height};
    if (size->there)
        return 0;
    return size->halved ? staged_bytes(&f)
                        : vgk_round_up(vgk_cuda_frame_scratch(dev, size->width, size->height), VGK_ALIGN);
}

static size_t end_bytes(const struct vgk_device *dev, const struct vgk_flight_size *size)
{
    return (size_t)size->frames * frame_bytes(dev, size);
}

size_t vgk_cuda_flight_bytes(const struct vgk_device *dev, const struct vgk_flight_size *in,
                             const struct vgk_flight_size *out, size_t *host)
{
    *host = VGK_FLIGHTS * (end_bytes(dev, in) + end_bytes(dev, out) + flags_bytes());
    return VGK_FLIGHTS * end_bytes(dev, in) + end_bytes(dev, out);
}

void vgk_cuda_flights_close(struct vgk_device *dev, struct vgk_flights **flights)
{
    struct vgk_flights *f = *flights;
    if (!f)
        return;
    vgk_cuda_enter(dev);
    if (f->up)
        cudaStreamSynchronize(f->up);
    cudaStreamSynchronize(dev->stream);
    if (f->down)
        cudaStreamSynchronize(f->down);
    for (int k = 0; k < VGK_FLIGHTS; k++) {
        cudaEvent_t events[] = {f->flight[k].up, f->flight[k].computed, f->flight[k].down};
        for (int i = 0; i < 3; i++)
            if (events[i])
                cudaEventDestroy(events[i]);
    }
    if (f->up)
        cudaStreamDestroy(f->up);
    if (f->down)
        cudaStreamDestroy(f->down);
    cudaFreeHost(f->pinned);
    free(f);
    *flights = NULL;
    cudaGetLastError(); /* of a device that is lost: nobody else's */
}

static enum vgk_status open_all(struct vgk_device *dev, struct vgk_flights *f, size_t host, struct vgk_error *err)
{
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    VGK_CUDA_TRY(cudaStreamCreateWithFlags(&f->up, cudaStreamNonBlocking), err);
    VGK_CUDA_TRY(cudaStreamCreateWithFlags(&f->down, cudaStreamNonBlocking), err);
    VGK_CUDA_TRY(cudaHostAlloc((void **)&f->pinned, host, 0), err);
    for (int k = 0; k < VGK_FLIGHTS; k++) {
        VGK_CUDA_TRY(cudaEventCreateWithFlags(&f->flight[k].up, cudaEventDisableTiming), err);
        VGK_CUDA_TRY(cudaEventCreateWithFlags(&f->flight[k].computed, cudaEventDisableTiming), err);
        VGK_CUDA_TRY(cudaEventCreateWithFlags(&f->flight[k].down, cudaEventDisableTiming), err);
    }
    return VGK_OK;
}

enum vgk_status vgk_cuda_flights_open(struct vgk_device *dev, const struct vgk_flight_size *in,
                                      const struct vgk_flight_size *out, void *memory, struct vgk_flights **flights, struct vgk_error *err)
{
    size_t host;
    struct vgk_flights *f = *flights = calloc(1, sizeof *f);
    if (!f)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for tiles in flight");
    vgk_cuda_flight_bytes(dev, in, out, &host);
    enum vgk_status s = open_all(dev, f, host, err);
    if (s) {
        vgk_cuda_flights_close(dev, flights);
        return s;
    }
    f->in_bytes = frame_bytes(dev, in);
    f->out_bytes = end_bytes(dev, out);
    f->n_in = in->frames;
    f->n_out = out->frames;
    f->n_places = in->there ? 0 : VGK_FLIGHTS * in->frames;
    uint8_t *pinned = f->pinned;
    f->memory = memory;
    for (int i = 0; i < f->n_places; i++, pinned += f->in_bytes, f->memory += f->in_bytes)
        f->place[i] = (struct place){.host = pinned, .memory = f->memory};
    for (int k = 0; k < VGK_FLIGHTS; k++) {
        struct flight *g = &f->flight[k];
        g->host_out = pinned;
        g->host_flags = (struct vgk_cu_flags *)(g->host_out + f->out_bytes);
        pinned = (uint8_t *)g->host_flags + flags_bytes();
    }
    return VGK_OK;
}

/* The frame elsewhere, its planes where vgk_cuda_stage puts them. */
static void copy_frame(const struct vgk_frame *from, const struct vgk_frame *to)
{
    for (int i = 0; i < 3; i++) {
        size_t width, rows;
        vgk_cuda_plane(from, i, &width, &rows);
        for (size_t y = 0; y < rows; y++)
            memcpy(to->plane[i] + (ptrdiff_t)y * to->stride[i], from->plane[i] + (ptrdiff_t)y * from->stride[i], width);
    }
}

static bool reads(const struct vgk_flights *f, const struct flight *g, const struct place *p)
{
    int i = 0;
    while (i < f->n_in && g->place[i] != p)
        i++;
    return i < f->n_in;
}

/* The room of a frame that flight g reads; for one that has none yet, some that neither g nor the flight before reads. */
static struct place *place_for(struct vgk_flights *f, const struct flight *g, const struct flight *before, uint64_t number)
{
    struct place *p = f->place;
    for (int i = 0; i < f->n_places && number; i++)
        if (f->place[i].number == number)
            return &f->place[i];
    while (reads(f, g, p) || (before->ended && reads(f, before, p)))
        p++;
    p->number = number;
    p->rows = 0;
    return p;
}

/* The frame's rows down to `end` that are not there yet. */
static enum vgk_status send_rows(struct vgk_flights *f, struct place *p, const struct vgk_frame *frame,
                                 const struct vgk_frame *host, const struct vgk_frame *there, int end, struct vgk_error *err)
{
    int begin = p->rows, n = end - begin;
    struct vgk_frame from = vgk_frame_part(frame, 0, begin, frame->width, n),
                     by = vgk_frame_part(host, 0, begin, frame->width, n), to = vgk_frame_part(there, 0, begin, frame->width, n);
    if (n <= 0)
        return VGK_OK;
    copy_frame(&from, &by);
    for (int i = 0; i < 3; i++) {
        size_t width, rows;
        vgk_cuda_plane(&by, i, &width, &rows);
        if (rows)
            VGK_CUDA_TRY(cudaMemcpyAsync(to.plane[i], by.plane[i], (size_t)by.stride[i] * rows, cudaMemcpyHostToDevice, f->up),
                         err);
    }
    p->rows = end;
    return VGK_OK;
}

/* Where the part will lie, and the rows that are not there yet on their way. */
static enum vgk_status begin_in(struct vgk_flights *f, struct flight *g, const struct flight *before, int i,
                                const struct vgk_part *in, struct vgk_frame *in_there, struct vgk_error *err)
{
    const struct vgk_frame *frame = in->frame;
    struct vgk_frame host, there = *frame;
    enum vgk_status s = VGK_OK;
    if (!frame->device) {
        size_t bytes = staged_bytes(frame);
        if (bytes > f->in_bytes)
            return vgk_fail(err, VGK_ERR_INVALID, "a frame of %dx%d takes %zu bytes, there is room for %zu: the format, the size or "
                            "the memory is not what was planned", frame->width, frame->height, bytes, f->in_bytes);
        struct place *place = place_for(f, g, before, in->number);
        g->place[i] = place;
        vgk_cuda_stage(frame, place->host, &host);
        vgk_cuda_stage(frame, place->memory, &there);
        s = send_rows(f, place, frame, &host, &there, in->y + in->height, err);
    }
    *in_there = vgk_frame_part(&there, in->x, in->y, in->width, in->height);
    in_there->device = true;
    return s;
}

/* Where the results will lie. */
static enum vgk_status begin_out(struct vgk_flights *f, struct flight *g, const struct vgk_frame *out, struct vgk_frame *out_there,
                                 struct vgk_error *err)
{
    g->out_bytes = 0;
    for (int i = 0; i < f->n_out; i++) {
        g->out[i] = out_there[i] = out[i];
        if (out[i].device)
            continue;
        size_t bytes = staged_bytes(&out[i]);
        if (bytes > f->out_bytes - g->out_bytes)
            return vgk_fail(err, VGK_ERR_INVALID, "%d frames of %dx%d take %zu bytes each, there is room for %zu: the format, the "
                            "size or the memory is not what was planned", f->n_out, out[i].width, out[i].height, bytes, f->out_bytes);
        vgk_cuda_stage(&out[i], g->host_out + g->out_bytes, &g->out[i]);
        vgk_cuda_stage(&out[i], f->memory + g->out_bytes, &out_there[i]);
        out_there[i].device = true;
        g->out_bytes += bytes;
    }
    return VGK_OK;
}

enum vgk_status vgk_cuda_flight_begin(struct vgk_device *dev, struct vgk_flights *f, int k, const struct vgk_part *in,
                                      const struct vgk_frame *out, struct vgk_frame *in_there, struct vgk_frame *out_there,
                                      struct vgk_error *err)
{
    struct flight *g = &f->flight[k], *before = &f->flight[(k + 1) % VGK_FLIGHTS];
    g->ended = false;
    memset(g->place, 0, sizeof g->place);
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    enum vgk_status s = begin_out(f, g, out, out_there, err);
    for (int i = 0; i < f->n_in && !s; i++)
        s = begin_in(f, g, before, i, &in[i], &in_there[i], err);
    if (s)
        return s;
    VGK_CUDA_TRY(cudaEventRecord(g->up, f->up), err);
    VGK_CUDA_TRY(cudaStreamWaitEvent(dev->stream, g->up, 0), err);
    dev->in_flight = true;
    dev->before_write = before->ended ? before->down : NULL;
    return VGK_OK;
}

enum vgk_status vgk_cuda_flight_end(struct vgk_device *dev, struct vgk_flights *f, int k, struct vgk_error *err)
{
    struct flight *g = &f->flight[k];
    dev->in_flight = false;
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    VGK_CUDA_TRY(cudaMemcpyAsync(g->host_flags, dev->flags, sizeof *dev->flags, cudaMemcpyDeviceToHost, dev->stream), err);
    VGK_CUDA_TRY(cudaMemsetAsync(dev->flags, 0, sizeof *dev->flags, dev->stream), err);
    VGK_CUDA_TRY(cudaEventRecord(g->computed, dev->stream), err);
    VGK_CUDA_TRY(cudaStreamWaitEvent(f->down, g->computed, 0), err);
    if (g->out_bytes)
        VGK_CUDA_TRY(cudaMemcpyAsync(g->host_out, f->memory, g->out_bytes, cudaMemcpyDeviceToHost, f->down), err);
    VGK_CUDA_TRY(cudaEventRecord(g->down, f->down), err);
    g->ended = true;
    return VGK_OK;
}

enum vgk_status vgk_cuda_flight_wait(struct vgk_device *dev, struct vgk_flights *f, int k, const struct vgk_frame *out,
                                     int *nonfinite, struct vgk_error *err)
{
    struct flight *g = &f->flight[k];
    bool ended = g->ended;
    g->ended = dev->in_flight = false;
    VGK_CUDA_TRY(vgk_cuda_enter(dev), err);
    if (!ended) { /* given up in the middle */
        VGK_CUDA_TRY(cudaStreamSynchronize(f->up), err);
        VGK_CUDA_TRY(cudaMemsetAsync(dev->flags, 0, sizeof *dev->flags, dev->stream), err);
        VGK_CUDA_TRY(cudaStreamSynchronize(dev->stream), err);
        return VGK_OK;
    }
    VGK_CUDA_TRY(cudaEventSynchronize(g->down), err);
    *nonfinite = g->host_flags->nonfinite;
    if (g->host_flags->bad_index)
        return vgk_fail(err, VGK_ERR_INVALID, VGK_CUDA_BAD_INDEX);
    for (int i = 0; i < f->n_out && out; i++)
        if (!out[i].device)
            copy_frame(&g->out[i], &out[i]);
    return VGK_OK;
}
