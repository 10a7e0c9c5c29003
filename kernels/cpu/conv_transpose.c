/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Transposed convolution: with strides of s, every s-th output pixel of an axis (a phase) is an ordinary convolution of
 * the input with every s-th tap, in reverse.  So the s * s (* s) phases are convolutions that write to strided views of
 * the output. */
#include "conv.h"
#include "cpu.h"

enum { MOST_PHASES = 64 };

static const struct vgk_tensor *input(const struct vgk_op *op, int i)
{
    return i < op->n_in && op->in[i].type != VGK_NONE ? &op->in[i] : NULL;
}

struct phase {
    struct vgk_op op;
    struct vgk_tensor in[VGK_CONV_INPUTS], out;
};

static int phases_of(const struct vgk_op *op)
{
    int n = 1;
    for (int d = 0; d < op->p.conv.spatial && n <= MOST_PHASES; d++)
        n *= op->p.conv.stride[d];
    return n;
}

/* The convolution whose taps on each axis begin at `first`, a number below the stride: phases are counted by that, so that
 * the order of packed weights does not depend on the padding, which differs between bands. */
static void phase_make(const struct vgk_op *op, int number, struct phase *s)
{
    const struct vgk_conv *c = &op->p.conv;
    *s = (struct phase){.op = {.kind = VGK_OP_CONV, .n_in = VGK_CONV_INPUTS, .n_out = 1, .in = s->in, .out = &s->out}};
    s->op.p.conv = *c;
    s->op.p.conv.exact_products = true; /* no blocks: they would have to be counted in output pixels */
    for (int i = 0; i < VGK_CONV_INPUTS; i++)
        if (input(op, i))
            s->in[i] = op->in[i];
    s->out = op->out[0];
    struct vgk_tensor *w = &s->in[1];
    for (int i = 0; i < VGK_CONV_INPUTS; i++)
        if (input(op, i) && (i == 1 || i >= VGK_WEIGHT_SCALE))
            s->in[i] = vgk_tensor_permute(&op->in[i], (const int[]){1, 0, 2, 3, 4});
    if (c->groups > 1) { /* one input channel in each */
        w->dim[0] = s->out.dim[1];
        w->dim[1] = 1;
    }
    for (int d = 0; d < c->spatial; d++) {
        int stride = c->stride[d], first = number % stride, taps = (c->kernel[d] - first + stride - 1) / stride;
        /* Output o takes tap k where stride * i = o + pad - k: from o = `at` on in steps of the stride, and with the
         * first tap input `base` there. */
        int at = ((first - c->pad_begin[d]) % stride + stride) % stride, base = (at + c->pad_begin[d] - first) / stride;
        number /= stride;
        int64_t n = s->out.dim[2 + d] > at ? (s->out.dim[2 + d] - at + stride - 1) / stride : 0;
        s->out = vgk_tensor_slice(&s->out, 2 + d, at, n, stride);
        if (s->in[5].type)
            s->in[5] = vgk_tensor_slice(&s->in[5], 2 + d, at, n, stride);
        *w = vgk_tensor_slice(w, 2 + d, first + (taps - 1) * stride, taps, -stride);
        s->op.p.conv.kernel[d] = taps;
        s->op.p.conv.stride[d] = 1;
        s->op.p.conv.pad_begin[d] = taps - 1 - base;
        s->op.p.conv.pad_end[d] = s->op.p.conv.output_padding[d] = 0;
    }
}

static enum vgk_status need(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *need, struct vgk_error *err)
{
    const struct vgk_conv *c = &op->p.conv;
    if (op->kind != VGK_OP_CONV_TRANSPOSE)
        return vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s is not a transposed convolution", vgk_kind_name(op->kind));
    bool ok = c->spatial >= 1 && c->spatial <= 3 && phases_of(op) <= MOST_PHASES && op->in[1].rank == c->spatial + 2 &&
              vgk_type_bits(op->in[1].type) >= 8 && c->pad_mode == VGK_PAD_CONSTANT;
    for (int d = 0; d < c->spatial && ok; d++)
        ok = c->dilation[d] == 1 && c->kernel[d] >= c->stride[d];
    /* Blocks of weights with a scale of their own would be cut: one serves all taps, and all channels by group. */
    for (int i = VGK_WEIGHT_SCALE; i <= VGK_WEIGHT_ZERO; i++)
        for (int d = c->groups > 1 ? 0 : 2; input(op, i) && d < op->in[i].rank && ok; d++)
            ok = op->in[i].dim[d] == 1;
    /* Weights by group are [Cout, 1, ...] when each has one input channel. */
    if (c->groups > 1)
        ok = ok && op->in[0].dim[1] == c->groups && op->in[1].stride[0] == op->in[1].dim[1] * op->in[1].stride[1];
    if (!ok)
        return vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s: the fast kernel does not do such dilations, strides or groups",
                        vgk_kind_name(op->kind));
    *need = (struct vgk_need){.lattice = {1, 1, 1}};
    for (int i = 0; i < phases_of(op); i++) {
        struct phase s;
        struct vgk_need part;
        phase_make(op, i, &s);
        enum vgk_status status = vgk_cpu_conv.need(dev, &s.op, &part, err);
        if (status != VGK_OK)
            return status;
        need->packed += vgk_round_up(part.packed, VGK_ALIGN);
        need->scratch = part.scratch > need->scratch ? part.scratch : need->scratch;
    }
    return VGK_OK;
}

/* pack (scratch is NULL) or run every phase. */
static enum vgk_status each_phase(struct vgk_device *dev, const struct vgk_op *op, char *packed, void *scratch,
                                  struct vgk_error *err)
{
    enum vgk_status status = VGK_OK;
    for (int i = 0; i < phases_of(op) && status == VGK_OK; i++) {
        struct phase s;
        struct vgk_need part;
        phase_make(op, i, &s);
        status = vgk_cpu_conv.need(dev, &s.op, &part, err);
        if (status == VGK_OK)
            status = scratch ? (vgk_cpu_conv.run)(dev, &s.op, packed, scratch, err)
                             : vgk_cpu_conv.pack(dev, &s.op, packed, err);
        packed += vgk_round_up(part.packed, VGK_ALIGN);
    }
    return status;
}

static enum vgk_status pack(struct vgk_device *dev, const struct vgk_op *op, void *packed, struct vgk_error *err)
{
    return each_phase(dev, op, packed, NULL, err);
}

static enum vgk_status run(struct vgk_device *dev, const struct vgk_op *op, const void *packed, void *scratch,
                           struct vgk_error *err)
{
    return each_phase(dev, op, (char *)packed, scratch, err);
}

const struct vgk_cpu_family vgk_cpu_conv_transpose = {.name = "conv transpose", .need = need, .pack = pack, .run = run};
