/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The CUDA backend is a module of its own, vidgen-cuda.so, opened when it is asked for: what does not need it does not
 * load a CUDA library. */
#ifndef VGK_CUDA_LOAD_H
#define VGK_CUDA_LOAD_H

#include "backend.h"

/* In the module. */
extern const struct vgk_backend vgk_cuda;
extern const char vgk_cuda_version[];

/* Looks in the folders of VIDGEN_MODULE_PATH (separated by colons), else where the modules were installed.  NULL with an
 * error that says what is missing.  The module stays in memory.  No driver is touched yet: see `open`. */
const struct vgk_backend *vgk_cuda_load(struct vgk_error *);

#endif
