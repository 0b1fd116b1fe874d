/* nrg_rope_forward and nrg_norm_rope_forward: 32 heads of 128 turned, out of place; and with a norm of each head before.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/norm_rope.h"
#include "../family.h"

static const bench_shape shapes[] = {BENCH_ROWS(1, 4096), BENCH_ROWS(512, 4096), BENCH_ROWS(8192, 4096), BENCH_ROWS(1, 128),
                                     BENCH_ROWS(1, 1024)};

/* Parts of nrg_norm_rope_forward from here on are those of nrg_rope_forward. */
enum { ROTATION = NRG_NORM_ROPE_SPEC };

/* option: the mode */
static void prepare_rotation(const bench_case *c, void *const *part)
{
    nrg_rope_args *args = part[NRG_ROPE_ARGS];
    *(nrg_rope_spec *)part[NRG_ROPE_SPEC] = nrg_rope_spec_init(bench_head_of(c), (nrg_rope_mode)c->op->option, 10000);
    *args = nrg_rope_args_init(c->dtype, c->shape.rows, bench_head_of(c), NULL);
    args->store = c->store;
    args->q_heads = c->shape.dim / bench_head_of(c);
}

static void ready_rotation(const bench_case *c, void *const *part)
{
    const nrg_rope_args *args = part[NRG_ROPE_ARGS];
    double frequencies[BENCH_HEAD_MAX], magnitude;
    bench_require(nrg_rope_frequencies(part[NRG_ROPE_SPEC], frequencies, &magnitude));
    const nrg_rope_table_args table = nrg_rope_table_args_init(c->shape.rows, frequencies, magnitude, own_memory(args->table));
    bench_require(nrg_rope_table(part[NRG_ROPE_SPEC], &table, 0, 1));
}

static const bench_op ops[] = {
    {"normal", "q,q_o", BENCH_SHAPES(shapes), .option = NRG_ROPE_NORMAL},
    {"neox", "q,q_o", BENCH_SHAPES(shapes), .option = NRG_ROPE_NEOX},
};

const bench_family bench_rope = {
    BENCH_OPS(ops, call_rope_forward, prepare_rotation),
    BENCH_QUICK(NULL, "1x4096,512x4096"),
    .scan_heads = 8,
    .rival = "x=q,o=q_o,table",
    .ready = ready_rotation,
    .aside = "table",
};

/* ---- with a norm, in one call and in two ---- */

BENCH_FUNCTION(in_one, nrg_call_norm_rope_forward,
               nrg_norm_rope_forward(part[NRG_NORM_ROPE_NORM], part[NRG_NORM_ROPE_SPEC], part[NRG_NORM_ROPE_ARGS],
                                     part[NRG_NORM_ROPE_Q_ARGS], NULL, ith, nth))

static nrg_status call_both(void *const *part, int ith, int nth)
{
    const nrg_status status = nrg_norm_forward(part[NRG_NORM_ROPE_NORM], part[NRG_NORM_ROPE_Q_ARGS], ith, nth);
    return status == NRG_OK ? nrg_rope_forward(part[NRG_NORM_ROPE_SPEC], part[NRG_NORM_ROPE_ARGS], ith, nth) : status;
}
BENCH_FUNCTION(in_two, nrg_call_norm_rope_forward, call_both(part, ith, nth))

#define NORMED(name, call, mode, is_exact)                                                                                       \
    {                                                                                                                            \
        name, "q,q's w,q_o", BENCH_SHAPES(shapes), .function = &(call), .option = NRG_ROPE_##mode, .exact = (is_exact),          \
                                                   .fixed_strides = &(call) == &in_two                                           \
    }
static const bench_op normed_ops[] = {
    NORMED("norm+normal", in_one, NORMAL, 0),       NORMED("norm+neox", in_one, NEOX, 0),
    NORMED("norm,normal", in_two, NORMAL, 0),       NORMED("norm,neox", in_two, NEOX, 0),
    NORMED("norm+normal-exact", in_one, NORMAL, 1), NORMED("norm+neox-exact", in_one, NEOX, 1),
};

static void prepare_normed(const bench_case *c, void *const *part)
{
    nrg_norm_spec *spec = part[NRG_NORM_ROPE_NORM];
    prepare_rotation(c, part + ROTATION);
    *spec = nrg_norm_spec_rms(c->dtype, bench_head_of(c), 1e-6);
    spec->accuracy = c->op->exact ? NRG_ACCURACY_EXACT : NRG_ACCURACY_FAST;
    *(nrg_norm_args *)part[NRG_NORM_ROPE_Q_ARGS] =
        nrg_norm_args_init(c->shape.rows * (c->shape.dim / bench_head_of(c)), NULL, NULL, NULL);
}

static void ready_normed(const bench_case *c, void *const *part)
{
    nrg_norm_args *norm = part[NRG_NORM_ROPE_Q_ARGS];
    nrg_rope_args *rope = part[NRG_NORM_ROPE_ARGS];
    ready_rotation(c, part + ROTATION);
    if (c->op->function == &in_two) {
        norm->x = rope->q;
        norm->o = rope->q_o;
        rope->q = rope->q_o;
    }
}

/* In two calls, q is where the first one has left its heads. */
static void rival_numbers(const bench_case *c, void *const *part, rival_job *job)
{
    const nrg_norm_args *norm = part[NRG_NORM_ROPE_Q_ARGS];
    (void)c;
    if (norm->x)
        job->x = norm->x;
}

const bench_family bench_norm_rope = {
    BENCH_OPS(normed_ops, in_one, prepare_normed),
    BENCH_QUICK("norm+neox", "1x4096,512x4096"),
    .scan_heads = 8,
    .rival = "x=q,o=q_o,table,w=q's w",
    .rival_numbers = rival_numbers,
    .ready = ready_normed,
    .aside = "table,q's w",
    .also = BENCH_ROW_IN, /* w: a row of limits is a token's heads */
};
