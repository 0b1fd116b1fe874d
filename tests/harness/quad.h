/* Arithmetic with 113 bits: the truth that results are measured against. x86 has it as __float128, AArch64 and RISC-V as long
 * double; the square root is ours, so that no library is needed for it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_QUAD_H
#define NRG_TESTS_HARNESS_QUAD_H

#include <float.h>
#include <math.h>

#if LDBL_MANT_DIG == 113
typedef long double quad;
#elif defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 quad;
#else
#error "the truth tests need __float128 or a 113-bit long double"
#endif

static inline quad quad_abs(quad a) { return a < 0 ? -a : a; }

/* Newton's steps from double's 53 bits: to 106, to all. For values whose root a double can hold. */
static inline quad quad_sqrt(quad a)
{
    if (!(a > 0))
        return 0;
    quad root = sqrt((double)a);
    for (int i = 0; i < 2; i++)
        root = (root + a / root) / 2;
    return root;
}

#endif
