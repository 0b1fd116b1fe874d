/* nrg_floater_forward and nrg_floater_backward: the method they say they are, the order of the calls, positions in several calls
 * with the bits of one, and no byte touched that is not theirs. floater_gradient_test.c has the gradients.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "../../src/operands/recurrent.h"
#include "../harness/call_harness.h"
#include "../harness/element.h"
#include "floater_dynamics.h"

/* ---- the order of the method ---- */

/* x′ = -y, y′ = x: (cos t, sin t). */
static void rotation(void *user, double t, size_t dim, const float *p, float *dp_dt)
{
    (void)user, (void)t, (void)dim;
    dp_dt[0] = -p[1];
    dp_dt[1] = p[0];
}

/* x′ = x·(1 - x) and y′ = -2·t·y: 1/(1 + e^-t), e^-t². */
static void growth_and_decay(void *user, double t, size_t dim, const float *p, float *dp_dt)
{
    (void)user, (void)dim;
    dp_dt[0] = p[0] * (1 - p[0]);
    dp_dt[1] = (float)(-2 * t * (double)p[1]);
}

/* The worst error at t = 2, in steps of 2/substeps. */
static double error_of(nrg_floater_h h, const float *p0, const double *exact, size_t substeps)
{
    nrg_floater_spec spec = nrg_floater_spec_init(NRG_F32, 2, 2, h, NULL, NULL);
    double states[2][2];
    float p[2][2];
    spec.substeps = substeps / 2;
    forward(&spec, p0, p, states[0]);
    double x = fabs(states[1][0] - exact[0]), y = fabs(states[1][1] - exact[1]);
    return x > y ? x : y;
}

/* Steps so wide that h in f32 does no harm. */
START_TEST(fourth_order)
{
    static const float starts[2][2] = {{1, 0}, {0.5f, 1}};
    const double exact[2][2] = {{cos(2), sin(2)}, {1 / (1 + exp(-2)), exp(-4)}};
    const nrg_floater_h h = _i ? growth_and_decay : rotation;
    double last = error_of(h, starts[_i], exact[_i], _i ? 8 : 4);
    for (size_t substeps = _i ? 16 : 8; substeps <= (_i ? 32u : 16u); substeps *= 2) {
        const double error = error_of(h, starts[_i], exact[_i], substeps);
        ck_assert_msg(error < last / 12 && error > last / 24, "%zu substeps: %g after %g, %g times less", substeps, error, last,
                      last / error);
        last = error;
    }
    ck_assert(last < 1e-4);
}
END_TEST

/* ---- the definition, to the bit ---- */

/* Position k + 1 from k, as docs/ops/recurrent.md says it. */
static void plain_interval(const nrg_floater_spec *spec, double *state, double from, double to)
{
    const size_t dim = spec->dim;
    float input[BENT_MOST], k1[BENT_MOST], k2[BENT_MOST], k3[BENT_MOST], k4[BENT_MOST];
    const double step = (to - from) / (double)spec->substeps, half = step / 2, sixth = step / 6;
    for (size_t substep = 0; substep < spec->substeps; substep++) {
        const double t = from + (double)substep * step;
        const double end = substep + 1 == spec->substeps ? to : from + (double)(substep + 1) * step;
        for (size_t i = 0; i < dim; i++)
            input[i] = (float)state[i];
        spec->h(spec->user, t, dim, input, k1);
        for (size_t i = 0; i < dim; i++)
            input[i] = (float)(state[i] + half * (double)k1[i]);
        spec->h(spec->user, t + half, dim, input, k2);
        for (size_t i = 0; i < dim; i++)
            input[i] = (float)(state[i] + half * (double)k2[i]);
        spec->h(spec->user, t + half, dim, input, k3);
        for (size_t i = 0; i < dim; i++)
            input[i] = (float)(state[i] + step * (double)k3[i]);
        spec->h(spec->user, end, dim, input, k4);
        for (size_t i = 0; i < dim; i++)
            state[i] += sixth * ((((double)k1[i] + 2 * (double)k2[i]) + 2 * (double)k3[i]) + (double)k4[i]);
    }
}

START_TEST(bits)
{
    static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};
    enum { N = 6 };
    for (size_t d = 0; d < 3; d++)
        for (size_t dim = 1; dim <= BENT_MOST; dim += 9)
            for (size_t substeps = 1; substeps < 4; substeps++) {
                bent x = make_bent(dim);
                unsigned char p0[BENT_MOST * 4], p[N * BENT_MOST * 4], expected[N * BENT_MOST * 4];
                double states[N * BENT_MOST], state[BENT_MOST];
                float values[BENT_MOST];
                nrg_floater_spec spec = nrg_floater_spec_init(dtypes[d], N, dim, bent_h, NULL, &x);
                spec.substeps = substeps;
                spec.t0 = 0.1;
                spec.dt = 0.3;
                fill(values, dim, dim + 7);
                for (size_t i = 0; i < dim; i++) {
                    element_set(p0, i, spec.dtype, values[i]);
                    state[i] = element_get(p0, i, spec.dtype);
                }
                forward(&spec, p0, p, states);
                ck_assert_uint_eq(x.calls, 4 * N * substeps);
                for (size_t k = 0; k < N; k++) {
                    plain_interval(&spec, state, 0.1 + (double)k * 0.3, 0.1 + (double)(k + 1) * 0.3);
                    ck_assert(memcmp(state, states + k * dim, dim * sizeof *state) == 0);
                    for (size_t i = 0; i < dim; i++)
                        element_set(expected, k * dim + i, spec.dtype, (float)state[i]);
                }
                ck_assert(memcmp(p, expected, N * dim * nrg_dtype_size(spec.dtype)) == 0);

                /* given times are times */
                double times[N + 1];
                for (size_t k = 0; k <= N; k++)
                    times[k] = 0.1 + (double)k * 0.3;
                spec.times = times;
                spec.t0 = 0;
                spec.dt = NAN; /* not looked at */
                memset(p, 0, sizeof p);
                forward(&spec, p0, p, NULL);
                ck_assert(memcmp(p, expected, N * dim * nrg_dtype_size(spec.dtype)) == 0);
            }
}
END_TEST

/* ---- the calls and their order ---- */

enum { MOST_CALLS = 512, LOG_DIM = 2 };

typedef struct call_log {
    int count;
    char what[MOST_CALLS];
    double time[MOST_CALLS];
    float p[MOST_CALLS][LOG_DIM];
} call_log;

static void note_call(call_log *log, char what, double t, const float *p)
{
    ck_assert_int_lt(log->count, MOST_CALLS);
    log->what[log->count] = what;
    log->time[log->count] = t;
    memcpy(log->p[log->count++], p, sizeof log->p[0]);
}

static void logged_h(void *user, double t, size_t dim, const float *p, float *dp_dt)
{
    (void)dim;
    note_call(user, 'h', t, p);
    dp_dt[0] = -p[1] + (float)t;
    dp_dt[1] = p[0] * 0.5f;
}

static void logged_vjp(void *user, double t, size_t dim, const float *p, const float *v, float *vt_dh_dp)
{
    (void)dim;
    note_call(user, 'v', t, p);
    vt_dh_dp[0] = v[1] * 0.5f;
    vt_dh_dp[1] = -v[0];
}

START_TEST(order_of_calls)
{
    enum { N = 3, SUBSTEPS = 3 };
    static const double times[N + 1] = {-2, 0.1, 2.3, 1.1}; /* the last substep ends where the position is, to the bit */
    static const float p0[LOG_DIM] = {0.25f, -1}, dp[N][LOG_DIM] = {{1, 2}, {3, 4}, {5, 6}};
    static call_log forwards, backwards;
    float p[N][LOG_DIM], d_p0[LOG_DIM];
    double states[N][LOG_DIM];
    nrg_floater_spec spec = nrg_floater_spec_init(NRG_F32, N, LOG_DIM, logged_h, logged_vjp, &forwards);
    spec.times = times;
    spec.substeps = SUBSTEPS;
    forward(&spec, p0, p, states[0]);
    int at = 0;
    int rounded = 0;
    for (int k = 0; k < N; k++) {
        const double from = times[k], to = times[k + 1], step = (to - from) / SUBSTEPS;
        rounded += from + SUBSTEPS * step != to;
        for (int substep = 0; substep < SUBSTEPS; substep++, at += 4) {
            const double begin = from + substep * step, end = substep + 1 < SUBSTEPS ? from + (substep + 1) * step : to;
            ck_assert(memcmp(forwards.what + at, "hhhh", 4) == 0);
            ck_assert(forwards.time[at] == begin && forwards.time[at + 3] == end);
            ck_assert(forwards.time[at + 1] == begin + step / 2 && forwards.time[at + 2] == begin + step / 2);
        }
    }
    ck_assert_int_gt(rounded, 0);
    ck_assert_int_eq(forwards.count, at);

    for (int with_states = 0; with_states < 2; with_states++) {
        memset(&backwards, 0, sizeof backwards);
        spec.user = &backwards;
        backward(&spec, p0, with_states ? states[0] : NULL, dp, d_p0);
        at = 0;
        for (; !with_states && at < 4 * SUBSTEPS * (N - 1); at++)
            ck_assert(backwards.what[at] == 'h' && backwards.time[at] == forwards.time[at] &&
                      memcmp(backwards.p[at], forwards.p[at], sizeof forwards.p[0]) == 0);
        for (int k = N - 1; k >= 0; k--) {
            const int first = 4 * SUBSTEPS * k;
            for (int i = 0; i < 4 * SUBSTEPS - 1; i++, at++)
                ck_assert(backwards.what[at] == 'h' && backwards.time[at] == forwards.time[first + i] &&
                          memcmp(backwards.p[at], forwards.p[first + i], sizeof forwards.p[0]) == 0);
            for (int i = 4 * SUBSTEPS - 1; i >= 0; i--, at++)
                ck_assert(backwards.what[at] == 'v' && backwards.time[at] == forwards.time[first + i] &&
                          memcmp(backwards.p[at], forwards.p[first + i], sizeof forwards.p[0]) == 0);
        }
        ck_assert_int_eq(backwards.count, at);
    }
}
END_TEST

/* ---- in parts, in shares ---- */

START_TEST(positions_in_two_calls)
{
    enum { DIM = 11, N = 7 };
    float p0[DIM], p[N][DIM], parts[N][DIM], dp[N][DIM], d_p0[DIM], parts_d_p0[DIM];
    double states[N][DIM], parts_states[N][DIM], d_state0[DIM];
    bent x = make_bent(3), whole;
    fill(p0, DIM, 1);
    fill(dp[0], N * DIM, 2);
    nrg_floater_spec spec = nrg_floater_spec_init(NRG_F32, N, DIM, bent_h, bent_vjp, &x);
    double times[N + 1] = {0, 0.5, 1, 1.25, 2, 2.125, 3, 4};
    spec.times = times;
    spec.substeps = 2;
    forward(&spec, p0, p[0], states[0]);
    backward(&spec, p0, states[0], dp[0], d_p0);
    whole = x;
    for (size_t first = 1; first < N; first++) {
        memset(x.da, 0, sizeof x.da);
        memset(x.db, 0, sizeof x.db);
        static double workspace[4096];
        nrg_floater_args args = nrg_floater_args_init(p0, parts[0]);
        args.workspace = workspace;
        args.workspace_size = sizeof workspace;
        args.states = parts_states[0];
        spec.times = times;
        spec.positions = first;
        check(nrg_floater_forward(&spec, &args, 0, 1));
        args = nrg_floater_args_init(NULL, parts[first]);
        args.workspace = workspace;
        args.workspace_size = sizeof workspace;
        args.state0 = parts_states[first - 1];
        args.states = parts_states[first];
        spec.times = times + first;
        spec.positions = N - first;
        check(nrg_floater_forward(&spec, &args, 0, 1));
        ck_assert(memcmp(p, parts, sizeof p) == 0 && memcmp(states, parts_states, sizeof states) == 0);

        nrg_floater_backward_args back = nrg_floater_backward_args_init(NULL, dp[first], NULL);
        back.workspace = workspace;
        back.workspace_size = sizeof workspace;
        back.state0 = states[first - 1];
        back.d_state0 = d_state0;
        check(nrg_floater_backward(&spec, &back, 0, 1));
        back = nrg_floater_backward_args_init(p0, dp[0], parts_d_p0);
        back.workspace = workspace;
        back.workspace_size = sizeof workspace;
        back.d_state_n = d_state0;
        back.d_state0 = d_state0;
        spec.times = times;
        spec.positions = first;
        check(nrg_floater_backward(&spec, &back, 0, 1));
        ck_assert(memcmp(d_p0, parts_d_p0, sizeof d_p0) == 0);
        ck_assert(memcmp(whole.da, x.da, sizeof x.da) == 0 && memcmp(whole.db, x.db, sizeof x.db) == 0);
        for (size_t i = 0; i < DIM; i++)
            ck_assert((float)d_state0[i] == d_p0[i]);
    }
}
END_TEST

START_TEST(other_shares_do_nothing)
{
    enum { DIM = 3, N = 2 };
    float p0[DIM] = {1, 2, 3}, p[N * DIM] = {0}, dp[N * DIM] = {1}, d_p0[DIM] = {0};
    double workspace[256] = {0};
    bent x = make_bent(1);
    nrg_floater_spec spec = nrg_floater_spec_init(NRG_F32, N, DIM, bent_h, bent_vjp, &x);
    nrg_floater_args args = nrg_floater_args_init(p0, p);
    args.workspace = workspace;
    args.workspace_size = sizeof workspace;
    nrg_floater_backward_args back = nrg_floater_backward_args_init(p0, dp, d_p0);
    back.workspace = workspace;
    back.workspace_size = sizeof workspace;
    for (int ith = 1; ith < 4; ith++) {
        check(nrg_floater_forward(&spec, &args, ith, 4));
        check(nrg_floater_backward(&spec, &back, ith, 4));
    }
    ck_assert_uint_eq(x.calls, 0);
    for (size_t i = 0; i < 256; i++)
        ck_assert(workspace[i] == 0 && p[i % (N * DIM)] == 0 && d_p0[i % DIM] == 0);
    check(nrg_floater_forward(&spec, &args, 0, 4));
    ck_assert_uint_eq(x.calls, 4 * N);
}
END_TEST

/* No positions: the gradient that arrives goes through. */
START_TEST(no_positions)
{
    float d_p0[2] = {7, 7};
    double d_state_n[2] = {0.1, -2}, d_state0[2] = {7, 7};
    nrg_floater_spec spec = nrg_floater_spec_init(NRG_F32, 0, 2, NULL, NULL, NULL);
    nrg_floater_args args = nrg_floater_args_init(NULL, NULL);
    nrg_floater_backward_args back = nrg_floater_backward_args_init(NULL, NULL, d_p0);
    check(nrg_floater_forward(&spec, &args, 0, 1));
    back.d_state0 = d_state0;
    check(nrg_floater_backward(&spec, &back, 0, 1));
    ck_assert(d_p0[0] == 0 && d_p0[1] == 0 && d_state0[0] == 0 && d_state0[1] == 0);
    back.d_state_n = d_state_n;
    check(nrg_floater_backward(&spec, &back, 0, 1));
    ck_assert(d_p0[0] == 0.1f && d_p0[1] == -2 && d_state0[0] == 0.1 && d_state0[1] == -2);
}
END_TEST

/* ---- memory ---- */

START_TEST(workspaces)
{
    enum { DIM = 5, N = 3 };
    static const double state[DIM];
    nrg_floater_spec spec = nrg_floater_spec_init(NRG_F32, N, DIM, NULL, NULL, NULL);
    nrg_floater_backward_args back = nrg_floater_backward_args_init(NULL, NULL, NULL);
    size_t bytes;
    check(nrg_floater_workspace(&spec, &bytes));
    ck_assert_uint_eq(bytes, 24 * DIM);
    for (size_t substeps = 1; substeps < 4; substeps++) {
        spec.substeps = substeps;
        back.states = NULL;
        check(nrg_floater_backward_workspace(&spec, &back, &bytes));
        ck_assert_uint_eq(bytes, (32 + 16 * substeps) * DIM + 8 * N * DIM);
        back.states = state;
        check(nrg_floater_backward_workspace(&spec, &back, &bytes));
        ck_assert_uint_eq(bytes, (32 + 16 * substeps) * DIM);
    }
}
END_TEST

/* A call of either direction, with the operands that its description has. */
typedef struct memory_case {
    const nrg_call *call;
    nrg_floater_spec spec;
    nrg_floater_args forward;
    nrg_floater_backward_args backward;
    void *part[2];
    call_operand operands[NRG_FLOATER_BACKWARD_OPERANDS];
    bent x;
} memory_case;

static call_operand operand_of(const nrg_operand *o, const nrg_sizes *s)
{
    static const call_role roles[] = {[NRG_IN] = CALL_INPUT, [NRG_OUT] = CALL_OUTPUT, [NRG_SCRATCH] = CALL_SCRATCH};
    const int chosen = o->element >= NRG_ELEMENT_CHOSEN ? (int)s->type[o->element - NRG_ELEMENT_CHOSEN] : NRG_F32;
    return (call_operand){.name = o->name,
                          .type = o->element == NRG_ELEMENT_F64 ? CALL_F64 : chosen,
                          .role = roles[o->role],
                          .rows = s->n[o->level[0].count],
                          .dim = s->n[o->dim],
                          .padded = o->level[0].stride != 0,
                          .optional = o->role == NRG_OUT && o->may_be_absent,
                          .over = o->over,
                          .kinds = 1u << ROW_NORMAL | 1u << ROW_ONE_NAN | 1u << ROW_SUBNORMAL};
}

static nrg_status run(void *context, const call_operand *all, int ith, int nth)
{
    const memory_case *m = context;
    for (int i = 0; i < m->call->operand_count; i++) {
        const nrg_operand *o = &m->call->operands[i];
        char *part = m->part[o->part];
        memcpy(part + o->at, &all[i].at, sizeof all[i].at);
        if (o->level[0].stride)
            memcpy(part + o->level[0].stride, &all[i].stride, sizeof all[i].stride);
        const size_t bytes = all[i].dim * sizeof(double);
        if (o->room)
            memcpy(part + o->room, &bytes, sizeof bytes);
    }
    return m->call == &nrg_call_floater_forward ? nrg_floater_forward(&m->spec, &m->forward, ith, nth)
                                                : nrg_floater_backward(&m->spec, &m->backward, ith, nth);
}

static void sweep(memory_case *m, const char *op, const nrg_call *call, void *args, uint32_t absent)
{
    static const double zero;
    const double *const any = &zero;
    nrg_sizes s = {.n = {[NRG_ONE] = 1}};
    m->call = call;
    m->part[NRG_FLOATER_SPEC] = &m->spec;
    m->part[NRG_FLOATER_ARGS] = args;
    for (int i = 0; i < call->operand_count; i++)
        if (!(absent >> i & 1))
            memcpy((char *)m->part[call->operands[i].part] + call->operands[i].at, &any, sizeof any);
    check(call->measure((const void *const *)m->part, &s));
    for (int i = 0; i < call->operand_count; i++)
        m->operands[i] = absent >> i & 1 ? (call_operand){.name = call->operands[i].name} : operand_of(&call->operands[i], &s);
    const call_case c = {.op = op,
                         .dtype = m->spec.dtype,
                         .run = {run},
                         .context = m,
                         .operands = m->operands,
                         .count = call->operand_count,
                         .work = 1,
                         .layouts = 2 * CALL_LAYOUTS,
                         .seed = m->spec.dim};
    call_sweep(&c);
}

START_TEST(memory)
{
    static const nrg_dtype dtypes[] = {NRG_F32, NRG_F16, NRG_BF16};
    for (size_t dim = 1; dim <= 33; dim += test_small() ? 5 : 2) {
        uint64_t state = dim;
        memory_case m = {.spec = nrg_floater_spec_init(dtypes[_i], test_draw(&state, 5) + 1, dim, bent_h, bent_vjp, NULL),
                         .forward = nrg_floater_args_init(NULL, NULL),
                         .backward = nrg_floater_backward_args_init(NULL, NULL, NULL),
                         .x = make_bent(dim)};
        m.spec.user = &m.x;
        m.spec.p0_dtype = test_draw(&state, 2) ? NRG_F32 : NRG_DTYPE_SAME;
        m.spec.substeps = 1 + test_draw(&state, 3);
        const size_t from_state = test_draw(&state, 2), some = test_draw(&state, 8);
        sweep(&m, "floater", &nrg_call_floater_forward, &m.forward,
              NRG_BIT(NRG_FLOATER_TIMES) | NRG_BIT(from_state ? NRG_FLOATER_P0 : NRG_FLOATER_STATE0));
        sweep(&m, "floater backward", &nrg_call_floater_backward, &m.backward,
              NRG_BIT(NRG_FLOATER_BACKWARD_TIMES) | NRG_BIT(from_state ? NRG_FLOATER_BACKWARD_P0 : NRG_FLOATER_BACKWARD_STATE0) |
                  (some & 1 ? NRG_BIT(NRG_FLOATER_BACKWARD_STATES) : 0) |
                  (some > 5 ? NRG_BIT(NRG_FLOATER_BACKWARD_D_STATE_N) : 0));
    }
}
END_TEST

START_TEST(account_of_forward) { call_check_account("floater"); }
END_TEST
START_TEST(account_of_backward) { call_check_account("floater backward"); }
END_TEST

int main(int argc, char **argv)
{
    test_arguments(argc, argv);
    call_start();
    Suite *suite = suite_create("FLOATER");
    TCase *method = test_case(suite, "method");
    tcase_add_loop_test(method, fourth_order, 0, 2);
    tcase_add_test(method, bits);
    TCase *calls = test_case(suite, "calls");
    tcase_add_test(calls, order_of_calls);
    tcase_add_test(calls, positions_in_two_calls);
    tcase_add_test(calls, other_shares_do_nothing);
    tcase_add_test(calls, no_positions);
    TCase *bytes = test_case(suite, "memory");
    tcase_add_test(bytes, workspaces);
    tcase_add_loop_test(bytes, memory, 0, 3);
    tcase_add_test(bytes, account_of_forward);
    tcase_add_test(bytes, account_of_backward);
    return test_run(suite);
}
