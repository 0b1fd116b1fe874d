/* The options of nrg-bench's own modes; without one of these, Google Benchmark gets the command line.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_ARGS_H
#define NRG_BENCH_ARGS_H

#include "cases.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_args {
    int table, rivals, errors, ratios, gates, threads, stores, short_sets, instances, selfcheck; /* modes; any number of them */
    int quick, markdown;
    const char *dtype, *path, *kernel, *op, *shape; /* filters, NULL: no filter; "a,b": a or b */
    double seconds;                                 /* a case; 0: the default */
    const char *report;                             /* the directory for a report */
    double seconds_total;                           /* of a report; 0: the default */
    const char *compare, *compare_to;               /* two reports */
    double worse_than;                              /* 0: however bad, it is no failure */
    int scan;
    size_t scan_seed, scan_cases, scan_only; /* only: the number of one case; 0: all */
} bench_args;

void bench_print_help(void);

/* 1: at least one mode was asked for. 0: none, the command line is Google Benchmark's. -1: wrong, and said so. */
int bench_read_args(bench_args *args, int argc, char **argv);

/* 1 if a filter ("f32,bf16"; NULL or "all") admits the name. */
int bench_admits(const char *filter, const char *name);

/* Runs the modes asked for; the exit status. */
int bench_run_modes(const bench_args *args);

#ifdef __cplusplus
}
#endif
#endif
