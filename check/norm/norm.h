/* check/norm/norm.h: what the cases of a norm's forward and backward pass have in common.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_CHECK_NORM_NORM_H
#define NRG_CHECK_NORM_NORM_H

#include "../sweep.h"
#include "settle.h"

/* A combination: bit 0 centred, bits 1-2 weight and bias, bits 3-4 the residual. */
enum { SWEEP_CENTRED = 1, SWEEP_WEIGHT = 2, SWEEP_BIAS = 4, SWEEP_RESIDUAL_SHIFT = 3, SWEEP_COMBINATIONS = 32 };
enum { SWEEP_RESIDUAL_NONE, SWEEP_RESIDUAL_SUM, SWEEP_RESIDUAL_R, SWEEP_RESIDUAL_AFTER };

/* The lengths of both. */
#define SWEEP_NORM_LENGTHS .small = {130, 300, 1100, 2}, .large = SWEEP_NORM_LARGE
enum { SWEEP_NORM_LARGE = 21 };

/* Draws shape and spec of a case, of a family whose ways are some of the 32 combinations; returns the case's. */
int sweep_norm_draw(sweep_case *c, uint64_t *random);

/* Makes length and rows those that a format has: lengths of one chunk of the kernels and of several, of 16 blocks and more;
 * planes of whole groups of rows. */
enum { SWEEP_FORMATS = NRG_QUANT_INT8_128 };
void sweep_norm_fit(sweep_case *c, nrg_quant_format format);

/* What is asked for, in words. */
void sweep_norm_describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM]);

#endif
