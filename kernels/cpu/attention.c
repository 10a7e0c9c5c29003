/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attention, summed in f32, by the register blocks of the matrix products: blocks of queries go over blocks of keys, each of
 * which brings its own maximum (Milakov & Gimelshein 2018; the blocks as Rabe & Staats 2021).  Keys and values of a
 * head are brought into panels first: by each thread for itself where heads are many and small (windows, attention over
 * time), else once for all threads.  The blocks of keys begin at key 0, so a query's bits do not depend on the queries
 * beside it. */
#include "attention.h"
#include "cpu.h"
#include "elements.h"
#include "micro.h"

#include <math.h>
#include <string.h>

#define KEYS 128                     /* of a block, at most */
#define SMALL_HEAD ((size_t)1 << 18) /* floats of panels that a thread may keep for itself */

struct job {
    const struct vgk_micro *micro;
    vgk_attention_row *row;
    const struct vgk_op *op;
    const struct vgk_tensor *q, *k, *v, *mask, *y;
    int64_t heads, groups, queries, keys, depth, width;
    int nv, nr, mr;
    int64_t block, blocks;       /* keys of a block; blocks */
    int64_t panels;              /* of values */
    size_t panel_floats, thread_floats;
    bool own;                    /* panels a thread */
    float *scratch;              /* panels, then each thread's */
    int64_t n, g;                /* which head's are in the panels */
};

static bool make(struct vgk_device *dev, const struct vgk_op *op, struct job *j)
{
    if (op->kind != VGK_OP_ATTENTION)
        return false;
    *j = (struct job){.op = op, .q = &op->in[0], .k = &op->in[1], .v = &op->in[2], .mask = vgk_input(op, 3),
                      .y = op->out, .micro = &vgk_micro_generic, .row = vgk_attention_row_generic};
    const struct vgk_tensor *floats[] = {j->q, j->k, j->v, j->y};
    for (int i = 0; i < 4; i++)
        if (!vgk_type_is_float(floats[i]->type) || floats[i]->type == VGK_F64)
            return false;
    if (!vgk_tensor_count(j->y) || !j->k->dim[2] || !j->q->dim[3])
        return false;
#ifdef __x86_64__
    if (dev->isa == VGK_ISA_AVX2)
        j->micro = &vgk_micro_avx2, j->row = vgk_attention_row_avx2;
    if (dev->isa >= VGK_ISA_AVX512)
        j->micro = &vgk_micro_avx512, j->row = vgk_attention_row_avx512;
#endif
    j->heads = j->q->dim[1];
    j->groups = j->k->dim[1];
    j->queries = j->q->dim[2];
    j->keys = j->k->dim[2];
    j->depth = j->q->dim[3];
    j->width = j->v->dim[3];
    j->nv = j->keys <= j->micro->vl ? 1 : 2;
    j->nr = j->nv * j->micro->vl;
    j->mr = j->micro->rows[j->nv];
    j->block = (int64_t)vgk_round_up((size_t)(j->keys < KEYS ? j->keys : KEYS), (size_t)j->nr);
    j->blocks = (j->keys + j->block - 1) / j->block;
    j->panels = (j->width + j->nr - 1) / j->nr;
    size_t rows = (size_t)(j->blocks * j->block);
    if (!vgk_mul(rows, (size_t)(j->depth + j->panels * j->nr), &j->panel_floats))
        return false;
    j->panel_floats = vgk_round_up(j->panel_floats, 16);
    j->own = j->panel_floats <= SMALL_HEAD;
    /* scores, a product, the sums, the queries, a mask's row */
    j->thread_floats =
        vgk_round_up((size_t)(j->mr * (j->block + j->nr + j->panels * j->nr + j->depth) + j->block), 16);
    return true;
}

static enum vgk_status need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n, struct vgk_error *err)
{
    struct job j;
    size_t threads = (size_t)vgk_pool_size(dev->pool), floats;
    if (!make(dev, op, &j) || !vgk_mul(threads, j.thread_floats + (j.own ? j.panel_floats : 0), &floats) ||
        !vgk_add(floats, j.own ? 0 : j.panel_floats, &floats) || !vgk_mul(floats, sizeof(float), &floats))
        return VGK_ERR_UNSUPPORTED;
    *n = (struct vgk_need){.scratch = floats, .lattice = {1, 1, 1}};
    return VGK_OK;
}

/* Keys [block * block keys / nr][depth][nr], then values [panels][all keys][nr]; `part` of them: a piece of nr keys. */
static void pack(const struct job *j, int64_t n, int64_t g, int64_t part, float *to)
{
    int64_t all = j->blocks * j->block, first = part * j->nr, have = j->keys - first;
    int64_t at_k = n * j->k->stride[0] + g * j->k->stride[1], at_v = n * j->v->stride[0] + g * j->v->stride[1];
    have = have < 0 ? 0 : have > j->nr ? j->nr : have;
    float *keys = to + first * j->depth, *values = to + all * j->depth;
    for (int64_t c = 0; c < j->depth; c++, keys += j->nr) {
        vgk_load_f32(keys, j->k, at_k + first * j->k->stride[2] + c * j->k->stride[3], j->k->stride[2], have);
        memset(keys + have, 0, (size_t)(j->nr - have) * sizeof *keys);
    }
    for (int64_t p = 0; p < j->panels; p++) {
        int64_t column = p * j->nr, wide = j->width - column < j->nr ? j->width - column : j->nr;
        float *d = values + (p * all + first) * j->nr;
        memset(d, 0, (size_t)(j->nr * j->nr) * sizeof *d);
        for (int64_t s = 0; s < have; s++)
            vgk_load_f32(d + s * j->nr, j->v, at_v + (first + s) * j->v->stride[2] + column * j->v->stride[3],
                         j->v->stride[3], wide);
    }
}

/* The mask of a query for n keys from `first` on, as something to add. */
static const float *bias(const struct job *j, int64_t n, int64_t h, int64_t i, int64_t first, int64_t count, float *to)
{
    const struct vgk_tensor *m = j->mask;
    if (!m)
        return NULL;
    vgk_load_f32(to, m, n * m->stride[0] + h * m->stride[1] + i * m->stride[2] + first * m->stride[3], m->stride[3],
                 count);
    for (int64_t k = 0; k < count && m->type == VGK_BOOL; k++)
        to[k] = to[k] != 0 ? 0 : -INFINITY;
    return to;
}

/* mr queries from `first` on of head h against all keys in the panels. */
static void queries(const struct job *j, int64_t n, int64_t h, int64_t first, const float *panels, float *mine)
{
    const struct vgk_attention *p = &j->op->p.attention;
    int64_t m = j->queries - first < j->mr ? j->queries - first : j->mr, all = j->blocks * j->block;
    int64_t wide = j->panels * j->nr;
    float *scores = mine, *product = scores + j->mr * j->block, *sums = product + j->mr * j->nr,
          *q = sums + j->mr * wide, *mask = q + j->mr * j->depth;
    float largest[VGK_MICRO_ROWS], total[VGK_MICRO_ROWS], shrink[VGK_MICRO_ROWS];
    for (int64_t r = 0; r < m; r++) {
        vgk_load_f32(q + r * j->depth, j->q, n * j->q->stride[0] + h * j->q->stride[1] + (first + r) * j->q->stride[2],
                     j->q->stride[3], j->depth);
        largest[r] = -INFINITY;
        total[r] = 0;
    }
    memset(sums, 0, (size_t)(m * wide) * sizeof *sums);
    for (int64_t key = 0; key < j->keys; key += j->block) {
        if (p->causal && key > first + m - 1 + p->past)
            break;
        for (int64_t c = 0; c < j->block; c += j->nr) {
            struct vgk_segment s = {q, panels + (key + c) * j->depth};
            j->micro->fn[j->nv][m](1, &s, j->depth, j->depth, scores + c, j->block);
        }
        for (int64_t r = 0; r < m; r++) {
            int64_t i = first + r, count = j->keys - key < j->block ? j->keys - key : j->block;
            if (p->causal && i + p->past - key + 1 < count)
                count = i + p->past - key + 1 < 0 ? 0 : i + p->past - key + 1;
            shrink[r] = j->row(scores + r * j->block, count, j->block, p->scale, p->softcap,
                               bias(j, n, h, i, key, count, mask), &largest[r], &total[r]);
        }
        for (int64_t c = 0; c < j->panels; c++) {
            struct vgk_segment s = {scores, panels + all * j->depth + (c * all + key) * j->nr};
            j->micro->fn[j->nv][m](1, &s, j->block, j->block, product, j->nr);
            for (int64_t r = 0; r < m; r++)
                for (int64_t k = 0; k < j->nr; k++)
                    sums[r * wide + c * j->nr + k] = sums[r * wide + c * j->nr + k] * shrink[r] + product[r * j->nr + k];
        }
    }
    for (int64_t r = 0; r < m; r++) {
        float *sum = sums + r * wide;
        for (int64_t c = 0; c < j->width; c++)
            sum[c] = total[r] == 0 ? 0 : sum[c] / total[r];
        vgk_store_f32(sum, j->y, n * j->y->stride[0] + h * j->y->stride[1] + (first + r) * j->y->stride[2],
                      j->y->stride[3], j->width);
    }
}

/* Heads of keys, each with all that use it. */
static void small_heads(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    float *panels = j->scratch + (size_t)thread * (j->panel_floats + j->thread_floats), *mine =
        panels + j->panel_floats;
    int64_t each = j->heads / j->groups;
    for (int64_t k = begin; k < end; k++) {
        int64_t n = k / j->groups, g = k % j->groups;
        for (int64_t part = 0; part < j->blocks * j->block / j->nr; part++)
            pack(j, n, g, part, panels);
        for (int64_t h = g * each; h < (g + 1) * each; h++)
            for (int64_t first = 0; first < j->queries; first += j->mr)
                queries(j, n, h, first, panels, mine);
    }
}

static void pack_parts(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    for (int64_t part = begin; part < end; part++)
        pack(j, j->n, j->g, part, j->scratch);
}

static void query_blocks(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    int64_t a_head = (j->queries + j->mr - 1) / j->mr, each = j->heads / j->groups;
    float *mine = j->scratch + j->panel_floats + (size_t)thread * j->thread_floats;
    for (int64_t b = begin; b < end; b++)
        queries(j, j->n, j->g * each + b / a_head, b % a_head * j->mr, j->scratch, mine);
}

static enum vgk_status compute(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                               struct vgk_error *err)
{
    struct job j;
    make(dev, op, &j);
    j.scratch = scratch;
    int64_t batches = j.q->dim[0];
    if (j.own) {
        int64_t work = j.keys * j.queries * (j.depth + j.width) * (j.heads / j.groups);
        vgk_ranges_run(dev, batches * j.groups, 1 + 200000 / (work + 1), small_heads, &j);
        return VGK_OK;
    }
    for (j.n = 0; j.n < batches; j.n++)
        for (j.g = 0; j.g < j.groups; j.g++) {
            vgk_ranges_run(dev, j.blocks * j.block / j.nr, 8, pack_parts, &j);
            vgk_ranges_run(dev, j.heads / j.groups * ((j.queries + j.mr - 1) / j.mr), 1, query_blocks, &j);
        }
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_attention = {"attention", need, NULL, compute};
