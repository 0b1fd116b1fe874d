/* Checkpoints. See training.h. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "training.h"

static const char magic[8] = "nrgtrf1";

typedef struct header {
    char magic[8];
    plan plan;
    uint64_t step, floats;
} header;

static int complain(const char *path, const char *what)
{
    fprintf(stderr, "transformer: %s: %s\n", path, what);
    return 0;
}

int checkpoint_write(const training *r, const char *path)
{
    char beside[4096];
    if ((size_t)snprintf(beside, sizeof beside, "%s.new", path) >= sizeof beside)
        return complain(path, "the name is too long");
    FILE *f = fopen(beside, "wb");
    if (f == NULL)
        return complain(beside, strerror(errno));
    header h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, magic, sizeof magic);
    h.plan = r->plan;
    h.step = r->step;
    h.floats = r->floats;
    int fine = fwrite(&h, sizeof h, 1, f) == 1;
    const float *const arrays[] = {r->weights, r->m, r->v};
    for (size_t i = 0; i < 3; i++)
        fine = fine && fwrite(arrays[i], sizeof(float), r->floats, f) == r->floats;
    fine = (fclose(f) == 0) && fine;
    if (!fine || rename(beside, path) != 0) {
        const int why = errno;
        remove(beside);
        return complain(path, strerror(why));
    }
    return 1;
}

/* And goes back to where it was. */
static int has_size(FILE *f, uint64_t size)
{
    const long at = ftell(f);
    if (at < 0 || fseek(f, 0, SEEK_END) != 0)
        return 0;
    const long end = ftell(f);
    return end >= 0 && (uint64_t)end == size && fseek(f, at, SEEK_SET) == 0;
}

/* The header, with what the rest of a file must be. NULL with a sentence where it is no checkpoint. */
static FILE *open_at_weights(const char *path, header *h)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        complain(path, strerror(errno));
        return NULL;
    }
    if (fread(h, sizeof *h, 1, f) != 1 || memcmp(h->magic, magic, sizeof magic) != 0)
        complain(path, "not a checkpoint of this program");
    else if (shape_complaint(&h->plan.shape) != NULL)
        complain(path, shape_complaint(&h->plan.shape));
    else if (h->plan.sequences < 1 || h->plan.sequences > 4096 || h->step > h->plan.steps)
        complain(path, "its plan makes no sense");
    else if (!has_size(f, sizeof *h + 3 * sizeof(float) * h->floats))
        complain(path, "not as long as its header says: a write that did not end?");
    else if (h->floats != lay_out(&h->plan.shape, NULL, NULL))
        complain(path, "its shape and its size are not of one model");
    else
        return f;
    fclose(f);
    return NULL;
}

int checkpoint_read_plan(const char *path, plan *p, uint64_t *step)
{
    header h;
    FILE *f = open_at_weights(path, &h);
    if (f == NULL)
        return 0;
    fclose(f);
    *p = h.plan;
    *step = h.step;
    return 1;
}

int checkpoint_read(training *r, const char *path)
{
    header h;
    FILE *f = open_at_weights(path, &h);
    if (f == NULL)
        return 0;
    int fine = h.floats == r->floats;
    float *const arrays[] = {r->weights, r->m, r->v};
    for (size_t i = 0; i < 3; i++)
        fine = fine && fread(arrays[i], sizeof(float), r->floats, f) == r->floats;
    fclose(f);
    r->step = h.step;
    return fine || complain(path, "the file ends too soon");
}

float *checkpoint_weights(const char *path, shape *s)
{
    header h;
    FILE *f = open_at_weights(path, &h);
    if (f == NULL)
        return NULL;
    const size_t floats = (size_t)h.floats; /* as many as the shape has */
    float *w = malloc(floats * sizeof *w);
    const int fine = w != NULL && fread(w, sizeof *w, floats, f) == floats;
    fclose(f);
    *s = h.plan.shape;
    if (fine)
        return w;
    complain(path, w == NULL ? "no memory for its weights" : "the file ends too soon");
    free(w);
    return NULL;
}
