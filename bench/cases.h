/* The cases: kernels.def × paths of this machine × ops × shapes.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_CASES_H
#define NRG_BENCH_CASES_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "nrg/nrg.h"
#include "paths.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the program where a call fails that the benchmark relies on. */
static inline void bench_require(nrg_status status)
{
    if (status != NRG_OK) {
        fprintf(stderr, "nrg-bench: %s\n", nrg_status_string(status));
        abort();
    }
}

/* family.h */
typedef struct bench_family bench_family;
typedef struct bench_function bench_function;
typedef struct bench_layout bench_layout;

/* Rows of dim elements; a tensor with channels has a sample as its row, and its dim is channels times height times width. */
typedef struct bench_shape {
    size_t rows, dim;
    size_t channels, height, width; /* 0 without channels */
} bench_shape;

#define BENCH_ROWS(rows_, dim_)                                                                                                  \
    {                                                                                                                            \
        rows_, dim_, 0, 0, 0                                                                                                     \
    }
/* Short rows, tails and streamed rows with tails, which norms and softmax have; ROWS(rows, dim) makes a shape. */
#define BENCH_TAILS(ROWS)                                                                                                        \
    ROWS(1, 1000), ROWS(64, 64), ROWS(64, 80), ROWS(64, 200), ROWS(64, 256), ROWS(4096, 40), ROWS(4096, 96), ROWS(1024, 1000),   \
        ROWS(1024, 1024), ROWS(20000, 1000), ROWS(20000, 1024), ROWS(40000, 520)
/* Rows that become blocks of so many elements, of which no row has fewer. */
#define BENCH_BLOCKS(block)                                                                                                      \
    {                                                                                                                            \
        BENCH_ROWS(1, 4096), BENCH_ROWS(512, 4096), BENCH_ROWS(8192, 4096), BENCH_ROWS(1, block)                                 \
    }
#define BENCH_IMAGES(n, c, h, w)                                                                                                 \
    {                                                                                                                            \
        n, (size_t)(c) * (h) * (w), c, h, w                                                                                      \
    }

/* An op is a call of a kernel with certain options and a certain set of operands. */
typedef struct bench_op {
    const char *name;
    const char *operands; /* names of those that are there, "w,b", of the ones that may be absent at all; may be NULL */
    const bench_shape *shapes;
    size_t shape_count;
    const bench_function *function; /* NULL: the family's */
    /* options; 0 where the family has no such thing */
    size_t option;           /* what the family says it is */
    nrg_quant_format format; /* of what is read or written as bytes */
    int exact;               /* the exact grade, of f32 alone: 16-bit results are the same in both */
    int centred;
    nrg_gate gate;
    nrg_activation activation;
    size_t groups;              /* NRG_CHANNEL_OVER_GROUP: 0 for as many as there are channels */
    size_t row_step, rows_step; /* for --scan, beside groups and format: elements of a row, and rows, are multiples; 0: any */
    nrg_channel_over over;
    nrg_layout layout;
    nrg_statistics_source source;
    int fixed_strides; /* a layout changes none: the op sets strides, or its function makes two calls and passes none on */
} bench_op;

typedef struct bench_case {
    const bench_family *family;
    nrg_dtype dtype; /* of all operands, w and b included: what a model saved in 16 bits has */
    nrg_isa isa;
    const bench_op *op;
    bench_shape shape;
    nrg_store store;
    const bench_layout *layout; /* NULL: dense operands, aligned to cache lines, each in its own place */
} bench_case;

enum { BENCH_NAME_MAX = 96, BENCH_SHAPE_MAX = 48 };

/* "norm_forward/f32/avx512/add+rms/512x4096" */
void bench_case_name(const bench_case *c, char name[BENCH_NAME_MAX]);

/* "512x4096"; where a tensor has no rows, "4096"; where it has channels, "2x640x32x32": n, c, h, w. */
void bench_shape_name(const bench_family *family, bench_shape shape, char name[BENCH_SHAPE_MAX]);

/* The families in the order of kernels.def; NULL past the last. And the name that a family has there. */
const bench_family *bench_family_at(size_t i);
const char *bench_kernel_of(const bench_family *family);

/* Whether there are cases of an op in this type: the exact grade is of f32 alone. */
int bench_op_has(const bench_op *op, nrg_dtype dtype);

/* Calls visit for every case of every path this machine can run; family: of this one only, NULL: of all. */
void bench_each_case(const bench_family *family, void (*visit)(const bench_case *c, void *ctx), void *ctx);

/* A case by its names. Ends the program where there is none: the names are constants in this folder. */
bench_case bench_case_of(const char *kernel, const char *op, nrg_dtype dtype, nrg_isa isa, bench_shape shape);

/* What a call moves: bytes of each operand, read or written once. */
size_t bench_case_bytes(const bench_case *c);

/* How many tensors are read and written. */
size_t bench_case_tensors(const bench_case *c);

/* Whether a filter ("f32,bf16"; NULL or "all") admits the name. */
int bench_admits(const char *filter, const char *name);

size_t bench_shape_elements(bench_shape shape);
int bench_shape_equal(bench_shape a, bench_shape b);

/* Bytes that have to be read before the first of them can be made into output, where they are more than L2 holds, so that memory
 * or the next cache hands them out twice; otherwise 0. */
size_t bench_case_read_twice(const bench_case *c);

#ifdef __cplusplus
}
#endif
#endif
