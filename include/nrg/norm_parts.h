/* nrg/norm_parts.h: nrg_norm_forward in two calls: first the statistics of rows, then elements from given statistics.
 *
 *     nrg_norm_statistics   x, y, z  ->  r, m and 1/s of every row or group
 *     nrg_norm_elements     x and y, or r; z; m and 1/s; w, b  ->  o
 *
 * Names, formulas, spec, args and sources are those of nrg/norm.h. Use these calls in three cases:
 * - You need the statistics before you compute the elements.
 * - Training stores the statistics instead of o, and recomputes o.
 * - The rows are split over several machines.
 *
 * Guarantee: statistics, then elements, are bit-identical to nrg_norm_forward, in either grade, on every path, and for every
 * (ith, nth). The two calls may use different (ith, nth). There is no rounding between them: a nrg_row_statistics holds m and
 * 1/s in double. The roundings are those of nrg_norm_forward: r to r_dtype, p to f32, the elements as in nrg/norm.h, o to its
 * dtype.
 *
 * Statistics of other code. nrg_norm_elements accepts these with `opaque` 0:
 * - The f32 values that a forward pass stored: nrg_row_statistics_init(mean, rstd). Their rounding adds 2^-24 of o and of m/s
 *   to the error bounds of nrg/norm.h. Rows that are not centred, in the fast grade with NRG_C_SQRT_DIM, are bit-identical to
 *   nrg_norm_forward. The exception is rows that the kernel computes in the exact grade.
 * - Statistics of rows that are split over machines. For each part, call nrg_channel_norm_sums on [rows, elements of the part,
 *   1] (NRG_CHANNEL_OVER_GROUP, NRG_LAYOUT_NCHW, one group). Then call nrg_channel_norm_sums_add and
 *   nrg_channel_norm_statistics. The fields mean, mean_low, variance and rstd of a nrg_channel_statistics have the same
 *   meaning here. Sums are exact integers, so the bits depend only on the segments, and not on the order of parts. They differ
 *   from those of nrg_norm_forward, which adds in another order. spec.dim is the size of the part, and so is d of c/√d. With
 *   NRG_C_GIVEN, set c to c · √(dim of the part / dim of the row).
 *
 * Neither call accepts a format. For bytes, call nrg_norm_forward, or nrg_quantize on o (nrg/quantize.h).
 *
 * The backward pass needs neither call: nrg_norm_backward reads args.mean, and sums 1/s again (see nrg/norm_backward.h).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_NORM_PARTS_H
#define NRG_NORM_PARTS_H

#include "norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Statistics of a row, or of a group of a row. A NaN or an infinity in the elements makes mean, variance and rstd NaN. */
typedef struct nrg_row_statistics {
    double mean, mean_low; /* m is the sum of both; 0 if not centred */
    double variance;       /* σ². nrg_norm_elements ignores it */
    double rstd;           /* 1/s; 0 where s = 0 */
    uint64_t opaque;       /* how nrg_norm_forward computes this row's elements: copy it unchanged; 0 for other statistics */
} nrg_row_statistics;

/* Returns statistics from the f32 values that a forward pass stores.
 *
 * Parameters:
 * - mean, rstd: of one row or group, as in nrg_norm_args. */
static inline nrg_row_statistics nrg_row_statistics_init(float mean, float rstd)
{
    nrg_row_statistics statistics;
    statistics.mean = (double)mean;
    statistics.mean_low = statistics.variance = 0;
    statistics.rstd = (double)rstd;
    statistics.opaque = 0;
    return statistics;
}

/* Computes the statistics of the rows of share ith of nth.
 *
 * Parameters:
 * - spec: the norm.
 * - args: the data. The call reads x, y and z and writes r, mean and rstd, as nrg_norm_forward does. Required are x, and z with
 *   NRG_GATE_PRE. The call ignores w, b and o; y and r with NRG_RESIDUAL_AFTER; z with NRG_GATE_POST.
 * - statistics: [rows3, rows2, rows, groups] output, dense, i fastest as mean and rstd; or NULL.
 * - ith, nth: the share, a range of rows.
 *
 * Aliasing: r may be x or y. No other output may share a byte with an operand.
 *
 *               x     y     z     r     mean  rstd
 *         r     yes   yes   no          no    no
 *      mean     no    no    no    no          no
 *      rstd     no    no    no    no    no
 *
 * Returns the statuses of nrg_norm_forward. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: spec or args is NULL; or there are rows, and a required operand is NULL.
 * - NRG_ERR_COMBINATION: also if spec has a format, or packed, scales or r_in is set. The call does not check operands that it
 *   ignores. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_statistics(const nrg_norm_spec *spec, const nrg_norm_args *args,
                                                     nrg_row_statistics *statistics, int ith, int nth);

/* Validates the arguments of nrg_norm_statistics. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_statistics_check(const nrg_norm_spec *spec, const nrg_norm_args *args,
                                                           nrg_row_statistics *statistics);

/* Computes o of the rows of share ith of nth from statistics.
 *
 * Parameters:
 * - spec: the norm.
 * - args: the data. With r_in, the call ignores x and y, and they may be NULL. Without r_in, x is required.
 *   NRG_RESIDUAL_AFTER requires y, and excludes r_in. Also required are o, and z with a gate. The call ignores r, mean and rstd.
 * - statistics: [rows3, rows2, rows, groups] input, dense, i fastest. Must not be NULL unless there are no rows.
 * - ith, nth: the share, a range of rows.
 *
 * Aliasing: o may alias an operand where this table has a yes (nrg/base.h).
 *
 *               x     y     z     w     b     r_in
 *         o     yes   yes   yes   no    no    yes
 *
 * Returns the statuses of nrg_norm_forward. On error, writes nothing. Differences:
 * - NRG_ERR_NULL: spec or args is NULL; or there are rows, and a required operand or statistics is NULL.
 * - NRG_ERR_COMBINATION: also if spec has a format, or packed or scales is set, or r_in with NRG_RESIDUAL_AFTER. The call does
 *   not check operands that it ignores. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_elements(const nrg_norm_spec *spec, const nrg_norm_args *args,
                                                   const nrg_row_statistics *statistics, int ith, int nth);

/* Validates the arguments of nrg_norm_elements. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_elements_check(const nrg_norm_spec *spec, const nrg_norm_args *args,
                                                         const nrg_row_statistics *statistics);

#ifdef __cplusplus
}
#endif
#endif
