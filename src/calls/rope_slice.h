/* What a share keeps in its slice of the workspace: frequencies, and the table of its tokens. Both are made in separate frames,
 * which do not lie below the kernels.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CALLS_ROPE_SLICE_H
#define NRG_CALLS_ROPE_SLICE_H

#include "../exact/rope_frequencies.h"
#include "rope_job.h"

/* Specs by their numbers. Not by a copy without the pointer: reading again what was just stored took 30 ns. */
static inline int rope_specs_are_equal(const nrg_rope_spec *a, const nrg_rope_spec *b)
{
    enum { NUMBERS = offsetof(nrg_rope_spec, freq_factors) };
    /* behind a pointer of 32 bits there is padding where doubles are aligned to 8 bytes */
    _Static_assert(sizeof *a - NUMBERS <= _Alignof(nrg_rope_spec), "only padding follows the pointer");
    return memcmp(a, b, NUMBERS) == 0;
}

static inline int rope_has_frequencies(const nrg_rope_slice *s, const nrg_rope_spec *spec, size_t pairs, size_t layout)
{
    const nrg_rope_kept *k = s->kept;
    if (k->mark != NRG_ROPE_MARK || k->layout != layout || k->has_factors != (spec->freq_factors != NULL))
        return 0;
    return rope_specs_are_equal(&k->spec, spec) &&
           (!spec->freq_factors || memcmp(s->factors, spec->freq_factors, pairs * sizeof(float)) == 0);
}

/* A number for the slices of calls with so many shares, until a call has another nth: how often nth has changed, and nth. All
 * shares of a call find the same number, whichever of them has stored it. So a slice that was made before such a change, and may
 * have been overwritten since, is recognized. */
static inline size_t rope_layout(const nrg_rope_slice *s, int nth)
{
    enum { HALF = sizeof(size_t) * 4 };
    const size_t low = ((size_t)1 << HALF) - 1, shares = (size_t)nth & low, last = __atomic_load_n(s->layout, __ATOMIC_RELAXED);
    return (last & low) == shares ? last : ((last >> HALF) + 1) << HALF | shares;
}

/* Frequencies into the slice, if they are not there. 0, and nothing is written: there are none. */
NRG_OWN_FRAME int rope_make_frequencies(const nrg_rope_slice *s, const nrg_rope_spec *spec, size_t pairs, int keep, int nth)
{
    nrg_rope_kept *k = s->kept;
    double magnitude;
    const size_t layout = keep ? rope_layout(s, nth) : 0;
    if (keep && rope_has_frequencies(s, spec, pairs, layout))
        return 1;
    if (!nrg_rope_turns(spec, pairs, s->frequencies, &magnitude))
        return 0;
    if (keep)
        __atomic_store_n(s->layout, layout, __ATOMIC_RELAXED);
    k->mark = NRG_ROPE_MARK;
    k->layout = layout;
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
typedef struct rope_table {
    nrg_rope_table_args args;
    size_t axes, positions_stride;
} rope_table;

static inline const void *rope_positions(const rope_table *t, size_t axis)
{
    return (const char *)t->args.positions + axis * t->positions_stride;
}

static inline int rope_has_table(const nrg_rope_slice *s, const rope_table *t)
{
    const nrg_rope_kept *k = s->kept;
    const size_t rows = t->args.tokens;
    if (k->rows != rows || k->has_positions != (t->args.positions != NULL))
        return 0;
    if (!t->args.positions)
        return k->first_position == t->args.first_position;
    for (size_t axis = 0; axis < t->axes; axis++)
        if (memcmp(s->positions + axis * rows, rope_positions(t, axis), rows * sizeof(int32_t)) != 0)
            return 0;
    return 1;
}

static inline void rope_make_table(const nrg_rope_slice *s, const nrg_rope_spec *spec, const rope_table *t, int keep)
{
    nrg_rope_kept *k = s->kept;
    nrg_position_table_job job;
    const size_t rows = t->args.tokens;
    if (keep && rope_has_table(s, t))
        return;
    rope_fill_table_job(&job, spec, &t->args, t->positions_stride, 2 * nrg_rope_pairs_of(spec) * sizeof(float), 0, 1);
    NRG_ACTIVE_KERNEL(position_table, NRG_F32)(&job);
    k->rows = rows;
    k->has_positions = t->args.positions != NULL;
    k->first_position = t->args.first_position;
    for (size_t axis = 0; t->args.positions && axis < t->axes; axis++)
        memcpy(s->positions + axis * rows, rope_positions(t, axis), rows * sizeof(int32_t));
}

/* The table of so many tokens, of a call whose token 0 has these positions. */
static inline void rope_make_rows(const nrg_rope_slice *s, const nrg_rope_spec *spec, rope_table *t, const int32_t *positions,
                                  int32_t first_position, size_t token, size_t tokens, int keep)
{
    t->args.tokens = tokens;
    t->args.frequencies = s->frequencies;
    t->args.magnitude = s->kept->magnitude;
    t->args.table = s->table;
    t->args.positions = positions ? positions + token : NULL;
    t->args.first_position = positions ? 0 : first_position + (int32_t)token;
    rope_make_table(s, spec, t, keep);
}

/* Rows of a tensor before unit `unit` of the call: heads of tokens, a token's tensors one after the other. */
static inline size_t rope_rows_before(size_t unit, size_t all_heads, size_t heads_before, size_t heads)
{
    const size_t head = unit % all_heads, past = head < heads_before ? 0 : head - heads_before;
    return unit / all_heads * heads + (past < heads ? past : heads);
}

#endif
