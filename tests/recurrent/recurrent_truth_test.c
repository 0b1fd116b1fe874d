/* Recurrent encodings against 113-bit arithmetic. Step by step: every p_k, g_k and sum against the formula of nrg/recurrent.h for
 * the numbers it was made from, in units of what the header allows. And as a whole: the gradients against derivatives of the
 * recursion itself, by dual numbers, within a bound that is carried along the chain.
 *
 * `recurrent_truth_test --report` prints the worst errors and nothing else.
 *
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/element.h"
#include "../harness/quad_dual.h"
#include "../harness/rows.h"
#include "../harness/truth.h"

/* What the header promises, in ulps of f32 beyond what cancellation leaves; in 16 bits half an ulp of theirs more. */
static const double value_limit = 3, gradient_limit = 0.51;

/* USUAL: ordinary rows, each kind in turn. */
enum contents { NORMAL, CANCELLING, TINY, LARGE, USUAL, CONTENTS };
static const char *const contents_names[CONTENTS] = {"normal", "cancelling", "tiny", "large", "ordinary rows"};

enum column { VALUE, VALUE_16, GRADIENT, START, WEIGHT, BIAS, COLUMNS };
static const char *const column_names[COLUMNS] = {"p_k, f32", "p_k, 16 bits", "g_k", "dp_0", "dW", "db"};

static double (*worst)[COLUMNS];
static int reporting;
static double *whole; /* the worst error of a whole gradient, as a part of its bound */

/* ---- a chain ---- */

enum { LONG_DIM = 1060, LONG_N = 40 };

typedef struct chain_case {
    size_t dim, n, chains;
    nrg_dtype dtype;
    float *w, *b, *p0, *p, *dp, *g, *dw, *db, *d_p0; /* the values, all as floats; b: NULL where absent */
} chain_case;

static float draw(uint64_t *state) { return ((float)test_draw(state, 1u << 24) + 0.5f) * 0x1p-23f - 1; }

static void fill(float *to, size_t n, float size, nrg_dtype dtype, uint64_t *state)
{
    for (size_t i = 0; i < n; i++)
        to[i] = element_round(draw(state) * size, dtype);
}

/* Parameters of f32 beside p and dp of dtype. */
static chain_case make_chain(size_t dim, size_t n, size_t chains, nrg_dtype dtype, enum contents contents, uint64_t seed)
{
    uint64_t state = test_mix(seed);
    const float size = contents == LARGE ? 30 : 2, small = 0x1p-135f;
    const size_t vectors = n * chains;
    chain_case c = {.dim = dim, .n = n, .chains = chains, .dtype = dtype};
    c.w = test_allocate(dim * dim, sizeof(float));
    c.p0 = test_allocate(chains * dim, sizeof(float));
    c.p = test_allocate(vectors * dim, sizeof(float));
    c.dp = test_allocate(vectors * dim, sizeof(float));
    c.g = test_allocate(vectors * dim + 2, sizeof(float));
    c.dw = test_allocate(dim * dim, sizeof(float));
    c.db = test_allocate(dim, sizeof(float));
    c.d_p0 = test_allocate(chains * dim, sizeof(float));
    fill(c.w, dim * dim, size / sqrtf((float)dim), NRG_F32, &state);
    fill(c.p0, chains * dim, contents == TINY ? small : 1, NRG_F32, &state);
    fill(c.dp, vectors * dim, contents == TINY ? small : 1, dtype, &state);
    if (contents == USUAL) {
        const enum row_kind kind = (enum row_kind)(ROW_ORDINARY + seed % ROW_ORDINARY_KINDS);
        row_fill(c.w, dim * dim, kind, NRG_F32, test_mix(state));
        for (size_t i = 0; i < dim * dim; i++)
            c.w[i] /= sqrtf((float)dim);
        row_fill(c.p0, chains * dim, kind, NRG_F32, test_mix(state + 1));
        row_fill(c.dp, vectors * dim, kind, dtype, test_mix(state + 2));
    }
    if (contents == CANCELLING) /* what two neighbours add is taken away again by two others, but for the last bits */
        for (size_t i = 0; i < dim * dim; i++) {
            const size_t column = i % dim;
            if (column % 2)
                c.w[i] = -c.w[i - 1] * (1 + 0x1p-20f * draw(&state));
            if (column % 2 && i < chains * dim)
                c.p0[i] = c.p0[i - 1];
        }
    if (contents == NORMAL || test_draw(&state, 2)) {
        c.b = test_allocate(dim, sizeof(float));
        fill(c.b, dim, contents == TINY ? small : contents == CANCELLING ? 0x1p-30f : 0.5f, NRG_F32, &state);
    }
    return c;
}

static void free_chain(chain_case *c)
{
    float *all[] = {c->w, c->b, c->p0, c->p, c->dp, c->g, c->dw, c->db, c->d_p0};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

/* Forward and backward through the library. */
static void run_chain(chain_case *c)
{
    const size_t elements = c->chains * c->n * c->dim;
    void *p = malloc(elements * 4), *dp = malloc(elements * 4);
    ck_assert(p && dp);
    for (size_t i = 0; i < elements; i++)
        element_set(dp, i, c->dtype, c->dp[i]);
    nrg_recurrent_args args = nrg_recurrent_args_init(c->dtype, c->n, c->dim, c->w, c->p0, p);
    args.chains = c->chains;
    args.w_dtype = args.p0_dtype = NRG_F32;
    args.b = c->b;
    ck_assert_int_eq(nrg_recurrent_forward(&args, 0, 1), NRG_OK);
    nrg_recurrent_backward_args back = nrg_recurrent_backward_args_init(c->dtype, c->n, c->dim, c->w, c->p0, p, dp);
    back.chains = c->chains;
    back.w_dtype = back.p0_dtype = NRG_F32;
    back.dw = c->dw;
    back.db = c->db;
    back.d_p0 = c->d_p0;
    back.workspace = c->g;
    ck_assert_int_eq(nrg_recurrent_backward_workspace(&back, &back.workspace_size), NRG_OK);
    ck_assert_int_eq(nrg_recurrent_backward(&back, 0, 1), NRG_OK);
    for (size_t i = 0; i < elements; i++)
        c->p[i] = element_get(p, i, c->dtype);
    free(p);
    free(dp);
}

/* p_k, k from 0, of a chain. */
static const float *vector_at(const chain_case *c, size_t chain, size_t k)
{
    return k ? c->p + (chain * c->n + k - 1) * c->dim : c->p0 + chain * c->dim;
}

/* g_k, k from 1. */
static const float *gradient_at(const chain_case *c, size_t chain, size_t k) { return c->g + (chain * c->n + k - 1) * c->dim; }

/* ---- step by step ---- */

typedef struct sum {
    quad value, size; /* size: of the magnitudes */
} sum;

static void add(sum *s, quad term)
{
    s->value += term;
    s->size += quad_abs(term);
}

/* In ulps of f32 at the exact value; of the error only what is more than allowed. */
static void record(enum contents contents, enum column column, float got, quad exact, double allowed, double limit)
{
    const double error = (double)quad_abs((quad)got - exact) - allowed, ulps = error / element_ulp((double)exact, NRG_F32);
    if (!(ulps <= limit)) /* a NaN is none either */
        ck_abort_msg("%s: %s %g should be %g, which is %g ulp", test_note, column_names[column], (double)got, (double)exact,
                     ulps);
    if (ulps > worst[contents][column])
        worst[contents][column] = ulps;
}

static void check_values(const chain_case *c, enum contents contents)
{
    const double left = ((double)c->dim / 32 + 8) * 0x1p-53;
    for (size_t at = 0; at < c->chains * c->n * c->dim; at++) {
        const size_t i = at % c->dim, k = at / c->dim % c->n, chain = at / c->dim / c->n;
        const float *before = vector_at(c, chain, k);
        sum s = {0, 0};
        for (size_t j = 0; j < c->dim; j++)
            add(&s, (quad)c->w[i * c->dim + j] * (quad)before[j]);
        if (c->b)
            add(&s, c->b[i]);
        const quad exact = quad_activation(NRG_ACT_TANH, s.value).value;
        double allowed = left * (double)s.size;
        if (c->dtype != NRG_F32)
            allowed += element_ulp((double)exact, c->dtype) / 2;
        record(contents, c->dtype == NRG_F32 ? VALUE : VALUE_16, c->p[at], exact, allowed, value_limit);
    }
}

/* Element j of Wᵀ g. */
static sum transposed(const chain_case *c, const float *g, size_t j)
{
    sum s = {0, 0};
    for (size_t i = 0; g && i < c->dim; i++)
        add(&s, (quad)c->w[i * c->dim + j] * (quad)g[i]);
    return s;
}

static void check_gradients(const chain_case *c, enum contents contents)
{
    const double left = ((double)c->dim + 2) * 0x1p-53, terms_left = ((double)(c->chains * c->n) + 2) * 0x1p-53;
    for (size_t chain = 0; chain < c->chains; chain++)
        for (size_t j = 0; j < c->dim; j++) {
            for (size_t k = 1; k <= c->n; k++) {
                sum s = transposed(c, k < c->n ? gradient_at(c, chain, k + 1) : NULL, j);
                const quad p = vector_at(c, chain, k)[j], slope = 1 - p * p;
                add(&s, c->dp[(chain * c->n + k - 1) * c->dim + j]);
                record(contents, GRADIENT, gradient_at(c, chain, k)[j], s.value * slope, left * (double)(s.size * slope),
                       gradient_limit);
            }
            sum s = transposed(c, gradient_at(c, chain, 1), j);
            record(contents, START, c->d_p0[chain * c->dim + j], s.value, left * (double)s.size, gradient_limit);
        }
    for (size_t i = 0; i < c->dim; i++)
        for (size_t j = 0; j <= c->dim; j++) {
            sum s = {0, 0};
            for (size_t chain = 0; chain < c->chains; chain++)
                for (size_t k = 1; k <= c->n; k++)
                    add(&s, (quad)gradient_at(c, chain, k)[i] * (j < c->dim ? (quad)vector_at(c, chain, k - 1)[j] : 1));
            if (j < c->dim)
                record(contents, WEIGHT, c->dw[i * c->dim + j], s.value, terms_left * (double)s.size, gradient_limit);
            else
                record(contents, BIAS, c->db[i], s.value, terms_left * (double)s.size, gradient_limit);
        }
}

static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};

START_TEST(steps)
{
    static const size_t dims[] = {1, 2, 3, 5, 8, 17, 31, 33, 64, 100};
    const enum contents contents = (enum contents)_i;
    for (size_t d = 0; d < sizeof dims / sizeof dims[0]; d++)
        for (size_t t = 0; t < 3; t++)
            for (uint64_t seed = 0; seed < (dims[d] < 20        ? reporting ? 100u : 6u
                                            : contents == USUAL ? ROW_ORDINARY_KINDS
                                                                : 1u);
                 seed++) {
                if (test_small() && (dims[d] > 40 || seed > 2))
                    continue;
                chain_case c = make_chain(dims[d], dims[d] < 20 ? LONG_N : 9, seed % 2 + 1, dtypes[t], contents, seed + 100 * d);
                snprintf(test_note, sizeof test_note, "%s, %s, dim %zu, seed %d", contents_names[contents],
                         nrg_dtype_name(dtypes[t]), c.dim, (int)seed);
                run_chain(&c);
                check_values(&c, contents);
                check_gradients(&c, contents);
                free_chain(&c);
            }
}
END_TEST

/* Of more than the 1024 elements that are taken at once. */
START_TEST(long_vectors)
{
    for (size_t t = 0; t < 3; t += 2) {
        chain_case c = make_chain(test_small() ? 300 : LONG_DIM, 2, 1, dtypes[t], (enum contents)_i, 5);
        snprintf(test_note, sizeof test_note, "%s, dim %zu", nrg_dtype_name(dtypes[t]), c.dim);
        run_chain(&c);
        check_values(&c, (enum contents)_i);
        if (t == 0 && _i == NORMAL)
            check_gradients(&c, (enum contents)_i);
        free_chain(&c);
    }
}
END_TEST

/* ---- the whole recursion ---- */

enum { DIM = 6, N = 12, PARAMETERS = DIM * DIM + DIM + DIM };

/* W, b and p_0 as one vector. */
static quad parameter(const chain_case *c, size_t i)
{
    return i < DIM * DIM ? c->w[i] : i < DIM * DIM + DIM ? c->b[i - DIM * DIM] : c->p0[i - DIM * DIM - DIM];
}

/* Σ_k dp_k · p_k of a chain from its parameters, one of which is the variable; p: the exact chain. */
static dual loss(const chain_case *c, size_t variable, quad (*p)[DIM])
{
    dual a[PARAMETERS], now[DIM], next[DIM], total = dual_of(0);
    for (size_t i = 0; i < PARAMETERS; i++)
        a[i] = (dual){parameter(c, i), i == variable};
    memcpy(now, a + DIM * DIM + DIM, sizeof now);
    for (size_t j = 0; j < DIM; j++)
        p[0][j] = now[j].v;
    for (size_t k = 0; k < N; k++) {
        for (size_t i = 0; i < DIM; i++) {
            dual s = a[DIM * DIM + i];
            for (size_t j = 0; j < DIM; j++)
                s = dual_add(s, dual_mul(a[i * DIM + j], now[j]));
            next[i] = dual_g(NRG_ACT_TANH, s);
            total = dual_add(total, dual_mul(dual_of(c->dp[k * DIM + i]), next[i]));
            p[k + 1][i] = next[i].v;
        }
        memcpy(now, next, sizeof now);
    }
    return total;
}

/* How far p_k may be off, from how far p_(k-1) may, and a step's own error. |tanh′| is at most 1. */
static void value_bounds(const chain_case *c, double (*bound)[DIM])
{
    memset(bound[0], 0, sizeof bound[0]);
    for (size_t k = 1; k <= N; k++)
        for (size_t i = 0; i < DIM; i++) {
            const double p = vector_at(c, 0, k)[i];
            double off = (value_limit + 0.01) * element_ulp(p, NRG_F32);
            if (c->dtype != NRG_F32)
                off += element_ulp(p, c->dtype) / 2;
            for (size_t j = 0; j < DIM; j++)
                off += fabs((double)c->w[i * DIM + j]) * bound[k - 1][j];
            bound[k][i] = off;
        }
}

/* The same for g_k. */
static void gradient_bounds(const chain_case *c, double (*value)[DIM], double (*bound)[DIM])
{
    for (size_t k = N; k; k--)
        for (size_t j = 0; j < DIM; j++) {
            const double p = vector_at(c, 0, k)[j], off = value[k][j], slope = 1 - p * p,
                         slope_off = 2 * fabs(p) * off + off * off;
            double arriving = c->dp[(k - 1) * DIM + j], arriving_off = 0;
            for (size_t i = 0; k < N && i < DIM; i++) {
                arriving += (double)c->w[i * DIM + j] * (double)gradient_at(c, 0, k + 1)[i];
                arriving_off += fabs((double)c->w[i * DIM + j]) * bound[k + 1][i];
            }
            bound[k][j] = arriving_off * (slope + slope_off) + fabs(arriving) * slope_off +
                          0.52 * element_ulp((double)gradient_at(c, 0, k)[j], NRG_F32);
        }
}

/* And for parameter i. */
static double parameter_bound(const chain_case *c, size_t i, double (*value)[DIM], double (*gradient)[DIM], double got)
{
    double off = element_ulp(got, NRG_F32);
    if (i >= DIM * DIM + DIM)
        for (size_t row = 0; row < DIM; row++)
            off += fabs((double)c->w[row * DIM + i - DIM * DIM - DIM]) * gradient[1][row];
    else
        for (size_t k = 1; k <= N; k++) {
            const size_t row = i < DIM * DIM ? i / DIM : i - DIM * DIM;
            const double p = i < DIM * DIM ? fabs((double)vector_at(c, 0, k - 1)[i % DIM]) : 1;
            const double p_off = i < DIM * DIM ? value[k - 1][i % DIM] : 0;
            off += gradient[k][row] * (p + p_off) + fabs((double)gradient_at(c, 0, k)[row]) * p_off;
        }
    return off;
}

START_TEST(derivatives_of_the_recursion)
{
    const nrg_dtype dtype = dtypes[_i];
    double bound_sum = 0, size_sum = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        chain_case c = make_chain(DIM, N, 1, dtype, NORMAL, 1000 + seed);
        double value[N + 1][DIM], gradient[N + 1][DIM];
        static quad p[N + 1][DIM];
        /* a chain that forgets what it was, so that a bound can say something */
        for (size_t i = 0; i < DIM * DIM; i++)
            c.w[i] *= 0.375f;
        run_chain(&c);
        value_bounds(&c, value);
        gradient_bounds(&c, value, gradient);
        for (size_t i = 0; i < PARAMETERS; i++) {
            const dual exact = loss(&c, i, p);
            const float got = i < DIM * DIM ? c.dw[i] : i < DIM * DIM + DIM ? c.db[i - DIM * DIM] : c.d_p0[i - DIM * DIM - DIM];
            const double bound = parameter_bound(&c, i, value, gradient, (double)exact.e);
            const double error = (double)quad_abs((quad)got - exact.e);
            ck_assert_msg(error <= bound, "%s, seed %d: derivative %zu is %g and should be %g; %g is allowed",
                          nrg_dtype_name(dtype), (int)seed, i, (double)got, (double)exact.e, bound);
            whole[_i] = error / bound > whole[_i] ? error / bound : whole[_i];
            bound_sum += bound;
            size_sum += (double)quad_abs(exact.e);
        }
        for (size_t k = 1; k <= N; k++)
            for (size_t i = 0; i < DIM; i++)
                ck_assert((double)quad_abs((quad)vector_at(&c, 0, k)[i] - p[k][i]) <= value[k][i]);
        free_chain(&c);
    }
    /* a bound that allows everything would be none */
    const double least = dtype == NRG_F32 ? 2e-5 : dtype == NRG_F16 ? 2e-2 : 2e-1;
    ck_assert_msg(bound_sum <= least * size_sum, "%s: the bound is %g of the derivatives", nrg_dtype_name(dtype),
                  bound_sum / size_sum);
}
END_TEST

static const char *contents_name(int contents) { return contents_names[contents]; }

static void report(void)
{
    const truth_table table = {"numbers", CONTENTS, COLUMNS, contents_name, column_names, worst[0]};
    truth_print(&table);
    printf("\nWhole gradients, parts of the bound that is carried along: f32 %.3f, f16 %.3f, bf16 %.3f\n", whole[0], whole[1],
           whole[2]);
}

int main(int argc, char **argv)
{
    argc = test_arguments(argc, argv);
    reporting = argc > 1 && strcmp(argv[1], "--report") == 0;
    test_note_crashes();
    worst = test_shared(CONTENTS * sizeof *worst);
    whole = test_shared(3 * sizeof *whole);
    Suite *suite = suite_create("recurrent encodings against 113-bit arithmetic");
    TCase *truth = test_case(suite, "truth");
    tcase_add_loop_test(truth, steps, 0, CONTENTS);
    tcase_add_loop_test(truth, long_vectors, NORMAL, CANCELLING + 1);
    tcase_add_loop_test(truth, derivatives_of_the_recursion, 0, 3);
    const int status = test_run(suite);
    if (reporting)
        report();
    return status;
}
