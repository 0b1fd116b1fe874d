/* Kernels that do nothing but count their calls: with them in the place of every path's, operands may be anything.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_STUB_KERNELS_H
#define NRG_TESTS_CALLS_STUB_KERNELS_H

#include <setjmp.h>
#include <stddef.h>

typedef struct stub_calls {
    size_t count;
    const char *op; /* of the last call, as kernels.def names it */
    int column;     /* its dtype's: 0 to 2 */
} stub_calls;

extern stub_calls stub;

/* A call of the library that reaches kernels more often than this ends in stub_end, which is to be set before. */
enum { STUB_MOST = 64 };
extern jmp_buf stub_end;

#endif
