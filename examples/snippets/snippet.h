/* Functions that the snippets share: they draw data, and compare a result with one from a different computation.
 *
 * A snippet is the lines between the two comments `snippet`. docs/howto/snippets.md shows them, and tests/snippets_test.py counts
 * them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef SNIPPET_H
#define SNIPPET_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nrg/nrg.h>

/* Numbers from -2 to 2. */
static inline void draw(float *x, size_t count)
{
    static uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)((int)(state >> 16) - 32768) * 0x1p-14f;
    }
}

static inline float of_bf16(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Cuts off, which is one way to get numbers in bf16. */
static inline void to_bf16(uint16_t *to, const float *x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        to[i] = (uint16_t)(bits >> 16);
    }
}

/* Ends the program unless |got - expected| is at most `tolerance`. */
static inline void compare(const char *what, size_t i, double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance)) {
        fprintf(stderr, "%s %zu: expected %.9g, got %.9g\n", what, i, expected, got);
        exit(EXIT_FAILURE);
    }
}

static inline void require(nrg_status status)
{
    if (status != NRG_OK) {
        fprintf(stderr, "%s\n", nrg_status_string(status));
        exit(EXIT_FAILURE);
    }
}

#endif
