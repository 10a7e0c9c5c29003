/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ONNX files to graphs.  The schema (onnx.proto) is a minimal one of our own of the public format: the fields used
 * here, with the public numbers (https://onnx.ai/onnx/repo-docs/IR.html).
 *
 * Everything in a file is distrusted: lengths, counts, dimensions, names, order of nodes, cycles, paths of external
 * data.  Limits: VG_ONNX_MAX_* below; a file beyond one is refused with the limit's name and value.
 *
 * External data are mapped, not read: their files must not be shortened while the graph lives (SIGBUS). */
#ifndef VG_ONNX_H
#define VG_ONNX_H

#include "graph.h"

#define VG_ONNX_MIN_OPSET 1
#define VG_ONNX_MAX_OPSET 24
#define VG_ONNX_MAX_NODES (1 << 20) /* with those of all branches */
#define VG_ONNX_MAX_DEPTH 8          /* of an If in a branch of an If */
#define VG_ONNX_MAX_ATTRIBUTES 256 /* of one node */
#define VG_ONNX_MAX_FILE ((size_t)2 << 30)   /* protobuf's own limit */
#define VG_ONNX_MAX_ELEMENTS ((int64_t)1 << 40) /* of one tensor */

/* VGK_ERR_FILE: cannot be opened or read (or its external data).  VGK_ERR_INVALID: not an ONNX model, truncated,
 * contradicts itself.  VGK_ERR_UNSUPPORTED: an opset, type or domain that is not supported, named.  VGK_ERR_NOMEM. */
enum vgk_status vg_onnx_load(const char *path, struct vg_graph **, struct vgk_error *);

/* The same from memory; external data is refused. */
enum vgk_status vg_onnx_parse(const void *data, size_t size, struct vg_graph **, struct vgk_error *);

#endif
