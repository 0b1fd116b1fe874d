/* The Hadamard rotation: the oracle.
 *
 * SPDX-License-Identifier: MIT */
#include "../job/hadamard.h"
#include "element.h"

static void hadamard(const nrg_hadamard_job *job, nrg_dtype dtype)
{
    for (size_t row = job->begin; row < job->end; row++) {
        float v[NRG_HADAMARD_MOST]; /* o may be x */
        for (size_t i = 0; i < job->dim; i++)
            v[i] = load(job->x + row * job->x_stride, i, dtype);
        for (size_t stride = 1; stride < job->dim; stride *= 2)
            for (size_t i = 0; i < job->dim; i++)
                if ((i & stride) == 0) {
                    const float a = v[i], b = v[i + stride];
                    v[i] = a + b;
                    v[i + stride] = a - b;
                }
        for (size_t i = 0; i < job->dim; i++)
            store(job->o + row * job->o_stride, i, dtype, v[i] * job->scale);
    }
}

SCALAR_KERNELS(hadamard, hadamard, hadamard)
