/* The norm of each head fused with its rotation has the bits of the two calls in turn: on every path, for any shares and layouts,
 * forward and backward. The reference of every sweep is the two calls, dense, on scalar.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/call_harness.h"

static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};
enum { DTYPES = 3 };

static const nrg_rope_mode modes[] = {NRG_ROPE_NORMAL, NRG_ROPE_NEOX, NRG_ROPE_MROPE, NRG_ROPE_VISION, NRG_ROPE_IMROPE};
enum { MODES = 5, TOKENS_MOST = 512 };

/* Forward: q and k are x. Backward: the gradients that arrive; their outputs are the dx. */
enum { Q, K, TABLE, ROWS, Q_O, K_O, SHARED_OPERANDS };
enum { Q_W = SHARED_OPERANDS, K_W, Q_B, K_B, Q_MEAN, K_MEAN, Q_RSTD, K_RSTD, FORWARD_OPERANDS };
enum { Q_X = SHARED_OPERANDS, K_X, WEIGHTS, Q_M, K_M, Q_DW, K_DW, Q_DB, K_DB, WORKSPACE, BACKWARD_OPERANDS };

typedef struct problem {
    nrg_norm_spec norm;
    nrg_rope_spec rope;
    nrg_rope_args args; /* without what the layouts say */
    int fused;          /* 0: the reference */
    int no_norm_args;   /* NULL where there is nothing to say */
    int b, accumulate;
    int dw[2], db[2];
    int32_t rows[TOKENS_MOST];
} problem;

static size_t heads_of(const problem *p, int k) { return k ? p->args.k_heads : p->args.q_heads; }
static size_t rows_of(const problem *p, int k) { return p->args.tokens * heads_of(p, k); }
static size_t groups_of(const problem *p) { return p->norm.groups ? p->norm.groups : 1; }

static void lay(const call_operand *o, size_t heads, size_t *token_stride, size_t *head_stride)
{
    *head_stride = o->stride;
    *token_stride = o->group ? o->group_stride : heads * o->stride;
}

static nrg_rope_args rope_args(const problem *p, const call_operand *all)
{
    nrg_rope_args a = p->args;
    a.table = all[TABLE].at;
    a.table_stride = all[TABLE].stride;
    a.positions = all[ROWS].at;
    a.q = all[Q].at;
    a.k = all[K].at;
    a.q_o = all[Q_O].at;
    a.k_o = all[K_O].at;
    lay(&all[Q], a.q_heads, &a.q_token_stride, &a.q_head_stride);
    lay(&all[K], a.k_heads, &a.k_token_stride, &a.k_head_stride);
    lay(&all[Q_O], a.q_heads, &a.q_o_token_stride, &a.q_o_head_stride);
    lay(&all[K_O], a.k_heads, &a.k_o_token_stride, &a.k_o_head_stride);
    return a;
}

static void vary(void *context, uint64_t draw)
{
    problem *p = context;
    p->fused = draw != 0;
    p->args.store = (nrg_store)(draw / 2 % (NRG_STORE_STREAM + 1));
    p->norm.store = (nrg_store)(draw / 8 % (NRG_STORE_STREAM + 1));
}

/* ---- forward ---- */

static nrg_norm_args norm_args(const call_operand *all, int k)
{
    nrg_norm_args a = nrg_norm_args_init(0, NULL, NULL);
    a.w = all[Q_W + k].at;
    a.b = all[Q_B + k].at;
    a.mean = all[Q_MEAN + k].at;
    a.rstd = all[Q_RSTD + k].at;
    return a;
}

static int says_nothing(const nrg_norm_args *a) { return !a->w && !a->b && !a->mean && !a->rstd; }

static nrg_status forward(void *context, const call_operand *all, int ith, int nth)
{
    const problem *p = context;
    nrg_rope_args rope = rope_args(p, all);
    nrg_norm_args norm[2] = {norm_args(all, 0), norm_args(all, 1)};
    if (p->fused) {
        const nrg_norm_args *q = p->no_norm_args && says_nothing(&norm[0]) ? NULL : &norm[0];
        const nrg_norm_args *k = p->no_norm_args && says_nothing(&norm[1]) ? NULL : &norm[1];
        return nrg_norm_rope_forward(&p->norm, &p->rope, &rope, q, k, ith, nth);
    }
    for (int k = 0; k < 2; k++) {
        norm[k].rows = rows_of(p, k);
        norm[k].x = all[Q + k].at;
        norm[k].o = all[Q_O + k].at;
        nrg_status status = nrg_norm_forward(&p->norm, &norm[k], ith, nth);
        if (status != NRG_OK)
            return status;
    }
    rope.q = rope.q_o;
    rope.k = rope.k_o;
    return nrg_rope(&p->rope, &rope, ith, nth);
}

/* ---- backward ---- */

static size_t workspace_words(const problem *p, int k)
{
    float any;
    size_t bytes = 0;
    nrg_norm_backward_args a = nrg_norm_backward_args_init(rows_of(p, k), NULL, NULL, NULL);
    a.dw = p->dw[k] ? &any : NULL;
    a.db = p->db[k] ? &any : NULL;
    if (nrg_norm_backward_workspace(&p->norm, &a, &bytes) != NRG_OK)
        ck_abort_msg("the size of a workspace cannot be had");
    return bytes / sizeof(double);
}

static size_t all_workspace_words(const void *context, int nth)
{
    (void)nth;
    return workspace_words(context, 0) + workspace_words(context, 1);
}

static nrg_norm_backward_args backward_args(const problem *p, const call_operand *all, int k)
{
    const size_t w_bytes = p->norm.dim * nrg_dtype_size(p->norm.w_dtype ? p->norm.w_dtype : p->norm.dtype);
    const size_t before = k ? workspace_words(p, 0) : 0;
    nrg_norm_backward_args a = nrg_norm_backward_args_init(rows_of(p, k), all[Q_X + k].at, NULL, NULL);
    a.x_stride = all[Q_X + k].stride;
    if (all[WEIGHTS].at) {
        a.w = (const char *)all[WEIGHTS].at + (size_t)k * w_bytes;
        a.b = p->b ? (const char *)all[WEIGHTS].at + (size_t)(2 + k) * w_bytes : NULL;
    }
    a.mean = all[Q_M + k].at;
    a.dw = all[Q_DW + k].at;
    a.db = all[Q_DB + k].at;
    a.workspace = all[WORKSPACE].at ? (double *)all[WORKSPACE].at + before : NULL;
    a.workspace_size = workspace_words(p, k) * sizeof(double);
    a.accumulate = p->accumulate;
    return a;
}

static nrg_status backward_phase(const problem *p, const call_operand *all, int reduce, int ith, int nth)
{
    nrg_rope_args rope = rope_args(p, all);
    nrg_norm_backward_args norm[2] = {backward_args(p, all, 0), backward_args(p, all, 1)};
    if (p->fused) {
        const nrg_norm_backward_args *q = p->no_norm_args && !rope.q_heads ? NULL : &norm[0];
        const nrg_norm_backward_args *k = p->no_norm_args && !rope.k_heads ? NULL : &norm[1];
        return reduce ? nrg_norm_rope_backward_reduce(&p->norm, &p->rope, &rope, q, k, ith, nth)
                      : nrg_norm_rope_backward(&p->norm, &p->rope, &rope, q, k, ith, nth);
    }
    rope.backward = 1;
    nrg_status status = reduce ? NRG_OK : nrg_rope(&p->rope, &rope, ith, nth);
    for (int k = 0; k < 2 && status == NRG_OK; k++) {
        norm[k].d_o = norm[k].dx = all[Q_O + k].at;
        status =
            reduce ? nrg_norm_backward_reduce(&p->norm, &norm[k], ith, nth) : nrg_norm_backward(&p->norm, &norm[k], ith, nth);
    }
    return status;
}

static nrg_status backward(void *context, const call_operand *all, int ith, int nth)
{
    return backward_phase(context, all, 0, ith, nth);
}

static nrg_status reduce(void *context, const call_operand *all, int ith, int nth)
{
    return backward_phase(context, all, 1, ith, nth);
}

/* ---- what both draw ---- */

static void draw_norm(nrg_norm_spec *s, size_t dim, nrg_dtype dtype, uint64_t *state)
{
    static const double eps[] = {1e-5, 1e-6, 1e-12, 0};
    const size_t op = test_draw(state, 3), groups = 1 + test_draw(state, 4);
    *s = op == 0 ? nrg_layer_norm_spec(dim, 0) : op == 1 ? nrg_l2_norm_spec(dim, 0) : nrg_rms_norm_spec(dim, 0);
    s->eps = eps[test_draw(state, 4)];
    if (test_draw(state, 3) == 0)
        s->eps_mode = (nrg_eps_mode)test_draw(state, NRG_EPS_NONE + 1);
    s->dtype = dtype;
    s->w_dtype = test_draw(state, 2) ? NRG_F32 : NRG_DTYPE_SAME;
    s->y_dtype = test_draw(state, 4) ? NRG_DTYPE_SAME : NRG_F32;
    s->r_dtype = test_draw(state, 4) ? NRG_DTYPE_SAME : NRG_F32;
    s->weight_offset = test_draw(state, 3) ? 0 : 1;
    s->groups = dim % groups == 0 && test_draw(state, 2) ? groups : test_draw(state, 2);
    if (test_draw(state, 6) == 0)
        s->activation = (nrg_activation)test_draw(state, NRG_ACT_SOFTPLUS + 1);
}

static void draw_rope(problem *p, size_t dim, nrg_dtype dtype, size_t tokens, uint64_t *state)
{
    nrg_rope_mode mode = modes[test_draw(state, MODES)];
    if (mode == NRG_ROPE_VISION && dim < 4)
        mode = NRG_ROPE_NORMAL;
    const size_t unit = mode == NRG_ROPE_VISION ? 4 : 2, most = dim / unit;
    const size_t units = test_draw(state, 2) ? most : 1 + test_draw(state, most), rotated = units * unit;
    p->rope = nrg_rope_spec_init(2 * units, mode, 10000);
    p->args = nrg_rope_args_init(tokens, dim, NULL);
    p->args.dtype = dtype;
    p->args.offset = test_draw(state, 2) ? test_draw(state, dim - rotated + 1) : 0;
    p->args.table_rows = tokens + test_draw(state, 3);
    for (size_t t = 0; t < tokens; t++)
        p->rows[t] = (int32_t)test_draw(state, p->args.table_rows);
    const size_t heads = 1 + test_draw(state, 9), how = test_draw(state, 6);
    p->args.q_heads = how == 0 ? 0 : heads;
    p->args.k_heads = how == 0 ? heads : how == 1 ? 0 : (heads + 1) / 2;
}

/* The operands that a rotation has. apart: heads and tokens of all have strides of their own, and q and k with their outputs may
 * be slices of one buffer; otherwise all rows are at equal distances. */
static void shared_operands(const problem *p, call_operand *operands, int apart, int positions)
{
    static const char *const names[] = {[Q] = "q", [K] = "k", [Q_O] = "q_o", [K_O] = "k_o"};
    static const int tensors[] = {Q, K, Q_O, K_O};
    for (size_t n = 0; n < 4; n++) {
        const int i = tensors[n], output = i >= Q_O;
        const size_t heads = heads_of(p, i == K || i == K_O);
        operands[i] = (call_operand){.name = names[i],
                                     .type = heads ? (int)p->args.dtype : 0,
                                     .role = output ? CALL_OUTPUT : CALL_INPUT,
                                     .rows = p->args.tokens * heads,
                                     .dim = p->args.dim,
                                     .group = apart ? heads : 0,
                                     .padded = 1,
                                     .turned = apart,
                                     .fused = apart,
                                     .over = output ? CALL_OVER(i == Q_O ? Q : K) : 0};
    }
    operands[TABLE] = (call_operand){.name = "table",
                                     .type = NRG_F32,
                                     .rows = p->args.table_rows,
                                     .dim = 2 * nrg_rope_pairs(&p->rope),
                                     .padded = 1,
                                     .kinds = 1u << ROW_NORMAL};
    operands[ROWS] = (call_operand){
        .name = "positions", .type = positions ? CALL_I32 : 0, .rows = 1, .dim = p->args.tokens, .content = p->rows};
}

static void write_case(char *text, size_t room, const problem *p, uint64_t seed)
{
    const nrg_norm_spec *n = &p->norm;
    snprintf(text, room,
             "centred %d, eps %g mode %d, groups %zu, g %d, mode %d, n_dims %zu of %zu, tokens %zu, heads %zu/%zu, "
             "seed 0x%llx",
             n->centred, n->eps, (int)n->eps_mode, n->groups, (int)n->activation, (int)p->rope.mode, p->rope.n_dims, n->dim,
             p->args.tokens, p->args.q_heads, p->args.k_heads, (unsigned long long)seed);
}

/* What a forward call has: weights of q and k, biases, statistics. */
enum { HAS_W = 1, HAS_B = 2, HAS_STATISTICS = 4 };

static void sweep_forward(problem *p, unsigned has, unsigned kinds, uint64_t seed)
{
    char text[200];
    call_operand operands[FORWARD_OPERANDS];
    shared_operands(p, operands, 1, (int)(seed / 4 % 2));
    operands[Q].kinds = operands[K].kinds = kinds;
    const int w_dtype = (int)(p->norm.w_dtype ? p->norm.w_dtype : p->norm.dtype);
    for (int k = 0; k < 2; k++) {
        const size_t rows = rows_of(p, k);
        const call_operand weight = {
            .name = k ? "k's w or b" : "q's w or b", .rows = 1, .dim = p->norm.dim, .kinds = 1u << ROW_NORMAL};
        const call_operand statistic = {.name = k ? "k's mean or rstd" : "q's mean or rstd",
                                        .role = CALL_OUTPUT,
                                        .type = rows && has & HAS_STATISTICS ? NRG_F32 : 0,
                                        .rows = 1,
                                        .dim = rows * groups_of(p),
                                        .optional = 1};
        operands[Q_W + k] = operands[Q_B + k] = weight;
        operands[Q_W + k].type = rows && has & HAS_W ? w_dtype : 0;
        operands[Q_B + k].type = rows && has & HAS_B ? w_dtype : 0;
        operands[Q_MEAN + k] = operands[Q_RSTD + k] = statistic;
    }
    write_case(text, sizeof text, p, seed);
    const call_case c = {.op = "norm_rope",
                         .text = text,
                         .dtype = p->norm.dtype,
                         .run = {forward},
                         .context = p,
                         .operands = operands,
                         .count = FORWARD_OPERANDS,
                         .work = rows_of(p, 0) + rows_of(p, 1),
                         .seed = seed,
                         .vary = vary};
    call_sweep(&c);
}

static void one_forward(size_t dim, nrg_dtype dtype, uint64_t seed)
{
    static problem p;
    uint64_t state = seed;
    memset(&p, 0, sizeof p);
    draw_norm(&p.norm, dim, dtype, &state);
    draw_rope(&p, dim, dtype, 1 + test_draw(&state, dim < 1000 ? 6 : 3), &state);
    p.no_norm_args = (int)test_draw(&state, 2);
    const size_t features = test_draw(&state, 8);
    sweep_forward(&p, (features ? HAS_W : 0) | (features % 3 == 1 ? HAS_B : 0) | (features < 6 ? HAS_STATISTICS : 0), 0, seed);
}

/* The heads that paths have code of their own for: whole vectors, a weight, not centred; and what that code must hand on: rows
 * that need care among others that do not. */
static void one_served(size_t dim, nrg_dtype dtype, uint64_t seed)
{
    static const unsigned kinds[] = {1u << ROW_NORMAL, 1u << ROW_NORMAL | 1u << ROW_ONE_NAN | 1u << ROW_AT_QUIET_LIMIT,
                                     1u << ROW_NORMAL | 1u << ROW_SUBNORMAL | 1u << ROW_NEAR_MAX | 1u << ROW_ZEROS, 0};
    static problem p;
    uint64_t state = seed;
    memset(&p, 0, sizeof p);
    draw_norm(&p.norm, dim, dtype, &state);
    p.norm.centred = 0;
    p.norm.groups = 0;
    p.norm.activation = NRG_ACT_IDENTITY;
    draw_rope(&p, dim, dtype, 1 + test_draw(&state, 6), &state);
    const size_t unit = p.rope.mode == NRG_ROPE_VISION ? 64 : 32, how = test_draw(&state, 4);
    if (how < 3 && dim >= unit) {
        /* parts of a head that are whole vectors on every path, or on some; all of it half of the time */
        const size_t parts = test_draw(&state, 2) ? dim / unit : 1 + test_draw(&state, dim / unit);
        p.rope.n_dims = parts * 32;
        p.args.offset = test_draw(&state, (dim - parts * unit) / 4 + 1) * 4;
    }
    sweep_forward(&p, HAS_W | (test_draw(&state, 2) ? HAS_STATISTICS : 0), kinds[test_draw(&state, 4)], seed);
}

static void one_backward(size_t dim, nrg_dtype dtype, size_t tokens, uint64_t seed)
{
    static problem p;
    uint64_t state = seed;
    char text[200];
    memset(&p, 0, sizeof p);
    draw_norm(&p.norm, dim, dtype, &state);
    draw_rope(&p, dim, dtype, tokens, &state);
    p.no_norm_args = (int)test_draw(&state, 2);
    p.accumulate = (int)test_draw(&state, 2);
    p.b = (int)test_draw(&state, 2);
    const size_t asked = test_draw(&state, 6), groups = groups_of(&p);
    const int w_dtype = (int)(p.norm.w_dtype ? p.norm.w_dtype : dtype), means = (int)test_draw(&state, 2);
    call_operand operands[BACKWARD_OPERANDS];
    memset(operands, 0, sizeof operands);
    shared_operands(&p, operands, (int)test_draw(&state, 2), (int)test_draw(&state, 2));
    for (int k = 0; k < 2; k++) {
        const size_t rows = rows_of(&p, k);
        call_operand *dx = &operands[Q_O + k];
        dx->group = 0; /* rows of a dx are at equal distances */
        dx->turned = dx->fused = 0;
        operands[Q_X + k] = operands[Q + k];
        operands[Q_X + k].name = k ? "k's x" : "q's x";
        operands[Q_X + k].group = 0;
        operands[Q_X + k].turned = operands[Q_X + k].fused = 0;
        operands[Q_M + k] = (call_operand){
            .name = "mean", .type = rows && means ? NRG_F32 : 0, .rows = 1, .dim = rows * groups, .kinds = 1u << ROW_NORMAL};
        p.dw[k] = asked < 4 && !(asked == 2 && k);
        p.db[k] = asked < 3 && !(asked == 1 && !k);
        operands[Q_DW + k] = (call_operand){.name = k ? "k's dw" : "q's dw",
                                            .role = p.accumulate ? CALL_INOUT : CALL_OUTPUT,
                                            .rows = 1,
                                            .dim = dim,
                                            .kinds = 1u << ROW_NORMAL};
        operands[Q_DB + k] = operands[Q_DW + k];
        operands[Q_DB + k].name = k ? "k's db" : "q's db";
        /* without heads, too, unless there are no args for them */
        operands[Q_DW + k].type = p.dw[k] && (rows || !p.no_norm_args) ? NRG_F32 : 0;
        operands[Q_DB + k].type = p.db[k] && (rows || !p.no_norm_args) ? NRG_F32 : 0;
    }
    /* w of q and of k, then b of q and of k */
    operands[WEIGHTS] = (call_operand){
        .name = "w and b", .type = test_draw(&state, 5) ? w_dtype : 0, .rows = 4, .dim = dim, .kinds = 1u << ROW_NORMAL};
    operands[WORKSPACE] = (call_operand){.name = "workspace",
                                         .role = CALL_SCRATCH,
                                         .type = all_workspace_words(&p, 1) ? CALL_F64 : 0,
                                         .scratch = all_workspace_words};
    write_case(text, sizeof text, &p, seed);
    const call_case c = {.op = "norm_rope_backward",
                         .text = text,
                         .dtype = dtype,
                         .run = {backward, reduce},
                         .context = &p,
                         .operands = operands,
                         .count = BACKWARD_OPERANDS,
                         .work = rows_of(&p, 0) + rows_of(&p, 1),
                         .seed = seed,
                         .vary = vary};
    call_sweep(&c);
}

/* ---- the sweeps ---- */

enum { DIMS = 192, CHUNK = 16, CHUNKS = DIMS / CHUNK, SERVED = 16 };

static int takes_part(size_t dim) { return dim > 1 && (!test_small() || dim <= 24 || dim % 31 < 2); }

START_TEST(forward_dims)
{
    const int cases = test_small() ? 2 : 3;
    for (size_t dim = (size_t)_i * CHUNK + 1; dim <= ((size_t)_i + 1) * CHUNK; dim++)
        for (size_t d = 0; d < DTYPES && takes_part(dim); d++)
            for (int i = 0; i < cases; i++)
                one_forward(dim, dtypes[d], test_mix((dim * 8 + d) * 64 + (size_t)i));
}
END_TEST

START_TEST(served)
{
    const int cases = test_small() ? 1 : 8;
    const size_t dim = ((size_t)_i + 1) * 32;
    for (size_t d = 0; d < DTYPES && !(test_small() && _i > 3 && _i != 7 && _i != SERVED - 1); d++)
        for (int i = 0; i < (dim <= 128 ? 2 * cases : cases); i++)
            one_served(dim, dtypes[d], test_mix((dim * 8 + d) * 64 + (size_t)i + 9));
}
END_TEST

START_TEST(backward_dims)
{
    const int cases = 2;
    for (size_t dim = (size_t)_i * CHUNK + 1; dim <= ((size_t)_i + 1) * CHUNK; dim++)
        for (size_t d = 0; d < DTYPES && takes_part(dim); d++)
            for (int i = 0; i < cases; i++) {
                const uint64_t seed = test_mix((dim * 8 + d) * 64 + (size_t)i + 32);
                /* some of them with more rows than a block of the sums has */
                one_backward(dim, dtypes[d], 1 + seed % (dim < 60 ? 30 : 5), seed);
            }
}
END_TEST

/* Rows that fill the place between the norm and the rotation, or do not fit there, and rows that a norm treats as long ones. */
static const size_t long_dims[] = {504, 512, 513, 1000, 1023, 1024, 1025, 1026, 1500, 2047, 2048, 2049, 2050, 3000, 4096, 4099};
enum { LONG_DIMS = sizeof long_dims / sizeof long_dims[0] };

START_TEST(long_rows)
{
    const int cases = test_small() ? 1 : 2;
    for (size_t d = 0; d < DTYPES && !(test_small() && (d + (size_t)_i) % DTYPES); d++)
        for (int i = 0; i < cases; i++) {
            const uint64_t seed = test_mix(((size_t)_i * 8 + d) * 64 + (size_t)i + 11);
            one_forward(long_dims[_i], dtypes[d], seed);
            one_backward(long_dims[_i], dtypes[d], 1 + seed % 3, seed);
        }
}
END_TEST

/* More rows than 64 blocks of the least size hold: blocks become longer. */
START_TEST(many_rows)
{
    const uint64_t seed = test_mix((uint64_t)_i + 5);
    if (test_small() && _i)
        return;
    one_backward(6 + seed % 5, dtypes[_i % DTYPES], TOKENS_MOST - seed % 20, seed);
}
END_TEST

START_TEST(accounts)
{
    call_check_account("norm_rope");
    call_check_account("norm_rope_backward");
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    call_start();
    Suite *suite = suite_create("norm_rope: the two calls in one");
    tcase_add_loop_test(test_case(suite, "forward"), forward_dims, 0, CHUNKS);
    tcase_add_loop_test(test_case(suite, "whole vectors"), served, 0, SERVED);
    tcase_add_loop_test(test_case(suite, "backward"), backward_dims, 0, CHUNKS);
    tcase_add_loop_test(test_case(suite, "long rows"), long_rows, 0, LONG_DIMS);
    tcase_add_loop_test(test_case(suite, "many rows"), many_rows, 0, 12);
    tcase_add_test(test_case(suite, "account"), accounts);
    return test_run(suite);
}
