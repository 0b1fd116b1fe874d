/* The relative shift: rows of one tensor added to, or stored in, rows of another, at a place that moves by one from row to row.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_RELATIVE_RELATIVE_SHIFT_H
#define NRG_TEMPLATE_RELATIVE_RELATIVE_SHIFT_H

#include "../../job/relative.h"
#include "../runs.h"

/* One row, in bytes: those from `from` to `to` have a partner, that of the first at `in`. */
typedef struct shift_row {
    char *out;
    const char *in;
    size_t from, to, end;
    size_t prefetch; /* from a partner to that of the next row, to be prefetched; 0: not */
} shift_row;

NRG_INLINE size_t shift_clip(int64_t at, size_t most) { return at < 0 ? 0 : (uint64_t)at > most ? most : (size_t)at; }

/* Bytes begin to end, at most a line: zeros, and partners. */
NRG_INLINE void shift_mixed(char line[64], const shift_row *r, size_t begin, size_t end)
{
    const size_t from = r->from > begin ? r->from : begin, to = r->to < end ? r->to : end;
    memset(line, 0, 64);
    if (from < to)
        memcpy(line + (from - begin), r->in + (from - r->from), to - from);
}

/* Lines go past the cache whole, with what is in them from both kinds; the parts of a line that other rows have as well do not.
 */
static __attribute__((noinline)) void shift_stream(const shift_row *r, nrg_dtype D)
{
    char line[64];
    const size_t head = run_head(r->out, 1, 64), first = head < r->end ? head : r->end, last = r->end - (r->end - first) % 64;
    shift_mixed(line, r, 0, first);
    memcpy(r->out, line, first);
    for (size_t at = first, next; at < last; at = next) {
        if (at >= r->from && at + 64 <= r->to) {
            const size_t bytes = (r->to < last ? r->to : last) - at;
            next = at + bytes / 64 * 64;
            if (D == NRG_F32)
                run_stream_f32(r->out + at, r->in + (at - r->from), next - at, r->prefetch);
            else
                run_stream_half(r->out + at, r->in + (at - r->from), next - at, r->prefetch);
        } else if (at + 64 <= r->from || at >= r->to) {
            const size_t bytes = (at < r->from && r->from < last ? r->from : last) - at;
            next = at + bytes / 64 * 64;
            run_stream_zeros(r->out + at, next - at);
        } else {
            next = at + 64;
            shift_mixed(line, r, at, next);
            run_stream_half(r->out + at, line, 64, 0);
        }
    }
    shift_mixed(line, r, last, r->end);
    memcpy(r->out + last, line, r->end - last);
}

/* Row `row` of a head. */
NRG_INLINE void shift_one_row(const nrg_relative_shift_job *job, char *out, const char *in, size_t row, nrg_dtype D)
{
    const size_t size = bytes_of(1, D, 0), out_dim = job->out_dim;
    const int64_t offset = job->first + (job->slope > 0 ? (int64_t)row : -(int64_t)row);
    const size_t to = shift_clip((int64_t)job->in_dim - offset, out_dim), least = shift_clip(-offset, out_dim);
    const size_t from = least < to ? least : to;
    const char *partner = from < to ? in + (size_t)((int64_t)from + offset) * size : in;
    const size_t prefetch = job->prefetch ? job->in_strides.row : 0;
    if (job->accumulate) {
        const add_run run = {.out = out + from * size,
                             .a = out + from * size,
                             .b = partner,
                             .n = to - from,
                             .b_f32 = D == NRG_F32,
                             .a_prefetch = job->prefetch ? job->out_strides.row : 0,
                             .b_prefetch = prefetch};
        run_add(&run, D);
    } else if (job->stream) {
        const shift_row r = {out, partner, from * size, to * size, out_dim * size, prefetch};
        shift_stream(&r, D);
    } else {
        memset(out, 0, from * size);
        run_move(out + from * size, partner, to - from, D, prefetch);
        memset(out + to * size, 0, (out_dim - to) * size);
    }
}

static __attribute__((noinline)) void relative_shift(const nrg_relative_shift_job *job, nrg_dtype D)
{
    const nrg_head_strides is = job->in_strides, os = job->out_strides;
    size_t row = job->begin % job->rows, head = job->begin / job->rows % job->heads, batch = job->begin / job->rows / job->heads;
    for (size_t n = job->begin; n < job->end; n++) {
        const char *in = job->in_dim ? job->in + batch * is.batch + head * is.head + row * is.row : NULL;
        shift_one_row(job, job->out + batch * os.batch + head * os.head + row * os.row, in, row, D);
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

NRG_PATH_KERNELS(relative_shift, relative_shift, relative_shift)

#endif
