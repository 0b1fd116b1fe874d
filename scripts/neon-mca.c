/* What scripts/neon-mca.sh runs under qemu to see which instructions a loop executes: one row through the sums and the apply
 * step.
 *
 *     neon-mca CASE steps  elements a turn: of the sums, of apply
 *     neon-mca CASE        one row through the general instance
 *
 * Built with NEON_MCA_CONSTANT, the row goes through the same loops with the case's options as constants.
 *
 * SPDX-License-Identifier: MIT */
#include "../src/neon/vec.h"

#include "../src/template/norm/long.h"

#include <stdio.h>

enum { DIM = 4096, BYTES = DIM * 4 };

static _Alignas(64) char x[BYTES], y[BYTES], w[BYTES], b[BYTES], r[BYTES], o[BYTES];

typedef struct test_case {
    const char *name;
    nrg_dtype dtype;
    int exact, centred, add, bias;
    void (*sum)(row_sums *, const row_chunk *);
    void (*apply)(const row_outputs *, const row_chunk *);
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

/* What output_chunk_by of general.h selects for these cases. */
NRG_INLINE norm_policy apply_policy(nrg_dtype D, int exact)
{
    norm_policy P = output_policy(general_policy(D, exact ? OPT_EXACT : 0));
    P.may &= ~(unsigned)OPT_AFTER;
    return P;
}

#ifdef NEON_MCA_CONSTANT

/* The policy of the loops for any options, with those of a case as constants. */
NRG_INLINE norm_policy policy_of_case(nrg_dtype D, int exact, int centred, int add, int bias)
{
    norm_policy P = general_policy(D, OPT_WEIGHT);
    P.must |= (exact ? OPT_EXACT : 0) | (centred ? OPT_CENTRED : 0) | (add ? OPT_CACHED_R : 0) | (bias ? OPT_BIAS : 0);
    P.may = 0;
    return P;
}

NRG_INLINE void constant_sum(row_sums *sums, const row_chunk *c, norm_policy P)
{
    sums->pilot = pilot_of_row(c->row, c->dim, P.must, P);
    const summed_row from = {c->row, v_set1(sums->pilot), NULL};
    sum_chunk(sums, &from, c->begin, c->end, c->dim, P.must, P);
}

NRG_INLINE void constant_apply(const row_outputs *to, const row_chunk *c, norm_policy P)
{
    P = output_policy(P);
    output_elements(to, c->begin, c->end, P.must, P);
}

#define CASE(name, D, exact, centred, add, bias)                                                                                 \
    static __attribute__((noinline)) void sum_##name(row_sums *sums, const row_chunk *c)                                         \
    {                                                                                                                            \
        constant_sum(sums, c, policy_of_case(D, exact, centred, add, bias));                                                     \
    }                                                                                                                            \
    static __attribute__((noinline)) void apply_##name(const row_outputs *to, const row_chunk *c)                                \
    {                                                                                                                            \
        constant_apply(to, c, policy_of_case(D, exact, centred, add, bias));                                                     \
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
    const int sum = !c->exact ? FAST_BLOCK : (c->centred ? V_SUM2 : V_SUM1) * (int)VN;
    printf("%d %d\n", sum, output_vectors(apply_policy(c->dtype, c->exact)) * (int)VN);
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
    const unsigned options = options_of_job(&job, c->dtype);
    if (!c->sum) {
        general_rows(&job, options, c->dtype);
        return;
    }
    const row_chunk chunk = {operands_of_row(&job, 0, options, c->dtype), options, 0, DIM, DIM};
    row_sums sums;
    c->sum(&sums, &chunk);
    const row_scalars s = general_scalars(&job, &sums, options);
    row_outputs to = outputs_of_row(chunk.row, &s, &job);
    to.row.x = output_source(chunk.row, options);
    c->apply(&to, &chunk);
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
