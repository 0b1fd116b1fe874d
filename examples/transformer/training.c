/* A training step. See training.h. SPDX-License-Identifier: MIT */
#include "training.h"

#include <stdio.h>
#include <stdlib.h>

static void *reserve(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (p == NULL) {
        fprintf(stderr, "transformer: no memory for %zu numbers\n", n);
        exit(1);
    }
    return p;
}

void training_begin(training *r, const plan *p)
{
    *r = (training){.plan = *p, .floats = lay_out(&p->shape, NULL, NULL)};
    r->weights = reserve(r->floats, sizeof(float));
    r->gradients = reserve(r->floats, sizeof(float));
    r->m = reserve(r->floats, sizeof(float));
    r->v = reserve(r->floats, sizeof(float));
    r->sums = reserve(adamw_pieces(r->floats), sizeof(double));
    lay_out(&p->shape, r->weights, &r->w);
    lay_out(&p->shape, r->gradients, &r->d);
    draw_weights(&p->shape, r->weights, p->seed);
    batch_begin(&r->batch, &p->shape, p->sequences, p->shape.context, 1);
    r->in = reserve(r->batch.rows, sizeof *r->in);
    r->out = reserve(r->batch.rows, sizeof *r->out);
}

void training_end(training *r)
{
    batch_end(&r->batch);
    free(r->weights);
    free(r->gradients);
    free(r->m);
    free(r->v);
    free(r->sums);
    free(r->in);
    free(r->out);
}

/* Rises over the first steps, then falls to a twentieth, both along lines. */
static float rate_at(const plan *p, uint64_t step)
{
    if (step <= p->warmup)
        return p->rate * (float)step / (float)p->warmup;
    return p->rate * (1 - 0.95f * (float)(step - p->warmup) / (float)(p->steps - p->warmup));
}

static void work(void *data, team *t, int ith)
{
    training *r = data;
    const plan *p = &r->plan;
    const adamw a = {rate_at(p, r->step), p->decay, p->beta1, p->beta2, p->eps, p->most_norm, r->step};
    forward(&r->batch, &r->w, t, ith);
    backward(&r->batch, &r->w, &r->d, t, ith);
    adamw_step(&a, &p->shape, r->weights, r->gradients, r->m, r->v, r->sums, t, ith);
}

double training_step(training *r, const text *t, team *all)
{
    minibatch *b = &r->batch;
    r->step++;
    text_draw(t, r->plan.seed, r->step, b->sequences, b->length, r->in, r->out);
    b->in = r->in;
    b->out = r->out;
    for (size_t i = 0; i < b->rows; i++)
        b->d_loss[i] = 1 / (float)b->rows;
    team_run(all, work, r);
    double nats = 0;
    for (size_t i = 0; i < b->rows; i++)
        nats += (double)b->loss[i];
    return nats / (double)b->rows * 1.4426950408889634;
}
