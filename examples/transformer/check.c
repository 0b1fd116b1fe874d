/* transformer check: trains a small model for several steps, then evaluates a prompt.
 *
 * It does this on every path that the CPU supports, with 1, 2 and 7 threads, with the prompt in one batch and byte by byte. The
 * weights and the logits must have the hash below, for every compiler and CPU.
 *
 * SPDX-License-Identifier: MIT */
#include <nrg/nrg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

/* Of version 1 of the numbers (docs/reproducibility.md). */
static const uint64_t weights_expected = 0x514831d8895188c4, logits_expected = 0xaea2ffeba1ef0261;

/* Sizes that are no multiple of a vector, of a panel or of a tile, so that their ends are looked at too. */
static const plan tiny = {.shape = {.layers = 2, .dim = 52, .heads = 6, .kv_heads = 2, .head = 10, .ff = 276, .context = 50},
                          .sequences = 2,
                          .seed = 7,
                          .steps = 4,
                          .warmup = 2,
                          .rate = 5e-3f,
                          .decay = 0.1f,
                          .beta1 = 0.9f,
                          .beta2 = 0.98f,
                          .eps = 1e-8f,
                          .most_norm = 1};

static const char learned[] =
    "A sum of floats depends on its order, and a matrix product is nothing but sums. Whoever wants one result on every machine "
    "has to say in which order each sum is taken, and then to keep to it: with vectors of four, eight or sixteen lanes, with one "
    "thread or with many, token by token or in a batch. What is written here is learned by a small model, so that somebody can "
    "see it kept.\n";
static const char prompt[] = "A sum of floats has an order, of lanes and threads and batches: ";

typedef struct hashes {
    uint64_t weights, logits;
} hashes;

/* Of the prompt, and of eight bytes that follow it. */
static uint64_t ask(const training *r, team *all, size_t at_once)
{
    const size_t length = sizeof prompt - 1, more = 8;
    int32_t tokens[sizeof prompt];
    for (size_t i = 0; i < length; i++)
        tokens[i] = (unsigned char)prompt[i];
    speaker *p = speaker_begin(&r->plan.shape, length + more);
    uint64_t hash = HASH_BEGIN;
    const float *last = NULL;
    for (size_t i = 0; i < length; i += at_once) {
        const size_t count = length - i < at_once ? length - i : at_once;
        const float *logits = speaker_hear(p, &r->w, tokens + i, count, all);
        hash = hash_of(hash, logits, count * VOCABULARY * sizeof *logits);
        last = logits + (count - 1) * VOCABULARY;
    }
    for (size_t i = 0; i < more; i++) {
        const int32_t next = likeliest(last);
        last = speaker_hear(p, &r->w, &next, 1, all);
        hash = hash_of(hash, last, VOCABULARY * sizeof *last);
    }
    speaker_end(p);
    return hash;
}

static hashes run(int nth, size_t at_once)
{
    training r;
    team all;
    const text t = {(unsigned char *)(uintptr_t)learned, sizeof learned - 1};
    training_begin(&r, &tiny);
    team_begin(&all, nth);
    while (r.step < tiny.steps)
        training_step(&r, &t, &all);
    const hashes h = {hash_of(HASH_BEGIN, r.weights, r.floats * sizeof *r.weights), ask(&r, &all, at_once)};
    team_end(&all);
    training_end(&r);
    return h;
}

int command_check(void)
{
    static const struct {
        int nth;
        size_t at_once;
    } ways[] = {{1, sizeof prompt}, {2, 1}, {7, 13}};
    int wrong = 0;
    for (int isa = 0; nrg_isa_name((nrg_isa)isa); isa++) {
        if (!nrg_isa_supported((nrg_isa)isa))
            continue;
        require(nrg_isa_set((nrg_isa)isa), "path");
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            const hashes h = run(ways[i].nth, ways[i].at_once);
            const int differ = h.weights != weights_expected || h.logits != logits_expected;
            printf("%-8s %d threads, prompt by %2zu: weights %016llx, logits %016llx%s\n", nrg_isa_name((nrg_isa)isa),
                   ways[i].nth, ways[i].at_once, (unsigned long long)h.weights, (unsigned long long)h.logits,
                   differ ? ": OTHER BITS" : "");
            wrong |= differ;
        }
    }
    return wrong;
}
