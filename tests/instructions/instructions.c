/* nrg-instructions: makes each call of a list once on the AVX2 path, for callgrind to count its instructions.
 *
 *   nrg-instructions LIST     lines that begin with a name: of a case of nrg-bench without its path, with any shape
 *                             (norm_forward/f32/rms/1x64), or of a function without a struct (nrg_rms_norm_f32/1x64)
 *
 * Each call is made before as well, so that what happens once does not count. Exits with 77 if this CPU lacks the path.
 * scripts/instruction_counts.py runs it.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../bench/workload.h"

enum { WORD = 64, MOST_ELEMENTS = 4096 };

static void die(const char *what, const char *why)
{
    fprintf(stderr, "nrg-instructions: %s: %s\n", what, why);
    exit(1);
}

/* Callgrind counts while this runs, and writes a part of its output when it returns. Not static: a compiler could clone it under
 * another name. */
void counted_call(void (*run)(void *ctx, unsigned placement, size_t calls), void *ctx);
__attribute__((noinline)) void counted_call(void (*run)(void *ctx, unsigned placement, size_t calls), void *ctx)
{
    run(ctx, 0, 1);
    __asm__ volatile("" ::: "memory"); /* no jump in place of the call */
}

static void count_case(const char *name, const bench_case *c)
{
    bench_memory memory;
    bench_call call;
    if (!bench_memory_make(&memory, c, 1))
        die(name, "not enough memory");
    const char *wrong = bench_call_bind(&call, c, &memory); /* calls it as well */
    if (wrong)
        die(name, wrong);
    counted_call(bench_call_run, &call);
    bench_call_free(&call);
    bench_memory_free(&memory);
}

/* Functions without a struct. */
static _Alignas(64) float x[MOST_ELEMENTS], y[MOST_ELEMENTS], w[MOST_ELEMENTS], b[MOST_ELEMENTS], r[MOST_ELEMENTS],
    o[MOST_ELEMENTS];

static nrg_status rms_norm(size_t rows, size_t dim) { return nrg_rms_norm_f32(rows, dim, x, w, o, 1e-6); }
static nrg_status add_rms_norm(size_t rows, size_t dim) { return nrg_add_rms_norm_f32(rows, dim, x, y, w, r, o, 1e-6); }
static nrg_status layer_norm(size_t rows, size_t dim) { return nrg_layer_norm_f32(rows, dim, x, w, b, o, 1e-6); }
static nrg_status add_layer_norm(size_t rows, size_t dim) { return nrg_add_layer_norm_f32(rows, dim, x, y, w, b, r, o, 1e-6); }
static nrg_status l2_norm(size_t rows, size_t dim) { return nrg_l2_norm_f32(rows, dim, x, o, 1e-6); }

typedef struct function {
    const char *name;
    nrg_status (*call)(size_t rows, size_t dim);
} function;
static const function functions[] = {{"nrg_rms_norm_f32", rms_norm},
                                     {"nrg_add_rms_norm_f32", add_rms_norm},
                                     {"nrg_layer_norm_f32", layer_norm},
                                     {"nrg_add_layer_norm_f32", add_layer_norm},
                                     {"nrg_l2_norm_f32", l2_norm}};

typedef struct function_call {
    const function *of;
    size_t rows, dim;
} function_call;

static void run_function(void *ctx, unsigned placement, size_t calls)
{
    const function_call *f = ctx;
    (void)placement;
    for (; calls; calls--)
        (void)f->of->call(f->rows, f->dim);
}

static void count_function(const char *name, const char *function_name, size_t rows, size_t dim)
{
    for (size_t i = 0; i < NRG_COUNT(functions); i++)
        if (strcmp(functions[i].name, function_name) == 0) {
            function_call f = {&functions[i], rows, dim};
            if (rows * dim > MOST_ELEMENTS || f.of->call(rows, dim) != NRG_OK)
                die(name, "cannot be called");
            counted_call(run_function, &f);
            return;
        }
    die(name, "no such function");
}

/* ROWSxDIM, DIM or SAMPLESxCHANNELSxHEIGHTxWIDTH */
static bench_shape shape_of(const char *text)
{
    size_t n[4];
    switch (sscanf(text, "%zux%zux%zux%zu", &n[0], &n[1], &n[2], &n[3])) {
    case 1:
        return (bench_shape){1, n[0], 0, 0, 0};
    case 2:
        return (bench_shape){n[0], n[1], 0, 0, 0};
    case 4:
        return (bench_shape){n[0], n[1] * n[2] * n[3], n[1], n[2], n[3]};
    default:
        die(text, "not a shape");
        return (bench_shape){0};
    }
}

static nrg_dtype dtype_of(const char *name)
{
    for (int i = NRG_F32; i <= NRG_BF16; i++)
        if (strcmp(name, nrg_dtype_name((nrg_dtype)i)) == 0)
            return (nrg_dtype)i;
    die(name, "not a dtype");
    return NRG_F32;
}

static void count(const char *name)
{
    char word[4][WORD];
    switch (sscanf(name, "%63[^/]/%63[^/]/%63[^/]/%63s", word[0], word[1], word[2], word[3])) {
    case 2: {
        const bench_shape shape = shape_of(word[1]);
        count_function(name, word[0], shape.rows, shape.dim);
        return;
    }
    case 4: {
        const bench_case c = bench_case_of(word[0], word[2], dtype_of(word[1]), NRG_ISA_AVX2, shape_of(word[3]));
        count_case(name, &c);
        return;
    }
    default:
        die(name, "not a name");
    }
}

int main(int argc, char **argv)
{
    FILE *list = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!list)
        die("LIST", "not given, or not readable");
    if (nrg_isa_set(NRG_ISA_AVX2) != NRG_OK)
        return 77;
    for (size_t i = 0; i < MOST_ELEMENTS; i++) {
        x[i] = (float)((int)(i * 37 % 101) - 50) / 16;
        y[i] = (float)((int)(i * 53 % 97) - 48) / 32;
        w[i] = b[i] = (float)(1 + i % 7) / 4;
    }
    char line[4 * WORD], name[4 * WORD];
    while (fgets(line, sizeof line, list))
        if (line[0] != '#' && sscanf(line, "%255s", name) == 1)
            count(name);
    fclose(list);
    return 0;
}
