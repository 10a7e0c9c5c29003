/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "model/memplan.h"
#include "kit.h"

#define N 60

static int meet(const struct vg_block *a, const struct vg_block *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* No two blocks that live at the same time share a byte; the peak is what the blocks need; it is near the bound. */
static void random_lives(void)
{
    double worst = 1;
    kit_seed(1);
    for (int round = 0; round < 2000; round++) {
        struct vg_block b[N];
        int n = kit_int(1, N);
        size_t peak = 0, top = 0;
        for (int i = 0; i < n; i++) {
            b[i].first = kit_int(0, 40);
            b[i].last = b[i].first + kit_int(0, 8);
            b[i].bytes = (size_t)kit_int(0, 5000);
        }
        expect(vg_memplan(b, n, &peak) == VGK_OK);
        for (int i = 0; i < n; i++) {
            size_t end = b[i].offset + vgk_round_up(b[i].bytes, VGK_ALIGN);
            expect(b[i].offset % VGK_ALIGN == 0);
            top = end > top ? end : top;
            for (int k = 0; k < i; k++)
                expectf(!b[i].bytes || !b[k].bytes || !meet(&b[i], &b[k]) || b[i].offset + b[i].bytes <= b[k].offset ||
                            b[k].offset + b[k].bytes <= b[i].offset, "round %d, blocks %d and %d", round, i, k);
        }
        size_t least = vg_memplan_floor(b, n);
        expect(peak >= top && peak >= least);
        worst = least && (double)peak / (double)least > worst ? (double)peak / (double)least : worst;
    }
    printf("worst of 2000 random cases: %.3f of the bound\n", worst);
    expect(worst < 1.5);
}

/* A chain, each block read by the next one only: two live at a time, and no layout may need more. */
static void chain(void)
{
    struct vg_block b[20];
    size_t peak;
    for (int i = 0; i < 20; i++)
        b[i] = (struct vg_block){.bytes = 6400, .first = i, .last = i + 1};
    expect(vg_memplan(b, 20, &peak) == VGK_OK && peak == 12800 && vg_memplan_floor(b, 20) == 12800);
}

static void refused(void)
{
    struct vg_block b = {.bytes = 1, .first = 2, .last = 1}, huge = {.bytes = SIZE_MAX / 2};
    size_t peak = 7;
    expect(vg_memplan(&b, 1, &peak) == VGK_ERR_INVALID && peak == 7);
    expect(vg_memplan(&huge, 1, &peak) == VGK_ERR_INVALID && peak == 7);
    expect(vg_memplan(NULL, 0, &peak) == VGK_OK && peak == 0);
}

int main(void)
{
    run(random_lives);
    run(chain);
    run(refused);
    return kit_done();
}
