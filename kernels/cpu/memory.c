/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much memory the system could still give this process. */
#include "cpu.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The first number of a file, or of the line that begins with `key`; false when there is none ("max"). */
static bool number(const char *path, const char *key, unsigned long long *value)
{
    char line[256];
    bool found = false;
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    while (!found && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)))
            found = sscanf(line + strlen(key), "%llu", value) == 1;
    fclose(f);
    return found;
}

static void limit(size_t *bytes, const char *folder, const char *most, const char *now)
{
    char path[PATH_MAX];
    unsigned long long max, used;
    snprintf(path, sizeof path, "%s/%s", folder, most);
    if (!number(path, "", &max))
        return;
    snprintf(path, sizeof path, "%s/%s", folder, now);
    if (!number(path, "", &used))
        return;
    size_t left = max > used ? (size_t)(max - used) : 0;
    if (left < *bytes)
        *bytes = left;
}

size_t vgk_cpu_bytes_free(const struct vgk_device *dev)
{
    unsigned long long kib;
    char line[PATH_MAX], folder[PATH_MAX + 32];
    if (!number("/proc/meminfo", "MemAvailable:", &kib))
        return 0;
    size_t bytes = (size_t)kib * 1024;
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "0::", 3)) { /* version 2; a container sees its own group as the root */
            snprintf(folder, sizeof folder, "/sys/fs/cgroup%s", line + 3);
            limit(&bytes, folder, "memory.max", "memory.current");
        }
    }
    if (f)
        fclose(f);
    limit(&bytes, "/sys/fs/cgroup", "memory.max", "memory.current");
    limit(&bytes, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes");
    return bytes;
}
