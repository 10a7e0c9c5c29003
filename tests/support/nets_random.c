/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "nets.h"

#include "kit.h"

static int pick(struct nets *n, int like, int not_this)
{
    int found[NETS_VALUES], count = 0;
    for (int i = 0; i < n->n; i++)
        if (i != not_this && n->v[i].num == n->v[like].num && n->v[i].den == n->v[like].den && n->v[i].num)
            found[count++] = i;
    return count ? found[kit_int(0, count - 1)] : -1;
}

static const char *const modes[] = {"nearest", "linear", "cubic"};
static const char *const coordinates[] = {"half_pixel", "asymmetric"};
static const char *const acts[] = {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "Softplus"};

/* One more layer on x. */
static int layer(struct nets *n, int x, bool norms)
{
    static const int kernels[] = {1, 2, 3, 3, 3, 4, 5, 7, 9};
    const struct nets_value v = n->v[x];
    int y;
    switch (kit_int(0, norms ? 20 : 16)) {
    case 0:
    case 1:
    case 2:
    case 3: {
        struct nets_conv c = {.out = kit_int(1, 12), .kernel = kernels[kit_int(0, 8)], .pad = (enum nets_pad)kit_int(0, 3),
                              .no_bias = kit_int(0, 3) == 0, .dilation = kit_int(0, 5) ? 1 : 2};
        if (kit_int(0, 5) == 0)
            c.groups = c.out = v.channels;
        x = nets_conv(n, x, c);
        return kit_int(0, 1) ? nets_unary(n, x, acts[kit_int(0, 4)]) : x;
    }
    case 4:
        if (v.den >= 4 * v.num)
            return nets_resize(n, x, 2, 1, modes[kit_int(0, 2)], coordinates[kit_int(0, 1)]);
        return nets_conv(n, x, (struct nets_conv){.out = kit_int(2, 12), .kernel = kit_int(1, 5), .stride = 2,
                                                  .pad = (enum nets_pad)kit_int(0, 3)});
    case 5:
        if (v.num >= 2 * v.den)
            return nets_resize(n, x, 1, 2, modes[kit_int(0, 2)], coordinates[kit_int(0, 1)]);
        return nets_resize(n, x, kit_int(2, 3), 1, modes[kit_int(0, 2)], coordinates[kit_int(0, 1)]);
    case 6: return nets_prelu(n, x);
    case 7: return nets_scale(n, kit_int(0, 1) ? "Mul" : "Add", x, kit_int(0, 1));
    case 8:
    case 9: return (y = pick(n, x, x)) >= 0 && v.channels + n->v[y].channels <= 24 ? nets_concat(n, x, y) : x;
    case 10:
    case 11: /* a residual */
        y = pick(n, x, -1);
        if (n->v[y].channels != v.channels)
            y = nets_conv(n, y, (struct nets_conv){.out = v.channels, .kernel = 3});
        return nets_binary(n, kit_int(0, 3) ? "Add" : "Mul", kit_int(0, 1) ? x : y, kit_int(0, 1) ? y : x);
    case 12:
        if (v.channels % 4 == 0 && v.num < 4 * v.den)
            return nets_shuffle(n, x, kit_int(0, 1) ? "CRD" : "DCR");
        return v.den < 4 * v.num && v.channels <= 6 ? nets_unshuffle(n, x) : x;
    case 13: return v.channels > 2 ? nets_channels(n, x, kit_int(0, 1), v.channels - kit_int(1, 2)) : x;
    case 14: return kit_int(0, 3) == 0 ? nets_quantized(n, x) : nets_unary(n, x, acts[kit_int(0, 4)]);
    case 15: return v.den < 4 * v.num ? nets_pool(n, x, kit_int(0, 1) ? "MaxPool" : "AveragePool") : x;
    case 16: return v.num < 4 * v.den ? nets_deconv(n, x, kit_int(1, 8)) : x;
    case 17: return nets_norm(n, x, 0);
    case 18: return nets_norm(n, x, v.channels % 2 ? v.channels : 2);
    case 19: return nets_binary(n, "Mul", x, nets_mean(n, x));
    default:
        if (!n->n_parameters)
            nets_parameter(n, "strength", v.channels);
        return n->v[n->parameter].channels == v.channels ? nets_binary(n, "Mul", x, n->parameter) : x;
    }
}

/* Back to a size that a picture can have: 1/1, 2/1, ... */
static int finish(struct nets *n, int x, bool global)
{
    while (n->v[x].num % n->v[x].den) {
        if (n->v[x].den % 2 == 0)
            x = nets_resize(n, x, 2, 1, modes[kit_int(0, 2)], coordinates[kit_int(0, 1)]);
        else
            x = nets_resize(n, x, n->v[x].den, 1, "nearest", "asymmetric");
    }
    int kind = kit_int(0, 9);
    if (kind == 0)
        return nets_deconv(n, nets_pool(n, x, "MaxPool"), 3);
    if (kind == 1) /* made in two parts, perhaps in two levels */
        return nets_concat(n, nets_conv(n, x, (struct nets_conv){.out = 2, .kernel = 3}),
                           nets_conv(n, global ? nets_norm(n, x, 0) : x, (struct nets_conv){.out = 1, .kernel = 1}));
    x = nets_conv(n, x, (struct nets_conv){.out = 3, .kernel = 3, .pad = (enum nets_pad)kit_int(0, 3)});
    if (kind == 2 && global)
        return nets_norm(n, x, 3);
    return kit_int(0, 1) ? nets_unary(n, x, "Sigmoid") : x;
}

struct vg_model *nets_random(int seed, bool global, struct vgk_error *err)
{
    struct nets n;
    kit_seed((uint64_t)seed);
    nets_begin(&n, 3);
    int x = 0;
    bool norms = kit_int(0, 1) && global;
    for (int layers = kit_int(2, 12); layers > 0 && n.n < NETS_VALUES - 16; layers--) {
        if (n.v[x].num > 6 * n.v[x].den)
            break;
        x = layer(&n, x, norms);
    }
    return nets_end(&n, finish(&n, x, global), err);
}
