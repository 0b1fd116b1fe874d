/* Gated linear units, forward and backward: the definition of their bits.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../job/quantize.h"
#include "activation.h"
#include "element.h"

/* What is computed with (b_offset is -0 where there is none, which leaves -0 as it is); and what of it the limit has cut off,
 * where nothing depends on the input any more. */
typedef struct inputs {
    float a, b;
    int a_is_cut, b_is_cut;
} inputs;

static inputs inputs_of(const nrg_glu_job *job, size_t i, nrg_dtype dtype)
{
    float a = job->b ? load(job->a, i, dtype) : load(job->a, 2 * i, dtype);
    float b = job->b ? load(job->b, i, dtype) : load(job->a, 2 * i + 1, dtype);
    inputs in = {.a_is_cut = a > job->limit, .b_is_cut = fabsf(b) > job->limit};
    in.a = in.a_is_cut ? job->limit : a;
    in.b = (in.b_is_cut ? copysignf(job->limit, b) : b) + job->b_offset;
    return in;
}

static void forward(const nrg_glu_job *job, nrg_dtype dtype)
{
    for (size_t i = job->begin; i < job->end; i++) {
        const inputs in = inputs_of(job, i, dtype);
        store(job->o, i, dtype, nrg_scalar_activate_one(job->activation, job->alpha, in.a, NULL) * in.b);
    }
}

SCALAR_KERNELS(glu, glu, forward)

#ifndef NRG_NO_QUANTIZE
/* Elements of a row, in parts that are blocks of any format; with a scale for all of them, their largest magnitude first. */
static void quantized(const nrg_glu_job *job, nrg_dtype dtype)
{
    enum { PART = 256 };
    float part[PART], amax = 0;
    for (int pass = nrg_format_block(job->quant->format) ? 1 : 0; pass < 2; pass++)
        for (size_t i = 0, n; i < job->end; i += n) {
            n = job->end - i < PART ? job->end - i : PART;
            for (size_t j = 0; j < n; j++) {
                const inputs in = inputs_of(job, i + j, dtype);
                part[j] = nrg_scalar_activate_one(job->activation, job->alpha, in.a, NULL) * in.b;
            }
            if (pass == 0)
                amax = nrg_scalar_amax(part, n, amax);
            else
                nrg_scalar_quantize_floats(job->quant, part, i, n, amax);
        }
}

SCALAR_KERNELS(glu_quantized, glu, quantized)
#endif

#ifndef NRG_NO_BACKWARD
static void backward(const nrg_glu_job *job, nrg_dtype dtype)
{
    for (size_t i = job->begin; i < job->end; i++) {
        const inputs in = inputs_of(job, i, dtype);
        const float d_o = load(job->d_o, i, dtype);
        float slope;
        const float g = nrg_scalar_activate_one(job->activation, job->alpha, in.a, &slope);
        const float da = in.a_is_cut ? 0 : d_o * in.b * slope, db = in.b_is_cut ? 0 : d_o * g;
        store(job->da, job->b ? i : 2 * i, dtype, da);
        if (job->b)
            store(job->db, i, dtype, db);
        else
            store(job->da, 2 * i + 1, dtype, db);
    }
}

SCALAR_KERNELS(glu_backward, glu, backward)
#endif
