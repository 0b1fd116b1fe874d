/* Apply and sink: from the elements of a row to its outputs.
 *
 * Fast grade: o = (p·factor)·w + b; with a mean o = fma(p - centre, factor, shift)·w + b, where centre is the rounded mean and
 * shift corrects its rounding.
 *
 * Exact grade: o = (p·w)·(factor + low) + w·shift + b, where factor + low is (c/√d)/s as two floats, shift is -m·(c/√d)/s, and
 * the rounding error of p·w is carried along. Measured, AVX-512, 1x4096: 356 ns; without the error of p·w 277 ns, and an error of
 * 1.5 ulp.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_APPLY_H
#define NRG_TEMPLATE_NORM_APPLY_H

#include "source.h"

/* The scalars of a row, in all lanes. */
typedef struct row_factors {
    vf factor, low, centre, shift;
} row_factors;

/* A row whose scalars are known. */
typedef struct row_outputs {
    row_operands row;
    row_factors f;
    const float *w_offset; /* read where it is used: the registers of the loop are all taken */
} row_outputs;

/* Vector by vector: with AVX2 the compiler copies a struct of vectors by halves, and a load of the whole ones waits, too. */
NRG_INLINE row_factors vectors_of(const row_factors *f) { return (row_factors){f->factor, f->low, f->centre, f->shift}; }

NRG_INLINE row_outputs outputs_in_registers(const row_outputs *from)
{
    return (row_outputs){operands_in_registers(&from->row), vectors_of(&from->f), from->w_offset};
}

/* The options of outputs whose x is output_source: r is nothing but another x. */
NRG_INLINE unsigned output_options(unsigned options)
{
    const unsigned reads = options & (OPT_READ_R | OPT_KEEP_R);
    options = (reads & OPT_READ_R && options & OPT_R_F32) ? options | OPT_X_F32 : options;
    return options & ~(unsigned)(OPT_STORE_R | OPT_STREAM_R | OPT_READ_R | OPT_KEEP_R | (reads ? OPT_ADD_Y : 0));
}

NRG_INLINE const char *output_source(row_operands row, unsigned options)
{
    return options & OPT_KEEP_R ? (const char *)row.kept : options & OPT_READ_R ? row.r : row.x;
}

NRG_INLINE norm_policy output_policy(norm_policy P)
{
    P.must = output_options(P.must);
    P.may &= ~(unsigned)(OPT_CACHED_R | OPT_STREAM_R | OPT_KEEP_R) | (P.recomputes ? OPT_ADD_Y : 0);
    return P;
}

NRG_INLINE void load_weights_step(vf *v, int G, const char *p, size_t i, size_t n, unsigned options, nrg_dtype D)
{
    if (options & OPT_READY)
        load_step(v, G, p, i, n, NRG_F32);
    else
        load_elements(v, G, p, i, n, D, options & OPT_W_F32);
}

NRG_INLINE void multiply_fast(vf *v, int G, const row_outputs *to, size_t i, size_t n, unsigned options, nrg_dtype D)
{
    if (options & OPT_CENTRED) {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_fma(v_sub(v[j], to->f.centre), to->f.factor, to->f.shift);
    } else {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_mul(v[j], to->f.factor);
    }
    if (!(options & OPT_WEIGHT))
        return;
    vf w[NORM_STEP];
    load_weights_step(w, G, to->row.w, i, n, options, D);
    if (NRG_RARELY(options & OPT_W_OFFSET)) {
        const vf offset = v_set1(*to->w_offset);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            w[j] = v_add(w[j], offset);
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = v_mul(v[j], w[j]);
}

/* p·w·(factor + low) + w·shift for a weight w with the error w_low. */
NRG_INLINE vf multiply_by(vf v, vf w, vf w_low, const row_factors *f, int has_offset, int has_mean)
{
    const vf p = v_mul(v, w);
    vf error = v_fms(v, w, p);
    if (has_offset)
        error = v_fma(v, w_low, error);
    vf rest = v_fma(p, f->low, v_mul(error, f->factor));
    if (has_mean && has_offset)
        rest = v_fma(f->shift, w_low, rest);
    if (has_mean)
        rest = v_fma(f->shift, w, rest);
    return v_fma(p, f->factor, rest);
}

NRG_INLINE void multiply_exact(vf *v, int G, const row_outputs *to, size_t i, size_t n, unsigned options, nrg_dtype D)
{
    const row_factors f = to->f;
    const int has_mean = (options & OPT_CENTRED) != 0;
    if (NRG_RARELY(!(options & OPT_WEIGHT))) {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_fma(v[j], f.factor, has_mean ? v_fma(v[j], f.low, f.shift) : v_mul(v[j], f.low));
        return;
    }
    vf w[NORM_STEP];
    load_weights_step(w, G, to->row.w, i, n, options, D);
    if (NRG_RARELY(options & OPT_W_OFFSET)) {
        const vf offset = v_set1(*to->w_offset);
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            const vf sum = v_add(w[j], offset), part = v_sub(sum, w[j]);
            const vf w_low = v_add(v_sub(w[j], v_sub(sum, part)), v_sub(offset, part));
            v[j] = multiply_by(v[j], sum, w_low, &f, 1, has_mean);
        }
        return;
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = multiply_by(v[j], w[j], w[j], &f, 0, has_mean);
}

/* · g(z), which is in a staging buffer. */
NRG_INLINE void multiply_gates(vf *v, int G, const char *gates, size_t i, size_t n, nrg_dtype D)
{
    vf gate[NORM_STEP];
    load_elements(gate, G, gates, i, n, D, 1);
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = v_mul(v[j], gate[j]);
}

/* What follows the factors: + b, · g(z), + y, and the sink. */
NRG_INLINE void finish_step(vf *v, int G, row_operands row, size_t i, size_t n, unsigned options, nrg_dtype D)
{
    if (options & OPT_BIAS) {
        vf b[NORM_STEP];
        load_weights_step(b, G, row.b, i, n, options, D);
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_add(v[j], b[j]);
    }
    if (NRG_RARELY(options & OPT_GATE))
        multiply_gates(v, G, row.gate, i, n, D);
    if (NRG_RARELY(options & OPT_AFTER))
        add_operand(v, G, row.y, i, n, D, options & OPT_Y_F32);
    if (D != NRG_F32 && NRG_RARELY(options & OPT_O_F32))
        store_floats(v, G, (float *)row.o + i, n, options & OPT_STREAM_O, D);
    else if (is_paired(G, D)) {
        vp h[NORM_STEP];
        round_pairs(h, v, G, 1);
        store_pair_step(h, G, (uint16_t *)row.o + i, options & OPT_STREAM_O);
    } else
        store_step(v, G, row.o, i, n, D, options & OPT_STREAM_O);
}

NRG_INLINE void output_step(int G, const row_outputs *to, size_t i, size_t n, unsigned options, nrg_dtype D)
{
    vf v[NORM_STEP];
    source_again(v, G, to->row, i, n, options, D);
    if (options & OPT_EXACT)
        multiply_exact(v, G, to, i, n, options, D);
    else
        multiply_fast(v, G, to, i, n, options, D);
    finish_step(v, G, to->row, i, n, options, D);
}

/* Vectors of a step. */
NRG_INLINE int output_vectors(norm_policy P)
{
    return is_exact(P) ? V_APPLY : P.may & OPT_GATE ? V_FAST_ANY : P.dtype == NRG_F32 ? FAST_VECTORS : V_FAST_HALF;
}

/* Elements begin to end. The tail of a row is made of vectors, the last of which may be a part. */
NRG_INLINE void output_elements(const row_outputs *to, size_t begin, size_t end, unsigned options, norm_policy P)
{
    const int G = output_vectors(P);
    const size_t step = (size_t)G * VN;
    const row_outputs at = *to; /* in registers: a store might change what a pointer points to */
    size_t i = begin;
    for (; i + step <= end; i += step)
        output_step(G, &at, i, step, options_in(options, P), P.dtype);
    if (P.multiple % step == 0)
        return;
    for (; i + VN <= end; i += VN)
        output_step(1, &at, i, VN, options_in(options, P), P.dtype);
    if (P.multiple % VN != 0 && i < end)
        output_step(1, &at, i, end - i, options_in(options, P), P.dtype);
}

/* Elements that are no whole lines of o, with ordinary stores. */
static __attribute__((noinline)) void output_line_ends(const row_outputs *to, size_t begin, size_t end, unsigned options)
{
    const row_outputs at = outputs_in_registers(to);
    for (size_t i = begin; i < end; i += VN)
        output_step(1, &at, i, lanes_at(i, end), options, NRG_F32);
}

/* The whole lines of o that begin in elements begin to end, so that one chunk writes each; what lies before the first and after
 * the last line of a row is stored here. */
static __attribute__((noinline)) void trim_to_lines(const row_outputs *to, size_t *begin, size_t *end, size_t dim,
                                                    unsigned options)
{
    enum { LINE = 64 / sizeof(float) };
    const size_t at = (uintptr_t)to->row.o / sizeof(float) % LINE; /* elements between the begin of a line and the row */
    size_t from = *begin, stop = *end;
    if (from)
        from -= (at + from) % LINE;
    if (stop < dim)
        stop -= (at + stop) % LINE;
    *begin = from + (LINE - (at + from) % LINE) % LINE;
    *end = stop - (at + stop) % LINE;
    output_line_ends(to, from, *begin, options);
    output_line_ends(to, *end, stop, options);
}

/* A chunk of a row of dim elements, perhaps with OPT_LINES_O. */
NRG_INLINE void output_chunk(const row_outputs *to, size_t begin, size_t end, size_t dim, unsigned options, norm_policy P)
{
    if (P.dtype == NRG_F32 && P.may & OPT_LINES_O && NRG_RARELY(options & OPT_LINES_O)) {
        trim_to_lines(to, &begin, &end, dim, options);
        options |= OPT_STREAM_O;
    }
    const row_outputs at = outputs_in_registers(to);
    output_elements(&at, begin, end, options, P);
}

#endif
