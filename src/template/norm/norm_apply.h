/* From r to o, element by element.
 *
 * o = (r·w)·(hi + lo) - m·w·(hi + lo), where hi + lo is (c/√d)/s as two floats, and the rounding error of r·w is carried along:
 * one rounding at the end. Measured, AVX-512, 1×4096: 356 ns against 277 ns without the error of r·w (which is then up to 1.5 ulp
 * off), and no difference where rows come from L2 or beyond.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_APPLY_H
#define NRG_TEMPLATE_NORM_NORM_APPLY_H

#include "norm_row.h"
#include "norm_scalars.h"

/* A row's multipliers. Plain rows use the floats; fallback ones the doubles. */
typedef struct norm_factors {
    vf hi, lo, minus_mean;
    vd pilot, offset, factor; /* m is pilot + offset */
} norm_factors;

NRG_INLINE norm_factors factors_of(const norm_scalars *s, int k)
{
    norm_factors f = {.hi = v_set1(s->hi[k]), .lo = v_set1(s->lo[k]), .minus_mean = v_set1(s->minus_mean[k])};
    f.pilot = f.offset = f.factor = vd_zero();
    return f;
}

/* r·w·(hi + lo) - m·w·(hi + lo), for w with the error w_low. */
NRG_INLINE vf multiply(vf r, vf w, vf w_low, const norm_factors *f, int has_offset, int centred)
{
    vf p = v_mul(r, w), e = v_fms(r, w, p);
    if (has_offset)
        e = v_fma(r, w_low, e);
    vf rest = v_fma(p, f->lo, v_mul(e, f->hi));
    if (centred && has_offset)
        rest = v_fma(f->minus_mean, w_low, rest);
    if (centred)
        rest = v_fma(f->minus_mean, w, rest);
    return v_fma(p, f->hi, rest);
}

/* w_offset is read where it is wanted: the loop's registers are all taken. */
NRG_INLINE void normalize_step(vf *v, int G, unsigned how, const float *w_offset, const char *weight, const norm_factors *f,
                               size_t i, size_t n, nrg_dtype D)
{
    const int centred = how & NORM_CENTRED;
    if (NRG_RARELY(!weight)) {
        NRG_UNROLL
        for (int j = 0; j < G; j++)
            v[j] = v_fma(v[j], f->hi, centred ? v_fma(v[j], f->lo, f->minus_mean) : v_mul(v[j], f->lo));
        return;
    }
    vf w[V_APPLY];
    load_step_or_f32(w, G, weight, i, n, D, how & NORM_W_F32);
    if (NRG_RARELY(how & NORM_W_OFFSET)) {
        const vf offset = v_set1(*w_offset);
        NRG_UNROLL
        for (int j = 0; j < G; j++) {
            vf sum = v_add(w[j], offset), part = v_sub(sum, w[j]);
            vf w_low = v_add(v_sub(w[j], v_sub(sum, part)), v_sub(offset, part));
            v[j] = multiply(v[j], sum, w_low, f, 1, centred);
        }
        return;
    }
    NRG_UNROLL
    for (int j = 0; j < G; j++)
        v[j] = multiply(v[j], w[j], w[j], f, 0, centred);
}

/* The same in double, (r - m) · (w + weight_offset) · factor. */
NRG_INLINE void normalize_fallback(vf *v, int G, unsigned how, const float *w_offset, const char *weight, const norm_factors *f,
                                   size_t i, size_t n, nrg_dtype D)
{
    vf w[V_APPLY];
    if (weight)
        load_step_or_f32(w, G, weight, i, n, D, how & NORM_W_F32);
    const vd offset = vd_set1((double)*w_offset);
    NRG_UNROLL
    for (int j = 0; j < G; j++) {
        vd low = vd_sub(vd_sub(vd_low(v[j]), f->pilot), f->offset), high = vd_sub(vd_sub(vd_high(v[j]), f->pilot), f->offset);
        if (weight) {
            low = vd_mul(low, vd_add(vd_low(w[j]), offset));
            high = vd_mul(high, vd_add(vd_high(w[j]), offset));
        }
        v[j] = v_from_vd(vd_mul(low, f->factor), vd_mul(high, f->factor));
    }
}

NRG_INLINE void apply_step(int G, unsigned how, const float *w_offset, norm_row row, const norm_factors *f, size_t i, size_t n,
                           nrg_dtype D, int fallback)
{
    vf v[V_APPLY];
    load_again(v, G, how, row, i, n, D);
    if (fallback)
        normalize_fallback(v, G, how, w_offset, row.w, f, i, n, D);
    else
        normalize_step(v, G, how, w_offset, row.w, f, i, n, D);
    finish_o1(v, G, how, row, i, n, D);
}

/* What does not fill a step, and rows that need the fallback (their elements in double, if `fallback`): rare, so the dtype is
 * looked up at run time, and there is one small copy of this code a path. */
static __attribute__((noinline)) void apply_rest(const norm_options *opt, const norm_row *row, const norm_factors *f,
                                                 size_t begin, size_t end, nrg_dtype D, int fallback)
{
    const norm_row at = *row;
    for (size_t i = begin; i < end; i += VN)
        apply_step(1, opt->how, &opt->w_offset, at, f, i, lanes_at(i, end), D, fallback);
}

/* Elements begin to end of some rows, but for those whose scalars need the fallback. */
NRG_INLINE void apply_part(const norm_part *part, const norm_scalars *s, nrg_dtype D)
{
    const size_t step = (size_t)V_APPLY * VN, end = part->end;
    const unsigned how = part->opt->how;
    for (int k = 0; k < part->count; k++) {
        if (s->needs_fallback[k] != 0)
            continue;
        const norm_row row = part->row[k];
        const norm_factors f = factors_of(s, k);
        size_t i = part->begin, last = end, stop = end;
        unsigned in_step = how;
        if (NRG_RARELY(how & NORM_LINES_O)) {
            const norm_factors copy = f; /* an address that is taken must not keep the loop's from their registers */
            const norm_lines lines = lines_of(part, row.o);
            apply_rest(part->opt, part->row + k, &copy, lines.begin, lines.first, D, 0);
            i = lines.first;
            last = lines.last;
            stop = lines.end;
            in_step |= NORM_STREAM_O;
        }
        for (; i + step <= last; i += step)
            apply_step(V_APPLY, options_in_register(in_step, NORM_ANY), &part->opt->w_offset, row, &f, i, step, D, 0);
        for (; i + VN <= last; i += VN)
            apply_step(1, options_in_register(in_step, NORM_ANY), &part->opt->w_offset, row, &f, i, VN, D, 0);
        if (NRG_RARELY(i < stop)) {
            const norm_factors copy = f;
            apply_rest(part->opt, part->row + k, &copy, i, stop, D, 0);
        }
    }
}

#endif
