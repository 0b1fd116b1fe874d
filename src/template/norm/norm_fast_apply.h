/* From r to o in the fast grade: two operations an element, (p·factor)·w; three with a mean, fma(p - centre, factor, shift)·w,
 * where centre is the mean rounded and shift is what that leaves of it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_FAST_APPLY_H
#define NRG_TEMPLATE_NORM_NORM_FAST_APPLY_H

#include "norm_fast_scalars.h"
#include "norm_row.h"

typedef struct fast_factors {
    vf factor, centre, shift;
} fast_factors;

NRG_INLINE fast_factors fast_factors_of(const fast_scalars *s, int k)
{
    return (fast_factors){v_set1(s->factor[k]), v_set1(s->centre[k]), v_set1(s->shift[k])};
}

/* What is left to do of a step is finish_o1. */
NRG_INLINE void fast_step(vf *v, int G, unsigned how, const float *w_offset, norm_row row, const fast_factors *f, size_t i,
                          size_t n, nrg_dtype D)
{
    load_again(v, G, how, row, i, n, D);
    if (how & NORM_CENTRED) {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_fma(v_sub(v[j], f->centre), f->factor, f->shift);
    } else {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_mul(v[j], f->factor);
    }
    if (!NRG_RARELY(!row.w)) {
        vf w[NORM_STEP];
        load_weights(w, G, how, row.w, i, n, D);
        if (NRG_RARELY(how & NORM_W_OFFSET)) {
            const vf offset = v_set1(*w_offset);
            NRG_UNROLL
            for (int j = 0; j < G; j++)
                w[j] = v_add(w[j], offset);
        }
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_mul(v[j], w[j]);
    }
}

NRG_INLINE void fast_apply_step(int G, unsigned how, const float *w_offset, norm_row row, const fast_factors *f, size_t i,
                                size_t n, nrg_dtype D)
{
    vf v[NORM_STEP];
    fast_step(v, G, how, w_offset, row, f, i, n, D);
    finish_o1(v, G, how, row, i, n, D);
}

/* Vectors of a step where few options are to be known. */
NRG_INLINE int fast_apply_vectors(nrg_dtype D) { return D == NRG_F32 ? FAST_VECTORS : V_FAST_HALF; }

/* What does not fill a vector: rare, so the dtype is looked up at run time. */
static __attribute__((noinline)) void fast_apply_rest(const norm_options *opt, const norm_row *row, const fast_factors *f,
                                                      size_t begin, size_t end, nrg_dtype D)
{
    const norm_row at = *row;
    fast_apply_step(1, opt->how, &opt->w_offset, at, f, begin, end - begin, D);
}

/* Whether r is read again as x is. */
NRG_INLINE int r_serves_as_x(unsigned how, nrg_dtype D)
{
    return how & (NORM_READ_R | NORM_KEEP_R) && (D == NRG_F32 || !(how & NORM_R_F32));
}

/* Elements begin to end of some rows, but for those whose scalars need the fallback. */
NRG_INLINE void fast_apply_part(const norm_part *part, const fast_scalars *s, int G, unsigned may, nrg_dtype D)
{
    const size_t step = (size_t)G * VN, end = part->end;
    /* r is nothing but another x, and a loop that knows few options will do */
    const int x_is_r = r_serves_as_x(part->opt->how, D);
    const unsigned how = part->opt->how & (x_is_r ? ~(unsigned)(NORM_READ_R | NORM_ADD_Y) : NORM_ANY);
    const unsigned calm = may & NORM_LAST ? 0 : NORM_CALM;
    for (int k = 0; k < part->count; k++) {
        if (NRG_RARELY(s->needs_fallback[k] != 0))
            continue;
        norm_row row = part->row[k];
        if (x_is_r)
            row.x = part->opt->how & NORM_KEEP_R ? (const char *)row.stage : row.r;
        const fast_factors f = fast_factors_of(s, k);
        size_t i = part->begin, last = end, stop = end;
        unsigned in_step = how;
        if (D == NRG_F32 && NRG_RARELY(part->opt->how & NORM_LINES_O)) {
            const fast_factors copy = f; /* an address that is taken must not keep the loop's from their registers */
            const norm_lines lines = lines_of(part, row.o);
            for (i = lines.begin; i < lines.first; i += lanes_at(i, lines.first))
                fast_apply_rest(part->opt, part->row + k, &copy, i, i + lanes_at(i, lines.first), D);
            last = lines.last;
            stop = lines.end;
            in_step |= NORM_STREAM_O;
        }
        for (; i + step <= last; i += step)
            fast_apply_step(G, options_in_register(in_step, may) | norm_pairs(G, D) | calm, &part->opt->w_offset, row, &f, i,
                            step, D);
        for (; i + VN <= last; i += VN)
            fast_apply_step(1, options_in_register(in_step, may), &part->opt->w_offset, row, &f, i, VN, D);
        if (NRG_RARELY(i < stop)) {
            const fast_factors copy = f;
            for (; i < stop; i += lanes_at(i, stop))
                fast_apply_rest(part->opt, part->row + k, &copy, i, i + lanes_at(i, stop), D);
        }
    }
}

#endif
