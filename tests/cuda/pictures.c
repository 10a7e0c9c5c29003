/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames that lie in the device's memory, worked on as pictures: the stand-in against what the host does. */
#include "kernels/cuda_load.h"
#include "kit.h"
#include "model/fade.h"
#include "model/frames.h"
#include "model/scenecut.h"

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

static void download(const struct both *b)
{
    struct vgk_error err = {{0}};
    for (int i = 0; i < 3; i++)
        if (b->rows[i])
            expectf(vgk_cuda.download(device, b->block[i], b->host.plane[i], (size_t)b->host.stride[i] * b->rows[i], &err) ==
                        VGK_OK, "%s", err.text);
}

static struct vg_picture picture(const struct both *b)
{
    struct vg_picture p = {{0}};
    for (int i = 0; i < 3; i++) {
        p.data[i] = b->host.plane[i];
        p.stride[i] = b->host.stride[i];
    }
    return p;
}

static struct vg_layout layout_of(const struct both *b)
{
    struct vg_layout l = {b->rows[2] ? 3 : b->rows[1] ? 2 : 1, {{0}}};
    for (int i = 0; i < l.planes; i++) {
        l.plane[i].step = b->host.layout == VGK_FRAME_PACKED ? b->host.step : i && b->host.layout == VGK_FRAME_NV12 ? 2 : 1;
        l.plane[i].x_sub = l.plane[i].y_sub = i && vgk_frame_halved(&b->host);
    }
    return l;
}

/* The bytes that vg_fade makes, and what lies beside them as it was. */
static void fades(void)
{
    ROUNDS(80) {
        struct vgk_error err = {{0}};
        struct both to = make((enum vgk_frame_layout)(round % 4), kit_int(1, 90), kit_int(1, 30)), from = to, want;
        const struct vg_layout layout = layout_of(&to);
        int n = kit_int(1, 7), i = kit_int(0, n - 1);
        fill(&to);
        fill(&from);
        want = to;
        for (int k = 0; k < 3; k++) {
            size_t bytes = (size_t)to.host.stride[k] * to.rows[k];
            want.host.plane[k] = bytes ? memcpy(malloc(bytes), to.host.plane[k], bytes) : NULL;
            want.block[k] = NULL;
        }
        upload(&to);
        upload(&from);
        struct vg_picture later = picture(&want), earlier = picture(&from);
        vg_fade(&layout, &later, &earlier, to.host.width, to.host.height, i, n);
        expectf(vgk_cuda.frame_fade(device, &to.there, &from.there, i, n, &err) == VGK_OK, "%s", err.text);
        download(&to);
        for (int k = 0; k < 3; k++)
            expectf(!to.rows[k] || !memcmp(to.host.plane[k], want.host.plane[k], (size_t)to.host.stride[k] * to.rows[k]),
                    "round %d, plane %d", round, k);
        drop(&to);
        drop(&from);
        drop(&want);
    }
}

/* What vg_frame_compare finds. */
static void differences(void)
{
    ROUNDS(60) {
        struct vgk_error err = {{0}};
        struct both a = make((enum vgk_frame_layout)(round % 4), kit_int(1, 90), kit_int(1, 30)), b = a;
        struct vg_difference want = {0};
        uint64_t sum = 1;
        int worst = 1;
        fill(&a);
        if (round % 7)
            fill(&b);
        else
            b = twin(&a);
        upload(&a);
        upload(&b);
        vg_frame_compare(&a.host, 0, 0, a.host.width, a.host.height, &b.host, 0, 0, &want);
        expectf(vgk_cuda.frame_difference(device, &a.there, &b.there, &sum, &worst, &err) == VGK_OK, "%s", err.text);
        expectf((double)sum == want.sum && worst == want.worst, "round %d: sum %lu for %g, worst %d for %d", round, (long)sum,
                want.sum, worst, want.worst);
        expect(want.values == vg_frame_values(&a.host));
        drop(&a);
        drop(&b);
    }
}

/* The samples that vg_frame_shrink makes, into memory of the host that the device reads and writes. */
static void shrinks(void)
{
    ROUNDS(80) {
        struct vgk_error err = {{0}};
        struct both a = make((enum vgk_frame_layout)(round % 4), kit_int(2, 200), kit_int(2, 60));
        int width = kit_int(1, a.host.width + (round % 9 == 0)), height = kit_int(1, a.host.height);
        size_t bytes = (size_t)(width + 1) * (size_t)(height + 1) * VG_FRAME_STEP;
        uint8_t *mine = malloc(bytes), *theirs = vgk_cuda.host_alloc(device, bytes);
        fill(&a);
        upload(&a);
        memset(mine, 0xee, bytes);
        memset(theirs, 0xee, bytes);
        struct vgk_frame want = vg_frame_like(&a.host, width, height, mine),
                         got = vg_frame_like(&a.there, width, height, theirs);
        vg_frame_shrink(&a.host, &want);
        expectf(vgk_cuda.frame_shrink(device, &a.there, &got, &err) == VGK_OK, "%s", err.text);
        upload(&a); /* waits for it */
        expectf(!memcmp(mine, theirs, bytes), "round %d: %dx%d to %dx%d", round, a.host.width, a.host.height, width, height);
        drop(&a);
        free(mine);
        vgk_cuda.host_free(device, theirs, bytes);
    }
}

/* A frame's cuts are those of its points. */
static void points(void)
{
    uint8_t *small = vgk_cuda.host_alloc(device, VG_SCENECUT_WIDTH * VG_SCENECUT_HEIGHT);
    struct vg_scenecut here = {0}, there = {0};
    int cuts = 0;
    ROUNDS(24) {
        struct vgk_error err = {{0}};
        struct both a = make((enum vgk_frame_layout)(round % 4), kit_int(64, 500), kit_int(30, 200));
        struct vgk_frame seen = {VGK_FRAME_I420, VG_SCENECUT_WIDTH, VG_SCENECUT_HEIGHT, {small}, {VG_SCENECUT_WIDTH}};
        fill(&a);
        /* Noise says nothing: blocks of it, which are others every third frame. */
        kit_seed((uint64_t)(round / 3));
        uint8_t blocks[8][16];
        for (int i = 0; i < 8 * 16; i++)
            blocks[i / 16][i % 16] = (uint8_t)kit_int(40, 210);
        for (int i = 0; i < 3; i++)
            for (size_t y = 0; y < a.rows[i]; y++)
                for (size_t x = 0; x < a.bytes[i]; x++)
                    a.host.plane[i][(ptrdiff_t)y * a.host.stride[i] + (ptrdiff_t)x] =
                        (uint8_t)(blocks[y * 8 / a.rows[i]][x * 16 / a.bytes[i]] + (x + y) % 3);
        upload(&a);
        memset(small, 0, VG_SCENECUT_WIDTH * VG_SCENECUT_HEIGHT);
        expectf(vgk_cuda.frame_brightness(device, &a.there, VG_SCENECUT_WIDTH, VG_SCENECUT_HEIGHT, small, &err) == VGK_OK,
                "%s", err.text);
        bool cut = vg_scenecut_next(&here, &a.host);
        cuts += cut;
        expectf(vg_scenecut_next(&there, &seen) == cut, "round %d", round);
        expectf(!memcmp(&here, &there, sizeof here), "round %d", round);
        drop(&a);
    }
    expectf(cuts > 3, "%d cuts", cuts);
    vgk_cuda.host_free(device, small, VG_SCENECUT_WIDTH * VG_SCENECUT_HEIGHT);
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
    run(fades);
    run(differences);
    run(shrinks);
    run(points);
    run(refusals);
    expect(vgk_cuda.bytes_now(device) == 0);
    vgk_cuda.close(&device);
    return kit_done();
}
