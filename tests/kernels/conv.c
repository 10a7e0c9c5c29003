/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fast convolution against a plain loop in double, on every instruction set that the machine has. */
#include "kernels/cpu/conv.h"
#include "cpukit.h"

#define GUARD 0x7fa5a5a5u /* a NaN that no arithmetic makes */
#define DIRECT_BOUND 8
#define WINOGRAD_BOUND 40

static struct vgk_device device[2]; /* with one and with two threads */
/* What comes after AVX-512 has its kernels, too. */
enum { ISAS = VGK_ISA_AVX512 + 1 };
static enum vgk_isa isas[ISAS];
static int n_isas;
static const char *const isa_names[ISAS] = {"generic", "avx2", "avx512"};

/* A tensor in memory of exactly its size: channels-last, the view of a tensor with `before` and `after` more channels
 * and `columns` more columns. */
struct image {
    struct vgk_tensor t;
    float *memory;
    size_t floats;
};

static float *filled(size_t n)
{
    uint32_t *p = malloc(n * 4 + 1);
    for (size_t i = 0; i < n; i++)
        p[i] = GUARD;
    return (float *)p;
}

static struct image image_make(int rank, const int64_t *dim, int before, int after, int columns)
{
    int64_t wide[4];
    memcpy(wide, dim, sizeof *dim * (size_t)rank);
    wide[1] += before + after;
    wide[rank - 1] += columns;
    struct image m = {.t = vgk_tensor_make(VGK_F32, rank, wide, VGK_CHANNELS_LAST)};
    m.floats = (size_t)vgk_tensor_count(&m.t);
    m.memory = filled(m.floats);
    m.t.data = m.memory + before;
    memcpy(m.t.dim, dim, sizeof *dim * (size_t)rank);
    return m;
}

static float *at(const struct vgk_tensor *t, int64_t n, int64_t c, int64_t y, int64_t x)
{
    int64_t i = n * t->stride[0] + c * t->stride[1] + x * t->stride[t->rank - 1];
    return (float *)t->data + i + (t->rank == 4 ? y * t->stride[2] : 0);
}

static int64_t rows(const struct vgk_tensor *t) { return t->rank == 4 ? t->dim[2] : 1; }
static int64_t columns(const struct vgk_tensor *t) { return t->dim[t->rank - 1]; }

#define EACH(t, n, c, y, x) \
    for (int64_t n = 0; n < (t)->dim[0]; n++) \
        for (int64_t y = 0; y < rows(t); y++) \
            for (int64_t x = 0; x < columns(t); x++) \
                for (int64_t c = 0; c < (t)->dim[1]; c++)

static void randomise(const struct vgk_tensor *t)
{
    EACH(t, n, c, y, x)
    *at(t, n, c, y, x) = (float)kit_real(-1, 1);
}

static struct vgk_tensor vector(int n, double low, double high)
{
    struct vgk_tensor t = vgk_tensor_make(VGK_F32, 1, (int64_t[]){n}, VGK_ROW_MAJOR);
    float *p = t.data = malloc(sizeof *p * (size_t)n);
    for (int i = 0; i < n; i++)
        p[i] = (float)kit_real(low, high);
    return t;
}

/* An op with its tensors. */
struct layer {
    struct vgk_op op;
    struct vgk_tensor in[VGK_CONV_INPUTS], out;
    struct image x, y, residual;
    float *weights;
};

struct shape {
    int batch, cin, cout, h, w, groups;
    int kernel[2], stride[2], dilation[2], begin[2], end[2];
    int view; /* more channels and columns around, up to this */
};

static bool layer_make(struct layer *l, int spatial, const struct shape *s)
{
    *l = (struct layer){.op = {.kind = VGK_OP_CONV, .n_in = VGK_CONV_INPUTS, .n_out = 1}};
    l->op.in = l->in;
    l->op.out = &l->out;
    struct vgk_conv *c = &l->op.p.conv;
    c->spatial = spatial;
    c->groups = s->groups;
    int64_t size[2] = {s->h, s->w}, out[2];
    for (int i = 0, j = 2 - spatial; i < spatial; i++, j++) {
        c->kernel[i] = s->kernel[j];
        c->stride[i] = s->stride[j];
        c->dilation[i] = s->dilation[j];
        c->pad_begin[i] = s->begin[j];
        c->pad_end[i] = s->end[j];
        int64_t room = size[j] + s->begin[j] + s->end[j] - (s->kernel[j] - 1) * s->dilation[j] - 1;
        if (room < 0)
            return false;
        out[j] = room / s->stride[j] + 1;
    }
    int64_t xd[4] = {s->batch, s->cin, s->h, s->w}, yd[4] = {s->batch, s->cout, out[0], out[1]};
    int64_t wd[4] = {s->cout, s->cin / s->groups, s->kernel[0], s->kernel[1]};
    if (spatial == 1) {
        xd[2] = s->w;
        yd[2] = out[1];
        wd[2] = s->kernel[1];
    }
    int rank = spatial + 2, v = s->view;
    l->x = image_make(rank, xd, kit_int(0, v), kit_int(0, v), kit_int(0, v));
    l->y = image_make(rank, yd, kit_int(0, v), kit_int(0, v), kit_int(0, v));
    l->residual = image_make(rank, yd, kit_int(0, v), kit_int(0, v), kit_int(0, v));
    randomise(&l->x.t);
    randomise(&l->residual.t);
    l->in[0] = l->x.t;
    l->in[1] = vgk_tensor_make(VGK_F32, rank, wd, VGK_ROW_MAJOR);
    size_t n = (size_t)vgk_tensor_count(&l->in[1]);
    l->in[1].data = l->weights = malloc(n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        l->weights[i] = (float)kit_real(-1, 1);
    l->out = l->y.t;
    return true;
}

static void layer_free(struct layer *l)
{
    free(l->x.memory);
    free(l->y.memory);
    free(l->residual.memory);
    free(l->weights);
    for (int i = 2; i <= 4; i++)
        free(l->in[i].data);
}

/* Plans, packs and runs, with scratch and packed weights of exactly the size that need() tells, after garbage. */
static enum vgk_status compute(struct vgk_device *dev, const struct vgk_op *op, struct vgk_need *need)
{
    struct vgk_error err = {{0}};
    enum vgk_status status = vgk_cpu_conv.need(dev, op, need, &err);
    if (status != VGK_OK)
        return status;
    void *packed = NULL, *scratch = NULL;
    if (posix_memalign(&packed, VGK_ALIGN, need->packed) || posix_memalign(&scratch, VGK_ALIGN, need->scratch))
        abort();
    memset(packed, 0xff, need->packed);
    memset(scratch, 0xff, need->scratch);
    status = vgk_cpu_conv.pack(dev, op, packed, &err);
    if (status == VGK_OK)
        status = (vgk_cpu_conv.run)(dev, op, packed, scratch, &err);
    free(packed);
    free(scratch);
    return status;
}

static int source(int i, int n, enum vgk_pad_mode mode)
{
    if (i >= 0 && i < n)
        return i;
    if (mode == VGK_PAD_REFLECT)
        return i < 0 ? -i : 2 * n - 2 - i;
    if (mode == VGK_PAD_EDGE)
        return i < 0 ? 0 : n - 1;
    return -1;
}

/* The sum at one output; *size gets the sum of the terms' sizes. */
static double plain(const struct layer *l, int64_t n, int64_t o, int64_t y, int64_t x, double *size)
{
    const struct vgk_conv *c = &l->op.p.conv;
    const struct vgk_tensor *in = &l->in[0], *w = &l->in[1];
    int flat = c->spatial == 1, a = !flat, per = (int)w->dim[1], g = (int)(o / (l->out.dim[1] / c->groups));
    int kh = flat ? 1 : c->kernel[0];
    double sum = 0;
    *size = 0;
    for (int ky = 0; ky < kh; ky++)
        for (int kx = 0; kx < c->kernel[a]; kx++) {
            int iy = flat ? 0 : (int)y * c->stride[0] + ky * c->dilation[0] - c->pad_begin[0];
            int ix = (int)x * c->stride[a] + kx * c->dilation[a] - c->pad_begin[a];
            iy = source(iy, (int)rows(in), c->pad_mode);
            ix = source(ix, (int)columns(in), c->pad_mode);
            if (iy < 0 || ix < 0)
                continue;
            for (int i = 0; i < per; i++) {
                double t = (double)*at(in, n, g * per + i, iy, ix) * l->weights[((o * per + i) * kh + ky) * c->kernel[a] + kx];
                sum += t;
                *size += fabs(t);
            }
        }
    return sum;
}

static double act(const struct layer *l, int64_t o, double v)
{
    const struct vgk_conv *c = &l->op.p.conv;
    switch (c->act) {
    case VGK_ACT_RELU: return v > 0 ? v : 0;
    case VGK_ACT_LEAKY_RELU: return v > 0 ? v : v * c->alpha;
    case VGK_ACT_PRELU: return v > 0 ? v : v * ((float *)l->in[4].data)[o];
    case VGK_ACT_CLIP: return fmin(fmax(v, c->alpha), c->beta);
    case VGK_ACT_SIGMOID: return 1 / (1 + exp(-v));
    case VGK_ACT_TANH: return tanh(v);
    case VGK_ACT_SILU: return v / (1 + exp(-v));
    case VGK_ACT_ELU: return v < 0 ? c->alpha * expm1(v) : v;
    case VGK_ACT_HARD_SIGMOID: return fmin(fmax(c->alpha * v + c->beta, 0), 1);
    case VGK_ACT_HARD_SWISH: return v * fmin(fmax(v / 6 + 0.5, 0), 1);
    case VGK_ACT_GELU_ERF: return 0.5 * v * erfc(-v / sqrt(2));
    case VGK_ACT_GELU_TANH: return 0.5 * v * (1 + tanh(sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    case VGK_ACT_QUANTA: return nearbyint(fmin(fmax(v / c->alpha, c->beta), c->beta + 255)) * c->alpha;
    case VGK_ACT_GATE: return v * (1 / (1 + exp(-v)) + c->alpha);
    case VGK_ACT_NONE: break;
    }
    return v;
}

/* The worst difference in units of 2^-24 of the sum of the terms' sizes: of the terms that are there; with Winograd, where
 * a tile's pixels share their rounding errors, of what all inputs of size 1 would give. */
static double worst(const struct layer *l, bool winograd)
{
    const struct vgk_conv *c = &l->op.p.conv;
    const float *shift = l->in[2].data, *scale = l->in[3].data;
    double most = 0;
    int values = 0, edges = 0;
    EACH(&l->out, n, o, y, x)
    {
        double size, v = plain(l, n, o, y, x, &size), r = l->in[5].type ? *at(&l->in[5], n, o, y, x) : 0;
        v = v * (scale ? scale[o] : 1) + (shift ? shift[o] : 0);
        if (winograd) {
            int per = (int)(l->in[1].dim[1] * l->in[1].dim[2] * l->in[1].dim[3]);
            size = 0;
            for (int i = 0; i < per; i++)
                size += fabsf(l->weights[o * per + i]);
        }
        size = size * (scale ? fabs(scale[o]) : 1) + (shift ? fabs(shift[o]) : 0) + fabs(r) + 1;
        if (c->act == VGK_ACT_GATE)
            v = (v + r) * (1 / (1 + exp(-v)) + c->alpha);
        else
            v = c->residual_before_act ? act(l, o, v + r) : act(l, o, v) + r;
        double off = fabs(v - *at(&l->out, n, o, y, x));
        values++;
        if (c->act == VGK_ACT_QUANTA && fabs(off - c->alpha) < 1e-5) { /* the sum's rounding decides between two */
            edges++;
            continue;
        }
        double d = off / size * 16777216;
        if (!(d <= most))
            most = d;
    }
    expectf(edges * 50 <= values, "%d of %d lie on the edge of a quantum", edges, values);
    return most;
}

/* Everything around the output still is as it was. */
static bool untouched(const struct layer *l)
{
    const struct image *m = &l->y;
    float *copy = malloc(m->floats * sizeof *copy);
    memcpy(copy, m->memory, m->floats * sizeof *copy);
    EACH(&m->t, n, o, y, x)
    memcpy(copy + (at(&m->t, n, o, y, x) - m->memory), &(uint32_t){GUARD}, 4);
    bool same = true;
    for (size_t i = 0; i < m->floats; i++)
        same &= !memcmp(copy + i, &(uint32_t){GUARD}, 4);
    free(copy);
    return same;
}

static void random_epilogue(struct layer *l)
{
    struct vgk_conv *c = &l->op.p.conv;
    int cout = (int)l->out.dim[1];
    c->act = (enum vgk_act)kit_int(0, VGK_ACTS - 1);
    c->alpha = c->act == VGK_ACT_CLIP ? -0.5f : 0.1f;
    c->beta = c->act == VGK_ACT_QUANTA ? -5 : 0.75f;
    c->residual_before_act = kit_int(0, 1);
    if (kit_int(0, 3))
        l->in[2] = vector(cout, -1, 1);
    if (kit_int(0, 1))
        l->in[3] = vector(cout, -1, 1);
    if (c->act == VGK_ACT_PRELU)
        l->in[4] = vector(cout, -0.5, 0.5);
    if (kit_int(0, 1))
        l->in[5] = l->residual.t;
}

static char *describe(const struct layer *l, const struct shape *s)
{
    static char text[400];
    char x[64], w[64];
    const struct vgk_conv *c = &l->op.p.conv;
    snprintf(text, sizeof text, "%s * %s, groups %d, stride %d,%d, dilation %d,%d, pad %d,%d to %d,%d, mode %d, act %d, "
             "scale %d, residual %d, view %d", vgk_tensor_describe(&l->in[0], x, sizeof x),
             vgk_tensor_describe(&l->in[1], w, sizeof w), s->groups, s->stride[0], s->stride[1], s->dilation[0],
             s->dilation[1], s->begin[0], s->begin[1], s->end[0], s->end[1], c->pad_mode, c->act, l->in[3].type,
             l->in[5].type, s->view);
    return text;
}

/* One layer on all instruction sets, with one and two threads. */
static void check(struct layer *l, const struct shape *s)
{
    for (int i = 0; i < n_isas; i++) {
        device[0].isa = device[1].isa = isas[i];
        struct vgk_need need;
        float *first = NULL;
        size_t bytes = l->y.floats * sizeof(float);
        for (int d = 0; d < 2; d++) {
            for (size_t k = 0; k < l->y.floats; k++)
                memcpy(l->y.memory + k, &(uint32_t){GUARD}, 4);
            enum vgk_status status = compute(&device[d], &l->op, &need);
            expectf(status == VGK_OK, "%s: %s", isa_names[isas[i]], describe(l, s));
            if (status != VGK_OK)
                break;
            if (d) {
                expectf(!memcmp(first, l->y.memory, bytes), "two threads, %s: %s", isa_names[isas[i]], describe(l, s));
                break;
            }
            bool winograd = need.lattice[1] > 1;
            double bound = winograd ? WINOGRAD_BOUND : DIRECT_BOUND, is = worst(l, winograd);
            expectf(is <= bound, "%g > %g, %s: %s", is, bound, isa_names[isas[i]], describe(l, s));
            expectf(untouched(l), "%s: %s", isa_names[isas[i]], describe(l, s));
            first = malloc(bytes);
            memcpy(first, l->y.memory, bytes);
        }
        free(first);
    }
}

static struct shape random_shape(void)
{
    struct shape s = {.batch = kit_int(0, 4) ? 1 : 2, .cin = kit_int(1, 70), .cout = kit_int(1, 70), .groups = 1,
                      .view = kit_int(0, 2) ? 0 : 5};
    int kind = kit_int(0, 9);
    if (kind == 0) {
        s.groups = s.cin = s.cout = kit_int(2, 70);
    } else if (kind == 1) {
        s.groups = kit_int(2, 5);
        s.cin = s.groups * kit_int(1, 12);
        s.cout = s.groups * kit_int(1, 12);
    } else if (kind == 2) {
        s.cout = kit_int(1, 8);
    } else if (kind == 3) {
        s.cin = kit_int(1, 4);
    }
    bool big = !kit_int(0, 11);
    s.h = kit_int(1, big ? 50 : 14);
    s.w = kit_int(1, big ? 70 : 26);
    int square = kit_int(0, 2) ? kit_int(0, 3) ? 3 : 1 : 0;
    for (int i = 0; i < 2; i++) {
        s.kernel[i] = square ? square : kit_int(1, 9);
        s.stride[i] = kit_int(0, 2) ? 1 : kit_int(1, 4);
        s.dilation[i] = kit_int(0, 3) ? 1 : kit_int(1, 3);
        s.begin[i] = kit_int(0, s.kernel[i]);
        s.end[i] = kit_int(0, s.kernel[i]);
    }
    return s;
}

static void shapes(void)
{
    int done = 0;
    for (int i = 0; done < 250; i++) {
        kit_seed((uint64_t)i);
        struct shape s = random_shape();
        enum vgk_pad_mode mode = (enum vgk_pad_mode)kit_int(0, 2);
        int spatial = kit_int(0, 5) ? 2 : 1;
        if (spatial == 1) {
            s.h = s.kernel[0] = 1;
            s.begin[0] = s.end[0] = 0;
        }
        for (int k = 0; mode == VGK_PAD_REFLECT && k < 2; k++) {
            int most = (k ? s.w : s.h) - 1;
            s.begin[k] = s.begin[k] < most ? s.begin[k] : most;
            s.end[k] = s.end[k] < most ? s.end[k] : most;
        }
        struct layer l;
        if (!layer_make(&l, spatial, &s))
            continue;
        done++;
        l.op.p.conv.pad_mode = mode;
        l.op.p.conv.above = kit_int(0, 5);
        random_epilogue(&l);
        check(&l, &s);
        layer_free(&l);
    }
}

/* Winograd over kernels of several blocks, whole threes and not, in every layout of the blocks' inputs, also in groups. */
static void large_kernels(void)
{
    static const int kernels[][2] = {{9, 9}, {5, 5}, {7, 7}, {6, 6}, {3, 9}, {9, 3}, {4, 5}, {12, 8}, {8, 12}, {15, 3}};
    for (int i = 0; i < 40; i++) {
        kit_seed(5000 + (uint64_t)i);
        struct shape s = {.batch = kit_int(1, 2), .cin = i & 1 ? kit_int(1, 4) : kit_int(5, 20), .cout = kit_int(8, 40),
                          .h = kit_int(6, 32), .w = kit_int(6, 90), .groups = 1, .stride = {1, 1}, .dilation = {1, 1}};
        for (int a = 0; a < 2; a++) {
            s.kernel[a] = kernels[i % 10][a];
            s.begin[a] = kit_int(0, s.kernel[a] / 2);
            s.end[a] = kit_int(0, s.kernel[a] / 2);
        }
        s.groups = i % 4 == 3 ? kit_int(2, 3) : 1;
        s.cin *= s.groups;
        s.cout *= s.groups;
        struct layer l;
        struct vgk_need need;
        if (!layer_make(&l, 2, &s))
            continue;
        l.op.p.conv.pad_mode = (enum vgk_pad_mode)kit_int(0, 2);
        for (int a = 0; a < 2; a++)
            if (l.op.p.conv.pad_mode == VGK_PAD_REFLECT && s.kernel[a] / 2 >= (a ? s.w : s.h))
                l.op.p.conv.pad_mode = VGK_PAD_EDGE;
        l.op.p.conv.above = kit_int(0, 5);
        random_epilogue(&l);
        expect(vgk_cpu_conv.need(&device[0], &l.op, &need, NULL) == VGK_OK && need.lattice[1] == 6);
        check(&l, &s);
        layer_free(&l);
    }
}

/* Few outputs, from inputs that fill vectors and that do not, over several units of rows and columns. */
static void few_outputs(void)
{
    for (int i = 0; i < 24; i++) {
        kit_seed(6000 + (uint64_t)i);
        struct shape s = {.batch = 1, .cin = i % 3 ? kit_int(1, 13) : 16 * kit_int(1, 3), .cout = 1 + i % 4,
                          .h = kit_int(1, 70), .w = kit_int(200, 700), .groups = 1, .view = kit_int(0, 2) ? 0 : 5};
        for (int a = 0; a < 2; a++) {
            s.kernel[a] = kit_int(1, 4);
            s.stride[a] = a || kit_int(0, 2) ? 1 : kit_int(2, 5);
            s.dilation[a] = kit_int(0, 2) ? 1 : kit_int(2, 3);
            s.begin[a] = kit_int(0, 3);
            s.end[a] = kit_int(0, 3);
        }
        struct layer l;
        if (!layer_make(&l, 2, &s))
            continue;
        random_epilogue(&l);
        check(&l, &s);
        layer_free(&l);
    }
}

static struct shape square(int cin, int cout, int h, int w, int k)
{
    return (struct shape){.batch = 1, .cin = cin, .cout = cout, .h = h, .w = w, .groups = 1, .kernel = {k, k},
                          .stride = {1, 1}, .dilation = {1, 1}, .begin = {k / 2, k / 2}, .end = {k / 2, k / 2}};
}

/* Every activation through Winograd, direct, folded and depthwise paths. */
static void activations(void)
{
    for (int a = 0; a < VGK_ACTS; a++)
        for (int kind = 0; kind < 4; kind++) {
            kit_seed((uint64_t)(a * 4 + kind));
            struct shape s = kind == 0 ? square(16, 20, 13, 20, 3) : kind == 1 ? square(5, 20, 9, 20, 3)
                             : kind == 2 ? square(5, 3, 9, 21, 3) : square(20, 20, 9, 20, 3);
            s.groups = kind == 3 ? 20 : 1;
            struct layer l;
            layer_make(&l, 2, &s);
            random_epilogue(&l);
            struct vgk_conv *c = &l.op.p.conv;
            c->act = (enum vgk_act)a;
            c->alpha = a == VGK_ACT_CLIP ? -0.5f : 0.1f;
            c->beta = a == VGK_ACT_QUANTA ? -5 : 0.75f;
            if (a == VGK_ACT_PRELU && !l.in[4].type)
                l.in[4] = vector(s.cout, -0.5, 0.5);
            check(&l, &s);
            layer_free(&l);
        }
}

/* f16, bf16 and f64 weights give what f32 weights of the same values give. */
static void weight_types(void)
{
    struct shape s = square(9, 10, 8, 8, 3);
    struct layer l;
    kit_seed(1);
    layer_make(&l, 2, &s);
    size_t n = (size_t)vgk_tensor_count(&l.in[1]);
    uint16_t *half = malloc(n * 2), *brain = malloc(n * 2);
    double *wide = malloc(n * 8);
    /* Values that all of them hold: one of the smallest halves, and sixteenths. */
    for (size_t i = 0; i < n; i++) {
        int k = kit_int(-127, 127), top = 31 - __builtin_clz((unsigned)(k ? abs(k) : 1));
        float v = (float)k / 16;
        uint32_t bits;
        half[i] = k ? (uint16_t)((k < 0) << 15 | (top + 11) << 10 | ((abs(k) << (10 - top)) & 1023)) : 0;
        if (i % 50 == 0) {
            v = 0x1p-24f * 3;
            half[i] = 3;
        }
        memcpy(&bits, &v, 4);
        brain[i] = (uint16_t)(bits >> 16);
        wide[i] = l.weights[i] = v;
    }
    for (int exact = 0; exact < 2; exact++)
        for (int i = 0; i < 3; i++) {
            struct vgk_need need;
            device[0].exact_products = exact;
            l.in[1].type = VGK_F32;
            l.in[1].data = l.weights;
            expect(compute(&device[0], &l.op, &need) == VGK_OK);
            expect(worst(&l, !exact) < WINOGRAD_BOUND);
            expect((need.lattice[1] == 6) == !exact && need.lattice[0] == 1 && need.lattice[1] == need.lattice[2]);
            float *first = malloc(l.y.floats * 4);
            memcpy(first, l.y.memory, l.y.floats * 4);
            l.in[1].type = i == 0 ? VGK_F16 : i == 1 ? VGK_BF16 : VGK_F64;
            l.in[1].data = i == 0 ? (void *)half : i == 1 ? (void *)brain : (void *)wide;
            expect(compute(&device[0], &l.op, &need) == VGK_OK);
            expectf(!memcmp(first, l.y.memory, l.y.floats * 4), "type %d, exact %d", i, exact);
            free(first);
        }
    device[0].exact_products = false;
    free(half);
    free(brain);
    free(wide);
    layer_free(&l);
}

/* The part of x from (y0, x0) on, h by w: a view into it, or a copy. */
static struct image crop(const struct vgk_tensor *x, int y0, int x0, int h, int w, bool copy)
{
    struct vgk_tensor v = vgk_tensor_slice(x, 2, y0, h, 1);
    v = vgk_tensor_slice(&v, 3, x0, w, 1);
    struct image m = {.t = v};
    if (copy) {
        m = image_make(4, v.dim, 0, 0, 0);
        EACH(&v, n, c, yy, xx)
        *at(&m.t, n, c, yy, xx) = *at(&v, n, c, yy, xx);
    }
    return m;
}

/* A pixel has the same bits in a crop, wherever blocks, edges and threads then fall: what tiles rely on. */
static void positions(void)
{
    int compared = 0;
    for (int i = 0; i < 60; i++) {
        kit_seed(1000 + (uint64_t)i);
        struct shape s = random_shape();
        bool winograd = i % 3 == 0;
        s.h = kit_int(20, 40);
        s.w = kit_int(30, 60);
        s.batch = 1;
        static const int sizes[] = {3, 5, 9, 6, 7}; /* one block, blocks that overlap, that share inputs, that do not */
        int k = sizes[i / 3 % 5];
        if (winograd)
            s = square(kit_int(k > 3 ? 1 : 8, 40), kit_int(k > 3 ? 8 : 1, 40), s.h, s.w, k);
        struct layer l, part;
        if (!layer_make(&l, 2, &s))
            continue;
        random_epilogue(&l);
        l.in[5].type = VGK_NONE;
        struct vgk_conv *c = &l.op.p.conv;
        int oy, ox, y0 = -1, x0 = -1;
        c->above = kit_int(0, 5); /* the part begins with a block */
        for (oy = kit_int(0, 7) * (winograd ? 6 : 1) + winograd * (6 - c->above); y0 < 0; oy += winograd ? 6 : 1)
            y0 = oy * c->stride[0] - c->pad_begin[0];
        for (ox = kit_int(0, 11) * (winograd ? 6 : 1) + winograd * 6; x0 < 0; ox += winograd ? 6 : 1)
            x0 = ox * c->stride[1] - c->pad_begin[1];
        oy = (y0 + c->pad_begin[0]) / c->stride[0];
        ox = (x0 + c->pad_begin[1]) / c->stride[1];
        s.h = kit_int(1, s.h > y0 ? s.h - y0 : 1);
        s.w = kit_int(1, s.w > x0 ? s.w - x0 : 1);
        s.begin[0] = s.begin[1] = s.end[0] = s.end[1] = 0;
        if (y0 + s.h > l.in[0].dim[2] || x0 + s.w > l.in[0].dim[3] || !layer_make(&part, 2, &s)) {
            layer_free(&l);
            continue;
        }
        struct image in = crop(&l.in[0], y0, x0, s.h, s.w, i & 1);
        struct vgk_tensor out = part.out;
        part.op.p.conv.act = c->act;
        part.op.p.conv.alpha = c->alpha;
        part.op.p.conv.beta = c->beta;
        memcpy(part.in, l.in, sizeof part.in);
        part.in[0] = in.t;
        for (k = 0; k < n_isas; k++) {
            device[0].isa = device[1].isa = isas[k];
            struct vgk_need need;
            expect(compute(&device[0], &l.op, &need) == VGK_OK);
            expect(compute(&device[1], &part.op, &need) == VGK_OK);
            expect((need.lattice[1] == 6) == (winograd || need.lattice[1] == 6));
            /* Winograd's pixels depend on their whole tile's input. */
            int lattice = need.lattice[1], oh = (int)out.dim[2] / lattice * lattice, ow = (int)out.dim[3] / lattice * lattice;
            if (lattice > 1 && !winograd)
                continue;
            int differ = 0;
            for (int y = 0; y < oh; y++)
                for (int x = 0; x < ow; x++)
                    for (int o = 0; o < s.cout; o++, compared++)
                        differ += memcmp(at(&out, 0, o, y, x), at(&l.out, 0, o, oy + y, ox + x), 4) != 0;
            expectf(!differ, "%d values differ, case %d, %s: %s", differ, i, isa_names[isas[k]], describe(&part, &s));
        }
        memset(part.in, 0, sizeof part.in);
        layer_free(&part);
        if (in.memory)
            free(in.memory);
        layer_free(&l);
    }
    expect(compared > 100000);
}

/* The residual may be the output itself. */
static void in_place(void)
{
    for (int kind = 0; kind < 3; kind++) {
        kit_seed((uint64_t)kind);
        struct shape s = kind == 0 ? square(16, 20, 13, 20, 3) : kind == 1 ? square(7, 20, 9, 20, 5) : square(5, 3, 9, 21, 3);
        struct layer l;
        layer_make(&l, 2, &s);
        l.op.p.conv.act = VGK_ACT_RELU;
        l.in[5] = l.residual.t;
        struct vgk_need need;
        device[1].isa = isas[n_isas - 1];
        expect(compute(&device[1], &l.op, &need) == VGK_OK);
        l.out = l.residual.t;
        expect(compute(&device[1], &l.op, &need) == VGK_OK);
        expect(!memcmp(l.residual.memory, l.y.memory, l.y.floats * 4));
        layer_free(&l);
    }
}

/* What is not finite stays where the sum puts it, and comes through every activation. */
static void not_finite(void)
{
    for (int a = 0; a <= VGK_ACT_SILU; a++)
        for (int i = 0; i < n_isas; i++) {
            struct shape s = square(3, 24, 1, 3, 1);
            struct layer l;
            layer_make(&l, 2, &s);
            for (int k = 0; k < 72; k++)
                l.weights[k] = k % 3 == 0;
            l.op.p.conv.act = (enum vgk_act)a;
            l.op.p.conv.alpha = -2;
            l.op.p.conv.beta = 2;
            l.in[4] = vector(24, 0.5, 0.5);
            l.x.memory[0] = NAN;
            l.x.memory[3] = INFINITY;
            l.x.memory[6] = -INFINITY;
            struct vgk_need need;
            device[0].isa = isas[i];
            expect(compute(&device[0], &l.op, &need) == VGK_OK);
            for (int o = 0; o < 24; o++) {
                double high = *at(&l.out, 0, o, 0, 1), low = *at(&l.out, 0, o, 0, 2);
                expectf(isnan(*at(&l.out, 0, o, 0, 0)), "act %d, %s", a, isa_names[isas[i]]);
                double is_high = act(&l, o, INFINITY), is_low = a == VGK_ACT_SILU ? NAN : act(&l, o, -INFINITY);
                expectf(high == is_high || fabs(high - is_high) < 1e-6, "act %d: %g, expected %g", a, high, is_high);
                expectf(isnan(is_low) || low == is_low || fabs(low - is_low) < 1e-6, "act %d: %g, expected %g", a, low, is_low);
            }
            layer_free(&l);
        }
}

/* Layers that other kernels must do, and empty ones. */
static void declined(void)
{
    struct shape s = square(9, 10, 8, 8, 3);
    struct vgk_need need;
    struct vgk_error err = {{0}};
    struct layer l;
    layer_make(&l, 2, &s);
    struct layer other = l;
    other.op.in = other.in;
    other.op.out = &other.out;
    expect(vgk_cpu_conv.need(&device[0], &other.op, &need, &err) == VGK_OK);
    other.op.kind = VGK_OP_CONV_TRANSPOSE;
    expect(vgk_cpu_conv.need(&device[0], &other.op, &need, &err) == VGK_ERR_UNSUPPORTED && err.text[0]);
    other.op.kind = VGK_OP_CONV;
    other.op.p.conv.spatial = 3;
    expect(vgk_cpu_conv.need(&device[0], &other.op, &need, &err) == VGK_ERR_UNSUPPORTED);
    other.op.p.conv.spatial = 2;
    other.in[0].type = VGK_F16;
    expect(vgk_cpu_conv.need(&device[0], &other.op, &need, &err) == VGK_ERR_UNSUPPORTED);
    other.in[0] = vgk_tensor_make(VGK_F32, 4, l.in[0].dim, VGK_ROW_MAJOR);
    expect(vgk_cpu_conv.need(&device[0], &other.op, &need, &err) == VGK_ERR_UNSUPPORTED);
    other.in[0] = l.in[0];
    other.in[1].type = VGK_I8;
    expect(vgk_cpu_conv.need(&device[0], &other.op, &need, &err) == VGK_ERR_UNSUPPORTED);
    other.in[1] = l.in[1];
    other.in[0].dim[0] = other.out.dim[0] = 0;
    expect(compute(&device[0], &other.op, &need) == VGK_OK);
    layer_free(&l);
}

int main(void)
{
    for (int i = 0; i < ISAS; i++) {
        struct vgk_device *dev = cpukit_open(isa_names[i], 1);
        if (dev)
            isas[n_isas++] = (enum vgk_isa)i;
        vgk_cpu.close(&dev);
    }
    for (int i = 0; i < 2; i++)
        if (!(device[i].pool = vgk_pool_create(i + 1)))
            return 1;
    run(shapes);
    run(large_kernels);
    run(few_outputs);
    run(activations);
    run(weight_types);
    run(positions);
    run(in_place);
    run(not_finite);
    run(declined);
    for (int i = 0; i < 2; i++)
        vgk_pool_destroy(&device[i].pool);
    return kit_done();
}
