/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A libnvcuvid.so.1 that decodes nothing: nvcodec registers cudaupload and cudadownload only where there is one. */
enum { NEVER_SAYS = 801 }; /* not supported */

#include "../never.h"

NEVER(cuvidCreateDecoder)
NEVER(cuvidCreateVideoParser)
NEVER(cuvidCtxLock)
NEVER(cuvidCtxLockCreate)
NEVER(cuvidCtxLockDestroy)
NEVER(cuvidCtxUnlock)
NEVER(cuvidDecodePicture)
NEVER(cuvidDestroyDecoder)
NEVER(cuvidDestroyVideoParser)
NEVER(cuvidGetDecoderCaps)
NEVER(cuvidMapVideoFrame64)
NEVER(cuvidParseVideoData)
NEVER(cuvidUnmapVideoFrame64)
