/* check/layout.h: where the operands of a case lie.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_LAYOUT_H
#define NRG_CHECK_LAYOUT_H

#include "sweep.h"

/* An operand, dense and without a place yet. Its rows may be told to the library to lie apart; those of w, b and the like may
 * not. */
void sweep_add_tensor(sweep_case *c, int operand, int type, size_t length, size_t rows);
void sweep_add_dense(sweep_case *c, int operand, int type, size_t length, size_t rows);

/* A tensor whose rows come in runs; these lie apart, too, unless all rows are at equal distances. */
void sweep_add_runs(sweep_case *c, int operand, int type, size_t length, size_t run, size_t runs, int is_even);

/* An operand of a norm: which of the two its name says. */
void sweep_add(sweep_case *c, int operand, int type, size_t length, size_t rows);

/* Gives the operands their places: dense and aligned to 64 bytes; rows at odd multiples of 16 bytes; or anywhere. */
void sweep_lay_out(sweep_case *c, uint64_t *random);

/* In place: the output where the input is; nothing, where one is absent or their elements differ in size. */
void sweep_share_place(sweep_case *c, int output, int input);

/* The operand in the case's memory; NULL where absent. */
void *sweep_place(const sweep_case *c, int operand, unsigned char *memory);

#endif
