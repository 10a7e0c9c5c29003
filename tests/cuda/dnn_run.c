/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operations through kernels/cuda/dnn*.c, with cuDNN and the runtime or what stands in for them, against the CPU's:
 * with a GPU it tests cuDNN's numbers, without one the graphs, the constants' order and the addresses.  Results in f16
 * may be off by its rounding, those in f32 by that of sums in another order (or of TF32's products). */
#include <cuda_runtime_api.h>

#include "kernels/backend.h"
#include "kernels/cuda/dnn.h"
#include "kit.h"

enum { INPUTS = VGK_CONV_INPUTS };

static struct vgk_dnn *dnn;
static struct vgk_device *cpu;
static int n_run, n_declined;

static cudaStream_t stream;

static void copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    expect(!bytes || cudaMemcpyAsync(to, from, bytes, kind, stream) == cudaSuccess);
    expect(cudaStreamSynchronize(stream) == cudaSuccess);
}

/* A tensor twice: f32 on the host, its values those of the device's type, and on the device. */
struct twin {
    struct vgk_tensor host, device;
    size_t host_bytes, bytes;
    bool constant;
};

static size_t bytes_of(const struct vgk_tensor *t)
{
    int64_t last = 1;
    for (int i = 0; i < t->rank; i++)
        last += (t->dim[i] - 1) * t->stride[i];
    return (size_t)last * (size_t)vgk_type_bits(t->type) / 8;
}

static void twin_fill(struct twin *t, enum vgk_type type, double size)
{
    t->device = t->host;
    t->device.type = type;
    t->host.type = VGK_F32;
    t->host_bytes = bytes_of(&t->host);
    t->bytes = bytes_of(&t->device);
    float *values = t->host.data = malloc(t->host_bytes);
    _Float16 *half = malloc(t->bytes);
    for (size_t i = 0; i < t->host_bytes / sizeof *values; i++) {
        half[type == VGK_F16 ? i : 0] = (_Float16)kit_real(-size, size);
        values[i] = type == VGK_F16 ? half[i] : (float)kit_real(-size, size);
    }
    expect(cudaMalloc(&t->device.data, t->bytes) == cudaSuccess);
    copy(t->device.data, type == VGK_F16 ? (void *)half : values, t->bytes, cudaMemcpyHostToDevice);
    free(half);
}

static void twin_free(struct twin *t)
{
    if (t->host.type == VGK_NONE)
        return;
    free(t->host.data);
    cudaFree(t->device.data);
}

static void reference(const struct vgk_op *op)
{
    struct vgk_need need = {0};
    struct vgk_error err = {{0}};
    void *packed = NULL, *scratch = NULL;
    enum vgk_status s = vgk_cpu.need(cpu, op, &need, &err);
    if (!s) {
        packed = malloc(need.packed + 1);
        scratch = malloc(need.scratch + VGK_ALIGN);
        s = vgk_cpu.pack(cpu, op, packed, &err);
    }
    void *aligned = (void *)vgk_round_up((size_t)scratch, VGK_ALIGN);
    if (!s)
        s = (vgk_cpu.run)(cpu, op, packed, aligned, &err); /* `run` is a macro of the kit */
    expectf(!s, "the CPU: %s", err.text);
    free(packed);
    free(scratch);
}

/* As a back end would: plan, build, pack, upload, run. */
static enum vgk_status through_dnn(struct vgk_op *op, const struct twin *in, const struct twin *out, char *how,
                                   size_t size)
{
    struct vgk_dnn_plan *plan = NULL;
    struct vgk_error err = {{0}};
    struct vgk_tensor t[INPUTS], y = out->device;
    void *packed = NULL, *workspace = NULL;
    for (int i = 0; i < op->n_in; i++) {
        t[i] = in[i].constant ? in[i].host : in[i].device;
        t[i].data = in[i].constant ? in[i].host.data : NULL;
        op->constant |= in[i].constant && t[i].type != VGK_NONE ? 1u << i : 0;
    }
    y.data = NULL;
    op->in = t;
    op->out = &y;
    enum vgk_status s = vgk_dnn_plan(dnn, op, (size_t)256 << 20, &plan, &err);
    snprintf(how, size, "%s", s ? err.text : vgk_dnn_plan_describe(plan));
    if (s)
        return s;
    s = vgk_dnn_build(plan, &err);
    size_t packed_bytes = vgk_dnn_plan_packed(plan);
    void *order = malloc(packed_bytes + 1);
    if (!s)
        s = vgk_dnn_pack(dnn, plan, op, order, &err);
    expect(cudaMalloc(&packed, packed_bytes + 1) == cudaSuccess);
    expect(cudaMalloc(&workspace, vgk_dnn_plan_workspace(plan) + 1) == cudaSuccess);
    copy(packed, order, packed_bytes, cudaMemcpyHostToDevice);
    for (int i = 0; i < op->n_in; i++)
        t[i].data = in[i].constant ? NULL : in[i].device.data;
    y.data = out->device.data;
    if (!s)
        s = vgk_dnn_run(dnn, plan, op, packed, workspace, stream, &err);
    expect(cudaStreamSynchronize(stream) == cudaSuccess);
    expectf(!s, "%s: %s", how, err.text);
    cudaFree(packed);
    cudaFree(workspace);
    free(order);
    return s;
}

static double value(const void *data, enum vgk_type type, size_t i)
{
    return type == VGK_F16 ? (double)((const _Float16 *)data)[i] : (double)((const float *)data)[i];
}

/* Runs both and compares, the elements between those of the result included. */
static void both(const char *name, struct vgk_op *op, struct twin *in, struct twin *out)
{
    char how[1024] = "";
    struct vgk_tensor t[INPUTS];
    void *got = malloc(out->bytes);
    float *expected = out->host.data;
    double worst = 0, largest = 0;
    enum vgk_status s = through_dnn(op, in, out, how, sizeof how);
    for (int i = 0; i < op->n_in; i++)
        t[i] = in[i].host;
    op->in = t;
    op->out = &out->host;
    reference(op);
    copy(got, out->device.data, out->bytes, cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < out->host_bytes / sizeof *expected && !s; i++) {
        double d = fabs(value(got, out->device.type, i) - expected[i]);
        worst = d > worst || d != d ? d : worst;
        largest = fabs(expected[i]) > largest ? fabs(expected[i]) : largest;
    }
    double allowed = out->device.type == VGK_F16 ? 1.0 / 512 : 1.0 / 2048;
    printf("  %-44s %s%s\n", name, s ? "declined: " : "", how);
    n_run += !s;
    n_declined += s == VGK_ERR_UNSUPPORTED;
    expectf(s == VGK_OK || s == VGK_ERR_UNSUPPORTED, "%s: %s", name, how);
    expectf(worst <= allowed * (largest + 1), "%s (%s): off by %g of %g", name, how, worst, largest);
    free(got);
    for (int i = 0; i < op->n_in; i++)
        twin_free(&in[i]);
    twin_free(out);
}

/* --- convolutions --- */

struct conv {
    const char *name;
    int spatial, in, out, kernel, stride, dilation, groups; /* 0: 2, 16, 24, 3, 1, 1, 1 */
    int before, behind, output_padding;                     /* more than (kernel - 1) / 2 */
    enum vgk_act act;
    bool transposed, shift, scale, residual, before_act, varies, f32, part; /* part: channels of something wider */
};

static struct vgk_tensor picture(int spatial, int64_t channels, const int64_t *size, bool part)
{
    int64_t dim[5] = {2, part ? channels * 2 : channels, size[0], size[1], size[2]};
    struct vgk_tensor t = vgk_tensor_make(VGK_F32, spatial + 2, dim, VGK_CHANNELS_LAST);
    t.dim[1] = channels;
    return t;
}

static void conv(struct conv c)
{
    static const int64_t sizes[3][3] = {{23, 1, 1}, {11, 14, 1}, {5, 6, 7}};
    c.spatial = c.spatial ? c.spatial : 2;
    c.in = c.in ? c.in : 16;
    c.out = c.out ? c.out : 24;
    c.kernel = c.kernel ? c.kernel : 3;
    c.stride = c.stride ? c.stride : 1;
    c.dilation = c.dilation ? c.dilation : 1;
    c.groups = c.groups ? c.groups : 1;
    c.before += (c.kernel - 1) / 2 * c.dilation;
    c.behind += (c.kernel - 1) / 2 * c.dilation;
    const int64_t *size = sizes[c.spatial - 1];
    enum vgk_type type = c.f32 ? VGK_F32 : VGK_F16;
    int64_t made[3] = {1, 1, 1}, dim[5] = {c.out, c.in / c.groups, c.kernel, c.kernel, c.kernel}, n = c.out;
    struct twin in[INPUTS] = {{.constant = false}}, out = {.constant = false};
    struct vgk_op op = {.kind = c.transposed ? VGK_OP_CONV_TRANSPOSE : VGK_OP_CONV, .n_in = INPUTS, .n_out = 1};
    op.p.conv = (struct vgk_conv){.spatial = c.spatial, .groups = c.groups, .act = c.act, .beta = 0.5f,
                                  .alpha = c.act == VGK_ACT_CLIP ? -0.25f : 0.1f, .residual_before_act = c.before_act};
    for (int i = 0; i < c.spatial; i++) {
        op.p.conv.kernel[i] = c.kernel;
        op.p.conv.stride[i] = c.stride;
        op.p.conv.dilation[i] = c.dilation;
        op.p.conv.pad_begin[i] = c.before;
        op.p.conv.pad_end[i] = c.behind;
        op.p.conv.output_padding[i] = c.output_padding;
        int reach = c.dilation * (c.kernel - 1) + 1;
        made[i] = c.transposed ? (size[i] - 1) * c.stride + reach - c.before - c.behind + c.output_padding
                               : (size[i] + c.before + c.behind - reach) / c.stride + 1;
    }
    if (c.transposed) {
        dim[0] = c.in;
        dim[1] = c.out / c.groups;
    }
    in[0].host = picture(c.spatial, c.in, size, c.part);
    in[1].host = vgk_tensor_make(VGK_F32, c.spatial + 2, dim, VGK_ROW_MAJOR);
    in[1].constant = true;
    in[2].host = in[3].host = in[4].host = vgk_tensor_make(VGK_F32, 1, &n, VGK_ROW_MAJOR);
    in[5].host = out.host = picture(c.spatial, c.out, made, c.part);
    for (int i = 2; i < 5; i++)
        in[i].constant = !c.varies;
    for (int i = 0; i < INPUTS; i++) {
        bool given = i < 2 || (i == 2 && c.shift) || (i == 3 && c.scale) || (i == 4 && c.act == VGK_ACT_PRELU) ||
                     (i == 5 && c.residual);
        if (given)
            twin_fill(&in[i], c.f32 || (i > 1 && i < 5) ? VGK_F32 : VGK_F16, i == 1 ? 0.25 : 1);
        else
            in[i].host = in[i].device = (struct vgk_tensor){VGK_NONE};
    }
    twin_fill(&out, type, 1);
    both(c.name, &op, in, &out);
}

static void convolutions(void)
{
#define CONV(...) conv((struct conv){__VA_ARGS__})
    CONV("plain");
    CONV("shift", .shift = true);
    CONV("shift, relu", .shift = true, .act = VGK_ACT_RELU);
    CONV("shift, leaky", .shift = true, .act = VGK_ACT_LEAKY_RELU);
    CONV("shift, prelu", .shift = true, .act = VGK_ACT_PRELU);
    CONV("shift, clip", .shift = true, .act = VGK_ACT_CLIP);
    CONV("shift, sigmoid", .shift = true, .act = VGK_ACT_SIGMOID);
    CONV("shift, tanh", .shift = true, .act = VGK_ACT_TANH);
    CONV("shift, silu", .shift = true, .act = VGK_ACT_SILU);
    CONV("scale and shift", .shift = true, .scale = true, .act = VGK_ACT_RELU);
    CONV("scale and shift that vary", .shift = true, .scale = true, .act = VGK_ACT_RELU, .varies = true);
    CONV("slope that varies", .shift = true, .act = VGK_ACT_PRELU, .varies = true);
    CONV("residual", .shift = true, .residual = true, .act = VGK_ACT_RELU);
    CONV("residual before", .shift = true, .residual = true, .before_act = true, .act = VGK_ACT_RELU);
    CONV("all of it", .shift = true, .scale = true, .residual = true, .act = VGK_ACT_PRELU, .varies = true);
    CONV("5 to 7 channels", .in = 5, .out = 7, .shift = true, .act = VGK_ACT_RELU);
    CONV("3 channels, 7 by 7", .in = 3, .kernel = 7, .shift = true);
    CONV("stride 2", .stride = 2, .shift = true);
    CONV("dilation 2", .dilation = 2);
    CONV("uneven padding", .before = -1, .behind = 1, .shift = true);
    CONV("no padding", .before = -1, .behind = -1);
    CONV("1 by 1", .kernel = 1, .shift = true);
    CONV("4 groups", .groups = 4, .shift = true, .scale = true);
    CONV("depthwise", .in = 24, .groups = 24, .shift = true);
    CONV("parts of wider pictures", .part = true, .shift = true, .residual = true);
    CONV("a signal", .spatial = 1, .shift = true, .act = VGK_ACT_RELU);
    CONV("a volume", .spatial = 3, .shift = true, .act = VGK_ACT_RELU);
    CONV("a volume, uneven", .spatial = 3, .before = 1, .behind = -1, .shift = true);
    CONV("f32", .f32 = true, .shift = true, .act = VGK_ACT_RELU);
    CONV("f32, residual", .f32 = true, .shift = true, .residual = true);
    CONV("transposed, 2 by 2", .transposed = true, .kernel = 2, .stride = 2);
    CONV("transposed, 2 by 2, shift", .transposed = true, .kernel = 2, .stride = 2, .shift = true, .act = VGK_ACT_RELU);
    CONV("transposed, 4 by 4", .transposed = true, .kernel = 4, .stride = 2, .shift = true, .scale = true);
    CONV("transposed, padded", .transposed = true, .stride = 2, .output_padding = 1, .shift = true);
    CONV("transposed, groups", .transposed = true, .stride = 2, .output_padding = 1, .groups = 4, .scale = true,
         .shift = true);
    CONV("transposed volume", .transposed = true, .spatial = 3, .kernel = 2, .stride = 2);
}

/* --- products --- */

struct matmul {
    const char *name;
    int batch, rows, inner, columns;
    bool constant, turned, one, sum, f32;
    float alpha;
};

static void matmul(struct matmul m)
{
    enum vgk_type type = m.f32 ? VGK_F32 : VGK_F16;
    struct twin in[3] = {{.constant = false}}, out = {.constant = false};
    int64_t a[3] = {m.batch, m.rows, m.inner}, b[3] = {m.one ? 1 : m.batch, m.inner, m.columns},
            y[3] = {m.batch, m.rows, m.columns}, turned[3] = {b[0], b[2], b[1]}, n = m.columns;
    const int swap[3] = {0, 2, 1};
    in[0].host = vgk_tensor_make(VGK_F32, 3, a, VGK_ROW_MAJOR);
    in[1].host = vgk_tensor_make(VGK_F32, 3, m.turned ? turned : b, VGK_ROW_MAJOR);
    if (m.turned)
        in[1].host = vgk_tensor_permute(&in[1].host, swap);
    in[2].host = vgk_tensor_make(VGK_F32, 1, &n, VGK_ROW_MAJOR);
    in[1].constant = in[2].constant = m.constant;
    out.host = vgk_tensor_make(VGK_F32, 3, y, VGK_ROW_MAJOR);
    for (int i = 0; i < 3; i++)
        if (i < 2 || m.sum) {
            twin_fill(&in[i], type, 0.5);
            for (int k = 0; k < 2; k++) { /* all operands have the result's dimensions */
                struct vgk_tensor *t = k ? &in[i].host : &in[i].device;
                int64_t dim[3] = {m.batch, i == 0 ? m.rows : i == 1 ? m.inner : m.rows, i == 0 ? m.inner : m.columns};
                void *data = t->data;
                expect(vgk_tensor_broadcast(t, 3, dim, t));
                t->data = data;
            }
        } else {
            in[i].host = in[i].device = (struct vgk_tensor){VGK_NONE};
        }
    twin_fill(&out, type, 1);
    struct vgk_op op = {.kind = VGK_OP_MATMUL, .n_in = 3, .n_out = 1};
    op.p.matmul = (struct vgk_matmul){m.alpha ? m.alpha : 1, 1};
    both(m.name, &op, in, &out);
}

static void products(void)
{
    matmul((struct matmul){"by a constant", 1, 37, 24, 40, .constant = true, .sum = true});
    matmul((struct matmul){"by a constant, odd", 2, 19, 13, 33, .constant = true, .one = true, .sum = true,
                           .alpha = 0.5f});
    matmul((struct matmul){"by a constant, turned", 1, 20, 16, 24, .constant = true, .turned = true});
    matmul((struct matmul){"batches", 3, 32, 16, 40});
    matmul((struct matmul){"batches, turned", 3, 32, 16, 40, .turned = true, .alpha = 0.25f});
    matmul((struct matmul){"batches by one", 3, 32, 16, 40, .one = true});
    matmul((struct matmul){"f32, by a constant", 1, 37, 24, 40, .constant = true, .sum = true, .f32 = true});
}

/* --- attention --- */

static void attention(const char *name, int heads, int groups, int queries, int keys, int depth)
{
    struct twin in[3] = {{.constant = false}}, out = {.constant = false};
    for (int i = 0; i < 4; i++) { /* [N,L,H,d] as it comes from a product, seen as [N,H,L,d] */
        struct twin *t = i < 3 ? &in[i] : &out;
        int64_t dim[4] = {2, i == 1 || i == 2 ? keys : queries, i == 1 || i == 2 ? groups : heads, depth};
        const int swap[4] = {0, 2, 1, 3};
        t->host = vgk_tensor_make(VGK_F32, 4, dim, VGK_ROW_MAJOR);
        t->host = vgk_tensor_permute(&t->host, swap);
        twin_fill(t, VGK_F16, 1);
    }
    struct vgk_op op = {.kind = VGK_OP_ATTENTION, .n_in = 3, .n_out = 1};
    op.p.attention = (struct vgk_attention){.scale = 0.3f};
    both(name, &op, in, &out);
}

static void attentions(void)
{
    attention("attention", 2, 2, 40, 40, 32);
    attention("attention, other keys", 3, 3, 33, 7, 64);
    attention("attention, shared keys", 4, 2, 24, 40, 64);
}

int main(int argc, char **argv)
{
    struct vgk_error err = {{0}};
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices)
        kit_skip("no CUDA device");
    if (vgk_dnn_open(NULL, 0, &dnn, &err)) {
        if (argc < 2) /* an argument: cuDNN, or what stands in for it, must be there */
            kit_skip(err.text);
        expectf(0, "%s", err.text);
        return kit_done();
    }
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1, .exact_products = true}, &cpu, &err);
    expect(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    kit_seed(7);
    run(convolutions);
    run(products);
    run(attentions);
    printf("%d run, %d declined\n", n_run, n_declined);
    expect(n_run > 40);
    expect(argc < 2 || !n_declined); /* the stand-in takes everything: what it declines is wrong */
    cudaStreamDestroy(stream);
    vgk_cpu.close(&cpu);
    vgk_dnn_close(&dnn);
    return kit_done();
}
