/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Chains of unary and binary ops give the bits of the ops one by one, for any strides. */
#include "kernels/cpu/pointwise.h"
#include "cpukit.h"

static const char *const sets[] = {"generic", "avx2", "avx512"};

/* In either order: dense, or every second column or some channels of something larger; one value, or (not for results)
 * one for each channel or pixel. */
static struct vgk_tensor operand(const int64_t *dim, bool single, bool result, void **memory)
{
    int64_t wide[4], own[4];
    int step = kit_int(0, 3) ? 1 : 2, more = kit_int(0, 2) ? 0 : kit_int(1, 9), repeats = result ? 0 : kit_int(0, 9);
    for (int d = 0; d < 4; d++) {
        own[d] = single || (repeats == 1 && d != 1) || (repeats == 2 && d == 1) ? 1 : dim[d];
        wide[d] = d == 1 ? own[d] + more : d == 3 ? own[d] * step : own[d];
    }
    struct vgk_tensor t = cpukit_tensor(VGK_F32, kit_int(0, 1) ? VGK_ROW_MAJOR : VGK_CHANNELS_LAST, 4, wide), r;
    *memory = t.data;
    cpukit_random(&t, 0.1, 2);
    t = vgk_tensor_slice(&t, 1, more, own[1], 1);
    t = vgk_tensor_slice(&t, 3, 0, own[3], step);
    vgk_tensor_broadcast(&t, 4, dim, &r);
    return r;
}

/* Of one op, by itself. */
static void same(struct vgk_device *dev, const struct vgk_cpu_family *family, const struct vgk_op *op,
                 const struct vgk_tensor *expected)
{
    struct vgk_tensor out = cpukit_tensor(VGK_F32, VGK_CHANNELS_LAST, 4, expected->dim);
    struct vgk_op other = *op;
    int differ = 0;
    other.out = &out;
    expect(cpukit_family(dev, family, &other));
    for (int64_t e = 0; e < vgk_tensor_count(&out); e++) {
        float a = cpukit_get(&out, e), b = cpukit_get(expected, e);
        differ += memcmp(&a, &b, sizeof a) != 0 && !(a != a && b != b);
    }
    expectf(!differ, "one link: %d values differ", differ);
    free(out.data);
}

static void check(struct vgk_device *dev, int number)
{
    static const enum vgk_unary_fn unary[] = {VGK_RELU, VGK_SIGMOID, VGK_CLIP, VGK_NEG, VGK_SILU, VGK_ELU, VGK_GELU_ERF,
                                             VGK_QUANTA};
    static const enum vgk_binary_fn binary[] = {VGK_ADD, VGK_SUB, VGK_MUL, VGK_MAX, VGK_PRELU, VGK_DIV};
    int64_t dim[4] = {kit_int(1, 2), kit_int(1, 40), kit_int(1, 12), kit_int(1, 30)};
    struct vgk_tensor in[4], link[VGK_CHAIN_MOST], out;
    void *memory[5], *links[VGK_CHAIN_MOST];
    int n_in = kit_int(1, 4);
    for (int i = 0; i < n_in; i++)
        in[i] = operand(dim, i == 3, false, &memory[i]);
    out = operand(dim, false, true, &memory[4]);
    struct vgk_op op = {.kind = VGK_OP_CHAIN, .n_in = n_in, .n_out = 1, .in = in, .out = &out};
    struct vgk_chain *c = &op.p.chain;
    c->n = kit_int(2, VGK_CHAIN_MOST);
    for (int i = 0; i < c->n; i++) {
        struct vgk_link *l = &c->link[i];
        int operands[2];
        for (int k = 0; k < 2; k++) {
            int choice = kit_int(0, n_in + i - 1);
            operands[k] = choice < n_in ? choice : VGK_CHAIN_LINK + choice - n_in;
        }
        l->a = operands[0];
        l->b = operands[1];
        l->binary = kit_int(0, 1);
        if (l->binary)
            l->two.fn = binary[kit_int(0, 5)];
        else
            l->unary = (struct vgk_unary){unary[kit_int(0, 7)], 0.3f, 0.9f};
        /* The same by itself. */
        link[i] = cpukit_tensor(VGK_F32, VGK_ROW_MAJOR, 4, dim);
        links[i] = link[i].data;
        struct vgk_tensor of[2];
        for (int k = 0; k < 2; k++)
            of[k] = operands[k] < VGK_CHAIN_LINK ? in[operands[k]] : link[operands[k] - VGK_CHAIN_LINK];
        struct vgk_op single = {.kind = l->binary ? VGK_OP_BINARY : VGK_OP_UNARY, .n_in = l->binary ? 2 : 1, .n_out = 1,
                                .in = of, .out = &link[i]};
        struct vgk_tensor given[2] = {of[0], of[1]};
        for (int k = 0; k < single.n_in; k++) /* row-major, so that the single ops' fast form takes them */
            if (!vgk_tensor_is_dense(&of[k], VGK_ROW_MAJOR)) {
                struct vgk_tensor dense = cpukit_tensor(VGK_F32, VGK_ROW_MAJOR, 4, dim);
                for (int64_t e = 0; e < vgk_tensor_count(&dense); e++)
                    cpukit_set(&dense, e, cpukit_get(&of[k], e));
                of[k] = dense;
            }
        if (l->binary)
            single.p.binary = l->two;
        else
            single.p.unary = l->unary;
        expect(cpukit_family(dev, &vgk_cpu_pointwise, &single));
        single.in = given;
        same(dev, &vgk_cpu_chain, &single, &link[i]);
        single.in = of;
        for (int k = 0; k < single.n_in; k++)
            if (of[k].data != in[operands[k] < VGK_CHAIN_LINK ? operands[k] : 0].data &&
                (operands[k] < VGK_CHAIN_LINK || of[k].data != links[operands[k] - VGK_CHAIN_LINK]))
                free(of[k].data);
    }
    expect(cpukit_family(dev, &vgk_cpu_chain, &op));
    int differ = 0;
    for (int64_t e = 0; e < vgk_tensor_count(&out); e++) {
        float a = cpukit_get(&out, e), b = cpukit_get(&link[c->n - 1], e);
        differ += memcmp(&a, &b, sizeof a) != 0 && !(a != a && b != b);
    }
    expectf(!differ, "chain %d of %d links: %d values differ", number, c->n, differ);
    for (int i = 0; i < c->n; i++)
        free(links[i]);
    for (int i = 0; i < n_in; i++)
        free(memory[i]);
    free(memory[4]);
}

static void as_single_ops(void)
{
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        struct vgk_device *dev = cpukit_open(sets[k], 2);
        for (int i = 0; dev && i < 100; i++) {
            kit_seed((uint64_t)i);
            check(dev, i);
        }
        vgk_cpu.close(&dev);
    }
}

static void declined(void)
{
    struct vgk_device *dev = cpukit_open("generic", 1);
    struct vgk_tensor t = f32_rows(2, 3), in[4] = {t, t, t, t};
    struct vgk_op op = {.kind = VGK_OP_CHAIN, .n_in = 4, .n_out = 1, .in = in, .out = &t,
                        .p.chain = {2, {{.binary = true, .two = {VGK_ADD}, .a = 0, .b = 1},
                                        {.binary = true, .two = {VGK_ADD}, .a = VGK_CHAIN_LINK, .b = 3}}}};
    struct vgk_need need;
    struct vgk_error err = {{0}};
    expect(vgk_cpu.need(dev, &op, &need, &err) == VGK_ERR_UNSUPPORTED && err.text[0]); /* four tensors */
    op.n_in = 2;
    op.p.chain.link[1].b = 1;
    expect(vgk_cpu.need(dev, &op, &need, &err) == VGK_OK);
    op.p.chain.link[0] = (struct vgk_link){.unary = {VGK_LOG}};
    expect(vgk_cpu.need(dev, &op, &need, &err) == VGK_ERR_UNSUPPORTED);
    free(t.data);
    vgk_cpu.close(&dev);
}

int main(void)
{
    run(as_single_ops);
    run(declined);
    return kit_done();
}
