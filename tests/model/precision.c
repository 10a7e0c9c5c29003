/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Half precision on the CPU's plain reference: what is stored in which type, how far it is from f32, and the tiles that
 * overflow. */
#include "kit.h"
#include "nets.h"
#include "onnx_write.h"
#include "overflow.h"

static const char *models_dir;
static struct vgk_device *cpu;

static struct nets_planned planned(struct vg_model *m, struct vg_plan_request r)
{
    struct nets_planned p;
    struct vgk_error err = {{0}};
    expectf(nets_plan(&p, m, &vgk_cpu, cpu, r, &err) == VGK_OK, "%s", err.text);
    return p;
}

static void near_single(void)
{
    const char *const names[] = {"style3", "upscale2x"};
    for (int i = 0; i < 2; i++) {
        struct vg_model *m = nets_shipped(models_dir, names[i]);
        struct vgk_error err = {{0}};
        struct vg_plan_request r = {.width = 36, .height = 28, .precision = VG_PRECISION_FP16};
        struct nets_planned half = planned(m, r);
        r.precision = VG_PRECISION_AUTO; /* single, on the CPU */
        struct nets_planned single = planned(m, r);
        const struct vg_axis *x = &vg_plan_info(half.plan)->grid->x, *y = &vg_plan_info(half.plan)->grid->y;
        struct nets_picture in = nets_picture(VGK_FRAME_PACKED, 36, 28, true);
        struct nets_picture a = nets_picture(VGK_FRAME_PACKED, vg_axis_scale(x, 36), vg_axis_scale(y, 28), false), b = a;
        b.data = calloc(1, b.bytes);
        b.f.plane[0] = b.data;
        expect(vg_plan_info(half.plan)->precision == VG_PRECISION_FP16 &&
               vg_plan_info(single.plan)->precision == VG_PRECISION_FP32);
        expect(half.bytes == vg_plan_info(half.plan)->arena_bytes && single.bytes == vg_plan_info(single.plan)->arena_bytes);
        /* Half the bytes of activations, but for the few in f32 (the reference's scratch counts in both). */
        expectf(half.plan->program->floor < single.plan->program->floor * 3 / 4 || i == 0, "%s: %zu, %zu", names[i],
                half.plan->program->floor, single.plan->program->floor);
        expect(nets_frame(half.run, vg_plan_info(half.plan)->grid, &in, &a, &err) == VGK_OK);
        expect(nets_frame(single.run, vg_plan_info(single.plan)->grid, &in, &b, &err) == VGK_OK);
        int d = nets_difference(&a, &b, NULL);
        expectf(d >= 1 && d <= 2, "%s: %d steps of 255 apart", names[i], d); /* 0: it did not run in half */
        struct vg_run_info info;
        vg_run_info(half.run, &info);
        expect(info.rescued == 0);
        nets_unplan(&half);
        nets_unplan(&single);
        vg_model_unref(&m);
        free(in.data), free(a.data), free(b.data);
    }
}

static void types(void)
{
    struct nets n;
    struct vgk_error err = {{0}};
    nets_begin(&n, 3);
    int a = nets_conv(&n, 0, (struct nets_conv){.out = 8, .kernel = 3});
    int e = nets_unary(&n, nets_unary(&n, a, "Tanh"), "Exp");
    int mean = nets_mean(&n, e);
    int g = nets_resize(&n, nets_binary(&n, "Mul", a, mean), 2, 1, "linear", "half_pixel");
    struct vg_model *m = nets_end(&n, nets_conv(&n, g, (struct nets_conv){.out = 3, .kernel = 3}), &err);
    expectf(m != NULL, "%s", err.text);
    struct vg_net *net = NULL;
    expect(vg_model_bind(m, 16, 16, 0, true, VG_NORM_OWN, &net, &err) == VGK_OK);
    for (int frames = 0; frames < 2; frames++) {
        if (frames) {
            vg_net_free(&net);
            expect(vg_model_bind(m, 16, 16, 0, true, VG_NORM_OWN, &net, &err) == VGK_OK);
        }
        expect(vg_net_halve(net, m->frame_output, frames) == VGK_OK);
        for (int i = 0; i < net->n_ops; i++) {
            const struct vg_net_op *op = &net->ops[i];
            enum vgk_type in = op->in[0].t.type, out = op->out.t.type;
            if (op->dead || op->view)
                continue;
            const char *node = op->node;
            if (op->op.kind == VGK_OP_REDUCE || (op->op.kind == VGK_OP_UNARY && op->op.p.unary.fn == VGK_EXP))
                expectf(in == VGK_F32 && out == VGK_F32, "%s", node);
            else if (op->op.kind == VGK_OP_RESIZE)
                expectf(in == VGK_F16 && out == VGK_F16, "%s", node);
            else if (op->op.kind == VGK_OP_CONV && op->in[0].value == net->inputs[0])
                expectf(in == (frames ? VGK_F16 : VGK_F32) && out == VGK_F16, "%s", node);
            else if (op->op.kind == VGK_OP_CONV)
                expectf(in == VGK_F16 && out == (frames ? VGK_F16 : VGK_F32), "%s", node);
        }
    }
    vg_net_free(&net);
    vg_model_unref(&m);
}

static void overflow(void)
{
    struct vgk_error err = {{0}};
    struct vg_model *m = overflow_model(&err);
    expectf(m != NULL, "%s", err.text);
    struct vg_plan_request r = {.width = 96, .height = 32, .tile_width = 40, .tile_height = 32, .precision = VG_PRECISION_FP16};
    struct nets_planned half = planned(m, r);
    r.precision = VG_PRECISION_FP32;
    struct nets_planned single = planned(m, r);
    expect(half.bytes == vg_plan_info(half.plan)->arena_bytes);
    expect(vg_plan_info(half.plan)->rescue_bytes > 0 && vg_plan_info(single.plan)->rescue_bytes == 0);
    overflow_check(half.run, vg_plan_info(half.plan)->grid, single.run, vg_plan_info(single.plan)->grid);
    /* With less memory than the rescue needs there is no plan, and the text says how much would do. */
    struct vg_plan *plan = NULL;
    r.precision = VG_PRECISION_FP16;
    r.overlap_x = r.overlap_y = -1;
    r.max_bytes = half.bytes - 1;
    char figure[32];
    snprintf(figure, sizeof figure, "%zu", half.bytes);
    expectf(vg_plan_make(m, &vgk_cpu, cpu, &r, &plan, &err) == VGK_ERR_NOMEM && strstr(err.text, figure), "%s", err.text);
    vg_plan_free(&plan);
    nets_unplan(&half);
    nets_unplan(&single);
    vg_model_unref(&m);
}

/* The rescue shares the activations' bytes, in bands if it takes them. */
static void rescue_in_bands(void)
{
    struct vg_model *m = nets_shipped(models_dir, "upscale2x");
    struct vg_plan_request r = {.width = 64, .height = 64, .precision = VG_PRECISION_FP16};
    struct nets_planned half = planned(m, r);
    const struct vg_program *l = half.plan->program, *rescue = half.plan->rescue;
    expect(half.bytes == half.plan->norms.arena);
    expectf(half.plan->norms.arena == l->weights + l->persistent + rescue->weights + rescue->persistent +
                                          (rescue->activations > l->activations ? rescue->activations : l->activations),
            "%zu", half.plan->norms.arena);
    nets_unplan(&half);
    vg_model_unref(&m);
}

int main(int argc, char **argv)
{
    models_dir = argc > 1 ? argv[1] : "pipelines/models";
    vgk_cpu.open(&(struct vgk_device_options){.threads = 2}, &cpu, NULL);
    kit_seed(5);
    run(near_single);
    run(types);
    run(overflow);
    run(rescue_in_bands);
    expect(vgk_cpu.bytes_now(cpu) == 0);
    vgk_cpu.close(&cpu);
    return kit_done();
}
