/* transformer train. SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <nrg/nrg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"

enum { MOST_TEXTS = 64 };

typedef struct job {
    plan plan;
    const char *out, *resume, *curve, *dump;
    uint64_t until, save, every;
    int threads;
    text learned, unseen[MOST_TEXTS];
    size_t unseen_count;
} job;

static const plan usual = {.shape = {.layers = 4, .dim = 192, .heads = 6, .kv_heads = 2, .head = 32, .ff = 512, .context = 256},
                           .sequences = 8,
                           .seed = 1,
                           .steps = 3000,
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

static void add_unseen(job *j, const char *path)
{
    if (j->unseen_count == MOST_TEXTS) {
        fprintf(stderr, "transformer: --unseen: at most %d texts\n", MOST_TEXTS);
        exit(2);
    }
    text_add(&j->unseen[j->unseen_count++], path);
}

static void read_options(job *j, int argc, char **argv)
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
static void prepare(job *j, int argc, char **argv)
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

/* Of all unseen texts together; below 0 where there are none. */
static double measure(const job *j, const training *r, team *all)
{
    if (j->unseen_count == 0)
        return -1;
    minibatch b;
    batch_begin(&b, &r->plan.shape, r->plan.sequences, r->plan.shape.context, 0);
    double bits = 0, bytes = 0;
    for (size_t i = 0; i < j->unseen_count; i++) {
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

static void report(const training *r, double learned, double unseen, double began, uint64_t first)
{
    const double seconds = now() - began, steps = (double)(r->step - first);
    const double left = seconds / steps * (double)(r->plan.steps - r->step);
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

static int learn(const job *j, training *r, team *all)
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
            report(r, mean, unseen, began, first);
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
    static job j; /* static for its size */
    j = (job){.plan = usual, .out = "transformer.ckpt", .save = 500, .every = 250, .threads = default_threads()};
    read_options(&j, argc, argv);
    prepare(&j, argc, argv);
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
    free(j.learned.at);
    for (size_t i = 0; i < j.unseen_count; i++)
        free(j.unseen[i].at);
    return !fine;
}
