/* Elements of a tensor as floats. The 16-bit conversions here are the tests' own: by rounding in double arithmetic, where the
 * library works on bits.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_ELEMENT_H
#define NRG_TESTS_HARNESS_ELEMENT_H

#include <stddef.h>
#include <stdint.h>

#include <nrg/nrg.h>

float element_get(const void *tensor, size_t i, nrg_dtype dtype);

/* Rounds to nearest, ties to even. */
void element_set(void *tensor, size_t i, nrg_dtype dtype, float value);

/* New memory with these values; NULL where there are none. */
void *element_stored(const float *values, size_t count, nrg_dtype dtype);

/* value rounded to dtype, as a float. */
float element_round(float value, nrg_dtype dtype);

/* Memory for elements; never NULL. A copy as floats, and where an element is; NULL for NULL. */
void *element_tensor(size_t count, nrg_dtype dtype);
float *element_floats(const void *tensor, size_t count, nrg_dtype dtype);
void *element_at(const void *tensor, size_t i, nrg_dtype dtype);

/* The largest finite value of a dtype. */
float element_max(nrg_dtype dtype);

/* Distance of neighbours at |value| on the grid of a dtype, subnormals included. */
double element_ulp(double value, nrg_dtype dtype);

uint32_t element_bits(const void *tensor, size_t i, nrg_dtype dtype);

/* Equal bits, or both NaN. */
int element_equal(const void *a, const void *b, size_t i, nrg_dtype dtype);

#endif
