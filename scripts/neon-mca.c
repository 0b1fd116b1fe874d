/* What scripts/neon-mca.sh runs under qemu to see which instructions a loop executes: one row through the sums and the apply
 * step.
 *
 *     neon-mca CASE steps  elements a turn: of the sums, of apply
 *     neon-mca CASE        one row through the walk that all rows of its kind can take
 *
 * Built with NEON_MCA_CONSTANT, the row goes through the same loops with the case's options as constants.
 *
 * SPDX-License-Identifier: MIT */
#include "../src/neon/vec.h"

#include "../src/template/norm/norm_row.h"

#ifdef NEON_MCA_CONSTANT
#define options_in_register(how, may) ((how) & (may)) /* the function of this name hides even a constant */
#endif

#include "../src/template/norm/norm.h"

#include <stdio.h>

enum { DIM = 4096, BYTES = DIM * 4 };

static _Alignas(64) char x[BYTES], y[BYTES], w[BYTES], b[BYTES], r[BYTES], o[BYTES];

/* Where the sums of a constant case go. */
typedef struct case_sums {
    norm_lanes lanes;
    fast_blocks blocks;
    vd8 t, tt;
    float pilot;
} case_sums;

typedef struct test_case {
    const char *name;
    nrg_dtype dtype;
    int exact, centred, add, bias;
    void (*sum)(case_sums *, const norm_row *, size_t);
    void (*apply)(const some_scalars *, const norm_row *, size_t);
} test_case;

#define CASES                                                                                                                    \
    CASE(exact_f32_rms, NRG_F32, 1, 0, 0, 0)                                                                                     \
    CASE(exact_f32_add_rms, NRG_F32, 1, 0, 1, 0)                                                                                 \
    CASE(exact_f32_layer, NRG_F32, 1, 1, 0, 1)                                                                                   \
    CASE(fast_f32_rms, NRG_F32, 0, 0, 0, 0)                                                                                      \
    CASE(fast_f32_add_rms, NRG_F32, 0, 0, 1, 0)                                                                                  \
    CASE(fast_f32_layer, NRG_F32, 0, 1, 0, 1)                                                                                    \
    CASE(fast_bf16_rms, NRG_BF16, 0, 0, 0, 0)                                                                                    \
    CASE(fast_bf16_add_rms, NRG_BF16, 0, 0, 1, 0)                                                                                \
    CASE(fast_bf16_layer, NRG_BF16, 0, 1, 0, 1)

/* The loops of the exact grade are those of norm_exact_loops.h, the others' those of norm_loops.h: which vectors they take at
 * once follows from the options there may be. */

NRG_INLINE unsigned sum_may(unsigned how, int exact)
{
    if (exact)
        return NORM_ANY;
    return how & NORM_FIRST ? NORM_RESIDUAL : NORM_PREFETCH;
}

NRG_INLINE int apply_vectors(unsigned how, nrg_dtype D)
{
    return how & (NORM_READ_R | NORM_ADD_Y) && D != NRG_F32 ? V_FAST_ANY : fast_apply_vectors(D);
}

NRG_INLINE unsigned options_of_case(nrg_dtype D, int centred, int add)
{
    return (centred ? NORM_CENTRED : 0) | (add ? NORM_ADD_Y | NORM_STORE_R | NORM_READ_R : 0) |
           (D == NRG_F32 ? NORM_Y_F32 | NORM_R_F32 | NORM_W_F32 : 0);
}

#ifdef NEON_MCA_CONSTANT

/* The row of a case: what it has is not NULL. */
NRG_INLINE norm_row row_of_case(const norm_row *given, int bias)
{
    norm_row row = *given;
    if (!row.w || (bias && !row.b))
        __builtin_unreachable();
    row.b = bias ? row.b : NULL;
    return row;
}

NRG_INLINE void constant_sum(case_sums *sums, const norm_row *given, size_t dim, nrg_dtype D, int exact, int centred, int add,
                             int bias)
{
    const norm_row row = row_of_case(given, bias);
    const norm_options opt = {.dim = dim, .how = options_of_case(D, centred, add), .fast = !exact};
    const norm_part part = {.opt = &opt, .row = &row, .count = 1, .fold = 1, .end = dim};
    const unsigned may = sum_may(opt.how, exact);
    if (exact)
        sum_rows(&sums->lanes, &sums->t, &sums->tt, &part, may, D, centred);
    else
        fast_rows(&sums->blocks, &sums->pilot, &sums->t, &sums->tt, &part, may, D, centred);
}

NRG_INLINE void constant_apply(const some_scalars *s, const norm_row *given, size_t dim, nrg_dtype D, int exact, int centred,
                               int add, int bias)
{
    const norm_row row = row_of_case(given, bias);
    const norm_options opt = {.dim = dim, .how = options_of_case(D, centred, add), .fast = !exact};
    const norm_part part = {.opt = &opt, .row = &row, .count = 1, .end = dim};
    if (exact)
        apply_part(&part, &s->exact, D);
    else
        fast_apply_part(&part, &s->fast, apply_vectors(opt.how, D), NORM_ANY, D);
}

#define CASE(name, D, exact, centred, add, bias)                                                                                 \
    static __attribute__((noinline)) void sum_##name(case_sums *sums, const norm_row *row, size_t dim)                           \
    {                                                                                                                            \
        constant_sum(sums, row, dim, D, exact, centred, add, bias);                                                              \
    }                                                                                                                            \
    static __attribute__((noinline)) void apply_##name(const some_scalars *s, const norm_row *row, size_t dim)                   \
    {                                                                                                                            \
        constant_apply(s, row, dim, D, exact, centred, add, bias);                                                               \
    }
CASES
#undef CASE
#define CASE(name, D, exact, centred, add, bias) {#name, D, exact, centred, add, bias, sum_##name, apply_##name},

#else
#define CASE(name, D, exact, centred, add, bias) {#name, D, exact, centred, add, bias, NULL, NULL},
#endif

static const test_case cases[] = {CASES};
#undef CASE

static nrg_norm_job job_of(const test_case *c)
{
    const int f32 = c->dtype == NRG_F32;
    const size_t stride = DIM * (f32 ? 4 : 2);
    nrg_norm_job job = {.x = x, .y = c->add ? y : NULL, .w = w, .b = c->bias ? b : NULL, .o = o, .r = c->add ? r : NULL};
    job.x_stride = job.y_stride = job.o_stride = job.r_stride = stride;
    job.y_f32 = job.r_f32 = job.w_f32 = f32;
    job.dim = DIM;
    job.groups = 1;
    job.row_end = 1;
    job.formula.exact = c->exact;
    job.formula.centred = c->centred;
    job.formula.eps = 1e-5;
    job.formula.d = DIM;
    job.formula.inv_dim = 1.0 / DIM;
    job.formula.k = 1;
    return job;
}

static void print_steps(const test_case *c)
{
    const unsigned how = options_of_case(c->dtype, c->centred, c->add);
    if (c->exact)
        printf("%d %d\n", (c->centred ? V_SUM2 : V_SUM1) * (int)VN, V_APPLY * (int)VN);
    else
        printf("%d %d\n", FAST_BLOCK, apply_vectors(how, c->dtype) * (int)VN);
}

static void run(const test_case *c)
{
    for (size_t e = 0; e < DIM; e++) { /* 1 and -1: plain rows, of any norm */
        float v = e % 2 ? 1 : -1;
        uint16_t half = e % 2 ? 0x3f80 : 0xbf80;
        if (c->dtype == NRG_F32)
            memcpy(x + 4 * e, &v, sizeof v);
        else
            memcpy(x + 2 * e, &half, sizeof half);
    }
    const nrg_norm_job job = job_of(c);
    const norm_options opt = options_of(&job, c->dtype);
    if (!c->sum) {
        if (c->dtype == NRG_F32)
            one_row(&job, &opt, NRG_F32);
        else
            one_row(&job, &opt, NRG_BF16);
        return;
    }
    const norm_row row = row_at(&job, 0, c->dtype);
    case_sums sums;
    some_scalars s;
    c->sum(&sums, &row, DIM);
    row_scalars(&s, &job, &opt, 0, 0, DIM); /* what the whole row sums up to */
    c->apply(&s, &row, DIM);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(argv[1], cases[i].name) != 0)
            continue;
        if (argc == 3 && strcmp(argv[2], "steps") == 0)
            print_steps(&cases[i]);
        else
            run(&cases[i]);
        return 0;
    }
    fprintf(stderr, "usage: neon-mca CASE [steps]\n");
    return 2;
}
