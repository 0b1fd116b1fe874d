/* The cases of norm_quantized: those of norm_forward, in lengths that formats have, without groups.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/norm.h"
#include "../../src/operands/quantize.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "norm.h"

enum { FORMATS = NRG_QUANT_INT8_128 };

static const unsigned char slots[] = {
    [NRG_NORM_X] = SWEEP_X,       [NRG_NORM_Y] = SWEEP_Y,       [NRG_NORM_Z] = SWEEP_Z,         [NRG_NORM_W] = SWEEP_W,
    [NRG_NORM_B] = SWEEP_B,       [NRG_NORM_O] = SWEEP_NOWHERE, [NRG_NORM_R] = SWEEP_R,         [NRG_NORM_MEAN] = SWEEP_MEAN,
    [NRG_NORM_RSTD] = SWEEP_RSTD, [NRG_NORM_PACKED] = SWEEP_O,  [NRG_NORM_SCALES] = SWEEP_SUMS,
};

static nrg_quant_format format_of(const sweep_case *c) { return (nrg_quant_format)(NRG_QUANT_Q8_0 + c->n % FORMATS); }

/* Lengths of one chunk of the kernels and of several, of 16 blocks and more; planes of whole groups of rows. */
static void fit(sweep_case *c)
{
    const nrg_quant_format format = format_of(c);
    const size_t block = nrg_quant_block(format), together = nrg_quant_rows(format), most = c->rows > 9 ? 9 : c->rows;
    c->spec.groups = 1;
    c->spec.format = format;
    c->spec.rounding = c->n % 5 == 0 ? NRG_QUANT_ROUND_AWAY : NRG_QUANT_ROUND_TO_EVEN;
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
    nrg_norm_args args = sweep_norm_args(c);
    uint32_t there = NRG_BIT(NRG_NORM_PACKED);
    there |= nrg_quant_has_scales(c->spec.format) ? NRG_BIT(NRG_NORM_SCALES) : 0;
    there |= residual != SWEEP_RESIDUAL_NONE ? NRG_BIT(NRG_NORM_Y) : 0;
    there |= c->spec.gate ? NRG_BIT(NRG_NORM_Z) : 0;
    there |= combination & SWEEP_WEIGHT ? NRG_BIT(NRG_NORM_W) : 0;
    there |= combination & SWEEP_BIAS ? NRG_BIT(NRG_NORM_B) : 0;
    there |= residual == SWEEP_RESIDUAL_R ? NRG_BIT(NRG_NORM_R) : 0;
    there |= sweep_draw(&random, 3) == 0 ? NRG_BIT(NRG_NORM_MEAN) | NRG_BIT(NRG_NORM_RSTD) : 0;
    norm_settle(&c->spec, combination & SWEEP_WEIGHT);
    sweep_add_call(c, &nrg_call_norm_forward, (void *const[]){&c->spec, &args}, slots, there, 0);
    sweep_lay_out(c, &random);
}

static nrg_status run(const sweep_case *c, unsigned char *memory)
{
    nrg_norm_spec spec = c->spec;
    nrg_norm_args args = sweep_norm_args(c);
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_norm_forward, (void *const[]){&spec, &args}, slots, memory);
    norm_settle(&spec, args.w != NULL);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_norm_forward(&spec, &args, ith, nth));
    return status;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    sweep_norm_describe(c, text);
    sweep_append(text, ", format %d", (int)c->spec.format);
}

const sweep_family sweep_family_norm_quantized = {
    .ways = {2, 8, 16}, .small = {40, 80, 200}, .large = SWEEP_NORM_LARGE, .make = make, .run = run, .describe = describe};
