/* check/data.h: what rows, and other lines of elements, hold in nrg check.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_DATA_H
#define NRG_CHECK_DATA_H

#include <stddef.h>
#include <stdint.h>

#include <nrg/nrg.h>

/* 64 random bits; a number below n. */
uint64_t sweep_random(uint64_t *state);
unsigned sweep_draw(uint64_t *state, unsigned n);

/* A number of shares, mostly one. */
int sweep_draw_shares(uint64_t *state);

/* Data of one kind, which is drawn: mostly near normal, sometimes as nasty as finite data gets; or near normal with one element
 * that is infinite or NaN. */
typedef struct sweep_kind {
    int kind;
    float constant; /* where all elements are one */
} sweep_kind;
sweep_kind sweep_draw_kind(int is_weight, uint64_t *random);
sweep_kind sweep_draw_poison(uint64_t *random);

/* Above 0; and so small that a matrix of some 100 columns of it shrinks vectors. */
sweep_kind sweep_kind_near_one(void);
sweep_kind sweep_kind_gentle(void);

/* Fills elements that are `step` bytes apart. */
void sweep_fill_line(unsigned char *first, size_t step, nrg_dtype dtype, size_t length, sweep_kind kind, uint64_t *random);

/* Fills a row, or a weight or bias, with data of a kind that is drawn, poisoned ones among them. */
void sweep_fill_row(unsigned char *row, nrg_dtype dtype, size_t length, int is_weight, uint64_t *random);

#endif
