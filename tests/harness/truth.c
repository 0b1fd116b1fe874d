/* SPDX-License-Identifier: MIT */
#include "truth.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rows.h"

static int reporting, broken;

const char *truth_wrong(const char *format, ...)
{
    static char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    return text;
}

void truth_judge(const char *wrong, const char *text)
{
    if (!wrong)
        return;
    const char *case_is = text ? "\n  case: " : "";
    if (!reporting)
        ck_abort_msg("%s%s%s", wrong, case_is, text ? text : "");
    fprintf(stderr, "%s%s%s\n", wrong, case_is, text ? text : "");
    broken = 1;
}

void truth_print(const truth_table *table)
{
    printf("| %s |", table->of);
    for (int column = 0; column < table->columns; column++)
        printf(" %s |", table->column_names[column]);
    printf("\n| --- |");
    for (int column = 0; column < table->columns; column++)
        printf(" ---: |");
    for (int kind = 0; kind < table->kinds; kind++) {
        printf("\n| %s |", table->kind_name(kind));
        for (int column = 0; column < table->columns; column++)
            printf(" %.3f |", table->worst[kind * table->columns + column]);
    }
    printf("\n| **worst** |");
    for (int column = 0; column < table->columns; column++) {
        double most = 0;
        for (int kind = 0; kind < table->kinds; kind++) {
            const double error = table->worst[kind * table->columns + column];
            most = error > most ? error : most;
        }
        printf(" **%.3f** |", most);
    }
    printf("\n");
    fflush(stdout);
}

static const char *stress_name(int kind) { return row_kind_name((enum row_kind)kind); }
static const char *ordinary_name(int kind) { return row_kind_name((enum row_kind)(ROW_ORDINARY + kind)); }

void truth_print_rows(const char *of, int columns, const char *const *column_names, const double *worst)
{
    const truth_table stress = {of, ROW_STRESS_KINDS, columns, stress_name, column_names, worst};
    const truth_table ordinary = {of, ROW_ORDINARY_KINDS, columns, ordinary_name, column_names, worst + ROW_ORDINARY * columns};
    truth_print(&stress);
    printf("\n");
    truth_print(&ordinary);
}

int truth_reporting(void) { return reporting; }

int truth_main(int argc, char **argv, void (*report)(void), Suite *(*suite)(void))
{
    argc = test_arguments(argc, argv);
    reporting = argc > 1 && strcmp(argv[1], "--report") == 0;
    if (!reporting)
        return test_run(suite());
    report();
    return broken;
}
