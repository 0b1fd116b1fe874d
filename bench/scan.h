/* The cases of --scan: drawn, and the same ones from the same seed.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_SCAN_H
#define NRG_BENCH_SCAN_H

#include <stdint.h>

#include "args.h"
#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BENCH_SCAN_ROW_MIN = 32, BENCH_SCAN_ROW_MAX = 16384, BENCH_SCAN_STEP = 64 };
enum { BENCH_SCAN_BYTES_MIN = 8 << 10, BENCH_SCAN_BYTES_MAX = 50 << 20 };

/* Ops to draw from: all that pass the filters. */
typedef struct bench_scan_ops {
    struct {
        const bench_family *family;
        const bench_op *op;
    } * of;
    size_t count;
} bench_scan_ops;

/* 0: no memory. */
int bench_scan_ops_make(bench_scan_ops *ops, const bench_args *args);

/* A case, and the one that it is compared with: its rows are of the next multiple of BENCH_SCAN_STEP elements, dense and aligned.
 * What is in place in one is so in the other. */
typedef struct bench_scan_case {
    bench_case c, reference;
    bench_layout layout, reference_layout;
    size_t row, reference_row; /* elements */
} bench_scan_case;

void bench_scan_draw(bench_scan_case *drawn, const bench_scan_ops *ops, const bench_args *args, uint64_t seed, size_t number);

/* "x+4 w+12 o=x y/4100": bytes after a cache line's start; an output in an input's place; the stride of rows. */
enum { BENCH_LAYOUT_MAX = 320 };
void bench_scan_layout_name(const bench_scan_case *drawn, char name[BENCH_LAYOUT_MAX]);

#ifdef __cplusplus
}
#endif

#endif
