/* Tables of cosines and sines over the vectors of a path's vec.h. The arithmetic is that of src/scalar/position_table.c.
 *
 * Two vectors of doubles at a time make one of floats. The whole turns go by adding and subtracting 1.5·2^52 quarters, which
 * rounds; the fraction that is left is exact, whatever the position.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ROPE_POSITION_TABLE_H
#define NRG_TEMPLATE_ROPE_POSITION_TABLE_H

#include "rope_heads.h"

/* sin(2πt)/t and cos(2πt) by powers of t², the highest first. */
static const double turn_sine[7] = {0x1.e8f434d018d63p+1, -0x1.e3074fde8871fp+3, 0x1.50783487ee782p+5, -0x1.32d2cce62bd86p+6,
                                    0x1.466bc6775aae2p+6, -0x1.4abbce625be53p+5, 0x1.921fb54442d18p+2};
static const double turn_cosine[8] = {-0x1.b6e24f44b128fp+0, 0x1.f9d38a3763cc3p+2, -0x1.a6d1f2a204a8cp+4, 0x1.e1f506891babbp+5,
                                      -0x1.55d3c7e3cbffap+6, 0x1.03c1f081b5ac4p+6, -0x1.3bd3cc9be45dep+4, 1};

NRG_INLINE void turn_half(vd *cosine, vd *sine, vd position, vd high, vd low, vd magnitude)
{
    const vd magic = vd_set1(0x1.8p52);
    vd whole = vd_mul(position, high);
    /* the product's rounding error is position·high - whole, negated here to spare a negation */
    vd error = vd_sub(vd_zero(), whole);
    vd rest = vd_fma(position, low, vd_fma(position, high, error));
    vd shifted = vd_fma(whole, vd_set1(4), magic), quarters = vd_sub(shifted, magic);
    vd t = vd_add(vd_fma(quarters, vd_set1(-0.25), whole), rest), u = vd_mul(t, t);

    vd s = vd_set1(turn_sine[0]), c = vd_set1(turn_cosine[0]);
    NRG_UNROLL
    for (int i = 1; i < 7; i++)
        s = vd_fma(s, u, vd_set1(turn_sine[i]));
    NRG_UNROLL
    for (int i = 1; i < 8; i++)
        c = vd_fma(c, u, vd_set1(turn_cosine[i]));
    s = vd_mul(t, s);
    vd_quarter_turns(&c, &s, shifted);
    *cosine = vd_mul(c, magnitude);
    *sine = vd_mul(s, magnitude);
}

/* VN numbers, of which the first n exist. */
NRG_INLINE void load_numbers(vd v[2], const double *p, size_t n)
{
    if (n == VN) {
        v[0] = vd_ld(p);
        v[1] = vd_ld(p + VN / 2);
        return;
    }
    double padded[VN] = {0};
    memcpy(padded, p, n * sizeof *p);
    v[0] = vd_ld(padded);
    v[1] = vd_ld(padded + VN / 2);
}

/* Which of the four positions of a token turns a pair, as ggml has it: sections repeat where they are fewer than pairs.
 * Interleaved pairs whose section is over take the fourth position; or, as in transformers, time, and nothing repeats. */
static inline size_t position_axis(nrg_rope_mode mode, const int sections[4], size_t pair)
{
    const size_t time = (size_t)sections[0], height = (size_t)sections[1], width = (size_t)sections[2];
    const size_t sector = pair % (time + height + width + (size_t)sections[3]);
    const int is_time = mode == NRG_ROPE_IMROPE_TIME;
    if (is_time || mode == NRG_ROPE_IMROPE) {
        const size_t place = is_time ? pair : sector, axis = place % 3;
        return place < 3 * (size_t)sections[axis] ? axis : is_time ? 0 : 3;
    }
    return sector < time ? 0 : sector < time + height ? 1 : sector < time + height + width ? 2 : 3;
}

/* Positions of n pairs of a row. */
NRG_INLINE void load_positions(vd v[2], const nrg_position_table_job *job, size_t row, size_t pair, size_t n)
{
    double at[VN] = {0};
    for (size_t i = 0; i < n; i++) {
        const size_t axis = position_axis(job->mode, job->sections, pair + i);
        at[i] = ((const int32_t *)((const char *)job->positions + axis * job->positions_stride))[row];
    }
    v[0] = vd_ld(at);
    v[1] = vd_ld(at + VN / 2);
}

NRG_INLINE void store_rotated(const nrg_position_table_job *job, char *to, size_t pair, size_t n, vf cosine, vf sine, nrg_dtype D)
{
    if (job->order == NRG_TABLE_INTERLEAVED) {
        const vm even = v_lt(rope_alternate(), v_zero());
        vf low = v_select(even, v_twice_low(sine), v_twice_low(cosine));
        vf high = v_select(even, v_twice_high(sine), v_twice_high(cosine));
        store_step(&low, 1, to, 2 * pair, lanes_at(2 * pair, job->dim), D, 0);
        if (2 * pair + VN < job->dim)
            store_step(&high, 1, to, 2 * pair + VN, lanes_at(2 * pair + VN, job->dim), D, 0);
        return;
    }
    const int sines_first = job->order == NRG_TABLE_SIN_COS;
    store_step(sines_first ? &sine : &cosine, 1, to, pair, n, D, 0);
    store_step(sines_first ? &cosine : &sine, 1, to, job->pairs + pair, n, D, 0);
}

NRG_INLINE void position_table_of(const nrg_position_table_job *job, nrg_dtype D)
{
    const nrg_position_table_job j = *job;
    const int sections = j.positions && nrg_rope_has_sections(j.mode);
    const vd magnitude = vd_set1(j.magnitude);
    for (size_t row = j.begin; row < j.end; row++) {
        char *to = j.table + row * j.table_stride;
        const double one = j.positions ? (double)j.positions[row] : (double)j.first + (double)row;
        vd position[2] = {vd_set1(one), vd_set1(one)};
        for (size_t p = 0; p < j.pairs; p += VN) {
            const size_t n = lanes_at(p, j.pairs);
            vd high[2], low[2], cosine[2], sine[2];
            load_numbers(high, j.high + p, n);
            load_numbers(low, j.low + p, n);
            if (sections)
                load_positions(position, &j, row, p, n);
            NRG_UNROLL
            for (int i = 0; i < 2; i++)
                turn_half(&cosine[i], &sine[i], position[i], high[i], low[i], magnitude);
            store_rotated(&j, to, p, n, v_from_vd(cosine[0], cosine[1]), v_from_vd(sine[0], sine[1]), D);
        }
    }
}

/* One copy for 16-bit elements (in a small path for all): to store them takes little of the time. */
static __attribute__((noinline)) void position_table_half(const nrg_position_table_job *job, nrg_dtype D)
{
    position_table_of(job, D);
}

NRG_INLINE void position_table(const nrg_position_table_job *job, nrg_dtype D)
{
    if (D == NRG_F32 && !V_SMALL)
        position_table_of(job, NRG_F32);
    else
        position_table_half(job, D);
}

NRG_PATH_KERNELS(position_table, position_table, position_table)

#endif
