/* The names of the reference kernels: an op of kernels.def is nrg_scalar_<op>_<dtype> here.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_SCALAR_KERNELS_H
#define NRG_SCALAR_KERNELS_H

#include "../internal.h"

/* One kernel, which is the given call. */
#define SCALAR_KERNEL(op, dtype, job_name, call)                                                                                 \
    void nrg_scalar_##op##_##dtype(const nrg_##job_name##_job *job) { call; }

/* The three kernels of an op: body(job, dtype). */
#define SCALAR_KERNELS(op, job_name, body)                                                                                       \
    SCALAR_KERNEL(op, f32, job_name, body(job, NRG_F32))                                                                         \
    SCALAR_KERNEL(op, f16, job_name, body(job, NRG_F16))                                                                         \
    SCALAR_KERNEL(op, bf16, job_name, body(job, NRG_BF16))

#endif
