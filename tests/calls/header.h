/* What a public header says of a call: the statuses it lists, and its matrix of operands that may lie in each other's place.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_CALLS_HEADER_H
#define NRG_TESTS_CALLS_HEADER_H

#include "../../src/operands/operand.h"

/* Returns bits of the statuses that the comment before a function lists, as bullets "- NRG_ERR_A: …". "the statuses of nrg_x,
 * nrg_y and nrg_z" adds those of other functions. ", except NRG_ERR_A and NRG_ERR_B" after it leaves these out. */
uint32_t header_statuses(const char *function);

/* Bits of the operands in whose place operand `out` may be, by the last matrix before the function that has a row for it:
 *
 *               x     y     o
 *         o     yes   no
 */
uint32_t header_over(const char *function, const nrg_call *call, int out);

#endif
