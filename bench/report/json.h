/* JSON as nrg-bench writes and reads it: the writer puts the commas, the reader makes a tree.
 *
 * SPDX-License-Identifier: MIT */
#ifndef NRG_BENCH_REPORT_JSON_H
#define NRG_BENCH_REPORT_JSON_H

#include <stddef.h>
#include <stdio.h>

/* To a file: values, and inside of objects each after its key. */
typedef struct json_writer {
    FILE *to;
    int depth, started[16]; /* started: there is something before, at this depth */
    int after_key;
} json_writer;

void json_open(json_writer *w, char bracket); /* '{' or '[' */
void json_close(json_writer *w, char bracket);
void json_key(json_writer *w, const char *key);
void json_text(json_writer *w, const char *text);
void json_number(json_writer *w, double value); /* four digits, of whole numbers all; null where it is not finite */
void json_line(json_writer *w);                 /* the next value begins a line */

typedef enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_TEXT, JSON_ARRAY, JSON_OBJECT } json_kind;

typedef struct json_value {
    json_kind kind;
    double number;
    char *text, *key;         /* key: within an object */
    struct json_value *first; /* of an array or object; then from one to the next */
    struct json_value *next;
    size_t count;
} json_value;

/* The tree of a text that ends in a 0, or NULL, and where it went wrong. */
json_value *json_read(const char *text, const char **wrong_at);
void json_free(json_value *value);

/* Never NULL where the object is there: a null where there is no such key or place. */
const json_value *json_get(const json_value *object, const char *key);
const char *json_text_of(const json_value *value, const char *otherwise);

#endif
