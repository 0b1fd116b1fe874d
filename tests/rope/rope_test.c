/* nrg_rope_table, beside what bits_test does: frequencies that no spec makes, up to the fastest allowed, at positions up to the
 * ends of what there is, and magnitudes of either sign. Every path gives the bits of scalar. And NaNs in a table.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/support.h"

static const nrg_rope_mode modes[] = {NRG_ROPE_NORMAL, NRG_ROPE_NEOX,   NRG_ROPE_MROPE,
                                      NRG_ROPE_VISION, NRG_ROPE_IMROPE, NRG_ROPE_IMROPE_TIME};
enum { MODES = 6, PAIRS_MOST = 160, ROWS_MOST = 64, AXES = 4 };

/* test_draw() of numbers that a size_t may be too short for. */
static uint64_t draw_wide(uint64_t *state, uint64_t n)
{
    *state = test_mix(*state);
    return (*state >> 32) % n;
}

static int32_t draw_position(uint64_t *state)
{
    static const int32_t ends[] = {0, -1, 1, INT32_MIN, INT32_MAX, INT32_MIN + 1, 131072, 1000000, 1048576, -5};
    const size_t how = test_draw(state, 4);
    if (how == 0)
        return ends[test_draw(state, sizeof ends / sizeof ends[0])];
    if (how == 1)
        return (int32_t)((int64_t)draw_wide(state, (uint64_t)1 << 32) + INT32_MIN);
    return (int32_t)test_draw(state, how == 2 ? 3000 : 2000000);
}

/* Anything from slow pairs to the fastest allowed, of either direction: high parts, then low ones. */
static void draw_frequencies(double *frequencies, size_t pairs, uint64_t *state)
{
    for (size_t p = 0; p < pairs; p++) {
        const double fraction = 1 + (double)draw_wide(state, (uint64_t)1 << 52) * 0x1p-52;
        const int exponent = (test_draw(state, 8) ? 0 : 17) - (int)test_draw(state, 63);
        const double high = ldexp(fraction, exponent);
        frequencies[p] = test_draw(state, 4) ? high : -high;
        frequencies[pairs + p] = high * 0x1p-53 * ((double)test_draw(state, 2001) / 1000 - 1);
    }
}

START_TEST(any_frequencies)
{
    static double frequencies[2 * PAIRS_MOST];
    static float expected[ROWS_MOST * 2 * PAIRS_MOST], got[ROWS_MOST * 2 * PAIRS_MOST];
    static int32_t positions[AXES * ROWS_MOST];
    nrg_isa paths[NRG_ISA_COUNT];
    for (uint64_t n = 0; n < (test_small() ? 20 : 200); n++) {
        uint64_t state = test_mix((uint64_t)_i * 1000 + n);
        const int vision = modes[_i] == NRG_ROPE_VISION;
        const size_t pairs = (vision ? 2 : 1) * (1 + test_draw(&state, n % 8 ? 40 : PAIRS_MOST / 2));
        const size_t rows = 1 + test_draw(&state, n % 4 ? 9 : ROWS_MOST);
        nrg_rope_spec spec = nrg_rope_spec_init(vision ? pairs : 2 * pairs, modes[_i], 10000);
        if (modes[_i] >= NRG_ROPE_MROPE)
            for (int i = 0; i < AXES; i++)
                spec.sections[i] = 1 + (int)test_draw(&state, pairs);
        nrg_rope_table_args args = nrg_rope_table_args_init(rows, frequencies, n % 3 ? 1 : -1.2345678901, expected);
        draw_frequencies(frequencies, pairs, &state);
        for (size_t i = 0; i < AXES * rows; i++)
            positions[i] = draw_position(&state);
        args.positions = n % 5 ? positions : NULL;
        args.first_position = positions[0] > INT32_MAX - ROWS_MOST ? INT32_MAX - (int32_t)rows + 1 : positions[0];
        if (args.positions)
            args.first_position = 0;
        ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
        ck_assert_int_eq(nrg_rope_table(&spec, &args, 0, 1), NRG_OK);
        args.table = got;
        for (size_t p = test_paths(paths); p-- > 0;) {
            memset(got, 0xff, sizeof got);
            ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
            ck_assert_int_eq(nrg_rope_table(&spec, &args, 0, 1), NRG_OK);
            for (size_t i = 0; i < rows * 2 * pairs; i++)
                if (memcmp(&got[i], &expected[i], sizeof got[i]) != 0)
                    ck_abort_msg("%s, mode %d, %zu pairs, table %llu: row %zu column %zu is %a and not %a",
                                 nrg_isa_name(paths[p]), (int)modes[_i], pairs, (unsigned long long)n, i / (2 * pairs),
                                 i % (2 * pairs), (double)got[i], (double)expected[i]);
        }
    }
}
END_TEST

/* Whatever the bits of a table's NaNs: rounded to bf16 like a number, those whose bits are all set would become zeros. */
START_TEST(nans_of_a_table)
{
    enum { HEADS = 3, DIM = 128, TOKENS = 2 };
    static const uint32_t nans[] = {0x7fffffff, 0xffffffff, 0x7f800001, 0xff80ffff};
    static _Alignas(64) uint16_t q[TOKENS * HEADS * DIM], o[TOKENS * HEADS * DIM];
    static float table[TOKENS * DIM];
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t i = 0; i < TOKENS * HEADS * DIM; i++)
        element_set(q, i, NRG_BF16, (float)i);
    for (size_t i = 0; i < TOKENS * DIM; i++)
        memcpy(&table[i], &nans[i % 4], sizeof table[i]);
    for (size_t p = test_paths(paths); p-- > 0;) {
        ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
        for (size_t dims = 2; dims <= DIM; dims += 2)
            for (int n = 0; n < 8; n++) {
                const nrg_rope_spec spec = nrg_rope_spec_init(dims, n & 1 ? NRG_ROPE_NEOX : NRG_ROPE_NORMAL, 10000);
                nrg_rope_args args = nrg_rope_args_init(NRG_BF16, TOKENS, DIM, table);
                args.q = q;
                args.q_o = o;
                args.q_heads = HEADS;
                args.store = n & 4 ? NRG_STORE_STREAM : NRG_STORE_KEEP;
                ck_assert_int_eq((n & 2 ? nrg_rope_backward : nrg_rope_forward)(&spec, &args, 0, 1), NRG_OK);
                for (size_t i = 0; i < TOKENS * HEADS * DIM; i++)
                    if (i % DIM < dims && !isnan(element_get(o, i, NRG_BF16)))
                        ck_abort_msg("%s, %zu of %d elements, case %d: element %zu is %g and no NaN", nrg_isa_name(paths[p]),
                                     dims, DIM, n, i, (double)element_get(o, i, NRG_BF16));
            }
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("rope: tables of any frequencies, and of NaNs");
    tcase_add_loop_test(test_case(suite, "tables"), any_frequencies, 0, MODES);
    tcase_add_test(test_case(suite, "rotation"), nans_of_a_table);
    return test_run(suite);
}
