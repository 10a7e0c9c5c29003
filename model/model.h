/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A model: an ONNX file, its sidecar, and what they say about it.  Loaded once; immutable; shared by plans.
 *
 *     struct vg_model *model = NULL;
 *     if (vg_model_load("style3.onnx", &model, &err) == VGK_OK)
 *         ... vg_model_summary(model) ...
 *     vg_model_unref(&model);
 *
 * From file to run: load (onnx.h) -> graph (graph.h) -> bind to a tile size (bind.h: shapes, folding) -> fuse (fuse.h)
 * -> analyse (analyse.h) -> plan (plan.h) -> run (run.h). */
#ifndef VG_MODEL_H
#define VG_MODEL_H

#include "../kernels/frame.h"

#define VG_MAX_WINDOW 256 /* frames, in or out */

struct vg_model;

/* An input that is not the frame: a style's weights, a strength. */
struct vg_parameter {
    const char *name;
    int count;             /* values */
    const float *defaults; /* [count] */
    float low, high;       /* allowed values; low > high = any */
    const char *const *labels; /* [count] names of the values ("starry"), or NULL */
};

struct vg_summary {
    const char *name;      /* the file's base name, or the sidecar's */
    const char *path;
    int opset, n_nodes;
    size_t weight_bytes;
    int scale_num, scale_den; /* output pixels for an input pixel, both axes */
    int align_x, align_y;     /* the total stride: sizes are padded (edge) to a multiple of it */
    int halo_left, halo_right, halo_top, halo_bottom; /* input pixels; of no meaning when global */
    bool global;              /* a value depends on the whole frame (norms, pooling, attention) */
    const char *global_why;   /* the first such operator, in words, or NULL */
    int fixed_width, fixed_height; /* 0 = any */
    struct vgk_pixels in, out; /* channel order, range */
    int window;               /* frames that a run takes; 1 = a model of single frames */
    int emit;                 /* frames that a run gives */
    int hop;                  /* frames that the window moves on for the next run */
    int centre;               /* the window's frame that the first emitted one stands for: emitted frame k stands for
                                 centre + k.  -1: an interpolator: they lie between the window's two frames, frame k at
                                 (k + 1) / (emit + 1) of the way */
    int look_back, look_ahead; /* frames before and behind one that it depends on, as far as the graph tells; states
                                  carry further back */
    int n_states;             /* recurrent states: runs must be in order; vg_run_reset at a cut */
    int n_parameters;
    const struct vg_parameter *parameters;
};

/* Reads the file (and NAME.modelinfo beside NAME.onnx, when there), checks that every operator is
 * known, finds the roles of inputs and outputs and analyses the graph.
 * VGK_ERR_FILE: cannot be read.  VGK_ERR_INVALID: not a model, broken, not an image model.  VGK_ERR_UNSUPPORTED: names
 * the node, its operator and its shapes.  *model is untouched on error. */
enum vgk_status vg_model_load(const char *path, struct vg_model **model, struct vgk_error *err);
struct vg_model *vg_model_ref(struct vg_model *);
void vg_model_unref(struct vg_model **); /* NULL inside is fine; sets it to NULL */

/* Lives as long as the model. */
const struct vg_summary *vg_model_summary(const struct vg_model *);

#endif
