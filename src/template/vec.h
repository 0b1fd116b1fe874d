/* What every path's vec.h is written with. The contract of vec.h itself is in docs/adding-an-isa.md.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TEMPLATE_VEC_H
#define NRG_TEMPLATE_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NRG_INLINE static inline __attribute__((always_inline))

/* The bodies hold vectors in small arrays; those live in registers only when the loops over them are unrolled, which gcc does not
 * do by itself at -O2. */
#if defined(__clang__)
#define NRG_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NRG_UNROLL _Pragma("GCC unroll 16")
#endif

#endif
