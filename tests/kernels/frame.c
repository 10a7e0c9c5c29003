/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames to tensors and back against the formula in double, in every layout and odd size, with guards around. */
#include "cpukit.h"

enum { GUARD = 0xa5, FORMATS = 10 };

static const struct {
    enum vgk_frame_layout layout;
    int step, offset[3], alpha;
} formats[FORMATS] = {
    {VGK_FRAME_PACKED, 3, {0, 1, 2}, -1}, {VGK_FRAME_PACKED, 3, {2, 1, 0}, -1}, {VGK_FRAME_PACKED, 4, {0, 1, 2}, 3},
    {VGK_FRAME_PACKED, 4, {2, 1, 0}, 3},  {VGK_FRAME_PACKED, 4, {1, 2, 3}, 0},  {VGK_FRAME_PACKED, 4, {3, 2, 1}, 0},
    {VGK_FRAME_PACKED, 4, {0, 1, 2}, -1}, {VGK_FRAME_PLANAR},                   {VGK_FRAME_I420},
    {VGK_FRAME_NV12},
};

struct guarded {
    struct vgk_frame f;
    uint8_t *all;
    size_t bytes;
};

static struct guarded frame(int format, int width, int height)
{
    struct guarded g = {.f = {.layout = formats[format].layout, .width = width, .height = height,
                              .step = formats[format].step, .alpha = formats[format].alpha}};
    int cw = (width + 1) / 2, ch = (height + 1) / 2;
    int w[3] = {width, width, width}, h[3] = {height, height, height}, planes = 3;
    if (g.f.layout == VGK_FRAME_PACKED)
        planes = 1, w[0] = width * g.f.step;
    else if (g.f.layout == VGK_FRAME_I420)
        w[1] = w[2] = cw, h[1] = h[2] = ch;
    else if (g.f.layout == VGK_FRAME_NV12)
        planes = 2, w[1] = 2 * cw, h[1] = ch;
    memcpy(g.f.offset, formats[format].offset, sizeof g.f.offset);
    size_t at[3];
    for (int i = 0; i < planes; i++) {
        g.f.stride[i] = w[i] + kit_int(0, 9);
        at[i] = g.bytes;
        g.bytes += (size_t)(g.f.stride[i] * (h[i] - 1) + w[i]); /* no padding behind the last row */
    }
    g.all = malloc(g.bytes);
    memset(g.all, GUARD, g.bytes);
    for (int i = 0; i < planes; i++)
        g.f.plane[i] = g.all + at[i];
    return g;
}

static uint8_t *sample(const struct vgk_frame *f, int i, int x, int y)
{
    switch (f->layout) {
    case VGK_FRAME_PACKED: return f->plane[0] + y * f->stride[0] + x * f->step + f->offset[i];
    case VGK_FRAME_PLANAR: return f->plane[i] + y * f->stride[i] + x;
    case VGK_FRAME_I420: return i ? f->plane[i] + y / 2 * f->stride[i] + x / 2 : f->plane[0] + y * f->stride[0] + x;
    default: return i ? f->plane[1] + y / 2 * f->stride[1] + x / 2 * 2 + i - 1 : f->plane[0] + y * f->stride[0] + x;
    }
}

static struct vgk_tensor tensor(int height, int width)
{
    struct vgk_tensor t = kit_int(0, 2) ? f32_last(1, 3, height, width) : f32_rows(1, 3, height, width);
    return t;
}

static void reading(struct vgk_device *dev, int format, int w, int h)
{
    struct guarded g = frame(format, w, h);
    struct vgk_tensor t = tensor(h + kit_int(0, 1) * kit_int(0, 70), w + kit_int(0, 1) * kit_int(0, 70));
    struct vgk_matrix m;
    for (int i = 0; i < 12; i++)
        m.m[i / 4][i % 4] = (float)kit_real(-1, 1);
    for (size_t i = 0; i < g.bytes; i++)
        g.all[i] = (uint8_t)kit_int(0, 255);
    expect(vgk_cpu.frame_read(dev, &g.f, &m, &t, NULL, NULL) == VGK_OK);
    double worst = 0;
    for (int64_t i = 0; i < vgk_tensor_count(&t); i++) {
        int x = (int)(i % t.dim[3]), y = (int)(i / t.dim[3] % t.dim[2]), k = (int)(i / t.dim[3] / t.dim[2]);
        x = x < w ? x : w - 1;
        y = y < h ? y : h - 1;
        double want = (double)m.m[k][3];
        for (int c = 0; c < 3; c++)
            want += (double)m.m[k][c] * *sample(&g.f, c, x, y);
        double error = fabs((double)cpukit_get(&t, i) - want);
        worst = error > worst ? error : worst;
    }
    /* Three products of up to 255 in f32. */
    expectf(worst <= 1e-4, "format %d, %d x %d: off by %g", format, w, h, worst);
    free(g.all), free(t.data);
}

static void writing(struct vgk_device *dev, int format, int w, int h)
{
    struct guarded g = frame(format, w, h), a = frame(kit_int(2, 5), (w + 1) / 2, (h + 1) / 2), copy;
    struct vgk_tensor t = tensor(h + kit_int(0, 3), w + kit_int(0, 3));
    struct vgk_matrix m;
    float low[3] = {-1, 0, 0.25f}, high[3] = {1, 2, 1.75f};
    bool alpha = kit_int(0, 1);
    for (int i = 0; i < 12; i++)
        m.m[i / 4][i % 4] = (float)kit_real(-1, 1) * 100;
    m.m[0][3] += 100;
    cpukit_random(&t, -2, 3);
    for (size_t i = 0; i < a.bytes; i++)
        a.all[i] = (uint8_t)kit_int(0, 255);
    expect(vgk_cpu.frame_write(dev, &t, &m, low, high, alpha ? &a.f : NULL, &g.f, NULL, NULL, NULL) == VGK_OK);
    copy = g;
    copy.all = malloc(g.bytes);
    memcpy(copy.all, g.all, g.bytes);
    bool half = vgk_frame_halved(&g.f);
    int wrong = 0;
    for (int i = 0; i < 3; i++)
        for (int y = 0; y < h; y += half && i ? 2 : 1)
            for (int x = 0; x < w; x += half && i ? 2 : 1) {
                double sum = 0;
                int n = 0;
                for (int dy = 0; dy < (half && i ? 2 : 1) && y + dy < h; dy++)
                    for (int dx = 0; dx < (half && i ? 2 : 1) && x + dx < w; dx++, n++) {
                        sum += (double)m.m[i][3];
                        for (int k = 0; k < 3; k++) {
                            float v = cpukit_get(&t, ((int64_t)k * t.dim[2] + y + dy) * t.dim[3] + x + dx);
                            v = v < low[k] ? low[k] : v > high[k] ? high[k] : v;
                            sum += (double)m.m[i][k] * (double)v;
                        }
                    }
                double want = sum / n < 0 ? 0 : sum / n > 255 ? 255 : sum / n;
                uint8_t *got = sample(&g.f, i, x, y);
                wrong += fabs(*got - want) > 0.5 + 1e-4;
                copy.all[got - g.all] = GUARD;
                if (g.f.layout == VGK_FRAME_PACKED && g.f.alpha >= 0 && !i) {
                    uint8_t *b = g.f.plane[0] + y * g.f.stride[0] + x * g.f.step + g.f.alpha;
                    int ax = x * a.f.width / w, ay = y * a.f.height / h;
                    wrong += *b != (alpha ? a.f.plane[0][ay * a.f.stride[0] + ax * 4 + a.f.alpha] : 255);
                    copy.all[b - g.all] = GUARD;
                }
            }
    for (size_t i = 0; i < g.bytes; i++)
        wrong += copy.all[i] != GUARD;
    expectf(!wrong, "format %d, %d x %d: %d wrong", format, w, h, wrong);
    free(g.all), free(a.all), free(copy.all), free(t.data);
}

static struct vgk_device *dev;

static void all_formats(void)
{
    for (int n = 0; n < 60; n++)
        for (int format = 0; format < FORMATS; format++) {
            int w = n < 4 ? 1 + n % 2 : kit_int(1, 67), h = n < 4 ? 1 + n / 2 : kit_int(1, 35);
            reading(dev, format, w, h);
            writing(dev, format, w, h);
        }
    reading(dev, 0, 1000, 40);
    writing(dev, 8, 1001, 41);
}

static const struct vgk_pixels plain = {.order = {0, 1, 2}, .scale = {1, 1, 1}};

/* Every value of every channel comes back, whatever the model's normalisation; greys of YUV too. */
static void round_trips(void)
{
    static const float low[3] = {-INFINITY, -INFINITY, -INFINITY}, high[3] = {INFINITY, INFINITY, INFINITY};
    static const struct vgk_pixels pixels[3] = {
        {.order = {0, 1, 2}, .scale = {1, 1, 1}},
        {.order = {2, 1, 0}, .scale = {255, 255, 255}},
        {.order = {0, 1, 2}, .mean = {0.485f, 0.456f, 0.406f}, .scale = {4.3668f, 4.4643f, 4.4444f}},
    };
    for (int format = 0; format < FORMATS; format++)
        for (int p = 0; p < 3; p++)
            for (int full = 0; full < 2; full++) {
                struct guarded g = frame(format, 256, 6), back = frame(format, 256, 6);
                struct vgk_tensor t = f32_last(1, 3, 6, 256);
                bool half = vgk_frame_halved(&g.f);
                struct vgk_colour c = {.yuv = half, .kr = 0.2126, .kb = 0.0722, .full_range = !half || full};
                struct vgk_matrix in = vgk_matrix_in(&c, &pixels[p]), out = vgk_matrix_out(&c, &pixels[p]);
                for (int y = 0; y < 6; y++)
                    for (int x = 0; x < 256; x++)
                        for (int i = 0; i < 3; i++)
                            *sample(&g.f, i, x, y) = (uint8_t)(half ? i ? 128 : x : (x * (1 + 2 * i) + 37 * y) & 255);
                expect(vgk_cpu.frame_read(dev, &g.f, &in, &t, NULL, NULL) == VGK_OK);
                expect(vgk_cpu.frame_write(dev, &t, &out, low, high, NULL, &back.f, NULL, NULL, NULL) == VGK_OK);
                int wrong = 0;
                for (int y = 0; y < 6; y++)
                    for (int x = 0; x < 256; x++)
                        for (int i = 0; i < 3; i++)
                            wrong += *sample(&g.f, i, x, y) != *sample(&back.f, i, x, y);
                expectf(!wrong, "format %d, pixels %d: %d wrong", format, p, wrong);
                free(g.all), free(back.all), free(t.data);
            }
}

static void rounding(void)
{
    float v[8] = {0.5f, 1.5f, 2.5f, -3, 300, NAN, INFINITY, 254.5f}, data[24];
    static const uint8_t want[8] = {0, 2, 2, 0, 255, 0, 255, 254};
    float low[3] = {-INFINITY, -INFINITY, -INFINITY}, high[3] = {INFINITY, INFINITY, INFINITY};
    for (int i = 0; i < 24; i++)
        data[i] = v[i / 3];
    struct vgk_tensor t = vgk_tensor_make(VGK_F32, 4, (int64_t[]){1, 3, 1, 8}, VGK_CHANNELS_LAST);
    t.data = data;
    struct vgk_matrix m = {{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}};
    struct guarded g = frame(7, 8, 1);
    for (int i = 0; i < 24; i++)
        if (isinf(data[i]))
            data[i] = 3e38f;
    expect(vgk_cpu.frame_write(dev, &t, &m, low, high, NULL, &g.f, NULL, NULL, NULL) == VGK_OK);
    for (int i = 0; i < 8; i++)
        expectf(*sample(&g.f, 0, i, 0) == want[i] && *sample(&g.f, 2, i, 0) == want[i], "%d: %d", i,
                *sample(&g.f, 0, i, 0));
    struct vgk_error err = {{0}};
    g.f.width = 9;
    expect(vgk_cpu.frame_write(dev, &t, &m, low, high, NULL, &g.f, NULL, NULL, &err) == VGK_ERR_INVALID &&
           strstr(err.text, "f32[1,3,1,8]"));
    free(g.all);
}

static void expect_matrix(const struct vgk_matrix *m, const double *want, double tolerance)
{
    for (int i = 0; i < 12; i++)
        expect_near((double)m->m[i / 4][i % 4], want[i], tolerance);
}

/* The numbers that textbooks print for 8-bit video range, as R, G, B in 0..255. */
static void matrices(void)
{
    struct vgk_pixels bytes = {.order = {0, 1, 2}, .scale = {255, 255, 255}};
    struct vgk_colour bt601 = { .yuv = true, .kr = 0.299, .kb = 0.114 },
                      bt709 = { .yuv = true, .kr = 0.2126, .kb = 0.0722 };
    struct vgk_matrix m = vgk_matrix_in(&bt601, &bytes);
    expect_matrix(&m, (const double[]){1.164384, 0, 1.596027, -222.921571, 1.164384, -0.391762, -0.812968, 135.575295,
                                       1.164384, 2.017232, 0, -276.835851}, 2e-5);
    m = vgk_matrix_in(&bt709, &bytes);
    expect_matrix(&m, (const double[]){1.164384, 0, 1.792741, -248.100994, 1.164384, -0.213249, -0.532909, 76.87808,
                                       1.164384, 2.112402, 0, -289.017566}, 2e-5);
    m = vgk_matrix_out(&bt601, &bytes);
    expect_matrix(&m, (const double[]){0.256788, 0.504129, 0.097906, 16, -0.148223, -0.290993, 0.439216, 128, 0.439216,
                                       -0.367788, -0.071427, 128}, 1e-6);
    m = vgk_matrix_out(&bt709, &bytes);
    expect_matrix(&m, (const double[]){0.182586, 0.614231, 0.062007, 16, -0.100644, -0.338572, 0.439216, 128, 0.439216,
                                       -0.398942, -0.040274, 128}, 1e-6);
    bt601.full_range = true; /* JPEG */
    m = vgk_matrix_in(&bt601, &bytes);
    expect_matrix(&m,
                  (const double[]){ 1, 0, 1.402, -179.456, 1, -0.344136, -0.714136, 135.458893, 1, 1.772, 0, -226.816 },
                  2e-5);
    struct vgk_colour rgb = {.full_range = true};
    m = vgk_matrix_in(&rgb, &(struct vgk_pixels){.order = {2, 1, 0}, .mean = {0.5f, 0.5f, 0.5f}, .scale = {2, 2, 4}});
    expect_matrix(&m, (const double[]){0, 0, 2 / 255., -1, 0, 2 / 255., 0, -1, 4 / 255., 0, 0, -2}, 1e-8);
    m = vgk_matrix_out(&rgb, &plain);
    expect_matrix(&m, (const double[]){255, 0, 0, 0, 0, 255, 0, 0, 0, 0, 255, 0}, 0);
}

int main(void)
{
    static const char *const isa[] = {"generic", "avx2", "avx512"};
    run(matrices);
    for (int i = 0; i < 3; i++)
        for (int threads = 1; threads <= 2; threads++) {
            if (!(dev = cpukit_open(isa[i], threads)))
                continue;
            printf("%s\n", vgk_cpu.describe(dev));
            run(all_formats);
            run(round_trips);
            run(rounding);
            vgk_cpu.close(&dev);
        }
    return kit_done();
}
