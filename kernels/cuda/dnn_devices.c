/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "dnn_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Capabilities: CUDA programming guide, technical specifications.  Cards: their data sheets. */
static const struct card {
    const char *name, *card;
    int capability, processors, shared_optin, threads, blocks, clock_khz, memory_khz, cache;
    unsigned long long memory;
} cards[] = {
    {"sm_75", "T4", 75, 40, 65536, 1024, 16, 1590000, 5001000, 4194304, 15835660288},
    {"sm_80", "A100", 80, 108, 166912, 2048, 32, 1410000, 1215000, 41943040, 42505273344},
    {"sm_86", "RTX 3090", 86, 82, 101376, 1536, 16, 1695000, 9751000, 6291456, 25438126080},
    {"sm_89", "RTX 4090", 89, 128, 101376, 1536, 24, 2520000, 10501000, 75497472, 25393692672},
    {"sm_90", "H100", 90, 132, 232448, 2048, 32, 1980000, 2619000, 52428800, 84929216512},
    {"sm_100", "B200", 100, 148, 232448, 2048, 32, 1965000, 3996000, 132644864, 191514607616},
    {"sm_120", "RTX 5090", 120, 170, 101376, 1536, 24, 2407000, 14001000, 100663296, 33672593408},
};
enum { CARDS = sizeof cards / sizeof *cards };

const char *vgk_dnn_known_device(int i) { return i >= 0 && i < CARDS ? cards[i].name : NULL; }

enum vgk_status vgk_dnn_describe_device(const char *name, char text[VGK_DNN_DEVICE_TEXT], struct vgk_error *err)
{
    const char *number = strncmp(name, "sm_", 3) ? name : name + 3;
    int capability = 0;
    for (const char *c = number; *c && capability < 1000; c++)
        capability = *c == '.' ? capability : *c >= '0' && *c <= '9' ? capability * 10 + *c - '0' : 1000;
    for (int i = 0; i < CARDS; i++) {
        const struct card *d = &cards[i];
        if (d->capability != capability)
            continue;
        snprintf(text, VGK_DNN_DEVICE_TEXT,
                 "{\"deviceName\":\"%s\",\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
                 "\"regsPerBlock\":65536,\"multiProcessorCount\":%d,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
                 "\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":%d,\"maxRegistersPerSM\":65536,"
                 "\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,\"pciDeviceId\":0,"
                 "\"isTccDriver\":0,\"supportCoopLaunch\":1,\"totalGlobalMem\":%llu,\"smClockRateKHz\":%d,"
                 "\"memClockRateKHz\":%d,\"l2CacheSize\":%d,\"cudaDeviceId\":0,\"deviceVer\":%d,\"driverVer\":13000}",
                 d->card, d->processors, d->shared_optin, capability >= 80 ? 1024 : 0, d->blocks, d->threads,
                 d->memory, d->clock_khz, d->memory_khz, d->cache, capability * 10);
        return VGK_OK;
    }
    char known[96] = "";
    for (int i = 0; i < CARDS; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", cards[i].name);
    return vgk_fail(err, VGK_ERR_INVALID, "device '%s': expected one of %s, or the file of a description", name, known);
}

/* The number behind a key: descriptions are flat, and their keys are cuDNN's own. */
static unsigned long long number_of(const char *json, const char *key)
{
    const char *at = strstr(json, key);
    return at && (at = strchr(at, ':')) ? strtoull(at + 1, NULL, 10) : 0;
}

int vgk_dnn_capability(const char *json) { return (int)number_of(json, "\"deviceVer\"") / 10; }
size_t vgk_dnn_memory(const char *json) { return (size_t)number_of(json, "\"totalGlobalMem\""); }
