/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What cuDNN and NVRTC look up, but must not call where there is no device.  They have to exist: cuDNN leaves out the
 * engines of which it misses one, and NVRTC calls cuGetExportTable without a look.  (No cuda.h: its macros rename some
 * of them.) */
enum { NEVER_SAYS = 34 }; /* stub library */

#include "../never.h"

NEVER(cuCtxGetCurrent)
NEVER(cuCtxGetLimit)
NEVER(cuCtxPopCurrent)
NEVER(cuCtxPushCurrent)
NEVER(cuDeviceGet)
NEVER(cuGetExportTable)
NEVER(cuLaunchCooperativeKernel)
NEVER(cuLaunchKernel)
NEVER(cuLaunchKernelEx)
NEVER(cuLibraryLoadFromFile)
NEVER(cuLinkAddData)
NEVER(cuLinkComplete)
NEVER(cuLinkCreate)
NEVER(cuLinkDestroy)
NEVER(cuOccupancyMaxPotentialClusterSize)
NEVER(cuStreamGetCtx)
