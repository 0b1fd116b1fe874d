/* Writes the loss curve as CSV and as an SVG for light and dark colour schemes. See training.h. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "training.h"

void curve_add(curve *c, uint64_t step, double learned, double unseen)
{
    if (c->points == c->room) {
        c->room = c->room == 0 ? 256 : 2 * c->room;
        c->at = realloc(c->at, c->room * sizeof *c->at);
        if (c->at == NULL) {
            fprintf(stderr, "transformer: no memory for a curve of %zu points\n", c->room);
            exit(1);
        }
    }
    c->at[c->points].step = step;
    c->at[c->points].learned = learned;
    c->at[c->points++].unseen = unseen;
}

static int finish(FILE *f, const char *path)
{
    const int wrong = ferror(f);
    if (fclose(f) == 0 && !wrong)
        return 1;
    fprintf(stderr, "transformer: %s: %s\n", path, strerror(errno));
    return 0;
}

static FILE *begin(const char *path)
{
    FILE *f = fopen(path, "w");
    if (f == NULL)
        fprintf(stderr, "transformer: %s: %s\n", path, strerror(errno));
    return f;
}

int curve_write_csv(const curve *c, const char *path)
{
    FILE *f = begin(path);
    if (f == NULL)
        return 0;
    fputs("step,learned_bits_per_byte,unseen_bits_per_byte\n", f);
    for (size_t i = 0; i < c->points; i++) {
        fprintf(f, "%llu,%.9g,", (unsigned long long)c->at[i].step, c->at[i].learned);
        if (c->at[i].unseen >= 0)
            fprintf(f, "%.9g", c->at[i].unseen);
        fputc('\n', f);
    }
    return finish(f, path);
}

enum { WIDTH = 720, HEIGHT = 400, LEFT = 50, RIGHT = 20, TOP = 30, BOTTOM = 40, MOST_BITS = 8 };

static double across(const curve *c, size_t i)
{
    const double last = (double)c->at[c->points - 1].step;
    return LEFT + (WIDTH - LEFT - RIGHT) * (double)c->at[i].step / (last > 0 ? last : 1);
}

static double down(double bits)
{
    const double kept = bits > MOST_BITS ? MOST_BITS : bits;
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * kept / MOST_BITS;
}

int curve_write_svg(const curve *c, const char *path)
{
    if (c->points == 0)
        return 1;
    FILE *f = begin(path);
    if (f == NULL)
        return 0;
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<style>svg{background:#fff}text{fill:#333}.grid{stroke:#ddd}.learned{stroke:#8ab}.unseen{stroke:#c40}"
            "path{fill:none;stroke-width:1.5}"
            "@media(prefers-color-scheme:dark){svg{background:#181a1b}text{fill:#ccc}.grid{stroke:#444}.unseen{stroke:#f84}}</"
            "style>\n",
            WIDTH, HEIGHT);
    for (int bits = 0; bits <= MOST_BITS; bits++)
        fprintf(f, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n", LEFT,
                down(bits), WIDTH - RIGHT, LEFT - 6, down(bits) + 4, bits);
    fprintf(f, "<text x=\"%d\" y=\"18\">bits a byte: what is learned from (blue), text not seen (red)</text>\n", LEFT);
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">step %llu</text>\n", WIDTH - RIGHT, HEIGHT - 12,
            (unsigned long long)c->at[c->points - 1].step);
    for (int unseen = 0; unseen < 2; unseen++) {
        fprintf(f, "<path class=\"%s\" d=\"", unseen ? "unseen" : "learned");
        char command = 'M';
        for (size_t i = 0; i < c->points; i++) {
            const double bits = unseen ? c->at[i].unseen : c->at[i].learned;
            if (bits < 0)
                continue;
            fprintf(f, "%c%.1f %.1f", command, across(c, i), down(bits));
            command = 'L';
        }
        fputs("\"/>\n", f);
    }
    fputs("</svg>\n", f);
    return finish(f, path);
}
