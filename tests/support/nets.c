/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "nets.h"

#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>

#include "kit.h"
#include "onnx_write.h"

static int add(struct nets *n, int channels, int num, int den)
{
    int a = num, b = den;
    while (b) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    n->v[n->n] = (struct nets_value){channels, num / a, den / a};
    return n->n++;
}

static struct pb *node(int out, const char *type, const char *in)
{
    char name[32], result[16];
    snprintf(name, sizeof name, "%s_%d", type, out);
    snprintf(result, sizeof result, "v%d", out);
    return ow_node(type, name, in, result);
}

static const char *name_of(char text[16], char letter, int i)
{
    snprintf(text, 16, "%c%d", letter, i);
    return text;
}

/* A constant of random numbers in offset +- scale. */
static int constant(struct nets *n, int rank, const int64_t *dim, double scale, double offset)
{
    size_t count = ow_count(rank, dim);
    float *data = malloc((count + 1) * sizeof *data);
    char name[16];
    for (size_t i = 0; i < count; i++)
        data[i] = (float)(offset + kit_real(-scale, scale));
    ow_floats_tensor(n->file, name_of(name, 'c', n->n_constants), rank, dim, data);
    free(data);
    return n->n_constants++;
}

void nets_begin(struct nets *n, int channels)
{
    char dims[32];
    memset(n, 0, sizeof *n);
    n->file = ow_new(21);
    snprintf(dims, sizeof dims, "1,%d,h,w", channels);
    ow_input(n->file, "v0", 1, dims);
    add(n, channels, 1, 1);
}

void nets_also(struct nets *n, int x)
{
    char name[16], dims[32];
    snprintf(dims, sizeof dims, "1,%d,h_%d,w_%d", n->v[x].channels, x, x);
    ow_output(n->file, name_of(name, 'v', x), 1, dims);
}

static struct ow *finish(struct nets *n, int output)
{
    char text[64], name[16];
    snprintf(text, sizeof text, "1,%d,h_out,w_out", n->v[output].channels);
    ow_output(n->file, name_of(name, 'v', output), 1, text);
    return n->file;
}

static enum vgk_status write_and_load(int fd, const char *path, const uint8_t *data, size_t size, struct vg_model **m,
                                      struct vgk_error *err)
{
    enum vgk_status s = VGK_ERR_FILE;
    if (fd >= 0 && write(fd, data, size) == (ssize_t)size)
        s = vg_model_load(path, m, err);
    if (fd >= 0)
        close(fd); /* what is mapped stays */
    return s;
}

enum vgk_status nets_load(const uint8_t *data, size_t size, struct vg_model **m, struct vgk_error *err)
{
    char path[64];
    int fd = memfd_create("model", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return write_and_load(fd, path, data, size, m, err);
}

struct vg_model *nets_finish(struct ow *file, struct vgk_error *err)
{
    size_t size;
    struct vg_model *model = NULL;
    uint8_t *data = ow_finish(file, &size);
    nets_load(data, size, &model, err);
    free(data);
    return model;
}

struct vg_model *nets_shipped(const char *folder, const char *name)
{
    char path[2048];
    struct vg_model *m = NULL;
    struct vgk_error err = {{0}};
    snprintf(path, sizeof path, "%s/%s.onnx", folder, name);
    expectf(vg_model_load(path, &m, &err) == VGK_OK, "%s", err.text);
    return m;
}

struct vg_model *nets_end(struct nets *n, int output, struct vgk_error *err)
{
    return nets_finish(finish(n, output), err);
}

struct vg_model *nets_save(struct nets *n, int output, const char *path, struct vgk_error *err)
{
    size_t size;
    struct vg_model *model = NULL;
    uint8_t *data = ow_finish(finish(n, output), &size);
    write_and_load(open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600), path, data, size, &model, err);
    free(data);
    return model;
}

int nets_pad(struct nets *n, int x, int before, int behind, enum nets_pad kind)
{
    static const char *const modes[] = {[NETS_PAD_ZERO] = "constant", [NETS_PAD_REFLECT] = "reflect",
                                        [NETS_PAD_EDGE] = "edge"};
    int64_t pads[8] = {0, 0, before, before, 0, 0, behind, behind};
    int c = n->n_constants++, y = add(n, n->v[x].channels, 1, 1);
    char in[64], name[16];
    n->v[y].num = 0; /* its size is no part of the frame's */
    ow_ints_tensor(n->file, name_of(name, 'c', c), 1, (int64_t[]){8}, pads);
    snprintf(in, sizeof in, "v%d,c%d", x, c);
    struct pb *p = node(y, "Pad", in);
    ow_string(p, "mode", modes[kind]);
    ow_add(n->file, p);
    return y;
}

int nets_conv(struct nets *n, int x, struct nets_conv p)
{
    int cin = n->v[x].channels, groups = p.groups ? p.groups : 1, stride = p.stride ? p.stride : 1;
    int dilation = p.dilation ? p.dilation : 1, reach = (p.kernel - 1) * dilation;
    int64_t pads[4] = {reach / 2, reach / 2, reach - reach / 2, reach - reach / 2};
    char in[64], xs[16];
    name_of(xs, 'v', x);
    if (p.pad > NETS_ZERO)
        name_of(xs, 'v', nets_pad(n, x, reach / 2, reach - reach / 2, p.pad));
    int w = constant(n, 4, (int64_t[]){p.out, cin / groups, p.kernel, p.kernel},
                     1.7 / sqrt((double)cin / groups * p.kernel * p.kernel), 0);
    int b = p.no_bias ? -1 : constant(n, 1, (int64_t[]){p.out}, 0.2, 0);
    int y = add(n, p.out, n->v[x].num, n->v[x].den * stride);
    int length = snprintf(in, sizeof in, "%s,c%d", xs, w);
    if (b >= 0)
        snprintf(in + length, sizeof in - (size_t)length, ",c%d", b);
    struct pb *conv = node(y, "Conv", in);
    if (p.pad == NETS_ZERO)
        ow_ints(conv, "pads", 4, pads);
    ow_ints(conv, "strides", 2, (int64_t[]){stride, stride});
    ow_ints(conv, "dilations", 2, (int64_t[]){dilation, dilation});
    ow_int(conv, "group", groups);
    ow_add(n->file, conv);
    return y;
}

int nets_deconv(struct nets *n, int x, int out)
{
    char in[64];
    int w = constant(n, 4, (int64_t[]){n->v[x].channels, out, 4, 4}, 1.7 / sqrt(4.0 * n->v[x].channels), 0);
    int y = add(n, out, n->v[x].num * 2, n->v[x].den);
    snprintf(in, sizeof in, "v%d,c%d", x, w);
    struct pb *p = node(y, "ConvTranspose", in);
    ow_ints(p, "pads", 4, (int64_t[]){1, 1, 1, 1});
    ow_ints(p, "strides", 2, (int64_t[]){2, 2});
    ow_add(n->file, p);
    return y;
}

int nets_unary(struct nets *n, int x, const char *type)
{
    char in[16];
    int y = add(n, n->v[x].channels, n->v[x].num, n->v[x].den);
    ow_add(n->file, node(y, type, name_of(in, 'v', x)));
    return y;
}

int nets_binary(struct nets *n, const char *type, int x, int y)
{
    char in[64];
    int of = n->v[x].num == 0 || (n->v[x].channels == 1 && n->v[y].num) ? y : x;
    int z = add(n, n->v[of].channels, n->v[of].num, n->v[of].den);
    snprintf(in, sizeof in, "v%d,v%d", x, y);
    ow_add(n->file, node(z, type, in));
    return z;
}

int nets_scale(struct nets *n, const char *type, int x, bool each_channel)
{
    char in[64];
    int c = constant(n, 4, (int64_t[]){1, each_channel ? n->v[x].channels : 1, 1, 1}, 0.3, 1);
    int y = add(n, n->v[x].channels, n->v[x].num, n->v[x].den);
    snprintf(in, sizeof in, "v%d,c%d", x, c);
    ow_add(n->file, node(y, type, in));
    return y;
}

int nets_prelu(struct nets *n, int x)
{
    char in[64];
    int c = constant(n, 3, (int64_t[]){n->v[x].channels, 1, 1}, 0.2, 0.2);
    int y = add(n, n->v[x].channels, n->v[x].num, n->v[x].den);
    snprintf(in, sizeof in, "v%d,c%d", x, c);
    ow_add(n->file, node(y, "PRelu", in));
    return y;
}

int nets_concat(struct nets *n, int x, int y)
{
    char in[64];
    int z = add(n, n->v[x].channels + n->v[y].channels, n->v[x].num, n->v[x].den);
    snprintf(in, sizeof in, "v%d,v%d", x, y);
    struct pb *p = node(z, "Concat", in);
    ow_int(p, "axis", 1);
    ow_add(n->file, p);
    return z;
}

int nets_channels(struct nets *n, int x, int begin, int count)
{
    char in[64], name[16];
    int c = n->n_constants, y = add(n, count, n->v[x].num, n->v[x].den);
    int64_t values[3] = {begin, begin + count, 1};
    n->n_constants += 3;
    for (int i = 0; i < 3; i++)
        ow_ints_tensor(n->file, name_of(name, 'c', c + i), 1, (int64_t[]){1}, &values[i]);
    snprintf(in, sizeof in, "v%d,c%d,c%d,c%d", x, c, c + 1, c + 2);
    ow_add(n->file, node(y, "Slice", in));
    return y;
}

int nets_resize(struct nets *n, int x, int num, int den, const char *mode, const char *coordinates)
{
    char in[64], name[16];
    float scales[4] = {1, 1, (float)num / (float)den, (float)num / (float)den};
    int c = n->n_constants++, y = add(n, n->v[x].channels, n->v[x].num * num, n->v[x].den * den);
    ow_floats_tensor(n->file, name_of(name, 'c', c), 1, (int64_t[]){4}, scales);
    snprintf(in, sizeof in, "v%d,,c%d", x, c);
    struct pb *p = node(y, "Resize", in);
    ow_string(p, "mode", mode);
    ow_string(p, "coordinate_transformation_mode", coordinates);
    if (!strcmp(mode, "nearest"))
        ow_string(p, "nearest_mode", "floor");
    ow_add(n->file, p);
    return y;
}

int nets_shuffle(struct nets *n, int x, const char *mode)
{
    char in[16];
    int y = add(n, n->v[x].channels / 4, n->v[x].num * 2, n->v[x].den);
    struct pb *p = node(y, "DepthToSpace", name_of(in, 'v', x));
    ow_int(p, "blocksize", 2);
    ow_string(p, "mode", mode);
    ow_add(n->file, p);
    return y;
}

int nets_unshuffle(struct nets *n, int x)
{
    char in[16];
    int y = add(n, n->v[x].channels * 4, n->v[x].num, n->v[x].den * 2);
    struct pb *p = node(y, "SpaceToDepth", name_of(in, 'v', x));
    ow_int(p, "blocksize", 2);
    ow_add(n->file, p);
    return y;
}

int nets_pool(struct nets *n, int x, const char *type)
{
    char in[16];
    int y = add(n, n->v[x].channels, n->v[x].num, n->v[x].den * 2);
    struct pb *p = node(y, type, name_of(in, 'v', x));
    ow_ints(p, "kernel_shape", 2, (int64_t[]){2, 2});
    ow_ints(p, "strides", 2, (int64_t[]){2, 2});
    ow_add(n->file, p);
    return y;
}

int nets_quantized(struct nets *n, int x)
{
    char in[64], names[2][16];
    const float scale = 1 / 64.0f;
    const uint8_t zero = 128;
    int c = n->n_constants, y = add(n, n->v[x].channels, n->v[x].num, n->v[x].den);
    n->n_constants += 2;
    ow_floats_tensor(n->file, name_of(names[0], 'c', c), 0, NULL, &scale);
    ow_initializer(n->file, ow_raw(name_of(names[1], 'c', c + 1), 2, 0, NULL, &zero, 1));
    snprintf(in, sizeof in, "v%d,c%d,c%d", x, c, c + 1);
    ow_add(n->file, node(y, "QuantizeLinear", in));
    int z = add(n, n->v[x].channels, n->v[x].num, n->v[x].den);
    n->v[y].num = 0; /* no picture to go on with */
    snprintf(in, sizeof in, "v%d,c%d,c%d", y, c, c + 1);
    ow_add(n->file, node(z, "DequantizeLinear", in));
    return z;
}

int nets_mean(struct nets *n, int x)
{
    char in[16];
    int y = add(n, n->v[x].channels, 1, 1);
    n->v[y].num = 0;
    ow_add(n->file, node(y, "GlobalAveragePool", name_of(in, 'v', x)));
    return y;
}

/* y = (x - mean) / sqrt(mean((x - mean)^2) + eps) * S + M, in an order that is no instance norm to the fuser: the gain is
 * applied to the deviation. */
int nets_adain(struct nets *n, int x)
{
    int mean = nets_mean(n, x), d = nets_binary(n, "Sub", x, mean), variance = nets_mean(n, nets_binary(n, "Mul", d, d));
    int64_t one = 1, c[4] = {1, n->v[x].channels, 1, 1};
    char in[64];
    int eps = constant(n, 1, &one, 0, 1e-3), gain = constant(n, 4, c, 0.3, 1), offset = constant(n, 4, c, 0.3, 0);
    int sum = add(n, n->v[x].channels, 1, 1), scaled = add(n, n->v[x].channels, 1, 1), y;
    n->v[sum].num = n->v[scaled].num = 0;
    snprintf(in, sizeof in, "v%d,c%d", variance, eps);
    ow_add(n->file, node(sum, "Add", in));
    int root = nets_unary(n, sum, "Sqrt");
    snprintf(in, sizeof in, "c%d,v%d", gain, root);
    ow_add(n->file, node(scaled, "Div", in));
    y = nets_binary(n, "Mul", d, scaled);
    int z = add(n, n->v[x].channels, n->v[x].num, n->v[x].den);
    snprintf(in, sizeof in, "v%d,c%d", y, offset);
    ow_add(n->file, node(z, "Add", in));
    return z;
}

int nets_norm(struct nets *n, int x, int groups)
{
    char in[64];
    int64_t c = n->v[x].channels;
    int scale = constant(n, 1, &c, 0.3, 1), bias = constant(n, 1, &c, 0.3, 0);
    int y = add(n, (int)c, n->v[x].num, n->v[x].den);
    snprintf(in, sizeof in, "v%d,c%d,c%d", x, scale, bias);
    struct pb *p = node(y, groups ? "GroupNormalization" : "InstanceNormalization", in);
    if (groups)
        ow_int(p, "num_groups", groups);
    ow_add(n->file, p);
    return y;
}

int nets_parameter(struct nets *n, const char *name, int channels)
{
    char dims[32];
    int y = add(n, channels, 1, 1);
    n->v[y].num = 0;
    n->n_parameters++;
    n->parameter = y;
    snprintf(dims, sizeof dims, "1,%d,1,1", channels);
    ow_input(n->file, name, 1, dims);
    ow_add(n->file, node(y, "Identity", name));
    return y;
}

/* --- programs --- */

static enum vgk_status whole_axis(const struct vg_summary *s, int frame, int align, struct vg_axis *a,
                                  struct vgk_error *err)
{
    struct vg_axis_request r = {.frame = frame, .overlap = -1, .size_multiple = align, .origin_multiple = align,
                                .chroma = 1, .num = s->scale_num, .den = s->scale_den};
    return vg_axis_make(&r, a, err);
}

struct vg_model *nets_with_norms(struct vgk_error *err)
{
    struct nets n;
    kit_seed(3);
    nets_begin(&n, 3);
    int a = nets_conv(&n, 0, (struct nets_conv){.out = 16, .kernel = 3, .stride = 2});
    int b = nets_unary(&n, nets_norm(&n, nets_conv(&n, a, (struct nets_conv){.out = 16, .kernel = 3}), 0), "Relu");
    b = nets_binary(&n, "Add", a, nets_norm(&n, nets_conv(&n, b, (struct nets_conv){.out = 16, .kernel = 3}), 4));
    return nets_end(&n, nets_conv(&n, nets_resize(&n, b, 2, 1, "nearest", "asymmetric"),
                                                (struct nets_conv){.out = 3, .kernel = 3}), err);
}

enum vgk_status nets_open(struct nets_run *r, struct vg_model *m, struct vgk_device *cpu, int width, int height,
                          const struct nets_how *how, struct vgk_error *err)
{
    struct vg_net *net = NULL;
    struct vg_program_request request = {m->frame_output, how->bands, how->recompute, 0, how->spill, how->stream,
                                         false, how->rows ? how->rows : height};
    *r = (struct nets_run){.plan = {.model = m, .backend = &vgk_cpu, .device = cpu, .direct = how->exact}};
    enum vgk_status s = whole_axis(&m->summary, width, m->summary.align_x, &r->plan.grid.x, err);
    if (!s)
        s = whole_axis(&m->summary, height, m->summary.align_y, &r->plan.grid.y, err);
    if (!s)
        s = vg_states_lay_out(m, &r->plan.grid, &r->plan.states, err);
    request.states = r->plan.states.bytes;
    if (!s)
        s = vg_model_bind(m, r->plan.grid.x.tile, r->plan.grid.y.tile, 0, !how->unfused, VG_NORM_OWN, &net, err);
    for (int i = 0; !s && i < net->n_ops; i++)
        if (net->ops[i].op.kind == VGK_OP_CONV)
            net->ops[i].op.p.conv.exact_products = how->exact;
    if (!s && (s = vg_program_make(net, &vgk_cpu, cpu, &request, &r->plan.program, err)))
        vg_net_free(&net);
    if (s) {
        vg_states_free(&r->plan.states);
        return s;
    }
    r->plan.info.grid = &r->plan.grid;
    r->plan.info.window = m->summary.window;
    r->plan.info.emit = m->summary.emit;
    r->plan.info.hop = m->summary.hop;
    r->plan.info.centre = m->summary.centre;
    r->plan.info.arena_bytes = vg_plan_arrange(&r->plan);
    if ((s = vg_run_open(&r->plan, &r->run, err)))
        nets_close(r);
    return s;
}

void nets_close(struct nets_run *r)
{
    if (r->run)
        vg_run_close(&r->run);
    vg_program_free(&r->plan.program);
    vg_states_free(&r->plan.states);
}

struct vg_net *nets_net(const struct nets_run *r) { return r->plan.program->net; }

static struct vgk_tensor dense(const struct vgk_tensor *like)
{
    struct vgk_tensor t = vgk_tensor_make(VGK_F32, like->rank, like->dim, VGK_ROW_MAJOR);
    t.data = malloc((size_t)vgk_tensor_count(&t) * sizeof(float) + 1);
    return t;
}

struct vgk_tensor nets_input(const struct nets_run *r)
{
    const struct vg_net *net = r->plan.program->net;
    struct vgk_tensor t = dense(&net->values[net->inputs[net->frame_input]].t);
    for (int64_t i = 0; i < vgk_tensor_count(&t); i++)
        ((float *)t.data)[i] = (float)kit_real(0, 1);
    return t;
}

struct vgk_tensor nets_output(const struct nets_run *r)
{
    const struct vg_net *net = r->plan.program->net;
    return dense(&net->values[net->outputs[r->plan.model->frame_output]].t);
}

enum vgk_status nets_tensors(struct nets_run *r, const struct vgk_tensor *in, struct vgk_tensor *out,
                             struct vgk_error *err)
{
    const struct vg_net *net = r->plan.program->net;
    struct vgk_tensor ins[16] = {{VGK_NONE}}, outs[16] = {{VGK_NONE}};
    ins[net->frame_input] = *in;
    outs[r->plan.model->frame_output] = *out;
    return vg_run_tensors(r->run, ins, net->n_inputs, outs, net->n_outputs, err);
}

/* --- pictures --- */

struct nets_picture nets_picture(enum vgk_frame_layout layout, int width, int height, bool random)
{
    struct nets_picture p = {.f = {.layout = layout, .width = width, .height = height, .step = 3, .offset = {0, 1, 2},
                                   .alpha = -1}};
    int half_w = (width + 1) / 2, half_h = (height + 1) / 2;
    size_t luma = (size_t)width * height, chroma = (size_t)half_w * half_h;
    bool packed = layout == VGK_FRAME_PACKED;
    p.bytes = packed ? 3 * luma : luma + 2 * chroma;
    p.data = malloc(p.bytes);
    for (size_t i = 0; i < p.bytes; i++)
        p.data[i] = random ? (uint8_t)(kit_random() >> 56) : 0;
    p.f.plane[0] = p.data;
    p.f.stride[0] = packed ? 3 * width : width;
    if (!packed) {
        p.f.plane[1] = p.data + luma;
        p.f.plane[2] = p.data + luma + chroma;
        p.f.stride[1] = p.f.stride[2] = half_w;
    }
    return p;
}

struct vgk_colour nets_colour(enum vgk_frame_layout layout)
{
    return layout == VGK_FRAME_PACKED ? (struct vgk_colour){.full_range = true}
                                      : (struct vgk_colour){.yuv = true, .kr = 0.299, .kb = 0.114};
}

struct vg_layout nets_layout(enum vgk_frame_layout layout)
{
    return layout == VGK_FRAME_PACKED ? (struct vg_layout){1, {{3, 0, 0}}}
                                      : (struct vg_layout){3, {{1, 0, 0}, {1, 1, 1}, {1, 1, 1}}};
}

struct vg_picture nets_planes(const struct nets_picture *p)
{
    struct vg_picture v = {{NULL}, {0}};
    for (int i = 0; i < 3; i++) {
        v.data[i] = p->f.plane[i];
        v.stride[i] = p->f.stride[i];
    }
    return v;
}

static int least(int a, int b) { return a < b ? a : b; }

enum vgk_status nets_frame(struct vg_run *r, const struct vg_grid *g, const struct nets_picture *in,
                           struct nets_picture *out, struct vgk_error *err)
{
    return nets_window(r, g, in, 1, out, 1, err);
}

enum { WINDOW = 16 };

enum vgk_status nets_window(struct vg_run *r, const struct vg_grid *g, const struct nets_picture *in, int n_in,
                            struct nets_picture *out, int n_out, struct vgk_error *err)
{
    const struct vg_axis *x = &g->x, *y = &g->y;
    struct vg_layout layout = nets_layout(in->f.layout);
    struct vgk_colour colour = nets_colour(in->f.layout);
    struct nets_picture src[WINDOW], dst[WINDOW];
    struct vg_stitch *stitch[WINDOW] = {NULL};
    struct vgk_frame fi[WINDOW], fo[WINDOW];
    enum vgk_status s = VGK_OK;
    for (int k = 0; k < n_in; k++)
        src[k] = nets_picture(in->f.layout, x->tile, y->tile, false);
    for (int k = 0; k < n_out; k++) {
        dst[k] = nets_picture(in->f.layout, vg_axis_scale(x, x->tile), vg_axis_scale(y, y->tile), false);
        s = s ? s : vg_stitch_create(g, &layout, VG_BLEND_CROP, &stitch[k], err);
        if (!s)
            vg_stitch_begin(stitch[k]);
    }
    for (int k = 0; k < n_in; k++)
        fi[k] = in[k].f;
    s = s ? s : vg_run_begin(r, fi, &colour, &out->f, err);
    for (int row = 0; row < y->n; row++)
        for (int column = 0; column < x->n && !s; column++) {
            int left = x->origin[column], top = y->origin[row];
            for (int k = 0; k < n_in; k++) {
                struct vg_picture frame = nets_planes(&in[k]), a = nets_planes(&src[k]);
                fi[k] = src[k].f;
                fi[k].width = least(x->tile, x->frame - left);
                fi[k].height = least(y->tile, y->frame - top);
                vg_copy_rect(&layout, &a, 0, 0, &frame, left, top, fi[k].width, fi[k].height);
            }
            for (int k = 0; k < n_out; k++) {
                fo[k] = dst[k].f;
                fo[k].width = least(dst[k].f.width, vg_axis_scale(x, x->frame) - vg_axis_scale(x, left));
                fo[k].height = least(dst[k].f.height, vg_axis_scale(y, y->frame) - vg_axis_scale(y, top));
            }
            s = vg_run_tile(r, column, row, fi, &colour, fo, err);
            for (int k = 0; k < n_out; k++) {
                struct vg_picture result = nets_planes(&out[k]), b = nets_planes(&dst[k]);
                vg_extend_edges(&layout, &b, fo[k].width, fo[k].height, dst[k].f.width, dst[k].f.height);
                vg_stitch_tile(stitch[k], column, row, &result, &b);
            }
        }
    for (int k = 0; k < n_out; k++) {
        struct vg_picture result = nets_planes(&out[k]);
        if (!s)
            vg_stitch_end(stitch[k], &result);
        vg_stitch_destroy(&stitch[k]);
        free(dst[k].data);
    }
    for (int k = 0; k < n_in; k++)
        free(src[k].data);
    vg_run_next(r);
    return s;
}

int nets_difference(const struct nets_picture *a, const struct nets_picture *b, int *n)
{
    int most = 0, differ = 0;
    for (size_t i = 0; i < a->bytes; i++) {
        int d = abs(a->data[i] - b->data[i]);
        differ += d > 0;
        most = d > most ? d : most;
    }
    if (n)
        *n = differ;
    return most;
}

enum vgk_status nets_plan(struct nets_planned *p, struct vg_model *m, const struct vgk_backend *backend,
                          struct vgk_device *device, struct vg_plan_request r, struct vgk_error *err)
{
    size_t before = backend->bytes_now(device);
    *p = (struct nets_planned){NULL};
    r.overlap_x = r.overlap_y = -1;
    enum vgk_status s = vg_plan_make(m, backend, device, &r, &p->plan, err);
    expectf(backend->bytes_now(device) == before, "a plan takes %zu bytes", backend->bytes_now(device) - before);
    s = s ? s : vg_run_open(p->plan, &p->run, err);
    p->bytes = backend->bytes_now(device) - before;
    expectf(s || p->bytes == vg_plan_info(p->plan)->arena_bytes, "%zu bytes taken, %zu foretold", p->bytes,
            vg_plan_info(p->plan)->arena_bytes);
    return s;
}

void nets_unplan(struct nets_planned *p)
{
    vg_run_close(&p->run);
    vg_plan_free(&p->plan);
}

bool nets_start(struct nets_player *p, struct vg_model *m, struct vgk_device *cpu, const struct vg_plan_request *r)
{
    struct nets_planned planned;
    struct vgk_error err = {{0}};
    expectf(nets_plan(&planned, m, &vgk_cpu, cpu, *r, &err) == VGK_OK, "%s", err.text);
    *p = (struct nets_player){planned.plan, planned.run};
    if (!p->run)
        return false;
    const struct vg_grid *g = vg_plan_info(p->plan)->grid;
    p->out = nets_picture(VGK_FRAME_PACKED, vg_axis_scale(&g->x, r->width), vg_axis_scale(&g->y, r->height), false);
    return true;
}

void nets_stop(struct nets_player *p)
{
    vg_run_close(&p->run);
    vg_plan_free(&p->plan);
    free(p->out.data);
}

void nets_play(struct nets_player *p, const struct nets_picture *in)
{
    struct vgk_error err = {{0}};
    expectf(nets_frame(p->run, vg_plan_info(p->plan)->grid, in, &p->out, &err) == VGK_OK, "%s", err.text);
}
