/* transformer train. SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "train.h"

/* Of all unseen texts together; below 0 where there are none. */
static double measure(const train_job *j, const training *r, team *all)
{
    if (j->unseen_count == 0)
        return -1;
    minibatch b;
    batch_begin(&b, &r->plan.shape, r->plan.sequences, r->plan.shape.context, 0);
    double bits = 0, bytes = 0;
    for (size_t i = 0; i < j->unseen_count; i++) {
        if (j->unseen[i].size == 0)
            continue;
        bits += (double)j->unseen[i].size * text_bits(&j->unseen[i], &b, &r->w, all, r->in, r->out);
        bytes += (double)j->unseen[i].size;
    }
    batch_end(&b);
    return bytes > 0 ? bits / bytes : -1;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void report(const training *r, double learned, double unseen, double began, uint64_t first, uint64_t until)
{
    const double seconds = now() - began, steps = (double)(r->step - first);
    const double left = seconds / steps * (double)(until - r->step);
    printf("%sstep %5llu/%llu  %6.3f bits a byte  %7.0f bytes/s  %2d:%02d left", isatty(1) ? "\r" : "",
           (unsigned long long)r->step, (unsigned long long)r->plan.steps, learned, steps * (double)r->batch.rows / seconds,
           (int)left / 60, (int)left % 60);
    if (unseen >= 0)
        printf("  unseen %.3f", unseen);
    if (unseen >= 0 || !isatty(1))
        printf("\n");
    fflush(stdout);
}

/* Weights as they are, and the gradients that the step to come will use are those of the step just made. */
static int dump(const training *r, const float *before, const char *path)
{
    FILE *f = fopen(path, "wb");
    const int fine = f != NULL && fwrite(before, sizeof(float), r->floats, f) == r->floats &&
                     fwrite(r->gradients, sizeof(float), r->floats, f) == r->floats;
    if (f != NULL && fclose(f) == 0 && fine)
        return 1;
    fprintf(stderr, "transformer: %s cannot be written\n", path);
    return 0;
}

static int learn(const train_job *j, training *r, team *all)
{
    curve c = {0, 0, NULL};
    int fine = 1;
    const uint64_t first = r->step;
    const double began = now();
    double mean = 0;
    uint64_t of = 0;
    float *before = j->dump == NULL ? NULL : malloc(r->floats * sizeof *before);
    while (fine && r->step < j->until) {
        if (before != NULL)
            memcpy(before, r->weights, r->floats * sizeof *before);
        mean += training_step(r, &j->learned, all);
        of++;
        const int last = r->step == j->until, look = last || r->step % j->every == 0;
        if (!look && r->step % 10 != 0)
            continue;
        mean /= (double)of;
        const double unseen = look ? measure(j, r, all) : -1;
        curve_add(&c, r->step, mean, unseen);
        if (look || isatty(1) || r->step % 50 == 0)
            report(r, mean, unseen, began, first, j->until);
        mean = 0;
        of = 0;
        if (last || r->step % j->save == 0)
            fine = checkpoint_write(r, j->out);
    }
    char path[4096];
    if (j->curve != NULL) {
        snprintf(path, sizeof path, "%s.csv", j->curve);
        fine &= curve_write_csv(&c, path);
        snprintf(path, sizeof path, "%s.svg", j->curve);
        fine &= curve_write_svg(&c, path);
    }
    if (before != NULL)
        fine &= dump(r, before, j->dump);
    free(before);
    free(c.at);
    return fine;
}

int command_train(int argc, char **argv)
{
    train_job j;
    train_job_read(&j, argc, argv);
    training r;
    team all;
    training_begin(&r, &j.plan);
    if (j.resume != NULL && !checkpoint_read(&r, j.resume))
        return 1;
    team_begin(&all, j.threads);
    const shape *s = &j.plan.shape;
    printf("%zu weights: %u layers of %u, %u heads of %u for %u of keys, %zu bytes of text, %zu unseen texts, %d threads, %s\n",
           r.floats, s->layers, s->dim, s->heads, s->head, s->kv_heads, j.learned.size, j.unseen_count, j.threads,
           nrg_isa_name(nrg_isa_active()));
    const int fine = learn(&j, &r, &all);
    printf("weights after step %llu: hash %016llx\n", (unsigned long long)r.step,
           (unsigned long long)hash_of(HASH_BEGIN, r.weights, r.floats * sizeof(float)));
    team_end(&all);
    training_end(&r);
    train_job_end(&j);
    return !fine;
}
