/* The harness of the backward pass over channels can fail: kernels that are wrong in one way each, and what the harness says
 * about them (harness_backward_test.c does this for rows).
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../channel/channel_norm_backward_harness.h"
#include "element.h"

/* A problem with everything in it, of rows that end within vectors: batch norm, with sums in phases, or group norm, with a
 * workspace of several blocks. */
static channel_backward_problem problem;
static channel_backward_result expected, got;
static channel_backward_layout layout;
enum { SAMPLES = 5, CHANNELS = 6, GROUPS = 2, POSITIONS = 19, ELEMENTS = SAMPLES * CHANNELS * POSITIONS };

static void set_up_of(nrg_dtype dtype, nrg_channel_layout memory, enum channel_kind kind)
{
    static const enum row_kind kinds[] = {ROW_NORMAL};
    const channel_shape shape = {.n = SAMPLES, .c = CHANNELS, .s = POSITIONS, .groups = GROUPS};
    const channel_options options = {.dtype = dtype,
                                     .layout = memory,
                                     .kind = kind,
                                     .source = NRG_STATISTICS_COMPUTE,
                                     .centred = 1,
                                     .w = 1,
                                     .b = 1,
                                     .y = 1,
                                     .activation = NRG_ACT_SILU,
                                     .segment = 64};
    for (uint64_t seed = 0;; seed++) {
        channel_backward_problem_make(&problem, &options, &shape, kinds, 1, seed);
        channel_backward_result_make(&expected, &problem);
        channel_backward_result_make(&got, &problem);
        layout = channel_backward_layout_plain(&problem);
        const char *failure = channel_backward_run(&channel_backward_library, &problem, &layout, &expected);
        if (failure)
            ck_abort_msg("%s", failure);
        int strange = 0;
        for (size_t i = 0; i < ELEMENTS; i++)
            strange += !isfinite(element_get(expected.dx, i, dtype)) || !isfinite(element_get(expected.dy, i, dtype));
        for (size_t c = 0; c < CHANNELS; c++)
            strange += !isfinite(expected.dw[c]) || !isfinite(expected.db[c]) || expected.db[c] == 0;
        if (!strange && !problem.accumulate)
            return;
        channel_backward_problem_free(&problem);
        channel_backward_result_free(&expected);
        channel_backward_result_free(&got);
    }
}

static void set_up(void) { set_up_of(NRG_F32, NRG_NCHW, CHANNEL_GROUP); }

static void tear_down(void)
{
    channel_backward_problem_free(&problem);
    channel_backward_result_free(&expected);
    channel_backward_result_free(&got);
}

/* The library, but for one function. */
static channel_backward_kernel with_backward(channel_backward_phase *backward)
{
    channel_backward_kernel kernel = channel_backward_library;
    kernel.backward = backward;
    return kernel;
}

static channel_backward_kernel with_reduce(channel_backward_phase *reduce)
{
    channel_backward_kernel kernel = channel_backward_library;
    kernel.reduce = reduce;
    return kernel;
}

static channel_backward_kernel with_sums(channel_backward_sums_phase *sums)
{
    channel_backward_kernel kernel = channel_backward_library;
    kernel.sums = sums;
    return kernel;
}

/* What the harness finds wrong with a kernel, or NULL. */
static const char *verdict(channel_backward_kernel kernel)
{
    const char *failure = channel_backward_run(&kernel, &problem, &layout, &got);
    return failure ? failure : channel_backward_compare(&problem, &layout, &expected, &got);
}

static void must_catch(channel_backward_kernel kernel, const char *words)
{
    const char *said = verdict(kernel);
    if (!said)
        ck_abort_msg("a wrong kernel passed (looked for: %s)", words);
    if (!strstr(said, words))
        ck_abort_msg("the harness said \"%s\" and not \"%s\"", said, words);
}

static void run_crashing(const void *kernel) { verdict(*(const channel_backward_kernel *)kernel); }

START_TEST(right_kernel_passes)
{
    tear_down();
    set_up_of(NRG_F32, (nrg_channel_layout)(_i % 2), (enum channel_kind)(_i / 2));
    for (uint64_t seed = 0; seed < 300; seed++) {
        layout = channel_backward_layout_vary(&problem, seed);
        const char *said = verdict(channel_backward_library);
        if (said)
            ck_abort_msg("%s; %s", said, channel_backward_layout_text(&layout));
    }
}
END_TEST

/* An operand of a call, by number, and how many bytes it has there. */
static unsigned char *operand_of(const nrg_channel_norm_backward_args *a, int which)
{
    const void *const all[CBOPERANDS] = {a->d_o,         a->x,  a->y,  a->w,  a->b,  a->statistics, a->running_mean,
                                         a->running_var, a->dx, a->dy, a->dw, a->db, NULL,          a->workspace};
    return (unsigned char *)(uintptr_t)all[which];
}

static size_t bytes_of(int which)
{
    const channel_problem *f = &problem.forward;
    switch (which) {
    case CBOP_W:
    case CBOP_B:
        return CHANNELS * nrg_dtype_size(f->w_dtype);
    case CBOP_STATISTICS:
        return f->sets * sizeof(nrg_channel_statistics);
    case CBOP_DW:
    case CBOP_DB:
    case CBOP_RUNNING_MEAN:
    case CBOP_RUNNING_VAR:
        return CHANNELS * sizeof(float);
    case CBOP_SUMS:
        return CHANNELS * NRG_SUMS_WORDS * sizeof(int64_t);
    case CBOP_WORKSPACE:
        return 2 * SAMPLES * CHANNELS * sizeof(double);
    default:
        return ELEMENTS * nrg_dtype_size(f->spec.dtype);
    }
}

static int target;     /* the operand that a wrong kernel spoils */
static size_t at_byte; /* of it */

static nrg_status one_bit_off(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    nrg_status status = nrg_channel_norm_backward_reduce(spec, args, ith, nth);
    operand_of(args, target)[at_byte] ^= 1;
    return status;
}

START_TEST(one_bit)
{
    static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};
    tear_down();
    set_up_of(dtypes[_i / 2], (nrg_channel_layout)(_i % 2), CHANNEL_GROUP);
    for (target = CBOP_DX; target <= CBOP_DB; target++) {
        char words[64];
        snprintf(words, sizeof words, "%s: row", channel_backward_operand_name((enum channel_backward_operand)target));
        const size_t element = target < CBOP_DW ? nrg_dtype_size(dtypes[_i / 2]) : 4;
        for (at_byte = 0; at_byte < bytes_of(target); at_byte += element)
            must_catch(with_reduce(one_bit_off), words);
    }
}
END_TEST

/* One element nobody writes. */
static nrg_status lazy(channel_backward_phase *phase, const nrg_channel_norm_spec *spec,
                       const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    unsigned char *last = operand_of(args, target) + bytes_of(target) - 4, kept[4];
    memcpy(kept, last, sizeof kept);
    nrg_status status = phase(spec, args, ith, nth);
    memcpy(last, kept, sizeof kept);
    return status;
}

static nrg_status lazy_backward(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    return lazy(nrg_channel_norm_backward, spec, args, ith, nth);
}

static nrg_status lazy_reduce(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    return lazy(nrg_channel_norm_backward_reduce, spec, args, ith, nth);
}

START_TEST(unwritten_element)
{
    for (target = CBOP_DX; target <= CBOP_DY; target++)
        must_catch(with_backward(lazy_backward), "row 4 element 113");
    for (; target <= CBOP_DB; target++)
        must_catch(with_reduce(lazy_reduce), "row 0 element 5");
    target = CBOP_WORKSPACE; /* a partial sum that stays as it was */
    must_catch(with_backward(lazy_backward), "db: row 0 element 5");
}
END_TEST

/* A block that adds to what the workspace held. */
static nrg_status dirty_backward(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    double before[CHANNELS];
    memcpy(before, args->workspace, sizeof before);
    nrg_status status = nrg_channel_norm_backward(spec, args, ith, nth);
    double *sums = args->workspace;
    for (size_t i = 0; i < CHANNELS; i++)
        sums[i] += before[i];
    return status;
}

/* dw that is added to without being asked for: of group norm in the second phase, of batch norm in the first. */
static nrg_status dirty(channel_backward_phase *phase, const nrg_channel_norm_spec *spec,
                        const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    nrg_channel_norm_backward_args adding = *args;
    adding.accumulate = 1;
    return phase(spec, &adding, ith, nth);
}

static nrg_status dirty_reduce(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    return dirty(nrg_channel_norm_backward_reduce, spec, args, ith, nth);
}

static nrg_status dirty_batch(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    return dirty(nrg_channel_norm_backward, spec, args, ith, nth);
}

static nrg_status dirty_sums(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int64_t *sums,
                             int ith, int nth)
{
    int64_t before[CHANNELS * NRG_SUMS_WORDS];
    memcpy(before, sums, sizeof before);
    nrg_status status = nrg_channel_norm_backward_sums(spec, args, sums, ith, nth);
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        sums[i] = (int64_t)((uint64_t)sums[i] + (uint64_t)before[i]);
    return status;
}

START_TEST(sums_that_begin_with_something)
{
    must_catch(with_backward(dirty_backward), "dw: row 0 element 0");
    must_catch(with_reduce(dirty_reduce), "dw: row 0 element 0");
    tear_down();
    set_up_of(NRG_F32, NRG_NCHW, CHANNEL_BATCH);
    must_catch(with_backward(dirty_batch), "dw: row 0 element 0");
    layout.in_phases = 1;
    must_catch(with_sums(dirty_sums), ""); /* what was there decides what it says */
}
END_TEST

static nrg_status refuses(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    (void)spec, (void)args, (void)ith, (void)nth;
    return NRG_ERR_OVERLAP;
}

static nrg_status refuses_sums(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int64_t *sums,
                               int ith, int nth)
{
    (void)sums;
    return refuses(spec, args, ith, nth);
}

START_TEST(refused_call)
{
    must_catch(with_backward(refuses), "backward: status 7");
    must_catch(with_reduce(refuses), "reduce: status 7");
    tear_down();
    set_up_of(NRG_F32, NRG_NCHW, CHANNEL_BATCH);
    layout.in_phases = 1;
    must_catch(with_sums(refuses_sums), "sums: status 7");
    must_catch(with_backward(refuses), "backward: status 7");
}
END_TEST

static int before_start, writes;

static void touch(unsigned char *first)
{
    volatile unsigned char *byte = first + (before_start ? -1 : (ptrdiff_t)bytes_of(target));
    unsigned char value = *byte;
    if (writes)
        *byte = value ^ 1;
}

static nrg_status reaches_out(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    nrg_status status = nrg_channel_norm_backward(spec, args, ith, nth);
    touch(operand_of(args, target));
    return status;
}

static nrg_status sums_reach_out(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int64_t *sums,
                                 int ith, int nth)
{
    nrg_status status = nrg_channel_norm_backward_sums(spec, args, sums, ith, nth);
    touch((unsigned char *)sums);
    return status;
}

static void all_sides(enum fence_side side, size_t gap)
{
    for (int i = 0; i < CBOPERANDS; i++) {
        layout.place[i].side = side;
        layout.place[i].gap = gap;
    }
}

/* Every operand there is: batch norm has sums, and group norm a workspace; running statistics come with other options. */
static void each_operand(void body(channel_backward_kernel kernel), enum fence_side side, size_t gap)
{
    for (target = 0; target < CBOPERANDS; target++) {
        if (target == CBOP_RUNNING_MEAN || target == CBOP_RUNNING_VAR)
            continue;
        tear_down();
        set_up_of(NRG_F32, NRG_NCHW, target == CBOP_SUMS ? CHANNEL_BATCH : CHANNEL_GROUP);
        layout.saved = 1;
        layout.in_phases = target == CBOP_SUMS;
        all_sides(side, gap);
        body(target == CBOP_SUMS ? with_sums(sums_reach_out) : with_backward(reaches_out));
    }
}

static void crashes(channel_backward_kernel kernel)
{
    for (writes = 0; writes < 2; writes++)
        test_must_crash(run_crashing, &kernel);
}

START_TEST(leaves_buffers_at_the_end)
{
    before_start = 0;
    each_operand(crashes, AT_END, 0);
}
END_TEST

START_TEST(leaves_buffers_at_the_start)
{
    before_start = 1;
    each_operand(crashes, AT_START, 0);
}
END_TEST

static void caught(channel_backward_kernel kernel)
{
    writes = 1;
    for (before_start = 0; before_start < 2; before_start++)
        must_catch(kernel, "which is no output's");
}

START_TEST(writes_beside_a_buffer)
{
    for (int side = AT_END; side <= AT_START; side++)
        each_operand(caught, (enum fence_side)side, 3);
    /* what the workspace is said to have beyond what is needed is not the call's either */
    all_sides(AT_START, 0);
    layout.spare = 24;
    target = CBOP_WORKSPACE;
    before_start = 0;
    must_catch(with_backward(reaches_out), "which is no output's");
}
END_TEST

static int same_value;

static nrg_status writes_input(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    nrg_status status = nrg_channel_norm_backward(spec, args, ith, nth);
    volatile unsigned char *byte = operand_of(args, target) + 7;
    *byte = *byte ^ (same_value ? 0 : 1);
    return status;
}

static void must_not_write(void)
{
    const channel_backward_kernel kernel = with_backward(writes_input);
    layout.read_only = same_value = 0;
    must_catch(kernel, "which is no output's");
    layout.read_only = same_value = 1;
    test_must_crash(run_crashing, &kernel);
}

START_TEST(writes_an_input)
{
    layout.saved = 1;
    for (target = CBOP_D_O; target <= CBOP_STATISTICS; target++)
        must_not_write();
    tear_down();
    const channel_shape shape = {.n = SAMPLES, .c = CHANNELS, .s = POSITIONS};
    const channel_options options = {.dtype = NRG_F32, .kind = CHANNEL_INSTANCE, .source = NRG_STATISTICS_RUNNING, .centred = 1};
    channel_backward_problem_make(&problem, &options, &shape, NULL, 0, 5);
    channel_backward_result_make(&expected, &problem);
    channel_backward_result_make(&got, &problem);
    layout = channel_backward_layout_plain(&problem);
    for (target = CBOP_RUNNING_MEAN; target <= CBOP_RUNNING_VAR; target++)
        must_not_write();
}
END_TEST

/* Writes the byte after the first row. */
static nrg_status writes_padding(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    nrg_status status = nrg_channel_norm_backward(spec, args, ith, nth);
    operand_of(args, target)[problem.forward.dim * nrg_dtype_size(spec->dtype)] ^= 1;
    return status;
}

START_TEST(writes_in_padding)
{
    static const int tensors[] = {CBOP_D_O, CBOP_X, CBOP_Y, CBOP_DX, CBOP_DY};
    for (int memory = NRG_NCHW; memory <= NRG_NHWC; memory++) {
        tear_down();
        set_up_of(NRG_F32, (nrg_channel_layout)memory, CHANNEL_GROUP);
        for (int i = 0; i < CBOPERANDS; i++)
            layout.place[i].pad = 1;
        for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
            for (layout.interleaved = 0; layout.interleaved < 2; layout.interleaved++) {
                target = tensors[i];
                must_catch(with_backward(writes_padding), "which is no output's");
            }
    }
}
END_TEST

/* Does the first share instead of the last one, in a phase. */
static nrg_status wrong_sets(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    return nrg_channel_norm_backward(spec, args, ith == nth - 1 && nth > 1 ? 0 : ith, nth);
}

static nrg_status wrong_channels(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    return nrg_channel_norm_backward_reduce(spec, args, ith == nth - 1 && nth > 1 ? 0 : ith, nth);
}

static nrg_status wrong_sums(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int64_t *sums,
                             int ith, int nth)
{
    return nrg_channel_norm_backward_sums(spec, args, sums, ith == nth - 1 && nth > 1 ? 0 : ith, nth);
}

START_TEST(forgets_a_share)
{
    const char *said = verdict(with_backward(wrong_sets));
    if (!said)
        said = verdict(with_reduce(wrong_channels));
    if (said)
        ck_abort_msg("%s", said);
    layout.nth = 2;
    must_catch(with_backward(wrong_sets), "dx: row");
    layout.nth = 1;
    layout.nth_reduce = 3;
    must_catch(with_reduce(wrong_channels), "dw: row 0 element 4");
    tear_down();
    set_up_of(NRG_F32, NRG_NCHW, CHANNEL_BATCH);
    layout.in_phases = 1;
    layout.nth = 2;
    must_catch(with_sums(wrong_sums), "status 17"); /* of sums that nobody wrote */
}
END_TEST

static nrg_status bad_in_place(const nrg_channel_norm_spec *spec, const nrg_channel_norm_backward_args *args, int ith, int nth)
{
    /* as if something were read again after it has been written over */
    nrg_status status = nrg_channel_norm_backward(spec, args, ith, nth);
    const int in_place =
        args->dx == args->d_o || args->dx == args->x || args->dx == args->y || args->dy == args->d_o || args->dy == args->y;
    return in_place ? nrg_channel_norm_backward(spec, args, ith, nth) : status;
}

START_TEST(reads_what_it_wrote)
{
    static const enum channel_backward_operand dx[] = {CBOP_D_O, CBOP_X, CBOP_Y}, dy[] = {CBOP_D_O, CBOP_Y};
    const char *said = verdict(with_backward(bad_in_place));
    if (said)
        ck_abort_msg("%s", said);
    for (size_t i = 0; i < 3; i++) {
        layout.over[0] = dx[i];
        must_catch(with_backward(bad_in_place), "dx: row");
    }
    layout.over[0] = CBOP_DX;
    for (size_t i = 0; i < 2; i++) {
        layout.over[1] = dy[i];
        must_catch(with_backward(bad_in_place), "dx: row");
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("the backward channel harness catches wrong kernels");
    TCase *tests = test_case(suite, "wrong kernels");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, right_kernel_passes, 0, 2 * CHANNEL_KINDS);
    tcase_add_loop_test(tests, one_bit, 0, 6);
    tcase_add_test(tests, unwritten_element);
    tcase_add_test(tests, sums_that_begin_with_something);
    tcase_add_test(tests, refused_call);
    if (fence_readable())
        printf("SKIP leaves_buffers_at_the_end: the page after a buffer is readable (NRG_TEST_READABLE_FENCE); 1 test skipped\n");
    else
        tcase_add_test(tests, leaves_buffers_at_the_end);
    tcase_add_test(tests, leaves_buffers_at_the_start);
    tcase_add_test(tests, writes_beside_a_buffer);
    tcase_add_test(tests, writes_an_input);
    tcase_add_test(tests, writes_in_padding);
    tcase_add_test(tests, forgets_a_share);
    tcase_add_test(tests, reads_what_it_wrote);
    return test_run(suite);
}
