/* The options of nrg-bench's own modes; without one of these, Google Benchmark gets the command line.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_ARGS_H
#define NRG_BENCH_ARGS_H

#include "cases.h"

struct bench_args {
    const char *table, *rivals, *errors, *ratios, *gates, *threads, *stores, *short_sets, *instances, *selfcheck; /* modes */
    const char *scan, *report, *compare, *compare_to; /* more of them: the seed, the directory for a report, two reports */
    const char *quick, *markdown;
    const char *dtype, *path, *kernel, *op, *shape; /* filters, NULL: no filter; "a,b": a or b */
    const char *seconds_told, *total_told, *worse_told, *cases_told, *only_told;

    /* the numbers that these say */
    double seconds, seconds_total;           /* a case, a report; 0: the default */
    double worse_than;                       /* 0: however bad, it is no failure */
    size_t scan_seed, scan_cases, scan_only; /* only: the number of one case; 0: all */
};

void bench_print_help();

/* 1: at least one mode was asked for. 0: none, the command line is Google Benchmark's. -1: wrong, and said so. */
int bench_read_args(bench_args *args, int argc, char **argv);

/* Runs the modes asked for; the exit status. */
int bench_run_modes(const bench_args *args);

#endif
