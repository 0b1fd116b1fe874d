/* What commands do with the arrays of their files.
 *
 * SPDX-License-Identifier: MIT */
#include "arrays.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../cli.h"

static int same_shape(const npy_shape *a, const npy_shape *b)
{
    return a->ndim == b->ndim && memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof a->dims[0]) == 0;
}

int array_check_shape(const npy_array *array, const char *name, const npy_shape *wanted, const char *beside)
{
    char has[NPY_SHAPE_ROOM], wants[NPY_SHAPE_ROOM];
    if (same_shape(&array->shape, wanted))
        return CLI_DONE;
    return cli_refuse("%s: expected shape %s to match %s, got %s", name, npy_shape_text(wants, wanted), beside,
                      npy_shape_text(has, &array->shape));
}

static float widen(uint16_t half)
{
    int exponent = half >> 10 & 31, mantissa = half & 0x3ff;
    float magnitude = exponent == 31  ? mantissa ? NAN : INFINITY
                      : exponent == 0 ? ldexpf((float)mantissa, -24)
                                      : ldexpf((float)(mantissa + 1024), exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

int array_widen(npy_array *array)
{
    const uint16_t *halves = array->data;
    /* an input's bytes fit, and so do as many in f32: npy.c */
    float *wide = malloc(array->count ? array->count * sizeof *wide : 1);
    if (!wide)
        return arrays_no_memory(array->count * sizeof *wide);
    for (size_t i = 0; i < array->count; i++)
        wide[i] = widen(halves[i]);
    free(array->data);
    array->data = wide;
    array->dtype = NRG_F32;
    return CLI_DONE;
}

int array_reserve(npy_array *array)
{
    size_t bytes = array->count * npy_size(array->dtype);
    array->data = malloc(bytes ? bytes : 1);
    return array->data ? CLI_DONE : arrays_no_memory(bytes);
}

int arrays_no_memory(size_t bytes) { return cli_fail("no memory for %zu bytes", bytes); }
