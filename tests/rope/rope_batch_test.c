/* Batches: a call with four dimensions has the bits of a call for each batch, wherever batches, tokens and heads lie, and writes
 * nothing else. Alone, after a norm, and the gradient of both.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../harness/element.h"
#include "../harness/rows.h"
#include "../harness/support.h"

enum { BATCH_MOST = 4, TOKENS_MOST = 5, HEADS_MOST = 4, DIM_MOST = 96, TABLE_ROWS = 9, ROOM = 1 << 16 };
enum { ROWS_MOST = BATCH_MOST * TOKENS_MOST * HEADS_MOST, GROUPS = 2, NTH = 3 };
enum { Q, K, Q_O, K_O, TENSORS };
static const int shares[NTH] = {1, 2, 7};

/* Strides in bytes: of heads, tokens, batches. */
typedef struct layout {
    size_t real[3], told[3];
} layout;

/* A call of several batches, and what it is called with. */
typedef struct batches {
    nrg_rope_spec spec;
    nrg_rope_args args;
    layout at[TENSORS];
    size_t heads[2], rows[2];     /* rows: of all batches */
    int in_place, has_no_outputs; /* in place, by the same pointer or by none */
} batches;

static float table[TABLE_ROWS * DIM_MOST], weight[DIM_MOST], bias[DIM_MOST];
static int32_t positions[BATCH_MOST * (TOKENS_MOST + 2)];
static _Alignas(64) unsigned char content[TENSORS][ROOM], want[TENSORS][ROOM], got[TENSORS][ROOM];

/* Any order of the three, with gaps at the end of each or without. What is dense is told as 0, where nothing else would be. */
static layout draw_layout(uint64_t *state, const size_t count[3], size_t row, size_t element)
{
    static const int orders[6][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const size_t n = test_draw(state, 6), has_gaps = test_draw(state, 2);
    layout l;
    size_t span = row;
    for (int k = 0; k < 3; k++) {
        const int level = orders[n][k];
        span += has_gaps * element * test_draw(state, 5);
        l.real[level] = l.told[level] = span;
        span *= count[level];
    }
    ck_assert_uint_le(span, ROOM);
    if (!has_gaps && n == 0)
        memset(l.told, 0, sizeof l.told);
    if (!has_gaps && n == 1)
        l.told[2] = 0;
    return l;
}

/* Rows at equal distances, which the gradient of a norm takes as those of a matrix. */
static layout draw_equal(uint64_t *state, const size_t count[3], size_t row, size_t element)
{
    const size_t distance = row + element * test_draw(state, 3);
    layout l = {{distance, count[0] * distance, count[0] * count[1] * distance}, {distance, 0, 0}};
    if (count[0] == 1 || test_draw(state, 2)) /* the stride of one head is not read */
        memcpy(l.told, l.real, sizeof l.told);
    return l;
}

static void tell(nrg_rope_args *a, const layout at[TENSORS])
{
    nrg_head_strides *const to[TENSORS] = {&a->q_strides, &a->k_strides, &a->q_o_strides, &a->k_o_strides};
    for (int i = 0; i < TENSORS; i++)
        *to[i] = (nrg_head_strides){.head = at[i].told[0], .row = at[i].told[1], .batch = at[i].told[2]};
}

static batches draw_batches(uint64_t *state, nrg_dtype dtype, int has_equal_rows)
{
    batches c;
    const size_t dim = test_draw(state, 2) ? 32 * (1 + test_draw(state, 3)) : 8 + 2 * test_draw(state, 20);
    const size_t n_dims = 2 * (1 + test_draw(state, dim / 2)), tokens = 1 + test_draw(state, TOKENS_MOST);
    const size_t element = nrg_dtype_size(dtype);
    memset(&c, 0, sizeof c);
    c.spec = nrg_rope_spec_init(n_dims, test_draw(state, 2) ? NRG_ROPE_NEOX : NRG_ROPE_NORMAL, 10000);
    c.args = nrg_rope_args_init(dtype, tokens, dim, table);
    c.args.store = (nrg_store)test_draw(state, 3);
    c.args.rotate_from = test_draw(state, dim - n_dims + 1);
    c.args.batch = test_draw(state, 8) ? 2 + test_draw(state, BATCH_MOST - 1) : test_draw(state, 2);
    c.args.q_heads = c.heads[0] = test_draw(state, HEADS_MOST + 1);
    c.args.k_heads = c.heads[1] = test_draw(state, HEADS_MOST + 1);
    c.args.table_rows = TABLE_ROWS;
    c.in_place = (int)test_draw(state, 2);
    c.has_no_outputs = c.in_place && tokens % 2;
    if (test_draw(state, 3)) {
        c.args.table_ids = positions;
        c.args.shared_table_ids = (int)test_draw(state, 2);
        c.args.table_ids_batch_stride = test_draw(state, 2) ? (tokens + 2) * sizeof *positions : 0;
    }
    for (int i = 0; i < TENSORS; i++) {
        const size_t count[3] = {c.heads[i % 2], tokens, c.args.batch};
        const int is_equal = has_equal_rows && (i >= Q_O || c.in_place);
        c.at[i] = i >= Q_O && c.in_place ? c.at[i - Q_O]
                  : is_equal             ? draw_equal(state, count, dim * element, element)
                                         : draw_layout(state, count, dim * element, element);
        c.rows[i % 2] = c.args.batch * tokens * c.heads[i % 2];
    }
    tell(&c.args, c.at);
    return c;
}

static void bind(nrg_rope_args *a, const batches *c, unsigned char memory[TENSORS][ROOM])
{
    memcpy(memory, content, sizeof content);
    a->q = c->heads[0] ? memory[Q] : NULL;
    a->k = c->heads[1] ? memory[K] : NULL;
    a->q_o = !c->heads[0] ? NULL : memory[c->in_place ? Q : Q_O];
    a->k_o = !c->heads[1] ? NULL : memory[c->in_place ? K : K_O];
    if (c->has_no_outputs)
        a->q_o = a->k_o = NULL;
}

/* The call of one batch, from the bound one of all; as one of three dimensions. */
static nrg_rope_args one_batch(const batches *c, const nrg_rope_args *all, size_t batch)
{
    nrg_rope_args a = *all;
    layout at[TENSORS];
    memcpy(at, c->at, sizeof at);
    for (int i = 0; i < TENSORS; i++) {
        memcpy(at[i].told, at[i].real, sizeof at[i].told);
        at[i].told[2] = 0;
    }
    tell(&a, at);
    a.q = a.q ? (const char *)a.q + batch * c->at[Q].real[2] : NULL;
    a.k = a.k ? (const char *)a.k + batch * c->at[K].real[2] : NULL;
    a.q_o = a.q_o ? (char *)a.q_o + batch * c->at[Q_O].real[2] : NULL;
    a.k_o = a.k_o ? (char *)a.k_o + batch * c->at[K_O].real[2] : NULL;
    const size_t apart = a.table_ids_batch_stride ? a.table_ids_batch_stride / sizeof *positions : a.tokens;
    if (a.table_ids && !a.shared_table_ids)
        a.table_ids += batch * apart;
    a.batch = 1;
    a.table_ids_batch_stride = 0;
    a.shared_table_ids = 0;
    return a;
}

static void set_up(nrg_dtype dtype)
{
    uint64_t state = 0;
    for (int i = 0; i < TENSORS; i++)
        for (size_t n = 0; n < ROOM / nrg_dtype_size(dtype); n++)
            element_set(content[i], n, dtype, (float)test_draw(&state, 4001) / 1000 - 2);
    row_fill(table, TABLE_ROWS * DIM_MOST, ROW_NORMAL, NRG_F32, 1);
    row_fill(weight, DIM_MOST, ROW_NORMAL, NRG_F32, 2);
    row_fill(bias, DIM_MOST, ROW_NORMAL, NRG_F32, 3);
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++)
        positions[i] = (int32_t)(test_mix(i) % TABLE_ROWS);
}

static void compare(const char *call, const batches *c, nrg_isa path, int nth)
{
    for (int i = 0; i < TENSORS; i++)
        ck_assert_msg(memcmp(want[i], got[i], ROOM) == 0,
                      "%s, %s, %zux%zux(%zu + %zu)x%zu, mode %d, dtype %d, %d shares, positions %d: tensor %d", call,
                      nrg_isa_name(path), c->args.batch, c->args.tokens, c->heads[0], c->heads[1], c->args.dim, (int)c->spec.mode,
                      (int)c->args.dtype, nth, (c->args.table_ids != NULL) + c->args.shared_table_ids, i);
}

START_TEST(rotation)
{
    uint64_t state = test_mix((uint64_t)_i);
    nrg_isa paths[NRG_ISA_COUNT];
    set_up((nrg_dtype)(NRG_F32 + _i));
    for (int n = 0; n < (test_small() ? 60 : 600); n++) {
        batches c = draw_batches(&state, (nrg_dtype)(NRG_F32 + _i), 0);
        const int backward = (int)test_draw(&state, 2);
        nrg_status (*const rotate)(const nrg_rope_spec *, const nrg_rope_args *, int, int) =
            backward ? nrg_rope_backward : nrg_rope_forward;
        bind(&c.args, &c, want);
        ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
        for (size_t b = 0; b < c.args.batch; b++) {
            const nrg_rope_args one = one_batch(&c, &c.args, b);
            ck_assert_int_eq(rotate(&c.spec, &one, 0, 1), NRG_OK);
        }
        for (size_t p = test_paths(paths); p-- > 0;)
            for (int k = 0; k < NTH; k++) {
                bind(&c.args, &c, got);
                ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
                ck_assert_int_eq((backward ? nrg_rope_backward_check : nrg_rope_forward_check)(&c.spec, &c.args), NRG_OK);
                for (int ith = shares[k]; ith-- > 0;)
                    ck_assert_int_eq(rotate(&c.spec, &c.args, ith, shares[k]), NRG_OK);
                compare("rope", &c, paths[p], shares[k]);
            }
    }
}
END_TEST

static nrg_norm_spec draw_norm(uint64_t *state, const batches *c)
{
    nrg_norm_spec norm =
        test_draw(state, 2) ? nrg_norm_spec_rms(NRG_F32, c->args.dim, 1e-6) : nrg_norm_spec_layer(NRG_F32, c->args.dim, 1e-5);
    norm.dtype = c->args.dtype;
    norm.w_dtype = NRG_F32;
    norm.groups = test_draw(state, 2) ? GROUPS : 1;
    return norm;
}

/* Statistics of q, then of k. */
typedef struct statistics {
    float mean[2][ROWS_MOST * GROUPS], rstd[2][ROWS_MOST * GROUPS];
} statistics;

START_TEST(after_a_norm)
{
    static statistics wanted, given;
    uint64_t state = test_mix((uint64_t)_i + 100);
    nrg_isa paths[NRG_ISA_COUNT];
    set_up((nrg_dtype)(NRG_F32 + _i));
    for (int n = 0; n < (test_small() ? 60 : 600); n++) {
        batches c = draw_batches(&state, (nrg_dtype)(NRG_F32 + _i), 0);
        const nrg_norm_spec norm = draw_norm(&state, &c);
        nrg_norm_args args[2];
        for (int k = 0; k < 2; k++) {
            args[k] = nrg_norm_args_init(0, NULL, NULL, NULL);
            args[k].w = test_draw(&state, 3) ? weight : NULL;
            args[k].b = test_draw(&state, 3) ? NULL : bias;
        }
        const int has_statistics = (int)test_draw(&state, 2);
        bind(&c.args, &c, want);
        memset(&wanted, 0, sizeof wanted);
        ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
        for (size_t b = 0; b < c.args.batch; b++) {
            const nrg_rope_args one = one_batch(&c, &c.args, b);
            for (int k = 0; k < 2; k++)
                args[k].rows = one.tokens * c.heads[k];
            for (int k = 0; k < 2 && has_statistics; k++) {
                const size_t before = b * c.args.tokens * c.heads[k] * (norm.groups ? norm.groups : 1);
                args[k].mean = wanted.mean[k] + before;
                args[k].rstd = wanted.rstd[k] + before;
            }
            ck_assert_int_eq(nrg_norm_rope_forward(&norm, &c.spec, &one, &args[0], &args[1], 0, 1), NRG_OK);
        }
        for (int k = 0; k < 2; k++)
            args[k].rows = c.args.batch * c.args.tokens * c.heads[k];
        for (int k = 0; k < 2 && has_statistics; k++) {
            args[k].mean = given.mean[k];
            args[k].rstd = given.rstd[k];
        }
        for (size_t p = test_paths(paths); p-- > 0;)
            for (int k = 0; k < NTH; k++) {
                bind(&c.args, &c, got);
                memset(&given, 0, sizeof given);
                ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
                for (int ith = shares[k]; ith-- > 0;)
                    ck_assert_int_eq(nrg_norm_rope_forward(&norm, &c.spec, &c.args, &args[0], &args[1], ith, shares[k]), NRG_OK);
                compare("norm_rope_forward", &c, paths[p], shares[k]);
                ck_assert_mem_eq(&wanted, &given, sizeof given);
            }
    }
}
END_TEST

typedef struct sums {
    float dw[2][DIM_MOST], db[2][DIM_MOST];
} sums;

/* Against the rotation of each batch and the norm of all their rows. */
START_TEST(gradients)
{
    static unsigned char x[2][ROOM];
    static double workspace[2][1 << 14];
    uint64_t state = test_mix((uint64_t)_i + 200);
    nrg_isa paths[NRG_ISA_COUNT];
    set_up((nrg_dtype)(NRG_F32 + _i));
    for (int n = 0; n < (test_small() ? 60 : 600); n++) {
        batches c = draw_batches(&state, (nrg_dtype)(NRG_F32 + _i), test_draw(&state, 3) == 0);
        const nrg_norm_spec norm = draw_norm(&state, &c);
        nrg_norm_backward_args args[2];
        sums wanted, given;
        memset(&wanted, 0, sizeof wanted);
        bind(&c.args, &c, want);
        ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
        for (size_t b = 0; b < c.args.batch; b++) {
            const nrg_rope_args one = one_batch(&c, &c.args, b);
            ck_assert_int_eq(nrg_rope_backward(&c.spec, &one, 0, 1), NRG_OK);
        }
        for (int k = 0; k < 2; k++) {
            const size_t element = nrg_dtype_size(c.args.dtype);
            const size_t count[3] = {c.heads[k], c.args.tokens, c.args.batch};
            const layout rows = draw_layout(&state, count, c.args.dim * element, element);
            for (size_t i = 0; i < ROOM / element; i++)
                element_set(x[k], i, c.args.dtype, (float)test_draw(&state, 4001) / 1000 - 2);
            args[k] = nrg_norm_backward_args_init(c.rows[k], x[k], NULL, NULL, NULL);
            for (int level = 0; level < 3; level++)
                args[k].x_stride[level] = rows.told[level];
            args[k].w = test_draw(&state, 3) ? weight : NULL;
            args[k].b = bias;
            if (test_draw(&state, 4))
                args[k].dw = wanted.dw[k];
            if (test_draw(&state, 4))
                args[k].db = wanted.db[k];
            args[k].workspace = workspace[k];
            ck_assert_int_eq(nrg_norm_backward_workspace(&norm, &args[k], &args[k].workspace_size), NRG_OK);
            ck_assert_uint_le(args[k].workspace_size, sizeof workspace[k]);
            nrg_norm_backward_args alone = args[k];
            alone.d_o = alone.dx = want[c.in_place ? Q + k : Q_O + k];
            alone.rows = c.rows[k] ? c.heads[k] : 0;
            alone.rows2 = c.args.tokens;
            alone.rows3 = c.args.batch;
            for (int level = 0; level < 3; level++)
                alone.d_o_stride[level] = alone.dx_stride[level] = c.at[Q_O + k].real[level];
            ck_assert_int_eq(nrg_norm_backward(&norm, &alone, 0, 1), NRG_OK);
            ck_assert_int_eq(nrg_norm_backward_reduce(&norm, &alone, 0, 1), NRG_OK);
            args[k].dw = args[k].dw ? given.dw[k] : NULL;
            args[k].db = args[k].db ? given.db[k] : NULL;
        }
        for (size_t p = test_paths(paths); p-- > 0;)
            for (int k = 0; k < NTH; k++) {
                bind(&c.args, &c, got);
                memset(&given, 0, sizeof given);
                ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
                for (int ith = shares[k]; ith-- > 0;)
                    ck_assert_int_eq(nrg_norm_rope_backward(&norm, &c.spec, &c.args, &args[0], &args[1], ith, shares[k]), NRG_OK);
                for (int ith = shares[k]; ith-- > 0;)
                    ck_assert_int_eq(nrg_norm_rope_backward_reduce(&norm, &c.spec, &c.args, &args[0], &args[1], ith, shares[k]),
                                     NRG_OK);
                compare("norm_rope_backward", &c, paths[p], shares[k]);
                ck_assert_mem_eq(&wanted, &given, sizeof given);
            }
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("rope: batches");
    TCase *all = test_case(suite, "batches");
    tcase_add_loop_test(all, rotation, 0, 3);
    tcase_add_loop_test(all, after_a_norm, 0, 3);
    tcase_add_loop_test(all, gradients, 0, 3);
    return test_run(suite);
}
