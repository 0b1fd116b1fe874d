/* Bad input for nrg/rope.h, nrg/sinusoidal.h and nrg/norm_rope.h: every refusal the headers list gives its status and writes
 * nothing; what they allow is not refused.
 * Sizes of structs, strides, alignment, overflow, shares and places come from the descriptions: tests/calls/bad_input_test.c.
 *
 * SPDX-License-Identifier: MIT */
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/support.h"

/* Calls that are right, with every operand in a zone of its own, and room around each for others to be moved into it. */
enum { TOKENS = 3, DIM = 12, OFFSET = 2, PAIRS = 4, Q_HEADS = 4, K_HEADS = 2, TABLE_ROWS = 5, AXES = 3, SINES = 6 };
enum { ZONE = 4096, FIRST = 1536 };

enum {
    /* nrg_rope_frequencies, nrg_rope_table */
    FACTORS,
    FREQUENCIES,
    MAGNITUDE,
    POSITIONS,
    TABLE_OUT,
    /* the rotations */
    TABLE,
    ROWS,
    Q,
    K,
    Q_O,
    K_O,
    Q_W,
    K_W,
    Q_B,
    K_B,
    Q_MEAN,
    K_MEAN,
    Q_RSTD,
    K_RSTD,
    Q_X,
    K_X,
    Q_DW,
    K_DW,
    Q_DB,
    K_DB,
    Q_WORK,
    K_WORK,
    /* nrg/sinusoidal.h */
    SINE_FREQUENCIES,
    SINE_POSITIONS,
    SINE_TABLE,
    ZONES
};

enum { WORK_BYTES = 2 * DIM * 8, ROW = DIM * 4, Q_TOKEN = Q_HEADS * ROW, K_TOKEN = K_HEADS * ROW, TABLE_ROW = 2 * PAIRS * 4 };

static _Alignas(64) unsigned char memory[ZONES * ZONE];
static unsigned char before[ZONES * ZONE];

static nrg_rope_spec spec;
static nrg_rope_table_args table;
static nrg_rope_args rope;
static nrg_sinusoidal_args sine;
static nrg_norm_spec norm;
static nrg_norm_args q_norm, k_norm;
static nrg_norm_backward_args q_back, k_back;

/* What the calls are handed: these, unless a test has a copy of one. */
enum { SPEC, TABLE_ARGS, ROPE_ARGS, SINE_ARGS, NORM_SPEC, Q_NORM, K_NORM, Q_BACK, K_BACK, STRUCTS };
static const void *given[STRUCTS];

static size_t sine_dim;
static double sine_base;
static double *frequencies_out, *magnitude_out, *sine_out;

static unsigned char *zone(int operand) { return memory + operand * ZONE + FIRST; }
static void *at(int operand) { return zone(operand); }
static int32_t *ints(int operand) { return at(operand); }

static void set_up_norm(void)
{
    norm = nrg_layer_norm_spec(DIM, 1e-5);
    q_norm = k_norm = nrg_norm_args_init(0, NULL, NULL);
    q_back = nrg_norm_backward_args_init(TOKENS * Q_HEADS, at(Q_X), NULL, NULL);
    k_back = nrg_norm_backward_args_init(TOKENS * K_HEADS, at(K_X), NULL, NULL);
    q_norm.w = q_back.w = at(Q_W);
    k_norm.w = k_back.w = at(K_W);
    q_norm.b = q_back.b = at(Q_B);
    k_norm.b = k_back.b = at(K_B);
    q_back.mean = q_norm.mean = at(Q_MEAN);
    k_back.mean = k_norm.mean = at(K_MEAN);
    q_norm.rstd = at(Q_RSTD);
    k_norm.rstd = at(K_RSTD);
    q_back.dw = at(Q_DW);
    k_back.dw = at(K_DW);
    q_back.db = at(Q_DB);
    k_back.db = at(K_DB);
    q_back.workspace = at(Q_WORK);
    k_back.workspace = at(K_WORK);
    q_back.workspace_size = k_back.workspace_size = WORK_BYTES;
}

static void set_up(void)
{
    const void *const structs[STRUCTS] = {&spec, &table, &rope, &sine, &norm, &q_norm, &k_norm, &q_back, &k_back};
    memcpy(given, structs, sizeof given);
    for (size_t i = 0; i < sizeof memory / sizeof(float); i++)
        ((float *)(void *)memory)[i] = (float)(test_mix(i) % 2000) / 1000 - 1;
    for (int i = 0; i < PAIRS; i++)
        ((float *)at(FACTORS))[i] = 1.5f;
    for (int i = 0; i < AXES * TOKENS; i++)
        ints(POSITIONS)[i] = 100 * i;
    for (int i = 0; i < TOKENS; i++) {
        ints(ROWS)[i] = TABLE_ROWS - 1 - i;
        ints(SINE_POSITIONS)[i] = 7 * i;
    }
    for (int i = 0; i < 2 * PAIRS; i++)
        ((double *)at(FREQUENCIES))[i] = i < PAIRS ? 0.01 * i : 0;
    for (int i = 0; i < SINES; i++)
        ((double *)at(SINE_FREQUENCIES))[i] = i < SINES / 2 ? 0.01 * i : 0;

    spec = nrg_rope_spec_init(2 * PAIRS, NRG_ROPE_MROPE, 10000);
    spec.sections[0] = spec.sections[2] = 1;
    spec.sections[1] = 2;
    spec.freq_factors = at(FACTORS);
    frequencies_out = at(FREQUENCIES);
    magnitude_out = at(MAGNITUDE);
    table = nrg_rope_table_args_init(TOKENS, at(FREQUENCIES), 1, at(TABLE_OUT));
    table.positions = at(POSITIONS);
    rope = nrg_rope_args_init(TOKENS, DIM, at(TABLE));
    rope.offset = OFFSET;
    rope.table_rows = TABLE_ROWS;
    rope.positions = at(ROWS);
    rope.q_heads = Q_HEADS;
    rope.k_heads = K_HEADS;
    rope.q = at(Q);
    rope.k = at(K);
    rope.q_o = at(Q_O);
    rope.k_o = at(K_O);
    sine_dim = SINES;
    sine_base = 10000;
    sine_out = at(SINE_FREQUENCIES);
    sine = nrg_sinusoidal_args_init(TOKENS, SINES, at(SINE_FREQUENCIES), at(SINE_TABLE));
    sine.positions = at(SINE_POSITIONS);
    set_up_norm();
}

/* Which calls refuse what stands there; bits, in the order of the functions here. */
enum {
    MAKE = 1,
    FILL = 2,
    TURN = 4,
    SINE_MAKE = 8,
    SINE_FILL = 16,
    FORWARD = 32,
    BACKWARD = 64,
    REDUCE = 128,
    FUSED = FORWARD | BACKWARD | REDUCE,
    TURNS = TURN | FUSED,
    BACK = BACKWARD | REDUCE,
    ALL = 255
};

static nrg_status make(int ith, int nth)
{
    (void)ith, (void)nth;
    return nrg_rope_frequencies(given[SPEC], frequencies_out, magnitude_out);
}
static nrg_status fill(int ith, int nth) { return nrg_rope_table(given[SPEC], given[TABLE_ARGS], ith, nth); }
static nrg_status turn(int ith, int nth) { return nrg_rope(given[SPEC], given[ROPE_ARGS], ith, nth); }
static nrg_status sine_make(int ith, int nth)
{
    (void)ith, (void)nth;
    return nrg_sinusoidal_frequencies(sine_dim, sine_base, sine_out);
}
static nrg_status sine_fill(int ith, int nth) { return nrg_sinusoidal_table(given[SINE_ARGS], ith, nth); }
static nrg_status forward(int ith, int nth)
{
    return nrg_norm_rope_forward(given[NORM_SPEC], given[SPEC], given[ROPE_ARGS], given[Q_NORM], given[K_NORM], ith, nth);
}
static nrg_status backward(int ith, int nth)
{
    return nrg_norm_rope_backward(given[NORM_SPEC], given[SPEC], given[ROPE_ARGS], given[Q_BACK], given[K_BACK], ith, nth);
}
static nrg_status reduce(int ith, int nth)
{
    return nrg_norm_rope_backward_reduce(given[NORM_SPEC], given[SPEC], given[ROPE_ARGS], given[Q_BACK], given[K_BACK], ith, nth);
}

static nrg_status (*const calls[])(int ith, int nth) = {make, fill, turn, sine_make, sine_fill, forward, backward, reduce};
enum { CALLS = sizeof calls / sizeof calls[0] };

static void refused_share(int by, nrg_status status, int ith, int nth, int line)
{
    for (int i = 0; i < CALLS; i++) {
        if (!(by & 1 << i))
            continue;
        memcpy(before, memory, sizeof before);
        nrg_status got = calls[i](ith, nth);
        if (got != status)
            ck_abort_msg("line %d, call %d: status %d (%s) and not %d (%s)", line, i, (int)got, nrg_status_string(got),
                         (int)status, nrg_status_string(status));
        if (memcmp(before, memory, sizeof before) != 0)
            ck_abort_msg("line %d, call %d: a refused call wrote something", line, i);
    }
}

/* The calls as they stand now are refused, whichever share asks; then everything is right again. */
static void refused(int by, nrg_status status, int line)
{
    refused_share(by, status, 0, 1, line);
    refused_share(by, status, 2, 3, line);
    refused_share(by, status, 90, 91, line); /* a share without rows checks all the same */
    set_up();
}

static void accepted(int by, int line)
{
    for (int i = 0; i < CALLS; i++) {
        nrg_status got = by & 1 << i ? calls[i](0, 1) : NRG_OK;
        if (got != NRG_OK)
            ck_abort_msg("line %d, call %d: status %d (%s)", line, i, (int)got, nrg_status_string(got));
    }
    set_up();
}

#define REFUSED(by, status) refused(by, status, __LINE__)
#define ACCEPTED(by) accepted(by, __LINE__)

static const size_t bytes_of[ZONES] = {
    [FACTORS] = PAIRS * 4,
    [FREQUENCIES] = 2 * PAIRS * 8,
    [MAGNITUDE] = 8,
    [POSITIONS] = AXES * TOKENS * 4,
    [TABLE_OUT] = TOKENS * TABLE_ROW,
    [TABLE] = TABLE_ROWS * TABLE_ROW,
    [ROWS] = TOKENS * 4,
    [Q] = TOKENS * Q_TOKEN,
    [K] = TOKENS * K_TOKEN,
    [Q_O] = TOKENS * Q_TOKEN,
    [K_O] = TOKENS * K_TOKEN,
    [Q_W] = ROW,
    [K_W] = ROW,
    [Q_B] = ROW,
    [K_B] = ROW,
    [Q_MEAN] = TOKENS * Q_HEADS * 4,
    [K_MEAN] = TOKENS * K_HEADS * 4,
    [Q_RSTD] = TOKENS * Q_HEADS * 4,
    [K_RSTD] = TOKENS * K_HEADS * 4,
    [Q_X] = TOKENS * Q_TOKEN,
    [K_X] = TOKENS * K_TOKEN,
    [Q_DW] = ROW,
    [K_DW] = ROW,
    [Q_DB] = ROW,
    [K_DB] = ROW,
    [Q_WORK] = WORK_BYTES,
    [K_WORK] = WORK_BYTES,
    [SINE_FREQUENCIES] = SINES * 8,
    [SINE_POSITIONS] = TOKENS * 4,
    [SINE_TABLE] = TOKENS * SINES * 4,
};

/* The pointers to an operand. */
static void *const pointers[ZONES][2] = {
    [FACTORS] = {&spec.freq_factors},
    [FREQUENCIES] = {&frequencies_out, &table.frequencies},
    [MAGNITUDE] = {&magnitude_out},
    [POSITIONS] = {&table.positions},
    [TABLE_OUT] = {&table.table},
    [TABLE] = {&rope.table},
    [ROWS] = {&rope.positions},
    [Q] = {&rope.q},
    [K] = {&rope.k},
    [Q_O] = {&rope.q_o},
    [K_O] = {&rope.k_o},
    [Q_W] = {&q_norm.w, &q_back.w},
    [K_W] = {&k_norm.w, &k_back.w},
    [Q_B] = {&q_norm.b, &q_back.b},
    [K_B] = {&k_norm.b, &k_back.b},
    [Q_MEAN] = {&q_norm.mean, &q_back.mean},
    [K_MEAN] = {&k_norm.mean, &k_back.mean},
    [Q_RSTD] = {&q_norm.rstd},
    [K_RSTD] = {&k_norm.rstd},
    [Q_X] = {&q_back.x},
    [K_X] = {&k_back.x},
    [Q_DW] = {&q_back.dw},
    [K_DW] = {&k_back.dw},
    [Q_DB] = {&q_back.db},
    [K_DB] = {&k_back.db},
    [Q_WORK] = {&q_back.workspace},
    [K_WORK] = {&k_back.workspace},
    [SINE_FREQUENCIES] = {&sine_out, &sine.frequencies},
    [SINE_POSITIONS] = {&sine.positions},
    [SINE_TABLE] = {&sine.table},
};

/* Puts an operand elsewhere, in all structs that have it. */
static void move(int operand, const void *to)
{
    for (int i = 0; i < 2 && pointers[operand][i]; i++)
        memcpy(pointers[operand][i], &to, sizeof to);
}

#define BIT(operand) (1u << (operand))

#define ROTATION (BIT(TABLE) | BIT(ROWS) | BIT(Q) | BIT(K))
#define WEIGHTS (BIT(Q_W) | BIT(K_W) | BIT(Q_B) | BIT(K_B))
#define MEANS (BIT(Q_MEAN) | BIT(K_MEAN))
#define WORKSPACES (BIT(Q_WORK) | BIT(K_WORK))
#define SUMS (BIT(Q_DW) | BIT(K_DW) | BIT(Q_DB) | BIT(K_DB))
#define TURNED (BIT(Q_O) | BIT(K_O))

/* Operands that the calls have, as bits; phases of the backward pass have the same ones, whichever they use. */
static const unsigned outputs_of[CALLS] = {
    BIT(FREQUENCIES) | BIT(MAGNITUDE),
    BIT(TABLE_OUT),
    TURNED,
    BIT(SINE_FREQUENCIES),
    BIT(SINE_TABLE),
    TURNED | MEANS | BIT(Q_RSTD) | BIT(K_RSTD),
    TURNED | SUMS | WORKSPACES,
    TURNED | SUMS | WORKSPACES,
};

/* A call changes its outputs, each of them, and nothing else. */
static void changes(int call, unsigned outputs)
{
    memcpy(before, memory, sizeof before);
    ck_assert_int_eq(calls[call](0, 1), NRG_OK);
    for (int operand = 0; operand < ZONES; operand++) {
        const int changed = memcmp(before + operand * ZONE, memory + operand * ZONE, ZONE) != 0;
        if (changed != (int)(outputs >> operand & 1))
            ck_abort_msg("call %d: operand %d %s", call, operand, changed ? "changed" : "did not change");
        memcpy(before + operand * ZONE + FIRST, zone(operand), bytes_of[operand]);
    }
    ck_assert_mem_eq(before, memory, sizeof memory);
}

START_TEST(right_calls)
{
    for (int call = 0; call < CALLS - 2; call++) {
        set_up();
        changes(call, outputs_of[call]);
    }
    set_up();
    changes(CALLS - 2, TURNED | WORKSPACES);
    changes(CALLS - 1, SUMS);
}
END_TEST

START_TEST(null)
{
    memcpy(before, memory, sizeof before);
    for (int i = 0; i < 3; i++) {
        const nrg_rope_spec *s = i == 0 ? NULL : &spec;
        const nrg_rope_args *a = i == 1 ? NULL : &rope;
        const nrg_norm_spec *n = i == 2 ? NULL : &norm;
        ck_assert_int_eq(nrg_norm_rope_forward(n, s, a, &q_norm, &k_norm, 0, 1), NRG_ERR_NULL);
        ck_assert_int_eq(nrg_norm_rope_backward(n, s, a, &q_back, &k_back, 0, 1), NRG_ERR_NULL);
        ck_assert_int_eq(nrg_norm_rope_backward_reduce(n, s, a, &q_back, &k_back, 0, 1), NRG_ERR_NULL);
        if (i < 2) {
            ck_assert_int_eq(nrg_rope(s, a, 0, 1), NRG_ERR_NULL);
            ck_assert_int_eq(nrg_rope_table(s, i ? NULL : &table, 0, 1), NRG_ERR_NULL);
        }
    }
    ck_assert_int_eq(nrg_norm_rope_backward(&norm, &spec, &rope, NULL, &k_back, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_norm_rope_backward(&norm, &spec, &rope, &q_back, NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_norm_rope_backward_reduce(&norm, &spec, &rope, &q_back, NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_rope_frequencies(NULL, frequencies_out, magnitude_out), NRG_ERR_NULL);
    ck_assert_int_eq(nrg_sinusoidal_table(NULL, 0, 1), NRG_ERR_NULL);
    ck_assert_mem_eq(before, memory, sizeof memory);
    static const struct {
        int operand, by;
    } needed[] = {{FREQUENCIES, MAKE | FILL},
                  {MAGNITUDE, MAKE},
                  {TABLE_OUT, FILL},
                  {TABLE, TURNS},
                  {Q, TURNS},
                  {K, TURNS},
                  {Q_O, TURNS},
                  {K_O, TURNS},
                  {Q_X, BACK},
                  {K_X, BACK},
                  {Q_WORK, BACK},
                  {K_WORK, BACK},
                  {SINE_FREQUENCIES, SINE_MAKE | SINE_FILL},
                  {SINE_TABLE, SINE_FILL}};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        move(needed[i].operand, NULL);
        REFUSED(needed[i].by, NRG_ERR_NULL);
    }
}
END_TEST

START_TEST(what_may_be_absent)
{
    static const int optional[] = {FACTORS, POSITIONS, ROWS,   Q_W,  K_W,  Q_B,  K_B,  Q_MEAN,
                                   K_MEAN,  Q_RSTD,    K_RSTD, Q_DW, K_DW, Q_DB, K_DB, SINE_POSITIONS};
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
        move(optional[i], NULL);
        ACCEPTED(ALL);
    }
    q_back.dw = q_back.db = k_back.dw = k_back.db = NULL;
    q_back.workspace = k_back.workspace = NULL;
    q_back.workspace_size = k_back.workspace_size = 0;
    ACCEPTED(BACK);
    /* q alone, k alone, and nothing at all: what is not there is not looked at */
    for (int k = 0; k < 2; k++) {
        if (k) {
            rope.k_heads = k_back.rows = 0;
            rope.k = rope.k_o = (void *)1;
            rope.k_token_stride = rope.k_head_stride = rope.k_o_token_stride = 1;
            k_back.x = (void *)1;
        } else {
            rope.q_heads = q_back.rows = 0;
            rope.q = rope.q_o = (void *)1;
            rope.q_token_stride = rope.q_head_stride = rope.q_o_token_stride = 1;
            q_back.x = (void *)1;
        }
        ACCEPTED(TURNS);
    }
    rope.q_heads = rope.k_heads = 0;
    rope.q = rope.k = NULL;
    rope.q_o = rope.k_o = NULL;
    rope.table = NULL;
    refused_share(TURN | FORWARD, NRG_OK, 0, 1, __LINE__);
    set_up();
    ck_assert_int_eq(nrg_norm_rope_forward(&norm, &spec, &rope, NULL, NULL, 0, 1), NRG_OK);
    set_up();
    rope.k_heads = 0;
    ck_assert_int_eq(nrg_norm_rope_forward(&norm, &spec, &rope, &q_norm, NULL, 0, 1), NRG_OK);
    ck_assert_int_eq(nrg_norm_rope_backward(&norm, &spec, &rope, &q_back, NULL, 0, 1), NRG_OK);
    ck_assert_int_eq(nrg_norm_rope_backward_reduce(&norm, &spec, &rope, &q_back, NULL, 0, 1), NRG_OK);
}
END_TEST

START_TEST(dim)
{
    static const size_t bad[] = {0, 1, 3, 7, ((size_t)1 << 31) + 1, ((size_t)1 << 31) + 2, SIZE_MAX, SIZE_MAX - 1};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        spec.n_dims = bad[i];
        ck_assert_uint_eq(nrg_rope_pairs(&spec), 0);
        REFUSED(MAKE | FILL | TURNS, NRG_ERR_DIM);
    }
    /* more than there is; with an offset, too, whatever it is */
    for (size_t n_dims = DIM - OFFSET + 2; n_dims <= 4 * DIM; n_dims += 2) {
        spec.n_dims = n_dims;
        REFUSED(TURNS, NRG_ERR_DIM);
    }
    spec.mode = NRG_ROPE_VISION;
    spec.n_dims = (DIM - OFFSET) / 2 + 1;
    REFUSED(TURNS, NRG_ERR_DIM);
    static const size_t offsets[] = {DIM - 2 * PAIRS + 1, DIM, DIM + 1, SIZE_MAX, SIZE_MAX - 2 * PAIRS + 1, SIZE_MAX / 2};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        rope.offset = offsets[i];
        REFUSED(TURNS, NRG_ERR_DIM);
    }
    rope.offset = DIM - 2 * PAIRS;
    ACCEPTED(TURNS);
    rope.dim = 0;
    REFUSED(TURNS, NRG_ERR_DIM);
    rope.dim = DIM - 1;
    REFUSED(FUSED, NRG_ERR_DIM);
    norm.dim = DIM + 1;
    REFUSED(FUSED, NRG_ERR_DIM);
    norm.dim = 0;
    REFUSED(FUSED, NRG_ERR_DIM);
    norm.groups = 5;
    REFUSED(FUSED, NRG_ERR_DIM);
    spec.scaling = NRG_ROPE_SCALING_NTK;
    spec.n_dims = 2;
    REFUSED(MAKE, NRG_ERR_DIM);
    for (int i = 0; i < 4; i++) {
        spec.sections[i] = -1;
        REFUSED(MAKE | FILL, NRG_ERR_DIM);
        spec.sections[i] = INT_MIN;
        REFUSED(MAKE | FILL, NRG_ERR_DIM);
    }
    static const nrg_rope_mode with_sections[] = {NRG_ROPE_MROPE, NRG_ROPE_VISION, NRG_ROPE_IMROPE};
    for (int i = 0; i < 3; i++) {
        spec.mode = with_sections[i];
        memset(spec.sections, 0, sizeof spec.sections);
        REFUSED(MAKE | FILL, NRG_ERR_DIM);
        spec.mode = with_sections[i];
        spec.n_dims = PAIRS;
        memset(spec.sections, 0, sizeof spec.sections);
        ACCEPTED(TURNS); /* which do not look at them */
    }
    spec.mode = NRG_ROPE_NEOX;
    memset(spec.sections, 0xff, sizeof spec.sections);
    ACCEPTED(MAKE | FILL | TURNS);
    sine.dim = 0;
    REFUSED(SINE_FILL, NRG_ERR_DIM);
    sine.dim = SINES - 1;
    ACCEPTED(SINE_FILL);
    sine.dim = SINES - 1;
    sine.layout = NRG_SINUSOIDAL_CONCATENATED;
    REFUSED(SINE_FILL, NRG_ERR_DIM);
    sine_dim = 0;
    REFUSED(SINE_MAKE, NRG_ERR_DIM);
    sine_dim = ((size_t)1 << 31) + 1;
    REFUSED(SINE_MAKE, NRG_ERR_DIM);
    sine_dim = SIZE_MAX;
    REFUSED(SINE_MAKE, NRG_ERR_DIM);
    ck_assert_uint_eq(nrg_rope_pairs(NULL), 0);
    ck_assert_uint_eq(nrg_rope_pairs(&spec), PAIRS);
    spec.mode = NRG_ROPE_VISION;
    ck_assert_uint_eq(nrg_rope_pairs(&spec), 2 * PAIRS);
    spec.mode = (nrg_rope_mode)1;
    ck_assert_uint_eq(nrg_rope_pairs(&spec), 0);
    spec.size = 3;
    ck_assert_uint_eq(nrg_rope_pairs(&spec), 0);
}
END_TEST

START_TEST(enums)
{
    static const int valid[] = {NRG_ROPE_NORMAL, NRG_ROPE_NEOX, NRG_ROPE_MROPE, NRG_ROPE_VISION, NRG_ROPE_IMROPE};
    for (int mode = -3; mode < 300; mode++) {
        int known = 0;
        for (size_t i = 0; i < sizeof valid / sizeof valid[0]; i++)
            known |= mode == valid[i];
        spec.mode = (nrg_rope_mode)mode;
        if (!known)
            REFUSED(MAKE | FILL | TURNS, NRG_ERR_ENUM);
    }
    set_up();
    static const int bad[] = {-1, 100, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        spec.mode = (nrg_rope_mode)bad[i];
        REFUSED(MAKE | FILL | TURNS, NRG_ERR_ENUM);
        spec.scaling = (nrg_rope_scaling)bad[i];
        REFUSED(MAKE, NRG_ERR_ENUM);
        rope.dtype = (nrg_dtype)bad[i];
        REFUSED(TURN, NRG_ERR_ENUM);
        rope.store = (nrg_store)bad[i];
        REFUSED(TURNS, NRG_ERR_ENUM);
        norm.dtype = (nrg_dtype)bad[i];
        rope.dtype = (nrg_dtype)bad[i];
        REFUSED(FUSED, NRG_ERR_ENUM);
        norm.store = (nrg_store)bad[i];
        REFUSED(FUSED, NRG_ERR_ENUM);
        norm.activation = (nrg_activation)bad[i];
        REFUSED(FUSED, NRG_ERR_ENUM);
        norm.eps_mode = (nrg_eps_mode)bad[i];
        REFUSED(FUSED, NRG_ERR_ENUM);
        sine.dtype = (nrg_dtype)bad[i];
        REFUSED(SINE_FILL, NRG_ERR_ENUM);
        sine.layout = (nrg_sinusoidal_layout)bad[i];
        REFUSED(SINE_FILL, NRG_ERR_ENUM);
    }
    spec.scaling = (nrg_rope_scaling)3;
    REFUSED(MAKE, NRG_ERR_ENUM);
    rope.dtype = NRG_DTYPE_SAME;
    REFUSED(TURN, NRG_ERR_ENUM);
    rope.dtype = (nrg_dtype)4;
    REFUSED(TURN, NRG_ERR_ENUM);
    rope.store = (nrg_store)3;
    REFUSED(TURNS, NRG_ERR_ENUM);
    sine.dtype = NRG_DTYPE_SAME;
    REFUSED(SINE_FILL, NRG_ERR_ENUM);
    sine.layout = (nrg_sinusoidal_layout)2;
    REFUSED(SINE_FILL, NRG_ERR_ENUM);
}
END_TEST

START_TEST(dtypes)
{
    for (int a = NRG_F32; a <= NRG_BF16; a++)
        for (int b = NRG_F32; b <= NRG_BF16; b++) {
            norm.dtype = (nrg_dtype)a;
            norm.w_dtype = NRG_F32;
            rope.dtype = (nrg_dtype)b;
            if (a == b)
                ACCEPTED(TURNS);
            else
                REFUSED(FUSED, NRG_ERR_DTYPE);
        }
    norm.dtype = rope.dtype = NRG_F16;
    norm.w_dtype = NRG_BF16;
    REFUSED(FUSED, NRG_ERR_DTYPE);
}
END_TEST

START_TEST(constants)
{
    static const double not_numbers[] = {NAN, INFINITY, -INFINITY};
    static const double not_above_0[] = {0, -1, -0x1p-500, 0x1p-401, 0x1.fffffffffffffp-401, 0x1.0000000000001p400, 0x1p1000};
    double *const above_0[] = {&spec.freq_base, &spec.freq_scale, &spec.factor, &spec.beta_fast, &spec.beta_slow, &sine_base};
    double *const any[] = {&spec.attn_factor, &spec.ext_factor, &table.magnitude};
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < sizeof any / sizeof any[0]; j++) {
            spec.n_ctx_orig = 4096;
            *any[j] = not_numbers[i];
            REFUSED(any[j] == &table.magnitude ? FILL : MAKE, NRG_ERR_CONSTANT);
        }
        norm.c = not_numbers[i];
        REFUSED(FUSED, NRG_ERR_CONSTANT);
        norm.weight_offset = (float)not_numbers[i];
        REFUSED(FUSED, NRG_ERR_CONSTANT);
        norm.eps = not_numbers[i];
        REFUSED(FUSED, NRG_ERR_EPS);
    }
    for (size_t i = 0; i < 3 + sizeof not_above_0 / sizeof not_above_0[0]; i++)
        for (size_t j = 0; j < sizeof above_0 / sizeof above_0[0]; j++) {
            spec.n_ctx_orig = 4096;
            spec.ext_factor = j == 2 ? 0 : 1;
            spec.scaling = j == 2 ? NRG_ROPE_SCALING_NTK : NRG_ROPE_SCALING_NONE;
            *above_0[j] = i < 3 ? not_numbers[i] : not_above_0[i - 3];
            REFUSED(j == 5 ? SINE_MAKE : MAKE, NRG_ERR_CONSTANT);
        }
    /* what is not used is not looked at */
    spec.factor = spec.beta_fast = spec.beta_slow = spec.low_freq_factor = spec.high_freq_factor = NAN;
    spec.n_ctx_orig = INT_MIN;
    ACCEPTED(MAKE);
    spec.freq_base = spec.freq_scale = spec.attn_factor = spec.ext_factor = NAN;
    ACCEPTED(FILL | TURNS);
    for (int n_ctx_orig = -1; n_ctx_orig < 1; n_ctx_orig++) {
        spec.ext_factor = 1;
        spec.n_ctx_orig = n_ctx_orig;
        REFUSED(MAKE, NRG_ERR_CONSTANT);
        spec.scaling = NRG_ROPE_SCALING_LLAMA3;
        spec.n_ctx_orig = n_ctx_orig;
        REFUSED(MAKE, NRG_ERR_CONSTANT);
    }
    spec.ext_factor = 1;
    spec.n_ctx_orig = 4096;
    spec.freq_base = 1;
    REFUSED(MAKE, NRG_ERR_CONSTANT);
    static const double bands[][2] = {{4, 1}, {2, 2}, {-1, 4}, {NAN, 4}, {1, NAN}, {1, INFINITY}, {INFINITY, INFINITY}};
    for (size_t i = 0; i < sizeof bands / sizeof bands[0]; i++) {
        spec.scaling = NRG_ROPE_SCALING_LLAMA3;
        spec.n_ctx_orig = 8192;
        spec.low_freq_factor = bands[i][0];
        spec.high_freq_factor = bands[i][1];
        REFUSED(MAKE, NRG_ERR_CONSTANT);
    }
    static const float bad_factors[] = {0, -0.0f, -1, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof bad_factors / sizeof bad_factors[0]; i++)
        for (int p = 0; p < PAIRS; p++) {
            ((float *)at(FACTORS))[p] = bad_factors[i];
            REFUSED(MAKE, NRG_ERR_CONSTANT);
        }
    /* pairs that turn more than 2^18 times from one position to the next: the last, with a base below 1; any, by its factor */
    spec.freq_base = 0x1p-40;
    REFUSED(MAKE, NRG_ERR_CONSTANT);
    sine_base = 0x1p-40;
    REFUSED(SINE_MAKE, NRG_ERR_CONSTANT);
    for (int p = 0; p < PAIRS; p++) {
        ((float *)at(FACTORS))[p] = 0x1p-60f;
        REFUSED(MAKE, NRG_ERR_CONSTANT);
    }
    spec.freq_base = 0x1p-24; /* 2^18 radians */
    ACCEPTED(MAKE);
    sine_base = 0x1p-24;
    ACCEPTED(SINE_MAKE);
    spec.freq_factors = NULL;
    spec.freq_base = 0x1p400;
    ACCEPTED(MAKE);
    ck_assert(nrg_rope_longrope_attn_factor(1, 4096) == 0 && nrg_rope_longrope_attn_factor(4096, 1) == 0);
    ck_assert(nrg_rope_longrope_attn_factor(INT_MIN, 4096) == 0 && nrg_rope_longrope_attn_factor(4096, -1) == 0);
    ck_assert(nrg_rope_longrope_attn_factor(4096, 4096) == 1 && nrg_rope_longrope_attn_factor(2, INT_MAX) == 1);
    ck_assert(nrg_rope_longrope_attn_factor(4097, 4096) > 1);
}
END_TEST

START_TEST(positions)
{
    static const int32_t bad[] = {-1, INT32_MIN, TABLE_ROWS, INT32_MAX, TABLE_ROWS + 1};
    for (int t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            ints(ROWS)[t] = bad[i];
            REFUSED(TURNS, NRG_ERR_POSITION); /* the last token's, too: nothing of the first ones is written */
        }
    /* as many rows as tokens, where nothing else is said */
    rope.table_rows = 0;
    REFUSED(TURNS, NRG_ERR_POSITION);
    rope.table_rows = 0;
    for (int t = 0; t < TOKENS; t++)
        ints(ROWS)[t] = TOKENS - 1;
    ACCEPTED(TURNS);
    rope.positions = NULL;
    rope.table_rows = TOKENS - 1;
    REFUSED(TURNS, NRG_ERR_POSITION);
    rope.positions = NULL;
    rope.table_rows = TOKENS;
    ACCEPTED(TURNS);
    table.positions = NULL;
    sine.positions = NULL;
    table.first = sine.first = INT32_MAX - TOKENS + 2;
    REFUSED(FILL | SINE_FILL, NRG_ERR_POSITION);
    table.positions = NULL;
    sine.positions = NULL;
    table.first = sine.first = INT32_MAX - TOKENS + 1;
    ACCEPTED(FILL | SINE_FILL);
    table.positions = NULL;
    sine.positions = NULL;
    table.first = sine.first = INT32_MIN;
    ACCEPTED(FILL | SINE_FILL);
    table.positions = NULL;
    table.tokens = (size_t)1 << 32;
    sine.positions = NULL;
    sine.rows = SIZE_MAX;
    REFUSED(FILL | SINE_FILL, NRG_ERR_POSITION);
    table.first = sine.first = INT32_MAX; /* not looked at beside positions; and those may be anything */
    for (int i = 0; i < AXES * TOKENS; i++)
        ints(POSITIONS)[i] = i % 2 ? INT32_MIN : INT32_MAX;
    ACCEPTED(FILL | SINE_FILL);
}
END_TEST

START_TEST(combination)
{
    norm.gate = NRG_GATE_PRE;
    REFUSED(FUSED, NRG_ERR_COMBINATION);
    norm.gate = NRG_GATE_POST;
    REFUSED(FUSED, NRG_ERR_COMBINATION);
    norm.residual_mode = NRG_RESIDUAL_AFTER;
    REFUSED(FUSED, NRG_ERR_COMBINATION);
    rope.backward = 1;
    REFUSED(FUSED, NRG_ERR_COMBINATION);
    norm.activation = NRG_ACT_SILU;
    ACCEPTED(FUSED);
    /* what rope has is not said again: also where there are no heads */
    for (int k = 0; k < 2; k++)
        for (int heads = 0; heads < 2; heads++) {
            nrg_norm_args *const n = k ? &k_norm : &q_norm;
            nrg_norm_backward_args *const b = k ? &k_back : &q_back;
            const void **const norm_inputs[] = {&n->x, &n->y, &n->z},
                               **const back_inputs[] = {&b->d_o, &b->dr_in, &b->y, &b->r, &b->z};
            void **const norm_outputs[] = {&n->o, &n->r}, **const back_outputs[] = {&b->dx, &b->dy, &b->dz};
            size_t *const norm_sizes[] = {&n->rows, &n->x_stride, &n->y_stride, &n->z_stride, &n->o_stride, &n->r_stride};
            for (int i = 0; i < 19; i++) {
                if (!heads) {
                    *(k ? &rope.k_heads : &rope.q_heads) = 0;
                    b->rows = 0;
                }
                if (i < 3)
                    *norm_inputs[i] = at(FACTORS);
                else if (i < 5)
                    *norm_outputs[i - 3] = at(FACTORS);
                else if (i < 11)
                    *norm_sizes[i - 5] = 4 * ROW;
                else if (i < 16)
                    *back_inputs[i - 11] = at(FACTORS);
                else
                    *back_outputs[i - 16] = at(FACTORS);
                REFUSED(i < 11 ? FORWARD : BACK, NRG_ERR_COMBINATION);
            }
            const size_t rows = b->rows;
            static const size_t other[] = {0, 1, TOKENS * Q_HEADS + 1, TOKENS, Q_HEADS, SIZE_MAX};
            for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
                if (!heads)
                    *(k ? &rope.k_heads : &rope.q_heads) = 0;
                b->rows = other[i];
                if (other[i] != (heads ? rows : 0))
                    REFUSED(BACK, NRG_ERR_COMBINATION);
            }
            set_up();
        }
}
END_TEST

START_TEST(workspace)
{
    for (size_t size = 0; size < WORK_BYTES; size += 8) {
        q_back.workspace_size = size;
        REFUSED(BACK, NRG_ERR_WORKSPACE);
        k_back.workspace_size = size;
        REFUSED(BACK, NRG_ERR_WORKSPACE);
    }
    k_back.workspace_size = WORK_BYTES - 1;
    REFUSED(BACK, NRG_ERR_WORKSPACE);
    k_back.workspace_size = WORK_BYTES / 2;
    k_back.db = NULL;
    ACCEPTED(BACK);
    /* more of it than is needed is not looked at, as in nrg_norm_backward */
    q_back.workspace_size = k_back.workspace_size = SIZE_MAX;
    ACCEPTED(BACK);
    q_back.workspace_size = ZONE;
    k_back.workspace = zone(Q_WORK) + WORK_BYTES;
    ACCEPTED(BACK);
}
END_TEST

/* q, k and their outputs as slices of one buffer's rows, in any order, and by an element too close. */
START_TEST(slices_of_one_buffer)
{
    static const int orders[][4] = {{Q, K, Q_O, K_O}, {K_O, Q, K, Q_O}, {Q_O, K_O, K, Q}, {K, K_O, Q_O, Q}};
    const size_t token = 2 * Q_TOKEN + 2 * K_TOKEN;
    for (size_t order = 0; order < sizeof orders / sizeof orders[0]; order++)
        for (int close = -1; close < 4; close++) {
            size_t offset = 0;
            for (int i = 0; i < 4; i++) {
                const int operand = orders[order][i];
                move(operand, zone(Q) + offset - (i == close ? 4 : 0));
                offset += operand == Q || operand == Q_O ? Q_TOKEN : K_TOKEN;
            }
            rope.q_token_stride = rope.k_token_stride = rope.q_o_token_stride = rope.k_o_token_stride = token;
            /* too close to the one before it, or (the first) to the end of the one before in the last row: where one of the two
             * is an output */
            const int before_it = close < 0 ? -1 : orders[order][(close + 3) % 4], it = close < 0 ? -1 : orders[order][close];
            if (before_it >= Q_O || it >= Q_O)
                REFUSED(TURN | FORWARD, NRG_ERR_OVERLAP);
            else
                ACCEPTED(TURN | FORWARD);
        }
    /* and as ranges of the heads of [heads, tokens, dim] */
    for (int close = 0; close < 2; close++) {
        rope.q = zone(Q);
        rope.q_o = zone(Q) + Q_HEADS * TOKENS * ROW - 4 * close;
        rope.q_token_stride = rope.q_o_token_stride = ROW;
        rope.q_head_stride = rope.q_o_head_stride = TOKENS * ROW;
        if (close)
            REFUSED(TURN | FORWARD, NRG_ERR_OVERLAP);
        else
            ACCEPTED(TURN | FORWARD);
    }
}
END_TEST

/* Nothing is done, and pointers are not looked at; dw and db of no rows are 0, or stay. */
START_TEST(no_tokens)
{
    const int checked = FILL | TURN | SINE_FILL | FORWARD | BACKWARD;
    table.tokens = sine.rows = rope.tokens = q_back.rows = k_back.rows = 0;
    refused_share(checked, NRG_OK, 0, 1, __LINE__);
    refused_share(checked, NRG_OK, 1, 3, __LINE__);
    q_back.accumulate = k_back.accumulate = 1;
    refused_share(REDUCE, NRG_OK, 0, 1, __LINE__);
    q_back.accumulate = k_back.accumulate = 0;
    q_back.workspace = k_back.workspace = NULL;
    ck_assert_int_eq(reduce(0, 1), NRG_OK);
    for (int operand = Q_DW; operand <= K_DB; operand++)
        for (int i = 0; i < DIM; i++)
            ck_assert(((float *)at(operand))[i] == 0);
    set_up();
    table = nrg_rope_table_args_init(0, NULL, 1, NULL);
    sine = nrg_sinusoidal_args_init(0, SINES, NULL, NULL);
    rope = nrg_rope_args_init(0, DIM, NULL);
    rope.q_heads = rope.k_heads = SIZE_MAX;
    q_norm = k_norm = nrg_norm_args_init(0, NULL, NULL);
    q_back = k_back = nrg_norm_backward_args_init(0, NULL, NULL, NULL);
    refused_share(checked | REDUCE, NRG_OK, 0, 1, __LINE__);
    set_up();
    table.tokens = sine.rows = rope.tokens = q_back.rows = k_back.rows = 0;
    refused_share(FILL | TURNS | SINE_FILL, NRG_ERR_THREAD, 1, 1, __LINE__);
    spec.n_dims = 7;
    sine.dim = 0;
    refused_share(FILL | TURNS, NRG_ERR_DIM, 0, 1, __LINE__);
    refused_share(SINE_FILL, NRG_ERR_DIM, 0, 1, __LINE__);
}
END_TEST

START_TEST(constructors)
{
    const nrg_rope_spec s = nrg_rope_spec_init(6, NRG_ROPE_NEOX, 500);
    ck_assert(s.size == sizeof s && s.n_dims == 6 && s.mode == NRG_ROPE_NEOX && s.freq_base == 500 && s.freq_scale == 1);
    ck_assert(s.attn_factor == 1 && s.ext_factor == 0 && s.beta_fast == 32 && s.beta_slow == 1 && s.factor == 1);
    ck_assert(s.low_freq_factor == 1 && s.high_freq_factor == 4 && !s.freq_factors && !s.reserved && !s.n_ctx_orig);
    ck_assert(s.scaling == NRG_ROPE_SCALING_NONE && !s.sections[0] && !s.sections[1] && !s.sections[2] && !s.sections[3]);
    double frequencies[2];
    float out[4];
    const nrg_rope_table_args t = nrg_rope_table_args_init(3, frequencies, 1.5, out);
    ck_assert(t.size == sizeof t && t.tokens == 3 && t.frequencies == frequencies && t.magnitude == 1.5 && t.table == out);
    ck_assert(!t.positions && !t.positions_stride && !t.first && !t.reserved && !t.table_stride);
    const nrg_rope_args a = nrg_rope_args_init(3, 8, out);
    ck_assert(a.size == sizeof a && a.tokens == 3 && a.dim == 8 && a.table == out && a.dtype == NRG_F32 && !a.offset);
    ck_assert(a.store == NRG_STORE_AUTO && !a.table_rows && !a.table_stride && !a.positions && !a.q_heads && !a.k_heads);
    ck_assert(!a.q && !a.k && !a.q_o && !a.k_o && !a.backward && !a.reserved);
    const nrg_sinusoidal_args n = nrg_sinusoidal_args_init(3, 8, frequencies, out);
    ck_assert(n.size == sizeof n && n.rows == 3 && n.dim == 8 && n.frequencies == frequencies && n.table == out);
    ck_assert(n.dtype == NRG_F32 && n.layout == NRG_SINUSOIDAL_INTERLEAVED && !n.positions && !n.first && !n.table_stride);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    Suite *suite = suite_create("rope: bad input");
    TCase *tests = test_case(suite, "bad input");
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, right_calls);
    tcase_add_test(tests, null);
    tcase_add_test(tests, what_may_be_absent);
    tcase_add_test(tests, dim);
    tcase_add_test(tests, enums);
    tcase_add_test(tests, dtypes);
    tcase_add_test(tests, constants);
    tcase_add_test(tests, positions);
    tcase_add_test(tests, combination);
    tcase_add_test(tests, workspace);
    tcase_add_test(tests, slices_of_one_buffer);
    tcase_add_test(tests, no_tokens);
    tcase_add_test(tests, constructors);
    return test_run(suite);
}
