/* The cases of glu and glu_backward: every activation, of two tensors, of halves of one and of pairs, in rows of any length, with
 * and without a limit and an offset.
 *
 * SPDX-License-Identifier: MIT */
#include "../../src/operands/activation.h"

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

static const sweep_call forward = {&invoke_glu_forward, .part = {SWEEP_STRUCTS_AT}};

/* Whether it is one of pairs. */
static int draw_args(sweep_case *c, nrg_glu_args *a, uint64_t *random)
{
    static const unsigned most[] = {2, 3, 5};
    static const float alphas[] = {0, 1, 0.3f, 1.702f, 40};
    size_t shape[4];
    sweep_draw_shape(c, most, large, shape, random);
    if (is_too_long(c))
        shape[3] /= 32;
    *a = nrg_glu_args_init((nrg_activation)c->way, c->spec.dtype, shape[2], shape[3], NULL, NULL, NULL);
    a->rows2 = shape[1];
    a->rows3 = shape[0];
    c->rows = shape[0] * shape[1] * shape[2];
    const int is_pairs = sweep_draw(random, 3) == 0;
    const uint64_t limits = sweep_draw(random, 4);
    if (limits < 2)
        a->limit = limits ? 7 : 0.75f;
    a->b_offset = sweep_draw(random, 3) == 0 ? 1 : 0;
    if (a->alpha != 0) {
        const float alpha = alphas[sweep_draw(random, sizeof alphas / sizeof alphas[0])];
        a->alpha = alpha > 0 ? alpha : a->alpha;
    }
    return is_pairs;
}

static uint32_t inputs_of(int is_pairs) { return is_pairs ? NRG_BIT(NRG_GLU_X) : NRG_BIT(NRG_GLU_A) | NRG_BIT(NRG_GLU_B); }

static void describe(const sweep_case *c, char text[SWEEP_TEXT_ROOM])
{
    const nrg_glu_args *a = sweep_const_structs(c);
    sweep_append(text, ", %s, %s, limit %g, alpha %g, b + %g", nrg_activation_name(a->activation),
                 nrg_quant_format_name(a->format), (double)a->limit, (double)a->alpha, (double)a->b_offset);
}

static void draw(sweep_case *c, uint64_t *random)
{
    series_begin(c, lengths[c->level], LARGE);
    const int is_pairs = draw_args(c, sweep_structs(c), random);
    sweep_add(c, SWEEP_ALWAYS, &forward, inputs_of(is_pairs) | NRG_BIT(NRG_GLU_O), 0);
}

const sweep_family sweep_family_glu = {LENGTHS, .draw = draw, .describe = describe};

#ifndef NRG_NO_QUANTIZE
static const unsigned char to_bytes[] = {SWEEP_IN, SWEEP_IN + 1, SWEEP_IN + 2, SWEEP_NOWHERE, SWEEP_OUT, SWEEP_OUT + 1};
static const sweep_call quantized = {&invoke_glu_forward, .slots = to_bytes, .part = {SWEEP_STRUCTS_AT}};

/* Bytes instead of o: of every format, in lengths that it has. */
static void draw_quantized(sweep_case *c, uint64_t *random)
{
    nrg_glu_args *a = sweep_structs(c);
    const int is_pairs = draw_args(c, a, random);
    const nrg_quant_format format = (nrg_quant_format)(NRG_QUANT_Q8_0 + c->n % NRG_QUANT_INT8_128);
    const size_t block = nrg_quant_block(format), together = nrg_quant_rows(format);
    a->format = format;
    a->rounding = c->n % 5 == 0 ? NRG_QUANT_ROUND_AWAY : NRG_QUANT_ROUND_TO_EVEN;
    a->dim = c->large == LARGE ? 8192 + a->dim % 1000 : a->dim;
    if (!nrg_quant_has_scales(format))
        a->dim = c->large ? (a->dim + block - 1) / block * block : block * (1 + a->dim % 5);
    a->rows = together == 1 ? a->rows : together * (1 + a->rows % 2);
    c->rows = a->rows * a->rows2 * a->rows3;
    const uint32_t outputs = NRG_BIT(NRG_GLU_PACKED) | (nrg_quant_has_scales(format) ? NRG_BIT(NRG_GLU_SCALES) : 0);
    sweep_add(c, SWEEP_ALWAYS, &quantized, inputs_of(is_pairs) | outputs, 0);
}

const sweep_family sweep_family_glu_quantized = {LENGTHS, .draw = draw_quantized, .describe = describe};
#endif

#ifndef NRG_NO_BACKWARD
static const sweep_call backward = {&invoke_glu_backward, .part = {SWEEP_STRUCTS_AT}};

static void draw_backward(sweep_case *c, uint64_t *random)
{
    series_begin(c, lengths[c->level], LARGE);
    const int is_pairs = draw_args(c, sweep_structs(c), random);
    sweep_add(c, SWEEP_ALWAYS, &backward,
              is_pairs ? NRG_BIT(NRG_GLU_BACKWARD_X) | NRG_BIT(NRG_GLU_BACKWARD_DX)
                       : NRG_BIT(NRG_GLU_BACKWARD_A) | NRG_BIT(NRG_GLU_BACKWARD_B) | NRG_BIT(NRG_GLU_BACKWARD_DA) |
                             NRG_BIT(NRG_GLU_BACKWARD_DB),
              0);
}

const sweep_family sweep_family_glu_backward = {LENGTHS, .draw = draw_backward, .describe = describe};
#endif
