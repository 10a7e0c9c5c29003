/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What does not fit the budget lies in a file without a name in TMPDIR, or /var/tmp, and is mapped: the system keeps in
 * memory of it what it likes, and takes that back when memory is short. */
#include "cpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *vgk_cpu_host_alloc(struct vgk_device *dev, size_t bytes)
{
    const char *folder = getenv("TMPDIR");
    folder = folder && *folder ? folder : "/var/tmp";
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) { /* a file system that cannot do that */
        char path[4096];
        if (snprintf(path, sizeof path, "%s/vidgen-XXXXXX", folder) >= (int)sizeof path || (fd = mkostemp(path, O_CLOEXEC)) < 0)
            return NULL;
        unlink(path);
    }
    /* The room is taken now: a full disk must not show when it is written to, which would end the process. */
    void *p = posix_fallocate(fd, 0, (off_t)bytes) ? MAP_FAILED
                                                   : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}

void vgk_cpu_host_free(struct vgk_device *dev, void *p, size_t bytes)
{
    if (p)
        munmap(p, bytes);
}

enum vgk_status vgk_cpu_move(struct vgk_device *dev, void *to, const void *from, size_t bytes, struct vgk_error *err)
{
    memcpy(to, from, bytes);
    return VGK_OK;
}
