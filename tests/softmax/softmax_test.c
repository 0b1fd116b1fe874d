/* Softmax: the truth in 113-bit arithmetic, of rows, logarithms, gradients and parts; a limit is the mask it stands for; one call
 * is the calls it stands for; rows that are special. Bits over paths, shares and layouts are bits_test's.
 *
 *     softmax_test --report    the worst errors
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/quad_activation.h"
#include "../harness/support.h"

enum { KINDS = 7, LONGEST = 5000 };

/* Worst of o, of the sum of a row (off from 1, in 2^-24), of logarithms, of dx, of s in parts, of losses and their gradients: as
 * docs/ops/softmax.md and docs/ops/cross_entropy.md derive them, in ulp, of logarithms beyond 2^-46; of dx as a part of its
 * bound. */
enum { OF_O, OF_SUM, OF_LOG, OF_DX, OF_S, OF_LOSS, OF_D, ERRORS };
static double *worst;
static const double most[ERRORS] = {
    [OF_O] = 3.1, [OF_SUM] = 4, [OF_LOG] = 3.9, [OF_DX] = 1, [OF_S] = 1.28, [OF_LOSS] = 1.8, [OF_D] = 3.1};

static void note(int what, double error, size_t n)
{
    worst[what] = fmax(worst[what], error);
    if (!(error <= most[what]))
        ck_abort_msg("error %d is %g for element or row %zu, and may be %g", what, error, n, most[what]);
}

static double ulps(float got, quad exact)
{
    return (double)(quad_abs((quad)got - exact) / (quad)element_ulp((double)exact, NRG_F32));
}

/* log(s) of s ≥ 1. */
static quad logarithm(quad s)
{
    int k = 0;
    for (; s > 2; k++)
        s /= 2;
    return quad_log1p(s - 1) + k * QUAD_LN2;
}

/* Rows of several kinds: usual scores, large ones, small ones, one that stands out, equal ones, far below zero, beyond ±256. */
static void draw(float *x, size_t n, int kind, uint64_t *state)
{
    static const double wide[KINDS] = {8, 90, 0x1p-10, 3, 0, 60, 40};
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(wide[kind] * test_uniform(state) + (kind == 5 ? -150 : kind == 6 ? 3000 : kind == 4 ? 1.7 : 0));
    if (kind == 3)
        x[test_draw(state, n)] = 40;
}

/* Powers less the largest, and their sum. */
static quad truth_of(quad *e, const float *t, size_t n)
{
    float m = t[0];
    quad sum = 0;
    for (size_t i = 1; i < n; i++)
        m = fmaxf(m, t[i]);
    for (size_t i = 0; i < n; i++)
        sum += e[i] = quad_exp((quad)t[i] - (quad)m);
    return sum;
}

static const size_t lengths[] = {1, 2, 7, 64, 65, 200, 513, 1024, 2048, 4097, LONGEST};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

START_TEST(truth)
{
    static float x[2 * LONGEST], o[2 * LONGEST], l[LONGEST], d_o[LONGEST], dx[LONGEST];
    static quad e[LONGEST];
    const int kind = _i;
    uint64_t state = (uint64_t)kind + 1;
    for (size_t k = 0; k < (test_small() ? LENGTHS - 2 : LENGTHS); k++) {
        const size_t n = lengths[k];
        draw(x, n, kind, &state);
        memcpy(x + n, x, n * sizeof *x); /* two rows, which are another walk where vectors divide them */
        nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, 1, 2, n, x, o);
        ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
        ck_assert_mem_eq(o, o + n, n * sizeof *o);
        args.queries = 1;
        args.log = 1;
        args.o = l;
        ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
        const quad sum = truth_of(e, x, n), lse = logarithm(sum);
        float m = x[0];
        for (size_t i = 1; i < n; i++)
            m = fmaxf(m, x[i]);
        quad all = 0, dot = 0, total = 0, size = 0, all_size = 0;
        for (size_t i = 0; i < n; i++) {
            const quad exact = e[i] / sum, log_exact = (quad)x[i] - (quad)m - lse;
            note(OF_O, ulps(o[i], exact), i);
            note(OF_LOG, ulps(l[i], log_exact) - 0x1p-46 / element_ulp((double)log_exact, NRG_F32), i);
            ck_assert(l[i] <= 0);
            d_o[i] = (float)test_uniform(&state);
            all += (quad)o[i];
            dot += (quad)o[i] * (quad)d_o[i];
            total += (quad)d_o[i];
            size += quad_abs((quad)o[i] * (quad)d_o[i]);
            all_size += quad_abs((quad)d_o[i]);
        }
        note(OF_SUM, (double)quad_abs(all - 1) * 0x1p24, n);
        /* of what the forward pass has stored, as a part of the bound */
        nrg_softmax_backward_args back = nrg_softmax_backward_args_init(NRG_F32, 1, 1, 1, n, o, d_o, dx);
        back.scale = 0.7f;
        ck_assert_int_eq(nrg_softmax_backward(&back, 0, 1), NRG_OK);
        for (size_t i = 0; i < n; i++) {
            const quad exact = (quad)o[i] * ((quad)d_o[i] - dot) * (quad)0.7f;
            const double terms = (double)o[i] * 0.7 * (3 * fabs((double)d_o[i]) + 10 * (double)size);
            note(OF_DX, (double)quad_abs((quad)dx[i] - exact) / (0x1p-24 * terms + 0x1p-149), i);
        }
        back.log = 1;
        back.o = l;
        ck_assert_int_eq(nrg_softmax_backward(&back, 0, 1), NRG_OK);
        for (size_t i = 0; i < n; i++) {
            const quad p = quad_exp((quad)l[i]), exact = ((quad)d_o[i] - p * total) * (quad)0.7f;
            const double terms = 0.7 * (2 * fabs((double)d_o[i]) + 9.3 * (double)(p * all_size));
            note(OF_DX, (double)quad_abs((quad)dx[i] - exact) / (0x1p-24 * terms), i);
        }
    }
}
END_TEST

/* A limit, or a window, is a mask of 0 and -infinity, to the bit. */
START_TEST(limits_are_masks)
{
    enum { QUERIES = 9, MOST = 2500 };
    static const size_t keys_of[] = {5, 64, 300, MOST};
    static float x[QUERIES * MOST], mask[QUERIES * MOST], o[QUERIES * MOST], masked[QUERIES * MOST];
    uint64_t state = 5;
    for (size_t k = 0; k < sizeof keys_of / sizeof keys_of[0]; k++)
        for (int way = 0; way < 6; way++) {
            const size_t keys = keys_of[k], window = way / 2 == 0 ? SIZE_MAX : way / 2 == 1 ? 3 : keys / 2;
            const int causal = way % 2 || window == SIZE_MAX;
            nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, 1, QUERIES, keys, x, o);
            args.causal = causal;
            args.window = window;
            args.log = way == 4;
            args.scale = 0.3f;
            for (size_t i = 0; i < QUERIES; i++)
                for (size_t j = 0; j < keys; j++) {
                    const long away = (long)(args.first_position + (int64_t)i) - (long)j;
                    const int seen =
                        !(causal && away < 0) && !(window != SIZE_MAX && (away >= (long)window || -away >= (long)window));
                    x[i * keys + j] = (float)(10 * test_uniform(&state));
                    mask[i * keys + j] = seen ? 0 : -INFINITY;
                }
            ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
            nrg_softmax_args other = args;
            other.causal = 0;
            other.window = SIZE_MAX;
            other.mask = mask;
            other.o = masked;
            ck_assert_int_eq(nrg_softmax_forward(&other, 0, 1), NRG_OK);
            ck_assert_mem_eq(o, masked, QUERIES * keys * sizeof *o);
            /* what is not seen is not read */
            for (size_t i = 0; i < QUERIES * keys; i++)
                if (mask[i] < 0)
                    x[i] = NAN;
            memset(masked, 0, sizeof masked);
            other = args;
            other.o = masked;
            ck_assert_int_eq(nrg_softmax_forward(&other, 0, 1), NRG_OK);
            ck_assert_mem_eq(o, masked, QUERIES * keys * sizeof *o);
        }
}
END_TEST

/* Cap, bias and mask in one call are nrg_activation_forward, nrg_score_bias_forward, an addition, and softmax. */
START_TEST(fused_is_unfused)
{
    enum { HEADS = 3, QUERIES = 5, KEYS = 77, ROW = QUERIES * KEYS, ALL = HEADS * ROW, ENTRIES = QUERIES + KEYS - 1 };
    static float x[ALL], t[ALL], mask[ROW], diagonals[HEADS * ENTRIES], slopes[HEADS] = {0.5f, 0.25f, 3}, o[ALL], got[ALL];
    const int has_cap = _i & 1, has_bias = _i & 2, has_mask = _i & 4;
    const float scale = 0.37f, cap = 5;
    uint64_t state = (uint64_t)_i;
    for (size_t i = 0; i < ALL; i++)
        x[i] = (float)(20 * test_uniform(&state));
    for (size_t i = 0; i < ROW; i++)
        mask[i] = test_draw(&state, 3) ? (float)test_uniform(&state) : -INFINITY;
    for (size_t i = 0; i < HEADS * ENTRIES; i++)
        diagonals[i] = (float)(4 * test_uniform(&state));
    nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, HEADS, QUERIES, KEYS, x, got);
    args.scale = scale;
    args.cap = has_cap ? cap : INFINITY;
    args.diagonals = has_bias ? diagonals : NULL;
    args.mask = has_mask ? mask : NULL;
    args.slopes = has_mask ? slopes : NULL;
    args.mask_repeat = NRG_REPEAT_ROWS2 | NRG_REPEAT_ROWS3;
    ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);

    float factor = scale;
    memcpy(t, x, sizeof t);
    if (has_cap) {
        for (size_t i = 0; i < ALL; i++)
            t[i] *= scale / cap;
        ck_assert_int_eq(nrg_activation_forward(NRG_ACT_TANH, NRG_F32, ALL, t, t, 0, 1), NRG_OK);
        factor = cap;
    }
    if (has_bias) {
        nrg_score_bias_args bias = nrg_score_bias_args_init(NRG_F32, 1, HEADS, QUERIES, KEYS, t, diagonals, t);
        bias.scale = factor;
        ck_assert_int_eq(nrg_score_bias_forward(&bias, 0, 1), NRG_OK);
    } else {
        for (size_t i = 0; i < ALL; i++)
            t[i] *= factor;
    }
    for (size_t i = 0; i < ALL && has_mask; i++)
        t[i] = fmaf(mask[i % ROW], slopes[i / ROW], t[i]);
    nrg_softmax_args plain = nrg_softmax_args_init(NRG_F32, 1, HEADS, QUERIES, KEYS, t, o);
    ck_assert_int_eq(nrg_softmax_forward(&plain, 0, 1), NRG_OK);
    ck_assert_mem_eq(o, got, sizeof o);
}
END_TEST

/* With a scale of 0 scores count as 0, on every path; 0 times infinity is a NaN. */
START_TEST(scale_of_zero)
{
    enum { ROWS = 2, MOST = 2112 }; /* of one chunk, in flight, and longer */
    static const size_t keys_of[] = {1, 70, 640, MOST};
    static float x[ROWS * MOST], o[ROWS * MOST], zeros[ROWS * MOST], wanted[ROWS * MOST], mask[ROWS * MOST];
    nrg_isa paths[NRG_ISA_COUNT];
    const int is_log = _i & 1, has_mask = _i & 2;
    const float cap = _i & 4 ? 3 : INFINITY;
    uint64_t state = (uint64_t)_i;
    for (size_t i = 0; i < ROWS * MOST; i++) {
        x[i] = (float)(20 * test_uniform(&state));
        mask[i] = (float)test_uniform(&state);
    }
    for (size_t path = test_paths(paths); path-- > 0;)
        for (size_t k = 0; k < sizeof keys_of / sizeof keys_of[0]; k++) {
            const size_t keys = keys_of[k], bytes = ROWS * keys * sizeof *x;
            float m[2][ROWS], factor[2][ROWS];
            double s[2][ROWS];
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, 1, ROWS, keys, x, o);
            nrg_softmax_args plain = nrg_softmax_args_init(NRG_F32, 1, 1, ROWS, keys, zeros, wanted);
            args.scale = 0;
            args.cap = cap;
            args.log = plain.log = is_log;
            args.mask = plain.mask = has_mask ? mask : NULL;
            ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
            ck_assert_int_eq(nrg_softmax_forward(&plain, 0, 1), NRG_OK);
            size_t wrong = 0;
            for (size_t i = 0; i < ROWS * keys; i++)
                wrong += o[i] != wanted[i]; /* a logarithm of 0 may have either sign */
            ck_assert_uint_eq(wrong, 0);
            nrg_softmax_backward_args back = nrg_softmax_backward_args_init(NRG_F32, 1, 1, ROWS, keys, wanted, mask, o);
            back.scale = 0;
            back.cap = cap;
            back.log = is_log;
            back.x = _i & 4 ? x : NULL;
            ck_assert_int_eq(nrg_softmax_backward(&back, 0, 1), NRG_OK);
            for (size_t i = 0; i < ROWS * keys; i++)
                wrong += o[i] != 0;
            ck_assert_uint_eq(wrong, 0);
            args.log = plain.log = 0;
            const nrg_softmax_state states[] = {nrg_softmax_state_init(m[0], s[0], factor[0]),
                                                nrg_softmax_state_init(m[1], s[1], factor[1])};
            ck_assert_int_eq(nrg_softmax_part(&args, &states[0], 0, 1), NRG_OK);
            ck_assert_int_eq(nrg_softmax_part(&plain, &states[1], 0, 1), NRG_OK);
            ck_assert_mem_eq(o, wanted, bytes);
            ck_assert_mem_eq(m[0], m[1], sizeof m[0]);
            ck_assert_mem_eq(s[0], s[1], sizeof s[0]);
            const float there = x[0];
            x[0] = INFINITY;
            ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
            ck_assert(isnan(o[0]));
            x[0] = there;
        }
}
END_TEST

/* A cache that is filled to its end: the last query sees all keys, and queries before the first key see none. */
START_TEST(default_position)
{
    static const struct {
        size_t queries, keys;
        int64_t first;
    } of[] = {{1, 6, 5}, {4, 6, 2}, {6, 6, 0}, {6, 2, -4}};
    for (size_t n = 0; n < sizeof of / sizeof of[0]; n++) {
        float x[36] = {0}, o[36], dx[36];
        nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, 1, of[n].queries, of[n].keys, x, o);
        const nrg_softmax_backward_args back = nrg_softmax_backward_args_init(NRG_F32, 1, 1, of[n].queries, of[n].keys, o, o, dx);
        ck_assert(args.first_position == of[n].first && back.first_position == of[n].first);
        args.causal = 1;
        ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
        for (size_t i = 0; i < of[n].queries; i++)
            for (size_t j = 0; j < of[n].keys; j++)
                ck_assert_int_eq(o[i * of[n].keys + j] > 0, (int64_t)j <= of[n].first + (int64_t)i);
    }
}
END_TEST

/* A window over the end of a segment of 4096 keys: both segments have a sum, as in a row that begins with the first key. */
START_TEST(windows_over_segments)
{
    enum { QUERIES = 64, KEYS = 4160, WINDOW = 100, SEED = 0x2545f491 };
    static float x[QUERIES * KEYS], o[QUERIES * KEYS], m[2][QUERIES], factor[QUERIES];
    static double sum[2][QUERIES];
    nrg_isa paths[NRG_ISA_COUNT];
    uint32_t random = SEED;
    for (size_t i = 0; i < QUERIES * KEYS; i++) {
        random = random * 1664525 + 1013904223;
        x[i] = (float)(random >> 8) * 0x1p-18f - 32; /* far apart, so that the order of additions shows */
    }
    for (size_t path = test_paths(paths); path-- > 0;)
        for (int of_scalar = 1; of_scalar >= 0; of_scalar--) {
            nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, 1, QUERIES, KEYS, x, o);
            nrg_softmax_state state = nrg_softmax_state_init(m[of_scalar], sum[of_scalar], factor);
            args.causal = 1;
            args.window = WINDOW;
            ck_assert_int_eq(nrg_isa_set(of_scalar ? NRG_ISA_SCALAR : paths[path]), NRG_OK);
            ck_assert_int_eq(nrg_softmax_part(&args, &state, 0, 1), NRG_OK);
            if (!of_scalar)
                ck_assert_mem_eq(sum[0], sum[1], sizeof sum[0]);
        }
}
END_TEST

/* Offsets and windows at the ends of their types: what is seen is what the definition says, or the call is refused. */
START_TEST(far_positions)
{
    enum { QUERIES = 4, KEYS = 66 };
    static const int64_t farthest = (int64_t)1 << 61, offsets[] = {0,
                                                                   1,
                                                                   62,
                                                                   -3,
                                                                   -66,
                                                                   (int64_t)1 << 31,
                                                                   -((int64_t)1 << 31),
                                                                   farthest - 1,
                                                                   farthest,
                                                                   -farthest,
                                                                   farthest + 1,
                                                                   -farthest - 1,
                                                                   (int64_t)1 << 62,
                                                                   -((int64_t)1 << 62),
                                                                   INT64_MAX,
                                                                   INT64_MIN};
    static const uint64_t windows[] = {1, 3, 65, (uint64_t)1 << 31, UINT32_MAX, (uint64_t)1 << 61, (uint64_t)1 << 62, UINT64_MAX};
    enum { OFFSETS = sizeof offsets / sizeof offsets[0], WINDOWS = sizeof windows / sizeof windows[0], NEAR = 20 };
    static float x[QUERIES * KEYS], ones[QUERIES * KEYS], o[QUERIES * KEYS], dx[QUERIES * KEYS];
    nrg_isa paths[NRG_ISA_COUNT];
    const int causal = _i;
    for (size_t i = 0; i < QUERIES * KEYS; i++) {
        x[i] = (float)(i % 7);
        ones[i] = 1;
    }
    for (size_t path = test_paths(paths); path-- > 0;)
        for (size_t n = 0; n < OFFSETS * (WINDOWS + NEAR); n++) {
            /* a window of the list, or one that ends among the keys */
            const int64_t offset = offsets[n % OFFSETS];
            const size_t k = n / OFFSETS;
            const uint64_t from = offset < 0 ? 0 - (uint64_t)offset : (uint64_t)offset;
            const uint64_t w = k < WINDOWS ? windows[k] : from + 5 - (k - WINDOWS) * 4;
            if (!w || w > SIZE_MAX)
                continue;
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, 1, QUERIES, KEYS, x, o);
            nrg_softmax_backward_args back = nrg_softmax_backward_args_init(NRG_F32, 1, 1, QUERIES, KEYS, ones, ones, dx);
            args.causal = back.causal = causal;
            args.first_position = back.first_position = offset;
            args.window = back.window = (size_t)w;
            back.log = 1;
            const nrg_status status =
                (causal || w < SIZE_MAX) && (offset > farthest || offset < -farthest) ? NRG_ERR_POSITION : NRG_OK;
            ck_assert_int_eq(nrg_softmax_forward_check(&args), status);
            ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), status);
            ck_assert_int_eq(nrg_softmax_backward(&back, 0, 1), status);
            for (size_t i = 0; i < QUERIES && status == NRG_OK; i++)
                for (size_t j = 0; j < KEYS; j++) {
                    const quad away = (quad)offset + (quad)i - (quad)j;
                    const int seen = !(causal && away < 0) && !(w < SIZE_MAX && (away >= (quad)w || -away >= (quad)w));
                    if ((o[i * KEYS + j] != 0) != seen || (dx[i * KEYS + j] != 0) != seen)
                        ck_abort_msg("offset %lld, window %llu: query %zu, key %zu", (long long)offset, (unsigned long long)w, i,
                                     j);
                }
        }
}
END_TEST

static void row_is(const nrg_softmax_args *args, float expected)
{
    const float *o = args->o;
    ck_assert_int_eq(nrg_softmax_forward(args, 0, 1), NRG_OK);
    for (size_t i = 0; i < args->queries * args->keys; i++)
        if (isnan(expected) ? !isnan(o[i]) : memcmp(&o[i], &expected, sizeof expected) != 0)
            ck_abort_msg("element %zu is %a and not %a", i, (double)o[i], (double)expected);
}

/* Rows of -infinity, with a NaN, with +infinity; a sink; masks of -FLT_MAX. */
START_TEST(special_rows)
{
    enum { MOST = 4160 };
    static const size_t keys_of[] = {1, 64, 70, MOST};
    static float x[2 * MOST], o[2 * MOST];
    nrg_isa paths[NRG_ISA_COUNT];
    for (size_t path = test_paths(paths); path-- > 0;)
        for (size_t k = 0; k < sizeof keys_of / sizeof keys_of[0]; k++) {
            const size_t keys = keys_of[k];
            ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
            nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, 1, 2, keys, x, o);
            for (size_t i = 0; i < 2 * keys; i++)
                x[i] = -INFINITY;
            row_is(&args, 0);
            args.log = 1;
            row_is(&args, -INFINITY);
            args.log = 0;
            const float sink = 3;
            args.sinks = &sink;
            row_is(&args, 0);
            args.sinks = NULL;
            for (size_t i = 0; i < 2 * keys; i++)
                x[i] = -FLT_MAX;
            row_is(&args, (float)(1 / (double)keys));
            args.causal = 1;
            args.first_position = -2;
            row_is(&args, 0);
            args.causal = 0;
            for (size_t bad = 0; bad<keys; bad += keys> 100 ? 997 : 1)
                for (int kind = 0; kind < 2; kind++) {
                    for (size_t i = 0; i < 2 * keys; i++)
                        x[i] = i % 3 ? 2 : -INFINITY;
                    x[bad] = x[keys + bad] = kind ? INFINITY : NAN;
                    row_is(&args, NAN);
                    args.log = 1;
                    row_is(&args, NAN);
                    args.log = 0;
                }
            /* a sink beside equal scores */
            for (size_t i = 0; i < 2 * keys; i++)
                x[i] = 3;
            args.sinks = &sink;
            ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
            for (size_t i = 0; i < 2 * keys; i++)
                ck_assert(fabs((double)o[i] * (double)(keys + 1) - 1) < 0x1p-21);
        }
}
END_TEST

/* Rows whose largest score comes last and is far above the others: what is guessed from the first scores shows in no bit. */
START_TEST(largest_comes_last)
{
    enum { KEYS = 192, ROWS = 2, SIZE = ROWS * KEYS };
    static float x[SIZE], o[SIZE], expected[SIZE];
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    for (int top = 180; top < 260; top += 2)
        for (int above = 0; above < 60; above += 3)
            for (size_t rows = 1; rows <= ROWS; rows++) {
                for (size_t i = 0; i < SIZE; i++)
                    x[i] = (float)(top + (i % KEYS == KEYS - 1 ? above : 0)) - (float)(i * 37 % 40) * 0.7f;
                nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, 1, rows, KEYS, x, expected);
                ck_assert_int_eq(nrg_isa_set(NRG_ISA_SCALAR), NRG_OK);
                ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
                args.o = o;
                for (size_t path = 0; path < count; path++) {
                    ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
                    ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
                    ck_assert_mem_eq(o, expected, rows * KEYS * sizeof *o);
                }
            }
}
END_TEST

/* Blocks of keys, one after the other and then apart: sums, factors and what they rescale, against the whole. */
START_TEST(parts)
{
    enum { KEYS = 700, BLOCK = 96, BLOCKS = (KEYS + BLOCK - 1) / BLOCK, ROWS = 2 * KINDS };
    static float x[ROWS][KEYS], o[ROWS][BLOCK], m[ROWS], factor[ROWS], acc[ROWS], inverse[ROWS];
    static float ms[BLOCKS][ROWS], factors[BLOCKS][ROWS], unused[ROWS], sums[BLOCKS][ROWS], whole_m[ROWS];
    static double s[ROWS], ss[BLOCKS][ROWS], whole_s[ROWS], lse[ROWS];
    static quad e[KEYS];
    uint64_t state = 77;
    for (int row = 0; row < ROWS; row++) {
        draw(x[row], KEYS, row % KINDS, &state);
        for (int i = 0; i < KEYS && row >= KINDS; i++)
            x[row][i] += (float)(i / BLOCK) * (row == KINDS ? 100 : 11); /* the largest comes last, so that all is rescaled */
    }
    for (int n = 0; n < BLOCKS; n++) {
        const size_t keys = n + 1 < BLOCKS ? BLOCK : KEYS - n * BLOCK;
        nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, 1, ROWS, keys, x[0] + n * BLOCK, o);
        args.x_strides.row = sizeof x[0];
        args.o_strides.row = sizeof o[0];
        nrg_softmax_state state_ = nrg_softmax_state_init(m, s, factor);
        state_.m_in = n ? m : NULL;
        state_.sum_in = n ? s : NULL;
        for (int ith = 0; ith < 3; ith++)
            ck_assert_int_eq(nrg_softmax_part(&args, &state_, ith, 3), NRG_OK);
        for (int row = 0; row < ROWS; row++) {
            acc[row] *= n ? factor[row] : 0;
            for (size_t i = 0; i < keys; i++)
                acc[row] += o[row][i] * (float)(i % 2);
        }
        nrg_softmax_state apart = nrg_softmax_state_init(ms[n], ss[n], unused);
        ck_assert_int_eq(nrg_softmax_part(&args, &apart, 0, 1), NRG_OK);
        for (int row = 0; row < ROWS; row++) {
            sums[n][row] = 0;
            for (size_t i = 0; i < keys; i++)
                sums[n][row] += o[row][i] * (float)(i % 2);
        }
    }
    nrg_softmax_merge_args merge = nrg_softmax_merge_args_init(BLOCKS, ROWS, ms[0], ss[0], whole_m, whole_s);
    merge.factor = factors[0];
    merge.inverse = inverse;
    merge.lse = lse;
    for (int ith = 0; ith < 2; ith++)
        ck_assert_int_eq(nrg_softmax_merge(&merge, ith, 2), NRG_OK);
    ck_assert_mem_eq(m, whole_m, sizeof m);
    for (int row = 0; row < ROWS; row++) {
        const quad sum = truth_of(e, x[row], KEYS), log_sum = logarithm(sum) + (quad)m[row];
        quad odd = 0;
        float apart = 0;
        for (int i = 0; i < KEYS; i++)
            odd += e[i] * (quad)(i % BLOCK % 2) / sum;
        for (int n = 0; n < BLOCKS; n++)
            apart += sums[n][row] * factors[n][row];
        note(OF_S, fabs((double)((quad)lse[row] - log_sum)) * 0x1p24, (size_t)row);
        /* in turn or apart: the same powers, unless a largest beyond 256 is taken from them */
        note(OF_S, fabs(s[row] / whole_s[row] - 1) * (fabsf(m[row]) > 256 ? 0x1p24 : 0x1p44), (size_t)row);
        ck_assert(fabs((double)(acc[row] * inverse[row]) - (double)odd) < 1e-5);
        ck_assert(fabs((double)(apart * inverse[row]) - (double)odd) < 1e-5);
    }
    /* nothing so far, and nothing seen */
    nrg_softmax_args none = nrg_softmax_args_init(NRG_F32, 1, 1, ROWS, BLOCK, x[0], o);
    none.causal = 1;
    none.first_position = -2 * ROWS;
    nrg_softmax_state empty = nrg_softmax_state_init(m, s, factor);
    ck_assert_int_eq(nrg_softmax_part(&none, &empty, 0, 1), NRG_OK);
    merge = nrg_softmax_merge_args_init(1, ROWS, m, s, whole_m, whole_s);
    merge.inverse = inverse;
    merge.lse = lse;
    ck_assert_int_eq(nrg_softmax_merge(&merge, 0, 1), NRG_OK);
    for (int row = 0; row < ROWS; row++)
        ck_assert(m[row] < -FLT_MAX && s[row] == 0 && factor[row] == 1 && inverse[row] == 0 && lse[row] < -DBL_MAX);
}
END_TEST

/* Loss, log-sum-exp and gradient against the truth; a row that is ignored; in place. */
START_TEST(losses)
{
    enum { ROWS = 3, MOST = 3000 };
    static const size_t classes_of[] = {1, 5, 64, 700, MOST};
    static float x[ROWS * MOST], dx[ROWS * MOST];
    static quad e[MOST];
    const float d_loss[ROWS] = {0.25f, 3, -0.7f};
    uint64_t state = (uint64_t)_i + 9;
    for (size_t k = 0; k < sizeof classes_of / sizeof classes_of[0]; k++) {
        const size_t classes = classes_of[k];
        const int32_t ids[ROWS] = {(int32_t)classes - 1, -100, (int32_t)test_draw(&state, classes)};
        float loss[ROWS], m[ROWS];
        double others[ROWS];
        draw(x, ROWS * classes, _i, &state);
        nrg_cross_entropy_args args = nrg_cross_entropy_args_init(NRG_F32, ROWS, classes, x, ids, loss, m, others);
        for (int ith = 0; ith < 2; ith++)
            ck_assert_int_eq(nrg_cross_entropy_forward(&args, ith, 2), NRG_OK);
        args.loss = NULL;
        args.m = NULL;
        args.others = NULL;
        args.m_in = m;
        args.others_in = others;
        args.d_loss = d_loss;
        args.dx = dx;
        ck_assert_int_eq(nrg_cross_entropy_backward(&args, 0, 1), NRG_OK);
        for (size_t row = 0; row < ROWS; row++) {
            const float *t = x + row * classes;
            const size_t own = (size_t)ids[row];
            if (ids[row] < 0) {
                ck_assert(loss[row] == 0 && m[row] == 0 && others[row] == 0);
                for (size_t i = 0; i < classes; i++)
                    ck_assert(dx[row * classes + i] == 0);
                continue;
            }
            const quad sum = truth_of(e, t, classes);
            quad rest = 0;
            for (size_t i = 0; i < classes; i++)
                rest += i == own ? 0 : e[i];
            ck_assert(loss[row] >= 0);
            note(OF_LOSS,
                 ulps(loss[row], rest < e[own] ? quad_log1p(rest / e[own]) : (quad)m[row] - (quad)t[own] + logarithm(sum)), row);
            for (size_t i = 0; i < classes; i++)
                note(OF_D, ulps(dx[row * classes + i], (i == own ? -rest : e[i]) / sum * (quad)d_loss[row]), i);
        }
        nrg_cross_entropy_args place = args;
        place.dx = x;
        ck_assert_int_eq(nrg_cross_entropy_backward(&place, 0, 1), NRG_OK);
        ck_assert_mem_eq(x, dx, ROWS * classes * sizeof *x);
    }
}
END_TEST

/* dx with a cap, against differences of the whole in double. */
START_TEST(gradients_by_differences)
{
    enum { N = 13 };
    static float x[N], o[N], d_o[N], dx[N];
    uint64_t state = (uint64_t)_i;
    const int log_ = _i & 1;
    const double scale = 0.9, cap = _i & 2 ? 2.5 : (double)INFINITY;
    for (int i = 0; i < N; i++) {
        x[i] = (float)(3 * test_uniform(&state));
        d_o[i] = (float)test_uniform(&state);
    }
    nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, 1, 1, N, x, o);
    nrg_softmax_backward_args back = nrg_softmax_backward_args_init(NRG_F32, 1, 1, 1, N, o, d_o, dx);
    args.scale = back.scale = (float)scale;
    args.cap = back.cap = (float)cap;
    args.log = back.log = log_;
    back.x = _i & 2 ? x : NULL;
    ck_assert_int_eq(nrg_softmax_forward(&args, 0, 1), NRG_OK);
    ck_assert_int_eq(nrg_softmax_backward(&back, 0, 1), NRG_OK);
    for (int k = 0; k < N; k++) {
        double value[2];
        for (int side = 0; side < 2; side++) {
            double t[N], sum = 0;
            for (int i = 0; i < N; i++) {
                const double at = (double)x[i] + (i == k ? (side ? 1e-4 : -1e-4) : 0);
                t[i] = isfinite(cap) ? cap * tanh(at * scale / cap) : at * scale;
                sum += exp(t[i]);
            }
            value[side] = 0;
            for (int i = 0; i < N; i++)
                value[side] += (double)d_o[i] * (log_ ? t[i] - log(sum) : exp(t[i]) / sum);
        }
        ck_assert(fabs((value[1] - value[0]) / 2e-4 - (double)dx[k]) < 1e-6);
    }
}
END_TEST

int main(int argc, char **argv)
{
    argc = test_arguments(argc, argv);
    test_note_crashes();
    worst = test_shared(ERRORS * sizeof *worst);
    Suite *suite = suite_create("softmax");
    TCase *all = test_case(suite, "softmax");
    tcase_add_loop_test(all, truth, 0, KINDS);
    tcase_add_test(all, limits_are_masks);
    tcase_add_loop_test(all, fused_is_unfused, 0, 8);
    tcase_add_loop_test(all, scale_of_zero, 0, 8);
    tcase_add_test(all, windows_over_segments);
    tcase_add_loop_test(all, far_positions, 0, 2);
    tcase_add_test(all, default_position);
    tcase_add_test(all, special_rows);
    tcase_add_test(all, largest_comes_last);
    tcase_add_test(all, parts);
    tcase_add_loop_test(all, losses, 0, KINDS);
    tcase_add_loop_test(all, gradients_by_differences, 0, 4);
    const int status = test_run(suite);
    if (argc > 1 && strcmp(argv[1], "--report") == 0)
        printf("o %.3f ulp, sum of a row %.2f · 2^-24, log %.3f ulp, dx %.3f of its bound, s %.3f · 2^-24, loss %.3f ulp, its dx "
               "%.3f ulp\n",
               worst[OF_O], worst[OF_SUM], worst[OF_LOG], worst[OF_DX], worst[OF_S], worst[OF_LOSS], worst[OF_D]);
    return status;
}
