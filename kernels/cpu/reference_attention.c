/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attention, one query at a time, in double: the running maximum and sum of Milakov & Gimelshein, Online normalizer
 * calculation for softmax (2018), and the weighted sum of values beside them as Rabe & Staats, Self-attention does not
 * need O(n^2) memory (2021). */
#include "reference.h"

#include <math.h>

struct job {
    const struct vgk_op *op;
    double *sums; /* [threads][head size of v] */
};

static void queries(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    const struct vgk_attention *p = &j->op->p.attention;
    const struct vgk_tensor *q = &j->op->in[0], *k = &j->op->in[1], *v = &j->op->in[2], *mask = vgk_input(j->op, 3);
    const struct vgk_tensor *y = j->op->out;
    int64_t heads = q->dim[1], queries = q->dim[2], keys = k->dim[2], depth = q->dim[3], width = v->dim[3];
    double *sum = j->sums + thread * width;
    for (int64_t row = begin; row < end; row++) {
        int64_t i = row % queries, h = row / queries % heads, n = row / queries / heads, g = h * k->dim[1] / heads;
        int64_t aq = n * q->stride[0] + h * q->stride[1] + i * q->stride[2];
        int64_t ak = n * k->stride[0] + g * k->stride[1], av = n * v->stride[0] + g * v->stride[1];
        double largest = -INFINITY, total = 0;
        for (int64_t c = 0; c < width; c++)
            sum[c] = 0;
        for (int64_t s = 0; s < keys && !(p->causal && s > i + p->past); s++) {
            double dot = 0, a, b;
            for (int64_t c = 0; c < depth; c++) {
                vgk_load_f64(&a, q, aq + c * q->stride[3], 0, 1);
                vgk_load_f64(&b, k, ak + s * k->stride[2] + c * k->stride[3], 0, 1);
                dot += a * b;
            }
            dot *= (double)p->scale;
            if (p->softcap != 0)
                dot = (double)p->softcap * tanh(dot / (double)p->softcap);
            if (mask) {
                vgk_load_f64(&a, mask, n * mask->stride[0] + h * mask->stride[1] + i * mask->stride[2] +
                                           s * mask->stride[3], 0, 1);
                dot = mask->type == VGK_BOOL ? (a != 0 ? dot : -INFINITY) : dot + a;
            }
            if (dot == -INFINITY)
                continue;
            if (dot > largest || dot != dot) {
                double shrink = exp(largest - dot);
                total *= shrink;
                for (int64_t c = 0; c < width; c++)
                    sum[c] *= shrink;
                largest = dot;
            }
            double e = exp(dot - largest);
            total += e;
            for (int64_t c = 0; c < width; c++) {
                vgk_load_f64(&b, v, av + s * v->stride[2] + c * v->stride[3], 0, 1);
                sum[c] += e * b;
            }
        }
        for (int64_t c = 0; c < width; c++) {
            double r = total == 0 ? 0 : sum[c] / total;
            vgk_store_f64(&r, y, n * y->stride[0] + h * y->stride[1] + i * y->stride[2] + c * y->stride[3], 0, 1);
        }
    }
}

bool vgk_ref_attention_scratch(struct vgk_device *dev, const struct vgk_op *op, size_t *bytes)
{
    return vgk_mul((size_t)op->in[2].dim[3] * sizeof(double), (size_t)vgk_pool_size(dev->pool), bytes);
}

void vgk_ref_attention(struct vgk_device *dev, const struct vgk_op *op, double *scratch)
{
    struct job j = {op, scratch};
    const struct vgk_tensor *q = &op->in[0];
    if (vgk_tensor_count(op->out))
        vgk_ranges_run(dev, q->dim[0] * q->dim[1] * q->dim[2], 1, queries, &j);
}
