/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bf16.h"
#include "cpu.h"

enum { AMX_LEAST = 16 }; /* channels: fewer would be mostly padding */

const struct vgk_bf16 *vgk_cpu_bf16(const struct vgk_device *dev, int64_t channels)
{
#ifdef VGK_HAVE_AMX
    if (dev->isa >= VGK_ISA_AMX && channels >= AMX_LEAST)
        return &vgk_bf16_amx;
#endif
#ifdef VGK_HAVE_BF16
    if (dev->isa >= VGK_ISA_AVX512_BF16)
        return &vgk_bf16_avx512;
#endif
    return NULL;
}

enum vgk_status vgk_cpu_bf16_check(const struct vgk_device *dev, struct vgk_error *err)
{
    if (vgk_cpu_bf16(dev, 1))
        return VGK_OK;
    return vgk_fail(err, VGK_ERR_UNSUPPORTED, "precision=bf16 needs a CPU (and a build, and VIDGEN_CPU) with AVX512-BF16 or "
                    "AMX-BF16, this is %s: set precision to fp32 or auto", dev->description);
}
