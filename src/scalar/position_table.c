/* Tables of cosines and sines, the reference: angles in turns, whose whole part is taken away exactly.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../job/rope.h"
#include "element.h"

/* (2π)^k/k! with alternating signs: sin 2πt = t·S(t²), cos 2πt = C(t²). For |t| ≤ 1/8 what is left out is below 2^-44. */
static const double S[] = {
    0x1.921fb54442d18p+2, -0x1.4abbce625be53p+5, 0x1.466bc6775aae2p+6, -0x1.32d2cce62bd86p+6,
    0x1.50783487ee782p+5, -0x1.e3074fde8871fp+3, 0x1.e8f434d018d63p+1,
};
static const double C[] = {
    1.0,
    -0x1.3bd3cc9be45dep+4,
    0x1.03c1f081b5ac4p+6,
    -0x1.55d3c7e3cbffap+6,
    0x1.e1f506891babbp+5,
    -0x1.a6d1f2a204a8cp+4,
    0x1.f9d38a3763cc3p+2,
    -0x1.b6e24f44b128fp+0,
};

static double polynomial(const double *c, int terms, double u)
{
    double sum = c[terms - 1];
    for (int k = terms - 2; k >= 0; k--)
        sum = fma(sum, u, c[k]);
    return sum;
}

typedef struct rotated {
    float cosine, sine;
} rotated;

static rotated turn(const nrg_position_table_job *job, double position, size_t pair)
{
    /* turns = high + low exactly enough: position·frequency in two parts, less the nearest number of quarters */
    const double high = position * job->high[pair];
    const double low = fma(position, job->low[pair], fma(position, job->high[pair], -high));
    const double shifted = fma(high, 4, 0x1.8p52), quarters = shifted - 0x1.8p52;
    const double t = fma(quarters, -0.25, high) + low;
    const double sine = t * polynomial(S, 7, t * t), cosine = polynomial(C, 8, t * t);
    uint64_t n;
    memcpy(&n, &shifted, sizeof n);
    double c = n & 1 ? sine : cosine, s = n & 1 ? cosine : sine;
    if ((n + 1) & 2)
        c = -c;
    if (n & 2)
        s = -s;
    return (rotated){(float)(c * job->magnitude), (float)(s * job->magnitude)};
}

/* Which of the four positions of a token turns a pair, as ggml has it; or transformers. A sector is a round of pairs that has all
 * sections: it repeats where these are fewer than the pairs. */
static size_t axis_of(nrg_rope_mode mode, const int sections[4], size_t pair)
{
    size_t length[4], sector = 0;
    for (int i = 0; i < 4; i++)
        sector += length[i] = (size_t)sections[i];
    if (mode == NRG_ROPE_IMROPE_TIME) /* no rounds: what is left, however much, is time */
        return pair / 3 < length[pair % 3] ? pair % 3 : 0;
    size_t place = pair % sector;
    /* time, height and width take turns; where the one whose turn it is has no pair left, it is the fourth */
    if (mode == NRG_ROPE_IMROPE)
        return place / 3 < length[place % 3] ? place % 3 : 3;
    size_t axis = 0;
    for (; axis < 3 && place >= length[axis]; axis++)
        place -= length[axis];
    return axis;
}

static double position_of(const nrg_position_table_job *job, size_t row, size_t pair)
{
    if (!job->positions)
        return (double)job->first + (double)row;
    const int has_axes = job->mode != NRG_ROPE_NORMAL && job->mode != NRG_ROPE_NEOX;
    const size_t axis = has_axes ? axis_of(job->mode, job->sections, pair) : 0;
    return ((const int32_t *)((const char *)job->positions + axis * job->positions_stride))[row];
}

static void position_table(const nrg_position_table_job *job, nrg_dtype dtype)
{
    const size_t pairs = job->pairs;
    for (size_t row = job->begin; row < job->end; row++) {
        char *to = job->table + row * job->table_stride;
        for (size_t p = 0; p < pairs; p++) {
            const rotated value = turn(job, position_of(job, row, p), p);
            if (job->order == NRG_TABLE_INTERLEAVED) {
                store(to, 2 * p, dtype, value.sine);
                if (2 * p + 1 < job->dim)
                    store(to, 2 * p + 1, dtype, value.cosine);
            } else {
                const int sines_first = job->order == NRG_TABLE_SIN_COS;
                store(to, p, dtype, sines_first ? value.sine : value.cosine);
                store(to, pairs + p, dtype, sines_first ? value.cosine : value.sine);
            }
        }
    }
}

SCALAR_KERNELS(position_table, position_table, position_table)
