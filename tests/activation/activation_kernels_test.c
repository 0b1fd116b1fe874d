/* nrg_activation_forward and nrg_activation_backward, beside what bits_test does: all 16-bit inputs give what f32 gives, rounded;
 * shares are contiguous; and what is refused.
 *
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "../../src/job/activation.h"
#include "../harness/element.h"
#include "../harness/support.h"

enum { ACTIVATIONS = NRG_ACTIVATION_COUNT };

/* Forward, or backward where d_o is there. */
static void run(nrg_activation g, nrg_dtype dtype, size_t n, const void *x, const void *d_o, void *out, int ith, int nth)
{
    nrg_status status =
        d_o ? nrg_activation_backward(g, dtype, n, x, d_o, out, ith, nth) : nrg_activation_forward(g, dtype, n, x, out, ith, nth);
    if (status != NRG_OK)
        ck_abort_msg("%s: %s", test_note, nrg_status_string(status));
}

static void choose(nrg_isa isa) { ck_assert_int_eq(nrg_isa_set(isa), NRG_OK); }

/* ---- all 16-bit inputs: what scalar gives for the same floats in f32, rounded once ---- */

static void expect_equal(const void *got, const void *expected, size_t n, nrg_dtype dtype)
{
    if (memcmp(got, expected, n * nrg_dtype_size(dtype)) == 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (!element_equal(got, expected, i, dtype))
            ck_abort_msg("%s: element %zu is 0x%x and not 0x%x", test_note, i, element_bits(got, i, dtype),
                         element_bits(expected, i, dtype));
}

START_TEST(every_half)
{
    enum { N = 65536 };
    const nrg_activation g = (nrg_activation)(_i / 2);
    const nrg_dtype dtype = _i % 2 ? NRG_F16 : NRG_BF16;
    nrg_isa paths[NRG_ISA_COUNT];
    size_t path_count = test_paths(paths);
    static uint16_t x[N], d_o[N], out[N], expected[N];
    static float wide_x[N], wide_d_o[N], wide[N];
    for (size_t i = 0; i < N; i++) {
        x[i] = (uint16_t)i;
        element_set(d_o, i, dtype, (float)(test_mix(i) % 2000) / 500 - 2);
        wide_x[i] = element_get(x, i, dtype);
        wide_d_o[i] = element_get(d_o, i, dtype);
    }
    for (int backward = 0; backward < 2; backward++) {
        choose(NRG_ISA_SCALAR);
        run(g, NRG_F32, N, wide_x, backward ? wide_d_o : NULL, wide, 0, 1);
        for (size_t i = 0; i < N; i++)
            element_set(expected, i, dtype, wide[i]);
        for (size_t p = 0; p < path_count; p++) {
            snprintf(test_note, sizeof test_note, "%s, %s of %s, every %s", nrg_isa_name(paths[p]),
                     backward ? "backward" : "forward", nrg_activation_name(g), nrg_dtype_name(dtype));
            choose(paths[p]);
            run(g, dtype, N, x, backward ? d_o : NULL, out, 0, 1);
            expect_equal(out, expected, N, dtype);
        }
    }
}
END_TEST

/* Shares are contiguous, in order, and differ by one element at most. */
START_TEST(shares)
{
    float x[64], out[64];
    for (size_t n = 0; n <= 64; n++)
        for (int nth = 1; nth <= 7; nth++) {
            size_t next = 0;
            for (size_t i = 0; i < 64; i++)
                x[i] = 1;
            for (int ith = 0; ith < nth; ith++) {
                size_t count = 0;
                memset(out, 0, sizeof out);
                ck_assert_int_eq(nrg_activation_forward(NRG_ACT_IDENTITY, NRG_F32, n, x, out, ith, nth), NRG_OK);
                for (size_t i = 0; i < 64; i++)
                    if (out[i] != 0) {
                        ck_assert_uint_eq(i, next);
                        next++;
                        count++;
                    }
                ck_assert(count == n / (size_t)nth || count == n / (size_t)nth + 1);
            }
            ck_assert_uint_eq(next, n);
        }
}
END_TEST

/* ---- refused ---- */

enum { ROOM = 64, FIRST = 16, N = 8 };
static float memory[3][ROOM], before[3][ROOM];

static void set_memory(void)
{
    for (size_t t = 0; t < 3; t++)
        for (size_t i = 0; i < ROOM; i++)
            memory[t][i] = (float)(t + i);
    memcpy(before, memory, sizeof memory);
}

static void *at(int tensor, ptrdiff_t bytes) { return (char *)&memory[tensor][FIRST] + bytes; }

static void expect(nrg_status status, nrg_status got, int line)
{
    if (got != status)
        ck_abort_msg("line %d: status %d (%s) and not %d (%s)", line, (int)got, nrg_status_string(got), (int)status,
                     nrg_status_string(status));
    if (got != NRG_OK && memcmp(before, memory, sizeof memory) != 0)
        ck_abort_msg("line %d: a refused call wrote something", line);
    set_memory();
}

#define FORWARD(status, g, dtype, n, x, o, ith, nth) expect(status, nrg_activation_forward(g, dtype, n, x, o, ith, nth), __LINE__)
#define BACKWARD(status, g, dtype, n, x, d_o, dx, ith, nth)                                                                      \
    expect(status, nrg_activation_backward(g, dtype, n, x, d_o, dx, ith, nth), __LINE__)

START_TEST(bad_input)
{
    const nrg_activation silu = NRG_ACT_SILU;
    void *x = at(0, 0), *d_o = at(1, 0), *out = at(2, 0);
    set_memory();
    FORWARD(NRG_OK, silu, NRG_F32, N, x, out, 0, 1);
    BACKWARD(NRG_OK, silu, NRG_F32, N, x, d_o, out, 0, 1);

    FORWARD(NRG_ERR_ENUM, (nrg_activation)ACTIVATIONS, NRG_F32, N, x, out, 0, 1);
    FORWARD(NRG_ERR_ENUM, (nrg_activation)-1, NRG_F32, N, x, out, 0, 1);
    FORWARD(NRG_ERR_ENUM, (nrg_activation)ACTIVATIONS, NRG_F32, 0, NULL, NULL, 0, 1);
    FORWARD(NRG_ERR_ENUM, silu, NRG_DTYPE_SAME, N, x, out, 0, 1);
    FORWARD(NRG_ERR_ENUM, silu, (nrg_dtype)4, N, x, out, 0, 1);
    BACKWARD(NRG_ERR_ENUM, (nrg_activation)ACTIVATIONS, NRG_F32, N, x, d_o, out, 0, 1);
    BACKWARD(NRG_ERR_ENUM, silu, NRG_DTYPE_SAME, N, x, d_o, out, 0, 1);

    static const int threads[][2] = {{0, 0}, {1, 1}, {-1, 1}, {0, -1}, {INT_MIN, INT_MAX}, {5, 4}};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        FORWARD(NRG_ERR_THREAD, silu, NRG_F32, N, x, out, threads[i][0], threads[i][1]);
        BACKWARD(NRG_ERR_THREAD, silu, NRG_F32, N, x, d_o, out, threads[i][0], threads[i][1]);
    }
    FORWARD(NRG_OK, silu, NRG_F32, N, x, out, INT_MAX - 1, INT_MAX);

    FORWARD(NRG_ERR_NULL, silu, NRG_F32, N, NULL, out, 0, 1);
    FORWARD(NRG_ERR_NULL, silu, NRG_F32, N, x, NULL, 0, 1);
    FORWARD(NRG_OK, silu, NRG_F32, 0, NULL, NULL, 0, 1);
    BACKWARD(NRG_ERR_NULL, silu, NRG_F32, N, NULL, d_o, out, 0, 1);
    BACKWARD(NRG_ERR_NULL, silu, NRG_F32, N, x, NULL, out, 0, 1);
    BACKWARD(NRG_ERR_NULL, silu, NRG_F32, N, x, d_o, NULL, 0, 1);
    BACKWARD(NRG_OK, silu, NRG_F32, 0, NULL, NULL, NULL, 0, 1);

    FORWARD(NRG_ERR_ALIGNMENT, silu, NRG_F32, N, at(0, 2), out, 0, 1);
    FORWARD(NRG_ERR_ALIGNMENT, silu, NRG_F32, N, x, at(2, 1), 0, 1);
    FORWARD(NRG_ERR_ALIGNMENT, silu, NRG_BF16, N, x, at(2, 1), 0, 1);
    FORWARD(NRG_OK, silu, NRG_F16, N, at(0, 2), at(2, 2), 0, 1);
    BACKWARD(NRG_ERR_ALIGNMENT, silu, NRG_F32, N, x, at(1, 2), out, 0, 1);
    BACKWARD(NRG_ERR_ALIGNMENT, silu, NRG_F16, N, x, d_o, at(2, 1), 0, 1);

    FORWARD(NRG_ERR_OVERFLOW, silu, NRG_F32, SIZE_MAX, x, out, 0, 1);
    FORWARD(NRG_ERR_OVERFLOW, silu, NRG_F32, SIZE_MAX / 4, x, out, 0, 1);
    FORWARD(NRG_ERR_OVERFLOW, silu, NRG_BF16, SIZE_MAX / 2, x, out, 1, 2);
    BACKWARD(NRG_ERR_OVERFLOW, silu, NRG_F32, SIZE_MAX / 4, x, d_o, out, 0, 1);

    FORWARD(NRG_OK, silu, NRG_F32, N, x, x, 0, 1);
    FORWARD(NRG_OK, silu, NRG_F32, N, x, at(0, N * 4), 0, 1);
    FORWARD(NRG_OK, silu, NRG_F32, N, x, at(0, -N * 4), 0, 1);
    FORWARD(NRG_ERR_OVERLAP, silu, NRG_F32, N, x, at(0, 4), 0, 1);
    FORWARD(NRG_ERR_OVERLAP, silu, NRG_F32, N, x, at(0, N * 4 - 4), 0, 1);
    FORWARD(NRG_ERR_OVERLAP, silu, NRG_F32, N, x, at(0, -N * 4 + 4), 3, 4);
    FORWARD(NRG_ERR_OVERLAP, silu, NRG_F16, N, x, at(0, 2), 0, 1);
    BACKWARD(NRG_OK, silu, NRG_F32, N, x, d_o, x, 0, 1);
    BACKWARD(NRG_OK, silu, NRG_F32, N, x, d_o, d_o, 0, 1);
    BACKWARD(NRG_OK, silu, NRG_F32, N, x, at(0, 4), out, 0, 1); /* inputs may overlap */
    BACKWARD(NRG_OK, silu, NRG_F32, N, x, x, x, 0, 1);
    BACKWARD(NRG_ERR_OVERLAP, silu, NRG_F32, N, x, d_o, at(1, 4), 0, 1);
    BACKWARD(NRG_ERR_OVERLAP, silu, NRG_F32, N, x, d_o, at(0, -4), 0, 1);
    BACKWARD(NRG_ERR_OVERLAP, silu, NRG_F32, N, x, at(0, 4), x, 0, 1); /* over x, and beside d_o */
}
END_TEST

START_TEST(names)
{
    static const char *const expected[] = {"identity", "sigmoid",    "silu",     "relu",       "relu2",      "tanh",
                                           "gelu",     "gelu_tanh",  "softplus", "gelu_quick", "hard_swish", "hard_sigmoid",
                                           "elu",      "leaky_relu", "mish",     "exp",        "expm1",      "softsign"};
    _Static_assert(sizeof expected / sizeof expected[0] == ACTIVATIONS, "a name for each");
    for (int g = 0; g < ACTIVATIONS; g++) {
        nrg_activation found;
        ck_assert_str_eq(nrg_activation_name((nrg_activation)g), expected[g]);
        ck_assert_int_eq(nrg_activation_from_name(expected[g], &found), NRG_OK);
        ck_assert_int_eq(found, g);
    }
    ck_assert_ptr_null(nrg_activation_name((nrg_activation)ACTIVATIONS));
    ck_assert_ptr_null(nrg_activation_name((nrg_activation)-1));
    nrg_activation found = NRG_ACT_MISH;
    ck_assert_int_eq(nrg_activation_from_name(NULL, &found), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_activation_from_name("mish", NULL), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_activation_from_name("Mish", &found), NRG_ERR_ENUM);
    ck_assert_int_eq(found, NRG_ACT_MISH);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("activation_forward and activation_backward");
    tcase_add_loop_test(test_case(suite, "16 bits"), every_half, 0, 2 * ACTIVATIONS);
    TCase *arguments = test_case(suite, "arguments");
    tcase_add_test(arguments, shares);
    tcase_add_test(arguments, bad_input);
    tcase_add_test(arguments, names);
    return test_run(suite);
}
