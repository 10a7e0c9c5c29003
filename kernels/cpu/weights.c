/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "weights.h"

#include <string.h>

/* Elements of a scale or zero point along a walk over the weights. */
struct blocks {
    const struct vgk_tensor *t; /* NULL = none */
    int64_t at, stride, block;
};

static struct blocks blocks_of(const struct vgk_tensor *w, const struct vgk_tensor *t, const int64_t *index, int along)
{
    struct blocks b = {t};
    for (int d = 0; t && d < w->rank; d++) {
        int64_t size = w->dim[d] / t->dim[d];
        b.at += index[d] / size * t->stride[d];
        if (d == along) {
            b.stride = t->stride[d];
            b.block = size;
        }
    }
    return b;
}

static float block_at(const struct blocks *b, int64_t i, int64_t first)
{
    float v;
    vgk_load_f32(&v, b->t, b->at + ((first + i) / b->block - first / b->block) * b->stride, 0, 1);
    return v;
}

void vgk_weights_f32(const struct vgk_op *op, const int64_t *index, int along, float *to, int64_t n)
{
    const struct vgk_tensor *w = &op->in[1], *scale = vgk_input(op, VGK_WEIGHT_SCALE);
    int64_t at = 0;
    for (int d = 0; d < w->rank; d++)
        at += index[d] * w->stride[d];
    vgk_load_f32(to, w, at, w->stride[along], n);
    if (!scale)
        return;
    struct blocks s = blocks_of(w, scale, index, along),
                  z = blocks_of(w, vgk_input(op, VGK_WEIGHT_ZERO), index, along);
    for (int64_t i = 0; i < n; i++)
        to[i] = (to[i] - (z.t ? block_at(&z, i, index[along]) : 0)) * block_at(&s, i, index[along]);
}

void vgk_weights_f64(const struct vgk_op *op, const int64_t *index, int along, double *to, int64_t n)
{
    const struct vgk_tensor *w = &op->in[1];
    int64_t place[VGK_MAX_RANK], at = 0;
    memcpy(place, index, (size_t)w->rank * sizeof *place);
    for (int d = 0; d < w->rank; d++)
        at += index[d] * w->stride[d];
    if (!vgk_input(op, VGK_WEIGHT_SCALE)) {
        vgk_load_f64(to, w, at, w->stride[along], n);
        return;
    }
    float part[64];
    for (int64_t i = 0; i < n; i += 64, place[along] += 64) {
        int64_t m = n - i < 64 ? n - i : 64;
        vgk_weights_f32(op, place, along, part, m);
        for (int64_t k = 0; k < m; k++)
            to[i + k] = (double)part[k];
    }
}

/* --- panels --- */

bool vgk_panels_init(struct vgk_panels *p, enum vgk_type type, int64_t depth, int nr, int64_t block, bool zero)
{
    bool whole = type == VGK_I8 || type == VGK_U8 || type == VGK_I4 || type == VGK_U4;
    size_t rows = vgk_type_bits(type) < 8 ? ((size_t)depth + 1) / 2 : (size_t)depth,
           row = (size_t)nr * (vgk_type_bits(type) < 8 ? 1 : (size_t)vgk_type_bits(type) / 8);
    *p = (struct vgk_panels){.type = type, .nr = nr, .depth = depth, .block = block, .zero = zero};
    if ((!whole && type != VGK_F16 && type != VGK_BF16 && type != VGK_F32) || (type == VGK_F32 && block) ||
        !vgk_mul(rows, row, &p->bytes) || p->bytes > SIZE_MAX / 4)
        return false;
    if (block) {
        size_t blocks = (size_t)(depth / block) * (size_t)nr;
        p->scales = vgk_round_up(p->bytes, sizeof(float));
        p->bytes = p->zeros = p->scales + blocks * sizeof(float);
        p->bytes += zero ? blocks : 0;
    }
    if (type != VGK_F32) /* which are read as one array */
        p->bytes = vgk_round_up(p->bytes, VGK_ALIGN);
    return true;
}

void vgk_panel_set(const struct vgk_panels *p, void *panel, int64_t row, const float *stored)
{
    if (vgk_type_bits(p->type) >= 8) {
        struct vgk_tensor t = {.type = p->type, .data = panel};
        vgk_store_f32(stored, &t, row * p->nr, 1, p->nr);
        return;
    }
    uint8_t *to = (uint8_t *)panel + row / 2 * p->nr;
    for (int i = 0; i < p->nr; i++) {
        int half = (int)stored[i] & 15;
        to[i] = row % 2 ? (uint8_t)((to[i] & 15) | half << 4) : (uint8_t)half;
    }
}

void vgk_panel_set_block(const struct vgk_panels *p, void *panel, int64_t block, const float *scale, const float *zero)
{
    memcpy((char *)panel + p->scales + (size_t)(block * p->nr) * sizeof *scale, scale, (size_t)p->nr * sizeof *scale);
    for (int i = 0; i < p->nr && p->zero; i++)
        ((uint8_t *)panel)[p->zeros + (size_t)(block * p->nr + i)] = (uint8_t)(int)zero[i];
}
