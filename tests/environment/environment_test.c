/* Calls in a thread that flushes subnormals or does not round to nearest: what docs/reproducibility.md says of them. The cases
 * are those of nrg check, so that an op which is added is looked at as well.
 *
 * Whatever the data, a call is accepted, ends, touches nothing that is not its own, and leaves the control word as it was. And:
 *
 * - Where operands and results are flushed, as -ffast-math makes it, every path has the bits of the scalar one, but for what a
 *   ReLU makes of subnormals.
 * - Flushed or not, ordinary numbers have the bits that they usually have, but for results below 2^-100; and where there are
 *   subnormals among them, those that they have with them, or with zeros in their place.
 * - Rounded otherwise, ordinary numbers give what they usually give, to within ROOM; blocks of bytes, to a step and a half.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/control.h"
#include "../harness/element.h"
#include "../harness/support.h"
#include "trial.h"

#define TINY 0x1p-100

/* ---- flushed ---- */

typedef int is_wanted(const trial *t, int type, size_t at);

static uint64_t element_of(const trial *t, trial_copy copy, int type, size_t at)
{
    return sweep_load(type, t->memory[copy] + at);
}

/* The same element in two copies, any NaN equal to any other; or both below `tiny`. */
static int are_alike(const trial *t, trial_copy a, trial_copy b, int type, size_t at, double tiny)
{
    const uint64_t x = element_of(t, a, type, at), y = element_of(t, b, type, at);
    if (x == y || (sweep_is_nan(type, t->memory[a] + at) && sweep_is_nan(type, t->memory[b] + at)))
        return 1;
    return trial_is_number(type) && fabs(trial_number(type, x)) < tiny && fabs(trial_number(type, y)) < tiny;
}

static int is_usual(const trial *t, int type, size_t at) { return are_alike(t, TRIAL_RESULT, TRIAL_USUAL, type, at, TINY); }

/* Exact sums, integers, have digits below all that counts. */
static int is_usual_or_of_zeros(const trial *t, int type, size_t at)
{
    return type == SWEEP_I64 || is_usual(t, type, at) || are_alike(t, TRIAL_RESULT, TRIAL_USUAL_ZEROS, type, at, TINY);
}

/* The maximum of AVX makes 0 of a subnormal that is flushed; a comparison, elsewhere, leaves it as it is. Only ReLU shows it. */
static double kept_below(const trial *t)
{
    return strcmp(sweep_kernel_op(t->c.kernel), "activation") == 0 && strstr(t->text, " relu") ? 0x1p-126 : 0;
}

static int is_scalar(const trial *t, int type, size_t at)
{
    return are_alike(t, TRIAL_RESULT, TRIAL_SCALAR, type, at, kept_below(t));
}

static void check(const trial *t, is_wanted *wanted, trial_copy expected)
{
    for (int slot = SWEEP_FIRST_OUTPUT; slot < SWEEP_FIRST_SCRATCH; slot++) {
        const sweep_operand *o = &t->c.operands[slot];
        TRIAL_EACH(o, at)
        if (!wanted(t, o->type, at))
            ck_abort_msg("%s: %s[%zu][%zu] is 0x%llx, and not 0x%llx", test_note, sweep_operand_name(&t->c, slot), row_, i_,
                         (unsigned long long)element_of(t, TRIAL_RESULT, o->type, at),
                         (unsigned long long)element_of(t, expected, o->type, at));
    }
}

/* Where results alone are flushed, a product with a subnormal may be 0 in one row and not in another. A sum of slopes that jump
 * at 0 is neither of the two then, nor is what 1/√var makes of such numbers where they are the variance, too. */
static int takes_either_way(const trial *t, const environment *in)
{
    return in->flushes_results && !in->flushes_operands &&
           (strstr(t->text, " relu") || strstr(t->text, " leaky") || strstr(t->text, " elu") || strstr(t->text, "eps 0,"));
}

/* ---- rounded otherwise ---- */

/* In units of f32's last place at the operand's largest number, or at 1. An activation reduces its argument by the next power of
 * two instead of the nearest one. Terms near 1 may cancel, and 1/√eps then multiplies the difference if a variance is 0.
 * environment_test --report prints the largest of all cases: 653, of activations 138, of their gradients 174. */
#define ROOM 8192

/* An operand's largest finite number, or 1. */
static double largest_of(const trial *t, const sweep_operand *o)
{
    double largest = 1;
    TRIAL_EACH(o, at)
    {
        const double size = fabs(trial_number(o->type, element_of(t, TRIAL_USUAL, o->type, at)));
        largest = size > largest && size < INFINITY ? size : largest;
    }
    return largest;
}

/* What is too large for its type may be its largest number instead, and the other way round. */
static int overflows_as_well(double a, double b, int type)
{
    const double most = type == SWEEP_F64 ? DBL_MAX : (double)element_max((nrg_dtype)type);
    return signbit(a) == signbit(b) && fabs(a) > most / 2 && fabs(b) > most / 2;
}

/* So many units more than eight of the operand's type, or of the case's: an intermediate result may have been rounded to it, too.
 * NEON converts to f16 as the thread rounds; a sum of 16 that is a unit off is more units of what a norm makes of it.
 */
static double distance(const trial *t, const sweep_operand *o, size_t at, double largest)
{
    const double was = trial_number(o->type, element_of(t, TRIAL_USUAL, o->type, at));
    const double is = trial_number(o->type, element_of(t, TRIAL_RESULT, o->type, at));
    const nrg_dtype coarse = o->type == NRG_F16 || o->type == NRG_BF16 ? (nrg_dtype)o->type : sweep_kernel_dtype(t->c.kernel);
    if (isnan(was) && isnan(is))
        return 0;
    if (isinf(was) || isinf(is))
        return overflows_as_well(was, is, o->type) ? 0 : INFINITY;
    const double beyond = fabs(is - was) - 8 * element_ulp(largest, coarse);
    return isnan(beyond) ? INFINITY : fmax(beyond, 0) / element_ulp(largest, NRG_F32);
}

/* Bytes, and rows of a cache that are blocks of them, are looked at below. */
static int is_quantized(const trial *t) { return strstr(t->text, "q8_0") != NULL; }

/* A part of a row of softmax has a base next to its largest number, and may have the next one: then its sum and what it is to be
 * divided by are twice or half of what they were. The sum that cross-entropy saves is one, too. A recurrent encoding feeds its
 * steps back, and may be chaotic; its numbers are still from -1 to 1. */
static int is_free(const trial *t, int slot)
{
    return strcmp(sweep_kernel_op(t->c.kernel), "recurrent") == 0 || strstr(t->text, " part ") ||
           strcmp(sweep_operand_name(&t->c, slot), "others") == 0;
}

static double worst_of(const trial *t, int ends)
{
    double worst = 0;
    for (int slot = SWEEP_FIRST_OUTPUT; slot < SWEEP_FIRST_SCRATCH && !is_quantized(t); slot++) {
        const sweep_operand *o = &t->c.operands[slot];
        if (!trial_is_number(o->type))
            continue;
        const double largest = largest_of(t, o), room = is_free(t, slot) ? 2 * largest / element_ulp(largest, NRG_F32) : ROOM;
        TRIAL_EACH(o, at)
        {
            const double d = distance(t, o, at, largest);
            worst = d > worst && !is_free(t, slot) ? d : worst;
            if (ends && d > room)
                ck_abort_msg("%s: %s[%zu][%zu] is %a, and not %a: %g units at %a", test_note, sweep_operand_name(&t->c, slot),
                             row_, i_, trial_number(o->type, element_of(t, TRIAL_RESULT, o->type, at)),
                             trial_number(o->type, element_of(t, TRIAL_USUAL, o->type, at)), d, largest);
        }
    }
    return worst;
}

/* ---- all cases ---- */

static int report; /* all cases, and the worst of each kernel is printed instead of ending the test */
static double report_worst;

static void judge(trial *t, const environment *in, trial_data data)
{
    if (data == TRIAL_ANY && in->flushes_results && in->flushes_operands && !in->rounds)
        check(t, is_scalar, TRIAL_SCALAR);
    if (data == TRIAL_ORDINARY && !in->rounds)
        check(t, is_usual, TRIAL_USUAL);
    if (data == TRIAL_SUBNORMALS && !in->rounds && !takes_either_way(t, in))
        check(t, is_usual_or_of_zeros, TRIAL_USUAL);
    if (data == TRIAL_ORDINARY && in->rounds) {
        const double worst = worst_of(t, !report);
        report_worst = worst > report_worst ? worst : report_worst;
    }
}

static void try(trial *t, trial_data data, const environment *all, int count)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    snprintf(test_note, sizeof test_note, "usual, scalar: %.400s", t->text);
    if (data == TRIAL_SUBNORMALS) {
        trial_fill(t, TRIAL_ZEROS);
        trial_run(t, &t->plain, NRG_ISA_SCALAR, NULL, TRIAL_USUAL_ZEROS);
    }
    trial_fill(t, data);
    trial_run(t, &t->plain, NRG_ISA_SCALAR, NULL, TRIAL_USUAL);
    for (int e = 0; e < count; e++) {
        snprintf(test_note, sizeof test_note, "%s, scalar: %.400s", all[e].name, t->text);
        trial_run(t, &t->plain, NRG_ISA_SCALAR, &all[e], TRIAL_SCALAR);
        for (size_t i = 0; i < path_count; i++) {
            snprintf(test_note, sizeof test_note, "%s, %s: %.400s", all[e].name, nrg_isa_name(paths[i]), t->text);
            trial_run(t, &t->c, paths[i], &all[e], TRIAL_RESULT);
            judge(t, &all[e], data);
        }
    }
}

/* One case in so many, from the first that fits: odd, as the numbers of options that take turns are mostly even; and of at most
 * so many bytes. */
static uint64_t step_of(void) { return report ? 1 : test_tiny() ? 37 : test_small() ? 23 : 1; }
static size_t bytes_of(void) { return test_small() ? 1 << 13 : report ? 1 << 19 : 1 << 14; }

static void sweep(int kernel, trial_data data)
{
    trial t = {.room = 0};
    environment all[ENVIRONMENTS_MOST];
    const int count = environments(all);
    const uint64_t first = sweep_first(SWEEP_QUICK, kernel), end = sweep_first(SWEEP_QUICK, kernel + 1);
    uint64_t cases = 0;
    for (uint64_t n = first + (uint64_t)data; n < end; n += cases ? step_of() : 1)
        if (trial_make(&t, n, bytes_of())) {
            try(&t, data, all, count);
            cases++;
        }
    ck_assert_uint_gt(cases, 0);
    trial_free(&t);
    if (report)
        printf("%s_%s%s %.0f\n", sweep_kernel_op(kernel), nrg_dtype_name(sweep_kernel_dtype(kernel)), sweep_kernel_grade(kernel),
               report_worst);
}

START_TEST(any_data) { sweep(_i, TRIAL_ANY); }
END_TEST

START_TEST(ordinary_numbers) { sweep(_i, TRIAL_ORDINARY); }
END_TEST

START_TEST(subnormals_among_them) { sweep(_i, TRIAL_SUBNORMALS); }
END_TEST

/* ---- calls without a kernel ---- */

#if !defined(NRG_NO_SCORE_BIAS) && !defined(NRG_NO_ROPE)
enum { DISTANCES = 400, PAIRS = 64, HEADS = 20 };

typedef struct set_up {
    int buckets[DISTANCES];
    double frequencies[2 * PAIRS], magnitude;
    float slopes[HEADS];
} set_up;

static void set_up_in(set_up *to, const environment *in)
{
    const unsigned usual = control();
    nrg_rope_spec spec = nrg_rope_spec_init(2 * PAIRS, NRG_ROPE_NORMAL, 10000);
    spec.freq_scale = 0.25;
    spec.ext_factor = 1;
    spec.n_ctx_orig = 4096;
    set_control(usual | (in ? in->control : 0));
    for (int i = 0; i < DISTANCES; i++)
        to->buckets[i] = nrg_t5_bucket(i - DISTANCES / 2, i % 2, 32, 128);
    const nrg_status of_rope = nrg_rope_frequencies(&spec, to->frequencies, &to->magnitude);
    const nrg_status of_alibi = nrg_alibi_slopes(HEADS, 8, to->slopes);
    set_control(usual);
    ck_assert_int_eq(of_rope, NRG_OK);
    ck_assert_int_eq(of_alibi, NRG_OK);
}

/* Buckets are decided by integers wherever doubles leave any doubt. Frequencies are sums of two doubles, of which the second is
 * less than the first one's last place. */
START_TEST(what_is_set_up)
{
    environment all[ENVIRONMENTS_MOST];
    const int count = environments(all);
    set_up usual, got;
    set_up_in(&usual, NULL);
    for (int e = 0; e < count; e++) {
        set_up_in(&got, &all[e]);
        for (int i = 0; i < DISTANCES; i++)
            ck_assert_msg(got.buckets[i] == usual.buckets[i], "%s: bucket of %d", all[e].name, i - DISTANCES / 2);
        for (int i = 0; i < PAIRS; i++) {
            const double was = usual.frequencies[i], more = usual.frequencies[PAIRS + i], is = got.frequencies[i];
            ck_assert_msg(fabs((is - was) + (got.frequencies[PAIRS + i] - more)) <= 0x1p-80 * fabs(was),
                          "%s: pair %d: %a and not %a", all[e].name, i, is, was);
        }
        ck_assert_double_eq_tol(got.magnitude, usual.magnitude, 0x1p-50);
        for (int i = 0; i < HEADS; i++)
            ck_assert_msg(fabs((double)got.slopes[i] - (double)usual.slopes[i]) <= 0x1p-23 * (double)usual.slopes[i],
                          "%s: slope %d", all[e].name, i);
    }
}
END_TEST
#endif

/* ---- bytes ---- */

#ifndef NRG_NO_QUANTIZE
enum { ROWS = 8, DIM = 512, Q_ROOM = ROWS * (DIM / 32 * 34 + DIM), SCALES_ROOM = ROWS * DIM / 32 };

static void to_bytes_and_back(nrg_quant_format format, nrg_quant_rounding rounding, const float *x, float *back,
                              const environment *in)
{
    static unsigned char q[Q_ROOM];
    static float scales[SCALES_ROOM];
    const unsigned usual = control();
    float *const given = nrg_quant_has_scales(format) ? scales : NULL;
    nrg_quantize_args args = nrg_quantize_args_init(format, NRG_F32, ROWS, DIM, x, q, given);
    args.rounding = rounding;
    const nrg_dequantize_args of = nrg_dequantize_args_init(format, NRG_F32, ROWS, DIM, q, given, back);
    set_control(usual | (in ? in->control : 0));
    const nrg_status status = nrg_quantize(&args, 0, 1);
    set_control(usual);
    ck_assert_int_eq(status, NRG_OK);
    ck_assert_int_eq(nrg_dequantize(&of, 0, 1), NRG_OK);
}

/* A number becomes one of the two steps around it, and d one of its neighbours. Every block has a largest number of its own,
 * which the step from 127 to -128 would be seen of. */
static void quantize_in(const environment *in, nrg_isa isa, int format)
{
    static float x[ROWS * DIM], usual[ROWS * DIM], got[ROWS * DIM];
    uint64_t random = (uint64_t)format;
    for (size_t i = 0; i < ROWS * DIM; i++)
        x[i] = (float)(test_uniform(&random) * (i % 32 == 7 ? 2 : 1));
    for (int rounding = NRG_QUANT_ROUND_TO_EVEN; rounding <= NRG_QUANT_ROUND_AWAY; rounding++) {
        ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
        to_bytes_and_back((nrg_quant_format)format, (nrg_quant_rounding)rounding, x, usual, NULL);
        ck_assert_int_eq(nrg_isa_set(isa), NRG_OK);
        to_bytes_and_back((nrg_quant_format)format, (nrg_quant_rounding)rounding, x, got, in);
        for (size_t i = 0; i < ROWS * DIM; i++)
            ck_assert_msg(fabs((double)got[i] - (double)usual[i]) <= 1.5 * 2 / 127,
                          "%s, %s, format %d: element %zu is %a, and not %a", in->name, nrg_isa_name(isa), format, i,
                          (double)got[i], (double)usual[i]);
    }
}

START_TEST(blocks_of_bytes)
{
    environment all[ENVIRONMENTS_MOST];
    nrg_isa paths[NRG_ISA_COUNT];
    const int count = environments(all);
    const size_t path_count = test_paths(paths);
    for (int e = 0; e < count; e++)
        for (size_t i = 0; i < path_count; i++)
            for (int format = NRG_QUANT_Q8_0; format <= NRG_QUANT_INT8_128; format++)
                quantize_in(&all[e], paths[i], format);
}
END_TEST
#endif

int main(int argc, char **argv)
{
    const int left = test_arguments(argc, argv);
    report = left > 1 && strcmp(argv[1], "--report") == 0;
    Suite *suite = suite_create("environment: subnormals flushed, other roundings");
    TCase *all = test_case(suite, "cases");
    tcase_add_loop_test(all, ordinary_numbers, 0, sweep_kernels);
    if (report)
        return test_run(suite);
    tcase_add_loop_test(all, any_data, 0, sweep_kernels);
    tcase_add_loop_test(all, subnormals_among_them, 0, sweep_kernels);
#if !defined(NRG_NO_SCORE_BIAS) && !defined(NRG_NO_ROPE)
    tcase_add_test(all, what_is_set_up);
#endif
#ifndef NRG_NO_QUANTIZE
    tcase_add_test(all, blocks_of_bytes);
#endif
    return test_run(suite);
}
