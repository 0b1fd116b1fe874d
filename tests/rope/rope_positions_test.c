/* nrg_rope_positions_forward and _backward: the bits of nrg_rope_frequencies, nrg_rope_table and the rotation, of every dtype,
 * layout and number of shares; and what a workspace keeps from call to call.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/support.h"

enum { BATCH = 3, TOKENS = 7, HEADS = 4, DIM = 48, N_DIMS = 32, AXES = 4, ELEMENTS = BATCH * TOKENS * HEADS * (DIM + 3) };

/* A layer's memory: q and k, of any dtype, and their outputs. */
typedef struct tensors {
    float q[ELEMENTS], k[ELEMENTS], q_o[ELEMENTS], k_o[ELEMENTS];
} tensors;

static tensors content, want, got;
static int32_t positions[AXES * TOKENS];

typedef nrg_status positions_call(const nrg_rope_spec *, const nrg_rope_positions_args *, int, int);

/* [batch, tokens, heads, dim] or [batch, heads, tokens, dim], with gaps between heads, told by their strides; or dense. */
static nrg_head_strides draw_strides(uint64_t *state, const nrg_rope_positions_args *a, size_t heads)
{
    const size_t element = nrg_dtype_size(a->dtype), row = (a->dim + test_draw(state, 4)) * element;
    nrg_head_strides s = {.head = row, .row = heads * row, .batch = a->tokens * heads * row};
    if (test_draw(state, 3) == 0)
        return (nrg_head_strides){.head = 0, .row = 0, .batch = 0};
    if (test_draw(state, 2)) {
        s.row = row;
        s.head = a->tokens * row;
    }
    return s;
}

static void bind(nrg_rope_positions_args *a, tensors *t, int in_place)
{
    *t = content;
    a->q = a->q_heads ? t->q : NULL;
    a->k = a->k_heads ? t->k : NULL;
    a->q_o = in_place || !a->q_heads ? NULL : t->q_o;
    a->k_o = in_place || !a->k_heads ? NULL : t->k_o;
}

/* The three calls. */
static void by_steps(const nrg_rope_spec *spec, const nrg_rope_positions_args *p, int backward)
{
    static float table[TOKENS * N_DIMS];
    double frequencies[N_DIMS], magnitude;
    ck_assert_int_eq(nrg_rope_frequencies(spec, frequencies, &magnitude), NRG_OK);
    nrg_rope_table_args t = nrg_rope_table_args_init(p->tokens, frequencies, magnitude, table);
    t.positions = p->positions;
    t.first_position = p->first_position;
    ck_assert_int_eq(nrg_rope_table(spec, &t, 0, 1), NRG_OK);
    nrg_rope_args a = nrg_rope_args_init(p->dtype, p->tokens, p->dim, table);
    a.batch = p->batch;
    a.rotate_from = p->rotate_from;
    a.q_heads = p->q_heads;
    a.k_heads = p->k_heads;
    a.q = p->q;
    a.k = p->k;
    a.q_o = p->q_o;
    a.k_o = p->k_o;
    a.q_strides = p->q_strides;
    a.k_strides = p->k_strides;
    a.q_o_strides = p->q_o_strides;
    a.k_o_strides = p->k_o_strides;
    ck_assert_int_eq((backward ? nrg_rope_backward : nrg_rope_forward)(spec, &a, 0, 1), NRG_OK);
}

static nrg_rope_spec draw_spec(uint64_t *state)
{
    static const nrg_rope_mode modes[] = {NRG_ROPE_NORMAL, NRG_ROPE_NEOX, NRG_ROPE_MROPE, NRG_ROPE_IMROPE, NRG_ROPE_VISION};
    nrg_rope_spec spec = nrg_rope_spec_init(N_DIMS, modes[test_draw(state, 5)], test_draw(state, 2) ? 10000 : 500000);
    if (spec.mode == NRG_ROPE_VISION)
        spec.n_dims = N_DIMS / 2;
    for (int i = 0; i < 4; i++) {
        const int pairs = 1 + (int)test_draw(state, 8);
        spec.sections[i] = spec.mode >= NRG_ROPE_MROPE ? pairs : 0;
    }
    return spec;
}

static nrg_rope_positions_args draw_args(uint64_t *state, nrg_dtype dtype)
{
    nrg_rope_positions_args a =
        nrg_rope_positions_args_init(dtype, 1 + test_draw(state, TOKENS), DIM, test_draw(state, 3) ? positions : NULL);
    a.batch = 1 + test_draw(state, BATCH);
    a.first_position = a.positions ? 0 : (int32_t)test_draw(state, 3);
    a.q_heads = test_draw(state, HEADS + 1);
    a.k_heads = test_draw(state, HEADS + 1);
    a.rotate_from = test_draw(state, DIM - N_DIMS + 1);
    return a;
}

static void set_up(nrg_dtype dtype)
{
    uint64_t state = 0;
    for (size_t i = 0; i < sizeof content / nrg_dtype_size(dtype); i++)
        element_set(&content, i, dtype, (float)test_draw(&state, 4001) / 1000 - 2);
    for (size_t i = 0; i < AXES * TOKENS; i++)
        positions[i] = (int32_t)(test_mix(i) % 100000);
}

START_TEST(as_by_steps)
{
    const nrg_dtype dtype = (nrg_dtype)(NRG_F32 + _i);
    uint64_t state = test_mix((uint64_t)_i);
    nrg_isa paths[NRG_ISA_COUNT];
    set_up(dtype);
    for (int n = 0; n < (test_small() ? 60 : 600); n++) {
        const nrg_rope_spec spec = draw_spec(&state);
        nrg_rope_positions_args a = draw_args(&state, dtype);
        const int in_place = (int)test_draw(&state, 2), backward = (int)test_draw(&state, 2), nth = 1 + (int)test_draw(&state, 7);
        positions_call *const rotate = backward ? nrg_rope_positions_backward : nrg_rope_positions_forward;
        a.q_strides = draw_strides(&state, &a, a.q_heads);
        a.k_strides = draw_strides(&state, &a, a.k_heads);
        a.q_o_strides = draw_strides(&state, &a, a.q_heads);
        a.k_o_strides = draw_strides(&state, &a, a.k_heads);
        a.store = (nrg_store)test_draw(&state, 3);
        ck_assert_int_eq(nrg_rope_positions_workspace(&spec, &a, nth, &a.workspace_size), NRG_OK);
        a.workspace = test_allocate(1, a.workspace_size);
        ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
        bind(&a, &want, in_place);
        by_steps(&spec, &a, backward);
        for (size_t p = test_paths(paths); p-- > 0;) {
            ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
            bind(&a, &got, in_place);
            for (int ith = nth; ith-- > 0;)
                ck_assert_int_eq(rotate(&spec, &a, ith, nth), NRG_OK);
            ck_assert_msg(memcmp(&want, &got, sizeof got) == 0, "%s, %s, case %d: %zux%zux(%zu + %zu), mode %d, %d shares",
                          nrg_isa_name(paths[p]), nrg_dtype_name(dtype), n, a.batch, a.tokens, a.q_heads, a.k_heads,
                          (int)spec.mode, nth);
        }
        free(a.workspace);
    }
}
END_TEST

/* Other tokens, positions, bases, factors and numbers of shares, or the same again: each call as if it were alone. */
START_TEST(a_kept_workspace_is_never_stale)
{
    enum { MOST_SHARES = 5 };
    uint64_t state = test_mix((uint64_t)_i + 50);
    float factors[N_DIMS / 2];
    int nth = 1;
    set_up(NRG_F32);
    nrg_rope_spec spec = nrg_rope_spec_init(N_DIMS, _i ? NRG_ROPE_MROPE : NRG_ROPE_NEOX, 10000);
    spec.sections[0] = spec.sections[3] = _i ? N_DIMS / 4 : 0;
    nrg_rope_positions_args a = nrg_rope_positions_args_init(NRG_F32, TOKENS, DIM, positions);
    a.keep = 1;
    a.batch = 2;
    a.q_heads = HEADS;
    a.k_heads = 1;
    ck_assert_int_eq(nrg_rope_positions_workspace(&spec, &a, MOST_SHARES, &a.workspace_size), NRG_OK);
    a.workspace = test_allocate(1, a.workspace_size);
    for (int step = 0; step < 400; step++) {
        for (size_t p = 0; p < N_DIMS / 2; p++)
            factors[p] = 1 + (float)(test_draw(&state, 2) * p);
        a.tokens = step % 3 ? 1 + test_draw(&state, TOKENS) : TOKENS;
        a.positions = test_draw(&state, 3) ? positions : NULL;
        a.first_position = a.positions ? 0 : (int32_t)test_draw(&state, 3);
        positions[0] += (int32_t)test_draw(&state, 2);
        spec.freq_base = test_draw(&state, 4) ? 10000 : 500000;
        spec.freq_factors = test_draw(&state, 4) ? NULL : factors;
        nth = test_draw(&state, 3) ? nth : 1 + (int)test_draw(&state, MOST_SHARES);
        bind(&a, &want, 0);
        by_steps(&spec, &a, 0);
        bind(&a, &got, 0);
        for (int ith = 0; ith < nth; ith++)
            ck_assert_int_eq(nrg_rope_positions_forward(&spec, &a, ith, nth), NRG_OK);
        ck_assert_msg(memcmp(&want, &got, sizeof got) == 0, "step %d, %d shares", step, nth);
    }
    free(a.workspace);
}
END_TEST

/* A second call finds its table: it does not make one that has been spoiled. With another number of shares, or without keep, it
 * does. */
START_TEST(a_table_is_kept)
{
    const nrg_rope_spec spec = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NEOX, 10000);
    set_up(NRG_F32);
    nrg_rope_positions_args a = nrg_rope_positions_args_init(NRG_F32, TOKENS, DIM, positions);
    a.q_heads = HEADS;
    a.keep = 1;
    ck_assert_int_eq(nrg_rope_positions_workspace(&spec, &a, 2, &a.workspace_size), NRG_OK);
    a.workspace = test_allocate(1, a.workspace_size);
    bind(&a, &want, 0);
    ck_assert_int_eq(nrg_rope_positions_forward(&spec, &a, 0, 1), NRG_OK);
    float *last = (float *)a.workspace + a.workspace_size / sizeof(float);
    while (*--last == 0)
        ;
    for (int again = 0; again < 2; again++) {
        *last = 2;
        bind(&a, &got, 0);
        ck_assert_int_eq(nrg_rope_positions_forward(&spec, &a, 0, 1), NRG_OK);
        ck_assert_msg(memcmp(got.q_o, want.q_o, sizeof got.q_o) != 0, "the table was made again");
        a.keep = again == 0;
        for (int ith = 0; ith < 2; ith++)
            ck_assert_int_eq(nrg_rope_positions_forward(&spec, &a, ith, 2), NRG_OK);
        ck_assert_msg(memcmp(got.q_o, want.q_o, sizeof got.q_o) == 0, "the table was not made again");
        a.keep = 1;
        ck_assert_int_eq(nrg_rope_positions_forward(&spec, &a, 0, 1), NRG_OK);
        ck_assert_msg(memcmp(got.q_o, want.q_o, sizeof got.q_o) == 0, "the table of one share was not made again");
    }
    free(a.workspace);
}
END_TEST

/* A workspace for fewer shares. */
START_TEST(more_shares_than_slices)
{
    const nrg_rope_spec spec = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NEOX, 10000);
    size_t bytes;
    set_up(NRG_F32);
    nrg_rope_positions_args a = nrg_rope_positions_args_init(NRG_F32, TOKENS, DIM, positions);
    a.q_heads = HEADS;
    bind(&a, &got, 1);
    ck_assert_int_eq(nrg_rope_positions_workspace(&spec, &a, 0, &bytes), NRG_ERR_THREAD);
    ck_assert_int_eq(nrg_rope_positions_workspace(&spec, &a, 3, &a.workspace_size), NRG_OK);
    a.workspace = test_allocate(1, a.workspace_size);
    for (int nth = 1; nth < 6; nth++) {
        const nrg_status wanted = nth > 3 ? NRG_ERR_WORKSPACE : NRG_OK;
        ck_assert_int_eq(nrg_rope_positions_forward_check(&spec, &a, nth), wanted);
        ck_assert_int_eq(nrg_rope_positions_backward_check(&spec, &a, nth), wanted);
        for (int ith = 0; ith < nth; ith++)
            ck_assert_int_eq(nrg_rope_positions_forward(&spec, &a, ith, nth), wanted);
    }
    ck_assert_int_eq(nrg_rope_positions_forward_check(&spec, &a, 0), NRG_ERR_THREAD);
    free(a.workspace);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("rope: from positions on");
    TCase *all = test_case(suite, "positions");
    tcase_add_loop_test(all, as_by_steps, 0, 3);
    tcase_add_loop_test(all, a_kept_workspace_is_never_stale, 0, 2);
    tcase_add_test(all, a_table_is_kept);
    tcase_add_test(all, more_shares_than_slices);
    return test_run(suite);
}
