/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Chains of unary and binary ops: each piece of some hundred elements goes through all links in the first cache. */
#include "elements.h"
#include "pointwise.h"

struct job {
    struct vgk_loop loop; /* over the output and the inputs that are not one value */
    const struct vgk_op *op;
    const struct vgk_pointwise_rows *rows;
    int place[VGK_CONV_INPUTS]; /* of each input in the loop; 0: it is one value */
};

static bool make(struct vgk_device *dev, const struct vgk_op *op, struct job *job)
{
    const struct vgk_tensor *t[VGK_LOOP_TENSORS] = {op->out};
    int n = 1;
    if (op->kind != VGK_OP_CHAIN || op->out->type != VGK_F32 || op->n_in > VGK_CONV_INPUTS)
        return false;
    *job = (struct job){.op = op, .rows = VGK_BY_ISA(dev, vgk_pointwise_rows)};
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
    for (int i = 0; i < op->p.chain.n; i++) {
        const struct vgk_link *l = &op->p.chain.link[i];
        if (l->binary ? !job->rows->binary[l->two.fn] : !job->rows->unary[l->unary.fn])
            return false;
    }
    vgk_loop_init(&job->loop, n, t);
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

static void piece(void *arg, const int64_t *offset, int64_t n)
{
    const struct job *j = arg;
    const struct vgk_chain *c = &j->op->p.chain;
    int last = j->loop.rank - 1;
    float result[VGK_CHAIN_MOST][VGK_LOOP_CHUNK], gathered[VGK_LOOP_TENSORS][VGK_LOOP_CHUNK];
    const float *in[VGK_CONV_INPUTS];
    int step[VGK_CONV_INPUTS];
    for (int i = 0; i < j->op->n_in; i++) {
        int p = j->place[i];
        int64_t by = p && n > 1 ? j->loop.stride[p][last] : 0;
        in[i] = (const float *)j->op->in[i].data + (p ? offset[p] : 0);
        step[i] = by ? 1 : 0;
        if (by > 1 || by < 0) {
            for (int64_t k = 0; k < n; k++)
                gathered[p][k] = in[i][k * by];
            in[i] = gathered[p];
        }
    }
    float *out = (float *)j->op->out->data + offset[0];
    int64_t out_by = n > 1 ? j->loop.stride[0][last] : 1;
    for (int i = 0; i < c->n; i++) {
        const struct vgk_link *l = &c->link[i];
        int link_a = l->a - VGK_CHAIN_LINK, link_b = l->b - VGK_CHAIN_LINK;
        float *to = i == c->n - 1 && out_by == 1 ? out : result[i];
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
    for (int64_t k = 0; out_by != 1 && k < n; k++)
        out[k * out_by] = result[c->n - 1][k];
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
