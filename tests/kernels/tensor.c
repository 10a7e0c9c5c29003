/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernels/tensor.h"
#include "kit.h"

static void orders(void)
{
    int64_t dim[4] = {2, 3, 4, 5};
    struct vgk_tensor r = vgk_tensor_make(VGK_F32, 4, dim, VGK_ROW_MAJOR);
    struct vgk_tensor c = vgk_tensor_make(VGK_F32, 4, dim, VGK_CHANNELS_LAST);
    expect(r.stride[0] == 60 && r.stride[1] == 20 && r.stride[2] == 5 && r.stride[3] == 1);
    expect(c.stride[0] == 60 && c.stride[1] == 1 && c.stride[2] == 15 && c.stride[3] == 3);
    expect(vgk_tensor_is_dense(&r, VGK_ROW_MAJOR) && !vgk_tensor_is_dense(&r, VGK_CHANNELS_LAST));
    expect(vgk_tensor_count(&r) == 120);
}

static void sizes(void)
{
    size_t n = 7;
    int64_t big[3] = {INT64_MAX / 2, 4, 1}, minus[1] = {-1}, none[3] = {1 << 20, 0, 1 << 20}, five[1] = {5};
    struct vgk_tensor t = vgk_tensor_make(VGK_F32, 1, minus, VGK_ROW_MAJOR);
    expect(!vgk_tensor_bytes(&t, &n));
    t = (struct vgk_tensor){.type = VGK_F32, .rank = 3, .dim = {big[0], big[1], big[2]}};
    expect(!vgk_tensor_bytes(&t, &n) && n == 7);
    t = vgk_tensor_make(VGK_F32, 3, none, VGK_ROW_MAJOR);
    expect(vgk_tensor_bytes(&t, &n) && n == 0);
    t = vgk_tensor_make(VGK_I4, 1, five, VGK_ROW_MAJOR);
    expect(vgk_tensor_bytes(&t, &n) && n == 3);
}

/* Every reshape that is allowed shows the same elements in the same order as a copy would. */
static void reshapes(void)
{
    float data[24];
    for (int i = 0; i < 24; i++)
        data[i] = i;
    int64_t d[3] = {2, 3, 4}, flat[1] = {24}, pair[2] = {6, 4}, split[4] = {2, 3, 2, 2}, ones[5] = {1, 2, 1, 12, 1};
    struct vgk_tensor t = vgk_tensor_make(VGK_F32, 3, d, VGK_ROW_MAJOR), r;
    t.data = data;
    expect(vgk_tensor_reshape(&t, 1, flat, &r) && r.stride[0] == 1);
    expect(vgk_tensor_reshape(&t, 2, pair, &r) && r.stride[0] == 4 && r.stride[1] == 1);
    expect(vgk_tensor_reshape(&t, 4, split, &r) && r.stride[2] == 2);
    expect(vgk_tensor_reshape(&t, 5, ones, &r) && r.stride[1] == 12 && r.stride[3] == 1);
    int perm[3] = {0, 2, 1};
    struct vgk_tensor p = vgk_tensor_permute(&t, perm);
    expect(!vgk_tensor_reshape(&p, 1, flat, &r));
    int64_t keep[3] = {2, 2, 6}, in[4] = {2, 2, 2, 3};
    expect(!vgk_tensor_reshape(&p, 3, keep, &r));
    expect(vgk_tensor_reshape(&p, 4, in, &r) && r.stride[1] == 2 && r.stride[2] == 1 && r.stride[3] == 4);
}

static void views(void)
{
    float data[24];
    int64_t d[3] = {2, 3, 4}, row[1] = {4}, three[2] = {3, 1};
    struct vgk_tensor t = vgk_tensor_make(VGK_F32, 3, d, VGK_ROW_MAJOR), r;
    t.data = data;
    r = vgk_tensor_slice(&t, 2, 3, 4, -1);
    expect(r.data == data + 3 && r.stride[2] == -1);
    struct vgk_tensor b = vgk_tensor_make(VGK_F32, 1, row, VGK_ROW_MAJOR);
    expect(vgk_tensor_broadcast(&b, 3, d, &r) && r.stride[0] == 0 && r.stride[1] == 0 && r.stride[2] == 1);
    b = vgk_tensor_make(VGK_F32, 2, three, VGK_ROW_MAJOR);
    expect(vgk_tensor_broadcast(&b, 3, d, &r) && r.stride[1] == 1 && r.stride[2] == 0);
    expect(!vgk_tensor_broadcast(&b, 1, row, &r));
}

int main(void)
{
    run(orders);
    run(sizes);
    run(reshapes);
    run(views);
    return kit_done();
}
