/* JSON to a file.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "json.h"

static void separate(json_writer *w)
{
    if (!w->after_key && w->started[w->depth])
        fputc(',', w->to);
    w->started[w->depth] = 1;
    w->after_key = 0;
}

void json_open(json_writer *w, char bracket)
{
    separate(w);
    fputc(bracket, w->to);
    w->started[++w->depth] = 0;
}

void json_close(json_writer *w, char bracket)
{
    w->depth--;
    fputc(bracket, w->to);
}

void json_line(json_writer *w)
{
    if (w->started[w->depth])
        fputc(',', w->to);
    fputc('\n', w->to);
    w->started[w->depth] = 0;
}

/* "<" as a number as well, so that no text can end the script element of a page that holds it. */
static void quoted(FILE *to, const char *text)
{
    fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < 0x20 || *c == '"' || *c == '\\' || *c == '<')
            fprintf(to, "\\u%04x", *c);
        else
            fputc(*c, to);
    }
    fputc('"', to);
}

void json_key(json_writer *w, const char *key)
{
    separate(w);
    quoted(w->to, key);
    fputc(':', w->to);
    w->after_key = 1;
}

void json_text(json_writer *w, const char *text)
{
    separate(w);
    quoted(w->to, text);
}

void json_number(json_writer *w, double value)
{
    separate(w);
    if (!isfinite(value))
        fputs("null", w->to);
    else if (value == rint(value) && fabs(value) < 0x1p53)
        fprintf(w->to, "%.0f", value);
    else
        fprintf(w->to, "%.4g", value);
}
