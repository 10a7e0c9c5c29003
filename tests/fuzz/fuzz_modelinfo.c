/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "model/modelinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const keys[] = { "range", "name", "labels", "mean" };
    struct vg_modelinfo *info = NULL;
    struct vgk_error err = { { 0 } };
    if (vg_modelinfo_parse("fuzz", data, size, NULL, &info, &err) != VGK_OK) {
        if (info || !err.text[0])
            abort();
        return 0;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        double values[4];
        char item[5];
        if (vg_modelinfo_numbers(info, "vidgen", keys[i], values, 4, &err) > 0 &&
            !vg_modelinfo_text(info, "vidgen", keys[i]))
            abort();
        for (int j = 0; vg_modelinfo_item(info, "vidgen", keys[i], j, item, sizeof item); j++)
            ;
    }
    vg_modelinfo_free(&info);
    return 0;
}
