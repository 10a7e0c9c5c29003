/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Products through cuDNN's graph API: convolutions (1-D to 3-D, strided, dilated, grouped, depthwise, transposed) with
 * bias, activation and residual; matrix products; attention.
 *
 * Plans are made from an operation and a description of the device, without a device: the same plan for a capability on
 * any machine.  The library is opened at run time; without it everything is UNSUPPORTED and own kernels take it.
 *
 *     struct vgk_dnn *dnn = NULL;
 *     struct vgk_dnn_plan *plan = NULL;
 *     vgk_dnn_open(NULL, 0, &dnn, &err);                       or with a description: plans only, no run
 *     vgk_dnn_plan(dnn, &op, max_workspace, &plan, &err);      plan time, some milliseconds
 *     vgk_dnn_build(plan, &err);                               once, before it is run: may compile, for seconds
 *     vgk_dnn_pack(dnn, plan, &op, host, &err);                once; the caller brings vgk_dnn_plan_packed() bytes to
 *                                                              the device
 *     vgk_dnn_run(dnn, plan, &op, packed, workspace, stream, &err);     as often as wanted; allocates nothing
 *
 * Operations are as kernels/ops.h says.  Activations (in[0], residual, out; for products and attention all inputs) are
 * f16, or f32 for the program that runs tiles again; accumulation is f32; images are channels-last.  Shift, scale and
 * slope may be f16 or f32; constants may be of any type.  What changes between runs is better f16: f32 keeps cuDNN from
 * its precompiled engines.
 *
 * op.constant tells which inputs are constants: those go into `packed`, at pack time their `data` is host memory.  At
 * run time `data` of all others are device addresses: multiples of 16 bytes, or of what the tensor's strides leave of
 * that; parts of a contiguous dimension may begin anywhere.  Used by one thread at a time. */
#ifndef VGK_DNN_H
#define VGK_DNN_H

#include "../ops.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vgk_dnn;      /* the library, with a device description or a real device */
struct vgk_dnn_plan; /* an engine with its settings; one for all operations that are alike */

/* device_json: a description (see the table in dnn_devices.h), or NULL for device `device` of the runtime. */
enum vgk_status vgk_dnn_open(const char *device_json, int device, struct vgk_dnn **, struct vgk_error *);
void vgk_dnn_close(struct vgk_dnn **); /* NULL inside is fine */
/* The description of the device that it was opened for, malloc'ed: of a real one to plan for it elsewhere. */
enum vgk_status vgk_dnn_device_json(struct vgk_dnn *, char **json, struct vgk_error *);

/* UNSUPPORTED, with why: own kernels take it.  Engines that need more than max_workspace are passed over.  Plans (and
 * refusals) are remembered: operations that are alike have one, which lives until the library is closed. */
enum vgk_status vgk_dnn_plan(struct vgk_dnn *, const struct vgk_op *, size_t max_workspace, struct vgk_dnn_plan **,
                             struct vgk_error *);
size_t vgk_dnn_plan_workspace(const struct vgk_dnn_plan *);
/* Bytes of constants in cuDNN's order (weights, and what else the plan wants of its own); 0 = takes tensors as they
 * are. */
size_t vgk_dnn_plan_packed(const struct vgk_dnn_plan *);
/* "engine 57, compiled at run time, workspace 12582912" (or "precompiled"). */
const char *vgk_dnn_plan_describe(const struct vgk_dnn_plan *);

/* Finalises the plan, if that was not done yet.  Should the engine fail, the next one that makes do with the workspace
 * takes its place. */
enum vgk_status vgk_dnn_build(struct vgk_dnn_plan *, struct vgk_error *);

/* Writes vgk_dnn_plan_packed() bytes to host memory. */
enum vgk_status vgk_dnn_pack(struct vgk_dnn *, const struct vgk_dnn_plan *, const struct vgk_op *, void *host,
                             struct vgk_error *);
/* Puts the work on the stream (a cudaStream_t); op has the shapes and strides that the plan was made for. */
enum vgk_status vgk_dnn_run(struct vgk_dnn *, const struct vgk_dnn_plan *, const struct vgk_op *, const void *packed,
                            void *workspace, void *stream, struct vgk_error *);

#ifdef __cplusplus
}
#endif

#endif
