/* The options of transformer train. See train.h. SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "train.h"

static const plan usual = {.shape = {.layers = 4, .dim = 192, .heads = 6, .kv_heads = 2, .head = 32, .ff = 512, .context = 256},
                           .sequences = 8,
                           .seed = 1,
                           .steps = 500,
                           .warmup = 100,
                           .rate = 3e-3f,
                           .decay = 0.1f,
                           .beta1 = 0.9f,
                           .beta2 = 0.98f,
                           .eps = 1e-8f,
                           .most_norm = 1};

static uint32_t small(const char *name, const char *value, uint32_t least, uint32_t most)
{
    return (uint32_t)option_count(name, value, least, most);
}

static void add_unseen(train_job *j, const char *path)
{
    if (j->unseen_count == MOST_TEXTS) {
        fprintf(stderr, "transformer: --unseen: at most %d texts\n", MOST_TEXTS);
        exit(2);
    }
    text_add(&j->unseen[j->unseen_count++], path);
}

static void read_options(train_job *j, int argc, char **argv)
{
    static const struct option options[] = {
        {"out", 1, NULL, 'o'},     {"resume", 1, NULL, 'r'}, {"unseen", 1, NULL, 'u'}, {"steps", 1, NULL, 'n'},
        {"until", 1, NULL, 'U'},   {"curve", 1, NULL, 'c'},  {"every", 1, NULL, 'e'},  {"save", 1, NULL, 's'},
        {"threads", 1, NULL, 't'}, {"layers", 1, NULL, 1},   {"dim", 1, NULL, 2},      {"heads", 1, NULL, 3},
        {"kv-heads", 1, NULL, 4},  {"head", 1, NULL, 5},     {"ff", 1, NULL, 6},       {"context", 1, NULL, 7},
        {"sequences", 1, NULL, 8}, {"rate", 1, NULL, 9},     {"decay", 1, NULL, 10},   {"seed", 1, NULL, 11},
        {"warmup", 1, NULL, 12},   {"dump", 1, NULL, 13},    {NULL, 0, NULL, 0}};
    shape *s = &j->plan.shape;
    int index = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, &index)) != -1;) {
        const char *name = option == '?' ? NULL : options[index].name;
        switch (option) {
        case 'o':
            j->out = optarg;
            break;
        case 'r':
            j->resume = optarg;
            break;
        case 'u':
            add_unseen(j, optarg);
            break;
        case 'n':
            j->plan.steps = option_count(name, optarg, 1, 100000000);
            break;
        case 'U':
            j->until = option_count(name, optarg, 1, 100000000);
            break;
        case 'c':
            j->curve = optarg;
            break;
        case 'e':
            j->every = option_count(name, optarg, 1, 100000000);
            break;
        case 's':
            j->save = option_count(name, optarg, 1, 100000000);
            break;
        case 't':
            j->threads = (int)option_count(name, optarg, 1, MOST_THREADS);
            break;
        case 1:
            s->layers = small(name, optarg, 1, MOST_LAYERS);
            break;
        case 2:
            s->dim = small(name, optarg, 1, 8192);
            break;
        case 3:
            s->heads = small(name, optarg, 1, 256);
            break;
        case 4:
            s->kv_heads = small(name, optarg, 1, 256);
            break;
        case 5:
            s->head = small(name, optarg, 2, 1024);
            break;
        case 6:
            s->ff = small(name, optarg, 1, 32768);
            break;
        case 7:
            s->context = small(name, optarg, 2, 65536);
            break;
        case 8:
            j->plan.sequences = small(name, optarg, 1, 4096);
            break;
        case 9:
            j->plan.rate = option_number(name, optarg, 0, 1);
            break;
        case 10:
            j->plan.decay = option_number(name, optarg, 0, 10);
            break;
        case 11:
            j->plan.seed = option_count(name, optarg, 0, UINT64_MAX);
            break;
        case 12:
            j->plan.warmup = option_count(name, optarg, 1, 1000000);
            break;
        case 13:
            j->dump = optarg;
            break;
        default:
            exit(2);
        }
    }
}

/* Texts, and with --resume the plan of the checkpoint in place of the options'. */
static void prepare(train_job *j, int argc, char **argv)
{
    for (int i = optind; i < argc; i++)
        text_add(&j->learned, argv[i]);
    if (optind == argc && (j->unseen_count > 0 || !text_default(&j->learned, j->unseen, &j->unseen_count))) {
        fprintf(stderr, "transformer: no text to learn: name files\n");
        exit(2);
    }
    const uint64_t hash = hash_of(HASH_BEGIN, j->learned.at, j->learned.size);
    uint64_t done = 0;
    if (j->resume != NULL && !checkpoint_read_plan(j->resume, &j->plan, &done))
        exit(1);
    if (j->resume != NULL && j->plan.text_hash != hash) {
        fprintf(stderr, "transformer: %s: was learning another text\n", j->resume);
        exit(1);
    }
    j->plan.text_hash = hash;
    if (shape_complaint(&j->plan.shape) != NULL) {
        fprintf(stderr, "transformer: %s\n", shape_complaint(&j->plan.shape));
        exit(2);
    }
    if (j->learned.size <= j->plan.shape.context + 1) {
        fprintf(stderr, "transformer: %zu bytes of text, and a context of %u\n", j->learned.size, j->plan.shape.context);
        exit(2);
    }
    if (j->until == 0 || j->until > j->plan.steps)
        j->until = j->plan.steps;
}

void train_job_read(train_job *j, int argc, char **argv)
{
    *j = (train_job){.plan = usual, .out = "transformer.ckpt", .save = 500, .every = 100, .threads = default_threads()};
    read_options(j, argc, argv);
    prepare(j, argc, argv);
}

void train_job_end(train_job *j)
{
    free(j->learned.at);
    for (size_t i = 0; i < j->unseen_count; i++)
        free(j->unseen[i].at);
}
