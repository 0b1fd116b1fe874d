/* nrg_embed_forward, nrg_embed_norm_forward and nrg_embed_backward: every path gives the bits of scalar, whatever may not change
 * one, and touches nothing else. Fused is what the calls give in turn, and shares of the gradient are of equal work.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/call_harness.h"
#include "../harness/element.h"

static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};

static void choose(nrg_isa isa) { ck_assert_int_eq(nrg_isa_set(isa), NRG_OK); }

static float draw_scale(uint64_t *state)
{
    static const float scales[] = {0, 0, 1, 27.712813f, -2, 0x1p-100f, 0x1p120f};
    return scales[test_draw(state, sizeof scales / sizeof scales[0])];
}

/* Lengths: all short ones, then some around steps, pieces and lines. */
static const size_t long_dims[] = {191, 192, 193, 255, 256, 257, 320, 511, 512, 513, 577, 640, 1000, 1030, 1100};
enum { SHORT_DIMS = 140, LONG_DIMS = sizeof long_dims / sizeof long_dims[0], DIMS = SHORT_DIMS + LONG_DIMS };
enum { CHUNK = 31, CHUNKS = (DIMS + CHUNK - 1) / CHUNK };

static size_t dim_at(size_t i) { return i < SHORT_DIMS ? i + 1 : long_dims[i - SHORT_DIMS]; }

/* Small scale: few of the lengths, of every kind. */
static int takes_part(size_t i) { return !test_small() || i % 11 == 0 || (i < 34 && i % 4 == 0); }

/* ---- forward, alone and with the norm ---- */

enum { X, W, B, TABLE, IDS = TABLE + NRG_EMBED_TABLES, O = IDS + NRG_EMBED_TABLES, R, MEAN, RSTD, FORWARD_OPERANDS };

typedef struct forward_case {
    nrg_embed_args args; /* without pointers and strides; the tables with rows, first and scale */
    nrg_norm_spec spec;
    int with_norm;
    call_operand operand[FORWARD_OPERANDS];
    char text[200];
} forward_case;

static nrg_embed_args embed_args(const forward_case *f, const call_operand *all)
{
    nrg_embed_args args = f->args;
    args.x = all[X].at;
    args.x_stride = all[X].stride;
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        args.tables[k].table = all[TABLE + k].at;
        args.tables[k].stride = all[TABLE + k].stride;
        args.tables[k].ids = all[IDS + k].at;
    }
    return args;
}

static nrg_status run_forward(void *context, const call_operand *all, int ith, int nth)
{
    nrg_embed_args args = embed_args(context, all);
    args.o = all[O].at;
    args.o_stride = all[O].stride;
    return nrg_embed_forward(&args, ith, nth);
}

static nrg_status run_norm(void *context, const call_operand *all, int ith, int nth)
{
    const forward_case *f = context;
    nrg_embed_args args = embed_args(f, all);
    nrg_norm_args norm = nrg_norm_args_init(args.rows, NULL, all[O].at);
    norm.o_stride = all[O].stride;
    norm.w = all[W].at;
    norm.b = all[B].at;
    norm.r = all[R].at;
    norm.r_stride = all[R].stride;
    norm.mean = all[MEAN].at;
    norm.rstd = all[RSTD].at;
    return nrg_embed_norm_forward(&args, &f->spec, &norm, ith, nth);
}

static void vary_forward(void *context, uint64_t draw)
{
    forward_case *f = context;
    f->args.store = f->spec.store = (nrg_store)(draw % 3);
}

static void draw_norm(forward_case *f, nrg_dtype dtype, size_t rows, size_t dim, uint64_t *state)
{
    const size_t kind = test_draw(state, 3), groups = 1 + test_draw(state, 4);
    f->spec = kind == 0 ? nrg_layer_norm_spec(dim, 1e-12) : kind == 1 ? nrg_rms_norm_spec(dim, 1e-6) : nrg_l2_norm_spec(dim, 0);
    f->spec.dtype = dtype;
    if (test_draw(state, 4) == 0)
        f->spec.eps_mode = (nrg_eps_mode)test_draw(state, NRG_EPS_NONE + 1);
    f->spec.w_dtype = test_draw(state, 2) ? NRG_F32 : NRG_DTYPE_SAME;
    f->spec.r_dtype = test_draw(state, 3) ? NRG_DTYPE_SAME : NRG_F32;
    f->spec.weight_offset = test_draw(state, 4) ? 0 : 1;
    f->spec.groups = dim % groups == 0 ? groups : 0;
    f->spec.activation = test_draw(state, 4) ? NRG_ACT_IDENTITY : (nrg_activation)test_draw(state, NRG_ACT_SOFTPLUS + 1);
    const int w_type = (int)(f->spec.w_dtype ? f->spec.w_dtype : dtype);
    const size_t sets = rows * (f->spec.groups ? f->spec.groups : 1);
    if (test_draw(state, 4))
        f->operand[W] = (call_operand){.name = "w", .type = w_type, .rows = 1, .dim = dim, .kinds = 1u << ROW_NORMAL};
    if (test_draw(state, 2))
        f->operand[B] = (call_operand){.name = "b", .type = w_type, .rows = 1, .dim = dim, .kinds = 1u << ROW_NORMAL};
    f->operand[R] = (call_operand){.name = "r",
                                   .role = CALL_OUTPUT,
                                   .type = (int)(f->spec.r_dtype ? f->spec.r_dtype : dtype),
                                   .rows = rows,
                                   .dim = dim,
                                   .padded = 1,
                                   .optional = 1,
                                   .over = CALL_OVER(X)};
    f->operand[MEAN] =
        (call_operand){.name = "mean", .role = CALL_OUTPUT, .type = NRG_F32, .rows = 1, .dim = sets, .optional = 1};
    f->operand[RSTD] =
        (call_operand){.name = "rstd", .role = CALL_OUTPUT, .type = NRG_F32, .rows = 1, .dim = sets, .optional = 1};
}

/* terms: which of the tables there are, and with bit NRG_EMBED_TABLES x. */
static void make_forward(forward_case *f, nrg_dtype dtype, size_t rows, size_t dim, unsigned terms, size_t table_rows,
                         int with_norm, uint64_t seed)
{
    static const char *const tables[] = {"table 0", "table 1", "table 2"}, *const ids[] = {"ids 0", "ids 1", "ids 2"};
    uint64_t state = seed;
    memset(f, 0, sizeof *f);
    f->args = nrg_embed_args_init(rows, dim, NULL);
    f->args.dtype = dtype;
    f->args.table_dtype = test_draw(&state, 2) ? NRG_F32 : NRG_DTYPE_SAME;
    f->with_norm = with_norm;
    if (terms >> NRG_EMBED_TABLES & 1)
        f->operand[X] = (call_operand){.name = "x", .type = (int)dtype, .rows = rows, .dim = dim, .padded = 1, .fused = 1};
    for (int k = 0; k < NRG_EMBED_TABLES; k++) {
        nrg_embed_table *t = &f->args.tables[k];
        if (!(terms >> k & 1))
            continue;
        const int counted = test_draw(&state, 3) == 0;
        t->rows = table_rows + (counted ? rows : 0);
        t->first = counted ? (int32_t)test_draw(&state, table_rows + 1) : 0;
        t->scale = draw_scale(&state);
        f->operand[TABLE + k] = (call_operand){.name = tables[k],
                                               .type = (int)(f->args.table_dtype ? f->args.table_dtype : dtype),
                                               .rows = t->rows,
                                               .dim = dim,
                                               .padded = 1};
        if (!counted)
            f->operand[IDS + k] =
                (call_operand){.name = ids[k], .type = CALL_I32, .rows = 1, .dim = rows, .below = (int)table_rows};
    }
    f->operand[O] = (call_operand){.name = "o",
                                   .role = CALL_OUTPUT,
                                   .type = (int)dtype,
                                   .rows = rows,
                                   .dim = dim,
                                   .padded = 1,
                                   .fused = 1,
                                   .over = CALL_OVER(X)};
    if (with_norm)
        draw_norm(f, dtype, rows, dim, &state);
    snprintf(f->text, sizeof f->text, "%zu tokens of %zu, terms 0x%x, table dtype %s, norm %d, seed 0x%llx", rows, dim, terms,
             nrg_dtype_name(f->args.table_dtype), with_norm, (unsigned long long)seed);
}

static void sweep_forward(forward_case *f, int layouts, uint64_t seed)
{
    const call_case c = {.op = f->with_norm ? "embed_norm" : "embed",
                         .text = f->text,
                         .dtype = f->args.dtype,
                         .run = {f->with_norm ? run_norm : run_forward},
                         .context = f,
                         .operands = f->operand,
                         .count = FORWARD_OPERANDS,
                         .layouts = layouts,
                         .seed = seed,
                         .vary = vary_forward};
    call_sweep(&c);
}

START_TEST(forward)
{
    enum { TERMS = 1 << (NRG_EMBED_TABLES + 1) };
    for (size_t i = (size_t)_i * CHUNK; i < ((size_t)_i + 1) * CHUNK && i < DIMS; i++)
        for (size_t d = 0; d < 3 && takes_part(i); d++)
            for (int n = 0; n < (test_small() ? 3 : 6); n++) {
                const uint64_t seed = test_mix((i * 4 + d) * 64 + (uint64_t)n);
                uint64_t state = seed;
                forward_case f;
                make_forward(&f, dtypes[d], 1 + test_draw(&state, 9), dim_at(i), 1 + (unsigned)test_draw(&state, TERMS - 1),
                             1 + test_draw(&state, 20), n % 2, seed);
                sweep_forward(&f, 2, seed);
            }
}
END_TEST

/* Calls that are streamed, with tables that no L2 holds, and many turns of the fused call: rows of half a turn, of a few to a
 * turn, of more than a turn. */
START_TEST(large_forward)
{
    static const size_t shapes[][2] = {{600, 1000}, {20, 9000}, {3, 33003}};
    const nrg_dtype dtype = dtypes[_i % 3];
    const size_t rows = test_small() && _i / 3 == 0 ? 70 : shapes[_i / 3][0], dim = shapes[_i / 3][1];
    for (int with_norm = 0; with_norm < 2; with_norm++)
        for (unsigned terms = 1; terms < 16; terms += 6) {
            forward_case f;
            const uint64_t seed = test_mix(terms * 64 + (unsigned)_i);
            if (test_small() && terms != 7)
                continue;
            make_forward(&f, dtype, rows, dim, terms, rows + 70, with_norm, seed);
            f.args.table_dtype = terms == 7 ? NRG_F32 : NRG_DTYPE_SAME;
            for (int k = 0; k < NRG_EMBED_TABLES; k++)
                if (f.operand[TABLE + k].type)
                    f.operand[TABLE + k].type = terms == 7 ? NRG_F32 : (int)dtype;
            sweep_forward(&f, 1, seed);
        }
}
END_TEST

/* One call, against the two in turn. */
START_TEST(fused_is_the_calls_in_turn)
{
    enum { ROWS = 37, DIM = 1000, TABLE_ROWS = 20 };
    static float tables[3][TABLE_ROWS * DIM], x[ROWS * DIM], w[DIM], b[DIM], o[2][ROWS * DIM], r[2][ROWS * DIM], mean[2][ROWS],
        rstd[2][ROWS];
    static int32_t ids[3][ROWS];
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    row_fill(w, DIM, ROW_NORMAL, NRG_F32, 1);
    row_fill(b, DIM, ROW_NORMAL, NRG_F32, 2);
    for (size_t d = 0; d < 3; d++) {
        uint64_t state = d;
        for (size_t i = 0; i < ROWS * (size_t)DIM; i++)
            element_set(x, i, dtypes[d], (float)test_draw(&state, 2001) / 500 - 2);
        for (int k = 0; k < 3; k++) {
            for (size_t i = 0; i < TABLE_ROWS * (size_t)DIM; i++)
                element_set(tables[k], i, dtypes[d], (float)test_draw(&state, 2001) / 500 - 2);
            for (size_t t = 0; t < ROWS; t++)
                ids[k][t] = (int32_t)test_draw(&state, TABLE_ROWS);
        }
        for (size_t p = 0; p < path_count; p++)
            for (unsigned n = 0; n < 16; n++) {
                nrg_embed_args args = nrg_embed_args_init(ROWS, DIM, NULL);
                args.dtype = dtypes[d];
                for (int k = 0; k < 3; k++)
                    args.tables[k] = nrg_embed_by_ids(tables[k], TABLE_ROWS, ids[k]);
                if (n & 1)
                    args.x = x;
                nrg_norm_spec spec = n & 2 ? nrg_layer_norm_spec(DIM, 1e-12) : nrg_rms_norm_spec(DIM, 1e-6);
                spec.dtype = dtypes[d];
                spec.w_dtype = NRG_F32;
                spec.r_dtype = n & 4 ? NRG_F32 : NRG_DTYPE_SAME;
                spec.activation = n & 8 ? NRG_ACT_GELU : NRG_ACT_IDENTITY;
                nrg_norm_args norm = nrg_norm_args_init(ROWS, NULL, o[0]);
                norm.w = w;
                norm.b = b;
                norm.r = r[0];
                norm.mean = mean[0];
                norm.rstd = rstd[0];
                choose(paths[p]);
                memset(o, 0xff, sizeof o);
                memset(r, 0xff, sizeof r);
                ck_assert_int_eq(nrg_embed_norm_forward(&args, &spec, &norm, 0, 1), NRG_OK);
                args.o = o[1];
                ck_assert_int_eq(nrg_embed_forward(&args, 0, 1), NRG_OK);
                norm = nrg_norm_args_init(ROWS, o[1], o[1]);
                norm.w = w;
                norm.b = b;
                norm.r = r[1];
                norm.mean = mean[1];
                norm.rstd = rstd[1];
                ck_assert_int_eq(nrg_norm_forward(&spec, &norm, 0, 1), NRG_OK);
                ck_assert_mem_eq(o[0], o[1], sizeof o[0]);
                ck_assert_mem_eq(r[0], r[1], sizeof r[0]);
                ck_assert_mem_eq(mean[0], mean[1], sizeof mean[0]);
                ck_assert_mem_eq(rstd[0], rstd[1], sizeof rstd[0]);
            }
    }
}
END_TEST

/* ---- backward ---- */

enum { D_O, B_IDS, D_TABLE, WORKSPACE, BACKWARD_OPERANDS };

typedef struct backward_case {
    nrg_embed_backward_args args; /* without pointers and strides */
    call_operand operand[BACKWARD_OPERANDS];
    int32_t *ids;
    char text[200];
} backward_case;

static nrg_embed_backward_args backward_args(const backward_case *b, const call_operand *all)
{
    nrg_embed_backward_args args = b->args;
    args.d_o = all[D_O].at;
    args.d_o_stride = all[D_O].stride;
    args.ids = all[B_IDS].at;
    args.d_table = all[D_TABLE].at;
    args.d_table_stride = all[D_TABLE].stride;
    args.workspace = all[WORKSPACE].at;
    args.workspace_size = all[WORKSPACE].dim * 8;
    return args;
}

static nrg_status run_order(void *context, const call_operand *all, int ith, int nth)
{
    const nrg_embed_backward_args args = backward_args(context, all);
    (void)nth;
    return ith == 0 ? nrg_embed_backward_order(&args) : NRG_OK;
}

static nrg_status run_backward(void *context, const call_operand *all, int ith, int nth)
{
    const nrg_embed_backward_args args = backward_args(context, all);
    return nrg_embed_backward(&args, ith, nth);
}

static void vary_backward(void *context, uint64_t draw) { ((backward_case *)context)->args.store = (nrg_store)(draw % 3); }

static void sweep_backward(nrg_dtype dtype, size_t rows, size_t dim, size_t table_rows, int layouts, uint64_t seed)
{
    uint64_t state = seed;
    backward_case b;
    memset(&b, 0, sizeof b);
    const size_t kind = test_draw(&state, 4), some = test_draw(&state, table_rows);
    const int counted = kind == 0;
    b.args = nrg_embed_backward_args_init(rows, dim, NULL, table_rows, NULL);
    b.args.dtype = dtype;
    b.args.table_dtype = test_draw(&state, 2) ? NRG_F32 : NRG_DTYPE_SAME;
    b.args.accumulate = (int)test_draw(&state, 2);
    b.args.scale = draw_scale(&state);
    b.operand[D_O] = (call_operand){.name = "d_o", .type = (int)dtype, .rows = rows, .dim = dim, .padded = 1};
    if (counted) {
        b.args.table_rows += rows;
        b.args.first = (int32_t)test_draw(&state, table_rows + 1);
    } else {
        /* any; all one; nearly all one */
        b.ids = malloc(rows * sizeof *b.ids);
        ck_assert_ptr_nonnull(b.ids);
        for (size_t t = 0; t < rows; t++)
            b.ids[t] = (int32_t)(kind == 1 || (kind == 2 && test_draw(&state, 8) == 0) ? test_draw(&state, table_rows) : some);
        size_t bytes;
        b.args.ids = b.ids;
        ck_assert_int_eq(nrg_embed_backward_workspace(&b.args, &bytes), NRG_OK);
        b.operand[B_IDS] = (call_operand){.name = "ids", .type = CALL_I32, .rows = 1, .dim = rows, .content = b.ids};
        b.operand[WORKSPACE] =
            (call_operand){.name = "workspace", .role = CALL_SCRATCH, .type = CALL_I64, .rows = 1, .dim = bytes / 8};
    }
    b.operand[D_TABLE] = (call_operand){.name = "d_table",
                                        .role = b.args.accumulate ? CALL_INOUT : CALL_OUTPUT,
                                        .type = (int)(b.args.table_dtype ? b.args.table_dtype : dtype),
                                        .rows = b.args.table_rows,
                                        .dim = dim,
                                        .padded = 1};
    snprintf(b.text, sizeof b.text, "%zu tokens of %zu, table of %zu, ids %zu, accumulate %d, seed 0x%llx", rows, dim,
             b.args.table_rows, kind, b.args.accumulate, (unsigned long long)seed);
    const call_case c = {.op = "embed_backward",
                         .text = b.text,
                         .dtype = dtype,
                         .run = {run_order, run_backward},
                         .context = &b,
                         .operands = b.operand,
                         .count = BACKWARD_OPERANDS,
                         .work = (rows + b.args.table_rows) * ((dim + 63) / 64),
                         .layouts = layouts,
                         .seed = seed,
                         .vary = vary_backward};
    call_sweep(&c);
    free(b.ids);
}

START_TEST(backward)
{
    for (size_t i = (size_t)_i * CHUNK; i < ((size_t)_i + 1) * CHUNK && i < DIMS; i++)
        for (size_t d = 0; d < 3 && takes_part(i); d++)
            for (int n = 0; n < (test_small() ? 3 : 6); n++) {
                const uint64_t seed = test_mix((i * 4 + d) * 64 + (uint64_t)n + 7);
                uint64_t state = seed;
                const size_t table_rows = 1 + test_draw(&state, n % 2 ? 3 : 30), rows = 1 + test_draw(&state, n % 3 ? 12 : 40);
                sweep_backward(dtypes[d], rows, dim_at(i), table_rows, 2, test_mix(seed));
            }
}
END_TEST

/* Streamed. */
START_TEST(large_backward)
{
    for (uint64_t n = 0; n < (test_small() ? 2 : 6); n++)
        sweep_backward(dtypes[_i], test_small() ? 100 : 300, 1000, test_small() ? 90 : 900, 1, test_mix((unsigned)_i * 8 + n));
}
END_TEST

/* Terms so large that what is small is lost in double beside them, and shows again where they cancel: another order of the tokens
 * gives another sum. */
START_TEST(order_of_the_sum)
{
    enum { ROWS = 150, DIM = 70, TABLE_ROWS = 3 };
    static float d_o[ROWS * DIM], d_table[TABLE_ROWS * DIM];
    static int32_t ids[ROWS];
    static uint64_t workspace[ROWS];
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    for (size_t p = 0; p < path_count; p++)
        for (uint64_t n = 0; n < 10; n++) {
            uint64_t state = test_mix(n);
            for (size_t t = 0; t < ROWS; t++) {
                ids[t] = (int32_t)test_draw(&state, TABLE_ROWS);
                for (size_t i = 0; i < DIM; i++) {
                    static const float values[] = {0x1p60f, -0x1p60f, 1, 3, -0x1p59f};
                    d_o[t * DIM + i] = values[test_draw(&state, 5)];
                }
            }
            nrg_embed_backward_args args = nrg_embed_backward_args_init(ROWS, DIM, d_o, TABLE_ROWS, d_table);
            args.ids = ids;
            args.workspace = workspace;
            args.workspace_size = sizeof workspace;
            choose(paths[p]);
            ck_assert_int_eq(nrg_embed_backward_order(&args), NRG_OK);
            for (int ith = 2; ith >= 0; ith--)
                ck_assert_int_eq(nrg_embed_backward(&args, ith, 3), NRG_OK);
            for (int32_t k = 0; k < TABLE_ROWS; k++)
                for (size_t i = 0; i < DIM; i++) {
                    double sum = 0;
                    for (size_t t = 0; t < ROWS; t++)
                        sum += ids[t] == k ? (double)d_o[t * DIM + i] : 0;
                    if (d_table[(size_t)k * DIM + i] != (float)sum)
                        ck_abort_msg("%s: row %d, column %zu is %g and not %g", nrg_isa_name(paths[p]), (int)k, i,
                                     (double)d_table[(size_t)k * DIM + i], sum);
                }
        }
}
END_TEST

/* A table of two rows, and one of many in which two have most of the tokens: each share writes as much as the others, but for
 * what does not divide. */
START_TEST(equal_shares)
{
    enum { ROWS = 1000, DIM = 1024, MANY = 300, NTH = 8 };
    static float d_o[ROWS * DIM], d_table[MANY * DIM];
    static int32_t ids[ROWS];
    static uint64_t workspace[ROWS];
    for (size_t i = 0; i < ROWS * (size_t)DIM; i++)
        d_o[i] = 1;
    for (size_t table_rows = 2; table_rows <= MANY; table_rows += MANY - 2) {
        for (int32_t t = 0; t < ROWS; t++)
            ids[t] = t % 10 ? t % 2 : t % (int32_t)table_rows;
        nrg_embed_backward_args args = nrg_embed_backward_args_init(ROWS, DIM, d_o, table_rows, d_table);
        args.ids = ids;
        args.workspace = workspace;
        args.workspace_size = sizeof workspace;
        ck_assert_int_eq(nrg_embed_backward_order(&args), NRG_OK);
        for (int ith = 0; ith < NTH; ith++) {
            double work = 0;
            for (size_t i = 0; i < table_rows * DIM; i++)
                d_table[i] = -1;
            ck_assert_int_eq(nrg_embed_backward(&args, ith, NTH), NRG_OK);
            for (size_t i = 0; i < table_rows * DIM; i++)
                work += d_table[i] + 1; /* the tokens that were added up, and one for what was written */
            const double fair = (double)(ROWS + table_rows) * DIM / NTH, most = (ROWS / 2.0 + 50) * 64;
            if (work < fair - most || work > fair + most)
                ck_abort_msg("table of %zu, share %d: %.0f of work, where %.0f would be fair", table_rows, ith, work, fair);
        }
    }
}
END_TEST

START_TEST(sweeps_met_everything)
{
    call_check_account("embed");
    call_check_account("embed_norm");
    call_check_account("embed_backward");
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    call_start();
    Suite *suite = suite_create("embed and embed_backward");
    TCase *sweeps = test_case(suite, "paths against scalar");
    tcase_add_loop_test(sweeps, forward, 0, CHUNKS);
    tcase_add_loop_test(sweeps, backward, 0, CHUNKS);
    tcase_add_loop_test(sweeps, large_forward, 0, 9);
    tcase_add_loop_test(sweeps, large_backward, 0, 3);
    tcase_add_test(sweeps, sweeps_met_everything);
    TCase *properties = test_case(suite, "properties");
    tcase_add_test(properties, fused_is_the_calls_in_turn);
    tcase_add_test(properties, order_of_the_sum);
    tcase_add_test(properties, equal_shares);
    return test_run(suite);
}
