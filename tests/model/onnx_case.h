/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Models with inputs and expected outputs, laid out as ONNX's own tests: NAME/model.onnx (or NAME.onnx) and
 * NAME/test_data_set_N/{input,output}_N.pb.  Those that Python scripts make, need a Python with onnx, numpy and
 * onnxruntime: the environment's VIDGEN_PYTHON, or .venv/bin/python3 in the source tree (tests/run.sh sees to it). */
#ifndef ONNX_CASE_H
#define ONNX_CASE_H

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kit.h"
#include "model/analyse.h"
#include "model/fuse.h"
#include "model/onnx.h"
#include "model/onnx_data.h"
#include "model/plan_internal.h"
#include "model/run.h"

#define MAX_IO 64

/* Runs SOURCE/tests/fixtures/SCRIPT with the folder BUILD/NAME, whose path goes to `path`; false without a Python. */
static bool make_cases(const char *source, const char *build, const char *script, const char *name, char *path,
                       size_t size)
{
    char command[4096], python[1024];
    const char *given = getenv("VIDGEN_PYTHON");
    snprintf(python, sizeof python, "%s/.venv/bin/python3", source);
    if (given && *given)
        snprintf(python, sizeof python, "%s", given);
    snprintf(path, size, "%s/%s", build, name);
    snprintf(command, sizeof command, "'%s' -c 'import onnx, onnxruntime, numpy' 2>/dev/null", python);
    if (access(python, X_OK) || system(command)) {
        printf("%s has no onnx, onnxruntime and numpy: %s not made\n", python, name);
        return false;
    }
    snprintf(command, sizeof command, "'%s' '%s/tests/fixtures/%s' '%s' >'%s.log' 2>&1", python, source, script, path,
             path);
    int status = system(command);
    expectf(status == 0, "%s: status %d, see %s.log", command, status, path);
    return status == 0;
}

/* declared: the type that the model gives it; older files keep bfloat16 as the bits in uint16. */
static struct vgk_tensor read_tensor(struct vg_arena *arena, const char *path, enum vgk_type declared)
{
    struct vgk_tensor t = {VGK_NONE};
    const void *data;
    size_t size;
    struct vgk_error err;
    struct vg_onnx_source source = {.arena = arena};
    if (vg_map_file(arena, path, &data, &size, &err))
        return t;
    Vg__Tensor *p = vg__tensor__unpack(NULL, size, data);
    if (p && vg_onnx_tensor(&source, p, path, &t, &err) == VGK_OK) {
        size_t bytes; /* the message goes: keep the data */
        vgk_tensor_bytes(&t, &bytes);
        void *copy = vg_arena_aligned(arena, bytes + 1);
        memcpy(copy, t.data, bytes);
        t.data = copy;
        if (t.type == VGK_U16 && declared == VGK_BF16)
            t.type = declared;
    } else {
        t.type = VGK_NONE;
    }
    if (p)
        vg__tensor__free_unpacked(p, NULL);
    return t;
}

static double element(const struct vgk_tensor *t, int64_t i)
{
    double x = 0;
    struct vgk_tensor one = {.type = t->type, .data = (char *)t->data + i * (vgk_type_bits(t->type) / 8)};
    struct vgk_tensor out = {.type = VGK_F64, .data = &x};
    struct vgk_op op = {.kind = VGK_OP_COPY, .n_in = 1, .n_out = 1, .in = &one, .out = &out};
    static struct vgk_device *cpu;
    if (!cpu)
        vgk_cpu.open(&(struct vgk_device_options){.threads = 1}, &cpu, NULL);
    (vgk_cpu.run)(cpu, &op, NULL, NULL, NULL); /* `run` is a macro of the kit */
    return x;
}

/* |a - b| <= relative * |b| + absolute, everywhere; else *why. */
static bool equal(const struct vgk_tensor *a, const struct vgk_tensor *b, double relative, double absolute, char *why,
                  size_t size)
{
    char ta[128], tb[128];
    if (a->type != b->type || a->rank != b->rank || memcmp(a->dim, b->dim, a->rank * sizeof *a->dim)) {
        snprintf(why, size, "%s, expected %s", vgk_tensor_describe(a, ta, sizeof ta),
                 vgk_tensor_describe(b, tb, sizeof tb));
        return false;
    }
    for (int64_t i = 0; i < vgk_tensor_count(a); i++) {
        double x = element(a, i), y = element(b, i);
        if (!(fabs(x - y) <= relative * fabs(y) + absolute) && !(isnan(x) && isnan(y)) && x != y) {
            snprintf(why, size, "element %lld is %g, expected %g", (long long)i, x, y);
            return false;
        }
    }
    return true;
}

#endif
