/* The cases of norm_quantized: those of norm_forward, in lengths that formats have, without groups; every fourth one is the
 * second norm of a sandwich.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/norm_sandwich.h"
#include "../../src/operands/quantize.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "norm.h"

enum { FORMATS = NRG_QUANT_INT8_128 };

static const unsigned char slots[] = {
    [NRG_NORM_X] = SWEEP_X,       [NRG_NORM_Y] = SWEEP_Y,       [NRG_NORM_Z] = SWEEP_Z,         [NRG_NORM_W] = SWEEP_W,
    [NRG_NORM_B] = SWEEP_B,       [NRG_NORM_O] = SWEEP_NOWHERE, [NRG_NORM_R] = SWEEP_R,         [NRG_NORM_MEAN] = SWEEP_MEAN,
    [NRG_NORM_RSTD] = SWEEP_RSTD, [NRG_NORM_Q] = SWEEP_O,       [NRG_NORM_SCALES] = SWEEP_SUMS,
};

/* Without a place for o, which is not looked at. */
static const unsigned char sandwich_slots[] = {
    [NRG_SANDWICH_X] = SWEEP_IN,          [NRG_SANDWICH_Y] = SWEEP_IN + 1,       [NRG_SANDWICH_W1] = SWEEP_IN + 2,
    [NRG_SANDWICH_B1] = SWEEP_IN + 3,     [NRG_SANDWICH_W2] = SWEEP_IN + 4,      [NRG_SANDWICH_B2] = SWEEP_IN + 5,
    [NRG_SANDWICH_R] = SWEEP_OUT,         [NRG_SANDWICH_O] = SWEEP_NOWHERE,      [NRG_SANDWICH_MEAN1] = SWEEP_NOWHERE,
    [NRG_SANDWICH_RSTD1] = SWEEP_NOWHERE, [NRG_SANDWICH_MEAN2] = SWEEP_OUT + 1,  [NRG_SANDWICH_RSTD2] = SWEEP_OUT + 2,
    [NRG_SANDWICH_Q] = SWEEP_OUT + 3,     [NRG_SANDWICH_SCALES] = SWEEP_OUT + 4,
};

static nrg_quant_format format_of(const sweep_case *c) { return (nrg_quant_format)(NRG_QUANT_Q8_0 + c->n % FORMATS); }

static nrg_norm_args args_of(const sweep_case *c)
{
    nrg_norm_args args = sweep_norm_args(c);
    args.format = format_of(c);
    args.rounding = c->n % 5 == 0 ? NRG_QUANT_AWAY : NRG_QUANT_TO_EVEN;
    return args;
}

static int is_sandwich(const sweep_case *c) { return c->n % 4 == 3; }

/* The structs of a sandwich: the first norm is the case's. */
typedef struct sandwich_call {
    nrg_norm_spec first, second;
    nrg_norm_sandwich_args args;
} sandwich_call;
#define PARTS(call) ((void *const[]){&(call)->first, &(call)->second, &(call)->args})

static sandwich_call sandwich_of(const sweep_case *c)
{
    sandwich_call call = {.first = c->spec, .second = c->spec};
    call.second.centred = c->n % 8 == 3;
    call.second.eps = 1e-5;
    call.second.y_dtype = call.second.r_dtype = NRG_DTYPE_SAME;
    call.args = nrg_norm_sandwich_args_init(c->rows / c->planes, NULL, NULL, NULL, NULL);
    call.args.rows2 = c->planes;
    call.args.format = format_of(c);
    call.args.rounding = c->n % 5 == 0 ? NRG_QUANT_AWAY : NRG_QUANT_TO_EVEN;
    return call;
}

static void make_sandwich(sweep_case *c, uint64_t *random)
{
    enum {
        WEIGHTS = NRG_BIT(NRG_SANDWICH_W1) | NRG_BIT(NRG_SANDWICH_B1) | NRG_BIT(NRG_SANDWICH_W2) | NRG_BIT(NRG_SANDWICH_B2),
        STATISTICS = NRG_BIT(NRG_SANDWICH_MEAN2) | NRG_BIT(NRG_SANDWICH_RSTD2)
    };
    c->spec.gate = NRG_GATE_NONE;
    c->spec.activation = NRG_ACT_IDENTITY;
    c->spec.residual_mode = NRG_RESIDUAL_BEFORE;
    sandwich_call call = sandwich_of(c);
    uint32_t there = NRG_BIT(NRG_SANDWICH_R) | NRG_BIT(NRG_SANDWICH_Q);
    there |= nrg_quant_has_scales(call.args.format) ? NRG_BIT(NRG_SANDWICH_SCALES) : 0;
    there |= sweep_draw(random, 2) ? WEIGHTS : NRG_BIT(NRG_SANDWICH_W1) | NRG_BIT(NRG_SANDWICH_W2);
    there |= sweep_draw(random, 3) == 0 ? STATISTICS : 0;
    c->weights = WEIGHTS;
    sweep_add_call(c, &nrg_call_norm_sandwich_forward, PARTS(&call), sandwich_slots, there, 0);
    sweep_lay_out(c, random);
}

/* Lengths of one chunk of the kernels and of several, of 16 blocks and more; planes of whole groups of rows. */
static void fit(sweep_case *c)
{
    const nrg_quant_format format = format_of(c);
    const size_t block = nrg_quant_block(format), together = nrg_quant_rows(format), most = c->rows > 9 ? 9 : c->rows;
    c->spec.groups = 0;
    if (!nrg_quant_has_scales(format))
        c->spec.dim = c->large ? (c->spec.dim + block - 1) / block * block : block * (1 + c->spec.dim % 5);
    c->planes = c->n % 3 ? 1 : 2;
    c->rows = c->planes * together * (together == 1 ? most : (most + 3) / 4);
}

static void make(sweep_case *c)
{
    uint64_t random = c->seed;
    const int combination = sweep_norm_draw(c, sweep_family_norm_quantized.ways[c->level], &random);
    const int residual = combination >> SWEEP_RESIDUAL_SHIFT;
    fit(c);
    if (is_sandwich(c)) {
        make_sandwich(c, &random);
        return;
    }
    nrg_norm_args args = args_of(c);
    uint32_t there = NRG_BIT(NRG_NORM_Q);
    there |= nrg_quant_has_scales(args.format) ? NRG_BIT(NRG_NORM_SCALES) : 0;
    there |= residual != SWEEP_RESIDUAL_NONE ? NRG_BIT(NRG_NORM_Y) : 0;
    there |= c->spec.gate ? NRG_BIT(NRG_NORM_Z) : 0;
    there |= combination & SWEEP_WEIGHT ? NRG_BIT(NRG_NORM_W) : 0;
    there |= combination & SWEEP_BIAS ? NRG_BIT(NRG_NORM_B) : 0;
    there |= residual == SWEEP_RESIDUAL_R ? NRG_BIT(NRG_NORM_R) : 0;
    there |= sweep_draw(&random, 3) == 0 ? NRG_BIT(NRG_NORM_MEAN) | NRG_BIT(NRG_NORM_RSTD) : 0;
    sweep_add_call(c, &nrg_call_norm_forward, (void *const[]){&c->spec, &args}, slots, there, 0);
    sweep_lay_out(c, &random);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    nrg_norm_spec spec = c->spec;
    nrg_norm_args args = args_of(c);
    nrg_status status = NRG_OK;
    if (is_sandwich(c)) {
        sandwich_call call = sandwich_of(c);
        sweep_bind_call(c, &nrg_call_norm_sandwich_forward, PARTS(&call), sandwich_slots, memory);
        SWEEP_EACH_SHARE(status, c, c->shares, nrg_norm_sandwich_forward(&call.first, &call.second, &call.args, ith, nth));
        return status;
    }
    sweep_bind_call(c, &nrg_call_norm_forward, (void *const[]){&spec, &args}, slots, memory);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_norm_forward(&spec, &args, ith, nth));
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    sweep_norm_describe(c, text);
    sweep_append(text, "%s, format %d", is_sandwich(c) ? ", then another norm" : "", (int)format_of(c));
}

const sweep_family sweep_family_norm_quantized = {
    .ways = {2, 8, 16}, .small = {40, 80, 200}, .large = SWEEP_NORM_LARGE, .make = make, .run = run, .describe = describe};
