/* The harness can fail: kernels that are wrong in one way each, and what the harness says about them. Without this a comparison
 * that compares nothing would look like a perfect library.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "../norm/norm_harness.h"

/* A problem with everything in it: 5 rows of 19, so that no row ends at a vector's end. */
static norm_problem problem;
static norm_result expected, got;
static norm_layout layout;
enum { DIM = 19, ROWS = 5 };

static void set_up_dtype(nrg_dtype dtype)
{
    static const enum row_kind kinds[] = {ROW_NORMAL};
    norm_options options;
    memset(&options, 0, sizeof options);
    options.dtype = dtype;
    options.residual = RESIDUAL_BEFORE;
    options.w = options.b = options.centred = 1;
    norm_problem_make(&problem, &options, DIM, ROWS, kinds, 1, 20); /* a seed without NaN among the weights */
    norm_result_make(&expected, &problem);
    norm_result_make(&got, &problem);
    layout = norm_layout_plain(&problem);
    const char *failure = norm_run(nrg_norm_forward, &problem, &layout, &expected);
    if (failure)
        ck_abort_msg("%s", failure);
    for (size_t i = 0; i < ROWS * DIM; i++)
        ck_assert_msg(element_get(expected.o, i, dtype) == element_get(expected.o, i, dtype), "choose a seed without NaN");
}

static void set_up(void) { set_up_dtype(NRG_F32); }

static void tear_down(void)
{
    norm_problem_free(&problem);
    norm_result_free(&expected);
    norm_result_free(&got);
}

/* What the harness finds wrong with a kernel, or NULL. */
static const char *verdict(norm_kernel *kernel)
{
    const char *failure = norm_run(kernel, &problem, &layout, &got);
    return failure ? failure : norm_compare(&problem, &layout, &expected, &got);
}

static void must_catch(norm_kernel *kernel, const char *words)
{
    const char *said = verdict(kernel);
    if (!said)
        ck_abort_msg("a wrong kernel passed (looked for: %s)", words);
    if (!strstr(said, words))
        ck_abort_msg("the harness said \"%s\" and not \"%s\"", said, words);
}

static void run_crashing(const void *data)
{
    norm_kernel *const *kernel = data;
    verdict(*kernel);
}

static void must_crash(norm_kernel *kernel) { test_must_crash(run_crashing, &kernel); }

static nrg_status right(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    return nrg_norm_forward(spec, args, ith, nth);
}

START_TEST(right_kernel_passes)
{
    for (uint64_t seed = 0; seed < 500; seed++) {
        layout = norm_layout_vary(&problem, seed);
        const char *said = verdict(right);
        if (said)
            ck_abort_msg("%s; %s", said, norm_layout_text(&layout));
    }
}
END_TEST

/* One bit of one element of one output. */
static void *(*spoiled)(const nrg_norm_args *args);
static size_t spoiled_byte;

static void *spoil_o(const nrg_norm_args *args) { return args->o; }
static void *spoil_r(const nrg_norm_args *args) { return args->r; }
static void *spoil_mean(const nrg_norm_args *args) { return args->mean; }
static void *spoil_rstd(const nrg_norm_args *args) { return args->rstd; }

static nrg_status one_bit_off(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    nrg_status status = nrg_norm_forward(spec, args, ith, nth);
    unsigned char *bytes = spoiled(args);
    bytes[spoiled_byte] ^= 1;
    return status;
}

START_TEST(one_bit)
{
    static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};
    tear_down();
    set_up_dtype(dtypes[_i]);
    size_t element = nrg_dtype_size(dtypes[_i]);
    spoiled = spoil_o;
    for (size_t i = 0; i < ROWS * DIM; i++) {
        spoiled_byte = i * element;
        must_catch(one_bit_off, "o: row");
    }
    spoiled = spoil_r;
    for (size_t i = 0; i < ROWS * DIM; i++) {
        spoiled_byte = i * element;
        must_catch(one_bit_off, "r: row");
    }
    for (size_t i = 0; i < ROWS; i++) {
        spoiled_byte = i * sizeof(float);
        spoiled = spoil_mean;
        must_catch(one_bit_off, "mean: row");
        spoiled = spoil_rstd;
        must_catch(one_bit_off, "rstd: row");
    }
}
END_TEST

/* One element nobody writes. */
static nrg_status lazy(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    float *o = args->o, kept = o[ROWS * DIM - 1];
    nrg_status status = nrg_norm_forward(spec, args, ith, nth);
    o[ROWS * DIM - 1] = kept;
    return status;
}

START_TEST(unwritten_element) { must_catch(lazy, "o: row 4 element 18"); }
END_TEST

START_TEST(unwritten_nan)
{
    /* a NaN equals any NaN, so what was there before must not look like one */
    element_set(problem.x, ROWS * DIM - 1, NRG_F32, (float)INFINITY);
    const char *failure = norm_run(nrg_norm_forward, &problem, &layout, &expected);
    if (failure)
        ck_abort_msg("%s", failure);
    ck_assert_msg(element_get(expected.o, ROWS * DIM - 1, NRG_F32) != element_get(expected.o, ROWS * DIM - 1, NRG_F32), "no NaN");
    must_catch(lazy, "o: row 4 element 18");
}
END_TEST

static nrg_status refuses(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    (void)spec, (void)args, (void)ith, (void)nth;
    return NRG_ERR_OVERLAP;
}

START_TEST(refused_call) { must_catch(refuses, "status 7"); }
END_TEST

/* Reads and writes beside a buffer. `reach` counts elements from the operand's end, or before its start where negative. */
static const void *(*reached)(const nrg_norm_args *args);
static int reach;

static const void *reach_x(const nrg_norm_args *args) { return args->x; }
static const void *reach_y(const nrg_norm_args *args) { return args->y; }
static const void *reach_o(const nrg_norm_args *args) { return args->o; }
static const void *reach_r(const nrg_norm_args *args) { return args->r; }

static const char *address(const nrg_norm_spec *spec, const nrg_norm_args *args, size_t elements)
{
    size_t element = nrg_dtype_size(spec->dtype);
    const char *start = reached(args);
    return reach < 0 ? start - element : start + elements * element;
}

static nrg_status over_read(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    volatile char byte = *(const volatile char *)address(spec, args, ROWS * DIM);
    (void)byte;
    return nrg_norm_forward(spec, args, ith, nth);
}

static nrg_status over_read_w(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    volatile char byte = ((const volatile char *)args->w)[reach < 0 ? -1 : (int)(DIM * sizeof(float))];
    (void)byte;
    return nrg_norm_forward(spec, args, ith, nth);
}

static nrg_status over_write(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    nrg_status status = nrg_norm_forward(spec, args, ith, nth);
    char *byte = (char *)(uintptr_t)address(spec, args, ROWS * DIM);
    *byte ^= 1;
    return status;
}

static void all_sides(enum fence_side side, size_t gap)
{
    for (int i = 0; i < OPERANDS; i++) {
        layout.place[i].side = side;
        layout.place[i].gap = gap;
    }
}

START_TEST(reads_past_the_end)
{
    static const void *(*const operands[])(const nrg_norm_args *) = {reach_x, reach_y, reach_o, reach_r};
    reach = 1;
    all_sides(AT_END, 0);
    for (size_t i = 0; i < 4; i++) {
        reached = operands[i];
        must_crash(over_read);
        must_crash(over_write);
    }
    must_crash(over_read_w);
}
END_TEST

START_TEST(reads_before_the_start)
{
    static const void *(*const operands[])(const nrg_norm_args *) = {reach_x, reach_y, reach_o, reach_r};
    reach = -1;
    all_sides(AT_START, 0);
    for (size_t i = 0; i < 4; i++) {
        reached = operands[i];
        must_crash(over_read);
        must_crash(over_write);
    }
    must_crash(over_read_w);
}
END_TEST

START_TEST(writes_beside_a_buffer)
{
    static const void *(*const operands[])(const nrg_norm_args *) = {reach_o, reach_r, reach_x, reach_y};
    for (int side = AT_END; side <= AT_START; side++)
        for (size_t i = 0; i < 4; i++)
            for (reach = -1; reach <= 1; reach += 2) {
                reached = operands[i];
                all_sides((enum fence_side)side, 3);
                must_catch(over_write, "which is no output's");
            }
}
END_TEST

/* Writes the byte after the first row: of o's and of r's padding, of an input's. */
static nrg_status writes_padding(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    nrg_status status = nrg_norm_forward(spec, args, ith, nth);
    char *row = (char *)(uintptr_t)reached(args);
    row[spec->dim * nrg_dtype_size(spec->dtype)] ^= 1;
    return status;
}

START_TEST(writes_in_padding)
{
    static const void *(*const operands[])(const nrg_norm_args *) = {reach_o, reach_r, reach_x, reach_y};
    for (size_t i = 0; i < OPERANDS; i++)
        layout.place[i].pad = 1;
    for (size_t i = 0; i < 4; i++) {
        reached = operands[i];
        layout.interleaved = 0;
        must_catch(writes_padding, "which is no output's");
        layout.interleaved = 1;
        must_catch(writes_padding, "which is no output's");
    }
}
END_TEST

static int same_value;

static nrg_status writes_input(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    nrg_status status = nrg_norm_forward(spec, args, ith, nth);
    volatile char *byte = (volatile char *)(uintptr_t)reached(args) + 7;
    *byte = *byte ^ (same_value ? 0 : 1);
    return status;
}

static const void *reach_w(const nrg_norm_args *args) { return args->w; }
static const void *reach_b(const nrg_norm_args *args) { return args->b; }

START_TEST(writes_an_input)
{
    static const void *(*const operands[])(const nrg_norm_args *) = {reach_x, reach_y, reach_w, reach_b};
    for (size_t i = 0; i < 4; i++) {
        reached = operands[i];
        layout.read_only = same_value = 0;
        must_catch(writes_input, "which is no output's");
        layout.read_only = same_value = 1;
        must_crash(writes_input);
    }
}
END_TEST

/* Does the first share instead of the last one: only a call in several shares shows it. */
static nrg_status wrong_share(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    return nrg_norm_forward(spec, args, ith == nth - 1 && nth > 1 ? 0 : ith, nth);
}

START_TEST(forgets_a_share)
{
    const char *said = verdict(wrong_share);
    if (said)
        ck_abort_msg("%s", said);
    layout.nth = 3;
    must_catch(wrong_share, "row 4 element 0");
}
END_TEST

static nrg_status bad_in_place(const nrg_norm_spec *spec, const nrg_norm_args *args, int ith, int nth)
{
    /* as if the sums were taken again after the row had been written */
    nrg_status status = nrg_norm_forward(spec, args, ith, nth);
    return args->o == args->x ? nrg_norm_forward(spec, args, ith, nth) : status;
}

START_TEST(reads_what_it_wrote)
{
    const char *said = verdict(bad_in_place);
    if (said)
        ck_abort_msg("%s", said);
    layout.alias = O_IS_X;
    must_catch(bad_in_place, "row 0 element 0");
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("the harness catches wrong kernels");
    TCase *tests = test_case(suite, "wrong kernels");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, right_kernel_passes);
    tcase_add_loop_test(tests, one_bit, 0, 3);
    tcase_add_test(tests, unwritten_element);
    tcase_add_test(tests, unwritten_nan);
    tcase_add_test(tests, refused_call);
    if (fence_readable())
        printf("SKIP reads_past_the_end: the page after a buffer is readable (NRG_TEST_READABLE_FENCE); 1 test skipped\n");
    else
        tcase_add_test(tests, reads_past_the_end);
    tcase_add_test(tests, reads_before_the_start);
    tcase_add_test(tests, writes_beside_a_buffer);
    tcase_add_test(tests, writes_in_padding);
    tcase_add_test(tests, writes_an_input);
    tcase_add_test(tests, forgets_a_share);
    tcase_add_test(tests, reads_what_it_wrote);
    return test_run(suite);
}
