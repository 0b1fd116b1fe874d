/* The cases of softmax, whole rows, parts of rows and cross-entropy, whose kernel it is, and of softmax_backward: rows of any
 * length, with and without each of the things that scores have added to them or that they are cut by.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "../../src/operands/cross_entropy.h"
#include "../../src/operands/softmax.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"

enum { WHOLE, LOG, PART, CROSS_ENTROPY, WAYS };

/* A row of more than one chunk, of more than a segment, and what is streamed. */
static const size_t large[][4] = {{1, 2, 70, 65},  {2, 1, 3, 1000}, {1, 3, 5, 2047},  {1, 1, 2, 2049}, {1, 1, 1, 9001},
                                  {2, 2, 33, 129}, {1, 1, 1, 4096}, {1, 2, 500, 640}, {2, 3, 5, 64},   {1, 2, 3, 1024},
                                  {1, 2, 3, 4096}, {1, 1, 2, 8200}, {1, 1, 2, 4300}};
enum { LARGE = sizeof large / sizeof large[0] };

#define LENGTHS(ways_) SWEEP_LENGTHS(ways_, 40, 140, 600, LARGE)

typedef struct cut {
    int causal;
    int64_t first_position;
    size_t window;
} cut;

static cut draw_cut(const size_t shape[4], uint64_t *random)
{
    cut c = {.causal = sweep_draw(random, 3) == 0};
    const int64_t keys = (int64_t)shape[3], queries = (int64_t)shape[2];
    c.first_position =
        sweep_draw(random, 3) ? keys - queries : (int64_t)sweep_draw(random, (unsigned)(2 * shape[3] + 8)) - keys - 4;
    c.window = sweep_draw(random, 3) == 0 ? 1 + sweep_draw(random, (unsigned)shape[3] + 20) : SIZE_MAX;
    return c;
}

static void describe_cut(cut c, char text[SWEEP_TEXT_ROOM])
{
    if (c.causal || c.window != SIZE_MAX)
        sweep_append(text, ", offset %ld%s", (long)c.first_position, c.causal ? ", causal" : "");
    if (c.window != SIZE_MAX)
        sweep_append(text, ", window %zu", c.window);
}

static const float scales[] = {1, 1, 0.125f, -0.7f, 40, 0.08838835f};
static const float caps[] = {INFINITY, INFINITY, INFINITY, 30, 0.5f};

/* ---- forward ---- */

typedef struct softmax_case {
    nrg_softmax_args args;
    nrg_softmax_state state;
    uint32_t there;
} softmax_case;

static softmax_case draw(const sweep_case *c)
{
    static const unsigned most[] = {2, 4, 7};
    uint64_t random = c->seed;
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, &random);
    softmax_case s = {.args = nrg_softmax_args_init(c->spec.dtype, shape[0], shape[1], shape[2], shape[3], NULL, NULL),
                      .state = nrg_softmax_state_init(NULL, NULL, NULL)};
    nrg_softmax_args *a = &s.args;
    const cut limits = draw_cut(shape, &random);
    a->causal = limits.causal;
    a->first_position = limits.first_position;
    a->window = limits.window;
    a->log = c->way == LOG;
    a->store = c->store;
    a->scale = scales[sweep_draw(&random, NRG_COUNT(scales))];
    a->cap = caps[sweep_draw(&random, NRG_COUNT(caps))];
    a->mask_dtype = (nrg_dtype)sweep_draw(&random, 4);
    if (c->way != PART && sweep_draw(&random, 3) == 0) { /* scores and nothing else, which have a walk of their own */
        a->scale = fabsf(a->scale);
        a->cap = INFINITY;
        a->causal = 0;
        a->window = SIZE_MAX;
        return s;
    }
    if (sweep_draw(&random, 2)) {
        s.there |= NRG_BIT(NRG_SOFTMAX_MASK);
        if (sweep_draw(&random, 3) == 0)
            s.there |= NRG_BIT(NRG_SOFTMAX_SLOPES);
    }
    if (sweep_draw(&random, 3) == 0)
        s.there |= NRG_BIT(NRG_SOFTMAX_DIAGONALS);
    if (sweep_draw(&random, 3) == 0)
        s.there |= NRG_BIT(NRG_SOFTMAX_SINKS);
    if (c->way == PART && sweep_draw(&random, 4))
        s.there |= NRG_BIT(NRG_SOFTMAX_PART_M_IN) | NRG_BIT(NRG_SOFTMAX_PART_SUM_IN);
    return s;
}

static const nrg_call *call_of(const sweep_case *c)
{
    return c->way == PART ? &nrg_call_softmax_part : &nrg_call_softmax_forward;
}

/* Options depend on a mask, and on a state so far, being there. */
static void announce(softmax_case *s)
{
    static const float number = 0;
    static const double wide = 0;
    if (s->there & NRG_BIT(NRG_SOFTMAX_MASK))
        s->args.mask = &number;
    if (s->there & NRG_BIT(NRG_SOFTMAX_PART_M_IN)) {
        s->state.m_in = &number;
        s->state.sum_in = &wide;
    }
}

/* Cross-entropy: rows of a head, and then their gradient. */
enum { X = SWEEP_IN, IDS, D_LOSS };
enum { LOSS = SWEEP_OUT, M, OTHERS, DX };
static const unsigned char ahead[] = {[NRG_CROSS_ENTROPY_X] = X,
                                      [NRG_CROSS_ENTROPY_IDS] = IDS,
                                      [NRG_CROSS_ENTROPY_LOSS] = LOSS,
                                      [NRG_CROSS_ENTROPY_M] = M,
                                      [NRG_CROSS_ENTROPY_OTHERS] = OTHERS};
#ifndef NRG_NO_BACKWARD
static const unsigned char back[] = {
    [NRG_CROSS_ENTROPY_BACKWARD_X] = X,           [NRG_CROSS_ENTROPY_BACKWARD_IDS] = IDS,
    [NRG_CROSS_ENTROPY_BACKWARD_M_IN] = M,        [NRG_CROSS_ENTROPY_BACKWARD_OTHERS_IN] = OTHERS,
    [NRG_CROSS_ENTROPY_BACKWARD_D_LOSS] = D_LOSS, [NRG_CROSS_ENTROPY_BACKWARD_DX] = DX};
#endif

static nrg_cross_entropy_args rows_of(const sweep_case *c)
{
    const nrg_softmax_args a = draw(c).args;
    nrg_cross_entropy_args args =
        nrg_cross_entropy_args_init(a.dtype, a.batch * a.heads * a.queries, a.keys, NULL, NULL, NULL, NULL, NULL);
    args.ignore_index = c->seed % 3 ? -100 : 0;
    return args;
}

static void make_cross_entropy(sweep_case *c)
{
    nrg_cross_entropy_args args = rows_of(c);
    uint64_t random = ~(c->seed << 8);
    c->rows = args.rows;
    c->shares = sweep_draw_shares(&random);
    sweep_add_call(c, &nrg_call_cross_entropy_forward, (void *const[]){&args}, ahead, 0, 0);
#ifndef NRG_NO_BACKWARD
    args = rows_of(c);
    sweep_add_call(c, &nrg_call_cross_entropy_backward, (void *const[]){&args}, back, 0, 0);
#endif
    sweep_lay_out(c, &random);
}

static nrg_status run_cross_entropy(const sweep_case *c, unsigned char *memory)
{
    nrg_cross_entropy_args args = rows_of(c);
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_cross_entropy_forward, (void *const[]){&args}, ahead, memory);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_cross_entropy_forward(&args, ith, nth));
#ifndef NRG_NO_BACKWARD
    args = rows_of(c);
    sweep_bind_call(c, &nrg_call_cross_entropy_backward, (void *const[]){&args}, back, memory);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_cross_entropy_backward(&args, ith, nth));
#endif
    return status;
}

static void fill(const sweep_case *c, int operand, unsigned char *memory, uint64_t *random)
{
    if (c->way == CROSS_ENTROPY && operand == IDS)
        sweep_fill_positions(c, operand, 0, (int32_t)draw(c).args.keys - 1, memory, random);
    else
        sweep_fill_rows(c, operand, memory, random);
}

static void make(sweep_case *c)
{
    if (c->way == CROSS_ENTROPY) {
        make_cross_entropy(c);
        return;
    }
    c->store = (nrg_store)(c->n / 5 % 3);
    softmax_case s = draw(c);
    uint64_t random = ~(c->seed << 8);
    c->rows = s.args.batch * s.args.heads * s.args.queries;
    c->shares = sweep_draw_shares(&random);
    announce(&s);
    sweep_add_call(c, call_of(c), (void *const[]){&s.args, &s.state}, NULL, s.there, 0);
    sweep_lay_out(c, &random);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    if (c->way == CROSS_ENTROPY)
        return run_cross_entropy(c, memory);
    softmax_case s = draw(c);
    nrg_status status = NRG_OK;
    announce(&s);
    sweep_bind_call(c, call_of(c), (void *const[]){&s.args, &s.state}, NULL, memory);
    if (c->way == PART)
        SWEEP_EACH_SHARE(status, c, c->shares, nrg_softmax_part(&s.args, &s.state, ith, nth))
    else
        SWEEP_EACH_SHARE(status, c, c->shares, nrg_softmax_forward(&s.args, ith, nth))
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const kinds[] = {"", " log", " part", " cross-entropy"};
    const softmax_case s = draw(c);
    const nrg_softmax_args *a = &s.args;
    sweep_append(text, "%s %zux%zux%zux%zu times %g", kinds[c->way], a->batch, a->heads, a->queries, a->keys, (double)a->scale);
    if (isfinite(a->cap))
        sweep_append(text, ", cap %g", (double)a->cap);
    if (s.there & NRG_BIT(NRG_SOFTMAX_MASK))
        sweep_append(text, ", mask of %s%s", nrg_dtype_name(a->mask_dtype),
                     s.there & NRG_BIT(NRG_SOFTMAX_SLOPES) ? " with slopes" : "");
    sweep_append(text, "%s%s", s.there & NRG_BIT(NRG_SOFTMAX_DIAGONALS) ? ", diagonals" : "",
                 s.there & NRG_BIT(NRG_SOFTMAX_SINKS) ? ", sinks" : "");
    describe_cut((cut){a->causal, a->first_position, a->window}, text);
}

const sweep_family sweep_family_softmax = {LENGTHS(WAYS), .make = make, .fill = fill, .run = run, .describe = describe};

#ifndef NRG_NO_BACKWARD
/* ---- backward ---- */

static nrg_softmax_backward_args draw_backward(const sweep_case *c)
{
    static const unsigned most[] = {2, 4, 7};
    uint64_t random = c->seed;
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, &random);
    nrg_softmax_backward_args a =
        nrg_softmax_backward_args_init(c->spec.dtype, shape[0], shape[1], shape[2], shape[3], NULL, NULL, NULL);
    const cut limits = draw_cut(shape, &random);
    a.causal = limits.causal;
    a.first_position = limits.first_position;
    a.window = limits.window;
    a.log = c->way == LOG;
    a.store = c->store;
    a.scale = scales[sweep_draw(&random, NRG_COUNT(scales))];
    a.cap = caps[sweep_draw(&random, NRG_COUNT(caps))];
    return a;
}

static void make_backward(sweep_case *c)
{
    c->store = (nrg_store)(c->n / 5 % 3);
    nrg_softmax_backward_args a = draw_backward(c);
    uint64_t random = ~(c->seed << 8);
    c->rows = a.batch * a.heads * a.queries;
    c->shares = sweep_draw_shares(&random);
    sweep_add_call(c, &nrg_call_softmax_backward, (void *const[]){&a}, NULL,
                   isfinite(a.cap) ? NRG_BIT(NRG_SOFTMAX_BACKWARD_X) : 0, 0);
    sweep_lay_out(c, &random);
}

static nrg_status run_backward(const sweep_case *c, unsigned char *memory)
{
    nrg_softmax_backward_args a = draw_backward(c);
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_softmax_backward, (void *const[]){&a}, NULL, memory);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_softmax_backward(&a, ith, nth));
    return status;
}

static void describe_backward(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const nrg_softmax_backward_args a = draw_backward(c);
    sweep_append(text, "%s %zux%zux%zux%zu times %g", a.log ? " log" : "", a.batch, a.heads, a.queries, a.keys, (double)a.scale);
    if (isfinite(a.cap))
        sweep_append(text, ", cap %g", (double)a.cap);
    describe_cut((cut){a.causal, a.first_position, a.window}, text);
}

const sweep_family sweep_family_softmax_backward = {LENGTHS(2), .make = make_backward, .run = run_backward,
                                                    .describe = describe_backward};
#endif
