/* nrg/norm_parts.h: the two halves of nrg_norm_forward, called apart: the statistics of rows alone, and elements from given
 * statistics.
 *
 *     nrg_norm_statistics   x, y, z  ->  r, m and 1/s of every row or group
 *     nrg_norm_elements     x, y, z or r, and m and 1/s, w, b  ->  o
 *
 * Names, formulas, spec and args are those of nrg/norm.h. For hosts that want the statistics before they know what the elements
 * become, that keep statistics and not o (recomputation in training), or whose rows are split over several machines.
 *
 * What holds: statistics, then elements, have the bits of nrg_norm_forward in either grade, on every path, for any (ith, nth),
 * which may differ between the two. Nothing is rounded in between: a nrg_row_statistics holds m and 1/s in double. What is
 * rounded is what nrg_norm_forward rounds: r to r_dtype, p to f32, the elements as nrg/norm.h says, o to its dtype.
 *
 * Statistics from elsewhere. nrg_norm_elements accepts statistics that other code computed, with `opaque` 0:
 *
 * - From the floats that a forward pass stored: nrg_row_statistics_init(mean, rstd). Both were rounded to f32, which is 2^-24 of
 *   o and of m/s more than nrg/norm.h promises. Of rows that are not centred, fast, NRG_C_SQRT_DIM: the bits of nrg_norm_forward,
 *   except in rows that are computed in the exact grade.
 * - Of rows split over machines: nrg_channel_norm_sums of every part as [rows, its elements, 1] (NRG_CHANNEL_OVER_GROUP,
 *   NRG_LAYOUT_NCHW, one group), nrg_channel_norm_sums_add, nrg_channel_norm_statistics; then mean, mean_low, variance and rstd
 *   of a nrg_channel_statistics are the fields of the same names here. Sums are exact integers, so the bits depend on the
 *   segments alone, and not on the order of parts; they are not those of nrg_norm_forward, which adds in another order. spec.dim
 *   is then the part's, and so is the d of c/√d: with NRG_C_GIVEN take c · √(part's dim / whole dim).
 *
 * Neither takes a format: nrg_norm_forward makes bytes (nrg/quantize.h), or nrg_quantize of o.
 *
 * The backward pass needs neither call: nrg_norm_backward takes args.mean as given, and sums 1/s again (nrg/norm_backward.h says
 * why).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_NORM_PARTS_H
#define NRG_NORM_PARTS_H

#include "norm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a row, or of one of its groups. A NaN or an infinity in what is normalized makes mean, variance and rstd NaN. */
typedef struct nrg_row_statistics {
    double mean, mean_low; /* m is the sum of both; 0 where not centred */
    double variance;       /* σ²; not read by nrg_norm_elements */
    double rstd;           /* 1/s; 0 where s = 0 */
    uint64_t opaque;       /* how nrg_norm_forward computes this row's elements: copy it as it is; 0 for other statistics */
} nrg_row_statistics;

/* Statistics as a forward pass stores them. */
static inline nrg_row_statistics nrg_row_statistics_init(float mean, float rstd)
{
    nrg_row_statistics statistics;
    statistics.mean = (double)mean;
    statistics.mean_low = statistics.variance = 0;
    statistics.rstd = (double)rstd;
    statistics.opaque = 0;
    return statistics;
}

/* The statistics of the rows of share ith of nth; statistics: [rows, groups], i fastest as mean and rstd, or NULL. Of args x, y,
 * z, r, mean and rstd count: y and r as in nrg_norm_forward (with NRG_RESIDUAL_AFTER neither is looked at). w, b and o are not
 * looked at. Aliasing: r may be x or y (the whole operand, same first byte, same strides, same element size); otherwise no output
 * shares a byte with another operand.
 *
 *               x     y     z     r     mean  rstd
 *         r     yes   yes   no          no    no
 *      mean     no    no    no    no          no
 *      rstd     no    no    no    no    no
 *
 * Returns NRG_OK, or says what is wrong as nrg_norm_forward does, and writes nothing: NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM,
 * NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_EPS,
 * NRG_ERR_CONSTANT, NRG_ERR_COMBINATION, NRG_ERR_THREAD, and
 *   NRG_ERR_NULL         spec, args, or (with rows > 0) x; z with NRG_GATE_PRE */
NRG_NODISCARD NRG_API nrg_status nrg_norm_statistics(const nrg_norm_spec *spec, const nrg_norm_args *args,
                                                     nrg_row_statistics *statistics, int ith, int nth);

/* Validates the arguments of nrg_norm_statistics. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_statistics_check(const nrg_norm_spec *spec, const nrg_norm_args *args,
                                                           nrg_row_statistics *statistics);

/* o of the rows of share ith of nth from statistics [rows, groups]. r is an input: where it is given, x and y are not read (and
 * may be NULL), but for the y of NRG_RESIDUAL_AFTER, which takes no r. mean and rstd are not looked at. Aliasing:
 *
 *               x     y     z     w     b     r
 *         o     yes   yes   yes   no    no    yes
 *
 * Returns NRG_OK, or says what is wrong as nrg_norm_forward does, and writes nothing: NRG_ERR_STRUCT_SIZE, NRG_ERR_DIM,
 * NRG_ERR_OVERFLOW, NRG_ERR_STRIDE, NRG_ERR_ALIGNMENT, NRG_ERR_OVERLAP, NRG_ERR_ENUM, NRG_ERR_DTYPE, NRG_ERR_EPS,
 * NRG_ERR_CONSTANT, NRG_ERR_COMBINATION, NRG_ERR_THREAD, and
 *   NRG_ERR_NULL         spec, args, or (with rows > 0) o or statistics; x without r; y with NRG_RESIDUAL_AFTER; z with a gate */
NRG_NODISCARD NRG_API nrg_status nrg_norm_elements(const nrg_norm_spec *spec, const nrg_norm_args *args,
                                                   const nrg_row_statistics *statistics, int ith, int nth);

/* Validates the arguments of nrg_norm_elements. Computes and writes nothing. */
NRG_NODISCARD NRG_API nrg_status nrg_norm_elements_check(const nrg_norm_spec *spec, const nrg_norm_args *args,
                                                         const nrg_row_statistics *statistics);

#ifdef __cplusplus
}
#endif
#endif
