/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "onnx_data.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "raw data are little-endian in the file and used as they are");

/* The same data in several tensors are a shared weight and fine; a part of them is an error in the file. */
struct vg_onnx_range {
    struct vg_onnx_range *next;
    const struct vg_onnx_file *file;
    size_t begin, end;
    const char *tensor;
};

struct vg_onnx_file {
    struct vg_onnx_file *next;
    const char *location; /* as the model says */
    const char *data;
    size_t size;
};

static const struct {
    const char *name;
    enum vgk_type type; /* VGK_NONE = not supported */
} types[] = {
    { "undefined" },
    { "float", VGK_F32 },
    { "uint8", VGK_U8 },
    { "int8", VGK_I8 },
    { "uint16", VGK_U16 },
    { "int16", VGK_I16 },
    { "int32", VGK_I32 },
    { "int64", VGK_I64 },
    { "string" },
    { "bool", VGK_BOOL },
    { "float16", VGK_F16 },
    { "double", VGK_F64 },
    { "uint32", VGK_U32 },
    { "uint64", VGK_U64 },
    { "complex64" },
    { "complex128" },
    { "bfloat16", VGK_BF16 },
    { "float8e4m3fn" },
    { "float8e4m3fnuz" },
    { "float8e5m2" },
    { "float8e5m2fnuz" },
    { "uint4", VGK_U4 },
    { "int4", VGK_I4 },
    { "float4e2m1" },
    { "float8e8m0" },
    { "uint2" },
    { "int2" },
};

bool vg_onnx_type(int32_t number, enum vgk_type *type)
{
    if (number < 0 || (size_t)number >= sizeof types / sizeof *types || types[number].type == VGK_NONE)
        return false;
    *type = types[number].type;
    return true;
}

const char *vg_onnx_type_name(int32_t number)
{
    return number < 0 || (size_t)number >= sizeof types / sizeof *types ? "unknown" : types[number].name;
}

/* Decimal digits only. */
static bool parse_size(const char *text, size_t *value)
{
    size_t v = 0;
    if (!*text)
        return false;
    for (; *text; text++)
        if (*text < '0' || *text > '9' || !vgk_mul(v, 10, &v) || !vgk_add(v, (size_t)(*text - '0'), &v))
            return false;
    *value = v;
    return true;
}

/* The path must stay inside the model's folder, by its words and where links lead. */
static enum vgk_status resolve(const char *folder, const char *location, const char *what, char *path,
                               struct vgk_error *err)
{
    for (const char *p = location; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
        if (*location == '/' || (p[0] == '.' && p[1] == '.' && (!p[2] || p[2] == '/')))
            return vgk_fail(err, VGK_ERR_INVALID,
                            "%s: its data are in '%.200s', which is outside the model's folder; "
                            "put the file beside the model and name it without '/' or '..' at the start",
                            what, location);
    char joined[PATH_MAX];
    if ((size_t)snprintf(joined, sizeof joined, "%s/%s", folder, location) >= sizeof joined)
        return vgk_fail(err, VGK_ERR_INVALID, "%s: the path of its data has more than %d characters", what, PATH_MAX);
    if (!realpath(joined, path))
        return vgk_fail(err, VGK_ERR_FILE, "%s: its data are in '%.200s', which cannot be opened: %s", what, location,
                        strerror(errno));
    size_t n = strlen(folder);
    if (strncmp(path, folder, n) || (path[n] != '/' && n > 1))
        return vgk_fail(err, VGK_ERR_INVALID,
                        "%s: its data are in '%.200s', a link to outside the model's folder; put a "
                        "copy of the file beside the model",
                        what, location);
    return VGK_OK;
}

static enum vgk_status find_file(struct vg_onnx_source *s, const char *location, const char *what,
                                 const struct vg_onnx_file **file, struct vgk_error *err)
{
    for (*file = s->files; *file; *file = (*file)->next)
        if (!strcmp((*file)->location, location))
            return VGK_OK;
    char path[PATH_MAX];
    enum vgk_status status = resolve(s->folder, location, what, path, err);
    if (status != VGK_OK)
        return status;
    struct vg_onnx_file *f = vg_arena_array(s->arena, 1, sizeof *f);
    if (!f)
        return vg_arena_error(s->arena, err);
    const void *data;
    if ((status = vg_map_file(s->arena, path, &data, &f->size, err)) != VGK_OK) {
        vgk_error_prefix(err, "%s", what);
        return status;
    }
    f->location = location;
    f->data = data;
    f->next = s->files;
    s->arena->limit += f->size; /* some tensors need a copy */
    *file = s->files = f;
    return VGK_OK;
}

static enum vgk_status external(struct vg_onnx_source *s, const Vg__Tensor *p, const char *what, size_t bytes,
                                struct vgk_tensor *t, struct vgk_error *err)
{
    const char *location = NULL, *offset_text = "0", *length_text = NULL;
    for (size_t i = 0; i < p->n_external_data; i++) {
        const Vg__Entry *e = p->external_data[i];
        const char *key = e->key ? e->key : "", *value = e->value ? e->value : "";
        if (!strcmp(key, "location"))
            location = value;
        else if (!strcmp(key, "offset"))
            offset_text = value;
        else if (!strcmp(key, "length"))
            length_text = value;
    }
    size_t offset, length = bytes;
    if (!location || !*location)
        return vgk_fail(err, VGK_ERR_INVALID, "%s: its data are in another file, but no file is named", what);
    if (!parse_size(offset_text, &offset) || (length_text && !parse_size(length_text, &length)))
        return vgk_fail(err, VGK_ERR_INVALID,
                        "%s: offset '%.40s' or length '%.40s' of its data in '%.200s' is no number "
                        "of bytes",
                        what, offset_text, length_text ? length_text : "", location);
    if (length != bytes)
        return vgk_fail(err, VGK_ERR_INVALID,
                        "%s: its type and dimensions need %zu bytes, its length in '%.200s' is %zu", what, bytes,
                        location, length);
    if (!s->folder)
        return vgk_fail(err, VGK_ERR_UNSUPPORTED,
                        "%s: its data are in another file ('%.200s'), which a model in memory "
                        "cannot have; load the model from its file",
                        what, location);
    const struct vg_onnx_file *file;
    enum vgk_status status = find_file(s, location, what, &file, err);
    if (status != VGK_OK)
        return status;
    if (offset > file->size || bytes > file->size - offset)
        return vgk_fail(err, VGK_ERR_INVALID,
                        "%s: its data are bytes %zu to %zu of '%.200s', which has only %zu bytes: "
                        "cut off, or of another version of the model",
                        what, offset, offset + bytes, location, file->size);
    if (!bytes)
        return VGK_OK;
    struct vg_onnx_range *range = vg_arena_array(s->arena, 1, sizeof *range);
    if (!range)
        return vg_arena_error(s->arena, err);
    *range = (struct vg_onnx_range){
        .next = s->ranges, .file = file, .begin = offset, .end = offset + bytes, .tensor = p->name ? p->name : ""
    };
    s->ranges = range;
    s->n_ranges++;
    t->data = (void *)(file->data + offset);
    int align = vgk_type_bits(t->type) / 8;
    if (t->type == VGK_BOOL || (align > 1 && (uintptr_t)t->data % (size_t)align)) {
        void *copy = vg_arena_aligned(s->arena, bytes);
        if (!copy)
            return vg_arena_error(s->arena, err);
        t->data = memcpy(copy, t->data, bytes);
    }
    return VGK_OK;
}

/* Integers of a wider type, one an element (one a byte for the 4-bit types), which must fit as signed or unsigned. */
static bool narrow(const void *from, int from_bits, size_t n, void *to, int to_bits)
{
    for (size_t i = 0; i < n; i++) {
        int64_t v = from_bits == 32 ? ((const int32_t *)from)[i] : ((const int64_t *)from)[i];
        if (v < -((int64_t)1 << (to_bits - 1)) || v >= (int64_t)1 << to_bits)
            return false;
        memcpy((char *)to + i * (size_t)(to_bits / 8), &v, (size_t)(to_bits / 8));
    }
    return true;
}

/* Data in one of the fields for numbers. */
static enum vgk_status typed(struct vg_onnx_source *s, const Vg__Tensor *p, const char *what, size_t bytes,
                             struct vgk_tensor *t, struct vgk_error *err)
{
    const struct {
        const char *name;
        const void *data;
        size_t n;
        int bits;
    } fields[] = {
        { "float_data", p->float_data, p->n_float_data, 32 },
        { "int32_data", p->int32_data, p->n_int32_data, 32 },
        { "int64_data", p->int64_data, p->n_int64_data, 64 },
        { "double_data", p->double_data, p->n_double_data, 64 },
        { "uint64_data", p->uint64_data, p->n_uint64_data, 64 },
    };
    enum { FLOAT, INT32, INT64, DOUBLE, UINT64, N } field;
    switch (t->type) {
    case VGK_F32:
        field = FLOAT;
        break;
    case VGK_F64:
        field = DOUBLE;
        break;
    case VGK_I64:
        field = INT64;
        break;
    case VGK_U64:
    case VGK_U32:
        field = UINT64;
        break;
    default:
        field = INT32;
    }
    int bits = vgk_type_bits(t->type) < 8 ? 8 : vgk_type_bits(t->type);
    size_t n = bytes / (size_t)(bits / 8);
    for (int i = 0; i < N; i++)
        if (i != (int)field && fields[i].n)
            return vgk_fail(err, VGK_ERR_INVALID, "%s: data of type %s belong into %s or raw_data, here they are in %s",
                            what, vgk_type_name(t->type), fields[field].name, fields[i].name);
    if (fields[field].n != n)
        return vgk_fail(err, VGK_ERR_INVALID, "%s: its type and dimensions need %zu numbers in %s, given are %zu", what,
                        n, fields[field].name, fields[field].n);
    t->data = (void *)fields[field].data;
    if (bits == fields[field].bits)
        return VGK_OK;
    void *data = vg_arena_aligned(s->arena, bytes);
    if (!data)
        return vg_arena_error(s->arena, err);
    if (!narrow(t->data, fields[field].bits, n, data, bits))
        return vgk_fail(err, VGK_ERR_INVALID, "%s: a number in %s does not fit type %s", what, fields[field].name,
                        vgk_type_name(t->type));
    t->data = data;
    return VGK_OK;
}

enum vgk_status vg_onnx_tensor(struct vg_onnx_source *s, const Vg__Tensor *p, const char *what, struct vgk_tensor *t,
                               struct vgk_error *err)
{
    enum vgk_type type;
    if (!vg_onnx_type(p->data_type, &type))
        return vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s: element type %" PRId32 " (%s) is not supported", what,
                        p->data_type, vg_onnx_type_name(p->data_type));
    if (p->n_dims > VGK_MAX_RANK)
        return vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s: has %zu dimensions, up to %d are supported", what, p->n_dims,
                        VGK_MAX_RANK);
    int64_t count = 1;
    bool empty = false;
    for (size_t i = 0; i < p->n_dims; i++) {
        if (p->dims[i] < 0)
            return vgk_fail(err, VGK_ERR_INVALID, "%s: dimension %zu is %" PRId64, what, i, p->dims[i]);
        empty |= !p->dims[i];
        if (p->dims[i] && (__builtin_mul_overflow(count, p->dims[i], &count) || count > VG_ONNX_MAX_ELEMENTS))
            return vgk_fail(err, VGK_ERR_INVALID, "%s: has more than VG_ONNX_MAX_ELEMENTS = %" PRId64 " elements", what,
                            VG_ONNX_MAX_ELEMENTS);
    }
    size_t bytes;
    *t = vgk_tensor_make(type, (int)p->n_dims, p->dims, VGK_ROW_MAJOR);
    if (!vgk_tensor_bytes(t, &bytes))
        return vgk_fail(err, VGK_ERR_INVALID, "%s: its dimensions are too large", what);
    if (p->has_segment)
        return vgk_fail(err, VGK_ERR_UNSUPPORTED, "%s: is stored in segments", what);
    bool in_fields = p->n_float_data || p->n_int32_data || p->n_int64_data || p->n_double_data || p->n_uint64_data;
    bool elsewhere = p->data_location != 0;
    if (p->n_string_data || (p->has_raw_data && p->raw_data.len) + in_fields + elsewhere > 1)
        return vgk_fail(err, VGK_ERR_INVALID, "%s: has its data in more than one place", what);

    enum vgk_status status = VGK_OK;
    if (p->data_location != 0 && p->data_location != 1)
        return vgk_fail(err, VGK_ERR_INVALID, "%s: data location %" PRId32 " is unknown", what, p->data_location);
    if (elsewhere) {
        status = external(s, p, what, bytes, t, err);
    } else if (in_fields) {
        status = typed(s, p, what, bytes, t, err);
    } else {
        if (p->raw_data.len != bytes)
            return vgk_fail(err, VGK_ERR_INVALID, "%s: its type and dimensions need %zu bytes of data, given are %zu",
                            what, bytes, p->raw_data.len);
        t->data = p->raw_data.data;
    }
    if (status != VGK_OK)
        return status;
    const char *at = t->data;
    bool stays = s->mapped && at >= s->mapped && at < s->mapped_end && type != VGK_BOOL;
    if (!t->data || (!elsewhere && !stays && (uintptr_t)t->data % VGK_ALIGN)) {
        void *copy = vg_arena_aligned(s->arena, bytes);
        if (!copy)
            return vg_arena_error(s->arena, err);
        if (bytes)
            memcpy(copy, t->data, bytes);
        t->data = copy;
    }
    if (type == VGK_BOOL)
        for (size_t i = 0; i < bytes; i++)
            ((uint8_t *)t->data)[i] = ((uint8_t *)t->data)[i] != 0;
    return VGK_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct vg_onnx_range *x = *(struct vg_onnx_range *const *)a, *y = *(struct vg_onnx_range *const *)b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

enum vgk_status vg_onnx_check_overlap(struct vg_onnx_source *s, struct vgk_error *err)
{
    const struct vg_onnx_range **sorted = vg_arena_array(s->arena, s->n_ranges, sizeof *sorted);
    if (!sorted)
        return vg_arena_error(s->arena, err);
    size_t n = 0;
    for (const struct vg_onnx_range *r = s->ranges; r; r = r->next)
        sorted[n++] = r;
    qsort(sorted, n, sizeof *sorted, by_place);
    for (size_t i = 1; i < n; i++) {
        const struct vg_onnx_range *a = sorted[i - 1], *b = sorted[i];
        if (a->file == b->file && b->begin < a->end && (a->begin != b->begin || a->end != b->end))
            return vgk_fail(err, VGK_ERR_INVALID,
                            "the data of '%.80s' (bytes %zu to %zu of '%.200s') overlap those of "
                            "'%.80s' (%zu to %zu)",
                            b->tensor, b->begin, b->end, b->file->location, a->tensor, a->begin, a->end);
    }
    return VGK_OK;
}
