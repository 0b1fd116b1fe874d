/* Exact results of a case's call, in 113-bit arithmetic, over the memory of the case: what errors are measured against.
 *
 * What an error is in ulps of, `scale`: of the result. Where it is a sum of terms that may cancel, as with a bias, a rotation or
 * a logarithm, of the largest of them, or of the sum if that is larger; before an activation, where a channel norm has one. Of a
 * gradient, whose terms are many, of the sum of their magnitudes (docs/numerics.md).
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_TRUTH_H
#define NRG_BENCH_TRUTH_H

#include <float.h>

#include "../../src/exact/element.h"
#include "../family.h"

#if LDBL_MANT_DIG == 113 || defined(__SIZEOF_FLOAT128__)
#define TRUTH_IS_HERE 1

#include "../../tests/harness/quad_angle.h"

#pragma GCC diagnostic ignored "-Wdouble-promotion" /* what is true is computed in wider types on purpose */

/* 113 bits are slow: so many elements say enough of a kernel whose rows are alike, and a fourth of them, rounded to 16 bits, too.
 */
enum { TRUTH_ROWS = 16, TRUTH_DIM = 4096, TRUTH_ELEMENTS = TRUTH_ROWS * TRUTH_DIM };

/* As rival_job has them. */
typedef enum truth_output { TRUTH_O, TRUTH_R, TRUTH_DX, TRUTH_DZ, TRUTH_DW, TRUTH_DB, TRUTH_OUTPUTS } truth_output;

typedef struct truth {
    size_t count[TRUTH_OUTPUTS]; /* 0: there is none of it */
    double exact[TRUTH_OUTPUTS][TRUTH_ELEMENTS], scale[TRUTH_OUTPUTS][TRUTH_ELEMENTS];
} truth;

/* All of a job whose shape is the one that is known to it. */
typedef void truth_maker(truth *t, const bench_case *c, const rival_job *job);

/* Who makes the truth of a case's op, which gets a shape for it; NULL: nobody, and the case is as it was. */
truth_maker *truth_of(bench_case *c);

/* Norms, of rows and of channels. */
truth_maker truth_norm, truth_norm_backward;

static inline quad truth_larger(quad a, quad b) { return quad_abs(a) > quad_abs(b) ? a : b; }

/* Outputs are filled from wherever; the last one counts. */
static inline void truth_put(truth *t, truth_output output, size_t i, quad exact, quad scale)
{
    t->exact[output][i] = (double)exact;
    t->scale[output][i] = (double)truth_larger(quad_abs(scale), quad_abs(exact));
    t->count[output] = i >= t->count[output] ? i + 1 : t->count[output];
}

static inline size_t truth_rows(const bench_case *c) { return c->dtype == NRG_F32 ? TRUTH_ROWS : TRUTH_ROWS / 4; }

/* Element i of a tensor of the case's dtype. */
static inline float truth_at(const bench_case *c, const void *tensor, size_t i) { return load(tensor, i, c->dtype); }

/* As it would be stored. */
static inline float truth_stored(const bench_case *c, float x)
{
    float stored;
    store((char *)&stored, 0, c->dtype, x);
    return load((const char *)&stored, 0, c->dtype);
}

/* g'(x) and, where it has a minimum and is 0, what its terms are. */
static inline quad truth_slope_scale(quad_g g) { return truth_larger(g.slope, g.size); }

#endif
#endif
