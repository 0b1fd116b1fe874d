/* See text.h. SPDX-License-Identifier: MIT */
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LICENCES "/usr/share/common-licenses/"

static int try_add(text *t, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return 0;
    enum { BLOCK = 65536 };
    size_t got;
    do {
        unsigned char *more = realloc(t->at, t->size + BLOCK);
        if (more == NULL) {
            fclose(f);
            return 0;
        }
        t->at = more;
        got = fread(t->at + t->size, 1, BLOCK, f);
        t->size += got;
    } while (got > 0);
    const int fine = !ferror(f);
    fclose(f);
    return fine;
}

void text_add(text *t, const char *path)
{
    if (try_add(t, path))
        return;
    fprintf(stderr, "transformer: %s: %s\n", path, strerror(errno));
    exit(1);
}

int text_default(text *train, text valid[], size_t *valids)
{
    static const char *const learned[] = {"BSD",    "GFDL-1.2", "GFDL-1.3", "GPL-1",   "GPL-2",  "GPL-3",
                                          "LGPL-2", "LGPL-2.1", "LGPL-3",   "MPL-1.1", "MPL-2.0"};
    static const char *const unseen[] = {"Apache-2.0", "Artistic", "CC0-1.0"};
    char path[sizeof LICENCES + 16];
    for (size_t i = 0; i < sizeof learned / sizeof *learned; i++) {
        snprintf(path, sizeof path, LICENCES "%s", learned[i]);
        if (!try_add(train, path))
            return 0;
    }
    *valids = sizeof unseen / sizeof *unseen;
    for (size_t i = 0; i < *valids; i++) {
        snprintf(path, sizeof path, LICENCES "%s", unseen[i]);
        if (!try_add(&valid[i], path))
            return 0;
    }
    return 1;
}

void text_draw(const text *t, uint64_t seed, uint64_t step, size_t sequences, size_t length, int32_t *in, int32_t *out)
{
    for (size_t i = 0; i < sequences; i++) {
        const size_t from = (size_t)(drawn(drawn(seed, step), i) % (t->size - length));
        for (size_t j = 0; j < length; j++) {
            in[i * length + j] = t->at[from + j];
            out[i * length + j] = t->at[from + j + 1];
        }
    }
}

typedef struct passing {
    minibatch *b;
    const tensors *w;
} passing;

static void pass(void *data, team *t, int ith)
{
    const passing *p = data;
    forward(p->b, p->w, t, ith);
}

double text_bits(const text *t, minibatch *b, const tensors *w, team *all, int32_t *in, int32_t *out)
{
    const size_t length = b->length, half = length / 2;
    passing p = {b, w};
    double nats = 0;
    /* window i predicts the bytes from i · half on; all windows but the first count from their middle */
    for (size_t window = 0; window * half + (window > 0 ? half : 0) < t->size; window += b->sequences) {
        for (size_t i = 0; i < b->sequences; i++)
            for (size_t j = 0; j < length; j++) {
                const size_t at = (window + i) * half + j;
                in[i * length + j] = at == 0 || at > t->size ? '\n' : t->at[at - 1];
                out[i * length + j] = at < t->size && (window + i == 0 || j >= half) ? t->at[at] : -100; /* ignored */
            }
        b->in = in;
        b->out = out;
        team_run(all, pass, &p);
        for (size_t i = 0; i < b->rows; i++)
            nats += (double)b->loss[i];
    }
    return nats / (double)t->size * 1.4426950408889634;
}
