/* The cases of --scan.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check/data.h"
#include "scan.h"

enum { LINE = 64 };

/* The exact grade is of f32 alone. */
static int admits(const bench_op *op, const bench_args *args, nrg_dtype dtype)
{
    return !(op->exact && dtype != NRG_F32) && bench_admits(args->dtype, nrg_dtype_name(dtype));
}

int bench_scan_ops_make(bench_scan_ops *ops, const bench_args *args)
{
    const bench_family *f;
    size_t room = 0;
    for (size_t i = 0; (f = bench_family_at(i)) != NULL; i++)
        room += f->op_count;
    *ops = (bench_scan_ops){calloc(room, sizeof *ops->of), 0};
    for (size_t i = 0; ops->of && (f = bench_family_at(i)) != NULL; i++)
        for (const bench_op *op = f->ops; op < f->ops + f->op_count; op++)
            if (bench_admits(args->kernel, f->kernel) && bench_admits(args->op, op->name) &&
                (admits(op, args, NRG_F32) || admits(op, args, NRG_F16) || admits(op, args, NRG_BF16))) {
                ops->of[ops->count].family = f;
                ops->of[ops->count++].op = op;
            }
    return ops->of != NULL;
}

static size_t up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

bench_shape bench_scan_scores(size_t row, size_t *rows)
{
    enum { QUERIES_MAX = 32, HEADS_MAX = 8 };
    const size_t queries = *rows < QUERIES_MAX ? *rows : QUERIES_MAX, groups = *rows / queries,
                 heads = groups < HEADS_MAX ? groups : HEADS_MAX, batch = groups / heads;
    *rows = batch * heads * queries;
    return (bench_shape)BENCH_IMAGES(batch, heads, queries, row);
}

bench_shape bench_scan_heads(size_t heads, size_t *row, size_t *rows)
{
    *row = *row > BENCH_HEAD_MAX ? BENCH_HEAD_MAX : up(*row, 2);
    *rows = up(*rows, heads);
    return (bench_shape)BENCH_IMAGES(*rows / heads, heads, 1, *row);
}

/* Whole blocks, and whole sets of interleaved rows. */
static bench_shape matrix(const bench_op *op, size_t *row, size_t *rows)
{
    *row = up(*row, op->format && !nrg_quant_has_scales(op->format) ? nrg_quant_block(op->format) : 1);
    *rows = up(*rows, op->format ? nrg_quant_rows(op->format) : 1);
    return (bench_shape)BENCH_ROWS(*rows, *row);
}

static bench_shape shape_of(const bench_case *c, size_t *row, size_t *rows)
{
    return (c->family->scan_shape ? c->family->scan_shape : matrix)(c->op, row, rows);
}

/* Every power of two is as likely. */
static size_t draw_size(size_t least, unsigned octaves, uint64_t *random)
{
    const size_t from = least << sweep_draw(random, octaves);
    return from + sweep_draw(random, (unsigned)from);
}

static size_t draw_row(uint64_t *random)
{
    const size_t row = draw_size(BENCH_SCAN_ROW_MIN, 9, random);
    static const unsigned char multiples[] = {1, 1, 8, BENCH_SCAN_STEP};
    return up(row, multiples[sweep_draw(random, sizeof multiples)]);
}

/* About so many bytes: an op may round the rows up. */
static void draw_shapes(bench_scan_case *drawn, int is_quick, uint64_t *random)
{
    const unsigned octaves = is_quick ? 5 : 13;
    size_t row = draw_row(random), rows = 1, bytes = draw_size(BENCH_SCAN_BYTES_MIN, octaves, random);
    if (bytes > BENCH_SCAN_BYTES_MAX)
        bytes = BENCH_SCAN_BYTES_MAX;
    drawn->c.shape = shape_of(&drawn->c, &row, &rows);
    const size_t each = bench_case_bytes(&drawn->c) / rows;
    rows = bytes > each ? bytes / each : 1;
    drawn->c.shape = shape_of(&drawn->c, &row, &rows);
    drawn->row = row;
    row = up(row, BENCH_SCAN_STEP);
    drawn->reference = drawn->c;
    drawn->reference.shape = shape_of(&drawn->c, &row, &rows);
    drawn->reference_row = row;
}

/* An activation in place of its input shrinks its data with each call of a batch, and subnormal numbers are slow. So only calls
 * that are too long for a batch of many have it. */
enum { ACTIVATED_BYTES_MIN = 512 << 10 };

static void draw_places(bench_scan_case *drawn, uint64_t *random)
{
    unsigned taken = 0;
    if (sweep_draw(random, 2) || (drawn->c.op->activation && bench_case_bytes(&drawn->c) < ACTIVATED_BYTES_MIN))
        return;
    for (int out = 0; out < BENCH_OPERANDS; out++)
        for (int in = 0; in < BENCH_OPERANDS; in++)
            if (!(taken >> in & 1) && !drawn->layout.of[out].over && bench_fits_over(&drawn->c, out, in) &&
                sweep_draw(random, 2)) {
                drawn->layout.of[out].over = drawn->reference_layout.of[out].over = in + 1;
                taken |= 1u << in;
            }
}

/* Offsets as malloc has them, or any; strides that let rows start anywhere, or at cache lines, as in a view of wider rows. */
static void draw_layout(bench_scan_case *drawn, uint64_t *random)
{
    const unsigned has_offsets = sweep_draw(random, 2), is_malloc = sweep_draw(random, 2), has_gaps = sweep_draw(random, 2),
                   is_view = sweep_draw(random, 2), gap = 1 + sweep_draw(random, BENCH_SCAN_STEP - 1);
    for (int i = 0; i < BENCH_OPERANDS; i++) {
        const bench_operand o = bench_operand_of(&drawn->c, i);
        if (!o.bytes || !bench_may_move(&drawn->c, i))
            continue;
        const unsigned unit = is_malloc ? 16 : (unsigned)o.element;
        if (has_offsets)
            drawn->layout.of[i].offset = unit * sweep_draw(random, LINE / unit);
        if (has_gaps && bench_has_stride(&drawn->c, i))
            drawn->layout.of[i].stride =
                is_view ? up(o.row + 1 + sweep_draw(random, (unsigned)o.row), LINE) : o.row + gap * o.element;
    }
    for (int i = 0; i < BENCH_OPERANDS; i++)
        if (drawn->layout.of[i].over)
            drawn->layout.of[i] =
                (struct bench_place){0, drawn->layout.of[drawn->layout.of[i].over - 1].stride, drawn->layout.of[i].over};
}

static nrg_dtype draw_dtype(const bench_op *op, const bench_args *args, uint64_t *random)
{
    const unsigned first = sweep_draw(random, 3);
    for (unsigned i = 0; i < 3; i++) {
        const nrg_dtype dtype = (nrg_dtype)(NRG_F32 + (first + i) % 3);
        if (admits(op, args, dtype))
            return dtype;
    }
    return NRG_F32;
}

void bench_scan_draw(bench_scan_case *drawn, const bench_scan_ops *ops, const bench_args *args, uint64_t seed, size_t number)
{
    uint64_t state = seed, random = sweep_random(&state) ^ number;
    const size_t at = sweep_draw(&random, (unsigned)ops->count);
    memset(drawn, 0, sizeof *drawn);
    drawn->c.family = ops->of[at].family;
    drawn->c.op = ops->of[at].op;
    drawn->c.dtype = draw_dtype(drawn->c.op, args, &random);
    drawn->c.store = NRG_STORE_AUTO;
    draw_shapes(drawn, args->quick, &random);
    draw_places(drawn, &random);
    draw_layout(drawn, &random);
    drawn->c.layout = &drawn->layout;
    drawn->reference.layout = &drawn->reference_layout;
}

void bench_scan_layout_name(const bench_scan_case *drawn, char name[BENCH_LAYOUT_MAX])
{
    const nrg_call *call = bench_function_of(&drawn->c)->call;
    size_t at = 0;
    name[0] = '\0';
    for (int i = 0; i < call->operand_count && at < BENCH_LAYOUT_MAX; i++) {
        const struct bench_place place = drawn->layout.of[i];
        if (!place.offset && !place.stride && !place.over)
            continue;
        at += (size_t)snprintf(name + at, BENCH_LAYOUT_MAX - at, "%s%s", at ? " " : "", call->operands[i].name);
        if (place.over && at < BENCH_LAYOUT_MAX)
            at += (size_t)snprintf(name + at, BENCH_LAYOUT_MAX - at, "=%s", call->operands[place.over - 1].name);
        if (place.offset && at < BENCH_LAYOUT_MAX)
            at += (size_t)snprintf(name + at, BENCH_LAYOUT_MAX - at, "+%zu", place.offset);
        if (place.stride && !place.over && at < BENCH_LAYOUT_MAX)
            at += (size_t)snprintf(name + at, BENCH_LAYOUT_MAX - at, "/%zu", place.stride);
    }
    if (!at)
        snprintf(name, BENCH_LAYOUT_MAX, "dense");
}
