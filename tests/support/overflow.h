/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A net whose activations overflow f16 where the picture is bright, and what must hold then, on any device. */
#ifndef OVERFLOW_H
#define OVERFLOW_H

#include "kit.h"
#include "nets.h"
#include "onnx_write.h"

static inline int overflow_times(struct nets *n, int x, float by)
{
    char c[16], in[64], out[16], name[32];
    snprintf(c, sizeof c, "c%d", n->n_constants++);
    ow_floats_tensor(n->file, c, 4, (int64_t[]){1, 1, 1, 1}, &by);
    snprintf(in, sizeof in, "v%d,%s", x, c);
    snprintf(out, sizeof out, "v%d", n->n);
    snprintf(name, sizeof name, "times_%d", n->n);
    ow_add(n->file, ow_node("Mul", name, in, out));
    n->v[n->n] = n->v[x];
    return n->n++;
}

/* x * 100000, a convolution, / 100000: a pixel of 255 is 100000 in between, and f16 ends at 65504. */
static inline struct vg_model *overflow_model(struct vgk_error *err)
{
    struct nets n;
    nets_begin(&n, 3);
    int a = nets_conv(&n, overflow_times(&n, 0, 1e5f), (struct nets_conv){.out = 8, .kernel = 3});
    int b = nets_conv(&n, nets_unary(&n, a, "Relu"), (struct nets_conv){.out = 3, .kernel = 3});
    return nets_end(&n, overflow_times(&n, b, 1e-5f), err);
}

/* Frames of 96x32 in tiles side by side. */
static inline void overflow_check(struct vg_run *half, const struct vg_grid *g, struct vg_run *single,
                                  const struct vg_grid *single_grid)
{
    struct nets_picture dark = nets_picture(VGK_FRAME_PACKED, 96, 32, true), bright = nets_picture(VGK_FRAME_PACKED, 96, 32, false);
    struct nets_picture a = nets_picture(VGK_FRAME_PACKED, 96, 32, false), b = nets_picture(VGK_FRAME_PACKED, 96, 32, false),
                        c = nets_picture(VGK_FRAME_PACKED, 96, 32, false);
    struct vg_run_info info;
    struct vgk_error err = {{0}};
    expectf(g->x.n > 2 && g->y.n == 1, "%d tiles", g->x.n);
    for (size_t i = 0; i < dark.bytes; i++)
        bright.data[i] = dark.data[i] %= 20;
    int middle = g->x.cut[1] + (g->x.cut[2] - g->x.cut[1]) / 2; /* of the second tile, far from its neighbours */
    for (int y = 10; y < 14; y++)
        memset(bright.data + (y * 96 + middle - 1) * 3, 255, 6);
    expect(nets_frame(half, g, &dark, &a, &err) == VGK_OK);
    vg_run_info(half, &info);
    expectf(info.rescued == 0, "%d", (int)info.rescued);
    for (int round = 1; round <= 2; round++) {
        expect(nets_frame(half, g, &bright, &b, &err) == VGK_OK);
        vg_run_info(half, &info);
        expectf(info.rescued == (uint64_t)round, "%d", (int)info.rescued);
    }
    expect(nets_frame(single, single_grid, &bright, &c, &err) == VGK_OK);
    int others = 0, worst = 0, differ = 0;
    for (int y = 0; y < 32; y++)
        for (int x = 0; x < 96; x++)
            for (int k = 0; k < 3; k++) {
                int i = (y * 96 + x) * 3 + k, d = abs(b.data[i] - c.data[i]);
                bool inside = x >= g->x.cut[1] && x < g->x.cut[2];
                worst = d > worst ? d : worst;
                differ += inside && b.data[i] != a.data[i];
                others += !inside && b.data[i] != a.data[i];
            }
    expectf(others == 0, "%d values of other tiles changed", others);
    expectf(worst <= 1, "%d steps from single precision", worst);
    expect(differ > 0);
    /* And the next frame is as before. */
    expect(nets_frame(half, g, &dark, &b, &err) == VGK_OK);
    expect(!memcmp(a.data, b.data, a.bytes));
    free(dark.data), free(bright.data), free(a.data), free(b.data), free(c.data);
}

#endif
