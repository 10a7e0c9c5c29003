/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tiles of a frame: where they lie, which pixels each one owns, where two blend.  Pure arithmetic on one axis at a
 * time; a grid is two axes.
 *
 * The rules that make a tiled result equal the untiled one:
 * - every tile has the same size; origins are multiples of `origin_multiple` (the model's total stride, times the
 *   lattice of kernels that have one, such as Winograd's), the first is 0, they are spread evenly, and the last tile
 *   ends exactly where the frame ends (rounded up to `size_multiple`), so the network meets the frame's edge, and its
 *   own padding there, at the same pixels as without tiles;
 * - each frame pixel is owned by exactly one tile: the one whose copy is at least `halo` away from a tile edge that is
 *   not a frame edge.  Cuts lie on multiples of `size_multiple`;
 * - what overlaps beyond the halo may be blended: the weights of the two tiles are a partition of unity.
 *
 * Sizes are in input pixels; the model's scale num/den takes them to output pixels (exactly: see vg_axis_scale). */
#ifndef VG_TILING_H
#define VG_TILING_H

#include "../kernels/base.h"

#define VG_MAX_TILES 256 /* on one axis */

struct vg_axis_request {
    int frame;           /* pixels, 1 or more */
    int tile;            /* wanted, 0 = the whole frame in one tile; may grow by less than origin_multiple */
    int overlap;         /* wanted, -1 = halo_lo + halo_hi */
    int halo_lo, halo_hi; /* pixels beside an owned region that its values depend on */
    int size_multiple;   /* tile sizes and cuts; 1 or more */
    int origin_multiple; /* a multiple of size_multiple */
    int chroma;          /* 2 when the format halves its chroma on this axis, else 1: origins and cuts keep to it,
                            before and after scaling */
    int num, den;        /* output pixels = input pixels * num / den */
    bool fixed;          /* the model takes just `tile` pixels: small frames are padded up to it */
};

struct vg_axis {
    int frame, tile, n;
    int num, den;
    int origin[VG_MAX_TILES];
    int cut[VG_MAX_TILES + 1];  /* tile i owns [cut[i], cut[i + 1]); cut[0] = 0, cut[n] = frame */
    int zone_lo[VG_MAX_TILES];  /* around cut[i], 1 <= i < n: in [zone_lo, zone_hi) tiles i - 1 and i are both right */
    int zone_hi[VG_MAX_TILES];
};

/* VGK_ERR_INVALID, with what would do instead: overlap below the halo, overlap that leaves the tile no progress, a
 * tile above `VG_MAX_TILES` of which would be needed, a zero or negative size. */
enum vgk_status vg_axis_make(const struct vg_axis_request *, struct vg_axis *, struct vgk_error *);

/* Pixels computed over pixels owned, minus 1 (0 = no waste). */
double vg_axis_waste(const struct vg_axis *);

/* An input position (an origin, a cut, a tile size) in output pixels; frame sizes round down (at least 1). */
int vg_axis_scale(const struct vg_axis *, int position);

struct vg_grid {
    struct vg_axis x, y;
};

/* Which tile owns this input pixel. */
int vg_axis_owner(const struct vg_axis *, int position);

enum vg_blend { VG_BLEND_CROP, VG_BLEND_LINEAR, VG_BLEND_COSINE };

/* Weights of the right (lower) tile across a zone of `n` output pixels, in 1/65536: rises from near 0 to near 65536,
 * w[i] + w[n - 1 - i] = 65536; the left tile has 65536 - w[i].  Linear: (i + 1/2) / n; cosine: half a raised cosine. */
void vg_blend_weights(enum vg_blend, int n, uint32_t *w);

#endif
