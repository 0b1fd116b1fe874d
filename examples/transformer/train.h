/* The settings of transformer train. SPDX-License-Identifier: MIT */
#ifndef TRAIN_H
#define TRAIN_H

#include "training.h"

enum { MOST_TEXTS = 64 };

typedef struct train_job {
    plan plan;
    const char *out, *resume, *curve, *dump;
    uint64_t until, save, every;
    int threads;
    text learned, unseen[MOST_TEXTS];
    size_t unseen_count;
} train_job;

/* The command line, its texts, and with --resume the plan of the checkpoint. Ends the program with a sentence where something is
 * wrong. */
void train_job_read(train_job *j, int argc, char **argv);
void train_job_end(train_job *j);

#endif
