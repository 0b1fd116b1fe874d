/* The commands, and functions that read their options. SPDX-License-Identifier: MIT */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "training.h"

int command_train(int argc, char **argv);
int command_generate(int argc, char **argv);
int command_check(void);

/* The byte with the largest logit, of equals the first. */
int32_t likeliest(const float *logits);

/* An option's number, or the end of the program with a sentence. */
uint64_t option_count(const char *name, const char *value, uint64_t least, uint64_t most);
float option_number(const char *name, const char *value, float least, float most);
int default_threads(void);

#endif
