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

/* g of n floats, with its default α; in may be out. g and its slope g' likewise, in either's place; none of the outputs may
 * overlap the other. Each path has its own, called once a few hundred elements by the kernels that fuse an activation.
 *
 * Vectors alone have the rest: SiLU, or g, of n floats times as many factors, where out may be either, and the same of SiLU and
 * quick GELU with the limit and offset of a gated linear unit; up·factor·g' and
 * up·g, where outputs may be any input; the product of the first of n elements of bf16, which says of how many: none where g has
 * no such loop; and g past the cache. What is written past the cache begins at a multiple of 16 bytes, and the caller fences. */
enum {
    NRG_TIMES_STREAM = 1 << 0,          /* out goes past the cache */
    NRG_TIMES_PREFETCH_IN = 1 << 1,     /* in comes from memory, */
    NRG_TIMES_PREFETCH_FACTOR = 1 << 2, /* and so do factors */
};

/* Two tensors of bf16 and their product, with the limit and offset of a gated linear unit. */
typedef struct nrg_bf16_times {
    const uint16_t *in, *factor;
    uint16_t *out;
    float alpha, limit, offset;
} nrg_bf16_times;

#define NRG_ACTIVATE(path, isa, unused)                                                                                          \
    void nrg_##path##_activate(nrg_activation g, const float *in, float *out, size_t n);                                         \
    void nrg_##path##_activate_both(nrg_activation g, const float *in, float *out, float *slope, size_t n);                      \
    void nrg_##path##_activate_times(nrg_activation g, float alpha, const float *in, const float *factor, float *out, size_t n,  \
                                     unsigned how);                                                                              \
    void nrg_##path##_activate_limited(nrg_activation g, float alpha, float limit, float offset, const float *in,                \
                                       const float *factor, float *out, size_t n, unsigned how);                                 \
    size_t nrg_##path##_activate_bf16_times(nrg_activation g, const nrg_bf16_times *p, size_t n, unsigned how);                  \
    void nrg_##path##_activate_gradients(nrg_activation g, float alpha, const float *in, const float *factor, const float *up,   \
                                         float *out, float *slope, size_t n, unsigned how);                                      \
    void nrg_##path##_activate_streamed(nrg_activation g, const float *in, float *out, size_t n);
NRG_EACH_PATH(NRG_ACTIVATE, )
#undef NRG_ACTIVATE

#endif
