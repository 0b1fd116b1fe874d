/* Bad input for the forward pass over channels, for statistics in parts and for folding: every refusal channel_norm.h lists gives
 * its status and writes nothing; what the header allows is not refused. bad_input_test.c does this for rows.
 * Sizes of structs, strides, alignment, overflow, shares and places come from the descriptions: tests/calls/bad_input_test.c.
 *
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/support.h"

/* Calls that are right, with every operand in a zone of its own, and room around each for others to be moved into it. */
enum { N = 3, C = 4, S = 5, ZONE = 4096, FIRST = 1536 };
enum { X, Y, W, B, O, MEAN, RSTD, STATISTICS, RUNNING_MEAN, RUNNING_VAR, SUMS, SCALE, SHIFT, ZONES };
enum { TENSOR = N * C * S * sizeof(float), VECTOR = C * sizeof(float) };

static _Alignas(64) unsigned char memory[ZONES * ZONE];
static unsigned char before[ZONES * ZONE];
static nrg_channel_norm_spec spec;
static nrg_channel_norm_args args;

static unsigned char *zone(int operand) { return memory + operand * ZONE + FIRST; }
static float *floats(int operand) { return (float *)(void *)zone(operand); }
static int64_t *sums(void) { return (int64_t *)(void *)zone(SUMS); }

/* Batch norm's training, with all there is. The sums are those of x. */
static void set_up(void)
{
    for (size_t i = 0; i < sizeof memory / sizeof(float); i++)
        ((float *)(void *)memory)[i] = (float)(test_mix(i) % 2000) / 1000 - 1;
    spec = nrg_batch_norm_spec(C, 1e-5);
    spec.activation = NRG_ACT_RELU;
    args = nrg_channel_norm_args_init(N, S, zone(X), zone(O));
    args.y = zone(Y);
    args.w = zone(W);
    args.b = zone(B);
    args.mean = floats(MEAN);
    args.rstd = floats(RSTD);
    args.statistics = (nrg_channel_statistics *)(void *)zone(STATISTICS);
    args.running_mean = floats(RUNNING_MEAN);
    args.running_var = floats(RUNNING_VAR);
    if (nrg_channel_norm_sums(&spec, &args, sums(), 0, 1) != NRG_OK)
        ck_abort_msg("the sums cannot be had");
}

/* The same call with statistics from elsewhere, and what belongs to that. */
static void from(nrg_channel_source source)
{
    set_up();
    spec.statistics = source;
    if (source == NRG_STATISTICS_GIVEN || source == NRG_STATISTICS_FOLDED)
        args.running_mean = args.running_var = NULL;
    if (source != NRG_STATISTICS_FOLDED)
        return;
    args.mean = args.rstd = NULL;
    args.statistics = NULL;
}

/* Which calls refuse the spec and args as they stand; bits, in the order of the functions here. */
enum { FORWARD = 1, PARTS = 2, TOTALS = 4, FOLD = 8, ALL = 15 };

static nrg_status forward(int ith, int nth) { return nrg_channel_norm_forward(&spec, &args, ith, nth); }
static nrg_status parts(int ith, int nth) { return nrg_channel_norm_sums(&spec, &args, sums(), ith, nth); }
static nrg_status totals(int ith, int nth) { return nrg_channel_norm_statistics(&spec, &args, sums(), ith, nth); }

static nrg_status fold(int ith, int nth)
{
    (void)ith, (void)nth;
    return nrg_channel_norm_fold(&spec, &args, floats(SCALE), floats(SHIFT));
}

static nrg_status (*const calls[])(int ith, int nth) = {forward, parts, totals, fold};
enum { CALLS = sizeof calls / sizeof calls[0] };

static void refused_share(int by, nrg_status status, int ith, int nth, int line)
{
    for (int i = 0; i < CALLS; i++) {
        if (!(by & 1 << i))
            continue;
        memcpy(before, memory, sizeof before);
        nrg_status got = calls[i](ith, nth);
        if (got != status)
            ck_abort_msg("line %d, call %d: status %d (%s) and not %d (%s)", line, i, (int)got, nrg_status_string(got),
                         (int)status, nrg_status_string(status));
        if (memcmp(before, memory, sizeof before) != 0)
            ck_abort_msg("line %d, call %d: a refused call wrote something", line, i);
    }
}

/* The calls as they stand now are refused, whichever share asks; then everything is right again. */
static void refused(int by, nrg_status status, int line)
{
    refused_share(by, status, 0, 1, line);
    refused_share(by, status, 2, 3, line);
    refused_share(by, status, 90, 91, line); /* a share without sets checks all the same */
    set_up();
}

static void accepted(int by, int line)
{
    for (int i = 0; i < CALLS; i++) {
        nrg_status got = by & 1 << i ? calls[i](0, 1) : NRG_OK;
        if (got != NRG_OK)
            ck_abort_msg("line %d, call %d: status %d (%s)", line, i, (int)got, nrg_status_string(got));
    }
    set_up();
}

#define REFUSED(by, status) refused(by, status, __LINE__)
#define ACCEPTED(by) accepted(by, __LINE__)

static size_t bytes_of(int operand)
{
    switch (operand) {
    case X:
    case Y:
    case O:
        return TENSOR;
    case STATISTICS:
        return C * sizeof(nrg_channel_statistics);
    case SUMS:
        return C * NRG_SUMS_WORDS * sizeof(int64_t);
    default:
        return VECTOR;
    }
}

/* A call changes its outputs, each of them, and nothing else. */
static void changes(int call, int line, unsigned outputs)
{
    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(calls[call](0, 1), NRG_OK);
    for (int operand = 0; operand < ZONES; operand++) {
        const int changed = memcmp(before + operand * ZONE, memory + operand * ZONE, ZONE) != 0;
        if (changed != (int)(outputs >> operand & 1))
            ck_abort_msg("line %d: operand %d %s", line, operand, changed ? "changed" : "did not change");
        memcpy(before + operand * ZONE + FIRST, zone(operand), bytes_of(operand));
    }
    ck_assert_mem_eq(before, memory, sizeof memory);
    set_up();
}

#define BIT(operand) (1u << (operand))

START_TEST(right_calls)
{
    const unsigned statistics = BIT(MEAN) | BIT(RSTD) | BIT(STATISTICS), running = BIT(RUNNING_MEAN) | BIT(RUNNING_VAR);
    changes(0, __LINE__, BIT(O) | statistics | running);
    memset(sums(), 0x77, bytes_of(SUMS));
    changes(1, __LINE__, BIT(SUMS));
    changes(2, __LINE__, statistics | running);
    changes(3, __LINE__, BIT(SCALE) | BIT(SHIFT));
    from(NRG_STATISTICS_GIVEN);
    changes(0, __LINE__, BIT(O) | BIT(MEAN) | BIT(RSTD));
    from(NRG_STATISTICS_RUNNING);
    changes(0, __LINE__, BIT(O) | statistics);
    from(NRG_STATISTICS_FOLDED);
    changes(0, __LINE__, BIT(O));
}
END_TEST

START_TEST(null)
{
    memcpy(before, memory, sizeof before);
    for (int i = 0; i < 3; i++) {
        const nrg_channel_norm_spec *s = i == 0 ? NULL : &spec;
        const nrg_channel_norm_args *a = i == 1 ? NULL : &args;
        if (i == 2)
            s = NULL, a = NULL;
        ck_assert_int_eq(nrg_channel_norm_forward(s, a, 0, 1), NRG_ERR_NULL);
        ck_assert_int_eq(nrg_channel_norm_sums(s, a, sums(), 0, 1), NRG_ERR_NULL);
        ck_assert_int_eq(nrg_channel_norm_statistics(s, a, sums(), 0, 1), NRG_ERR_NULL);
        ck_assert_int_eq(nrg_channel_norm_fold(s, a, floats(SCALE), floats(SHIFT)), NRG_ERR_NULL);
    }
    ck_assert_int_eq(nrg_channel_norm_sums(&spec, &args, NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_channel_norm_statistics(&spec, &args, NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_channel_norm_fold(&spec, &args, NULL, floats(SHIFT)), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_channel_norm_fold(&spec, &args, floats(SCALE), NULL), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_sums_add(1, NULL, sums()), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_sums_add(1, sums(), NULL), NRG_ERR_NULL);
    ck_assert_mem_eq(before, memory, sizeof memory);
    args.x = NULL;
    REFUSED(FORWARD | PARTS, NRG_ERR_NULL);
    args.o = NULL;
    REFUSED(FORWARD, NRG_ERR_NULL);
    from(NRG_STATISTICS_GIVEN);
    args.statistics = NULL;
    REFUSED(FORWARD, NRG_ERR_NULL);
    from(NRG_STATISTICS_RUNNING);
    args.running_mean = args.running_var = NULL;
    REFUSED(FORWARD | FOLD, NRG_ERR_NULL);
    from(NRG_STATISTICS_FOLDED);
    args.w = NULL;
    REFUSED(FORWARD, NRG_ERR_NULL);
    args.running_mean = NULL;
    REFUSED(FOLD, NRG_ERR_NULL);
    args.running_var = NULL;
    REFUSED(FOLD, NRG_ERR_NULL);
}
END_TEST

START_TEST(what_may_be_absent)
{
    args.y = args.w = args.b = NULL;
    ACCEPTED(ALL);
    args.mean = NULL;
    ACCEPTED(FORWARD | TOTALS);
    args.rstd = NULL;
    ACCEPTED(FORWARD | TOTALS);
    args.statistics = NULL;
    ACCEPTED(FORWARD | TOTALS);
    args.running_mean = args.running_var = NULL;
    ACCEPTED(FORWARD | TOTALS);
    args = nrg_channel_norm_args_init(N, S, zone(X), zone(O));
    ACCEPTED(FORWARD | PARTS | TOTALS);
    /* what a call does not look at */
    args.o = NULL;
    ACCEPTED(PARTS | TOTALS | FOLD);
    args.x = args.o = NULL;
    args.s = 0;
    args.x_stride = args.o_stride = 3;
    ACCEPTED(TOTALS | FOLD);
    from(NRG_STATISTICS_GIVEN);
    args.mean = args.rstd = NULL;
    ACCEPTED(FORWARD);
    from(NRG_STATISTICS_RUNNING);
    args.mean = args.rstd = NULL;
    args.statistics = NULL;
    ACCEPTED(FORWARD);
    from(NRG_STATISTICS_FOLDED);
    args.b = args.y = NULL;
    ACCEPTED(FORWARD);
}
END_TEST

/* Group norm, of statistics that no channel has for itself. */
static void group(size_t groups)
{
    spec.over = NRG_OVER_GROUP;
    spec.groups = groups;
    args.running_mean = args.running_var = NULL;
}

START_TEST(dim)
{
    static const size_t divide[] = {0, 1, 2}, do_not[] = {3, 5, 8, SIZE_MAX};
    spec.channels = 0;
    REFUSED(ALL, NRG_ERR_DIM);
    args.s = 0;
    REFUSED(FORWARD | PARTS, NRG_ERR_DIM);
    for (size_t i = 0; i < sizeof divide / sizeof divide[0]; i++) {
        group(divide[i]);
        ACCEPTED(FORWARD | PARTS);
    }
    for (size_t i = 0; i < sizeof do_not / sizeof do_not[0]; i++) {
        group(do_not[i]);
        REFUSED(FORWARD | PARTS | TOTALS, NRG_ERR_DIM);
    }
    args.n = 0;
    spec.channels = 0;
    REFUSED(ALL, NRG_ERR_DIM);
    args.n = 0;
    args.s = 0;
    REFUSED(FORWARD | PARTS, NRG_ERR_DIM);
}
END_TEST

/* A sample's elements, or a position's. */
static size_t row_bytes(void) { return (spec.layout == NRG_NHWC ? 1 : S) * VECTOR; }

static void move(int operand, unsigned char *to)
{
    switch (operand) {
    case X:
        args.x = to;
        break;
    case Y:
        args.y = to;
        break;
    case W:
        args.w = to;
        break;
    case B:
        args.b = to;
        break;
    case O:
        args.o = to;
        break;
    case MEAN:
        args.mean = (float *)(void *)to;
        break;
    case RSTD:
        args.rstd = (float *)(void *)to;
        break;
    case STATISTICS:
        args.statistics = (nrg_channel_statistics *)(void *)to;
        break;
    case RUNNING_MEAN:
        args.running_mean = (float *)(void *)to;
        break;
    default:
        args.running_var = (float *)(void *)to;
        break;
    }
}

START_TEST(enums)
{
    static const int values[] = {-1, 4, 99, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        spec.over = (nrg_channel_over)values[i];
        REFUSED(ALL, NRG_ERR_ENUM);
        spec.layout = (nrg_channel_layout)values[i];
        REFUSED(ALL, NRG_ERR_ENUM);
        spec.statistics = (nrg_channel_source)values[i];
        REFUSED(FORWARD, NRG_ERR_ENUM);
        spec.dtype = (nrg_dtype)values[i];
        REFUSED(ALL, NRG_ERR_ENUM);
        spec.w_dtype = (nrg_dtype)values[i];
        REFUSED(FORWARD | FOLD, NRG_ERR_ENUM);
        spec.store = (nrg_store)values[i];
        REFUSED(FORWARD, NRG_ERR_ENUM);
        if ((unsigned)values[i] > NRG_ACT_SOFTPLUS) {
            spec.activation = (nrg_activation)values[i];
            REFUSED(FORWARD, NRG_ERR_ENUM);
        }
    }
    spec.over = (nrg_channel_over)(NRG_OVER_GROUP + 1);
    REFUSED(ALL, NRG_ERR_ENUM);
    spec.layout = (nrg_channel_layout)(NRG_NHWC + 1);
    REFUSED(ALL, NRG_ERR_ENUM);
    spec.statistics = (nrg_channel_source)(NRG_STATISTICS_FOLDED + 1);
    REFUSED(FORWARD, NRG_ERR_ENUM);
    spec.activation = (nrg_activation)(NRG_ACT_SOFTPLUS + 1);
    REFUSED(FORWARD, NRG_ERR_ENUM);
    spec.store = (nrg_store)(NRG_STORE_STREAM + 1);
    REFUSED(FORWARD, NRG_ERR_ENUM);
    spec.dtype = NRG_DTYPE_SAME; /* the same as what? */
    REFUSED(ALL, NRG_ERR_ENUM);
}
END_TEST

START_TEST(dtypes)
{
    for (int dtype = NRG_F32; dtype <= NRG_BF16; dtype++)
        for (int other = NRG_DTYPE_SAME; other <= NRG_BF16; other++) {
            spec.dtype = (nrg_dtype)dtype;
            spec.w_dtype = (nrg_dtype)other;
            if (other == NRG_DTYPE_SAME || other == NRG_F32 || other == dtype)
                ACCEPTED(FORWARD | FOLD);
            else
                REFUSED(FORWARD | FOLD, NRG_ERR_DTYPE);
        }
}
END_TEST

START_TEST(constants)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, -1e-5, -5e-324};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        spec.eps = bad[i];
        REFUSED(FORWARD | TOTALS | FOLD, NRG_ERR_EPS);
        spec.momentum = bad[i];
        REFUSED(FORWARD | TOTALS, NRG_ERR_CONSTANT);
    }
    spec.momentum = nextafter(1, 2);
    REFUSED(FORWARD | TOTALS, NRG_ERR_CONSTANT);
    static const double good[] = {0, 5e-324, 0.5, 1};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        spec.momentum = good[i];
        spec.eps = good[i];
        ACCEPTED(ALL);
    }
    spec.eps = 1e300;
    ACCEPTED(ALL);
}
END_TEST

START_TEST(combination)
{
    for (size_t groups = 1; groups <= C; groups++) {
        spec.groups = groups;
        REFUSED(ALL, NRG_ERR_COMBINATION);
    }
    spec.segment = 4097;
    REFUSED(FORWARD | PARTS, NRG_ERR_COMBINATION);
    spec.segment = SIZE_MAX;
    REFUSED(FORWARD | PARTS, NRG_ERR_COMBINATION);
    spec.segment = 4096;
    ACCEPTED(ALL);
    spec.segment = 1;
    ACCEPTED(ALL);
    args.running_mean = NULL;
    REFUSED(FORWARD | TOTALS, NRG_ERR_COMBINATION);
    args.running_var = NULL;
    REFUSED(FORWARD | TOTALS, NRG_ERR_COMBINATION);
    for (int source = NRG_STATISTICS_COMPUTE; source <= NRG_STATISTICS_RUNNING; source += NRG_STATISTICS_RUNNING) {
        spec.statistics = (nrg_channel_source)source;
        spec.centred = 0;
        REFUSED(FORWARD | FOLD, NRG_ERR_COMBINATION);
        for (size_t groups = 0; groups < C; groups += groups ? groups : 1) {
            spec.statistics = (nrg_channel_source)source;
            spec.over = NRG_OVER_GROUP;
            spec.groups = groups;
            REFUSED(FORWARD | FOLD, NRG_ERR_COMBINATION);
        }
    }
    for (int source = NRG_STATISTICS_GIVEN; source <= NRG_STATISTICS_FOLDED; source += 2) {
        from((nrg_channel_source)source);
        args.running_mean = floats(RUNNING_MEAN);
        args.running_var = floats(RUNNING_VAR);
        REFUSED(FORWARD, NRG_ERR_COMBINATION);
    }
    for (int operand = MEAN; operand <= STATISTICS; operand++) {
        from(NRG_STATISTICS_FOLDED);
        move(operand, zone(operand));
        REFUSED(FORWARD, NRG_ERR_COMBINATION);
    }
    /* one group is a channel where there is but one */
    spec.over = NRG_OVER_GROUP;
    spec.channels = spec.groups = 1;
    ACCEPTED(ALL & ~TOTALS);
    /* without running statistics, sets are what they like */
    spec.centred = 0;
    args.running_mean = args.running_var = NULL;
    ACCEPTED(FORWARD | PARTS | TOTALS);
}
END_TEST

START_TEST(count)
{
    for (int layout = NRG_NCHW; layout <= NRG_NHWC; layout++) {
        spec.layout = (nrg_channel_layout)layout;
        args.n = args.s = 1;
        REFUSED(FORWARD, NRG_ERR_COUNT);
        spec.layout = (nrg_channel_layout)layout;
        spec.over = NRG_OVER_GROUP;
        spec.groups = C;
        args.s = 1; /* instance norm: whatever n is */
        args.statistics = NULL;
        args.mean = args.rstd = NULL;
        REFUSED(FORWARD, NRG_ERR_COUNT);
        spec.layout = (nrg_channel_layout)layout;
        args.n = args.s = 1;
        args.running_mean = args.running_var = NULL;
        ACCEPTED(FORWARD);
        spec.layout = (nrg_channel_layout)layout;
        args.n = 2;
        args.s = 1;
        ACCEPTED(FORWARD);
        spec.layout = (nrg_channel_layout)layout;
        spec.statistics = NRG_STATISTICS_RUNNING;
        args.n = args.s = 1;
        ACCEPTED(FORWARD);
    }
    /* sums of nothing, of every set in turn; and of one element */
    for (int set = 0; set < C; set++) {
        memset(sums() + set * NRG_SUMS_WORDS, 0, NRG_SUMS_WORDS * sizeof(int64_t));
        REFUSED(TOTALS, NRG_ERR_COUNT);
        memset(sums() + set * NRG_SUMS_WORDS, 0, NRG_SUMS_WORDS * sizeof(int64_t));
        args.running_mean = args.running_var = NULL;
        REFUSED(TOTALS, NRG_ERR_COUNT);
    }
    args.n = args.s = 1;
    ck_assert_int_eq(parts(0, 1), NRG_OK);
    refused_share(TOTALS, NRG_ERR_COUNT, 0, 1, __LINE__);
    args.running_mean = args.running_var = NULL;
    ACCEPTED(TOTALS);
}
END_TEST

static int is_output(int operand)
{
    if (operand >= RUNNING_MEAN)
        return spec.statistics == NRG_STATISTICS_COMPUTE;
    return operand == STATISTICS ? spec.statistics != NRG_STATISTICS_GIVEN : operand >= O;
}

static int is_present(int operand)
{
    if (operand >= RUNNING_MEAN)
        return args.running_mean != NULL;
    return operand < MEAN || args.mean;
}

/* Rows that are as long as a vector of channels, and tensors of one row: strides do not tell an operand from another then. */
START_TEST(overlap_of_rows_like_vectors)
{
    const nrg_channel_source source = (nrg_channel_source)_i;
    for (size_t n = 1; n <= N; n += N - 1)
        for (int layout = NRG_NCHW; layout <= NRG_NHWC; layout++)
            for (int output = O; output <= RUNNING_VAR; output++)
                for (int other = X; other <= RUNNING_VAR; other++) {
                    from(source);
                    if (other == output || !is_output(output) || !is_present(output) || !is_present(other))
                        continue;
                    args.n = n;
                    spec.layout = (nrg_channel_layout)layout;
                    move(output, zone(other));
                    if (output == O && other <= Y)
                        ACCEPTED(FORWARD);
                    else
                        REFUSED(FORWARD, NRG_ERR_OVERLAP);
                }
    set_up();
}
END_TEST

/* The other functions' operands. */
START_TEST(overlap_of_sums_and_factors)
{
    const size_t bytes = bytes_of(SUMS);
    /* x inside the sums */
    move(X, zone(SUMS) + bytes - sizeof(float));
    REFUSED(PARTS, NRG_ERR_OVERLAP);
    move(X, zone(SUMS) - TENSOR + sizeof(float));
    REFUSED(PARTS, NRG_ERR_OVERLAP);
    move(X, zone(SUMS) + bytes);
    ACCEPTED(PARTS);
    for (int operand = MEAN; operand <= RUNNING_VAR; operand++) {
        move(operand, zone(SUMS) + bytes - 8);
        REFUSED(TOTALS, NRG_ERR_OVERLAP);
        move(operand, zone(SUMS));
        REFUSED(TOTALS, NRG_ERR_OVERLAP);
        move(operand, zone(SUMS) + bytes);
        ACCEPTED(TOTALS);
        for (int other = MEAN; other <= RUNNING_VAR; other++) {
            if (operand == other)
                continue;
            move(operand, zone(other));
            REFUSED(TOTALS, NRG_ERR_OVERLAP);
        }
    }
    static const int inputs[] = {W, B, RUNNING_MEAN, RUNNING_VAR};
    for (size_t i = 0; i < 4; i++)
        for (int factor = SCALE; factor <= SHIFT; factor++) {
            move(inputs[i], zone(factor));
            REFUSED(FOLD, NRG_ERR_OVERLAP);
            move(inputs[i], zone(factor) + VECTOR - sizeof(float));
            REFUSED(FOLD, NRG_ERR_OVERLAP);
            move(inputs[i], zone(factor) + VECTOR);
            ACCEPTED(FOLD);
        }
    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(nrg_channel_norm_fold(&spec, &args, floats(SCALE), floats(SCALE)), NRG_ERR_OVERLAP);
    ck_assert_int_eq(nrg_channel_norm_fold(&spec, &args, floats(SCALE), floats(SCALE) + C - 1), NRG_ERR_OVERLAP);
    ck_assert_int_eq(nrg_sums_add(2, sums(), sums()), NRG_ERR_OVERLAP);
    ck_assert_int_eq(nrg_sums_add(2, sums(), sums() + NRG_SUMS_WORDS), NRG_ERR_OVERLAP);
    ck_assert_int_eq(nrg_sums_add(2, sums() + 2 * NRG_SUMS_WORDS - 1, sums()), NRG_ERR_OVERLAP);
    ck_assert_mem_eq(before, memory, sizeof memory);
    ck_assert_int_eq(nrg_sums_add(2, sums(), sums() + 2 * NRG_SUMS_WORDS), NRG_OK);
}
END_TEST

/* Group norm has more statistics than channels. */
START_TEST(overlap_of_groups)
{
    for (int by_one = 0; by_one < 2; by_one++) {
        spec.over = NRG_OVER_GROUP;
        spec.groups = 2;
        args.running_mean = args.running_var = NULL;
        args.rstd = floats(MEAN) + 2 * N - by_one;
        if (by_one)
            REFUSED(FORWARD, NRG_ERR_OVERLAP);
        else
            ACCEPTED(FORWARD);
    }
}
END_TEST

/* A tensor can be a range of the channels of a larger one: x and o side by side in one. */
START_TEST(slices_of_one_buffer)
{
    for (int layout = NRG_NCHW; layout <= NRG_NHWC; layout++)
        for (int order = 0; order < 2; order++)
            for (int close = 0; close < 2; close++) {
                spec.layout = (nrg_channel_layout)layout;
                const size_t row = row_bytes(), second = row - (close ? sizeof(float) : 0);
                move(X, zone(O) + (order ? second : 0));
                move(O, zone(O) + (order ? 0 : second));
                args.x_stride = args.o_stride = 2 * row;
                if (close)
                    REFUSED(FORWARD, NRG_ERR_OVERLAP);
                else
                    ACCEPTED(FORWARD);
            }
}
END_TEST

/* Nothing is done, but for sums, which are those of nothing. */
START_TEST(no_samples)
{
    for (int source = NRG_STATISTICS_COMPUTE; source <= NRG_STATISTICS_FOLDED; source++)
        for (int over = NRG_OVER_BATCH; over <= NRG_OVER_GROUP; over++) {
            from((nrg_channel_source)source);
            spec.over = (nrg_channel_over)over;
            spec.groups = over == NRG_OVER_GROUP ? C : 0;
            args.n = 0;
            refused_share(FORWARD, NRG_OK, 0, 1, __LINE__);
            refused_share(FORWARD, NRG_OK, 1, 3, __LINE__);
        }
    from(NRG_STATISTICS_FOLDED);
    args = nrg_channel_norm_args_init(0, S, NULL, NULL); /* not even w */
    refused_share(FORWARD, NRG_OK, 0, 1, __LINE__);
    from(NRG_STATISTICS_GIVEN);
    args = nrg_channel_norm_args_init(0, S, NULL, NULL);
    refused_share(FORWARD, NRG_OK, 0, 1, __LINE__);
    set_up();
    args = nrg_channel_norm_args_init(0, S, NULL, NULL);
    memset(sums(), 0x77, bytes_of(SUMS));
    ck_assert_int_eq(parts(0, 2), NRG_OK);
    ck_assert_int_eq(parts(1, 2), NRG_OK);
    for (size_t i = 0; i < C * NRG_SUMS_WORDS; i++)
        ck_assert_int_eq(sums()[i], 0);
    /* group norm has no sets then */
    group(2);
    args.n = 0;
    refused_share(PARTS | TOTALS, NRG_OK, 0, 1, __LINE__);
    /* what is wrong without samples is wrong */
    set_up();
    args.n = 0;
    spec.eps = -1;
    REFUSED(FORWARD, NRG_ERR_EPS);
    args.n = 0;
    refused_share(FORWARD | PARTS, NRG_ERR_THREAD, 1, 1, __LINE__);
    args.n = 0;
    args.running_var = NULL;
    REFUSED(FORWARD, NRG_ERR_COMBINATION);
}
END_TEST

START_TEST(constructors)
{
    const nrg_channel_norm_spec batch = nrg_batch_norm_spec(6, 0.5), grouped = nrg_group_norm_spec(6, 3, 0.5);
    ck_assert(batch.size == sizeof batch && batch.channels == 6 && batch.groups == 0 && batch.segment == 0);
    ck_assert(batch.over == NRG_OVER_BATCH && batch.layout == NRG_NCHW && batch.statistics == NRG_STATISTICS_COMPUTE);
    ck_assert(batch.dtype == NRG_F32 && batch.w_dtype == NRG_DTYPE_SAME && batch.activation == NRG_ACT_IDENTITY);
    ck_assert(batch.store == NRG_STORE_AUTO && batch.centred && batch.eps == 0.5 && batch.momentum == 0.1);
    ck_assert(!batch.cumulative && !batch.reserved);
    ck_assert(grouped.size == sizeof grouped && grouped.channels == 6 && grouped.groups == 3 && grouped.over == NRG_OVER_GROUP);
    ck_assert(grouped.centred && grouped.eps == 0.5 && grouped.layout == NRG_NCHW && grouped.dtype == NRG_F32);
    const nrg_channel_norm_args a = nrg_channel_norm_args_init(3, 7, &batch, &args);
    ck_assert(a.size == sizeof a && a.n == 3 && a.s == 7 && a.x == &batch && a.o == &args && !a.y && !a.w && !a.b && !a.mean &&
              !a.rstd && !a.statistics && !a.running_mean && !a.running_var && !a.batches && !a.x_stride && !a.y_stride &&
              !a.o_stride);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("channel_norm: bad input");
    TCase *tests = test_case(suite, "bad input");
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, right_calls);
    tcase_add_test(tests, null);
    tcase_add_test(tests, what_may_be_absent);
    tcase_add_test(tests, dim);
    tcase_add_test(tests, enums);
    tcase_add_test(tests, dtypes);
    tcase_add_test(tests, constants);
    tcase_add_test(tests, combination);
    tcase_add_test(tests, count);
    tcase_add_loop_test(tests, overlap_of_rows_like_vectors, NRG_STATISTICS_COMPUTE, NRG_STATISTICS_FOLDED + 1);
    tcase_add_test(tests, overlap_of_sums_and_factors);
    tcase_add_test(tests, overlap_of_groups);
    tcase_add_test(tests, slices_of_one_buffer);
    tcase_add_test(tests, no_samples);
    tcase_add_test(tests, constructors);
    return test_run(suite);
}
