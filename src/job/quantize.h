/* The job of rows to blocks of bytes and back, and what other kernels call of them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_JOB_QUANTIZE_H
#define NRG_JOB_QUANTIZE_H

#include "../../include/nrg/isa.h"
#include "quant_format.h"
#include "../paths.h"

/* Groups begin to end of rows that lie together (nrg_format_rows; mostly one row), of a plane. Strides are in bytes. Pointers
 * alternate with strides: gcc fills adjacent fields of one type by vectors, whose loads wait for narrower stores before them. */
typedef struct nrg_quantize_job {
    const char *x;                /* quantize: rows of floats, */
    size_t x_stride;              /* from row to row, also of o */
    char *q;                      /* and what becomes of them */
    size_t q_stride;              /* from group to group */
    char *scales;                 /* NULL where blocks have theirs */
    size_t scales_stride;         /* from row to row */
    const char *q_in, *scales_in; /* dequantize: the same, */
    char *o;                      /* and the rows */
    size_t dim, begin, end;
    nrg_quant_format format;
    nrg_quant_rounding rounding;
    int far; /* x comes from beyond the caches of a core */
} nrg_quantize_job;

/* Where rows that another kernel makes as floats go: one row of a group of them. */
typedef struct nrg_quant_row {
    char *q;       /* of the group */
    float *scales; /* of the row; NULL where blocks have theirs */
    size_t row;    /* in the group */
    nrg_quant_format format;
    nrg_quant_rounding rounding;
    int far; /* what is read comes from beyond the caches of a core */
} nrg_quant_row;

/* quantize_floats: elements first to first + n of a row, which are whole blocks, the row's last one included; with a scale a row,
 * all of it, or, where amax is its largest magnitude (nrg_<path>_amax, of parts of it), any part from a multiple of 32 on.
 * amax: the largest magnitude of n floats and of so_far, which is not below 0; a NaN is larger than all.
 *
 * Vectors alone have quantize_known: as quantize_floats, of q8_0 or int8 by 32, where the largest magnitude of each block is
 * known. */
#define NRG_QUANTIZE_FLOATS(path, isa, unused)                                                                                   \
    void nrg_##path##_quantize_floats(const nrg_quant_row *to, const float *x, size_t first, size_t n, float amax);              \
    float nrg_##path##_amax(const float *x, size_t n, float so_far);                                                             \
    void nrg_##path##_quantize_known(const nrg_quant_row *to, const float *x, size_t first, size_t n, const float *amax);
NRG_EACH_PATH(NRG_QUANTIZE_FLOATS, )
#undef NRG_QUANTIZE_FLOATS

/* As amax of quantize_floats: find it in what is given. */
#define NRG_AMAX_UNKNOWN (-1.0f)

#endif
