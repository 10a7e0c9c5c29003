/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scenecut.h"

#include <math.h>

#define NX VG_SCENECUT_X
#define NY VG_SCENECUT_Y
#define SAMPLES VG_SCENECUT_SAMPLES
#define SHIFT_X 3             /* cells */
#define SHIFT_Y 2
#define AROUND 2              /* what is around a cell: so many on each side */
#define BLACK 20              /* of 255, in either range */
#define WHITE 230
#define LEAST_DETAIL 2.5f     /* a deviation of so much, of 255, is a picture */
#define LEAST_CELLS (NX * NY / 4)

static int luma(const struct vgk_frame *f, int x, int y)
{
    const uint8_t *p;
    switch (f->layout) {
    case VGK_FRAME_PACKED:
        p = f->plane[0] + y * f->stride[0] + (ptrdiff_t)x * f->step;
        return (p[f->offset[0]] + 2 * p[f->offset[1]] + p[f->offset[2]]) / 4;
    case VGK_FRAME_PLANAR:
        return (f->plane[0][y * f->stride[0] + x] + 2 * f->plane[1][y * f->stride[1] + x] +
                f->plane[2][y * f->stride[2] + x]) / 4;
    case VGK_FRAME_I420:
    case VGK_FRAME_NV12:
        break;
    }
    return f->plane[0][y * f->stride[0] + x];
}

static float cell(const struct vgk_frame *f, int column, int row)
{
    int sum = 0;
    for (int j = 0; j < SAMPLES; j++)
        for (int i = 0; i < SAMPLES; i++) {
            int64_t x = 2 * (column * SAMPLES + i) + 1, y = 2 * (row * SAMPLES + j) + 1;
            sum += luma(f, (int)(x * f->width / (2 * NX * SAMPLES)), (int)(y * f->height / (2 * NY * SAMPLES)));
        }
    return (float)sum / (SAMPLES * SAMPLES);
}

static int clamp(int i, int n) { return i < 0 ? 0 : i < n ? i : n - 1; }

/* false: it says nothing. */
static bool look(const struct vgk_frame *f, struct vg_scenecut_view *view)
{
    float mean[NY][NX];
    int n = 0;
    double sum = 0;
    for (int y = 0; y < NY; y++)
        for (int x = 0; x < NX; x++) {
            mean[y][x] = cell(f, x, y);
            view->valid[y][x] = mean[y][x] > BLACK && mean[y][x] < WHITE;
        }
    for (int y = 0; y < NY; y++)
        for (int x = 0; x < NX; x++) {
            float around = 0;
            for (int j = -AROUND; j <= AROUND; j++)
                for (int i = -AROUND; i <= AROUND; i++)
                    around += mean[clamp(y + j, NY)][clamp(x + i, NX)];
            view->detail[y][x] = mean[y][x] - around / ((2 * AROUND + 1) * (2 * AROUND + 1));
            if (view->valid[y][x]) {
                n++;
                sum += view->detail[y][x] * view->detail[y][x];
            }
        }
    return n >= LEAST_CELLS && sum >= n * LEAST_DETAIL * LEAST_DETAIL;
}

/* Of the cells that both have.  1 when these are too few to tell. */
static float correlate(const struct vg_scenecut_view *a, const struct vg_scenecut_view *b, int dx, int dy)
{
    double n = 0, sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
    for (int y = dy > 0 ? dy : 0; y < NY && y < NY + dy; y++)
        for (int x = dx > 0 ? dx : 0; x < NX && x < NX + dx; x++) {
            if (!a->valid[y][x] || !b->valid[y - dy][x - dx])
                continue;
            double va = a->detail[y][x], vb = b->detail[y - dy][x - dx];
            n++;
            sa += va;
            sb += vb;
            saa += va * va;
            sbb += vb * vb;
            sab += va * vb;
        }
    if (n < LEAST_CELLS / 2)
        return 1;
    double both = (saa - sa * sa / n) * (sbb - sb * sb / n);
    return both > 0 ? (float)((sab - sa * sb / n) / sqrt(both)) : 1;
}

bool vg_scenecut_next(struct vg_scenecut *s, const struct vgk_frame *frame)
{
    struct vg_scenecut_view view;
    float best = s->has ? -1 : 1;
    if (!look(frame, &view))
        return false;
    for (int dy = -SHIFT_Y; dy <= SHIFT_Y; dy++)
        for (int dx = -SHIFT_X; dx <= SHIFT_X && best < 1; dx++)
            best = fmaxf(best, correlate(&view, &s->last, dx, dy));
    s->has = true;
    s->correlation = best;
    s->last = view;
    return best < VG_SCENECUT_LEAST;
}

void vg_scenecut_reset(struct vg_scenecut *s) { s->has = false; }
