/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Floats to small integers and back, with the ONNX standard's rounding and saturation. */
#include "reference.h"

#include <math.h>

struct job {
    const struct vgk_tensor *y, *x, *scale, *zero; /* zero may be NULL */
    struct vgk_loop loop;
    double low, high; /* of the integers */
};

static void type_range(enum vgk_type type, double *low, double *high)
{
    int bits = vgk_type_bits(type);
    bool sign = type == VGK_I4 || type == VGK_I8 || type == VGK_I16 || type == VGK_I32;
    *low = sign ? -ldexp(1, bits - 1) : 0;
    *high = ldexp(1, bits - (sign ? 1 : 0)) - 1;
}

/* Some elements: scale and zero point into a[] and z[]. */
static void constants(const struct job *j, const int64_t *offset, int64_t n, double *a, double *z)
{
    const struct vgk_loop *l = &j->loop;
    vgk_load_f64(a, j->scale, offset[2], l->stride[2][l->rank - 1], n);
    for (int64_t i = 0; i < n && !j->zero; i++)
        z[i] = 0;
    if (j->zero)
        vgk_load_f64(z, j->zero, offset[3], l->stride[3][l->rank - 1], n);
}

static void quantize_piece(void *arg, const int64_t *offset, int64_t n)
{
    const struct job *j = arg;
    const struct vgk_loop *l = &j->loop;
    double v[VGK_LOOP_CHUNK], a[VGK_LOOP_CHUNK], z[VGK_LOOP_CHUNK];
    vgk_load_f64(v, j->x, offset[1], l->stride[1][l->rank - 1], n);
    constants(j, offset, n, a, z);
    for (int64_t i = 0; i < n; i++) {
        double q = nearbyint((double)((float)v[i] / (float)a[i])) + z[i]; /* the quotient is a float's, as everywhere */
        v[i] = q != q ? 0 : q < j->low ? j->low : q > j->high ? j->high : q;
    }
    vgk_store_f64(v, j->y, offset[0], l->stride[0][l->rank - 1], n);
}

static void dequantize_piece(void *arg, const int64_t *offset, int64_t n)
{
    const struct job *j = arg;
    const struct vgk_loop *l = &j->loop;
    double v[VGK_LOOP_CHUNK], a[VGK_LOOP_CHUNK], z[VGK_LOOP_CHUNK];
    vgk_load_f64(v, j->x, offset[1], l->stride[1][l->rank - 1], n);
    constants(j, offset, n, a, z);
    for (int64_t i = 0; i < n; i++)
        v[i] = (v[i] - z[i]) * a[i];
    vgk_store_f64(v, j->y, offset[0], l->stride[0][l->rank - 1], n);
}

void vgk_ref_quantize(struct vgk_device *dev, const struct vgk_op *op)
{
    struct job j = {.y = op->out, .x = &op->in[0], .scale = &op->in[1], .zero = vgk_input(op, 2)};
    const struct vgk_tensor *t[4] = {j.y, j.x, j.scale, j.zero};
    bool down = op->kind == VGK_OP_QUANTIZE;
    if (down)
        type_range(op->out->type, &j.low, &j.high);
    vgk_loop_init(&j.loop, j.zero ? 4 : 3, t);
    vgk_loop_run(dev, &j.loop, down ? quantize_piece : dequantize_piece, &j);
}
