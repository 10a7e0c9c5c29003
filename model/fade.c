/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fade.h"

void vg_fade(const struct vg_layout *layout, const struct vg_picture *later, const struct vg_picture *earlier,
             int width, int height, int i, int n)
{
    unsigned b = (unsigned)i + 1, all = (unsigned)n + 1, a = all - b;
    for (int p = 0; p < layout->planes; p++) {
        int xs = layout->plane[p].x_sub, ys = layout->plane[p].y_sub;
        int rows = (height + (1 << ys) - 1) >> ys, bytes = ((width + (1 << xs) - 1) >> xs) * layout->plane[p].step;
        for (int y = 0; y < rows; y++) {
            uint8_t *to = later->data[p] + y * later->stride[p];
            const uint8_t *from = earlier->data[p] + y * earlier->stride[p];
            for (int x = 0; x < bytes; x++)
                to[x] = (uint8_t)((from[x] * a + to[x] * b + all / 2) / all);
        }
    }
}
