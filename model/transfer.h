/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the caller's memory and the arena, which on other devices than the CPU only their own functions may touch. */
#ifndef VG_TRANSFER_H
#define VG_TRANSFER_H

#include "plan_internal.h"

/* Copies (and converts) between tensors of the same dims: both in the arena; into it; out of it. */
enum vgk_status vg_copy(const struct vg_plan *, const struct vgk_tensor *src, const struct vgk_tensor *dst,
                        struct vgk_error *);
enum vgk_status vg_copy_in(const struct vg_plan *, const struct vgk_tensor *src, const struct vgk_tensor *dst,
                           struct vgk_error *);
enum vgk_status vg_copy_out(const struct vg_plan *, const struct vgk_tensor *src, const struct vgk_tensor *dst,
                            struct vgk_error *);

/* One number everywhere in a tensor of the arena. */
enum vgk_status vg_fill(const struct vg_plan *, float value, const struct vgk_tensor *to, struct vgk_error *);

#endif
