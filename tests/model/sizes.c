/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Models whose sizes are not the frame's: those that crop their borders, and those of one fixed size. */
#include "kit.h"
#include "nets.h"
#include "onnx_write.h"

#include <unistd.h>

enum { WIDTH = 150, HEIGHT = 106 };

static struct vgk_device *cpu;

static struct vg_model *load(struct ow *file, const char *info, struct vgk_error *err)
{
    size_t size;
    struct vg_model *model = NULL;
    char folder[] = "/tmp/vidgen-sizes-XXXXXX", path[64];
    uint8_t *data = ow_finish(file, &size);
    if (!mkdtemp(folder))
        return NULL;
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    FILE *f = fopen(path, "wb");
    fwrite(data, 1, size, f);
    fclose(f);
    free(data);
    char sidecar[64];
    snprintf(sidecar, sizeof sidecar, "%s/m.modelinfo", folder);
    f = fopen(sidecar, "wb");
    fprintf(f, "%s", info);
    fclose(f);
    vg_model_load(path, &model, err);
    unlink(path);
    unlink(sidecar);
    rmdir(folder);
    return model;
}

static void weights(struct ow *file, const char *name, int out, int in, int k)
{
    static float w[64 * 64 * 9];
    for (int i = 0; i < out * in * k * k; i++)
        w[i] = (float)kit_real(-1, 1) / (float)sqrt((double)(in * k * k));
    ow_floats_tensor(file, name, 4, (int64_t[]){out, in, k, k}, w);
}

static void conv(struct ow *file, const char *in, const char *out, int cout, int cin, int k, int stride)
{
    char name[32], both[64];
    snprintf(name, sizeof name, "w_%s", out);
    weights(file, name, cout, cin, k);
    snprintf(both, sizeof both, "%s,%s", in, name);
    struct pb *n = ow_node("Conv", out, both, out);
    ow_ints(n, "strides", 2, (int64_t[]){stride, stride});
    ow_add(file, n);
}

static void up(struct ow *file, const char *in, const char *out, bool upsample)
{
    static const float scales[4] = {1, 1, 2, 2};
    char name[32], all[64];
    snprintf(name, sizeof name, "s_%s", out);
    ow_floats_tensor(file, name, 1, (int64_t[]){4}, scales);
    snprintf(all, sizeof all, upsample ? "%s,%s" : "%s,,%s", in, name);
    struct pb *n = ow_node(upsample ? "Upsample" : "Resize", out, all, out);
    ow_string(n, "mode", "nearest");
    if (!upsample) {
        ow_string(n, "coordinate_transformation_mode", "asymmetric");
        ow_string(n, "nearest_mode", "floor");
    }
    ow_add(file, n);
}

static struct nets_picture frame(struct vg_model *m, const struct nets_picture *in, int tile, int bands, bool *exact,
                                 struct vgk_error *err)
{
    struct vg_plan_request r = {.width = WIDTH, .height = HEIGHT, .overlap_x = -1, .overlap_y = -1, .bands = bands,
                                .tile_width = tile, .tile_height = tile, .max_bytes = (size_t)1 << 32};
    struct vg_plan *p = NULL;
    struct vg_run *run = NULL;
    struct nets_picture out = {.data = NULL};
    if (vg_plan_make(m, &vgk_cpu, cpu, &r, &p, err))
        return out;
    const struct vg_plan_info *info = vg_plan_info(p);
    *exact = info->exact;
    if (tile)
        expectf(info->grid->x.n > 1, "one tile for %d", tile);
    out = nets_picture(VGK_FRAME_PACKED, vg_axis_scale(&info->grid->x, WIDTH), vg_axis_scale(&info->grid->y, HEIGHT), false);
    if (vg_run_open(p, &run, err) || nets_frame(run, info->grid, in, &out, err)) {
        free(out.data);
        out.data = NULL;
    }
    vg_run_close(&run);
    vg_plan_free(&p);
    return out;
}

/* Whole, in tiles and in bands the same bytes; the output has the frame's size times the scale. */
static void exact_everywhere(const char *name, struct vg_model *m, int tile)
{
    struct vgk_error err = {{0}};
    struct nets_picture in = nets_picture(VGK_FRAME_PACKED, WIDTH, HEIGHT, true), all[3];
    bool exact[3] = {false};
    all[0] = frame(m, &in, 0, 1, &exact[0], &err);
    all[1] = frame(m, &in, tile, 0, &exact[1], &err);
    all[2] = frame(m, &in, 0, 5, &exact[2], &err);
    expectf(all[0].data && all[1].data && all[2].data, "%s: %s", name, err.text);
    int scale = vg_model_summary(m)->scale_num;
    for (int i = 0; i < 3 && all[0].data; i++) {
        expectf(all[i].data && all[i].f.width == WIDTH * scale && all[i].f.height == HEIGHT * scale, "%s", name);
        expectf(exact[i] && !memcmp(all[i].data, all[0].data, all[0].bytes), "%s: way %d differs", name, i);
    }
    for (int i = 0; i < 3; i++)
        free(all[i].data);
    free(in.data);
}

/* --- cropped borders --- */

/* Four valid convolutions; doubled between them. */
static struct ow *cropping(bool doubles, int stride)
{
    struct ow *file = ow_new(17);
    ow_input(file, "x", 1, "1,3,h,w");
    conv(file, "x", "a", 8, 3, 5, stride);
    conv(file, "a", "b", 8, 8, 3, 1);
    if (doubles)
        up(file, "b", "u", false);
    conv(file, doubles ? "u" : "b", "c", 8, 8, 3, 1);
    conv(file, "c", "y", 3, 8, 3, 1);
    ow_output(file, "y", 1, "1,3,h2,w2");
    return file;
}

/* What the model makes of a frame that was padded by hand: the same. */
static void against_padded(struct vg_model *m, int border, bool reflect)
{
    struct vgk_error err = {{0}};
    struct vg_net *net = NULL;
    bool found = false;
    expectf(!vg_model_bind(m, WIDTH, HEIGHT, 0, true, VG_NORM_OWN, &net, &err), "%s", err.text);
    for (int i = 0; net && i < net->n_ops; i++) { /* the first convolution pads: no op of its own */
        const struct vgk_conv *c = &net->ops[i].op.p.conv;
        if (net->ops[i].op.kind == VGK_OP_CONV && c->pad_begin[0] + c->pad_end[0] == border &&
            c->pad_begin[1] + c->pad_end[1] == border && c->pad_mode == (reflect ? VGK_PAD_REFLECT : VGK_PAD_EDGE))
            found = true;
        expect(net->ops[i].op.kind != VGK_OP_PAD);
    }
    expect(found);
    vg_net_free(&net);
}

static void cropped(void)
{
    struct vgk_error err = {{0}};
    kit_seed(1);
    struct vg_model *m = load(cropping(false, 1), "", &err); /* 4 + 2 + 2 + 2 */
    expectf(m != NULL, "%s", err.text);
    if (m) {
        const struct vg_summary *s = vg_model_summary(m);
        expectf(s->border_x == 10 && s->border_y == 10 && s->scale_num == 1 && s->scale_den == 1, "%d, %d", s->border_x,
                s->border_y);
        expectf(s->halo_left == 5 && s->halo_right >= 5, "halo %d, %d", s->halo_left, s->halo_right);
        against_padded(m, 10, false);
        exact_everywhere("cropped", m, 64);
        vg_model_unref(&m);
    }
    kit_seed(1);
    m = load(cropping(true, 1), "[vidgen]\nborder=reflect\n", &err); /* 2 (4 + 2) + 2 + 2, halved */
    expectf(m != NULL, "%s", err.text);
    if (m) {
        const struct vg_summary *s = vg_model_summary(m);
        expectf(s->border_x == 8 && s->scale_num == 2, "%d, %d", s->border_x, s->scale_num);
        against_padded(m, 8, true);
        exact_everywhere("cropped and doubled", m, 64);
        vg_model_unref(&m);
    }
    m = load(cropping(false, 1), "[vidgen]\nborder=mirror\n", &err);
    expectf(!m && strstr(err.text, "border is mirror, expected edge, reflect or zero"), "%s", err.text);
    vg_model_unref(&m);
    m = load(cropping(true, 2), "", &err); /* down and up: the stride is 2 */
    expectf(m && vg_model_summary(m)->border_x > 0 && vg_model_summary(m)->align_x == 2, "%s", err.text);
    if (m)
        exact_everywhere("cropped with a stride", m, 64);
    vg_model_unref(&m);
}

/* --- the classic style models: 224 x 224, opset 9, Upsample with a table of scales, values 0 to 255 --- */

static struct ow *classic(void)
{
    struct ow *file = ow_new(9);
    ow_input(file, "input1", 1, "1,3,224,224");
    struct pb *pad = ow_node("Pad", "pad", "input1", "p");
    ow_string(pad, "mode", "reflect");
    ow_ints(pad, "pads", 8, (int64_t[]){0, 0, 1, 1, 0, 0, 1, 1});
    ow_add(file, pad);
    conv(file, "p", "a", 8, 3, 3, 1);
    ow_add(file, ow_node("Relu", "", "a", "ar"));
    pad = ow_node("Pad", "pad2", "ar", "ap");
    ow_string(pad, "mode", "reflect");
    ow_ints(pad, "pads", 8, (int64_t[]){0, 0, 1, 1, 0, 0, 1, 1});
    ow_add(file, pad);
    conv(file, "ap", "b", 8, 8, 3, 2);
    up(file, "b", "u", true);
    pad = ow_node("Pad", "pad3", "u", "up");
    ow_string(pad, "mode", "reflect");
    ow_ints(pad, "pads", 8, (int64_t[]){0, 0, 1, 1, 0, 0, 1, 1});
    ow_add(file, pad);
    conv(file, "up", "output1", 3, 8, 3, 1);
    ow_output(file, "output1", 1, "1,3,224,224");
    return file;
}

static void fixed(void)
{
    struct vgk_error err = {{0}};
    kit_seed(1);
    struct vg_model *m = load(classic(), "[vidgen]\nrange=0;255\n", &err);
    expectf(m != NULL, "%s", err.text);
    if (m) { /* the size in the file is that of its author's picture only */
        const struct vg_summary *s = vg_model_summary(m);
        expectf(!s->fixed_width && !s->fixed_height && s->align_x == 2 && s->scale_num == 1, "%d, align %d", s->fixed_width,
                s->align_x);
        expect(s->in.scale[0] == 255 && s->out.scale[0] == 255);
        exact_everywhere("classic", m, 64);
        vg_model_unref(&m);
    }
    kit_seed(1);
    m = load(classic(), "", &err); /* nothing in the file tells 0 to 255: the default holds */
    expectf(m && vg_model_summary(m)->in.scale[0] == 1, "%s", err.text);
    vg_model_unref(&m);

    /* Whose graph holds to its size: it is bound to it, and tiles have it. */
    kit_seed(1);
    struct ow *file = classic();
    ow_ints_tensor(file, "shape", 1, (int64_t[]){4}, (int64_t[]){1, 3, 224, 224});
    ow_add(file, ow_node("Reshape", "", "output1,shape", "z"));
    ow_output(file, "z", 1, "1,3,224,224");
    m = load(file, "[vidgen]\noutput=z\n", &err);
    expectf(m && vg_model_summary(m)->fixed_width == 224 && vg_model_summary(m)->fixed_height == 224, "%s", err.text);
    vg_model_unref(&m);
}

int main(void)
{
    vgk_cpu.open(&(struct vgk_device_options){.threads = 1, .exact_products = true}, &cpu, NULL);
    run(cropped);
    run(fixed);
    vgk_cpu.close(&cpu);
    return kit_done();
}
