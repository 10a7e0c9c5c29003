/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Matrix products in f32, by the register blocks of the convolutions.  The right-hand matrix of each batch is brought
 * into panels of a block's width first, then blocks of rows go over the panels: when the plan is made if it is constant,
 * else in the run (once, when all batches share it).  Constant ones keep the type that they are stored in (weights.h);
 * then a panel at a time is made floats, and a piece of the rows goes over it.  Where bf16 will do, panels are of bf16, and
 * each block of rows is made such before it goes over them. */
#include "bf16.h"
#include "cpu.h"
#include "elements.h"
#include "micro.h"
#include "weights.h"

#include <string.h>

static const struct vgk_micro *micro_of(const struct vgk_device *dev) { return VGK_BY_ISA(dev, vgk_micro); }

struct job {
    const struct vgk_micro *micro;
    const struct vgk_tensor *y;
    struct vgk_tensor a, b, c; /* with y's leading dimensions; c.type NONE = left out */
    int64_t rows, columns, depth, batches;
    int64_t ar, bk, bn, cr, cn, yr; /* strides of rows, depth and columns; a's and y's last is 1 */
    bool shared;                    /* one right-hand matrix for all batches */
    int nv, nr, mr;
    int64_t panels;
    float alpha, beta;
    struct vgk_panels stored;       /* type F32: they are as they are multiplied */
    bool weights;                   /* in[1] is of a type that only weights have */
    float *packed;                  /* [panels][depth][nr], or stored panels */
    float *unpacked;                /* a panel for each thread */
    const struct vgk_weights_kernels *kernels;
    const struct vgk_bf16 *product; /* of bf16, or NULL */
    int64_t halves;                 /* the depth, rounded up for it */
    uint16_t *rows_16;              /* a block of rows for each thread */
    int64_t piece, pieces;          /* blocks of rows that go over one unpacked panel; how many such */
    int64_t at_a, at_b, at_c, at_y; /* of this batch */
};

/* How the panels keep what they are made of.  All that decides it is there in a run too. */
static bool store(const struct vgk_op *op, struct job *j)
{
    const struct vgk_tensor *b = &op->in[1], *scale = vgk_input(op, VGK_WEIGHT_SCALE),
                            *zero = vgk_input(op, VGK_WEIGHT_ZERO);
    int64_t block = 0;
    j->weights = b->type != VGK_F32;
    if (scale) {
        int last = scale->rank - 1;
        block = scale->dim[last - 1] ? j->depth / scale->dim[last - 1] : 0;
        for (int d = 0; d < last - 1; d++)
            if (scale->dim[d] != 1)
                return false;
        bool columns = scale->dim[last] == 1 || scale->dim[last] == j->columns;
        bool alike = !zero || !memcmp(zero->dim, scale->dim, sizeof *zero->dim * (size_t)zero->rank);
        if (!block || !columns || !alike || vgk_type_is_float(b->type))
            return false;
    } else if (!vgk_type_is_float(b->type)) {
        return false;
    }
    if (j->weights && !j->shared)
        return false;
    return vgk_panels_init(&j->stored, b->type, j->depth, j->nr, block, zero);
}

static bool make(struct vgk_device *dev, const struct vgk_op *op, struct job *j)
{
    const struct vgk_tensor *y = op->out, *c = vgk_input(op, 2);
    int last = y->rank - 1;
    if (op->kind != VGK_OP_MATMUL || y->type != VGK_F32 || op->in[0].type != VGK_F32 || (c && c->type != VGK_F32) ||
        y->rank < 2 || op->in[0].rank < 2 || op->in[1].rank < 2 || !vgk_tensor_count(y))
        return false;
    *j = (struct job){.micro = micro_of(dev), .y = y, .rows = y->dim[last - 1], .columns = y->dim[last],
                      .alpha = op->p.matmul.alpha, .beta = op->p.matmul.beta};
    int64_t dim[VGK_MAX_RANK];
    j->depth = op->in[0].dim[op->in[0].rank - 1];
    memcpy(dim, y->dim, sizeof dim);
    dim[last] = j->depth;
    if (!vgk_tensor_broadcast(&op->in[0], y->rank, dim, &j->a))
        return false;
    dim[last] = j->columns;
    dim[last - 1] = j->depth;
    if (!vgk_tensor_broadcast(&op->in[1], y->rank, dim, &j->b) ||
        (c && !vgk_tensor_broadcast(c, y->rank, y->dim, &j->c)))
        return false;
    j->ar = j->a.stride[last - 1];
    j->bk = j->b.stride[last - 1];
    j->bn = j->b.stride[last];
    j->cr = j->c.stride[last - 1];
    j->cn = j->c.stride[last];
    j->yr = y->stride[last - 1];
    if (!j->depth || (j->depth > 1 && j->a.stride[last] != 1) || (j->columns > 1 && y->stride[last] != 1))
        return false;
    j->shared = true;
    j->batches = 1;
    for (int d = 0; d < last - 1; d++) {
        j->batches *= y->dim[d];
        j->shared &= y->dim[d] == 1 || !j->b.stride[d];
    }
    if (op->p.matmul.bf16 && vgk_type_is_float(op->in[1].type) && !vgk_input(op, VGK_WEIGHT_SCALE) &&
        (j->product = vgk_cpu_bf16(dev, j->depth))) {
        j->nv = vgk_bf16_vectors(j->columns);
        j->nr = j->nv * j->micro->vl;
        j->mr = j->product->rows[j->nv];
        j->panels = (j->columns + j->nr - 1) / j->nr;
        j->halves = (int64_t)vgk_round_up((size_t)j->depth, (size_t)j->product->depth);
        return vgk_mul(sizeof(uint16_t) * (size_t)j->nr, (size_t)j->halves, &j->stored.bytes);
    }
    double best = 0;
    for (int nv = 1; nv <= VGK_MICRO_WIDTH; nv++) {
        double wide = (double)vgk_round_up((size_t)j->columns, (size_t)(nv * j->micro->vl));
        double speed = (double)j->micro->speed[nv] * (double)j->columns / wide;
        if (speed > best) {
            best = speed;
            j->nv = nv;
        }
    }
    j->nr = j->nv * j->micro->vl;
    j->mr = j->micro->rows[j->nv];
    j->panels = (j->columns + j->nr - 1) / j->nr;
    return store(op, j);
}

static enum vgk_status need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n, struct vgk_error *err)
{
    struct job j;
    size_t bytes, panel;
    if (!make(dev, op, &j) || !vgk_mul(j.stored.bytes, (size_t)j.panels, &bytes) ||
        !vgk_mul(sizeof(float) * (size_t)j.nr * (size_t)vgk_pool_size(dev->pool), (size_t)j.depth, &panel))
        return VGK_ERR_UNSUPPORTED;
    *n = (struct vgk_need){.lattice = {1, 1, 1}};
    bool constant = op->in[1].data; /* as long as nothing runs */
    if (constant && j.shared)
        n->packed = bytes;
    else
        n->scratch = bytes;
    if (j.weights)
        n->scratch = panel;
    if (j.product) {
        if (!vgk_mul(sizeof(uint16_t) * (size_t)j.mr * (size_t)vgk_pool_size(dev->pool), (size_t)j.halves, &panel) ||
            !vgk_add(n->scratch, panel, &n->scratch))
            return VGK_ERR_UNSUPPORTED;
        n->bf16 = true;
        n->how = j.product->how;
    }
    return VGK_OK;
}

static void pack_bf16(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    for (int64_t p = begin; p < end; p++) {
        struct vgk_tensor to = {.type = VGK_BF16, .data = (char *)j->packed + (size_t)p * j->stored.bytes};
        float row[VGK_BF16_VECTORS * 16];
        int64_t first = p * j->nr, n = j->columns - first < j->nr ? j->columns - first : j->nr;
        memset(row, 0, sizeof row);
        for (int64_t k = 0; k < j->halves; k++) {
            if (k < j->depth)
                vgk_load_f32(row, &j->b, j->at_b + k * j->bk + first * j->bn, j->bn, n);
            else
                memset(row, 0, sizeof row);
            vgk_store_f32(row, &to, k / 2 * 2 * j->nr + k % 2, 2, j->nr);
        }
    }
}

static void pack_panels(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    for (int64_t p = begin; p < end; p++) {
        float *d = j->packed + p * j->depth * j->nr;
        int64_t first = p * j->nr, n = j->columns - first < j->nr ? j->columns - first : j->nr;
        for (int64_t k = 0; k < j->depth; k++, d += j->nr) {
            vgk_load_f32(d, &j->b, j->at_b + k * j->bk + first * j->bn, j->bn, n);
            memset(d + n, 0, (size_t)(j->nr - n) * sizeof(float));
        }
    }
}

/* Constant matrices, once. */
struct packing {
    const struct job *j;
    const struct vgk_op *op;
};

static void pack_stored(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct packing *a = arg;
    const struct job *j = a->j;
    const struct vgk_panels *s = &j->stored;
    const struct vgk_tensor *scale = vgk_input(a->op, VGK_WEIGHT_SCALE), *zero = vgk_input(a->op, VGK_WEIGHT_ZERO);
    float row[VGK_MICRO_WIDTH * 16] = {0}, other[VGK_MICRO_WIDTH * 16] = {0};
    for (int64_t p = begin; p < end; p++) {
        char *panel = (char *)j->packed + (size_t)p * s->bytes;
        int64_t first = p * j->nr, n = j->columns - first < j->nr ? j->columns - first : j->nr;
        memset(panel, 0, s->bytes);
        memset(row, 0, sizeof row);
        for (int64_t k = 0; k < j->depth; k++) {
            vgk_load_f32(row, &j->b, j->at_b + k * j->bk + first * j->bn, j->bn, n);
            vgk_panel_set(s, panel, k, row);
        }
        for (int64_t k = 0; s->block && k < j->depth / s->block; k++) {
            int last = scale->rank - 1;
            int64_t step = scale->dim[last] > 1 ? scale->stride[last] : 0;
            memset(row, 0, sizeof row);
            vgk_load_f32(row, scale, k * scale->stride[last - 1] + first * step, step, n);
            if (zero)
                vgk_load_f32(other, zero, k * zero->stride[last - 1] + first * (step ? zero->stride[last] : 0),
                             step ? zero->stride[last] : 0, n);
            vgk_panel_set_block(s, panel, k, row, other);
        }
    }
}

static enum vgk_status pack(struct vgk_device *dev, const struct vgk_op *op, void *packed, struct vgk_error *err)
{
    struct job j;
    if (!make(dev, op, &j))
        return VGK_ERR_UNSUPPORTED;
    j.packed = packed;
    if (!j.shared) /* need said 0 */
        return VGK_OK;
    if (j.product)
        vgk_ranges_run(dev, j.panels, 1, pack_bf16, &j);
    else if (j.weights)
        vgk_ranges_run(dev, j.panels, 1, pack_stored, &(struct packing){&j, op});
    else
        vgk_ranges_run(dev, j.panels, 1 + 32768 / (j.depth * j.nr), pack_panels, &j);
    return VGK_OK;
}

static int64_t rows_of(const struct job *j, int64_t block)
{
    int64_t left = j->rows - block * j->mr;
    return left < j->mr ? left : j->mr;
}

/* The sums of a block of rows and a panel to the output. */
static void put(const struct job *j, int64_t block, int64_t p, const float *sum)
{
    int64_t row = block * j->mr, m = rows_of(j, block);
    int64_t first = p * j->nr, n = j->columns - first < j->nr ? j->columns - first : j->nr;
    for (int64_t r = 0; r < m; r++) {
        float *y = (float *)j->y->data + j->at_y + (row + r) * j->yr + first;
        const float *from = sum + r * j->nr;
        const float *c = (const float *)j->c.data + j->at_c + (row + r) * j->cr + first * j->cn;
        if (j->c.type == VGK_NONE)
            for (int64_t i = 0; i < n; i++)
                y[i] = j->alpha * from[i];
        else
            for (int64_t i = 0; i < n; i++)
                y[i] = j->alpha * from[i] + j->beta * c[i * j->cn];
    }
}

/* Blocks of rows over a panel of floats. */
static void multiply(const struct job *j, int64_t block, int64_t p, const float *panel)
{
    float sum[VGK_MICRO_ROWS * VGK_MICRO_WIDTH * 16] __attribute__((aligned(VGK_ALIGN)));
    struct vgk_segment s = {(const float *)j->a.data + j->at_a + block * j->mr * j->ar, panel};
    j->micro->fn[j->nv][rows_of(j, block)](1, &s, j->depth, j->ar, sum, j->nr);
    put(j, block, p, sum);
}

static void multiply_rows(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    for (int64_t block = begin; block < end; block++)
        for (int64_t p = 0; p < j->panels; p++)
            multiply(j, block, p, j->packed + p * j->depth * j->nr);
}

static void multiply_bf16(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    float sum[VGK_BF16_ROWS * VGK_BF16_VECTORS * 16] __attribute__((aligned(VGK_ALIGN)));
    uint16_t *rows = j->rows_16 + thread * j->mr * j->halves;
    j->product->begin();
    for (int64_t block = begin; block < end; block++) {
        int64_t m = rows_of(j, block);
        memset(rows, 0, sizeof *rows * (size_t)(j->mr * j->halves));
        for (int64_t r = 0; r < m; r++)
            j->kernels->to_bf16((const float *)j->a.data + j->at_a + (block * j->mr + r) * j->ar, j->depth,
                                rows + r * j->halves);
        for (int64_t p = 0; p < j->panels; p++) {
            struct vgk_bf16_segment s = {rows, (const uint16_t *)((const char *)j->packed + (size_t)p * j->stored.bytes)};
            j->product->block[j->nv](1, &s, j->halves, j->halves, sum);
            put(j, block, p, sum);
        }
    }
    j->product->end();
}

/* Units of a panel and a piece of the rows. */
static void multiply_stored(void *arg, int64_t begin, int64_t end, int thread)
{
    const struct job *j = arg;
    float *panel = j->unpacked + thread * j->depth * j->nr;
    int64_t blocks = (j->rows + j->mr - 1) / j->mr;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t p = unit / j->pieces, block = unit % j->pieces * j->piece;
        int64_t past = block + j->piece < blocks ? block + j->piece : blocks;
        j->kernels->unpack(&j->stored, (const char *)j->packed + (size_t)p * j->stored.bytes, panel);
        for (; block < past; block++)
            multiply(j, block, p, panel);
    }
}

static enum vgk_status compute(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                               struct vgk_error *err)
{
    struct job j;
    make(dev, op, &j);
    packed = j.shared ? packed : NULL;
    j.packed = packed ? (float *)packed : scratch;
    j.unpacked = scratch;
    j.rows_16 = (uint16_t *)((char *)scratch + (packed ? 0 : j.stored.bytes * (size_t)j.panels));
    j.kernels = VGK_BY_ISA(dev, vgk_weights);
    j.piece = 32;
    j.pieces = ((j.rows + j.mr - 1) / j.mr + j.piece - 1) / j.piece;
    int64_t work = j.mr * j.columns * j.depth;
    for (int64_t k = 0; k < j.batches; k++) {
        int64_t rest = k;
        j.at_a = j.at_b = j.at_c = j.at_y = 0;
        for (int d = j.y->rank - 3; d >= 0; rest /= j.y->dim[d--]) {
            int64_t i = rest % j.y->dim[d];
            j.at_a += i * j.a.stride[d];
            j.at_b += i * j.b.stride[d];
            j.at_c += i * j.c.stride[d];
            j.at_y += i * j.y->stride[d];
        }
        if (j.product) {
            if (!packed && (!k || !j.shared))
                vgk_ranges_run(dev, j.panels, 1, pack_bf16, &j);
            vgk_ranges_run(dev, (j.rows + j.mr - 1) / j.mr, 1, multiply_bf16, &j);
            continue;
        }
        if (j.weights) {
            vgk_ranges_run(dev, j.panels * j.pieces, 1, multiply_stored, &j);
            continue;
        }
        if (!packed && (!k || !j.shared))
            vgk_ranges_run(dev, j.panels, 1 + 32768 / (j.depth * j.nr), pack_panels, &j);
        vgk_ranges_run(dev, (j.rows + j.mr - 1) / j.mr, 1 + 1000000 / (work + 1), multiply_rows, &j);
    }
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_matmul = {"matmul", need, pack, compute};
