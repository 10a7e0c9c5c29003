/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What happens to a convolution's sum on its way to the output: y = act(sum * scale + shift), and the residual.
 * One instance per activation; which one is chosen per row or tile, never per element. */
#ifndef VGK_CPU_EPILOGUE_H
#define VGK_CPU_EPILOGUE_H

#include "../ops.h"
#include "simd.h"

struct epilogue {
    const float *scale, *shift, *slope; /* of the first channel */
    float alpha, beta;
    bool residual_before_act;
};

/* One vector of channels. */
struct channels {
    vf scale, shift, slope, alpha, beta;
};

INLINE struct channels channels_at(const struct epilogue *e, int c)
{
    return (struct channels){load(e->scale + c), load(e->shift + c), load(e->slope + c), splat(e->alpha), splat(e->beta)};
}

INLINE vf activate(const enum vgk_act act, vf v, const struct channels *c)
{
    switch (act) {
    case VGK_ACT_RELU: return at_least(v, (vf){0});
    case VGK_ACT_LEAKY_RELU:
    case VGK_ACT_PRELU: return below(v, (vf){0}, v * c->slope, v);
    case VGK_ACT_CLIP: return at_most(at_least(v, c->alpha), c->beta);
    case VGK_ACT_SIGMOID: return vsigmoid(v);
    case VGK_ACT_TANH: return vtanh(v);
    case VGK_ACT_SILU: return vsilu(v);
    case VGK_ACT_ELU: return below(v, (vf){0}, vexpm1(v) * c->alpha, v);
    case VGK_ACT_HARD_SIGMOID: return clamp01(v * c->alpha + c->beta);
    case VGK_ACT_HARD_SWISH: return v * clamp01(v * (1.0f / 6) + 0.5f);
    case VGK_ACT_GELU_ERF: return vgelu_erf(v);
    case VGK_ACT_GELU_TANH: return vgelu_tanh(v);
    case VGK_ACT_QUANTA: return vquanta(v, c->alpha, c->beta);
    case VGK_ACT_GATE: return v * (vsigmoid(v) + c->alpha);
    case VGK_ACT_NONE: break;
    }
    return v;
}

/* n channels of one pixel; res may be NULL. */
INLINE vf finish(const enum vgk_act act, vf sum, const struct channels *c, const float *res, bool before, int n)
{
    vf v = sum * c->scale + c->shift;
    if (!res)
        return activate(act, v, c);
    vf r = load_n(res, n);
    if (act == VGK_ACT_GATE)
        return (v + r) * (vsigmoid(v) + c->alpha);
    return before ? activate(act, v + r, c) : activate(act, v, c) + r;
}

/* F(name, ACT) for each activation that has an instance, and the table of them. */
#define EACH_ACT(F) F(none, VGK_ACT_NONE) F(relu, VGK_ACT_RELU) F(prelu, VGK_ACT_PRELU) F(clip, VGK_ACT_CLIP) \
    F(sigmoid, VGK_ACT_SIGMOID) F(tanh, VGK_ACT_TANH) F(silu, VGK_ACT_SILU) F(elu, VGK_ACT_ELU) \
    F(hard_sigmoid, VGK_ACT_HARD_SIGMOID) F(hard_swish, VGK_ACT_HARD_SWISH) F(gelu_erf, VGK_ACT_GELU_ERF) \
    F(gelu_tanh, VGK_ACT_GELU_TANH) F(quanta, VGK_ACT_QUANTA) F(gate, VGK_ACT_GATE)

#endif
