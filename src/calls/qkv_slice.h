/* What a share keeps in its slice of the workspace: frequencies, and the table of its tokens. What is made is made in frames of
 * its own, which do not lie below the kernels.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_QKV_SLICE_H
#define NRG_CALLS_QKV_SLICE_H

#include <stddef.h>
#include <string.h>

#include "../exact/rope_frequencies.h"
#include "../operands/qkv.h"
#include "rope_job.h"

/* A slice in its place. */
typedef struct qkv_slice {
    nrg_qkv_kept *kept;
    double *frequencies;
    float *factors;
    int32_t *positions;
    float *table, *block;
    size_t rows, block_rows;
} qkv_slice;

static inline qkv_slice qkv_slice_at(void *workspace, const nrg_qkv_slice *s, size_t i)
{
    char *const first = (char *)(((uintptr_t)workspace + NRG_QKV_LINE - 1) / NRG_QKV_LINE * NRG_QKV_LINE) + i * s->bytes;
    return (qkv_slice){
        .kept = (nrg_qkv_kept *)(void *)first,
        .frequencies = (double *)(void *)(first + s->frequencies),
        .factors = (float *)(void *)(first + s->factors),
        .positions = (int32_t *)(void *)(first + s->positions),
        .table = (float *)(void *)(first + s->table),
        .block = (float *)(void *)(first + s->block),
        .rows = s->rows,
        .block_rows = s->block_rows,
    };
}

/* Specs by their numbers. Not by a copy without the pointer: reading again what was just stored took 30 ns. */
static inline int qkv_specs_are_equal(const nrg_rope_spec *a, const nrg_rope_spec *b)
{
    enum { NUMBERS = offsetof(nrg_rope_spec, freq_factors) };
    /* behind a pointer of 32 bits there is padding where doubles are aligned to 8 bytes */
    _Static_assert(sizeof *a - NUMBERS <= _Alignof(nrg_rope_spec), "only padding follows the pointer");
    return memcmp(a, b, NUMBERS) == 0;
}

static inline int qkv_has_frequencies(const qkv_slice *s, const nrg_rope_spec *spec, size_t pairs)
{
    const nrg_qkv_kept *k = s->kept;
    if (k->mark != NRG_QKV_MARK || k->has_factors != (spec->freq_factors != NULL))
        return 0;
    return qkv_specs_are_equal(&k->spec, spec) &&
           (!spec->freq_factors || memcmp(s->factors, spec->freq_factors, pairs * sizeof(float)) == 0);
}

/* Frequencies into the slice, where they are not there. 0, and nothing is written: there are none. */
static __attribute__((noinline)) int qkv_make_frequencies(const qkv_slice *s, const nrg_rope_spec *spec, size_t pairs, int keep)
{
    nrg_qkv_kept *k = s->kept;
    double magnitude;
    if (keep && qkv_has_frequencies(s, spec, pairs))
        return 1;
    if (!nrg_rope_turns(spec, pairs, s->frequencies, &magnitude))
        return 0;
    k->mark = NRG_QKV_MARK;
    k->spec = *spec;
    k->spec.freq_factors = NULL;
    k->has_factors = spec->freq_factors != NULL;
    if (spec->freq_factors)
        memcpy(s->factors, spec->freq_factors, pairs * sizeof(float));
    k->magnitude = magnitude;
    k->rows = 0;
    return 1;
}

/* Rows of a call's table. */
typedef struct qkv_table {
    nrg_rope_table_args args;
    size_t axes, positions_stride;
} qkv_table;

static inline const void *qkv_positions(const qkv_table *t, size_t axis)
{
    return (const char *)t->args.positions + axis * t->positions_stride;
}

static inline int qkv_has_table(const qkv_slice *s, const qkv_table *t)
{
    const nrg_qkv_kept *k = s->kept;
    const size_t rows = t->args.tokens;
    if (k->rows != rows || k->has_positions != (t->args.positions != NULL))
        return 0;
    if (!t->args.positions)
        return k->first == t->args.first_position;
    for (size_t axis = 0; axis < t->axes; axis++)
        if (memcmp(s->positions + axis * rows, qkv_positions(t, axis), rows * sizeof(int32_t)) != 0)
            return 0;
    return 1;
}

static inline void qkv_make_table(const qkv_slice *s, const nrg_rope_spec *spec, const qkv_table *t, int keep)
{
    nrg_qkv_kept *k = s->kept;
    nrg_position_table_job job;
    const size_t rows = t->args.tokens;
    if (keep && qkv_has_table(s, t))
        return;
    rope_fill_table_job(&job, spec, &t->args, t->positions_stride, 2 * nrg_rope_pairs_of(spec) * sizeof(float), 0, 1);
    NRG_ACTIVE_KERNEL(position_table, NRG_F32)(&job);
    k->rows = rows;
    k->has_positions = t->args.positions != NULL;
    k->first = t->args.first_position;
    for (size_t axis = 0; t->args.positions && axis < t->axes; axis++)
        memcpy(s->positions + axis * rows, qkv_positions(t, axis), rows * sizeof(int32_t));
}

#endif
