/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Models for which Winograd's rounding is too much take direct products by themselves. */
#include "kit.h"
#include "model/model_internal.h"
#include "model/trial.h"
#include "nets.h"
#include "onnx_write.h"

enum { W = 50, H = 40, CHANNELS = 16, MOST_FRAMES = 3 };

static struct vgk_device *device, *exact_device;

/* Of the last of so many frames: 1x1 (3 -> 16: r g b r r g b r ...), 3x3 (16 -> 16), 1x1 (16 -> 3: the first ones).  The 3x3's first channels are
 * gain * (r - r) + a blurred r, g, b: a difference of large numbers, which is 0 exactly as a power of two is a gain that
 * does not round; but in the blocks nothing is exact. */
static struct vg_model *model_make(int frames, float gain)
{
    static float first[CHANNELS * 3 * MOST_FRAMES], middle[CHANNELS * CHANNELS * 9], last[3 * CHANNELS];
    struct ow *m = ow_new(17);
    struct vgk_error err = {{0}};
    memset(middle, 0, sizeof middle);
    const int64_t channels = 3 * frames;
    for (int o = 0; o < CHANNELS; o++)
        for (int i = 0; i < channels; i++)
            first[o * channels + i] = i == channels - 3 + o % 4 % 3;
    for (int o = 0; o < 3; o++) {
        float *w = middle + o * CHANNELS * 9;
        w[0 * 9 + 4] = gain;
        w[3 * 9 + 4] = -gain; /* channel 3 is r again */
        for (int t = 0; t < 9; t++)
            w[(4 + o) * 9 + t] += 1.0f / 9;
        last[o * CHANNELS + o] = 1;
    }
    char dims[32];
    snprintf(dims, sizeof dims, "1,%d,h,w", (int)channels);
    ow_input(m, "x", 1, dims);
    ow_output(m, "y", 1, "1,3,h,w");
    ow_floats_tensor(m, "w1", 4, (int64_t[]){CHANNELS, channels, 1, 1}, first);
    ow_floats_tensor(m, "w2", 4, (int64_t[]){CHANNELS, CHANNELS, 3, 3}, middle);
    ow_floats_tensor(m, "w3", 4, (int64_t[]){3, CHANNELS, 1, 1}, last);
    ow_add(m, ow_node("Conv", "first", "x,w1", "a"));
    struct pb *conv = ow_node("Conv", "middle", "a,w2", "b");
    ow_ints(conv, "pads", 4, (int64_t[]){1, 1, 1, 1});
    ow_add(m, conv);
    ow_add(m, ow_node("Conv", "last", "b,w3", "y"));
    struct vg_model *model = nets_finish(m, &err);
    expectf(model, "%s", err.text);
    if (!model)
        exit(1);
    return model;
}

static struct vg_plan *plan_make(struct vg_model *model, struct vgk_device *dev, int tile)
{
    struct vgk_error err = {{0}};
    struct vg_plan *plan = NULL;
    struct vg_plan_request r = {.width = W, .height = H, .overlap_x = -1, .overlap_y = -1, .tile_width = tile, .tile_height = tile};
    expectf(vg_plan_make(model, &vgk_cpu, dev, &r, &plan, &err) == VGK_OK, "%s", err.text);
    if (!plan)
        exit(1);
    return plan;
}

static void play(const struct vg_plan *plan, float *out)
{
    static float in[3 * MOST_FRAMES * H * W];
    kit_seed(3);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        in[i] = (float)kit_real(0, 1);
    struct vgk_tensor x = vgk_tensor_make(VGK_F32, 4, (int64_t[]){1, 3, H, W}, VGK_ROW_MAJOR), y = x;
    x.dim[1] = 3 * vg_plan_info(plan)->window;
    struct vg_run *run = NULL;
    struct vgk_error err = {{0}};
    x.data = in;
    y.data = out;
    expectf(vg_run_open(plan, &run, &err) == VGK_OK, "%s", err.text);
    expectf(vg_run_tensors(run, &x, 1, &y, 1, &err) == VGK_OK, "%s", err.text);
    vg_run_close(&run);
}

static void check(int frames, float gain, bool refused)
{
    static float by_itself[3 * H * W], exact[3 * H * W];
    struct vg_model *model = model_make(frames, gain);
    struct vg_plan *want = plan_make(model, exact_device, 0);
    expect(vg_plan_info(want)->winograd_error_steps < 0 && !want->program->blocks);
    play(want, exact);
    for (int again = 0; again < 3; again++) { /* later plans know, too; so do those of tiles */
        struct vg_plan *plan = plan_make(model, device, again == 2 ? 32 : 0);
        const struct vg_plan_info *info = vg_plan_info(plan);
        char *text = vg_plan_text(plan), *json = vg_plan_json(plan);
        expectf((info->winograd_error_steps > VG_TRIAL_MOST_STEPS) == refused && info->winograd_error_steps > 0, "%g",
                info->winograd_error_steps);
        expect(info->winograd_refused == refused && plan->program->blocks == !refused);
        expect(text && strstr(text, "too much") ? refused : !refused);
        expect(json && strstr(json, refused ? "\"winograd-refused\": true" : "\"winograd-refused\": false") &&
               strstr(json, "\"winograd-error-steps\": "));
        if (again < 2) {
            play(plan, by_itself);
            expect(!memcmp(by_itself, exact, sizeof exact) == refused);
        }
        free(text);
        free(json);
        vg_plan_free(&plan);
    }
    vg_plan_free(&want);
    vg_model_unref(&model);
}

static void harmless(void) { check(1, 1, false); }
static void cancelling(void) { check(1, 0x1p20f, true); }
static void windows(void)
{
    check(MOST_FRAMES, 1, false);
    check(MOST_FRAMES, 0x1p20f, true);
}

/* A model that no plan was made of.  What the trial takes stays in the budget, which is the least that will do or more; with
 * no room for it products are direct, and the plan says so. */
static void within_the_budget(void)
{
    int refused = 0, tried = 0, untried = 0;
    for (size_t budget = 8000; budget < 600000; budget += budget / 24) {
        struct vg_model *model = model_make(1, 1);
        struct vg_plan *plan = NULL;
        struct vgk_error err = {{0}};
        struct vg_plan_request r = {.width = W, .height = H, .overlap_x = -1, .overlap_y = -1, .max_bytes = budget};
        enum vgk_status s = vg_plan_make(model, &vgk_cpu, device, &r, &plan, &err);
        expectf(model->trial_peak <= budget, "%zu of %zu bytes", model->trial_peak, budget);
        expectf(s == VGK_OK || s == VGK_ERR_NOMEM, "%s", err.text);
        refused += s == VGK_ERR_NOMEM;
        if (s && strstr(err.text, "set it to ")) { /* what it says will do does, though the trial has other room then */
            r.max_bytes = (size_t)strtoull(strstr(err.text, "set it to ") + strlen("set it to "), NULL, 10);
            struct vgk_error told = err;
            expectf(r.max_bytes > budget && vg_plan_make(model, &vgk_cpu, device, &r, &plan, &err) == VGK_OK, "%s", told.text);
            vg_plan_free(&plan);
        }
        if (!s) {
            const struct vg_plan_info *info = vg_plan_info(plan);
            bool no_room = strstr(info->ways, "no room to try");
            expect(info->arena_bytes <= budget && no_room == (info->winograd_error_steps < 0));
            expectf(!no_room || (info->direct && !plan->program->blocks), "%zu", budget);
            expect(no_room || model->trial_peak > 0);
            tried += !no_room;
            untried += no_room;
            /* One that asks with more room tries. */
            struct vg_plan *more = plan_make(model, device, 0);
            expect(vg_plan_info(more)->winograd_error_steps > 0 && more->program->blocks && !vg_plan_info(more)->direct);
            vg_plan_free(&more);
        }
        vg_plan_free(&plan);
        vg_model_unref(&model);
    }
    expectf(refused && tried && untried, "%d, %d, %d", refused, tried, untried);
}

int main(void)
{
    if (vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &device, NULL) ||
        vgk_cpu.open(&(struct vgk_device_options){.threads = 1, .exact_products = true}, &exact_device, NULL))
        return 1;
    run(harmless);
    run(cancelling);
    run(windows);
    run(within_the_budget);
    vgk_cpu.close(&device);
    vgk_cpu.close(&exact_device);
    return kit_done();
}
