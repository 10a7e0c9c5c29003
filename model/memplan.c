/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "memplan.h"

#include <stdlib.h>
#include <string.h>

static size_t padded(const struct vg_block *b) { return vgk_round_up(b->bytes, VGK_ALIGN); }

static size_t most_alive(const struct vg_block *blocks, int n, int *step)
{
    size_t best = 0;
    *step = -1;
    for (int i = 0; i < n; i++) { /* the sum can only grow where a block begins */
        size_t sum = 0;
        for (int k = 0; k < n; k++)
            if (blocks[k].first <= blocks[i].first && blocks[k].last >= blocks[i].first)
                sum += padded(&blocks[k]);
        if (*step < 0 || sum > best || (sum == best && blocks[i].first < *step)) {
            best = sum;
            *step = blocks[i].first;
        }
    }
    return best;
}

size_t vg_memplan_floor(const struct vg_block *blocks, int n)
{
    int step;
    return most_alive(blocks, n, &step);
}

int vg_memplan_busiest(const struct vg_block *blocks, int n)
{
    int step;
    most_alive(blocks, n, &step);
    return step;
}

struct item {
    struct vg_block *block;
    double key;
    int index;
};

static int by_key(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return x->key > y->key ? -1 : x->key < y->key ? 1 : x->index - y->index;
}

/* Places in the given order; `placed` is kept sorted by offset. */
static size_t place(const struct item *items, int n, struct vg_block **placed)
{
    size_t peak = 0;
    int count = 0;
    for (int i = 0; i < n; i++) {
        struct vg_block *b = items[i].block;
        size_t need = padded(b), end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
        for (int k = 0; k < count; k++) {
            const struct vg_block *p = placed[k];
            if (p->first > b->last || p->last < b->first)
                continue;
            if (p->offset > end && p->offset - end >= need && p->offset - end < best_gap) {
                best_gap = p->offset - end;
                best = end;
            }
            size_t past = p->offset + padded(p);
            end = past > end ? past : end;
        }
        b->offset = best == SIZE_MAX ? end : best;
        peak = b->offset + need > peak ? b->offset + need : peak;
        int at = count++;
        while (at > 0 && placed[at - 1]->offset > b->offset) {
            placed[at] = placed[at - 1];
            at--;
        }
        placed[at] = b;
    }
    return peak;
}

enum vgk_status vg_memplan(struct vg_block *blocks, int n, size_t *peak)
{
    size_t total = 0, best = SIZE_MAX, floor_bytes = vg_memplan_floor(blocks, n);
    for (int i = 0; i < n; i++)
        if (blocks[i].first > blocks[i].last || blocks[i].bytes > SIZE_MAX / 4 ||
            !vgk_add(total, padded(&blocks[i]), &total))
            return VGK_ERR_INVALID;
    struct item *items = malloc((n + 1) * sizeof *items);
    struct vg_block **placed = malloc((n + 1) * sizeof *placed);
    size_t *offsets = malloc((n + 1) * sizeof *offsets);
    if (!items || !placed || !offsets) {
        free(items);
        free(placed);
        free(offsets);
        return VGK_ERR_NOMEM;
    }
    /* Large first; large and long-lived first; in the order of time. */
    for (int order = 0; order < 3 && best > floor_bytes; order++) {
        for (int i = 0; i < n; i++) {
            const struct vg_block *b = &blocks[i];
            items[i] = (struct item){&blocks[i], 0, i};
            items[i].key = order == 0   ? (double)b->bytes
                           : order == 1 ? (double)b->bytes * (b->last - b->first + 1)
                                        : -(double)b->first;
        }
        qsort(items, n, sizeof *items, by_key);
        size_t p = place(items, n, placed);
        if (p < best) {
            best = p;
            for (int i = 0; i < n; i++)
                offsets[i] = blocks[i].offset;
        }
    }
    for (int i = 0; i < n; i++)
        blocks[i].offset = offsets[i];
    *peak = n ? best : 0;
    free(items);
    free(placed);
    free(offsets);
    return VGK_OK;
}
