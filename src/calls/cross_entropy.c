/* Cross-entropy: rows by the kernel of softmax, which makes their sums or, from a given one, their powers; what is one number a
 * row is done here, in double, and so is the same on every path.
 *
 * SPDX-License-Identifier: MIT */
#include "../exact/element.h"
#include "../exact/softmax_base.h"
#include "../job/softmax.h"
#include "../operands/place.h"
#include "../operands/softmax.h"
#include "call.h"

#define NRG_MAKE_TABLES
#include "../operands/cross_entropy_calls.def"

/* What is left of a call when it has been checked. */
typedef struct cross_entropy {
    nrg_cross_entropy_args args; /* with real strides */
    size_t begin, end;
    int stream;
} cross_entropy;

static int ids_are_classes(const nrg_cross_entropy_args *a)
{
    for (size_t n = 0; n < a->rows; n++)
        if (a->ids[n] != a->ignore_index && (a->ids[n] < 0 || (size_t)a->ids[n] >= a->classes))
            return 0;
    return 1;
}

NRG_OWN_FRAME nrg_status prepare(cross_entropy *to, const nrg_call *call, const nrg_cross_entropy_args *args, int ith, int nth)
{
    nrg_checked c;
    const nrg_status status = nrg_check(&c, call, (const void *const[]){args}, ith, nth);
    if (status != NRG_OK)
        return status;
    to->args = *(const nrg_cross_entropy_args *)c.part[0];
    if (!ids_are_classes(&to->args))
        return NRG_ERR_POSITION;
    to->args.x_stride = c.laid.stride[NRG_CROSS_ENTROPY_X][0];
    to->args.dx_stride = to->args.dx ? c.laid.stride[NRG_CROSS_ENTROPY_BACKWARD_DX][0] : 0;
    to->begin = nrg_share(to->args.rows, ith, nth);
    to->end = nrg_share(to->args.rows, ith + 1, nth);
    /* a short row that is streamed is waited for at the end of its call: 506 µs for 512 rows of 1024, of which 230 are its work
     */
    to->stream = to->args.classes >= 16384 && nrg_wants_stream(NRG_STORE_AUTO, c.laid.bytes);
    return NRG_OK;
}

/* The kernel's job for one row. */
static nrg_softmax_job job_of_row(const cross_entropy *c, size_t n)
{
    const int64_t far = (int64_t)1 << 62;
    return (nrg_softmax_job){
        .x = (const char *)c->args.x + n * c->args.x_stride,
        .o = c->args.dx ? (char *)c->args.dx + n * c->args.dx_stride : NULL,
        .heads = 1,
        .queries = 1,
        .keys = c->args.classes,
        .end = 1,
        .sight = {-far, far},
        .scale = 1,
        .stream = c->stream,
    };
}

static double logit(const cross_entropy *c, size_t n)
{
    return (double)load((const char *)c->args.x + n * c->args.x_stride, (size_t)c->args.ids[n], c->args.dtype);
}

/* e^(x - base) in double; infinity where a base that is given is far below x. */
static double power(double x, nrg_softmax_base base)
{
    const double d = (x - (double)base.shift) - (double)base.n * NRG_SOFTMAX_LN2;
    return d <= 700 ? nrg_softmax_exp(d) : (double)INFINITY;
}

/* The sum over the keys that `job` sees, beside another base. */
static double sum_beside(const cross_entropy *c, nrg_softmax_job *job, nrg_softmax_base base)
{
    float m, factor;
    double s;
    job->m = &m;
    job->s = &s;
    job->factor = &factor;
    NRG_ACTIVE_KERNEL(softmax, c->args.dtype)(job);
    return s > 0 ? s * nrg_softmax_factor(nrg_softmax_base_of(m), base) : 0;
}

/* The classes before and after the row's own, each beside their own largest: where they are so much less than it that powers
 * beside its base say nothing of them. */
static double others_apart(const cross_entropy *c, size_t n, nrg_softmax_base base)
{
    nrg_softmax_job before = job_of_row(c, n), after = before;
    before.sight.last = c->args.ids[n];
    after.sight.first = (int64_t)c->args.ids[n] + 1;
    return sum_beside(c, &before, base) + sum_beside(c, &after, base);
}

static void forward_row(const cross_entropy *c, size_t n)
{
    float *m = &c->args.m[n], *loss = &c->args.loss[n], factor;
    double *others = &c->args.others[n];
    *m = 0;
    *others = 0;
    *loss = 0;
    if (c->args.ids[n] == c->args.ignore_index)
        return;
    const double x = logit(c, n);
    nrg_softmax_job job = job_of_row(c, n);
    job.m = m;
    job.s = others;
    job.factor = &factor;
    job.without = (size_t)c->args.ids[n] + 1;
    NRG_ACTIVE_KERNEL(softmax, c->args.dtype)(&job);
    if (isnan(x) || !(fabsf(*m) <= FLT_MAX)) {
        *m = *loss = NAN;
        *others = (double)NAN;
        return;
    }
    const nrg_softmax_base base = nrg_softmax_base_of(*m);
    if (*others < 0x1p-64)
        *others = others_apart(c, n, base);
    const double own = power(x, base);
    *loss = (float)(x < (double)*m ? ((double)base.shift - x) + (double)base.n * NRG_SOFTMAX_LN2 + nrg_softmax_log(own + *others)
                                   : nrg_softmax_log1p(*others / own));
}

nrg_status nrg_cross_entropy_forward(const nrg_cross_entropy_args *args, int ith, int nth)
{
    cross_entropy c;
    const nrg_status status = prepare(&c, &nrg_call_cross_entropy_forward, args, ith, nth);
    if (status != NRG_OK)
        return status;
    for (size_t n = c.begin; n < c.end; n++)
        forward_row(&c, n);
    return NRG_OK;
}

nrg_status nrg_cross_entropy_forward_check(const nrg_cross_entropy_args *args)
{
    cross_entropy c;
    return nrg_asked(prepare(&c, &nrg_call_cross_entropy_forward, args, 0, 1));
}

#ifndef NRG_NO_BACKWARD
static void backward_row(const cross_entropy *c, size_t n)
{
    nrg_softmax_job job = job_of_row(c, n);
    const int is_ignored = c->args.ids[n] == c->args.ignore_index;
    const double x = is_ignored ? 0 : logit(c, n), others = c->args.others_in[n]; /* before dx takes its place */
    const nrg_softmax_base base = nrg_softmax_base_of(c->args.m_in[n]);
    const double inverse = is_ignored ? 0 : (double)c->args.d_loss[n] / (power(x, base) + others);
    const double unit = inverse * (1 / (double)NRG_SOFTMAX_UNIT);
    const float high = (float)unit, given[2] = {high, isinf(high) ? 0 : (float)(unit - (double)high)};
    if (is_ignored)
        job.sight = (nrg_softmax_sight){0, 0}; /* nothing is seen, all is 0 */
    job.m_in = &c->args.m_in[n];
    job.given = given;
    NRG_ACTIVE_KERNEL(softmax, c->args.dtype)(&job);
    if (!is_ignored)
        store(job.o, (size_t)c->args.ids[n], c->args.dtype, (float)(0 - others * inverse));
}

nrg_status nrg_cross_entropy_backward(const nrg_cross_entropy_args *args, int ith, int nth)
{
    cross_entropy c;
    const nrg_status status = prepare(&c, &nrg_call_cross_entropy_backward, args, ith, nth);
    if (status != NRG_OK)
        return status;
    for (size_t n = c.begin; n < c.end; n++)
        backward_row(&c, n);
    return NRG_OK;
}

nrg_status nrg_cross_entropy_backward_check(const nrg_cross_entropy_args *args)
{
    cross_entropy c;
    return nrg_asked(prepare(&c, &nrg_call_cross_entropy_backward, args, 0, 1));
}
#endif
