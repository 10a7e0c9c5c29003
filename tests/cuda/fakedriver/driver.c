/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <cuda.h>
#include <string.h>

#include "fakedriver.h"

enum { EM_CUDA = 190 };

static struct fakedriver state;
static int handle; /* of all libraries and kernels: its address */

struct fakedriver fakedriver_state(void) { return state; }

CUresult cuInit(unsigned flags) { return CUDA_SUCCESS; }

CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}

/* ELF, 64 bits, for CUDA; the capability is in the flags, where the ABI's version says. */
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit, void **jit_values, unsigned n_jit,
                           CUlibraryOption *options, void **values, unsigned n)
{
    const unsigned char *image = code;
    unsigned flags;
    memcpy(&flags, image + 48, sizeof flags);
    if (memcmp(image, "\177ELF\2", 5) || (image[18] | image[19] << 8) != EM_CUDA)
        return CUDA_ERROR_INVALID_IMAGE;
    state.loads++;
    state.capability = (int)((image[8] >= 8 ? flags >> 8 : flags) & 0xff);
    *library = (CUlibrary)&handle;
    return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library) { return CUDA_SUCCESS; }

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    *kernel = (CUkernel)library;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
    return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
    *value = attribute == CU_FUNC_ATTRIBUTE_NUM_REGS                ? 64
             : attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
                                                                    : 0;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) { return CUDA_SUCCESS; }

CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = "an error of the driver that is none";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
    *text = "FAKE_DRIVER";
    return CUDA_SUCCESS;
}
