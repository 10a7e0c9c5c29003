/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Descriptions of devices that are not there, to plan for them.
 *
 * One card for each capability; what steers cuDNN's choice is the capability, the number of multiprocessors and the
 * sizes of memories.  Clocks and caches are approximate.  vgk_dnn_device_json gives the description of a real one,
 * which may be used in the place of a name. */
#ifndef VGK_DNN_DEVICES_H
#define VGK_DNN_DEVICES_H

#include "../base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VGK_DNN_DEVICE_TEXT 1024

/* The description of "sm_86" ("86", "8.6") as JSON into text; INVALID, with the known ones, for others. */
enum vgk_status vgk_dnn_describe_device(const char *name, char text[VGK_DNN_DEVICE_TEXT], struct vgk_error *);
/* The i-th name ("sm_75"), NULL behind the last. */
const char *vgk_dnn_known_device(int i);
/* 86 of a description; 0 when it has none. */
int vgk_dnn_capability(const char *json);
/* Bytes of memory of a description; 0 when it has none. */
size_t vgk_dnn_memory(const char *json);

#ifdef __cplusplus
}
#endif

#endif
