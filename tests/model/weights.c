/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Weights that stay as a model's file stores them: mapped, in their own type in the arena, and with the results of f32;
 * and files whose weights stay in place, damaged. */
#include <sys/mman.h>
#include <unistd.h>

#include "kit.h"
#include "nets.h"
#include "onnx_write.h"

enum { C = 128, LAYERS = 12 }; /* products of C x 4C and back */
enum { BLOCK = 32 };

static struct vgk_device *cpu;

/* How the matrices are stored. */
static const struct kind {
    const char *name;
    int type, bits; /* of the file */
    bool zero, blocked, transposed;
} kinds[] = {
    {"f32", 1, 32},
    {"f16", 10, 16},
    {"bf16", 16, 16, .transposed = true},
    {"i8, a scale for each column", 3, 8},
    {"u8, zero points, transposed", 2, 8, .zero = true, .transposed = true},
    {"i8 in blocks", 3, 8, .blocked = true},
    {"i4 in blocks", 22, 4, .blocked = true},
    {"u4 in blocks, zero points", 21, 4, .blocked = true, .zero = true},
};

static float half(uint16_t bits)
{
    _Float16 h;
    memcpy(&h, &bits, sizeof h);
    return (float)h;
}

/* Adds the value `name` [rows, columns] as stored weights and nodes, or as the f32 that they stand for. */
static size_t weights(struct ow *file, const struct kind *k, const char *name, int64_t rows, int64_t columns, bool plain)
{
    char text[3][32];
    int64_t n = rows * columns, block = k->blocked ? BLOCK : rows, blocks = rows / block;
    int64_t dim[] = {rows, columns}, swapped[] = {columns, rows}, scales[] = {blocks, columns};
    float *f = malloc((size_t)n * sizeof *f), *scale = malloc((size_t)(blocks * columns) * sizeof *scale);
    uint8_t *raw = calloc((size_t)n, 4), *zero = calloc((size_t)(blocks * columns), 1);
    bool integer = k->bits <= 8, sign = k->type == 3 || k->type == 22;
    int low = integer && sign ? -(1 << (k->bits - 1)) : 0, high = integer ? low + (1 << k->bits) - 1 : 0;
    for (int64_t i = 0; i < blocks * columns && integer; i++) {
        scale[i] = (float)kit_real(0.5, 1.5) * 2 / (float)(high - low) / 12;
        int z = k->zero ? kit_int(low, high) : 0;
        if (k->bits == 4)
            zero[i / 2] |= (uint8_t)((z & 15) << i % 2 * 4);
        else
            zero[i] = (uint8_t)z;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t row = i / columns, column = i % columns, s = row / block * columns + column;
        int64_t to = k->transposed ? column * rows + row : i;
        float v = (float)kit_real(-0.1, 0.1);
        if (!integer) {
            uint32_t u;
            memcpy(&u, &v, 4);
            _Float16 h = (_Float16)v;
            if (k->bits == 32)
                memcpy(raw + 4 * to, &u, 4);
            else if (k->type == 10)
                memcpy(raw + 2 * to, &h, 2);
            else
                ((uint16_t *)raw)[to] = (uint16_t)(u >> 16);
            if (k->bits == 16) {
                uint16_t bits = ((uint16_t *)raw)[to];
                u = (uint32_t)bits << 16;
                memcpy(&v, &u, 4);
                v = k->type == 10 ? half(bits) : v;
            }
        } else {
            int q = kit_int(low, high), z = 0;
            if (k->bits == 4) {
                raw[to / 2] |= (uint8_t)((q & 15) << to % 2 * 4);
                z = zero[s / 2] >> s % 2 * 4 & 15;
                z = sign ? (z ^ 8) - 8 : z;
            } else {
                raw[to] = (uint8_t)q;
                z = sign ? (int8_t)zero[s] : zero[s];
            }
            v = (float)(q - z) * scale[s];
        }
        f[i] = v;
    }
    size_t bytes = (size_t)n * (size_t)k->bits / 8;
    if (plain) {
        ow_floats_tensor(file, name, 2, dim, f);
    } else if (k->bits == 32) {
        ow_initializer(file, ow_raw(name, 1, 2, dim, raw, bytes));
    } else {
        snprintf(text[0], sizeof text[0], "%s_q", name);
        snprintf(text[1], sizeof text[1], "%s_d", name);
        ow_initializer(file, ow_raw(text[0], k->type, 2, k->transposed ? swapped : dim, raw, bytes));
        struct pb *node;
        const char *made = k->transposed ? text[1] : name;
        if (!integer) {
            node = ow_node("Cast", text[1], text[0], made);
            ow_int(node, "to", 1);
        } else {
            char s[40], z[40], in[128];
            snprintf(s, sizeof s, "%s_s", name);
            snprintf(z, sizeof z, "%s_z", name);
            snprintf(in, sizeof in, k->zero ? "%s,%s,%s" : "%s,%s", text[0], s, z);
            ow_floats_tensor(file, s, k->blocked ? 2 : 1, k->blocked ? scales : &columns, scale);
            size_t zeros = (size_t)(blocks * columns) * (size_t)k->bits / 8;
            if (k->zero)
                ow_initializer(file, ow_raw(z, k->type, k->blocked ? 2 : 1, k->blocked ? scales : &columns, zero, zeros));
            node = ow_node("DequantizeLinear", text[1], in, made);
            ow_int(node, "axis", k->blocked || k->transposed ? 0 : 1);
            if (k->blocked)
                ow_int(node, "block_size", BLOCK);
            bytes += (size_t)(blocks * columns) * (4 + (size_t)(k->zero ? 1 : 0));
        }
        ow_add(file, node);
        if (k->transposed)
            ow_add(file, ow_node("Transpose", name, made, name));
    }
    free(f);
    free(scale);
    free(raw);
    free(zero);
    return bytes;
}

static void conv(struct ow *file, const char *in, const char *out, int64_t cin, int64_t cout, int64_t size)
{
    char name[32];
    int64_t dim[] = {cout, cin, size, size};
    float *f = malloc(ow_count(4, dim) * sizeof *f);
    for (size_t i = 0; i < ow_count(4, dim); i++)
        f[i] = (float)kit_real(-0.2, 0.2);
    snprintf(name, sizeof name, "%s_w", out);
    ow_floats_tensor(file, name, 4, dim, f);
    free(f);
    char inputs[64];
    snprintf(inputs, sizeof inputs, "%s,%s", in, name);
    struct pb *node = ow_node("Conv", out, inputs, out);
    ow_ints(node, "strides", 2, (int64_t[]){size, size});
    ow_add(file, node);
}

/* Patches of 4 x 4 pixels are tokens, which go through layers of products, and become pixels again. */
static uint8_t *tokens(const struct kind *k, bool plain, size_t *size, size_t *stored)
{
    static const int64_t last[] = {0, 2, 3, 1}, first[] = {0, 3, 1, 2};
    struct ow *file = ow_new(21);
    kit_seed(7);
    ow_input(file, "x", 1, "1,3,h,w");
    conv(file, "x", "patches", 3, C, 4);
    struct pb *node = ow_node("Transpose", "t0", "patches", "t0");
    ow_ints(node, "perm", 4, last);
    ow_add(file, node);
    *stored = 0;
    for (int i = 0; i < LAYERS; i++) {
        char w[16], in[32], out[16], product[16];
        snprintf(w, sizeof w, "w%d", i);
        snprintf(in, sizeof in, "t%d,w%d", i, i);
        snprintf(product, sizeof product, "p%d", i);
        snprintf(out, sizeof out, "t%d", i + 1);
        *stored += weights(file, k, w, i % 2 ? 4 * C : C, i % 2 ? C : 4 * C, plain);
        ow_add(file, ow_node("MatMul", product, in, product));
        ow_add(file, ow_node("Tanh", out, product, out));
    }
    char name[16];
    snprintf(name, sizeof name, "t%d", LAYERS);
    node = ow_node("Transpose", "image", name, "image");
    ow_ints(node, "perm", 4, first);
    ow_add(file, node);
    conv(file, "image", "many", C, 48, 1);
    node = ow_node("DepthToSpace", "y", "many", "y");
    ow_int(node, "blocksize", 4);
    ow_add(file, node);
    ow_output(file, "y", 1, "1,3,h,w");
    return ow_finish(file, size);
}

static enum vgk_status load(const uint8_t *data, size_t size, struct vg_model **m, struct vgk_error *err)
{
    char path[64];
    int fd = memfd_create("weights", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        return VGK_ERR_FILE;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    enum vgk_status s = vg_model_load(path, m, err);
    close(fd); /* what is mapped stays */
    return s;
}

/* The file's large initializers lie in a mapping of it. */
static void expect_mapped(const struct vg_model *m, const char *name)
{
    char line[512];
    int found = 0, large = 0;
    for (int i = 0; i < m->graph->n_values; i++) {
        const struct vg_value *v = &m->graph->values[i];
        size_t bytes;
        if (!v->constant || !vgk_tensor_bytes(&v->tensor, &bytes) || bytes < 64 << 10)
            continue;
        large++;
        FILE *f = fopen("/proc/self/maps", "r");
        while (f && fgets(line, sizeof line, f)) {
            unsigned long from, to;
            if (sscanf(line, "%lx-%lx", &from, &to) == 2 && (uintptr_t)v->tensor.data >= from &&
                (uintptr_t)v->tensor.data < to)
                found += strstr(line, "memfd:weights") != NULL;
        }
        if (f)
            fclose(f);
    }
    expectf(large >= LAYERS - 1 && found == large, "%s: %d of %d large initializers are mapped", name, found, large);
}

static void result(struct vg_model *m, const char *name, bool stream, struct vgk_tensor *in, struct vgk_tensor *out,
                   size_t *weight_bytes, size_t *arena)
{
    struct nets_run r = {.run = NULL};
    struct vgk_error err = {{0}};
    struct nets_how how = {.bands = 1, .stream = stream};
    size_t before = vgk_cpu.bytes_now(cpu);
    enum vgk_status s = nets_open(&r, m, cpu, 64, 48, &how, &err);
    expectf(s == VGK_OK, "%s: %s", name, err.text);
    if (s)
        return;
    if (!in->data) {
        kit_seed(9);
        *in = nets_input(&r);
    }
    *out = nets_output(&r);
    *arena = vgk_cpu.bytes_now(cpu) - before;
    expectf(*arena == vg_program_bytes(r.plan.program), "%s", name);
    expectf(nets_tensors(&r, in, out, &err) == VGK_OK, "%s: %s", name, err.text);
    *weight_bytes = r.plan.program->weights;
    nets_close(&r);
}

static void stored(void)
{
    struct vgk_tensor in = {VGK_NONE};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t size, plain_size, bytes, unused, weight_bytes[3] = {0}, arena[3] = {0};
        uint8_t *files[2] = {tokens(&kinds[k], false, &size, &bytes), tokens(&kinds[k], true, &plain_size, &unused)};
        struct vg_model *m[2] = {NULL, NULL};
        struct vgk_tensor out[3] = {{VGK_NONE}};
        struct vgk_error err = {{0}};
        expectf(load(files[0], size, &m[0], &err) == VGK_OK && load(files[1], plain_size, &m[1], &err) == VGK_OK, "%s: %s",
                kinds[k].name, err.text);
        if (size >= 1 << 20)
            expect_mapped(m[0], kinds[k].name);
        result(m[0], kinds[k].name, false, &in, &out[0], &weight_bytes[0], &arena[0]);
        result(m[1], kinds[k].name, false, &in, &out[1], &weight_bytes[1], &arena[1]);
        result(m[0], kinds[k].name, true, &in, &out[2], &weight_bytes[2], &arena[2]);
        size_t n = (size_t)vgk_tensor_count(&out[0]) * sizeof(float);
        expectf(out[0].data && out[1].data && !memcmp(out[0].data, out[1].data, n), "%s: not what f32 gives", kinds[k].name);
        expectf(out[2].data && !memcmp(out[0].data, out[2].data, n), "%s: streamed weights give something else", kinds[k].name);
        printf("%-32s %8zu bytes stored, %8zu in the arena, %8zu as f32, streamed %zu\n", kinds[k].name, bytes,
               weight_bytes[0], weight_bytes[1], arena[2]);
        expectf((double)weight_bytes[0] < 1.03 * (double)bytes + 60000, "%s: %zu bytes", kinds[k].name, weight_bytes[0]);
        expectf(weight_bytes[2] < 2048, "%s: %zu bytes", kinds[k].name, weight_bytes[2]);
        expectf(arena[2] < arena[0] - bytes / 2, "%s: streamed it takes %zu, not %zu", kinds[k].name, arena[2], arena[0]);
        for (int i = 0; i < 3; i++)
            free(out[i].data);
        for (int i = 0; i < 2; i++) {
            free(files[i]);
            if (m[i])
                vg_model_unref(&m[i]);
        }
    }
    free(in.data);
}

/* Whatever a large file's structure says, it is loaded or refused. */
static void damaged(void)
{
    size_t size, bytes;
    uint8_t *file = tokens(&kinds[1], false, &size, &bytes);
    int loaded = 0, refused = 0;
    size_t heads[4096], n = 0; /* places around what is no weights: names */
    for (size_t i = 0; i + 4 < size && n < 4096; i++)
        if (!memcmp(file + i, "_q", 2) || !memcmp(file + i, "axis", 4) || i < 64)
            heads[n++] = i;
    for (int k = 0; k < 150; k++) {
        size_t at = k % 3 ? heads[(size_t)kit_int(0, (int)n - 1)] + (size_t)kit_int(0, 60) : (size_t)kit_int(0, (int)size - 1);
        at = at < size ? at : size - 1;
        uint8_t was = file[at];
        size_t part = k % 4 == 0 ? at : size;
        struct vg_model *m = NULL;
        struct vgk_error err = {{0}};
        file[at] ^= (uint8_t)(1 << kit_int(0, 7));
        enum vgk_status s = load(file, part, &m, &err);
        expectf(s == VGK_OK ? m != NULL : !m && *err.text, "byte %zu of %zu: %s", at, part, vgk_status_string(s));
        loaded += s == VGK_OK;
        refused += s != VGK_OK;
        if (m)
            vg_model_unref(&m);
        file[at] = was;
    }
    printf("%d loaded, %d refused\n", loaded, refused);
    expect(loaded > 20 && refused > 40);
    free(file);
}

int main(void)
{
    vgk_cpu.open(&(struct vgk_device_options){.threads = 2}, &cpu, NULL);
    run(stored);
    run(damaged);
    expect(vgk_cpu.bytes_now(cpu) == 0);
    vgk_cpu.close(&cpu);
    return kit_done();
}
