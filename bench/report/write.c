/* A report as JSON, and as a page that holds the same JSON.
 *
 * SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../family.h"
#include "../modes/modes.h"
#include "machine.h"
#include "page.h"
#include "report.h"

/* Rows are arrays, since names of columns would be half of the file. */
static const char *const columns[] = {"kernel", "op",       "dtype", "path",     "shape",    "elements", "bytes",
                                      "ns",     "limit_ns", "loop",  "twice_ns", "naive_ns", "sleef_ns"};

/* What stands as the limit's loop, each text once: there are a dozen for thousands of rows. */
enum { LOOP_TEXTS = 64 };
struct loop_texts {
    const char *text[LOOP_TEXTS];
    size_t count;
};

static size_t loop_number(struct loop_texts *loops, const char *text)
{
    size_t i = 0;
    while (i < loops->count && strcmp(loops->text[i], text) != 0)
        i++;
    if (i == loops->count && i < LOOP_TEXTS)
        loops->text[loops->count++] = text;
    return i;
}

static void time_or_null(json_writer *w, double ns) { json_number(w, ns > 0 ? ns : (double)NAN); }

static void names(json_writer *w, const bench_case *c)
{
    json_text(w, c->family->kernel);
    json_text(w, c->op->name);
    json_text(w, nrg_dtype_name(c->dtype));
    json_text(w, nrg_isa_name(c->isa));
}

static void rows_of(json_writer *w, const report *r, struct loop_texts *loops, int is_sweep)
{
    json_open(w, '[');
    for (size_t i = 0; i < r->rows; i++) {
        const report_row *row = &r->row[i];
        const bench_share *s = &row->share;
        char shape[BENCH_SHAPE_MAX];
        if (row->is_sweep != is_sweep)
            continue;
        bench_shape_name(row->c.family, row->c.shape, shape);
        json_line(w);
        json_open(w, '[');
        names(w, &row->c);
        json_text(w, shape);
        json_number(w, s->elements);
        json_number(w, s->bytes);
        time_or_null(w, s->ns);
        time_or_null(w, s->limit_ns);
        json_number(w, (double)loop_number(loops, s->loop));
        time_or_null(w, s->twice_ns);
        time_or_null(w, s->rival_ns[BENCH_NAIVE]);
        time_or_null(w, s->rival_ns[BENCH_SLEEF]);
        json_close(w, ']');
    }
    json_close(w, ']');
}

static void memory_of(json_writer *w, const report *r)
{
    json_open(w, '[');
    for (size_t i = 0; i < r->bandwidths; i++) {
        const report_bandwidth *b = &r->bandwidth[i];
        json_line(w);
        json_open(w, '{');
        json_key(w, "path");
        json_text(w, nrg_isa_name(b->isa));
        json_key(w, "bytes");
        json_number(w, (double)b->bytes);
        json_key(w, "read");
        json_number(w, b->read);
        json_key(w, "copy");
        json_number(w, b->copy);
        json_close(w, '}');
    }
    json_close(w, ']');
}

/* who: "nrg" or a rival. */
static void errors_of(json_writer *w, const report *r)
{
    json_open(w, '[');
    for (size_t i = 0; i < r->errors; i++) {
        const report_error *e = &r->error[i];
        json_line(w);
        json_open(w, '[');
        names(w, &e->c);
        json_text(w, e->who == BENCH_RIVALS ? "nrg" : bench_rival_name(e->who));
        json_number(w, e->ulp);
        json_close(w, ']');
    }
    json_close(w, ']');
}

static void write_json(FILE *to, const report *r)
{
    json_writer w = {.to = to};
    struct loop_texts loops = {.count = 0};
    size_t measured = 0;
    for (size_t i = 0; i < r->rows; i++)
        measured += !r->row[i].is_sweep;
    json_open(&w, '{');
    json_key(&w, "format");
    json_text(&w, "nrg-bench report 1");
    report_machine(&w);
    json_key(&w, "seconds");
    json_number(&w, r->took);
    json_key(&w, "cases");
    json_number(&w, (double)report_plan_cases(&r->plan));
    json_key(&w, "measured");
    json_number(&w, (double)measured);
    json_key(&w, "refused");
    json_number(&w, (double)r->refused);
    json_line(&w);
    json_key(&w, "memory");
    memory_of(&w, r);
    json_line(&w);
    json_key(&w, "columns");
    json_open(&w, '[');
    for (size_t i = 0; i < COUNT(columns); i++)
        json_text(&w, columns[i]);
    json_close(&w, ']');
    json_line(&w);
    json_key(&w, "errors");
    errors_of(&w, r);
    json_line(&w);
    json_key(&w, "sweep");
    rows_of(&w, r, &loops, 1);
    json_line(&w);
    json_key(&w, "rows");
    rows_of(&w, r, &loops, 0);
    json_line(&w);
    json_key(&w, "loops");
    json_open(&w, '[');
    for (size_t i = 0; i < loops.count; i++)
        json_text(&w, loops.text[i]);
    json_close(&w, ']');
    json_close(&w, '}');
    fputc('\n', to);
}

static void write_page(FILE *to, const report *r)
{
    fwrite(report_page_head, 1, report_page_head_size, to);
    write_json(to, r);
    fwrite(report_page_tail, 1, report_page_tail_size, to);
}

enum { FILES = 2, PATH_BYTES = 4096 };
static const struct {
    const char *name;
    void (*write)(FILE *to, const report *r);
} files[FILES] = {{"report.json", write_json}, {"report.html", write_page}};

/* 0: errno has why. */
static int write_file(const char *path, void (*write)(FILE *, const report *), const report *r)
{
    FILE *to = fopen(path, "w");
    if (!to)
        return 0;
    write(to, r);
    const int wrong = ferror(to);
    return fclose(to) == 0 && !wrong;
}

const char *report_try_directory(const char *directory)
{
    char path[PATH_BYTES];
    if (strlen(directory) > PATH_BYTES - 32)
        return "the directory's name is too long";
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return strerror(errno);
    for (int i = 0; i < FILES; i++) {
        snprintf(path, PATH_BYTES, "%s/%s.part", directory, files[i].name);
        FILE *to = fopen(path, "w");
        if (!to)
            return strerror(errno);
        fclose(to);
        remove(path);
    }
    return NULL;
}

const char *report_write(const report *r, const char *directory)
{
    char path[FILES][PATH_BYTES], part[FILES][PATH_BYTES];
    int written = 0, fine = 1;
    for (; written < FILES && fine; written++) {
        snprintf(path[written], PATH_BYTES, "%s/%s", directory, files[written].name);
        snprintf(part[written], PATH_BYTES, "%s/%s.part", directory, files[written].name);
        fine = write_file(part[written], files[written].write, r);
    }
    for (int i = 0; i < FILES && fine; i++)
        fine = rename(part[i], path[i]) == 0;
    if (fine)
        return NULL;
    const char *wrong = strerror(errno);
    for (int i = 0; i < written; i++)
        remove(part[i]);
    return wrong;
}
