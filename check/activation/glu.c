/* The cases of glu and glu_backward: every activation, of two tensors, of halves of one and of pairs, in rows of any length, with
 * and without a limit and an offset.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/activation.h"
#include "../../src/operands/glu.h"

#include "../data.h"
#include "../family.h"
#include "../layout.h"
#include "series.h"

/* Rows and their length; the last one is streamed. */
static const size_t large[][4] = {{1, 1, 2, 513}, {1, 2, 3, 1030}, {1, 1, 40, 77}, {1, 1, 1, 4097}, {1, 1, 3, 140007}};
enum { LARGE = sizeof large / sizeof large[0] };

/* Data for all activations in the last one would take most of the quick level's time: there, each dtype has three of them. */
static int is_too_long(const sweep_case *c)
{
    return c->level == SWEEP_QUICK && c->large == LARGE && (c->way + c->spec.dtype) % 6 != 0;
}

enum { QUICK = 20, MIDDLE = 70, FULL = 300 };
static const size_t lengths[] = {[SWEEP_QUICK] = QUICK, [SWEEP_DEFAULT] = MIDDLE, [SWEEP_FULL] = FULL};
#define LENGTHS SERIES_LENGTHS(QUICK, MIDDLE, FULL, LARGE)

typedef struct glu_case {
    nrg_glu_args args;
    int is_pairs;
} glu_case;

static glu_case draw(const sweep_case *c)
{
    static const unsigned most[] = {2, 3, 5};
    static const float alphas[] = {0, 1, 0.3f, 1.702f, 40};
    uint64_t random = c->seed;
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, &random);
    if (is_too_long(c))
        shape[3] /= 32;
    glu_case g = {.args = nrg_glu_args_init((nrg_activation)c->way, c->spec.dtype, shape[2], shape[3], NULL, NULL, NULL)};
    g.args.rows2 = shape[1];
    g.args.rows3 = shape[0];
    g.is_pairs = sweep_draw(&random, 3) == 0;
    const uint64_t limits = sweep_draw(&random, 4);
    if (limits < 2)
        g.args.limit = limits ? 7 : 0.75f;
    g.args.b_offset = sweep_draw(&random, 3) == 0 ? 1 : 0;
    if (g.args.alpha != 0) {
        const float alpha = alphas[sweep_draw(&random, sizeof alphas / sizeof alphas[0])];
        g.args.alpha = alpha > 0 ? alpha : g.args.alpha;
    }
    return g;
}

static glu_case begin(sweep_case *c, uint64_t *random)
{
    series_begin(c, lengths[c->level], LARGE);
    const glu_case g = draw(c);
    *random = ~(c->seed << 8);
    c->rows = g.args.rows * g.args.rows2 * g.args.rows3;
    c->shares = sweep_draw_shares(random);
    return g;
}

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const glu_case g = draw(c);
    sweep_append(text, " %s of %zux%zux%zux%zu%s", nrg_activation_name(g.args.activation), g.args.rows3, g.args.rows2,
                 g.args.rows, g.args.dim, g.is_pairs ? " pairs" : "");
    if (g.args.limit < 100)
        sweep_append(text, ", limit %g", (double)g.args.limit);
    if (g.args.alpha != 0)
        sweep_append(text, ", alpha %g", (double)g.args.alpha);
    if (g.args.b_offset > 0)
        sweep_append(text, ", b + %g", (double)g.args.b_offset);
}

static void make_forward(sweep_case *c)
{
    uint64_t random;
    glu_case g = begin(c, &random);
    const uint32_t there = NRG_BIT(NRG_GLU_O) | (g.is_pairs ? NRG_BIT(NRG_GLU_X) : NRG_BIT(NRG_GLU_A) | NRG_BIT(NRG_GLU_B));
    sweep_add_call(c, &nrg_call_glu_forward, (void *const[]){&g.args}, NULL, there, 0);
    sweep_lay_out(c, &random);
}

static nrg_status run_forward(const sweep_case *c, unsigned char *memory)
{
    glu_case g = draw(c);
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_glu_forward, (void *const[]){&g.args}, NULL, memory);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_glu_forward(&g.args, ith, nth));
    return status;
}

const sweep_family sweep_family_glu = {LENGTHS, .make = make_forward, .run = run_forward, .describe = describe};

#ifndef NRG_NO_QUANTIZE
/* Bytes instead of o: of every format, in lengths that it has. */
static const unsigned char slots[] = {
    [NRG_GLU_A] = SWEEP_IN,      [NRG_GLU_B] = SWEEP_IN + 1,   [NRG_GLU_X] = SWEEP_IN + 2,
    [NRG_GLU_O] = SWEEP_NOWHERE, [NRG_GLU_PACKED] = SWEEP_OUT, [NRG_GLU_SCALES] = SWEEP_OUT + 1};

static glu_case draw_quantized(const sweep_case *c)
{
    glu_case g = draw(c);
    const nrg_quant_format format = (nrg_quant_format)(NRG_QUANT_Q8_0 + c->n % NRG_QUANT_INT8_128);
    const size_t block = nrg_quant_block(format), together = nrg_quant_rows(format);
    g.args.format = format;
    g.args.rounding = c->n % 5 == 0 ? NRG_QUANT_ROUND_AWAY : NRG_QUANT_ROUND_TO_EVEN;
    g.args.dim = c->large == LARGE ? 8192 + g.args.dim % 1000 : g.args.dim;
    if (!nrg_quant_has_scales(format))
        g.args.dim = c->large ? (g.args.dim + block - 1) / block * block : block * (1 + g.args.dim % 5);
    g.args.rows = together == 1 ? g.args.rows : g.args.rows ? together * (1 + g.args.rows % 2) : 0;
    return g;
}

static void make_quantized(sweep_case *c)
{
    glu_case g = draw_quantized(c);
    uint64_t random = ~(c->seed << 8);
    c->rows = g.args.rows * g.args.rows2 * g.args.rows3;
    c->shares = sweep_draw_shares(&random);
    uint32_t there = g.is_pairs ? NRG_BIT(NRG_GLU_X) : NRG_BIT(NRG_GLU_A) | NRG_BIT(NRG_GLU_B);
    there |= NRG_BIT(NRG_GLU_PACKED) | (nrg_quant_has_scales(g.args.format) ? NRG_BIT(NRG_GLU_SCALES) : 0);
    sweep_add_call(c, &nrg_call_glu_forward, (void *const[]){&g.args}, slots, there, 0);
    sweep_lay_out(c, &random);
}

static nrg_status run_quantized(const sweep_case *c, unsigned char *memory)
{
    glu_case g = draw_quantized(c);
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_glu_forward, (void *const[]){&g.args}, slots, memory);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_glu_forward(&g.args, ith, nth));
    return status;
}

static void describe_quantized(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const glu_case g = draw_quantized(c);
    sweep_append(text, " %s of %zux%zux%zux%zu%s, %s", nrg_activation_name(g.args.activation), g.args.rows3, g.args.rows2,
                 g.args.rows, g.args.dim, g.is_pairs ? " pairs" : "", nrg_quant_format_name(g.args.format));
}

const sweep_family sweep_family_glu_quantized = {LENGTHS, .make = make_quantized, .run = run_quantized,
                                                 .describe = describe_quantized};
#endif

#ifndef NRG_NO_BACKWARD
static void make_backward(sweep_case *c)
{
    uint64_t random;
    glu_case g = begin(c, &random);
    const uint32_t there = g.is_pairs ? NRG_BIT(NRG_GLU_BACKWARD_X) | NRG_BIT(NRG_GLU_BACKWARD_DX)
                                      : NRG_BIT(NRG_GLU_BACKWARD_A) | NRG_BIT(NRG_GLU_BACKWARD_B) | NRG_BIT(NRG_GLU_BACKWARD_DA) |
                                            NRG_BIT(NRG_GLU_BACKWARD_DB);
    sweep_add_call(c, &nrg_call_glu_backward, (void *const[]){&g.args}, NULL, there, 0);
    sweep_lay_out(c, &random);
}

static nrg_status run_backward(const sweep_case *c, unsigned char *memory)
{
    glu_case g = draw(c);
    nrg_status status = NRG_OK;
    sweep_bind_call(c, &nrg_call_glu_backward, (void *const[]){&g.args}, NULL, memory);
    SWEEP_EACH_SHARE(status, c, c->shares, nrg_glu_backward(&g.args, ith, nth));
    return status;
}

const sweep_family sweep_family_glu_backward = {LENGTHS, .make = make_backward, .run = run_backward, .describe = describe};
#endif
