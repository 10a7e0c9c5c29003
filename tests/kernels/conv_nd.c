/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Convolutions of one, two and three dimensions, grouped, thin and transposed, against the plain reference. */
#include "cpukit.h"

static const char *const sets[] = {"generic", "avx2", "avx512"};

struct layer {
    struct vgk_op op;
    struct vgk_tensor in[VGK_CONV_INPUTS], out, exact;
    void *memory[VGK_CONV_INPUTS + 2];
};

/* Channels-last, in a tensor that may have more channels and columns. */
static struct vgk_tensor image(int rank, const int64_t *dim, int view, void **memory)
{
    int64_t wide[5];
    memcpy(wide, dim, sizeof *dim * (size_t)rank);
    int before = kit_int(0, view);
    wide[1] += before + kit_int(0, view);
    wide[rank - 1] += kit_int(0, view);
    struct vgk_tensor t = cpukit_tensor(VGK_F32, VGK_CHANNELS_LAST, rank, wide);
    *memory = t.data;
    t.data = (float *)t.data + before;
    memcpy(t.dim, dim, sizeof *dim * (size_t)rank);
    cpukit_random(&t, -1, 1);
    return t;
}

static struct vgk_tensor vector(int64_t n, void **memory)
{
    struct vgk_tensor t = f32_rows(n);
    cpukit_random(&t, -1, 1);
    *memory = t.data;
    return t;
}

/* False: there is no such output. */
static bool make(struct layer *l, bool transposed)
{
    *l = (struct layer){.op = {.kind = transposed ? VGK_OP_CONV_TRANSPOSE : VGK_OP_CONV, .n_in = VGK_CONV_INPUTS, .n_out = 1}};
    l->op.in = l->in;
    l->op.out = &l->out;
    struct vgk_conv *c = &l->op.p.conv;
    int kind = kit_int(0, 4);
    c->spatial = kit_int(0, 1) ? 2 : kit_int(0, 2) ? 3 : 1;
    c->groups = kind == 0 ? kit_int(2, 40) : kind == 1 ? kit_int(2, 8) : 1;
    int64_t per = kind == 0 ? 1 : kit_int(1, kind == 1 ? 10 : 40), each = kind == 0 ? 1 : kit_int(1, kind < 3 ? 10 : 40);
    if (transposed && kind == 1)
        per = 1;
    if (kind == 2)
        each = kit_int(1, 4);
    int64_t x[5] = {kit_int(1, 2), per * c->groups}, y[5] = {x[0], each * c->groups}, w[5] = {y[1], per};
    if (transposed) {
        w[0] = x[1];
        w[1] = each;
    }
    for (int d = 0; d < c->spatial; d++) {
        bool last = d == c->spatial - 1;
        x[2 + d] = kit_int(1, last ? 40 : 9);
        w[2 + d] = c->kernel[d] = kit_int(1, c->spatial == 3 ? 3 : 7);
        c->stride[d] = kit_int(0, 1) ? 1 : kit_int(1, transposed && c->kernel[d] < 3 ? c->kernel[d] : 3);
        c->dilation[d] = !transposed && !kit_int(0, 3) ? 2 : 1;
        c->pad_begin[d] = kit_int(0, c->kernel[d]);
        c->pad_end[d] = kit_int(0, c->kernel[d]);
        int reach = (c->kernel[d] - 1) * c->dilation[d] + 1, pads = c->pad_begin[d] + c->pad_end[d];
        if (transposed && c->stride[d] > c->kernel[d])
            c->stride[d] = c->kernel[d];
        c->output_padding[d] = transposed ? kit_int(0, c->stride[d] - 1) : 0;
        y[2 + d] = transposed ? (x[2 + d] - 1) * c->stride[d] + reach - pads + c->output_padding[d]
                              : (x[2 + d] + pads - reach) / c->stride[d] + 1;
        if (y[2 + d] < 1 || (!transposed && x[2 + d] + pads < reach))
            return false;
    }
    int rank = c->spatial + 2, view = kit_int(0, 1) ? 0 : 4;
    l->in[0] = image(rank, x, view, &l->memory[0]);
    l->in[1] = cpukit_tensor(VGK_F32, VGK_ROW_MAJOR, rank, w);
    l->memory[1] = l->in[1].data;
    cpukit_random(&l->in[1], -1, 1);
    c->act = (enum vgk_act)kit_int(0, VGK_ACTS - 1);
    c->alpha = c->act == VGK_ACT_CLIP ? -0.5f : 0.1f;
    c->beta = c->act == VGK_ACT_QUANTA ? -5 : 0.75f;
    c->residual_before_act = kit_int(0, 1);
    for (int i = 2; i < 5; i++)
        if (kit_int(0, 1) || (i == 4 && c->act == VGK_ACT_PRELU))
            l->in[i] = vector(y[1], &l->memory[i]);
    if (kit_int(0, 1))
        l->in[5] = image(rank, y, view, &l->memory[5]);
    l->out = image(rank, y, view, &l->memory[6]);
    l->exact = cpukit_tensor(VGK_F32, VGK_ROW_MAJOR, rank, y);
    l->memory[7] = l->exact.data;
    return true;
}

static enum vgk_status compute(const struct vgk_cpu_family *family, struct vgk_device *dev, const struct vgk_op *op, int *lattice)
{
    struct vgk_need need;
    struct vgk_error err = {{0}};
    enum vgk_status s = family->need(dev, op, &need, &err);
    if (s)
        return s;
    void *packed = malloc(need.packed + 1), *scratch = NULL;
    if (posix_memalign(&scratch, VGK_ALIGN, need.scratch + 1))
        abort();
    memset(scratch, 0xff, need.scratch);
    memset(packed, 0xff, need.packed);
    s = family->pack ? family->pack(dev, op, packed, &err) : VGK_OK;
    if (!s)
        s = (family->run)(dev, op, packed, scratch, &err);
    *lattice = need.lattice[2];
    free(packed);
    free(scratch);
    return s;
}

static void against_reference(bool transposed, int want)
{
    const struct vgk_cpu_family *fast = transposed ? &vgk_cpu_conv_transpose : &vgk_cpu_conv;
    int done = 0, lattice;
    for (int i = 0; done < want; i++) {
        kit_seed((uint64_t)i * 2 + transposed);
        struct layer l;
        bool there = make(&l, transposed);
        for (size_t k = 0; k < sizeof sets / sizeof *sets && there; k++) {
            struct vgk_device *dev = cpukit_open(sets[k], 1 + i % 2);
            if (!dev)
                continue;
            struct vgk_op exact = l.op;
            exact.out = &l.exact;
            char x[64], w[64];
            const struct vgk_conv *c = &l.op.p.conv;
            vgk_tensor_describe(&l.in[0], x, sizeof x);
            vgk_tensor_describe(&l.in[1], w, sizeof w);
            expectf(compute(&vgk_cpu_reference, dev, &exact, &lattice) == VGK_OK, "%d", i);
            expectf(compute(fast, dev, &l.op, &lattice) == VGK_OK, "%d: %s * %s", i, x, w);
            /* In units of the last place of what all terms of size 1 would give. */
            double terms = (double)(l.in[0].dim[1] / c->groups), most = 0;
            for (int d = 2; d < l.in[1].rank; d++)
                terms *= (double)l.in[1].dim[d];
            terms += 3;
            int64_t n = vgk_tensor_count(&l.out), edges = 0;
            for (int64_t e = 0; e < n; e++) {
                double off = fabs((double)cpukit_get(&l.out, e) - (double)cpukit_get(&l.exact, e));
                if (c->act == VGK_ACT_QUANTA && fabs(off - (double)c->alpha) < 1e-5) /* the sum's rounding decides */
                    edges++;
                else
                    most = fmax(most, off / terms * 8388608);
            }
            expectf(edges * 50 <= n, "%d: %d of %d lie on the edge of a quantum", i, (int)edges, (int)n);
            expectf(most < (lattice > 1 ? 15 : 1.5), "%d, %s: %g, %s * %s, act %d", i, sets[k], most, x, w, c->act);
            vgk_cpu.close(&dev);
        }
        done += there;
        for (int k = 0; k < VGK_CONV_INPUTS + 2; k++)
            free(l.memory[k]);
    }
}

static void forward(void) { against_reference(false, 300); }
static void transposed(void) { against_reference(true, 200); }

int main(void)
{
    run(forward);
    run(transposed);
    return kit_done();
}
