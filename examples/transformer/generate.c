/* transformer generate. SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <nrg/nrg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

typedef struct request {
    uint64_t bytes, seed;
    float temperature;
    int threads, one_by_one;
} request;

int32_t likeliest(const float *logits)
{
    int32_t best = 0;
    for (int32_t i = 1; i < VOCABULARY; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

/* The nth draw: where a number from 0 to 1 falls in the sum of the chances. */
static int32_t drawn_byte(const float *logits, const request *of, uint64_t n)
{
    if (of->temperature == 0)
        return likeliest(logits);
    float chances[VOCABULARY];
    nrg_softmax_args args = nrg_softmax_args_init(NRG_F32, 1, 1, 1, VOCABULARY, logits, chances);
    args.scale = 1 / of->temperature;
    require(nrg_softmax_forward(&args, 0, 1), "softmax of logits");
    double left = (double)(drawn(of->seed, n) >> 11) * 0x1p-53;
    for (int32_t i = 0; i < VOCABULARY; i++) {
        left -= (double)chances[i];
        if (left < 0)
            return i;
    }
    return likeliest(logits); /* what roundings left over */
}

static void speak(speaker *p, const tensors *w, const char *prompt, const request *of, team *all)
{
    const size_t length = strlen(prompt);
    int32_t *tokens = malloc((length + 1) * sizeof *tokens);
    if (tokens == NULL)
        exit(1);
    tokens[0] = '\n'; /* what texts begin after, in training */
    for (size_t i = 0; i < length; i++)
        tokens[i + 1] = (unsigned char)prompt[i];
    uint64_t hash = HASH_BEGIN;
    const float *logits = NULL;
    if (of->one_by_one)
        for (size_t i = 0; i <= length; i++) {
            logits = speaker_hear(p, w, tokens + i, 1, all);
            hash = hash_of(hash, logits, VOCABULARY * sizeof *logits);
        }
    else {
        logits = speaker_hear(p, w, tokens, length + 1, all);
        hash = hash_of(hash, logits, (length + 1) * VOCABULARY * sizeof *logits);
        logits += length * VOCABULARY;
    }
    fputs(prompt, stdout);
    for (uint64_t n = 0; n < of->bytes; n++) {
        const int32_t next = drawn_byte(logits, of, n);
        putchar(next);
        fflush(stdout);
        logits = speaker_hear(p, w, &next, 1, all);
        hash = hash_of(hash, logits, VOCABULARY * sizeof *logits);
    }
    printf("\nlogits of %zu bytes: hash %016llx\n", length + 1 + (size_t)of->bytes, (unsigned long long)hash);
    free(tokens);
}

int command_generate(int argc, char **argv)
{
    static const struct option options[] = {{"bytes", 1, NULL, 'n'},   {"temperature", 1, NULL, 'T'}, {"seed", 1, NULL, 's'},
                                            {"threads", 1, NULL, 't'}, {"one-by-one", 0, NULL, '1'},  {NULL, 0, NULL, 0}};
    request of = {.bytes = 400, .seed = 1, .temperature = 0.7f, .threads = default_threads()};
    int index = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, &index)) != -1;)
        switch (option) {
        case 'n':
            of.bytes = option_count("bytes", optarg, 0, 100000);
            break;
        case 'T':
            of.temperature = option_number("temperature", optarg, 0, 100);
            break;
        case 's':
            of.seed = option_count("seed", optarg, 0, UINT64_MAX);
            break;
        case 't':
            of.threads = (int)option_count("threads", optarg, 1, MOST_THREADS);
            break;
        case '1':
            of.one_by_one = 1;
            break;
        default:
            return 2;
        }
    if (argc - optind != 2) {
        fprintf(stderr, "transformer: generate CHECKPOINT PROMPT [options]\n");
        return 2;
    }
    shape s;
    float *weights = checkpoint_weights(argv[optind], &s);
    if (weights == NULL)
        return 1;
    tensors w;
    lay_out(&s, weights, &w);
    team all;
    team_begin(&all, of.threads);
    speaker *p = speaker_begin(&s, strlen(argv[optind + 1]) + 1 + (size_t)of.bytes);
    speak(p, &w, argv[optind + 1], &of, &all);
    speaker_end(p);
    team_end(&all);
    free(weights);
    return 0;
}
