/* Bad input for the backward pass over channels: every refusal channel_norm_backward.h lists gives its status, in every phase,
 * and writes nothing; what the header allows is not refused. channel_norm_bad_input_test.c does this for the forward pass.
 * Sizes of structs, strides, alignment, overflow, shares and places come from the descriptions: tests/calls/bad_input_test.c.
 *
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/support.h"

/* Calls that are right, with every operand in a zone of its own, and room around each for others to be moved into it. Group norm:
 * a block for each of the samples. */
enum { N = 3, C = 4, S = 5, GROUPS = 2, ZONE = 4096, FIRST = 1536 };
enum { D_O, X, Y, W, B, STATISTICS, RUNNING_MEAN, RUNNING_VAR, SUMS_IN, DX, DY, DW, DB, WORKSPACE, SUMS, ZONES };
enum { TENSOR = N * C * S * sizeof(float), VECTOR = C * sizeof(float), SPACE = 2 * N * C * sizeof(double) };

static _Alignas(64) unsigned char memory[ZONES * ZONE];
static unsigned char before[ZONES * ZONE];
static nrg_channel_norm_spec spec;
static nrg_channel_norm_backward_args args;

static unsigned char *zone(int operand) { return memory + operand * ZONE + FIRST; }
static float *floats(int operand) { return (float *)(void *)zone(operand); }
static int64_t *sums(int operand) { return (int64_t *)(void *)zone(operand); }

/* GROUP: with a workspace, and statistics saved. BATCH: the same without a workspace. GIVEN_SUMS: batch norm's second phase.
 * RUNNING: batch norm with running statistics. */
enum mode { GROUP, BATCH, GIVEN_SUMS, RUNNING, MODES };

static void set_up_mode(enum mode mode)
{
    for (size_t i = 0; i < sizeof memory / sizeof(float); i++)
        ((float *)(void *)memory)[i] = (float)(test_mix(i) % 2000) / 1000 - 1;
    spec = mode == GROUP ? nrg_group_norm_spec(C, GROUPS, 1e-5) : nrg_batch_norm_spec(C, 1e-5);
    spec.activation = NRG_ACT_SILU;
    args = nrg_channel_norm_backward_args_init(N, S, zone(X), zone(D_O), zone(DX));
    args.y = zone(Y);
    args.w = zone(W);
    args.b = zone(B);
    args.dy = zone(DY);
    args.dw = floats(DW);
    args.db = floats(DB);
    args.workspace = zone(WORKSPACE);
    args.workspace_size = SPACE;
    nrg_channel_statistics *statistics = (nrg_channel_statistics *)(void *)zone(STATISTICS);
    nrg_channel_norm_args forward = nrg_channel_norm_args_init(N, S, zone(X), zone(DX));
    forward.statistics = statistics;
    if (nrg_channel_norm_forward(&spec, &forward, 0, 1) != NRG_OK)
        ck_abort_msg("the statistics cannot be had");
    args.statistics = statistics;
    if (mode == GROUP)
        return;
    args.workspace = NULL;
    args.workspace_size = 0;
    if (mode == RUNNING) {
        spec.statistics = NRG_STATISTICS_RUNNING;
        args.statistics = NULL;
        args.running_mean = floats(RUNNING_MEAN);
        args.running_var = floats(RUNNING_VAR);
    }
    if (mode != GIVEN_SUMS)
        return;
    if (nrg_channel_norm_backward_sums(&spec, &args, sums(SUMS_IN), 0, 1) != NRG_OK)
        ck_abort_msg("the sums cannot be had");
    args.sums = sums(SUMS_IN);
    args.dw = args.db = NULL;
}

static enum mode now; /* what refused calls are followed by */

static void set_up(void) { set_up_mode(now = GROUP); }

static void as(enum mode mode) { set_up_mode(now = mode); }

/* Which calls refuse the spec and args as they stand; bits, in the order of the functions here. */
enum { BACKWARD = 1, REDUCE = 2, PARTS = 4, BOTH = BACKWARD | REDUCE };

static nrg_status backward(int ith, int nth) { return nrg_channel_norm_backward(&spec, &args, ith, nth); }
static nrg_status reduce(int ith, int nth) { return nrg_channel_norm_backward_reduce(&spec, &args, ith, nth); }
static nrg_status parts(int ith, int nth) { return nrg_channel_norm_backward_sums(&spec, &args, sums(SUMS), ith, nth); }

static nrg_status (*const calls[])(int ith, int nth) = {backward, reduce, parts};
enum { CALLS = sizeof calls / sizeof calls[0] };

static void refused_share(int by, nrg_status status, int ith, int nth, int line)
{
    for (int i = 0; i < CALLS; i++) {
        if (!(by & 1 << i))
            continue;
        memcpy(before, memory, sizeof before);
        nrg_status got = calls[i](ith, nth);
        if (got != status)
            ck_abort_msg("line %d, call %d, mode %d: status %d (%s) and not %d (%s)", line, i, (int)now, (int)got,
                         nrg_status_string(got), (int)status, nrg_status_string(status));
        if (memcmp(before, memory, sizeof before) != 0)
            ck_abort_msg("line %d, call %d: a refused call wrote something", line, i);
    }
}

/* The calls as they stand now are refused, whichever share asks; then everything is right again. */
static void refused(int by, nrg_status status, int line)
{
    refused_share(by, status, 0, 1, line);
    refused_share(by, status, 2, 3, line);
    refused_share(by, status, 90, 91, line); /* a share without sets and channels checks all the same */
    set_up_mode(now);
}

static void accepted(int by, int line)
{
    for (int i = 0; i < CALLS; i++) {
        nrg_status got = by & 1 << i ? calls[i](0, 1) : NRG_OK;
        if (got != NRG_OK)
            ck_abort_msg("line %d, call %d, mode %d: status %d (%s)", line, i, (int)now, (int)got, nrg_status_string(got));
    }
    set_up_mode(now);
}

#define REFUSED(by, status) refused(by, status, __LINE__)
#define ACCEPTED(by) accepted(by, __LINE__)

static size_t bytes_of(int operand)
{
    switch (operand) {
    case D_O:
    case X:
    case Y:
    case DX:
    case DY:
        return TENSOR;
    case STATISTICS:
        return (now == GROUP ? N * GROUPS : C) * sizeof(nrg_channel_statistics);
    case SUMS_IN:
    case SUMS:
        return C * NRG_SUMS_WORDS * sizeof(int64_t);
    case WORKSPACE:
        return SPACE;
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
}

#define BIT(operand) (1u << (operand))

START_TEST(right_calls)
{
    const unsigned tensors = BIT(DX) | BIT(DY), vectors = BIT(DW) | BIT(DB);
    changes(0, __LINE__, tensors | BIT(WORKSPACE));
    changes(1, __LINE__, vectors); /* the second phase's */
    as(BATCH);
    changes(0, __LINE__, tensors | vectors);
    changes(1, __LINE__, 0);
    as(BATCH);
    changes(2, __LINE__, vectors | BIT(SUMS));
    as(GIVEN_SUMS);
    changes(0, __LINE__, tensors);
    changes(1, __LINE__, 0);
    as(RUNNING);
    changes(0, __LINE__, tensors | vectors);
}
END_TEST

START_TEST(null)
{
    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(nrg_channel_norm_backward(NULL, &args, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_channel_norm_backward(&spec, NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_channel_norm_backward_reduce(NULL, &args, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_channel_norm_backward_reduce(&spec, NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_channel_norm_backward_sums(NULL, &args, sums(SUMS), 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_channel_norm_backward_sums(&spec, NULL, sums(SUMS), 0, 1), NRG_ERR_NULL);
    ck_assert_mem_eq(before, memory, sizeof memory);
    args.d_o = NULL;
    REFUSED(BOTH, NRG_ERR_NULL);
    args.x = NULL;
    REFUSED(BOTH, NRG_ERR_NULL);
    args.workspace = NULL;
    REFUSED(BOTH, NRG_ERR_NULL);
    args.workspace = NULL;
    args.dw = NULL;
    REFUSED(BOTH, NRG_ERR_NULL);
    args.workspace = NULL;
    args.db = NULL;
    REFUSED(BOTH, NRG_ERR_NULL);
    spec.statistics = NRG_STATISTICS_GIVEN;
    args.statistics = NULL;
    REFUSED(BOTH, NRG_ERR_NULL);
    as(RUNNING);
    args.running_mean = args.running_var = NULL;
    REFUSED(BOTH, NRG_ERR_NULL);
    as(BATCH);
    args.d_o = NULL;
    REFUSED(BACKWARD | PARTS, NRG_ERR_NULL);
    args.x = NULL;
    REFUSED(BACKWARD | PARTS, NRG_ERR_NULL);
    args.statistics = NULL; /* a part's sums want those of all parts */
    REFUSED(PARTS, NRG_ERR_NULL);
    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(nrg_channel_norm_backward_sums(&spec, &args, NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_mem_eq(before, memory, sizeof memory);
}
END_TEST

START_TEST(what_may_be_absent)
{
    args.workspace = NULL;
    args.workspace_size = 0;
    args.dw = args.db = NULL;
    ACCEPTED(BOTH);
    args.y = args.w = args.b = NULL;
    ACCEPTED(BOTH);
    args.statistics = NULL;
    ACCEPTED(BOTH);
    args.dx = args.dy = NULL;
    ACCEPTED(BOTH);
    args.dx = args.dy = NULL;
    args.dw = args.db = NULL;
    ACCEPTED(BOTH);
    spec.statistics = NRG_STATISTICS_GIVEN;
    ACCEPTED(BOTH);
    as(BATCH);
    args.statistics = NULL;
    ACCEPTED(BOTH);
    args.dw = args.db = NULL;
    ACCEPTED(BOTH | PARTS);
    args.workspace = zone(X) + 1; /* where none is needed, nobody looks */
    args.workspace_size = 3;
    ACCEPTED(BOTH);
    as(GIVEN_SUMS);
    args.dx = NULL;
    ACCEPTED(BOTH);
    args.dy = NULL;
    ACCEPTED(BOTH);
    as(RUNNING);
    args.dx = args.dy = NULL;
    ACCEPTED(BOTH);
}
END_TEST

START_TEST(what_is_not_read)
{
    /* y and b without an activation */
    spec.activation = NRG_ACT_IDENTITY;
    args.y = zone(DX) + 3;
    args.b = zone(DX) + 1;
    args.y_stride = 1;
    ACCEPTED(BOTH);
    /* dx, dy and sums of the phase that makes sums */
    as(BATCH);
    args.dx = zone(X) + 1;
    args.dy = zone(X) + 3;
    args.sums = sums(SUMS) + 1;
    args.dx_stride = args.dy_stride = 1;
    ACCEPTED(PARTS);
}
END_TEST

START_TEST(spec_errors)
{
    for (int mode = GROUP; mode <= BATCH; mode++) {
        const int by = mode == GROUP ? BOTH : BOTH | PARTS;
        as((enum mode)mode);
        spec.channels = 0;
        REFUSED(by, NRG_ERR_DIM);
        args.s = 0;
        REFUSED(by, NRG_ERR_DIM);
        spec.over = (nrg_channel_over)2;
        REFUSED(by, NRG_ERR_ENUM);
        spec.layout = (nrg_channel_layout)-1;
        REFUSED(by, NRG_ERR_ENUM);
        spec.statistics = (nrg_channel_source)4;
        REFUSED(by, NRG_ERR_ENUM);
        spec.dtype = NRG_DTYPE_SAME;
        REFUSED(by, NRG_ERR_ENUM);
        spec.w_dtype = (nrg_dtype)4;
        REFUSED(by, NRG_ERR_ENUM);
        spec.store = (nrg_store)3;
        REFUSED(by, NRG_ERR_ENUM);
        spec.activation = (nrg_activation)(NRG_ACT_SOFTPLUS + 1);
        REFUSED(by, NRG_ERR_ENUM);
        spec.w_dtype = NRG_BF16;
        REFUSED(by, NRG_ERR_DTYPE);
        spec.eps = NAN;
        REFUSED(by, NRG_ERR_EPS);
        spec.eps = -1;
        REFUSED(by, NRG_ERR_EPS);
        spec.momentum = 2;
        REFUSED(by, NRG_ERR_CONSTANT);
        spec.segment = 4097;
        REFUSED(by, NRG_ERR_COMBINATION);
    }
    spec.groups = 1;
    REFUSED(BOTH | PARTS, NRG_ERR_COMBINATION);
    as(GROUP);
    spec.groups = 3;
    REFUSED(BOTH, NRG_ERR_DIM);
}
END_TEST

START_TEST(combination)
{
    spec.statistics = NRG_STATISTICS_FOLDED;
    REFUSED(BOTH, NRG_ERR_COMBINATION);
    args.sums = sums(SUMS_IN);
    args.dw = args.db = NULL;
    REFUSED(BOTH, NRG_ERR_COMBINATION); /* of a group */
    REFUSED(PARTS, NRG_ERR_COMBINATION);
    as(BATCH);
    spec.statistics = NRG_STATISTICS_FOLDED;
    REFUSED(BOTH | PARTS, NRG_ERR_COMBINATION);
    as(RUNNING);
    args.statistics = (nrg_channel_statistics *)(void *)zone(STATISTICS);
    REFUSED(BOTH, NRG_ERR_COMBINATION);
    args.sums = sums(SUMS_IN);
    args.dw = args.db = NULL;
    REFUSED(BOTH, NRG_ERR_COMBINATION);
    spec.centred = 0;
    REFUSED(BOTH, NRG_ERR_COMBINATION);
    for (size_t groups = 0; groups < C; groups += groups ? groups : 1) {
        spec.over = NRG_OVER_GROUP;
        spec.groups = groups;
        REFUSED(BOTH, NRG_ERR_COMBINATION);
    }
    REFUSED(PARTS, NRG_ERR_COMBINATION); /* constants have no sums */
    as(GIVEN_SUMS);
    args.dw = floats(DW);
    REFUSED(BOTH, NRG_ERR_COMBINATION);
    args.db = floats(DB);
    REFUSED(BOTH, NRG_ERR_COMBINATION);
}
END_TEST

START_TEST(count)
{
    as(GIVEN_SUMS);
    for (int set = 0; set < C; set++) {
        memset(sums(SUMS_IN) + set * NRG_SUMS_WORDS, 0, NRG_SUMS_WORDS * sizeof(int64_t));
        REFUSED(BACKWARD, NRG_ERR_COUNT);
        ((nrg_channel_statistics *)(void *)zone(STATISTICS))[set].count = 0;
        REFUSED(BACKWARD, NRG_ERR_COUNT);
    }
    as(BATCH);
    for (int set = 0; set < C; set++) {
        ((nrg_channel_statistics *)(void *)zone(STATISTICS))[set].count = 0;
        REFUSED(BACKWARD | PARTS, NRG_ERR_COUNT);
    }
    as(GROUP);
    for (int set = 0; set < N * GROUPS; set++) {
        ((nrg_channel_statistics *)(void *)zone(STATISTICS))[set].count = 0;
        REFUSED(BACKWARD, NRG_ERR_COUNT);
    }
}
END_TEST

static void move(int operand, unsigned char *to)
{
    switch (operand) {
    case D_O:
        args.d_o = to;
        break;
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
    case STATISTICS:
        args.statistics = (const nrg_channel_statistics *)(const void *)to;
        break;
    case RUNNING_MEAN:
        args.running_mean = (const float *)(const void *)to;
        break;
    case RUNNING_VAR:
        args.running_var = (const float *)(const void *)to;
        break;
    case SUMS_IN:
        args.sums = (const int64_t *)(const void *)to;
        break;
    case DX:
        args.dx = to;
        break;
    case DY:
        args.dy = to;
        break;
    case DW:
        args.dw = (float *)(void *)to;
        break;
    case DB:
        args.db = (float *)(void *)to;
        break;
    default:
        args.workspace = to;
        break;
    }
}

/* Operands of a mode's call. */
static int is_present(int operand)
{
    switch (operand) {
    case STATISTICS:
        return args.statistics != NULL;
    case RUNNING_MEAN:
    case RUNNING_VAR:
        return args.running_mean != NULL;
    case SUMS_IN:
        return args.sums != NULL;
    case DW:
    case DB:
        return args.dw != NULL;
    case WORKSPACE:
        return args.workspace != NULL;
    default:
        return operand <= DY;
    }
}

START_TEST(workspace)
{
    size_t bytes = 1;
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(&spec, &args, &bytes), NRG_OK);
    ck_assert_uint_eq(bytes, SPACE);
    for (size_t less = 1; less <= SPACE; less++) {
        args.workspace_size = SPACE - less;
        REFUSED(BOTH, NRG_ERR_WORKSPACE);
    }
    args.workspace_size = SPACE / 2;
    args.db = NULL;
    ACCEPTED(BOTH);
    args.workspace_size = SPACE / 2;
    args.dw = NULL;
    ACCEPTED(BOTH);
    args.workspace_size = SPACE / 2 - 1;
    args.dw = NULL;
    REFUSED(BOTH, NRG_ERR_WORKSPACE);
    args.workspace_size = SIZE_MAX;
    ACCEPTED(BOTH);

    memset(&args, 0, sizeof args); /* only these are looked at */
    args.size = sizeof args;
    float some;
    static const size_t channels[] = {1, 7, 4096};
    for (size_t c = 0; c < 3; c++)
        for (size_t n = 0; n < 9000; n += n < 300 ? 1 : 97)
            for (int asked = 0; asked < 4; asked++)
                for (int over = NRG_OVER_BATCH; over <= NRG_OVER_GROUP; over++) {
                    const size_t each = (n + 63) / 64, blocks = n ? (n + each - 1) / each : 0;
                    const size_t vectors = (size_t)(asked & 1) + (size_t)(asked >> 1);
                    spec.channels = channels[c];
                    spec.groups = 0;
                    spec.over = (nrg_channel_over)over;
                    args.n = n;
                    args.dw = asked & 1 ? &some : NULL;
                    args.db = asked & 2 ? &some : NULL;
                    ck_assert_int_eq(nrg_channel_norm_backward_workspace(&spec, &args, &bytes), NRG_OK);
                    ck_assert_uint_eq(bytes, over == NRG_OVER_BATCH ? 0 : 8 * channels[c] * blocks * vectors);
                    ck_assert_uint_le(blocks, 64);
                }
}
END_TEST

START_TEST(workspace_errors)
{
    size_t bytes = 12345;
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(NULL, &args, &bytes), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(&spec, NULL, &bytes), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(&spec, &args, NULL), NRG_ERR_NULL);
    args.size--;
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(&spec, &args, &bytes), NRG_ERR_STRUCT_SIZE);
    set_up();
    args.reserved = 1;
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(&spec, &args, &bytes), NRG_ERR_STRUCT_SIZE);
    set_up();
    spec.size = 3;
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(&spec, &args, &bytes), NRG_ERR_STRUCT_SIZE);
    set_up();
    spec.channels = 0;
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(&spec, &args, &bytes), NRG_ERR_DIM);
    spec.channels = SIZE_MAX / 8 / GROUPS * GROUPS;
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(&spec, &args, &bytes), NRG_ERR_OVERFLOW);
    set_up();
    spec.dtype = (nrg_dtype)9;
    ck_assert_int_eq(nrg_channel_norm_backward_workspace(&spec, &args, &bytes), NRG_ERR_ENUM);
    ck_assert_uint_eq(bytes, 12345);
}
END_TEST

/* The header's few; nothing else. */
static int allowed(int output, int other)
{
    return output == DX ? other == D_O || other == X || other == Y : output == DY && (other == D_O || other == Y);
}

/* The sums that a part writes. */
/* Rows that are as long as a vector of channels, and tensors of one row: strides do not tell an operand from another then. */
START_TEST(overlap_of_rows_like_vectors)
{
    const enum mode mode = (enum mode)_i;
    as(mode);
    for (size_t n = 1; n <= N; n += N - 1)
        for (int layout = NRG_NCHW; layout <= NRG_NHWC; layout++)
            for (int output = DX; output <= WORKSPACE; output++)
                for (int other = D_O; other <= WORKSPACE; other++) {
                    if (other == output || !is_present(output) || !is_present(other))
                        continue;
                    args.n = n;
                    spec.layout = (nrg_channel_layout)layout;
                    move(output, zone(other));
                    if (allowed(output, other))
                        ACCEPTED(BOTH);
                    else
                        REFUSED(BOTH, NRG_ERR_OVERLAP);
                }
}
END_TEST

START_TEST(overlap_of_sums)
{
    as(BATCH);
    for (int operand = D_O; operand <= DB; operand++) {
        if (!is_present(operand) || operand == DX || operand == DY)
            continue;
        move(operand, zone(SUMS));
        REFUSED(PARTS, NRG_ERR_OVERLAP);
        move(operand, zone(SUMS) + bytes_of(SUMS) - 8);
        REFUSED(PARTS, NRG_ERR_OVERLAP);
        memcpy(zone(SUMS) + bytes_of(SUMS), zone(operand), bytes_of(operand));
        move(operand, zone(SUMS) + bytes_of(SUMS));
        ACCEPTED(PARTS);
    }
}
END_TEST

START_TEST(overlap_of_three)
{
    for (int mode = 0; mode < MODES; mode++) {
        as((enum mode)mode);
        move(DX, zone(X));
        move(DY, zone(D_O));
        ACCEPTED(BOTH);
        move(DX, zone(D_O));
        move(DY, zone(Y));
        ACCEPTED(BOTH);
        /* dx and dy are apart, wherever they are */
        move(DX, zone(D_O));
        move(DY, zone(D_O));
        REFUSED(BOTH, NRG_ERR_OVERLAP);
        move(DX, zone(Y));
        move(DY, zone(Y));
        REFUSED(BOTH, NRG_ERR_OVERLAP);
        /* inputs may be one another */
        args.d_o = args.y = args.w = args.b = args.x;
        ACCEPTED(BOTH);
        args.d_o = args.x;
        move(DX, zone(X));
        ACCEPTED(BOTH);
        args.w = args.x;
        move(DX, zone(X));
        REFUSED(BOTH, NRG_ERR_OVERLAP);
    }
}
END_TEST

/* Nothing is read; dw and db are sums of nothing, in the phase that has them. */
START_TEST(no_samples)
{
    for (int over = NRG_OVER_BATCH; over <= NRG_OVER_GROUP; over++)
        for (int accumulate = 0; accumulate < 2; accumulate++)
            for (int bare = 0; bare < 2; bare++)
                for (int nth = 1; nth < 7; nth++) {
                    as(over == NRG_OVER_BATCH ? BATCH : GROUP);
                    if (bare)
                        args = nrg_channel_norm_backward_args_init(0, S, NULL, NULL, NULL);
                    args.n = 0;
                    args.dw = floats(DW);
                    args.db = floats(DB);
                    args.workspace = NULL;
                    args.workspace_size = 0;
                    args.accumulate = accumulate;
                    memcpy(before, memory, sizeof before);
                    for (int ith = 0; ith < nth; ith++)
                        ck_assert_int_eq(backward(ith, nth), NRG_OK);
                    if (over == NRG_OVER_GROUP)
                        ck_assert_mem_eq(before, memory, sizeof memory);
                    for (int ith = 0; ith < nth; ith++)
                        ck_assert_int_eq(reduce(ith, nth), NRG_OK);
                    if (!accumulate) {
                        memset(before + (zone(DW) - memory), 0, VECTOR);
                        memset(before + (zone(DB) - memory), 0, VECTOR);
                    }
                    ck_assert_mem_eq(before, memory, sizeof memory);
                }
    /* a part without samples has sums: of nothing */
    as(BATCH);
    args.n = 0;
    memset(sums(SUMS), 0x77, bytes_of(SUMS));
    ck_assert_int_eq(parts(0, 2), NRG_OK);
    ck_assert_int_eq(parts(1, 2), NRG_OK);
    for (size_t i = 0; i < C * NRG_SUMS_WORDS; i++)
        ck_assert_int_eq(sums(SUMS)[i], 0);
    /* what is wrong without samples is wrong */
    as(GROUP);
    args.n = 0;
    spec.eps = -1;
    REFUSED(BOTH, NRG_ERR_EPS);
    args.n = 0;
    spec.channels = 0;
    REFUSED(BOTH, NRG_ERR_DIM);
    args.n = 0;
    refused_share(BOTH, NRG_ERR_THREAD, 1, 1, __LINE__);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("channel_norm_backward: bad input");
    TCase *tests = test_case(suite, "bad input");
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, right_calls);
    tcase_add_test(tests, null);
    tcase_add_test(tests, what_may_be_absent);
    tcase_add_test(tests, what_is_not_read);
    tcase_add_test(tests, spec_errors);
    tcase_add_test(tests, combination);
    tcase_add_test(tests, count);
    tcase_add_test(tests, workspace);
    tcase_add_test(tests, workspace_errors);
    tcase_add_loop_test(tests, overlap_of_rows_like_vectors, 0, MODES);
    tcase_add_test(tests, overlap_of_sums);
    tcase_add_test(tests, overlap_of_three);
    tcase_add_test(tests, no_samples);
    return test_run(suite);
}
