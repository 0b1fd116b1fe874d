/* Tables for people.
 *
 * SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>

#include "table.h"

void table_cell(table_row *row, const char *format, ...)
{
    if (row->cells == TABLE_COLUMNS_MAX)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(row->cell[row->cells++], TABLE_CELL_MAX, format, list);
    va_end(list);
}

void table_time(table_row *row, double ns)
{
    const char *unit = "ns";
    if (ns >= 999.5e3) {
        ns /= 1e6;
        unit = "ms";
    } else if (ns >= 999.5) {
        ns /= 1e3;
        unit = "us"; /* not µs: printf counts bytes, and columns would shift */
    }
    table_cell(row, "%.*f %s", ns >= 99.95 ? 0 : ns >= 9.995 ? 1 : 2, ns, unit);
}

void table_print(const table *t, const table_row *row)
{
    for (int i = 0; i < t->columns; i++) {
        const char *cell = i < row->cells ? row->cell[i] : "";
        if (t->markdown)
            printf("| %s ", cell);
        else
            printf("%s%*s", i ? "  " : "", t->width[i], cell);
    }
    puts(t->markdown ? "|" : "");
    fflush(stdout);
}

void table_head(const table *t, const table_row *row)
{
    table_print(t, row);
    if (t->markdown) {
        for (int i = 0; i < t->columns; i++)
            fputs(t->width[i] < 0 ? "| --- " : "| ---: ", stdout);
        puts("|");
    }
}
