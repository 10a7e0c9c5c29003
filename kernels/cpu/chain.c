/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Chains of unary and binary ops, and single ones by any strides: each piece of some hundred elements goes through all
 * links in the first cache.  A piece is elements of a row, or rows of a few (channels of a larger picture); what does not
 * lie one behind the other is gathered. */
#include "elements.h"
#include "pointwise.h"

struct job {
    struct vgk_loop loop; /* over the output and the inputs that are not one value; without the elements of short rows */
    int64_t n, step[VGK_LOOP_TENSORS]; /* such elements, 1 = none; from one to the next */
    const struct vgk_op *op;
    struct vgk_chain chain;
    const struct vgk_pointwise_rows *rows;
    int place[VGK_CONV_INPUTS]; /* of each input in the loop; 0: it is one value */
};

static bool find_links(const struct vgk_op *op, struct vgk_chain *c)
{
    switch (op->kind) {
    case VGK_OP_CHAIN: *c = op->p.chain; return true;
    case VGK_OP_UNARY: *c = (struct vgk_chain){1, {{.unary = op->p.unary}}}; return true;
    case VGK_OP_BINARY: *c = (struct vgk_chain){1, {{.binary = true, .two = op->p.binary, .b = 1}}}; return true;
    default: return false;
    }
}

static bool make(struct vgk_device *dev, const struct vgk_op *op, struct job *job)
{
    const struct vgk_tensor *t[VGK_LOOP_TENSORS] = {op->out};
    int n = 1;
    *job = (struct job){.op = op, .rows = VGK_BY_ISA(dev, vgk_pointwise_rows), .n = 1};
    if (!find_links(op, &job->chain) || op->out->type != VGK_F32 || op->n_in > VGK_CONV_INPUTS)
        return false;
    for (int i = 0; i < op->n_in; i++) {
        if (op->in[i].type != VGK_F32)
            return false;
        if (vgk_tensor_is_one_value(&op->in[i]))
            continue;
        if (n == VGK_LOOP_TENSORS)
            return false;
        job->place[i] = n;
        t[n++] = &op->in[i];
    }
    for (int i = 0; i < job->chain.n; i++) {
        const struct vgk_link *l = &job->chain.link[i];
        if (l->binary ? !job->rows->binary[l->two.fn] : !job->rows->unary[l->unary.fn])
            return false;
    }
    struct vgk_loop *l = &job->loop;
    vgk_loop_init(l, n, t);
    int last = l->rank - 1;
    if (last && l->rows && l->dim[last] && l->dim[last] <= VGK_SHORT_ROW) {
        job->n = l->dim[last];
        for (int i = 0; i < n; i++)
            job->step[i] = l->stride[i][last];
        l->rank = last;
        l->rows /= l->dim[last - 1];
        l->chunk /= job->n;
    }
    return true;
}

static enum vgk_status need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *n, struct vgk_error *err)
{
    struct job job;
    if (!make(dev, op, &job))
        return vgk_fail(err, VGK_ERR_UNSUPPORTED, "no chain of f32 with at most %d tensors", VGK_LOOP_TENSORS - 1);
    *n = (struct vgk_need){.lattice = {1, 1, 1}};
    return VGK_OK;
}

static void piece(void *arg, const int64_t *offset, int64_t rows)
{
    const struct job *j = arg;
    const struct vgk_chain *c = &j->chain;
    int last = j->loop.rank - 1;
    int64_t n = rows * j->n;
    float result[VGK_CHAIN_MOST][VGK_LOOP_CHUNK], gathered[VGK_LOOP_TENSORS][VGK_LOOP_CHUNK + VGK_ROWS_SLACK];
    const float *in[VGK_CONV_INPUTS];
    int step[VGK_CONV_INPUTS];
    int64_t pitch[VGK_LOOP_TENSORS];
    bool dense[VGK_LOOP_TENSORS];
    for (int p = 0; p < j->loop.n; p++) {
        pitch[p] = j->loop.stride[p][last];
        dense[p] = (rows == 1 || pitch[p] == j->n) && (j->n == 1 || j->step[p] == 1);
    }
    for (int i = 0; i < j->op->n_in; i++) {
        int p = j->place[i];
        in[i] = (const float *)j->op->in[i].data + (p ? offset[p] : 0);
        step[i] = p ? 1 : 0;
        if (p && !dense[p]) {
            j->rows->gather(gathered[p], in[i], rows, j->n, pitch[p], j->step[p]);
            in[i] = gathered[p];
        }
    }
    float *out = (float *)j->op->out->data + offset[0];
    for (int i = 0; i < c->n; i++) {
        const struct vgk_link *l = &c->link[i];
        int link_a = l->a - VGK_CHAIN_LINK, link_b = l->b - VGK_CHAIN_LINK;
        float *to = i == c->n - 1 && dense[0] ? out : result[i];
        const float *a = link_a >= 0 ? result[link_a] : in[l->a];
        int a_step = link_a >= 0 ? 1 : step[l->a];
        if (l->binary) {
            j->rows->binary[l->two.fn](to, a, link_b >= 0 ? result[link_b] : in[l->b], n, a_step,
                                       link_b >= 0 ? 1 : step[l->b]);
            continue;
        }
        for (int64_t k = 0; !a_step && k < n; k++)
            result[i][k] = *a;
        j->rows->unary[l->unary.fn](to, a_step ? a : result[i], n, l->unary.alpha, l->unary.beta);
    }
    if (!dense[0])
        j->rows->scatter(out, result[c->n - 1], rows, j->n, pitch[0], j->step[0]);
}

static enum vgk_status run(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                           struct vgk_error *err)
{
    struct job job;
    if (!make(dev, op, &job))
        return VGK_ERR_UNSUPPORTED;
    vgk_loop_run(dev, &job.loop, piece, &job);
    return VGK_OK;
}

const struct vgk_cpu_family vgk_cpu_chain = {"chain", need, NULL, run};
