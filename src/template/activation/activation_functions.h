/* The activations g of a step of vectors and, where slope is not NULL, their slopes g′. The arithmetic is that of
 * src/scalar/activation.c, which says what it is for; docs/activations.md has the formulas. slope is NULL or not where a function
 * is called, so that nothing of it is left in the loops that do without.
 *
 * An activation is one long chain of operations that wait for each other. So each operation is done to all vectors of a step
 * before the next one: a vector after the other leaves it to the CPU to find a second chain some fifty instructions further on,
 * and takes 1.25 × as long.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ACTIVATION_ACTIVATION_FUNCTIONS_H
#define NRG_TEMPLATE_ACTIVATION_ACTIVATION_FUNCTIONS_H

#include "../../internal.h"
#include "activation_numbers.h"

/* What follows is done for vector j of the step. */
#define ACT_EACH NRG_UNROLL for (int j = 0; j < V_ACT; j++)

/* min(|x|, end). A NaN in x comes through, which is why the constant is the first operand. */
NRG_INLINE void act_magnitude(vf *t, const vf *x, float end) { ACT_EACH t[j] = v_min(v_set1(end), v_abs(x[j])); }

/* max(x, 0), which is -0 for -0. */
NRG_INLINE vf act_positive_part(vf x) { return v_max(v_zero(), x); }

/* 1; NaN where x is. */
NRG_INLINE vf act_one(vf x) { return v_max(v_set1(1), v_min(v_set1(1), x)); }

NRG_INLINE void act_polynomial(vf *sum, const float *c, int degree, const vf *x)
{
    ACT_EACH sum[j] = v_set1(c[degree]);
    NRG_UNROLL
    for (int i = degree - 1; i >= 0; i--)
        ACT_EACH sum[j] = v_fma(sum[j], x[j], v_set1(c[i]));
}

/* The same with coefficients that depend on the interval. */
NRG_INLINE void act_interval_polynomial(vf *sum, const float (*c)[8], int degree, const vi *interval, const vf *x)
{
    ACT_EACH sum[j] = v_lookup8(c[degree], interval[j]);
    NRG_UNROLL
    for (int i = degree - 1; i >= 0; i--)
        ACT_EACH sum[j] = v_fma(sum[j], x[j], v_lookup8(c[i], interval[j]));
}

/* e^h = 2^n·(1 + m); n is z - 1.5·2^23, and v_scale2 takes it as it is. */
typedef struct act_exp {
    vf z[V_ACT], m[V_ACT];
} act_exp;

/* e^(h + rest), or without rest e^h. */
NRG_INLINE void act_exponential(act_exp *e, const vf *h, const vf *rest)
{
    const vf magic = v_set1(NRG_EXP_MAGIC), ln2_lo = v_set1(NRG_LN2_LO);
    vf n[V_ACT], r[V_ACT], q[V_ACT];
    ACT_EACH e->z[j] = v_fma(h[j], v_set1(NRG_LOG2_E), magic);
    ACT_EACH n[j] = v_sub(e->z[j], magic);
    ACT_EACH r[j] = v_fnma(n[j], v_set1(NRG_LN2_HI), h[j]);
    if (rest) {
        ACT_EACH n[j] = v_fnma(n[j], ln2_lo, rest[j]);
        ACT_EACH r[j] = v_add(r[j], n[j]);
    } else {
        ACT_EACH r[j] = v_fnma(n[j], ln2_lo, r[j]);
    }
    act_polynomial(q, nrg_exp_q, 4, r);
    ACT_EACH e->m[j] = v_fma(v_mul(r[j], r[j]), q[j], r[j]);
}

/* σ(-h)·2^64 for h ≥ 0, as 1/d nearly: r·(1 - error). */
typedef struct act_tail {
    vf r[V_ACT], error[V_ACT];
} act_tail;

NRG_INLINE void act_logistic_tail(act_tail *tail, const act_exp *e)
{
    const vf one = v_set1(1), s = v_set1(0x1p-64f);
    vf p[V_ACT], inner[V_ACT], d[V_ACT];
    ACT_EACH p[j] = v_scale2(s, e->z[j]);
    ACT_EACH inner[j] = v_fma(p[j], e->m[j], s);
    ACT_EACH d[j] = v_add(p[j], inner[j]);
    ACT_EACH tail->r[j] = v_div(one, d[j]);
    ACT_EACH inner[j] = v_sub(inner[j], v_sub(d[j], p[j]));
    ACT_EACH tail->error[j] = v_fms(tail->r[j], d[j], one);
    ACT_EACH tail->error[j] = v_fma(tail->r[j], inner[j], tail->error[j]);
}

/* The value itself, rounded. */
NRG_INLINE void act_tail_value(vf *q, const act_tail *tail) { ACT_EACH q[j] = v_fnma(tail->r[j], tail->error[j], tail->r[j]); }

/* σ′·2^64 for q = σ·2^64 */
NRG_INLINE vf act_tail_slope(vf q) { return v_fnma(v_mul(q, v_set1(0x1p-64f)), q, q); }

/* a·2^-64 where x is negative, and elsewhere what that lacks to 1. */
NRG_INLINE vf act_mirror(vf a, vf x)
{
    vm left = v_lt(x, v_zero());
    return v_fma(a, v_select(left, v_set1(0x1p-64f), v_set1(-0x1p-64f)), v_select(left, v_zero(), v_set1(1)));
}

NRG_INLINE void act_identity(const vf *x, vf *out, vf *slope)
{
    if (slope)
        ACT_EACH slope[j] = act_one(x[j]);
    ACT_EACH out[j] = x[j];
}

NRG_INLINE void act_relu(const vf *x, vf *out, vf *slope)
{
    if (slope)
        ACT_EACH slope[j] = v_select(v_lt(v_zero(), x[j]), act_one(x[j]), v_sub(act_one(x[j]), v_set1(1)));
    ACT_EACH out[j] = act_positive_part(x[j]);
}

NRG_INLINE void act_relu2(const vf *x, vf *out, vf *slope)
{
    ACT_EACH
    {
        vf p = act_positive_part(x[j]);
        if (slope)
            slope[j] = v_add(p, p);
        out[j] = v_mul(p, p);
    }
}

NRG_INLINE void act_sigmoid(const vf *x, vf *out, vf *slope)
{
    vf t[V_ACT], q[V_ACT];
    act_exp e;
    act_tail tail;
    act_magnitude(t, x, 110);
    act_exponential(&e, t, NULL);
    act_logistic_tail(&tail, &e);
    act_tail_value(q, &tail);
    if (slope)
        ACT_EACH slope[j] = v_mul(act_tail_slope(q[j]), v_set1(0x1p-64f));
    ACT_EACH out[j] = act_mirror(q[j], x[j]);
}

NRG_INLINE void act_tanh(const vf *x, vf *out, vf *slope)
{
    vf t[V_ACT], h[V_ACT], q[V_ACT], square[V_ACT], near[V_ACT];
    act_exp e;
    act_tail tail;
    act_magnitude(t, x, 55);
    ACT_EACH h[j] = v_add(t[j], t[j]);
    act_exponential(&e, h, NULL);
    act_logistic_tail(&tail, &e);
    act_tail_value(q, &tail);
    if (slope)
        ACT_EACH slope[j] = v_mul(act_tail_slope(q[j]), v_set1(0x1p-62f));
    ACT_EACH square[j] = v_mul(t[j], t[j]);
    act_polynomial(near, nrg_tanh_c, 4, square);
    ACT_EACH near[j] = v_fma(v_mul(t[j], square[j]), near[j], t[j]);
    ACT_EACH q[j] = v_fnma(q[j], v_set1(0x1p-63f), v_set1(1));
    ACT_EACH out[j] = v_copysign(v_select(v_lt(t[j], v_set1(NRG_TANH_BOUND)), near[j], q[j]), x[j]);
}

/* x·σ(±h) for t = |x|, cut off, and e = e^h. rise + rise_rest: t·h′, needed for a slope; the rest may be NULL. */
NRG_INLINE void act_gated(const vf *x, const vf *t, const act_exp *e, const vf *rise, const vf *rise_rest, vf *out, vf *slope)
{
    const vf one = v_set1(1);
    act_tail tail;
    vf left[V_ACT];
    act_logistic_tail(&tail, e);
    if (slope) {
        vf q[V_ACT], other[V_ACT];
        act_tail_value(q, &tail);
        ACT_EACH other[j] = v_fnma(q[j], v_set1(0x1p-64f), one);
        ACT_EACH other[j] = v_fnma(rise[j], other[j], rise_rest ? v_fnma(rise_rest[j], other[j], one) : one);
        ACT_EACH slope[j] = act_mirror(v_mul(q[j], other[j]), x[j]);
    }
    ACT_EACH left[j] = v_mul(tail.r[j], tail.error[j]);
    ACT_EACH left[j] = v_mul(t[j], left[j]);
    ACT_EACH left[j] = v_fms(t[j], tail.r[j], left[j]);
    ACT_EACH out[j] = v_fnma(left[j], v_set1(0x1p-64f), act_positive_part(x[j]));
}

NRG_INLINE void act_silu(const vf *x, vf *out, vf *slope)
{
    vf t[V_ACT];
    act_exp e;
    act_magnitude(t, x, 110);
    act_exponential(&e, t, NULL);
    act_gated(x, t, &e, t, NULL, out, slope);
}

NRG_INLINE void act_gelu_tanh(const vf *x, vf *out, vf *slope)
{
    const vf c1 = v_set1(NRG_U_C1_HI), c3 = v_set1(NRG_U_C3_HI);
    vf t[V_ACT], square[V_ACT], rest[V_ACT], w[V_ACT], w_rest[V_ACT], h[V_ACT], rise[V_ACT], rise_rest[V_ACT];
    act_exp e;
    act_magnitude(t, x, 11);
    ACT_EACH square[j] = v_mul(t[j], t[j]);
    ACT_EACH w[j] = v_fma(c3, square[j], c1);
    ACT_EACH rest[j] = v_fms(t[j], t[j], square[j]);
    ACT_EACH w_rest[j] = v_fma(c3, square[j], v_sub(c1, w[j]));
    ACT_EACH w_rest[j] = v_fma(c3, rest[j], w_rest[j]);
    ACT_EACH w_rest[j] = v_add(w_rest[j], v_fma(v_set1(NRG_U_C3_LO), square[j], v_set1(NRG_U_C1_LO)));
    ACT_EACH h[j] = v_mul(t[j], w[j]);
    ACT_EACH rest[j] = v_fms(t[j], w[j], h[j]);
    ACT_EACH rest[j] = v_fma(t[j], w_rest[j], rest[j]);
    if (slope) {
        ACT_EACH square[j] = v_mul(v_set1(NRG_U_2_C3), square[j]);
        ACT_EACH rise[j] = v_fma(t[j], square[j], h[j]);
        ACT_EACH rise_rest[j] = v_fma(t[j], square[j], v_sub(h[j], rise[j]));
        ACT_EACH rise_rest[j] = v_add(rise_rest[j], rest[j]);
    }
    act_exponential(&e, h, rest);
    act_gated(x, t, &e, rise, rise_rest, out, slope);
}

NRG_INLINE void act_gelu(const vf *x, vf *out, vf *slope)
{
    vf t[V_ACT], minus_half[V_ACT], h[V_ACT], rest[V_ACT], octave[V_ACT], d[V_ACT], p[V_ACT], c[V_ACT];
    vi k[V_ACT];
    act_exp e;
    act_magnitude(t, x, NRG_GELU_END);
    ACT_EACH octave[j] = v_add(v_set1(1), t[j]);
    ACT_EACH minus_half[j] = v_mul(v_set1(-0.5f), t[j]);
    ACT_EACH k[j] = v_index8(octave[j]);
    ACT_EACH h[j] = v_mul(t[j], minus_half[j]);
    ACT_EACH d[j] = v_sub(t[j], v_lookup8(nrg_gelu_centre, k[j]));
    ACT_EACH rest[j] = v_fms(t[j], minus_half[j], h[j]);
    act_exponential(&e, h, rest);
    ACT_EACH p[j] = v_scale2(v_set1(0x1p64f), e.z[j]);
    ACT_EACH e.m[j] = v_select(v_lt(octave[j], v_set1(NRG_GELU_FIRST)), v_zero(), e.m[j]);
    if (slope) {
        act_interval_polynomial(c, nrg_gelu_slope, 6, k, d);
        ACT_EACH c[j] = v_mul(v_fma(c[j], e.m[j], c[j]), p[j]);
        ACT_EACH slope[j] = act_mirror(c[j], x[j]);
    }
    act_interval_polynomial(c, nrg_gelu + 1, 6, k, d);
    ACT_EACH
    {
        vf c0 = v_select(v_lt(octave[j], v_set1(NRG_GELU_FIRST)), minus_half[j], v_lookup8(nrg_gelu[0], k[j]));
        c[j] = v_fma(c[j], d[j], c0);
    }
    ACT_EACH c[j] = v_fma(c[j], e.m[j], c[j]);
    ACT_EACH c[j] = v_mul(c[j], p[j]);
    ACT_EACH out[j] = v_fma(c[j], v_set1(0x1p-64f), act_positive_part(x[j]));
}

NRG_INLINE void act_softplus(const vf *x, vf *out, vf *slope)
{
    const vf back = v_set1(0x1p-64f);
    vf h[V_ACT], p[V_ACT], far[V_ACT], d[V_ACT], c[V_ACT];
    act_exp e;
    ACT_EACH h[j] = v_max(v_set1(-110), v_minus_abs(x[j]));
    act_exponential(&e, h, NULL);
    ACT_EACH p[j] = v_scale2(v_set1(0x1p64f), e.z[j]);
    ACT_EACH far[j] = v_fma(p[j], e.m[j], p[j]);
    ACT_EACH d[j] = v_fma(far[j], back, v_set1(-NRG_LOG1P_CENTRE));
    act_polynomial(c, nrg_log1p_c, 9, d);
    if (slope) {
        ACT_EACH d[j] = v_fma(far[j], back, v_set1(1));
        ACT_EACH d[j] = v_div(v_select(v_lt(x[j], v_zero()), far[j], v_set1(0x1p64f)), d[j]);
        ACT_EACH slope[j] = v_mul(d[j], back);
    }
    ACT_EACH c[j] = v_fma(c[j], e.m[j], c[j]);
    ACT_EACH c[j] = v_mul(c[j], p[j]);
    ACT_EACH out[j] = v_fma(c[j], back, act_positive_part(x[j]));
}

/* g is a constant where this is called. */
NRG_INLINE void act_apply(nrg_activation g, const vf *x, vf *out, vf *slope)
{
    switch (g) {
    case NRG_ACT_SIGMOID:
        act_sigmoid(x, out, slope);
        return;
    case NRG_ACT_SILU:
        act_silu(x, out, slope);
        return;
    case NRG_ACT_RELU:
        act_relu(x, out, slope);
        return;
    case NRG_ACT_RELU2:
        act_relu2(x, out, slope);
        return;
    case NRG_ACT_TANH:
        act_tanh(x, out, slope);
        return;
    case NRG_ACT_GELU:
        act_gelu(x, out, slope);
        return;
    case NRG_ACT_GELU_TANH:
        act_gelu_tanh(x, out, slope);
        return;
    case NRG_ACT_SOFTPLUS:
        act_softplus(x, out, slope);
        return;
    case NRG_ACT_IDENTITY:
        break;
    }
    act_identity(x, out, slope);
}

#endif
