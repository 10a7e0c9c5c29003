/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cpu.h"
#include "elements.h"
#include "frame_vector.h"

#include <math.h>

static const struct vgk_frame_rows *rows_of(const struct vgk_device *dev) { return VGK_BY_ISA(dev, vgk_frame_rows); }

static struct vgk_line line_of(const struct vgk_frame *f, int y)
{
    struct vgk_line l = {
        .width = f->width, .alpha = -1, .half = vgk_frame_halved(f), .packed = f->layout == VGK_FRAME_PACKED
    };
    if (l.packed)
        l.base = f->plane[0] + y * f->stride[0];
    for (int k = 0; k < 3; k++) {
        bool pair = f->layout == VGK_FRAME_NV12 && k;
        int plane = pair ? 1 : k;
        l.step[k] = l.packed ? f->step : pair ? 2 : 1;
        l.offset[k] = f->offset[k];
        l.p[k] = l.packed ? l.base + f->offset[k]
                          : f->plane[plane] + (l.half && k ? y / 2 : y) * f->stride[plane] + (pair ? k - 1 : 0);
    }
    if (l.packed)
        l.alpha = f->alpha;
    return l;
}

static struct vgk_pixel_row row_of(const struct vgk_tensor *t, int64_t y)
{
    return (struct vgk_pixel_row){(float *)t->data + y * t->stride[2], t->stride[3], t->stride[1]};
}

static enum vgk_status check(const struct vgk_tensor *t, const struct vgk_frame *f, struct vgk_error *err)
{
    char text[96];
    if (t->type == VGK_F32 && t->rank == 4 && t->dim[0] == 1 && t->dim[1] == 3 && f->width > 0 && f->height > 0 &&
        t->dim[2] >= f->height && t->dim[3] >= f->width)
        return VGK_OK;
    return vgk_fail(err, VGK_ERR_INVALID,
                    "a frame of %d x %d needs a tensor f32[1,3,H,W] of that size or larger, got %s", f->width,
                    f->height, vgk_tensor_describe(t, text, sizeof text));
}

struct job {
    const struct vgk_frame_rows *rows;
    const struct vgk_frame *frame, *alpha;
    const struct vgk_matrix *matrix;
    const struct vgk_tensor *tensor;
    const float *low, *high;
};

static void read_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    for (int64_t y = begin; y < end; y++) {
        int last = j->frame->height - 1;
        struct vgk_line line = line_of(j->frame, y < last ? (int)y : last);
        struct vgk_pixel_row row = row_of(j->tensor, y);
        j->rows->read(&line, (int)j->tensor->dim[3], j->matrix, &row);
    }
}

enum vgk_status vgk_cpu_frame_read(struct vgk_device *dev, const struct vgk_frame *src, const struct vgk_matrix *matrix,
                                   const struct vgk_tensor *dst, void *scratch, struct vgk_error *err)
{
    struct job j = {.rows = rows_of(dev), .frame = src, .matrix = matrix, .tensor = dst};
    enum vgk_status status = check(dst, src, err);
    if (status == VGK_OK)
        vgk_ranges_run(dev, dst->dim[2], 1 + 16384 / dst->dim[3], read_range, &j);
    return status;
}

/* A unit is a row, or the two that share their chroma. */
static void write_range(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    const struct vgk_frame *f = j->frame, *a = j->alpha;
    int unit = vgk_frame_halved(f) ? 2 : 1;
    for (int64_t u = begin; u < end; u++) {
        struct vgk_line lines[2];
        struct vgk_pixel_row rows[2];
        int n = 0;
        for (int y = (int)u * unit; n < unit && y < f->height; y++, n++) {
            lines[n] = line_of(f, y);
            rows[n] = row_of(j->tensor, y);
            if (a && a->layout == VGK_FRAME_PACKED && a->alpha >= 0) {
                int from = (int)((int64_t)y * a->height / f->height);
                lines[n].alpha_from = a->plane[0] + from * a->stride[0] + a->alpha;
                lines[n].alpha_width = a->width;
                lines[n].alpha_step = a->step;
            }
        }
        j->rows->write(rows, n, j->matrix, j->low, j->high, lines);
    }
}

static int count_nonfinite(const struct vgk_tensor *t, const struct vgk_frame *f)
{
    int n = 0;
    for (int64_t y = 0; y < f->height; y++) {
        struct vgk_pixel_row row = row_of(t, y);
        for (int64_t x = 0; x < f->width; x++)
            for (int k = 0; k < 3; k++)
                n += !isfinite(row.p[x * row.pixel + k * row.channel]);
    }
    return n;
}

enum vgk_status vgk_cpu_frame_write(struct vgk_device *dev, const struct vgk_tensor *src,
                                    const struct vgk_matrix *matrix, const float low[3], const float high[3],
                                    const struct vgk_frame *alpha, const struct vgk_frame *dst, void *scratch,
                                    int *nonfinite, struct vgk_error *err)
{
    struct job j = {.rows = rows_of(dev), .frame = dst, .alpha = alpha, .matrix = matrix, .tensor = src, .low = low,
                    .high = high};
    enum vgk_status status = check(src, dst, err);
    int unit = vgk_frame_halved(dst) ? 2 : 1;
    if (status == VGK_OK && nonfinite)
        *nonfinite = count_nonfinite(src, dst);
    if (status == VGK_OK)
        vgk_ranges_run(dev, (dst->height + unit - 1) / unit, 1 + 16384 / unit / dst->width, write_range, &j);
    return status;
}
