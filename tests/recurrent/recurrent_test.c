/* nrg_recurrent_forward, nrg_recurrent_backward and nrg_recurrent_backward_reduce: every path gives the bits of scalar, in any
 * layout and any shares; a chain can be continued, and knows of no other.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/call_harness.h"
#include "../harness/element.h"

enum { W, B, P0, P, DP, G, DW, DB, DP0, OPERANDS };

/* What the numbers of a case are: lively chains, or such with something odd in them. */
enum contents { PLAIN, STRAY_NAN, STRAY_INFINITY, HUGE, TINY, CONTENTS };

typedef struct shape {
    size_t dim, n, chains;
    nrg_dtype dtype, w_dtype, p0_dtype;
    int accumulate, with_b;
    enum contents contents;
} shape;

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        abort();
    return memory;
}

/* Numbers up to size in magnitude. An odd one is put in one place of `odd` elements; 0: in none. */
static void *numbers(size_t n, nrg_dtype dtype, float size, enum contents contents, size_t odd, uint64_t seed)
{
    void *tensor = allocate(n * nrg_dtype_size(dtype));
    uint64_t state = seed;
    for (size_t i = 0; i < n; i++) {
        float value = ((float)test_draw(&state, 20001) / 10000 - 1) * size;
        if (odd && contents != PLAIN && test_draw(&state, odd) == 0)
            value = contents == STRAY_NAN        ? NAN
                    : contents == STRAY_INFINITY ? INFINITY
                    : contents == HUGE           ? element_max(dtype) * value / size
                                                 : value * 0x1p-133f;
        element_set(tensor, i, dtype, value);
    }
    return tensor;
}

/* ---- the calls ---- */

static nrg_recurrent_args forward_args(const shape *s, const call_operand *all)
{
    nrg_recurrent_args args = nrg_recurrent_args_init(s->dim, s->n, all[W].at, all[P0].at, all[P].at);
    args.chains = s->chains;
    args.dtype = s->dtype;
    args.w_dtype = s->w_dtype;
    args.p0_dtype = s->p0_dtype;
    args.b = all[B].at;
    args.w_stride = all[W].stride;
    args.p0_stride = all[P0].stride;
    args.p_stride = all[P].stride;
    args.p_chain_stride = all[P].group_stride;
    return args;
}

static nrg_recurrent_backward_args backward_args(const shape *s, const call_operand *all)
{
    nrg_recurrent_backward_args args =
        nrg_recurrent_backward_args_init(s->dim, s->n, all[W].at, all[P0].at, all[P].at, all[DP].at);
    args.chains = s->chains;
    args.dtype = s->dtype;
    args.w_dtype = s->w_dtype;
    args.p0_dtype = s->p0_dtype;
    args.accumulate = s->accumulate;
    args.dw = all[DW].at;
    args.db = all[DB].at;
    args.dp0 = all[DP0].at;
    args.workspace = all[G].at;
    args.workspace_size = s->chains * s->n * s->dim * sizeof(float);
    args.w_stride = all[W].stride;
    args.p0_stride = all[P0].stride;
    args.p_stride = all[P].stride;
    args.p_chain_stride = all[P].group_stride;
    args.dp_stride = all[DP].stride;
    args.dp_chain_stride = all[DP].group_stride;
    args.dw_stride = all[DW].stride;
    args.dp0_stride = all[DP0].stride;
    return args;
}

static nrg_status forward(void *context, const call_operand *all, int ith, int nth)
{
    const nrg_recurrent_args args = forward_args(context, all);
    return nrg_recurrent_forward(&args, ith, nth);
}

static nrg_status backward(void *context, const call_operand *all, int ith, int nth)
{
    const nrg_recurrent_backward_args args = backward_args(context, all);
    return nrg_recurrent_backward(&args, ith, nth);
}

static nrg_status reduce(void *context, const call_operand *all, int ith, int nth)
{
    const nrg_recurrent_backward_args args = backward_args(context, all);
    return nrg_recurrent_backward_reduce(&args, ith, nth);
}

/* ---- every path against scalar ---- */

typedef struct tensors {
    void *w, *b, *p0, *p, *dp, *g;
} tensors;

static tensors make_tensors(const shape *s, uint64_t seed)
{
    const size_t dim = s->dim, vectors = s->chains * s->n;
    tensors t = {
        .w = numbers(dim * dim, s->w_dtype, 2.6f / sqrtf((float)dim), s->contents, 3 * dim * dim, seed),
        .b = numbers(dim, s->w_dtype, 0.5f, s->contents, 5 * dim, seed + 1),
        .p0 = numbers(s->chains * dim, s->p0_dtype, 1, s->contents, s->chains * dim, seed + 2),
        .p = numbers(vectors * dim, s->dtype, 1, s->contents, 2 * vectors * dim, seed + 3),
        .dp = numbers(vectors * dim, s->dtype, 1, s->contents, 2 * vectors * dim, seed + 4),
        .g = numbers(vectors * dim, NRG_F32, 1, s->contents, 2 * vectors * dim, seed + 5),
    };
    return t;
}

static void free_tensors(tensors *t)
{
    free(t->w);
    free(t->b);
    free(t->p0);
    free(t->p);
    free(t->dp);
    free(t->g);
}

static shape draw_shape(nrg_dtype dtype, size_t dim, size_t n, uint64_t *state)
{
    shape s = {.dim = dim, .n = n, .dtype = dtype, .chains = dim > 300 || test_draw(state, 2) ? 1 : test_draw(state, 4) + 1};
    s.w_dtype = test_draw(state, 2) ? NRG_F32 : dtype;
    s.p0_dtype = test_draw(state, 2) ? NRG_F32 : dtype;
    s.accumulate = test_draw(state, 2) != 0;
    s.with_b = test_draw(state, 4) != 0;
    s.contents = test_draw(state, 2) ? PLAIN : (enum contents)test_draw(state, CONTENTS);
    return s;
}

static void sweep(shape *s, uint64_t seed)
{
    const size_t dim = s->dim, vectors = s->chains * s->n;
    tensors t = make_tensors(s, seed);
    const call_operand w = {.name = "w", .type = (int)s->w_dtype, .rows = dim, .dim = dim, .padded = 1, .content = t.w};
    const call_operand b = {.name = "b", .type = s->with_b ? (int)s->w_dtype : 0, .rows = 1, .dim = dim, .content = t.b};
    const call_operand p0 = {.name = "p0", .type = (int)s->p0_dtype, .rows = s->chains, .dim = dim, .padded = 1, .content = t.p0};
    const call_operand dp = {.name = "dp",
                             .type = (int)s->dtype,
                             .rows = vectors,
                             .dim = dim,
                             .group = s->n,
                             .padded = 1,
                             .turned = 1,
                             .content = t.dp};
    const call_operand g = {.name = "g", .type = NRG_F32, .rows = vectors, .dim = dim, .content = t.g};
    call_operand p = dp, dp0 = p0, dw = w, db = b;
    p.name = "p";
    p.content = t.p;
    dp0 = (call_operand){
        .name = "dp0", .role = CALL_OUTPUT, .type = NRG_F32, .rows = s->chains, .dim = dim, .padded = 1, .optional = 1};
    dw = (call_operand){.name = "dw", .role = CALL_OUTPUT, .type = NRG_F32, .rows = dim, .dim = dim, .padded = 1, .optional = 1};
    db = (call_operand){.name = "db", .role = CALL_OUTPUT, .type = NRG_F32, .rows = 1, .dim = dim, .optional = 1};
    if (s->accumulate) {
        dw.role = db.role = CALL_INOUT;
        dw.optional = db.optional = 0;
    }
    char text[160];
    snprintf(text, sizeof text, "dim %zu, n %zu, chains %zu, w %s, p0 %s, contents %d%s", dim, s->n, s->chains,
             nrg_dtype_name(s->w_dtype), nrg_dtype_name(s->p0_dtype), (int)s->contents, s->accumulate ? ", accumulate" : "");

    call_operand forwards[OPERANDS] = {[W] = w, [B] = b, [P0] = p0, [P] = p};
    forwards[P].role = CALL_OUTPUT;
    forwards[P].content = NULL;
    call_case c = {.op = "recurrent",
                   .text = text,
                   .dtype = s->dtype,
                   .run = {forward},
                   .context = s,
                   .operands = forwards,
                   .count = OPERANDS,
                   .work = s->chains,
                   .layouts = dim > 300 ? 2 : 0,
                   .seed = seed};
    call_sweep(&c);

    call_operand chains[OPERANDS] = {[W] = w, [P] = p, [DP] = dp, [G] = g, [DP0] = dp0};
    chains[G].role = CALL_OUTPUT;
    chains[G].content = NULL;
    c.op = "recurrent_backward";
    c.run[0] = backward;
    c.operands = chains;
    call_sweep(&c);

    call_operand rows[OPERANDS] = {[W] = w, [P0] = p0, [P] = p, [DP] = dp, [G] = g, [DW] = dw, [DB] = db};
    c.op = "recurrent_reduce";
    c.run[0] = reduce;
    c.operands = rows;
    c.work = dim;
    call_sweep(&c);
    free_tensors(&t);
}

static const size_t dims[] = {1,  2,  3,  4,  5,  7,  8,  9,  11, 15, 16,  17,  23,  24,
                              31, 32, 33, 40, 47, 48, 63, 64, 65, 95, 100, 127, 129, 257};

START_TEST(dims_of_any_size)
{
    nrg_dtype dtypes[3];
    const size_t dim = dims[_i], dtype_count = test_kernel_dtypes("recurrent", dtypes);
    uint64_t state = test_mix(dim);
    for (size_t d = 0; d < dtype_count; d++)
        for (int draw = 0; draw < (test_small() && dim > 70 ? 1 : test_small() || dim > 100 ? 2 : 5); draw++) {
            /* positions around multiples of 32, which are taken at once by the sums */
            const size_t n =
                test_draw(&state, 4) || (test_small() && dim > 70) ? test_draw(&state, 8) + 1 : test_draw(&state, 35) + 31;
            shape s = draw_shape(dtypes[d], dim, n, &state);
            sweep(&s, test_mix(state));
        }
}
END_TEST

/* Vectors that are taken in pieces of 1024 elements. */
START_TEST(long_vectors)
{
    static const size_t long_dims[] = {1023, 1024, 1025, 1060};
    nrg_dtype dtypes[3];
    test_kernel_dtypes("recurrent", dtypes);
    uint64_t state = test_mix(77);
    for (size_t i = 0; i < (test_small() ? 1 : 4); i++) {
        shape s = draw_shape(dtypes[_i], test_small() ? 1040 : long_dims[i], 2, &state);
        s.contents = PLAIN;
        sweep(&s, test_mix(state));
    }
}
END_TEST

START_TEST(account_of_forward) { call_check_account("recurrent"); }
END_TEST
START_TEST(account_of_backward) { call_check_account("recurrent_backward"); }
END_TEST
START_TEST(account_of_reduce) { call_check_account("recurrent_reduce"); }
END_TEST

/* ---- chains ---- */

static void run_forward(const nrg_recurrent_args *args)
{
    nrg_status status = nrg_recurrent_forward(args, 0, 1);
    if (status != NRG_OK)
        ck_abort_msg("%s: %s", test_note, nrg_status_string(status));
}

/* Some positions, and the others from where they ended, are all of them; and a chain alone is what it is among others. */
START_TEST(chains_continued_and_alone)
{
    enum { DIM = 37, N = 12, CHAINS = 3, VECTOR = DIM * 4 };
    static unsigned char whole[CHAINS * N * VECTOR], parts[CHAINS * N * VECTOR];
    nrg_isa paths[NRG_ISA_COUNT];
    nrg_dtype dtypes[3];
    const size_t path_count = test_paths(paths), dtype_count = test_kernel_dtypes("recurrent", dtypes);
    for (size_t p = 0; p < path_count; p++)
        for (size_t d = 0; d < dtype_count; d++) {
            const nrg_dtype dtype = dtypes[d];
            const size_t vector = DIM * nrg_dtype_size(dtype), chain = N * vector;
            float *w = numbers(DIM * DIM, NRG_F32, 0.5f, PLAIN, 0, 1), *b = numbers(DIM, NRG_F32, 0.5f, PLAIN, 0, 2);
            float *p0 = numbers(CHAINS * DIM, NRG_F32, 1, PLAIN, 0, 3);
            ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
            snprintf(test_note, sizeof test_note, "%s %s", nrg_isa_name(paths[p]), nrg_dtype_name(dtype));
            nrg_recurrent_args args = nrg_recurrent_args_init(DIM, N, w, p0, whole);
            args.dtype = dtype;
            args.w_dtype = args.p0_dtype = NRG_F32;
            args.b = b;
            args.chains = CHAINS;
            run_forward(&args);
            for (size_t first = 1; first < N; first += 3) {
                args.p0 = p0;
                args.p0_dtype = NRG_F32;
                args.p0_stride = 0;
                args.p = parts;
                args.p_chain_stride = chain;
                args.n = first;
                run_forward(&args);
                args.p0 = parts + (first - 1) * vector;
                args.p0_dtype = NRG_DTYPE_SAME;
                args.p0_stride = chain;
                args.p = parts + first * vector;
                args.n = N - first;
                run_forward(&args);
                ck_assert_msg(memcmp(whole, parts, CHAINS * chain) == 0, "%s: continued after %zu", test_note, first);
            }
            for (size_t c = 0; c < CHAINS; c++) {
                args = nrg_recurrent_args_init(DIM, N, w, p0 + c * DIM, parts);
                args.dtype = dtype;
                args.w_dtype = args.p0_dtype = NRG_F32;
                args.b = b;
                run_forward(&args);
                ck_assert_msg(memcmp(whole + c * chain, parts, chain) == 0, "%s: chain %zu alone", test_note, c);
            }
            free(w);
            free(b);
            free(p0);
        }
}
END_TEST

/* Without positions there is nothing to be passed on; without chains there is nothing at all. */
START_TEST(nothing_to_do)
{
    enum { DIM = 5 };
    float w[DIM * DIM], dw[DIM * DIM], db[DIM], dp0[2 * DIM];
    nrg_isa paths[NRG_ISA_COUNT];
    const size_t path_count = test_paths(paths);
    for (size_t p = 0; p < path_count; p++)
        for (size_t chains = 0; chains < 3; chains += 2)
            for (int accumulate = 0; accumulate < 2; accumulate++) {
                ck_assert_int_eq(nrg_isa_set(paths[p]), NRG_OK);
                for (size_t i = 0; i < DIM * DIM; i++)
                    w[i] = dw[i] = db[i % DIM] = dp0[i % (2 * DIM)] = 3;
                nrg_recurrent_backward_args args = nrg_recurrent_backward_args_init(DIM, 0, NULL, NULL, NULL, NULL);
                args.chains = chains;
                args.accumulate = accumulate;
                args.dw = dw;
                args.db = db;
                args.dp0 = dp0;
                size_t bytes = 1;
                ck_assert_int_eq(nrg_recurrent_workspace(&args, &bytes), NRG_OK);
                ck_assert_uint_eq(bytes, 0);
                ck_assert_int_eq(nrg_recurrent_backward(&args, 0, 1), NRG_OK);
                ck_assert_int_eq(nrg_recurrent_backward_reduce(&args, 0, 1), NRG_OK);
                for (size_t i = 0; i < DIM * DIM; i++)
                    ck_assert(dw[i] == (accumulate ? 3 : 0) && db[i % DIM] == (accumulate ? 3 : 0));
                for (size_t i = 0; i < 2 * DIM; i++)
                    ck_assert(dp0[i] == (chains ? 0 : 3));
                nrg_recurrent_args forwards = nrg_recurrent_args_init(DIM, chains ? 0 : 4, NULL, NULL, NULL);
                forwards.chains = chains;
                ck_assert_int_eq(nrg_recurrent_forward(&forwards, 0, 1), NRG_OK);
            }
    ck_assert(w[0] == 3);
}
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    call_start();
    Suite *suite = suite_create("recurrent encodings: paths against scalar");
    TCase *sweeps = test_case(suite, "paths against scalar");
    tcase_add_loop_test(sweeps, dims_of_any_size, 0, sizeof dims / sizeof dims[0]);
    tcase_add_loop_test(sweeps, long_vectors, 0, 3);
    TCase *chains = test_case(suite, "chains");
    tcase_add_test(chains, chains_continued_and_alone);
    tcase_add_test(chains, nothing_to_do);
    TCase *account = test_case(suite, "account");
    tcase_add_test(account, account_of_forward);
    tcase_add_test(account, account_of_backward);
    tcase_add_test(account, account_of_reduce);
    return test_run(suite);
}
