/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the CPU backend share. */
#ifndef VGK_CPU_H
#define VGK_CPU_H

#include "../backend.h"
#include "threads.h"

/* Instruction sets that files named *_vector.c are compiled for, each into functions of its own.  Each has those before it;
 * the last two only add products of bf16 to AVX-512 (bf16.h). */
enum vgk_isa { VGK_ISA_GENERIC, VGK_ISA_AVX2, VGK_ISA_AVX512, VGK_ISA_AVX512_BF16, VGK_ISA_AMX, VGK_ISA_COUNT };

/* The table `name` (in *_vector.c: name_generic, name_avx2, name_avx512) for the device's instruction set. */
#ifdef __x86_64__
#define VGK_BY_ISA(dev, name) \
    ((dev)->isa >= VGK_ISA_AVX512 ? &name##_avx512 : (dev)->isa == VGK_ISA_AVX2 ? &name##_avx2 : &name##_generic)
#else
#define VGK_BY_ISA(dev, name) ((void)(dev), &name##_generic)
#endif

struct vgk_device {
    struct vgk_heap heap;
    struct vgk_pool *pool;
    enum vgk_isa isa; /* the best that the machine has, or VIDGEN_CPU=generic|avx2|avx512|avx512bf16|amx */
    bool exact_products;
    char description[96];
};

/* One family of ops.  need declines with VGK_ERR_UNSUPPORTED; then the next family in backend.c's list is asked, and
 * the plain reference, which does everything, comes last.  pack may be NULL. */
struct vgk_cpu_family {
    const char *name;
    enum vgk_status (*need)(struct vgk_device *, const struct vgk_op *, struct vgk_need *, struct vgk_error *);
    enum vgk_status (*pack)(struct vgk_device *, const struct vgk_op *, void *packed, struct vgk_error *);
    enum vgk_status (*run)(struct vgk_device *, const struct vgk_op *, const void *packed, void *scratch,
                           struct vgk_error *);
};

size_t vgk_cpu_bytes_free(const struct vgk_device *); /* memory.c */

/* host.c: the memory outside of a budget for memory is a file. */
void *vgk_cpu_host_alloc(struct vgk_device *, size_t bytes);
void vgk_cpu_host_free(struct vgk_device *, void *, size_t bytes);
enum vgk_status vgk_cpu_move(struct vgk_device *, void *to, const void *from, size_t bytes, struct vgk_error *);

extern const struct vgk_cpu_family vgk_cpu_conv;      /* conv.c: f32, channels-last, 1 to 3 dimensions, fast */
extern const struct vgk_cpu_family vgk_cpu_conv_transpose; /* conv_transpose.c: as a convolution for each phase */
extern const struct vgk_cpu_family vgk_cpu_matmul;    /* matmul.c: f32, contiguous rows */
extern const struct vgk_cpu_family vgk_cpu_reference; /* reference.c: everything, plain C, any strides: the oracle */

#endif
