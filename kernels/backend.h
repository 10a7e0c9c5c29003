/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A backend: one device's way to hold memory and compute ops.  A const table of functions, one instance in one file.
 *
 *     struct vgk_device *dev = NULL;
 *     vgk_cpu.open(&(struct vgk_device_options){.threads = 2}, &dev, &err);
 *     vgk_cpu.need(dev, &op, &need, &err);           plan time: sizes, no memory touched
 *     vgk_cpu.pack(dev, &op, packed, &err);          once: constants into the kernel's own order
 *     vgk_cpu.run(dev, &op, packed, scratch, &err);  as often as wanted: allocates nothing
 *     vgk_cpu.close(&dev);
 *
 * A device is used by one thread at a time (it has threads of its own). */
#ifndef VGK_BACKEND_H
#define VGK_BACKEND_H

#include "frame.h"
#include "ops.h"

struct vgk_device; /* a backend's own; so are these: */
struct vgk_flights;
struct vgk_recording;

#define VGK_FLIGHTS 2        /* at a time: one that is computed or comes down, and the next */
#define VGK_FLIGHT_FRAMES 16 /* that one takes, or gives, at most */

struct vgk_device_options {
    int threads;        /* 0 = as many as the process may use (affinity, cgroup) */
    size_t max_bytes;   /* hard cap on alloc, 0 = none */
    bool exact_products; /* CPU: no Winograd, every product as written */
    int device;         /* CUDA: which */
    bool in_context;    /* CUDA: whoever calls a function of the device makes a context of the driver current first,
                           always the same one, and all work and memory is that context's.  Else: the device's primary
                           one */
    const char *described; /* CUDA: none that is there, but one to plan for: a capability ("sm_86"), or cuDNN's description
                              of a device (JSON); such a device has no memory to give.  NULL: a real one */
};

/* What goes up for a flight: a rectangle of a frame.  A frame that is on the device is read where it lies. */
struct vgk_part {
    const struct vgk_frame *frame;
    uint64_t number; /* not 0: by this the frame is known again, and what is there of it is not copied again */
    int x, y, width, height; /* where chroma is halved it begins and ends on even rows and columns, or where the frame ends */
};

/* The largest frames of a flight, on one of its ends. */
struct vgk_flight_size {
    int frames;        /* so many */
    int width, height; /* pixels */
    bool halved;       /* all have halved chroma */
    bool there;        /* all are on the device: no room is wanted for them */
};

struct vgk_need {
    size_t packed;  /* bytes of constants in the kernel's order, 0 = uses the tensors as they are */
    size_t scratch; /* bytes, all threads together; free for others after the op */
    int lattice[VGK_MAX_SPATIAL]; /* out is computed in blocks of so many pixels (depth, height, width; the last
                                     `spatial` entries count), and every pixel's bits depend on all inputs of its
                                     block: out is independent of position only if moved by multiples of this; 1 = any */
    bool bf16; /* the operands of its products are rounded to bf16 */
    const char *how; /* the kernel in words, for plans; NULL: nothing to say.  Lives as long as the device */
};

struct vgk_backend {
    const char *name; /* "cpu" */
    bool half;        /* likes activations in f16, and reads and writes frames from and to such tensors */
    bool chains;      /* takes VGK_OP_CHAIN */
    bool gates;       /* takes VGK_ACT_GATE and VGK_ACT_QUANTA */
    size_t cache;     /* bytes: what one op leaves to the next is read faster where it is less; 0: not to be reckoned with */
    /* Whether open would find the device; takes nothing of it.  NULL: always. */
    enum vgk_status (*look)(const struct vgk_device_options *, struct vgk_error *);
    enum vgk_status (*open)(const struct vgk_device_options *, struct vgk_device **, struct vgk_error *);
    void (*close)(struct vgk_device **); /* NULL inside is fine; sets it to NULL */
    /* What it is, for logs and `active-device`: "cpu (AVX2, 2 threads)". */
    const char *(*describe)(const struct vgk_device *);

    /* Device memory, counted.  alloc: NULL over max_bytes. */
    void *(*alloc)(struct vgk_device *, size_t bytes);
    void (*free)(struct vgk_device *, void *);
    size_t (*bytes_now)(const struct vgk_device *);
    size_t (*bytes_peak)(const struct vgk_device *);
    /* What the system (cgroup limits included) or the card could still give now; 0 = unknown. */
    size_t (*bytes_free)(const struct vgk_device *);

    /* Between host memory and the device's, which only the backend's own functions may touch. */
    enum vgk_status (*upload)(struct vgk_device *, const void *host, void *device, size_t bytes, struct vgk_error *);
    enum vgk_status (*download)(struct vgk_device *, const void *device, void *host, size_t bytes, struct vgk_error *);

    /* Memory outside of max_bytes, for what does not fit there: the slower one.  Aligned to VGK_ALIGN, not counted; NULL:
     * there is none left.  move: between the two, either way; done, or in order with the device's ops, when it returns. */
    void *(*host_alloc)(struct vgk_device *, size_t bytes);
    void (*host_free)(struct vgk_device *, void *, size_t bytes);
    enum vgk_status (*move)(struct vgk_device *, void *to, const void *from, size_t bytes, struct vgk_error *);

    /* UNSUPPORTED (with the op's name and shapes): this backend cannot do it. */
    enum vgk_status (*need)(struct vgk_device *, const struct vgk_op *, struct vgk_need *, struct vgk_error *);
    enum vgk_status (*pack)(struct vgk_device *, const struct vgk_op *, void *packed, struct vgk_error *);
    enum vgk_status (*run)(struct vgk_device *, const struct vgk_op *, const void *packed, void *scratch,
                           struct vgk_error *);
    /* Whether it does anything for ops that say `bf16`.  UNSUPPORTED: no, what it lacks, and what would do.  NULL: no. */
    enum vgk_status (*bf16)(const struct vgk_device *, struct vgk_error *);

    /* Bytes that frame_read of such a frame needs as scratch; frame_write needs as many for its frame and alpha's. */
    size_t (*frame_scratch)(const struct vgk_device *, int width, int height);
    /* Frame (in host memory) to tensor: dst f32 (f16) [1,3,H,W] of any strides, H >= frame's height, W >= its width; what
     * lies beyond the frame on the right and below repeats its last column and row.  Chroma is repeated (nearest). */
    enum vgk_status (*frame_read)(struct vgk_device *, const struct vgk_frame *src, const struct vgk_matrix *,
                                  const struct vgk_tensor *dst, void *scratch, struct vgk_error *);
    /* Tensor to frame: src f32 (f16) [1,3,H,W], its top left part of the frame's size.  Values are clamped to
     * low[k]..high[k] first, then the matrix, then rounded half to even and clamped to 0..255 (NaN becomes 0); chroma is
     * the mean of the 2 x 2 pixels it covers.  alpha: a frame of src's tile (its alpha byte is repeated to the new size),
     * or NULL (255).  *nonfinite (unless NULL): how many of src's values in the frame are NaN or infinite.
     * Everything given to the device before is done when this returns, and its errors are this call's. */
    enum vgk_status (*frame_write)(struct vgk_device *, const struct vgk_tensor *src, const struct vgk_matrix *,
                                   const float low[3], const float high[3], const struct vgk_frame *alpha,
                                   const struct vgk_frame *dst, void *scratch, int *nonfinite, struct vgk_error *);

    /* Tiles in flight: while one is computed, the next goes up to the device and the one before comes down, and nobody waits
     * but for a whole tile.  All NULL where there is nothing to gain by that.
     * flight_bytes: what flights_open wants of the device's memory (`memory`, the caller's) for frames of up to this size;
     * *host: what it takes of the host's (pinned, not counted elsewhere).
     * flight_begin: flight k, 0 to VGK_FLIGHTS - 1, which must have been waited for; what of `in` is on the host is copied, with
     * all rows of its frame above it, and may be changed when this returns; the rest stays as it is until flight_wait.  in_there,
     * out_there: where the parts and the results will lie on the device (frames that are there already: themselves), to be
     * given to frame_read (any time until the flight begins anew) and frame_write (until flight_end: it then does not wait and
     * tells nothing).
     * flight_end: all of the flight is given to the device.
     * flight_wait: waits for it, and copies the results to `out` (NULL: nobody wants them), which look as they did for
     * flight_begin; *nonfinite as of frame_write.  Errors are those of all that was given to the device before flight_end.
     * A flight that did not come to its end is given up by this.
     * in, out, in_there, out_there: the frames of the flight. */
    size_t (*flight_bytes)(const struct vgk_device *, const struct vgk_flight_size *in, const struct vgk_flight_size *out,
                           size_t *host);
    enum vgk_status (*flights_open)(struct vgk_device *, const struct vgk_flight_size *in,
                                    const struct vgk_flight_size *out, void *memory, struct vgk_flights **,
                                    struct vgk_error *);
    void (*flights_close)(struct vgk_device *, struct vgk_flights **);
    enum vgk_status (*flight_begin)(struct vgk_device *, struct vgk_flights *, int k, const struct vgk_part *in,
                                    const struct vgk_frame *out, struct vgk_frame *in_there,
                                    struct vgk_frame *out_there, struct vgk_error *);
    enum vgk_status (*flight_end)(struct vgk_device *, struct vgk_flights *, int k, struct vgk_error *);
    enum vgk_status (*flight_wait)(struct vgk_device *, struct vgk_flights *, int k, const struct vgk_frame *out,
                                   int *nonfinite, struct vgk_error *);

    /* Ops that are run again and again with the same addresses, as one call.  All NULL where a call costs nothing.
     * Between record_begin and record_end `run` notes ops and does nothing; each must have been run before.  When record_end
     * fails, or one of them, there is no recording, and nothing else has happened. */
    enum vgk_status (*record_begin)(struct vgk_device *, struct vgk_error *);
    enum vgk_status (*record_end)(struct vgk_device *, struct vgk_recording **, struct vgk_error *);
    enum vgk_status (*replay)(struct vgk_device *, const struct vgk_recording *, struct vgk_error *);
    void (*record_free)(struct vgk_device *, struct vgk_recording **);
};

extern const struct vgk_backend vgk_cpu;

#endif
