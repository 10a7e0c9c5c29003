/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of frames and of tensors: what frame.c calls, compiled per instruction set. */
#ifndef VGK_CPU_FRAME_VECTOR_H
#define VGK_CPU_FRAME_VECTOR_H

#include "cpu.h"

enum vgk_status vgk_cpu_frame_read(struct vgk_device *, const struct vgk_frame *src, const struct vgk_matrix *,
                                   const struct vgk_tensor *dst, void *scratch, struct vgk_error *);
enum vgk_status vgk_cpu_frame_write(struct vgk_device *, const struct vgk_tensor *src, const struct vgk_matrix *,
                                    const float low[3], const float high[3], const struct vgk_frame *alpha,
                                    const struct vgk_frame *dst, void *scratch, int *nonfinite, struct vgk_error *);

/* One row of a frame. */
struct vgk_line {
    uint8_t *p[3];  /* the first sample of each component */
    int step[3];    /* bytes to the next sample */
    bool half;      /* components 1 and 2 have one sample for two pixels */
    bool packed;    /* the components of a pixel lie side by side: base + offset[i] + step[0] * x */
    uint8_t *base;
    int offset[3], alpha; /* alpha < 0: none */
    const uint8_t *alpha_from; /* written: the row that alpha comes from, NULL = 255; */
    int alpha_width, alpha_step, width; /* its pixel x * alpha_width / width goes to pixel x */
};

/* A row of a tensor: component k of pixel x at p[k * channel + x * pixel]. */
struct vgk_pixel_row {
    float *p;
    ptrdiff_t pixel, channel;
};

struct vgk_frame_rows {
    /* n pixels, those beyond the line's `width` repeating its last. */
    void (*read)(const struct vgk_line *line, int n, const struct vgk_matrix *, const struct vgk_pixel_row *dst);
    /* `rows` lines of line->width pixels, 1 or 2: those that share chroma. */
    void (*write)(const struct vgk_pixel_row *src, int rows, const struct vgk_matrix *, const float low[3],
                  const float high[3], const struct vgk_line *lines);
};

extern const struct vgk_frame_rows vgk_frame_rows_generic;
#ifdef __x86_64__
extern const struct vgk_frame_rows vgk_frame_rows_avx2, vgk_frame_rows_avx512;
#endif

#endif
