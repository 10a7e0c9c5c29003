/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cuda_load.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODULE "vidgen-cuda.so"

static const struct vgk_backend *open_module(const char *path, struct vgk_error *err)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        vgk_fail(err, VGK_ERR_FILE, "%s", dlerror());
        return NULL;
    }
    const char *version = dlsym(module, "vgk_cuda_version");
    const struct vgk_backend *backend = dlsym(module, "vgk_cuda");
    if (version && backend && !strcmp(version, VERSION))
        return backend;
    vgk_fail(err, VGK_ERR_FILE, "%s is of version %s, expected %s: install both from one build", path,
             version ? version : "unknown", VERSION);
    dlclose(module);
    return NULL;
}

const struct vgk_backend *vgk_cuda_load(struct vgk_error *err)
{
    const char *list = getenv("VIDGEN_MODULE_PATH");
    char path[PATH_MAX];
    if (!list || !*list)
        list = VIDGEN_MODULE_DIR;
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)n, at, MODULE);
        if (n && !access(path, R_OK))
            return open_module(path, err);
        at += n + (at[n] == ':');
    }
    vgk_fail(err, VGK_ERR_FILE, "no %s in %s: install vidgen's CUDA module, name its folder in VIDGEN_MODULE_PATH, or set "
             "device to cpu", MODULE, list);
    return NULL;
}
