/* The backward harness can fail: kernels that are wrong in one way each, and what the harness says about them (harness_test.c
 * does this for the forward pass).
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "element.h"
#include "../norm/norm_backward_harness.h"

/* A problem with everything in it: 37 rows of 19, two blocks of rows, the last of a few. */
static norm_backward_problem problem;
static norm_backward_result expected, got;
static norm_backward_layout layout;
enum { DIM = 19, ROWS = 37 };

static void set_up_dtype(nrg_dtype dtype)
{
    static const enum row_kind kinds[] = {ROW_NORMAL};
    norm_options options;
    memset(&options, 0, sizeof options);
    options.dtype = dtype;
    options.residual = RESIDUAL_BEFORE;
    options.w = options.b = options.centred = 1;
    options.gate = NRG_GATE_POST;
    for (uint64_t seed = 0;; seed++) {
        norm_backward_problem_make(&problem, &options, DIM, ROWS, kinds, 1, seed);
        norm_backward_result_make(&expected, &problem);
        norm_backward_result_make(&got, &problem);
        layout = norm_backward_layout_plain(&problem);
        const char *failure = norm_backward_run(&norm_backward_library, &problem, &layout, &expected);
        if (failure)
            ck_abort_msg("%s", failure);
        int nans = 0;
        for (size_t i = 0; i < ROWS * DIM; i++) {
            float sum = element_get(expected.dx, i, dtype) + element_get(expected.dz, i, dtype) + expected.dw[i % DIM];
            nans += sum != sum;
        }
        if (!nans && problem.dr_in && !problem.accumulate)
            return;
        norm_backward_problem_free(&problem);
        norm_backward_result_free(&expected);
        norm_backward_result_free(&got);
    }
}

static void set_up(void) { set_up_dtype(NRG_F32); }

static void tear_down(void)
{
    norm_backward_problem_free(&problem);
    norm_backward_result_free(&expected);
    norm_backward_result_free(&got);
}

/* What the harness finds wrong with a kernel, or NULL. */
static const char *verdict(norm_backward_phase *rows, norm_backward_phase *reduce)
{
    const norm_backward_kernel kernel = {rows, reduce};
    const char *failure = norm_backward_run(&kernel, &problem, &layout, &got);
    return failure ? failure : norm_backward_compare(&problem, &layout, &expected, &got);
}

static void must_catch(norm_backward_phase *rows, norm_backward_phase *reduce, const char *words)
{
    const char *said = verdict(rows, reduce);
    if (!said)
        ck_abort_msg("a wrong kernel passed (looked for: %s)", words);
    if (!strstr(said, words))
        ck_abort_msg("the harness said \"%s\" and not \"%s\"", said, words);
}

static void run_crashing(const void *data)
{
    const norm_backward_kernel *kernel = data;
    verdict(kernel->rows, kernel->reduce);
}

static void must_crash(norm_backward_phase *rows, norm_backward_phase *reduce)
{
    const norm_backward_kernel kernel = {rows, reduce};
    test_must_crash(run_crashing, &kernel);
}

START_TEST(right_kernel_passes)
{
    for (uint64_t seed = 0; seed < 500; seed++) {
        layout = norm_backward_layout_vary(&problem, seed);
        const char *said = verdict(nrg_norm_backward, nrg_norm_backward_reduce);
        if (said)
            ck_abort_msg("%s; %s", said, norm_backward_layout_text(&layout));
    }
}
END_TEST

/* An operand of a call, by number, and how many elements it has from there. */
static unsigned char *operand_of(const nrg_norm_backward_args *a, int which)
{
    const void *const all[BOPERANDS] = {a->d_o,  a->dr_in, a->x,  a->y,  a->r,  a->z,  a->w,        a->b,
                                        a->mean, a->dx,    a->dy, a->dz, a->dw, a->db, a->workspace};
    return (unsigned char *)(uintptr_t)all[which];
}

static size_t bytes_of(const nrg_norm_spec *spec, const nrg_norm_backward_args *a, int which)
{
    if (which == BOP_WORKSPACE)
        return a->workspace_size;
    if (which == BOP_MEAN)
        return a->rows * sizeof(float);
    int vector = which == BOP_W || which == BOP_B || which >= BOP_DW;
    return (vector ? 1 : a->rows) * spec->dim * nrg_dtype_size(which >= BOP_DW ? NRG_F32 : spec->dtype);
}

static int target;     /* the operand that a wrong kernel spoils */
static size_t at_byte; /* of it */

static nrg_status one_bit_off(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    nrg_status status = nrg_norm_backward_reduce(spec, args, ith, nth);
    operand_of(args, target)[at_byte] ^= 1;
    return status;
}

START_TEST(one_bit)
{
    static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};
    static const char *const names[] = {"dx: row", "dy: row", "dz: row", "dw: row", "db: row"};
    tear_down();
    set_up_dtype(dtypes[_i]);
    for (target = BOP_DX; target <= BOP_DB; target++) {
        size_t element = target >= BOP_DW ? 4 : nrg_dtype_size(dtypes[_i]), count = target >= BOP_DW ? DIM : ROWS * DIM;
        for (size_t i = 0; i < count; i += target >= BOP_DW ? 1 : 7) {
            at_byte = i * element;
            must_catch(nrg_norm_backward, one_bit_off, names[target - BOP_DX]);
        }
    }
}
END_TEST

/* One element nobody writes. */
static nrg_status lazy_rows(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    unsigned char *last = operand_of(args, target) + bytes_of(spec, args, target) - 4, kept[4];
    memcpy(kept, last, 4);
    nrg_status status = nrg_norm_backward(spec, args, ith, nth);
    memcpy(last, kept, 4);
    return status;
}

static nrg_status lazy_reduce(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    unsigned char *last = operand_of(args, target) + bytes_of(spec, args, target) - 4, kept[4];
    memcpy(kept, last, 4);
    nrg_status status = nrg_norm_backward_reduce(spec, args, ith, nth);
    memcpy(last, kept, 4);
    return status;
}

START_TEST(unwritten_element)
{
    for (target = BOP_DX; target <= BOP_DZ; target++)
        must_catch(lazy_rows, nrg_norm_backward_reduce, "row 36 element 18");
    for (; target <= BOP_DB; target++)
        must_catch(nrg_norm_backward, lazy_reduce, "row 0 element 18");
    target = BOP_WORKSPACE; /* a partial sum that stays as it was */
    must_catch(lazy_rows, nrg_norm_backward_reduce, "db: row 0 element 18");
}
END_TEST

/* A block that adds to what the workspace held. */
static nrg_status dirty_rows(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    double before[DIM];
    memcpy(before, args->workspace, sizeof before);
    nrg_status status = nrg_norm_backward(spec, args, ith, nth);
    double *sums = args->workspace;
    for (size_t i = 0; i < DIM; i++)
        sums[i] += before[i];
    return status;
}

/* dw that is added to without being asked for. */
static nrg_status dirty_reduce(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    nrg_norm_backward_args adding = *args;
    adding.accumulate = 1;
    return nrg_norm_backward_reduce(spec, &adding, ith, nth);
}

START_TEST(sums_that_begin_with_something)
{
    must_catch(dirty_rows, nrg_norm_backward_reduce, "dw: row 0 element 0");
    must_catch(nrg_norm_backward, dirty_reduce, "dw: row 0 element 0");
}
END_TEST

static nrg_status refuses(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    (void)spec, (void)args, (void)ith, (void)nth;
    return NRG_ERR_OVERLAP;
}

START_TEST(refused_call)
{
    must_catch(refuses, nrg_norm_backward_reduce, "rows: status 7");
    must_catch(nrg_norm_backward, refuses, "reduce: status 7");
}
END_TEST

static int before_start, writes;

static nrg_status reaches_out(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    nrg_status status = nrg_norm_backward(spec, args, ith, nth);
    volatile unsigned char *byte = operand_of(args, target) + (before_start ? -1 : (ptrdiff_t)bytes_of(spec, args, target));
    unsigned char value = *byte;
    if (writes)
        *byte = value ^ 1;
    return status;
}

static void all_sides(enum fence_side side, size_t gap)
{
    for (int i = 0; i < BOPERANDS; i++) {
        layout.place[i].side = side;
        layout.place[i].gap = gap;
    }
}

/* Every operand there is, r in the place of x and y too. */
static void each_operand(void body(void))
{
    for (int r = 0; r < 2; r++)
        for (target = 0; target < BOPERANDS; target++) {
            layout.use_r = r;
            layout.want_mean = 1;
            if (r ? target != BOP_X && target != BOP_Y : target != BOP_R)
                body();
        }
}

static void crashes(void)
{
    for (writes = 0; writes < 2; writes++)
        must_crash(reaches_out, nrg_norm_backward_reduce);
}

START_TEST(leaves_buffers_at_the_end)
{
    before_start = 0;
    all_sides(AT_END, 0);
    each_operand(crashes);
}
END_TEST

START_TEST(leaves_buffers_at_the_start)
{
    before_start = 1;
    all_sides(AT_START, 0);
    each_operand(crashes);
}
END_TEST

static void caught(void)
{
    writes = 1;
    for (before_start = 0; before_start < 2; before_start++)
        must_catch(reaches_out, nrg_norm_backward_reduce, "which is no output's");
}

START_TEST(writes_beside_a_buffer)
{
    for (int side = AT_END; side <= AT_START; side++) {
        all_sides((enum fence_side)side, 3);
        each_operand(caught);
    }
    /* what the workspace is said to have beyond what is needed is not the call's either */
    all_sides(AT_START, 0);
    layout.spare = 24;
    target = BOP_WORKSPACE;
    before_start = 0;
    must_catch(reaches_out, nrg_norm_backward_reduce, "which is no output's");
}
END_TEST

static int same_value;

static nrg_status writes_input(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    nrg_status status = nrg_norm_backward(spec, args, ith, nth);
    volatile unsigned char *byte = operand_of(args, target) + 7;
    *byte = *byte ^ (same_value ? 0 : 1);
    return status;
}

static void input_caught(void)
{
    if (target >= BOP_DX)
        return;
    layout.read_only = same_value = 0;
    must_catch(writes_input, nrg_norm_backward_reduce, "which is no output's");
    layout.read_only = same_value = 1;
    must_crash(writes_input, nrg_norm_backward_reduce);
}

START_TEST(writes_an_input) { each_operand(input_caught); }
END_TEST

/* Writes the byte after the first row. */
static nrg_status writes_padding(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    nrg_status status = nrg_norm_backward(spec, args, ith, nth);
    operand_of(args, target)[spec->dim * nrg_dtype_size(spec->dtype)] ^= 1;
    return status;
}

static void padding_caught(void)
{
    if ((target >= BOP_W && target <= BOP_MEAN) || target >= BOP_DW)
        return;
    for (layout.interleaved = 0; layout.interleaved < 2; layout.interleaved++)
        must_catch(writes_padding, nrg_norm_backward_reduce, "which is no output's");
}

START_TEST(writes_in_padding)
{
    for (int i = 0; i < BOPERANDS; i++)
        layout.place[i].pad = 1;
    each_operand(padding_caught);
}
END_TEST

/* Does the first share instead of the last one, in a phase. */
static nrg_status wrong_rows(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    return nrg_norm_backward(spec, args, ith == nth - 1 && nth > 1 ? 0 : ith, nth);
}

static nrg_status wrong_columns(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    return nrg_norm_backward_reduce(spec, args, ith == nth - 1 && nth > 1 ? 0 : ith, nth);
}

START_TEST(forgets_a_share)
{
    const char *said = verdict(wrong_rows, wrong_columns);
    if (said)
        ck_abort_msg("%s", said);
    layout.nth = 2;
    must_catch(wrong_rows, nrg_norm_backward_reduce, "dx: row 32 element 0");
    layout.nth = 1;
    layout.nth_reduce = 3;
    must_catch(nrg_norm_backward, wrong_columns, "dw: row 0 element 13");
}
END_TEST

static nrg_status bad_in_place(const nrg_norm_spec *spec, const nrg_norm_backward_args *args, int ith, int nth)
{
    /* as if something were read again after it has been written over */
    nrg_status status = nrg_norm_backward(spec, args, ith, nth);
    int in_place = args->dx == args->d_o || args->dx == args->x || args->dx == args->dr_in || args->dx == args->r;
    in_place |= args->dy == args->y || args->dz == args->z;
    return in_place ? nrg_norm_backward(spec, args, ith, nth) : status;
}

START_TEST(reads_what_it_wrote)
{
    static const enum norm_backward_operand hosts[] = {BOP_D_O, BOP_DR_IN, BOP_X};
    const char *said = verdict(bad_in_place, nrg_norm_backward_reduce);
    if (said)
        ck_abort_msg("%s", said);
    for (size_t i = 0; i < 3; i++) {
        layout.over[0] = hosts[i];
        must_catch(bad_in_place, nrg_norm_backward_reduce, "dx: row");
    }
    layout.over[0] = BOP_DX;
    layout.over[1] = BOP_Y;
    must_catch(bad_in_place, nrg_norm_backward_reduce, "dx: row");
    layout.over[1] = BOP_DY;
    layout.over[2] = BOP_Z;
    layout.want[2] = 1;
    problem.forward.spec.activation = NRG_ACT_SILU; /* z is not read again for an identity */
    said = norm_backward_run(&norm_backward_library, &problem, &layout, &expected);
    if (said)
        ck_abort_msg("%s", said);
    must_catch(bad_in_place, nrg_norm_backward_reduce, "dx: row");
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("the backward harness catches wrong kernels");
    TCase *tests = test_case(suite, "wrong kernels");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, right_kernel_passes);
    tcase_add_loop_test(tests, one_bit, 0, 3);
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
