/* Statistics in parts: a set whose sums are taken in parts, added in any order, has the statistics of one call, and what is
 * normalized with them is the same, bit by bit, part by part. Batch norm in ranges of samples, forward and backward; group norm
 * in ranges of channels (NCHW) and of positions (NHWC).
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel_norm_backward_case.h"
#include "channel_norm_harness.h"
#include "channel_norm_sweep.h"
#include "../harness/element.h"

enum { MOST_PARTS = 7 };

/* Parts [at[i], at[i + 1]) of `length` things that begin at multiples of `step`, some of them empty. */
typedef struct cut {
    size_t count, at[MOST_PARTS + 1];
} cut;

static int ascending(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static cut draw_cut(size_t length, size_t step, uint64_t *state)
{
    cut c = {.count = 1 + test_draw(state, MOST_PARTS)};
    for (size_t i = 1; i < c.count; i++)
        c.at[i] = test_draw(state, length / step + 1) * step;
    c.at[c.count] = length;
    qsort(c.at + 1, c.count - 1, sizeof c.at[0], ascending);
    return c;
}

/* Sums of parts, [parts][sets], into those of the first part of an order that is drawn: one after the other, or in pairs, by the
 * library or as a reduction of integers does it. */
static const int64_t *add_up(int64_t *sums, size_t parts, size_t sets, uint64_t *state)
{
    size_t order[MOST_PARTS];
    const size_t words = sets * NRG_SUMS_WORDS;
    for (size_t i = 0; i < parts; i++) {
        const size_t place = test_draw(state, i + 1);
        order[i] = order[place];
        order[place] = i;
    }
    const int plain = (int)test_draw(state, 2), pairs = (int)test_draw(state, 2);
    for (size_t gap = 1; gap < parts; gap = pairs ? gap * 2 : gap + 1)
        for (size_t i = 0; i + gap < parts; i += pairs ? 2 * gap : parts) {
            int64_t *into = sums + order[i] * words;
            const int64_t *from = sums + order[i + gap] * words;
            if (!plain)
                ck_assert_int_eq(nrg_sums_add(sets, into, from), NRG_OK);
            for (size_t n = 0; n < words && plain; n++)
                into[n] = (int64_t)((uint64_t)into[n] + (uint64_t)from[n]);
        }
    return sums + order[0] * words;
}

static int64_t *sums_memory(size_t parts, size_t sets)
{
    const size_t words = parts * sets * NRG_SUMS_WORDS;
    int64_t *sums = malloc((words ? words : 1) * sizeof *sums);
    ck_assert_ptr_nonnull(sums);
    memset(sums, 0x5a, words * sizeof *sums); /* to be overwritten, not added to */
    return sums;
}

static const void *at_element(const void *tensor, size_t i, nrg_dtype dtype)
{
    return tensor ? (const char *)tensor + i * nrg_dtype_size(dtype) : NULL;
}

/* A part as a problem of its own, which shares the whole's memory; its strides are the whole's. */
typedef struct piece {
    nrg_channel_norm_spec spec;
    nrg_channel_norm_args args;
} piece;

/* first: the part's first element; set: its first set. */
static piece piece_of(const channel_problem *p, const channel_result *out, size_t first, size_t n, size_t s, size_t row)
{
    const nrg_dtype dtype = p->spec.dtype;
    piece q = {p->spec, nrg_channel_norm_args_init(n, s, at_element(p->x, first, dtype),
                                                   (void *)(uintptr_t)at_element(out->o, first, dtype))};
    q.args.y = at_element(p->y, first, dtype);
    q.args.w = p->w;
    q.args.b = p->b;
    q.args.x_stride = q.args.y_stride = q.args.o_stride = row * nrg_dtype_size(dtype);
    return q;
}

static piece batch_piece(const channel_problem *p, const channel_result *out, size_t begin, size_t end)
{
    return piece_of(p, out, begin * p->spec.channels * p->s, end - begin, p->s, p->dim);
}

/* Channels begin to end, of all samples. */
static piece channels_piece(const channel_problem *p, const channel_result *out, size_t begin, size_t end)
{
    piece q = piece_of(p, out, begin * p->s, p->n, p->s, p->dim);
    q.spec.channels = end - begin;
    q.args.w = at_element(p->w, begin, p->w_dtype);
    q.args.b = at_element(p->b, begin, p->w_dtype);
    return q;
}

/* Positions begin to end, of one sample: what a stride can say. */
static piece positions_piece(const channel_problem *p, const channel_result *out, size_t begin, size_t end)
{
    return piece_of(p, out, begin * p->spec.channels, 1, end - begin, p->dim);
}

typedef piece piece_maker(const channel_problem *p, const channel_result *out, size_t begin, size_t end);

/* The forward pass in parts against one call. */
static void in_parts(const channel_problem *p, nrg_isa isa, const cut *c, piece_maker *make, uint64_t seed)
{
    channel_result whole, parts;
    uint64_t state = seed;
    int64_t *sums = sums_memory(c->count, p->sets);
    channel_result_make(&whole, p);
    channel_result_make(&parts, p);
    nrg_channel_norm_args args = channel_args(p, &whole);
    ck_assert_int_eq(nrg_channel_norm_forward(&p->spec, &args, 0, 1), NRG_OK);
    for (size_t i = 0; i < c->count; i++) {
        const piece q = make(p, &parts, c->at[i], c->at[i + 1]);
        const int nth = 1 + (int)test_draw(&state, 3);
        if (c->at[i] == c->at[i + 1] && make != batch_piece) /* channels, positions: at least one */
            memset(sums + i * p->sets * NRG_SUMS_WORDS, 0, p->sets * NRG_SUMS_WORDS * sizeof *sums);
        else
            for (int ith = 0; ith < nth; ith++)
                ck_assert_int_eq(nrg_channel_norm_sums(&q.spec, &q.args, sums + i * p->sets * NRG_SUMS_WORDS, ith, nth), NRG_OK);
    }
    const int64_t *total = add_up(sums, c->count, p->sets, &state);
    nrg_channel_norm_args totals = channel_args(p, &parts);
    ck_assert_int_eq(nrg_channel_norm_statistics(&p->spec, &totals, total, 0, 1), NRG_OK);
    for (size_t i = 0; i < c->count; i++) {
        piece q = make(p, &parts, c->at[i], c->at[i + 1]);
        if (c->at[i] == c->at[i + 1])
            continue;
        q.spec.statistics = NRG_STATISTICS_GIVEN;
        q.args.statistics = parts.statistics;
        ck_assert_int_eq(nrg_channel_norm_forward(&q.spec, &q.args, 0, 1), NRG_OK);
    }
    const channel_layout all = channel_layout_plain(p);
    const char *failure = channel_compare(p, &all, &whole, &parts);
    if (failure) {
        char text[256] = "";
        for (size_t i = 0, n = 0; i <= c->count && n < sizeof text - 24; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, " %zu", c->at[i]);
        ck_abort_msg("%s, in parts%s: %s\n  case: %s", nrg_isa_name(isa), text, failure, p->text);
    }
    free(sums);
    channel_result_free(&whole);
    channel_result_free(&parts);
}

/* Options of a forward pass that computes. */
static void draw_options(channel_options *o, const channel_shape *shape, nrg_dtype dtype, enum channel_kind kind,
                         nrg_channel_layout memory, uint64_t seed)
{
    channel_options_draw(o, shape, dtype, seed);
    o->kind = kind;
    o->layout = memory;
    o->source = NRG_STATISTICS_COMPUTE;
    channel_options_settle(o, shape);
}

/* On every path. */
static void each_path(const channel_problem *p, const cut *c, piece_maker *make, uint64_t seed)
{
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t count = test_paths(paths);
    for (size_t path = 0; path < count; path++) {
        snprintf(test_note, sizeof test_note, "%s: %s", nrg_isa_name(paths[path]), p->text);
        ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
        in_parts(p, paths[path], c, make, seed);
    }
}

static int cases(void) { return test_small() ? 1 : 16; }
static size_t most(void) { return test_small() ? 1000 : 10000; }

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* The header's segments: samples, elements, positions. */
static size_t segment_samples(const channel_problem *p)
{
    const size_t segment = p->spec.segment ? p->spec.segment : 4096;
    return segment > p->s ? segment / p->s : 1;
}

static size_t segment_positions(const channel_problem *p)
{
    const size_t segment = p->spec.segment ? p->spec.segment : 4096;
    const size_t channels = least(p->spec.channels / (p->spec.groups ? p->spec.groups : 1), 64);
    return segment > channels ? segment / channels : 1;
}

START_TEST(batch_norm_in_samples)
{
    nrg_dtype dtypes[3];
    const size_t s = channel_positions[_i], dtype_count = test_kernel_dtypes("channel_norm_forward", dtypes);
    for (size_t dtype = 0; dtype < dtype_count; dtype++)
        for (int i = 0; i < cases(); i++) {
            uint64_t seed = test_mix((s * 8 + dtype) * 4096 + (uint64_t)i + 500), state = seed;
            channel_shape shape = channel_draw_shape(s, most(), seed);
            channel_options options;
            channel_problem p;
            if (!shape.n)
                continue;
            draw_options(&options, &shape, dtypes[dtype], CHANNEL_BATCH, (nrg_channel_layout)(i % 2), seed);
            channel_problem_make(&p, &options, &shape, NULL, 0, seed);
            /* small segments, so that there are several */
            if (test_draw(&state, 2))
                p.spec.segment = least(4096, s * (1 + test_draw(&state, 3)));
            const cut c = draw_cut(shape.n, least(segment_samples(&p), shape.n), &state);
            each_path(&p, &c, batch_piece, state);
            channel_problem_free(&p);
        }
}
END_TEST

/* One group: what tensor parallelism splits. Channels that begin where segments do. */
START_TEST(group_norm_in_channels)
{
    static const size_t channels[] = {2, 4, 8, 12, 32, 70};
    nrg_dtype dtypes[3];
    const size_t s = channel_positions[_i], dtype_count = test_kernel_dtypes("channel_norm_forward", dtypes);
    for (size_t dtype = 0; dtype < dtype_count; dtype++)
        for (int i = 0; i < cases(); i++) {
            uint64_t seed = test_mix((s * 8 + dtype) * 4096 + (uint64_t)i + 600), state = seed;
            const channel_shape shape = {
                .n = 1 + test_draw(&state, 3), .c = channels[test_draw(&state, s > 300 ? 2 : 6)], .s = s};
            /* whole channels; or a part of one, of s/2, s/3, … elements where s is a multiple */
            size_t step = 1 + test_draw(&state, 3), divisor = 1 + test_draw(&state, 8), segment = 0;
            if (s % divisor == 0 && s / divisor <= 4096 && test_draw(&state, 2)) {
                segment = s / divisor;
                step = 1;
            } else if (s <= 4096) {
                step = least(step, 4096 / s);
                segment = s * step;
            } else
                continue; /* 4097: no number of its channels ends with a segment */
            channel_options options;
            channel_problem p;
            draw_options(&options, &shape, dtypes[dtype], CHANNEL_LAYER, NRG_NCHW, seed);
            channel_problem_make(&p, &options, &shape, NULL, 0, seed);
            p.spec.segment = segment;
            const cut c = draw_cut(shape.c, least(step, shape.c), &state);
            each_path(&p, &c, channels_piece, state);
            channel_problem_free(&p);
        }
}
END_TEST

START_TEST(group_norm_in_positions)
{
    nrg_dtype dtypes[3];
    const size_t s = channel_positions[_i], dtype_count = test_kernel_dtypes("channel_norm_forward", dtypes);
    for (size_t dtype = 0; dtype < dtype_count; dtype++)
        for (int i = 0; i < cases(); i++) {
            uint64_t seed = test_mix((s * 8 + dtype) * 4096 + (uint64_t)i + 700), state = seed;
            channel_shape shape = channel_draw_shape(s, most(), seed);
            channel_options options;
            channel_problem p;
            shape.n = 1;
            draw_options(&options, &shape, dtypes[dtype], (enum channel_kind)(CHANNEL_GROUP + i % 3), NRG_NHWC, seed);
            channel_problem_make(&p, &options, &shape, NULL, 0, seed);
            if (test_draw(&state, 2))
                p.spec.segment = 1 + test_draw(&state, 300);
            cut c = draw_cut(s, least(segment_positions(&p), s), &state);
            for (size_t k = 1; k < c.count; k++) /* the header: two positions or more */
                if (c.at[k] == c.at[k - 1] + 1 || c.at[k] + 1 == s)
                    c.at[k] = c.at[k - 1];
            each_path(&p, &c, positions_piece, state);
            channel_problem_free(&p);
        }
}
END_TEST

/* ---- backward ---- */

static nrg_channel_norm_backward_args backward_piece(const channel_backward_problem *p, const channel_backward_result *out,
                                                     size_t begin, size_t end)
{
    const channel_problem *f = &p->forward;
    const nrg_dtype dtype = f->spec.dtype;
    const size_t first = begin * f->spec.channels * f->s;
    nrg_channel_norm_backward_args args = channel_backward_args(p, out);
    args.n = end - begin;
    args.x = at_element(f->x, first, dtype);
    args.d_o = at_element(p->d_o, first, dtype);
    args.y = at_element(f->y, first, dtype);
    args.statistics = p->statistics;
    args.dx = (void *)(uintptr_t)at_element(out->dx, first, dtype);
    args.dy = (void *)(uintptr_t)at_element(out->dy, first, dtype);
    args.dw = args.db = NULL;
    return args;
}

static void must_equal(const channel_backward_problem *p, nrg_isa isa, const char *what, nrg_dtype dtype, size_t count,
                       const void *expected, const void *got)
{
    for (size_t i = 0; i < count; i++)
        if (!element_equal(expected, got, i, dtype))
            ck_abort_msg("%s, %s: element %zu is %.9g and should be %.9g\n  case: %s", nrg_isa_name(isa), what, i,
                         (double)element_get(got, i, dtype), (double)element_get(expected, i, dtype), p->text);
}

/* dx and dy of every part are the whole's; dw and db of a part are those that it has alone, with the statistics of all. */
static void backward_in_parts(const channel_backward_problem *p, nrg_isa isa, const cut *c, uint64_t seed)
{
    const channel_problem *f = &p->forward;
    const size_t channels = f->spec.channels, count = f->rows * f->dim;
    channel_backward_result whole, parts, alone;
    uint64_t state = seed;
    int64_t *sums = sums_memory(c->count, channels);
    nrg_channel_norm_spec spec = f->spec;
    channel_backward_result_make(&whole, p);
    channel_backward_result_make(&parts, p);
    channel_backward_result_make(&alone, p);
    nrg_channel_norm_backward_args args = channel_backward_args(p, &whole);
    ck_assert_int_eq(nrg_channel_norm_backward(&spec, &args, 0, 1), NRG_OK);
    spec.statistics = NRG_STATISTICS_GIVEN;
    for (size_t i = 0; i < c->count; i++) {
        const int nth = 1 + (int)test_draw(&state, 3);
        args = backward_piece(p, &parts, c->at[i], c->at[i + 1]);
        args.dw = parts.dw;
        args.db = parts.db;
        for (int ith = 0; ith < nth; ith++)
            ck_assert_int_eq(nrg_channel_norm_backward_sums(&spec, &args, sums + i * channels * NRG_SUMS_WORDS, ith, nth),
                             NRG_OK);
        args = backward_piece(p, &alone, c->at[i], c->at[i + 1]);
        args.dx = args.dy = NULL;
        args.dw = alone.dw;
        args.db = alone.db;
        ck_assert_int_eq(nrg_channel_norm_backward(&spec, &args, 0, 1), NRG_OK);
        must_equal(p, isa, "dw of a part", NRG_F32, channels, alone.dw, parts.dw);
        must_equal(p, isa, "db of a part", NRG_F32, channels, alone.db, parts.db);
    }
    const int64_t *total = add_up(sums, c->count, channels, &state);
    for (size_t i = 0; i < c->count; i++) {
        args = backward_piece(p, &parts, c->at[i], c->at[i + 1]);
        args.sums = total;
        ck_assert_int_eq(nrg_channel_norm_backward(&spec, &args, 0, 1), NRG_OK);
    }
    must_equal(p, isa, "dx in parts", f->spec.dtype, count, whole.dx, parts.dx);
    must_equal(p, isa, "dy in parts", f->spec.dtype, count, whole.dy, parts.dy);
    free(sums);
    channel_backward_result_free(&whole);
    channel_backward_result_free(&parts);
    channel_backward_result_free(&alone);
}

START_TEST(backward_in_samples)
{
    nrg_isa paths[NRG_ISA_COUNT];
    nrg_dtype dtypes[3];
    const size_t path_count = test_paths(paths), dtype_count = test_kernel_dtypes("channel_norm_backward", dtypes);
    const size_t s = channel_positions[_i];
    for (size_t dtype = 0; dtype < dtype_count; dtype++)
        for (int i = 0; i < cases() / 2; i++) {
            uint64_t seed = test_mix((s * 8 + dtype) * 4096 + (uint64_t)i + 800), state = seed;
            channel_shape shape = channel_draw_shape(s, most(), seed);
            channel_options options;
            channel_backward_problem p;
            if (!shape.n)
                continue;
            draw_options(&options, &shape, dtypes[dtype], CHANNEL_BATCH, (nrg_channel_layout)(i % 2), seed);
            channel_backward_problem_make(&p, &options, &shape, NULL, 0, seed);
            const cut c = draw_cut(shape.n, least(segment_samples(&p.forward), shape.n), &state);
            for (size_t path = 0; path < path_count; path++) {
                snprintf(test_note, sizeof test_note, "%s: %s", nrg_isa_name(paths[path]), p.text);
                ck_assert_int_eq(nrg_isa_set(paths[path]), NRG_OK);
                backward_in_parts(&p, paths[path], &c, state);
            }
            channel_backward_problem_free(&p);
        }
}
END_TEST

/* ---- sums ---- */

/* The sum of nothing is zero, and zero changes nothing. */
START_TEST(sums_of_nothing)
{
    int64_t nothing[3 * NRG_SUMS_WORDS], sums[3 * NRG_SUMS_WORDS], kept[3 * NRG_SUMS_WORDS], zero[3 * NRG_SUMS_WORDS] = {0};
    float x[3 * 5];
    nrg_channel_norm_spec spec = nrg_batch_norm_spec(3, 1e-5);
    nrg_channel_norm_args args = nrg_channel_norm_args_init(0, 5, NULL, NULL);
    row_fill(x, 15, ROW_NORMAL, NRG_F32, 1);
    memset(nothing, 0xff, sizeof nothing);
    ck_assert_int_eq(nrg_channel_norm_sums(&spec, &args, nothing, 0, 1), NRG_OK);
    ck_assert_mem_eq(nothing, zero, sizeof zero);
    args = nrg_channel_norm_args_init(1, 5, x, NULL);
    ck_assert_int_eq(nrg_channel_norm_sums(&spec, &args, sums, 0, 1), NRG_OK);
    memcpy(kept, sums, sizeof kept);
    ck_assert_int_eq(nrg_sums_add(3, sums, nothing), NRG_OK);
    ck_assert_mem_eq(kept, sums, sizeof sums);
    ck_assert_int_eq(nrg_sums_add(3, nothing, sums), NRG_OK);
    ck_assert_mem_eq(kept, nothing, sizeof sums);
    ck_assert_int_eq(nrg_sums_add(0, sums, NULL), NRG_OK);
}
END_TEST

/* As many copies of one part as a doubling makes are a set with the same mean and variance: 2^20 parts, of numbers that carry. */
START_TEST(sums_of_many_parts)
{
    enum { DOUBLINGS = 20, S = 64 };
    float x[S];
    int64_t sums[NRG_SUMS_WORDS], copy[NRG_SUMS_WORDS];
    nrg_channel_statistics one, many;
    nrg_channel_norm_spec spec = nrg_batch_norm_spec(1, 0);
    for (int kind = 0; kind < ROW_STRESS_KINDS; kind++) {
        row_fill(x, S, (enum row_kind)kind, NRG_F32, 5);
        nrg_channel_norm_args args = nrg_channel_norm_args_init(1, S, x, NULL);
        ck_assert_int_eq(nrg_channel_norm_sums(&spec, &args, sums, 0, 1), NRG_OK);
        args.statistics = &one;
        ck_assert_int_eq(nrg_channel_norm_statistics(&spec, &args, sums, 0, 1), NRG_OK);
        for (int i = 0; i < DOUBLINGS; i++) {
            memcpy(copy, sums, sizeof copy);
            ck_assert_int_eq(nrg_sums_add(1, sums, copy), NRG_OK);
        }
        args.statistics = &many;
        ck_assert_int_eq(nrg_channel_norm_statistics(&spec, &args, sums, 0, 1), NRG_OK);
        /* powers of two: the sums are the same but for their exponent, and so is all that follows */
        ck_assert(many.count == S * 0x1p20);
        many.count = one.count;
        if (!channel_statistics_equal(&one, &many))
            ck_abort_msg("%s: mean %.17g + %.17g, variance %.17g and %.17g + %.17g, %.17g", row_kind_name((enum row_kind)kind),
                         one.mean, one.mean_low, one.variance, many.mean, many.mean_low, many.variance);
    }
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    test_note_crashes();
    Suite *suite = suite_create("channel_norm: statistics in parts");
    TCase *tests = test_case(suite, "parts");
    tcase_add_loop_test(tests, batch_norm_in_samples, 0, CHANNEL_POSITIONS);
    tcase_add_loop_test(tests, group_norm_in_channels, 0, CHANNEL_POSITIONS);
    tcase_add_loop_test(tests, group_norm_in_positions, 0, CHANNEL_POSITIONS);
    tcase_add_loop_test(tests, backward_in_samples, 0, CHANNEL_POSITIONS);
    tcase_add_test(tests, sums_of_nothing);
    tcase_add_test(tests, sums_of_many_parts);
    return test_run(suite);
}
