/* The kernels, and a table of them for every op of kernels.def: a row a path, a column a dtype. Calls look a kernel up in the
 * table of its op, so that a program is linked with the kernels of what it calls.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_KERNELS_H
#define NRG_KERNELS_H

#include "../include/nrg/nrg.h"
#include "compiler.h"
#include "paths.h"

#if defined(NRG_NO_ACTIVATION) &&                                                                                                \
    !(defined(NRG_NO_NORM) && defined(NRG_NO_CHANNEL_NORM) && defined(NRG_NO_RECURRENT) && defined(NRG_NO_SOFTMAX))
#error "norm, channel_norm, recurrent and softmax need activation"
#endif

/* nrg_<op>_kernel, the type of its functions nrg_<path>_<op>_<dtype>; and nrg_<op>_kernels, the table of them. */
#define NRG_DECLARE_KERNELS(path, isa, op)                                                                                       \
    nrg_##op##_kernel nrg_##path##_##op##_f32, nrg_##path##_##op##_f16, nrg_##path##_##op##_bf16;
#define NRG_KERNEL(family, op, job)                                                                                              \
    struct nrg_##job##_job;                                                                                                      \
    typedef void nrg_##op##_kernel(const struct nrg_##job##_job *);                                                              \
    NRG_EACH_PATH(NRG_DECLARE_KERNELS, op)                                                                                       \
    extern nrg_##op##_kernel *const nrg_##op##_kernels[NRG_PATHS][3];
#include "kernels.def"
#undef NRG_KERNEL
#undef NRG_DECLARE_KERNELS

/* An op's kernel in a row of its table, and on the active path. */
#define NRG_KERNEL_ON(path, op, dtype) nrg_##op##_kernels[path][(dtype)-NRG_F32]
#define NRG_ACTIVE_KERNEL(op, dtype) NRG_KERNEL_ON(nrg_active_path(), op, dtype)

/* dispatch.c: the row of the path that calls go through, at any time of the process's life. */
unsigned nrg_active_path(void);

#endif
