/* What every path's vec.h is written with. The contract of vec.h itself is in docs/adding-an-isa.md.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_VEC_H
#define NRG_TEMPLATE_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NRG_INLINE static inline __attribute__((always_inline))

/* A condition that seldom holds: what depends on it goes out of the way of what comes always. */
#define NRG_RARELY(condition) __builtin_expect(!!(condition), 0)

/* nrg_<path>_<name>: a path's vec.h defines NRG_PATH. */
#define NRG_PATH_NAME__(path, name) nrg_##path##_##name
#define NRG_PATH_NAME_(path, name) NRG_PATH_NAME__(path, name)
#define NRG_PATH_NAME(name) NRG_PATH_NAME_(NRG_PATH, name)

/* One kernel of an op of kernels.def, which is the given call. */
#define NRG_PATH_KERNEL(op, dtype, job_name, call)                                                                               \
    void NRG_PATH_NAME(op##_##dtype)(const nrg_##job_name##_job *job) { call; }

/* The three kernels of an op: body(job, dtype). */
#define NRG_PATH_KERNELS(op, job_name, body)                                                                                     \
    NRG_PATH_KERNEL(op, f32, job_name, body(job, NRG_F32))                                                                       \
    NRG_PATH_KERNEL(op, f16, job_name, body(job, NRG_F16))                                                                       \
    NRG_PATH_KERNEL(op, bf16, job_name, body(job, NRG_BF16))

/* The bodies hold vectors in small arrays; those live in registers only when the loops over them are unrolled, which gcc does not
 * do by itself at -O2. A path may define it before, as nothing. */
#if defined(NRG_UNROLL)
#elif defined(__clang__)
#define NRG_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NRG_UNROLL _Pragma("GCC unroll 16")
#endif

#endif
