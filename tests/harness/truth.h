/* What the tests of truth share: what is wrong with a case, the worst errors as a table, and --report.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_TESTS_HARNESS_TRUTH_H
#define NRG_TESTS_HARNESS_TRUTH_H

#include "../../tools/printf_like.h"
#include "support.h"

/* What is wrong, in the words of printf: a text that lasts until the next. */
PRINTF_LIKE(1, 2) const char *truth_wrong(const char *format, ...);

/* Of a case where something is wrong (not NULL): ends the test, or, while a report is made, says so and goes on. text: of the
 * case, or NULL. */
void truth_judge(const char *wrong, const char *text);

/* The worst errors, of each kind in each column. */
typedef struct truth_table {
    const char *of; /* what the kinds are kinds of: "row" */
    int kinds, columns;
    const char *(*kind_name)(int kind);
    const char *const *column_names;
    const double *worst; /* [kinds][columns] */
} truth_table;

/* Prints it in Markdown, and the worst of all kinds. */
void truth_print(const truth_table *table);

/* The same by kinds of rows (rows.h), worst[ROW_ALL_KINDS][columns]: the stress set, and ordinary ones. */
void truth_print_rows(const char *of, int columns, const char *const *column_names, const double *worst);

/* 1 while a report is made. */
int truth_reporting(void);

/* main() of such a test: runs the suite, or, with --report, only that; then it is a failure if a case was wrong. */
int truth_main(int argc, char **argv, void (*report)(void), Suite *(*suite)(void));

#endif
