/* check/hash.h: what a case computes, as a number.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_HASH_H
#define NRG_CHECK_HASH_H

#include "sweep.h"

/* Of no result at all. */
#define SWEEP_HASH_START 0xcbf29ce484222325u

/* The bits of an element, little-endian, as every host of nrg is; and whether it is a NaN. */
uint64_t sweep_load(int type, const unsigned char *element);
int sweep_is_nan(int type, const unsigned char *element);

/* Makes every NaN of an operand the same one. */
void sweep_unify_nans(const sweep_operand *operand, unsigned char *memory);

/* Adds the elements of a case's outputs to a hash, in the order of the operands, rows and elements, and how many there are of
 * each: where they lie is no part of it, and every NaN is the same one. */
uint64_t sweep_hash(const sweep_case *c, const unsigned char *memory, uint64_t hash);

#endif
