/* Rotations and tables of positions: every path gives the bits of scalar, whatever the mode, the shape, and the way q and k lie.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/call_harness.h"

static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};
enum { DTYPES = 3 };

static const nrg_rope_mode modes[] = {NRG_ROPE_NORMAL, NRG_ROPE_NEOX, NRG_ROPE_MROPE, NRG_ROPE_VISION, NRG_ROPE_IMROPE};
enum { MODES = 5 };

/* ---- the rotation ---- */

enum { Q, K, TABLE, ROWS, Q_O, K_O, OPERANDS };
enum { TOKENS_MOST = 64 };

typedef struct rotation {
    nrg_rope_spec spec;
    nrg_rope_args args;
    int32_t rows[TOKENS_MOST]; /* of the table, for each token */
} rotation;

static nrg_status rotate(void *context, const call_operand *all, int ith, int nth)
{
    const rotation *r = context;
    nrg_rope_args args = r->args;
    args.table = all[TABLE].at;
    args.table_stride = all[TABLE].stride;
    args.positions = all[ROWS].at;
    args.q = all[Q].at;
    args.q_head_stride = all[Q].stride;
    args.q_token_stride = all[Q].group_stride;
    args.k = all[K].at;
    args.k_head_stride = all[K].stride;
    args.k_token_stride = all[K].group_stride;
    args.q_o = all[Q_O].at;
    args.q_o_head_stride = all[Q_O].stride;
    args.q_o_token_stride = all[Q_O].group_stride;
    args.k_o = all[K_O].at;
    args.k_o_head_stride = all[K_O].stride;
    args.k_o_token_stride = all[K_O].group_stride;
    return nrg_rope(&r->spec, &args, ith, nth);
}

static void vary_store(void *context, uint64_t draw)
{
    rotation *r = context;
    r->args.store = (nrg_store)(draw / 2 % (NRG_STORE_STREAM + 1));
}

/* Tokens' rows of the table: in order, in reverse, all the same, or any. */
static void draw_rows(rotation *r, uint64_t state)
{
    const size_t how = test_draw(&state, 4), tokens = r->args.tokens;
    for (size_t t = 0; t < tokens; t++)
        r->rows[t] = (int32_t)(how == 0   ? t
                               : how == 1 ? tokens - 1 - t
                               : how == 2 ? tokens / 2
                                          : test_draw(&state, r->args.table_rows));
}

static void rotate_everywhere(rotation *r, nrg_dtype dtype, int positions, int layouts, uint64_t seed)
{
    const nrg_rope_args *a = &r->args;
    const size_t pairs = nrg_rope_pairs(&r->spec), table_rows = a->table_rows ? a->table_rows : a->tokens;
    char text[160];
    const call_operand tensor = {.type = (int)dtype, .dim = a->dim, .padded = 1, .turned = 1, .fused = 1};
    call_operand operands[OPERANDS];
    for (int i = 0; i < OPERANDS; i++) {
        const size_t heads = i == Q || i == Q_O ? a->q_heads : a->k_heads;
        operands[i] = tensor;
        operands[i].type = heads ? (int)dtype : 0;
        operands[i].rows = a->tokens * heads;
        operands[i].group = heads;
        operands[i].role = i >= Q_O ? CALL_OUTPUT : CALL_INPUT;
        operands[i].over = i == Q_O ? CALL_OVER(Q) : i == K_O ? CALL_OVER(K) : 0;
        operands[i].name = i == Q ? "q" : i == K ? "k" : i == Q_O ? "q_o" : "k_o";
    }
    operands[TABLE] = (call_operand){.name = "table", .type = NRG_F32, .rows = table_rows, .dim = 2 * pairs, .padded = 1};
    operands[ROWS] =
        (call_operand){.name = "positions", .type = positions ? CALL_I32 : 0, .rows = 1, .dim = a->tokens, .content = r->rows};
    snprintf(text, sizeof text, "mode %d, n_dims %zu of %zu from %zu, tokens %zu, heads %zu and %zu%s%s, seed 0x%llx",
             (int)r->spec.mode, r->spec.n_dims, a->dim, a->offset, a->tokens, a->q_heads, a->k_heads,
             positions ? ", positions" : "", a->backward ? ", backward" : "", (unsigned long long)seed);
    r->args.dtype = dtype;
    const call_case c = {.op = "rope",
                         .text = text,
                         .dtype = dtype,
                         .run = {rotate},
                         .context = r,
                         .operands = operands,
                         .count = OPERANDS,
                         .work = a->tokens * (a->q_heads + a->k_heads),
                         .layouts = layouts,
                         .seed = seed,
                         .vary = vary_store};
    call_sweep(&c);
}

/* Heads of q and k: as many, fewer of k (grouped queries), or only one of them. */
static void draw_heads(nrg_rope_args *a, uint64_t *state)
{
    const size_t heads = 1 + test_draw(state, 9), how = test_draw(state, 6);
    a->q_heads = how == 0 ? 0 : heads;
    a->k_heads = how == 0 ? heads : how == 1 ? 0 : how == 2 ? heads : (heads + 3) / 4;
}

static void rotate_one(size_t dim, nrg_dtype dtype, uint64_t seed, int layouts)
{
    uint64_t state = seed;
    rotation r;
    memset(&r, 0, sizeof r);
    nrg_rope_mode mode = modes[test_draw(&state, MODES)];
    if (mode == NRG_ROPE_VISION && dim < 4)
        mode = NRG_ROPE_NEOX;
    const size_t unit = mode == NRG_ROPE_VISION ? 4 : 2, most = dim / unit;
    const size_t units = test_draw(&state, 2) ? most : 1 + test_draw(&state, most), rotated = units * unit;
    r.spec = nrg_rope_spec_init(2 * units, mode, 10000);
    r.args = nrg_rope_args_init(1 + test_draw(&state, 7), dim, NULL);
    r.args.offset = test_draw(&state, 2) ? test_draw(&state, dim - rotated + 1) : 0;
    r.args.backward = (int)test_draw(&state, 2);
    draw_heads(&r.args, &state);
    const int positions = (int)test_draw(&state, 2);
    if (test_draw(&state, 2)) {
        r.args.table_rows = r.args.tokens + test_draw(&state, 5);
        draw_rows(&r, state);
    } else {
        r.args.table_rows = r.args.tokens;
        draw_rows(&r, state);
        r.args.table_rows = 0;
    }
    rotate_everywhere(&r, dtype, positions, layouts, seed);
}

enum { DIMS = 300, CHUNK = 10, CHUNKS = DIMS / CHUNK };

START_TEST(every_dim)
{
    const int cases = test_small() ? 2 : 5;
    for (size_t dim = (size_t)_i * CHUNK + 1; dim <= ((size_t)_i + 1) * CHUNK; dim++)
        for (size_t d = 0; d < DTYPES && dim > 1 && !(test_small() && dim > 40 && dim % 7); d++)
            for (int i = 0; i < cases; i++)
                rotate_one(dim, dtypes[d], test_mix((dim * 8 + d) * 64 + (size_t)i), 0);
}
END_TEST

/* Heads of whole steps of all paths, which may be stored past the cache; and the sizes around them. */
static const size_t long_dims[] = {64, 128, 192, 256, 258, 384, 512, 514, 1000, 1024, 2048, 2600};
enum { LONG_DIMS = sizeof long_dims / sizeof long_dims[0] };

START_TEST(whole_steps)
{
    const int cases = test_small() ? 2 : 12;
    for (size_t d = 0; d < DTYPES; d++)
        for (int i = 0; i < cases; i++) {
            const uint64_t seed = test_mix(((size_t)_i * 8 + d) * 64 + (size_t)i + 7);
            uint64_t state = seed;
            rotation r;
            memset(&r, 0, sizeof r);
            r.spec = nrg_rope_spec_init(long_dims[_i], modes[i % 2], 10000);
            r.args = nrg_rope_args_init(1 + test_draw(&state, 20), long_dims[_i], NULL);
            r.args.backward = i / 2 % 2;
            draw_heads(&r.args, &state);
            r.args.table_rows = r.args.tokens;
            draw_rows(&r, state);
            rotate_everywhere(&r, dtypes[d], i / 4 % 2, 0, seed);
        }
}
END_TEST

/* ---- tables ---- */

enum { FREQUENCIES, POSITIONS, OUT, TABLE_OPERANDS };
enum { PAIRS_MOST = 160, AXES = 4 };

typedef struct table {
    nrg_rope_spec spec;
    nrg_rope_table_args rope;
    nrg_sinusoidal_args sinusoidal;
    double frequencies[2 * PAIRS_MOST];
    int32_t positions[AXES * TOKENS_MOST];
} table;

static nrg_status rope_table(void *context, const call_operand *all, int ith, int nth)
{
    const table *t = context;
    nrg_rope_table_args args = t->rope;
    args.frequencies = all[FREQUENCIES].at;
    args.positions = all[POSITIONS].at;
    args.positions_stride = all[POSITIONS].stride;
    args.table = all[OUT].at;
    args.table_stride = all[OUT].stride;
    return nrg_rope_table(&t->spec, &args, ith, nth);
}

static nrg_status sinusoidal_table(void *context, const call_operand *all, int ith, int nth)
{
    const table *t = context;
    nrg_sinusoidal_args args = t->sinusoidal;
    args.frequencies = all[FREQUENCIES].at;
    args.positions = all[POSITIONS].at;
    args.table = all[OUT].at;
    args.table_stride = all[OUT].stride;
    return nrg_sinusoidal_table(&args, ith, nth);
}

static int32_t draw_position(uint64_t *state)
{
    static const int32_t ends[] = {0, -1, 1, INT32_MIN, INT32_MAX, INT32_MIN + 1, 131072, 1000000, 1048576, -5};
    const size_t how = test_draw(state, 4);
    if (how == 0)
        return ends[test_draw(state, sizeof ends / sizeof ends[0])];
    if (how == 1)
        return (int32_t)((int64_t)test_draw(state, (size_t)1 << 32) + INT32_MIN);
    return (int32_t)test_draw(state, how == 2 ? 3000 : 2000000);
}

/* Anything from slow pairs to the fastest allowed, of either direction. */
static void draw_frequencies(table *t, size_t pairs, uint64_t *state)
{
    for (size_t p = 0; p < pairs; p++) {
        const double fraction = 1 + (double)test_draw(state, (size_t)1 << 52) * 0x1p-52;
        const int exponent = (test_draw(state, 8) ? 0 : 17) - (int)test_draw(state, 63);
        const double high = ldexp(fraction, exponent);
        t->frequencies[p] = test_draw(state, 4) ? high : -high;
        t->frequencies[pairs + p] = high * 0x1p-53 * ((double)test_draw(state, 2001) / 1000 - 1);
    }
}

static void table_everywhere(table *t, call_run *run, nrg_dtype dtype, size_t pairs, size_t rows, size_t dim, size_t axes,
                             const char *text, uint64_t seed)
{
    const call_operand operands[TABLE_OPERANDS] = {
        [FREQUENCIES] = {.name = "frequencies", .type = CALL_F64, .rows = 1, .dim = 2 * pairs, .content = t->frequencies},
        [POSITIONS] = {.name = "positions",
                       .type = axes ? CALL_I32 : 0,
                       .rows = axes,
                       .dim = rows,
                       .padded = axes > 1,
                       .content = t->positions},
        [OUT] = {.name = "table", .role = CALL_OUTPUT, .type = (int)dtype, .rows = rows, .dim = dim, .padded = 1},
    };
    const call_case c = {.op = "position_table",
                         .text = text,
                         .dtype = dtype,
                         .run = {run},
                         .context = t,
                         .operands = operands,
                         .count = TABLE_OPERANDS,
                         .seed = seed};
    call_sweep(&c);
}

static size_t draw_sections(nrg_rope_spec *s, size_t pairs, uint64_t *state)
{
    /* as models have them: parts of the pairs; or any, more or fewer than there are pairs, some of them empty */
    const size_t how = test_draw(state, 3), empty = test_draw(state, 5);
    for (int i = 0; i < AXES; i++)
        s->sections[i] = how ? (int)test_draw(state, pairs / (how == 1 ? 1 : 3) + 2) : (int)(pairs / 3);
    if (how == 0)
        s->sections[3] = (int)(pairs % 3);
    if (empty < AXES)
        s->sections[empty] = 0;
    size_t axes = 0;
    for (int i = 0; i < AXES; i++)
        axes = s->sections[i] ? (size_t)i + 1 : axes;
    if (axes == 0)
        s->sections[0] = axes = 1;
    return axes;
}

START_TEST(rope_tables)
{
    static table t;
    const int cases = test_small() ? 20 : 200;
    for (int i = 0; i < cases; i++) {
        const uint64_t seed = test_mix((uint64_t)(_i * 1000 + i));
        uint64_t state = seed;
        char text[160];
        const size_t pairs = (modes[_i] == NRG_ROPE_VISION ? 2 : 1) * (1 + test_draw(&state, i % 8 ? 40 : PAIRS_MOST / 2));
        size_t rows = 1 + test_draw(&state, i % 4 ? 9 : TOKENS_MOST), axes = 1;
        t.spec = nrg_rope_spec_init(modes[_i] == NRG_ROPE_VISION ? pairs : 2 * pairs, modes[_i], i % 2 ? 10000 : 0.5);
        if (modes[_i] >= NRG_ROPE_MROPE)
            axes = draw_sections(&t.spec, pairs, &state);
        double magnitude = 1;
        if (i % 4 < 2)
            ck_assert_int_eq(nrg_rope_frequencies(&t.spec, t.frequencies, &magnitude), NRG_OK);
        else
            draw_frequencies(&t, pairs, &state);
        t.rope = nrg_rope_table_args_init(rows, NULL, i % 3 ? 1 : -1.2345678901, NULL);
        t.rope.first = draw_position(&state);
        if (t.rope.first > INT32_MAX - TOKENS_MOST)
            t.rope.first = INT32_MAX - (int32_t)rows + 1;
        for (size_t p = 0; p < axes * rows; p++)
            t.positions[p] = draw_position(&state);
        if (test_draw(&state, 3) == 0)
            axes = 0;
        snprintf(text, sizeof text, "mode %d, sections %d %d %d %d, pairs %zu, tokens %zu, axes %zu, seed 0x%llx",
                 (int)t.spec.mode, t.spec.sections[0], t.spec.sections[1], t.spec.sections[2], t.spec.sections[3], pairs, rows,
                 axes, (unsigned long long)seed);
        table_everywhere(&t, rope_table, NRG_F32, pairs, rows, 2 * pairs, axes, text, seed);
    }
}
END_TEST

START_TEST(sinusoidal_tables)
{
    static table t;
    const int layout = _i % 2, cases = test_small() ? 1 : 2;
    const nrg_dtype dtype = dtypes[_i / 2];
    for (size_t dim = 1; dim <= 300; dim += test_small() ? 5 : 1)
        for (int i = 0; i < cases; i++) {
            if (layout == NRG_SINUSOIDAL_CONCATENATED && dim % 2)
                continue;
            const uint64_t seed = test_mix((uint64_t)(_i * 10000 + i) + dim * 8);
            uint64_t state = seed;
            char text[160];
            const size_t rows = 1 + test_draw(&state, i ? 30 : 5), pairs = (dim + 1) / 2;
            const int positions = (int)test_draw(&state, 2);
            t.sinusoidal = nrg_sinusoidal_args_init(rows, dim, NULL, NULL);
            t.sinusoidal.dtype = dtype;
            t.sinusoidal.layout = (nrg_sinusoidal_layout)layout;
            t.sinusoidal.first = draw_position(&state);
            if (t.sinusoidal.first > INT32_MAX - TOKENS_MOST)
                t.sinusoidal.first = INT32_MAX - (int32_t)rows + 1;
            for (size_t p = 0; p < rows; p++)
                t.positions[p] = draw_position(&state);
            ck_assert_int_eq(nrg_sinusoidal_frequencies(dim, dim % 3 ? 10000 : 3.5, t.frequencies), NRG_OK);
            snprintf(text, sizeof text, "sinusoidal, layout %d, dim %zu, rows %zu%s, seed 0x%llx", layout, dim, rows,
                     positions ? ", positions" : "", (unsigned long long)seed);
            table_everywhere(&t, sinusoidal_table, dtype, pairs, rows, dim, positions ? 1 : 0, text, seed);
        }
}
END_TEST

START_TEST(accounts)
{
    call_check_account("rope");
    call_check_account("position_table");
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    call_start();
    Suite *suite = suite_create("rope: paths against scalar");
    tcase_add_loop_test(test_case(suite, "every dim"), every_dim, 0, CHUNKS);
    tcase_add_loop_test(test_case(suite, "whole steps"), whole_steps, 0, LONG_DIMS);
    tcase_add_loop_test(test_case(suite, "rope tables"), rope_tables, 0, MODES);
    tcase_add_loop_test(test_case(suite, "sinusoidal tables"), sinusoidal_tables, 0, 2 * DTYPES);
    tcase_add_test(test_case(suite, "account"), accounts);
    return test_run(suite);
}
