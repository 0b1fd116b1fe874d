/* nrg-two-builds: two builds of the library in one program, called by turns. nrg-bench is linked with one of them, and two runs
 * of it are two moments of a machine.
 *
 *   nrg-two-builds A.so B.so [PATH [SECONDS]]     PATH: avx2, ...; without it, the best. SECONDS: of a line (0.3); 0: nothing is
 *                                                 measured, and every call is made once by either
 *
 * Two files, or the loader takes them for one. scripts/two-builds.sh makes them. Fails where their bits
 * differ; both have to have the structs of the headers that this was compiled with.
 *
 * SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nrg/nrg.h"

#include "measure.h"

#define FUNCTIONS(X)                                                                                                             \
    X(nrg_isa_active)                                                                                                            \
    X(nrg_isa_from_name)                                                                                                         \
    X(nrg_isa_name)                                                                                                              \
    X(nrg_isa_set)                                                                                                               \
    X(nrg_status_string)                                                                                                         \
    X(nrg_version)                                                                                                               \
    X(nrg_activation_forward)                                                                                                    \
    X(nrg_layer_norm_f32)                                                                                                        \
    X(nrg_norm_backward)                                                                                                         \
    X(nrg_norm_forward)                                                                                                          \
    X(nrg_quantize)                                                                                                              \
    X(nrg_rms_norm_f32)                                                                                                          \
    X(nrg_rope)                                                                                                                  \
    X(nrg_softmax_forward)

typedef struct build {
#define FIELD(name) __typeof__(&(name)) name;
    FUNCTIONS(FIELD)
#undef FIELD
} build;

enum { HEAD_DIM = 128, MOST = 1024 * 4096 };

/* What both builds work on. Tensors are of any dtype: floats of so few bits that both their halves are numbers as bf16, the lower
 * one 0. */
static struct memory {
    float x[MOST], y[MOST], w[MOST / 64];
    float table[MOST / 16];    /* cos and sin of heads */
    float o[MOST], of_a[MOST]; /* results: B's or anybody's, and A's */
} * m;

typedef struct job {
    const build *of;
    nrg_dtype dtype;
    size_t rows, dim;
} job;

static nrg_status rms_norm(const job *j) { return j->of->nrg_rms_norm_f32(j->rows, j->dim, m->x, m->w, m->o, 1e-6); }

static nrg_status layer_norm(const job *j) { return j->of->nrg_layer_norm_f32(j->rows, j->dim, m->x, m->w, m->w, m->o, 1e-6); }

static nrg_status add_rms_norm(const job *j)
{
    nrg_norm_spec spec = nrg_rms_norm_spec(j->dim, 1e-6);
    nrg_norm_args args = nrg_norm_args_init(j->rows, m->x, m->o);
    spec.dtype = j->dtype;
    args.y = m->y;
    args.w = m->w;
    return j->of->nrg_norm_forward(&spec, &args, 0, 1);
}

static nrg_status norm_backward(const job *j)
{
    nrg_norm_spec spec = nrg_rms_norm_spec(j->dim, 1e-6);
    nrg_norm_backward_args args = nrg_norm_backward_args_init(j->rows, m->x, m->y, m->o);
    spec.dtype = j->dtype;
    args.w = m->w;
    return j->of->nrg_norm_backward(&spec, &args, 0, 1);
}

static nrg_status silu(const job *j)
{
    return j->of->nrg_activation_forward(NRG_ACT_SILU, j->dtype, j->rows * j->dim, m->x, m->o, 0, 1);
}

static nrg_status softmax(const job *j)
{
    const nrg_softmax_args args = nrg_softmax_args_init(j->dtype, 1, 1, j->rows, j->dim, m->x, m->o);
    return j->of->nrg_softmax_forward(&args, 0, 1);
}

static nrg_status q8_0(const job *j)
{
    const nrg_quantize_args args = nrg_quantize_args_init(NRG_QUANT_Q8_0, j->dtype, j->rows, j->dim, m->x, m->o, NULL);
    return j->of->nrg_quantize(&args, 0, 1);
}

/* Heads of q beside a fourth of them of k, each with strides of four levels: most of what a call's checks have to look at. */
static nrg_status rope(const job *j)
{
    const nrg_rope_spec spec = nrg_rope_spec_init(HEAD_DIM, NRG_ROPE_NEOX, 10000);
    nrg_rope_args args = nrg_rope_args_init(j->rows, HEAD_DIM, m->table);
    args.dtype = j->dtype;
    args.q_heads = j->dim / HEAD_DIM;
    args.k_heads = (args.q_heads + 3) / 4;
    args.q = m->x;
    args.k = m->y;
    args.q_o = m->o;
    args.k_o = m->o + MOST / 2;
    args.q_token_stride = args.q_o_token_stride = j->dim * sizeof(float);
    return j->of->nrg_rope(&spec, &args, 0, 1);
}

static const struct op {
    const char *name;
    nrg_status (*call)(const job *j);
    int is_f32; /* alone */
} ops[] = {{"rms_norm", rms_norm, 1},
           {"layer_norm", layer_norm, 1},
           {"add+rms", add_rms_norm, 0},
           {"rms backward", norm_backward, 0},
           {"silu", silu, 0},
           {"softmax", softmax, 0},
           {"q8_0", q8_0, 0},
           {"rope", rope, 0}};

/* Of some nanoseconds, where the checks of a call count; in L1; in L2; beyond it. */
static const size_t shapes[][2] = {{1, 128}, {1, 4096}, {16, 2048}, {512, 4096}};

enum { OPS = sizeof ops / sizeof *ops, SHAPES = sizeof shapes / sizeof *shapes, LINES = 2 * OPS * SHAPES };

typedef struct work {
    const struct op *op;
    job job;
} work;

static void run(void *ctx, unsigned placement, size_t calls)
{
    const work *w = ctx;
    (void)placement;
    for (; calls; calls--)
        (void)w->op->call(&w->job);
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "nrg-two-builds: %s: %s\n", what, why);
    exit(1);
}

static void load(build *b, const char *file, const char *path)
{
    char *whole = realpath(file, NULL); /* a name without a slash is looked for elsewhere */
    void *library = dlopen(whole ? whole : file, RTLD_NOW | RTLD_LOCAL);
    free(whole);
    if (!library)
        die(file, dlerror());
#define FIND(name)                                                                                                               \
    {                                                                                                                            \
        void *found = dlsym(library, #name);                                                                                     \
        if (!found)                                                                                                              \
            die(file, "no " #name);                                                                                              \
        memcpy(&b->name, &found, sizeof found);                                                                                  \
    }
    FUNCTIONS(FIND)
#undef FIND
    nrg_isa isa;
    if (path && (b->nrg_isa_from_name(path, &isa) != NRG_OK || b->nrg_isa_set(isa) != NRG_OK))
        die(file, "has no such path, or this CPU does not");
}

/* Both calls once, into the same memory, for their bits. */
static int are_equal(const work works[2])
{
    for (int i = 0; i < 2; i++) {
        memset(m->o, 0x55, sizeof m->o);
        const nrg_status status = works[i].op->call(&works[i].job);
        if (status != NRG_OK)
            die(works[i].op->name, works[i].job.of->nrg_status_string(status));
        if (i == 0)
            memcpy(m->of_a, m->o, sizeof m->o);
    }
    return memcmp(m->of_a, m->o, sizeof m->o) == 0;
}

typedef struct sums {
    double ratio[LINES];
    size_t lines, unequal;
} sums;

static void line(sums *s, const struct op *op, const build *builds, nrg_dtype dtype, const size_t shape[2], double seconds)
{
    const char *type = dtype == NRG_F32 ? "f32" : "bf16";
    work works[2];
    bench_contender c[2] = {{.run = run, .ctx = &works[0]}, {.run = run, .ctx = &works[1]}};
    for (int i = 0; i < 2; i++)
        works[i] = (work){op, {&builds[i], dtype, shape[0], shape[1]}};
    const int equal = are_equal(works);
    s->unequal += !equal;
    printf("%-12s  %-4s  %3zu x %-5zu", op->name, type, shape[0], shape[1]);
    if (seconds > 0) {
        bench_measure(c, 2, seconds, 3 * shape[0] * shape[1] * sizeof(float));
        s->ratio[s->lines] = bench_ratio(&c[1], &c[0]);
        printf("  %11.1f  %11.1f  %6.3f", c[0].ns, c[1].ns, s->ratio[s->lines]);
    }
    printf("%s\n", equal ? "" : "  other bits");
    fflush(stdout);
    s->lines++;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 5) {
        fputs("usage: nrg-two-builds A.so B.so [PATH [SECONDS]]\n", stderr);
        return 2;
    }
    build builds[2];
    for (int i = 0; i < 2; i++)
        load(&builds[i], argv[1 + i], argc > 3 ? argv[3] : NULL);
    const nrg_isa path = builds[0].nrg_isa_active();
    if (builds[1].nrg_isa_active() != path)
        die(argv[2], "goes by another path: name one that both have");
    double seconds = 0.3;
    if (argc > 4) {
        char *end;
        seconds = strtod(argv[4], &end);
        if (end == argv[4] || *end || !(seconds >= 0))
            die(argv[4], "no seconds");
    }
    m = aligned_alloc(64, sizeof *m);
    if (!m)
        die("memory", "not enough");
    float *all = (float *)m;
    for (size_t i = 0; i < sizeof *m / sizeof *all; i++)
        all[i] = (float)((int)((uint32_t)i * 2654435761u >> 24) - 128) / 64;

    printf("%s: A %s, B %s\n%-12s  %-4s  %-11s  %11s  %11s  %6s\n", builds[0].nrg_isa_name(path), builds[0].nrg_version(),
           builds[1].nrg_version(), "", "", "", "A, ns", "B, ns", "B/A");
    sums s = {.lines = 0};
    for (const struct op *op = ops; op < ops + OPS; op++)
        for (int half = 0; half <= !op->is_f32; half++)
            for (size_t i = 0; i < SHAPES; i++)
                line(&s, op, builds, half ? NRG_BF16 : NRG_F32, shapes[i], seconds);
    if (seconds > 0) {
        qsort(s.ratio, s.lines, sizeof *s.ratio, by_value);
        printf("%zu lines: %.3f to %.3f, %.3f in the median\n", s.lines, s.ratio[0], s.ratio[s.lines - 1],
               bench_median(s.ratio, s.lines));
    }
    printf("%zu of %zu have other bits\n", s.unequal, s.lines);
    free(m);
    return s.unequal != 0;
}
