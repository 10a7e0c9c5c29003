/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What GStreamer's CUDA library and nvcodec look up when they are loaded, but do not call in the tests.  (No cuda.h:
 * its macros rename some of them.) */
enum { NEVER_SAYS = 801 }; /* not supported */

#include "../never.h"

NEVER(cuGLGetDevices_v2)
NEVER(cuGraphicsGLRegisterBuffer)
NEVER(cuGraphicsGLRegisterImage)
NEVER(cuGraphicsMapResources)
NEVER(cuGraphicsResourceGetMappedPointer_v2)
NEVER(cuGraphicsResourceSetMapFlags_v2)
NEVER(cuGraphicsSubResourceGetMappedArray)
NEVER(cuGraphicsUnmapResources)
NEVER(cuGraphicsUnregisterResource)
NEVER(cuLaunchKernel)
NEVER(cuModuleGetFunction)
NEVER(cuModuleLoadData)
NEVER(cuModuleUnload)
NEVER(cuTexObjectCreate)
NEVER(cuTexObjectDestroy)
