/* The harness of the forward pass over channels can fail: kernels that are wrong in one way each, and what the harness says about
 * them (harness_test.c does this for rows).
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../channel/channel_norm_harness.h"
#include "element.h"

/* A problem with everything in it: batch norm, whose running statistics are updated, of rows that end within vectors. */
static channel_problem problem;
static channel_result expected, got;
static channel_layout layout;
enum { SAMPLES = 3, CHANNELS = 7, POSITIONS = 19, ELEMENTS = SAMPLES * CHANNELS * POSITIONS };

static void set_up_of(nrg_dtype dtype, nrg_channel_layout memory)
{
    static const enum row_kind kinds[] = {ROW_NORMAL};
    const channel_shape shape = {.n = SAMPLES, .c = CHANNELS, .s = POSITIONS};
    const channel_options options = {.dtype = dtype,
                                     .layout = memory,
                                     .kind = CHANNEL_BATCH,
                                     .source = NRG_STATISTICS_COMPUTE,
                                     .update = UPDATE_MOMENTUM,
                                     .centred = 1,
                                     .w = 1,
                                     .b = 1,
                                     .y = 1,
                                     .segment = 64};
    for (uint64_t seed = 0;; seed++) {
        channel_problem_make(&problem, &options, &shape, kinds, 1, seed);
        channel_result_make(&expected, &problem);
        channel_result_make(&got, &problem);
        layout = channel_layout_plain(&problem);
        const char *failure = channel_run(&channel_library, &problem, &layout, &expected);
        if (failure)
            ck_abort_msg("%s", failure);
        int nans = 0;
        for (size_t i = 0; i < ELEMENTS; i++)
            nans += isnan(element_get(expected.o, i, dtype));
        for (size_t c = 0; c < CHANNELS; c++)
            nans += !isfinite(expected.running_mean[c]) || !isfinite(expected.running_var[c]) ||
                    (expected.running_mean[c] == problem.running_mean[c]);
        if (!nans)
            return;
        channel_problem_free(&problem);
        channel_result_free(&expected);
        channel_result_free(&got);
    }
}

static void set_up(void) { set_up_of(NRG_F32, NRG_NCHW); }

static void tear_down(void)
{
    channel_problem_free(&problem);
    channel_result_free(&expected);
    channel_result_free(&got);
}

/* The library, but for one function. */
static channel_kernel with_forward(channel_forward_call *forward)
{
    channel_kernel kernel = channel_library;
    kernel.forward = forward;
    return kernel;
}

static channel_kernel with_sums(channel_sums_call *sums)
{
    channel_kernel kernel = channel_library;
    kernel.sums = sums;
    return kernel;
}

static channel_kernel with_statistics(channel_statistics_call *statistics)
{
    channel_kernel kernel = channel_library;
    kernel.statistics = statistics;
    return kernel;
}

/* What the harness finds wrong with a kernel, or NULL. */
static const char *verdict(channel_kernel kernel)
{
    const char *failure = channel_run(&kernel, &problem, &layout, &got);
    return failure ? failure : channel_compare(&problem, &layout, &expected, &got);
}

static void must_catch(channel_kernel kernel, const char *words)
{
    const char *said = verdict(kernel);
    if (!said)
        ck_abort_msg("a wrong kernel passed (looked for: %s)", words);
    if (!strstr(said, words))
        ck_abort_msg("the harness said \"%s\" and not \"%s\"", said, words);
}

static void run_crashing(const void *kernel) { verdict(*(const channel_kernel *)kernel); }

START_TEST(right_kernel_passes)
{
    for (int memory = NRG_NCHW; memory <= NRG_NHWC; memory++) {
        tear_down();
        set_up_of(NRG_F32, (nrg_channel_layout)memory);
        for (uint64_t seed = 0; seed < 300; seed++) {
            layout = channel_layout_vary(&problem, seed);
            const char *said = verdict(channel_library);
            if (said)
                ck_abort_msg("%s; %s", said, channel_layout_text(&layout));
        }
    }
}
END_TEST

/* An operand of a call, by number, and how many bytes it has there. */
static unsigned char *operand_of(const nrg_channel_norm_args *a, int which)
{
    const void *const all[COPERANDS] = {a->x,           a->y, a->w, a->b, a->o, a->mean, a->rstd, a->statistics, a->running_mean,
                                        a->running_var, NULL};
    return (unsigned char *)(uintptr_t)all[which];
}

static size_t bytes_of(int which)
{
    const size_t element = nrg_dtype_size(problem.spec.dtype);
    switch (which) {
    case COP_X:
    case COP_Y:
    case COP_O:
        return ELEMENTS * element;
    case COP_W:
    case COP_B:
        return CHANNELS * nrg_dtype_size(problem.w_dtype);
    case COP_STATISTICS:
        return CHANNELS * sizeof(nrg_channel_statistics);
    case COP_SUMS:
        return CHANNELS * NRG_SUMS_WORDS * sizeof(int64_t);
    default:
        return CHANNELS * sizeof(float);
    }
}

static int target;     /* the operand that a wrong kernel spoils */
static size_t at_byte; /* of it */

static nrg_status one_bit_off(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int ith, int nth)
{
    nrg_status status = nrg_channel_norm_forward(spec, args, ith, nth);
    operand_of(args, target)[at_byte] ^= 1;
    return status;
}

START_TEST(one_bit)
{
    static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};
    tear_down();
    set_up_of(dtypes[_i / 2], (nrg_channel_layout)(_i % 2));
    for (target = COP_O; target <= COP_RUNNING_VAR; target++) {
        char words[64];
        snprintf(words, sizeof words, "%s: ", channel_operand_name((enum channel_operand)target));
        const size_t element = target == COP_O ? nrg_dtype_size(dtypes[_i / 2]) : target == COP_STATISTICS ? 8 : 4;
        for (at_byte = 0; at_byte < bytes_of(target); at_byte += element)
            must_catch(with_forward(one_bit_off), words);
    }
}
END_TEST

/* One element nobody writes. */
static nrg_status lazy(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int ith, int nth)
{
    unsigned char *last = operand_of(args, target) + bytes_of(target) - 4, kept[4];
    memcpy(kept, last, sizeof kept);
    nrg_status status = nrg_channel_norm_forward(spec, args, ith, nth);
    memcpy(last, kept, sizeof kept);
    return status;
}

START_TEST(unwritten_element)
{
    target = COP_O;
    must_catch(with_forward(lazy), "o: row 2 element 132");
    target = COP_MEAN;
    must_catch(with_forward(lazy), "mean: row 6");
    target = COP_RSTD;
    must_catch(with_forward(lazy), "rstd: row 6");
    target = COP_STATISTICS;
    must_catch(with_forward(lazy), "statistics: set 6");
    target = COP_RUNNING_MEAN;
    must_catch(with_forward(lazy), "running_mean: row 0 element 6");
    target = COP_RUNNING_VAR;
    must_catch(with_forward(lazy), "running_var: row 0 element 6");
}
END_TEST

START_TEST(unwritten_nan)
{
    /* a NaN equals any NaN, so what was there before must not look like one */
    element_set(problem.x, ELEMENTS - 1, NRG_F32, INFINITY);
    const char *failure = channel_run(&channel_library, &problem, &layout, &expected);
    if (failure)
        ck_abort_msg("%s", failure);
    ck_assert_msg(isnan(element_get(expected.o, ELEMENTS - 1, NRG_F32)) && isnan(expected.mean[CHANNELS - 1]), "no NaN");
    for (target = COP_O; target <= COP_STATISTICS; target++) {
        char words[64];
        snprintf(words, sizeof words, "%s: ", channel_operand_name((enum channel_operand)target));
        must_catch(with_forward(lazy), words);
    }
}
END_TEST

static nrg_status refuses(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int ith, int nth)
{
    (void)spec, (void)args, (void)ith, (void)nth;
    return NRG_ERR_OVERLAP;
}

static nrg_status refuses_sums(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int64_t *sums, int ith,
                               int nth)
{
    (void)sums;
    return refuses(spec, args, ith, nth);
}

static nrg_status refuses_statistics(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, const int64_t *sums,
                                     int ith, int nth)
{
    (void)sums;
    return refuses(spec, args, ith, nth);
}

START_TEST(refused_call)
{
    for (layout.in_phases = 0; layout.in_phases < 2; layout.in_phases++)
        must_catch(with_forward(refuses), "forward: status 7");
    layout.in_phases = 1;
    must_catch(with_sums(refuses_sums), "sums: status 7");
    must_catch(with_statistics(refuses_statistics), "statistics: status 7");
}
END_TEST

/* Sums that are wrong. */
static nrg_status dirty_sums(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int64_t *sums, int ith,
                             int nth)
{
    int64_t before[CHANNELS * NRG_SUMS_WORDS];
    memcpy(before, sums, sizeof before);
    nrg_status status = nrg_channel_norm_sums(spec, args, sums, ith, nth);
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        sums[i] = (int64_t)((uint64_t)sums[i] + (uint64_t)before[i]);
    return status;
}

static nrg_status centred_sums(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int64_t *sums, int ith,
                               int nth)
{
    nrg_channel_norm_spec other = *spec;
    other.centred = !other.centred;
    return nrg_channel_norm_sums(&other, args, sums, ith, nth);
}

/* Statistics of another eps: mean and variance are right. */
static nrg_status other_statistics(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, const int64_t *sums,
                                   int ith, int nth)
{
    nrg_channel_norm_spec other = *spec;
    other.eps += 1;
    return nrg_channel_norm_statistics(&other, args, sums, ith, nth);
}

/* Running statistics that every share updates. */
static nrg_status updates_twice(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, const int64_t *sums,
                                int ith, int nth)
{
    (void)ith, (void)nth;
    return nrg_channel_norm_statistics(spec, args, sums, 0, 1);
}

START_TEST(wrong_phases)
{
    layout.in_phases = 1;
    must_catch(with_sums(dirty_sums), ""); /* what was there decides what it says */
    must_catch(with_sums(centred_sums), "statistics: set 0");
    must_catch(with_statistics(other_statistics), "statistics: set 0");
    layout.want_statistics = layout.want_mean = layout.want_rstd = 0;
    must_catch(with_statistics(other_statistics), "o: row 0 element 0");
    must_catch(with_sums(centred_sums), "running_mean: row 0 element 0");
    const char *said = verdict(with_statistics(updates_twice));
    if (said)
        ck_abort_msg("%s", said);
    layout.nth = 2;
    must_catch(with_statistics(updates_twice), "running_mean: row 0 element 0");
}
END_TEST

static int before_start, writes;

static nrg_status reaches_out(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int ith, int nth)
{
    nrg_status status = nrg_channel_norm_forward(spec, args, ith, nth);
    volatile unsigned char *byte = operand_of(args, target) + (before_start ? -1 : (ptrdiff_t)bytes_of(target));
    unsigned char value = *byte;
    if (writes)
        *byte = value ^ 1;
    return status;
}

static nrg_status sums_reach_out(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int64_t *sums, int ith,
                                 int nth)
{
    nrg_status status = nrg_channel_norm_sums(spec, args, sums, ith, nth);
    volatile unsigned char *byte = (unsigned char *)sums + (before_start ? -1 : (ptrdiff_t)bytes_of(COP_SUMS));
    unsigned char value = *byte;
    if (writes)
        *byte = value ^ 1;
    return status;
}

/* A kernel that leaves operand `target`. */
static channel_kernel reaching(void)
{
    layout.in_phases = target == COP_SUMS;
    return target == COP_SUMS ? with_sums(sums_reach_out) : with_forward(reaches_out);
}

static void all_sides(enum fence_side side, size_t gap)
{
    for (int i = 0; i < COPERANDS; i++) {
        layout.place[i].side = side;
        layout.place[i].gap = gap;
    }
}

static void leaves_buffers(void)
{
    for (target = 0; target < COPERANDS; target++)
        for (writes = 0; writes < 2; writes++) {
            const channel_kernel kernel = reaching();
            test_must_crash(run_crashing, &kernel);
        }
}

START_TEST(leaves_buffers_at_the_end)
{
    before_start = 0;
    all_sides(AT_END, 0);
    leaves_buffers();
}
END_TEST

START_TEST(leaves_buffers_at_the_start)
{
    before_start = 1;
    all_sides(AT_START, 0);
    leaves_buffers();
}
END_TEST

START_TEST(writes_beside_a_buffer)
{
    writes = 1;
    for (int side = AT_END; side <= AT_START; side++)
        for (target = 0; target < COPERANDS; target++)
            for (before_start = 0; before_start < 2; before_start++) {
                all_sides((enum fence_side)side, 3);
                must_catch(reaching(), "which is no output's");
            }
}
END_TEST

/* Writes the byte after the first row. */
static nrg_status writes_padding(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int ith, int nth)
{
    nrg_status status = nrg_channel_norm_forward(spec, args, ith, nth);
    operand_of(args, target)[problem.dim * nrg_dtype_size(spec->dtype)] ^= 1;
    return status;
}

START_TEST(writes_in_padding)
{
    static const int tensors[] = {COP_X, COP_Y, COP_O};
    for (int memory = NRG_NCHW; memory <= NRG_NHWC; memory++) {
        tear_down();
        set_up_of(NRG_F32, (nrg_channel_layout)memory);
        for (int i = 0; i < COPERANDS; i++)
            layout.place[i].pad = 1;
        for (size_t i = 0; i < 3; i++)
            for (layout.interleaved = 0; layout.interleaved < 2; layout.interleaved++) {
                target = tensors[i];
                must_catch(with_forward(writes_padding), "which is no output's");
            }
    }
}
END_TEST

static int same_value;

static nrg_status writes_input(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int ith, int nth)
{
    nrg_status status = nrg_channel_norm_forward(spec, args, ith, nth);
    volatile unsigned char *byte = operand_of(args, target) + 7;
    *byte = *byte ^ (same_value ? 0 : 1);
    return status;
}

START_TEST(writes_an_input)
{
    const channel_kernel kernel = with_forward(writes_input);
    for (target = COP_X; target <= COP_B; target++) {
        layout.read_only = same_value = 0;
        must_catch(kernel, "which is no output's");
        layout.read_only = same_value = 1;
        test_must_crash(run_crashing, &kernel);
    }
}
END_TEST

/* Running statistics, and statistics that are given, are inputs as well. */
START_TEST(writes_statistics_it_is_given)
{
    const channel_shape shape = {.n = SAMPLES, .c = CHANNELS, .s = POSITIONS};
    channel_options options = {.dtype = NRG_F32, .kind = CHANNEL_BATCH, .centred = 1};
    for (int source = NRG_STATISTICS_GIVEN; source <= NRG_STATISTICS_RUNNING; source++) {
        tear_down();
        options.source = (nrg_channel_source)source;
        channel_problem_make(&problem, &options, &shape, NULL, 0, 5);
        channel_result_make(&expected, &problem);
        channel_result_make(&got, &problem);
        layout = channel_layout_plain(&problem);
        for (target = source == NRG_STATISTICS_GIVEN ? COP_STATISTICS : COP_RUNNING_MEAN;
             target <= (source == NRG_STATISTICS_GIVEN ? COP_STATISTICS : COP_RUNNING_VAR); target++) {
            const channel_kernel kernel = with_forward(writes_input);
            layout.read_only = same_value = 0;
            must_catch(kernel, "which is no output's");
            layout.read_only = same_value = 1;
            test_must_crash(run_crashing, &kernel);
        }
    }
}
END_TEST

/* Writes an output although there are no samples. */
static nrg_status writes_nothing(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int ith, int nth)
{
    nrg_status status = nrg_channel_norm_forward(spec, args, ith, nth);
    *operand_of(args, target) ^= 1;
    return status;
}

START_TEST(no_samples)
{
    problem.n = 0;
    problem.rows = 0;
    const char *said = verdict(channel_library);
    if (said)
        ck_abort_msg("%s", said);
    for (target = COP_O; target <= COP_RUNNING_VAR; target++)
        must_catch(with_forward(writes_nothing), "which is no output's");
}
END_TEST

/* Does the first share instead of the last one: only a call in several shares shows it. */
static nrg_status wrong_share(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int ith, int nth)
{
    return nrg_channel_norm_forward(spec, args, ith == nth - 1 && nth > 1 ? 0 : ith, nth);
}

START_TEST(forgets_a_share)
{
    const char *said = verdict(with_forward(wrong_share));
    if (said)
        ck_abort_msg("%s", said);
    layout.nth = 3;
    must_catch(with_forward(wrong_share), "statistics: set 5");
    layout.want_statistics = layout.want_mean = layout.want_rstd = 0;
    must_catch(with_forward(wrong_share), "running_mean: row 0 element 0");
    layout.in_phases = 1; /* the forward pass' shares are planes then, and what it does not write is o's */
    must_catch(with_forward(wrong_share), "o: row 2 element 0");
}
END_TEST

static nrg_status bad_in_place(const nrg_channel_norm_spec *spec, const nrg_channel_norm_args *args, int ith, int nth)
{
    /* as if something were read again after it has been written over */
    nrg_channel_norm_args again = *args;
    nrg_status status = nrg_channel_norm_forward(spec, args, ith, nth);
    again.mean = again.rstd = again.running_mean = again.running_var = NULL;
    again.statistics = NULL;
    return args->o == args->x || args->o == args->y ? nrg_channel_norm_forward(spec, &again, ith, nth) : status;
}

START_TEST(reads_what_it_wrote)
{
    const char *said = verdict(with_forward(bad_in_place));
    if (said)
        ck_abort_msg("%s", said);
    layout.over = COP_X;
    must_catch(with_forward(bad_in_place), "o: row 0 element 0");
    layout.over = COP_Y;
    must_catch(with_forward(bad_in_place), "o: row 0 element 0");
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("the channel harness catches wrong kernels");
    TCase *tests = test_case(suite, "wrong kernels");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, right_kernel_passes);
    tcase_add_loop_test(tests, one_bit, 0, 6);
    tcase_add_test(tests, unwritten_element);
    tcase_add_test(tests, unwritten_nan);
    tcase_add_test(tests, refused_call);
    tcase_add_test(tests, wrong_phases);
    if (fence_readable())
        printf("SKIP leaves_buffers_at_the_end: the page after a buffer is readable (NRG_TEST_READABLE_FENCE); 1 test skipped\n");
    else
        tcase_add_test(tests, leaves_buffers_at_the_end);
    tcase_add_test(tests, leaves_buffers_at_the_start);
    tcase_add_test(tests, writes_beside_a_buffer);
    tcase_add_test(tests, writes_in_padding);
    tcase_add_test(tests, writes_an_input);
    tcase_add_test(tests, writes_statistics_it_is_given);
    tcase_add_test(tests, no_samples);
    tcase_add_test(tests, forgets_a_share);
    tcase_add_test(tests, reads_what_it_wrote);
    return test_run(suite);
}
