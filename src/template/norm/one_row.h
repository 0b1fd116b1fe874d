/* Schedule: a row at a time, in all steps. One row of a decoder's token is the most frequent call.
 *
 * Outputs go from the last chunk to the first: what was summed last is still in L1 (1x8192 1.1 ×, Zen 3).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_ONE_ROW_H
#define NRG_TEMPLATE_NORM_ONE_ROW_H

#include "fallback.h"

NRG_INLINE void output_row(const row_outputs *to, size_t dim, unsigned options, norm_policy P)
{
    for (size_t end = dim, begin; end != 0; end = begin) {
        begin = P.most <= OUTPUT_CHUNK ? 0 : (end - 1) / OUTPUT_CHUNK * OUTPUT_CHUNK;
        output_elements(to, begin, end, options, P);
    }
}

NRG_INLINE int fit_one_row(const nrg_norm_job *job) { return job->row_end - job->row_begin == 1; }

NRG_INLINE void schedule_one_row(const nrg_norm_job *job, unsigned options, norm_policy P)
{
    const size_t dim = dim_of(job, P), n = job->row_begin;
    const row_operands row = operands_of_row(job, n, options_in(options, P), P.dtype);
    const float pilot = pilot_of_row(row, dim, options_in(options, P), P);
    const summed_row from = {row, v_set1(pilot), NULL};
    const row_scalars s = scalars_of_row(job, pilot, sum_row(&from, dim, options, P), P);
    if (NRG_RARELY(!s.in_range)) {
        fallback_row(job, n, P.dtype);
        return;
    }
    row_outputs to = outputs_of_row(row, &s, job);
    to.row.x = output_source(row, options_in(options, P));
    output_row(&to, dim, output_options(options), output_policy(P));
    if (may_have(P, OPT_STATISTICS))
        store_row_statistics(job, &s, n, P);
}

#endif
