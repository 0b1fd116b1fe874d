/* The angles of rotary embeddings with 113 bits, written from the papers that nrg/rope.h names, and from the models' reference
 * code where a paper leaves something open.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_ROPE_ROPE_EXACT_H
#define NRG_TESTS_ROPE_ROPE_EXACT_H

#include <nrg/nrg.h>

#include "../harness/quad_angle.h"

enum { EXACT_PAIRS = 512 };

typedef struct rope_exact {
    size_t pairs;
    quad theta[EXACT_PAIRS];
    int axis[EXACT_PAIRS]; /* the position a pair turns with */
    quad magnitude;
} rope_exact;

/* Sections one after the other, and again from the first where pairs are left. */
static inline void exact_sections(rope_exact *e, const nrg_rope_spec *s, size_t *power)
{
    size_t pair = 0;
    while (pair < e->pairs)
        for (int axis = 0; axis < 4; axis++)
            for (int i = 0; i < s->sections[axis] && pair < e->pairs; i++, pair++) {
                e->axis[pair] = axis;
                if (s->mode == NRG_ROPE_VISION)
                    power[pair] = (size_t)i;
            }
}

/* ggml: rounds of as many pairs as the sections have, all of which belong to the fourth position, of which time, height and width
 * take every third. */
static inline void exact_interleaved(rope_exact *e, const nrg_rope_spec *s)
{
    size_t round = 0;
    for (int axis = 0; axis < 4; axis++)
        round += (size_t)s->sections[axis];
    for (size_t p = 0; p < e->pairs; p++)
        e->axis[p] = 3;
    for (size_t first = 0; first < e->pairs; first += round)
        for (size_t axis = 0; axis < 3; axis++)
            for (size_t i = axis; i < 3 * (size_t)s->sections[axis] && i < round && first + i < e->pairs; i += 3)
                e->axis[first + i] = (int)axis;
}

/* Qwen3-VL: all pairs belong to time, of which height takes every third from the second on, and width from the third. */
static inline void exact_interleaved_time(rope_exact *e, const nrg_rope_spec *s)
{
    for (size_t axis = 1; axis < 3; axis++)
        for (size_t i = 0; i < (size_t)s->sections[axis]; i++)
            if (axis + 3 * i < e->pairs)
                e->axis[axis + 3 * i] = (int)axis;
}

/* Llama 3.1: by wavelength. */
static inline quad exact_llama3(const nrg_rope_spec *s, quad theta)
{
    const quad wavelength = 2 * QUAD_PI / theta, context = s->n_ctx_orig;
    if (wavelength > context / s->low_freq_factor)
        return theta / s->factor;
    if (wavelength < context / s->high_freq_factor)
        return theta;
    const quad smooth = (context / wavelength - s->low_freq_factor) / ((quad)s->high_freq_factor - s->low_freq_factor);
    return (1 - smooth) * theta / s->factor + smooth * theta;
}

/* YaRN: the pair that makes `turns` turns in the original context. */
static inline quad exact_yarn_pair(const nrg_rope_spec *s, double turns)
{
    return (quad)s->n_dims * quad_log(s->n_ctx_orig / (turns * 2 * QUAD_PI)) / (2 * quad_log(s->freq_base));
}

static inline rope_exact rope_exact_of(const nrg_rope_spec *s)
{
    rope_exact e;
    size_t power[EXACT_PAIRS];
    e.pairs = s->mode == NRG_ROPE_VISION ? s->n_dims : s->n_dims / 2;
    for (size_t p = 0; p < e.pairs; p++) {
        power[p] = p;
        e.axis[p] = 0;
    }
    if (s->mode == NRG_ROPE_MROPE || s->mode == NRG_ROPE_VISION)
        exact_sections(&e, s, power);
    if (s->mode == NRG_ROPE_IMROPE)
        exact_interleaved(&e, s);
    if (s->mode == NRG_ROPE_IMROPE_TIME)
        exact_interleaved_time(&e, s);

    quad log_base = quad_log(s->freq_base);
    if (s->scaling == NRG_ROPE_SCALING_NTK)
        log_base = quad_log(s->freq_base) + quad_log(s->factor) * (quad)s->n_dims / ((quad)s->n_dims - 2);
    quad first = 0, width = 1;
    if (s->ext_factor != 0) {
        quad end = exact_yarn_pair(s, s->beta_slow);
        first = exact_yarn_pair(s, s->beta_fast);
        if (!(s->yarn & NRG_ROPE_YARN_NO_TRUNCATE)) {
            first = floor((double)first);
            end = ceil((double)end);
        }
        first = first > 0 ? first : 0;
        width = (end < (quad)s->n_dims - 1 ? end : (quad)s->n_dims - 1) - first;
        width = width > 0.001 ? width : 0.001;
    }
    for (size_t p = 0; p < e.pairs; p++) {
        quad theta = quad_exp(-2 * (quad)power[p] / (quad)s->n_dims * log_base);
        if (s->scaling == NRG_ROPE_SCALING_LLAMA3)
            theta = exact_llama3(s, theta);
        if (s->freq_factors)
            theta /= s->freq_factors[p];
        const quad interpolated = theta * s->freq_scale;
        quad along = s->ext_factor != 0 ? ((quad)(double)p - first) / width : 1;
        along = along < 0 ? 0 : along > 1 ? 1 : along;
        const quad extrapolated = (1 - along) * s->ext_factor;
        e.theta[p] = interpolated * (1 - extrapolated) + theta * extrapolated;
    }
    e.magnitude = s->attn_factor;
    if (s->ext_factor != 0 && !(s->yarn & NRG_ROPE_YARN_NO_MSCALE))
        e.magnitude *= 1 - quad_log(s->freq_scale) / 10;
    return e;
}

#endif
