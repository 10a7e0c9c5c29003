/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "modelinfo.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arena.h"

struct entry {
    struct entry *next;
    const char *group, *key, *value;
};

struct vg_modelinfo {
    struct vg_arena *arena;
    struct entry *entries; /* the last of the file first: it wins, and so does the file over the graph's properties */
};

void vg_modelinfo_free(struct vg_modelinfo **info)
{
    if (*info)
        vg_arena_free((*info)->arena);
    *info = NULL;
}

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static void trim(const char **begin, const char **end)
{
    while (*begin < *end && blank(**begin))
        ++*begin;
    while (*end > *begin && blank((*end)[-1]))
        --*end;
}

static const char *copy(struct vg_modelinfo *info, const char *begin, const char *end)
{
    trim(&begin, &end);
    size_t n = (size_t)(end - begin);
    char *s = vg_arena_alloc(info->arena, n + 1);
    if (!s)
        return NULL;
    memcpy(s, begin, n);
    s[n] = '\0';
    return s;
}

static bool add(struct vg_modelinfo *info, const char *group, const char *key, const char *value)
{
    struct entry *e = key && value ? vg_arena_array(info->arena, 1, sizeof *e) : NULL;
    if (!e)
        return false;
    *e = (struct entry){ info->entries, group, key, value };
    info->entries = e;
    return true;
}

static enum vgk_status parse_text(struct vg_modelinfo *info, const char *name, const char *text, size_t size,
                                  struct vgk_error *err)
{
    const char *group = NULL, *end = text + size;
    if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        text += 3;
    for (int number = 1; text < end; number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *a = text, *b = newline ? newline : end, *equals;
        text = newline ? newline + 1 : end;
        trim(&a, &b);
        if (a < b && memchr(a, '\0', (size_t)(b - a)))
            return vgk_fail(err, VGK_ERR_INVALID, "%s:%d: has a zero byte: no text file", name, number);
        if (a == b || *a == '#' || *a == ';')
            continue;
        if (*a == '[') {
            if (b - a < 3 || b[-1] != ']' || memchr(a + 1, '[', (size_t)(b - a - 1)) ||
                memchr(a, ']', (size_t)(b - a - 1)))
                return vgk_fail(err, VGK_ERR_INVALID, "%s:%d: expected [group], found '%.*s'", name, number,
                                (int)(b - a < 80 ? b - a : 80), a);
            if (!(group = copy(info, a + 1, b - 1)))
                return vg_arena_error(info->arena, err);
            continue;
        }
        if (!(equals = memchr(a, '=', (size_t)(b - a))) || equals == a)
            return vgk_fail(err, VGK_ERR_INVALID,
                            "%s:%d: expected key=value, [group] or a comment with #, found '%.*s'", name, number,
                            (int)(b - a < 80 ? b - a : 80), a);
        if (!group)
            return vgk_fail(err, VGK_ERR_INVALID, "%s:%d: '%.*s' is in no group; put a line [vidgen] before it", name,
                            number, (int)(equals - a < 80 ? equals - a : 80), a);
        if (!add(info, group, copy(info, a, equals), copy(info, equals + 1, b)))
            return vg_arena_error(info->arena, err);
    }
    return VGK_OK;
}

enum vgk_status vg_modelinfo_parse(const char *name, const void *data, size_t size, const struct vg_graph *graph,
                                   struct vg_modelinfo **result, struct vgk_error *err)
{
    static const char prefix[] = "vidgen.";
    enum vgk_status status = VGK_OK;
    if (size > VG_MODELINFO_MAX_FILE)
        return vgk_fail(err, VGK_ERR_INVALID, "%s: has %zu bytes, more than VG_MODELINFO_MAX_FILE = %zu", name, size,
                        VG_MODELINFO_MAX_FILE);
    struct vg_arena *arena = vg_arena_new(0);
    struct vg_modelinfo *info = arena ? vg_arena_array(arena, 1, sizeof *info) : NULL;
    if (!info) {
        vg_arena_free(arena);
        return vgk_fail(err, VGK_ERR_NOMEM, "%s: no memory", name);
    }
    info->arena = arena;
    for (int i = 0; graph && i < graph->n_properties && status == VGK_OK; i++) {
        const char *key = graph->properties[i].key, *value = graph->properties[i].value;
        if (!strncmp(key, prefix, sizeof prefix - 1) &&
            !add(info, "vidgen", copy(info, key + sizeof prefix - 1, key + strlen(key)),
                 copy(info, value, value + strlen(value))))
            status = vg_arena_error(info->arena, err);
    }
    if (status == VGK_OK)
        status = parse_text(info, name, data, size, err);
    if (status == VGK_OK)
        *result = info;
    else
        vg_modelinfo_free(&info);
    return status;
}

enum vgk_status vg_modelinfo_load(const char *path, const struct vg_graph *graph, struct vg_modelinfo **info,
                                  struct vgk_error *err)
{
    const void *data = NULL;
    size_t size = 0;
    enum vgk_status status = VGK_OK;
    if (!access(path, F_OK) || errno != ENOENT)
        status = vg_map_file(NULL, path, &data, &size, err);
    if (status == VGK_OK)
        status = vg_modelinfo_parse(path, data ? data : "", size, graph, info, err);
    if (data)
        munmap((void *)data, size);
    return status;
}

const char *vg_modelinfo_text(const struct vg_modelinfo *info, const char *group, const char *key)
{
    for (const struct entry *e = info->entries; e; e = e->next)
        if (!strcmp(e->group, group) && !strcmp(e->key, key))
            return e->value;
    return NULL;
}

int vg_modelinfo_numbers(const struct vg_modelinfo *info, const char *group, const char *key, double *values, int max,
                         struct vgk_error *err)
{
    const char *text = vg_modelinfo_text(info, group, key), *p = text;
    if (!text)
        return 0;
    /* The process may run in a locale whose decimal point is a comma. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    int n = 0;
    bool good = c != (locale_t)0;
    do {
        char *end;
        double v = good ? strtod_l(p, &end, c) : 0;
        good = good && end != p && isfinite(v);
        if (!good)
            break;
        if (n < max)
            values[n] = v;
        n++;
        for (p = end; blank(*p); p++)
            ;
        good = !*p || *p == ';' || *p == ',';
        for (p += *p != 0; blank(*p); p++)
            ;
    } while (good && *p); /* a separator may end the list */
    if (c)
        freelocale(c);
    if (good)
        return n;
    vgk_fail(err, VGK_ERR_INVALID, "[%s] %s=%.200s: expected numbers separated by ';', such as 0;0.5;1", group, key,
             text);
    return -1;
}

bool vg_modelinfo_item(const struct vg_modelinfo *info, const char *group, const char *key, int i, char *text,
                       size_t size)
{
    const char *p = vg_modelinfo_text(info, group, key);
    for (; p && i > 0; i--)
        p = strchr(p, ';') ? strchr(p, ';') + 1 : NULL;
    if (!p || !*p || i < 0)
        return false;
    const char *a = p, *b = strchr(p, ';') ? strchr(p, ';') : p + strlen(p);
    trim(&a, &b);
    snprintf(text, size, "%.*s", (int)(b - a), a);
    return true;
}
