/* The general instances: loops with all options, for chunks of rows of any length. Gated rows, quantized rows and rows in parts
 * are made of them, too. Everything else here knows the dtype at run time only: one copy a path.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_GENERAL_H
#define NRG_TEMPLATE_NORM_GENERAL_H

#include "one_row.h"

/* Elements begin to end of a row. */
typedef struct row_chunk {
    row_operands row;
    unsigned options;
    size_t begin, end, dim;
} row_chunk;

NRG_INLINE norm_policy general_policy(nrg_dtype D, unsigned must)
{
    return (norm_policy){
        .dtype = D, .must = must, .may = OPT_ALL, .least = 1, .most = SIZE_MAX, .multiple = 1, .ahead = 2048, .recomputes = 1};
}

/* Two loops: most rows are of x alone. One where both sums are exact: their arithmetic hides the tests of options. */
NRG_INLINE void sum_chunk_by(row_sums *sums, const row_chunk *c, norm_policy P)
{
    if (c->begin == 0)
        sums->pilot = pilot_of_row(c->row, c->dim, c->options, P);
    const summed_row from = {operands_in_registers(&c->row), v_set1(sums->pilot), NULL};
    norm_policy plain = P;
    plain.may = OPT_PREFETCH;
    P.may |= P.dtype == NRG_F32 ? 0 : OPT_KEEP_R;
    if (!V_SMALL && !(is_exact(P) && is_centred(P)) && !(c->options & (OPT_ADD_Y | OPT_STORE_R | OPT_X_F32)))
        sum_chunk(sums, &from, c->begin, c->end, c->dim, c->options, plain);
    else
        sum_chunk(sums, &from, c->begin, c->end, c->dim, c->options, P);
}

NRG_INLINE void general_rms_of(row_sums *sums, const row_chunk *c, nrg_dtype D) { sum_chunk_by(sums, c, general_policy(D, 0)); }
NRG_BY_DTYPE(general_rms, (sums, c), row_sums *sums, const row_chunk *c)

NRG_INLINE void general_layer_of(row_sums *sums, const row_chunk *c, nrg_dtype D)
{
    sum_chunk_by(sums, c, general_policy(D, OPT_CENTRED));
}
NRG_BY_DTYPE(general_layer, (sums, c), row_sums *sums, const row_chunk *c)

static __attribute__((noinline)) void exact_rms(row_sums *sums, const row_chunk *c)
{
    sum_chunk_by(sums, c, general_policy(NRG_F32, OPT_EXACT));
}

static __attribute__((noinline)) void exact_layer(row_sums *sums, const row_chunk *c)
{
    sum_chunk_by(sums, c, general_policy(NRG_F32, OPT_EXACT | OPT_CENTRED));
}

/* The policy of rows of these kinds, OPT_CENTRED and OPT_EXACT, beside those that are neither. */
NRG_INLINE norm_policy policy_of_rows(nrg_dtype D, unsigned kinds)
{
    norm_policy P = general_policy(D, 0);
    P.may |= kinds;
    return P;
}

/* Elements begin to end, which lie in one segment; begin is a multiple of 256. */
NRG_INLINE void general_sum(row_sums *sums, const row_chunk *c, norm_policy P)
{
    const int has_mean = may_have(P, OPT_CENTRED) && c->options & OPT_CENTRED;
    const int exact = may_have(P, OPT_EXACT) && c->options & OPT_EXACT;
    if (NRG_RARELY(exact && has_mean))
        exact_layer(sums, c);
    else if (NRG_RARELY(exact))
        exact_rms(sums, c);
    else if (has_mean)
        general_layer(sums, c, P.dtype);
    else
        general_rms(sums, c, P.dtype);
}

/* The same where time counts less than code. */
static __attribute__((noinline)) void sum_rows_chunk(row_sums *sums, const row_chunk *c, nrg_dtype D)
{
    general_sum(sums, c, policy_of_rows(D, ROW_KINDS));
}

/* Two loops here, too: half as many tests a step, and larger steps. */
NRG_INLINE void output_chunk_by(const row_outputs *to, const row_chunk *c, norm_policy P)
{
    const unsigned rare =
        OPT_LINES_O | OPT_ADD_Y | OPT_W_OFFSET | OPT_AFTER | OPT_GATE | (P.dtype == NRG_F32 ? 0 : OPT_X_F32 | OPT_O_F32);
    P = output_policy(P);
    norm_policy plain = P;
    plain.may &= ~rare;
    if (!V_SMALL && !(c->options & rare))
        output_chunk(to, c->begin, c->end, c->dim, c->options, plain);
    else
        output_chunk(to, c->begin, c->end, c->dim, c->options, P);
}

NRG_INLINE void general_outputs_of(const row_outputs *to, const row_chunk *c, nrg_dtype D)
{
    norm_policy P = general_policy(D, 0);
    P.may |= OPT_CENTRED;
    output_chunk_by(to, c, P);
}
NRG_BY_DTYPE(general_outputs, (to, c), const row_outputs *to, const row_chunk *c)

static __attribute__((noinline)) void exact_output(const row_outputs *to, const row_chunk *c)
{
    norm_policy P = general_policy(NRG_F32, OPT_EXACT);
    P.may |= OPT_CENTRED;
    output_chunk_by(to, c, P);
}

/* Of options without a residual, but that apply may have to add y again. */
NRG_INLINE void general_output(const row_outputs *to, const row_chunk *c, norm_policy P)
{
    if (NRG_RARELY(may_have(P, OPT_EXACT) && c->options & OPT_EXACT))
        exact_output(to, c);
    else
        general_outputs(to, c, P.dtype);
}

NRG_INLINE row_totals general_totals(const row_sums *sums, unsigned options)
{
    return (row_totals){options & OPT_CENTRED ? value_of(&sums->t) : 0, value_of(&sums->tt)};
}

NRG_INLINE row_scalars general_scalars(const nrg_norm_job *job, const row_sums *sums, unsigned options)
{
    return scalars_by_divisor(job, options & OPT_CENTRED ? sums->pilot : 0, general_totals(sums, options),
                              (options & OPT_EXACT) != 0);
}

/* For nrg_norm_elements, of sums that serve. */
static __attribute__((noinline)) void keep_statistics(const nrg_norm_job *job, float pilot, row_totals sum, int exact, size_t n)
{
    const nrg_norm_formula *f = &job->formula;
    const double mean = exact ? sum.t / f->d : (double)pilot, low = exact ? 0 : sum.t * f->inv_dim, lost = exact ? mean : low;
    const double variance = sum.tt * f->inv_dim - lost * lost;
    job->statistics[n] = (nrg_row_statistics){mean, low, variance, inverse_divisor(f->divisor, f->eps, variance),
                                              exact ? NRG_NORM_EXACT : NRG_NORM_FAST};
}

NRG_INLINE size_t chunk_end(size_t begin, size_t dim, size_t chunk) { return dim - begin > chunk ? begin + chunk : dim; }

#endif
