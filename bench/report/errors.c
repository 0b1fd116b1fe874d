/* Errors of results over the memory of a case, against 113-bit arithmetic; of activations alone, those of their own sample.
 *
 * What is there: row norms with and without gates, softmax and its logarithm, rotations, gated linear units. Others have their
 * truth in tests/ only. A result that is a sum of terms which may cancel, as with a bias, a rotation or a logarithm, is off by
 * ulps of the largest of them.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../activation/ulp.h"
#include "../contest.h"
#include "../norm/norm.h"
#include "report.h"

#if LDBL_MANT_DIG != 113 && !defined(__SIZEOF_FLOAT128__)
/* No wider arithmetic: activations alone have their errors. */
double report_error_of(const bench_case *of, bench_rival who) { return of->family->ulp ? bench_ulp(of, who) : 0; }
#else

#pragma GCC diagnostic ignored "-Wdouble-promotion" /* what is true is computed in wider types on purpose */
#include "../../tests/harness/quad_angle.h"

/* What an output is compared with: exact values, and what their ulps are of. */
struct truth {
    double *exact, *scale;
    size_t count;
};

/* Rows alone in 113 bits are slow; so many say enough of a kernel whose rows are alike. */
enum { ROWS = 16, DIM = 4096 };

static void put(struct truth *t, size_t i, quad exact, quad scale)
{
    t->exact[i] = (double)exact;
    t->scale[i] = (double)quad_abs(scale);
}

static quad largest(quad a, quad b) { return quad_abs(a) > quad_abs(b) ? a : b; }

static void norm_row(struct truth *t, const bench_case *c, const rival_job *j, size_t row)
{
    const float *x = (const float *)j->x + row * j->dim, *y = j->y ? (const float *)j->y + row * j->dim : NULL,
                *z = j->z ? (const float *)j->z + row * j->dim : NULL, *w = j->w, *b = j->b;
    const int pre = c->op->gate == NRG_GATE_PRE, post = c->op->gate == NRG_GATE_POST;
    quad mean = 0, squares = 0;
    static quad p[DIM], g[DIM];
    for (size_t i = 0; i < j->dim; i++) {
        g[i] = pre || post ? quad_activation(c->op->activation, z[i]).value : 1;
        const float r = y ? x[i] + y[i] : x[i]; /* which is stored, and rounded */
        p[i] = pre ? r * g[i] : r;
        mean += p[i] / (quad)j->dim;
    }
    mean = c->op->centred ? mean : 0;
    for (size_t i = 0; i < j->dim; i++)
        squares += (p[i] - mean) * (p[i] - mean);
    const quad scale = 1 / quad_sqrt(squares / (quad)j->dim + (quad)bench_norm_spec(c).eps);
    for (size_t i = 0; i < j->dim; i++) {
        const quad normed = (p[i] - mean) * scale * w[i], bias = b ? b[i] : 0, all = normed + bias;
        const quad term = c->op->centred ? largest(largest(p[i], mean) * scale * w[i], bias) : normed;
        if (post)
            put(t, row * j->dim + i, all * g[i], term * g[i]);
        else if (!pre && c->op->activation != NRG_ACT_IDENTITY)
            put(t, row * j->dim + i, quad_activation(c->op->activation, all).value,
                quad_activation(c->op->activation, all).value);
        else
            put(t, row * j->dim + i, all, term);
    }
}

static void softmax_row(struct truth *t, const bench_case *c, const rival_job *j, size_t row)
{
    static quad e[DIM];
    const float *x = (const float *)j->x + row * j->dim;
    const quad scale = (quad)0.125; /* bench/softmax */
    const int is_log = strcmp(c->op->name, "log-softmax") == 0;
    quad most = x[0], sum = 0;
    for (size_t i = 0; i < j->dim; i++)
        most = x[i] > most ? x[i] : most;
    for (size_t i = 0; i < j->dim; i++)
        sum += e[i] = quad_exp((x[i] - most) * scale);
    const quad logarithm = quad_log(sum);
    for (size_t i = 0; i < j->dim; i++) {
        const quad below = (x[i] - most) * scale;
        if (is_log)
            put(t, row * j->dim + i, below - logarithm, largest(below, logarithm));
        else
            put(t, row * j->dim + i, e[i] / sum, e[i] / sum);
    }
}

/* The table is taken as it is; its own errors are in docs/rope.md. */
static void rope_row(struct truth *t, const bench_case *c, const rival_job *j, size_t row)
{
    const size_t pairs = j->head_dim / 2;
    const int is_neox = strstr(c->op->name, "neox") != NULL, normed = j->w != NULL;
    const size_t step = is_neox ? 1 : 2, apart = is_neox ? pairs : 1;
    const float *table = j->table + row * j->head_dim, *w = j->w;
    for (size_t head = row * j->dim; head < (row + 1) * j->dim; head += j->head_dim) {
        const float *x = (const float *)j->x + head;
        quad squares = 0, scale = 1;
        for (size_t i = 0; normed && i < j->head_dim; i++)
            squares += (quad)x[i] * x[i];
        if (normed)
            scale = 1 / quad_sqrt(squares / (quad)j->head_dim + (quad)1e-6);
        for (size_t p = 0; p < pairs; p++) {
            const size_t one = step * p, two = one + apart;
            const quad a = x[one] * scale * (normed ? w[one] : 1), b = x[two] * scale * (normed ? w[two] : 1);
            const quad cosine = table[p], sine = table[pairs + p];
            put(t, head + one, a * cosine - b * sine, largest(a * cosine, b * sine));
            put(t, head + two, a * sine + b * cosine, largest(a * sine, b * cosine));
        }
    }
}

static void glu_row(struct truth *t, const bench_case *c, const rival_job *j, size_t row)
{
    const int pairs = strstr(c->op->name, "-pairs") != NULL;
    const float *a = j->x, *b = j->b;
    const size_t dim = c->shape.dim;
    for (size_t i = row * dim; i < (row + 1) * dim; i++) {
        const quad u = pairs ? a[2 * i] : a[i], v = pairs ? a[2 * i + 1] : b[i];
        const quad exact = quad_activation(c->op->activation, u).value * v;
        put(t, i, exact, exact);
    }
}

typedef void row_function(struct truth *t, const bench_case *c, const rival_job *j, size_t row);

/* The truth of a case, which gets the shape for it. */
static row_function *truth_of(bench_case *c)
{
    const char *kernel = c->family->kernel;
    c->shape = (bench_shape)BENCH_ROWS(ROWS, DIM);
    /* halves have no o, or no sums */
    if (strcmp(kernel, "norm_forward") == 0)
        return c->op->groups || c->op->option || c->op->function ? NULL : norm_row;
    if (strcmp(kernel, "rope") == 0 || strcmp(kernel, "norm_rope") == 0)
        return strchr(c->op->name, ',') ? NULL : rope_row;
    if (strcmp(kernel, "glu") == 0) /* limits make of a and b other numbers */
        return strcmp(c->op->name, "swiglu-limited") == 0 || strcmp(c->op->name, "swiglu_oai") == 0 ? NULL : glu_row;
    c->shape = (bench_shape)BENCH_IMAGES(1, 1, ROWS, DIM);
    if (strcmp(kernel, "softmax") == 0)
        return strcmp(c->op->name, "softmax") == 0 || strcmp(c->op->name, "log-softmax") == 0 ? softmax_row : NULL;
    return NULL;
}

static double worst_of(const struct truth *t, const float *o)
{
    double worst = 0;
    for (size_t i = 0; i < t->count; i++) {
        const double error = bench_ulps(o[i], t->exact[i], t->scale[i]);
        if (!(error <= worst))
            worst = error;
    }
    return worst;
}

/* The truth is asked for once by nrg and then by its rivals, of one op: the last one is kept. */
static struct truth kept;
static const bench_op *kept_op;
static const bench_family *kept_family;

static int make_truth(const bench_case *c, row_function *row, const rival_job *job)
{
    if (kept_op == c->op && kept_family == c->family)
        return 1;
    kept_op = NULL;
    free(kept.exact);
    free(kept.scale);
    kept.count = (size_t)ROWS * DIM;
    kept.exact = calloc(kept.count, sizeof *kept.exact);
    kept.scale = calloc(kept.count, sizeof *kept.scale);
    if (!kept.exact || !kept.scale)
        return 0;
    for (size_t i = 0; i < ROWS; i++)
        row(&kept, c, job, i);
    kept_op = c->op;
    kept_family = c->family;
    return 1;
}

double report_error_of(const bench_case *of, bench_rival who)
{
    if (of->family->ulp)
        return bench_ulp(of, who);
    bench_case c = *of;
    row_function *row = truth_of(&c);
    bench_memory memory;
    bench_call call;
    bench_contest *contest = calloc(1, sizeof *contest);
    double worst = 0;
    if (contest && row && c.family->rival_job && bench_memory_make(&memory, &c, 1)) {
        rival_job job = {0};
        if (bench_call_bind(&call, &c, &memory) == NULL) {
            c.family->rival_job(&c, call.parts[0].part, &job);
            bench_call_before(&call);
            bench_call_run(&call, 0, 1);
            if (make_truth(&c, row, &job) && (who == BENCH_RIVALS || bench_contest_bind(contest, who, &c, &call))) {
                if (who != BENCH_RIVALS)
                    bench_contest_run(contest, 0, 1);
                worst = worst_of(&kept, job.o);
            }
        }
        bench_call_free(&call);
        bench_memory_free(&memory);
    }
    free(contest);
    return worst;
}
#endif
