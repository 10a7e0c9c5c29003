/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Small image models made on the spot, and programs and pictures to run them with.
 *
 *     struct nets n;
 *     nets_begin(&n, 3);                                           v0, the frame
 *     int a = nets_conv(&n, 0, (struct nets_conv){.out = 8, .kernel = 3});
 *     struct vg_model *model = nets_end(&n, nets_conv(&n, a, (struct nets_conv){.out = 3, .kernel = 3}), &err);
 *
 * Values are numbered; weights are random, from kit_random, and keep values about as large as they came. */
#ifndef NETS_H
#define NETS_H

#include "model/plan_internal.h"
#include "model/run.h"
#include "model/stitch.h"

struct nets_value {
    int channels, num, den; /* rows and columns = the frame's * num / den */
};

#define NETS_VALUES 128
struct nets {
    struct ow *file;
    int n, n_constants, n_parameters, parameter; /* the last of nets_parameter */
    struct nets_value v[NETS_VALUES];
};

void nets_begin(struct nets *, int channels);
void nets_also(struct nets *, int x); /* an output besides that of nets_end */
/* Closes the file and loads it.  The model keeps its file in memory. */
struct vg_model *nets_end(struct nets *, int output, struct vgk_error *);
/* The same with a file that stays. */
struct vg_model *nets_save(struct nets *, int output, const char *path, struct vgk_error *);

enum nets_pad { NETS_ZERO /* in the convolution */, NETS_PAD_ZERO /* as nodes */, NETS_PAD_REFLECT, NETS_PAD_EDGE,
    NETS_VALID = -1 /* none: not the size of the frame any more */ };
int nets_pad(struct nets *, int x, int before, int behind, enum nets_pad);
struct nets_conv {
    int out, kernel, stride, dilation, groups; /* 0 reads as 1 */
    enum nets_pad pad;
    bool no_bias;
};
int nets_conv(struct nets *, int x, struct nets_conv); /* keeps the size, or divides it by the stride */
int nets_deconv(struct nets *, int x, int out);        /* k 4, stride 2 */
int nets_unary(struct nets *, int x, const char *type);
int nets_binary(struct nets *, const char *type, int x, int y); /* the channels of x, or of y when x has one */
int nets_scale(struct nets *, const char *type, int x, bool each_channel); /* with a constant */
int nets_prelu(struct nets *, int x);
int nets_concat(struct nets *, int x, int y);
int nets_channels(struct nets *, int x, int begin, int count);
int nets_resize(struct nets *, int x, int num, int den, const char *mode, const char *coordinates);
int nets_shuffle(struct nets *, int x, const char *mode); /* 4 channels to 2 x 2 pixels */
int nets_unshuffle(struct nets *, int x);
int nets_pool(struct nets *, int x, const char *type);    /* 2 x 2, stride 2 */
int nets_quantized(struct nets *, int x);                 /* to 8 bits and back */
int nets_mean(struct nets *, int x);                      /* over all pixels: the result has no size */
/* Mean and deviation over all pixels written out as arithmetic, with a gain and an offset as adaptive norms have them. */
int nets_adain(struct nets *, int x);
int nets_norm(struct nets *, int x, int groups);          /* 0 = instance norm */
int nets_parameter(struct nets *, const char *name, int channels); /* an input [1,channels,1,1] */

/* A model from a file's bytes, which stay with the caller; from a file that is written (onnx_write.h), and freed. */
enum vgk_status nets_load(const uint8_t *data, size_t size, struct vg_model **, struct vgk_error *);
struct vg_model *nets_finish(struct ow *, struct vgk_error *);
/* FOLDER/NAME.onnx, or the failure told and NULL. */
struct vg_model *nets_shipped(const char *folder, const char *name);

/* A small net of random layers, the same for the same seed, which is kit_random's from then on.  global: with norms,
 * means and a parameter too. */
struct vg_model *nets_random(int seed, bool global, struct vgk_error *);

/* A net of a few layers with an instance norm and a group norm that a residual goes around: what bands have to keep. */
struct vg_model *nets_with_norms(struct vgk_error *);

/* A model at one size, laid out in a given way, without the planner's choice. */
struct nets_how {
    int bands;
    const bool *recompute, *spill;
    bool unfused, exact, stream;
    int rows; /* of the frame that this is a tile of; 0 = it is the frame */
};
struct nets_run {
    struct vg_plan plan;
    struct vg_run *run;
};
/* The error is that of vg_model_bind, vg_program_make or vg_run_open. */
enum vgk_status nets_open(struct nets_run *, struct vg_model *, struct vgk_device *, int width, int height,
                          const struct nets_how *, struct vgk_error *);
void nets_close(struct nets_run *);
struct vg_net *nets_net(const struct nets_run *);

/* The model's input and output as dense tensors with data of their own; the input is filled with random numbers. */
struct vgk_tensor nets_input(const struct nets_run *);
struct vgk_tensor nets_output(const struct nets_run *);
/* Only the frame goes in, only the picture comes out. */
enum vgk_status nets_tensors(struct nets_run *, const struct vgk_tensor *in, struct vgk_tensor *out, struct vgk_error *);

/* A picture with planes of its own. */
struct nets_picture {
    struct vgk_frame f;
    size_t bytes;
    uint8_t *data;
};
struct nets_picture nets_picture(enum vgk_frame_layout, int width, int height, bool random);
struct vgk_colour nets_colour(enum vgk_frame_layout);
struct vg_layout nets_layout(enum vgk_frame_layout);
struct vg_picture nets_planes(const struct nets_picture *);
/* A frame through all tiles of the plan's grid, as the elements do it.  `out` has the whole frame's size. */
enum vgk_status nets_frame(struct vg_run *, const struct vg_grid *, const struct nets_picture *in,
                           struct nets_picture *out, struct vgk_error *);
/* The same for a window of n_in frames, which gives n_out. */
enum vgk_status nets_window(struct vg_run *, const struct vg_grid *, const struct nets_picture *in, int n_in,
                            struct nets_picture *out, int n_out, struct vgk_error *);

/* By how much two pictures of one size differ at most, in steps of 255; *n (unless NULL): so many bytes do. */
int nets_difference(const struct nets_picture *, const struct nets_picture *, int *n);

/* A plan of the planner's, and its run. */
struct nets_planned {
    struct vg_plan *plan;
    struct vg_run *run;
    size_t bytes; /* that the run takes */
};
/* Overlaps are as the model needs.  A plan must take no memory of the device, and a run what its plan says. */
enum vgk_status nets_plan(struct nets_planned *, struct vg_model *, const struct vgk_backend *, struct vgk_device *,
                          struct vg_plan_request, struct vgk_error *);
void nets_unplan(struct nets_planned *);

/* One on the CPU that plays packed frames. */
struct nets_player {
    struct vg_plan *plan;
    struct vg_run *run;
    struct nets_picture out; /* of the last frame */
};
/* False: the failure was told.  Stop it in any case. */
bool nets_start(struct nets_player *, struct vg_model *, struct vgk_device *cpu, const struct vg_plan_request *);
void nets_stop(struct nets_player *);
void nets_play(struct nets_player *, const struct nets_picture *in);

#endif
