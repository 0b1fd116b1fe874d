/* SPDX-License-Identifier: MIT */
#include "relative.h"

#include <string.h>

enum { DIM = 64, CLIP = 16, HEADS = 8 };

const bench_shape relative_shapes[2] = {BENCH_ROWS(8 * 128, 128), BENCH_ROWS(8 * 1024, 1024)};

static size_t classes_of(const bench_case *c) { return strcmp(c->op->name, "clip") == 0 ? 2 * CLIP + 1 : 2 * c->shape.dim - 1; }

/* Bytes of one operand, at whole lines. */
static size_t lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

size_t relative_scratch(const bench_case *c)
{
    const size_t vectors = lines(c->shape.rows * DIM * sizeof(float)), table = lines(classes_of(c) * DIM * sizeof(float));
    return vectors + 2 * table + lines(2 * c->shape.rows * sizeof(double));
}

void relative_bind(nrg_relative_args *args, const bench_case *c, char *const operand[BENCH_OPERANDS])
{
    const size_t vectors = lines(c->shape.rows * DIM * sizeof(float)), table = lines(classes_of(c) * DIM * sizeof(float));
    const int64_t farthest = (int64_t)(classes_of(c) / 2);
    char *scratch = operand[RELATIVE_SCRATCH];
    *args = nrg_relative_args_init(1, HEADS, c->shape.rows / HEADS, c->shape.dim, DIM, -farthest, farthest);
    args->query_offset = (int64_t)c->shape.dim - (int64_t)(c->shape.rows / HEADS);
    args->dtype = c->dtype;
    args->a = operand[RELATIVE_IN];
    args->scores = args->o = operand[RELATIVE_OUT];
    args->q = scratch;
    args->table = scratch + vectors;
    args->d_table = (float *)(void *)(scratch + vectors + table);
    args->ends = (double *)(void *)(scratch + vectors + 2 * table);
}
