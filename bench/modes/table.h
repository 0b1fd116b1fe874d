/* Tables for people: columns of a fixed width, or Markdown.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_MODES_TABLE_H
#define NRG_BENCH_MODES_TABLE_H

enum { TABLE_COLUMNS_MAX = 16, TABLE_CELL_MAX = 48 };

typedef struct table {
    int markdown, columns;
    const int *width; /* negative: flush left */
} table;

typedef struct table_row {
    int cells;
    char cell[TABLE_COLUMNS_MAX][TABLE_CELL_MAX];
} table_row;

/* Appends a cell, printf-like. */
void table_cell(table_row *row, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* 1234.5 → "1.23 us": three digits and a unit. */
void table_time(table_row *row, double ns);

/* Prints a row at once, since the next may take a while to measure. head: as the head of a table. */
void table_head(const table *t, const table_row *row);
void table_print(const table *t, const table_row *row);

#endif
