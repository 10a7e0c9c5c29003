/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames that lie in the device's memory, worked on as pictures: the stand-in against what the host does. */
#include "kernels/cuda_load.h"
#include "kit.h"

static struct vgk_device *device;

#define ROUNDS(n) for (int round = 0; round < (n); round++)

/* A frame on the host, and the same on the device at pitches of its own. */
struct both {
    struct vgk_frame host, there;
    size_t bytes[3], rows[3]; /* of a plane's row; of the plane */
    void *block[3];
};

static struct both make(enum vgk_frame_layout layout, int width, int height)
{
    static const int offsets[4][5] = {{3, 0, 1, 2, -1}, {3, 2, 1, 0, -1}, {4, 0, 1, 2, 3}, {4, 1, 2, 3, 0}};
    const int *o = offsets[kit_int(0, 3)];
    struct both b = {{.layout = layout, .width = width, .height = height, .alpha = -1}};
    size_t w = (size_t)width, h = (size_t)height, hw = (w + 1) / 2, hh = (h + 1) / 2;
    if (layout == VGK_FRAME_PACKED) {
        b.host.step = o[0];
        memcpy(b.host.offset, o + 1, sizeof b.host.offset);
        b.host.alpha = o[4];
    }
    for (int i = 0; i < 3; i++)
        switch (layout) {
        case VGK_FRAME_PACKED: b.bytes[i] = i ? 0 : w * (size_t)o[0], b.rows[i] = i ? 0 : h; break;
        case VGK_FRAME_PLANAR: b.bytes[i] = w, b.rows[i] = h; break;
        case VGK_FRAME_I420: b.bytes[i] = i ? hw : w, b.rows[i] = i ? hh : h; break;
        case VGK_FRAME_NV12: b.bytes[i] = i > 1 ? 0 : i ? 2 * hw : w, b.rows[i] = i > 1 ? 0 : i ? hh : h; break;
        }
    b.there = b.host;
    b.there.device = true;
    return b;
}

/* Memory for it; pitches are whole pieces or not, as it happens.  What lies beside the rows is noise. */
static void fill(struct both *b)
{
    for (int i = 0; i < 3; i++) {
        if (!b->rows[i])
            continue;
        size_t pad = kit_int(0, 1) ? (size_t)kit_int(0, 9) : vgk_round_up(b->bytes[i], 32) - b->bytes[i];
        b->host.stride[i] = b->there.stride[i] = (ptrdiff_t)(b->bytes[i] + pad);
        size_t all = (size_t)b->host.stride[i] * b->rows[i];
        b->host.plane[i] = malloc(all);
        for (size_t k = 0; k < all; k++)
            b->host.plane[i][k] = (uint8_t)kit_int(0, 255);
        b->block[i] = vgk_cuda.alloc(device, all);
        b->there.plane[i] = b->block[i];
    }
}

static void upload(const struct both *b)
{
    struct vgk_error err = {{0}};
    for (int i = 0; i < 3; i++)
        if (b->rows[i])
            expectf(vgk_cuda.upload(device, b->host.plane[i], b->block[i], (size_t)b->host.stride[i] * b->rows[i], &err) ==
                        VGK_OK, "%s", err.text);
}

static void drop(struct both *b)
{
    for (int i = 0; i < 3; i++) {
        free(b->host.plane[i]);
        vgk_cuda.free(device, b->block[i]);
    }
}

/* The same pixels at other pitches. */
static struct both twin(const struct both *b)
{
    struct both t = *b;
    memset(t.block, 0, sizeof t.block);
    fill(&t);
    for (int i = 0; i < 3; i++)
        for (size_t y = 0; y < t.rows[i]; y++)
            memcpy(t.host.plane[i] + (ptrdiff_t)y * t.host.stride[i], b->host.plane[i] + (ptrdiff_t)y * b->host.stride[i],
                   t.bytes[i]);
    return t;
}

static bool are_same(const struct both *a, const struct both *b)
{
    struct vgk_error err = {{0}};
    bool same = !kit_int(0, 1);
    expectf(vgk_cuda.frame_same(device, &a->there, &b->there, &same, &err) == VGK_OK, "%s", err.text);
    return same;
}

/* Every byte of the pixels counts, in any plane, and none beside them. */
static void comparisons(void)
{
    ROUNDS(160) {
        struct both a = make((enum vgk_frame_layout)(round % 4), kit_int(1, round % 5 ? 70 : 400), kit_int(1, 40)), b;
        int plane;
        fill(&a);
        b = twin(&a);
        upload(&a);
        upload(&b);
        expectf(are_same(&a, &b), "round %d", round);
        do
            plane = kit_int(0, 2);
        while (!a.rows[plane]);
        size_t y = kit_int(0, 1) ? a.rows[plane] - 1 : (size_t)kit_int(0, (int)a.rows[plane] - 1);
        size_t x = kit_int(0, 1) ? a.bytes[plane] - 1 : (size_t)kit_int(0, (int)a.bytes[plane] - 1);
        b.host.plane[plane][(ptrdiff_t)y * b.host.stride[plane] + (ptrdiff_t)x] ^= (uint8_t)(1 << kit_int(0, 7));
        upload(&b);
        expectf(!are_same(&a, &b), "round %d: plane %d, row %d, byte %d", round, plane, (int)y, (int)x);
        expectf(are_same(&b, &b), "round %d", round); /* what was found is forgotten */
        drop(&a);
        drop(&b);
    }
}

/* What cannot be compared is refused. */
static void refusals(void)
{
    struct vgk_error err = {{0}};
    struct both a = make(VGK_FRAME_NV12, 16, 16), b = make(VGK_FRAME_NV12, 16, 18), c = make(VGK_FRAME_I420, 16, 16);
    bool same;
    fill(&a);
    fill(&b);
    fill(&c);
    expect(vgk_cuda.frame_same(device, &a.there, &b.there, &same, &err) == VGK_ERR_INVALID && strstr(err.text, "16x18"));
    expect(vgk_cuda.frame_same(device, &a.there, &c.there, &same, &err) == VGK_ERR_INVALID);
    expect(vgk_cuda.frame_same(device, &a.there, &a.host, &same, &err) == VGK_ERR_INVALID);
    drop(&a);
    drop(&b);
    drop(&c);
}

int main(int argc, char **argv)
{
    struct vgk_error err = {{0}};
    if (vgk_cuda.open(&(struct vgk_device_options){0}, &device, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    kit_seed(argc > 1 ? (uint64_t)atoi(argv[1]) : 1);
    run(comparisons);
    run(refusals);
    expect(vgk_cuda.bytes_now(device) == 0);
    vgk_cuda.close(&device);
    return kit_done();
}
