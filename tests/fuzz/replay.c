/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a fuzz target over every file of a folder (the argument): what was found once stays found. */
#include <dirent.h>

#include "kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    DIR *d = opendir(argc > 1 ? argv[1] : ".");
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
        FILE *f = *e->d_name == '.' ? NULL : fopen(path, "rb");
        if (!f)
            continue;
        fseek(f, 0, SEEK_END);
        size_t size = (size_t)ftell(f);
        rewind(f);
        uint8_t *data = malloc(size + !size);
        expect(fread(data, 1, size, f) == size);
        fclose(f);
        printf("%s\n", e->d_name);
        fflush(stdout); /* the last name is that of the file that ended the process */
        LLVMFuzzerTestOneInput(data, size);
        free(data);
        n++;
    }
    if (d)
        closedir(d);
    printf("%d files\n", n);
    expect(n >= 10);
    return kit_done();
}
