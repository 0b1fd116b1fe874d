/* A training run: its state, which a checkpoint stores, and its steps. SPDX-License-Identifier: MIT */
#ifndef TRAINING_H
#define TRAINING_H

#include "adamw.h"
#include "text.h"

/* What a run is, apart from its text: nothing else decides the bits. Written as it is, little endian. */
typedef struct plan {
    shape shape;
    uint32_t sequences; /* windows of `context` bytes a step */
    uint64_t seed, steps, warmup;
    float rate, decay, beta1, beta2, eps, most_norm;
    uint64_t text_hash; /* of what is learned: a run that is resumed with another text is refused */
} plan;
_Static_assert(sizeof(plan) == 88, "a plan has no gaps, so that a checkpoint of any compiler is one of all");

typedef struct training {
    plan plan;
    uint64_t step; /* steps done */
    size_t floats; /* of each array below */
    float *weights, *gradients, *m, *v;
    double *sums;
    tensors w, d;
    minibatch batch;
    int32_t *in, *out;
} training;

/* Weights drawn, or where `from` is not NULL those of a checkpoint. Ends the program with a sentence where that cannot be. */
void training_begin(training *r, const plan *p);
void training_end(training *r);

/* One step on the text. Returns the mean loss in bits a byte, before the step. */
double training_step(training *r, const text *t, team *all);

/* A checkpoint holds the plan, the weights and AdamW's means. Written beside, then renamed: one that is interrupted leaves the
 * old one. 1, or 0 with a sentence on stderr. */
int checkpoint_write(const training *r, const char *path);
int checkpoint_read_plan(const char *path, plan *p, uint64_t *step);
int checkpoint_read(training *r, const char *path);
/* The weights alone: [lay_out] floats, to be freed; or NULL with a sentence on stderr. */
float *checkpoint_weights(const char *path, shape *s);

/* A curve: rows of a CSV file, and a drawing of it. */
typedef struct curve {
    size_t points, room;
    struct {
        uint64_t step;
        double learned, unseen; /* bits a byte; unseen below 0: not measured there */
    } * at;
} curve;

void curve_add(curve *c, uint64_t step, double learned, double unseen);
int curve_write_csv(const curve *c, const char *path);
int curve_write_svg(const curve *c, const char *path);

#endif
