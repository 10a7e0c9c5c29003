/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dnn_internal.h"

enum { OLDEST = 90800 }; /* the first that takes a description in the place of a device */

static const struct {
    const char *name;
    size_t at;
} symbols[] = {
#define SYMBOL(name) {"cudnn" #name, offsetof(struct vgk_dnn, name)}
    SYMBOL(GetVersion), SYMBOL(GetErrorString), SYMBOL(GetLastErrorString), SYMBOL(Create), SYMBOL(Destroy),
    SYMBOL(SetStream), SYMBOL(BackendCreateDescriptor), SYMBOL(BackendDestroyDescriptor), SYMBOL(BackendFinalize),
    SYMBOL(BackendSetAttribute), SYMBOL(BackendGetAttribute), SYMBOL(BackendExecute),
#undef SYMBOL
};

enum vgk_status vgk_dnn_load(struct vgk_dnn *dnn, struct vgk_error *err)
{
    dnn->library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (!dnn->library)
        return vgk_fail(err, VGK_ERR_DEVICE, "cuDNN 9 cannot be loaded: %s; install it, or put its folder in "
                        "LD_LIBRARY_PATH", dlerror());
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(dnn->library, symbols[i].name);
        if (!address)
            return vgk_fail(err, VGK_ERR_DEVICE, "libcudnn.so.9 has no %s: expected cuDNN 9.8 or later",
                            symbols[i].name);
        memcpy((char *)dnn + symbols[i].at, &address, sizeof address);
    }
    dnn->version = dnn->GetVersion();
    if (dnn->version < OLDEST)
        return vgk_fail(err, VGK_ERR_DEVICE, "expected cuDNN 9.8 or later, found %zu.%zu.%zu", dnn->version / 10000,
                        dnn->version / 100 % 100, dnn->version % 100);
    return VGK_OK;
}

enum vgk_status vgk_dnn_fail(const struct vgk_dnn *dnn, cudnnStatus_t s, const char *call, struct vgk_error *err)
{
    int category = CUDNN_STATUS_CATEGORY((int)s);
    bool declined = category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM;
    char last[512] = "";
    dnn->GetLastErrorString(last, sizeof last);
    last[strcspn(last, "\n")] = 0; /* more lines tell of earlier calls */
    return vgk_fail(err, declined ? VGK_ERR_UNSUPPORTED : VGK_ERR_DEVICE, "cuDNN %zu.%zu.%zu: %s: %s%s%s",
                    dnn->version / 10000, dnn->version / 100 % 100, dnn->version % 100, call, dnn->GetErrorString(s),
                    *last ? ": " : "", last);
}

/* Properties from a description, or of a real device to be read. */
static enum vgk_status properties(struct vgk_dnn *dnn, const char *json, cudnnBackendDescriptor_t *d,
                                  struct vgk_error *err)
{
    int32_t id = dnn->device_id;
    const char *call = "create(device properties)";
    cudnnStatus_t s = dnn->BackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, d);
    if (!s && json)
        s = dnn->BackendSetAttribute(*d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                     (int64_t)strlen(json), json);
    else if (!s)
        s = dnn->BackendSetAttribute(*d, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &id);
    if (!s) {
        call = json ? "finalize(device properties of the description)" : "finalize(device properties)";
        s = dnn->BackendFinalize(*d);
    }
    return s ? vgk_dnn_fail(dnn, s, call, err) : VGK_OK;
}

/* Without a driver's library cuDNN leaves out the engines that are compiled at run time, and plans would be others than
 * where they are run.  The toolkit's stub does: nothing is executed. */
static enum vgk_status need_driver(struct vgk_error *err)
{
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) ||
        dlopen(VIDGEN_CUDA_STUBS "/libcuda.so", RTLD_NOW | RTLD_LOCAL))
        return VGK_OK;
    return vgk_fail(err, VGK_ERR_DEVICE, "planning for a GPU that is not there needs libcuda.so.1 of a driver or the "
                    "CUDA toolkit's stub of it (" VIDGEN_CUDA_STUBS "/libcuda.so)");
}

enum vgk_status vgk_dnn_open(const char *device_json, int device, struct vgk_dnn **out, struct vgk_error *err)
{
    struct vgk_dnn *dnn = calloc(1, sizeof *dnn);
    *out = NULL;
    if (!dnn)
        return vgk_fail(err, VGK_ERR_NOMEM, "no memory for cuDNN");
    dnn->device_id = device;
    enum vgk_status status = device_json ? need_driver(err) : VGK_OK;
    if (!status)
        status = vgk_dnn_load(dnn, err);
    if (!status && device_json) {
        if ((status = properties(dnn, device_json, &dnn->device, err)))
            status = VGK_ERR_INVALID;
    } else if (!status) {
        cudnnStatus_t s = dnn->Create(&dnn->handle);
        if (s) {
            vgk_dnn_fail(dnn, s, "cudnnCreate", err);
            status = VGK_ERR_DEVICE;
        }
    }
    if (status)
        vgk_dnn_close(&dnn);
    *out = dnn;
    return status;
}

void vgk_dnn_close(struct vgk_dnn **dnn)
{
    struct vgk_dnn *d = *dnn;
    if (!d)
        return;
    vgk_dnn_free_plans(d);
    if (d->device)
        d->BackendDestroyDescriptor(d->device);
    if (d->handle)
        d->Destroy(d->handle);
    /* The library stays: its sub-libraries do not come back once they were unloaded. */
    free(d);
    *dnn = NULL;
}

enum vgk_status vgk_dnn_device_json(struct vgk_dnn *dnn, char **json, struct vgk_error *err)
{
    cudnnBackendDescriptor_t own = NULL, d = dnn->device;
    int64_t n = 0;
    *json = NULL;
    enum vgk_status status = d ? VGK_OK : properties(dnn, NULL, &own, err);
    if (!d)
        d = own;
    cudnnStatus_t s = CUDNN_STATUS_SUCCESS;
    if (!status)
        s = dnn->BackendGetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &n, NULL);
    if (!status && !s && !(*json = calloc(1, (size_t)n + 1)))
        status = vgk_fail(err, VGK_ERR_NOMEM, "no memory for a description");
    if (!status && !s)
        s = dnn->BackendGetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, n, &n, *json);
    if (!status && s) {
        status = vgk_dnn_fail(dnn, s, "get(device properties)", err);
        free(*json);
        *json = NULL;
    }
    if (own)
        dnn->BackendDestroyDescriptor(own);
    return status;
}
