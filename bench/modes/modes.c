/* The modes, and what they share.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "../family.h"
#include "modes.h"

double bench_seconds(const bench_args *args) { return args->seconds > 0 ? args->seconds : args->quick ? 0.15 : 0.3; }

void bench_title(const bench_args *args, const char *text) { printf(args->markdown ? "\n**%s**\n\n" : "\n%s\n\n", text); }

void bench_widen(int *width, const char *cell)
{
    int length = (int)strlen(cell);
    if (length > -*width)
        *width = -length;
}

int bench_admits_case(const bench_args *args, const bench_case *c, const char *dtype, const char *kernel)
{
    char shape[BENCH_SHAPE_MAX];
    bench_shape_name(c->family, c->shape, shape);
    return bench_admits(args->dtype ? args->dtype : dtype, nrg_dtype_name(c->dtype)) &&
           bench_admits(args->path, nrg_isa_name(c->isa)) &&
           bench_admits(args->kernel ? args->kernel : kernel, c->family->kernel) && bench_admits(args->op, c->op->name) &&
           bench_admits(args->shape, shape);
}

void bench_cells_of_case(table_row *row, const bench_case *c)
{
    char shape[BENCH_SHAPE_MAX];
    bench_shape_name(c->family, c->shape, shape);
    table_cell(row, "%s", nrg_isa_name(c->isa));
    table_cell(row, "%s", nrg_dtype_name(c->dtype));
    table_cell(row, "%s", c->op->name);
    table_cell(row, "%s", shape);
}

int bench_run_modes(const bench_args *args)
{
    nrg_isa before = nrg_isa_active();
    int status = 0;
    if (args->selfcheck)
        status |= bench_selfcheck_mode(args);
    if (args->table)
        status |= bench_table_mode(args);
    if (args->rivals)
        status |= bench_rivals_mode(args);
    if (args->errors)
        status |= bench_errors_mode(args);
    if (args->ratios)
        status |= bench_ratios_mode(args);
    if (args->gates)
        status |= bench_gates_mode(args);
    if (args->threads)
        status |= bench_threads_mode(args);
    if (args->stores)
        status |= bench_stores_mode(args);
    if (args->short_sets)
        status |= bench_short_mode(args);
    if (args->instances)
        status |= bench_instances_mode(args);
    if (args->scan)
        status |= bench_scan_mode(args);
    if (args->report)
        status |= bench_report_mode(args);
    if (args->compare)
        status |= bench_compare_mode(args);
    bench_require(nrg_isa_set(before));
    return status;
}
