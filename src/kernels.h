/* The kernels, and a table of them for every op of kernels.def and every dtype, with a kernel for each path. Calls look a kernel
 * up in the table of its op and dtype, so that a program is linked with the kernels of what it calls.
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

/* nrg_<op>_kernel, the type of its functions nrg_<path>_<op>_<dtype>; and nrg_<op>_<dtype>_kernels, the tables of them. */
#define NRG_DECLARE_KERNELS(path, isa, op)                                                                                       \
    nrg_##op##_kernel nrg_##path##_##op##_f32, nrg_##path##_##op##_f16, nrg_##path##_##op##_bf16;
#define NRG_DECLARE_OP(op, job)                                                                                                  \
    struct nrg_##job##_job;                                                                                                      \
    typedef void nrg_##op##_kernel(const struct nrg_##job##_job *);                                                              \
    NRG_EACH_PATH(NRG_DECLARE_KERNELS, op)                                                                                       \
    extern nrg_##op##_kernel *const nrg_##op##_f32_kernels[NRG_PATHS], *const nrg_##op##_f16_kernels[NRG_PATHS],                 \
                                                                           *const nrg_##op##_bf16_kernels[NRG_PATHS];
#define NRG_KERNEL(family, op, job) NRG_DECLARE_OP(op, job)
#define NRG_SUBKERNEL(op, name, job) NRG_DECLARE_OP(name, job)
#include "kernels.def"
#undef NRG_KERNEL
#undef NRG_DECLARE_OP
#undef NRG_DECLARE_KERNELS

/* An op's table for a dtype. A constant dtype names one table only; NRG_TABLES_OF names all, in the order of nrg_dtype. */
#define NRG_KERNELS_OF(op, dtype)                                                                                                \
    ((dtype) == NRG_F32 ? nrg_##op##_f32_kernels : (dtype) == NRG_F16 ? nrg_##op##_f16_kernels : nrg_##op##_bf16_kernels)
#define NRG_TABLES_OF(op) nrg_##op##_f32_kernels, nrg_##op##_f16_kernels, nrg_##op##_bf16_kernels

/* The kernel for a path, and for the active one. */
#define NRG_KERNEL_ON(path, op, dtype) NRG_KERNELS_OF(op, dtype)[path]
#define NRG_ACTIVE_KERNEL(op, dtype) NRG_KERNEL_ON(nrg_active_path(), op, dtype)

/* dispatch.c: the row of the path that calls go through, at any time of the process's life. */
unsigned nrg_active_path(void);

#endif
