/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* precision=bf16 from the file to the bytes of a frame, on the plain-C form of the instructions (tests/kernels/bf16.c): built
 * with model sources over that library, so that no product has it.
 *
 *     test-model-bf16 MODELS                                   the test
 *     test-model-bf16 MODELS MODEL.onnx WIDTH HEIGHT [FRAME]   8-bit steps that bf16 is off single, for a frame of RGB */
#include "kit.h"
#include "nets.h"

static const char *models_dir;
static const char *const names[] = {"avx512bf16", "amx"};

static struct vgk_device *device_open(const char *isa)
{
    struct vgk_device *dev = NULL;
    setenv("VIDGEN_CPU", isa, 1);
    vgk_cpu.open(&(struct vgk_device_options){.threads = 2}, &dev, NULL);
    return dev;
}

struct played {
    struct nets_picture out;
    struct vg_plan_info info;
    char *text, *json;
    int tiles_x, tiles_y;
};

static struct played play(struct vg_model *m, struct vgk_device *dev, struct vg_plan_request r, const struct nets_picture *in)
{
    struct nets_player player;
    struct vg_run_info info;
    r.width = in->f.width;
    r.height = in->f.height;
    r.overlap_x = r.overlap_y = -1;
    if (!nets_start(&player, m, dev, &r))
        exit(1);
    nets_play(&player, in);
    vg_run_info(player.run, &info);
    expect(!info.rescued);
    struct played p = {player.out, *vg_plan_info(player.plan), vg_plan_text(player.plan), vg_plan_json(player.plan)};
    p.tiles_x = p.info.grid->x.n;
    p.tiles_y = p.info.grid->y.n;
    player.out.data = NULL; /* ours */
    nets_stop(&player);
    return p;
}

static void played_free(struct played *p)
{
    free(p->out.data);
    free(p->text);
    free(p->json);
}

static int largest(const struct nets_picture *a, const struct nets_picture *b, double *mean)
{
    int most = 0;
    double sum = 0;
    for (size_t i = 0; i < a->bytes; i++) {
        int d = abs(a->data[i] - b->data[i]);
        most = d > most ? d : most;
        sum += d;
    }
    *mean = sum / (double)a->bytes;
    return most;
}

/* Near single, but not it; the plan tells how much of it is bf16; tiles and bands give the bytes of the whole frame. */
static void shipped(void)
{
    const char *const models[] = {"style3", "upscale2x"};
    for (int i = 0; i < 4; i += SANITIZED ? 3 : 1) { /* each model, each kernel */
        struct vg_model *m = nets_shipped(models_dir, models[i / 2]);
        struct vgk_device *dev = device_open(names[i % 2]);
        struct nets_picture in = nets_picture(VGK_FRAME_PACKED, 176, 144, true);
        struct vg_plan_request r = {.precision = VG_PRECISION_FP32};
        struct played single = play(m, dev, r, &in);
        r.precision = VG_PRECISION_BF16;
        struct played whole = play(m, dev, r, &in);
        r.bands = 3;
        struct played bands = play(m, dev, r, &in);
        double mean;
        int off = largest(&single.out, &whole.out, &mean);
        expectf(off >= 1 && off <= 6 && mean < 0.6, "%s by %s: %d steps, %g in the mean", models[i / 2], names[i % 2], off,
                mean);
        expect(single.info.precision == VG_PRECISION_FP32 && !single.info.n_bf16);
        expect(whole.info.precision == VG_PRECISION_BF16);
        expect(whole.info.n_bf16 > 0 && whole.info.n_bf16 <= whole.info.n_products && !whole.info.rescue_bytes);
        expect(strstr(whole.text, "multiply bf16") && !strstr(single.text, "multiply bf16"));
        expect(strstr(whole.json, "\"precision\": \"bf16\"") && strstr(whole.json, "\"bf16-products\": "));
        expect(!memcmp(whole.out.data, bands.out.data, whole.out.bytes));
        if (whole.info.global_why == NULL) {
            r.bands = 0;
            r.tile_width = 112;
            r.tile_height = 112;
            struct played tiles = play(m, dev, r, &in);
            expect(tiles.info.exact && tiles.tiles_x > 1 && tiles.tiles_y > 1);
            expect(!memcmp(whole.out.data, tiles.out.data, whole.out.bytes));
            played_free(&tiles);
        }
        played_free(&single), played_free(&whole), played_free(&bands);
        free(in.data);
        expect(vgk_cpu.bytes_now(dev) == 0);
        vgk_cpu.close(&dev);
        vg_model_unref(&m);
    }
}

/* What cannot be tells why and what to do. */
static void refused(void)
{
    struct vg_model *m = nets_shipped(models_dir, "upscale2x");
    struct vgk_device *dev = device_open("avx512");
    struct vgk_backend other = vgk_cpu;
    struct vg_plan_request r = {.width = 64, .height = 64, .overlap_x = -1, .overlap_y = -1, .precision = VG_PRECISION_BF16};
    struct vgk_error err = {{0}};
    struct vg_plan *plan = NULL;
    expectf(vg_plan_make(m, &vgk_cpu, dev, &r, &plan, &err) == VGK_ERR_UNSUPPORTED && strstr(err.text, "AVX512-BF16") &&
            strstr(err.text, "AVX-512, 2 threads") && strstr(err.text, "fp32 or auto"), "%s", err.text);
    other.bf16 = NULL;
    expectf(vg_plan_make(m, &other, dev, &r, &plan, &err) == VGK_ERR_UNSUPPORTED && strstr(err.text, "precision=bf16") &&
            strstr(err.text, "auto, fp16 or fp32"), "%s", err.text);
    expect(!plan);
    vgk_cpu.close(&dev);
    vg_model_unref(&m);
}

static int measure(char **argv, int n)
{
    struct vgk_error err = {{0}};
    struct vg_model *m = NULL;
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, atoi(argv[1]), atoi(argv[2]), true);
    FILE *f = n > 3 ? fopen(argv[3], "rb") : NULL;
    if (vg_model_load(argv[0], &m, &err) || (n > 3 && (!f || fread(in.data, in.bytes, 1, f) != 1))) {
        fprintf(stderr, "%s: %s\n", argv[0], *err.text ? err.text : "no frame");
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        struct vgk_device *dev = device_open(names[i]);
        double mean;
        struct played single = play(m, dev, (struct vg_plan_request){.precision = VG_PRECISION_FP32}, &in),
                      half = play(m, dev, (struct vg_plan_request){.precision = VG_PRECISION_BF16}, &in);
        int most = largest(&single.out, &half.out, &mean);
        printf("%s %s: %d of %d products, %d steps at most, %.3f in the mean\n", argv[0], names[i], half.info.n_bf16,
               half.info.n_products, most, mean);
        played_free(&single), played_free(&half);
        vgk_cpu.close(&dev);
    }
    if (f)
        fclose(f);
    free(in.data);
    vg_model_unref(&m);
    return 0;
}

int main(int argc, char **argv)
{
    struct vgk_device *any = device_open("avx2");
    if (!any)
        kit_skip("no AVX2");
    vgk_cpu.close(&any);
    models_dir = argc > 1 ? argv[1] : "pipelines/models";
    if (argc > 4)
        return measure(argv + 2, argc - 2);
    kit_seed(5);
    run(shipped);
    run(refused);
    return kit_done();
}
