/* What the descriptions of nrg/rope.h, nrg/sinusoidal.h and nrg/norm_rope.h do not say: functions without a status, constructors,
 * and sums of no tokens. All bad input beside this: tests/calls/bad_input_test.c.
 *
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <string.h>

#include "../harness/support.h"

START_TEST(pairs)
{
    nrg_rope_spec spec = nrg_rope_spec_init(8, NRG_ROPE_NEOX, 10000);
    ck_assert_uint_eq(nrg_rope_pairs(&spec), 4);
    spec.mode = NRG_ROPE_VISION;
    ck_assert_uint_eq(nrg_rope_pairs(&spec), 8);
}
END_TEST

START_TEST(longrope)
{
    ck_assert(nrg_rope_longrope_attn_factor(1, 4096) == 0 && nrg_rope_longrope_attn_factor(4096, 1) == 0);
    ck_assert(nrg_rope_longrope_attn_factor(INT_MIN, 4096) == 0 && nrg_rope_longrope_attn_factor(4096, -1) == 0);
    ck_assert(nrg_rope_longrope_attn_factor(4096, 4096) == 1 && nrg_rope_longrope_attn_factor(2, INT_MAX) == 1);
    ck_assert(nrg_rope_longrope_attn_factor(4097, 4096) > 1);
}
END_TEST

/* The heads of no tokens: dw and db are 0, or stay. */
START_TEST(no_tokens)
{
    enum { DIM = 12 };
    static const float zero[DIM];
    const nrg_norm_spec norm = nrg_norm_spec_layer(NRG_F32, DIM, 1e-5);
    const nrg_rope_spec spec = nrg_rope_spec_init(8, NRG_ROPE_NEOX, 10000);
    nrg_rope_args rope = nrg_rope_args_init(NRG_F32, 0, DIM, NULL);
    rope.q_heads = rope.k_heads = SIZE_MAX;
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        float sums[4][DIM], before[4][DIM];
        for (int i = 0; i < 4 * DIM; i++)
            sums[i / DIM][i % DIM] = (float)(i + 1);
        memcpy(before, sums, sizeof sums);
        nrg_norm_backward_args q = nrg_norm_backward_args_init(0, NULL, NULL, NULL, NULL), k = q;
        q.dw = sums[0];
        q.db = sums[1];
        k.dw = sums[2];
        k.db = sums[3];
        q.accumulate = k.accumulate = accumulate;
        for (int ith = 0; ith < 2; ith++)
            ck_assert_int_eq(nrg_norm_rope_backward(&norm, &spec, &rope, &q, &k, ith, 2), NRG_OK);
        ck_assert_mem_eq(sums, before, sizeof sums);
        ck_assert_int_eq(nrg_norm_rope_backward(&norm, &spec, &rope, &q, &k, 0, 1), NRG_OK);
        for (int i = 0; i < 4; i++)
            ck_assert_mem_eq(sums[i], accumulate ? before[i] : zero, sizeof zero);
        ck_assert_int_eq(nrg_norm_rope_backward_reduce(&norm, &spec, &rope, &q, &k, 0, 1), NRG_OK);
        for (int i = 0; i < 4; i++)
            ck_assert_mem_eq(sums[i], accumulate ? before[i] : zero, sizeof zero);
    }
}
END_TEST

START_TEST(constructors)
{
    const nrg_rope_spec s = nrg_rope_spec_init(6, NRG_ROPE_NEOX, 500);
    ck_assert(s.size == sizeof s && s.n_dims == 6 && s.mode == NRG_ROPE_NEOX && s.freq_base == 500 && s.freq_scale == 1);
    ck_assert(s.attn_factor == 1 && s.ext_factor == 0 && s.beta_fast == 32 && s.beta_slow == 1 && s.factor == 1);
    ck_assert(s.low_freq_factor == 1 && s.high_freq_factor == 4 && !s.freq_factors && !s.yarn && !s.n_ctx_orig);
    ck_assert(s.scaling == NRG_ROPE_SCALING_NONE && !s.sections[0] && !s.sections[1] && !s.sections[2] && !s.sections[3]);
    double frequencies[2];
    float out[4];
    const nrg_rope_table_args t = nrg_rope_table_args_init(3, frequencies, 1.5, out);
    ck_assert(t.size == sizeof t && t.tokens == 3 && t.frequencies == frequencies && t.magnitude == 1.5 && t.table == out);
    ck_assert(!t.positions && !t.positions_stride && !t.first_position && !t.reserved && !t.table_stride);
    const nrg_rope_args a = nrg_rope_args_init(NRG_BF16, 3, 8, out);
    ck_assert(a.size == sizeof a && a.batch == 1 && a.tokens == 3 && a.dim == 8 && a.table == out && a.dtype == NRG_BF16);
    ck_assert(a.store == NRG_STORE_AUTO && a.table_rows == 3 && !a.table_stride && !a.table_ids && !a.q_heads && !a.k_heads);
    ck_assert(!a.q && !a.k && !a.q_o && !a.k_o && !a.shared_table_ids && !a.table_ids_batch_stride && !a.rotate_from);
    const nrg_head_strides *const strides[] = {&a.q_strides, &a.k_strides, &a.q_o_strides, &a.k_o_strides};
    for (int i = 0; i < 4; i++)
        ck_assert(!strides[i]->row && !strides[i]->head && !strides[i]->batch);
    const nrg_sinusoidal_spec w = nrg_sinusoidal_spec_vaswani(8);
    ck_assert(w.size == sizeof w && w.dim == 8 && w.base == 10000 && w.spread == NRG_SINUSOIDAL_BELOW_BASE &&
              w.layout == NRG_SINUSOIDAL_INTERLEAVED);
    const nrg_sinusoidal_args n = nrg_sinusoidal_args_init(NRG_F16, 3, frequencies, out);
    ck_assert(n.size == sizeof n && n.rows == 3 && n.frequencies == frequencies && n.table == out);
    ck_assert(n.dtype == NRG_F16 && !n.positions && !n.first_position && !n.table_stride);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("rope: calls");
    TCase *tests = test_case(suite, "calls");
    tcase_add_test(tests, pairs);
    tcase_add_test(tests, longrope);
    tcase_add_test(tests, no_tokens);
    tcase_add_test(tests, constructors);
    return test_run(suite);
}
