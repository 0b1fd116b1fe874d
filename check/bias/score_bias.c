/* The cases of score_bias, with diagonals of T5's and ALiBi's among them.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "../position.h"

enum { SCORES = SWEEP_IN, DIAGONALS, TABLE };
enum { O = SWEEP_OUT, MADE };

static const char *const names[SWEEP_OPERANDS] = {
    [SCORES] = "scores", [DIAGONALS] = "diagonals", [TABLE] = "table", [O] = "o", [MADE] = "made diagonals"};

/* Where diagonals come from; each for every number of keys. */
enum { ANY, T5, ALIBI, WAYS };

static const struct {
    size_t batch, heads, queries, keys;
} large[] = {{1, 2, 70, 65}, {2, 1, 3, 1000}, {1, 3, 130, 7}, {1, 1, 1, 4097}, {2, 2, 33, 129}, {1, 8, 64, 64}};
enum { LARGE = sizeof large / sizeof large[0] };

static const size_t small[] = {[SWEEP_QUICK] = 70, [SWEEP_DEFAULT] = 140, [SWEEP_FULL] = 600};

static uint64_t count(sweep_level level) { return WAYS * (small[level] + LARGE); }

typedef struct bias_case {
    int kind, by_head, o_by_head, in_place;
    size_t shape[3], keys; /* batch, heads, queries */
    nrg_bias_spec spec;
    float scale;
} bias_case;

static bias_case draw(const sweep_case *c)
{
    static const float scales[] = {0, 0, 1, 0.125f, -3.3f};
    bias_case b;
    uint64_t random = c->number, length = c->n / WAYS;
    memset(&b, 0, sizeof b);
    b.kind = (int)(c->n % WAYS);
    b.shape[0] = sweep_draw(&random, 24) ? 1 + sweep_draw(&random, 2) : 0;
    b.shape[1] = 1 + sweep_draw(&random, 4);
    b.shape[2] = 1 + sweep_draw(&random, 9);
    b.keys = (size_t)length + 1;
    if (length >= small[c->level]) {
        b.shape[0] = large[length - small[c->level]].batch;
        b.shape[1] = large[length - small[c->level]].heads;
        b.shape[2] = large[length - small[c->level]].queries;
        b.keys = large[length - small[c->level]].keys;
    }
    b.in_place = sweep_draw(&random, 3) == 0;
    b.o_by_head = sweep_draw(&random, 3) != 0;
    b.by_head = b.in_place ? b.o_by_head : sweep_draw(&random, 3) != 0;
    b.scale = scales[sweep_draw(&random, 5)];
    b.spec = nrg_bias_spec_init(b.shape[1], b.shape[2], b.keys);
    b.spec.query_offset = sweep_draw(&random, 2) ? 0 : (int64_t)sweep_draw(&random, 2000) - 1000;
    b.spec.mask_future = sweep_draw(&random, 3) == 0;
    b.spec.bidirectional = sweep_draw(&random, 2) != 0;
    b.spec.buckets = 4 + (int)sweep_draw(&random, 40);
    b.spec.max_distance = b.spec.buckets + (int)sweep_draw(&random, 200);
    return b;
}

static void make(sweep_level level, uint64_t n, sweep_case *c)
{
    (void)level;
    c->spec.store = (nrg_store)(n / 5 % 3);
    bias_case b = draw(c);
    uint64_t random = ~(c->number << 8);
    size_t diagonals = nrg_score_diagonals(b.shape[2], b.keys);
    c->rows = b.shape[0];
    c->shares = sweep_draw_shares(&random);
    sweep_add_batches(c, SCORES, c->spec.dtype, b.keys, b.shape, b.by_head);
    if (b.kind == T5)
        sweep_add_tensor(c, TABLE, c->spec.dtype, b.shape[1], (size_t)b.spec.buckets);
    else if (b.kind == ALIBI)
        sweep_add_dense(c, TABLE, NRG_F32, b.shape[1], 1);
    sweep_add_tensor(c, b.kind == ANY ? DIAGONALS : MADE, NRG_F32, diagonals, b.shape[1]);
    sweep_add_batches(c, O, c->spec.dtype, b.keys, b.shape, b.o_by_head);
    c->operands[SCORES].is_alone = c->operands[O].is_alone = 1;
    sweep_lay_out(c, &random);
    if (b.in_place)
        sweep_share_place(c, O, SCORES);
}

static nrg_status make_diagonals(const sweep_case *c, const bias_case *b, unsigned char *memory)
{
    float *diagonals = sweep_place(c, MADE, memory);
    size_t stride = sweep_stride(c, MADE);
    nrg_status status = NRG_OK;
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = b->kind == T5 ? nrg_t5_diagonals(&b->spec, c->spec.dtype, sweep_place(c, TABLE, memory), sweep_stride(c, TABLE),
                                                  diagonals, stride, sweep_share(c, i, c->shares), c->shares)
                               : nrg_alibi_diagonals(&b->spec, sweep_place(c, TABLE, memory), diagonals, stride,
                                                     sweep_share(c, i, c->shares), c->shares);
    return status;
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    bias_case b = draw(c);
    nrg_status status = b.kind == ANY ? NRG_OK : make_diagonals(c, &b, memory);
    int diagonals = b.kind == ANY ? DIAGONALS : MADE;
    nrg_score_bias_args args =
        nrg_score_bias_args_init(c->spec.dtype, b.shape[0], b.shape[1], b.shape[2], b.keys, sweep_place(c, SCORES, memory),
                                 sweep_place(c, diagonals, memory), sweep_place(c, O, memory));
    args.store = c->spec.store;
    args.scale = b.scale;
    args.diagonals_stride = sweep_stride(c, diagonals);
    sweep_batch_strides(c, SCORES, b.shape, b.by_head, 1, &args.scores_batch_stride, &args.scores_head_stride,
                        &args.scores_query_stride);
    sweep_batch_strides(c, O, b.shape, b.o_by_head, 1, &args.o_batch_stride, &args.o_head_stride, &args.o_query_stride);
    for (int i = 0; i < c->shares && status == NRG_OK; i++)
        status = nrg_score_bias_forward(&args, sweep_share(c, i, c->shares), c->shares);
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    static const char *const kinds[] = {"any", "t5", "alibi"}, *const stores[] = {"auto", "keep", "stream"};
    bias_case b = draw(c);
    sweep_append(text, " %zux%zux%zux%zu %s times %g, offset %ld%s, store %s", b.shape[0], b.shape[1], b.shape[2], b.keys,
                 kinds[b.kind], (double)b.scale, (long)b.spec.query_offset, b.spec.mask_future ? ", mask_future" : "",
                 stores[c->spec.store]);
    if (b.kind == T5)
        sweep_append(text, ", %d buckets to %d%s", b.spec.buckets, b.spec.max_distance, b.spec.bidirectional ? " both ways" : "");
}

const sweep_family sweep_family_score_bias = {count, make, sweep_fill_rows, run, describe, names};
