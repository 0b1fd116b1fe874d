/* Gated linear units over the vectors of a path's vec.h, as runs of the loops of the activations (activation.h).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_ACTIVATION_GLU_H
#define NRG_TEMPLATE_ACTIVATION_GLU_H

#include "../../internal.h"
#include "../../job/activation.h"
#include "../../job/quantize.h"

/* Lines that are in cache because the call is in place gain nothing by streaming. */
NRG_INLINE int glu_streams(const nrg_glu_job *job, const char *out)
{
    return job->stream && out != job->a && out != job->b && out != job->d_o;
}

/* What a run and its results have in common. */
NRG_INLINE void glu_begin(nrg_activation_run *run, const nrg_glu_job *job, int stream, int is_backward, nrg_dtype D)
{
    const size_t at = job->begin * (D == NRG_F32 ? 4 : 2);
    if (job->b) {
        run->in = job->a + at;
        run->factor = job->b + at;
        run->how = 0;
    } else {
        run->in = job->a + 2 * at;
        run->factor = NULL;
        run->how = NRG_RUN_PAIRS;
    }
    if (NRG_RARELY(job->stream))
        run->how |= NRG_RUN_PREFETCH | (stream ? NRG_RUN_STREAM : 0);
    run->up = is_backward ? job->d_o + at : NULL;
    run->alpha = job->alpha;
    if (NRG_RARELY(job->limit <= FLT_MAX || job->b_offset != 0)) {
        run->how |= NRG_RUN_LIMITED;
        run->limit = job->limit;
        run->offset = job->b_offset;
    }
}

NRG_INLINE void glu_values(const nrg_activation_run *run, const nrg_glu_job *job, size_t n, nrg_dtype D)
{
    if (D == NRG_F32 && !(run->how & (NRG_RUN_PAIRS | NRG_RUN_LIMITED)))
        NRG_PATH_NAME(activate_floats)(NRG_PATH_NAME(value_loops)[job->activation], run, n);
    else
        NRG_PATH_NAME(activate_values)(job->activation, run, n, D);
}

NRG_INLINE void glu_forward(const nrg_glu_job *job, nrg_dtype D)
{
    const int stream = glu_streams(job, job->o);
    nrg_activation_run run;
    glu_begin(&run, job, stream, 0, D);
    run.value = job->o + job->begin * (D == NRG_F32 ? 4 : 2);
    run.slope = NULL;
    glu_values(&run, job, job->end - job->begin, D);
    if (stream)
        v_nt_fence();
}

NRG_PATH_KERNELS(glu, glu, glu_forward)

#ifndef NRG_NO_QUANTIZE
/* A row as bytes, a block at a time; with a scale for all of them, the largest magnitude first. */
NRG_INLINE void glu_bytes(const nrg_glu_job *job, nrg_dtype D)
{
    enum { GLU_BLOCK = 512 };
    _Alignas(64) float block[GLU_BLOCK];
    float amax = 0;
    nrg_glu_job part = *job;
    part.stream = job->stream && D == NRG_F32; /* with prefetches bf16 takes 1.1 times as long out of cache (EPYC Zen 4) */
    for (int pass = nrg_format_block(job->quant->format) ? 1 : 0; pass < 2; pass++)
        for (size_t i = 0, end = job->end, n; i < end; i += n) {
            nrg_activation_run run;
            n = end - i < GLU_BLOCK ? end - i : GLU_BLOCK;
            part.begin = i;
            glu_begin(&run, &part, 0, 0, D);
            run.how |= NRG_RUN_FLOATS;
            run.value = block;
            run.slope = NULL;
            glu_values(&run, &part, n, D);
            if (pass == 0)
                amax = NRG_PATH_NAME(amax)(block, n, amax);
            else
                NRG_PATH_NAME(quantize_floats)(job->quant, block, i, n, amax);
        }
}

NRG_PATH_KERNELS(glu_quantized, glu, glu_bytes)
#endif

#ifndef NRG_NO_BACKWARD
/* Floats go straight through the loops if nothing is cut off, and if lines of both gradients end at the same elements. */
NRG_INLINE void glu_backward(const nrg_glu_job *job, nrg_dtype D)
{
    const size_t each = D == NRG_F32 ? 4 : 2, n = job->end - job->begin;
    const int stream = glu_streams(job, job->da) && glu_streams(job, job->b ? job->db : job->da);
    const int are_alike = ((uintptr_t)job->da - (uintptr_t)job->db) % 64 == 0;
    nrg_activation_loop *const loop = NRG_PATH_NAME(both_loops)[job->activation];
    nrg_activation_run run;
    glu_begin(&run, job, stream, 1, D);
    run.slope = job->da + job->begin * each * (job->b ? 1 : 2);
    run.value = job->b ? job->db + job->begin * each : NULL;
    if (D == NRG_F32 && !(run.how & (NRG_RUN_PAIRS | NRG_RUN_LIMITED)) && (!stream || are_alike))
        NRG_PATH_NAME(activate_floats)(loop, &run, n);
    else
        NRG_PATH_NAME(activate_blocks)(loop, &run, n, D);
    if (stream)
        v_nt_fence();
}

NRG_PATH_KERNELS(glu_backward, glu, glu_backward)
#endif

#endif
