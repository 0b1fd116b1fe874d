/* What every path's vec.h is written with. The contract of vec.h itself is in docs/adding-an-isa.md.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_VEC_H
#define NRG_TEMPLATE_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NRG_INLINE static inline __attribute__((always_inline))

/* nrg_<path>_<name>, where the including file defines NRG_PATH. */
#define NRG_PATH_NAME__(path, name) nrg_##path##_##name
#define NRG_PATH_NAME_(path, name) NRG_PATH_NAME__(path, name)
#define NRG_PATH_NAME(name) NRG_PATH_NAME_(NRG_PATH, name)

/* The bodies hold vectors in small arrays; those live in registers only when the loops over them are unrolled, which gcc does not
 * do by itself at -O2. */
#if defined(__clang__)
#define NRG_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NRG_UNROLL _Pragma("GCC unroll 16")
#endif

#endif
