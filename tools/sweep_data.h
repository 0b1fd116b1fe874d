/* tools/sweep_data.h: what rows hold in nrg check.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_SWEEP_DATA_H
#define NRG_TOOLS_SWEEP_DATA_H

#include <stddef.h>
#include <stdint.h>

#include <nrg/nrg.h>

/* 64 random bits; a number below n. */
uint64_t sweep_random(uint64_t *state);
unsigned sweep_draw(uint64_t *state, unsigned n);

/* Fills a row, or a weight or bias, with data of a kind that is drawn: mostly near normal, sometimes as nasty as it gets. */
void sweep_fill_row(unsigned char *row, nrg_dtype dtype, size_t length, int is_weight, uint64_t *random);

#endif
