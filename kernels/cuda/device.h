/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the C files of the CUDA backend share. */
#ifndef VGK_CUDA_DEVICE_H
#define VGK_CUDA_DEVICE_H

#include "../backend.h"
#include "kernels.h"
#include "products.h"

/* A block of device memory. */
struct vgk_cuda_block {
    struct vgk_cuda_block *next;
    void *data;
    size_t bytes;
};

struct vgk_device {
    int device;
    bool in_context; /* see vgk_device_options */
    size_t limit, now, peak;
    size_t described_memory; /* bytes; not 0: a description, nothing can be taken or run */
    struct vgk_dnn *dnn;     /* NULL: own kernels do everything */
    struct vgk_cuda_block *blocks;
    cudaStream_t stream;
    struct vgk_cu_flags *flags, *host_flags; /* on the device; pinned */
    cudaStream_t aside;      /* for what has nothing to do with what is computed (pictures.c) */
    struct vgk_cu_result *result, *host_result; /* of that; on the device, pinned */
    bool in_flight;          /* what is given to the stream now is a flight's: frame_write waits for nothing but */
    cudaEvent_t before_write; /* this, or NULL: the room for its result is free */
    char description[384];
};

/* A status for what the runtime says, with the call that said it. */
enum vgk_status vgk_cuda_fail(struct vgk_error *err, cudaError_t e, const char *call);

#define VGK_CUDA_TRY(call, err) \
    do { \
        cudaError_t e_ = (call); \
        if (e_ != cudaSuccess) \
            return vgk_cuda_fail(err, e_, #call); \
    } while (0)

#define VGK_CUDA_BAD_INDEX \
    "an index lies outside of what it points into; the model or a value given to it is wrong"

/* Makes the device's context current, unless whoever calls does. */
static inline cudaError_t vgk_cuda_enter(const struct vgk_device *dev)
{
    return dev->in_context ? cudaSuccess : cudaSetDevice(dev->device);
}

/* frames.c */
/* A plane's bytes in a row, and its rows; 0 rows: no such plane. */
void vgk_cuda_plane(const struct vgk_frame *, int i, size_t *width, size_t *rows);
/* The frame with its planes from `to` on; returns what is behind it. */
uint8_t *vgk_cuda_stage(const struct vgk_frame *, uint8_t *to, struct vgk_frame *staged);
size_t vgk_cuda_frame_scratch(const struct vgk_device *, int width, int height);
enum vgk_status vgk_cuda_frame_read(struct vgk_device *, const struct vgk_frame *, const struct vgk_matrix *,
                                    const struct vgk_tensor *, void *scratch, struct vgk_error *);
enum vgk_status vgk_cuda_frame_write(struct vgk_device *, const struct vgk_tensor *, const struct vgk_matrix *,
                                     const float low[3], const float high[3], const struct vgk_frame *alpha,
                                     const struct vgk_frame *, void *scratch, int *nonfinite, struct vgk_error *);

/* pictures.c */
enum vgk_status vgk_cuda_frame_same(struct vgk_device *, const struct vgk_frame *, const struct vgk_frame *, bool *same,
                                    struct vgk_error *);
enum vgk_status vgk_cuda_frame_difference(struct vgk_device *, const struct vgk_frame *, const struct vgk_frame *,
                                          uint64_t *sum, int *worst, struct vgk_error *);
enum vgk_status vgk_cuda_frame_fade(struct vgk_device *, const struct vgk_frame *later, const struct vgk_frame *earlier,
                                    int i, int n, struct vgk_error *);
enum vgk_status vgk_cuda_frame_shrink(struct vgk_device *, const struct vgk_frame *from, const struct vgk_frame *to,
                                      struct vgk_error *);
enum vgk_status vgk_cuda_frame_brightness(struct vgk_device *, const struct vgk_frame *, int width, int height,
                                          uint8_t *to, struct vgk_error *);

/* flights.c */
size_t vgk_cuda_flight_bytes(const struct vgk_device *, const struct vgk_flight_size *in,
                             const struct vgk_flight_size *out, size_t *host);
enum vgk_status vgk_cuda_flights_open(struct vgk_device *, const struct vgk_flight_size *in,
                                      const struct vgk_flight_size *out, void *memory, struct vgk_flights **,
                                      struct vgk_error *);
void vgk_cuda_flights_close(struct vgk_device *, struct vgk_flights **);
enum vgk_status vgk_cuda_flight_begin(struct vgk_device *, struct vgk_flights *, int k, const struct vgk_part *in,
                                      const struct vgk_frame *out, struct vgk_frame *in_there, struct vgk_frame *out_there,
                                      struct vgk_error *);
enum vgk_status vgk_cuda_flight_end(struct vgk_device *, struct vgk_flights *, int k, struct vgk_error *);
enum vgk_status vgk_cuda_flight_wait(struct vgk_device *, struct vgk_flights *, int k, const struct vgk_frame *out,
                                     int *nonfinite, struct vgk_error *);
void vgk_cuda_flight_again(struct vgk_device *, struct vgk_flights *, int k);

/* recording.c */
enum vgk_status vgk_cuda_record_begin(struct vgk_device *, struct vgk_error *);
enum vgk_status vgk_cuda_record_end(struct vgk_device *, struct vgk_recording **, struct vgk_error *);
enum vgk_status vgk_cuda_replay(struct vgk_device *, const struct vgk_recording *, struct vgk_error *);
void vgk_cuda_record_free(struct vgk_device *, struct vgk_recording **);

/* operations.c */
enum vgk_status vgk_cuda_need(struct vgk_device *, const struct vgk_op *, struct vgk_need *, struct vgk_error *);
enum vgk_status vgk_cuda_pack(struct vgk_device *, const struct vgk_op *, void *packed, struct vgk_error *);
enum vgk_status vgk_cuda_run(struct vgk_device *, const struct vgk_op *, const void *packed, void *scratch,
                             struct vgk_error *);

#endif
