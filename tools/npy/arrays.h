/* tools/npy/arrays.h: what commands do with the arrays of their files.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TOOLS_NPY_ARRAYS_H
#define NRG_TOOLS_NPY_ARRAYS_H

#include "npy.h"

/* Like all of the following: CLI_DONE, or the exit status after a complaint. The shape is wanted because of the file `beside`. */
int array_check_shape(const npy_array *array, const char *name, const npy_shape *wanted, const char *beside);

/* Its f16 elements become f32. */
int array_widen(npy_array *array);

/* For an output whose dtype, shape and count are known. */
int array_reserve(npy_array *array);

/* Complains. */
int arrays_no_memory(size_t bytes);

#endif
