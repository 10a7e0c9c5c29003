/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Panels of stored weights to floats. */
#include "weights.h"
#include "simd.h"

INLINE vi widen_8(const uint8_t *p)
{
#if VGK_VL == 16 && defined(__AVX512F__)
    return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
#elif VGK_VL == 8 && defined(__AVX2__)
    return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
#else
    vi v;
    for (int i = 0; i < VL; i++)
        v[i] = p[i];
    return v;
#endif
}

INLINE vi widen_16(const uint16_t *p)
{
#if VGK_VL == 16 && defined(__AVX512F__)
    return (vi)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
#elif VGK_VL == 8 && defined(__AVX2__)
    return (vi)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
#else
    vi v;
    for (int i = 0; i < VL; i++)
        v[i] = p[i];
    return v;
#endif
}

/* Bytes to numbers; of small types 4 bits of each from bit `shift` on. */
INLINE vf number(const enum vgk_type type, const int shift, const uint8_t *from)
{
    vi b = widen_8(from);
    switch (type) {
    case VGK_I8: b = b << 24 >> 24; break;
    case VGK_I4: b = ((b >> shift & 15) ^ 8) - 8; break;
    case VGK_U4: b = b >> shift & 15; break;
    default: break;
    }
    return __builtin_convertvector(b, vf);
}

INLINE vf half(const enum vgk_type type, const uint16_t *from)
{
    vi h = widen_16(from);
    if (type == VGK_BF16)
        return (vf)(h << 16);
    /* The exponent's bias is 15 there and 127 here; infinities and NaN have the largest one in both. */
    vi finite = (vi)((vf)((h & 0x7fff) << 13) * 0x1p112f), special = (h & 0x7c00) == 0x7c00;
    return (vf)(finite | (special & 0x7f800000) | (h & 0x8000) << 16);
}

INLINE void halves(const enum vgk_type type, const struct vgk_panels *p, const uint16_t *from, float *to)
{
    for (int64_t i = 0; i < p->depth * p->nr; i += VL)
        store(to + i, half(type, from + i));
}

INLINE void numbers(const enum vgk_type type, const struct vgk_panels *p, const uint8_t *panel, float *to)
{
    const bool small = type == VGK_I4 || type == VGK_U4;
    for (int64_t k = 0; k < p->depth; k++, to += p->nr) {
        const uint8_t *row = panel + (small ? k / 2 : k) * p->nr;
        const int64_t block = k / p->block * p->nr;
        const float *scale = (const float *)(panel + p->scales) + block;
        const uint8_t *zero = panel + p->zeros + block;
        for (int v = 0; v < p->nr; v += VL) {
            vf x = small && k % 2 ? number(type, 4, row + v) : number(type, 0, row + v);
            if (p->zero)
                x -= number(type == VGK_I8 || type == VGK_I4 ? VGK_I8 : VGK_U8, 0, zero + v);
            store(to + v, x * load(scale + v));
        }
    }
}

static void unpack(const struct vgk_panels *p, const void *panel, float *to)
{
    switch (p->type) {
    case VGK_F16: halves(VGK_F16, p, panel, to); break;
    case VGK_BF16: halves(VGK_BF16, p, panel, to); break;
    case VGK_I8: numbers(VGK_I8, p, panel, to); break;
    case VGK_U8: numbers(VGK_U8, p, panel, to); break;
    case VGK_I4: numbers(VGK_I4, p, panel, to); break;
    case VGK_U4: numbers(VGK_U4, p, panel, to); break;
    default: break;
    }
}

typedef uint16_t vh __attribute__((vector_size(2 * VL)));

static void to_bf16(const float *from, int64_t n, uint16_t *to)
{
    for (int64_t i = 0; i < n; i += VL) {
        int left = n - i < VL ? (int)(n - i) : VL;
        vf x = load_n(from + i, left);
        vu u = (vu)x, nan = (vu)(x != x), even = (u + 0x7fff + (u >> 16 & 1)) >> 16, quiet = u >> 16 | 0x40;
        vh h = __builtin_convertvector((nan & quiet) | (~nan & even), vh);
        __builtin_memcpy(to + i, &h, 2 * (size_t)left);
    }
}

const struct vgk_weights_kernels VGK_SET(vgk_weights) = {unpack, to_bf16};
