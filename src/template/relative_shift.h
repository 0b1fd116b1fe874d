/* The relative shift: rows of one tensor added to, or stored in, rows of another, at a place that moves by one from row to row.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RELATIVE_SHIFT_H
#define NRG_TEMPLATE_RELATIVE_SHIFT_H

#include "runs.h"

NRG_INLINE size_t shift_clip(int64_t at, size_t most) { return at < 0 ? 0 : (uint64_t)at > most ? most : (size_t)at; }

/* Row `row` of a head: elements from `from` to `to` have a partner. */
NRG_INLINE void shift_row(const nrg_relative_shift_job *job, char *out, const char *in, size_t row, nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0), out_dim = job->out_dim;
    const int64_t offset = job->first + (job->slope > 0 ? (int64_t)row : -(int64_t)row);
    const size_t to = shift_clip((int64_t)job->in_dim - offset, out_dim), least = shift_clip(-offset, out_dim);
    const size_t from = least < to ? least : to;
    const char *partner = from < to ? in + (size_t)((int64_t)from + offset) * size : in;
    if (job->accumulate) {
        const add_run run = {out + from * size, out + from * size, partner, to - from, D == NRG_F32, 0};
        run_add(&run, D);
        return;
    }
    run_clear(out, from * size, job->stream);
    run_move(out + from * size, partner, to - from, D, job->stream);
    run_clear(out + to * size, (out_dim - to) * size, job->stream);
}

static __attribute__((noinline)) void relative_shift(const nrg_relative_shift_job *job, nrg_dtype D)
{
    const nrg_head_strides is = job->in_strides, os = job->out_strides;
    size_t row = job->begin % job->rows, head = job->begin / job->rows % job->heads, batch = job->begin / job->rows / job->heads;
    for (size_t n = job->begin; n < job->end; n++) {
        const char *in = job->in_dim ? job->in + batch * is.batch + head * is.head + row * is.row : NULL;
        shift_row(job, job->out + batch * os.batch + head * os.head + row * os.row, in, row, D);
        if (++row < job->rows)
            continue;
        row = 0;
        if (++head == job->heads) {
            head = 0;
            batch++;
        }
    }
    if (job->stream)
        v_nt_fence();
}

#endif
