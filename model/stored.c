/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stored.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "modelinfo.h"

#define MOST_SETS 1024
#define MOST_PARTS 65536

/* FNV-1a, eight bytes at a time: it tells a model from another one, no more. */
uint64_t vg_stored_fingerprint(const struct vg_graph *g)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < g->n_values; i++) {
        size_t n, k = 0;
        const uint8_t *data = g->values[i].tensor.data;
        if (!g->values[i].constant || !vgk_tensor_bytes(&g->values[i].tensor, &n) || !data)
            continue;
        for (uint64_t word; k + 8 <= n; k += 8) {
            memcpy(&word, data + k, 8);
            h = (h ^ word) * 0x100000001b3u;
        }
        for (; k < n; k++)
            h = (h ^ data[k]) * 0x100000001b3u;
    }
    return h;
}

bool vg_stored_make(struct vg_stored *s, int n_sets, int n_parts, int n_parameters, const int64_t *counts)
{
    *s = (struct vg_stored){.n_sets = n_sets, .n_parts = n_parts, .n_parameters = n_parameters};
    if (!(s->counts = calloc((size_t)n_parts + 1, sizeof *s->counts)))
        return false;
    for (int i = 0; i < n_parts; i++) {
        s->counts[i] = counts[i];
        s->total += counts[i];
    }
    s->parameters = calloc((size_t)n_sets * (size_t)n_parameters + 1, sizeof *s->parameters);
    s->values = calloc((size_t)n_sets * (size_t)s->total + 1, sizeof *s->values);
    return s->parameters && s->values;
}

void vg_stored_clear(struct vg_stored *s)
{
    free(s->counts);
    free(s->parameters);
    free(s->values);
    *s = (struct vg_stored){0};
}

/* --- the file --- */

static enum vgk_status read_set(const struct vg_modelinfo *info, const char *path, struct vg_stored *s, int set,
                                double *room, struct vgk_error *err)
{
    char group[32], key[32];
    float *to = s->values + set * s->total;
    snprintf(group, sizeof group, "set %d", set);
    int n = vg_modelinfo_numbers(info, group, "parameters", s->parameters + (int64_t)set * s->n_parameters,
                                 s->n_parameters, err);
    if (n >= 0 && n != s->n_parameters)
        return vgk_fail(err, VGK_ERR_INVALID, "%s: [%s] has %d parameters, the model %d", path, group, n,
                        s->n_parameters);
    for (int i = 0; i < s->n_parts && n >= 0; i++) {
        snprintf(key, sizeof key, "%d", i);
        n = vg_modelinfo_numbers(info, group, key, room, (int)s->counts[i], err);
        if (n >= 0 && n != s->counts[i])
            return vgk_fail(err, VGK_ERR_INVALID, "%s: [%s] %s has %d values, expected %" PRId64, path, group, key, n,
                            s->counts[i]);
        for (int k = 0; k < n; k++)
            *to++ = (float)room[k];
    }
    return n < 0 ? VGK_ERR_INVALID : VGK_OK;
}

static enum vgk_status read_all(const struct vg_modelinfo *info, const char *path, const struct vg_graph *g,
                                int n_parameters, struct vg_stored *s, struct vgk_error *err)
{
    const char *model = vg_modelinfo_text(info, "norms", "model");
    char own[24];
    double sets = 0;
    snprintf(own, sizeof own, "%016" PRIx64, vg_stored_fingerprint(g));
    if (!model || strcmp(model, own))
        return vgk_fail(err, VGK_ERR_INVALID, "%s was measured on another model (its constants are %s, this one's are "
                        "%s): make it anew with `vidgen freeze`, or remove it", path, model ? model : "not given", own);
    int n = vg_modelinfo_numbers(info, "norms", "sets", &sets, 1, err);
    int parts = n < 0 ? -1 : vg_modelinfo_numbers(info, "norms", "counts", NULL, 0, err);
    if (n < 0 || parts < 0)
        return VGK_ERR_INVALID;
    if (n != 1 || sets < 1 || sets > MOST_SETS || sets != (int)sets || parts < 1 || parts > MOST_PARTS)
        return vgk_fail(err, VGK_ERR_INVALID, "%s: expected sets=1 to %d and counts of 1 to %d parts in [norms]", path,
                        MOST_SETS, MOST_PARTS);
    double *counts = malloc((size_t)parts * sizeof *counts);
    int64_t *whole = malloc((size_t)parts * sizeof *whole), most = 0, total = 0;
    enum vgk_status status = counts && whole ? VGK_OK : VGK_ERR_NOMEM;
    if (!status)
        vg_modelinfo_numbers(info, "norms", "counts", counts, parts, err);
    for (int i = 0; i < parts && !status; i++) {
        if (!(counts[i] >= 1 && counts[i] <= 1 << 20))
            status = vgk_fail(err, VGK_ERR_INVALID, "%s: counts has %g; expected 1 to %d", path, counts[i], 1 << 20);
        whole[i] = status ? 0 : (int64_t)counts[i];
        most = whole[i] > most ? whole[i] : most;
        total += whole[i];
    }
    /* Each value is a character or two of the file at least. */
    if (!status && total * (int64_t)sets > (int64_t)VG_MODELINFO_MAX_FILE)
        status = vgk_fail(err, VGK_ERR_INVALID, "%s: %g sets of %" PRId64 " values do not fit a file of %zu bytes", path,
                          sets, total, VG_MODELINFO_MAX_FILE);
    double *room = status ? NULL : malloc((size_t)most * sizeof *room);
    if (!status && (!room || !vg_stored_make(s, (int)sets, parts, n_parameters, whole)))
        status = vgk_fail(err, VGK_ERR_NOMEM, "%s: no memory", path);
    for (int i = 0; i < (int)sets && !status; i++)
        status = read_set(info, path, s, i, room, err);
    free(counts);
    free(whole);
    free(room);
    if (status)
        vg_stored_clear(s);
    return status;
}

enum vgk_status vg_stored_load(const char *path, const struct vg_graph *g, int n_parameters, struct vg_stored *s,
                               struct vgk_error *err)
{
    struct vg_modelinfo *info = NULL;
    *s = (struct vg_stored){0};
    if (access(path, F_OK) && errno == ENOENT)
        return VGK_OK;
    enum vgk_status status = vg_modelinfo_load(path, NULL, &info, err);
    if (!status)
        status = read_all(info, path, g, n_parameters, s, err);
    vg_modelinfo_free(&info);
    return status;
}

static void write_list(FILE *f, const char *key, const float *v, int64_t n)
{
    fprintf(f, "%s=", key);
    for (int64_t i = 0; i < n; i++)
        fprintf(f, "%s%.9g", i ? ";" : "", (double)v[i]);
    fputc('\n', f);
}

enum vgk_status vg_stored_write(const char *path, const struct vg_graph *g, const struct vg_stored *s,
                                struct vgk_error *err)
{
    char part[4096];
    snprintf(part, sizeof part, "%s.part", path);
    FILE *f = fopen(part, "w");
    if (!f)
        return vgk_fail(err, VGK_ERR_FILE, "%s cannot be written: %s", part, strerror(errno));
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = c ? uselocale(c) : (locale_t)0;
    fprintf(f, "# Statistics of norms over the whole frame, measured by vidgen freeze\n[norms]\nmodel=%016" PRIx64
            "\nsets=%d\ncounts=", vg_stored_fingerprint(g), s->n_sets);
    for (int i = 0; i < s->n_parts; i++)
        fprintf(f, "%s%" PRId64, i ? ";" : "", s->counts[i]);
    fputc('\n', f);
    for (int k = 0; k < s->n_sets; k++) {
        const float *v = s->values + k * s->total;
        fprintf(f, "[set %d]\n", k);
        for (int i = 0; i < s->n_parameters; i++)
            fprintf(f, "%s%.9g%s", i ? "" : "parameters=", s->parameters[(int64_t)k * s->n_parameters + i],
                    i + 1 < s->n_parameters ? ";" : "\n");
        for (int i = 0; i < s->n_parts; v += s->counts[i++]) {
            char key[16];
            snprintf(key, sizeof key, "%d", i);
            write_list(f, key, v, s->counts[i]);
        }
    }
    if (c) {
        uselocale(before);
        freelocale(c);
    }
    long size = ftell(f);
    bool failed = ferror(f) != 0;
    failed = fclose(f) != 0 || failed;
    enum vgk_status status = VGK_OK;
    if (failed || size < 0)
        status = vgk_fail(err, VGK_ERR_FILE, "%s cannot be written: %s", part, strerror(errno));
    else if ((size_t)size > VG_MODELINFO_MAX_FILE)
        status = vgk_fail(err, VGK_ERR_INVALID, "%s would have %ld bytes, more than the %zu that are read", path, size,
                     VG_MODELINFO_MAX_FILE);
    else if (rename(part, path))
        status = vgk_fail(err, VGK_ERR_FILE, "%s cannot be written: %s", path, strerror(errno));
    if (status)
        unlink(part);
    return status;
}

/* --- use --- */

bool vg_stored_matches(const struct vg_stored *s, const struct vg_net *net)
{
    bool same = s->n_parts == net->n_memories;
    for (int i = 0; i < s->n_parts && same; i++)
        same = s->counts[i] == net->memories[i].count;
    return same;
}

/* Weighs a set against the others where parameters leave that open (a strength of 0 says nothing by itself). */
#define TOGETHER 0.01

static double dot(const double *a, const double *b, int n)
{
    double sum = TOGETHER;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Least squares with no negative weight, one weight at a time: a handful of sets is near, and the others are at 0 after
 * the first sweep. */
void vg_stored_mix(const struct vg_stored *s, const float *parameters, float *values)
{
    int n = s->n_parameters;
    const double *p = s->parameters;
    double weight[MOST_SETS], sum = 0;
    for (int k = 0; k < s->n_sets; k++)
        weight[k] = 0;
    for (int sweep = 0; sweep < 100; sweep++) {
        double moved = 0;
        for (int k = 0; k < s->n_sets; k++) {
            double off = TOGETHER;
            for (int i = 0; i < n; i++)
                off += (double)parameters[i] * p[(int64_t)k * n + i];
            for (int j = 0; j < s->n_sets; j++)
                off -= weight[j] > 0 ? weight[j] * dot(p + (int64_t)k * n, p + (int64_t)j * n, n) : 0;
            double to = weight[k] + off / dot(p + (int64_t)k * n, p + (int64_t)k * n, n);
            to = to > 0 ? to : 0;
            moved += to > weight[k] ? to - weight[k] : weight[k] - to;
            weight[k] = to;
        }
        if (moved < 1e-9)
            break;
    }
    for (int k = 0; k < s->n_sets; k++) { /* a set itself, where there is one */
        bool same = true;
        for (int i = 0; i < n && same; i++)
            same = (float)p[(int64_t)k * n + i] == parameters[i];
        for (int j = 0; j < s->n_sets && same; j++)
            weight[j] = j == k;
        if (same)
            break;
    }
    for (int k = 0; k < s->n_sets; k++)
        sum += weight[k];
    for (int64_t i = 0; i < s->total; i++) {
        double v = 0;
        for (int k = 0; k < s->n_sets; k++)
            v += weight[k] > 0 ? weight[k] * (double)s->values[k * s->total + i] : 0;
        values[i] = (float)(sum > 0 ? v / sum : (double)s->values[i]);
    }
}
