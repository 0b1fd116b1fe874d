/* The activations g of a step of vectors and, where slope is not NULL, their slopes g′. The arithmetic is that of
 * src/scalar/activation.c, which says what it is for; docs/ops/activation.md has the formulas. slope is NULL or not where a
 * function is called, so that nothing of it is left in the loops that do without.
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

/* What follows is done for vector j of the step; or of the first `count` of them, which are side by side. */
#define ACT_EACH NRG_UNROLL for (int j = 0; j < V_ACT; j++)
#define ACT_SIDE NRG_UNROLL for (int j = 0; j < count; j++)

/* min(|x|, end). With keep_nan a NaN in x comes through, which is why the constant is the first operand. */
NRG_INLINE void act_magnitude(int count, vf *t, const vf *x, float end, int keep_nan)
{
    if (keep_nan)
        ACT_SIDE t[j] = v_min(v_set1(end), v_abs(x[j]));
    else
        ACT_SIDE t[j] = v_least_magnitude(v_set1(end), x[j]);
}

/* max(x, 0), which is -0 for all x < 0: less a zero, it keeps the sign that g has there. */
NRG_INLINE vf act_right_part(vf x) { return v_max(v_set1(-0.0f), x); }

/* 1; NaN where x is. */
NRG_INLINE vf act_one(vf x) { return v_max(v_set1(1), v_min(v_set1(1), x)); }

/* times: a power of two, which goes into the coefficients */
NRG_INLINE void act_polynomial(int count, vf *sum, const float *c, int degree, float times, const vf *x)
{
    ACT_SIDE sum[j] = v_set1(c[degree] * times);
    NRG_UNROLL
    for (int i = degree - 1; i >= 0; i--)
        ACT_SIDE sum[j] = v_fma(sum[j], x[j], v_set1(c[i] * times));
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

NRG_INLINE void act_identity(int count, const vf *x, vf *out, vf *slope)
{
    if (slope)
        ACT_SIDE slope[j] = act_one(x[j]);
    ACT_SIDE out[j] = x[j];
}

NRG_INLINE void act_relu(int count, const vf *x, vf *out, vf *slope)
{
    if (slope)
        ACT_SIDE slope[j] = v_select(v_lt(v_zero(), x[j]), act_one(x[j]), v_sub(act_one(x[j]), v_set1(1)));
    ACT_SIDE out[j] = v_relu(x[j]);
}

NRG_INLINE void act_relu2(int count, const vf *x, vf *out, vf *slope)
{
    ACT_SIDE
    {
        vf p = v_relu(x[j]);
        if (slope)
            slope[j] = v_add(p, p);
        out[j] = v_mul(p, p);
    }
}

NRG_INLINE void act_sigmoid(int count, const vf *x, vf *out, vf *slope)
{
    vf t[V_ACT], e[V_ACT], a[V_ACT];
    act_magnitude(count, t, x, 110, 1);
    act_decay(count, e, t, NRG_UNIT, 1);
    ACT_SIDE a[j] = v_div(e[j], v_add(v_set1(NRG_UNIT), e[j]));
    if (slope)
        ACT_SIDE slope[j] = v_fnma(a[j], a[j], a[j]);
    ACT_SIDE out[j] = v_mirror(a[j], x[j]);
}

NRG_INLINE void act_tanh(int count, const vf *x, vf *out, vf *slope)
{
    const vf one = v_set1(0x1p64f);
    vf t[V_ACT], z[V_ACT], r[V_ACT], m[V_ACT], p[V_ACT], above[V_ACT], below[V_ACT];
    ACT_SIDE t[j] = v_add(x[j], x[j]);
    act_magnitude(count, t, t, 110, 1);
    act_reduce(count, z, r, t);
    act_exp_less_one(count, m, r);
    ACT_SIDE p[j] = v_scale2(one, z[j]);
    ACT_SIDE above[j] = v_fnma(p[j], m[j], v_sub(one, p[j]));
    ACT_SIDE below[j] = v_fma(p[j], m[j], v_add(one, p[j]));
    if (slope)
        ACT_SIDE
        {
            vf a = v_div(v_mul(v_fma(p[j], m[j], p[j]), v_set1(4)), below[j]);
            slope[j] = v_fnma(v_mul(a, v_set1(0.25f)), a, a);
        }
    ACT_SIDE out[j] = v_copysign(v_div(above[j], below[j]), x[j]);
}

/* x·σ(±h) for t = |x|, cut off, and e = unit·e^-h. rise + rise_rest: t·h′, needed for a slope; the rest may be NULL. */
NRG_INLINE void act_gated(int count, const vf *x, const vf *t, const vf *e, float unit, const vf *rise, const vf *rise_rest,
                          vf *out, vf *slope)
{
    const vf one = v_set1(1), back = v_set1(0x1p-64f);
    vf d[V_ACT];
    ACT_SIDE d[j] = v_add(v_set1(unit), e[j]);
    if (slope) {
        vf q[V_ACT], other[V_ACT], left[V_ACT];
        ACT_SIDE q[j] = v_div(e[j], v_fma(e[j], back, v_set1(0x1p-64f * unit)));
        ACT_SIDE other[j] = v_fnma(q[j], back, one);
        ACT_SIDE left[j] = v_fnma(rise[j], other[j], one);
        if (rise_rest)
            ACT_SIDE
            {
                vf rest = v_fnma(rise[j], other[j], v_sub(one, left[j]));
                left[j] = v_fma(q[j], left[j], v_mul(q[j], v_fnma(rise_rest[j], other[j], rest)));
            }
        else
            ACT_SIDE left[j] = v_mul(q[j], left[j]);
        ACT_SIDE left[j] = v_mul(left[j], back);
        ACT_SIDE slope[j] = v_mirror(left[j], x[j]);
    }
    ACT_SIDE out[j] = v_sub(act_right_part(x[j]), v_div(v_mul(t[j], e[j]), d[j]));
}

NRG_INLINE void act_silu(int count, const vf *x, vf *out, vf *slope)
{
    vf t[V_ACT], e[V_ACT];
    act_magnitude(count, t, x, 110, slope != NULL);
    act_decay(count, e, t, NRG_UNIT, 0);
    act_gated(count, x, t, e, NRG_UNIT, t, NULL, out, slope);
}

NRG_INLINE void act_gelu_tanh(int count, const vf *x, vf *out, vf *slope)
{
    const vf magic = v_set1(NRG_EXP_MAGIC), gamma = v_set1(NRG_U_GAMMA_HI);
    vf t[V_ACT], w[V_ACT], rest[V_ACT], z[V_ACT], n[V_ACT], r[V_ACT], e[V_ACT], rise[V_ACT];
    act_magnitude(count, t, x, 11, slope != NULL);
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
    if (slope) {
        const vf c1 = v_set1(NRG_U_C1), c3 = v_set1(NRG_U_3_C3);
        ACT_SIDE r[j] = v_mul(t[j], t[j]);
        ACT_SIDE w[j] = v_fma(c3, r[j], c1);
        ACT_SIDE rise[j] = v_mul(t[j], w[j]);
        ACT_SIDE rest[j] = v_fma(c3, r[j], v_sub(c1, w[j]));
        ACT_SIDE rest[j] = v_fma(c3, v_fms(t[j], t[j], r[j]), rest[j]);
        ACT_SIDE rest[j] = v_fma(t[j], rest[j], v_fms(t[j], w[j], rise[j]));
    }
    act_gated(count, x, t, e, NRG_U_UNIT, rise, rest, out, slope);
}

NRG_INLINE void act_gelu(int count, const vf *x, vf *out, vf *slope)
{
    const vf magic = v_set1(NRG_EXP_MAGIC);
    vf t[V_ACT], half[V_ACT], h[V_ACT], rest[V_ACT], z[V_ACT], r[V_ACT], m[V_ACT], q[V_ACT], above[V_ACT], below[V_ACT],
        sum[V_ACT];
    act_magnitude(count, t, x, NRG_GELU_END, slope != NULL);
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
    if (slope)
        ACT_SIDE
        {
            vf missing = v_mul(h[j], v_set1(NRG_GELU_LN2));
            vf more = v_fnma(missing, v_add(v_set1(1), m[j]), m[j]);
            vf a = v_fnma(v_mul(t[j], v_set1(NRG_GELU_PHI)), below[j], v_add(q[j], above[j]));
            a = v_scale2(v_fma(a, more, a), z[j]);
            slope[j] = v_mirror(v_div(a, below[j]), x[j]);
        }
    ACT_SIDE sum[j] = v_fma(t[j], q[j], v_mul(t[j], above[j]));
    ACT_SIDE sum[j] = v_mul(sum[j], m[j]);
    ACT_SIDE sum[j] = v_fma(t[j], above[j], sum[j]);
    ACT_SIDE sum[j] = v_fma(t[j], q[j], sum[j]);
    ACT_SIDE sum[j] = v_scale2(sum[j], z[j]);
    ACT_SIDE out[j] = v_sub(act_right_part(x[j]), v_div(sum[j], below[j]));
}

NRG_INLINE void act_softplus(int count, const vf *x, vf *out, vf *slope)
{
    const vf unit = v_set1(0x1p64f), back = v_set1(0x1p-64f);
    vf t[V_ACT], e[V_ACT], u[V_ACT], c[V_ACT];
    act_magnitude(count, t, x, 110, slope != NULL);
    act_decay(count, e, t, 0x1p64f, slope != NULL);
    ACT_SIDE u[j] = v_mul(e[j], back);
    act_polynomial(count, c, nrg_log1p_c, 8, 0x1p-64f, u);
    if (slope)
        ACT_SIDE slope[j] = v_mirror(v_div(e[j], v_add(unit, e[j])), x[j]);
    ACT_SIDE out[j] = v_fma(e[j], c[j], v_relu(x[j]));
}

/* As SiLU, of α·x with what rounding takes from it. α ends where its range does (operands/activation.h): the cut leaves all
 * that does not round to 0 to the left. */
NRG_INLINE void act_gelu_quick(int count, float alpha, const vf *x, vf *out, vf *slope)
{
    const vf magic = v_set1(NRG_EXP_MAGIC), by = v_set1(alpha);
    vf t[V_ACT], h[V_ACT], rest[V_ACT], z[V_ACT], n[V_ACT], r[V_ACT], low[V_ACT], e[V_ACT];
    act_magnitude(count, t, x, 128 / alpha, slope != NULL);
    ACT_SIDE h[j] = v_mul(by, t[j]);
    ACT_SIDE rest[j] = v_fms(by, t[j], h[j]);
    ACT_SIDE z[j] = v_fma(h[j], v_set1(-NRG_LOG2_E), magic);
    ACT_SIDE n[j] = v_sub(z[j], magic);
    ACT_SIDE r[j] = v_fma(n[j], v_set1(NRG_LN2_HI), h[j]);
    ACT_SIDE low[j] = v_fma(n[j], v_set1(NRG_LN2_LO), rest[j]);
    ACT_SIDE r[j] = v_add(r[j], low[j]);
    act_polynomial(count, e, nrg_exp_c, 6, NRG_UNIT, r);
    ACT_SIDE e[j] = v_scale2(e[j], z[j]);
    act_gated(count, x, t, e, NRG_UNIT, h, rest, out, slope);
}

/* The floats beside 3: x ≥ 3 and x ≤ -3 as comparisons that a NaN fails. */
#define NRG_BELOW_3 0x1.7ffffep1f

NRG_INLINE void act_hard_sigmoid(int count, const vf *x, vf *out, vf *slope)
{
    if (slope)
        ACT_SIDE
        {
            const vf sixth = v_mul(act_one(x[j]), v_set1(NRG_SIXTH));
            slope[j] = v_select(v_lt(v_set1(NRG_BELOW_3), v_abs(x[j])), v_zero(), sixth);
        }
    ACT_SIDE
    {
        const vf p = v_min(v_set1(6), v_relu(v_add(x[j], v_set1(3))));
        out[j] = v_mul(p, v_set1(NRG_SIXTH));
    }
}

/* t ≥ -3, so that nothing is to be cut off t + 3 at 0. */
NRG_INLINE void act_hard_swish(int count, const vf *x, vf *out, vf *slope)
{
    if (slope)
        ACT_SIDE
        {
            const vf inner = v_fma(x[j], v_set1(NRG_THIRD), v_set1(0.5f));
            const vf left = v_select(v_lt(x[j], v_set1(-NRG_BELOW_3)), v_zero(), inner);
            slope[j] = v_select(v_lt(v_set1(NRG_BELOW_3), x[j]), v_set1(1), left);
        }
    ACT_SIDE
    {
        const vf t = v_max(v_set1(-3), x[j]);
        out[j] = v_mul(t, v_mul(v_min(v_set1(6), v_add(t, v_set1(3))), v_set1(NRG_SIXTH)));
    }
}

NRG_INLINE void act_leaky_relu(int count, float alpha, const vf *x, vf *out, vf *slope)
{
    const vf by = v_set1(alpha);
    ACT_SIDE
    {
        if (slope)
            slope[j] = v_select(v_lt(v_zero(), x[j]), act_one(x[j]), v_mul(act_one(x[j]), by));
        out[j] = v_mul_unless_positive(x[j], by);
    }
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

NRG_INLINE void act_exp(int count, const vf *x, vf *out, vf *slope)
{
    vf t[V_ACT], z[V_ACT], r[V_ACT], e[V_ACT], p[V_ACT], back[V_ACT];
    act_opposite(count, t, x, -90, 110);
    act_reduce(count, z, r, t);
    act_polynomial(count, e, nrg_exp_c, 6, 1, r);
    act_power(count, p, back, x, z);
    ACT_SIDE out[j] = v_mul(v_mul(e[j], p[j]), back[j]);
    if (slope)
        ACT_SIDE slope[j] = out[j];
}

/* 2^n·(1 + m) - 1, halved on the way: 2^128 is no number. On the left 2^n may become 0, where -1 is left. */
NRG_INLINE void act_expm1(int count, const vf *x, vf *out, vf *slope)
{
    const vf half = v_set1(0.5f);
    vf t[V_ACT], z[V_ACT], r[V_ACT], m[V_ACT], p[V_ACT];
    act_opposite(count, t, x, -88.8f, slope ? 110 : 30);
    act_reduce(count, z, r, t);
    act_exp_less_one(count, m, r);
    if (slope) {
        vf back[V_ACT];
        act_power(count, p, back, x, z);
        ACT_SIDE slope[j] = v_mul(v_fma(p[j], m[j], p[j]), back[j]);
        ACT_SIDE p[j] = v_mul(p[j], v_mul(back[j], half));
    } else {
        ACT_SIDE p[j] = v_scale2(half, z[j]);
    }
    ACT_SIDE p[j] = v_fma(p[j], m[j], v_sub(p[j], half));
    ACT_SIDE out[j] = v_select(v_lt(v_abs(x[j]), v_set1(0x1p-30f)), x[j], v_add(p[j], p[j]));
}

NRG_INLINE void act_elu(int count, float alpha, const vf *x, vf *out, vf *slope)
{
    const vf one = v_set1(1), by = v_set1(alpha), back = v_set1(0x1p-64f);
    vf t[V_ACT], z[V_ACT], r[V_ACT], m[V_ACT], p[V_ACT];
    act_magnitude(count, t, x, slope ? 125 : 30, 1);
    act_reduce(count, z, r, t);
    act_exp_less_one(count, m, r);
    if (slope) {
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
    ACT_SIDE p[j] = v_fnma(p[j], m[j], v_sub(one, p[j]));
    ACT_SIDE out[j] = v_select(v_negative(x[j]), v_mul(p[j], v_set1(-alpha)), x[j]);
}

/* Left of -1/8, with w = e^x: x·w·(2 + w)/(2 + w·(2 + w)); right of it, with w = e^-x, x less x·w·2·w/(1 + 2·w·(1 + w)). The
 * product with w = 2^n·(1 + m) rounds once. The slopes of both quotients are (a·d - b)/d², where d² = v² + 2·end·v + end² rounds
 * no more than d does. */
NRG_INLINE void act_mish(int count, const vf *x, vf *out, vf *slope)
{
    const vf zero = v_zero(), one = v_set1(1), unit = v_set1(0x1p64f), edge = v_set1(-0.125f);
    vf t[V_ACT], z[V_ACT], r[V_ACT], m[V_ACT], p[V_ACT], e[V_ACT], w[V_ACT], tw[V_ACT];
    ACT_SIDE t[j] = v_min(v_set1(110), v_select(v_lt(x[j], edge), v_sub(zero, x[j]), x[j]));
    act_reduce(count, z, r, t);
    act_exp_less_one(count, m, r);
    ACT_SIDE p[j] = v_scale2(unit, z[j]);
    ACT_SIDE e[j] = v_fma(p[j], m[j], p[j]);
    ACT_SIDE w[j] = v_mul(e[j], v_set1(0x1p-64f));
    ACT_SIDE tw[j] = v_mul(t[j], p[j]);
    ACT_SIDE tw[j] = v_fma(tw[j], m[j], tw[j]);
    ACT_SIDE
    {
        const vm left = v_lt(x[j], edge);
        const vf end = v_select(left, v_set1(2), one), twice = v_add(w[j], w[j]);
        const vf factor = v_select(left, w[j], twice), sum = v_add(end, w[j]), d = v_fma(factor, sum, end);
        const vf tw2 = v_add(tw[j], tw[j]);
        if (slope) {
            const vf e2 = v_add(e[j], e[j]);
            const vf a = v_fma(v_select(left, e[j], e2), w[j], v_select(left, e2, zero));
            const vf b = v_mul(v_select(left, tw[j], v_mul(tw[j], w[j])), v_set1(4));
            const vf v = v_mul(factor, sum), square = v_fma(v, v_add(v, v_add(end, end)), v_mul(end, end));
            const vf fall = v_div(v_fms(a, d, v_fma(b, w[j], b)), v_mul(square, unit));
            slope[j] = v_select(left, fall, v_sub(one, fall));
        }
        /* what rounding took from d comes off the factor 2 + w, of which it is 2/3 to all: 2.9 ulp, and 3.4 without */
        const vf share = v_select(left, v_set1(0.75f), zero), rest = v_fma(factor, sum, v_sub(end, d));
        const vf lost = v_fma(v_select(left, tw[j], tw2), v_fnma(share, rest, w[j]), v_select(left, tw2, zero));
        out[j] = v_copysign(v_sub(v_select(left, zero, x[j]), v_div(lost, v_mul(d, unit))), x[j]);
    }
}

NRG_INLINE void act_softsign(int count, const vf *x, vf *out, vf *slope)
{
    vf t[V_ACT], d[V_ACT];
    act_magnitude(count, t, x, 0x1p80f, 1);
    ACT_SIDE d[j] = v_add(v_set1(1), t[j]);
    if (slope)
        ACT_SIDE
        {
            const vf q = v_div(v_set1(1), d[j]);
            slope[j] = v_mul(q, q);
        }
    /* half of them by the divider, and half beside it: 433 ns for 4096 (AVX-512), where the divider alone takes 755, v_part_of
     * alone 495, and one division in four vectors 456 */
    ACT_SIDE out[j] = v_copysign(j % 2 ? v_part_of(t[j], d[j]) : v_div(t[j], d[j]), x[j]);
}

NRG_INLINE void act_apply_side(int count, nrg_activation g, float alpha, const vf *x, vf *out, vf *slope)
{
    switch (g) {
    case NRG_ACT_SIGMOID:
        act_sigmoid(count, x, out, slope);
        return;
    case NRG_ACT_SILU:
        act_silu(count, x, out, slope);
        return;
    case NRG_ACT_RELU:
        act_relu(count, x, out, slope);
        return;
    case NRG_ACT_RELU2:
        act_relu2(count, x, out, slope);
        return;
    case NRG_ACT_TANH:
        act_tanh(count, x, out, slope);
        return;
    case NRG_ACT_GELU:
        act_gelu(count, x, out, slope);
        return;
    case NRG_ACT_GELU_TANH:
        act_gelu_tanh(count, x, out, slope);
        return;
    case NRG_ACT_SOFTPLUS:
        act_softplus(count, x, out, slope);
        return;
    case NRG_ACT_GELU_QUICK:
        act_gelu_quick(count, alpha, x, out, slope);
        return;
    case NRG_ACT_HARD_SWISH:
        act_hard_swish(count, x, out, slope);
        return;
    case NRG_ACT_HARD_SIGMOID:
        act_hard_sigmoid(count, x, out, slope);
        return;
    case NRG_ACT_ELU:
        act_elu(count, alpha, x, out, slope);
        return;
    case NRG_ACT_LEAKY_RELU:
        act_leaky_relu(count, alpha, x, out, slope);
        return;
    case NRG_ACT_MISH:
        act_mish(count, x, out, slope);
        return;
    case NRG_ACT_EXP:
        act_exp(count, x, out, slope);
        return;
    case NRG_ACT_EXPM1:
        act_expm1(count, x, out, slope);
        return;
    case NRG_ACT_SOFTSIGN:
        act_softsign(count, x, out, slope);
        return;
    case NRG_ACT_IDENTITY:
        break;
    }
    act_identity(count, x, out, slope);
}

/* How many vectors go side by side: more of them where no division keeps the CPU busy meanwhile, and of the longest chain. */
NRG_INLINE int act_side(nrg_activation g, int is_backward)
{
    return g == NRG_ACT_SOFTPLUS || (g == NRG_ACT_GELU_QUICK && is_backward) ? V_ACT : V_ACT_SIDE;
}

/* A step. g is a constant where this is called, and has no parameter. */
NRG_INLINE void act_apply(nrg_activation g, const vf *x, vf *out, vf *slope)
{
    const int count = act_side(g, 0);
    NRG_UNROLL
    for (int j = 0; j < V_ACT; j += count)
        act_apply_side(count, g, 0, x + j, out + j, slope ? slope + j : NULL);
}

#endif
