/* The job of the activations, and what other kernels call of them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_JOB_ACTIVATION_H
#define NRG_JOB_ACTIVATION_H

#include "../../include/nrg/activation.h"
#include "../../include/nrg/isa.h"
#include "../paths.h"

/* Their values are 0 to this less one. */
enum { NRG_ACTIVATION_COUNT = NRG_ACT_SOFTSIGN + 1 };

/* nrg_activation_alpha, inline. */
static inline float nrg_default_alpha(nrg_activation g)
{
    return g == NRG_ACT_GELU_QUICK ? 1.702f : g == NRG_ACT_ELU ? 1.0f : g == NRG_ACT_LEAKY_RELU ? 0.01f : 0.0f;
}

/* Elements begin to end for activation (o = g(x)) and activation_backward (o = d_o · g'(x)). */
typedef struct nrg_activation_job {
    const char *x, *d_o; /* d_o: NULL for activation */
    char *o;
    size_t begin, end;
    int stream;
    nrg_activation activation;
    float alpha; /* of those that have a parameter */
} nrg_activation_job;

/* Elements begin to end of glu (o = g(a')·b') and glu_backward (da and db from d_o). Where b is NULL, a holds pairs, and so does
 * da. */
typedef struct nrg_glu_job {
    const char *a, *b, *d_o; /* d_o: NULL for glu */
    char *o, *da, *db;       /* o: NULL for glu_backward */
    size_t begin, end;
    int stream;
    nrg_activation activation;
    float alpha;                       /* as above */
    float limit, b_offset;             /* infinite and -0 where there is none */
    const struct nrg_quant_row *quant; /* glu_quantized: where the elements go, which are a row */
} nrg_glu_job;

/* The kernel's function for an α. ELU and leaky ReLU of 0 are ReLU: 0·(-∞) would be a NaN. */
static inline nrg_activation nrg_activation_with(nrg_activation g, float alpha)
{
    return alpha == 0 && nrg_default_alpha(g) != 0 ? NRG_ACT_RELU : g;
}

/* A run of elements: value = f·g(x) and slope = d·f·g'(x), where x, f and d are elements of in, factor and up.
 *
 * - factor, up: NULL for 1. Without a slope, up is not read; with one, value = d·g(x), without f.
 * - value, slope: NULL where not wanted. Each may be an input; they may not overlap each other.
 * - limit, offset: read with NRG_RUN_LIMITED only. x and f are then those of a gated linear unit (nrg/glu.h).
 * - how: NRG_RUN_ bits. */
typedef struct nrg_activation_run {
    const void *in, *factor, *up;
    void *value, *slope;
    float alpha;
    unsigned how;
    float limit, offset;
} nrg_activation_run;

enum {
    NRG_RUN_STREAM = 1 << 0,   /* results go past the cache, to multiples of 16 bytes; the caller fences */
    NRG_RUN_PREFETCH = 1 << 1, /* inputs come from memory */
    NRG_RUN_LIMITED = 1 << 2,
    /* of activate_values and activate_blocks only, as NRG_RUN_LIMITED is */
    NRG_RUN_PAIRS = 1 << 3, /* in holds pairs of x and f, slope their gradients; factor and, with a slope, value are NULL */
    NRG_RUN_FLOATS = 1 << 4 /* value is f32 with room for whole steps, and there is no slope */
};

/* A run of whole steps of floats by one activation: its values, its slopes, or both. */
typedef void nrg_activation_loop(const nrg_activation_run *run, size_t n);

/* What the kernels of other operations call, a few hundred elements at a time.
 *
 * - activate: g of n floats, with its default α; in may be out.
 * - activate_both: the same, and g'. Neither output may overlap the other.
 *
 * Vectors only, with a loop of one of two tables. A program has the loops of those tables alone that its operations name.
 *
 * - activate_floats: a run of floats.
 * - activate_blocks: a run of elements of a dtype.
 * - activate_values: a run of values of a dtype, in pairs or with a limit; others of floats are runs of activate_floats. */
#define NRG_ACTIVATE(path, isa, unused)                                                                                          \
    extern nrg_activation_loop *const nrg_##path##_value_loops[NRG_ACTIVATION_COUNT];                                            \
    extern nrg_activation_loop *const nrg_##path##_both_loops[NRG_ACTIVATION_COUNT];                                             \
    void nrg_##path##_activate(nrg_activation g, const float *in, float *out, size_t n);                                         \
    void nrg_##path##_activate_both(nrg_activation g, const float *in, float *out, float *slope, size_t n);                      \
    void nrg_##path##_activate_floats(nrg_activation_loop *loop, const nrg_activation_run *run, size_t n);                       \
    void nrg_##path##_activate_blocks(nrg_activation_loop *loop, const nrg_activation_run *run, size_t n, nrg_dtype dtype);      \
    void nrg_##path##_activate_values(nrg_activation g, const nrg_activation_run *run, size_t n, nrg_dtype dtype);
NRG_EACH_PATH(NRG_ACTIVATE, )
#undef NRG_ACTIVATE

#endif
