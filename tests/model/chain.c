/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Trees of pointwise ops become chains, some of them a part of a convolution, and nothing changes but the number of ops. */
#include "kit.h"
#include "nets.h"
#include "onnx_write.h"

enum { W = 37, H = 48 };

static void conv(struct ow *m, const char *in, const char *out)
{
    char text[64];
    snprintf(text, sizeof text, "%s,w", in);
    struct pb *node = ow_node("Conv", "conv", text, out);
    ow_ints(node, "pads", 4, (int64_t[]){1, 1, 1, 1});
    ow_add(m, node);
}

/* a = conv(x); b = (a + x) * (sigmoid(a) - 0.5); y = b * 2 + exp(b): b has two readers, so it is the end of one chain and
 * the begin of another; the first is what VGK_ACT_GATE does. */
static struct vg_model *model_make(void)
{
    static float w[3 * 3 * 9];
    const float half = 0.5f, two = 2;
    struct ow *m = ow_new(17);
    struct vgk_error err = {{0}};
    kit_seed(1);
    for (size_t i = 0; i < sizeof w / sizeof *w; i++)
        w[i] = (float)kit_real(-0.3, 0.3);
    ow_input(m, "x", 1, "1,3,h,w");
    ow_output(m, "y", 1, "1,3,h,w");
    ow_floats_tensor(m, "w", 4, (int64_t[]){3, 3, 3, 3}, w);
    ow_floats_tensor(m, "half", 1, (int64_t[]){1}, &half);
    ow_floats_tensor(m, "two", 1, (int64_t[]){1}, &two);
    conv(m, "x", "a");
    ow_add(m, ow_node("Sigmoid", "", "a", "s"));
    ow_add(m, ow_node("Sub", "", "s,half", "t"));
    ow_add(m, ow_node("Add", "", "x,a", "r"));
    ow_add(m, ow_node("Mul", "", "r,t", "b"));
    ow_add(m, ow_node("Mul", "", "b,two", "c"));
    ow_add(m, ow_node("Exp", "", "b", "e"));
    ow_add(m, ow_node("Add", "", "c,e", "y"));
    struct vg_model *model = nets_finish(m, &err);
    expectf(model, "%s", err.text);
    if (!model)
        exit(1);
    return model;
}

static void rounded(struct ow *m, const char *in, const char *out, const char *step_zero)
{
    char text[64], between[16];
    snprintf(between, sizeof between, "q%s", out);
    snprintf(text, sizeof text, "%s,%s", in, step_zero);
    ow_add(m, ow_node("QuantizeLinear", "", text, between));
    snprintf(text, sizeof text, "%s,%s", between, step_zero);
    ow_add(m, ow_node("DequantizeLinear", "", text, out));
}

/* a = relu(conv(x)), rounded for each of its two readers; b = conv(a) rounded; y = a + b rounded. */
static struct vg_model *quantised_make(void)
{
    static float w[3 * 3 * 9];
    const float step = 1 / 100.0f, wide = 1 / 30.0f;
    const uint8_t none = 0;
    const int8_t zero = -7;
    struct ow *m = ow_new(17);
    struct vgk_error err = {{0}};
    kit_seed(1);
    for (size_t i = 0; i < sizeof w / sizeof *w; i++)
        w[i] = (float)kit_real(-0.5, 0.5);
    ow_input(m, "x", 1, "1,3,h,w");
    ow_output(m, "y", 1, "1,3,h,w");
    ow_floats_tensor(m, "w", 4, (int64_t[]){3, 3, 3, 3}, w);
    ow_floats_tensor(m, "s", 0, NULL, &step);
    ow_floats_tensor(m, "t", 0, NULL, &wide);
    ow_initializer(m, ow_raw("zs", 2, 0, NULL, &none, 1));
    ow_initializer(m, ow_raw("zt", 3, 0, NULL, &zero, 1));
    conv(m, "x", "c");
    ow_add(m, ow_node("Relu", "", "c", "h"));
    rounded(m, "h", "a", "s,zs");
    rounded(m, "h", "again", "s,zs");
    conv(m, "a", "d");
    rounded(m, "d", "b", "t,zt");
    ow_add(m, ow_node("Add", "", "again,b", "e"));
    rounded(m, "e", "y", "t,zt");
    struct vg_model *model = nets_finish(m, &err);
    expectf(model, "%s", err.text);
    if (!model)
        exit(1);
    return model;
}

/* Plays a picture; *kinds counts ops by kind. */
static void play(struct vg_model *model, const struct vgk_backend *backend, struct vgk_device *device, int bands,
                 float *out, int *kinds)
{
    static float in[3 * H * W];
    struct vgk_error err = {{0}};
    struct vg_plan *plan = NULL;
    struct vg_run *run = NULL;
    struct vg_plan_request r = {.width = W, .height = H, .overlap_x = -1, .overlap_y = -1, .bands = bands};
    expectf(vg_plan_make(model, backend, device, &r, &plan, &err) == VGK_OK, "%s", err.text);
    if (!plan || vg_run_open(plan, &run, &err))
        exit(1);
    for (int i = 0; i < plan->program->n_steps; i++)
        if (plan->program->steps[i].type == VG_CALL_OP)
            kinds[plan->program->steps[i].op.kind]++;
    kit_seed(3);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        in[i] = (float)kit_real(0, 1);
    struct vgk_tensor x = vgk_tensor_make(VGK_F32, 4, (int64_t[]){1, 3, H, W}, VGK_ROW_MAJOR), y = x;
    x.data = in;
    y.data = out;
    expectf(vg_run_tensors(run, &x, 1, &y, 1, &err) == VGK_OK, "%s", err.text);
    vg_run_close(&run);
    vg_plan_free(&plan);
}

static void same_bits(void)
{
    static float single[3 * H * W], chained[3 * H * W], gated[3 * H * W], banded[3 * H * W];
    int kinds[4][VGK_OP_CHAIN + 1] = {{0}};
    struct vgk_backend plain = vgk_cpu, chains = vgk_cpu;
    struct vgk_device *device = NULL;
    plain.chains = plain.gates = chains.gates = false;
    expect(vgk_cpu.open(&(struct vgk_device_options){.threads = 2}, &device, NULL) == VGK_OK);
    struct vg_model *model = model_make();
    play(model, &plain, device, 1, single, kinds[0]);
    play(model, &chains, device, 1, chained, kinds[1]);
    play(model, &vgk_cpu, device, 1, gated, kinds[2]);
    play(model, &vgk_cpu, device, 4, banded, kinds[3]);
    expect(kinds[0][VGK_OP_BINARY] == 5 && kinds[0][VGK_OP_UNARY] == 2 && kinds[0][VGK_OP_CHAIN] == 0);
    expect(kinds[1][VGK_OP_BINARY] == 0 && kinds[1][VGK_OP_UNARY] == 0 && kinds[1][VGK_OP_CHAIN] == 2);
    expect(kinds[2][VGK_OP_BINARY] == 0 && kinds[2][VGK_OP_UNARY] == 0 && kinds[2][VGK_OP_CHAIN] == 1);
    expect(kinds[3][VGK_OP_CHAIN] >= 4);
    expect(!memcmp(single, chained, sizeof single) && !memcmp(single, gated, sizeof single) &&
           !memcmp(single, banded, sizeof single));
    vg_model_unref(&model);
    vgk_cpu.close(&device);
}

/* To 8 bits and back is one op, the same for two readers, and a part of the convolution before it. */
static void rounds(void)
{
    static float single[3 * H * W], fused[3 * H * W], banded[3 * H * W];
    int kinds[3][VGK_OP_CHAIN + 1] = {{0}};
    struct vgk_backend plain = vgk_cpu;
    struct vgk_device *device = NULL;
    plain.chains = plain.gates = false;
    expect(vgk_cpu.open(&(struct vgk_device_options){.threads = 2}, &device, NULL) == VGK_OK);
    struct vg_model *model = quantised_make();
    play(model, &plain, device, 1, single, kinds[0]);
    play(model, &vgk_cpu, device, 1, fused, kinds[1]);
    play(model, &vgk_cpu, device, 4, banded, kinds[2]);
    expect(kinds[0][VGK_OP_CONV] == 2 && kinds[0][VGK_OP_UNARY] == 3 && kinds[0][VGK_OP_BINARY] == 1);
    expect(kinds[1][VGK_OP_CONV] == 2 && kinds[1][VGK_OP_UNARY] == 0 && kinds[1][VGK_OP_CHAIN] == 1);
    for (int i = 0; i < 3; i++)
        expect(kinds[i][VGK_OP_QUANTIZE] == 0 && kinds[i][VGK_OP_DEQUANTIZE] == 0);
    float low = single[0], high = low;
    for (int i = 0; i < 3 * H * W; i++) {
        double steps = (double)single[i] * 30;
        expectf(fabs(steps - nearbyint(steps)) < 1e-3, "%g is no whole number of steps", (double)single[i]);
        low = fminf(low, single[i]), high = fmaxf(high, single[i]);
    }
    expect(low < 0 && high > 0.5f);
    expect(!memcmp(single, fused, sizeof single) && !memcmp(single, banded, sizeof single));
    vg_model_unref(&model);
    vgk_cpu.close(&device);
}

int main(void)
{
    run(same_bits);
    run(rounds);
    return kit_done();
}
