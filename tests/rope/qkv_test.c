/* nrg/qkv.h, beside what bits_test does: against its steps by hand, in the library's other calls; what a workspace keeps from
 * call to call; slots in any order; and its truth, against 113-bit arithmetic.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/rows.h"
#include "../harness/support.h"
#include "rope_exact.h"

enum { TOKENS = 9, DIM = 64, N_DIMS = 48, HEADS = 5, K_HEADS = 2, V_DIM = 40, SLOTS = 23 };
enum { Q = HEADS * DIM, K = K_HEADS * DIM, V = K_HEADS * V_DIM };

/* A layer's tensors of f32, and the elements of its outputs. */
typedef struct layer {
    float q[TOKENS * Q], k[TOKENS * K], v[TOKENS * V], q_w[DIM], k_w[DIM];
    int32_t positions[TOKENS];
    _Alignas(8) int64_t slots[TOKENS]; /* 32-bit x86 by itself aligns to 4 */
} layer;

typedef struct result {
    float q_o[SLOTS * Q], k_o[SLOTS * K], v_o[SLOTS * V]; /* room for any dtype */
} result;

static void fill_layer(layer *l, uint64_t seed)
{
    row_fill(l->q, TOKENS * Q, ROW_NORMAL, NRG_F32, seed);
    row_fill(l->k, TOKENS * K, ROW_NORMAL, NRG_F32, seed + 1);
    row_fill(l->v, TOKENS * V, ROW_NORMAL, NRG_F32, seed + 2);
    row_fill(l->q_w, DIM, ROW_NORMAL, NRG_F32, seed + 3);
    row_fill(l->k_w, DIM, ROW_NORMAL, NRG_F32, seed + 4);
    l->q[7] = NAN;
    l->k[DIM + 3] = INFINITY;
    for (int t = 0; t < TOKENS; t++) {
        l->positions[t] = (int32_t)(test_mix(seed + (uint64_t)t) % 4096);
        l->slots[t] = (t * 7 + 3) % SLOTS;
    }
}

static nrg_qkv_args args_of(const layer *l, result *r, nrg_dtype dtype)
{
    nrg_qkv_args a = nrg_qkv_args_init(dtype, TOKENS, DIM);
    a.q_heads = HEADS;
    a.k_heads = a.v_heads = K_HEADS;
    a.v_dim = V_DIM;
    a.rotate_from = 8;
    a.q = element_stored(l->q, TOKENS * Q, dtype);
    a.k = element_stored(l->k, TOKENS * K, dtype);
    a.v = element_stored(l->v, TOKENS * V, dtype);
    a.q_o = r->q_o;
    a.k_o = r->k_o;
    a.v_o = r->v_o;
    a.positions = l->positions;
    a.slots = l->slots;
    a.slot_count = SLOTS;
    return a;
}

static void take_workspace(nrg_qkv_args *a, const nrg_rope_spec *rope, int nth)
{
    ck_assert_int_eq(nrg_qkv_workspace(rope, a, nth, &a->workspace_size), NRG_OK);
    a->workspace = test_allocate(1, a->workspace_size);
}

static void release(nrg_qkv_args *a)
{
    free((void *)(uintptr_t)a->q);
    free((void *)(uintptr_t)a->k);
    free((void *)(uintptr_t)a->v);
    free(a->workspace);
}

/* ---- the steps by hand ---- */

/* Rows of f32 to where they belong, in another dtype. */
static void scatter(const float *from, void *to, nrg_dtype dtype, size_t row, const int64_t *slots)
{
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < row; i++)
            element_set(to, (slots ? (size_t)slots[t] : t) * row + i, dtype, from[t * row + i]);
}

static void by_hand(const nrg_rope_spec *rope, const nrg_norm_spec *norm, const layer *l, const nrg_qkv_args *a, result *r)
{
    static float q[TOKENS * Q], k[TOKENS * K], table[TOKENS * N_DIMS];
    double frequencies[N_DIMS], magnitude;
    float *v = element_floats(a->v, TOKENS * V, a->dtype), *of_q = element_floats(a->q, TOKENS * Q, a->dtype),
          *of_k = element_floats(a->k, TOKENS * K, a->dtype);
    ck_assert_int_eq(nrg_rope_frequencies(rope, frequencies, &magnitude), NRG_OK);
    nrg_rope_table_args t = nrg_rope_table_args_init(TOKENS, frequencies, magnitude, table);
    t.positions = l->positions;
    ck_assert_int_eq(nrg_rope_table(rope, &t, 0, 1), NRG_OK);
    if (norm) {
        nrg_norm_args n = nrg_norm_args_init(TOKENS * HEADS, of_q, l->q_w, q);
        ck_assert_int_eq(nrg_norm_forward(norm, &n, 0, 1), NRG_OK);
        n = nrg_norm_args_init(TOKENS * K_HEADS, of_k, l->k_w, k);
        ck_assert_int_eq(nrg_norm_forward(norm, &n, 0, 1), NRG_OK);
    }
    nrg_rope_args args = nrg_rope_args_init(NRG_F32, TOKENS, DIM, table);
    args.rotate_from = a->rotate_from;
    args.q_heads = HEADS;
    args.k_heads = K_HEADS;
    args.q = norm ? q : of_q;
    args.k = norm ? k : of_k;
    args.q_o = q;
    args.k_o = k;
    ck_assert_int_eq(nrg_rope_forward(rope, &args, 0, 1), NRG_OK);
    scatter(q, r->q_o, a->q_o_dtype, Q, NULL);
    scatter(k, r->k_o, a->k_o_dtype, K, a->slots);
    scatter(v, r->v_o, a->v_o_dtype, V, a->slots);
    free(v);
    free(of_q);
    free(of_k);
}

static void must_equal(const void *a, const void *b, size_t count, nrg_dtype dtype, const char *name)
{
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(element_equal(a, b, i, dtype), "%s: element %zu of %s", nrg_isa_name(nrg_isa_active()), i, name);
}

static void compare(const result *r, const result *hand, const nrg_qkv_args *a)
{
    must_equal(r->q_o, hand->q_o, TOKENS * Q, a->q_o_dtype, "q");
    must_equal(r->k_o, hand->k_o, SLOTS * K, a->k_o_dtype, "k");
    must_equal(r->v_o, hand->v_o, SLOTS * V, a->v_o_dtype, "v");
}

/* Any dtype to any, on every path, in up to seven shares of 9 tokens of 9 heads, with a workspace for as many or for more, the
 * last share first; into slots in any order, and into such as follow each other. */
START_TEST(as_by_hand)
{
    static layer l;
    static result r, hand;
    nrg_isa paths[NRG_ISA_COUNT];
    const nrg_dtype dtype = (nrg_dtype)(NRG_F32 + _i % 3), q_o = (nrg_dtype)(NRG_F32 + _i / 3 % 3),
                    cache = (nrg_dtype)(NRG_F32 + _i / 9 % 3);
    nrg_rope_spec rope = nrg_rope_spec_init(N_DIMS, _i % 2 ? NRG_ROPE_NEOX : NRG_ROPE_NORMAL, 10000);
    nrg_norm_spec norm = nrg_norm_spec_rms(NRG_F32, DIM, 1e-6);
    fill_layer(&l, (uint64_t)_i);
    for (size_t p = test_paths(paths); p-- > 0;)
        for (int normed = 0; normed < 2; normed++)
            for (int shares = 1; shares < 8; shares++) {
                nrg_qkv_args a = args_of(&l, &r, dtype);
                for (int t = 0; t < TOKENS; t++)
                    l.slots[t] = shares % 3 ? (t * 7 + 3) % SLOTS : t + 11;
                memset(&r, 0, sizeof r);
                memset(&hand, 0, sizeof hand);
                a.q_o_dtype = q_o;
                a.k_o_dtype = a.v_o_dtype = cache;
                a.q_w = normed ? l.q_w : NULL;
                a.k_w = normed ? l.k_w : NULL;
                take_workspace(&a, &rope, shares + shares % 3);
                ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
                for (int i = 0; i < shares; i++)
                    ck_assert_int_eq(nrg_qkv_forward(normed ? &norm : NULL, &rope, &a, shares - 1 - i, shares), NRG_OK);
                by_hand(&rope, normed ? &norm : NULL, &l, &a, &hand);
                compare(&r, &hand, &a);
                release(&a);
            }
}
END_TEST

#ifndef NRG_NO_QUANTIZE
/* Caches of q8_0: nrg_quantize of f32 ones. */
START_TEST(quantized)
{
    enum { BLOCK_ROW = DIM / 32 * 34 };
    static layer l;
    static result r, hand;
    nrg_isa paths[NRG_ISA_COUNT];
    const nrg_dtype dtype = (nrg_dtype)(NRG_F32 + _i % 3);
    const nrg_rope_spec rope = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NEOX, 10000);
    const nrg_norm_spec norm = nrg_norm_spec_rms(NRG_F32, DIM, 1e-6);
    fill_layer(&l, (uint64_t)_i);
    for (size_t p = test_paths(paths); p-- > 0;) {
        unsigned char blocks[SLOTS * K_HEADS * BLOCK_ROW];
        ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
        nrg_qkv_args a = args_of(&l, &hand, dtype);
        a.k_o_dtype = a.v_o_dtype = NRG_F32;
        free((void *)(uintptr_t)a.v);
        a.v = a.k;
        a.v_dim = DIM;
        a.v_o = hand.q_o; /* room for SLOTS · K floats */
        a.q_heads = 0;
        void *const of_q = (void *)(uintptr_t)a.q;
        a.q = a.q_o = NULL;
        take_workspace(&a, &rope, 3);
        memset(&hand, 0, sizeof hand);
        ck_assert_int_eq(nrg_qkv_forward(_i < 3 ? NULL : &norm, &rope, &a, 0, 1), NRG_OK);
        a.k_o = r.k_o;
        a.v_o = r.q_o;
        a.k_o_dtype = a.v_o_dtype = NRG_DTYPE_SAME;
        a.k_o_format = a.v_o_format = NRG_QUANT_Q8_0;
        memset(&r, 0, sizeof r);
        for (int ith = 0; ith < 3; ith++)
            ck_assert_int_eq(nrg_qkv_forward(_i < 3 ? NULL : &norm, &rope, &a, ith, 3), NRG_OK);
        for (int v = 0; v < 2; v++) {
            const nrg_quantize_args q =
                nrg_quantize_args_init(NRG_QUANT_Q8_0, NRG_F32, SLOTS * K_HEADS, DIM, v ? hand.q_o : hand.k_o, blocks, NULL);
            ck_assert_int_eq(nrg_quantize(&q, 0, 1), NRG_OK);
            ck_assert_msg(memcmp(v ? (void *)r.q_o : (void *)r.k_o, blocks, sizeof blocks) == 0, "%s: %s", nrg_isa_name(paths[p]),
                          v ? "v" : "k");
        }
        a.v = NULL;
        a.q = of_q;
        release(&a);
    }
}
END_TEST
#endif

/* ---- what is kept ---- */

/* A prompt, the same layer again, tokens one by one, other positions, another base, factors, none again, in as many shares
 * as before or in others: each as if it were alone. */
START_TEST(kept_is_never_stale)
{
    enum { STEPS = 200 };
    static layer l;
    static result r, alone;
    static const double bases[] = {10000, 10000, 10000, 500000};
    float factors[N_DIMS / 2];
    nrg_rope_spec rope = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NEOX, 10000);
    fill_layer(&l, 5);
    nrg_qkv_args a = args_of(&l, &r, NRG_F32);
    a.keep = 1;
    take_workspace(&a, &rope, 4);
    int shares = 1 + _i;
    for (int step = 0; step < STEPS; step++) {
        uint64_t state = (uint64_t)step * 64 + (uint64_t)_i;
        nrg_qkv_args b = a;
        for (size_t p = 0; p < N_DIMS / 2; p++)
            factors[p] = 1 + (float)(test_draw(&state, 2) * p);
        a.tokens = step % 3 ? 1 + test_draw(&state, TOKENS) : TOKENS;
        a.positions = test_draw(&state, 3) ? l.positions : NULL;
        a.first_position = (int32_t)test_draw(&state, 3);
        a.first_position = a.positions ? 0 : a.first_position;
        l.positions[0] += (int32_t)test_draw(&state, 2);
        rope.freq_base = bases[test_draw(&state, 4)];
        rope.freq_factors = test_draw(&state, 4) ? NULL : factors;
        memset(&r, 0, sizeof r);
        memset(&alone, 0, sizeof alone);
        b = a;
        b.keep = 0;
        b.q_o = alone.q_o;
        b.k_o = alone.k_o;
        b.v_o = alone.v_o;
        take_workspace(&b, &rope, 1);
        shares = test_draw(&state, 3) ? shares : 1 + (int)test_draw(&state, 4);
        for (int ith = 0; ith < shares; ith++)
            ck_assert_int_eq(nrg_qkv_forward(NULL, &rope, &a, ith, shares), NRG_OK);
        ck_assert_int_eq(nrg_qkv_forward(NULL, &rope, &b, 0, 1), NRG_OK);
        ck_assert_msg(memcmp(&r, &alone, sizeof r) == 0, "step %d", step);
        free(b.workspace);
    }
    release(&a);
}
END_TEST

/* A second call finds its table: it does not make one that has been spoiled. */
START_TEST(a_table_is_kept)
{
    static layer l;
    static result r, first;
    const nrg_rope_spec rope = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NORMAL, 10000);
    fill_layer(&l, 6);
    nrg_qkv_args a = args_of(&l, &r, NRG_F32);
    a.keep = 1;
    take_workspace(&a, &rope, 1);
    ck_assert_int_eq(nrg_qkv_forward(NULL, &rope, &a, 0, 1), NRG_OK);
    first = r;
    int found = 0;
    /* the table lies last: the last word of it that is not 0 */
    for (size_t i = a.workspace_size / sizeof(float); !found && i-- > 0;) {
        float *word = (float *)a.workspace + i;
        if (*word == 0)
            continue;
        *word = 2;
        ck_assert_int_eq(nrg_qkv_forward(NULL, &rope, &a, 0, 1), NRG_OK);
        ck_assert_msg(memcmp(&r, &first, sizeof r) != 0, "the table was made again");
        a.keep = 0;
        ck_assert_int_eq(nrg_qkv_forward(NULL, &rope, &a, 0, 1), NRG_OK);
        ck_assert_msg(memcmp(&r, &first, sizeof r) == 0, "the table was not made again");
        found = 1;
    }
    ck_assert(found);
    release(&a);
}
END_TEST

/* ---- slots ---- */

enum { MANY = 3000, FAR = 1 << 20 };

/* So many that bits are marked, far apart or near each other: distinct ones are written where they belong, and two that are equal
 * are found wherever they are. */
START_TEST(many_slots)
{
    static float v[MANY], cache[FAR];
    static int64_t slots[MANY];
    static const int64_t spread[] = {1, 5, 300};
    const size_t tokens = _i % 2 ? 40 : MANY;
    const nrg_rope_spec rope = nrg_rope_spec_init(2, NRG_ROPE_NORMAL, 10000);
    nrg_qkv_args a = nrg_qkv_args_init(NRG_F32, tokens, 2);
    a.v_heads = a.v_dim = 1;
    a.v = v;
    a.v_o = cache;
    a.slots = slots;
    a.slot_count = FAR;
    take_workspace(&a, &rope, 3);
    for (size_t t = 0; t < tokens; t++) {
        v[t] = (float)t + 1;
        slots[t] = (int64_t)((t * 1237 + 11) % tokens) * spread[_i / 2];
    }
    memset(cache, 0, sizeof cache);
    for (int ith = 0; ith < 3; ith++)
        ck_assert_int_eq(nrg_qkv_forward(NULL, &rope, &a, ith, 3), NRG_OK);
    size_t written = 0;
    for (size_t i = 0; i < FAR; i++)
        written += cache[i] != 0;
    ck_assert_uint_eq(written, tokens);
    for (size_t t = 0; t < tokens; t++)
        ck_assert(cache[slots[t]] == v[t]);
    uint64_t state = (uint64_t)_i;
    for (int n = 0; n < 50; n++) {
        const size_t one = test_draw(&state, (unsigned)tokens),
                     other = (one + 1 + test_draw(&state, (unsigned)tokens - 1)) % tokens;
        const int64_t own = slots[one];
        slots[one] = slots[other];
        ck_assert_int_eq(nrg_qkv_forward(NULL, &rope, &a, 0, 1), NRG_ERR_OVERLAP);
        ck_assert_int_eq(nrg_qkv_forward_check(NULL, &rope, &a, 1), NRG_ERR_OVERLAP);
        slots[one] = own;
    }
    ck_assert_int_eq(nrg_qkv_forward_check(NULL, &rope, &a, 1), NRG_OK);
    /* padding tokens have no slot to share */
    const int64_t own = slots[1];
    slots[1] = slots[tokens - 1] = slots[tokens / 2] = -1;
    ck_assert_int_eq(nrg_qkv_forward_check(NULL, &rope, &a, 1), NRG_OK);
    slots[1] = slots[tokens - 2];
    ck_assert_int_eq(nrg_qkv_forward_check(NULL, &rope, &a, 1), NRG_ERR_OVERLAP);
    slots[1] = -2;
    ck_assert_int_eq(nrg_qkv_forward_check(NULL, &rope, &a, 1), NRG_ERR_POSITION);
    slots[1] = own;
    free(a.workspace);
}
END_TEST

/* Padding tokens, of slot -1: first, last, between, all and none; in one share and in four, on every path. What they would have
 * written keeps its bytes, everything else is what it is where they have slots that nobody reads. */
START_TEST(padding_tokens)
{
    enum { WAYS = 7 };
    static const unsigned padding[WAYS] = {0x1ff, 0x003, 0x1c0, 0x0a4, 0x155, 0x000, 0x001};
    static layer l;
    static result r, wanted;
    static int64_t spare[TOKENS];
    nrg_isa paths[NRG_ISA_COUNT];
    const nrg_rope_spec rope = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NEOX, 10000);
    const nrg_norm_spec norm = nrg_norm_spec_rms(NRG_F32, DIM, 1e-6);
    const int normed = _i & 1, in_turn = _i & 2, quantized_k = _i & 4;
    fill_layer(&l, (uint64_t)_i);
    for (size_t p = test_paths(paths); p-- > 0;)
        for (int n = 0; n < WAYS * 2; n++) {
            const int shares = n < WAYS ? 1 : 4;
            nrg_qkv_args a = args_of(&l, &r, NRG_F32);
            a.k_o_dtype = NRG_F16;
#ifndef NRG_NO_QUANTIZE
            if (quantized_k) {
                a.k_o_dtype = NRG_DTYPE_SAME;
                a.k_o_format = NRG_QUANT_Q8_0;
            }
#endif
            const size_t k_row = K_HEADS * (a.k_o_format ? DIM / 32 * 34 : DIM * 2), v_row = K_HEADS * V_DIM * sizeof(float);
            for (int t = 0; t < TOKENS; t++) {
                spare[t] = in_turn ? t + 11 : (t * 7 + 3) % SLOTS;
                l.slots[t] = padding[n % WAYS] >> t & 1 ? -1 : spare[t];
            }
            memset(&r, 0x5a, sizeof r);
            memset(&wanted, 0x5a, sizeof wanted);
            take_workspace(&a, &rope, shares);
            ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
            ck_assert_int_eq(nrg_qkv_forward_check(normed ? &norm : NULL, &rope, &a, shares), NRG_OK);
            for (int i = 0; i < shares; i++)
                ck_assert_int_eq(nrg_qkv_forward(normed ? &norm : NULL, &rope, &a, i, shares), NRG_OK);
            a.slots = spare;
            a.q_o = wanted.q_o;
            a.k_o = wanted.k_o;
            a.v_o = wanted.v_o;
            ck_assert_int_eq(nrg_qkv_forward(normed ? &norm : NULL, &rope, &a, 0, 1), NRG_OK);
            for (int t = 0; t < TOKENS; t++)
                if (l.slots[t] < 0) {
                    memset((char *)wanted.k_o + (size_t)spare[t] * k_row, 0x5a, k_row);
                    memset((char *)wanted.v_o + (size_t)spare[t] * v_row, 0x5a, v_row);
                }
            ck_assert_msg(memcmp(&r, &wanted, sizeof r) == 0, "%s, %d shares, padding %#x", nrg_isa_name(paths[p]), shares,
                          padding[n % WAYS]);
            release(&a);
        }
}
END_TEST

/* ---- truth ---- */

/* The norm of a head and its rotation with 113 bits. */
static void exact_head(const rope_exact *e, int32_t position, const float *x, const float *w, quad *o)
{
    quad squares = 0, normed[DIM];
    for (int i = 0; i < DIM; i++)
        squares += (quad)x[i] * x[i];
    const quad mean = squares / DIM + (quad)1e-6;
    quad root = sqrt((double)mean);
    for (int i = 0; i < 3; i++)
        root = (root + mean / root) / 2;
    for (int i = 0; i < DIM; i++)
        o[i] = normed[i] = x[i] / root * w[i];
    for (size_t p = 0; p < e->pairs; p++) {
        const quad_turned t = quad_turn(e->theta[p] * position);
        o[8 + p] = normed[8 + p] * t.cosine - normed[8 + p + e->pairs] * t.sine;
        o[8 + p + e->pairs] = normed[8 + p] * t.sine + normed[8 + p + e->pairs] * t.cosine;
    }
}

/* Errors in units of 2^-24 of a pair's larger element; 16-bit results, in their own ulps, are the f32 ones rounded once. */
START_TEST(truth)
{
    static layer l;
    static result r;
    const nrg_dtype dtype = (nrg_dtype)(NRG_F32 + _i);
    const nrg_rope_spec rope = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NEOX, 10000);
    const nrg_norm_spec norm = nrg_norm_spec_rms(NRG_F32, DIM, 1e-6);
    const rope_exact e = rope_exact_of(&rope);
    double worst = 0;
    for (uint64_t seed = 0; seed < (test_small() ? 5 : 60); seed++) {
        fill_layer(&l, 100 * seed);
        l.q[7] = l.k[DIM + 3] = 1;
        nrg_qkv_args a = args_of(&l, &r, NRG_F32);
        a.q_o_dtype = a.k_o_dtype = dtype;
        a.q_w = l.q_w;
        a.k_w = l.k_w;
        take_workspace(&a, &rope, 1);
        ck_assert_int_eq(nrg_qkv_forward(&norm, &rope, &a, 0, 1), NRG_OK);
        for (size_t n = 0; n < TOKENS * K_HEADS; n++) {
            const size_t t = n / K_HEADS, at = ((size_t)l.slots[t] * K_HEADS + n % K_HEADS) * DIM;
            quad exact[DIM];
            exact_head(&e, l.positions[t], l.k + n * DIM, l.k_w, exact);
            for (size_t i = 0; i < DIM; i++) {
                const size_t other = i < 8 || i >= 8 + N_DIMS ? i : i < 8 + N_DIMS / 2 ? i + N_DIMS / 2 : i - N_DIMS / 2;
                const double error = fabs((double)((quad)element_get(r.k_o, at + i, dtype) - exact[i]));
                const double size = fabs((double)exact[i]) + fabs((double)exact[other]);
                const double rounding = dtype == NRG_F32 ? 0 : element_ulp((double)exact[i], dtype) / 2 * (1 + 0x1p-8);
                const double units = (error - rounding) / (size * 0x1p-24);
                worst = units > worst ? units : worst;
            }
        }
        release(&a);
    }
    if (getenv("NRG_REPORT"))
        printf("%s: %.3f\n", nrg_dtype_name(dtype), worst);
    ck_assert_msg(worst < 6, "%s: %.3f", nrg_dtype_name(dtype), worst);
}
END_TEST

/* ---- the rest ---- */

/* Forward and back, in place, in one call each: the steps of q alone. */
START_TEST(turned_back)
{
    float q[TOKENS * Q], o[TOKENS * Q];
    const nrg_rope_spec rope = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NORMAL, 10000);
    row_fill(q, TOKENS * Q, ROW_NORMAL, NRG_F32, 8);
    memcpy(o, q, sizeof q);
    nrg_qkv_args a = nrg_qkv_args_init(NRG_F32, TOKENS, DIM);
    a.q_heads = HEADS;
    a.q = a.q_o = o;
    a.first_position = 77;
    take_workspace(&a, &rope, 1);
    ck_assert_int_eq(nrg_qkv_forward(NULL, &rope, &a, 0, 1), NRG_OK);
    ck_assert(memcmp(q, o, sizeof q) != 0);
    ck_assert_int_eq(nrg_qkv_backward(&rope, &a, 0, 1), NRG_OK);
    for (size_t i = 0; i < TOKENS * Q; i++)
        ck_assert(fabsf(q[i] - o[i]) < 2e-6f);
    free(a.workspace);
}
END_TEST

/* Of a workspace for fewer shares, every share says the same, and so does every mistake before it is one of the workspace. */
START_TEST(more_shares_than_slices)
{
    static layer l;
    static result r;
    const nrg_rope_spec rope = nrg_rope_spec_init(N_DIMS, NRG_ROPE_NEOX, 10000);
    size_t bytes;
    fill_layer(&l, 9);
    nrg_qkv_args a = args_of(&l, &r, NRG_F32);
    take_workspace(&a, &rope, 3);
    ck_assert_int_eq(nrg_qkv_workspace(&rope, &a, 0, &bytes), NRG_ERR_THREAD);
    for (int nth = 1; nth < 6; nth++) {
        ck_assert_int_eq(nrg_qkv_forward_check(NULL, &rope, &a, nth), nth > 3 ? NRG_ERR_WORKSPACE : NRG_OK);
        for (int ith = 0; ith < nth; ith++) {
            ck_assert_int_eq(nrg_qkv_forward(NULL, &rope, &a, ith, nth), nth > 3 ? NRG_ERR_WORKSPACE : NRG_OK);
            l.slots[0] = SLOTS;
            ck_assert_int_eq(nrg_qkv_forward(NULL, &rope, &a, ith, nth), nth > 3 ? NRG_ERR_WORKSPACE : NRG_ERR_POSITION);
            l.slots[0] = 3;
        }
    }
    ck_assert_int_eq(nrg_qkv_forward_check(NULL, &rope, &a, 0), NRG_ERR_THREAD);
    release(&a);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("qkv");
    TCase *all = test_case(suite, "qkv");
    tcase_add_loop_test(all, as_by_hand, 0, 27);
#ifndef NRG_NO_QUANTIZE
    tcase_add_loop_test(all, quantized, 0, 6);
#endif
    tcase_add_loop_test(all, kept_is_never_stale, 0, 4);
    tcase_add_test(all, a_table_is_kept);
    tcase_add_loop_test(all, many_slots, 0, 6);
    tcase_add_loop_test(all, padding_tokens, 0, 8);
    tcase_add_loop_test(all, truth, 0, 3);
    tcase_add_test(all, turned_back);
    tcase_add_test(all, more_shares_than_slices);
    return test_run(suite);
}
