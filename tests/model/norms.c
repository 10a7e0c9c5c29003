/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Statistics of norms against sums in double; norms by the previous frame's; on a net with two instance norms. */
#include "kit.h"
#include "model/statistics.h"
#include "nets.h"
#include "onnx_write.h"

enum { W = 40, H = 240 };

static float w1[8 * 3 * 9];

/* Conv 3x3 (3 -> 8), InstanceNormalization, Relu, Conv 3x3 (8 -> 3), InstanceNormalization, Sigmoid */
static struct vg_model *make_model(struct vgk_error *err)
{
    static float w2[3 * 8 * 9], scale[8], bias[8];
    struct ow *m = ow_new(17);
    kit_seed(5);
    for (size_t i = 0; i < sizeof w1 / sizeof *w1; i++)
        w1[i] = (float)kit_real(-0.4, 0.4);
    for (size_t i = 0; i < sizeof w2 / sizeof *w2; i++)
        w2[i] = (float)kit_real(-0.3, 0.3);
    for (int i = 0; i < 8; i++)
        scale[i] = 0.8f, bias[i] = 0.1f;
    ow_input(m, "x", 1, "1,3,h,w");
    ow_output(m, "y", 1, "1,3,h,w");
    ow_floats_tensor(m, "w1", 4, (int64_t[]){8, 3, 3, 3}, w1);
    ow_floats_tensor(m, "w2", 4, (int64_t[]){3, 8, 3, 3}, w2);
    ow_floats_tensor(m, "s8", 1, (int64_t[]){8}, scale);
    ow_floats_tensor(m, "b8", 1, (int64_t[]){8}, bias);
    ow_floats_tensor(m, "s3", 1, (int64_t[]){3}, scale);
    ow_floats_tensor(m, "b3", 1, (int64_t[]){3}, bias);
    for (int i = 0; i < 2; i++) {
        struct pb *conv = ow_node("Conv", i ? "conv2" : "conv1", i ? "r1,w2" : "x,w1", i ? "c2" : "c1");
        ow_ints(conv, "pads", 4, (int64_t[]){1, 1, 1, 1});
        ow_add(m, conv);
        ow_add(m, ow_node("InstanceNormalization", i ? "norm2" : "norm1", i ? "c2,s3,b3" : "c1,s8,b8", i ? "n2" : "n1"));
        ow_add(m, ow_node(i ? "Sigmoid" : "Relu", "", i ? "n2" : "n1", i ? "y" : "r1"));
    }
    return nets_finish(m, err);
}

static struct vg_model *model;
static struct vgk_device *device;

struct player {
    struct vg_plan *plan;
    struct vg_run *run;
    uint8_t out[3 * W * H];
};

static void start(struct player *p, enum vg_norm_mode mode, size_t max_bytes)
{
    struct vgk_error err = {{0}};
    struct vg_plan_request r = {.width = W, .height = H, .overlap_x = -1, .overlap_y = -1, .norm_mode = mode,
                                .max_bytes = max_bytes};
    *p = (struct player){NULL};
    expectf(vg_plan_make(model, &vgk_cpu, device, &r, &p->plan, &err) == VGK_OK, "%s", err.text);
    if (!p->plan)
        exit(1);
    expectf(vg_run_open(p->plan, &p->run, &err) == VGK_OK, "%s", err.text);
}

static void stop(struct player *p)
{
    vg_run_close(&p->run);
    vg_plan_free(&p->plan);
}

static void play(struct player *p, uint8_t *picture)
{
    struct vgk_error err = {{0}};
    struct vgk_frame in = {VGK_FRAME_PACKED, W, H, {picture}, {3 * W}, 3, {0, 1, 2}, -1}, out = in;
    out.plane[0] = p->out;
    expectf(vg_run_tile(p->run, 0, 0, &in, &(struct vgk_colour){.full_range = true}, &out, &err) == VGK_OK, "%s", err.text);
}

/* Noise about a grey that drifts slowly: contrast of +-amplitude. */
static void picture(uint8_t *to, int seed, int grey, int amplitude)
{
    kit_seed((uint64_t)seed);
    for (int i = 0; i < 3 * W * H; i++)
        to[i] = (uint8_t)(grey + kit_int(-amplitude, amplitude));
}

static int worst(const uint8_t *a, const uint8_t *b)
{
    int d = 0;
    for (int i = 0; i < 3 * W * H; i++)
        d = abs(a[i] - b[i]) > d ? abs(a[i] - b[i]) : d;
    return d;
}

/* The first frame is exact; so is a standing picture; a slow change is near; a cut is exact again. */
static void follows(void)
{
    struct player exact, previous;
    struct vg_run_info info;
    uint8_t in[3 * W * H];
    start(&exact, VG_NORM_EXACT, 0);
    start(&previous, VG_NORM_PREVIOUS, 0);
    expect(vg_plan_info(previous.plan)->norm_mode == VG_NORM_PREVIOUS && previous.plan->exact);
    for (int i = 0; i < 12; i++) {
        picture(in, i < 4 ? 1 : i, i < 8 ? 100 + 2 * i : 200, i < 8 ? 60 : 15);
        play(&exact, in);
        play(&previous, in);
        vg_run_info(previous.run, &info);
        int d = worst(exact.out, previous.out);
        bool must_equal = i == 0 || i == 8;
        expectf(must_equal ? d == 0 : d <= 48, "frame %d differs by %d", i, d);
        expectf(info.cuts == (i >= 8), "frame %d: %d cuts, drift %g", i, (int)info.cuts, info.drift);
    }
    /* The statistics come from the frame before: a frame in the flow differs from its exact form. */
    picture(in, 50, 190, 17);
    play(&exact, in);
    play(&previous, in);
    expect(worst(exact.out, previous.out) > 0);
    vg_run_reset(previous.run);
    play(&previous, in);
    expect(worst(exact.out, previous.out) == 0);
    stop(&exact);
    stop(&previous);
}

/* In bands, too, and with the memory that the plan says, to the byte. */
static void in_bands(void)
{
    struct player whole, bands;
    uint8_t in[3 * W * H];
    size_t before = vgk_cpu.bytes_now(device);
    start(&whole, VG_NORM_PREVIOUS, 0);
    size_t bytes = vg_plan_info(whole.plan)->arena_bytes;
    expect(vgk_cpu.bytes_now(device) - before == bytes);
    start(&bands, VG_NORM_PREVIOUS, bytes * 3 / 4);
    expect(bands.plan->exact && bands.plan->program->bands > 1);
    expect(vg_plan_info(bands.plan)->arena_bytes <= bytes * 3 / 4);
    for (int i = 0; i < 6; i++) {
        picture(in, i, 120, 50 - i);
        play(&whole, in);
        play(&bands, in);
        expectf(worst(whole.out, bands.out) == 0, "frame %d", i);
    }
    stop(&whole);
    stop(&bands);
    expect(vgk_cpu.bytes_now(device) == before);
}

/* Mean and deviation of what the first convolution makes of a picture, all in double. */
static void reference(const uint8_t *in, int channel, double *mean, double *deviation)
{
    double sum = 0, squares = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) {
                double v = 0;
                for (int c = 0; c < 3; c++)
                    for (int k = 0; k < 9; k++) {
                        int u = x + k % 3 - 1, t = y + k / 3 - 1;
                        if (u >= 0 && u < W && t >= 0 && t < H)
                            v += (double)w1[(channel * 3 + c) * 9 + k] * in[3 * (t * W + u) + c] / 255;
                    }
                sum += pass ? 0 : v;
                squares += pass ? (v - sum / (W * H)) * (v - sum / (W * H)) : 0;
            }
    *mean = sum / (W * H);
    *deviation = sqrt(squares / (W * H) + 1e-5);
}

/* Statistics are right to 1e-6, the same bits in any number of bands, and so is the picture; also where a large mean
 * hides a small deviation. */
static void statistics(void)
{
    struct vgk_error err = {{0}};
    uint8_t in[3 * W * H], out[2][3 * W * H];
    float first[8][24];
    for (int contrast = 1; contrast <= 101; contrast += 50)
        for (int bands = 1, i = 0; bands <= 16; bands *= 2, i++) {
            struct vg_plan_request r = {.width = W, .height = H, .overlap_x = -1, .overlap_y = -1, .bands = bands,
                                        .norm_mode = VG_NORM_FROZEN, .norm_frames = 1};
            struct player p = {NULL};
            picture(in, 3, 140, contrast);
            expectf(vg_plan_make(model, &vgk_cpu, device, &r, &p.plan, &err) == VGK_OK, "%s", err.text);
            expectf(p.plan && vg_run_open(p.plan, &p.run, &err) == VGK_OK, "%s", err.text);
            if (!p.run)
                return;
            play(&p, in);
            const struct vg_statistics *s = vg_run_statistics(p.run);
            memcpy(first[i], s->now, sizeof first[i]);
            memcpy(out[i > 0], p.out, sizeof p.out);
            expectf(i == 0 || (!memcmp(first[i], first[0], sizeof first[0]) && worst(out[0], out[1]) == 0),
                    "contrast %d, %d bands", contrast, bands);
            stop(&p);
        }
    for (int contrast = 1; contrast <= 101; contrast += 50) {
        struct vg_plan_request r = {.width = W, .height = H, .overlap_x = -1, .overlap_y = -1,
                                    .norm_mode = VG_NORM_FROZEN, .norm_frames = 1};
        struct player p = {NULL};
        picture(in, 3, 140, contrast);
        if (vg_plan_make(model, &vgk_cpu, device, &r, &p.plan, &err) || vg_run_open(p.plan, &p.run, &err))
            return;
        play(&p, in);
        for (int c = 0; c < 8; c++) {
            double mean, deviation, m = (double)vg_run_statistics(p.run)->now[c],
                   d = 1 / (double)vg_run_statistics(p.run)->now[8 + c];
            reference(in, c, &mean, &deviation);
            expectf(fabs(m - mean) <= 1e-6 * (fabs(mean) + deviation) && fabs(d - deviation) <= 1e-6 * deviation,
                    "contrast %d, channel %d: mean %.9g, expected %.9g; deviation %.9g, expected %.9g", contrast, c, m, mean,
                    d, deviation);
        }
        stop(&p);
    }
}

/* A picture that stands still: the same version before two runs means the same bytes, in every mode, and there comes a time
 * when it is the same (PREVIOUS: when the smoothed statistics have arrived, to the bit).  What changes them changes it. */
static void versions(void)
{
    static const struct {
        enum vg_norm_mode mode;
        int least, most; /* frames that differ from the one before by version, the first included */
    } cases[] = {{VG_NORM_EXACT, 1, 1}, {VG_NORM_PREVIOUS, 3, 300}, {VG_NORM_FROZEN, 9, 9}, {VG_NORM_THUMBNAIL, 1, 1}};
    const struct vgk_colour colour = {.full_range = true};
    uint8_t in[3 * W * H], last[3 * W * H];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct vgk_error err = {{0}};
        struct vgk_frame frame = {VGK_FRAME_PACKED, W, H, {in}, {3 * W}, 3, {0, 1, 2}, -1};
        struct vg_run_info info;
        struct player p;
        uint64_t before = UINT64_MAX;
        int changes = 0, stood = 0;
        start(&p, cases[c].mode, 0);
        expect(vg_plan_info(p.plan)->norm_mode == cases[c].mode);
        picture(in, 7, 120, 40);
        for (int i = 0; i < 400 && stood < 4; i++) {
            expectf(vg_run_begin(p.run, &frame, &colour, NULL, &err) == VGK_OK, "%s", err.text);
            vg_run_info(p.run, &info);
            stood = info.version == before ? stood + 1 : 0;
            changes += info.version != before;
            before = info.version;
            memcpy(last, p.out, sizeof last);
            play(&p, in);
            expectf(!stood || !memcmp(last, p.out, sizeof last), "mode %s, frame %d", vg_norm_mode_name(cases[c].mode), i);
        }
        expectf(stood == 4 && changes >= cases[c].least && changes <= cases[c].most, "mode %s: %d changes",
                vg_norm_mode_name(cases[c].mode), changes);
        /* Another picture. */
        picture(in, 8, 110, 50);
        vg_run_begin(p.run, &frame, &colour, NULL, &err);
        play(&p, in);
        vg_run_begin(p.run, &frame, &colour, NULL, &err);
        vg_run_info(p.run, &info);
        bool by_frames = cases[c].mode == VG_NORM_PREVIOUS || cases[c].mode == VG_NORM_THUMBNAIL;
        expectf((info.version != before) == by_frames, "mode %s", vg_norm_mode_name(cases[c].mode));
        before = info.version;
        vg_run_reset(p.run);
        vg_run_info(p.run, &info);
        expect(info.version != before);
        stop(&p);
    }
}

int main(void)
{
    struct vgk_error err = {{0}};
    model = make_model(&err);
    expectf(model, "%s", err.text);
    vgk_cpu.open(&(struct vgk_device_options){.threads = 2}, &device, &err);
    if (model && device) {
        run(statistics);
        run(follows);
        run(in_bands);
        run(versions);
    }
    vg_model_unref(&model);
    vgk_cpu.close(&device);
    return kit_done();
}
