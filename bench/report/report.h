/* A report: what is planned, what was measured, and how it is written.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_REPORT_REPORT_H
#define NRG_BENCH_REPORT_REPORT_H

#include "../args.h"
#include "../modes/share.h"

/* Parts of a report, in the order they are done. Each has its share of the time; what one leaves goes to the next. */
typedef enum report_part {
    REPORT_MEMORY,   /* bandwidth by working set */
    REPORT_ACCURACY, /* errors */
    REPORT_SWEEP,    /* a row from L1 to memory */
    REPORT_NEAR,     /* the paths for this CPU, up to REPORT_NEAR_MOST elements */
    REPORT_PORTABLE, /* scalar and generic, small shapes */
    REPORT_FAR,      /* the rest of the former */
    REPORT_LAST,     /* the rest of the latter */
    REPORT_PARTS
} report_part;

/* One case on some paths, which take turns on the same memory. */
typedef struct report_task {
    bench_case c;
    report_part part;
    unsigned paths;    /* bits */
    unsigned rank, at; /* within the part: which comes first */
} report_task;

typedef struct report_plan {
    report_task *task;
    size_t count, room;
} report_plan;

/* 0: no memory. */
int report_plan_make(report_plan *plan, const bench_args *args);

/* Cases of every path that pass the filters: what a report with all the time it wants would have. */
size_t report_plan_cases(const report_plan *plan);

/* Seconds that a task takes at least, roughly: so that none is begun that would not end in time. */
double report_task_cost(const report_task *task);

typedef struct report_row {
    bench_case c;
    int is_sweep;
    bench_share share;
} report_row;

typedef struct report_bandwidth {
    nrg_isa isa;
    size_t bytes;      /* the working set */
    double read, copy; /* bytes/ns; of a copy what is read and what is written */
} report_bandwidth;

enum { REPORT_SETS = 4 };

/* Working sets: half of L1, half of L2, and two that are larger; ascending. */
void report_sets(size_t bytes[REPORT_SETS]);
int report_bandwidth_of(report_bandwidth *b, double seconds); /* fills in read and copy; 0: no memory or no loops */

typedef struct report_error {
    bench_case c;
    bench_rival who;
    double ulp;
} report_error;

typedef struct report {
    const bench_args *args;
    report_plan plan;
    report_row *row;
    size_t rows;
    report_bandwidth *bandwidth;
    size_t bandwidths;
    report_error *error;
    size_t errors;
    double seconds; /* asked for */
    double took;
    size_t refused; /* tasks that went wrong */
} report;

/* Measures. 0: no memory, or interrupted (*interrupted). */
int report_run(report *r, volatile const int *interrupted);

/* Makes DIR and sees that files can be made in it, before time is spent on them. NULL, or what went wrong. */
const char *report_try_directory(const char *directory);

/* Into such a DIR: writes report.json and report.html, each under another name until it is whole. NULL, or what went wrong. */
const char *report_write(const report *r, const char *directory);

/* A line on the standard error that says how far it is: of a terminal always the same one, otherwise one now and then. */
void report_progress(double done, double left_seconds, const char *text);
void report_progress_end(void);

#endif
