/* nrg position t5: the bias of buckets of distances, the gradient of its table, and the list of buckets.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "../progress.h"
#include "position.h"
#include "position_bias.h"

#define BIAS_TABLE "table"
#define OPTIONS_DEF "position/position_t5.def"
#define COMMAND "position t5"
#define OPERAND IN_TABLE
#define REQUEST bias_request
#define RUN position_t5
#include "../options.h"

/* Checks that the library has a rule for this number of buckets and this distance. */
static int check_rule(const nrg_score_bias_spec *s)
{
    if (nrg_t5_bucket(0, s->bidirectional, s->buckets, s->max_distance) >= 0)
        return CLI_DONE;
    return cli_refuse("expected at least %d buckets and a --max-distance above %d, got %d buckets and %d",
                      s->bidirectional ? 4 : 2, s->buckets / (s->bidirectional ? 4 : 2), s->buckets, s->max_distance);
}

static int ask(file_call *call)
{
    bias_request *q = call->request;
    q->spec = nrg_score_bias_spec_t5(0, 0, 0);
    q->scale = 1;
    int is_list = call->value[OPT_LIST] != NULL, is_backward = call->value[OPT_BACKWARD] != NULL;
    if (!read_fields(call, q))
        return CLI_REFUSED;
    q->spec.bidirectional = !call->value[OPT_ONE_SIDED];
    if (!is_list && !is_backward && !file_in(call, IN_TABLE))
        return file_missing(call, IN_TABLE, "");
    const int status = is_list ? CLI_DONE : bias_require(call);
    return status != CLI_DONE || file_in(call, IN_TABLE) ? status : check_rule(&q->spec);
}

static int bucket_of(const nrg_score_bias_spec *s, int64_t distance)
{
    return nrg_t5_bucket(distance, s->bidirectional, s->buckets, s->max_distance);
}

/* The last distance of a bucket that begins here: a side's buckets are in order, so bisection finds it. */
static int64_t end_of_bucket(const nrg_score_bias_spec *s, int64_t begin, int64_t last)
{
    const int bucket = bucket_of(s, begin);
    int64_t low = begin, high = begin < 0 ? 0 : last; /* low has it; nothing behind high is on this side */
    if (begin < high && bucket_of(s, begin + 1) != bucket)
        return begin;
    while (low < high) {
        const int64_t middle = high - (high - low) / 2;
        if (bucket_of(s, middle) == bucket)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* From where the buckets no longer change on one side, inwards and out again: a line for each. Lines come as they are found. */
static int list(const nrg_score_bias_spec *s)
{
    const int64_t first = -(int64_t)s->max_distance, last = s->bidirectional ? s->max_distance : 0;
    progress_end();
    for (int64_t begin = first, end; begin <= last && !ferror(stdout); begin = end + 1) {
        end = end_of_bucket(s, begin, last);
        printf("%6d  ", bucket_of(s, begin));
        if (begin == first)
            printf("... to %lld\n", (long long)end);
        else if (end == last)
            printf("%lld to ...\n", (long long)begin);
        else if (begin == end)
            printf("%lld\n", (long long)begin);
        else
            printf("%lld to %lld\n", (long long)begin, (long long)end);
    }
    return CLI_DONE;
}

static int forward(file_call *call, bias_request *q, size_t batch)
{
    const npy_array *table = &call->in[IN_TABLE];
    float *diagonals = bias_diagonals(call, q, sizeof *diagonals);
    if (!diagonals)
        return CLI_FAILED;
    const nrg_status status = nrg_t5_diagonals_forward(&q->spec, table->dtype, table->data, 0, diagonals, 0, 0, 1);
    return status == NRG_OK ? bias_add(call, q, batch, diagonals) : file_answer(call, status);
}

#ifndef NRG_NO_BACKWARD
static int backward(file_call *call, const bias_request *q, size_t batch)
{
    const nrg_score_bias_spec *s = &q->spec;
    const npy_array *d_o = &call->in[IN_SCORES];
    const size_t dims[2] = {(size_t)s->buckets, s->heads};
    const npy_shape shape = file_shape(2, dims);
    const int status = file_reserve(call, OUT_O, NRG_F32, &shape);
    double *diagonals = status == CLI_DONE ? bias_diagonals(call, q, sizeof *diagonals) : NULL;
    if (!diagonals)
        return status == CLI_DONE ? CLI_FAILED : status;
    nrg_score_bias_backward_args args =
        nrg_score_bias_backward_args_init(d_o->dtype, batch, s->heads, s->queries, s->keys, d_o->data, diagonals);
    nrg_status answer = nrg_score_bias_backward(&args, 0, 1);
    if (answer == NRG_OK)
        answer = nrg_t5_diagonals_backward(s, diagonals, 0, call->out[OUT_O].data, 0, 0, 0, 1);
    return file_answer(call, answer);
}
#endif

/* Buckets and heads of the table. */
static int read_table(const file_call *call, bias_request *q)
{
    const npy_shape *table = &call->in[IN_TABLE].shape;
    if (table->ndim != 2 || table->dims[0] > INT32_MAX)
        return file_wrong(call, IN_TABLE, "shape (buckets, heads)");
    if (file_in(call, IN_SCORES) && q->spec.heads != table->dims[1])
        return cli_refuse("%s: expected %zu heads as in %s, got %zu", file_in(call, IN_TABLE), q->spec.heads,
                          file_in(call, IN_SCORES), table->dims[1]);
    q->spec.heads = table->dims[1];
    q->spec.buckets = (int)table->dims[0];
    return check_rule(&q->spec);
}

static int compute(file_call *call)
{
    bias_request *q = call->request;
    size_t batch;
    if (call->value[OPT_LIST])
        return list(&q->spec);
    int status = bias_shape(call, q, &batch);
    if (status == CLI_DONE && file_in(call, IN_TABLE))
        status = read_table(call, q);
    if (status != CLI_DONE)
        return status;
#ifndef NRG_NO_BACKWARD
    if (call->value[OPT_BACKWARD])
        return backward(call, q, batch);
#endif
    return forward(call, q, batch);
}
