/* --compare A.json B.json: two reports side by side, of two machines or of two commits.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../modes/modes.h"
#include "json.h"

/* A time that a report gives to a case, and the case's name. */
struct timed {
    char name[BENCH_NAME_MAX + 32];
    double ns;
};

struct side {
    const char *file;
    json_value *json;
    struct timed *row;
    size_t rows;
};

/* The columns that a name is made of, and the time. */
static const char *const name_columns[] = {"kernel", "op", "dtype", "path", "shape"};
enum { NAME_COLUMNS = 5, COLUMNS_MAX = 32 };

static char *whole_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t size = 0, room = 0, got = 1;
    while (file && got) {
        if (size + 1 >= room) {
            char *larger = realloc(text, room = 2 * room + (1 << 16));
            if (!larger)
                break;
            text = larger;
        }
        got = fread(text + size, 1, room - size - 1, file);
        size += got;
    }
    if (file)
        fclose(file);
    if (text)
        text[size] = '\0';
    return text;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct timed *)a)->name, ((const struct timed *)b)->name);
}

static size_t count_of(const json_value *array) { return array->kind == JSON_ARRAY ? array->count : 0; }

/* A row by the report's columns. 0: not as it should be. */
static int read_row(const json_value *columns, const json_value *row, struct timed *to)
{
    const char *part[NAME_COLUMNS] = {0};
    const json_value *cell = row->first;
    to->ns = 0;
    for (const json_value *column = columns->first; column && cell; column = column->next, cell = cell->next) {
        const char *title = json_text_of(column, "");
        for (int i = 0; i < NAME_COLUMNS; i++)
            if (strcmp(title, name_columns[i]) == 0)
                part[i] = json_text_of(cell, NULL);
        if (strcmp(title, "ns") == 0 && cell->kind == JSON_NUMBER)
            to->ns = cell->number;
    }
    for (int i = 0; i < NAME_COLUMNS; i++)
        if (!part[i])
            return 0;
    snprintf(to->name, sizeof to->name, "%s/%s/%s/%s/%s", part[0], part[2], part[3], part[1], part[4]);
    return to->ns > 0;
}

static int read_side(struct side *side)
{
    char *text = whole_file(side->file);
    const char *wrong = text;
    if (!text) {
        fprintf(stderr, "nrg-bench: %s: cannot read this file\n", side->file);
        return 0;
    }
    side->json = json_read(text, &wrong);
    if (!side->json)
        fprintf(stderr, "nrg-bench: %s: expected JSON, got an error at byte %zu\n", side->file, (size_t)(wrong - text));
    free(text);
    if (!side->json)
        return 0;
    const json_value *columns = json_get(side->json, "columns"), *rows = json_get(side->json, "rows");
    if (strcmp(json_text_of(json_get(side->json, "format"), ""), "nrg-bench report 1") != 0 || rows->kind != JSON_ARRAY) {
        fprintf(stderr, "nrg-bench: %s: expected a report of nrg-bench --report, got other JSON\n", side->file);
        return 0;
    }
    side->row = calloc(count_of(rows) + 1, sizeof *side->row);
    for (const json_value *row = rows->first; row && side->row; row = row->next)
        if (!read_row(columns, row, &side->row[side->rows++])) {
            fprintf(stderr, "nrg-bench: %s: row %zu has no name or no time\n", side->file, side->rows);
            return 0;
        }
    if (side->row)
        qsort(side->row, side->rows, sizeof *side->row, by_name);
    return side->row != NULL;
}

/* How many caches a report names differs; the rest is a line each. */
static void print_machines(const struct side side[2])
{
    static const char *const keys[] = {"cpu", "system", "compiler", "nrg", "date"};
    for (size_t k = 0; k < COUNT(keys); k++)
        for (int i = 0; i < 2; i++)
            printf("%s %-9s %s\n", i ? "B" : "A", keys[k], json_text_of(json_get(side[i].json, keys[k]), "unknown"));
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Prints what both have, and says how many are worse than allowed (0: none is too bad). */
static int print_rows(const bench_args *args, const struct side side[2], size_t *worse)
{
    double *ratio = calloc(side[0].rows + 1, sizeof *ratio);
    size_t both = 0, a = 0, b = 0;
    int widest = 4;
    *worse = 0;
    if (!ratio)
        return 0;
    for (size_t i = 0; i < side[0].rows; i++)
        bench_widen(&widest, side[0].row[i].name);
    widest = abs(widest);
    printf("\n%-*s  %10s  %10s  B as fast\n", widest, "case", "A ns", "B ns");
    while (a < side[0].rows && b < side[1].rows) {
        const int order = by_name(&side[0].row[a], &side[1].row[b]);
        if (order) {
            *(order < 0 ? &a : &b) += 1;
            continue;
        }
        const double from = side[0].row[a].ns, to = side[1].row[b].ns;
        const int too_slow = args->worse_than > 0 && to > from * args->worse_than;
        printf("%-*s  %10.4g  %10.4g  %.3f%s\n", widest, side[0].row[a].name, from, to, from / to, too_slow ? "  worse" : "");
        *worse += (size_t)too_slow;
        ratio[both++] = from / to;
        a++;
        b++;
    }
    printf("\n%zu cases in both, %zu in A alone, %zu in B alone\n", both, side[0].rows - both, side[1].rows - both);
    if (both) {
        double logarithms = 0;
        for (size_t i = 0; i < both; i++)
            logarithms += log(ratio[i]);
        qsort(ratio, both, sizeof *ratio, by_value);
        printf("B is %.3f times as fast as A (geometric mean; median %.3f, least %.3f, most %.3f)\n",
               exp(logarithms / (double)both), ratio[both / 2], ratio[0], ratio[both - 1]);
    }
    free(ratio);
    return both > 0;
}

int bench_compare_mode(const bench_args *args)
{
    struct side side[2] = {{.file = args->compare}, {.file = args->compare_to}};
    int status = 2;
    if (read_side(&side[0]) && read_side(&side[1])) {
        size_t worse;
        print_machines(side);
        if (!print_rows(args, side, &worse))
            fputs("nrg-bench: the reports have no case in common\n", stderr);
        else
            status = worse != 0;
        if (args->worse_than > 0 && status < 2)
            printf("%zu take more than %g times as long\n", worse, args->worse_than);
    }
    for (int i = 0; i < 2; i++) {
        json_free(side[i].json);
        free(side[i].row);
    }
    return status;
}
