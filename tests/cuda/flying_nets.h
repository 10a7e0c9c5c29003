/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Small models in time for tests of flights: windows, between two frames, with a state. */
#ifndef FLYING_NETS_H
#define FLYING_NETS_H

#include "kit.h"
#include "nets.h"
#include "onnx_write.h"

/* Window of `in` frames to `out`. */
static inline struct vg_model *window_model(int in, int out)
{
    struct vgk_error err = {{0}};
    struct nets n;
    nets_begin(&n, 3 * in);
    int a = nets_unary(&n, nets_conv(&n, 0, (struct nets_conv){.out = 8, .kernel = 3}), "Relu");
    struct vg_model *m = nets_end(&n, nets_conv(&n, a, (struct nets_conv){.out = 3 * out, .kernel = 3}), &err);
    expectf(m && vg_model_summary(m)->window == in && vg_model_summary(m)->emit == out, "%s", err.text);
    return m;
}

/* Two pictures and a time in, the picture then out. */
static inline struct vg_model *between_model(void)
{
    struct vgk_error err = {{0}};
    struct ow *m = ow_new(17);
    ow_input(m, "a", 1, "1,3,h,w");
    ow_input(m, "b", 1, "1,3,h,w");
    ow_input(m, "t", 1, "1");
    ow_add(m, ow_node("Sub", "way", "b,a", "d"));
    ow_add(m, ow_node("Mul", "part", "d,t", "e"));
    ow_add(m, ow_node("Add", "there", "a,e", "y"));
    ow_output(m, "y", 1, "1,3,h,w");
    struct vg_model *model = nets_finish(m, &err);
    expectf(model && vg_model_summary(model)->centre < 0, "%s", err.text);
    return model;
}

/* Half the frame, half the mean of what is around in the state before, which is what it shows, too.  bright: what is bright is
 * more than a half can hold on the way. */
static inline struct vg_model *state_model(bool bright)
{
    struct vgk_error err = {{0}};
    struct ow *m = ow_new(17);
    float w[3 * 3 * 9] = {0}, one[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, large = bright ? 1e5f : 4, small = .5f / large;
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 9; i++)
            w[(c * 3 + c) * 9 + i] = .5f / 9;
    ow_input(m, "x", 1, "1,3,h,w");
    ow_input(m, "state_in", 1, "1,3,h,w");
    ow_floats_tensor(m, "w", 4, (int64_t[]){3, 3, 3, 3}, w);
    ow_floats_tensor(m, "one", 4, (int64_t[]){3, 3, 1, 1}, one);
    ow_floats_tensor(m, "large", 1, (int64_t[]){1}, &large);
    ow_floats_tensor(m, "small", 1, (int64_t[]){1}, &small);
    struct pb *blur = ow_node("Conv", "blur", "state_in,w", "before");
    ow_ints(blur, "pads", 4, (int64_t[]){1, 1, 1, 1});
    ow_add(m, blur);
    ow_add(m, ow_node("Mul", "more", "x,large", "a"));
    ow_add(m, ow_node("Conv", "same", "a,one", "b"));
    ow_add(m, ow_node("Relu", "positive", "b", "c"));
    ow_add(m, ow_node("Conv", "again", "c,one", "d"));
    ow_add(m, ow_node("Mul", "less", "d,small", "now"));
    ow_add(m, ow_node("Add", "sum", "before,now", "state_out"));
    ow_add(m, ow_node("Relu", "show", "state_out", "y"));
    ow_output(m, "y", 1, "1,3,h,w");
    ow_output(m, "state_out", 1, "1,3,h,w");
    struct vg_model *model = nets_finish(m, &err);
    expectf(model && vg_model_summary(model)->n_states == 1, "%s", err.text);
    return model;
}

#endif
