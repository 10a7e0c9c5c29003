/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* NAME.modelinfo beside NAME.onnx: a key file for what ONNX cannot say.  Every key has a deduced default; most models
 * need no such file.  Keys also come from the ONNX file's own metadata as "vidgen.KEY"; the sidecar wins.
 *
 * GStreamer's own groups (key files since 1.28: a group for each tensor) are kept and passed over, but for `ranges` of
 * the frame input.  Ours:
 *
 *     [vidgen]
 *     name=Starry, painted, pastel
 *     license=MIT
 *     input=image                 which input is the frame
 *     output=output
 *     range=0;1                   values of black and white in the input (0;255 and -1;1 are usual too)
 *     output-range=0;1
 *     channels=RGB                or BGR; output-channels the same
 *     mean=0.485;0.456;0.406      instead of range: tensor = (rgb - mean) / std
 *     std=0.229;0.224;0.225
 *     [vidgen parameter style_weights]
 *     default=1;0;0
 *     range=0;1
 *     labels=starry;painted;pastel
 */
#ifndef VG_MODELINFO_H
#define VG_MODELINFO_H

#include "graph.h"

#define VG_MODELINFO_MAX_FILE ((size_t)1 << 20)

struct vg_modelinfo; /* groups of keys and values */

/* Reads `path` when it is there (else an empty one), and the graph's "vidgen." properties under [vidgen]; the graph
 * may be NULL.  Of a key given twice the last wins.  A line is a comment (# or ; in front), [group] or key=value.
 * VGK_ERR_INVALID names file and line. */
enum vgk_status vg_modelinfo_load(const char *path, const struct vg_graph *, struct vg_modelinfo **,
                                  struct vgk_error *);
/* The same from memory; `name` is for messages. */
enum vgk_status vg_modelinfo_parse(const char *name, const void *data, size_t size, const struct vg_graph *,
                                   struct vg_modelinfo **, struct vgk_error *);
void vg_modelinfo_free(struct vg_modelinfo **);

/* The value's text, trimmed, or NULL.  Lives as long as the modelinfo. */
const char *vg_modelinfo_text(const struct vg_modelinfo *, const char *group, const char *key);

/* Numbers separated by ';' or ','.  Returns how many there are (0 = no such key); writes up to max.
 * -1: the value is no list of numbers; err names group, key and value. */
int vg_modelinfo_numbers(const struct vg_modelinfo *, const char *group, const char *key, double *values, int max,
                         struct vgk_error *);

/* Texts separated by ';'.  The i-th, trimmed into `text`; false when there are fewer. */
bool vg_modelinfo_item(const struct vg_modelinfo *, const char *group, const char *key, int i, char *text,
                       size_t size);

#endif
