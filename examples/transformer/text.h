/* Texts of bytes, and random samples from them. SPDX-License-Identifier: MIT */
#ifndef TEXT_H
#define TEXT_H

#include "model.h"

typedef struct text {
    unsigned char *at;
    size_t size;
} text;

/* Adds a file; ends the program with a sentence where it cannot be read. */
void text_add(text *t, const char *path);

/* The licences that Debian has, but for those that are for validation: 1, or 0 where there are none. */
int text_default(text *train, text valid[], size_t *valids);

/* Windows of `length` bytes and what follows each, drawn for a step. */
void text_draw(const text *t, uint64_t seed, uint64_t step, size_t sequences, size_t length, int32_t *in, int32_t *out);

/* Bits a byte of the whole text: windows that begin every half of their length, of which the last half counts (of the first one
 * all); the byte before the text is a line feed. b: a batch without gradients; every byte of the text is predicted once. */
double text_bits(const text *t, minibatch *b, const tensors *w, team *all, int32_t *in, int32_t *out);

#endif
