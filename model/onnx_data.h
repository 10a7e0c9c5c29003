/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From the file's tensors to ours: types, dimensions, and the data wherever they lie.  Used by onnx.c alone. */
#ifndef VG_ONNX_DATA_H
#define VG_ONNX_DATA_H

#include "arena.h"
#include "graph.h"
#include "onnx.pb-c.h"

/* Where data come from and go to. */
struct vg_onnx_source {
    struct vg_arena *arena;
    const char *folder;           /* of the model file, resolved; NULL = from memory, no external data */
    const char *mapped, *mapped_end; /* the model file, where raw data stay in place; NULL = nowhere */
    struct vg_onnx_file *files;   /* with external data, mapped */
    struct vg_onnx_range *ranges; /* taken from them */
    size_t n_ranges;
};

/* The file's number of an element type to ours; false when there is none.  The name is never NULL. */
bool vg_onnx_type(int32_t number, enum vgk_type *type);
const char *vg_onnx_type_name(int32_t number);

/* Checks everything and makes a dense row-major tensor.  Its data are those of `p` where they need no conversion (so
 * `p` must lie in the arena), new ones in the arena, or mapped.  Error texts begin with `what`.  VGK_ERR_UNSUPPORTED:
 * no such element type here, too many dimensions. */
enum vgk_status vg_onnx_tensor(struct vg_onnx_source *, const Vg__Tensor *p, const char *what, struct vgk_tensor *,
                               struct vgk_error *);

/* When all tensors have been made: no two may share a part of their external data (all of it is fine). */
enum vgk_status vg_onnx_check_overlap(struct vg_onnx_source *, struct vgk_error *);

#endif
