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
 *     input=image                 which input is the frame; several (x0;x1): a frame each, the oldest first
 *     output=output
 *     layout=NCTHW                of the frame's input, where its dimensions leave a choice; also NCHW, NHWC, NTCHW, NTHWC
 *     window=5                    frames that a run takes, where the model takes any number (default 8)
 *     hop=1                       frames that the window moves on (default: as many as come out)
 *     centre=2                    the frame of the window that the first one that comes out stands for; -1: it lies between
 *                                 the two (default: the middle; of two frames: -1)
 *     state=h_in:h_out;prev=x     inputs that take what an output gave, or another input got, in the run before
 *     state-init=zero             what states begin with: zero or first (the first frame); for one: h_in-init
 *     h_in-scale=1/2              a state's size, the frame's times this (default: what fits)
 *     range=0;1                   values of black and white in the input (0;255 and -1;1 are usual too)
 *     output-range=0;1
 *     channels=RGB                or BGR; output-channels the same
 *     mean=0.485;0.456;0.406      instead of range: tensor = (rgb - mean) / std
 *     std=0.229;0.224;0.225
 *     [vidgen parameter style_weights]
 *     default=1;0;0
 *     range=0;1
 *     labels=starry;painted;pastel
 *     size=40;48                  width and height of an input of an open size that is not the frame's
 *
 * roles.h tells how inputs and outputs are found without these. */
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
