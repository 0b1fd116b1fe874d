/* The activations g of a step of vectors, and their slopes g′. The arithmetic is that of src/scalar/activation.c, which states
 * its reasons; docs/ops/activation.md has the formulas.
 *
 * A loop computes either or both (want, a constant): nothing is left of the other part. One loop that tests which it computes
 * takes 1.2 times as long, since gcc keeps in memory what the other part would need.
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

/* Whether the loops of values and of slopes are the only ones of an activation. */
#ifdef NRG_SMALL
#define ACT_IS_SMALL 1
#else
#define ACT_IS_SMALL V_SMALL
#endif

/* The parts of a step that are computed. g has the same bits with g′ and without. */
typedef struct act_want {
    int value, slope;
    float alpha; /* of the activations that have a parameter */
} act_want;

/* What follows is done for vector j of the step; or of the first `count` of them, which are side by side. */
#define ACT_EACH NRG_UNROLL for (int j = 0; j < V_ACT; j++)
#define ACT_SIDE NRG_UNROLL for (int j = 0; j < count; j++)

/* A constant of a step. Four vectors share one that is in a register; for two of them it may as well come from memory. */
NRG_INLINE vf act_constant(int count, float c) { return count > 2 ? v_constant(c) : v_set1(c); }

/* min(|x|, most). With keep_nan a NaN in x comes through, which is why the constant is the first operand. */
NRG_INLINE void act_least(int count, vf *t, const vf *x, vf most, int keep_nan)
{
    if (keep_nan)
        ACT_SIDE t[j] = v_min(most, v_abs(x[j]));
    else
        ACT_SIDE t[j] = v_least_magnitude(most, x[j]);
}

NRG_INLINE void act_magnitude(int count, vf *t, const vf *x, float end, int keep_nan)
{
    act_least(count, t, x, act_constant(count, end), keep_nan);
}

/* max(x, 0), which is -0 for all x < 0: less a zero, it keeps the sign that g has there. */
NRG_INLINE vf act_right_part(vf x) { return v_max(v_set1(-0.0f), x); }

/* 1; NaN where x is. */
NRG_INLINE vf act_one(vf x) { return v_max(v_set1(1), v_min(v_set1(1), x)); }

/* times: a power of two, which goes into the coefficients */
NRG_INLINE void act_polynomial(int count, vf *sum, const float *c, int degree, float times, const vf *x)
{
    const vf first = act_constant(count, c[degree] * times), second = act_constant(count, c[degree - 1] * times);
    ACT_SIDE sum[j] = v_fma(first, x[j], second);
    NRG_UNROLL
    for (int i = degree - 2; i >= 0; i--) {
        const vf next = act_constant(count, c[i] * times);
        ACT_SIDE sum[j] = v_fma(sum[j], x[j], next);
    }
}

/* e^-t = 2^n·e^-r for t ≥ 0. n is z - 1.5·2^23, and v_scale2 takes it as it is. */
NRG_INLINE void act_reduce(int count, vf *z, vf *r, const vf *t)
{
    const vf magic = v_set1(NRG_EXP_MAGIC);
    vf n[V_ACT];
    ACT_SIDE z[j] = v_fma(t[j], v_set1(-NRG_LOG2_E), magic);
    ACT_SIDE n[j] = v_sub(z[j], magic);
    ACT_SIDE r[j] = v_fma(n[j], v_set1(NRG_LN2_HI), t[j]);
    ACT_SIDE r[j] = v_fma(n[j], v_set1(NRG_LN2_LO), r[j]);
}

/* unit·e^-t for t from 0 to 110. Where this has to be NaN if x is, keep_nan: bits that are shifted into a NaN can make it a
 * number. */
NRG_INLINE void act_decay(int count, vf *e, const vf *t, float unit, int keep_nan)
{
    const int apart = keep_nan && !V_SCALE_KEEPS_NAN;
    vf z[V_ACT], r[V_ACT];
    act_reduce(count, z, r, t);
    act_polynomial(count, e, nrg_exp_c, 6, apart ? 0x1p-64f * unit : unit, r);
    if (apart)
        ACT_SIDE e[j] = v_mul(e[j], v_scale2(v_set1(0x1p64f), z[j]));
    else
        ACT_SIDE e[j] = v_scale2(e[j], z[j]);
}

/* e^-r - 1, with all its bits where r is small. */
NRG_INLINE void act_exp_less_one(int count, vf *m, const vf *r)
{
    act_polynomial(count, m, nrg_expm1_c, 4, 1, r);
    ACT_SIDE m[j] = v_fms(v_mul(r[j], r[j]), m[j], r[j]);
}

NRG_INLINE void act_identity(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    if (want.slope)
        ACT_SIDE slope[j] = act_one(x[j]);
    if (want.value)
        ACT_SIDE value[j] = x[j];
}

NRG_INLINE void act_relu(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    if (want.slope)
        ACT_SIDE slope[j] = v_select(v_lt(v_zero(), x[j]), act_one(x[j]), v_sub(act_one(x[j]), v_set1(1)));
    if (want.value)
        ACT_SIDE value[j] = v_relu(x[j]);
}

NRG_INLINE void act_relu2(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    vf p[V_ACT];
    ACT_SIDE p[j] = v_relu(x[j]);
    if (want.slope)
        ACT_SIDE slope[j] = v_add(p[j], p[j]);
    if (want.value)
        ACT_SIDE value[j] = v_mul(p[j], p[j]);
}

NRG_INLINE void act_sigmoid(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    vf t[V_ACT], e[V_ACT], a[V_ACT];
    act_magnitude(count, t, x, 110, 1);
    act_decay(count, e, t, NRG_UNIT, 1);
    ACT_SIDE a[j] = v_div(e[j], v_add(v_set1(NRG_UNIT), e[j]));
    if (want.slope)
        ACT_SIDE slope[j] = v_fnma(a[j], a[j], a[j]);
    if (want.value)
        ACT_SIDE value[j] = v_mirror(a[j], x[j]);
}

NRG_INLINE void act_tanh(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    const vf one = v_set1(0x1p64f);
    vf t[V_ACT], z[V_ACT], r[V_ACT], m[V_ACT], p[V_ACT], above[V_ACT], below[V_ACT];
    ACT_SIDE t[j] = v_add(x[j], x[j]);
    act_magnitude(count, t, t, 110, 1);
    act_reduce(count, z, r, t);
    act_exp_less_one(count, m, r);
    ACT_SIDE p[j] = v_scale2(one, z[j]);
    ACT_SIDE below[j] = v_fma(p[j], m[j], v_add(one, p[j]));
    if (want.slope)
        ACT_SIDE
        {
            vf a = v_div(v_mul(v_fma(p[j], m[j], p[j]), v_set1(4)), below[j]);
            slope[j] = v_fnma(v_mul(a, v_set1(0.25f)), a, a);
        }
    if (want.value) {
        ACT_SIDE above[j] = v_fnma(p[j], m[j], v_sub(one, p[j]));
        ACT_SIDE value[j] = v_copysign(v_div(above[j], below[j]), x[j]);
    }
}

/* x·σ(±h) for t = |x|, cut off, and e = unit·e^-h. */
NRG_INLINE void act_gated_value(int count, const vf *x, const vf *t, const vf *e, float unit, vf *value)
{
    const vf more = act_constant(count, unit), zero = act_constant(count, -0.0f);
    ACT_SIDE value[j] = v_sub(v_max(zero, x[j]), v_div(v_mul(t[j], e[j]), v_add(more, e[j])));
}

/* Its slope. rise + rest: t·h′; rest may be NULL. */
NRG_INLINE void act_gated_slope(int count, const vf *x, const vf *e, float unit, const vf *rise, const vf *rest, vf *slope)
{
    const vf one = v_set1(1), back = v_set1(0x1p-64f);
    vf q[V_ACT], other[V_ACT], left[V_ACT];
    ACT_SIDE q[j] = v_div(e[j], v_fma(e[j], back, v_set1(0x1p-64f * unit)));
    ACT_SIDE other[j] = v_fnma(q[j], back, one);
    ACT_SIDE left[j] = v_fnma(rise[j], other[j], one);
    if (rest)
        ACT_SIDE
        {
            const vf lost = v_fnma(rise[j], other[j], v_sub(one, left[j]));
            left[j] = v_fma(q[j], left[j], v_mul(q[j], v_fnma(rest[j], other[j], lost)));
        }
    else
        ACT_SIDE left[j] = v_mul(q[j], left[j]);
    ACT_SIDE left[j] = v_mul(left[j], back);
    ACT_SIDE slope[j] = v_mirror(left[j], x[j]);
}

NRG_INLINE void act_silu(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    vf t[V_ACT], e[V_ACT];
    act_magnitude(count, t, x, 110, want.slope);
    act_decay(count, e, t, NRG_UNIT, 0);
    if (want.slope)
        act_gated_slope(count, x, e, NRG_UNIT, t, NULL, slope);
    if (want.value)
        act_gated_value(count, x, t, e, NRG_UNIT, value);
}

NRG_INLINE void act_gelu_tanh(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    const vf magic = v_set1(NRG_EXP_MAGIC), gamma = v_set1(NRG_U_GAMMA_HI);
    vf t[V_ACT], w[V_ACT], rest[V_ACT], z[V_ACT], n[V_ACT], r[V_ACT], e[V_ACT], rise[V_ACT];
    act_magnitude(count, t, x, 11, want.slope);
    ACT_SIDE w[j] = v_fma(t[j], t[j], gamma);
    ACT_SIDE rest[j] = v_fma(t[j], t[j], v_sub(gamma, w[j]));
    ACT_SIDE rest[j] = v_add(rest[j], v_set1(NRG_U_GAMMA_LO));
    ACT_SIDE z[j] = v_fma(v_mul(t[j], w[j]), v_set1(-NRG_U_LOG2_E), magic);
    ACT_SIDE n[j] = v_sub(z[j], magic);
    ACT_SIDE r[j] = v_fma(t[j], w[j], v_mul(n[j], v_set1(NRG_U_LN2_HI)));
    ACT_SIDE rest[j] = v_fma(t[j], rest[j], v_mul(n[j], v_set1(NRG_U_LN2_LO)));
    ACT_SIDE r[j] = v_add(r[j], rest[j]);
    act_polynomial(count, e, nrg_exp_u, 6, NRG_U_UNIT, r);
    ACT_SIDE e[j] = v_scale2(e[j], z[j]);
    if (want.slope) {
        const vf c1 = v_set1(NRG_U_C1), c3 = v_set1(NRG_U_3_C3);
        ACT_SIDE r[j] = v_mul(t[j], t[j]);
        ACT_SIDE w[j] = v_fma(c3, r[j], c1);
        ACT_SIDE rise[j] = v_mul(t[j], w[j]);
        ACT_SIDE rest[j] = v_fma(c3, r[j], v_sub(c1, w[j]));
        ACT_SIDE rest[j] = v_fma(c3, v_fms(t[j], t[j], r[j]), rest[j]);
        ACT_SIDE rest[j] = v_fma(t[j], rest[j], v_fms(t[j], w[j], rise[j]));
        act_gated_slope(count, x, e, NRG_U_UNIT, rise, rest, slope);
    }
    if (want.value)
        act_gated_value(count, x, t, e, NRG_U_UNIT, value);
}

NRG_INLINE void act_gelu(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    const vf magic = v_set1(NRG_EXP_MAGIC);
    vf t[V_ACT], half[V_ACT], h[V_ACT], rest[V_ACT], z[V_ACT], r[V_ACT], m[V_ACT], q[V_ACT], above[V_ACT], below[V_ACT],
        sum[V_ACT];
    act_magnitude(count, t, x, NRG_GELU_END, want.slope);
    ACT_SIDE half[j] = v_mul(v_set1(0.5f), t[j]);
    ACT_SIDE h[j] = v_mul(t[j], half[j]);
    ACT_SIDE rest[j] = v_fms(t[j], half[j], h[j]);
    ACT_SIDE z[j] = v_fma(h[j], v_set1(-NRG_LOG2_E), magic);
    ACT_SIDE r[j] = v_fma(v_sub(z[j], magic), v_set1(NRG_LN2_HI), h[j]);
    ACT_SIDE r[j] = v_add(r[j], rest[j]);
    act_exp_less_one(count, m, r);
    act_polynomial(count, q, nrg_gelu_q, 4, 0x1p64f, t);
    act_polynomial(count, above, nrg_gelu_p, 4, 0x1p64f, t);
    ACT_SIDE
    {
        vf twice = v_add(q[j], q[j]);
        below[j] = v_fma(twice, t[j], v_add(twice, twice));
    }
    if (want.slope)
        ACT_SIDE
        {
            vf missing = v_mul(h[j], v_set1(NRG_GELU_LN2));
            vf more = v_fnma(missing, v_add(v_set1(1), m[j]), m[j]);
            vf a = v_fnma(v_mul(t[j], v_set1(NRG_GELU_PHI)), below[j], v_add(q[j], above[j]));
            a = v_scale2(v_fma(a, more, a), z[j]);
            slope[j] = v_mirror(v_div(a, below[j]), x[j]);
        }
    if (want.value) {
        ACT_SIDE sum[j] = v_fma(t[j], q[j], v_mul(t[j], above[j]));
        ACT_SIDE sum[j] = v_mul(sum[j], m[j]);
        ACT_SIDE sum[j] = v_fma(t[j], above[j], sum[j]);
        ACT_SIDE sum[j] = v_fma(t[j], q[j], sum[j]);
        ACT_SIDE sum[j] = v_scale2(sum[j], z[j]);
        ACT_SIDE value[j] = v_sub(act_right_part(x[j]), v_div(sum[j], below[j]));
    }
}

NRG_INLINE void act_softplus(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    const vf unit = v_set1(0x1p64f), back = v_set1(0x1p-64f);
    vf t[V_ACT], e[V_ACT], u[V_ACT], c[V_ACT];
    act_magnitude(count, t, x, 110, 0);
    act_decay(count, e, t, 0x1p64f, 0);
    if (want.slope) /* a NaN is none in e */
        ACT_SIDE slope[j] = v_mul(v_mirror(v_div(e[j], v_add(unit, e[j])), x[j]), act_one(x[j]));
    if (want.value) {
        ACT_SIDE u[j] = v_mul(e[j], back);
        act_polynomial(count, c, nrg_log1p_c, 8, 0x1p-64f, u);
        ACT_SIDE value[j] = v_fma(e[j], c[j], v_relu(x[j]));
    }
}

/* As SiLU, of α·x with what rounding takes from it. α ends where its range does (operands/activation.h): the cut leaves all
 * that does not round to 0 to the left. */
NRG_INLINE void act_gelu_quick(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    const vf magic = v_set1(NRG_EXP_MAGIC), by = v_set1(want.alpha);
    vf t[V_ACT], h[V_ACT], rest[V_ACT], z[V_ACT], n[V_ACT], r[V_ACT], low[V_ACT], e[V_ACT];
    act_least(count, t, x, v_set1(128 / want.alpha), want.slope);
    ACT_SIDE h[j] = v_mul(by, t[j]);
    ACT_SIDE rest[j] = v_fms(by, t[j], h[j]);
    ACT_SIDE z[j] = v_fma(h[j], v_set1(-NRG_LOG2_E), magic);
    ACT_SIDE n[j] = v_sub(z[j], magic);
    ACT_SIDE r[j] = v_fma(n[j], v_set1(NRG_LN2_HI), h[j]);
    ACT_SIDE low[j] = v_fma(n[j], v_set1(NRG_LN2_LO), rest[j]);
    ACT_SIDE r[j] = v_add(r[j], low[j]);
    act_polynomial(count, e, nrg_exp_c, 6, NRG_UNIT, r);
    ACT_SIDE e[j] = v_scale2(e[j], z[j]);
    if (want.slope)
        act_gated_slope(count, x, e, NRG_UNIT, h, rest, slope);
    if (want.value)
        act_gated_value(count, x, t, e, NRG_UNIT, value);
}

/* The floats beside 3: x ≥ 3 and x ≤ -3 as comparisons that a NaN fails. */
#define NRG_BELOW_3 0x1.7ffffep1f

NRG_INLINE void act_hard_sigmoid(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    if (want.slope)
        ACT_SIDE
        {
            const vf sixth = v_mul(act_one(x[j]), v_set1(NRG_SIXTH));
            slope[j] = v_select(v_lt(v_set1(NRG_BELOW_3), v_abs(x[j])), v_zero(), sixth);
        }
    if (want.value)
        ACT_SIDE
        {
            const vf p = v_min(v_set1(6), v_relu(v_add(x[j], v_set1(3))));
            value[j] = v_mul(p, v_set1(NRG_SIXTH));
        }
}

/* t ≥ -3, so that nothing is to be cut off t + 3 at 0. */
NRG_INLINE void act_hard_swish(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    if (want.slope)
        ACT_SIDE
        {
            const vf inner = v_fma(x[j], v_set1(NRG_THIRD), v_set1(0.5f));
            const vf left = v_select(v_lt(x[j], v_set1(-NRG_BELOW_3)), v_zero(), inner);
            slope[j] = v_select(v_lt(v_set1(NRG_BELOW_3), x[j]), v_set1(1), left);
        }
    if (want.value)
        ACT_SIDE
        {
            const vf t = v_max(v_set1(-3), x[j]);
            value[j] = v_mul(t, v_mul(v_min(v_set1(6), v_add(t, v_set1(3))), v_set1(NRG_SIXTH)));
        }
}

NRG_INLINE void act_leaky_relu(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    const vf by = v_set1(want.alpha);
    if (want.slope)
        ACT_SIDE slope[j] = v_select(v_lt(v_zero(), x[j]), act_one(x[j]), v_mul(act_one(x[j]), by));
    if (want.value)
        ACT_SIDE value[j] = v_mul_unless_positive(x[j], by);
}

/* e^-t of t of either sign, as that of |t| with its two halves: times 2^64 on the left and 2^-64 on the right, so that powers
 * remain numbers; what undoes it is `back`, and rounds to subnormals or overflows. */
NRG_INLINE void act_power(int count, vf *p, vf *back, const vf *x, const vf *z)
{
    const vf large = v_set1(0x1p64f), small = v_set1(0x1p-64f);
    ACT_SIDE p[j] = v_scale2(v_select(v_negative(x[j]), large, small), z[j]);
    ACT_SIDE back[j] = v_select(v_negative(x[j]), small, large);
}

/* -x between two ends; a NaN comes through. */
NRG_INLINE void act_opposite(int count, vf *t, const vf *x, float least, float most)
{
    ACT_SIDE t[j] = v_min(v_set1(most), v_max(v_set1(least), v_sub(v_zero(), x[j])));
}

NRG_INLINE void act_exp(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    vf t[V_ACT], z[V_ACT], r[V_ACT], e[V_ACT], p[V_ACT], back[V_ACT];
    act_opposite(count, t, x, -90, 110);
    act_reduce(count, z, r, t);
    act_polynomial(count, e, nrg_exp_c, 6, 1, r);
    act_power(count, p, back, x, z);
    ACT_SIDE e[j] = v_mul(v_mul(e[j], p[j]), back[j]);
    if (want.slope)
        ACT_SIDE slope[j] = e[j];
    if (want.value)
        ACT_SIDE value[j] = e[j];
}

/* 2^n·(1 + m) - 1, halved on the way: 2^128 is no number. On the left 2^n may become 0, where -1 is left. */
NRG_INLINE void act_expm1(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    const vf half = v_set1(0.5f);
    vf t[V_ACT], z[V_ACT], r[V_ACT], m[V_ACT], p[V_ACT];
    act_opposite(count, t, x, -88.8f, want.slope ? 110 : 30);
    act_reduce(count, z, r, t);
    act_exp_less_one(count, m, r);
    if (want.slope) {
        vf back[V_ACT];
        act_power(count, p, back, x, z);
        ACT_SIDE slope[j] = v_mul(v_fma(p[j], m[j], p[j]), back[j]);
        ACT_SIDE p[j] = v_mul(p[j], v_mul(back[j], half));
    } else {
        ACT_SIDE p[j] = v_scale2(half, z[j]);
    }
    if (want.value) {
        ACT_SIDE p[j] = v_fma(p[j], m[j], v_sub(p[j], half));
        ACT_SIDE value[j] = v_select(v_lt(v_abs(x[j]), v_set1(0x1p-30f)), x[j], v_add(p[j], p[j]));
    }
}

NRG_INLINE void act_elu(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    const vf one = v_set1(1), by = v_set1(want.alpha), back = v_set1(0x1p-64f);
    vf t[V_ACT], z[V_ACT], r[V_ACT], m[V_ACT], p[V_ACT];
    act_magnitude(count, t, x, want.slope ? 125 : 30, 1);
    act_reduce(count, z, r, t);
    act_exp_less_one(count, m, r);
    if (want.slope) {
        ACT_SIDE p[j] = v_scale2(v_set1(0x1p64f), z[j]);
        ACT_SIDE
        {
            const vf left = v_mul(v_mul(v_fma(p[j], m[j], p[j]), by), back);
            slope[j] = v_select(v_lt(v_zero(), x[j]), one, left);
        }
        ACT_SIDE p[j] = v_mul(p[j], back);
    } else {
        ACT_SIDE p[j] = v_scale2(one, z[j]);
    }
    if (want.value) {
        ACT_SIDE p[j] = v_fnma(p[j], m[j], v_sub(one, p[j]));
        ACT_SIDE value[j] = v_select(v_negative(x[j]), v_mul(p[j], v_set1(-want.alpha)), x[j]);
    }
}

/* mish: left of -1/8, with w = e^x: x·w·(2 + w)/(2 + w·(2 + w)); right of it, with w = e^-x, x less x·w·2·w/(1 + 2·w·(1 + w)).
 * What rounding took from d comes off the factor 2 + w, of which it is 2/3 to all: 2.9 ulp, and 3.4 without. tw = t·w, times
 * 2^64. */
#define ACT_MISH_EDGE -0.125f

NRG_INLINE vf act_mish_value(vf x, vf w, vf tw)
{
    const vf zero = v_zero(), one = v_set1(1), tw2 = v_add(tw, tw);
    const vm left = v_lt(x, v_set1(ACT_MISH_EDGE));
    const vf end = v_select(left, v_set1(2), one), factor = v_select(left, w, v_add(w, w)), sum = v_add(end, w);
    const vf d = v_fma(factor, sum, end), share = v_select(left, v_set1(0.75f), zero), rest = v_fma(factor, sum, v_sub(end, d));
    const vf lost = v_fma(v_select(left, tw, tw2), v_fnma(share, rest, w), v_select(left, tw2, zero));
    return v_copysign(v_sub(v_select(left, zero, x), v_div(lost, v_mul(d, v_set1(0x1p64f)))), x);
}

/* Its slope: both quotients have (a·d - b)/d², where d² = v² + 2·end·v + end² rounds no more than d does. e = w·2^64. */
NRG_INLINE vf act_mish_slope(vf x, vf e, vf w, vf tw)
{
    const vf zero = v_zero(), one = v_set1(1), e2 = v_add(e, e);
    const vm left = v_lt(x, v_set1(ACT_MISH_EDGE));
    const vf end = v_select(left, v_set1(2), one), factor = v_select(left, w, v_add(w, w)), sum = v_add(end, w);
    const vf d = v_fma(factor, sum, end), a = v_fma(v_select(left, e, e2), w, v_select(left, e2, zero));
    const vf b = v_mul(v_select(left, tw, v_mul(tw, w)), v_set1(4));
    const vf v = v_mul(factor, sum), square = v_fma(v, v_add(v, v_add(end, end)), v_mul(end, end));
    const vf fall = v_div(v_fms(a, d, v_fma(b, w, b)), v_mul(square, v_set1(0x1p64f)));
    return v_select(left, fall, v_sub(one, fall));
}

/* The product with w = 2^n·(1 + m) rounds once. */
NRG_INLINE void act_mish(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    vf t[V_ACT], z[V_ACT], r[V_ACT], m[V_ACT], p[V_ACT], e[V_ACT], w[V_ACT], tw[V_ACT];
    ACT_SIDE t[j] = v_min(v_set1(110), v_select(v_lt(x[j], v_set1(ACT_MISH_EDGE)), v_sub(v_zero(), x[j]), x[j]));
    act_reduce(count, z, r, t);
    act_exp_less_one(count, m, r);
    ACT_SIDE p[j] = v_scale2(v_set1(0x1p64f), z[j]);
    ACT_SIDE e[j] = v_fma(p[j], m[j], p[j]);
    ACT_SIDE w[j] = v_mul(e[j], v_set1(0x1p-64f));
    ACT_SIDE tw[j] = v_mul(t[j], p[j]);
    ACT_SIDE tw[j] = v_fma(tw[j], m[j], tw[j]);
    if (want.slope)
        ACT_SIDE slope[j] = act_mish_slope(x[j], e[j], w[j], tw[j]);
    if (want.value)
        ACT_SIDE value[j] = act_mish_value(x[j], w[j], tw[j]);
}

NRG_INLINE void act_softsign(int count, act_want want, const vf *x, vf *value, vf *slope)
{
    vf t[V_ACT], d[V_ACT];
    act_magnitude(count, t, x, 0x1p80f, 1);
    ACT_SIDE d[j] = v_add(v_set1(1), t[j]);
    if (want.slope)
        ACT_SIDE
        {
            const vf q = v_div(v_set1(1), d[j]);
            slope[j] = v_mul(q, q);
        }
    /* half of them by the divider, and half beside it: 433 ns for 4096 (AVX-512), where the divider alone takes 755, v_part_of
     * alone 495, and one division in four vectors 456 */
    if (want.value)
        ACT_SIDE value[j] = v_copysign(j % 2 ? v_part_of(t[j], d[j]) : v_div(t[j], d[j]), x[j]);
}

/* Vectors 0 to count of a step. g is a constant. */
NRG_INLINE void act_apply_side(int count, nrg_activation g, act_want want, const vf *x, vf *value, vf *slope)
{
    switch (g) {
#define ACTIVATION(name, function, values, slopes, both, bf16)                                                                   \
    case NRG_ACT_##name:                                                                                                         \
        act_##function(count, want, x, value, slope);                                                                            \
        break;
#include "activations.def"
    }
}

/* A step: g and, if slope is not NULL, g′. g and that are constants, and g has no parameter. */
NRG_INLINE void act_apply(nrg_activation g, const vf *x, vf *value, vf *slope)
{
    const act_want want = {1, slope != NULL, 0};
    NRG_UNROLL
    for (int j = 0; j < V_ACT; j += V_ACT_SIDE)
        act_apply_side(V_ACT_SIDE, g, want, x + j, value + j, slope ? slope + j : NULL);
}

#endif
