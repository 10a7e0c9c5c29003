/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What GStreamer's CUDA library and nvcodec look up when they are loaded, but do not call in the tests.  (No cuda.h:
 * its macros rename some of them.) */
enum { NOT_SUPPORTED = 801 };

#define NEVER(name) \
    int name(void); \
    int name(void) { return NOT_SUPPORTED; }

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
