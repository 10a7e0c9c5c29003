/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An ONNX file without the bulk of its weights, so that protobuf need not copy them: they are used where the file is
 * mapped.  Used by onnx.c alone. */
#ifndef VG_ONNX_STRIP_H
#define VG_ONNX_STRIP_H

#include "arena.h"
#include "onnx.pb-c.h"

/* Where raw data were taken out: of an initializer, or of a tensor that is a node's attribute. */
struct vg_onnx_raw {
    int64_t node, index; /* node -1: initializer `index`; else the node's attribute `index` */
    const uint8_t *data; /* in the file */
    size_t size;
};

struct vg_onnx_stripped {
    uint8_t *data; /* the file without them; malloc'ed */
    size_t size;
    struct vg_onnx_raw *raws; /* malloc'ed */
    size_t n;
};

/* False when there is nothing worth it, the file is not what it should be (which protobuf then says), or there is no
 * memory; *s has nothing to free then. */
bool vg_onnx_strip(const void *file, size_t size, struct vg_onnx_stripped *s);
void vg_onnx_stripped_free(struct vg_onnx_stripped *);

/* Puts pointers into the file in place of what was taken out.  False: the model does not have those tensors. */
bool vg_onnx_put_back(const struct vg_onnx_stripped *, Vg__Model *);

#endif
