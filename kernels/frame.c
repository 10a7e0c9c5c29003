/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "frame.h"

struct vgk_frame vgk_frame_part(const struct vgk_frame *f, int x, int y, int width, int height)
{
    struct vgk_frame r = *f;
    bool half = vgk_frame_halved(f);
    for (int i = 0; i < 3; i++) {
        int step = f->layout == VGK_FRAME_PACKED ? f->step : i && f->layout == VGK_FRAME_NV12 ? 2 : 1;
        if (f->plane[i])
            r.plane[i] += (half && i ? y / 2 : y) * f->stride[i] + (ptrdiff_t)(half && i ? x / 2 : x) * step;
    }
    r.width = width;
    r.height = height;
    return r;
}

/* R, G, B in 0..1 = rgb[i][0..2] * components + rgb[i][3], and the other way round. */
static void to_rgb(const struct vgk_colour *c, double rgb[3][4])
{
    double luma = c->full_range ? 255 : 219, chroma = c->full_range ? 255 : 224, black = c->full_range ? 0 : 16;
    double kg = 1 - c->kr - c->kb;
    for (int i = 0; i < 3; i++) {
        rgb[i][0] = c->yuv || i == 0 ? 1 / luma : 0;
        rgb[i][1] = !c->yuv && i == 1 ? 1 / luma : 0;
        rgb[i][2] = !c->yuv && i == 2 ? 1 / luma : 0;
        rgb[i][3] = -black / luma;
    }
    if (!c->yuv)
        return;
    rgb[0][2] = 2 * (1 - c->kr) / chroma;
    rgb[1][1] = -2 * c->kb * (1 - c->kb) / kg / chroma;
    rgb[1][2] = -2 * c->kr * (1 - c->kr) / kg / chroma;
    rgb[2][1] = 2 * (1 - c->kb) / chroma;
    for (int i = 0; i < 3; i++)
        rgb[i][3] -= 128 * (rgb[i][1] + rgb[i][2]);
}

static void from_rgb(const struct vgk_colour *c, double out[3][4])
{
    double luma = c->full_range ? 255 : 219, chroma = c->full_range ? 255 : 224, black = c->full_range ? 0 : 16;
    double y[3] = {c->kr, 1 - c->kr - c->kb, c->kb};
    for (int j = 0; j < 3; j++)
        if (c->yuv) {
            out[0][j] = luma * y[j];
            out[1][j] = chroma * ((j == 2) - y[j]) / (2 * (1 - c->kb));
            out[2][j] = chroma * ((j == 0) - y[j]) / (2 * (1 - c->kr));
        } else {
            for (int i = 0; i < 3; i++)
                out[i][j] = i == j ? luma : 0;
        }
    for (int i = 0; i < 3; i++)
        out[i][3] = c->yuv && i ? 128 : black;
}

struct vgk_matrix vgk_matrix_in(const struct vgk_colour *c, const struct vgk_pixels *p)
{
    double rgb[3][4];
    struct vgk_matrix r;
    to_rgb(c, rgb);
    for (int k = 0; k < 3; k++)
        for (int j = 0; j < 4; j++)
            r.m[k][j] = (float)((rgb[p->order[k]][j] - (j == 3 ? (double)p->mean[k] : 0)) * (double)p->scale[k]);
    return r;
}

/* rgb[order[k]] = tensor[k] / scale[k] + mean[k] goes in front. */
struct vgk_matrix vgk_matrix_out(const struct vgk_colour *c, const struct vgk_pixels *p)
{
    double out[3][4];
    struct vgk_matrix r;
    from_rgb(c, out);
    for (int i = 0; i < 3; i++) {
        double constant = out[i][3];
        for (int k = 0; k < 3; k++) {
            double v = out[i][p->order[k]];
            r.m[i][k] = (float)(v / (double)p->scale[k]);
            constant += v * (double)p->mean[k];
        }
        r.m[i][3] = (float)constant;
    }
    return r;
}
