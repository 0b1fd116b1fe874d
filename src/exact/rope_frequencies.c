/* The frequencies of positional encodings: θ of every pair, with all scalings, to some 90 bits. Runs once for a model, so it is
 * written for accuracy: 1 µs a pair.
 *
 * SPDX-License-Identifier: MIT */
#include "rope_frequencies.h"

#include <float.h>
#include <math.h>

#include "double_double.h"

/* The most turns a pair may make from one position to the next: k·θ/2π then has 2^49 whole turns, and a position table's double
 * arithmetic leaves their fraction exact. */
#define TURNS_MAX 0x1p18

static wide wide_reciprocal_power(wide log_base, double numerator, double denominator)
{
    return wide_exp(wide_minus(wide_mul(log_base, wide_div(wide_of(numerator), wide_of(denominator)))));
}

/* c(β) of the header. */
static wide correction(const nrg_rope_spec *s, double beta)
{
    const wide log_turns = wide_add(wide_log(beta), wide_log_two_pi);
    const wide turns = wide_add(wide_log((double)s->n_ctx_orig), wide_minus(log_turns));
    return wide_div(wide_mul(wide_of((double)s->n_dims), turns), wide_mul(wide_of(2), wide_log(s->freq_base)));
}

typedef struct ramp {
    wide low, width;
} ramp;

static ramp yarn_ramp(const nrg_rope_spec *s)
{
    wide low = correction(s, s->beta_fast), high = correction(s, s->beta_slow);
    if (!(s->yarn & NRG_ROPE_YARN_NO_TRUNCATE)) {
        low = wide_of(floor(low.high));
        high = wide_of(ceil(high.high));
    }
    if (low.high < 0)
        low = wide_of(0);
    if (high.high > (double)s->n_dims - 1)
        high = wide_of((double)s->n_dims - 1);
    const wide width = wide_add(high, wide_minus(low));
    return (ramp){low, width.high > 0.001 ? width : wide_of(0.001)};
}

/* θ_scaled · (1 - mix) + θ_unscaled · mix = θ_unscaled · (scale + mix · (1 - scale)) */
static wide yarn(const nrg_rope_spec *s, const ramp *r, size_t pair, wide theta)
{
    wide along = wide_div(wide_add(wide_of((double)pair), wide_minus(r->low)), r->width);
    if (along.high < 0)
        along = wide_of(0);
    if (along.high > 1)
        along = wide_of(1);
    const wide mix = wide_mul(wide_of(s->ext_factor), wide_add(wide_of(1), wide_minus(along)));
    const wide factor = wide_add(wide_of(s->freq_scale), wide_mul(mix, wide_sum(1, -s->freq_scale)));
    return wide_mul(theta, factor);
}

static wide llama3(const nrg_rope_spec *s, wide theta)
{
    const wide turns = wide_div(wide_mul(theta, wide_of(s->n_ctx_orig)), wide_two_pi), slow = wide_div(theta, wide_of(s->factor));
    if (turns.high < s->low_freq_factor)
        return slow;
    if (turns.high > s->high_freq_factor)
        return theta;
    const wide blend =
        wide_div(wide_add(turns, wide_of(-s->low_freq_factor)), wide_sum(s->high_freq_factor, -s->low_freq_factor));
    return wide_add(slow, wide_mul(blend, wide_add(theta, wide_minus(slow))));
}

/* The power of the base that a pair turns with: it counts anew in every section of NRG_ROPE_VISION. */
static size_t exponent_of(nrg_rope_mode mode, const int sections[4], size_t pair)
{
    if (mode != NRG_ROPE_VISION)
        return pair;
    size_t sector = pair % ((size_t)sections[0] + (size_t)sections[1] + (size_t)sections[2] + (size_t)sections[3]);
    for (int axis = 0; axis < 3 && sector >= (size_t)sections[axis]; axis++)
        sector -= (size_t)sections[axis];
    return sector;
}

/* The turns of pair p. */
static wide frequency(const nrg_rope_spec *s, wide log_base, const ramp *r, size_t pair)
{
    wide theta = wide_reciprocal_power(log_base, 2 * (double)exponent_of(s->mode, s->sections, pair), (double)s->n_dims);
    if (s->scaling == NRG_ROPE_SCALING_LLAMA3)
        theta = llama3(s, theta);
    if (s->freq_factors)
        theta = wide_div(theta, wide_of((double)s->freq_factors[pair]));
    theta = s->ext_factor != 0 ? yarn(s, r, pair, theta) : wide_mul(theta, wide_of(s->freq_scale));
    return wide_div(theta, wide_two_pi);
}

/* What all pairs have in common. */
typedef struct turning {
    wide log_base;
    ramp yarn;
} turning;

static turning turning_of(const nrg_rope_spec *s)
{
    turning t = {wide_log(s->freq_base), {{0, 0}, {1, 0}}};
    if (s->scaling == NRG_ROPE_SCALING_NTK) /* (n/(n - 2)) · ln factor beside ln base */
        t.log_base = wide_add(
            t.log_base, wide_mul(wide_log(s->factor), wide_div(wide_of((double)s->n_dims), wide_of((double)s->n_dims - 2))));
    if (s->ext_factor != 0)
        t.yarn = yarn_ramp(s);
    return t;
}

int nrg_rope_turns_exist(const nrg_rope_spec *s, size_t pairs)
{
    /* where nothing makes a pair faster than a radian a position, as in most models, none has to be computed for this */
    int is_slow =
        s->freq_base >= 1 && s->freq_scale <= 1 && s->ext_factor == 0 && (s->scaling == NRG_ROPE_SCALING_NONE || s->factor >= 1);
    for (size_t p = 0; s->freq_factors && p < pairs; p++) {
        if (!(s->freq_factors[p] > 0 && s->freq_factors[p] <= FLT_MAX))
            return 0;
        is_slow &= s->freq_factors[p] >= 1;
    }
    if (is_slow)
        return 1;
    const turning t = turning_of(s);
    /* exponents rise, so that the first or the last of a section turns fastest */
    for (size_t p = 0; p < pairs; p++)
        if (!(fabs(frequency(s, t.log_base, &t.yarn, p).high) <= TURNS_MAX))
            return 0;
    return 1;
}

int nrg_rope_turns(const nrg_rope_spec *s, size_t pairs, double *turns, double *magnitude)
{
    if (!nrg_rope_turns_exist(s, pairs))
        return 0;
    const turning t = turning_of(s);
    for (size_t p = 0; p < pairs; p++) {
        const wide of_pair = frequency(s, t.log_base, &t.yarn, p);
        turns[p] = of_pair.high;
        turns[pairs + p] = of_pair.low;
    }
    /* a factor that is no power of the data: nothing is gained by more than a double */
    const wide more = wide_mul(wide_of(0.1), wide_minus(wide_log(s->freq_scale)));
    const int has_mscale = s->ext_factor != 0 && !(s->yarn & NRG_ROPE_YARN_NO_MSCALE);
    *magnitude = has_mscale ? wide_mul(wide_of(s->attn_factor), wide_add(wide_of(1), more)).high : s->attn_factor;
    return 1;
}

int nrg_sinusoidal_turns(const nrg_sinusoidal_spec *s, size_t pairs, double *turns)
{
    const wide log_base = wide_log(s->base);
    /* the exponent is 2p over this; of a single pair that goes from 0 to 1 it is 0 */
    const double parts = s->spread == NRG_SINUSOIDAL_BELOW_BASE ? (double)s->dim : s->dim > 2 ? (double)s->dim - 2 : 1;
    /* a base below 1 makes the last pair the fastest */
    const wide fastest = wide_reciprocal_power(log_base, 2 * (double)(pairs - 1), parts);
    if (fastest.high > TURNS_MAX * wide_two_pi.high)
        return 0;
    for (size_t p = 0; p < pairs; p++) {
        const wide of_pair = wide_div(wide_reciprocal_power(log_base, 2 * (double)p, parts), wide_two_pi);
        turns[p] = of_pair.high;
        turns[pairs + p] = of_pair.low;
    }
    return 1;
}

double nrg_rope_longrope_attn_factor(int n_ctx, int n_ctx_orig)
{
    if (n_ctx <= 1 || n_ctx_orig <= 1)
        return 0;
    if (n_ctx <= n_ctx_orig)
        return 1;
    const wide more = wide_add(wide_log(n_ctx), wide_minus(wide_log(n_ctx_orig)));
    return sqrt(1 + wide_div(more, wide_log(n_ctx_orig)).high);
}
