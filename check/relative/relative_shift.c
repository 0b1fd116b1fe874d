/* The cases of relative_shift, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/relative_shift.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"

/* Every number of keys, as Transformer-XL and XLNet have it or with any shift, forward and backward. */
enum { TRANSFORMER_XL, XLNET, ANY, KINDS };
#ifdef NRG_NO_BACKWARD
enum { WAYS = KINDS };
#else
enum { WAYS = 2 * KINDS };
#endif

static const size_t large[][4] = {{1, 2, 70, 65},  {2, 1, 3, 1000}, {1, 3, 130, 7},
                                  {1, 1, 1, 4097}, {2, 2, 33, 129}, {1, 8, 64, 64}};
enum { LARGE = sizeof large / sizeof large[0] };

typedef struct shift_case {
    const nrg_call *call;
    nrg_relative_shift_args args;
    uint32_t transposed;
} shift_case;

static int is_backward(const sweep_case *c) { return c->way >= KINDS; }

static shift_case draw(const sweep_case *c)
{
    static const unsigned most[] = {2, 3, 9};
    shift_case s = {.call = is_backward(c) ? &nrg_call_relative_shift_backward : &nrg_call_relative_shift_forward};
    uint64_t random = c->seed;
    const int kind = (int)(c->n % KINDS);
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, &random);
    const size_t queries = shape[2], keys = shape[3];
    size_t rel = kind == TRANSFORMER_XL ? keys : queries + keys;
    int64_t shift = kind == TRANSFORMER_XL ? (int64_t)queries - 1 : (int64_t)queries;
    if (kind == ANY) {
        rel = 1 + sweep_draw(&random, 2 * (unsigned)keys);
        shift = (int64_t)sweep_draw(&random, 3 * (unsigned)keys) - (int64_t)keys;
    }
    s.transposed |= sweep_draw(&random, 3) ? 0 : NRG_BIT(NRG_RELATIVE_SHIFT_IN);
    s.transposed |= sweep_draw(&random, 3) ? 0 : NRG_BIT(NRG_RELATIVE_SHIFT_OUT);
    s.args = nrg_relative_shift_args_init(c->spec.dtype, shape[0], shape[1], queries, keys, rel, shift);
    s.args.accumulate = sweep_draw(&random, 3) == 0;
    s.args.store = c->store;
    return s;
}

static void make(sweep_case *c)
{
    c->store = (nrg_store)(c->n / 7 % 3);
    shift_case s = draw(c);
    uint64_t random = ~(c->seed << 8);
    c->rows = s.args.batch;
    c->shares = sweep_draw_shares(&random);
    c->accumulate = s.args.accumulate;
    sweep_add_call(c, s.call, (void *const[]){&s.args}, NULL, 0, s.transposed);
    sweep_lay_out(c, &random);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    shift_case s = draw(c);
    nrg_status status = NRG_OK;
    sweep_bind_call(c, s.call, (void *const[]){&s.args}, NULL, memory);
#ifndef NRG_NO_BACKWARD
    if (is_backward(c)) {
        SWEEP_EACH_SHARE(status, c, c->shares, nrg_relative_shift_backward(&s.args, ith, nth));
        return status;
    }
#endif
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_relative_shift_forward(&s.args, ith, nth));
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const nrg_relative_shift_args a = draw(c).args;
    sweep_append(text, " %zux%zux%zux%zu, rel %zu, shift %ld%s", a.batch, a.heads, a.queries, a.keys, a.rel, (long)a.shift,
                 is_backward(c) ? ", backward" : "");
}

const sweep_family sweep_family_relative_shift = {SWEEP_LENGTHS(WAYS, 40, 140, 600, LARGE), .make = make, .run = run,
                                                  .describe = describe};
