/* What a backward pass of rows is made of: its options, batches of rows, and parts of a row as its sums want them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_NORM_NORM_BACKWARD_PARTS_H
#define NRG_TEMPLATE_NORM_NORM_BACKWARD_PARTS_H

#include "norm_backward_element.h"
#include "norm_backward_stage.h"

enum {
    BACKWARD_SUM_CHUNK = 256,        /* elements of a row that are staged and summed at once */
    BACKWARD_ELEMENT_CHUNK = 128,    /* columns of a batch: whole steps of the activations, whose ends are slow */
    BACKWARD_WHOLE_SUM_CHUNK = 4096, /* the same where nothing is staged */
    BACKWARD_WHOLE_ELEMENT_CHUNK = 4096,
    BACKWARD_RAW_CHUNK = 1024,      /* where only the weights are */
    BACKWARD_LEAN_SUM_CHUNK = 1024, /* the same where only gates are staged */
    BACKWARD_LEAN_ELEMENT_CHUNK = 384,
    BACKWARD_SCRATCH = 1536 /* floats: four chunks of the one, ten of the other; with clang a call takes 15 KB of stack */
};

typedef struct backward {
    const nrg_norm_backward_job *job;
    nrg_dtype D;
    int gated;     /* a gate, or an activation on the output */
    int on_output; /* the latter */
    int raw;       /* 16-bit rows without gates and residuals: the loops read and write them as they are */
    int direct;    /* dp is dx, as it is */
    int lean;      /* gated floats of which nothing but the gates is staged */
    int keeps;     /* lean, and g(z) and g′(z) wait in rows of dx and dz, from a row's sums to its elements */
    int stream_dx, stream_dy, stream_dz;
    size_t sum_chunk, element_chunk; /* elements at once: what the scratch holds, or more where nothing is staged */
    float *scratch;                  /* BACKWARD_SCRATCH */
} backward;

/* Some rows of one group. */
typedef struct backward_batch {
    size_t n, group;
    int rows;
    backward_row row[NRG_ROW_BATCH];
    backward_factors f[NRG_ROW_BATCH];
} backward_batch;

/* ---- chunks for the sums ---- */

/* Where a chunk that begins at `begin` ends. */
NRG_INLINE size_t sum_end(const backward *b, size_t begin)
{
    return b->job->dim - begin > b->sum_chunk ? begin + b->sum_chunk : b->job->dim;
}

/* The same for what is staged in any case. */
NRG_INLINE size_t staged_end(const backward *b, size_t begin)
{
    return b->job->dim - begin > BACKWARD_SUM_CHUNK ? begin + BACKWARD_SUM_CHUNK : b->job->dim;
}

/* g(z)·factor of a chunk of a row; copy: an array to use. */
NRG_INLINE void gated_floats(const backward *b, const backward_row *row, size_t begin, size_t n, const float *factor, float *out,
                             float *copy)
{
    const nrg_norm_backward_job *job = b->job;
    const float *z = as_floats(row->z, b->D, 0, begin, n, copy);
    if (job->activation == NRG_ACT_SILU) {
        NRG_PATH_NAME(silu_times)(z, factor, out, n, 0);
        return;
    }
    NRG_PATH_NAME(activate)(job->activation, z, copy, n);
    multiply_floats(out, factor, copy, n);
}

/* p of a chunk of at most BACKWARD_SUM_CHUNK; the first three quarters of the scratch may be used, and p may be in the second. */
NRG_INLINE const float *input_floats(const backward *b, const backward_row *row, size_t begin, size_t n)
{
    const nrg_norm_backward_job *job = b->job;
    const size_t apart = b->lean ? 0 : BACKWARD_SUM_CHUNK; /* one array serves */
    float *s1 = b->scratch + apart, *s2 = s1 + apart;
    const float *p = residual_floats(job, row, b->D, begin, n, s1, s2);
    if (job->gate != NRG_GATE_PRE)
        return p;
    gated_floats(b, row, begin, n, p, s1, s2);
    return s1;
}

/* p and do1. f: the row's factors, where do1 needs h; with_d: 0 where do1 is of no interest. */
NRG_INLINE backward_chunk sum_floats(const backward *b, const backward_row *row, size_t begin, size_t n,
                                     const backward_factors *f, int with_d)
{
    const nrg_norm_backward_job *job = b->job;
    const nrg_dtype D = b->D;
    const size_t apart = b->lean ? 0 : BACKWARD_SUM_CHUNK;
    float *s0 = b->scratch, *s2 = s0 + 2 * apart, *s3 = s2 + apart;
    backward_chunk c = {.w = weight_floats(job, row, D, begin, n, s3)};
    if (b->keeps) {
        const float *d_o = (const float *)row->d_o + begin, *x = (const float *)row->x + begin;
        float *gate = (float *)row->dx + begin;
        const int pre = job->gate == NRG_GATE_PRE;
        NRG_PATH_NAME(activate_both)(job->activation, (const float *)row->z + begin, gate, (float *)row->dz + begin, n);
        multiply_floats(s0, pre ? x : d_o, gate, n);
        c.p = (const char *)(pre ? s0 : x);
        c.d = (const char *)(pre ? d_o : s0);
        return c;
    }
    const float *p = input_floats(b, row, begin, n), *d;
    c.p = (const char *)p;
    if (!with_d) {
        c.d = c.p;
        return c;
    }
    if (b->on_output) {
        const float *bias = row->b ? as_floats(row->b, D, job->w_f32, begin, n, s0) : NULL;
        backward_normalized(s2, p, f, n);
        backward_outputs(s2, s2, c.w, bias, job->formula.k, n);
        NRG_PATH_NAME(activate_both)(job->activation, s2, s2, s0, n);
        multiply_floats(s0, as_floats(row->d_o, D, 0, begin, n, s2), s0, n);
        c.d = (const char *)s0;
        return c;
    }
    d = as_floats(row->d_o, D, 0, begin, n, s0);
    if (job->gate == NRG_GATE_POST) {
        gated_floats(b, row, begin, n, d, s0, s2);
        d = s0;
    }
    c.d = (const char *)d;
    return c;
}

#endif
