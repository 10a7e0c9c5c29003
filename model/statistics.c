/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool vg_statistics_make(const struct vg_net *net, struct vg_statistics *s)
{
    *s = (struct vg_statistics){.n = net->n_memories};
    if (!(s->parts = calloc((size_t)s->n + 1, sizeof *s->parts)))
        return false;
    for (int i = 0; i < s->n; i++) {
        s->parts[i] = (struct vg_statistics_part){net->memories[i].channels, net->memories[i].count, s->total};
        s->total += net->memories[i].count;
    }
    s->now = calloc((size_t)s->total + 1, sizeof *s->now);
    s->kept = calloc((size_t)s->total + 1, sizeof *s->kept);
    s->sums = calloc((size_t)s->total + 1, sizeof *s->sums);
    return s->now && s->kept && s->sums;
}

void vg_statistics_free(struct vg_statistics *s)
{
    free(s->parts);
    free(s->now);
    free(s->kept);
    free(s->sums);
    *s = (struct vg_statistics){0};
}

/* 0 mean, 1 1 / deviation, 2 nothing, of a norm; -1: of a reduction. */
static int kind(const struct vg_statistics_part *p, int64_t i)
{
    return p->channels ? (int)(i / p->channels % 3) : -1;
}

static double drift_of(const struct vg_statistics_part *p, const float *now, const float *kept)
{
    int64_t c = p->channels;
    double sum = 0, all = 0;
    if (!c) {
        for (int64_t i = 0; i < p->count; i++) {
            sum += fabs((double)now[i] - (double)kept[i]);
            all += fabs((double)kept[i]);
        }
        return sum == 0 ? 0 : sum / all;
    }
    for (int64_t i = 0; i < p->count; i++)
        if (kind(p, i) == 0)
            sum += fabs(log(fabs((double)now[i + c] / (double)kept[i + c]))) +
                   fabs((double)now[i] - (double)kept[i]) * fabs((double)kept[i + c]);
    return sum / (double)(p->count / 3);
}

double vg_statistics_drift(const struct vg_statistics *s)
{
    double worst = 0;
    for (int i = 0; i < s->n; i++) {
        double d = drift_of(&s->parts[i], s->now + s->parts[i].at, s->kept + s->parts[i].at);
        worst = d > worst || d != d ? d : worst;
        if (d != d)
            break;
    }
    return worst;
}

bool vg_statistics_follow(struct vg_statistics *s, float weight)
{
    bool moves = false;
    for (int64_t i = 0; i < s->total; i++) {
        float next = weight >= 1 ? s->now[i] : s->kept[i] + weight * (s->now[i] - s->kept[i]);
        moves = moves || memcmp(&next, &s->kept[i], sizeof next);
        s->kept[i] = next;
    }
    return moves;
}

/* 1 / deviation -> variance, and back */
static double variance(double inverse) { return 1 / (inverse * inverse); }

void vg_statistics_add(struct vg_statistics *s)
{
    for (int i = 0; i < s->n; i++)
        for (int64_t k = 0, at = s->parts[i].at; k < s->parts[i].count; k++, at++)
            s->sums[at] += kind(&s->parts[i], k) == 1 ? variance((double)s->now[at]) : (double)s->now[at];
    s->frames++;
}

void vg_statistics_mean(struct vg_statistics *s)
{
    for (int i = 0; i < s->n; i++)
        for (int64_t k = 0, at = s->parts[i].at; k < s->parts[i].count; k++, at++) {
            double mean = s->sums[at] / s->frames;
            s->kept[at] = (float)(kind(&s->parts[i], k) == 1 ? 1 / sqrt(mean) : mean);
        }
}

void vg_statistics_restart(struct vg_statistics *s)
{
    memset(s->sums, 0, (size_t)s->total * sizeof *s->sums);
    s->frames = 0;
}
