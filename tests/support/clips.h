/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Clips of frames for models in time, played as a stream plays them. */
#ifndef CLIPS_H
#define CLIPS_H

#include <stdlib.h>

#include "nets.h"

enum { CLIP_FRAMES = 64 };

struct clip {
    int n;
    struct nets_picture frame[CLIP_FRAMES];
};

static inline struct clip clip_new(enum vgk_frame_layout layout, int n, int width, int height, bool random)
{
    struct clip c = {.n = n};
    for (int i = 0; i < n; i++)
        c.frame[i] = nets_picture(layout, width, height, random);
    return c;
}

static inline void clip_free(struct clip *c)
{
    for (int i = 0; i < c->n; i++)
        free(c->frame[i].data);
    c->n = 0;
}

/* Windows over the clip as they come out of a stream: the edge frames are repeated, so that each frame is emitted. */
static inline int window_begin(const struct vg_plan_info *info, int k)
{
    return k * info->hop - (info->centre > 0 ? info->centre : 0);
}

static inline int clamp(int i, int n) { return i < 0 ? 0 : i < n ? i : n - 1; }

/* n windows; out has n * emit frames. */
static inline enum vgk_status play(struct vg_run *r, const struct vg_plan_info *info, const struct clip *in, int n,
                                   struct clip *out, struct vgk_error *err)
{
    enum vgk_status s = VGK_OK;
    vg_run_reset(r);
    for (int k = 0; k < n && !s; k++) {
        struct nets_picture window[16];
        for (int i = 0; i < info->window; i++)
            window[i] = in->frame[clamp(window_begin(info, k) + i, in->n)];
        s = nets_window(r, info->grid, window, info->window, &out->frame[k * info->emit], info->emit, err);
    }
    return s;
}

/* Bytes of the first n frames that differ, and the largest difference. */
static inline int64_t bytes_off(const struct clip *a, const struct clip *b, int n, int *worst)
{
    int64_t off = 0;
    *worst = 0;
    for (int k = 0; k < n; k++)
        for (size_t i = 0; i < a->frame[k].bytes; i++) {
            int d = abs(a->frame[k].data[i] - b->frame[k].data[i]);
            off += d > 0;
            *worst = d > *worst ? d : *worst;
        }
    return off;
}

#endif
