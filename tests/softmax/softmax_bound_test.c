/* Holds softmax, log-softmax and cross-entropy to the bounds of docs/ops/softmax.md and docs/ops/cross_entropy.md: on ordinary
 * rows, on a row that was made, on climbs, and where results are exact (one visible key, one class). The ground truth is in
 * double, whose errors are 2^-20 of those that are searched for.
 *
 *     softmax_bound_test --report    the worst errors
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/climb.h"
#include "../harness/element.h"

enum { LONGEST = 5000, MOST = 1 << 16 };

/* Worst of o, of logarithms, of losses, of their gradients, in ulp. */
enum { OF_O, OF_LOG, OF_LOSS, OF_D, ERRORS };
static const char *const names[ERRORS] = {"o", "log", "loss", "its dx"};
static const double most[ERRORS] = {3.1, 3.9, 1.8, 3.1};
static double *worst;

static void note(int what, double error, size_t i)
{
    worst[what] = fmax(worst[what], error);
    if (!(error <= most[what]))
        ck_abort_msg("%s: an error of %.4f ulp for element or row %zu", names[what], error, i);
}

static double ulps(float got, double exact) { return fabs((double)got - exact) / element_ulp(exact, NRG_F32); }

/* ---- rows ---- */

enum kind { SD_1, SD_4, SD_10, UNIFORM, OF_BF16, KINDS };

static void draw(float *x, size_t n, enum kind kind, uint64_t *state)
{
    static const double scale[KINDS] = {1, 4, 10, 8, 4};
    for (size_t i = 0; i < n; i++) {
        const double u = ((double)test_draw(state, (size_t)1 << 31) + 0.5) / 0x1p31, v = test_uniform(state);
        x[i] = (float)(scale[kind] * (kind == UNIFORM ? v : sqrt(-2 * log(u)) * cos(3.14159265358979323846 * v)));
        if (kind == OF_BF16)
            x[i] = element_round(x[i], NRG_BF16);
    }
}

/* Powers less the largest, their sum, and the sum without the first that is the largest. */
typedef struct truth {
    double e[MOST], sum, rest;
    float m;
} truth;

static void find_truth(truth *to, const float *t, size_t n)
{
    size_t top = 0;
    for (size_t i = 1; i < n; i++)
        top = t[i] > t[top] ? i : top;
    to->m = t[top];
    to->rest = 0;
    for (size_t i = 0; i < n; i++) {
        to->e[i] = exp((double)t[i] - (double)to->m);
        to->rest += i == top ? 0 : to->e[i];
    }
    to->sum = 1 + to->rest;
}

static void check_row(const truth *exact, const float *t, const float *o, const float *l, size_t n)
{
    const double log_sum = log1p(exact->rest);
    for (size_t i = 0; i < n; i++) {
        const double log_exact = ((double)t[i] - (double)exact->m) - log_sum;
        note(OF_O, ulps(o[i], exact->e[i] / exact->sum), i);
        if (log_exact >= (double)-FLT_MAX)
            note(OF_LOG, ulps(l[i], log_exact) - 0x1p-46 / element_ulp(log_exact, NRG_F32), i);
        ck_assert_msg(l[i] <= (log_exact >= (double)-FLT_MAX ? 0 : -FLT_MAX), "log-softmax of key %zu is %a", i, (double)l[i]);
    }
}

static void softmax(const float *x, float *o, size_t rows, size_t keys, int log_)
{
    nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, 1, rows, keys, x, o);
    args.log = log_;
    ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
}

/* Loss and gradient of rows of f32 against the truth. */
static void check_losses(const float *x, const int32_t *ids, size_t rows, size_t classes, float d_loss)
{
    static truth exact;
    float *loss = test_allocate(rows, sizeof *loss), *m = test_allocate(rows, sizeof *m), *up = test_allocate(rows, sizeof *up),
          *dx = test_allocate(rows * classes, sizeof *dx);
    double *others = test_allocate(rows, sizeof *others);
    nrg_cross_entropy_args args = nrg_cross_entropy_args_init(NRG_F32, rows, classes, x, ids, loss, m, others);
    ck_assert_int_eq(nrg_cross_entropy_forward(&args, 0, 1), NRG_OK);
    args = nrg_cross_entropy_args_init(NRG_F32, rows, classes, x, ids, NULL, NULL, NULL);
    args.m_in = m;
    args.others_in = others;
    args.d_loss = up;
    args.dx = dx;
    for (size_t row = 0; row < rows; row++)
        up[row] = d_loss;
    ck_assert_int_eq(nrg_cross_entropy_backward(&args, 0, 1), NRG_OK);
    for (size_t row = 0; row < rows; row++) {
        const float *t = x + row * classes, *d = dx + row * classes;
        const size_t own = (size_t)ids[row];
        double rest = 0;
        find_truth(&exact, t, classes);
        for (size_t i = 0; i < classes; i++)
            rest += i == own ? 0 : exact.e[i];
        ck_assert_msg(loss[row] >= 0, "the loss of row %zu is %a", row, (double)loss[row]);
        note(OF_LOSS,
             ulps(loss[row],
                  t[own] < exact.m ? ((double)exact.m - (double)t[own]) + log1p(exact.rest) : log1p(rest / exact.e[own])),
             row);
        for (size_t i = 0; i < classes; i++)
            note(OF_D, ulps(d[i], (i == own ? -rest : exact.e[i]) / exact.sum * (double)d_loss), i);
    }
    free(loss);
    free(m);
    free(up);
    free(dx);
    free(others);
}

START_TEST(ordinary_rows)
{
    enum { ALL = 40 * 1024 };
    static const size_t keys_of[] = {2, 17, 64, 100, 256, 1000, 1024, 4096, LONGEST};
    static float x[ALL], o[ALL], l[ALL];
    static truth exact;
    const enum kind kind = (enum kind)_i;
    uint64_t state = (uint64_t)_i + 100;
    for (size_t k = 0; k < sizeof keys_of / sizeof keys_of[0]; k++) {
        const size_t keys = keys_of[k],
                     rows = (test_small() ? ALL / 8 : ALL) / keys > 150 ? 150 : ALL / (test_small() ? 8 : 1) / keys;
        int32_t ids[150];
        draw(x, rows * keys, kind, &state);
        softmax(x, o, rows, keys, 0);
        softmax(x, l, rows, keys, 1);
        for (size_t row = 0; row < rows; row++) {
            const float *t = x + row * keys;
            find_truth(&exact, t, keys);
            check_row(&exact, t, o + row * keys, l + row * keys, keys);
            ids[row] = (int32_t)test_draw(&state, keys);
            for (size_t i = 0; i < keys && row % 2; i++)
                ids[row] = t[i] > t[ids[row]] ? (int32_t)i : ids[row];
        }
        check_losses(x, ids, rows, keys, 0.3f);
    }
}
END_TEST

/* 16 bits: the float within the same bound, rounded once. */
START_TEST(narrow_rows)
{
    enum { KEYS = 320, ROWS = 8 };
    static float x[ROWS * KEYS];
    static truth exact;
    uint64_t state = 3;
    for (int dtype = NRG_F16; dtype <= NRG_BF16; dtype++)
        for (int kind = 0; kind < KINDS; kind++) {
            const nrg_dtype d = (nrg_dtype)dtype;
            void *in = element_tensor(ROWS * KEYS, d), *out = element_tensor(ROWS * KEYS, d);
            draw(x, ROWS * KEYS, (enum kind)kind, &state);
            for (size_t i = 0; i < ROWS * KEYS; i++) {
                x[i] = element_round(x[i], d);
                element_set(in, i, d, x[i]);
            }
            const nrg_softmax_args args = nrg_softmax_args_init(d, 1, 1, ROWS, KEYS, in, out);
            ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
            float *o = element_floats(out, ROWS * KEYS, d);
            for (size_t row = 0; row < ROWS; row++) {
                find_truth(&exact, x + row * KEYS, KEYS);
                for (size_t i = 0; i < KEYS; i++) {
                    const double p = exact.e[i] / exact.sum, off = fabs((double)o[row * KEYS + i] - p);
                    ck_assert(off <= element_ulp(p, d) / 2 + 3.1 * element_ulp(p, NRG_F32));
                }
            }
            free(in);
            free(out);
            free(o);
        }
}
END_TEST

/* The row of which 0.3's first sum made 5.26 ulp. */
START_TEST(made_row)
{
    enum { KEYS = 256 };
    static float x[KEYS], o[KEYS], l[KEYS];
    static truth exact;
    for (size_t i = 0; i < KEYS; i++)
        x[i] = -80;
    x[0] = 0x1.72f55p+0f;
    x[16] = x[32] = x[64] = x[128] = x[192] = -0x1.e60bap+3f;
    softmax(x, o, 1, KEYS, 0);
    softmax(x, l, 1, KEYS, 1);
    find_truth(&exact, x, KEYS);
    check_row(&exact, x, o, l, KEYS);
}
END_TEST

/* A sink is one more key, whose result nobody asks for. */
START_TEST(rows_with_sinks)
{
    enum { HEADS = 5, KEYS = 2100 };
    static const float sinks[HEADS] = {-30, 0.3f, 9, 20, 70};
    static const size_t keys_of[] = {1, 100, 1024, KEYS};
    static float x[HEADS * KEYS], o[HEADS * KEYS], l[HEADS * KEYS], t[KEYS + 1];
    static truth exact;
    uint64_t state = 12;
    for (size_t k = 0; k < sizeof keys_of / sizeof keys_of[0]; k++) {
        const size_t keys = keys_of[k];
        draw(x, HEADS * keys, SD_4, &state);
        nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, HEADS, 1, keys, x, o);
        args.sinks = sinks;
        ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
        args.log = 1;
        args.o = l;
        ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
        for (size_t head = 0; head < HEADS; head++) {
            memcpy(t, x + head * keys, keys * sizeof *t);
            t[keys] = sinks[head];
            find_truth(&exact, t, keys + 1);
            check_row(&exact, t, o + head * keys, l + head * keys, keys);
        }
    }
}
END_TEST

/* A row in one part: powers and their sum beside its base, and the inverse. */
START_TEST(parts)
{
    enum { KEYS = 700 };
    static float x[KEYS], o[KEYS];
    uint64_t state = 13;
    for (int kind = 0; kind < KINDS; kind++) {
        float m, factor, m_out, inverse;
        double s, s_out, sum = 0;
        draw(x, KEYS, (enum kind)kind, &state);
        const nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, 1, 1, KEYS, x, o);
        const nrg_softmax_state part = nrg_softmax_state_init(&m, &s, &factor);
        ck_assert_int_eq(nrg_softmax_part(&args, &part, 0, 1), NRG_OK);
        const double base = rint((double)m / 0.69314718055994531) * 0.69314718055994531;
        for (size_t i = 0; i < KEYS; i++) {
            const double e = exp((double)x[i] - base);
            sum += e;
            ck_assert(fabs((double)o[i] / e - 1) <= 1.28 * 0x1p-24);
        }
        ck_assert(fabs(s / sum - 1) <= 1.28 * 0x1p-24);
        nrg_softmax_merge_args merge = nrg_softmax_merge_args_init(1, 1, &m, &s, &m_out, &s_out);
        merge.inverse = &inverse;
        ck_assert_int_eq(nrg_softmax_merge(&merge, 0, 1), NRG_OK);
        ck_assert(ulps(inverse, 1 / sum) <= 1.8);
    }
}
END_TEST

/* ---- exact results ---- */

/* One key is seen of many that are anything: behind a limit, a window, or a mask. */
START_TEST(one_key)
{
    static const size_t keys_of[] = {1, 5, 64, 100, 256, 1024, 1500, 2049, 4096, LONGEST};
    static float x[LONGEST], mask[LONGEST], o[LONGEST];
    uint64_t state = 8;
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t path = test_paths(paths); path-- > 0;)
        for (size_t k = 0; k < sizeof keys_of / sizeof keys_of[0]; k++)
            for (int way = 0; way < 3; way++)
                for (int times = 0; times < (test_small() ? 2 : 8); times++) {
                    const size_t keys = keys_of[k], seen = way ? test_draw(&state, keys) : 0;
                    ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
                    nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, 1, 1, keys, x, o);
                    args.causal = way < 2;
                    args.window = way == 1 ? 1 : SIZE_MAX;
                    args.first_position = (int64_t)seen;
                    args.mask = way == 2 ? mask : NULL;
                    args.log = times % 2;
                    for (size_t i = 0; i < keys; i++) {
                        x[i] = (float)(400 * test_uniform(&state));
                        mask[i] = i == seen ? 0 : -INFINITY;
                    }
                    if (times / 2 == 1)
                        x[seen] = ldexpf(x[seen], 60);
                    ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
                    for (size_t i = 0; i < keys; i++)
                        ck_assert_msg(o[i] == (i == seen  ? (args.log ? 0 : 1)
                                               : args.log ? -INFINITY
                                                          : 0),
                                      "key %zu of %zu, %zu is seen: %a of %a", i, keys, seen, (double)o[i], (double)x[i]);
                }
}
END_TEST

START_TEST(one_class)
{
    uint64_t state = 2;
    for (int n = 0; n < 60; n++) {
        const float x = n == 1 ? FLT_MAX : n == 2 ? -FLT_MAX : ldexpf((float)test_uniform(&state), n % 2 ? 10 : 2 * n);
        const int32_t id = 0;
        float loss, m, dx = 1;
        const float d_loss = -3;
        double others;
        nrg_cross_entropy_args args = nrg_cross_entropy_args_init(NRG_F32, 1, 1, &x, &id, &loss, &m, &others);
        ck_assert_int_eq(nrg_cross_entropy_forward(&args, 0, 1), NRG_OK);
        ck_assert(loss == 0 && m == x && others == 0);
        args = nrg_cross_entropy_args_init(NRG_F32, 1, 1, &x, &id, NULL, NULL, NULL);
        args.m_in = &m;
        args.others_in = &others;
        args.d_loss = &d_loss;
        args.dx = &dx;
        ck_assert_int_eq(nrg_cross_entropy_backward(&args, 0, 1), NRG_OK);
        ck_assert(dx == 0);
    }
}
END_TEST

/* ---- losses of logits of any size, and of classes far ahead ---- */

START_TEST(large_logits)
{
    enum { CLASSES = 70, ROWS = 6 };
    static const float bases[] = {300, 0x1p20f, 0x1p34f, 0x1p42f, 0x1p50f, -0x1p50f, 0x1p100f, 0x1.fffff0p127f, -0x1p127f};
    static float x[ROWS * CLASSES], o[ROWS * CLASSES], l[ROWS * CLASSES];
    static truth exact;
    uint64_t state = 4;
    for (size_t n = 0; n < sizeof bases / sizeof bases[0]; n++)
        for (size_t classes = 2; classes <= CLASSES; classes += 17) {
            int32_t ids[ROWS];
            for (size_t i = 0; i < ROWS * classes; i++)
                x[i] = bases[n] + (float)test_draw(&state, 3) * (float)element_ulp((double)bases[n], NRG_F32);
            for (size_t row = 0; row < ROWS; row++) {
                ids[row] = (int32_t)test_draw(&state, classes);
                x[row * classes + test_draw(&state, classes)] = row % 2 ? -bases[n] / 3 : bases[n];
            }
            check_losses(x, ids, ROWS, classes, 1);
            softmax(x, o, ROWS, classes, 0);
            softmax(x, l, ROWS, classes, 1);
            for (size_t row = 0; row < ROWS; row++) {
                find_truth(&exact, x + row * classes, classes);
                check_row(&exact, x + row * classes, o + row * classes, l + row * classes, classes);
            }
        }
}
END_TEST

/* Of a model that is sure: losses are positive, and gradients keep their bits, however little is left for other classes. */
START_TEST(far_ahead)
{
    static const float ahead[] = {5, 12, 13, 20, 40, 44, 60, 80, 90, 100, 105, 200, 1e6f};
    static const size_t classes_of[] = {2, 64, 1000, 1024, 32000};
    static float x[32000];
    uint64_t state = 6;
    for (size_t n = 0; n < sizeof ahead / sizeof ahead[0]; n++)
        for (size_t k = 0; k < sizeof classes_of / sizeof classes_of[0] - (test_small() ? 1 : 0); k++) {
            const size_t classes = classes_of[k];
            const int32_t id = (int32_t)test_draw(&state, classes);
            draw(x, classes, SD_1, &state);
            x[id] = 4.5f + ahead[n];
            check_losses(x, &id, 1, classes, 1);
            const int32_t wrong = (id + 1) % (int32_t)classes;
            check_losses(x, &wrong, 1, classes, 1);
        }
}
END_TEST

/* ---- climbs ---- */

typedef struct attempt {
    float *x;
    size_t keys;
    float o[LONGEST];
    truth exact;
} attempt;

static double error_of(void *of)
{
    attempt *a = of;
    double error = 0;
    softmax(a->x, a->o, 1, a->keys, 0);
    find_truth(&a->exact, a->x, a->keys);
    for (size_t i = 0; i < a->keys; i++)
        error = fmax(error, ulps(a->o[i], a->exact.e[i] / a->exact.sum));
    return error;
}

START_TEST(climbs)
{
    static const size_t keys_of[] = {2, 3, 64, 256};
    static attempt a;
    for (int start = 0; start < CLIMB_STARTS; start++) {
        climb c = {.error = error_of, .of = &a};
        uint64_t state = climb_seed((uint64_t)(start * 10 + _i));
        a.keys = keys_of[_i];
        a.x = climb_add(&c, "x", 1, a.keys, (enum climb_start)start, &state);
        c.operands[0].most = 6;
        for (size_t i = 0; i < a.keys; i++)
            a.x[i] = fmaxf(fminf(4 * a.x[i], 64), -64);
        const climb_bounds bounds = {0.7, most[OF_O], most[OF_O]};
        const double error = climb_run(&c, state, climb_steps(_i < 2 ? 60000 : 4000));
        const char *wrong = climb_judge(&c, "o", (enum climb_start)start, error, &bounds);
        worst[OF_O] = fmax(worst[OF_O], error);
        free(a.x);
        if (wrong)
            ck_abort_msg("%s", wrong);
    }
}
END_TEST

int main(int argc, char **argv)
{
    argc = test_arguments(argc, argv);
    test_note_crashes();
    worst = test_shared(ERRORS * sizeof *worst);
    Suite *suite = suite_create("softmax, bounds");
    TCase *all = test_case(suite, "bounds");
    tcase_add_loop_test(all, ordinary_rows, 0, KINDS);
    tcase_add_test(all, narrow_rows);
    tcase_add_test(all, made_row);
    tcase_add_test(all, rows_with_sinks);
    tcase_add_test(all, parts);
    tcase_add_test(all, one_key);
    tcase_add_test(all, one_class);
    tcase_add_test(all, large_logits);
    tcase_add_test(all, far_ahead);
    tcase_add_loop_test(all, climbs, 0, 4);
    const int status = test_run(suite);
    if (argc > 1 && strcmp(argv[1], "--report") == 0)
        for (int i = 0; i < ERRORS; i++)
            printf("%s: %.3f ulp, at most %.1f\n", names[i], worst[i], most[i]);
    return status;
}
