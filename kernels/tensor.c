/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tensor.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static const struct {
    const char *name;
    int bits;
} types[] = {
    [VGK_NONE] = {"none", 0}, [VGK_F32] = {"f32", 32}, [VGK_F16] = {"f16", 16}, [VGK_BF16] = {"bf16", 16},
    [VGK_F64] = {"f64", 64},  [VGK_BOOL] = {"bool", 8}, [VGK_U8] = {"u8", 8},   [VGK_I8] = {"i8", 8},
    [VGK_U16] = {"u16", 16},  [VGK_I16] = {"i16", 16}, [VGK_U32] = {"u32", 32}, [VGK_I32] = {"i32", 32},
    [VGK_U64] = {"u64", 64},  [VGK_I64] = {"i64", 64}, [VGK_U4] = {"u4", 4},    [VGK_I4] = {"i4", 4},
};

int vgk_type_bits(enum vgk_type type) { return types[type].bits; }
const char *vgk_type_name(enum vgk_type type) { return types[type].name; }

bool vgk_type_is_float(enum vgk_type type)
{
    return type == VGK_F32 || type == VGK_F16 || type == VGK_BF16 || type == VGK_F64;
}

struct vgk_tensor vgk_tensor_make(enum vgk_type type, int rank, const int64_t *dim, enum vgk_order order)
{
    assert(rank >= 0 && rank <= VGK_MAX_RANK);
    struct vgk_tensor t = {.type = type, .rank = rank};
    int64_t stride = 1;
    for (int i = 0; i < rank; i++)
        t.dim[i] = dim[i];
    if (order == VGK_CHANNELS_LAST && rank >= 3) {
        t.stride[1] = 1;
        stride = dim[1];
        for (int i = rank - 1; i >= 2; stride *= dim[i--])
            t.stride[i] = stride;
        t.stride[0] = stride;
    } else {
        for (int i = rank - 1; i >= 0; stride *= dim[i--])
            t.stride[i] = stride;
    }
    return t;
}

int64_t vgk_tensor_count(const struct vgk_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

bool vgk_tensor_bytes(const struct vgk_tensor *t, size_t *bytes)
{
    size_t n = 1;
    bool empty = false;
    for (int i = 0; i < t->rank; i++) {
        if (t->dim[i] < 0)
            return false;
        if (!t->dim[i])
            empty = true;
        else if (!vgk_mul(n, (size_t)t->dim[i], &n))
            return false;
    }
    /* Strides are signed and in elements: half the address space is the limit. */
    if (!vgk_mul(n, (size_t)vgk_type_bits(t->type), &n) || n / 8 > PTRDIFF_MAX / 2)
        return false;
    *bytes = empty ? 0 : (n + 7) / 8;
    return true;
}

bool vgk_tensor_is_one_value(const struct vgk_tensor *t)
{
    for (int d = 0; d < t->rank; d++)
        if (t->dim[d] != 1 && t->stride[d])
            return false;
    return true;
}

bool vgk_tensor_is_dense(const struct vgk_tensor *t, enum vgk_order order)
{
    struct vgk_tensor d = vgk_tensor_make(t->type, t->rank, t->dim, order);
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] > 1 && t->stride[i] != d.stride[i])
            return false;
    return true;
}

char *vgk_tensor_describe(const struct vgk_tensor *t, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "%s[", vgk_type_name(t->type));
    for (int i = 0; i < t->rank && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%" PRId64, i ? "," : "", t->dim[i]);
    if (n < size)
        snprintf(text + n, size - n, "]");
    return text;
}

struct vgk_tensor vgk_tensor_permute(const struct vgk_tensor *t, const int *perm)
{
    struct vgk_tensor r = *t;
    for (int i = 0; i < t->rank; i++) {
        r.dim[i] = t->dim[perm[i]];
        r.stride[i] = t->stride[perm[i]];
    }
    return r;
}

struct vgk_tensor vgk_tensor_slice(const struct vgk_tensor *t, int axis, int64_t begin, int64_t count, int64_t step)
{
    struct vgk_tensor r = *t;
    assert(vgk_type_bits(t->type) >= 8);
    if (r.data && count > 0)
        r.data = (char *)r.data + begin * t->stride[axis] * (vgk_type_bits(t->type) / 8);
    r.dim[axis] = count;
    r.stride[axis] = t->stride[axis] * step;
    return r;
}

bool vgk_tensor_broadcast(const struct vgk_tensor *t, int rank, const int64_t *dim, struct vgk_tensor *out)
{
    if (t->rank > rank)
        return false;
    struct vgk_tensor r = {.type = t->type, .rank = rank, .data = t->data};
    for (int i = 0; i < rank; i++) {
        int j = i - (rank - t->rank);
        int64_t d = j < 0 ? 1 : t->dim[j];
        if (d != dim[i] && d != 1)
            return false;
        r.dim[i] = dim[i];
        r.stride[i] = j >= 0 && d == dim[i] ? t->stride[j] : 0;
    }
    *out = r;
    return true;
}

/* Walks both shapes from the left, matching groups of dimensions of equal size; a group of t must be one run. */
bool vgk_tensor_reshape(const struct vgk_tensor *t, int rank, const int64_t *dim, struct vgk_tensor *out)
{
    struct vgk_tensor r = {.type = t->type, .rank = rank, .data = t->data};
    int64_t n = 1;
    for (int i = 0; i < rank; i++) {
        r.dim[i] = dim[i];
        n *= dim[i];
    }
    if (n != vgk_tensor_count(t))
        return false;
    if (n <= 1) {
        for (int i = 0; i < rank; i++)
            r.stride[i] = 1;
        *out = r;
        return true;
    }
    /* The old dimensions without those of 1. */
    int64_t od[VGK_MAX_RANK], os[VGK_MAX_RANK];
    int on = 0;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] != 1) {
            od[on] = t->dim[i];
            os[on++] = t->stride[i];
        }
    for (int i = 0, j = 0; i < on && j < rank;) {
        int64_t a = od[i], b = dim[j];
        int i1 = i + 1, j1 = j + 1;
        while (a != b)
            if (a < b)
                a *= od[i1++];
            else
                b *= dim[j1++];
        for (int k = i; k < i1 - 1; k++)
            if (os[k] != os[k + 1] * od[k + 1])
                return false;
        int64_t stride = os[i1 - 1];
        for (int k = j1 - 1; k >= j; stride *= dim[k--])
            r.stride[k] = stride;
        i = i1;
        j = j1;
    }
    /* What is left at the end can only be dimensions of 1. */
    for (int j = 0; j < rank; j++)
        if (dim[j] == 1)
            r.stride[j] = 1;
    *out = r;
    return true;
}
