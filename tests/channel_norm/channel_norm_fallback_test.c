/* Sets that the ordinary sums do not serve: constant channels, means from 2^8 to 2^30 σ, the largest and the smallest floats,
 * sums that two doubles do not hold, NaN and infinity, and sets of all these whose pieces lie across segments. Every path gives
 * the bits of scalar: o, statistics, gradients, and the integers of sums.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../check/channel_norm/channel.h"
#include "../../check/layout.h"
#include "../../src/operands/channel_norm.h"
#include "../harness/case_call.h"
#include "channel_problem.h"

/* The first of a list is every other set's: neighbours that are ordinary, that are alike, or that make a block overflow. */
static const enum row_kind lists[][13] = {
    {ROW_NORMAL, ROW_EQUAL, ROW_NEARLY_EQUAL, ROW_LARGE_MEAN, ROW_LEVELS, ROW_SCALES, ROW_EXTREMES, ROW_NEAR_MAX, ROW_SUBNORMAL,
     ROW_ONE_NAN, ROW_ONE_INF, ROW_ZEROS, ROW_OUTLIER},
    {ROW_EQUAL, ROW_EQUAL, ROW_NEARLY_EQUAL, ROW_LARGE_MEAN, ROW_LEVELS, ROW_SCALES, ROW_EXTREMES, ROW_NEAR_MAX, ROW_SUBNORMAL,
     ROW_ONE_NAN, ROW_ONE_INF, ROW_ZEROS, ROW_NORMAL},
    {ROW_SCALES, ROW_EQUAL, ROW_NEARLY_EQUAL, ROW_LARGE_MEAN, ROW_LEVELS, ROW_SCALES, ROW_EXTREMES, ROW_NEAR_MAX, ROW_SUBNORMAL,
     ROW_ONE_NAN, ROW_ONE_INF, ROW_ZEROS, ROW_NORMAL},
    {ROW_LARGE_MEAN, ROW_EQUAL, ROW_NEARLY_EQUAL, ROW_LARGE_MEAN, ROW_LEVELS, ROW_SCALES, ROW_EXTREMES, ROW_NEAR_MAX,
     ROW_SUBNORMAL, ROW_ONE_NAN, ROW_ONE_INF, ROW_ZEROS, ROW_NORMAL},
};
enum { LISTS = sizeof lists / sizeof lists[0], LIST = sizeof lists[0] / sizeof lists[0][0] };

enum { PARTS = 12 };

/* Other data in the tensors that are given. */
static int refill(case_call *call)
{
    static const int given[] = {SWEEP_X, SWEEP_D_O};
    const sweep_case *c = &call->c;
    const exact_sets sets = exact_sets_of(&c->channel, c->rows, c->positions);
    for (size_t i = 0; i < 2; i++) {
        void *tensor = case_call_content(call, given[i]);
        if (tensor)
            channel_fill(&sets, tensor, c->spec.dtype, lists[c->number % LISTS], LIST, test_mix(c->number + i));
    }
    return c->channel.source != NRG_STATISTICS_FOLDED;
}

static void sweep(const sweep_case *c, case_change *change)
{
    unsigned char *memory = test_allocate(c->bytes, 1);
    case_call call;
    case_call_make(&call, c, memory);
    change(&call);
    call.call.layouts = 1;
    call_sweep(&call.call);
    case_call_free(&call);
    free(memory);
}

static void sweep_cases(const char *op, int part) { case_sweep_op(op, part, PARTS, test_small() ? 60 : 700, refill); }

START_TEST(forward) { sweep_cases("channel_norm_forward", _i); }
END_TEST

START_TEST(backward) { sweep_cases("channel_norm_backward", _i); }
END_TEST

/* Sets of several segments, of blocks of columns that are full and that are not, and of groups wider than a block. */
static const struct {
    size_t n, c, s, groups;
} large[] = {{33, 10, 784, 2}, {2, 32, 4097, 8}, {3, 300, 256, 10},  {1, 1030, 257, 2}, {1400, 33, 7, 3},
             {2, 2, 70000, 1}, {9000, 17, 1, 1}, {300, 130, 40, 26}, {2, 20000, 3, 1}};
enum { LARGE = sizeof large / sizeof large[0] };

/* A case of an op and a dtype with options of its own, that asks for everything. */
static sweep_case make_case(const char *op, const nrg_channel_norm_spec *spec, size_t n, size_t s)
{
    sweep_case c;
    uint64_t random = n + s;
    int kernel = 0;
    while (strcmp(sweep_kernel_op(kernel), op) != 0 || sweep_kernel_dtype(kernel) != spec->dtype)
        kernel++;
    memset(&c, 0, sizeof c);
    c.kernel = kernel;
    c.spec.dtype = spec->dtype;
    c.channel = *spec;
    c.rows = n;
    c.positions = s;
    c.shares = c.reduce_shares = 1;
    if (strcmp(op, "channel_norm_forward") == 0) {
        sweep_channel_add_before(&c, &nrg_call_channel_norm_forward, sweep_channel_slots,
                                 NRG_BIT(NRG_CHANNEL_MEAN) | NRG_BIT(NRG_CHANNEL_STATISTICS));
        sweep_channel_add_before(&c, &nrg_call_channel_norm_sums, sweep_channel_sums_slots, 0);
    } else {
        sweep_channel_add_backward(&c, NRG_BIT(NRG_CHANNEL_BACKWARD_DX) | NRG_BIT(NRG_CHANNEL_BACKWARD_DW) |
                                           NRG_BIT(NRG_CHANNEL_BACKWARD_DB));
    }
    sweep_lay_out(&c, &random);
    return c;
}

static void sweep_large(const char *op, size_t shape)
{
    static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};
    for (size_t i = 0; i < (test_small() ? 1 : 8); i++) {
        nrg_channel_norm_spec spec = nrg_channel_norm_spec_batch(dtypes[(i + shape) % 3], large[shape].c, 1e-5);
        const size_t kind = (i / 2 + shape) % 4;
        spec.layout = (nrg_layout)(i % 2);
        spec.over = kind ? NRG_CHANNEL_OVER_GROUP : NRG_CHANNEL_OVER_BATCH;
        spec.groups = kind == 1 ? large[shape].groups : kind == 2 ? spec.channels : 1;
        sweep_case c = make_case(op, &spec, large[shape].n, large[shape].s);
        c.number = 8 * shape + i;
        sweep(&c, refill);
    }
}

START_TEST(large_sets_forward) { sweep_large("channel_norm_forward", (size_t)_i); }
END_TEST

START_TEST(large_sets_backward) { sweep_large("channel_norm_backward", (size_t)_i); }
END_TEST

/* Channels whose x, d_o or w, in turn, rise from 2^-64 to 2^64, while each of the other two has one magnitude. */
enum { MAGNITUDES = 3 * 2 * 2 * 2 };

static int rising_channels(case_call *call)
{
    static const float constant[] = {0x1p-39f, 1, 0x1p39f};
    static const int given[] = {SWEEP_X, SWEEP_D_O, SWEEP_W};
    const sweep_case *c = &call->c;
    const size_t channels = c->channel.channels, count = c->rows * c->positions * channels;
    uint64_t state = c->number;
    for (size_t i = 0; i < 3; i++) {
        void *tensor = case_call_content(call, given[i]);
        const int rises = i == c->number % 3, other = (int)test_draw(&state, 3);
        for (size_t k = 0; tensor && k < (i == 2 ? channels : count); k++) {
            const size_t channel = i == 2 ? k : c->channel.layout == NRG_LAYOUT_NHWC ? k % channels : k / c->positions % channels;
            const float value = (float)test_uniform(&state), away = value < 0 ? value - 1 : value + 1;
            const float scale = rises ? exp2f(128 * (float)channel / (float)channels - 64) : constant[other];
            element_set(tensor, k, NRG_F32, (i == 0 ? value : away) * scale);
        }
    }
    return 1;
}

static void sweep_magnitudes(const char *op, int number)
{
    /* few elements a channel; and as many as the fast grade sums in floats */
    static const struct {
        size_t n, c, s;
    } shapes[] = {{3, 1032, 5}, {1, 193, 2048}};
    for (size_t i = 0; i < (test_small() ? 2 : 40); i++) {
        nrg_channel_norm_spec spec = nrg_channel_norm_spec_batch(NRG_F32, shapes[i % 2].c, 0);
        spec.layout = (nrg_layout)(number / 3 % 2);
        spec.over = number / 6 % 2 ? NRG_CHANNEL_OVER_GROUP : NRG_CHANNEL_OVER_BATCH;
        spec.groups = number / 6 % 2 ? spec.channels : 1;
        spec.accuracy = number / 12 ? NRG_ACCURACY_FAST : NRG_ACCURACY_EXACT;
        sweep_case c = make_case(op, &spec, shapes[i % 2].n, shapes[i % 2].s);
        c.number = (uint64_t)number + i * MAGNITUDES;
        sweep(&c, rising_channels);
    }
}

START_TEST(magnitudes_forward) { sweep_magnitudes("channel_norm_forward", _i); }
END_TEST

START_TEST(magnitudes_backward) { sweep_magnitudes("channel_norm_backward", _i); }
END_TEST

/* The segment of a group with NHWC may have so many elements that its sums around the mean are not exact, where a few of them lie
 * far from the others: only then does the order of the sums count. */
enum { WIDE = 150001, SEGMENTS = 2 };

static int far_from_few(case_call *call)
{
    uint64_t state = call->c.number;
    void *x = case_call_content(call, SWEEP_X);
    for (size_t i = 0; i < WIDE * SEGMENTS; i++)
        element_set(x, i, NRG_F32, 1000 + (float)test_draw(&state, 4096) / 8192);
    for (size_t segment = 0; segment < SEGMENTS; segment++)
        for (uint64_t i = 0; i <= call->c.number % 3; i++)
            element_set(x, segment * WIDE + test_draw(&state, WIDE), NRG_F32, (float)test_draw(&state, 1u << 20) * 0x1p-30f);
    return 1;
}

START_TEST(order_of_wide_segments)
{
    nrg_channel_norm_spec spec = nrg_channel_norm_spec_group(NRG_F32, WIDE, 1, 1e-5);
    spec.layout = NRG_LAYOUT_NHWC;
    spec.segment = 64;
    sweep_case c = make_case("channel_norm_forward", &spec, 1, SEGMENTS);
    c.number = (uint64_t)_i;
    sweep(&c, far_from_few);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    call_start();
    Suite *suite = suite_create("channel norms: sets that ordinary sums do not serve");
    tcase_add_loop_test(test_case(suite, "forward"), forward, 0, PARTS);
    tcase_add_loop_test(test_case(suite, "backward"), backward, 0, PARTS);
    tcase_add_loop_test(test_case(suite, "large sets, forward"), large_sets_forward, 0, LARGE);
    tcase_add_loop_test(test_case(suite, "large sets, backward"), large_sets_backward, 0, LARGE);
    tcase_add_loop_test(test_case(suite, "magnitudes, forward"), magnitudes_forward, 0, MAGNITUDES);
    tcase_add_loop_test(test_case(suite, "magnitudes, backward"), magnitudes_backward, 0, MAGNITUDES);
    tcase_add_loop_test(test_case(suite, "order"), order_of_wide_segments, 0, 6);
    return test_run(suite);
}
