/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fusions: each pattern becomes the ops that it should, and gives what the net gave before; nets that only look like a
 * pattern stay as they are. */
#include "kit.h"
#include "nets.h"

static struct vgk_device *cpu;
static struct nets n;

static int conv(int x, int out) { return nets_conv(&n, x, (struct nets_conv){.out = out, .kernel = 3}); }
static int valid(int x, int out) { return nets_conv(&n, x, (struct nets_conv){.out = out, .kernel = 3, .pad = NETS_VALID}); }
static int unary(int x, const char *type) { return nets_unary(&n, x, type); }
static int by_channel(int x, const char *type) { return nets_scale(&n, type, x, true); }

/* d = x - mean(x);  d / sqrt(mean(d * d) + c), or d * (1 / ...) */
static int hand_norm(int x, bool reciprocal)
{
    int d = nets_binary(&n, "Sub", x, nets_mean(&n, x));
    int root = unary(nets_scale(&n, "Add", nets_mean(&n, nets_binary(&n, "Mul", d, d)), false), "Sqrt");
    return reciprocal ? nets_binary(&n, "Mul", d, unary(root, "Reciprocal")) : nets_binary(&n, "Div", d, root);
}

/* --- patterns: ops left when fused, without views.  A norm of images is 3: moments, merge, normalise. --- */

static int gain(void) { return by_channel(by_channel(conv(0, 3), "Mul"), "Add"); }
static int bias_and_gain(void) { return by_channel(by_channel(conv(0, 3), "Add"), "Mul"); }
static int two_gains(void) { return by_channel(by_channel(conv(0, 3), "Mul"), "Mul"); }
static int relu(void) { return unary(conv(0, 3), "Relu"); }
static int leaky_relu(void) { return unary(conv(0, 3), "LeakyRelu"); }
static int sigmoid(void) { return unary(by_channel(conv(0, 3), "Add"), "Sigmoid"); }
static int hyperbolic(void) { return unary(conv(0, 3), "Tanh"); }
static int prelu(void) { return nets_prelu(&n, conv(0, 3)); }
static int deconv(void) { return unary(by_channel(nets_deconv(&n, nets_unshuffle(&n, 0), 3), "Add"), "Relu"); }
static int silu(void)
{
    int c = conv(0, 3);
    return nets_binary(&n, "Mul", c, unary(c, "Sigmoid"));
}
static int reflect(void) { return nets_conv(&n, 0, (struct nets_conv){.out = 3, .kernel = 5, .pad = NETS_PAD_REFLECT}); }
static int even(void) { return nets_conv(&n, 0, (struct nets_conv){.out = 3, .kernel = 4, .pad = NETS_PAD_REFLECT}); }
static int edge(void) { return nets_conv(&n, 0, (struct nets_conv){.out = 3, .kernel = 5, .pad = NETS_PAD_EDGE}); }
static int zero(void) { return nets_conv(&n, 0, (struct nets_conv){.out = 3, .kernel = 5, .pad = NETS_PAD_ZERO}); }
static int zero_and_zero(void) { return valid(conv(nets_pad(&n, 0, 1, 1, NETS_PAD_ZERO), 4), 3); }
static int residual(void)
{
    int x = conv(0, 3);
    return nets_binary(&n, "Add", x, conv(x, 3));
}
static int residual_relu(void) { return unary(residual(), "Relu"); }
static int relu_residual(void)
{
    int x = conv(0, 3);
    return nets_binary(&n, "Add", unary(conv(x, 3), "Relu"), x);
}
static int norm_relu(void) { return conv(unary(nets_norm(&n, conv(0, 4), 2), "Relu"), 3); }
static int norm_residual(void)
{
    int x = conv(0, 3);
    return nets_binary(&n, "Add", x, unary(nets_norm(&n, conv(x, 3), 0), "Relu"));
}
static int norm_by_hand(void) { return by_channel(by_channel(hand_norm(conv(0, 3), false), "Mul"), "Add"); }
static int norm_by_hand_2(void) { return unary(hand_norm(conv(0, 3), true), "Relu"); }

/* --- what only looks like one --- */

static int used_twice(void)
{
    int c = conv(0, 3);
    return nets_binary(&n, "Mul", unary(c, "Relu"), c);
}
static int one_channel(void) { return nets_binary(&n, "Add", conv(0, 3), conv(0, 1)); }
static int gain_behind_relu(void) { return by_channel(unary(conv(0, 3), "Relu"), "Mul"); }
static int gain_behind_residual(void) { return by_channel(residual(), "Mul"); }
static int divided(void) { return by_channel(conv(0, 3), "Div"); }
static int two_acts(void) { return unary(unary(conv(0, 3), "Relu"), "Sigmoid"); }
static int reflect_and_zero(void) { return valid(conv(nets_pad(&n, 0, 1, 1, NETS_PAD_REFLECT), 4), 3); }
static int pad_relu(void) { return valid(unary(nets_pad(&n, 0, 1, 1, NETS_PAD_EDGE), "Sigmoid"), 3); }
static int other_sigmoid(void)
{
    int c = conv(0, 3);
    return nets_binary(&n, "Mul", c, unary(conv(0, 3), "Sigmoid"));
}
static int mean_of_another(void)
{
    int c = conv(0, 3), d = nets_binary(&n, "Sub", c, nets_mean(&n, 0));
    return nets_binary(&n, "Div", d,
                       unary(nets_scale(&n, "Add", nets_mean(&n, nets_binary(&n, "Mul", d, d)), false), "Sqrt"));
}
static int twice_itself(void)
{
    int c = conv(0, 3);
    return nets_binary(&n, "Add", c, c);
}

static int work(const struct vg_net *net)
{
    int count = 0;
    for (int i = 0; i < net->n_ops; i++)
        count += !net->ops[i].view && !net->ops[i].dead;
    return count;
}

static void check(const char *name, int (*build)(void), int want)
{
    struct vgk_error err = {{0}};
    struct nets_run runs[2] = {{.run = NULL}};
    kit_seed(11);
    nets_begin(&n, 3);
    struct vg_model *m = nets_end(&n, build(), &err);
    expectf(m, "%s: %s", name, err.text);
    if (!m)
        return;
    enum vgk_status s = VGK_OK;
    for (int i = 0; i < 2 && !s; i++) {
        struct nets_how how = {.unfused = i, .exact = true};
        s = nets_open(&runs[i], m, cpu, 18, 22, &how, &err);
    }
    expectf(s == VGK_OK, "%s: %s", name, err.text);
    if (!s) {
        struct vgk_tensor in = nets_input(&runs[0]), a = nets_output(&runs[0]), b = nets_output(&runs[1]);
        int fused = work(nets_net(&runs[0])), plain = work(nets_net(&runs[1]));
        char *text = vg_net_text(nets_net(&runs[0]));
        expectf(fused == want, "%s: %d ops, expected %d (%d before):\n%s", name, fused, want, plain, text);
        free(text);
        s = nets_tensors(&runs[0], &in, &a, &err);
        s = s ? s : nets_tensors(&runs[1], &in, &b, &err);
        expectf(s == VGK_OK, "%s: %s", name, err.text);
        double worst = 0;
        for (int64_t i = 0; i < vgk_tensor_count(&a); i++)
            worst = fmax(worst, fabs(((float *)a.data)[i] - ((float *)b.data)[i]));
        expectf(worst < 2e-5, "%s: off by %g", name, worst);
        free(in.data);
        free(a.data);
        free(b.data);
    }
    for (int i = 0; i < 2; i++)
        nets_close(&runs[i]);
    vg_model_unref(&m);
}

#define CHECK(f, ops) check(#f, f, ops)

static void fused(void)
{
    CHECK(gain, 1);
    CHECK(bias_and_gain, 1);
    CHECK(two_gains, 1);
    CHECK(relu, 1);
    CHECK(leaky_relu, 1);
    CHECK(sigmoid, 1);
    CHECK(hyperbolic, 1);
    CHECK(prelu, 1);
    CHECK(deconv, 2);
    CHECK(silu, 1);
    CHECK(reflect, 1);
    CHECK(even, 1);
    CHECK(edge, 1);
    CHECK(zero, 1);
    CHECK(zero_and_zero, 2);
    CHECK(residual, 2);
    CHECK(residual_relu, 2);
    CHECK(relu_residual, 2);
    CHECK(norm_relu, 5);
    CHECK(norm_residual, 5);
    CHECK(norm_by_hand, 4);
    CHECK(norm_by_hand_2, 4);
}

static void left_alone(void)
{
    CHECK(used_twice, 3);
    CHECK(one_channel, 3);
    CHECK(gain_behind_relu, 2);
    CHECK(gain_behind_residual, 3);
    CHECK(divided, 2);
    CHECK(two_acts, 2);
    CHECK(reflect_and_zero, 3);
    CHECK(pad_relu, 3);
    CHECK(other_sigmoid, 3);
    CHECK(mean_of_another, 8);
    CHECK(twice_itself, 2);
}

int main(void)
{
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &cpu, NULL);
    run(fused);
    run(left_alone);
    vgk_cpu.close(&cpu);
    return kit_done();
}
