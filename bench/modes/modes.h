/* The modes, and what they share. Each returns an exit status.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_MODES_MODES_H
#define NRG_BENCH_MODES_MODES_H

#include "../args.h"
#include "table.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

int bench_table_mode(const bench_args *args);
int bench_ratios_mode(const bench_args *args);
int bench_rivals_mode(const bench_args *args);
int bench_errors_mode(const bench_args *args);
int bench_gates_mode(const bench_args *args);
int bench_threads_mode(const bench_args *args);
int bench_stores_mode(const bench_args *args);
int bench_short_mode(const bench_args *args);
int bench_scan_mode(const bench_args *args);
int bench_selfcheck_mode(const bench_args *args);
int bench_instances_mode(const bench_args *args);
int bench_report_mode(const bench_args *args);
int bench_compare_mode(const bench_args *args);

/* Time for a line. */
double bench_seconds(const bench_args *args);

void bench_title(const bench_args *args, const char *text);

/* A column of a table: as wide as its widest cell, and flush left. */
void bench_widen(int *width, const char *cell);

/* Whether dtype, path, kernel, op and shape pass the filters; dtype, kernel: which to take where the user named none. */
int bench_admits_case(const bench_args *args, const bench_case *c, const char *dtype, const char *kernel);

/* The first cells of a row: path, dtype, op, shape. */
void bench_cells_of_case(table_row *row, const bench_case *c);

#endif
