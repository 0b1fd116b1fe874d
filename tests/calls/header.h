/* What a public header says of a call: the statuses it lists, and its matrix of operands that may lie in each other's place.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_HEADER_H
#define NRG_TESTS_CALLS_HEADER_H

#include "../../src/operands/operand.h"

/* Bits of the statuses (NRG_ERR_…) that the comment before a function names; those of another one as well where it says "the
 * statuses of nrg_…". The header's name is that in include/nrg. */
uint32_t header_statuses(const char *header, const char *function);

/* Bits of the operands in whose place operand `out` may be, by the last matrix before the function that has a row for it:
 *
 *               x     y     o
 *         o     yes   no
 */
uint32_t header_over(const char *header, const char *function, const nrg_call *call, int out);

#endif
