/* What scripts/neon-mca.sh runs under qemu to see which instructions a loop executes: one row through the sum and the apply step.
 *
 *     neon-mca steps       elements a turn: of a sum, of a centred sum, of apply
 *     neon-mca CASE        one row through the kernel itself
 *     neon-mca CASE fixed  one row through loops over the same steps with the case's options as constants
 *
 * SPDX-License-Identifier: MIT */
#include "../src/neon/vec.h"

#include "../src/template/norm/norm.h"

#include <stdio.h>

enum { DIM = 4096, BYTES = DIM * 4 };

static _Alignas(64) char x[BYTES], y[BYTES], w[BYTES], b[BYTES], r[BYTES], o[BYTES];

/* The row of a case: what it has is not NULL. */
NRG_INLINE norm_row fixed_row(const norm_row *given, int bias)
{
    norm_row row = *given;
    if (!row.w || (bias && !row.b))
        __builtin_unreachable();
    row.b = bias ? row.b : NULL;
    return row;
}

/* The options of a case, constants. */
NRG_INLINE unsigned fixed_options(int centred, int add)
{
    return (centred ? NORM_CENTRED : 0) | (add ? NORM_ADD_Y | NORM_STORE_R | NORM_READ_R : 0);
}

/* The loops of sum_group, for the first of its groups of lanes, and of apply_part. Not these functions themselves:
 * options_in_register hides even a constant. dim is a multiple of both steps. */
NRG_INLINE void fixed_sum(norm_lanes *lanes, const norm_row *given, size_t dim, nrg_dtype D, int centred, int add, int bias)
{
    const int G = centred ? V_SUM2 : V_SUM1, vectors = G < NORM_LANE_VECTORS ? G : NORM_LANE_VECTORS;
    const norm_row row = fixed_row(given, bias);
    vd t[NORM_LANE_REGISTERS], tt[NORM_LANE_REGISTERS];
    clear_lanes(t, tt, centred);
    for (size_t i = 0; i < dim; i += NORM_SUM_STEP)
        sum_step(t, tt, vectors, G, fixed_options(centred, add), row, i, (size_t)G * VN, D, centred);
    copy_lanes(lanes->t, lanes->tt, t, tt, centred);
}

NRG_INLINE void fixed_apply(const norm_scalars *s, const norm_row *given, size_t dim, nrg_dtype D, int centred, int add, int bias)
{
    const size_t step = (size_t)V_APPLY * VN;
    const norm_row row = fixed_row(given, bias);
    const norm_factors f = factors_of(s, 0);
    for (size_t i = 0; i + step <= dim; i += step)
        apply_step(V_APPLY, fixed_options(centred, add), NULL, row, &f, i, step, D, 0);
}

#define CASE(name, D, centred, add, bias)                                                                                        \
    static __attribute__((noinline)) void fixed_sum_##name(norm_lanes *lanes, const norm_row *row, size_t dim)                   \
    {                                                                                                                            \
        fixed_sum(lanes, row, dim, D, centred, add, bias);                                                                       \
    }                                                                                                                            \
    static __attribute__((noinline)) void fixed_apply_##name(const norm_scalars *s, const norm_row *row, size_t dim)             \
    {                                                                                                                            \
        fixed_apply(s, row, dim, D, centred, add, bias);                                                                         \
    }

#define CASES                                                                                                                    \
    CASE(f32_rms, NRG_F32, 0, 0, 0)                                                                                              \
    CASE(f32_add_rms, NRG_F32, 0, 1, 0)                                                                                          \
    CASE(f32_layer, NRG_F32, 1, 0, 1)                                                                                            \
    CASE(bf16_rms, NRG_BF16, 0, 0, 0)                                                                                            \
    CASE(bf16_add_rms, NRG_BF16, 0, 1, 0)                                                                                        \
    CASE(bf16_layer, NRG_BF16, 1, 0, 1)
CASES
#undef CASE

typedef struct test_case {
    const char *name;
    nrg_dtype dtype;
    int centred, add, bias;
    void (*sum)(norm_lanes *, const norm_row *, size_t);
    void (*apply)(const norm_scalars *, const norm_row *, size_t);
} test_case;

#define CASE(name, D, centred, add, bias) {#name, D, centred, add, bias, fixed_sum_##name, fixed_apply_##name},
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
    job.row_end = 1;
    job.formula.centred = c->centred;
    job.formula.eps = 1e-5;
    job.formula.d = DIM;
    job.formula.inv_dim = 1.0 / DIM;
    job.formula.k = 1;
    return job;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "steps") == 0) {
        printf("%d %d %d\n", V_SUM1 * VN, V_SUM2 * VN, V_APPLY * VN);
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        const test_case *c = &cases[i];
        if (strcmp(argv[1], c->name) != 0)
            continue;
        for (size_t e = 0; e < DIM; e++) { /* 1 and -1: plain rows, of any norm */
            float v = e % 2 ? 1 : -1;
            uint16_t half = e % 2 ? 0x3f80 : 0xbf80;
            if (c->dtype == NRG_F32)
                memcpy(x + 4 * e, &v, sizeof v);
            else
                memcpy(x + 2 * e, &half, sizeof half);
        }
        const nrg_norm_job job = job_of(c);
        if (argc == 2) {
            (c->dtype == NRG_F32 ? nrg_neon_norm_forward_f32 : nrg_neon_norm_forward_bf16)(&job);
        } else {
            const norm_row row = row_at(&job, 0, c->dtype);
            norm_lanes lanes;
            norm_scalars s;
            c->sum(&lanes, &row, DIM);
            row_scalars(&s, &job, 0, DIM); /* what the whole row sums up to */
            c->apply(&s, &row, DIM);
        }
        return 0;
    }
    fprintf(stderr, "usage: neon-mca steps | CASE [fixed]\n");
    return 2;
}
