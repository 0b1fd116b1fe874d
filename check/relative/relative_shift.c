/* The cases of relative_shift, forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "../position.h"

enum { X = SWEEP_IN, D_SCORES };
enum { SCORES = SWEEP_OUT, DX };

static const char *const names[SWEEP_OPERANDS] = {[X] = "x", [D_SCORES] = "d_scores", [SCORES] = "scores", [DX] = "dx"};

/* Every number of keys, as Transformer-XL and XLNet have it or with any shift, forward and backward. */
enum { TRANSFORMER_XL, XLNET, ANY, KINDS };
#ifdef NRG_NO_BACKWARD
enum { WAYS = KINDS };
#else
enum { WAYS = 2 * KINDS };
#endif

static const struct {
    size_t batch, heads, queries, keys;
} large[] = {{1, 2, 70, 65}, {2, 1, 3, 1000}, {1, 3, 130, 7}, {1, 1, 1, 4097}, {2, 2, 33, 129}, {1, 8, 64, 64}};
enum { LARGE = sizeof large / sizeof large[0] };

static const size_t small[] = {[SWEEP_QUICK] = 40, [SWEEP_DEFAULT] = 140, [SWEEP_FULL] = 600};

static uint64_t count(sweep_level level) { return WAYS * (small[level] + LARGE); }

typedef struct shift_case {
    int kind, backward, from_by_head, to_by_head, accumulate;
    size_t shape[3], keys, rel; /* batch, heads, queries */
    int64_t shift;
} shift_case;

static shift_case draw(const sweep_case *c)
{
    shift_case s;
    uint64_t random = c->number, length = c->n / WAYS;
    memset(&s, 0, sizeof s);
    s.kind = (int)(c->n % KINDS);
    s.backward = c->n % WAYS >= KINDS;
    s.shape[0] = sweep_draw(&random, 24) ? 1 + sweep_draw(&random, 2) : 0;
    s.shape[1] = 1 + sweep_draw(&random, 3);
    s.shape[2] = 1 + sweep_draw(&random, 9);
    s.keys = (size_t)length + 1;
    if (length >= small[c->level]) {
        s.shape[0] = large[length - small[c->level]].batch;
        s.shape[1] = large[length - small[c->level]].heads;
        s.shape[2] = large[length - small[c->level]].queries;
        s.keys = large[length - small[c->level]].keys;
    }
    s.rel = s.kind == TRANSFORMER_XL ? s.keys
            : s.kind == XLNET        ? s.shape[2] + s.keys
                                     : 1 + sweep_draw(&random, 2 * (unsigned)s.keys);
    s.shift = s.kind == TRANSFORMER_XL ? (int64_t)s.shape[2] - 1
              : s.kind == XLNET        ? (int64_t)s.shape[2]
                                       : (int64_t)sweep_draw(&random, 3 * (unsigned)s.keys) - (int64_t)s.keys;
    s.from_by_head = sweep_draw(&random, 3) != 0;
    s.to_by_head = sweep_draw(&random, 3) != 0;
    s.accumulate = sweep_draw(&random, 3) == 0;
    return s;
}

static void make(sweep_level level, uint64_t n, sweep_case *c)
{
    (void)level;
    c->spec.store = (nrg_store)(n / 7 % 3);
    shift_case s = draw(c);
    uint64_t random = ~(c->number << 8);
    int to = s.backward ? DX : SCORES;
    c->rows = s.shape[0];
    c->shares = sweep_draw_shares(&random);
    sweep_add_batches(c, s.backward ? D_SCORES : X, c->spec.dtype, s.backward ? s.keys : s.rel, s.shape, s.from_by_head);
    sweep_add_batches(c, to, c->spec.dtype, s.backward ? s.rel : s.keys, s.shape, s.to_by_head);
    if (s.accumulate)
        sweep_accumulate(c, to);
    sweep_lay_out(c, &random);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    shift_case s = draw(c);
    nrg_relative_shift_args args = nrg_relative_shift_args_init(s.shape[0], s.shape[1], s.shape[2], s.keys, s.rel, s.shift);
    nrg_head_strides *from = s.backward ? &args.d_scores_strides : &args.x_strides,
                     *to = s.backward ? &args.dx_strides : &args.scores_strides;
    nrg_status status = NRG_OK;
    args.dtype = c->spec.dtype;
    args.store = c->spec.store;
    args.accumulate = s.accumulate;
    args.x = sweep_place(c, X, memory);
    args.scores = sweep_place(c, SCORES, memory);
    args.d_scores = sweep_place(c, D_SCORES, memory);
    args.dx = sweep_place(c, DX, memory);
    sweep_batch_strides(c, s.backward ? D_SCORES : X, s.shape, s.from_by_head, 1, &from->batch, &from->head, &from->row);
    sweep_batch_strides(c, s.backward ? DX : SCORES, s.shape, s.to_by_head, 1, &to->batch, &to->head, &to->row);
    nrg_status (*call)(const nrg_relative_shift_args *, int, int) = nrg_relative_shift;
#ifndef NRG_NO_BACKWARD
    if (s.backward)
        call = nrg_relative_shift_backward;
#endif
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = call(&args, sweep_share(c, i, c->shares), c->shares);
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const stores[] = {"auto", "keep", "stream"};
    shift_case s = draw(c);
    sweep_append(text, " %zux%zux%zux%zu, rel %zu, shift %ld%s%s, store %s", s.shape[0], s.shape[1], s.shape[2], s.keys, s.rel,
                 (long)s.shift, s.backward ? ", backward" : "", s.accumulate ? ", accumulate" : "", stores[c->spec.store]);
}

const sweep_family sweep_family_relative_shift = {count, make, sweep_fill_rows, run, describe, names};
