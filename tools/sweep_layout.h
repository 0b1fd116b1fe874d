/* tools/sweep_layout.h: where the operands of a case lie.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_SWEEP_LAYOUT_H
#define NRG_TOOLS_SWEEP_LAYOUT_H

#include "sweep.h"

/* A dense operand, without a place yet. */
void sweep_add(sweep_case *c, int operand, int type, size_t length, size_t rows);

/* Gives the operands their places: dense and aligned to 64 bytes; rows at odd multiples of 16 bytes; or anywhere. */
void sweep_lay_out(sweep_case *c, uint64_t *random);

/* In place: the output where the input is; nothing, where one is absent or their elements differ in size. */
void sweep_share_place(sweep_case *c, int output, int input);

/* The operand in the case's memory; NULL where absent. */
void *sweep_place(const sweep_case *c, int operand, unsigned char *memory);

#endif
