/* States of softmax in parts, made one.
 *
 * SPDX-License-Identifier: MIT */
#include "../exact/softmax_base.h"
#include "../operands/check.h"
#include "../operands/softmax.h"
#include "call.h"

/* A sum with what its additions have lost. */
typedef struct two_doubles {
    double sum, lost;
} two_doubles;

static void add(two_doubles *to, double a)
{
    const double sum = to->sum + a, part = sum - to->sum;
    to->lost += (to->sum - (sum - part)) + (a - part);
    to->sum = sum;
}

/* The largest of a row's parts; a NaN in any of them, or in a sum. */
static float largest(const nrg_softmax_merge_args *a, size_t row)
{
    float m = -INFINITY;
    for (size_t p = 0; p < a->parts; p++) {
        const float other = a->m_in[p * a->rows + row];
        const double s = a->sum_in[p * a->rows + row];
        if (other != other || s != s || other > FLT_MAX)
            return NAN;
        m = other > m ? other : m;
    }
    return m;
}

static void merge_row(const nrg_softmax_merge_args *a, size_t row)
{
    const float m = largest(a, row);
    const nrg_softmax_base base = nrg_softmax_base_of(m);
    const int is_nan = m != m, is_empty = m < -FLT_MAX;
    two_doubles total = {0, 0};
    for (size_t p = 0; p < a->parts; p++) {
        const float other = a->m_in[p * a->rows + row];
        double factor = other == m ? 1 : 0;
        if (other >= -FLT_MAX && other != m && !is_nan)
            factor = nrg_softmax_factor(nrg_softmax_base_of(other), base);
        if (a->factor)
            a->factor[p * a->rows + row] = is_nan ? NAN : (float)factor;
        add(&total, a->sum_in[p * a->rows + row] * factor);
    }
    const double s = is_nan ? (double)NAN : is_empty ? 0 : total.sum + total.lost;
    a->m[row] = m;
    a->sum[row] = s;
    if (a->inverse)
        a->inverse[row] = is_empty ? 0 : (float)(1 / s);
    if (a->lse)
        a->lse[row] = is_empty ? -(double)INFINITY : ((double)base.shift + (double)base.n * NRG_SOFTMAX_LN2) + nrg_softmax_log(s);
}

nrg_status nrg_softmax_merge(const nrg_softmax_merge_args *args, int ith, int nth)
{
    nrg_laid l;
    const nrg_status status = NRG_LAY(&l, softmax_merge, args);
    if (status != NRG_OK)
        return status;
    for (size_t row = nrg_share(args->rows, ith, nth), end = nrg_share(args->rows, ith + 1, nth); row < end; row++)
        merge_row(args, row);
    return NRG_OK;
}

nrg_status nrg_softmax_merge_check(const nrg_softmax_merge_args *args) { return NRG_ASK(softmax_merge, args); }
